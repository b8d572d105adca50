//! `[record]`: `queue.csv` and `tcp.csv` in the output of a run, and in that of a sweep for each
//! run.

use std::fs;
use std::path::Path;
use std::process::Stdio;
use std::thread;
use std::time::Duration;

use crate::common::{SMALL, Said, ackclock, folder, run, sweep, without_names};
use serde_json::Value;
use sha2::{Digest, Sha256};

const RECORD: &str = "[record]\nqueue = true\n";

fn recording(scenario: &str) -> String {
    format!("{scenario}\n{RECORD}")
}

fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).expect("the folder is there");
    let mut names: Vec<String> =
        entries.map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    names
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn manifest(out: &Path) -> Value {
    serde_json::from_str(&read(&out.join("manifest.json"))).expect("JSON")
}

/// Every file of the manifest is there with its hash and size; their names.
fn listed(out: &Path) -> Vec<String> {
    let manifest = manifest(out);
    let files = manifest["files"].as_object().expect("files");
    for (name, entry) in files {
        let contents = fs::read(out.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"));
        let hash: String = Sha256::digest(&contents).iter().map(|byte| format!("{byte:02x}")).collect();
        assert_eq!((&entry["sha256"], &entry["bytes"]), (&hash.into(), &contents.len().into()), "{name}");
    }
    files.keys().cloned().collect()
}

fn good(said: &Said) {
    assert_eq!((said.status, said.err.as_str()), (0, ""));
}

#[test]
fn a_run_has_its_queue_csv() {
    let folder = folder("record_one");
    good(&run(&folder, recording(SMALL), &["--out", "out", "-q"]));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "queue.csv"]);
    assert_eq!(names(&out), ["manifest.json", "queue.csv", "summary.json"]);
    let rows = read(&out.join("queue.csv"));
    let summary: Value = serde_json::from_str(&read(&out.join("summary.json"))).expect("JSON");
    for (link, id) in ["wire.forward", "wire.reverse"].into_iter().enumerate() {
        let enqueued = rows.lines().filter(|row| row.contains(id) && row.contains(",enqueue,")).count();
        assert_eq!(summary["links"][link]["enqueued"], enqueued, "{id}");
    }
    // Nothing else changes: not the summary, and not the other run.
    good(&run(&folder, SMALL, &["--out", "plain", "-q"]));
    assert_eq!(read(&folder.join("plain/summary.json")), read(&out.join("summary.json")));
    // One direction, asked for on the command line.
    good(&run(&folder, SMALL, &["--out", "set", "-q", "--set", "record.queue=[\"wire.reverse\"]"]));
    let reverse: Vec<&str> =
        rows.lines().filter(|row| row.starts_with("time_s") || row.contains("wire.reverse")).collect();
    assert_eq!(read(&folder.join("set/queue.csv")).lines().collect::<Vec<_>>(), reverse);
}

#[test]
fn a_sweep_has_one_for_each_run_the_same_at_any_number_of_threads() {
    let folder = folder("record_sweep");
    for threads in ["1", "2", "7"] {
        good(&run(&folder, recording(&sweep()), &["--out", threads, "-q", "--threads", threads]));
    }
    let one = folder.join("1");
    let runs: Vec<String> = (0..6).map(|run| format!("runs/000{run}/queue.csv")).collect();
    assert_eq!(listed(&one)[1..], runs);
    assert_eq!(names(&one), ["manifest.json", "runs", "summary.jsonl"]);
    for name in listed(&one) {
        for other in ["2", "7"] {
            assert!(read(&folder.join(other).join(&name)) == read(&one.join(&name)), "{name} at {other} threads");
        }
    }
    assert_eq!(manifest(&one), manifest(&folder.join("2")));
    // A run of the sweep is the run alone.
    good(&run(&folder, recording(SMALL), &["--out", "alone", "-q", "--set", "links.wire.delay=9ms"]));
    assert_eq!(read(&folder.join("alone/queue.csv")), read(&one.join("runs/0004/queue.csv")));
}

#[test]
fn an_earlier_output_goes_with_its_folders() {
    let folder = folder("record_replaced");
    let out = folder.join("out");
    good(&run(&folder, recording(&sweep()), &["--out", "out", "-q"]));
    fs::write(out.join("runs/0003/notes.txt"), "mine").unwrap();
    good(&run(&folder, recording(&sweep()), &["--out", "out", "-q", "--set", "links.wire.delay=9ms"]));
    assert_eq!(listed(&out), ["summary.jsonl", "runs/0000/queue.csv", "runs/0001/queue.csv"]);
    // A stranger's file stays.
    assert_eq!(names(&out.join("runs")), ["0000", "0001", "0003"]);
    assert_eq!(names(&out.join("runs/0003")), ["notes.txt"]);
    fs::remove_file(out.join("runs/0003/notes.txt")).unwrap();
    fs::remove_dir(out.join("runs/0003")).unwrap();
    good(&run(&folder, recording(SMALL), &["--out", "out", "-q"]));
    assert_eq!(names(&out), ["manifest.json", "queue.csv", "summary.json"]);
    good(&run(&folder, SMALL, &["--out", "out", "-q"]));
    assert_eq!(names(&out), ["manifest.json", "summary.json"]);
}

