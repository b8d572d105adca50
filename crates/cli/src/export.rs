//! `ackclock export`: records of a run for other programs.

mod csv;
mod estats;
mod flent;
mod mahimahi;
mod sheet;
mod spp;

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use ackclock_run::output::{self, OURS, SUMMARIES, SUMMARY};
use ackclock_run::partial::Partial;
use ackclock_scenario::{LoadError, Own};
use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use serde_json::Value;

use crate::args::export::{ExportArgs, ExportFormat};
use crate::check::load;
use crate::console::print_with;
use sheet::Sheet;

/// The longest summary that is read, in bytes.
const MAX_SUMMARY: u64 = 1 << 30;

/// Exports; the status to end with.
pub(crate) fn run(args: &ExportArgs, own: &Own) -> anyhow::Result<u8> {
    if args.format != ExportFormat::Mahimahi && (args.link.is_some() || args.drops) {
        bail!("--link and --drops are for --format mahimahi");
    }
    if !matches!(args.format, ExportFormat::Spp | ExportFormat::Estats) && args.flow.is_some() {
        bail!("--flow is for --format spp and estats");
    }
    if args.format == ExportFormat::Csv {
        let write = |out: &mut dyn Write| csv::write(&args.dir, &args.table, args.run, out);
        match &args.output {
            None => to_stdout(write)?,
            Some(path) => to_file(path, write)?,
        }
        return Ok(0);
    }
    if args.table != "flows" {
        bail!("--table is for --format csv");
    }
    if args.format == ExportFormat::Tc {
        let text = tc(&args.dir, args.run.unwrap_or(0), own)?;
        let write = |out: &mut dyn Write| Ok(out.write_all(text.as_bytes())?);
        match &args.output {
            None => to_stdout(write)?,
            Some(path) => to_file(path, write)?,
        }
        return Ok(0);
    }
    let run = Run::open(&args.dir, args.run)?;
    let write = |out: &mut dyn Write| match args.format {
        ExportFormat::Mahimahi => mahimahi::write(&run, args.link.as_deref().unwrap_or_default(), args.drops, out),
        ExportFormat::Flent => flent::write(&run, out),
        ExportFormat::Spp => spp::write(&run, args.flow.as_deref().unwrap_or_default(), out),
        ExportFormat::Estats => estats::write(&run, args.flow.as_deref().unwrap_or_default(), out),
        ExportFormat::Csv | ExportFormat::Tc => Ok(()),
    };
    match &args.output {
        None => to_stdout(write)?,
        Some(path) => to_file(path, write)?,
    }
    Ok(0)
}

/// The links of a scenario's run, as a script for `tc`.
fn tc(path: &Path, number: u64, own: &Own) -> anyhow::Result<String> {
    if path.is_dir() {
        bail!("{}: it is a directory; expected a scenario file", path.display());
    }
    let scenario = load(path, &[], own)?;
    let runs = scenario.runs() as u64;
    if number >= runs {
        bail!("--run {number}: expected a run from 0 to {}", runs.max(1) - 1);
    }
    let spec = scenario.read_spec(number as usize).map_err(LoadError::from)?;
    Ok(ackclock_tc::export(&spec.links))
}

/// A reader that has left is no error.
fn to_stdout(write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let mut failed = None;
    let ended = print_with(|out| {
        write(out).or_else(|error| match error.downcast::<io::Error>() {
            Ok(error) => Err(error),
            Err(error) => {
                failed = Some(error);
                Ok(())
            }
        })
    })?;
    match (failed, ended) {
        (Some(error), ControlFlow::Continue(())) => Err(error),
        _ => Ok(()),
    }
}

/// The file appears when it is complete.
pub(crate) fn to_file(path: &Path, write: impl FnOnce(&mut dyn Write) -> anyhow::Result<()>) -> anyhow::Result<()> {
    let cannot = || format!("--output: cannot write {}", path.display());
    if path.is_dir() {
        bail!("{}: it is a directory", cannot());
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let name = path.file_name().and_then(|name| name.to_str()).with_context(cannot)?;
    let mut file = Partial::create(folder, name).with_context(cannot)?;
    write(&mut file).map_err(|error| if error.is::<io::Error>() { error.context(cannot()) } else { error })?;
    file.seal().with_context(cannot)?.publish(folder).with_context(cannot)
}

/// A run in an output directory.
#[derive(Debug)]
struct Run {
    dir: PathBuf,
    manifest: Value,
    summary: Value,
    /// Its number, in a sweep.
    number: Option<u64>,
}

impl Run {
    fn open(dir: &Path, number: Option<u64>) -> anyhow::Result<Run> {
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
    fn of(dir: &Path, summary: Value) -> anyhow::Result<Run> {
        let manifest = output::required_manifest(dir)?;
        let number = if manifest["files"][SUMMARIES].is_null() { None } else { summary["index"].as_u64() };
        Ok(Run { dir: dir.to_owned(), manifest, summary, number })
    }

    /// A table that the run recorded; `None` if it was not asked for.
    fn sheet(&self, file: &str) -> anyhow::Result<Option<Sheet>> {
        self.record(file).map(|path| Sheet::open(&path)).transpose()
    }

    /// Where a record of the run is; `None` if it was not asked for.
    fn record(&self, file: &str) -> Option<PathBuf> {
        let is_listed = |name: &String| !self.manifest["files"][name].is_null();
        let name = match self.number {
            None => Some(file.to_owned()).filter(is_listed),
            // The number has as many digits as that of the last run.
            Some(number) => (4..=20).map(|digits| format!("runs/{number:0digits$}/{file}")).find(is_listed),
        };
        name.map(|name| self.dir.join(name))
    }

    /// The title of the scenario, or else the name of the directory.
    fn title(&self) -> String {
        match self.manifest["title"].as_str() {
            Some(title) if !title.is_empty() => title.to_owned(),
            _ => self.dir.display().to_string(),
        }
    }

    /// The origin of the run, in a line.
    fn origin(&self) -> String {
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
    fn knows_flow(&self, flow: &str) -> anyhow::Result<()> {
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
    fn list(&self, key: &str) -> &[Value] {
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
fn each_summary(dir: &Path, mut see: impl FnMut(Value) -> anyhow::Result<()>) -> anyhow::Result<()> {
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
