use ackclock_aqm::{CodelConfig, FifoConfig, Limit};
use ackclock_cc::NewRenoConfig;
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_tcp::LossDetector;
use ackclock_tcp::profile::Profile;
use ackclock_trace::Summary;
use ackclock_units::{Rate, Span};

use super::*;
use crate::spec::*;

fn endpoint(ecn: bool) -> HostSpec {
    let profile = Profile::linux_6_1();
    let mut config = profile.endpoint;
    config.ecn = ecn;
    let cc = CcSpec::NewReno(NewRenoConfig::default());
    HostSpec::Endpoint(EndpointSpec { profile: profile.name.to_owned(), config, cc })
}

fn direction(queue: QueueSpec) -> DirectionSpec {
    DirectionSpec {
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        overhead: 0,
        queue,
        impairments: Impairments::default(),
    }
}

fn pfifo(limit: u64) -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })
}

fn link(name: &str, queue: QueueSpec) -> LinkSpec {
    let one = direction(queue);
    LinkSpec { name: name.to_owned(), forward: one.clone(), reverse: one }
}

fn flow(name: &str, path: Vec<usize>, ecn: bool) -> FlowSpec {
    FlowSpec {
        id: format!("{name}.0"),
        path,
        secondary: None,
        reverse: false,
        sender: endpoint(ecn),
        receiver: endpoint(ecn),
        bytes: None,
        start: Time::ZERO,
        stop: None,
    }
}

