//! quinn over simulated networks.

use std::ops::ControlFlow;

use ackclock_live::run_virtual;
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::{QlogPoint, QlogRecorder, Recorders};
use ackclock_stack::RecoveryEvent;
use ackclock_trace::{QlogRecord, QlogSink, Summary};

/// A client and a server on a link of 20 Mbit/s, 40 ms there and back.
fn text(client: &str, queue: &str, more: &str) -> String {
    format!(
        "schema = 1\n[run]\nduration = \"20s\"\n\
         [links.wire]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = {queue}\n\
         [hosts.client]\naddress = \"10.0.0.1/24\"\nstack = {client}\n\
         [hosts.server]\naddress = \"10.0.0.2/24\"\nstack = \"quinn-server\"\n\
         [[paths]]\nbetween = [\"client\", \"server\"]\npath = [\"wire\"]\n{more}"
    )
}

fn run(text: &str) -> Summary<()> {
    recorded(text, Recorders::default())
}

fn recorded(text: &str, recorders: Recorders<'_>) -> Summary<()> {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let scenario = Scenario::parse_with("quic.toml", text.as_bytes(), &[], &own);
    let spec = scenario.unwrap_or_else(|error| panic!("{}", error.render(false))).spec(0);
    let outcome = run_virtual(&spec, recorders, &mut |_| ControlFlow::Continue(()));
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    outcome.summary
}

fn result(summary: &Summary<()>, host: usize, name: &str) -> Option<f64> {
    summary.live.as_ref()?.hosts[host].results.as_ref()?.get(name)?.as_f64()
}

#[test]
fn a_transfer_arrives_whole_and_ends() {
    for client in ["quinn-newreno", "quinn-cubic", "quinn-bbr"] {
        let client = format!("{{ kind = \"{client}\", bytes = 5000000, start_s = 1 }}");
        let summary = run(&text(&client, "{ kind = \"pfifo\", limit = \"100p\" }", ""));
        assert_eq!(result(&summary, 1, "received_bytes"), Some(5e6), "{client}");
        // A round trip of 40 ms, and what the messages of the handshake take at 20 Mbit/s.
        let handshake = result(&summary, 0, "handshake_ms").expect("a handshake");
        assert!((40.0..42.0).contains(&handshake), "{client}: {handshake}");
        // 40 Mbit at 20 Mbit/s.
        let completed = result(&summary, 0, "completed_s").expect("an end");
        assert!((2.0..6.0).contains(&completed), "{client}: {completed}");
    }
}

#[test]
fn runs_repeat_to_the_byte() {
    let lossy = "{ kind = \"pfifo\", limit = \"50p\" }\nloss = { kind = \"iid\", probability = 0.001 }";
    for client in ["\"quinn-cubic\"", "\"quinn-bbr\"", "\"quinn-own-cubic\""] {
        let [first, second] = [(); 2].map(|()| serde_json::to_string(&run(&text(client, lossy, ""))).unwrap());
        assert_eq!(first, second, "{client}");
    }
}

/// quinn negotiates ECN: fq_codel marks, and drops nothing.
#[test]
fn marks_are_answered_without_losses() {
    let summary = run(&text("\"quinn-cubic\"", "\"fq_codel\"", ""));
    let wire = &summary.links[0];
    assert!(wire.packets.marked > 0 && wire.packets.dropped.values().sum::<u64>() == 0, "{wire:?}");
    assert_eq!(result(&summary, 0, "lost_packets"), Some(0.0));
    assert!(result(&summary, 0, "congestion_events").expect("a number") > 0.0);
    assert!(wire.load.utilization > 0.9, "{:?}", wire.load.utilization);
}

/// A queue that serves flows in turn gives QUIC and TCP half of the link each.
#[test]
fn a_fair_queue_shares_a_link_with_tcp() {
    let tcp = "[hosts.left]\naddress = \"10.0.1.1/24\"\n[hosts.right]\naddress = \"10.0.1.2/24\"\n\
               [[paths]]\nbetween = [\"left\", \"right\"]\npath = [\"wire\"]\n\
               [[flows]]\nid = \"tcp\"\nfrom = \"left\"\nto = \"right\"\nport = 80\ncc = \"cubic\"\n";
    let summary = run(&text("\"quinn-cubic\"", "\"fq_codel\"", tcp));
    let (quic, tcp) = (result(&summary, 1, "goodput_bps").expect("a goodput"), summary.flows[0].goodput_bps);
    assert!((0.8..1.25).contains(&(quic / tcp)), "{quic} {tcp}");
}

/// Everything that a sender's log has.
#[derive(Debug, Default)]
struct Log(Vec<QlogRecord>);

impl QlogSink for Log {
    fn record(&mut self, record: &QlogRecord) -> ControlFlow<()> {
        self.0.push(*record);
        ControlFlow::Continue(())
    }
}

