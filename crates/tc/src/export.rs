//! The links of a run as a script of `tc` commands.
//!
//! # Departures
//! - netem delays before the qdisc inside it, not after it: with a constant delay the packets that
//!   wait are the same.
//! - A token bucket of HTB stands for a transmitter.
//! - Linux counts Ethernet's header of 14 bytes in every packet.

use std::fmt::Write;

use ackclock_aqm::{
    Class, EtsConfig, Filter, HfscClass, HtbClass, Overhead, PrioConfig, PrioMap, QfqClass, ServiceCurve,
};
use ackclock_scenario::htb_bucket;
use ackclock_sim::spec::{DirectionSpec, LinkLayer, LinkSpec, QueueSpec};
use ackclock_units::{Rate, Span};

use crate::{disciplines, netem, units};

/// tc's `priomap` by default.
const PRIOMAP: &str = "1 2 2 2 1 2 0 0 1 1 1 1 1 1 1 1";
/// More packets than a delay line holds: netem's limit counts those that it delays.
const LIMIT: u32 = 1_000_000;

/// The script for links, with a device of its own for each direction.
pub fn export(links: &[LinkSpec]) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# The links of an ackclock scenario, each direction on the device that sends that way.\n\
         # The kernel counts Ethernet's header in each packet, 14 bytes that the scenario does not have.\nset -e\n",
    );
    let links: Vec<&LinkSpec> = links.iter().filter(|link| !link.is_interface).collect();
    let variable = |number: usize, way: &str| match links.len() {
        1 => way.to_owned(),
        _ => format!("{way}{number}"),
    };
    for (number, link) in links.iter().enumerate() {
        let _ = write!(text, "\n# Link {}.\n", link.name);
        if link.medium.is_some() {
            text.push_str("# Not in the kernel: medium: both directions share it\n");
        }
        for (way, direction) in [("FORWARD", &link.forward), ("REVERSE", &link.reverse)] {
            let variable = variable(number, way);
            let _ = writeln!(text, "{variable}=${{{variable}:-eth{}}}", 2 * number + usize::from(way == "REVERSE"));
            one(&mut text, &variable, direction);
        }
    }
    text
}

struct Script<'t> {
    text: &'t mut String,
    device: String,
}

impl Script<'_> {
    fn add(&mut self, object: &str, words: &[&str]) {
        let words: Vec<&str> = words.iter().copied().filter(|word| !word.is_empty()).collect();
        let _ = writeln!(self.text, "tc {object} add dev \"${}\" {}", self.device, words.join(" "));
    }

    fn left(&mut self, what: &str) {
        let _ = writeln!(self.text, "# Not in the kernel: {what}");
    }
}

fn one(text: &mut String, device: &str, direction: &DirectionSpec) {
    let _ = writeln!(text, "tc qdisc del dev \"${device}\" root 2>/dev/null || true");
    let mut script = Script { text, device: device.to_owned() };
    let mut left = Vec::new();
    let (wire, lost) = netem::write(direction);
    left.extend(lost);
    let stab = netem::write_stab(direction, &mut left);
    if direction.device.is_some() {
        left.push(
            "device_limit: the ring of a device is set by `ethtool -G`, its interrupts by `ethtool -C`".to_owned(),
        );
    }
    if !direction.course.schedule.is_empty() {
        left.push(format!(
            "schedule: {} changes, each by `tc qdisc change` at its time",
            direction.course.schedule.len()
        ));
    }
    if direction.course.autorate.is_some() {
        left.push("autorate: cake-autorate sets the rate while it runs".to_owned());
    }
    if let Some(trace) = &direction.course.trace {
        let losses = if trace.has_loss() { ", without its losses" } else { "" };
        left.push(format!("trace: rate and delay are the means of the trace{losses}"));
    }
    left.iter().for_each(|what| script.left(what));
    let stab = stab.join(" ");
    // The root: netem, if there is something for it.
    let (at, stab) = match wire.is_empty() {
        true => ("root".to_owned(), stab),
        false => {
            script.add("qdisc", &["root handle 1:", &stab, "netem", &wire.join(" "), "limit", &LIMIT.to_string()]);
            ("parent 1:1".to_owned(), String::new())
        }
    };
    let is_shaper = match &direction.queue {
        QueueSpec::Tbf(_) | QueueSpec::Htb(_) | QueueSpec::Hfsc(_) => true,
        QueueSpec::Cake(cake) => cake.bandwidth.is_some(),
        _ => false,
    };
    match (direction.rate, is_shaper) {
        (Some(rate), false) => shaped(&mut script, &at, &stab, direction, rate),
        (Some(rate), true) => {
            script
                .left(&format!("rate = \"{rate}\": the device has to send at this rate; the queue shapes to its own"));
            queue(&mut script, &at, &stab, 0x10, &direction.queue);
        }
        (None, _) => queue(&mut script, &at, &stab, 0x10, &direction.queue),
    }
}

