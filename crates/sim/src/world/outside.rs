//! Hosts outside: the entry of their packets, and the exit of packets to them.
//!
//! **The order of arrivals.** [`World::inject`] first handles everything that is due by `now`, that
//! nanosecond included; packets at the same time enter in the order of the calls. Decisions
//! therefore depend only on the times and order of arrivals, not on the lateness of the loop: the
//! same arrivals give the same decisions in real time and in a replay. The answer to a packet
//! ([`Outbound`]) must be injected at [`Outbound::at`], before the next step; later it would enter
//! later.
//!
//! **Bytes stay outside.** A packet holds a token for them. Each accepted token is returned exactly
//! once, by [`World::freed`], when the last copy of its packet is dropped, lost, read by an ackclock
//! endpoint or delivered outside.

use std::collections::VecDeque;

use ackclock_packet::{Class, Flags, Packet, Pool, Segment};
use ackclock_tcp::IcmpError;
use ackclock_units::{Ecn, Span, Time};

mod listening;
mod passing;

use super::routes::{RouteTable, RoutedPacket, directions};
use super::{Contents, World};
use crate::host::Host;
use crate::index::{FlowId, HostId, IndexVec, RouteId, SplitId};
use crate::spec::{PipeSpec, RunSpec, WayBack};
use crate::truth::{Culprit, Reason};
use listening::Listeners;

/// Type and code of the message about it (RFC 792, RFC 1191 section 4).
const FRAGMENTATION_NEEDED: (u8, u8) = (3, 4);

/// The hosts outside of a run, and their packets.
#[derive(Debug)]
pub(super) struct OutsideHosts {
    pipes: Vec<Pipe>,
    /// The host that each end of a flow is on, by number in [`crate::spec::LiveSpec::nodes`]; 0 for
    /// flows that have their hosts to themselves.
    nodes: IndexVec<HostId, usize>,
    /// The hosts of further subflows, by their end and path.
    others: Vec<((HostId, usize), usize)>,
    /// The most bytes of a packet that the router lets pass at which each end of a flow sends.
    mtus: IndexVec<HostId, u32>,
    /// Packets that have reached their host and have not been taken.
    outbox: VecDeque<Outbound>,
    /// Tokens by the slots of packets from outside.
    tokens: Vec<Option<u32>>,
    /// Tokens of packets that are no more.
    freed: Vec<u32>,
    listeners: Listeners,
    /// The time of what was done last.
    now: Time,
    /// The run is over, and what is on its way is still delivered.
    pub(super) draining: bool,
}

/// The way between two hosts.
#[derive(Debug)]
struct Pipe {
    between: [usize; 2],
    along: PipeDirection,
    back: PipeDirection,
}

/// A direction between two hosts.
#[derive(Debug)]
struct PipeDirection {
    /// Routes of packets of no flow, by path.
    routes: Vec<RouteId>,
    /// The rule that chooses among several paths; `None` with one.
    split: Option<SplitId>,
}

/// A packet from a host outside.
#[derive(Clone, Copy, Debug)]
pub struct Inbound<'a> {
    /// The host that it comes from, by number in [`crate::spec::LiveSpec::nodes`].
    pub from: usize,
    /// The host that it goes to; there is a pipe between the two.
    pub to: usize,
    /// The end of a flow that has sent it, one outside, if it is of a flow.
    pub end: Option<HostId>,
    /// Index of the packet's path among those of a flow over several subflows; 0 for all others.
    pub path: usize,
    /// The decoded segment of a packet of a flow; for an ackclock endpoint, its payload is the
    /// range in the sender's stream.
    pub segment: Option<&'a Segment>,
    /// The token of the packet's bytes; `None` if only the segment is needed.
    pub token: Option<u32>,
    /// Bytes of the whole packet.
    pub wire_len: u32,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// DSCP and pure-ACK flag.
    pub class: Class,
    /// Hash of its flow.
    pub flow_hash: u64,
}

