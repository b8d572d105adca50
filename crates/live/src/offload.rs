//! Packets that the kernel leaves unfinished for a device with offloads: segments longer than a
//! packet, and checksums that are not computed.
//!
//! A device with `IFF_VNET_HDR` has a header before each packet that describes the unfinished work,
//! in both directions. A segment is cut here ([`Segmentation`]) as the kernel's software or a
//! network card would, before a router or a queue sees it. The payload of the packets stays where
//! it was read; each has headers of its own. Their checksums remain uncomputed as long as only
//! kernels see them: the receiving kernel treats such a packet as one whose checksum a card has
//! verified.
//!
//! # Source
//! `struct virtio_net_hdr` of the virtio specification 1.3, section 5.1.6, in the machine's byte
//! order, as in `linux/virtio_net.h`. The headers of the packets of a segment differ as in
//! `tcp_gso_segment`, `__udp_gso_segment` and `inet_gso_segment`.
//!
//! # Departures
//! The IPv4 identification counts up within every segment, also where the sender has a fixed one
//! (`SKB_GSO_TCP_FIXEDID`), which the kernel does not report.

use etherparse::checksum::Sum16BitWords;

use crate::router::{Header, protocol, set_checksum};

/// Bytes of the header before each packet.
pub(crate) const HEADER: usize = 10;

/// The most bytes of a segment: the longest IP packet.
pub(crate) const LONGEST: usize = 65_535;

/// Flags and types of the header (`linux/virtio_net.h`).
const NEEDS_CHECKSUM: u8 = 1;
const TCP4: u8 = 1;
const TCP6: u8 = 4;
const UDP: u8 = 5;
const WITH_CWR: u8 = 0x80;

/// Flags in the 14th byte of a TCP header (RFC 9293 section 3.1).
const FIN: u8 = 0x01;
const PSH: u8 = 0x08;
const CWR: u8 = 0x80;

/// Bytes of a TCP header without options, and of a UDP header.
const TCP_HEADER: usize = 20;
const UDP_HEADER: usize = 8;

/// The work on a packet that is left to a kernel or device.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Offload {
    /// The checksum, if it is not computed: its field contains only the sum of the pseudo-header.
    pub(crate) checksum: Option<PartialChecksum>,
    /// Payload bytes of each packet of a segment but the last; 0 for a single packet.
    pub(crate) size: u16,
    /// The type of a segment, as in the header.
    kind: u8,
    /// Bytes of the segment's headers.
    headers: u16,
}

/// A checksum that is not computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct PartialChecksum {
    /// The offset of the first byte that it covers.
    pub(crate) start: u16,
    /// The offset of its field from there.
    pub(crate) offset: u16,
}

impl Offload {
    /// Reads the header before a packet; no value is invalid.
    pub fn read(header: &[u8; HEADER]) -> Offload {
        let word = |at: usize| u16::from_ne_bytes([header[at], header[at + 1]]);
        let partial = header[0] & NEEDS_CHECKSUM != 0;
        Offload {
            checksum: partial.then(|| PartialChecksum { start: word(6), offset: word(8) }),
            kind: header[1],
            headers: word(2),
            size: if header[1] == 0 { 0 } else { word(4) },
        }
    }

    /// The header to write before a packet.
    pub(crate) fn write(&self) -> [u8; HEADER] {
        let PartialChecksum { start, offset } = self.checksum.unwrap_or(PartialChecksum { start: 0, offset: 0 });
        let flags = if self.checksum.is_some() { NEEDS_CHECKSUM } else { 0 };
        let [[a, b], [c, d], [e, f], [g, h]] = [self.headers, self.size, start, offset].map(u16::to_ne_bytes);
        [flags, self.kind, a, b, c, d, e, f, g, h]
    }

    /// The offload of a single packet with this checksum.
    pub(crate) fn checksum(checksum: Option<PartialChecksum>) -> Offload {
        Offload { checksum, ..Offload::default() }
    }

    /// Returns `true` if it describes a segment of several packets.
    pub(crate) fn is_segment(&self) -> bool {
        self.kind != 0
    }
}

impl PartialChecksum {
    /// Returns `true` if the range that it covers begins behind the IP header.
    pub(crate) fn is_behind_header(self, packet: &[u8]) -> bool {
        let header = match packet.first() {
            Some(first) if first >> 4 == 4 => 4 * u16::from(first & 15),
            _ => 40,
        };
        self.start >= header
    }

    /// Computes the checksum of a packet.
    pub(crate) fn complete(self, packet: &mut [u8]) {
        let at = usize::from(self.start) + usize::from(self.offset);
        let Some(covered) = packet.get(usize::from(self.start)..) else { return };
        // The words are added in the machine's byte order.
        let sum = Sum16BitWords::new().add_slice(covered).ones_complement().to_ne_bytes();
        if let Some(field) = packet.get_mut(at..at + 2) {
            // In UDP 0 stands for no checksum (RFC 768); in TCP both values are equivalent.
            field.copy_from_slice(if sum == [0, 0] { &[0xff, 0xff] } else { &sum });
        }
    }
}

/// The division of a segment into packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Segmentation {
    /// Bytes of the headers of each packet.
    head: usize,
    /// The offset of the TCP or UDP header.
    transport: usize,
    is_udp: bool,
    is_v4: bool,
    size: usize,
    /// Bytes of the segment.
    len: usize,
    /// The sum of the pseudo-header without the length.
    pseudo: u32,
}

