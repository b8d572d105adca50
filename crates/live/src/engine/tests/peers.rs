//! Hosts behind devices, made of bytes: our endpoint behind the codec, and a stock smoltcp
//! interface.

use std::collections::VecDeque;

use ackclock_cc::{NewReno, NewRenoConfig};
use ackclock_packet::codec::{self, Addresses};
use ackclock_packet::{Flags, Segment, pattern};
use ackclock_tcp::{Config, Endpoint, Ports, Shutdown, State};
use ackclock_units::{Span, Time};
use smoltcp::iface::{Interface, SocketHandle, SocketSet};
use smoltcp::phy::{Device, DeviceCapabilities, Medium, RxToken, TxToken};
use smoltcp::socket::tcp::{Socket, SocketBuffer};
use smoltcp::time::Instant;
use smoltcp::wire::{HardwareAddress, IpAddress, IpCidr, Ipv4Address};

/// A host as seen from its device.
pub(super) trait Peer {
    /// A packet has reached it.
    fn input(&mut self, now: Time, packet: &[u8]);
    /// The next time at which to ask for output.
    fn output(&mut self, now: Time) -> Vec<Vec<u8>>;
    /// When it is to be asked next.
    fn due(&mut self, now: Time) -> Time;
    /// Bytes that it has received in order and found right.
    fn received(&self) -> u64;
    /// Bytes of its own that are acknowledged.
    fn acked(&self) -> u64;
}

/// The task of an application.
#[derive(Clone, Copy, Debug)]
pub(super) enum Task {
    /// Connects to this port, sends so many bytes, and closes.
    Send(u16, u64),
    /// Listens on this port, and reads.
    Receive(u16),
}

pub(super) const LEFT: [u8; 4] = [10, 0, 0, 1];
pub(super) const RIGHT: [u8; 4] = [10, 0, 0, 2];
/// The port that peers connect from.
pub(super) const PEER_PORT: u16 = 50_123;

/// Our endpoint on the other side.
pub(super) struct Twin {
    endpoint: Endpoint,
    addresses: Addresses,
    remote: u16,
    local: u16,
    to_send: u64,
    isn: Option<u32>,
    end: u64,
}

impl Twin {
    pub(super) fn new(config: Config, addresses: Addresses, task: Task) -> Twin {
        let (local, remote, to_send) = match task {
            Task::Send(port, bytes) => (PEER_PORT, port, bytes),
            Task::Receive(port) => (port, 0, 0),
        };
        let ports = Ports { local, remote };
        let cc = Box::new(NewReno::new(NewRenoConfig::default()));
        // Numbers that wrap soon.
        let mut endpoint = Endpoint::new(config, cc, ports, u32::MAX - 5000, u32::MAX - 100);
        match task {
            Task::Send(..) => endpoint.connect(),
            Task::Receive(_) => endpoint.listen(),
        }
        Twin { endpoint, addresses, remote, local, to_send, isn: None, end: 0 }
    }
}

impl Peer for Twin {
    fn input(&mut self, now: Time, packet: &[u8]) {
        let parsed = match codec::parse(packet) {
            Err(codec::ParseError::Protocol(_)) => return,
            parsed => parsed.expect("what our engine sends can be read"),
        };
        assert_eq!(parsed.addresses, self.addresses.reversed());
        let mut segment = parsed.segment;
        assert_eq!(segment.destination_port, self.local);
        if self.remote == 0 {
            self.remote = segment.source_port;
        }
        if segment.source_port != self.remote {
            return;
        }
        if segment.flags.contains(Flags::SYN) {
            self.isn = Some(segment.seq);
        }
        if segment.payload.len > 0 {
            let low = segment.seq.wrapping_sub(self.isn.expect("a SYN came first")).wrapping_sub(1);
            let ahead = low.wrapping_sub(self.end as u32).cast_signed();
            segment.payload.offset = self.end.checked_add_signed(ahead.into()).expect("within the stream");
            self.end = self.end.max(segment.payload.offset + u64::from(segment.payload.len));
            assert_eq!(pattern::first_mismatch(segment.payload.offset, parsed.payload), None);
        }
        self.endpoint.input(now, &segment, parsed.ecn);
        assert_eq!(self.endpoint.receiver().integrity_error(), None);
        self.endpoint.read(u64::MAX);
        if self.endpoint.receiver().is_finished() {
            self.endpoint.shutdown(Shutdown::Write);
        }
    }

    fn output(&mut self, now: Time) -> Vec<Vec<u8>> {
        if self.endpoint.next_deadline() <= now {
            self.endpoint.on_deadline(now);
        }
        // A socket that is shut before it is connected gives up.
        if self.endpoint.state() == State::Established && self.to_send > 0 {
            self.to_send -= self.endpoint.write(self.to_send);
            if self.to_send == 0 {
                self.endpoint.shutdown(Shutdown::Write);
            }
        }
        let mut packets = Vec::new();
        let mut segment = Segment::default();
        while let Some(ecn) = self.endpoint.transmit(now, &mut segment) {
            (segment.source_port, segment.destination_port) = (self.local, self.remote);
            let mut bytes = vec![0; segment.wire_len() as usize];
            codec::emit(&segment, self.addresses, ecn, &mut bytes).expect("there is room");
            packets.push(bytes);
        }
        packets
    }

