//! Segments to bytes and back: IPv4 and TCP headers.
//!
//! Headers go through smoltcp's packet views. Its `TcpRepr` and `Ipv4Repr` would be shorter to use,
//! but they lose ECE, CWR and the ECN codepoint, and a fourth SACK block. Options are written and
//! read here, because their layout is part of what a packet costs on the wire and because a
//! receiver must be more lenient than a `Result` per option.
//!
//! Not carried: IP options and fragments, the urgent pointer, the reserved bits of the TCP header.
//! Every packet that is written may not be fragmented and has identification 0 (RFC 6864 section
//! 4.1).

use ackclock_units::Ecn;
use smoltcp::wire::{IpAddress, IpProtocol, Ipv4Address, Ipv4Packet, TcpPacket, TcpSeqNumber};

use crate::layout::{OptionLayout, TcpOption, options};
use crate::{AccEcn, AccEcnOrder, FastOpen, Flags, Payload, SackBlocks, Segment, Timestamps, pattern};

#[cfg(test)]
mod tests;

/// Bytes of an IPv4 header without options.
const IP_HEADER: usize = 20;
/// Offset in a TCP header of the last byte of the nine control bits in [`Flags`]; the first of them
/// is the lowest bit of the byte before.
const FLAGS_AT: usize = 13;
/// Time to live of what is written.
const HOP_LIMIT: u8 = 64;

/// Kinds of TCP options (IANA registry "TCP Option Kind Numbers").
mod kind {
    pub(super) const END: u8 = 0;
    pub(super) const NOP: u8 = 1;
    pub(super) const MSS: u8 = 2;
    pub(super) const WINDOW_SCALE: u8 = 3;
    pub(super) const SACK_PERMITTED: u8 = 4;
    pub(super) const SACK: u8 = 5;
    pub(super) const TIMESTAMPS: u8 = 8;
    pub(super) const MPTCP: u8 = crate::mptcp::KIND;
    pub(super) const FAST_OPEN: u8 = 34;
    pub(super) const EXPERIMENT: u8 = 254;
    pub(super) const ACC_ECN_0: u8 = 172;
    pub(super) const ACC_ECN_1: u8 = 174;
}

/// The two ends of a packet, IPv4.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Addresses {
    /// Sender.
    pub source: [u8; 4],
    /// Receiver.
    pub destination: [u8; 4],
}

impl Addresses {
    /// The addresses of the way back.
    pub fn reversed(self) -> Addresses {
        Addresses { source: self.destination, destination: self.source }
    }
}

/// The reason why a segment was not written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum EmitError {
    /// Header and payload are more than an IPv4 packet holds.
    #[error("a packet of {wire_len} bytes; IPv4 carries at most 65535")]
    TooLong {
        /// Bytes of the whole packet.
        wire_len: u64,
    },
    /// The buffer is shorter than the packet.
    #[error("a packet of {needed} bytes into a buffer of {found}")]
    ShortBuffer {
        /// Bytes of the whole packet.
        needed: usize,
        /// Bytes of the buffer.
        found: usize,
    },
}

/// The reason why bytes are not an accepted TCP segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Fewer bytes than a header or than the length that it claims, or lengths that contradict each
    /// other.
    #[error("truncated or contradictory lengths")]
    Length,
    /// The version is not 4.
    #[error("IP version {0}; only 4 is read")]
    Version(u8),
    /// An IPv4 header with options.
    #[error("IPv4 options are not read")]
    IpOptions,
    /// A fragment of an IPv4 packet.
    #[error("fragments are not read")]
    Fragment,
    /// The protocol is not TCP.
    #[error("IP protocol {0}; only TCP (6) is read")]
    Protocol(u8),
    /// The checksum of the IPv4 header is wrong.
    #[error("wrong IPv4 header checksum")]
    IpChecksum,
    /// The checksum of the TCP segment is wrong.
    #[error("wrong TCP checksum")]
    TcpChecksum,
}

