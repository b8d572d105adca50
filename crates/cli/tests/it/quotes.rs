//! The quotations of the README and the book: scenarios that are valid, and results that are those
//! of the program.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{ackclock, folder, run};

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
    assert_eq!(block(&page, "Two flows through a bottleneck"), said.out.trim_end(), "{}", said.err);
}

#[test]
fn the_page_of_results_explains_those_of_its_scenario() {
    let page = read(&root().join("docs/results.md"));
    assert!(page.contains("`scenarios/smoke/two-flows-pie.toml`"));
    let said = run(&folder("results"), read(&root().join("scenarios/smoke/two-flows-pie.toml")), &[]);
    assert_eq!(block(&page, "Two NewReno flows through PIE"), said.out.trim_end(), "{}", said.err);
}

/// Folders of the gallery by the section of `docs/reproduction.md` that lists their source's rows.
const SECTIONS: [(&str, &[&str]); 4] = [
    ("TEACUP", &["teacup"]),
    ("The CDG talk", &["cdg"]),
    ("The reordering thesis", &["reordering", "multipath"]),
    ("The BLUE thesis", &["blue"]),
];

/// The cells of a row of a table.
fn cells(line: &str) -> Vec<&str> {
    line.trim_matches('|').split(" | ").map(|cell| cell.trim_matches(['|', ' '])).collect()
}

/// The result of each row in the table of a folder, which `ackclock reproduce --readme` writes.
fn results(folder: &str) -> BTreeMap<String, String> {
    let page = read(&root().join(format!("scenarios/{folder}/README.md")));
    let table = page.lines().skip_while(|line| !line.starts_with("| result | source | published")).skip(2);
    let rows = table.take_while(|line| line.starts_with('|')).map(cells);
    rows.flat_map(|row| row[1].split("; ").map(|source| (source.to_owned(), row[0].to_owned())).collect::<Vec<_>>())
        .collect()
}

/// The joint result of rows.
fn together(results: &[&str]) -> &'static str {
    let all = |test: fn(&str) -> bool| results.iter().all(|&result| test(result));
    if all(|result| result == "ok") {
        "ok"
    } else if all(|result| result == "miss") {
        "miss"
    } else if all(|result| result == "ok" || result.ends_with("ok by medians")) {
        "part; ok by medians"
    } else {
        "part"
    }
}

#[test]
fn the_list_of_results_agrees_with_the_tables() {
    let page = read(&root().join("docs/reproduction.md"));
    let mut counts: BTreeMap<String, usize> = BTreeMap::new();
    for (section, folders) in SECTIONS {
        let rows: BTreeMap<_, _> = folders.iter().flat_map(|folder| results(folder)).collect();
        let part = page.split_once(&format!("\n## {section}\n")).expect("a section").1;
        let part = part.split("\n## ").next().expect("text").replace("\n  ", " ");
        for line in part.lines().filter(|line| line.starts_with("- ")) {
            // Rows of their own behind their result, or a result behind a row with its parts.
            let Some((_, result)) = line.split_once(" → ") else {
                let (said, sources) = line[2..].split_once(": ").unwrap_or_else(|| panic!("no result: {line}"));
                for source in sources.split("; ") {
                    assert_eq!(rows.get(source).map(String::as_str), Some(said), "{source}");
                    *counts.entry(said.split("; ").last().expect("a word").to_owned()).or_default() += 1;
                }
                continue;
            };
            let (said, sources) = result.split_once(" (").unwrap_or((result, ""));
            let sources: Vec<_> = sources.strip_suffix(')').map_or(Vec::new(), |sources| sources.split("; ").collect());
            let measured = sources.iter().filter(|&&source| source != "test");
            let measured: Vec<_> = measured
                .map(|&source| rows.get(source).unwrap_or_else(|| panic!("no row {source:?}: {line}")).as_str())
                .collect();
            if !measured.is_empty() {
                assert_eq!(together(&measured), said, "{line}");
            }
            *counts.entry(said.split("; ").last().expect("a word").to_owned()).or_default() += 1;
        }
    }
    let count = |result: &str| counts.get(result).copied().unwrap_or(0);
    let summary = format!(
        "{} of the rows have a published result: {} are ok, {} more would be by the medians of runs, {} are met in part, {} missed.",
        counts.values().sum::<usize>(),
        count("ok"),
        count("ok by medians"),
        count("part"),
        count("miss"),
    );
    let words = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(words(&page).contains(&words(&summary)), "the page should say: {summary}");
}
