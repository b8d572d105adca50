//! Once a run has warmed up, no packet, queue or ACK costs an allocation, and no row that is
//! recorded.

use std::net::{IpAddr, Ipv4Addr};
use std::ops::ControlFlow;

use ackclock_aqm::{CodelConfig, DualPi2Config, FifoConfig, FqCodelConfig, Limit, PieConfig};
use ackclock_cc::{
    BbrConfig, CdgConfig, ChdConfig, CubicConfig, DctcpConfig, EcnFeedback, HdConfig, HtcpConfig, HystartConfig,
    HystartPlusPlusConfig, LinuxCdgConfig, LinuxVegasConfig, NewRenoConfig, PragueConfig, SlowStartRules, VegasConfig,
    WestwoodConfig, WvegasConfig,
};
use ackclock_emulator::Impairments;
use ackclock_packet::{Class, Flags, Payload, Segment};
use ackclock_sim::spec::{
    Application, CcSpec, Clock, DirectionSpec, EndpointSpec, EndsSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec,
    LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RunSpec,
};
use ackclock_sim::{
    DirectionId, FlowId, Inbound, QlogPoint, QlogRecorder, QueueRecorder, Recorders, World, run_recorded,
};
use ackclock_tcp::{AccEcnOption, Config};
use ackclock_testkit::{CountingAllocator, allocations};
use ackclock_trace::{QlogRecord, QlogSeq, QlogSink, QueueCsv, TcpCsv, TcpSink};
use ackclock_units::{Ecn, Rate, Span, Time};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Two bulk flows of NewReno over 10 Mbit/s and 20 ms.
fn two_newreno(queue: QueueSpec) -> RunSpec {
    two_flows(&CcSpec::NewReno(NewRenoConfig::default()), &Config::default(), queue)
}

/// Two bulk flows over 10 Mbit/s and 20 ms.
fn two_flows(cc: &CcSpec, config: &Config, queue: QueueSpec) -> RunSpec {
    let direction = DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue,
        impairments: Impairments::default(),
    };
    let host = || {
        let (config, cc) = (config.clone(), cc.clone());
        HostSpec::Endpoint(EndpointSpec { profile: "rfc".to_owned(), config, cc })
    };
    let flow = |number| FlowSpec {
        id: format!("{}.{number}", cc.name()).into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path: vec![0],
            split: None,
            mptcp: None,
            reverse: false,
            sender: host(),
            receiver: host(),
            bytes: None,
            application: Application::Bulk,
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
    };
    RunSpec {
        title: String::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: None,
        duration: Span::from_secs(300),
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::Fixed,
        links: vec![LinkSpec {
            name: "bottleneck".to_owned(),
            forward: direction.clone(),
            reverse: direction,
            medium: None,
            is_interface: false,
        }],
        flows: (0..2).map(flow).collect(),
    }
}

/// The first `warm_up` seconds of a run may allocate; the 20 s after them may not.
///
/// A histogram of many values takes 1 kB when a power of two occurs for the first time, one of few
/// values half of that once. The drop-tail queues are short so that their slow
/// cycles show every value within the warm-up.
fn allocates_nothing_after_warm_up(name: &str, spec: &RunSpec, warm_up: u64) {
    let ends = [warm_up, warm_up + 20].map(Time::from_secs);
    let mut world = World::new(spec);
    let mut run_until = |end| {
        let mut steps = 0u64;
        while world.step(end).is_some() {
            steps += 1;
        }
        steps
    };
    let warm_up = allocations(|| assert!(run_until(ends[0]) > 10_000, "{name} stands still"));
    assert!(warm_up.count > 0, "the allocator counts");
    let steady = allocations(|| assert!(run_until(ends[1]) > 10_000, "{name} stands still"));
    assert_eq!(steady.count, 0, "{name}: {steady:?} after {warm_up:?}");
}

