//! Explicit congestion notification: what the handshake agrees on, how marks are reported, what the reports say.
//!
//! There are three ways to report. Classic feedback (RFC 3168) sets ECE from a mark until the sender confirms with CWR. DCTCP's
//! (RFC 8257 section 3.2) uses the same handshake, and ECE says exactly which data was marked. Accurate ECN (RFC 9768) counts
//! the packets that came with a mark in three header bits (ACE).
//!
//! # Source
//! RFC 3168 section 6.1, RFC 8257 sections 3.2 and 3.5, RFC 9768 section 3; Linux `include/net/tcp_ecn.h`, `net/ipv4/tcp_input.c`
//! (`tcp_accecn_process`) and `tcp_dctcp.h` of 6.18.
//!
//! # Departures
//! - The AccECN option with its byte counters is not sent (RFC 9768 section 3.2.3 makes it optional; Linux `tcp_ecn_option` 0),
//!   and skipped where it comes. How many packets an ACK reports as marked is then known modulo 8, and the safest case that the
//!   count of delivered segments allows is taken (appendix A.2), unless ACKs mostly cover many segments, as in Linux. A segment
//!   that is reported marked counts as a full one.
//! - A mark on the SYN or on its answer is reported, but the initial window does not become smaller for it (RFC 9768 section
//!   3.2.2.2 asks for a reaction). Only controllers that want all packets ECT ever send such a SYN.
//! - A peer that asks for, or agrees to, both classic and Accurate ECN in one handshake is not reset (section 3.1.5).
//! - Marks that do not cease are not taken for mangling (section 3.2.2.3), and the counter may be zero after the handshake
//!   (section 3.2.2.4): both tests are optional.
//! - ACKs and retransmissions are not ECT (RFC 3168 sections 6.1.4 and 6.1.5) unless the controller asks for it, or the host is
//!   Linux 6.18, which sends all packets of an open connection with Accurate ECN as ECT (ECN++, an experiment of its own).

use ackclock_cc::{EcnFeedback, EcnUse};
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::scoreboard::Progress;
use crate::{Endpoint, State};

/// What r.cep and s.cep begin with (RFC 9768 section 3.2.1).
const FIRST_COUNT: u8 = 5;
/// Marks since the last ACK after which the next is sent at once: while data waits for an ACK, and while none does (RFC 9768
/// section 3.2.2.5.1).
const MARKS_WITH_DATA: u8 = 2;
const MARKS_WITHOUT: u8 = 3;

/// The average number of segments that an ACK delivers has a gain of 2^-6 and is in units of 1/64 (`PKTS_ACKED_WEIGHT`,
/// `PKTS_ACKED_PREC`); above 4 (`ACK_COMP_THRESH`) an ACK of many is no sign that others were lost.
const DELIVERED_SHIFT: u32 = 6;
const MOST_DELIVERED: u64 = 4 << DELIVERED_SHIFT;

/// ACE fields that are no counters: AE, CWR and ECE of the handshake.
mod ace {
    /// No ECN.
    pub(super) const NONE: u8 = 0b000;
    /// A SYN that asks for classic ECN.
    pub(super) const CLASSIC_SYN: u8 = 0b011;
    /// A SYN that asks for Accurate ECN; an answer to one that reflects whatever comes.
    pub(super) const ACCURATE_SYN: u8 = 0b111;
    /// An answer that agrees to classic ECN.
    pub(super) const CLASSIC_ANSWER: u8 = 0b001;
    /// An answer of ECN with nonce (RFC 3540), which nobody has: reserved.
    pub(super) const RESERVED_ANSWER: u8 = 0b101;
}

