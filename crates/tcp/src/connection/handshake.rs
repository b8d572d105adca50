//! From a SYN to an open connection: LISTEN, SYN-SENT and SYN-RECEIVED (RFC 9293 sections 3.10.7.2 to 3.10.7.4).

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use super::timers::Pending;
use crate::seq::lift;
use crate::{Arrival, Endpoint, Error, SendRule, State, SynFin};

/// What is sent and awaited until the connection is open.
#[derive(Debug, Default)]
pub(crate) struct Handshake {
    /// A SYN, or its answer, is to be sent.
    due: bool,
    /// When the SYN was first sent, until it has been sent again.
    sent_at: Option<Time>,
    /// TSval of the first SYN.
    stamp: u32,
    /// The SYN or its answer was presumably lost.
    resent: bool,
    /// The last ACK of the handshake waits, and goes out without data.
    bare_ack: bool,
    /// Bytes that came with the SYN that crossed ours, until ours is acknowledged.
    early_payload: u32,
}

impl Handshake {
    /// A SYN, or its answer, is to be sent.
    pub(crate) fn begin(&mut self) {
        self.due = true;
    }

    /// The SYN, or its answer, is to be sent again.
    pub(crate) fn repeat(&mut self) {
        (self.due, self.resent) = (true, true);
    }

    /// There is nothing more to be sent.
    pub(crate) fn give_up(&mut self) {
        self.due = false;
    }

    #[inline]
    pub(crate) fn is_due(&self) -> bool {
        self.due
    }

    /// A SYN, or its answer, was sent, the first time with the timestamp `stamp`. A second one gives no RTT sample.
    pub(crate) fn sent(&mut self, now: Time, again: bool, stamp: u32) {
        self.due = false;
        if !again {
            self.stamp = stamp;
        }
        self.sent_at = (!again).then_some(now);
    }

    /// Whether the SYN or its answer was presumably lost.
    pub(crate) fn is_repeated(&self) -> bool {
        self.resent
    }

    /// The last ACK of the handshake goes out without data, or with it.
    pub(crate) fn acknowledge_alone(&mut self, alone: bool) {
        self.bare_ack = alone;
    }

    /// Whether the next ACK is that one.
    #[inline]
    pub(crate) fn take_bare_ack(&mut self) -> bool {
        std::mem::take(&mut self.bare_ack)
    }
}

impl Endpoint {
    /// Whether this segment would end SYN-RECEIVED by opening the connection.
    pub(crate) fn completes(&self, segment: &Segment) -> bool {
        self.state == State::SynReceived
            && segment.flags.contains(Flags::ACK)
            && !segment.flags.contains(Flags::RST)
            && lift(segment.ack, self.send.isn, self.send.una) == Some(1)
    }

    #[cold]
    pub(crate) fn input_listen(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        if segment.flags.contains(Flags::ACK) {
            if !(segment.flags.contains(Flags::SYN) && self.config.states.listen_drops_syn_ack) {
                self.refuse(segment);
            }
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            if segment.flags.contains(Flags::FIN) && self.config.states.syn_fin == SynFin::DropInListen {
                return;
            }
            self.take_syn(now, segment);
            self.agree_to_ecn(segment, ecn);
            self.state = State::SynReceived;
            self.handshake.begin();
            if self.config.states.fast_open {
                self.take_fast_open(now, segment);
            }
        }
    }

