//! The same arrivals give the same decisions: however late the engine is called, and from a
//! capture.

use std::fs;
use std::net::Ipv4Addr;
use std::path::PathBuf;
use std::process;

use ackclock_aqm::{FqCodelConfig, PieConfig};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_sim::spec::{
    Clock, DirectionSpec, LinkSpec, LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RouterSpec,
};
use ackclock_sim::{DirectionId, QueueRecorder};
use ackclock_trace::QueueCsv;
use ackclock_units::Rate;
use etherparse::PacketBuilder;
use proptest::prelude::*;

use super::*;
use crate::capture::CaptureWriter;

mod changes;

const LEFT: [u8; 4] = [10, 0, 0, 1];
const RIGHT: [u8; 4] = [10, 0, 0, 2];

/// A packet: when, from which host, its bytes.
type Arrival = (Time, usize, Vec<u8>);

/// A packet to a host: when, which, its bytes.
type Sent = (Time, usize, Vec<u8>);

/// Two hosts; a router; PIE at 10 Mbit/s one way and fq_codel the other; loss, reordering, doubled
/// packets, jitter; then a link that takes no time at all.
fn spec() -> RunSpec {
    let node = |name: &str, address: [u8; 4]| NodeSpec {
        name: name.to_owned(),
        tun: Some(format!("{name}0")),
        addresses: vec![(Ipv4Addr::from(address).into(), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    let direction = |queue: QueueSpec| DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(10_000_000),
        burst: None,
        device: None,
        delay: Span::from_millis(5),
        overhead: Overhead::default(),
        queue,
        impairments: Impairments {
            loss: Loss::Iid(0.01),
            duplicate: 0.01,
            corrupt: 0.01,
            jitter: Span::from_millis(2),
            reorder: Reorder::HoldBack(HoldBack { probability: 0.02, ..HoldBack::default() }),
            ..Impairments::default()
        },
    };
    let narrow = LinkSpec {
        name: "narrow".to_owned(),
        forward: direction(QueueSpec::Pie(PieConfig::default())),
        reverse: direction(QueueSpec::FqCodel(FqCodelConfig::default())),
        medium: None,
        is_interface: false,
    };
    let wire = DirectionSpec {
        rate: None,
        delay: Span::ZERO,
        impairments: Impairments::default(),
        ..direction(QueueSpec::Pie(PieConfig::default()))
    };
    let wire =
        LinkSpec { name: "wire".to_owned(), forward: wire.clone(), reverse: wire, medium: None, is_interface: false };
    let router = RouterSpec { address: [192, 0, 0, 8].into(), address6: "fd00::8".parse().unwrap(), mtu: None };
    RunSpec {
        title: "Replay".to_owned(),
        duration: Span::from_secs(2),
        seed: 3,
        run: 0,
        ties: ackclock_sim::spec::Ties::default(),
        links: vec![narrow, wire],
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("left", LEFT), node("right", RIGHT)],
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0, 1], split: None, router: Some(router) }],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

fn packet(from: usize, port: u16, ttl: u8, payload: usize) -> Vec<u8> {
    let [source, destination] = if from == 0 { [LEFT, RIGHT] } else { [RIGHT, LEFT] };
    let mut bytes = Vec::new();
    PacketBuilder::ipv4(source, destination, ttl).udp(port, 9).write(&mut bytes, &vec![7; payload]).unwrap();
    bytes
}

/// Bursts of packets of several flows, at times that often are those at which others are due: 1250
/// bytes take 1 ms at 10 Mbit/s.
fn arrivals(count: usize, seed: u64) -> Vec<Arrival> {
    let mut state = seed | 1;
    let mut draw = |most: u64| {
        // Knuth's MMIX generator.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) % most
    };
    let mut at = Time::ZERO;
    (0..count)
        .map(|_| {
            at += [
                Span::ZERO,
                Span::ZERO,
                Span::from_micros(100),
                Span::from_millis(1),
                Span::from_nanos(1 + draw(900_000)),
            ][draw(5) as usize];
            let from = draw(2) as usize;
            // A hop limit of 1 ends at the router, which says so.
            let ttl = if draw(20) == 0 { 1 } else { 64 };
            let payload = if draw(2) == 0 { 1250 - 28 } else { draw(1400) as usize };
            (at, from, packet(from, draw(5) as u16, ttl, payload))
        })
        .collect()
}

