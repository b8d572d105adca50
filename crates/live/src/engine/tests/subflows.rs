//! Multipath TCP between an endpoint of ours and a host with two devices.

use std::cell::RefCell;
use std::net::IpAddr;
use std::rc::Rc;

use ackclock_mptcp::{Connection, MptcpConfig, Path, SchedulerKind};
use ackclock_packet::{MptcpOption, pattern};
use ackclock_tcp::Ports;

use super::*;

/// Ours, and the other host's, by path.
const OURS: [[u8; 4]; 2] = [[10, 1, 0, 1], [10, 2, 0, 1]];
const THEIRS: [[u8; 4]; 2] = [[10, 1, 0, 2], [10, 2, 0, 2]];

/// A host with two devices and one connection.
struct Host {
    connection: Connection,
    /// The TCP connections that it has: their path, own and other port, and how far the other end's
    /// stream goes from which number.
    subflows: Vec<(usize, (u16, u16), u32, u64)>,
    to_send: u64,
    waiting: [Vec<Vec<u8>>; 2],
}

/// One of its devices.
struct Device(Rc<RefCell<Host>>, usize);

impl Host {
    /// One that sends so many bytes to `remote`; or, with 0, one that listens and is sent to from
    /// there.
    fn new(remote: u16, to_send: u64) -> Host {
        let path = |number: usize| {
            let [local, remote] = [THEIRS[number], OURS[number]].map(IpAddr::from);
            Path { local, remote, backup: false }
        };
        let config = MptcpConfig { paths: vec![path(0), path(1)], foreign_peer: true, ..MptcpConfig::default() };
        let make = |_| Box::new(NewReno::new(NewRenoConfig::default())) as Box<dyn CongestionControl>;
        let ports = Ports { local: if to_send > 0 { PEER_PORT } else { PORT }, remote };
        let random = Random::for_component(3, 0, "host");
        let mut connection = Connection::new(config, Profile::linux_6_1().endpoint, Box::new(make), ports, random);
        if to_send > 0 {
            connection.connect();
        } else {
            connection.listen();
        }
        Host { connection, subflows: Vec::new(), to_send, waiting: Default::default() }
    }

    fn input(&mut self, now: Time, path: usize, packet: &[u8]) {
        let parsed = codec::parse(packet).expect("what our engine sends can be read");
        assert_eq!(parsed.addresses, addresses(OURS[path], THEIRS[path]));
        let mut segment = parsed.segment;
        let ports = (segment.destination_port, segment.source_port);
        if segment.flags.contains(Flags::SYN) && !self.subflows.iter().any(|known| (known.0, known.1) == (path, ports))
        {
            self.subflows.push((path, ports, segment.seq.wrapping_add(1), 0));
        }
        let known = self.subflows.iter_mut().find(|known| (known.0, known.1) == (path, ports));
        let Some((_, _, first, end)) = known else { return };
        if segment.payload.len > 0 {
            let ahead = segment.seq.wrapping_sub(*first).wrapping_sub(*end as u32).cast_signed();
            segment.payload.offset = end.checked_add_signed(ahead.into()).expect("within the stream");
            *end = segment.payload.offset + u64::from(segment.payload.len);
            let at = self.connection.stream_offset(path, &segment).expect("its mapping tells");
            assert_eq!(pattern::first_mismatch(at, parsed.payload), None);
        }
        self.connection.input(now, path, &segment, parsed.ecn);
        self.connection.read(u64::MAX);
        if self.connection.peer_finished() {
            self.connection.shutdown(now);
        }
    }

    fn pump(&mut self, now: Time) {
        if self.connection.next_deadline() <= now {
            self.connection.on_deadline(now);
        }
        if self.connection.is_open() && self.to_send > 0 {
            self.to_send -= self.connection.write(now, self.to_send);
            if self.to_send == 0 {
                self.connection.shutdown(now);
            }
        }
        let mut segment = Segment::default();
        while let Some(ecn) = self.connection.transmit(now, &mut segment) {
            let path = self.connection.last_path();
            let mut bytes = vec![0; segment.wire_len() as usize];
            codec::emit(&segment, addresses(THEIRS[path], OURS[path]), ecn, &mut bytes).expect("there is room");
            self.waiting[path].push(bytes);
        }
    }
}

impl Peer for Device {
    fn input(&mut self, now: Time, packet: &[u8]) {
        self.0.borrow_mut().input(now, self.1, packet);
    }

    fn output(&mut self, now: Time) -> Vec<Vec<u8>> {
        let mut host = self.0.borrow_mut();
        host.pump(now);
        std::mem::take(&mut host.waiting[self.1])
    }

    fn due(&mut self, _: Time) -> Time {
        self.0.borrow().connection.next_deadline()
    }

    fn received(&self) -> u64 {
        self.0.borrow().connection.delivered_bytes()
    }

    fn acked(&self) -> u64 {
        self.0.borrow().connection.acked_bytes()
    }
}

