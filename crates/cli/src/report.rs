//! The text on standard output: one run in detail, or a sweep with one line per flow and point.

use std::fmt::Write;

use ackclock_scenario::{Evaluation, Scenario};
use ackclock_trace::{FlowSummary, GroupSummary, LinkSummary, Summary, jain};
use serde_json::{Map, Value};

use crate::live;
use crate::table::Table;
use applications::Applications;
use kinds::Kinds;
use responsiveness::Responsiveness;

mod applications;

mod datagrams;
mod kinds;
mod responsiveness;
mod workloads;

/// Points with more flows get one line for all of them.
const MAX_FLOW_LINES: usize = 8;

/// Collects runs as they come in and becomes text at the end.
#[derive(Debug)]
pub(crate) struct Report<'a> {
    scenario: &'a Scenario,
    body: String,
    sweep: Table,
    /// The runs of the point at hand, and the number of one of them.
    point: Vec<Vec<Line>>,
    run: usize,
    /// The same of flows of datagrams, if there are any.
    datagrams: Option<Table>,
    datagrams_of_point: Vec<Vec<datagrams::Line>>,
    /// The same of workloads.
    workloads: Option<Table>,
    workloads_of_point: Vec<Vec<workloads::Line>>,
    applications: Applications,
    responsiveness: Responsiveness,
    kinds: Kinds,
}

/// What is shown of one flow, or of all, in one run.
#[derive(Clone, Debug)]
struct Line {
    name: String,
    /// In the order of [`COLUMNS`].
    values: [Option<f64>; COLUMNS.len()],
}

const COLUMNS: [&str; 8] =
    ["goodput Mbit/s", "RTT p5 ms", "p50", "p95", "sent", "retrans.", "timeouts", "Jain's index"];
/// Digits after the point.
const DIGITS: [usize; COLUMNS.len()] = [3, 1, 1, 1, 0, 0, 0, 3];

impl<'a> Report<'a> {
    pub(crate) fn new(scenario: &'a Scenario) -> Report<'a> {
        let axes: Vec<&str> = scenario.axes().collect();
        let header = short(&axes).into_iter().chain(["flow".to_owned()]).chain(COLUMNS.map(str::to_owned));
        Report {
            scenario,
            body: String::new(),
            sweep: Table::new(axes.len() + 1, header),
            point: Vec::new(),
            run: 0,
            datagrams: None,
            datagrams_of_point: Vec::new(),
            workloads: None,
            workloads_of_point: Vec::new(),
            applications: Applications::default(),
            responsiveness: Responsiveness::default(),
            kinds: Kinds::default(),
        }
    }

    /// Adds a run; they come in order.
    pub(crate) fn add(&mut self, run: usize, summary: &Summary<Map<String, Value>>) {
        if !self.scenario.is_sweep() {
            self.body = detail(summary);
            return;
        }
        // Some runs of a point may be missing where others have been broken off.
        if run / self.scenario.repeat() != self.run / self.scenario.repeat() {
            self.end_point();
        }
        self.run = run;
        self.point.push(lines(summary));
        self.datagrams_of_point.push(datagrams::lines(summary));
        self.workloads_of_point.push(workloads::lines(summary));
        self.applications.add(summary);
        self.responsiveness.add(summary);
        self.kinds.add(summary);
    }

    /// Every run of the point at hand has been added.
    fn end_point(&mut self) {
        let runs = std::mem::take(&mut self.point);
        let axes: Vec<String> = self.scenario.params(self.run).values().map(plain).collect();
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let mut cells = axes.clone();
            cells.push(first.name.clone());
            for (column, &digits) in DIGITS.iter().enumerate() {
                let values = runs.iter().filter_map(|run| run.get(number)?.values[column]).collect();
                cells.push(median(values).map_or_else(|| "-".to_owned(), |value| fixed(value, digits)));
            }
            self.sweep.row(cells);
        }
        let runs = std::mem::take(&mut self.datagrams_of_point);
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let names = || short(&self.scenario.axes().collect::<Vec<_>>());
            let alike: Vec<&datagrams::Line> = runs.iter().filter_map(|run| run.get(number)).collect();
            let table = self.datagrams.get_or_insert_with(|| datagrams::table(names()));
            table.row(datagrams::cells(axes.clone(), first, &alike));
        }
        let runs = std::mem::take(&mut self.workloads_of_point);
        let names = short(&self.scenario.axes().collect::<Vec<_>>());
        for (number, first) in runs.first().into_iter().flatten().enumerate() {
            let alike: Vec<&workloads::Line> = runs.iter().filter_map(|run| run.get(number)).collect();
            let table = self.workloads.get_or_insert_with(|| workloads::table(names.clone()));
            table.row(workloads::cells(axes.clone(), first, &alike));
        }
        self.applications.end_point(&names, &axes);
        self.responsiveness.end_point(&names, &axes);
        self.kinds.end_point(&names, &axes);
    }

    /// The text, with the results of the expectations if they were evaluated.
    pub(crate) fn text(&mut self, evaluations: Option<&[Evaluation]>) -> String {
        self.end_point();
        let scenario = self.scenario;
        let mut out = String::new();
        if !scenario.title().is_empty() {
            let _ = writeln!(out, "{}", scenario.title());
        }
        if scenario.is_sweep() {
            let medians = if scenario.repeat() > 1 { ", medians over the runs of a point" } else { "" };
            let runs = if scenario.runs() == 1 { "1 run".to_owned() } else { format!("{} runs", scenario.runs()) };
            let _ = writeln!(out, "{runs}{medians}\n\n{}", self.sweep.render().trim_end());
            for table in [&self.datagrams, &self.workloads].into_iter().flatten() {
                let _ = writeln!(out, "\n{}", table.render().trim_end());
            }
            let others =
                self.applications.text().into_iter().chain(self.responsiveness.text()).chain(self.kinds.text());
            others.for_each(|table| _ = writeln!(out, "\n{table}"));
        } else {
            out.push_str(&self.body);
        }
        let Some(evaluations) = evaluations else { return out };
        if scenario.repeat() > 1 && !evaluations.is_empty() {
            let _ = write!(out, "\n{}", spreads(scenario, evaluations));
        }
        match (scenario.checks(), scenario.misses(evaluations).len()) {
            (0, _) => {}
            (checks, 0) => _ = writeln!(out, "\nexpectations: {checks} checked, all met"),
            (checks, misses) => _ = writeln!(out, "\nexpectations: {checks} checked, {misses} missed"),
        }
        out
    }
}

