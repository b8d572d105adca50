//! `from` and `to` of a flow: the hosts that its two ends are on.

use std::collections::BTreeMap;
use std::ops::Range;

use ackclock_sim::spec::{EndsSpec, NodeSpec, PipeSpec, SplitSpec, WayBack};

use crate::document::Node;
use crate::fields::Fields;
use crate::keys;
use crate::mptcp::{self, Subflow};
use crate::paths::{self, Network};
use crate::quantity::{OneOf, Problem, Whole};
use crate::report::{Diagnostic, Place};

const DATA: OneOf = OneOf { what: "kind of data", names: &["any", "pattern"] };

/// The ends of a flow, and the path between their hosts.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Ends {
    pub(crate) spec: EndsSpec,
    pub(crate) path: Vec<usize>,
    /// The subflows of a flow over Multipath TCP; none of another.
    pub(crate) subflows: Vec<Subflow>,
    pub(crate) split: Option<SplitSpec>,
    /// The data goes from the second host of the path to the first.
    pub(crate) reverse: bool,
    /// `true` for sender and receiver if they are kernels.
    pub(crate) kernels: [bool; 2],
    /// The MTUs of the hosts' devices.
    pub(crate) mtus: [u16; 2],
}

/// Returns `true` if a flow names hosts in place of a path.
pub(crate) fn are_named(fields: &mut Fields<'_>) -> bool {
    let named = ["from", "to"].map(|key| fields.get(key).is_some());
    let further = ["port", "source_port", "data"];
    if named == [false, false] {
        for (key, entry) in further.map(|key| (key, fields.get(key))) {
            let Some(entry) = entry else { continue };
            let title = format!("{}: `{key}` without `from` and `to`", fields.shown());
            let error = Diagnostic::new(title, &entry.key_place, "means nothing for a flow over a path");
            fields.push(error.note("expected the hosts of the flow, `from` and `to`, in place of its path"));
        }
    }
    named != [false, false]
}

/// Reads the ends of a flow that names hosts; `None` was reported.
pub(crate) fn read(fields: &mut Fields<'_>, network: &Network) -> Option<Ends> {
    for key in ["path", "paths", "direction", "subflows"] {
        if let Some(entry) = fields.get(key) {
            let title = format!("{}: `{key}` together with `from` and `to`", fields.shown());
            let error = Diagnostic::new(title, &entry.key_place, "conflicts with `from` and `to`");
            fields.push(error.note("expected none: a flow between hosts uses their path in `[[paths]]`"));
        }
    }
    let nodes = &network.nodes;
    let pairs = pairs(fields, nodes);
    let port =
        fields.required(("port", "port of the receiver"), PORT, "the port that the receiver listens on, such as 5201");
    let source_port = fields
        .maybe(("source_port", "port of the sender; flows of a group use consecutive ones"), PORT)
        .map(|port| port as u16);
    let check =
        fields.or(("data", "compare data from a kernel with that of `ackclock pattern`"), "any", DATA) == "pattern";
    let (pairs, port) = (pairs?, port? as u16);
    let first = *pairs.first()?;
    let kernels = first.map(|node| nodes[node].is_outside());
    if let Some(entry) = fields.get("data").filter(|_| check && kernels != [true, false]) {
        let expected = "\"any\": only data sent by a kernel to a host in this process is compared with the pattern";
        fields.reject("data", &entry.node, Problem::new("there is nothing to compare", expected));
    }
    let entry = fields.get("to")?;
    let between = between(fields, &entry.node, network, &pairs)?;
    let &(pipe, along) = between.first()?;
    let subflows = match mptcp::is_asked_for(fields) {
        true => mptcp::between(fields, &entry.node, network, &pairs, &between)?,
        false => Vec::new(),
    };
    let (path, split) = way(pipe, along);
    Some(Ends {
        spec: EndsSpec { nodes: first, port, source_port, check },
        path,
        split,
        subflows,
        reverse: !along,
        kernels,
        mtus: [0, 1].map(|end| pairs.iter().map(|pair| nodes[pair[end]].mtu).min().unwrap_or(u16::MAX)),
    })
}

/// The two hosts of a flow, or of each of its subflows.
fn pairs(fields: &mut Fields<'_>, nodes: &[NodeSpec]) -> Option<Vec<[usize; 2]>> {
    let is_multipath = mptcp::is_asked_for(fields);
    let [from, to] =
        [(keys::FROM, "the host that sends, and opens the connection"), (keys::TO, "the host that receives")].map(
            |(key, expected)| match fields.get(key) {
                Some(entry) if is_multipath => mptcp::hosts(fields, key.0, &entry.node, nodes),
                Some(entry) => paths::host(fields, key.0, &entry.node, nodes).map(|host| vec![host]),
                None => {
                    fields.missing(key.0, expected);
                    None
                }
            },
        );
    Some(from?.into_iter().zip(to?).map(<[usize; 2]>::from).collect())
}

