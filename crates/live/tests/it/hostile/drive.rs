//! A run whose hosts behind devices send what some bytes say: packets that are none, packets with
//! wrong fields, segments that fit to what the hosts have received but for a few bytes, at any
//! times.

use ackclock_live::{Engine, Offload};
use ackclock_scenario::{Override, Scenario};
use ackclock_sim::spec::RunSpec;
use ackclock_units::{Span, Time};
use etherparse::checksum::Sum16BitWords;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};

/// Two kernels and a host of ours, which sends to one and receives from it; a router that takes
/// less than its links, packets that are lost, doubled and late, and marks.
const SCENARIO: &str = r#"schema = 1
[run]
duration = "60s"
[links.a]
rate = "10mbit"
delay = "5ms"
jitter = "3ms"
reorder = true
loss = { kind = "iid", probability = 0.02 }
duplicate = 0.05
queue = { kind = "codel", limit = "50p", ecn = true }
[links.b]
rate = "1mbit"
queue = { kind = "fq_codel" }
[hosts.left]
tun = "ack0"
address = ["10.0.0.1/24", "fd00::1/64"]
netns = "left"
[hosts.right]
tun = "ack1"
address = ["10.0.0.2/24", "fd00::2/64"]
netns = "right"
mtu = "9000B"
[hosts.own]
address = "10.0.1.1/32"
[[paths]]
between = ["left", "right"]
paths = [["a"], ["b"]]
split = "round_robin"
router = { mtu = "1400B" }
[[paths]]
between = ["own", "left"]
path = ["a"]
[[flows]]
id = "watched"
from = "left"
to = "right"
port = 5201
[[flows]]
id = "sends"
from = "own"
to = "left"
port = 5202
source_port = 40000
bytes = "300kB"
[[flows]]
id = "receives"
from = "left"
to = "own"
port = 5203
data = "any"
"#;

/// When that ends.
const END: Time = Time::from_secs(60);

/// The settings of the local stack, which differ between runs.
const STACKS: [&[&str]; 5] = [
    &[],
    &["cc=bbr", "ecn=accecn", "accecn_option=full"],
    &["cc=cdg", "host=freebsd-9.2"],
    &["cc=newreno", "loss_detector=ncr"],
    &["cc=vegas", "ecn=true", "loss_detector=rr-tcp"],
];

/// The addresses that packets go from and to: the hosts', one of nobody, and those that are not
/// forwarded.
const ADDRESSES: [[u8; 4]; 8] = [
    [10, 0, 1, 1],
    [10, 0, 0, 1],
    [10, 0, 0, 2],
    [10, 0, 1, 1],
    [10, 0, 0, 77],
    [224, 0, 0, 1],
    [255, 255, 255, 255],
    [0, 0, 0, 0],
];
const PORTS: [u16; 4] = [5201, 5202, 5203, 40000];

/// The runs that bytes choose from.
pub(crate) fn specs() -> Vec<RunSpec> {
    let spec = |keys: &&[&str]| {
        let set = |key: &&str| ["sends", "receives"].map(|flow| format!("flows.{flow}.{key}"));
        let overrides = keys.iter().flat_map(set).map(|text| Override { flag: "--set".to_owned(), text });
        let overrides: Vec<Override> = overrides.collect();
        let scenario = Scenario::parse("hostile.toml", SCENARIO.as_bytes(), &overrides);
        scenario.unwrap_or_else(|error| panic!("{error}")).spec(0)
    };
    STACKS.iter().map(spec).collect()
}

/// Bytes that are used up.
struct Bytes<'a>(&'a [u8]);

impl<'a> Bytes<'a> {
    /// Zeros after the last.
    fn next(&mut self) -> u8 {
        let Some((&first, rest)) = self.0.split_first() else { return 0 };
        self.0 = rest;
        first
    }

    fn word(&mut self) -> u16 {
        u16::from_be_bytes([self.next(), self.next()])
    }

    fn take(&mut self, len: usize) -> &'a [u8] {
        let (taken, rest) = self.0.split_at(len.min(self.0.len()));
        self.0 = rest;
        taken
    }
}

struct Drive<'a> {
    engine: Engine,
    bytes: Bytes<'a>,
    now: Time,
    /// The last segments that hosts have received, by their number.
    received: [Vec<u8>; 2],
    /// When the last packet was handed over.
    at: Time,
    packet: Vec<u8>,
}