#[test]
fn a_run_allocates_nothing_after_warm_up() {
    for queue in [
        QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(50) }),
        QueueSpec::Bfifo(FifoConfig { limit: Limit::Bytes(75_000) }),
        QueueSpec::Codel(CodelConfig::default()),
        QueueSpec::Pie(PieConfig::default()),
        QueueSpec::FqCodel(FqCodelConfig::default()),
    ] {
        let name = queue.name();
        // Behind drop-tail a power of two occurs first between 20 and 40 s. The histogram of the
        // throughput, with two values in a second, has needed more than its first 16 cells by 80 s.
        allocates_nothing_after_warm_up(name, &two_newreno(queue), 100);
    }
}

/// Every controller with what it asks for: enhanced round-trip times, delivery rates, pacing,
/// filters, both ways to leave slow start; DCTCP and Prague with their marks.
#[test]
fn no_controller_costs_an_allocation() {
    let reno = |slow_start| NewRenoConfig { slow_start, ..NewRenoConfig::default() };
    for cc in [
        CcSpec::NewReno(reno(SlowStartRules::Hystart(HystartConfig::default()))),
        CcSpec::NewReno(reno(SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default()))),
        CcSpec::Cubic(CubicConfig::default()),
        CcSpec::Bbr(BbrConfig::default()),
        CcSpec::Cdg(CdgConfig::default()),
        CcSpec::LinuxCdg(LinuxCdgConfig::default()),
        CcSpec::Htcp(HtcpConfig::default()),
        CcSpec::Westwood(WestwoodConfig::default()),
        CcSpec::Hd(HdConfig::default()),
        CcSpec::Chd(ChdConfig::default()),
        CcSpec::Vegas(VegasConfig::default()),
        CcSpec::LinuxVegas(LinuxVegasConfig::default()),
        CcSpec::Lia(NewRenoConfig::default()),
        CcSpec::Olia(NewRenoConfig::default()),
        CcSpec::Balia(NewRenoConfig::default()),
        CcSpec::Wvegas(WvegasConfig::default()),
    ] {
        let queue = QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(20) });
        // Back-offs by chance and probes take their time to have shown every power of two, and the
        // most that is in flight.
        allocates_nothing_after_warm_up(cc.name(), &two_flows(&cc, &Config::default(), queue), 200);
    }
    for (cc, ecn) in [
        (CcSpec::Dctcp(DctcpConfig::default()), EcnFeedback::Dctcp),
        (CcSpec::Prague(PragueConfig::default()), EcnFeedback::Accurate),
    ] {
        for option in [AccEcnOption::Off, AccEcnOption::Full] {
            let mut config = Config { ecn, ..Config::default() };
            config.transfer.acc_ecn.option = option;
            let spec = two_flows(&cc, &config, QueueSpec::DualPi2(DualPi2Config::default()));
            allocates_nothing_after_warm_up(cc.name(), &spec, 100);
        }
    }
}

