//! The reordering of a flow's packets at a place.

use serde::{Deserialize, Serialize};

use super::distribution::Distribution;
use crate::metrics::metrics;

metrics! {
/// The reordering of a flow's packets at a place (`record.reordering`): packets with data or a FIN,
/// each transmission counted separately, in the order of sending; on a link of the flow's ACKs, the
/// receiver's packets. At the places `sequence` and `first_arrival` the order is that of TCP's
/// sequence numbers, of packets with new data, or of each segment at its first arrival. Duplicates
/// are left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct PacketReordering {
    /// Packets that arrived.
    pub packets: u64,
    /// Further copies that arrived.
    pub duplicates: u64,
    /// Displacement beyond which packets count as lost, and size of the buffer: DT and BT of RFC
    /// 5236.
    pub threshold: u32,
    /// Packets displaced farther; of the metrics below only RFC 4737's include them.
    pub beyond: u64,
    /// Packets that arrived after one sent later (RFC 4737).
    pub reordered: u64,
    /// Share of reordered packets; null without packets.
    pub ratio: Option<f64>,
    /// Share of packets that arrived before their places (RFC 5236).
    pub early: f64,
    /// Share that arrived in their places.
    pub on_time: f64,
    /// Share that arrived behind their places.
    pub late: f64,
    /// Displacement, packets: receive index less place in the order of sending (RFC 5236). Lost
    /// packets have no index, and count in between. Negative if early.
    pub displacement: Distribution,
    /// Reorder density (RFC 5236 section 3.6).
    pub density: ReorderDensity,
    /// Reorder buffer-occupancy density (section 3.11).
    pub rbd: BufferDensity,
    /// Reordering extent of reordered packets (RFC 4737 section 4.2): how many arrivals each came
    /// behind the first packet that was sent later.
    pub extent: Distribution,
    /// Late time offset of reordered packets (section 4.3).
    pub late_ms: Distribution,
    /// Byte offset of reordered packets (section 4.4): bytes that had arrived and were sent later,
    /// of whole packets.
    pub byte_offset: Distribution,
    /// n-reordering (section 5).
    pub n_reordering: NReordering,
    /// Reordering-free runs (section 4.6).
    pub free_runs: ReorderFreeRuns,
}

/// Shares of packets by displacement.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReorderDensity {
    /// The displacement of the first share.
    pub from: i64,
    /// The shares of this displacement and those that follow, up to the last that occurred, of -256
    /// to 256.
    pub shares: Vec<f64>,
    /// The share of displacements below -256.
    pub below: f64,
    /// Density of displacements above 256.
    pub above: f64,
}

/// Shares of arrivals by the occupancy of a buffer that restores the order.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BufferDensity {
    /// The shares of 0, 1, 2 and so on packets, up to 256.
    pub shares: Vec<f64>,
    /// Density of occupancies above the last.
    pub above: f64,
    /// The mean; null without packets.
    pub mean: Option<f64>,
    /// The most.
    pub max: u64,
}

/// A packet is n-reordered if the n arrivals directly before it were all sent later: a receiver
/// that acknowledges each packet sends n duplicate ACKs.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct NReordering {
    /// Packets by the largest n for which they are n-reordered, from 1 to 256.
    pub counts: Vec<u64>,
    /// Packets for which it is larger.
    pub above: u64,
    /// Share of 3-reordered packets, which the standard threshold takes for lost.
    pub at_least_3: f64,
}

/// Runs of packets in order, each ended by a reordered one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct ReorderFreeRuns {
    /// Number of runs.
    pub count: u64,
    /// Packets in order for each of them; null without any.
    pub mean: Option<f64>,
    /// Variation of their lengths: 1 if they are all the same; null without any, or without packets
    /// in order.
    pub variation: Option<f64>,
    /// Lengths of the runs.
    pub length: Distribution,
}
}
