//! Connections of which one end, or both, are outside.

use super::*;

fn endpoint(config: &Config) -> HostSpec {
    let cc = CcSpec::NewReno(NewRenoConfig::default());
    HostSpec::Endpoint(EndpointSpec { profile: "rfc".to_owned(), config: config.clone(), cc })
}

/// A transfer from left to right, or from right to left, over the path between the two hosts.
fn transfer(bytes: u64, config: &Config, back: bool) -> FlowSpec {
    FlowSpec {
        id: "flow.0".into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path: vec![0],
            split: None,
            mptcp: None,
            reverse: back,
            sender: endpoint(config),
            receiver: endpoint(config),
            bytes: Some(bytes),
            application: Application::Bulk,
            write_size: FlowSpec::WRITE_SIZE,
            dscp: 0,
            abort: None,
            schedule: Vec::new(),
        }
        .into(),
        start: Time::ZERO,
        stop: None,
        ends: Some(EndsSpec {
            nodes: if back { [RIGHT, LEFT] } else { [LEFT, RIGHT] },
            port: 5201,
            source_port: None,
            check: true,
        }),
        via: None,
    }
}

/// A kernel, played by an endpoint that is driven by hand.
#[derive(Debug)]
struct Kernel {
    end: HostId,
    nodes: [usize; 2],
    endpoint: Endpoint,
    opened: bool,
    remaining: u64,
    closed: bool,
    rtt: Histogram,
    token: Option<u32>,
}

impl Kernel {
    fn new(spec: &RunSpec, end: HostId, config: &Config, token: Option<u32>) -> Kernel {
        let flow = &spec.flows[end.flow().index()];
        let [sender, receiver] = flow.ends.expect("it is between two hosts").nodes;
        let (ports, nodes) = match end.is_sender() {
            true => (Ports { local: 40_000, remote: 5201 }, [sender, receiver]),
            false => (Ports { local: 5201, remote: 40_000 }, [receiver, sender]),
        };
        // The numbers wrap on the way.
        let isn = u32::MAX - 100_000;
        let cc = Box::new(NewReno::new(NewRenoConfig::default()));
        let mut endpoint = Endpoint::new(config.clone(), cc, ports, isn, 7);
        if !end.is_sender() {
            endpoint.listen();
        }
        let remaining = flow.bytes.unwrap_or(u64::MAX);
        Kernel { end, nodes, endpoint, opened: false, remaining, closed: false, rtt: Histogram::new(), token }
    }

    fn due(&self) -> Time {
        let start = if self.end.is_sender() && !self.opened { Time::ZERO } else { Time::NEVER };
        start.min(self.endpoint.next_deadline())
    }

    /// Runs the applications, and sends the segments that may be sent.
    fn act(&mut self, world: &mut World, now: Time) {
        if self.end.is_sender() {
            if !std::mem::replace(&mut self.opened, true) {
                self.endpoint.connect();
            }
            self.remaining -= self.endpoint.write(self.remaining);
            let open = !matches!(self.endpoint.state(), State::Closed | State::SynSent);
            if self.remaining == 0 && open && !std::mem::replace(&mut self.closed, true) {
                self.endpoint.shutdown(Shutdown::Write);
            }
        } else {
            self.endpoint.read(u64::MAX);
            if self.endpoint.receiver().is_finished() && !std::mem::replace(&mut self.closed, true) {
                self.endpoint.shutdown(Shutdown::Write);
            }
        }
        let mut segment = Segment::default();
        while let Some(ecn) = self.endpoint.transmit(now, &mut segment) {
            let inbound = Inbound {
                path: 0,
                from: self.nodes[0],
                to: self.nodes[1],
                end: Some(self.end),
                segment: Some(&segment),
                token: self.token,
                wire_len: segment.wire_len(),
                ecn,
                class: Class::new(0, segment.is_pure_ack()),
                flow_hash: flow_hash(self.end.flow().index() as u64, !self.end.is_sender()),
            };
            assert!(world.inject(now, inbound));
        }
    }