/// Packets of a flow between two kernels and of none, each with its bytes elsewhere.
#[test]
fn packets_from_outside_cost_no_allocation() {
    let mut spec = two_newreno(QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(50) }));
    spec.flows.truncate(1);
    let flow = &mut spec.flows[0];
    (flow.sender, flow.receiver) = (HostSpec::Outside, HostSpec::Outside);
    flow.ends = Some(EndsSpec { nodes: [0, 1], port: 5201, source_port: None, check: false });
    let node = |last: u8| NodeSpec {
        name: format!("host{last}"),
        tun: Some(format!("tun{last}")),
        addresses: vec![(IpAddr::V4(Ipv4Addr::new(10, 0, 0, last)), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    let pipe = PipeSpec { between: [0, 1], path: vec![0], split: None, router: None };
    spec.live = Some(Box::new(LiveSpec {
        clock: Clock::Real,
        nodes: vec![node(1), node(2)],
        pipes: vec![pipe],
        commands: Vec::new(),
        scheduling: Default::default(),
        offload: false,
        lateness_limit: None,
        drain: false,
    }));
    let mut world = World::new(&spec);
    let mut now = Time::ZERO;
    let mut sent = 0u32;
    let mut left = 0u64;
    let mut send = |packets: u32| {
        for _ in 0..packets {
            now += Span::from_micros(1150);
            let payload = Payload { offset: 0, len: 1448 };
            let seq = 1 + 1448 * sent;
            let segment = Segment { source_port: 1, destination_port: 2, seq, payload, ..Segment::default() };
            sent += 1;
            let end = Some(FlowId::new(0).sender());
            let raw = Inbound {
                path: 0,
                from: 1,
                to: 0,
                end: None,
                segment: None,
                token: Some(0),
                wire_len: 64,
                ecn: Ecn::NotEct,
                class: Class::default(),
                flow_hash: 7,
            };
            // First what is due, so that answers are in time.
            loop {
                let stepped = world.advance(now).is_some();
                while let Some(packet) = world.outbound() {
                    left += 1;
                    let segment = *world.segment(&packet);
                    world.release(packet);
                    if packet.end.is_some_and(|end| !end.is_sender()) {
                        let ack = Segment {
                            source_port: 2,
                            destination_port: 1,
                            ack: segment.seq + segment.payload.len,
                            flags: Flags::ACK,
                            ..Segment::default()
                        };
                        let end = Some(FlowId::new(0).receiver());
                        assert!(world.inject(packet.at, Inbound { end, segment: Some(&ack), wire_len: 52, ..raw }));
                    }
                }
                while world.freed().is_some() {}
                if !stepped {
                    break;
                }
            }
            assert!(world.inject(now, raw));
            let data = Inbound { from: 0, to: 1, end, segment: Some(&segment), wire_len: 1500, ..raw };
            assert!(world.inject(now, data));
        }
        std::mem::take(&mut left)
    };
    // The rate is just below what arrives.
    let warm_up = allocations(|| assert!(send(20_000) > 40_000));
    assert!(warm_up.count > 0, "the allocator counts");
    let steady = allocations(|| assert!(send(20_000) > 40_000));
    assert_eq!(steady.count, 0, "{steady:?} after {warm_up:?}");
    let flow = &world.summary().flows[0];
    assert!(flow.rtt_ms.samples > 35_000 && flow.progress.acked_bytes > 35_000 * 1448, "{flow:?}");
}

#[test]
fn rows_that_are_recorded_cost_no_allocation() {
    let mut spec = two_newreno(QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(50) }));
    let mut allocated = |seconds, directions: &[DirectionId], [tcp, qlog]: [bool; 2]| {
        spec.duration = Span::from_secs(seconds);
        let mut queue_csv = QueueCsv::new(std::io::sink());
        let mut tcp_csv = tcp.then(|| TcpCsv::new(std::io::sink()));
        let points = [QlogPoint::Flow(FlowId::new(0))];
        let mut log = Log(QlogSeq::new(std::io::sink(), "flow"));
        let mut run = || {
            let qlog = qlog.then_some(QlogRecorder { points: &points, sink: &mut log });
            let queues = Some(QueueRecorder { directions, sink: &mut queue_csv });
            let tcp = tcp_csv.as_mut().map(|csv| csv as &mut dyn TcpSink);
            run_recorded(&spec, Recorders { queues, tcp, qlog, ..Recorders::default() }, &mut |_| {
                ControlFlow::Continue(())
            })
            .expect("the run ends well");
        };
        allocations(&mut run).count
    };
    // What recording takes is taken once, however many rows there are: 60 s have some 200,000.
    let both = [DirectionId::forward(0), DirectionId::reverse(0)];
    for (directions, of) in [
        (&both[..1], [false, false]),
        (&both[..], [false, false]),
        (&[], [true, false]),
        (&[], [false, true]),
        (&both[..], [true, true]),
    ] {
        let [short, long] =
            [20, 60].map(|seconds| allocated(seconds, directions, of) - allocated(seconds, &[], [false, false]));
        assert_eq!(short, long, "{directions:?} {of:?}");
    }
}

/// A log of one sender.
#[derive(Debug)]
struct Log(QlogSeq<std::io::Sink>);

impl QlogSink for Log {
    fn record(&mut self, record: &QlogRecord) -> ControlFlow<()> {
        self.0.add(record.at, record.subflow, &record.event)
    }
}
