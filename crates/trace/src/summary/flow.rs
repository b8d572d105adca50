//! Summaries of single flows.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::application::ApplicationSummary;
use super::counts::{Progress, Reactions, Recoveries, SentPackets};
use super::datagrams::DatagramSummary;
use super::distribution::{Distribution, MeanQuantiles, Quantiles};
use super::multipath::MultipathSummary;
use super::name::{self, Name};
use super::sender::{CaStateSeconds, Limited, LossDeclarations, Retransmissions};
use crate::PacketReordering;
use crate::metrics::metrics;

metrics! {
/// One flow.
///
/// A flow from a kernel is measured from the headers of its packets where they enter: packets,
/// retransmissions, round-trip times (of segments sent once), ACKs with the echo (where RFC 3168
/// was negotiated), acknowledged bytes. Its time runs from the first packet (`start_s`) until no
/// connection is open. `bytes` affects only `completed_s`; `stop` and `abort` have no effect. Its
/// internal state is unknown: controller, host and detector are `kernel`, `cwnd_bytes` is null, and
/// timeouts, recoveries, undos, `limited_s`, `ca_state_s` and the ground truth of retransmissions
/// and losses are 0. For a receiver that is a kernel, acknowledged data counts as delivered.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FlowSummary {
    /// Name of the flow and its number, `reno.0`.
    pub id: Arc<str>,
    /// `forward`, or `reverse` where the data goes against the path.
    #[serde(deserialize_with = "name::one")]
    pub direction: Name,
    /// The sender's congestion control.
    pub cc: Arc<str>,
    /// The sender's host profile.
    pub host: Arc<str>,
    /// The sender's loss detector.
    #[serde(deserialize_with = "name::one")]
    pub loss_detector: Name,
    /// New payload bytes at the receiver over the flow's time.
    pub goodput_bps: f64 => ("goodput", "Goodput"),
    /// IP bytes that arrive at the receiver, retransmissions and duplicates included, in windows of
    /// 2 s, one every 0.5 s.
    pub throughput_bps: MeanQuantiles => ("throughput", "Throughput"),
    /// New payload bytes at the receiver in the same windows, data beyond a gap included, except
    /// for receivers that do not report it (`smoltcp`, a kernel).
    #[serde(default)]
    pub goodput_windows_bps: MeanQuantiles,
    /// Round-trip times, one per ACK that measures one, not smoothed.
    pub rtt_ms: Distribution => ("RTT", "RTT"),
    /// The congestion window, sampled at each ACK.
    pub cwnd_bytes: Quantiles => ("cwnd", "Congestion window"),
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
    /// Packets that an end discarded for bit errors; left out without any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub checksum_errors: u64,
    /// The largest distance at which a segment arrived behind a later one, in segments.
    pub reordering_max: u64,
    /// The counts of payload.
    #[serde(flatten)]
    pub progress: Progress,
    /// Time at which the sender connected; null if it never did.
    pub start_s: Option<f64>,
    /// Time at which the last of `bytes` was delivered and acknowledged to the sender; null if it
    /// was not.
    pub completed_s: Option<f64>,
    /// Flow completion time: `completed_s` less `start_s`.
    pub fct_s: Option<f64> => ("FCT", "Flow completion time"),
    /// Time by the factor that limited the sender until it closed; zero for `smoltcp`. Over
    /// Multipath TCP the factor is the first of `pacing`, `rwnd`, `cwnd` and `app` that limits any
    /// subflow. It is also `app` while the send buffer is full of sent data.
    pub limited_s: Limited,
    /// Time of the sender in each congestion state; zero for hosts other than ackclock's.
    #[serde(default)]
    pub ca_state_s: CaStateSeconds,
    /// Ground truth of each retransmission of data.
    pub retransmissions: Retransmissions,
    /// Ground truth of each transmission that the sender declared lost.
    pub loss_declarations: LossDeclarations,
    /// Delay of loss declarations after the earliest moment at which the loss could be known: the
    /// arrival of the first ACK that the receiver sent after receiving a later packet of the flow.
    pub loss_declared_late_ms: Distribution,
    /// Time from that moment until a later transmission of the same data is acknowledged, in
    /// smoothed RTTs of that moment. 1 is an immediate retransmission.
    pub repair_rtts: Distribution,
    /// Displacement of packets with data (or a FIN) on arrival; over Multipath TCP, among the
    /// packets of their subflow.
    pub displacement: Displacement,
    /// Reordering by place, where it is measured (`record.reordering`); left out otherwise.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub reordering: BTreeMap<String, PacketReordering>,
    /// Measures of the application; left out for bulk transfers.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub application: Option<Box<ApplicationSummary>>,
    /// Further measures of a flow of datagrams; left out of other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub datagrams: Option<Box<DatagramSummary>>,
    /// Further measures of a flow of several subflows; left out of other flows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub multipath: Option<Box<MultipathSummary>>,
}

/// Displacement of packets (RFC 5236): place in the order of arrival less place in the order of
/// sending, with lost packets taken out. A retransmission is a packet of its own. Early packets
/// have negative values, late ones positive.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Displacement {
    /// Share of packets that arrived before their places.
    pub early: f64,
    /// Share that arrived in their places.
    pub on_time: f64,
    /// Share that arrived behind their places.
    pub late: f64,
    /// The displacements, next to the shares in JSON.
    #[serde(flatten)]
    pub distribution: Distribution,
}
}

/// Returns true if a count that is left out when zero is zero.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
