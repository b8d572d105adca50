//! The assignment of packets to flows, and of their data to the flow's stream.
//!
//! A local endpoint that opens a connection has its ports from the start; one that listens accepts
//! the first SYN to its port. Later SYNs to that port belong to no flow on their way. Where they
//! arrive, the endpoint accepts one if its previous connection brought no data and is over; the
//! others are reset. The source ports of local endpoints are drawn from the seed, so that a kernel
//! that has the last run's connection in TIME-WAIT, in a namespace that outlives runs, does not
//! meet it again unless the seed is the same. (Then the SYN is answered by an ACK for the old
//! connection, that is reset, and the SYN retransmitted, with an initial window of one segment: RFC
//! 5681 section 3.1.)
//!
//! A flow between two kernels comprises all connections to its port, or between its two ports:
//! iperf3 opens one for control in addition to those for data, with few bytes. Several flows to one
//! port (`count`) receive connections in turn, as they open. `source_port` (`--cport` of iperf3)
//! selects one connection.
//!
//! A local endpoint of Multipath TCP has a connection for each subflow (module [`subflows`]).

use std::collections::VecDeque;
use std::net::Ipv4Addr;

use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, FlowKey, OptionLayout, Segment};
use ackclock_sim::spec::{EndsSpec, FlowSpec, HostSpec, LiveSpec, NodeSpec, RunSpec};
use ackclock_sim::{FlowId, HostId, RECEIVER_PORT, SENDER_PORT};
use ackclock_units::Random;

pub(super) use self::subflows::WireConnection;
use self::subflows::{EPHEMERAL, MOST_SUBFLOWS, is_join};

mod subflows;

/// The most connections of a flow between two kernels that are known at a time, as many as its
/// measurements distinguish. Beyond it the oldest are forgotten until they are seen again.
pub(super) const MOST_CONNECTIONS: usize = 4096;

/// Number of cached hashes: packets come in batches of a few flows.
const RECENT: usize = 16;

