//! The guide of CONTRIBUTING.md has the controller that is compiled, and the controller does what
//! its scenario says.

use std::fs;
use std::path::{Path, PathBuf};

fn file(path: &str) -> String {
    let path: PathBuf = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").join(path);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

#[test]
fn the_guide_quotes_the_example() {
    let (guide, example) = (file("CONTRIBUTING.md"), file("crates/cli/examples/own_controller.rs"));
    let after = guide.split_once("## Write your own controller").expect("the guide").1;
    let quote = after.split_once("```rust\n").and_then(|(_, rest)| rest.split_once("```")).expect("the code").0;
    let code = &example[example.find("use ").expect("code")..];
    // The program may have tests that the guide leaves out.
    assert!(
        code.starts_with(quote) && quote.ends_with("from_ref(&AIMD))\n}\n"),
        "the guide is not the example any more"
    );
    let controller = quote.lines().skip_while(|line| !line.starts_with("/// ")).count();
    assert!(controller < 100, "{controller} lines");
}
