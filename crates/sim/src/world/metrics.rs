//! Metrics of destinations that hosts keep from one connection to the next.

use ackclock_units::Time;

use super::World;
use crate::host::Host;
use crate::index::HostId;

impl World {
    /// The sender of a flow that is about to start knows what its host remembers.
    #[cold]
    pub(super) fn recall(&mut self, host: HostId) {
        let flow = &self.flows[host.flow()];
        let Some(number) = flow.metrics().filter(|_| host.is_sender() && !flow.has_started()) else { return };
        if let (Host::Endpoint(endpoint), Some(metrics)) = (&mut self.hosts[host], self.metrics.get(number)) {
            endpoint.recall(*metrics);
        }
    }

    /// An end of a flow has closed, and everything is acknowledged to it.
    #[cold]
    pub(super) fn ended(&mut self, now: Time, host: HostId) {
        let flow = &mut self.flows[host.flow()];
        if host.is_sender()
            && let Some(metrics) = flow.take_metrics().and_then(|number| self.metrics.get_mut(number))
            && let Host::Endpoint(endpoint) = &self.hosts[host]
        {
            endpoint.sender().remember(metrics);
        }
        if self.hosts[host.peer()].is_finished() {
            flow.finish(now);
        }
    }
}
