//! Multipath TCP: `transport = "mptcp"` with its `subflows`.

use std::net::IpAddr;

use ackclock_emulator::MAX_PATHS;
use ackclock_sim::spec::{
    Application, CcChange, HostSpec, MptcpSpec, NodeSpec, PathChange, PipeSpec, SchedulerKind, SubflowHosts,
};
use ackclock_units::Time as Instant;

use crate::cc;
use crate::document::Node;
use crate::fields::Fields;
use crate::keys;
use crate::paths::{self, Links, Network, links_of};
use crate::quantity::{Flag, Kind as _, OneOf, Problem, Time, Whole};
use crate::report::Diagnostic;

/// The value of `transport`.
pub(crate) const NAME: &str = "mptcp";

const SCHEDULERS: OneOf =
    OneOf { what: "scheduler", names: &["min_rtt", "linux", "round_robin", "redundant", "blest"] };

/// A subflow between two hosts, and the links between them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Subflow {
    pub(crate) hosts: SubflowHosts,
    pub(crate) path: Vec<usize>,
}

/// Returns `true` if a flow asks for MPTCP.
pub(crate) fn is_asked_for(fields: &Fields<'_>) -> bool {
    fields.peek("transport").is_some_and(|node| node.str() == Some(NAME))
}

/// The paths of the subflows: the links of the first, and the others.
pub(crate) fn subflows(fields: &mut Fields<'_>, links: &Links<'_>) -> (Vec<usize>, Vec<Vec<usize>>) {
    let expected = "the paths of two to 16 subflows, such as [[\"wlan\"], [\"hspa\"]]";
    for key in ["path", "paths"] {
        if let Some(entry) = fields.get(key) {
            let problem =
                Problem::new("not with `transport = \"mptcp\"`", "`subflows`, each with the links of its path");
            fields.reject(key, &entry.node, problem);
        }
    }
    let Some(entry) = fields.get(("subflows", "links of the path of each subflow of Multipath TCP")) else {
        fields.missing("subflows", expected);
        return Default::default();
    };
    let Some(nodes) = entry.node.array().filter(|nodes| (2..=MAX_PATHS).contains(&nodes.len())) else {
        let title = match entry.node.array() {
            Some([_]) => "a single subflow",
            _ => "not several paths",
        };
        fields.reject("subflows", &entry.node, Problem::new(title, expected));
        return Default::default();
    };
    let mut paths = nodes.iter().map(|node| links_of(fields, "subflows", node, links));
    (paths.next().unwrap_or_default(), paths.collect())
}

const HOSTS: &str = "the hosts of two to 16 subflows, such as [\"phone-wlan\", \"phone-lte\"]";

/// The hosts of one end of the subflows, by number.
pub(crate) fn hosts(fields: &Fields<'_>, key: &str, node: &Node, nodes: &[NodeSpec]) -> Option<Vec<usize>> {
    let Some(items) = node.array().filter(|items| (2..=MAX_PATHS).contains(&items.len())) else {
        let title = match node.array() {
            Some([_]) => "a single subflow",
            _ => "not the hosts of several subflows",
        };
        fields.reject(key, node, Problem::new(title, HOSTS));
        return None;
    };
    let other = if key == "from" { "to" } else { "from" };
    if let Some(there) = fields.peek(other).and_then(Node::array).filter(|there| there.len() != items.len())
        && key == "to"
    {
        let title = format!("{} hosts, and {} in `{other}`", items.len(), there.len());
        fields.reject(key, node, Problem::new(title, "as many as in `from`: each subflow is between two of them"));
        return None;
    }
    items.iter().map(|item| paths::host(fields, key, item, nodes)).collect()
}

