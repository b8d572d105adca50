//! Live runs that end before their time: what they have is kept, and says that it is not all.

use std::fs;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{Said, ackclock, can_go_live, folder};
use serde_json::Value;

/// A ping between two kernels, for a minute.
fn scenario(name: &str) -> String {
    let process = std::process::id();
    let host = |side: &str, last: u8| {
        format!(
            "[hosts.{side}]\ntun = \"ack0\"\nnetns = \"ackt-{name}{side}-{process}\"\naddress = \"10.77.9.{last}/24\"\n"
        )
    };
    format!(
        "schema = 1
title = \"broken off\"
[run]
duration = \"60s\"
lateness_limit = false
[links.wire]
rate = \"10mbit\"
delay = \"1ms\"
[record]
queue = true
{}{}
[[paths]]
between = [\"left\", \"right\"]
path = [\"wire\"]
[[commands]]
id = \"ping\"
host = \"left\"
run = \"ping -i 0.05 10.77.9.2\"
measure = \"ping\"
[[commands]]
id = \"late\"
host = \"left\"
run = \"true\"
at = \"59s\"
[[expect]]
metric = \"commands.ping.rtt_ms.p50\"
at_most = 0
",
        host("left", 1),
        host("right", 2)
    )
}

/// A run that has begun to ping.
fn started(folder: &Path, name: &str) -> Child {
    fs::write(folder.join("scenario.toml"), scenario(name)).expect("a scenario can be written");
    let child = ackclock()
        .current_dir(folder)
        .args(["--scenario", "scenario.toml", "--out", "out", "--record", "out.pcapng", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let printed = folder.join("out/.commands.partial/ping.stdout");
    for _ in 0..1000 {
        if fs::read_to_string(&printed).is_ok_and(|text| text.matches("time=").count() >= 5) {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    child
}

/// Everything is there, and says that it is a part.
fn is_partial(out: &Path) -> PathBuf {
    let read =
        |name: &str| serde_json::from_slice::<Value>(&fs::read(out.join(name)).expect("it is there")).expect("JSON");
    let (manifest, summary) = (read("manifest.json"), read("summary.json"));
    assert_eq!((&manifest["partial"], &summary["partial"]), (&true.into(), &true.into()));
    let files: Vec<&String> = manifest["files"].as_object().expect("files").keys().collect();
    // One that never ran has printed nothing.
    let expected = ["summary.json", "queue.csv", "commands/ping.stderr", "commands/ping.stdout"];
    assert!(expected.iter().all(|name| files.iter().any(|file| file == name) && out.join(name).exists()), "{files:?}");
    assert!(
        fs::read_dir(out)
            .expect("results")
            .flatten()
            .all(|entry| !entry.file_name().to_string_lossy().starts_with('.'))
    );
    let duration = summary["duration_s"].as_f64().expect("a number");
    assert!(duration > 0.0 && duration < 59.0, "{duration}");
    assert!(summary["commands"][0]["rtt_ms"]["samples"].as_u64() >= Some(4), "{summary}");
    assert_eq!((&summary["commands"][0]["stopped"], &summary["commands"][1]["exit"]), (&true.into(), &Value::Null));
    assert!(summary["links"][0]["offered"].as_u64() >= Some(4), "{summary}");
    out.join("summary.json")
}

#[test]
fn ctrl_c_ends_a_run_and_keeps_its_results() {
    if !can_go_live("a live run that is interrupted", &["ping"]) {
        return;
    }
    let folder = folder("broken-off-interrupted");
    let child = started(&folder, "int");
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(killed.expect("a shell").success());
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.status, 130, "{said:?}");
    assert_eq!(
        said.err,
        "note: run 0 was not completed; the results are partial, and expectations are not evaluated\n"
    );
    is_partial(&folder.join("out"));
    // The capture until then is whole, and can be replayed.
    let replay = ackclock()
        .current_dir(&folder)
        .args(["--scenario", "scenario.toml", "--set", "run.replay=out.pcapng", "--out", "again"])
        .output();
    let replay: Said = replay.expect("the binary runs").into();
    assert!(!replay.err.contains("not valid: ") && !replay.err.contains("error: "), "{replay:?}");
    let rows = |out: &str| fs::read_to_string(folder.join(out).join("queue.csv")).expect("rows");
    // Both have every decision; the live run was cut, the replay ends there as well.
    assert_eq!(rows("again"), rows("out"));
}

/// A sweep over the clock. Nothing is sent in the live run, and so much in the one in virtual time
/// that it takes many seconds.
#[test]
fn ctrl_c_ends_a_run_in_virtual_time_beside_a_live_one() {
    if !can_go_live("a sweep over the clock that is interrupted", &[]) {
        return;
    }
    let folder = folder("broken-off-sweep");
    let text = scenario("swp").replace("60s", "2s").replace("10mbit", "10gbit");
    let (text, _) = text.split_once("[[commands]]").expect("commands");
    let flow = "[[flows]]\nid = \"f\"\ncount = 20\nfrom = \"left\"\nto = \"right\"\nport = 5001\n";
    let sweep = "[sweep]\naxes.\"run.clock\" = [\"live\", \"virtual\"]\n";
    fs::write(folder.join("scenario.toml"), format!("{text}{flow}{sweep}")).expect("a scenario can be written");
    let mut child = ackclock()
        .current_dir(&folder)
        .args(["--scenario", "scenario.toml", "--out", "out", "--json", "--quiet"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the binary runs");
    let mut lines = BufReader::new(child.stdout.take().expect("a pipe")).lines();
    let first = lines.next().expect("a summary").expect("UTF-8");
    assert_eq!(serde_json::from_str::<Value>(&first).expect("JSON")["clock"], "live");
    thread::sleep(Duration::from_millis(200));
    let killed = Command::new("sh").args(["-c", &format!("kill -INT {}", child.id())]).status();
    assert!(killed.expect("a shell").success());
    assert!(lines.next().is_none(), "the second run went on");
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.status, 130, "{said:?}");
    assert!(said.err.contains("note: run.clock = virtual was not completed; the results are partial"), "{said:?}");
    // The results of the live run are kept.
    let read = |name: &str| fs::read_to_string(folder.join("out").join(name)).expect("it is there");
    assert_eq!(read("summary.jsonl"), format!("{first}\n"));
    assert_eq!(serde_json::from_str::<Value>(&read("manifest.json")).expect("JSON")["partial"], true);
}

#[test]
fn a_device_that_vanishes_ends_a_run_and_keeps_its_results() {
    if !can_go_live("a live run whose device vanishes", &["ping", "ip"]) {
        return;
    }
    let folder = folder("broken-off-vanished");
    let child = started(&folder, "van");
    let netns = format!("ackt-vanright-{}", std::process::id());
    let removed = Command::new("ip").args(["-n", &netns, "link", "delete", "ack0"]).status();
    // The command is a process in a namespace of the run: it may be ended with that, after it has
    // done its work.
    removed.expect("ip runs");
    let said: Said = child.wait_with_output().expect("it ends").into();
    assert_eq!(said.status, 3, "{said:?}");
    assert!(
        said.err.starts_with("error: run 0 was broken off: host right: the device ack0 is gone or down"),
        "{said:?}"
    );
    is_partial(&folder.join("out"));
}

#[test]
fn a_command_that_fails_is_told() {
    if !can_go_live("a live run with a command that fails", &[]) {
        return;
    }
    let folder = folder("broken-off-command");
    let text =
        scenario("cmd").replace("60s", "1s").replace("59s", "500ms").replace("run = \"true\"", "run = \"exit 7\"");
    let (text, _) = text.split_once("[[expect]]").expect("an expectation");
    let said = crate::common::run(&folder, text, &["--out", "out"]);
    assert_eq!(said.status, 1, "{said:?}");
    assert!(said.err.ends_with("command late failed: exit status 7 (run 0)\n"), "{said:?}");
    assert!(said.out.contains("1 s in real time"), "{}", said.out);
}

/// A replay needs no devices, and so no privileges.
#[test]
fn a_damaged_capture_is_bad_input_and_what_came_before_is_kept() {
    let folder = folder("broken-off-capture");
    // The capture is tcpdump's: raw IP, packets with seconds, microseconds, and their length twice.
    let words = |words: &[u32]| words.iter().flat_map(|word| word.to_le_bytes()).collect::<Vec<u8>>();
    let mut packet = vec![0x45, 0, 0, 28, 0, 1, 0, 0, 64, 17, 0, 0, 10, 77, 9, 1, 10, 77, 9, 2];
    packet.extend([0x13, 0x88, 0x13, 0x88, 0, 8, 0, 0]);
    let header = words(&[0xa1b2_c3d4, 4 << 16 | 2, 0, 0, 65_535, 101]);
    let whole = [header, words(&[1, 0, 28, 28]), packet].concat();
    let damaged = [whole.clone(), words(&[2, 0, 1 << 30, 1 << 30]), vec![0; 9]].concat();
    let text = scenario("cap");
    let (text, _) = text.split_once("[[commands]]").expect("commands");
    for (name, capture, status) in [("whole.pcap", whole, 0), ("damaged.pcap", damaged, 2)] {
        fs::write(folder.join(name), capture).expect("a capture can be written");
        let said =
            crate::common::run(&folder, text, &["--set", &format!("run.replay={name}"), "--out", "out", "--quiet"]);
        assert_eq!(said.status, status, "{name}: {}", said.err);
        let told = said.err.contains("error: run 0 was broken off: damaged.pcap: packet 2, at byte 68: ");
        assert_eq!(told, status == 2, "{}", said.err);
        let summary = fs::read(folder.join("out/summary.json")).expect("a summary");
        let summary: Value = serde_json::from_slice(&summary).expect("JSON");
        let received = &summary["live"]["hosts"][0]["received_packets"];
        assert_eq!((received, summary["partial"] == true), (&1.into(), status == 2), "{summary}");
    }
}
