//! Our endpoints and the kernel of this machine: data both ways through loss and reordering, every
//! byte compared, by every controller and every detector, and what the two agree on.

#![cfg(all(feature = "devices", target_os = "linux"))]

use std::fs::File;
use std::io::{Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddrV4, TcpListener, TcpStream};
use std::path::Path;
use std::thread::{self, JoinHandle};
use std::time::Duration;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_cc::*;
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_live::{LiveError, Options, run};
use ackclock_packet::pattern;
use ackclock_sim::Recorders;
use ackclock_sim::spec::*;
use ackclock_tcp::profile::Profile;
use ackclock_tcp::{AdaptiveRules, LossDetector, NcrVariant, RrRules};
use ackclock_testkit::skipped;
use ackclock_units::{Rate, Span, Time};
use nix::libc;
use nix::sched::{CloneFlags, setns};
use nix::sys::socket::{getsockopt, setsockopt, sockopt};

const OURS: Ipv4Addr = Ipv4Addr::new(10, 77, 9, 1);
const KERNEL: Ipv4Addr = Ipv4Addr::new(10, 77, 9, 2);
/// The port of the first flow; the others follow.
const PORT: u16 = 5000;
/// Bytes of each flow.
const BYTES: u64 = 1_000_000;
/// The number and interval of attempts to use something that the run has yet to create.
const TRIES: u32 = 1000;
const PAUSE: Duration = Duration::from_millis(10);

// linux/tcp.h: what `tcpi_options` says, which is byte 5 of `struct tcp_info`.
const TIMESTAMPS: u8 = 1;
const SACK: u8 = 2;
const WINDOW_SCALING: u8 = 4;
const ECN: u8 = 8;

/// The beginning of `struct tcp_info`.
#[derive(Clone, Copy, Debug)]
struct TcpInfo;

nix::getsockopt_impl!(TcpInfo, libc::IPPROTO_TCP, libc::TCP_INFO, [u8; 104], sockopt::GetStruct<[u8; 104]>);

/// The result of a program on the kernel's side.
#[derive(Debug)]
struct Found {
    bytes: u64,
    /// The first byte that is not the pattern's.
    wrong: Option<u64>,
    /// The negotiated options, as the kernel reports them.
    options: u8,
}

/// Runs `work` on a thread in the namespace, once there is one and its device has an address.
/// `None` if there is none in the end.
fn inside<T: Send + 'static>(netns: &str, work: impl FnOnce() -> T + Send + 'static) -> JoinHandle<Option<T>> {
    let file = Path::new("/run/netns").join(netns);
    thread::spawn(move || {
        let entered = || File::open(&file).is_ok_and(|file| setns(file, CloneFlags::CLONE_NEWNET).is_ok());
        let ready = (0..TRIES).any(|_| {
            thread::sleep(PAUSE);
            entered() && TcpListener::bind((KERNEL, 0)).is_ok()
        });
        ready.then(work)
    })
}

/// Takes one connection to `port`, and reads all that comes.
fn receive(port: u16) -> Option<Found> {
    let listener = TcpListener::bind((KERNEL, port)).expect("the port is free");
    listener.set_nonblocking(true).expect("it is a socket");
    let (mut stream, _) = (0..TRIES).find_map(|_| {
        thread::sleep(PAUSE);
        listener.accept().ok()
    })?;
    stream.set_nonblocking(false).expect("it is a socket");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
    let mut found = Found { bytes: 0, wrong: None, options: options(&stream) };
    let mut buffer = vec![0; 1 << 16];
    while let Ok(len) = stream.read(&mut buffer)
        && len > 0
    {
        found.wrong = found.wrong.or(pattern::first_mismatch(found.bytes, &buffer[..len]));
        found.bytes += len as u64;
    }
    Some(found)
}

/// Sends to `port` of ours by a congestion control of the kernel's.
fn send(port: u16, congestion_control: &'static str) -> Option<Found> {
    let mut stream = TcpStream::connect(SocketAddrV4::new(OURS, port)).ok()?;
    if setsockopt(&stream, sockopt::TcpCongestion, &congestion_control.into()).is_err() {
        let why = format!("this kernel has no {congestion_control}: it takes what it has");
        skipped("between our endpoints and the kernel: a controller", &why);
    }
    let options = options(&stream);
    let mut data = vec![0; BYTES as usize];
    pattern::fill(0, &mut data);
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
    stream.set_write_timeout(Some(Duration::from_secs(20))).expect("it is a socket");
    let sent = stream.write_all(&data).is_ok() && stream.shutdown(Shutdown::Write).is_ok();
    // Ours closes when it has everything.
    let closed = stream.read(&mut [0]).is_ok_and(|len| len == 0);
    Some(Found { bytes: if sent && closed { BYTES } else { 0 }, wrong: None, options })
}

fn options(stream: &TcpStream) -> u8 {
    getsockopt(stream, TcpInfo).expect("it is TCP")[5]
}

fn endpoint(cc: CcSpec) -> EndpointSpec {
    let profile = Profile::linux_6_1();
    let mut config = profile.endpoint;
    config.ecn = EcnFeedback::Classic;
    EndpointSpec { profile: profile.name.to_owned(), config, cc }
}

