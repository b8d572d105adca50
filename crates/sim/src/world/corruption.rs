//! Packets with a bit error: they cross the rest of their path like any other, and the receiver
//! discards them, because a checksum is wrong.
//!
//! A checksum never misses one wrong bit: neither TCP's, whose pseudo-header has the addresses, nor
//! that of an IPv4 header. So it does not matter which bit it is; nothing in the packet is
//! believed, its ports and flags no more than its payload (RFC 9293 section 3.10.7).

use ackclock_packet::Packet;
use ackclock_units::Time;

use super::World;
use super::contents::lose_datagram;
use crate::host::Host;
use crate::index::{HostId, RouteId};
use crate::truth::{Culprit, Reason};

impl World {
    /// A corrupted packet has reached an end of a flow that is ackclock's.
    #[cold]
    pub(super) fn discard_corrupted(&mut self, now: Time, host: HostId, packet: Packet) {
        self.count_corrupted(now, host, &packet);
        if let Some(turnover) = &mut self.turnover {
            turnover.lost(host.flow());
        }
        self.free(packet.slot);
    }

    /// An end of a flow discards a packet.
    pub(super) fn count_corrupted(&mut self, now: Time, host: HostId, packet: &Packet) {
        if self.pool.references(packet.slot) == 1 {
            self.reaches_host_corrupted(now, host, packet);
        }
        let flow = &mut self.flows[host.flow()];
        flow.checksum_errors += 1;
        if let Host::Datagrams(_) = self.hosts[host] {
            if self.pool.references(packet.slot) == 1 {
                lose_datagram(&mut self.hosts, host, self.pool.get(packet.slot));
            }
            return;
        }
        let number = self.pool.get(packet.slot).number;
        // A doubled packet may still arrive whole.
        if !host.is_sender() && number > 0 && self.pool.references(packet.slot) == 1 {
            let culprit = Culprit::new(None, Reason::Checksum, None);
            let path = self.routes.path_of(RouteId::of_packet(packet.route));
            flow.lost(now, (path, number), culprit, self.records.tcp.as_deref_mut());
        }
    }
}
