//! Flows: groups of connections with what they carry and when.

use std::collections::BTreeSet;

use ackclock_emulator::Trace;
use ackclock_sim::spec::{CcChange, FlowGroup, HostSpec, LinkSpec};
use ackclock_sim::{EXPECTED_STOCK_RANGES, STOCK_RANGES};
use ackclock_units::{Span, Time as Instant};

use crate::document::{Node, Table};
use crate::dscp::Codepoint;
use crate::ends::{Ends, PortsInUse};
use crate::fields::{Context, Fields};
use crate::keys;
use crate::link::MAX_LINKS;
use crate::mptcp;
use crate::quantity::{Flag, Problem, Text, Time, Whole, is_name};
use crate::report::Diagnostic;
use crate::schedule;
pub(crate) use arrivals::MAX_ARRIVALS;
pub(crate) use carried::{CarriedFlows, are_there as are_carried};
pub(crate) use group::Group;
pub use group::MAX_FLOWS;
use interrupts::FlowInterrupts;
pub(crate) use route::Setting;
use route::{GroupRoute, route};
use times::Times;
pub(crate) use traffic::hosts_over_path;
use traffic::{Load, Traffic};

mod arrivals;
mod carried;
mod group;
mod interrupts;
mod route;
mod times;
mod traffic;

/// Memory that smoltcp's buffers may take in one run.
const MAX_STOCK_MEMORY: u64 = 4 << 30;

/// Reads `[[flows]]`.
pub(crate) fn read_all<'a>(root: &mut Fields<'a>, cx: &'a Context<'a>, setting: Setting<'_>) -> Vec<Group> {
    let expected = "at least one section `[[flows]]` with an `id` and a `path`";
    let Some(entry) = root.get(("flows", "connections, or streams of datagrams")) else {
        // Packets from outside need none.
        if !setting.outside && root.get("workloads").is_none() {
            let alone = "at least one section `[[flows]]`: on the virtual clock nothing else sends";
            root.missing("flows", if setting.network.nodes.is_empty() { expected } else { alone });
        }
        return Vec::new();
    };
    let items = match entry.node.array() {
        Some(items) if !items.is_empty() || setting.outside => items,
        _ => {
            root.reject("flows", &entry.node, Problem::new("not a list of flows", expected));
            return Vec::new();
        }
    };
    if items.len() as u64 > MAX_FLOWS {
        root.reject("flows", &entry.node, Problem::new("too many", format!("at most {MAX_FLOWS}")));
        return Vec::new();
    }
    let mut ports = PortsInUse::default();
    let mut ids = BTreeSet::new();
    let mut groups: Vec<Group> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(table) = item.table() else {
            root.reject("flows", item, Problem::new("not a flow", expected));
            continue;
        };
        let Some(group) = read(cx, index, item, table, setting) else { continue };
        let outside = [&group.alike.sender, &group.alike.receiver].contains(&&HostSpec::Outside);
        // A single packet takes the primary path both ways. A host outside takes time of its own.
        if !outside
            && !group.alike.path.is_empty()
            && group.alike.path.iter().all(|&link| takes_no_time(&setting.links[link]))
        {
            let entry = table.get("path").or_else(|| table.get("paths")).or_else(|| table.get("to"));
            let place = entry.map_or(&item.place, |entry| &entry.node.place);
            let label = "rates unlimited and delays 0, both ways";
            let error = Diagnostic::new(format!("flows.{}: a round trip takes no time", group.id), place, label);
            root.push(error.note("expected a rate or a delay on one of the links: time would stand still"));
        }
        if !ids.insert(group.id.clone()) {
            let place = table.get("id").map_or(&item.place, |entry| &entry.node.place);
            let error = Diagnostic::new(format!("two flows are called `{}`", group.id), place, "used a second time");
            root.push(error.note("expected an id of its own for each flow; `count` makes several that are alike"));
        }
        if let Some(ends) = &group.ends {
            let place =
                table.get("source_port").or_else(|| table.get("port")).map_or(&item.place, |entry| &entry.node.place);
            ports.add(root, place, &group.id, ends, group.count());
        }
        groups.push(group);
    }
    limits(root, &entry.node, &groups);
    groups
}

/// Returns `true` if packets ever pass a link in no time, in both directions.
pub(crate) fn takes_no_time(link: &LinkSpec) -> bool {
    [&link.forward, &link.reverse].iter().all(|direction| {
        let (mut rate, mut delay) = (direction.rate, direction.delay);
        let trace = direction.course.trace.as_deref();
        let no_delay = delay == Span::ZERO || trace.and_then(Trace::least_delay) == Some(Span::ZERO);
        let mut is_instant = rate.is_none() && no_delay;
        for change in &direction.course.schedule {
            rate = change.rate.unwrap_or(rate);
            delay = change.delay.unwrap_or(delay);
            is_instant |= rate.is_none() && delay == Span::ZERO;
        }
        is_instant && !trace.is_some_and(Trace::has_rate)
    })
}

