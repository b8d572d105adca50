//! Notes on a scenario: parts with hosts behind devices that a clock leaves out, controllers that
//! go by marks over queues that do not mark, queues whose parameters do not fit their link, buffers
//! that do not fit their path, and links beside a topology that nothing takes.

use std::collections::BTreeSet;

use ackclock_aqm::QueueSpec;
use ackclock_sim::spec::{Application, Clock, DirectionSpec, FlowGroup, HostSpec, LinkSpec, NodeSpec};
use ackclock_units::{Rate, Span};

use crate::expect::Expect;
use crate::flow::Group;
use crate::plan::Plan;
use crate::workload::WorkloadEntry;

/// Sentences, each once.
pub(crate) fn of<'p>(plans: impl Iterator<Item = &'p Plan>, expects: &[Expect]) -> Vec<String> {
    let (mut notes, mut parts): (Vec<String>, Vec<String>) = Default::default();
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for plan in plans {
        let groups = plan.groups.iter().map(|group| (format!("flows.{}", group.id), &*group.alike));
        let groups = groups.chain(plan.workloads.iter().flat_map(WorkloadEntry::groups));
        for (name, group) in groups {
            without_marks(plan, &name, group).into_iter().for_each(&mut note);
        }
        idle(plan).for_each(&mut note);
        // The first point of a sweep is enough.
        let short = plan.groups.iter().filter_map(|group| short_of_window(plan, group));
        for (part, text) in plan.links.iter().flat_map(misfits).chain(short) {
            if !parts.contains(&part) {
                parts.push(part);
                note(text);
            }
        }
        let unseeded = |node: &NodeSpec| Some((node.name.clone(), node.stack.as_ref()?.unseeded()?));
        for (host, why) in plan.network.nodes.iter().filter_map(unseeded) {
            note(format!("hosts.{host}: runs do not repeat to the byte: {why}"));
        }
        if plan.network.nodes.is_empty() || matches!(plan.timing.clock, Some(Clock::Real | Clock::Virtual)) {
            continue;
        }
        let clock = match plan.timing.clock {
            Some(Clock::Replay(_)) => "a replay",
            _ => "the virtual clock",
        };
        note(format!("{clock} makes no devices and no namespaces"));
        if !plan.commands.is_empty() {
            let ids: Vec<&str> = plan.commands.iter().map(|command| command.id.as_str()).collect();
            note(format!("{clock} runs no commands: {}", ids.join(", ")));
        }
        if plan.timing.clock.is_none() {
            if plan.network.pipes.iter().any(|pipe| pipe.router.is_some()) {
                note(format!("{clock} has no routers: hops are not counted and no packet is too long"));
            }
            plan.groups.iter().flat_map(|group| stood_in(plan, group)).for_each(&mut note);
        }
    }
    let left_out = expects.iter().filter(|expect| expect.is_left_out()).count();
    if left_out > 0 {
        note(format!("expectations about `live` and `commands` apply on the live clock alone: {left_out} left out"));
    }
    notes
}

/// Notes that a link beside a topology is none of its own and on no path: its name may be misspelt.
fn idle(plan: &Plan) -> impl Iterator<Item = String> {
    let listed = plan.groups.iter().map(|group| &*group.alike);
    let groups = listed.chain(plan.workloads.iter().flat_map(WorkloadEntry::groups).map(|(_, group)| group));
    let others = |group: &FlowGroup| group.split.iter().flat_map(|split| split.others.concat()).collect::<Vec<_>>();
    let taken: BTreeSet<usize> = groups.flat_map(|group| group.path.iter().copied().chain(others(group))).collect();
    let links = plan.links[..plan.apart].iter().enumerate().filter(move |(link, _)| !taken.contains(link));
    links.map(|(_, link)| format!("links.{}: no link of the topology has this name, and no flow takes it", link.name))
}

/// A note that a controller which reacts to marks meets no queue that marks.
fn without_marks(plan: &Plan, name: &str, group: &FlowGroup) -> Option<String> {
    let HostSpec::Endpoint(sender) = &group.sender else { return None };
    let controllers = [&sender.cc].into_iter().chain(group.schedule.iter().map(|change| &change.cc));
    // RFC 8257 and the requirements of L4S (RFC 9331) leave losses to rules for classic traffic.
    let cc = controllers.map(|cc| cc.name()).find(|name| ["dctcp", "prague"].contains(name))?;
    let marks = |direction: &DirectionSpec| {
        let changes = direction.course.schedule.iter().filter_map(|change| change.queue.as_ref());
        [&direction.queue].into_iter().chain(changes).any(|queue| queue.marks())
    };
    let others = group.split.iter().flat_map(|split| &split.others).flatten();
    let data = |&link: &usize| {
        let link = &plan.links[link];
        if group.reverse { &link.reverse } else { &link.forward }
    };
    let directions: Vec<&DirectionSpec> = group.path.iter().chain(others).map(data).collect();
    if directions.iter().any(|direction| marks(direction)) {
        return None;
    }
    let queues: Vec<&str> = directions.iter().map(|direction| direction.queue.name()).collect();
    Some(format!(
        "{name}: `{cc}` goes by ECN marks, and no queue on its way marks ({}): it reacts to losses alone; `dualpi2` \
         marks, and others do with `ecn = true`",
        queues.join(", ")
    ))
}

/// A full frame of Ethernet.
const FRAME: u32 = 1514;

