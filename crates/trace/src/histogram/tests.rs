use std::collections::BTreeMap;

use proptest::prelude::*;

use super::*;

/// The histogram's contract: a count for each bucket, and everything else exactly.
#[derive(Clone, Debug, Default)]
struct Model {
    counts: BTreeMap<u16, u64>,
    samples: u64,
    sum: u128,
    extremes: Option<(u64, u64)>,
}

impl Model {
    fn add(&mut self, value: u64, weight: u64, samples: u64) {
        if weight > 0 {
            *self.counts.entry(bucket_by_division(value)).or_default() += weight;
            self.sum += u128::from(value) * u128::from(weight);
            let (min, max) = self.extremes.unwrap_or((value, value));
            self.extremes = Some((min.min(value), max.max(value)));
        }
        self.samples += samples;
    }

    fn total(&self) -> u64 {
        self.counts.values().sum()
    }

    /// Each value at its bucket's midpoint, for quantiles that are looked up.
    fn quantile(&self, q: f64) -> Option<f64> {
        let rank = ((q * self.total() as f64).ceil() as u64).clamp(1, self.total().max(1));
        let mut below = 0;
        let (min, max) = self.extremes?;
        let (&bucket, _) = self.counts.iter().find(|&(_, &count)| {
            below += count;
            below >= rank
        })?;
        Some(midpoint(bucket).clamp(min as f64, max as f64))
    }

    fn since(&self, earlier: &Model) -> Model {
        let mut since = self.clone();
        since.counts.retain(|bucket, count| {
            *count -= earlier.counts.get(bucket).unwrap_or(&0);
            *count > 0
        });
        (since.samples, since.sum) = (self.samples - earlier.samples, self.sum - earlier.sum);
        since.extremes = self.extremes.and_then(|(min, max)| {
            let value = |&bucket: &u16| (midpoint(bucket) as u64).clamp(min, max);
            Some((since.counts.keys().map(value).min()?, since.counts.keys().map(value).max()?))
        });
        since
    }
}

/// 512 buckets for each power of two from 512, and one for each value below.
fn bucket_by_division(value: u64) -> u16 {
    let mut base = 512;
    let mut first = 512;
    if value < base {
        return value as u16;
    }
    while value / 2 >= base {
        base *= 2;
        first += 512;
    }
    first + ((value - base) / (base / 512)) as u16
}

#[track_caller]
fn assert_alike(histogram: &Histogram, model: &Model) {
    assert_eq!(histogram.counts(), Vec::from_iter(model.counts.clone()));
    assert_eq!((histogram.samples(), histogram.total()), (model.samples, model.total()));
    assert_eq!(histogram.mean(), (model.total() > 0).then(|| model.sum as f64 / model.total() as f64));
    for q in [0.0, 0.05, 0.5, 0.95, 1.0] {
        assert_eq!(histogram.quantile(q), model.quantile(q), "at {q}");
    }
    let distribution = histogram.distribution(1.0);
    let (min, max) = model.extremes.filter(|_| model.samples > 0).unzip();
    assert_eq!((distribution.min, distribution.max), (min.map(|v| rounded(v as f64)), max.map(|v| rounded(v as f64))));
}

/// Values near each other, near the ends of blocks, and any.
fn value() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..3000, 1_000_000u64..1_100_000, (0u32..64).prop_map(|bit| 1 << bit), any::<u64>()]
}

/// Weights up to far beyond what a cell counts, which overflow no total.
fn weight() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..3, 65_530u64..65_540, 0u64..1 << 50]
}

#[derive(Clone, Debug)]
enum Operation {
    Add(u64),
    Series(u64, u32),
    Weighted(u64, u64),
    Part(u64, u64),
    Repeated(u64, u64),
    /// Values from here on are also examined alone.
    Mark,
}

