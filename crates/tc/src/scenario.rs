//! The scenario file of imported devices.

use std::fmt::Write;

use ackclock_scenario::Scenario;

use crate::disciplines::Keys;
use crate::link::{self, Direction, Queue, TREES, inline, label};
use crate::source::{ImportError, Imported, Options, Read};
use crate::tree::Device;

/// The rate of a link of which nothing says one.
const RATE: &str = "100mbit";
/// The delay of a link without netem.
const DELAY: &str = "10ms";

/// Keys of a direction in their order, each with the value that the way back needs where the other
/// direction alone has it.
const KEYS: &[(&str, &str)] = &[
    ("rate", "\"unlimited\""),
    ("burst", "false"),
    ("delay", "\"0s\""),
    ("overhead", "\"0B\""),
    ("mpu", "\"0B\""),
    ("linklayer", "\"ethernet\""),
    ("loss", "\"none\""),
    ("duplicate", "0.0"),
    ("corrupt", "0.0"),
    ("jitter", "\"0s\""),
    ("jitter_distribution", "\"uniform\""),
    ("jitter_correlation", "0.0"),
    ("reorder", "false"),
    ("slots", "false"),
];

/// A link with what is known of it.
struct Link {
    name: String,
    forward: Direction,
    reverse: Option<Direction>,
}

/// Writes the scenario.
pub(crate) fn write(
    file: &str,
    devices: Vec<Device>,
    mut read: Read,
    options: &Options,
) -> Result<Imported, ImportError> {
    let mut links = links(devices, options, &mut read)?;
    if links.is_empty() {
        let first =
            read.left.first().map(|first| format!(" ({} lines are left over, the first: {first})", read.left.len()));
        return Err(ImportError::Nothing {
            file: file.to_owned(),
            found: format!("nothing that sets a queue up{}", first.unwrap_or_default()),
            expected: "`tc qdisc add dev NAME root ...`, the output of `tc -j`, or a configuration of SQM or LibreQoS",
        });
    }
    links.iter_mut().for_each(|link| fill(link, options, &mut read));
    let mut body = String::new();
    let mut flows = String::new();
    let is_single = links.len() == 1;
    for link in &links {
        let ids = Ids { link, prefix: if is_single { String::new() } else { format!("{}-", link.name) } };
        ids.links(&mut body);
        ids.flows(&mut flows);
    }
    read.left.sort_by(|one, other| (&one.place.file, one.place.line).cmp(&(&other.place.file, other.place.line)));
    read.left.dedup();
    let mut text = String::from("# Imported from Linux traffic control. Flows are placeholders: one for each queue.\n");
    for note in &read.notes {
        let _ = writeln!(text, "# {}", plain(note));
    }
    if !read.left.is_empty() {
        text.push_str("#\n# Not carried over, or not exactly:\n");
        for left in &read.left {
            let _ = writeln!(text, "# - {}", plain(&left.to_string()));
        }
    }
    let title = links.iter().map(|link| link.name.as_str()).collect::<Vec<_>>().join(", ");
    let _ = write!(
        text,
        "\nschema = 1\ntitle  = \"Traffic control of {title}\"\n\n[run]\nduration = \"30s\"\n{body}{flows}"
    );
    match Scenario::parse(file, text.as_bytes(), &[]) {
        Ok(_) => Ok(Imported { text, left: read.left }),
        Err(error) => {
            let problem = error.problems().next().map(|problem| {
                let notes = problem.notes.iter().map(|note| format!("; {note}")).collect::<String>();
                format!("{}: {}{notes}", problem.title, problem.found)
            });
            Err(ImportError::Refused { file: file.to_owned(), problem: problem.unwrap_or_default() })
        }
    }
}

/// Joins devices to links.
fn links(devices: Vec<Device>, options: &Options, read: &mut Read) -> Result<Vec<Link>, ImportError> {
    let mut links: Vec<Link> = Vec::new();
    let mut rest: Vec<Device> = Vec::new();
    // A device without a queue says nothing.
    let mut open = devices;
    open.retain(|device| device.root().is_none_or(|root| root.kind != "noqueue"));
    let mut taken: Vec<String> = Vec::new();
    let mut name = |device: &str| {
        let base = label(device);
        let count = taken.iter().filter(|known| **known == base).count();
        taken.push(base.clone());
        if count == 0 { base } else { format!("{base}-{}", count + 1) }
    };
    while !open.is_empty() {
        let device = open.remove(0);
        // The other device gets what this one receives: the way to it.
        let other = device.redirect.clone().and_then(|other| {
            let find = |devices: &mut Vec<Device>| {
                let place = devices.iter().position(|device| device.name == other && device.root().is_some())?;
                Some(devices.remove(place))
            };
            find(&mut open).or_else(|| find(&mut rest))
        });
        match other {
            Some(other) => {
                let forward = link::direction(&other, options, read)?;
                let reverse = device.root().map(|_| link::direction(&device, options, read)).transpose()?;
                links.push(Link { name: name(&device.name), forward, reverse });
            }
            None if device.root().is_some() => rest.push(device),
            None => {}
        }
    }
    if let [forward, reverse] = &rest[..] {
        let is_alone = links.is_empty();
        if is_alone {
            let note =
                format!("The way forward is what {} sends, the way back what {} sends.", forward.name, reverse.name);
            read.notes.push(note);
            let forward = link::direction(forward, options, read)?;
            let reverse = Some(link::direction(reverse, options, read)?);
            let name = name(&forward.device);
            return Ok(vec![Link { name, forward, reverse }]);
        }
    }
    for device in rest {
        let forward = link::direction(&device, options, read)?;
        links.push(Link { name: name(&device.name), forward, reverse: None });
    }
    Ok(links)
}