/// A packet that has reached a host, to be handed over to it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Outbound {
    /// Time of arrival at the host.
    pub at: Time,
    /// The host.
    pub node: usize,
    /// The packet, with its marks.
    pub packet: Packet,
    /// The token of the packet's bytes; without one, it comes from an ackclock endpoint and
    /// [`World::segment`] has its segment.
    pub token: Option<u32>,
    /// The end that it is for, if it is of a flow.
    pub end: Option<HostId>,
}

impl PipeDirection {
    /// The route of packets along these paths, against their directions if `reverse`.
    fn new<'s>(
        paths: impl Iterator<Item = &'s [usize]>,
        reverse: bool,
        to: HostId,
        split: Option<SplitId>,
        routes: &mut RouteTable,
    ) -> PipeDirection {
        let route = |path| routes.add(directions(path, reverse)[0].clone(), to);
        PipeDirection { routes: paths.map(route).collect(), split }
    }

    /// The route of the next packet.
    fn next(&self, routes: &mut RouteTable, now: Time, flow_hash: u64) -> RouteId {
        let path = self.split.map_or(0, |split| routes.take(split, now, flow_hash));
        self.routes[path]
    }
}

impl Pipe {
    fn new(number: usize, spec: &PipeSpec, hosts: &IndexVec<HostId, Host>, routes: &mut RouteTable) -> Pipe {
        let [first, second] = spec.between.map(|node| HostId::of_node(node, hosts));
        let path = || [spec.path.as_slice()].into_iter();
        let Some(split) = &spec.split else {
            let [along, back] = [
                PipeDirection::new(path(), false, second, None, routes),
                PipeDirection::new(path(), true, first, None, routes),
            ];
            return Pipe { between: spec.between, along, back };
        };
        let along = routes.add_split(&split.along, &format!("paths.{number}.split"));
        let along = PipeDirection::new(split.paths(&spec.path), false, second, Some(along), routes);
        let back = match &split.back {
            WayBack::Over(path) => {
                PipeDirection::new([split.path(&spec.path, *path)].into_iter(), true, first, None, routes)
            }
            WayBack::Split(rule) => {
                let back = routes.add_split(rule, &format!("paths.{number}.back"));
                PipeDirection::new(split.paths(&spec.path), true, first, Some(back), routes)
            }
        };
        Pipe { between: spec.between, along, back }
    }
}

impl OutsideHosts {
    /// `None` if there are no hosts outside. Adds the routes between hosts, and those over a second
    /// path.
    pub(super) fn new(
        spec: &RunSpec,
        hosts: &IndexVec<HostId, Host>,
        routes: &mut RouteTable,
    ) -> Option<Box<OutsideHosts>> {
        let live = spec.live.as_deref()?;
        let pipes: Vec<Pipe> =
            live.pipes.iter().enumerate().map(|(number, pipe)| Pipe::new(number, pipe, hosts, routes)).collect();
        let mut nodes: IndexVec<HostId, usize> = hosts.iter().map(|_| 0).collect();
        let mut others = Vec::new();
        let mut mtus: IndexVec<HostId, u32> = hosts.iter().map(|_| u32::MAX).collect();
        for (number, flow) in spec.flows.iter().enumerate() {
            let (Some(ends), id) = (flow.ends, FlowId::new(number)) else { continue };
            let [sender, receiver] = [id.sender(), id.receiver()];
            [nodes[sender], nodes[receiver]] = ends.nodes;
            let mut limit = |between: [usize; 2]| {
                let (pipe, along) = find(&pipes, between[0], between[1])?;
                if let Some(router) = &live.pipes[pipe].router {
                    for (host, to) in [(sender, between[1]), (receiver, between[0])] {
                        let device = live.nodes[to].mtu;
                        mtus[host] = mtus[host].min(router.mtu.map_or(device, |own| own.min(device)).into());
                    }
                }
                Some((pipe, along))
            };
            if let Some(mptcp) = &flow.mptcp {
                for (path, hosts) in mptcp.hosts.iter().enumerate() {
                    limit(hosts.nodes);
                    others.extend([((sender, path), hosts.nodes[0]), ((receiver, path), hosts.nodes[1])]);
                }
                // Their paths are those of the flow.
                continue;
            }
            let Some((pipe, along)) = limit(ends.nodes) else { continue };
            let (of, spec) = (&pipes[pipe], &live.pipes[pipe]);
            let (forth, back) = if along { (sender, receiver) } else { (receiver, sender) };
            for (host, way, reverse) in [(forth, &of.along, false), (back, &of.back, true)] {
                match (way.split, &spec.split) {
                    // The end at a host sends over several paths: data, or ACKs.
                    (Some(shared), Some(split)) => routes.share(host, shared, &spec.path, split, reverse),
                    _ => routes.set_links(host, routes.links(way.routes[0]).to_vec()),
                }
            }
        }
        Some(Box::new(OutsideHosts {
            pipes,
            nodes,
            others,
            mtus,
            outbox: VecDeque::new(),
            tokens: Vec::new(),
            freed: Vec::new(),
            listeners: Listeners::new(spec),
            now: Time::ZERO,
            draining: false,
        }))
    }

