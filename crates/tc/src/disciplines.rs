//! The options of qdiscs, a row each: the words of `tc`, the key of a scenario, and the unit of
//! both. Import and export read the same rows.
//!
//! # Source
//! iproute2 7.1: `tc/q_*.c` (names, units, and the options of which 0 is the default), and the
//! JSON that they print.
//!
//! # Departures
//! - `cake_mq` is `cake`.

mod rows;

use std::collections::BTreeMap;

use ackclock_aqm::QueueSpec;
use ackclock_units::parameter::{Configurable, Parameter, Setting, Value, Visitor};
use ackclock_units::{Rate, Size, Span};
use serde_json::Value as Json;

use crate::source::{ImportError, Place, Read, wrong};
use crate::tree::is_atm;
use crate::units::{self, Expected};

use self::rows::Unit::{
    Bytes, Count, Flag, LinkLayer, Millis, Names, Number, Packets, PacketsAsSize, Parts256, Percent, Rate32, Seconds,
    Selector, SizeAndCell, Time, TimeOrPackets, Without, Words,
};
pub(crate) use self::rows::{HTB_CLASS, QFQ_CLASS};
use self::rows::{MASK, Row, TABLES, Table, Unit};

/// Keys of a queue with their values in TOML, in order. Later values of a key replace earlier ones.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Keys(pub(crate) Vec<(String, String)>);

impl Keys {
    pub(crate) fn set(&mut self, key: &str, value: impl Into<String>) {
        self.remove(key);
        self.0.push((key.to_owned(), value.into()));
    }

    pub(crate) fn remove(&mut self, key: &str) -> Option<String> {
        let place = self.0.iter().position(|(known, _)| known == key)?;
        Some(self.0.remove(place).1)
    }

    pub(crate) fn get(&self, key: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == key).map(|(_, value)| value.as_str())
    }
}

fn table(name: &str) -> Option<&'static Table> {
    let name = if name == "cake_mq" { "cake" } else { name };
    TABLES.iter().find(|table| table.name == name)
}

/// Returns `true` if the rows of this qdisc are known.
pub(crate) fn is_known(name: &str) -> bool {
    table(name).is_some() && ![HTB_CLASS, QFQ_CLASS].contains(&name)
}

impl Table {
    fn row(&self, word: &str) -> Option<&'static Row> {
        let exact = self.rows.iter().find(|row| row.words.contains(&word) || is_negative(row, word));
        let short = || self.rows.iter().find(|row| !word.is_empty() && row.words[0].starts_with(word));
        exact.or_else(|| if self.is_prefix { short() } else { None })
    }
}

fn is_negative(row: &Row, word: &str) -> bool {
    matches!(row.unit, Flag(negative) if !negative.is_empty() && negative == word)
}

/// Values that depend on what is not in the options.
pub(crate) struct Context<'c> {
    pub(crate) place: &'c Place,
    /// The rate of the device, of which percentages are shares.
    pub(crate) rate: Option<Rate>,
}

