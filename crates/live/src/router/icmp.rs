//! ICMP messages about packets, and answers to packets.
//!
//! # Source
//! RFC 792, RFC 1122 section 3.2.2, RFC 1812 section 4.3, RFC 1191; RFC 4443, RFC 8201. Rate
//! limits: Linux's token buckets (`net/ipv4/icmp.c`, `net/ipv6/icmp.c`, `net/ipv4/inetpeer.c`).
//!
//! # Departures
//! - Like Linux, and unlike RFC 4443 section 2.4 (f), messages that path MTU discovery needs are
//!   not rate-limited.
//! - Broadcast addresses of subnets are not recognized, since prefixes are unknown here; callers
//!   that know them check first.
//! - A message is never fragmented, and may exceed an MTU of less than 576 bytes, where Linux
//!   quotes less.
//! - Hosts do not reassemble fragments, and do not answer them. Answers have no options.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use ackclock_units::{Span, Time};
use etherparse::checksum::Sum16BitWords;
use etherparse::icmpv4::{DestUnreachableHeader, TimeExceededCode};
use etherparse::{
    Icmpv4Header, Icmpv4Type, Icmpv6Header, Icmpv6Type, IpDscp, IpNumber, Ipv4Header, Ipv6Header, icmpv6,
};

use super::Header;
use super::header::protocol;

/// The longest message about an IPv4 packet (RFC 1812 section 4.3.2.3) and about an IPv6 packet
/// (RFC 4443 section 2.4 (c)), in bytes.
const LONGEST: usize = 576;
const LONGEST_V6: usize = 1280;
/// Bytes of a message before the packet that it quotes.
const ICMP_HEADER: usize = 8;
/// The time to live or hop limit of messages.
const HOP_LIMIT: u8 = 64;
/// The DSCP of errors: class selector 6, internetwork control (RFC 1812 section 4.3.2.5).
const CONTROL: u8 = 48;

/// The shortest mean interval of messages: `net.ipv4.icmp_ratelimit`, and `net.ipv6.icmp.ratelimit`
/// of Linux 6.18.
const INTERVAL: Span = Span::from_millis(1000);
const INTERVAL_V6: Span = Span::from_millis(100);
/// The most messages at once (`XRLIM_BURST_FACTOR`).
const BURST: u64 = 6;

/// A problem with a packet that is reported to its source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IcmpProblem {
    /// Its hop limit was exceeded.
    TimeExceeded,
    /// It exceeds the next link's MTU, in bytes.
    TooBig(u16),
    /// No path leads to its destination.
    NoRoute,
    /// Its destination is beyond the scope of its source address; IPv6 only.
    Scope,
    /// Its port is unreachable; IPv4 only, like local hosts.
    Port,
    /// Its protocol is unreachable; IPv4 only.
    Protocol,
}

/// A sender of ICMP messages, with rate limits.
#[derive(Debug)]
pub(crate) struct Reporter {
    address: Option<Ipv4Addr>,
    address6: Option<Ipv6Addr>,
    bucket: IcmpRateLimit,
    bucket6: IcmpRateLimit,
}

/// A token bucket, full at first.
#[derive(Debug)]
struct IcmpRateLimit {
    interval: Span,
    tokens: Span,
    filled: Time,
}

impl IcmpRateLimit {
    fn new(interval: Span) -> IcmpRateLimit {
        IcmpRateLimit { interval, tokens: interval * BURST, filled: Time::ZERO }
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

impl IcmpProblem {
    fn v4(self) -> Option<Icmpv4Type> {
        Some(match self {
            IcmpProblem::TimeExceeded => Icmpv4Type::TimeExceeded(TimeExceededCode::TtlExceededInTransit),
            IcmpProblem::TooBig(next_hop_mtu) => {
                Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::FragmentationNeeded { next_hop_mtu })
            }
            // A router without a route sends code 0 (RFC 1812 section 5.2.7.1).
            IcmpProblem::NoRoute => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Network),
            IcmpProblem::Port => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Port),
            IcmpProblem::Protocol => Icmpv4Type::DestinationUnreachable(DestUnreachableHeader::Protocol),
            IcmpProblem::Scope => return None,
        })
    }

    fn v6(self) -> Option<Icmpv6Type> {
        Some(match self {
            IcmpProblem::TimeExceeded => Icmpv6Type::TimeExceeded(icmpv6::TimeExceededCode::HopLimitExceeded),
            IcmpProblem::TooBig(mtu) => Icmpv6Type::PacketTooBig { mtu: u32::from(mtu) },
            IcmpProblem::NoRoute => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::NoRoute),
            IcmpProblem::Scope => Icmpv6Type::DestinationUnreachable(icmpv6::DestUnreachableCode::BeyondScope),
            IcmpProblem::Port | IcmpProblem::Protocol => return None,
        })
    }
}

