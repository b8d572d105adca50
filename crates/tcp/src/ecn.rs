//! Explicit congestion notification: what the handshake agrees on, how marks are reported, what the reports say.
//!
//! There are three ways to report. Classic feedback (RFC 3168) sets ECE from a mark until the sender confirms with CWR. DCTCP's
//! (RFC 8257 section 3.2) uses the same handshake, and ECE says exactly which data was marked. Accurate ECN (RFC 9768) counts
//! the packets that came with a mark in three header bits (ACE).
//!
//! # Source
//! RFC 3168 section 6.1, RFC 8257 sections 3.2 and 3.5, RFC 9768 section 3; Linux `include/net/tcp_ecn.h`, `net/ipv4/tcp_input.c`
//! (`tcp_accecn_process`, `tcp_validate_incoming`), `tcp_output.c` (`tcp_ecn_send`), `tcp_minisocks.c` (`tcp_check_req`,
//! `tcp_ecn_openreq_child`) and `tcp_dctcp.h` of 6.18 to 7.0. Where these differ from the RFC, [`AccEcnRule`] chooses;
//! `ecn/option.rs` is the AccECN option.
//!
//! # Departures
//! - Without the option how many packets an ACK reports as marked is known modulo 8, and the safest case that the count of
//!   delivered segments allows is taken (appendix A.2), unless ACKs mostly cover many segments, as in Linux. A segment that is
//!   reported marked counts as a full one then.
//! - A mark on the SYN or on its answer is reported, but the initial window does not become smaller for it (RFC 9768 section
//!   3.2.2.2 asks for a reaction). Only controllers that want all packets ECT ever send such a SYN.
//! - A peer that asks for, or agrees to, both classic and Accurate ECN in one handshake is not reset (section 3.1.5).
//! - Marks that do not cease are not taken for mangling (section 3.2.2.3), and the counter may be zero after the handshake
//!   (section 3.2.2.4): both tests are optional.
//! - By the rules of the RFC ACKs and retransmissions are not ECT (RFC 3168 sections 6.1.4 and 6.1.5) unless the controller
//!   asks for it; by those of Linux, and where `capable_control` is set, all packets of a connection with Accurate ECN are (ECN++,
//!   an experiment of its own).
//! - In TIME-WAIT Linux sends no counter; here it does unless the application has closed the socket altogether.

use ackclock_cc::{EcnFeedback, EcnUse};
use ackclock_packet::{Flags, Segment};
use ackclock_units::{Ecn, Time};

use crate::loss::scoreboard::Progress;
use crate::{Endpoint, State};

mod accurate;
mod option;
mod rules;

#[cfg(test)]
pub(crate) use accurate::safest_marks;
use accurate::{FIRST_COUNT, reflected, reflection};
pub(crate) use option::ByteCounters;
pub use rules::{AccEcnOption, AccEcnRule, AccEcnRules};

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
    /// r.cep and s.cep, this modulo 8: packets that came with a mark, and of ours that the peer has reported so.
    received: u32,
    reported: u8,
    /// Marks since the last ACK.
    pending: u8,
    /// The codepoint of the last packet that arrived.
    last: Ecn,
    /// The next ACK that is owed is sent at once (Linux `ICSK_ACK_NOW`).
    hurries: bool,
    /// Somebody zeroes the field: it is not heeded.
    deaf: bool,
    /// The codepoint of our SYN or its answer, and that with which the peer's arrived.
    syn_sent: Ecn,
    syn_arrived: Ecn,
    /// The first ACK of ours tells `syn_arrived`.
    reflects: bool,
    /// So does the challenge that is due, after the peer's answer has come again.
    challenge_reflects: bool,
    /// Segments that an ACK delivers on average, in 1/64 (`pkts_acked_ewma`); 0 before the first.
    each: u64,
    /// Bytes by codepoint, if the option is read.
    pub(crate) bytes: Option<Box<ByteCounters>>,
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
            reported: FIRST_COUNT as u8,
            pending: 0,
            last: Ecn::NotEct,
            hurries: false,
            deaf: false,
            syn_sent: Ecn::NotEct,
            syn_arrived: Ecn::NotEct,
            reflects: false,
            challenge_reflects: false,
            each: 0,
            bytes: None,
        }
    }
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
        if mode == EcnFeedback::Accurate {
            self.feedback.last = ecn;
            self.begin_counting(1);
        }
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
            let linux = self.acc_ecn_rule() == AccEcnRule::Linux;
            let valid = self.may_have_become(reflected(field).unwrap_or(self.feedback.syn_sent));
            // tcp_ecn_rcv_synack looks at what became of the SYN only where its answer was marked.
            usable = (usable || linux) && (valid || linux && ecn != Ecn::Ce);
            (self.feedback.syn_arrived, self.feedback.reflects) = (ecn, true);
            // The last ACK of the handshake has no data (RFC 9768 section 3.2.2.1).
            self.handshake.acknowledge_alone(true);
            self.feedback.received += u32::from(ecn == Ecn::Ce && (valid || !linux));
            // The SYN counts as delivered.
            self.feedback.average(1);
            self.begin_counting(0);
            self.look_at_option(answer, 2);
        }
        self.set_ecn(usable, on);
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
            EcnUse::Data if accurate && self.has_capable_control() => (Ecn::Ect0, Ecn::Ect0),
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
            (self.feedback.pending, self.feedback.hurries) = (0, false);
            if self.answers_for_orphan() { Flags::NONE } else { Flags::from_ace((self.feedback.received & 7) as u8) }
        } else if self.echo_ce {
            Flags::ECE
        } else {
            Flags::NONE
        }
    }

    /// An acceptable segment of an open connection arrived with codepoint `ecn`; Accurate ECN counts it.
    #[inline]
    pub(crate) fn count_mark(&mut self, segment: &Segment, ecn: Ecn) {
        if self.feedback.mode == EcnFeedback::Accurate {
            self.count_accurately(segment.payload.len, ecn);
        }
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
        self.receiver.acknowledge_now();
    }

    /// Whether an ACK reports marks, as far as its flags tell.
    #[inline]
    pub(crate) fn hears_echo(&self, segment: &Segment) -> bool {
        if self.feedback.mode == EcnFeedback::Accurate {
            // RFC 9768 section 3.1.5: also of packets that were not ECT.
            let counted = !self.feedback.deaf && segment.flags.ace() != self.feedback.reported;
            counted || segment.acc_ecn.is_some() && self.hears_bytes(segment)
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
}
