//! netem's options, and the keys of a link that stand for them.
//!
//! # Source
//! iproute2 7.1 `tc/q_netem.c` (options, their defaults, and the JSON); Linux
//! `net/sched/sch_netem.c`. `docs/impairments.md` compares them with ackclock's.

use ackclock_emulator::{Impairments, JitterDistribution, Loss, Reorder};
use ackclock_sim::spec::{DirectionSpec, LinkLayer};
use ackclock_units::Span;
use serde_json::{Map, Value as Json};

use crate::disciplines::{Context, Keys};
use crate::source::{ImportError, Read, wrong};
use crate::units::{self, Expected};

/// netem's options, each with its default.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Netem {
    /// Packets that wait or are delayed.
    pub(crate) limit: u64,
    /// The keys of a link.
    pub(crate) keys: Keys,
    /// Some packets are delayed.
    pub(crate) has_delay: bool,
}

/// The words of a netem, from which each option takes its own.
struct Words<'w> {
    words: &'w [String],
    at: usize,
}

impl<'w> Words<'w> {
    fn next(&mut self) -> Option<&'w str> {
        let word = self.words.get(self.at)?;
        self.at += 1;
        Some(word)
    }

    /// The next word, if it begins like a number.
    fn number(&mut self) -> Option<&'w str> {
        let is_number = |word: &&String| word.starts_with(|c: char| c.is_ascii_digit());
        self.words.get(self.at).filter(is_number)?;
        self.next()
    }

    /// The next word, if it begins like a number that may be below zero.
    fn signed(&mut self) -> Option<&'w str> {
        let is_number = |word: &&String| word.starts_with(|c: char| c.is_ascii_digit() || c == '-');
        self.words.get(self.at).filter(is_number)?;
        self.next()
    }
}

const NO_CORRELATION: &str = "losses, duplicates and bit errors are independent here; `loss gemodel` has runs";

