//! Output directories.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};

use ackclock_trace::{open_of_size, open_regular};
use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use crate::columns::SubjectTable;

/// The longest line of summaries that is read, in bytes.
const MAX_LINE: u64 = 1 << 30;

/// The longest manifest that is read, in bytes.
const MAX_MANIFEST: u64 = 1 << 30;

/// Lists of a summary that have objects with ids, with the keys of names that tell them apart.
const LISTS: [(&str, &[&str]); 5] = [
    ("flows", &["id", "cc", "host", "loss_detector", "direction"]),
    ("links", &["id", "queue"]),
    ("groups", &["id", "cc", "host", "direction"]),
    ("workloads", &["id"]),
    ("kinds", &["id"]),
];

/// The key of the results of subflows, for flows that have several.
const SUBFLOWS: &str = "subflows";

/// The key of the punctuality and processor use of live runs.
const LIVE: &str = "live";

/// The key of the results of hosts with a stack of their own.
const HOSTS: &str = "hosts";

/// The key of the goodputs of flows and of such hosts, and their shares.
const SENDERS: &str = "senders";

/// The runs of several output directories, and their results.
#[derive(Debug)]
pub(crate) struct CollectedRuns {
    pub(crate) outputs: Vec<OutputDir>,
    pub(crate) runs: Vec<ReportedRun>,
    pub(crate) subjects: Vec<SubjectTable>,
    pub(crate) expectations: Vec<Value>,
}

/// A directory.
#[derive(Debug)]
pub(crate) struct OutputDir {
    pub(crate) dir: PathBuf,
    pub(crate) title: String,
    manifest: Value,
    pub(crate) is_sweep: bool,
}

/// A run.
#[derive(Debug)]
pub(crate) struct ReportedRun {
    /// Index of the output directory.
    pub(crate) output: usize,
    /// Number of the run in the output.
    pub(crate) index: u64,
    /// Repetition of the sweep point.
    pub(crate) repetition: u64,
    pub(crate) params: Map<String, Value>,
    /// Labels of the parameter values.
    names: Vec<(String, String)>,
    pub(crate) duration_s: f64,
    /// True if a machine's clock drove the run.
    pub(crate) is_live: bool,
    /// Changes from outside during the run: each a time and the values set then.
    pub(crate) changes: Vec<Value>,
    /// Densities of reordering, of some flows.
    pub(crate) densities: Vec<Value>,
}

impl OutputDir {
    fn read(dir: &Path) -> anyhow::Result<OutputDir> {
        let path = dir.join("manifest.json");
        let file = open_regular(&path)
            .with_context(|| format!("{} is not an ackclock output directory (no manifest.json)", dir.display()))?;
        let manifest: Value = serde_json::from_reader(BufReader::new(std::io::Read::take(file, MAX_MANIFEST)))
            .with_context(|| format!("{} is not JSON", path.display()))?;
        if !manifest["ackclock"].is_string() {
            bail!("{} is not an ackclock output directory (its manifest.json is not ackclock's)", dir.display());
        }
        let title = manifest["title"].as_str().unwrap_or_default();
        let title = if title.is_empty() { dir.display().to_string() } else { title.to_owned() };
        let is_sweep = dir.join("summary.jsonl").exists();
        Ok(OutputDir { dir: dir.to_owned(), title, manifest, is_sweep })
    }

    /// Returns true if the manifest lists a file.
    pub(crate) fn has(&self, file: &str) -> bool {
        self.manifest["files"].get(file).is_some()
    }

    /// Opens a file that the manifest lists.
    pub(crate) fn open(&self, name: &str) -> anyhow::Result<File> {
        let path = self.dir.join(name);
        let opened = match self.manifest["files"][name]["bytes"].as_u64() {
            Some(bytes) => open_of_size(&path, bytes),
            None => open_regular(&path),
        };
        opened.with_context(|| format!("cannot read {}", path.display()))
    }

    pub(crate) fn json(&self) -> Value {
        json!({
            "dir": self.dir.display().to_string(),
            "title": self.title,
            "version": self.manifest["ackclock"],
            "seed": self.manifest["seed"],
            "runs": self.manifest["runs"],
            "partial": self.manifest["partial"] == true,
            "scenario": self.manifest["scenario"],
        })
    }

