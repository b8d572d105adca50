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

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, FlowKey, OptionLayout, Segment};
use ackclock_sim::spec::{EndsSpec, FlowSpec, HostSpec, LiveSpec, RunSpec};
use ackclock_sim::{FlowId, HostId};
use ackclock_units::Random;

use crate::router::protocol;

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
    seed: u64,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    key: FlowKey,
    end: HostId,
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
    /// The host that it is on.
    pub(super) node: usize,
    /// Of what it sends.
    pub(super) addresses: Addresses,
    /// Its own and the peer's.
    pub(super) ports: (u16, u16),
    /// The options of its segments.
    pub(super) layout: OptionLayout,
    /// Whether it is the sender of the flow.
    sends: bool,
    /// Whether what it receives has to be the pattern.
    pub(super) check: bool,
    /// It has a peer.
    taken: bool,
    /// What the peer sends.
    stream: Stream,
}

/// What the peer of a local endpoint sends.
#[derive(Clone, Copy, Debug, Default)]
struct Stream {
    /// Its initial sequence number, once its SYN has been seen.
    isn: Option<u32>,
    /// One past the last byte that was seen.
    end: u64,
}

impl Stream {
    /// Says where the payload of `segment` lies. `None` if that is before the first byte, as it may
    /// be with a keep-alive, or there was no SYN.
    fn place(&mut self, segment: &mut Segment) -> Option<()> {
        let syn = segment.flags.contains(Flags::SYN);
        if syn && self.end == 0 {
            self.isn = Some(segment.seq);
        }
        // The SYN is unit 0, byte i unit i + 1.
        let (first, near) = (self.isn?.wrapping_add(u32::from(!syn)), self.end);
        let ahead = segment.seq.wrapping_sub(first).wrapping_sub(near as u32).cast_signed();
        segment.payload.offset = near.checked_add_signed(i64::from(ahead))?;
        if segment.payload.len > 0 {
            self.end = self.end.max(segment.payload.offset + u64::from(segment.payload.len));
        }
        Some(())
    }
}