#[test]
fn a_manifest_has_no_say_about_other_places() {
    let folder = folder("record_forged");
    good(&run(&folder, SMALL, &["--out", "out", "-q"]));
    fs::create_dir_all(folder.join("out/mine/too")).unwrap();
    for name in ["thesis.txt", "out/mine/too/thesis.txt"] {
        fs::write(folder.join(name), "years of work").unwrap();
    }
    let forged = r#"{ "ackclock": "0", "files": { "../thesis.txt": {}, "runs/../../thesis.txt": {}, "mine/too/thesis.txt": {} } }"#;
    fs::write(folder.join("out/manifest.json"), forged).unwrap();
    good(&run(&folder, SMALL, &["--out", "out", "-q"]));
    for name in ["thesis.txt", "out/mine/too/thesis.txt"] {
        assert_eq!(read(&folder.join(name)), "years of work");
    }
}

#[test]
fn without_out_nothing_is_written_which_is_said_once() {
    let folder = folder("record_nowhere");
    let said = run(&folder, recording(&sweep()), &["--json"]);
    assert_eq!(
        (said.status, said.err.as_str()),
        (0, "note: the files that `[record]` asks for are only written with --out DIR\n")
    );
    assert_eq!(said.out, run(&folder, sweep(), &["--json"]).out);
    assert_eq!(names(&folder), ["scenario.toml"]);
    // Nothing is asked for, or nothing is run.
    good(&run(&folder, recording(SMALL), &["--set", "record.queue=false", "-q"]));
    good(&run(&folder, recording(SMALL), &["--show-config"]));
}

