//! The loop between sockets, or queues in memory, in place of devices.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::net::Ipv4Addr;
use std::os::fd::{AsRawFd, RawFd};
use std::os::unix::net::UnixDatagram;
use std::thread;
use std::time::Duration;

use ackclock_aqm::{FifoConfig, Limit};
use ackclock_emulator::Impairments;
use ackclock_sim::spec::{
    Clock, DirectionSpec, LinkSpec, LiveSpec, Overhead, OwnStack, OwnStackConfig, PipeSpec, QueueSpec, Spin,
};
use ackclock_stack::Stack;
use nix::errno::Errno;
use nix::sys::signal::{Signal, raise};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::SignalKind;

use super::waiter::EndSignals;
use super::*;

const ADDRESSES: [[u8; 4]; 2] = [[10, 0, 0, 1], [10, 0, 0, 2]];

impl Port for UnixDatagram {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.recv(buffer)
    }

    fn offloads(&self) -> bool {
        false
    }

    fn read_offloaded(&self, [buffer, _]: [&mut [u8]; 2]) -> io::Result<(usize, Offload)> {
        Port::read(self, buffer).map(|len| (len, Offload::default()))
    }

    fn write(&self, packet: &Outgoing<'_>) -> io::Result<()> {
        self.send(packet.bytes).map(|_| ())
    }

    fn check(&self) -> io::Result<()> {
        Ok(())
    }
}

/// A device in memory.
struct MemoryDevice {
    /// Packets from its host.
    incoming: RefCell<VecDeque<Vec<u8>>>,
    /// Packets to its host.
    outgoing: RefCell<Vec<Vec<u8>>>,
    /// The errors of reading an empty port, of writing, and of a check.
    fails: Cell<[Option<Errno>; 3]>,
    /// Never has anything.
    descriptor: (UnixDatagram, UnixDatagram),
}

impl MemoryDevice {
    fn new(incoming: impl IntoIterator<Item = Vec<u8>>) -> MemoryDevice {
        MemoryDevice {
            incoming: RefCell::new(incoming.into_iter().collect()),
            outgoing: RefCell::default(),
            fails: Cell::default(),
            descriptor: UnixDatagram::pair().unwrap(),
        }
    }
}

impl AsRawFd for MemoryDevice {
    fn as_raw_fd(&self) -> RawFd {
        self.descriptor.0.as_raw_fd()
    }
}

impl Port for MemoryDevice {
    fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        let Some(packet) = self.incoming.borrow_mut().pop_front() else {
            return Err(self.fails.get()[0].unwrap_or(Errno::EAGAIN).into());
        };
        let len = packet.len().min(buffer.len());
        buffer[..len].copy_from_slice(&packet[..len]);
        Ok(len)
    }

    fn offloads(&self) -> bool {
        false
    }

    fn read_offloaded(&self, [buffer, _]: [&mut [u8]; 2]) -> io::Result<(usize, Offload)> {
        Port::read(self, buffer).map(|len| (len, Offload::default()))
    }

    fn write(&self, packet: &Outgoing<'_>) -> io::Result<()> {
        if let Some(errno) = self.fails.get()[1] {
            return Err(errno.into());
        }
        self.outgoing.borrow_mut().push(packet.bytes.to_vec());
        Ok(())
    }

    fn check(&self) -> io::Result<()> {
        self.fails.get()[2].map_or(Ok(()), |errno| Err(errno.into()))
    }
}

/// Left and right, with a wire of this delay.
fn spec(duration: Span, delay: Span) -> RunSpec {
    let direction = DirectionSpec {
        course: Default::default(),
        rate: None,
        delay,
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(1000) }),
        impairments: Impairments::default(),
    };
    let node = |(name, address): (&str, [u8; 4])| NodeSpec {
        name: name.to_owned(),
        tun: Some(format!("{name}0")),
        addresses: vec![(Ipv4Addr::from(address).into(), 24)],
        netns: None,
        mtu: 1500,
        ..Default::default()
    };
    RunSpec {
        title: String::new(),
        duration,
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::default(),
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
            nodes: ["left", "right"].into_iter().zip(ADDRESSES).map(node).collect(),
            pipes: vec![PipeSpec { between: [0, 1], path: vec![0], split: None, router: None }],
            commands: Vec::new(),
            scheduling: Default::default(),
            offload: false,
            lateness_limit: None,
            drain: false,
        })),
    }
}

