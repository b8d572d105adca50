//! Flows whose hosts are network stacks of one's own: `host = "kernel"`.
//!
//! Each end is a host on the virtual clock, with an address and its half of the transfer, and the
//! flow's path is the one between them. A flow is known by its raw values before anything is read,
//! because the clock depends on it.

use std::collections::BTreeMap;
use std::net::Ipv4Addr;
use std::sync::Arc;

use ackclock_sim::spec::{
    Application, EndsSpec, FlowGroup, FlowSpec, HostSpec, NodeSpec, OwnStack, OwnStackConfig, PipeSpec,
};
use ackclock_traffic::Distribution;
use ackclock_units::{Span, Time as Instant};

use super::group::{Group, GroupArrivals, MAX_FLOWS};
use super::interrupts::FlowInterrupts;
use super::route::{DIRECTIONS, Setting};
use super::times::Times;
use crate::application;
use crate::document::{Node, Table};
use crate::ends::{self, Ends};
use crate::fields::Fields;
use crate::host::{self, HEADERS, Host, MIN_MSS, NamedHost, Place};
use crate::hosts;
use crate::keys;
use crate::own::Own;
use crate::paths::{self, Network};
use crate::quantity::{Bytes, Flag, OneOf, OrOff, Problem, Text, Time, Whole};

/// The most flows between stacks: each is two hosts, maybe processes with their memory.
const MOST: usize = 64;

/// The most connections of a stack.
const MOST_CONNECTIONS: u64 = 256;

/// Ports as in captures of flows between hosts of the simulator.
const PORTS: [u16; 2] = [40_000, 5001];

/// The first address: the range for benchmarks (RFC 2544), of which each flow has four.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 0);

/// The largest MSS of a kernel whose packets no router cuts.
const MAX_MSS: u64 = 65_495;

/// The hosts of the flows between stacks, by the flows' indices.
#[derive(Debug, Default)]
pub(crate) struct CarriedFlows(BTreeMap<usize, [usize; 2]>);

/// The hosts and the path that a flow adds to a run.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Carriage {
    /// `None` is an endpoint in this process.
    stacks: [Option<OwnStackConfig>; 2],
    mtu: u16,
    pipe: PipeSpec,
    nodes: [usize; 2],
}

/// An end of a flow.
enum End {
    Stack(OwnStackConfig),
    Ours(Box<Host>),
}

/// The stack that a value of `host` names.
fn named<'o>(node: &Node, own: &'o Own) -> Option<&'o Arc<OwnStack>> {
    let name = node.table().map_or(node.str(), |table| table.get("kind")?.node.str())?;
    own.stacks().iter().find(|stack| stack.can_carry_flows() && stack.name() == name)
}

/// The stacks of sender and receiver that a flow names.
fn stacks<'o>(flow: &Table, own: &'o Own) -> [Option<&'o Arc<OwnStack>>; 2] {
    let sender = flow.get("host").and_then(|entry| named(&entry.node, own));
    let receiver = flow.get("receiver").and_then(|entry| match entry.node.table() {
        Some(table) => named(&table.get("host")?.node, own),
        None => named(&entry.node, own),
    });
    [sender, receiver]
}

/// The flows of the document with a stack at either end: index and id.
fn all<'d>(flows: Option<&'d Node>, own: &'d Own) -> impl Iterator<Item = (usize, String)> + 'd {
    let items = flows.and_then(Node::array).unwrap_or_default();
    items.iter().enumerate().filter_map(|(index, item)| {
        let table = item.table()?;
        let is_between_hosts = ["from", "to"].iter().any(|key| table.get(key).is_some());
        if is_between_hosts || stacks(table, own) == [None, None] {
            return None;
        }
        let id = table.get("id").and_then(|entry| entry.node.str()).map(str::to_owned);
        Some((index, id.unwrap_or_else(|| format!("flow{index}"))))
    })
}

/// Returns `true` if a flow has a stack at either end.
pub(crate) fn are_there(flows: Option<&Node>, own: &Own) -> bool {
    all(flows, own).next().is_some()
}

