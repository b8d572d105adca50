//! Arriving segments (RFC 9293 section 3.10.7): acceptability by timestamps (PAWS, RFC 7323 section
//! 5) and sequence numbers (RFC 5961), the acknowledgment, payload and FIN, resets, and TIME-WAIT.
//!
//! # Header prediction
//!
//! The segments of which most of a transfer consists take a short way. While nothing unusual is
//! going on, a connection expects two kinds of them: the data that is next in order, or after a loss
//! beyond it, and an ACK of the oldest segments in flight. They are recognized by a few comparisons
//! and need hardly any of the decisions of the ordinary way, which takes everything else; it skips
//! the checks of an ACK without data that reports a gap or follows a loss. The two ways have the same
//! effects: what the short one leaves out would do nothing.
//! [`crate::Config::header_prediction`] forbids it, and tests compare runs with and without it.
//!
//! # Source
//! V. Jacobson, "4BSD TCP header prediction", ACM CCR 20(2), 1990; FreeBSD `tcp_do_segment`
//! (`sys/netinet/tcp_input.c`); Linux `tcp_rcv_established` (`net/ipv4/tcp_input.c`).
//!
//! # Departures
//! - Data that acknowledges something, and a window that has changed, are predicted as well.

use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::receiver::{Arrived, Context};
use crate::{
    AccEcnRule, AckRule, Acknowledgment, CaState, Endpoint, Error, State, SynFin, TimeWaitAnswers, WindowRule,
};

impl Endpoint {
    /// Takes in a segment that arrived with codepoint `ecn`. Then [`Endpoint::transmit`] is to be
    /// asked.
    #[inline(always)]
    pub fn input(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.burst.interrupt();
        match self.input_predicted(now, segment, ecn) {
            Some(acknowledgment) => acknowledgment,
            None => self.input_otherwise(now, segment, ecn),
        }
    }

    #[inline(never)]
    fn input_otherwise(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        if let Some(acknowledgment) = self.input_at_gap(now, segment, ecn) {
            return acknowledgment;
        }
        self.sender.burst.end();
        let acknowledgment = if self.is_bare_ack(segment, ecn) {
            self.input_bare_ack(now, segment, ecn)
        } else {
            self.input_unpredicted(now, segment, ecn)
        };
        self.review_deadlines();
        acknowledgment
    }

