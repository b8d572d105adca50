//! The output of a run, and its end.

use std::fs;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;
use std::process::Stdio;

use crate::common::{SMALL, ackclock, folder, run, sweep};
use serde_json::Value;

#[test]
fn a_run_prints_its_flows_and_links() {
    let said = run(&folder("tables"), SMALL, &[]);
    assert_eq!((said.status, said.err.as_str()), (0, ""));
    for part in ["small\n", "2 s simulated, seed 1", "f.0 ", "wire.forward", "wire.reverse", "Jain's index"] {
        assert!(said.out.contains(part), "{part} in {}", said.out);
    }
}

#[test]
fn a_sweep_prints_a_line_for_each_flow_of_a_point() {
    let said = run(&folder("sweep_table"), sweep(), &[]);
    assert_eq!(said.status, 0, "{}", said.err);
    assert!(said.out.contains("6 runs, medians"), "{}", said.out);
    let delays: Vec<&str> = said.out.lines().filter(|line| line.contains("f.0")).map(|line| &line[..3]).collect();
    assert_eq!(delays, ["1ms", "5ms", "9ms"]);
}

#[test]
fn json_is_one_line_for_each_run_in_order() {
    let said = run(&folder("json"), sweep(), &["--json", "--threads", "2"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let seen: Vec<(&str, u64)> = lines
        .iter()
        .map(|run| (run["params"]["links.wire.delay"].as_str().unwrap(), run["run"].as_u64().unwrap()))
        .collect();
    assert_eq!(seen, [("1ms", 0), ("1ms", 1), ("5ms", 0), ("5ms", 1), ("9ms", 0), ("9ms", 1)]);
}

/// Two transfers one way, one the other way, and a call.
const MIXED: &str = r#"schema = 1
title = "mixed"
[run]
duration = "5s"
[links.wire]
rate = "5mbit"
delay = "10ms"
queue = "fq_codel"
[[flows]]
id = "down"
path = ["wire"]
count = 2
[[flows]]
id = "up"
path = ["wire"]
direction = "reverse"
[[flows]]
id = "voice"
path = ["wire"]
transport = "udp"
application = "voip"
"#;

#[test]
fn several_kinds_of_traffic_have_a_row_for_each_direction() {
    let folder = folder("kinds");
    let said = run(&folder, MIXED, &["--json"]);
    let summary: Value = serde_json::from_str(&said.out).expect("one JSON object");
    let rows = summary["kinds"].as_array().expect("kinds");
    let ids: Vec<&str> = rows.iter().filter_map(|row| row["id"].as_str()).collect();
    assert_eq!(ids, ["tcp.bulk.forward", "tcp.bulk.reverse", "udp.voip.forward"]);
    let flow = |number: usize, key: &str| summary["flows"][number][key].as_f64().expect("a number");
    let sum = flow(0, "goodput_bps") + flow(1, "goodput_bps");
    assert_eq!(rows[0]["goodput_bps"].as_f64(), Some(sum));
    let squares: f64 = [0, 1].map(|number| flow(number, "goodput_bps") * flow(number, "goodput_bps")).iter().sum();
    let jain = rows[0]["fairness_jain"].as_f64().expect("an index");
    assert!((jain - sum * sum / (2.0 * squares)).abs() < 1e-12, "{jain}");
    assert_eq!(rows[2]["delay_p95_ms"], summary["flows"][3]["datagrams"]["delay_ms"]["p95"]);
    assert_eq!(rows[2]["loss_ratio"], summary["flows"][3]["datagrams"]["loss_ratio"]);
    // The text of a run, and of a sweep, has the same values.
    let row = |text: &str, words: &[&str]| {
        let found = text.lines().find(|line| words.iter().all(|word| line.contains(word)));
        found.unwrap_or_else(|| panic!("{words:?} in {text}")).split_whitespace().map(str::to_owned).collect::<Vec<_>>()
    };
    let cells = row(&run(&folder, MIXED, &[]).out, &["tcp", "bulk", "forward"]);
    assert_eq!(cells[..5], ["tcp", "bulk", "forward", "2", &format!("{:.3}", sum / 1e6)]);
    let sweep = format!("{MIXED}[sweep]\naxes.\"links.wire.delay\" = [\"10ms\", \"20ms\"]\n");
    let cells = row(&run(&folder, sweep, &[]).out, &["10ms", "tcp", "bulk", "forward"]);
    assert_eq!(cells[..6], ["10ms", "tcp", "bulk", "forward", "2", &format!("{:.3}", sum / 1e6)]);
    // One kind is no table.
    let said = run(&folder, SMALL, &["--json"]);
    let summary: Value = serde_json::from_str(&said.out).expect("one JSON object");
    assert!(summary.get("kinds").is_none() && summary.get("responsiveness_rpm").is_none());
}

#[test]
fn responsiveness_is_in_the_text_and_a_metric() {
    let folder = folder("responsiveness");
    let text = "schema = 1\nrun.duration = \"10s\"\nlinks.wire = { rate = \"unlimited\", delay = \"15ms\" }\n\
                [[flows]]\nid = \"load\"\npath = [\"wire\"]\nnagle = false\n\
                application = { kind = \"load\", transfer = \"idle\" }\n\
                [[flows]]\nid = \"probe\"\npath = [\"wire\"]\nnagle = false\napplication = \"probe\"\n\
                [[expect]]\nmetric = \"responsiveness_rpm\"\nat_least = 2000\nat_most = 2000\n\
                [[expect]]\nmetric = \"responsiveness.foreign_rpm\"\nat_most = 1999\n";
    let said = run(&folder, text, &[]);
    // 30 ms each.
    assert!(
        said.out
            .lines()
            .any(|line| line.split_whitespace().take(7).eq(["2000", "2000", "2000", "30.0", "30.0", "30.0", "30.0"])),
        "{}",
        said.out
    );
    assert_eq!(said.status, 1);
    assert!(said.out.contains("2 checked, 1 missed"), "{}", said.out);
    assert!(said.err.contains("responsiveness.foreign_rpm is 2000"), "{}", said.err);
}

#[test]
fn the_keys_of_the_summary_are_a_contract() {
    let said = run(&folder("contract"), SMALL, &["--json"]);
    let summary: Value = serde_json::from_str(&said.out).expect("one JSON object");
    let keys = |value: &Value| value.as_object().expect("an object").keys().cloned().collect::<Vec<_>>().join(" ");
    assert_eq!(
        keys(&summary),
        "schema title seed run index run_seed clock duration_s params events packets flows links fairness_jain \
         fairness_jain_forward fairness_jain_reverse"
    );
    for key in
        "id direction cc host loss_detector goodput_bps throughput_bps rtt_ms cwnd_bytes sent_packets retransmitted_packets \
                spurious_retransmits timeouts fast_recoveries undos ece_acks reordering_max limited_s ca_state_s retransmissions \
                loss_declarations loss_declared_late_ms repair_rtts displacement start_s completed_s fct_s"
            .split_whitespace()
    {
        assert!(summary["flows"][0].get(key).is_some(), "{key}");
    }
    for key in
        "id queue offered enqueued dequeued marked dropped duplicated utilization bucket_empty sojourn_ms backlog_packets"
            .split_whitespace()
    {
        assert!(summary["links"][0].get(key).is_some(), "{key}");
    }
    assert_eq!(keys(&summary["flows"][0]["throughput_bps"]), "mean p5 p25 p50 p75 p95");
    assert_eq!(keys(&summary["flows"][0]["rtt_ms"]), "min p5 p25 p50 p75 p95 max samples");
    assert_eq!(keys(&summary["flows"][0]["cwnd_bytes"]), "p5 p25 p50 p75 p95");
    let flow = &summary["flows"][0];
    assert_eq!(keys(&flow["retransmissions"]), "needed spurious_reordering spurious_delay by_queue");
    assert_eq!(keys(&flow["ca_state_s"]), "open disorder cwr recovery loss");
    assert_eq!(keys(&flow["loss_declarations"]), "right blind wrong");
    assert_eq!(keys(&flow["displacement"]), "early on_time late min p5 p25 p50 p75 p95 max samples");
}

#[test]
fn lines_tell_their_number_and_the_seed_of_their_run() {
    let folder = folder("indices");
    let seeds = format!("{}axes.\"run.seed\" = [1, 2]\n", sweep());
    let said = run(&folder, seeds, &["--json", "--out", "out"]);
    assert_eq!(said.status, 0, "{}", said.err);
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    let indices: Vec<u64> = lines.iter().map(|line| line["index"].as_u64().unwrap()).collect();
    assert_eq!(indices, (0..12).collect::<Vec<_>>());
    // Points draw the same numbers, repetitions and seeds do not: 2 seeds times 2 repetitions.
    let of = |seed: u64, run: u64| lines.iter().filter(move |line| line["seed"] == seed && line["run"] == run);
    let mut drawn = Vec::new();
    for (seed, run) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let of: Vec<&str> = of(seed, run).map(|line| line["run_seed"].as_str().expect("text")).collect();
        assert!(of.len() == 3 && of.iter().all(|other| *other == of[0]), "{of:?}");
        assert!(of[0].len() == 16 && !drawn.contains(&of[0]));
        drawn.push(of[0]);
    }
    // The number is the one that `compare` takes.
    let said =
        ackclock().current_dir(&folder).args(["compare", "out:7", "out:10", "--json"]).output().expect("it runs");
    let compared: Value = serde_json::from_slice(&said.stdout).expect("JSON");
    let pair = &compared["runs"][0];
    assert_eq!((&pair["a"]["index"], &pair["b"]["index"]), (&lines[7]["index"], &lines[10]["index"]));
    assert_eq!(pair["a"]["run_seed"], lines[7]["run_seed"]);
}

#[test]
fn many_flows_are_summed_up_by_their_direction() {
    let reverse = "[[flows]]\nid = \"r\"\npath = [\"wire\"]\nbytes = \"100kB\"\ncount = 3\ndirection = \"reverse\"\n";
    let many = format!("{}{reverse}[sweep]\nrepeat = 2\n", SMALL.replace("id = \"f\"", "id = \"f\"\ncount = 7"));
    let said = run(&folder("ways"), &many, &[]);
    assert!(said.out.contains("\n7 flows forward ") && said.out.contains("\n3 flows reverse "), "{}", said.out);
    let one = many.replace("[sweep]\nrepeat = 2\n", "");
    let said = run(&folder("ways"), one, &[]);
    assert!(said.out.lines().nth(1).is_some_and(|line| line.ends_with(" reverse")), "{}", said.out);
    // Nothing arrives at all.
    let lossy = SMALL.replace("[[flows]]", "loss = { kind = \"iid\", probability = 1.0 }\n[[flows]]");
    let said = run(&folder("ways"), lossy, &[]);
    assert!(said.out.contains("Jain's index -\n"), "{} {}", said.out, said.err);
}

#[test]
fn a_missed_expectation_is_status_1_and_all_are_listed() {
    let expects = "[[expect]]\nmetric = \"flows.f.0.sent_packets\"\nat_most = 0\n\
                   [[expect]]\nmetric = \"fairness_jain\"\nat_least = 0\n\
                   [[expect]]\nmetric = \"flows.f.0.timeouts\"\nat_least = 1000\n";
    let said = run(&folder("missed_table"), format!("{}{expects}", sweep()), &["--json"]);
    assert_eq!(said.status, 1);
    assert_eq!(said.err.lines().count(), 12, "{}", said.err);
    let missed = said.err.lines().filter(|line| line.starts_with("expect missed: flows.f.0.sent_packets is "));
    assert!(missed.clone().all(|line| line.contains(", expected at most 0 (links.wire.delay = ")), "{}", said.err);
    assert_eq!(missed.count(), 6);
    let said = run(&folder("missed_table"), format!("{}{expects}", sweep()), &[]);
    assert!(said.out.ends_with("expectations: 18 checked, 12 missed\n"), "{}", said.out);
}

#[test]
fn a_report_fits_a_page_and_ends_with_what_can_be_done_next() {
    let folder = folder("next");
    let met = format!("{}[[expect]]\nmetric = \"fairness_jain\"\nat_least = 0\n", sweep());
    let end = |args: &[&str]| {
        let said = run(&folder, &met, args);
        assert!(said.out.lines().all(|line| args.contains(&"--json") || line.chars().count() <= 100), "{}", said.out);
        said.out.split_once("expectations: 6 checked, all met\n").map(|(_, end)| end.to_owned())
    };
    let next = end(&[]).expect("an end");
    assert!(
        ["\nnext:\n", "  --out out ", "  --expectations ", "  ackclock list "].iter().all(|part| next.contains(part))
    );
    let next = end(&["--expectations", "--out", "kept"]).expect("an end");
    assert!(next.contains("  ackclock report kept ") && !next.contains("  --expectations "), "{next}");
    assert_eq!((end(&["--json"]), end(&["--quiet"])), (None, None));
}

#[test]
fn expectations_tell_the_spread_over_the_runs() {
    let expects = "[[expect]]\nmetric = \"flows.f.0.sent_packets\"\nruns = \"median\"\nat_least = 1\n\
                   [[expect]]\nmetric = \"flows.f.0.acked_bytes\"\nratio_to = \"flows.f.0.delivered_bytes\"\nto = \"2s\"\n\
                   runs = \"mean\"\nat_most = 0.5\nwhen = { \"links.wire.delay\" = \"5ms\" }\n";
    let scenario = format!("{}{expects}", sweep());
    let short = run(&folder("spread"), &scenario, &[]);
    assert!(!short.out.contains("p75"), "{}", short.out);
    let said = run(&folder("spread"), &scenario, &["--expectations"]);
    assert_eq!((said.status, &said.err), (1, &short.err));
    assert_eq!(
        said.err,
        "expect missed: mean over 2 runs of flows.f.0.acked_bytes relative to flows.f.0.delivered_bytes from 0s to 2s is 1, \
         expected at most 0.5 (links.wire.delay = 5ms)\n"
    );
    let lines: Vec<&str> = said.out.lines().skip_while(|line| !line.contains("p75")).collect();
    assert!(
        lines[0].split_whitespace().eq(["delay", "met", "found", "median", "p25", "p75", "min", "max"]),
        "{lines:?}"
    );
    assert_eq!(lines[2], "flows.f.0.sent_packets: median at least 1");
    assert!(lines[3..6].iter().all(|row| row.contains("yes, 2 of 2")), "{lines:?}");
    assert_eq!(lines[6], "flows.f.0.acked_bytes relative to flows.f.0.delivered_bytes from 0s to 2s: mean at most 0.5");
    assert!(lines[7].starts_with("5ms") && lines[7].contains("NO, 0 of 2"), "{lines:?}");
    assert!(said.out.ends_with("expectations: 4 checked, 1 missed\n"), "{}", said.out);
    let said = run(&folder("spread"), &scenario, &["--json"]);
    let lines: Vec<Value> = said.out.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect();
    // Known with the last run, and in its line.
    assert!(lines[..5].iter().all(|run| run.get("expectations").is_none()));
    let all = lines[5]["expectations"].as_array().expect("expectations");
    assert_eq!(all.len(), 4);
    assert_eq!((&all[1]["params"]["links.wire.delay"], &all[1]["met"]), (&"5ms".into(), &true.into()));
    assert_eq!((&all[3]["found"], &all[3]["spread"]["max"]), (&1.0.into(), &1.0.into()));
    assert!(lines[0]["windows"][0]["flows"][0]["goodput_bps"].as_f64().is_some_and(|goodput| goodput > 0.0));
}

#[test]
fn the_resolved_scenario_gives_the_same_run() {
    let folder = folder("resolved");
    let args = ["--set", "links.wire.delay=7ms", "--seed", "9"];
    let resolved = run(&folder, SMALL, &[&args[..], &["--show-config"]].concat());
    assert_eq!(resolved.status, 0, "{}", resolved.err);
    assert!(resolved.out.contains("delay = \"7ms\"") && resolved.out.contains("seed = 9"), "{}", resolved.out);
    let first = run(&folder, SMALL, &[&args[..], &["--json"]].concat());
    assert_eq!(first.status, 0, "{}", first.err);
    assert_eq!(run(&folder, resolved.out, &["--json"]).out, first.out);
}

#[test]
fn an_unused_link_changes_no_flow() {
    let folder = folder("unused");
    let lossy = SMALL.replace("delay =", "loss = { kind = \"iid\", probability = 0.02 }\ndelay =");
    let more = format!("{lossy}\n[links.aside]\nrate = \"1mbit\"\nloss = {{ kind = \"iid\", probability = 0.5 }}\n");
    let [alone, with] = [lossy, more].map(|text| {
        let said = run(&folder, text, &["--json"]);
        assert_eq!(said.status, 0, "{}", said.err);
        let summary: Value = serde_json::from_str(&said.out).unwrap();
        (summary["flows"].clone(), summary["links"][0].clone(), summary["links"][1].clone())
    });
    assert_eq!(alone, with);
}

#[test]
fn a_reader_that_leaves_is_no_error() {
    let folder = folder("broken_pipe");
    let long = sweep().replace("repeat = 2", "repeat = 2000");
    fs::write(folder.join("scenario.toml"), long).unwrap();
    let mut child = ackclock()
        .current_dir(&folder)
        .args(["--scenario", "scenario.toml", "--json"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut line = String::new();
    let mut stdout = BufReader::new(child.stdout.take().expect("a pipe"));
    stdout.read_line(&mut line).expect("one line");
    assert!(line.starts_with('{'));
    drop(stdout);
    let mut err = String::new();
    child.stderr.take().expect("a pipe").read_to_string(&mut err).expect("UTF-8");
    assert_eq!((child.wait().expect("it ends").code(), err.as_str()), (Some(0), ""));
}

/// A reader that leaves has what it wanted; on a full disk there are half of the results.
#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_behind_standard_output_is_an_error() {
    let folder = folder("full_disk");
    fs::write(folder.join("scenario.toml"), sweep()).unwrap();
    fs::write(folder.join("script.pkt"), "0 socket(..., SOCK_STREAM, IPPROTO_TCP) = 3\n").unwrap();
    let scenario = ["--scenario", "scenario.toml"];
    for args in [&["--json"][..], &["--show-config"], &[]]
        .map(|more| [&scenario[..], more].concat())
        .into_iter()
        .chain([vec!["packetdrill", "script.pkt"], vec!["packetdrill", "--tap", "script.pkt"]])
    {
        let full = fs::OpenOptions::new().write(true).open("/dev/full").expect("it is there");
        let output = ackclock().current_dir(&folder).args(&args).stdout(full).output().expect("the binary runs");
        let err = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(2), "{args:?}: {err}");
        assert_eq!(err.lines().count(), 1, "{args:?}: {err}");
        assert!(err.starts_with("error: cannot write to standard output: "), "{args:?}: {err}");
    }
}

#[test]
fn help_and_version() {
    for (flag, part) in [("--help", "--show-config"), ("-h", "Exit status"), ("--version", env!("CARGO_PKG_VERSION"))] {
        let output = ackclock().arg(flag).output().expect("the binary runs");
        assert_eq!(output.status.code(), Some(0));
        assert!(String::from_utf8_lossy(&output.stdout).contains(part), "{flag}");
    }
}

#[test]
fn every_smoke_scenario_meets_its_expectations() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios/smoke");
    let mut files = 0;
    for file in fs::read_dir(folder).expect("the smoke scenarios") {
        let path = file.expect("a file").path();
        if path.extension().is_some_and(|extension| extension == "toml") {
            let output = ackclock().arg("--scenario").arg(&path).output().expect("the binary runs");
            let (out, err) = (String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
            assert_eq!(output.status.code(), Some(0), "{}\n{out}\n{err}", path.display());
            files += 1;
        }
    }
    assert!(files >= 6, "{files}");
}

/// Of many flows of a single run the table lists the first and the last; all are in the JSON.
#[test]
fn many_flows_are_listed_at_either_end() {
    let (folder, scenario) = (folder("run_many_flows"), SMALL.replace("bytes = \"100kB\"\n", "count = 203\n"));
    let lines = |args: &[&str]| {
        let said = run(&folder, &scenario, args);
        (said.out.lines().filter(|line| line.starts_with("f.")).count(), said.out)
    };
    let (listed, out) = lines(&[]);
    assert!(out.contains("\n3 flows between the first and the last are left out; --all-rows lists them\n"), "{out}");
    assert!(out.contains("\nf.99 ") && !out.contains("\nf.100 ") && out.contains("\nf.103 "), "{out}");
    let (all, out) = lines(&["--all-rows"]);
    assert!(!out.contains("left out") && listed % 200 == 0 && all * 200 == listed * 203, "{listed} {all}");
}
