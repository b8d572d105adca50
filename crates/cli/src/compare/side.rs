//! A result that is compared.

use std::cell::Cell;
use std::io::{self, BufReader, Read};
use std::path::{Path, PathBuf};
use std::rc::Rc;

use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use serde_json::{Deserializer, Map, Value};

use super::select::PointSelection;
use super::sums;
use crate::args::compare::Choice;

/// The longest summary that is read, in bytes: 100,000 flows have some 200 MB.
const MAX_SUMMARY: u64 = 1 << 30;

/// The most that is compared at once, in bytes of summaries; in memory they take a multiple of it.
const MAX_HELD: u64 = 1 << 30;

/// Lists of the summary whose entries have an id.
pub(super) const WITH_ID: [&str; 7] = ["flows", "sums", "kinds", "groups", "workloads", "links", "commands"];

/// One of the two compared results.
#[derive(Debug)]
pub(super) struct ResultSide {
    /// Its name: what was given, and what was selected of it.
    pub(super) name: String,
    /// The directory or file, as it was given.
    pub(super) given: String,
    pub(super) runs: Vec<Run>,
    /// Runs that failed, by readable names.
    pub(super) failed: Vec<String>,
    /// The flag that selects points, and the axes that it named.
    pub(super) flag: &'static str,
    pub(super) axes: Vec<String>,
}

/// The summary of a run.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) summary: Value,
    /// Its values on the axes by which it is matched with others.
    pub(super) params: Map<String, Value>,
    /// Its numbers with their names, in the order of the summary.
    pub(super) numbers: Map<String, Value>,
}

impl ResultSide {
    /// Reads a directory of `--out`, a file of summaries, or one run of either: `DIR:7`. Points of
    /// a sweep are taken if they have the chosen values.
    pub(super) fn read(given: &str, flag: &'static str, choices: &[Choice]) -> anyhow::Result<ResultSide> {
        let (path, only) = locate(given)?;
        let mut selection = PointSelection::new(flag, choices);
        let file = open_regular(&path).with_context(|| format!("cannot read {}", path.display()))?;
        let left = Rc::new(Cell::new(MAX_SUMMARY));
        let mut values =
            Deserializer::from_reader(BoundedReader { file: BufReader::new(file), left: Rc::clone(&left) })
                .into_iter::<Value>();
        let (mut runs, mut failed, mut held) = (Vec::new(), Vec::new(), 0);
        for number in 0.. {
            let begun = values.byte_offset();
            let Some(value) = values.next() else { break };
            let mut summary = value.map_err(|error| unreadable(error, &path))?;
            left.set(MAX_SUMMARY);
            if summary["schema"] != 1 || !summary["flows"].is_array() || !summary["links"].is_array() {
                bail!(
                    "{}: object {number} is not an ackclock summary (`schema` 1 with `flows` and `links`)",
                    path.display()
                );
            }
            // A sweep that was broken off may lack runs between others.
            let index = summary["index"].as_u64().unwrap_or(number as u64);
            if only.is_none_or(|only| only as u64 == index) && selection.takes(&summary, given)? {
                if summary["failed"] == true {
                    failed.push(Run::of(summary).name());
                    continue;
                }
                held += values.byte_offset() - begun;
                if held as u64 > MAX_HELD {
                    bail!("{} has more runs than can be compared at once: select one, {given}:N", path.display());
                }
                sums::add(&mut summary);
                runs.push(Run::of(summary));
            }
        }
        match (runs.is_empty(), only) {
            (true, _) if !failed.is_empty() => bail!("{given}: all runs have failed ({})", failed.join("; ")),
            (true, Some(only)) if !selection.has_seen() => {
                bail!("{} has no run {only}; runs count from 0", path.display())
            }
            (true, None) if !selection.has_seen() => bail!("{} is empty", path.display()),
            (true, _) => Err(selection.nothing(given)),
            (false, _) => {
                let (name, axes) = selection.end(given);
                Ok(ResultSide { name, given: given.to_owned(), runs, failed, flag, axes })
            }
        }
    }
}

/// A file of which so much is read at most until there is another value.
#[derive(Debug)]
struct BoundedReader<R> {
    file: R,
    left: Rc<Cell<u64>>,
}

impl<R: Read> Read for BoundedReader<R> {
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
        None => bail!("{} is not an ackclock output directory (no summary.json or summary.jsonl)", path.display()),
    }
}

/// Every number of a summary by its name, as expectations have it: `flows.ID.rtt_ms.p50`.
fn numbers(summary: &Value) -> Map<String, Value> {
    let mut found = Map::new();
    for (key, value) in summary.as_object().into_iter().flatten() {
        match value {
            // Keys that identify a run, and parts of it, are no metrics.
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

impl Run {
    fn of(summary: Value) -> Run {
        let params = summary["params"].as_object().cloned().unwrap_or_default();
        Run { numbers: numbers(&summary), params, summary }
    }

    /// The key that a run and its counterpart share: their parameters and numbers.
    pub(super) fn key(&self) -> (String, String) {
        (self.point(), self.summary["run"].to_string())
    }

    /// The key without the number.
    pub(super) fn point(&self) -> String {
        Value::from(self.params.clone()).to_string()
    }

    /// Its parameters and its number.
    pub(super) fn name(&self) -> String {
        let mut parts = self.parameters();
        parts.push(format!("run {}", self.summary["run"]));
        parts.join(", ")
    }

    pub(super) fn parameters(&self) -> Vec<String> {
        let of_point = ackclock_report::names(&self.summary).filter(|(axis, _)| self.params.contains_key(*axis));
        of_point.map(|(axis, name)| format!("{axis} = {name}")).collect()
    }

    pub(super) fn ids(&self, list: &str) -> impl Iterator<Item = &str> {
        self.summary[list].as_array().into_iter().flatten().filter_map(|entry| entry["id"].as_str())
    }

    pub(super) fn number(&self, name: &str) -> Option<f64> {
        self.numbers.get(name)?.as_f64()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

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
            let mut values =
                Deserializer::from_reader(BoundedReader { file, left: Rc::clone(&left) }).into_iter::<Value>();
            for _ in 0..2 {
                assert!(values.next().is_some_and(|value| value.is_ok()));
                left.set(5);
            }
            let error = values.next().expect("an error").expect_err("there is no end");
            assert!(unreadable(error, Path::new("endless")).to_string().contains("cannot be read"));
        }
    }
}