/// The log of a sender has quinn's own counts and variables, and changes no result.
#[test]
fn a_log_of_loss_recovery_agrees_with_the_results() {
    let queue = "{ kind = \"pfifo\", limit = \"67p\" }";
    for client in ["\"quinn-cubic\"", "\"quinn-bbr\"", "{ kind = \"quinn-own-newreno\", burst_packets = 8 }"] {
        let (text, mut log) = (text(client, queue, ""), Log::default());
        let qlog = Some(QlogRecorder { points: &[QlogPoint::Host(0)], sink: &mut log });
        let summary = recorded(&text, Recorders { qlog, ..Recorders::default() });
        assert_eq!(serde_json::to_string(&summary).unwrap(), serde_json::to_string(&run(&text)).unwrap(), "{client}");
        assert!(log.0.is_sorted_by_key(|record| record.at), "{client}");
        let (mut sent, mut lost, mut states, mut last) = (Vec::new(), 0, Vec::new(), None);
        for record in &log.0 {
            match record.event {
                RecoveryEvent::Sent(packet) => sent.push(packet),
                RecoveryEvent::Lost(_) => lost += 1,
                RecoveryEvent::State(state) => states.push(state),
                RecoveryEvent::Metrics(metrics) => last = Some(metrics),
            }
        }
        let of = |name| result(&summary, 0, name);
        assert_eq!(
            (Some(sent.len() as f64), Some(f64::from(lost))),
            (of("sent_packets"), of("lost_packets")),
            "{client}"
        );
        // Numbers of a space rise; the handshake has two spaces of its own.
        for kind in ["initial", "handshake", "1RTT"] {
            let numbers = sent.iter().filter(|packet| packet.kind == kind).map(|packet| packet.number);
            assert!(numbers.clone().count() > 0 && numbers.is_sorted_by(|a, b| a < b), "{client}, {kind}");
        }
        let last = last.expect("variables");
        let millis = |rtt: Option<ackclock_units::Span>| rtt.map(|rtt| rtt.as_nanos() as f64 / 1e6);
        assert_eq!(last.congestion_window.map(|bytes| bytes as f64), of("cwnd_bytes"), "{client}");
        for (logged, name) in [(last.smoothed_rtt, "srtt_ms"), (last.min_rtt, "min_rtt_ms")] {
            let (logged, result) = (millis(logged).expect("a round trip"), of(name).expect("a round trip"));
            assert!((logged - result).abs() < 1e-6, "{client}, {name}: {logged}, {result}");
        }
        states.dedup();
        if client.contains("bbr") {
            assert!(states.is_empty(), "{states:?}");
        } else {
            // The window may be below the threshold after a recovery (RFC 6582 section 3.2, step 3).
            assert_eq!(states[..2], ["slow_start", "recovery"], "{client}");
            assert!(states.contains(&"congestion_avoidance"), "{client}: {states:?}");
            // Marks are off: each reduction is a loss, and begins a recovery.
            let recoveries = states.iter().filter(|state| **state == "recovery").count();
            assert!(recoveries > 1 && recoveries as f64 <= of("congestion_events").unwrap(), "{client}");
        }
    }
}

#[test]
fn a_path_smaller_than_quic_needs_fails_with_a_reason() {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let text = text("\"quinn-cubic\"", "\"pfifo\"", "")
        .replace("stack = \"quinn-cubic\"", "stack = \"quinn-cubic\"\nmtu = \"1000B\"");
    let scenario = Scenario::parse_with("quic.toml", text.as_bytes(), &[], &own).expect("a scenario");
    let outcome = run_virtual(&scenario.spec(0), Recorders::default(), &mut |_| ControlFlow::Continue(()));
    let error = outcome.broken_off.expect("an error").to_string();
    assert!(error.contains("a datagram of 1200 bytes") && error.contains("does not fit the MTU of 1000"), "{error}");
}

/// One law over one path does the same in quinn's code and in ackclock's: RFC 9002's NewReno reduces
/// the window as often and loses as many packets, within a tenth.
#[test]
fn a_law_is_the_same_in_both_implementations() {
    let queue = "{ kind = \"pfifo\", limit = \"67p\" }";
    let [theirs, ours] = ["\"quinn-newreno\"", "\"quinn-own-newreno\""].map(|client| run(&text(client, queue, "")));
    for name in ["sent_packets", "lost_packets", "congestion_events"] {
        let [theirs, ours] = [&theirs, &ours].map(|summary| result(summary, 0, name).expect("a number"));
        assert!((0.9..1.1).contains(&(ours / theirs)), "{name}: {ours}, {theirs}");
    }
}

#[test]
fn every_own_controller_fills_a_path() {
    for name in ["cubic", "htcp", "westwood"] {
        let summary = run(&text(&format!("\"quinn-own-{name}\""), "{ kind = \"pfifo\", limit = \"67p\" }", ""));
        // A buffer of one bandwidth-delay product keeps a sender busy that halves its window.
        assert!(summary.links[0].load.utilization > 0.9, "{name}: {}", summary.links[0].load.utilization);
    }
}
