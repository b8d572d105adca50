use std::net::Ipv4Addr;

use ackclock_aqm::{CodelConfig, FifoConfig, Limit};
use ackclock_cc::*;
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_packet::codec::Addresses;
use ackclock_packet::{Flags, Payload, Segment};
use ackclock_sim::spec::*;
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{AdaptiveRules, LossDetector, NcrVariant, RrRules};
use ackclock_testkit::{CountingAllocator, allocations};
use ackclock_trace::Summary;
use ackclock_units::{Rate, Span};
use etherparse::{PacketBuilder, SlicedPacket, TransportSlice};
use proptest::prelude::*;

use super::*;
use crate::router::{IcmpProblem, Reporter};
use peers::{LEFT, PEER_PORT, Peer, RIGHT, Stock, Task, Twin};

mod connections;
mod foreign;
mod listening;
mod peers;
mod segments;
mod subflows;
mod varying;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

const PORT: u16 = 5201;

fn node(name: &str, address: [u8; 4], tun: bool) -> NodeSpec {
    NodeSpec {
        name: name.to_owned(),
        tun: tun.then(|| name.to_owned()),
        addresses: vec![(Ipv4Addr::from(address).into(), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    }
}

fn direction(impairments: Impairments) -> DirectionSpec {
    DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(50_000_000),
        delay: Span::from_millis(5),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(200) }),
        impairments,
    }
}

/// Left and right, behind devices or not, with a link between them.
fn spec(tuns: [bool; 2], impairments: Impairments) -> RunSpec {
    let one = direction(impairments);
    let router =
        RouterSpec { address: [192, 0, 0, 8].into(), address6: "fd00::8".parse().expect("an address"), mtu: None };
    RunSpec {
        title: String::new(),
        duration: Span::from_secs(600),
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::default(),
        links: vec![LinkSpec {
            name: "link".to_owned(),
            forward: one.clone(),
            reverse: one,
            medium: None,
            is_interface: false,
        }],
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("left", LEFT, tuns[0]), node("right", RIGHT, tuns[1])],
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0], split: None, router: Some(router) }],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

fn lossy() -> Impairments {
    Impairments {
        loss: Loss::Iid(0.01),
        reorder: Reorder::HoldBack(HoldBack { probability: 0.02, ..HoldBack::default() }),
        ..Impairments::default()
    }
}

fn endpoint(cc: CcSpec) -> EndpointSpec {
    let profile = Profile::linux_6_1();
    EndpointSpec { profile: profile.name.to_owned(), config: profile.endpoint, cc }
}

fn flow(sender: HostSpec, receiver: HostSpec, nodes: [usize; 2], bytes: Option<u64>) -> FlowSpec {
    FlowSpec {
        id: "flow.0".into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path: vec![0],
            split: None,
            mptcp: None,
            reverse: nodes[0] > nodes[1],
            sender,
            receiver,
            bytes,
            application: Default::default(),
            write_size: FlowSpec::WRITE_SIZE,
            dscp: 0,
            abort: None,
            schedule: Vec::new(),
        }
        .into(),
        start: Time::ZERO,
        stop: None,
        ends: Some(EndsSpec { nodes, port: PORT, source_port: None, check: true }),
        via: None,
    }
}

fn addresses(source: [u8; 4], destination: [u8; 4]) -> Addresses {
    Addresses { source, destination }
}

/// A packet that passed a device, when and which.
type Passed = (Time, usize, Vec<u8>);

/// The engine with hosts behind its devices, in virtual time.
struct EngineBench {
    engine: Engine,
    peers: Vec<Option<Box<dyn Peer>>>,
    now: Time,
    /// Everything that was handed over.
    log: Vec<Passed>,
    /// Everything that came from hosts, if that is taken down.
    recording: Option<Vec<Passed>>,
    /// Allocations of the engine.
    allocations: u64,
}

