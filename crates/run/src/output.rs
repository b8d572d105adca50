//! `--out`: a directory that is complete exactly when it has a manifest.
//!
//! Files are written under hidden names that end in `.partial` and renamed when the runs are over,
//! the manifest last. An earlier output stays as it is until then. Nothing in the files of virtual
//! runs depends on the machine, the time or the number of threads. One program at a time writes to
//! a directory, and the results of a killed one are moved aside.
//!
//! The records of a run are next to the summary, or for a sweep in one folder per run:
//! `runs/0000/queue.csv` and so on belong to the first line of `summary.jsonl`. The output of
//! programs is in a folder `commands` next to it.

mod layout;
mod leftovers;
mod lock;
mod resume;

use std::collections::BTreeSet;
use std::ffi::OsString;
use std::fs;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};

use ackclock_scenario::{LoadError, Own, Scenario};
use ackclock_trace::{ChangeSummary, open_regular};
use anyhow::{Context, bail};
use serde::Serialize;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

use crate::partial::{self, Partial, PartialFolder, Sealed};
use crate::selection::Selection;
pub(crate) use layout::{
    COMMANDS, DISPLACEMENT, ERTT, FLOWS, PCAPNG, REORDERING, RUNS, SIFTR, SQLOG, TCP, other_input,
};
pub use layout::{MANIFEST, OURS, QUEUE, SERIES, SUMMARIES, SUMMARY, depth_of, manifest, required_manifest};
use layout::{TABLES, check_layout, has_plan, is_partial, names, names_in, remove, unfinished};
pub use lock::InUse;
use lock::Lock;
use resume::SweepInputs;

/// A directory that is being filled.
#[derive(Debug)]
pub struct Output {
    dir: PathBuf,
    /// `true` if the directory was made for this.
    made: bool,
    sweep: bool,
    runs: usize,
    summary: Option<Partial>,
    /// The records of the runs so far, in their order.
    records: Vec<Sealed>,
    /// The results put aside, in a sentence.
    kept: Option<String>,
    /// Number of runs that had finished before: the first of the sweep.
    earlier: usize,
    inputs: SweepInputs,
    /// `true` if any run was added.
    has_runs: bool,
    /// The file that identifies the sweep, while it is not complete.
    plan: Option<PathBuf>,
    lock: Option<Lock>,
}

impl Output {
    /// Makes sure, before anything runs, that the directory can be written and that nobody else's
    /// files are in it.
    ///
    /// With `resume` it goes on with what it holds of the same sweep. `overwrite` permits to
    /// replace results that are partial.
    pub fn prepare(
        dir: &Path,
        scenario: &Scenario,
        selection: &Selection,
        resume: bool,
        overwrite: bool,
    ) -> anyhow::Result<Output> {
        let made = make(dir)?;
        // First of all: while another run completes the directory, it looks like anybody's.
        let lock = Some(Lock::take(dir)?);
        let (sweep, runs) = (scenario.is_sweep(), scenario.runs());
        let unfinished = unfinished(dir);
        let listed = unfinished.iter().flat_map(names_in).filter_map(|name| name.split('/').next());
        let listed: BTreeSet<&str> = listed.collect();
        let is_begun = has_plan(dir);
        let is_known = |name: &OsString| {
            // The folder of runs may stand empty where their files are about to come or have gone.
            (is_begun && name == RUNS)
                || name == TABLES
                || is_partial(name)
                || leftovers::is_kept(name)
                || name.to_str().is_some_and(|name| listed.contains(name))
        };
        let earlier = manifest(dir);
        if let Some(manifest) = &earlier {
            check_layout(dir, manifest)?;
        }
        if earlier.is_none() && !names(dir)?.iter().all(is_known) {
            bail!(
                "{} is not empty and holds no output of ackclock (no {MANIFEST} that ackclock has written)",
                dir.display()
            );
        }
        if !resume && !overwrite {
            leftovers::refuse_partial(dir)?;
        }
        if is_begun {
            resume::remove_empty(&dir.join(RUNS));
        }
        let mut output = Output {
            dir: dir.to_owned(),
            made,
            sweep,
            runs,
            summary: None,
            records: Vec::new(),
            kept: None,
            earlier: 0,
            inputs: SweepInputs { files: inputs(scenario), part: selection.part().cloned() },
            has_runs: false,
            plan: None,
            lock,
        };
        if resume
            && sweep
            && let Some(found) = resume::take_up(dir, output.digits(), &output.inputs, scenario, selection)?
        {
            (output.summary, output.records, output.earlier) = (found.summary, found.records, found.runs);
            output.plan = output.summary.is_some().then(|| resume::plan(dir, &output.inputs, scenario)).transpose()?;
            return Ok(output);
        }
        output.kept = leftovers::put_aside(dir, &names(dir)?, unfinished.as_ref())?;
        if sweep {
            output.plan = Some(resume::plan(dir, &output.inputs, scenario)?);
        }
        let name = if sweep { SUMMARIES } else { SUMMARY };
        let file = Partial::create(dir, name).with_context(|| format!("cannot write into {}", dir.display()))?;
        output.summary = Some(file);
        Ok(output)
    }