/// A UDP packet of this length from left to right, or back, with a number in it.
fn packet(from: usize, number: u32, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(len as u16).to_be_bytes());
    bytes[8] = 64;
    bytes[9] = 17;
    bytes[12..16].copy_from_slice(&ADDRESSES[from]);
    bytes[16..20].copy_from_slice(&ADDRESSES[1 - from]);
    // RFC 1071: the sum of all words, this one included, is 0xffff.
    let sum: u32 = bytes[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
    let sum = (sum & 0xffff) + (sum >> 16);
    bytes[10..12].copy_from_slice(&(!(sum as u16)).to_be_bytes());
    bytes[24..26].copy_from_slice(&(len as u16 - 20).to_be_bytes());
    bytes[28..32].copy_from_slice(&number.to_be_bytes());
    bytes
}

fn runtime() -> Runtime {
    Builder::new_current_thread().enable_io().build().unwrap()
}

fn start<'a, P: Port>(spec: &RunSpec, ports: [&'a P; 2], signals: &[SignalKind]) -> Drive<'a, P> {
    let signals = EndSignals::new(signals).unwrap();
    let live = spec.live.as_deref().unwrap();
    let ports = ports.into_iter().enumerate().collect();
    let stacks = Stacks::new(spec, &Recorders::default());
    Drive::start((Engine::new(spec), stacks), ports, signals, None, spec.duration, &live.scheduling).unwrap()
}

fn drive<'a, P: Port>(spec: &RunSpec, ports: [&'a P; 2]) -> (LoopEnd, Driven<'a, P>) {
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut drive = start(spec, ports, &[]);
    let end = runtime.block_on(drive.run(&mut Recorders::default()));
    (end, drive.finish())
}

/// A device with its host's end; neither blocks.
fn pair() -> (UnixDatagram, UnixDatagram) {
    let (device, host) = UnixDatagram::pair().unwrap();
    device.set_nonblocking(true).unwrap();
    host.set_nonblocking(true).unwrap();
    (device, host)
}

#[test]
fn a_packet_wakes_the_loop_and_comes_out_after_its_delay() {
    let (left, host) = pair();
    let (right, peer) = pair();
    peer.set_nonblocking(false).unwrap();
    peer.set_read_timeout(Some(Duration::from_secs(10))).unwrap();
    let sent = packet(0, 7, 100);
    let delay = Span::from_millis(30);
    let (took, (end, driven)) = thread::scope(|scope| {
        let host = scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            let mut clock = clock::RunClock::start().unwrap();
            host.send(&sent).unwrap();
            let mut got = [0; 200];
            let len = peer.recv(&mut got).unwrap();
            assert_eq!(&got[..len], &sent);
            clock.now()
        });
        let result = drive(&spec(Span::from_millis(300), delay), [&left, &right]);
        (host.join().unwrap(), result)
    });
    assert!(matches!(end, LoopEnd::Over), "{end:?}");
    assert!(took >= Time::ZERO + delay, "{took:?} is less than the delay");
    assert!(took < Time::from_millis(280), "{took:?} is not the delay");
    let lateness = driven.punctuality.lateness();
    assert_eq!(lateness.samples, 1);
    // The loop was behind for just as long as the packet was late.
    let behind = driven.punctuality.behind().as_millis_f64();
    assert!((behind - lateness.max.unwrap()).abs() < 0.001, "{behind} {lateness:?}");
    // It slept until the packet, the delivery and the end, and never longer than 5 ms.
    assert!((3..200).contains(&driven.sleeps), "{} sleeps", driven.sleeps);
}

#[test]
fn all_that_hosts_have_sent_comes_out_in_order() {
    let sent = |from| (0..700).map(move |number| packet(from, number, 64 + number as usize));
    let (left, right) = (MemoryDevice::new(sent(0)), MemoryDevice::new(sent(1)));
    let (end, driven) = drive(&spec(Span::from_millis(200), Span::from_millis(1)), [&left, &right]);
    assert!(matches!(end, LoopEnd::Over), "{end:?}");
    for (from, to) in [(0, &right), (1, &left)] {
        let got = to.outgoing.borrow();
        assert_eq!(got.len(), 700);
        assert!(got.iter().cloned().eq(sent(from)), "from {from}");
    }
    assert_eq!(driven.punctuality.lateness().samples, 1400);
    let hosts: Vec<_> = driven.engine.hosts().collect();
    assert_eq!([hosts[0].received_packets, hosts[0].sent_packets], [700, 700]);
}

