//! quinn and noq over simulated networks.

mod live;

use std::collections::BTreeSet;
use std::ops::ControlFlow;

use ackclock_live::run_virtual;
use ackclock_scenario::{Own, Scenario};
use ackclock_sim::{QlogPoint, QlogRecorder, Recorders};
use ackclock_stack::RecoveryEvent;
use ackclock_trace::{QlogRecord, QlogSink, Summary};

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
    let own = ["cubic", "bbr", "prague"].map(|law| [format!("quinn-own-{law}"), format!("noq-own-{law}")]);
    let theirs = ["quinn-cubic", "quinn-bbr", "noq-newreno", "noq-cubic"].map(str::to_owned);
    for client in theirs.into_iter().chain(own.into_iter().flatten()) {
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

/// A sender of 200 kbit/s, in messages of 1000 bytes: the least window of two packets is enough.
fn cbr(more: &str) -> String {
    format!("{{ kind = \"quinn-cubic\", rate_bps = 200e3, {more} }}")
}

const LOSSY: &str = "\"pfifo\"\nloss = { kind = \"iid\", probability = 0.05 }";

/// Datagrams are neither retransmitted nor wait for others (RFC 9221 section 5): what the link loses
/// is lost to the application. Over a stream everything arrives, and nothing is counted as lost.
#[test]
fn lost_datagrams_are_lost_to_the_application() {
    let summary = run(&text(&cbr("datagrams = 1"), LOSSY, ""));
    let of = |host, name| result(&summary, host, name).unwrap_or_else(|| panic!("{name}: {:?}", summary.live));
    // One every 40 ms from the end of the handshake to the end of the run at 20 s.
    let sent = ((20_000.0 - of(0, "handshake_ms")) / 40.0).floor() + 1.0;
    assert_eq!((of(0, "sent_datagrams"), of(0, "refused_datagrams")), (sent, 0.0));
    let (received, lost) = (of(1, "received_datagrams"), of(1, "lost_datagrams"));
    // The last may be on its way, or lost without a later one to show it.
    assert!((0.0..=2.0).contains(&(sent - received - lost)), "{sent}, {received}, {lost}");
    // A packet has one of them, but for some acknowledgments and probes of the MTU.
    let on_wire = summary.links[0].packets.dropped.values().sum::<u64>() as f64;
    assert!(lost > 10.0 && (0.0..=5.0).contains(&(on_wire - lost)), "{lost}, {on_wire}");
    // 20 ms and the transmission at 20 Mbit/s; a retransmission would take 40 ms more.
    assert!((20.0..60.0).contains(&of(1, "datagram_delay_max_ms")), "{}", of(1, "datagram_delay_max_ms"));

    let summary = run(&text(&cbr("bytes = 400000"), LOSSY, ""));
    let of = |host, name| result(&summary, host, name);
    assert!(summary.links[0].packets.dropped.values().sum::<u64>() > 0);
    assert_eq!((of(1, "received_bytes"), of(1, "lost_datagrams")), (Some(4e5), None));
    // 400 messages, the last 399 intervals of 40 ms after the handshake, and a round trip.
    let lasted = of(0, "completed_s").expect("an end") - of(0, "handshake_ms").expect("a handshake") / 1e3;
    assert!((16.0..17.0).contains(&lasted), "{lasted}");
}

/// Congestion control holds datagrams back (RFC 9221 section 5.4); those without room are counted.
#[test]
fn more_datagrams_than_the_path_takes_are_refused() {
    let client = "{ kind = \"quinn-cubic\", rate_bps = 30e6, datagrams = 1 }";
    let summary = run(&text(client, "{ kind = \"pfifo\", limit = \"67p\" }", ""));
    let [sent, refused] =
        ["sent_datagrams", "refused_datagrams"].map(|name| result(&summary, 0, name).expect("a number"));
    // 30 Mbit/s in messages of 8000 bits, for 20 s less the handshake.
    assert!((74_700.0..=75_000.0).contains(&(sent + refused)), "{sent}, {refused}");
    // A third of them, but for 1 MiB in the send buffer, and the headers.
    assert!((0.30..0.45).contains(&(refused / (sent + refused))), "{sent}, {refused}");
    let goodput = result(&summary, 1, "goodput_bps").expect("a goodput");
    assert!((17e6..20e6).contains(&goodput), "{goodput}");
}

#[test]
fn a_datagram_too_large_for_a_packet_fails_with_a_reason() {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let large = text(&cbr("datagrams = 1, message_bytes = 1400"), "\"pfifo\"", "");
    let scenario = Scenario::parse_with("quic.toml", large.as_bytes(), &[], &own).expect("a scenario");
    let outcome = run_virtual(&scenario.spec(0), Recorders::default(), &mut |_| ControlFlow::Continue(()));
    let error = outcome.broken_off.expect("an error").to_string();
    // RFC 9000 section 14.1: packets begin at 1200 bytes, less header (13), tag (16) and frame (9).
    assert!(
        error.contains("a datagram of 1400 bytes (`message_bytes`)") && error.contains("takes 1162 now"),
        "{error}"
    );
    run(&text(&cbr("datagrams = 1, message_bytes = 1400, mtu_discovery = 0"), "\"pfifo\"", ""));
}

#[test]
fn keys_of_datagrams_without_effect_are_refused() {
    let own = ackclock_quic::stacks().into_iter().fold(Own::new(), Own::stack);
    let refused = |text: &str| match Scenario::parse_with("quic.toml", text.as_bytes(), &[], &own) {
        Ok(_) => panic!("accepted: {text}"),
        Err(error) => error.render(false),
    };
    let client = |keys: &str| refused(&text(&format!("{{ kind = \"quinn-cubic\", {keys} }}"), "\"pfifo\"", ""));
    let error = client("datagrams = 1");
    assert!(error.contains("`rate_bps > 0`, without which it has no effect"), "{error}");
    let error = client("message_bytes = 500");
    assert!(error.contains("`rate_bps > 0`, without which it has no effect"), "{error}");
    let error = client("rate_bps = 1e6, datagrams = 1, stream_window = 100000");
    assert!(error.contains("`datagrams = 0`, without which it has no effect"), "{error}");
    let error = client("zero_rtt = 1");
    assert!(error.contains("`start_s > 0`, without which it has no effect"), "{error}");
    let error = client("migrate_resets = 1");
    assert!(error.contains("`migrate_s > 0`, without which it has no effect"), "{error}");
    // noq cannot be told to begin anew.
    let error = refused(&text("{ kind = \"noq-cubic\", migrate_s = 1, migrate_resets = 1 }", "\"pfifo\"", ""));
    assert!(error.contains("migrate_resets"), "{error}");
    let tcp = "[[flows]]\nid = \"tcp\"\nfrom = \"left\"\nto = \"right\"\nport = 80\ndatagrams = true\n\
               [hosts.left]\naddress = \"10.0.1.1/24\"\n[hosts.right]\naddress = \"10.0.1.2/24\"\n\
               [[paths]]\nbetween = [\"left\", \"right\"]\npath = [\"wire\"]\n";
    let error = refused(&text("\"quinn-cubic\"", "\"pfifo\"", tcp));
    assert!(error.contains("unknown key `datagrams`"), "{error}");
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
    let clients = [
        "\"quinn-cubic\"",
        "\"quinn-bbr\"",
        "{ kind = \"quinn-own-newreno\", burst_packets = 8 }",
        "\"quinn-own-bbr\"",
        "\"noq-cubic\"",
        "{ kind = \"noq-own-newreno\", burst_packets = 8 }",
        "\"noq-own-bbr\"",
    ];
    for client in clients {
        let (text, mut log) = (text(client, queue, ""), Log::default());
        let qlog = Some(QlogRecorder { points: &[QlogPoint::Host(0)], sink: &mut log });
        let summary = recorded(&text, Recorders { qlog, ..Recorders::default() });
        assert_eq!(serde_json::to_string(&summary).unwrap(), serde_json::to_string(&run(&text)).unwrap(), "{client}");
        assert!(log.0.is_sorted_by_key(|record| record.at), "{client}");
        let (mut sent, mut lost, mut states, mut last) = (Vec::new(), 0, Vec::new(), None);
        let (mut numbers, mut numbered) = (BTreeSet::new(), 0);
        for record in &log.0 {
            match record.event {
                RecoveryEvent::Sent(packet) => {
                    if packet.kind == "1RTT" {
                        numbers.insert(packet.number);
                    }
                    sent.push(packet);
                }
                RecoveryEvent::Lost(packet) => {
                    lost += 1;
                    // noq tells which packets were lost: they have been sent, but for probes of the MTU.
                    numbered += usize::from(packet.number.is_some_and(|number| numbers.contains(&number)));
                }
                RecoveryEvent::State(state) => states.push(state),
                RecoveryEvent::Metrics(metrics) => last = Some(metrics),
                RecoveryEvent::Sampled(sample) => panic!("QUIC has no variables of TCP: {sample:?}"),
            }
        }
        let of = |name| result(&summary, 0, name);
        assert_eq!((Some(sent.len() as f64), Some(lost as f64)), (of("sent_packets"), of("lost_packets")), "{client}");
        let probes = if client.contains("noq") { lost - numbered } else { 0 };
        assert_eq!((numbered > 0, probes < 3), (client.contains("noq"), true), "{client}: {numbered} of {lost}");
        // Numbers of a space rise; the handshake has two spaces of its own.
        for kind in ["initial", "handshake", "1RTT"] {
            let numbers = sent.iter().filter(|packet| packet.kind == kind).map(|packet| packet.number);
            assert!(numbers.clone().count() > 0 && numbers.is_sorted_by(|a, b| a < b), "{client}, {kind}");
        }
        let last = last.expect("variables");
        let millis = |rtt: Option<ackclock_units::Span>| rtt.map(|rtt| rtt.as_nanos() as f64 / 1e6);
        assert_eq!(last.congestion_window.map(|bytes| bytes as f64), of("cwnd_bytes"), "{client}");
        for (logged, name) in [(last.smoothed_rtt, "srtt_ms"), (last.min_rtt, "min_rtt_ms")] {
            let (logged, result) = match (millis(logged), of(name)) {
                // noq does not tell.
                (None, None) if client.contains("noq") && name == "min_rtt_ms" => continue,
                (logged, result) => (logged.expect("a round trip"), result.expect("a round trip")),
            };
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
    for name in ["cubic", "htcp", "westwood", "bbr", "prague"] {
        for stack in ["quinn", "noq"] {
            let client = format!("\"{stack}-own-{name}\"");
            let summary = run(&text(&client, "{ kind = \"pfifo\", limit = \"67p\" }", ""));
            // A buffer of one bandwidth-delay product keeps a sender busy that halves its window.
            let utilization = summary.links[0].load.utilization;
            assert!(utilization > 0.9, "{client}: {utilization}");
        }
    }
}

/// Prague's packets go to the queue of L4S, by ECT(1), and its round trips have no more queue than
/// DualPI2's step of 1 ms allows (RFC 9332 section 2.5.1); it reads how many were marked.
#[test]
fn a_scalable_controller_keeps_the_queue_short() {
    for stack in ["quinn", "noq"] {
        let summary = run(&text(&format!("\"{stack}-own-prague\""), "\"dualpi2\"", ""));
        let wire = &summary.links[0];
        assert!(wire.packets.marked > 0 && wire.packets.dropped.values().sum::<u64>() == 0, "{wire:?}");
        let classic = run(&text(&format!("\"{stack}-own-cubic\""), "\"dualpi2\"", ""));
        let [scalable, classic] = [&summary, &classic].map(|of| of.links[0].load.sojourn_ms.quantiles.p50);
        assert!(scalable < Some(1.5) && classic > Some(5.0), "{stack}: {scalable:?}, {classic:?}");
        assert!(wire.load.utilization > 0.9, "{stack}: {}", wire.load.utilization);
    }
}

/// BBR's rate is kept: no queue stands, where a window of twice the bandwidth-delay product would
/// keep one of 40 ms.
#[test]
fn the_rate_of_a_controller_is_kept() {
    for stack in ["quinn", "noq"] {
        let summary = run(&text(&format!("\"{stack}-own-bbr\""), "{ kind = \"pfifo\", limit = \"268p\" }", ""));
        let median = summary.links[0].load.sojourn_ms.quantiles.p50.expect("a queue");
        assert!(median < 10.0, "{stack}: {median}");
    }
}

/// A short transfer takes a round trip less with 0-RTT, whose data leave with the first packet.
#[test]
fn early_data_saves_a_round_trip() {
    for client in ["quinn-cubic", "quinn-own-newreno", "noq-cubic"] {
        let of = |zero_rtt: u8, name: &str| {
            // An even number of packets: the acknowledgment of the last one is not delayed.
            let keys = format!("{{ kind = \"{client}\", bytes = 6000, start_s = 2, zero_rtt = {zero_rtt} }}");
            let summary = run(&text(&keys, "\"pfifo\"", ""));
            assert_eq!(result(&summary, 1, "received_bytes"), Some(6e3), "{client}");
            result(&summary, 0, name)
        };
        assert_eq!((of(0, "early_data"), of(1, "early_data")), (None, Some(1.0)), "{client}");
        let [late, early] = [0, 1].map(|zero_rtt| of(zero_rtt, "completed_s").expect("an end") * 1e3);
        let saved = late - early;
        if client.contains("noq") {
            // It paces from the first packet (see above), and has fewer packets to send.
            assert!(saved > 40.0, "{client}: {late}, {early}");
        } else {
            // 40 ms each for handshake and data, and six packets of 1200 bytes at 20 Mbit/s, 0.5 ms each;
            // a certificate less, 0.4 ms.
            assert!((80.0..86.0).contains(&late) && (40.0..46.0).contains(&early), "{client}: {late}, {early}");
            assert!((40.0..43.0).contains(&saved), "{client}: {late}, {early}");
        }
    }
}

/// The client's address changes after 10 s. quinn and noq keep the window, as after a NAT has lost its
/// state; with `migrate_resets` it begins anew (RFC 9000 section 9.4).
#[test]
fn a_migration_keeps_the_window_unless_it_is_reset() {
    let windows = |client: &str, keys: &str| {
        let client = format!("{{ kind = \"{client}\", migrate_s = 10{keys} }}");
        let text = text(&client, "{ kind = \"pfifo\", limit = \"67p\" }", "").replace(
            "[hosts.client]\naddress = \"10.0.0.1/24\"",
            "[hosts.client]\naddress = [\"10.0.0.1/24\", \"10.0.0.3/24\"]",
        );
        let mut log = Log::default();
        let qlog = Some(QlogRecorder { points: &[QlogPoint::Host(0)], sink: &mut log });
        let summary = recorded(&text, Recorders { qlog, ..Recorders::default() });
        // Everything goes on.
        assert!(summary.links[0].load.utilization > 0.85, "{client}: {}", summary.links[0].load.utilization);
        let of = |from: f64, to: f64| {
            let within = log.0.iter().filter(|record| (from..to).contains(&record.at.as_secs_f64()));
            let window = within.filter_map(|record| match record.event {
                RecoveryEvent::Metrics(metrics) => metrics.congestion_window,
                _ => None,
            });
            window.min().expect("a window")
        };
        (of(9.9, 10.0), of(10.0, 10.1))
    };
    for client in ["quinn-cubic", "noq-cubic", "quinn-own-cubic"] {
        let (before, after) = windows(client, "");
        assert!(after > before / 2, "{client}: {before}, {after}");
    }
    for client in ["quinn-cubic", "quinn-own-cubic"] {
        let (before, after) = windows(client, ", migrate_resets = 1");
        // RFC 9002 section 7.2: ten packets, and at most 14,720 bytes.
        assert!(before > 60_000 && after <= 14_720, "{client}: {before}, {after}");
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
