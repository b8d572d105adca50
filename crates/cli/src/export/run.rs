//! A run in an output directory, of which something is exported.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::{Path, PathBuf};

use ackclock_run::output::{self, OURS, SUMMARIES, SUMMARY};
use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use serde_json::Value;

use super::sheet::Sheet;

/// The longest summary that is read, in bytes.
const MAX_SUMMARY: u64 = 1 << 30;

/// A run in an output directory.
#[derive(Debug)]
pub(super) struct Run {
    pub(super) dir: PathBuf,
    pub(super) manifest: Value,
    pub(super) summary: Value,
    /// Its number, in a sweep.
    pub(super) number: Option<u64>,
}

impl Run {
    pub(super) fn open(dir: &Path, number: Option<u64>) -> anyhow::Result<Run> {
        let manifest = output::required_manifest(dir)?;
        let is_sweep = !manifest["files"][SUMMARIES].is_null();
        let runs = manifest["runs"].as_u64().unwrap_or(1);
        let number = match (is_sweep, number) {
            (false, None | Some(0)) => None,
            (true, Some(number)) if number < runs => Some(number),
            (true, None) => {
                bail!(
                    "{}: it is a sweep of {runs} runs; expected --run N, from 0 to {}",
                    dir.display(),
                    runs.max(1) - 1
                )
            }
            (_, Some(number)) => bail!("--run {number}: expected a run from 0 to {}", runs.max(1) - 1),
        };
        let path = dir.join(if is_sweep { SUMMARIES } else { SUMMARY });
        let summary = summary(&path, number)?;
        Ok(Run { dir: dir.to_owned(), manifest, summary, number })
    }

    /// The run of this summary.
    pub(super) fn of(dir: &Path, summary: Value) -> anyhow::Result<Run> {
        let manifest = output::required_manifest(dir)?;
        let number = if manifest["files"][SUMMARIES].is_null() { None } else { summary["index"].as_u64() };
        Ok(Run { dir: dir.to_owned(), manifest, summary, number })
    }

    /// A table that the run recorded; `None` if it was not asked for.
    pub(super) fn sheet(&self, file: &str) -> anyhow::Result<Option<Sheet>> {
        self.record(file).map(|path| Sheet::open(&path)).transpose()
    }

    /// Where a record of the run is; `None` if it was not asked for.
    pub(super) fn record(&self, file: &str) -> Option<PathBuf> {
        let is_listed = |name: &String| !self.manifest["files"][name].is_null();
        let name = match self.number {
            None => Some(file.to_owned()).filter(is_listed),
            // The number has as many digits as that of the last run.
            Some(number) => (4..=20).map(|digits| format!("runs/{number:0digits$}/{file}")).find(is_listed),
        };
        name.map(|name| self.dir.join(name))
    }

    /// The title of the scenario, or else the name of the directory.
    pub(super) fn title(&self) -> String {
        match self.manifest["title"].as_str() {
            Some(title) if !title.is_empty() => title.to_owned(),
            _ => self.dir.display().to_string(),
        }
    }

    /// The origin of the run, in a line.
    pub(super) fn origin(&self) -> String {
        let version = self.manifest[OURS].as_str().unwrap_or_default();
        let seed = &self.summary["seed"];
        match self.number {
            None => format!("ackclock {version}, seed {seed}"),
            Some(number) => {
                let names = ackclock_report::names(&self.summary).map(|(axis, name)| format!(", {axis} = {name}"));
                format!("ackclock {version}, run {number}, seed {seed}{}", names.collect::<String>())
            }
        }
    }

    /// Refuses a flow that the summary does not have.
    pub(super) fn knows_flow(&self, flow: &str) -> anyhow::Result<()> {
        let known = self.list("flows").iter().filter_map(|known| known["id"].as_str()).collect::<Vec<_>>();
        if known.contains(&flow) {
            return Ok(());
        }
        match known.split_at_checked(20).unwrap_or((&known, &[])) {
            ([], _) => bail!("--flow {flow}: the run has no flows with results of their own"),
            (some, rest) => {
                let more = if rest.is_empty() { "" } else { ", ..." };
                bail!("--flow {flow}: the run has no such flow; expected one of {}{more}", some.join(", "))
            }
        }
    }

    /// The objects of a list of the summary.
    pub(super) fn list(&self, key: &str) -> &[Value] {
        self.summary[key].as_array().map_or(&[], Vec::as_slice)
    }
}

/// The summary of a run: a file, or the line with its number.
fn summary(path: &Path, number: Option<u64>) -> anyhow::Result<Value> {
    let mut summaries = Summaries::open(path, number.is_some())?;
    while let Some(summary) = summaries.next()? {
        if number.is_none_or(|number| summary["index"] == number) {
            return Ok(summary);
        }
    }
    bail!("{}: there is no result of run {}", path.display(), number.unwrap_or(0))
}

/// Hands on the summaries of a directory, in the order of the runs.
pub(super) fn each_summary(dir: &Path, mut see: impl FnMut(Value) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let manifest = output::required_manifest(dir)?;
    let is_sweep = !manifest["files"][SUMMARIES].is_null();
    let mut summaries = Summaries::open(&dir.join(if is_sweep { SUMMARIES } else { SUMMARY }), is_sweep)?;
    while let Some(summary) = summaries.next()? {
        see(summary)?;
    }
    Ok(())
}

/// The summaries in a file: one, or one on each line.
struct Summaries {
    path: PathBuf,
    reader: BufReader<File>,
    lines: bool,
}

impl Summaries {
    fn open(path: &Path, lines: bool) -> anyhow::Result<Summaries> {
        let file = open_regular(path).with_context(|| format!("cannot read {}", path.display()))?;
        Ok(Summaries { path: path.to_owned(), reader: BufReader::new(file), lines })
    }

    fn next(&mut self) -> anyhow::Result<Option<Value>> {
        let path = &self.path;
        let mut text = Vec::new();
        let mut bounded = self.reader.by_ref().take(MAX_SUMMARY);
        let read = if self.lines { bounded.read_until(b'\n', &mut text) } else { bounded.read_to_end(&mut text) };
        if read.with_context(|| format!("cannot read {}", path.display()))? == 0 {
            return Ok(None);
        }
        let invalid = || format!("{} is not a summary of ackclock", path.display());
        let summary: Value = serde_json::from_slice(&text).with_context(invalid)?;
        if summary["schema"] != 1 {
            bail!("{}: its `schema` is not 1", invalid());
        }
        Ok(Some(summary))
    }
}