    fn due(&mut self, _now: Time) -> Time {
        self.endpoint.next_deadline()
    }

    fn received(&self) -> u64 {
        self.endpoint.receiver().delivered()
    }

    fn acked(&self) -> u64 {
        self.endpoint.sender().sequence().acked_bytes()
    }
}

/// A stock smoltcp interface with one socket.
pub(super) struct Stock {
    interface: Interface,
    sockets: SocketSet<'static>,
    handle: SocketHandle,
    device: Queues,
    to_send: Option<(u64, u64)>,
    received: u64,
}

#[derive(Default)]
struct Queues {
    incoming: VecDeque<Vec<u8>>,
    outgoing: Vec<Vec<u8>>,
}

impl Stock {
    pub(super) fn new(own: [u8; 4], other: [u8; 4], task: Task) -> Stock {
        let mut device = Queues::default();
        let mut config = smoltcp::iface::Config::new(HardwareAddress::Ip);
        config.random_seed = 7;
        let mut interface = Interface::new(config, &mut device, Instant::ZERO);
        interface.update_ip_addrs(|list| list.push(IpCidr::new(ip(own), 24)).expect("room for one"));
        let buffer = || SocketBuffer::new(vec![0; 65_535]);
        let mut socket = Socket::new(buffer(), buffer());
        match task {
            Task::Send(port, _) => {
                socket.connect(interface.context(), (ip(other), port), PEER_PORT).expect("it is closed");
            }
            Task::Receive(port) => socket.listen(port).expect("it is closed"),
        }
        let mut sockets = SocketSet::new(Vec::new());
        let handle = sockets.add(socket);
        let to_send = match task {
            Task::Send(_, bytes) => Some((0, bytes)),
            Task::Receive(_) => None,
        };
        Stock { interface, sockets, handle, device, to_send, received: 0 }
    }

    fn work(&mut self) {
        let socket = self.sockets.get_mut::<Socket<'_>>(self.handle);
        if let Some((sent, bytes)) = &mut self.to_send
            && socket.may_send()
        {
            while *sent < *bytes && socket.can_send() {
                let room = |room: &mut [u8]| {
                    let len = room.len().min((*bytes - *sent) as usize);
                    pattern::fill(*sent, &mut room[..len]);
                    (len, len as u64)
                };
                *sent += socket.send(room).expect("it may send");
            }
            if *sent == *bytes {
                socket.close();
            }
        }
        while socket.can_recv() {
            let received = self.received;
            let len = socket.recv(|data| {
                assert_eq!(pattern::first_mismatch(received, data), None);
                (data.len(), data.len() as u64)
            });
            self.received += len.expect("it can be read");
        }
        if self.to_send.is_none() && !socket.may_recv() && socket.may_send() {
            socket.close();
        }
    }
}

impl Peer for Stock {
    fn input(&mut self, _now: Time, packet: &[u8]) {
        self.device.incoming.push_back(packet.to_vec());
    }

    fn output(&mut self, now: Time) -> Vec<Vec<u8>> {
        for _ in 0..3 {
            self.interface.poll(micros(now), &mut self.device, &mut self.sockets);
            self.work();
        }
        std::mem::take(&mut self.device.outgoing)
    }

    fn due(&mut self, now: Time) -> Time {
        // Whoever asks has polled: at this very time there is nothing more. (It repeats some
        // acknowledgments without end.)
        let at = self.interface.poll_at(micros(now), &self.sockets).map(|at| at.total_micros() as u64);
        at.map_or(Time::NEVER, |at| Time::from_micros(at).max(now + Span::from_millis(1)))
    }

    fn received(&self) -> u64 {
        self.received
    }

    fn acked(&self) -> u64 {
        let queued = self.sockets.get::<Socket<'_>>(self.handle).send_queue() as u64;
        self.to_send.map_or(0, |(sent, _)| sent - queued)
    }
}

impl Device for Queues {
    type RxToken<'a> = InFrame;
    type TxToken<'a> = OutFrame<'a>;

    fn receive(&mut self, _now: Instant) -> Option<(InFrame, OutFrame<'_>)> {
        self.incoming.pop_front().map(|packet| (InFrame(packet), OutFrame(&mut self.outgoing)))
    }

    fn transmit(&mut self, _now: Instant) -> Option<OutFrame<'_>> {
        Some(OutFrame(&mut self.outgoing))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ip;
        capabilities.max_transmission_unit = 1500;
        capabilities
    }
}

struct InFrame(Vec<u8>);

impl RxToken for InFrame {
    fn consume<R, F: FnOnce(&[u8]) -> R>(self, read: F) -> R {
        read(&self.0)
    }
}

struct OutFrame<'a>(&'a mut Vec<Vec<u8>>);

impl TxToken for OutFrame<'_> {
    fn consume<R, F: FnOnce(&mut [u8]) -> R>(self, len: usize, write: F) -> R {
        let mut packet = vec![0; len];
        let result = write(&mut packet);
        self.0.push(packet);
        result
    }
}

fn micros(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1000) as i64)
}

fn ip(address: [u8; 4]) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from_octets(address))
}