/// A class of HTB in place of a transmitter, with the queue in it.
fn shaped(script: &mut Script<'_>, at: &str, stab: &str, direction: &DirectionSpec, rate: Rate) {
    script.add("qdisc", &[at, "handle 10:", stab, "htb default 1"]);
    let bucket = direction.burst.filter(|&burst| burst != htb_bucket(rate));
    let bucket = bucket.map(|burst| format!("burst {burst} cburst {burst}")).unwrap_or_default();
    if !rate.as_bps().is_multiple_of(8) {
        script.left(&format!("rate = \"{rate}\": `tc` cuts it to bytes per second"));
    }
    script.add("class", &["parent 10: classid 10:1 htb rate", &units::show_rate(rate), &bucket]);
    queue(script, "parent 10:1", "", 0x20, &direction.queue);
}

/// A queue at its place; `number` is that of its qdisc.
fn queue(script: &mut Script<'_>, at: &str, stab: &str, number: u32, spec: &QueueSpec) {
    let handle = format!("handle {number:x}:");
    match spec {
        QueueSpec::Htb(htb) => {
            let ids = ids(&htb.classes);
            let (mut words, left) = disciplines::write(spec);
            left.iter().for_each(|what| script.left(what));
            let default = htb.default.as_ref().and_then(|name| ids.iter().find(|(known, _)| known == name));
            default.iter().for_each(|(_, minor)| words.extend(["default".to_owned(), format!("{minor:x}")]));
            script.add("qdisc", &[at, &handle, stab, "htb", &words.join(" ")]);
            classes(script, number, &htb.classes, &ids, "htb", htb_class);
        }
        QueueSpec::Hfsc(hfsc) => {
            let ids = ids(&hfsc.classes);
            let (mut words, left) = disciplines::write(spec);
            left.iter().for_each(|what| script.left(what));
            let default = hfsc.default.as_ref().and_then(|name| ids.iter().find(|(known, _)| known == name));
            default.iter().for_each(|(_, minor)| words.extend(["default".to_owned(), format!("{minor:x}")]));
            script.add("qdisc", &[at, &handle, stab, "hfsc", &words.join(" ")]);
            classes(script, number, &hfsc.classes, &ids, "hfsc", hfsc_class);
        }
        QueueSpec::Qfq(qfq) => {
            let ids = ids(&qfq.classes);
            let (words, left) = disciplines::write(spec);
            left.iter().for_each(|what| script.left(what));
            script.add("qdisc", &[at, &handle, stab, "qfq", &words.join(" ")]);
            classes(script, number, &qfq.classes, &ids, "qfq", |_, QfqClass { weight, maxpkt }| {
                format!("weight {weight} maxpkt {maxpkt}")
            });
            match qfq.default.as_ref().and_then(|name| ids.iter().find(|(known, _)| known == name)) {
                Some((_, minor)) => {
                    let target = format!("parent {number:x}: prio 3 matchall classid {number:x}:{minor:x}");
                    script.add("filter", &[&target]);
                }
                None => script.left("packets of no class: they are dropped"),
            }
        }
        QueueSpec::Prio(config) => prio(script, &[at, &handle, stab], number, *config),
        QueueSpec::Ets(config) => ets(script, &[at, &handle, stab], number, config),
        QueueSpec::Drr(config) => drr(script, &[at, &handle, stab], number, config),
        _ => {
            let (kind, words) = plain(script, spec);
            script.add("qdisc", &[at, &handle, stab, &kind, &words]);
        }
    }
}