/// Fills in what the files do not say.
fn fill(link: &mut Link, options: &Options, read: &mut Read) {
    let has_delay = link.forward.has_delay || link.reverse.as_ref().is_some_and(|reverse| reverse.has_delay);
    let one_way = options.delay.map(|delay| format!("\"{delay}\""));
    for direction in [Some(&mut link.forward), link.reverse.as_mut()].into_iter().flatten() {
        if direction.keys.get("rate").is_none() {
            let rate = options.rate.map(|rate| format!("\"{rate}\""));
            let rate = match (rate, direction.is_shaped) {
                (Some(rate), _) => rate,
                (None, true) => "\"unlimited\"".to_owned(),
                (None, false) => {
                    let why = format!("nothing says its rate: {RATE} is a placeholder (--rate)");
                    read.leave(&direction.place, format!("dev {}", direction.device), why);
                    format!("\"{RATE}\"")
                }
            };
            direction.keys.set("rate", rate);
        }
        if direction.keys.get("delay").is_none() {
            let delay = match (&one_way, has_delay) {
                (Some(delay), false) => delay.clone(),
                (_, true) => "\"0s\"".to_owned(),
                (None, false) => {
                    let why = format!("nothing says its delay: {DELAY} is a placeholder (--delay)");
                    read.leave(&direction.place, format!("dev {}", direction.device), why);
                    format!("\"{DELAY}\"")
                }
            };
            direction.keys.set("delay", delay);
        }
    }
    if link.reverse.is_none() {
        let place = link.forward.place.clone();
        let why = "nothing is known of what it receives: the way back is unlimited, with the same delay";
        read.leave(&place, format!("dev {}", link.forward.device), why);
    }
}

/// The names of flows of a link, and its sections.
struct Ids<'l> {
    link: &'l Link,
    prefix: String,
}

