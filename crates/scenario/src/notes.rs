//! Notes on a scenario: parts with hosts behind devices that a clock leaves out, and controllers
//! that go by marks over queues that do not mark.

use ackclock_sim::spec::{Clock, DirectionSpec, FlowGroup, HostSpec};

use crate::expect::Expect;
use crate::flow::Group;
use crate::plan::Plan;
use crate::workload::Workload;

/// Sentences, each once.
pub(crate) fn of<'p>(plans: impl Iterator<Item = &'p Plan>, expects: &[Expect]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for plan in plans {
        let groups = plan.groups.iter().map(|group| (format!("flows.{}", group.id), &*group.alike));
        let groups = groups.chain(plan.workloads.iter().flat_map(Workload::groups));
        groups.filter_map(|(name, group)| without_marks(plan, &name, group)).for_each(&mut note);
        if plan.network.nodes.is_empty() || plan.timing.is_live() {
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

/// That a controller which goes by marks meets no queue that marks.
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

/// Who takes the places of kernels in a flow.
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