    /// The most bytes of a packet of an end of a flow.
    pub(super) fn mtu(&self, host: HostId) -> u32 {
        self.mtus.get(host).copied().unwrap_or(u32::MAX)
    }

    /// The host that an end of a flow is on, which a packet has reached over one of its paths.
    fn node(&self, end: HostId, path: usize) -> usize {
        let of_path = self.others.iter().find(|(of, _)| *of == (end, path));
        of_path.map_or_else(|| self.nodes[end], |&(_, node)| node)
    }

    /// The route of a packet of no flow.
    fn route(&self, routes: &mut RouteTable, from: usize, to: usize, now: Time, flow_hash: u64) -> Option<RouteId> {
        let (pipe, along) = find(&self.pipes, from, to)?;
        let pipe = &self.pipes[pipe];
        Some(if along { &pipe.along } else { &pipe.back }.next(routes, now, flow_hash))
    }

    /// A packet is no more. Its token comes back with the last copy.
    pub(super) fn free(&mut self, pool: &Pool<Contents>, slot: u32) {
        if pool.references(slot) == 1
            && let Some(token) = self.tokens.get_mut(slot as usize)
        {
            self.freed.extend(token.take());
        }
    }
}

/// The pipe between two hosts, and whether it is listed in this order.
fn find(pipes: &[Pipe], from: usize, to: usize) -> Option<(usize, bool)> {
    let pipe = pipes.iter().position(|pipe| [[from, to], [to, from]].contains(&pipe.between))?;
    Some((pipe, pipes[pipe].between[0] == from))
}

impl World {
    /// The end of the run: no event is handled and no packet accepted at this time or later.
    pub fn end(&self) -> Time {
        self.end
    }

    /// Time of the next event.
    pub fn next_due(&self) -> Time {
        let decision = self.decisions.as_ref().map_or(Time::NEVER, |decisions| decisions.next_at);
        self.direction_wakeups.next_at().min(self.host_wakeups.next_at()).min(decision)
    }

    /// Handles the next wakeup if it is due by `now` and before the end of the run, and returns its
    /// time; `None` once everything is done. What it sent to hosts outside is in
    /// [`World::outbound`].
    pub fn advance(&mut self, now: Time) -> Option<Time> {
        let until = now + Span::from_nanos(1);
        let draining = self.outside.as_ref().is_some_and(|outside| outside.draining);
        let at = self.step(if draining { until } else { until.min(self.end) })?;
        if let Some(outside) = &mut self.outside {
            outside.now = at;
        }
        Some(at)
    }

