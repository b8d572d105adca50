//! Draws scenarios: a skeleton of links, paths and flows, and on it whatever keys the parser asks
//! for.

use std::collections::BTreeSet;

use ackclock_cc::CcSpec;
use ackclock_scenario::{Domain, Scenario};
use ackclock_units::Random;

use crate::physics::document::{Document, Value};

/// No more flows than this in a run.
const MAX_FLOWS: usize = 24;

/// The shortest run, ns: a flow of a few round trips.
const SHORTEST: u64 = 200_000_000;

/// Keys with a structure of their own, by the last part of their path, and keys of text in a form
/// of its own: what a skeleton says of them, or why it does not. A key that is none of these and
/// has such a domain fails the test.
pub(crate) const BY_SKELETON: &[&str] = &[
    "schema",
    "links",
    "flows",
    "hosts",
    "paths",
    "id",
    "path",
    "from",
    "to",
    "schedule",
    "between",
    "address",
    "tun",
    // The names of stacks in a program: crates/scenario/tests/it/own.rs.
    "hosts.stack",
    "netns",
    "packets",
    "weights",
    "routes",
    "nat",
    "interface",
    "subflows",
    // Keys of a trace or a table: no file is drawn.
    "file",
    "commands",
    "host",
    "run",
    // Names of one's own.
    "env",
    "port",
    "source_port",
    "data",
    // A file of its own: crates/scenario/tests/it/course.rs.
    "trace",
    // The flow of probes: crates/scenario/tests/it/autorate.rs.
    "autorate",
    // In runs of its own: crates/scenario/tests/it/workloads.rs.
    "workloads",
    // Likewise: crates/scenario/tests/it/topology.rs.
    "topology",
    // The names of links and flows: crates/cli/tests/it/pcap.rs.
    "record.pcap",
    // The names of links and flows, and `receiver`: crates/scenario/tests/it/reordering.rs.
    "record.reordering",
    // The names of classes.
    "classes",
    "stages",
    "parent",
    "queue.default",
    // Two and two belong together.
    "m1",
    "d",
    "umax",
    "dmax",
    // Keys about a file's runs, not of a run.
    "title",
    "sweep",
    "expect",
    "record.queue",
    // Hosts outside: not on the virtual clock.
    "replay",
    "address6",
];

/// Draws from a stream of random bits.
pub(crate) struct Draw(pub Random);

impl Draw {
    pub(crate) fn new(seed: u64) -> Draw {
        Draw(Random::for_component(seed, 0, "scenario"))
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.0.below(bound)
    }

    pub(crate) fn chance(&mut self, p: f64) -> bool {
        self.0.chance(p)
    }

