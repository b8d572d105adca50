//! What repetitions say together: means, medians, confidence intervals, and whether two sets of
//! them differ.
//!
//! # Source
//! - Student's interval of a mean, by the quantile of the t distribution.
//! - Bootstrap: the bias-corrected and accelerated interval (Efron, "Better Bootstrap Confidence
//!   Intervals", J. Am. Stat. Assoc. 82, 1987; DiCiccio and Efron, "Bootstrap Confidence
//!   Intervals", Statistical Science 11, 1996): z0 from the share of resamples below the estimate,
//!   those equal to it by half, the acceleration from the jackknife.
//! - Mann and Whitney, "On a Test of Whether one of Two Random Variables is Stochastically Larger
//!   than the Other", Ann. Math. Stat. 18, 1947: exact for small samples without ties, otherwise by
//!   the normal approximation with the corrections for ties and for continuity.
//! - Wilcoxon, "Individual Comparisons by Ranking Methods", Biometrics Bulletin 1, 1945: the
//!   signed-rank test. Differences of 0 are left out, as he does, and equal ones have their mean
//!   rank; exact for small samples, by all signs of these ranks, otherwise approximate as above.
//! - Student, "The Probable Error of a Mean", Biometrika 6, 1908: the test of paired differences.
//! - Welch, "The Generalization of 'Student's' Problem when Several Different Population Variances
//!   are Involved", Biometrika 34, 1947, with its approximate degrees of freedom.
//! - Holm, "A Simple Sequentially Rejective Multiple Test Procedure", Scand. J. Statist. 6, 1979;
//!   Benjamini and Hochberg, "Controlling the False Discovery Rate: A Practical and Powerful
//!   Approach to Multiple Testing", J. R. Statist. Soc. B 57, 1995.

pub use adjust::{benjamini_hochberg, holm};
pub use student::{paired_t, welch};

use ackclock_units::{Random, maths};

mod adjust;
mod student;

/// Resamples of a bootstrap interval.
pub const RESAMPLES: usize = 2000;

/// The most values in both samples together for an exact test; of two samples, if no two values are
/// equal.
const EXACT: usize = 40;

/// An interval, ends included.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Interval {
    /// Lower bound.
    pub low: f64,
    /// Upper bound.
    pub high: f64,
}

/// The mean; `None` without values.
pub fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

/// The median, of an even number of values the mean of the two in the middle; `None` without
/// values.
pub fn median(values: &[f64]) -> Option<f64> {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    let upper = *sorted.get(sorted.len() / 2)?;
    Some(if sorted.len() % 2 == 1 { upper } else { (sorted[sorted.len() / 2 - 1] + upper) / 2.0 })
}

/// The standard deviation of a population of which these are a sample; `None` of fewer than two.
pub fn deviation(values: &[f64]) -> Option<f64> {
    let mean = mean(values).filter(|_| values.len() > 1)?;
    let squares: f64 = values.iter().map(|value| (value - mean) * (value - mean)).sum();
    Some((squares / (values.len() - 1) as f64).sqrt())
}

/// The interval that has the mean with this confidence (0.95), by Student's t; `None` of fewer than
/// two values.
pub fn t_interval(values: &[f64], confidence: f64) -> Option<Interval> {
    let (mean, deviation) = (mean(values)?, deviation(values)?);
    let quantile = maths::student_quantile(0.5 + confidence / 2.0, values.len() - 1);
    let half = quantile * deviation / (values.len() as f64).sqrt();
    Some(Interval { low: mean - half, high: mean + half })
}

/// The interval that has a statistic of the population with this confidence, by the bootstrap;
/// `None` of fewer than two values, or where the statistic has no value.
pub fn bootstrap_interval(
    values: &[f64],
    confidence: f64,
    statistic: impl Fn(&[f64]) -> Option<f64>,
    random: &mut Random,
) -> Option<Interval> {
    if values.len() < 2 {
        return None;
    }
    let estimate = statistic(values)?;
    let mut resample = vec![0.0; values.len()];
    let mut found = Vec::with_capacity(RESAMPLES);
    for _ in 0..RESAMPLES {
        resample.iter_mut().for_each(|value| *value = values[random.below(values.len() as u64) as usize]);
        found.push(statistic(&resample)?);
    }
    found.sort_by(f64::total_cmp);
    let below = found.partition_point(|&value| value < estimate);
    let equal = found.partition_point(|&value| value <= estimate) - below;
    let share = (below as f64 + equal as f64 / 2.0) / RESAMPLES as f64;
    if share <= 0.0 || share >= 1.0 {
        // All resamples are on one side of the estimate.
        return Some(Interval { low: *found.first()?, high: *found.last()? });
    }
    let (bias, acceleration) = (maths::normal_quantile(share), acceleration(values, &statistic)?);
    let end = |tail: f64| {
        let shifted = bias + maths::normal_quantile(tail);
        let adjusted = maths::normal_cdf(bias + shifted / (1.0 - acceleration * shifted));
        let place = (adjusted * RESAMPLES as f64) as usize;
        found[place.min(RESAMPLES - 1)]
    };
    let tail = (1.0 - confidence) / 2.0;
    Some(Interval { low: end(tail), high: end(1.0 - tail) })
}

