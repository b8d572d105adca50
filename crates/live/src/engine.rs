//! A run with external hosts, without devices and without a clock.
//!
//! ```text
//!   arrive(now, node, len)                            advance(now) -> Outgoing { at, node, bytes }
//!       |                                                                 ^
//!       v   forward                                                       | outgoing
//!   +--------+  +----------+  +---------+  inject   +-------+  outbound  +-----------+
//!   | buffer |->| entry:   |->| router: |---------->| World |----------->| DueOutput |
//!   +--------+  | host,    |  | hops,   |           +-------+            +-----------+
//!               | flow,    |  | MTU     |            |    ^               ^
//!               | segment  |  +---------+            v    | answer        |
//!               +----------+       |              in-process host         |
//!                                  +--------------------------------------+
//!                                     ICMP message
//! ```
//!
//! A packet that a host has sent is inspected once, at its entry (`entry`): the destination address
//! determines the host, possibly one in front of a network (`routes`); ports determine the flow
//! (`connections`); a router counts the hop, and fragments or refuses the packet. After that the
//! packet is a handle on its path. If it is for a local endpoint it is also parsed, its checksums
//! are verified, and its bytes are no longer needed. A packet between two kernels stays in the
//! buffer into which it was read (`buffers`), and is written from there; segments of several
//! packets are cut at the entry and joined again at the exit (`segments`).
//!
//! # Invariants
//! - Everything is done in chronological order: `arrive` first does what is due until `now`. The
//!   same arrivals therefore produce the same packets at the same times, with any clock and however
//!   late the engine is called.
//! - `now` never decreases from call to call. [`Outgoing::at`] is the due time, not that of the
//!   call.
//! - A buffer is free, held, or assigned to one packet on its way; it is never copied.
//! - [`Outgoing`] borrows the engine: its bytes are valid until the next call.
//!
//! # Packets that are not forwarded
//! Packets to addresses of no host and behind none, or of a host without a path, are counted and
//! discarded. Kernels send such packets unprompted on every new device (router solicitations,
//! multicast listener reports, mDNS). The source address is not checked, as in a router without
//! filters.

use std::collections::VecDeque;
use std::net::{IpAddr, Ipv4Addr};

use ackclock_emulator::Change;
use ackclock_packet::{Packet, codec};
use ackclock_sim::spec::RunSpec;
use ackclock_sim::{DirectionId, Outbound, Recorders, RunError, World};
use ackclock_trace::LiveHost;
use ackclock_units::{Ecn, Random, Time};

use crate::Offload;
use crate::in_process::{HostAnswer, InProcessHost};
use crate::router::{ForwardDecision, Header, dscp, mark_ce, wash};
use buffers::{HeldBuffer, PacketBuffers};
use connections::{Connections, LocalEnd, MOST_CONNECTIONS, WireConnection};
use corruption::flip_bit;
use path_entries::PathEntries;
use routes::HostRoutes;

mod buffers;
mod connections;
mod corruption;
mod entry;
mod listening;
mod mtu;
mod path_entries;
mod routes;
mod segments;
#[cfg(test)]
mod tests;

/// A run with external hosts: packets as bytes in, packets as bytes out, time as an argument.
#[derive(Debug)]
pub struct Engine {
    world: World,
    nodes: Vec<HostState>,
    /// The hosts' addresses, sorted.
    addresses: Vec<(IpAddr, usize)>,
    /// Broadcast addresses of the hosts' subnets.
    broadcasts: Vec<Ipv4Addr>,
    /// Prefixes behind hosts.
    routes: HostRoutes,
    entries: PathEntries,
    connections: Connections,
    buffers: PacketBuffers,
    /// The most bytes that are read of a packet.
    limit: usize,
    /// Packets and messages for hosts behind devices, in chronological order; those of the same
    /// time in the order in which they were created.
    outgoing: VecDeque<DueOutput>,
    /// The same for hosts with stacks.
    inward: VecDeque<DueOutput>,
    /// Buffers of ICMP messages, for reuse.
    used: Vec<Vec<u8>>,
    /// Every packet is completed at its entry, as a wire would carry it.
    keeps_whole: bool,
    /// The packets of the segment that was returned last, its first packet included.
    together: Vec<Outbound>,
    /// The output that was returned last, kept until the next call.
    handed: ReturnedOutput,
    /// The bytes of an outgoing packet that differ from its buffer: a segment of a local endpoint,
    /// or a packet that was marked or corrupted.
    scratch: Vec<u8>,
    /// Draws the bits that corruption changes.
    corrupting: Random,
    /// A packet that is being fragmented.
    whole: Vec<u8>,
    error: Option<RunError>,
}

