//! `ackclock export`: what other programs get agrees with the summary, and they read it.

use std::fs::{self, File};
use std::path::Path;
use std::process::Command;

use crate::common::{Said, ackclock, folder, run, sweep};
use flate2::read::GzDecoder;
use serde_json::Value;

/// A flow in each direction, and a call, over a queue that drops.
const BOTH: &str = r#"
schema = 1
title  = "both ways"
run    = { duration = "8s" }
record = { queue = true, series = "200ms" }

[links.wire]
rate  = "4mbit"
delay = "20ms"
queue = { kind = "pfifo", limit = "25p" }

[[flows]]
id    = "f"
count = 2
path  = ["wire"]

[[flows]]
id          = "call"
path        = ["wire"]
transport   = "udp"
application = "voip"

[[flows]]
id        = "back"
path      = ["wire"]
direction = "reverse"
start     = "1s"
"#;

fn export(folder: &Path, args: &[&str]) -> Said {
    ackclock().current_dir(folder).arg("export").args(args).output().expect("the binary runs").into()
}

fn summary(folder: &Path) -> Value {
    serde_json::from_slice(&fs::read(folder.join("out/summary.json")).unwrap()).unwrap()
}

/// A log without its header: times, events, and the numbers behind them.
fn log(text: &str) -> Vec<(u64, char, Vec<u64>)> {
    let lines = text.lines().filter(|line| !line.starts_with('#'));
    lines
        .map(|line| {
            let mut words = line.split(' ');
            let (time, event) = (words.next().unwrap().parse().unwrap(), words.next().unwrap());
            (time, event.parse().unwrap(), words.map(|word| word.parse().unwrap()).collect())
        })
        .collect()
}

const FORWARD: [&str; 5] = ["out", "--format", "mahimahi", "--link", "wire.forward"];

#[test]
fn a_log_of_mahimahi_has_every_packet_and_opportunity() {
    for queue in ["{ kind = \"pfifo\", limit = \"25p\" }", "{ kind = \"codel\", limit = \"25p\" }"] {
        let folder = folder("export_mahimahi");
        assert_eq!(
            run(&folder, BOTH, &["--out", "out", "-q", "--set", &format!("links.wire.queue={queue}")]).status,
            0
        );
        let link = &summary(&folder)["links"][0];
        let said = export(&folder, &[&FORWARD[..], &["--drops"]].concat());
        assert_eq!((said.status, &*said.err), (0, ""), "{queue}");
        assert!(said.out.contains("\n# base timestamp: 0\n"), "{queue}");
        let events = log(&said.out);
        assert!(events.is_sorted_by_key(|event| event.0), "{queue}");
        let count = |kind| events.iter().filter(|event| event.1 == kind).count() as u64;
        let dropped: u64 = link["dropped"].as_object().unwrap().values().map(|count| count.as_u64().unwrap()).sum();
        assert_eq!((count('+'), count('-')), (link["offered"].as_u64().unwrap(), link["dequeued"].as_u64().unwrap()));
        assert!(dropped > 10, "{queue}");
        assert_eq!(count('d'), dropped, "{queue}");
        // 4 Mbit/s for 8 s, 1504 bytes each.
        assert_eq!(count('#'), 4_000_000 * 8 / (1504 * 8));
        // The millisecond of departure less that of arrival: less than 1 ms from the time between.
        let mut delays: Vec<u64> = events.iter().filter(|event| event.1 == '-').map(|event| event.2[1]).collect();
        delays.sort_unstable();
        let of_summary = link["sojourn_ms"]["max"].as_f64().unwrap();
        assert!((delays[delays.len() - 1] as f64 - of_summary).abs() < 1.0, "{queue}: {of_summary}");
        let median = (delays[delays.len() / 2] as f64, link["sojourn_ms"]["p50"].as_f64().unwrap());
        assert!((median.0 - median.1).abs() < 1.5, "{queue}: {median:?}");
        // Without drops there is nothing that mm-throughput-graph refuses; the rest is the same.
        let plain = export(&folder, &FORWARD);
        assert_eq!(log(&plain.out), events.into_iter().filter(|event| event.1 != 'd').collect::<Vec<_>>());
    }
}

