//! Live runs that do not come to their end: what is said, what is kept, and that nothing remains on
//! the machine.

#![cfg(all(feature = "devices", target_os = "linux"))]

use std::net::Ipv4Addr;
use std::ops::ControlFlow;
use std::path::Path;
use std::process;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_emulator::Impairments;
use ackclock_live::{LiveError, Options, Outcome, run};
use ackclock_sim::spec::{
    Clock, CommandSpec, DirectionSpec, LinkSpec, LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RouterSpec,
    RunSpec, Ties,
};
use ackclock_sim::{DirectionId, QueueRecorder, Recorders, RunError};
use ackclock_testkit::can_go_live;
use ackclock_trace::{QueueRecord, QueueSink};
use ackclock_units::{Rate, Span};
use nix::errno::Errno;

/// A sink that takes this many rows.
#[derive(Debug)]
struct Full(u64);

impl QueueSink for Full {
    fn record(&mut self, _: &QueueRecord<'_>) -> ControlFlow<()> {
        match self.0.checked_sub(1) {
            Some(left) => {
                self.0 = left;
                ControlFlow::Continue(())
            }
            None => ControlFlow::Break(()),
        }
    }
}

/// The name of the device of the left host, and of its namespace.
fn names(test: &str, host: &str) -> (String, String) {
    let id = process::id();
    (format!("ackt{host}{id}"), format!("ackt-{test}-{host}-{id}"))
}

const PING: &str = "ping -n -i 0.005 -s 1400 10.8.0.2";

/// Two kernels, 5 ms apart, that would run for an hour; after 200 ms the left one sends pings, and
/// after 600 ms and another 40 answers `breaks` runs there.
fn spec(test: &str, breaks: Option<String>) -> RunSpec {
    let direction = DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(5),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(100) }),
        impairments: Impairments::default(),
    };
    let node = |(host, last): (&str, u8)| {
        let (tun, netns) = names(test, host);
        NodeSpec {
            name: host.to_owned(),
            tun: Some(tun),
            addresses: vec![(Ipv4Addr::new(10, 8, 0, last).into(), 24)],
            netns: Some(netns),
            mtu: 1500,
            ..Default::default()
        }
    };
    let command = |id: &str, at, run: String| CommandSpec {
        id: id.to_owned(),
        node: 0,
        run,
        env: Vec::new(),
        at: Span::from_millis(at),
        until: None,
        measure: None,
        terminal: false,
    };
    let ping = command("ping", 200, PING.to_owned());
    let breaks = breaks.map(|run| command("breaks", 600, format!("{PING} -c 40 && {run}")));
    let router = RouterSpec { address: [192, 0, 0, 8].into(), address6: "fd00::8".parse().unwrap(), mtu: None };
    RunSpec {
        title: test.to_owned(),
        duration: Span::from_secs(3600),
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
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: [("l", 1), ("r", 2)].map(node).into(),
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0], split: None, router: Some(router) }],
            commands: [Some(ping), breaks].into_iter().flatten().collect(),
            scheduling: Default::default(),
            offload: true,
            lateness_limit: None,
            drain: true,
        })),
    }
}

/// Measurements up to the failure are kept, and neither namespace remains.
fn assert_kept(test: &str, outcome: &Outcome) {
    let summary = &outcome.summary;
    assert!(summary.partial);
    let live = summary.live.as_ref().unwrap();
    assert!(live.hosts.iter().all(|host| host.received_packets > 20 && host.sent_packets > 20), "{:?}", live.hosts);
    assert!(summary.links.iter().all(|link| link.packets.dequeued > 20), "{:?}", summary.links);
    assert!(live.lateness_ms.samples > 40, "{:?}", live.lateness_ms);
    assert_eq!(summary.commands[0].started_s.map(|at| at >= 0.2), Some(true));
    for host in ["l", "r"] {
        let (_, netns) = names(test, host);
        assert!(!Path::new("/run/netns").join(&netns).exists(), "{netns} is still there");
    }
}

fn unrecorded(spec: &RunSpec) -> Outcome {
    run(spec, Recorders::default(), &Options::default()).unwrap()
}

#[test]
fn somebody_deletes_a_device() {
    if !can_go_live("somebody_deletes_a_device", &["ip", "ping"]) {
        return;
    }
    let (device, _) = names("deleted", "l");
    let outcome = unrecorded(&spec("deleted", Some(format!("ip link del {device}"))));
    let Some(LiveError::Device { host, tun, .. }) = &outcome.broken_off else { panic!("{:?}", outcome.broken_off) };
    assert_eq!((host.as_str(), tun), ("l", &device));
    assert_kept("deleted", &outcome);
}

#[test]
fn somebody_takes_a_device_down() {
    if !can_go_live("somebody_takes_a_device_down", &["ip", "ping"]) {
        return;
    }
    let (device, _) = names("down", "l");
    let outcome = unrecorded(&spec("down", Some(format!("ip link set {device} down"))));
    // Answers to pings that had left before may be on their way to it.
    let Some(LiveError::Device { host, tun, .. }) = &outcome.broken_off else { panic!("{:?}", outcome.broken_off) };
    assert_eq!((host.as_str(), tun), ("l", &device));
    assert_kept("down", &outcome);
}

#[test]
fn somebody_takes_a_device_down_to_which_nothing_is_on_its_way() {
    if !can_go_live("somebody_takes_a_device_down_to_which_nothing_is_on_its_way", &["ip", "ping"]) {
        return;
    }
    let (device, _) = names("quiet", "l");
    let mut spec = spec("quiet", None);
    spec.duration = Span::from_secs(20);
    // `ping` waits for the answer to the last one.
    let command = &mut spec.live.as_mut().unwrap().commands[0];
    command.run = format!("{PING} -c 60 && ip link set {device} down");
    let outcome = unrecorded(&spec);
    let Some(LiveError::Device { host, tun, source }) = &outcome.broken_off else { panic!("{:?}", outcome.broken_off) };
    assert_eq!((host.as_str(), tun), ("l", &device));
    assert_eq!(source.raw_os_error(), Some(Errno::ENETDOWN as i32));
    assert_kept("quiet", &outcome);
}

#[test]
fn the_disk_of_the_capture_is_full() {
    if !can_go_live("the_disk_of_the_capture_is_full", &["ping"]) {
        return;
    }
    let options = Options { capture: Some("/dev/full".into()), ..Options::default() };
    let outcome = run(&spec("full", None), Recorders::default(), &options).unwrap();
    let Some(LiveError::File { path, .. }) = &outcome.broken_off else { panic!("{:?}", outcome.broken_off) };
    assert_eq!(path, Path::new("/dev/full"));
    assert_kept("full", &outcome);
}

#[test]
fn a_record_cannot_be_written() {
    if !can_go_live("a_record_cannot_be_written", &["ping"]) {
        return;
    }
    let mut sink = Full(500);
    let recorders = Recorders {
        queues: Some(QueueRecorder {
            directions: &[DirectionId::forward(0), DirectionId::reverse(0)],
            sink: &mut sink,
        }),
        ..Recorders::default()
    };
    let outcome = run(&spec("record", None), recorders, &Options::default()).unwrap();
    assert!(matches!(outcome.broken_off, Some(LiveError::Run(RunError::Interrupted))), "{:?}", outcome.broken_off);
    assert_kept("record", &outcome);
}