/// Reads netem's options.
pub(crate) fn read(options: &[String], context: &Context<'_>, report: &mut Read) -> Result<Netem, ImportError> {
    let place = context.place;
    let mut netem = Netem { limit: 1000, keys: Keys::default(), has_delay: false };
    let mut words = Words { words: options, at: 0 };
    let (mut delay, mut jitter, mut correlation) = (Span::ZERO, Span::ZERO, 0.0);
    let mut distribution: Option<&str> = None;
    let mut reorder: Option<String> = None;
    let has = |word: &str, full: &str| !word.is_empty() && full.starts_with(word);
    while let Some(word) = words.next() {
        let missing = |expected: Expected| ImportError::at(place, format!("`{word}` has no value"), expected);
        let percent = |text: &str| units::percent(text).map_err(|expected| wrong(place, word, text, expected));
        let time = |text: &str| units::time64(text).map_err(|expected| wrong(place, word, text, expected));
        let whole = |text: &str| units::unsigned(text, 0).map_err(|expected| wrong(place, word, text, expected));
        if has(word, "limit") {
            let text = words.next().ok_or_else(|| missing(units::A_SIZE))?;
            netem.limit = units::size32(text).map_err(|expected| wrong(place, word, text, expected))?;
        } else if has(word, "latency") || has(word, "delay") {
            delay = time(words.next().ok_or_else(|| missing(units::A_TIME64))?)?;
            if let Some(text) = words.number() {
                jitter = time(text)?;
                if let Some(text) = words.number() {
                    correlation = percent(text)?;
                }
            }
        } else if has(word, "loss") || has(word, "drop") {
            const MODELS: Expected = "a percentage, or random, state or gemodel";
            let mut model = words.next().ok_or_else(|| missing(MODELS))?;
            if model == "random" || model.starts_with(|c: char| c.is_ascii_digit()) {
                if model == "random" {
                    model = words.next().ok_or_else(|| missing(units::A_PERCENT))?;
                }
                let probability = percent(model)?;
                if let Some(text) = words.number() {
                    report.leave(place, format!("loss ... {text}"), NO_CORRELATION);
                }
                netem.keys.remove("loss");
                if probability > 0.0 {
                    netem.keys.set("loss", format!("{{ kind = \"iid\", probability = {probability:?} }}"));
                }
                continue;
            }
            let (kind, names): (_, &[&str]) = match model {
                "state" => ("markov", &["p13", "p31", "p32", "p23", "p14"]),
                "gemodel" => ("gilbert-elliott", &["p", "r", "1-h", "1-k"]),
                other => return Err(ImportError::at(place, format!("`{word} {other}`"), MODELS)),
            };
            let mut given = vec![percent(words.next().ok_or_else(|| missing(units::A_PERCENT))?)?];
            while given.len() < names.len() {
                let Some(text) = words.number() else { break };
                given.push(percent(text)?);
            }
            let fields: Vec<String> =
                names.iter().zip(&given).map(|(name, value)| format!("{name} = {value:?}")).collect();
            netem.keys.set("loss", format!("{{ kind = \"{kind}\", {} }}", fields.join(", ")));
        } else if has(word, "seed") {
            let text = words.next().ok_or_else(|| missing(units::A_NUMBER))?;
            report.leave(place, format!("seed {text}"), "the generator is another; `run.seed` is that of a scenario");
        } else if has(word, "ecn") {
            report.leave(place, "ecn", "losses of the wire do not mark packets");
        } else if has(word, "reorder") {
            let text = words.next().ok_or_else(|| missing(units::A_PERCENT))?;
            percent(text)?;
            let correlation = words.number().map(|text| format!(" {text}")).unwrap_or_default();
            reorder = Some(format!("reorder {text}{correlation}"));
        } else if has(word, "corrupt") {
            let text = words.next().ok_or_else(|| missing(units::A_PERCENT))?;
            netem.keys.set("corrupt", format!("{:?}", percent(text)?));
            if let Some(text) = words.number() {
                report.leave(place, format!("corrupt ... {text}"), NO_CORRELATION);
            }
        } else if has(word, "gap") {
            let text = words.next().ok_or_else(|| missing(units::A_NUMBER))?;
            whole(text)?;
            reorder = reorder.map(|before| format!("{before} gap {text}"));
        } else if has(word, "duplicate") {
            let text = words.next().ok_or_else(|| missing(units::A_PERCENT))?;
            netem.keys.set("duplicate", format!("{:?}", percent(text)?));
            if let Some(text) = words.number() {
                report.leave(place, format!("duplicate ... {text}"), NO_CORRELATION);
            }
        } else if has(word, "distribution") {
            distribution = Some(words.next().ok_or_else(|| missing("the name of a table, such as normal"))?);
        } else if has(word, "rate") {
            let text = words.next().ok_or_else(|| missing(units::A_RATE))?;
            let rate = crate::disciplines::rate(word, text, false, context)?;
            rate.iter().for_each(|rate| netem.keys.set("rate", format!("\"{rate}\"")));
            let signed = |text: &str| units::signed(text).map_err(|expected| wrong(place, word, text, expected));
            let overhead = words.signed().map(signed).transpose()?.unwrap_or(0);
            let cell = words.number().map(whole).transpose()?.unwrap_or(0);
            let in_cell = words.signed().map(signed).transpose()?.unwrap_or(0);
            match u32::try_from(overhead) {
                Ok(0) => {}
                Ok(bytes) => netem.keys.set("overhead", format!("\"{bytes}B\"")),
                Err(_) => report.leave(place, format!("rate ... {overhead}"), "framing cannot make a packet shorter"),
            }
            match (cell, in_cell) {
                (0, _) => {}
                (48, 5) => netem.keys.set("linklayer", "\"atm\""),
                _ => {
                    report.leave(place, format!("rate ... {cell} {in_cell}"), "cells are those of ATM, 48 and 5 bytes");
                }
            }
        } else if has(word, "slot") {
            slot(word, &mut words, context, report, &mut netem.keys)?;
        } else {
            let expected =
                "limit, delay, loss, duplicate, corrupt, reorder, gap, distribution, rate, slot, seed or ecn";
            return Err(ImportError::at(place, format!("netem has no option `{word}`"), expected));
        }
    }
    if let Some(reorder) = reorder {
        if delay == Span::ZERO {
            return Err(ImportError::at(place, format!("`{reorder}` without a delay"), "`delay TIME`"));
        }
        let why = "netem's packet overtakes all that are delayed; a key `reorder` holds packets back instead";
        report.leave(place, reorder, why);
    }
    if distribution.is_some() && (delay == Span::ZERO || jitter == Span::ZERO) {
        return Err(ImportError::at(place, "`distribution` without delay and jitter", "`delay TIME JITTER`"));
    }
    netem.has_delay = delay > Span::ZERO || jitter > Span::ZERO;
    set_delay(&mut netem.keys, delay, jitter, distribution, context, report);
    if jitter > Span::ZERO && correlation > 0.0 {
        netem.keys.set("jitter_correlation", format!("{correlation:?}"));
    }
    Ok(netem)
}

