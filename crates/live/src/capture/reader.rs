//! Reading captures of ackclock and of other tools.

use std::fs::File;
use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};

use ackclock_sim::spec::NodeSpec;
use ackclock_units::Time;
use pcap_parser::{
    BOM_MAGIC, EPB_MAGIC, IDB_MAGIC, ISB_MAGIC, SHB_MAGIC, SPB_MAGIC, parse_enhancedpacketblock_be,
    parse_enhancedpacketblock_le, parse_interfacedescriptionblock_be, parse_interfacedescriptionblock_le,
    parse_interfacestatisticsblock_be, parse_interfacestatisticsblock_le, parse_pcap_frame, parse_pcap_frame_be,
    parse_pcap_header, parse_sectionheaderblock,
};

use super::failure::{ReadFailure, cut, malformed, unknown_link};
use super::link::{self, CaptureLinkLayer};
use super::section::{PcapSection, TimestampFormat};
use super::stream::PieceReader;
use super::{CaptureDirection, INBOUND, OUTBOUND};
use crate::LiveError;

/// The predecessor of the enhanced packet block (appendix A); current tools do not write it.
const OBSOLETE_PACKET: u32 = 2;

/// The longest block that is read into memory; a block with an IP packet is shorter.
const LONGEST: usize = 1 << 20;

/// Bytes of the header of a pcap file, and of the header of a packet in it.
const PCAP_HEADER: usize = 24;
const PCAP_PACKET: usize = 16;

/// The packets of a capture, in chronological order, in constant memory.
///
/// In ackclock's own captures an interface is the host of the same name, every packet has a
/// direction, and the capture must be complete. In any other capture, pcapng or pcap, an interface
/// belongs to the host whose name or device it is named after, and directions are used where they
/// are present. Every other packet is attributed to the host that owns its source address, or
/// ignored if no host does. Time 0 is the first packet.
#[derive(Debug)]
pub(crate) struct CaptureReader {
    path: PathBuf,
    stream: PieceReader,
    /// The hosts of the scenario; `None` reads the packets of every interface, whoever wrote them.
    nodes: Option<Vec<NodeSpec>>,
    format: CaptureFormat,
    /// Packets read so far, and the number of these that belong to a host.
    packets: u64,
    matched: u64,
    /// Packet number `packets` is being read.
    in_packet: bool,
    /// Time 0, in nanoseconds since the epoch.
    start: Option<i128>,
    /// The time of the last packet that a host sent.
    last: Time,
    /// Changes that were made since the previous packet.
    changes: Vec<Changes>,
    /// The end of the recorded run, set at the end of ackclock's own captures.
    end: Option<Time>,
}

/// Changes that were made together: their time, and their texts (`KEY=VALUE`).
pub(crate) type Changes = (Time, Vec<String>);

/// A packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Captured<'a> {
    /// Time since the beginning of the run.
    pub(crate) at: Time,
    /// The host that sent or received it.
    pub(crate) node: usize,
    /// Sent or received.
    pub(crate) way: CaptureDirection,
    /// The packet from its IP header on, up to the snapshot length.
    pub(crate) bytes: &'a [u8],
    /// The length of the whole packet, in bytes.
    pub(crate) len: usize,
    /// Changes that were made between the previous packet and this one.
    pub(crate) changes: &'a [Changes],
}

#[derive(Debug)]
enum CaptureFormat {
    Pcapng(PcapSection),
    Pcap { big_endian: bool, clock: TimestampFormat, link: CaptureLinkLayer },
}

/// A captured frame as it is in the file.
#[derive(Clone, Copy, Debug)]
struct CapturedFrame {
    /// Nanoseconds since the epoch.
    at: i128,
    link: CaptureLinkLayer,
    interface: usize,
    /// The host at whose interface it was captured.
    node: Option<usize>,
    way: Option<CaptureDirection>,
    /// Offset of the frame within the piece of the file.
    from: usize,
    captured: usize,
    original: u64,
}

/// A packet of a host, with its range within the piece of the file.
#[derive(Debug)]
struct HostPacket {
    at: Time,
    node: usize,
    way: CaptureDirection,
    place: Range<usize>,
    len: usize,
}

/// The next item of the file.
#[derive(Debug)]
enum CaptureItem {
    Frame(CapturedFrame),
    Other,
    End,
}

impl CaptureReader {
    /// Opens a capture and reads its first header.
    pub(crate) fn open(path: &Path, nodes: Option<&[NodeSpec]>) -> Result<CaptureReader, LiveError> {
        let file = File::open(path).map_err(|source| LiveError::File { path: path.to_owned(), source })?;
        CaptureReader::new(path, file, nodes)
    }