/// A queue without others in it, with what the kernel does not have of it.
fn plain(script: &mut Script<'_>, spec: &QueueSpec) -> (String, String) {
    let (words, left) = disciplines::write(spec);
    if disciplines::is_known(spec.name()) {
        left.iter().for_each(|what| script.left(what));
        return (spec.name().to_owned(), words.join(" "));
    }
    script.left(&format!("queue = \"{}\": pfifo is in its place", spec.name()));
    left.iter().for_each(|what| script.left(what));
    ("pfifo".to_owned(), String::new())
}

/// The numbers of classes: those in their names, or else in their order.
fn ids<S>(classes: &[Class<S>]) -> Vec<(std::sync::Arc<str>, u32)> {
    let number = |name: &str| {
        let digits = name.strip_prefix('c')?;
        let is_plain = !digits.starts_with('0')
            && digits.bytes().all(|byte| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte));
        u32::from_str_radix(digits, 16).ok().filter(|&number| is_plain && number > 0 && number < 0xfff0)
    };
    let named: Option<Vec<u32>> = classes.iter().map(|class| number(&class.name)).collect();
    let numbers = named.unwrap_or_else(|| (1..=classes.len() as u32).collect());
    classes.iter().map(|class| std::sync::Arc::clone(&class.name)).zip(numbers).collect()
}