#[test]
fn a_killed_run_leaves_nothing_that_looks_complete() {
    let folder = folder("record_killed");
    let long = sweep().replace("repeat = 2", "repeat = 30_000").replace("bytes = \"100kB\"\n", "");
    fs::write(folder.join("scenario.toml"), recording(&long)).unwrap();
    let mut child = ackclock()
        .current_dir(&folder)
        .args(["--scenario", "scenario.toml", "--out", "out", "-q", "--threads", "2"])
        .stdout(Stdio::null())
        .spawn()
        .expect("the binary runs");
    let out = folder.join("out");
    for _ in 0..1000 {
        if out.join(".runs-00005-queue.csv.partial").exists() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    child.kill().expect("it still runs");
    child.wait().expect("it has ended");
    let left = names(&out);
    assert!(left.len() > 5 && left.iter().all(|name| name.starts_with('.') && name.ends_with(".partial")), "{left:?}");
    // The remains are in nobody's way, and are put aside under the names that they would have got.
    fs::write(out.join(".mine.partial"), "").unwrap();
    let finished = read(&out.join(".summary.jsonl.partial"));
    let said = run(&folder, recording(SMALL), &["--out", "out", "-q", "--overwrite"]);
    let note = "note: the results that a killed run left in out are kept in out/unfinished-1, with ";
    assert!(said.status == 0 && said.err.starts_with(note) && said.err.lines().count() == 1, "{said:?}");
    assert_eq!(names(&out), [".mine.partial", "manifest.json", "queue.csv", "summary.json", "unfinished-1"]);
    let kept = out.join("unfinished-1");
    assert_eq!(
        (names(&kept), read(&kept.join("summary.jsonl"))),
        (vec!["runs".to_owned(), "summary.jsonl".to_owned()], finished)
    );
    assert!(names(&kept.join("runs")).len() >= 5);
    assert!(read(&kept.join("runs/00000/queue.csv")).lines().count() > 1000, "the first run had finished");
}

/// Files may not grow beyond some blocks, as on a full disk.
#[cfg(unix)]
#[test]
fn a_full_disk_is_an_error_that_names_the_file() {
    let folder = folder("record_full");
    good(&run(&folder, SMALL, &["--out", "earlier", "-q"]));
    for (scenario, out, file) in [
        (recording(SMALL), "out", "out/.queue.csv.partial"),
        (recording(&sweep()), "out", "out/.runs-0000-queue.csv.partial"),
        (recording(SMALL), "earlier", "earlier/.queue.csv.partial"),
    ] {
        // Long enough for many pieces of the file.
        fs::write(folder.join("scenario.toml"), scenario.replace("100kB", "3MB")).unwrap();
        let limited = "trap '' XFSZ; ulimit -f 8; exec \"$0\" \"$@\"";
        let output = std::process::Command::new("sh")
            .current_dir(&folder)
            .args(["-c", limited, env!("CARGO_BIN_EXE_ackclock"), "--scenario", "scenario.toml", "--out", out, "-q"])
            .output()
            .expect("a shell");
        let said = Said::from(output);
        assert_eq!(said.status, 2, "{}", said.err);
        assert!(said.err.starts_with(&format!("error: cannot write {file}: ")), "{}", said.err);
        assert!(!folder.join("out").exists());
    }
    // The earlier output is as it was.
    assert_eq!(names(&folder.join("earlier")), ["manifest.json", "summary.json"]);
    assert_eq!(listed(&folder.join("earlier")), ["summary.json"]);
}

fn refused(name: &str, record: &str) -> String {
    let said = run(&folder(name), format!("{SMALL}\n[record]\n{record}\n"), &[]);
    assert_eq!((said.status, said.out.as_str()), (2, ""), "{}", said.err);
    without_names(&said.err)
}

#[test]
fn an_unknown_direction() {
    insta::assert_snapshot!(refused("record_direction", "queue = [\"wire.reverse\", \"wire.froward\"]"), @r#"
    error: record.queue: there is no such link direction
      --> scenario.toml:17:26
       |
    17 | queue = ["wire.reverse", "wire.froward"]
       |                          ^^^^^^^^^^^^^^ found the string "wire.froward"
       |
       = note: expected link directions: `wire.forward`, `wire.reverse`
       = help: did you mean `wire.forward`?
    "#);
}

#[test]
fn a_link_is_two_directions() {
    insta::assert_snapshot!(refused("record_link", "queue = [\"wire\"]"), @r#"
    error: record.queue: there is no such link direction
      --> scenario.toml:17:10
       |
    17 | queue = ["wire"]
       |          ^^^^^^ found the string "wire"
       |
       = note: expected link directions: `wire.forward`, `wire.reverse`
       = help: did you mean `wire.forward`?
    "#);
}

#[test]
fn not_an_array() {
    insta::assert_snapshot!(refused("record_string", "queue = \"wire.forward\""), @r#"
    error: record.queue: not the right type
      --> scenario.toml:17:9
       |
    17 | queue = "wire.forward"
       |         ^^^^^^^^^^^^^^ found the string "wire.forward"
       |
       = note: expected `true` for all link directions, `false` for none, or an array of some, such as ["bottleneck.forward"]
       = help: in an array: ["wire.forward"]
    "#);
}

#[test]
fn an_unknown_key() {
    insta::assert_snapshot!(refused("record_key", "queues = true"), @r"
    error: record: unknown key `queues`
      --> scenario.toml:17:1
       |
    17 | queues = true
       | ^^^^^^ unknown key
       |
       = note: expected one of `queue`, ...
       = help: did you mean `queue`?
    ");
}

#[test]
fn not_a_section() {
    let said = run(&folder("record_section"), SMALL, &["--set", "record=true"]);
    insta::assert_snapshot!(said.err, @r"
    error: record: not a table
     --> --set:1:8
      |
    1 | record=true
      |        ^^^^ found `true`
      |
      = note: expected a section `[record]` with `series`, `queue`, `pcap`, `tcp`, `qlog`, `siftr`, `ertt`, `flows`, `reordering` or `displacement`
    ");
}

#[test]
fn a_sweep_does_not_vary_it() {
    let scenario = format!("{SMALL}\n[sweep]\naxes.\"record.queue\" = [true, false]\n");
    let said = run(&folder("record_axis"), scenario, &[]);
    assert_eq!(said.status, 2);
    insta::assert_snapshot!(said.err, @r#"
    error: `record.queue` names nothing that can be set
      --> scenario.toml:17:6
       |
    17 | axes."record.queue" = [true, false]
       |      ^^^^^^^^^^^^^^ unknown section
       |
       = note: expected a path that starts with one of `run`, `topology`, `hosts`, `links`, `paths`, `flows`, `workloads`, `commands`
    "#);
}

/// A link that loses and reorders, so that there is something to tell.
fn unruly(scenario: &str) -> String {
    let wire =
        "loss = { kind = \"list\", packets = [20, 21, 40] }\nreorder = { extent = 8, probability = 0.1 }\ndelay =";
    scenario.replacen("delay =", wire, 1)
}

#[test]
fn a_run_has_its_tcp_csv_which_adds_up_to_the_summary() {
    let folder = folder("record_tcp");
    let scenario = unruly(SMALL);
    good(&run(&folder, format!("{scenario}\n[record]\ntcp = true\n"), &["--out", "out", "-q"]));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "tcp.csv"]);
    let text = read(&out.join("tcp.csv"));
    let rows: Vec<Vec<&str>> = text.lines().map(|row| row.split(',').collect()).collect();
    let column = |name: &str| rows[0].iter().position(|&column| column == name).expect("a column");
    let count = |event: &str, verdicts: &[&str]| {
        let (event_at, verdict_at) = (column("event"), column("verdict"));
        rows.iter().filter(|row| row[event_at] == event && verdicts.contains(&row[verdict_at])).count()
    };
    let summary: Value = serde_json::from_str(&read(&out.join("summary.json"))).expect("JSON");
    let flow = &summary["flows"][0];
    assert!(flow["retransmissions"]["needed"].as_u64() >= Some(3), "{flow}");
    assert!(flow["retransmissions"]["spurious_reordering"].as_u64() > Some(0), "{flow}");
    assert_eq!(flow["retransmissions"]["needed"], count("retransmission", &["lost"]));
    assert_eq!(flow["retransmissions"]["spurious_reordering"], count("retransmission", &["reordered"]));
    assert_eq!(flow["retransmissions"]["spurious_delay"], count("retransmission", &["delayed"]));
    assert_eq!(flow["loss_declarations"]["right"], count("declaration", &["lost"]));
    assert_eq!(flow["loss_declarations"]["wrong"], count("declaration", &["reordered", "delayed"]));
    assert_eq!(flow["sent_packets"].as_u64().map(|sent| sent > 0), Some(count("ack", &[""]) > 0));
    let time = |row: &Vec<&str>| row[0].parse::<f64>().expect("a time");
    assert!(rows[1..].is_sorted_by_key(time), "rows are in order of time");
    // Nothing else changes.
    good(&run(&folder, &scenario, &["--out", "plain", "-q"]));
    assert_eq!(read(&folder.join("plain/summary.json")), read(&out.join("summary.json")));
    // Beside the other record, both are the same.
    good(&run(&folder, format!("{scenario}\n[record]\ntcp = true\nqueue = true\n"), &["--out", "both", "-q"]));
    assert_eq!(listed(&folder.join("both")), ["summary.json", "queue.csv", "tcp.csv"]);
    assert_eq!(read(&folder.join("both/tcp.csv")), text);
}

#[test]
fn every_run_of_a_sweep_has_its_tcp_csv() {
    let folder = folder("record_tcp_sweep");
    let scenario = format!("{}\n[record]\ntcp = true\n", unruly(&sweep()));
    for threads in ["1", "3"] {
        good(&run(&folder, &scenario, &["--out", threads, "-q", "--threads", threads]));
    }
    let runs: Vec<String> = (0..6).map(|run| format!("runs/000{run}/tcp.csv")).collect();
    assert_eq!(listed(&folder.join("1"))[1..], runs);
    assert_eq!(manifest(&folder.join("1")), manifest(&folder.join("3")));
}

/// The texts of a sequence (RFC 7464): each from RS to LF.
fn texts(log: &str) -> Vec<Value> {
    let texts = log.strip_suffix('\n').expect("a line feed").split('\n');
    let text = |text: &str| serde_json::from_str(text.strip_prefix('\u{1e}').expect("a separator")).expect("JSON");
    texts.map(text).collect()
}

/// A log of loss recovery has the values of tcp.csv at the same times, and the same losses.
#[test]
fn a_qlog_agrees_with_tcp_csv() {
    let folder = folder("record_qlog");
    let scenario = unruly(SMALL).replace("bytes = \"100kB\"\n", "");
    good(&run(&folder, format!("{scenario}\n[record]\nqlog = true\ntcp = true\n"), &["--out", "out", "-q"]));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "tcp.csv", "f.0.sqlog"]);
    let events = texts(&read(&out.join("f.0.sqlog")));
    assert_eq!(events[0]["serialization_format"], "application/qlog+json-seq");
    let csv = read(&out.join("tcp.csv"));
    let rows: Vec<Vec<&str>> = csv.lines().map(|row| row.split(',').collect()).collect();
    let column = |row: &[&str], name: &str| {
        let at = rows[0].iter().position(|&column| column == name).expect("a column");
        row[at].parse::<f64>().ok()
    };
    let mut events = events[1..].iter().peekable();
    let (mut known, mut state, mut lost, mut acks) = (Value::Object(Default::default()), Value::Null, Vec::new(), 0);
    for row in rows[1..].iter().filter(|row| row[2] == "ack") {
        let at = column(row, "time_s").expect("a time") * 1e3;
        while let Some(event) = events.next_if(|event| event["time"].as_f64().expect("a time") < at + 1e-7) {
            let data = event["data"].as_object().expect("data");
            match event["name"].as_str() {
                Some("quic:recovery_metrics_updated") => {
                    for (name, value) in data {
                        assert_ne!(known[name], *value, "{name} has not changed at {at} ms");
                        known[name] = value.clone();
                    }
                }
                Some("quic:congestion_state_updated") => {
                    assert_eq!(data.get("old").unwrap_or(&Value::Null), &state);
                    state = data["new"].clone();
                }
                Some("quic:packet_lost") => {
                    let (frame, time) = (&data["frames"][0], event["time"].as_f64().expect("a time"));
                    let [offset, bytes] = [&frame["offset"], &frame["raw"]["payload_length"]];
                    lost.push((format!("{:.9}", time / 1e3), offset.to_string(), bytes.to_string()));
                }
                other => panic!("{other:?}"),
            }
        }
        acks += 1;
        assert_eq!(state, row[10], "{at}");
        for (name, of) in [
            ("congestion_window", "cwnd_bytes"),
            ("bytes_in_flight", "pipe_bytes"),
            ("ssthresh", "ssthresh_bytes"),
            ("smoothed_rtt", "srtt_ms"),
        ] {
            // An undo may leave no threshold, for which a log has no value.
            if name != "ssthresh" || column(row, of).is_some() {
                assert_eq!(known[name].as_f64(), column(row, of), "{name} at {at} ms");
            }
        }
        if let Some(rtt) = column(row, "rtt_ms") {
            // The sample that enters the smoothed one is that of the first segment acknowledged; the row
            // has that of the last, which was sent later.
            let [least, latest] = ["min_rtt", "latest_rtt"].map(|name| known[name].as_f64().expect("a sample"));
            assert!((least..=latest).contains(&rtt), "{rtt} of {least} to {latest} at {at} ms");
        }
    }
    assert!(acks > 500 && events.next().is_none(), "{acks}");
    // The true fate of each is known later; the times of declaration are the same.
    let mut declared: Vec<_> = rows[1..].iter().filter(|row| row[2] == "declaration").collect();
    declared.sort_by(|a, b| (a[19], a[17].len(), a[17]).cmp(&(b[19], b[17].len(), b[17])));
    let declared: Vec<_> = declared.iter().map(|row| (row[19].into(), row[17].into(), row[18].into())).collect();
    // A transmission whose declaration was undone may be declared again, by a timeout: tcp.csv has the first.
    let is_repeat =
        |n: usize| lost[..n].iter().any(|(_, offset, _)| *offset == lost[n].1) && !declared.contains(&lost[n]);
    let first: Vec<_> = (0..lost.len()).filter(|&n| !is_repeat(n)).map(|n| lost[n].clone()).collect();
    assert!(declared.len() >= 3 && first == declared, "{lost:?}\n{declared:?}");
    // Alone it is the same, and nothing else changes.
    good(&run(&folder, format!("{scenario}\n[record]\nqlog = true\n"), &["--out", "alone", "-q"]));
    assert_eq!(listed(&folder.join("alone")), ["summary.json", "f.0.sqlog"]);
    assert_eq!(read(&folder.join("alone/f.0.sqlog")), read(&out.join("f.0.sqlog")));
    good(&run(&folder, &scenario, &["--out", "plain", "-q"]));
    assert_eq!(read(&folder.join("plain/summary.json")), read(&out.join("summary.json")));
}

#[test]
fn a_qlog_needs_a_sender_of_ours() {
    let scenario = SMALL.replace("bytes = \"100kB\"\n", "transport = \"udp\"\napplication = \"cbr\"\n");
    let said = run(&folder("record_qlog_none"), scenario, &["--set", "record.qlog=true"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("there is no sender whose loss recovery can be recorded"), "{}", said.err);
    let many = SMALL.replace("bytes = \"100kB\"\n", "count = 201\n");
    let said = run(&folder("record_qlog_many"), many, &["--set", "record.qlog=true"]);
    assert_eq!(said.status, 2, "{}", said.err);
    assert!(said.err.contains("at most 200 files, one for each sender"), "{}", said.err);
}

#[test]
fn siftr_logs_every_segment_of_both_hosts() {
    let folder = folder("record_siftr");
    let scenario = format!("{SMALL}\n[record]\nsiftr = true\n");
    good(&run(&folder, &scenario, &["--out", "out", "-q"]));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "siftr.log"]);
    let log = read(&out.join("siftr.log"));
    let lines: Vec<&str> = log.lines().collect();
    let (first, last) = (lines[0], lines[lines.len() - 1]);
    assert!(first.starts_with("enable_time_secs=0\t") && last.starts_with("disable_time_secs=2\t"), "{first}\n{last}");
    let total = |key: &str| {
        let value =
            last.split('\t').find_map(|pair| pair.strip_prefix(key)).unwrap_or_else(|| panic!("{key} in {last}"));
        value.parse::<usize>().expect("a number")
    };
    let rows: Vec<Vec<&str>> = lines[1..lines.len() - 1].iter().map(|line| line.split(',').collect()).collect();
    assert_eq!(rows.len(), total("total_tcp_pkts=") - total("total_skipped_tcp_pkts="));
    assert!(rows.iter().all(|row| row.len() == 26));
    // The accepting host has no socket yet when the SYN comes, when its answer goes out and when
    // that is acknowledged.
    assert!(total("num_inbound_skipped_pkts_inpcb=") >= 2 && total("num_outbound_skipped_pkts_inpcb=") == 1, "{last}");
    assert!(last.ends_with("flow_list=10.0.0.1;40000-10.0.0.2;5001,10.0.0.2;5001-10.0.0.1;40000,"), "{last}");
    // The sender's packets in both directions are those that the summary counts, SYN, FIN and ACKs
    // without data beside it.
    let summary: Value = serde_json::from_str(&read(&out.join("summary.json"))).expect("JSON");
    let sent = summary["flows"][0]["sent_packets"].as_u64().expect("a number") as usize;
    let of = |way: &str, host: &str| rows.iter().filter(|row| row[0] == way && row[3] == host).count();
    assert!(of("o", "10.0.0.1") >= sent && of("o", "10.0.0.1") <= sent + 4, "{sent}, {}", of("o", "10.0.0.1"));
    let times: Vec<f64> = rows.iter().map(|row| row[2].parse().expect("a time")).collect();
    assert!(times.is_sorted());
    // 20 ms and the transmission: 32 parts of a tick of 1 ms.
    let srtt: Vec<f64> = rows.iter().filter(|row| row[3] == "10.0.0.1").map(|row| row[16].parse().unwrap()).collect();
    assert!(srtt.iter().any(|&srtt| srtt / 32.0 > 10.0 && srtt / 32.0 < 30.0), "{srtt:?}");
    good(&run(&folder, SMALL, &["--out", "plain", "-q"]));
    assert_eq!(read(&folder.join("plain/summary.json")), read(&out.join("summary.json")));
}

#[test]
fn ertt_has_a_row_for_each_measurement() {
    let folder = folder("record_ertt");
    let args = ["--set", "flows.f.host=freebsd-9.2", "--set", "flows.f.cc=cdg", "--set", "record.ertt=true"];
    good(&run(&folder, SMALL, &[&args[..], &["--out", "out", "-q"]].concat()));
    let rows = read(&folder.join("out/ertt.csv"));
    let rows: Vec<Vec<&str>> = rows.lines().skip(1).map(|row| row.split(',').collect()).collect();
    assert!(rows.len() > 2, "{rows:?}");
    for (index, row) in rows.iter().enumerate() {
        assert_eq!((row[1], row[2].parse()), ("f.0", Ok(index + 1)));
        // Both ways take 10 ms at least; ticks are whole.
        assert!(row[3].parse::<f64>().unwrap() >= 10.0 && row[3].ends_with(".000000"), "{row:?}");
    }
    let header = read(&folder.join("out/ertt.csv"));
    let columns: Vec<&str> = header.lines().next().unwrap_or("").split(',').collect();
    assert_eq!(
        columns[10..],
        ["cwnd_bytes", "gradient_min_ms", "gradient_max_ms", "queue_state", "shadow_window_bytes"]
    );
    for row in &rows {
        assert!(row[10].parse::<u64>().unwrap() > 0 && row[14].parse::<u64>().is_ok(), "{row:?}");
        assert!(row[11..13].iter().all(|gradient| gradient.parse::<f64>().is_ok()), "{row:?}");
        assert!(["unknown", "empty", "rising", "falling", "full"].contains(&row[13]), "{row:?}");
    }
    assert!(rows.iter().any(|row| row[13] == "rising" && row[12].starts_with(|first: char| first != '-')), "{rows:?}");
    // Another controller that measures them infers nothing from gradients.
    good(&run(&folder, SMALL, &[&args[..], &["--out", "hd", "-q", "--set", "flows.f.cc=hd"]].concat()));
    let others = read(&folder.join("hd/ertt.csv"));
    assert!(others.lines().count() > 2 && others.lines().skip(1).all(|row| row.ends_with(",,,,")), "{others}");
    // A controller that does not measure them has none.
    good(&run(&folder, SMALL, &["--out", "none", "-q", "--set", "flows.f.cc=newreno", "--set", "record.ertt=true"]));
    assert_eq!(read(&folder.join("none/ertt.csv")).lines().count(), 1);
}

#[test]
fn each_packet_has_its_displacement() {
    let folder = folder("record_displacement");
    let set = ["--set", "record.displacement=true"];
    good(&run(&folder, unruly(SMALL), &[&set[..], &["--out", "out", "-q"]].concat()));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "reordering.csv", "displacement.csv"]);
    let text = read(&out.join("displacement.csv"));
    assert!(text.starts_with("time_s,flow,seq_bytes,sequence,receive_index,displacement\n"), "{text}");
    let rows: Vec<Vec<&str>> = text.lines().skip(1).map(|row| row.split(',').collect()).collect();
    let value = |row: &[&str], column: usize| row[column].parse::<i64>().expect("a number");
    assert!(rows.iter().all(|row| value(row, 4) - value(row, 3) == value(row, 5)), "{text}");
    let summary: Value = serde_json::from_str(&read(&out.join("summary.json"))).expect("JSON");
    let found = &summary["flows"][0]["reordering"]["sequence"];
    assert_eq!(found["packets"].as_u64(), Some(rows.len() as u64));
    let late = rows.iter().filter(|row| value(row, 5) > 0).count();
    assert!(late > 0);
    assert_eq!(found["late"].as_f64(), Some(late as f64 / rows.len() as f64));
}

