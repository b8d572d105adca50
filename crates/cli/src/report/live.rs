//! Live runs in the text on standard output: one row for each point of a sweep. Runs with stacks of
//! one's own have a table for each host.

use ackclock_trace::{LiveSummary, Summary};
use serde_json::{Map, Value};

use super::cells::cell;
use crate::live::StackResults;
use crate::table::{Cell, Table};

const COLUMNS: [&str; 5] = ["lateness p50 ms", "p99", "packets", "processor %", "valid runs"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len() - 1] = [3, 3, 0, 1];

/// The values shown of a run.
#[derive(Debug)]
struct Line {
    /// Values in the order of [`COLUMNS`].
    values: [Option<f64>; DIGITS.len()],
    is_valid: bool,
}

fn line(summary: &Summary<Map<String, Value>>) -> Option<Line> {
    let live = summary.live.as_ref().filter(|_| summary.clock != "virtual")?;
    let sent: u64 = live.hosts.iter().map(|host| host.sent_packets).sum();
    let percent = live.cpu_utilization.map(|share| share * 100.0);
    let values = [live.lateness_ms.p50, live.lateness_ms.p99, Some(sent as f64), percent];
    Some(Line { values, is_valid: live.valid })
}

/// The table of a sweep.
#[derive(Debug, Default)]
pub(super) struct LiveReport {
    /// The runs of the point at hand.
    point: Vec<Line>,
    table: Option<Table>,
    /// Results of stacks at the point at hand.
    results: Vec<LiveSummary>,
    stacks: StackResults,
    axes: Vec<String>,
}

impl LiveReport {
    /// Adds a run of the point at hand.
    pub(super) fn add(&mut self, summary: &Summary<Map<String, Value>>) {
        self.point.extend(line(summary));
        self.results.extend(summary.live.clone());
    }

    /// Every run of the point at hand has been added; it has these values on these axes.
    pub(super) fn end_point(&mut self, axes: &[String], values: &[String]) {
        self.results.drain(..).for_each(|live| self.stacks.add(&live, values));
        self.axes = axes.to_vec();
        let runs = std::mem::take(&mut self.point);
        if runs.is_empty() {
            return;
        }
        let header = axes.iter().cloned().chain(COLUMNS.map(str::to_owned));
        let table = self.table.get_or_insert_with(|| Table::new(axes.len(), header));
        let numbers = DIGITS.iter().enumerate();
        let numbers =
            numbers.map(|(column, &digits)| cell(runs.iter().filter_map(|run| run.values[column]).collect(), digits));
        let valid = format!("{} of {}", runs.iter().filter(|run| run.is_valid).count(), runs.len());
        table.row(values.iter().cloned().map(Cell::from).chain(numbers).chain([Cell::from(valid)]));
    }

    /// The tables, if there are any.
    pub(super) fn text(&self) -> Option<String> {
        let tables =
            self.table.iter().map(Table::render).chain(self.stacks.tables(&self.axes).map(|table| table.render()));
        let texts: Vec<String> = tables.map(|text| text.trim_end().to_owned()).collect();
        (!texts.is_empty()).then(|| texts.join("\n\n"))
    }
}
