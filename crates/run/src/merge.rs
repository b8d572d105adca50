//! `ackclock merge`: the parts of a sweep become one result, as if one process had done all runs.
//!
//! The lines of the parts are copied as they are, in the order of the runs; the last one gets the
//! expectations. Records are copied and compared with their hashes.

use std::fs::{self, File};
use std::io::{self, BufRead, BufReader, Lines, Read, Write};
use std::path::{Path, PathBuf};

use ackclock_scenario::{Own, Scenario};
use ackclock_trace::{open_of_size, open_regular};
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::output::{self, OURS, RUNS, SUMMARIES};
use crate::partial::{Partial, Sealed};
use crate::selection::{Selection, Walk};
use crate::session::{Listener, Session};

/// The parts of a sweep, which are of the same one.
pub struct Parts {
    dirs: Vec<PathBuf>,
    out: PathBuf,
    parts: Vec<SweepPart>,
}

impl Parts {
    /// Opens them, to be merged into `out`.
    ///
    /// # Errors
    /// One is not complete, was changed or is of another sweep, or `out` is one of them.
    pub fn open(dirs: &[PathBuf], out: &Path) -> anyhow::Result<Parts> {
        let parts = dirs.iter().map(|dir| SweepPart::open(dir)).collect::<anyhow::Result<Vec<_>>>()?;
        let (first, others) = parts.split_first().context("no parts")?;
        others.iter().try_for_each(|other| first.must_match(other))?;
        if dirs.iter().any(|dir| is_same(dir, out)) {
            bail!("{} is one of the parts: --out must be another directory", out.display());
        }
        Ok(Parts { dirs: dirs.to_vec(), out: out.to_owned(), parts })
    }

    /// Their scenario, whose files are in `folder` or relative to that.
    ///
    /// # Errors
    /// It cannot be read here, or runs are missing or there twice.
    pub fn scenario(&self, folder: &Path, own: &Own) -> anyhow::Result<Scenario> {
        let first = self.parts.first().context("no parts")?;
        let text = first.manifest["scenario"].as_str().unwrap_or_default();
        let scenario = output::scenario(&first.dir, folder, text, &own.for_results())?;
        // The completeness of the runs is checked before anything is written.
        complete(&self.dirs, &scenario)?;
        Ok(scenario)
    }

    /// Gives their runs to a session of that scenario, in order.
    ///
    /// # Errors
    /// They cannot be read, or written.
    pub fn give<L: Listener>(self, session: &mut Session<'_, L>) -> anyhow::Result<()> {
        let Parts { out, mut parts, .. } = self;
        session.take_others(|run| {
            let place = parts.iter().position(|part| part.next == Some(run));
            let part = &mut parts[place.with_context(|| format!("no part has run {run}"))?];
            let line = part.line.clone();
            part.advance()?;
            Ok((line, part.records(run, &out)?))
        })
    }
}

fn is_same(a: &Path, b: &Path) -> bool {
    fs::canonicalize(a).ok().zip(fs::canonicalize(b).ok()).is_some_and(|(a, b)| a == b)
}

/// Checks that the parts have every run once.
fn complete(dirs: &[PathBuf], scenario: &Scenario) -> anyhow::Result<()> {
    if scenario.is_adaptive() {
        return complete_walk(dirs, scenario);
    }
    let mut has: Vec<Option<usize>> = vec![None; scenario.runs()];
    for (number, dir) in dirs.iter().enumerate() {
        let mut part = SweepPart::open(dir)?;
        while let Some(run) = part.next {
            let place = has.get_mut(run).with_context(|| format!("{} has a run {run}", dir.display()))?;
            if let Some(other) = place.replace(number) {
                bail!("run {run} is in {} and in {}", dirs[other].display(), dir.display());
            }
            part.advance()?;
        }
    }
    let missing: Vec<usize> = (0..has.len()).filter(|&run| has[run].is_none()).collect();
    let Some(first) = missing.first() else { return Ok(()) };
    let which = if missing.len() == 1 { format!("run {first}") } else { format!("{} runs", missing.len()) };
    let of = missing_shards(dirs);
    let of = if of.is_empty() { format!("; the first is run {first}") } else { format!(": shard {}", of.join(", ")) };
    bail!("the parts are not complete: {which} of {} missing{of}", has.len())
}

/// Checks the same where runs decide which others there are.
fn complete_walk(dirs: &[PathBuf], scenario: &Scenario) -> anyhow::Result<()> {
    let mut parts = dirs.iter().map(|dir| SweepPart::open(dir)).collect::<anyhow::Result<Vec<_>>>()?;
    let mut walk = Walk::new(scenario, Selection::of(scenario, None, None)?);
    while let Some(run) = walk.next() {
        let mut has = parts.iter_mut().filter(|part| part.next == Some(run));
        let part = has.next().with_context(|| format!("the parts are not complete: run {run} is missing"))?;
        if let Some(other) = has.next() {
            bail!("run {run} is in {} and in {}", part.dir.display(), other.dir.display());
        }
        let summary: Value = serde_json::from_str(&part.line)?;
        let measures = if summary["failed"] == true { Vec::new() } else { scenario.measure(&summary) };
        walk.step(run, &measures);
        part.advance()?;
    }
    match parts.iter().find_map(|part| Some((part.next?, &part.dir))) {
        Some((run, dir)) => bail!("{} has a run {run}, which the sweep does not need", dir.display()),
        None => Ok(()),
    }
}