    /// Reads a capture from `file`, which messages call `path`.
    pub(super) fn new(
        path: &Path,
        file: impl io::Read + Send + 'static,
        nodes: Option<&[NodeSpec]>,
    ) -> Result<CaptureReader, LiveError> {
        let mut reader = CaptureReader {
            path: path.to_owned(),
            stream: PieceReader::new(file),
            nodes: nodes.map(<[NodeSpec]>::to_vec),
            format: CaptureFormat::Pcapng(PcapSection::default()),
            packets: 0,
            matched: 0,
            in_packet: false,
            start: None,
            last: Time::ZERO,
            changes: Vec::new(),
            end: None,
        };
        match reader.header() {
            Ok(()) => Ok(reader),
            Err(failure) => Err(reader.error(failure)),
        }
    }

    /// The fingerprint of the recorded scenario, in ackclock's own captures.
    pub(crate) fn scenario(&self) -> Option<u64> {
        match &self.format {
            CaptureFormat::Pcapng(section) => section.scenario,
            CaptureFormat::Pcap { .. } => None,
        }
    }

    /// The end of the recorded run: known after the last packet, in ackclock's own captures.
    pub(crate) fn end(&self) -> Option<Time> {
        self.end
    }

    /// The changes that were made after the last packet: known once [`next`](CaptureReader::next)
    /// has returned `None`.
    pub(crate) fn last_changes(&self) -> &[Changes] {
        &self.changes
    }

