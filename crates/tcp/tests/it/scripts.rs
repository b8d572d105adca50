//! Every script below `scripts/` passes: one behaviour each, in packetdrill's language
//! (docs/packetdrill.md).

use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};

use ackclock_packetdrill::{ScriptResult, Settings, parse, run};

fn below(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).expect("a folder of scripts").map(|entry| entry.expect("an entry").path());
    entries.flat_map(|path| if path.is_dir() { below(&path) } else { vec![path] }).collect()
}

/// The fault of a script; `None` if it passes.
fn fault(path: &Path) -> Option<String> {
    let text = fs::read_to_string(path).expect("a script is a text");
    let name = path.display().to_string();
    let script = match parse(&text) {
        Ok(script) => script,
        Err(error) => return Some(error.render(&name, &text, false)),
    };
    let outcome = run(&script, &Settings::new());
    // A shell line that nothing came of would make a script say what it does not check.
    let passed = outcome.result == ScriptResult::Passed && outcome.unrun_shell.is_empty();
    (!passed).then(|| format!("{name}: {outcome}"))
}

#[test]
fn every_script_passes() {
    let mut paths = below(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts"));
    paths.retain(|path| path.extension().is_some_and(|extension| extension == "pkt"));
    paths.sort();
    assert!(!paths.is_empty(), "there are scripts");
    let mut faults = String::new();
    let mut failed = 0;
    for fault in paths.iter().filter_map(|path| fault(path)) {
        failed += 1;
        let _ = writeln!(faults, "{fault}\n");
    }
    assert!(failed == 0, "{failed} of {} scripts do not pass\n\n{faults}", paths.len());
}
