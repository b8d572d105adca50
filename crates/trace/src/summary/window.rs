//! What is measured in a part of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::{
    CaStateSeconds, Distribution, LinkLoad, LinkPackets, Progress, Quantiles, Reactions, Recoveries, SentPackets,
};
use crate::metrics::metrics;

metrics! {
/// A part of the run: what happened from its start on, and before its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Its start.
    pub from_s: f64,
    /// Its end.
    pub to_s: f64,
    /// Data packets that the senders put on the wire.
    pub packets: u64,
    /// The flows in the order of the scenario.
    pub flows: Vec<FlowWindow>,
    /// The link directions in the order of the scenario.
    pub links: Vec<LinkWindow>,
    /// Jain's fairness index of the goodputs; null when nothing was delivered.
    pub fairness_jain: Option<f64>,
    /// That of the flows that send along their paths.
    pub fairness_jain_forward: Option<f64>,
    /// That of the flows that send against their paths.
    pub fairness_jain_reverse: Option<f64>,
}

/// A flow in a window; names as in [`super::FlowSummary`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowWindow {
    /// Name of the flow and its number.
    pub id: Arc<str>,
    /// New payload bytes at the receiver over the length of the window.
    pub goodput_bps: f64,
    /// Round-trip times that ACKs in the window measured.
    pub rtt_ms: Distribution,
    /// The congestion window at each ACK.
    pub cwnd_bytes: Quantiles,
    /// The counts of data packets.
    #[serde(flatten)]
    pub sent: SentPackets,
    /// The counts of recoveries.
    #[serde(flatten)]
    pub recoveries: Recoveries,
    /// The counts of reactions.
    #[serde(flatten)]
    pub reactions: Reactions,
    /// The counts of payload.
    #[serde(flatten)]
    pub progress: Progress,
    /// For how long the sender was in which congestion state; zero where it is none of ours.
    #[serde(default)]
    pub ca_state_s: CaStateSeconds,
    /// How far, in segments, what arrives later may be reported without its being taken for lost,
    /// at the end of the window: 3, unless the host adapts it. Null where the sender does not tell.
    #[serde(default)]
    pub dupthresh: Option<u64>,
    /// The same at its start.
    #[serde(default)]
    pub dupthresh_start: Option<u64>,
}

/// A link direction in a window; names as in [`super::LinkSummary`].
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkWindow {
    /// Name and direction.
    pub id: String,
    /// The counts of packets.
    #[serde(flatten)]
    pub packets: LinkPackets,
    /// The measures of its load.
    #[serde(flatten)]
    pub load: LinkLoad,
}
}