impl EngineBench {
    fn new(spec: &RunSpec, peers: Vec<Option<Box<dyn Peer>>>) -> EngineBench {
        EngineBench {
            engine: Engine::new(spec),
            peers,
            now: Time::ZERO,
            log: Vec::new(),
            recording: None,
            allocations: 0,
        }
    }

    fn send(&mut self, node: usize, packet: &[u8]) {
        if let Some(recording) = &mut self.recording {
            recording.push((self.now, node, packet.to_vec()));
        }
        let EngineBench { engine, now, allocations: count, .. } = self;
        let asked = allocations(|| {
            engine.buffer()[..packet.len()].copy_from_slice(packet);
            engine.arrive(*now, node, packet.len());
        });
        *count += asked.count;
    }

    /// Hands over what has been due until now, and sends what comes back.
    fn exchange(&mut self) {
        loop {
            loop {
                let mut out = None;
                let EngineBench { engine, now, .. } = self;
                self.allocations += allocations(|| out = engine.advance(*now)).count;
                let Some(out) = out else { break };
                assert!(out.at <= self.now);
                self.log.push((out.at, out.node, out.bytes.to_vec()));
                if let Some(peer) = &mut self.peers[out.node] {
                    peer.input(out.at, out.bytes);
                }
            }
            let now = self.now;
            let asked = self.peers.iter_mut().enumerate();
            let packets: Vec<(usize, Vec<u8>)> = asked
                .flat_map(|(node, peer)| {
                    peer.iter_mut().flat_map(move |peer| peer.output(now)).map(move |out| (node, out))
                })
                .collect();
            if packets.is_empty() {
                return;
            }
            packets.iter().for_each(|(node, packet)| self.send(*node, packet));
        }
    }

    fn run_until(&mut self, end: Time, mut done: impl FnMut(&mut EngineBench) -> bool) -> bool {
        loop {
            self.exchange();
            if done(self) {
                return true;
            }
            let now = self.now;
            let due = self.peers.iter_mut().flatten().map(|peer| peer.due(now)).min().unwrap_or(Time::NEVER);
            let next = due.min(self.engine.next_due());
            if next >= end {
                return false;
            }
            self.now = next.max(self.now);
        }
    }

    /// Buffers that hold something: the one to be read into at least.
    fn buffers_in_use(&mut self) -> usize {
        let claimed = self.engine.claim();
        self.engine.buffers.give_back(claimed);
        self.engine.buffers.in_use()
    }

    fn summary(&mut self) -> Summary<()> {
        self.engine.world().end_at(self.now);
        self.engine.complete(&mut Recorders::default()).expect("right data");
        self.engine.world().summary()
    }
}

fn controllers() -> Vec<CcSpec> {
    vec![
        CcSpec::NewReno(NewRenoConfig::default()),
        CcSpec::Cubic(CubicConfig::default()),
        CcSpec::Dctcp(DctcpConfig::default()),
        CcSpec::Prague(PragueConfig::default()),
        CcSpec::Cdg(CdgConfig::default()),
        CcSpec::LinuxCdg(LinuxCdgConfig::default()),
        CcSpec::Htcp(HtcpConfig::default()),
        CcSpec::Westwood(WestwoodConfig::default()),
        CcSpec::Bbr(BbrConfig::default()),
        CcSpec::Hd(HdConfig::default()),
        CcSpec::Chd(ChdConfig::default()),
        CcSpec::Vegas(VegasConfig::default()),
        CcSpec::Lia(NewRenoConfig::default()),
        CcSpec::Olia(NewRenoConfig::default()),
        CcSpec::Balia(NewRenoConfig::default()),
        CcSpec::Wvegas(WvegasConfig::default()),
    ]
}

fn detectors() -> Vec<LossDetector> {
    vec![
        LossDetector::Rfc6675,
        LossDetector::Linux(AdaptiveRules::default()),
        LossDetector::Ncr(NcrVariant::Careful),
        LossDetector::Ncr(NcrVariant::Aggressive),
        LossDetector::RrTcp(RrRules::default()),
        LossDetector::Rack,
    ]
}

