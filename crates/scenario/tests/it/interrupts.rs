//! Hosts whose packets wait for interrupts.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::Summary;

/// A flow through a bottleneck, with more keys and links.
fn text(flow: &str, links: &str) -> String {
    format!(
        r#"
schema = 1

[run]
duration = "5s"

[links.bottleneck]
rate  = "10mbit"
delay = "10ms"
queue = {{ kind = "pfifo", limit = "50p" }}
{links}
[[flows]]
id   = "bulk"
host = "linux-6.1"
cc   = "cubic"
{flow}
"#
    )
}

fn spec(flow: &str, links: &str) -> RunSpec {
    let text = text(flow, links);
    Scenario::parse("test", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}")).spec(0)
}

fn run(spec: &RunSpec) -> Summary<()> {
    ackclock_sim::run(spec, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts")
}

fn summary(flow: &str, links: &str) -> Summary<()> {
    run(&spec(flow, links))
}

fn error(flow: &str) -> String {
    Scenario::parse("test", text(flow, "").as_bytes(), &[]).expect_err("wrong").to_string()
}

/// A host's interface, spelt out.
const LINKS: &str = r#"
[links.first]
rate    = "unlimited"
delay   = "0s"
queue   = { kind = "pfifo", limit = "1000000p" }
reverse = { slots = { delay = "300us" } }

[links.last]
rate    = "unlimited"
delay   = "0s"
queue   = { kind = "pfifo", limit = "1000000p" }
slots   = { delay = "2ms" }
reverse = { slots = false }
"#;

#[test]
fn interfaces_are_links_with_slots_at_the_ends_of_the_path() {
    for direction in ["forward", "reverse"] {
        let keys = |path: &str| format!("path = {path}\ndirection = \"{direction}\"");
        // The sender stands at the far end of the path if the data goes against it.
        let (first, last) = if direction == "forward" { ("300us", "2ms") } else { ("2ms", "300us") };
        let interrupts =
            format!("interrupts = {{ delay = \"{first}\" }}\nreceiver = {{ interrupts = {{ delay = \"{last}\" }} }}");
        let of_hosts = summary(&format!("{}\n{interrupts}", keys(r#"["bottleneck"]"#)), "");
        let of_links = summary(&keys(r#"["first", "bottleneck", "last"]"#), LINKS);
        assert_eq!(of_hosts.flows, of_links.flows, "{direction}");
        let names: Vec<&str> = of_hosts.links.iter().map(|link| &*link.id).collect();
        assert_eq!(names, ["bottleneck.forward", "bottleneck.reverse"], "interfaces are not listed");
    }
}

#[test]
fn a_round_trip_is_longer_by_both_delays_when_packets_are_rare() {
    // One segment per round trip at most: each waits for an interrupt of its own, and so does its
    // ACK.
    let alone = "path = [\"bottleneck\"]\nsend_buffer = \"1000B\"\ndelayed_ack = { segments = 1 }";
    let rtt = |more: &str| {
        let summary = summary(&format!("{alone}\n{more}"), "");
        summary.flows[0].rtt_ms.quantiles.p50.expect("it has round trips")
    };
    let (at_once, later) = (rtt(""), rtt("interrupts = { delay = \"400us\" }"));
    // A histogram's bins are within 1 %.
    assert!((later - at_once - 0.8).abs() < 0.01 * later, "{at_once} {later}");
}

#[test]
fn ends_inherit_and_are_told_apart() {
    let interfaces = |flow: &str| {
        let spec = spec(&format!("path = [\"bottleneck\"]\n{flow}"), "");
        let links = spec.links.iter().filter(|link| link.is_interface);
        links.map(|link| link.name.clone()).collect::<Vec<_>>()
    };
    assert_eq!(interfaces(""), [""; 0]);
    assert_eq!(interfaces("interrupts = { delay = \"1ms\" }"), ["bulk.0.sender", "bulk.0.receiver"]);
    assert_eq!(interfaces("receiver = { interrupts = { jitter = \"1ms\" } }"), ["bulk.0.receiver"]);
    assert_eq!(interfaces("interrupts = { delay = \"1ms\" }\nreceiver = { interrupts = false }"), ["bulk.0.sender"]);
    assert_eq!(interfaces("interrupts = { delay = \"1ms\" }\nreceiver = \"linux-6.1\""), ["bulk.0.sender"]);
    let each = interfaces("count = 2\ninterrupts = { delay = \"1ms\" }");
    assert_eq!(each, ["bulk.0.sender", "bulk.0.receiver", "bulk.1.sender", "bulk.1.receiver"]);
}

#[test]
fn all_paths_of_a_flow_pass_its_interfaces() {
    let links = "\n[links.other]\nrate = \"5mbit\"\ndelay = \"30ms\"\n";
    let [split, mptcp] = ["paths = PATHS", "transport = \"mptcp\"\nsubflows = PATHS"];
    for keys in [split, mptcp] {
        let keys = keys.replace("PATHS", r#"[["bottleneck"], ["other"]]"#);
        let flow = format!("{keys}\ninterrupts = {{ delay = \"1ms\" }}");
        let spec = spec(&flow, links);
        let group = &spec.flows[0].group;
        let split = group.split.as_ref().map(|split| &split.others);
        let others = split.or(group.mptcp.as_ref().map(|mptcp| &mptcp.others)).expect("two paths");
        assert_eq!((&group.path, &others[0]), (&vec![2, 0, 3], &vec![2, 1, 3]), "{keys}");
        let summary = run(&spec);
        assert!(summary.flows[0].goodput_bps > 1e6, "{keys}");
    }
}

#[test]
fn jitter_is_drawn_for_each_host() {
    let goodputs = |id: &str| {
        let flow = format!("path = [\"bottleneck\"]\ncount = 2\ninterrupts = {{ jitter = \"{id}\" }}");
        let summary = summary(&flow, "");
        summary.flows.iter().map(|flow| flow.goodput_bps).collect::<Vec<_>>()
    };
    assert_eq!(goodputs("1ms"), goodputs("1ms"));
    assert_ne!(goodputs("1ms"), goodputs("2ms"));
}

#[test]
fn where_there_are_none_an_error_says_so() {
    let path = "path = [\"bottleneck\"]\n";
    let sums = error(&format!("{path}results = \"sum\"\ninterrupts = {{ delay = \"1ms\" }}"));
    assert!(sums.contains("flows.bulk.interrupts: not with `results = \"sum\"`"), "{sums}");
    let many = error(&format!("{path}count = 5001\ninterrupts = {{ delay = \"1ms\" }}"));
    assert!(many.contains("10002 hosts with `interrupts` are too many"), "{many}");
    let never = error(&format!("{path}interrupts = {{ packets = 3 }}"));
    assert!(never.contains("flows.bulk.interrupts: neither `delay` nor `jitter`"), "{never}");
}
