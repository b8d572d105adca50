//! A TCP segment as the endpoint sees it: header fields and options decoded, the payload a range of
//! its stream.

use std::fmt;

use crate::{AccEcn, FastOpen, MptcpOptions};

/// Bytes of options that the data offset field can express.
pub(crate) const MAX_OPTIONS: u32 = 40;

/// A TCP segment (RFC 9293 section 3.1, options of RFC 7323, RFC 2018, RFC 7413,
/// RFC 8684 and RFC 9768).
/// Sequence numbers are the 32-bit ones of the wire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Segment {
    /// The range of the stream that the segment carries.
    pub payload: Payload,
    /// Port of the sender.
    pub source_port: u16,
    /// Port of the receiver.
    pub destination_port: u16,
    /// Sequence number of the first byte (of SYN, if set).
    pub seq: u32,
    /// Acknowledgment number; meaningful with [`Flags::ACK`].
    pub ack: u32,
    /// Control bits.
    pub flags: Flags,
    /// The window field, not scaled.
    pub window: u16,
    /// Maximum segment size option.
    pub mss: Option<u16>,
    /// Window scale option.
    pub window_scale: Option<u8>,
    /// SACK-permitted option.
    pub sack_permitted: bool,
    /// Timestamps option.
    pub timestamps: Option<Timestamps>,
    /// SACK option.
    pub sack: SackBlocks,
    /// TCP Fast Open option (RFC 7413).
    pub fast_open: Option<FastOpen>,
    /// AccECN option; not all of its fields fit next to other options: see [`crate::fit_acc_ecn`].
    pub acc_ecn: Option<AccEcn>,
    /// MPTCP options (RFC 8684).
    pub mptcp: MptcpOptions,
}

/// The timestamps option (RFC 7323 section 3).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timestamps {
    /// TSval.
    pub value: u32,
    /// TSecr.
    pub echo: u32,
}

/// A range of a stream: `len` bytes from byte `offset`, the first byte after the SYN being byte 0.
/// The bytes themselves are those of [`crate::pattern`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Payload {
    /// Offset of the first byte.
    pub offset: u64,
    /// Number of bytes.
    pub len: u32,
}

/// Up to four SACK blocks in the order of the option: left edge, and right edge one past the last
/// byte.
#[derive(Clone, Copy, Default)]
pub struct SackBlocks {
    len: u8,
    blocks: [(u32, u32); 4],
}

/// The control bits of a TCP header, as a bit set.
#[derive(Clone, Copy, Default, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    /// No bit set.
    pub const NONE: Flags = Flags(0);
    /// No more data from the sender.
    pub const FIN: Flags = Flags(0x01);
    /// Synchronize sequence numbers.
    pub const SYN: Flags = Flags(0x02);
    /// Reset the connection.
    pub const RST: Flags = Flags(0x04);
    /// Push.
    pub const PSH: Flags = Flags(0x08);
    /// The acknowledgment number is valid.
    pub const ACK: Flags = Flags(0x10);
    /// The urgent pointer is valid.
    pub const URG: Flags = Flags(0x20);
    /// ECN echo (RFC 3168).
    pub const ECE: Flags = Flags(0x40);
    /// Congestion window reduced (RFC 3168).
    pub const CWR: Flags = Flags(0x80);
    /// Accurate ECN (RFC 9768), once the nonce sum.
    pub const AE: Flags = Flags(0x100);
    const ALL: u16 = 0x1ff;

    /// The flags in the low nine bits of the header's flag field; the reserved bits above are
    /// ignored.
    pub const fn from_bits(bits: u16) -> Flags {
        Flags(bits & Flags::ALL)
    }

    /// The field of the header.
    pub const fn bits(self) -> u16 {
        self.0
    }

    /// AE, CWR and ECE with these values from the highest bit on: the ACE field (RFC 9768 section
    /// 3.2.2), of which the low three bits of `counter` count.
    pub const fn from_ace(counter: u8) -> Flags {
        Flags((counter as u16 & 7) << 6)
    }

    /// AE, CWR and ECE as a number of three bits.
    pub const fn ace(self) -> u8 {
        ((self.0 >> 6) & 7) as u8
    }

    /// Returns true if ACK is set, and none of SYN, FIN and RST.
    pub const fn is_ack_alone(self) -> bool {
        self.0 & (Flags::SYN.0 | Flags::FIN.0 | Flags::RST.0 | Flags::ACK.0) == Flags::ACK.0
    }

    /// Returns true if all of `other`'s bits are set.
    pub const fn contains(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl std::ops::BitOr for Flags {
    type Output = Flags;
    fn bitor(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }
}

impl std::ops::BitOrAssign for Flags {
    fn bitor_assign(&mut self, other: Flags) {
        self.0 |= other.0;
    }
}

impl fmt::Debug for Flags {
    /// tcpdump's letters: S F R P . E W U; and packetdrill's A for AE.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let letters = [
            (Flags::SYN, "S"),
            (Flags::FIN, "F"),
            (Flags::RST, "R"),
            (Flags::PSH, "P"),
            (Flags::URG, "U"),
            (Flags::ECE, "E"),
            (Flags::CWR, "W"),
            (Flags::AE, "A"),
            (Flags::ACK, "."),
        ];
        if *self == Flags::NONE {
            return f.write_str("-");
        }
        letters.iter().filter(|(flag, _)| self.contains(*flag)).try_for_each(|(_, letter)| f.write_str(letter))
    }
}