/// The subflows between these pairs of hosts, of which `between` are the ways and whether they are
/// listed in this order.
pub(crate) fn between(
    fields: &Fields<'_>,
    node: &Node,
    network: &Network,
    pairs: &[[usize; 2]],
    between: &[(&PipeSpec, bool)],
) -> Option<Vec<Subflow>> {
    let refuse = |title: String, expected: &str| {
        fields.reject("to", node, Problem::new(title, expected));
        None
    };
    let shown = |[from, to]: [usize; 2]| format!("`{}` and `{}`", network.nodes[from].name, network.nodes[to].name);
    for end in [0, 1] {
        let machine = |pair: &[usize; 2]| {
            let node = &network.nodes[pair[end]];
            node.tun.is_some().then_some(&node.netns)
        };
        if let Some(pair) = pairs.iter().find(|pair| machine(pair) != machine(&pairs[0])) {
            let (one, other) = (&network.nodes[pairs[0][end]].name, &network.nodes[pair[end]].name);
            let title = format!("`{one}` and `{other}` are different machines");
            return refuse(title, "devices in one `netns`, or hosts in this process, for all subflows of an end");
        }
    }
    let mut subflows: Vec<Subflow> = Vec::new();
    for (&nodes, &(pipe, along)) in pairs.iter().zip(between) {
        if subflows.iter().any(|other| other.hosts.nodes == nodes) {
            return refuse(format!("two subflows between {}", shown(nodes)), "hosts of its own for each subflow");
        }
        if pipe.split.is_some() {
            return refuse(format!("several paths between {}", shown(nodes)), "a single one for each subflow");
        }
        if along != between[0].1 {
            let title = format!("the path between {} is listed the other way round", shown(nodes));
            return refuse(title, "`between` in the same order for all subflows");
        }
        let address = |node: usize| network.nodes[node].addresses.first().map(|&(address, _)| address);
        let first = |node: usize| network.nodes[node].ipv4().map(IpAddr::V4).or(address(node));
        let addresses = [first(nodes[0])?, first(nodes[1])?];
        subflows.push(Subflow { hosts: SubflowHosts { nodes, addresses }, path: pipe.path.clone() });
    }
    Some(subflows)
}

/// Reads the use of the subflows, if there are any. A sender that is a Linux has its scheduler.
pub(crate) fn of(
    fields: &mut Fields<'_>,
    others: &Option<Vec<Vec<usize>>>,
    between: &[Subflow],
    hosts: [&HostSpec; 2],
    application: &Application,
    schedule: &[CcChange],
) -> Option<Box<MptcpSpec>> {
    if is_asked_for(fields) {
        check(fields, hosts, !schedule.is_empty(), application);
        cc::forbid_learners(fields, hosts[0], "of subflows");
    }
    let others = others.clone()?;
    let count = others.len() + 1;
    let is_linux = matches!(hosts[0], HostSpec::Endpoint(endpoint) if endpoint.profile.starts_with("linux"));
    let default = if is_linux { SchedulerKind::Linux } else { SchedulerKind::MinRtt };
    let name =
        fields.or(("scheduler", "the Multipath TCP scheduler: the subflow for new data"), default.name(), SCHEDULERS);
    let scheduler = SchedulerKind::ALL.into_iter().find(|kind| kind.name() == name).unwrap_or(default);
    let helps = !matches!(scheduler, SchedulerKind::Linux | SchedulerKind::Redundant);
    Some(Box::new(MptcpSpec {
        others,
        backups: backups(fields, count),
        scheduler,
        opportunistic_retransmission: fields.or(
            ("opportunistic_retransmission", "retransmit on a faster subflow the data that blocks the shared window"),
            helps,
            Flag,
        ),
        penalization: fields.or(
            ("penalization", "halve the window of the subflow that blocks the shared window"),
            helps,
            Flag,
        ),
        changes: changes(fields, count),
        hosts: between.iter().map(|subflow| subflow.hosts).collect(),
    }))
}

