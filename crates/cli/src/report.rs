//! The text on standard output: one run in detail, or a sweep with one line per flow and point.

use std::fmt::Write;

use ackclock_run::names;
use ackclock_run::selection::Selection;
use ackclock_scenario::{Measures, Scenario};
use ackclock_trace::statistics::{deviation, median};
use ackclock_trace::{FlowSummary, GroupSummary, Summary, jain};
use serde_json::{Map, Value};

use crate::table::{Cell, Table};
use applications::Applications;
pub(crate) use columns::ReportColumns;
pub(crate) use ending::ending;
use kinds::Kinds;
use live::LiveReport;
use repetitions::Repetitions;
use responsiveness::ResponsivenessTable;
pub(crate) use sums::{Sum, groups};

mod applications;
mod columns;
mod datagrams;
mod detail;
mod ending;
mod kinds;
mod listed;
mod live;
mod repetitions;
mod responsiveness;
mod sums;
mod workloads;

/// Of more points, or flows or links of a single run, than twice this, tables list so many at either
/// end, in runs of all repetitions.
const ENDS: usize = 100;

/// Points with more flows get one line for all of them.
const MAX_FLOW_LINES: usize = 8;

/// Collects runs as they come in and becomes text at the end.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    scenario: &'a Scenario,
    /// The only table, if columns were asked for.
    columns: Option<ReportColumns>,
    /// The runs, of which the points at the ends are listed; all points without it.
    ends: Option<Selection>,
    body: String,
    sweep: Table,
    /// The runs of the point at hand, and the number of one of them.
    point: Vec<Vec<Line>>,
    run: usize,
    /// Number of runs added.
    runs: usize,
    /// How many points have been added and are not listed, and the last of them.
    left_out: (usize, Option<usize>),
    repetitions: Repetitions,
    /// Number of failed runs of that point.
    failed: usize,
    /// The table of flows of datagrams, if there are any.
    datagrams: Option<Table>,
    datagrams_of_point: Vec<Vec<datagrams::Line>>,
    workloads: Option<Table>,
    workloads_of_point: Vec<Vec<workloads::Line>>,
    applications: Applications,
    responsiveness: ResponsivenessTable,
    kinds: Kinds,
    live: LiveReport,
}

/// The values shown of one flow, or of all, in one run.
#[derive(Clone, Debug)]
struct Line {
    name: String,
    /// Values in the order of [`COLUMNS`].
    values: [Option<f64>; COLUMNS.len()],
}

