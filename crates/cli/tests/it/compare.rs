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
        ("empty", "error: empty is not an ackclock output directory (no summary.json or summary.jsonl)"),
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

/// A folder with sweeps whose losses are random: `fast` and `again` of the same runs, but for one
/// more, `slow` at another rate, and `other` of other seeds.
fn repeated(name: &str) -> PathBuf {
    let folder = folder(name);
    let random = SMALL.replace("delay", "loss = { kind = \"iid\", probability = 0.02 }\ndelay");
    let sweeps =
        [("fast", "10mbit", 5, 1), ("again", "10mbit", 6, 1), ("slow", "2mbit", 5, 1), ("other", "2mbit", 5, 2)];
    for (out, rate, repeat, seed) in sweeps {
        let (rate, repeat) = (format!("links.wire.rate={rate}"), format!("sweep.repeat={repeat}"));
        let args = ["--out", out, "--set", &rate, "--set", &repeat, "--seed", &seed.to_string()];
        assert_eq!(run(&folder, &random, &args).status, 0);
    }
    folder
}

fn json_of(folder: &Path, args: &[&str]) -> Value {
    let said = compare(folder, &[&["--json"], args].concat());
    assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
    serde_json::from_str(&said.out).expect("JSON")
}

#[test]
fn repetitions_are_compared_by_their_spread() {
    let folder = repeated("compare_repetitions");
    let found = json_of(&folder, &["fast", "slow"]);
    let point = &found["points"][0];
    assert_eq!((&point["test"], &point["pairs"]), (&json!("paired t"), &json!(5)));
    let rate = &point["metrics"]["links.wire.forward.rate_bps"];
    assert_eq!((&rate["a"]["mean"], &rate["b"]["n"], &rate["p"]), (&json!(10e6), &json!(5), &Value::Null));
    let goodput = &point["metrics"]["flows.f.0.goodput_bps"];
    let interval = goodput["a"]["mean_ci95"].as_array().expect("an interval");
    let mean = goodput["a"]["mean"].as_f64().expect("a mean");
    assert!(interval[0].as_f64() < Some(mean) && Some(mean) < interval[1].as_f64());
    // The interval of the difference excludes 0 where p is less than 5 %, and only there.
    let (p, adjusted) =
        (goodput["p"].as_f64().expect("a probability"), goodput["p_adjusted"].as_f64().expect("adjusted"));
    let ends = [0, 1].map(|end| goodput["difference"]["mean_ci95"][end].as_f64().expect("an end"));
    assert_eq!(p < 0.05, ends[0] * ends[1] > 0.0, "{p}, {ends:?}");
    assert!(p < 0.05 && adjusted >= p, "{p}, {adjusted}");
    // Only what the table shows is counted.
    assert_eq!(
        (&found["correction"], &point["metrics"]["flows.f.0.rtt_ms.max"]["p_adjusted"]),
        (&json!("Holm"), &Value::Null)
    );
    let metrics = point["metrics"].as_object().expect("metrics");
    let counted = metrics.values().filter(|metric| !metric["p_adjusted"].is_null()).count();
    assert!(counted > 5 && found["tests"] == counted, "{counted}");
    // The differences of the scenario come first.
    assert_eq!(found["parameters"], json!([{ "key": "links.wire.rate", "a": "\"10mbit\"", "b": "\"2mbit\"" }]));
    let said = compare(&folder, &["fast", "slow"]);
    assert!(said.out.contains("links.wire.rate  \"10mbit\"  \"2mbit\""), "{}", said.out);
    assert!(said.out.contains("== 5 and 5 repetitions"), "{}", said.out);
    let cells = line(&said.out, &["f.0", "goodput"]);
    let text = |p: f64| if p < 0.0005 { "<0.001".to_owned() } else { format!("{p:.3}") };
    assert_eq!(cells[cells.len() - 2..], [text(p), text(adjusted)]);
    assert!(
        said.out.contains("\npaired t: ") && said.out.contains(&format!("\nHolm: p for {counted} tests")),
        "{}",
        said.out
    );
}

