//! `--out`: complete or not there, the same bytes at any number of threads, and nobody else's
//! files.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};
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
        ("/proc/ackclock", "error: cannot use --out: cannot create the directory /proc/ackclock: "),
        ("mine", "error: cannot use --out: mine is not empty and holds no output of ackclock"),
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

/// Hours of work, if it were let, on two threads; three of its runs have finished.
fn begun(folder: &Path, out: &str) -> Child {
    let long = sweep().replace("repeat = 2", "repeat = 30_000").replace("bytes = \"100kB\"\n", "");
    fs::write(folder.join("scenario.toml"), long).unwrap();
    let child = ackclock()
        .current_dir(folder)
        .args(["--scenario", "scenario.toml", "--threads", "2", "--out", out])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    for _ in 0..1000 {
        let written = fs::read_to_string(folder.join(out).join(".summary.jsonl.partial")).unwrap_or_default();
        if written.matches('\n').count() >= 3 {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    child
}

/// The numbers of the runs in a file of summaries.
fn indices(file: &Path) -> Vec<u64> {
    let text = fs::read_to_string(file).expect("there are summaries");
    let index = |line: &str| serde_json::from_str::<Value>(line).expect("a whole line")["index"].as_u64().unwrap();
    text.lines().map(index).collect()
}

#[test]
fn what_a_killed_run_has_finished_is_kept() {
    let folder = folder("killed");
    let out = folder.join("out");
    for kept in ["unfinished-1", "unfinished-2"] {
        let mut child = begun(&folder, "out");
        child.kill().expect("it still runs");
        child.wait().expect("it has ended");
        assert!(!out.join("manifest.json").exists(), "nothing that looks complete");
        // A line that was not written to its end.
        let left = out.join(".summary.jsonl.partial");
        let text = fs::read_to_string(&left).expect("it is left") + "{ \"schema\": 1, \"title";
        fs::write(&left, &text).expect("it can be written");
        // The next run says where it is, and is not in its way.
        let said = run(&folder, SMALL, &["--out", "out", "--quiet", "--overwrite"]);
        let finished = indices(&out.join(kept).join("summary.jsonl"));
        assert!(finished.len() >= 3 && finished == (0..finished.len() as u64).collect::<Vec<_>>(), "{finished:?}");
        let (count, note) = (finished.len(), "note: the results that a killed run left in out are kept in out/");
        assert_eq!((said.status, said.err), (0, format!("{note}{kept}, with {count} finished runs\n")));
        let compared = ackclock().current_dir(&folder).args(["compare", &format!("out/{kept}:1"), "out"]).output();
        assert!(compared.expect("it runs").status.success());
        fs::remove_file(out.join("manifest.json")).expect("removed");
        fs::remove_file(out.join("summary.json")).expect("removed");
    }
    // Where nothing had finished there is nothing to keep.
    fs::write(out.join(".summary.jsonl.partial"), "").expect("it can be written");
    let said = run(&folder, SMALL, &["--out", "out", "--quiet"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let mut names: Vec<_> = fs::read_dir(&out).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    names.sort();
    assert_eq!(names, ["manifest.json", "summary.json", "unfinished-1", "unfinished-2"]);
}

#[cfg(target_os = "linux")]
#[test]
fn a_signal_ends_a_sweep_and_keeps_the_runs_that_have_finished() {
    // A shell that begins something in the background has it ignore Ctrl-C, and so does `nohup`
    // with a hangup: that stays.
    let status = fs::read_to_string("/proc/self/status").expect("Linux tells");
    let ignored = status.lines().find_map(|line| line.strip_prefix("SigIgn:")).expect("a line").trim();
    let ignored = u64::from_str_radix(ignored, 16).expect("a mask");
    for signal in
        [(1, "HUP"), (2, "INT"), (15, "TERM")].into_iter().filter(|(number, _)| ignored & 1 << (number - 1) == 0)
    {
        let (_, signal) = signal;
        let folder = folder(&format!("signal-{signal}"));
        let child = begun(&folder, "out");
        let killed = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        assert!(killed.expect("a shell").success());
        let said: Said = child.wait_with_output().expect("it ends").into();
        assert_eq!(said.status, 130, "{said:?}");
        let finished = indices(&folder.join("out/summary.jsonl"));
        let count = finished.len();
        let note = format!(
            "note: {count} of 90000 runs had finished, and are kept in out; --resume goes on with the others\n"
        );
        assert!(said.err.ends_with(&note), "{note}{}", said.err);
        assert!(finished.len() >= 3 && finished.is_sorted_by(|a, b| a < b), "{finished:?}");
        let manifest = manifest(&folder.join("out"));
        assert_eq!((&manifest["partial"], &manifest["runs"]), (&true.into(), &90_000.into()));
        // The table is there, and judges nothing.
        assert!(said.out.contains("\n1ms ") && !said.out.contains("expectations"), "{}", said.out);
        let last = format!("out:{}", finished[finished.len() - 1]);
        let compared = ackclock().current_dir(&folder).args(["compare", &last, "out:0"]).output().expect("it runs");
        assert!(compared.status.success(), "{compared:?}");
    }
}

#[cfg(unix)]
#[test]
fn a_signal_before_any_run_has_finished_leaves_an_earlier_output() {
    let folder = folder("signal-early");
    assert_eq!(run(&folder, SMALL, &["--out", "out"]).status, 0);
    let before = files(&folder.join("out"));
    let endless = SMALL.replace("\"2s\"", "\"1000000s\"").replace("bytes = \"100kB\"\n", "");
    fs::write(folder.join("scenario.toml"), endless).unwrap();
    let args = ["--scenario", "scenario.toml", "--out", "out"];
    let mut command = ackclock();
    command.current_dir(&folder).args(args).stdout(Stdio::piped()).stderr(Stdio::piped());
    let child = command.spawn().expect("the binary runs");
    while !folder.join("out/.summary.json.partial").exists() {
        thread::sleep(Duration::from_millis(10));
    }
    thread::sleep(Duration::from_millis(200));
    let killed = Command::new("sh").args(["-c", &format!("kill -TERM {}", child.id())]).status();
    assert!(killed.expect("a shell").success());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!((said.status, said.out.as_str()), (130, ""), "{said:?}");
    assert_eq!(files(&folder.join("out")), before);
}

#[test]
fn a_directory_is_filled_by_one_run_at_a_time() {
    let folder = folder("locked");
    let mut child = begun(&folder, "out");
    for _ in 0..2 {
        let said = run(&folder, SMALL, &["--out", "out"]);
        let holder = format!("error: cannot use --out: out is in use by process {}\n", child.id());
        assert_eq!((said.status, said.out.as_str(), said.err), (2, "", holder));
    }
    // While a run completes the directory, its files are there before the manifest that lists them.
    fs::write(folder.join("out/summary.json"), "{}").expect("a file can be written");
    let said = run(&folder, SMALL, &["--out", "out"]);
    assert!(said.err.contains("is in use by process "), "{said:?}");
    fs::remove_file(folder.join("out/summary.json")).expect("removed");
    child.kill().expect("it still runs");
    child.wait().expect("it has ended");
    // A killed run holds nothing.
    assert_eq!(run(&folder, SMALL, &["--out", "out", "--overwrite"]).status, 0);
    // Many runs start at the same time: those that do not meet another complete the output, and
    // each leaves it complete.
    let runs: Vec<Child> = (0..8)
        .map(|_| {
            let mut command = ackclock();
            command.current_dir(&folder).args(["--scenario", "scenario.toml", "--out", "out", "-q"]);
            command.stdout(Stdio::null()).stderr(Stdio::piped()).spawn().expect("the binary runs")
        })
        .collect();
    let said: Vec<Said> = runs.into_iter().map(|run| run.wait_with_output().expect("it ends").into()).collect();
    let (completed, refused): (Vec<&Said>, Vec<&Said>) = said.iter().partition(|said| said.status == 0);
    assert!(!completed.is_empty(), "{said:?}");
    assert!(refused.iter().all(|said| said.status == 2 && said.err.contains("is in use by ")), "{refused:?}");
    let names = fs::read_dir(folder.join("out")).unwrap().map(|entry| entry.unwrap().file_name());
    assert!(names.into_iter().all(|name| !name.to_string_lossy().starts_with('.')));
    assert_eq!(manifest(&folder.join("out"))["runs"], 1);
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
    // The output was complete but for its name.
    assert_eq!(files(&out.join("unfinished-1")), complete);
    assert!(said.err.contains("are kept in out/unfinished-1"), "{}", said.err);
    fs::remove_dir_all(out.join("unfinished-1")).expect("removed");
    assert_eq!(files(&out), complete);
    // Killed before any file had its name: those that are there are of the output before.
    fs::rename(out.join("manifest.json"), out.join(".manifest.json.partial")).expect("renamed");
    fs::rename(out.join("summary.json"), out.join(".summary.json.partial")).expect("renamed");
    fs::write(out.join("summary.json"), "earlier").expect("a file can be written");
    let said = run(&folder, SMALL, &args);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(files(&out.join("unfinished-1")), complete);
    fs::remove_dir_all(out.join("unfinished-1")).expect("removed");
    assert_eq!(files(&out), complete);
    // Files that it does not list are somebody else's, as ever.
    fs::rename(out.join("manifest.json"), out.join(".manifest.json.partial")).expect("renamed");
    fs::write(out.join("letter.txt"), "dear").expect("a file can be written");
    let said = run(&folder, SMALL, &args);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(out.join("letter.txt").exists() && out.join("summary.json").exists());
}

#[cfg(unix)]
#[test]
#[expect(clippy::disallowed_methods, reason = "kills come at shares of the time that a run takes")]
fn a_sweep_that_is_interrupted_again_and_again_comes_to_the_same_end() {
    let folder = folder("resumed");
    // 180 runs of some 10 ms, which record.
    let text = sweep().replace("repeat = 2", "repeat = 60").replace("bytes = \"100kB\"\n", "")
        + "[record]\ntcp = true\n[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nat_least = 1\n";
    fs::write(folder.join("scenario.toml"), &text).unwrap();
    let args = ["--scenario", "scenario.toml", "--threads", "2", "--quiet"];
    let start = |more: &[&str]| {
        let mut command = ackclock();
        command.current_dir(&folder).args(args).args(more).stdout(Stdio::piped()).stderr(Stdio::piped());
        command.spawn().expect("the binary runs")
    };
    let begun = Instant::now();
    let whole: Said = start(&["--out", "whole"]).wait_with_output().expect("it ends").into();
    let took = begun.elapsed();
    assert_eq!(whole.status, 0, "{whole:?}");
    let mut kills = 0;
    for signal in ["KILL", "TERM", "KILL", "INT"].iter().cycle() {
        let mut child = start(&["--out", "out", "--resume"]);
        // Later and later, so that it gets on however slow and busy the machine is.
        thread::sleep(took * (8 + 4 * (kills % 4) + kills) / 100);
        let killed = Command::new("sh").args(["-c", &format!("kill -{signal} {}", child.id())]).status();
        let _ = killed.expect("a shell");
        let ended = child.wait().expect("it ends");
        if ended.code() == Some(0) {
            break;
        }
        kills += 1;
        assert!(kills < 200, "it does not get on");
    }
    let said: Said = start(&["--out", "out", "--resume"]).wait_with_output().expect("it ends").into();
    assert_eq!((said.status, said.err.as_str()), (0, "note: 180 of 180 runs had finished before\n"));
    assert!(kills >= 2, "{kills}");
    assert_eq!(files(&folder.join("out")), files(&folder.join("whole")));
    // The output of another scenario is not taken for this one's.
    let said: Said =
        start(&["--out", "out", "--resume", "--set", "run.seed=7"]).wait_with_output().expect("it ends").into();
    assert_eq!(said.status, 2);
    assert!(said.err.contains("holds another scenario: `run.seed` is 1 there and 7 here"), "{}", said.err);
    assert_eq!(files(&folder.join("out")), files(&folder.join("whole")));
    // Nothing to go on with is no error.
    let said: Said = start(&["--out", "new", "--resume"]).wait_with_output().expect("it ends").into();
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    assert_eq!(files(&folder.join("new")), files(&folder.join("whole")));
}