const COLUMNS: [&str; 7] = ["goodput Mbit/s", "RTT p5 ms", "p50", "p95", "retrans. %", "RTOs", "Jain's index"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [3, 1, 1, 1, 2, 0, 3];

impl<'a> Report<'a> {
    pub(crate) fn new(scenario: &'a Scenario, columns: Option<ReportColumns>, ends: Option<Selection>) -> Report<'a> {
        let axes: Vec<&str> = scenario.axes().collect();
        let count = (scenario.repeat() > 1).then(|| "n".to_owned());
        let header = short(&axes).into_iter().chain(["flow".to_owned()]).chain(count);
        let header = header.chain(COLUMNS.map(str::to_owned));
        Report {
            scenario,
            columns,
            ends,
            body: String::new(),
            sweep: Table::new(axes.len() + 1, header),
            point: Vec::new(),
            run: 0,
            runs: 0,
            left_out: (0, None),
            repetitions: Repetitions::default(),
            failed: 0,
            datagrams: None,
            datagrams_of_point: Vec::new(),
            workloads: None,
            workloads_of_point: Vec::new(),
            applications: Applications::default(),
            responsiveness: ResponsivenessTable::default(),
            kinds: Kinds::default(),
            live: LiveReport::default(),
        }
    }

    /// Adds a run; they come in order.
    pub(crate) fn add(&mut self, run: usize, summary: &Summary<Map<String, Value>>) {
        self.runs += 1;
        if self.leaves_out(run) {
            return;
        }
        if self.columns.is_some() {
            self.reach(run);
            self.repetitions.add(summary);
            self.columns.iter_mut().for_each(|columns| columns.add(summary));
            return;
        }
        if !self.scenario.is_sweep() {
            self.body = detail::text(summary, self.ends.as_ref().map(|_| ENDS));
            return;
        }
        self.reach(run);
        self.repetitions.add(summary);
        self.point.push(lines(summary));
        self.datagrams_of_point.push(datagrams::lines(summary));
        self.workloads_of_point.push(workloads::lines(summary));
        self.applications.add(summary);
        self.responsiveness.add(summary);
        self.kinds.add(summary);
        self.live.add(summary);
    }

    /// Adds a run that failed.
    pub(crate) fn fail(&mut self, run: usize) {
        self.runs += 1;
        if self.leaves_out(run) {
            return;
        }
        self.reach(run);
        self.failed += 1;
    }

    /// Returns `true` if a run is of a point that is not listed, as it is far from either end.
    fn leaves_out(&mut self, run: usize) -> bool {
        let Some(selection) = &self.ends else { return false };
        let (point, ends) = (run / self.scenario.repeat(), ENDS.saturating_mul(self.scenario.repeat()));
        // All runs of a point are where its first is.
        let far =
            (ends..selection.count().saturating_sub(ends)).contains(&selection.before(point * self.scenario.repeat()));
        if far && self.left_out.1.replace(point) != Some(point) {
            self.left_out.0 += 1;
        }
        far
    }

    /// Comes to a run.
    fn reach(&mut self, run: usize) {
        // Some runs of a point may be missing where others have been broken off.
        if run / self.scenario.repeat() != self.run / self.scenario.repeat() {
            self.end_point();
        }
        self.run = run;
    }

    /// Every run of the point at hand has been added.
    fn end_point(&mut self) {
        let runs = std::mem::take(&mut self.point);
        let failed = std::mem::take(&mut self.failed);
        self.repetitions.end_point();
        let axes: Vec<String> = self.scenario.names(self.run).into_iter().map(|(_, name)| name).collect();
        if let Some(columns) = &mut self.columns {
            columns.end_point(&axes, failed);
            return;
        }
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let of_flow = || runs.iter().filter_map(|run| run.get(number));
            let count = (self.scenario.repeat() > 1).then(|| of_flow().count().to_string());
            let texts = axes.iter().cloned().chain([first.name.clone()]).chain(count);
            let values = |column: usize| of_flow().filter_map(|line| line.values[column]).collect();
            let numbers = DIGITS.iter().enumerate().map(|(column, &digits)| cell(values(column), digits));
            self.sweep.row(texts.map(Cell::from).chain(numbers));
        }
        if failed > 0 {
            let count = (self.scenario.repeat() > 1).then(|| "-".to_owned());
            let texts = axes.iter().cloned().chain([format!("{failed} of {} failed", failed + runs.len())]);
            self.sweep.row(texts.chain(count).chain(COLUMNS.map(|_| "-".to_owned())));
        }
        let runs = std::mem::take(&mut self.datagrams_of_point);
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let names = || short(&self.scenario.axes().collect::<Vec<_>>());
            let alike: Vec<&datagrams::Line> = runs.iter().filter_map(|run| run.get(number)).collect();
            let table = self.datagrams.get_or_insert_with(|| datagrams::table(names()));
            table.row(datagrams::cells(&axes, first, &alike));
        }
        let runs = std::mem::take(&mut self.workloads_of_point);
        let names = short(&self.scenario.axes().collect::<Vec<_>>());
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let alike: Vec<&workloads::Line> = runs.iter().filter_map(|run| run.get(number)).collect();
            let table = self.workloads.get_or_insert_with(|| workloads::table(names.clone()));
            table.row(workloads::cells(&axes, first, &alike));
        }
        self.applications.end_point(&names, &axes);
        self.responsiveness.end_point(&names, &axes);
        self.kinds.end_point(&names, &axes);
        self.live.end_point(&names, &axes);
    }

    /// The text, without what became of the expectations.
    pub(crate) fn text(&mut self) -> String {
        self.end_point();
        let scenario = self.scenario;
        let mut out = String::new();
        if !scenario.title().is_empty() {
            let _ = writeln!(out, "{}", scenario.title());
        }
        if scenario.is_sweep() || self.columns.is_some() {
            let (mut table, names) = match &self.columns {
                Some(columns) => columns.table(scenario),
                None => (std::mem::replace(&mut self.sweep, Table::new(0, [""; 0])), scenario.axes().count() + 1),
            };
            let medians = if scenario.repeat() > 1 {
                let count = match table.has_rows() {
                    true => table.take_same(names).unwrap_or_else(|| "n".to_owned()),
                    false => scenario.repeat().to_string(),
                };
                format!(", medians ± standard deviations over the {count} runs of a point")
            } else {
                String::new()
            };
            let runs = if self.runs == 1 { "1 run".to_owned() } else { format!("{} runs", self.runs) };
            let _ = writeln!(out, "{runs}{medians}");
            // A live run may have commands alone.
            if table.has_rows() {
                let _ = writeln!(out, "\n{}", table.render().trim_end());
            }
            let (more, _) = self.left_out;
            if more > 0 {
                let _ =
                    writeln!(out, "{more} points between the first and the last are left out; --all-rows lists them");
            }
            for table in [&self.datagrams, &self.workloads].into_iter().flatten() {
                let _ = writeln!(out, "\n{}", table.render().trim_end());
            }
            let others = [self.responsiveness.text(), self.kinds.text(), self.live.text()].into_iter().flatten();
            self.applications.text().into_iter().chain(others).for_each(|table| _ = writeln!(out, "\n{table}"));
            if let Some(note) = self.repetitions.note() {
                let _ = writeln!(out, "\n{note}");
            }
        } else {
            out.push_str(&self.body);
        }
        out
    }
}

