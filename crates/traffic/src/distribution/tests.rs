use proptest::prelude::*;

use super::*;

/// The mean of many draws.
fn drawn_mean(distribution: &Distribution, draws: u32) -> f64 {
    let mut random = Random::for_component(1, 0, "distribution");
    (0..draws).map(|_| distribution.draw(&mut random)).sum::<f64>() / f64::from(draws)
}

/// The sum of the quantile function over (0, 1) in `steps` steps: the mean, independent of the
/// closed form.
fn integrated_mean(distribution: &Distribution, steps: u32) -> f64 {
    let p = |step: u32| (f64::from(step) + 0.5) / f64::from(steps);
    (0..steps).map(|step| distribution.quantile(p(step))).sum::<f64>() / f64::from(steps)
}

/// Within 1 %, relative.
fn near(found: f64, exact: f64) -> bool {
    (found / exact - 1.0).abs() < 0.01
}

/// A distribution with its mean and points of its distribution function, worked out by hand.
type Case = (Distribution, f64, Vec<(f64, f64)>);

fn cases() -> Vec<Case> {
    let e = std::f64::consts::E;
    vec![
        (Distribution::constant(7.0).unwrap(), 7.0, vec![(0.3, 7.0)]),
        (Distribution::uniform(100.0, 300.0).unwrap(), 200.0, vec![(0.25, 150.0), (0.9, 280.0)]),
        // P(X > mean) = 1/e.
        (Distribution::exponential(50.0).unwrap(), 50.0, vec![(1.0 - 1.0 / e, 50.0), (0.5, 34.657)]),
        // P(X > 2 min) = 2^-3; mean 3/2 min.
        (Distribution::pareto(10.0, 3.0, None).unwrap(), 15.0, vec![(0.875, 20.0), (0.999, 100.0)]),
        (Distribution::pareto_with_mean(15.0, 3.0, None).unwrap(), 15.0, vec![(0.875, 20.0)]),
        // From 1 to 4 with shape 1: P(X <= x) = (1 - 1/x) / (3/4); the mean is ln 4 / (3/4).
        (Distribution::pareto(1.0, 1.0, Some(4.0)).unwrap(), 1.848_392, vec![(2.0 / 3.0, 2.0), (0.999_999, 4.0)]),
        // From 1 to 4 with shape 2: P(X <= x) = (1 - 1/x²) / (15/16); mean 2 (1 - 1/4) / (15/16).
        (Distribution::pareto(1.0, 2.0, Some(4.0)).unwrap(), 1.6, vec![(0.8, 2.0)]),
        // Shape 1/2, without a mean if it were not bounded: -1 (1 - 2) / (1/2).
        (Distribution::pareto(1.0, 0.5, Some(4.0)).unwrap(), 2.0, vec![(0.0, 1.0)]),
        // The median's e^(1/8) fold; one sigma is 84.134 %.
        (Distribution::log_normal(100.0, 0.5).unwrap(), 113.3148, vec![(0.5, 100.0), (0.841_345, 164.872)]),
        (Distribution::log_normal_with_mean(113.3148, 0.5).unwrap(), 113.3148, vec![(0.5, 100.0)]),
        (Distribution::log_normal(3.0, 0.0).unwrap(), 3.0, vec![(0.0, 3.0), (0.9, 3.0)]),
        (Distribution::web_search(), 1_711_250.0, vec![(0.6, 200e3), (0.85, 3.5e6)]),
        (Distribution::data_mining(), 12_658_198.6, vec![(0.5, 1100.0), (0.99, 550e6)]),
    ]
}

#[test]
fn means_are_those_worked_out_and_those_of_the_quantiles() {
    for (distribution, mean, _) in cases() {
        assert!((distribution.mean() / mean - 1.0).abs() < 1e-6, "{distribution:?}: {}", distribution.mean());
        assert!(near(integrated_mean(&distribution, 100_000), mean), "{distribution:?}");
    }
}

#[test]
fn quantiles_are_those_worked_out() {
    for (distribution, _, points) in cases() {
        for (p, value) in points {
            assert!((distribution.quantile(p) / value - 1.0).abs() < 1e-4, "{distribution:?} at {p}");
        }
    }
}

