//! ICMP messages about packets, and answers to them.
//!
//! # Source
//! RFC 792, RFC 1122 section 3.2.2, RFC 1812 section 4.3, RFC 1191; RFC 4443, RFC 8201. How often:
//! Linux's token buckets (`net/ipv4/icmp.c`, `net/ipv6/icmp.c`, `net/ipv4/inetpeer.c`).
//!
//! # Departures
//! - Like Linux, and unlike RFC 4443 section 2.4 (f), messages that path MTU discovery needs are
//!   not rate-limited.
//! - Broadcasts to a subnet are not known from its other addresses: nothing here knows prefixes.
//!   Who does, does not ask.
//! - A message is never fragmented, and may be longer than a link of less than 576 bytes takes,
//!   where Linux quotes less.
//! - A host here does not reassemble fragments, and does not answer them. An answer has no options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ackclock_units::{Span, Time};
use etherparse::checksum::Sum16BitWords;
use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp, IpNumber, Ipv4Header, Ipv6Header, icmpv6,
};

use super::Header;
use super::header::protocol;

/// The longest message about an IPv4 packet (RFC 1812 section 4.3.2.3), and about one of IPv6 (RFC
/// 4443 section 2.4 (c)).
const LONGEST: usize = 576;
const LONGEST_V6: usize = 1280;
/// The first bytes of every message here, which stand before the packet that it is about.
const ICMP_HEADER: usize = 8;
/// Time to live of what is written.
const HOP_LIMIT: u8 = 64;
/// Class selector 6: internetwork control, which is what errors are sent with (RFC 1812 section
/// 4.3.2.5).
const CONTROL: u8 = 48;

/// How often messages about packets may be sent to one host: `net.ipv4.icmp_ratelimit`, and
/// `net.ipv6.icmp.ratelimit` as Linux 6.18 has it.
const INTERVAL: Span = Span::from_millis(1000);
const INTERVAL_V6: Span = Span::from_millis(100);
/// How many at once (`XRLIM_BURST_FACTOR`).
const BURST: u64 = 6;

/// What there is to say about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Problem {
    /// It ran out of hops.
    TimeExceeded,
    /// It is longer than the next link takes, which is this many bytes.
    TooBig(u16),
    /// No path leads to where it goes.
    NoRoute,
    /// It goes to addresses for which its source is not global enough; IPv6 alone.
    Scope,
    /// Nobody listens on its port; IPv4 only, like local hosts.
    Port,
    /// Nobody speaks its protocol; IPv4 alone.
    Protocol,
}

/// Who sends ICMP messages, and how often it may.
#[derive(Debug)]
pub(crate) struct Reporter {
    address: Option<Ipv4Addr>,
    address6: Option<Ipv6Addr>,
    bucket: Bucket,
    bucket6: Bucket,
}

/// A token bucket. It is full at first.
#[derive(Debug)]
struct Bucket {
    interval: Span,
    tokens: Span,
    filled: Time,
}

impl Bucket {
    fn new(interval: Span) -> Bucket {
        Bucket { interval, tokens: interval * BURST, filled: Time::ZERO }
    }

    fn allows(&mut self, now: Time) -> bool {
        self.tokens = (self.tokens + now.since(self.filled)).min(self.interval * BURST);
        self.filled = now;
        let allowed = self.tokens >= self.interval;
        if allowed {
            self.tokens = self.tokens - self.interval;
        }
        allowed
    }
}

impl Problem {
    fn v4(self) -> Option<Icmpv4Type> {
        Some(match self {
            Problem::TimeExceeded => Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit),
            Problem::TooBig(next_hop_mtu) => {
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded { next_hop_mtu })
            }
            // RFC 1812 section 5.2.7.1: code 0 is what a router without a route says.
            Problem::NoRoute => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Network),
            Problem::Port => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Port),
            Problem::Protocol => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Protocol),
            Problem::Scope => return None,
        })
    }

    fn v6(self) -> Option<Icmpv6Type> {
        Some(match self {
            Problem::TimeExceeded => Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded),
            Problem::TooBig(mtu) => Icmpv6Type::PacketTooBig { mtu: u32::from(mtu) },
            Problem::NoRoute => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute),
            Problem::Scope => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::BeyondScope),
            Problem::Port | Problem::Protocol => return None,
        })
    }
}

