//! Distributions of sizes and times.
//!
//! A distribution is of positive numbers without a unit; sizes are drawn in bytes and times in
//! nanoseconds. Every draw takes one number from the stream and inverts the distribution function,
//! so that two runs which differ in one parameter draw corresponding values, and so that the values
//! are the same on every platform.
//!
//! # Source
//! - Exponential, Pareto and log-normal: Johnson, Kotz, Balakrishnan, "Continuous Univariate
//!   Distributions" vol. 1, 1994, chapters 19, 20 and 14.
//! - Bounded Pareto: Crovella, Harchol-Balter, Murta, "Task Assignment in a Distributed System",
//!   SIGMETRICS 1998.
//! - Tables: [`Table`].
//!
//! # Departures
//! - Drawn sizes are rounded to whole bytes and are at least 1, times to whole nanoseconds. Means
//!   are those before rounding.

use ackclock_units::{Random, Span, maths};

use crate::table::Table;

/// A distribution of non-negative numbers.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution(DistributionKind);

#[derive(Clone, Debug, PartialEq)]
enum DistributionKind {
    Constant(f64),
    Uniform { min: f64, max: f64 },
    Exponential { mean: f64 },
    Pareto { least: f64, shape: f64, most: Option<f64> },
    LogNormal { median: f64, sigma: f64 },
    Empirical(Table),
}

