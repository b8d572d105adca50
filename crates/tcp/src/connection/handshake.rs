//! From a SYN to an open connection: LISTEN, SYN-SENT and SYN-RECEIVED (RFC 9293 sections 3.10.7.2
//! to 3.10.7.4), with data on the SYN ([`fast_open`](super::fast_open)).
//!
//! With TCP_DEFER_ACCEPT a listening socket does not take a connection up before its first data. The
//! ACK that would complete the handshake is dropped while it comes without data, and so is every
//! further one, until the time is over. Meanwhile no SYN/ACK is repeated. When the timer has run as
//! often as the option's time is long, the SYN/ACK goes out once more, and its answer, with data or
//! without, completes the connection.
//!
//! # Source
//! TCP_DEFER_ACCEPT: Linux 6.1 `tcp_check_req` (`net/ipv4/tcp_minisocks.c`), `syn_ack_recalc`,
//! `reqsk_timer_handler` (`inet_connection_sock.c`), `secs_to_retrans`, `retrans_to_secs` (`tcp.c`).

use ackclock_cc::EcnFeedback;
use ackclock_packet::{FastOpen, Flags, Segment};
use ackclock_units::{Ecn, Span, Time};

use crate::connection::fast_open::{EarlyConnections, JudgedCookie, Opening, known_cookie};
use crate::loss::scoreboard::Progress;
use crate::send::retransmission_timer::Pending;
use crate::seq::lift;
use crate::{Acknowledgment, CaState, Endpoint, Error, FastOpenServer, SendRule, State, SynFin};

/// Number of expiries that take `time`, for a timer that starts at `first` and doubles up to `most`
/// (Linux `secs_to_retrans`): 0 for none, 255 at most.
pub fn retries_within(time: Span, first: Span, most: Span) -> u32 {
    let (mut retries, mut wait, mut passed) = (0, first, Span::ZERO);
    while passed < time && retries < 255 {
        retries += 1;
        passed += wait;
        wait = (wait * 2).min(most);
    }
    retries
}