impl Reporter {
    /// From these addresses; a family without one is not spoken to.
    pub(crate) fn new(address: Option<Ipv4Addr>, address6: Option<Ipv6Addr>) -> Reporter {
        Reporter { address, address6, bucket: Bucket::new(INTERVAL), bucket6: Bucket::new(INTERVAL_V6) }
    }

    /// Writes the message about `packet` to `message`, or empties it if none may be sent: because
    /// of the packet, or because there were too many.
    pub(crate) fn report(
        &mut self,
        now: Time,
        problem: Problem,
        header: &Header,
        packet: &[u8],
        message: &mut Vec<u8>,
    ) -> bool {
        message.clear();
        let packet = &packet[..header.len];
        let limited = !matches!(problem, Problem::TooBig(_));
        match (header.source, header.destination) {
            (IpAddr::V4(source), IpAddr::V4(destination)) => {
                let (Some(address), Some(kind)) = (self.address, problem.v4()) else { return false };
                if is_reportable(source, destination, header, packet) && (!limited || self.bucket.allows(now)) {
                    let quoted = &packet[..packet.len().min(LONGEST - Ipv4Header::MIN_LEN - ICMP_HEADER)];
                    write_v4(address, source, kind, packet[1] >> 2, quoted, message);
                }
            }
            (IpAddr::V6(source), IpAddr::V6(destination)) => {
                let (Some(address), Some(kind)) = (self.address6, problem.v6()) else { return false };
                // RFC 4443 section 2.4 (e.3): about what goes to a group, only that it is too big.
                let group = destination.is_multicast() && limited;
                if !group && is_reportable_v6(source, header, packet) && (!limited || self.bucket6.allows(now)) {
                    let quoted = &packet[..packet.len().min(LONGEST_V6 - Ipv6Header::LEN - ICMP_HEADER)];
                    write_v6(address, source, kind, quoted, message);
                }
            }
            _ => {}
        }
        !message.is_empty()
    }

    /// Writes what a host answers to a packet for it that is no TCP segment: a reply to an echo
    /// request, port unreachable to a datagram, protocol unreachable to what it does not speak (RFC
    /// 1122 sections 3.2.2.6, 4.1.3.1 and 3.2.2.1). `false`, and `message` is empty, if it answers
    /// nothing.
    pub(crate) fn answer(&mut self, now: Time, header: &Header, packet: &[u8], message: &mut Vec<u8>) -> bool {
        message.clear();
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (header.source, header.destination) else { return false };
        if header.fragment || !is_one_host(source) || destination.is_multicast() || destination.is_broadcast() {
            return false;
        }
        let payload = &packet[header.payload..header.len];
        match header.protocol {
            protocol::ICMP => echo(destination, source, packet, payload, message),
            protocol::TCP => {}
            protocol::UDP if !is_datagram(source, destination, payload) => {}
            protocol::UDP => return self.report(now, Problem::Port, header, packet, message),
            _ => return self.report(now, Problem::Protocol, header, packet, message),
        }
        !message.is_empty()
    }
}

/// Whether a message about an IPv4 packet may be sent: RFC 1812 section 4.3.2.7.
fn is_reportable(source: Ipv4Addr, destination: Ipv4Addr, header: &Header, packet: &[u8]) -> bool {
    // What is no query may be an error (RFC 1122 section 3.2.2), and so may be what is too short to
    // tell. Queries: echo, router discovery, timestamp, information, address mask.
    let error = header.protocol == protocol::ICMP
        && !packet[header.payload..].first().is_some_and(|kind| matches!(kind, 0 | 8..=10 | 13..=18));
    is_one_host(source)
        && !destination.is_multicast()
        && !destination.is_broadcast()
        && !header.later_fragment
        && !error
}

/// Whether an address may be the source of a packet on its way: RFC 1812 section 5.3.7.
pub(super) fn is_one_host(source: Ipv4Addr) -> bool {
    source.octets()[0] != 0 && !source.is_loopback() && !source.is_multicast() && !source.is_broadcast()
}

/// Whether a message about an IPv6 packet may be sent: RFC 4443 section 2.4 (e), but for what goes
/// to a group. Of a later fragment it may; that cannot be of an error, because errors fit into what
/// every link takes.
fn is_reportable_v6(source: Ipv6Addr, header: &Header, packet: &[u8]) -> bool {
    // Types from 128 are informational; a redirect is treated as an error.
    let error = header.protocol == protocol::ICMPV6
        && !header.later_fragment
        && !packet[header.payload..].first().is_some_and(|&kind| kind >= 128 && kind != 137);
    !source.is_unspecified() && !source.is_multicast() && !error
}