/// The reason why parameters are no distribution.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DistributionError {
    /// A parameter is negative, infinite or not a number.
    #[error("`{0}` has to be a number that is not negative")]
    NotANumber(&'static str),
    /// A parameter is zero that may not be.
    #[error("`{0}` has to be more than zero")]
    Zero(&'static str),
    /// The largest value is below the smallest.
    #[error("`max` is less than `min`")]
    Reversed,
    /// The largest value of a Pareto distribution leaves no room above the mean or the smallest.
    #[error("`max` has to be greater than `{0}`")]
    NoRoom(&'static str),
    /// A Pareto distribution of such a shape has no mean.
    #[error("has no finite mean with a `shape` of 1 or less and without `max`")]
    NoMean,
    /// A log-normal distribution so wide that its mean is beyond measure.
    #[error("`sigma` has to be at most {}", Distribution::MOST_SIGMA)]
    TooWide,
}

use DistributionError::{NoMean, NoRoom, NotANumber, Reversed, TooWide, Zero};

fn number(name: &'static str, value: f64) -> Result<f64, DistributionError> {
    if value.is_finite() && value >= 0.0 { Ok(value) } else { Err(NotANumber(name)) }
}

fn positive(name: &'static str, value: f64) -> Result<f64, DistributionError> {
    if number(name, value)? > 0.0 { Ok(value) } else { Err(Zero(name)) }
}

impl Distribution {
    /// Always this value.
    ///
    /// # Errors
    /// A negative value, or none that is finite.
    pub fn constant(value: f64) -> Result<Distribution, DistributionError> {
        Ok(Distribution(DistributionKind::Constant(number("value", value)?)))
    }

    /// Uniform from `min` to `max`.
    ///
    /// # Errors
    /// Negative or infinite bounds, or `max` below `min`.
    pub fn uniform(min: f64, max: f64) -> Result<Distribution, DistributionError> {
        let (min, max) = (number("min", min)?, number("max", max)?);
        if max < min { Err(Reversed) } else { Ok(Distribution(DistributionKind::Uniform { min, max })) }
    }

    /// Exponential.
    ///
    /// # Errors
    /// A mean that is not positive.
    pub fn exponential(mean: f64) -> Result<Distribution, DistributionError> {
        Ok(Distribution(DistributionKind::Exponential { mean: positive("mean", mean)? }))
    }

    /// Pareto: P(X > x) = (`min` / x)^`shape` from `min` on; given a `max`, conditioned on values
    /// up to it.
    ///
    /// # Errors
    /// Parameters that are not positive, `max` not above `min`, or a distribution without a mean.
    pub fn pareto(min: f64, shape: f64, max: Option<f64>) -> Result<Distribution, DistributionError> {
        let (least, shape) = (positive("min", min)?, positive("shape", shape)?);
        match max.map(|max| positive("max", max)).transpose()? {
            Some(max) if max <= least => Err(NoRoom("min")),
            None if shape <= 1.0 => Err(NoMean),
            most => Ok(Distribution(DistributionKind::Pareto { least, shape, most })),
        }
    }

    /// Pareto with this mean, which with a `max` is that of the bounded distribution.
    ///
    /// # Errors
    /// As for [`Distribution::pareto`], with `max` above the mean.
    pub fn pareto_with_mean(mean: f64, shape: f64, max: Option<f64>) -> Result<Distribution, DistributionError> {
        let (mean, shape) = (positive("mean", mean)?, positive("shape", shape)?);
        let Some(max) = max.map(|max| positive("max", max)).transpose()? else {
            return if shape > 1.0 {
                Distribution::pareto(mean * (shape - 1.0) / shape, shape, None)
            } else {
                Err(NoMean)
            };
        };
        if max <= mean {
            return Err(NoRoom("mean"));
        }
        // The mean grows with the least value, from 0 to `max`.
        let (mut below, mut above) = (0.0, mean);
        loop {
            let middle = below + (above - below) / 2.0;
            if middle <= below || middle >= above {
                return Distribution::pareto(above, shape, Some(max));
            }
            if bounded_pareto_mean(middle, shape, max) < mean {
                below = middle;
            } else {
                above = middle;
            }
        }
    }

    /// Log-normal: e to a normal variable with the mean ln `median` and the standard deviation
    /// `sigma`.
    ///
    /// # Errors
    /// A median that is not positive, or a sigma that is negative or more than
    /// [`Distribution::MOST_SIGMA`].
    pub fn log_normal(median: f64, sigma: f64) -> Result<Distribution, DistributionError> {
        let (median, sigma) = (positive("median", median)?, number("sigma", sigma)?);
        if sigma > Distribution::MOST_SIGMA {
            return Err(TooWide);
        }
        Ok(Distribution(DistributionKind::LogNormal { median, sigma }))
    }

    /// Log-normal with this mean, e^(sigma² / 2) times the median.
    ///
    /// # Errors
    /// As for [`Distribution::log_normal`].
    pub fn log_normal_with_mean(mean: f64, sigma: f64) -> Result<Distribution, DistributionError> {
        let mean = positive("mean", mean)?;
        // Checks sigma, without which the median might be no number.
        Distribution::log_normal(mean, sigma)?;
        Distribution::log_normal(mean / maths::exp(sigma * sigma / 2.0), sigma)
    }

    /// The distribution of a table.
    pub fn empirical(table: Table) -> Distribution {
        Distribution(DistributionKind::Empirical(table))
    }

    /// Flow sizes of web search, bytes: [`Table::web_search`].
    pub fn web_search() -> Distribution {
        Distribution::empirical(Table::web_search())
    }

    /// Flow sizes of data mining, bytes: [`Table::data_mining`].
    pub fn data_mining() -> Distribution {
        Distribution::empirical(Table::data_mining())
    }

    /// The mean.
    pub fn mean(&self) -> f64 {
        match &self.0 {
            &DistributionKind::Constant(value) => value,
            &DistributionKind::Uniform { min, max } => min + (max - min) / 2.0,
            &DistributionKind::Exponential { mean } => mean,
            &DistributionKind::Pareto { least, shape, most: None } => least * shape / (shape - 1.0),
            &DistributionKind::Pareto { least, shape, most: Some(most) } => bounded_pareto_mean(least, shape, most),
            &DistributionKind::LogNormal { median, sigma } => median * maths::exp(sigma * sigma / 2.0),
            DistributionKind::Empirical(table) => table.mean(),
        }
    }

    /// The value that is not exceeded with probability `p`, which is below 1.
    pub fn quantile(&self, p: f64) -> f64 {
        match &self.0 {
            &DistributionKind::Constant(value) => value,
            &DistributionKind::Uniform { min, max } => min + (max - min) * p,
            &DistributionKind::Exponential { mean } => -maths::ln(1.0 - p) * mean,
            &DistributionKind::Pareto { least, shape, most } => {
                // Of the tail beyond `least`, the part beyond `most` is left out.
                let cut = most.map_or(0.0, |most| maths::pow(least / most, shape));
                let value = least / maths::pow(1.0 - p * (1.0 - cut), 1.0 / shape);
                most.map_or(value, |most| value.min(most))
            }
            &DistributionKind::LogNormal { median, sigma } => {
                // At p = 0 the normal quantile is infinite.
                if sigma == 0.0 { median } else { median * maths::exp(sigma * maths::normal_quantile(p)) }
            }
            DistributionKind::Empirical(table) => table.quantile(p),
        }
    }

    /// The smallest value.
    pub fn least(&self) -> f64 {
        self.quantile(0.0)
    }

    /// A value. Always takes one number from the stream.
    pub fn draw(&self, random: &mut Random) -> f64 {
        self.quantile(random.unit())
    }

    /// A size in bytes: at least 1, and at most 2^56.
    pub fn draw_bytes(&self, random: &mut Random) -> u64 {
        (self.draw(random).round() as u64).clamp(1, Distribution::MOST_BYTES)
    }

    /// A length of time, the value being in nanoseconds.
    pub fn draw_span(&self, random: &mut Random) -> Span {
        Span::from_nanos(self.draw(random).round() as u64)
    }

    /// The largest sigma of a log-normal distribution: the mean is then e^50 times the median.
    pub const MOST_SIGMA: f64 = 10.0;

    /// The largest size that is drawn.
    pub const MOST_BYTES: u64 = 1 << 56;
}

/// The mean of a Pareto distribution from `least` that is conditioned on values up to `most`: the
/// integral of x times its density, shape · least^shape · x^(-shape-1) / (1 - (least/most)^shape).
fn bounded_pareto_mean(least: f64, shape: f64, most: f64) -> f64 {
    let log = maths::ln(least / most);
    let mass = -maths::exp_m1(shape * log);
    // (1 - (least/most)^(shape-1)) / (shape-1), and its limit at shape 1.
    let integral = if shape == 1.0 { -log } else { -maths::exp_m1((shape - 1.0) * log) / (shape - 1.0) };
    least * shape * integral / mass
}

#[cfg(test)]
mod tests;
