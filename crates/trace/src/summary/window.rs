//! What is measured in a part of a run.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::name::{self, Name};
use super::{CaStateSeconds, Distribution, ProbabilitySummary, Quantiles};
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
    /// Data packets sent, retransmissions included.
    pub sent_packets: u64,
    /// Data packets sent again.
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Entries into fast recovery.
    pub fast_recoveries: u64,
    /// Window reductions taken back.
    pub undos: u64,
    /// ACKs with the ECN echo.
    pub ece_acks: u64,
    /// Payload bytes delivered in order to the receiving application.
    pub delivered_bytes: u64,
    /// Payload bytes acknowledged to the sender.
    pub acked_bytes: u64,
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
    /// Rate of the transmitter; null if it is unlimited.
    pub rate_bps: Option<u64>,
    /// Packets offered to the queue.
    pub offered: u64,
    /// Packets taken in.
    pub enqueued: u64,
    /// Packets given to the transmitter.
    pub dequeued: u64,
    /// Packets marked CE.
    pub marked: u64,
    /// Packets dropped, by reason.
    #[serde(deserialize_with = "name::counts")]
    pub dropped: BTreeMap<Name, u64>,
    /// Packets that were on the wire twice.
    pub duplicated: u64,
    /// Share of the window in which a transmitter of the rate was busy.
    pub utilization: f64,
    /// Share of the window in which the token bucket was empty; null without one.
    pub bucket_empty: Option<f64>,
    /// The probability with which the discipline marks or drops; left out likewise.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub probability: Option<ProbabilitySummary>,
    /// Time in the queue of the packets that were transmitted.
    pub sojourn_ms: Distribution,
    /// Packets waiting, over time.
    pub backlog_packets: Distribution,
}
}
