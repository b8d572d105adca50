//! Results of a flow of several subflows.

use serde::{Deserialize, Serialize};

use super::name::{self, Name};
use super::{Distribution, MeanQuantiles, Quantiles};

/// A flow over Multipath TCP (RFC 8684).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MultipathSummary {
    /// Which subflow gets new data.
    #[serde(deserialize_with = "name::one")]
    pub scheduler: Name,
    /// The connection has fallen back to plain TCP.
    pub plain: bool,
    /// The most bytes that waited at the receiver for bytes before them, those within subflows
    /// apart.
    pub reordered_bytes_max: u64,
    /// The subflows, in the order of their paths.
    pub subflows: Vec<SubflowSummary>,
}

/// One subflow, or those that followed each other on a path.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct SubflowSummary {
    /// Number of its path, from 1.
    pub path: u64,
    /// Bytes that the receiver got by it over the flow's time; some may have come by others too.
    pub goodput_bps: f64,
    /// IP bytes at the receiver in windows of 2 s, one every 0.5 s.
    pub throughput_bps: MeanQuantiles,
    /// Round-trip times, one per ACK that measures one.
    pub rtt_ms: Distribution,
    /// The congestion window, sampled at each ACK.
    pub cwnd_bytes: Quantiles,
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets that the subflow sent again.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Bytes that it was given to send.
    pub scheduled_bytes: u64,
    /// Of these, bytes that another subflow had been given before.
    pub reinjected_bytes: u64,
    /// Bytes that the receiver got by it, known ones included.
    pub received_bytes: u64,
    /// How often its congestion window was halved because it blocked the shared window.
    pub penalties: u64,
}
