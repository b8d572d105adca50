//! Two captures packet by packet: the first packet of each connection in which they differ.
//!
//! A connection of a capture is what its opener's interface saw: a capture of several hosts has
//! each packet more than once. Sequence numbers count from the SYN, as Wireshark shows them, times
//! from the connection's first packet, and windows are scaled. Connections are matched in the order
//! of their first packets; addresses, ports and the values of timestamps do not matter.

use std::collections::BTreeMap;
use std::fmt::{self, Write};
use std::io::Read;
use std::net::IpAddr;
use std::path::Path;

use ackclock_live::CapturePackets;
use ackclock_packet::{Flags, FlowKey, Segment};
use ackclock_trace::open_regular;
use ackclock_units::Span;
use anyhow::{Context, bail};
use serde_json::{Value, json};

use crate::table::Table;

/// TCP's number in an IP header.
const TCP: u8 = 6;

/// Time stamps may differ by so much where nothing else is asked for.
const WITHIN: Span = Span::from_millis(1);

/// Packets shown before and after the first that differs.
const BEFORE: usize = 5;
const AFTER: usize = 3;

/// From the opener, and to it.
const ARROWS: [&str; 2] = [">", "<"];

/// The longest value in the table.
const VALUE: usize = 26;

/// The most connections that are shown one by one.
const SHOWN: usize = 20;

/// Returns `true` if a regular file begins as a capture does.
pub(super) fn is_capture(path: &str) -> bool {
    let mut magic = [0; 4];
    let read = open_regular(Path::new(path)).and_then(|mut file| file.read_exact(&mut magic));
    let known = [0x0a0d_0d0a, 0xa1b2_c3d4, 0xa1b2_3c4d, 0xd4c3_b2a1, 0x4d3c_b2a1];
    read.is_ok() && known.contains(&u32::from_le_bytes(magic))
}

/// Compares two captures; returns the text or the JSON.
pub(super) fn compare(a: &str, b: &str, within: Option<Span>, as_json: bool) -> anyhow::Result<String> {
    let within = within.unwrap_or(WITHIN);
    let captures = [TcpCapture::read(a)?, TcpCapture::read(b)?];
    let pairs = all_pairs(&captures, within);
    if as_json {
        let value = json!({
            "schema": 1,
            "a": a,
            "b": b,
            "within_s": within.as_secs_f64(),
            "connections_in_a": captures[0].connections.len(),
            "connections_in_b": captures[1].connections.len(),
            "connections": pairs.iter().map(ConnectionPair::json).collect::<Vec<_>>(),
        });
        return Ok(format!("{value}\n"));
    }
    let mut text = String::new();
    for (name, side) in [(a, &captures[0]), (b, &captures[1])] {
        let mut notes = String::new();
        for (count, what) in [(side.others, "no TCP"), (side.cut, "cut within their TCP header")] {
            if count > 0 {
                write!(notes, "; {count} packets are {what}")?;
            }
        }
        let count = side.connections.len();
        writeln!(text, "{name}: {count} connection{}{notes}", if count == 1 { "" } else { "s" })?;
    }
    write(&mut text, &pairs, within)?;
    Ok(text)
}

/// Where the connections of two captures part, as text.
pub(super) fn parted(a: &str, b: &str, within: Option<Span>) -> anyhow::Result<String> {
    let within = within.unwrap_or(WITHIN);
    let captures = [TcpCapture::read(a)?, TcpCapture::read(b)?];
    let mut text = String::new();
    write(&mut text, &all_pairs(&captures, within), within)?;
    Ok(text)
}

fn all_pairs(captures: &[TcpCapture; 2], within: Span) -> Vec<ConnectionPair<'_>> {
    let both = captures[0].connections.iter().zip(&captures[1].connections);
    both.map(|(a, b)| ConnectionPair::new([a, b], within)).collect()
}