/// Where the feedback of a connection stands.
#[derive(Debug)]
pub(crate) struct Feedback {
    /// What was agreed on.
    pub(crate) mode: EcnFeedback,
    /// The codepoints of new data and of everything else.
    pub(crate) data: Ecn,
    pub(crate) control: Ecn,
    /// The ACK in hand reports marks.
    pub(crate) echo: bool,
    /// The bytes that it reports as marked.
    pub(crate) marked: u64,
    /// RFC 8257's ACK of what came before the mark that has just come, or ceased to.
    pub(crate) ack_before: Option<Segment>,
    /// r.cep and s.cep, modulo 8: packets that came with a mark, and of ours that the peer has reported so.
    received: u8,
    reported: u8,
    /// Marks since the last ACK.
    pending: u8,
    /// The last packet had a mark.
    marks: bool,
    /// Somebody zeroes the field: it is not heeded.
    deaf: bool,
    /// The codepoint of our SYN or its answer, and that with which the peer's arrived.
    syn_sent: Ecn,
    syn_arrived: Ecn,
    /// The first ACK of ours tells `syn_arrived`.
    reflects: bool,
    /// Segments that an ACK delivers on average, in 1/64 (`pkts_acked_ewma`); 0 before the first.
    each: u64,
}

impl Feedback {
    pub(crate) fn new() -> Feedback {
        Feedback {
            mode: EcnFeedback::None,
            data: Ecn::NotEct,
            control: Ecn::NotEct,
            echo: false,
            marked: 0,
            ack_before: None,
            received: FIRST_COUNT,
            reported: FIRST_COUNT,
            pending: 0,
            marks: false,
            deaf: false,
            syn_sent: Ecn::NotEct,
            syn_arrived: Ecn::NotEct,
            reflects: false,
            each: 0,
        }
    }

    /// How many of `packets` newly delivered ones were marked, if the counter has moved by `moved`.
    fn likely_marks(&mut self, packets: u64, moved: u8) -> u64 {
        self.each = match (packets, self.each) {
            (0, each) => each,
            (_, 0) => packets << DELIVERED_SHIFT,
            (_, each) => ((each << DELIVERED_SHIFT) - each + (packets << DELIVERED_SHIFT)) >> DELIVERED_SHIFT,
        };
        if self.each > MOST_DELIVERED { u64::from(moved & 7) } else { safest_marks(packets, moved) }
    }
}

