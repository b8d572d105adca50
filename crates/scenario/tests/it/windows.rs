//! The measurements in parts of a run, and in sliding windows: they add up to those of the whole.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_trace::{FlowWindow, Summary};

/// Two paths of different delay in turn, so that the threshold adapts, and queues that overflow.
const TWO_PATHS: &str = r#"
schema = 1

[run]
duration = "20s"

[record]
reordering = ["sequence", "first_arrival"]

[links.near]
rate  = "5mbit"
delay = "5ms"
queue = { kind = "pfifo", limit = "30p" }

[links.far]
rate  = "5mbit"
delay = "50ms"
queue = { kind = "pfifo", limit = "84p" }

[[flows]]
id    = "bulk"
paths = [["near"], ["far"]]
split = "round_robin"
host  = "linux-4.0"
cc    = "cubic"
start = "1s"
send_buffer    = "4MB"
receive_buffer = "4MB"

[[expect]]
metric   = "flows.bulk.0.ca_state_s.disorder"
to       = "3s"
at_least = 0

[[expect]]
metric   = "flows.bulk.0.dupthresh"
from     = "3s"
to       = "11s"
at_least = 3

[[expect]]
metric   = "flows.bulk.0.dupthresh_start"
from     = "11s"
at_least = 3
"#;

fn summary(file: &str) -> Summary<()> {
    let scenario = Scenario::parse("test.toml", file.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    ackclock_sim::run(&scenario.spec(0), &mut |_| ControlFlow::Continue(())).expect("it ends well")
}

#[test]
fn congestion_states_and_the_threshold_of_parts_make_up_the_whole() {
    let summary = summary(TWO_PATHS);
    let mut windows: Vec<(f64, f64, &FlowWindow)> =
        summary.windows.iter().map(|window| (window.from_s, window.to_s, &window.flows[0])).collect();
    windows.sort_by(|one, other| one.0.total_cmp(&other.0));
    assert_eq!(windows.len(), 3);
    let whole = &summary.flows[0].ca_state_s;
    let near = |parts: f64, whole: f64| assert!((parts - whole).abs() < 1e-6, "{parts} {whole}");
    let sum = |of: fn(&FlowWindow) -> f64| windows.iter().map(|window| of(window.2)).sum::<f64>();
    near(sum(|window| window.ca_state_s.open), whole.open);
    near(sum(|window| window.ca_state_s.disorder), whole.disorder);
    near(sum(|window| window.ca_state_s.recovery), whole.recovery);
    near(sum(|window| window.ca_state_s.loss), whole.loss);
    assert!(whole.disorder > 1.0 && whole.recovery > 0.0, "{whole:?}");
    // Each is as long as its window, but for the time before the flow began.
    for (from, to, window) in &windows {
        let states = &window.ca_state_s;
        let length = states.open + states.disorder + states.cwr + states.recovery + states.loss;
        near(length, to - from.max(1.0));
    }
    // The threshold begins at 3, goes on from window to window, and was raised.
    assert_eq!(windows[0].2.dupthresh_start, Some(3));
    for pair in windows.windows(2) {
        assert_eq!(pair[0].2.dupthresh, pair[1].2.dupthresh_start);
    }
    assert!(windows[2].2.dupthresh > Some(3));
}

#[test]
fn goodput_in_windows_is_what_arrives_for_the_first_time() {
    let summary = summary(TWO_PATHS);
    let flow = &summary.flows[0];
    let (goodput, throughput) = (&flow.goodput_windows_bps, &flow.throughput_bps);
    // 36 windows: each byte but for those of the first and the last 2 s counts in four.
    let mean = goodput.mean.expect("windows");
    assert!((mean / flow.goodput_bps - 1.0).abs() < 0.1, "{mean} {}", flow.goodput_bps);
    // Headers, and what came again.
    assert!(mean < throughput.mean.expect("windows") * 1448.0 / 1500.0);
    let [low, median] = [goodput.quantiles.p5, goodput.quantiles.p50].map(|value| value.expect("windows"));
    assert!(low < 0.99 * median, "losses show");
    // Data delivered in order at the end is at least the arrived data less the waiting data.
    assert!(flow.sent.retransmitted_packets > 0);
}

#[test]
fn a_segment_that_was_lost_arrives_for_the_first_time_when_it_comes_again() {
    let summary = summary(TWO_PATHS);
    let flow = &summary.flows[0];
    let [sent_once, first] = ["sequence", "first_arrival"].map(|place| &flow.reordering[place]);
    let fresh = flow.sent.sent_packets - flow.sent.retransmitted_packets;
    // All but what was on its way at the end.
    assert!(first.packets <= fresh && first.packets + 400 > fresh, "{} {fresh}", first.packets);
    assert!(first.packets > sent_once.packets, "some came again for the first time");
    assert!(first.duplicates > 0 && first.duplicates < flow.sent.retransmitted_packets);
    assert_eq!((sent_once.duplicates, first.beyond), (0, 0));
    // The data comes at least a round trip behind its place.
    let late = |places: &ackclock_trace::PacketReordering| places.displacement.max.expect("packets");
    assert!(late(first) > 2.0 * late(sent_once), "{} {}", late(first), late(sent_once));
    assert!((first.early + first.on_time + first.late - 1.0).abs() < 1e-9);
}
