//! The guide, docs/extending.md, has the controller that is compiled, and the controller does what
//! its scenario says; the gallery lists every scenario.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

fn file(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_guide_quotes_the_example() {
    let (guide, example) = (file("docs/extending.md"), file("crates/cli/examples/own_controller.rs"));
    let after = guide.split_once("## Write your own controller").expect("the guide").1;
    let quote = after.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).expect("the code").0;
    let code = &example[example.find("use ").expect("code")..];
    // The program may have tests that the guide leaves out.
    assert!(
        code.starts_with(quote) && quote.ends_with("main_with(aimd)\n}\n"),
        "the guide is not the example any more"
    );
    let controller = quote.lines().skip_while(|line| !line.starts_with("/// ")).count();
    assert!(controller < 100, "{controller} lines");
}

/// Every scenario file, as `folder/file.toml`.
fn scenarios() -> BTreeSet<String> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        read.map(|entry| entry.expect("an entry").path()).collect()
    };
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let folders = entries(&root).into_iter().filter(|path| path.is_dir());
    folders
        .flat_map(|folder| {
            assert!(folder.join("README.md").is_file(), "{} has no README.md", folder.display());
            let files = entries(&folder).into_iter();
            let scenarios = files.filter(|file| file.extension().is_some_and(|extension| extension == "toml"));
            scenarios.map(|file| format!("{}/{}", name(&folder), name(&file))).collect::<Vec<_>>()
        })
        .collect()
}

#[test]
fn the_gallery_lists_every_scenario() {
    let gallery = file("scenarios/README.md");
    // The target of the link at the head of each entry.
    let listed: BTreeSet<String> = gallery
        .lines()
        .filter_map(|line| line.strip_prefix("- [`")?.split_once("](")?.1.split_once("): "))
        .map(|(target, _)| target.to_owned())
        .collect();
    assert_eq!(listed, scenarios(), "scenarios/README.md lists the files that there are");
}
