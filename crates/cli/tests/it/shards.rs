//! Parts of a sweep: `--only`, `--shard`, and `ackclock merge`.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};
use serde_json::Value;

/// 39 runs that record, with expectations, one of which is missed.
fn recording() -> String {
    sweep().replace("repeat = 2", "repeat = 13")
        + "[record]\ntcp = true\nqueue = true\n\
           [[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nruns = \"median\"\nat_least = 1\n\
           [[expect]]\nmetric = \"flows.f.0.rtt_ms.min\"\nruns = \"mean\"\nat_most = 5\nwhen = { \"links.wire.delay\" = \"9ms\" }\n"
}

/// Every file below a directory, with its contents.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    for entry in fs::read_dir(dir).expect("a directory").flatten() {
        let path = entry.path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), fs::read(&path).expect("a file"));
        }
    }
    found
}

fn relative(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let of = |(path, bytes): (PathBuf, Vec<u8>)| (path.strip_prefix(dir).expect("below").to_owned(), bytes);
    files(dir).into_iter().map(of).collect()
}

fn merge(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).arg("merge").args(args).output().expect("it runs").into()
}

fn manifest(dir: &Path) -> Value {
    serde_json::from_slice(&fs::read(dir.join("manifest.json")).expect("it is there")).expect("JSON")
}

/// The shards of an array of jobs, as Kubernetes numbers them, all at the same time.
fn jobs(folder: &Path, of: usize) -> Vec<String> {
    let command = format!(
        "exec {} scenario.toml --threads 1 -q --shard \"$JOB_COMPLETION_INDEX/{of}\" --out part-\"$JOB_COMPLETION_INDEX\"",
        env!("CARGO_BIN_EXE_ackclock")
    );
    let start = |index: usize| {
        let mut shell = Command::new("sh");
        shell.current_dir(folder).args(["-c", &command]).env("JOB_COMPLETION_INDEX", index.to_string());
        shell.stderr(Stdio::piped()).spawn().expect("a shell")
    };
    let running: Vec<Child> = (0..of).map(start).collect();
    for child in running {
        let said: Said = child.wait_with_output().expect("it ends").into();
        assert_eq!(said.status, 0, "{said:?}");
        assert!(
            said.err.contains("a part of the runs does not evaluate expectations; `ackclock merge` does"),
            "{said:?}"
        );
    }
    (0..of).map(|index| format!("part-{index}")).collect()
}

#[test]
fn sixteen_shards_merged_are_the_whole_sweep() {
    let folder = folder("shards");
    let whole = run(&folder, recording(), &["--out", "whole"]);
    assert_eq!(whole.status, 1, "{whole:?}");
    let parts = jobs(&folder, 16);
    // 39 runs are three for each of seven shards, and two for the others.
    let lines =
        |part: &String| fs::read_to_string(folder.join(part).join("summary.jsonl")).expect("text").lines().count();
    assert_eq!(parts.iter().map(lines).collect::<Vec<_>>(), [[3; 7].as_slice(), &[2; 9]].concat());
    assert_eq!(manifest(&folder.join("part-3"))["shard"], "3/16");
    let shown: Vec<&str> = parts.iter().rev().map(String::as_str).collect();
    let merged = merge(&folder, &[&shown[..], &["--out", "merged"]].concat());
    assert_eq!((merged.status, &merged.out, &merged.err), (1, &whole.out, &whole.err));
    assert!(relative(&folder.join("merged")) == relative(&folder.join("whole")), "the files differ");
    // A shard can be verified, and resumed as itself alone.
    let verified = ackclock().current_dir(&folder).args(["verify", "part-3", "merged"]).output().expect("it runs");
    assert!(verified.status.success(), "{verified:?}");
    let said = run(&folder, recording(), &["--out", "part-3", "--resume", "-q", "--shard", "3/16"]);
    assert_eq!(said.status, 0, "{said:?}");
    let said = run(&folder, recording(), &["--out", "part-3", "--resume", "-q", "--shard", "4/16"]);
    assert!(said.status == 2 && said.err.contains("part-3 holds --shard 3/16; you asked for --shard 4/16"), "{said:?}");
}

