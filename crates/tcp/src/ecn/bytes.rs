//! Byte counters of Accurate ECN: what the AccECN option reports, when it is sent, and what it
//! tells the sender.
//!
//! # Source
//! RFC 9768 section 3.2.3 and appendix A; Linux 7.0: `tcp_accecn_process_option` and
//! `tcp_rcv_spurious_retrans` (`net/ipv4/tcp_input.c`), `tcp_established_options` and
//! `tcp_options_write` (`tcp_output.c`), `tcp_ecn_received_counters`, `tcp_accecn_option_init` and
//! `tcp_accecn_option_beacon_check` (`include/net/tcp_ecn.h`).
//!
//! # Departures
//! - A segment that was cut before the option was in use is sent again without it; Linux cuts it
//!   anew.
//! - Room for an option that is not on every segment is taken from new data by what is known at the
//!   last ACK or timer.
//! - Resets have no option.

use ackclock_packet::{AccEcn, AccEcnOrder};
use ackclock_units::{Ecn, Span, Time};

use crate::{AccEcnOption, AccEcnRules};

/// Counters are 24 bits wide.
const MASK: u32 = 0xff_ffff;
/// A counter that passes a multiple of this is reported (half of half of what 24 bits hold).
const REPORTED_EVERY: u32 = 22;
/// A sender that has not seen the option when it has sent so much does not heed it any more:
/// counters may have wrapped.
const LATEST: u64 = (1 << 23) - 1;
/// Options that are sent after a change: the first may cover both sides of it.
const AFTER_CHANGE: u8 = 2;

/// The options seen from the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Seen {
    Nothing,
    /// One without counters.
    Empty,
    Counters,
    /// One that somebody has zeroed, or none in time.
    Invalid,
}

/// The counters of both directions (RFC 9768 section 3.2.1), without what they begin with.
#[derive(Debug)]
pub(super) struct ByteCounters {
    /// r.e1b, r.e0b and r.ceb: payload that has arrived.
    pub(super) received: [u32; 3],
    /// s.e1b, s.e0b and s.ceb: payload of ours as the peer reports it.
    pub(super) delivered: [u32; 3],
    /// The one counter that the last options have moved: ACKs without an option are taken to
    /// continue so.
    pub(super) moving: Option<Ecn>,
    /// Fields that the next option needs for what has changed since the last.
    pub(super) needed: u8,
    /// Options that are due.
    pub(super) due: u8,
    pub(super) sent_at: Time,
    /// Where the duplicate began that was reported along with the last option, if the last segment
    /// had one.
    pub(super) with_duplicate: Option<u64>,
    pub(super) seen: Seen,
    /// The peer's option is ignored.
    pub(super) ignored: bool,
    /// Ours does not get through.
    pub(super) stopped: bool,
}

/// The place of a counter, in the order in which they are sent. Not-ECT has none.
const fn place(codepoint: Ecn) -> Option<usize> {
    match codepoint {
        Ecn::NotEct => None,
        Ecn::Ect1 => Some(0),
        Ecn::Ce => Some(1),
        Ecn::Ect0 => Some(2),
    }
}

/// The initial value of a counter (RFC 9768 section 3.2.1): zero would be indistinguishable from
/// one that was zeroed on the way.
const fn beginning(codepoint: Ecn) -> u32 {
    match codepoint {
        Ecn::Ect0 | Ecn::Ect1 => 1,
        Ecn::Ce | Ecn::NotEct => 0,
    }
}

/// The distance of a 24-bit field from its last known value.
fn moved(codepoint: Ecn, field: u32, known: u32) -> i32 {
    let ahead = field.wrapping_sub(beginning(codepoint)).wrapping_sub(known) & MASK;
    (ahead << 8).cast_signed() >> 8
}

/// The byte counts that an ACK reports.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct BytesTold {
    /// The counters can be relied on.
    pub(super) valid: bool,
    /// Payload reported as marked; `None` if nothing is known.
    pub(super) marked: Option<u32>,
}

impl ByteCounters {
    pub(super) fn new() -> ByteCounters {
        ByteCounters {
            received: [0; 3],
            delivered: [0; 3],
            moving: None,
            needed: 0,
            due: 0,
            sent_at: Time::ZERO,
            with_duplicate: None,
            seen: Seen::Nothing,
            ignored: false,
            stopped: false,
        }
    }

    /// Returns `true` if a segment sent at `now` has the option, if there is room.
    pub(super) fn is_sent(&self, rules: &AccEcnRules, now: Time, srtt: Option<Span>) -> bool {
        let agreed = rules.option != AccEcnOption::Off && self.seen != Seen::Nothing;
        let beacon = || {
            let rtt = srtt.map_or(0, |srtt| srtt.as_nanos());
            rules.beacon > 0 && now.since(self.sent_at).as_nanos().saturating_mul(u64::from(rules.beacon)) >= rtt
        };
        agreed
            && (rules.option == AccEcnOption::Persist || !self.stopped)
            && (rules.option >= AccEcnOption::Full || self.due > 0 || beacon())
    }

