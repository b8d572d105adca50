//! Ackclock endpoints that listen on: a connection from outside that has brought nothing gives its
//! place to the next one.

use ackclock_tcp::State;
use ackclock_units::Time;

use super::Inbound;
use crate::build::{self, SharedConfigs, Streams};
use crate::host::Host;
use crate::index::FlowId;
use crate::spec::{FlowSpec, HostSpec, RunSpec};
use crate::world::World;

/// The specifications from which endpoints that listen to hosts outside are rebuilt.
#[derive(Debug)]
pub(super) struct Listeners {
    streams: Streams,
    flows: Vec<(FlowId, FlowSpec)>,
}

impl Listeners {
    pub(super) fn new(spec: &RunSpec) -> Listeners {
        let listens = |flow: &FlowSpec| {
            let ours = matches!(flow.receiver, HostSpec::Endpoint(_) | HostSpec::Smoltcp(_));
            ours && flow.mptcp.is_none() && matches!(flow.sender, HostSpec::Outside)
        };
        let flows = spec.flows.iter().enumerate().filter(|(_, flow)| listens(flow));
        let flows = flows.map(|(number, flow)| (FlowId::new(number), flow.clone())).collect();
        Listeners { streams: Streams::of(spec), flows }
    }

    fn flow(&self, id: FlowId) -> Option<&FlowSpec> {
        let found = self.flows.binary_search_by_key(&id.index(), |(flow, _)| flow.index()).ok()?;
        Some(&self.flows[found].1)
    }
}

impl World {
    /// Returns true if the receiver of a flow, an ackclock endpoint that listens to a host
    /// outside, accepts a further connection: it has had none, or one that is over or was closed by
    /// the peer without a byte of data.
    pub fn listens_on(&self, flow: FlowId) -> bool {
        let Some(outside) = &self.outside else { return false };
        if outside.draining || outside.listeners.flow(flow).is_none() {
            return false;
        }
        let receiver = &self.hosts[flow.receiver()];
        let listens = matches!(receiver, Host::Endpoint(endpoint) if endpoint.state() == State::Listen);
        let is_unused = receiver.delivered_bytes() == 0 && receiver.acked_bytes() == 0;
        is_unused && (listens || receiver.is_over() || receiver.peer_finished())
    }

    /// A SYN has reached the receiver of a flow that [listens on](World::listens_on), by a packet
    /// of none: the flow begins with it, as if there had been no other connection. `false`, and
    /// nothing taken in, if it does not listen on.
    pub fn accept_anew(&mut self, now: Time, inbound: Inbound<'_>) -> bool {
        let Some(end) = inbound.end.filter(|end| now < self.end && self.listens_on(end.flow())) else { return false };
        let Some(outside) = &self.outside else { return false };
        let Some(spec) = outside.listeners.flow(end.flow()) else { return false };
        let [_, receiver] = build::hosts(outside.listeners.streams, spec, &mut SharedConfigs::default());
        self.hosts[end.peer()] = receiver;
        self.hosts[end.peer()].listen();
        self.flows[end.flow()].begin_anew();
        let route = self.routes.of(end, inbound.path);
        let packet = self.enter(now, inbound, route);
        self.arrive(now, end.peer(), &packet);
        true
    }
}