#[derive(Debug)]
struct HostState {
    counts: LiveHost,
    /// `None` for a host behind a device or with a stack.
    in_process: Option<InProcessHost>,
    has_stack: bool,
    /// The last destination of the host's packets, and the host with that address.
    recent: Option<(IpAddr, usize)>,
}

/// Output that is due to a host behind a device or with a stack.
#[derive(Debug)]
enum DueOutput {
    /// A packet that has reached its host.
    Packet(Outbound),
    /// A router's ICMP message to the host that sent the packet.
    Message { at: Time, node: usize, bytes: Vec<u8> },
}

impl DueOutput {
    fn at(&self) -> Time {
        match self {
            DueOutput::Packet(packet) => packet.at,
            DueOutput::Message { at, .. } => *at,
        }
    }
}

#[derive(Debug)]
enum ReturnedOutput {
    Nothing,
    Packet(Outbound),
    Message(Vec<u8>),
}

/// A packet for a host behind a device or with a stack, or several packets in one segment.
#[derive(Debug)]
pub struct Outgoing<'a> {
    /// The time at which the packet, or the first of several, reached the host.
    pub at: Time,
    /// The host, an index into [`ackclock_sim::spec::LiveSpec::nodes`].
    pub node: usize,
    /// The packet, or its beginning.
    pub bytes: &'a [u8],
    /// The rest of the packet; empty for packets that were not cut from a segment.
    pub rest: &'a [u8],
    /// The work that is left to the host's kernel.
    pub offload: Offload,
    /// The number of packets.
    pub packets: u32,
}

impl Engine {
    /// A run at time 0.
    ///
    /// # Panics
    /// If `spec` has no external hosts.
    pub fn new(spec: &RunSpec) -> Engine {
        let spec = mtu::with_path_mtu(spec);
        let live = spec.live.as_deref().expect("a run with hosts outside");
        let limit = live.nodes.iter().map(|node| usize::from(node.mtu)).max().unwrap_or(0) + 1;
        // A local host's answer has up to 40 bytes more than the packet that it answers.
        let buffers = PacketBuffers::new(limit.max(1501));
        let node = |spec: &ackclock_sim::spec::NodeSpec| HostState {
            counts: LiveHost {
                id: spec.name.clone(),
                tun: spec.tun.clone().unwrap_or_default(),
                ..LiveHost::default()
            },
            in_process: (!spec.is_outside()).then(|| InProcessHost::new(spec)),
            has_stack: spec.stack.is_some(),
            recent: None,
        };
        let mut addresses: Vec<(IpAddr, usize)> = Vec::new();
        for (number, node) in live.nodes.iter().enumerate() {
            addresses.extend(node.addresses.iter().map(|&(address, _)| (address, number)));
        }
        addresses.sort_unstable();
        Engine {
            world: World::new(&spec),
            nodes: live.nodes.iter().map(node).collect(),
            broadcasts: live.nodes.iter().flat_map(|node| &node.addresses).filter_map(broadcast).collect(),
            addresses,
            routes: HostRoutes::new(&live.nodes),
            entries: PathEntries::new(live),
            connections: Connections::new(&spec, live),
            buffers,
            limit,
            outgoing: VecDeque::new(),
            inward: VecDeque::new(),
            used: Vec::new(),
            keeps_whole: false,
            together: Vec::new(),
            handed: ReturnedOutput::Nothing,
            scratch: vec![0; usize::from(u16::MAX)],
            corrupting: Random::for_component(spec.seed, spec.run, "live.corruption"),
            whole: Vec::new(),
            error: None,
        }
    }

    /// The run's world, for records and the summary.
    pub fn world(&mut self) -> &mut World {
        &mut self.world
    }