impl Connections {
    pub(super) fn new(run: &RunSpec, live: &LiveSpec) -> Connections {
        let mut ports = Ports::new(run);
        let mut connections =
            Connections { flows: Vec::new(), recent: [None; RECENT], table: Vec::new(), seed: run.seed };
        for (number, spec) in run.flows.iter().enumerate() {
            let outside = [&spec.sender, &spec.receiver].map(|end| matches!(end, HostSpec::Outside));
            let (ends, kind) = match (spec.ends, outside) {
                (Some(ends), [false, true] | [true, false]) => {
                    let ours = ours(spec, ends, live, &mut ports);
                    if ours.taken {
                        connections.insert(incoming(&ours), FlowId::new(number).receiver());
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

    /// The end of a flow that has sent a packet with this key, and the hash of the key.
    pub(super) fn find(&mut self, key: &FlowKey) -> (Option<HostId>, u64) {
        let hash = self.hash(key);
        let from = self.table.partition_point(|entry| entry.hash < hash);
        let mut same = self.table[from..].iter().take_while(|entry| entry.hash == hash);
        (same.find(|entry| entry.key == *key).map(|entry| entry.end), hash)
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
    /// has sent it of the flow that it is of, if there is one. `valid` tells whether its checksums
    /// are right, and is asked only if that matters.
    pub(super) fn open(
        &mut self,
        [from, to]: [usize; 2],
        key: &FlowKey,
        flags: Flags,
        valid: impl FnOnce() -> bool,
    ) -> Option<HostId> {
        let begins = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK);
        if flags.contains(Flags::RST) {
            return None;
        }
        let candidate = |(number, flow): (usize, &Flow)| {
            let ends = flow.ends?;
            let sender = ends.nodes == [from, to];
            let [source, destination] =
                if sender { [key.source_port, key.destination_port] } else { [key.destination_port, key.source_port] };
            let right = (sender || ends.nodes == [to, from])
                && destination == ends.port
                && ends.source_port.is_none_or(|port| port == source);
            let had = match &flow.kind {
                // It listens.
                Kind::Ours(ours) => (sender && begins && !ours.taken).then_some(0),
                Kind::Watched(watched) => Some(watched.opened),
            }?;
            let flow = FlowId::new(number);
            right.then_some((had, if sender { flow.sender() } else { flow.receiver() }))
        };
        let (_, end) = self.flows.iter().enumerate().filter_map(candidate).min_by_key(|&(had, _)| had)?;
        match &mut self.flows[end.flow().index()].kind {
            Kind::Ours(ours) => {
                if !valid() {
                    return None;
                }
                ours.taken = true;
                ours.ports.1 = key.source_port;
                if let (IpAddr::V4(own), IpAddr::V4(peer)) = (key.destination, key.source) {
                    ours.addresses = Addresses { source: own.octets(), destination: peer.octets() };
                }
                self.insert(*key, end);
            }
            Kind::Watched(watched) => {
                let sent = if end.is_sender() { *key } else { reversed(key) };
                watched.opened += 1;
                let forgotten = if watched.known.len() < CONNECTIONS { None } else { watched.known.pop_front() };
                watched.known.push_back(sent);
                if let Some(key) = forgotten {
                    self.table.retain(|entry| entry.key != key && entry.key != reversed(&key));
                }
                self.insert(sent, end.flow().sender());
                self.insert(reversed(&sent), end.flow().receiver());
            }
        }
        Some(end)
    }

    /// The place of the payload of a segment to a local endpoint in the stream of its peer; `None`
    /// if there is none.
    pub(super) fn place(&mut self, flow: FlowId, segment: &mut Segment) -> Option<()> {
        match &mut self.flows[flow.index()].kind {
            Kind::Ours(ours) => ours.stream.place(segment),
            Kind::Watched(_) => None,
        }
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

    /// The local end that has sent a segment with these addresses and ports.
    pub(super) fn sent_by(&self, addresses: Addresses, ports: (u16, u16)) -> Option<HostId> {
        self.flows.iter().enumerate().find_map(|(number, entry)| match &entry.kind {
            Kind::Ours(ours) if ours.addresses == addresses && ours.ports == ports => {
                let flow = FlowId::new(number);
                Some(if ours.sends { flow.sender() } else { flow.receiver() })
            }
            _ => None,
        })
    }

    fn insert(&mut self, key: FlowKey, end: HostId) {
        let hash = key.hash(self.seed);
        let at = self.table.partition_point(|entry| entry.hash < hash);
        self.table.insert(at, Entry { hash, key, end });
    }
}

/// The local end of a flow between `ends`.
fn ours(spec: &FlowSpec, ends: EndsSpec, live: &LiveSpec, ports: &mut Ports) -> Ours {
    let sends = !matches!(spec.sender, HostSpec::Outside);
    let address = |node: usize| live.nodes[node].ipv4().map(|ipv4| ipv4.octets()).unwrap_or_default();
    let [sender, receiver] = ends.nodes;
    let (node, peer, end) = if sends { (sender, receiver, &spec.sender) } else { (receiver, sender, &spec.receiver) };
    Ours {
        node,
        addresses: Addresses { source: address(node), destination: address(peer) },
        ports: match sends {
            true => (ends.source_port.unwrap_or_else(|| ports.next()), ends.port),
            false => (ends.port, 0),
        },
        layout: match end {
            HostSpec::Endpoint(endpoint) => endpoint.config.transfer.options,
            HostSpec::Smoltcp(_) | HostSpec::Outside | HostSpec::Datagrams(_) => OptionLayout::Linux,
        },
        sends,
        check: ends.check && !sends,
        taken: sends,
        stream: Stream::default(),
    }
}

/// The key of what the peer of a local endpoint sends.
fn incoming(ours: &Ours) -> FlowKey {
    FlowKey {
        source: IpAddr::V4(Ipv4Addr::from(ours.addresses.destination)),
        destination: IpAddr::V4(Ipv4Addr::from(ours.addresses.source)),
        protocol: protocol::TCP,
        source_port: ours.ports.1,
        destination_port: ours.ports.0,
    }
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
