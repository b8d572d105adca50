//! IP headers, and the changes that a router makes to them.

use std::net::IpAddr;

use ackclock_packet::{Class, Flags};
use ackclock_units::Ecn;
use etherparse::checksum::Sum16BitWords;
use etherparse::{Ipv4HeaderSlice, Ipv6HeaderSlice};

/// Protocol numbers (IANA registry "Assigned Internet Protocol Numbers").
pub(crate) mod protocol {
    pub(crate) const HOP_BY_HOP: u8 = 0;
    pub(crate) const ICMP: u8 = 1;
    pub(crate) const TCP: u8 = 6;
    pub(crate) const UDP: u8 = 17;
    pub(crate) const ROUTING: u8 = 43;
    pub(crate) const FRAGMENT: u8 = 44;
    pub(crate) const AUTHENTICATION: u8 = 51;
    pub(crate) const ICMPV6: u8 = 58;
    pub(crate) const DESTINATION_OPTIONS: u8 = 60;
}

/// Bytes of an IPv4 header without options.
const V4_HEADER: usize = 20;
/// Bytes of an IPv6 header without extensions.
const V6_HEADER: usize = 40;
/// Offset of the time to live in an IPv4 header, and of the hop limit in an IPv6 header.
const TTL_AT: usize = 8;
const HOP_LIMIT_AT: usize = 7;
/// Offset of the checksum in an IPv4 header.
const CHECKSUM_AT: usize = 10;
/// "More fragments" and the fragment offset (RFC 791 section 3.1).
const FRAGMENT_MASK: u16 = 0x3fff;
const OFFSET_MASK: u16 = 0x1fff;

/// The header of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Header {
    /// Source address.
    pub(crate) source: IpAddr,
    /// Destination address, of the same family.
    pub(crate) destination: IpAddr,
    /// Bytes of the whole packet; a longer slice has a trailer.
    pub(crate) len: usize,
    /// The offset of the payload, behind options and extension headers; of a later fragment, that
    /// of its part.
    pub(crate) payload: usize,
    /// The protocol of the payload (IANA registry "Assigned Internet Protocol Numbers").
    pub(crate) protocol: u8,
    /// The ECN codepoint.
    pub(crate) ecn: Ecn,
    /// The DSCP (RFC 2474).
    pub(crate) dscp: u8,
    /// It is a fragment.
    pub(crate) fragment: bool,
    /// It is a fragment other than the first.
    pub(crate) later_fragment: bool,
    /// Time to live or hop limit, before this router decrements it.
    pub(super) hops: u8,
    /// A router may fragment it.
    pub(super) divisible: bool,
}

impl Header {
    /// Reads and validates the header of a packet.
    ///
    /// IPv6 extension headers are skipped up to the first that does not fit in the packet.
    ///
    /// # Errors
    /// The defects for which a router discards silently (RFC 1812 section 5.2.2): another version,
    /// contradictory lengths, a wrong checksum.
    pub(crate) fn read(packet: &[u8]) -> Result<Header, Discard> {
        match packet.first().ok_or(Discard::Length)? >> 4 {
            4 => Header::read_v4(packet),
            6 => Header::read_v6(packet),
            _ => Err(Discard::Version),
        }
    }

    /// The properties by which a queue may treat the packet differently. A fragment of a TCP
    /// segment is never a pure ACK. Checksums are not verified, as queues do not verify them.
    pub(crate) fn class(&self, packet: &[u8]) -> Class {
        let tcp = packet.get(self.payload..self.len).unwrap_or_default();
        let pure_ack = match tcp.first_chunk::<14>() {
            Some(header) if self.protocol == protocol::TCP && !self.fragment => {
                let flags = Flags::from_bits(u16::from_be_bytes([header[12], header[13]]));
                flags.is_ack_alone() && tcp.len() == 4 * usize::from(header[12] >> 4)
            }
            _ => false,
        };
        Class::new(self.dscp, pure_ack)
    }

    fn read_v4(packet: &[u8]) -> Result<Header, Discard> {
        let header = Ipv4HeaderSlice::from_slice(packet).map_err(|_| Discard::Length)?;
        let payload = header.slice().len();
        let len = usize::from(header.total_len());
        if len < payload || len > packet.len() {
            return Err(Discard::Length);
        }
        if Sum16BitWords::new().add_slice(header.slice()).ones_complement() != 0 {
            return Err(Discard::Checksum);
        }
        let fragment = u16::from_be_bytes([packet[6], packet[7]]) & FRAGMENT_MASK;
        let offset = fragment & OFFSET_MASK;
        // It would end beyond the longest possible packet.
        if 8 * usize::from(offset) + len > usize::from(u16::MAX) {
            return Err(Discard::Length);
        }
        Ok(Header {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            len,
            payload,
            protocol: header.protocol().0,
            ecn: Ecn::from_bits(header.ecn().value()),
            dscp: header.dcp().value(),
            fragment: fragment != 0,
            later_fragment: offset != 0,
            hops: header.ttl(),
            divisible: !header.dont_fragment(),
        })
    }

