//! The assignment of packets to flows, and of their data to the flow's stream.
//!
//! A local endpoint that opens a connection has its ports from the start; one that listens accepts
//! the first SYN to its port, and all others to that port belong to nobody. The source ports of
//! local endpoints are drawn from the seed: a kernel that has the last run's connection in
//! TIME-WAIT, in a namespace that outlives runs, does not meet it again unless the seed is the
//! same. (Then the SYN is answered by an ACK for the old connection, that is reset, and the SYN
//! sent again, with an initial window of one segment for it: RFC 5681 section 3.1.)
//!
//! A flow between two kernels comprises all connections to its port, or between its two ports:
//! iperf3 opens one for control in addition to those for data, with few bytes. Several flows to one
//! port (`count`) take connections in turn, as they open. `source_port` (`--cport` of iperf3)
//! singles one out.
//!
//! A local endpoint of Multipath TCP has a connection for each subflow, which [`subflows`] keeps.

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, FlowKey, OptionLayout, Segment};
use ackclock_sim::spec::{EndsSpec, FlowSpec, HostSpec, LiveSpec, NodeSpec, RunSpec};
use ackclock_sim::{FlowId, HostId, RECEIVER_PORT, SENDER_PORT};
use ackclock_units::Random;

pub(super) use self::subflows::Subflow;
use self::subflows::{MOST_SUBFLOWS, is_join};

mod subflows;

/// The ephemeral ports of Linux (`ip_local_port_range`).
const EPHEMERAL: std::ops::Range<u16> = 32_768..61_000;
/// The most connections of a flow between two kernels that are known at a time; beyond it those
/// that opened first are forgotten, until they are seen again.
const CONNECTIONS: usize = 64;

/// How many hashes are kept: packets come in batches of a few flows.
const RECENT: usize = 16;

/// The flows of a run with hosts outside, and the connections that they have.
#[derive(Debug)]
pub(super) struct Connections {
    flows: Vec<Flow>,
    /// Hashes of keys that were asked for last, by their ports.
    recent: [Option<(FlowKey, u64)>; RECENT],
    /// Who sends what, in order of the hashes.
    table: Vec<Entry>,
    /// The IPv4 addresses of the hosts.
    hosts: Vec<Ipv4Addr>,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    key: FlowKey,
    end: HostId,
    /// Which of the connections of a local endpoint it is of.
    subflow: usize,
}

/// A flow.
#[derive(Debug)]
struct Flow {
    id: String,
    /// `None` if its packets are not looked for.
    ends: Option<EndsSpec>,
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Watched(Watched),
    Ours(Ours),
}

/// A flow between two kernels.
#[derive(Debug, Default)]
struct Watched {
    /// Connections that it was given.
    opened: u64,
    /// What its sender sends on those that are known, in the order in which they were seen.
    known: VecDeque<FlowKey>,
}

/// A flow with one local end.
#[derive(Debug)]
pub(super) struct Ours {
    /// The options of its segments.
    pub(super) layout: OptionLayout,
    /// Whether it is the sender of the flow.
    sends: bool,
    /// Whether what it receives has to be the pattern.
    pub(super) check: bool,
    /// It has a peer.
    taken: bool,
    /// The hosts of its subflows by path, its own first; one pair if it is not Multipath TCP.
    paths: Vec<[usize; 2]>,
    is_multipath: bool,
    /// The connections that it has or had; one if it is not Multipath TCP.
    subflows: Vec<Subflow>,
    /// How many it has had.
    opened: u16,
}

