//! The effects of an acknowledgment (RFC 9293 section 3.10.7.4, fifth check).
//!
//! The steps of [`Endpoint::input_ack`]: the ACK is validated; the scoreboard takes in what it
//! reports and acknowledges; round trips, marks and delivery are sampled; the congestion state
//! reacts ([`Sender::on_ack`]); timers and the window follow. An [`AckContext`] passes from step
//! to step.

use ackclock_packet::Segment;
use ackclock_units::Time;

use crate::{CaState, Endpoint, State};

impl Endpoint {
    /// The acknowledgment field, window and SACK option: how many units it acknowledges, with
    /// [`Endpoint::latest_sample`]. `None` if the segment is to be dropped.
    pub(crate) fn input_ack(&mut self, now: Time, segment: &Segment, left: u64) -> Option<u64> {
        let ack = self.sender.sequence.lift(segment.ack);
        if self.state == State::SynReceived {
            self.accept_handshake(now, segment, left, ack)?;
            if self.sender.sequence.nxt() == 1 {
                return Some(0);
            }
            // Data of ours is in flight already: it is an ACK like any other.
        }
        let Some(ack) = ack.filter(|&ack| self.sender.sequence.accepts(ack)) else {
            // RFC 5961 section 5; RFC 9293 section 3.10.7.4, fifth check.
            let unsent = ack.is_some_and(|ack| ack > self.sender.sequence.nxt());
            if !unsent || self.state != State::Established || self.config.states.answer_unsent_ack {
                self.answers.challenge(now, &self.config.states);
            }
            return None;
        };
        let echo = self.sender.hears_echo(segment);
        if ack == self.sender.sequence.una()
            && self.sender.loss.board.is_empty()
            && segment.sack.is_empty()
            && self.sender.loss.recovery.state() == CaState::Open
            && !echo
        {
            self.sender.input_window(now, segment, left, ack);
            return Some(0);
        }
        let acked = self.sender.input_ack(now, segment, left, ack, echo);
        if acked > 0 {
            self.on_fin_acknowledged(now);
        }
        Some(acked)
    }

    /// In SYN-RECEIVED: the ACK of our SYN completes the handshake, and any other is refused.
    #[inline(never)]
    fn accept_handshake(&mut self, now: Time, segment: &Segment, left: u64, ack: Option<u64>) -> Option<()> {
        let Some(ack) = ack.filter(|ack| (1..=self.sender.sequence.nxt()).contains(ack)) else {
            self.answers.refuse(segment);
            return None;
        };
        self.sender.set_window(segment, left, ack, true);
        self.sender.check_first_ace(segment);
        if self.opening.is_early() {
            self.complete_early(now);
        } else {
            self.establish(now);
        }
        self.sender.latest_sample = None;
        Some(())
    }
}