impl CarriedFlows {
    /// Adds hosts for the flows between stacks, each with an address that no other has.
    pub(crate) fn join(network: &mut Network, flows: Option<&Node>, own: &Own) -> CarriedFlows {
        let mut places = BTreeMap::new();
        let mut subnets = (0..).map(|number: u32| u32::from(FIRST_ADDRESS) + 4 * number);
        for (index, id) in all(flows, own).take(MOST + 1) {
            let is_free = |subnet: &u32| {
                let nodes = network.nodes.iter().filter_map(NodeSpec::ipv4);
                !nodes.map(u32::from).any(|address| address & !3 == *subnet)
            };
            let subnet = subnets.find(is_free).unwrap_or_else(|| unreachable!("there are more subnets than hosts"));
            let first = network.nodes.len();
            network.nodes.extend([("sender", 1), ("receiver", 2)].map(|(end, number)| NodeSpec {
                name: format!("{id}-{end}"),
                addresses: vec![(Ipv4Addr::from(subnet + number).into(), 30)],
                ..NodeSpec::default()
            }));
            places.insert(index, [first, first + 1]);
        }
        CarriedFlows(places)
    }

    /// The hosts of a flow between stacks.
    pub(super) fn of(&self, index: usize) -> Option<[usize; 2]> {
        self.0.get(&index).copied()
    }
}

impl Carriage {
    /// Completes the hosts, and adds their path.
    pub(crate) fn complete(&self, network: &mut Network) {
        for (&node, stack) in self.nodes.iter().zip(&self.stacks) {
            if let Some(node) = network.nodes.get_mut(node) {
                node.mtu = self.mtu;
                node.stack.clone_from(stack);
            }
        }
        network.pipes.push(self.pipe.clone());
    }
}

/// Reads a flow with a stack at either end, between `nodes`: with the keys that a stack can follow.
pub(super) fn read(
    mut fields: Fields<'_>,
    id: Option<String>,
    table: &Table,
    setting: Setting<'_>,
    nodes: [usize; 2],
) -> Option<Group> {
    let own = fields.own();
    let [of_sender, of_receiver] = stacks(table, own);
    let kind = of_sender.or(of_receiver)?.name();
    check_names(&fields, table, setting, nodes);
    let count = fields.or(keys::COUNT, 1, Whole(1, MAX_FLOWS));
    let (path, split) = paths::of(&mut fields, keys::PATH, setting.names);
    let reverse = fields.or(keys::DIRECTION, "forward", DIRECTIONS) == "reverse";
    let place = Place { mtu: None };
    let mut sender = match of_sender {
        Some(stack) => End::Stack(host_of(&mut fields, stack, true)),
        None => End::Ours(Box::new(host::read(&mut fields, None, place))),
    };
    let bytes = fields.maybe("bytes", Bytes(1, u64::MAX >> 8));
    let times = Times {
        start: fields.or(keys::START, Span::ZERO, Time::Any),
        start_jitter: Span::ZERO,
        stop: fields.maybe(keys::STOP, Time::Positive),
        abort: fields.maybe("abort", Time::Positive),
        restart_every: None,
    };
    times.check(&mut fields, table, Span::ZERO, setting.duration);
    let (mut write_size, mut application) = (FlowSpec::WRITE_SIZE, Application::Bulk);
    check_count(&fields, table, count, &sender);
    let mtu = match &mut sender {
        End::Stack(stack) => {
            application_of(&mut fields, stack, table);
            stack.set_number("connections", count as f64);
            of_flow(&mut fields, stack, bytes, &times)
        }
        End::Ours(host) => {
            write_size = fields.or(keys::WRITE_SIZE, FlowSpec::WRITE_SIZE, Bytes(1, u64::MAX >> 8));
            application = application::read(&mut fields);
            match &**host {
                Host::Endpoint(endpoint, _) => endpoint.config.mss.saturating_add(HEADERS as u16),
                Host::Smoltcp(stock) => stock.mtu,
            }
        }
    };
    let receiver = receiver(&mut fields, &sender, place);
    let (sender_stack, sender) = sender.split();
    let (receiver_stack, receiver) = receiver?.split();
    super::traffic::check(&mut fields, table, &application, [&sender, &receiver]);
    if [&sender, &receiver].iter().any(|host| matches!(host, HostSpec::Smoltcp(_))) {
        let problem = Problem::new("a smoltcp host has no connection to another program", "another `host`");
        fields.reject("receiver", &table.get("receiver")?.node, problem);
    }
    fields.finish_of(kind);
    let stacks = [sender_stack, receiver_stack];
    let kernels = [0, 1].map(|end| stacks[end].is_some());
    let between = if reverse { [nodes[1], nodes[0]] } else { nodes };
    let pipe = PipeSpec { between, path, split, router: None };
    let (path, split) = ends::way(&pipe, !reverse);
    let alike = FlowGroup {
        path: path.clone(),
        split: split.clone(),
        mptcp: None,
        reverse,
        sender,
        receiver,
        bytes,
        application,
        write_size,
        dscp: 0,
        abort: times.abort.map(|abort| Instant::ZERO + abort),
        schedule: Vec::new(),
        metrics: None,
        hosts: Some(nodes.map(|node| node as u32)),
    };
    let [source_port, port] = PORTS;
    let source_port = kernels[0].then_some(source_port);
    let ends = Ends {
        spec: EndsSpec { nodes, port, source_port, check: false },
        path,
        subflows: Vec::new(),
        split,
        reverse,
        kernels,
        mtus: [mtu; 2],
    };
    Some(Group {
        id: id?,
        alike: alike.into(),
        interrupts: FlowInterrupts::default(),
        parallel: count,
        stagger: Span::ZERO,
        ends: Some(ends),
        among: None,
        carriage: Some(Carriage { stacks, mtu, pipe, nodes }.into()),
        outside: true,
        start: times.start,
        start_jitter: Span::ZERO,
        stop: times.stop,
        arrivals: GroupArrivals::default(),
        restart_every: None,
        end: [times.stop, times.abort].into_iter().flatten().fold(setting.duration, Span::min),
    })
}

