//! The ways that packets take: which link directions, and which of two paths.

use std::collections::BTreeMap;

use ackclock_emulator::Split;

use crate::index::{DirectionId, FlowId, HostId, Id, RouteId, SplitId, Table};
use crate::spec::{FlowSpec, RunSpec};

/// Where packets go.
#[derive(Debug)]
pub(super) struct Routes {
    /// Those of the packets of each host, and behind them others. In a run in which a host sends
    /// over two paths each host has two, the second of which is the same if it does not.
    all: Table<RouteId, Route>,
    /// Whether each host has two.
    are_shared: bool,
    /// The links of all paths, each path once: with many flows, few lists that stay at hand.
    links: Vec<DirectionId>,
    /// Where in them each path is.
    paths: BTreeMap<Vec<DirectionId>, u32>,
    /// Which of two paths the packets of several hosts take in turn.
    splits: Table<SplitId, Split>,
    /// Which of its two the packets of each host take; empty if there are never two.
    by_host: Table<HostId, Taken>,
}

/// Which of its two paths a host sends over.
#[derive(Clone, Copy, Debug)]
enum Taken {
    Primary,
    Own(Split),
    Shared(SplitId),
}

/// The way of packets.
#[derive(Clone, Copy, Debug)]
struct Route {
    /// Where its links are among all, ...
    first: u32,
    /// ... and how many.
    hops: u32,
    /// The host at the end.
    to: HostId,
}

impl Routes {
    /// The routes of all flows. Those of flows between hosts outside are given by
    /// [`Routes::set_links`] and [`Routes::share`].
    pub(super) fn new(spec: &RunSpec) -> Routes {
        let mut groups = spec.flows.iter().map(|flow| &flow.group).chain(spec.sums.iter().map(|sum| &sum.group));
        let mut pipes = spec.live.iter().flat_map(|live| &live.pipes);
        let are_shared = groups.any(|group| group.secondary.is_some()) || pipes.any(|pipe| pipe.secondary.is_some());
        let mut routes = Routes {
            all: Table::new(),
            are_shared,
            links: Vec::new(),
            paths: BTreeMap::new(),
            splits: Table::new(),
            by_host: Table::new(),
        };
        for (number, flow) in spec.flows.iter().enumerate() {
            routes.add_flow(FlowId::new(number), flow);
        }
        routes
    }

    /// The routes of a flow behind all others.
    pub(super) fn add_flow(&mut self, id: FlowId, flow: &FlowSpec) {
        let [data, acks] = directions(&flow.path, flow.reverse);
        for (links, to) in [(data, id.receiver()), (acks, id.sender())] {
            self.add(links.clone(), to);
            if self.are_shared {
                self.add(links, to);
                self.by_host.push(Taken::Primary);
            }
        }
        self.split(id, flow);
    }

    /// The routes of a flow in the place of one that is over.
    pub(super) fn replace_flow(&mut self, id: FlowId, flow: &FlowSpec) {
        let [data, acks] = directions(&flow.path, flow.reverse);
        for (links, host) in [(data, id.sender()), (acks, id.receiver())] {
            self.set_links(host, links);
        }
        self.split(id, flow);
    }

    /// The sender of a flow sends over two paths, if its specification says so. Between hosts
    /// outside it is the path of both that says it.
    fn split(&mut self, id: FlowId, flow: &FlowSpec) {
        if !self.are_shared {
            return;
        }
        self.by_host[id.sender()] = Taken::Primary;
        if let Some(second) = flow.secondary.as_ref().filter(|_| flow.ends.is_none()) {
            let [links, _] = directions(&second.path, flow.reverse);
            self.set_second(id.sender(), links, Taken::Own(Split::new(second.vector)));
        }
    }

    /// A route behind all others.
    pub(super) fn add(&mut self, links: Vec<DirectionId>, to: HostId) -> RouteId {
        let (first, hops) = self.place(links);
        self.all.push(Route { first, hops, to })
    }

