//! Flows by kind of traffic and direction, in the text on standard output.

use ackclock_trace::{KindSummary, Summary};
use serde_json::{Map, Value};

use super::cell;
use crate::table::{Cell, Table};

const COLUMNS: [&str; 6] = ["flows", "goodput Mbit/s", "Jain's index", "delay p50 ms", "p95", "lost %"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [0, 3, 3, 1, 1, 3];

/// What is shown of a kind, in one run.
#[derive(Clone, Debug)]
struct Line {
    /// Transport, kind and direction.
    names: [&'static str; 3],
    /// In the order of [`COLUMNS`].
    values: [Option<f64>; COLUMNS.len()],
}

fn line(of: &KindSummary) -> Line {
    let values = [
        Some(of.flows as f64),
        Some(of.goodput_bps / 1e6),
        of.fairness_jain,
        of.delay_p50_ms,
        of.delay_p95_ms,
        of.loss_ratio.map(|ratio| ratio * 100.0),
    ];
    Line { names: [of.transport, of.kind, of.direction], values }
}

/// The table of one run; nothing with flows of one kind.
pub(super) fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let mut table = Kinds::default();
    table.add(summary);
    table.end_point(&[], &[]);
    table.text().map_or_else(String::new, |text| format!("{text}\n\n"))
}

/// The table of a sweep.
#[derive(Debug, Default)]
pub(super) struct Kinds {
    /// The rows of the runs of the point at hand.
    point: Vec<Vec<Line>>,
    table: Option<Table>,
}

impl Kinds {
    /// Adds a run of the point at hand.
    pub(super) fn add(&mut self, summary: &Summary<Map<String, Value>>) {
        self.point.push(summary.kinds.iter().map(line).collect());
    }

    /// Every run of the point at hand has been added; it has these values on these axes.
    pub(super) fn end_point(&mut self, axes: &[String], values: &[String]) {
        let runs = std::mem::take(&mut self.point);
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let alike = || runs.iter().filter_map(|run| run.get(number));
            let table = self.table.get_or_insert_with(|| {
                let names = ["transport", "traffic", "direction"].map(str::to_owned);
                Table::new(axes.len() + 3, axes.iter().cloned().chain(names).chain(COLUMNS.map(str::to_owned)))
            });
            let names = first.names.map(str::to_owned);
            let numbers = DIGITS
                .iter()
                .enumerate()
                .map(|(column, &digits)| cell(alike().filter_map(|line| line.values[column]).collect(), digits));
            table.row(values.iter().cloned().chain(names).map(Cell::from).chain(numbers));
        }
    }

    /// The table, if there is one.
    pub(super) fn text(&self) -> Option<String> {
        self.table.as_ref().map(|table| table.render().trim_end().to_owned())
    }
}
