//! The state of segmentation offload (`offload.rs`): which unit a segment belongs to.

use ackclock_units::Time;

/// The units that a sender is in the middle of, or has put off.
#[derive(Debug, Default)]
pub(crate) struct Units {
    /// When the last one was begun.
    pub(super) at: Time,
    /// One past its last byte.
    pub(super) end: u64,
    /// The next part of the last unit that is sent again, and one past its last unit.
    pub(super) again: u64,
    pub(super) again_end: u64,
    /// One past the socket buffer that new data is taken from.
    pub(super) buffer_end: u64,
    /// The jiffy in which something was put off first, since the last unit (`tso_deferred`).
    pub(super) deferred: Option<u64>,
    /// The value of [`crate::Stats::sent_packets`] with the last segment that continued a unit.
    pub(super) continued: u64,
    /// The rate from which their size follows, bytes a second, as of the last ACK.
    pub(super) rate: Option<u64>,
}

impl Units {
    /// Returns `true` if the last of `sent` segments is of the same unit as the one before it.
    pub(crate) fn continues(&self, sent: u64) -> bool {
        self.continued > 0 && self.continued == sent
    }

    /// Bytes that leave with the segment from `seq` to `end`, where `sent` segments have left
    /// before it and new data begins at `nxt`: those of its unit if it is the first, none if they
    /// have left with the one before it.
    pub(super) fn departing(&self, now: Time, (seq, end): (u64, u64), nxt: u64, sent: u64) -> Option<u64> {
        if self.at != now {
            return Some(end - seq);
        }
        if self.continued == sent + 1 {
            return None;
        }
        let unit_end = match () {
            _ if seq == nxt => self.end,
            _ if self.again == end => self.again_end,
            _ => end,
        };
        Some(unit_end.max(end) - seq)
    }
}