/// Duration of `retries` expiries (Linux `retrans_to_secs`).
pub fn time_of_retries(retries: u32, first: Span, most: Span) -> Span {
    let (mut wait, mut passed) = (first, Span::ZERO);
    for _ in 0..retries.min(255) {
        passed += wait;
        wait = (wait * 2).min(most);
    }
    passed
}

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
            self.sender.ecn.agree(&self.config, segment, ecn);
            self.state = State::SynReceived;
            self.handshake.begin();
            if self.config.states.fast_open {
                let (server, alone) = (FastOpenServer::with_cookie(known_cookie(), 1), EarlyConnections::default());
                match server.judge(now, segment, &alone) {
                    JudgedCookie::Early(reply) => self.open_early(now, segment, reply, &alone),
                    JudgedCookie::Ordinary(reply) => self.opening = Opening::of_server(reply),
                }
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
                    if self.config.transfer.ticks.two() > Span::ZERO { self.config.transfer.ticks.two() } else { wait },
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
            self.sender.ecn.agree(&self.config, segment, ecn);
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
        self.sender.ecn.take_answer(&self.config, segment, ecn, self.sender.rtt.timeouts());
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
        let takes_data = self.opening.is_there() && self.answer_to_fast_open(now, segment, ack);
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
        let peer_mss = segment.mss.unwrap_or(self.config.default_peer_mss);
        let mss = self.sender.path.clamp_segment(&self.config, self.sender.writing.max_segment(), peer_mss);
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
    fn finish_handshake(&mut self, now: Time) {
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

    // Fast Open.

    /// A SYN/ACK that acknowledges up to `ack` has opened the connection. Returns `true` if data
    /// that came with it may be taken in.
    #[cold]
    fn answer_to_fast_open(&mut self, now: Time, segment: &Segment, ack: u64) -> bool {
        let linux = self.config.transfer.sending == SendRule::Linux;
        if self.opening.has_sent_data() {
            self.sender.loss.board.acknowledge(ack, &mut Progress::new(now));
            self.sender.sequence.acknowledge(ack);
        }
        let unacknowledged = !self.sender.loss.board.is_empty();
        let was_tried = self.opening.learn(segment, unacknowledged, self.sender.syn_lost);
        if unacknowledged {
            self.sender.resend_syn_data(now, linux);
        } else if linux && self.opening.writer_waits() {
            // tcp_rcv_synsent_state_process: one ACK saved.
            self.receiver.wait_for_writer(now);
        }
        if unacknowledged || self.sender.sequence.unsent() > 0 || self.opening.writer_waits() {
            self.handshake.acknowledge_alone(false);
        }
        // tcp_fastopen_add_skb.
        !unacknowledged && was_tried
    }

    /// Opens a child in SYN-RECEIVED by its SYN, data and all (`tcp_fastopen_create_child`,
    /// `syncache_tfo_expand`).
    pub(crate) fn open_early(&mut self, now: Time, syn: &Segment, reply: Option<FastOpen>, others: &EarlyConnections) {
        let len = u64::from(syn.payload.len).min(self.receiver.acceptable());
        self.opening = Opening::early(reply, len > 0, others);
        self.sender.sequence.acknowledge(1);
        self.sender.sequence.end_at(1);
        self.sender.begin_sending(now, self.socket.is_passive(), self.recalled.take());
        if len > 0 {
            self.receiver.check(1, syn.payload);
            self.receiver.take_with_syn(len);
        }
    }

    /// The last ACK of the handshake has come (`tcp_rcv_synrecv_state_fastopen`).
    #[cold]
    pub(crate) fn complete_early(&mut self, now: Time) {
        self.opening.end_early();
        self.state = if self.sender.sequence.is_fin_sent() { State::FinWait1 } else { State::Established };
        self.finish_handshake(now);
        self.sender.cc.on_ecn(self.sender.ecn.usable_feedback());
        self.sender.review_prediction();
        if self.sender.loss.recovery.state() == CaState::Loss && self.sender.loss.board.is_empty() {
            // tcp_try_undo_recovery: nothing was in flight when the SYN/ACK was given up for lost.
            self.sender.undo_at_end(&Progress::new(now));
        }
        self.sender.restart_retransmit_timer(now);
    }

    /// The SYN/ACK of a child that was opened by its SYN is due again
    /// (`tcp_fastopen_synack_timer`), or given up.
    #[cold]
    pub(crate) fn early_answer_due(&mut self, now: Time) {
        self.timers.handshake_over();
        let linux = self.config.transfer.sending == SendRule::Linux || self.sender.loss.linux_episodes();
        let retries = if linux { self.config.states.synack_retries + 1 } else { self.config.max_retries };
        if self.sender.rtt.timeouts() >= retries {
            self.close_now(Some(Error::TimedOut));
            return;
        }
        self.repeat_syn();
        if linux && self.sender.loss.linux_episodes() && self.sender.rtt.timeouts() == 1 {
            self.sender.on_timeout(now);
        } else {
            self.sender.rtt.back_off();
            self.sender.stats.timeouts += 1;
        }
    }

    /// A SYN or its answer was sent at `now`; `again` if not for the first time.
    pub(crate) fn arm_syn_timers(&mut self, now: Time, again: bool) {
        // The slop of FreeBSD is added when the timeout is computed, which is for the second SYN.
        let repeats = self.sender.rtt.timeouts();
        let doublings = match self.state {
            State::SynSent => repeats.saturating_sub(self.config.states.linear_syn_timeouts),
            _ => repeats,
        };
        let doubled = self.config.initial_rto.as_nanos().saturating_mul(1 << doublings.min(40));
        let slop = if repeats > 0 { self.config.rto_slop } else { Span::ZERO };
        let wait = (Span::from_nanos(doubled) + slop).min(self.config.max_rto);
        if self.opening.is_early() {
            self.timers.bound_handshake(now + wait);
            return;
        }
        let wait = self.sender.patience(now, wait);
        self.sender.timer.start(self.config.transfer.ticks, now, Pending::Rto, wait);
        if !again && let Some(timeout) = self.config.states.handshake_timeout.filter(|_| !self.socket.is_passive()) {
            self.timers.bound_handshake(now + timeout);
        }
    }

    /// Returns `true` if a listening socket drops this segment to its child because it waits for
    /// data.
    #[cold]
    pub(crate) fn defers(&mut self, now: Time, segment: &Segment) -> bool {
        let waits = self.sender.rtt.timeouts() < self.config.states.defer_accept;
        let bare = segment.sequence_len() == 0 && self.receiver.lift(segment.seq) == Some(1);
        if !waits || !bare || segment.flags.contains(Flags::SYN) || !self.completes(segment) {
            return false;
        }
        if !self.passes_paws(now, segment, 1) {
            return false;
        }
        self.update_ts_recent(now, segment, 1);
        self.socket.defer();
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn seconds_and_retransmissions_as_linux_rounds_them() {
        let (first, most) = (Span::from_secs(1), Span::from_secs(120));
        let there = |seconds| retries_within(Span::from_secs(seconds), first, most);
        let back = |retries| time_of_retries(retries, first, most).as_millis() / 1000;
        // 1, 1 + 2, 1 + 2 + 4, ... and from the eighth on 120 s each: 127 + 120 = 247.
        for (seconds, retries, rounded) in
            [(0, 0, 0), (1, 1, 1), (2, 2, 3), (3, 2, 3), (4, 3, 7), (7, 3, 7), (8, 4, 15), (128, 8, 247)]
        {
            assert_eq!((there(seconds), back(retries)), (retries, rounded), "{seconds}");
        }
        assert_eq!(there(1_000_000), 255);
    }
}
