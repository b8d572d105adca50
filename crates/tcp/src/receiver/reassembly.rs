//! Data beyond a gap: which ranges have arrived, in which order, and what arrived twice (RFC 2018
//! section 4, RFC 2883).

use std::collections::VecDeque;

use crate::stack::tuning::OVERHEAD;

pub(super) type Range = (u64, u64);

/// Segments that share a buffer: `MAX_SKB_FRAGS` is 17, and a segment in 22 lies in two
/// pages of 32 KiB (`sk_page_frag_refill`).
const COALESCED: u32 = 16;

/// The memory of segments next to each other in a buffer of fixed size, where as many as a buffer
/// has fragments may share one overhead.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct BufferMemory {
    /// Bytes that share one overhead, 0 if segments do not.
    shared: u32,
}

impl BufferMemory {
    /// Of segments of `segment` bytes.
    pub(super) fn new(coalesces: bool, segment: u32) -> BufferMemory {
        BufferMemory { shared: if coalesces { COALESCED.saturating_mul(segment) } else { 0 } }
    }

    /// The memory of `bytes` bytes, no more than was counted on.
    #[inline]
    pub(super) fn of(self, bytes: u64) -> u64 {
        if bytes == 0 || self.shared == 0 {
            return 2 * bytes;
        }
        let shared = u64::from(self.shared);
        let buffers = if bytes <= shared { 1 } else { bytes.div_ceil(shared) };
        (bytes + OVERHEAD * buffers).min(2 * bytes)
    }

    fn of_range(self, (left, right): Range) -> u64 {
        self.of(right - left)
    }
}

/// Left edges that are remembered in order of arrival: as many as a SACK option has blocks.
const RECENT: usize = 4;

/// The ranges beyond a gap, and the duplicate that waits to be reported.
#[derive(Debug, Default)]
pub(super) struct Reassembly {
    /// In order, disjoint and not touching.
    ranges: VecDeque<Range>,
    /// Left edges of the ranges most recently added to, newest first: the order of SACK blocks (RFC
    /// 2018 section 4).
    recent: [u64; RECENT],
    recent_len: u8,
    /// The duplicate to report first in the next ACK (RFC 2883), empty if there is none.
    duplicate: Range,
    /// The memory of all ranges, counted by `buffers`.
    memory: u64,
    buffers: BufferMemory,
}