    /// The summaries, in the order of the runs.
    fn each(&self, mut see: impl FnMut(Value)) -> anyhow::Result<()> {
        let name = if self.is_sweep { "summary.jsonl" } else { "summary.json" };
        let path = self.dir.join(name);
        let mut reader = BufReader::new(self.open(name)?);
        let invalid = |number: usize| format!("{}: summary {number} is not one of ackclock", path.display());
        for number in 0.. {
            let mut text = Vec::new();
            let mut bounded = std::io::Read::take(&mut reader, MAX_LINE);
            let read = match self.is_sweep {
                true => bounded.read_until(b'\n', &mut text),
                false => std::io::Read::read_to_end(&mut bounded, &mut text),
            };
            if read.with_context(|| format!("cannot read {}", path.display()))? == 0 {
                return Ok(());
            }
            let summary: Value = serde_json::from_slice(&text).with_context(|| invalid(number))?;
            if summary["schema"] != 1 {
                bail!("{}: its `schema` is not 1", invalid(number));
            }
            see(summary);
        }
        Ok(())
    }
}

/// Reads all results.
pub(crate) fn results(dirs: &[PathBuf]) -> anyhow::Result<CollectedRuns> {
    let outputs = dirs.iter().map(|dir| OutputDir::read(dir)).collect::<anyhow::Result<Vec<_>>>()?;
    let names = [SENDERS, "flows", SUBFLOWS, "links", "groups", "workloads", "kinds", HOSTS, LIVE, "run"];
    let mut results = CollectedRuns {
        outputs: Vec::new(),
        runs: Vec::new(),
        subjects: names.map(SubjectTable::new).into(),
        expectations: Vec::new(),
    };
    for (number, output) in outputs.iter().enumerate() {
        output.each(|summary| results.add(number, &summary))?;
    }
    if results.runs.is_empty() {
        bail!("{} holds no run", dirs[0].display());
    }
    results.outputs = outputs;
    results.subjects.iter_mut().for_each(SubjectTable::forget_constants);
    results.subjects.retain(|subject| !subject.runs.is_empty() && !subject.metrics.is_empty());
    Ok(results)
}

/// The most flows of a run of which there are densities.
const MOST_FLOWS: usize = 8;

/// The densities of reordering in the summary of a run.
fn densities(summary: &Value) -> Vec<Value> {
    let flows = summary["flows"].as_array().map_or(&[][..], Vec::as_slice);
    let measured = flows.iter().filter(|flow| flow["reordering"].is_object()).take(MOST_FLOWS);
    let of = measured.flat_map(|flow| {
        let id = flow["id"].as_str().unwrap_or_default();
        flow["reordering"].as_object().into_iter().flatten().map(move |(place, found)| {
            json!({ "id": format!("{id} at {place}"), "density": found["density"], "rbd": found["rbd"] })
        })
    });
    of.collect()
}

/// The changes in the summary of a run, those of a time together.
fn changes(summary: &Value) -> Vec<Value> {
    let mut found: Vec<(u64, Vec<&str>)> = Vec::new();
    for change in summary["changes"].as_array().into_iter().flatten() {
        let (Some(at), Some(set)) = (change["at_ns"].as_u64(), change["set"].as_str()) else { continue };
        match found.last_mut().filter(|(last, _)| *last == at) {
            Some((_, sets)) => sets.push(set),
            None => found.push((at, vec![set])),
        }
    }
    found.into_iter().map(|(at, set)| json!({ "at_s": at as f64 / 1e9, "set": set })).collect()
}

/// Adds a row for each subflow of a flow.
fn add_subflows(subject: &mut SubjectTable, run: usize, flow: &Value) {
    let id = flow["id"].as_str().unwrap_or_default();
    for subflow in flow["multipath"]["subflows"].as_array().into_iter().flatten() {
        let mut metrics = subflow.clone();
        let Some(path) = metrics.as_object_mut().and_then(|metrics| metrics.remove("path")) else { continue };
        let cc = flow["cc"].as_str().unwrap_or_default();
        let names = [("id", &*format!("{id}.subflow{path}")), ("flow", id), ("path", &*path.to_string()), ("cc", cc)];
        subject.add(run, &metrics, &names);
    }
}

