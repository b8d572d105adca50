//! A comparison as a table.

use std::fmt::Write;

use ackclock_trace::metrics::{self, ShownMetric};

use super::comparison::ResultComparison;
use super::pair::{Both, Pair};
use super::points::{self, Point, RepetitionSpread, Test};
use super::shown::{LISTS, WHOLE, of_run};
use super::side::Run;
use crate::args::compare::Correction;
use crate::table::Table;

/// The most keys that differ are listed.
const MOST_KEYS: usize = 40;

/// Of more points, runs or entries than twice this, so many are shown at either end.
const ENDS: usize = 3;

/// The table; with `all_rows`, everything in it.
pub(super) fn text(comparison: &ResultComparison<'_>, all_rows: bool) -> String {
    let ResultComparison { a, b, parameters, pairs, points, correction, alone } = comparison;
    let mut out = format!("A: {}\nB: {}\n", a.name, b.name);
    if !parameters.is_empty() {
        let mut table = Table::new(3, ["key", "A", "B"]);
        let most = if all_rows { parameters.len() } else { MOST_KEYS };
        for difference in parameters.iter().take(most) {
            let [a, b] = [&difference.a, &difference.b].map(|value| value.clone().unwrap_or_else(|| "-".to_owned()));
            table.row(vec![difference.key.clone(), a, b]);
        }
        let _ = write!(out, "\n{}", table.render());
        if parameters.len() > most {
            let _ = writeln!(out, "and {} keys more; --all-rows shows them", parameters.len() - most);
        }
    }
    let ends = |count| if all_rows { count } else { ENDS };
    each(&mut out, points, ends(points.len()), "points", |out, point| {
        let _ = write!(out, "\n{}", of_point(point, *correction));
    });
    if !points.is_empty() {
        let _ = write!(out, "\n{}", legend(points, *correction));
    }
    let pairs = if points.is_empty() { &pairs[..] } else { &[] };
    each(&mut out, pairs, ends(pairs.len()), "runs", |out, pair| {
        if pairs.len() > 1 {
            let _ = write!(out, "\n== {}", pair.a.name());
        }
        for (side, run) in [("A", pair.a), ("B", pair.b)] {
            let _ = write!(out, "\n{side}: {}", heading(run));
        }
        let _ = write!(out, "\n\n{}", body(pair, all_rows));
    });
    for (side, names) in ["A", "B"].iter().zip(alone) {
        each(&mut out, names, ends(names.len()), "runs", |out, name| _ = writeln!(out, "\nonly in {side}: {name}"));
    }
    for (name, side) in [("A", a), ("B", b)] {
        let failed = &side.failed;
        each(&mut out, failed, ends(failed.len()), "runs", |out, run| _ = writeln!(out, "\nfailed in {name}: {run}"));
    }
    out
}

/// Writes each of `all`; of many, those at the ends, and between them how many are left out.
fn each<T>(out: &mut String, all: &[T], ends: usize, what: &str, mut write: impl FnMut(&mut String, &T)) {
    let left_out = all.len().saturating_sub(ends.saturating_mul(2));
    for (number, one) in all.iter().enumerate() {
        if left_out > 0 && number == ends {
            let _ = writeln!(out, "\n... {left_out} {what} left out; --all-rows shows them");
        }
        if left_out == 0 || number < ends || number >= ends + left_out {
            write(out, one);
        }
    }
}

