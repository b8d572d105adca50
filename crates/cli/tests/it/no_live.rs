//! A build without live mode says so, before it does anything; what needs no devices works.

#![cfg(not(all(feature = "live", target_os = "linux")))]

use std::fs;

use crate::common::{ackclock, folder};

const MISSING: &str = "error: this build has no live mode, which requires Linux and the feature `live`\n";

/// Two hosts outside, and a flow between them.
const LIVE: &str = r#"schema = 1
[run]
duration = "1s"
[links.wire]
rate = "10mbit"
delay = "5ms"
[hosts.left]
tun = "ack0"
netns = "ackt-none-left"
address = "10.0.0.1/24"
[hosts.right]
tun = "ack0"
netns = "ackt-none-right"
address = "10.0.0.2/24"
[[paths]]
between = ["left", "right"]
path = ["wire"]
[[flows]]
id = "f"
from = "left"
to = "right"
port = 5001
"#;

#[test]
fn live_runs_and_the_shell_are_refused_and_leave_nothing() {
    let dir = folder("no-live");
    fs::write(dir.join("live.toml"), LIVE).unwrap();
    for args in [
        &["live.toml"][..],
        &["live.toml", "--out", "out"],
        &["live.toml", "--record", "out.pcapng"],
        &["shell", "--delay", "1ms", "--save", "saved.toml"],
    ] {
        let output = ackclock().current_dir(&dir).args(args).output().expect("the binary runs");
        let said = (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned());
        assert_eq!(said, (Some(2), MISSING.to_owned()), "{args:?}");
        assert!(output.stdout.is_empty(), "{args:?}");
    }
    let left: Vec<_> = fs::read_dir(&dir).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left.len(), 2, "{left:?}");
    assert!(fs::read_to_string(dir.join("saved.toml")).unwrap().contains("[links"));
}

#[test]
fn checks_and_the_virtual_clock_work_as_ever() {
    let dir = folder("no-live-virtual");
    fs::write(dir.join("live.toml"), LIVE).unwrap();
    for args in [&["check", "live.toml"][..], &["live.toml", "--show-config"], &["live.toml", "--clock", "virtual"]] {
        let output = ackclock().current_dir(&dir).args(args).output().expect("the binary runs");
        assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    }
}
