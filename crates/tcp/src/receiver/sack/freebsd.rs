//! The SACK blocks of FreeBSD, which keeps a list of them apart from its reassembly queue.
//!
//! # Source
//! `tcp_update_sack_list`, `tcp_update_dsack_list` and `tcp_clean_dsack_blocks` in
//! `sys/netinet/tcp_sack.c` of FreeBSD 14, and their calls in `tcp_input.c`. What differs from RFC
//! 2883 as Linux reads it: the part of a segment below the ACK is the report whatever else the
//! segment repeats; of several overlaps the lowest is reported, and an overlap with a report that
//! has not been sent counts; and a block that the segment merely touches is reported as a part of
//! its own.

use crate::receiver::reassembly::Range;

/// FreeBSD's number of blocks (`MAX_SACK_BLKS`).
const MOST: usize = 6;

/// Blocks in the order of the option. One that ends at or below the acknowledgment is the report of
/// a duplicate.
#[derive(Clone, Copy, Debug)]
pub(super) struct FreebsdSackList {
    blocks: [Range; MOST],
    len: usize,
    /// The unit of the peer's FIN once it has been taken in.
    fin: u64,
}

impl Default for FreebsdSackList {
    fn default() -> FreebsdSackList {
        FreebsdSackList { blocks: [(0, 0); MOST], len: 0, fin: u64::MAX }
    }
}

impl FreebsdSackList {
    pub(super) fn as_slice(&self) -> &[Range] {
        &self.blocks[..self.len]
    }

    /// Returns `true` if a duplicate waits to be reported; `next` is the acknowledgment.
    pub(super) fn has_duplicate(&self, next: u64) -> bool {
        self.as_slice().first().is_some_and(|&(_, right)| right <= next)
    }

    /// A segment with `payload` bytes of data has been taken in: a FIN is not among what is
    /// reported, nor is it acknowledged yet when that is worked out. One below what is expected is
    /// a repetition, or none that counts.
    pub(super) fn take_segment(&mut self, (left, right): Range, payload: u32, next: u64, after: u64) {
        let data = right.min(left + u64::from(payload));
        if right > data && data >= next {
            self.fin = data;
        }
        self.take((left, data), next.min(self.fin), after.min(self.fin));
    }

    /// The segment `[left, right)` arrived, `next` was expected before it and is `after` it now.
    fn take(&mut self, (left, right): Range, next: u64, after: u64) {
        let known = (left, right.min(next));
        if known.0 < known.1 {
            self.lead(known, next);
        }
        let rest = (left.max(next), right);
        if rest.0 >= rest.1 {
            return;
        }
        if after > next && self.as_slice().first().is_some_and(|&(_, end)| end == rest.0) {
            // The report of the part below the acknowledgment stays the only one.
            self.lead(self.blocks[0], after);
        } else {
            self.add(rest, after);
        }
    }

    /// An ACK has left: duplicates are reported once.
    #[inline]
    pub(super) fn sent(&mut self, next: u64) {
        if self.len > 0 {
            self.keep(FreebsdSackList::default(), |(left, _)| left > next);
        }
    }

    /// `first` before all blocks that are above `next`.
    fn lead(&mut self, first: Range, next: u64) {
        let mut list = FreebsdSackList::default();
        list.push(first);
        self.keep(list, |(left, _)| left > next);
    }

    /// New data or a duplicate of data beyond a gap.
    fn add(&mut self, segment: Range, next: u64) {
        let (left, right) = segment;
        // The segment with all that it touches, and the lowest of what it repeats.
        let (mut whole, mut repeated, mut within) = (segment, None::<Range>, false);
        for &(start, end) in self.as_slice() {
            if right < start || left > end {
                continue;
            }
            if end < next {
                let common = (left.max(start), right.min(end));
                if common.0 != common.1 && repeated.is_none_or(|lowest| common.0 < lowest.0) {
                    repeated = Some(common);
                }
                continue;
            }
            if end > left && repeated.is_none_or(|lowest| start < lowest.0) {
                repeated = Some((start, end));
            }
            whole = (whole.0.min(start), whole.1.max(end));
            within |= whole == (start, end);
        }
        let ends_with_first = right == next && self.as_slice().first().is_some_and(|&(_, end)| end == next);
        let report = match repeated {
            Some((start, end)) => Some((left.max(start), right.min(end))),
            None if right < next || ends_with_first => Some(segment),
            None => None,
        };
        let mut list = FreebsdSackList::default();
        if let Some(report) = report.filter(|(start, end)| start < end) {
            list.push(report);
        }
        if within || next < whole.1 && report != Some(whole) {
            list.push(whole);
        }
        self.keep(list, |(start, end)| (end < whole.0 || start > whole.1) && start > next);
    }

    /// `list`, and behind it the blocks of this one that `stays` picks.
    fn keep(&mut self, mut list: FreebsdSackList, stays: impl Fn(Range) -> bool) {
        for &block in self.as_slice() {
            if stays(block) {
                list.push(block);
            }
        }
        *self = FreebsdSackList { fin: self.fin, ..list };
    }

    /// Appends a block; one too many is forgotten.
    fn push(&mut self, block: Range) {
        if let Some(slot) = self.blocks.get_mut(self.len) {
            *slot = block;
            self.len += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_fin_that_can_be_the_next_one_ends_what_is_reported() {
        let mut list = FreebsdSackList::default();
        // A FIN in the middle of what has arrived, then the next data.
        list.take_segment((8, 9), 0, 10, 10);
        list.take_segment((10, 12), 2, 10, 12);
        assert!(list.as_slice().is_empty());
        // The FIN that was taken in, and its repetition with the data before it.
        list.take_segment((12, 15), 2, 12, 15);
        list.take_segment((12, 15), 2, 15, 15);
        assert_eq!(list.as_slice(), [(12, 14)]);
    }
}