/// A workload of some 50 flows in 2 s.
const WORKLOAD: &str = "[[workloads]]\nid = \"web\"\npath = [\"wire\"]\nsize = \"5kB\"\nload = 0.1\n";

#[test]
fn a_workload_has_a_row_for_each_flow() {
    let folder = folder("record_flows");
    let scenario = format!("{SMALL}\n{WORKLOAD}\n[record]\nflows = true\n");
    good(&run(&folder, scenario, &["--out", "out", "-q"]));
    let out = folder.join("out");
    assert_eq!(listed(&out), ["summary.json", "flows.csv"]);
    let rows = read(&out.join("flows.csv"));
    let summary: Value = serde_json::from_str(&read(&out.join("summary.json"))).expect("JSON");
    let web = &summary["workloads"][0];
    assert_eq!((&web["id"], &web["started"]), (&"web".into(), &(rows.lines().count() - 1).into()));
    assert!(web["completed"].as_u64().is_some_and(|completed| completed > 20), "{web}");
    assert!(rows.lines().skip(1).all(|row| row.starts_with("web,web.") && row.contains(",wire,")), "{rows}");
    // Nothing else changes.
    good(&run(&folder, format!("{SMALL}\n{WORKLOAD}"), &["--out", "plain", "-q"]));
    assert_eq!(read(&folder.join("plain/summary.json")), read(&out.join("summary.json")));
}