    /// The next packet that a host sent or received; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, is no capture, was cut, or is not in chronological order. No
    /// further packet can be read after an error.
    pub(crate) fn next(&mut self) -> Result<Option<Captured<'_>>, LiveError> {
        self.changes.clear();
        match self.advance() {
            Ok(Some(HostPacket { at, node, way, place, len })) => {
                Ok(Some(Captured { at, node, way, bytes: &self.stream.piece()[place], len, changes: &self.changes }))
            }
            Ok(None) => Ok(None),
            Err(failure) => Err(self.error(failure)),
        }
    }

    /// The next IP packet of any interface.
    fn any(&mut self) -> Result<Option<(CapturedFrame, Range<usize>, usize)>, ReadFailure> {
        while let Some(frame) = self.frame()? {
            if let Some((place, len)) = self.place(&frame)? {
                return Ok(Some((frame, place, len)));
            }
        }
        Ok(None)
    }

    fn error(&self, failure: ReadFailure) -> LiveError {
        let path = self.path.clone();
        let (byte, packets) = (self.stream.position(), self.packets);
        match failure {
            ReadFailure::Io(source) => LiveError::File { path, source },
            ReadFailure::Problem(problem) if self.in_packet => {
                LiveError::Capture { path, problem: format!("packet {packets}, at byte {byte}: {problem}") }
            }
            ReadFailure::Problem(problem) => {
                LiveError::Capture { path, problem: format!("at byte {byte}, after {packets} packets: {problem}") }
            }
        }
    }

    /// Reads the first header of the file.
    fn header(&mut self) -> Result<(), ReadFailure> {
        let magic = self.stream.look(4)?.first_chunk().map(|bytes| u32::from_le_bytes(*bytes));
        match magic {
            Some(SHB_MAGIC) => self.block().map(drop),
            Some(0xa1b2_c3d4 | 0xa1b2_3c4d | 0xd4c3_b2a1 | 0x4d3c_b2a1) => {
                if !self.stream.take(PCAP_HEADER)? {
                    return Err("the file ends in its header".into());
                }
                let (_, header) = parse_pcap_header(self.stream.piece()).map_err(|_| "it has no pcap header")?;
                let linktype = header.network.0 & 0xffff;
                let link = CaptureLinkLayer::new(linktype).ok_or_else(|| unknown_link(linktype))?;
                let clock =
                    TimestampFormat::new(if header.is_nanosecond_precision() { 1_000_000_000 } else { 1_000_000 });
                self.format = CaptureFormat::Pcap { big_endian: header.is_bigendian(), clock, link };
                Ok(())
            }
            Some(_) => Err("it does not begin as a capture does, pcapng or pcap".into()),
            None => Err("it is too short for a capture".into()),
        }
    }

    /// The next packet of a host.
    fn advance(&mut self) -> Result<Option<HostPacket>, ReadFailure> {
        while let Some(frame) = self.frame()? {
            if let Some(found) = self.packet(frame)? {
                return Ok(Some(found));
            }
        }
        self.close()?;
        Ok(None)
    }

    /// The next frame of any interface; `None` at the end.
    fn frame(&mut self) -> Result<Option<CapturedFrame>, ReadFailure> {
        loop {
            self.in_packet = false;
            let step = match self.format {
                CaptureFormat::Pcapng(_) => self.block()?,
                CaptureFormat::Pcap { big_endian, clock, link } => self.pcap_packet(big_endian, clock, link)?,
            };
            match step {
                CaptureItem::Other => {}
                CaptureItem::End => return Ok(None),
                CaptureItem::Frame(frame) => return Ok(Some(frame)),
            }
        }
    }

    /// The range of a frame's IP packet within the piece, as far as it was captured, and its whole
    /// length; `None` if it contains none.
    fn place(&self, frame: &CapturedFrame) -> Result<Option<(Range<usize>, usize)>, ReadFailure> {
        let Some(bytes) = self.stream.piece().get(frame.from..frame.from + frame.captured) else {
            return Err(malformed("packet").into());
        };
        // ackclock's own devices read nothing but packets, whatever the contents.
        let original = usize::try_from(frame.original).unwrap_or(usize::MAX).max(bytes.len());
        let whole = match (frame.way, frame.link) {
            (Some(_), CaptureLinkLayer::Raw) => Some(0..original),
            _ => frame.link.ip(bytes, original),
        };
        Ok(whole.map(|whole| (frame.from + whole.start..frame.from + whole.end.min(bytes.len()), whole.len())))
    }

    /// The next block of a pcapng file.
    fn block(&mut self) -> Result<CaptureItem, ReadFailure> {
        let CaptureFormat::Pcapng(section) = &mut self.format else { return Ok(CaptureItem::End) };
        self.stream.leave();
        let start = self.stream.look(12)?;
        if start.is_empty() {
            return Ok(CaptureItem::End);
        }
        let Some(start) = start.first_chunk::<12>() else { return Err(cut()) };
        let [kind, len, order] = [0, 4, 8].map(|at| [start[at], start[at + 1], start[at + 2], start[at + 3]]);
        let kind_le = u32::from_le_bytes(kind);
        // The type of the section header is a palindrome; its magic number tells the byte order.
        let big_endian = match kind_le {
            SHB_MAGIC if order == BOM_MAGIC.to_le_bytes() => false,
            SHB_MAGIC if order == BOM_MAGIC.to_be_bytes() => true,
            SHB_MAGIC => return Err("a section header without the byte-order magic".into()),
            _ => section.big_endian,
        };
        let [kind, len] =
            [kind, len].map(|it| if big_endian { u32::from_be_bytes(it) } else { u32::from_le_bytes(it) });
        let is_packet = [EPB_MAGIC, SPB_MAGIC, OBSOLETE_PACKET].contains(&kind);
        if is_packet {
            self.in_packet = true;
            self.packets += 1;
        }
        // The type and two copies of the length.
        if len < 12 || len % 4 != 0 {
            return Err(format!("a block of {len} bytes; they have at least 12, and whole words").into());
        }
        if !is_packet && ![SHB_MAGIC, IDB_MAGIC, ISB_MAGIC].contains(&kind) {
            return if self.stream.skip(u64::from(len))? { Ok(CaptureItem::Other) } else { Err(cut()) };
        }
        if len as usize > LONGEST {
            return Err(format!("a block of {len} bytes, more than one with an IP packet has").into());
        }
        if !self.stream.take(len as usize)? {
            return Err(cut());
        }
        self.whole_block(kind, big_endian)
    }

    /// Interprets the block that has been read.
    fn whole_block(&mut self, kind: u32, big_endian: bool) -> Result<CaptureItem, ReadFailure> {
        let CaptureFormat::Pcapng(section) = &mut self.format else { return Ok(CaptureItem::End) };
        let piece = self.stream.piece();
        let (first, last) = (&piece[4..8], &piece[piece.len() - 4..]);
        if first != last {
            return Err(format!("a block of {} bytes has another length at its end", piece.len()).into());
        }
        match kind {
            SHB_MAGIC => {
                if section.own {
                    return Err("a capture of ackclock has one section".into());
                }
                let (_, header) = parse_sectionheaderblock(piece).map_err(|_| malformed("section header"))?;
                *section = PcapSection::new(&header)?;
                section.own &= self.nodes.is_some();
                Ok(CaptureItem::Other)
            }
            IDB_MAGIC => {
                let parse =
                    if big_endian { parse_interfacedescriptionblock_be } else { parse_interfacedescriptionblock_le };
                let (_, interface) = parse(piece).map_err(|_| malformed("interface description"))?;
                section.add(&interface, self.nodes.as_deref().unwrap_or_default())?;
                Ok(CaptureItem::Other)
            }
            ISB_MAGIC => {
                let parse =
                    if big_endian { parse_interfacestatisticsblock_be } else { parse_interfacestatisticsblock_le };
                let (_, statistics) = parse(piece).map_err(|_| malformed("interface statistics"))?;
                section.statistics(&statistics)?;
                if let Some((at, set)) = section.changed.take() {
                    let begun = section.interfaces.iter().find_map(|interface| interface.start);
                    let at = begun.and_then(|begun| u64::try_from(at - begun).ok()).map(Time::from_nanos);
                    let at =
                        at.filter(|&at| at >= self.last).ok_or("a change that was made before what precedes it")?;
                    // Changes made together are nanoseconds apart, and the next packet may have the
                    // time of the change before them.
                    self.last = self.last.max(Time::ZERO + at.since(Time::from_micros(1)));
                    self.changes.push((at, set));
                }
                Ok(CaptureItem::Other)
            }
            EPB_MAGIC => {
                let frame = enhanced_packet(section, piece)?;
                if section.own {
                    let begun = section.interfaces.iter().find_map(|interface| interface.start);
                    self.start = self.start.or(begun);
                    if self.start.is_none() {
                        return Err(
                            "a capture of ackclock has the time at which the run began before its packets".into()
                        );
                    }
                }
                Ok(CaptureItem::Frame(frame))
            }
            _ => Err("a packet without a time (a simple or an obsolete packet block)".into()),
        }
    }

    /// The next packet of a pcap file.
    fn pcap_packet(
        &mut self,
        big_endian: bool,
        clock: TimestampFormat,
        link: CaptureLinkLayer,
    ) -> Result<CaptureItem, ReadFailure> {
        self.stream.leave();
        let start = self.stream.look(PCAP_PACKET)?;
        if start.is_empty() {
            return Ok(CaptureItem::End);
        }
        self.in_packet = true;
        self.packets += 1;
        let Some(&[_, _, _, _, _, _, _, _, a, b, c, d, ..]) = start.first_chunk::<PCAP_PACKET>() else {
            return Err(cut());
        };
        let captured = if big_endian { u32::from_be_bytes([a, b, c, d]) } else { u32::from_le_bytes([a, b, c, d]) };
        if captured as usize > LONGEST {
            return Err(format!("it has {captured} bytes, more than an IP packet").into());
        }
        if !self.stream.take(PCAP_PACKET + captured as usize)? {
            return Err(cut());
        }
        let parse = if big_endian { parse_pcap_frame_be } else { parse_pcap_frame };
        let (_, packet) = parse(self.stream.piece()).map_err(|_| malformed("packet"))?;
        Ok(CaptureItem::Frame(CapturedFrame {
            at: clock.seconds_and(packet.ts_sec, packet.ts_usec),
            link,
            interface: 0,
            node: None,
            way: None,
            from: PCAP_PACKET,
            captured: captured as usize,
            original: u64::from(packet.origlen),
        }))
    }

    /// Assigns a frame to a host; `None` if it belongs to none.
    fn packet(&mut self, frame: CapturedFrame) -> Result<Option<HostPacket>, ReadFailure> {
        let start = *self.start.get_or_insert(frame.at);
        let Some((place, len)) = self.place(&frame)? else { return Ok(None) };
        let (node, way) = match (frame.node, frame.way) {
            (Some(node), Some(way)) => (node, way),
            (node, _) => {
                let Some(source) = link::source(&self.stream.piece()[place.clone()]) else { return Ok(None) };
                let has = |spec: &NodeSpec| {
                    spec.tun.is_some() && spec.addresses.iter().any(|&(address, _)| address == source)
                };
                match self.nodes.iter().flatten().position(has) {
                    // Packets that another host sent were captured where they arrived.
                    Some(found) if node.is_none_or(|node| node == found) => (found, CaptureDirection::FromHost),
                    _ => return Ok(None),
                }
            }
        };
        let nanos = frame.at - start;
        // A received packet is at the position at which it was written, with the time at which it
        // was due.
        let last = if way == CaptureDirection::FromHost { self.last } else { Time::ZERO };
        let last = i128::from(last.as_nanos());
        if nanos < last {
            let early = (last - nanos) as f64 / 1e9;
            return Err(
                format!("it is {early} s before the previous one; packets must be in chronological order").into()
            );
        }
        let at =
            u64::try_from(nanos).map(Time::from_nanos).map_err(|_| "its time is centuries after the first one's")?;
        if way == CaptureDirection::FromHost {
            self.last = at;
        }
        self.matched += 1;
        Ok(Some(HostPacket { at, node, way, place, len }))
    }

    /// Checks at the end of the file that the capture is complete.
    fn close(&mut self) -> Result<(), ReadFailure> {
        let CaptureFormat::Pcapng(section) = &self.format else { return self.nothing() };
        if !section.own {
            return self.nothing();
        }
        for interface in &section.interfaces {
            let (Some(start), Some(end), Some(counted)) = (interface.start, interface.end, interface.counted) else {
                return Err("it ends here without the statistics that end a capture of ackclock: it was cut".into());
            };
            if counted != interface.packets {
                let packets = interface.packets;
                return Err(format!("its statistics count {counted} packets of an interface that has {packets}").into());
            }
            let end = u64::try_from(end - start).map_err(|_| "its end is before its beginning")?;
            self.end = Some(Time::from_nanos(end));
        }
        Ok(())
    }

    /// Refuses a foreign capture without a packet of any host.
    fn nothing(&self) -> Result<(), ReadFailure> {
        if self.matched > 0 {
            return Ok(());
        }
        let hosts = self.nodes.iter().flatten().filter(|node| node.tun.is_some());
        let addresses = hosts.flat_map(|node| node.addresses.iter().map(|(address, _)| address.to_string()));
        let addresses = addresses.collect::<Vec<_>>().join(", ");
        Err(format!("no packet is from a host of the scenario ({addresses})").into())
    }
}

