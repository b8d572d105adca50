//! Link layers: the place of the IP packet in a captured frame.

use std::net::IpAddr;
use std::ops::Range;

/// A link layer whose frames may contain IP packets, by its number in
/// <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CaptureLinkLayer {
    /// None: LINKTYPE_RAW, `_IPV4`, `_IPV6`, and the values that systems use for `DLT_RAW`.
    Raw,
    /// LINKTYPE_ETHERNET.
    Ethernet,
    /// LINKTYPE_LINUX_SLL, the cooked header of the "any" interface.
    Sll,
    /// LINKTYPE_LINUX_SLL2.
    Sll2,
    /// LINKTYPE_NULL and LINKTYPE_LOOP, BSD's loopback device: four bytes before the packet.
    Loopback,
    /// LINKTYPE_PPP, and LINKTYPE_PPP_HDLC with the address and control bytes of RFC 1662.
    Ppp,
    /// LINKTYPE_PPP_ETHER: a session of PPPoE without Ethernet.
    PppEther,
}

/// The link layers that are read, for error messages.
pub(super) const KNOWN: &str = "raw IP (101, 228, 229), Ethernet (1), Linux cooked (113, 276), BSD loopback (0, 108) and \
                               PPP (9, 50, 51)";

/// 802.1Q and 802.1ad tags, four bytes each, before the EtherType of the payload.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// EtherTypes of IPv4 and IPv6.
const IP: [u16; 2] = [0x0800, 0x86dd];

/// PPP protocol numbers of IPv4 and IPv6 (RFC 1332, RFC 5072).
const IP_IN_PPP: [u16; 2] = [0x0021, 0x0057];

/// EtherType of a PPPoE session (RFC 2516), and the bytes of its header.
const PPPOE: u16 = 0x8864;
const PPPOE_HEADER: usize = 6;

impl CaptureLinkLayer {
    pub(super) fn new(number: i32) -> Option<CaptureLinkLayer> {
        match number {
            12 | 14 | 101 | 228 | 229 => Some(CaptureLinkLayer::Raw),
            1 => Some(CaptureLinkLayer::Ethernet),
            113 => Some(CaptureLinkLayer::Sll),
            276 => Some(CaptureLinkLayer::Sll2),
            0 | 108 => Some(CaptureLinkLayer::Loopback),
            9 | 50 => Some(CaptureLinkLayer::Ppp),
            51 => Some(CaptureLinkLayer::PppEther),
            _ => None,
        }
    }

    /// The range of the IP packet within a frame of `original` bytes, of which `frame` was
    /// captured; `None` if the frame contains no IP packet.
    pub(super) fn ip(self, frame: &[u8], original: usize) -> Option<Range<usize>> {
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        // Skips tags and PPPoE behind the EtherType at `at`.
        let behind = |mut at: usize| {
            while TAGS.contains(&word(at)?) {
                at += 4;
            }
            match word(at)? {
                PPPOE => behind_ppp(frame, at + 2 + PPPOE_HEADER),
                kind => IP.contains(&kind).then_some(at + 2),
            }
        };
        let from = match self {
            CaptureLinkLayer::Raw => return matches!(frame.first()? >> 4, 4 | 6).then_some(0..original),
            CaptureLinkLayer::Ethernet => behind(12)?,
            CaptureLinkLayer::Sll => behind(14)?,
            // The type is the first field; a tag continues behind the header.
            CaptureLinkLayer::Sll2 if TAGS.contains(&word(0)?) => behind(22)?,
            CaptureLinkLayer::Sll2 => IP.contains(&word(0)?).then_some(20)?,
            // Systems differ in the number of IPv6 and in byte order; the packet's version decides.
            CaptureLinkLayer::Loopback => 4,
            CaptureLinkLayer::Ppp => behind_ppp(frame, 0)?,
            CaptureLinkLayer::PppEther => behind_ppp(frame, PPPOE_HEADER)?,
        };
        // Short frames are padded and may have a trailer. A packet whose length field is 0 is a
        // segment that was captured before segmentation offload.
        let len = match frame.get(from)? >> 4 {
            4 => usize::from(word(from + 2)?),
            6 => match usize::from(word(from + 4)?) {
                0 => 0,
                payload => 40 + payload,
            },
            _ => return None,
        };
        let len = if len == 0 { original } else { len };
        Some(from..original.min(from + len))
    }
}

/// The offset of the IP packet behind the PPP header at `at`, with or without the address and
/// control bytes, with a protocol field of one byte or two (RFC 1661 sections 6.5 and 6.6).
fn behind_ppp(frame: &[u8], at: usize) -> Option<usize> {
    let rest = frame.get(at..)?;
    let at = if rest.starts_with(&[0xff, 0x03]) { at + 2 } else { at };
    let (&first, rest) = frame.get(at..)?.split_first()?;
    if first & 1 == 1 {
        return IP_IN_PPP.contains(&u16::from(first)).then_some(at + 1);
    }
    IP_IN_PPP.contains(&u16::from_be_bytes([first, *rest.first()?])).then_some(at + 2)
}

/// The source address of an IP packet.
pub(super) fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(12..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(8..)?.first_chunk::<16>()?)),
        _ => None,
    }
}