/// The expectations with the spread of their values over the runs of each point.
fn spreads(scenario: &Scenario, evaluations: &[Evaluation]) -> String {
    let axes: Vec<&str> = scenario.axes().collect();
    let header = ["expectation".to_owned()].into_iter().chain(short(&axes));
    let numbers = ["judged", "met", "median", "p25", "p75", "min", "max"];
    let mut table = Table::new(axes.len() + 2, header.chain(["expected".to_owned()]).chain(numbers.map(str::to_owned)));
    for evaluation in evaluations {
        let mut cells = vec![evaluation.metric.clone()];
        cells.extend(scenario.params(evaluation.point * scenario.repeat()).values().map(plain));
        cells.push(evaluation.expected.clone());
        cells.push(match evaluation.found {
            Some(found) => format!("{} {}", evaluation.runs, number(found)),
            None => evaluation.runs.to_owned(),
        });
        let met = if evaluation.met { "yes" } else { "NO" };
        cells.push(format!("{met}, {} of {}", evaluation.runs_met, evaluation.values.len()));
        cells.extend([50, 25, 75, 0, 100].map(|percent| {
            evaluation.spread.as_ref().map_or_else(|| "-".to_owned(), |spread| number(spread.quantile(percent)))
        }));
        table.row(cells);
    }
    table.render()
}

/// The readable name of a point: its parameters.
pub(crate) fn name_of_point(scenario: &Scenario, point: usize) -> String {
    let params = scenario.params(point * scenario.repeat());
    let parts: Vec<String> = params.iter().map(|(axis, value)| format!("{axis} = {}", plain(value))).collect();
    if parts.is_empty() { "all runs".to_owned() } else { parts.join(", ") }
}

