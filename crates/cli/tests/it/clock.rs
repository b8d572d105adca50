//! `--clock` and `--record`: what they refuse, and a live scenario without anything live. None of
//! it needs root.

use std::fs;

use crate::common::{SMALL, folder, run};
use serde_json::Value;

/// Two kernels, a connection of theirs and a program.
const LIVE: &str = "schema = 1
title = \"live\"

[run]
duration = \"2s\"

[links.wire]
rate = \"10mbit\"
delay = \"5ms\"

[hosts.left]
tun = \"ack0\"
netns = \"ackt-clock-left\"
address = \"10.0.0.1/24\"

[hosts.right]
tun = \"ack0\"
netns = \"ackt-clock-right\"
address = \"10.0.0.2/24\"

[[paths]]
between = [\"left\", \"right\"]
path = [\"wire\"]

[[flows]]
id = \"f\"
from = \"left\"
to = \"right\"
port = 5001

[[commands]]
id = \"ping\"
host = \"left\"
run = \"ping 10.0.0.2\"
";

#[test]
fn a_live_scenario_runs_on_the_virtual_clock() {
    let folder = folder("clock_virtual");
    let said = run(&folder, LIVE, &["--clock", "virtual", "--out", "out"]);
    assert_eq!(said.status, 0, "{}", said.err);
    // The missing parts are reported.
    assert!(said.err.lines().all(|line| line.starts_with("note: ")), "{}", said.err);
    for part in ["runs no commands: ping", "the kernel of `left` is stood in for by linux-6.1"] {
        assert!(said.err.contains(part), "{part} in {}", said.err);
    }
    assert!(said.out.contains("2 s simulated"), "{}", said.out);
    let summary: Value = serde_json::from_slice(&fs::read(folder.join("out/summary.json")).unwrap()).unwrap();
    assert_eq!(summary["clock"], "virtual");
    assert!(summary.get("live").is_none() && summary.get("commands").is_none() && summary.get("partial").is_none());
    // 2 s of 10 Mbit/s less the opening, of which 1448 of 1500 bytes are payload.
    let goodput = summary["flows"][0]["goodput_bps"].as_f64().expect("a number");
    assert!((8e6..=9.66e6).contains(&goodput), "{goodput}");
    // The manifest's scenario is by the clock that was asked for, without the flag.
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("out/manifest.json")).unwrap()).unwrap();
    assert!(manifest.get("partial").is_none());
    let again = run(&folder, manifest["scenario"].as_str().unwrap(), &["--json"]);
    assert_eq!(serde_json::from_str::<Value>(&again.out).expect("JSON"), summary, "{}", again.err);
}

#[test]
fn clocks_that_cannot_be_are_refused() {
    let folder = folder("clock_refused");
    for (scenario, args, part) in [
        (SMALL, &["--clock", "sundial"][..], "[possible values: virtual, live, replay]"),
        (SMALL, &["--clock", "live"], "the live clock requires a host with a device"),
        (LIVE, &["--clock", "replay"], "the path of a capture"),
        (LIVE, &["--clock", "virtual", "--set", "run.replay=x.pcapng"], "a capture with the virtual clock"),
        (SMALL, &["--record", "x.pcapng"], "error: --record requires a live run (hosts"),
        (LIVE, &["--record", "x.pcapng", "--clock", "virtual"], "error: --record requires a live run (hosts"),
        (LIVE, &["--set", "run.replay=missing.pcapng", "-q"], "missing.pcapng"),
    ] {
        let said = run(&folder, scenario, args);
        assert_eq!((said.status, said.out.as_str()), (2, ""), "{args:?}: {}", said.err);
        assert!(said.err.contains(part), "{args:?}: {}", said.err);
    }
    // The flag is what errors point at.
    assert!(run(&folder, SMALL, &["--clock", "live"]).err.contains("--clock"));
    let sweep = format!("{LIVE}\n[sweep]\nrepeat = 3\n");
    let said = run(&folder, sweep, &["--record", "x.pcapng"]);
    assert_eq!(
        (said.status, said.err.as_str()),
        (2, "error: --record requires a single run, and the scenario has 3\n")
    );
    assert!(!folder.join("x.pcapng").exists());
}
