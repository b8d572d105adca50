//! `ackclock verify`: whether the runs of an output directory give the same bytes again.
//!
//! A file is compared three ways: its hash in the manifest, the file in the directory, and the file
//! of the repetition. So a file that was changed afterwards is told from a run that differs.

mod difference;

use std::io;
use std::path::{Path, PathBuf};
use std::process;

use ackclock_scenario::{Own, Scenario};
use anyhow::{Context, bail};
use serde_json::{Map, Value};

use crate::changes;
use crate::execute::BrokenOff;
use crate::output::{self, OURS};
use crate::pilot::PilotPlan;
use crate::progress::Counter;
use crate::session::{Listener, Session, Wanted};
use crate::status::{INTERRUPTED, RUN_FAILED};

/// The verdict on a directory.
#[derive(Debug)]
pub enum Verdict {
    /// The number of files, all of which are the same.
    Same(usize),
    /// The differences, in sentences.
    Differs(Vec<String>),
    /// The runs came to no end, which gives this status; a failure has been said.
    Broken(u8),
}

/// Repeats the runs of a directory and compares every file. Files that the scenario names are in
/// `folder` or relative to that.
///
/// # Errors
/// It cannot be verified: it is not complete, or of a live run, or cannot be run here.
pub fn verify<L: Listener>(
    dir: &Path,
    folder: &Path,
    threads: Option<usize>,
    own: &Own,
    listener: L,
) -> anyhow::Result<Verdict> {
    let manifest = output::required_manifest(dir)?;
    let (Some(text), Some(files)) = (manifest["scenario"].as_str(), manifest["files"].as_object()) else {
        bail!("its manifest has no `scenario` or no `files`");
    };
    if manifest["partial"] == true {
        bail!("its results are partial: the runs were broken off");
    }
    let scenario = output::scenario(dir, folder, text, own)?;
    if scenario.is_live() {
        bail!("it is of a live run, which does not repeat");
    }
    if let Some(version) = manifest[OURS].as_str().filter(|&version| version != env!("CARGO_PKG_VERSION")) {
        listener.say(&format!(
            "note: {} was written by version {version}, and this is {}",
            dir.display(),
            env!("CARGO_PKG_VERSION")
        ));
    }
    let plan = PilotPlan::read(&scenario, &changes::from_manifest(&manifest)?)?;
    let again = Temporary::create()?;
    let part = |key: &str| manifest[key].as_str();
    let wanted = Wanted {
        out: Some(again.0.clone()),
        only: part("only").and_then(|text| text.parse().ok()),
        shard: part("shard").and_then(|text| text.parse().ok()),
        threads,
        without_records: manifest["records"] == false,
        ..Wanted::default()
    };
    if let Some(status) = repeat(&wanted, &scenario, plan, listener)? {
        return Ok(Verdict::Broken(status));
    }
    let differences = compare(dir, &manifest, files, &again.0)?;
    Ok(if differences.is_empty() { Verdict::Same(files.len()) } else { Verdict::Differs(differences) })
}

/// Does the runs of a scenario into a directory. Returns the status if they came to no end.
fn repeat<L: Listener>(
    wanted: &Wanted,
    scenario: &Scenario,
    plan: PilotPlan,
    listener: L,
) -> anyhow::Result<Option<u8>> {
    let (threads, note) = wanted.threads(scenario)?;
    note.iter().for_each(|note| listener.say(note));
    let mut session = Session::open(wanted, scenario, listener)?;
    session.plan = plan;
    let finished = session.execute(threads, None, &Counter::default());
    if let Some(status) = session.settle(finished)? {
        return Ok(Some(status));
    }
    match &session.ended_early {
        Some((_, BrokenOff::Interrupted)) => Ok(Some(INTERRUPTED)),
        Some((_, BrokenOff::Failed(_))) => Ok(Some(RUN_FAILED)),
        None => session.complete().map(|()| None),
    }
}

fn compare(dir: &Path, manifest: &Value, files: &Map<String, Value>, again: &Path) -> anyhow::Result<Vec<String>> {
    let repeated = output::manifest(again).context("the repetition has no manifest")?;
    let input = output::other_input(manifest, &repeated);
    let input = input.map(|name| format!("the file {name} of the scenario has other contents than when it ran"));
    let mut differences: Vec<String> = input.into_iter().collect();
    let repeated = repeated["files"].as_object().context("the repetition has no files")?;
    for (name, entry) in files {
        if output::depth_of(name).is_none() {
            bail!("its manifest lists `{name}`, which is no file of an output");
        }
        let path = dir.join(name);
        let hash = match output::hash(&path, entry) {
            Ok(hash) => hash,
            Err(error) if error.kind() == io::ErrorKind::InvalidData => {
                differences.push(format!("{name} was changed since it was written: {error}"));
                continue;
            }
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                differences.push(format!("{name} is missing"));
                continue;
            }
            Err(error) => return Err(error).with_context(|| format!("cannot read {}", path.display())),
        };
        if entry["sha256"] != hash {
            differences.push(format!("{name} was changed since it was written: it does not have its hash"));
        }
        match repeated.get(name) {
            Some(repeated) if repeated["sha256"] == hash => {}
            Some(_) => differences.push(difference::first(name, &path, &again.join(name))?),
            None => differences.push(format!("{name} was not written again")),
        }
    }
    let more = repeated.keys().filter(|name| !files.contains_key(*name));
    differences.extend(more.map(|name| format!("{name} was written by the repetition alone")));
    Ok(differences)
}

/// A directory that is removed when it is dropped.
struct Temporary(PathBuf);

impl Temporary {
    fn create() -> anyhow::Result<Temporary> {
        let parent = std::env::temp_dir();
        // A directory that exists already is somebody else's.
        for number in 0..1000 {
            let path = parent.join(format!("ackclock-verify-{}-{number}", process::id()));
            match std::fs::create_dir(&path) {
                Ok(()) => return Ok(Temporary(path)),
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {}
                Err(error) => {
                    return Err(error).with_context(|| format!("cannot create the directory {}", path.display()));
                }
            }
        }
        bail!("cannot create a directory in {}", parent.display())
    }
}

impl Drop for Temporary {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}
