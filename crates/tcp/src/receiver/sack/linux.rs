//! The SACK blocks of Linux, which lists up to four of them apart from its queue of segments out of
//! order.
//!
//! # Source
//! Linux 6.1, `net/ipv4/tcp_input.c`: `tcp_data_queue`, `tcp_data_queue_ofo`, `tcp_ofo_queue`,
//! `tcp_sack_new_ofo_skb`, `tcp_sack_maybe_coalesce`, `tcp_sack_remove`. What differs from a list
//! of everything that is held: a fifth block pushes the oldest out, which does not come back, and
//! what was pushed out is not part of a block that grows over it.
//!
//! # Departures
//! Segments that follow each other are not made one in the queue (`tcp_ooo_try_coalesce`, which
//! depends on how the driver lays out its memory): one that touches the end of another and overlaps
//! the next is reported as a duplicate always.

use std::collections::VecDeque;

use crate::receiver::reassembly::Range;

/// `TCP_NUM_SACKS`.
const MOST: usize = 4;

/// Segments beyond a gap, and what is reported of them.
#[derive(Clone, Debug, Default)]
pub(super) struct LinuxSackList {
    /// By left edge. They may overlap, but none lies within another: their right edges are in order
    /// too.
    queue: VecDeque<Range>,
    blocks: [Range; MOST],
    len: usize,
    duplicate: Option<Range>,
    /// Parts that a segment repeats end where the segments end that had brought them.
    exact: bool,
}

/// Makes `block` larger by `part` if they touch (`tcp_sack_extend`).
fn extend(block: &mut Range, (left, right): Range) -> bool {
    let touches = left <= block.1 && block.0 <= right;
    if touches {
        *block = (block.0.min(left), block.1.max(right));
    }
    touches
}

impl LinuxSackList {
    /// An empty one; `exact` as [`crate::TransferRules::exact_duplicates`].
    pub(super) fn new(exact: bool) -> LinuxSackList {
        LinuxSackList { exact, ..LinuxSackList::default() }
    }