/// The subflows that are backups.
fn backups(fields: &mut Fields<'_>, count: usize) -> Vec<usize> {
    let Some(entry) = fields.get(("backups", "numbers of the backup subflows")) else { return Vec::new() };
    let expected = format!("numbers of subflows from 1 to {count}, such as [2]");
    let Some(nodes) = entry.node.array() else {
        fields.reject("backups", &entry.node, Problem::new("not a list", expected));
        return Vec::new();
    };
    nodes.iter().filter_map(|node| subflow(fields, "backups", node, count)).collect()
}

fn subflow(fields: &Fields<'_>, key: &str, node: &Node, count: usize) -> Option<usize> {
    match Whole(1, count as u64).read(node) {
        Ok(number) => Some(number as usize - 1),
        Err(problem) => {
            fields.reject(key, node, problem);
            None
        }
    }
}

/// When the sender gives up a path, and takes it up again.
fn changes(fields: &mut Fields<'_>, count: usize) -> Vec<PathChange> {
    let expected = "changes, such as [{ at = \"10s\", subflow = 1, up = false }]";
    let Some(entry) = fields.get(("path_changes", "paths that the sender closes or opens again")) else {
        return Vec::new();
    };
    let Some(items) = entry.node.array() else {
        fields.reject("path_changes", &entry.node, Problem::new("not a list of changes", expected));
        return Vec::new();
    };
    let mut changes: Vec<PathChange> = Vec::new();
    for (index, item) in items.iter().enumerate() {
        let Some(mut of) = fields.item("path_changes", index, item, expected) else { continue };
        let at = of.required(keys::AT, Time::Positive, "a time, such as \"10s\"");
        let path = of.required(
            ("subflow", "number of the subflow, from 1"),
            Whole(1, count as u64),
            "the number of a subflow, from 1",
        );
        let up = of.required(
            ("up", "`false` closes the subflow"),
            Flag,
            "`false` where the path is given up, `true` where it is taken up again",
        );
        of.finish();
        let (Some(at), Some(path), Some(up)) = (at, path, up) else { continue };
        let at = Instant::ZERO + at;
        if changes.last().is_some_and(|last| last.at > at) {
            let error = Diagnostic::new("path_changes: not in order", &item.place, "earlier than the one before");
            fields.push(error.note("expected changes in order of time"));
        }
        changes.push(PathChange { at, path: path as usize - 1, up });
    }
    changes
}

/// Checks what does not go with several subflows.
fn check(fields: &Fields<'_>, hosts: [&HostSpec; 2], has_schedule: bool, application: &Application) {
    let Some(transport) = fields.peek("transport") else { return };
    let refuse = |title: &str, expected: &str| {
        fields.reject("transport", transport, Problem::new(title, expected));
    };
    if hosts.iter().all(|host| matches!(host, HostSpec::Outside)) {
        refuse("MPTCP between two kernels", "a flow for each of its subflows, or an end of ackclock's");
    } else if hosts.iter().any(|host| !matches!(host, HostSpec::Endpoint(_) | HostSpec::Outside)) {
        refuse("MPTCP not with a smoltcp host", "a host with an endpoint of ackclock at both ends");
    } else if hosts.iter().any(|host| {
        let HostSpec::Endpoint(endpoint) = host else { return false };
        let transfer = &endpoint.config.transfer;
        transfer.receive_tuning.is_some() || transfer.send_tuning.is_some()
    }) {
        refuse("MPTCP not with buffers that are tuned", "\"tcp\", or buffers of a fixed size");
    } else if has_schedule {
        refuse("MPTCP not with controllers that change", "\"tcp\", or no `schedule`");
    } else if application.connections().is_some() {
        refuse("MPTCP not with an application that opens connections of its own", "\"tcp\", or another application");
    } else if let Some(key) = ["arrivals", "results"].into_iter().find(|key| fields.peek(key).is_some()) {
        refuse(&format!("MPTCP not with `{key}`"), "\"tcp\", or flows that are listed");
    }
}