/// Reports too many of these flows, and hosts of the file with the names of this one's.
fn check_names(fields: &Fields<'_>, table: &Table, setting: Setting<'_>, nodes: [usize; 2]) {
    let (network, Some(entry)) = (setting.network, table.get("host").or(table.get("receiver"))) else { return };
    if setting.carried.0.len() > MOST {
        let problem = Problem::new("too many flows between stacks", format!("at most {MOST}"));
        fields.reject("host", &entry.node, problem);
    }
    for node in nodes {
        let name = &network.nodes[node].name;
        if network.nodes.iter().filter(|other| other.name == *name).count() > 1 {
            let title = format!("there is a host `{name}` in the file");
            fields.reject("host", &entry.node, Problem::new(title, "another name for it, which is this flow's host"));
        }
    }
}

/// Reports several connections of an end that has one.
fn check_count(fields: &Fields<'_>, table: &Table, count: u64, sender: &End) {
    let Some(entry) = table.get("count").filter(|_| count > 1) else { return };
    let problem = match sender {
        End::Stack(stack) if stack.has_number("connections") => {
            if count <= MOST_CONNECTIONS {
                return;
            }
            Problem::new("too many connections of a stack", format!("at most {MOST_CONNECTIONS}"))
        }
        End::Stack(_) => Problem::new("this stack has one connection", "an entry of `[[flows]]` for each"),
        End::Ours(_) => {
            Problem::new("a sender that faces a stack has one connection", "an entry of `[[flows]]` for each")
        }
    };
    fields.reject("count", &entry.node, problem);
}

/// The settings of a stack under the key `host`.
fn host_of(fields: &mut Fields<'_>, stack: &Arc<OwnStack>, sends: bool) -> OwnStackConfig {
    let names = [stack.name()];
    fields.choose(host::HOST, names[0], &OneOf { what: "host", names: &names }, |_, fields| {
        let mut config = OwnStackConfig::of_flow(Arc::clone(stack), sends);
        hosts::settings(fields, &mut config);
        config
    })
}

