//! LibreQoS' `network.json` and `ShapedDevices.csv`, as the tree of HTB and CAKE that it sets up.
//!
//! # Source
//! LibreQoE/LibreQoS at 455bc13: `src/LibreQoS.py` (`findBandwidthMins`, `inheritBandwidthMaxes`,
//! `ensure_min_less_than_max`, `quantum`, `format_rate_for_tc`, `sqmFixupRate`, `traverseNetwork`);
//! its documentation, `docs/v2.0/configuration-advanced.md` (the two formats).
//!
//! # Departures
//! - A device has one queue, not one for each core: the tree is whole.
//! - The capacity of the uplink is in `lqos.conf`, which is not read: it is `--rate`, or the sum of
//!   the nodes at the top. The default queue is `cake diffserv4`.
//! - A circuit is found by a flow, not by its addresses.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value as Json};

use crate::source::{Action, Command, ImportError, Object, Options, Place, Read, Source};

/// `MAX_R2Q` and `MIN_QUANTUM`, bytes.
const MOST_QUANTUM: f64 = 60_000.0;
const LEAST_QUANTUM: f64 = 1522.0;
/// The device to the core of the network, and that to the access.
const DEVICES: [&str; 2] = ["to-access", "to-core"];
/// More nesting than JSON is read with.
const DEEPEST: usize = 100;

/// The two files.
#[derive(Debug, Default)]
pub(crate) struct Files {
    network: Option<Network>,
    devices: Option<(Place, Vec<Circuit>)>,
}

/// The nodes of a file, which is kept for their lines.
#[derive(Clone, Debug)]
struct Network {
    file: Arc<str>,
    text: String,
    nodes: Map<String, Json>,
}

impl Network {
    /// The line with a node's name.
    fn place(&self, name: &str) -> Place {
        let quoted = Json::String(name.to_owned()).to_string();
        let before = self.text.split_once(&quoted).map_or("", |(before, _)| before);
        Place { file: Arc::clone(&self.file), line: 1 + before.matches('\n').count() as u32 }
    }
}

/// A circuit: one or more devices of a subscriber.
#[derive(Clone, Debug)]
struct Circuit {
    place: Place,
    id: String,
    parent: String,
    /// Down and up, Mbit/s.
    min: [f64; 2],
    max: [f64; 2],
    sqm: String,
}

/// A node of the network.
#[derive(Clone, Debug)]
struct Node {
    name: String,
    min: [Option<f64>; 2],
    max: [f64; 2],
    children: Vec<Node>,
}

impl Files {
    /// Takes a file, if it is a network: an object.
    pub(crate) fn take_network(&mut self, source: &Source<'_>) -> Result<bool, ImportError> {
        let text = source.text.trim_start_matches('\u{feff}');
        if !text.trim_start().starts_with('{') {
            return Ok(false);
        }
        let file: Arc<str> = source.name.into();
        match serde_json::from_str(text) {
            Ok(Json::Object(nodes)) => {
                self.network = Some(Network { file, text: text.to_owned(), nodes });
                Ok(true)
            }
            Ok(_) => Ok(false),
            Err(error) => {
                let place = Place { file, line: error.line() as u32 };
                let expected = "LibreQoS's network.json: nodes by name, each with downloadBandwidthMbps";
                Err(ImportError::at(&place, format!("no JSON: {error}"), expected))
            }
        }
    }

