//! The book has every page of `docs`, its links lead somewhere, and its page of metrics has every
//! key of the JSON.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::common::ackclock;
use serde_json::Value;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The Markdown files of a folder and those below.
pub(crate) fn pages(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in fs::read_dir(folder).expect("a folder").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(pages(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            found.push(path);
        }
    }
    found
}

/// The targets of links and images in a page, outside of code.
fn targets(text: &str) -> Vec<String> {
    links(text).into_iter().map(|(_, target)| target).collect()
}

/// The links with their texts.
fn links(text: &str) -> Vec<(String, String)> {
    let mut in_code = false;
    let mut found = Vec::new();
    for line in text.lines() {
        in_code ^= line.trim_start().starts_with("```");
        if in_code || line.starts_with("    ") {
            continue;
        }
        let parts: Vec<&str> = line.split("](").collect();
        found.extend(parts.windows(2).filter_map(|pair| {
            let text = pair[0].rsplit('[').next()?;
            Some((text.to_owned(), pair[1].split_once(')')?.0.to_owned()))
        }));
    }
    found
}

/// The anchors of a page, as GitHub and mdBook make them of titles.
fn anchors(text: &str) -> BTreeSet<String> {
    let titles = text.lines().filter(|line| line.starts_with('#')).map(|line| line.trim_start_matches('#').trim());
    let anchor = |title: &str| {
        let kept = title.to_lowercase();
        let kept = kept.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
        kept.collect::<String>().replace(' ', "-")
    };
    titles.map(anchor).collect()
}

#[test]
fn every_page_is_in_the_table_of_contents() {
    let docs = root().join("docs");
    let listed: BTreeSet<PathBuf> =
        targets(&read(&docs.join("SUMMARY.md"))).iter().map(|name| docs.join(name)).collect();
    let pages: BTreeSet<PathBuf> = pages(&docs).into_iter().filter(|page| !page.ends_with("SUMMARY.md")).collect();
    assert_eq!(listed, pages);
}

/// The file that the text of a link names.
fn named(text: &str) -> Option<&Path> {
    let name = Path::new(text.trim_matches('`').trim_start_matches("../"));
    let is_file = name.extension().is_some_and(|of| ["md", "py", "rs", "toml"].map(AsRef::as_ref).contains(&of));
    (is_file && !text.contains(' ')).then_some(name)
}

/// Where the files of the repository are on the web, for pages that are read outside of it.
const WEB: &str = "https://github.com/ackclock/ackclock/blob/main/";