/// Checks limits that concern several keys.
fn limits(root: &Fields<'_>, node: &Node, groups: &[Group]) {
    let (arriving, others): (Vec<&Group>, Vec<&Group>) = groups.iter().partition(|group| group.comes_and_goes());
    for (groups, most) in [(others, MAX_FLOWS), (arriving, MAX_ARRIVALS)] {
        let total = groups.iter().map(|group| group.count()).fold(0, u64::saturating_add);
        if total > most {
            let title = format!("{total} flows are too many");
            let error = Diagnostic::new(title, &node.place, "found here and in what follows");
            root.push(error.note(format!("at most {most}")));
        }
    }
    let interfaces = groups.iter().map(|group| group.count().saturating_mul(group.interrupts.len()));
    let (interfaces, most) = (interfaces.fold(0, u64::saturating_add), MAX_LINKS as u64);
    if interfaces > most {
        let title = format!("{interfaces} hosts with `interrupts` are too many");
        let error = Diagnostic::new(title, &node.place, "found here and in what follows");
        root.push(error.note(format!("at most {most}")));
    }
    let outside = groups.iter().find(|group| group.outside && group.alike.application.connections().is_some());
    if let Some(group) = outside {
        let title = format!("flows.{}.application: opens connections where packets come from outside", group.id);
        let error = Diagnostic::new(title, &node.place, "found here and in what follows");
        root.push(error.note("expected one connection that is `persistent`, or the virtual clock"));
    }
    let memory = |host: &HostSpec| match host {
        HostSpec::Smoltcp(stock) => stock.send_buffer + stock.receive_buffer,
        HostSpec::Endpoint(_) | HostSpec::Outside | HostSpec::Datagrams(_) => 0,
    };
    let memory: u64 = groups
        .iter()
        .map(|group| {
            group.count().min(MAX_FLOWS).saturating_mul(memory(&group.alike.sender) + memory(&group.alike.receiver))
        })
        .fold(0, u64::saturating_add);
    if memory > 0 && STOCK_RANGES != EXPECTED_STOCK_RANGES {
        let title =
            format!("smoltcp hosts hold {STOCK_RANGES} ranges out of order in this build, not {EXPECTED_STOCK_RANGES}");
        let note = format!("build ackclock with SMOLTCP_ASSEMBLER_MAX_SEGMENT_COUNT={EXPECTED_STOCK_RANGES}");
        root.push(Diagnostic::new(title, &node.place, "a smoltcp host here or in what follows").note(note));
    }
    if memory > MAX_STOCK_MEMORY {
        let title = format!("the buffers of smoltcp hosts would take {} MiB", memory >> 20);
        let note = format!("at most {} MiB; `send_buffer` and `receive_buffer` set them", MAX_STOCK_MEMORY >> 20);
        root.push(Diagnostic::new(title, &node.place, "found here and in what follows").note(note));
    }
}

fn read<'a>(
    cx: &'a Context<'a>,
    index: usize,
    item: &'a Node,
    table: &'a Table,
    setting: Setting<'_>,
) -> Option<Group> {
    let (duration, path) = (setting.duration, format!("flows.{index}"));
    let shown = match table.get("id").and_then(|entry| entry.node.str()) {
        Some(id) if is_name(id) => format!("flows.{id}"),
        _ => path.clone(),
    };
    let mut fields = Fields::new(cx, table, path, &item.place).shown_as(shown);
    let id = name(&mut fields, table);
    if let Some(nodes) = setting.carried.of(index) {
        return carried::read(fields, id, table, setting, nodes);
    }
    let parallel = fields.or(keys::COUNT, 1, Whole(1, arrivals::most(table)));
    let each = parallel;
    let stagger = fields.or(("stagger", "time between the starts of successive flows"), Span::ZERO, Time::Any);
    let route = route(&mut fields, setting);
    let pairs = route.among.as_ref().map_or(1, |among| among.len() as u64);
    let parallel = each * pairs;
    let traffic = Traffic::read(&mut fields, table, &route, setting.outside);
    let dscp = dscp(&mut fields, table, &route, setting.outside);
    let times = Times::read(&mut fields);
    let mut schedule = match &traffic {
        Traffic::Connection { sender, .. } => schedule::read(&mut fields, sender, times.start, duration),
        Traffic::Datagrams(_) => Vec::new(),
    };
    let arrivals = arrivals::read(&mut fields, table, setting.outside, times.others(stagger));
    times.check(&mut fields, table, stagger * (parallel - 1), duration);
    let Load { mut sender, mut receiver, interrupts, bytes, write_size, application } = traffic.load();
    if let Some(ends) = route.ends.as_ref().filter(|_| setting.outside) {
        put_outside(&fields, ends, [&mut sender, &mut receiver], &mut schedule);
    }
    traffic::check(&mut fields, table, &application, [&sender, &receiver]);
    interrupts.check(&fields, table, !arrivals.sums, setting.outside);
    check_among(&mut fields, &route, &interrupts);
    let mptcp = mptcp::of(&mut fields, &route.subflows, route.between(), [&sender, &receiver], &application, &schedule);
    let metrics = memory(&mut fields, table, index, (&sender, mptcp.is_some() || setting.outside || pairs > 1));
    fields.finish();
    let GroupRoute { ends, among, path, split, reverse, .. } = route;
    let Times { start, start_jitter, stop, abort, restart_every } = times;
    let alike = FlowGroup {
        path,
        split,
        mptcp,
        reverse,
        sender,
        receiver,
        bytes,
        application,
        write_size,
        dscp,
        abort: abort.map(|abort| Instant::ZERO + abort),
        schedule,
        metrics,
        hosts: ends.as_ref().map(|ends| ends.spec.nodes.map(|node| node as u32)),
    };
    Some(Group {
        id: id?,
        alike: alike.into(),
        interrupts,
        parallel,
        stagger: if parallel > 1 { stagger } else { Span::ZERO },
        ends,
        among,
        carriage: None,
        outside: setting.outside,
        start,
        start_jitter,
        stop,
        arrivals,
        restart_every,
        end: [stop, abort].into_iter().flatten().fold(duration, Span::min),
    })
}