impl Connections {
    pub(super) fn new(run: &RunSpec, live: &LiveSpec) -> Connections {
        let mut ports = Ports::new(run);
        let address = |node: &NodeSpec| node.ipv4().unwrap_or(Ipv4Addr::UNSPECIFIED);
        let mut connections = Connections {
            flows: Vec::new(),
            recent: [None; RECENT],
            table: Vec::new(),
            hosts: live.nodes.iter().map(address).collect(),
            seed: run.seed,
        };
        for (number, spec) in run.flows.iter().enumerate() {
            let outside = [&spec.sender, &spec.receiver].map(|end| matches!(end, HostSpec::Outside));
            let (ends, kind) = match (spec.ends, outside) {
                (Some(ends), [false, true] | [true, false]) => {
                    let ours = ours(spec, ends, &connections.hosts, &mut ports);
                    if let Some(first) = ours.subflows.first() {
                        connections.insert(first.incoming(), FlowId::new(number).receiver(), 0);
                    }
                    (Some(ends), Kind::Ours(ours))
                }
                (ends, [true, true]) => (ends, Kind::Watched(Watched::default())),
                (_, _) => (None, Kind::Watched(Watched::default())),
            };
            connections.flows.push(Flow { id: spec.id.to_string(), ends, kind });
        }
        connections
    }

    /// The end of a flow that has sent a packet with this key, with the number of the connection
    /// that it is of, and the hash of the key.
    pub(super) fn find(&mut self, key: &FlowKey) -> (Option<(HostId, usize)>, u64) {
        let hash = self.hash(key);
        let from = self.table.partition_point(|entry| entry.hash < hash);
        let mut same = self.table[from..].iter().take_while(|entry| entry.hash == hash);
        (same.find(|entry| entry.key == *key).map(|entry| (entry.end, entry.subflow)), hash)
    }

    #[inline]
    fn hash(&mut self, key: &FlowKey) -> u64 {
        // The two directions of a conversation are in different places.
        let place = usize::from(key.source_port ^ key.destination_port.rotate_left(1)) % RECENT;
        match &self.recent[place] {
            Some((known, hash)) if known == key => *hash,
            _ => {
                let hash = key.hash(self.seed);
                self.recent[place] = Some((*key, hash));
                hash
            }
        }
    }

    /// A segment that is of no flow's connection yet, from node `from` to node `to`: the end that
    /// has sent it of the flow that it is of, if there is one, and the number of the connection.
    /// `read` gives what it says if its checksums are right, and is called only if that matters.
    pub(super) fn open(
        &mut self,
        [from, to]: [usize; 2],
        key: &FlowKey,
        flags: Flags,
        read: impl FnOnce() -> Option<Segment>,
    ) -> Option<(HostId, usize)> {
        let begins = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if flags.contains(Flags::RST) {
            return None;
        }
        let candidate = |(number, flow): (usize, &Flow)| {
            let (ends, flow_id) = (flow.ends?, FlowId::new(number));
            let mut sender = ends.nodes == [from, to];
            let had = match &flow.kind {
                Kind::Ours(ours) => {
                    sender = !ours.sends;
                    (begins && sender && ours.listens(to, from)).then_some(0)
                }
                Kind::Watched(watched) => (sender || ends.nodes == [to, from]).then_some(watched.opened),
            }?;
            let [source, destination] =
                if sender { [key.source_port, key.destination_port] } else { [key.destination_port, key.source_port] };
            // Further subflows may have any port.
            let from_port = ends
                .source_port
                .is_none_or(|port| port == source || matches!(&flow.kind, Kind::Ours(ours) if ours.taken));
            let right = destination == ends.port && from_port;
            right.then_some((had, if sender { flow_id.sender() } else { flow_id.receiver() }))
        };
        let (_, end) = self.flows.iter().enumerate().filter_map(candidate).min_by_key(|&(had, _)| had)?;
        match &mut self.flows[end.flow().index()].kind {
            Kind::Ours(ours) => {
                let segment = read()?;
                if ours.taken && !is_join(&segment) {
                    return None;
                }
                ours.taken = true;
                let path = ours.path([to, from])?;
                let internal = (RECEIVER_PORT, SENDER_PORT.wrapping_add(ours.opened));
                let subflow = Subflow::accepted(path, [to, from], key, internal)?;
                Some(self.add_subflow(end, subflow))
            }
            Kind::Watched(watched) => {
                let sent = if end.is_sender() { *key } else { reversed(key) };
                watched.opened += 1;
                let forgotten = if watched.known.len() < CONNECTIONS { None } else { watched.known.pop_front() };
                watched.known.push_back(sent);
                if let Some(key) = forgotten {
                    self.table.retain(|entry| entry.key != key && entry.key != reversed(&key));
                }
                self.insert(sent, end.flow().sender(), 0);
                self.insert(reversed(&sent), end.flow().receiver(), 0);
                Some((end, 0))
            }
        }
    }

