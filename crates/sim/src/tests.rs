use std::cell::RefCell;
use std::sync::Arc;

use ackclock_aqm::{CodelConfig, FifoConfig, Limit};
use ackclock_cc::{Ack, CongestionControl, Flight, NewReno, NewRenoConfig, Signal, Verdict, Window};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{EcnFeedback, LossDetector};
use ackclock_trace::{Summary, WindowSummary};
use ackclock_units::{Rate, Span};

use super::*;
use crate::spec::*;

pub(crate) mod datagrams;
mod ends;
mod steer;
mod visits;

fn endpoint(ecn: bool) -> HostSpec {
    let profile = Profile::linux_6_1();
    let mut config = profile.endpoint;
    config.ecn = if ecn { EcnFeedback::Classic } else { EcnFeedback::None };
    let cc = CcSpec::NewReno(NewRenoConfig::default());
    HostSpec::Endpoint(EndpointSpec { profile: profile.name.to_owned(), config, cc })
}

fn direction(queue: QueueSpec) -> DirectionSpec {
    DirectionSpec {
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue,
        impairments: Impairments::default(),
        course: Default::default(),
    }
}

pub(crate) fn pfifo(limit: u64) -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })
}

pub(crate) fn link(name: &str, queue: QueueSpec) -> LinkSpec {
    let one = direction(queue);
    LinkSpec { name: name.to_owned(), forward: one.clone(), reverse: one, medium: None, is_interface: false }
}

pub(crate) fn flow(name: &str, path: Vec<usize>, ecn: bool) -> FlowSpec {
    FlowSpec {
        id: format!("{name}.0").into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path,
            split: None,
            mptcp: None,
            reverse: false,
            sender: endpoint(ecn),
            receiver: endpoint(ecn),
            bytes: None,
            application: Default::default(),
            write_size: FlowSpec::WRITE_SIZE,
            dscp: 0,
            abort: None,
            schedule: Vec::new(),
        }
        .into(),
        start: Time::ZERO,
        stop: None,
        ends: None,
        via: None,
    }
}

pub(crate) fn spec(links: Vec<LinkSpec>, flows: Vec<FlowSpec>) -> RunSpec {
    RunSpec {
        title: String::new(),
        duration: Span::from_secs(20),
        seed: 1,
        run: 0,
        ties: crate::spec::Ties::Fixed,
        links,
        flows,
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: None,
    }
}

/// A flow with less in flight than 100 packets, and without timestamps, by which a receiver may
/// refuse what is late.
/// Hosts that acknowledge by number alone.
fn by_rfc(mut flow: FlowSpec) -> FlowSpec {
    let group = &mut *flow;
    for host in [&mut group.sender, &mut group.receiver] {
        let HostSpec::Endpoint(endpoint) = host else { unreachable!("it is ours") };
        endpoint.config = Profile::rfc().endpoint;
    }
    flow
}