fn spec(links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> RunSpec {
    RunSpec { title: String::new(), duration: Span::from_secs(20), seed: 1, run: 0, links, flows }
}

/// A flow with less in flight than 100 packets, and without timestamps, by which a receiver may refuse what is late.
fn small(mut flow: FlowSpec) -> FlowSpec {
    for host in [&mut flow.sender, &mut flow.receiver] {
        let HostSpec::Endpoint(endpoint) = host else { unreachable!("it is ours") };
        endpoint.config.send_buffer = 140_000;
        endpoint.config.timestamps = false;
    }
    flow
}

fn run_to_end(spec: &RunSpec) -> Summary<()> {
    run(spec, &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

#[test]
fn a_lone_flow_fills_the_link_and_its_shortest_rtt_is_the_path_s() {
    let summary = run_to_end(&spec(vec![link("a", pfifo(100))], vec![flow("f", vec![0], false)]));
    let flow = &summary.flows[0];
    // 1448 of 1500 bytes are payload; the first half second is slow start.
    assert!(flow.goodput_bps > 0.97 * 10e6 * 1448.0 / 1500.0, "{}", flow.goodput_bps);
    assert!(flow.goodput_bps < 10e6 * 1448.0 / 1500.0);
    // A full packet of 1500 bytes takes 1.2 ms, its ACK of 52 bytes 0.0416 ms; the handshake's SYN of 60 bytes is not sampled
    // here, it has no data.
    assert_eq!(flow.rtt_ms.min, Some(20.0 + 1.2 + 0.0416));
    assert!(summary.links[0].utilization > 0.97);
    assert_eq!(summary.fairness_jain, 1.0);
}

#[test]
fn two_links_in_a_row_add_their_delays() {
    let links = || vec![link("a", pfifo(100)), link("b", pfifo(100))];
    let summary = run_to_end(&spec(links(), vec![flow("f", vec![0, 1], false)]));
    assert_eq!(summary.flows[0].rtt_ms.min, Some(2.0 * (20.0 + 1.2 + 0.0416)));
    // The second link is as fast as the first: nothing waits there.
    assert_eq!(summary.links[2].sojourn_ms.max, Some(0.0));
}

#[test]
fn a_reverse_flow_sends_its_data_the_other_way() {
    let mut reverse = flow("f", vec![0], false);
    reverse.reverse = true;
    let summary = run_to_end(&spec(vec![link("a", pfifo(100))], vec![reverse]));
    assert!(summary.links[1].utilization > 0.97);
    assert!(summary.links[0].utilization < 0.05);
}

#[test]
fn marks_take_the_place_of_drops() {
    let codel = QueueSpec::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
    let summary = run_to_end(&spec(vec![link("a", codel)], vec![flow("f", vec![0], true)]));
    assert!(summary.links[0].marked > 0);
    assert!(summary.links[0].dropped.is_empty(), "{:?}", summary.links[0].dropped);
    assert_eq!(summary.flows[0].retransmitted_packets, 0);
    assert!(summary.flows[0].ece_acks > 0);
}

#[test]
fn losses_on_the_wire_are_counted_and_repaired() {
    let mut lossy = link("a", pfifo(100));
    lossy.forward.impairments.loss = Loss::List(vec![50, 51, 60]);
    let mut short = flow("f", vec![0], false);
    short.bytes = Some(1_000_000);
    let summary = run_to_end(&spec(vec![lossy], vec![short]));
    assert_eq!(summary.links[0].dropped.get(LOST_ON_LINK), Some(&3));
    let flow = &summary.flows[0];
    assert_eq!((flow.retransmitted_packets, flow.spurious_retransmits, flow.timeouts), (3, 0, 0));
    assert_eq!((flow.delivered_bytes, flow.acked_bytes), (1_000_000, 1_000_000));
    assert!(flow.completed_s.is_some());
}

#[test]
fn a_flow_that_stops_closes_its_connection() {
    let mut stopping = flow("f", vec![0], false);
    stopping.start = Time::from_secs(1);
    stopping.stop = Some(Time::from_secs(3));
    let summary = run_to_end(&spec(vec![link("a", pfifo(100))], vec![stopping]));
    let flow = &summary.flows[0];
    let completed = flow.completed_s.expect("it has stopped");
    // What is in the send buffer at the stop is still delivered: 4 MiB take 3.5 s.
    assert!((3.0..7.5).contains(&completed), "{completed}");
    assert_eq!(flow.delivered_bytes, flow.acked_bytes);
}

#[test]
fn an_interruption_ends_the_run() {
    let one = spec(vec![link("a", pfifo(100))], vec![flow("f", vec![0], false)]);
    let mut long = one.clone();
    long.duration = Span::from_secs(100_000);
    assert_eq!(run(&long, &mut |_| ControlFlow::Break(())), Err(RunError::Interrupted));
}

#[test]
fn what_happens_elsewhere_changes_nothing() {
    let alone = run_to_end(&spec(vec![link("a", pfifo(30))], vec![flow("f", vec![0], false)]));
    let beside = spec(
        vec![link("b", pfifo(30)), link("a", pfifo(30)), link("c", pfifo(30))],
        vec![flow("g", vec![0], false), flow("f", vec![1], false)],
    );
    let beside = run_to_end(&beside);
    assert_eq!(alone.flows[0], beside.flows[1]);
    assert_eq!(alone.links[0], beside.links[2]);
}

#[test]
fn packets_alternate_over_two_paths_and_acks_take_the_first() {
    // The send buffer keeps the queues from filling.
    let links = || vec![link("a", pfifo(1000)), link("b", pfifo(1000))];
    let over = |vector| {
        let mut flow = small(flow("f", vec![0], false));
        flow.secondary = Some(SecondarySpec { path: vec![1], vector });
        run_to_end(&spec(links(), vec![flow]))
    };
    let half = over(0xaaaa_aaaa_aaaa_aaaa);
    let offered: Vec<u64> = half.links.iter().map(|link| link.offered).collect();
    assert!(offered[0].abs_diff(offered[2]) <= 1, "{offered:?}");
    assert!(offered[1] > 0 && offered[3] == 0, "{offered:?}");
    // Two paths alike deliver in order, but for the first packets, since the handshake's ACK is shorter; and twice as much
    // as one.
    assert!(half.flows[0].displacement.on_time > 0.999, "{}", half.flows[0].displacement.on_time);
    assert!(half.flows[0].goodput_bps > 0.95 * 20e6 * 1460.0 / 1500.0, "{}", half.flows[0].goodput_bps);
    // A bit in four.
    let quarter = over(0x8888_8888_8888_8888).links.iter().map(|link| link.offered).collect::<Vec<_>>();
    assert!((quarter[0] as i64 - 3 * quarter[2] as i64).abs() <= 3, "{quarter:?}");
}

#[test]
fn retransmissions_are_charged_to_the_link_that_lost_the_packets() {
    let mut lossy = link("a", pfifo(100));
    lossy.forward.impairments.loss = Loss::List(vec![50, 51, 60]);
    let mut short = flow("f", vec![0], false);
    short.bytes = Some(1_000_000);
    let HostSpec::Endpoint(sender) = &mut short.sender else { unreachable!("it is ours") };
    sender.config.loss_detector = LossDetector::Rfc6675;
    let summary = run_to_end(&spec(vec![lossy], vec![short]));
    let flow = &summary.flows[0];
    assert_eq!((flow.retransmissions.needed, flow.spurious_retransmits), (3, 0));
    assert_eq!(flow.retransmissions.by_queue["a.forward"][LOST_ON_LINK], 3);
    let declared = flow.loss_declarations;
    assert_eq!((declared.right, declared.blind, declared.wrong), (3, 0, 0));
    assert_eq!((flow.loss_declared_late_ms.samples, flow.repair_rtts.samples), (3, 3));
    // The first ACK that shows the loss of 50 and 51 is that of 52; more than two segments above them are SACKed with that
    // of 54 (RFC 6675), two transmissions of 1.2 ms later. That of 60 is shown by 61 and proven by 63.
    assert_eq!((flow.loss_declared_late_ms.min, flow.loss_declared_late_ms.max), (Some(2.4), Some(2.4)));
}

#[test]
fn reordering_alone_makes_every_retransmission_spurious() {
    let mut unruly = link("a", pfifo(100));
    let hold = HoldBack { probability: 0.02, extent: 8, timeout: Span::from_secs(1) };
    unruly.forward.impairments.reorder = Reorder::HoldBack(hold);
    let summary = run_to_end(&spec(vec![unruly], vec![small(flow("f", vec![0], false))]));
    let flow = &summary.flows[0];
    assert!(summary.links[0].dropped.is_empty());
    assert!(flow.retransmitted_packets > 10, "{}", flow.retransmitted_packets);
    assert_eq!(flow.spurious_retransmits, flow.retransmitted_packets);
    assert_eq!((flow.loss_declarations.right, flow.repair_rtts.samples), (0, 0));
    // A packet is 8 late, and each of the 8 that pass it one early, or more where several are held at a time.
    assert_eq!(flow.displacement.distribution.max, Some(8.0));
    assert!(flow.displacement.late > 0.01 && flow.displacement.late < 0.03, "{}", flow.displacement.late);
}
