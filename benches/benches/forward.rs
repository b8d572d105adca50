//! Packets between two hosts outside through the world, without bytes and devices: one enters,
//! travels, leaves and is given back. The throughput is in packets.

use std::hint::black_box;
use std::net::{IpAddr, Ipv4Addr};

use ackclock_aqm::{FifoConfig, Limit, PieConfig};
use ackclock_packet::{Class, Flags, Payload, Segment};
use ackclock_sim::spec::{
    Application, Clock, DirectionSpec, EndsSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec, LiveSpec, NodeSpec, Overhead,
    PipeSpec, QueueSpec, RunSpec, Ties,
};
use ackclock_sim::{FlowId, HostId, Inbound, World};
use ackclock_units::{Ecn, Rate, Span, Time};
use criterion::{Criterion, Throughput, criterion_group, criterion_main};

/// Between two packets: 1500 bytes at 9.6 Gbit/s.
const GAP: Span = Span::from_nanos(1250);

/// Two hosts, a path of one link, and a flow between their kernels.
fn spec(rate: Option<Rate>, delay: Span, queue: QueueSpec) -> RunSpec {
    let (impairments, course) = Default::default();
    let direction = DirectionSpec {
        rate,
        burst: None,
        device: None,
        delay,
        overhead: Overhead::default(),
        queue,
        impairments,
        course,
    };
    let node = |last: u8| NodeSpec {
        name: format!("host{last}"),
        tun: Some(format!("tun{last}")),
        addresses: vec![(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    let pipe = PipeSpec { between: [0, 1], path: vec![0], split: None, router: None };
    RunSpec {
        title: String::new(),
        // The world's time goes on as long as the bench does.
        duration: Span::from_secs(1_000_000_000),
        seed: 1,
        run: 0,
        ties: Ties::default(),
        links: vec![LinkSpec {
            name: "link".to_owned(),
            forward: direction.clone(),
            reverse: direction,
            medium: None,
            is_interface: false,
        }],
        flows: vec![FlowSpec {
            id: "flow.0".into(),
            group: FlowGroup {
                path: vec![0],
                split: None,
                mptcp: None,
                reverse: false,
                sender: HostSpec::Outside,
                receiver: HostSpec::Outside,
                bytes: None,
                application: Application::Bulk,
                write_size: FlowSpec::WRITE_SIZE,
                dscp: 0,
                abort: None,
                schedule: Vec::new(),
                metrics: None,
                hosts: None,
            }
            .into(),
            start: Time::ZERO,
            stop: None,
            ends: Some(EndsSpec { nodes: [0, 1], port: 5201, source_port: None, check: false }),
            via: None,
        }],
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node(1), node(2)],
            pipes: vec![pipe],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

/// A world with what is sent through it.
struct Bench {
    world: World,
    now: Time,
    /// Bytes sent and acknowledged on the flow.
    sent: u32,
    acked: u32,
}

impl Bench {
    /// A packet enters; what has arrived until then leaves.
    fn pass(&mut self, end: Option<HostId>, segment: Option<&Segment>, wire_len: u32) {
        self.now += GAP;
        loop {
            let stepped = self.world.advance(self.now).is_some();
            while let Some(packet) = self.world.outbound() {
                if packet.end.is_some_and(|end| !end.is_sender()) {
                    self.acked = self.acked.wrapping_add(self.world.segment(&packet).payload.len);
                }
                self.world.release(black_box(packet));
            }
            while let Some(token) = self.world.freed() {
                black_box(token);
            }
            if !stepped {
                break;
            }
        }
        let from = end.map_or(0, |end| usize::from(!end.is_sender()));
        let inbound = Inbound {
            from,
            to: 1 - from,
            end,
            path: 0,
            segment,
            token: Some(0),
            wire_len,
            ecn: Ecn::NotEct,
            flow_hash: 1,
            class: Class::default(),
        };
        assert!(self.world.inject(self.now, inbound));
    }

    /// Two segments, and the ACK of what has arrived.
    fn pass_segments(&mut self) {
        for _ in 0..2 {
            let payload = Payload { offset: 0, len: 1448 };
            let segment =
                Segment { source_port: 1, destination_port: 2, seq: self.sent, payload, ..Segment::default() };
            self.sent = self.sent.wrapping_add(1448);
            self.pass(Some(FlowId::new(0).sender()), Some(&segment), 1500);
        }
        let ack = self.acked;
        let segment = Segment { source_port: 2, destination_port: 1, ack, flags: Flags::ACK, ..Segment::default() };
        self.pass(Some(FlowId::new(0).receiver()), Some(&segment), 52);
    }
}

fn forward(c: &mut Criterion) {
    let mut group = c.benchmark_group("forward");
    let pfifo = || QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(1000) });
    let ms = Span::from_millis;
    for (name, rate, delay, queue) in [
        ("unlimited, no delay", None, Span::ZERO, pfifo()),
        ("unlimited, 1 ms", None, ms(1), pfifo()),
        ("10 Gbit/s, 1 ms, pie", Rate::from_bps(10_000_000_000), ms(1), QueueSpec::Pie(PieConfig::default())),
    ] {
        let bench =
            || Bench { world: World::new(&spec(rate, delay, queue.clone())), now: Time::ZERO, sent: 1, acked: 1 };
        group.throughput(Throughput::Elements(1));
        let mut of_no_flow = bench();
        group.bench_function(format!("{name}, of no flow"), |b| b.iter(|| of_no_flow.pass(None, None, 1500)));
        let mut watched = bench();
        group.throughput(Throughput::Elements(3));
        group.bench_function(format!("{name}, watched"), |b| b.iter(|| watched.pass_segments()));
    }
    group.finish();
}

criterion_group!(benches, forward);
criterion_main!(benches);