impl Ids<'_> {
    /// The flow of a queue without classes, or of a class.
    fn flow(&self, is_reverse: bool, class: Option<&str>) -> String {
        let way = if is_reverse { "reverse" } else { "forward" };
        let class = class.map(|class| format!("-{class}")).unwrap_or_default();
        format!("{}{way}{class}", self.prefix)
    }

    /// The ids of flows that stand for the packets of a class, whose ACKs pass the other
    /// direction's class of that name.
    fn stand_ins(&self, is_reverse: bool, class: &str) -> Vec<String> {
        let other = if is_reverse { Some(&self.link.forward) } else { self.link.reverse.as_ref() };
        let is_there = other.is_some_and(|other| {
            let mut leaves = other.queue.classes.iter().filter(|leaf| is_leaf(&other.queue, leaf));
            leaves.any(|leaf| leaf.name == class && needs_flow(leaf))
        });
        let mut flows = vec![self.flow(is_reverse, Some(class))];
        if is_there {
            flows.push(self.flow(!is_reverse, Some(class)));
        }
        flows
    }

    fn links(&self, out: &mut String) {
        let Link { name, forward, reverse } = self.link;
        let _ = write!(out, "\n# What {} sends.\n[links.{name}]\n", plain(&forward.device));
        section(out, &forward.keys);
        match (reverse, forward.queue.classes.is_empty()) {
            (None, _) => {
                let mut fields = vec!["rate = \"unlimited\"".to_owned()];
                for (key, value) in KEYS {
                    if !["rate", "delay"].contains(key) && forward.keys.get(key).is_some() {
                        fields.push(format!("{key} = {value}"));
                    }
                }
                fields.push("queue = \"pfifo\"".to_owned());
                // netem delays one way alone.
                if forward.has_delay {
                    fields.push("delay = \"0s\"".to_owned());
                }
                let _ = writeln!(out, "reverse = {{ {} }}", fields.join(", "));
                self.queue(out, &format!("links.{name}"), &forward.queue, false);
            }
            (Some(reverse), _) => {
                self.queue(out, &format!("links.{name}"), &forward.queue, false);
                let _ = write!(out, "\n# What {} sends.\n[links.{name}.reverse]\n", plain(&reverse.device));
                let mut keys = Keys::default();
                for (key, default) in KEYS {
                    match reverse.keys.get(key) {
                        Some(value) => keys.set(key, value),
                        None if forward.keys.get(key).is_some() => keys.set(key, *default),
                        None => {}
                    }
                }
                section(out, &keys);
                self.queue(out, &format!("links.{name}.reverse"), &reverse.queue, true);
            }
        }
    }

    fn queue(&self, out: &mut String, path: &str, queue: &Queue, is_reverse: bool) {
        if queue.classes.is_empty() && !TREES.contains(&queue.kind.as_str()) {
            let _ = writeln!(out, "queue = {}", inline(&queue.kind, &queue.keys));
            return;
        }
        let _ = write!(out, "\n[{path}.queue]\nkind = \"{}\"\n", queue.kind);
        for (key, value) in &queue.keys.0 {
            let _ = writeln!(out, "{key} = {value}");
        }
        if queue.classes.is_empty() {
            return;
        }
        let _ = write!(out, "\n[{path}.queue.classes]\n");
        for leaf in &queue.classes {
            let mut fields: Vec<String> = leaf.keys.0.iter().map(|(key, value)| format!("{key} = {value}")).collect();
            let condition = &leaf.condition;
            if condition.dscp != 0 {
                let codepoints: Vec<String> =
                    (0..64).filter(|dscp| condition.dscp >> dscp & 1 == 1).map(|dscp: u64| dscp.to_string()).collect();
                fields.push(format!("dscp = [{}]", codepoints.join(", ")));
            }
            condition.max_length.iter().for_each(|length| fields.push(format!("max_length = \"{length}B\"")));
            if condition.acks {
                fields.push("acks = true".to_owned());
            }
            if is_leaf(queue, leaf) && needs_flow(leaf) && !leaf.is_default {
                let ids = self.stand_ins(is_reverse, &leaf.name);
                let ids: Vec<String> = ids.iter().map(|id| format!("\"{id}\"")).collect();
                fields.push(format!("flows = [{}]", ids.join(", ")));
            }
            if let Some((kind, keys)) = &leaf.queue {
                fields.push(format!("queue = {}", inline(kind, keys)));
            }
            let stands = condition.stand_in.as_ref().map(|what| format!("     # {}", plain(what)));
            let _ = writeln!(out, "{} = {{ {} }}{}", leaf.name, fields.join(", "), stands.unwrap_or_default());
        }
    }

    fn flows(&self, out: &mut String) {
        let directions = [(false, Some(&self.link.forward)), (true, self.link.reverse.as_ref())];
        for (is_reverse, direction) in directions {
            let Some(direction) = direction else { continue };
            let queue = &direction.queue;
            if queue.classes.is_empty() {
                self.flow_section(out, is_reverse, &self.flow(is_reverse, None), None);
            }
            for leaf in queue.classes.iter().filter(|leaf| is_leaf(queue, leaf)) {
                // ACKs, and short packets, are those of other flows.
                let dscp = match leaf.condition.dscp {
                    _ if leaf.condition.acks || leaf.condition.max_length.is_some() => continue,
                    0 => None,
                    dscp => Some(dscp.trailing_zeros()),
                };
                self.flow_section(out, is_reverse, &self.flow(is_reverse, Some(&leaf.name)), dscp);
            }
        }
    }

    fn flow_section(&self, out: &mut String, is_reverse: bool, id: &str, dscp: Option<u32>) {
        let _ = write!(out, "\n[[flows]]\nid = \"{id}\"\npath = [\"{}\"]\n", self.link.name);
        if is_reverse {
            out.push_str("direction = \"reverse\"\n");
        }
        dscp.iter().for_each(|dscp| {
            let _ = writeln!(out, "dscp = {dscp}");
        });
        out.push_str("host = \"linux-6.1\"\n");
    }
}

/// A text for a comment: TOML has no control characters there.
fn plain(text: &str) -> String {
    text.replace(char::is_control, " ")
}

/// Returns `true` if no class is below this one.
fn is_leaf(queue: &Queue, leaf: &link::Leaf) -> bool {
    let name = format!("\"{}\"", leaf.name);
    queue.classes.iter().all(|other| other.keys.get("parent") != Some(&name))
}

/// Returns `true` if nothing in a packet tells that it belongs to this class.
fn needs_flow(leaf: &link::Leaf) -> bool {
    !leaf.condition.is_any()
}

fn section(out: &mut String, keys: &Keys) {
    for (key, _) in KEYS {
        if let Some(value) = keys.get(key) {
            let _ = writeln!(out, "{key} = {value}");
        }
    }
}
