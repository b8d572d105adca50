//! Datagrams: they enter and leave the world like segments, and are numbered by their flow.

use ackclock_packet::{Class, Packet, flow_hash};
use ackclock_units::{Ecn, Time};

use super::World;
use super::contents::datagrams_of;
use super::routes::RoutedPacket;
use crate::datagrams::DatagramInFlight;
use crate::index::HostId;

impl World {
    /// The application of a sender of datagrams is due.
    pub(super) fn serve_datagrams(&mut self, now: Time, host: HostId) {
        if host.is_sender() {
            let flow = &mut self.flows[host.flow()];
            let open = !flow.has_closed();
            flow.drive(now, &mut self.hosts[host]);
            if open && flow.has_closed() {
                flow.cease(now);
            }
        }
        self.send_datagrams(now, host);
        let due = self.hosts[host].next_deadline(now);
        let due = if host.is_sender() { due.min(self.flows[host.flow()].acts_at()) } else { due };
        self.host_wakeups.arm(host.slot(), due);
    }

    /// A datagram has reached its host, which may answer at once.
    pub(super) fn take_datagram(&mut self, now: Time, host: HostId, packet: Packet) {
        let datagram = DatagramInFlight::from(self.pool.get(packet.slot));
        self.free(packet.slot);
        let Some(end) = datagrams_of(&mut self.hosts, host) else { return };
        let flow = &mut self.flows[host.flow()];
        if !host.is_sender() {
            flow.measure_packet(now, packet.wire_len, || end.delivered());
        }
        let is_new = end.input(now, datagram, packet.ecn);
        if host.is_sender() && is_new {
            let rtt = now.since(datagram.sent);
            flow.measure_rtt(rtt);
            if self.autorates.is_some() {
                self.adapt_shapers(now, host.flow(), rtt);
            }
        }
        self.send_datagrams(now, host);
    }

    fn send_datagrams(&mut self, now: Time, host: HostId) {
        while let Some((datagram, ecn)) = datagrams_of(&mut self.hosts, host).and_then(|end| end.transmit(now)) {
            self.send_datagram(now, host, datagram, ecn);
        }
    }

    fn send_datagram(&mut self, now: Time, host: HostId, datagram: DatagramInFlight, ecn: Ecn) {
        *self.pool.get_mut(self.spare) = datagram.into();
        let number = match &mut self.turnover {
            Some(turnover) => turnover.left(host.flow()),
            None => host.flow().index() as u64,
        };
        let flow_hash = flow_hash(number, !host.is_sender());
        let packet = Packet {
            flow_hash,
            slot: std::mem::replace(&mut self.spare, self.pool.claim()),
            wire_len: datagram.wire_len(),
            route: self
                .routes
                .next(host, RoutedPacket { now, flow_hash, continues: false, is_handshake: || false })
                .number(),
            hop: 0,
            ecn,
            class: Class::new(self.flows[host.flow()].dscp, false),
        };
        self.capture(now, host, false, packet);
        self.forward(now, packet);
    }
}