/// The goodputs of a run by the names of flows and of receiving hosts, if a host has a stack that
/// tells of one. A flow and a host of one name are one sender, of which a sweep uses one or the other.
fn goodputs(summary: &Value) -> Vec<(String, f64)> {
    let mut found: Vec<(String, f64)> = Vec::new();
    let mut add = |name: &str, goodput: &Value| {
        let Some(goodput) = goodput.as_f64() else { return };
        match found.iter_mut().find(|(known, _)| known == name) {
            Some((_, sum)) => *sum += goodput,
            None => found.push((name.to_owned(), goodput)),
        }
    };
    let list = |of: &'_ Value| of.as_array().cloned().unwrap_or_default();
    let hosts = list(&summary[LIVE][HOSTS]);
    if !hosts.iter().any(|host| host["results"]["goodput_bps"].is_number()) {
        return found;
    }
    for flow in list(&summary["flows"]) {
        let id = flow["id"].as_str().unwrap_or_default();
        add(id.strip_suffix(".0").unwrap_or(id), &flow["goodput_bps"]);
    }
    hosts.iter().for_each(|host| add(host["id"].as_str().unwrap_or_default(), &host["results"]["goodput_bps"]));
    found
}

impl CollectedRuns {
    /// Adds what hosts with a stack of their own come to, and flows beside them.
    fn add_hosts(&mut self, run: usize, summary: &Value) {
        for subject in &mut self.subjects {
            if subject.name == HOSTS {
                for host in summary[LIVE][HOSTS].as_array().into_iter().flatten() {
                    let name = |key| (key, host[key].as_str().unwrap_or_default());
                    if host["results"].is_object() {
                        subject.add(run, &host["results"], &[name("id"), name("stack")]);
                    }
                }
            }
            if subject.name == SENDERS {
                let found = goodputs(summary);
                let sum: f64 = found.iter().map(|(_, goodput)| goodput).sum();
                for (name, goodput) in &found {
                    let share = (found.len() > 1 && sum > 0.0).then(|| goodput / sum);
                    subject.add(run, &json!({ "goodput_bps": goodput, "share": share }), &[("id", name)]);
                }
            }
        }
    }

    fn add(&mut self, output: usize, summary: &Value) {
        let run = self.runs.len();
        let mut rest = summary.as_object().cloned().unwrap_or_default();
        for (list, keys) in LISTS {
            let Some(Value::Array(objects)) = rest.remove(list) else { continue };
            let Some(subject) = self.subjects.iter_mut().find(|subject| subject.name == list) else { continue };
            for object in &objects {
                let name = |key| (key, object[key].as_str().unwrap_or_default());
                let names: Vec<(&str, &str)> = keys.iter().map(|&key| name(key)).collect();
                subject.add(run, object, &names);
            }
            if let Some(subject) = self.subjects.iter_mut().find(|subject| subject.name == SUBFLOWS && list == "flows")
            {
                objects.iter().for_each(|flow| add_subflows(subject, run, flow));
            }
        }
        if let Some(Value::Array(expectations)) = rest.remove("expectations") {
            self.expectations.extend(expectations);
        }
        let params = match rest.remove("params") {
            Some(Value::Object(params)) => params,
            _ => Map::new(),
        };
        let number = |key: &str| rest.get(key).and_then(Value::as_u64).unwrap_or(0);
        self.runs.push(ReportedRun {
            output,
            index: number("index"),
            repetition: number("run"),
            params,
            names: names(summary).map(|(axis, name)| (axis.to_owned(), name)).collect(),
            duration_s: rest.get("duration_s").and_then(Value::as_f64).unwrap_or(0.0),
            is_live: rest.get("clock").and_then(Value::as_str) == Some(LIVE),
            changes: changes(summary),
            densities: densities(summary),
        });
        // What counts runs, or is in lists, is no result.
        for key in ["schema", "seed", "run", "index", "duration_s", "windows", "commands", "changes"] {
            rest.remove(key);
        }
        self.add_hosts(run, summary);
        if let Some(live) = rest.remove(LIVE).filter(Value::is_object)
            && let Some(subject) = self.subjects.iter_mut().find(|subject| subject.name == LIVE)
        {
            subject.add(run, &live, &[]);
        }
        if let Some(subject) = self.subjects.iter_mut().find(|subject| subject.name == "run") {
            subject.add(run, &Value::Object(rest), &[]);
        }
    }