/// The skewness of what each value contributes to a statistic, by leaving one out at a time.
fn acceleration(values: &[f64], statistic: &impl Fn(&[f64]) -> Option<f64>) -> Option<f64> {
    let without = |left_out: usize| {
        let others: Vec<f64> =
            values.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, &value)| value).collect();
        statistic(&others)
    };
    let parts: Vec<f64> = (0..values.len()).map(without).collect::<Option<_>>()?;
    let mean = mean(&parts)?;
    let power = |exponent: i32| -> f64 {
        parts.iter().map(|part| (0..exponent).fold(1.0, |product, _| product * (mean - part))).sum()
    };
    let squares = power(2);
    Some(if squares > 0.0 { power(3) / (6.0 * squares * squares.sqrt()) } else { 0.0 })
}

/// The probability that two samples of the same population differ in their ranks as much as these
/// or more, either way; `None` if one is empty. Three values against three cannot go below 0.1,
/// four against four not below 0.029.
pub fn mann_whitney(a: &[f64], b: &[f64]) -> Option<f64> {
    if a.is_empty() || b.is_empty() {
        return None;
    }
    let pairs = a.len() as f64 * b.len() as f64;
    let wins = |value: &f64| -> f64 {
        b.iter().map(|other| if value > other { 1.0 } else { f64::from(value == other) / 2.0 }).sum()
    };
    let u: f64 = a.iter().map(wins).sum();
    let mut all: Vec<f64> = a.iter().chain(b).copied().collect();
    all.sort_by(f64::total_cmp);
    let ties: Vec<usize> = all.chunk_by(|one, next| one == next).map(<[f64]>::len).collect();
    let beyond = (u - pairs / 2.0).abs();
    if ties.len() == all.len() && all.len() <= EXACT {
        return Some(exact(a.len(), b.len(), beyond));
    }
    let count = all.len() as f64;
    let variance = pairs / 12.0 * (count + 1.0 - tied(&ties) / (count * (count - 1.0)));
    if variance <= 0.0 {
        return Some(1.0);
    }
    Some(approximate(beyond, variance))
}

/// The probability that differences which are as likely positive as negative have ranks as
/// one-sided as these or more; `None` without any. Fewer than six cannot go below 0.05.
pub fn signed_rank(differences: &[f64]) -> Option<f64> {
    let mut sorted: Vec<f64> = differences.iter().copied().filter(|&difference| difference != 0.0).collect();
    if sorted.is_empty() {
        return differences.first().map(|_| 1.0);
    }
    sorted.sort_by(|a, b| a.abs().total_cmp(&b.abs()));
    // Ranks twice, so that those of equal ones, their mean, are whole.
    let (mut positive, mut ranks, mut ties) = (0, Vec::new(), Vec::new());
    for equal in sorted.chunk_by(|a, b| a.abs() == b.abs()) {
        let rank = 2 * ranks.len() + equal.len() + 1;
        positive += rank * equal.iter().filter(|&&difference| difference > 0.0).count();
        ranks.extend(equal.iter().map(|_| rank));
        ties.push(equal.len());
    }
    let count = sorted.len() as f64;
    let beyond = (positive as f64 - count * (count + 1.0) / 2.0).abs();
    if ranks.len() <= EXACT {
        return Some(exact_signs(&ranks, beyond));
    }
    Some(approximate(beyond / 2.0, (count * (count + 1.0) * (2.0 * count + 1.0) - tied(&ties) / 2.0) / 24.0))
}

/// The correction of a variance for ties of these lengths.
fn tied(ties: &[usize]) -> f64 {
    ties.iter().map(|&ties| ties as f64).map(|ties| ties * ties * ties - ties).sum()
}

/// The probability of a sum of ranks that is at least so far from its mean, by the normal
/// distribution.
fn approximate(beyond: f64, variance: f64) -> f64 {
    2.0 * maths::normal_cdf(-(beyond - 0.5).max(0.0) / variance.sqrt())
}

/// The share of all signs of these ranks in which the sum of the positive ones is at least so far
/// from its mean.
fn exact_signs(ranks: &[usize], beyond: f64) -> f64 {
    let most = ranks.iter().sum();
    // How many sets of the ranks so far have each sum.
    let mut sets = vec![0.0; most + 1];
    sets[0] = 1.0;
    for &rank in ranks {
        for sum in (rank..=most).rev() {
            sets[sum] += sets[sum - rank];
        }
    }
    share_beyond(&sets, beyond)
}

/// The share of all orders of `a` and `b` values of two kinds in which U is at least `beyond` from
/// its mean.
fn exact(a: usize, b: usize, beyond: f64) -> f64 {
    // Orders with each U, by the number of values of the first kind: a value of the second kind
    // below so many of the first adds as many.
    let most = a * b;
    let mut orders = vec![vec![0.0; most + 1]; a + 1];
    orders[0][0] = 1.0;
    for value in 1..=a + b {
        for firsts in (1..=a.min(value)).rev() {
            let seconds = value - firsts;
            if seconds > b {
                continue;
            }
            for u in (seconds..=most).rev() {
                let from = orders[firsts - 1][u - seconds];
                orders[firsts][u] += from;
            }
        }
    }
    share_beyond(&orders[a], beyond)
}

/// The share of what is at least so far from the middle, of counts for each sum from 0 up.
fn share_beyond(counts: &[f64], beyond: f64) -> f64 {
    let middle = (counts.len() - 1) as f64 / 2.0;
    let far = counts.iter().enumerate().filter(|(sum, _)| (*sum as f64 - middle).abs() >= beyond);
    far.map(|(_, count)| count).sum::<f64>() / counts.iter().sum::<f64>()
}

#[cfg(test)]
mod tests;
