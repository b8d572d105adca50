//! The results of a workload: completion times by size.

use serde::{Deserialize, Serialize};

use super::Spread;
use crate::metrics::metrics;

metrics! {
/// The flows of a workload, or those of one size class. Flows that never started are not counted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct WorkloadSummary {
    /// Name of the workload; for a class with the name of the class, `web.up_to_100kB`.
    pub id: String,
    /// Flows that started.
    pub started: u64,
    /// Flows whose last byte was delivered and acknowledged.
    pub completed: u64,
    /// Flows that were not completed by the end of the run.
    pub unfinished: u64,
    /// Sizes of the flows that started, over the time of arrivals, bit/s.
    pub offered_bps: f64,
    /// Data packets retransmitted, and SYNs on hosts that count them (Linux).
    pub retransmitted_packets: u64,
    /// Expiries of the retransmission timer.
    pub timeouts: u64,
    /// Completed flows with a timeout.
    pub completed_with_timeouts: u64,
    /// Sizes of the flows that started.
    pub size_bytes: Spread,
    /// Flow completion times: from the SYN until the last byte is acknowledged to the sender.
    pub fct_ms: Spread => ("FCT", "Flow completion time", [3, 3]),
    /// Completion times over the ideal ones.
    pub slowdown: Spread => ("slowdown", "", [2, 2]),
    /// Measures of an incast, in the row of the workload; left out of others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub requests: Option<IncastSummary>,
}

/// The requests of an incast, which several flows answer.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct IncastSummary {
    /// Requests that were made.
    pub made: u64,
    /// Requests whose answers were all completed.
    pub completed: u64,
    /// Time from the request until the last of its answers is complete.
    pub completion_ms: Spread => ("completion", "", [3, 3]),
}
}
