//! The ways that packets take: which link directions, and which of two paths.

use std::collections::BTreeMap;

use ackclock_emulator::Split;

use crate::index::{DirectionId, FlowId, HostId, RouteId, SplitId, Table};
use crate::spec::RunSpec;

/// Where packets go.
#[derive(Debug)]
pub(super) struct Routes {
    /// Those of the packets of each host, and behind them others.
    all: Table<RouteId, Route>,
    /// The links of all paths, each path once: with many flows, few lists that stay at hand.
    links: Vec<DirectionId>,
    /// Where in them each path is.
    paths: BTreeMap<Vec<DirectionId>, u32>,
    /// Which of two paths packets take.
    splits: Table<SplitId, Split>,
    /// Hosts that send over two paths, in order of the hosts.
    sharing: Vec<Sharing>,
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

/// A host that sends over two paths: the sender of a flow, or, where the paths of others do, its
/// receiver.
#[derive(Debug)]
struct Sharing {
    host: HostId,
    split: SplitId,
    /// The route over the secondary path.
    secondary: RouteId,
}

impl Routes {
    /// The routes of all flows. Those of flows between hosts outside are given by
    /// [`Routes::set_links`] and [`Routes::share`].
    pub(super) fn new(spec: &RunSpec) -> Routes {
        let mut routes = Routes {
            all: Table::new(),
            links: Vec::new(),
            paths: BTreeMap::new(),
            splits: Table::new(),
            sharing: Vec::new(),
        };
        let flows = || spec.flows.iter().enumerate().map(|(number, flow)| (FlowId::new(number), flow));
        for (id, flow) in flows() {
            let [data, acks] = directions(&flow.path, flow.reverse);
            routes.add(data, id.receiver());
            routes.add(acks, id.sender());
        }
        for (id, flow) in flows().filter(|(_, flow)| flow.ends.is_none()) {
            let Some(second) = &flow.secondary else { continue };
            let split = routes.add_split(second.vector);
            let [links, _] = directions(&second.path, flow.reverse);
            let secondary = routes.add(links, id.receiver());
            routes.share(id.sender(), split, secondary);
        }
        routes
    }

    pub(super) fn add(&mut self, links: Vec<DirectionId>, to: HostId) -> RouteId {
        let (first, hops) = self.place(links);
        self.all.push(Route { first, hops, to })
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
        let route = &mut self.all[RouteId::of_host(host)];
        (route.first, route.hops) = (first, hops);
    }

    /// A host sends over two paths.
    pub(super) fn share(&mut self, host: HostId, split: SplitId, secondary: RouteId) {
        let place = self.sharing.partition_point(|sharing| sharing.host < host);
        self.sharing.insert(place, Sharing { host, split, secondary });
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
        !self.sharing.is_empty()
    }

    /// The route of the next packet of a host.
    #[inline]
    pub(super) fn next(&mut self, host: HostId) -> RouteId {
        if self.sharing.is_empty() {
            return RouteId::of_host(host);
        }
        match self.shared(host).map(|sharing| (sharing.split, sharing.secondary)) {
            Some((split, secondary)) if self.takes_secondary(split) => secondary,
            _ => RouteId::of_host(host),
        }
    }

    /// Both routes of a host that sends over two.
    pub(super) fn both(&self, host: HostId) -> Option<[RouteId; 2]> {
        self.shared(host).map(|sharing| [RouteId::of_host(host), sharing.secondary])
    }

    /// Whether the next packet takes the second path.
    pub(super) fn takes_secondary(&mut self, split: SplitId) -> bool {
        self.splits[split].takes_secondary()
    }

    fn shared(&self, host: HostId) -> Option<&Sharing> {
        let place = self.sharing.binary_search_by_key(&host, |sharing| sharing.host).ok()?;
        self.sharing.get(place)
    }
}

/// The directions of a path, along and back; the other way round if the data goes against it.
pub(super) fn directions(path: &[usize], reverse: bool) -> [Vec<DirectionId>; 2] {
    let along = path.iter().map(|&link| DirectionId::forward(link)).collect();
    let back = path.iter().rev().map(|&link| DirectionId::reverse(link)).collect();
    if reverse { [back, along] } else { [along, back] }
}
