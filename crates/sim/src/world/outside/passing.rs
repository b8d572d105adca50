//! Packets that pass the ends of flows outside: their headers are watched.

use ackclock_packet::{Packet, Segment};
use ackclock_units::Time;

use crate::host::Host;
use crate::index::{FlowId, HostId};
use crate::watch::HeaderWatch;
use crate::world::{Contents, World};

impl World {
    /// The spare slot has a packet that an end of a flow outside has sent over a path.
    pub(super) fn come_in(&mut self, now: Time, host: HostId, path: usize) {
        let flow = &mut self.flows[host.flow()];
        let contents = self.pool.get_mut(self.spare);
        if host.is_sender() {
            flow.begin(now);
        } else {
            contents.number = flow.receiver_sent(path);
        }
        let Some(Host::Outside(watch)) = self.hosts.get_mut(host).filter(|_| is_known(&contents.segment)) else {
            return;
        };
        let before = watch.counts();
        let (offset, turning) = watch.sends(now, &contents.segment);
        if let Some(subflows) = &mut flow.subflows {
            subflows.note_sent(path, &before, &watch.counts());
        }
        match &self.hosts[host.peer()] {
            // Nobody else knows where the streams of the connections begin.
            Host::Outside(_) => contents.segment.payload.offset = offset,
            Host::Mptcp(connection) => {
                let delivered = connection.acknowledged_by(&contents.segment);
                let is_plain = connection.is_plain();
                self.note_whole(host, is_plain, |watch| watch.has_delivered(delivered));
            }
            _ => {}
        }
        if turning {
            self.open_or_end(now, host.flow());
        }
    }

    /// A packet has reached an end of a flow outside.
    pub(super) fn go_out(&mut self, now: Time, host: HostId, packet: &Packet) {
        let path = self.path_of(packet);
        let Contents { segment, number } = self.pool.get(packet.slot);
        let flow = &mut self.flows[host.flow()];
        if !host.is_sender() {
            if *number > 0 {
                // Whether the kernel kept it, it does not tell.
                flow.arrived(now, (path, *number), &self.hosts[host], self.records.tcp.as_deref_mut());
            }
            let receiver = &self.hosts[host];
            flow.measure_packet_of(now, path, packet.wire_len, || receiver.received_bytes());
        }
        let Some(Host::Outside(watch)) = self.hosts.get_mut(host).filter(|_| is_known(segment)) else { return };
        let (arrival, turning) = watch.receives(now, segment);
        if let Host::Mptcp(connection) = &self.hosts[host.peer()] {
            let (heard, is_plain) = (connection.acknowledges(segment), connection.is_plain());
            self.note_whole(host, is_plain, |watch| watch.has_heard(heard));
        }
        let flow = &mut self.flows[host.flow()];
        if host.is_sender() {
            let (sender, receiver) = (&self.hosts[host], &self.hosts[host.peer()]);
            flow.measure_ack_of(path, &arrival, sender);
            if flow.is_complete(sender.acked_bytes()) {
                flow.complete(now, receiver);
            }
        }
        if turning {
            self.open_or_end(now, host.flow());
        }
    }

    /// Flows with so many simultaneous connections outside that their measures lack some of them.
    pub fn incomplete_flows(&self) -> impl Iterator<Item = &str> {
        let is_incomplete = |host: HostId| match self.hosts.get(host) {
            Some(Host::Outside(watch)) => watch.is_incomplete(),
            _ => false,
        };
        let ids = (0..self.flows.len()).map(FlowId::new);
        ids.filter(move |flow| is_incomplete(flow.sender()) || is_incomplete(flow.receiver()))
            .map(|flow| &*self.flows[flow].id)
    }

    /// Passes a data acknowledgment to the watch of a host.
    fn note_whole(&mut self, host: HostId, is_plain: bool, note: impl FnOnce(&mut HeaderWatch)) {
        if let Some(Host::Outside(watch)) = self.hosts.get_mut(host) {
            if is_plain { watch.is_plain() } else { note(watch) }
        }
    }

    #[cold]
    fn open_or_end(&mut self, now: Time, flow: FlowId) {
        self.flows[flow].open_or_end(now, &self.hosts[flow.sender()], &self.hosts[flow.receiver()]);
    }
}

/// Returns true for a segment with ports; one without is none.
fn is_known(segment: &Segment) -> bool {
    (segment.source_port, segment.destination_port) != (0, 0)
}
