//! The retransmission timer (RFC 6298 section 5), of the SYN too.

use ackclock_units::{Span, Time};

use crate::Ticks;

/// The current use of the retransmission timer, as Linux's `icsk_pending`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub(crate) enum Pending {
    /// The retransmission timeout.
    #[default]
    Rto,
    /// A tail loss probe.
    Probe,
    /// Another look of the loss detector.
    Reorder,
}

/// When the retransmission timer is due, and what it is for.
#[derive(Debug)]
pub(crate) struct RetransmissionTimer {
    /// [`Time::NEVER`] while it is off.
    retransmit_at: Time,
    pending: Pending,
    /// The first retransmission by timeout since the last progress.
    resending_since: Time,
    wheel: Wheel,
}

impl RetransmissionTimer {
    pub(crate) fn new() -> RetransmissionTimer {
        RetransmissionTimer {
            retransmit_at: Time::NEVER,
            pending: Pending::Rto,
            resending_since: Time::ZERO,
            wheel: Wheel::default(),
        }
    }

    /// When the retransmission timer expires; [`Time::NEVER`] while it is off.
    #[inline]
    pub(crate) fn retransmission(&self) -> Time {
        self.retransmit_at
    }

    /// Returns `true` if the retransmission timer runs.
    #[inline]
    pub(crate) fn is_running(&self) -> bool {
        self.retransmit_at != Time::NEVER
    }

    /// The current, or last, use of the retransmission timer.
    #[inline]
    pub(crate) fn pending(&self) -> Pending {
        self.pending
    }

    /// The retransmission timer is off.
    #[inline]
    pub(crate) fn stop_retransmission(&mut self) {
        self.retransmit_at = Time::NEVER;
    }

    /// The retransmission timer is for `pending` and expires `at`.
    #[inline]
    pub(crate) fn set(&mut self, pending: Pending, at: Time) {
        (self.pending, self.retransmit_at) = (pending, at);
    }

    /// The retransmission timer is for `pending` and expires after `wait`, by the host's `ticks`.
    #[inline]
    pub(crate) fn start(&mut self, ticks: Ticks, now: Time, pending: Pending, wait: Span) {
        let at = if ticks.are_exact() { now + wait } else { self.wheel.expiry(ticks, now, wait, self.retransmit_at) };
        self.set(pending, at);
    }

    /// The retransmission timer expires `at`, whatever it is for.
    pub(crate) fn retransmit(&mut self, at: Time) {
        self.retransmit_at = at;
    }

    /// The first retransmission by timeout since the last progress is made.
    pub(crate) fn begin_resending(&mut self, now: Time) {
        self.resending_since = now;
    }

    /// When the first retransmission by timeout was made since the last progress.
    pub(crate) fn resending_since(&self) -> Time {
        self.resending_since
    }
}

/// Runs of Linux's timer wheel, as far as this timer causes them, in ticks; 0 is none.
#[derive(Debug, Default)]
struct Wheel {
    /// The last one.
    ran: u32,
    /// The next one, be it for a timer that was set anew since (`next_expiry` of a `timer_base`).
    runs: u32,
}

impl Wheel {
    /// When a timer expires that is set `now` and would have expired at `before`.
    #[inline]
    fn expiry(&mut self, ticks: Ticks, now: Time, wait: Span, before: Time) -> Time {
        let since = ticks.passed(now);
        let passed = in_32_bits(since);
        if self.runs <= passed && self.runs > 0 {
            self.ran = self.runs;
            self.runs = if before > now { in_32_bits(ticks.passed(before)) } else { 0 };
        }
        let tick = ticks.tick_of(since, wait, self.ran == passed && passed > 0);
        let runs = in_32_bits(tick);
        if runs < self.runs || self.runs == 0 {
            self.runs = runs;
        }
        ticks.at(tick)
    }
}

#[inline(always)]
fn in_32_bits(tick: u64) -> u32 {
    u32::try_from(tick).unwrap_or(u32::MAX)
}

/// The remainder of `timeout` since `since`; a millisecond if nothing is left, so that time goes
/// on.
pub(crate) fn remaining(now: Time, since: Time, timeout: Span) -> Span {
    let passed = now.since(since);
    if passed < timeout { timeout - passed } else { Span::from_millis(1) }
}