/// The keys of a random delay.
fn set_delay(
    keys: &mut Keys,
    delay: Span,
    jitter: Span,
    distribution: Option<&str>,
    context: &Context<'_>,
    report: &mut Read,
) {
    if jitter == Span::ZERO {
        if delay > Span::ZERO {
            keys.set("delay", format!("\"{delay}\""));
        }
        return;
    }
    let known =
        JitterDistribution::ALL.into_iter().map(JitterDistribution::name).find(|name| Some(*name) == distribution);
    match (distribution, known) {
        (Some(name), Some(known)) if name != "uniform" => {
            keys.set("delay", format!("\"{delay}\""));
            keys.set("jitter", format!("\"{jitter}\""));
            keys.set("jitter_distribution", format!("\"{known}\""));
        }
        (name, _) => {
            if let Some(name) = name.filter(|name| *name != "uniform") {
                let why = format!(
                    "the jitter is uniform instead; with a copy of the table beside the scenario, \
                     `jitter_distribution = {{ file = \"{name}.dist\" }}`"
                );
                report.leave(context.place, format!("distribution {name}"), why);
            }
            // From `-jitter` to `+jitter` around the delay; ackclock's is added to it.
            let least = delay.as_nanos().saturating_sub(jitter.as_nanos());
            let most = delay.as_nanos() + jitter.as_nanos();
            if jitter > delay {
                let why = "a packet whose delay is below zero is not delayed; here the delay is uniform from 0";
                report.leave(context.place, format!("delay {delay} {jitter}"), why);
            }
            keys.set("delay", format!("\"{}\"", Span::from_nanos(least)));
            keys.set("jitter", format!("\"{}\"", Span::from_nanos(most - least)));
        }
    }
    // netem sorts by time.
    keys.set("reorder", "true");
}

/// The keys of slots.
fn slot(
    word: &str,
    words: &mut Words<'_>,
    context: &Context<'_>,
    report: &mut Read,
    keys: &mut Keys,
) -> Result<(), ImportError> {
    let place = context.place;
    let time = |text: &str| units::time64(text).map_err(|expected| wrong(place, word, text, expected));
    let missing = |expected: Expected| ImportError::at(place, format!("`{word}` has no value"), expected);
    let mut fields = Vec::new();
    if let Some(text) = words.number() {
        let least = time(text)?;
        let most = words.number().map(time).transpose()?.unwrap_or(least);
        if most < least {
            return Err(ImportError::at(place, format!("`{word} {least} {most}`"), "the shorter time first"));
        }
        fields.push(format!("delay = \"{least}\""));
        if most > least {
            fields.push(format!("jitter = \"{}\"", most - least));
        }
    } else {
        const EXPECTED: Expected = "a time, or `distribution NAME DELAY JITTER`";
        if words.next() != Some("distribution") {
            return Err(missing(EXPECTED));
        }
        let name = words.next().ok_or_else(|| missing(EXPECTED))?;
        let delay = time(words.next().ok_or_else(|| missing(EXPECTED))?)?;
        let jitter = time(words.next().ok_or_else(|| missing(EXPECTED))?)?;
        fields.extend([format!("delay = \"{delay}\""), format!("jitter = \"{jitter}\"")]);
        let mut names = JitterDistribution::ALL.into_iter().map(JitterDistribution::name);
        match names.find(|known| *known == name && name != "uniform") {
            Some(known) => fields.push(format!("jitter_distribution = \"{known}\"")),
            None => {
                let why = format!("the jitter is uniform instead of {name}.dist");
                report.leave(place, format!("slot distribution {name}"), why);
            }
        }
    }
    for (name, unit) in [("packets", ""), ("bytes", "B")] {
        let is_next = words.words.get(words.at).is_some_and(|next| !next.is_empty() && name.starts_with(next.as_str()));
        if !is_next {
            continue;
        }
        words.next();
        let text = words.next().ok_or_else(|| missing(units::A_NUMBER))?;
        let value = if unit.is_empty() { units::unsigned(text, 0) } else { units::size32(text) };
        let value = value.map_err(|expected| wrong(place, name, text, expected))?;
        if value > 0 {
            let quote = if unit.is_empty() { "" } else { "\"" };
            fields.push(format!("{name} = {quote}{value}{unit}{quote}"));
        }
    }
    keys.set("slots", format!("{{ {} }}", fields.join(", ")));
    Ok(())
}

