//! The handshake is complete: what is set up before data is sent.

use ackclock_units::Time;

use crate::{Endpoint, State};

impl Endpoint {
    pub(crate) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.sender.sequence.acknowledge(1);
        self.finish_handshake(now);
        self.begin_sending(now);
        let held = u64::from(self.handshake.take_payload()).min(self.receiver.acceptable());
        if held > 0 {
            self.receiver.receive(now, 1, 1 + held, held as u32);
        }
    }

    /// Our SYN is acknowledged.
    pub(crate) fn finish_handshake(&mut self, now: Time) {
        self.sender.timer.stop_retransmission();
        if let Some(sent_at) = self.handshake.sent_at() {
            self.sender.sample_rtt(now.since(sent_at));
            self.sender.loss.detector.measured(now, now.since(sent_at));
        }
        self.sender.rtt.established(self.sender.syn_lost);
        self.sender.counters.delivered_segments += 1;
        self.sender.counters.data_received_at = now;
        self.timers.handshake_over();
        self.liveness.heard(now);
        self.arm_keepalive(now);
    }

    /// The window and all that follows from it are set up: data may be sent.
    pub(crate) fn begin_sending(&mut self, now: Time) {
        self.sender.bound_segment();
        self.sender.begin_probing(now, self.socket.is_passive());
        let flight = self.sender.flight(now);
        self.sender.cc.on_established(&flight);
        self.use_recalled();
        self.sender.cc.on_ecn(self.sender.ecn.usable_feedback());
        if self.sender.cc.needs() != self.sender.observer.needs {
            self.sender.adopt_needs();
        }
        self.sender.decide_pacing(now);
        self.sender.begin_validation(now);
        self.sender.review_prediction();
    }
}