    /// The remains of an earlier run that was killed, and their place now, if there are any.
    pub fn kept(&self) -> Option<&str> {
        self.kept.as_deref()
    }

    /// Number of digits of a run's number in a sweep.
    fn digits(&self) -> usize {
        (self.runs - 1).to_string().len().max(4)
    }

    /// Number of runs that had finished before: the first of the sweep.
    pub fn earlier(&self) -> usize {
        self.earlier
    }

    /// Gives the lines of the runs that had finished before, in their order.
    pub fn each_earlier(&self, mut each: impl FnMut(&str) -> anyhow::Result<()>) -> anyhow::Result<()> {
        if self.earlier == 0 {
            return Ok(());
        }
        let path = self.summary.as_ref().map_or_else(|| self.dir.join(SUMMARIES), |file| file.path().to_owned());
        let read = || format!("cannot read {}", path.display());
        let file = BufReader::new(open_regular(&path).with_context(read)?);
        file.lines().take(self.earlier).try_for_each(|line| each(&line.with_context(read)?))
    }

    /// Where runs put what they record, for the threads that they are on.
    pub(crate) fn places(&self) -> Places {
        Places { dir: Some(self.dir.clone()), digits: self.sweep.then(|| self.digits()) }
    }

    /// Writes the summary of the next run, and keeps what it has recorded.
    pub(crate) fn add(
        &mut self,
        summary: &impl Serialize,
        records: impl IntoIterator<Item = Sealed>,
    ) -> io::Result<()> {
        let Some(file) = &mut self.summary else { return Ok(()) };
        match self.sweep {
            true => serde_json::to_writer(&mut *file, summary)?,
            false => serde_json::to_writer_pretty(&mut *file, summary)?,
        }
        writeln!(file)?;
        // Whatever ends the program, this run is not lost.
        file.flush()?;
        self.records.extend(records);
        self.has_runs = true;
        Ok(())
    }

    /// Writes the line of the next run as it is, or laid out if it is the only one, and keeps what
    /// it has recorded.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn add_line(&mut self, line: &str, records: impl IntoIterator<Item = Sealed>) -> io::Result<()> {
        let Some(file) = &mut self.summary else { return Ok(()) };
        match self.sweep {
            true => file.write_all(line.as_bytes())?,
            false => serde_json::to_writer_pretty(&mut *file, &serde_json::from_str::<Value>(line)?)?,
        }
        writeln!(file)?;
        file.flush()?;
        self.records.extend(records);
        self.has_runs = true;
        Ok(())
    }

    /// Writes what a run has recorded, a file with these contents.
    ///
    /// # Errors
    /// It cannot be written.
    pub fn record(&self, run: usize, name: &str, contents: &[u8]) -> anyhow::Result<Sealed> {
        let mut file = self.places().create(run, name)?;
        let written = file.write_all(contents).and_then(|()| file.seal());
        written.with_context(|| format!("cannot write into {}", self.dir.display()))
    }

    /// Completes the directory, after all runs, or after as many as there were until one was broken
    /// off.
    pub fn finish(
        mut self,
        scenario: &Scenario,
        partial: bool,
        failed: usize,
        changes: &[ChangeSummary],
    ) -> anyhow::Result<()> {
        let Some(summary) = self.summary.take() else { return Ok(()) };
        let dir = &self.dir;
        let mut sealed = vec![summary.seal()?];
        sealed.append(&mut self.records);
        let files: Map<String, Value> = sealed.iter().map(Sealed::listed).collect();
        let mut manifest = json!({
            OURS: env!("CARGO_PKG_VERSION"),
            "title": scenario.title(),
            "seed": scenario.seed(),
            "runs": scenario.runs(),
            "files": files,
            "scenario": scenario.resolved(),
        });
        self.inputs.tell(&mut manifest);
        if !changes.is_empty() {
            manifest["changes"] = serde_json::to_value(changes)?;
        }
        if partial {
            manifest["partial"] = true.into();
        }
        if failed > 0 {
            manifest["failed"] = failed.into();
        }
        if files.len() == 1 && scenario.records_anything() {
            // What the scenario asks for was not wanted, as from Python.
            manifest["records"] = false.into();
        }
        let mut file = Partial::create(dir, MANIFEST)?;
        writeln!(file, "{manifest:#}")?;
        let manifest = file.seal()?;
        // Everything is on the disk; what is left takes no time.
        let earlier = layout::manifest(dir);
        if earlier.is_some() {
            // From here until the new manifest the directory is not complete.
            fs::remove_file(dir.join(MANIFEST))?;
        }
        for file in sealed {
            file.publish(dir)?;
        }
        for old in earlier.iter().flat_map(names_in) {
            if !files.contains_key(old) {
                remove(dir, old);
            }
        }
        manifest.publish(dir)?;
        if let Some(plan) = self.plan.take() {
            let _ = fs::remove_file(plan);
        }
        Ok(())
    }
}

