//! `ackclock verify`: the same bytes from a manifest, and what differs.

use std::fs;
use std::path::Path;

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};
use serde_json::Value;

fn verify(folder: &Path, args: &[&str]) -> Said {
    let temporary = folder.join("temporary");
    fs::create_dir_all(&temporary).expect("a folder can be made");
    let said = ackclock().current_dir(folder).env("TMPDIR", &temporary).arg("verify").args(args).output();
    // Nothing is left there, however it ends.
    assert_eq!(fs::read_dir(&temporary).unwrap().count(), 0);
    said.expect("the binary runs").into()
}

/// Rewrites a file of an output.
fn edit(path: &Path, from: &str, to: &str) {
    let text = fs::read_to_string(path).expect("it is there");
    assert!(text.contains(from), "{from} in {text}");
    fs::write(path, text.replacen(from, to, 1)).unwrap();
}

#[test]
fn runs_and_sweeps_with_records_are_the_same() {
    let folder = folder("verify_same");
    assert_eq!(run(&folder, SMALL, &["--out", "one", "--seed", "7"]).status, 0);
    let records = ["--set", "record.queue=true", "--set", "record.tcp=true"];
    let args =
        [&["--out", "many", "--set", "links.wire.loss={ kind = \"iid\", probability = 0.01 }"][..], &records].concat();
    assert_eq!(run(&folder, sweep(), &args).status, 0);
    let before = fs::read(folder.join("many/manifest.json")).unwrap();
    for threads in ["1", "3"] {
        let said = verify(&folder, &["one", "many", "--threads", threads]);
        // A summary; a line for each of six runs in one, and two records of each.
        let expected = "one: 1 file the same\nmany: 13 files the same\n";
        assert_eq!((said.status, said.out.as_str(), said.err.as_str()), (0, expected, ""));
    }
    assert_eq!(verify(&folder, &["-q", "one"]).out, "");
    assert_eq!(fs::read(folder.join("many/manifest.json")).unwrap(), before);
}

#[test]
fn a_missed_expectation_is_not_a_difference() {
    let folder = folder("verify_missed");
    let missed = format!("{SMALL}[[expect]]\nmetric = \"flows.f.0.sent_packets\"\nat_most = 0\n");
    assert_eq!(run(&folder, missed, &["--out", "out"]).status, 1);
    let said = verify(&folder, &["out"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
}

#[test]
fn the_first_difference_is_said() {
    let folder = folder("verify_differs");
    assert_eq!(run(&folder, SMALL, &["--out", "key", "--set", "record.tcp=true"]).status, 0);
    assert_eq!(run(&folder, sweep(), &["--out", "line"]).status, 0);
    // Another scenario than the one that was run: a longer link.
    edit(&folder.join("key/manifest.json"), "delay = \\\"5ms\\\"", "delay = \\\"6ms\\\"");
    let said = verify(&folder, &["key"]);
    assert_eq!((said.status, said.out.as_str()), (1, ""));
    assert!(said.err.contains("differs: key: summary.json: ") && said.err.contains(", and now "), "{}", said.err);
    // The first ACK is later by the two milliseconds of a round trip, in the row below the head.
    assert!(said.err.contains("differs: key: tcp.csv, line 2: `"), "{}", said.err);
    // A file that was edited.
    edit(&folder.join("line/summary.jsonl"), "\"title\":\"small\"", "\"title\":\"large\"");
    let said = verify(&folder, &["line"]);
    assert_eq!(said.status, 1);
    assert!(said.err.contains("differs: line: summary.jsonl was changed since it was written"), "{}", said.err);
    assert!(
        said.err.contains("differs: line: summary.jsonl, line 1: title is \"large\", and now \"small\""),
        "{}",
        said.err
    );
    // A file that is gone.
    fs::remove_file(folder.join("line/summary.jsonl")).unwrap();
    let said = verify(&folder, &["line"]);
    assert_eq!((said.status, said.err.as_str()), (1, "differs: line: summary.jsonl is missing\n"));
}

#[test]
fn files_of_the_scenario_are_found() {
    let folder = folder("verify_files");
    fs::create_dir(folder.join("below")).unwrap();
    fs::write(folder.join("below/link.trace"), "1\n2\n3\n").unwrap();
    let traced = SMALL.replace("rate = \"10mbit\"", "trace = { file = \"below/link.trace\", format = \"mahimahi\" }");
    assert_eq!(run(&folder, traced, &["--out", "out"]).status, 0);
    assert_eq!(verify(&folder, &["out"]).status, 0);
    let parent = folder.parent().unwrap();
    let out = folder.join("out").display().to_string();
    let elsewhere = |args: &[&str]| -> Said {
        ackclock().current_dir(parent).arg("verify").args(args).output().expect("the binary runs").into()
    };
    let said = elsewhere(&[&out]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("out/manifest.json (scenario)"), "{}", said.err);
    assert_eq!(elsewhere(&[&out, "--files", "verify_files"]).status, 0);
}

#[test]
fn another_file_of_the_scenario_is_told() {
    let folder = folder("verify_inputs");
    let traced = |text: &str| fs::write(folder.join("link.trace"), text).unwrap();
    let scenario = SMALL.replace("rate = \"10mbit\"", "trace = { file = \"link.trace\", format = \"mahimahi\" }")
        + "[sweep]\nrepeat = 2\n";
    traced("1\n2\n3\n");
    assert_eq!(run(&folder, &scenario, &["--out", "out", "--only", "0"]).status, 0);
    assert_eq!(run(&folder, &scenario, &["--out", "out", "--only", "0", "--resume"]).status, 0);
    traced("1\n2\n4\n");
    let said = verify(&folder, &["out"]);
    let other = "differs: out: the file link.trace of the scenario has other contents than when it ran\n";
    assert!(said.status == 1 && said.err.starts_with(other), "{}", said.err);
    let said = run(&folder, &scenario, &["--out", "out", "--only", "0", "--resume"]);
    let refused = "error: cannot use --out: out holds runs with other contents of the file link.trace\n";
    assert_eq!((said.status, &*said.err), (2, refused));
    assert_eq!(run(&folder, &scenario, &["--out", "other", "--only", "1"]).status, 0);
    let merge = ackclock().current_dir(&folder).args(["merge", "out", "other", "--out", "whole"]).output();
    let said = Said::from(merge.expect("the binary runs"));
    let message = "out and other are of other contents of the file link.trace";
    assert!(said.status == 2 && said.err.contains(message), "{}", said.err);
}

#[test]
fn another_version_is_noted_and_compared() {
    let folder = folder("verify_version");
    assert_eq!(run(&folder, SMALL, &["--out", "out"]).status, 0);
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("out/manifest.json")).unwrap()).unwrap();
    let version = manifest["ackclock"].as_str().unwrap();
    edit(&folder.join("out/manifest.json"), &format!("\"ackclock\": \"{version}\""), "\"ackclock\": \"0.0.1\"");
    let said = verify(&folder, &["out"]);
    assert_eq!((said.status, said.out.as_str()), (0, "out: 1 file the same\n"));
    assert_eq!(said.err, format!("note: out was written by version 0.0.1, and this is {version}\n"));
}

