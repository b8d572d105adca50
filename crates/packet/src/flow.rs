//! The flow of an IP packet, and its hash.
//!
//! A flow is one direction of a conversation: addresses, protocol, and ports where the protocol has
//! them. The hash is the same in every version and on every machine; a seed perturbs it.
//!
//! # Source
//! SipHash-2-4 (J.-P. Aumasson, D. J. Bernstein, INDOCRYPT 2012). What counts as ports follows
//! Linux's flow dissector (`net/core/flow_dissector.c`).
//!
//! # Departures
//! From Linux: flow labels are not read, tunnels are not entered, and the two directions of a
//! conversation differ.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

#[cfg(test)]
mod tests;

/// Protocol numbers (IANA registry "Assigned Internet Protocol Numbers").
mod protocol {
    pub(super) const HOP_BY_HOP: u8 = 0;
    pub(super) const ICMP: u8 = 1;
    pub(super) const TCP: u8 = 6;
    pub(super) const UDP: u8 = 17;
    pub(super) const DCCP: u8 = 33;
    pub(super) const ROUTING: u8 = 43;
    pub(super) const FRAGMENT: u8 = 44;
    pub(super) const ESP: u8 = 50;
    pub(super) const AH: u8 = 51;
    pub(super) const ICMPV6: u8 = 58;
    pub(super) const DESTINATION_OPTIONS: u8 = 60;
    pub(super) const SCTP: u8 = 132;
    pub(super) const UDP_LITE: u8 = 136;
}

/// The most IPv6 extension headers that are read, as in Linux.
const MAX_EXTENSION_HEADERS: usize = 15;

/// The fields that identify a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct FlowKey {
    /// Sender.
    pub source: IpAddr,
    /// Receiver; of the same family.
    pub destination: IpAddr,
    /// The protocol above IP and its extension headers.
    pub protocol: u8,
    /// TCP, UDP, UDP-Lite, DCCP and SCTP: the sender's port. ESP and AH: the first half of the SPI.
    /// ICMP: type and code. Otherwise 0.
    pub source_port: u16,
    /// The receiver's port, the second half of the SPI, or the identifier of an ICMP echo or
    /// timestamp. Otherwise 0.
    pub destination_port: u16,
}

impl FlowKey {
    /// The flow of an IPv4 or IPv6 packet; `None` if `bytes` do not start with a header of either.
    ///
    /// All fragments of a packet have the same key, the first one included: ports 0, whatever it
    /// holds. So have all fragmented packets of a protocol between two hosts, which keeps them in
    /// order. Where the packet is too short for the header above IP, ports are 0 too. Checksums are
    /// not looked at.
    pub fn from_ip_packet(bytes: &[u8]) -> Option<FlowKey> {
        match bytes.first()? >> 4 {
            4 => ipv4(bytes),
            6 => ipv6(bytes),
            _ => None,
        }
    }

    /// The hash: SipHash-2-4 with the key (`seed`, 0) over version, protocol, both ports and both
    /// addresses, in this order and as they are in a packet: 14 bytes for IPv4 and 38 for IPv6.
    pub fn hash(&self, seed: u64) -> u64 {
        let mut message = [0; 38];
        message[1] = self.protocol;
        message[2..4].copy_from_slice(&self.source_port.to_be_bytes());
        message[4..6].copy_from_slice(&self.destination_port.to_be_bytes());
        let len = match (self.source, self.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                message[0] = 4;
                message[6..10].copy_from_slice(&source.octets());
                message[10..14].copy_from_slice(&destination.octets());
                14
            }
            (source, destination) => {
                message[0] = 6;
                message[6..22].copy_from_slice(&v6(source).octets());
                message[22..38].copy_from_slice(&v6(destination).octets());
                38
            }
        };
        siphash_2_4([seed, 0], &message[..len])
    }
}

/// An address as IPv6. (A key that was read never mixes families; one that was written by hand
/// may.)
fn v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(address) => address.to_ipv6_mapped(),
        IpAddr::V6(address) => address,
    }
}

fn ipv4(bytes: &[u8]) -> Option<FlowKey> {
    let header: &[u8; 20] = bytes.first_chunk()?;
    let header_len = usize::from(header[0] & 0xf) * 4;
    let total_len = usize::from(u16::from_be_bytes([header[2], header[3]]));
    if header_len < 20 || total_len < header_len {
        return None;
    }
    let address = |at: usize| IpAddr::V4(Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]));
    let protocol = header[9];
    // RFC 791: more fragments, or an offset.
    let fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    // Bytes past the length are padding of a frame.
    let payload = if fragment { None } else { bytes.get(header_len..total_len.min(bytes.len())) };
    let [source_port, destination_port] = ports(protocol, payload.unwrap_or_default());
    Some(FlowKey { source: address(12), destination: address(16), protocol, source_port, destination_port })
}

