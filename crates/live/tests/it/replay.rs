//! A live run that is recorded, and replayed: the queues decide the same, packet for packet. With
//! kernels and iperf3.

use std::fs;
use std::net::Ipv4Addr;
use std::path::{Path, PathBuf};
use std::process;

use ackclock_aqm::{FqCodelConfig, PieConfig};
use ackclock_cc::{BbrConfig, CubicConfig};
use ackclock_emulator::{Impairments, Loss};
use ackclock_live::{Options, Outcome, run};
use ackclock_sim::spec::{
    Application, CcSpec, Clock, CommandSpec, DirectionSpec, EndpointSpec, EndsSpec, FlowGroup, FlowSpec, HostSpec,
    LinkSpec, LiveSpec, NodeSpec, Overhead, PipeSpec, QueueSpec, RouterSpec, RunSpec, Ties,
};
use ackclock_sim::{DirectionId, QueueRecorder, Recorders};
use ackclock_tcp::profile::Profile;
use ackclock_testkit::can_go_live;
use ackclock_trace::{QueueCsv, Summary, TcpCsv};
use ackclock_units::{Rate, Span, Time};

/// A directory of its own, which is removed.
struct Scratch(PathBuf);

impl Scratch {
    fn new(name: &str) -> Scratch {
        let dir = std::env::temp_dir().join(format!("ackt-{name}-{}", process::id()));
        fs::create_dir_all(&dir).unwrap();
        Scratch(dir)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Two kernels and a host of ours, each pair with a way between them: PIE at `rate` one way,
/// fq_codel the other, and losses.
fn spec(name: &str, rate: u64, duration: Span, commands: &[(usize, u64, &str)]) -> RunSpec {
    let direction = |queue: QueueSpec| DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(rate),
        burst: None,
        device: None,
        delay: Span::from_millis(5),
        overhead: Overhead::default(),
        queue,
        impairments: Impairments { loss: Loss::Iid(0.002), jitter: Span::from_millis(1), ..Impairments::default() },
    };
    let link = |name: &str| LinkSpec {
        name: name.to_owned(),
        forward: direction(QueueSpec::Pie(PieConfig::default())),
        reverse: direction(QueueSpec::FqCodel(FqCodelConfig::default())),
        medium: None,
        is_interface: false,
    };
    let node = |host: &str, last: u8| {
        let unique = format!("ackt{}{host}", process::id());
        NodeSpec {
            name: host.to_owned(),
            tun: (host != "ours").then(|| format!("{unique}{}", name.len() % 10)),
            addresses: vec![(Ipv4Addr::new(10, 9, 0, last).into(), 24)],
            netns: (host != "ours").then(|| format!("ackt-{name}-{}-{host}", process::id())),
            mtu: 1500,
            ..Default::default()
        }
    };
    let router = RouterSpec { address: [192, 0, 0, 8].into(), address6: "fd00::8".parse().unwrap(), mtu: None };
    let pipe =
        |between: [usize; 2], link: usize| PipeSpec { between, path: vec![link], split: None, router: Some(router) };
    let command = |(number, &(node, at, run)): (usize, &(usize, u64, &str))| CommandSpec {
        id: format!("command{number}"),
        node,
        run: run.to_owned(),
        env: Vec::new(),
        at: Span::from_millis(at),
        until: None,
        measure: None,
        terminal: false,
    };
    RunSpec {
        title: name.to_owned(),
        duration,
        seed: 11,
        run: 0,
        ties: Ties::default(),
        links: vec![link("kernels"), link("left"), link("right")],
        flows: Vec::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("l", 1), node("r", 2), node("ours", 3)],
            pipes: vec![pipe([0, 1], 0), pipe([2, 0], 1), pipe([2, 1], 2)],
            commands: commands.iter().enumerate().map(command).collect(),
            scheduling: Default::default(),
            offload: true,
            lateness_limit: None,
            drain: false,
        })),
    }
}