/// When the engine is called beside arrivals.
#[derive(Clone, Copy, Debug)]
enum Polls {
    /// Whenever something is due.
    Exact,
    /// Behind every n-th arrival.
    Late(usize),
    /// At the end alone.
    Never,
}

/// The queues' decisions, and what was sent.
fn run_engine(spec: &RunSpec, arrivals: &[Arrival], polls: Polls) -> (String, Vec<Sent>) {
    let mut csv = QueueCsv::new(Vec::new());
    let mut recorders = Recorders {
        queues: Some(QueueRecorder { directions: &DirectionId::all(2).collect::<Vec<_>>(), sink: &mut csv }),
        ..Recorders::default()
    };
    let mut engine = Engine::new(spec);
    engine.world().start(&recorders);
    let mut sent = Vec::new();
    let end = Time::ZERO + spec.duration;
    let mut advance = |engine: &mut Engine, now: Time| {
        while let Some(out) = engine.advance(now) {
            assert!(out.at <= now);
            sent.push((out.at, out.node, out.bytes.to_vec()));
        }
    };
    for (count, (at, from, bytes)) in arrivals.iter().enumerate() {
        match polls {
            Polls::Exact => loop {
                let due = engine.next_due().min(*at);
                advance(&mut engine, due);
                engine.world().keep_up(due, &mut recorders).unwrap();
                if due == *at {
                    break;
                }
            },
            Polls::Late(every) if count % every == 0 => {
                advance(&mut engine, *at);
                engine.world().keep_up(*at, &mut recorders).unwrap();
            }
            _ => {}
        }
        engine.buffer()[..bytes.len()].copy_from_slice(bytes);
        engine.arrive(*at, *from, bytes.len());
    }
    advance(&mut engine, Time::from_nanos(end.as_nanos() - 1));
    engine.complete(&mut recorders).unwrap();
    (String::from_utf8(csv.finish().unwrap()).unwrap(), sent)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn late_calls_change_no_decision(
        seed in any::<u64>(),
        count in 1..1500usize,
        every in 1..40usize,
        path in prop::sample::select(vec![vec![0, 1], vec![1]]),
    ) {
        let (mut spec, arrivals) = (spec(), arrivals(count, seed));
        spec.live.as_mut().unwrap().pipes[0].path = path;
        let (log, sent) = run_engine(&spec, &arrivals, Polls::Exact);
        for polls in [Polls::Late(every), Polls::Never] {
            let (late_log, late_sent) = run_engine(&spec, &arrivals, polls);
            prop_assert!(log == late_log, "{polls:?}");
            prop_assert!(sent == late_sent, "{polls:?}");
        }
    }
}

/// A capture in a directory that is removed.
struct TemporaryCapture(PathBuf);

impl TemporaryCapture {
    /// The recording of a live run that is sometimes called late.
    fn new(name: &str, spec: &RunSpec, arrivals: &[Arrival], end: Time) -> TemporaryCapture {
        TemporaryCapture::cut(name, spec, arrivals, end, None)
    }

