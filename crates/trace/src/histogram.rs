//! Distributions in constant memory.

use ackclock_units::prefetch;

use self::cells::{Cells, SUB_BITS, SUBS};
use crate::{Distribution, MeanQuantiles, Quantiles};

mod cells;

/// Values whose buckets are written down before they are counted.
const LOG: usize = 31;

/// The number of samples from which memory is taken for a power of two at a time: in the long run,
/// never.
const MANY: u64 = 4096;

/// A log-linear histogram of unsigned values: adding costs a few instructions, an empty one is a
/// cache line and one of a few values two, further memory is taken as values occur, and quantiles
/// are within 0.1 % of the exact ones. Weights are counts, or times.
#[derive(Clone, Debug)]
pub struct Histogram {
    /// Samples, other than those in the log.
    samples: u64,
    /// Total weight less the number of samples.
    surplus: u64,
    sum: u128,
    /// `u64::MAX` without values.
    min: u64,
    max: u64,
    /// Buckets of the last samples of weight 1.
    log: Option<Box<Log>>,
    /// The counts of all others.
    cells: Option<Box<Cells>>,
}

const _: () = assert!(size_of::<Histogram>() == 64, "an empty histogram should be a cache line");

#[derive(Clone, Debug)]
#[repr(align(64))]
struct Log {
    length: u16,
    buckets: [u16; LOG],
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { samples: 0, surplus: 0, sum: 0, min: u64::MAX, max: 0, log: None, cells: None }
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Adds a value.
    #[inline]
    pub fn add(&mut self, value: u64) {
        self.sum += u128::from(value);
        self.see(value);
        let bucket = bucket(value);
        match &mut self.log {
            Some(log) if usize::from(log.length) < LOG => {
                log.buckets[usize::from(log.length)] = bucket;
                log.length += 1;
            }
            _ => self.begin_log(bucket),
        }
    }

    /// Adds a value that counts `weight` times; nothing for weight 0.
    pub fn add_weighted(&mut self, value: u64, weight: u64) {
        self.add_weight(value, weight);
        self.add_samples(u64::from(weight > 0));
    }

    /// Adds weight without a sample: a part of what a value weighs, of which more may come.
    pub fn add_weight(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        self.sum += u128::from(value) * u128::from(weight);
        self.see(value);
        self.surplus = self.surplus.wrapping_add(weight);
        self.cells.get_or_insert_default().add(bucket(value), weight);
    }

    /// Starts to fetch into the cache what [`Histogram::add`] writes to behind the histogram.
    #[inline]
    pub fn prefetch_behind(&self) {
        if let Some(log) = &self.log {
            prefetch(&**log);
        }
    }

    /// Adds samples whose weight was added by [`Histogram::add_weight`].
    pub fn add_samples(&mut self, samples: u64) {
        self.samples += samples;
        self.surplus = self.surplus.wrapping_sub(samples);
    }

    /// Adds a value `times` times.
    pub fn add_repeated(&mut self, value: u64, times: u64) {
        match times {
            1 => self.add(value),
            _ => {
                self.add_weight(value, times);
                self.add_samples(times);
            }
        }
    }

    #[inline(always)]
    fn see(&mut self, value: u64) {
        if value < self.min {
            self.min = value;
        }
        if value > self.max {
            self.max = value;
        }
    }

    /// Counts what is in the log, and begins it anew with a bucket.
    #[cold]
    #[inline(never)]
    fn begin_log(&mut self, bucket: u16) {
        match &mut self.log {
            Some(log) => {
                let cells = self.cells.get_or_insert_default();
                cells.add_each(&log.buckets[..log.length.into()]);
                self.samples += u64::from(log.length);
                if self.samples >= MANY {
                    cells.take_whole_blocks();
                }
                (log.length, log.buckets[0]) = (1, bucket);
            }
            None => self.log = Some(Box::new(Log { length: 1, buckets: [bucket; LOG] })),
        }
    }

    /// The buckets of the last samples.
    fn logged(&self) -> &[u16] {
        self.log.as_ref().map_or(&[], |log| &log.buckets[..log.length.into()])
    }

    /// Buckets with their counts, in ascending order.
    pub(crate) fn counts(&self) -> Vec<(u16, u64)> {
        match &self.cells {
            Some(cells) => cells.list(self.logged()),
            None => Cells::default().list(self.logged()),
        }
    }

    fn total(&self) -> u64 {
        self.samples().wrapping_add(self.surplus)
    }

