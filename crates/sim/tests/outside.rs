//! Packets from outside go through the same links and queues as others: each leaves once, and what
//! is decided about it depends on when it came alone. Headers of kernels say what endpoints count.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ackclock_aqm::{CodelConfig, FifoConfig, Limit};
use ackclock_cc::{NewReno, NewRenoConfig};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder, send_vector};
use ackclock_packet::{Class, Segment, flow_hash};
use ackclock_sim::spec::{
    Application, CcSpec, Clock, DirectionSpec, EndpointSpec, EndsSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec,
    LiveSpec, NodeSpec, PipeSpec, QueueSpec, RouterSpec, RunSpec, SplitRule, SplitSpec, WayBack,
};
use ackclock_sim::{DirectionId, FlowId, HostId, Inbound, Outbound, QueueRecorder, Recorders, World};
use ackclock_tcp::{Config, EcnFeedback, Endpoint, Ports, Shutdown, State};
use ackclock_trace::{FlowSummary, FlowWindow, Histogram, QueueCsv, SiftrLog, Summary, TcpCsv};
use ackclock_units::{Ecn, Random, Rate, Span, Time};
use proptest::prelude::*;

const LEFT: usize = 0;
const RIGHT: usize = 1;

fn ms(at: u64) -> Time {
    Time::from_millis(at)
}

fn direction(queue: QueueSpec) -> DirectionSpec {
    DirectionSpec {
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        burst: None,
        device: None,
        overhead: 0,
        queue,
        impairments: Impairments::default(),
        course: Default::default(),
    }
}

fn pfifo(limit: u64) -> QueueSpec {
    QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })
}

fn queues() -> Vec<QueueSpec> {
    let of = |queue| match queue {
        QueueSpec::Pfifo(_) => Some(pfifo(20)),
        QueueSpec::Bfifo(_) => Some(QueueSpec::Bfifo(FifoConfig { limit: Limit::Bytes(30_000) })),
        // It has room for all of them.
        QueueSpec::Prio(_) => None,
        queue => Some(queue),
    };
    QueueSpec::all().into_iter().filter_map(of).collect()
}

/// What goes along takes the second path as a vector says.
fn over_second(vector: u64) -> SplitSpec {
    let (others, along) = (vec![vec![1]], SplitRule::Vector(vector));
    SplitSpec { others, along, back: WayBack::Over(0), after_handshake: false, whole_units: false }
}