    /// Both routes of a host.
    fn of(&self, host: HostId) -> [RouteId; 2] {
        let first = host.index() << u32::from(self.are_shared);
        [first, first + usize::from(self.are_shared)].map(RouteId::new)
    }

    /// Where the links of a path are, and how many it has.
    fn place(&mut self, links: Vec<DirectionId>) -> (u32, u32) {
        let (end, hops) = (self.links.len() as u32, links.len() as u32);
        if let Some(&first) = self.paths.get(&links) {
            return (first, hops);
        }
        self.links.extend(&links);
        self.paths.insert(links, end);
        (end, hops)
    }

    pub(super) fn add_split(&mut self, vector: u64) -> SplitId {
        self.splits.push(Split::new(vector))
    }

    /// The packets of a host take these links.
    pub(super) fn set_links(&mut self, host: HostId, links: Vec<DirectionId>) {
        let (first, hops) = self.place(links);
        for id in self.of(host) {
            let route = &mut self.all[id];
            (route.first, route.hops) = (first, hops);
        }
    }

    /// A host sends over two paths, the second of which has these links, in turn with others.
    pub(super) fn share(&mut self, host: HostId, split: SplitId, links: Vec<DirectionId>) {
        self.set_second(host, links, Taken::Shared(split));
    }

    fn set_second(&mut self, host: HostId, links: Vec<DirectionId>, taken: Taken) {
        let (first, hops) = self.place(links);
        let [_, second] = self.of(host);
        let route = &mut self.all[second];
        (route.first, route.hops) = (first, hops);
        self.by_host[host] = taken;
    }

    /// The link behind so many others of a route; the host at the end if there is none.
    #[inline]
    pub(super) fn behind(&self, route: RouteId, hops: u16) -> Result<DirectionId, HostId> {
        let Route { first, hops: all, to } = self.all[route];
        if u32::from(hops) < all { Ok(self.links[first as usize + usize::from(hops)]) } else { Err(to) }
    }

    /// The links of a route.
    pub(super) fn links(&self, route: RouteId) -> &[DirectionId] {
        let Route { first, hops, .. } = self.all[route];
        &self.links[first as usize..][..hops as usize]
    }

    /// The host at the end of a route.
    #[inline]
    pub(super) fn to(&self, route: RouteId) -> HostId {
        self.all[route].to
    }

    /// Whether any host sends over two paths.
    #[inline]
    pub(super) fn are_shared(&self) -> bool {
        self.are_shared
    }

    /// The route of the next packet of a host.
    #[inline]
    pub(super) fn next(&mut self, host: HostId) -> RouteId {
        if !self.are_shared {
            return RouteId::of_host(host);
        }
        let split = match &mut self.by_host[host] {
            Taken::Primary => None,
            Taken::Own(split) => Some(split),
            Taken::Shared(split) => Some(&mut self.splits[*split]),
        };
        let secondary = split.is_some_and(Split::takes_secondary);
        self.of(host)[usize::from(secondary)]
    }

    /// Both routes of a host that sends over two.
    pub(super) fn both(&self, host: HostId) -> Option<[RouteId; 2]> {
        let taken = self.by_host.get(host)?;
        (!matches!(taken, Taken::Primary)).then(|| self.of(host))
    }

    /// Whether the next packet takes the second path.
    pub(super) fn takes_secondary(&mut self, split: SplitId) -> bool {
        self.splits[split].takes_secondary()
    }
}

/// The directions of a path, along and back; the other way round if the data goes against it.
pub(super) fn directions(path: &[usize], reverse: bool) -> [Vec<DirectionId>; 2] {
    let along = path.iter().map(|&link| DirectionId::forward(link)).collect();
    let back = path.iter().rev().map(|&link| DirectionId::reverse(link)).collect();
    if reverse { [back, along] } else { [along, back] }
}