fn ipv6(bytes: &[u8]) -> Option<FlowKey> {
    let (header, rest) = bytes.split_first_chunk::<40>()?;
    let [source, destination] = [8, 24].map(|at| {
        let mut octets = [0; 16];
        octets.copy_from_slice(&header[at..at + 16]);
        IpAddr::V6(Ipv6Addr::from(octets))
    });
    let payload_len = usize::from(u16::from_be_bytes([header[4], header[5]]));
    let (protocol, payload) = skip_extensions(header[6], &rest[..payload_len.min(rest.len())]);
    let [source_port, destination_port] = ports(protocol, payload);
    Some(FlowKey { source, destination, protocol, source_port, destination_port })
}

/// The protocol above the extension headers (RFC 8200 section 4) that start with one of kind
/// `next`, and what follows them: nothing in a fragment.
fn skip_extensions(mut next: u8, mut rest: &[u8]) -> (u8, &[u8]) {
    for _ in 0..MAX_EXTENSION_HEADERS {
        let header_len = match (next, rest) {
            (protocol::HOP_BY_HOP | protocol::ROUTING | protocol::DESTINATION_OPTIONS, &[_, units, ..]) => {
                8 + 8 * usize::from(units)
            }
            (protocol::FRAGMENT, &[_, _, high, low, ..]) => {
                // An offset, or more fragments. What a fragment says that comes next is the same in
                // all of them.
                if u16::from_be_bytes([high, low]) & 0xfff9 != 0 {
                    return (rest[0], &[]);
                }
                8
            }
            _ => break,
        };
        let Some(after) = rest.get(header_len..) else { break };
        (next, rest) = (rest[0], after);
    }
    (next, rest)
}

/// The ports in the header of `protocol` at the start of `payload`, or the fields that serve as
/// ports.
fn ports(protocol: u8, payload: &[u8]) -> [u16; 2] {
    let at = match protocol {
        protocol::TCP | protocol::UDP | protocol::UDP_LITE | protocol::DCCP | protocol::SCTP | protocol::ESP => 0,
        protocol::AH => 4,
        protocol::ICMP | protocol::ICMPV6 => return icmp(protocol, payload),
        _ => return [0, 0],
    };
    match payload.get(at..).and_then(|bytes| bytes.first_chunk::<4>()) {
        Some(&[a, b, c, d]) => [u16::from_be_bytes([a, b]), u16::from_be_bytes([c, d])],
        None => [0, 0],
    }
}

/// Type and code, and the identifier where the type has one: echo (RFC 792, RFC 4443) and
/// timestamp, request and reply.
fn icmp(protocol: u8, payload: &[u8]) -> [u16; 2] {
    let &[kind, code, ..] = payload else { return [0, 0] };
    let identified = match protocol {
        protocol::ICMP => matches!(kind, 0 | 8 | 13 | 14),
        _ => matches!(kind, 128 | 129),
    };
    let identifier = match payload {
        &[_, _, _, _, high, low, ..] if identified => u16::from_be_bytes([high, low]),
        _ => 0,
    };
    [u16::from_be_bytes([kind, code]), identifier]
}

/// SipHash-2-4 of `message` under `key`.
fn siphash_2_4(key: [u64; 2], message: &[u8]) -> u64 {
    let mut state = [
        key[0] ^ 0x736f_6d65_7073_6575,
        key[1] ^ 0x646f_7261_6e64_6f6d,
        key[0] ^ 0x6c79_6765_6e65_7261,
        key[1] ^ 0x7465_6462_7974_6573,
    ];
    let mut absorb = |word: u64| {
        state[3] ^= word;
        sip_round(&mut state);
        sip_round(&mut state);
        state[0] ^= word;
    };
    let (words, rest) = message.as_chunks::<8>();
    for word in words {
        absorb(u64::from_le_bytes(*word));
    }
    let mut last = [0; 8];
    last[..rest.len()].copy_from_slice(rest);
    last[7] = message.len() as u8;
    absorb(u64::from_le_bytes(last));
    state[2] ^= 0xff;
    for _ in 0..4 {
        sip_round(&mut state);
    }
    state[0] ^ state[1] ^ state[2] ^ state[3]
}

fn sip_round(v: &mut [u64; 4]) {
    v[0] = v[0].wrapping_add(v[1]);
    v[2] = v[2].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(13) ^ v[0];
    v[3] = v[3].rotate_left(16) ^ v[2];
    v[0] = v[0].rotate_left(32);
    v[2] = v[2].wrapping_add(v[1]);
    v[0] = v[0].wrapping_add(v[3]);
    v[1] = v[1].rotate_left(17) ^ v[2];
    v[3] = v[3].rotate_left(21) ^ v[0];
    v[2] = v[2].rotate_left(32);
}