/// Reads the options of a qdisc or of an HTB class to keys.
pub(crate) fn read(
    name: &str,
    options: &[String],
    context: &Context<'_>,
    report: &mut Read,
) -> Result<Keys, ImportError> {
    let mut keys = Keys::default();
    let Some(table) = table(name) else { return Ok(keys) };
    let place = context.place;
    // CAKE adds the bytes of its keywords to those before.
    let mut framing = Framing::default();
    let mut words = options.iter();
    while let Some(word) = words.next() {
        if table.name == "cake" && framing.take(word, &mut keys) {
            continue;
        }
        let Some(row) = table.row(word) else {
            let known: Vec<&str> = table.rows.iter().flat_map(|row| row.words).copied().collect();
            return Err(ImportError::at(
                place,
                format!("`{name}` has no option `{word}`"),
                format!("one of {}", known.join(", ")),
            ));
        };
        let mut value = |expected: Expected| {
            let missing = || ImportError::at(place, format!("`{word}` has no value"), expected);
            words.next().map(String::as_str).ok_or_else(missing)
        };
        match row.unit {
            Flag(negative) => keys.set(row.key, if negative == word { "false" } else { "true" }),
            Words | Names(_) => {
                let name = row.values().find(|(known, _)| known == word).map(|(_, name)| name);
                keys.set(row.key, name.unwrap_or_default());
            }
            Without(values, why) => {
                let mut what = word.clone();
                for _ in 0..values {
                    let Some(value) = words.next() else { break };
                    what = format!("{what} {value}");
                }
                let is_nothing = why.is_empty() || ["fwmark 0", "fwmark 0x0"].contains(&what.as_str());
                if !is_nothing {
                    report.leave(place, what, why);
                }
            }
            Selector => {
                const EXPECTED: Expected = "VALUE/MASK, each from 0 to 255";
                let text = value(EXPECTED)?;
                let parsed = text.split_once('/').and_then(|(selector, mask)| {
                    let byte = |text| units::unsigned(text, 0).ok().filter(|&byte| byte < 256);
                    Some((byte(selector)?, byte(mask)?))
                });
                let (selector, mask) = parsed.ok_or_else(|| wrong(place, word, text, EXPECTED))?;
                keys.set(row.key, selector.to_string());
                keys.set(MASK, mask.to_string());
            }
            unit => {
                let text = value(expected_of(unit))?;
                let is_hex = row.words[0] == "default";
                let toml = match unit {
                    Unit::Rate | Rate32 => {
                        rate(word, text, matches!(unit, Rate32), context)?.map(|rate| format!("\"{rate}\""))
                    }
                    _ => read_one(unit, text, is_hex).map_err(|expected| wrong(place, word, text, expected))?,
                };
                match toml {
                    // `tc` does not hand a zero on, or requires another value.
                    None if row.zero_is_default || table.required.contains(&row.key) => {
                        keys.remove(row.key);
                    }
                    None => keys.set(row.key, zero(unit)),
                    Some(toml) => keys.set(row.key, toml),
                }
            }
        }
    }
    let required = table.required.iter().find(|key| keys.get(key).is_none());
    match required {
        Some(key) => Err(ImportError::at(place, format!("`{name}` without `{key}`"), format!("`{key} VALUE`"))),
        None => Ok(keys),
    }
}

/// Reads a rate, or a share of the device's; `None` is zero.
pub(crate) fn rate(word: &str, text: &str, is_short: bool, context: &Context<'_>) -> Result<Option<Rate>, ImportError> {
    let refuse = |expected| wrong(context.place, word, text, expected);
    let bits = match (text.ends_with('%'), context.rate) {
        (false, _) => text.to_owned(),
        // `tc` prints the share with six digits, and reads it again.
        (true, Some(rate)) => format!("{:.6}", units::percent(text).map_err(refuse)? * rate.as_bps() as f64),
        (true, None) => return Err(refuse("a rate, or `--rate` with that of the device")),
    };
    let bytes = if is_short { units::rate32(&bits) } else { units::rate(&bits) }.map_err(refuse)?;
    match units::rate_of(bytes) {
        _ if bytes == 0 => Ok(None),
        None => Err(refuse("a rate of at most 1000 tbit")),
        rate => Ok(rate),
    }
}

/// The bytes that keywords of CAKE add.
#[derive(Debug, Default)]
struct Framing {
    /// A keyword, or a number, was there before.
    has_any: bool,
    overhead: i64,
}

impl Framing {
    /// The keywords, each with its bytes, its least length and its link layer.
    const KEYWORDS: &[(&str, i64, Option<u32>, Option<&str>)] = &[
        ("ipoa-vcmux", 8, None, Some("atm")),
        ("ipoa-llcsnap", 16, None, Some("atm")),
        ("bridged-vcmux", 24, None, Some("atm")),
        ("bridged-llcsnap", 32, None, Some("atm")),
        ("pppoa-vcmux", 10, None, Some("atm")),
        ("pppoa-llc", 14, None, Some("atm")),
        ("pppoe-vcmux", 32, None, Some("atm")),
        ("pppoe-llcsnap", 40, None, Some("atm")),
        ("pppoe-ptm", 30, None, Some("ptm")),
        ("bridged-ptm", 22, None, Some("ptm")),
        ("ethernet", 38, Some(84), None),
        ("ether-vlan", 4, None, None),
        ("docsis", 18, Some(64), Some("noatm")),
    ];

