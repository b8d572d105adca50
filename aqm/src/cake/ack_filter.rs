//! The filter of ACKs: of those that wait it drops one that a later one makes needless.
//!
//! # Source
//! Linux `net/sched/sch_cake.c`: `cake_ack_filter`, `cake_tcph_may_drop`, `cake_tcph_sack_compare`.

use crate::AckHeader;

/// The header of an ACK that waits.
#[derive(Clone, Copy, Debug)]
pub(super) struct WaitingAck {
    number: u32,
    ecn: [bool; 2],
    says_more: bool,
    timestamps: Option<(u32, u32)>,
    sack: [(u32, u32); 4],
    blocks: usize,
}

/// Returns `true` if the sequence number `a` is after `b`.
const fn after(a: u32, b: u32) -> bool {
    (b.wrapping_sub(a) as i32) < 0
}

impl WaitingAck {
    pub(super) fn new(header: &AckHeader<'_>) -> WaitingAck {
        let mut sack = [(0, 0); 4];
        let blocks = header.sack.len().min(sack.len());
        sack[..blocks].copy_from_slice(&header.sack[..blocks]);
        let &AckHeader { number, ecn, says_more, timestamps, .. } = header;
        WaitingAck { number, ecn, says_more, timestamps, sack, blocks }
    }

    fn sack(&self) -> &[(u32, u32)] {
        &self.sack[..self.blocks]
    }

    /// Returns `true` if nothing is lost with this ACK once `later` arrives.
    fn is_needless(&self, later: &WaitingAck) -> bool {
        let newer = |(value, echo): (u32, u32), (later_value, later_echo): (u32, u32)| {
            after(value, later_value) || after(echo, later_echo)
        };
        let says_newer = self.timestamps.is_some_and(|own| newer(own, later.timestamps.unwrap_or((0, 0))));
        if self.says_more || says_newer || after(self.number, later.number) {
            return false;
        }
        match self.sacks(later) {
            Sacks::More => false,
            Sacks::Same => self.number != later.number,
            Sacks::Less => true,
        }
    }

    /// Compares the ranges that it SACKs with those of `later`.
    fn sacks(&self, later: &WaitingAck) -> Sacks {
        let bytes = |blocks: &[(u32, u32)]| {
            blocks.iter().fold(0u32, |sum, (from, to)| sum.wrapping_add(to.wrapping_sub(*from)))
        };
        let is_covered = |&(from, to): &(u32, u32)| {
            let covers = |&(first, last): &(u32, u32)| !after(first, from) && !after(to, last);
            // A block below the cumulative number is a DSACK, which is worth more than others.
            !after(self.number, from) && later.sack().iter().any(covers)
        };
        if !self.sack().iter().all(is_covered) {
            Sacks::More
        } else if bytes(later.sack()) > bytes(self.sack()) {
            Sacks::Less
        } else {
            Sacks::Same
        }
    }
}

/// The ranges that an ACK SACKs, compared with another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Sacks {
    More,
    Same,
    Less,
}