#[test]
fn links_lead_somewhere() {
    let root = root();
    let mut files = pages(&root.join("docs"));
    files.extend(pages(&root.join("scenarios")));
    files.extend(["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "CHANGELOG.md"].map(|name| root.join(name)));
    files.extend(["aqm/README.md", "cc/README.md", "emulator/README.md"].map(|name| root.join(name)));
    let mut wrong = Vec::new();
    for file in &files {
        let text = read(file);
        let links = links(&text);
        for (text, target) in links.iter().filter(|(_, target)| !target.contains("://") || target.starts_with(WEB)) {
            let (path, anchor) = target.split_once('#').unwrap_or((target, ""));
            let to = match path.strip_prefix(WEB) {
                Some(path) => root.join(path),
                None if path.is_empty() => file.clone(),
                None => file.parent().expect("a folder").join(path),
            };
            let is_there = to.exists() && (anchor.is_empty() || anchors(&read(&to)).contains(anchor));
            if !is_there || named(text).is_some_and(|name| !to.ends_with(name)) {
                wrong.push(format!("{}: [{text}]({target})", file.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn links_of_the_book_stay_in_it() {
    let docs = root().join("docs");
    let mut wrong = Vec::new();
    for page in pages(&docs) {
        let depth = page.strip_prefix(&docs).expect("it was found there").components().count() - 1;
        for target in targets(&read(&page)).iter().filter(|target| !target.contains("://")) {
            // Files outside of `docs` are not in the HTML, and are linked by their address on the
            // web. A README is in it, but under another name: index.html.
            if target.matches("../").count() > depth || target.ends_with("README.md") {
                wrong.push(format!("{}: {target}", page.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

/// The most bytes of a figure, and of all: a book is to be loaded over slow links as well.
const FIGURE: u64 = 64 << 10;
const FIGURES: u64 = 1 << 20;

#[test]
fn every_figure_is_shown_and_can_be_drawn_anew() {
    let docs = root().join("docs");
    let script = read(&docs.join("update-figures"));
    let mut drawn: BTreeSet<String> =
        script.lines().filter_map(|line| line.strip_prefix("draw ")?.split(' ').next()).map(str::to_owned).collect();
    // The test of the dashboard's picture draws it, and compares it.
    drawn.insert("watch".to_owned());
    // Training takes minutes, and what is not installed here: python/examples/train_ppo.py.
    drawn.insert("gym-ppo".to_owned());
    let mut sizes = Vec::new();
    let mut figures = BTreeSet::new();
    for entry in fs::read_dir(docs.join("images")).expect("a folder").flatten() {
        figures.insert(entry.path().file_stem().expect("a name").to_string_lossy().into_owned());
        sizes.push((entry.metadata().expect("a file").len(), entry.path()));
    }
    assert_eq!(drawn, figures, "docs/update-figures draws what docs/images has");
    let shown: BTreeSet<String> = pages(&docs)
        .iter()
        .flat_map(|page| targets(&read(page)))
        .filter_map(|target| Some(target.strip_suffix(".svg")?.rsplit('/').next()?.to_owned()))
        .collect();
    assert_eq!(shown, figures, "a page shows each figure");
    let large: Vec<_> = sizes.iter().filter(|(size, _)| *size > FIGURE).collect();
    assert!(large.is_empty(), "over {FIGURE} bytes: {large:?}");
    assert!(sizes.iter().map(|(size, _)| size).sum::<u64>() <= FIGURES);
}

/// Every key of a JSON value, but those that are names of a scenario or a program.
fn keys(value: &Value, maps: &BTreeSet<&str>, found: &mut BTreeSet<String>) {
    match value {
        Value::Object(object) => {
            for (key, value) in object {
                found.insert(key.clone());
                if !maps.contains(key.as_str()) {
                    keys(value, maps, found);
                }
            }
        }
        Value::Array(entries) => entries.iter().for_each(|entry| keys(entry, maps, found)),
        _ => {}
    }
}

#[test]
fn every_key_of_the_json_is_described() {
    let page = read(&root().join("docs/metrics.md"));
    let described: BTreeSet<&str> =
        page.lines().filter_map(|line| Some(line.strip_prefix("- `")?.split_once('`')?.0)).collect();
    assert!(described.contains("goodput_bps") && described.contains("sojourn_ms"));
    // The maps are the keys with entries by name, and objects whose keys the scenario or a program
    // decides.
    let by_name = page.lines().filter(|line| line.contains(" by name): ") || line.contains("` (object): "));
    let mut maps: BTreeSet<&str> =
        by_name.filter_map(|line| Some(line.strip_prefix("- `")?.split_once('`')?.0)).collect();
    maps.insert("expectations");
    let mut found = BTreeSet::new();
    for scenario in [
        "smoke/two-flows-pie",
        "smoke/short-flows",
        "smoke/sweep",
        "reordering/two-paths",
        "rrul/marked",
        "rrul/responsiveness",
        "applications/video",
        "workloads/small",
        "live/kernel-to-endpoint",
    ] {
        let file = root().join(format!("scenarios/{scenario}.toml"));
        let mut command = ackclock();
        command.arg(&file).args(["--json", "--clock", "virtual", "--set", "run.duration=3s"]);
        let mut output = command.output().expect("it runs");
        if output.status.code() == Some(2) {
            // An expectation is about a later time, or the file sets another clock.
            output = ackclock().arg(&file).arg("--json").output().expect("it runs");
        }
        let text = String::from_utf8(output.stdout).expect("text");
        assert!(!text.is_empty(), "{scenario}: {}", String::from_utf8_lossy(&output.stderr));
        text.lines().for_each(|line| keys(&serde_json::from_str(line).expect("JSON"), &maps, &mut found));
    }
    // The keys that the command line adds to a run are in the text of the page.
    found.retain(|key| !["expectations", "failed", "error"].contains(&key.as_str()));
    assert!(found.len() > 150, "{}", found.len());
    let missing: Vec<&String> = found.iter().filter(|key| !described.contains(key.as_str())).collect();
    assert!(missing.is_empty(), "docs/metrics.md has nothing about {missing:?}");
}

#[test]
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn the_book_builds() {
    let Ok(version) = Command::new("mdbook").arg("--version").output() else {
        eprintln!("skipped: no mdbook in PATH");
        return;
    };
    let out = crate::common::folder("book");
    let built = Command::new("mdbook").arg("build").arg(root().join("docs")).arg("--dest-dir").arg(&out).output();
    let built = built.expect("it runs");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success() && !said.contains("WARN") && !said.contains("ERROR"), "{version:?} {said}");
    assert!(out.join("tutorial/1-buffers.html").exists() && out.join("images/sawtooth.svg").exists());
}
