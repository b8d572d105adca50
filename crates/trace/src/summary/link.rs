//! Summaries of link directions.

use serde::{Deserialize, Serialize};

use super::counts::{LinkLoad, LinkPackets};
use super::name::{self, Name};
use crate::metrics::metrics;

metrics! {
/// A direction of a link.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct LinkSummary {
    /// Name and direction: `bottleneck.forward`.
    pub id: String,
    /// The queue discipline at the start.
    #[serde(deserialize_with = "name::one")]
    pub queue: Name,
    /// The counts of packets.
    #[serde(flatten)]
    pub packets: LinkPackets,
    /// Packets corrupted on the wire, counting duplicates separately; left out without any.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub corrupted: u64,
    /// The measures of its load.
    #[serde(flatten)]
    pub load: LinkLoad,
}
}

/// Returns true if a count that is left out when zero is zero.
fn is_zero(count: &u64) -> bool {
    *count == 0
}
