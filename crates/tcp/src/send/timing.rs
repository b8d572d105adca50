//! What the timer of a sender waits for: a timeout, a tail loss probe, another look at what is lost.

use ackclock_units::{Span, Time};

use crate::CaState;
use crate::loss::Probe;
use crate::send::Sender;
use crate::send::retransmission_timer::{Pending, remaining};

impl Sender {
    /// The retransmission timer is for `pending` and expires after `wait`.
    pub(crate) fn set_timer(&mut self, now: Time, pending: Pending, wait: Span) {
        self.timer.start(self.config.transfer.ticks, now, pending, wait);
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
            self.timer.set(Pending::Rto, Time::NEVER);
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
            Some(timeout) if self.rtt.timeouts() > 0 => wait.min(remaining(now, self.timer.resending_since(), timeout)),
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

    /// `tcp_set_xmit_timer`: a probe if one may be due, else the retransmission timer.
    pub(crate) fn set_transmit_timer(&mut self, now: Time) {
        if self.loss.detector.rules().probe_after_timeout {
            self.rearm_rto(now);
            self.count_from_first(now);
            self.schedule_probe(now, true, false);
        } else if !self.schedule_probe(now, false, true) {
            self.rearm_rto(now);
        }
    }

    /// Returns `true` if new data affects the retransmission timer, which runs if not.
    #[inline]
    pub(crate) fn follows_new_data(&self) -> bool {
        !self.timer.is_running() || self.config.tlp || self.timer.pending() == Pending::Reorder
    }

    /// New data was sent (`tcp_event_new_data_sent`, the end of `tcp_write_xmit`).
    #[inline(always)]
    pub(crate) fn new_data_sent(&mut self, now: Time) {
        if self.config.tlp || self.timer.pending() == Pending::Reorder {
            self.new_data_sent_with_timer(now);
        } else if !self.timer.is_running() {
            self.restart_retransmit_timer(now);
        }
    }

    #[inline(never)]
    fn new_data_sent_with_timer(&mut self, now: Time) {
        let timeout_first = self.loss.detector.rules().probe_after_timeout;
        if self.probe_stands && self.now == now && self.timer.pending() == Pending::Probe && self.timer.is_running() {
            return;
        }
        // The probe takes the timer's place, whatever that was for.
        if !timeout_first && self.schedule_probe(now, false, false) {
            return;
        }
        // New data will bring reports of its own: an early retransmission is given up.
        let early = timeout_first && self.timer.pending() == Pending::Reorder;
        if !self.timer.is_running() || self.timer.pending() == Pending::Probe || early {
            self.rearm_rto(now);
        }
        if timeout_first {
            self.schedule_probe(now, true, false);
        }
    }

    /// `tcp_schedule_loss_probe`; `after_timeout` if the probe comes after the timeout, `fresh` if the
    /// retransmission timer would start anew now.
    fn schedule_probe(&mut self, now: Time, after_timeout: bool, fresh: bool) -> bool {
        if !self.config.tlp || !self.negotiated.sack() || self.loss.board.is_empty() {
            return false;
        }
        let wait = if after_timeout {
            let Some(wait) = self.probe_timeout_in_open() else { return false };
            wait
        } else {
            if !matches!(self.loss.recovery.state(), CaState::Open | CaState::Cwr) {
                return false;
            }
            match self.rtt.srtt() {
                None => self.config.initial_rto,
                Some(srtt) => Probe::wait(srtt, self.loss.board.segments() == 1, self.config.min_rto.least()),
            }
        };
        let until_timeout = self.until_timeout(now);
        let to_timeout = if fresh { self.rto() } else { until_timeout };
        let wait = if to_timeout > Span::ZERO { wait.min(to_timeout) } else { wait };
        self.set_transmission_timer(now, Pending::Probe, wait);
        // New data that follows the same ACK would set it to the same time.
        self.probe_stands =
            !after_timeout && wait <= until_timeout && self.loss.board.segments() > 1 && !self.pacer.is_on();
        true
    }

    /// The wait for a probe after the timeout's; `None` if none may be due.
    #[inline(never)]
    fn probe_timeout_in_open(&self) -> Option<Span> {
        let srtt = self.rtt.srtt().filter(|_| self.loss.recovery.state() == CaState::Open)?;
        if self.timer.pending() != Pending::Rto || self.is_waiting_for_nothing() {
            return None;
        }
        Some(Probe::wait_in_open(srtt, self.loss.board.segments() == 1))
    }

    /// Data waits and the window has room, so more will be sent.
    fn is_waiting_for_nothing(&self) -> bool {
        self.sequence.written() + 1 > self.sequence.nxt() && self.loss.pipe(&self.negotiated) < self.cwnd()
    }

    /// Time until a retransmission timer that started with the first segment would expire
    /// (`tcp_rto_delta_us`).
    #[inline]
    pub(crate) fn until_timeout(&self, now: Time) -> Span {
        match self.loss.board.front() {
            Some(front) => (front.sent_at + self.rto()).since(now),
            None => self.rto(),
        }
    }

    /// `tcp_rearm_rto`: where the timer was used for something else, the time since the first
    /// segment was sent counts.
    pub(crate) fn rearm_rto(&mut self, now: Time) {
        if self.loss.board.is_empty() || self.timer.pending() == Pending::Rto {
            self.restart_retransmit_timer(now);
            return;
        }
        let wait = self.until_timeout(now).max(Span::from_micros(1));
        self.set_transmission_timer(now, Pending::Rto, wait);
    }

    /// The probe timer expired: at most one probe at a time.
    pub(crate) fn on_probe_timer(&mut self, now: Time) {
        let outstanding = !self.loss.board.is_empty();
        self.loss.probe_mut().expired(outstanding);
        self.rearm_rto(now);
    }

    /// The probe is out; the retransmission timer starts anew.
    pub(crate) fn probe_is_out(&mut self, now: Time, resent: bool) {
        self.loss.probe_mut().sent(self.sequence.nxt(), resent);
        self.stats.loss_probes += 1;
        self.restart_retransmit_timer(now);
    }
}
