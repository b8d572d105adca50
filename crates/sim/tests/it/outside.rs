//! Packets from outside go through the same links and queues as others: each leaves once, and what
//! is decided about it depends on when it came alone. Headers of kernels say what endpoints count.

use std::collections::BTreeMap;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::sync::Arc;

use ackclock_aqm::{AfdConfig, CodelConfig, CurvyRedConfig, FifoConfig, FqConfig, HeadDropConfig, Limit, TbfConfig};
use ackclock_cc::{NewReno, NewRenoConfig};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder, send_vector};
use ackclock_packet::{Class, Segment, flow_hash};
use ackclock_sim::spec::{
    Application, CcSpec, Clock, DirectionSpec, EndpointSpec, EndsSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec,
    LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RouterSpec, RunSpec, SplitRule, SplitSpec, WayBack,
};
use ackclock_sim::{DirectionId, FlowId, HostId, Inbound, Outbound, QueueRecorder, Recorders, World};
use ackclock_tcp::{Config, EcnFeedback, Endpoint, Ports, Shutdown, State};
use ackclock_trace::{FlowSummary, FlowWindow, Histogram, Progress, QueueCsv, Reactions, SiftrLog, Summary, TcpCsv};
use ackclock_units::{Ecn, Random, Rate, Span, Time};
use proptest::prelude::*;

mod connections;

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
        overhead: Overhead::default(),
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
        QueueSpec::PfifoHeadDrop(_) => Some(QueueSpec::PfifoHeadDrop(HeadDropConfig { limit: 20 })),
        QueueSpec::Afd(_) => Some(QueueSpec::Afd(AfdConfig { limit: 20, ..AfdConfig::default() })),
        QueueSpec::Fq(_) => Some(QueueSpec::Fq(FqConfig { limit: 20, ..FqConfig::default() })),
        QueueSpec::Tbf(_) => Some(QueueSpec::Tbf(TbfConfig {
            rate: Rate::from_bps(9_000_000).expect("above zero"),
            burst: 10_000,
            limit: Some(30_000),
            ..TbfConfig::default()
        })),
        QueueSpec::CurvyRed(_) => {
            Some(QueueSpec::CurvyRed(CurvyRedConfig { limit: 30_000, ..CurvyRedConfig::default() }))
        }
        // They have room for all of them.
        QueueSpec::Prio(_) | QueueSpec::Drr(_) | QueueSpec::Ets(_) => None,
        queue if queue.is_tree() => None,
        queue => Some(queue),
    };
    QueueSpec::all().into_iter().filter_map(of).collect()
}

/// A split by which forward packets take the second path as a vector says.
fn over_second(vector: u64) -> SplitSpec {
    let (others, along) = (vec![vec![1]], SplitRule::Vector(vector));
    SplitSpec { others, along, back: WayBack::Over(0), after_handshake: false, whole_units: false }
}

/// Two hosts behind devices, and one in this process; between the two a path over the links, with a
/// second one if `vector` is given.
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
        ties: ackclock_sim::spec::Ties::Fixed,
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

/// The fates of packets, as lists of their tokens.
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
    summary.links.iter().flat_map(|link| link.packets.dropped.values()).sum()
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
            let offered: u64 = summary.links.iter().map(|link| link.packets.offered).sum();
            assert_eq!(offered, 3000, "{name}");
            let copies: u64 = fates.delivered.values().map(|copies| copies - 1).sum();
            assert_eq!(fates.delivered() - copies + drops(&summary), offered, "{name}");
            assert_eq!(copies > 0, one.impairments.duplicate > 0.0, "{name}");
            assert!(drops(&summary) > 0 && fates.delivered() > 1500, "{name}");
            if let Some(vector) = vector {
                // As the vector says of what goes from left to right, and nothing the other way.
                let [there, second, back_by_second] = [0, 2, 3].map(|n| summary.links[n].packets.offered);
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

/// The packets that leave, and every decision of every queue, with the world also called at `late`
/// times of its own choice.
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