/// A packet that was read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Parsed<'a> {
    /// The decoded header. The payload has the right length and offset 0: its position in the
    /// stream depends on the initial sequence number, which the packet does not contain.
    pub segment: Segment,
    /// Source and destination.
    pub addresses: Addresses,
    /// The ECN codepoint.
    pub ecn: Ecn,
    /// The payload.
    pub payload: &'a [u8],
}

/// Writes `segment` as an IPv4 packet to the start of `buffer`, its payload from
/// [`crate::pattern`], and returns the length of the packet: [`Segment::wire_len`]. Options are
/// laid out as Linux does.
///
/// # Errors
/// A packet longer than IPv4 allows, or than `buffer`; nothing is written then.
pub fn emit(segment: &Segment, addresses: Addresses, ecn: Ecn, buffer: &mut [u8]) -> Result<usize, EmitError> {
    emit_with(segment, OptionLayout::Linux, addresses, 0, ecn, buffer)
}

/// [`emit`] with a layout of options, and a differentiated services codepoint, of which the low
/// six bits count.
///
/// # Errors
/// As [`emit`].
pub fn emit_with(
    segment: &Segment,
    layout: OptionLayout,
    addresses: Addresses,
    dscp: u8,
    ecn: Ecn,
    buffer: &mut [u8],
) -> Result<usize, EmitError> {
    let header_len = segment.header_len();
    let wire_len = IP_HEADER as u64 + u64::from(header_len) + u64::from(segment.payload.len);
    let total_len = u16::try_from(wire_len).map_err(|_| EmitError::TooLong { wire_len })?;
    let (needed, found) = (usize::from(total_len), buffer.len());
    let buffer = buffer.get_mut(..needed).ok_or(EmitError::ShortBuffer { needed, found })?;
    let (ip_header, tcp_bytes) = buffer.split_at_mut(IP_HEADER);
    let source = Ipv4Address::from_octets(addresses.source);
    let destination = Ipv4Address::from_octets(addresses.destination);

    let mut ip = Ipv4Packet::new_unchecked(ip_header);
    ip.set_version(4);
    ip.set_header_len(IP_HEADER as u8);
    ip.set_dscp(dscp & 0x3f);
    ip.set_ecn(ecn.bits());
    ip.set_total_len(total_len);
    ip.set_ident(0);
    ip.clear_flags();
    ip.set_dont_frag(true);
    ip.set_frag_offset(0);
    ip.set_hop_limit(HOP_LIMIT);
    ip.set_next_header(IpProtocol::Tcp);
    ip.set_src_addr(source);
    ip.set_dst_addr(destination);
    ip.fill_checksum();

    let mut tcp = TcpPacket::new_unchecked(tcp_bytes);
    tcp.set_src_port(segment.source_port);
    tcp.set_dst_port(segment.destination_port);
    tcp.set_seq_number(TcpSeqNumber(segment.seq.cast_signed()));
    tcp.set_ack_number(TcpSeqNumber(segment.ack.cast_signed()));
    tcp.clear_flags();
    tcp.set_header_len(header_len as u8);
    tcp.set_window_len(segment.window);
    tcp.set_urgent_at(0);
    write_options(segment, layout, tcp.options_mut());
    pattern::fill(segment.payload.offset, tcp.payload_mut());
    let tcp_bytes = tcp.into_inner();
    // All bits at once; the views have a setter for each.
    let [high, low] = segment.flags.bits().to_be_bytes();
    tcp_bytes[FLAGS_AT - 1] |= high;
    tcp_bytes[FLAGS_AT] = low;
    TcpPacket::new_unchecked(tcp_bytes).fill_checksum(&IpAddress::Ipv4(source), &IpAddress::Ipv4(destination));
    Ok(needed)
}

