//! The retransmission timer (RFC 6298 section 5), of the SYN too.

use ackclock_units::{Span, Time};

use crate::CaState;
use crate::send::Sender;

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
}

impl RetransmissionTimer {
    pub(crate) fn new() -> RetransmissionTimer {
        RetransmissionTimer { retransmit_at: Time::NEVER, pending: Pending::Rto, resending_since: Time::ZERO }
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

impl Sender {
    /// The retransmission timer is for `pending` and expires after `wait`.
    pub(crate) fn set_timer(&mut self, now: Time, pending: Pending, wait: Span) {
        (self.timer.pending, self.timer.retransmit_at) = (pending, self.config.transfer.ticks.expiry(now, wait));
    }

    /// Sets the timer where its segment waits for its time to be sent (`tcp_reset_xmit_timer`).
    #[inline]
    pub(crate) fn set_transmission_timer(&mut self, now: Time, pending: Pending, wait: Span) {
        self.set_timer(now, pending, wait + self.pacer.delay(now));
    }

    /// (Re)starts or stops the retransmission timer: running exactly while something is
    /// outstanding.
    #[inline]
    pub(crate) fn restart_retransmit_timer(&mut self, now: Time) {
        if self.loss.board.is_empty() {
            (self.timer.retransmit_at, self.timer.pending) = (Time::NEVER, Pending::Rto);
        } else {
            self.set_transmission_timer(now, Pending::Rto, self.patience(now, self.rto()));
        }
    }

    /// Data was acknowledged (RFC 6298 rules 5.2 and 5.3).
    #[inline]
    pub(crate) fn restart_timer_by_ack(&mut self, now: Time) {
        self.restart_retransmit_timer(now);
        self.count_from_first(now);
    }

    /// By [`crate::TimerRules::from_first_segment`].
    #[inline]
    pub(crate) fn count_from_first(&mut self, now: Time) {
        if self.config.transfer.timer.from_first_segment && self.loss.recovery.state() != CaState::Loss {
            self.restart_from_first(now);
        }
    }

    #[inline(never)]
    fn restart_from_first(&mut self, now: Time) {
        if let Some(first) = self.loss.board.front() {
            let variance = self.rtt.variance(&self.config);
            let due = (first.sent_at + self.rto() + variance).max(now + variance);
            self.set_transmission_timer(now, Pending::Rto, self.patience(now, due.since(now)));
        }
    }

    /// A wait, cut by the user timeout (Linux `tcp_clamp_rto_to_user_timeout`).
    #[inline]
    pub(crate) fn patience(&self, now: Time, wait: Span) -> Span {
        match self.config.states.user_timeout {
            Some(timeout) if self.rtt.timeouts() > 0 => wait.min(remaining(now, self.timer.resending_since, timeout)),
            _ => wait,
        }
    }

    /// RFC 6069 (`tcp_ld_RTO_revert`): the retransmission that `seq` begins was lost for want of a
    /// route, not to congestion, and the last doubling of the timeout is taken back.
    /// Returns `true` if the timeout is over with that.
    pub(crate) fn revert_backoff(&mut self, now: Time, seq: u64) -> bool {
        if seq != self.sequence.una() || self.rtt.timeouts() == 0 || self.rtt.backoff() == 0 {
            return false;
        }
        let Some(sent_at) = self.loss.board.front().map(|front| front.sent_at) else { return false };
        self.rtt.revert_backoff();
        let (passed, wait) = (now.since(sent_at), self.rto());
        if passed < wait {
            self.set_timer(now, Pending::Rto, wait - passed);
        }
        passed >= wait
    }
}

/// The remainder of `timeout` since `since`; a millisecond if nothing is left, so that time goes
/// on.
pub(crate) fn remaining(now: Time, since: Time, timeout: Span) -> Span {
    let passed = now.since(since);
    if passed < timeout { timeout - passed } else { Span::from_millis(1) }
}