#[test]
fn the_test_follows_the_seeds_and_the_flags() {
    let folder = repeated("compare_tests");
    let goodput = |args: &[&str]| {
        let found = json_of(&folder, args);
        let point = &found["points"][0];
        let metric = &point["metrics"]["flows.f.0.goodput_bps"];
        (point["test"].as_str().map(str::to_owned), metric["p"].as_f64().expect("p"), metric["p_adjusted"].as_f64())
    };
    // All of five above all of five: two of 252 orders, or a little more where two are the same.
    let (test, p, _) = goodput(&["fast", "other"]);
    assert_eq!(test.as_deref(), Some("Mann-Whitney"));
    assert!((2.0 / 252.0 - 1e-12..0.02).contains(&p), "{p}");
    assert_eq!(goodput(&["fast", "other", "--test", "t"]).0.as_deref(), Some("Welch"));
    // Five differences of the same sign: two of 32.
    let (test, p, holm) = goodput(&["fast", "slow", "--test", "ranks"]);
    assert_eq!((test.as_deref(), p), (Some("signed-rank"), 2.0 / 32.0));
    let bh = goodput(&["fast", "slow", "--test", "ranks", "--correct", "bh"]).2;
    assert!(Some(p) <= bh && bh < holm && holm <= Some(1.0), "{bh:?}, {holm:?}");
    let none = compare(&folder, &["fast", "slow", "--correct", "none"]);
    assert_eq!(goodput(&["fast", "slow", "--correct", "none"]).2, None);
    assert!(!none.out.contains("Holm") && none.out.contains("None is adjusted"), "{}", none.out);
    // The scenario is run once more: five of its six repetitions are the same runs.
    let said = compare(&folder, &["fast", "again"]);
    assert!(said.out.contains("note: 5 seeds are on both sides, and p is of these\n"), "{}", said.out);
    assert_eq!(goodput(&["fast", "again"]).1, 1.0);
    // Where nothing is random, that is said, and there is nothing to test.
    for out in ["a", "b"] {
        let said = run(&folder, SMALL, &["--out", out, "--set", "sweep.repeat=3"]);
        assert_eq!(said.status, 0, "{}", said.err);
    }
    let said = compare(&folder, &["a", "b"]);
    assert!(said.out.contains("the repetitions of A are all the same"), "{}", said.out);
    assert_eq!(line(&said.out, &["f.0", "goodput"]).last(), Some(&"-"));
    let said = compare(&folder, &["a:0", "b:0", "--test", "t"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("--test and --correct require a point"), "{}", said.err);
}

#[test]
fn points_of_one_sweep_are_compared_by_their_axes() {
    let folder = folder("compare_points");
    let axes = "axes.\"links.wire.queue.kind\" = [\"pfifo\", \"pie\"]\n[[sweep.zip]]\n\"links.wire.rate\" = [\"10mbit\", \
                \"2mbit\"]\n\"flows.f.bytes\" = [\"100kB\", \"20kB\"]\n";
    assert_eq!(run(&folder, &(sweep() + axes), &["--out", "all"]).status, 0);
    // Three delays and two rates, twice each.
    let found = json_of(&folder, &["all", "--a", "queue=pfifo", "--b", "queue=pie"]);
    let names = [&found["a"], &found["b"]].map(|name| name.as_str().expect("a name"));
    assert_eq!(names, ["all (links.wire.queue.kind = pfifo)", "all (links.wire.queue.kind = pie)"]);
    assert_eq!(found["parameters"], json!([{ "key": "links.wire.queue.kind", "a": "\"pfifo\"", "b": "\"pie\"" }]));
    assert_eq!(found["points"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        found["points"][0]["params"],
        json!({ "links.wire.delay": "1ms", "links.wire.rate": "10mbit", "flows.f.bytes": "100kB" })
    );
    for (pair, place) in found["runs"].as_array().expect("runs").iter().zip(0..) {
        for (side, queue) in [("a", "pfifo"), ("b", "pie")] {
            assert_eq!(pair[side]["params"]["links.wire.queue.kind"], queue, "{place}");
        }
        assert_eq!(pair["a"]["params"]["links.wire.delay"], pair["b"]["params"]["links.wire.delay"]);
        assert_eq!(pair["a"]["run_seed"], pair["b"]["run_seed"]);
    }
    // The keys that move along do not keep points apart.
    let found = json_of(&folder, &["all", "all", "--a", "rate=10mbit", "--b", "rate=2mbit"]);
    assert_eq!(found["points"].as_array().map(Vec::len), Some(6));
    assert_eq!(
        found["parameters"],
        json!([{ "key": "flows.f.bytes", "a": "\"100kB\"", "b": "\"20kB\"" }, { "key": "links.wire.rate", "a": "\"10mbit\"", "b": "\"2mbit\"" }])
    );
    // The sides are two directories, one of which has a single point.
    assert_eq!(run(&folder, SMALL, &["--out", "one", "--set", "sweep.repeat=2"]).status, 0);
    let found = json_of(&folder, &["all", "one", "--a", "queue=pie", "--a", "delay=5ms", "--a", "rate=10mbit"]);
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(2));

    for (args, message) in [
        (
            &["all", "--a", "queue=pfifo", "--b", "queue=pi"][..],
            "--b: `links.wire.queue.kind` of all has no value `pi`; it has `pfifo`, `pie`",
        ),
        (&["all", "--a", "loss=0", "--b", "queue=pie"], "--a: all has no axis `loss`; it has `links.wire.delay`, "),
        (&["all", "all", "--a", "queue=pfifo"], "name a value of `links.wire.queue.kind` with --b"),
        (
            &["all", "--a", "queue=pie", "--a", "kind=pie", "--b", "queue=pie"],
            "--a: `links.wire.queue.kind` is given twice",
        ),
        (
            &["all", "--a", "rate=2mbit", "--a", "bytes=100kB", "--b", "rate=2mbit"],
            "--a: all has no point with all of these values",
        ),
        (&["one", "--a", "delay=5ms", "--b", "delay=5ms"], "--a: one is no sweep, and has no axis `delay`"),
        (&["all", "--a", "queue", "--b", "queue=pie"], "expected an axis of the sweep and one of its values"),
        (&["all", "--a", "queue=pie"], "<B>"),
    ] {
        let said = compare(&folder, args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}");
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
}

#[test]
fn axes_that_end_alike_are_told_apart() {
    let folder = folder("compare_axes");
    let axes = "[sweep]\naxes.\"links.wire.delay\" = [\"1ms\", \"5ms\"]\naxes.\"links.wire.reverse.delay\" = [\"1ms\", \"5ms\"]\n";
    assert_eq!(run(&folder, format!("{SMALL}{axes}"), &["--out", "all"]).status, 0);
    let said = compare(&folder, &["all", "--a", "delay=1ms", "--b", "delay=5ms"]);
    assert!(
        said.err.contains("--a: `delay` fits several axes: `links.wire.delay`, `links.wire.reverse.delay`"),
        "{}",
        said.err
    );
    let found = json_of(&folder, &["all", "--a", "wire.delay=1ms", "--b", "links.wire.delay=5ms"]);
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(2));
}

#[test]
fn values_are_written_as_they_are_or_as_they_read() {
    let folder = folder("compare_values");
    let axes = "[sweep]\naxes.\"links.wire.queue\" = [{ kind = \"pie\" }, { kind = \"pie\", limit = \"9p\" }]\n\
                axes.\"links.wire.loss.probability\" = [0.10, 0.2]\n";
    let scenario = SMALL.replace("delay", "loss = { kind = \"iid\", probability = 0.0 }\ndelay");
    assert_eq!(run(&folder, format!("{scenario}{axes}"), &["--out", "all"]).status, 0);
    for (a, b, runs) in
        [("queue=pie", "queue={\"kind\":\"pie\",\"limit\":\"9p\"}", 2), ("probability=0.1", "probability=.20", 2)]
    {
        let found = json_of(&folder, &["all", "--a", a, "--b", b]);
        assert_eq!(found["runs"].as_array().map(Vec::len), Some(runs), "{a}");
    }
}

#[test]
fn flows_are_compared_together() {
    let folder = folder("compare_sums");
    let more = "\n[[flows]]\nid = \"many\"\npath = [\"wire\"]\ncount = 3\nstart = \"1s\"\n";
    for (out, rate) in [("fast", "10mbit"), ("slow", "5mbit")] {
        let said = run(&folder, format!("{SMALL}{more}"), &["--out", out, "--set", &format!("links.wire.rate={rate}")]);
        assert_eq!(said.status, 0, "{}", said.err);
    }
    let found = json_of(&folder, &["fast", "slow"]);
    let metric = |name: &str| found["runs"][0]["metrics"][name]["a"].as_f64().unwrap_or_else(|| panic!("{name}"));
    // Over the two seconds of the run, not the one of the flows.
    let delivered: f64 = (0..3).map(|n| metric(&format!("flows.many.{n}.delivered_bytes"))).sum();
    assert_eq!(metric("sums.many.*.goodput_bps"), delivered * 8.0 / 2.0);
    let all = delivered + metric("flows.f.0.delivered_bytes");
    assert_eq!((metric("sums.*.forward.flows"), metric("sums.*.forward.goodput_bps")), (4.0, all * 8.0 / 2.0));
    let rates = (0..3).map(|n| metric(&format!("flows.many.{n}.goodput_bps")));
    let (sum, squares) = rates.fold((0.0, 0.0), |(sum, squares), rate| (sum + rate, squares + rate * rate));
    assert!((metric("sums.many.*.fairness_jain") - sum * sum / (3.0 * squares)).abs() < 1e-12);
    let lost: f64 = (0..3).map(|n| metric(&format!("flows.many.{n}.loss_declarations.right"))).sum();
    assert_eq!(metric("sums.many.*.lost_packets"), lost);
    // A flow by itself is no sum.
    assert!(found["runs"][0]["metrics"].get("sums.f.*.flows").is_none());
    let said = compare(&folder, &["fast", "slow"]);
    assert_eq!(line(&said.out, &["many.*", "flows"]), ["many.*", "flows", "3", "3", "+0.0"]);
}

#[test]
fn runs_that_failed_are_left_out() {
    let folder = folder("compare_failed");
    assert_eq!(run(&folder, sweep(), &["--out", "all"]).status, 0);
    let lines = fs::read_to_string(folder.join("all/summary.jsonl")).unwrap();
    let mut runs: Vec<Value> = lines.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    runs[1]["failed"] = true.into();
    let lines: Vec<String> = runs.iter().map(Value::to_string).collect();
    fs::write(folder.join("some.jsonl"), lines.join("\n")).unwrap();
    let found = json_of(&folder, &["all", "some.jsonl"]);
    assert_eq!(found["runs"].as_array().map(Vec::len), Some(5));
    assert_eq!(
        (&found["runs_failed_in_a"], &found["runs_failed_in_b"]),
        (&json!([]), &json!(["links.wire.delay = 1ms, run 1"]))
    );
    let said = compare(&folder, &["all", "some.jsonl"]);
    assert!(said.out.contains("\nfailed in B: links.wire.delay = 1ms, run 1\n"), "{}", said.out);
    let said = compare(&folder, &["all", "some.jsonl:1"]);
    assert!(said.err.contains("some.jsonl:1: all runs have failed (links.wire.delay = 1ms, run 1)"), "{}", said.err);
}

/// One transfer; `record.pcap` has it at both hosts, and the link's two directions.
const TRANSFER: &str = "
schema = 1
run    = { duration = \"2s\" }
record = { pcap = [\"f\", \"wire.forward\"] }

[links.wire]
rate  = \"10mbit\"
delay = \"10ms\"
queue = { kind = \"pfifo\", limit = \"40p\" }

[[flows]]
id   = \"f\"
path = [\"wire\"]
host = \"linux-6.1\"
";

fn captured(name: &str, runs: &[(&str, &[&str])]) -> PathBuf {
    let folder = folder(name);
    for (out, set) in runs {
        let set: Vec<&str> = set.iter().flat_map(|setting| ["--set", *setting]).collect();
        let said = run(&folder, TRANSFER, &[&["--out", out], &set[..]].concat());
        assert_eq!(said.status, 0, "{}", said.err);
    }
    folder
}

#[test]
fn a_scenario_is_run_with_the_settings_of_either_side() {
    let folder = folder("compare_scenario");
    fs::write(folder.join("small.toml"), SMALL).expect("room");
    let sides = ["--a", "links.wire.rate=10mbit", "--b", "links.wire.rate=5mbit"];
    let said = compare(&folder, &[&["small.toml"], &sides[..]].concat());
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for part in [
        "A: small.toml with links.wire.rate=10mbit\nB: small.toml with links.wire.rate=5mbit\n",
        "== packets of f.0 at its sender\n",
        "by time:",
    ] {
        assert!(said.out.contains(part), "{part}: {}", said.out);
    }
    let goodput = line(&said.out, &["goodput"]);
    let said = compare(&folder, &[&["small.toml", "--json", "--out", "kept"], &sides[..]].concat());
    let json: Value = serde_json::from_str(&said.out).expect("JSON");
    let bps = json["runs"][0]["metrics"]["flows.f.0.goodput_bps"]["b"].as_f64().expect("a goodput");
    assert_eq!(goodput[3], format!("{:.3}", bps / 1e6));
    let differences = json["packets"]["f.0"]["connections"][0]["differences"].as_array().expect("a list");
    assert!(differences.iter().any(|difference| difference["in"] == "time"), "{differences:?}");
    assert!(folder.join("kept/b/f.0.sender.pcapng").is_file());
    for (args, what) in [
        (vec!["small.toml", "--a", "run.seed=2", "--b", "links.wire.rat=1mbit"], "did you mean `rate`?"),
        (
            vec!["small.toml", "--set", "sweep.repeat=2", "--a", "run.seed=2", "--b", "run.seed=3"],
            "is not a single run",
        ),
        (vec!["kept/a", "kept/b", "--out", "x"], "--set and --out apply to a scenario"),
    ] {
        let said = compare(&folder, &args);
        assert_eq!(said.status, 2, "{args:?}: {}", said.out);
        assert!(said.err.contains(what), "{args:?}: {}", said.err);
    }
}

#[test]
fn captures_part_at_the_first_packet_that_differs() {
    let folder = captured("compare_captures", &[("a", &[]), ("b", &["flows.0.host=freebsd-14"])]);
    let at = |out: &str| format!("{out}/f.0.sender.pcapng");
    let said = compare(&folder, &[&at("a"), &at("a")]);
    assert!(said.out.ends_with("The same packets, at the same times within 1ms.\n"), "{}", said.out);
    let said = compare(&folder, &[&at("a"), &at("b")]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    // Linux acknowledges each of the first segments at once, FreeBSD every second one: of 1448 bytes, behind the first.
    let parts = "ACK packet 2 to the opener, by acknowledgment: 2897 in A, 4345 in B.";
    assert!(said.out.contains(parts), "{}", said.out);
    assert_eq!(line(&said.out, &["acknowledgment", "ACKs"])[1..3], ["ACKs <", "1"]);
    let found: Value = serde_json::from_str(&compare(&folder, &["--json", &at("a"), &at("b")]).out).expect("JSON");
    let differences = found["connections"][0]["differences"].as_array().expect("a list");
    let first = differences.iter().find(|first| first["in"] == "acknowledgment").expect("ACKs differ");
    assert_eq!(
        (&first["packets_before"], &first["a"], &first["b"], &first["from_opener"], &first["data"]),
        (&json!(1), &json!("2897"), &json!("4345"), &json!(false), &json!(false))
    );
}

#[test]
fn times_in_captures_may_differ_by_what_is_asked_for() {
    let folder = captured("compare_times", &[("a", &[]), ("b", &["links.wire.delay=11ms"])]);
    let files = ["a/f.0.sender.pcapng", "b/f.0.sender.pcapng"];
    let found = |within: &str| -> Value {
        let said = compare(&folder, &[&["--json", "--within", within], &files[..]].concat());
        serde_json::from_str(&said.out).expect("JSON")
    };
    // The SYN is answered after two delays: 2 ms later.
    let of = |found: &Value| {
        let differences = found["connections"][0]["differences"].as_array().expect("a list").clone();
        differences.into_iter().find(|one| one["in"] == "time" && one["data"] == true && one["from_opener"] == false)
    };
    assert!(of(&found("1999us")).is_some_and(|time| time["packets_before"] == 0));
    assert!(of(&found("2001us")).is_none());
}

/// A capture at the receiver has the same connection; one of a link has one way of all connections.
#[test]
fn captures_of_a_link_and_of_several_connections_are_compared() {
    let twice: &[&str] = &["flows.0.count=2", "flows.0.bytes=20kB"];
    let folder = captured("compare_link", &[("a", twice), ("b", &[twice, &["flows.0.bytes=21kB"]].concat())]);
    let said = compare(&folder, &["a/wire.forward.pcapng", "b/wire.forward.pcapng", "--json"]);
    let found: Value = serde_json::from_str(&said.out).expect("JSON");
    assert_eq!((&found["connections_in_a"], &found["connections_in_b"]), (&json!(2), &json!(2)));
    let connections = found["connections"].as_array().expect("a list");
    assert_eq!(connections.len(), 2);
    for connection in connections {
        // 20,000 bytes are 13 segments of 1448 and one of 1176, with a FIN; 1,000 more fill the latter.
        let segment = connection["differences"].as_array().expect("a list").iter().find(|one| one["in"] == "segment");
        let segment = segment.expect("the last segment");
        assert_eq!((&segment["a"], &segment["b"]), (&json!("18825+1176 FIN"), &json!("18825+1448")));
    }
}

#[test]
fn captures_and_results_are_not_mixed() {
    let folder = captured("compare_mixed", &[("a", &[])]);
    let capture = "a/f.0.sender.pcapng";
    for (args, message) in [
        (&[capture, "a"][..], "a/f.0.sender.pcapng is a capture and a is none: compare two captures or two results"),
        (&["a", capture], "a/f.0.sender.pcapng is a capture and a is none: compare two captures or two results"),
        (&["a", "a", "--within", "1ms"], "--within applies to captures"),
        (&[capture, capture, "--test", "t"], "--a, --b, --test, --correct and --all-rows do not apply"),
        (&[capture, capture, "--within", "soon"], "invalid value 'soon' for '--within <TIME>'"),
        (&[capture, "cut"], "cut: packet 1, at byte"),
        (&["empty", capture], "empty has no TCP packet"),
    ] {
        let whole = fs::read(folder.join(capture)).unwrap();
        let block = |from: usize| u32::from_le_bytes(whole[from + 4..from + 8].try_into().unwrap()) as usize;
        let headers = block(0) + block(block(0));
        fs::write(folder.join("cut"), &whole[..headers + 20]).unwrap();
        fs::write(folder.join("empty"), &whole[..headers]).unwrap();
        let said = compare(&folder, args);
        assert_eq!(said.status, 2, "{args:?}: {}", said.out);
        assert!(said.err.contains(message), "{args:?}: {}", said.err);
    }
}