    /// A connection of a local endpoint with the peer at `end`; beyond a number of them it takes
    /// the place of the one that opened first.
    fn add_subflow(&mut self, end: HostId, subflow: Subflow) -> (HostId, usize) {
        let Kind::Ours(ours) = &mut self.flows[end.flow().index()].kind else { return (end, 0) };
        let number = usize::from(ours.opened) % MOST_SUBFLOWS;
        ours.opened = ours.opened.wrapping_add(1);
        let key = subflow.incoming();
        let old = match ours.subflows.get_mut(number) {
            Some(old) => Some(std::mem::replace(old, subflow)),
            None => {
                ours.subflows.push(subflow);
                None
            }
        };
        if let Some(old) = old {
            let forgotten = old.incoming();
            self.table.retain(|entry| entry.key != forgotten);
        }
        self.insert(key, end, number);
        (end, number)
    }

    /// A segment to a connection of a local endpoint: its ports become those that the endpoint
    /// knows, and its payload gets its place in the stream of the peer. `None` if it has none.
    pub(super) fn place(&mut self, flow: FlowId, subflow: usize, segment: &mut Segment) -> Option<()> {
        match &mut self.flows[flow.index()].kind {
            Kind::Ours(ours) => ours.subflows.get_mut(subflow)?.place(segment),
            Kind::Watched(_) => None,
        }
    }

    /// The connection of a local endpoint that has sent a segment over a path, with the endpoint;
    /// if it is a SYN, it may be a new one.
    pub(super) fn sender_of(&mut self, end: HostId, path: usize, segment: &Segment) -> Option<(&Ours, &Subflow)> {
        let Kind::Ours(ours) = &self.flows.get(end.flow().index())?.kind else { return None };
        let ports = (segment.source_port, segment.destination_port);
        let is_it = |subflow: &Subflow| !ours.is_multipath || subflow.internal == ports && subflow.path == path;
        let known = ours.subflows.iter().position(is_it);
        let number = match known {
            Some(number) => number,
            None => {
                let first = ours.subflows.first()?;
                let external = first.port_of(segment.source_port);
                let subflow = first.sibling(path, *ours.paths.get(path)?, ports, external, &self.hosts)?;
                self.add_subflow(end, subflow).1
            }
        };
        let ours = self.ours(end.flow())?;
        Some((ours, ours.subflows.get(number)?))
    }

    /// The name of a flow.
    pub(super) fn id(&self, flow: FlowId) -> &str {
        &self.flows[flow.index()].id
    }

    /// The local end of a flow that has one.
    pub(super) fn ours(&self, flow: FlowId) -> Option<&Ours> {
        match &self.flows.get(flow.index())?.kind {
            Kind::Ours(ours) => Some(ours),
            Kind::Watched(_) => None,
        }
    }

    /// The path over which a connection of a local endpoint goes.
    pub(super) fn path(&self, flow: FlowId, subflow: usize) -> usize {
        self.ours(flow).and_then(|ours| ours.subflows.get(subflow)).map_or(0, |subflow| subflow.path)
    }

    /// The local end that has sent a segment with these addresses and ports, and over which path.
    pub(super) fn sent_by(&self, addresses: Addresses, ports: (u16, u16)) -> Option<(HostId, usize)> {
        self.flows.iter().enumerate().find_map(|(number, entry)| {
            let Kind::Ours(ours) = &entry.kind else { return None };
            let is_it = |subflow: &&Subflow| subflow.addresses == addresses && subflow.ports == ports;
            let subflow = ours.subflows.iter().find(is_it)?;
            let flow = FlowId::new(number);
            Some((if ours.sends { flow.sender() } else { flow.receiver() }, subflow.path))
        })
    }

