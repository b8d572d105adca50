//! The writing of segments: SYN, data, acknowledgment and answer, each with its options.

use ackclock_packet::{Flags, Payload, Segment, Timestamps};
use ackclock_units::{Ecn, Time};

use crate::send::segment::Piece;
use crate::{Endpoint, SendRule, SentAs, State};

impl Endpoint {
    /// Fields that every segment of a synchronized connection carries: the acknowledgment with its
    /// window.
    #[inline(always)]
    pub(crate) fn write_common(&mut self, now: Time, out: &mut Segment, flags: Flags) {
        out.begin((self.ports.local, self.ports.remote), flags | Flags::ACK);
        out.ack = self.receiver.ack_number();
        if self.sender.negotiated.timestamps() {
            out.timestamps = Some(self.sender.negotiated.stamp(now));
        }
        if flags.contains(Flags::SYN) {
            out.window = self.receiver.announce(self.receiver.syn_window(self.sender.announced_segment()), 0);
        } else {
            let is_forgotten = self.is_forgotten();
            out.flags |= self.sender.echo_flags(is_forgotten);
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
        out.mss = self.config.transfer.mss_option.then(|| self.sender.announced_mss());
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
        out.sack = sack;
        self.sender.reflect_answer(out);
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
    pub(crate) fn write_answer(&mut self, now: Time, out: &mut Segment) {
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
    pub(crate) fn write_bare_ack(&mut self, now: Time, out: &mut Segment) {
        let challenge = self.answers.take_ack();
        let seq = if challenge { self.sender.sequence.nxt() } else { self.sender.sequence.una().saturating_sub(1) };
        self.write_common(now, out, Flags::NONE);
        out.seq = self.sender.sequence.lower(seq);
        if challenge {
            self.sender.reflect_in_challenge(out);
        }
        let is_forgotten = self.is_forgotten();
        self.sender.add_option(now, out, is_forgotten, &self.receiver);
    }

    #[inline(always)]
    pub(crate) fn write_data(&mut self, now: Time, out: &mut Segment, piece: Piece) -> Ecn {
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
        if if self.config.transfer.sending == SendRule::Linux {
            piece.push
        } else {
            last || self.config.transfer.write_size > 0 && self.sender.pushes(&piece)
        } {
            flags |= Flags::PSH;
        }
        self.write_common(now, out, flags);
        out.seq = self.sender.sequence.lower(piece.seq);
        out.sack = sack;
        out.payload = Payload { offset: piece.seq - 1, len: piece.payload };
        let is_forgotten = self.is_forgotten();
        self.sender.add_option(now, out, is_forgotten, &self.receiver);
        self.sender.stats.sent_packets += 1;
        self.sender.stats.bare_fins += u32::from(piece.payload == 0);
        self.sender.counters.bytes_sent += u64::from(piece.payload);
        self.sender.counters.bytes_resent += if piece.plain { u64::from(piece.payload) } else { 0 };
        self.receiver.data_sent(now);
        self.sender.sequence.sent_at(now);
        self.sender.loss.recovery.sent(piece.payload);
        // Retransmissions and segments without data are not ECN-capable (RFC 3168 sections 6.1.4
        // and 6.1.5), unless the controller asks for it.
        if !piece.plain && piece.payload > 0 { self.sender.ecn.mark_data(out) } else { self.sender.ecn.control() }
    }

    #[cold]
    pub(crate) fn write_syn(&mut self, now: Time, out: &mut Segment) -> Ecn {
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
        let (flags, codepoint) = self.sender.syn_ecn(self.state);
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
        self.sender.offer_option(self.state, self.socket.is_passive(), again, out);
        self.sender.sequence.end_at(self.sender.sequence.nxt().max(1));
        self.handshake.sent(now, again, self.sender.negotiated.clock(now));
        self.sender.stats.resent_syns +=
            u32::from(again && self.state == State::SynSent && self.config.states.counts_syns);
        self.arm_syn_timers(now, again);
        codepoint
    }
}