fn step() -> impl Strategy<Value = Operation> {
    prop_oneof![
        value().prop_map(Operation::Add),
        (value(), 0u32..100).prop_map(|(value, n)| Operation::Series(value, n)),
        (value(), weight()).prop_map(|(value, weight)| Operation::Weighted(value, weight)),
        (value(), weight()).prop_map(|(value, weight)| Operation::Part(value, weight)),
        (value(), weight()).prop_map(|(value, times)| Operation::Repeated(value, times)),
        Just(Operation::Mark),
    ]
}

proptest! {
    #[test]
    fn every_value_is_counted_in_its_bucket(steps in prop::collection::vec(step(), 0..60)) {
        let (mut histogram, mut model) = (Histogram::new(), Model::default());
        let mut marks = Vec::new();
        for step in steps {
            match step {
                Operation::Add(value) => {
                    histogram.add(value);
                    model.add(value, 1, 1);
                }
                Operation::Series(value, n) => for value in (0..n).map(|n| value.saturating_add(u64::from(n) << 12)) {
                    histogram.add(value);
                    model.add(value, 1, 1);
                }
                Operation::Weighted(value, weight) => {
                    histogram.add_weighted(value, weight);
                    model.add(value, weight, u64::from(weight > 0));
                }
                Operation::Part(value, weight) => {
                    histogram.add_weight(value, weight);
                    model.add(value, weight, 0);
                }
                Operation::Repeated(value, times) => {
                    histogram.add_repeated(value, times);
                    model.add(value, times, times);
                }
                Operation::Mark => marks.push((histogram.clone(), model.clone())),
            }
        }
        assert_alike(&histogram, &model);
        for (earlier, before) in marks {
            assert_alike(&earlier, &before);
            assert_alike(&histogram.since(&earlier), &model.since(&before));
        }
    }
}

/// A count of 16 bits overflows into what is kept beside it, by one and by more.
#[test]
fn counts_beyond_those_of_a_cell() {
    let (mut histogram, mut model) = (Histogram::new(), Model::default());
    for n in 0..3 * 65_536 + 5 {
        let value = 20_000_000 + n % 2;
        histogram.add(value);
        model.add(value, 1, 1);
    }
    for (value, weight) in [(700, 65_535), (700, 1), (701, u64::from(u32::MAX)), (700, 1 << 40)] {
        histogram.add_weighted(value, weight);
        model.add(value, weight, 1);
    }
    assert_alike(&histogram, &model);
}

fn bytes(histogram: &Histogram) -> usize {
    let cells = histogram.cells.as_ref().map_or(0, |cells| size_of::<Cells>() + cells.bytes());
    size_of::<Histogram>() + histogram.log.as_ref().map_or(0, |_| size_of::<Log>()) + cells
}

/// Round-trip times of a flow, from 20 ms to 60 ms: a few take two cache lines, many less than a
/// kilobyte for each of the two powers of two.
#[test]
fn memory_follows_the_values() {
    let mut histogram = Histogram::new();
    assert_eq!(bytes(&histogram), 64);
    let mut add = |samples: std::ops::Range<u64>| {
        samples.for_each(|n| histogram.add(20_000_000 + n * 7_919_000 % 40_000_000));
        bytes(&histogram)
    };
    assert_eq!(add(0..20), 128);
    assert!(add(20..200) < 3000);
    assert!(add(200..10_000) < 3 * (16 * 66) + 64 + 64 + 128);
}

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
fn what_two_have_is_what_one_has_to_which_all_was_added() {
    let (mut first, mut second, mut both) = (Histogram::new(), Histogram::new(), Histogram::new());
    for value in [3, 700, 700, 90_000, 5_000_000_000] {
        first.add(value);
        both.add(value);
    }
    for value in (0..100).chain([1 << 50]) {
        second.add_weighted(value, 7);
        both.add_weighted(value, 7);
    }
    first.absorb(&second);
    assert_eq!((first.distribution(1.0), first.mean()), (both.distribution(1.0), both.mean()));
    first.absorb(&Histogram::new());
    assert_eq!(first.distribution(1.0), both.distribution(1.0));
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
        prop_assert_eq!(bucket(value), bucket_by_division(value));
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
