//! `ackclock new`: a scenario that is valid and runs, and no file is overwritten.

use std::fs;
use std::path::Path;

use crate::common::{Said, ackclock, folder};

fn said(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).args(args).output().expect("the binary runs").into()
}

#[test]
fn what_it_writes_is_valid_and_runs_with_and_without_its_comments() {
    let folder = folder("new_runs");
    let printed = said(&folder, &["new"]);
    assert_eq!((printed.status, printed.err.as_str()), (0, ""));
    assert_eq!(said(&folder, &["new", "first.toml"]).status, 0);
    assert_eq!(fs::read_to_string(folder.join("first.toml")).unwrap(), printed.out);
    let checked = said(&folder, &["check", "first.toml"]);
    assert_eq!((checked.status, checked.err.as_str()), (0, ""));
    let run = said(&folder, &["first.toml"]);
    assert_eq!(run.status, 0, "{}", run.err);
    assert!(run.out.contains("expectations: 1 checked, all met"), "{}", run.out);
    // The commented parts are valid too: keys after `# `, sections after `# [`.
    let keys = ["[", "repeat", "axes", "queue", "tcp"];
    let lines = printed.out.lines().map(|line| match line.strip_prefix("# ") {
        Some(key) if keys.iter().any(|known| key.starts_with(known)) => key,
        _ => line,
    });
    fs::write(folder.join("all.toml"), lines.collect::<Vec<_>>().join("\n")).unwrap();
    let checked = said(&folder, &["check", "-v", "all.toml"]);
    assert!(
        checked.out.starts_with("all.toml: 6 points, 30 runs, 2 flows, 1 link, "),
        "{} {}",
        checked.out,
        checked.err
    );
}

#[test]
fn nothing_is_overwritten() {
    let folder = folder("new_kept");
    fs::write(folder.join("mine.toml"), "years of work").unwrap();
    let kept = said(&folder, &["new", "mine.toml"]);
    assert_eq!((kept.status, kept.err.as_str()), (2, "error: mine.toml exists, and is not overwritten\n"));
    assert_eq!(fs::read_to_string(folder.join("mine.toml")).unwrap(), "years of work");
    let nowhere = said(&folder, &["new", "none/mine.toml"]);
    assert!(nowhere.status == 2 && nowhere.err.starts_with("error: cannot create none/mine.toml: "), "{}", nowhere.err);
}
