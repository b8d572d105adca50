//! Flows that arrive at random, with sizes and paths of their own.

use std::sync::Arc;

use ackclock_traffic::Workload;

use super::flow::FlowGroup;

/// Flows that arrive one after another and send what was drawn for each.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadSpec {
    /// Arrivals, sizes and choice of paths.
    pub arrivals: Workload,
    /// Settings that the flows of each path have in common; between pairs of hosts, one for all.
    pub groups: Vec<Arc<FlowGroup>>,
    /// Size classes of the results, in order; the last class has all larger flows.
    pub classes: Vec<SizeClass>,
    /// The most flows that may exist at the same time.
    pub most_alive: u64,
}

/// Flows of similar sizes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SizeClass {
    /// Name in the results.
    pub id: String,
    /// The largest size in it, bytes; `None` is any.
    pub up_to: Option<u64>,
}
