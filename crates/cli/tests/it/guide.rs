//! The guide, docs/extending.md, has the controller that is compiled, and the controller does what
//! its scenario says; the READMEs of `scenarios` list every folder and file.

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

#[test]
fn readmes_list_every_folder_and_scenario() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let entries = |folder: &Path| -> Vec<PathBuf> {
        let read = fs::read_dir(folder).unwrap_or_else(|error| panic!("{}: {error}", folder.display()));
        read.map(|entry| entry.expect("an entry").path()).collect()
    };
    let name = |path: &Path| path.file_name().expect("a name").to_string_lossy().into_owned();
    let gallery = file("scenarios/README.md");
    for folder in entries(&root).into_iter().filter(|path| path.is_dir()) {
        let folder_name = name(&folder);
        let link = format!("- [{folder_name}]({folder_name}/README.md): ");
        assert!(gallery.contains(&link), "scenarios/README.md does not list {folder_name}");
        let readme = file(&format!("scenarios/{folder_name}/README.md"));
        for file in entries(&folder).into_iter().filter(|file| file.extension().is_some_and(|of| of == "toml")) {
            let file = name(&file);
            assert!(readme.contains(&file), "scenarios/{folder_name}/README.md does not list {file}");
        }
    }
}
