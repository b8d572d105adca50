//! The handshake is complete: what is set up before data is sent.

use ackclock_units::Time;

use crate::{Endpoint, State};

impl Endpoint {
    pub(crate) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.send.acknowledge(1);
        self.finish_handshake(now);
        self.begin_sending(now);
        let held = u64::from(self.handshake.take_payload()).min(self.receiver.acceptable());
        if held > 0 {
            self.receiver.receive(now, 1, 1 + held, held as u32);
        }
    }

    /// Our SYN is acknowledged.
    pub(crate) fn finish_handshake(&mut self, now: Time) {
        self.timers.stop_retransmission();
        if let Some(sent_at) = self.handshake.sent_at() {
            self.sample_rtt(now.since(sent_at));
            self.detector.measured(now, now.since(sent_at));
        }
        self.rtt.established(self.syn_lost);
        self.counters.delivered_segments += 1;
        self.counters.data_received_at = now;
        self.timers.handshake_over();
        self.liveness.heard(now);
        self.arm_keepalive(now);
    }

    /// The window and all that follows from it are set up: data may be sent.
    pub(crate) fn begin_sending(&mut self, now: Time) {
        self.bound_segment();
        self.begin_probing(now, self.socket.is_passive());
        let flight = self.flight(now);
        self.cc.on_established(&flight);
        self.use_recalled();
        self.cc.on_ecn(self.ecn.usable_feedback());
        if self.cc.needs() != self.observer.needs {
            self.adopt_needs();
        }
        self.decide_pacing(now);
        self.begin_validation(now);
        self.review_prediction();
    }
}
