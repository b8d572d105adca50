//! Workloads in the text on standard output: completion times by size, in a table of their own.

use ackclock_trace::{Distribution, Spread, Summary};
use serde_json::{Map, Value};

use super::cell;
use crate::table::{Cell, Table};

const COLUMNS: [&str; 14] = [
    "started",
    "completed",
    "FCT ms",
    "p50",
    "p95",
    "p99",
    "max",
    "slowdown",
    "p50",
    "p95",
    "p99",
    "max",
    "retrans.",
    "timeouts",
];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [0, 0, 3, 3, 3, 3, 3, 2, 2, 2, 2, 2, 0, 0];

/// What is shown of a workload, of one of its size classes, or of the requests of an incast, in one
/// run.
#[derive(Clone, Debug)]
pub(super) struct Line {
    name: String,
    /// In the order of [`COLUMNS`].
    values: [Option<f64>; COLUMNS.len()],
}

fn values(
    counts: [u64; 2],
    fct: &Spread,
    slowdown: &Spread,
    troubles: Option<[u64; 2]>,
) -> [Option<f64>; COLUMNS.len()] {
    let of = |spread: &Spread| {
        let Distribution { max, quantiles, .. } = spread.distribution;
        [spread.mean, quantiles.p50, quantiles.p95, spread.p99, max]
    };
    let mut values = [None; COLUMNS.len()];
    values[..2].copy_from_slice(&counts.map(|count| Some(count as f64)));
    values[2..7].copy_from_slice(&of(fct));
    values[7..12].copy_from_slice(&of(slowdown));
    values[12..].copy_from_slice(&[0, 1].map(|n| troubles.map(|troubles| troubles[n] as f64)));
    values
}

/// The rows of a run.
pub(super) fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let rows = summary.workloads.iter().flat_map(|row| {
        let troubles = Some([row.retransmitted_packets, row.timeouts]);
        let flows = values([row.started, row.completed], &row.fct_ms, &row.slowdown, troubles);
        let requests = row.requests.as_ref().map(|of| Line {
            name: format!("{} requests", row.id),
            values: values([of.made, of.completed], &of.completion_ms, &Spread::default(), None),
        });
        [Line { name: row.id.clone(), values: flows }].into_iter().chain(requests)
    });
    rows.collect()
}

/// A table whose first columns have these names.
pub(super) fn table(axes: Vec<String>) -> Table {
    let texts = axes.len() + 1;
    let header = axes.into_iter().chain(["workload".to_owned()]).chain(COLUMNS.map(str::to_owned));
    Table::new(texts, header)
}

/// A row of it: the medians of lines that are alike.
pub(super) fn cells(axes: &[String], first: &Line, alike: &[&Line]) -> Vec<Cell> {
    let names = axes.iter().cloned().chain([first.name.clone()]);
    let values = |column: usize| alike.iter().filter_map(|line| line.values[column]).collect();
    let numbers = DIGITS.iter().enumerate().map(|(column, &digits)| cell(values(column), digits));
    names.map(Cell::from).chain(numbers).collect()
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
