//! Distributions in constant memory.

use crate::{Distribution, MeanQuantiles, Quantiles};

/// Buckets per power of two: the midpoint of a bucket is within 1/1024 of its values; values below
/// 512 are exact.
const SUB_BITS: u32 = 9;
const SUBS: usize = 1 << SUB_BITS;

/// One block for the values below [`SUBS`], one for each power of two above.
const BLOCKS: usize = 64 - SUB_BITS as usize + 1;

/// A log-linear histogram of unsigned values: adding costs a few instructions, memory is taken once
/// per power of two that occurs, and quantiles are within 0.1 % of the exact ones. Weights are
/// counts, or times.
#[derive(Clone, Debug)]
pub struct Histogram {
    blocks: [Option<Box<[u64; SUBS]>>; BLOCKS],
    total: u64,
    samples: u64,
    sum: u128,
    /// `u64::MAX` without values.
    min: u64,
    max: u64,
}

impl Default for Histogram {
    fn default() -> Histogram {
        Histogram { blocks: [const { None }; BLOCKS], total: 0, samples: 0, sum: 0, min: u64::MAX, max: 0 }
    }
}

impl Histogram {
    /// An empty histogram.
    pub fn new() -> Histogram {
        Histogram::default()
    }

    /// Adds a value.
    pub fn add(&mut self, value: u64) {
        self.add_weighted(value, 1);
    }

    /// Adds a value that counts `weight` times; nothing for weight 0.
    #[inline(never)]
    pub fn add_weighted(&mut self, value: u64, weight: u64) {
        self.add_weight(value, weight);
        self.samples += u64::from(weight > 0);
    }

    /// Adds weight without a sample: a part of what a value weighs, of which more may come.
    #[inline]
    pub fn add_weight(&mut self, value: u64, weight: u64) {
        if weight == 0 {
            return;
        }
        let bucket = bucket(value);
        self.blocks[bucket / SUBS].get_or_insert_with(|| Box::new([0; SUBS]))[bucket % SUBS] += weight;
        self.min = self.min.min(value);
        self.max = self.max.max(value);
        self.total += weight;
        self.sum += u128::from(value) * u128::from(weight);
    }

    /// Adds a value `times` times.
    pub fn add_repeated(&mut self, value: u64, times: u64) {
        self.add_weighted(value, times);
        self.samples += times.saturating_sub(1);
    }

    /// Adds samples whose weight was added by [`Histogram::add_weight`].
    pub fn add_samples(&mut self, samples: u64) {
        self.samples += samples;
    }

    /// What was added since this was `earlier`, which it once was. Its extremes are as exact as
    /// quantiles are.
    pub fn since(&self, earlier: &Histogram) -> Histogram {
        let mut blocks = self.blocks.clone();
        let (mut min, mut max) = (u64::MAX, 0);
        for (number, (block, before)) in blocks.iter_mut().zip(&earlier.blocks).enumerate() {
            let Some(block) = block else { continue };
            for (offset, count) in block.iter_mut().enumerate() {
                *count -= before.as_ref().map_or(0, |before| before[offset]);
                if *count > 0 {
                    let value = (midpoint(number * SUBS + offset) as u64).clamp(self.min, self.max);
                    (min, max) = (min.min(value), max.max(value));
                }
            }
        }
        let (total, samples) = (self.total - earlier.total, self.samples - earlier.samples);
        Histogram { blocks, total, samples, sum: self.sum - earlier.sum, min, max }
    }

    /// How many values were added.
    pub fn samples(&self) -> u64 {
        self.samples
    }

    /// The weighted mean.
    pub fn mean(&self) -> Option<f64> {
        (self.total > 0).then(|| self.sum as f64 / self.total as f64)
    }

    /// The smallest value `v` such that at least the fraction `q` of the weight lies at or below
    /// it, to the resolution of the buckets (their midpoint), within the smallest and largest value
    /// seen.
    pub fn quantile(&self, q: f64) -> Option<f64> {
        if self.total == 0 {
            return None;
        }
        self.ranked(((q * self.total as f64).ceil() as u64).clamp(1, self.total))
    }

    /// The value of this rank by weight, the smallest being 1.
    fn ranked(&self, rank: u64) -> Option<f64> {
        let mut below = 0;
        for (number, block) in self.blocks.iter().enumerate() {
            for (offset, &count) in block.iter().flat_map(|block| block.iter()).enumerate() {
                below += count;
                if below >= rank {
                    return Some(midpoint(number * SUBS + offset).clamp(self.min as f64, self.max as f64));
                }
            }
        }
        None
    }

