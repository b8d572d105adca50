//! Points that are repeated until a mean is known: `repeat = { min, max, until }`.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{Said, ackclock, folder, run};
use serde_json::Value;

/// Four points: nothing is random in the first, and more in each of the others.
const SWEEP: &str = r#"
schema = 1
[run]
duration = "2s"
[links.wire]
rate = "4mbit"
delay = "9ms"
loss = { kind = "iid", probability = 0.0 }
[[flows]]
id = "f"
path = ["wire"]
host = "linux-6.1"
cc = "cubic"
[record]
tcp = true
[sweep]
repeat = { min = 3, max = 12, until = { metric = "flows.f.0.goodput_bps", ci95 = 0.05 } }
axes."links.wire.loss.probability" = [0.0, 0.001, 0.012, 0.2]
[[expect]]
metric = "flows.f.0.goodput_bps"
at_least = 0
[[expect]]
metric = "flows.f.0.goodput_bps"
runs = "mean"
baseline = { "links.wire.loss.probability" = 0.0 }
at_most = 1.01
"#;

fn lines(dir: &Path) -> Vec<Value> {
    let text = fs::read_to_string(dir.join("summary.jsonl")).expect("it is there");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

/// The values of the metric by point.
fn values(lines: &[Value]) -> BTreeMap<u64, Vec<f64>> {
    let mut values: BTreeMap<u64, Vec<f64>> = BTreeMap::new();
    for line in lines {
        let (index, run) = (line["index"].as_u64().expect("a number"), line["run"].as_u64().expect("a number"));
        assert_eq!(index % 12, run);
        let of_point = values.entry(index / 12).or_default();
        assert_eq!(of_point.len() as u64, run, "none before is missing");
        of_point.push(line["flows"][0]["goodput_bps"].as_f64().expect("a number"));
    }
    values
}

/// Half of the 95 % confidence interval relative to the mean, by the table of Student's t.
fn half_width(values: &[f64]) -> f64 {
    const T: [f64; 11] = [12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228, 2.201];
    let count = values.len() as f64;
    let mean = values.iter().sum::<f64>() / count;
    let variance = values.iter().map(|value| (value - mean) * (value - mean)).sum::<f64>() / (count - 1.0);
    T[values.len() - 2] * (variance / count).sqrt() / mean
}

/// The contents of a directory, by name.
fn files(dir: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut found = BTreeMap::new();
    let mut folders = vec![dir.to_owned()];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).expect("a folder").flatten() {
            let path = entry.path();
            if path.is_dir() {
                folders.push(path);
                continue;
            }
            let name = path.strip_prefix(dir).expect("below").to_owned();
            found.insert(name, fs::read(&path).expect("a file"));
        }
    }
    found
}

fn sub(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).args(args).output().expect("it runs").into()
}

#[test]
fn points_have_as_many_runs_as_their_means_require() {
    let folder = folder("adaptive");
    let said = run(&folder, SWEEP, &["--out", "out"]);
    assert_eq!(said.status, 0, "{said:?}");
    let lines = lines(&folder.join("out"));
    let values = values(&lines);
    let runs: Vec<usize> = values.values().map(Vec::len).collect();
    assert_eq!(
        (values.len(), runs[0], runs[3]),
        (4, 3, 12),
        "the fewest where nothing varies, the most where much does"
    );
    assert!(runs.iter().collect::<BTreeSet<_>>().len() > 2, "{runs:?}");
    for (point, values) in &values {
        for count in 3..values.len() {
            assert!(half_width(&values[..count]) > 0.05, "point {point} after {count} runs");
        }
        assert!(values.len() == 12 || half_width(values) <= 0.05, "point {point}");
    }
    let total: usize = runs.iter().sum();
    assert!(said.out.contains(&format!("{total} runs, medians")), "{said:?}");
    // Each run of each point, and each point but the baseline.
    assert!(said.out.contains(&format!("expectations: {} checked, all met", total + 3)), "{said:?}");
    assert!(said.err.contains("after 12 runs, 1 of 4 points do not have the mean of flows.f.0.goodput_bps within 5 %"));
    assert!(said.err.contains("the first is links.wire.loss.probability = 0.2"), "{said:?}");
    let of_last = |number: usize| &lines[total - 1]["expectations"][number];
    assert_eq!(of_last(0)["values"].as_array().map(Vec::len), Some(3));
    assert_eq!(sub(&folder, &["verify", "out"]).status, 0);
}