/// The readable name of a run: its parameters and, if there are several, its number.
pub(crate) fn name_of(scenario: &Scenario, run: usize) -> String {
    let mut parts: Vec<String> =
        scenario.params(run).iter().map(|(axis, value)| format!("{axis} = {}", plain(value))).collect();
    if scenario.repeat() > 1 || parts.is_empty() {
        parts.push(format!("run {}", run % scenario.repeat()));
    }
    parts.join(", ")
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

fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

/// The axes by as many of their last keys as tell them apart.
fn short(axes: &[&str]) -> Vec<String> {
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

fn lines(summary: &Summary<Map<String, Value>>) -> Vec<Line> {
    let flows = &summary.flows;
    // Datagrams have lines of their own; connections are compared with each other.
    let ways = ["forward", "reverse"].map(|way| {
        let alike = |flow: &&FlowSummary| flow.direction == way && flow.datagrams.is_none();
        let flows: Vec<&FlowSummary> = flows.iter().filter(alike).collect();
        let jain = jain(flows.iter().map(|flow| flow.goodput_bps));
        (flows, way, jain)
    });
    let groups = summary.groups.iter().map(group_line);
    if flows.len() > MAX_FLOW_LINES {
        let both = ways.iter().all(|(flows, ..)| !flows.is_empty());
        let there = ways.iter().filter(|(flows, ..)| !flows.is_empty());
        return there
            .map(|(flows, way, jain)| {
                let name = format!("{} flows", flows.len());
                total(if both { format!("{name} {way}") } else { name }, flows, *jain)
            })
            .chain(groups)
            .collect();
    }
    flows
        .iter()
        .map(|flow| {
            let values = [
                Some(flow.goodput_bps / 1e6),
                flow.rtt_ms.quantiles.p5,
                flow.rtt_ms.quantiles.p50,
                flow.rtt_ms.quantiles.p95,
                Some(flow.sent_packets as f64),
                Some(flow.retransmitted_packets as f64),
                Some(flow.timeouts as f64),
                (ways.iter().find(|(_, way, _)| flow.direction == *way && flow.datagrams.is_none()))
                    .and_then(|(.., jain)| *jain),
            ];
            Line { name: flow.id.to_string(), values }
        })
        .chain(groups)
        .collect()
}

/// The line of flows that are listed together.
fn group_line(group: &GroupSummary) -> Line {
    let rtt = group.rtt_ms.distribution.quantiles;
    let values = [
        Some(group.goodput_bps / 1e6),
        rtt.p5,
        rtt.p50,
        rtt.p95,
        Some(group.sent_packets as f64),
        Some(group.retransmitted_packets as f64),
        Some(group.timeouts as f64),
        None,
    ];
    Line { name: group.id.clone(), values }
}

/// The table of flows that are listed together.
fn groups(summary: &Summary<Map<String, Value>>) -> String {
    if summary.groups.is_empty() {
        return String::new();
    }
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let header = [
        "group",
        "cc",
        "host",
        "started",
        "completed",
        "alive",
        "goodput Mbit/s",
        "FCT ms",
        "p50",
        "p99",
        "RTT p50 ms",
        "sent",
        "retrans.",
        "timeouts",
    ];
    let mut table = Table::new(3, header);
    for group in &summary.groups {
        table.row(vec![
            group.id.clone(),
            group.cc.to_string(),
            group.host.to_string(),
            group.started.to_string(),
            group.completed.to_string(),
            group.alive.to_string(),
            fixed(group.goodput_bps / 1e6, 3),
            cell(group.fct_ms.mean, 1),
            cell(group.fct_ms.distribution.quantiles.p50, 1),
            cell(group.fct_ms.p99, 1),
            cell(group.rtt_ms.distribution.quantiles.p50, 1),
            group.sent_packets.to_string(),
            group.retransmitted_packets.to_string(),
            group.timeouts.to_string(),
        ]);
    }
    format!("{}\n", table.render())
}

/// One line for many flows that send the same way.
fn total(name: String, flows: &[&FlowSummary], jain: Option<f64>) -> Line {
    let of = |value: fn(&FlowSummary) -> Option<f64>| median(flows.iter().filter_map(|flow| value(flow)).collect());
    let sum = |value: fn(&FlowSummary) -> u64| Some(flows.iter().map(|flow| value(flow)).sum::<u64>() as f64);
    let values = [
        Some(flows.iter().map(|flow| flow.goodput_bps).sum::<f64>() / 1e6),
        of(|flow| flow.rtt_ms.quantiles.p5),
        of(|flow| flow.rtt_ms.quantiles.p50),
        of(|flow| flow.rtt_ms.quantiles.p95),
        sum(|flow| flow.sent_packets),
        sum(|flow| flow.retransmitted_packets),
        sum(|flow| flow.timeouts),
        jain,
    ];
    Line { name, values }
}

/// Jain's index as text: with flows in both directions, one for each.
fn fairness(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| fixed(value, 3));
    if summary.flows.iter().any(|flow| flow.datagrams.is_some()) {
        return datagrams::fairness(summary);
    }
    let one_way = |way: &str| summary.flows.iter().all(|flow| flow.direction == way);
    if one_way("forward") || one_way("reverse") {
        return cell(summary.fairness_jain);
    }
    format!("{} forward, {} reverse", cell(summary.fairness_jain_forward), cell(summary.fairness_jain_reverse))
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let middle = values.len() / 2;
    let upper = *values.get(middle)?;
    Some(if values.len() % 2 == 1 { upper } else { (values[middle - 1] + upper) / 2.0 })
}

/// One run: flows, links, totals.
fn detail(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let mut flows = Table::new(
        3,
        [
            "flow",
            "cc",
            "host",
            "goodput Mbit/s",
            "RTT p5 ms",
            "p50",
            "p95",
            "cwnd p50 kB",
            "sent",
            "retrans.",
            "timeouts",
        ],
    );
    for flow in &summary.flows {
        flows.row(vec![
            flow.id.to_string(),
            flow.cc.to_string(),
            flow.host.to_string(),
            fixed(flow.goodput_bps / 1e6, 3),
            cell(flow.rtt_ms.quantiles.p5, 1),
            cell(flow.rtt_ms.quantiles.p50, 1),
            cell(flow.rtt_ms.quantiles.p95, 1),
            cell(flow.cwnd_bytes.p50.map(|bytes| bytes / 1e3), 1),
            flow.sent_packets.to_string(),
            flow.retransmitted_packets.to_string(),
            flow.timeouts.to_string(),
        ]);
    }
    let how = match summary.clock {
        "virtual" => "simulated",
        "live" => "in real time",
        _ => "replayed",
    };
    let how = format!("{how}{}", if summary.partial { ", then broken off" } else { "" });
    let parts = [
        datagrams::detail(summary),
        applications::detail(summary),
        responsiveness::detail(summary),
        kinds::detail(summary),
        groups(summary),
        workloads::detail(summary),
    ];
    // Everything between two hosts may pass without a flow that watches it.
    let flows = if summary.flows.is_empty() { String::new() } else { format!("{}\n", flows.render()) };
    format!(
        "{} s {how}, seed {}, {} data packets, Jain's index {}\n\n{flows}{}{}{}",
        summary.duration_s,
        summary.seed,
        summary.packets,
        fairness(summary),
        parts.concat(),
        links(summary),
        live::detail(summary),
    )
}

/// The table of links.
fn links(summary: &Summary<Map<String, Value>>) -> String {
    let cell = |value: Option<f64>, digits| value.map_or_else(|| "-".to_owned(), |value| fixed(value, digits));
    let mut links = Table::new(
        2,
        ["link", "queue", "busy %", "offered", "dropped", "marked", "sojourn p50 ms", "p95", "backlog p50", "p95"],
    );
    for link in &summary.links {
        links.row(vec![
            link.id.clone(),
            link.queue.to_owned(),
            fixed(link.utilization * 100.0, 1),
            link.offered.to_string(),
            dropped(link).to_string(),
            link.marked.to_string(),
            cell(link.sojourn_ms.quantiles.p50, 1),
            cell(link.sojourn_ms.quantiles.p95, 1),
            cell(link.backlog_packets.quantiles.p50, 0),
            cell(link.backlog_packets.quantiles.p95, 0),
        ]);
    }
    links.render()
}

fn dropped(link: &LinkSummary) -> u64 {
    link.dropped.values().sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_named_by_what_tells_them_apart() {
        assert_eq!(short(&["links.a.queue.kind", "links.a.delay"]), ["queue.kind", "delay"]);
        assert_eq!(short(&["links.a.delay", "links.b.delay"]), ["a.delay", "b.delay"]);
    }

    #[test]
    fn medians() {
        assert_eq!(median(vec![3.0, 1.0, 2.0]), Some(2.0));
        assert_eq!(median(vec![4.0, 1.0]), Some(2.5));
        assert_eq!(median(vec![]), None);
    }

    #[test]
    fn numbers_have_no_needless_digits() {
        assert_eq!(number(60.0), "60");
        assert_eq!(number(0.98765), "0.988");
        assert_eq!(number(9_412_345.6), "9412346");
    }
}