#[test]
fn opportunities_follow_a_rate_that_changes() {
    let folder = folder("export_rates");
    let schedule = "links.wire.schedule=[{ at = \"4s\", rate = \"1504kbit\" }]";
    let scenario = BOTH.replace("rate  = \"4mbit\"", "rate  = \"3008kbit\"");
    assert_eq!(run(&folder, scenario, &["--out", "out", "-q", "--set", schedule]).status, 0);
    let events = log(&export(&folder, &FORWARD).out);
    let count = |from, to| events.iter().filter(|event| event.1 == '#' && (from..to).contains(&event.0)).count();
    // 1504 bytes in 4 ms, then in 8 ms; that at 4 s and that at 8 s complete what was before.
    assert_eq!((count(0, 4000), count(4000, 8000), count(8000, 9000)), (999, 500, 1));
}

#[test]
fn a_file_of_flent_has_the_goodput_of_every_flow() {
    let folder = folder("export_flent");
    assert_eq!(run(&folder, BOTH, &["--out", "out", "-q"]).status, 0);
    assert_eq!(export(&folder, &["out", "--format", "flent", "-o", "x.flent.gz"]).status, 0);
    let read = || -> Value {
        serde_json::from_reader(GzDecoder::new(File::open(folder.join("x.flent.gz")).unwrap())).unwrap()
    };
    let data = read();
    assert_eq!((&data["version"], &data["metadata"]["NAME"]), (&4.into(), &"rrul_be_nflows".into()));
    assert_eq!((&data["metadata"]["TITLE"], &data["metadata"]["TOTAL_LENGTH"]), (&"both ways".into(), &8.0.into()));
    let x: Vec<f64> = serde_json::from_value(data["x_values"].clone()).unwrap();
    assert_eq!(x.len(), 40);
    assert!(x.iter().zip(1..).all(|(&x, number)| (x - 0.2 * f64::from(number)).abs() < 1e-9), "{x:?}");
    let summary = summary(&folder);
    for (series, flow) in
        [("TCP upload BE::1", 0), ("TCP upload BE::2", 1), ("UDP upload::1", 2), ("TCP download BE::1", 3)]
    {
        let (flow, values) = (&summary["flows"][flow], data["results"][series].as_array().unwrap());
        assert_eq!(values.len(), x.len(), "{series}");
        assert_eq!(data["metadata"]["SERIES_META"][series]["ID"], flow["id"]);
        // Before a flow starts there is no value.
        assert_eq!(
            values.iter().take_while(|value| value.is_null()).count(),
            if series.contains("down") { 5 } else { 0 }
        );
        let raw = data["raw_values"][series].as_array().unwrap();
        let of = |point: &Value, key: &str| point[key].as_f64().unwrap();
        let megabits: f64 = raw.iter().map(|point| of(point, "val") * of(point, "dur")).sum();
        let expected = flow["delivered_bytes"].as_f64().unwrap() * 8e-6;
        assert!((megabits - expected).abs() < 1e-3 && expected > 0.1, "{series}: {megabits} {expected}");
    }
    let at = |series: &str, place: usize| data["results"][series][place].as_f64().unwrap();
    for place in [10, 39] {
        let [a, b, c] = ["TCP upload BE::1", "TCP upload BE::2", "TCP download BE::1"].map(|series| at(series, place));
        assert!((at("TCP upload sum", place) - (a + b)).abs() < 1e-9);
        assert!((at("TCP upload avg", place) - (a + b) / 2.0).abs() < 1e-9);
        assert!((at("TCP totals", place) - (a + b + c)).abs() < 1e-9);
    }
    let drops: f64 = (0..40).map(|place| at("qdisc_stats_wire.forward::dropped", place)).sum();
    assert_eq!(Some(drops), summary["links"][0]["dropped"]["limit"].as_f64());
    // Every packet of a kind of its own waits between nothing and 25 packets at 4 Mbit/s.
    let rtt = data["results"]["Ping (ms) ICMP"].as_array().unwrap().iter().filter_map(Value::as_f64);
    assert!(rtt.into_iter().all(|rtt| (40.0..40.0 + 2.0 * 26.0 * 3.1).contains(&rtt)));
}

