//! The qdiscs of a device, as a direction of a link.
//!
//! # Source
//! tc(8): qdiscs with classes and without; Linux `net/sched/sch_htb.c` (`htb_change_class`).
//!
//! # Departures
//! - A direction has a queue, then a transmitter, then the delay; netem delays before the qdisc
//!   inside it.
//! - Trees have other qdiscs in their leaves alone.
//! - Packets have the lengths of IP; Linux counts Ethernet's header of 14 bytes, too.

use std::collections::{BTreeMap, BTreeSet};

use ackclock_aqm::PrioMap;
use ackclock_scenario::{Scenario, htb_bucket};
use ackclock_units::parameter::Named;

use crate::classify::{self, Condition};
use crate::disciplines::{self, Context, HTB_CLASS, Keys, QFQ_CLASS};
use crate::source::{ImportError, Options, Place, Read, wrong};
use crate::tree::{Class, Device, Parent, Qdisc, Stab};
use crate::{netem, units};

/// tc's default `priomap`, by which `linux` assigns codepoints.
const PRIOMAP: &[&str] = &["1", "2", "2", "2", "1", "2", "0", "0", "1", "1", "1", "1", "1", "1", "1", "1"];

/// Qdiscs with classes that have qdiscs.
pub(crate) const TREES: &[&str] = &["htb", "hfsc", "qfq"];

/// A direction of a link.
#[derive(Clone, Debug)]
pub(crate) struct Direction {
    /// The device that sends.
    pub(crate) device: String,
    pub(crate) place: Place,
    /// Keys of the direction but for the queue; without `rate` nothing is known of it.
    pub(crate) keys: Keys,
    /// A shaper among the qdiscs decides the rate.
    pub(crate) is_shaped: bool,
    /// netem is among the qdiscs.
    pub(crate) has_delay: bool,
    pub(crate) queue: Queue,
}

/// A queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Queue {
    pub(crate) kind: String,
    pub(crate) keys: Keys,
    pub(crate) classes: Vec<Leaf>,
}

impl Queue {
    fn plain(kind: &str, keys: Keys) -> Queue {
        Queue { kind: kind.to_owned(), keys, classes: Vec::new() }
    }
}

/// A class of a tree.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Leaf {
    pub(crate) name: String,
    /// `parent` and the settings of its scheduler.
    pub(crate) keys: Keys,
    /// The queue of a class without others below.
    pub(crate) queue: Option<(String, Keys)>,
    pub(crate) condition: Condition,
    pub(crate) is_default: bool,
}

/// Makes a direction of what a device has.
pub(crate) fn direction(device: &Device, options: &Options, report: &mut Read) -> Result<Direction, ImportError> {
    let mut builder = Builder { device, options, report, accepted: BTreeMap::new() };
    let mut direction = Direction {
        device: device.name.clone(),
        place: device.place.clone(),
        keys: Keys::default(),
        is_shaped: false,
        has_delay: false,
        queue: Queue::plain("pfifo", Keys::default()),
    };
    if let Some(root) = device.root() {
        direction.place = root.place.clone();
        builder.outer(root, &mut direction)?;
    }
    Ok(direction)
}

struct Builder<'b> {
    device: &'b Device,
    options: &'b Options,
    report: &'b mut Read,
    /// Queues that a scenario takes, with what it took of their keys.
    accepted: BTreeMap<(String, Vec<(String, String)>), Keys>,
}