/// The flows of a run with external hosts, and their connections.
#[derive(Debug)]
pub(super) struct Connections {
    flows: Vec<LiveFlow>,
    /// Recently used hashes, indexed by a function of the ports.
    recent: [Option<(FlowKey, u64)>; RECENT],
    /// The sending end of each known connection and direction, sorted by hash.
    table: Vec<ConnectionEntry>,
    /// The IPv4 address of each host.
    hosts: Vec<Ipv4Addr>,
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct ConnectionEntry {
    hash: u64,
    key: FlowKey,
    end: HostId,
    /// The number of the connection, for a local endpoint with several.
    subflow: usize,
}

/// A flow and its connections.
#[derive(Debug)]
struct LiveFlow {
    id: String,
    /// `None` if its packets are not identified.
    ends: Option<EndsSpec>,
    kind: FlowKind,
}

#[derive(Debug)]
enum FlowKind {
    Watched(KernelFlow),
    Ours(LocalEnd),
}

/// A flow between two kernels.
#[derive(Debug, Default)]
struct KernelFlow {
    /// Connections that have been assigned to it.
    opened: u64,
    /// The sender's keys of the known connections, oldest first.
    known: VecDeque<FlowKey>,
}

/// A flow with one local end.
#[derive(Debug)]
pub(super) struct LocalEnd {
    /// The layout of the options of its segments.
    pub(super) layout: OptionLayout,
    /// The local end is the sender of the flow.
    sends: bool,
    /// Received data is compared with the pattern.
    pub(super) check: bool,
    /// It has a peer.
    taken: bool,
    /// The hosts of its subflows by path, the local one first; one pair without Multipath TCP.
    paths: Vec<[usize; 2]>,
    is_multipath: bool,
    /// Its present and past connections; one without Multipath TCP.
    subflows: Vec<WireConnection>,
    /// The number of connections it has had.
    opened: u16,
}

impl Connections {
    pub(super) fn new(run: &RunSpec, live: &LiveSpec) -> Connections {
        let mut ports = SourcePorts::new(run);
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
                    (Some(ends), FlowKind::Ours(ours))
                }
                (ends, [true, true]) => (ends, FlowKind::Watched(KernelFlow::default())),
                (_, _) => (None, FlowKind::Watched(KernelFlow::default())),
            };
            connections.flows.push(LiveFlow { id: spec.id.to_string(), ends, kind });
        }
        connections
    }

    /// The end that sent a packet with this key, the number of its connection, and the hash of the
    /// key.
    pub(super) fn find(&mut self, key: &FlowKey) -> (Option<(HostId, usize)>, u64) {
        let hash = self.hash(key);
        let from = self.table.partition_point(|entry| entry.hash < hash);
        let mut same = self.table[from..].iter().take_while(|entry| entry.hash == hash);
        (same.find(|entry| entry.key == *key).map(|entry| (entry.end, entry.subflow)), hash)
    }

    #[inline]
    fn hash(&mut self, key: &FlowKey) -> u64 {
        // The two directions of a connection have different places.
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

    /// Assigns a segment from node `from` to node `to` that belongs to no known connection: the end
    /// that sent it, and the number of the connection; `None` if it belongs to no flow. `read`
    /// parses the segment, or returns `None` if a checksum is wrong, and is called only if the
    /// result matters.
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
        let candidate = |(number, flow): (usize, &LiveFlow)| {
            let (ends, flow_id) = (flow.ends?, FlowId::new(number));
            let mut sender = ends.nodes == [from, to];
            let had = match &flow.kind {
                FlowKind::Ours(ours) => {
                    sender = !ours.sends;
                    (begins && sender && ours.listens(to, from)).then_some(0)
                }
                FlowKind::Watched(watched) => (sender || ends.nodes == [to, from]).then_some(watched.opened),
            }?;
            let [source, destination] =
                if sender { [key.source_port, key.destination_port] } else { [key.destination_port, key.source_port] };
            // Further subflows may have any port.
            let from_port = ends
                .source_port
                .is_none_or(|port| port == source || matches!(&flow.kind, FlowKind::Ours(ours) if ours.taken));
            let right = destination == ends.port && from_port;
            right.then_some((had, if sender { flow_id.sender() } else { flow_id.receiver() }))
        };
        let (_, end) = self.flows.iter().enumerate().filter_map(candidate).min_by_key(|&(had, _)| had)?;
        match &mut self.flows[end.flow().index()].kind {
            FlowKind::Ours(ours) => {
                let segment = read()?;
                if ours.taken && !is_join(&segment) {
                    return None;
                }
                ours.taken = true;
                let path = ours.path([to, from])?;
                let internal = (RECEIVER_PORT, SENDER_PORT.wrapping_add(ours.opened));
                let subflow = WireConnection::accepted(path, [to, from], key, internal)?;
                Some(self.add_subflow(end, subflow))
            }
            FlowKind::Watched(watched) => {
                let sent = if end.is_sender() { *key } else { reversed(key) };
                watched.opened += 1;
                let forgotten = if watched.known.len() < MOST_CONNECTIONS { None } else { watched.known.pop_front() };
                watched.known.push_back(sent);
                if let Some(key) = forgotten {
                    self.remove(&key);
                    self.remove(&reversed(&key));
                }
                self.insert(sent, end.flow().sender(), 0);
                self.insert(reversed(&sent), end.flow().receiver(), 0);
                Some((end, 0))
            }
        }
    }

    /// Assigns a SYN with this key, which has reached node `to` and belongs to no connection, to
    /// the first flow with its port that `listens`, as that flow's new connection: the end that
    /// sent it, and the number of the connection.
    pub(super) fn reopen(
        &mut self,
        [from, to]: [usize; 2],
        key: &FlowKey,
        listens: impl Fn(FlowId) -> bool,
    ) -> Option<(HostId, usize)> {
        let is_it = |&(number, flow): &(usize, &LiveFlow)| {
            let (Some(ends), FlowKind::Ours(ours)) = (flow.ends, &flow.kind) else { return false };
            let right =
                ends.port == key.destination_port && ends.source_port.is_none_or(|port| port == key.source_port);
            !ours.sends && right && ours.path([to, from]) == Some(0) && listens(FlowId::new(number))
        };
        let end = self.flows.iter().enumerate().find(is_it).map(|(number, _)| FlowId::new(number).sender())?;
        let subflow = WireConnection::accepted(0, [to, from], key, (RECEIVER_PORT, SENDER_PORT))?;
        let FlowKind::Ours(ours) = &mut self.flows[end.flow().index()].kind else { return None };
        (ours.taken, ours.opened) = (true, 0);
        let before = std::mem::take(&mut ours.subflows);
        before.iter().for_each(|subflow| self.remove(&subflow.incoming()));
        Some(self.add_subflow(end, subflow))
    }

    /// Adds a connection of a local endpoint whose peer is `end`. Beyond [`MOST_SUBFLOWS`] it
    /// replaces the oldest.
    fn add_subflow(&mut self, end: HostId, subflow: WireConnection) -> (HostId, usize) {
        let FlowKind::Ours(ours) = &mut self.flows[end.flow().index()].kind else { return (end, 0) };
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
            self.remove(&old.incoming());
        }
        self.insert(key, end, number);
        (end, number)
    }

    /// Translates a segment to a local endpoint: its ports become those that the endpoint knows,
    /// and its payload gets its offset in the peer's stream; `None` if it has none.
    pub(super) fn place(&mut self, flow: FlowId, subflow: usize, segment: &mut Segment) -> Option<()> {
        match &mut self.flows[flow.index()].kind {
            FlowKind::Ours(ours) => ours.subflows.get_mut(subflow)?.place(segment),
            FlowKind::Watched(_) => None,
        }
    }

    /// The local endpoint that sent a segment over a path, and the segment's connection, which a
    /// SYN may create.
    pub(super) fn sender_of(
        &mut self,
        end: HostId,
        path: usize,
        segment: &Segment,
    ) -> Option<(&LocalEnd, &WireConnection)> {
        let FlowKind::Ours(ours) = &self.flows.get(end.flow().index())?.kind else { return None };
        let ports = (segment.source_port, segment.destination_port);
        let is_it = |subflow: &WireConnection| !ours.is_multipath || subflow.internal == ports && subflow.path == path;
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
    pub(super) fn ours(&self, flow: FlowId) -> Option<&LocalEnd> {
        match &self.flows.get(flow.index())?.kind {
            FlowKind::Ours(ours) => Some(ours),
            FlowKind::Watched(_) => None,
        }
    }

    /// The path of a connection of a local endpoint.
    pub(super) fn path(&self, flow: FlowId, subflow: usize) -> usize {
        self.ours(flow).and_then(|ours| ours.subflows.get(subflow)).map_or(0, |subflow| subflow.path)
    }

    /// The local end that sent a segment with these addresses and ports, and the path.
    pub(super) fn sent_by(&self, addresses: Addresses, ports: (u16, u16)) -> Option<(HostId, usize)> {
        self.flows.iter().enumerate().find_map(|(number, entry)| {
            let FlowKind::Ours(ours) = &entry.kind else { return None };
            let is_it = |subflow: &&WireConnection| subflow.addresses == addresses && subflow.ports == ports;
            let subflow = ours.subflows.iter().find(is_it)?;
            let flow = FlowId::new(number);
            Some((if ours.sends { flow.sender() } else { flow.receiver() }, subflow.path))
        })
    }

    fn insert(&mut self, key: FlowKey, end: HostId, subflow: usize) {
        let hash = key.hash(self.seed);
        let at = self.table.partition_point(|entry| entry.hash < hash);
        self.table.insert(at, ConnectionEntry { hash, key, end, subflow });
    }

    fn remove(&mut self, key: &FlowKey) {
        let hash = key.hash(self.seed);
        let from = self.table.partition_point(|entry| entry.hash < hash);
        let mut same = self.table[from..].iter().take_while(|entry| entry.hash == hash);
        if let Some(ahead) = same.position(|entry| entry.key == *key) {
            self.table.remove(from + ahead);
        }
    }
}