fn write(text: &mut String, pairs: &[ConnectionPair<'_>], within: Span) -> fmt::Result {
    for pair in pairs.iter().take(SHOWN) {
        text.push('\n');
        pair.write(text, within)?;
    }
    if pairs.len() > SHOWN {
        let differ = pairs[SHOWN..].iter().filter(|pair| !pair.differences.is_empty()).count();
        writeln!(text, "\n{differ} of the other {} connections differ; --json lists them", pairs.len() - SHOWN)?;
    }
    Ok(())
}

/// The TCP connections of a capture.
#[derive(Debug)]
struct TcpCapture {
    connections: Vec<Connection>,
    /// IP packets that are not TCP, and packets whose TCP header was not captured as a whole.
    others: u64,
    cut: u64,
}

/// A connection at one interface.
#[derive(Debug)]
struct Connection {
    /// Addresses and ports of the opener and the other end.
    ends: [(IpAddr, u16); 2],
    interface: usize,
    interface_name: Option<String>,
    /// Time of the first packet, in nanoseconds since the epoch.
    start: i128,
    /// For the packets of either end: the number before its first byte, and the shift of its window.
    base: [Option<u32>; 2],
    shift: [Option<u8>; 2],
    packets: Vec<SeenPacket>,
}

/// A packet of a connection.
#[derive(Clone, Debug, PartialEq)]
struct SeenPacket {
    /// Nanoseconds since the connection's first packet.
    at: i128,
    /// 0: from the opener; 1: to it.
    way: usize,
    flags: Flags,
    seq: u32,
    len: u32,
    ack: u32,
    window: u64,
    sacks: Vec<(u32, u32)>,
    /// The ECN field of the IP header.
    ecn: u8,
    /// MSS, window scale, SACK permitted, timestamps: of a SYN.
    options: Option<(Option<u16>, Option<u8>, bool, bool)>,
}

impl TcpCapture {
    fn read(name: &str) -> anyhow::Result<TcpCapture> {
        let mut packets = CapturePackets::open(Path::new(name)).with_context(|| name.to_owned())?;
        let mut capture = TcpCapture { connections: Vec::new(), others: 0, cut: 0 };
        // The latest connection between two ends.
        let mut latest: BTreeMap<[(IpAddr, u16); 2], usize> = BTreeMap::new();
        while let Some(packet) = packets.next()? {
            let Some((key, ecn, header_len)) = header(packet.bytes) else {
                capture.others += 1;
                continue;
            };
            let tcp = packet.bytes.get(header_len..).unwrap_or_default();
            let Ok(segment) = ackclock_packet::codec::peek(tcp) else {
                capture.cut += 1;
                continue;
            };
            // The captured part may end within the payload.
            let tcp_header = tcp.get(12).map_or(0, |offset| usize::from(offset >> 4) * 4);
            let len = packet.len.saturating_sub(header_len + tcp_header) as u32;
            let from = (key.source, key.source_port);
            let to = (key.destination, key.destination_port);
            let ends = if from <= to { [from, to] } else { [to, from] };
            let opens = segment.flags.contains(Flags::SYN) && !segment.flags.contains(Flags::ACK);
            let known = latest.get(&ends).copied().filter(|&known| {
                let known = &capture.connections[known];
                !(opens && known.is_another(&segment, packet.interface))
            });
            let index = match known {
                Some(index) if capture.connections[index].interface != packet.interface => continue,
                Some(index) => index,
                None => {
                    capture.connections.push(Connection {
                        ends: [from, to],
                        interface: packet.interface,
                        interface_name: None,
                        start: packet.nanos,
                        base: [None; 2],
                        shift: [None; 2],
                        packets: Vec::new(),
                    });
                    latest.insert(ends, capture.connections.len() - 1);
                    capture.connections.len() - 1
                }
            };
            let connection = &mut capture.connections[index];
            let way = usize::from(connection.ends[0] != from);
            connection.add(packet.nanos, way, &segment, len, ecn);
        }
        for connection in &mut capture.connections {
            connection.interface_name = packets.interface_name(connection.interface).map(str::to_owned);
        }
        if capture.connections.is_empty() {
            bail!("{name} has no TCP packet");
        }
        Ok(capture)
    }
}

/// The ends, ECN field and length of an IP header before an unfragmented TCP segment.
fn header(bytes: &[u8]) -> Option<(FlowKey, u8, usize)> {
    let key = FlowKey::from_ip_packet(bytes).filter(|key| key.protocol == TCP)?;
    match *bytes {
        [first, tos, ..] if first >> 4 == 4 => {
            let fragment = u16::from_be_bytes([*bytes.get(6)?, *bytes.get(7)?]) & 0x3fff != 0;
            (!fragment).then_some((key, tos & 3, usize::from(first & 0xf) * 4))
        }
        // TCP behind extension headers is not read.
        [_, second, ..] => (*bytes.get(6)? == TCP).then_some((key, second >> 4 & 3, 40)),
        _ => None,
    }
}

impl Connection {
    /// Returns `true` if a SYN opens a further connection between the same ends.
    fn is_another(&self, syn: &Segment, interface: usize) -> bool {
        let is_same = self.base[0].is_some_and(|base| base == syn.seq);
        interface == self.interface && !is_same && self.packets.iter().any(|packet| packet.way == 1)
    }

    fn add(&mut self, nanos: i128, way: usize, segment: &Segment, len: u32, ecn: u8) {
        let flags = segment.flags;
        let is_syn = flags.contains(Flags::SYN);
        if is_syn {
            self.shift[way] = segment.window_scale;
        }
        // Without a SYN the first byte seen is number 1.
        let base = *self.base[way].get_or_insert(segment.seq.wrapping_sub(u32::from(!is_syn)));
        let has_ack = flags.contains(Flags::ACK);
        let other = match has_ack {
            true => *self.base[1 - way].get_or_insert(segment.ack.wrapping_sub(1)),
            false => 0,
        };
        let shift = if is_syn { 0 } else { self.shift[way].unwrap_or(0).min(14) };
        let shift = if self.shift.iter().any(Option::is_none) { 0 } else { shift };
        self.packets.push(SeenPacket {
            at: nanos - self.start,
            way,
            flags,
            seq: segment.seq.wrapping_sub(base),
            len,
            ack: if has_ack { segment.ack.wrapping_sub(other) } else { 0 },
            window: u64::from(segment.window) << shift,
            sacks: segment
                .sack
                .as_slice()
                .iter()
                .map(|&(left, right)| (left.wrapping_sub(other), right.wrapping_sub(other)))
                .collect(),
            ecn,
            options: is_syn.then_some((
                segment.mss,
                segment.window_scale,
                segment.sack_permitted,
                segment.timestamps.is_some(),
            )),
        });
    }

    fn ends(&self) -> String {
        let [opener, other] = self.ends.map(|(address, port)| std::net::SocketAddr::new(address, port));
        let at = self.interface_name.as_ref().map_or_else(String::new, |name| format!(" at {name}"));
        format!("{opener} > {other}, {} packets{at}", self.packets.len())
    }
}

impl SeenPacket {
    /// Takes sequence space, or resets: what one end decides to send. Others acknowledge only.
    fn sends(&self) -> bool {
        let mark = [Flags::SYN, Flags::FIN, Flags::RST].into_iter().any(|flag| self.flags.contains(flag));
        self.len > 0 || mark
    }

    fn flag(&self, flag: Flags) -> bool {
        self.flags.contains(flag)
    }
}

impl fmt::Display for SeenPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:.6} {}", self.at as f64 / 1e9, ARROWS[self.way])?;
        let names = [("SYN", Flags::SYN), ("FIN", Flags::FIN), ("RST", Flags::RST), ("PSH", Flags::PSH)];
        for (name, _) in names.into_iter().filter(|&(_, flag)| self.flag(flag)) {
            write!(f, " {name}")?;
        }
        if self.sends() {
            write!(f, " seq {}+{}", self.seq, self.len)?;
        } else {
            write!(f, " ack {}", self.ack)?;
        }
        for (left, right) in &self.sacks {
            write!(f, " [{left}-{right}]")?;
        }
        write!(f, " win {}", self.window)
    }
}