    pub(crate) fn take_devices(&mut self, source: &Source<'_>) -> Result<(), ImportError> {
        let file: Arc<str> = source.name.into();
        let text = source.text.trim_start_matches('\u{feff}');
        let mut reader = csv::ReaderBuilder::new().flexible(true).has_headers(false).from_reader(text.as_bytes());
        let mut columns: Vec<String> = Vec::new();
        let mut circuits: Vec<Circuit> = Vec::new();
        for record in reader.records() {
            let record = record.map_err(|error| {
                let line = error.position().map_or(1, csv::Position::line) as u32;
                ImportError::at(&Place { file: Arc::clone(&file), line }, format!("no CSV: {error}"), "a row of cells")
            })?;
            let line = record.position().map_or(1, csv::Position::line) as u32;
            let place = Place { file: Arc::clone(&file), line };
            if record.iter().all(|cell| cell.trim().is_empty())
                || record.get(0).is_some_and(|cell| cell.starts_with('#'))
            {
                continue;
            }
            if columns.is_empty() {
                columns = record.iter().map(column).collect();
                continue;
            }
            // A row may lack its comment.
            if record.len() > columns.len() || record.len() + 1 < columns.len() {
                let problem = format!("a row of {} cells", record.len());
                return Err(ImportError::at(&place, problem, format!("{}, as in the first row", columns.len())));
            }
            let cell = |name: &str| {
                // Rates may go without their unit (`_SHAPED_DEVICES_HEADER_ALIASES`).
                let name = column(name);
                let is_it = |column: &String| *column == name || format!("{column}mbps") == name;
                let column = columns.iter().position(is_it);
                column.and_then(|column| record.get(column)).map_or("", str::trim)
            };
            let number = |name: &str| {
                let text = cell(name);
                let wrong = || ImportError::at(&place, format!("`{name}` is `{text}`"), "a rate in Mbit/s, above 0");
                text.parse().ok().filter(|rate: &f64| *rate > 0.0 && *rate < 1e9).ok_or_else(wrong)
            };
            let pair = |kind: &str| {
                Ok::<_, ImportError>([
                    number(&format!("download {kind} mbps"))?,
                    number(&format!("upload {kind} mbps"))?,
                ])
            };
            let (min, max) = (pair("min")?, pair("max")?);
            let (id, parent) = (cell("circuit id").to_owned(), cell("parent node").to_owned());
            // Devices of a circuit share its queue.
            if id.is_empty() || !circuits.iter().any(|circuit| circuit.id == id) {
                circuits.push(Circuit { place, id, parent, min, max, sqm: cell("sqm").to_owned() });
            }
        }
        self.devices = Some((Place { file, line: 1 }, circuits));
        Ok(())
    }

    /// The commands of both files.
    pub(crate) fn read(self, options: &Options, report: &mut Read) -> Result<(), ImportError> {
        let (network, circuits) = match (self.network, self.devices) {
            (None, None) => return Ok(()),
            (Some(network), devices) => (network, devices.map(|(_, circuits)| circuits).unwrap_or_default()),
            (None, Some((place, circuits))) => {
                (Network { file: place.file, text: String::new(), nodes: Map::new() }, circuits)
            }
        };
        let place = Place { file: Arc::clone(&network.file), line: 1 };
        let mut nodes = nodes(&network.nodes, &network, 0)?;
        let top = [0, 1].map(|way| {
            let sum: f64 = match nodes.is_empty() {
                true => circuits.iter().map(|circuit| circuit.max[way]).sum(),
                false => nodes.iter().map(|node| node.max[way]).sum(),
            };
            options.rate.map_or(sum, |rate| rate.as_bps() as f64 / 1e6)
        });
        if options.rate.is_none() {
            let why = format!(
                "lqos.conf has it: the sum at the top is a placeholder, {} and {} Mbit/s (--rate)",
                top[0], top[1]
            );
            report.leave(&place, "capacity of the uplink", why);
        }
        report.notes.push("LibreQoS: the way forward is the download, and its queue `cake diffserv4`.".to_owned());
        for node in &mut nodes {
            raise(node, &circuits);
        }
        for node in &mut nodes {
            bound(node, top, top);
        }
        if circuits.iter().any(|circuit| circuit.max.iter().any(|rate| [1.0, 2.0, 3.0, 4.0].contains(rate))) {
            let note =
                "Below 5 Mbit/s LibreQoS gives CAKE `rtt 300`, 180, 140 or 120: for `tc` these are microseconds.";
            report.notes.push(note.to_owned());
        }
        let mut builder =
            Builder { top, minor: 2, numbers: BTreeMap::new(), commands: Vec::new(), place: place.clone() };
        builder.head();
        for node in &nodes {
            builder.node(node, 1, &network);
        }
        for circuit in &circuits {
            let parent = match builder.numbers.get(&circuit.parent) {
                Some(&parent) => parent,
                None => {
                    let what = format!("Parent Node {}", circuit.parent);
                    let why =
                        "there is no such node: LibreQoS would spread its circuits over cores; here it is at the top";
                    report.leave(&circuit.place, what, why);
                    1
                }
            };
            builder.circuit(circuit, parent, &nodes);
        }
        report.commands.append(&mut builder.commands);
        Ok(())
    }
}

/// The name of a column without spaces and the like.
fn column(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect()
}