    #[inline(never)]
    fn input_unpredicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.writing.set_more(false);
        if segment.flags.contains(Flags::SYN | Flags::FIN)
            && self.config.states.syn_fin == SynFin::Drop
            && self.state != State::Closed
        {
            return Acknowledgment::default();
        }
        match self.state {
            State::Closed => {
                self.answers.refuse(segment);
                Acknowledgment::default()
            }
            State::Listen => {
                self.input_listen(now, segment, ecn);
                Acknowledgment::default()
            }
            State::SynSent => self.input_syn_sent(now, segment, ecn),
            State::TimeWait => self.input_time_wait(now, segment),
            _ => self.input_synchronized(now, segment, ecn),
        }
    }

    fn input_synchronized(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        let is_syn = segment.flags.contains(Flags::SYN);
        let left = match self.receiver.lift(segment.seq) {
            Some(left) if left > 0 || is_syn => left,
            // Unit 0 is the peer's SYN and nothing else; what lies before it was never part of the
            // stream.
            _ => {
                if !segment.flags.contains(Flags::RST) {
                    self.answer_invalid(now, segment);
                }
                return Acknowledgment::default();
            }
        };
        let right = left + u64::from(segment.sequence_len());
        if segment.flags.contains(Flags::RST) {
            self.input_reset(now, left);
            return Acknowledgment::default();
        }

        if segment.timestamps.is_none()
            && self.sender.negotiated.timestamps()
            && !self.config.transfer.lenient_timestamps
            && !self.config.states.accept_unstamped
            && !segment.flags.contains(Flags::RST)
            && !segment.flags.contains(Flags::SYN)
        {
            // A connection that agreed on timestamps silently drops segments without (RFC 7323
            // section 3.2). A SYN of another connection is left to be challenged.
            return Acknowledgment::default();
        }
        if !self.passes_paws(now, segment, left) {
            // RFC 7323 section 5.3 R1.
            self.answer_invalid(now, segment);
            let next = self.receiver.next();
            if self.config.transfer.report_refused && left < next && left < right {
                self.describe_arrival(now, segment);
                self.receiver.receive(now, left, right.min(next), segment.payload.len);
            }
            return Acknowledgment::default();
        }
        if is_syn {
            return self.input_syn_again(now, segment, left, ecn);
        }
        if !self.receiver.accepts(segment, left, right, &self.config.states) {
            return self.note_duplicate(now, segment, left, right);
        }
        if !segment.flags.contains(Flags::ACK) {
            return Acknowledgment::default();
        }
        self.liveness.heard(now);
        if self.sender.ecn.count_mark(&self.config, segment, ecn, self.receiver.owes_ack()) {
            self.receiver.acknowledge_now();
        }
        if self.is_unwanted(segment, right) {
            // RFC 9293 section 3.6.1: nobody will read it.
            self.answers.refuse(segment);
            self.close_now(Some(Error::Reset));
            return Acknowledgment::default();
        }
        let Some(acked) = self.input_ack(now, segment, left) else {
            return Acknowledgment::default();
        };
        self.update_ts_recent(now, segment, left);
        if right > left {
            self.input_data(now, segment, left, right, ecn);
        }
        self.sender.acknowledgment(acked)
    }

    /// An unacceptable segment is answered with an ACK; what it repeats is reported (RFC 2883).
    fn note_duplicate(&mut self, now: Time, segment: &Segment, left: u64, right: u64) -> Acknowledgment {
        self.answer_invalid(now, segment);
        if right > left && right <= self.receiver.next() {
            self.sender.ecn.note_spurious(left);
            self.describe_arrival(now, segment);
            self.receiver.receive(now, left, right, segment.payload.len);
        }
        // An old data segment may carry a newer acknowledgment.
        if segment.flags.contains(Flags::ACK) && left <= self.receiver.next() {
            return self
                .input_ack(now, segment, left)
                .map(|acked| self.sender.acknowledgment(acked))
                .unwrap_or_default();
        }
        Acknowledgment::default()
    }

    /// Returns `true` if a segment that begins at `left` passes PAWS (RFC 7323 section 5).
    pub(crate) fn passes_paws(&self, now: Time, segment: &Segment, left: u64) -> bool {
        // An old duplicate of the SYN is for the state machine to answer.
        let slack = if self.state == State::TimeWait { 0 } else { self.config.states.paws_slack };
        left == 0 || self.sender.negotiated.passes_paws(now, segment, slack)
    }

    /// RFC 7323 section 4.3: the echo is that of the segment that last advanced the left edge.
    #[inline]
    pub(crate) fn update_ts_recent(&mut self, now: Time, segment: &Segment, left: u64) {
        if left <= self.receiver.last_ack_sent() {
            self.sender.negotiated.update_recent(now, segment);
        }
    }

    /// The window as RFC 9293 section 3.10.7.4 has it for resets and SYNs: the right edge lies
    /// outside. Before a listening socket's child is open, it is what was announced; a FIN takes no
    /// room.
    fn is_reset_in_window(&self, left: u64) -> bool {
        let next = self.receiver.next();
        let half_open = self.state == State::SynReceived && self.socket.is_passive();
        let window = if half_open { self.receiver.offered() } else { self.receiver.acceptable() };
        left == next || left > next && left < next + window + u64::from(self.receiver().is_finished())
    }

    /// Answers a segment that the state machine does not take with an ACK (RFC 9293 section
    /// 3.10.7.4, first check). Such answers to segments without data or FIN could go on for ever
    /// between two ends that disagree, and are limited by Linux.
    fn answer_invalid(&mut self, now: Time, segment: &Segment) {
        let carries_data = segment.sequence_len() > 0 && !segment.flags.contains(Flags::SYN);
        if carries_data || self.answers.may_answer(now, &self.config.states) {
            self.receiver.acknowledge_now();
        }
    }

    /// Returns `true` if a segment passes the checks of TCP (RFC 9293 section 3.10.7, RFC 5961, RFC
    /// 7323), so that options of a layer above may be acted upon: it is no SYN of an open
    /// connection, lies in the window, and acknowledges what may be acknowledged. It is taken in by
    /// [`Endpoint::input`] as before.
    pub fn would_accept(&self, now: Time, segment: &Segment) -> bool {
        match self.state {
            State::Closed => false,
            State::Listen => true,
            State::SynSent => {
                !segment.flags.contains(Flags::ACK) || self.sender().sequence().acknowledges_new(segment.ack)
            }
            _ => {
                let Some(left) = self.receiver.lift(segment.seq).filter(|&left| left > 0) else { return false };
                let right = left + u64::from(segment.sequence_len());
                segment.flags.contains(Flags::ACK)
                    && !segment.flags.contains(Flags::SYN)
                    && self.passes_paws(now, segment, left)
                    && self.receiver.accepts(segment, left, right, &self.config.states)
                    && self.sender.sequence.lift(segment.ack).is_some_and(|ack| self.sender.sequence.accepts(ack))
            }
        }
    }

    // The acknowledgment (fifth check).

    /// The acknowledgment field, window and SACK option: how many units it acknowledges, with
    /// the RTT sample of [`Endpoint::input`]. `None` if the segment is to be dropped.
    fn input_ack(&mut self, now: Time, segment: &Segment, left: u64) -> Option<u64> {
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
        let echo = self.sender.ecn.hears_echo(segment);
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
        if self.sender.ecn.check_first_ace(&self.config, segment) {
            self.sender.counters.delivered_ce += 1;
        }
        if self.opening.is_early() {
            self.complete_early(now);
        } else {
            self.establish(now);
        }
        self.sender.latest_sample = None;
        Some(())
    }

    // Payload and FIN (seventh and eighth check).

    /// Payload and FIN.
    pub(crate) fn input_data(&mut self, now: Time, segment: &Segment, left: u64, right: u64, ecn: Ecn) {
        if self.sender.ecn.may_arrive_marked() {
            if self.sender.ecn.changes_echo(ecn) && self.receiver.owes_ack() {
                self.acknowledge_before(now);
            }
            self.sender.ecn.note_mark(segment, ecn, self.sender.counters.ecn_seen, &mut self.receiver);
        }
        self.receiver.check(left, segment.payload);
        let mut edge = self.receiver.edge();
        if let WindowRule::Linux { .. } = self.config.transfer.window {
            if left >= edge || self.receiver.acceptable() == 0 && right > edge {
                if !self.lets_fin_in(segment, left) {
                    self.receiver.beyond_window();
                    return;
                }
                // There is no memory for it: ICSK_ACK_NOMEM.
                self.receiver.acknowledge_now();
            }
            // All of a segment that begins within the window is taken, up to release 6.16.
            edge = u64::MAX;
        }
        if segment.flags.contains(Flags::FIN) {
            self.receiver.note_fin(right - 1);
        }
        // Nothing follows a FIN.
        let right = right.min(edge).min(self.receiver.end());
        if right <= left {
            self.receiver.acknowledge_now();
            return;
        }
        if right <= self.receiver.next() {
            self.sender.ecn.note_spurious(left);
        }
        self.describe_arrival(now, segment);
        if left > self.receiver.next() {
            self.note_gap(now, left, right);
        }
        let arrived = self.receiver.receive(now, left, right, segment.payload.len);
        if self.socket.discards() {
            self.read(u64::MAX);
        }
        if arrived == Arrived::InOrder && self.receiver().is_finished() {
            self.on_peer_fin(now);
        }
    }

    /// Returns `true` if `left` is the next number and the segment is a FIN alone, which is
    /// accepted although the window is closed.
    #[cold]
    fn lets_fin_in(&self, segment: &Segment, left: u64) -> bool {
        let bare_fin = segment.flags.contains(Flags::FIN) && segment.payload.len == 0;
        bare_fin && self.receiver.is_next(left) && self.config.states.zero_window_fin
    }

    /// Data beyond a gap is about to be taken in.
    #[inline(never)]
    fn note_gap(&mut self, now: Time, left: u64, right: u64) {
        // All of it counts, also what is known.
        self.sender.counters.out_of_order += 1;
        if self.receiver.reports_before(left, right, self.sender.rtt.srtt()) && !self.answers.has_before() {
            self.acknowledge_before(now);
            self.receiver.reported_before();
        }
    }

    /// An ACK goes out of what came before the data in hand.
    #[inline(never)]
    fn acknowledge_before(&mut self, now: Time) {
        self.sender.burst.end();
        let mut ack = Segment::default();
        self.write_ack(now, &mut ack);
        self.answers.send_before(ack);
    }

    /// Describes what, beside the data, decides about the ACK.
    #[inline(always)]
    fn describe_arrival(&mut self, now: Time, segment: &Segment) {
        if self.receiver.is_described() {
            self.describe(now, segment);
        }
    }

    fn describe(&mut self, now: Time, segment: &Segment) {
        if self.receiver.is_tuned() {
            self.tune(now, segment);
        }
        if self.config.transfer.acks != AckRule::Linux && !self.config.delayed_ack.hurry.looks_closer() {
            return;
        }
        let context = Context {
            pushed: segment.flags.contains(Flags::PSH),
            last: segment.flags.contains(Flags::FIN),
            srtt: self.sender.rtt.srtt(),
            rto: self.sender.rto(),
            segment: self.sender.announced_segment(),
        };
        self.receiver.describe(context);
    }

    #[inline(never)]
    fn tune(&mut self, now: Time, segment: &Segment) {
        let age = self.sender.negotiated.echo_age(now, segment);
        let echo = segment.timestamps.map(|stamps| stamps.echo).zip(age);
        self.receiver.tune(now, segment.payload.len, echo, self.sender.announced_segment());
    }

    // RST, a SYN on an open connection, and data that nobody will read (RFC 5961).

    /// RFC 5961 section 3: only the exact next number resets; another one within the window is
    /// challenged.
    #[cold]
    fn input_reset(&mut self, now: Time, left: u64) {
        if self.state == State::SynReceived && self.opening.is_early() && self.is_reset_in_window(left) {
            self.opening.reset_early(now);
            self.reset_by_peer();
            return;
        }
        let closed = matches!(self.state, State::CloseWait | State::LastAck | State::Closing);
        let is_fin = self.config.states.reset_before_fin && closed && self.receiver.is_next(left + 1);
        let exact = self.receiver.is_next(left) || is_fin;
        if !exact {
            if self.is_reset_in_window(left) {
                if self.config.states.insecure_rst {
                    self.reset_by_peer();
                } else {
                    if self.state == State::Established && self.sender.counters.data_segments_in == 0 {
                        self.opening.suspect_reset();
                    }
                    self.answers.challenge(now, &self.config.states);
                }
            }
            return;
        }
        self.reset_by_peer();
    }

    fn reset_by_peer(&mut self) {
        let rules = &self.config.states;
        let error = match self.state {
            State::SynReceived if !rules.reset_in_syn_received => Some(Error::Refused),
            State::CloseWait if rules.broken_pipe_in_close_wait => Some(Error::BrokenPipe),
            // Both sides have closed; what matters is whether our data arrived.
            State::LastAck | State::Closing if self.sender.sequence.acked_bytes() == self.sender.sequence.written() => {
                let report = rules.report_late_reset;
                self.close_now(None);
                if report {
                    self.socket.report(Error::Reset);
                }
                return;
            }
            _ => Some(Error::Reset),
        };
        self.close_now(error);
    }

    /// A SYN on a connection that has seen one.
    fn input_syn_again(&mut self, now: Time, segment: &Segment, left: u64, ecn: Ecn) -> Acknowledgment {
        let flags = segment.flags;
        if self.state == State::SynReceived {
            if left == 0 && flags.contains(Flags::ACK) {
                // Simultaneous open: the other side's SYN with ACK (RFC 9293 figure 8).
                self.receiver.acknowledge_now();
                if self.config.transfer.exact_duplicates {
                    self.receiver.receive(now, 0, 1, 0);
                }
                return self
                    .input_ack(now, segment, left)
                    .map(|acked| self.sender.acknowledgment(acked))
                    .unwrap_or_default();
            }
            if left == 0 {
                // The peer did not get our SYN with ACK: it is sent again.
                self.repeat_syn();
                self.sender.ecn.agree_again(&self.config, segment, ecn);
                return Acknowledgment::default();
            }
            if self.opening.is_early() {
                // tcp_check_req: a bad SYN is reset, and does not end the connection.
                self.answers.refuse(segment);
                return Acknowledgment::default();
            }
            if self.socket.is_passive() && self.is_reset_in_window(left) {
                // RFC 9293 section 3.10.7.4, fourth check: back to LISTEN, which is the listener's
                // part.
                self.close_now(None);
                return Acknowledgment::default();
            }
        } else if self.config.states.insecure_syn && self.is_reset_in_window(left) {
            self.reset_peer();
            self.close_now(Some(Error::Reset));
            return Acknowledgment::default();
        }
        // RFC 5961 section 4: challenged wherever it lies.
        self.answers.challenge(now, &self.config.states);
        self.sender.ecn.reflect_again(segment, ecn, self.answers.has_challenge());
        Acknowledgment::default()
    }

    /// Returns `true` if the segment brings data that nobody will read any more.
    fn is_unwanted(&self, segment: &Segment, right: u64) -> bool {
        let shut = || self.socket.is_orphan() || self.socket.is_read_shut() && self.config.states.reset_after_shutdown;
        matches!(self.state, State::FinWait1 | State::FinWait2)
            && shut()
            && segment.payload.len > 0
            && right - u64::from(segment.flags.contains(Flags::FIN)) > self.receiver.next()
    }

    // TIME-WAIT (RFC 9293 section 3.6.1, RFC 1337, RFC 6191).

    /// TIME-WAIT: everything but a bare ACK in its place and a reset is answered, and most of it
    /// starts the wait anew (RFC 9293 section 3.10.7.4; Linux `tcp_timewait_state_process`, FreeBSD
    /// `tcp_twcheck`).
    fn input_time_wait(&mut self, now: Time, segment: &Segment) -> Acknowledgment {
        let flags = segment.flags;
        let left = self.receiver.lift(segment.seq);
        let in_place = left == Some(self.receiver.next());
        let current = self.passes_paws(now, segment, left.unwrap_or(0));
        let answers = self.config.states.time_wait_answers;
        if flags.contains(Flags::RST) {
            if in_place && !self.config.states.protect_time_wait {
                self.close_now(None);
            } else if !in_place
                && answers == TimeWaitAnswers::Rfc5961
                && left.is_some_and(|left| self.is_reset_in_window(left))
            {
                self.answers.challenge(now, &self.config.states);
            }
            return Acknowledgment::default();
        }
        let bare = segment.sequence_len() == 0;
        if !flags.contains(Flags::ACK) && answers == TimeWaitAnswers::Linux {
            self.answer_without_ack(now, segment, current, bare && in_place);
            return Acknowledgment::default();
        }
        if !flags.contains(Flags::ACK) {
            // A SYN may be an old duplicate, or a new one with too low a number: it does not
            // prolong the wait.
            if flags.contains(Flags::SYN) && answers != TimeWaitAnswers::FreeBsd {
                self.answers.challenge(now, &self.config.states);
            }
            return Acknowledgment::default();
        }
        let ack = self.sender.sequence.lift(segment.ack);
        let is_ack = current && ack == Some(self.sender.sequence.nxt());
        let arrival = Acknowledgment { is_ack, ..Acknowledgment::default() };
        // An echo that was overtaken counts too, as in other states.
        let echoes =
            current && ack.is_some_and(|ack| ack <= self.sender.sequence.nxt()) && self.sender.ecn.hears_echo(segment);
        self.sender.stats.ece_acks += u64::from(echoes);
        if bare && in_place && is_ack {
            return arrival;
        }
        self.timers.wait_out(now + self.config.time_wait);
        // Linux's answers have no SACK blocks any more (tcp_timewait_state_process,
        // tcp_v4_timewait_ack).
        let reports = answers != TimeWaitAnswers::Linux && !bare && !flags.contains(Flags::SYN);
        if let Some(left) = left.filter(|&left| left > 0 && reports) {
            let right = left + u64::from(segment.sequence_len());
            if right <= self.receiver.next() {
                self.describe_arrival(now, segment);
                self.receiver.receive(now, left, right, segment.payload.len);
            }
        }
        self.answer_invalid(now, segment);
        arrival
    }

    /// Linux `tcp_timewait_state_process`: all but what is bare and in its place is answered, with
    /// ACK or without; the wait starts anew only for what is too old, or is no SYN and nothing but
    /// in its place.
    fn answer_without_ack(&mut self, now: Time, segment: &Segment, current: bool, bare_in_place: bool) {
        if !current || bare_in_place {
            self.timers.wait_out(now + self.config.time_wait);
        }
        if bare_in_place && current {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.answers.challenge(now, &self.config.states);
        } else {
            self.answer_invalid(now, segment);
        }
    }

    /// In TIME-WAIT: whether this SYN may open a new connection in place of this one, and the least
    /// initial sequence number that the new one may have (RFC 9293 section 3.6.1, RFC 6191 section
    /// 2).
    pub fn yields_to(&self, segment: &Segment) -> Option<u32> {
        let flags = segment.flags;
        let opens = flags.contains(Flags::SYN) && !flags.contains(Flags::ACK) && !flags.contains(Flags::RST);
        let rules = &self.config.states;
        let dropped = flags.contains(Flags::FIN) && rules.syn_fin == SynFin::Drop;
        if self.state != State::TimeWait || !opens || dropped || !rules.reopen_time_wait {
            return None;
        }
        let newer = self.sender.negotiated.ahead_of_recent(segment).map(|ahead| (ahead > 0, ahead < 0));
        let above = self.receiver.lift(segment.seq).is_some_and(|left| left > self.receiver.next());
        let (later, earlier) = newer.unwrap_or((false, false));
        // The number that Linux gives: beyond the largest window without scale.
        (later || above && !earlier)
            .then(|| self.sender.sequence.lower(self.sender.sequence.nxt()).wrapping_add(65_537))
    }

    /// Linux's TIME-WAIT of a socket that nobody holds any more: it knows no counters
    /// (`tcp_v4_timewait_ack`).
    #[inline]
    pub(crate) fn is_forgotten(&self) -> bool {
        self.state == State::TimeWait
            && self.socket.is_orphan()
            && self.config.transfer.acc_ecn.rule == AccEcnRule::Linux
    }

    // Header prediction.

    /// Takes in a segment if it is one of those that are expected; `None`, with nothing done, if it
    /// is not.
    #[inline(always)]
    fn input_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        if !self.sender.predicts || !self.receiver.expects(segment.seq, segment.payload.len) {
            return None;
        }
        if self.sender.burst.idles() {
            return self.input_idle(now, segment, ecn);
        }
        if self.state != State::Established || !self.sender.is_ordinary(segment, ecn) {
            return None;
        }
        debug_assert!(self.sender.may_predict());
        let (una, payload) = (self.sender.sequence.una(), segment.payload.len);
        let acked = segment.ack.wrapping_sub(self.sender.sequence.lower(una));
        if acked > i32::MAX as u32 || u64::from(acked) > self.sender.sequence.nxt() - una {
            return None;
        }
        let left = self.receiver.next();
        if acked > 0 {
            let ack = una + u64::from(acked);
            let whole = self.sender.loss.board.acknowledge_whole(ack)?;
            self.sender.take_time(now);
            self.sender.input_predicted_ack(now, segment, left, ack, whole);
        } else if payload > 0 && self.sender.loss.board.is_empty() {
            self.sender.take_stream_segment(now, segment, left, una);
        } else if payload > 0 && self.sender.loss.board.is_orderly() && !self.sender.observer.needs.arrivals {
            self.sender.take_time(now);
            self.sender.latest_sample = None;
            self.sender.set_window(segment, left, una, false);
            self.sender.ecn.hears_nothing();
            self.sender.queue.acked = true;
            self.sender.loss.on_data_alone();
            self.sender.update_pacing_rate();
        } else {
            return None;
        }
        self.count_predicted(now, segment, ecn, left);
        if payload > 0 {
            self.take_next(now, segment, left);
        }
        Some(self.sender.acknowledgment(acked.into()))
    }

    /// The same at an end that has nothing to send and nothing in flight: an expected segment is
    /// data with the acknowledgment that is known.
    #[inline(always)]
    fn input_idle(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        debug_assert!(self.sender.loss.board.is_empty() && self.sender.is_quiet());
        debug_assert!(self.sender.may_predict() && self.state == State::Established);
        let una = self.sender.sequence.una();
        if segment.ack != self.sender.sequence.lower(una)
            || segment.payload.len == 0
            || !self.sender.has_ordinary_header(segment, ecn)
        {
            return None;
        }
        let left = self.receiver.next();
        self.sender.take_stream_segment(now, segment, left, una);
        self.count_predicted(now, segment, ecn, left);
        self.take_next(now, segment, left);
        Some(self.sender.acknowledgment(0))
    }

    /// Takes in the data that is next, from `left` on.
    #[inline(always)]
    fn take_next(&mut self, now: Time, segment: &Segment, left: u64) {
        let payload = segment.payload.len;
        self.receiver.check(left, segment.payload);
        self.describe_arrival(now, segment);
        self.receiver.receive_next(now, left + u64::from(payload), payload);
        if self.socket.discards() {
            self.read(u64::MAX);
        }
    }

    /// Takes in data that lies beyond a gap, or before one, at the receiver of a stream; `None`,
    /// with nothing done, for anything else.
    #[inline(always)]
    fn input_at_gap(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Option<Acknowledgment> {
        let (una, payload) = (self.sender.sequence.una(), segment.payload.len);
        if !self.sender.predicts
            || self.state != State::Established
            || payload == 0
            || !self.sender.loss.board.is_empty()
            || segment.ack != self.sender.sequence.lower(una)
            || !self.sender.is_ordinary(segment, ecn)
        {
            return None;
        }
        let (left, right) = self.receiver.range_ahead(segment.seq, payload)?;
        self.sender.take_stream_segment(now, segment, left, una);
        self.count_predicted(now, segment, ecn, left);
        self.receiver.check(left, segment.payload);
        self.describe_arrival(now, segment);
        if left > self.receiver.next() {
            self.note_gap(now, left, right);
        }
        self.receiver.receive(now, left, right, payload);
        if self.socket.discards() {
            self.read(u64::MAX);
        }
        Some(self.sender.acknowledgment(0))
    }

    /// Returns `true` if an ACK without data stands where the next data is expected: all that the
    /// checks of arriving segments ask for. What it reports, and acknowledges, may be anything.
    #[inline(always)]
    fn is_bare_ack(&self, segment: &Segment, ecn: Ecn) -> bool {
        self.sender.predicts
            && self.state == State::Established
            && segment.payload.len == 0
            && self.receiver.expects(segment.seq, 0)
            && self.sender.has_plain_header(segment, ecn)
    }

    #[inline(always)]
    fn input_bare_ack(&mut self, now: Time, segment: &Segment, ecn: Ecn) -> Acknowledgment {
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.counters.predicted += 1;
        self.sender.writing.set_more(false);
        self.liveness.heard(now);
        let left = self.receiver.next();
        let Some(acked) = self.input_ack(now, segment, left) else { return Acknowledgment::default() };
        self.update_ts_recent(now, segment, left);
        self.sender.acknowledgment(acked)
    }

    /// Notes the arrival of a segment that is predicted.
    #[inline(always)]
    fn count_predicted(&mut self, now: Time, segment: &Segment, ecn: Ecn, left: u64) {
        self.sender.persist.answered(now, &self.config, &self.sender.rtt);
        self.sender.counters.arrived(now, segment, ecn);
        self.sender.counters.predicted += 1;
        self.sender.writing.set_more(false);
        self.liveness.heard(now);
        self.update_ts_recent(now, segment, left);
    }
}