impl Drop for Output {
    /// Takes away what a failed run began, but nothing that was there before, nor the runs of a
    /// sweep that have finished.
    fn drop(&mut self) {
        if self.earlier > 0 || self.sweep && self.has_runs {
            self.summary.take().into_iter().for_each(Partial::leave);
            self.records.drain(..).for_each(Sealed::leave);
            return;
        }
        let plan = self.plan.take();
        plan.into_iter().for_each(|plan| _ = fs::remove_file(plan));
        if self.summary.take().is_some() && self.made {
            self.records.clear();
            self.lock = None;
            let _ = fs::remove_dir(&self.dir);
        }
    }
}

/// Where each run puts what it records.
#[derive(Debug)]
pub(crate) struct Places {
    /// Nothing for memory.
    dir: Option<PathBuf>,
    /// Number of digits of a run's number in a sweep.
    digits: Option<usize>,
}

impl Places {
    /// Records stay in memory, under their plain names.
    pub(crate) fn in_memory() -> Places {
        Places { dir: None, digits: None }
    }

    /// Begins a file of a run.
    pub(crate) fn create(&self, run: usize, file: &str) -> anyhow::Result<Partial> {
        let name = self.name(run, file);
        let Some(dir) = &self.dir else { return Ok(Partial::in_memory(&name)) };
        Partial::create(dir, &name).with_context(|| format!("cannot write into {}", dir.display()))
    }

    /// Begins a folder of a run that somebody else fills.
    pub(crate) fn folder(&self, run: usize, folder: &str) -> anyhow::Result<PartialFolder> {
        let name = self.name(run, folder);
        let dir = self.dir.as_ref().context("what programs print needs a directory")?;
        PartialFolder::create(dir, &name).with_context(|| format!("cannot write into {}", dir.display()))
    }

    fn name(&self, run: usize, file: &str) -> String {
        match self.digits {
            Some(digits) => format!("{RUNS}/{run:0digits$}/{file}"),
            None => file.to_owned(),
        }
    }
}

/// Makes sure that a directory is there. Tells whether it was not.
fn make(dir: &Path) -> anyhow::Result<bool> {
    match fs::metadata(dir) {
        Ok(found) if !found.is_dir() => bail!("{} is not a directory", dir.display()),
        Ok(_) => Ok(false),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            fs::create_dir_all(dir).with_context(|| format!("cannot create the directory {}", dir.display()))?;
            Ok(true)
        }
        Err(error) => Err(error).with_context(|| format!("cannot read {}", dir.display())),
    }
}

/// Returns `true` if a sweep was begun in a directory that has not come to its end.
pub fn is_broken_off(dir: &Path) -> bool {
    has_plan(dir)
}

/// The scenario of a manifest, whose files are in `folder` or relative to that.
pub(crate) fn scenario(dir: &Path, folder: &Path, text: &str, own: &Own) -> anyhow::Result<Scenario> {
    let name = format!("{} (scenario)", dir.join(MANIFEST).display());
    Ok(Scenario::parse_in(folder, &name, text.as_bytes(), &[], own).map_err(LoadError::from)?)
}

/// The hashes of the files that a scenario names, by their names; the capture of a replay is not
/// among them.
fn inputs(scenario: &Scenario) -> Map<String, Value> {
    let hash = |contents: &[u8]| partial::hex(Sha256::new_with_prefix(contents));
    scenario.files().into_iter().map(|(name, contents)| (name, hash(&contents).into())).collect()
}

/// The hash of a file that a manifest lists with this entry.
pub fn hash(path: &Path, entry: &Value) -> io::Result<String> {
    let mut file = ackclock_trace::open_of_size(path, entry["bytes"].as_u64().unwrap_or_default())?;
    let (mut hash, mut buffer) = (Sha256::new(), vec![0; 1 << 16]);
    loop {
        match file.read(&mut buffer)? {
            0 => break,
            read => hash.update(&buffer[..read]),
        }
    }
    Ok(partial::hex(hash))
}