    /// The run ends at `end`, if that is earlier than the scenario's. What is due by then has been
    /// handled.
    pub fn end_at(&mut self, end: Time) {
        self.end = self.end.min(end);
    }

    /// Delivers the packets still on their way to hosts outside, after the end of the run and its
    /// [summary](World::summary), by [`World::advance`] as long as events are due. No packets are
    /// accepted any more, ackclock's hosts are silent, and packets on their way to them are
    /// discarded. None of this is measured or recorded.
    pub fn drain(&mut self) {
        let Some(outside) = &mut self.outside else { return };
        outside.draining = true;
        for host in self.hosts.ids() {
            self.host_wakeups.arm(host.slot(), Time::NEVER);
        }
    }

    /// The number of packets on their way or waiting in [`World::outbound`], not counting copies.
    pub fn packets_inside(&self) -> usize {
        // One slot is kept for the packet to come.
        self.pool.len() - 1
    }

    /// A packet from outside enters its path at `now`, or, if that has passed, at the time of what
    /// was done last. Everything that is due by then is handled before, as by [`World::advance`].
    /// `false`, and nothing taken in, if there is no path between the two hosts, or the run is
    /// over.
    pub fn inject(&mut self, now: Time, inbound: Inbound<'_>) -> bool {
        let Some(outside) = &self.outside else { return false };
        let now = now.max(outside.now);
        if now >= self.end || outside.draining {
            return false;
        }
        while self.advance(now).is_some() {}
        while now >= self.next_edge {
            self.pass_edges(now);
        }
        let route = match (inbound.end, &self.outside) {
            (Some(end), _) if self.routes.are_told(end) => self.routes.of(end, inbound.path),
            (Some(end), _) => {
                let is_handshake = || inbound.segment.is_some_and(|segment| segment.flags.contains(Flags::SYN));
                let flow_hash = inbound.flow_hash;
                self.routes.next(end, RoutedPacket { now, flow_hash, continues: false, is_handshake })
            }
            (None, Some(outside)) => {
                match outside.route(&mut self.routes, inbound.from, inbound.to, now, inbound.flow_hash) {
                    Some(route) => route,
                    None => return false,
                }
            }
            (None, None) => return false,
        };
        let packet = self.enter(now, inbound, route);
        self.forward(now, packet);
        true
    }

    /// The packet that has come in.
    fn enter(&mut self, now: Time, inbound: Inbound<'_>, route: RouteId) -> Packet {
        let slot = self.spare;
        let contents = self.pool.get_mut(slot);
        contents.segment = inbound.segment.copied().unwrap_or_default();
        contents.number = 0;
        if let Some(end) = inbound.end {
            self.come_in(now, end, inbound.path);
        }
        if let Some(outside) = &mut self.outside {
            outside.now = now;
            if outside.tokens.len() <= slot as usize {
                outside.tokens.resize(slot as usize + 1, None);
            }
            outside.tokens[slot as usize] = inbound.token;
        }
        Packet {
            flow_hash: inbound.flow_hash,
            slot: std::mem::replace(&mut self.spare, self.pool.claim()),
            wire_len: inbound.wire_len,
            route: route.number(),
            hop: 0,
            ecn: inbound.ecn,
            class: inbound.class,
        }
    }

    /// Handles a packet of an ackclock endpoint that is too big for the router at the entry of
    /// its path, which reports that at once.
    #[cold]
    pub(super) fn refuse(&mut self, now: Time, host: HostId, packet: Packet) {
        let Some(mtu) = self.outside.as_ref().map(|outside| outside.mtu(host)) else { return };
        let Contents { segment, number, .. } = self.pool.get(packet.slot);
        let (sequence, number) = (segment.seq, *number);
        let path = self.path_of(&packet);
        self.free(packet.slot);
        if host.is_sender() && number > 0 {
            let direction = self.routes.links(RouteId::of_packet(packet.route)).first().copied();
            let culprit = Culprit::new(direction, Reason::TooBig, None);
            self.flows[host.flow()].lost(now, (path, number), culprit, self.records.tcp.as_deref_mut());
        }
        let (kind, code) = FRAGMENTATION_NEEDED;
        let error = IcmpError { v6: false, kind, code, mtu, sequence, length: packet.wire_len };
        self.hosts[host].icmp(now, path, &error);
    }

