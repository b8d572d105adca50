//! With many flows, the state of the one whose packet arrives next is not in the cache. Links know
//! what they deliver next: what its flow touches is fetched meanwhile, in three steps, each of
//! which needs what the one before has fetched. A packet's host is looked up in the first of them.

use ackclock_units::prefetch;

use super::World;
use crate::host::Host;
use crate::index::{DirectionId, HostId, RouteId};

/// The number of flows from which prefetching pays: fewer stay in a second-level cache of 1 MiB.
pub(super) const MANY: usize = 128;

impl World {
    /// A link has just delivered a packet, which is dealt with next.
    #[inline(never)]
    pub(super) fn look_ahead(&mut self, direction: DirectionId) {
        let link = &mut self.directions[direction];
        let mut host = None;
        if let Some(packet) = link.third() {
            self.pool.prefetch(packet.slot);
            host = self.routes.behind(RouteId::of_packet(packet.route), packet.hop).err();
        }
        let [first, second] = link.see_ahead(host);
        if let Some(host) = first {
            self.prefetch_behind(host);
        }
        if let Some(host) = second {
            self.prefetch_state(host);
        }
        if let Some(host) = host {
            self.prefetch_place(host);
        }
    }

    /// Fetches the host's entry and its flow's.
    #[inline]
    fn prefetch_place(&self, host: HostId) {
        prefetch(&self.hosts[host]);
        self.flows[host.flow()].prefetch();
    }

    #[inline]
    fn prefetch_state(&self, host: HostId) {
        if let Host::Endpoint(endpoint) = &self.hosts[host] {
            endpoint.prefetch(host.is_sender());
        }
        self.flows[host.flow()].prefetch_behind(host.is_sender());
    }

    #[inline]
    fn prefetch_behind(&self, host: HostId) {
        if let Host::Endpoint(endpoint) = &self.hosts[host] {
            endpoint.prefetch_behind(host.is_sender());
        }
        self.flows[host.flow()].truth.prefetch_trouble();
    }
}
