//! Segments to bytes and back: IPv4 and TCP headers.

use crate::Segment;

/// Bytes of options with padding that [`crate::Segment`] takes on the wire, at most 40: the layouts of common stacks,
/// `mss, sackOK, TS` or `mss, nop, nop, sackOK` and `nop, wscale` on a SYN, `nop, nop, TS`, `nop, nop, SACK` otherwise.
pub fn options_len(segment: &Segment) -> u32 {
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
    let blocks = segment.sack.as_slice().len() as u32;
    if blocks > 0 {
        len += 4 + 8 * blocks;
    }
    len
}
