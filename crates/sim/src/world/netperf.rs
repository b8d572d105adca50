//! Clients of netperf's stream test, which open a control and a data connection for each try.

use ackclock_traffic::{ConnectionSeen, NetperfStep};
use ackclock_units::Time;

use super::World;
use crate::index::FlowId;

impl World {
    /// Something has happened on a connection of a client, or its time has come.
    #[cold]
    pub(super) fn try_on(&mut self, now: Time, client: FlowId) {
        let Some(before) = self.flows[client].tries().map(|tries| tries.client.next_at()) else { return };
        while self.flows[client].is_browsing() {
            let Some(tries) = self.flows[client].tries() else { return };
            let (control, data) = (tries.control, tries.data);
            let seen = [control, data].map(|flow| flow.map_or(ConnectionSeen::default(), |flow| self.look_at(flow)));
            let Some(tries) = self.flows[client].tries() else { return };
            let Some(step) = tries.client.step(now, seen[0], seen[1]) else { break };
            self.take_step(now, client, step);
        }
        let is_done = self.flows[client].tries().is_some_and(|tries| tries.client.is_done());
        if is_done && !self.flows[client].has_nothing_more() {
            self.flows[client].cease(now);
        }
        let after = self.flows[client].tries().map(|tries| tries.client.next_at());
        if after != Some(before) {
            self.wake(now, client);
        }
    }

    fn look_at(&mut self, flow: FlowId) -> ConnectionSeen {
        let host = &self.hosts[flow.sender()];
        let state = &mut self.flows[flow];
        ConnectionSeen {
            open: host.is_open(),
            over: state.has_started() && host.is_over(),
            answered: state.connection().is_some_and(|connection| connection.take_answer().is_some()),
            ended: host.peer_finished(),
        }
    }

    fn take_step(&mut self, now: Time, client: FlowId, step: NetperfStep) {
        let Some(tries) = self.flows[client].tries() else { return };
        let (pattern, control, data) = (tries.client.pattern().clone(), tries.control, tries.data);
        match step {
            NetperfStep::OpenControl => {
                let flow = self.connect(now, client);
                if let Some(connection) = self.flows[flow].connection() {
                    connection.begin(pattern.control, false);
                }
                self.note_connections(client, Some(flow), None);
            }
            NetperfStep::OpenData => {
                let flow = self.connect(now, client);
                let size = self.flows[flow].write_size();
                if let Some(connection) = self.flows[flow].connection() {
                    connection.begin_stream(pattern.length, size);
                }
                self.note_connections(client, control, Some(flow));
            }
            NetperfStep::Report => {
                let bytes = data.map_or(0, |flow| self.hosts[flow.receiver()].delivered_bytes());
                if let Some(tries) = self.flows[client].tries() {
                    tries.transferred(bytes);
                }
                let Some(flow) = control else { return };
                if let Some(connection) = self.flows[flow].connection() {
                    connection.report(now, pattern.control.response, &mut self.hosts[flow.receiver()]);
                }
                self.host_wakeups.arm(flow.receiver().slot(), now);
            }
            NetperfStep::CloseControl => {
                let Some(flow) = control else { return };
                if let Some(connection) = self.flows[flow].connection() {
                    connection.end();
                }
                self.wake(now, flow);
            }
            NetperfStep::Abandon => {
                for flow in [control, data].into_iter().flatten() {
                    self.flows[flow].give_up(now, &mut self.hosts[flow.sender()]);
                    self.wake(now, flow);
                }
                self.note_connections(client, None, None);
            }
        }
    }

    fn note_connections(&mut self, client: FlowId, control: Option<FlowId>, data: Option<FlowId>) {
        if let Some(tries) = self.flows[client].tries() {
            (tries.control, tries.data) = (control, data);
        }
    }
}
