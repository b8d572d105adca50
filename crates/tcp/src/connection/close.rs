//! How a connection closes.

use ackclock_units::Time;

use crate::{Endpoint, State};

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
}