    fn receive(&mut self, world: &mut World, packet: Outbound) {
        assert_eq!((packet.node, packet.end), (self.nodes[0], Some(self.end)));
        let segment = *world.segment(&packet);
        world.release(packet);
        let arrival = self.endpoint.input(packet.at, &segment, packet.packet.ecn);
        if let Some(rtt) = arrival.rtt {
            self.rtt.add(rtt.as_nanos());
        }
        self.act(world, packet.at);
    }
}

/// Runs to the end, with kernels, and with packets of no flow in the beginning.
fn run_with(world: &mut World, kernels: &mut [Kernel], recorders: &mut Recorders<'_>, beside: &[Raw]) -> Summary<()> {
    world.start(recorders);
    for raw in beside {
        for kernel in kernels.iter_mut().filter(|kernel| kernel.due() <= raw.at) {
            kernel.act(world, kernel.due());
        }
        assert!(world.inject(raw.at, raw.inbound(0)));
    }
    loop {
        let due = kernels.iter().map(Kernel::due).min().unwrap_or(Time::NEVER);
        if world.next_due().min(due) >= world.end() {
            break;
        }
        if world.next_due() <= due {
            let now = world.advance(due).expect("it is due");
            world.keep_up(now, recorders).expect("the sinks take everything");
        } else {
            for kernel in kernels.iter_mut().filter(|kernel| kernel.due() <= due) {
                kernel.endpoint.on_deadline(due);
                kernel.act(world, due);
            }
        }
        while let Some(packet) = world.outbound() {
            let Some(end) = packet.end else {
                world.release(packet);
                continue;
            };
            let kernel = kernels.iter_mut().find(|kernel| kernel.end == end);
            kernel.expect("its end is outside").receive(world, packet);
        }
    }
    world.complete(recorders).expect("the data is intact");
    world.summary()
}

/// Compares the fields that can be measured from headers.
fn assert_same_measures(watched: &FlowSummary, inside: &FlowSummary) {
    let told = |flow: &FlowSummary| FlowSummary {
        cc: Arc::default(),
        host: Arc::default(),
        loss_detector: "",
        cwnd_bytes: Default::default(),
        spurious_retransmits: 0,
        recoveries: Default::default(),
        reactions: Reactions { undos: 0, ..flow.reactions },
        reordering_max: 0,
        limited_s: Default::default(),
        ca_state_s: Default::default(),
        goodput_windows_bps: Default::default(),
        retransmissions: Default::default(),
        loss_declarations: Default::default(),
        loss_declared_late_ms: Default::default(),
        repair_rtts: Default::default(),
        displacement: Default::default(),
        ..flow.clone()
    };
    assert_eq!(told(watched), told(inside));
}

/// Compares windows; the end of a transfer outside is known from its acknowledgment, which may be a
/// segment or two later.
fn assert_same_windows(watched: &Summary<()>, inside: &Summary<()>) {
    for (watched, inside) in watched.windows.iter().zip(&inside.windows) {
        assert_eq!(watched.links, inside.links);
        let (flow, expected) = (&watched.flows[0], &inside.flows[0]);
        assert!(
            flow.progress.delivered_bytes.abs_diff(expected.progress.delivered_bytes) <= 2 * 1448,
            "{flow:?} {expected:?}"
        );
        let known = |from: &FlowWindow| FlowWindow {
            cwnd_bytes: Default::default(),
            recoveries: Default::default(),
            reactions: Reactions { undos: 0, ..from.reactions },
            goodput_bps: 0.0,
            progress: Progress { delivered_bytes: 0, ..from.progress },
            ca_state_s: Default::default(),
            dupthresh: None,
            dupthresh_start: None,
            ..from.clone()
        };
        assert_eq!(known(flow), known(expected));
    }
}

/// The treatment of packets on the way.
#[derive(Clone, Copy, Debug)]
enum Network {
    Plain,
    Lossy,
    Reordering,
    TwoPaths,
}