#[test]
fn what_clients_ask_for_is_a_download_of_flent() {
    let folder = folder("export_clients");
    let mut scenario = "schema = 1\nrun.duration = \"4s\"\nrecord.series = \"200ms\"\n\
                        links.wire = { rate = \"10mbit\", delay = \"10ms\" }\n"
        .to_owned();
    for (id, application, direction) in [
        ("asks", "{ kind = \"request\", size = \"300B\", response = \"30kB\" }", "forward"),
        ("browses", "{ kind = \"web\", page = \"60kB\", objects = 4, object = \"20kB\" }", "forward"),
        ("watches", "{ kind = \"video\", ladder = [\"500kbit\"], segment = \"1s\" }", "reverse"),
        ("loads", "{ kind = \"load\", transfer = \"download\" }", "forward"),
        ("stores", "{ kind = \"load\", transfer = \"upload\" }", "forward"),
    ] {
        scenario += &format!(
            "[[flows]]\nid = \"{id}\"\npath = [\"wire\"]\napplication = {application}\ndirection = \"{direction}\"\n"
        );
    }
    assert_eq!(run(&folder, scenario, &["--out", "out", "-q"]).status, 0);
    let output = ackclock().current_dir(&folder).args(["export", "out", "--format", "flent"]).output().unwrap();
    let data: Value = serde_json::from_reader(GzDecoder::new(&*output.stdout)).unwrap();
    let summary = summary(&folder);
    // The data requested by a player in reverse goes forward.
    for (series, id, bytes) in [
        ("TCP download BE::1", "asks.0", "/application/requests/response_bytes"),
        ("TCP download BE::2", "browses.0", "/application/pages/response_bytes"),
        ("TCP upload BE::1", "watches.0", "/application/video/response_bytes"),
        ("TCP download BE::3", "loads.0", "/application/load/bytes"),
        ("TCP upload BE::2", "stores.0", "/delivered_bytes"),
    ] {
        assert_eq!(data["metadata"]["SERIES_META"][series]["ID"], id, "{series}");
        let flow = summary["flows"].as_array().unwrap().iter().find(|flow| flow["id"] == id).unwrap();
        let raw = data["raw_values"][series].as_array().unwrap();
        let of = |point: &Value, key: &str| point[key].as_f64().unwrap();
        let megabits: f64 = raw.iter().map(|point| of(point, "val") * of(point, "dur")).sum();
        let expected = flow.pointer(bytes).and_then(Value::as_f64).unwrap() * 8e-6;
        assert!((megabits - expected).abs() < 1e-3 && expected > 1.0, "{series}: {megabits} {expected}");
        // Windows are those of the client, which sends requests.
        let sends = id == "stores.0";
        assert!(raw.iter().all(|point| point["cwnd_bytes"].is_number() == sends), "{series}");
        assert!(raw.iter().any(|point| point["rtt_ms"].is_number()), "{series}");
    }
    assert_eq!(data["metadata"]["TEST_PARAMETERS"]["download_streams"], "3");
}

#[test]
fn the_ping_of_flent_is_that_of_the_run() {
    let folder = folder("export_ping");
    let scenario = "schema = 1\nrun = { duration = \"3s\" }\nrecord = { series = \"500ms\" }\n[links.wire]\n\
                    rate = \"4mbit\"\ndelay = \"5ms\"\nqueue = \"fq_codel\"\n\
                    [[flows]]\nid = \"f\"\npath = [\"wire\"]\n[[flows]]\nid = \"ping\"\npath = [\"wire\"]\n\
                    transport = \"udp\"\napplication = { kind = \"ping\", interval = \"100ms\" }\n";
    assert_eq!(run(&folder, scenario, &["--out", "out", "-q"]).status, 0);
    let output = ackclock().current_dir(&folder).args(["export", "out", "--format", "flent"]).output().unwrap();
    let data: Value = serde_json::from_reader(GzDecoder::new(&*output.stdout)).unwrap();
    assert!(data["results"].get("UDP upload::1").is_none());
    let series = fs::read_to_string(folder.join("out/series.csv")).unwrap();
    let rows: Vec<Vec<&str>> = series.lines().map(|row| row.split(',').collect()).collect();
    let column = rows[0].iter().position(|&name| name == "rtt_ms").unwrap();
    let of_ping = rows.iter().filter(|row| row[3] == "ping.0").map(|row| row[column].parse::<f64>().unwrap());
    let found: Vec<f64> = serde_json::from_value(data["results"]["Ping (ms) ICMP"].clone()).unwrap();
    assert_eq!(found, of_ping.collect::<Vec<_>>());
    assert_eq!(found.len(), 6);
}