/// The words for what `tc -j` prints of a netem; names that it does not know are handed to
/// `unknown`.
pub(crate) fn from_json(options: &Map<String, Json>, mut unknown: impl FnMut(&str)) -> Vec<String> {
    let mut words: Vec<String> = Vec::new();
    let number = |of: &Map<String, Json>, key: &str| of.get(key).and_then(Json::as_f64).unwrap_or(0.0);
    let percent = |of: &Map<String, Json>, key: &str| units::show_percent(number(of, key));
    // Seconds as whole nanoseconds.
    let nanos = |of: &Map<String, Json>, key: &str| format!("{}ns", (number(of, key) * 1e9).round());
    for (key, value) in options {
        let correlated = |of: &Map<String, Json>, words: &mut Vec<String>| {
            if number(of, "correlation") > 0.0 {
                words.push(percent(of, "correlation"));
            }
        };
        match (key.as_str(), value) {
            ("limit", Json::Number(limit)) => words.extend(["limit".to_owned(), limit.to_string()]),
            ("delay", Json::Object(of)) => {
                words.extend(["delay".to_owned(), nanos(of, "delay"), nanos(of, "jitter")]);
                correlated(of, &mut words);
            }
            ("loss-random", Json::Object(of)) => {
                words.extend(["loss", "random"].map(str::to_owned));
                words.push(percent(of, "loss"));
                correlated(of, &mut words);
            }
            ("loss-state", Json::Object(of)) => {
                words.extend(["loss", "state"].map(str::to_owned));
                words.extend(["p13", "p31", "p32", "p23", "p14"].map(|key| percent(of, key)));
            }
            ("loss-gemodel", Json::Object(of)) => {
                words.extend(["loss", "gemodel"].map(str::to_owned));
                words.extend(["p", "r", "1-h", "1-k"].map(|key| percent(of, key)));
            }
            ("duplicate" | "corrupt" | "reorder", Json::Object(of)) => {
                words.extend([key.clone(), percent(of, key)]);
                correlated(of, &mut words);
            }
            ("rate", Json::Object(of)) => {
                words.extend(["rate".to_owned(), format!("{}Bps", number(of, "rate"))]);
                words.extend(["packetoverhead", "cellsize", "celloverhead"].map(|key| number(of, key).to_string()));
            }
            ("slot", Json::Object(of)) => {
                words.push("slot".to_owned());
                if of.contains_key("distribution") {
                    // The table is not shown.
                    words.extend(["distribution", "custom"].map(str::to_owned));
                    words.extend([nanos(of, "distribution"), nanos(of, "jitter")]);
                } else {
                    words.extend([nanos(of, "min-delay"), nanos(of, "max-delay")]);
                }
                for key in ["packets", "bytes"] {
                    if number(of, key) > 0.0 {
                        words.extend([key.to_owned(), number(of, key).to_string()]);
                    }
                }
            }
            ("ecn", Json::Bool(true)) => words.push("ecn".to_owned()),
            ("ecn", Json::Bool(false)) => {}
            ("gap", Json::Number(gap)) if gap.as_u64() == Some(0) => {}
            ("gap" | "seed", Json::Number(number)) => words.extend([key.clone(), number.to_string()]),
            _ => unknown(key),
        }
    }
    words
}