/// Writes the options of `segment` into `out`, which they fill: it has [`crate::options_len`]
/// bytes.
fn write_options(segment: &Segment, layout: OptionLayout, out: &mut [u8]) {
    let mut at = 0;
    let mut put = |bytes: &[u8]| {
        out[at..at + bytes.len()].copy_from_slice(bytes);
        at += bytes.len();
    };
    for option in options(segment, layout) {
        match option {
            TcpOption::End => put(&[kind::END]),
            TcpOption::Nop => put(&[kind::NOP]),
            TcpOption::Mss(mss) => {
                let [high, low] = mss.to_be_bytes();
                put(&[kind::MSS, 4, high, low]);
            }
            TcpOption::WindowScale(shift) => put(&[kind::WINDOW_SCALE, 3, shift]),
            TcpOption::SackPermitted => put(&[kind::SACK_PERMITTED, 2]),
            TcpOption::Timestamps(Timestamps { value, echo }) => {
                put(&[kind::TIMESTAMPS, 10]);
                put(&value.to_be_bytes());
                put(&echo.to_be_bytes());
            }
            TcpOption::Sack(blocks) => {
                put(&[kind::SACK, option.len() as u8]);
                for (left, right) in blocks.as_slice() {
                    put(&left.to_be_bytes());
                    put(&right.to_be_bytes());
                }
            }
            TcpOption::AccEcn(option) => {
                let kind = match option.order() {
                    AccEcnOrder::Zero => kind::ACC_ECN_0,
                    AccEcnOrder::One => kind::ACC_ECN_1,
                };
                put(&[kind, option.len() as u8]);
                put(option.as_bytes());
            }
            TcpOption::FastOpen(fast_open) => {
                let len = option.len() as u8;
                match fast_open.experimental {
                    true => put(&[kind::EXPERIMENT, len, FastOpen::EXPERIMENT[0], FastOpen::EXPERIMENT[1]]),
                    false => put(&[kind::FAST_OPEN, len]),
                }
                put(fast_open.cookie());
            }
            TcpOption::Mptcp(options) => {
                for option in options.encoded() {
                    put(option);
                    (option.len()..option.len().next_multiple_of(4)).for_each(|_| put(&[kind::NOP]));
                }
            }
        }
    }
    debug_assert_eq!(at, out.len(), "options_len() disagrees with the layout");
}

/// Reads an IPv4 packet with a TCP segment; bytes past the length that the IP header gives (padding
/// of a frame) are ignored.
///
/// Options are read as RFC 9293 section 3.1 asks and Linux does: unknown kinds and known kinds of a
/// wrong length are skipped, an impossible length ends the list. A window scale above 14 is
/// returned as it is (RFC 7323 section 2.3 leaves it to the endpoint to use 14).
///
/// # Errors
/// Anything that is not a whole, unfragmented TCP segment over IPv4 without IP options and with
/// valid checksums.
pub fn parse(bytes: &[u8]) -> Result<Parsed<'_>, ParseError> {
    let version = bytes.first().ok_or(ParseError::Length)? >> 4;
    if version != 4 {
        return Err(ParseError::Version(version));
    }
    let ip = Ipv4Packet::new_checked(bytes).map_err(|_| ParseError::Length)?;
    if usize::from(ip.header_len()) != IP_HEADER {
        return Err(ParseError::IpOptions);
    }
    if !ip.verify_checksum() {
        return Err(ParseError::IpChecksum);
    }
    if ip.more_frags() || ip.frag_offset() != 0 {
        return Err(ParseError::Fragment);
    }
    let protocol = ip.next_header();
    if protocol != IpProtocol::Tcp {
        return Err(ParseError::Protocol(protocol.into()));
    }
    let (source, destination) = (ip.src_addr(), ip.dst_addr());
    let tcp = TcpPacket::new_checked(ip.payload()).map_err(|_| ParseError::Length)?;
    if !tcp.verify_checksum(&IpAddress::Ipv4(source), &IpAddress::Ipv4(destination)) {
        return Err(ParseError::TcpChecksum);
    }
    Ok(Parsed {
        segment: read_segment(&tcp),
        addresses: Addresses { source: source.octets(), destination: destination.octets() },
        ecn: Ecn::from_bits(ip.ecn()),
        payload: tcp.payload(),
    })
}

