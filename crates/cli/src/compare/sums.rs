//! The sums of flows, beside the values of each: those of the table of a run.

use ackclock_trace::FlowSummary;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::report::{Sum, groups};

#[derive(Serialize)]
struct NamedSum {
    id: String,
    #[serde(flatten)]
    sum: Sum,
}

/// Adds `sums` to a summary: of each group of several flows (`reno.*`), and of all connections that
/// send the same way (`*.forward`) where these are not one group. A summary whose flows are not
/// those of this version has none.
pub(super) fn add(summary: &mut Value) {
    let flows: Option<Vec<FlowSummary>> = summary["flows"]
        .as_array()
        .and_then(|flows| flows.iter().map(|flow| FlowSummary::deserialize(flow).ok()).collect());
    let (Some(flows), Some(duration_s)) = (flows, summary["duration_s"].as_f64()) else { return };
    let groups = groups(flows.iter());
    let mut sums: Vec<NamedSum> = Vec::new();
    let mut put = |id: String, flows: &[&FlowSummary]| {
        if flows.len() > 1 {
            sums.push(NamedSum { id, sum: Sum::of(flows, duration_s) });
        }
    };
    for ((group, _), flows) in &groups {
        put(format!("{group}.*"), flows);
    }
    for way in ["forward", "reverse"] {
        let connections = flows.iter().filter(|flow| flow.direction == way && flow.datagrams.is_none());
        let connections: Vec<&FlowSummary> = connections.collect();
        if groups.iter().all(|(_, flows)| flows.len() != connections.len() || flows[0].direction != way) {
            put(format!("*.{way}"), &connections);
        }
    }
    if let (Ok(sums), false, Some(summary)) = (serde_json::to_value(&sums), sums.is_empty(), summary.as_object_mut()) {
        summary.insert("sums".to_owned(), sums);
    }
}
