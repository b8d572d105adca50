//! The ways that packets take: which link directions, and which of several paths.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use ackclock_emulator::Split;
use ackclock_units::Time;

use crate::build::Streams;
use crate::index::{DirectionId, FlowId, HostId, Identifier, IndexVec, RouteId, SplitId};
use crate::spec::{FlowGroup, FlowSpec, RunSpec, SplitRule, SplitSpec, WayBack};

/// The routes of all packets.
#[derive(Debug)]
pub(super) struct RouteTable {
    /// The routes of each host's packets, and behind them others. Each host has as many as the one
    /// with the most paths in the run; they are the same if it has a single path.
    all: IndexVec<RouteId, PacketRoute>,
    /// Routes per host.
    width: usize,
    streams: Streams,
    /// The links of all paths, each path once: with many flows, few lists that stay at hand.
    links: Vec<DirectionId>,
    /// Index in `links` of the first link of each path.
    paths: BTreeMap<Vec<DirectionId>, u32>,
    /// The rules by which packets of several hosts choose among several paths.
    splits: IndexVec<SplitId, Split>,
    /// The choice of paths of each host; empty if no host has several.
    by_host: IndexVec<HostId, Taken>,
}

/// The choice among a host's paths.
#[derive(Debug)]
enum Taken {
    First,
    /// The path that its connection gives with each packet: the subflow's.
    Told,
    Own(SplitState<Box<Split>>),
    Shared(SplitState<SplitId>),
}

/// Packets of a host over several paths.
#[derive(Clone, Copy, Debug)]
struct SplitState<S> {
    split: S,
    /// True if packets with SYN take the first path and are not counted.
    after_handshake: bool,
    /// True if the packets of a unit take one path, that of the last packet.
    whole_units: bool,
    last: usize,
}

impl<S> SplitState<S> {
    fn new(split: S, spec: &SplitSpec) -> SplitState<S> {
        let SplitSpec { after_handshake, whole_units, .. } = *spec;
        SplitState { split, after_handshake, whole_units, last: 0 }
    }

    /// The path of a packet, which `next` gives if it begins a unit.
    #[inline]
    fn take(&mut self, continues: bool, next: impl FnOnce(&mut S) -> usize) -> usize {
        if !(self.whole_units && continues) {
            self.last = next(&mut self.split);
        }
        self.last
    }
}

/// The properties of a packet that determine its path.
pub(super) struct RoutedPacket<H> {
    /// Time of entry.
    pub(super) now: Time,
    /// The hash of its flow.
    pub(super) flow_hash: u64,
    /// True if the packet belongs to the same unit as the one before it.
    pub(super) continues: bool,
    /// True if the packet has SYN.
    pub(super) is_handshake: H,
}

/// The way of packets.
#[derive(Clone, Copy, Debug)]
struct PacketRoute {
    /// Index of the first of its links among all, ...
    first: u32,
    /// ... and how many.
    hops: u32,
    /// The host at the end.
    to: HostId,
}

impl RouteTable {
    /// The routes of all flows. Those of flows between hosts outside are given by
    /// [`RouteTable::set_links`] and [`RouteTable::share`].
    pub(super) fn new(spec: &RunSpec) -> RouteTable {
        let groups = spec.flows.iter().map(|flow| &flow.group).chain(spec.sums.iter().map(|sum| &sum.group));
        let pipes = spec.live.iter().flat_map(|live| &live.pipes);
        let of_group = |group: &Arc<FlowGroup>| {
            let subflows = group.mptcp.as_ref().map_or(0, |mptcp| mptcp.others.len());
            group.split.as_ref().map_or(subflows, |split| split.others.len())
        };
        let of_pipes = pipes.filter_map(|pipe| pipe.split.as_ref()).map(|split| split.others.len());
        let others = groups.map(of_group).chain(of_pipes);
        let mut routes = RouteTable {
            all: IndexVec::new(),
            width: 1 + others.max().unwrap_or(0),
            streams: Streams::of(spec),
            links: Vec::new(),
            paths: BTreeMap::new(),
            splits: IndexVec::new(),
            by_host: IndexVec::new(),
        };
        for (number, flow) in spec.flows.iter().enumerate() {
            routes.add_flow(FlowId::new(number), flow);
        }
        routes
    }