    /// Percentiles of the values times `scale`.
    pub fn quantiles(&self, scale: f64) -> Quantiles {
        let at = |q| self.quantile(q).map(|value| rounded(value * scale));
        Quantiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) }
    }

    /// Mean and percentiles of the values times `scale`.
    pub fn mean_quantiles(&self, scale: f64) -> MeanQuantiles {
        MeanQuantiles { mean: self.mean().map(|mean| rounded(mean * scale)), quantiles: self.quantiles(scale) }
    }

    /// Extremes, percentiles and the number of values, the values times `scale`.
    pub fn distribution(&self, scale: f64) -> Distribution {
        let extreme = |value: u64| (self.samples > 0).then(|| rounded(value as f64 * scale));
        Distribution {
            min: extreme(self.min),
            quantiles: self.quantiles(scale),
            max: extreme(self.max),
            samples: self.samples,
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

    /// How many values were added.
    pub fn samples(&self) -> u64 {
        self.negative.samples + self.positive.samples
    }

    /// How many were below 0.
    pub fn negatives(&self) -> u64 {
        self.negative.samples
    }

    /// As [`Histogram::quantile`].
    pub fn quantile(&self, q: f64) -> Option<f64> {
        let total = self.samples();
        if total == 0 {
            return None;
        }
        let rank = ((q * total as f64).ceil() as u64).clamp(1, total);
        match rank.checked_sub(self.negative.total) {
            None | Some(0) => self.negative.ranked(self.negative.total + 1 - rank).map(|value| -value),
            Some(rank) => self.positive.ranked(rank),
        }
    }

    /// Extremes, percentiles and the number of values, the values times `scale`.
    pub fn distribution(&self, scale: f64) -> Distribution {
        let at = |q| self.quantile(q).map(|value| rounded(value * scale));
        let (negative, positive) = (self.negative.samples > 0, self.positive.samples > 0);
        let extreme = |value: f64| (negative || positive).then(|| rounded(value * scale));
        Distribution {
            min: extreme(if negative { -(self.negative.max as f64) } else { self.positive.min as f64 }),
            quantiles: Quantiles { p5: at(0.05), p25: at(0.25), p50: at(0.5), p75: at(0.75), p95: at(0.95) },
            max: extreme(if positive { self.positive.max as f64 } else { -(self.negative.min as f64) }),
            samples: self.samples(),
        }
    }
}

/// To six decimals: digits beyond the resolution say nothing.
fn rounded(value: f64) -> f64 {
    (value * 1e6).round() / 1e6
}

fn bucket(value: u64) -> usize {
    if value < SUBS as u64 {
        return value as usize;
    }
    let shift = 63 - value.leading_zeros() - SUB_BITS;
    // The top bit is implied: SUBS buckets per power of two.
    (shift as usize + 1) * SUBS + ((value >> shift) as usize - SUBS)
}

fn midpoint(bucket: usize) -> f64 {
    if bucket < SUBS {
        return bucket as f64;
    }
    let shift = bucket / SUBS - 1;
    let low = ((bucket % SUBS + SUBS) as u64) << shift;
    low as f64 + (((1u64 << shift) - 1) as f64) / 2.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn small_values_are_exact() {
        let mut histogram = Histogram::default();
        (1..=100).for_each(|value| histogram.add(value));
        assert_eq!(histogram.quantile(0.5), Some(50.0));
        assert_eq!(histogram.quantile(0.95), Some(95.0));
        assert_eq!(histogram.quantile(0.0), Some(1.0));
        assert_eq!(histogram.quantile(1.0), Some(100.0));
        assert_eq!(histogram.mean(), Some(50.5));
    }

    #[test]
    fn weights_count() {
        let mut histogram = Histogram::default();
        histogram.add_weighted(1, 10);
        histogram.add_weighted(9, 30);
        histogram.add_weighted(400, 0);
        assert_eq!((histogram.quantile(0.25), histogram.quantile(0.26)), (Some(1.0), Some(9.0)));
        assert_eq!(histogram.distribution(1.0).max, Some(9.0));
    }

    #[test]
    fn what_was_added_since() {
        let mut histogram = Histogram::default();
        [3, 700, 90_000].into_iter().for_each(|value| histogram.add(value));
        let earlier = histogram.clone();
        assert_eq!(histogram.since(&earlier).distribution(1.0), Distribution::default());
        (101..=300).for_each(|value| histogram.add(value));
        let since = histogram.since(&earlier);
        let mut alone = Histogram::default();
        (101..=300).for_each(|value| alone.add(value));
        assert_eq!(since.distribution(1.0), alone.distribution(1.0));
        assert_eq!(since.mean(), alone.mean());
    }

    #[test]
    fn without_values_there_is_nothing() {
        assert_eq!(Histogram::default().distribution(1.0), Distribution::default());
    }

    proptest! {
        #[test]
        fn quantiles_are_within_a_thousandth(mut values in prop::collection::vec(0u64..1 << 40, 1..200), q in 0.0f64..=1.0) {
            let mut histogram = Histogram::default();
            values.iter().for_each(|&value| histogram.add(value));
            values.sort_unstable();
            let rank = ((q * values.len() as f64).ceil() as usize).clamp(1, values.len());
            let exact = values[rank - 1] as f64;
            let found = histogram.quantile(q).unwrap();
            prop_assert!((found - exact).abs() <= exact / 1024.0, "{} for {}", found, exact);
        }

        #[test]
        fn every_value_has_a_bucket(value: u64) {
            let middle = midpoint(bucket(value));
            prop_assert!((middle - value as f64).abs() <= value as f64 / 1024.0);
        }
    }

    #[test]
    fn signs_are_kept() {
        let mut histogram = SignedHistogram::new();
        assert_eq!(histogram.distribution(1.0), Distribution::default());
        for value in [-20, -3, -3, 0, 0, 1, 7, 30] {
            histogram.add(value);
        }
        assert_eq!((histogram.samples(), histogram.negatives()), (8, 3));
        // The smallest value with at least the fraction at or below it: of eight, the first,
        // second, fourth, sixth, eighth.
        let of = |q| histogram.quantile(q).expect("there are samples");
        assert_eq!([0.01, 0.25, 0.5, 0.75, 0.95].map(of), [-20.0, -3.0, 0.0, 1.0, 30.0]);
        let distribution = histogram.distribution(1.0);
        assert_eq!((distribution.min, distribution.max), (Some(-20.0), Some(30.0)));
    }
}