    /// A segment arrived with codepoint `codepoint`, after one that had another one if `changed`.
    pub(super) fn count(&mut self, codepoint: Ecn, payload: u32, changed: bool) {
        if let Some(at) = place(codepoint).filter(|_| payload > 0) {
            let before = self.received[at];
            self.received[at] = before.wrapping_add(payload);
            self.needed = self.needed.max(at as u8 + 1);
            if (before ^ self.received[at]) >> REPORTED_EVERY != 0 {
                self.due = self.due.max(1);
            }
        }
        if changed || codepoint == Ecn::Ce {
            self.due = AFTER_CHANGE;
        }
    }

    /// `due` options at least are to be sent.
    pub(super) fn demand(&mut self, due: u8) {
        self.due = self.due.max(due);
    }

    /// The first options of the peer: whether somebody zeroes them (RFC 9768 section 3.2.3.2.4).
    pub(super) fn look_at(&mut self, option: Option<AccEcn>) -> bool {
        let Some(option) = option.filter(|_| self.seen < Seen::Counters) else { return false };
        let mut fields = option.fields().map(|(_, value)| value);
        self.seen = match (fields.next(), fields.nth(1)) {
            (None, _) => Seen::Empty,
            (Some(0), _) | (_, Some(0)) => Seen::Invalid,
            _ => Seen::Counters,
        };
        self.ignored |= self.seen == Seen::Invalid;
        true
    }

    /// Returns `true` if an option reports anything new.
    pub(super) fn is_news(&self, option: &AccEcn) -> bool {
        let news =
            |(codepoint, field)| place(codepoint).is_some_and(|at| moved(codepoint, field, self.delivered[at]) != 0);
        self.seen < Seen::Counters || option.fields().any(news)
    }

    /// An ACK that delivers `delivered` bytes has this option, or none; so far `sent` bytes were
    /// sent.
    pub(super) fn take(&mut self, option: Option<AccEcn>, delivered: u32, sent: u64) -> BytesTold {
        if self.ignored {
            return BytesTold::default();
        }
        let Some(option) = option else { return self.take_none(delivered, sent) };
        self.look_at(Some(option));
        let mut told = BytesTold { valid: self.moving.is_some(), marked: None };
        let before = self.moving;
        let (mut one, mut ambiguous) = (false, false);
        for (codepoint, field) in option.fields() {
            let Some(at) = place(codepoint) else { continue };
            let ahead = moved(codepoint, field, self.delivered[at]);
            self.delivered[at] = self.delivered[at].wrapping_add_signed(ahead);
            if codepoint == Ecn::Ce {
                told.marked = Some(ahead.max(0).unsigned_abs());
            }
            ambiguous |= ahead < 0;
            if ahead != 0 && before != Some(codepoint) {
                if std::mem::replace(&mut one, true) {
                    ambiguous = true;
                } else {
                    self.moving = Some(codepoint);
                }
            }
        }
        told.valid &= !ambiguous;
        if ambiguous {
            self.moving = None;
        }
        told
    }

    /// No option: as far as one counter alone has moved it is taken to go on.
    fn take_none(&mut self, delivered: u32, sent: u64) -> BytesTold {
        if self.seen == Seen::Nothing {
            if sent >= LATEST {
                (self.seen, self.ignored) = (Seen::Invalid, true);
            }
            return BytesTold::default();
        }
        let Some((codepoint, at)) = self.moving.and_then(|moving| Some((moving, place(moving)?))) else {
            return BytesTold::default();
        };
        self.delivered[at] = self.delivered[at].wrapping_add(delivered);
        BytesTold { valid: true, marked: Some(if codepoint == Ecn::Ce { delivered } else { 0 }) }
    }

    /// The option that is sent.
    pub(super) fn report(&self) -> AccEcn {
        AccEcn::new(AccEcnOrder::One, |codepoint| {
            place(codepoint).map_or(0, |at| self.received[at]).wrapping_add(beginning(codepoint))
        })
    }

    /// Payload that arrived, and payload reported: of ECT(1), ECT(0) and CE.
    pub(super) fn totals(&self) -> ([u32; 3], [u32; 3]) {
        let ordered = |[e1, ce, e0]: [u32; 3]| [e1, e0, ce];
        (ordered(self.received), ordered(self.delivered))
    }

    /// `tcpi_accecn_opt_seen`, and whether the peer's option is ignored and ours stopped.
    pub(super) fn seen(&self) -> (u8, bool, bool) {
        (self.seen as u8, self.ignored, self.stopped)
    }
}

#[cfg(test)]
mod tests;