fn spec_of(network: Network, queue: QueueSpec, config: &Config, back: bool) -> RunSpec {
    let impairments = match network {
        Network::Plain | Network::TwoPaths => Impairments::default(),
        Network::Lossy => Impairments { loss: Loss::Iid(0.01), duplicate: 0.01, ..Impairments::default() },
        Network::Reordering => Impairments {
            jitter: Span::from_millis(4),
            reorder: Reorder::ByJitter,
            loss: Loss::Iid(0.005),
            ..Impairments::default()
        },
    };
    let one = DirectionSpec { impairments, ..direction(queue) };
    let two = DirectionSpec { delay: Span::from_millis(13), ..one.clone() };
    let links = vec![link("a", one.clone(), one), link("b", two.clone(), two)];
    let vector = matches!(network, Network::TwoPaths).then(|| send_vector(1, 1)).flatten();
    let mut spec = hosts_outside(links, vector);
    spec.flows = vec![transfer(3_000_000, config, back)];
    spec.windows = vec![(ms(500), ms(1500)), (ms(1000), ms(2000))];
    spec
}

/// The same with all hosts in the run.
fn inside(spec: &RunSpec) -> Summary<()> {
    let mut spec = spec.clone();
    let live = spec.live.take().expect("it has hosts outside");
    for flow in &mut spec.flows {
        flow.ends = None;
        flow.split = live.pipes[0].split.clone().filter(|_| !flow.reverse);
    }
    ackclock_sim::run(&spec, &mut |_| std::ops::ControlFlow::Continue(())).expect("the data is intact")
}

const BOTH: [HostId; 2] = [FlowId::new(0).sender(), FlowId::new(0).receiver()];

fn cases() -> impl Iterator<Item = (Network, QueueSpec, Config, bool)> {
    let networks = [Network::Plain, Network::Lossy, Network::Reordering, Network::TwoPaths];
    networks.into_iter().flat_map(|network| {
        [
            (pfifo(30), EcnFeedback::None),
            (QueueSpec::Codel(CodelConfig { ecn: true, ..CodelConfig::default() }), EcnFeedback::Classic),
        ]
        .into_iter()
        .flat_map(move |(queue, ecn)| {
            // By timestamps an end may refuse what is late (PAWS), which nobody else knows.
            let timestamps = matches!(network, Network::Plain | Network::Lossy);
            let config = Config { ecn, timestamps, ..Config::default() };
            [false, true].map(|back| (network, queue.clone(), config.clone(), back))
        })
    })
}

/// Returns true if the same flow inside takes the same paths. Over two paths all forward packets
/// are split, including ACKs of data that comes back; those of a flow inside take the first.
fn has_an_equal_inside(network: Network, back: bool) -> bool {
    !(matches!(network, Network::TwoPaths) && back)
}

#[test]
fn a_watch_counts_what_the_endpoints_count() {
    for (network, queue, config, back) in cases() {
        let mut spec = spec_of(network, queue, &config, back);
        let expected = inside(&spec);
        spec.flows[0].sender = HostSpec::Outside;
        spec.flows[0].receiver = HostSpec::Outside;
        let mut world = World::new(&spec);
        let mut kernels = BOTH.map(|end| Kernel::new(&spec, end, &config, Some(3)));
        let summary = run_with(&mut world, &mut kernels, &mut Recorders::default(), &[]);
        let case = format!("{network:?} {} {back}", expected.links[0].queue);
        let (flow, stats) = (&summary.flows[0], kernels[0].endpoint.sender().stats());
        assert_eq!(flow.progress.delivered_bytes, 3_000_000, "{case}");
        assert_eq!(flow.progress.acked_bytes, 3_000_000, "{case}");
        assert_eq!(
            (flow.sent.sent_packets, flow.sent.retransmitted_packets, flow.reactions.ece_acks),
            (stats.data_packets(), stats.retransmitted_data(), stats.ece_acks),
            "{case}"
        );
        assert_eq!(flow.rtt_ms, kernels[0].rtt.distribution(1e-6), "{case}");
        assert!(flow.completed_s.is_some() && flow.rtt_ms.samples > 500, "{case}");
        assert_eq!((&*flow.cc, &*flow.host), ("kernel", "kernel"));
        assert_eq!(world.packets_inside(), 0);
        assert_eq!(
            std::iter::from_fn(|| world.freed()).count() as u64,
            summary.links.iter().map(|link| link.packets.offered).sum::<u64>()
        );
        if has_an_equal_inside(network, back) {
            assert_eq!(summary.links, expected.links, "{case}");
            assert_same_measures(flow, &expected.flows[0]);
            assert_same_windows(&summary, &expected);
        } else {
            let [first, second] = [0, 2].map(|direction: usize| summary.links[direction].packets.offered);
            assert!(first > 500 && first.abs_diff(second) <= 1, "{case}: ACKs take both paths by turns");
        }
    }
}