    /// The axes with their values in the order in which they occur.
    pub(crate) fn axes(&self) -> Vec<Value> {
        let mut axes: Vec<(&str, Vec<(&Value, &str)>)> = Vec::new();
        for run in &self.runs {
            for ((name, value), (_, called)) in run.params.iter().zip(&run.names) {
                let place = axes.iter().position(|axis| axis.0 == name).unwrap_or_else(|| {
                    axes.push((name, Vec::new()));
                    axes.len() - 1
                });
                if axes[place].1.iter().all(|(known, _)| *known != value) {
                    axes[place].1.push((value, called));
                }
            }
        }
        let mut all: Vec<Value> = Vec::new();
        if self.outputs.len() > 1 {
            let names: Vec<String> = self.outputs.iter().map(|output| output.dir.display().to_string()).collect();
            let rows: Vec<usize> = self.runs.iter().map(|run| run.output).collect();
            all.push(json!({ "name": "output", "values": names, "rows": rows }));
        }
        for (name, values) in axes {
            let row = |run: &ReportedRun| values.iter().position(|(value, _)| Some(*value) == run.params.get(name));
            let rows: Vec<Option<usize>> = self.runs.iter().map(row).collect();
            // Outputs of different sweeps may call different values the same.
            let alone = |name: &str| values.iter().filter(|(_, other)| *other == name).count() == 1;
            let shown =
                values.iter().map(|(value, name)| if alone(name) { (*name).to_owned() } else { value.to_string() });
            let values: Vec<String> = shown.collect();
            all.push(json!({ "name": name, "values": values, "rows": rows }));
        }
        all
    }

    pub(crate) fn runs(&self) -> Value {
        json!({
            "output": self.runs.iter().map(|run| run.output).collect::<Vec<_>>(),
            "index": self.runs.iter().map(|run| run.index).collect::<Vec<_>>(),
            "repetition": self.runs.iter().map(|run| run.repetition).collect::<Vec<_>>(),
        })
    }

    /// A run as titles have it.
    pub(crate) fn name_of(&self, run: usize) -> String {
        let ReportedRun { output, index, repetition, params, names, .. } = &self.runs[run];
        let values = names.iter().map(|(axis, name)| format!("{} {name}", axis.rsplit('.').next().unwrap_or(axis)));
        let mut name = values.collect::<Vec<_>>().join(", ");
        if self.runs.iter().filter(|other| other.output == *output && other.params == *params).count() > 1 {
            name = format!("{name}{}repetition {repetition}", if name.is_empty() { "" } else { ", " });
        }
        if self.outputs.len() > 1 {
            name = format!("{}: {name}", self.outputs[*output].dir.display());
        }
        if self.outputs[*output].is_sweep { format!("run {index}: {name}") } else { name }
    }

    /// The first run of each point of each output.
    pub(crate) fn first_runs(&self) -> Vec<usize> {
        let mut seen = BTreeSet::new();
        let point = |run: &ReportedRun| (run.output, Value::Object(run.params.clone()).to_string());
        (0..self.runs.len()).filter(|&run| seen.insert(point(&self.runs[run]))).collect()
    }
}

/// The axes in the summary of a run, or at a point of an expectation, with the names of their
/// values.
pub fn names(of: &Value) -> impl Iterator<Item = (&str, String)> {
    let name = |axis: &str, value: &Value| match (of["labels"][axis].as_str(), value.as_str()) {
        (Some(name), _) | (None, Some(name)) => name.to_owned(),
        (None, None) => value.to_string(),
    };
    of["params"].as_object().into_iter().flatten().map(move |(axis, value)| (axis.as_str(), name(axis, value)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_flow_and_a_host_of_one_name_are_one_sender() {
        let host = |id: &str, goodput: f64| json!({ "id": id, "results": { "goodput_bps": goodput } });
        let summary = json!({
            "flows": [{ "id": "one.0", "goodput_bps": 3.0 }, { "id": "other.0", "goodput_bps": 0.5 }],
            "live": { "hosts": [host("other", 4.5), host("third", 2.0), { "id": "other_client", "results": {} }] },
        });
        let expected = [("one", 3.0), ("other", 5.0), ("third", 2.0)].map(|(id, goodput)| (id.to_owned(), goodput));
        assert_eq!(goodputs(&summary), expected);
        // Flows alone have a table of their own.
        assert_eq!(goodputs(&json!({ "flows": summary["flows"] })), []);
        let mut results = CollectedRuns { outputs: vec![], runs: vec![], subjects: vec![], expectations: vec![] };
        results.subjects = [SENDERS, HOSTS].map(SubjectTable::new).into();
        results.add_hosts(0, &summary);
        let senders = results.subjects[0].json();
        assert_eq!(senders["metrics"], json!({ "goodput_bps": [3.0, 5.0, 2.0], "share": [0.3, 0.5, 0.2] }));
        assert_eq!(results.subjects[1].json()["metrics"]["goodput_bps"], json!([4.5, 2.0, null]));
    }
}