/// A note that points have had the most runs of an adaptive sweep, and are not known well enough.
pub(crate) fn unsettled(scenario: &Scenario, measures: &[Option<Measures>]) -> Option<String> {
    let (known, points) = scenario.unsettled(measures)?;
    let (repeat, all) = (scenario.repeat(), scenario.runs() / scenario.repeat());
    let first = names::of_point(scenario, *points.first()?);
    let points = points.len();
    Some(format!("note: after {repeat} runs, {points} of {all} points do not have {known}; the first is {first}"))
}

/// A number without needless digits.
pub(crate) fn number(value: f64) -> String {
    let digits = if value.abs() >= 1000.0 { 0 } else { 3 };
    let text = fixed(value, digits);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn fixed(value: f64, digits: usize) -> String {
    format!("{value:.digits$}")
}

/// The axes by as many of their last keys as tell them apart.
pub(crate) fn short(axes: &[&str]) -> Vec<String> {
    let tail = |axis: &str, keys: usize| {
        let parts: Vec<&str> = axis.split('.').collect();
        parts[parts.len().saturating_sub(keys)..].join(".")
    };
    axes.iter()
        .enumerate()
        .map(|(index, axis)| {
            let apart = |keys: &usize| {
                axes.iter().enumerate().all(|(other, name)| other == index || tail(name, *keys) != tail(axis, *keys))
            };
            // `kind` alone says little.
            let least = if axis.ends_with(".kind") { 2 } else { 1 };
            tail(axis, (least..10).find(apart).unwrap_or(10))
        })
        .collect()
}

/// The flows that send a way, and their Jain's index. Datagrams have lines of their own;
/// connections are compared with each other.
fn ways(flows: &[FlowSummary]) -> [(Vec<&FlowSummary>, &'static str, Option<f64>); 2] {
    ["forward", "reverse"].map(|way| {
        let alike = |flow: &&FlowSummary| flow.direction == way && flow.datagrams.is_none();
        let flows: Vec<&FlowSummary> = flows.iter().filter(alike).collect();
        let jain = jain(flows.iter().map(|flow| flow.goodput_bps));
        (flows, way, jain)
    })
}

fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = &summary.flows;
    if flows.len() > MAX_FLOW_LINES {
        let groups = summary.groups.iter().map(group_line);
        let ways = ways(flows);
        let both = ways.iter().all(|(flows, ..)| !flows.is_empty());
        let there = ways.iter().filter(|(flows, ..)| !flows.is_empty());
        let groups = by_group(flows, summary.duration_s).into_iter().chain(groups);
        return there
            .map(|(flows, way, _)| {
                let name = format!("{} flows", flows.len());
                total(if both { format!("{name} {way}") } else { name }, flows, summary.duration_s)
            })
            .chain(groups)
            .collect();
    }
    flow_lines(summary)
}

/// A line for each flow and group of flows.
fn flow_lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = &summary.flows;
    let ways = ways(flows);
    let groups = summary.groups.iter().map(group_line);
    flows
        .iter()
        .map(|flow| {
            let values = [
                Some(flow.goodput_bps / 1e6),
                flow.rtt_ms.quantiles.p5,
                flow.rtt_ms.quantiles.p50,
                flow.rtt_ms.quantiles.p95,
                percent(flow.sent.retransmitted_packets, flow.sent.sent_packets),
                Some(flow.recoveries.timeouts as f64),
                (ways.iter().find(|(_, way, _)| flow.direction == *way && flow.datagrams.is_none()))
                    .and_then(|(.., jain)| *jain),
            ];
            Line { name: flow.id.to_string(), values }
        })
        .chain(groups)
        .collect()
}