#[test]
fn what_is_longer_than_any_mtu_goes_nowhere() {
    let left = MemoryDevice::new([packet(0, 0, 1501), packet(0, 1, 1500)]);
    let right = MemoryDevice::new([]);
    let (_, driven) = drive(&spec(Span::from_millis(20), Span::ZERO), [&left, &right]);
    assert_eq!(*right.outgoing.borrow(), [packet(0, 1, 1500)]);
    assert_eq!(driven.engine.hosts().next().unwrap().truncated, 1);
}

#[test]
fn a_device_that_is_gone_ends_the_run() {
    for (which, errno) in [Errno::EBADFD, Errno::EIO, Errno::ENETDOWN].into_iter().enumerate() {
        let left = MemoryDevice::new([packet(0, 0, 100)]);
        let right = MemoryDevice::new([]);
        let mut fails = [None; 3];
        fails[which] = Some(errno);
        right.fails.set(fails);
        let (end, driven) = drive(&spec(Span::from_secs(1000), Span::ZERO), [&left, &right]);
        let LoopEnd::Gone(1, error) = end else { panic!("{end:?}") };
        assert_eq!(error.raw_os_error(), Some(errno as i32));
        assert_eq!(driven.engine.hosts().next().unwrap().received_packets, 1);
    }
}

#[test]
fn a_packet_that_a_device_does_not_take_is_counted() {
    let left = MemoryDevice::new([packet(0, 0, 100), packet(0, 1, 100)]);
    let right = MemoryDevice::new([]);
    right.fails.set([None, Some(Errno::ENOBUFS), None]);
    let (end, driven) = drive(&spec(Span::from_millis(20), Span::ZERO), [&left, &right]);
    assert!(matches!(end, LoopEnd::Over), "{end:?}");
    assert_eq!([driven.ports[0].refused, driven.ports[1].refused], [0, 2]);
    assert_eq!(driven.punctuality.lateness().samples, 0);
}

#[test]
fn what_is_on_its_way_at_the_end_is_delivered_if_it_is_to_be() {
    for drains in [false, true] {
        let left = MemoryDevice::new([packet(0, 0, 100)]);
        let right = MemoryDevice::new([]);
        let spec = spec(Span::from_millis(20), Span::from_millis(100));
        let runtime = runtime();
        let _inside = runtime.enter();
        let mut drive = start(&spec, [&left, &right], &[]);
        let end = runtime.block_on(drive.run(&mut Recorders::default()));
        assert!(matches!(end, LoopEnd::Over), "{end:?}");
        assert!(right.outgoing.borrow().is_empty());
        if drains {
            // Nobody takes this any more.
            left.incoming.borrow_mut().push_back(packet(0, 1, 100));
            let end = runtime.block_on(drive.drain(longest_delay(&spec)));
            assert!(matches!(end, LoopEnd::Over), "{end:?}");
            assert_eq!(*right.outgoing.borrow(), [packet(0, 0, 100)]);
            assert!(drive.now() >= Time::from_millis(100));
        }
    }
}

#[test]
fn a_signal_ends_a_run_and_another_one_its_draining() {
    let left = MemoryDevice::new([packet(0, 0, 100)]);
    let right = MemoryDevice::new([]);
    let spec = spec(Span::from_secs(1000), Span::from_secs(500));
    let runtime = runtime();
    let _inside = runtime.enter();
    // One that no other test listens to: it comes to all of this process.
    let mut drive = start(&spec, [&left, &right], &[SignalKind::user_defined1()]);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            raise(Signal::SIGUSR1).unwrap();
        });
        let end = runtime.block_on(drive.run(&mut Recorders::default()));
        assert!(matches!(end, LoopEnd::Interrupted), "{end:?}");
    });
    assert!(drive.now() >= Time::from_millis(50));
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            raise(Signal::SIGUSR1).unwrap();
        });
        let end = runtime.block_on(drive.drain(Span::from_secs(1000)));
        assert!(matches!(end, LoopEnd::Interrupted), "{end:?}");
    });
    assert!(drive.now() < Time::from_secs(100));
    assert!(right.outgoing.borrow().is_empty());
}

