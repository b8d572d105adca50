//! Departing segments: the selection of the next one, an answer, a SYN, data or an acknowledgment,
//! and how it is written, with its options.
//!
//! Where new data in full segments, or an acknowledgment, is all that may be due, the straight way
//! decides: `send::burst` has the sender's part.

use ackclock_packet::{Flags, Payload, Segment, Timestamps};
use ackclock_units::{Ecn, Time};

use crate::send::transmit::Piece;
use crate::{Endpoint, SendRule, SentAs, State};

/// The outcome of the straight path.
enum Straight {
    /// A segment is written.
    Sent(Ecn),
    /// Nothing is to be sent, and that is noted.
    Nothing,
    /// The straight path does not apply.
    No,
}

impl Endpoint {
    /// Writes the next segment to be sent into `out` and returns the codepoint of its IP header;
    /// `None` when there is nothing to send now. To be asked until it gives `None`.
    #[inline(always)]
    pub fn transmit(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        match self.go_straight(now, out) {
            Straight::Sent(ecn) => Some(ecn),
            Straight::Nothing => None,
            Straight::No => self.transmit_any(now, out),
        }
    }

    /// The long way, which knows every case.
    #[inline(never)]
    fn transmit_any(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        self.sender.burst.end();
        self.sender.counters.window_stopped = false;
        self.sender.note_writes(now);
        let ecn = self.next_segment(now, out);
        if ecn.is_some() {
            self.sender.counters.segment_sent();
        } else {
            self.sender.all_sent(now, self.state);
        }
        self.review_deadlines();
        ecn
    }

    #[inline(always)]
    fn next_segment(&mut self, now: Time, out: &mut Segment) -> Option<Ecn> {
        if self.answers.is_due() {
            self.write_answer(now, out);
            return Some(self.sender.ecn.control());
        }
        match self.state {
            State::Closed | State::Listen => return None,
            State::SynSent | State::SynReceived => {
                if self.handshake.is_due() {
                    return Some(self.write_syn(now, out));
                }
                let reports = self.receiver.has_report();
                if self.opening.is_early()
                    && let Some(piece) = self.sender.next_early(now, reports)
                {
                    return Some(self.write_data(now, out, piece));
                }
                if self.sender.persist.take_empty() {
                    self.answers.probe();
                }
            }
            _ => {
                // A report of a gap or a duplicate does not ride on data: there may be no room for
                // its SACK blocks, and an ACK with data is no duplicate ACK (RFC 5681 section 2).
                let reports = self.receiver.has_report();
                let alone = reports || self.handshake.take_bare_ack();
                if !(self.receiver.acknowledges_now() && alone) {
                    if let Some(piece) = self.sender.next_piece(now, reports) {
                        return Some(self.write_data(now, out, piece));
                    }
                    self.sender.note_window_use(now);
                    // A probe of the window has no data: it is an answer.
                    if self.sender.persist.take_empty() {
                        self.answers.probe();
                    }
                    if self.answers.has_probe() {
                        self.write_bare_ack(now, out);
                        return Some(self.sender.ecn.control());
                    }
                }
            }
        }
        if self.receiver.acknowledges_now() && self.state != State::SynSent {
            self.write_ack(now, out);
            return Some(self.sender.ecn.control());
        }
        None
    }

    // The straight way.

    /// Returns `true` if new data and acknowledgments are all that may be due.
    #[inline]
    fn is_plain(&self) -> bool {
        self.state == State::Established
            && self.sender.is_plain()
            && !self.answers.is_due()
            && !self.handshake.owes_bare_ack()
    }