impl LocalEnd {
    /// The path between two hosts, the local one first.
    fn path(&self, nodes: [usize; 2]) -> Option<usize> {
        self.paths.iter().position(|known| *known == nodes)
    }

    /// The port of its first connection.
    #[cfg(test)]
    pub(super) fn first_port(&self) -> u16 {
        self.subflows.first().map_or(0, |first| first.ports.0)
    }

    /// Returns `true` if it may accept a SYN from host `peer` to host `own`: the first one at the
    /// host of its first path, further subflows at the hosts of all paths.
    fn listens(&self, own: usize, peer: usize) -> bool {
        let path = self.path([own, peer]);
        if self.taken { self.is_multipath && path.is_some() } else { path == Some(0) }
    }
}

/// The local end of a flow between `ends`.
fn ours(spec: &FlowSpec, ends: EndsSpec, hosts: &[Ipv4Addr], ports: &mut SourcePorts) -> LocalEnd {
    let sends = !matches!(spec.sender, HostSpec::Outside);
    let end = if sends { &spec.sender } else { &spec.receiver };
    let own_first = |[sender, receiver]: [usize; 2]| if sends { [sender, receiver] } else { [receiver, sender] };
    let of_subflows = spec.mptcp.iter().flat_map(|mptcp| &mptcp.hosts).skip(1).map(|hosts| own_first(hosts.nodes));
    let paths: Vec<[usize; 2]> = [own_first(ends.nodes)].into_iter().chain(of_subflows).collect();
    let mut ours = LocalEnd {
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
        ours.subflows.push(WireConnection::new(0, ours.paths[0], external, internal, hosts));
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

/// Source ports of local endpoints: consecutive ones, starting at a random one, except those that
/// flows name.
#[derive(Debug)]
struct SourcePorts {
    next: u16,
    taken: Vec<u16>,
}

impl SourcePorts {
    fn new(run: &RunSpec) -> SourcePorts {
        let mut random = Random::for_component(run.seed, run.run, "live.ports");
        let first = EPHEMERAL.start + random.below(u64::from(EPHEMERAL.end - EPHEMERAL.start)) as u16;
        let ends = run.flows.iter().filter_map(|flow| flow.ends);
        let taken = ends.flat_map(|ends| ends.source_port.into_iter().chain([ends.port])).collect();
        SourcePorts { next: first, taken }
    }

    fn next(&mut self) -> u16 {
        let mut port = self.next;
        // With more flows than ports the last ones share a port.
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