    #[cold]
    pub(crate) fn input_syn_sent(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Arrival {
        let ack = segment.flags.contains(Flags::ACK).then(|| lift(segment.ack, self.send.isn, self.send.nxt));
        // Our SYN, and what was sent with it.
        let acceptable = ack.flatten().filter(|ack| (1..=self.send.nxt).contains(ack));
        if let Some(ack) = acceptable {
            return self.input_answer(now, segment, ack, ecn);
        }
        if ack.is_some() {
            if let Some(wait) = self.config.states.syn_after_bad_ack.filter(|_| self.rtt.timeouts() == 0) {
                // Two ticks, of whatever length.
                self.set_timer(now, Pending::Rto, if self.two_ticks() > Span::ZERO { self.two_ticks() } else { wait });
            }
            self.refuse(segment);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) || !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        // Simultaneous open. Text waits until the connection is open.
        self.take_syn(now, segment);
        self.handshake.early_payload = if self.config.states.syn_data { segment.payload.len } else { 0 };
        self.state = State::SynReceived;
        self.handshake.begin();
        if self.config.transfer.sending == SendRule::FreeBsd {
            // tcp_ecn_input_parallel_syn: agreed to as by a listening socket.
            self.agree_to_ecn(segment, ecn);
        }
        Arrival::default()
    }

    /// A segment that acknowledges our SYN, and what was sent with it up to `ack`.
    fn input_answer(&mut self, now: Time, segment: &Segment, ack: u64, ecn: Ecn) -> Arrival {
        if self.config.states.check_syn_echo && self.echoes_another(now, segment) {
            self.refuse(segment);
            return Arrival::default();
        }
        if segment.flags.contains(Flags::RST) {
            self.close_now(Some(Error::Refused));
            return Arrival::default();
        }
        if !segment.flags.contains(Flags::SYN) {
            return Arrival::default();
        }
        self.take_syn(now, segment);
        self.agreed_on_ecn(segment, ecn);
        self.send.wnd = u64::from(segment.window);
        self.send.max_wnd = self.send.wnd;
        self.establish(now);
        self.receiver.acknowledge_now();
        self.handshake.bare_ack |= self.config.transfer.bare_handshake_ack;
        let takes_data = self.opening.is_some() && self.answer_to_fast_open(now, segment, ack);
        let right = u64::from(segment.sequence_len());
        if right > 1 && (self.config.states.syn_data || takes_data) {
            self.input_data(now, segment, 1, right, ecn);
            self.receiver.acknowledge_now();
        }
        Arrival { acked: ack - 1, rtt: None, is_ack: true }
    }

    /// Whether the timestamp that a SYN/ACK echoes is none that was sent since the first SYN.
    fn echoes_another(&self, now: Time, segment: &Segment) -> bool {
        let first = self.handshake.stamp;
        segment
            .timestamps
            .filter(|stamps| self.config.timestamps && stamps.echo != 0)
            .is_some_and(|stamps| stamps.echo.wrapping_sub(first) > self.negotiated.clock(now).wrapping_sub(first))
    }

    /// What a SYN tells: sequence number, options.
    fn take_syn(&mut self, now: Time, segment: &Segment) {
        self.receiver.synchronize(segment.seq);
        self.negotiated.agree(now, &self.config, segment);
        // Our packets are no larger than those that we ask for or the path takes, and a segment carries something beside its
        // options. A peer may claim an MSS of 0.
        let mss = self.clamp_segment(segment.mss.unwrap_or(self.config.default_peer_mss));
        self.negotiated.set_mss(mss.saturating_sub(self.negotiated.options_len()).max(1));
        let shift = if self.negotiated.scaling() { self.own_shift() } else { 0 };
        let with_options = self.announced_segment();
        let opened = self.state == State::SynSent;
        let offered = self.receiver.syn_window(if opened { self.config.mss.into() } else { with_options });
        self.receiver.begin(shift, mss, with_options, offered);
        self.receiver.compress(self.config.transfer.sack_compression.filter(|_| self.negotiated.sack()));
        self.send.wnd = u64::from(segment.window);
        self.send.max_wnd = self.send.wnd;
    }

    pub(crate) fn establish(&mut self, now: Time) {
        self.state = State::Established;
        self.send.una = 1;
        self.finish_handshake(now);
        self.begin_sending(now);
        let held = u64::from(std::mem::take(&mut self.handshake.early_payload)).min(self.receiver.acceptable());
        if held > 0 {
            self.receiver.receive(now, 1, 1 + held, held as u32);
        }
    }

    /// Our SYN is acknowledged.
    pub(crate) fn finish_handshake(&mut self, now: Time) {
        self.timers.stop_retransmission();
        if let Some(sent_at) = self.handshake.sent_at {
            self.sample_rtt(now.since(sent_at));
            self.detector.measured(now, now.since(sent_at));
        }
        self.rtt.established(self.handshake.resent);
        self.counters.delivered_segments += 1;
        self.counters.data_received_at = now;
        self.timers.handshake_over();
        self.liveness.heard(now);
        self.arm_keepalive(now);
    }

    /// The window and all that follows from it are set up: data may be sent.
    pub(crate) fn begin_sending(&mut self, now: Time) {
        self.bound_segment();
        self.begin_probing(now);
        let flight = self.flight(now);
        self.cc.on_established(&flight);
        self.cc.on_ecn(self.usable_feedback());
        if self.cc.needs() != self.observer.needs {
            self.adopt_needs();
        }
        self.decide_pacing(now);
        self.begin_validation(now);
    }
}