impl<'b> Builder<'b> {
    fn context<'p>(&self, place: &'p Place) -> Context<'p> {
        Context { place, rate: self.options.rate }
    }

    /// A qdisc at the root, or inside one that only delays or shapes.
    fn outer(&mut self, qdisc: &'b Qdisc, direction: &mut Direction) -> Result<(), ImportError> {
        self.framing(qdisc, direction);
        match qdisc.kind.as_str() {
            "netem" => self.netem(qdisc, direction)?,
            "tbf" if self.device.inside(qdisc.handle).is_some() => self.bucket(qdisc, direction)?,
            kind if TREES.contains(&kind) => self.tree(&[qdisc], direction)?,
            "mq" | "mqprio" => self.several(qdisc, direction)?,
            _ => {
                let (kind, keys) = self.plain(qdisc)?;
                direction.is_shaped |=
                    kind == "tbf" || keys.get("bandwidth").is_some_and(|rate| rate != "false" && kind == "cake");
                direction.queue = Queue::plain(&kind, keys);
            }
        }
        Ok(())
    }

    /// The size table of a qdisc is the framing of its link.
    fn framing(&mut self, qdisc: &Qdisc, direction: &mut Direction) {
        let Some(Stab { overhead, mpu, is_atm }) = qdisc.stab else { return };
        match u32::try_from(overhead) {
            Ok(0) => {}
            Ok(bytes) => direction.keys.set("overhead", format!("\"{bytes}B\"")),
            Err(_) => {
                let what = format!("stab overhead {overhead}");
                self.report.leave(&qdisc.place, what, "framing cannot make a packet shorter here");
            }
        }
        if mpu > 0 {
            direction.keys.set("mpu", format!("\"{mpu}B\""));
        }
        if is_atm {
            direction.keys.set("linklayer", "\"atm\"");
        }
    }

    fn netem(&mut self, qdisc: &'b Qdisc, direction: &mut Direction) -> Result<(), ImportError> {
        let netem = netem::read(&qdisc.options, &self.context(&qdisc.place), self.report)?;
        direction.has_delay |= netem.has_delay;
        direction.is_shaped |= netem.keys.get("rate").is_some();
        for (key, value) in netem.keys.0 {
            direction.keys.set(&key, value);
        }
        match self.device.inside(qdisc.handle) {
            Some(inside) => {
                if qdisc.options.iter().any(|word| !word.is_empty() && "limit".starts_with(word.as_str())) {
                    let what = format!("limit {}", netem.limit);
                    let why = "the delay line has no limit here, and the queue inside netem has its own";
                    self.report.leave(&qdisc.place, what, why);
                }
                let rate = direction.keys.get("rate").map(str::to_owned);
                self.outer(inside, direction)?;
                if let Some(rate) = rate.filter(|rate| direction.keys.get("rate") != Some(rate)) {
                    let why = "the qdisc inside netem has the lower rate, or another";
                    self.report.leave(&qdisc.place, format!("rate {}", rate.trim_matches('"')), why);
                }
            }
            None => {
                let mut keys = Keys::default();
                keys.set("limit", format!("\"{}p\"", netem.limit));
                direction.queue = Queue::plain("pfifo", self.accept("pfifo", keys, &qdisc.place));
                if netem.has_delay {
                    let why = "packets that are delayed do not count here, those that wait do";
                    self.report.leave(&qdisc.place, format!("limit {}", netem.limit), why);
                }
            }
        }
        Ok(())
    }

    /// A token bucket with a qdisc in it.
    fn bucket(&mut self, qdisc: &'b Qdisc, direction: &mut Direction) -> Result<(), ImportError> {
        let mut options = qdisc.options.clone();
        // `limit` and `latency` are those of its own queue.
        let keys = disciplines::read("tbf", &options, &self.context(&qdisc.place), self.report)?;
        options.clear();
        for key in ["rate", "burst", "overhead", "mpu", "linklayer"] {
            keys.get(key).into_iter().for_each(|value| direction.keys.set(key, value));
        }
        if let Some(rate) = keys.get("peakrate") {
            let what = format!("peakrate {}", rate.trim_matches('"'));
            self.report.leave(&qdisc.place, what, "a link's bucket has one rate");
        }
        direction.is_shaped = true;
        match self.device.inside(qdisc.handle) {
            Some(inside) if inside.kind == "qfq" => self.tree(&[inside], direction)?,
            Some(inside) if TREES.iter().chain(&["netem", "tbf"]).any(|kind| inside.kind == *kind) => {
                self.report.leave(&inside.place, &inside.kind, "in a token bucket there is one queue here");
            }
            Some(inside) => {
                let (kind, keys) = self.plain(inside)?;
                direction.queue = Queue::plain(&kind, keys);
            }
            None => {}
        }
        Ok(())
    }

    /// The qdiscs of several queues of a device, which has one here.
    fn several(&mut self, qdisc: &'b Qdisc, direction: &mut Direction) -> Result<(), ImportError> {
        let inside: Vec<&Qdisc> = self
            .device
            .qdiscs
            .iter()
            .filter(|inner| matches!(inner.parent, Parent::Class(id) if qdisc.handle != 0 && id & 0xffff_0000 == qdisc.handle))
            .collect();
        let [first, others @ ..] = &inside[..] else {
            self.report.leave(&qdisc.place, &qdisc.kind, "a device has one queue here: pfifo");
            return Ok(());
        };
        let is_tree = |qdisc: &&&Qdisc| qdisc.kind == "htb";
        if inside.iter().all(|qdisc| is_tree(&qdisc)) {
            let why = "a device has one queue here, with the classes of all";
            self.report.leave(&qdisc.place, format!("{} of {} queues", qdisc.kind, inside.len()), why);
            return self.tree(&inside, direction);
        }
        let why = format!("a device has one queue here, the first: {}", first.kind);
        self.report.leave(&qdisc.place, format!("{} of {} queues", qdisc.kind, inside.len()), why);
        for other in others.iter().filter(|other| other.kind != first.kind || other.options != first.options) {
            self.report.leave(&other.place, &other.kind, "a device has one queue here");
        }
        self.outer(first, direction)
    }

    /// The name and the keys of a qdisc that is no tree.
    fn plain(&mut self, qdisc: &'b Qdisc) -> Result<(String, Keys), ImportError> {
        let place = &qdisc.place;
        if !matches!(qdisc.kind.as_str(), "prio" | "ets" | "drr" | "pfifo_fast")
            && let Some(inside) = self.device.inside(qdisc.handle)
        {
            self.report.leave(&inside.place, &inside.kind, format!("there is nothing in `{}` here", qdisc.kind));
        }
        match qdisc.kind.as_str() {
            "pfifo_fast" => Ok(("prio".to_owned(), Keys::default())),
            "prio" => self.bands(qdisc, "prio"),
            "ets" => self.bands(qdisc, "ets"),
            "drr" => self.rounds(qdisc),
            "gred" => {
                let why = "gred counts packets since the last mark, `wred` does not: pfifo is in its place";
                self.report.leave(place, "gred", why);
                Ok(("pfifo".to_owned(), Keys::default()))
            }
            kind if disciplines::is_known(kind) && !TREES.contains(&kind) => {
                let context = Context { place, rate: self.options.rate };
                let keys = disciplines::read(kind, &qdisc.options, &context, self.report)?;
                let name = if kind == "cake_mq" { "cake" } else { kind };
                if kind == "cake_mq" {
                    self.report.leave(place, kind, "a device has one queue here: cake");
                }
                let keys = self.accept(name, keys, place);
                Ok((name.to_owned(), keys))
            }
            kind => {
                let why = match kind {
                    kind if TREES.contains(&kind) => "a tree is at the root of a link here: pfifo is in its place",
                    "netem" => "delay and losses are a link's: pfifo is in its place",
                    _ => "there is no such queue discipline here: pfifo is in its place",
                };
                self.report.leave(place, kind, why);
                Ok(("pfifo".to_owned(), Keys::default()))
            }
        }
    }

    /// Bands by priority, of which ours are by codepoint.
    fn bands(&mut self, qdisc: &'b Qdisc, kind: &str) -> Result<(String, Keys), ImportError> {
        let place = &qdisc.place;
        let mut lists: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
        let mut list = "";
        for word in qdisc.options.iter().map(String::as_str) {
            let known: &[&str] = if kind == "prio" {
                &["bands", "priomap", "multiqueue"]
            } else {
                &["bands", "strict", "quanta", "priomap"]
            };
            if known.contains(&word) {
                list = word;
                lists.entry(list).or_default();
            } else if let Some(values) = lists.get_mut(list) {
                values.push(word);
            } else {
                let expected = format!("one of {}", known.join(", "));
                return Err(ImportError::at(place, format!("`{kind}` has no option `{word}`"), expected));
            }
        }
        let number = |key: &str, base: u32| {
            let Some(text) = lists.get(key).and_then(|values| values.first()) else { return Ok(None) };
            units::unsigned(text, base).map(Some).map_err(|expected| wrong(place, key, text, expected))
        };
        let mut keys = Keys::default();
        let quanta = lists.get("quanta").map_or(&[][..], Vec::as_slice);
        let strict = number("strict", 10)?.unwrap_or(0);
        let bands = number("bands", 10)?;
        if kind == "ets" && bands.is_none() && strict == 0 && quanta.is_empty() {
            return Err(ImportError::at(place, "`ets` without bands", "`bands N`, `strict N` or `quanta N ...`"));
        }
        let given = bands.unwrap_or(if kind == "prio" { 3 } else { strict + quanta.len() as u64 });
        let priomap = lists.get("priomap").map_or(if kind == "prio" { PRIOMAP } else { &[][..] }, Vec::as_slice);
        if given != 3 || priomap != PRIOMAP {
            let what = format!("{kind} bands {given} priomap {}", priomap.join(" "));
            self.report.leave(place, what, "bands are Linux's three by default, by codepoint (`map`)");
        }
        if kind == "ets" && given == 3 {
            keys.set("strict", strict.to_string());
            for (number, text) in quanta.iter().enumerate() {
                let quantum = units::size32(text).map_err(|expected| wrong(place, "quanta", text, expected))?;
                keys.set(&format!("quantum{}", strict + number as u64 + 1), format!("\"{quantum}B\""));
            }
        }
        self.in_bands(qdisc, &mut keys)?;
        for filter in self
            .device
            .filters
            .iter()
            .filter(|filter| matches!(filter.parent, Parent::Class(id) if id & 0xffff_0000 == qdisc.handle))
        {
            let what = format!("filter {} {}", filter.kind, filter.options.join(" "));
            self.report.leave(&filter.place, what, "bands are by codepoint here (`map`)");
        }
        let keys = self.accept(kind, keys, place);
        Ok((kind.to_owned(), keys))
    }

    /// The limit of the queues in bands.
    fn in_bands(&mut self, qdisc: &'b Qdisc, keys: &mut Keys) -> Result<(), ImportError> {
        let mut limits = BTreeSet::new();
        let inside: Vec<&Qdisc> = self
            .device
            .qdiscs
            .iter()
            .filter(|inner| matches!(inner.parent, Parent::Class(id) if qdisc.handle != 0 && id & 0xffff_0000 == qdisc.handle))
            .collect();
        for inner in &inside {
            if inner.kind != "pfifo" {
                self.report.leave(&inner.place, &inner.kind, "bands hold a pfifo here");
                continue;
            }
            let read =
                disciplines::read("pfifo", &inner.options, &Context { place: &inner.place, rate: None }, self.report)?;
            limits.extend(read.get("limit").map(str::to_owned));
        }
        let mut limits = limits.into_iter();
        if let Some(limit) = limits.next() {
            keys.set("limit", limit);
        }
        if let (Some(_), Some(first)) = (limits.next(), inside.first()) {
            self.report.leave(&first.place, "limits of the bands", "all bands have the same limit here");
        }
        Ok(())
    }

    /// Classes of DRR, which are bands by codepoint if its filters are those of a map.
    fn rounds(&mut self, qdisc: &'b Qdisc) -> Result<(String, Keys), ImportError> {
        let mut classes = self.device.classes_of(qdisc.handle);
        classes.sort_by_key(|class| class.id);
        let leaves: Vec<u32> = classes.iter().map(|class| class.id).collect();
        let classified = classify::classify(self.device, qdisc.handle, &leaves, self.report)?;
        let band = |dscp: u8| {
            let by_filter = classified.conditions.iter().find(|(_, condition)| condition.dscp >> dscp & 1 == 1);
            let class = by_filter.map(|(class, _)| *class).or(classified.default)?;
            leaves.iter().position(|leaf| *leaf == class)
        };
        let maps = [PrioMap::Linux, PrioMap::Diffserv3, PrioMap::Diffserv4];
        let is_map =
            |map: &PrioMap| map.bands() == leaves.len() && (0..64).all(|dscp| band(dscp) == Some(map.band(dscp)));
        let mut keys = Keys::default();
        match maps.iter().find(|map| is_map(map)) {
            Some(map) => keys.set("map", format!("\"{}\"", map.name())),
            None => {
                let what = format!("drr of {} classes", leaves.len());
                self.report.leave(&qdisc.place, what, "bands are those of a map, by codepoint");
            }
        }
        let bands = if keys.get("map") == Some("\"diffserv4\"") { 4 } else { 3 };
        for (number, class) in classes.iter().enumerate().take(bands) {
            let [option, quantum] = &class.options[..] else { continue };
            if option != "quantum" {
                return Err(ImportError::at(
                    &class.place,
                    format!("`drr` has no option `{option}`"),
                    "`quantum BYTES`",
                ));
            }
            let quantum = units::size32(quantum).map_err(|expected| wrong(&class.place, option, quantum, expected))?;
            keys.set(&format!("quantum{}", number + 1), format!("\"{quantum}B\""));
        }
        self.in_bands(qdisc, &mut keys)?;
        let keys = self.accept("drr", keys, &qdisc.place);
        Ok(("drr".to_owned(), keys))
    }

    /// Trees of classes, of which there is one here.
    fn tree(&mut self, trees: &[&'b Qdisc], direction: &mut Direction) -> Result<(), ImportError> {
        let [first, ..] = trees else { return Ok(()) };
        let kind = first.kind.clone();
        let mut keys = Keys::default();
        let mut leaves = Vec::new();
        let names = self.names(trees);
        for tree in trees {
            let mut own = disciplines::read(&kind, &tree.options, &self.context(&tree.place), self.report)?;
            let given = own.remove("default").and_then(|text| text.parse::<u32>().ok()).filter(|&minor| minor > 0);
            for (key, value) in own.0 {
                keys.set(&key, value);
            }
            let classes = self.device.classes_of(tree.handle);
            let is_inner = |id: u32| classes.iter().any(|class| class.parent == Parent::Class(id));
            let ends: Vec<u32> = classes.iter().map(|class| class.id).filter(|&id| !is_inner(id)).collect();
            let classified = classify::classify(self.device, tree.handle, &ends, self.report)?;
            let default = match (classified.default, given) {
                (Some(class), _) => Some(class),
                (None, Some(minor)) => {
                    let class = tree.handle | minor & 0xffff;
                    if !ends.contains(&class) {
                        let what = format!("default {minor:x}");
                        let why = "there is no such class without others below it: these packets are not shaped";
                        self.report.leave(&tree.place, what, why);
                    }
                    Some(class).filter(|class| ends.contains(class))
                }
                (None, None) => None,
            };
            if default.is_some() && keys.get("default").is_some() {
                self.report.leave(&tree.place, "default", "there is one class for packets that no filter knows");
            }
            let default = default.filter(|_| keys.get("default").is_none());
            if let Some(name) = default.and_then(|class| names.get(&class)) {
                keys.set("default", format!("\"{name}\""));
            }
            for class in &classes {
                let is_leaf = ends.contains(&class.id);
                let condition = classified.conditions.get(&class.id).cloned().unwrap_or_default();
                leaves.push(self.class(class, &kind, &names, is_leaf, condition, default == Some(class.id))?);
            }
        }
        self.same_netem(&mut leaves, trees, direction)?;
        direction.is_shaped |= kind == "htb"
            || kind == "hfsc"
                && leaves
                    .iter()
                    .filter(|leaf| leaf.keys.get("parent").is_none())
                    .all(|leaf| leaf.keys.get("ul").is_some());
        if leaves.is_empty() {
            self.report.leave(&first.place, &kind, "it has no classes: its packets are not shaped");
        }
        direction.queue = Queue { kind, keys, classes: leaves };
        simplify(direction);
        match self.alone(first) {
            Some(inside) if direction.queue.classes.is_empty() => self.tree(&[inside], direction),
            Some(inside) => self.plain(inside).map(drop),
            None => Ok(()),
        }
    }

    /// QFQ in the only class of another tree, which may be a link's bucket.
    fn alone(&self, tree: &Qdisc) -> Option<&'b Qdisc> {
        let [class] = self.device.classes_of(tree.handle)[..] else { return None };
        self.device.leaf(class.id).filter(|inside| inside.kind == "qfq" && tree.kind == "htb")
    }

    /// The names of all classes.
    fn names(&self, trees: &[&Qdisc]) -> BTreeMap<u32, String> {
        let mut names = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for tree in trees {
            for class in self.device.classes_of(tree.handle) {
                let (major, minor) = (class.id >> 16, class.id & 0xffff);
                let number = if trees.len() == 1 { format!("c{minor:x}") } else { format!("c{major:x}-{minor:x}") };
                let name = class.name.as_deref().map_or_else(|| number.clone(), label);
                let name = if taken.contains(&name) { format!("{name}-{minor:x}") } else { name };
                taken.insert(name.clone());
                names.insert(class.id, name);
            }
        }
        names
    }

    fn class(
        &mut self,
        class: &'b Class,
        kind: &str,
        names: &BTreeMap<u32, String>,
        is_leaf: bool,
        condition: Condition,
        is_default: bool,
    ) -> Result<Leaf, ImportError> {
        let place = &class.place;
        if class.kind != kind {
            let expected = format!("`{kind}`, the qdisc that it is a class of");
            return Err(ImportError::at(place, format!("a class of `{}`", class.kind), expected));
        }
        let mut keys = Keys::default();
        if let Parent::Class(parent) = class.parent {
            match names.get(&parent) {
                Some(name) => keys.set("parent", format!("\"{name}\"")),
                None => {
                    let expected = "the number of a class that is set up";
                    return Err(ImportError::at(place, format!("`parent {}`", units::show_id(parent)), expected));
                }
            }
        }
        let settings = match kind {
            "htb" => self.htb(class)?,
            "qfq" => disciplines::read(QFQ_CLASS, &class.options, &self.context(place), self.report)?,
            _ => self.hfsc(class)?,
        };
        keys.0.extend(settings.0);
        let inside = self.device.leaf(class.id);
        let queue = match inside {
            Some(qdisc) if !is_leaf => {
                self.report.leave(&qdisc.place, &qdisc.kind, "a class above others has no queue");
                None
            }
            Some(qdisc) if qdisc.kind == "netem" => None,
            Some(qdisc) if qdisc.kind == "qfq" && kind == "htb" && names.len() == 1 => None,
            Some(qdisc) => {
                if qdisc.stab.is_some() {
                    self.report.leave(&qdisc.place, "stab", "the framing is that of the class or of the link");
                }
                Some(self.plain(qdisc)?)
            }
            None => None,
        };
        let name = names.get(&class.id).cloned().unwrap_or_default();
        Ok(Leaf { name, keys, queue, condition, is_default })
    }

    /// netem in every leaf, with the same options, is the link's; elsewhere it is left over.
    fn same_netem(
        &mut self,
        leaves: &mut [Leaf],
        trees: &[&'b Qdisc],
        direction: &mut Direction,
    ) -> Result<(), ImportError> {
        let classes = trees.iter().flat_map(|tree| self.device.classes_of(tree.handle));
        let ids: Vec<u32> = classes.map(|class| class.id).collect();
        let is_inner = |id: u32| self.device.classes.iter().any(|class| class.parent == Parent::Class(id));
        let ends: Vec<(usize, u32)> = ids.into_iter().enumerate().filter(|&(_, id)| !is_inner(id)).collect();
        let found: Vec<(usize, Option<&'b Qdisc>)> =
            ends.into_iter().map(|(at, id)| (at, self.device.leaf(id).filter(|qdisc| qdisc.kind == "netem"))).collect();
        let Some(first) = found.iter().find_map(|(_, qdisc)| *qdisc) else { return Ok(()) };
        let is_same = found.iter().all(|(_, qdisc)| qdisc.is_some_and(|qdisc| qdisc.options == first.options));
        let mut wire = None;
        for (at, qdisc) in found {
            let Some(qdisc) = qdisc else { continue };
            let netem = netem::read(&qdisc.options, &self.context(&qdisc.place), &mut Read::default())?;
            if is_same && wire.is_none() {
                wire = Some(netem::read(&qdisc.options, &self.context(&qdisc.place), self.report)?);
            } else if !is_same {
                let what = format!("netem {}", qdisc.options.join(" "));
                self.report.leave(&qdisc.place, what, "delay and losses are a link's, not a class's");
            }
            let queue = match self.device.inside(qdisc.handle) {
                Some(inside) => self.plain(inside)?,
                None => {
                    let mut keys = Keys::default();
                    keys.set("limit", format!("\"{}p\"", netem.limit));
                    ("pfifo".to_owned(), self.accept("pfifo", keys, &qdisc.place))
                }
            };
            if let Some(leaf) = leaves.get_mut(at) {
                leaf.queue = Some(queue);
            }
        }
        if let Some(wire) = wire {
            direction.has_delay |= wire.has_delay;
            for (key, value) in wire.keys.0 {
                direction.keys.set(&key, value);
            }
        }
        Ok(())
    }

    fn htb(&mut self, class: &Class) -> Result<Keys, ImportError> {
        let place = &class.place;
        let mut keys = disciplines::read(HTB_CLASS, &class.options, &self.context(place), self.report)?;
        for (key, default) in [("overhead", "\"0B\""), ("mpu", "\"0B\""), ("linklayer", "\"ethernet\""), ("prio", "0")]
        {
            if keys.get(key) == Some(default) {
                keys.remove(key);
            }
        }
        let bps = |keys: &Keys, key: &str| {
            keys.get(key).and_then(|text| ackclock_units::parse_rate(text.trim_matches('"')).ok())
        };
        if let (Some(rate), Some(ceil)) = (bps(&keys, "rate"), bps(&keys, "ceil")) {
            if ceil == rate {
                keys.remove("ceil");
            } else if ceil < rate {
                let why = format!("a ceiling below the rate is the rate: {ceil}");
                self.report.leave(place, format!("rate {rate} ceil {ceil}"), why);
                keys.set("rate", format!("\"{ceil}\""));
                keys.remove("ceil");
            }
        }
        if keys.get("prio").and_then(|prio| prio.parse::<u64>().ok()).is_some_and(|prio| prio > 7) {
            let prio = keys.remove("prio").unwrap_or_default();
            // `htb_change_class` takes 7 for more.
            keys.set("prio", "7");
            self.report.leave(place, format!("prio {prio}"), "the last priority is 7, as for the kernel");
        }
        Ok(keys)
    }

    fn hfsc(&mut self, class: &Class) -> Result<Keys, ImportError> {
        let place = &class.place;
        let mut keys = Keys::default();
        let mut words = class.options.iter().map(String::as_str).peekable();
        let has = |word: &str, full: &str| !word.is_empty() && full.starts_with(word);
        while let Some(word) = words.next() {
            let name = ["rt", "ls", "sc", "ul"].into_iter().find(|name| has(word, name));
            let Some(name) = name else {
                return Err(ImportError::at(place, format!("`hfsc` has no option `{word}`"), "rt, ls, sc or ul"));
            };
            let mut curve = Keys::default();
            while let Some(option) = words.peek().copied() {
                let option = ["m1", "m2", "d", "umax", "dmax", "rate"].into_iter().find(|name| has(option, name));
                let Some(option) = option.filter(|option| *option != "rate" || curve.get("m2").is_none()) else {
                    break;
                };
                words.next();
                let missing = || ImportError::at(place, format!("`{name} {option}` has no value"), "a value");
                let text = words.next().ok_or_else(missing)?;
                let value = match option {
                    "d" | "dmax" => {
                        let time = units::time(text).map_err(|expected| wrong(place, option, text, expected))?;
                        (time > ackclock_units::Span::ZERO).then(|| format!("\"{time}\""))
                    }
                    "umax" => {
                        let size = units::size32(text).map_err(|expected| wrong(place, option, text, expected))?;
                        (size > 0).then(|| format!("\"{size}B\""))
                    }
                    _ => disciplines::rate(option, text, true, &self.context(place))?.map(|rate| format!("\"{rate}\"")),
                };
                let key = if option == "rate" { "m2" } else { option };
                value.into_iter().for_each(|value| curve.set(key, value));
                if key == "m2" {
                    break;
                }
            }
            self.curve(place, name, curve, &mut keys)?;
        }
        if keys.get("rt").is_none() && keys.get("ls").is_none() {
            return Err(ImportError::at(
                place,
                "a class without `rt`, `ls` and `sc`",
                "one of them, such as ls m2 1mbit",
            ));
        }
        Ok(keys)
    }

    /// A service curve; `sc` is both a real-time and a link-sharing one.
    fn curve(&mut self, place: &Place, name: &str, mut curve: Keys, keys: &mut Keys) -> Result<(), ImportError> {
        if curve.get("m2").is_none() {
            if curve.get("m1").is_none() {
                return Err(ImportError::at(place, format!("`{name}` without a slope"), "`m2 RATE` or `rate RATE`"));
            }
            let why = "a second slope of 0 is 8 bit/s here";
            self.report.leave(place, format!("{name} ... m2 0"), why);
            curve.set("m2", "\"8bit\"");
        }
        match (curve.get("umax").is_some(), curve.get("dmax").map(str::to_owned)) {
            (true, None) => {
                return Err(ImportError::at(place, format!("`{name} umax` without dmax"), "`dmax TIME` behind it"));
            }
            // A delay without a unit of work is a convex curve.
            (false, Some(time)) => {
                curve.remove("dmax");
                curve.set("d", time);
            }
            _ => {}
        }
        if curve.get("d").is_none() && curve.get("m1").is_some() {
            curve.remove("m1");
        }
        let fields: Vec<String> = curve.0.iter().map(|(key, value)| format!("{key} = {value}")).collect();
        for name in if name == "sc" { &["rt", "ls"][..] } else { std::slice::from_ref(&name) } {
            keys.set(name, format!("{{ {} }}", fields.join(", ")));
        }
        Ok(())
    }

    /// The keys of a queue that a scenario takes; others are left over with the reason.
    fn accept(&mut self, kind: &str, keys: Keys, place: &Place) -> Keys {
        let memory = (kind.to_owned(), keys.0.clone());
        if let Some(known) = self.accepted.get(&memory) {
            return known.clone();
        }
        let mut keys = keys;
        while let Some((title, expected)) = refusal(kind, &keys) {
            let part = |key: &str| format!("queue.{key}:");
            let guilty = keys.0.iter().map(|(key, _)| key.clone()).find(|key| title.contains(&part(key)));
            let reason = title.rsplit(": ").next().unwrap_or(&title).to_owned();
            match guilty {
                Some(key) => {
                    let value = keys.remove(&key).unwrap_or_default();
                    let why = format!("{reason}; {expected}: the default holds");
                    self.report.leave(place, format!("{kind} {key} {}", value.trim_matches('"')), why);
                }
                None if keys.0.is_empty() => break,
                None => {
                    self.report.leave(place, kind, format!("{reason}: the defaults hold"));
                    keys = Keys::default();
                }
            }
        }
        self.accepted.insert(memory, keys.clone());
        keys
    }
}

/// Why a scenario would refuse a queue, and what it expects.
fn refusal(kind: &str, keys: &Keys) -> Option<(String, String)> {
    let text = format!(
        "schema = 1\n[run]\nduration = \"1s\"\n[links.x]\nrate = \"1mbit\"\nqueue = {}\n[[flows]]\nid = \"x\"\npath = [\"x\"]\n",
        inline(kind, keys)
    );
    let error = Scenario::parse("", text.as_bytes(), &[]).err()?;
    let problem = error.problems().next()?;
    Some((problem.title.to_owned(), problem.notes.first().cloned().unwrap_or_default()))
}

/// A queue on a line of TOML.
pub(crate) fn inline(kind: &str, keys: &Keys) -> String {
    let mut fields = vec![format!("kind = \"{kind}\"")];
    let mut tables: Vec<(&str, Vec<String>)> = Vec::new();
    for (key, value) in &keys.0 {
        let Some((table, key)) = key.split_once('.') else {
            fields.push(format!("{key} = {value}"));
            continue;
        };
        let field = format!("{key} = {value}");
        match tables.iter_mut().find(|(name, _)| *name == table) {
            Some((_, fields)) => fields.push(field),
            None => tables.push((table, vec![field])),
        }
    }
    fields.extend(tables.into_iter().map(|(name, inner)| format!("{name} = {{ {} }}", inner.join(", "))));
    if fields.len() == 1 { format!("\"{kind}\"") } else { format!("{{ {} }}", fields.join(", ")) }
}

/// HTB with a single class is a link of its rate, with its bucket in place of the transmitter.
fn simplify(direction: &mut Direction) {
    let [class] = &direction.queue.classes[..] else { return };
    let is_plain =
        class.keys.0.iter().all(|(key, _)| ["rate", "burst", "cburst", "quantum", "prio"].contains(&key.as_str()));
    if direction.queue.kind != "htb" || !class.is_default || !is_plain || direction.keys.get("rate").is_some() {
        return;
    }
    let size = |key: &str| match class.keys.get(key).map(|text| ackclock_units::parse_size(text.trim_matches('"'))) {
        Some(Ok(ackclock_units::Size::Bytes(bytes))) => Some(bytes),
        _ => None,
    };
    // Both buckets have the same rate: the smaller one decides.
    let rate = class.keys.get("rate").unwrap_or_default().to_owned();
    let default = ackclock_units::parse_rate(rate.trim_matches('"')).map(|rate| u64::from(htb_bucket(rate)));
    let bucket = match (size("burst"), size("cburst")) {
        (Some(one), Some(other)) => Some(one.min(other)),
        (one, other) => one.or(other).filter(|&bytes| default.is_ok_and(|default| bytes < default)),
    };
    let burst = bucket.map_or("\"htb\"".to_owned(), |bytes| format!("\"{bytes}B\""));
    let (kind, keys) = class.queue.clone().unwrap_or(("pfifo".to_owned(), Keys::default()));
    direction.keys.set("rate", rate);
    direction.keys.set("burst", burst);
    direction.queue = Queue { kind, keys, classes: Vec::new() };
}

/// A name that a scenario takes: a letter, then letters, digits, `-` and `_`.
pub(crate) fn label(text: &str) -> String {
    let mut label = String::new();
    for c in text.chars() {
        let c = if c.is_ascii_alphanumeric() || c == '_' { c } else { '-' };
        if c != '-' || !label.ends_with('-') {
            label.push(c);
        }
    }
    let label = label.trim_matches('-');
    let label: String = label.chars().take(40).collect();
    if label.starts_with(|c: char| c.is_ascii_alphabetic()) { label } else { format!("x{label}") }
}