fn small(mut flow: FlowSpec) -> FlowSpec {
    let group = &mut *flow;
    for host in [&mut group.sender, &mut group.receiver] {
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
    // A full packet of 1500 bytes takes 1.2 ms, its ACK of 52 bytes 0.0416 ms; the handshake's SYN
    // of 60 bytes is not sampled here, it has no data.
    assert_eq!(flow.rtt_ms.min, Some(20.0 + 1.2 + 0.0416));
    assert!(summary.links[0].load.utilization > 0.97);
    assert_eq!(summary.fairness_jain, Some(1.0));
}

#[test]
fn no_rtt_is_shorter_than_the_path_where_acks_arrive_at_one_time() {
    // A window of segments leaves, arrives and is acknowledged at one instant: every round trip
    // takes the delays alone.
    for nanos in [50, 50_000] {
        let mut links = vec![link("a", pfifo(100_000))];
        let LinkSpec { forward, reverse, .. } = &mut links[0];
        for direction in [forward, reverse] {
            (direction.rate, direction.delay) = (None, Span::from_nanos(nanos));
        }
        let small = small(flow("f", vec![0], false));
        let spec = RunSpec { duration: Span::from_nanos(400 * nanos), ..spec(links, vec![small]) };
        let summary = run_to_end(&spec);
        let rtt = Some(2.0 * nanos as f64 / 1e6);
        let flow = &summary.flows[0];
        assert!(flow.rtt_ms.samples > 1000);
        assert_eq!((flow.rtt_ms.min, flow.rtt_ms.max), (rtt, rtt));
    }
}

#[test]
fn time_goes_on_where_a_packet_takes_less_than_a_nanosecond() {
    for (burst, timestamps, buffer) in [(None, false, 9), (None, true, 9), (None, true, 100), (Some(2000), false, 9)] {
        let mut links = vec![link("a", pfifo(100_000))];
        let LinkSpec { forward, reverse, .. } = &mut links[0];
        for direction in [forward, reverse] {
            (direction.rate, direction.delay) = (Rate::from_bps(529_000_000_000), Span::ZERO);
            direction.burst = burst;
        }
        let mut flow = flow("f", vec![0], false);
        let group = &mut *flow;
        for host in [&mut group.sender, &mut group.receiver] {
            let HostSpec::Endpoint(endpoint) = host else { unreachable!("it is ours") };
            endpoint.config = tcp_config(timestamps, buffer);
        }
        let spec = RunSpec { duration: Span::from_micros(2), ..spec(links, vec![flow]) };
        let summary = run_to_end(&spec);
        // A packet of 40 bytes or more takes 0.6 ns; what a bucket lets pass at once comes on top.
        let least = 40.0 * 8.0 / 529.0;
        let most = 2.0 * (2000.0 / least + f64::from(burst.unwrap_or(0)) / 40.0) + 4.0;
        let sent = summary.links.iter().map(|link| link.packets.offered).sum::<u64>();
        assert!(sent > 100 && sent as f64 <= most, "{sent} packets of {most}");
        assert_eq!(summary.duration_s, 2e-6);
    }
}

/// The endpoint of the RFCs, which may time out at once.
fn tcp_config(timestamps: bool, receive_buffer: u64) -> ackclock_tcp::Config {
    let min_rto = ackclock_tcp::MinRto::OfTotal(Span::ZERO);
    ackclock_tcp::Config { timestamps, receive_buffer, min_rto, ..Profile::rfc().endpoint }
}

#[test]
fn two_links_in_a_row_add_their_delays() {
    let links = || vec![link("a", pfifo(100)), link("b", pfifo(100))];
    let summary = run_to_end(&spec(links(), vec![flow("f", vec![0, 1], false)]));
    assert_eq!(summary.flows[0].rtt_ms.min, Some(2.0 * (20.0 + 1.2 + 0.0416)));
    // The second link is as fast as the first: nothing waits there.
    assert_eq!(summary.links[2].load.sojourn_ms.max, Some(0.0));
}

#[test]
fn a_reverse_flow_sends_its_data_the_other_way() {
    let mut reverse = flow("f", vec![0], false);
    reverse.reverse = true;
    let summary = run_to_end(&spec(vec![link("a", pfifo(100))], vec![reverse]));
    assert!(summary.links[1].load.utilization > 0.97);
    assert!(summary.links[0].load.utilization < 0.05);
}

#[test]
fn fairness_is_of_flows_that_send_the_same_way() {
    let flows = |names: [&str; 3]| names.map(|name| flow(name, vec![0], false));
    let mut flows = flows(["a", "b", "c"]);
    // Two share one direction, the third has the other to itself.
    flows[2].reverse = true;
    let mut run = spec(vec![link("a", pfifo(100))], flows.to_vec());
    run.windows = vec![(Time::from_secs(5), Time::from_secs(20))];
    let summary = run_to_end(&run);
    let goodputs: Vec<f64> = summary.flows.iter().map(|flow| flow.goodput_bps).collect();
    let (sum, squares) = (goodputs[0] + goodputs[1], goodputs[0] * goodputs[0] + goodputs[1] * goodputs[1]);
    let forward = sum * sum / (2.0 * squares);
    assert_eq!(summary.fairness_jain_forward, Some(forward));
    assert_eq!(summary.fairness_jain_reverse, Some(1.0));
    assert!(summary.fairness_jain.unwrap() < forward && forward < 1.0, "{goodputs:?}");
    let window = &summary.windows[0];
    assert!(window.fairness_jain_forward > window.fairness_jain && window.fairness_jain_reverse == Some(1.0));
    assert_eq!(summary.flows.iter().map(|flow| flow.direction).collect::<Vec<_>>(), ["forward", "forward", "reverse"]);
    // Nobody gets through.
    let mut cut = link("a", pfifo(100));
    cut.forward.impairments.loss = Loss::Iid(1.0);
    let summary = run_to_end(&spec(vec![cut], flows[..2].to_vec()));
    assert_eq!(
        (summary.fairness_jain, summary.fairness_jain_forward, summary.fairness_jain_reverse),
        (None, None, None)
    );
}

#[test]
fn throughput_counts_what_the_wire_doubled_and_goodput_does_not() {
    let mut doubling = link("a", pfifo(100));
    doubling.forward.impairments.duplicate = 1.0;
    let summary = run_to_end(&spec(vec![doubling], vec![flow("f", vec![0], false)]));
    let (flow, link) = (&summary.flows[0], &summary.links[0]);
    assert!(flow.throughput_bps.quantiles.p50.unwrap() > 1.9 * 10e6, "{:?}", flow.throughput_bps);
    assert!(flow.goodput_bps < 10e6 * 1448.0 / 1500.0, "{}", flow.goodput_bps);
    assert!(link.packets.duplicated >= link.packets.dequeued - 1 && link.load.utilization <= 1.0, "{link:?}");
}

#[test]
fn marks_take_the_place_of_drops() {
    let codel = QueueSpec::Codel(CodelConfig { ecn: true, ..CodelConfig::default() });
    let summary = run_to_end(&spec(vec![link("a", codel)], vec![flow("f", vec![0], true)]));
    assert!(summary.links[0].packets.marked > 0);
    assert!(summary.links[0].packets.dropped.is_empty(), "{:?}", summary.links[0].packets.dropped);
    assert_eq!(summary.flows[0].sent.retransmitted_packets, 0);
    assert!(summary.flows[0].reactions.ece_acks > 0);
}

#[test]
fn losses_on_the_wire_are_counted_and_repaired() {
    let mut lossy = link("a", pfifo(100));
    lossy.forward.impairments.loss = Loss::List(vec![50, 51, 60]);
    let mut short = flow("f", vec![0], false);
    short.bytes = Some(1_000_000);
    let summary = run_to_end(&spec(vec![lossy], vec![short]));
    assert_eq!(summary.links[0].packets.dropped.get(LOST_ON_LINK), Some(&3));
    let flow = &summary.flows[0];
    assert_eq!((flow.sent.retransmitted_packets, flow.spurious_retransmits, flow.recoveries.timeouts), (3, 0, 0));
    assert_eq!((flow.progress.delivered_bytes, flow.progress.acked_bytes), (1_000_000, 1_000_000));
    assert!(flow.completed_s.is_some());
}

#[test]
fn fast_open_brings_the_first_data_a_round_trip_earlier() {
    let delivered = |fast_open: [bool; 2], micros: u64| {
        let mut flow = flow("f", vec![0], false);
        let group = &mut *flow;
        for (host, fast_open) in [&mut group.sender, &mut group.receiver].into_iter().zip(fast_open) {
            let HostSpec::Endpoint(endpoint) = host else { unreachable!("it is ours") };
            endpoint.config.states.fast_open = fast_open;
        }
        flow.bytes = Some(1000);
        let mut spec = spec(vec![link("a", pfifo(100))], vec![flow]);
        spec.duration = Span::from_micros(micros);
        let summary = run_to_end(&spec);
        let flow = &summary.flows[0];
        (flow.progress.delivered_bytes, flow.sent.sent_packets, flow.sent.retransmitted_packets)
    };
    // 10 ms there. The SYN has 20 + 20 + 20 + 12 bytes of headers and 1000 of data: 1072 bytes take
    // 857.6 us.
    assert_eq!(delivered([true, true], 10_857), (0, 1, 0));
    assert_eq!(delivered([true, true], 10_858), (1000, 1, 0));
    // SYN and SYN/ACK of 60 bytes take 48 us each, the last ACK 41.6 us, the data of 1052 bytes 841.6 us: 30.9792 ms.
    assert_eq!(delivered([false, false], 30_979), (0, 1, 0));
    assert_eq!(delivered([false, false], 30_980), (1000, 1, 0));
    // A receiver that does not take it: the data goes again with the ACK of the SYN, and behind it
    // the FIN, which is no data.
    let late = 10_858 + 10_000 + 48 + 842 + 10_000;
    assert_eq!((delivered([true, false], late - 1), delivered([true, false], late)), ((0, 2, 1), (1000, 2, 1)));
    // And the connection ends as any other.
    assert_eq!(delivered([true, true], 1_000_000), (1000, 1, 0));
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
        let mut flow = small(by_rfc(flow("f", vec![0], false)));
        flow.split = Some(SplitSpec {
            others: vec![vec![1]],
            along: SplitRule::Vector(vector),
            back: WayBack::Over(0),
            after_handshake: false,
            whole_units: false,
        });
        run_to_end(&spec(links(), vec![flow]))
    };
    let half = over(0xaaaa_aaaa_aaaa_aaaa);
    let offered: Vec<u64> = half.links.iter().map(|link| link.packets.offered).collect();
    assert!(offered[0].abs_diff(offered[2]) <= 1, "{offered:?}");
    assert!(offered[1] > 0 && offered[3] == 0, "{offered:?}");
    // Two paths alike deliver in order, but for the first packets, since the handshake's ACK is
    // shorter; and twice as much as one.
    assert!(half.flows[0].displacement.on_time > 0.999, "{}", half.flows[0].displacement.on_time);
    assert!(half.flows[0].goodput_bps > 0.95 * 20e6 * 1460.0 / 1500.0, "{}", half.flows[0].goodput_bps);
    // A bit in four.
    let quarter = over(0x8888_8888_8888_8888).links.iter().map(|link| link.packets.offered).collect::<Vec<_>>();
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
    // The first ACK that shows the loss of 50 and 51 is that of 52; more than two segments above
    // them are SACKed with that of 54 (RFC 6675), two transmissions of 1.2 ms later. That of 60 is
    // shown by 61 and proven by 63.
    assert_eq!((flow.loss_declared_late_ms.min, flow.loss_declared_late_ms.max), (Some(2.4), Some(2.4)));
}