#[test]
fn one_direction_is_a_test_of_its_own_with_jains_index() {
    for (direction, name, prefix) in [("forward", "tcp_nup", "TCP upload"), ("reverse", "tcp_ndown", "TCP download")] {
        let folder = folder("export_direction");
        let scenario = format!(
            "schema = 1\nrun = {{ duration = \"3s\" }}\nrecord = {{ series = \"1s\" }}\n[links.wire]\nrate = \"4mbit\"\n\
             delay = \"5ms\"\n[[flows]]\nid = \"f\"\ncount = 3\npath = [\"wire\"]\ndirection = \"{direction}\"\n"
        );
        assert_eq!(run(&folder, scenario, &["--out", "out", "-q"]).status, 0);
        let output = ackclock().current_dir(&folder).args(["export", "out", "--format", "flent"]).output().unwrap();
        let data: Value = serde_json::from_reader(GzDecoder::new(&*output.stdout)).unwrap();
        assert_eq!(data["metadata"]["NAME"], name);
        for place in 0..3 {
            let of = |series: &str| data["results"][format!("{prefix}{series}")][place].as_f64().unwrap();
            let flows = ["::1", "::2", "::3"].map(of);
            let squares: f64 = flows.iter().map(|flow| flow * flow).sum();
            let sum: f64 = flows.iter().sum();
            assert!((of(" fairness") - sum * sum / (3.0 * squares)).abs() < 1e-9, "{flows:?}");
            assert!((of(" sum") - sum).abs() < 1e-9 && sum > 3.0, "{flows:?}");
        }
    }
}

#[test]
fn a_run_of_a_sweep_is_chosen_by_its_number() {
    let folder = folder("export_sweep");
    let scenario = sweep() + "[record]\nseries = \"100ms\"\nqueue = true\n";
    assert_eq!(run(&folder, &scenario, &["--out", "out", "-q"]).status, 0);
    let of = |run: &str| export(&folder, &[&FORWARD[..], &["--run", run]].concat());
    for (number, params) in [("0", "1ms"), ("5", "9ms")] {
        let said = of(number);
        assert_eq!(said.status, 0, "{said:?}");
        assert!(said.out.contains(&format!("run {number}, ")) && said.out.contains(params), "{}", &said.out[..300]);
    }
    for (args, error) in [
        (&FORWARD[..], "error: out: it is a sweep of 6 runs; expected --run N, from 0 to 5\n"),
        (&[&FORWARD[..], &["--run", "6"]].concat(), "error: --run 6: expected a run from 0 to 5\n"),
    ] {
        let said = export(&folder, args);
        assert_eq!((said.status, &*said.out, &*said.err), (2, "", error));
    }
}