    /// Passes an ICMP error to the ackclock endpoint that has sent the quoted packet, over its
    /// path of this number. As with [`World::inject`], everything that is due before is handled
    /// first.
    pub fn icmp(&mut self, now: Time, host: HostId, path: usize, error: &IcmpError) {
        let Some(outside) = &self.outside else { return };
        let now = now.max(outside.now);
        if now >= self.end || outside.draining {
            return;
        }
        self.hosts[host].icmp(now, path, error);
        let due = self.pump(now, host, false);
        self.host_wakeups.arm(host.slot(), due);
    }

    /// The next packet that has reached a host outside, or one of ackclock's that is not an end of
    /// its flow; in order of time. Return each by [`World::release`].
    pub fn outbound(&mut self) -> Option<Outbound> {
        self.outside.as_mut()?.outbox.pop_front()
    }

    /// The segment of a packet without a token.
    pub fn segment(&self, outbound: &Outbound) -> &Segment {
        &self.pool.get(outbound.packet.slot).segment
    }

    /// Over which path of its sender, from 0, a packet has come.
    pub fn path_of(&self, packet: &Packet) -> usize {
        self.routes.path_of(RouteId::of_packet(packet.route))
    }

    /// The offset of the payload of a segment that reaches an ackclock endpoint with several
    /// subflows over `path`, in their common stream; for other hosts, the segment's own offset.
    pub fn stream_offset(&self, host: HostId, path: usize, segment: &Segment) -> Option<u64> {
        match self.hosts.get(host) {
            Some(Host::Mptcp(connection)) => connection.stream_offset(path, segment),
            _ => Some(segment.payload.offset),
        }
    }

    /// The packet has been handed over.
    pub fn release(&mut self, outbound: Outbound) {
        self.free(outbound.packet.slot);
    }

    /// A token whose packet is no more: handed over, or discarded on its way.
    pub fn freed(&mut self) -> Option<u32> {
        self.outside.as_mut()?.freed.pop()
    }

    /// A packet is no more.
    #[inline]
    pub(super) fn free(&mut self, slot: u32) {
        if let Some(outside) = &mut self.outside {
            outside.free(&self.pool, slot);
        }
        self.pool.release(slot);
    }

    /// Returns true if packets that reach the host leave the world.
    #[inline]
    pub(super) fn leaves(&self, host: HostId) -> bool {
        self.outside.as_ref().is_some_and(|outside| {
            outside.draining || self.hosts.get(host).is_none_or(|host| matches!(host, Host::Outside(_)))
        })
    }

    /// A packet has reached a host outside.
    pub(super) fn leave(&mut self, now: Time, host: HostId, packet: Packet) {
        if self.hosts.get(host).is_some_and(|host| !matches!(host, Host::Outside(_))) {
            // Our hosts are silent once the run is over.
            return self.free(packet.slot);
        }
        let node = host.node(&self.hosts);
        let end = node.is_none().then_some(host);
        if let Some(end) = end.filter(|_| now < self.end) {
            if packet.class.is_corrupted() {
                // The kernel discards it.
                self.count_corrupted(now, end, &packet);
            } else {
                self.go_out(now, end, &packet);
            }
        }
        let path = self.path_of(&packet);
        let Some(outside) = &mut self.outside else { return };
        let node = node.unwrap_or_else(|| outside.node(host, path));
        let token = outside.tokens.get(packet.slot as usize).copied().flatten();
        outside.outbox.push_back(Outbound { at: now, node, packet, token, end });
    }
}
