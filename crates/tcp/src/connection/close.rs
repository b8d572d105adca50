//! How a connection closes.

use ackclock_units::Time;

use crate::{AckRule, Endpoint, State};

impl Endpoint {
    pub(crate) fn on_fin_acknowledged(&mut self, now: Time) {
        if !self.send.fin_sent || self.send.una < self.send.nxt {
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

    /// The application is gone and the peer has acknowledged our FIN: it has this long to send its own.
    pub(crate) fn arm_fin_wait_2(&mut self, now: Time) {
        if self.state == State::FinWait2
            && self.socket.orphan
            && let Some(timeout) = self.config.states.fin_wait_2_timeout
        {
            // Linux `tcp_fin_time`: no less than three and a half retransmission timeouts.
            self.timers.bound_fin_wait_2(now + timeout.max(self.rto() * 7 / 2));
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
}