/// The IP packets of a capture (pcapng or pcap, by any tool), in the order of the file.
#[derive(Debug)]
pub struct CapturePackets(CaptureReader);

/// An IP packet of a capture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapturePacket<'a> {
    /// Time of capture, in nanoseconds since the epoch (in virtual runs: since the run began).
    pub nanos: i128,
    /// The interface, by its number in the file.
    pub interface: usize,
    /// The packet from its IP header on, up to the snapshot length.
    pub bytes: &'a [u8],
    /// The length of the whole packet, in bytes.
    pub len: usize,
}

impl CapturePackets {
    /// Opens a capture and reads its first header.
    ///
    /// # Errors
    /// The file cannot be read or is no capture.
    pub fn open(path: &Path) -> Result<CapturePackets, LiveError> {
        CaptureReader::open(path, None).map(CapturePackets)
    }

    /// The next packet; `None` at the end.
    ///
    /// # Errors
    /// The file cannot be read, is malformed, or was cut. No further packet can be read after an
    /// error.
    #[expect(clippy::should_implement_trait, reason = "packets are lent")]
    pub fn next(&mut self) -> Result<Option<CapturePacket<'_>>, LiveError> {
        match self.0.any() {
            Ok(Some((CapturedFrame { at: nanos, interface, .. }, place, len))) => {
                Ok(Some(CapturePacket { nanos, interface, bytes: &self.0.stream.piece()[place], len }))
            }
            Ok(None) => Ok(None),
            Err(failure) => Err(self.0.error(failure)),
        }
    }

    /// The name of an interface, if the capture has it.
    pub fn interface_name(&self, interface: usize) -> Option<&str> {
        match &self.0.format {
            CaptureFormat::Pcapng(section) => section.interfaces.get(interface)?.name.as_deref(),
            CaptureFormat::Pcap { .. } => None,
        }
    }
}

