//! Distributions of what was measured.

use serde::{Deserialize, Serialize};

use crate::metrics::metrics;

metrics! {
/// Percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Quantiles {
    /// 5th percentile.
    pub p5: Option<f64> => ("p5", "5th percentile"),
    /// 25th percentile.
    pub p25: Option<f64> => ("p25", "25th percentile"),
    /// Median.
    pub p50: Option<f64> => ("p50", "median"),
    /// 75th percentile.
    pub p75: Option<f64> => ("p75", "75th percentile"),
    /// 95th percentile.
    pub p95: Option<f64> => ("p95", "95th percentile"),
}

/// Mean and percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanQuantiles {
    /// Mean.
    pub mean: Option<f64> => ("mean", "mean"),
    /// The percentiles, next to the mean in JSON.
    #[serde(flatten)]
    pub quantiles: Quantiles,
}

/// Extremes and percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Distribution {
    /// Smallest.
    pub min: Option<f64> => ("min", "minimum"),
    /// The percentiles, between the extremes in JSON.
    #[serde(flatten)]
    pub quantiles: Quantiles,
    /// Largest.
    pub max: Option<f64> => ("max", "maximum"),
    /// Number of samples.
    pub samples: u64,
}

/// A probability over a time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ProbabilitySummary {
    /// The mean over that time.
    pub mean: f64,
    /// The value at the end.
    pub last: f64,
}
}
