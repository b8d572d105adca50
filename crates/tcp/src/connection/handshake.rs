//! From a SYN to an open connection: LISTEN, SYN-SENT and SYN-RECEIVED (RFC 9293 sections 3.10.7.2
//! to 3.10.7.4).

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::send::retransmission_timer::Pending;
use crate::seq::lift;
use crate::{Acknowledgment, Endpoint, Error, SendRule, State, SynFin};

impl Endpoint {
    /// The SYN, or its answer, was presumably lost and is to be sent again.
    pub(super) fn repeat_syn(&mut self) {
        self.handshake.begin();
        self.sender.syn_lost = true;
    }

    /// Returns `true` if this segment would end SYN-RECEIVED by opening the connection.
    pub(crate) fn completes(&self, segment: &Segment) -> bool {
        self.state == State::SynReceived
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && self.sender.sequence.lift(segment.ack) == Some(1)
    }

    #[cold]
    pub(crate) fn input_listen(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            if !(segment.flags.contains(Flags::SYN) && self.config.states.listen_drops_syn_ack) {
                self.answers.refuse(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            if segment.flags.contains(Flags::FIN) && self.config.states.syn_fin == SynFin::DropInListen {
                return;
            }
            self.take_syn(now, segment);
            self.sender.agree_to_ecn(segment, ecn);
            self.state = State::SynReceived;
            self.handshake.begin();
            if self.config.states.fast_open {
                self.take_fast_open(now, segment);
            }
        }
    }

    #[cold]
    pub(crate) fn input_syn_sent(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        let ack = segment
            .flags
            .contains(Flags::ACK)
            .then(|| lift(segment.ack, self.sender.sequence.isn(), self.sender.sequence.nxt()));
        // Our SYN, and what was sent with it.
        let acceptable = ack.flatten().filter(|ack| (1..=self.sender.sequence.nxt()).contains(ack));
        if let Some(ack) = acceptable {
            return self.input_answer(now, segment, ack, ecn);
        }
        if ack.is_some() {
            if let Some(wait) = self.config.states.syn_after_bad_ack.filter(|_| self.sender.rtt.timeouts() == 0) {
                // Two ticks, of whatever length.
                self.sender.set_timer(
                    now,
                    Pending::Rto,
                    if self.sender.two_ticks() > Span::ZERO { self.sender.two_ticks() } else { wait },
                );
            }
            self.answers.refuse(segment);
            return Acknowledgment::default();
        }
        if segment.flags.contains(Flags::RST) || !segment.flags.contains(Flags::SYN) {
            return Acknowledgment::default();
        }
        // Simultaneous open. Text waits until the connection is open.
        self.take_syn(now, segment);
        self.handshake.hold_payload(if self.config.states.syn_data { segment.payload.len } else { 0 });
        self.state = State::SynReceived;
        self.handshake.begin();
        if self.config.transfer.sending == SendRule::FreeBsd {
            // tcp_ecn_input_parallel_syn: agreed to as by a listening socket.
            self.sender.agree_to_ecn(segment, ecn);
        }
        Acknowledgment::default()
    }

    /// A segment that acknowledges our SYN, and what was sent with it up to `ack`.
    fn input_answer(&mut self, now: Time, segment: &Segment, ack: u64, ecn: Ecn) -> Acknowledgment {
        if self.config.states.check_syn_echo
            && self.config.timestamps
            && self.sender.negotiated.echoes_another(now, segment, self.handshake.stamp())
        {
            self.answers.refuse(segment);
            return Acknowledgment::default();
        }
        if segment.flags.contains(Flags::RST) {
            self.close_now(Some(Error::Refused));
            return Acknowledgment::default();
        }
        if !segment.flags.contains(Flags::SYN) {
            return Acknowledgment::default();
        }
        self.take_syn(now, segment);
        self.sender.agreed_on_ecn(segment, ecn);
        if self.sender.ecn.mode() == EcnFeedback::Accurate {
            // The last ACK of the handshake has no data (RFC 9768 section 3.2.2.1).
            self.handshake.acknowledge_alone(true);
        }
        self.sender.sequence.begin_window(segment.window.into());
        self.establish(now);
        self.receiver.acknowledge_now();
        if self.config.transfer.bare_handshake_ack {
            self.handshake.acknowledge_alone(true);
        }
        let takes_data = self.opening.is_some() && self.answer_to_fast_open(now, segment, ack);
        let right = u64::from(segment.sequence_len());
        if right > 1 && (self.config.states.syn_data || takes_data) {
            self.input_data(now, segment, 1, right, ecn);
            self.receiver.acknowledge_now();
        }
        Acknowledgment { acked: ack - 1, rtt: None, is_ack: true }
    }

    /// Takes sequence number and options from a SYN.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receiver.synchronize(segment.seq);
        self.sender.negotiated.agree(now, &self.config, segment);
        // Our packets are no larger than those that we ask for or the path takes, and a segment
        // carries something beside its options. A peer may claim an MSS of 0.
        let mss = self.sender.clamp_segment(segment.mss.unwrap_or(self.config.default_peer_mss));
        self.sender.negotiated.set_mss(mss.saturating_sub(self.sender.options_len()).max(1));
        let shift = if self.sender.negotiated.scaling() { self.receiver.own_shift() } else { 0 };
        let with_options = self.sender.announced_segment();
        let opened = self.state == State::SynSent;
        let offered = self.receiver.syn_window(if opened { self.config.mss.into() } else { with_options });
        self.receiver.begin(shift, mss, with_options, offered);
        self.receiver.compress(self.config.transfer.sack_compression.filter(|_| self.sender.negotiated.sack()));
        self.sender.sequence.begin_window(segment.window.into());
    }

    pub(crate) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.sender.sequence.acknowledge(1);
        self.finish_handshake(now);
        self.sender.begin_sending(now, self.socket.is_passive(), self.recalled.take());
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
        self.liveness.arm(now, self.config.states.keepalive, true, false);
    }
}