#[test]
fn what_cannot_be_exported_is_said() {
    let folder = folder("export_bad");
    let said = |args: &[&str]| {
        let said = export(&folder, args);
        assert_eq!((said.status, &*said.out), (2, ""), "{args:?}");
        said.err
    };
    let flent = ["out", "--format", "flent"];
    assert_eq!(said(&flent), "error: out is not an ackclock output directory (no manifest.json)\n");
    assert_eq!(run(&folder, crate::common::SMALL, &["--out", "out", "-q"]).status, 0);
    let lacks = "error: out: the run lacks a record; expected one with `[record] ";
    assert_eq!(said(&flent), format!("{lacks}series = \"100ms\"`\n"));
    assert_eq!(said(&FORWARD), format!("{lacks}queue = true`\n"));
    assert!(said(&["out", "--format", "mahimahi"]).contains("--link"));
    let record = "record={ queue = [\"wire.reverse\"], series = \"100ms\" }";
    assert_eq!(run(&folder, crate::common::SMALL, &["--out", "out", "-q", "--set", record]).status, 0);
    assert_eq!(said(&FORWARD), format!("{lacks}queue = [\"wire.forward\"]`\n"));
    let unknown = ["out", "--format", "mahimahi", "--link", "wire"];
    let expected = "error: --link wire: there is no such link direction; expected one of wire.forward, wire.reverse\n";
    assert_eq!(said(&unknown), expected);
    assert!(said(&[&flent[..], &["--drops"]].concat()).contains("are for --format mahimahi"));
    assert!(said(&[&flent[..], &["--flow", "f"]].concat()).contains("--flow is for --format spp and estats"));
    for (format, key) in [("spp", "pcap = [\"f.0\"]"), ("estats", "tcp = true")] {
        assert!(said(&["out", "--format", format]).contains("--flow"));
        assert_eq!(
            said(&["out", "--format", format, "--flow", "x"]),
            "error: --flow x: the run has no such flow; expected one of f.0\n"
        );
        assert_eq!(said(&["out", "--format", format, "--flow", "f.0"]), format!("{lacks}{key}`\n"));
    }
    assert!(said(&[&flent[..], &["-o", "out"]].concat()).contains("it is a directory"));
    // Files that were changed.
    let series = folder.join("out/series.csv");
    let text = fs::read_to_string(&series).unwrap();
    fs::write(&series, text.replacen("0.200000000", "x", 1)).unwrap();
    let changed = said(&flent);
    assert!(changed.contains("out/series.csv, line ") && changed.contains("`to_s` is `x`; expected"), "{changed}");
    fs::write(&series, text.replacen("goodput_bps", "goodput", 1)).unwrap();
    assert_eq!(said(&flent), "error: out/series.csv: it has no column `goodput_bps`\n");
}

/// A flow that loses packets and whose receiver delays ACKs, and what its sender measures.
const PAIRS: &str = "record={ pcap = [\"f.0\", \"back\"], tcp = true }";

#[test]
fn packet_pairs_measure_what_the_sender_does() {
    let folder = folder("export_spp");
    assert_eq!(run(&folder, BOTH, &["--out", "out", "-q", "--set", PAIRS]).status, 0);
    for flow in ["f.0", "back.0"] {
        let said = export(&folder, &["out", "--format", "spp", "--flow", flow]);
        assert_eq!((said.status, &*said.err), (0, ""));
        let pairs = said.out.lines().map(|line| {
            let (at, rtt) = line.split_once(' ').unwrap();
            (at.parse::<f64>().unwrap(), rtt.parse::<f64>().unwrap() * 1e3)
        });
        let (times, mut rtts): (Vec<f64>, Vec<f64>) = pairs.unzip();
        rtts.sort_by(f64::total_cmp);
        let summary = summary(&folder);
        let of_sender =
            &summary["flows"].as_array().unwrap().iter().find(|known| known["id"] == flow).unwrap()["rtt_ms"];
        let samples = of_sender["samples"].as_u64().unwrap() as f64;
        assert!((0.9..1.2).contains(&(rtts.len() as f64 / samples)), "{} {samples}", rtts.len());
        assert!(times.iter().all(|&at| (0.0..8.0).contains(&at)));
        // SPP knows no data.
        for (share, name) in [(0.05, "p5"), (0.5, "p50"), (0.95, "p95")] {
            let (pair, sample) = (rtts[(rtts.len() as f64 * share) as usize], of_sender[name].as_f64().unwrap());
            assert!((pair / sample - 1.0).abs() < 0.03, "{flow} {name}: {pair} {sample}");
        }
        // The pair of the handshake is no sample of data. Samples of retransmissions are by timestamps, in
        // whole milliseconds (tcp_ack_update_rtt).
        let least = of_sender["min"].as_f64().unwrap();
        assert!((40.0..least + 1.0).contains(&rtts[0]), "{} {least}", rtts[0]);
    }
}

