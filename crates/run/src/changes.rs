//! Changes that an earlier run has recorded: in a manifest, a summary, or lines of JSON.

use std::fs::File;
use std::io::Read;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use ackclock_live::ChangeReader;
use ackclock_scenario::Scenario;
use ackclock_trace::ChangeSummary;
use anyhow::{Context, bail};
use serde::Deserialize;
use serde_json::Value;

use crate::output;

/// The largest file that is read, in bytes.
const MOST: u64 = 1 << 30;

/// Reads the changes of an output directory, or of a file.
///
/// # Errors
/// There are none, or it cannot be read.
pub fn read(path: &Path) -> anyhow::Result<Vec<ChangeSummary>> {
    let named = || format!("cannot use {} for --changes", path.display());
    if path.is_dir() {
        let manifest = output::required_manifest(path).with_context(named)?;
        return of(&manifest).with_context(named);
    }
    // The file may be a pipe.
    let (mut text, mut file) = (String::new(), File::open(path).with_context(named)?.take(MOST + 1));
    file.read_to_string(&mut text).with_context(named)?;
    if text.len() as u64 > MOST {
        return Err(anyhow::anyhow!("it has more than {MOST} bytes")).with_context(named);
    }
    parse(&text).with_context(named)
}

/// The changes of a manifest, which has none if nothing was changed.
///
/// # Errors
/// They are no changes.
pub(crate) fn from_manifest(manifest: &Value) -> anyhow::Result<Vec<ChangeSummary>> {
    if manifest.get("changes").is_none() { Ok(Vec::new()) } else { of(manifest) }
}

fn of(object: &Value) -> anyhow::Result<Vec<ChangeSummary>> {
    let Some(changes) = object.get("changes") else { bail!("it has no `changes`: nothing was changed in its run") };
    Vec::deserialize(changes).context("its `changes` are no list of { \"at_ns\": NANOSECONDS, \"set\": \"KEY=VALUE\" }")
}

fn parse(text: &str) -> anyhow::Result<Vec<ChangeSummary>> {
    if let Ok(whole) = serde_json::from_str::<Value>(text)
        && (whole.get("changes").is_some() || whole.get("schema").is_some())
    {
        return of(&whole);
    }
    let lines = (1..).zip(text.lines()).filter(|(_, line)| !line.trim().is_empty());
    let change = |(number, line): (usize, &str)| {
        let read = serde_json::from_str(line);
        read.with_context(|| format!("line {number}: expected {{ \"at_ns\": NANOSECONDS, \"set\": \"KEY=VALUE\" }}"))
    };
    let changes: Vec<ChangeSummary> = lines.map(change).collect::<Result<_, _>>()?;
    if changes.is_empty() {
        bail!("it has no changes");
    }
    Ok(changes)
}

/// The reader of a capture's changes in a replay of this run.
pub(crate) fn reader(scenario: &Scenario, run: usize) -> ChangeReader {
    let (scenario, made) = (scenario.clone(), Mutex::new(Vec::new()));
    ChangeReader::new(move |at, texts| {
        let mut made = made.lock().unwrap_or_else(PoisonError::into_inner);
        let changes = scenario.change(run, texts, at, &made).map_err(|error| error.on_a_line())?;
        made.extend(changes.iter().cloned());
        Ok(changes)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(at_ns: u64, set: &str) -> ChangeSummary {
        ChangeSummary { at_ns, set: set.to_owned() }
    }

    #[test]
    fn changes_are_lines_or_those_of_a_summary() {
        let expected = [change(5, "links.a.rate=1mbit"), change(7, "links.a.delay=1ms")];
        let lines = "{\"at_ns\":5,\"set\":\"links.a.rate=1mbit\"}\n\n{\"at_ns\":7,\"set\":\"links.a.delay=1ms\"}\n";
        assert_eq!(parse(lines).unwrap(), expected);
        let summary = format!("{{\"schema\":1,\"changes\":[{}]}}", lines.trim().replace("\n\n", ","));
        assert_eq!(parse(&summary).unwrap(), expected);
    }

    #[test]
    fn what_are_no_changes_is_refused() {
        for (text, part) in [
            ("", "no changes"),
            ("{\"schema\": 1}", "no `changes`"),
            ("{\"changes\": [1]}", "at_ns"),
            ("{\"at_ns\":5,\"set\":\"a\"}\nx", "line 2"),
            ("{\"at_ns\":-5,\"set\":\"a\"}", "line 1"),
        ] {
            let error = format!("{:#}", parse(text).unwrap_err());
            assert!(error.contains(part), "{text}: {error}");
        }
    }
}
