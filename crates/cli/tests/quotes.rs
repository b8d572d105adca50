//! What the README and the book quote: scenarios that are valid, and results that are those of the
//! program.

mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::{ackclock, folder, run};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The README and the pages of the book, those of the tutorial included.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    for folder in ["docs", "docs/tutorial"] {
        let entries = fs::read_dir(root().join(folder)).expect("a folder").map(|entry| entry.expect("an entry").path());
        pages.extend(entries.filter(|path| path.extension().is_some_and(|extension| extension == "md")));
    }
    pages
}

/// The blocks of TOML in a page that are whole scenarios.
fn scenarios(page: &str) -> Vec<String> {
    let blocks = page.split("```toml\n").skip(1).filter_map(|rest| rest.split_once("```"));
    blocks.map(|(block, _)| block.to_owned()).filter(|block| block.starts_with("schema = 1\n")).collect()
}

/// The indented block of a page that begins with a line, without its indent.
fn block(page: &str, first: &str) -> String {
    let lines = page.lines().skip_while(|line| line.strip_prefix("    ") != Some(first));
    let lines = lines.take_while(|line| line.is_empty() || line.starts_with("    "));
    let text: String = lines.map(|line| format!("{}\n", line.strip_prefix("    ").unwrap_or(line))).collect();
    assert!(!text.is_empty(), "no block begins with {first:?}");
    text.trim_end().to_owned()
}

#[test]
fn scenarios_are_valid() {
    let folder = folder("quoted_scenarios");
    let mut count = 0;
    for page in pages() {
        for scenario in scenarios(&read(&page)) {
            let file = folder.join(format!("{count}.toml"));
            fs::write(&file, &scenario).expect("it can be written");
            let checked = ackclock().arg("check").arg(&file).output().expect("it runs");
            assert!(checked.status.success(), "{}: {}", page.display(), String::from_utf8_lossy(&checked.stderr));
            count += 1;
        }
    }
    assert!(count >= 3, "only {count} were found");
}

#[test]
fn the_readme_has_the_results_of_its_scenario() {
    let page = read(&root().join("README.md"));
    let scenario = &scenarios(&page)[0];
    let said = run(&folder("readme"), scenario, &[]);
    assert_eq!(block(&page, "Two NewReno flows through a bottleneck"), said.out.trim_end(), "{}", said.err);
}

#[test]
fn the_page_of_results_explains_those_of_its_scenario() {
    let page = read(&root().join("docs/results.md"));
    assert!(page.contains("`scenarios/smoke/two-flows-pie.toml`"));
    let said = run(&folder("results"), read(&root().join("scenarios/smoke/two-flows-pie.toml")), &[]);
    assert_eq!(block(&page, "Two NewReno flows through PIE"), said.out.trim_end(), "{}", said.err);
}
