//! With many flows, the state of the one whose packet arrives next is not in the cache. Links know
//! what they deliver next: what its flow touches is fetched meanwhile, in three steps, each of
//! which needs what the one before has fetched.

use ackclock_packet::Packet;
use ackclock_units::prefetch;

use super::World;
use crate::host::Host;
use crate::index::{DirectionId, HostId, RouteId};

/// The number of flows from which prefetching pays: fewer stay in a second-level cache of 1 MiB.
pub(super) const MANY: usize = 128;

impl World {
    /// A link has just delivered a packet, which is dealt with next.
    #[inline]
    pub(super) fn look_ahead(&self, direction: DirectionId) {
        let [first, second, third] = self.directions[direction].upcoming();
        let host = |packet: &Packet| self.routes.behind(RouteId::of_packet(packet.route), packet.hop).err();
        if let Some(host) = first.and_then(host) {
            self.prefetch_behind(host);
        }
        if let Some(host) = second.and_then(host) {
            self.prefetch_state(host);
        }
        if let Some(packet) = third {
            self.pool.prefetch(packet.slot);
            if let Some(host) = host(packet) {
                self.prefetch_place(host);
            }
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
