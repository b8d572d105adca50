//! Workloads in the text on standard output: completion times by size, in a table of their own.

use ackclock_trace::Summary;
use serde_json::{Map, Value};

use super::listed::Listed;
use crate::table::{Cell, Table};

const COLUMNS: Listed = Listed {
    list: "workloads",
    names: &["id"],
    metrics: &[
        "started",
        "completed",
        "fct_ms.mean",
        "fct_ms.p50",
        "fct_ms.p95",
        "fct_ms.p99",
        "fct_ms.max",
        "slowdown.mean",
        "slowdown.p50",
        "slowdown.p95",
        "slowdown.p99",
        "slowdown.max",
        "retransmitted_packets",
        "timeouts",
    ],
};

/// The metrics of requests in the first of these columns.
const REQUESTS: Listed = Listed {
    list: "workloads",
    names: &["id"],
    metrics: &[
        "made",
        "completed",
        "completion_ms.mean",
        "completion_ms.p50",
        "completion_ms.p95",
        "completion_ms.p99",
        "completion_ms.max",
    ],
};

/// The values shown of a workload, of one of its size classes, or of the requests of an incast, in
/// one run.
#[derive(Clone, Debug)]
pub(super) struct Line {
    name: String,
    /// Values in the order of [`COLUMNS`].
    values: Vec<Option<f64>>,
}

/// The rows of a run.
pub(super) fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let rows = summary.workloads.iter().flat_map(|row| {
        let requests = row.requests.as_ref().map(|of| {
            let mut values = REQUESTS.values(of);
            values.resize(COLUMNS.metrics.len(), None);
            Line { name: format!("{} requests", row.id), values }
        });
        [Line { name: row.id.clone(), values: COLUMNS.values(row) }].into_iter().chain(requests)
    });
    rows.collect()
}

/// A table whose first columns have these names.
pub(super) fn table(axes: Vec<String>) -> Table {
    let texts = axes.len() + 1;
    let header = axes.into_iter().chain(["workload".to_owned()]).chain(COLUMNS.headings());
    Table::new(texts, header)
}

/// A row of it: the medians of lines that are alike.
pub(super) fn cells(axes: &[String], first: &Line, alike: &[&Line]) -> Vec<Cell> {
    let names = axes.iter().cloned().chain([first.name.clone()]);
    let values: Vec<&Vec<Option<f64>>> = alike.iter().map(|line| &line.values).collect();
    names.map(Cell::from).chain(COLUMNS.medians(&values)).collect()
}

/// The table of one run; nothing without workloads.
pub(super) fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let lines = lines(summary);
    if lines.is_empty() {
        return String::new();
    }
    let mut table = table(Vec::new());
    lines.iter().for_each(|line| table.row(cells(&[], line, &[line])));
    format!("{}\n", table.render())
}