    /// Packet counts of each host behind a device or with a stack so far, including those that were
    /// not forwarded, by reason.
    pub fn hosts(&self) -> impl Iterator<Item = &LiveHost> {
        self.nodes.iter().filter(|node| node.in_process.is_none()).map(|node| &node.counts)
    }

    /// Reasons why measurements are incomplete.
    pub fn faults(&self) -> impl Iterator<Item = String> {
        self.world.incomplete_flows().map(|flow| {
            format!(
                "flow {flow} had more than {MOST_CONNECTIONS} connections open at once, and its numbers lack some of them; \
                 let several flows share them (count), or watch fewer"
            )
        })
    }

    /// The first wrong data from a host; it ends the run.
    pub fn error(&self) -> Option<&RunError> {
        self.error.as_ref()
    }

    /// Writes the last records, once everything is done.
    ///
    /// # Errors
    /// Wrong data, or a recorder that interrupts the run.
    pub fn complete(&mut self, recorders: &mut Recorders<'_>) -> Result<(), RunError> {
        self.world.complete(recorders)?;
        self.error.clone().map_or(Ok(()), Err)
    }

    /// Room for the next packet that is read, with unspecified contents: one byte longer than the
    /// longest packet of any host, so that truncation shows.
    pub fn buffer(&mut self) -> &mut [u8] {
        &mut self.buffers.spare_mut()[..self.limit]
    }

    /// Accepts the packet of `len` bytes in the [buffer](Engine::buffer), which host `node` sent.
    /// First does everything that is due until `now`.
    ///
    /// # Panics
    /// If `len` exceeds the buffer, or there is no such host.
    pub fn arrive(&mut self, now: Time, node: usize, len: usize) {
        while self.step(now) {}
        let counts = &mut self.nodes[node].counts;
        counts.received_packets += 1;
        counts.received_bytes += len as u64;
        if len >= self.limit {
            counts.truncated += 1;
            return;
        }
        let buffer = self.buffers.take_spare();
        let spare = match self.forward(now, node, buffer, len) {
            Some(left) => left,
            None => self.claim(),
        };
        self.buffers.keep(spare);
    }

    /// Sets the packet in the [buffer](Engine::buffer) aside, so that stacks can write theirs there,
    /// until [`Engine::take_up`].
    pub(crate) fn set_aside(&mut self) {
        self.buffers.set_aside();
    }

    /// Takes up the packet that was set aside.
    pub(crate) fn take_up(&mut self) {
        self.buffers.take_up();
    }

    /// Changes link directions at `at`, first doing everything that is due before. Nothing that is
    /// due at `at` or later may have been done.
    ///
    /// # Panics
    /// As [`World::change`].
    pub fn change(&mut self, at: Time, changes: &[(DirectionId, Change)]) {
        let before = Time::from_nanos(at.as_nanos().saturating_sub(1));
        while self.step(before) {}
        for (direction, change) in changes {
            self.world.change(*direction, Change { at, ..change.clone() });
        }
    }

