//! The results of a flow of datagrams.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use super::{Name, Spread};
use crate::metrics::metrics;

metrics! {
/// Further measures of a flow of datagrams (`transport = "udp"`). Its `goodput_bps` and
/// `delivered_bytes` count payload that arrived in any order, without copies; measures of
/// connections are 0 or null.
///
/// A datagram is lost if every copy of it was dropped; one in transit at the end of the run is
/// neither lost nor received. An echo (`ping`) counts as one round trip: received when the answer
/// has arrived, lost if the request or the answer was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramSummary {
    /// The kind of application.
    #[serde(deserialize_with = "super::name::one")]
    pub application: Name,
    /// Datagrams sent.
    pub sent: u64,
    /// Datagrams received.
    pub received: u64,
    /// Datagrams lost.
    pub lost: u64,
    /// Share of lost datagrams among those that were lost or arrived; null if there were none.
    pub loss_ratio: Option<f64>,
    /// Further copies that arrived.
    pub duplicates: u64,
    /// Datagrams received with a CE mark.
    pub marked: u64,
    /// One-way delay (RFC 7679); for an echo, the round-trip time.
    pub delay_ms: Spread,
    /// Interarrival jitter (RFC 3550 section 6.4.1) after the last arrival; null before the second.
    pub jitter_ms: Option<f64>,
    /// The mean of the jitter after each arrival from the second on.
    pub jitter_mean_ms: Option<f64>,
    /// The largest of them.
    pub jitter_max_ms: Option<f64>,
    /// Losses in a row.
    pub loss_bursts: LossBursts,
    /// Arrivals out of order.
    pub reordering: Reordering,
    /// The quality of a call (`voip`); left out where there is none.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voice: Option<VoiceSummary>,
}

/// Losses in the order of sending (RFC 3357).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LossBursts {
    /// Loss periods: losses without an arrival between them.
    pub count: u64,
    /// The mean of their lengths, datagrams; null without any.
    pub mean_length: Option<f64>,
    /// The longest.
    pub max_length: u64,
    /// Distance of a loss from the loss before it, datagrams: 1 within a loss period.
    pub distance: Distribution,
    /// Distance from the first loss of a loss period to the last one of the period before,
    /// datagrams.
    pub between: Distribution,
}

/// Arrivals out of order (RFC 4737).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Share of reordered datagrams among those that arrived; null if none did.
    pub ratio: Option<f64>,
    /// Reordering extent: arrivals between a reordered datagram and the first of those sent later.
    pub extent: Distribution,
    /// Late time of reordered datagrams.
    pub late_ms: Distribution,
}

/// A call as its listener hears it: the E-model (ITU-T G.107) over a playout buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoiceSummary {
    /// The codec.
    #[serde(deserialize_with = "super::name::one")]
    pub codec: Name,
    /// Share of datagrams that arrived too late to be played, of those with a known fate.
    pub late_ratio: Option<f64>,
    /// Ratio of datagrams that were lost or late.
    pub gap_ratio: Option<f64>,
    /// Mean length of gaps relative to that of independent losses with the same ratio.
    pub burst_ratio: Option<f64>,
    /// Delay from mouth to ear: packetisation, look-ahead, network and playout buffer.
    pub mouth_to_ear_ms: Option<f64>,
    /// The transmission rating R; null before anything was played.
    pub r_factor: Option<f64>,
    /// The mean opinion score for it, conversational (MOS-CQE).
    pub mos: Option<f64>,
}
}