#[test]
fn estats_end_with_the_numbers_of_the_summary() {
    let folder = folder("export_estats");
    assert_eq!(run(&folder, BOTH, &["--out", "out", "-q", "--set", PAIRS]).status, 0);
    let said = export(&folder, &["out", "--format", "estats", "--flow", "f.0"]);
    assert_eq!((said.status, &*said.err), (0, ""));
    let mut lines = said.out.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let (names, lines) = (lines.next().unwrap(), lines.collect::<Vec<_>>());
    let column = |name: &str| names.iter().position(|known| *known == name).unwrap_or_else(|| panic!("no {name}"));
    let last = |name: &str| lines[lines.len() - 1][column(name)].parse::<u64>().unwrap();
    let summary = summary(&folder);
    let flow = &summary["flows"][0];
    let number = |value: &Value| value.as_u64().unwrap();
    assert_eq!(last("CountRTT"), number(&flow["rtt_ms"]["samples"]));
    assert_eq!(last("SegsRetrans"), number(&flow["retransmitted_packets"]));
    assert!(last("SegsRetrans") > 10 && last("OctetsRetrans") <= 1448 * last("SegsRetrans"));
    assert_eq!(last("Timeouts"), number(&flow["timeouts"]));
    assert!(last("FastRetran") > 0 && last("CongSignals") >= last("FastRetran") + last("Timeouts"));
    for name in ["Time", "ThruOctetsAcked", "SegsRetrans", "CongSignals"] {
        let values = lines.iter().map(|line| line[column(name)].parse::<f64>().unwrap());
        assert!(values.is_sorted(), "{name}");
    }
}

/// A program's output to both streams, or `None` where it is not installed.
#[allow(clippy::print_stderr, reason = "a test that is skipped says so")]
fn output(folder: &Path, program: &str, args: &[&str]) -> Option<(bool, Vec<u8>, String)> {
    let Ok(output) = Command::new(program).current_dir(folder).args(args).output() else {
        eprintln!("skipped: no {program} in PATH");
        return None;
    };
    Some((output.status.success(), output.stdout, String::from_utf8_lossy(&output.stderr).into_owned()))
}

#[test]
fn mahimahis_scripts_agree_with_the_summary() {
    let folder = folder("export_scripts");
    assert_eq!(run(&folder, BOTH, &["--out", "out", "-q"]).status, 0);
    assert_eq!(export(&folder, &[&FORWARD[..], &["-o", "wire.log"]].concat()).status, 0);
    let link = &summary(&folder)["links"][0];
    // The programs need gnuplot for their figures, but print their numbers before.
    let Some((_, _, printed)) = output(&folder, "mm-throughput-graph", &["500", "wire.log"]) else { return };
    assert!(printed.starts_with("Average capacity: 4.00 Mbits/s\n"), "{printed}");
    let used = printed.split_once('(').and_then(|(_, rest)| rest.split_once("% utilization")).unwrap().0;
    let expected = link["utilization"].as_f64().unwrap() * 100.0;
    assert!((used.parse::<f64>().unwrap() - expected).abs() < 0.2, "{printed} {expected}");
    let p95 = link["sojourn_ms"]["p95"].as_f64().unwrap();
    for printed in [Some(printed), output(&folder, "mm-delay-graph", &["wire.log"]).map(|printed| printed.2)] {
        let Some(printed) = printed else { return };
        let (_, rest) = printed.split_once("per-packet queueing delay: ").unwrap();
        let delay: f64 = rest.split(' ').next().unwrap().parse().unwrap();
        assert!((delay - p95).abs() < 1.5, "{delay} {p95}");
    }
}