fn flow(id: &str, nodes: [usize; 2], path: Vec<usize>, reverse: bool, ends: [HostSpec; 2], port: u16) -> FlowSpec {
    let [sender, receiver] = ends;
    FlowSpec {
        id: id.into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path,
            split: None,
            mptcp: None,
            reverse,
            sender,
            receiver,
            bytes: None,
            application: Application::Bulk,
            write_size: FlowSpec::WRITE_SIZE,
            dscp: 0,
            abort: None,
            schedule: Vec::new(),
        }
        .into(),
        start: Time::from_millis(500),
        stop: None,
        ends: Some(EndsSpec { nodes, port, source_port: None, check: false }),
        via: None,
    }
}

fn endpoint(cc: CcSpec) -> HostSpec {
    let profile = Profile::linux_6_1();
    HostSpec::Endpoint(EndpointSpec { profile: profile.name.to_owned(), config: profile.endpoint, cc })
}

/// The records and the outcome of a run.
struct Logs {
    queue: String,
    tcp: String,
    outcome: Outcome,
}

fn logged(spec: &RunSpec, options: &Options) -> Logs {
    let (mut queue, mut tcp) = (QueueCsv::new(Vec::new()), TcpCsv::new(Vec::new()));
    let directions: Vec<DirectionId> = DirectionId::all(spec.links.len()).collect();
    let recorders = Recorders {
        queues: Some(QueueRecorder { directions: &directions, sink: &mut queue }),
        tcp: Some(&mut tcp),
        ..Recorders::default()
    };
    let outcome = run(spec, recorders, options).unwrap();
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    Logs { queue: text(queue.finish().unwrap()), tcp: text(tcp.finish().unwrap()), outcome }
}

/// A summary without what is of the clock and of programs.
fn measures(outcome: &Outcome) -> serde_json::Value {
    let summary: Summary<()> = outcome.summary.clone();
    let mut value = serde_json::to_value(summary).unwrap();
    let members = value.as_object_mut().unwrap();
    ["clock", "live", "commands"].iter().for_each(|key| {
        members.remove(*key);
    });
    value
}

/// Compares two texts line by line.
fn same(one: &str, two: &str, what: &str) {
    let mut lines = one.lines().zip(two.lines()).enumerate();
    if let Some((number, (one, two))) = lines.find(|(_, (one, two))| one != two) {
        panic!("{what}, line {number}:\n{one}\n{two}");
    }
    assert_eq!(one.len(), two.len(), "{what}");
}

/// Runs it live with a capture, then the capture twice.
fn record_and_replay(name: &str, spec: &RunSpec) -> Logs {
    let scratch = Scratch::new(name);
    let capture = scratch.0.join("run.pcapng");
    let live = logged(spec, &Options { capture: Some(capture.clone()), ..Options::default() });
    assert!(live.outcome.broken_off.is_none(), "{:?}", live.outcome.broken_off);
    let summary = live.outcome.summary.live.as_ref().unwrap();
    for host in &summary.hosts {
        assert!(host.received_packets > 100, "{host:?}");
        assert_eq!(host.refused, 0);
    }
    for time in ["first", "second"] {
        let replay = logged(&replayed(spec, &capture), &Options::default());
        same(&live.queue, &replay.queue, &format!("{name}, queue.csv, {time} replay"));
        same(&live.tcp, &replay.tcp, &format!("{name}, tcp.csv, {time} replay"));
        let told = replay.outcome.summary.live.as_ref().unwrap();
        assert_eq!(told.invalid, [""; 0]);
        assert_eq!(measures(&live.outcome), measures(&replay.outcome));
        for (live, replay) in summary.hosts.iter().zip(&told.hosts) {
            assert_eq!(live.received_bytes, replay.received_bytes);
            assert_eq!(live.sent_bytes, replay.sent_bytes);
        }
    }
    live
}

fn replayed(spec: &RunSpec, capture: &Path) -> RunSpec {
    let mut spec = spec.clone();
    spec.live.as_mut().unwrap().clock = Clock::Replay(capture.to_owned());
    spec
}

fn rows(log: &str, link: &str, action: &str) -> usize {
    log.lines().filter(|line| line.contains(link) && line.contains(&format!(",{action},"))).count()
}