impl SackBlocks {
    /// Appends a block; `false`, and nothing done, if four are there already.
    pub fn push(&mut self, left: u32, right: u32) -> bool {
        let Some(block) = self.blocks.get_mut(usize::from(self.len)) else { return false };
        *block = (left, right);
        self.len += 1;
        true
    }

    /// The blocks.
    pub fn as_slice(&self) -> &[(u32, u32)] {
        &self.blocks[..usize::from(self.len)]
    }

    /// Returns true if there are no blocks.
    #[inline]
    pub fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Leaves out the last blocks, so that there are at most `len`.
    pub fn truncate(&mut self, len: usize) {
        self.len = self.len.min(u8::try_from(len).unwrap_or(u8::MAX));
    }

    /// Leaves out all of them.
    #[inline]
    pub fn clear(&mut self) {
        self.len = 0;
    }
}

impl PartialEq for SackBlocks {
    fn eq(&self, other: &SackBlocks) -> bool {
        self.as_slice() == other.as_slice()
    }
}

impl Eq for SackBlocks {}

impl fmt::Debug for SackBlocks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.as_slice().iter().map(|(left, right)| format!("{left}:{right}"))).finish()
    }
}

impl Segment {
    /// Becomes a segment from the first to the second of two ports with these flags, and nothing
    /// else. What was in it before is overwritten only where it would show.
    #[inline]
    pub fn begin(&mut self, (source_port, destination_port): (u16, u16), flags: Flags) {
        self.payload = Payload::default();
        (self.source_port, self.destination_port) = (source_port, destination_port);
        (self.seq, self.ack, self.flags, self.window) = (0, 0, flags, 0);
        (self.mss, self.window_scale, self.sack_permitted) = (None, None, false);
        self.timestamps = None;
        self.sack.clear();
        self.fast_open = None;
        self.acc_ecn = None;
        self.mptcp.clear();
    }

    /// Bytes of TCP header with options as the codec writes them.
    #[inline]
    pub fn header_len(&self) -> u32 {
        20 + options_len(self)
    }

    /// Bytes of the whole packet over IPv4 without IP options.
    #[inline]
    pub fn wire_len(&self) -> u32 {
        20 + self.header_len() + self.payload.len
    }

    /// Returns true if the segment only acknowledges: ACK without payload, SYN, FIN or RST.
    #[inline]
    pub fn is_pure_ack(&self) -> bool {
        self.payload.len == 0 && self.flags.is_ack_alone()
    }