    pub(crate) fn of<'a, T>(&mut self, items: &'a [T]) -> &'a T {
        &items[self.below(items.len() as u64) as usize]
    }

    /// From `low` to `high`, each order of magnitude as likely as another.
    fn wide(&mut self, low: u64, high: u64) -> u64 {
        let bits = |value: u64| 64 - u64::from(value.leading_zeros());
        let most = bits(low) + self.below(bits(high) - bits(low) + 1);
        let value = self.0.bits() >> 1 >> (63 - most.min(63));
        value.clamp(low, high)
    }

    /// A time in nanoseconds: of network and TCP, or of no network at all.
    fn time(&mut self) -> u64 {
        match self.below(20) {
            0 => *self.of(&[0, 1, 2, 999, 1_000_000_000_000]),
            1 => self.wide(1, 10_000_000_000),
            _ => self.wide(10_000, 60_000_000),
        }
    }

    /// A rate in bit/s.
    fn rate(&mut self) -> u64 {
        match self.below(20) {
            0 => *self.of(&[1_000, 529_000_000_000, 1_000_000_000_000]),
            1 => self.wide(1_000, 100_000_000_000),
            _ => self.wide(100_000, 100_000_000),
        }
    }

    fn whole(&mut self, low: u64, high: u64, near: Option<u64>) -> u64 {
        match (self.below(12), near) {
            (0, _) => *self.of(&[low, high]),
            (1, _) | (_, None | Some(0)) => self.wide(low, high.min(low.saturating_add(1 << 16))),
            (_, Some(near)) => self.wide((near / 8).clamp(low, high), near.saturating_mul(8).clamp(low, high)),
        }
    }

    fn number(&mut self, low: f64, high: f64, near: Option<f64>) -> f64 {
        let near = near.filter(|&near| near > 0.0);
        let value = match (self.below(10), near) {
            (0, _) => *self.of(&[low, high]),
            (1, _) => low + (high - low) * self.0.unit(),
            (2..=4, _) | (_, None) => self.wide(1, 1 << 20) as f64 / f64::from(1 << 22),
            (_, Some(near)) => near * (0.25 + 2.0 * self.0.unit()),
        };
        value.clamp(low, high)
    }

    /// A value of this domain as TOML; `None` where only a skeleton has one.
    pub(crate) fn value(&mut self, domain: &Domain, default: Option<&str>) -> Option<Value> {
        let digits = || default?.trim_matches(|c: char| !c.is_ascii_digit()).parse().ok();
        let text = match domain {
            Domain::Flag => self.chance(0.5).to_string(),
            Domain::Time { positive } => {
                let default = default.and_then(|text| text.trim_matches('"').parse_span());
                let time = match default.filter(|&near| near > 0) {
                    Some(near) if self.chance(0.5) => self.wide((near / 4).max(1), near.saturating_mul(4)),
                    _ => self.time(),
                };
                format!("\"{}ns\"", time.max(u64::from(*positive)))
            }
            Domain::Rate => format!("\"{}bit\"", self.rate()),
            Domain::Bytes(low, high) => {
                let near = default.and_then(bytes);
                format!("\"{}B\"", self.whole(*low, *high, near))
            }
            Domain::Packets(low, high) => format!("\"{}p\"", self.whole(*low, *high, digits())),
            Domain::Whole(low, high) => self.whole(*low, (*high).min(i64::MAX as u64), digits()).to_string(),
            Domain::PowerOfTwo(high) => (1u64 << self.below(u64::from(high.ilog2()) + 1)).to_string(),
            Domain::Number(low, high) => {
                let near = default.and_then(|text| text.parse().ok());
                format!("{:?}", self.number(*low, *high, near))
            }
            Domain::Name(names) => format!("\"{}\"", self.of(names)),
            Domain::Off => "false".to_owned(),
            Domain::Kind(_) | Domain::Table => return Some(Value::Table),
            Domain::Text(_) | Domain::List(_) | Domain::Structure => return None,
            Domain::Either(domains) => {
                let domain = self.of(domains).clone();
                return self.value(&domain, default);
            }
        };
        Some(Value::Text(text))
    }

    /// A number of packets to lose, weights and the like: lists that stand behind one key.
    fn list(&mut self, path: &str) -> Option<String> {
        let numbers = |draw: &mut Draw, count: u64, most: u64| {
            let numbers: Vec<String> = (0..count).map(|_| (1 + draw.below(most)).to_string()).collect();
            format!("[{}]", numbers.join(", "))
        };
        match path.rsplit('.').next()? {
            "packets" => {
                let count = self.below(6);
                Some(numbers(self, count, 200))
            }
            "weights" => Some(numbers(self, 2, 8)),
            _ => None,
        }
    }
}

/// Reads a span as `--show-config` writes it.
trait ParseSpan {
    fn parse_span(&self) -> Option<u64>;
}

impl ParseSpan for str {
    fn parse_span(&self) -> Option<u64> {
        ackclock_units::parse_span(self).ok().map(ackclock_units::Span::as_nanos)
    }
}

fn bytes(text: &str) -> Option<u64> {
    match ackclock_units::parse_size(text.trim_matches('"')).ok()? {
        ackclock_units::Size::Bytes(bytes) => Some(bytes),
        ackclock_units::Size::Packets(_) => None,
    }
}

/// Returns `true` if a text is a scenario of a size that can be run here, with every flow.
pub(crate) fn is_good(text: &str) -> bool {
    let Ok(scenario) = Scenario::parse("drawn", text.as_bytes(), &[]) else { return false };
    let flows = scenario.spec(0).flows;
    (1..=MAX_FLOWS).contains(&flows.len())
}