    /// Determines the next segment by the straight path, where it applies.
    #[inline(always)]
    fn go_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        let unsent = (self.sender.sequence.written() + 1).wrapping_sub(self.sender.sequence.nxt());
        if self.sender.burst.idles() && unsent == 0 {
            return self.acknowledge_straight(now, out);
        }
        if self.sender.burst.goes_on(now) {
            return Straight::Sent(self.sender.write_full(self.ports, out));
        }
        if self.sender.burst.is_over(now) {
            self.sender.stop_at_cwnd(now, self.state);
            return Straight::Nothing;
        }
        self.send_straight(now, out, unsent)
    }

    #[inline]
    fn send_straight(&mut self, now: Time, out: &mut Segment, unsent: u64) -> Straight {
        self.sender.burst.begin();
        if self.sender.burst.is_calm() {
            debug_assert_eq!(self.is_plain(), self.sender.has_plain_state());
            if !self.sender.has_plain_state() {
                return Straight::No;
            }
        } else if self.is_plain() {
            self.sender.burst.calm_down();
        } else {
            return Straight::No;
        }
        if unsent == 0 && self.sender.loss.board.is_empty() {
            if self.receiver.acknowledges_now() {
                return self.acknowledge_straight(now, out);
            }
            self.sender.rest(now, self.state);
            return Straight::Nothing;
        }
        if self.receiver.acknowledges_now() {
            return Straight::No;
        }
        match self.sender.room_for_burst(unsent) {
            None => Straight::No,
            Some((0, _)) => {
                self.sender.stop_at_cwnd(now, self.state);
                Straight::Nothing
            }
            Some((left, fills)) => {
                // Full segments leave now; then the congestion window is full if they fill it.
                let window = self.receiver.announce_window();
                let flags = Flags::ACK | self.sender.ecn.echo_flags(false);
                self.sender.begin_burst(now, left, fills, (self.receiver.ack_number(), window, flags));
                self.receiver.data_sent(now);
                Straight::Sent(self.sender.write_full(self.ports, out))
            }
        }
    }

    /// Nothing is unsent or in flight: an acknowledgment is all that may be due.
    #[inline(always)]
    fn acknowledge_straight(&mut self, now: Time, out: &mut Segment) -> Straight {
        if !self.receiver.acknowledges_now() {
            debug_assert!(self.is_plain() && self.sender.loss.board.is_empty() && !self.sender.queue.is_short());
            self.sender.counters.sending = false;
            return Straight::Nothing;
        }
        self.sender.counters.window_stopped = false;
        self.write_ack(now, out);
        self.sender.counters.segment_sent();
        Straight::Sent(self.sender.ecn.control())
    }

    // The writing of segments.

    /// Fields that every segment of a synchronized connection carries: the acknowledgment with its
    /// window.
    #[inline(always)]
    fn write_common(&mut self, now: Time, out: &mut Segment, flags: Flags) {
        out.begin((self.ports.local, self.ports.remote), flags | Flags::ACK);
        out.ack = self.receiver.ack_number();
        if self.sender.negotiated.timestamps() {
            out.timestamps = Some(self.sender.negotiated.stamp(now));
        }
        if flags.contains(Flags::SYN) {
            out.window = self.receiver.announce(self.receiver.syn_window(self.sender.announced_segment()), 0);
        } else {
            let is_forgotten = self.is_forgotten();
            out.flags |= self.sender.ecn.echo_flags(is_forgotten);
            out.window = self.receiver.announce_window();
        }
    }

    /// The options of a SYN; those of an answer were agreed on.
    pub(crate) fn put_syn_options(&self, now: Time, out: &mut Segment) {
        let (sack, scaling) = if self.state == State::SynReceived {
            (self.sender.negotiated.sack(), self.sender.negotiated.scaling())
        } else if self.config.states.drop_options_after.is_some_and(|most| self.sender.rtt.timeouts() >= most) {
            (false, false)
        } else {
            if self.config.timestamps {
                out.timestamps = Some(Timestamps { value: self.sender.negotiated.clock(now), echo: 0 });
            }
            (self.config.knows_sack(), self.config.window_scaling)
        };
        out.mss = self.config.transfer.mss_option.then(|| self.sender.path.announced_mss(&self.config));
        out.sack_permitted = sack;
        out.window_scale = scaling.then(|| self.receiver.own_shift());
    }

    pub(crate) fn write_ack(&mut self, now: Time, out: &mut Segment) {
        let sack = self.receiver.sack_option(
            self.sender.negotiated.sack(),
            3 + usize::from(!self.sender.negotiated.timestamps()),
            self.config.dsack,
        );
        self.write_common(now, out, Flags::NONE);
        out.seq = self.sender.sequence.lower(self.sender.sequence.nxt());
        if let Some(sack) = sack {
            out.sack = sack;
        }
        self.sender.ecn.reflect_answer(out);
        let is_forgotten = self.is_forgotten();
        self.sender.add_option(now, out, is_forgotten, &self.receiver);
        if self.sender.sequence.is_fin_sent()
            && self.config.states.fin_on_acks
            && self.sender.sequence.una() < self.sender.sequence.nxt()
        {
            out.seq = self.sender.sequence.lower(self.sender.sequence.nxt() - 1);
            out.flags |= Flags::FIN;
            self.sender.sent_as = SentAs::Ack;
        }
    }

    /// An ACK from before the segment in hand, a reset, a challenge or a probe.
    #[cold]
    fn write_answer(&mut self, now: Time, out: &mut Segment) {
        if let Some(ack) = self.answers.take_before() {
            *out = ack;
            return;
        }
        let Some(reset) = self.answers.take_reset() else {
            self.write_bare_ack(now, out);
            return;
        };
        *out = self.ports.segment(reset.flags);
        (out.seq, out.ack, out.window) = (reset.seq, reset.ack, reset.window);
        if reset.stamped {
            out.timestamps = Some(self.sender.negotiated.stamp(now));
        }
    }

    /// A challenge (RFC 5961), or a probe with a number that has been acknowledged and makes the
    /// peer answer (RFC 9293 section 3.8.4).
    #[cold]
    fn write_bare_ack(&mut self, now: Time, out: &mut Segment) {
        let challenge = self.answers.take_ack();
        let seq = if challenge { self.sender.sequence.nxt() } else { self.sender.sequence.una().saturating_sub(1) };
        self.write_common(now, out, Flags::NONE);
        out.seq = self.sender.sequence.lower(seq);
        if challenge {
            self.sender.ecn.reflect_in_challenge(out);
        }
        let is_forgotten = self.is_forgotten();
        self.sender.add_option(now, out, is_forgotten, &self.receiver);
    }

    #[inline(always)]
    fn write_data(&mut self, now: Time, out: &mut Segment, piece: Piece) -> Ecn {
        // SACK blocks ride along only where the segment leaves room for them within the MSS.
        let spare = self.sender.full_payload().saturating_sub(piece.payload);
        let blocks = if spare >= 12 { ((spare - 4) / 8).min(3) as usize } else { 0 };
        let agreed = blocks > 0 && self.sender.negotiated.sack();
        let sack = self.receiver.sack_option(agreed, blocks, self.config.dsack);
        let mut flags = Flags::NONE;
        if piece.fin {
            flags |= Flags::FIN;
            self.state = match self.state {
                State::Established => State::FinWait1,
                State::CloseWait => State::LastAck,
                other => other,
            };
        }
        let last = piece.payload > 0 && piece.seq + u64::from(piece.payload) == self.sender.sequence.written() + 1;
        if if self.config.transfer.sending == SendRule::Linux || self.config.transfer.marks_writes() {
            piece.push
        } else {
            last || self.config.transfer.write_size > 0
                && piece.pushes(self.config.transfer.write_size, self.sender.sequence.max_window())
        } {
            flags |= Flags::PSH;
        }
        self.write_common(now, out, flags);
        out.seq = self.sender.sequence.lower(piece.seq);
        if let Some(sack) = sack {
            out.sack = sack;
        }
        out.payload = Payload { offset: piece.seq - 1, len: piece.payload };
        let is_forgotten = self.is_forgotten();
        self.sender.add_option(now, out, is_forgotten, &self.receiver);
        self.sender.stats.sent_packets += 1;
        self.sender.stats.bare_fins += u32::from(piece.payload == 0);
        self.sender.counters.bytes_sent += u64::from(piece.payload);
        self.sender.counters.bytes_resent += if piece.plain { u64::from(piece.payload) } else { 0 };
        self.receiver.data_sent(now);
        self.sender.sequence.sent_at(now);
        // prr_out leaves out what tcp_send_loss_probe repeats.
        if !(piece.plain && self.sender.sent_as == SentAs::TailLossProbe) {
            self.sender.loss.recovery.sent(piece.payload);
        }
        // Retransmissions and segments without data are not ECN-capable (RFC 3168 sections 6.1.4
        // and 6.1.5), unless the controller asks for it.
        if !piece.plain && piece.payload > 0 { self.sender.ecn.mark_data(out) } else { self.sender.ecn.control() }
    }

    #[cold]
    fn write_syn(&mut self, now: Time, out: &mut Segment) -> Ecn {
        // A second SYN gives no RTT sample, whether the first was lost or, in a simultaneous open,
        // was not.
        let again = self.opening.is_answered().unwrap_or(self.sender.sequence.nxt() > 0);
        if self.state == State::SynReceived {
            self.write_common(now, out, Flags::SYN);
        } else {
            *out = self.ports.segment(Flags::SYN);
            out.window = self.receiver.syn_window(self.config.mss.into()) as u16;
        }
        self.put_syn_options(now, out);
        let (flags, codepoint) = self.sender.ecn.put_syn(&self.config, self.state, self.sender.rtt.timeouts());
        out.flags |= flags;
        out.seq = self.sender.sequence.isn();
        if self.opening.is_there() && !again {
            if self.state == State::SynReceived {
                self.opening.put_reply(out);
            } else {
                let len = self.opening.put_request(&self.config, self.sender.sequence.written(), out);
                if len > 0 {
                    self.sender.send_with_syn(now, len);
                }
            }
        }
        let retries = if self.socket.is_passive() { again } else { self.sender.rtt.timeouts() > 1 };
        self.sender.ecn.offer_option(&self.config, self.state, retries, out);
        self.sender.sequence.end_at(self.sender.sequence.nxt().max(1));
        self.handshake.sent(now, again, self.sender.negotiated.clock(now));
        self.sender.stats.resent_syns +=
            u32::from(again && self.state == State::SynSent && self.config.states.counts_syns);
        self.arm_syn_timers(now, again);
        codepoint
    }
}
