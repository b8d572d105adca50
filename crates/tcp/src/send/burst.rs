//! A burst of full segments: how many may leave at one time, and what their headers have in common.

use ackclock_packet::{Flags, Timestamps};
use ackclock_units::Time;

use crate::Stamp;

pub(super) mod straight;

/// Full segments that may leave at one time, and what their headers have in common.
#[derive(Debug)]
pub(crate) struct Burst {
    /// Segments left.
    left: u64,
    /// The congestion window has no room for another one, or for any.
    fills: bool,
    /// The next one has to do with the retransmission timer.
    timed: bool,
    /// Nothing is unsent or in flight, and that is noted: as long as nothing more is written and
    /// nothing unexpected happens, an acknowledgment is all that may be due.
    idle: bool,
    /// When they leave.
    stamp: Stamp,
    payload: u32,
    ack: u32,
    window: u16,
    flags: Flags,
    timestamps: Option<Timestamps>,
}

impl Default for Burst {
    fn default() -> Burst {
        Burst {
            left: 0,
            fills: false,
            timed: false,
            idle: false,
            stamp: Stamp::default(),
            payload: 0,
            ack: 0,
            window: 0,
            flags: Flags::NONE,
            timestamps: None,
        }
    }
}

impl Burst {
    /// Ends the burst after an expected arrival or a read, which may let more leave and changes
    /// acknowledgments; it gives nobody anything to send who has nothing.
    #[inline]
    pub(crate) fn interrupt(&mut self) {
        (self.left, self.fills) = (0, false);
    }

    /// Something may have changed what may leave.
    #[inline]
    pub(crate) fn end(&mut self) {
        (self.left, self.fills, self.idle) = (0, false, false);
    }

    /// Returns `true` if an acknowledgment is all that may be due.
    #[inline]
    pub(crate) fn idles(&self) -> bool {
        self.idle
    }

    /// Returns `true` if a segment is left to be sent at `now`.
    #[inline]
    pub(crate) fn goes_on(&self, now: Time) -> bool {
        self.left > 0 && self.stamp.at == now
    }

    /// Returns `true` if the burst has ended because the congestion window is full.
    #[inline]
    pub(crate) fn is_over(&self, now: Time) -> bool {
        self.fills && self.stamp.at == now
    }
}