#[test]
fn reordering_alone_makes_every_retransmission_spurious() {
    let mut unruly = link("a", pfifo(100));
    let hold = HoldBack { probability: 0.02, extent: 8, timeout: Span::from_secs(1) };
    unruly.forward.impairments.reorder = Reorder::HoldBack(hold);
    let summary = run_to_end(&spec(vec![unruly], vec![small(flow("f", vec![0], false))]));
    let flow = &summary.flows[0];
    assert!(summary.links[0].packets.dropped.is_empty());
    assert!(flow.sent.retransmitted_packets > 10, "{}", flow.sent.retransmitted_packets);
    assert_eq!(flow.spurious_retransmits, flow.sent.retransmitted_packets);
    assert_eq!((flow.loss_declarations.right, flow.repair_rtts.samples), (0, 0));
    // A packet is 8 late, and each of the 8 that pass it one early, or more where several are held
    // at a time.
    assert_eq!(flow.displacement.distribution.max, Some(8.0));
    assert!(flow.displacement.late > 0.01 && flow.displacement.late < 0.03, "{}", flow.displacement.late);
}

#[test]
fn windows_add_up_to_the_run_and_change_nothing() {
    let seconds = |from, to| (Time::from_secs(from), Time::from_secs(to));
    let whole = spec(vec![link("a", pfifo(100))], vec![flow("f", vec![0], false), flow("g", vec![0], false)]);
    let windows = vec![seconds(0, 20), seconds(0, 7), seconds(7, 20), seconds(20, 20)];
    let alone = run_to_end(&whole);
    let mut summary = run_to_end(&RunSpec { windows, ..whole });
    let windows = std::mem::take(&mut summary.windows);
    assert_eq!(summary, alone);
    let [all, first, second, empty] = &windows[..] else { panic!("{windows:?}") };
    assert_eq!((second.from_s, second.to_s), (7.0, 20.0));
    for (number, flow) in summary.flows.iter().enumerate() {
        let of = |window: &WindowSummary| window.flows[number].clone();
        assert_eq!(
            (of(all).sent.sent_packets, of(all).progress.delivered_bytes),
            (flow.sent.sent_packets, flow.progress.delivered_bytes)
        );
        assert_eq!((of(all).rtt_ms.quantiles, of(all).cwnd_bytes), (flow.rtt_ms.quantiles, flow.cwnd_bytes));
        assert_eq!(of(first).rtt_ms.samples + of(second).rtt_ms.samples, flow.rtt_ms.samples);
        assert_eq!(of(first).sent.sent_packets + of(second).sent.sent_packets, flow.sent.sent_packets);
        assert!(of(first).sent.sent_packets > 0 && of(second).sent.sent_packets > of(first).sent.sent_packets);
        assert_eq!(of(second).goodput_bps, of(second).progress.delivered_bytes as f64 * 8.0 / 13.0);
        assert_eq!((of(empty).sent.sent_packets, of(empty).goodput_bps, of(empty).rtt_ms.samples), (0, 0.0, 0));
    }
    for (number, link) in summary.links.iter().enumerate() {
        let of = |window: &WindowSummary| window.links[number].clone();
        assert_eq!(
            (of(all).packets.offered, of(all).packets.dropped),
            (link.packets.offered, link.packets.dropped.clone())
        );
        assert_eq!(
            (of(all).load.utilization, of(all).load.backlog_packets.quantiles),
            (link.load.utilization, link.load.backlog_packets.quantiles)
        );
        let busy = 7.0 * of(first).load.utilization + 13.0 * of(second).load.utilization;
        assert!((busy - 20.0 * link.load.utilization).abs() < 1e-9, "{busy}");
        assert_eq!(of(first).packets.dequeued + of(second).packets.dequeued, link.packets.dequeued);
        assert_eq!(
            of(first).load.sojourn_ms.samples + of(second).load.sojourn_ms.samples,
            link.load.sojourn_ms.samples
        );
    }
}