#[test]
fn flows_that_come_too_fast_leave_what_there_is() {
    let folder = folder("record_too_fast");
    let scenario = format!("{SMALL}\n{WORKLOAD}\nmax_alive = 1\n[record]\nflows = true\n");
    let said = run(&folder, scenario, &["--out", "out"]);
    assert_eq!(said.status, 3, "{}", said.err);
    assert!(said.err.contains("run 0 was broken off: 2 flows are alive after "), "{}", said.err);
    assert!(said.out.contains(" s simulated, then broken off") && said.out.contains("web.up_to_100kB"), "{}", said.out);
    assert_eq!(listed(&folder.join("out")), ["summary.json", "flows.csv"]);
    let summary: Value = serde_json::from_str(&read(&folder.join("out/summary.json"))).expect("JSON");
    assert_eq!(summary["partial"], true);
    let rows = read(&folder.join("out/flows.csv")).lines().count() - 1;
    assert_eq!(summary["workloads"][0]["started"], rows);
}

/// Each kind of record, with its file.
const KINDS: [(&str, &str); 10] = [
    ("queue = true", "queue.csv"),
    ("tcp = true", "tcp.csv"),
    ("siftr = true", "siftr.log"),
    ("ertt = true", "ertt.csv"),
    ("flows = true", "flows.csv"),
    ("series = \"300ms\"", "series.csv"),
    ("reordering = [\"receiver\"]", "reordering.csv"),
    ("displacement = true", "displacement.csv"),
    ("pcap = [\"f\"]", "f.0.sender.pcapng"),
    ("qlog = true", "f.0.sqlog"),
];

