//! The results of a group of flows that are listed together.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::{Name, Progress, Reactions, Recoveries, SentPackets};
use crate::Histogram;
use crate::metrics::metrics;

metrics! {
/// A group of flows with `results = "sum"`; keys as of a flow. Flows that never
/// started are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct GroupSummary {
    /// Name of the group.
    pub id: String,
    /// `forward`, or `reverse` where the data goes against the path.
    #[serde(deserialize_with = "super::name::one")]
    pub direction: Name,
    /// The senders' congestion control.
    pub cc: Arc<str>,
    /// The senders' host profile.
    pub host: Arc<str>,
    /// The senders' loss detector.
    #[serde(deserialize_with = "super::name::one")]
    pub loss_detector: Name,
    /// Flows that started.
    pub started: u64,
    /// Flows whose last byte was delivered and acknowledged (`bytes`).
    pub completed: u64,
    /// Flows that were aborted.
    pub aborted: u64,
    /// Flows that had not ended at the end of the run.
    pub alive: u64,
    /// Largest number of flows at one time, closing ones included.
    pub most_alive: u64,
    /// New payload bytes at the receivers, from the start of the first flow to the end of the run.
    pub goodput_bps: f64,
    /// The counts of data packets.
    #[serde(flatten)]
    pub sent: SentPackets,
    /// Retransmissions of data that was not lost.
    pub spurious_retransmits: u64,
    /// The counts of recoveries.
    #[serde(flatten)]
    pub recoveries: Recoveries,
    /// The counts of reactions.
    #[serde(flatten)]
    pub reactions: Reactions,
    /// The counts of payload.
    #[serde(flatten)]
    pub progress: Progress,
    /// Flow completion times of completed flows.
    pub fct_ms: Spread => ("FCT", "Flow completion time", [1, 3]),
    /// Payload bytes delivered by each flow.
    pub flow_bytes: Spread,
    /// Delivered bytes of each completed flow over its completion time.
    pub flow_goodput_bps: Spread,
    /// Round-trip times of all flows, one per ACK that measures one.
    pub rtt_ms: Spread,
}

/// Mean, extremes and percentiles; null without samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Spread {
    /// Mean.
    pub mean: Option<f64>,
    /// Extremes and percentiles, next to the mean in JSON.
    #[serde(flatten)]
    pub distribution: Distribution,
    /// 99th percentile.
    pub p99: Option<f64> => ("p99", "99th percentile"),
}
}

impl Spread {
    /// Mean and quantiles of a histogram's values, times `scale`.
    pub fn of(values: &Histogram, scale: f64) -> Spread {
        // As exact as the other quantiles are written.
        let p99 = values.quantile(0.99).map(|value| (value * scale * 1e6).round() / 1e6);
        Spread { mean: values.mean_quantiles(scale).mean, distribution: values.distribution(scale), p99 }
    }
}
