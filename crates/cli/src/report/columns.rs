//! The table that `--columns` asks for: a line for each point, or for each flow of it.

use std::collections::BTreeSet;

use ackclock_scenario::{Column, Scenario, UnknownColumn, nearest};
use ackclock_trace::Summary;
use ackclock_trace::metrics::{self, MetricUnit};
use ackclock_trace::statistics::{deviation, median};
use anyhow::{anyhow, bail};
use serde_json::{Map, Value};

use super::cells::short;
use super::flow_lines::{COLUMNS, DIGITS, flow_lines};
use crate::table::{Cell, Table};

/// The most lines that are listed.
const MOST: usize = 10_000;

/// The contents of a column.
#[derive(Clone, Debug)]
enum Content {
    /// One of the table of a sweep.
    Usual(usize),
    Metric(Column),
}

/// The values shown of the runs of a point on a line.
#[derive(Debug)]
struct Line {
    names: Vec<String>,
    runs: usize,
    /// Values by column and run.
    values: Vec<Vec<f64>>,
}

/// The columns, and the lines so far.
#[derive(Debug)]
pub(crate) struct ReportColumns {
    contents: Vec<Content>,
    /// `true` if flows have lines of their own.
    each_flow: bool,
    /// The runs of the point at hand: each line with its name and a value for each column.
    point: Vec<Vec<(String, Vec<Option<f64>>)>>,
    lines: Vec<Line>,
}

impl ReportColumns {
    /// Reads the columns of these names; none without any.
    pub(crate) fn read(names: &[String], scenario: &Scenario) -> anyhow::Result<Option<ReportColumns>> {
        let mut contents = Vec::new();
        for name in names {
            if name.is_empty() {
                bail!("--columns: a name is empty; expected names separated by commas");
            }
            match usual(name) {
                Some(column) => contents.push(Content::Usual(column)),
                None => contents.extend(scenario.columns(name).map_err(explained)?.into_iter().map(Content::Metric)),
            }
        }
        let of_flow = |content: &Content| match content {
            Content::Usual(_) => true,
            Content::Metric(column) => column.of_each_flow,
        };
        let each_flow = contents.iter().any(of_flow);
        let found = ReportColumns { contents, each_flow, point: Vec::new(), lines: Vec::new() };
        Ok((!names.is_empty()).then_some(found))
    }

    /// Adds a run of the point at hand.
    pub(super) fn add(&mut self, summary: &Summary<Map<String, Value>>) {
        let json = serde_json::to_value(summary).unwrap_or_default();
        let usual = if self.each_flow { flow_lines(summary) } else { Vec::new() };
        let count = if self.each_flow { usual.len() } else { 1 };
        let columns = self.contents.iter().map(|content| match content {
            Content::Usual(column) => usual.iter().map(|line| line.values[*column]).collect(),
            Content::Metric(column) if column.of_each_flow => column.of_flows(&json),
            Content::Metric(column) => vec![column.of_run(&json); count],
        });
        let columns: Vec<Vec<Option<f64>>> = columns.collect();
        let line = |number: usize| {
            let values = columns.iter().map(|column| column.get(number).copied().flatten()).collect();
            (usual.get(number).map_or_else(String::new, |line| line.name.clone()), values)
        };
        self.point.push((0..count).map(line).collect());
    }

    /// Every run of the point at hand has been added; it has these values on the axes, and so many
    /// of its runs failed.
    pub(super) fn end_point(&mut self, axes: &[String], failed: usize) {
        let runs = std::mem::take(&mut self.point);
        if failed > 0 {
            let failed = format!("{failed} of {} failed", failed + runs.len());
            let names = axes.iter().cloned().chain([failed]).collect();
            self.lines.push(Line { names, runs: 0, values: vec![Vec::new(); self.contents.len()] });
        }
        for (number, (name, _)) in runs.first().into_iter().flatten().enumerate() {
            if self.lines.len() == MOST {
                return;
            }
            let names = axes.iter().cloned().chain(self.each_flow.then(|| name.clone())).collect();
            let of =
                |column: usize| runs.iter().filter_map(|run| *run.get(number)?.1.get(column)?).collect::<Vec<f64>>();
            self.lines.push(Line { names, runs: runs.len(), values: (0..self.contents.len()).map(of).collect() });
        }
    }

