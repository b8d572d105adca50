//! `ackclock check`: whether scenarios are valid.

use std::io;
use std::path::Path;

use ackclock_scenario::{LoadError, Memory, Override, Own, Scenario};
use anyhow::bail;

use crate::args::check::CheckArgs;
use crate::memory::mib;
use crate::{BAD_INPUT, print, say, tell};

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
                for note in scenario.notes() {
                    say(&format!("note: {name}: {note}"));
                }
                if args.verbose && print(&format!("{name}: {}\n", outline(&scenario)))?.is_break() {
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
/// It cannot be read, or it is not valid.
pub(crate) fn load(file: &Path, overrides: &[Override], own: &Own) -> Result<Scenario, LoadError> {
    if file.as_os_str() == STDIN {
        Scenario::load_from(&name_of(file), io::stdin().lock(), overrides, own)
    } else {
        Scenario::load_with(file, overrides, own)
    }
}

/// What errors and notes call it.
fn name_of(file: &Path) -> String {
    if file.as_os_str() == STDIN { "<stdin>".to_owned() } else { file.display().to_string() }
}

/// The size of a scenario, and what it needs, in a line.
fn outline(scenario: &Scenario) -> String {
    let runs = scenario.runs();
    let (flows, workloads) = scenario.flows();
    let mut parts = vec![
        counted(runs / scenario.repeat(), "point"),
        format!("{}{}", if scenario.is_adaptive() { "at most " } else { "" }, counted(runs, "run")),
        counted(flows, "flow"),
        counted(scenario.links(), "link"),
    ];
    if workloads > 0 {
        parts.insert(3, counted(workloads, "workload"));
    }
    if let Some(packets) = scenario.packets() {
        parts.push(format!("{packets:.0} full packets"));
    }
    let memory = scenario.memory().iter().map(|(memory, _)| Memory::total(memory)).max();
    parts.push(format!("up to {} a run", mib(memory.unwrap_or(0))));
    parts.join(", ")
}

fn counted(number: impl Into<usize>, what: &str) -> String {
    let number = number.into();
    format!("{number} {what}{}", if number == 1 { "" } else { "s" })
}
