//! Packet captures at links and at hosts.

use std::ops::ControlFlow;

use ackclock_emulator::{Action, Decision};
use ackclock_packet::codec::{self, Addresses};
use ackclock_packet::{OptionLayout, Packet, Segment};
use ackclock_trace::{CaptureRecord, CaptureSink, host_address};
use ackclock_units::{Ecn, Time};

use crate::build::{RECEIVER_PORT, SENDER_PORT};
use crate::index::{DirectionId, HostId};
use crate::record::CapturePoint;
use crate::spec::DATAGRAM_HEADERS;

/// The most packets that are buffered.
const BATCH: usize = 64;

/// The longest packet of IPv4.
const LONGEST: usize = 65_535;

/// Interfaces of the capture of a link direction.
const BEFORE: u32 = 0;
const AFTER: u32 = 1;
const DROPPED: u32 = 2;

/// The captures of a run, and the packets that have not been written yet.
#[derive(Debug)]
pub(crate) struct CaptureRecording {
    /// The directions that are captured, in order, each with the index of its capture.
    directions: Vec<(DirectionId, usize)>,
    /// The hosts that are captured, in order, each with the index of its capture.
    hosts: Vec<(HostId, usize)>,
    snaplen: usize,
    rows: Vec<CapturedPacket>,
    buffer: Vec<u8>,
}

#[derive(Clone, Copy, Debug)]
struct CapturedPacket {
    at: Time,
    capture: usize,
    interface: u32,
    inbound: Option<bool>,
    /// Reason of the drop, if it was dropped.
    comment: Option<&'static str>,
    contents: CapturedContent,
}

/// A packet with its ends.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CapturedContent {
    pub(crate) from: HostId,
    pub(crate) segment: Segment,
    pub(crate) is_datagram: bool,
    pub(crate) ecn: Ecn,
    pub(crate) dscp: u8,
}

impl CapturedContent {
    pub(crate) fn new(from: HostId, segment: &Segment, packet: &Packet, is_datagram: bool) -> CapturedContent {
        CapturedContent { from, segment: *segment, is_datagram, ecn: packet.ecn, dscp: packet.class.dscp() }
    }
}

impl CaptureRecording {
    pub(crate) fn new(points: &[CapturePoint], snaplen: u32) -> CaptureRecording {
        let numbered = || points.iter().enumerate();
        let mut directions: Vec<(DirectionId, usize)> = numbered()
            .filter_map(|(number, point)| match point {
                CapturePoint::Direction(direction) => Some((*direction, number)),
                CapturePoint::Host(_) => None,
            })
            .collect();
        let mut hosts: Vec<(HostId, usize)> = numbered()
            .filter_map(|(number, point)| match point {
                CapturePoint::Host(host) => Some((*host, number)),
                CapturePoint::Direction(_) => None,
            })
            .collect();
        directions.sort_unstable();
        hosts.sort_unstable();
        CaptureRecording { directions, hosts, snaplen: snaplen as usize, rows: Vec::new(), buffer: vec![0; LONGEST] }
    }

    /// The directions that are captured.
    pub(crate) fn directions(&self) -> impl Iterator<Item = DirectionId> {
        self.directions.iter().map(|direction| direction.0)
    }

    /// Returns true if anything is captured at hosts.
    pub(crate) fn has_hosts(&self) -> bool {
        !self.hosts.is_empty()
    }

    /// Takes a decision of a queue about a packet.
    pub(crate) fn decision(&mut self, direction: DirectionId, decision: &Decision, contents: CapturedContent) {
        let Ok(found) = self.directions.binary_search_by_key(&direction, |direction| direction.0) else { return };
        let capture = self.directions[found].1;
        let mut add = |interface, comment| {
            let Decision { at, .. } = *decision;
            self.rows.push(CapturedPacket { at, capture, interface, inbound: None, comment, contents });
        };
        match decision.action {
            Action::Enqueue => add(BEFORE, None),
            Action::Dequeue => add(AFTER, None),
            Action::Mark => {}
            Action::Drop(reason) => {
                if decision.sojourn.is_none() {
                    add(BEFORE, None);
                }
                add(DROPPED, Some(reason.name()));
            }
        }
    }

