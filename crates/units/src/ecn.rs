//! The two ECN bits of the IP header.

/// The ECN codepoint of a packet (RFC 3168 section 5); the discriminant is the two-bit field.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum Ecn {
    /// Not ECN-capable transport.
    #[default]
    NotEct = 0b00,
    /// ECN-capable transport, ECT(1): the identifier of L4S (RFC 9331).
    Ect1 = 0b01,
    /// ECN-capable transport, ECT(0).
    Ect0 = 0b10,
    /// Congestion experienced.
    Ce = 0b11,
}

impl Ecn {
    /// The codepoint in the low two bits of `field`; the rest is ignored.
    pub const fn from_bits(field: u8) -> Ecn {
        match field & 0b11 {
            0b00 => Ecn::NotEct,
            0b01 => Ecn::Ect1,
            0b10 => Ecn::Ect0,
            _ => Ecn::Ce,
        }
    }

    /// The two-bit field.
    pub const fn bits(self) -> u8 {
        self as u8
    }

    /// Returns true if a queue may mark this packet instead of dropping it.
    pub const fn is_capable(self) -> bool {
        !matches!(self, Ecn::NotEct)
    }
}
