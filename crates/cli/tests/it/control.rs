//! Runs that are changed while they go on, by their sockets.

#![cfg(target_os = "linux")]

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;
use std::process::{Child, Command, Output, Stdio};
use std::thread;
use std::time::Duration;

use crate::common::{SMALL, Said, ackclock, can_go_live, folder, run, sweep};
use ackclock_testkit::skipped;
use serde_json::Value;

/// A bulk flow over a link, for 10 s.
const BULK: &str = "schema = 1
title = \"bulk\"

[run]
duration = \"10s\"

[links.wire]
rate = \"10mbit\"
delay = \"5ms\"
queue = \"fq_codel\"
reverse = { rate = \"1gbit\" }

[[flows]]
id = \"f\"
cc = \"cubic\"
path = [\"wire\"]

[record]
series = \"100ms\"
tcp = true
";

/// A run that goes on; it does not outlive the test.
struct Going(Option<Child>);

impl Going {
    /// Waits until it listens at `run.sock`.
    fn start(folder: &Path, scenario: &str, args: &[&str]) -> Going {
        fs::write(folder.join("scenario.toml"), scenario).unwrap();
        let child = ackclock()
            .current_dir(folder)
            .args(["scenario.toml", "--control", "run.sock"])
            .args(args)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary starts");
        let mut going = Going(Some(child));
        for _ in 0..2000 {
            assert!(!going.has_ended(), "{:?}", going.end());
            if ctl(folder, &["status"]).status == 0 && !ctl(folder, &["get", "links.wire.delay"]).out.is_empty() {
                return going;
            }
            thread::sleep(Duration::from_millis(10));
        }
        panic!("it does not listen: {:?}", ctl(folder, &["status"]));
    }

    fn end(mut self) -> Said {
        let output: Output = self.0.take().unwrap().wait_with_output().expect("it ends");
        output.into()
    }

    fn kill(mut self) {
        let mut child = self.0.take().unwrap();
        child.kill().unwrap();
        child.wait().unwrap();
    }

    fn has_ended(&mut self) -> bool {
        self.0.as_mut().is_some_and(|child| child.try_wait().unwrap().is_some())
    }
}

impl Drop for Going {
    fn drop(&mut self) {
        if let Some(child) = &mut self.0 {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

fn ctl(folder: &Path, request: &[&str]) -> Said {
    ackclock().current_dir(folder).args(["ctl", "run.sock"]).args(request).output().expect("the binary runs").into()
}

/// A request that goes well, and its answer. It is made again while the run has not begun.
fn done(folder: &Path, request: &[&str]) -> String {
    let mut said = ctl(folder, request);
    for _ in 0..2000 {
        if !said.err.contains("the run has not begun yet") {
            break;
        }
        thread::sleep(Duration::from_millis(10));
        said = ctl(folder, request);
    }
    assert_eq!((said.status, &*said.err), (0, ""), "{request:?}");
    said.out
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).unwrap_or_else(|error| panic!("{error}: {text}"))
}

#[test]
fn a_virtual_run_that_was_changed_is_repeated_to_the_byte() {
    let dir = folder("control-virtual");
    // 10 s in 2 s.
    let going = Going::start(&dir, BULK, &["--speed", "5", "--out", "out", "--quiet"]);
    let said = done(&dir, &["set", "links.wire.forward.rate=2mbit", "links.wire.delay = 20ms"]);
    assert!(said.starts_with("links.wire.forward.rate = 2mbit, links.wire.delay = 20ms at "), "{said}");
    assert_eq!(done(&dir, &["get", "links.wire.delay"]), "20ms\n");
    done(&dir, &["set", "links.wire.forward.queue.target=20ms"]);
    let list = done(&dir, &["list"]);
    for line in
        ["links.wire.forward.rate=2mbit", "links.wire.reverse.rate=1gbit", "links.wire.forward.queue.target=20ms"]
    {
        assert!(list.lines().any(|listed| listed == line), "{line}: {list}");
    }
    // The run goes by the clock: no more than a few seconds of it have passed.
    done(&dir, &["pause"]);
    let paused = done(&dir, &["status"]);
    assert!(paused.starts_with("paused at "), "{paused}");
    thread::sleep(Duration::from_millis(200));
    assert_eq!(done(&dir, &["status"]), paused);
    // The changes set while it stands still are made.
    done(&dir, &["set", "links.wire.forward.loss=0.001"]);
    done(&dir, &["resume"]);
    done(&dir, &["speed", "100"]);
    let ended = going.end();
    assert_eq!((ended.status, &*ended.err), (0, ""));
    assert!(!dir.join("run.sock").exists());

    let summary = json(&fs::read_to_string(dir.join("out/summary.json")).unwrap());
    let changes = summary["changes"].as_array().unwrap();
    assert_eq!(changes.len(), 4);
    assert_eq!(changes[0]["at_ns"], changes[1]["at_ns"]);
    assert_eq!(changes[1]["set"], "links.wire.delay = 20ms");
    let manifest = json(&fs::read_to_string(dir.join("out/manifest.json")).unwrap());
    assert_eq!(manifest["changes"], summary["changes"]);
    // Less is delivered than without, and `verify` repeats it.
    let unchanged = json(&run(&dir, BULK, &["--json"]).out);
    let goodput = |summary: &Value| summary["flows"][0]["goodput_bps"].as_f64().unwrap();
    assert!(goodput(&summary) < 0.8 * goodput(&unchanged), "{} {}", goodput(&summary), goodput(&unchanged));
    assert!(unchanged.get("changes").is_none());
    let verified: Said = ackclock().current_dir(&dir).args(["verify", "out"]).output().unwrap().into();
    assert_eq!((verified.status, &*verified.out), (0, "out: 3 files the same\n"), "{}", verified.err);
    // By hand: from the directory, from the summary, from lines.
    let lines: String = changes.iter().map(|change| format!("{change}\n")).collect();
    fs::write(dir.join("changes.jsonl"), lines).unwrap();
    for (number, from) in ["out", "out/summary.json", "changes.jsonl"].iter().enumerate() {
        let again = format!("again-{number}");
        let said = run(&dir, BULK, &["--changes", from, "--out", &again, "--quiet"]);
        assert_eq!((said.status, &*said.err), (0, ""), "{from}");
        for file in ["summary.json", "tcp.csv", "series.csv"] {
            assert!(
                fs::read(dir.join("out").join(file)).unwrap() == fs::read(dir.join(&again).join(file)).unwrap(),
                "{file}"
            );
        }
    }
    // A manifest whose changes were edited does not give these files.
    let edited = fs::read_to_string(dir.join("out/manifest.json")).unwrap().replace("=2mbit", "=3mbit");
    fs::write(dir.join("out/manifest.json"), edited).unwrap();
    let verified: Said = ackclock().current_dir(&dir).args(["verify", "out"]).output().unwrap().into();
    assert_eq!(verified.status, 1, "{}", verified.err);
}

#[test]
fn a_run_that_may_be_changed_and_is_not_gives_the_same_files() {
    let dir = folder("control-unchanged");
    let going = Going::start(&dir, BULK, &["--speed", "20", "--out", "controlled", "--quiet"]);
    assert_eq!(going.end().status, 0);
    assert_eq!(run(&dir, BULK, &["--out", "plain", "--quiet"]).status, 0);
    for file in ["summary.json", "tcp.csv", "series.csv", "manifest.json"] {
        let [one, other] = ["controlled", "plain"].map(|out| fs::read(dir.join(out).join(file)).unwrap());
        assert!(one == other, "{file}");
    }
}

#[test]
fn stop_ends_a_run_as_an_interrupt_does() {
    let dir = folder("control-stop");
    let going = Going::start(&dir, BULK, &["--speed", "0.01"]);
    assert_eq!(done(&dir, &["stop"]), "ends\n");
    assert_eq!(going.end().status, 130);
    assert!(!dir.join("run.sock").exists());
    // A run that stands still ends as well.
    let going = Going::start(&dir, BULK, &["--speed", "0.01"]);
    done(&dir, &["pause"]);
    done(&dir, &["stop"]);
    assert_eq!(going.end().status, 130);
}

#[test]
fn a_socket_is_of_its_user_and_of_one_run() {
    let dir = folder("control-socket");
    let slow = ["--speed", "0.01"];
    let going = Going::start(&dir, BULK, &slow);
    let mode = fs::symlink_metadata(dir.join("run.sock")).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    let second = run(&dir, BULK, &["--control", "run.sock"]);
    assert_eq!(second.status, 2);
    assert!(second.err.contains("a program listens there already"), "{}", second.err);
    // The socket of a killed run is replaced.
    going.kill();
    assert!(dir.join("run.sock").exists());
    let refused = ctl(&dir, &["list"]);
    assert_eq!(refused.status, 2);
    assert!(refused.err.contains("nobody listens at run.sock"), "{}", refused.err);
    let going = Going::start(&dir, BULK, &slow);
    done(&dir, &["stop"]);
    assert_eq!(going.end().status, 130);
    // Nothing is left beside it.
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["scenario.toml"]);
    // Other files are left alone, and a socket that somebody else has put there meanwhile.
    fs::write(dir.join("run.sock"), "mine").unwrap();
    let said = run(&dir, BULK, &["--control", "run.sock"]);
    assert_eq!((said.status, said.err.contains("there is a file that is no socket")), (2, true), "{}", said.err);
    assert_eq!(fs::read_to_string(dir.join("run.sock")).unwrap(), "mine");
    fs::remove_file(dir.join("run.sock")).unwrap();
    let going = Going::start(&dir, BULK, &["--speed", "20"]);
    fs::remove_file(dir.join("run.sock")).unwrap();
    let _other = UnixListener::bind(dir.join("run.sock")).unwrap();
    assert_eq!(going.end().status, 0);
    assert!(dir.join("run.sock").exists());
    let said = run(&dir, BULK, &["--control", "no/such/run.sock"]);
    assert_eq!(said.status, 2, "{}", said.err);
}

#[test]
fn options_that_do_not_fit_are_refused() {
    let dir = folder("control-options");
    for (scenario, args, part) in [
        (sweep(), ["--control", "run.sock"], "--control requires a single run, and the scenario has 6"),
        (sweep(), ["--speed", "2"], "--speed requires a single run"),
        (sweep(), ["--changes", "x"], "--changes requires a single run"),
        (SMALL.to_owned(), ["--speed", "0"], "0 is no speed; expected a number from"),
        (SMALL.to_owned(), ["--speed", "fast"], "expected a number, such as 0.5 or 10"),
        (SMALL.to_owned(), ["--changes", "none"], "cannot use none for --changes"),
        (SMALL.to_owned(), ["--changes", "scenario.toml"], "line 1: expected { \"at_ns\""),
        (SMALL.to_owned(), ["--changes", "."], "no manifest.json"),
    ] {
        let said = run(&dir, &scenario, &args);
        assert_eq!(said.status, 2, "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
    fs::write(dir.join("wrong.jsonl"), "{\"at_ns\":5,\"set\":\"links.wire.rate=5\"}\n").unwrap();
    let said = run(&dir, SMALL, &["--changes", "wrong.jsonl"]);
    assert_eq!(said.status, 2);
    assert!(said.err.contains("the change at 0.000000005 s: links.wire.rate"), "{}", said.err);
    assert!(!dir.join("run.sock").exists());
}

#[test]
fn requests_that_are_wrong_change_nothing() {
    let dir = folder("control-wrong");
    let going = Going::start(&dir, BULK, &["--speed", "0.01"]);
    for (request, part) in [
        (&["set", "links.wire.rate=5"][..], "a rate with its unit"),
        (&["set", "links.wire.delay=1ms", "links.wire.rat=5mbit"], "unknown key `rat`"),
        (&["set", "links.wier.rate=5mbit"], "the links are `wire`"),
        (&["set"], "KEY=VALUE"),
        (&["get", "links.wire.rate"], "is 10mbit forward and 1gbit in reverse"),
        (&["dance"], "unknown request `dance`; expected set KEY=VALUE"),
        (&["speed", "-1"], "is no speed"),
        (&["status\nstop"], "a request is one line"),
    ] {
        let said = ctl(&dir, request);
        assert_eq!(said.status, 2, "{request:?}: {}", said.err);
        assert!(said.err.contains(part), "{request:?}: {}", said.err);
    }
    // All or none: the delay is as it was.
    assert_eq!(done(&dir, &["get", "links.wire.delay"]), "5ms\n");
    assert_eq!(ctl(&dir, &[]).status, 2);
    done(&dir, &["stop"]);
    going.end();
    assert_eq!(ctl(&dir, &["list"]).status, 2);
}

#[test]
fn clients_that_misbehave_are_in_nobodys_way() {
    let dir = folder("control-clients");
    let mut going = Going::start(&dir, BULK, &["--speed", "0.05"]);
    let socket = dir.join("run.sock");
    let connect = || UnixStream::connect(&socket).unwrap();
    let answer = |stream: &UnixStream| {
        let mut line = String::new();
        BufReader::new(stream).read_line(&mut line).unwrap();
        line
    };
    // A line without an end that is too long; bytes that are no text, after which it goes on.
    let mut long = connect();
    long.write_all(&vec![b'x'; 200_000]).unwrap_or(());
    assert!(answer(&long).contains("error a request of more than 65536 bytes"));
    let mut bytes = connect();
    bytes.write_all(b"set \xff\xfe\nstatus\n").unwrap();
    let mut lines = BufReader::new(&bytes).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "error the request is not UTF-8");
    assert!(lines.next().unwrap().unwrap().starts_with("ok running at "));
    drop((long, lines));
    drop(bytes);
    thread::sleep(Duration::from_millis(100));
    // Some that say nothing, or half a request, or do not read a great many answers.
    let mut silent: Vec<UnixStream> = (0..12).map(|_| connect()).collect();
    silent[0].write_all(b"set links.wire.rate=").unwrap();
    let mut deaf = connect();
    deaf.set_nonblocking(true).unwrap();
    while deaf.write(&b"list\n".repeat(1000)).is_ok() {}
    let begun = done(&dir, &["status"]);
    done(&dir, &["set", "links.wire.delay=9ms"]);
    // No more than there is room for.
    let more: Vec<UnixStream> = (0..8).map(|_| connect()).collect();
    let refused = more.last().unwrap();
    assert_eq!(answer(refused), "error there are 16 connections already\n");
    assert_eq!(refused.take(1).read(&mut [0]).unwrap(), 0);
    drop((more, silent, deaf));
    thread::sleep(Duration::from_millis(100));
    assert_ne!(done(&dir, &["status"]), begun);
    assert!(!going.has_ended());
    done(&dir, &["stop"]);
    assert_eq!(going.end().status, 130);
}

/// Two kernels with a link between them, and a ping.
fn live(name: &str) -> String {
    let process = std::process::id();
    let host = |id: &str, number: u8| {
        format!(
            "[hosts.{id}]\ntun = \"ack0\"\nnetns = \"ackt-{name}{id}-{process}\"\naddress = \"10.78.0.{number}/24\"\n"
        )
    };
    format!(
        "schema = 1
title = \"live\"
[run]
duration = \"4s\"
lateness_limit = false
[links.wire]
rate = \"10mbit\"
delay = \"1ms\"
{}{}[[paths]]
between = [\"left\", \"right\"]
path = [\"wire\"]
[[commands]]
id = \"ping\"
host = \"left\"
run = \"exec ping -D -i 0.02 10.78.0.2\"
measure = \"ping\"
",
        host("left", 1),
        host("right", 2)
    )
}

/// The round trips of a ping in ms, in order.
fn round_trips(printed: &str) -> Vec<f64> {
    let time = |line: &str| line.split("time=").nth(1)?.split(' ').next()?.parse().ok();
    printed.lines().filter_map(time).collect()
}

#[test]
fn a_live_run_that_was_changed_is_replayed_identically() {
    if !can_go_live("a_live_run_that_was_changed_is_replayed_identically", &["ping"]) {
        return;
    }
    let dir = folder("control-live");
    let scenario = live("ctl");
    let going = Going::start(&dir, &scenario, &["--record", "run.pcapng", "--out", "out", "--quiet"]);
    assert!(ctl(&dir, &["pause"]).err.contains("a live run goes by the machine's clock"));
    assert!(ctl(&dir, &["speed", "2"]).err.contains("a live run goes by the machine's clock"));
    thread::sleep(Duration::from_millis(800));
    done(&dir, &["set", "links.wire.delay=30ms"]);
    thread::sleep(Duration::from_millis(800));
    // 84 bytes take 84 ms at 8 kbit/s; 20 ms apart they wait.
    done(&dir, &["set", "links.wire.forward.rate=8kbit", "links.wire.delay=2ms"]);
    thread::sleep(Duration::from_millis(600));
    done(&dir, &["set", "links.wire.forward.rate=10mbit"]);
    assert!(ctl(&dir, &["get", "links.wire.rate"]).out.contains("10mbit"));
    let ended = going.end();
    assert!(ended.status <= 1, "{}", ended.err);

    let summary = json(&fs::read_to_string(dir.join("out/summary.json")).unwrap());
    let changes = summary["changes"].as_array().unwrap();
    let sets: Vec<&str> = changes.iter().map(|change| change["set"].as_str().unwrap()).collect();
    let expected = [
        "links.wire.delay=30ms",
        "links.wire.forward.rate=8kbit",
        "links.wire.delay=2ms",
        "links.wire.forward.rate=10mbit",
    ];
    assert_eq!(sets, expected);
    // The pings have seen it: 2 ms, then 60, then far more.
    let trips = round_trips(&fs::read_to_string(dir.join("out/commands/ping.stdout")).unwrap());
    let first = trips.iter().position(|&ms| ms > 59.0).expect("a longer delay");
    assert!(first > 5 && trips[..first].iter().filter(|&&ms| ms < 30.0).count() > first / 2, "{trips:?}");
    assert!(trips.iter().any(|&ms| ms > 120.0), "{trips:?}");
    assert!(trips.last().is_some_and(|&ms| ms < 50.0), "{trips:?}");

    let replay = run(&dir, &scenario, &["--set", "run.replay=run.pcapng", "--json"]);
    assert_eq!(replay.status, 0, "{}", replay.err);
    let replayed = json(&replay.out);
    assert_eq!(replayed["live"]["valid"], true);
    assert!(replayed["live"]["compared_packets"].as_u64().unwrap() > 200);
    assert_eq!(replayed["changes"], summary["changes"]);
    // A link of that name is required.
    let other = scenario.replace("links.wire", "links.other").replace("\"wire\"", "\"other\"");
    let refused = run(&dir, &other, &["--set", "run.replay=run.pcapng", "--json"]);
    assert_eq!(refused.status, 2, "{}", refused.err);
    assert!(
        refused.err.contains("the change at ") && refused.err.contains("there is no link `wire`"),
        "{}",
        refused.err
    );
    for option in ["--control", "--speed", "--changes"] {
        let said = run(&dir, &scenario, &["--set", "run.replay=run.pcapng", option, "1"]);
        assert_eq!((said.status, said.err.contains("is not for a replay")), (2, true), "{}", said.err);
    }
    let tshark = Command::new("tshark").args(["-r", "run.pcapng"]).current_dir(&dir).output();
    match tshark {
        Ok(output) => {
            let said: Said = output.into();
            assert_eq!(said.status, 0, "{}", said.err);
            assert!(said.out.lines().count() > 200, "{}", said.out);
        }
        Err(error) => skipped("tshark reads a capture with changes", &error.to_string()),
    }
}

#[test]
fn a_shell_listens() {
    if !can_go_live("a_shell_listens", &["ping"]) {
        return;
    }
    let dir = folder("control-shell");
    let script = "ping -c 3 -i 0.01 $ACKCLOCK_PEER; : > first; sleep 1; ping -c 3 -i 0.2 $ACKCLOCK_PEER";
    let child = ackclock()
        .current_dir(&dir)
        .args(["shell", "--delay", "1ms", "--control", "run.sock", "--", "sh", "-c", script])
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let going = Going(Some(child));
    // The first three have been answered before the change.
    let set = || dir.join("first").exists() && ctl(&dir, &["set", "links.link.delay=40ms"]).status == 0;
    assert!((0..500).any(|_| set() || {
        thread::sleep(Duration::from_millis(10));
        false
    }));
    let said = going.end();
    assert_eq!(said.status, 0, "{}", said.err);
    let trips = round_trips(&said.out);
    assert!(trips.first().is_some_and(|&ms| ms < 30.0) && trips.last().is_some_and(|&ms| ms > 79.0), "{trips:?}");
    assert!(!dir.join("run.sock").exists());
}