/// What two packets of the same rank can differ in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Aspect {
    Data,
    Push,
    Acknowledgment,
    Sack,
    Window,
    Ecn,
    Options,
    Time,
    Count,
}

impl Aspect {
    const OF_DATA: [Aspect; 5] = [Aspect::Data, Aspect::Push, Aspect::Ecn, Aspect::Options, Aspect::Time];
    const OF_ACKS: [Aspect; 5] = [Aspect::Acknowledgment, Aspect::Sack, Aspect::Window, Aspect::Ecn, Aspect::Time];

    fn name(self) -> &'static str {
        match self {
            Aspect::Data => "segment",
            Aspect::Push => "PSH",
            Aspect::Acknowledgment => "acknowledgment",
            Aspect::Sack => "SACK",
            Aspect::Window => "window",
            Aspect::Ecn => "ECN",
            Aspect::Options => "options of the SYN",
            Aspect::Time => "time",
            Aspect::Count => "number of packets",
        }
    }

    /// Returns `true` for what an end sends and acknowledges, and when; `false` for what it only
    /// announces, and for packets that the other capture lacks.
    fn matters(self) -> bool {
        !matches!(self, Aspect::Push | Aspect::Window | Aspect::Options | Aspect::Count)
    }

    fn differs(self, a: &SeenPacket, b: &SeenPacket, within: Span) -> bool {
        let marks =
            |packet: &SeenPacket, flags: &[Flags]| flags.iter().map(|&flag| packet.flag(flag)).collect::<Vec<_>>();
        match self {
            Aspect::Data => {
                let of = |packet: &SeenPacket| {
                    (packet.seq, packet.len, marks(packet, &[Flags::SYN, Flags::FIN, Flags::RST]))
                };
                of(a) != of(b)
            }
            Aspect::Push => a.flag(Flags::PSH) != b.flag(Flags::PSH),
            Aspect::Acknowledgment => a.ack != b.ack,
            Aspect::Sack => a.sacks != b.sacks,
            Aspect::Window => a.window != b.window,
            Aspect::Ecn => {
                let of = |packet: &SeenPacket| (packet.ecn, marks(packet, &[Flags::ECE, Flags::CWR, Flags::AE]));
                of(a) != of(b)
            }
            Aspect::Options => a.options != b.options,
            Aspect::Time => (a.at - b.at).unsigned_abs() > u128::from(within.as_nanos()),
            Aspect::Count => false,
        }
    }

    /// The differing values.
    fn values(self, packet: &SeenPacket) -> String {
        let flags = |names: &[(&str, Flags)]| {
            let set = names.iter().filter(|(_, flag)| packet.flag(*flag)).map(|(name, _)| *name);
            set.collect::<Vec<_>>().join(" ")
        };
        match self {
            Aspect::Data => {
                let flags = flags(&[("SYN", Flags::SYN), ("FIN", Flags::FIN), ("RST", Flags::RST)]);
                format!("{} {flags}", format_args!("{}+{}", packet.seq, packet.len)).trim_end().to_owned()
            }
            Aspect::Push => if packet.flag(Flags::PSH) { "set" } else { "not set" }.to_owned(),
            Aspect::Acknowledgment => packet.ack.to_string(),
            Aspect::Sack => {
                let blocks = packet.sacks.iter().map(|(left, right)| format!("{left}-{right}"));
                let blocks = blocks.collect::<Vec<_>>().join(" ");
                if blocks.is_empty() { "none".to_owned() } else { blocks }
            }
            Aspect::Window => packet.window.to_string(),
            Aspect::Ecn => {
                let flags = flags(&[("ECE", Flags::ECE), ("CWR", Flags::CWR), ("AE", Flags::AE)]);
                let field = ["Not-ECT", "ECT(1)", "ECT(0)", "CE"][usize::from(packet.ecn & 3)];
                format!("{field} {flags}").trim_end().to_owned()
            }
            Aspect::Options => {
                let (mss, scale, sack, timestamps) = packet.options.unwrap_or_default();
                let mut said: Vec<String> = Vec::new();
                said.extend(mss.map(|mss| format!("mss {mss}")));
                said.extend(scale.map(|scale| format!("wscale {scale}")));
                said.extend(sack.then(|| "sack".to_owned()));
                said.extend(timestamps.then(|| "ts".to_owned()));
                said.join(" ")
            }
            Aspect::Time => format!("{:.6}", packet.at as f64 / 1e9),
            Aspect::Count => String::new(),
        }
    }
}