    fn insert(&mut self, key: FlowKey, end: HostId, subflow: usize) {
        let hash = key.hash(self.seed);
        let at = self.table.partition_point(|entry| entry.hash < hash);
        self.table.insert(at, Entry { hash, key, end, subflow });
    }
}

impl Ours {
    /// The path between two hosts, ours first.
    fn path(&self, nodes: [usize; 2]) -> Option<usize> {
        self.paths.iter().position(|known| *known == nodes)
    }

    /// The port of its first connection.
    #[cfg(test)]
    pub(super) fn first_port(&self) -> u16 {
        self.subflows.first().map_or(0, |first| first.ports.0)
    }

    /// Whether a SYN from a host to one of ours may be for it: for the first one it listens at one
    /// host, for further subflows at all of them.
    fn listens(&self, own: usize, peer: usize) -> bool {
        let path = self.path([own, peer]);
        if self.taken { self.is_multipath && path.is_some() } else { path == Some(0) }
    }
}

/// The local end of a flow between `ends`.
fn ours(spec: &FlowSpec, ends: EndsSpec, hosts: &[Ipv4Addr], ports: &mut Ports) -> Ours {
    let sends = !matches!(spec.sender, HostSpec::Outside);
    let end = if sends { &spec.sender } else { &spec.receiver };
    let own_first = |[sender, receiver]: [usize; 2]| if sends { [sender, receiver] } else { [receiver, sender] };
    let of_subflows = spec.mptcp.iter().flat_map(|mptcp| &mptcp.hosts).skip(1).map(|hosts| own_first(hosts.nodes));
    let paths: Vec<[usize; 2]> = [own_first(ends.nodes)].into_iter().chain(of_subflows).collect();
    let mut ours = Ours {
        layout: match end {
            HostSpec::Endpoint(endpoint) => endpoint.config.transfer.options,
            HostSpec::Smoltcp(_) | HostSpec::Outside | HostSpec::Datagrams(_) => OptionLayout::Linux,
        },
        sends,
        check: ends.check && !sends,
        taken: sends,
        is_multipath: spec.mptcp.is_some(),
        subflows: Vec::new(),
        opened: 0,
        paths,
    };
    if sends {
        let external = (ends.source_port.unwrap_or_else(|| ports.next()), ends.port);
        let internal = (SENDER_PORT, RECEIVER_PORT);
        ours.subflows.push(Subflow::new(0, ours.paths[0], external, internal, hosts));
        ours.opened = 1;
    }
    ours
}

fn reversed(key: &FlowKey) -> FlowKey {
    FlowKey {
        source: key.destination,
        destination: key.source,
        protocol: key.protocol,
        source_port: key.destination_port,
        destination_port: key.source_port,
    }
}

/// Source ports of local endpoints: counted from one that is drawn from the seed, without those
/// that flows name.
#[derive(Debug)]
struct Ports {
    next: u16,
    taken: Vec<u16>,
}

impl Ports {
    fn new(run: &RunSpec) -> Ports {
        let mut random = Random::for_component(run.seed, run.run, "live.ports");
        let first = EPHEMERAL.start + random.below(u64::from(EPHEMERAL.end - EPHEMERAL.start)) as u16;
        let ends = run.flows.iter().filter_map(|flow| flow.ends);
        let taken = ends.flat_map(|ends| ends.source_port.into_iter().chain([ends.port])).collect();
        Ports { next: first, taken }
    }

    fn next(&mut self) -> u16 {
        let mut port = self.next;
        // With more flows than ports the last ones share some.
        for _ in EPHEMERAL {
            port = self.next;
            self.next = if port + 1 == EPHEMERAL.end { EPHEMERAL.start } else { port + 1 };
            if !self.taken.contains(&port) {
                break;
            }
        }
        port
    }
}
