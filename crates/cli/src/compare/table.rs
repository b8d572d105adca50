//! A comparison as a table.

use std::fmt::Write;

use super::points::{self, Point, Spread, Test};
use super::{Both, Comparison, Pair, Run};
use crate::args::compare::Correction;
use crate::table::Table;

/// What is shown of an entry of a list: its name in the summary, that in the table, by what it is
/// divided, and digits.
type Row = (&'static str, &'static str, f64, usize);

const FLOW: [Row; 9] = [
    ("goodput_bps", "goodput Mbit/s", 1e6, 3),
    ("throughput_bps.p50", "throughput p50 Mbit/s", 1e6, 3),
    ("rtt_ms.p50", "RTT p50 ms", 1.0, 2),
    ("rtt_ms.p95", "RTT p95 ms", 1.0, 2),
    ("cwnd_bytes.p50", "cwnd p50 kB", 1e3, 1),
    ("sent_packets", "sent", 1.0, 0),
    ("retransmitted_packets", "retransmissions", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
    ("ece_acks", "ACKs with ECE", 1.0, 0),
];

const SUM: [Row; 8] = [
    ("flows", "flows", 1.0, 0),
    ("goodput_bps", "goodput Mbit/s", 1e6, 3),
    ("fairness_jain", "Jain's index", 1.0, 3),
    ("rtt_p50_ms", "RTT p50 ms", 1.0, 2),
    ("sent_packets", "sent", 1.0, 0),
    ("retransmitted_packets", "retransmissions", 1.0, 0),
    ("lost_packets", "lost", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
];

const KIND: [Row; 5] = [
    ("goodput_bps", "goodput Mbit/s", 1e6, 3),
    ("fairness_jain", "Jain's index", 1.0, 3),
    ("delay_p50_ms", "delay p50 ms", 1.0, 2),
    ("delay_p95_ms", "delay p95 ms", 1.0, 2),
    ("loss_ratio", "lost %", 0.01, 3),
];

const GROUP: [Row; 8] = [
    ("started", "started", 1.0, 0),
    ("completed", "completed", 1.0, 0),
    ("goodput_bps", "goodput Mbit/s", 1e6, 3),
    ("fct_ms.p50", "FCT p50 ms", 1.0, 3),
    ("fct_ms.p99", "FCT p99 ms", 1.0, 3),
    ("rtt_ms.p50", "RTT p50 ms", 1.0, 2),
    ("retransmitted_packets", "retransmissions", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
];

const WORKLOAD: [Row; 10] = [
    ("started", "started", 1.0, 0),
    ("completed", "completed", 1.0, 0),
    ("fct_ms.p50", "FCT p50 ms", 1.0, 3),
    ("fct_ms.p99", "FCT p99 ms", 1.0, 3),
    ("slowdown.p50", "slowdown p50", 1.0, 2),
    ("slowdown.p99", "slowdown p99", 1.0, 2),
    ("retransmitted_packets", "retransmissions", 1.0, 0),
    ("timeouts", "timeouts", 1.0, 0),
    ("requests.completed", "requests completed", 1.0, 0),
    ("requests.completion_ms.p99", "request p99 ms", 1.0, 3),
];

const LINK: [Row; 6] = [
    ("utilization", "busy %", 0.01, 1),
    ("offered", "offered", 1.0, 0),
    ("marked", "marked", 1.0, 0),
    ("sojourn_ms.p50", "sojourn p50 ms", 1.0, 2),
    ("sojourn_ms.p95", "sojourn p95 ms", 1.0, 2),
    ("backlog_packets.p50", "backlog p50", 1.0, 0),
];

const COMMAND: [Row; 3] =
    [("exit", "exit status", 1.0, 0), ("rtt_ms.p50", "ping p50 ms", 1.0, 3), ("rtt_ms.p95", "ping p95 ms", 1.0, 3)];

const WHOLE: [Row; 5] = [
    ("duration_s", "duration s", 1.0, 3),
    ("packets", "data packets", 1.0, 0),
    ("fairness_jain", "Jain's index", 1.0, 3),
    ("live.lateness_ms.p50", "lateness p50 ms", 1.0, 3),
    ("live.lateness_ms.p99", "lateness p99 ms", 1.0, 3),
];

/// The most keys that differ are listed.
const MOST_KEYS: usize = 40;

/// The lists of a summary with what is shown of their entries.
const LISTS: [(&str, &str, &[Row]); 7] = [
    ("flows", "flow", &FLOW),
    ("sums", "sum of", &SUM),
    ("kinds", "traffic", &KIND),
    ("groups", "group", &GROUP),
    ("workloads", "workload", &WORKLOAD),
    ("links", "link", &LINK),
    ("commands", "command", &COMMAND),
];

pub(super) fn text(comparison: &Comparison<'_>) -> String {
    let Comparison { a, b, parameters, pairs, points, correction, alone } = comparison;
    let mut out = format!("A: {}\nB: {}\n", a.name, b.name);
    if !parameters.is_empty() {
        let mut table = Table::new(3, ["key", "A", "B"]);
        for difference in parameters.iter().take(MOST_KEYS) {
            let [a, b] = [&difference.a, &difference.b].map(|value| value.clone().unwrap_or_else(|| "-".to_owned()));
            table.row(vec![difference.key.clone(), a, b]);
        }
        let _ = write!(out, "\n{}", table.render());
        if parameters.len() > MOST_KEYS {
            let _ = writeln!(out, "and {} keys more; --json has them all", parameters.len() - MOST_KEYS);
        }
    }
    for point in points {
        let _ = write!(out, "\n{}", of_point(point, *correction));
    }
    if !points.is_empty() {
        let _ = write!(out, "\n{}", legend(points, *correction));
    }
    let pairs = if points.is_empty() { &pairs[..] } else { &[] };
    for pair in pairs {
        if pairs.len() > 1 {
            let _ = write!(out, "\n== {}", pair.a.name());
        }
        for (side, run) in [("A", pair.a), ("B", pair.b)] {
            let _ = write!(out, "\n{side}: {}", heading(run));
        }
        let _ = write!(out, "\n\n{}", body(pair));
    }
    for (side, names) in ["A", "B"].iter().zip(alone) {
        for name in names {
            let _ = writeln!(out, "\nonly in {side}: {name}");
        }
    }
    for (name, side) in [("A", a), ("B", b)] {
        side.failed.iter().for_each(|run| _ = writeln!(out, "\nfailed in {name}: {run}"));
    }
    out
}

/// What the columns of points are.
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

/// What a run was.
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

fn body(pair: &Pair<'_>) -> String {
    let mut out = String::new();
    let mut whole = Table::new(1, ["run", "A", "B", "difference %"]);
    add(&mut whole, &[], &WHOLE, |name| pair.both(name));
    out.push_str(&whole.render());
    for (list, kind, rows) in LISTS {
        let (shared, alone) = pair.ids(list);
        let mut table = Table::new(2, [kind, "", "A", "B", "difference %"]);
        for id in &shared {
            let mut name = id.as_str();
            for row in rows {
                let both = |key: &str| pair.both(&format!("{list}.{id}.{key}"));
                // The id stands in the first of its lines.
                if add(&mut table, &[name], std::slice::from_ref(row), both) {
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
            for id in ids {
                let _ = writeln!(out, "\nonly in {side}: {kind} {id}");
            }
        }
    }
    out
}

/// Every number of a point that the table shows, if it is there.
pub(super) fn names(point: &Point<'_>) -> Vec<String> {
    let of_list = |(list, _, rows): &(&'static str, &str, &'static [Row])| {
        let (list, rows) = (*list, *rows);
        point.a[0].ids(list).flat_map(move |id| rows.iter().map(move |row| format!("{list}.{id}.{}", row.0)))
    };
    WHOLE.iter().map(|row| row.0.to_owned()).chain(LISTS.iter().flat_map(of_list)).collect()
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
    for row in &WHOLE {
        add_spread(&mut whole, None, row, point, row.0, correction);
    }
    let _ = write!(out, "\n{}", whole.render());
    for (list, kind, rows) in LISTS {
        let mut table = table(&[kind, ""]);
        for id in first.ids(list) {
            let mut name = id;
            for row in rows {
                if add_spread(&mut table, Some(name), row, point, &format!("{list}.{id}.{}", row.0), correction) {
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
    row: &Row,
    point: &Point<'_>,
    metric: &str,
    correction: Correction,
) -> bool {
    let (&(_, label, unit, digits), compared) = (row, point.compare(metric));
    if compared.a.count == 0 && compared.b.count == 0 {
        return false;
    }
    let cell = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value / unit));
    let both = |spread: Spread| [cell(spread.mean), cell(spread.half())];
    let mut cells: Vec<String> = name.map(str::to_owned).into_iter().chain([label.to_owned()]).collect();
    cells.extend(both(compared.a).into_iter().chain(both(compared.b)));
    cells.push(difference(compared.both()));
    cells.push(probability(compared.p));
    cells.extend(points::name(correction).map(|_| probability(point.adjusted.get(metric).copied())));
    table.row(cells);
    true
}

fn probability(p: Option<f64>) -> String {
    // What has a probability of 0 could not have been.
    let text = |p: f64| if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") };
    p.map_or_else(|| "-".to_owned(), text)
}

/// Adds the rows of which at least one side has a number; whether there were any.
fn add(table: &mut Table, head: &[&str], rows: &[Row], both: impl Fn(&str) -> Both) -> bool {
    let mut any = false;
    for &(key, label, unit, digits) in rows {
        let both = both(key);
        if both.a.is_none() && both.b.is_none() {
            continue;
        }
        any = true;
        let cell =
            |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{:.digits$}", value / unit));
        let mut cells: Vec<String> = head.iter().map(|&cell| cell.to_owned()).collect();
        cells.extend([label.to_owned(), cell(both.a), cell(both.b), difference(both)]);
        table.row(cells);
    }
    any
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
        // What has no entry was not dropped.
        let both = pair.both(&format!("{prefix}{reason}"));
        let both = Both { a: Some(both.a.unwrap_or(0.0)), b: Some(both.b.unwrap_or(0.0)) };
        let [a, b] = [both.a, both.b].map(|count| format!("{:.0}", count.unwrap_or(0.0)));
        table.row(vec![String::new(), format!("dropped ({reason})"), a, b, difference(both)]);
    }
}