    /// Takes a keyword that does not stand alone; the others are rows.
    fn take(&mut self, word: &str, keys: &mut Keys) -> bool {
        match word {
            "raw" => {
                *self = Framing { has_any: true, overhead: 0 };
                for key in ["framing", "overhead"] {
                    keys.remove(key);
                }
                keys.set("atm", "\"noatm\"");
                return true;
            }
            "conservative" => {
                // It replaces what was there.
                *self = Framing { has_any: true, overhead: 48 };
                for key in ["framing", "overhead", "atm"] {
                    keys.remove(key);
                }
                return false;
            }
            _ => {}
        }
        let Some(&(_, bytes, mpu, layer)) = Framing::KEYWORDS.iter().find(|(known, ..)| *known == word) else {
            self.has_any |= ["overhead", "atm", "ptm", "noatm", "mpu"].contains(&word);
            return false;
        };
        if !self.has_any && word != "ether-vlan" {
            *self = Framing { has_any: true, overhead: bytes };
            return false;
        }
        // A number that was given after the last keyword counts.
        if let Some(given) = keys.get("overhead").and_then(|text| text.parse::<f64>().ok()) {
            self.overhead = given as i64;
        }
        let before = keys.remove("framing");
        let known = before.as_deref().map(|text| text.trim_matches('"').to_owned());
        let before = known.and_then(|known| Framing::KEYWORDS.iter().find(|(word, ..)| *word == known));
        if let Some(&(_, _, mpu, layer)) = before {
            if let (Some(mpu), None) = (mpu, keys.get("mpu")) {
                keys.set("mpu", format!("\"{mpu}B\""));
            }
            if let (Some(layer), None) = (layer, keys.get("atm")) {
                keys.set("atm", format!("\"{layer}\""));
            }
        } else if self.overhead == 48 && keys.get("atm").is_none() {
            // `conservative` is cells of ATM.
            keys.set("atm", "\"atm\"");
        }
        self.has_any = true;
        self.overhead += bytes;
        keys.set("overhead", format!("{}.0", self.overhead));
        mpu.iter().for_each(|mpu| keys.set("mpu", format!("\"{mpu}B\"")));
        layer.iter().for_each(|layer| keys.set("atm", format!("\"{layer}\"")));
        true
    }
}

fn expected_of(unit: Unit) -> Expected {
    match unit {
        Unit::Size | SizeAndCell | PacketsAsSize => units::A_SIZE,
        Time => units::A_TIME,
        Unit::Rate | Rate32 => units::A_RATE,
        Number | Parts256 => "a number",
        Percent => units::A_PERCENT,
        LinkLayer => "ethernet, atm or adsl",
        TimeOrPackets => "a time such as 1ms, or packets such as 5p",
        _ => units::A_NUMBER,
    }
}

/// A value in TOML; `None` is zero.
fn read_one(unit: Unit, text: &str, is_hex: bool) -> Result<Option<String>, Expected> {
    let packets = |count: u64| Some(format!("\"{count}p\"")).filter(|_| count > 0);
    let bytes = |count: u64| Some(format!("\"{count}B\"")).filter(|_| count > 0);
    let time = |span: Span| Some(format!("\"{span}\"")).filter(|_| span > Span::ZERO);
    let whole = |text: &str| units::unsigned(text, if is_hex { 16 } else { 0 });
    Ok(match unit {
        Packets => packets(whole(text)?),
        PacketsAsSize => packets(units::size32(text)?),
        Unit::Size => bytes(units::size32(text)?),
        SizeAndCell => bytes(units::size_and_cell(text)?),
        Bytes => bytes(whole(text)?),
        Count => Some(whole(text)?.to_string()).filter(|text| text != "0"),
        Time => time(units::time(text)?),
        Millis => time(Span::from_millis(whole(text)?)),
        Seconds => time(Span::from_secs(whole(text)?)),
        Number => match units::number(text) {
            Some((value, "")) => Some(format!("{value:?}")),
            _ => return Err("a number"),
        },
        Parts256 => match units::number(text) {
            Some((value, "")) if (0.0..=256.0).contains(&value) => {
                Some(format!("{:?}", f64::from((value as f32 * 256.0) as u32) / 256.0))
            }
            _ => return Err("a number from 0 to 256"),
        },
        Percent => Some(format!("{}", (units::percent(text)? * 100.0).round())).filter(|text| text != "0"),
        LinkLayer => Some(if is_atm(text)? { "\"atm\"" } else { "\"ethernet\"" }.to_owned()),
        TimeOrPackets => {
            let number = text.trim_end_matches(|c: char| c.is_ascii_alphabetic());
            match &text[number.len()..] {
                "p" | "pkt" | "pkts" | "packet" | "packets" => packets(units::unsigned(number, 10)?),
                _ => time(units::time(text).map_err(|_| "a time such as 1ms, or packets such as 5p")?),
            }
        }
        Flag(_) | Words | Names(_) | Selector | Without(..) | Unit::Rate | Rate32 => None,
    })
}