thread_local! {
    /// The calls of the [`Probe`]s of this thread: name, time, and the window after it.
    static TOLD: RefCell<Vec<(&'static str, Time, Window)>> = const { RefCell::new(Vec::new()) };
}

/// NewReno that takes its moments down.
#[derive(Debug)]
struct Probe(NewReno);

impl Probe {
    fn tell(&self, what: &'static str, f: &Flight) {
        TOLD.with_borrow_mut(|told| told.push((what, f.now, self.0.window())));
    }
}

impl CongestionControl for Probe {
    fn name(&self) -> &'static str {
        "probe"
    }

    fn window(&self) -> Window {
        self.0.window()
    }

    fn on_established(&mut self, f: &Flight) {
        self.0.on_established(f);
        self.tell("established", f);
    }

    fn take_over(&mut self, window: Window) {
        self.0.take_over(window);
        TOLD.with_borrow_mut(|told| told.push(("take over", Time::ZERO, window)));
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        self.0.on_ack(f, ack)
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.0.on_signal(f, signal);
        match signal {
            Signal::RecoveryEnd => self.tell("recovery end", f),
            Signal::IdleRestart => {}
            _ => self.tell("signal", f),
        }
    }
}

fn probe() -> CcSpec {
    let build = |_: &[f64], _| Box::new(Probe(NewReno::new(NewRenoConfig::default()))) as Box<dyn CongestionControl>;
    CcSpec::Own(Arc::new(OwnController::new("probe", build)), Vec::new())
}

