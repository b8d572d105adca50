//! quinn and noq over simulated networks.

use std::ops::ControlFlow;

use ackclock_live::run_virtual;
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::Recorders;
use ackclock_trace::Summary;

/// A client, in TOML, and a server of the same kind on a link of 20 Mbit/s, 40 ms there and back.
fn text(client: &str, queue: &str, more: &str) -> String {
    let server = if client.contains("noq-") { "noq-server" } else { "quinn-server" };
    format!(
        "schema = 1\n[run]\nduration = \"20s\"\n\
         [links.wire]\nrate = \"20mbit\"\ndelay = \"20ms\"\nqueue = {queue}\n\
         [hosts.client]\naddress = \"10.0.0.1/24\"\nstack = {client}\n\
         [hosts.server]\naddress = \"10.0.0.2/24\"\nstack = \"{server}\"\n\
         [[paths]]\nbetween = [\"client\", \"server\"]\npath = [\"wire\"]\n{more}"
    )
}

fn run(text: &str) -> Summary<()> {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let scenario = Scenario::parse_with("quic.toml", text.as_bytes(), &[], &own);
    let spec = scenario.unwrap_or_else(|error| panic!("{}", error.render(false))).spec(0);
    let outcome = run_virtual(&spec, Recorders::default(), &mut |_| ControlFlow::Continue(()));
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    outcome.summary
}

fn result(summary: &Summary<()>, host: usize, name: &str) -> Option<f64> {
    summary.live.as_ref()?.hosts[host].results.as_ref()?.get(name)?.as_f64()
}

#[test]
fn a_transfer_arrives_whole_and_ends() {
    for client in ["quinn-newreno", "quinn-cubic", "quinn-bbr", "noq-newreno", "noq-cubic", "noq-bbr3"] {
        let client = format!("{{ kind = \"{client}\", bytes = 5000000, start_s = 1 }}");
        let summary = run(&text(&client, "{ kind = \"pfifo\", limit = \"100p\" }", ""));
        assert_eq!(result(&summary, 1, "received_bytes"), Some(5e6), "{client}");
        // A round trip of 40 ms, and what the messages of the handshake take at 20 Mbit/s. noq paces from
        // the first packet: 14,720 bytes in 333 ms, times 1.25, in bursts of one datagram, so that the
        // second of the server's 1,472 bytes waits for 26.6 ms.
        let handshake = result(&summary, 0, "handshake_ms").expect("a handshake");
        let paced = if client.contains("noq") { 26.6 } else { 0.0 };
        assert!((40.0..42.0).contains(&(handshake - paced)), "{client}: {handshake}");
        // 40 Mbit at 20 Mbit/s.
        let completed = result(&summary, 0, "completed_s").expect("an end");
        assert!((2.0..6.0).contains(&completed), "{client}: {completed}");
    }
}

#[test]
fn runs_repeat_to_the_byte() {
    let lossy = "{ kind = \"pfifo\", limit = \"50p\" }\nloss = { kind = \"iid\", probability = 0.001 }";
    for client in ["quinn-cubic", "quinn-bbr", "quinn-own-cubic", "noq-newreno", "noq-cubic"] {
        let client = format!("\"{client}\"");
        let [first, second] = [(); 2].map(|()| serde_json::to_string(&run(&text(&client, lossy, ""))).unwrap());
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

/// The scenario of a public report: bursts of an application overflow a queue with noq's BBRv3, and
/// hardly with its CUBIC.
#[test]
fn bursts_of_an_application_are_paced_by_cubic_alone() {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let text = include_str!("../../examples/bursts.toml");
    let scenario = Scenario::parse_with("bursts.toml", text.as_bytes(), &[], &own);
    let scenario = scenario.unwrap_or_else(|error| panic!("{}", error.render(false)));
    let dropped = |run| {
        let outcome = run_virtual(&scenario.spec(run), Recorders::default(), &mut |_| ControlFlow::Continue(()));
        outcome.summary.links[0].packets.dropped.values().sum::<u64>()
    };
    let [bbr3, cubic] = [dropped(0), dropped(1)];
    assert!(bbr3 > 150 && cubic < 10, "{bbr3} {cubic}");
}

#[test]
fn an_interval_without_writes_is_refused() {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let text = text("{ kind = \"quinn-cubic\", write_interval_ms = 5 }", "\"pfifo\"", "");
    let error = Scenario::parse_with("quic.toml", text.as_bytes(), &[], &own).expect_err("an idle key");
    assert!(error.to_string().contains("write_interval_ms"), "{error}");
}