/// Changing links, one of them idle, and flows that come and go.
fn changing() -> String {
    SMALL.replace("delay = \"5ms\"\n", "delay = \"5ms\"\nschedule = [{ at = \"100ms\", rate = \"5mbit\" }]\n")
        + "[links.idle]\ndelay = \"1ms\"\ntrace = { file = \"idle.trace\" }\n
[[workloads]]\nid = \"web\"\npath = [\"wire\"]\nload = 0.1\nsize = \"10kB\"
[[expect]]\nmetric = \"links.wire.forward.utilization\"\nfrom = \"50ms\"\nto = \"1700ms\"\nat_least = 0.01
[[expect]]\nmetric = \"links.idle.forward.rate_bps\"\nfrom = \"50ms\"\nto = \"1900ms\"\nat_least = 0\n"
}

/// A list of these is there, and no other record is.
fn has_these(out: &Path, kinds: &[(&str, &str)]) {
    for (_, file) in KINDS {
        let (there, wanted) = (out.join(file).is_file(), kinds.iter().any(|(_, other)| *other == file));
        // Displacement by its own file implies the intervals.
        let implied = file == "reordering.csv" && kinds.iter().any(|(kind, _)| kind.starts_with("displacement"));
        assert!(there == wanted || implied, "{file} of {kinds:?}: {:?}", names(out));
    }
}

