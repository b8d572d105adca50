//! Flows of datagrams in the text on standard output: a table of their own beside that of all
//! flows.

use ackclock_trace::statistics::median;
use ackclock_trace::{DatagramSummary, FlowSummary, Summary, jain};
use serde_json::{Map, Value};

use super::cells::{MAX_FLOW_LINES, cell, fixed};
use crate::table::{Cell, Table};

const COLUMNS: [&str; 10] =
    ["lost %", "bursts", "delay p50 ms", "p95", "p99", "jitter ms", "max", "reordered %", "marked %", "MOS"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [3, 0, 2, 2, 2, 3, 3, 3, 1, 2];

/// The values shown of one flow, or the medians of many, in one run.
#[derive(Clone, Debug)]
pub(super) struct Line {
    name: String,
    application: &'static str,
    /// Values in the order of [`COLUMNS`].
    values: [Option<f64>; COLUMNS.len()],
}

fn values(of: &DatagramSummary) -> [Option<f64>; COLUMNS.len()] {
    let share = |part: u64| (of.received > 0).then(|| part as f64 * 100.0 / of.received as f64);
    let delay = &of.delay_ms;
    [
        of.loss_ratio.map(|ratio| ratio * 100.0),
        Some(of.loss_bursts.count as f64),
        delay.distribution.quantiles.p50,
        delay.distribution.quantiles.p95,
        delay.p99,
        of.jitter_mean_ms,
        of.jitter_max_ms,
        of.reordering.ratio.map(|ratio| ratio * 100.0),
        share(of.marked),
        of.voice.as_ref().and_then(|voice| voice.mos),
    ]
}

/// A line for each flow of datagrams, or for each application and direction if they are many.
pub(super) fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = || summary.flows.iter().filter_map(|flow| Some((flow, flow.datagrams.as_deref()?)));
    if summary.flows.len() <= MAX_FLOW_LINES {
        let line = |(flow, of): (&FlowSummary, &DatagramSummary)| Line {
            name: flow.id.to_string(),
            application: of.application,
            values: values(of),
        };
        return flows().map(line).collect();
    }
    let mut kinds: Vec<(&'static str, &'static str)> = Vec::new();
    for (flow, of) in flows() {
        if !kinds.contains(&(of.application, flow.direction)) {
            kinds.push((of.application, flow.direction));
        }
    }
    let line = |(application, direction): (&'static str, &'static str)| {
        let alike = || flows().filter(|(flow, of)| (of.application, flow.direction) == (application, direction));
        let all: Vec<_> = alike().map(|(_, of)| values(of)).collect();
        let column = |column: usize| median(&all.iter().filter_map(|values| values[column]).collect::<Vec<_>>());
        let name = format!("{} {direction}", all.len());
        Line { name, application, values: std::array::from_fn(column) }
    };
    kinds.into_iter().map(line).collect()
}

/// The table of one run; nothing without such flows.
pub(super) fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let mut table = table([]);
    let lines = lines(summary);
    if lines.is_empty() {
        return String::new();
    }
    for line in &lines {
        table.row(cells(&[], line, &[line]));
    }
    format!("{}\n", table.render())
}

/// Jain's index for each direction and kind of traffic with several flows, as text.
pub(super) fn fairness(summary: &Summary<Map<String, Value>>) -> String {
    let kind = |flow: &FlowSummary| flow.datagrams.as_deref().map_or("tcp", |of| of.application);
    let mut kinds: Vec<(&str, &str)> = Vec::new();
    for flow in &summary.flows {
        if !kinds.contains(&(kind(flow), flow.direction)) {
            kinds.push((kind(flow), flow.direction));
        }
    }
    let parts: Vec<String> = (kinds.into_iter())
        .filter_map(|(name, direction)| {
            let alike = || summary.flows.iter().filter(|flow| (kind(flow), flow.direction) == (name, direction));
            let index = jain(alike().map(|flow| flow.goodput_bps)).filter(|_| alike().count() > 1)?;
            Some(format!("{} {name} {direction}", fixed(index, 3)))
        })
        .collect();
    if parts.is_empty() { "-".to_owned() } else { parts.join(", ") }
}

/// The empty table of a sweep with these axes.
pub(super) fn table(axes: impl IntoIterator<Item = String>) -> Table {
    let axes: Vec<String> = axes.into_iter().collect();
    let text = axes.len() + 2;
    let names = ["datagrams", "application"].map(str::to_owned);
    Table::new(text, axes.into_iter().chain(names).chain(COLUMNS.map(str::to_owned)))
}

/// The cells of a line, with the medians of its runs.
pub(super) fn cells(axes: &[String], first: &Line, runs: &[&Line]) -> Vec<Cell> {
    let names = axes.iter().cloned().chain([first.name.clone(), first.application.to_owned()]);
    let values = |column: usize| runs.iter().filter_map(|line| line.values[column]).collect();
    let numbers = DIGITS.iter().enumerate().map(|(column, &digits)| cell(values(column), digits));
    names.map(Cell::from).chain(numbers).collect()
}