/// Zero in TOML.
fn zero(unit: Unit) -> &'static str {
    match unit {
        Packets | PacketsAsSize => "\"0p\"",
        Unit::Size | SizeAndCell | Bytes => "\"0B\"",
        Time | Millis | Seconds | TimeOrPackets => "\"0s\"",
        Unit::Rate | Rate32 => "false",
        _ => "0",
    }
}

/// The words for what `tc -j` prints of a qdisc or an HTB class; names that it does not know are
/// handed to `unknown`.
pub(crate) fn from_json(
    name: &str,
    options: &serde_json::Map<String, Json>,
    mut unknown: impl FnMut(&str),
) -> Vec<String> {
    let Some(table) = table(name) else { return Vec::new() };
    let mut words = Vec::new();
    for (key, value) in options {
        if table.name == "dualpi2" && key == "step-thresh-pkts" {
            words.extend(["step_thresh".to_owned(), format!("{value}pkt")]);
            continue;
        }
        if table.name == "fq_codel" && key == MASK {
            continue;
        }
        let Some(row) = table.rows.iter().find(|row| row.json == key.trim()) else {
            unknown(key);
            continue;
        };
        let word = row.words[0];
        match (row.unit, value) {
            (Flag(_), Json::Bool(true)) => words.push(word.to_owned()),
            (Flag(negative), Json::Bool(false)) if !negative.is_empty() => words.push(negative.to_owned()),
            (Flag(_) | Without(0, _), Json::Bool(false)) => {}
            (Without(0, _), Json::Bool(true) | Json::Null) => words.push(word.to_owned()),
            (Words | Names(_), Json::String(text)) => match named(row, text) {
                Some(word) => words.push(word.to_owned()),
                None => unknown(key),
            },
            (Unit::Rate | Rate32, Json::String(text)) if text == "unlimited" => words.push("unlimited".to_owned()),
            (Unit::Rate | Rate32, Json::Number(rate)) => words.extend([word.to_owned(), format!("{rate}Bps")]),
            (Time | TimeOrPackets, Json::Number(micros)) => words.extend([word.to_owned(), format!("{micros}us")]),
            (Millis, Json::Number(micros)) => {
                let millis = micros.as_u64().unwrap_or(0) / 1000;
                words.extend([word.to_owned(), millis.to_string()]);
            }
            (Selector, Json::Number(selector)) => {
                let mask = options.get(MASK).and_then(Json::as_u64).unwrap_or(0);
                words.extend([word.to_owned(), format!("{selector}/{mask}")]);
            }
            (Without(1.., _), _) => {
                let is_none = value == &Json::from(0) || [Some("0"), Some("0x0")].contains(&value.as_str());
                if !is_none {
                    unknown(key);
                }
            }
            (_, Json::Number(number)) => words.extend([word.to_owned(), number.to_string()]),
            // `default` of HTB is a string in hexadecimal.
            (_, Json::String(text)) => words.extend([word.to_owned(), text.clone()]),
            _ => unknown(key),
        }
    }
    words
}

/// The word of a value that JSON calls by another name.
fn named(row: &Row, text: &str) -> Option<&'static str> {
    let other = match text {
        "disabled" => "no-ack-filter",
        "drop" => "drop_on_overload",
        "drop-enqueue" => "drop_enqueue",
        "drop-dequeue" => "drop_dequeue",
        "any-ect" => "any_ect",
        "l4s-ect" => "l4s_ect",
        text => text,
    };
    let name = row.values().find(|(word, name)| *word == other || name.trim_matches('"') == other);
    name.map(|(word, _)| word)
}

