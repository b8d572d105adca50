//! The ways that packets take: which link directions, and which of two paths.

use std::ops::Index;

use ackclock_emulator::Split;

use crate::index::{DirectionId, FlowId, HostId, RouteId, SplitId, Table};
use crate::spec::RunSpec;

/// Where packets go.
#[derive(Debug)]
pub(super) struct Routes {
    /// Those of the packets of each host, and behind them others.
    all: Table<RouteId, Route>,
    /// Which of two paths packets take.
    splits: Table<SplitId, Split>,
    /// Hosts that send over two paths, in order of the hosts.
    sharing: Vec<Sharing>,
}

/// The way of packets.
#[derive(Debug)]
pub(super) struct Route {
    pub(super) links: Vec<DirectionId>,
    /// The host at the end.
    pub(super) to: HostId,
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
        let mut routes = Routes { all: Table::new(), splits: Table::new(), sharing: Vec::new() };
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
        self.all.push(Route { links, to })
    }

    pub(super) fn add_split(&mut self, vector: u64) -> SplitId {
        self.splits.push(Split::new(vector))
    }

    /// The packets of a host take these links.
    pub(super) fn set_links(&mut self, host: HostId, links: Vec<DirectionId>) {
        self.all[RouteId::of_host(host)].links = links;
    }

    /// A host sends over two paths.
    pub(super) fn share(&mut self, host: HostId, split: SplitId, secondary: RouteId) {
        let place = self.sharing.partition_point(|sharing| sharing.host < host);
        self.sharing.insert(place, Sharing { host, split, secondary });
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

impl Index<RouteId> for Routes {
    type Output = Route;

    #[inline]
    fn index(&self, route: RouteId) -> &Route {
        &self.all[route]
    }
}

/// The directions of a path, along and back; the other way round if the data goes against it.
pub(super) fn directions(path: &[usize], reverse: bool) -> [Vec<DirectionId>; 2] {
    let along = path.iter().map(|&link| DirectionId::forward(link)).collect();
    let back = path.iter().rev().map(|&link| DirectionId::reverse(link)).collect();
    if reverse { [back, along] } else { [along, back] }
}
