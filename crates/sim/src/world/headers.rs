//! The headers that a queue is shown of a packet.

use ackclock_aqm::{AckHeader, Headers};
use ackclock_packet::{Flags, Packet, Segment};

use super::World;
use crate::index::{DirectionId, RouteId};

impl World {
    /// Shows the queue of a direction the headers of the packet that is offered next: the hosts
    /// that its flow names, and its ACK. A packet of no flow has no host that others have, and the
    /// segment of one between two kernels is known only if it is of a flow.
    #[cold]
    #[inline(never)]
    pub(super) fn show(&mut self, direction: DirectionId, packet: &Packet) {
        let to = self.routes.to(RouteId::of_packet(packet.route));
        let named = self.flows.get(to.flow()).and_then(|flow| flow.hosts);
        let hosts = match named {
            Some([sender, receiver]) if to.is_sender() => [receiver, sender].map(u64::from),
            Some(hosts) => hosts.map(u64::from),
            None => [packet.flow_hash; 2],
        };
        let segment = &self.pool.get(packet.slot).segment;
        self.directions[direction].look(Headers { hosts, ack: ack(segment) });
    }
}

/// The ACK of a segment, if it has one and is not of a handshake.
fn ack(segment: &Segment) -> Option<AckHeader<'_>> {
    let Segment { flags, payload, mss, window_scale, sack_permitted, fast_open, acc_ecn, mptcp, .. } = segment;
    let ecn = Flags::ECE | Flags::CWR;
    let options =
        mss.is_some() || window_scale.is_some() || *sack_permitted || fast_open.is_some() || acc_ecn.is_some();
    let alone = flags.bits() & !ecn.bits() == Flags::ACK.bits();
    (flags.contains(Flags::ACK) && !flags.contains(Flags::SYN)).then_some(AckHeader {
        number: segment.ack,
        ecn: [Flags::CWR, Flags::ECE].map(|flag| flags.contains(flag)),
        says_more: !alone || payload.len > 0 || options || !mptcp.is_empty(),
        timestamps: segment.timestamps.map(|stamps| (stamps.value, stamps.echo)),
        sack: segment.sack.as_slice(),
    })
}
