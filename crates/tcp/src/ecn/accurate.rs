//! Accurate ECN's packet counter: the handshake's fields, the marks that are counted, and how many
//! an ACK reports.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use super::bytes::BytesTold;
use super::{AccEcnRule, ace};
use crate::CaState;
use crate::loss::scoreboard::Progress;
use crate::send::Sender;

/// Marks since the last ACK after which the next is sent at once: while data waits for an ACK, and
/// while none does (RFC 9768 section 3.2.2.5.1).
const MARKS_WITH_DATA: u8 = 2;
const MARKS_WITHOUT: u8 = 3;
/// Linux's threshold (`TCP_ACCECN_ACE_MAX_DELTA`).
const MARKS_LINUX: u8 = 6;

/// The ACE field that reports with which codepoint a SYN, or its answer, arrived (RFC 9768 tables 2
/// and 3).
pub(super) fn reflection(arrived: Ecn) -> u8 {
    match arrived {
        Ecn::NotEct => 0b010,
        Ecn::Ect1 => 0b011,
        Ecn::Ect0 => 0b100,
        Ecn::Ce => 0b110,
    }
}

/// The codepoint that an ACE field of the handshake reports; `None` for those that report none.
pub(super) fn reflected(ace: u8) -> Option<Ecn> {
    [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce].into_iter().find(|&codepoint| reflection(codepoint) == ace)
}

/// Returns `true` if the network may have turned one codepoint into the other (RFC 9768 section
/// 3.2.2.3).
fn may_become(sent: Ecn, arrived: Ecn) -> bool {
    sent == arrived || (sent.is_capable() && sent != Ecn::Ce && arrived.is_capable())
}

/// Number of marked packets among `packets` newly delivered ones, if the counter has moved by
/// `moved` modulo 8: the most that is consistent with that, where it may have wrapped (RFC 9768
/// appendix A.2.1).
pub(crate) fn safest_marks(packets: u64, moved: u8) -> u64 {
    let moved = u64::from(moved & 7);
    if packets < 8 { moved } else { packets - ((packets - moved) & 7) }
}

impl Sender {
    pub(super) fn acc_ecn_rule(&self) -> AccEcnRule {
        self.config.transfer.acc_ecn.rule
    }

    /// Returns `true` if all packets of a connection with Accurate ECN are ECN-capable.
    pub(super) fn has_capable_control(&self) -> bool {
        self.config.transfer.capable_control || self.acc_ecn_rule() == AccEcnRule::Linux
    }

    /// Returns `true` if our SYN or its answer may have arrived so, or is not checked (Linux
    /// `tcp_ecn_fallback` 0).
    pub(super) fn may_have_become(&self, arrived: Ecn) -> bool {
        self.config.states.ecn_syn_retries == u32::MAX || may_become(self.ecn.agreed.syn_sent, arrived)
    }

    /// The first options of the peer, which are answered with `due` of ours.
    #[cold]
    pub(super) fn look_at_option(&mut self, segment: &Segment, due: u8) {
        if let Some(counters) = &mut self.ecn.bytes
            && counters.look_at(segment.acc_ecn)
        {
            counters.demand(due);
        }
    }

    /// The first segment after the SYN, from the one who opened the connection (RFC 9768 table 4).
    #[cold]
    pub(crate) fn check_first_ace(&mut self, segment: &Segment) {
        if self.ecn.agreed.mode != EcnFeedback::Accurate {
            return;
        }
        self.look_at_option(segment, 0);
        let bare = segment.sequence_len() == 0 && segment.sack.is_empty();
        let linux = self.acc_ecn_rule() == AccEcnRule::Linux;
        let field = segment.flags.ace();
        let arrived = match reflected(field) {
            None if field == ace::NONE && (bare || linux) => {
                // RFC 9768 section 3.2.2.1: somebody zeroes the field. No ECT and no reaction, but
                // feedback goes on.
                self.ecn.heard.deaf = !linux;
                self.set_ecn(false, self.ecn.agreed.echoes);
                return;
            }
            Some(arrived) if bare => arrived,
            _ => return,
        };
        if !self.may_have_become(arrived) {
            self.set_ecn(false, self.ecn.agreed.echoes);
        } else if arrived == Ecn::Ce {
            self.ecn.heard.reported = (self.ecn.heard.reported + 1) & 7;
            self.counters.delivered_ce += 1;
        }
    }

    /// The first ACK of the end that opened the connection reports how the answer to the SYN
    /// arrived (RFC 9768 section 3.2.2.1).
    #[inline]
    pub(crate) fn reflect_answer(&mut self, out: &mut Segment) {
        if std::mem::take(&mut self.ecn.echo.reflects) && out.payload.len == 0 && out.sack.is_empty() {
            self.reflect(out);
        }
    }

    /// Reports in a challenge how the answer to our SYN arrived.
    #[cold]
    pub(crate) fn reflect_in_challenge(&mut self, out: &mut Segment) {
        if std::mem::take(&mut self.ecn.echo.challenge_reflects) {
            self.reflect(out);
        }
    }

