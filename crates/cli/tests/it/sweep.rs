//! Sweeps: runs that fail, parts of sweeps, tables of runs that had finished before.

use std::fs;
use std::path::Path;

use crate::common::{SMALL, Said, ackclock, folder, run, sweep};
use serde_json::Value;

/// Flows that come faster than they end where only one may be alive.
fn failing() -> String {
    format!(
        "{SMALL}
[[workloads]]
id = \"web\"
path = [\"wire\"]
size = \"50kB\"
load = 0.9
max_alive = 1000
[sweep]
repeat = 2
axes.\"workloads.web.max_alive\" = [1, 1000]
[[expect]]
metric = \"flows.f.0.delivered_bytes\"
at_least = 100_000
[[expect]]
metric = \"flows.f.0.delivered_bytes\"
runs = \"mean\"
at_least = 100_000
"
    )
}

fn json(text: &str) -> Vec<Value> {
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn read(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).expect("it is there")
}

#[test]
fn a_run_that_fails_is_recorded_and_the_others_go_on() {
    let folder = folder("sweep-failed");
    let said = run(&folder, failing(), &["--out", "out", "--threads", "2"]);
    assert_eq!(said.status, 3, "{said:?}");
    let runs = json(&read(folder.join("out/summary.jsonl")));
    let failed: Vec<bool> = runs.iter().map(|run| run["failed"] == true).collect();
    assert_eq!(failed, [true, true, false, false]);
    for run in &runs[..2] {
        assert!(run["error"].as_str().expect("an error").starts_with("2 flows are alive after "), "{run}");
        assert_eq!((&run["partial"], &run["params"]["workloads.web.max_alive"]), (&true.into(), &1.into()));
    }
    assert!(runs[2..].iter().all(|run| run.get("error").is_none() && run.get("failed").is_none()), "{runs:?}");
    let manifest: Value = serde_json::from_str(&read(folder.join("out/manifest.json"))).expect("JSON");
    assert_eq!((&manifest["failed"], &manifest["runs"], manifest.get("partial")), (&2.into(), &4.into(), None));
    // The table has the point, the numbers of runs differ, and the expectations are missed at it.
    assert!(said.out.contains("2 of 2 failed  -"), "{}", said.out);
    assert!(said.out.contains("over the n runs of a point"), "{}", said.out);
    assert!(said.out.contains("expectations: 6 checked, 3 missed"), "{}", said.out);
    for line in [
        "error: workloads.web.max_alive = 1, run 1 failed: 2 flows are alive after ",
        "expect missed: flows.f.0.delivered_bytes has no value, since the run failed, expected at least 100000 \
         (workloads.web.max_alive = 1, run 0)",
        "expect missed: mean over 2 runs of flows.f.0.delivered_bytes has no value, since the run failed",
        "error: 2 of 4 runs failed",
    ] {
        assert!(said.err.contains(line), "{line}: {}", said.err);
    }
    let verified = ackclock().current_dir(&folder).args(["verify", "out", "-q"]).output().expect("it runs");
    assert!(verified.status.success(), "{verified:?}");
    let printed = run(&folder, failing(), &["--json"]);
    assert_eq!((printed.status, printed.out), (3, read(folder.join("out/summary.jsonl"))));
}

/// Leaves so many runs of a complete output, as after Ctrl-C.
fn cut(dir: &Path, runs: usize) {
    let kept: String = read(dir.join("summary.jsonl")).split_inclusive('\n').take(runs).collect();
    fs::write(dir.join("summary.jsonl"), kept).expect("written");
    let mut manifest: Value = serde_json::from_str(&read(dir.join("manifest.json"))).expect("JSON");
    manifest["partial"] = true.into();
    fs::write(dir.join("manifest.json"), manifest.to_string()).expect("written");
}

#[test]
fn the_tables_of_a_resumed_sweep_are_complete() {
    for (name, text, status) in [("plain", sweep(), 0), ("failed", failing(), 3)] {
        let folder = folder(&format!("sweep-tables-{name}"));
        let whole = run(&folder, &text, &["--out", "out"]);
        assert_eq!(whole.status, status, "{whole:?}");
        let before = ["summary.jsonl", "manifest.json"].map(|file| read(folder.join("out").join(file)));
        for runs in [1, 3, 4] {
            cut(&folder.join("out"), runs);
            let resumed = run(&folder, &text, &["--out", "out", "--resume"]);
            assert_eq!((resumed.status, &resumed.out), (status, &whole.out), "{runs}");
            assert!(resumed.err.starts_with(&format!("note: {runs} of ")), "{}", resumed.err);
            assert_eq!(before, ["summary.jsonl", "manifest.json"].map(|file| read(folder.join("out").join(file))));
        }
        // Nothing is left to be done, and all is shown.
        let again = run(&folder, &text, &["--out", "out", "--resume"]);
        assert_eq!((again.status, again.out), (status, whole.out));
        let printed = run(&folder, &text, &["--out", "out", "--resume", "--json"]);
        assert_eq!(printed.out, before[0]);
    }
}

#[test]
fn many_points_are_listed_from_both_ends() {
    let folder = folder("sweep-many");
    let delays: Vec<String> = (1..=203).map(|ms| format!("\"{ms}ms\"")).collect();
    let text =
        |repeat| format!("{SMALL}[sweep]\nrepeat = {repeat}\naxes.\"links.wire.delay\" = [{}]\n", delays.join(", "));
    let said = run(&folder, text(1), &["--out", "out"]);
    let names = |text: &str| rows(text).iter().map(|row| row[0].to_owned()).collect::<Vec<_>>();
    let ends: Vec<String> = (1..=100).chain(104..=203).map(|ms| format!("{ms}ms")).collect();
    let note = "\n3 points between the first and the last are left out; --all-rows lists them\n";
    assert_eq!(names(said.out.split(note).next().expect("the table")), ends, "{}", said.out);
    assert!(said.out.contains(note) && said.out.starts_with("small\n203 runs\n"), "{}", said.out);
    assert_eq!(read(folder.join("out/summary.jsonl")).lines().count(), 203);
    let whole = run(&folder, text(1), &["--all-rows"]);
    assert!(!whole.out.contains("--all-rows"), "{}", whole.out);
    assert_eq!(names(&whole.out), (1..=203).map(|ms| format!("{ms}ms")).collect::<Vec<_>>());
    // Those are counted that were chosen.
    let chosen = run(&folder, text(1), &["--columns", "goodput", "--only", "1-202"]);
    assert_eq!(names(chosen.out.split("\n2 points").next().expect("the table")).len(), 200, "{}", chosen.out);
    // Two sweeps of so many points are compared at their ends.
    let compare = |more: &[&str]| {
        let said = ackclock().current_dir(&folder).args(["compare", "out", "out"]).args(more).output();
        Said::from(said.expect("it runs")).out
    };
    let (some, all) = (compare(&[]), compare(&["--all-rows"]));
    let shown = |text: &str| text.lines().filter(|line| line.starts_with("== ")).count();
    assert_eq!((shown(&some), shown(&all)), (6, 203));
    assert!(some.contains("\n... 197 runs left out; --all-rows shows them\n\n== "), "{some}");
}

#[test]
fn tables_tell_how_much_repetitions_differ() {
    let folder = folder("sweep-spread");
    let note = "note: the repetitions are all the same: nothing in them is random (see `start_jitter`)";
    let same = run(&folder, sweep(), &[]);
    assert!(same.out.contains(note) && same.out.contains("±0.000"), "{}", same.out);
    assert!(
        same.out.starts_with("small\n6 runs, medians ± standard deviations over the 2 runs of a point\n"),
        "{}",
        same.out
    );
    let jitter = sweep().replace("bytes =", "start_jitter = \"900ms\"\nbytes =");
    let random = run(&folder, &jitter, &[]);
    assert!(!random.out.contains("note: "), "{}", random.out);
    // Without repetitions there is no spread.
    let single = run(&folder, sweep().replace("repeat = 2", "repeat = 1"), &[]);
    assert!(!single.out.contains('±') && !single.out.contains("note: "), "{}", single.out);
}

#[test]
fn partial_results_are_not_replaced_silently() {
    let folder = folder("sweep-partial");
    assert_eq!(run(&folder, sweep(), &["--out", "out", "-q"]).status, 0);
    let out = folder.join("out");
    let whole = read(out.join("summary.jsonl"));
    // Complete results are.
    assert_eq!(run(&folder, sweep(), &["--out", "out", "-q"]).status, 0);
    cut(&out, 3);
    let refused = |text: String, why: &str| {
        let kept = fs::read_dir(&out).expect("a directory").count();
        let said = run(&folder, text, &["--out", "out", "-q"]);
        assert_eq!(
            (said.status, said.err.as_str()),
            (2, format!("error: cannot use --out: out holds {why}\n").as_str())
        );
        assert_eq!(fs::read_dir(&out).expect("a directory").count(), kept);
    };
    let end = "of a sweep that was broken off; --resume goes on with the others, --overwrite begins again";
    refused(sweep(), &format!("3 runs of 6 {end}"));
    refused(SMALL.to_owned(), &format!("3 runs of 6 {end}"));
    assert_eq!(run(&folder, sweep(), &["--out", "out", "-q", "--overwrite"]).status, 0);
    assert_eq!(read(out.join("summary.jsonl")), whole);
    // A kill leaves hidden files and the plan.
    let first: String = whole.split_inclusive('\n').take(1).collect();
    let manifest: Value = serde_json::from_str(&read(out.join("manifest.json"))).expect("JSON");
    let plan = serde_json::json!({ "ackclock": manifest["ackclock"], "scenario": manifest["scenario"] });
    fs::remove_file(out.join("manifest.json")).expect("removed");
    fs::remove_file(out.join("summary.jsonl")).expect("removed");
    fs::write(out.join(".summary.jsonl.partial"), first + "{\"schema\"").expect("written");
    fs::write(out.join(".plan.json.partial"), plan.to_string()).expect("written");
    refused(sweep(), &format!("1 run {end}"));
    assert_eq!(run(&folder, sweep(), &["--out", "out", "-q", "--resume"]).status, 0);
    assert_eq!(read(out.join("summary.jsonl")), whole);
    // A run that is no sweep cannot be resumed.
    let single = folder.join("single");
    assert_eq!(run(&folder, SMALL, &["--out", "single", "-q"]).status, 0);
    let mut manifest: Value = serde_json::from_str(&read(single.join("manifest.json"))).expect("JSON");
    manifest["partial"] = true.into();
    fs::write(single.join("manifest.json"), manifest.to_string()).expect("written");
    let said = run(&folder, SMALL, &["--out", "single", "-q"]);
    let why =
        "error: cannot use --out: single holds the results of a run that was broken off; --overwrite replaces them\n";
    assert_eq!((said.status, said.err.as_str()), (2, why));
    assert_eq!(run(&folder, SMALL, &["--out", "single", "-q", "--overwrite"]).status, 0);
}

/// The lines of a printed table, below its rule.
fn rows(text: &str) -> Vec<Vec<&str>> {
    let rows = text.lines().skip_while(|line| !line.starts_with("---")).skip(1).take_while(|line| !line.is_empty());
    rows.map(|row| row.split_whitespace().collect()).collect()
}

#[test]
fn columns_can_be_chosen() {
    let folder = folder("sweep_columns");
    // The columns are of points: the link sends the same bytes at each, of which the first column
    // is a share.
    let paths = "links.wire.forward.utilization,flows.*.fct_s,links.*.offered";
    let said = run(&folder, sweep(), &["--columns", paths]);
    assert_eq!(said.status, 0, "{}", said.err);
    let table = rows(&said.out);
    let json = run(&folder, sweep(), &["--json"]).out;
    let runs: Vec<serde_json::Value> = json.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    for (point, row) in table.iter().enumerate() {
        // Both repetitions are the same.
        let run = &runs[2 * point];
        let utilization = run["links"][0]["utilization"].as_f64().unwrap() * 100.0;
        let fct = run["flows"][0]["fct_s"].as_f64().unwrap();
        let offered = |link: usize| run["links"][link]["offered"].as_u64().unwrap();
        let expected = [
            run["params"]["links.wire.delay"].as_str().unwrap().to_owned(),
            format!("{utilization:.1}±0.0"),
            format!("{fct:.3}±0.000"),
            format!("{}±0", offered(0)),
            format!("{}±0", offered(1)),
        ];
        assert_eq!(row, &expected.iter().map(String::as_str).collect::<Vec<_>>());
    }
    assert_eq!(table.len(), 3);
    assert!(said.out.contains("6 runs, medians ± standard deviations over the 2 runs of a point"), "{}", said.out);
    // The columns are of flows, by headings and metrics; a single run has the same table.
    for (scenario, lines) in [(sweep(), 3), (SMALL.to_owned(), 1)] {
        let said = run(&folder, scenario, &["--columns", "goodput,sent_packets,RTT p50"]);
        assert_eq!((said.status, rows(&said.out).len()), (0, lines), "{said:?}");
        for heading in ["flow", "goodput Mbit/s", "sent", "RTT p50 ms"] {
            assert!(said.out.contains(heading), "{heading}: {}", said.out);
        }
        assert!(rows(&said.out).iter().all(|row| row.contains(&"f.0")), "{}", said.out);
    }
    // The merged output of parts has it too.
    for part in ["0/2", "1/2"] {
        run(&folder, sweep(), &["--shard", part, "--out", &format!("part{}", &part[..1]), "-q"]);
    }
    let merge = ["merge", "part0", "part1", "--out", "whole", "--columns", paths];
    let merged = Said::from(ackclock().current_dir(&folder).args(merge).output().unwrap());
    assert_eq!((merged.status, rows(&merged.out)), (0, table), "{}", merged.err);
    for (columns, error) in [
        ("links.wyre.forward.utilization", "did you mean `links.wire.forward.utilization`?"),
        ("utilization", "did you mean `links.*.utilization`?"),
        ("sent_packet", "did you mean `sent_packets`?"),
        ("goodputs", "did you mean the heading `goodput`?"),
        ("goodput,", "a name is empty"),
        ("nothing", "expected one of `goodput_bps`, "),
    ] {
        let said = run(&folder, sweep(), &["--columns", columns]);
        assert!(said.status == 2 && said.err.contains(error) && said.out.is_empty(), "{columns}: {said:?}");
    }
    for flag in ["--json", "--quiet", "--show-config"] {
        let said = run(&folder, sweep(), &["--columns", "goodput", flag]);
        assert!(said.status == 2 && said.err.contains("cannot be used with"), "{said:?}");
    }
}

/// A sweep whose values have names, of which one is a label.
fn named() -> String {
    let small = SMALL.replace("delay = \"5ms\"", "delay = \"5ms\"\nqueue = \"pie\"");
    format!(
        "{small}[sweep]\naxes.\"links.wire.queue\" = [{{ label = \"drop-tail, 9p\", kind = \"pfifo\", limit = \"9p\" }}, \
         {{ kind = \"pie\" }}, {{ kind = \"pie\", ecn = true }}]\naxes.\"links.wire.rate\" = [{{ label = \"slow\", value = \
         \"1mbit\" }}, \"2mbit\"]\n[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nat_least = 1e9\n"
    )
}

#[test]
fn values_have_their_names_everywhere() {
    let folder = folder("sweep-names");
    let said = run(&folder, named(), &["--out", "out", "--expectations"]);
    assert_eq!(said.status, 1, "{}", said.err);
    for name in ["drop-tail, 9p", "pie ecn true", "slow", "2mbit"] {
        assert!(said.out.lines().any(|line| line.contains(name)), "{name}: {}", said.out);
    }
    assert!(said.err.contains("(links.wire.queue = drop-tail, 9p, links.wire.rate = slow"), "{}", said.err);
    assert!(!said.out.contains("kind") && !said.err.contains("kind"), "{}{}", said.out, said.err);
    let lines = json(&read(folder.join("out/summary.jsonl")));
    let labels =
        |index: usize| [&lines[index]["labels"]["links.wire.queue"], &lines[index]["labels"]["links.wire.rate"]];
    assert_eq!(labels(0), ["drop-tail, 9p", "slow"]);
    assert_eq!(labels(5), ["pie ecn true", "2mbit"]);
    assert_eq!(lines[0]["params"]["links.wire.queue"], serde_json::json!({ "kind": "pfifo", "limit": "9p" }));
    assert_eq!(lines[5]["expectations"][2]["labels"]["links.wire.queue"], "pie");
    // The CSV file has the same, where a label of a number stands beside it.
    let of = |args: &[&str]| -> String {
        let output = ackclock().current_dir(&folder).args(args).output().expect("the binary runs");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).expect("UTF-8")
    };
    let csv = of(&["export", "out", "--format", "csv"]);
    let header = "index,run,links.wire.queue,links.wire.rate,links.wire.rate unit,links.wire.rate label,id,";
    assert!(csv.starts_with(header), "{csv}");
    assert!(csv.contains("\n0,0,\"drop-tail, 9p\",1000000,bit/s,slow,f.0,"), "{csv}");
    assert!(csv.contains("\n5,0,pie ecn true,2000000,bit/s,2mbit,f.0,"), "{csv}");
    // In the page, and where two results are compared.
    of(&["report", "out", "-o", "page.html"]);
    let page = read(folder.join("page.html"));
    assert!(page.contains("\"values\":[\"drop-tail, 9p\",\"pie\",\"pie ecn true\"]"));
    let compared = of(&["compare", "out", "out"]);
    assert!(compared.contains("links.wire.queue = pie ecn true, links.wire.rate = 2mbit"), "{compared}");
}