    /// The table, and how many names its lines have; the number of runs follows, if they are
    /// repeated.
    pub(super) fn table(&self, scenario: &Scenario) -> (Table, usize) {
        // A failed run has no flow, but says so.
        let has_names = self.each_flow || self.lines.iter().any(|line| line.runs == 0);
        let flow = has_names.then(|| if self.each_flow { "flow".to_owned() } else { String::new() });
        let axes: Vec<&str> = scenario.axes().collect();
        let texts = short(&axes).into_iter().chain(flow).collect::<Vec<_>>();
        let count = texts.len();
        let repeated = scenario.repeat() > 1;
        let shown: Vec<ColumnForm> = (0..self.contents.len()).map(|column| self.shown(column)).collect();
        let headings =
            repeated.then(|| "n".to_owned()).into_iter().chain(shown.iter().map(|shown| shown.heading.clone()));
        let mut table = Table::new(count, texts.into_iter().chain(headings));
        for line in &self.lines {
            let number = |(values, shown): (&Vec<f64>, &ColumnForm)| {
                let values: Vec<f64> = values.iter().map(|&value| shown.unit.scaled(value)).collect();
                let cell = |value| Cell::Number { value, deviation: deviation(&values), digits: shown.digits };
                median(&values).map_or_else(|| "-".to_owned().into(), cell)
            };
            let names = line.names.iter().cloned().chain(vec![String::new(); count - line.names.len()]);
            let runs = repeated.then(|| if line.runs == 0 { "-".to_owned() } else { line.runs.to_string() });
            table.row(names.chain(runs).map(Cell::from).chain(line.values.iter().zip(&shown).map(number)));
        }
        if self.lines.len() == MOST {
            table.row([format!("the first {MOST} lines")]);
        }
        (table, count)
    }

    fn shown(&self, column: usize) -> ColumnForm {
        let metric = match &self.contents[column] {
            Content::Usual(usual) => {
                return ColumnForm { heading: heading(*usual), unit: MetricUnit::None, digits: DIGITS[*usual] };
            }
            Content::Metric(metric) => metric,
        };
        let shown = metrics::shown(metric.list(), &metric.field);
        // Counts are whole, and so are their medians, or halves.
        let values = || self.lines.iter().flat_map(|line| &line.values[column]);
        let digits = match shown.unit.symbol() {
            "" if values().all(|value| value.fract() == 0.0) => 0,
            "" => 3,
            _ => shown.digits,
        };
        // An id that all of them have is not said.
        let ids: BTreeSet<&str> = (self.contents.iter())
            .filter_map(|content| match content {
                Content::Metric(other) if !other.of_each_flow && !other.id.is_empty() => Some(&*other.id),
                _ => None,
            })
            .collect();
        let id = if ids.len() > 1 { &*metric.id } else { "" };
        ColumnForm { heading: format!("{id} {}", shown.heading()).trim_start().to_owned(), unit: shown.unit, digits }
    }
}

/// The form of a column.
struct ColumnForm {
    heading: String,
    unit: MetricUnit,
    digits: usize,
}

/// The heading of a usual column that stands alone.
fn heading(column: usize) -> String {
    if COLUMNS[column].starts_with('p') { format!("RTT {} ms", COLUMNS[column]) } else { COLUMNS[column].to_owned() }
}

/// The usual column of this heading, with or without its unit.
fn usual(name: &str) -> Option<usize> {
    let is = |text: String| text.eq_ignore_ascii_case(name);
    (0..COLUMNS.len()).find(|&column| is(heading(column)) || is(plain_heading(column)))
}

/// A heading without its unit.
fn plain_heading(column: usize) -> String {
    let text = heading(column);
    [" Mbit/s", " ms", " %"].iter().find_map(|unit| text.strip_suffix(unit)).unwrap_or(&text).to_owned()
}

/// An error with the expected names for a name that is no metric, and no heading either.
fn explained(error: UnknownColumn) -> anyhow::Error {
    let headings: Vec<String> = (0..COLUMNS.len()).map(plain_heading).collect();
    let near = nearest(&error.name, headings.iter().map(String::as_str));
    let near = near.map_or_else(String::new, |near| format!("; did you mean the heading `{near}`?"));
    anyhow!("{error}; or a heading of the usual table: {}{near}", headings.join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn usual_headings_are_found() {
        assert_eq!(
            ["goodput", "RTT p50 ms", "rtt P95", "retrans.", "jain's index"].map(usual),
            [0, 2, 3, 4, 6].map(Some)
        );
        assert_eq!(usual("rtt_ms.p50"), None);
    }
}
