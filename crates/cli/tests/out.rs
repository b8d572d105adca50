//! `--out`: complete or not there, the same bytes at any number of threads, and nobody else's files.

mod common;

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use common::{SMALL, ackclock, folder, run, sweep};
use serde_json::Value;
use sha2::{Digest, Sha256};

/// The files in a folder and below with their contents.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for entry in fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("an entry").path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if path.is_dir() {
            let below = self::files(&path);
            assert!(!below.is_empty(), "{} is left over", path.display());
            files.extend(below.into_iter().map(|(below, contents)| (format!("{name}/{below}"), contents)));
        } else {
            files.insert(name, fs::read(&path).unwrap());
        }
    }
    files
}

fn manifest(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("manifest.json")).expect("a manifest")).expect("JSON")
}

#[test]
fn one_run_gives_a_summary_and_a_manifest() {
    let folder = folder("one_run");
    let said = run(&folder, SMALL, &["--out", "deep/out", "--seed", "5"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let out = folder.join("deep/out");
    let files = files(&out);
    assert_eq!(files.keys().collect::<Vec<_>>(), ["manifest.json", "summary.json"]);
    let summary: Value = serde_json::from_slice(&files["summary.json"]).unwrap();
    assert_eq!((&summary["schema"], &summary["title"], &summary["seed"]), (&1.into(), &"small".into(), &5.into()));
    let manifest = manifest(&out);
    assert_eq!((&manifest["runs"], &manifest["seed"]), (&1.into(), &5.into()));
    let hash: String = Sha256::digest(&files["summary.json"]).iter().map(|byte| format!("{byte:02x}")).collect();
    assert_eq!(manifest["files"]["summary.json"]["sha256"], hash);
    // The manifest's scenario gives the same run.
    let again = run(&folder, manifest["scenario"].as_str().unwrap(), &["--out", "again"]);
    assert_eq!(again.status, 0, "{}", again.err);
    assert_eq!(self::files(&folder.join("again")), files);
}

#[test]
fn threads_change_nothing() {
    let folder = folder("threads");
    for (threads, out) in [("1", "one"), ("2", "two"), ("7", "seven")] {
        let said = run(&folder, sweep(), &["--threads", threads, "--out", out]);
        assert_eq!(said.status, 0, "{}", said.err);
    }
    let one = files(&folder.join("one"));
    assert_eq!(one.keys().collect::<Vec<_>>(), ["manifest.json", "summary.jsonl"]);
    assert_eq!(one["summary.jsonl"].iter().filter(|&&byte| byte == b'\n').count(), 6);
    assert_eq!(files(&folder.join("two")), one);
    assert_eq!(files(&folder.join("seven")), one);
}

#[test]
fn an_earlier_output_is_replaced() {
    let folder = folder("replaced");
    assert_eq!(run(&folder, sweep(), &["--out", "out"]).status, 0);
    assert_eq!(run(&folder, SMALL, &["--out", "out"]).status, 0);
    assert_eq!(files(&folder.join("out")).keys().collect::<Vec<_>>(), ["manifest.json", "summary.json"]);
    assert_eq!(manifest(&folder.join("out"))["runs"], 1);
}

#[test]
fn what_cannot_be_written_is_refused_before_the_run() {
    let folder = folder("refused");
    fs::write(folder.join("file"), "").unwrap();
    fs::create_dir(folder.join("mine")).unwrap();
    fs::write(folder.join("mine/thesis.txt"), "years of work").unwrap();
    // A manifest of somebody else is no permission.
    fs::write(folder.join("mine/manifest.json"), "{}").unwrap();
    for (out, message) in [
        ("file", "error: cannot use --out: file is not a directory"),
        ("file/below", "error: cannot use --out: "),
        ("/proc/ackclock", "error: cannot use --out: cannot make the directory /proc/ackclock: "),
        ("mine", "error: cannot use --out: mine is not empty, and what is in it is not an output of ackclock"),
    ] {
        let said = run(&folder, SMALL, &["--out", out]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{out}");
        assert!(said.err.starts_with(message), "{out}: {}", said.err);
    }
    assert_eq!(files(&folder.join("mine"))["thesis.txt"], b"years of work");
}

#[test]
fn a_missed_expectation_still_completes_the_output() {
    let folder = folder("missed");
    let expect = format!("{SMALL}[[expect]]\nmetric = \"flows.f.0.sent_packets\"\nat_most = 0\n");
    assert_eq!(run(&folder, expect, &["--out", "out"]).status, 1);
    assert_eq!(manifest(&folder.join("out"))["runs"], 1);
}

#[test]
fn a_killed_run_leaves_nothing_that_looks_complete() {
    let folder = folder("killed");
    // Hours of work, if it were let.
    let long = sweep().replace("repeat = 2", "repeat = 30_000").replace("bytes = \"100kB\"\n", "");
    fs::write(folder.join("scenario.toml"), long).unwrap();
    let mut child = ackclock()
        .current_dir(&folder)
        .args(["--scenario", "scenario.toml", "--out", "out", "-q"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let out = folder.join("out");
    for _ in 0..1000 {
        if out.join(".summary.jsonl.partial").exists() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it still runs");
    child.wait().expect("it has ended");
    assert_eq!(files(&out).into_keys().collect::<Vec<_>>(), [".summary.jsonl.partial"]);
    // It is in nobody's way.
    let said = run(&folder, SMALL, &["--out", "out"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(out.join("manifest.json").exists());
}

#[test]
fn what_was_killed_before_its_manifest_appeared_is_in_nobodys_way() {
    let folder = folder("unfinished");
    let args = ["--out", "out", "--seed", "5"];
    assert_eq!(run(&folder, SMALL, &args).status, 0);
    let out = folder.join("out");
    let complete = files(&out);
    fs::rename(out.join("manifest.json"), out.join(".manifest.json.partial")).expect("renamed");
    let said = run(&folder, SMALL, &args);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(files(&out), complete);
    // Files that it does not list are somebody else's, as ever.
    fs::rename(out.join("manifest.json"), out.join(".manifest.json.partial")).expect("renamed");
    fs::write(out.join("letter.txt"), "dear").expect("a file can be written");
    let said = run(&folder, SMALL, &args);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(out.join("letter.txt").exists());
}