/// A line for each group of flows, if there are several of them.
fn by_group(flows: &[FlowSummary], duration_s: f64) -> Vec<Line> {
    let groups = groups(flows.iter().filter(|flow| flow.datagrams.is_none()));
    if groups.len() < 2 {
        return Vec::new();
    }
    let line = |((id, _), flows): &((&str, &str), Vec<&FlowSummary>)| {
        let count = if flows.len() == 1 { "1 flow".to_owned() } else { format!("{} flows", flows.len()) };
        total(format!("{id}: {count}"), flows, duration_s)
    };
    groups.iter().map(line).collect()
}

/// The line of flows that are listed together.
fn group_line(group: &GroupSummary) -> Line {
    let rtt = group.rtt_ms.distribution.quantiles;
    let values = [
        Some(group.goodput_bps / 1e6),
        rtt.p5,
        rtt.p50,
        rtt.p95,
        percent(group.sent.retransmitted_packets, group.sent.sent_packets),
        Some(group.recoveries.timeouts as f64),
        None,
    ];
    Line { name: group.id.clone(), values }
}

/// One line for many flows that send the same way.
fn total(name: String, flows: &[&FlowSummary], duration_s: f64) -> Line {
    let sum = Sum::of(flows, duration_s);
    let values = [
        sum.goodput_bps.map(|rate| rate / 1e6),
        sum.rtt_p5_ms,
        sum.rtt_p50_ms,
        sum.rtt_p95_ms,
        percent(sum.sent.retransmitted_packets, sum.sent.sent_packets),
        Some(sum.timeouts as f64),
        sum.fairness_jain,
    ];
    Line { name, values }
}

/// A part in percent; `None` of nothing.
fn percent(part: u64, whole: u64) -> Option<f64> {
    (whole > 0).then(|| part as f64 * 100.0 / whole as f64)
}

/// The median of the runs of a point, with the standard deviation if there are several.
pub(crate) fn cell(values: Vec<f64>, digits: usize) -> Cell {
    let number = |value| Cell::Number { value, deviation: deviation(&values), digits };
    median(&values).map_or_else(|| "-".to_owned().into(), number)
}

#[cfg(test)]
mod tests {
    use ackclock_trace::Progress;

    use super::*;

    #[test]
    fn axes_are_named_by_what_tells_them_apart() {
        assert_eq!(short(&["links.a.queue.kind", "links.a.delay"]), ["queue.kind", "delay"]);
        assert_eq!(short(&["links.a.delay", "links.b.delay"]), ["a.delay", "b.delay"]);
    }

    #[test]
    fn several_runs_have_a_spread() {
        // The squares of -1, 0 and 1 over n - 1.
        let number = |value, deviation, digits| Cell::Number { value, deviation, digits };
        assert_eq!(cell(vec![3.0, 1.0, 2.0], 2), number(2.0, Some(1.0), 2));
        assert_eq!(cell(vec![3.0], 1), number(3.0, None, 1));
        assert_eq!(cell(vec![], 1), "-".to_owned().into());
    }

    #[test]
    fn many_flows_have_a_line_for_each_group() {
        let flow = |id: &str, goodput: f64| FlowSummary {
            id: id.into(),
            direction: "forward",
            goodput_bps: goodput,
            progress: Progress { delivered_bytes: (goodput / 8.0) as u64, acked_bytes: 0 },
            ..FlowSummary::default()
        };
        let flows = [flow("a.0", 1e6), flow("b.0", 5e6), flow("a.1", 3e6)];
        let lines: Vec<_> =
            by_group(&flows, 2.0).into_iter().map(|line| (line.name, line.values[0], line.values[6])).collect();
        // The goodput is of the bytes that arrived in two seconds; Jain's index of 1 and 3 is 16 /
        // 20.
        assert_eq!(lines, [("a: 2 flows".into(), Some(2.0), Some(0.8)), ("b: 1 flow".into(), Some(2.5), Some(1.0))]);
        assert!(by_group(&flows[..1], 2.0).is_empty());
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        assert_eq!(number(60.0), "60");
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(9_412_345.6), "9412346");
    }
}