#[test]
fn a_point_that_is_wrong_fails_and_the_others_are_done() {
    let folder = folder("sweep-wrong");
    let red = SMALL.replace("delay = \"5ms\"", "delay = \"5ms\"\nqueue = { kind = \"red\", limit = \"100kB\" }");
    let sweep = format!(
        "{red}[sweep]\naxes.\"links.wire.queue.min\" = [\"5kB\", \"20kB\"]\naxes.\"links.wire.queue.max\" = [\"15kB\", \"60kB\"]\n"
    );
    let said = run(&folder, &sweep, &["--out", "out"]);
    assert_eq!(said.status, 3, "{}", said.err);
    let note = "note: the point links.wire.queue.min = \"20kB\", links.wire.queue.max = \"15kB\" is wrong: ";
    assert!(said.err.contains(note) && said.err.contains("error: 1 of 4 runs failed"), "{}", said.err);
    let failed: Vec<bool> =
        json(&read(folder.join("out/summary.jsonl"))).iter().map(|run| run["failed"] == true).collect();
    assert_eq!(failed, [false, false, true, false]);
    let check = ackclock().current_dir(&folder).args(["check", "scenario.toml"]).output().expect("the binary runs");
    assert_eq!(check.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&check.stderr).contains("is wrong: links.wire.queue"));
    // With a condition nothing is wrong.
    let said = run(&folder, sweep.replace("[sweep]", "[sweep]\nwhere = \"queue.min < queue.max\""), &[]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.err.contains("note: `sweep.where` leaves out 1 of 4 points"), "{}", said.err);
}

