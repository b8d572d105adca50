//! Student's t tests of the difference between two means.

use ackclock_units::maths;

use super::{deviation, mean};

/// The bound, in units in the last place of the means, below which a deviation is rounding: R's
/// `t.test` refuses such data as "essentially constant".
const CONSTANT: f64 = 10.0 * f64::EPSILON;

/// The probability that differences whose mean is 0 have a mean as far from it as these or more, by
/// the paired t test; `None` of fewer than two, and of those that are all the same but not 0, whose
/// spread says nothing.
pub fn paired_t(differences: &[f64]) -> Option<f64> {
    let (mean, deviation) = (mean(differences)?, deviation(differences)?);
    let error = deviation / (differences.len() as f64).sqrt();
    probability(mean, error, mean.abs(), (differences.len() - 1) as f64)
}

/// The same of two independent samples, whatever their variances, by the test of Welch.
pub fn welch(a: &[f64], b: &[f64]) -> Option<f64> {
    let means = [mean(a)?, mean(b)?];
    let part = |values: &[f64]| deviation(values).map(|deviation| deviation * deviation / values.len() as f64);
    let parts = [part(a)?, part(b)?];
    let of = |part: f64, values: &[f64]| part * part / (values.len() - 1) as f64;
    let variance = parts[0] + parts[1];
    let degrees = variance * variance / (of(parts[0], a) + of(parts[1], b));
    probability(means[0] - means[1], variance.sqrt(), means[0].abs().max(means[1].abs()), degrees)
}

fn probability(difference: f64, error: f64, scale: f64, degrees: f64) -> Option<f64> {
    if error <= CONSTANT * scale {
        return (difference.abs() <= CONSTANT * scale).then_some(1.0);
    }
    Some(maths::student_tails(difference / error, degrees))
}