#[test]
fn flent_plots_and_agrees_with_the_summary() {
    let folder = folder("export_flent_plots");
    assert_eq!(run(&folder, BOTH, &["--out", "out", "-q"]).status, 0);
    assert_eq!(export(&folder, &["out", "--format", "flent", "-o", "x.flent.gz"]).status, 0);
    let Some((ok, printed, errors)) = output(&folder, "flent", &["-i", "x.flent.gz", "-f", "summary"]) else { return };
    let printed = String::from_utf8(printed).unwrap();
    assert!(ok && !errors.contains("ERROR") && !errors.contains("WARNING"), "{errors}");
    for (series, flow) in [("TCP upload BE::1", 0), ("TCP upload BE::2", 1), ("TCP download BE::1", 3)] {
        let line = printed.lines().find(|line| line.trim().starts_with(series)).expect(series);
        let mean: f64 = line.split_once(" : ").unwrap().1.split_whitespace().next().unwrap().parse().unwrap();
        let expected = summary(&folder)["flows"][flow]["goodput_bps"].as_f64().unwrap() * 1e-6;
        assert!((mean - expected).abs() < 0.02, "{series}: {mean} {expected}");
    }
    for plot in ["totals", "upload", "tcp_rtt", "backlog", "drops"] {
        let (ok, _, errors) = output(&folder, "flent", &["-i", "x.flent.gz", "-p", plot, "-o", "x.png"]).unwrap();
        assert!(ok && !errors.contains("ERROR") && !errors.contains("Unable"), "{plot}: {errors}");
        let picture = fs::read(folder.join("x.png")).unwrap();
        assert!(picture.starts_with(b"\x89PNG") && picture.len() > 10_000, "{plot}");
        fs::remove_file(folder.join("x.png")).unwrap();
    }
}

#[test]
fn a_table_has_all_runs_with_their_parameters() {
    let folder = folder("export-csv");
    let axes = "axes.\"links.wire.rate\" = [\"10mbit\", \"2.5mbit\"]\naxes.\"flows.f.cc\" = [\"cubic\", \"newreno\"]\n\
                axes.\"links.wire.queue.limit\" = [\"50p\", \"60kB\"]\n";
    let text = format!("{}[record]\nseries = \"500ms\"\n[sweep]\n{axes}", crate::common::SMALL);
    assert_eq!(run(&folder, text, &["--out", "out", "-q"]).status, 0);
    let table = |args: &[&str]| -> (Vec<String>, Vec<Vec<String>>) {
        let said = export(&folder, &[&["out", "--format", "csv"], args].concat());
        assert_eq!((said.status, said.err.as_str()), (0, ""), "{args:?}");
        let mut rows = said.out.lines().map(|line| line.split(',').map(str::to_owned).collect::<Vec<_>>());
        (rows.next().expect("a header"), rows.collect())
    };
    let (header, rows) = table(&[]);
    // A column that is not of one unit in all runs stays as it is.
    let first =
        ["index", "run", "links.wire.rate", "links.wire.rate unit", "flows.f.cc", "links.wire.queue.limit", "id"];
    assert_eq!(header[..7], first);
    assert_eq!(rows.len(), 8);
    assert!(rows.iter().all(|row| row.len() == header.len()), "{rows:?}");
    assert_eq!(rows[5][..7], ["5", "0", "2500000", "bit/s", "cubic", "60kB", "f.0"]);
    let summaries = fs::read_to_string(folder.join("out/summary.jsonl")).unwrap();
    let sixth: Value = serde_json::from_str(summaries.lines().nth(5).unwrap()).unwrap();
    let column = |name: &str| rows[5][header.iter().position(|column| column == name).unwrap()].clone();
    assert_eq!(column("goodput_bps"), sixth["flows"][0]["goodput_bps"].to_string());
    assert_eq!(column("rtt_ms.p50"), sixth["flows"][0]["rtt_ms"]["p50"].to_string());
    let (header, rows) = table(&["--table", "links", "--run", "3"]);
    assert!(header.contains(&"utilization".to_owned()) && rows.len() == 2 && rows[0][0] == "3", "{rows:?}");
    let (header, rows) = table(&["--table", "series"]);
    assert!(header.contains(&"from_s".to_owned()) && rows.len() > 8 * 4, "{}", rows.len());
    assert_eq!(table(&["--table", "runs"]).1.len(), 8);
    for (args, why) in [
        (&["out", "--format", "csv", "--table", "flow"][..], "expected runs, series, flows"),
        (&["out", "--format", "csv", "--run", "99"], "there is no result of it"),
        (&["out", "--format", "csv", "--table", "commands"], "no run has `commands`"),
        (&["out", "--format", "flent", "--run", "1", "--table", "links"], "--table is for --format csv"),
    ] {
        let said = export(&folder, args);
        assert!(said.status == 2 && said.err.contains(why), "{args:?}: {}", said.err);
    }
}