#[test]
fn a_part_is_counted_as_a_part() {
    let folder = folder("sweep-part");
    let said = run(&folder, sweep(), &["--only", "1,3-4"]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert_eq!(said.out.lines().nth(1).map(|line| line.split(',').next()), Some(Some("3 runs")), "{}", said.out);
    let of = |args: &[&str]| {
        let output = ackclock().current_dir(&folder).args(["check", "-v", "scenario.toml"]).args(args).output();
        String::from_utf8(output.expect("the binary runs").stdout).expect("UTF-8")
    };
    // Three points, two runs each, of 67 full packets.
    let whole = of(&[]);
    assert!(whole.contains(": 3 points, 6 runs, ") && whole.contains(", 400 packets, "), "{whole}");
    assert!(whole.contains(", less than a second, about ") && whole.ends_with(" kB with --out\n"), "{whole}");
    let part = of(&["--only", "1,3-4"]);
    assert!(part.contains(": 3 points, 3 of 6 runs, ") && part.contains(", 200 packets, "), "{part}");
    assert!(of(&["--shard", "1/3"]).contains("2 of 6 runs"));
    let output = ackclock().current_dir(&folder).args(["check", "scenario.toml", "--only", "1"]).output();
    assert_eq!(output.expect("the binary runs").status.code(), Some(2), "only the line of -v shows a part");
}