impl Reassembly {
    /// Returns `true` if nothing is held: there is no gap.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The ranges, lowest first.
    pub(super) fn ranges(&self) -> impl DoubleEndedIterator<Item = Range> + ExactSizeIterator + '_ {
        self.ranges.iter().copied()
    }

    /// One past the highest unit held, 0 if none is.
    pub(super) fn end(&self) -> u64 {
        self.ranges.back().map_or(0, |&(_, right)| right)
    }

    /// Units held.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        self.memory(BufferMemory::default()) / 2
    }

    /// The memory of what is held.
    #[inline]
    pub(super) fn memory(&self, buffers: BufferMemory) -> u64 {
        if buffers == self.buffers { self.memory } else { self.counted(buffers) }
    }

    #[cold]
    fn counted(&self, buffers: BufferMemory) -> u64 {
        self.ranges().map(|range| buffers.of_range(range)).sum()
    }

    /// From here on memory is counted by `buffers`.
    #[inline]
    fn count_by(&mut self, buffers: BufferMemory) {
        if buffers != self.buffers {
            (self.memory, self.buffers) = (self.counted(buffers), buffers);
        }
    }

    fn book(&mut self, range: Range) {
        self.memory += self.buffers.of_range(range);
    }

    fn unbook(&mut self, range: Range) {
        self.memory -= self.buffers.of_range(range);
    }

    /// Returns `true` if all of `left..right`, which lies beyond the gap, has arrived.
    pub(super) fn holds(&self, left: u64, right: u64) -> bool {
        // Mostly it lies in the highest one.
        if let Some(last) = self.ranges.back().filter(|last| last.0 <= left) {
            return right <= last.1;
        }
        let at = self.ranges.partition_point(|&(_, range_right)| range_right < right);
        self.ranges.get(at).is_some_and(|&(range_left, _)| range_left <= left)
    }

    /// The duplicate that waits to be reported.
    #[inline]
    pub(super) fn duplicate(&self) -> Option<Range> {
        (self.duplicate.1 > 0).then_some(self.duplicate)
    }

    /// `range` has arrived again, below the gap.
    pub(super) fn repeated(&mut self, range: Range) {
        self.duplicate = range;
    }

    /// `range` has arrived again, beyond what is reported if there is something.
    fn repeated_first(&mut self, range: Range) {
        if self.duplicate.1 == 0 {
            self.duplicate = range;
        }
    }

    /// An ACK has left: duplicates are reported once.
    #[inline]
    pub(super) fn reported(&mut self) {
        self.duplicate = (0, 0);
    }

    /// Everything below `right` has arrived: where the next gap begins.
    pub(super) fn advance(&mut self, mut right: u64) -> u64 {
        while let Some(&(range_left, range_right)) = self.ranges.front() {
            if range_left > right {
                break;
            }
            if range_left < right {
                let known = (range_left, right.min(range_right));
                self.repeated_first(known);
            }
            right = right.max(range_right);
            self.ranges.pop_front();
            self.unbook((range_left, range_right));
            self.forget(range_left);
        }
        right
    }

    /// Adds a range beyond the gap to buffers with this memory. False if all of it had arrived
    /// before.
    pub(super) fn insert(&mut self, left: u64, right: u64, buffers: BufferMemory) -> bool {
        self.count_by(buffers);
        // Mostly it follows the highest one.
        if let Some(last) = self.ranges.back_mut().filter(|last| last.1 == left) {
            let edge = last.0;
            last.1 = right;
            self.unbook((edge, left));
            self.book((edge, right));
            if self.recent_len == 0 || self.recent[0] != edge {
                self.touch(edge);
            }
            return true;
        }
        self.insert_anywhere(left, right)
    }

    fn insert_anywhere(&mut self, left: u64, right: u64) -> bool {
        // First range that ends at or after `left`: the first that can touch.
        let first = self.ranges.partition_point(|&(_, range_right)| range_right < left);
        let (mut merged_left, mut merged_right) = (left, right);
        let mut last = first;
        while let Some(&(range_left, range_right)) = self.ranges.get(last) {
            if range_left > merged_right {
                break;
            }
            if range_left <= left && right <= range_right {
                self.duplicate = (left, right);
                self.touch(range_left);
                return false;
            }
            if range_left < right && left < range_right {
                self.repeated_first((left.max(range_left), right.min(range_right)));
            }
            merged_left = merged_left.min(range_left);
            merged_right = merged_right.max(range_right);
            self.unbook((range_left, range_right));
            self.forget(range_left);
            last += 1;
        }
        self.book((merged_left, merged_right));
        if last == first {
            self.ranges.insert(first, (left, right));
        } else {
            self.ranges[first] = (merged_left, merged_right);
            self.ranges.drain(first + 1..last);
        }
        self.touch(merged_left);
        true
    }

    /// The ranges most recently added to, newest first.
    pub(super) fn recent(&self) -> impl Iterator<Item = Range> + '_ {
        self.recent[..usize::from(self.recent_len)].iter().filter_map(|&left| {
            let only = self.ranges.len() == 1;
            let at = if only { 0 } else { self.ranges.partition_point(|&(range_left, _)| range_left < left) };
            self.ranges.get(at).copied()
        })
    }

    /// Up to `room` ranges: those most recently added to, newest first, then the others, highest
    /// first.
    pub(super) fn report(&self, room: usize, mut push: impl FnMut(Range)) {
        let mut left = room;
        for range in self.recent().take(room) {
            push(range);
            left -= 1;
        }
        let recent = &self.recent[..usize::from(self.recent_len)];
        if self.ranges.len() > recent.len() {
            self.ranges
                .iter()
                .rev()
                .filter(|range| !recent.contains(&range.0))
                .take(left)
                .for_each(|&range| push(range));
        }
    }

    /// Puts the range with this left edge first among the recent ones.
    fn touch(&mut self, left: u64) {
        self.forget(left);
        self.recent.copy_within(0..RECENT - 1, 1);
        self.recent[0] = left;
        self.recent_len = (self.recent_len + 1).min(RECENT as u8);
    }

    fn forget(&mut self, left: u64) {
        if let Some(at) = self.recent[..usize::from(self.recent_len)].iter().position(|&edge| edge == left) {
            self.recent.copy_within(at + 1..usize::from(self.recent_len), at);
            self.recent_len -= 1;
        }
    }
}