/// The receiving end: that of the sender unless it names another.
fn receiver(fields: &mut Fields<'_>, sender: &End, place: Place) -> Option<End> {
    let own = fields.own();
    let (entry, other) = (fields.get("receiver"), NamedHost::default().host());
    let Some(entry) = entry else {
        return match sender {
            End::Stack(stack) => Some(End::Stack(stack.receiver())),
            End::Ours(_) => None,
        };
    };
    if entry.node.table().is_none() {
        return match named(&entry.node, own) {
            Some(stack) => Some(End::Stack(OwnStackConfig::of_flow(Arc::clone(stack), false))),
            None => Some(End::Ours(Box::new(host::named(fields, "receiver", &entry.node, &other, place)?))),
        };
    }
    let mut section = fields.table("receiver", "the name of a host, or a table of knobs")?;
    let end = match section.peek("host").map(|node| named(node, own)) {
        None => {
            section.missing("host", "the receiver's: the settings of a stack are in `host`");
            return None;
        }
        Some(Some(stack)) => End::Stack(host_of(&mut section, stack, false)),
        Some(None) => End::Ours(Box::new(host::read(&mut section, None, place))),
    };
    section.finish();
    Some(end)
}

/// Reads the application of a stack that sends: a transfer, or requests.
fn application_of(fields: &mut Fields<'_>, stack: &mut OwnStackConfig, table: &Table) {
    let all = OneOf { what: "application of a stack", names: &["bulk", "request"] };
    let numbers = fields.choose(keys::APPLICATION, "bulk", &all, |kind, fields| {
        (kind == "request").then(|| {
            let sizes = [keys::SIZE, keys::RESPONSE].map(|key| {
                let size = Bytes(1, Distribution::MOST_BYTES);
                fields.required(key, size, "a size, such as \"20kB\"").unwrap_or(1) as f64
            });
            let think = fields.or(keys::THINK, Span::ZERO, Time::Any).as_secs_f64();
            let count = fields.or("requests", None, OrOff(Whole(1, u64::MAX >> 8))).unwrap_or(0) as f64;
            [("request_bytes", sizes[0]), ("response_bytes", sizes[1]), ("think_s", think), ("requests", count)]
        })
    });
    let (Some(numbers), Some(entry)) = (numbers, table.get("application")) else { return };
    if let Some(expected) = stack.set_text("app", "request") {
        fields.reject("application", &entry.node, Problem::new("not an application of this stack", expected));
    }
    for key in ["bytes", "receiver", "count"] {
        if let Some(entry) = table.get(key) {
            let expected = "a client and a server of one stack, and one connection, with `requests`";
            let problem = Problem::new("not with `request`", expected);
            fields.reject(key, &entry.node, problem);
        }
    }
    numbers.into_iter().for_each(|(key, value)| stack.set_number(key, value));
}

/// Reads what a stack that sends takes from its flow; returns the MTU.
fn of_flow(fields: &mut Fields<'_>, stack: &mut OwnStackConfig, bytes: Option<u64>, times: &Times) -> u16 {
    let cc = fields.or(keys::CC, stack.text("cc").unwrap_or_default().to_owned(), Text);
    if let (Some(expected), Some(entry)) = (stack.set_text("cc", &cc), fields.get(keys::CC)) {
        fields.reject("cc", &entry.node, Problem::new("not valid here", expected));
    }
    let mss = fields.or("mss", 1460, Bytes(MIN_MSS, MAX_MSS));
    let flags = ["ecn", "segmentation_offload"].map(|key| (key, fields.or(key, false, Flag)));
    let seconds = |span: Option<Span>| span.map_or(0.0, Span::as_secs_f64);
    let [source_port, port] = PORTS;
    let numbers = [
        ("bytes", bytes.map_or(0.0, |bytes| bytes as f64)),
        ("start_s", times.start.as_secs_f64()),
        ("stop_s", seconds(times.stop)),
        ("duration_s", seconds(times.abort.filter(|&abort| abort > times.start).map(|abort| abort - times.start))),
        ("source_port", f64::from(source_port)),
        ("port", f64::from(port)),
    ];
    let flags = flags.map(|(key, on)| (key, f64::from(u8::from(on))));
    numbers.into_iter().chain(flags).for_each(|(key, value)| stack.set_number(key, value));
    (mss + HEADERS) as u16
}

impl End {
    /// The stack, if it is one, and the end as a run has it.
    fn split(self) -> (Option<OwnStackConfig>, HostSpec) {
        match self {
            End::Stack(stack) => (Some(stack), HostSpec::Outside),
            End::Ours(host) => (None, host.spec()),
        }
    }
}