pub(crate) fn scenario(seed: u64) -> Document {
    let mut draw = Draw::new(seed);
    loop {
        let mut document = if draw.chance(0.1) { between_hosts(&mut draw) } else { over_paths(&mut draw) };
        // Two ends of a path that takes no time are refused.
        if is_good(&document.text()) {
            fill(&mut document, &mut draw);
            return document;
        }
    }
}

fn root(draw: &mut Draw) -> Document {
    let mut document = Document::default();
    document.add("", "");
    document.put("schema", "1");
    document.add("run", "[run]");
    let duration = draw.wide(SHORTEST, 4_000_000_000);
    document.put("run.duration", format!("\"{duration}ns\""));
    document
}

/// Links with what they cannot be without: rates, and delays, of which most networks have some.
fn links(document: &mut Document, draw: &mut Draw) -> Vec<&'static str> {
    let names = ["a", "b", "c"];
    let count = 1 + draw.below(3) as usize;
    for name in &names[..count] {
        let path = format!("links.{name}");
        document.add(&path, format!("[{path}]"));
        let rate = if draw.chance(0.06) { "unlimited".to_owned() } else { format!("{}bit", draw.rate()) };
        document.put(&format!("{path}.rate"), format!("\"{rate}\""));
        if draw.chance(0.8) {
            document.put(&format!("{path}.delay"), format!("\"{}ns\"", draw.time()));
        }
        if draw.chance(0.08) {
            tree(document, &path, draw);
        } else if draw.chance(0.5) {
            document.put(&format!("{path}.queue.limit"), format!("\"{}p\"", draw.wide(2, 200)));
        }
        if draw.chance(0.15) {
            schedule(document, &path, draw);
        }
    }
    names[..count].to_vec()
}

/// A tree of two classes, of which the second has what the first one's filter does not know.
fn tree(document: &mut Document, link: &str, draw: &mut Draw) {
    let queue = format!("{link}.queue");
    let mut put = |key: &str, value: &str| document.put(&format!("{queue}.{key}"), value);
    let (kind, rate) = *draw.of(&[("htb", "rate"), ("hfsc", "ls.m2"), ("qfq", "weight")]);
    put("kind", &format!("\"{kind}\""));
    let part = |draw: &mut Draw| match kind {
        "qfq" => draw.wide(1, 1024).to_string(),
        _ => format!("\"{}bit\"", draw.rate()),
    };
    if kind != "qfq" {
        put(&format!("classes.top.{rate}"), &part(draw));
    }
    for (class, filter) in [("first", draw.of(&["acks", "min_length"])), ("rest", &"")] {
        if kind == "qfq" {
            put(&format!("classes.{class}.maxpkt"), &format!("\"{}B\"", draw.wide(512, 1 << 16)));
        } else {
            put(&format!("classes.{class}.parent"), "\"top\"");
        }
        put(&format!("classes.{class}.{rate}"), &part(draw));
        if kind == "hfsc" && draw.chance(0.5) {
            let curve = draw.of(&["rt", "ls", "ul"]);
            put(&format!("classes.{class}.{curve}.m2"), &format!("\"{}bit\"", draw.rate()));
            let (slope, value, time) = match draw.below(2) {
                0 => ("m1", format!("{}bit", draw.rate()), "d"),
                _ => ("umax", format!("{}B", draw.wide(1, 10_000)), "dmax"),
            };
            put(&format!("classes.{class}.{curve}.{slope}"), &format!("\"{value}\""));
            put(&format!("classes.{class}.{curve}.{time}"), &format!("\"{}ns\"", draw.time().max(1)));
        }
        match *filter {
            "acks" => put("classes.first.acks", "true"),
            "min_length" => put("classes.first.min_length", "\"500B\""),
            _ => put("default", "\"rest\""),
        }
    }
}

