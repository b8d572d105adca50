//! Segmentation offload below which packets are spread over two paths: the trace of a real kernel.

use std::ops::ControlFlow;

use ackclock_scenario::Scenario;
use ackclock_sim::{Recorders, run_recorded};
use ackclock_trace::{TcpEvent, TcpRecord, TcpSink};

const MSS: u64 = 1448;

/// The aggregated path of the thesis "Reordering in Linux TCP" (Oslo, 2015), HSPA first.
fn text(flow: &str) -> String {
    let link = |name: &str, delay: &str| {
        format!(
            r#"
[links.{name}]
rate     = "5mbit"
burst    = "1600B"
overhead = "14B"
queue    = {{ kind = "pfifo", limit = "84p" }}
reverse  = {{ rate = "unlimited", burst = false }}

[links.{name}_far]
rate  = "unlimited"
delay = "{delay}"
"#
        )
    };
    format!(
        r#"
schema = 1

[run]
duration = "1s"

[record]
tcp = true
{}{}
[[flows]]
id             = "bulk"
paths          = [["hspa", "hspa_far"], ["wlan", "wlan_far"]]
split          = {{ kind = "send_vector", weights = [1, 1] }}
diverge        = "handshake"
host           = "linux-4.0"
cc             = "cubic"
send_buffer    = "auto"
receive_buffer = "auto"
{flow}
"#,
        link("hspa", "50ms"),
        link("wlan", "5ms"),
    )
}

/// The state after each ACK, in segments from the start of the stream: the ACK, `sacked_out`,
/// `fackets_out`, `retrans_out` and `reordering`.
#[derive(Debug, Default)]
struct Trace(Vec<[u64; 5]>);

impl TcpSink for Trace {
    fn record(&mut self, record: &TcpRecord<'_>) -> ControlFlow<()> {
        if let TcpEvent::Ack(ack) = record.event {
            let counts = [ack.sacked_out, ack.fackets_out, ack.retrans_out, u64::from(ack.reordering)];
            self.0.push([ack.ack / MSS, counts[0], counts[1], counts[2], counts[3]]);
        }
        ControlFlow::Continue(())
    }
}

fn trace(flow: &str) -> Vec<[u64; 5]> {
    let scenario = Scenario::parse("test", text(flow).as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
    let mut trace = Trace::default();
    let recorders = Recorders { tcp: Some(&mut trace), ..Recorders::default() };
    run_recorded(&scenario.spec(0), recorders, &mut |_| ControlFlow::Continue(())).expect("nobody interrupts");
    trace.0
}

const UNITS: &str = "segmentation_offload = true\nsplit_unit = \"unit\"";

/// Table 4.3 of the thesis: after each of 14 ACKs. The first segment outstanding is 1 there, and
/// the third of the stream here. Retransmissions that an ACK allows are counted there with it, here
/// with the next one.
const TABLE: [[u64; 5]; 14] = [
    [1, 1, 3, 0, 3],
    [1, 2, 4, 1, 3],
    [1, 3, 7, 2, 3],
    [1, 4, 8, 2, 3],
    [1, 4, 8, 2, 3],
    [2, 4, 7, 1, 8],
    [5, 2, 4, 0, 8],
    [6, 2, 3, 0, 8],
    [9, 0, 0, 0, 8],
    [9, 1, 3, 0, 8],
    [9, 2, 4, 0, 8],
    [9, 2, 4, 0, 8],
    [10, 2, 3, 0, 8],
    [13, 0, 0, 0, 8],
];

#[test]
fn a_connection_begins_as_in_the_trace_of_a_kernel() {
    let found = trace(UNITS);
    // The handshake, and both segments of the first unit.
    assert_eq!(found[..3], [[0, 0, 0, 0, 3], [1, 0, 0, 0, 3], [2, 0, 0, 0, 3]]);
    let expected: Vec<_> = (0..TABLE.len())
        .map(|row| {
            let [ack, sacked, fackets, retrans, reordering] = TABLE[row];
            // While nothing that was sent again is acknowledged.
            let retrans = if row > 0 && row < 5 { TABLE[row - 1][3] } else { retrans };
            [ack + 1, sacked, fackets, retrans, reordering]
        })
        .collect();
    assert_eq!(found[3..17], expected);
}

#[test]
fn without_units_it_begins_otherwise() {
    // Every other segment arrives early, not every other pair: after one is acknowledged, the one
    // behind the next is reported.
    for flow in ["", "split_unit = \"unit\""] {
        let found = trace(flow);
        assert_eq!(found[1..4], [[1, 0, 0, 0, 3], [1, 1, 2, 0, 3], [1, 2, 4, 0, 3]]);
    }
    // A unit whose packets part is no different for the path, but is sent as one.
    let apart = trace("segmentation_offload = true");
    assert_eq!(apart[1..4], [[1, 0, 0, 0, 3], [1, 1, 2, 0, 3], [1, 2, 4, 0, 3]]);
}

#[test]
fn offload_is_off_unless_told_and_not_of_every_host() {
    let parse = |flow: &str| {
        let scenario = Scenario::parse("test", text(flow).as_bytes(), &[]);
        scenario.map(|scenario| scenario.spec(0)).map_err(|error| error.to_string())
    };
    let spec = parse("").expect("a scenario");
    assert!(!spec.flows[0].split.as_ref().expect("two paths").whole_units);
    assert!(parse(UNITS).expect("a scenario").flows[0].split.as_ref().expect("two paths").whole_units);
    let other = text(UNITS).replace("linux-4.0", "linux-3.9");
    let error = Scenario::parse("test", other.as_bytes(), &[]).expect_err("not modelled").to_string();
    assert!(error.contains("segmentation offload of this host is not modelled"), "{error}");
    assert!(parse("split_unit = \"pair\"").expect_err("unknown").contains("split_unit"));
}