/// TCP and UDP of two kernels both ways, more than the links take.
#[test]
fn kernels() {
    if !can_go_live("replay of kernels", &["iperf3"]) {
        return;
    }
    let commands = [
        (1, 0, "iperf3 -s -p 5301"),
        (1, 0, "iperf3 -s -p 5302"),
        (0, 0, "iperf3 -s -p 5303"),
        (0, 400, "iperf3 -c 10.9.0.2 -p 5301 -t 3 -P 2 -C cubic"),
        (0, 400, "iperf3 -c 10.9.0.2 -p 5302 -t 3 -u -b 6M -l 700"),
        (1, 400, "iperf3 -c 10.9.0.1 -p 5303 -t 3 -P 3"),
    ];
    let mut spec = spec("kernels", 20_000_000, Span::from_secs(4), &commands);
    spec.flows = vec![flow("watched", [0, 1], vec![0], false, [HostSpec::Outside, HostSpec::Outside], 5301)];
    let live = record_and_replay("kernels", &spec);
    for link in ["kernels.forward", "kernels.reverse"] {
        assert!(rows(&live.queue, link, "dequeue") > 2000, "{link}");
        assert!(rows(&live.queue, link, "drop") > 0, "{link}");
    }
    // Packets were recorded after segments had been divided.
    let hosts = &live.outcome.summary.live.as_ref().unwrap().hosts;
    assert!(hosts.iter().all(|host| host.received_segments > 100), "{hosts:?}");
}

/// Endpoints of ours send to a kernel and receive from one.
#[test]
fn endpoints_and_kernels() {
    if !can_go_live("replay of endpoints and kernels", &["iperf3", "nc"]) {
        return;
    }
    let commands = [(0, 0, "nc -l 5401 > /dev/null"), (1, 700, "head -c 200000000 /dev/zero | nc 10.9.0.3 5402")];
    let mut spec = spec("endpoints", 30_000_000, Span::from_secs(4), &commands);
    spec.flows = vec![
        flow("out", [2, 0], vec![1], false, [endpoint(CcSpec::Cubic(CubicConfig::default())), HostSpec::Outside], 5401),
        flow("in", [1, 2], vec![2], true, [HostSpec::Outside, endpoint(CcSpec::Bbr(BbrConfig::default()))], 5402),
    ];
    let live = record_and_replay("endpoints", &spec);
    for flow in &live.outcome.summary.flows {
        assert!(flow.goodput_bps > 1e6, "{}: {}", flow.id, flow.goodput_bps);
    }
}

/// A file from one kernel to the other, with bit errors on the way, by segments and by packets.
#[test]
fn a_file_arrives_as_it_is_with_offload_and_without() {
    if !can_go_live("a file by segments", &["nc", "cmp"]) {
        return;
    }
    for offload in [true, false] {
        let scratch = Scratch::new(if offload { "segments" } else { "packets" });
        let path = |name: &str| scratch.0.join(name).display().to_string();
        let (sent, got) = (path("sent"), path("got"));
        let bytes: Vec<u8> = (0..20_000_000_u64).flat_map(|n| [(n >> 3) as u8, ((n * n) >> 11) as u8]).collect();
        fs::write(&sent, &bytes).unwrap();
        let receive = format!("nc -l 5501 > {got}; echo done >> {got}.done");
        let send = format!("nc -N 10.9.0.2 5501 < {sent}");
        let mut spec = spec("file", 1, Span::from_secs(20), &[(1, 0, &receive), (0, 400, &send)]);
        for link in &mut spec.links {
            link.forward.rate = None;
            link.reverse.rate = None;
            for direction in [&mut link.forward, &mut link.reverse] {
                direction.delay = Span::from_millis(1);
                direction.impairments = Impairments { corrupt: 0.0002, ..Impairments::default() };
            }
        }
        let live = spec.live.as_mut().unwrap();
        live.offload = offload;
        // It ends with the transfer.
        live.commands[0].terminal = true;
        let outcome = run(&spec, Recorders::default(), &Options::default()).unwrap();
        assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);
        assert_eq!(fs::read(format!("{got}.done")).unwrap(), b"done\n", "it did not end in time");
        assert!(fs::read(&got).unwrap() == bytes, "what arrived differs");
        let summary = outcome.summary;
        let hosts = summary.live.unwrap().hosts;
        let segments = [hosts[0].received_segments, hosts[1].sent_segments];
        assert_eq!(segments.map(|count| count > 100), [offload; 2], "{hosts:?}");
        assert!(summary.links[0].corrupted > 0, "{:?}", summary.links[0]);
    }
}