/// Runs what `bytes` say.
///
/// # Panics
/// If what hosts are handed is no packet, or comes before its time.
pub(crate) fn drive(specs: &[RunSpec], bytes: &[u8]) {
    let mut bytes = Bytes(bytes);
    let spec = &specs[usize::from(bytes.next()) % specs.len()];
    let (engine, received) = (Engine::new(spec), [Vec::new(), Vec::new()]);
    let mut drive = Drive { engine, bytes, now: Time::ZERO, received, at: Time::ZERO, packet: Vec::new() };
    while !drive.bytes.0.is_empty() {
        drive.order();
    }
    drive.now = drive.now.max(END);
    drive.catch_up();
    let _ = drive.engine.error();
    let summary = drive.engine.world().summary();
    assert_eq!(summary.flows.len(), 3);
    drive.engine.world().drain();
    drive.now += Span::from_secs(60);
    drive.catch_up();
}

impl Drive<'_> {
    /// A time that passes, and a packet.
    fn order(&mut self) {
        let order = self.bytes.next();
        let gap = self.bytes.next();
        // Up to half a second.
        self.now += Span::from_micros(u64::from(gap & 31) << (2 * (gap >> 5)));
        self.catch_up();
        let node = usize::from(order & 1);
        self.packet.clear();
        match order >> 1 & 15 {
            0 => self.anything(),
            1 => self.ipv6(),
            2 => self.ipv4(),
            3 => self.segment(node),
            4 => self.syn(node),
            _ => self.reply(node),
        }
        self.change();
        if order >> 5 & 1 == 1 {
            return self.offload(node);
        }
        let room = self.engine.buffer();
        let len = self.packet.len().min(room.len());
        room[..len].copy_from_slice(&self.packet[..len]);
        self.engine.arrive(self.now, node, len);
    }

    /// The packet, or a longer one, comes from a device with offloads that says anything about it.
    fn offload(&mut self, node: usize) {
        let [flags, kind, size, longer] = [(); 4].map(|()| self.bytes.next());
        let mut header = [0; 10];
        header[0] = flags & 1;
        header[1] = [0, 1, 4, 5, 0x81, 3, kind, 1][usize::from(kind & 7)];
        header[4..6].copy_from_slice(&(u16::from(size) << (longer & 3)).to_ne_bytes());
        let v6 = self.packet.first().is_some_and(|first| first >> 4 == 6);
        let [start, offset] = match flags >> 1 & 3 {
            0 => [self.bytes.word(), self.bytes.word()],
            _ => [if v6 { 40 } else { 20 }, if header[1] == 5 { 6 } else { 16 }],
        };
        header[6..8].copy_from_slice(&start.to_ne_bytes());
        header[8..10].copy_from_slice(&offset.to_ne_bytes());
        if longer & 4 != 0 && self.packet.len() >= 40 {
            let len = self.packet.len() + 300 * usize::from(longer >> 3);
            self.packet.resize(len, 7);
            if v6 {
                self.packet[4..6].copy_from_slice(&(len as u16 - 40).to_be_bytes());
            } else {
                self.packet[2..4].copy_from_slice(&(len as u16).to_be_bytes());
                let header_len = (4 * usize::from(self.packet[0] & 15)).clamp(20, 40);
                self.packet[10..12].fill(0);
                let sum = Sum16BitWords::new().add_slice(&self.packet[..header_len]).ones_complement();
                self.packet[10..12].copy_from_slice(&sum.to_ne_bytes());
            }
        }
        let [room, rest] = self.engine.buffers();
        let len = self.packet.len().min(room.len() + rest.len());
        let split = len.min(room.len());
        room[..split].copy_from_slice(&self.packet[..split]);
        rest[..len - split].copy_from_slice(&self.packet[split..len]);
        self.engine.arrive_offloaded(self.now, node, len, Offload::read(&header), |_| {});
    }

    /// Takes what is handed over.
    fn catch_up(&mut self) {
        while let Some(out) = self.engine.advance(self.now) {
            assert!(self.at <= out.at && out.at <= self.now, "{:?} {:?} {:?}", self.at, out.at, self.now);
            self.at = out.at;
            let bytes = [out.bytes, out.rest].concat();
            check(&bytes);
            if bytes.len() >= 40 && bytes[0] == 0x45 && bytes[9] == 6 {
                self.received[out.node] = bytes;
            }
        }
        // Nothing is handled after the end.
        assert!(self.engine.next_due() > self.now.min(END));
    }

    fn anything(&mut self) {
        let len = usize::from(self.bytes.next());
        let taken = self.bytes.take(len);
        self.packet.extend_from_slice(taken);
    }

    fn ipv6(&mut self) {
        let [class, next, hop_limit, ends] = [(); 4].map(|()| self.bytes.next());
        let len = usize::from(self.bytes.word() % 2048);
        self.packet.extend([0x60 | class >> 4, class << 4, 0, 0]);
        self.packet.extend((len as u16).to_be_bytes());
        self.packet.extend([next, hop_limit]);
        for end in [ends & 15, ends >> 4] {
            let mut address = [0; 16];
            address[0] = [0xfd, 0xfd, 0xff, 0xfe][usize::from(end >> 2)];
            address[15] = end & 3;
            self.packet.extend(address);
        }
        let taken = self.bytes.take(len.min(64));
        self.packet.extend_from_slice(taken);
        self.packet.resize(40 + len, 0);
    }

    /// Any header with the right checksum.
    fn ipv4(&mut self) {
        let [words, tos, high, low, ttl, protocol, ends] = [(); 7].map(|()| self.bytes.next());
        let header_len = 4 * usize::from(words & 15).max(5);
        let len = usize::from(self.bytes.word() % 2048);
        self.header(header_len, len, [high, low], [ttl, protocol], [ends & 7, ends >> 4 & 7]);
        self.packet[1] = tos;
        let options = self.bytes.take(header_len - 20);
        self.packet[20..20 + options.len()].copy_from_slice(options);
        let payload = self.bytes.take(len.min(64));
        self.packet[header_len..header_len + payload.len()].copy_from_slice(payload);
        sum(&mut self.packet);
    }

    fn header(&mut self, header_len: usize, len: usize, fragment: [u8; 2], ttl: [u8; 2], ends: [u8; 2]) {
        self.packet.resize(header_len + len, 0);
        self.packet[0] = 0x40 | (header_len / 4) as u8;
        self.packet[2..4].copy_from_slice(&((header_len + len) as u16).to_be_bytes());
        self.packet[6..8].copy_from_slice(&fragment);
        self.packet[8..10].copy_from_slice(&ttl);
        for (at, end) in [12, 16].into_iter().zip(ends) {
            self.packet[at..at + 4].copy_from_slice(&ADDRESSES[usize::from(end)]);
        }
    }

    /// A segment of a flow, or nearly.
    fn segment(&mut self, node: usize) {
        let [to, ports, offset, flags] = [(); 4].map(|()| self.bytes.next());
        let header_len = 4 * usize::from(offset & 15).max(5);
        let len = usize::from(self.bytes.word() % 1500);
        self.header(20, header_len + len, [0x40, 0], [64, 6], [node as u8 + 1, to & 3]);
        let segment = &mut self.packet[20..];
        for (at, port) in [0, 2].into_iter().zip([ports & 3, ports >> 4 & 3]) {
            segment[at..at + 2].copy_from_slice(&PORTS[usize::from(port)].to_be_bytes());
        }
        let numbers = self.bytes.take(8);
        segment[4..4 + numbers.len()].copy_from_slice(numbers);
        segment[14..16].copy_from_slice(&self.bytes.word().to_be_bytes());
        segment[12..14].copy_from_slice(&[(header_len as u8 / 4) << 4 | offset >> 4, flags]);
        let options = self.bytes.take(header_len - 20);
        segment[20..20 + options.len()].copy_from_slice(options);
        sum(&mut self.packet);
    }

    /// The first segment of a connection, with the options that all stacks send.
    fn syn(&mut self, node: usize) {
        let [to, port] = [(); 2].map(|()| self.bytes.next());
        self.header(20, 40, [0x40, 0], [64, 6], [node as u8 + 1, to & 3]);
        let segment = &mut self.packet[20..];
        segment[..2].copy_from_slice(&[0xc0, port]);
        segment[2..4].copy_from_slice(&PORTS[usize::from(port & 3)].to_be_bytes());
        segment[4..8].copy_from_slice(&[0xff, 0xff, 0xff, to]);
        // An MSS of 1460, SACK permitted, timestamps, window scaling.
        segment[12..16].copy_from_slice(&[0xa0, 2, 0xff, 0xff]);
        segment[20..32].copy_from_slice(&[2, 4, 0x05, 0xb4, 4, 2, 8, 10, 0, 0, 0, 1]);
        segment[36..40].copy_from_slice(&[1, 3, 3, 7]);
        sum(&mut self.packet);
    }

    /// A plausible reply of a host to the last segment that it received: ports and numbers
    /// exchanged.
    fn reply(&mut self, node: usize) {
        let packet = &self.received[node];
        if packet.is_empty() {
            return self.syn(node);
        }
        let header_len = usize::from(packet[32] >> 4) * 4;
        let syn = packet[33] & 2 != 0;
        let payload = packet.len().saturating_sub(20 + header_len) as u32 + u32::from(packet[33] & 1) + u32::from(syn);
        let word = |at: usize| u32::from_be_bytes([packet[at], packet[at + 1], packet[at + 2], packet[at + 3]]);
        let (seq, ack) = (word(28), word(24).wrapping_add(payload));
        let ports = [packet[22], packet[23], packet[20], packet[21]];
        let (source, destination) =
            ([packet[16], packet[17], packet[18], packet[19]], [packet[12], packet[13], packet[14], packet[15]]);
        let [how, flags] = [(); 2].map(|()| self.bytes.next());
        let options = self.bytes.take(if how & 1 != 0 { usize::from(how >> 4) } else { 0 });
        let options_len = options.len().next_multiple_of(4);
        let len = if how & 2 != 0 { usize::from(self.bytes.word() % 1400) } else { 0 };
        self.header(20, 20 + options_len + len, [0x40, 0], [64, 6], [0, 0]);
        self.packet[1] = how >> 2 & 3;
        self.packet[12..16].copy_from_slice(&source);
        self.packet[16..20].copy_from_slice(&destination);
        let segment = &mut self.packet[20..];
        segment[..4].copy_from_slice(&ports);
        segment[4..8].copy_from_slice(&seq.to_be_bytes());
        segment[8..12].copy_from_slice(&ack.to_be_bytes());
        // ACK, SYN if it was one, and now and then something else.
        let flags = 0x10 | if syn { 2 } else { 0 } ^ if flags & 0x80 != 0 { flags & 0x7f } else { 0 };
        segment[12..14].copy_from_slice(&[((20 + options_len) as u8 / 4) << 4, flags]);
        segment[14..16].copy_from_slice(&[0xff, 0xff]);
        segment[20..20 + options.len()].copy_from_slice(options);
        sum(&mut self.packet);
    }

    /// Changes some bytes, and mends the checksums or not.
    fn change(&mut self) {
        let how = self.bytes.next();
        let changes = if how < 0x40 { how & 3 } else { 0 };
        for _ in 0..changes {
            let [at, value] = [(); 2].map(|()| self.bytes.next());
            if let Some(byte) = self.packet.get_mut(usize::from(at)) {
                *byte = byte.wrapping_add(value);
            }
        }
        if how & 4 == 0 || changes == 0 {
            sum(&mut self.packet);
        }
        if how & 0xf8 == 0x40 {
            let len = usize::from(self.bytes.next());
            self.packet.truncate(len);
        }
    }
}

