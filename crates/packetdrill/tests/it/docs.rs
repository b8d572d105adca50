//! The claims of `docs/packetdrill.md`: its scripts pass, and its table of settings is that of the
//! keys.

use std::path::{Path, PathBuf};
use std::{env, fs};

use ackclock_packetdrill::{ScriptResult, Settings, parse, run};

fn path() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packetdrill.md")
}

fn page() -> String {
    fs::read_to_string(path()).expect("the page")
}

#[test]
fn its_scripts_pass() {
    let page = page();
    let scripts: Vec<&str> =
        page.split("```packetdrill\n").skip(1).filter_map(|rest| Some(rest.split_once("```")?.0)).collect();
    assert!(!scripts.is_empty(), "there are examples");
    for text in scripts {
        let script = parse(text).unwrap_or_else(|error| panic!("{}", error.render("docs/packetdrill.md", text, false)));
        let outcome = run(&script, &Settings::new());
        assert_eq!(outcome.result, ScriptResult::Passed, "{text}\n{outcome}");
    }
}

const HEAD: &str = "| values | keys |\n|---|---|\n";

/// `ACKCLOCK_WRITE_DOCS=1 cargo test -p ackclock-packetdrill --test it docs` writes the table.
#[test]
fn its_table_of_settings_is_that_of_the_keys() {
    let found = page();
    let (before, rest) = found.split_once(HEAD).expect("a table of settings");
    let after = rest.find("\n\n").map_or("", |end| &rest[end + 1..]);
    // One row for all keys that take the same, in the order of the first.
    let mut rows: Vec<(String, Vec<String>)> = Vec::new();
    for (key, takes) in Settings::keys() {
        let key = format!("`{key}`");
        match rows.iter_mut().find(|(known, _)| *known == takes) {
            Some((_, keys)) => keys.push(key),
            None => rows.push((takes, vec![key])),
        }
    }
    let rows: String = rows.iter().map(|(takes, keys)| format!("| {takes} | {} |\n", keys.join(", "))).collect();
    let written = [before, HEAD, &rows, after].concat();
    if env::var_os("ACKCLOCK_WRITE_DOCS").is_some() {
        fs::write(path(), &written).expect("the page can be written");
    }
    assert!(page() == written, "docs/packetdrill.md is not what the keys say: ACKCLOCK_WRITE_DOCS=1 writes it");
}
