//! Explicit congestion notification: what the handshake agrees on, how marks are reported, what the
//! reports say.
//!
//! There are three ways to report. Classic feedback (RFC 3168) sets ECE from a mark until the
//! sender confirms with CWR. DCTCP's (RFC 8257 section 3.2) uses the same handshake, and ECE says
//! exactly which data was marked. Accurate ECN (RFC 9768) counts the packets that came with a mark
//! in three header bits (ACE).
//!
//! # Source
//! RFC 3168 section 6.1, RFC 8257 sections 3.2 and 3.5, RFC 9768 section 3; Linux
//! `include/net/tcp_ecn.h`, `net/ipv4/tcp_input.c` (`tcp_accecn_process`, `tcp_validate_incoming`),
//! `tcp_output.c` (`tcp_ecn_send`), `tcp_minisocks.c` (`tcp_check_req`, `tcp_ecn_openreq_child`)
//! and `tcp_dctcp.h` of 6.18 to 7.0. Where these differ from the RFC, [`AccEcnRule`] chooses;
//! `ecn/option.rs` and `ecn/bytes.rs` are the AccECN option.
//!
//! # Departures
//! - Without the option how many packets an ACK reports as marked is known modulo 8, and the safest
//!   case that the count of delivered segments allows is taken (appendix A.2), unless ACKs mostly
//!   cover many segments, as in Linux. A segment that is reported marked counts as a full one then.
//! - A mark on the SYN or on its answer is reported, but the initial window does not become smaller
//!   for it (RFC 9768 section 3.2.2.2 asks for a reaction). Only controllers that want all packets
//!   ECT ever send such a SYN.
//! - A peer that asks for, or agrees to, both classic and Accurate ECN in one handshake is not
//!   reset (section 3.1.5).
//! - Marks that do not cease are not treated as mangling (section 3.2.2.3), and the counter may be
//!   zero after the handshake (section 3.2.2.4): both tests are optional.
//! - By the rules of the RFC ACKs and retransmissions are not ECT (RFC 3168 sections 6.1.4 and
//!   6.1.5) unless the controller asks for it; by those of Linux, and where `capable_control` is
//!   set, all packets of a connection with Accurate ECN are (ECN++, an experiment of its own).
//! - In TIME-WAIT Linux sends no counter; here it does unless the application has closed the socket
//!   altogether.

mod accurate;
mod bytes;
mod negotiation;
mod option;
mod state;

pub(crate) use accurate::Delivered;
#[cfg(test)]
pub(crate) use accurate::safest_marks;
pub(crate) use state::EcnState;

use crate::AccEcnRule;

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