#[test]
fn parts_that_do_not_fit_together_are_refused() {
    let folder = folder("shards-wrong");
    let part = |out: &str, text: &str, args: &[&str]| {
        let said = run(&folder, text, &[&["--out", out, "-q"], args].concat());
        assert_eq!(said.status, 0, "{said:?}");
    };
    part("a", &sweep(), &["--shard", "0/3"]);
    part("b", &sweep(), &["--shard", "1/3"]);
    part("c", &sweep(), &["--shard", "2/3"]);
    part("only", &sweep(), &["--only", "2,5"]);
    part("seed", &sweep(), &["--shard", "2/3", "--seed", "7"]);
    part("delay", &sweep().replace("\"9ms\"", "\"8ms\""), &["--shard", "2/3"]);
    part("single", SMALL, &[]);
    let refused = |dirs: &[&str], why: &str| {
        let said = merge(&folder, &[dirs, &["--out", "out"]].concat());
        assert!(said.status == 2 && said.err.contains(why), "{dirs:?}: {said:?}");
        assert!(!folder.join("out").exists(), "{dirs:?}");
    };
    refused(&["a", "c"], "the parts are not complete: 2 runs of 6 missing: shard 1/3");
    refused(&["a", "b", "b", "c"], "run 1 is in b and in b");
    refused(&["a", "b", "c", "only"], "run 2 is in c and in only");
    refused(&["a", "b", "seed"], "a and seed differ in their seed: 1 and 7");
    refused(&["a", "b", "delay"], "a and delay are of different scenarios: `sweep");
    refused(&["a", "b", "single"], "single is of a single run");
    refused(&["a", "b", "nothing"], "nothing is not an ackclock output directory (no manifest.json)");
    let said = merge(&folder, &["a", "b", "c", "--out", "b"]);
    assert!(said.status == 2 && said.err.contains("b is one of the parts"), "{said:?}");
    // Parts by number do as well.
    let said = merge(&folder, &["a", "b", "only", "--out", "whole", "-q"]);
    assert_eq!(said.status, 0, "{said:?}");
    assert_eq!(manifest(&folder.join("whole")).get("shard"), None);
    // Another version, a part that was broken off, a file that was changed.
    let edit = |dir: &str, key: &str, value: Value| {
        let mut manifest = manifest(&folder.join(dir));
        manifest[key] = value;
        fs::write(folder.join(dir).join("manifest.json"), manifest.to_string()).expect("written");
    };
    edit("c", "ackclock", "0.0.1".into());
    refused(&["a", "b", "c"], "a and c differ in their version: ");
    edit("b", "partial", true.into());
    refused(&["a", "b", "only"], "b is not complete: its runs were broken off");
    let summary = folder.join("only/summary.jsonl");
    let text = fs::read_to_string(&summary).expect("text").replace("\"packets\":", "\"packets\":1");
    fs::write(&summary, text).expect("written");
    refused(&["a", "only"], "only/summary.jsonl was changed since it was written");
}

#[test]
fn some_runs_are_those_of_the_whole_sweep() {
    let folder = folder("only");
    assert_eq!(run(&folder, sweep(), &["--out", "whole", "-q"]).status, 0);
    let whole = fs::read_to_string(folder.join("whole/summary.jsonl")).expect("text");
    let whole: Vec<&str> = whole.lines().collect();
    for (asked, runs) in [("4", vec![4]), ("1-2,5", vec![1, 2, 5]), ("2:1", vec![5]), ("0:0-1,3", vec![0, 1, 3])] {
        let said = run(&folder, sweep(), &["--json", "--only", asked]);
        let expected: Vec<&str> = runs.iter().map(|&run: &usize| whole[run]).collect();
        assert_eq!((said.status, said.out.lines().collect::<Vec<_>>()), (0, expected), "{asked}");
    }
    for (args, why) in [
        (["--only", "6"], "--only: there is no run 6; runs count from 0, and there are 6"),
        (["--only", "3:0"], "--only: there is no point 3"),
        (["--only", "x"], "expected numbers of runs"),
        (["--shard", "3/3"], "shards count from 0: expected 0/3 to 2/3"),
    ] {
        let said = run(&folder, sweep(), &args);
        assert!(said.status == 2 && said.err.contains(why), "{args:?}: {said:?}");
    }
    let said = run(&folder, SMALL, &["--only", "0"]);
    assert!(said.status == 2 && said.err.contains("--only and --shard require a sweep"), "{said:?}");
    // More shards than runs leave some with nothing to do.
    assert_eq!(run(&folder, sweep(), &["--shard", "7/8", "--out", "empty", "-q"]).status, 0);
    assert_eq!(fs::read(folder.join("empty/summary.jsonl")).expect("it is there"), b"");
}
