//! n-reordering (RFC 4737 section 5): how many packets sent later arrived directly before a packet.

use std::collections::VecDeque;

/// The recent arrivals with a smaller number than every later one: every other arrival stands
/// behind one of these for whatever comes, which is as far as the measure reaches.
#[derive(Clone, Debug)]
pub(super) struct Behind {
    most: u64,
    /// Numbers with their places in the order of arrival, both ascending.
    smallest: VecDeque<(u64, u64)>,
}

impl Behind {
    /// Counts up to `most`.
    pub(super) fn new(most: u32) -> Behind {
        Behind { most: most.into(), smallest: VecDeque::new() }
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.smallest.len()
    }

    /// Notes the `place`-th arrival; returns the largest n for which the packet is n-reordered, 0
    /// for none.
    pub(super) fn arrive(&mut self, number: u64, place: u64) -> u64 {
        while self.smallest.back().is_some_and(|last| last.0 > number) {
            self.smallest.pop_back();
        }
        let n = place - self.smallest.back().map_or(0, |last| last.1 + 1);
        self.smallest.push_back((number, place));
        // Whoever finds nothing looked back as far as it counts.
        while self.smallest.front().is_some_and(|first| place - first.1 >= self.most) {
            self.smallest.pop_front();
        }
        n.min(self.most)
    }
}