/// The link or path between each pair of hosts, and `true` if it is listed in their order.
fn between<'n>(
    fields: &Fields<'_>,
    node: &Node,
    network: &'n Network,
    pairs: &[[usize; 2]],
) -> Option<Vec<(&'n PipeSpec, bool)>> {
    let nodes = &network.nodes;
    let name = |node: usize| nodes[node].name.as_str();
    let refuse = |title: String, expected: &str| fields.reject("to", node, Problem::new(title, expected));
    if let Some(&[host, _]) = pairs.iter().find(|[from, to]| from == to) {
        refuse(format!("a flow from `{}` to itself", name(host)), "two different hosts");
        return None;
    }
    let is_kernel = |node: usize| nodes[node].is_outside();
    let only_v6 = |node: &&usize| nodes[**node].addresses.iter().all(|(address, _)| address.is_ipv6());
    let mixed = pairs.iter().filter(|[from, to]| is_kernel(*from) != is_kernel(*to));
    if let Some(&node) = mixed.flatten().find(only_v6) {
        let title = format!("the host `{}` has no IPv4 address", name(node));
        refuse(title, "an IPv4 address: a host in this process supports nothing else");
    }
    let find = |&[from, to]: &[usize; 2]| {
        let found = network.between(from, to);
        if found.is_none() {
            let title = format!("there is no path between `{}` and `{}`", name(from), name(to));
            let expected = format!("a section `[[paths]]` with between = [\"{}\", \"{}\"]", name(from), name(to));
            refuse(title, &expected);
        }
        found
    };
    pairs.iter().map(find).collect()
}

/// The path of data between hosts, with its split. Against the direction of the paths it takes the
/// way back.
pub(crate) fn way(pipe: &PipeSpec, along: bool) -> (Vec<usize>, Option<SplitSpec>) {
    match pipe.split.clone() {
        Some(SplitSpec { others, along: acks, back: WayBack::Split(rule), after_handshake, whole_units }) if !along => {
            let back = WayBack::Split(acks);
            (pipe.path.clone(), Some(SplitSpec { others, along: rule, back, after_handshake, whole_units }))
        }
        Some(split @ SplitSpec { back: WayBack::Over(path), .. }) if !along => {
            (split.path(&pipe.path, path).to_vec(), None)
        }
        split => (pipe.path.clone(), split),
    }
}

const PORT: Whole = Whole(1, u16::MAX as u64);

/// The connections of all flows between hosts, which are told apart by their ports.
#[derive(Debug, Default)]
pub(crate) struct PortsInUse {
    /// Flows by sender, receiver and port.
    taken: BTreeMap<([usize; 2], u16), Vec<Taken>>,
}

/// Ports of a sender that the flow of this name has; `None` is any.
type Taken = (Option<Range<u64>>, String);

impl PortsInUse {
    /// Adds the `count` connections of a flow; reports those that cannot be told from others'.
    pub(crate) fn add(&mut self, fields: &Fields<'_>, place: &Place, id: &str, ends: &Ends, count: u64) {
        let EndsSpec { nodes, port, source_port, .. } = ends.spec;
        let fail = |title: String, label: &str, note: &str| {
            fields.push(Diagnostic::new(format!("flows.{id}: {title}"), place, label).note(note));
        };
        let own = source_port.map(|port| u64::from(port)..u64::from(port) + count);
        if own.as_ref().is_some_and(|own| own.end > u64::from(u16::MAX) + 1) {
            let note = "expected a `source_port` for the first of them with as many ports above it";
            return fail(format!("there are no {count} ports from `source_port` on"), "the first one", note);
        }
        // An endpoint in this process gets an unused port.
        if own.is_none() && !ends.kernels[0] {
            return;
        }
        // Between two kernels those that are alike take connections in turn.
        if own.is_none() && count > 1 && !ends.kernels[1] {
            let note = "expected `source_port`, the port of the first of them, which the others' follow";
            return fail(format!("{count} connections of a kernel to one port"), "cannot be told apart", note);
        }
        let others = self.taken.entry((nodes, port)).or_default();
        let meets = |other: &Option<Range<u64>>| match (other, &own) {
            (Some(other), Some(own)) => other.start < own.end && own.start < other.end,
            _ => true,
        };
        if let Some((_, other)) = others.iter().find(|(other, _)| meets(other)) {
            let note = "expected another `port`, or a `source_port` of its own for each";
            fail(format!("the same hosts and ports as flows.{other}"), "cannot be told from it", note);
        }
        others.push((own, id.to_owned()));
    }
}
