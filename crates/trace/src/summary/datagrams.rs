//! The results of a flow of datagrams.

use serde::{Deserialize, Serialize};

use super::{Distribution, Name, Spread};
use crate::metrics::metrics;

metrics! {
/// What a flow of datagrams (`transport = "udp"`) has beside what every flow has. Of its other
/// results `goodput_bps` and `delivered_bytes` count payload that arrived, copies left out, in any
/// order; what there is of connections alone is 0 or null.
///
/// A datagram is lost if a queue or a link has dropped every copy of it. One that is on its way at
/// the end of the run is neither lost nor received. Of an echo (`ping`) all of this is about round
/// trips: it is received when the answer has arrived, and lost if the request or the answer was.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct DatagramSummary {
    /// The kind of application.
    #[serde(deserialize_with = "super::name::one")]
    pub application: Name,
    /// Datagrams sent.
    pub sent: u64,
    /// Those of them that arrived.
    pub received: u64,
    /// Those that were lost.
    pub lost: u64,
    /// Lost ones among those that were lost or arrived; null if there were none.
    pub loss_ratio: Option<f64>,
    /// Further copies that arrived.
    pub duplicates: u64,
    /// Those received with a CE mark.
    pub marked: u64,
    /// One-way delay (RFC 7679); of an echo, the round-trip time.
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
    /// From a loss back to the loss before it, datagrams: 1 within a loss period.
    pub distance: Distribution,
    /// From the first loss of a loss period back to the last one of the period before.
    pub between: Distribution,
}

/// Arrivals out of order (RFC 4737).
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reordering {
    /// Datagrams that arrived after one that was sent later.
    pub reordered: u64,
    /// Their share of those that arrived; null if none did.
    pub ratio: Option<f64>,
    /// By how many arrivals each came behind the first of those sent later.
    pub extent: Distribution,
    /// By how much time it did.
    pub late_ms: Distribution,
}

/// A call as its listener hears it: the E-model (ITU-T G.107) over a playout buffer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct VoiceSummary {
    /// The codec.
    #[serde(deserialize_with = "super::name::one")]
    pub codec: Name,
    /// Datagrams that arrived too late to be played, share of those sent and known of.
    pub late_ratio: Option<f64>,
    /// Those lost or late.
    pub gap_ratio: Option<f64>,
    /// How much longer the gaps are than independent losses of the same share would make them.
    pub burst_ratio: Option<f64>,
    /// Delay from mouth to ear: packetisation, look-ahead, network and playout buffer.
    pub mouth_to_ear_ms: Option<f64>,
    /// The transmission rating R; null before anything was played.
    pub r_factor: Option<f64>,
    /// The mean opinion score for it, conversational (MOS-CQE).
    pub mos: Option<f64>,
}
}
