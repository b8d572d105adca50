//! Responsiveness in the text on standard output: one row for a run, or for a point of a sweep.

use ackclock_trace::{ResponsivenessSummary, Summary};
use serde_json::{Map, Value};

use super::cells::cell;
use crate::table::{Cell, Table};

const COLUMNS: [&str; 9] =
    ["round trips/min", "foreign", "loaded", "TCP ms", "TLS", "HTTP", "loaded", "foreign probes", "self probes"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [0, 0, 0, 1, 1, 1, 1, 0, 0];

/// The values shown of a run, in the order of [`COLUMNS`].
type Line = [Option<f64>; COLUMNS.len()];

fn line(summary: &Summary<Map<String, Value>>) -> Option<Line> {
    let of: &ResponsivenessSummary = summary.responsiveness.as_ref()?;
    let counts = [of.foreign_probes, of.self_probes].map(|count| Some(count as f64));
    let rates = [summary.responsiveness_rpm, of.foreign_rpm, of.loaded_rpm];
    let times = [of.tcp_ms, of.tls_ms, of.http_ms, of.loaded_ms];
    let mut all = rates.into_iter().chain(times).chain(counts);
    Some(std::array::from_fn(|_| all.next().flatten()))
}

/// The table of one run; nothing without probes.
pub(super) fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let mut table = ResponsivenessTable::default();
    table.add(summary);
    table.end_point(&[], &[]);
    table.text().map_or_else(String::new, |text| format!("{text}\n\n"))
}

/// The table of a sweep.
#[derive(Debug, Default)]
pub(super) struct ResponsivenessTable {
    /// The runs of the point at hand.
    point: Vec<Line>,
    table: Option<Table>,
}

impl ResponsivenessTable {
    /// Adds a run of the point at hand.
    pub(super) fn add(&mut self, summary: &Summary<Map<String, Value>>) {
        self.point.extend(line(summary));
    }

    /// Every run of the point at hand has been added; it has these values on these axes.
    pub(super) fn end_point(&mut self, axes: &[String], values: &[String]) {
        let runs = std::mem::take(&mut self.point);
        if runs.is_empty() {
            return;
        }
        let header = axes.iter().cloned().chain(COLUMNS.map(str::to_owned));
        let table = self.table.get_or_insert_with(|| Table::new(axes.len(), header));
        let cells = DIGITS
            .iter()
            .enumerate()
            .map(|(column, &digits)| cell(runs.iter().filter_map(|run| run[column]).collect(), digits));
        table.row(values.iter().cloned().map(Cell::from).chain(cells));
    }

    /// The table, if there is one.
    pub(super) fn text(&self) -> Option<String> {
        self.table.as_ref().map(|table| table.render().trim_end().to_owned())
    }
}