/// Every controller, and every detector with one of them.
fn senders() -> Vec<(String, EndpointSpec)> {
    let controllers = [
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
    ];
    let detectors = [
        LossDetector::Rfc6675,
        LossDetector::Linux(AdaptiveRules::default()),
        LossDetector::Ncr(NcrVariant::Careful),
        LossDetector::Ncr(NcrVariant::Aggressive),
        LossDetector::RrTcp(RrRules::default()),
        LossDetector::Rack,
    ];
    let by_controller = controllers.map(|cc| (cc.name().to_owned(), endpoint(cc)));
    let by_detector = detectors.map(|detector| {
        let mut host = endpoint(CcSpec::Cubic(CubicConfig::default()));
        host.config.loss_detector = detector;
        (detector.name().to_owned(), host)
    });
    by_controller.into_iter().chain(by_detector).collect()
}

fn spec(netns: &str, flows: Vec<FlowSpec>) -> RunSpec {
    let one = DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(200_000_000),
        delay: Span::from_millis(3),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(1000) }),
        impairments: Impairments {
            loss: Loss::Iid(0.01),
            reorder: Reorder::HoldBack(HoldBack { probability: 0.02, ..HoldBack::default() }),
            ..Impairments::default()
        },
    };
    let node = |name: &str, tun: bool, address: Ipv4Addr| NodeSpec {
        name: name.to_owned(),
        tun: tun.then(|| "ack0".to_owned()),
        addresses: vec![(address.into(), 24)],
        netns: tun.then(|| netns.to_owned()),
        mtu: 1500,
        ..Default::default()
    };
    RunSpec {
        title: String::new(),
        duration: Span::from_secs(12),
        seed: 1,
        run: 0,
        ties: Ties::default(),
        links: vec![LinkSpec {
            name: "link".to_owned(),
            forward: one.clone(),
            reverse: one,
            medium: None,
            is_interface: false,
        }],
        flows,
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: Some(Box::new(LiveSpec {
            clock: Clock::Real,
            nodes: vec![node("ours", false, OURS), node("kernel", true, KERNEL)],
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0], split: None, router: None }],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: true,
            lateness_limit: None,
            drain: false,
        })),
    }
}

fn flow(id: &str, number: usize, sender: HostSpec, receiver: HostSpec) -> FlowSpec {
    let from_ours = matches!(receiver, HostSpec::Outside);
    FlowSpec {
        id: id.into(),
        group: FlowGroup {
            metrics: None,
            hosts: None,
            path: vec![0],
            split: None,
            mptcp: None,
            reverse: !from_ours,
            sender,
            receiver,
            bytes: from_ours.then_some(BYTES),
            application: Default::default(),
            write_size: FlowSpec::WRITE_SIZE,
            dscp: 0,
            abort: None,
            schedule: Vec::new(),
        }
        .into(),
        // Who listens is there by then.
        start: Time::from_secs(2),
        stop: None,
        ends: Some(EndsSpec {
            nodes: if from_ours { [0, 1] } else { [1, 0] },
            port: PORT + number as u16,
            source_port: None,
            check: true,
        }),
        via: None,
    }
}

#[test]
fn every_byte_passes_between_our_endpoints_and_the_kernel() {
    let netns = format!("ackt-kernel-{}", std::process::id());
    let senders = senders();
    let mut flows = Vec::new();
    for (number, (name, host)) in senders.iter().enumerate() {
        flows.push(flow(name, number, HostSpec::Endpoint(host.clone()), HostSpec::Outside));
    }
    let kernels = ["reno", "cubic", "bbr"];
    for (number, name) in (senders.len()..).zip(kernels) {
        let host = endpoint(CcSpec::Cubic(CubicConfig::default()));
        flows.push(flow(name, number, HostSpec::Outside, HostSpec::Endpoint(host)));
    }
    let spec = spec(&netns, flows);

    let ports = (0..senders.len()).map(|number| PORT + number as u16);
    let receiving: Vec<_> = ports.map(|port| inside(&netns, move || receive(port))).collect();
    let sending: Vec<_> = (senders.len()..)
        .zip(kernels)
        .map(|(number, name)| {
            inside(&netns, move || {
                // This setting of the namespace requests ECN. (By default it is accepted only.)
                std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1").expect("it can be set");
                send(PORT + number as u16, name)
            })
        })
        .collect();
    let outcome = match run(&spec, Recorders::default(), &Options::default()) {
        Ok(outcome) => outcome,
        Err(LiveError::Missing(why)) => return skipped("between our endpoints and the kernel", &why),
        Err(error) => panic!("{error:?}"),
    };
    assert!(outcome.broken_off.is_none(), "{:?}", outcome.broken_off);

    let agreed = TIMESTAMPS | SACK | WINDOW_SCALING;
    let flows = &outcome.summary.flows;
    for (flow, found) in flows.iter().zip(receiving) {
        let found = found.join().expect("it does not panic").flatten().expect("it was connected to");
        assert_eq!((found.bytes, found.wrong), (BYTES, None), "{}", flow.id);
        assert_eq!(found.options & agreed, agreed, "{}", flow.id);
        assert!(flow.sent.retransmitted_packets > 0, "{}: nothing was lost", flow.id);
        assert_eq!(flow.progress.acked_bytes, BYTES, "{}", flow.id);
        // The SYN of DCTCP is ECN-capable itself, to which a socket with another controller does
        // not agree (`tcp_ecn_create_request`).
        let ecn = if &*flow.cc == "dctcp" { 0 } else { ECN };
        assert_eq!(found.options & ECN, ecn, "{}", flow.id);
    }
    for (flow, found) in flows[senders.len()..].iter().zip(sending) {
        let found = found.join().expect("it does not panic").flatten().expect("it was connected");
        assert_eq!(found.bytes, BYTES, "{}", flow.id);
        assert_eq!(found.options & (agreed | ECN), agreed | ECN, "{}", flow.id);
        assert_eq!(flow.progress.delivered_bytes, BYTES, "{}", flow.id);
    }
}