/// The place among the packets `waiting` before the ACK `last` of one that this allows to drop: of
/// two ACKs that are needless the one nearer to the head, or, if `aggressive`, one that waits
/// directly before the last. ACKs of other flows are `None`. Before a change of the ECN flags an
/// ACK stays.
pub(super) fn needless<'a>(
    waiting: impl Iterator<Item = Option<&'a WaitingAck>>,
    last: &WaitingAck,
    aggressive: bool,
) -> Option<usize> {
    let mut found: Option<(usize, [bool; 2])> = None;
    let mut before_last = None;
    for (place, ack) in waiting.enumerate() {
        before_last = Some(place);
        let Some(ack) = ack else { continue };
        if found.is_some_and(|(_, ecn)| ecn != ack.ecn) {
            found = None;
        }
        if !ack.is_needless(last) {
            continue;
        }
        if let Some((first, _)) = found {
            return Some(first);
        }
        found = Some((place, ack.ecn));
    }
    let (place, ecn) = found?;
    (aggressive && before_last == Some(place) && ecn == last.ecn).then_some(place)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ack(number: u32) -> WaitingAck {
        let header = AckHeader { number, ecn: [false; 2], says_more: false, timestamps: None, sack: &[] };
        WaitingAck::new(&header)
    }

    fn sacking(number: u32, sack: &[(u32, u32)]) -> WaitingAck {
        let header = AckHeader { number, ecn: [false; 2], says_more: false, timestamps: None, sack };
        WaitingAck::new(&header)
    }

    /// The place that goes, without and with `aggressive`.
    fn goes(waiting: &[WaitingAck], last: WaitingAck) -> [Option<usize>; 2] {
        [false, true].map(|aggressive| needless(waiting.iter().map(Some), &last, aggressive))
    }

    /// `cake_ack_filter`: of two eligible ACKs the one nearer to the head goes, of one only in
    /// aggressive mode.
    #[test]
    fn two_needless_acks_are_one_too_many() {
        assert_eq!(goes(&[], ack(9)), [None; 2]);
        assert_eq!(goes(&[ack(1)], ack(9)), [None, Some(0)]);
        assert_eq!(goes(&[ack(1), ack(2)], ack(9)), [Some(0); 2]);
        assert_eq!(goes(&[ack(1), ack(2), ack(3)], ack(9)), [Some(0); 2]);
        // Sequence numbers wrap.
        assert_eq!(goes(&[ack(u32::MAX), ack(2)], ack(9)), [Some(0); 2]);
    }

    /// Duplicates stay, and so do ACKs of a higher number, those that carry something else, and
    /// those of other flows, which do not stand between others either.
    #[test]
    fn an_ack_that_says_something_stays() {
        assert_eq!(goes(&[ack(9), ack(9), ack(9)], ack(9)), [None; 2]);
        assert_eq!(goes(&[ack(10), ack(11)], ack(9)), [None; 2]);
        let data = WaitingAck { says_more: true, ..ack(1) };
        assert_eq!(goes(&[data, data, ack(2)], ack(9)), [None, Some(2)]);
        // A data segment can be what makes others needless.
        assert_eq!(goes(&[ack(1), ack(2)], WaitingAck { says_more: true, ..ack(9) }), [Some(0); 2]);
        let others = [Some(ack(1)), None, Some(ack(2)), None];
        let place = |aggressive| needless(others.iter().map(Option::as_ref), &ack(9), aggressive);
        assert_eq!([place(false), place(true)], [Some(0); 2]);
        // The eligible one has to be next to the last.
        let others = [Some(ack(1)), None];
        assert_eq!(needless(others.iter().map(Option::as_ref), &ack(9), true), None);
    }

    /// `cake_tcph_may_drop`: not with a later timestamp than the new one, of either kind.
    #[test]
    fn a_later_timestamp_stays() {
        let at = |number, value, echo| WaitingAck { timestamps: Some((value, echo)), ..ack(number) };
        assert_eq!(goes(&[at(1, 5, 3), at(2, 6, 3)], at(9, 7, 4)), [Some(0); 2]);
        assert_eq!(goes(&[at(1, 8, 3), at(2, 6, 5)], at(9, 7, 4)), [None; 2]);
        // Without the option the new one has 0.
        assert_eq!(goes(&[at(1, 8, 3)], ack(9)), [None; 2]);
    }

    /// "If the ECE/CWR flags changed from the previous eligible packet [...] we should no longer be
    /// dropping that previous packet".
    #[test]
    fn a_change_of_the_flags_is_kept() {
        let echo = |number| WaitingAck { ecn: [false, true], ..ack(number) };
        assert_eq!(goes(&[ack(1), echo(2), echo(3)], echo(9)), [Some(1); 2]);
        assert_eq!(goes(&[ack(1), echo(2)], echo(9)), [None, Some(1)]);
        assert_eq!(goes(&[ack(1), echo(2)], ack(9)), [None; 2]);
    }

    /// `cake_tcph_sack_compare`: what an ACK SACKs has to be in one block of the later one, which
    /// SACKs more or has a higher number; a DSACK stays.
    #[test]
    fn sacked_ranges_have_to_be_covered() {
        let more = sacking(1, &[(10, 40)]);
        for (sack, number, drops) in [
            (&[(10, 20)][..], 1, true),
            (&[(10, 20), (30, 40)], 1, true),
            (&[(10, 40)], 1, false),
            (&[(5, 20)], 1, false),
            (&[(10, 41)], 1, false),
            (&[(50, 60)], 1, false),
            (&[], 1, true),
            // A block below the cumulative number.
            (&[(11, 20)], 12, false),
        ] {
            let first = sacking(number, sack);
            let last = WaitingAck { number: number.max(more.number), ..more };
            assert_eq!(goes(&[first, first], last)[0], drops.then_some(0), "{sack:?}");
        }
        // The same ranges, and a higher number.
        assert_eq!(goes(&[sacking(1, &[(10, 40)]); 2], WaitingAck { number: 2, ..more }), [Some(0); 2]);
        // An ACK with blocks stays before one that has none.
        assert_eq!(goes(&[sacking(1, &[(10, 20)]); 2], ack(9)), [None; 2]);
    }
}