/// netem's words for a direction of a link, but for its rate, and what the kernel does not have.
pub(crate) fn write(direction: &DirectionSpec) -> (Vec<String>, Vec<String>) {
    let (mut words, mut left) = (Vec::new(), Vec::new());
    let wire: &Impairments = &direction.impairments;
    if direction.delay > Span::ZERO || wire.jitter > Span::ZERO {
        let is_uniform = wire.jitter_distribution == JitterDistribution::Uniform && wire.jitter_table.is_none();
        // Uniform jitter is added here and goes to both sides there.
        let half = Span::from_nanos(wire.jitter.as_nanos() / 2);
        let (delay, jitter) = if is_uniform { (direction.delay + half, half) } else { (direction.delay, wire.jitter) };
        words.extend(["delay".to_owned(), units::show_time64(delay)]);
        if wire.jitter > Span::ZERO {
            words.push(units::show_time64(jitter));
            if wire.jitter_correlation > 0.0 {
                words.push(units::show_percent(wire.jitter_correlation));
            }
            if wire.jitter_table.is_some() {
                left.push(
                    "jitter_distribution: copy the table to /usr/lib/tc, and name it: distribution NAME".to_owned(),
                );
            } else if !is_uniform {
                words.extend(["distribution".to_owned(), wire.jitter_distribution.name().to_owned()]);
            }
            if wire.reorder == Reorder::Never {
                left.push("reorder = false: netem's jitter changes the order of packets".to_owned());
            }
        }
    }
    if let Reorder::HoldBack(hold) = wire.reorder {
        left.push(format!(
            "reorder = {{ extent = {}, probability = {:?} }}: a packet of netem overtakes all that are delayed",
            hold.extent, hold.probability
        ));
    }
    match &wire.loss {
        Loss::None => {}
        Loss::Iid(probability) => {
            words.extend(["loss", "random"].map(str::to_owned));
            words.push(units::show_percent(*probability));
        }
        Loss::GilbertElliott(chain) => {
            words.extend(["loss", "gemodel"].map(str::to_owned));
            words.extend([chain.p, chain.r, chain.bad, chain.good].map(units::show_percent));
        }
        Loss::Markov(chain) => {
            words.extend(["loss", "state"].map(str::to_owned));
            words.extend([chain.p13, chain.p31, chain.p32, chain.p23, chain.p14].map(units::show_percent));
        }
        Loss::List(packets) => left.push(format!("loss: netem cannot lose {} packets by their numbers", packets.len())),
    }
    for (name, probability) in [("duplicate", wire.duplicate), ("corrupt", wire.corrupt)] {
        if probability > 0.0 {
            words.extend([name.to_owned(), units::show_percent(probability)]);
        }
    }
    if let Some(slots) = &direction.course.slots {
        words.push("slot".to_owned());
        if slots.jitter_table.is_some() {
            left.push("slots: copy the table of the jitter to /usr/lib/tc, and name it: distribution NAME".to_owned());
        }
        if slots.jitter_distribution == JitterDistribution::Uniform {
            words.extend([slots.delay, slots.delay + slots.jitter].map(units::show_time64));
        } else {
            words.extend(["distribution".to_owned(), slots.jitter_distribution.name().to_owned()]);
            words.extend([slots.delay, slots.jitter].map(units::show_time64));
        }
        for (name, value) in [("packets", slots.packets), ("bytes", slots.bytes)] {
            value.iter().for_each(|value| words.extend([name.to_owned(), value.to_string()]));
        }
    }
    (words, left)
}

/// The words of a size table for a link's framing.
pub(crate) fn write_stab(direction: &DirectionSpec, left: &mut Vec<String>) -> Vec<String> {
    let overhead = direction.overhead;
    if overhead == Default::default() {
        return Vec::new();
    }
    let mut words = vec!["stab".to_owned(), "overhead".to_owned(), overhead.bytes.to_string()];
    if overhead.mpu > 0 {
        words.extend(["mpu".to_owned(), overhead.mpu.to_string()]);
    }
    let layer = match overhead.layer {
        LinkLayer::Atm => "atm",
        LinkLayer::Ethernet => "ethernet",
        LinkLayer::Ptm => {
            left.push("linklayer = \"ptm\": a size table knows cells of ATM".to_owned());
            "ethernet"
        }
    };
    words.extend(["linklayer".to_owned(), layer.to_owned()]);
    words
}
