//! The claims of `docs/packetdrill.md`: its scripts pass, and it lists every key.

use std::fs;
use std::path::Path;

use ackclock_packetdrill::{ScriptResult, Settings, parse, run};

fn page() -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/packetdrill.md");
    fs::read_to_string(path).expect("the page")
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

#[test]
fn it_lists_every_key() {
    let page = page();
    for (key, takes) in Settings::keys() {
        let row = format!("| `{key}` | {takes} |");
        assert!(page.contains(&row), "docs/packetdrill.md lacks the row {row}");
    }
}