/// A value that fits a table.
fn short(value: String) -> String {
    if value.chars().count() <= VALUE { value } else { value.chars().take(VALUE - 1).chain(['…']).collect() }
}

/// The first difference of a kind.
#[derive(Debug)]
struct FirstDifference {
    aspect: Aspect,
    way: usize,
    /// `true`: among packets with data or flags; `false`: among those that only acknowledge.
    of_data: bool,
    /// Number of packets of this kind before it, which do not differ in this.
    equal: usize,
    /// Places in the connections; `None` behind the last packet of one.
    places: [Option<usize>; 2],
    /// Nanoseconds since the connection's first packet, the earlier of both.
    at: i128,
}

/// A connection of either capture.
#[derive(Debug)]
struct ConnectionPair<'a> {
    sides: [&'a Connection; 2],
    /// The earliest first.
    differences: Vec<FirstDifference>,
}

impl<'a> ConnectionPair<'a> {
    fn new(sides: [&'a Connection; 2], within: Span) -> ConnectionPair<'a> {
        let mut differences = Vec::new();
        for (way, of_data) in [(0, true), (0, false), (1, true), (1, false)] {
            let of = |side: &Connection| -> Vec<usize> {
                let fits = |packet: &SeenPacket| packet.way == way && packet.sends() == of_data;
                (0..side.packets.len()).filter(|&index| fits(&side.packets[index])).collect()
            };
            let lists = sides.map(of);
            let aspects = if of_data { Aspect::OF_DATA } else { Aspect::OF_ACKS };
            for aspect in aspects {
                let differs =
                    |(&a, &b): (&usize, &usize)| aspect.differs(&sides[0].packets[a], &sides[1].packets[b], within);
                let Some(equal) = lists[0].iter().zip(&lists[1]).position(differs) else { continue };
                let places = [Some(lists[0][equal]), Some(lists[1][equal])];
                differences.push(FirstDifference { aspect, way, of_data, equal, places, at: 0 });
            }
            let equal = lists[0].len().min(lists[1].len());
            if lists[0].len() != lists[1].len() {
                let places = [lists[0].get(equal).copied(), lists[1].get(equal).copied()];
                differences.push(FirstDifference { aspect: Aspect::Count, way, of_data, equal, places, at: 0 });
            }
        }
        for difference in &mut differences {
            let times = (0..2).filter_map(|side| Some(sides[side].packets[difference.places[side]?].at));
            difference.at = times.min().unwrap_or(0);
        }
        // Of differences at one time, others explain that of the time.
        differences.sort_by_key(|difference| (difference.at, difference.aspect == Aspect::Time));
        ConnectionPair { sides, differences }
    }

    fn values(&self, difference: &FirstDifference) -> [String; 2] {
        [0, 1].map(|side| {
            let packet = difference.places[side].map(|place| &self.sides[side].packets[place]);
            match (packet, difference.aspect) {
                (None, _) => "no more".to_owned(),
                (Some(packet), Aspect::Count) if packet.sends() => Aspect::Data.values(packet),
                (Some(packet), Aspect::Count) => Aspect::Acknowledgment.values(packet),
                (Some(packet), aspect) => aspect.values(packet),
            }
        })
    }

    fn write(&self, text: &mut String, within: Span) -> fmt::Result {
        writeln!(text, "A  {}\nB  {}", self.sides[0].ends(), self.sides[1].ends())?;
        let Some(earliest) = self.differences.first() else {
            return writeln!(text, "The same packets, at the same times within {within}.");
        };
        let first = self.differences.iter().find(|difference| difference.aspect.matters()).unwrap_or(earliest);
        let [a, b] = self.values(first).map(short);
        let kind = if first.of_data { "data" } else { "ACK" };
        writeln!(
            text,
            "They part at {:.6} s, {kind} packet {} {} the opener, by {}: {a} in A, {b} in B.\n",
            first.at as f64 / 1e9,
            first.equal + 1,
            ["from", "to"][first.way],
            first.aspect.name(),
        )?;
        let mut table = Table::new(4, ["first difference", "in", "after", "at s", "A", "B"]);
        for difference in &self.differences {
            let [a, b] = self.values(difference).map(short);
            let kind = if difference.of_data { "data" } else { "ACKs" };
            table.row([
                difference.aspect.name().to_owned(),
                format!("{kind} {}", ARROWS[difference.way]),
                difference.equal.to_string(),
                format!("{:.6}", difference.at as f64 / 1e9),
                a,
                b,
            ]);
        }
        text.push_str(&table.render());
        for (name, (side, place)) in ["A", "B"].into_iter().zip(self.sides.iter().zip(first.places)) {
            let place = place.unwrap_or(side.packets.len());
            let from = place.saturating_sub(BEFORE);
            writeln!(text, "\n{name} at this packet (> from the opener, < to it):")?;
            for (index, packet) in side.packets.iter().enumerate().skip(from).take(place - from + 1 + AFTER) {
                writeln!(text, "{} {packet}", if index == place { "*" } else { " " })?;
            }
        }
        Ok(())
    }

    fn json(&self) -> Value {
        let side = |side: &Connection| {
            let [opener, other] = side.ends.map(|(address, port)| std::net::SocketAddr::new(address, port).to_string());
            json!({ "from": opener, "to": other, "at": side.interface_name, "packets": side.packets.len() })
        };
        let differences: Vec<Value> = self
            .differences
            .iter()
            .map(|difference| {
                let [a, b] = self.values(difference);
                json!({
                    "in": difference.aspect.name(),
                    "from_opener": difference.way == 0,
                    "data": difference.of_data,
                    "packets_before": difference.equal,
                    "at_s": difference.at as f64 / 1e9,
                    "a": a,
                    "b": b,
                })
            })
            .collect();
        json!({ "a": side(self.sides[0]), "b": side(self.sides[1]), "differences": differences })
    }
}