/// The legend of the columns of points.
fn legend(points: &[Point<'_>], correction: Correction) -> String {
    let mut tests: Vec<Test> = points.iter().map(|point| point.test).collect();
    tests.sort_unstable();
    tests.dedup();
    let mut out = "±: half of the 95 % confidence interval of the mean (Student's t).\n\
                   p: how likely such a difference is where there is none.\n"
        .to_owned();
    for test in tests {
        out.push_str(match test {
            Test::PairedT => "paired t: Student's test of the differences between runs with the same seed.\n",
            Test::SignedRank => "signed-rank: Wilcoxon's test of the differences between runs with the same seed.\n",
            Test::Welch => "Welch: a t test of means, as the sides have other seeds.\n",
            Test::MannWhitney => "Mann-Whitney: a test of ranks, as the sides have other seeds.\n",
        });
    }
    let count = points::tests(points);
    let _ = match correction {
        Correction::Holm => {
            writeln!(
                out,
                "Holm: p for {count} tests; at 0.05 there is any false finding among all of them in 5 % of cases."
            )
        }
        Correction::Bh => {
            writeln!(
                out,
                "BH: p for {count} tests by Benjamini and Hochberg; of the findings at 0.05, 5 % are false on average."
            )
        }
        Correction::None => {
            writeln!(out, "None is adjusted for the number of tests, of which one in twenty finds something at 0.05.")
        }
    };
    out.push_str("--json has each run.\n");
    out
}

/// The identity of a run.
fn heading(run: &Run) -> String {
    let summary = &run.summary;
    let text = |key: &str| summary[key].as_str().unwrap_or("?");
    let mut out = format!("{}, {} clock, seed {}", text("title"), text("clock"), summary["seed"]);
    if summary["partial"] == true {
        out.push_str(", broken off before its end");
    }
    if summary["live"]["valid"] == false {
        out.push_str(", not valid");
    }
    out
}

fn body(pair: &Pair<'_>, all_rows: bool) -> String {
    let mut out = String::new();
    let mut whole = Table::new(1, ["run", "A", "B", "difference %"]);
    for (list, metric) in WHOLE {
        add(&mut whole, None, list, metric, pair.both(&of_run(list, metric)));
    }
    out.push_str(&whole.render());
    for (list, kind, metrics) in LISTS {
        let (shared, alone) = pair.ids(list);
        let mut table = Table::new(2, [kind, "", "A", "B", "difference %"]);
        for id in &shared {
            let mut name = id.as_str();
            for metric in metrics {
                // The id stands in the first of its lines.
                if add(&mut table, Some(name), list, metric, pair.both(&format!("{list}.{id}.{metric}"))) {
                    name = "";
                }
            }
            if list == "links" {
                add_drops(&mut table, pair, id);
            }
        }
        if !shared.is_empty() {
            let _ = write!(out, "\n{}", table.render());
        }
        for (side, ids) in ["A", "B"].iter().zip(alone) {
            let ends = if all_rows { ids.len() } else { ENDS };
            each(&mut out, &ids, ends, "entries", |out, id| _ = writeln!(out, "\nonly in {side}: {kind} {id}"));
        }
    }
    out
}

/// The repetitions of a point.
fn of_point(point: &Point<'_>, correction: Correction) -> String {
    let (first, counts) = (point.a[0], [point.a.len(), point.b.len()]);
    let mut head = first.parameters();
    head.push(format!("{} and {} repetitions", counts[0], counts[1]));
    let mut out = format!("== {}\n", head.join(", "));
    if let Some(pairs) = point.paired().filter(|&pairs| pairs < counts[0].max(counts[1])) {
        let _ = writeln!(out, "note: {pairs} seeds are on both sides, and p is of these");
    }
    for (side, runs) in [("A", &point.a), ("B", &point.b)] {
        if Point::are_same(runs) {
            let _ = writeln!(
                out,
                "note: the repetitions of {side} are all the same: nothing in them is random (`start_jitter` of flows is one \
                 remedy), and p says nothing"
            );
        }
    }
    let columns = ["A", "±", "B", "±", "difference %"].map(str::to_owned).into_iter();
    let columns = columns
        .chain([format!("p {}", point.test.name())])
        .chain(points::name(correction).map(|[_, column]| column.to_owned()));
    let columns: Vec<String> = columns.collect();
    let table =
        |names: &[&str]| Table::new(names.len(), names.iter().map(|&name| name.to_owned()).chain(columns.clone()));
    let mut whole = table(&["run"]);
    for (list, metric) in WHOLE {
        add_spread(&mut whole, None, &metrics::shown(list, metric), point, &of_run(list, metric), correction);
    }
    let _ = write!(out, "\n{}", whole.render());
    for (list, kind, metrics) in LISTS {
        let mut table = table(&[kind, ""]);
        for id in first.ids(list) {
            let mut name = id;
            for metric in metrics {
                let (row, path) = (metrics::shown(list, metric), format!("{list}.{id}.{metric}"));
                if add_spread(&mut table, Some(name), &row, point, &path, correction) {
                    name = "";
                }
            }
        }
        if table.has_rows() {
            let _ = write!(out, "\n{}", table.render());
        }
    }
    out
}

/// Adds a row if at least one side has the number; whether it did.
fn add_spread(
    table: &mut Table,
    name: Option<&str>,
    row: &ShownMetric,
    point: &Point<'_>,
    metric: &str,
    correction: Correction,
) -> bool {
    let compared = point.compare(metric);
    if compared.a.count == 0 && compared.b.count == 0 {
        return false;
    }
    let both = |spread: RepetitionSpread| [row.fine_text(spread.mean), row.fine_text(spread.half())];
    let mut cells: Vec<String> = name.map(str::to_owned).into_iter().chain([row.heading()]).collect();
    cells.extend(both(compared.a).into_iter().chain(both(compared.b)));
    cells.push(difference(compared.both()));
    cells.push(probability(compared.p));
    cells.extend(points::name(correction).map(|_| probability(point.adjusted.get(metric).copied())));
    table.row(cells);
    true
}

fn probability(p: Option<f64>) -> String {
    // A probability of 0 would mean an impossible event.
    let text = |p: f64| if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") };
    p.map_or_else(|| "-".to_owned(), text)
}

/// Adds a row if at least one side has the number; whether it did.
fn add(table: &mut Table, name: Option<&str>, list: &str, metric: &str, both: Both) -> bool {
    if both.a.is_none() && both.b.is_none() {
        return false;
    }
    let row = metrics::shown(list, metric);
    let mut cells: Vec<String> = name.map(str::to_owned).into_iter().collect();
    cells.extend([row.heading(), row.fine_text(both.a), row.fine_text(both.b), difference(both)]);
    table.row(cells);
    true
}

fn difference(both: Both) -> String {
    both.percent().map_or_else(|| "-".to_owned(), |percent| format!("{percent:+.1}"))
}

/// Drops by their reasons, those that either side has.
fn add_drops(table: &mut Table, pair: &Pair<'_>, link: &str) {
    let prefix = format!("links.{link}.dropped.");
    let mut reasons: Vec<&str> =
        pair.a.numbers.keys().chain(pair.b.numbers.keys()).filter_map(|name| name.strip_prefix(&prefix)).collect();
    reasons.sort_unstable();
    reasons.dedup();
    for reason in reasons {
        // A reason without an entry stands for no drops.
        let both = pair.both(&format!("{prefix}{reason}"));
        let both = Both { a: Some(both.a.unwrap_or(0.0)), b: Some(both.b.unwrap_or(0.0)) };
        let [a, b] = [both.a, both.b].map(|count| format!("{:.0}", count.unwrap_or(0.0)));
        table.row(vec![String::new(), format!("dropped ({reason})"), a, b, difference(both)]);
    }
}