impl Segmentation {
    /// `None` if it is no valid segment, or is incomplete.
    pub(crate) fn new(segment: &[u8], offload: Offload) -> Option<Segmentation> {
        let header = Header::read(segment).ok()?;
        let transport = header.payload;
        let is_v4 = header.source.is_ipv4();
        let is_udp = match (offload.kind & !WITH_CWR, is_v4) {
            (TCP4, true) | (TCP6, false) if header.protocol == protocol::TCP => false,
            (UDP, _) if header.protocol == protocol::UDP => true,
            _ => return None,
        };
        let head = transport
            + match is_udp {
                true => UDP_HEADER,
                false => (4 * usize::from(segment.get(transport + 12)? >> 4)).max(TCP_HEADER),
            };
        if header.len != segment.len() || header.fragment || offload.size == 0 || head >= segment.len() {
            return None;
        }
        let addresses = if is_v4 { &segment[12..20] } else { &segment[8..40] };
        let pseudo = sum_of(addresses) + u32::from(header.protocol);
        let size = usize::from(offload.size);
        Some(Segmentation { head, transport, is_udp, is_v4, size, len: segment.len(), pseudo })
    }

    /// Bytes of the headers of each packet, and of the longest packet.
    pub(crate) fn lengths(&self) -> (usize, usize) {
        (self.head, (self.head + self.size).min(self.len))
    }

    /// The range of the payload of packet `number` in the segment; `None` beyond the last.
    pub(crate) fn payload(&self, number: usize) -> Option<std::ops::Range<usize>> {
        let from = self.head + number * self.size;
        (from < self.len).then(|| from..(from + self.size).min(self.len))
    }

    /// The checksum of each packet, which is left to compute.
    pub(crate) fn checksum(&self) -> PartialChecksum {
        PartialChecksum { start: self.transport as u16, offset: if self.is_udp { 6 } else { 16 } }
    }

    /// Turns the headers of the segment into those of packet `number`.
    pub(crate) fn head(&self, number: usize, head: &mut [u8]) {
        let Some(payload) = self.payload(number) else { return };
        let last = payload.end == self.len;
        if self.is_v4 {
            change_word(head, 4, |id| id.wrapping_add(number as u16));
        }
        if !self.is_udp {
            let at = self.transport + 4;
            let sequence = u32::from_be_bytes([head[at], head[at + 1], head[at + 2], head[at + 3]]);
            let sequence = sequence.wrapping_add((number * self.size) as u32);
            head[at..at + 4].copy_from_slice(&sequence.to_be_bytes());
            // RFC 3168 section 6.1.2: CWR is set on the first packet of new data.
            let cleared = if last { 0 } else { FIN | PSH } | if number == 0 { 0 } else { CWR };
            head[self.transport + 13] &= !cleared;
        }
        set_lengths(head, self.transport, self.is_v4, self.is_udp, payload.len(), self.pseudo);
    }
}

/// Turns `head`, the headers of the first of consecutive packets of a segment, into the headers of
/// all of them: `len` bytes of payload in packets of `size` bytes, the last of which has the
/// headers `last`.
pub(crate) fn join(head: &mut [u8], last: &[u8], checksum: PartialChecksum, len: usize, size: u16) -> Offload {
    let (transport, is_v4, is_udp) = (usize::from(checksum.start), head[0] >> 4 == 4, checksum.offset == 6);
    let addresses = if is_v4 { &head[12..20] } else { &head[8..40] };
    let pseudo = sum_of(addresses) + u32::from(if is_udp { protocol::UDP } else { protocol::TCP });
    let mut kind = if is_udp { UDP } else { [TCP6, TCP4][usize::from(is_v4)] };
    if !is_udp {
        head[transport + 13] |= last[transport + 13] & (FIN | PSH);
        if head[transport + 13] & CWR != 0 {
            kind |= WITH_CWR;
        }
    }
    set_lengths(head, transport, is_v4, is_udp, len, pseudo);
    Offload { checksum: Some(checksum), size, kind, headers: head.len() as u16 }
}

/// Sets the lengths of a packet with `payload` bytes, and the checksums that depend on them.
fn set_lengths(head: &mut [u8], transport: usize, is_v4: bool, is_udp: bool, payload: usize, pseudo: u32) {
    // No packet is longer than the segment.
    let (total, carried) = ((head.len() + payload) as u16, (head.len() - transport + payload) as u16);
    if is_v4 {
        head[2..4].copy_from_slice(&total.to_be_bytes());
        let header = 4 * usize::from(head[0] & 15);
        set_checksum(&mut head[..header]);
    } else {
        // The IPv6 length does not include the IPv6 header.
        head[4..6].copy_from_slice(&(total - 40).to_be_bytes());
    }
    if is_udp {
        head[transport + 4..transport + 6].copy_from_slice(&carried.to_be_bytes());
    }
    let at = transport + if is_udp { 6 } else { 16 };
    head[at..at + 2].copy_from_slice(&fold(pseudo + u32::from(carried)).to_be_bytes());
}

fn change_word(head: &mut [u8], at: usize, change: impl FnOnce(u16) -> u16) {
    let word = change(u16::from_be_bytes([head[at], head[at + 1]]));
    head[at..at + 2].copy_from_slice(&word.to_be_bytes());
}

/// The sum of the 16-bit words of a few addresses.
fn sum_of(bytes: &[u8]) -> u32 {
    bytes.chunks_exact(2).map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum()
}

fn fold(sum: u32) -> u16 {
    let sum = (sum & 0xffff) + (sum >> 16);
    ((sum & 0xffff) + (sum >> 16)) as u16
}

#[cfg(test)]
pub(crate) mod tests;
