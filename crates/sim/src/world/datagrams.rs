//! Datagrams: they enter and leave the world like segments, and are numbered by their flow.

use ackclock_packet::{Class, Packet, Payload, Segment, flow_hash};
use ackclock_units::{Ecn, Time};

use super::routes::RoutedPacket;
use super::{Contents, World};
use crate::datagrams::{DatagramInFlight, Datagrams};
use crate::host::Host;
use crate::index::{HostId, IndexVec};

/// A datagram as the contents of a packet. In records, its payload shows its number and length.
impl From<DatagramInFlight> for Contents {
    fn from(datagram: DatagramInFlight) -> Contents {
        let payload = Payload { offset: datagram.number, len: datagram.len };
        Contents { segment: Segment { payload, ..Segment::default() }, number: datagram.sent.as_nanos() }
    }
}

impl From<&Contents> for DatagramInFlight {
    fn from(contents: &Contents) -> DatagramInFlight {
        let Payload { offset, len } = contents.segment.payload;
        DatagramInFlight { number: offset, sent: Time::from_nanos(contents.number), len }
    }
}

fn end(hosts: &mut IndexVec<HostId, Host>, host: HostId) -> Option<&mut Datagrams> {
    match hosts.get_mut(host) {
        Some(Host::Datagrams(end)) => Some(end),
        _ => None,
    }
}

/// The last copy of a datagram to this host was lost: the end that measures notes it.
#[cold]
pub(super) fn lost(hosts: &mut IndexVec<HostId, Host>, to: HostId, contents: &Contents) {
    let datagram = DatagramInFlight::from(contents);
    for host in [to, to.peer()] {
        if let Some(end) = end(hosts, host) {
            end.lost(datagram.number);
        }
    }
}

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
        let Some(end) = end(&mut self.hosts, host) else { return };
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
        while let Some((datagram, ecn)) = end(&mut self.hosts, host).and_then(|end| end.transmit(now)) {
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