    /// A packet was lost behind the queue of a link.
    pub(crate) fn lost(&mut self, at: Time, direction: DirectionId, why: &'static str, contents: CapturedContent) {
        if let Ok(found) = self.directions.binary_search_by_key(&direction, |direction| direction.0) {
            let capture = self.directions[found].1;
            self.rows.push(CapturedPacket {
                at,
                capture,
                interface: DROPPED,
                inbound: None,
                comment: Some(why),
                contents,
            });
        }
    }

    /// A packet arrives at a host, or leaves it.
    pub(crate) fn at_host(&mut self, at: Time, host: HostId, inbound: bool, contents: CapturedContent) {
        if let Ok(found) = self.hosts.binary_search_by_key(&host, |host| host.0) {
            let capture = self.hosts[found].1;
            self.rows.push(CapturedPacket {
                at,
                capture,
                interface: 0,
                inbound: Some(inbound),
                comment: None,
                contents,
            });
        }
    }

    /// Returns true if the buffered packets should be written.
    pub(crate) fn is_full(&self) -> bool {
        self.rows.len() >= BATCH
    }

    /// Hands all packets on.
    pub(crate) fn hand_on(&mut self, sink: &mut dyn CaptureSink) -> ControlFlow<()> {
        let CaptureRecording { rows, buffer, snaplen, .. } = self;
        // A link tells of its losses behind the decisions of its queue.
        rows.sort_by_key(|row| row.at);
        rows.drain(..).try_for_each(|row| {
            let length = row.contents.emit(buffer);
            sink.record(&CaptureRecord {
                at: row.at,
                capture: row.capture,
                interface: row.interface,
                bytes: &buffer[..length.min(*snaplen)],
                length: length as u32,
                inbound: row.inbound,
                comment: row.comment,
            })
        })
    }
}

impl CapturedContent {
    /// Writes the packet to the start of a buffer that has room for any; its length.
    fn emit(&self, buffer: &mut [u8]) -> usize {
        let addresses = Addresses {
            source: host_address(self.from.number()),
            destination: host_address(self.from.peer().number()),
        };
        if self.is_datagram {
            return self.emit_datagram(addresses, buffer);
        }
        let written = codec::emit_with(&self.segment, OptionLayout::Linux, addresses, self.dscp, self.ecn, buffer);
        // No segment is longer than a packet may be.
        written.unwrap_or(0)
    }

    /// UDP's checksum is 0, none (RFC 768); the payload is the datagram's number and zeros.
    fn emit_datagram(&self, addresses: Addresses, buffer: &mut [u8]) -> usize {
        let length = (DATAGRAM_HEADERS + self.segment.payload.len).min(LONGEST as u32) as usize;
        let packet = &mut buffer[..length];
        packet.fill(0);
        let [source, destination] = match self.from.is_sender() {
            true => [SENDER_PORT, RECEIVER_PORT],
            false => [RECEIVER_PORT, SENDER_PORT],
        };
        packet[0] = 0x45;
        packet[1] = self.dscp << 2 | self.ecn.bits();
        packet[2..4].copy_from_slice(&(length as u16).to_be_bytes());
        packet[6] = 0x40;
        packet[8] = 64;
        packet[9] = 17;
        packet[12..16].copy_from_slice(&addresses.source);
        packet[16..20].copy_from_slice(&addresses.destination);
        let sum: u32 = packet[..20].chunks(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        let sum = (sum & 0xffff) + (sum >> 16);
        let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
        packet[10..12].copy_from_slice(&sum.to_be_bytes());
        packet[20..22].copy_from_slice(&source.to_be_bytes());
        packet[22..24].copy_from_slice(&destination.to_be_bytes());
        packet[24..26].copy_from_slice(&((length - 20) as u16).to_be_bytes());
        let number = self.segment.payload.offset.to_be_bytes();
        let room = packet.len().saturating_sub(28).min(8);
        packet[28..28 + room].copy_from_slice(&number[8 - room..]);
        length
    }
}
