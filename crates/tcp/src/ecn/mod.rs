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

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

mod accurate;
mod marks;
mod negotiation;
mod option;
mod rules;

#[cfg(test)]
pub(crate) use accurate::safest_marks;
pub use rules::{AccEcnOption, AccEcnRule, AccEcnRules};

use accurate::FIRST_COUNT;
use option::ByteCounters;

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

/// ECN on one connection.
#[derive(Debug)]
pub(crate) struct EcnState {
    agreed: Agreed,
    echo: Echo,
    heard: Heard,
    /// Bytes by codepoint in both directions, if the option is read.
    bytes: Option<Box<ByteCounters>>,
}

/// What the handshake agreed on.
#[derive(Debug)]
struct Agreed {
    mode: EcnFeedback,
    /// Our packets may be ECN-capable.
    sends: bool,
    /// The peer may send ECN-capable packets; without `sends` if a SYN of ours did not ask for ECN (RFC 3168 section 6.1.1).
    echoes: bool,
    /// The codepoints of new data and of everything else.
    data: Ecn,
    control: Ecn,
    /// The codepoint of our SYN or its answer, and that with which the peer's arrived.
    syn_sent: Ecn,
    syn_arrived: Ecn,
}

/// The receiver's side: what has arrived, and what is reported of it.
#[derive(Debug)]
struct Echo {
    /// The ECN echo is on (RFC 3168 section 6.1.3), or DCTCP.CE (RFC 8257 section 3.2).
    on: bool,
    /// r.cep: packets that came with a mark.
    received: u32,
    /// Marks since the last ACK.
    pending: u8,
    /// The codepoint of the last packet that arrived.
    last: Ecn,
    /// The next ACK that is owed is sent at once (Linux `ICSK_ACK_NOW`).
    hurries: bool,
    /// The first ACK of ours tells how the answer to our SYN arrived.
    reflects: bool,
    /// So does the challenge that is due, after that answer has come again.
    challenge_reflects: bool,
}

/// The sender's side: what the peer has reported, and what it is told.
#[derive(Debug)]
struct Heard {
    /// The ACK in hand reports marks.
    marks: bool,
    /// The bytes that it reports as marked.
    bytes: u64,
    /// s.cep modulo 8: packets of ours that the peer has reported as marked.
    reported: u8,
    /// Somebody zeroes the ACE field: it is not heeded.
    deaf: bool,
    /// Segments that an ACK delivers on average, in 1/64 (`pkts_acked_ewma`); 0 before the first.
    each: u64,
    /// The next new data segment carries CWR.
    cwr: bool,
}

impl EcnState {
    pub(crate) fn new() -> EcnState {
        EcnState {
            agreed: Agreed {
                mode: EcnFeedback::None,
                sends: false,
                echoes: false,
                data: Ecn::NotEct,
                control: Ecn::NotEct,
                syn_sent: Ecn::NotEct,
                syn_arrived: Ecn::NotEct,
            },
            echo: Echo {
                on: false,
                received: FIRST_COUNT,
                pending: 0,
                last: Ecn::NotEct,
                hurries: false,
                reflects: false,
                challenge_reflects: false,
            },
            heard: Heard { marks: false, bytes: 0, reported: FIRST_COUNT as u8, deaf: false, each: 0, cwr: false },
            bytes: None,
        }
    }

    // What was agreed on.

    /// The feedback that was agreed on, whether our packets are ECN-capable or not.
    pub(crate) fn mode(&self) -> EcnFeedback {
        self.agreed.mode
    }

    /// Whether packets of ours may be ECN-capable.
    #[inline]
    pub(crate) fn is_usable(&self) -> bool {
        self.agreed.sends
    }

    /// The feedback for the controller to know.
    pub(crate) fn usable_feedback(&self) -> EcnFeedback {
        if self.agreed.sends { self.agreed.mode } else { EcnFeedback::None }
    }

    /// Whether the peer's packets may be ECN-capable.
    #[inline]
    pub(crate) fn may_arrive_marked(&self) -> bool {
        self.agreed.echoes
    }

    /// The codepoint of everything but new data.
    #[inline]
    pub(crate) fn control(&self) -> Ecn {
        self.agreed.control
    }

    /// The codepoint of a segment with new data, which tells the peer of a reduction of the window (RFC 3168 section 6.1.2).
    #[inline]
    pub(crate) fn mark_data(&mut self, out: &mut Segment) -> Ecn {
        if self.agreed.sends && std::mem::take(&mut self.heard.cwr) && self.agreed.mode != EcnFeedback::Accurate {
            out.flags |= Flags::CWR;
        }
        self.agreed.data
    }

    // What is reported to the peer.

    /// Whether the ECN echo is on.
    pub(crate) fn is_echoing(&self) -> bool {
        self.echo.on
    }

    /// Packets that came with a mark.
    pub(crate) fn marks_received(&self) -> u32 {
        self.echo.received.wrapping_sub(FIRST_COUNT)
    }

    // What the peer has reported.

    /// Whether the ACK in hand reports marks.
    #[inline]
    pub(crate) fn hears_marks(&self) -> bool {
        self.heard.marks
    }

    /// The bytes that the ACK in hand reports as marked.
    #[inline]
    pub(crate) fn marked_bytes(&self) -> u64 {
        self.heard.bytes
    }

    /// The window was reduced: the peer is told, if it has to be.
    pub(crate) fn window_reduced(&mut self) {
        self.heard.cwr = self.agreed.sends;
    }

    /// The reduction was taken back before the peer was told.
    pub(crate) fn reduction_undone(&mut self) {
        self.heard.cwr = false;
    }

    /// Whether the next new data segment carries CWR.
    pub(crate) fn owes_cwr(&self) -> bool {
        self.heard.cwr
    }

    // The AccECN option.

    /// Payload that arrived, and payload reported: of ECT(1), ECT(0) and CE.
    pub(crate) fn byte_totals(&self) -> ([u32; 3], [u32; 3]) {
        self.bytes.as_deref().map_or_else(Default::default, ByteCounters::totals)
    }

    /// `tcpi_accecn_opt_seen`, and whether the peer's option is ignored and ours stopped.
    pub(crate) fn option_seen(&self) -> (u8, bool, bool) {
        self.bytes.as_deref().map_or((0, false, false), ByteCounters::seen)
    }
}
