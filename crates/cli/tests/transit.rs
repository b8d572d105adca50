//! Hosts that stand for networks, behind interfaces of the machine: in a network namespace of the
//! test's own, which is the machine here.

#![cfg(all(feature = "live", target_os = "linux"))]

#[path = "it/common/mod.rs"]
mod common;

use std::fs;
use std::process::Command;

use ackclock_testkit::can_go_live;
use common::folder;

/// Two networks, each behind an interface, with a link between them.
const SCENARIO: &str = r#"
schema = 1

[run]
duration = "3s"
lateness_limit = false

[links.wan]
delay = "15ms"
rate = "10mbit"

[hosts.near]
tun = "ack0"
netns = "ackt-near-PID"
address = "10.255.0.1/30"
interface = "if-near"
routes = ["10.71.0.0/24"]

[hosts.far]
tun = "ack0"
netns = "ackt-far-PID"
address = "10.255.0.2/30"
interface = "if-far"
routes = ["0.0.0.0/0"]

[[paths]]
between = ["near", "far"]
path = ["wan"]

[[commands]]
id = "ping"
host = "near"
run = "ip netns exec ackt-client-PID ping -c 3 -i 0.2 -W 2 10.72.0.9 && sleep WAIT"
terminal = true
"#;

/// Makes the two networks, runs the scenario twice, the first time until it is killed, and shows
/// what the interfaces have before and after.
const SCRIPT: &str = r#"
set -e
ip link set lo up
trap 'ip netns del ackt-client-PID; ip netns del ackt-server-PID' EXIT
ip netns add ackt-client-PID
ip netns add ackt-server-PID
ip link add if-near type veth peer name c0 netns ackt-client-PID
ip link add if-far type veth peer name s0 netns ackt-server-PID
ip addr add 10.71.0.1/24 dev if-near
ip addr add 10.72.0.1/24 dev if-far
ip link set if-near up
ip link set if-far up
ip route add 10.99.0.0/16 via 10.71.0.9
ip -n ackt-client-PID addr add 10.71.0.9/24 dev c0
ip -n ackt-client-PID link set c0 up
ip -n ackt-client-PID route add default via 10.71.0.1
ip -n ackt-server-PID addr add 10.72.0.9/24 dev s0
ip -n ackt-server-PID link set s0 up
ip -n ackt-server-PID route add default via 10.72.0.1
shows() { ip -4 -br addr show if-near; ip -4 -br addr show if-far; ip route; }
shows > before
sed 's/WAIT/1000/' scenario.toml > killed.toml
ACKCLOCK killed.toml --quiet > killed.out 2>&1 & run=$!
for n in $(seq 100); do grep -q 'bytes from' killed.out && break; sleep 0.05; done
ip -br link show if-near 2>/dev/null && echo 'the interface did not move'
kill -9 $run; wait $run || true
sed 's/WAIT/0/' scenario.toml > whole.toml
ACKCLOCK whole.toml --quiet
shows > after
diff before after
"#;

#[test]
fn networks_behind_interfaces_are_joined_by_the_link() {
    let test = "networks_behind_interfaces_are_joined_by_the_link";
    if !can_go_live(test, &["ip", "ping", "unshare"]) {
        return;
    }
    let folder = folder("transit");
    let with = |text: &str| {
        text.replace("PID", &std::process::id().to_string()).replace("ACKCLOCK", env!("CARGO_BIN_EXE_ackclock"))
    };
    fs::write(folder.join("scenario.toml"), with(SCENARIO)).expect("a scenario");
    let said = Command::new("unshare").args(["--net", "sh", "-c", &with(SCRIPT)]).current_dir(&folder).output();
    let said = said.expect("unshare");
    let (out, error) = (String::from_utf8_lossy(&said.stdout), String::from_utf8_lossy(&said.stderr));
    assert!(said.status.success(), "{out}{error}");
    // Through a router at each end and the one of the path, and over the link twice.
    let replies: Vec<&str> = out.lines().filter(|line| line.contains("bytes from 10.72.0.9")).collect();
    assert_eq!(replies.len(), 3, "{out}{error}");
    for reply in replies {
        let time = reply.split_once("time=").and_then(|(_, time)| time.split(' ').next()?.parse::<f64>().ok());
        assert!(reply.contains("ttl=61") && time.is_some_and(|time| time >= 30.0), "{reply}");
    }
}
