//! Pacing: segments with data leave at times that follow from a rate, not all at once when an ACK
//! allows them.
//!
//! Each segment moves the time at which the next one may go by its length over the rate; a sender
//! that comes late gets half of that back at most. The rate is the controller's if it asks for
//! pacing, and else Linux's share of the window in a round trip.
//!
//! # Source
//! Linux 6.1: `tcp_update_skb_after_send`, `tcp_pacing_check` and `tcp_send_loss_probe`
//! (`net/ipv4/tcp_output.c`), `tcp_update_pacing_rate` (`tcp_input.c`), `tcp_pacing_delay`
//! (`include/net/tcp.h`), SO_MAX_PACING_RATE (`net/core/sock.c`); `net/sched/sch_fq.c` carries the
//! same times out in a queue of the host.
//!
//! Only payload counts: since release 4.20 the times are TCP's, which knows no headers then. The
//! first ten segments go unpaced. A retransmission waits for its time like new data, the first one
//! after a timeout, a repeated tail and a window probe do not; a FIN alone waits but takes no time.
//! ACKs, SYNs and resets have nothing to do with it.
//!
//! # Departures
//! - A segment leaves at a time, but for units of segmentation offload (`offload.rs`), of which the
//!   next one waits for all.

use ackclock_units::{Rate, Span, Time};

use crate::PacingWhen;

/// Segments with data that leave before anything is paced.
pub(super) const UNPACED: u64 = 10;
pub(super) const NANOS: u128 = 1_000_000_000;

/// When the next segment with data may leave.
#[derive(Debug, Default)]
pub(crate) struct Pacer {
    on: bool,
    /// The rate of the window in bytes a second, as of the last ACK.
    by_window: Option<u64>,
    /// SO_MAX_PACING_RATE in bytes a second.
    most: Option<u64>,
    /// `tcp_wstamp_ns`.
    release_at: Time,
    /// Something waits for that time.
    held: bool,
}

impl Pacer {
    /// Returns `true` if there is pacing.
    #[inline]
    pub(crate) fn is_on(&self) -> bool {
        self.on
    }

    /// No more than so many bytes a second leave from now on (SO_MAX_PACING_RATE).
    pub(crate) fn bound(&mut self, most: Option<u64>) {
        self.most = most;
    }

    /// A rate in bytes a second, but no more than the bound.
    pub(crate) fn bounded(&self, rate: u64) -> u64 {
        rate.min(self.most.unwrap_or(u64::MAX))
    }

    /// There is pacing, by the setting `when`, from now on or not; `asked` if the controller has a
    /// rate.
    pub(crate) fn decide(&mut self, when: PacingWhen, asked: bool) {
        self.on = match when {
            PacingWhen::Off => false,
            PacingWhen::On => true,
            PacingWhen::Auto => self.most.is_some() || asked,
        };
        if !self.on {
            self.let_go();
        }
    }

    /// The rate of the window is this one, bytes a second.
    #[inline]
    pub(crate) fn follow(&mut self, by_window: Option<u64>) {
        self.by_window = by_window;
    }

    /// Something waits for its time, or not.
    #[inline]
    pub(crate) fn hold(&mut self, held: bool) {
        self.held = held;
    }

    /// `bytes` leave at `now`, at the rate that the controller has `asked` for or its own, if they
    /// count.
    #[inline]
    pub(crate) fn departs(&mut self, now: Time, bytes: u64, asked: Option<Rate>, counts: bool) {
        match self.rate(asked).filter(|_| counts) {
            Some(rate) => self.depart(now, bytes, rate),
            None => self.release_at = self.release_at.max(now),
        }
    }

    /// `bytes` leave at `now` at a rate of `bits_per_second`.
    fn depart(&mut self, now: Time, bytes: u64, bits_per_second: u64) {
        // Half of the lateness makes up for timers that come late.
        let credit = now.since(self.release_at).as_nanos();
        let nanos = u128::from(bytes) * 8 * NANOS / u128::from(bits_per_second.max(1));
        let nanos = u64::try_from(nanos).unwrap_or(u64::MAX);
        self.release_at = self.release_at.max(now) + Span::from_nanos(nanos - credit.min(nanos / 2));
    }

    /// Time until the next segment may leave (`tcp_pacing_delay`).
    #[inline]
    pub(crate) fn delay(&self, now: Time) -> Span {
        if self.on { self.release_at.since(now) } else { Span::ZERO }
    }

    /// When something that waits may leave.
    #[inline]
    pub(crate) fn deadline(&self) -> Time {
        if self.held { self.release_at } else { Time::NEVER }
    }

    /// Something may leave now, or nothing waits any more.
    pub(crate) fn let_go(&mut self) {
        self.held = false;
    }

    /// `tcp_wstamp_ns`, if there is pacing.
    #[inline]
    pub(crate) fn released(&self) -> Time {
        if self.on { self.release_at } else { Time::ZERO }
    }

    /// Returns `true` if the sender stopped last because of pacing.
    #[inline]
    pub(crate) fn holds(&self) -> bool {
        self.held
    }

    /// The rate in force, bit/s; `None` for no bound.
    pub(crate) fn rate(&self, asked: Option<Rate>) -> Option<u64> {
        let own = || self.by_window.map(|rate| rate.saturating_mul(8));
        let rate = asked.map(Rate::as_bps).or_else(own);
        let most = self.most.map(|rate| rate.saturating_mul(8));
        match (rate, most) {
            (Some(rate), Some(most)) => Some(rate.min(most)),
            (rate, most) => rate.or(most),
        }
    }

    /// Returns `true` if data sent at `now` comes too early.
    #[inline]
    pub(crate) fn is_early(&self, now: Time) -> bool {
        self.delay(now) > Span::ZERO
    }
}
