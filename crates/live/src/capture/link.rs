//! Link layers: the place of the IP packet in a captured frame.

use std::net::IpAddr;
use std::ops::Range;

/// A link layer that IP packets are found in; numbers as of
/// <https://www.tcpdump.org/linktypes.html>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Link {
    /// None: LINKTYPE_RAW, `_IPV4`, `_IPV6`, and what systems have for `DLT_RAW`.
    Raw,
    /// LINKTYPE_ETHERNET.
    Ethernet,
    /// LINKTYPE_LINUX_SLL, of "any" interface.
    Sll,
    /// LINKTYPE_LINUX_SLL2.
    Sll2,
}

/// What of it is read, for messages.
pub(super) const KNOWN: &str = "raw IP (101, 228, 229), Ethernet (1) and Linux cooked (113, 276)";

/// 802.1Q and 802.1ad tags, four bytes before the type that counts.
const TAGS: [u16; 3] = [0x8100, 0x88a8, 0x9100];

/// IPv4 and IPv6.
const IP: [u16; 2] = [0x0800, 0x86dd];

impl Link {
    pub(super) fn new(number: i32) -> Option<Link> {
        match number {
            12 | 14 | 101 | 228 | 229 => Some(Link::Raw),
            1 => Some(Link::Ethernet),
            113 => Some(Link::Sll),
            276 => Some(Link::Sll2),
            _ => None,
        }
    }

    /// Where the IP packet is in a frame; `None` if there is none.
    pub(super) fn ip(self, frame: &[u8]) -> Option<Range<usize>> {
        let word = |at: usize| Some(u16::from_be_bytes(*frame.get(at..)?.first_chunk()?));
        let from = match self {
            Link::Raw => return matches!(frame.first()? >> 4, 4 | 6).then_some(0..frame.len()),
            Link::Ethernet => {
                let mut at = 12;
                while TAGS.contains(&word(at)?) {
                    at += 4;
                }
                IP.contains(&word(at)?).then_some(at + 2)?
            }
            Link::Sll => IP.contains(&word(14)?).then_some(16)?,
            Link::Sll2 => IP.contains(&word(0)?).then_some(20)?,
        };
        // A short frame is padded, and may have a trailer. Without a length it is a segment that
        // was never sent as one.
        let len = match frame.get(from)? >> 4 {
            4 => usize::from(word(from + 2)?),
            6 => match usize::from(word(from + 4)?) {
                0 => 0,
                payload => 40 + payload,
            },
            _ => return None,
        };
        let len = if len == 0 { frame.len() } else { len };
        Some(from..frame.len().min(from + len))
    }
}

/// The source address of an IP packet.
pub(super) fn source(packet: &[u8]) -> Option<IpAddr> {
    match packet.first()? >> 4 {
        4 => Some(IpAddr::from(*packet.get(12..)?.first_chunk::<4>()?)),
        6 => Some(IpAddr::from(*packet.get(8..)?.first_chunk::<16>()?)),
        _ => None,
    }
}
