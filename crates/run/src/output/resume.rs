//! Going on with a sweep that ended before its time: by a signal, a kill, a power failure.
//!
//! Runs are written in their order. The lines of the first so many are kept, byte for byte, and so
//! are their records; whatever else was begun goes.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};

use ackclock_scenario::Scenario;
use anyhow::{Context, bail};
use serde_json::{Map, Value, json};

use super::layout::{
    COMMANDS, MANIFEST, NEW_PLAN, OURS, PCAPNG, PLAN, RECORDS, RUNS, SQLOG, SUMMARIES, depth_of, is_ours, is_plan,
    is_record, names, names_in, other_input, read_manifest, remove,
};
use super::leftovers::{self, count_lines};
use crate::partial::{self, Partial, Sealed};
use crate::selection::{Selection, Walk};

/// What a sweep depends on beside its scenario.
#[derive(Debug)]
pub(super) struct SweepInputs {
    /// Hashes of the files that the scenario names, by their names.
    pub(super) files: Map<String, Value>,
    /// The part that these runs are, unless all.
    pub(super) part: Option<(&'static str, String)>,
}

impl SweepInputs {
    /// Adds to a manifest which files the scenario names and which runs these are.
    pub(super) fn tell(&self, manifest: &mut Value) {
        if !self.files.is_empty() {
            manifest["inputs"] = self.files.clone().into();
        }
        if let Some((key, part)) = &self.part {
            manifest[*key] = part.as_str().into();
        }
    }
}

/// The results already there.
#[derive(Debug)]
pub(super) struct Resumed {
    /// Where further results go; `None` if there are all.
    pub(super) summary: Option<Partial>,
    pub(super) records: Vec<Sealed>,
    /// Number of finished runs.
    pub(super) runs: usize,
}

/// Removes the folders in a folder that have nothing in them, and the folder if it has nothing
/// else.
pub(super) fn remove_empty(folder: &Path) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let _ = fs::remove_dir(entry.path());
    }
    let _ = fs::remove_dir(folder);
}

/// Writes down what is being run, unless it is there.
pub(super) fn plan(dir: &Path, inputs: &SweepInputs, scenario: &Scenario) -> anyhow::Result<PathBuf> {
    let path = partial::hidden(dir, PLAN);
    let plan = described(inputs, scenario);
    if read_manifest(&path).as_ref() == Some(&plan) {
        return Ok(path);
    }
    // The plan is there as a whole, or not at all.
    let begun = partial::hidden(dir, NEW_PLAN);
    let write = || {
        let mut file = File::create(&begun)?;
        write!(file, "{plan}")?;
        file.sync_all()?;
        fs::rename(&begun, &path)
    };
    write().with_context(|| format!("cannot write into {}", dir.display()))?;
    Ok(path)
}

/// A sweep, by what its results depend on.
fn described(inputs: &SweepInputs, scenario: &Scenario) -> Value {
    let mut plan = json!({ OURS: env!("CARGO_PKG_VERSION"), "scenario": scenario.resolved() });
    inputs.tell(&mut plan);
    plan
}

/// Results of the same sweep in a directory.
pub(super) fn take_up(
    dir: &Path,
    digits: usize,
    inputs: &SweepInputs,
    scenario: &Scenario,
    selection: &Selection,
) -> anyhow::Result<Option<Resumed>> {
    let complete = read_manifest(&dir.join(MANIFEST));
    let hidden = read_manifest(&partial::hidden(dir, MANIFEST));
    let Some(earlier) =
        complete.as_ref().or(hidden.as_ref()).cloned().or_else(|| read_manifest(&partial::hidden(dir, PLAN)))
    else {
        return Ok(None);
    };
    check(dir, selection, &earlier, &described(inputs, scenario))?;
    if complete.as_ref().is_some_and(|manifest| manifest["partial"] != true) {
        let runs = count_lines(&dir.join(SUMMARIES))
            .with_context(|| format!("cannot read {}", dir.join(SUMMARIES).display()))?;
        // The run was killed between this manifest and its own end.
        let _ = fs::remove_file(partial::hidden(dir, PLAN));
        return Ok(Some(Resumed { summary: None, records: Vec::new(), runs }));
    }
    // From here on nothing is complete until it is again. Each step may be the last: until all
    // files are hidden, a hidden manifest lists them.
    plan(dir, inputs, scenario)?;
    if complete.is_some() {
        fs::rename(dir.join(MANIFEST), partial::hidden(dir, MANIFEST))?;
    }
    hide(dir, SUMMARIES)?;
    let mut walk = Walk::new(scenario, selection.clone());
    let resumed = Partial::resume(dir, SUMMARIES, |line| {
        // A sweep that was interrupted may lack runs between others.
        let run = serde_json::from_slice::<Value>(line).ok();
        let Some((run, next)) = run.zip(walk.next()).filter(|(run, next)| run["index"] == *next) else { return false };
        let measures = if walk.is_adaptive() && run["failed"] != true { scenario.measure(&run) } else { Vec::new() };
        walk.step(next, &measures);
        true
    })?;
    let (runs, next) = (walk.done(), walk.next());
    let summary = match resumed {
        Some(summary) => summary,
        None => Partial::create(dir, SUMMARIES)?,
    };
    // The records of runs that had not finished go, and those that no run can have written.
    let finished = |name: &str| {
        let number = name.strip_prefix(RUNS).and_then(|rest| rest.get(1..1 + digits)?.parse::<usize>().ok());
        number.is_some_and(|number| next.is_none_or(|next| number < next))
    };
    for name in names_in(&earlier).filter(|name| *name != SUMMARIES) {
        if finished(name) { hide(dir, name)? } else { remove(dir, name) }
    }
    let manifest = partial::hidden(dir, MANIFEST);
    if manifest.exists() {
        fs::remove_file(manifest)?;
    }
    let records = records(dir, scenario, finished)?;
    Ok(Some(Resumed { summary: Some(summary), records, runs }))
}