/// Echo Reply: everything as in the request (RFC 1122 section 3.2.2.6), also the identification,
/// which the reply is then told from other packets by should it be fragmented, and the type of
/// service (RFC 1812 section 4.3.2.5) without the ECN bits.
fn echo(from: Ipv4Addr, to: Ipv4Addr, packet: &[u8], request: &[u8], message: &mut Vec<u8>) {
    let Some((&[8, 0, _, _, a, b, c, d], data)) = request.split_first_chunk() else { return };
    if Sum16BitWords::new().add_slice(request).ones_complement() != 0 {
        return;
    }
    let reply = Icmpv4Type::EchoReply(etherparse::IcmpEchoHeader {
        id: u16::from_be_bytes([a, b]),
        seq: u16::from_be_bytes([c, d]),
    });
    let mut ip = header_v4(from, to, request.len());
    ip.identification = u16::from_be_bytes([packet[4], packet[5]]);
    ip.dscp = IpDscp::try_new(packet[1] >> 2).unwrap_or_default();
    append_v4(ip, reply, data, message);
}

/// Whether a UDP datagram is whole: its length is right and its checksum, if it has one (RFC 768).
fn is_datagram(source: Ipv4Addr, destination: Ipv4Addr, payload: &[u8]) -> bool {
    let Some(&[_, _, _, _, high, low, check_high, check_low]) = payload.first_chunk() else { return false };
    let Some(datagram) = payload.get(..usize::from(u16::from_be_bytes([high, low]))) else { return false };
    let sum = Sum16BitWords::new()
        .add_4bytes(source.octets())
        .add_4bytes(destination.octets())
        .add_4bytes([0, protocol::UDP, high, low])
        .add_slice(datagram);
    datagram.len() >= 8 && ([check_high, check_low] == [0, 0] || sum.ones_complement() == 0)
}

fn header_v4(from: Ipv4Addr, to: Ipv4Addr, payload: usize) -> Ipv4Header {
    Ipv4Header {
        total_len: (Ipv4Header::MIN_LEN + payload) as u16,
        dont_fragment: false,
        time_to_live: HOP_LIMIT,
        protocol: IpNumber::ICMP,
        source: from.octets(),
        destination: to.octets(),
        ..Ipv4Header::default()
    }
}

/// A message about a packet whose differentiated services codepoint is `dscp`.
fn write_v4(from: Ipv4Addr, to: Ipv4Addr, kind: Icmpv4Type, dscp: u8, quoted: &[u8], message: &mut Vec<u8>) {
    let mut ip = header_v4(from, to, ICMP_HEADER + quoted.len());
    // RFC 1812 section 4.3.2.5: the type of service of the packet, with a precedence of its own.
    ip.dscp = IpDscp::try_new(CONTROL | dscp & 0b111).unwrap_or_default();
    // It is never fragmented, so that it takes no identification (RFC 6864 section 4.1).
    ip.dont_fragment = true;
    append_v4(ip, kind, quoted, message);
}

fn append_v4(mut ip: Ipv4Header, kind: Icmpv4Type, payload: &[u8], message: &mut Vec<u8>) {
    ip.header_checksum = ip.calc_header_checksum();
    message.extend_from_slice(&ip.to_bytes());
    message.extend_from_slice(&Icmpv4Header::with_checksum(kind, payload).to_bytes());
    message.extend_from_slice(payload);
}

fn write_v6(from: Ipv6Addr, to: Ipv6Addr, kind: Icmpv6Type, quoted: &[u8], message: &mut Vec<u8>) {
    // The only error is a payload that no packet can have.
    let Ok(icmp) = Icmpv6Header::with_checksum(kind, from.octets(), to.octets(), quoted) else { return };
    let ip = Ipv6Header {
        payload_length: (ICMP_HEADER + quoted.len()) as u16,
        next_header: IpNumber::IPV6_ICMP,
        hop_limit: HOP_LIMIT,
        source: from.octets(),
        destination: to.octets(),
        ..Ipv6Header::default()
    };
    message.extend_from_slice(&ip.to_bytes());
    message.extend_from_slice(&icmp.to_bytes());
    message.extend_from_slice(quoted);
}
