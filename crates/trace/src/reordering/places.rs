//! Displacements of packets from their places (RFC 5236 section 7.1, the stay-back method).
//!
//! The k-th packet to arrive ought to be the k-th of those sent that arrive at all. The number of
//! that one is its receive index, and the index less the number of the packet is the displacement.
//! As soon as the packet with the next index has arrived, the first that waits gets it; if it has
//! not, the others wait, until so many do that it is taken for lost. (The RFC fills its window
//! first in any case. Without copies of packets no result depends on that: an index is passed over
//! with a full window alone.)

use std::collections::{BTreeSet, VecDeque};

/// The packets whose displacement is not known, and what decides it.
#[derive(Clone, Debug)]
pub(super) struct DisplacementWindow {
    threshold: u64,
    /// The receive index of the next packet.
    index: u64,
    /// Packets without an index in order of arrival, each with a number of the caller's.
    window: VecDeque<(u64, u64)>,
    /// Numbers of the packets that wait, in order.
    waiting: BTreeSet<u64>,
    /// Numbers, at or above the index, of packets that arrived early and have one.
    early: BTreeSet<u64>,
    /// Numbers, at or above the index, of packets that are known to be lost.
    lost: BTreeSet<u64>,
    beyond: u64,
}

impl DisplacementWindow {
    pub(super) fn new(threshold: u32) -> DisplacementWindow {
        DisplacementWindow {
            threshold: threshold.into(),
            index: 0,
            window: VecDeque::new(),
            waiting: BTreeSet::new(),
            early: BTreeSet::new(),
            lost: BTreeSet::new(),
            beyond: 0,
        }
    }

    /// A packet arrives. `placed` gets the displacements that are known now, in order of arrival.
    pub(super) fn arrive(&mut self, number: u64, tag: u64, placed: &mut (impl FnMut(u64, i64) + ?Sized)) {
        if number == self.index && self.window.is_empty() && self.early.is_empty() && self.lost.is_empty() {
            self.index += 1;
            return placed(tag, 0);
        }
        if number < self.index || self.early.contains(&number) || self.waiting.contains(&number) {
            // It was taken for lost, or is a copy.
            self.beyond += 1;
            return;
        }
        self.window.push_back((number, tag));
        self.waiting.insert(number);
        self.place(false, placed);
    }

    /// Notes that a packet is lost, so that no packet waits for it.
    pub(super) fn lost(&mut self, number: u64, placed: &mut (impl FnMut(u64, i64) + ?Sized)) {
        if number >= self.index && !self.early.contains(&number) && !self.waiting.contains(&number) {
            self.lost.insert(number);
            self.place(false, placed);
        }
    }

    /// Ends the stream: packets that have not arrived are lost.
    pub(super) fn finish(&mut self, placed: &mut (impl FnMut(u64, i64) + ?Sized)) {
        self.place(true, placed);
    }

    /// Packets displaced by more than the threshold.
    pub(super) fn beyond(&self) -> u64 {
        self.beyond
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.window.len()
    }

    fn place(&mut self, is_end: bool, placed: &mut (impl FnMut(u64, i64) + ?Sized)) {
        while let Some(&(number, tag)) = self.window.front() {
            while self.lost.remove(&self.index) {
                self.index += 1;
            }
            if !self.early.contains(&self.index) && !self.waiting.contains(&self.index) {
                if self.window.len() as u64 <= self.threshold && !is_end {
                    return;
                }
                // Lost. For each packet that waits with a number below the index there is one above
                // it, that has taken an earlier index.
                let next = |of: &BTreeSet<u64>| of.range(self.index..).next().copied();
                let next = next(&self.early).into_iter().chain(next(&self.waiting)).min();
                self.index = next.unwrap_or(number.max(self.index));
                self.lost = self.lost.split_off(&self.index);
            }
            self.window.pop_front();
            self.waiting.remove(&number);
            if number.abs_diff(self.index) > self.threshold {
                self.beyond += 1;
                continue;
            }
            placed(tag, self.index as i64 - number as i64);
            self.early.remove(&self.index);
            if number > self.index {
                self.early.insert(number);
            }
            self.index += 1;
        }
    }
}
