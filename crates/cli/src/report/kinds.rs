//! Flows by kind of traffic and direction, in the text on standard output.

use ackclock_trace::{KindSummary, Summary};
use serde_json::{Map, Value};

use super::listed::Listed;
use crate::table::{Cell, Table};

const COLUMNS: Listed = Listed {
    list: "kinds",
    names: &["transport", "kind", "direction"],
    metrics: &["flows", "goodput_bps", "fairness_jain", "delay_p50_ms", "delay_p95_ms", "loss_ratio"],
};

/// The values shown of a kind, in one run.
#[derive(Clone, Debug)]
struct Line {
    /// Transport, kind and direction.
    names: [&'static str; 3],
    /// Values in the order of [`COLUMNS`].
    values: Vec<Option<f64>>,
}

fn line(of: &KindSummary) -> Line {
    Line { names: [of.transport, of.kind, of.direction], values: COLUMNS.values(of) }
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
                Table::new(axes.len() + 3, axes.iter().cloned().chain(names).chain(COLUMNS.headings()))
            });
            let names = first.names.map(str::to_owned);
            let alike: Vec<&Vec<Option<f64>>> = alike().map(|line| &line.values).collect();
            table.row(values.iter().cloned().chain(names).map(Cell::from).chain(COLUMNS.medians(&alike)));
        }
    }

    /// The table, if there is one.
    pub(super) fn text(&self) -> Option<String> {
        self.table.as_ref().map(|table| table.render().trim_end().to_owned())
    }
}
