//! The text on standard output: one run in detail, or a sweep with one line per flow and point.

use std::fmt::Write;

use ackclock_run::names;
use ackclock_run::selection::Selection;
use ackclock_scenario::{Measures, Scenario};
use ackclock_trace::Summary;
use serde_json::{Map, Value};

use crate::table::{Cell, Table};
use applications::Applications;
pub(crate) use cells::{cell, number, short};
pub(crate) use columns::ReportColumns;
pub(crate) use ending::ending;
use flow_lines::{COLUMNS, DIGITS, Line, lines};
use kinds::Kinds;
use live::LiveReport;
use repetitions::Repetitions;
use responsiveness::ResponsivenessTable;
pub(crate) use sums::{Sum, groups};

mod applications;
mod cells;
mod columns;
mod datagrams;
mod detail;
mod ending;
mod flow_lines;
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