#[test]
fn our_sender_to_a_kernel_measures_what_it_does_among_our_own() {
    for (network, queue, config, back) in cases() {
        let mut spec = spec_of(network, queue, &config, back);
        let expected = inside(&spec);
        spec.flows[0].receiver = HostSpec::Outside;
        let mut world = World::new(&spec);
        let mut kernels = [Kernel::new(&spec, BOTH[1], &config, None)];
        let summary = run_with(&mut world, &mut kernels, &mut Recorders::default(), &[]);
        assert_eq!(kernels[0].endpoint.receiver().delivered(), 3_000_000);
        if has_an_equal_inside(network, back) {
            // All but what a kernel holds beyond gaps: also what became of each transmission.
            let told = |flow: &FlowSummary| FlowSummary { goodput_windows_bps: Default::default(), ..flow.clone() };
            let [told, expected_of] = [&summary, &expected].map(|run| run.flows.iter().map(told).collect::<Vec<_>>());
            assert_eq!(summary.links, expected.links, "{network:?} {back}");
            assert_eq!(told, expected_of, "{network:?} {back}");
            assert_same_windows(&summary, &expected);
        }
    }
}

#[test]
fn a_kernel_s_sender_to_our_receiver() {
    for (network, queue, config, back) in cases() {
        let mut spec = spec_of(network, queue, &config, back);
        let expected = inside(&spec);
        spec.flows[0].sender = HostSpec::Outside;
        let mut world = World::new(&spec);
        let mut kernels = [Kernel::new(&spec, BOTH[0], &config, Some(9))];
        let summary = run_with(&mut world, &mut kernels, &mut Recorders::default(), &[]);
        assert_eq!(kernels[0].endpoint.sender().sequence().acked_bytes(), 3_000_000);
        if has_an_equal_inside(network, back) {
            assert_eq!(summary.links, expected.links, "{network:?} {back}");
            assert_same_measures(&summary.flows[0], &expected.flows[0]);
        }
        assert_eq!(summary.flows[0].retransmissions, Default::default(), "there is no truth about it");
        // An ackclock endpoint reads the segments, and their bytes are done with.
        let data: u64 = summary.flows[0].sent.sent_packets;
        assert!(std::iter::from_fn(|| world.freed()).count() as u64 > data);
    }
}

