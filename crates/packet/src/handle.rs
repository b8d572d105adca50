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
    /// Which route the packet follows (an index that the driver keeps).
    pub route: u32,
    /// Links of the route that are behind it.
    pub hop: u16,
    /// The ECN codepoint, as marked so far.
    pub ecn: Ecn,
}

const _: () = assert!(size_of::<Packet>() == 24);

/// The hash of a flow from its number and direction: a SplitMix64 finalizer, so that neighbouring
/// numbers spread.
pub fn flow_hash(flow: u64, reverse: bool) -> u64 {
    let mut z = (flow << 1 | u64::from(reverse)).wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}