    fn reflect(&self, out: &mut Segment) {
        let field = Flags::from_ace(ace::ACCURATE_SYN).bits();
        let others = Flags::from_bits(out.flags.bits() & !field);
        out.flags = others | Flags::from_ace(reflection(self.ecn.agreed.syn_arrived));
    }

    #[cold]
    pub(super) fn hears_bytes(&self, segment: &Segment) -> bool {
        let counters = self.ecn.bytes.as_deref();
        counters.zip(segment.acc_ecn.as_ref()).is_some_and(|(counters, option)| counters.is_news(option))
    }

    #[inline(never)]
    pub(super) fn take_counted(&mut self, segment: &Segment, progress: &Progress, outstanding: bool) -> u64 {
        (self.ecn.heard.marks, self.ecn.heard.bytes) = (false, 0);
        // An ACK that reports nothing new may have been overtaken by others.
        let newer = self.negotiated.ahead_of_recent(segment).is_some_and(|ahead| ahead > 0);
        if self.ecn.heard.deaf || !(newer || progress.delivered > 0 || progress.acked > 0) {
            return 0;
        }
        let bytes = self.take_bytes(segment, progress);
        // Without SACK, duplicate ACKs have reported some before.
        let packets = progress.delivered_segments.saturating_sub(self.loss.recovery.emulated_sacks());
        self.ecn.heard.average(packets);
        let field = segment.flags.ace();
        let moved = field.wrapping_sub(self.ecn.heard.reported) & 7;
        let marks = self.likely_marks(packets, moved, bytes, progress);
        self.ecn.heard.reported = field;
        // Marks on ACKs are counted as well, and say nothing of data.
        self.ecn.heard.marks = marks > 0 && outstanding;
        let marked = bytes.marked.map_or(marks * u64::from(self.negotiated.mss()), u64::from);
        self.ecn.heard.bytes = if marks > 0 { marked.min(progress.delivered) } else { 0 };
        marks
    }

    /// Number of marked packets among `packets` newly delivered ones, if the counter has moved by
    /// `moved` modulo 8 (RFC 9768 appendix A.2; Linux `__tcp_accecn_process`).
    fn likely_marks(&self, packets: u64, moved: u8, bytes: BytesTold, progress: &Progress) -> u64 {
        let (least, most) = (u64::from(moved), safest_marks(packets, moved));
        if least == most {
            return least;
        }
        let Some(marked) = bytes.marked.filter(|_| bytes.valid).map(u64::from) else {
            return if self.ecn.heard.delivers_many() { least } else { most };
        };
        if marked == 0 {
            return least;
        }
        let mss = u64::from(self.negotiated.mss());
        // Where it may have wrapped more than once, what is marked of the bytes tells how often.
        if packets >= 16
            && (self.negotiated.sack() || matches!(self.loss.recovery.state(), CaState::Open | CaState::Cwr))
        {
            if progress.delivered <= marked {
                return most;
            }
            let estimate = (marked * packets).div_ceil(progress.delivered);
            return most.min(least + (estimate & !7));
        }
        // A factor of two for segments that are not full.
        if marked > least * mss || marked >= most * mss / 2 { most } else { least }
    }

    /// The answer to our SYN has come again, to an open connection: the ACK reports how it arrived
    /// this time (RFC 9768 section 3.2.2.1; Linux `tcp_validate_incoming`).
    #[cold]
    pub(crate) fn reflect_again(&mut self, segment: &Segment, ecn: Ecn, is_challenged: bool) {
        if self.ecn.agreed.mode == EcnFeedback::Accurate {
            self.ecn.agreed.syn_arrived = ecn;
            self.ecn.echo.challenge_reflects = is_challenged;
            self.look_at_option(segment, 1);
        }
    }

    pub(super) fn count_accurately(&mut self, payload: u32, ecn: Ecn, owed: bool) -> bool {
        let marked = ecn == Ecn::Ce;
        let data = payload > 0;
        let linux = self.acc_ecn_rule() == AccEcnRule::Linux;
        let echo = &mut self.ecn.echo;
        let before = std::mem::replace(&mut echo.last, ecn);
        if marked {
            echo.received = echo.received.wrapping_add(1);
            echo.pending = echo.pending.saturating_add(1);
        }
        if let Some(counters) = &mut self.ecn.bytes {
            counters.count(ecn, payload, before != ecn);
        }
        if linux {
            // tcp_ecn_received_counters, tcp_accecn_process.
            echo.hurries |= before != ecn || echo.pending >= MARKS_LINUX;
            echo.hurries && (data || owed)
        } else {
            let most = if data || owed { MARKS_WITH_DATA } else { MARKS_WITHOUT };
            // A mark on data after a packet of any kind that had none.
            data && marked && before != Ecn::Ce || echo.pending >= most
        }
    }
}
