//! Reordering of a stream of packets, measured where they arrive.
//!
//! Packets are numbered in the order of sending, from 0; some are lost, some arrive twice. A
//! [`ReorderMeter`] takes the numbers in the order of arrival and keeps what the two standards
//! define, in memory that does not grow with the stream: reorder density and reorder
//! buffer-occupancy density with a displacement threshold (RFC 5236), and reordered packets, their
//! extent, late time and byte offset, n-reordering and reordering-free runs (RFC 4737). Further
//! copies of a packet are left out of everything.
//!
//! # Source
//! RFC 5236 sections 3, 6 and 7; RFC 4737 sections 3 to 5.
//!
//! # Departures
//! - RFC 4737 remembers every packet that is missing. Here only so many gaps are, the newest
//!   (4096); what fills an older one is counted like a further copy.
//! - n is counted up to the displacement threshold.
//! - Whoever knows that a packet is lost may say so ([`ReorderMeter::lost`]): then neither its
//!   place nor the buffer waits for the threshold. Displacements are the same, occupancies smaller.

use std::collections::VecDeque;

use ackclock_units::{Span, Time};

use crate::{Distribution, Histogram, NReordering, PacketReordering, ReorderFreeRuns};
pub use csv::{REORDERING_COLUMNS, ReorderingCsv, ReorderingRecord, ReorderingSink};
pub use each::{
    DISPLACEMENT_COLUMNS, DisplacementCsv, DisplacementMeter, DisplacementRecord, DisplacementSink, PacketDisplacement,
};

use behind::Behind;
use buffer::ReorderBuffer;
use gaps::Gaps;
use places::DisplacementWindow;
use tally::DisplacementTally;

mod behind;
mod buffer;
mod csv;
mod each;
mod gaps;
mod places;
mod tally;

/// Shares of densities, and counts, that a summary lists at most on either side; it adds up the
/// others.
pub const MAX_BINS: usize = 256;

/// The default bound on displacements and occupancies, packets: more than fit into a window of 5
/// MB.
pub const DISPLACEMENT_THRESHOLD: u32 = 4096;

/// Measures the reordering of one stream at one place.
#[derive(Clone, Debug)]
pub struct ReorderMeter {
    threshold: u32,
    gaps: Gaps,
    places: DisplacementWindow,
    buffer: ReorderBuffer,
    behind: Behind,
    packets: u64,
    duplicates: u64,
    displacement: DisplacementTally,
    /// Packets that arrived behind n later ones, by n, from 1.
    n_reordered: Vec<u64>,
    extent: Histogram,
    late: Histogram,
    byte_offset: Histogram,
    /// Packets in order since the last reordered one.
    run: u64,
    runs: Histogram,
    squares: u128,
    intervals: Intervals,
}

/// The packets that arrived in one interval.
#[derive(Clone, Debug, PartialEq)]
pub struct ReorderInterval {
    /// Start of the interval.
    pub from: Time,
    /// Packets, without further copies.
    pub packets: u64,
    /// Packets of these that arrived behind one sent later (RFC 4737).
    pub reordered: u64,
    /// Packets that arrived before their places (RFC 5236).
    pub early: u64,
    /// Packets that arrived in their places.
    pub on_time: u64,
    /// Packets that arrived behind their places. A packet displaced beyond the threshold counts in
    /// none of these three.
    pub late: u64,
    /// The displacements.
    pub displacement: Distribution,
    /// Further copies.
    pub duplicates: u64,
}

/// Intervals that had arrivals and are not handed out: until all displacements are known.
#[derive(Clone, Debug)]
struct Intervals {
    every: Option<Span>,
    open: VecDeque<OpenInterval>,
    done: Vec<ReorderInterval>,
}

#[derive(Clone, Debug, Default)]
struct OpenInterval {
    number: u64,
    packets: u64,
    reordered: u64,
    duplicates: u64,
    displacement: DisplacementTally,
}

impl ReorderMeter {
    /// A meter with this threshold for displacements and buffer occupancies (DT and BT of RFC
    /// 5236), packets, that hands out intervals of this length, if there are to be any.
    pub fn new(threshold: u32, every: Option<Span>) -> ReorderMeter {
        ReorderMeter {
            threshold,
            gaps: Gaps::default(),
            places: DisplacementWindow::new(threshold),
            buffer: ReorderBuffer::new(threshold),
            behind: Behind::new(threshold),
            packets: 0,
            duplicates: 0,
            displacement: DisplacementTally::default(),
            n_reordered: Vec::new(),
            extent: Histogram::new(),
            late: Histogram::new(),
            byte_offset: Histogram::new(),
            run: 0,
            runs: Histogram::new(),
            squares: 0,
            intervals: Intervals {
                // An interval without length has no end.
                every: every.map(|every| every.max(Span::from_nanos(1))),
                open: VecDeque::new(),
                done: Vec::new(),
            },
        }
    }

