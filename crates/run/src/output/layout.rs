//! The files of an output directory, and its manifest.

use std::ffi::{OsStr, OsString};
use std::fs;
use std::io::{BufReader, Read};
use std::path::{Component, Path};

use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use serde_json::{Map, Value};

use crate::partial;

/// The longest manifest that is read, in bytes: a million files take less.
const MAX_MANIFEST: u64 = 1 << 30;
/// The file that makes a directory complete.
pub const MANIFEST: &str = "manifest.json";
/// The summary of a single run.
pub const SUMMARY: &str = "summary.json";
/// The summaries of a sweep, one line a run.
pub const SUMMARIES: &str = "summary.jsonl";
/// The record of queues.
pub const QUEUE: &str = "queue.csv";
pub(crate) const TCP: &str = "tcp.csv";
pub(crate) const SIFTR: &str = "siftr.log";
pub(crate) const ERTT: &str = "ertt.csv";
pub(crate) const FLOWS: &str = "flows.csv";
/// The series of flows and links.
pub const SERIES: &str = "series.csv";
pub(crate) const REORDERING: &str = "reordering.csv";
pub(crate) const DISPLACEMENT: &str = "displacement.csv";
/// The extension of captures.
pub(crate) const PCAPNG: &str = ".pcapng";
/// The extension of logs of loss recovery.
pub(crate) const SQLOG: &str = ".sqlog";
/// The records of a run, captures and logs of loss recovery apart.
pub(super) const RECORDS: [&str; 8] = [QUEUE, TCP, SIFTR, ERTT, FLOWS, SERIES, REORDERING, DISPLACEMENT];
/// The folder with what programs have printed.
pub(crate) const COMMANDS: &str = "commands";
/// The folder with one folder for each run of a sweep.
pub(crate) const RUNS: &str = "runs";
/// The folder of tables that the Python package derives from the summaries.
pub(super) const TABLES: &str = "tables";
/// The key by which a manifest is known; its value is the version.
pub const OURS: &str = "ackclock";

/// The hidden file that says what is being run, while it is.
pub(super) const PLAN: &str = "plan.json";

/// The plan until it is written.
pub(super) const NEW_PLAN: &str = "new-plan.json";

/// The number of components in a file name. A manifest may have been edited: it must not refer to
/// places outside the directory.
pub fn depth_of(name: &str) -> Option<usize> {
    let parts: Vec<Component<'_>> = Path::new(name).components().collect();
    match parts[..] {
        [Component::Normal(_)] => Some(1),
        [Component::Normal(commands), Component::Normal(_)] if commands == COMMANDS => Some(2),
        [Component::Normal(runs), Component::Normal(_), Component::Normal(_)] if runs == RUNS => Some(3),
        [Component::Normal(runs), Component::Normal(_), Component::Normal(commands), Component::Normal(_)]
            if runs == RUNS && commands == COMMANDS =>
        {
            Some(4)
        }
        _ => None,
    }
}

/// The contents of a directory.
pub(super) fn names(dir: &Path) -> anyhow::Result<Vec<OsString>> {
    let names = fs::read_dir(dir).and_then(|entries| entries.map(|entry| Ok(entry?.file_name())).collect());
    names.with_context(|| format!("cannot read the directory {}", dir.display()))
}

pub(super) fn is_partial(name: &OsStr) -> bool {
    name.to_str().is_some_and(|name| name.starts_with('.') && name.ends_with(".partial"))
}

/// Returns `true` if a file of this name is a record of a run.
pub(super) fn is_record(name: &str) -> bool {
    RECORDS.contains(&name) || name.ends_with(PCAPNG) || name.ends_with(SQLOG)
}

/// Returns `true` if this was left by a killed run of ackclock.
pub(super) fn is_ours(name: &OsStr) -> bool {
    let plain = name.to_str().and_then(|name| name.strip_prefix('.')?.strip_suffix(".partial"));
    plain.is_some_and(|name| {
        // A record, the folder of what programs print, or a file of it.
        let of_run = |name: &str| {
            let printed = name.strip_prefix(COMMANDS);
            is_record(name) || printed.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
        };
        let of_sweep = name.strip_prefix(RUNS).and_then(|rest| rest.strip_prefix('-')?.split_once('-'));
        [MANIFEST, SUMMARY, SUMMARIES].contains(&name)
            || is_plan(name)
            || of_run(name)
            || of_sweep.is_some_and(|(_, name)| of_run(name))
    })
}

/// The manifest of a complete output.
pub fn manifest(dir: &Path) -> Option<Value> {
    read_manifest(&dir.join(MANIFEST))
}

/// The Python package once wrote directories of its own.
pub(super) fn check_layout(dir: &Path, manifest: &Value) -> anyhow::Result<()> {
    if manifest.get("layout").is_some() {
        bail!(
            "{} was written by the Python package of ackclock {}, in a layout of its own that this version does not \
             read",
            dir.display(),
            manifest[OURS].as_str().unwrap_or_default()
        );
    }
    Ok(())
}

/// The manifest of a directory that has to be a complete output.
pub fn required_manifest(dir: &Path) -> anyhow::Result<Value> {
    let manifest = manifest(dir).with_context(|| {
        let found =
            if dir.join(MANIFEST).exists() { "its manifest.json is not ackclock's" } else { "no manifest.json" };
        format!("{} is not an ackclock output directory ({found})", dir.display())
    })?;
    check_layout(dir, &manifest)?;
    Ok(manifest)
}

/// A file that two manifests, or parts of them, have with other contents.
pub(crate) fn other_input<'a>(a: &'a Value, b: &'a Value) -> Option<&'a str> {
    let (a, b) = (a["inputs"].as_object()?, b["inputs"].as_object()?);
    a.iter().find(|&(name, hash)| b.get(name).is_some_and(|other| other != hash)).map(|(name, _)| name.as_str())
}

/// The files that a manifest lists.
pub(super) fn names_in(manifest: &Value) -> impl Iterator<Item = &String> {
    manifest["files"].as_object().into_iter().flat_map(Map::keys)
}

pub(super) fn read_manifest(path: &Path) -> Option<Value> {
    let manifest: Value = serde_json::from_reader(BufReader::new(open_regular(path).ok()?.take(MAX_MANIFEST))).ok()?;
    manifest[OURS].is_string().then_some(manifest)
}

/// Removes a file of an earlier output, and its folders if nothing is left in them.
pub(super) fn remove(dir: &Path, name: &str) {
    let Some(depth) = depth_of(name) else { return };
    let path = dir.join(name);
    let _ = fs::remove_file(&path);
    for folder in path.ancestors().skip(1).take(depth - 1) {
        let _ = fs::remove_dir(folder);
    }
}

/// The manifest of a run that was killed after its first file had appeared and before its manifest
/// had.
pub(super) fn unfinished(dir: &Path) -> Option<Value> {
    match manifest(dir) {
        None => read_manifest(&partial::hidden(dir, MANIFEST)),
        Some(_) => None,
    }
}

pub(super) fn is_plan(name: &str) -> bool {
    [PLAN, NEW_PLAN].contains(&name)
}

/// Returns `true` if a sweep was begun here that has not come to its end.
pub(super) fn has_plan(dir: &Path) -> bool {
    read_manifest(&partial::hidden(dir, PLAN)).is_some()
}