/// The shards that no part is, if all parts are shards of as many.
fn missing_shards(dirs: &[PathBuf]) -> Vec<String> {
    let shards: Option<Vec<(usize, usize)>> = (dirs.iter())
        .map(|dir| {
            let manifest = output::manifest(dir)?;
            let (index, of) = manifest["shard"].as_str()?.split_once('/')?;
            Some((index.parse().ok()?, of.parse().ok()?))
        })
        .collect();
    let shards = shards.unwrap_or_default();
    match shards.first() {
        Some(&(_, of)) if shards.iter().all(|shard| shard.1 == of) => {
            let missing = (0..of).filter(|index| shards.iter().all(|shard| shard.0 != *index));
            missing.map(|index| format!("{index}/{of}")).collect()
        }
        _ => Vec::new(),
    }
}

/// The part of a line that is read here.
#[derive(Deserialize)]
struct Index {
    index: usize,
}

/// A part, and the run that comes next in it.
struct SweepPart {
    dir: PathBuf,
    manifest: Value,
    lines: Lines<BufReader<File>>,
    next: Option<usize>,
    line: String,
}

impl SweepPart {
    fn open(dir: &Path) -> anyhow::Result<SweepPart> {
        let shown = dir.display();
        let manifest = output::required_manifest(dir)?;
        if manifest["partial"] == true {
            bail!("{shown} is not complete: its runs were broken off; --resume goes on with them");
        }
        let path = dir.join(SUMMARIES);
        if manifest["files"].get(SUMMARIES).is_none() {
            bail!("{shown} is of a single run, and not a part of a sweep");
        }
        let entry = &manifest["files"][SUMMARIES];
        match output::hash(&path, entry) {
            Ok(hash) if entry["sha256"] == hash => {}
            Ok(_) => bail!("{} was changed since it was written: it does not have its hash", path.display()),
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                bail!("{} was changed since it was written: {error}", path.display())
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        }
        let lines = BufReader::new(open_regular(&path)?).lines();
        let mut part = SweepPart { dir: dir.to_owned(), manifest, lines, next: None, line: String::new() };
        part.advance()?;
        Ok(part)
    }

    /// Goes to the next run.
    fn advance(&mut self) -> anyhow::Result<()> {
        let unreadable = || format!("cannot read {}", self.dir.join(SUMMARIES).display());
        let Some(line) = self.lines.next() else {
            self.next = None;
            return Ok(());
        };
        self.line = line.with_context(unreadable)?;
        let Index { index } = serde_json::from_str(&self.line).with_context(unreadable)?;
        if self.next.is_some_and(|before| before >= index) {
            bail!("{}: run {index} is not in its place", self.dir.join(SUMMARIES).display());
        }
        self.next = Some(index);
        Ok(())
    }

    fn must_match(&self, other: &SweepPart) -> anyhow::Result<()> {
        let (a, b) = (self.dir.display(), other.dir.display());
        for (key, what) in [(OURS, "version"), ("seed", "seed"), ("title", "title"), ("runs", "number of runs")] {
            if self.manifest[key] != other.manifest[key] {
                bail!("{a} and {b} differ in their {what}: {} and {}", self.manifest[key], other.manifest[key]);
            }
        }
        if let Some(name) = output::other_input(&self.manifest, &other.manifest) {
            bail!("{a} and {b} are of other contents of the file {name}");
        }
        if self.manifest["scenario"] != other.manifest["scenario"] {
            let keys =
                |part: &SweepPart| ackclock_scenario::values(part.manifest["scenario"].as_str().unwrap_or_default());
            let (of_a, of_b) = (keys(self).unwrap_or_default(), keys(other).unwrap_or_default());
            let key = of_a.keys().chain(of_b.keys()).find(|key| of_a.get(*key) != of_b.get(*key));
            bail!("{a} and {b} are of different scenarios{}", key.map_or(String::new(), |key| format!(": `{key}`")));
        }
        Ok(())
    }

    /// Copies what a run has recorded, in the order of the manifest.
    fn records(&self, run: usize, out: &Path) -> anyhow::Result<Vec<Sealed>> {
        let of_run = |name: &str| {
            let number =
                name.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('/')?.split('/').next()?.parse().ok());
            number == Some(run) && output::depth_of(name).is_some()
        };
        let files = self.manifest["files"].as_object().into_iter().flatten();
        let mut records = Vec::new();
        for (name, entry) in files.filter(|(name, _)| of_run(name)) {
            let path = self.dir.join(name);
            let unreadable = || format!("cannot read {}", path.display());
            let bytes = entry["bytes"].as_u64().unwrap_or_default();
            let mut from = open_of_size(&path, bytes).with_context(unreadable)?;
            let mut to = Partial::create(out, name).with_context(|| format!("cannot write into {}", out.display()))?;
            let mut chunk = vec![0; 64 << 10];
            loop {
                match from.read(&mut chunk).with_context(unreadable)? {
                    0 => break,
                    read => to.write_all(&chunk[..read])?,
                }
            }
            let sealed = to.seal()?;
            if sealed.listed().1 != *entry {
                bail!("{} was changed since it was written: it does not have its hash", path.display());
            }
            records.push(sealed);
        }
        Ok(records)
    }
}