/// Ours on two addresses, theirs on two devices, and a link of its own between each pair.
fn two_paths(we_send: bool, bytes: u64) -> RunSpec {
    let mut spec = spec([false, true], lossy());
    let mut second = spec.links[0].clone();
    second.name = "second".to_owned();
    spec.links.push(second);
    let live = spec.live.as_mut().expect("it is live");
    let pair = |path: usize| {
        [node(&format!("ours{path}"), OURS[path], false), node(&format!("theirs{path}"), THEIRS[path], true)]
    };
    live.nodes = [pair(0), pair(1)].into_iter().flatten().collect();
    let first = live.pipes[0].clone();
    live.pipes.push(PipeSpec { between: [2, 3], path: vec![1], ..first });
    let ours = HostSpec::Endpoint(endpoint(CcSpec::Cubic(CubicConfig::default())));
    let mut flow = match we_send {
        true => flow(ours, HostSpec::Outside, [0, 1], Some(bytes)),
        false => flow(HostSpec::Outside, ours, [1, 0], Some(bytes)),
    };
    let hosts = |path: usize| {
        let ([ours, theirs], at) = ([OURS[path], THEIRS[path]].map(IpAddr::from), 2 * path);
        match we_send {
            true => SubflowHosts { nodes: [at, at + 1], addresses: [ours, theirs] },
            false => SubflowHosts { nodes: [at + 1, at], addresses: [theirs, ours] },
        }
    };
    let group = &mut *flow;
    group.mptcp = Some(Box::new(MptcpSpec {
        others: vec![vec![1]],
        backups: Vec::new(),
        scheduler: SchedulerKind::Linux,
        opportunistic_retransmission: false,
        penalization: false,
        changes: Vec::new(),
        hosts: vec![hosts(0), hosts(1)],
    }));
    spec.flows.push(flow);
    spec
}

fn run(we_send: bool, host: Host) -> EngineBench {
    const BYTES: u64 = 3_000_000;
    let host = Rc::new(RefCell::new(host));
    let device = |path: usize| Some(Box::new(Device(Rc::clone(&host), path)) as Box<dyn Peer>);
    let mut bench = EngineBench::new(&two_paths(we_send, BYTES), vec![None, device(0), None, device(1)]);
    let done = |bench: &mut EngineBench| {
        let peer = bench.peers[1].as_ref().expect("it is there");
        let whole = if we_send { peer.received() } else { peer.acked() };
        assert_eq!(bench.engine.error(), None);
        whole == BYTES
    };
    assert!(bench.run_until(Time::from_secs(300), done), "stopped at {:?}", bench.now);
    let arrived = bench.now + Span::from_secs(3);
    bench.run_until(arrived, |_| false);
    let connection = &host.borrow().connection;
    assert!(connection.is_finished() && connection.is_multipath(), "{connection:?}");
    let flow = &bench.summary().flows[0];
    assert_eq!((flow.progress.delivered_bytes, flow.progress.acked_bytes), (BYTES, BYTES));
    let multipath = flow.multipath.as_ref().expect("there are subflows");
    assert!(!multipath.plain);
    for subflow in &multipath.subflows {
        assert!(subflow.received_bytes > BYTES / 10, "{multipath:?}");
        assert!(subflow.sent.sent_packets > 0 && subflow.sent.retransmitted_packets > 0, "{multipath:?}");
        assert!(subflow.rtt_ms.min.is_some_and(|ms| ms > 9.9), "{multipath:?}");
    }
    bench
}

/// The port of the first packet that our engine has handed over.
fn our_port() -> u16 {
    let mut bench = EngineBench::new(&two_paths(true, 1000), vec![None, None, None, None]);
    bench.run_until(Time::from_millis(100), |_| false);
    let (_, _, packet) = bench.log.first().expect("a SYN");
    codec::parse(packet).expect("it can be read").segment.source_port
}

#[test]
fn ours_sends_over_two_subflows() {
    run(true, Host::new(our_port(), 0));
}

#[test]
fn ours_receives_over_two_subflows_and_refuses_others() {
    let bench = run(false, Host::new(PORT, 3_000_000));
    // Its second subflow was announced, and joined from the other device.
    let joins = bench.log.iter().filter(|(_, node, packet)| {
        let segment = codec::parse(packet).expect("it can be read").segment;
        *node == 3 && segment.mptcp.iter().any(|option| matches!(option, MptcpOption::JoinSynAck { .. }))
    });
    assert!(joins.count() > 0);
}

/// A SYN that asks for no subflow of the connection is answered by RST.
#[test]
fn a_second_connection_is_refused() {
    let mut bench = EngineBench::new(&two_paths(false, 1000), vec![None, None, None, None]);
    let syn = |port: u16| {
        let segment = Segment {
            source_port: port,
            destination_port: PORT,
            flags: Flags::SYN,
            seq: 7,
            window: 1000,
            ..Segment::default()
        };
        let mut bytes = vec![0; segment.wire_len() as usize];
        codec::emit(&segment, addresses(THEIRS[0], OURS[0]), Ecn::NotEct, &mut bytes).expect("there is room");
        bytes
    };
    bench.send(1, &syn(4000));
    bench.send(1, &syn(4001));
    bench.run_until(Time::from_millis(100), |_| false);
    let answers: Vec<(u16, bool)> = bench
        .log
        .iter()
        .map(|(_, _, packet)| codec::parse(packet).expect("it can be read").segment)
        .map(|segment| (segment.destination_port, segment.flags.contains(Flags::RST)))
        .collect();
    assert_eq!(answers, [(4000, false), (4001, true)]);
}
