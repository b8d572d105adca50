//! Clients that open and close connections of their own. Each connection is a flow that comes and
//! goes, of a group that has the client's flow as its owner.

use std::sync::Arc;

use ackclock_units::Time;

use super::World;
use crate::flow::{ConnectionChoice, Flow};
use crate::host::Host;
use crate::index::{FlowId, IndexVec};
use crate::spec::{Application, FlowGroup, FlowSpec, Pairs, Starts, SumSpec};

/// Flow numbers reserved for the connections of a client.
pub(super) const MOST_CONNECTIONS: u64 = 1 << 32;

/// The groups of the connections of clients, each with the client.
pub(super) fn groups(flows: &[FlowSpec]) -> impl Iterator<Item = (SumSpec, Option<FlowId>)> + '_ {
    let clients = flows.iter().enumerate().filter(|(_, flow)| flow.application.connections().is_some());
    clients.map(|(number, flow)| {
        let group = FlowGroup { application: Application::Connection, ..FlowGroup::clone(&flow.group) };
        let starts = Starts::Listed(Vec::new());
        let pairs = flow.via.as_ref().map(|via| Pairs::listed(&via.topology, [via.hosts]));
        let spec = SumSpec { id: flow.id.to_string(), group: Arc::new(group), starts, pairs, before: flows.len() };
        (spec, Some(FlowId::new(number)))
    })
}

/// A connection of a client is over, or the run: what was measured on it is the client's.
pub(super) fn absorb(flows: &mut IndexVec<FlowId, Flow>, client: FlowId, connection: FlowId, ends: [&Host; 2]) {
    let [client, connection] = flows.two(client, connection);
    client.absorb(connection, ends);
}

impl World {
    /// Something has happened at an end of a flow, before what follows is sent: if a client is
    /// behind it, it takes its turn. `arrived` bytes of a packet were measured at the receiver.
    #[inline]
    pub(super) fn attend(&mut self, now: Time, flow: FlowId, arrived: Option<u32>) {
        if self.turnover.is_some() {
            self.attend_client(now, flow, arrived);
        }
    }

    #[cold]
    fn attend_client(&mut self, now: Time, flow: FlowId, arrived: Option<u32>) {
        let Some(client) = self.client_of(flow) else {
            if self.flows[flow].tries().is_some() {
                self.try_on(now, flow);
            } else if self.flows[flow].browser().is_some() {
                self.browse(now, flow);
                self.wake(now, flow);
            }
            return;
        };
        if let Some(bytes) = arrived {
            // What its connections have got is known when they are over.
            self.flows[client].measure_packet(now, bytes, || 0);
        }
        if self.flows[client].tries().is_some() {
            self.try_on(now, client);
            return;
        }
        if let Some(steps) = self.flows[flow].connection().and_then(|connection| connection.take_answer()) {
            if let Some(browser) = self.flows[client].browser() {
                browser.answered(now, flow, steps);
            }
            self.browse(now, client);
            // When the client does something by itself next may have changed.
            self.wake(now, client);
        }
    }

    /// Sends the requests that a client can send.
    fn browse(&mut self, now: Time, client: FlowId) {
        while self.flows[client].is_browsing() {
            let Some(browser) = self.flows[client].browser() else { return };
            let (is_single, is_probing, then) = (browser.is_single(), browser.is_probing(), browser.then());
            let Some((exchange, over)) = browser.make(now) else { break };
            let flow = match over {
                ConnectionChoice::Open(flow) => flow,
                ConnectionChoice::New => self.connect(now, client),
            };
            if let Some(connection) = self.flows[flow].connection() {
                match is_probing {
                    true => connection.begin_two(now, exchange, then),
                    false => connection.begin(exchange, is_single),
                }
            }
            if over != ConnectionChoice::New {
                self.wake(now, flow);
            }
        }
        let state = &mut self.flows[client];
        let is_browsing = state.is_browsing();
        let Some(browser) = state.browser() else { return };
        let is_done = browser.is_done();
        if is_done || !is_browsing {
            for flow in browser.take_idle() {
                if let Some(connection) = self.flows[flow].connection() {
                    connection.end();
                }
                self.wake(now, flow);
            }
        }
        if is_done && !self.flows[client].has_nothing_more() {
            self.flows[client].cease(now);
        }
    }

    /// The application at the sender of a flow has its turn, and what it writes is sent after what
    /// happens at this time.
    pub(super) fn wake(&mut self, now: Time, flow: FlowId) {
        let host = flow.sender();
        self.flows[flow].drive(now, &mut self.hosts[host]);
        let due = if self.flows[flow].connection().is_some() { now } else { self.flows[flow].acts_at() };
        self.host_wakeups.arm(host.slot(), due);
    }
}