    /// Sequence space that it occupies: payload, SYN and FIN.
    #[inline]
    pub fn sequence_len(&self) -> u32 {
        self.payload.len + u32::from(self.flags.contains(Flags::SYN)) + u32::from(self.flags.contains(Flags::FIN))
    }
}

/// Bytes of options with padding that [`Segment`] takes on the wire, at most 40 and the same
/// in every [`OptionLayout`](crate::OptionLayout). SACK blocks that do not fit are cut, from the last: with timestamps
/// three remain, and on a packet with all other options but those of MPTCP two. MPTCP's are left
/// out where they do not fit beside others than SACK.
#[inline]
pub fn options_len(segment: &Segment) -> u32 {
    let len = fixed_options_len(segment);
    if segment.sack.is_empty() {
        return len;
    }
    match sack_blocks_that_fit(segment, len) {
        0 => len,
        blocks => len + 4 + 8 * blocks,
    }
}

/// Bytes of all options but SACK: at most 40, of which 20 are for Fast Open.
#[inline]
pub(crate) fn fixed_options_len(segment: &Segment) -> u32 {
    let mut len = 0;
    if segment.mss.is_some() {
        len += 4;
    }
    // SACK-permitted takes the place of the two NOPs before a timestamp.
    if segment.timestamps.is_some() {
        len += 12;
    } else if segment.sack_permitted {
        len += 4;
    }
    if segment.window_scale.is_some() {
        len += 4;
    }
    if segment.fast_open.is_some() || segment.acc_ecn.is_some() || !segment.mptcp.is_empty() {
        len = with_rare_options(segment, len);
    }
    len
}

/// `len` bytes of other options, and those that few segments have.
#[cold]
fn with_rare_options(segment: &Segment, mut len: u32) -> u32 {
    if let Some(fast_open) = &segment.fast_open {
        len += (fast_open.option_len() as u32).next_multiple_of(4);
    }
    if let Some(option) = segment.acc_ecn {
        len += acc_ecn_len(segment, option, len);
    }
    len + mptcp_len(segment, len)
}

/// The bytes that MPTCP adds to `others` bytes of other options: 0 if it does not fit.
pub(crate) fn mptcp_len(segment: &Segment, others: u32) -> u32 {
    let len = segment.mptcp.padded_len();
    if others + len <= MAX_OPTIONS { len } else { 0 }
}

/// The bytes that AccECN adds to `others` bytes of other options: it can replace one or two of the
/// NOPs that align them.
fn acc_ecn_len(segment: &Segment, option: AccEcn, others: u32) -> u32 {
    // A SACK option follows, whatever the length of this one.
    let sack = !segment.sack.is_empty() && others + 12 + 4 + 8 <= MAX_OPTIONS;
    let spare = if segment.sack_permitted && segment.timestamps.is_none() || sack {
        2
    } else {
        usize::from(segment.window_scale.is_some())
    };
    let len = option.len();
    (if len % 4 > spare { len.next_multiple_of(4) } else { len - len % 4 }) as u32
}

/// The number of SACK blocks that fit behind `fixed` bytes of other options.
pub(crate) fn sack_blocks_that_fit(segment: &Segment, fixed: u32) -> u32 {
    (segment.sack.as_slice().len() as u32).min(MAX_OPTIONS.saturating_sub(fixed + 4) / 8)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_pure_ack_carries_nothing() {
        let ack = Segment { flags: Flags::ACK | Flags::ECE | Flags::PSH, ..Segment::default() };
        assert!(ack.is_pure_ack());
        for flags in [Flags::NONE, Flags::ACK | Flags::SYN, Flags::ACK | Flags::FIN, Flags::ACK | Flags::RST] {
            assert!(!Segment { flags, ..ack }.is_pure_ack(), "{flags:?}");
        }
        assert!(!Segment { payload: Payload { offset: 0, len: 1 }, ..ack }.is_pure_ack());
    }
}
