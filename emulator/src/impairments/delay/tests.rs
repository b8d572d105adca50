use super::*;
use crate::impairments::WireFates;
use crate::{Impairments, JitterTable, Reorder};

const MEAN: Time = Time::from_secs(100);

/// Delays of so many packets around a mean of 100 s with a jitter of a second, in seconds.
fn delays(of: JitterDistribution, correlation: f64, packets: usize) -> Vec<f64> {
    let mut correlated = Correlated::new(Random::for_component(1, 0, "jitter"), correlation);
    let mut delay = || correlated.delay(Time::ZERO, MEAN, Span::from_secs(1), of.table());
    (0..packets).map(|_| delay().as_nanos() as f64 * 1e-9 - 100.0).collect()
}

fn moments(values: impl Iterator<Item = f64>) -> (f64, f64) {
    let (mut n, mut sum, mut squares) = (0.0, 0.0, 0.0);
    for value in values {
        (n, sum, squares) = (n + 1.0, sum + value, squares + value * value);
    }
    (sum / n, squares / n - (sum / n) * (sum / n))
}

#[test]
fn tables_have_the_moments_of_their_distributions() {
    let of = |distribution: JitterDistribution| {
        let table = distribution.table().expect("it has one");
        assert!(table.is_sorted(), "{distribution:?}");
        moments(table.iter().map(|&value| f64::from(value) / SCALE))
    };
    let (mean, variance) = of(JitterDistribution::Normal);
    // A sum instead of an integral, at points an eighth into each step: it lies 3/8 of a step times
    // the whole range of 8 too low.
    assert!((mean + 8.0 * 0.375 / 4096.0).abs() < 1e-4 && (variance - 1.0).abs() < 2e-3, "{mean} {variance}");
    // By integration of 4/3 (u^(-1/3) - 3/2), cut at 4 where u is less than 4.5^-3.
    let cut: f64 = 1.0 / (4.5 * 4.5 * 4.5);
    let expected = 6.0 * cut - 2.0 / (4.5 * 4.5);
    let squares = 16.0 / 9.0 * (3.0 * (1.0 - 1.0 / 4.5) - 4.5 * (1.0 - 1.0 / 20.25) + 2.25 * (1.0 - cut)) + 16.0 * cut;
    let (mean, variance) = of(JitterDistribution::Pareto);
    assert!((mean - expected).abs() < 1e-3, "{mean}, not {expected}");
    assert!((variance - (squares - expected * expected)).abs() < 3e-3, "{variance}");
    // A quarter of one and three quarters of the other at the same quantile.
    let (mixed, _) = of(JitterDistribution::ParetoNormal);
    assert!((mixed - 0.75 * expected).abs() < 2e-3, "{mixed}");
}

#[test]
fn tables_are_those_that_tc_ships() {
    let normal = JitterDistribution::Normal.table().expect("it has one");
    // The beginning of its normal.dist, whose steps are two fifths of a unit wide.
    let shipped: [i16; 8] = [-32768, -28307, -26871, -25967, -25298, -24765, -24320, -23937];
    for (ours, shipped) in normal.iter().zip(shipped) {
        assert!(ours.abs_diff(shipped) <= 1, "{ours}, not {shipped}");
    }
    let pareto = JitterDistribution::Pareto.table().expect("it has one");
    // 4/3 (1 - 3/2) of 8192, half of it exceeded: 4/3 (2^(1/3) - 3/2).
    assert_eq!((pareto[0], pareto[2048], pareto[4095]), (-5461, -2622, i16::MAX));
}

#[test]
fn delays_have_the_distribution_of_the_table() {
    for distribution in &JitterDistribution::ALL[1..] {
        let table = distribution.table().expect("it has one");
        let (expected, spread) = moments(table.iter().map(|&value| f64::from(value) / SCALE));
        let delays = delays(*distribution, 0.0, 100_000);
        let (mean, variance) = moments(delays.iter().copied());
        // Four standard errors of a mean; of a variance, with a kurtosis below 12.
        assert!((mean - expected).abs() < 4.0 * (spread / 1e5).sqrt(), "{distribution:?}: {mean}, not {expected}");
        assert!((variance / spread - 1.0).abs() < 4.0 * (11.0 / 1e5_f64).sqrt(), "{distribution:?}: {variance}");
    }
}

