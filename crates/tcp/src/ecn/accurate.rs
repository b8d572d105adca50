//! Accurate ECN's packet counter: the handshake's fields, the marks that are counted, and how many
//! an ACK reports.

use ackclock_cc::EcnFeedback;
use ackclock_packet::{Flags, Segment};
use ackclock_units::Ecn;

use super::bytes::BytesTold;
use super::{AccEcnRule, EcnState, ace};
use crate::Config;
use crate::loss::scoreboard::Progress;

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

/// Returns `true` if Linux's rules apply.
pub(super) fn is_linux(config: &Config) -> bool {
    config.transfer.acc_ecn.rule == AccEcnRule::Linux
}

/// Returns `true` if all packets of a connection with Accurate ECN are ECN-capable.
pub(super) fn has_capable_control(config: &Config) -> bool {
    config.transfer.capable_control || is_linux(config)
}

/// The delivery that an ACK reports, for the count of marks.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Delivered {
    /// The timestamp is newer than any before.
    pub(crate) newer: bool,
    /// Something was in flight.
    pub(crate) outstanding: bool,
    /// Segments newly known to have arrived.
    pub(crate) packets: u64,
    /// No retransmission blurs the counts.
    pub(crate) is_clear: bool,
    /// Bytes of a full segment, and bytes sent so far.
    pub(crate) mss: u64,
    pub(crate) sent: u64,
}

impl EcnState {
    /// Returns `true` if our SYN or its answer may have arrived so, or is not checked (Linux
    /// `tcp_ecn_fallback` 0).
    pub(super) fn may_have_become(&self, config: &Config, arrived: Ecn) -> bool {
        config.states.ecn_syn_retries == u32::MAX || may_become(self.agreed.syn_sent, arrived)
    }

    /// The first options of the peer, which are answered with `due` of ours.
    #[cold]
    pub(super) fn look_at_option(&mut self, segment: &Segment, due: u8) {
        if let Some(counters) = &mut self.bytes
            && counters.look_at(segment.acc_ecn)
        {
            counters.demand(due);
        }
    }

    /// The first segment after the SYN, from the one who opened the connection (RFC 9768 table 4).
    /// Returns `true` if it reports a mark.
    #[cold]
    pub(crate) fn check_first_ace(&mut self, config: &Config, segment: &Segment) -> bool {
        if self.agreed.mode != EcnFeedback::Accurate {
            return false;
        }
        self.look_at_option(segment, 0);
        let bare = segment.sequence_len() == 0 && segment.sack.is_empty();
        let linux = is_linux(config);
        let field = segment.flags.ace();
        let arrived = match reflected(field) {
            None if field == ace::NONE && (bare || linux) => {
                // RFC 9768 section 3.2.2.1: somebody zeroes the field. No ECT and no reaction, but
                // feedback goes on.
                self.heard.deaf = !linux;
                self.allow(config, false, self.agreed.echoes);
                return false;
            }
            Some(arrived) if bare => arrived,
            _ => return false,
        };
        if !self.may_have_become(config, arrived) {
            self.allow(config, false, self.agreed.echoes);
        } else if arrived == Ecn::Ce {
            self.heard.reported = (self.heard.reported + 1) & 7;
            return true;
        }
        false
    }

    /// The first ACK of the end that opened the connection reports how the answer to the SYN
    /// arrived (RFC 9768 section 3.2.2.1).
    #[inline]
    pub(crate) fn reflect_answer(&mut self, out: &mut Segment) {
        if std::mem::take(&mut self.echo.reflects) && out.payload.len == 0 && out.sack.is_empty() {
            self.reflect(out);
        }
    }

    /// Reports in a challenge how the answer to our SYN arrived.
    #[cold]
    pub(crate) fn reflect_in_challenge(&mut self, out: &mut Segment) {
        if std::mem::take(&mut self.echo.challenge_reflects) {
            self.reflect(out);
        }
    }

    fn reflect(&self, out: &mut Segment) {
        let field = Flags::from_ace(ace::ACCURATE_SYN).bits();
        let others = Flags::from_bits(out.flags.bits() & !field);
        out.flags = others | Flags::from_ace(reflection(self.agreed.syn_arrived));
    }

    #[cold]
    pub(super) fn hears_bytes(&self, segment: &Segment) -> bool {
        let counters = self.bytes.as_deref();
        counters.zip(segment.acc_ecn.as_ref()).is_some_and(|(counters, option)| counters.is_news(option))
    }

    #[inline(never)]
    pub(crate) fn take_counted(&mut self, segment: &Segment, progress: &Progress, delivered: &Delivered) -> u64 {
        (self.heard.marks, self.heard.bytes) = (false, 0);
        // An ACK that reports nothing new may have been overtaken by others.
        if self.heard.deaf || !(delivered.newer || progress.delivered > 0 || progress.acked > 0) {
            return 0;
        }
        let bytes = self.take_bytes(segment, progress, delivered.sent);
        self.heard.average(delivered.packets);
        let field = segment.flags.ace();
        let moved = field.wrapping_sub(self.heard.reported) & 7;
        let marks = self.likely_marks(moved, bytes, progress, delivered);
        self.heard.reported = field;
        // Marks on ACKs are counted as well, and say nothing of data.
        self.heard.marks = marks > 0 && delivered.outstanding;
        let marked = bytes.marked.map_or(marks * delivered.mss, u64::from);
        self.heard.bytes = if marks > 0 { marked.min(progress.delivered) } else { 0 };
        marks
    }

    /// Number of marked packets among those newly delivered, if the counter has moved by `moved`
    /// modulo 8 (RFC 9768 appendix A.2; Linux `__tcp_accecn_process`).
    fn likely_marks(&self, moved: u8, bytes: BytesTold, progress: &Progress, delivered: &Delivered) -> u64 {
        let &Delivered { packets, mss, is_clear, .. } = delivered;
        let (least, most) = (u64::from(moved), safest_marks(packets, moved));
        if least == most {
            return least;
        }
        let Some(marked) = bytes.marked.filter(|_| bytes.valid).map(u64::from) else {
            return if self.heard.delivers_many() { least } else { most };
        };
        if marked == 0 {
            return least;
        }
        // Where it may have wrapped more than once, what is marked of the bytes tells how often.
        if packets >= 16 && is_clear {
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
        if self.agreed.mode == EcnFeedback::Accurate {
            self.agreed.syn_arrived = ecn;
            self.echo.challenge_reflects = is_challenged;
            self.look_at_option(segment, 1);
        }
    }

    pub(super) fn count_accurately(&mut self, config: &Config, payload: u32, ecn: Ecn, owed: bool) -> bool {
        let marked = ecn == Ecn::Ce;
        let data = payload > 0;
        let linux = is_linux(config);
        let echo = &mut self.echo;
        let before = std::mem::replace(&mut echo.last, ecn);
        if marked {
            echo.received = echo.received.wrapping_add(1);
            echo.pending = echo.pending.saturating_add(1);
        }
        if let Some(counters) = &mut self.bytes {
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