impl Reporter {
    /// A sender with these addresses; without an address, messages of that family are not sent.
    pub(crate) fn new(address: Option<Ipv4Addr>, address6: Option<Ipv6Addr>) -> Reporter {
        Reporter { address, address6, bucket: IcmpRateLimit::new(INTERVAL), bucket6: IcmpRateLimit::new(INTERVAL_V6) }
    }

    /// Writes the message about `packet` to `message`. `false`, with `message` empty, if none may
    /// be sent about this packet or at this time.
    pub(crate) fn report(
        &mut self,
        now: Time,
        problem: IcmpProblem,
        header: &Header,
        packet: &[u8],
        message: &mut Vec<u8>,
    ) -> bool {
        message.clear();
        let packet = &packet[..header.len];
        let limited = !matches!(problem, IcmpProblem::TooBig(_));
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
                // RFC 4443 section 2.4 (e.3): packets to a group are reported only if too big.
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

    /// Writes a host's answer to a packet for it that is no TCP segment: a reply to an echo
    /// request, port unreachable for a datagram, protocol unreachable for other protocols (RFC 1122
    /// sections 3.2.2.6, 4.1.3.1 and 3.2.2.1). `false`, with `message` empty, if it does not
    /// answer.
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
            protocol::UDP => return self.report(now, IcmpProblem::Port, header, packet, message),
            _ => return self.report(now, IcmpProblem::Protocol, header, packet, message),
        }
        !message.is_empty()
    }
}

/// Returns `true` if an IPv4 packet may be reported (RFC 1812 section 4.3.2.7).
fn is_reportable(source: Ipv4Addr, destination: Ipv4Addr, header: &Header, packet: &[u8]) -> bool {
    // Messages other than queries may be errors (RFC 1122 section 3.2.2), and so may those too
    // short to tell. Queries: echo, router discovery, timestamp, information, address mask.
    let error = header.protocol == protocol::ICMP
        && !packet[header.payload..].first().is_some_and(|kind| matches!(kind, 0 | 8..=10 | 13..=18));
    is_one_host(source)
        && !destination.is_multicast()
        && !destination.is_broadcast()
        && !header.later_fragment
        && !error
}

/// Returns `true` if an address may be the source of a forwarded packet (RFC 1812 section 5.3.7).
pub(super) fn is_one_host(source: Ipv4Addr) -> bool {
    source.octets()[0] != 0 && !source.is_loopback() && !source.is_multicast() && !source.is_broadcast()
}

/// Returns `true` if an IPv6 packet may be reported (RFC 4443 section 2.4 (e), except for multicast
/// destinations). Later fragments may: they belong to no ICMP error, since errors fit in the
/// smallest MTU.
fn is_reportable_v6(source: Ipv6Addr, header: &Header, packet: &[u8]) -> bool {
    // Types from 128 on are informational; a redirect is treated as an error.
    let error = header.protocol == protocol::ICMPV6
        && !header.later_fragment
        && !packet[header.payload..].first().is_some_and(|&kind| kind >= 128 && kind != 137);
    !source.is_unspecified() && !source.is_multicast() && !error
}

/// Writes an echo reply, which equals the request (RFC 1122 section 3.2.2.6) also in the
/// identification, which distinguishes its fragments from others, and in the type of service (RFC
/// 1812 section 4.3.2.5) without the ECN bits.
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

/// Returns `true` if a UDP datagram has a correct length, and a correct checksum or none (RFC 768).
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

/// Writes a message about a packet with DSCP `dscp`.
fn write_v4(from: Ipv4Addr, to: Ipv4Addr, kind: Icmpv4Type, dscp: u8, quoted: &[u8], message: &mut Vec<u8>) {
    let mut ip = header_v4(from, to, ICMP_HEADER + quoted.len());
    // RFC 1812 section 4.3.2.5: the packet's type of service, with another precedence.
    ip.dscp = IpDscp::try_new(CONTROL | dscp & 0b111).unwrap_or_default();
    // A message that is never fragmented needs no identification (RFC 6864 section 4.1).
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
    // The only error is a payload that exceeds a packet.
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