#[test]
fn correlation_is_that_of_a_weighted_mean() {
    for correlation in [0.25, 0.5, 0.9] {
        let delays = delays(JitterDistribution::Uniform, correlation, 400_000);
        let (mean, variance) = moments(delays.iter().copied());
        // Uniform over a second, of variance 1/12; then less by the weighted mean.
        let expected = (1.0 - correlation) / (1.0 + correlation) / 12.0;
        // The sum of a chain with this memory has (1 + c) / (1 - c) times the variance.
        let error = (expected * (1.0 + correlation) / (1.0 - correlation) / 4e5).sqrt();
        assert!((mean - 0.5).abs() < 4.0 * error, "{correlation}: mean {mean}");
        assert!((variance / expected - 1.0).abs() < 0.03, "{correlation}: variance {variance}, not {expected}");
        for lag in 1..4 {
            let pairs = delays.iter().zip(&delays[lag..]).map(|(one, other)| (one - mean) * (other - mean));
            let (covariance, _) = moments(pairs);
            let wanted = maths::pow(correlation, lag as f64);
            assert!((covariance / variance - wanted).abs() < 0.02, "{correlation}, lag {lag}: {covariance}");
        }
    }
    // With all of it, nothing changes any more.
    let delays = delays(JitterDistribution::Uniform, 1.0, 10);
    assert!(delays.iter().all(|delay| (delay - delays[0]).abs() < 1e-8), "{delays:?}");
}

#[test]
fn no_packet_arrives_before_it_was_sent() {
    let mut correlated = Correlated::new(Random::for_component(1, 0, "jitter"), 0.0);
    let (sent, arrival) = (Time::from_millis(10), Time::from_millis(11));
    let mut at_once = 0;
    for _ in 0..10_000 {
        let at = correlated.delay(sent, arrival, Span::from_millis(1), JitterDistribution::Normal.table());
        assert!(at >= sent);
        at_once += u32::from(at == sent);
    }
    // Delays below one standard deviation: 15.9 %, with a deviation of 37.
    assert!((1587_f64 - f64::from(at_once)).abs() < 4.0 * 37.0, "{at_once}");
    // Nor does anything overflow.
    let never =
        correlated.delay(Time::ZERO, Time::ZERO, Span::from_nanos(u64::MAX), JitterDistribution::Pareto.table());
    assert!(never <= Time::NEVER);
}

#[test]
fn a_table_from_a_file_replaces_the_distribution() {
    // Four quantiles: -1, 0, 0.5 and 2 times the jitter of 8.192 ms, each with probability 1/4.
    let table = JitterTable::parse("# of a measurement\n-8192 0\n\n  4096\t16384\r\n").unwrap();
    let jitter = Span::from_micros(8192);
    let impairments =
        |jitter_table| Impairments { jitter, jitter_table, reorder: Reorder::ByJitter, ..Default::default() };
    let mut fate = WireFates::new(impairments(Some(table.clone())), Random::for_component(1, 0, "wire"));
    let delay = Span::from_millis(20);
    let mut found = std::collections::BTreeMap::new();
    for _ in 0..40_000 {
        *found.entry(fate.arrival(Time::ZERO, delay).as_nanos() / 1000).or_insert(0_u32) += 1;
    }
    assert!(found.keys().eq(&[11_808, 20_000, 24_096, 36_384]), "{found:?}");
    // 10 000 +- 5 sqrt(40 000 * 3/16).
    assert!(found.values().all(|count| count.abs_diff(10_000) < 434), "{found:?}");
    assert_eq!(impairments(Some(table)).least_delay(delay), Span::from_micros(11_808));
    // No packet arrives before it was sent.
    let table = JitterTable::parse("-32768").unwrap();
    let mut fate = WireFates::new(impairments(Some(table.clone())), Random::for_component(1, 0, "wire"));
    assert_eq!(fate.arrival(Time::from_secs(1), delay), Time::from_secs(1));
    assert_eq!(impairments(Some(table)).least_delay(delay), Span::ZERO);
    // One that only adds takes nothing from the delay.
    assert_eq!(impairments(Some(JitterTable::parse("5 7").unwrap())).least_delay(delay), delay);
}

#[test]
fn tables_that_are_none() {
    let many = "1 ".repeat(16_385);
    for (text, problem) in [
        ("", "the table is empty; expected whole numbers, separated by blanks"),
        ("# 1\n", "the table is empty; expected whole numbers, separated by blanks"),
        (
            "1 2\n3 x 4\n",
            "line 2: `x` is no entry; expected a whole number from -32768 to 32767, in units of 1/8192 of the jitter",
        ),
        (
            "1\n32768",
            "line 2: `32768` is no entry; expected a whole number from -32768 to 32767, in units of 1/8192 of the jitter",
        ),
        (
            "1.5",
            "line 1: `1.5` is no entry; expected a whole number from -32768 to 32767, in units of 1/8192 of the jitter",
        ),
        (
            "010",
            "line 1: `010` is no entry; expected a whole number from -32768 to 32767, in units of 1/8192 of the jitter",
        ),
        (&many, "line 1: too many entries; expected at most 16384"),
    ] {
        assert_eq!(JitterTable::parse(text).unwrap_err().to_string(), problem);
    }
    assert!(JitterTable::parse(&many[2..]).is_ok());
}
