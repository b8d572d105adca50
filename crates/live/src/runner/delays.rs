//! Recent delays, in coarse histograms.

use ackclock_units::Span;

use crate::Late;

/// Buckets per power of two, as a power of two: reported values are within 3 %.
const SUB_BITS: u32 = 5;
const SUBS: usize = 1 << SUB_BITS;
/// The largest value, 18 minutes; longer times count as this.
const LONGEST: u64 = (1 << 40) - 1;
const BUCKETS: usize = bucket(LONGEST) + 1;

/// The measurements since the last report.
#[derive(Debug, Default)]
pub(super) struct RecentDelays {
    pub(super) lateness: DelayHistogram,
    pub(super) unread: DelayHistogram,
}

/// A histogram of times in coarse buckets, which is quick to read.
#[derive(Debug)]
pub(super) struct DelayHistogram {
    /// Counts since the last report, and before it.
    since: Vec<u32>,
    whole: Vec<u64>,
    max: u64,
}

impl Default for DelayHistogram {
    fn default() -> DelayHistogram {
        DelayHistogram { since: vec![0; BUCKETS], whole: vec![0; BUCKETS], max: 0 }
    }
}

impl DelayHistogram {
    #[inline]
    pub(super) fn add(&mut self, nanos: u64) {
        self.add_repeated(nanos, 1);
    }

    #[inline]
    pub(super) fn add_repeated(&mut self, nanos: u64, samples: u32) {
        let nanos = nanos.min(LONGEST);
        self.max = self.max.max(nanos);
        self.since[bucket(nanos)] += samples;
    }

    /// The quantiles since the last call.
    pub(super) fn take(&mut self) -> Late {
        let samples = self.since.iter().map(|&count| u64::from(count)).sum();
        let at = |share: u64| quantile(self.since.iter().map(|&count| u64::from(count)), samples, share);
        let (p50, p99) = (at(50), at(99));
        self.whole.iter_mut().zip(&self.since).for_each(|(whole, &since)| *whole += u64::from(since));
        self.since.fill(0);
        let all = self.whole.iter().sum();
        let run_p99 = quantile(self.whole.iter().copied(), all, 99);
        let max = (samples > 0).then_some(Span::from_nanos(std::mem::take(&mut self.max)));
        Late { p50, p99, max, run_p99, samples }
    }
}

/// The upper end of the bucket that contains percentile `share`.
fn quantile(counts: impl Iterator<Item = u64>, samples: u64, share: u64) -> Option<Span> {
    let wanted = (samples * share).div_ceil(100);
    let mut seen = 0;
    let found = counts.enumerate().find(|&(_, count)| {
        seen += count;
        count > 0 && seen >= wanted
    });
    found.map(|(bucket, _)| Span::from_nanos(end(bucket)))
}

/// The bucket of a value: values below 32 have their own, each power of two above has 32.
const fn bucket(nanos: u64) -> usize {
    if nanos < SUBS as u64 {
        return nanos as usize;
    }
    let shift = nanos.ilog2() - SUB_BITS;
    (shift as usize + 1) * SUBS + (nanos >> shift) as usize % SUBS
}

/// The largest value of a bucket.
fn end(bucket: usize) -> u64 {
    let (octave, part) = (bucket / SUBS, (bucket % SUBS) as u64);
    match octave.checked_sub(1) {
        None => part,
        Some(shift) => ((SUBS as u64 + part + 1) << shift) - 1,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buckets_are_in_order_and_hold_their_values() {
        let values = (0..200).chain((6..40).flat_map(|bit| [(1 << bit) - 1, 1 << bit, (1 << bit) + (1 << (bit - 1))]));
        for value in values {
            let end = end(bucket(value));
            assert!(end >= value && end - value <= value / SUBS as u64, "{value} is in a bucket up to {end}");
        }
        assert_eq!(end(BUCKETS - 1), LONGEST);
    }

    #[test]
    fn what_was_told_is_of_the_last_interval_alone_and_the_run_is_of_all() {
        let mut times = DelayHistogram::default();
        (1..=100).for_each(|us| times.add(us * 1000));
        let late = times.take();
        let within = |found: Option<Span>, us: u64| {
            let found = found.expect("there are samples").as_nanos();
            (us * 1000..=us * 1000 * 33 / 32).contains(&found)
        };
        assert!(within(late.p50, 50) && within(late.p99, 99) && within(late.run_p99, 99), "{late:?}");
        assert_eq!((late.samples, late.max), (100, Some(Span::from_micros(100))));
        // 900 samples of 1 us: the 99th of all 1000 is the 90th of the first 100.
        (0..900).for_each(|_| times.add(1000));
        let late = times.take();
        assert!(within(late.p99, 1) && within(late.run_p99, 90), "{late:?}");
        let late = times.take();
        assert_eq!((late.samples, late.p50, late.p99, late.max), (0, None, None, None));
        assert!(within(late.run_p99, 90), "{late:?}");
        // However long, it is counted.
        times.add(u64::MAX);
        assert_eq!(times.take().max, Some(Span::from_nanos(LONGEST)));
    }
}