fn twin(task: Task) -> Box<dyn Peer> {
    Box::new(Twin::new(Profile::linux_6_1().endpoint, addresses(RIGHT, LEFT), task))
}

fn stock(task: Task) -> Box<dyn Peer> {
    Box::new(Stock::new(RIGHT, LEFT, task))
}

/// Our endpoint, on the left, sends to the peer on the right.
fn sends(host: HostSpec, peer: Box<dyn Peer>, impairments: Impairments, bytes: u64) -> EngineBench {
    let mut spec = spec([false, true], impairments);
    spec.flows.push(flow(host, HostSpec::Outside, [0, 1], Some(bytes)));
    let mut bench = EngineBench::new(&spec, vec![None, Some(peer)]);
    let received = |bench: &mut EngineBench| bench.peers[1].as_ref().is_some_and(|peer| peer.received() == bytes);
    assert!(bench.run_until(Time::from_secs(300), received), "stopped at {:?}", bench.now);
    // The last acknowledgment is on its way.
    let arrived = bench.now + Span::from_secs(1);
    bench.run_until(arrived, |_| false);
    bench
}

/// The peer on the right sends to ours on the left.
fn receives(host: HostSpec, peer: Box<dyn Peer>, impairments: Impairments, bytes: u64) -> EngineBench {
    let mut spec = spec([false, true], impairments);
    spec.flows.push(flow(HostSpec::Outside, host, [1, 0], None));
    let mut bench = EngineBench::new(&spec, vec![None, Some(peer)]);
    let acked = |bench: &mut EngineBench| bench.peers[1].as_ref().is_some_and(|peer| peer.acked() == bytes);
    assert!(bench.run_until(Time::from_secs(300), acked), "stopped at {:?}", bench.now);
    assert_eq!(bench.engine.error(), None);
    bench
}

#[test]
fn every_controller_sends_to_a_peer_behind_a_device() {
    for cc in controllers() {
        let bytes = 600_000;
        let mut bench = sends(HostSpec::Endpoint(endpoint(cc)), twin(Task::Receive(PORT)), lossy(), bytes);
        let flow = &bench.summary().flows[0];
        assert!(flow.sent.retransmitted_packets > 0, "{}: no loss was repaired", flow.cc);
        assert_eq!(flow.progress.acked_bytes, bytes, "{}", flow.cc);
    }
}

#[test]
fn every_detector_sends_to_a_peer_behind_a_device() {
    for detector in detectors() {
        let mut host = endpoint(CcSpec::Cubic(CubicConfig::default()));
        host.config.loss_detector = detector;
        let mut bench = sends(HostSpec::Endpoint(host), twin(Task::Receive(PORT)), lossy(), 600_000);
        assert!(bench.summary().flows[0].sent.retransmitted_packets > 0, "{}", detector.name());
    }
}

#[test]
fn a_peer_behind_a_device_sends_to_ours() {
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    let mut bench = receives(host, twin(Task::Send(PORT, 600_000)), lossy(), 600_000);
    assert_eq!(bench.summary().flows[0].progress.delivered_bytes, 600_000);
}

#[test]
fn a_stock_interface_is_talked_to_both_ways() {
    let host = || HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    let loss = || Impairments { loss: Loss::Iid(0.01), ..Impairments::default() };
    sends(host(), stock(Task::Receive(PORT)), loss(), 300_000);
    let mut bench = receives(host(), stock(Task::Send(PORT, 300_000)), loss(), 300_000);
    assert_eq!(bench.summary().flows[0].progress.delivered_bytes, 300_000);
}

