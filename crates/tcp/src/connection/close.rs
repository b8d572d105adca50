//! Closing a connection.

use ackclock_packet::Flags;
use ackclock_units::Time;

use super::answers::Reset;
use crate::connection::timers::Timers;
use crate::send::retransmission_timer::RetransmissionTimer;
use crate::{AckRule, Endpoint, Error, State, WindowRule};

impl Endpoint {
    pub(crate) fn on_fin_acknowledged(&mut self, now: Time) {
        if !self.sender.sequence.is_fin_sent() || self.sender.sequence.una() < self.sender.sequence.nxt() {
            return;
        }
        match self.state {
            State::FinWait1 => {
                self.state = State::FinWait2;
                self.arm_fin_wait_2(now);
            }
            State::Closing => self.enter_time_wait(now),
            State::LastAck => self.close_now(None),
            _ => {}
        }
    }

    /// The application is gone and the peer has acknowledged our FIN: it has this long to send its
    /// own.
    pub(crate) fn arm_fin_wait_2(&mut self, now: Time) {
        if self.state == State::FinWait2
            && self.socket.is_orphan()
            && let Some(timeout) = self.config.states.fin_wait_2_timeout
        {
            // Linux `tcp_fin_time`: no less than three and a half retransmission timeouts.
            self.timers.bound_fin_wait_2(now + timeout.max(self.sender.rto() * 7 / 2));
        }
    }

    pub(crate) fn enter_time_wait(&mut self, now: Time) {
        self.state = State::TimeWait;
        self.stop_timers();
        self.timers.wait_out(now + self.config.time_wait);
    }

    pub(crate) fn on_peer_fin(&mut self, now: Time) {
        self.receiver.finished();
        if self.state == State::Established && self.config.transfer.acks == AckRule::Linux {
            // tcp_fin: its ACK may wait for an answer that ends our side too.
            self.receiver.expect_answer();
        } else {
            self.receiver.acknowledge_now();
        }
        match self.state {
            State::Established => self.state = State::CloseWait,
            State::FinWait1 => self.state = State::Closing,
            State::FinWait2 => self.enter_time_wait(now),
            _ => {}
        }
    }

    /// A reset goes out that ends this connection.
    pub(crate) fn reset_peer(&mut self) {
        // tcp_send_active_reset goes the way of all segments.
        let linux = matches!(self.config.transfer.window, WindowRule::Linux { .. });
        self.answers.reset(Reset {
            seq: self.sender.sequence.lower(self.sender.sequence.nxt()),
            ack: self.receiver.ack_number(),
            flags: Flags::RST | Flags::ACK,
            stamped: self.sender.negotiated.timestamps(),
            window: if linux { self.receiver.window_field(self.sender.negotiated.scaling()) } else { 0 },
        });
    }

    /// The peer does not answer.
    pub(crate) fn give_up(&mut self) {
        if self.config.states.reset_on_timeout && !self.state.is_opening() {
            self.reset_peer();
        }
        self.close_now(Some(self.soft_errors.reason_to_give_up(self.liveness.heard_at())));
    }

    /// Nothing is due any more.
    pub(crate) fn stop_timers(&mut self) {
        self.timers = Timers::new();
        self.sender.timer = RetransmissionTimer::new();
        self.sender.persist.stop();
        self.liveness.stop();
        self.sender.path.keep_estimate_for_good();
    }

    pub(crate) fn close_now(&mut self, error: Option<Error>) {
        self.state = State::Closed;
        self.error = self.error.or(error);
        let lone_fin = self.receiver.has_fin() && !self.receiver.is_finished();
        self.opening.end(self.sender.counters.data_segments_in == 0, lone_fin);
        if let Some(error) = error {
            self.socket.report(error);
        }
        self.stop_timers();
        self.sender.pacer.let_go();
        self.answers.close();
        self.receiver.stop_acknowledging();
        self.handshake.give_up();
        self.sender.persist.satisfy();
    }
}