/// The records of finished runs, in the order of the runs; whatever else is hidden goes.
fn records(dir: &Path, scenario: &Scenario, finished: impl Fn(&str) -> bool) -> anyhow::Result<Vec<Sealed>> {
    let mut records = Vec::new();
    let mut left: Vec<String> =
        names(dir)?.iter().filter(|name| is_ours(name)).filter_map(|name| name.to_str()).map(str::to_owned).collect();
    left.sort();
    for hidden in left {
        let plain = leftovers::plain(&hidden);
        let path = dir.join(&hidden);
        if plain == SUMMARIES || is_plan(&plain) {
            continue;
        }
        let of_run = plain.rsplit('/').next().is_some_and(is_record) || plain.contains(COMMANDS);
        if finished(&plain) && of_run && path.is_file() {
            records.push(Sealed::of(path, plain)?);
        } else if path.is_dir() {
            fs::remove_dir_all(path)?;
        } else {
            fs::remove_file(path)?;
        }
    }
    // In the order of the runs, and of what each records: captures and logs of recovery are last.
    let named = |run| {
        let captures = scenario.captures(run).map(|(captures, _)| captures).unwrap_or_default();
        let captures = captures.into_iter().map(|capture| capture.name + PCAPNG);
        captures.chain(scenario.qlogs(run).unwrap_or_default().into_iter().map(|log| log.name + SQLOG)).collect()
    };
    let mut last: (Option<usize>, Vec<String>) = (None, Vec::new());
    let mut place = |name: &str| {
        let file = name.rsplit('/').next().unwrap_or_default();
        let run = name.split('/').nth(1).and_then(|run| run.parse::<usize>().ok()).unwrap_or_default();
        if let Some(place) = RECORDS.iter().position(|record| *record == file) {
            return (run, place);
        }
        if last.0 != Some(run) {
            last = (Some(run), named(run));
        }
        (run, RECORDS.len() + last.1.iter().position(|name| name == file).unwrap_or(last.1.len()))
    };
    records.sort_by_cached_key(|sealed| place(&sealed.listed().0));
    Ok(records)
}

/// Refuses results of another scenario, of other files, or of another version of ackclock.
fn check(dir: &Path, selection: &Selection, earlier: &Value, asked: &Value) -> anyhow::Result<()> {
    let (version, text) =
        (earlier[OURS].as_str().unwrap_or_default(), earlier["scenario"].as_str().unwrap_or_default());
    if version != env!("CARGO_PKG_VERSION") {
        bail!("{} was written by ackclock {version}; this is {}", dir.display(), env!("CARGO_PKG_VERSION"));
    }
    let part =
        |value: Option<(&str, &str)>| value.map_or("all runs".to_owned(), |(key, part)| format!("--{key} {part}"));
    let before = ["only", "shard"].into_iter().find_map(|key| Some((key, earlier[key].as_str()?)));
    let now = selection.part().map(|(key, part)| (*key, part.as_str()));
    if before != now {
        bail!("{} holds {}; you asked for {}", dir.display(), part(before), part(now));
    }
    if let Some(name) = other_input(earlier, asked) {
        bail!("{} holds runs with other contents of the file {name}", dir.display());
    }
    let resolved = asked["scenario"].as_str().unwrap_or_default();
    if text == resolved {
        return Ok(());
    }
    let [before, now] = [text, resolved].map(|text| ackclock_scenario::values(text).unwrap_or_default());
    let differs = before.keys().chain(now.keys()).find(|key| before.get(*key) != now.get(*key));
    let of = |values: &std::collections::BTreeMap<String, String>, key: &String| {
        values.get(key).cloned().unwrap_or_else(|| "missing".to_owned())
    };
    match differs {
        Some(key) => bail!(
            "{} holds another scenario: `{key}` is {} there and {} here",
            dir.display(),
            of(&before, key),
            of(&now, key)
        ),
        None => bail!("{} holds another scenario", dir.display()),
    }
}

/// Gives a file back the name that it had before it was complete, if it is there.
fn hide(dir: &Path, name: &str) -> anyhow::Result<()> {
    let published = dir.join(name);
    if depth_of(name).is_some() && published.is_file() {
        fs::rename(&published, partial::hidden(dir, name))?;
        published.ancestors().skip(1).take_while(|above| *above != dir).for_each(|above| _ = fs::remove_dir(above));
    }
    Ok(())
}
