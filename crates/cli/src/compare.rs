//! `ackclock compare`: the numbers of two results beside each other.
//!
//! Runs are matched by the sweep's parameters and their number; flows, groups of flows, workloads
//! with their size classes, links, hosts and programs by id. Every number of the summary is
//! compared, under the name by which an `[[expect]]` refers to it; the table shows the main ones.
//! Points with several repetitions on both sides are compared by their means and spreads.

mod parameters;
mod points;
mod table;

use std::cell::Cell;
use std::collections::BTreeMap;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use serde_json::{Deserializer, Map, Value, json};

use crate::args::CompareArgs;
use crate::print;
use parameters::Difference;
use points::Point;

/// The longest summary that is read, in bytes: 100,000 flows have some 200 MB.
const MAX_SUMMARY: u64 = 1 << 30;

/// The most that is compared at once, in bytes of summaries; in memory they take a multiple of it.
const MAX_HELD: u64 = 1 << 30;

/// Lists of the summary whose entries have an id.
const WITH_ID: [&str; 6] = ["flows", "kinds", "groups", "workloads", "links", "commands"];

/// Compares; the status to end with.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    let (a, b) = (Side::read(&args.a)?, Side::read(&args.b)?);
    let comparison = Comparison::new(&a, &b);
    if comparison.pairs.is_empty() {
        bail!("{} and {} have no run in common: they are sweeps over different parameters", a.name, b.name);
    }
    let text = if args.json { format!("{}\n", comparison.json()) } else { table::text(&comparison) };
    let _ = print(&text)?;
    Ok(0)
}

/// One of the two results.
#[derive(Debug)]
struct Side {
    /// As it was given.
    name: String,
    runs: Vec<Run>,
}

/// The summary of a run.
#[derive(Debug)]
struct Run {
    summary: Value,
    /// Its numbers with their names, in the order of the summary.
    numbers: Map<String, Value>,
}

impl Side {
    /// Reads a directory of `--out`, a file of summaries, or one run of either: `DIR:7`.
    fn read(given: &str) -> anyhow::Result<Side> {
        let (path, only) = locate(given)?;
        let file = open_regular(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let left = Rc::new(Cell::new(MAX_SUMMARY));
        let mut values = Deserializer::from_reader(Bounded { file: BufReader::new(file), left: Rc::clone(&left) })
            .into_iter::<Value>();
        let (mut runs, mut held) = (Vec::new(), 0);
        for number in 0.. {
            let begun = values.byte_offset();
            let Some(value) = values.next() else { break };
            let summary = value.map_err(|error| unreadable(error, &path))?;
            left.set(MAX_SUMMARY);
            if summary["schema"] != 1 || !summary["flows"].is_array() || !summary["links"].is_array() {
                bail!(
                    "{}: object {number} is not an ackclock summary (`schema` 1 with `flows` and `links`)",
                    path.display()
                );
            }
            // Of a sweep that was broken off, runs may be missing between others.
            let index = summary["index"].as_u64().unwrap_or(number as u64);
            if only.is_none_or(|only| only as u64 == index) {
                held += values.byte_offset() - begun;
                if held as u64 > MAX_HELD {
                    bail!("{} has more runs than can be compared at once: select one, {given}:N", path.display());
                }
                runs.push(Run { numbers: numbers(&summary), summary });
            }
        }
        match (runs.is_empty(), only) {
            (true, Some(only)) => bail!("{} has no run {only}; runs count from 0", path.display()),
            (true, None) => bail!("{} is empty", path.display()),
            (false, _) => Ok(Side { name: given.to_owned(), runs }),
        }
    }
}

/// A file of which so much is read at most until there is another value.
#[derive(Debug)]
struct Bounded<R> {
    file: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for Bounded<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        if self.left.get() == 0 {
            return Err(io::Error::new(io::ErrorKind::FileTooLarge, "too long for an ackclock summary"));
        }
        let most = buffer.len().min(usize::try_from(self.left.get()).unwrap_or(usize::MAX));
        let read = self.file.read(&mut buffer[..most])?;
        self.left.set(self.left.get() - read as u64);
        Ok(read)
    }
}

fn unreadable(error: serde_json::Error, path: &Path) -> anyhow::Error {
    let what = if error.is_io() { "cannot be read" } else { "is not JSON" };
    anyhow::Error::from(error).context(format!("{} {what}", path.display()))
}

/// The file of summaries, and which run of it is meant if it is one.
fn locate(given: &str) -> anyhow::Result<(PathBuf, Option<usize>)> {
    let numbered = given.rsplit_once(':').and_then(|(path, number)| Some((path, number.parse().ok()?)));
    let (path, only) = match numbered {
        // A file may be called like this.
        Some((path, number)) if !Path::new(given).exists() => (Path::new(path), Some(number)),
        _ => (Path::new(given), None),
    };
    if !path.is_dir() {
        return Ok((path.to_owned(), only));
    }
    let summaries = ["summary.json", "summary.jsonl"].map(|name| path.join(name));
    match summaries.into_iter().find(|file| file.exists()) {
        Some(file) => Ok((file, only)),
        None => bail!("{} has neither summary.json nor summary.jsonl: it is not an output directory", path.display()),
    }
}