/// Makes the checksums right, if it is a packet that has some.
fn sum(packet: &mut [u8]) {
    let Ok(header) = Ipv4HeaderSlice::from_slice(packet) else { return };
    let (source, destination, protocol) = (header.source(), header.destination(), header.protocol().0);
    let header_len = header.slice().len();
    let end = usize::from(header.total_len()).clamp(header_len, packet.len().max(header_len));
    let checksum = header.to_header().calc_header_checksum();
    packet[10..12].copy_from_slice(&checksum.to_be_bytes());
    let carried = &mut packet[header_len..end];
    let pseudo = Sum16BitWords::new()
        .add_4bytes(source)
        .add_4bytes(destination)
        .add_2bytes([0, protocol])
        .add_2bytes((carried.len() as u16).to_be_bytes());
    let (at, start) = match protocol {
        1 => (2, Sum16BitWords::new()),
        6 => (16, pseudo),
        17 => (6, pseudo),
        _ => return,
    };
    if let Some(field) = carried.get_mut(at..at + 2) {
        field.fill(0);
        let checksum = start.add_slice(carried).ones_complement();
        carried[at..at + 2].copy_from_slice(&checksum.to_ne_bytes());
    }
}

/// A host is handed whole packets with right headers.
fn check(packet: &[u8]) {
    if packet[0] >> 4 == 6 {
        let header = Ipv6HeaderSlice::from_slice(packet).expect("a header");
        assert_eq!(usize::from(header.payload_length()) + 40, packet.len());
    } else {
        let header = Ipv4HeaderSlice::from_slice(packet).expect("a header");
        assert_eq!(usize::from(header.total_len()), packet.len());
        // Over the bytes as they are: a bit that is reserved may be set.
        assert_eq!(Sum16BitWords::new().add_slice(header.slice()).ones_complement(), 0, "{packet:x?}");
    }
}