fn classes<S>(
    script: &mut Script<'_>,
    number: u32,
    classes: &[Class<S>],
    ids: &[(std::sync::Arc<str>, u32)],
    kind: &str,
    settings: impl Fn(&mut Script<'_>, &S) -> String,
) {
    let id = |name: &str| ids.iter().find(|(known, _)| **known == *name).map_or(0, |(_, minor)| *minor);
    // A class is set up after the one above it.
    let mut open: Vec<&Class<S>> = classes.iter().collect();
    let mut done: Vec<&str> = Vec::new();
    let mut leaf = 0;
    while !open.is_empty() {
        let ready = |class: &&Class<S>| class.parent.as_deref().is_none_or(|parent| done.contains(&parent));
        let Some(next) = open.iter().position(ready) else { return };
        let class = open.remove(next);
        done.push(&class.name);
        let minor = id(&class.name);
        let parent = class.parent.as_deref().map_or(String::new(), |parent| format!("{:x}", id(parent)));
        let words = settings(script, &class.settings);
        let place = format!("parent {number:x}:{parent} classid {number:x}:{minor:x}");
        script.add("class", &[&place, kind, &words]);
        if classes.iter().any(|other| other.parent.as_ref() == Some(&class.name)) {
            continue;
        }
        leaf += 1;
        queue(script, &format!("parent {number:x}:{minor:x}"), "", (number << 8) + leaf, &class.queue);
        filter(script, number, minor, &class.name, &class.filter);
    }
}

fn htb_class(script: &mut Script<'_>, class: &HtbClass) -> String {
    let HtbClass { rate, ceil, burst, cburst, quantum, prio, overhead } = class;
    for rate in [Some(rate), ceil.as_ref()].into_iter().flatten().filter(|rate| rate.as_bps() % 8 != 0) {
        script.left(&format!("rate {rate}: `tc` cuts it to bytes per second"));
    }
    let mut words = vec!["rate".to_owned(), units::show_rate(*rate)];
    if let Some(ceil) = ceil.filter(|ceil| ceil != rate) {
        words.extend(["ceil".to_owned(), units::show_rate(ceil)]);
    }
    let numbers = [
        ("burst", *burst),
        ("cburst", *cburst),
        ("quantum", quantum.map(u64::from)),
        ("prio", Some(u64::from(*prio)).filter(|&prio| prio > 0)),
    ];
    for (name, value) in numbers {
        value.iter().for_each(|value| words.extend([name.to_owned(), value.to_string()]));
    }
    words.extend(framing(script, *overhead));
    words.join(" ")
}

/// The framing that a class of HTB counts.
fn framing(script: &mut Script<'_>, overhead: Overhead) -> Vec<String> {
    let mut words = Vec::new();
    if overhead.bytes > 0 {
        words.extend(["overhead".to_owned(), overhead.bytes.to_string()]);
    }
    if overhead.mpu > 0 {
        words.extend(["mpu".to_owned(), overhead.mpu.to_string()]);
    }
    match overhead.layer {
        LinkLayer::Ethernet => {}
        LinkLayer::Atm => words.extend(["linklayer", "atm"].map(str::to_owned)),
        LinkLayer::Ptm => script.left("linklayer = \"ptm\": HTB knows cells of ATM"),
    }
    words
}

fn hfsc_class(script: &mut Script<'_>, class: &HfscClass) -> String {
    let mut words = Vec::new();
    let is_sc = class.rt.is_some() && class.rt == class.ls;
    let curves = match is_sc {
        true => vec![("sc", class.rt), ("ul", class.ul)],
        false => vec![("rt", class.rt), ("ls", class.ls), ("ul", class.ul)],
    };
    for (name, curve) in curves {
        let Some(ServiceCurve { m1, d, m2 }) = curve else { continue };
        words.push(name.to_owned());
        let mut slope = |name: &str, bps: u64, words: &mut Vec<String>| {
            if !bps.is_multiple_of(8) {
                script.left(&format!("{name} of {bps} bit/s: `tc` cuts it to bytes per second"));
            }
            let text = Rate::from_bps(bps / 8 * 8).map_or("0bit".to_owned(), |rate| rate.to_string());
            words.extend([name.to_owned(), text]);
        };
        if d > Span::ZERO {
            slope("m1", m1, &mut words);
            words.extend(["d".to_owned(), units::show_time(d)]);
        }
        slope("m2", m2, &mut words);
    }
    for curve in [class.rt, class.ls, class.ul].into_iter().flatten().filter(|curve| curve.d.as_nanos() % 1000 != 0) {
        script.left(&format!("d of {}: `tc` cuts it to microseconds", curve.d));
    }
    words.join(" ")
}

/// The filters of a class.
fn filter(script: &mut Script<'_>, number: u32, minor: u32, name: &str, filter: &Filter) {
    let target = format!("flowid {number:x}:{minor:x}");
    let parent = format!("parent {number:x}:");
    if !filter.flows.is_empty() {
        let flows: Vec<&str> = filter.flows.iter().map(|flow| &**flow).collect();
        script.left(&format!(
            "class {name}: flows {}: mark their packets, and add a filter `handle MARK fw {target}`",
            flows.join(", ")
        ));
        return;
    }
    let conditions = [filter.dscp != 0, filter.length.is_some(), filter.acks.is_some()];
    match conditions.iter().filter(|is_there| **is_there).count() {
        0 => return,
        1 => {}
        _ => return script.left(&format!("class {name}: several conditions together")),
    }
    if filter.dscp != 0 {
        for dscp in (0..64u64).filter(|dscp| filter.dscp >> dscp & 1 == 1) {
            let tos = format!("{:#04x} 0xfc", dscp << 2);
            script.add("filter", &[&parent, "protocol ip prio 1 u32 match ip dsfield", &tos, &target]);
            script.add("filter", &[&parent, "protocol ipv6 prio 2 u32 match ip6 priority", &tos, &target]);
        }
    }
    match filter.length {
        // Below a power of two the upper bits are 0.
        Some((0, most)) if (most + 1).is_power_of_two() && most < 0xffff => {
            let mask = format!("0x0000 {:#06x} at 2", 0xffff & !most);
            script.add("filter", &[&parent, "protocol ip prio 1 u32 match u16", &mask, &target]);
        }
        Some((least, most)) => script.left(&format!("class {name}: packets of {least} to {most} bytes")),
        None => {}
    }
    match filter.acks {
        Some(true) => script.add(
            "filter",
            &[
                &parent,
                "protocol ip prio 1 u32 match ip protocol 6 0xff match u8 0x05 0x0f at 0 match u16 0x0000 0xffc0 at 2 \
                 match u8 0x10 0xff at 33",
                &target,
            ],
        ),
        Some(false) => script.left(&format!("class {name}: packets that are no pure ACKs")),
        None => {}
    }
}

/// The queues in bands.
fn in_bands(script: &mut Script<'_>, number: u32, bands: usize, limit: u64) {
    if limit == 1000 {
        return;
    }
    for band in 1..=bands as u32 {
        let place = format!("parent {number:x}:{band:x} handle {:x}: pfifo limit {limit}", (number << 4) + band);
        script.add("qdisc", &[&place]);
    }
}

fn other_map(script: &mut Script<'_>, map: PrioMap) {
    if map != PrioMap::Linux {
        script.left("map: the bands of the kernel are by the priority of a packet, by default those of \"linux\"");
    }
}

fn prio(script: &mut Script<'_>, place: &[&str], number: u32, config: PrioConfig) {
    other_map(script, config.map);
    script.add("qdisc", &[place, &["prio"]].concat());
    in_bands(script, number, 3, config.limit);
}

fn ets(script: &mut Script<'_>, place: &[&str], number: u32, config: &EtsConfig) {
    other_map(script, config.map);
    let strict = config.strict.unwrap_or(0).min(3);
    let quanta: Vec<String> =
        (strict as usize..3).map(|band| config.quanta[band].unwrap_or(config.quantum).to_string()).collect();
    let strict = if strict > 0 { format!("strict {strict}") } else { String::new() };
    let quanta = if quanta.is_empty() { String::new() } else { format!("quanta {}", quanta.join(" ")) };
    script.add("qdisc", &[place, &["ets bands 3", &strict, &quanta, "priomap", PRIOMAP]].concat());
    in_bands(script, number, 3, config.limit);
}

fn drr(script: &mut Script<'_>, place: &[&str], number: u32, config: &EtsConfig) {
    script.add("qdisc", &[place, &["drr"]].concat());
    let bands = config.map.bands();
    for band in 0..bands {
        let quantum = config.quanta[band].unwrap_or(config.quantum);
        let class = format!("parent {number:x}: classid {number:x}:{:x} drr quantum {quantum}", band + 1);
        script.add("class", &[&class]);
    }
    in_bands(script, number, bands, config.limit);
    // The band of most codepoints is that of what no other filter knows.
    let rest =
        (0..bands).max_by_key(|band| (0..64).filter(|dscp| config.map.band(*dscp) == *band).count()).unwrap_or(0);
    for dscp in (0..64u8).filter(|dscp| config.map.band(*dscp) != rest) {
        let target = format!("{:#04x} 0xfc flowid {number:x}:{:x}", dscp << 2, config.map.band(dscp) + 1);
        script.add("filter", &[&format!("parent {number:x}: protocol ip prio 1 u32 match ip dsfield {target}")]);
        script.add("filter", &[&format!("parent {number:x}: protocol ipv6 prio 2 u32 match ip6 priority {target}")]);
    }
    script.add("filter", &[&format!("parent {number:x}: prio 3 matchall classid {number:x}:{:x}", rest + 1)]);
}