/// Reads an enhanced packet block (s4.3).
fn enhanced_packet(section: &mut PcapSection, block: &[u8]) -> Result<CapturedFrame, ReadFailure> {
    let parse = if section.big_endian { parse_enhancedpacketblock_be } else { parse_enhancedpacketblock_le };
    let (_, packet) = parse(block).map_err(|_| malformed("enhanced packet"))?;
    let flags = section.flags(&packet.options);
    let many = section.interfaces.len();
    let Some(interface) = section.interfaces.get_mut(packet.if_id as usize) else {
        return Err(format!("it belongs to interface {}, but there are {many}", packet.if_id).into());
    };
    interface.packets += 1;
    let way = match flags.map(|flags| flags & 3) {
        Some(OUTBOUND) => Some(CaptureDirection::FromHost),
        Some(INBOUND) => Some(CaptureDirection::ToHost),
        _ => None,
    };
    Ok(CapturedFrame {
        at: interface.clock.nanos(packet.ts_high, packet.ts_low),
        link: interface.link.ok_or_else(|| unknown_link(interface.linktype))?,
        interface: packet.if_id as usize,
        node: interface.node,
        way: way.filter(|_| interface.node.is_some()),
        // Type, block length, interface, timestamp and two packet lengths come first.
        from: 28,
        captured: packet.caplen as usize,
        original: u64::from(packet.origlen),
    })
}