#[test]
fn which_runs_these_are_depends_neither_on_threads_nor_on_parts_nor_on_interruptions() {
    let folder = folder("adaptive_parts");
    let once = |args: &[&str]| run(&folder, SWEEP, args);
    assert_eq!(once(&["--threads", "1", "--out", "one"]).status, 0);
    let whole = files(&folder.join("one"));
    assert_eq!(once(&["--threads", "8", "--out", "eight"]).status, 0);
    assert!(files(&folder.join("eight")) == whole, "eight threads");
    // Shards have whole points.
    for shard in ["0/3", "1/3", "2/3"] {
        let out = format!("part-{}", &shard[..1]);
        assert_eq!(once(&["--shard", shard, "--out", &out]).status, 0);
        let points: BTreeSet<u64> = values(&lines(&folder.join(out))).into_keys().collect();
        assert!(points.iter().all(|point| point % 3 == shard[..1].parse::<u64>().expect("a digit")), "{points:?}");
    }
    let missing = sub(&folder, &["merge", "part-0", "part-2", "--out", "merged"]);
    assert!(missing.status == 2 && missing.err.contains("run 12 is missing"), "{missing:?}");
    assert_eq!(sub(&folder, &["merge", "part-0", "part-1", "part-2", "--out", "merged"]).status, 0);
    assert!(files(&folder.join("merged")) == whole, "merged");
    // A run that the sweep would not have done.
    assert_eq!(once(&["--only", "0:3", "--out", "more"]).status, 0);
    let more = sub(&folder, &["merge", "part-0", "part-1", "part-2", "more", "--out", "again"]);
    assert!(more.status == 2 && more.err.contains("run 3, which the sweep does not need"), "{more:?}");
}

#[test]
fn a_sweep_goes_on_from_wherever_it_was_killed() {
    let folder = folder("adaptive_killed");
    assert_eq!(run(&folder, SWEEP, &["--out", "whole"]).status, 0);
    let whole = files(&folder.join("whole"));
    let summary = String::from_utf8(whole[Path::new("summary.jsonl")].clone()).expect("text");
    let ends: Vec<usize> = summary.match_indices('\n').map(|(end, _)| end + 1).collect();
    for kept in 0..ends.len() {
        // A kill leaves lines of the first so many runs, and half of one.
        let begun = run(&folder, SWEEP, &["--out", "killed", "--overwrite"]);
        assert_eq!(begun.status, 0, "{begun:?}");
        let killed = folder.join("killed");
        let manifest: Value = serde_json::from_slice(&whole[Path::new("manifest.json")]).expect("JSON");
        let plan = serde_json::json!({ "ackclock": manifest["ackclock"], "scenario": manifest["scenario"] });
        fs::write(killed.join(".plan.json.partial"), plan.to_string()).expect("it can be written");
        fs::remove_file(killed.join("manifest.json")).expect("it is there");
        fs::remove_file(killed.join("summary.jsonl")).expect("it is there");
        let from = if kept == 0 { 0 } else { ends[kept - 1] };
        fs::write(killed.join(".summary.jsonl.partial"), &summary[..from + 30]).expect("it can be written");
        for entry in fs::read_dir(killed.join("runs")).expect("a folder").flatten() {
            let name = entry.file_name().into_string().expect("a name");
            let hidden = killed.join(format!(".runs-{name}-tcp.csv.partial"));
            fs::rename(entry.path().join("tcp.csv"), hidden).expect("it can be renamed");
            fs::remove_dir(entry.path()).expect("it is empty");
        }
        fs::remove_dir(killed.join("runs")).expect("it is empty");
        let said = run(&folder, SWEEP, &["--out", "killed", "--resume"]);
        assert_eq!(said.status, 0, "{said:?}");
        assert!(kept == 0 || said.err.contains(&format!("note: {kept} of at most ")), "{said:?}");
        assert!(files(&killed) == whole, "{kept}");
    }
}