/// Two hosts behind devices, and one in this process; between the two a path over the links, with a
/// second one if asked for.
fn hosts_outside(links: Vec<LinkSpec>, vector: Option<u64>) -> RunSpec {
    let node = |name: &str, tun: bool, last: u8| NodeSpec {
        name: name.to_owned(),
        tun: tun.then(|| name.to_owned()),
        addresses: vec![(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    let router = RouterSpec { address: Ipv4Addr::UNSPECIFIED, address6: Ipv6Addr::UNSPECIFIED, mtu: None };
    let pipe = PipeSpec { between: [LEFT, RIGHT], path: vec![0], split: vector.map(over_second), router: Some(router) };
    RunSpec {
        title: String::new(),
        duration: Span::from_secs(60),
        seed: 1,
        run: 0,
        links,
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("left", true, 1), node("right", true, 2)],
            pipes: vec![pipe],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

fn link(name: &str, forward: DirectionSpec, reverse: DirectionSpec) -> LinkSpec {
    LinkSpec { name: name.to_owned(), forward, reverse, medium: None, is_interface: false }
}

/// A packet of no flow.
#[derive(Clone, Copy, Debug)]
struct Raw {
    at: Time,
    from: usize,
    wire_len: u32,
    ecn: Ecn,
    flow_hash: u64,
}

impl Raw {
    fn inbound(&self, token: u32) -> Inbound<'static> {
        Inbound {
            path: 0,
            from: self.from,
            to: 1 - self.from,
            end: None,
            segment: None,
            token: Some(token),
            wire_len: self.wire_len,
            ecn: self.ecn,
            class: Class::default(),
            flow_hash: self.flow_hash,
        }
    }
}

/// Packets of 20 flows from both sides, in bursts: 25 Mbit/s, of which 70 % go from left to right.
fn arrivals(seed: u64, count: usize) -> Vec<Raw> {
    let mut random = Random::for_component(seed, 0, "arrivals");
    let mut at = Time::ZERO;
    (0..count)
        .map(|_| {
            if !random.chance(0.5) {
                at += Span::from_nanos(random.below(1_000_000));
            }
            Raw {
                at,
                from: usize::from(random.chance(0.3)),
                wire_len: 64 + random.below(1437) as u32,
                ecn: if random.chance(0.5) { Ecn::Ect0 } else { Ecn::NotEct },
                flow_hash: flow_hash(random.below(20), false),
            }
        })
        .collect()
}

/// What became of the packets with some tokens.
#[derive(Debug, Default)]
struct Fates {
    /// Packets that reached their hosts, by token.
    delivered: BTreeMap<u32, u64>,
    freed: Vec<u32>,
    last: Time,
}

impl Fates {
    /// Takes all there is, each packet of `arrivals`.
    fn take(&mut self, world: &mut World, arrivals: &[Raw]) {
        while let Some(packet) = world.outbound() {
            let token = packet.token.expect("it came from outside");
            let raw = &arrivals[token as usize];
            assert!(packet.at >= self.last && packet.at > raw.at, "in order of time");
            self.last = packet.at;
            assert_eq!((packet.node, packet.packet.wire_len, packet.end), (1 - raw.from, raw.wire_len, None));
            assert!(packet.packet.ecn == raw.ecn || packet.packet.ecn == Ecn::Ce && raw.ecn.is_capable());
            *self.delivered.entry(token).or_default() += 1;
            world.release(packet);
        }
        self.freed.extend(std::iter::from_fn(|| world.freed()));
    }

    fn delivered(&self) -> u64 {
        self.delivered.values().sum()
    }

    /// Every token came back once.
    fn assert_all_freed(mut self, count: usize) {
        self.freed.sort_unstable();
        assert!(self.freed.iter().copied().eq(0..count as u32), "{} of {count} tokens", self.freed.len());
    }
}

fn drops(summary: &Summary<()>) -> u64 {
    summary.links.iter().flat_map(|link| link.dropped.values()).sum()
}

#[test]
fn every_packet_leaves_once_through_every_queue() {
    let impaired = Impairments {
        loss: Loss::Iid(0.02),
        duplicate: 0.03,
        jitter: Span::from_millis(3),
        reorder: Reorder::ByJitter,
        ..Impairments::default()
    };
    let held = Impairments { reorder: Reorder::HoldBack(HoldBack::default()), ..impaired.clone() };
    for queue in queues() {
        for (impairments, vector) in
            [(Impairments::default(), None), (impaired.clone(), None), (held.clone(), send_vector(2, 1))]
        {
            let one = DirectionSpec { impairments, ..direction(queue.clone()) };
            let two = DirectionSpec { delay: Span::from_millis(30), ..one.clone() };
            let links = vec![link("a", one.clone(), one.clone()), link("b", two.clone(), two)];
            let arrivals = arrivals(3, 3000);
            let mut world = World::new(&hosts_outside(links, vector));
            let mut fates = Fates::default();
            for (token, raw) in (0..).zip(&arrivals) {
                while world.advance(raw.at).is_some() {
                    fates.take(&mut world, &arrivals);
                }
                assert!(world.inject(raw.at, raw.inbound(token)));
            }
            while world.advance(Time::from_secs(60)).is_some() {}
            fates.take(&mut world, &arrivals);
            assert_eq!((world.packets_inside(), world.next_due()), (0, Time::NEVER));
            let summary = world.summary();
            let name = queue.name();
            let offered: u64 = summary.links.iter().map(|link| link.offered).sum();
            assert_eq!(offered, 3000, "{name}");
            let copies: u64 = fates.delivered.values().map(|copies| copies - 1).sum();
            assert_eq!(fates.delivered() - copies + drops(&summary), offered, "{name}");
            assert_eq!(copies > 0, one.impairments.duplicate > 0.0, "{name}");
            assert!(drops(&summary) > 0 && fates.delivered() > 1500, "{name}");
            if let Some(vector) = vector {
                // As the vector says of what goes from left to right, and nothing the other way.
                let [there, second, back_by_second] = [0, 2, 3].map(|n| summary.links[n].offered);
                let by_second = (0..there + second).filter(|n| vector >> (n % 64) & 1 == 1).count() as u64;
                assert_eq!((second, back_by_second), (by_second, 0), "{name}");
            }
            fates.assert_all_freed(3000);
        }
    }
}

#[test]
fn what_is_on_its_way_at_the_end_is_delivered_or_not_as_told() {
    let one = direction(pfifo(20));
    let spec = hosts_outside(vec![link("a", one.clone(), one)], None);
    let arrivals = arrivals(4, 500);
    let inject_all = |world: &mut World, fates: &mut Fates| {
        for (token, raw) in (0..).zip(&arrivals) {
            assert!(world.inject(raw.at, raw.inbound(token)));
            fates.take(world, &arrivals);
        }
    };
    let end = arrivals.last().unwrap().at;
    let (mut world, mut fates) = (World::new(&spec), Fates::default());
    inject_all(&mut world, &mut fates);
    world.end_at(end);
    assert_eq!(world.end(), end);
    assert_eq!(world.advance(Time::NEVER), None);
    assert!(!world.inject(end, arrivals[0].inbound(500)), "the run is over");
    let summary = world.summary();
    assert!(summary.partial);
    assert_eq!(summary.duration_s, end.as_secs_f64());
    let before = fates.delivered();
    assert_eq!(world.packets_inside() as u64, 500 - before - drops(&summary));
    assert!(world.packets_inside() > 15);
    // The summary stands; what is delivered now is in no measure.
    world.drain();
    assert!(!world.inject(end, arrivals[0].inbound(500)), "nothing enters any more");
    while world.advance(Time::NEVER).is_some() {
        fates.take(&mut world, &arrivals);
    }
    assert_eq!((world.packets_inside(), world.next_due()), (0, Time::NEVER));
    assert!(fates.last > end);
    assert_eq!(fates.delivered() + drops(&summary), 500);
    fates.assert_all_freed(500);
}

#[test]
fn there_is_no_way_without_a_pipe() {
    let one = direction(pfifo(20));
    let mut world = World::new(&hosts_outside(vec![link("a", one.clone(), one)], None));
    let raw = arrivals(5, 1)[0].inbound(0);
    for (from, to) in [(0, 0), (0, 2), (7, 1)] {
        assert!(!world.inject(ms(1), Inbound { from, to, ..raw }));
    }
    assert!(world.inject(ms(1), Inbound { from: 1, to: 0, ..raw }));
    let one = direction(pfifo(20));
    let mut inside = hosts_outside(vec![link("a", one.clone(), one)], None);
    inside.live = None;
    assert!(!World::new(&inside).inject(ms(1), raw));
}

/// What leaves, and every decision of every queue, with the world called at `late` times of its own
/// choice.
fn decisions(spec: &RunSpec, arrivals: &[Raw], late: impl Fn(&mut World, Time)) -> (Vec<Outbound>, Vec<u8>) {
    let mut csv = QueueCsv::new(Vec::new());
    let directions: Vec<DirectionId> = DirectionId::all(spec.links.len()).collect();
    let mut left = Vec::new();
    {
        let mut recorders = Recorders {
            queues: Some(QueueRecorder { directions: &directions, sink: &mut csv }),
            ..Recorders::default()
        };
        let mut world = World::new(spec);
        world.start(&recorders);
        for (token, raw) in (0..).zip(arrivals) {
            late(&mut world, raw.at);
            assert!(world.inject(raw.at, raw.inbound(token)));
        }
        while let Some(now) = world.advance(Time::NEVER) {
            world.keep_up(now, &mut recorders).expect("the sink takes everything");
        }
        world.complete(&mut recorders).expect("the sink takes everything");
        while let Some(packet) = world.outbound() {
            // Slots are given anew in another order.
            left.push(Outbound { packet: ackclock_packet::Packet { slot: 0, ..packet.packet }, ..packet });
            world.release(packet);
        }
    }
    (left, csv.finish().expect("it is in memory"))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn late_calls_change_nothing(seed: u64, kind in 0usize..11, two_paths: bool, every in 1u64..100_000_000) {
        let impairments = Impairments {
            loss: Loss::Iid(0.02),
            duplicate: 0.02,
            jitter: Span::from_millis(2),
            reorder: Reorder::ByJitter,
            ..Impairments::default()
        };
        let one = DirectionSpec { impairments, ..direction(queues()[kind].clone()) };
        let links = vec![link("a", one.clone(), one.clone()), link("b", one.clone(), one)];
        let spec = hosts_outside(links, two_paths.then_some(0xf0f0));
        let arrivals = arrivals(seed, 400);
        // At the arrivals alone; at each time that something is due; now and then.
        let at_arrivals = decisions(&spec, &arrivals, |_, _| {});
        let punctual = decisions(&spec, &arrivals, |world, until| {
            while world.next_due() <= until {
                let due = world.next_due();
                world.advance(due);
            }
        });
        let now_and_then = decisions(&spec, &arrivals, |world, until| {
            let until = Time::from_nanos(until.as_nanos() / every * every);
            while world.advance(until).is_some() {}
        });
        prop_assert_eq!(&punctual, &at_arrivals);
        prop_assert_eq!(&now_and_then, &at_arrivals);
        prop_assert!(punctual.0.len() > 100 && punctual.1.len() > 10_000);
    }
}

#[test]
fn an_arrival_comes_after_what_is_due_at_its_time() {
    // A packet of 1250 bytes takes 1 ms on the link: the one in the queue's only place leaves it
    // when the third comes.
    let one = direction(pfifo(1));
    let mut world = World::new(&hosts_outside(vec![link("a", one.clone(), one)], None));
    let raw = |at| Raw { at, from: LEFT, wire_len: 1250, ecn: Ecn::NotEct, flow_hash: 1 };
    for (token, at) in [ms(0), ms(0), ms(1), ms(1)].into_iter().enumerate() {
        assert!(world.inject(at, raw(at).inbound(token as u32)));
    }
    while world.advance(Time::from_secs(1)).is_some() {}
    let left: Vec<_> = std::iter::from_fn(|| world.outbound()).map(|packet| (packet.at, packet.token)).collect();
    assert_eq!(left, [(ms(11), Some(0)), (ms(12), Some(1)), (ms(13), Some(2))]);
    assert_eq!(world.freed(), Some(3));
    // Time does not go back.
    assert!(world.inject(ms(5), raw(ms(5)).inbound(4)));
    while world.advance(Time::from_secs(1)).is_some() {}
    assert_eq!(world.outbound().map(|packet| packet.at), Some(ms(13 + 11)));
}

// Connections.

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
        let mut config = config.clone();
        config.states.syn_retries = config.max_retries;
        config.states.synack_retries = config.max_retries;
        config.states.handshake_timeout = None;
        // The numbers wrap on the way.
        let isn = u32::MAX - 100_000;
        let cc = Box::new(NewReno::new(NewRenoConfig::default()));
        let mut endpoint = Endpoint::new(config, cc, ports, isn, 7);
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

    /// Its applications do what they can, and it sends what it may.
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
            if self.endpoint.peer_finished() && !std::mem::replace(&mut self.closed, true) {
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

/// What headers tell is in these fields.
fn assert_same_measures(watched: &FlowSummary, inside: &FlowSummary) {
    let told = |flow: &FlowSummary| FlowSummary {
        cc: Arc::default(),
        host: Arc::default(),
        loss_detector: "",
        cwnd_bytes: Default::default(),
        spurious_retransmits: 0,
        timeouts: 0,
        fast_recoveries: 0,
        undos: 0,
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

/// What has come to an end outside is known when it acknowledges it, which may be a segment or two
/// later.
fn assert_same_windows(watched: &Summary<()>, inside: &Summary<()>) {
    for (watched, inside) in watched.windows.iter().zip(&inside.windows) {
        assert_eq!(watched.links, inside.links);
        let (flow, expected) = (&watched.flows[0], &inside.flows[0]);
        assert!(flow.delivered_bytes.abs_diff(expected.delivered_bytes) <= 2 * 1448, "{flow:?} {expected:?}");
        let known = |from: &FlowWindow| FlowWindow {
            cwnd_bytes: Default::default(),
            timeouts: 0,
            fast_recoveries: 0,
            undos: 0,
            goodput_bps: 0.0,
            delivered_bytes: 0,
            ca_state_s: Default::default(),
            dupthresh: None,
            dupthresh_start: None,
            ..from.clone()
        };
        assert_eq!(known(flow), known(expected));
    }
}

/// What happens to packets on the way.
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

/// Whether the same flow inside takes the same ways. Over two paths everything that goes along
/// takes both, ACKs of data that comes back too; those of a flow inside take the first.
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
        let (flow, stats) = (&summary.flows[0], kernels[0].endpoint.stats());
        assert_eq!(flow.delivered_bytes, 3_000_000, "{case}");
        assert_eq!(flow.acked_bytes, 3_000_000, "{case}");
        assert_eq!(
            (flow.sent_packets, flow.retransmitted_packets, flow.ece_acks),
            (stats.sent_packets, stats.retransmitted_packets, stats.ece_acks),
            "{case}"
        );
        assert_eq!(flow.rtt_ms, kernels[0].rtt.distribution(1e-6), "{case}");
        assert!(flow.completed_s.is_some() && flow.rtt_ms.samples > 500, "{case}");
        assert_eq!((&*flow.cc, &*flow.host), ("kernel", "kernel"));
        assert_eq!(world.packets_inside(), 0);
        assert_eq!(
            std::iter::from_fn(|| world.freed()).count() as u64,
            summary.links.iter().map(|link| link.offered).sum::<u64>()
        );
        if has_an_equal_inside(network, back) {
            assert_eq!(summary.links, expected.links, "{case}");
            assert_same_measures(flow, &expected.flows[0]);
            assert_same_windows(&summary, &expected);
        } else {
            let [first, second] = [0, 2].map(|direction: usize| summary.links[direction].offered);
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
        assert_eq!(kernels[0].endpoint.delivered_bytes(), 3_000_000);
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
        assert_eq!(kernels[0].endpoint.acked_bytes(), 3_000_000);
        if has_an_equal_inside(network, back) {
            assert_eq!(summary.links, expected.links, "{network:?} {back}");
            assert_same_measures(&summary.flows[0], &expected.flows[0]);
        }
        assert_eq!(summary.flows[0].retransmissions, Default::default(), "there is no truth about it");
        // Our endpoint reads the segments, and their bytes are done with.
        let data: u64 = summary.flows[0].sent_packets;
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