    /// The routes of a flow behind all others.
    pub(super) fn add_flow(&mut self, id: FlowId, flow: &FlowSpec) {
        let [data, acks] = self.along(flow);
        for (links, to) in [(data, id.receiver()), (acks, id.sender())] {
            for _ in 0..self.width {
                self.add(links.clone(), to);
            }
            if self.are_shared() {
                self.by_host.push(Taken::First);
            }
        }
        self.split(id, flow);
    }

    /// The links of a flow's data, and those of its ACKs. Between hosts of a network switches choose
    /// by hashes of the flow, one for each direction.
    fn along(&self, flow: &FlowSpec) -> [Vec<DirectionId>; 2] {
        let Some(via) = &flow.via else { return directions(&flow.path, flow.reverse) };
        let hash = |way: &str| self.streams.random(&format!("flows.{}.ecmp.{way}", flow.id));
        let [mut data, mut acks] = ["data", "acks"].map(hash);
        via.routes(|is_data, links| if is_data { data.below(links) } else { acks.below(links) })
    }

    /// The routes of a flow in the place of one that is over.
    pub(super) fn replace_flow(&mut self, id: FlowId, flow: &FlowSpec) {
        let [data, acks] = self.along(flow);
        for (links, host) in [(data, id.sender()), (acks, id.receiver())] {
            self.set_links(host, links);
        }
        self.split(id, flow);
    }

    /// Splits the packets of a flow's ends over several paths if its specification does, or, between
    /// hosts outside, that of their path.
    fn split(&mut self, id: FlowId, flow: &FlowSpec) {
        if !self.are_shared() {
            return;
        }
        let [sender, receiver] = [id.sender(), id.receiver()];
        for host in [sender, receiver] {
            self.by_host[host] = Taken::First;
        }
        if let Some(mptcp) = &flow.mptcp {
            for (host, reverse) in [(sender, flow.reverse), (receiver, !flow.reverse)] {
                self.set_paths(host, mptcp.paths(&flow.path), reverse, Taken::Told);
            }
            return;
        }
        let Some(split) = flow.split.as_ref().filter(|_| flow.ends.is_none()) else { return };
        let own = |routes: &RouteTable, rule: &SplitRule, way: &str| {
            let random = routes.streams.random(&format!("flows.{}.{way}", flow.id));
            Taken::Own(SplitState::new(Box::new(Split::new(rule.clone(), random)), split))
        };
        let along = own(self, &split.along, "split");
        self.set_paths(sender, split.paths(&flow.path), flow.reverse, along);
        match &split.back {
            WayBack::Over(path) => {
                self.set_links(receiver, directions(split.path(&flow.path, *path), !flow.reverse)[0].clone());
            }
            WayBack::Split(rule) => {
                let back = own(self, rule, "acks");
                self.set_paths(receiver, split.paths(&flow.path), !flow.reverse, back);
            }
        }
    }

    /// A route behind all others.
    pub(super) fn add(&mut self, links: Vec<DirectionId>, to: HostId) -> RouteId {
        let (first, hops) = self.place(links);
        self.all.push(PacketRoute { first, hops, to })
    }

    /// The route of a host over its path with this number.
    pub(super) fn of(&self, host: HostId, path: usize) -> RouteId {
        RouteId::new(host.index() * self.width + path)
    }

    /// Index of the first link of a path in `links`, and the number of its links; adds those of a
    /// new path.
    fn place(&mut self, links: Vec<DirectionId>) -> (u32, u32) {
        let (end, hops) = (self.links.len() as u32, links.len() as u32);
        if let Some(&first) = self.paths.get(&links) {
            return (first, hops);
        }
        self.links.extend(&links);
        self.paths.insert(links, end);
        (end, hops)
    }

    /// A split that several hosts share; `name` is that of its random stream.
    pub(super) fn add_split(&mut self, rule: &SplitRule, name: &str) -> SplitId {
        self.splits.push(Split::new(rule.clone(), self.streams.random(name)))
    }

    /// The packets of a host take these links.
    pub(super) fn set_links(&mut self, host: HostId, links: Vec<DirectionId>) {
        let place = self.place(links);
        for path in 0..self.width {
            self.set_path(host, path, place);
        }
    }