/// The memory of entry `index`, if the sender's host remembers from one connection to the next; not
/// elsewhere than where one endpoint of ours is the sender.
fn memory(
    fields: &mut Fields<'_>,
    table: &Table,
    index: usize,
    (sender, elsewhere): (&HostSpec, bool),
) -> Option<usize> {
    let remembers = fields.or(
        ("metrics_cache", "reuse path metrics of this entry's earlier connections (Linux `tcp_no_metrics_save` = 0)"),
        false,
        Flag,
    );
    let possible = matches!(sender, HostSpec::Endpoint(_)) && !elsewhere;
    if let (true, false, Some(entry)) = (remembers, possible, table.get("metrics_cache")) {
        let title =
            "not over MPTCP, in a live run, between several pairs, or with a host that is no endpoint of ackclock";
        fields.reject("metrics_cache", &entry.node, Problem::new(title, "`false`"));
    }
    (remembers && possible).then_some(index)
}

/// The codepoint of packets of our own.
fn dscp(fields: &mut Fields<'_>, table: &Table, route: &GroupRoute, outside: bool) -> u8 {
    let dscp = fields.or(keys::DSCP, 0, Codepoint);
    let kernels = outside && route.ends.as_ref().is_some_and(|ends| ends.kernels == [true, true]);
    if let (true, true, Some(entry)) = (kernels, dscp != 0, table.get("dscp")) {
        let problem = Problem::new("not where both ends are kernels", "an end of our own: kernels choose their own");
        fields.reject("dscp", &entry.node, problem);
    }
    dscp
}

fn name(fields: &mut Fields<'_>, table: &Table) -> Option<String> {
    let id = fields.required(keys::ID, Text, "a name, such as \"reno\"");
    if let (Some(id), Some(entry)) = (&id, table.get("id"))
        && !is_name(id)
    {
        let expected = "a letter, then letters, digits, `-` and `_`";
        fields.reject("id", &entry.node, Problem::new("not a valid flow name", expected));
    }
    id
}

/// Rejects what needs a path of the file where switches determine the path.
fn check_among(fields: &mut Fields<'_>, route: &GroupRoute, interrupts: &FlowInterrupts) {
    let Some(among) = &route.among else { return };
    let unlike = [
        ("transport", mptcp::is_asked_for(fields)),
        ("interrupts", interrupts.len() > 0),
        // Later rounds may have fewer connections, of which each would have to keep its pair.
        ("restart_every", among.len() > 1),
    ];
    for (key, is_used) in unlike {
        if let (true, Some(entry)) = (is_used, fields.get(key)) {
            let title = format!("{}: `{key}` between hosts of a topology", fields.shown());
            let error = Diagnostic::new(title, &entry.key_place, "not supported there");
            fields.push(error.note("expected another key, or a `path` over the links"));
        }
    }
}

/// Leaves to kernels which ends are theirs.
fn put_outside(fields: &Fields<'_>, ends: &Ends, hosts: [&mut HostSpec; 2], schedule: &mut Vec<CcChange>) {
    if ends.kernels[0] {
        // A kernel keeps its controller.
        schedule.clear();
    }
    for (kernel, host) in ends.kernels.into_iter().zip(hosts) {
        if kernel {
            *host = HostSpec::Outside;
        } else if let HostSpec::Smoltcp(_) = host {
            let title = format!("{}: a smoltcp host has no connection to another program", fields.shown());
            let error = Diagnostic::new(title, fields.place(), "one of its ends is called `smoltcp`");
            fields.push(error.note("expected another `host`, or the virtual clock"));
        }
    }
}
