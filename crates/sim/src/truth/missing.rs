//! Bytes that have not reached the receiver, and who lost them.

use std::collections::VecDeque;

use ackclock_units::prefetch;

use super::cause::Culprit;
use super::losses::place;

/// The bytes that no transmission judged so far has delivered, as ranges in order, disjoint.
#[derive(Debug)]
pub(super) struct Missing {
    ranges: VecDeque<MissingRange>,
}

#[derive(Clone, Copy, Debug)]
struct MissingRange {
    from: u64,
    to: u64,
    /// The culprit of the last transmission's loss.
    culprit: Culprit,
}

impl Missing {
    pub(super) fn new() -> Missing {
        Missing { ranges: VecDeque::new() }
    }

    /// Starts to fetch the first ranges into the cache.
    pub(super) fn prefetch_behind(&self) {
        self.ranges.front().map(prefetch);
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.ranges.is_empty()
    }

    /// The culprit of the first missing bytes of `from..to`, if any are missing.
    pub(super) fn culprit(&self, from: u64, to: u64) -> Option<Culprit> {
        self.ranges.get(self.first(from)).filter(|range| range.from < to).map(|range| range.culprit)
    }

    /// New data is lost: it lies behind all other.
    pub(super) fn add(&mut self, from: u64, to: u64, culprit: Culprit) {
        self.ranges.push_back(MissingRange { from, to, culprit });
    }

    /// Blames `culprit` for the missing bytes of `from..to`: they were lost again.
    pub(super) fn blame(&mut self, from: u64, to: u64, culprit: Culprit) {
        let first = self.first(from);
        let overlap = self.ranges.range_mut(first..).take_while(|range| range.from < to);
        overlap.for_each(|range| range.culprit = culprit);
    }

    /// A retransmission of `from..to` reached the receiver.
    pub(super) fn bring(&mut self, from: u64, to: u64) {
        let mut index = self.first(from);
        while let Some(&range) = self.ranges.get(index).filter(|range| range.from < to) {
            self.ranges.remove(index);
            for (left, right) in [(range.from, from), (to, range.to)] {
                if left < right {
                    self.ranges.insert(index, MissingRange { from: left, to: right, ..range });
                    index += 1;
                }
            }
        }
    }

    /// The place of the first range that ends behind `from`.
    fn first(&self, from: u64) -> usize {
        place(self.ranges.len(), |at| self.ranges[at].to <= from)
    }
}