    /// Notes the arrival of the packet with this position in the order of sending, of `bytes`
    /// bytes. Times never go back.
    pub fn arrive(&mut self, number: u64, at: Time, bytes: u32) {
        let Some(arrival) = self.gaps.arrive(number, self.packets, at, bytes) else {
            return self.arrive_again(at);
        };
        let n = self.behind.arrive(number, self.packets);
        self.packets += 1;
        match arrival.reordered {
            Some(reordered) => {
                self.extent.add(reordered.extent);
                self.late.add(reordered.late.as_nanos());
                self.byte_offset.add(reordered.bytes);
                self.runs.add(self.run);
                self.squares += u128::from(self.run) * u128::from(self.run);
                self.run = 0;
            }
            None => self.run += 1,
        }
        if let Some(bin) = (n as usize).checked_sub(1) {
            if self.n_reordered.len() <= bin {
                self.n_reordered.resize(bin + 1, 0);
            }
            self.n_reordered[bin] += 1;
        }
        self.buffer.arrive(number);
        let ReorderMeter { places, displacement, intervals, .. } = self;
        let interval = intervals.at(at, |interval| {
            interval.packets += 1;
            interval.reordered += u64::from(arrival.reordered.is_some());
        });
        places.arrive(number, interval, &mut |interval, by| {
            displacement.add(by);
            intervals.placed(interval, by);
        });
    }

    /// A further copy of a packet arrives, whichever it is. Times never go back.
    pub fn arrive_again(&mut self, at: Time) {
        self.duplicates += 1;
        self.intervals.at(at, |interval| interval.duplicates += 1);
    }

    /// The packet with this place in the order of sending will not arrive, none of its copies: as
    /// who loses it knows. Without this, a packet is taken for lost by the threshold.
    pub fn lost(&mut self, number: u64) {
        self.buffer.lost(number);
        let ReorderMeter { places, displacement, intervals, .. } = self;
        places.lost(number, &mut |interval, by| {
            displacement.add(by);
            intervals.placed(interval, by);
        });
    }

    /// The stream has ended: what has not arrived is lost.
    pub fn finish(&mut self) {
        let ReorderMeter { places, displacement, intervals, .. } = self;
        places.finish(&mut |interval, by| {
            displacement.add(by);
            intervals.placed(interval, by);
        });
        intervals.close_before(u64::MAX);
    }

    /// Packets that have arrived, without further copies.
    pub fn packets(&self) -> u64 {
        self.packets
    }

    /// The intervals of which everything is known and that were not taken before, in order of time.
    /// Those without arrivals, also of further copies, are left out.
    pub fn take_intervals(&mut self) -> impl Iterator<Item = ReorderInterval> + '_ {
        self.intervals.done.drain(..)
    }

    /// The measures so far; of an unfinished stream, without the packets whose displacement depends
    /// on missing ones.
    pub fn summary(&self) -> PacketReordering {
        let share = |part: u64, of: u64| if of > 0 { part as f64 / of as f64 } else { 0.0 };
        let (placed, reordered) = (self.displacement.samples(), self.runs.samples());
        let in_order = self.packets - reordered;
        let ratio = |of: u64, by: u64| (by > 0).then(|| of as f64 / by as f64);
        let listed = self.n_reordered.len().min(MAX_BINS);
        PacketReordering {
            packets: self.packets,
            duplicates: self.duplicates,
            threshold: self.threshold,
            beyond: self.places.beyond(),
            reordered,
            ratio: ratio(reordered, self.packets),
            early: share(self.displacement.negatives(), placed),
            on_time: share(self.displacement.zeros(), placed),
            late: share(self.displacement.positives(), placed),
            displacement: self.displacement.distribution(),
            density: self.displacement.density(MAX_BINS),
            rbd: self.buffer.density(MAX_BINS),
            extent: self.extent.distribution(1.0),
            late_ms: self.late.distribution(1e-6),
            byte_offset: self.byte_offset.distribution(1.0),
            n_reordering: NReordering {
                counts: self.n_reordered[..listed].to_vec(),
                above: self.n_reordered[listed..].iter().sum(),
                at_least_3: share(self.n_reordered.iter().skip(2).sum(), self.packets),
            },
            free_runs: ReorderFreeRuns {
                count: reordered,
                mean: ratio(in_order, reordered),
                // q/a against a/x, RFC 4737 section 4.6.3.
                variation: ratio(in_order, reordered).filter(|_| in_order > 0).map(|mean| {
                    let squares = self.squares as f64 / in_order as f64;
                    squares / mean
                }),
                length: self.runs.distribution(1.0),
            },
        }
    }
}

impl Intervals {
    /// Something arrives, which is counted; returns the number of its interval.
    fn at(&mut self, at: Time, count: impl FnOnce(&mut OpenInterval)) -> u64 {
        let Some(every) = self.every else { return 0 };
        let number = at.as_nanos() / every.as_nanos();
        if self.open.back().is_none_or(|last| last.number < number) {
            self.open.push_back(OpenInterval { number, ..OpenInterval::default() });
        }
        if let Some(last) = self.open.back_mut() {
            count(last);
        }
        number
    }

    /// The displacement of a packet of this interval is known, and of all that arrived before it.
    fn placed(&mut self, number: u64, by: i64) {
        if self.every.is_none() {
            return;
        }
        self.close_before(number);
        if let Some(first) = self.open.front_mut() {
            first.displacement.add(by);
        }
    }

    fn close_before(&mut self, number: u64) {
        let Some(every) = self.every else { return };
        while self.open.front().is_some_and(|first| first.number < number) {
            let Some(interval) = self.open.pop_front() else { return };
            let OpenInterval { number, packets, reordered, duplicates, displacement } = interval;
            self.done.push(ReorderInterval {
                from: Time::from_nanos(number * every.as_nanos()),
                packets,
                reordered,
                early: displacement.negatives(),
                on_time: displacement.zeros(),
                late: displacement.positives(),
                displacement: displacement.distribution(),
                duplicates,
            });
        }
    }
}

#[cfg(test)]
mod tests;