/// A flow whose controller changes to a [`Probe`] at these times, in milliseconds; what the probes
/// were told, and the summary.
fn switched(
    at: &[u64],
    lossy: bool,
    adjust: impl Fn(&mut FlowSpec),
) -> (Vec<(&'static str, Time, Window)>, Summary<()>) {
    let mut link = link("a", pfifo(1000));
    if lossy {
        link.forward.impairments.loss = Loss::List(vec![100]);
    }
    let mut flow = flow("f", vec![0], false);
    let change = |&at: &u64| CcChange { at: Time::from_millis(at), cc: probe() };
    flow.schedule = at.iter().map(change).collect();
    adjust(&mut flow);
    TOLD.take();
    let summary = run_to_end(&spec(vec![link], vec![flow]));
    (TOLD.take(), summary)
}

#[test]
fn a_controller_takes_over_in_slow_start_at_its_time_and_with_the_window() {
    let (told, summary) = switched(&[100], false, |_| {});
    let [("established", at, _), ("take over", _, window), ..] = told[..] else { panic!("{told:?}") };
    assert_eq!(at, Time::from_millis(100));
    // Four round trips of 21 ms in slow start.
    assert!(window.ssthresh == Window::INFINITE && window.cwnd > 4 * 10 * 1448, "{window:?}");
    assert_eq!(&*summary.flows[0].cc, "newreno,probe");
}

#[test]
fn a_controller_takes_over_in_the_middle_of_recovery() {
    let all = |flow: &mut FlowSpec| {
        let HostSpec::Endpoint(sender) = &mut flow.sender else { unreachable!("it is ours") };
        sender.cc = probe();
        flow.bytes = Some(2_000_000);
    };
    let (told, alone) = switched(&[], true, all);
    let [("established", ..), ("signal", began, reduced), ("recovery end", ended, _), ..] = told[..] else {
        panic!("{told:?}")
    };
    assert!(ended > began);
    let middle = (began.as_nanos() + ended.as_nanos()) / 2 / 1_000_000;
    let (told, summary) = switched(&[middle], true, all);
    let [_, _, ("established", at, _), ("take over", _, window), ("recovery end", still, _), ..] = told[..] else {
        panic!("{told:?}")
    };
    // The episode goes on as it was, and ends for the one that has taken over.
    assert_eq!((at, window, still), (Time::from_millis(middle), reduced, ended));
    assert_eq!(summary.flows[0].progress.delivered_bytes, 2_000_000);
    assert_eq!(summary.flows[0].sent.retransmitted_packets, alone.flows[0].sent.retransmitted_packets);
}

#[test]
fn a_controller_takes_over_before_the_handshake_ends_and_after_the_flow() {
    // The SYN's answer arrives after some 20 ms: this one is there from the beginning.
    let (told, _) = switched(&[5], false, |_| {});
    let [("established", at, window), ..] = told[..] else { panic!("{told:?}") };
    assert!(at > Time::from_millis(20) && !told.iter().any(|(what, ..)| *what == "take over"), "{told:?}");
    assert_eq!(window.ssthresh, Window::INFINITE);
    // So is one that comes before the flow starts.
    let (told, _) = switched(&[5], false, |flow| flow.start = Time::from_secs(1));
    assert!(told[0].1 > Time::from_millis(1020), "{told:?}");
    // At 501 ms data is still on its way; ten seconds later the connection is no more.
    let stop = |flow: &mut FlowSpec| flow.bytes = Some(1_000_000);
    let (_, alone) = switched(&[], false, stop);
    let (told, mut summary) = switched(&[501, 10_500], false, stop);
    assert_eq!((told[0].0, told[0].1), ("established", Time::from_millis(501)));
    let [before, after] = [&alone, &summary].map(|summary| summary.flows[0].completed_s);
    assert!(before.is_some_and(|before| before > 0.501 && before < 10.0), "{before:?}");
    assert_eq!(before, after);
    summary.flows[0].cc = "newreno".into();
    summary.events = alone.events;
    assert_eq!(summary.flows, alone.flows);
}