    fn set_path(&mut self, host: HostId, path: usize, place: (u32, u32)) {
        let id = self.of(host, path);
        let route = &mut self.all[id];
        (route.first, route.hops) = place;
    }

    /// A host sends over several paths, against their directions if `reverse`, in turn with others.
    pub(super) fn share(&mut self, host: HostId, shared: SplitId, first: &[usize], split: &SplitSpec, reverse: bool) {
        let taken = Taken::Shared(SplitState::new(shared, split));
        self.set_paths(host, split.paths(first), reverse, taken);
    }

    fn set_paths<'p>(&mut self, host: HostId, paths: impl Iterator<Item = &'p [usize]>, reverse: bool, taken: Taken) {
        for (number, path) in paths.enumerate() {
            let [links, _] = directions(path, reverse);
            let place = self.place(links);
            self.set_path(host, number, place);
        }
        self.by_host[host] = taken;
    }

    /// The link behind the first `hops` ones of a route, or the host at its end.
    #[inline]
    pub(super) fn behind(&self, route: RouteId, hops: u16) -> Result<DirectionId, HostId> {
        let PacketRoute { first, hops: all, to } = self.all[route];
        if u32::from(hops) < all { Ok(self.links[first as usize + usize::from(hops)]) } else { Err(to) }
    }

    /// The links of a route.
    pub(super) fn links(&self, route: RouteId) -> &[DirectionId] {
        let PacketRoute { first, hops, .. } = self.all[route];
        &self.links[first as usize..][..hops as usize]
    }

    /// The host at the end of a route.
    #[inline]
    pub(super) fn to(&self, route: RouteId) -> HostId {
        self.all[route].to
    }

    /// Returns true if any host has several paths.
    #[inline]
    pub(super) fn are_shared(&self) -> bool {
        self.width > 1
    }

    /// Over which path of its sender a packet has come.
    pub(super) fn path_of(&self, route: RouteId) -> usize {
        route.index() % self.width
    }

    /// Returns true if the packets of a host belong to subflows.
    #[inline]
    pub(super) fn are_told(&self, host: HostId) -> bool {
        matches!(self.by_host.get(host), Some(Taken::Told))
    }

    /// The route of the next packet of a host; not of a host with subflows, which determines their
    /// paths.
    #[inline]
    pub(super) fn next(&mut self, host: HostId, packet: RoutedPacket<impl Fn() -> bool>) -> RouteId {
        if !self.are_shared() {
            return RouteId::of_host(host);
        }
        let RoutedPacket { now, flow_hash, continues, is_handshake } = packet;
        let path = match &mut self.by_host[host] {
            Taken::First | Taken::Told => 0,
            Taken::Own(SplitState { after_handshake: true, .. })
            | Taken::Shared(SplitState { after_handshake: true, .. })
                if is_handshake() =>
            {
                0
            }
            Taken::Own(own) => own.take(continues, |split| split.next(now, flow_hash)),
            Taken::Shared(shared) => {
                let splits = &mut self.splits;
                shared.take(continues, |&mut split| splits[split].next(now, flow_hash))
            }
        };
        self.of(host, path)
    }

    /// The numbers of the routes of a host that sends over several paths, as many as there are at
    /// most.
    pub(super) fn several(&self, host: HostId) -> Option<Range<usize>> {
        let taken = self.by_host.get(host)?;
        let first = self.of(host, 0).index();
        (!matches!(taken, Taken::First)).then_some(first..first + self.width)
    }

    /// The path of the next packet of a shared split.
    pub(super) fn take(&mut self, split: SplitId, now: Time, flow_hash: u64) -> usize {
        self.splits[split].next(now, flow_hash)
    }
}

/// The directions of a path, along and back; the other way round if the data goes against it.
pub(super) fn directions(path: &[usize], reverse: bool) -> [Vec<DirectionId>; 2] {
    let along = path.iter().map(|&link| DirectionId::forward(link)).collect();
    let back = path.iter().rev().map(|&link| DirectionId::reverse(link)).collect();
    if reverse { [back, along] } else { [along, back] }
}
