//! `ackclock compare`: two results beside each other, and what cannot be compared.

use std::fs;
use std::path::{Path, PathBuf};

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};
use serde_json::{Value, json};

fn compare(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).arg("compare").args(args).output().expect("the binary runs").into()
}

/// A folder with two results of the same scenario, at 10 and at 5 Mbit/s.
fn two(name: &str) -> PathBuf {
    let folder = folder(name);
    for (out, rate) in [("fast", "10mbit"), ("slow", "5mbit")] {
        let said = run(&folder, SMALL, &["--out", out, "--set", &format!("links.wire.rate={rate}")]);
        assert_eq!(said.status, 0, "{}", said.err);
    }
    folder
}

/// The cells of the line that has both words.
fn line<'a>(text: &'a str, words: &[&str]) -> Vec<&'a str> {
    let found = text.lines().find(|line| words.iter().all(|word| line.contains(word)));
    found
        .unwrap_or_else(|| panic!("{words:?} in {text}"))
        .split("  ")
        .map(str::trim)
        .filter(|cell| !cell.is_empty())
        .collect()
}

#[test]
fn flows_and_links_stand_beside_each_other() {
    let folder = two("compare_two");
    let said = compare(&folder, &["fast", "slow/summary.json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let summary =
        |out: &str| serde_json::from_slice::<Value>(&fs::read(folder.join(out).join("summary.json")).unwrap()).unwrap();
    let [a, b] = ["fast", "slow"].map(|out| summary(out)["flows"][0]["goodput_bps"].as_f64().unwrap());
    let expected = [
        "f.0".to_owned(),
        "goodput Mbit/s".to_owned(),
        format!("{:.3}", a / 1e6),
        format!("{:.3}", b / 1e6),
        format!("{:+.1}", (b / a - 1.0) * 100.0),
    ];
    assert_eq!(line(&said.out, &["goodput"]), expected);
    assert_eq!(line(&said.out, &["wire.forward"])[1], "busy %");
    assert!(said.out.contains("A: small, virtual clock, seed 1\nB: small, virtual clock, seed 1\n"), "{}", said.out);
    // A result differs by nothing from itself.
    let said = compare(&folder, &["--json", "fast", "fast"]);
    let same: Value = serde_json::from_str(&said.out).expect("JSON");
    let metrics = same["runs"][0]["metrics"].as_object().expect("metrics");
    assert!(metrics.len() > 50, "{}", metrics.len());
    assert!(metrics.values().all(|metric| metric["a"] == metric["b"] && metric["difference_percent"] == 0.0));
}

#[test]
fn json_has_every_number_by_its_name() {
    let folder = folder("compare_json");
    let summary = |flows: Value, sojourn: f64| {
        json!({
            "schema": 1, "title": "t", "seed": 1, "run": 0, "clock": "virtual", "duration_s": 2.0, "params": {},
            "flows": flows,
            "links": [{ "id": "l.forward", "dropped": {}, "sojourn_ms": { "p50": sojourn } }],
        })
    };
    let flow = |id: &str, goodput: f64| json!({ "id": id, "goodput_bps": goodput });
    let mut a = summary(json!([flow("x.0", 8e6), flow("y.0", 0.0)]), 0.0);
    a["partial"] = true.into();
    let mut b = summary(json!([flow("y.0", 0.0), flow("x.0", 6e6), flow("z.0", 1.0)]), 3.0);
    b["links"][0]["dropped"]["early"] = 7.into();
    for (name, value) in [("a.json", &a), ("b.json", &b)] {
        fs::write(folder.join(name), format!("{value:#}")).unwrap();
    }
    let said = compare(&folder, &["a.json", "b.json", "--json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let run = &found["runs"][0];
    let metric = |name: &str| run["metrics"][name].clone();
    let all = |a: Value, b: Value, percent: Value| json!({ "a": a, "b": b, "difference_percent": percent });
    // (6 - 8) / 8 = -25 %, 0 of 0 differs by nothing, and no percentage leads from 0 to 3.
    assert_eq!(metric("flows.x.0.goodput_bps"), all(8e6.into(), 6e6.into(), (-25.0).into()));
    assert_eq!(metric("flows.y.0.goodput_bps"), all(0.0.into(), 0.0.into(), 0.0.into()));
    assert_eq!(metric("links.l.forward.sojourn_ms.p50"), all(0.0.into(), 3.0.into(), Value::Null));
    assert_eq!(metric("flows.z.0.goodput_bps"), all(Value::Null, 1.0.into(), Value::Null));
    assert_eq!((&run["only_in_a"], &run["only_in_b"]), (&json!({}), &json!({ "flows": ["z.0"] })));
    assert_eq!(run["a"]["partial"], true);
    let said = compare(&folder, &["a.json", "b.json"]);
    assert!(said.out.contains("only in B: flow z.0\n"), "{}", said.out);
    assert!(said.out.contains("A: t, virtual clock, seed 1, broken off before its end\n"), "{}", said.out);
    assert_eq!(line(&said.out, &["dropped (early)"]), ["dropped (early)", "0", "7", "-"]);
}

#[test]
fn workloads_and_groups_are_matched_by_id() {
    let folder = folder("compare_workloads");
    let spread = |p99: f64| json!({ "p50": 1.0, "p99": p99 });
    let workload = |id: &str, p99: f64| json!({ "id": id, "started": 10, "fct_ms": spread(p99) });
    let group = |id: &str, started: u64| json!({ "id": id, "started": started, "fct_ms": spread(2.0) });
    let summary = |workloads: Value, groups: Value| {
        json!({
            "schema": 1, "title": "t", "seed": 1, "run": 0, "clock": "virtual", "duration_s": 2.0, "params": {},
            "flows": [], "links": [], "workloads": workloads, "groups": groups,
        })
    };
    // In another order, and with a class more.
    let a = summary(json!([workload("web", 4.0), workload("web.short", 8.0)]), json!([group("g", 5), group("h", 1)]));
    let b = summary(
        json!([workload("web.short", 6.0), workload("web", 5.0), workload("web.long", 1.0)]),
        json!([group("h", 2)]),
    );
    for (name, value) in [("a.json", &a), ("b.json", &b)] {
        fs::write(folder.join(name), format!("{value:#}")).unwrap();
    }
    let said = compare(&folder, &["a.json", "b.json", "--json"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let run = &found["runs"][0];
    let metric = |name: &str| [&run["metrics"][name]["a"], &run["metrics"][name]["b"]].map(Value::as_f64);
    assert_eq!(metric("workloads.web.fct_ms.p99"), [Some(4.0), Some(5.0)]);
    assert_eq!(metric("workloads.web.short.fct_ms.p99"), [Some(8.0), Some(6.0)]);
    assert_eq!(metric("workloads.web.long.fct_ms.p99"), [None, Some(1.0)]);
    assert_eq!(metric("groups.h.started"), [Some(1.0), Some(2.0)]);
    assert_eq!(run["only_in_a"], json!({ "groups": ["g"] }));
    assert_eq!(run["only_in_b"], json!({ "workloads": ["web.long"] }));
    let said = compare(&folder, &["a.json", "b.json"]);
    // The id stands in the first line of its rows.
    assert_eq!(line(&said.out, &["web.short", "started"]), ["web.short", "started", "10", "10", "+0.0"]);
    assert_eq!(line(&said.out, &["FCT p99 ms", "8.000"]), ["FCT p99 ms", "8.000", "6.000", "-25.0"]);
    assert_eq!(line(&said.out, &["h", "started", "+100.0"]), ["h", "started", "1", "2", "+100.0"]);
    for only in ["only in A: group g\n", "only in B: workload web.long\n"] {
        assert!(said.out.contains(only), "{}", said.out);
    }
}

#[test]
fn runs_of_sweeps_are_matched() {
    let folder = folder("compare_sweeps");
    assert_eq!(run(&folder, sweep(), &["--out", "all"]).status, 0);
    assert_eq!(run(&folder, sweep(), &["--out", "some", "--set", "links.wire.delay=5ms"]).status, 0);
    let said = compare(&folder, &["all", "some"]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    // Both repetitions of the point together; each for itself in JSON.
    assert_eq!(said.out.matches("\n== links.wire.delay = 5ms, 2 and 2 repetitions\n").count(), 1, "{}", said.out);
    let runs: Value = serde_json::from_str(&compare(&folder, &["--json", "all", "some"]).out).expect("JSON");
    assert_eq!(runs["runs"].as_array().map(Vec::len), Some(2));
    assert_eq!(said.out.matches("\nonly in A: links.wire.delay = ").count(), 4, "{}", said.out);
    // Two points of one sweep; run 4 is the first of the third point.
    let said = compare(&folder, &["--json", "all:0", "all/summary.jsonl:4"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!(found["runs"][0]["a"]["params"]["links.wire.delay"], "1ms");
    assert_eq!(found["runs"][0]["b"]["params"]["links.wire.delay"], "9ms");
    // One run against many that it is none of.
    assert_eq!(run(&folder, SMALL, &["--out", "one"]).status, 0);
    let said = compare(&folder, &["one", "all"]);
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.starts_with("error: one and all have no run in common"), "{}", said.err);
    let said = compare(&folder, &["all:6", "one"]);
    assert_eq!((said.status, said.out.as_str()), (2, ""));
    assert!(said.err.contains("has no run 6"), "{}", said.err);
}

#[test]
fn what_is_no_result_is_said() {
    let folder = two("compare_bad");
    fs::create_dir(folder.join("empty")).unwrap();
    fs::write(folder.join("text.json"), "goodput: a lot").unwrap();
    fs::write(folder.join("other.json"), "{\"schema\": 2, \"flows\": [], \"links\": []}").unwrap();
    fs::write(folder.join("nothing.json"), "").unwrap();
    fs::write(folder.join("deep.json"), "[".repeat(100_000)).unwrap();
    for (other, message) in [
        ("missing", "error: cannot read missing: "),
        ("empty", "error: empty has neither summary.json nor summary.jsonl"),
        ("text.json", "error: text.json is not JSON: "),
        ("other.json", "error: other.json: object 0 is not an ackclock summary"),
        ("nothing.json", "error: nothing.json is empty"),
        ("deep.json", "error: deep.json is not JSON: "),
    ] {
        let said = compare(&folder, &["fast", other]);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{other}");
        assert!(said.err.starts_with(message) && said.err.lines().count() == 1, "{other}: {}", said.err);
    }
    assert_eq!(compare(&folder, &["fast"]).status, 2);
}

#[cfg(target_os = "linux")]
#[test]
fn a_file_without_an_end_is_refused() {
    let output = ackclock().args(["compare", "/dev/zero", "/dev/zero"]).output().expect("the binary runs");
    let said: Said = output.into();
    assert_eq!(said.status, 2);
    assert!(said.err.starts_with("error: cannot read /dev/zero: not a regular file"), "{}", said.err);
}

#[test]
fn repetitions_are_compared_by_their_spread() {
    let folder = folder("compare_repetitions");
    let random = SMALL.replace("delay", "loss = { kind = \"iid\", probability = 0.02 }\ndelay");
    for (out, rate, repeat) in [("fast", "10mbit", 5), ("again", "10mbit", 6), ("slow", "2mbit", 5)] {
        let said = run(
            &folder,
            &random,
            &["--out", out, "--set", &format!("links.wire.rate={rate}"), "--set", &format!("sweep.repeat={repeat}")],
        );
        assert_eq!(said.status, 0, "{}", said.err);
    }
    let said = compare(&folder, &["--json", "fast", "slow"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    let goodput = &found["points"][0]["metrics"]["links.wire.forward.rate_bps"];
    assert_eq!((&goodput["a"]["mean"], &goodput["b"]["n"]), (&json!(10e6), &json!(5)));
    // All of five above all of five: two of 252 orders, or a little more where two are the same.
    let goodput = &found["points"][0]["metrics"]["flows.f.0.goodput_bps"];
    let p = goodput["p"].as_f64().expect("a probability");
    assert!((2.0 / 252.0 - 1e-12..0.02).contains(&p), "{p}");
    let interval = goodput["a"]["mean_ci95"].as_array().expect("an interval");
    let mean = goodput["a"]["mean"].as_f64().expect("a mean");
    assert!(interval[0].as_f64() < Some(mean) && Some(mean) < interval[1].as_f64());
    // What differs in the scenario comes first.
    assert_eq!(found["parameters"], json!([{ "key": "links.wire.rate", "a": "\"10mbit\"", "b": "\"2mbit\"" }]));
    let said = compare(&folder, &["fast", "slow"]);
    assert!(said.out.contains("links.wire.rate  \"10mbit\"  \"2mbit\""), "{}", said.out);
    assert!(said.out.contains("== 5 and 5 repetitions"), "{}", said.out);
    assert_eq!(line(&said.out, &["goodput"]).last(), Some(&format!("{p:.3}").as_str()));
    // The same scenario once more: five of its six repetitions are the same runs.
    let said = compare(&folder, &["fast", "again"]);
    let p: f64 = line(&said.out, &["goodput"]).last().and_then(|p| p.parse().ok()).expect("a probability");
    assert!(p > 0.5, "{}", said.out);
    // Where nothing is random, that is said.
    for out in ["a", "b"] {
        let said = run(&folder, SMALL, &["--out", out, "--set", "sweep.repeat=3"]);
        assert_eq!(said.status, 0, "{}", said.err);
    }
    let said = compare(&folder, &["a", "b"]);
    assert!(said.out.contains("the repetitions of A are all the same"), "{}", said.out);
}