    /// Does what is due until `now`, up to the next packet for a host behind a device, and returns
    /// that packet; `None` once everything is done.
    pub fn advance(&mut self, now: Time) -> Option<Outgoing<'_>> {
        self.next(now, false)
    }

    /// As [`Engine::advance`], up to the next packet for a host with a stack. The two have their own
    /// order each.
    pub(crate) fn advance_stacks(&mut self, now: Time) -> Option<Outgoing<'_>> {
        self.next(now, true)
    }

    fn next(&mut self, now: Time, for_stacks: bool) -> Option<Outgoing<'_>> {
        self.take_back();
        loop {
            let due = if for_stacks { &mut self.inward } else { &mut self.outgoing };
            match due.pop_front() {
                Some(DueOutput::Message { at, node, bytes }) => {
                    self.handed = ReturnedOutput::Message(bytes);
                    return self.outgoing(at, node);
                }
                Some(DueOutput::Packet(packet)) => {
                    let (at, node) = (packet.at, packet.node);
                    if let Some(tail) = self.tail(&packet) {
                        self.gather(now, packet, tail);
                        return self.segment(at, node, tail);
                    }
                    let sent = self.prepare(&packet);
                    self.handed = ReturnedOutput::Packet(packet);
                    if sent {
                        return self.outgoing(at, node);
                    }
                    self.take_back();
                }
                None if self.step(now) => {}
                None => return None,
            }
        }
    }

    /// The time at which something is due next.
    pub fn next_due(&self) -> Time {
        self.outgoing.front().map_or_else(|| self.next_inside(), DueOutput::at)
    }

    /// As [`Engine::next_due`], apart from packets for hosts behind devices.
    pub(crate) fn next_inside(&self) -> Time {
        self.inward.front().map_or_else(|| self.world.next_due(), DueOutput::at)
    }

    /// Does the next thing that is due by `now`; `false` if there is none.
    fn step(&mut self, now: Time) -> bool {
        let stepped = self.world.advance(now).is_some();
        let mut took = false;
        while let Some(packet) = self.world.outbound() {
            took = true;
            match self.nodes[packet.node].in_process {
                None => self.queue_of(packet.node).push_back(DueOutput::Packet(packet)),
                Some(_) => self.answer(packet),
            }
        }
        stepped || took
    }

    /// The queue of what is due to host `node`.
    #[inline]
    fn queue_of(&mut self, node: usize) -> &mut VecDeque<DueOutput> {
        if self.nodes[node].has_stack { &mut self.inward } else { &mut self.outgoing }
    }

    /// Handles a packet that has reached a local host and belongs to no connection.
    fn answer(&mut self, packet: Outbound) {
        if self.listens_on(&packet) {
            return self.world.release(packet);
        }
        let (at, node, len) = (packet.at, packet.node, packet.packet.wire_len as usize);
        let mut reply = self.claim();
        let mut answer = HostAnswer::Nothing;
        if packet.packet.class.is_corrupted() {
            answer = HostAnswer::Discarded;
        } else if let Some(token) = packet.token
            && let Some(host) = &mut self.nodes[node].in_process
        {
            let (bytes, out) = self.buffers.pair(token, &mut reply);
            answer = host.answer(at, &bytes[..len], out);
        }
        let left = match answer {
            HostAnswer::Reply(len) => self.forward(at, node, reply, len),
            _ => Some(reply),
        };
        if let Some(reply) = left {
            self.buffers.give_back(reply);
        }
        match answer {
            HostAnswer::Reply(_) | HostAnswer::Nothing => {}
            HostAnswer::Error(addresses, ports, error) => match self.connections.sent_by(addresses, ports) {
                Some((end, path)) => self.world.icmp(at, end, path, &error),
                None => self.count_discarded(&packet),
            },
            HostAnswer::Discarded => self.count_discarded(&packet),
        }
        self.world.release(packet);
    }

    /// Counts a packet that a local host cannot interpret, for the host that sent it.
    #[cold]
    fn count_discarded(&mut self, packet: &Outbound) {
        let len = packet.packet.wire_len as usize;
        let source = packet.token.and_then(|token| Header::read(&self.buffers.of_packet(token)[..len]).ok());
        if let Some(from) = source.and_then(|header| self.node_of(header.source)) {
            self.nodes[from].counts.discarded += 1;
        }
    }

    /// The host with this address.
    fn node_of(&self, address: IpAddr) -> Option<usize> {
        let found = self.addresses.binary_search_by(|(own, _)| own.cmp(&address)).ok()?;
        Some(self.addresses[found].1)
    }

    /// The host to which host `from` has addressed a packet.
    #[inline]
    fn destination(&mut self, from: usize, address: IpAddr) -> Option<usize> {
        if let Some((recent, node)) = self.nodes[from].recent
            && recent == address
        {
            return Some(node);
        }
        let node = self.node_of(address).or_else(|| self.behind(from, address))?;
        self.nodes[from].recent = Some((address, node));
        Some(node)
    }

    /// The host behind which `address`, which no host has, is reached.
    #[cold]
    fn behind(&self, from: usize, address: IpAddr) -> Option<usize> {
        let all = self.broadcasts.iter().any(|broadcast| address == *broadcast);
        if all { None } else { self.routes.find(address, |to| self.entries.leads([from, to])) }
    }

    /// Releases the output that was returned last.
    fn take_back(&mut self) {
        match std::mem::replace(&mut self.handed, ReturnedOutput::Nothing) {
            ReturnedOutput::Nothing => {}
            ReturnedOutput::Packet(packet) => self.world.release(packet),
            ReturnedOutput::Message(message) => self.used.push(message),
        }
        while let Some(packet) = self.together.pop() {
            self.world.release(packet);
        }
    }

    /// Writes the bytes of a packet as it reaches its host; `false` if there are none.
    fn prepare(&mut self, outbound: &Outbound) -> bool {
        let ecn = outbound.packet.ecn;
        if let Some(token) = outbound.token {
            if is_changed(&outbound.packet, self.buffers.of_packet(token)) {
                // One copy of a duplicated packet may be changed and the other not: the buffer
                // stays as it is.
                let len = outbound.packet.wire_len as usize;
                let changed = &mut self.scratch[..len];
                if outbound.packet.class.is_corrupted() {
                    self.buffers.write_whole(token, len, changed);
                } else {
                    changed.copy_from_slice(&self.buffers.of_packet(token)[..len]);
                }
                if ecn == Ecn::Ce {
                    mark_ce(changed);
                }
                if outbound.packet.class.dscp() != dscp(changed) {
                    wash(changed);
                }
                if outbound.packet.class.is_corrupted() {
                    flip_bit(changed, &mut self.corrupting);
                }
            }
            return true;
        }
        let (path, mut segment) = (self.world.path_of(&outbound.packet), *self.world.segment(outbound));
        let sender = outbound.end.and_then(|end| self.connections.sender_of(end, path, &segment));
        let Some((LocalEnd { layout, .. }, WireConnection { node, addresses, ports, .. })) = sender else {
            return false;
        };
        let between = [*node, outbound.node];
        (segment.source_port, segment.destination_port) = *ports;
        let dscp = outbound.packet.class.dscp();
        let emitted = codec::emit_with(&segment, *layout, *addresses, dscp, ecn, &mut self.scratch);
        let Ok(len) = emitted else { return false };
        // The router has forwarded the segment like any packet. Its length does not exceed the path
        // MTU.
        let packet = &mut self.scratch[..len];
        let passed = match (self.entries.router(between), Header::read(packet)) {
            (Some(router), Ok(header)) => {
                router.forward(outbound.at, &header, packet, &mut self.whole) == ForwardDecision::Whole
            }
            _ => true,
        };
        if passed && outbound.packet.class.is_corrupted() {
            flip_bit(packet, &mut self.corrupting);
        }
        passed
    }

    /// Describes the output in `handed`.
    fn outgoing(&mut self, at: Time, node: usize) -> Option<Outgoing<'_>> {
        let mut offload = Offload::default();
        let bytes: &[u8] = match &self.handed {
            ReturnedOutput::Nothing => return None,
            ReturnedOutput::Message(message) => message,
            ReturnedOutput::Packet(packet) => {
                let len = packet.packet.wire_len as usize;
                if let (Some(token), false) = (packet.token, packet.packet.class.is_corrupted()) {
                    offload.checksum = self.buffers.left(token).checksum;
                }
                match packet.token.filter(|&token| !is_changed(&packet.packet, self.buffers.of_packet(token))) {
                    Some(token) => &self.buffers.of_packet(token)[..len],
                    None => &self.scratch[..len],
                }
            }
        };
        let counts = &mut self.nodes[node].counts;
        counts.sent_packets += 1;
        counts.sent_bytes += bytes.len() as u64;
        Some(Outgoing { at, node, bytes, rest: &[], offload, packets: 1 })
    }

    /// A free buffer.
    fn claim(&mut self) -> HeldBuffer {
        while let Some(number) = self.world.freed() {
            self.buffers.come_back(number);
        }
        self.buffers.claim()
    }
}

/// Returns `true` if the bytes of a packet differ from those that came in.
fn is_changed(packet: &Packet, came: &[u8]) -> bool {
    packet.ecn == Ecn::Ce || packet.class.is_corrupted() || packet.class.dscp() != dscp(came)
}

/// The broadcast address of the subnet of an address; subnets of fewer than four addresses have
/// none (RFC 3021).
fn broadcast(&(address, length): &(IpAddr, u8)) -> Option<Ipv4Addr> {
    match address {
        IpAddr::V4(address) if length < 31 => Some(Ipv4Addr::from(u32::from(address) | u32::MAX >> length)),
        _ => None,
    }
}