#[test]
fn what_cannot_be_verified() {
    let folder = folder("verify_unusable");
    for (dir, manifest, message) in [
        ("none", None, "none is not an ackclock output directory (no manifest.json)"),
        ("foreign", Some("{}"), "(its manifest.json is not ackclock's)"),
        ("bare", Some("{\"ackclock\": \"0.1.0\"}"), "no `scenario` or no `files`"),
        ("partial", Some("{\"ackclock\": \"0.1.0\", \"partial\": true, \"scenario\": \"\", \"files\": {}}"), "partial"),
        ("invalid", Some("{\"ackclock\": \"0.1.0\", \"scenario\": \"x\", \"files\": {}}"), "(scenario):1:"),
    ] {
        fs::create_dir(folder.join(dir)).unwrap();
        if let Some(manifest) = manifest {
            fs::write(folder.join(dir).join("manifest.json"), manifest).unwrap();
        }
        let said = verify(&folder, &[dir]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{dir}");
        assert!(said.err.contains(message) && said.err.contains(dir), "{dir}: {}", said.err);
    }
    // A manifest refers to nothing outside its directory.
    assert_eq!(run(&folder, SMALL, &["--out", "out"]).status, 0);
    edit(&folder.join("out/manifest.json"), "\"summary.json\":", "\"../secret\":");
    let said = verify(&folder, &["out"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("`../secret`, which is no file of an output"), "{}", said.err);
    // A live run has its resolved scenario too.
    edit(&folder.join("out/manifest.json"), "\"../secret\":", "\"summary.json\":");
    let live = "schema = 1\\n[run]\\nduration = \\\"1s\\\"\\n[links.l]\\nrate = \\\"1mbit\\\"\\ndelay = \\\"1ms\\\"\\n\
                [hosts.a]\\ntun = \\\"a0\\\"\\nnetns = \\\"a\\\"\\naddress = \\\"10.0.0.1/24\\\"\\n\
                [hosts.b]\\ntun = \\\"b0\\\"\\nnetns = \\\"b\\\"\\naddress = \\\"10.0.0.2/24\\\"\\n\
                [[paths]]\\nbetween = [\\\"a\\\", \\\"b\\\"]\\npath = [\\\"l\\\"]\\n";
    let manifest = format!("{{\"ackclock\": \"0.1.0\", \"scenario\": \"{live}\", \"files\": {{}}}}");
    fs::write(folder.join("out/manifest.json"), manifest).unwrap();
    let said = verify(&folder, &["out"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("cannot verify out: it is of a live run"), "{}", said.err);
}