/// The ACE field that tells with which codepoint a SYN, or its answer, arrived (RFC 9768 tables 2 and 3).
fn reflection(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The codepoint that an ACE field of the handshake tells; `None` for those that tell nothing.
fn reflected(ace: u8) -> Option<Ecn> {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().find(|&codepoint| reflection(codepoint) == ace)
}

/// Whether the network may have turned one codepoint into the other (RFC 9768 section 3.2.2.3).
fn may_become(sent: Ecn, arrived: Ecn) -> bool {
    sent == arrived || (sent.is_capable() && sent != Ecn::Ce && arrived.is_capable())
}

/// How many of `packets` newly delivered ones were marked, if the counter has moved by `moved` modulo 8: the most that is
/// consistent with that, where it may have wrapped (RFC 9768 appendix A.2.1).
pub(crate) fn safest_marks(packets: u64, moved: u8) -> u64 {
    let moved = u64::from(moved & 7);
    if packets < 8 { moved } else { packets - ((packets - moved) & 7) }
}

impl Endpoint {
    /// The best feedback that is agreed to.
    fn accepted_ecn(&self) -> EcnFeedback {
        self.config.ecn.max(self.config.transfer.accept_ecn)
    }

    /// A SYN without ACK arrived with codepoint `ecn`: what it asks for, and what it gets (RFC 3168 section 6.1.1, RFC 9768
    /// table 2).
    #[cold]
    pub(crate) fn agree_to_ecn(&mut self, syn: &Segment, ecn: Ecn) {
        let mode = match (self.accepted_ecn(), syn.flags.ace()) {
            (EcnFeedback::None, _) | (_, ace::NONE) => EcnFeedback::None,
            (EcnFeedback::Accurate, ace::CLASSIC_SYN) => EcnFeedback::Classic,
            // Whatever else is asked for (RFC 9768 section 3.1.3).
            (EcnFeedback::Accurate, _) => EcnFeedback::Accurate,
            (accepted, ace::CLASSIC_SYN | ace::ACCURATE_SYN) => accepted,
            _ => EcnFeedback::None,
        };
        let on = mode != EcnFeedback::None;
        self.feedback.mode = mode;
        self.feedback.syn_arrived = ecn;
        self.set_ecn(on, on);
    }

    /// Another SYN before the connection is open.
    #[cold]
    pub(crate) fn agree_to_ecn_again(&mut self, syn: &Segment, ecn: Ecn) {
        if self.feedback.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: the mode stays, but a SYN that does not ask for it may have been needed to pass.
            self.feedback.syn_arrived = ecn;
            self.set_ecn(self.ecn_enabled && syn.flags.ace() != ace::NONE, true);
        } else if !syn.flags.contains(Flags::ECE | Flags::CWR) {
            // RFC 3168 section 6.1.1: no ECN after a SYN that does not ask for it.
            self.feedback.mode = EcnFeedback::None;
            self.set_ecn(false, false);
        }
    }

    /// The answer to our SYN arrived with codepoint `ecn`.
    #[cold]
    pub(crate) fn agreed_on_ecn(&mut self, answer: &Segment, ecn: Ecn) {
        let field = answer.flags.ace();
        let mode = match self.config.ecn {
            EcnFeedback::None => EcnFeedback::None,
            EcnFeedback::Accurate => match field {
                ace::NONE | ace::ACCURATE_SYN => EcnFeedback::None,
                ace::CLASSIC_ANSWER => EcnFeedback::Classic,
                _ => EcnFeedback::Accurate,
            },
            // ECE alone (RFC 3168 section 6.1.1); a reflected ECE+CWR is not an agreement.
            classic if matches!(field, ace::CLASSIC_ANSWER | ace::RESERVED_ANSWER) => classic,
            _ => EcnFeedback::None,
        };
        self.feedback.mode = mode;
        let on = mode != EcnFeedback::None;
        // None is sent if a SYN did not ask for it.
        let mut usable = on && self.asks_for_ecn();
        if mode == EcnFeedback::Accurate {
            usable &= may_become(self.feedback.syn_sent, reflected(field).unwrap_or(self.feedback.syn_sent));
            (self.feedback.syn_arrived, self.feedback.reflects) = (ecn, true);
            // The last ACK of the handshake has no data (RFC 9768 section 3.2.2.1).
            self.send.bare_ack = true;
            self.feedback.received += u8::from(ecn == Ecn::Ce);
        }
        self.set_ecn(usable, on);
    }

    /// The first segment after the SYN, from the one who opened the connection (RFC 9768 table 4).
    #[cold]
    pub(crate) fn check_first_ace(&mut self, segment: &Segment) {
        let bare = segment.sequence_len() == 0 && segment.sack.is_empty();
        if self.feedback.mode != EcnFeedback::Accurate || !bare {
            return;
        }
        let field = segment.flags.ace();
        let arrived = match reflected(field) {
            Some(arrived) => arrived,
            None if field == ace::NONE => {
                // RFC 9768 section 3.2.2.1: somebody zeroes the field. No ECT and no reaction, but feedback goes on.
                self.feedback.deaf = true;
                self.set_ecn(false, self.ecn_echoes);
                return;
            }
            None => self.feedback.syn_sent,
        };
        if may_become(self.feedback.syn_sent, arrived) {
            self.feedback.reported += u8::from(arrived == Ecn::Ce);
        } else {
            self.set_ecn(false, self.ecn_echoes);
        }
    }

    /// Whether packets of ours may be ECN-capable, and whether the peer's may.
    fn set_ecn(&mut self, enabled: bool, echoes: bool) {
        (self.ecn_enabled, self.ecn_echoes) = (enabled, echoes);
        self.choose_codepoints();
    }

    /// The codepoints that the controller wants, as far as they are agreed on.
    #[cold]
    pub(crate) fn choose_codepoints(&mut self) {
        let accurate = self.feedback.mode == EcnFeedback::Accurate;
        (self.feedback.data, self.feedback.control) = match self.observer.needs.ecn {
            _ if !self.ecn_enabled => (Ecn::NotEct, Ecn::NotEct),
            EcnUse::All => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Scalable if accurate => (Ecn::Ect1, Ecn::Ect1),
            EcnUse::Data if accurate && self.config.transfer.capable_control => (Ecn::Ect0, Ecn::Ect0),
            EcnUse::Data | EcnUse::Scalable => (Ecn::Ect0, Ecn::NotEct),
        };
    }

    /// The feedback for the controller to know.
    pub(crate) fn usable_feedback(&self) -> EcnFeedback {
        if self.ecn_enabled { self.feedback.mode } else { EcnFeedback::None }
    }

    /// Whether a SYN sent now asks for ECN: once it has been sent again a middlebox may have dropped it for the flags (RFC
    /// 3168 section 6.1.1.1). Accurate ECN is asked for once more (RFC 9768 section 3.1.4.1).
    fn asks_for_ecn(&self) -> bool {
        let retries = match self.config.ecn {
            EcnFeedback::None => return false,
            EcnFeedback::Accurate => self.config.states.ecn_syn_retries.max(1),
            EcnFeedback::Classic | EcnFeedback::Dctcp => self.config.states.ecn_syn_retries,
        };
        self.rtt.timeouts() <= retries
    }

    /// The flags and the codepoint of our SYN, or of its answer in SYN-RECEIVED.
    #[cold]
    pub(crate) fn syn_ecn(&mut self) -> (Flags, Ecn) {
        let first = self.rtt.timeouts() == 0;
        // RFC 9768 section 3.2.3.2.2: an answer that has been lost twice may have been dropped for its flags. The mode stays, but
        // nothing is ECT once an answer without them was sent (section 3.1.5).
        let plain = self.feedback.mode == EcnFeedback::Accurate && self.rtt.timeouts() > 1;
        if plain && self.state == State::SynReceived {
            self.set_ecn(false, self.ecn_echoes);
        }
        let (field, codepoint) = if self.state == State::SynReceived {
            let field = match self.feedback.mode {
                EcnFeedback::None => ace::NONE,
                EcnFeedback::Accurate if plain => ace::NONE,
                EcnFeedback::Accurate => reflection(self.feedback.syn_arrived),
                EcnFeedback::Classic | EcnFeedback::Dctcp => ace::CLASSIC_ANSWER,
            };
            let wanted = self.observer.needs.ecn != EcnUse::Data;
            (field, if wanted { self.feedback.control } else { Ecn::NotEct })
        } else {
            let asks = self.asks_for_ecn();
            match (self.config.ecn, self.observer.needs.ecn) {
                _ if !asks => (ace::NONE, Ecn::NotEct),
                (EcnFeedback::Accurate, EcnUse::Scalable) => (ace::ACCURATE_SYN, Ecn::Ect1),
                (EcnFeedback::Accurate, EcnUse::All) => (ace::ACCURATE_SYN, Ecn::Ect0),
                (EcnFeedback::Accurate, EcnUse::Data) => (ace::ACCURATE_SYN, Ecn::NotEct),
                (_, EcnUse::All) => (ace::CLASSIC_SYN, Ecn::Ect0),
                _ => (ace::CLASSIC_SYN, Ecn::NotEct),
            }
        };
        let codepoint = if first { codepoint } else { Ecn::NotEct };
        self.feedback.syn_sent = codepoint;
        (Flags::from_ace(field), codepoint)
    }

    /// ECE, or the ACE counter, of a segment that acknowledges.
    #[inline]
    pub(crate) fn echo_flags(&mut self) -> Flags {
        if self.feedback.mode == EcnFeedback::Accurate {
            self.feedback.pending = 0;
            Flags::from_ace(self.feedback.received)
        } else if self.echo_ce {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }

    /// The first ACK of who has opened the connection tells how the answer to the SYN arrived (RFC 9768 section 3.2.2.1).
    #[inline]
    pub(crate) fn reflect_answer(&mut self, out: &mut Segment) {
        if std::mem::take(&mut self.feedback.reflects) && out.payload.len == 0 && out.sack.is_empty() {
            let field = Flags::from_ace(ace::ACCURATE_SYN).bits();
            let others = Flags::from_bits(out.flags.bits() & !field);
            out.flags = others | Flags::from_ace(reflection(self.feedback.syn_arrived));
        }
    }

    /// An acceptable segment of an open connection arrived with codepoint `ecn`; Accurate ECN counts it.
    #[inline]
    pub(crate) fn count_mark(&mut self, segment: &Segment, ecn: Ecn) {
        if self.feedback.mode == EcnFeedback::Accurate {
            self.count_accurately(segment.payload.len > 0, ecn == Ecn::Ce);
        }
    }

    fn count_accurately(&mut self, data: bool, marked: bool) {
        let feedback = &mut self.feedback;
        if marked {
            feedback.received = (feedback.received + 1) & 7;
            feedback.pending = feedback.pending.saturating_add(1);
        }
        let most = if data || self.receiver.owes_ack() { MARKS_WITH_DATA } else { MARKS_WITHOUT };
        // A mark on data after a packet of any kind that had none.
        let began = !std::mem::replace(&mut feedback.marks, marked) && marked && data;
        self.receiver.ack_now |= began || feedback.pending >= most;
    }

    /// Data arrived with codepoint `ecn`, and is about to be taken in; classic feedback and DCTCP's.
    #[inline]
    pub(crate) fn note_mark(&mut self, now: Time, segment: &Segment, ecn: Ecn) {
        let marked = ecn == Ecn::Ce;
        match self.feedback.mode {
            EcnFeedback::Dctcp => {
                if marked != self.echo_ce {
                    self.change_echo(now, marked);
                }
            }
            EcnFeedback::Accurate => {}
            EcnFeedback::None | EcnFeedback::Classic => {
                // RFC 3168 section 6.1.3: the echo goes on until the sender confirms.
                if segment.flags.contains(Flags::CWR) {
                    self.echo_ce = false;
                    self.receiver.window_was_reduced();
                }
                if marked {
                    if !self.echo_ce {
                        self.receiver.congestion_began();
                    }
                    self.echo_ce = true;
                }
            }
        }
    }

    /// DCTCP.CE changes (RFC 8257 section 3.2): what is still unacknowledged gets an ACK with the old value, the data in hand
    /// one with the new value.
    #[inline(never)]
    fn change_echo(&mut self, now: Time, marked: bool) {
        if self.receiver.owes_ack() {
            let mut ack = Segment::default();
            self.write_ack(now, &mut ack);
            self.feedback.ack_before = Some(ack);
        }
        self.echo_ce = marked;
        self.receiver.ack_now = true;
    }

    /// Whether an ACK reports marks, as far as its flags tell.
    #[inline]
    pub(crate) fn hears_echo(&self, segment: &Segment) -> bool {
        if self.feedback.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: also of packets that were not ECT.
            !self.feedback.deaf && segment.flags.ace() != self.feedback.reported
        } else {
            self.ecn_enabled && segment.flags.contains(Flags::ECE)
        }
    }

    /// What an ACK tells of marks, once it is known what it delivers: how many segments were marked. `echo` is what
    /// [`Endpoint::hears_echo`] says, `outstanding` if anything was in flight.
    #[inline]
    pub(crate) fn take_marks(&mut self, segment: &Segment, echo: bool, progress: &Progress, outstanding: bool) -> u64 {
        if self.feedback.mode == EcnFeedback::Accurate {
            return self.take_counted(segment, progress, outstanding);
        }
        self.feedback.echo = echo;
        self.feedback.marked = if echo { progress.delivered } else { 0 };
        if echo { progress.delivered_segments } else { 0 }
    }

    #[inline(never)]
    fn take_counted(&mut self, segment: &Segment, progress: &Progress, outstanding: bool) -> u64 {
        (self.feedback.echo, self.feedback.marked) = (false, 0);
        // An ACK that tells nothing new may have been overtaken by others.
        let newer = segment.timestamps.is_some_and(|stamps| {
            self.timestamps_enabled && stamps.value.wrapping_sub(self.ts_recent).cast_signed() > 0
        });
        if self.feedback.deaf || !(newer || progress.delivered > 0 || progress.acked > 0) {
            return 0;
        }
        // Without SACK, duplicate ACKs have told of some before.
        let packets = progress.delivered_segments.saturating_sub(self.recovery.reno_sacked);
        let field = segment.flags.ace();
        let marks = self.feedback.likely_marks(packets, field.wrapping_sub(self.feedback.reported));
        self.feedback.reported = field;
        // Marks on ACKs are counted as well, and say nothing of data.
        self.feedback.echo = marks > 0 && outstanding;
        self.feedback.marked = (marks * u64::from(self.mss)).min(progress.delivered);
        marks
    }
}