fn nodes(nodes: &Map<String, Json>, network: &Network, depth: usize) -> Result<Vec<Node>, ImportError> {
    if depth > DEEPEST {
        let place = Place { file: Arc::clone(&network.file), line: 1 };
        return Err(ImportError::at(&place, "a network of more than 100 levels", "at most eight, as HTB has"));
    }
    let mut found = Vec::new();
    for (name, node) in nodes {
        let place = &network.place(name);
        let Json::Object(node) = node else {
            let expected = "an object with downloadBandwidthMbps and uploadBandwidthMbps";
            return Err(ImportError::at(place, format!("`{name}` is no node"), expected));
        };
        let number = |key: &str| match node.get(key) {
            None | Some(Json::Null) => Ok(None),
            Some(value) => {
                let rate = value.as_f64().or_else(|| value.as_str()?.parse().ok());
                let wrong =
                    || ImportError::at(place, format!("`{key}` of `{name}` is {value}"), "a rate in Mbit/s, above 0");
                rate.filter(|rate| *rate > 0.0 && *rate < 1e9).map(Some).ok_or_else(wrong)
            }
        };
        let required = |key: &str| {
            number(key)?.ok_or_else(|| ImportError::at(place, format!("`{name}` has no `{key}`"), "a rate in Mbit/s"))
        };
        let max = [required("downloadBandwidthMbps")?, required("uploadBandwidthMbps")?];
        let min = [number("downloadBandwidthMbpsMin")?, number("uploadBandwidthMbpsMin")?];
        let empty = Map::new();
        let children = match node.get("children") {
            None | Some(Json::Null) => &empty,
            Some(Json::Object(children)) => children,
            Some(_) => return Err(ImportError::at(place, format!("`children` of `{name}`"), "nodes by name")),
        };
        found.push(Node { name: name.clone(), min, max, children: self::nodes(children, network, depth + 1)? });
    }
    Ok(found)
}

/// `findBandwidthMins`: a node has at least what its circuits have at least, and what it has at
/// most where nothing else is said; the sum of what is below it.
fn raise(node: &mut Node, circuits: &[Circuit]) -> [f64; 2] {
    let mut sum = [0.0; 2];
    for circuit in circuits.iter().filter(|circuit| circuit.parent == node.name) {
        sum = [sum[0] + circuit.min[0], sum[1] + circuit.min[1]];
    }
    for child in &mut node.children {
        let below = raise(child, circuits);
        sum = [sum[0] + below[0], sum[1] + below[1]];
    }
    for way in [0, 1] {
        node.min[way] = Some(node.min[way].unwrap_or(node.max[way]).max(sum[way]));
    }
    sum
}

/// `inheritBandwidthMaxes`, in whole Mbit/s, and `ensure_min_less_than_max`.
fn bound(node: &mut Node, max: [f64; 2], min: [f64; 2]) {
    for way in [0, 1] {
        node.max[way] = node.max[way].trunc().min(max[way].trunc());
        node.min[way] = node.min[way].map(|rate| rate.trunc().min(node.max[way]).min(min[way].trunc()));
    }
    let inner = node.min.map(|rate| rate.unwrap_or(0.0));
    for child in &mut node.children {
        bound(child, node.max, inner);
    }
    for way in [0, 1] {
        node.min[way] = node.min[way].map(|rate| below(rate, node.max[way]));
    }
}

/// A least rate below the greatest one.
fn below(min: f64, max: f64) -> f64 {
    match min {
        _ if min < max => min,
        _ if max >= 1.0 => (max - 1.0).max(0.01),
        _ => (max - 0.01).max(0.01),
    }
}

struct Builder {
    /// The uplink, down and up, Mbit/s.
    top: [f64; 2],
    /// The last number of a class.
    minor: u32,
    /// Nodes by name.
    numbers: BTreeMap<String, u32>,
    commands: Vec<Command>,
    place: Place,
}

impl Builder {
    fn push(&mut self, place: &Place, object: Object, words: String, name: Option<&str>) {
        let words = words.split_ascii_whitespace().map(str::to_owned).collect();
        let name = name.map(str::to_owned);
        self.commands.push(Command { place: place.clone(), object, action: Action::Add, words, name });
    }

    /// `quantum`, with the `r2q` for which the largest is not too large.
    fn quantum(&self, rate: f64) -> String {
        let most = self.top[0].max(self.top[1]) * 125_000.0;
        let r2q = (most / MOST_QUANTUM).ceil().max(10.0);
        format!("quantum {}", (rate * 125_000.0 / r2q).floor().max(LEAST_QUANTUM))
    }