/// Every number of a summary by its name, as expectations have it: `flows.ID.rtt_ms.p50`.
fn numbers(summary: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for (key, value) in summary.as_object().into_iter().flatten() {
        match value {
            // What the runs were, and parts of them.
            _ if ["schema", "params", "run", "index", "seed", "windows", "expectations"].contains(&key.as_str()) => {}
            Value::Array(entries) if WITH_ID.contains(&key.as_str()) => with_ids(key, entries, &mut found),
            _ => collect(key, value, &mut found),
        }
    }
    found
}

fn with_ids(list: &str, entries: &[Value], found: &mut Map<String, Value>) {
    for entry in entries {
        if let Some(id) = entry["id"].as_str() {
            collect(&format!("{list}.{id}"), entry, found);
        }
    }
}

fn collect(name: &str, value: &Value, found: &mut Map<String, Value>) {
    match value {
        Value::Number(_) => {
            found.insert(name.to_owned(), value.clone());
        }
        Value::Object(fields) => {
            for (key, value) in fields {
                match value {
                    Value::Array(entries) if name == "live" && key == "hosts" => with_ids("live.hosts", entries, found),
                    _ => collect(&format!("{name}.{key}"), value, found),
                }
            }
        }
        Value::Array(entries) => {
            for (index, value) in entries.iter().enumerate() {
                collect(&format!("{name}.{index}"), value, found);
            }
        }
        Value::Null | Value::Bool(_) | Value::String(_) => {}
    }
}

/// Two results, run by run.
#[derive(Debug)]
struct Comparison<'a> {
    a: &'a Side,
    b: &'a Side,
    /// Keys of their scenarios that differ.
    parameters: Vec<Difference>,
    pairs: Vec<Pair<'a>>,
    /// Points with repetitions, if there are any.
    points: Vec<Point<'a>>,
    /// Runs without a counterpart, by readable names.
    alone: [Vec<String>; 2],
}

/// A run and its counterpart.
#[derive(Debug)]
struct Pair<'a> {
    a: &'a Run,
    b: &'a Run,
}

/// A number of both; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Both {
    a: Option<f64>,
    b: Option<f64>,
}

impl<'a> Comparison<'a> {
    fn new(a: &'a Side, b: &'a Side) -> Comparison<'a> {
        let parameters = parameters::differences(&a.name, &b.name);
        if let ([left], [right]) = (&a.runs[..], &b.runs[..]) {
            // What is compared may well be two points of a sweep.
            let pairs = vec![Pair { a: left, b: right }];
            return Comparison { a, b, parameters, pairs, points: Vec::new(), alone: [Vec::new(), Vec::new()] };
        }
        let key = |run: &'a Run| (run.summary["params"].to_string(), run.summary["run"].to_string());
        let index = |side: &'a Side| side.runs.iter().map(|run| (key(run), run)).collect::<BTreeMap<_, _>>();
        let (of_a, of_b) = (index(a), index(b));
        let pairs = a.runs.iter().filter_map(|run| Some(Pair { a: run, b: of_b.get(&key(run))? })).collect();
        let alone = [(a, &of_b), (b, &of_a)].map(|(side, others)| {
            side.runs.iter().filter(|run| !others.contains_key(&key(run))).map(Run::name).collect()
        });
        Comparison { a, b, parameters, pairs, points: points::all(a, b), alone }
    }

    fn json(&self) -> Value {
        let pairs: Vec<Value> = self.pairs.iter().map(Pair::json).collect();
        let points: Vec<Value> = self.points.iter().map(Point::json).collect();
        let parameters: Vec<Value> = self.parameters.iter().map(Difference::json).collect();
        json!({
            "schema": 1,
            "a": self.a.name,
            "b": self.b.name,
            "parameters": parameters,
            "runs": pairs,
            "points": points,
            "runs_only_in_a": self.alone[0],
            "runs_only_in_b": self.alone[1],
        })
    }
}

impl Run {
    /// Its parameters and its number.
    fn name(&self) -> String {
        let mut parts = self.params();
        parts.push(format!("run {}", self.summary["run"]));
        parts.join(", ")
    }

    /// Its parameters.
    fn params(&self) -> Vec<String> {
        let params = self.summary["params"].as_object().into_iter().flatten();
        let plain = |value: &Value| value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        params.map(|(axis, value)| format!("{axis} = {}", plain(value))).collect()
    }

    /// The ids of a list.
    fn ids(&self, list: &str) -> impl Iterator<Item = &str> {
        self.summary[list].as_array().into_iter().flatten().filter_map(|entry| entry["id"].as_str())
    }

    fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name)?.as_f64()
    }
}

impl Pair<'_> {
    /// The ids of a list that both have, and those that only one has.
    fn ids(&self, list: &str) -> (Vec<String>, [Vec<String>; 2]) {
        let of = |run: &Run| run.ids(list).map(str::to_owned).collect::<Vec<_>>();
        let (of_a, of_b) = (of(self.a), of(self.b));
        let only = |ids: &[String], others: &[String]| ids.iter().filter(|id| !others.contains(id)).cloned().collect();
        let alone = [only(&of_a, &of_b), only(&of_b, &of_a)];
        (of_a.into_iter().filter(|id| of_b.contains(id)).collect(), alone)
    }

    fn both(&self, name: &str) -> Both {
        Both { a: self.a.number(name), b: self.b.number(name) }
    }

    fn json(&self) -> Value {
        let side = |run: &Run| {
            let mut head = Map::new();
            for key in ["title", "clock", "seed", "run", "index", "run_seed", "params", "partial"] {
                head.extend(run.summary.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            Value::Object(head)
        };
        let mut only = [Map::new(), Map::new()];
        for list in WITH_ID {
            let (_, alone) = self.ids(list);
            for (only, ids) in only.iter_mut().zip(alone) {
                if !ids.is_empty() {
                    only.insert(list.to_owned(), ids.into());
                }
            }
        }
        let mut metrics = Map::new();
        let names = self.a.numbers.keys().chain(self.b.numbers.keys());
        for name in names {
            if !metrics.contains_key(name) {
                let both = self.both(name);
                let entry = json!({ "a": both.a, "b": both.b, "difference_percent": both.percent() });
                metrics.insert(name.clone(), entry);
            }
        }
        let [only_in_a, only_in_b] = only;
        json!({
            "a": side(self.a),
            "b": side(self.b),
            "metrics": metrics,
            "only_in_a": only_in_a,
            "only_in_b": only_in_b,
        })
    }
}

impl Both {
    /// By how much the second differs from the first, in percent of it.
    fn percent(self) -> Option<f64> {
        let (a, b) = (self.a?, self.b?);
        let percent = if a == b { 0.0 } else { (b - a) / a.abs() * 100.0 };
        percent.is_finite().then_some(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_named_as_expectations_name_them() {
        let summary = json!({
            "schema": 1, "seed": 3, "run": 1, "index": 5, "run_seed": "00000000000000ff", "duration_s": 2.0,
            "flows": [{ "id": "cubic.0", "cc": "cubic", "goodput_bps": 1e6, "rtt_ms": { "p50": 20.5, "p95": null } }],
            "links": [],
            "live": { "lateness_ms": { "p99": 0.1 }, "valid": true, "hosts": [{ "id": "left", "truncated": 4 }] },
            "commands": [{ "id": "iperf", "json": { "end": { "streams": [{ "bytes": 7 }] } } }],
        });
        let names: Vec<(String, f64)> =
            numbers(&summary).into_iter().map(|(name, value)| (name, value.as_f64().unwrap())).collect();
        let expected = [
            ("duration_s", 2.0),
            ("flows.cubic.0.goodput_bps", 1e6),
            ("flows.cubic.0.rtt_ms.p50", 20.5),
            ("live.lateness_ms.p99", 0.1),
            ("live.hosts.left.truncated", 4.0),
            ("commands.iperf.json.end.streams.0.bytes", 7.0),
        ];
        assert_eq!(names, expected.map(|(name, value)| (name.to_owned(), value)));
    }

    #[test]
    fn a_summary_without_an_end_is_not_read_to_it() {
        for (begun, endless) in [("", b' '), ("\"", b'x'), ("", b'7'), ("[", b' ')] {
            let file = io::Cursor::new(format!("{{}} {{}}{begun}").into_bytes()).chain(io::repeat(endless));
            let left = Rc::new(Cell::new(5));
            let mut values = Deserializer::from_reader(Bounded { file, left: Rc::clone(&left) }).into_iter::<Value>();
            for _ in 0..2 {
                assert!(values.next().is_some_and(|value| value.is_ok()));
                left.set(5);
            }
            let error = values.next().expect("an error").expect_err("there is no end");
            assert!(unreadable(error, Path::new("endless")).to_string().contains("cannot be read"));
        }
    }

    #[test]
    fn differences_are_in_percent_of_the_first() {
        let percent = |a, b| Both { a: Some(a), b: Some(b) }.percent();
        assert_eq!(percent(4.0, 5.0), Some(25.0));
        assert_eq!(percent(-4.0, -5.0), Some(-25.0));
        assert_eq!(percent(0.0, 0.0), Some(0.0));
        assert_eq!(percent(0.0, 1.0), None);
        assert_eq!(percent(1e-300, 1e300), None);
        assert_eq!(Both { a: None, b: Some(1.0) }.percent(), None);
    }
}
