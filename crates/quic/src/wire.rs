//! Packets as they are sent: headers, and the counts of marks in acknowledgments.
//!
//! # Source
//! RFC 9000: packet headers (section 17), variable-length integers (section 16), ACK frames (section
//! 19.3).

use crate::transfer::CID;

/// Bytes of a packet's tag (RFC 9001 section 5.3).
pub(crate) const TAG: usize = 16;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) kind: &'static str,
    /// Packet number space.
    pub(crate) space: usize,
    /// The last `bits` of its number.
    pub(crate) number: u64,
    pub(crate) bits: u32,
    /// Bytes of the header, and of the packet.
    pub(crate) header: usize,
    pub(crate) bytes: usize,
}

/// The first packet of a datagram; `None` of nothing, and of a packet without a number.
pub(crate) fn packet(datagram: &[u8]) -> Option<Packet> {
    let first = *datagram.first()?;
    let (kind, space, at, bytes) = if first & 0x80 == 0 {
        ("1RTT", 2, 1 + CID, datagram.len())
    } else {
        let (kind, space) = match first >> 4 & 0b11 {
            0 => ("initial", 0),
            1 => ("0RTT", 2),
            2 => ("handshake", 1),
            _ => return None,
        };
        // After the version come both connection IDs, then the token of an Initial packet.
        let mut at = 5;
        for _ in 0..2 {
            at += 1 + usize::from(*datagram.get(at)?);
        }
        if kind == "initial" {
            let (token, after) = length(datagram, at)?;
            at = after + token;
        }
        let (length, at) = length(datagram, at)?;
        (kind, space, at, at + length)
    };
    let len = usize::from(first & 0b11) + 1;
    let number = datagram.get(at..at + len)?.iter().fold(0, |number, &byte| number << 8 | u64::from(byte));
    let header = at + len;
    (bytes <= datagram.len()).then_some(Packet { kind, space, number, bits: 8 * len as u32, header, bytes })
}

/// The packets with CE that the receiver of application data has counted, by the ACK frame of a 1-RTT
/// packet; `None` without one at the beginning of the packet.
pub(crate) fn marks(datagram: &[u8]) -> Option<u64> {
    let Packet { kind: "1RTT", header, bytes, .. } = packet(datagram)? else { return None };
    let frames = datagram.get(header..bytes.checked_sub(TAG)?)?;
    let mut at = 0;
    loop {
        let (kind, after) = variable(frames, at)?;
        at = after;
        match kind {
            // PADDING, PING, HANDSHAKE_DONE and IMMEDIATE_ACK have no contents, and may come before.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            0x03 => break,
            _ => return None,
        }
    }
    // Largest number and delay, the ranges, and the counts of ECT(0) and ECT(1) before that of CE.
    let mut next = || {
        let (value, after) = variable(frames, at)?;
        at = after;
        Some(value)
    };
    let (_, _, ranges, _) = (next()?, next()?, next()?, next()?);
    for _ in 0..ranges {
        let _ = (next()?, next()?);
    }
    let _ = (next()?, next()?);
    next()
}

/// The variable-length integer at `at`, and where it ends.
fn variable(bytes: &[u8], at: usize) -> Option<(u64, usize)> {
    let first = *bytes.get(at)?;
    let end = at + (1 << (first >> 6));
    let rest = bytes.get(at + 1..end)?;
    Some((rest.iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte)), end))
}

/// As [`variable`], of a length that fits a datagram.
fn length(bytes: &[u8], at: usize) -> Option<(usize, usize)> {
    let (value, end) = variable(bytes, at)?;
    Some((u16::try_from(value).ok()?.into(), end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_acknowledgment_has_the_count_of_marks() {
        // RFC 9000 section 17.3.1: a short header, a number of one byte; PING; ACK with ECN counts of
        // section 19.3: largest 9, delay 0, one more range, first range 1, gap 0, length 2; ECT(0)
        // 300 in two bytes, ECT(1) 0, CE 5; the tag.
        let mut datagram = vec![0x40, 1, 2, 3, 4, 5, 6, 7, 8, 7, 0x01, 0x03, 9, 0, 1, 1, 0, 2, 0x41, 0x2c, 0, 5];
        datagram.extend([0; TAG]);
        assert_eq!(marks(&datagram), Some(5));
        for len in 0..datagram.len() {
            assert_eq!(marks(&datagram[..len]), None, "{len}");
        }
        // An ACK without counts.
        datagram[11] = 0x02;
        assert_eq!(marks(&datagram), None);
    }
}