/// Bytes that differ from those sent reach a peer that verifies checksums, and ours are told.
#[test]
fn a_bit_error_is_found_by_its_receiver() {
    let host = || HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    let errors = || Impairments { corrupt: 0.02, duplicate: 0.02, ..Impairments::default() };
    let mut sent = sends(host(), stock(Task::Receive(PORT)), errors(), 300_000);
    let mut received = receives(host(), stock(Task::Send(PORT, 300_000)), errors(), 300_000);
    assert_eq!(received.summary().flows[0].progress.delivered_bytes, 300_000);
    for bench in [&mut sent, &mut received] {
        let summary = bench.summary();
        let corrupted: u64 = summary.links.iter().map(|link| link.corrupted).sum();
        assert!(corrupted > 0);
        assert_eq!(summary.flows[0].checksum_errors, corrupted);
    }
    // The other side is unknown; on ours, each needed retransmission has its culprit.
    let retransmissions = &sent.summary().flows[0].retransmissions;
    assert!(retransmissions.needed > 0);
    assert_eq!(retransmissions.by_queue["receiver"].get("checksum"), Some(&retransmissions.needed));
}

#[test]
fn a_stock_socket_of_ours_talks_to_a_peer() {
    let host = || HostSpec::Smoltcp(SmoltcpSpec::default());
    sends(host(), twin(Task::Receive(PORT)), Impairments::default(), 300_000);
    receives(host(), twin(Task::Send(PORT, 300_000)), Impairments::default(), 300_000);
}

/// The same arrivals give the same packets at the same times, also if the engine is called late.
#[test]
fn the_same_arrivals_give_the_same_packets() {
    let mut spec = spec([false, true], lossy());
    let host = HostSpec::Endpoint(endpoint(CcSpec::Cubic(CubicConfig::default())));
    spec.flows.push(flow(host, HostSpec::Outside, [0, 1], Some(300_000)));
    let mut bench = EngineBench::new(&spec, vec![None, Some(twin(Task::Receive(PORT)))]);
    bench.recording = Some(Vec::new());
    assert!(bench.run_until(Time::from_secs(60), |bench| {
        bench.peers[1].as_ref().is_some_and(|peer| peer.received() == 300_000)
    }));
    let arrivals = bench.recording.take().expect("it records");
    assert!(arrivals.len() > 50);
    for late in [false, true] {
        let mut again = EngineBench::new(&spec, vec![None, None]);
        for (at, node, packet) in &arrivals {
            again.now = *at;
            if !late {
                again.exchange();
            }
            again.send(*node, packet);
        }
        again.now = bench.now;
        again.exchange();
        assert_eq!(again.log.len(), bench.log.len(), "late: {late}");
        assert!(again.log == bench.log, "late: {late}");
    }
}

/// An ICMP echo request with `data`.
fn echo_request(source: [u8; 4], destination: [u8; 4], ttl: u8, data: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    PacketBuilder::ipv4(source, destination, ttl)
        .icmpv4_echo_request(7, 1)
        .write(&mut packet, data)
        .expect("a vector takes it");
    packet
}

fn datagram(source: [u8; 4], destination: [u8; 4], data: &[u8]) -> Vec<u8> {
    let mut packet = Vec::new();
    let builder = PacketBuilder::ipv4(source, destination, 64).udp(4000, 53);
    builder.write(&mut packet, data).expect("a vector takes it");
    packet
}