    /// The same of the first `snap` bytes of each packet.
    fn cut(name: &str, spec: &RunSpec, arrivals: &[Arrival], end: Time, snap: Option<u32>) -> TemporaryCapture {
        let dir = std::env::temp_dir().join(format!("ackt-replay-{name}-{}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        let mut writer = CaptureWriter::create(&dir.join("run.pcapng"), spec, snap).unwrap();
        let mut engine = Engine::new(spec);
        let hand_over = |engine: &mut Engine, writer: &mut CaptureWriter, until: Time| {
            while let Some(out) = engine.advance(until) {
                writer.packet(out.at, out.node, CaptureDirection::ToHost, out.bytes);
            }
        };
        for (count, (at, from, bytes)) in arrivals.iter().filter(|(at, ..)| *at < end).enumerate() {
            if count % 7 == 0 {
                hand_over(&mut engine, &mut writer, *at);
            }
            writer.packet(*at, *from, CaptureDirection::FromHost, bytes);
            engine.buffer()[..bytes.len()].copy_from_slice(bytes);
            engine.arrive(*at, *from, bytes.len());
        }
        // Work that is due at the very end of a run is not done, unless the run was interrupted
        // then.
        let last = if end < Time::ZERO + spec.duration { end } else { Time::from_nanos(end.as_nanos() - 1) };
        hand_over(&mut engine, &mut writer, last);
        writer.finish(end).unwrap();
        TemporaryCapture(dir)
    }

    fn path(&self) -> PathBuf {
        self.0.join("run.pcapng")
    }

    fn replay(&self, spec: &RunSpec) -> (String, Outcome) {
        let mut csv = QueueCsv::new(Vec::new());
        let recorders = Recorders {
            queues: Some(QueueRecorder { directions: &DirectionId::all(2).collect::<Vec<_>>(), sink: &mut csv }),
            ..Recorders::default()
        };
        let outcome = run(spec, recorders, &self.path(), None).unwrap();
        (String::from_utf8(csv.finish().unwrap()).unwrap(), outcome)
    }
}

impl Drop for TemporaryCapture {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn live(outcome: &Outcome) -> &LiveSummary {
    outcome.summary.live.as_ref().unwrap()
}

#[test]
fn a_replay_decides_as_the_recorded_run_did() {
    let (spec, arrivals) = (spec(), arrivals(3000, 5));
    let end = Time::ZERO + spec.duration;
    assert!(arrivals.last().unwrap().0 < end);
    let (log, sent) = run_engine(&spec, &arrivals, Polls::Exact);
    assert!(["drop", "dequeue"].iter().all(|action| log.contains(action)));
    let recording = TemporaryCapture::new("same", &spec, &arrivals, end);
    for _ in 0..2 {
        let (replayed, outcome) = recording.replay(&spec);
        assert!(replayed == log);
        assert!(outcome.broken_off.is_none() && !outcome.summary.partial);
        let live = live(&outcome);
        assert_eq!(live.invalid, [""; 0]);
        assert!(live.valid);
        // Each of them once.
        assert_eq!(live.compared_packets, Some(sent.len() as u64));
        assert_eq!(live.hosts.iter().map(|host| host.received_packets).sum::<u64>(), arrivals.len() as u64);
        assert_eq!(live.hosts.iter().map(|host| host.sent_packets).sum::<u64>(), sent.len() as u64);
    }
}

#[test]
fn the_beginnings_of_packets_suffice_between_kernels() {
    // The router quotes the packets that it discards.
    let (spec, mut arrivals) = (spec(), arrivals(3000, 10));
    arrivals.retain(|(_, _, bytes)| bytes[8] > 1);
    let end = Time::ZERO + spec.duration;
    let (log, sent) = run_engine(&spec, &arrivals, Polls::Exact);
    let recording = TemporaryCapture::cut("snap", &spec, &arrivals, end, Some(128));
    let (replayed, outcome) = recording.replay(&spec);
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
    assert!(replayed == log);
    assert_eq!(live(&outcome).invalid, [""; 0]);
    assert_eq!(live(&outcome).compared_packets, Some(sent.len() as u64));
    let size = |recording: &TemporaryCapture| fs::metadata(recording.path()).unwrap().len();
    assert!(3 * size(&recording) < size(&TemporaryCapture::new("whole", &spec, &arrivals, end)));
}

#[test]
fn a_packet_of_which_more_is_needed_ends_the_replay() {
    let at = Time::from_millis(1);
    let error = |spec: &RunSpec, bytes: Vec<u8>| {
        let recording = TemporaryCapture::cut("lacks", spec, &[(at, 0, bytes)], Time::from_millis(2), Some(128));
        recording.replay(spec).1.broken_off.map(|error| error.to_string())
    };
    let (whole, len) = (spec(), 28 + 1000);
    assert_eq!(error(&whole, packet(0, 1, 64, 1000)), None);
    // All of it is there; no other packet has a way.
    assert!(!error(&whole, packet(0, 1, 1, 100)).unwrap().contains("captured"));
    let expected = |error: Option<String>| {
        let error = error.expect("it ends");
        let part = format!("128 of {len} bytes of the packet at 0.001 s were captured, and all of them are needed");
        assert!(error.contains(&part), "{error}");
    };
    // The router says that it went too far.
    expected(error(&whole, packet(0, 1, 1, 1000)));
    // It cuts it into pieces.
    let mut narrow = spec();
    narrow.live.as_mut().unwrap().pipes[0].router.as_mut().unwrap().mtu = Some(500);
    let mut divisible = packet(0, 1, 64, 1000);
    divisible[6] &= !0x40;
    set_checksum(&mut divisible[..20]);
    expected(error(&narrow, divisible));
    // It is for a host in this process.
    let mut ours = spec();
    ours.live.as_mut().unwrap().nodes[1].tun = None;
    expected(error(&ours, packet(0, 1, 64, 1000)));
}

#[test]
fn a_run_that_was_broken_off_is_replayed_as_far() {
    let (spec, arrivals) = (spec(), arrivals(3000, 6));
    let end = Time::from_millis(300);
    let recording = TemporaryCapture::new("broken", &spec, &arrivals, end);
    let (_, outcome) = recording.replay(&spec);
    assert_eq!(live(&outcome).invalid, [""; 0]);
    assert!(outcome.summary.partial);
    let received: u64 = live(&outcome).hosts.iter().map(|host| host.received_packets).sum();
    assert_eq!(received, arrivals.iter().filter(|(at, ..)| *at < end).count() as u64);
}

#[test]
fn a_replay_that_goes_another_way_says_so() {
    let (spec, arrivals) = (spec(), arrivals(3000, 7));
    let end = Time::ZERO + spec.duration;
    // Recorded with another seed, and said to be with this one.
    let recording = TemporaryCapture::new("other", &spec, &arrivals, end);
    let mut file = fs::read(recording.path()).unwrap();
    let other = RunSpec { seed: 4, ..spec.clone() };
    let [from, to] = [&spec, &other].map(|spec| format!("scenario {:016x}", fingerprint(spec)));
    let at = file.windows(from.len()).position(|bytes| bytes == from.as_bytes()).unwrap();
    file[at..at + to.len()].copy_from_slice(to.as_bytes());
    fs::write(recording.path(), file).unwrap();
    let (_, outcome) = recording.replay(&other);
    let live = live(&outcome);
    assert!(!live.valid);
    assert!(live.invalid[0].contains("differs from what the recorded run sent"), "{:?}", live.invalid);
}

#[test]
fn another_scenario_takes_the_same_arrivals() {
    let (spec, arrivals) = (spec(), arrivals(3000, 8));
    let end = Time::ZERO + spec.duration;
    let recording = TemporaryCapture::new("changed", &spec, &arrivals, end);
    let mut other = spec.clone();
    other.links[0].forward.rate = Rate::from_bps(5_000_000);
    let (log, outcome) = recording.replay(&other);
    assert!(live(&outcome).valid);
    assert_eq!(live(&outcome).compared_packets, Some(0));
    assert!(log == run_engine(&other, &arrivals, Polls::Never).0);
}

#[test]
fn a_cut_capture_breaks_the_replay_off() {
    let (spec, arrivals) = (spec(), arrivals(3000, 9));
    let recording = TemporaryCapture::new("cut", &spec, &arrivals, Time::ZERO + spec.duration);
    let file = fs::read(recording.path()).unwrap();
    fs::write(recording.path(), &file[..file.len() / 2]).unwrap();
    let (_, outcome) = recording.replay(&spec);
    assert!(outcome.summary.partial);
    let error = outcome.broken_off.unwrap().to_string();
    assert!(error.contains("it was cut"), "{error}");
}

#[test]
fn packets_that_no_host_sends_are_refused() {
    let mut spec = spec();
    let recording =
        TemporaryCapture::new("long", &spec, &[(Time::ZERO, 0, packet(0, 1, 64, 1400))], Time::from_millis(1));
    spec.live.as_mut().unwrap().nodes.iter_mut().for_each(|node| node.mtu = 1000);
    let (_, outcome) = recording.replay(&spec);
    let error = outcome.broken_off.unwrap().to_string();
    assert!(error.contains("has 1428 bytes, and hosts of the scenario send up to 1000"), "{error}");
}
