//! Fragmentation of IPv4 packets (RFC 791 section 3.2).

use super::Header;
use super::header::set_checksum;

/// The longest IPv4 header.
const LONGEST_HEADER: usize = 60;
/// Bytes of an IPv4 header without options.
const SHORTEST_HEADER: usize = 20;
/// The smallest MTU: the longest header and 8 bytes (RFC 791 section 3.2).
pub(super) const LEAST_MTU: u16 = 68;
/// The flag "more fragments".
const MORE: u16 = 0x2000;

/// The fragments of a packet, in order.
#[derive(Debug)]
pub(crate) struct Fragments<'a> {
    packet: &'a [u8],
    mtu: usize,
    /// The offset of the next fragment within `packet`.
    at: usize,
    /// The header of the next fragment.
    header: [u8; LONGEST_HEADER],
    header_len: usize,
    /// The flags and the fragment offset, in units of 8 bytes, of `packet`, which may be a fragment
    /// itself.
    flags: u16,
    first: usize,
}

impl<'a> Fragments<'a> {
    /// Divides an IPv4 packet into fragments of at most `mtu` bytes, but at least 68. `packet` has
    /// the length that its header states.
    pub(crate) fn new(header: &Header, packet: &'a [u8], mtu: u16) -> Fragments<'a> {
        let first = header.payload;
        let mut copy = [0; LONGEST_HEADER];
        copy[..first].copy_from_slice(&packet[..first]);
        Fragments {
            packet: &packet[..header.len],
            mtu: usize::from(mtu.max(LEAST_MTU)),
            at: first,
            header: copy,
            header_len: first,
            flags: u16::from_be_bytes([packet[6], packet[7]]),
            first,
        }
    }

    /// Writes the next fragment to the start of `out`, which has room for `mtu` bytes, and returns
    /// its length; `None` after the last.
    pub(crate) fn next_into(&mut self, out: &mut [u8]) -> Option<usize> {
        let rest = &self.packet[self.at..];
        if rest.is_empty() {
            return None;
        }
        let room = self.mtu - self.header_len;
        let (piece, more) = match rest.len() <= room {
            true => (rest, self.flags & MORE),
            // All fragments but the last are multiples of 8 bytes.
            false => (&rest[..room / 8 * 8], MORE),
        };
        let len = self.header_len + piece.len();
        let flags = (self.flags & !MORE) + ((self.at - self.first) / 8) as u16 + more;
        self.header[2..4].copy_from_slice(&(len as u16).to_be_bytes());
        self.header[6..8].copy_from_slice(&flags.to_be_bytes());
        set_checksum(&mut self.header[..self.header_len]);
        out[..self.header_len].copy_from_slice(&self.header[..self.header_len]);
        out[self.header_len..len].copy_from_slice(piece);
        if self.at == self.first {
            self.keep_copied_options();
        }
        self.at += piece.len();
        Some(len)
    }

    /// Reduces the options to those of later fragments: those with the copied flag (RFC 791 section
    /// 3.1), up to the first that is invalid.
    fn keep_copied_options(&mut self) {
        let options = &self.packet[SHORTEST_HEADER..self.first];
        let (mut from, mut to) = (0, SHORTEST_HEADER);
        while let Some(&kind) = options.get(from) {
            let len = match (kind, options.get(from + 1)) {
                (0, _) => break,
                (1, _) => 1,
                (_, Some(&len)) if len >= 2 && from + usize::from(len) <= options.len() => usize::from(len),
                _ => break,
            };
            if kind & 0x80 != 0 {
                self.header[to..to + len].copy_from_slice(&options[from..from + len]);
                to += len;
            }
            from += len;
        }
        self.header_len = to.next_multiple_of(4);
        // Padding: end of option list.
        self.header[to..self.header_len].fill(0);
        self.header[0] = 0x40 | (self.header_len / 4) as u8;
    }
}
