//! The test whether the congestion window holds the sender back.
//!
//! # Source
//! RFC 2861; `tcp_cwnd_validate` and `tcp_is_cwnd_limited` of Linux 6.1 (`net/ipv4/tcp_output.c`,
//! `include/net/tcp.h`).

use ackclock_cc::Window;

/// The used part of the congestion window.
#[derive(Debug, Default)]
pub(crate) struct WindowUse {
    /// The last look for something to send ended because of the congestion window.
    stopped: bool,
    /// The congestion window stopped the sender, or was full, at some time since `point` was set.
    full: bool,
    /// The most that was outstanding at a time since then, bytes.
    most_outstanding: u64,
    /// The window grows whether it is full or not.
    grows_unfilled: bool,
    /// One past what was sent when these two were last noted: their round trip ends when it is
    /// acknowledged.
    point: u64,
    /// One past what was sent when use was last noted, its low bits.
    seen: u32,
}

impl WindowUse {
    /// The sender looks for something to send.
    #[inline]
    pub(crate) fn begin(&mut self) {
        self.stopped = false;
    }

    /// The congestion window has no room.
    #[inline]
    pub(crate) fn stop(&mut self) {
        self.stopped = true;
    }

    /// Records that the data to be sent fits into the congestion window, or does not; returns
    /// `fits`.
    #[inline]
    pub(crate) fn admit(&mut self, fits: bool) -> bool {
        self.stopped = !fits;
        fits
    }

    /// Returns `true` if the last look for something to send ended because of the congestion
    /// window.
    #[inline]
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped
    }

    /// The window grows whether it is full or not, or only when it is.
    #[inline]
    pub(crate) fn grow_unfilled(&mut self, grows: bool) {
        self.grows_unfilled = grows;
    }

    /// Returns `true` if something was sent, up to `nxt`, since use was last noted.
    #[inline]
    pub(super) fn has_sent(&self, nxt: u64) -> bool {
        nxt as u32 != self.seen
    }

    /// Returns `true` if the window may grow: it is used well enough, or need not be. In slow start
    /// a half used window still grows, or a burst could never be followed by a larger one.
    #[inline]
    pub(crate) fn may_grow(&self, window: impl Fn() -> Window) -> bool {
        self.full || self.grows_unfilled || {
            let window = window();
            window.in_slow_start() && window.cwnd < self.most_outstanding.saturating_mul(2)
        }
    }

    /// Returns `true` if the window was full in this round trip.
    #[cfg(test)]
    pub(crate) fn is_full(&self) -> bool {
        self.full
    }

    /// Nothing is outstanding or held back; `nxt` is what is sent next.
    #[inline]
    pub(super) fn idle(&mut self, nxt: u64) {
        (self.full, self.most_outstanding, self.point) = (false, 0, nxt);
    }

    /// `outstanding` bytes of what was sent below `nxt` are not acknowledged, from `una` on, and
    /// the window is `full`.
    #[inline]
    pub(super) fn note(&mut self, una: u64, nxt: u64, full: bool, outstanding: u64) {
        self.seen = nxt as u32;
        if una >= self.point || full || !self.full && outstanding > self.most_outstanding {
            (self.full, self.most_outstanding, self.point) = (full, outstanding, nxt);
        }
    }
}
