//! Reordered packets (RFC 4737 section 3) and their offsets (section 4).
//!
//! A packet is reordered if one sent later has arrived. So what is missing below the highest number
//! is known: gaps, each with the packet that opened it, the earliest that arrived of those sent
//! later than what is missing there.

use std::collections::BTreeMap;

use ackclock_units::{Span, Time};

/// Gaps that are remembered, the newest.
pub(super) const GAPS: usize = 4096;

/// The missing numbers below the highest.
#[derive(Clone, Debug, Default)]
pub(super) struct Gaps {
    /// One above the highest number: NextExp.
    next: u64,
    /// Gaps by their first missing number.
    gaps: BTreeMap<u64, Gap>,
}

/// Numbers that are missing.
#[derive(Clone, Copy, Debug)]
struct Gap {
    /// One above the last missing number.
    end: u64,
    /// The place in the order of arrival, and the time, of the packet that opened it.
    place: u64,
    at: Time,
    /// Bytes of the packets from its end to the next gap.
    bytes: u64,
}

/// The classification of an arriving packet.
#[derive(Clone, Copy, Debug)]
pub(super) struct ClassifiedArrival {
    pub(super) reordered: Option<Reordered>,
}

/// The offsets of a reordered packet from the earliest arrival of a packet sent later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Reordered {
    /// Extent in arrivals (section 4.2).
    pub(super) extent: u64,
    /// Late time (section 4.3).
    pub(super) late: Span,
    /// Byte offset: bytes that have arrived and were sent later (section 4.4).
    pub(super) bytes: u64,
}

impl Gaps {
    /// A packet arrives after `place` others; `None` for one that is not missing.
    pub(super) fn arrive(&mut self, number: u64, place: u64, at: Time, bytes: u32) -> Option<ClassifiedArrival> {
        let bytes = u64::from(bytes);
        if number >= self.next {
            if number > self.next {
                self.gaps.insert(self.next, Gap { end: number, place, at, bytes });
                if self.gaps.len() > GAPS {
                    self.gaps.pop_first();
                }
            } else if let Some(mut last) = self.gaps.last_entry() {
                last.get_mut().bytes += bytes;
            }
            self.next = number + 1;
            return Some(ClassifiedArrival { reordered: None });
        }
        let (&start, &gap) = self.gaps.range(..=number).next_back().filter(|(_, gap)| number < gap.end)?;
        let above: u64 = self.gaps.range(start..).map(|(_, gap)| gap.bytes).sum();
        self.fill(start, gap, number, bytes);
        let reordered = Reordered { extent: place - gap.place, late: at.since(gap.at), bytes: above };
        Some(ClassifiedArrival { reordered: Some(reordered) })
    }

    #[cfg(test)]
    pub(super) fn remembered(&self) -> usize {
        self.gaps.len()
    }

    /// A number that was missing is not any more. What is left of its gap was opened by the same
    /// packet.
    fn fill(&mut self, start: u64, gap: Gap, number: u64, bytes: u64) {
        self.gaps.remove(&start);
        let mut joined = bytes;
        if number + 1 < gap.end {
            self.gaps.insert(number + 1, gap);
        } else {
            joined += gap.bytes;
        }
        if start < number {
            self.gaps.insert(start, Gap { end: number, bytes: joined, ..gap });
        } else if let Some((_, below)) = self.gaps.range_mut(..start).next_back() {
            below.bytes += joined;
        }
        if self.gaps.len() > GAPS {
            self.gaps.pop_first();
        }
    }
}
