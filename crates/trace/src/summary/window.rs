//! Results of a part of a run.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::distribution::{Distribution, Quantiles};
use super::{CaStateSeconds, LinkLoad, LinkPackets, Progress, Reactions, Recoveries, SentPackets};
use crate::metrics::metrics;

metrics! {
/// A part of the run, from its start on and before its end.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WindowSummary {
    /// Start of the window.
    pub from_s: f64,
    /// End of the window.
    pub to_s: f64,
    /// Data packets sent.
    pub packets: u64,
    /// The flows in the order of the scenario.
    pub flows: Vec<FlowWindow>,
    /// The link directions in the order of the scenario.
    pub links: Vec<LinkWindow>,
    /// Jain's fairness index of the goodputs; null when nothing was delivered.
    pub fairness_jain: Option<f64>,
    /// Jain's index of the forward flows.
    pub fairness_jain_forward: Option<f64>,
    /// Jain's index of the reverse flows.
    pub fairness_jain_reverse: Option<f64>,
}

/// A flow in a window; keys as of a flow.
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
    /// Time of the sender in each congestion state; zero for hosts other than ackclock's.
    #[serde(default)]
    pub ca_state_s: CaStateSeconds,
    /// Reordering threshold at the end of the window, in segments; 3 unless the host adapts it,
    /// null if the sender does not report it.
    #[serde(default)]
    pub dupthresh: Option<u64>,
    /// The same at its start.
    #[serde(default)]
    pub dupthresh_start: Option<u64>,
}

/// A link direction in a window; keys as of a link.
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