#[test]
fn a_signal_is_seen_by_a_loop_that_never_sleeps() {
    let left = MemoryDevice::new([]);
    let right = MemoryDevice::new([]);
    let mut spec = spec(Span::from_secs(1000), Span::ZERO);
    // Something is always due soon enough to be waited for.
    spec.live.as_mut().unwrap().scheduling.spin = Spin::Fixed(Span::from_secs(1000));
    let runtime = runtime();
    let _inside = runtime.enter();
    let mut drive = start(&spec, [&left, &right], &[SignalKind::user_defined2()]);
    thread::scope(|scope| {
        scope.spawn(|| {
            thread::sleep(Duration::from_millis(50));
            raise(Signal::SIGUSR2).unwrap();
        });
        let end = runtime.block_on(drive.run(&mut Recorders::default()));
        assert!(matches!(end, LoopEnd::Interrupted), "{end:?}");
    });
    assert_eq!(drive.finish().sleeps, 0);
}

/// A stack that sends 50 packets per millisecond, and counts those from left that are as they were
/// sent, in their order.
struct Chatty {
    next: Time,
    intact: u32,
}

impl Stack for Chatty {
    fn input(&mut self, _: Time, bytes: &[u8]) {
        self.intact += u32::from(bytes == packet(0, self.intact, 64));
    }

    fn output(&mut self, now: Time, buffer: &mut [u8]) -> Option<usize> {
        if now < self.next {
            return None;
        }
        self.next = now + Span::from_micros(20);
        buffer[..100].copy_from_slice(&packet(1, 0, 100));
        Some(100)
    }

    fn next_deadline(&self) -> Time {
        self.next
    }

    fn on_deadline(&mut self, _: Time) {}

    fn results(&self, _: Time, see: &mut dyn FnMut(&'static str, f64)) {
        see("intact", self.intact.into());
    }
}

/// Stacks send while a packet that was read waits to enter.
#[test]
fn packets_of_a_stack_and_of_a_device_do_not_mix() {
    let mut spec = spec(Span::from_millis(200), Span::from_millis(1));
    let chatty = OwnStack::new("chatty", |_, _, _| Box::new(Chatty { next: Time::ZERO, intact: 0 }));
    let right = &mut spec.live.as_mut().unwrap().nodes[1];
    (right.tun, right.stack) = (None, Some(OwnStackConfig::new(Arc::new(chatty))));
    let left = MemoryDevice::new((0..1000).map(|number| packet(0, number, 64)));
    let runtime = runtime();
    let _inside = runtime.enter();
    let stacks = Stacks::new(&spec, &Recorders::default());
    let signals = EndSignals::new(&[]).unwrap();
    let scheduling = &spec.live.as_ref().unwrap().scheduling;
    let engine = Engine::new(&spec);
    let mut drive = Drive::start((engine, stacks), vec![(0, &left)], signals, None, spec.duration, scheduling).unwrap();
    assert!(matches!(runtime.block_on(drive.run(&mut Recorders::default())), LoopEnd::Over));
    // Of 199 ms; those of the last millisecond are on their way, and handed over by the clock.
    assert_eq!(left.outgoing.borrow().len(), 9950);
    let drained = runtime.block_on(drive.drain(Span::from_millis(100)));
    assert!(matches!(drained, LoopEnd::Over), "{drained:?}");
    assert_eq!(left.outgoing.borrow().len(), 10_000);
    assert!(left.outgoing.borrow().iter().all(|bytes| *bytes == packet(1, 0, 100)));
    let mut driven = drive.finish();
    let mut hosts = counted(&driven.engine, [(0, 0)].into_iter());
    driven.stacks.report(Time::from_millis(200), &mut hosts);
    assert_eq!((hosts[0].received_packets, hosts[1].sent_packets), (1000, 1000));
    assert_eq!(hosts[1].results.as_ref().unwrap()["intact"].as_f64(), Some(1000.0));
}
