//! Notes on the parts of a scenario with hosts behind devices that a clock leaves out.

use ackclock_sim::spec::{Clock, HostSpec};

use crate::expect::Expect;
use crate::flow::Group;
use crate::plan::Plan;

/// Sentences, each once.
pub(crate) fn of<'p>(plans: impl Iterator<Item = &'p Plan>, expects: &[Expect]) -> Vec<String> {
    let mut notes: Vec<String> = Vec::new();
    let mut note = |text: String| {
        if !notes.contains(&text) {
            notes.push(text);
        }
    };
    for plan in plans.filter(|plan| !plan.network.nodes.is_empty() && !plan.timing.is_live()) {
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