    fn read_v6(packet: &[u8]) -> Result<Header, Discard> {
        let header = Ipv6HeaderSlice::from_slice(packet).map_err(|_| Discard::Length)?;
        let len = V6_HEADER + usize::from(header.payload_length());
        if len > packet.len() {
            return Err(Discard::Length);
        }
        let mut read = Header {
            source: header.source_addr().into(),
            destination: header.destination_addr().into(),
            len,
            payload: V6_HEADER,
            protocol: header.next_header().0,
            ecn: Ecn::from_bits(header.ecn().value()),
            dscp: header.dscp().value(),
            fragment: false,
            later_fragment: false,
            hops: header.hop_limit(),
            divisible: false,
        };
        read.pass_extensions(&packet[..len]);
        Ok(read)
    }

    /// Skips extension headers (RFC 8200 section 4). A later fragment has only those before its
    /// fragment header.
    fn pass_extensions(&mut self, packet: &[u8]) {
        while !self.later_fragment
            && let Some(&[next, units, high, low]) = packet[self.payload..].first_chunk()
        {
            let len = match self.protocol {
                protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS => 8 + 8 * usize::from(units),
                protocol::AUTHENTICATION => 8 + 4 * usize::from(units),
                protocol::FRAGMENT => 8,
                _ => return,
            };
            if self.payload + len > packet.len() {
                return;
            }
            if self.protocol == protocol::FRAGMENT {
                let field = u16::from_be_bytes([high, low]);
                self.later_fragment = field & 0xfff8 != 0;
                // Without offset and "more fragments" it is a whole packet (RFC 6946).
                self.fragment = field & 0xfff9 != 0;
            }
            (self.protocol, self.payload) = (next, self.payload + len);
        }
    }
}

/// Sets the ECN codepoint of an ECN-capable packet with a valid header to CE, and updates the IPv4
/// header checksum.
pub(crate) fn mark_ce(packet: &mut [u8]) {
    match packet[0] >> 4 {
        4 => change_word(packet, 0, |[version, class]| [version, class | Ecn::Ce.bits()]),
        // The traffic class is the low half of the first byte and the high half of the second.
        _ => packet[1] |= Ecn::Ce.bits() << 4,
    }
}

/// The DSCP of a packet with a valid header.
pub(crate) fn dscp(packet: &[u8]) -> u8 {
    match packet[0] >> 4 {
        4 => packet[1] >> 2,
        _ => (packet[0] & 0xf) << 2 | packet[1] >> 6,
    }
}

/// Sets the DSCP of a packet with a valid header to 0, and updates the IPv4 header checksum.
pub(crate) fn wash(packet: &mut [u8]) {
    match packet[0] >> 4 {
        4 => change_word(packet, 0, |[version, class]| [version, class & 3]),
        _ => (packet[0], packet[1]) = (packet[0] & 0xf0, packet[1] & 0x3f),
    }
}

/// Decrements the hop limit, which is at least 1.
pub(super) fn count_hop(packet: &mut [u8]) {
    match packet[0] >> 4 {
        4 => change_word(packet, TTL_AT, |[ttl, protocol]| [ttl - 1, protocol]),
        _ => packet[HOP_LIMIT_AT] -= 1,
    }
}

/// Changes a word of an IPv4 header and updates the checksum (RFC 1624 section 3, equation 3).
#[inline]
fn change_word(packet: &mut [u8], at: usize, change: impl FnOnce([u8; 2]) -> [u8; 2]) {
    let header: &mut [u8; V4_HEADER] = packet.first_chunk_mut().expect("a packet whose header was read");
    let old = [header[at], header[at + 1]];
    let new = change(old);
    let checksum = u16::from_be_bytes([header[CHECKSUM_AT], header[CHECKSUM_AT + 1]]);
    let sum = u32::from(!checksum) + u32::from(!u16::from_be_bytes(old)) + u32::from(u16::from_be_bytes(new));
    // The sum of three words: the first folding leaves at most 0x10001.
    let sum = (sum & 0xffff) + (sum >> 16);
    let sum = (sum & 0xffff) + (sum >> 16);
    header[at..at + 2].copy_from_slice(&new);
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&(!(sum as u16)).to_be_bytes());
}

/// Writes the checksum of an IPv4 header.
pub(crate) fn set_checksum(header: &mut [u8]) {
    header[CHECKSUM_AT..CHECKSUM_AT + 2].fill(0);
    let checksum = Sum16BitWords::new().add_slice(header).ones_complement();
    // The words are added in the machine's byte order.
    header[CHECKSUM_AT..CHECKSUM_AT + 2].copy_from_slice(&checksum.to_ne_bytes());
}

/// The reason why a packet is discarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Discard {
    /// Neither IPv4 nor IPv6.
    Version,
    /// Fewer bytes than the header or its length field requires, or contradictory lengths.
    Length,
    /// The checksum of the IPv4 header is wrong.
    Checksum,
    /// Addresses that no router forwards from or to: multicast, broadcast, loopback, link-local,
    /// unspecified.
    Scope,
    /// Its hop limit is used up.
    TimeExceeded,
    /// Longer than the next link's MTU, and not to be fragmented.
    TooBig,
}
