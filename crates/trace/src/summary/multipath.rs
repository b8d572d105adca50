//! Results of a flow of several subflows.

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, MeanQuantiles, Quantiles};
use super::name::{self, Name};
use super::{Limited, LossDeclarations, Recoveries, Retransmissions, SentPackets};
use crate::metrics::metrics;

metrics! {
/// A flow over Multipath TCP (RFC 8684).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MultipathSummary {
    /// Scheduler of new data.
    #[serde(deserialize_with = "name::one")]
    pub scheduler: Name,
    /// The connection has fallen back to plain TCP.
    pub plain: bool,
    /// Largest number of bytes that waited at the receiver for earlier bytes, excluding those
    /// within subflows.
    pub reordered_bytes_max: u64,
    /// Bytes that the receiver's connection received more than once.
    #[serde(default)]
    pub duplicate_bytes: u64,
    /// The subflows, in the order of their paths.
    pub subflows: Vec<SubflowSummary>,
}

/// One subflow, or successive subflows on a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubflowSummary {
    /// Number of its path, from 1.
    pub path: u64,
    /// Bytes received over it in the flow's time; some may also have come over others.
    pub goodput_bps: f64,
    /// IP bytes at the receiver in windows of 2 s, one every 0.5 s.
    pub throughput_bps: MeanQuantiles,
    /// Round-trip times, one per ACK that measures one.
    pub rtt_ms: Distribution,
    /// The congestion window, sampled at each ACK.
    pub cwnd_bytes: Quantiles,
    /// The counts of data packets.
    #[serde(flatten)]
    pub sent: SentPackets,
    /// Retransmissions of what was not lost on the subflow.
    #[serde(default)]
    pub spurious_retransmits: u64,
    /// The counts of recoveries.
    #[serde(flatten)]
    pub recoveries: Recoveries,
    /// Bytes assigned to it.
    pub scheduled_bytes: u64,
    /// Bytes of these that were assigned to another subflow before.
    pub reinjected_bytes: u64,
    /// Bytes that the receiver already had from another subflow when they were first sent on this
    /// one: needless reinjections, and late data of a failed subflow.
    #[serde(default)]
    pub needless_bytes: u64,
    /// Bytes received over it, duplicates included.
    pub received_bytes: u64,
    /// Number of times its congestion window was halved because it blocked the shared window.
    pub penalties: u64,
    /// Time by the factor that limited the open subflow: `cwnd` while data waited and its window
    /// was full; `rwnd` while data waited for the connection's receive window; `app` while it had
    /// nothing to send.
    #[serde(default)]
    pub limited_s: Limited,
    /// Ground truth of each of its retransmissions.
    #[serde(default)]
    pub retransmissions: Retransmissions,
    /// Ground truth of each transmission that it declared lost.
    #[serde(default)]
    pub loss_declarations: LossDeclarations,
}
}
