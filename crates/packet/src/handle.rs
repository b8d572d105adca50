//! The handle of a packet.

use ackclock_units::Ecn;

/// A packet on its way: 24 bytes, moved by value; the contents stay in a [`crate::Pool`] slot.
///
/// CE is set on the handle and written to a header only where bytes leave.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Packet {
    /// Hash of the flow, the same for all packets of one direction of a connection.
    pub flow_hash: u64,
    /// The pool slot with the contents.
    pub slot: u32,
    /// Bytes on the wire: IP header and all that follows; a link adds its framing while it holds
    /// the packet.
    pub wire_len: u32,
    /// The packet's route (an index kept by the driver).
    pub route: u32,
    /// Links of the route that are behind it.
    pub hop: u16,
    /// The ECN codepoint, as marked so far.
    pub ecn: Ecn,
    /// The packet's properties that a queue may classify by.
    pub class: Class,
}

const _: () = assert!(size_of::<Packet>() == 24);

/// The DSCP of a packet, whether it is a pure ACK, and whether it has a bit error, in the byte that
/// a [`Packet`] has left.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Class(u8);

impl Class {
    const PURE_ACK: u8 = 0x40;
    const CORRUPTED: u8 = 0x80;

    /// The class of a packet with this DSCP (RFC 2474), of which only the low six bits count.
    #[inline]
    pub const fn new(dscp: u8, pure_ack: bool) -> Class {
        Class(dscp & 0x3f | if pure_ack { Class::PURE_ACK } else { 0 })
    }

    /// The DSCP, 0 to 63.
    pub const fn dscp(self) -> u8 {
        self.0 & 0x3f
    }

    /// The same with a DSCP of 0.
    pub const fn washed(self) -> Class {
        Class(self.0 & !0x3f)
    }

    /// Returns true for a TCP segment that only acknowledges ([`crate::Segment::is_pure_ack`]).
    pub const fn is_pure_ack(self) -> bool {
        self.0 & Class::PURE_ACK != 0
    }

    /// The same of a packet that a link has corrupted. Queues do not see it.
    pub const fn corrupted(self) -> Class {
        Class(self.0 | Class::CORRUPTED)
    }

    /// Returns true if a link has corrupted the packet, so that its checksum is wrong at the
    /// receiver.
    #[inline]
    pub const fn is_corrupted(self) -> bool {
        self.0 & Class::CORRUPTED != 0
    }
}

/// The hash of a flow from its number and direction: a SplitMix64 finalizer, so that neighbouring
/// numbers spread.
#[inline]
pub fn flow_hash(flow: u64, reverse: bool) -> u64 {
    let mut z = (flow << 1 | u64::from(reverse)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_class_has_both_parts() {
        for dscp in 0..64 {
            for pure_ack in [false, true] {
                let class = Class::new(dscp, pure_ack);
                assert_eq!((class.dscp(), class.is_pure_ack(), class.is_corrupted()), (dscp, pure_ack, false));
                let class = class.corrupted();
                assert_eq!((class.dscp(), class.is_pure_ack(), class.is_corrupted()), (dscp, pure_ack, true));
            }
        }
        assert_eq!(Class::new(46, true).corrupted().washed(), Class::new(0, true).corrupted());
        // The ECN bits of a traffic class that was not shifted do not come through as an ACK.
        assert_eq!(Class::new(0xff, false), Class::new(0x3f, false));
        assert_eq!(Class::default(), Class::new(0, false));
    }
}