/// Reads a TCP segment, of IPv4 or IPv6, without looking at its checksum: for one that passes by.
/// The payload has the right length and offset 0.
///
/// # Errors
/// Fewer bytes than the header says.
pub fn peek(bytes: &[u8]) -> Result<Segment, ParseError> {
    TcpPacket::new_checked(bytes).map(|tcp| read_segment(&tcp)).map_err(|_| ParseError::Length)
}

/// The header, and the length of the payload.
fn read_segment(tcp: &TcpPacket<&[u8]>) -> Segment {
    let mut segment = Segment {
        // At most 65535 bytes: the IP length field.
        payload: Payload { offset: 0, len: tcp.payload().len() as u32 },
        source_port: tcp.src_port(),
        destination_port: tcp.dst_port(),
        seq: tcp.seq_number().0.cast_unsigned(),
        ack: tcp.ack_number().0.cast_unsigned(),
        flags: Flags::from_bits(u16::from_be_bytes([tcp.as_ref()[FLAGS_AT - 1], tcp.as_ref()[FLAGS_AT]])),
        window: tcp.window_len(),
        ..Segment::default()
    };
    read_options(tcp.options(), &mut segment);
    segment
}

/// Reads `options` into `segment`; if an option occurs twice, the last one counts.
fn read_options(mut options: &[u8], segment: &mut Segment) {
    loop {
        match *options {
            [] | [kind::END, ..] => return,
            [kind::NOP, ref rest @ ..] => options = rest,
            [kind, len, ..] => {
                // The length counts kind and length themselves: below 2 or past the header it is
                // impossible.
                let Some(data) = options.get(2..usize::from(len)) else { return };
                if kind == kind::MPTCP {
                    // They fit: all of them are from one header.
                    segment.mptcp.push_bytes(&options[..usize::from(len)]);
                } else {
                    read_option(kind, data, segment);
                }
                options = &options[usize::from(len)..];
            }
            [_] => return,
        }
    }
}

/// Takes one option, if it is known and of its right length.
fn read_option(kind: u8, data: &[u8], segment: &mut Segment) {
    match (kind, data) {
        (kind::MSS, &[high, low]) => segment.mss = Some(u16::from_be_bytes([high, low])),
        (kind::WINDOW_SCALE, &[shift]) => segment.window_scale = Some(shift),
        (kind::SACK_PERMITTED, []) => segment.sack_permitted = true,
        (kind::TIMESTAMPS, data) => {
            if let ([value, echo], []) = data.as_chunks::<4>() {
                segment.timestamps =
                    Some(Timestamps { value: u32::from_be_bytes(*value), echo: u32::from_be_bytes(*echo) });
            }
        }
        (kind::SACK, data) => {
            let (edges, rest) = data.as_chunks::<4>();
            let (blocks, odd) = edges.as_chunks::<2>();
            if rest.is_empty() && odd.is_empty() {
                segment.sack = SackBlocks::default();
                for [left, right] in blocks {
                    // 38 bytes at most: never more than four.
                    segment.sack.push(u32::from_be_bytes(*left), u32::from_be_bytes(*right));
                }
            }
        }
        // Fields that are cut off are ignored (RFC 9768 section 3.2.3.3).
        (kind::ACC_ECN_0, data) => segment.acc_ecn = Some(AccEcn::from_bytes(AccEcnOrder::Zero, data)),
        (kind::ACC_ECN_1, data) => segment.acc_ecn = Some(AccEcn::from_bytes(AccEcnOrder::One, data)),
        (kind::FAST_OPEN, cookie) => segment.fast_open = Some(FastOpen::new(cookie)),
        (kind::EXPERIMENT, data) => {
            if let Some(cookie) = data.strip_prefix(&FastOpen::EXPERIMENT) {
                segment.fast_open = Some(FastOpen::new(cookie).in_form(true));
            }
        }
        _ => {}
    }
}
