//! The deadlines of a connection: the one place that knows every timer.

use ackclock_units::Time;

use crate::connection::liveness::Silence;
use crate::send::retransmission_timer::Pending;
use crate::{Endpoint, GiveUp, MtuProbing, State};

impl Endpoint {
    /// When [`Endpoint::on_deadline`] is to be called next; [`Time::NEVER`] if nothing is pending.
    #[inline]
    pub fn next_deadline(&self) -> Time {
        debug_assert_eq!(self.rare_deadline, self.next_rare_deadline());
        let stream = self.sender.timer.retransmission().min(self.receiver.ack_deadline());
        stream.min(self.sender.pacer.deadline()).min(self.rare_deadline)
    }

    /// Does what is due at `now`; then [`Endpoint::transmit`] is to be asked.
    pub fn on_deadline(&mut self, now: Time) {
        self.sender.burst.end();
        self.serve_timers(now);
        self.review_deadlines();
    }

    fn serve_timers(&mut self, now: Time) {
        if self.receiver.ack_deadline() <= now {
            self.receiver.ack_timed_out();
        }
        if self.sender.loss.board.samples_rates()
            && self.sender.timer.retransmission().min(self.sender.persist.deadline()) <= now
        {
            self.sender.check_app_limited(now, self.sender.sequence.written());
        }
        if self.sender.pacer.deadline() <= now {
            self.sender.pacer.let_go();
        }
        if self.timers.is_over(now) {
            self.close_now(None);
        }
        if self.timers.is_handshake_due(now) {
            if self.opening.is_early() {
                self.early_answer_due(now);
            } else {
                self.give_up();
            }
        }
        if self.sender.path.deadline() <= now {
            self.sender.forget_path_mtu(self.state);
        }
        if self.sender.timer.retransmission() <= now {
            self.sender.timer.stop_retransmission();
            if now > self.sender.now {
                (self.sender.now, self.sender.order) = (now, 0);
            }
            match self.sender.timer.pending() {
                // tcp_retransmit_timer: only the SYN/ACK is sent again, by a timer of its own.
                _ if self.state == State::SynReceived && self.opening.is_early() => {}
                Pending::Rto => self.retransmit_due(now),
                Pending::Probe => self.sender.on_probe_timer(now),
                Pending::Reorder => self.sender.on_detector_timer(now),
            }
        }
        if self.sender.persist.deadline() <= now {
            let gives_up = self.sender.persist_due(now, self.liveness.heard_at(), self.socket.is_orphan());
            if gives_up {
                self.give_up();
            }
        }
        if self.liveness.deadline() <= now {
            let busy = !self.sender.loss.board.is_empty() || self.sender.unsent() > 0;
            match self.liveness.expire(now, &self.config.states, busy) {
                Silence::Short => {}
                Silence::Probe => self.answers.probe(),
                Silence::Final => {
                    self.reset_peer();
                    self.close_now(Some(self.soft_errors.reason_to_give_up(self.liveness.heard_at())));
                }
            }
        }
    }

    pub(crate) fn retransmit_due(&mut self, now: Time) {
        let opening = self.state.is_opening();
        if self.config.path.probing != MtuProbing::Off && !opening {
            self.sender.suspect_black_hole(now);
        }
        let gives_up = self.is_given_up(now);
        self.opening.detect_blackhole(self.sender.rtt.timeouts(), gives_up);
        if gives_up {
            self.give_up();
            return;
        }
        if self.sender.rtt.timeouts() == 0 {
            let first_syn = self.handshake.sent_at().filter(|_| self.state == State::SynSent);
            self.sender.timer.begin_resending(first_syn.unwrap_or(now));
        }
        match self.state {
            State::SynSent | State::SynReceived => {
                // A SYN/ACK that was already answered is not repeated for now.
                let holds = self.state == State::SynReceived
                    && self.socket.is_deferred()
                    && self.sender.rtt.timeouts() + 1 < self.config.states.defer_accept;
                self.sender.rtt.back_off();
                if holds {
                    self.arm_syn_timers(now, true);
                    return;
                }
                self.sender.stats.timeouts += 1;
                self.repeat_syn();
            }
            _ if self.sender.loss.board.is_empty() => {}
            _ => self.sender.on_timeout(now),
        }
    }

    /// R2 of RFC 9293 section 3.8.3, or the user timeout.
    fn is_given_up(&self, now: Time) -> bool {
        let rules = &self.config.states;
        let timeouts = self.sender.rtt.timeouts();
        let resending = now.since(self.sender.timer.resending_since());
        if timeouts > 0 && rules.user_timeout.is_some_and(|timeout| resending >= timeout) {
            return true;
        }
        let limit = match self.state {
            State::SynReceived if self.socket.is_passive() => {
                return timeouts >= rules.synack_retries
                    && (!self.socket.is_deferred() || timeouts >= rules.defer_accept);
            }
            State::SynSent => {
                // tcp_write_timeout: by number, or as long as so many take that are doubled.
                let modelled = matches!(rules.give_up, GiveUp::ModelTime(_)) && rules.user_timeout.is_none();
                return timeouts >= rules.syn_retries.saturating_add(rules.linear_syn_timeouts)
                    || modelled
                        && timeouts > 0
                        && resending >= self.sender.model_time(rules.syn_retries, self.config.initial_rto);
            }
            State::SynReceived => return timeouts >= rules.syn_retries,
            _ => self.sender.retry_limit(self.socket.is_orphan(), self.sender.rto()),
        };
        match rules.give_up {
            GiveUp::Retries => timeouts >= limit,
            // Linux `retransmits_timed_out`, which a user timeout replaces.
            GiveUp::ModelTime(_) if rules.user_timeout.is_some() => false,
            GiveUp::ModelTime(least) => timeouts > 0 && resending >= self.sender.model_time(limit, least),
        }
    }

    /// The timers that seldom run: those of a closed window, of a silent peer, of the path and of
    /// the beginning and the end of a connection.
    pub(super) fn next_rare_deadline(&self) -> Time {
        let peer = self.sender.persist.deadline().min(self.liveness.deadline());
        self.timers.next_rare().min(peer).min(self.sender.path.deadline())
    }

    /// After whatever may have set one of the timers that seldom run. Full segments, plain
    /// acknowledgments and expected segments set none.
    #[inline]
    pub(crate) fn review_deadlines(&mut self) {
        self.rare_deadline = self.next_rare_deadline();
    }
}