/// Changes of a link, each behind the end of the one before it.
fn schedule(document: &mut Document, link: &str, draw: &mut Draw) {
    let mut at = 0;
    for _ in 0..1 + draw.below(5) {
        let change = document.push(&format!("{link}.schedule"));
        let mut put = |key: &str, value: String| document.put(&format!("{change}.{key}"), value);
        at += draw.wide(1, SHORTEST / 2);
        put("at", format!("\"{at}ns\""));
        match draw.below(8) {
            0 => put("rate", format!("\"{}bit\"", draw.rate())),
            1 => put("loss", format!("{:?}", draw.0.unit() / 10.0)),
            2 => put("up", "true".to_owned()),
            3 => {
                put("up", "false".to_owned());
                let up = document.push(&format!("{link}.schedule"));
                at += draw.wide(1, SHORTEST / 2);
                document.put(&format!("{up}.at"), format!("\"{at}ns\""));
                document.put(&format!("{up}.up"), "true");
            }
            4 => put("queue.limit", format!("\"{}p\"", draw.wide(2, 200))),
            5 => put("jitter", format!("\"{}ns\"", draw.time())),
            6 => {
                put("queue.kind", format!("\"{}\"", draw.of(&["pfifo", "codel", "fq_codel", "pie", "cobalt"])));
                put("queue.limit", format!("\"{}p\"", draw.wide(2, 200)));
            }
            _ => {
                put("delay", format!("\"{}ns\"", draw.time()));
                at += draw.wide(1, SHORTEST / 2);
                put("until", format!("\"{at}ns\""));
            }
        }
    }
}

/// Some of the links in any order.
fn path(links: &[&str], draw: &mut Draw) -> String {
    let mut left = links.to_vec();
    let count = 1 + draw.below(left.len() as u64);
    let chosen: Vec<String> =
        (0..count).map(|_| format!("\"{}\"", left.swap_remove(draw.below(left.len() as u64) as usize))).collect();
    format!("[{}]", chosen.join(", "))
}

fn over_paths(draw: &mut Draw) -> Document {
    let mut document = root(draw);
    let names = links(&mut document, draw);
    for flow in 0..1 + draw.below(3) {
        let at = document.push("flows");
        document.put(&format!("{at}.id"), format!("\"f{flow}\""));
        if draw.chance(0.1) {
            let paths = format!("[{}, {}]", path(&names, draw), path(&names, draw));
            document.put(&format!("{at}.paths"), paths);
        } else {
            document.put(&format!("{at}.path"), path(&names, draw));
        }
        let datagrams = draw.chance(0.15);
        if datagrams {
            document.put(&format!("{at}.transport"), "\"udp\"");
        } else if draw.chance(0.4) {
            document.put(&format!("{at}.bytes"), format!("\"{}B\"", draw.wide(1, 4_000_000)));
        }
        if !datagrams && draw.chance(0.1) {
            change(&mut document, &at, draw);
        }
        if !datagrams && draw.chance(0.15) {
            engine_of_bsd(&mut document, &at, draw);
        }
    }
    document
}

/// A loss detector that few other keys go with: by itself it would hardly be drawn.
fn engine_of_bsd(document: &mut Document, flow: &str, draw: &mut Draw) {
    let kind = *draw.of(&["freebsd-9", "tahoe", "reno"]);
    document.put(&format!("{flow}.loss_detector.kind"), format!("\"{kind}\""));
    for key in ["prr", "undo", "frto", "tlp"] {
        document.put(&format!("{flow}.{key}"), "false");
    }
}

/// A controller that takes over later.
fn change(document: &mut Document, flow: &str, draw: &mut Draw) {
    let change = document.push(&format!("{flow}.schedule"));
    document.put(&format!("{change}.at"), format!("\"{}ns\"", draw.wide(1_000, SHORTEST - 1)));
    document.put(&format!("{change}.cc.kind"), format!("\"{}\"", draw.of(CcSpec::NAMES)));
}