#[test]
fn every_record_alone_and_each_pair_change_no_result() {
    let folder = folder("record_each");
    fs::write(folder.join("idle.trace"), "1\n2\n").expect("a trace");
    good(&run(&folder, changing(), &["--out", "none", "-q"]));
    let without = read(&folder.join("none/summary.json"));
    for (first, one) in KINDS.iter().enumerate() {
        for other in &KINDS[first..] {
            let kinds = if one == other { vec![*one] } else { vec![*one, *other] };
            let lines: Vec<&str> = kinds.iter().map(|(kind, _)| *kind).collect();
            let text = format!("{}[record]\n{}\n", changing(), lines.join("\n"));
            let said = run(&folder, &text, &["--out", "out", "-q", "--overwrite"]);
            good(&said);
            has_these(&folder.join("out"), &kinds);
            let with = read(&folder.join("out/summary.json"));
            // The summaries differ only in the reordering, which is measured in addition.
            let plain = |text: &str| {
                let mut value: Value = serde_json::from_str(text).expect("JSON");
                for key in ["links", "flows", "workloads"] {
                    for item in value[key].as_array_mut().into_iter().flatten() {
                        item.as_object_mut().expect("a table").remove("reordering");
                    }
                }
                value.as_object_mut().expect("a table").remove("reordering");
                value
            };
            assert_eq!(plain(&with), plain(&without), "{lines:?}");
            // Without a place for it there is a word.
            let said = run(&folder, &text, &["-q"]);
            assert!(said.err.contains("`[record]` asks for are only written with --out"), "{lines:?}: {}", said.err);
        }
    }
    // The resolved scenario is the same.
    let shown = run(&folder, changing(), &["--show-config"]);
    good(&run(&folder, &shown.out, &["--out", "again", "-q"]));
    assert_eq!(read(&folder.join("again/summary.json")), without);
}

