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

#[cfg(test)]
mod tests {
    use ackclock_packet::{Payload, SackBlocks, Timestamps};

    use super::*;

    /// Segments as a filter of ACKs sees them (sch_cake.c, `cake_ack_filter`).
    #[test]
    fn an_ack_says_more_or_not() {
        let plain = Segment { flags: Flags::ACK, ack: 7, ..Segment::default() };
        let says_more = |segment: Segment| ack(&segment).map(|ack| ack.says_more);
        assert_eq!(says_more(plain), Some(false));
        // Marks are compared apart.
        let marked = Segment { flags: Flags::ACK | Flags::ECE | Flags::CWR, ..plain };
        assert_eq!(ack(&marked).map(|ack| (ack.number, ack.ecn, ack.says_more)), Some((7, [true; 2], false)));
        let one = Segment { flags: Flags::ACK | Flags::CWR, ..plain };
        assert_eq!(ack(&one).map(|ack| ack.ecn), Some([true, false]));
        for flag in [Flags::PSH, Flags::FIN, Flags::RST, Flags::URG, Flags::AE] {
            assert_eq!(says_more(Segment { flags: Flags::ACK | flag, ..plain }), Some(true), "{flag:?}");
        }
        assert_eq!(says_more(Segment { payload: Payload { offset: 0, len: 1 }, ..plain }), Some(true));
        assert_eq!(says_more(Segment { mss: Some(1460), ..plain }), Some(true));
        assert_eq!(says_more(Segment { window_scale: Some(7), ..plain }), Some(true));
        assert_eq!(says_more(Segment { sack_permitted: true, ..plain }), Some(true));
        // Neither a handshake, nor a segment without an ACK, nor a datagram.
        for flags in [Flags::NONE, Flags::SYN, Flags::SYN | Flags::ACK, Flags::RST] {
            assert_eq!(says_more(Segment { flags, ..plain }), None, "{flags:?}");
        }
        let mut sack = SackBlocks::default();
        sack.push(9, 12);
        let full = Segment { timestamps: Some(Timestamps { value: 3, echo: 2 }), sack, ..plain };
        let seen = ack(&full).expect("an ACK");
        assert_eq!((seen.timestamps, seen.sack, seen.says_more), (Some((3, 2)), &[(9, 12)][..], false));
    }
}