/// The parameters of a configuration by name, in tables with the name of the table and a dot.
#[derive(Clone, Debug, Default)]
pub(crate) struct Parameters(BTreeMap<String, Value>, String);

impl Parameters {
    pub(crate) fn of(config: &mut impl Configurable) -> Parameters {
        let mut parameters = Parameters::default();
        config.parameters(&mut parameters);
        parameters
    }
}

impl Visitor for Parameters {
    fn visit<T: Setting>(&mut self, parameter: Parameter, at: &mut T) {
        self.0.insert(format!("{}{}", self.1, parameter.name), at.value());
    }

    fn feature<T: Configurable + Default>(&mut self, name: &'static str, _: &'static str, at: &mut Option<T>) {
        self.0.insert(format!("{}{name}", self.1), Value::Flag(at.is_some()));
        if let Some(on) = at {
            let inside = format!("{}{name}.", self.1);
            let outside = std::mem::replace(&mut self.1, inside);
            on.parameters(self);
            self.1 = outside;
        }
    }
}

/// The options of a qdisc, and what the kernel does not have of it, in a line each.
pub(crate) fn write(queue: &QueueSpec) -> (Vec<String>, Vec<String>) {
    let name = queue.name();
    let mut parameters = Parameters::of(&mut queue.clone());
    let defaults = QueueSpec::by_name(name).map(|mut queue| Parameters::of(&mut queue)).unwrap_or_default();
    let (mut words, mut left) = (Vec::new(), Vec::new());
    let table = table(name);
    for row in table.map_or(&[][..], |table| table.rows) {
        let Some(&value) = parameters.0.get(row.key) else { continue };
        let is_required = table.is_some_and(|table| table.required.contains(&row.key));
        let default = defaults.0.get(row.key);
        let is_masked = matches!(row.unit, Selector) && parameters.0.get(MASK) != defaults.0.get(MASK);
        if default == Some(&value) && !is_required && !is_masked {
            continue;
        }
        // A value of one row of several for a key.
        let Some(shown) = write_one(row, value, &parameters) else { continue };
        words.extend(shown.0);
        left.extend(shown.1.map(|why| format!("{}: {why}", row.key)));
        parameters.0.remove(row.key);
        if matches!(row.unit, Selector) {
            parameters.0.remove(MASK);
        }
    }
    // `tc` has no defaults for these.
    if name == "tbf" && !words.iter().any(|word| word == "limit" || word == "latency") {
        words.extend(["latency", "70ms"].map(str::to_owned));
    }
    if words.iter().any(|word| word == "peakrate") && !words.iter().any(|word| word == "minburst") {
        words.extend(["minburst", "1540"].map(str::to_owned));
    }
    for (key, value) in &parameters.0 {
        // A feature that is on, whose parameters have rows.
        let inside = format!("{key}.");
        let is_known = table.is_some_and(|table| table.rows.iter().any(|row| row.key.starts_with(&inside)));
        let is_default = defaults.0.get(key) == Some(value) || is_default_of_feature(name, key, *value);
        let is_written = is_default || is_known && *value == Value::Flag(true);
        if !is_written {
            left.push(format!("{key} = {}: `{name}` of the kernel has no such option", shown(*value)));
        }
    }
    (words, left)
}

/// Returns `true` if this is the value that a parameter of a feature has by itself.
fn is_default_of_feature(name: &str, key: &str, value: Value) -> bool {
    let mut default = match (name, key.split_once('.').map_or("", |(feature, _)| feature)) {
        ("red", "adaptive") => Parameters::of(&mut ackclock_aqm::RedAdaptive::default()),
        ("red", "floyd") => Parameters::of(&mut ackclock_aqm::RedFloyd::default()),
        ("sfq", "flow_red") => Parameters::of(&mut ackclock_aqm::SfqRed::default()),
        _ => return false,
    };
    key.split_once('.').and_then(|(_, key)| default.0.remove(key)) == Some(value)
}