/// All files of an output with their contents.
fn contents(out: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<(String, Vec<u8>)> =
        listed(out).into_iter().map(|name| (name.clone(), fs::read(out.join(&name)).expect("it is there"))).collect();
    files.push(("manifest.json".to_owned(), fs::read(out.join("manifest.json")).expect("it is there")));
    files
}

#[test]
#[cfg(unix)]
fn a_resumed_directory_has_every_record_of_an_uninterrupted_one() {
    use nix::sys::signal::{Signal, kill};
    let folder = folder("record_resumed");
    let lines: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    let sweep = format!("{}[record]\n{}\n[sweep]\nrepeat = 6\n", SMALL.replace("2s", "20s"), lines.join("\n"));
    let sweep = sweep.replace("bytes = \"100kB\"\n", "");
    good(&run(&folder, &sweep, &["--out", "whole", "-q", "--threads", "1"]));
    let whole = contents(&folder.join("whole"));
    for (signal, runs) in [(Signal::SIGKILL, 2), (Signal::SIGTERM, 1), (Signal::SIGHUP, 3), (Signal::SIGKILL, 1)] {
        let out = folder.join(format!("{signal}-{runs}"));
        let place = out.display().to_string();
        let mut child = ackclock()
            .current_dir(&folder)
            .args(["--scenario", "scenario.toml", "--out", &place, "-q", "--threads", "1"])
            .stderr(Stdio::null())
            .spawn()
            .expect("the binary runs");
        let summaries = out.join(".summary.jsonl.partial");
        for _ in 0..6000 {
            if fs::read_to_string(&summaries).is_ok_and(|text| text.lines().count() >= runs) {
                break;
            }
            thread::sleep(Duration::from_millis(2));
        }
        kill(nix::unistd::Pid::from_raw(child.id().cast_signed()), signal).expect("a process");
        child.wait().expect("it ends");
        let said = run(&folder, &sweep, &["--out", &place, "-q", "--threads", "1", "--resume"]);
        assert_eq!(said.status, 0, "{signal}: {}", said.err);
        let resumed = contents(&out);
        let names = |files: &[(String, Vec<u8>)]| files.iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
        assert_eq!(names(&resumed), names(&whole), "{signal}");
        assert!(resumed == whole, "{signal}");
    }
}

#[test]
#[cfg(target_os = "linux")]
fn a_full_disk_leaves_what_has_finished() {
    let folder = folder("record_full_disk");
    let mounted = "mkdir disk && mount -t tmpfs -o size=400k none disk";
    let runs = "exec \"$0\" --scenario scenario.toml --out disk/out -q --threads 1";
    let sweep = format!("{SMALL}[record]\nqueue = true\n[sweep]\nrepeat = 40\n");
    fs::write(folder.join("scenario.toml"), sweep).expect("a scenario can be written");
    let script = format!(
        "{mounted} || exit 77; \"$0\" --scenario scenario.toml --out disk/out -q --threads 1; echo \"status $?\"; \
         wc -l < disk/out/.summary.jsonl.partial; mount -o remount,size=40m disk; {runs} --resume"
    );
    let mut inside = std::process::Command::new("unshare");
    inside.args(["--mount", "--propagation", "private", "sh", "-c", &script, env!("CARGO_BIN_EXE_ackclock")]);
    let said = inside.current_dir(&folder).output();
    let Some(said) = said.ok().map(Said::from).filter(|said| said.status != 77 && !said.err.contains("unshare: "))
    else {
        return ackclock_testkit::skipped("a_full_disk_leaves_what_has_finished", "nothing can be mounted here");
    };
    assert!(said.err.contains("No space left") && said.err.contains("; --resume goes on with the others"), "{said:?}");
    let mut lines = said.out.lines();
    assert_eq!((said.status, lines.next()), (0, Some("status 2")), "{said:?}");
    assert!(lines.next().is_some_and(|runs| runs.parse::<u32>().is_ok_and(|runs| (1..40).contains(&runs))), "{said:?}");
}

#[test]
fn control_characters_do_not_reach_the_terminal() {
    let folder = folder("record_escapes");
    let text = SMALL.replace("small", "t\\u001b[2J\\u001b]0;pwn\\u0007<!--<script>")
        + "[[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nat_least = 1e12\nsource = \"s\\u001b[31m\"\n\
           published = \"p\\u001b[31m\"\nnote = \"n\\u001b[31m\"\n";
    for args in [&["--out", "out"][..], &["--expectations"], &["--show-config"], &["--json"]] {
        let said = run(&folder, &text, args);
        assert!(said.status < 2, "{said:?}");
        let all = said.out + &said.err;
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {all}");
    }
    for args in [&["compare", "out", "out"][..], &["check", "scenario.toml"], &["report", "out"]] {
        let said = Said::from(ackclock().current_dir(&folder).args(args).output().expect("the binary runs"));
        let all = said.out + &said.err;
        assert!(!all.chars().any(|c| c.is_control() && c != '\n'), "{args:?}: {all}");
    }
    // The data of the page begins no tag and no comment.
    let page = read(&folder.join("report.html"));
    assert!(page.contains("\\u003c!--\\u003cscript>") && !page.contains("<!--<script>"));
}
