//! Local hosts: the handling of packets that belong to no connection of their endpoints.
//!
//! A local host answers an ICMP echo request, resets a segment of no connection (RFC 9293 section
//! 3.10.7.1), and reports port unreachable for a datagram and protocol unreachable for other
//! protocols (RFC 1122 section 3.2.2.1). It supports IPv4 only. Fragments are not reassembled, but
//! counted. An ICMP error about a segment of a local endpoint goes to that endpoint (RFC 1122
//! section 3.2.2.1); errors about anything else are counted.

use ackclock_packet::codec::{self, Addresses};
use ackclock_sim::spec::NodeSpec;
use ackclock_tcp::{IcmpError, reset_for};
use ackclock_units::{Ecn, Time};

use crate::router::{Header, Reporter, protocol};

/// A host in this process.
#[derive(Debug)]
pub(crate) struct InProcessHost {
    reporter: Reporter,
    /// The answer being written.
    message: Vec<u8>,
}

/// A local host's reaction to a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum HostAnswer {
    /// A packet of this many bytes.
    Reply(usize),
    /// None: the packet requires no answer.
    Nothing,
    /// None: the packet is an ICMP error about a segment with these addresses and ports.
    Error(Addresses, (u16, u16), IcmpError),
    /// None: the host cannot interpret the packet.
    Discarded,
}

impl InProcessHost {
    pub(crate) fn new(spec: &NodeSpec) -> InProcessHost {
        InProcessHost { reporter: Reporter::new(spec.ipv4(), None), message: Vec::new() }
    }

    /// Handles a packet, and writes the answer to `out`.
    pub(crate) fn answer(&mut self, now: Time, packet: &[u8], out: &mut [u8]) -> HostAnswer {
        let Ok(header) = Header::read(packet) else { return HostAnswer::Discarded };
        if header.protocol == protocol::TCP && !header.fragment {
            let Ok(parsed) = codec::parse(packet) else { return HostAnswer::Discarded };
            let Some(reset) = reset_for(&parsed.segment) else { return HostAnswer::Nothing };
            return match codec::emit(&reset, parsed.addresses.reversed(), Ecn::NotEct, out) {
                Ok(len) => HostAnswer::Reply(len),
                Err(_) => HostAnswer::Nothing,
            };
        }
        if let Some(error) = quoted(&header, packet) {
            return error;
        }
        if !self.reporter.answer(now, &header, packet, &mut self.message) {
            return HostAnswer::Discarded;
        }
        match out.get_mut(..self.message.len()) {
            Some(out) => {
                out.copy_from_slice(&self.message);
                HostAnswer::Reply(self.message.len())
            }
            None => HostAnswer::Discarded,
        }
    }
}

/// Types of ICMP errors: destination unreachable, source quench, time exceeded, parameter problem
/// (RFC 792).
const ERRORS: [u8; 4] = [3, 4, 11, 12];
/// Bytes of an ICMP error before the packet that it quotes, and of a TCP header up to and including
/// its sequence number.
const ICMP_HEADER: usize = 8;
const PORTS_AND_SEQUENCE: usize = 8;

/// The ICMP error in `packet`, if its checksum is right and it quotes the beginning of a TCP
/// segment.
fn quoted(header: &Header, packet: &[u8]) -> Option<HostAnswer> {
    let message = packet.get(header.payload..header.len)?;
    let kind = *message.first()?;
    if header.protocol != protocol::ICMP || header.fragment || !ERRORS.contains(&kind) || !is_sum_right(message) {
        return None;
    }
    let inner = message.get(ICMP_HEADER..)?;
    // The quoted packet may be truncated, and its header checksum changed on the way.
    let length = 4 * usize::from(inner.first()? & 0xf);
    let is_tcp = inner[0] >> 4 == 4 && length >= 20 && *inner.get(9)? == protocol::TCP;
    let first = u16::from_be_bytes([*inner.get(6)?, *inner.get(7)?]) & 0x1fff == 0;
    let segment = inner.get(length..length + PORTS_AND_SEQUENCE).filter(|_| is_tcp && first)?;
    let word = |bytes: &[u8], at: usize| u16::from_be_bytes([bytes[at], bytes[at + 1]]);
    let address = |at: usize| [inner[at], inner[at + 1], inner[at + 2], inner[at + 3]];
    let addresses = Addresses { source: address(12), destination: address(16) };
    let error = IcmpError {
        v6: false,
        kind,
        code: message[1],
        mtu: u32::from(word(message, 6)),
        sequence: u32::from_be_bytes([segment[4], segment[5], segment[6], segment[7]]),
        length: u32::from(word(inner, 2)),
    };
    Some(HostAnswer::Error(addresses, (word(segment, 0), word(segment, 2)), error))
}

/// The checksum of ICMP (RFC 792).
fn is_sum_right(message: &[u8]) -> bool {
    etherparse::checksum::Sum16BitWords::new().add_slice(message).ones_complement() == 0
}