    fn head(&mut self) {
        let place = self.place.clone();
        for (way, device) in DEVICES.into_iter().enumerate() {
            let top = self.top[way];
            let (quantum, rest) = (self.quantum(top), (top - 1.0).max(0.1));
            let quarter = format_rate((rest / 4.0).round().max(0.1));
            self.push(&place, Object::Qdisc, format!("dev {device} root handle 1: htb default 2"), None);
            let class = format!(
                "dev {device} parent 1: classid 1:1 htb rate {rate} ceil {rate} {quantum}",
                rate = format_rate(top)
            );
            self.push(&place, Object::Class, class, Some("uplink"));
            let class = format!(
                "dev {device} parent 1:1 classid 1:2 htb rate {quarter} ceil {} prio 5 {quantum}",
                format_rate(rest)
            );
            self.push(&place, Object::Class, class, Some("others"));
            self.push(&place, Object::Qdisc, format!("dev {device} parent 1:2 {}", queue("", top)), None);
        }
        let redirect =
            format!("dev {} parent ffff: matchall action mirred egress redirect dev {}", DEVICES[1], DEVICES[0]);
        self.push(&place, Object::Filter, redirect, None);
    }

    fn class(&mut self, place: &Place, parent: u32, min: [f64; 2], max: [f64; 2], name: &str) -> u32 {
        self.minor += 1;
        let minor = self.minor;
        for (way, device) in DEVICES.into_iter().enumerate() {
            let (rate, ceil) = (format_rate(min[way]), format_rate(max[way]));
            let quantum = self.quantum(max[way]);
            let class = format!(
                "dev {device} parent 1:{parent:x} classid 1:{minor:x} htb rate {rate} ceil {ceil} prio 3 {quantum}"
            );
            self.push(place, Object::Class, class, Some(name));
        }
        minor
    }

    fn node(&mut self, node: &Node, parent: u32, network: &Network) {
        let place = network.place(&node.name);
        let minor = self.class(&place, parent, node.min.map(|rate| rate.unwrap_or(0.01)), node.max, &node.name);
        self.numbers.insert(node.name.clone(), minor);
        for child in &node.children {
            self.node(child, minor, network);
        }
    }

    fn circuit(&mut self, circuit: &Circuit, parent: u32, nodes: &[Node]) {
        let of_parent = find(nodes, &circuit.parent).map_or(self.top, |node| node.max);
        let max = [0, 1].map(|way| circuit.max[way].min(of_parent[way]));
        let min = [0, 1].map(|way| below(circuit.min[way], max[way]));
        let minor = self.class(&circuit.place, parent, min, max, &format!("circuit-{}", circuit.id));
        for (way, device) in DEVICES.into_iter().enumerate() {
            // `down/up`, or one for both.
            let sqm = circuit.sqm.split_once('/').map_or(circuit.sqm.as_str(), |(down, up)| [down, up][way]);
            let queue = queue(sqm.trim(), max[way]);
            if !queue.is_empty() {
                self.push(&circuit.place, Object::Qdisc, format!("dev {device} parent 1:{minor:x} {queue}"), None);
            }
        }
    }
}

fn find<'n>(nodes: &'n [Node], name: &str) -> Option<&'n Node> {
    nodes.iter().find_map(|node| if node.name == name { Some(node) } else { find(&node.children, name) })
}

/// `effective_sqm_str` and `sqmFixupRate`: the time for which CAKE is tuned grows where a packet
/// takes long. `tc` reads its plain number as microseconds, as it stands.
fn queue(sqm: &str, rate: f64) -> String {
    match sqm.to_ascii_lowercase().as_str() {
        "none" => return String::new(),
        "fq_codel" => return "fq_codel".to_owned(),
        "" if rate >= 1000.0 => return "fq_codel".to_owned(),
        _ => {}
    }
    let rtt = [(1.0, 300), (2.0, 180), (3.0, 140), (4.0, 120)].into_iter().find(|(slow, _)| *slow == rate);
    format!("cake diffserv4{}", rtt.map(|(_, rtt)| format!(" rtt {rtt}")).unwrap_or_default())
}

/// `format_rate_for_tc`: with one digit behind the point.
fn format_rate(mbps: f64) -> String {
    if mbps >= 1000.0 {
        format!("{:.1}gbit", mbps / 1000.0)
    } else if mbps >= 1.0 {
        format!("{mbps:.1}mbit")
    } else {
        format!("{:.0}kbit", (mbps * 1000.0).max(1.0))
    }
}
