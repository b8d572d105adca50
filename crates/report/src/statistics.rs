//! Statistics of the repetitions of a point.

use std::collections::BTreeMap;

use ackclock_trace::statistics::{bootstrap_interval, deviation, mean, median, t_interval};
use ackclock_units::Random;
use serde_json::{Value, json};

use crate::columns::{SubjectTable, is_main, numbers};
use crate::read::CollectedRuns;

/// The confidence of the intervals.
const CONFIDENCE: f64 = 0.95;

/// The most groups of repetitions for which all metrics are evaluated, and those for which the main
/// ones have a bootstrap interval: each takes some 0.2 ms.
const MOST_ROWS: usize = 20_000;
const MOST_RESAMPLED: usize = 10_000;

/// For each subject and metric, a row for each point and id: mean, median, standard deviation,
/// intervals and number of values.
pub(crate) fn of(results: &CollectedRuns, notes: &mut Vec<String>) -> Value {
    let points = points(results);
    let mut resampled = 0;
    let mut random = Random::for_component(1, 0, "report");
    let subjects = results.subjects.iter().map(|subject| {
        let groups = groups(subject, &points);
        let all = groups.len() * subject.metrics.len() <= MOST_ROWS;
        if !all {
            notes.push(format!("The table of {} has the main metrics alone: there are many points.", subject.name));
        }
        let metrics = subject.metrics.iter().filter(|(name, _)| all || is_main(name)).map(|(name, values)| {
            let mut columns: [Vec<Option<f64>>; 8] = Default::default();
            for rows in groups.values() {
                let found: Vec<f64> = rows.iter().filter_map(|&row| values[row]).collect();
                let t = t_interval(&found, CONFIDENCE);
                let varies = found.iter().any(|value| *value != found[0]);
                let resample = varies && resampled < MOST_RESAMPLED;
                resampled += usize::from(resample);
                let bootstrap = if resample { bootstrap_interval(&found, CONFIDENCE, mean, &mut random) } else { None };
                let row = [
                    Some(found.len() as f64),
                    mean(&found),
                    median(&found),
                    deviation(&found),
                    t.map(|interval| interval.low),
                    t.map(|interval| interval.high),
                    bootstrap.map(|interval| interval.low),
                    bootstrap.map(|interval| interval.high),
                ];
                columns.iter_mut().zip(row).for_each(|(column, value)| column.push(value));
            }
            let columns: Vec<Value> = columns.iter().map(|column| numbers(column.iter().copied())).collect();
            (name.clone(), json!(columns))
        });
        let metrics: serde_json::Map<String, Value> = metrics.collect();
        // Which run a row's parameters are those of, and its id.
        let first: Vec<usize> = groups.values().map(|rows| subject.runs[rows[0]]).collect();
        let ids: Vec<usize> = groups.keys().map(|&(_, id)| id).collect();
        (subject.name.to_owned(), json!({ "runs": first, "ids": ids, "metrics": metrics }))
    });
    let subjects: serde_json::Map<String, Value> = subjects.collect();
    if resampled >= MOST_RESAMPLED {
        notes.push(format!("Bootstrap intervals are there for the first {MOST_RESAMPLED} means."));
    }
    Value::Object(subjects)
}

/// The point of each run.
fn points(results: &CollectedRuns) -> Vec<usize> {
    let mut known = BTreeMap::new();
    let key = |run: &crate::read::ReportedRun| (run.output, Value::Object(run.params.clone()).to_string());
    results
        .runs
        .iter()
        .map(|run| {
            let next = known.len();
            *known.entry(key(run)).or_insert(next)
        })
        .collect()
}

/// The rows of each point and id.
fn groups(subject: &SubjectTable, points: &[usize]) -> BTreeMap<(usize, usize), Vec<usize>> {
    let mut groups: BTreeMap<(usize, usize), Vec<usize>> = BTreeMap::new();
    for (row, &run) in subject.runs.iter().enumerate() {
        let id = subject.names.get("id").map_or(0, |names| names.rows[row]);
        groups.entry((points[run], id)).or_default().push(row);
    }
    groups
}