    /// Returns true if nothing is held, and no duplicate waits to be reported.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.duplicate.is_none()
    }

    /// The most recent first.
    pub(super) fn blocks(&self) -> &[Range] {
        &self.blocks[..self.len]
    }

    /// The part of the last segment that had arrived before.
    pub(super) fn duplicate(&self) -> Option<Range> {
        self.duplicate
    }

    /// An ACK has left: duplicates are reported once.
    #[inline]
    pub(super) fn sent(&mut self) {
        self.duplicate = None;
    }

    /// A segment `[left, right)` arrived while `next` was expected.
    #[inline]
    pub(super) fn take(&mut self, (left, right): Range, next: u64) {
        self.duplicate = None;
        if right <= next {
            self.duplicate = Some((left, right));
        } else if left <= next {
            if left < next {
                self.duplicate = Some((left, next));
            }
            if !self.queue.is_empty() {
                self.advance(right);
            }
        } else {
            self.hold(left, right);
        }
    }

    /// Everything up to `next` has arrived: the queue gives what follows it (`tcp_ofo_queue`,
    /// `tcp_sack_remove`).
    fn advance(&mut self, mut next: u64) {
        let mut high = next;
        while let Some(&(left, right)) = self.queue.front().filter(|&&(left, _)| left <= next) {
            if left < high && self.exact {
                self.repeat((left, high.min(right)));
            } else if left < high {
                self.repeat((left, high));
                high = high.min(right);
            }
            next = next.max(right);
            self.queue.pop_front();
        }
        let mut kept = 0;
        for at in 0..self.len {
            if !self.queue.is_empty() && self.blocks[at].0 > next {
                self.blocks[kept] = self.blocks[at];
                kept += 1;
            }
        }
        self.len = kept;
    }

    /// A segment beyond a gap (`tcp_data_queue_ofo`).
    fn hold(&mut self, left: u64, right: u64) {
        // Behind those that begin no later: of them, the last one reaches farthest.
        let mut at = self.queue.partition_point(|&(start, _)| start <= left);
        if let Some(&(start, end)) = at.checked_sub(1).and_then(|before| self.queue.get(before)) {
            if right <= end {
                self.duplicate = Some((left, right));
                self.tell(left, right);
                return;
            }
            if start == left {
                at -= 1;
                self.queue.remove(at);
                self.repeat((start, end));
            } else if left < end {
                self.duplicate = Some((left, end));
            }
        }
        while let Some(&(start, end)) = self.queue.get(at).filter(|&&(start, _)| start < right) {
            self.repeat((start, end.min(right)));
            if right < end {
                break;
            }
            self.queue.remove(at);
        }
        self.queue.insert(at, (left, right));
        self.tell(left, right);
    }

    /// `tcp_dsack_extend`.
    fn repeat(&mut self, part: Range) {
        match &mut self.duplicate {
            Some(duplicate) => {
                extend(duplicate, part);
            }
            None => self.duplicate = Some(part),
        }
    }

    /// `tcp_sack_new_ofo_skb`.
    fn tell(&mut self, left: u64, right: u64) {
        if let Some(at) = self.blocks[..self.len].iter_mut().position(|block| extend(block, (left, right))) {
            self.blocks[..=at].rotate_right(1);
            let mut kept = 1;
            for at in 1..self.len {
                let block = self.blocks[at];
                if !extend(&mut self.blocks[0], block) {
                    self.blocks[kept] = block;
                    kept += 1;
                }
            }
            self.len = kept;
            return;
        }
        self.len = (self.len + 1).min(MOST);
        self.blocks[..self.len].rotate_right(1);
        self.blocks[0] = (left, right);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The report after each segment of `arrivals`, when 1 is expected first.
    fn told(arrivals: &[Range]) -> Vec<(Option<Range>, Vec<Range>)> {
        let (mut list, mut held, mut next) = (LinuxSackList::default(), Vec::new(), 1);
        let mut told = Vec::new();
        for &(left, right) in arrivals {
            list.take((left, right), next);
            held.push((left, right));
            while let Some(&(_, end)) = held.iter().find(|&&(start, end)| start <= next && end > next) {
                next = end;
            }
            told.push((list.duplicate(), list.blocks().to_vec()));
            list.sent();
        }
        told
    }

    #[test]
    fn a_fifth_block_pushes_the_oldest_out_and_it_does_not_come_back() {
        let told = told(&[(10, 11), (20, 21), (30, 31), (40, 41), (50, 51), (49, 50), (1, 9), (9, 11)]);
        assert_eq!(told[4].1, [(50, 51), (40, 41), (30, 31), (20, 21)]);
        // 49 grows the first block; that leaves room for nobody.
        assert_eq!(told[5].1, [(49, 51), (40, 41), (30, 31), (20, 21)]);
        assert_eq!(told[7].1, [(49, 51), (40, 41), (30, 31), (20, 21)]);
    }

    #[test]
    fn a_block_that_was_pushed_out_is_no_part_of_one_that_grows_over_it() {
        // tcp_sack_new_ofo_skb joins blocks of the list alone.
        let told = told(&[(10, 12), (20, 21), (30, 31), (40, 41), (50, 51), (8, 10)]);
        assert_eq!(told[5].1, [(8, 10), (50, 51), (40, 41), (30, 31)]);
    }

    #[test]
    fn all_that_was_known_of_a_segment_is_reported_if_it_is_one_piece() {
        // tcp_dsack_extend: 11 to 13 in two segments, then with a gap at 14.
        assert_eq!(told(&[(11, 12), (12, 13), (10, 13)])[2], (Some((11, 13)), vec![(10, 13)]));
        assert_eq!(told(&[(11, 12), (13, 14), (10, 15)])[2], (Some((11, 12)), vec![(10, 15)]));
    }

    #[test]
    fn of_two_held_segments_that_one_repeats_the_report_ends_with_the_first() {
        // tcp_ofo_queue: [1001, 3001) and [5001, 6001) in the queue, and [1, 6001) comes.
        let reported = |exact| {
            let mut list = LinuxSackList::new(exact);
            for held in [(1001, 3001), (5001, 6001), (7001, 8001)] {
                list.take(held, 1);
            }
            list.take((1, 6001), 1);
            (list.duplicate(), list.blocks().to_vec())
        };
        assert_eq!(reported(true), (Some((1001, 3001)), vec![(7001, 8001)]));
        assert_eq!(reported(false), (Some((1001, 6001)), vec![(7001, 8001)]));
    }

    #[test]
    fn of_a_segment_that_fills_a_gap_the_part_below_is_reported_first() {
        // tcp_data_queue sets the part below what is expected; what it repeats of the queue is
        // added if it touches.
        assert_eq!(told(&[(1, 5), (8, 10), (3, 9)])[2], (Some((3, 5)), vec![]));
        assert_eq!(told(&[(8, 10), (1, 9)])[1], (Some((8, 9)), vec![]));
    }
}
