//! The end of a report: what became of the expectations, and what can be done next.

use std::fmt::Write;
use std::path::Path;

use ackclock_scenario::{Evaluation, Scenario};

use super::cells::{number, short};
use crate::table::{PAGE, Table};

/// The text below the tables of all runs, whose results are in `dir`. `listed`: with every
/// expectation. `well`: nothing failed.
pub(crate) fn ending(
    dir: Option<&Path>,
    listed: bool,
    scenario: &Scenario,
    evaluations: &[Evaluation],
    well: bool,
) -> String {
    let mut out = String::new();
    if listed && !evaluations.is_empty() {
        let _ = write!(out, "\n{}", each(scenario, evaluations));
    }
    let checks = evaluations.iter().map(Evaluation::checks).sum::<usize>();
    let misses = scenario.misses(evaluations).len();
    match (checks, misses) {
        (0, _) => {}
        (checks, 0) => _ = writeln!(out, "\nexpectations: {checks} checked, all met"),
        (checks, misses) => _ = writeln!(out, "\nexpectations: {checks} checked, {misses} missed"),
    }
    if well && misses == 0 {
        out.push_str(&next(dir, checks > 0 && !listed));
    }
    out
}

/// The next possible steps.
fn next(out: Option<&Path>, has_more: bool) -> String {
    let mut steps = Vec::new();
    match out {
        Some(dir) => steps.push((format!("ackclock report {}", dir.display()), "draws the figures of the results")),
        None => steps.push(("--out out".to_owned(), "keeps the results; `ackclock report out` draws their figures")),
    }
    if has_more {
        steps.push(("--expectations".to_owned(), "lists what was expected, and what was found"));
    }
    steps.push(("ackclock list".to_owned(), "names queues, controllers, hosts and metrics to choose from"));
    let width = steps.iter().map(|(step, _)| step.chars().count()).max().unwrap_or(0);
    let lines = steps.iter().map(|(step, purpose)| format!("  {step:<width$}  {purpose}\n"));
    format!("\nnext:\n{}", lines.collect::<String>())
}

/// Every expectation at every point, with its values over the runs.
fn each(scenario: &Scenario, evaluations: &[Evaluation]) -> String {
    let axes: Vec<&str> = scenario.axes().collect();
    let numbers = if scenario.repeat() > 1 { &["found", "median", "p25", "p75", "min", "max"][..] } else { &["found"] };
    let header = short(&axes).into_iter().chain(["met".to_owned()]);
    let mut table = Table::new(axes.len() + 1, header.chain(numbers.iter().map(|&name| name.to_owned())));
    let mut above = None;
    for evaluation in evaluations {
        if above.replace(evaluation.number) != Some(evaluation.number) {
            let runs = if evaluation.runs == "each" { String::new() } else { format!("{} ", evaluation.runs) };
            let line = format!("{}: {runs}{}", evaluation.metric, evaluation.expected);
            if line.chars().count() > PAGE {
                table.row([format!("{}:", evaluation.metric)]);
                table.row([format!("    {runs}{}", evaluation.expected)]);
            } else {
                table.row([line]);
            }
        }
        let names = scenario.names(evaluation.point * scenario.repeat());
        let mut cells: Vec<String> = names.into_iter().map(|(_, name)| name).collect();
        let met = if evaluation.met { "yes" } else { "NO" };
        let value = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), number);
        if scenario.repeat() > 1 {
            cells.extend([format!("{met}, {} of {}", evaluation.runs_met, evaluation.values.len())]);
            cells.push(value(evaluation.found));
            let spread = evaluation.spread.as_ref();
            cells.extend([50, 25, 75, 0, 100].map(|percent| value(spread.map(|spread| spread.quantile(percent)))));
        } else {
            cells.extend([met.to_owned(), value(evaluation.found.or(evaluation.values.first().copied().flatten()))]);
        }
        table.row(cells);
    }
    table.render()
}