#[test]
fn records_tell_of_packets_from_outside() {
    let config = Config::default();
    let mut spec = spec_of(Network::Lossy, pfifo(30), &config, false);
    spec.flows[0].bytes = Some(300_000);
    let mut first = None;
    for outside in [[false, false], [true, true], [false, true], [true, false]] {
        let mut spec = spec.clone();
        let mut kernels = Vec::new();
        for (end, outside) in BOTH.into_iter().zip(outside) {
            if outside {
                *(if end.is_sender() { &mut spec.flows[0].sender } else { &mut spec.flows[0].receiver }) =
                    HostSpec::Outside;
                kernels.push(Kernel::new(&spec, end, &config, Some(1)));
            }
        }
        let (mut queue, mut tcp) = (QueueCsv::new(Vec::new()), TcpCsv::new(Vec::new()));
        let mut siftr = SiftrLog::new(Vec::new());
        let mut world = World::new(&spec);
        let raw = Raw { at: ms(1), from: LEFT, wire_len: 100, ecn: Ecn::NotEct, flow_hash: 1 };
        let mut recorders = Recorders {
            queues: Some(QueueRecorder { directions: &[DirectionId::forward(0)], sink: &mut queue }),
            tcp: Some(&mut tcp),
            siftr: Some(&mut siftr),
            ..Recorders::default()
        };
        let summary = run_with(&mut world, &mut kernels, &mut recorders, &[raw]);
        assert!(summary.flows[0].completed_s.is_some());
        let text = |bytes: io::Result<Vec<u8>>| String::from_utf8(bytes.expect("it is in memory")).unwrap();
        let (queue, tcp) = (text(queue.finish()), text(tcp.finish()));
        let rows: Vec<Vec<&str>> = queue.lines().skip(1).map(|line| line.split(',').collect()).collect();
        // Columns: time, link, packet, flow, offset, size, action, ...
        let (beside, rows): (Vec<_>, Vec<_>) = rows.into_iter().partition(|row| row[2] == "2");
        assert_eq!(beside[0][1..7], ["a.forward", "2", "", "", "100", "enqueue"], "{outside:?}");
        assert!(rows.iter().all(|row| row[3] == "flow.0"), "{outside:?}");
        let data: Vec<u64> =
            rows.iter().filter(|row| row[6] == "enqueue").filter_map(|row| row[4].parse().ok()).collect();
        assert!(data.iter().max().is_some_and(|last| (298_540..300_000).contains(last)), "{outside:?}");
        // Whose endpoints they are makes no difference to the queue.
        assert_eq!(*first.get_or_insert(queue.clone()), queue, "{outside:?}");
        // Of ends outside there is no more to be told.
        assert_eq!(tcp.lines().count() > 1, !outside[0], "{outside:?}");
        let log = text(siftr.finish(world.end()));
        let segments = log.lines().filter(|line| line.starts_with(['i', 'o'])).count();
        assert_eq!(segments > 0, outside != [true, true], "{outside:?}");
    }
}

#[test]
fn a_run_that_is_broken_off_says_what_it_has_measured() {
    let config = Config::default();
    let mut spec = spec_of(Network::Plain, pfifo(30), &config, false);
    spec.flows[0].bytes = Some(1 << 40);
    spec.windows = vec![(ms(500), ms(1000)), (ms(1000), ms(2000)), (ms(2000), ms(3000))];
    spec.flows[0].sender = HostSpec::Outside;
    spec.flows[0].receiver = HostSpec::Outside;
    let mut world = World::new(&spec);
    world.end_at(ms(1500));
    let mut kernels = BOTH.map(|end| Kernel::new(&spec, end, &config, Some(3)));
    let summary = run_with(&mut world, &mut kernels, &mut Recorders::default(), &[]);
    assert!(summary.partial);
    assert_eq!((summary.duration_s, summary.flows[0].completed_s), (1.5, None));
    let [first, second, third] = &summary.windows[..] else { panic!("three windows") };
    assert_eq!((first.from_s, first.to_s), (0.5, 1.0));
    // The second one is as long as the run was; the third has not begun.
    assert_eq!((second.from_s, second.to_s, second.flows.len()), (1.0, 1.5, 1));
    // 1448 of 1500 bytes are payload.
    let rate = 10e6 * 1448.0 / 1500.0;
    assert!((second.flows[0].goodput_bps / rate - 1.0).abs() < 0.02, "{}", second.flows[0].goodput_bps);
    assert_eq!((third.from_s, third.to_s, third.flows.len()), (2.0, 3.0, 0));
}