/// Time for `bytes` at a rate.
fn time_of(bytes: u64, rate: Rate) -> Span {
    Span::from_secs_f64(bytes as f64 * 8.0 / rate.as_bps() as f64)
}

/// A time to three digits.
fn rough(span: Span) -> String {
    match span.as_secs_f64() * 1e3 {
        ms if ms < 10.0 => format!("{ms:.2} ms"),
        ms if ms < 100.0 => format!("{ms:.1} ms"),
        ms => format!("{ms:.0} ms"),
    }
}

/// Parameters of a link's queues that its rate or their limit makes useless.
fn misfits(link: &LinkSpec) -> Vec<(String, String)> {
    let mut notes = Vec::new();
    for direction in [&link.forward, &link.reverse] {
        let (name, queue) = (&link.name, &direction.queue);
        if let (Some(target), Some(rate)) = (queue.target(), direction.rate)
            && direction.course.slots.is_none()
        {
            let frame = time_of(direction.overhead.of(FRAME).into(), rate);
            // `sch_cake`: no target below one and a half full packets. Here an empty queue of a
            // flow does not end the time above the target (Linux `codel_dequeue`), so that pings
            // behind one packet of others are dropped.
            if target < frame {
                let (kind, enough) = (queue.name(), rough(frame * 3 / 2));
                let sparse = if matches!(queue, QueueSpec::FqCodel(_)) { ", sparse flows included" } else { "" };
                let text = format!(
                    "links.{name}: a packet of {FRAME} bytes takes {} at {rate}, longer than the target of `{kind}`, \
                     {}: one packet in the way is a standing queue, and packets are dropped for it{sparse}; a target \
                     of {enough} avoids that",
                    rough(frame),
                    rough(target),
                );
                notes.push((format!("links.{name}.{kind}"), text));
            }
        }
        if let QueueSpec::Red(config) = queue {
            let ((min, max), limit) = (config.thresholds(), config.limit);
            let text = match () {
                () if min >= limit => {
                    format!("`red` drops nothing early: its `min`, {min} bytes, is not below its limit, {limit} bytes")
                }
                () if max > limit => {
                    format!("`red` is full, with {limit} bytes, before its average reaches `max`, {max} bytes")
                }
                () => continue,
            };
            notes.push((format!("links.{name}.red"), format!("links.{name}: {text}")));
        }
    }
    notes
}

/// A note, with a name for it, that the buffers of flows which send as much as they can bound their
/// windows below the capacity of their path, or below two segments.
fn short_of_window(plan: &Plan, group: &Group) -> Option<(String, String)> {
    let (name, count) = (format!("flows.{}", group.id), group.count());
    let group = &*group.alike;
    let (HostSpec::Endpoint(sender), HostSpec::Endpoint(receiver)) = (&group.sender, &group.receiver) else {
        return None;
    };
    let (send, receive) = (&sender.config, &receiver.config);
    let mss = u64::from(send.mss.min(receive.mss));
    let sent = send.transfer.send_tuning.is_none().then_some((send.send_buffer, "send_buffer"));
    let received = receive.transfer.receive_tuning.is_none().then_some((receive.receive_space(), "receive_buffer"));
    let (window, key) = sent.into_iter().chain(received).min()?;
    if window < 2 * mss {
        let found = format!("`{key}`, {window} bytes, is less than two segments of {mss} bytes");
        let text = format!("{name}: {found}: delayed ACKs wait for their timer");
        return Some((name, text));
    }
    let is_bulk = group.application == Application::Bulk && group.bytes.is_none();
    if !is_bulk || group.split.is_some() || group.mptcp.is_some() {
        return None;
    }
    let links = || group.path.iter().map(|&link| &plan.links[link]);
    let rates = links().filter_map(|link| if group.reverse { link.reverse.rate } else { link.forward.rate });
    let rate = rates.min_by_key(|rate| rate.as_bps())?.as_bps() as f64 / 1e6;
    let rtt = links().map(|link| (link.forward.delay + link.reverse.delay).as_secs_f64()).sum::<f64>();
    let most = window as f64 * 8.0 / 1e6 / rtt * count as f64;
    (rtt > 0.0 && most < rate).then(|| {
        let rtt = rough(Span::from_secs_f64(rtt));
        let held = format!("is less than its path holds: at most {most:.3} of {rate:.3} Mbit/s at an RTT of {rtt}");
        let text = format!("{name}: `{key}`, {window} bytes, {held}");
        (name, text)
    })
}

/// Notes on the stand-ins for the kernels of a flow.
fn stood_in(plan: &Plan, group: &Group) -> Vec<String> {
    let Some(ends) = &group.ends else { return Vec::new() };
    let name = |host: &HostSpec| match host {
        HostSpec::Endpoint(endpoint) => format!("{} with {}", endpoint.profile, endpoint.cc.name()),
        HostSpec::Smoltcp(stock) => format!("smoltcp with {}", stock.cc.name()),
        HostSpec::Outside => "a kernel".to_owned(),
        HostSpec::Datagrams(spec) => format!("the application `{}`", spec.application.name()),
    };
    let places = ends.kernels.iter().zip(ends.spec.nodes).zip([&group.alike.sender, &group.alike.receiver]);
    places
        .filter(|((kernel, _), _)| **kernel)
        .map(|((_, node), host)| {
            let (id, node) = (&group.id, &plan.network.nodes[node].name);
            format!("flows.{id}: the kernel of `{node}` is stood in for by {}", name(host))
        })
        .collect()
}
