//! The occupancy of a buffer that restores the order (RFC 5236 section 7.2).
//!
//! A packet that arrives before one with a smaller number waits in the buffer for it. When the
//! buffer is full, the packet that is waited for is taken for lost.
//!
//! # Departures
//! - Section 7.2 does not say what becomes of the packet that finds the buffer full and does not
//!   follow what then leaves it. Here it takes the room: otherwise it would be waited for although
//!   it has arrived.

use std::collections::BTreeSet;

use crate::BufferDensity;

/// The buffer, and how many arrivals left it with which occupancy.
#[derive(Clone, Debug)]
pub(super) struct ReorderBuffer {
    threshold: usize,
    expected: u64,
    held: BTreeSet<u64>,
    /// Numbers, above the expected one, of packets that are known to be lost.
    lost: BTreeSet<u64>,
    /// Arrivals by the occupancy after them.
    pub(super) counts: Vec<u64>,
}

impl ReorderBuffer {
    pub(super) fn new(threshold: u32) -> ReorderBuffer {
        ReorderBuffer {
            threshold: threshold as usize,
            expected: 0,
            held: BTreeSet::new(),
            lost: BTreeSet::new(),
            counts: Vec::new(),
        }
    }

    /// A packet arrives. What is too late, or a copy, is not counted.
    pub(super) fn arrive(&mut self, number: u64) {
        if number < self.expected || self.held.contains(&number) {
            return;
        }
        if number > self.expected {
            if self.held.len() >= self.threshold {
                let next = self.held.first().map_or(number, |&first| first.min(number));
                self.expected = next;
                self.lost = self.lost.split_off(&next);
            }
            if number > self.expected {
                self.held.insert(number);
            } else {
                self.expected += 1;
            }
        } else {
            self.expected += 1;
        }
        self.free();
        let occupancy = self.held.len();
        if self.counts.len() <= occupancy {
            self.counts.resize(occupancy + 1, 0);
        }
        self.counts[occupancy] += 1;
    }

    /// A packet will not arrive: it is not waited for.
    pub(super) fn lost(&mut self, number: u64) {
        if number >= self.expected && !self.held.contains(&number) {
            self.lost.insert(number);
            self.free();
        }
    }

    /// Releases the packets that are next in order.
    fn free(&mut self) {
        while self.held.remove(&self.expected) || self.lost.remove(&self.expected) {
            self.expected += 1;
        }
    }

    /// The shares of arrivals by occupancy, `most` of them above 0 at most.
    pub(super) fn density(&self, most: usize) -> BufferDensity {
        let all: u64 = self.counts.iter().sum();
        let share = |count: u64| if all > 0 { count as f64 / all as f64 } else { 0.0 };
        let listed = self.counts.len().min(most + 1);
        let sum: u128 = self.counts.iter().zip(0u128..).map(|(&count, occupancy)| u128::from(count) * occupancy).sum();
        BufferDensity {
            shares: self.counts[..listed].iter().map(|&count| share(count)).collect(),
            above: share(self.counts[listed..].iter().sum()),
            mean: (all > 0).then(|| sum as f64 / all as f64),
            max: self.counts.len().saturating_sub(1) as u64,
        }
    }
}