#[test]
fn draws_have_the_mean_and_the_quantiles() {
    for (distribution, mean, _) in cases() {
        // The widest, data mining, has a standard deviation of 7 means: 0.2 % after 10^7 draws.
        let draws = if mean > 1e6 { 10_000_000 } else { 1_000_000 };
        assert!(near(drawn_mean(&distribution, draws), mean), "{distribution:?}");
        let mut random = Random::for_component(2, 0, "quantiles");
        let mut values: Vec<f64> = (0..400_000).map(|_| distribution.draw(&mut random)).collect();
        values.sort_by(f64::total_cmp);
        for p in [0.1, 0.5, 0.9] {
            assert!(near(values[(400_000.0 * p) as usize], distribution.quantile(p)), "{distribution:?} at {p}");
        }
    }
}

#[test]
fn sizes_and_times_are_whole() {
    let mut random = Random::for_component(1, 0, "whole");
    // Half a byte is rounded up to one, and so is none.
    assert_eq!(Distribution::constant(0.0).unwrap().draw_bytes(&mut random), 1);
    assert_eq!(Distribution::constant(1460.4).unwrap().draw_bytes(&mut random), 1460);
    assert_eq!(Distribution::constant(1e300).unwrap().draw_bytes(&mut random), 1 << 56);
    assert_eq!(Distribution::constant(2e9).unwrap().draw_span(&mut random), Span::from_secs(2));
    assert_eq!(Distribution::constant(0.0).unwrap().draw_span(&mut random), Span::ZERO);
}

#[test]
fn every_draw_takes_one_number() {
    for (distribution, ..) in cases() {
        let (mut one, mut other) = (Random::for_component(3, 0, "one"), Random::for_component(3, 0, "one"));
        distribution.draw(&mut one);
        other.bits();
        assert_eq!(one, other, "{distribution:?}");
    }
}

#[test]
fn what_is_no_distribution_is_refused() {
    assert_eq!(Distribution::constant(-1.0), Err(NotANumber("value")));
    assert_eq!(Distribution::constant(f64::NAN), Err(NotANumber("value")));
    assert_eq!(Distribution::uniform(2.0, 1.0), Err(Reversed));
    assert_eq!(Distribution::exponential(0.0), Err(Zero("mean")));
    assert_eq!(Distribution::pareto(1.0, 1.0, None), Err(NoMean));
    assert_eq!(Distribution::pareto(4.0, 1.0, Some(4.0)), Err(NoRoom("min")));
    assert_eq!(Distribution::pareto(0.0, 2.0, None), Err(Zero("min")));
    assert_eq!(Distribution::pareto_with_mean(5.0, 1.0, None), Err(NoMean));
    assert_eq!(Distribution::pareto_with_mean(5.0, 1.2, Some(5.0)), Err(NoRoom("mean")));
    assert_eq!(Distribution::log_normal(1.0, f64::INFINITY), Err(NotANumber("sigma")));
    assert_eq!(Distribution::log_normal_with_mean(1.0, 10.1), Err(TooWide));
}

proptest! {
    #[test]
    fn a_bounded_pareto_has_the_mean_that_was_asked_for(
        mean in 1e-3..1e12f64,
        shape in 0.2..5.0f64,
        room in 1.01..1e6f64,
    ) {
        let distribution = Distribution::pareto_with_mean(mean, shape, Some(mean * room)).unwrap();
        prop_assert!((distribution.mean() / mean - 1.0).abs() < 1e-6, "{}", distribution.mean());
        prop_assert!(distribution.quantile(0.999_999_999) <= mean * room);
    }

    #[test]
    fn quantiles_never_go_back(p in 0.0..0.999f64, step in 0.0..0.001f64) {
        for (distribution, ..) in cases() {
            let (low, high) = (distribution.quantile(p), distribution.quantile(p + step));
            prop_assert!(low >= 0.0 && low <= high, "{:?} at {}", distribution, p);
        }
    }
}