/// Hosts, two of them behind devices, for which endpoints stand in on the virtual clock.
fn between_hosts(draw: &mut Draw) -> Document {
    let mut document = root(draw);
    document.put("run.clock", "\"virtual\"");
    let names = links(&mut document, draw);
    for (number, host) in ["l", "r", "o"].iter().enumerate() {
        let path = format!("hosts.{host}");
        document.add(&path, format!("[{path}]"));
        document.put(&format!("{path}.address"), format!("\"10.0.{number}.1/24\""));
        if *host != "o" {
            document.put(&format!("{path}.tun"), format!("\"ack{number}\""));
            document.put(&format!("{path}.netns"), format!("\"n{number}\""));
        }
    }
    for between in ["[\"l\", \"r\"]", "[\"l\", \"o\"]", "[\"o\", \"r\"]"] {
        let at = document.push("paths");
        document.put(&format!("{at}.between"), between);
        document.put(&format!("{at}.path"), path(&names, draw));
    }
    for flow in 0..1 + draw.below(3) {
        let at = document.push("flows");
        let (from, to) = *draw.of(&[("l", "r"), ("r", "l"), ("l", "o"), ("o", "l"), ("o", "r")]);
        document.put(&format!("{at}.id"), format!("\"f{flow}\""));
        document.put(&format!("{at}.from"), format!("\"{from}\""));
        document.put(&format!("{at}.to"), format!("\"{to}\""));
        document.put(&format!("{at}.port"), (5000 + flow).to_string());
        document.put(&format!("{at}.source_port"), (6000 + 1000 * flow).to_string());
    }
    if draw.chance(0.3) {
        let at = document.push("commands");
        document.put(&format!("{at}.host"), "\"l\"");
        document.put(&format!("{at}.run"), "\"true\"");
        if draw.chance(0.5) {
            document.put(&format!("{at}.env.WORD"), "\"a b\"");
        }
    }
    document
}

/// Sets keys that the parser asks for, some of them, until it asks for no more. A key that does not
/// fit the rest is left out.
fn fill(document: &mut Document, draw: &mut Draw) {
    let share: f64 = *draw.of(&[0.01, 0.03, 0.08, 0.2, 0.5]);
    let mut seen = BTreeSet::new();
    for _round in 0..8 {
        let open: Vec<_> =
            Scenario::keys(&document.text()).into_iter().filter(|key| seen.insert(key.path.clone())).collect();
        if open.is_empty() {
            break;
        }
        let mut settings = Vec::new();
        for key in open.iter().filter(|key| document.get(&key.path).is_none()) {
            let kind = format!("{}.kind", key.path);
            let share = match &key.domain {
                _ if key.required => 1.0,
                // The kind is a key of its own, but where a way back leaves it out.
                Domain::Kind(_) if open.iter().any(|key| key.path == kind) => 0.0,
                Domain::Name(_) => (3.0 * share).clamp(0.15, 1.0),
                Domain::Table => share / 2.0,
                _ => share,
            };
            if !draw.chance(share) {
                continue;
            }
            if let Domain::Kind(names) = &key.domain {
                settings.push((kind, Value::Text(format!("\"{}\"", draw.of(names)))));
                continue;
            }
            let listed = draw.list(&key.path).map(Value::Text);
            let value = listed.or_else(|| draw.value(&key.domain, key.default.as_deref()));
            settings.extend(value.map(|value| (key.path.clone(), value)));
        }
        apply(document, &settings);
    }
}

/// Sets all of these keys, or those of each half that fit. A kind may need a key of its own: it is
/// judged with it.
fn apply(document: &mut Document, settings: &[(String, Value)]) {
    let mut all = document.clone();
    settings.iter().for_each(|(path, value)| all.set(path, value.clone()));
    if let [(path, _)] = settings {
        let below = |key: &str| path.strip_suffix(".kind").is_some_and(|table| key.starts_with(table));
        let keys = Scenario::keys(&all.text());
        for key in keys.iter().filter(|key| key.required && below(&key.path)) {
            if all.get(&key.path).is_some() {
                continue;
            }
            let list = if key.path.ends_with("packets") { "[3, 4, 9]" } else { "[2, 1]" };
            all.put(&key.path, if key.domain == Domain::Structure { list } else { "0.02" });
        }
    }
    if is_good(&all.text()) {
        *document = all;
    } else if settings.len() > 1 {
        let (first, second) = settings.split_at(settings.len() / 2);
        apply(document, first);
        apply(document, second);
    }
}
