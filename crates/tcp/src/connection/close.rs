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
}
