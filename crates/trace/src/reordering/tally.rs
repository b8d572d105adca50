//! Exact counts of displacements.

use crate::{Distribution, Quantiles, ReorderDensity};

/// Counts by displacement. Displacements are within a threshold, so that memory is bounded.
#[derive(Clone, Debug, Default)]
pub(super) struct DisplacementTally {
    /// Counts of late packets by displacement less 1, and of early ones by its negative less 1.
    late: Vec<u64>,
    early: Vec<u64>,
    zeros: u64,
    positives: u64,
    negatives: u64,
}

impl DisplacementTally {
    pub(super) fn add(&mut self, by: i64) {
        let side = match by {
            0 => {
                self.zeros += 1;
                return;
            }
            1.. => {
                self.positives += 1;
                &mut self.late
            }
            _ => {
                self.negatives += 1;
                &mut self.early
            }
        };
        let bin = by.unsigned_abs() as usize - 1;
        if side.len() <= bin {
            side.resize(bin + 1, 0);
        }
        side[bin] += 1;
    }

    pub(super) fn samples(&self) -> u64 {
        self.negatives + self.zeros + self.positives
    }

    pub(super) fn negatives(&self) -> u64 {
        self.negatives
    }

    pub(super) fn zeros(&self) -> u64 {
        self.zeros
    }

    pub(super) fn positives(&self) -> u64 {
        self.positives
    }

    /// Displacements with their counts, ascending, those that did not occur among them.
    fn counts(&self) -> impl Iterator<Item = (i64, u64)> {
        let early = self.early.iter().enumerate().rev().map(|(bin, &count)| (-(bin as i64) - 1, count));
        let late = self.late.iter().zip(1i64..).map(|(&count, by)| (by, count));
        early.chain([(0, self.zeros)]).chain(late)
    }

    pub(super) fn distribution(&self) -> Distribution {
        let samples = self.samples();
        let ranked = |rank: u64| {
            let mut below = 0;
            let reached = |&(_, count): &(i64, u64)| {
                below += count;
                below >= rank
            };
            self.counts().find(reached).map(|(by, _)| by as f64)
        };
        let at =
            |q: f64| (samples > 0).then(|| ((q * samples as f64).ceil() as u64).clamp(1, samples)).and_then(ranked);
        Distribution {
            min: at(0.0),
            quantiles: Quantiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) },
            max: at(1.0),
            samples,
        }
    }

    /// The shares of displacements from the first to the last that occurred, `most` on either side
    /// at most.
    pub(super) fn density(&self, most: usize) -> ReorderDensity {
        let samples = self.samples();
        if samples == 0 {
            return ReorderDensity::default();
        }
        let share = |count: u64| count as f64 / samples as f64;
        let least = -(most as i64);
        let inside = |by: i64| by >= least && by <= most as i64;
        let listed =
            || self.counts().skip_while(|&(by, count)| count == 0 || !inside(by)).filter(|&(by, _)| inside(by));
        let mut shares: Vec<f64> = listed().map(|(_, count)| share(count)).collect();
        while shares.last() == Some(&0.0) {
            shares.pop();
        }
        ReorderDensity {
            from: listed().next().map_or(0, |(by, _)| by),
            shares,
            below: share(self.counts().filter(|&(by, _)| by < least).map(|(_, count)| count).sum()),
            above: share(self.counts().filter(|&(by, _)| by > most as i64).map(|(_, count)| count).sum()),
        }
    }
}