/// The words of a value, and what is lost; `None` if another row has it.
fn write_one(row: &Row, value: Value, all: &Parameters) -> Option<(Vec<String>, Option<String>)> {
    let word = row.words[0].to_owned();
    let pair = |text: String| Some((vec![word.clone(), text], None));
    match (row.unit, value) {
        (Words | Names(_), value) => {
            let name = match value {
                Value::Name(name) => format!("\"{name}\""),
                Value::Flag(flag) => flag.to_string(),
                Value::Off => "false".to_owned(),
                _ => return None,
            };
            let (word, _) = row.values().find(|(_, known)| *known == name)?;
            Some((vec![word.to_owned()], None))
        }
        (_, Value::Off) => None,
        (Flag(_), Value::Flag(true)) => Some((vec![word], None)),
        (Flag(negative), Value::Flag(false)) => {
            Some((Some(negative).filter(|word| !word.is_empty()).map(str::to_owned).into_iter().collect(), None))
        }
        // The estimator of Linux; another one is none of the kernel's.
        (Flag(_), Value::Name(name)) => {
            let why = (name != "linux").then(|| format!("the kernel's is in place of \"{name}\""));
            Some((vec![word], why))
        }
        (Selector, Value::Whole(selector)) => {
            let mask = match all.0.get(MASK) {
                Some(Value::Whole(mask)) => *mask,
                _ => 0,
            };
            pair(format!("{selector}/{mask}"))
        }
        (Time, Value::Time(time)) | (TimeOrPackets, Value::Time(time)) => {
            let why = (time.as_nanos() % 1000 != 0).then(|| format!("`tc` cuts {time} to microseconds"));
            Some((vec![word, units::show_time(time)], why))
        }
        (Millis, Value::Time(time)) => {
            let why = (time.as_nanos() % 1_000_000 != 0).then(|| format!("`tc` cuts {time} to milliseconds"));
            Some((vec![word, (time.as_nanos() / 1_000_000).to_string()], why))
        }
        (Seconds, Value::Time(time)) => {
            let why = (time.as_nanos() % 1_000_000_000 != 0).then(|| format!("`tc` cuts {time} to seconds"));
            Some((vec![word, (time.as_nanos() / 1_000_000_000).to_string()], why))
        }
        (Unit::Rate | Rate32, Value::Rate(rate)) => {
            let why = (rate.as_bps() % 8 != 0).then(|| format!("`tc` cuts {rate} to bytes per second"));
            Some((vec![word, units::show_rate(rate)], why))
        }
        (TimeOrPackets, Value::Size(Size::Packets(packets))) => pair(format!("{packets}p")),
        (Percent, Value::Whole(percent)) => pair(format!("{percent}%")),
        (Number, Value::Number(number)) if row.words[0] == "overhead" => {
            let why = (number.fract() != 0.0).then(|| "`tc` counts whole bytes".to_owned());
            Some((vec![word, (number as i64).to_string()], why))
        }
        (Parts256, Value::Number(number)) => {
            let why = ((number * 256.0).fract() != 0.0).then(|| "`tc` counts parts of 256".to_owned());
            Some((vec![word, number.to_string()], why))
        }
        (Time, Value::Name(_)) => None,
        (_, Value::Whole(number)) if row.zero_is_default && number == 0 => {
            Some((Vec::new(), Some("0 is the default for `tc`".to_owned())))
        }
        (_, Value::Whole(number)) => pair(number.to_string()),
        (_, Value::Number(number)) => pair(number.to_string()),
        (_, Value::Size(Size::Bytes(size) | Size::Packets(size))) => pair(size.to_string()),
        (LinkLayer, Value::Name("ptm")) => {
            Some((Vec::new(), Some("`tc` knows cells of ATM, not those of PTM".to_owned())))
        }
        (_, Value::Name(name)) => pair(name.to_owned()),
        _ => None,
    }
}

/// A value as it is in a scenario.
pub(crate) fn shown(value: Value) -> String {
    match value {
        Value::Off => "false".to_owned(),
        Value::Flag(flag) => flag.to_string(),
        Value::Whole(number) => number.to_string(),
        Value::Number(number) => format!("{number:?}"),
        Value::Time(time) => format!("\"{time}\""),
        Value::Rate(rate) => format!("\"{rate}\""),
        Value::Size(Size::Bytes(size)) => format!("\"{size}B\""),
        Value::Size(Size::Packets(size)) => format!("\"{size}p\""),
        Value::Name(name) => format!("\"{name}\""),
    }
}