#[test]
fn a_second_connection_to_a_port_is_reset() {
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    let mut bench = receives(host, twin(Task::Send(PORT, 1000)), Impairments::default(), 1000);
    bench.log.clear();
    bench.peers[1] = None;
    let syn = Segment { source_port: 4000, destination_port: PORT, flags: Flags::SYN, ..Segment::default() };
    let mut packet = [0; 40];
    codec::emit(&syn, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
    bench.send(1, &packet);
    bench.now += Span::from_secs(1);
    bench.exchange();
    let reset = bench
        .log
        .iter()
        .filter_map(|(_, _, reply)| codec::parse(reply).ok())
        .find(|parsed| parsed.segment.destination_port == 4000);
    assert!(reset.is_some_and(|parsed| parsed.segment.flags == Flags::RST | Flags::ACK), "{:?}", bench.log);
}

#[test]
fn our_segments_fit_the_path() {
    let mut spec = spec([false, true], Impairments::default());
    spec.live.as_mut().expect("it is live").pipes[0].router.as_mut().expect("a router").mtu = Some(1000);
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    spec.flows.push(flow(host, HostSpec::Outside, [0, 1], Some(100_000)));
    let mut bench = EngineBench::new(&spec, vec![None, Some(twin(Task::Receive(PORT)))]);
    assert!(bench.run_until(Time::from_secs(10), |bench| {
        bench.peers[1].as_ref().is_some_and(|peer| peer.received() == 100_000)
    }));
    // Until the router has told, they were as long as our host's device takes.
    assert_eq!(bench.log.iter().map(|(_, _, bytes)| bytes.len()).max(), Some(1000));
    let summary = bench.engine.world().summary();
    let resent = &summary.flows[0].retransmissions;
    assert!(resent.by_queue.values().any(|reasons| reasons.contains_key("too_big")), "{resent:?}");
}

#[test]
fn an_icmp_error_from_outside_is_for_the_endpoint_that_it_quotes() {
    let mut spec = spec([false, true], Impairments::default());
    let mut host = endpoint(CcSpec::NewReno(NewRenoConfig::default()));
    host.config.path.advertise = true;
    spec.flows.push(flow(HostSpec::Endpoint(host), HostSpec::Outside, [0, 1], Some(100_000)));
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    let asked = |bench: &EngineBench| -> Vec<Option<u16>> {
        bench.log.iter().filter_map(|(_, _, bytes)| Some(codec::parse(bytes).ok()?.segment.mss)).collect()
    };
    assert!(bench.run_until(Time::from_millis(500), |bench| !bench.log.is_empty()));
    let syn = bench.log[0].2.clone();
    let header = Header::read(&syn).expect("a packet");
    let tell = |bench: &mut EngineBench, mtu, change: &dyn Fn(&mut [u8])| {
        let mut message = Vec::new();
        let mut reporter = Reporter::new(Some(RIGHT.into()), None);
        assert!(reporter.report(bench.now, IcmpProblem::TooBig(mtu), &header, &syn, &mut message));
        change(&mut message);
        bench.send(1, &message);
        bench.exchange();
    };
    // One with a wrong checksum, one that is about another connection, and one that is cut, say
    // nothing.
    tell(&mut bench, 500, &|message| message[22] ^= 1);
    tell(&mut bench, 500, &|message| {
        // The source port of the segment, and what makes the sum right again: the unused word of
        // the message.
        message[48] ^= 0x40;
        message[24] ^= 0x40;
        let sum = etherparse::checksum::Sum16BitWords::new();
        message[22..24].copy_from_slice(&[0, 0]);
        let checksum = sum.add_slice(&message[20..]).ones_complement();
        message[22..24].copy_from_slice(&checksum.to_ne_bytes());
    });
    tell(&mut bench, 600, &|_| {});
    bench.run_until(Time::from_millis(2500), |_| false);
    // The SYN is sent again after a second, and asks for 600 bytes less 40.
    assert_eq!(asked(&bench), [Some(1460), Some(560)]);
    // Errors about no connection are counted, and so are messages with a wrong checksum.
    assert_eq!(bench.engine.hosts().next().map(|host| host.discarded), Some(2));
}

#[test]
fn wrong_data_ends_the_run() {
    let mut spec = spec([false, true], Impairments::default());
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    spec.flows.push(flow(HostSpec::Outside, host, [1, 0], None));
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    let segment = |seq, flags, len| Segment {
        source_port: PEER_PORT,
        destination_port: PORT,
        seq,
        flags,
        payload: Payload { offset: 0, len },
        ..Segment::default()
    };
    for (seq, flags, len, wrong) in
        [(u32::MAX, Flags::SYN, 0, None), (0, Flags::ACK, 100, None), (100, Flags::ACK, 100, Some(120))]
    {
        let segment = segment(seq, flags, len);
        let mut packet = vec![0; segment.wire_len() as usize];
        let segment = Segment { payload: Payload { offset: seq.wrapping_add(0).min(100).into(), len }, ..segment };
        codec::emit(&segment, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
        if let Some(offset) = wrong {
            // Two bits of one column of the checksum's words, so that the sum stays right.
            let at = 40 + offset - 100;
            let (first, second) = (packet[at], packet[at + 2]);
            let bit =
                (0..8).map(|bit| 1 << bit).find(|bit| (first & bit == 0) != (second & bit == 0)).expect("they differ");
            packet[at] ^= bit;
            packet[at + 2] ^= bit;
        }
        bench.send(1, &packet);
        bench.exchange();
    }
    let wrong = RunError::Integrity { flow: "flow.0".to_owned(), offset: 120 };
    assert_eq!(bench.engine.error(), Some(&wrong));
    bench.engine.world().end_at(bench.now);
    assert_eq!(bench.engine.complete(&mut Recorders::default()), Err(wrong));
}

#[test]
fn a_wrong_checksum_is_counted_and_the_segment_lost() {
    let mut spec = spec([false, true], Impairments::default());
    let host = HostSpec::Endpoint(endpoint(CcSpec::NewReno(NewRenoConfig::default())));
    spec.flows.push(flow(HostSpec::Outside, host, [1, 0], None));
    let mut bench = EngineBench::new(&spec, vec![None, None]);
    let syn = Segment { source_port: PEER_PORT, destination_port: PORT, flags: Flags::SYN, ..Segment::default() };
    let mut packet = [0; 40];
    codec::emit(&syn, addresses(RIGHT, LEFT), Ecn::NotEct, &mut packet).expect("there is room");
    bench.send(1, &packet);
    packet[35] ^= 1;
    bench.send(1, &packet);
    bench.now = Time::from_millis(20);
    bench.exchange();
    // The answer to the first.
    assert_eq!(bench.log.len(), 1);
    assert_eq!(bench.engine.hosts().map(|host| host.bad_checksums).collect::<Vec<_>>(), [1]);
}

/// Two kernels and two of our endpoints, one in each direction: what a packet costs is in place
/// after a while.
#[test]
fn packets_allocate_nothing_after_a_warm_up() {
    let mut spec = spec([false, true], Impairments::default());
    let mut host = endpoint(CcSpec::Cubic(CubicConfig::default()));
    host.config.send_buffer = 100_000;
    spec.flows.push(flow(HostSpec::Endpoint(host), HostSpec::Outside, [0, 1], None));
    let mut third = node("third", [10, 0, 0, 3], true);
    third.mtu = 1000;
    let live = spec.live.as_mut().expect("it is live");
    live.nodes.push(third);
    live.pipes.push(PipeSpec { between: [1, 2], ..live.pipes[0].clone() });
    let mut bench = EngineBench::new(&spec, vec![None, Some(twin(Task::Receive(PORT))), None]);
    let mut big = datagram(RIGHT, [10, 0, 0, 3], &[1; 1400]);
    big[6] = 0;
    let mut header = etherparse::Ipv4Header::from_slice(&big).expect("a header").0;
    header.header_checksum = header.calc_header_checksum();
    big[..20].copy_from_slice(&header.to_bytes());
    let work = |bench: &mut EngineBench, seconds: u64| {
        for _ in 0..seconds * 200 {
            // In pieces, answered by a router, by a host of ours, and as it is.
            bench.send(1, &big);
            bench.send(1, &echo_request(RIGHT, [10, 0, 0, 3], 1, &[3; 56]));
            bench.send(1, &echo_request(RIGHT, LEFT, 64, &[3; 56]));
            bench.send(1, &datagram(RIGHT, LEFT, &[]));
            bench.send(2, &datagram([10, 0, 0, 3], RIGHT, &[1; 900]));
            let until = bench.now + Span::from_millis(5);
            bench.run_until(until, |_| false);
            bench.now = until;
        }
        bench.log.clear();
        std::mem::take(&mut bench.allocations)
    };
    // Histograms take memory for ranges as these occur, that of the throughput twice a second.
    assert!(work(&mut bench, 45) > 0);
    assert_eq!(work(&mut bench, 10), 0);
    assert!(bench.peers[1].as_ref().is_some_and(|peer| peer.received() > 10_000_000));
}