    /// The values added since this histogram was `earlier`. Its extremes are as exact as quantiles
    /// are.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let (samples, total) = (self.samples() - earlier.samples(), self.total() - earlier.total());
        let mut since = Histogram {
            samples,
            surplus: total.wrapping_sub(samples),
            sum: self.sum - earlier.sum,
            ..Histogram::default()
        };
        let earlier = earlier.counts();
        let mut before = earlier.iter().peekable();
        for (bucket, count) in self.counts() {
            let count = count - before.next_if(|before| before.0 == bucket).map_or(0, |before| before.1);
            if count > 0 {
                since.see((midpoint(bucket) as u64).clamp(self.min, self.max));
                since.cells.get_or_insert_default().add(bucket, count);
            }
        }
        since
    }

    /// Adds everything that was added to another histogram.
    pub fn absorb(&mut self, other: &Histogram) {
        let (samples, total) = (other.samples(), other.total());
        self.samples += samples;
        self.surplus = self.surplus.wrapping_add(total.wrapping_sub(samples));
        self.sum += other.sum;
        self.min = self.min.min(other.min);
        self.max = self.max.max(other.max);
        for (bucket, count) in other.counts() {
            self.cells.get_or_insert_default().add(bucket, count);
        }
    }

    /// The number of values.
    pub fn samples(&self) -> u64 {
        self.samples + self.logged().len() as u64
    }

    /// The sum of all values, each as often as it counts.
    pub fn sum(&self) -> u128 {
        self.sum
    }

    /// The weighted mean.
    pub fn mean(&self) -> Option<f64> {
        let total = self.total();
        (total > 0).then(|| self.sum as f64 / total as f64)
    }

    /// The smallest value `v` such that at least the fraction `q` of the weight lies at or below
    /// it, to the resolution of the buckets (their midpoint), within the smallest and largest value
    /// seen.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.quantile_of(&self.counts(), q)
    }

    fn quantile_of(&self, counts: &[(u16, u64)], q: f64) -> Option<f64> {
        let total = self.total();
        if total == 0 {
            return None;
        }
        self.ranked(counts, ((q * total as f64).ceil() as u64).clamp(1, total))
    }

    /// The value of this rank by weight, the smallest being 1.
    fn ranked(&self, counts: &[(u16, u64)], rank: u64) -> Option<f64> {
        let mut below = 0;
        let reached = |&&(_, count): &&(u16, u64)| {
            below += count;
            below >= rank
        };
        let &(bucket, _) = counts.iter().find(reached)?;
        Some(midpoint(bucket).clamp(self.min as f64, self.max as f64))
    }

    /// Percentiles of the values times `scale`.
    pub fn quantiles(&self, scale: f64) -> Quantiles {
        let counts = self.counts();
        let at = |q| self.quantile_of(&counts, q).map(|value| rounded(value * scale));
        Quantiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) }
    }

    /// Mean and percentiles of the values times `scale`.
    pub fn mean_quantiles(&self, scale: f64) -> MeanQuantiles {
        MeanQuantiles { mean: self.mean().map(|mean| rounded(mean * scale)), quantiles: self.quantiles(scale) }
    }

    /// Extremes, percentiles and the number of values, the values times `scale`.
    pub fn distribution(&self, scale: f64) -> Distribution {
        let extreme = |value: u64| (self.samples() > 0).then(|| rounded(value as f64 * scale));
        Distribution {
            min: extreme(self.min),
            quantiles: self.quantiles(scale),
            max: extreme(self.max),
            samples: self.samples(),
        }
    }
}

/// A [`Histogram`] of values of either sign.
#[derive(Clone, Debug, Default)]
pub struct SignedHistogram {
    /// Values below 0, without their sign.
    negative: Histogram,
    /// The others.
    positive: Histogram,
}

impl SignedHistogram {
    /// An empty histogram.
    pub fn new() -> SignedHistogram {
        SignedHistogram::default()
    }

    /// Adds a value.
    pub fn add(&mut self, value: i64) {
        self.add_repeated(value, 1);
    }

    /// Adds a value `times` times.
    pub fn add_repeated(&mut self, value: i64, times: u64) {
        let side = if value < 0 { &mut self.negative } else { &mut self.positive };
        side.add_repeated(value.unsigned_abs(), times);
    }

    /// Adds what another one holds.
    pub fn absorb(&mut self, other: &SignedHistogram) {
        self.negative.absorb(&other.negative);
        self.positive.absorb(&other.positive);
    }

    /// The number of values.
    pub fn samples(&self) -> u64 {
        self.negative.samples() + self.positive.samples()
    }

    /// The number of values below 0.
    pub fn negatives(&self) -> u64 {
        self.negative.samples()
    }

    /// As [`Histogram::quantile`].
    pub fn quantile(&self, q: f64) -> Option<f64> {
        self.quantile_of([&self.negative.counts(), &self.positive.counts()], q)
    }

    fn quantile_of(&self, [negative, positive]: [&[(u16, u64)]; 2], q: f64) -> Option<f64> {
        let total = self.samples();
        if total == 0 {
            return None;
        }
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        let negatives = self.negatives();
        match rank.checked_sub(negatives) {
            None | Some(0) => self.negative.ranked(negative, negatives + 1 - rank).map(|value| -value),
            Some(rank) => self.positive.ranked(positive, rank),
        }
    }

    /// Extremes, percentiles and the number of values, the values times `scale`.
    pub fn distribution(&self, scale: f64) -> Distribution {
        let counts = [&self.negative, &self.positive].map(Histogram::counts);
        let at = |q| self.quantile_of([&counts[0], &counts[1]], q).map(|value| rounded(value * scale));
        let (negative, positive) = (self.negative.samples() > 0, self.positive.samples() > 0);
        let extreme = |value: f64| (negative || positive).then(|| rounded(value * scale));
        Distribution {
            min: extreme(if negative { -(self.negative.max as f64) } else { self.positive.min as f64 }),
            quantiles: Quantiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) },
            max: extreme(if positive { self.positive.max as f64 } else { -(self.negative.min as f64) }),
            samples: self.samples(),
        }
    }
}

/// The value rounded to six decimals: further digits are below the resolution.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

#[inline(always)]
fn bucket(value: u64) -> u16 {
    // SUBS buckets per power of two, of which the top bit is implied; one by one below twice SUBS.
    let shift = (value | SUBS as u64).ilog2() - SUB_BITS;
    (u64::from(shift) << SUB_BITS) as u16 + (value >> shift) as u16
}

fn midpoint(bucket: u16) -> f64 {
    let bucket = usize::from(bucket);
    if bucket < SUBS {
        return bucket as f64;
    }
    let shift = bucket / SUBS - 1;
    let low = ((bucket % SUBS + SUBS) as u64) << shift;
    low as f64 + (((1u64 << shift) - 1) as f64) / 2.0
}

#[cfg(test)]
mod tests;
