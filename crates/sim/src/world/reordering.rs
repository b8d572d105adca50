//! Packets pass the places at which reordering is measured.

use ackclock_packet::Packet;
use ackclock_units::Time;

use super::World;
use super::contents::{number, transmission};
use crate::index::{DirectionId, HostId, RouteId};
use crate::reordering::Passing;

impl World {
    /// Returns true if every packet that leaves a link must be examined.
    pub(super) fn has_to_attend_links(&self) -> bool {
        self.media.is_some()
            || self.decisions.as_ref().is_some_and(|decisions| decisions.by_acks)
            || self.records.reordering.as_ref().is_some_and(|places| places.has_directions())
    }

    /// Packets have arrived at the far end of a link direction, where each is looked at.
    #[cold]
    #[inline(never)]
    pub(super) fn serve_attended(&mut self, now: Time, direction: DirectionId) {
        if self.media.is_some() {
            return self.serve_on_medium(now, direction);
        }
        while let Some((at, packet)) = self.directions[direction].deliver(now, &mut self.events) {
            self.settle(direction);
            self.leaves_link(at, direction, packet);
            self.forward_to_decision(at, packet);
            if self.is_waiting() {
                break;
            }
        }
        self.settle(direction);
        self.rearm_direction(direction);
    }

    /// A packet leaves a link.
    pub(super) fn leaves_link(&mut self, at: Time, direction: DirectionId, packet: Packet) {
        if self.records.reordering.is_some() {
            let to = self.routes.to(RouteId::of_packet(packet.route));
            if let (Some(passing), Some(places)) = (self.passing(to, packet), &mut self.records.reordering) {
                places.behind(at, direction, passing);
            }
        }
    }

    /// A packet reaches its host; its flow is not told yet.
    pub(super) fn reaches_host(&mut self, at: Time, host: HostId, packet: Packet) {
        if self.records.reordering.is_some() {
            let (passing, contents) = (self.passing(host, packet), self.pool.get(packet.slot));
            let Some(places) = &mut self.records.reordering else { return };
            if let Some(passing) = passing {
                places.at_receiver(at, passing);
            }
            if let Some(number) = transmission(&self.hosts, host, contents) {
                places.in_sequence(at, host.flow(), number, &self.flows[host.flow()].truth, Some(packet.wire_len));
            }
        }
    }

    /// The last copy of a packet has reached its host with a wrong checksum; its flow is not told
    /// yet.
    pub(super) fn reaches_host_corrupted(&mut self, at: Time, host: HostId, packet: &Packet) {
        if let Some(places) = &mut self.records.reordering
            && let Some(number) = transmission(&self.hosts, host, self.pool.get(packet.slot))
        {
            places.in_sequence(at, host.flow(), number, &self.flows[host.flow()].truth, None);
        }
    }

    /// The measured properties of a packet to this host; `None` for packets of a sender without
    /// data.
    fn passing(&self, to: HostId, packet: Packet) -> Option<Passing> {
        let number = number(&self.hosts, to, self.pool.get(packet.slot))?;
        Some(Passing { from: to.peer(), number, bytes: packet.wire_len })
    }

    /// The run has ended: what is still missing at places is lost.
    pub(super) fn finish_reordering(&mut self) {
        if let Some(places) = &mut self.records.reordering {
            places.finish();
        }
    }
}
