//! `ackclock check`: whether scenarios are valid.

use std::io;
use std::path::Path;

use ackclock_run::execute;
use ackclock_run::memory::{self, mib};
use ackclock_run::selection::{Selection, Walk};
use ackclock_run::status::BAD_INPUT;
use ackclock_scenario::{LoadError, Memory, Override, Own, Scenario};
use anyhow::bail;

use crate::args::check::CheckArgs;
use crate::console::{print, say, tell};
use crate::duration::{RemainingNeeds, roughly};

/// Standard input, where a file is expected.
const STDIN: &str = "-";

/// Checks all of the files; the status to end with.
pub(crate) fn run(args: &CheckArgs, own: &Own) -> anyhow::Result<u8> {
    if args.files.iter().filter(|file| file.as_os_str() == STDIN).count() > 1 {
        bail!("`{STDIN}` is given twice: standard input can be read once");
    }
    let set: Vec<Override> =
        args.set.iter().map(|text| Override { flag: "--set".to_owned(), text: text.clone() }).collect();
    let mut status = 0;
    for file in &args.files {
        match load(file, &set, own) {
            Ok(scenario) => {
                let name = name_of(file);
                let selection = Selection::of(&scenario, args.only.as_ref(), args.shard)?;
                for note in scenario.notes() {
                    say(&format!("note: {name}: {note}"));
                }
                if scenario.wrong() > 0 {
                    status = BAD_INPUT;
                }
                if args.verbose && print(&format!("{name}: {}\n", outline(&scenario, selection)))?.is_break() {
                    return Ok(status);
                }
            }
            Err(error) => {
                tell(&error.into());
                status = BAD_INPUT;
            }
        }
    }
    Ok(status)
}

/// Reads a scenario from its file, or from standard input.
///
/// # Errors
/// It cannot be read, or it is invalid.
pub(crate) fn load(file: &Path, overrides: &[Override], own: &Own) -> Result<Scenario, LoadError> {
    if file.as_os_str() == STDIN {
        Scenario::load_from(&name_of(file), io::stdin().lock(), overrides, own)
    } else {
        Scenario::load_with(file, overrides, own)
    }
}

/// The name of a file in errors and notes.
fn name_of(file: &Path) -> String {
    if file.as_os_str() == STDIN { "<stdin>".to_owned() } else { file.display().to_string() }
}

/// The size of a scenario, and what it needs, in a line.
fn outline(scenario: &Scenario, selection: Selection) -> String {
    let all = scenario.runs();
    let part = if selection.is_all() { String::new() } else { format!("{} of ", selection.count()) };
    let threads = memory::plan(scenario, &selection, None, execute::cores(), None).map_or(1, |(threads, _)| threads);
    let points = selection.points(scenario);
    let needs = RemainingNeeds::of(&Walk::new(scenario, selection), threads);
    let (flows, workloads) = scenario.flows();
    let mut parts = vec![
        counted(all / scenario.repeat(), "point"),
        format!("{part}{}{}", if scenario.is_adaptive() { "at most " } else { "" }, counted(all, "run")),
        counted(flows, "flow"),
        counted(scenario.links(), "link"),
    ];
    if workloads > 0 {
        parts.insert(3, counted(workloads, "workload"));
    }
    if let Some(packets) = needs.packets {
        parts.push(format!("{packets:.0} packets"));
    }
    let memory = scenario.memory();
    let chosen = |point: &usize| points.as_ref().is_none_or(|points| points.contains(point));
    let memory = memory.iter().filter(|(point, ..)| chosen(point)).map(|(_, memory, _)| Memory::total(memory)).max();
    parts.push(format!("up to {} a run", mib(memory.unwrap_or(0))));
    parts.extend(needs.seconds.map(roughly));
    parts.extend(needs.bytes.map(|bytes| format!("{} with --out", size(bytes))));
    parts.join(", ")
}

/// Bytes, to two digits.
fn size(bytes: f64) -> String {
    let (unit, name) = match bytes {
        ..1e6 => (1e3, "kB"),
        ..1e9 => (1e6, "MB"),
        _ => (1e9, "GB"),
    };
    let number = bytes / unit;
    let digits = usize::from(number < 9.5);
    format!("about {number:.digits$} {name}")
}

fn counted(number: impl Into<usize>, what: &str) -> String {
    let number = number.into();
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
