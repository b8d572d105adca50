//! Messages of rtnetlink, and their socket.
//!
//! # Source
//! netlink(7) and rtnetlink(7); `linux/netlink.h` and `linux/rtnetlink.h`. Numbers are in the
//! machine's byte order. A length includes the header before it, but not the padding.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{self, c_int};
use nix::sys::socket::{self, AddressFamily, MsgFlags, NetlinkAddr, SockFlag, SockProtocol, SockType};

/// Bytes of the header of a message, `nlmsghdr`.
const HEADER: usize = 16;
/// Bytes of the header of an attribute, `rtattr`.
const ATTRIBUTE: usize = 4;
/// The alignment of messages and attributes, in bytes.
const ALIGN: usize = 4;

/// Bytes of the receive buffer: the kernel sends dumps in pieces of up to 32 KiB
/// (`netlink_recvmsg`).
const LONGEST: usize = 1 << 16;

/// Types of messages that end a reply.
pub(super) const ERROR: u16 = libc::NLMSG_ERROR as u16;
const DONE: u16 = libc::NLMSG_DONE as u16;

/// Messages with `ifinfomsg`, `ifaddrmsg` and `rtmsg`.
pub(super) type Link = NetlinkMessage<16>;
pub(super) type Address = NetlinkMessage<8>;
pub(super) type Route = NetlinkMessage<12>;

/// A message without its header.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct NetlinkMessage<const N: usize> {
    /// The structure before the attributes.
    pub(super) fixed: [u8; N],
    /// Types and values in their original order.
    pub(super) attributes: Vec<(u16, Vec<u8>)>,
}

impl<const N: usize> NetlinkMessage<N> {
    pub(super) fn new(fixed: [u8; N]) -> NetlinkMessage<N> {
        NetlinkMessage { fixed, attributes: Vec::new() }
    }

    /// The message with one more attribute.
    pub(super) fn with(mut self, kind: u16, value: &[u8]) -> NetlinkMessage<N> {
        self.attributes.push((kind, value.to_vec()));
        self
    }

    /// The value of an attribute.
    pub(super) fn get(&self, kind: u16) -> Option<&[u8]> {
        self.attributes.iter().find(|(other, _)| *other == kind).map(|(_, value)| &value[..])
    }

    /// The interface index, which is here in all messages but routes.
    pub(super) fn index(&self) -> u32 {
        self.word(4)
    }

    /// The number at an offset in the structure.
    pub(super) fn word(&self, at: usize) -> u32 {
        u32::from_ne_bytes([self.fixed[at], self.fixed[at + 1], self.fixed[at + 2], self.fixed[at + 3]])
    }

    /// Writes a number at an offset in the structure.
    pub(super) fn set(&mut self, at: usize, word: u32) {
        self.fixed[at..at + 4].copy_from_slice(&word.to_ne_bytes());
    }

    /// The whole message, as a request with acknowledgment.
    pub(super) fn encode(&self, kind: u16, flags: c_int, sequence: u32) -> Vec<u8> {
        let attributes: Vec<u8> = self.attributes.iter().flat_map(|(kind, value)| attribute(*kind, value)).collect();
        let length = (HEADER + N + attributes.len()) as u32;
        let flags = (flags | libc::NLM_F_REQUEST | libc::NLM_F_ACK) as u16;
        let [length, sequence] = [length, sequence].map(u32::to_ne_bytes);
        let [kind, flags] = [kind, flags].map(u16::to_ne_bytes);
        [&length[..], &kind, &flags, &sequence, &[0; 4], &self.fixed, &attributes].concat()
    }

    fn parse(bytes: &[u8]) -> io::Result<NetlinkMessage<N>> {
        let (fixed, mut rest) = bytes.split_first_chunk().ok_or_else(malformed)?;
        let mut message = NetlinkMessage::new(*fixed);
        while !rest.is_empty() {
            let (length, kind) = (half(rest, 0)?, half(rest, 2)?);
            message.attributes.push((kind, take(&mut rest, length.into(), ATTRIBUTE)?.to_vec()));
        }
        Ok(message)
    }
}

/// The flag of an interface that is up (netdevice(7)).
pub(super) const IFF_UP: u32 = libc::IFF_UP as u32;

/// An interface by its index, with flags to set.
pub(super) fn link(index: u32, flags: u32) -> Link {
    let mut link = Link::new([0; 16]);
    for (at, word) in [(4, index), (8, flags), (12, flags)] {
        link.set(at, word);
    }
    link
}

/// An attribute with its padding, which may be the value of another attribute.
pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    // Values are names and numbers, or come from an attribute.
    let length = (ATTRIBUTE + value.len()) as u16;
    let mut bytes = [&length.to_ne_bytes()[..], &kind.to_ne_bytes(), value].concat();
    bytes.resize(bytes.len().next_multiple_of(ALIGN), 0);
    bytes
}

/// A socket in the namespace of the calling thread, subscribed to these multicast groups.
pub(super) fn open(flags: SockFlag, groups: u32) -> nix::Result<OwnedFd> {
    let flags = flags | SockFlag::SOCK_CLOEXEC;
    let socket = socket::socket(AddressFamily::Netlink, SockType::Raw, flags, SockProtocol::NetlinkRoute)?;
    socket::bind(socket.as_raw_fd(), &NetlinkAddr::new(0, groups))?;
    Ok(socket)
}

/// A connection to the kernel from one namespace.
pub(super) struct NetlinkSocket {
    socket: OwnedFd,
    sequence: u32,
}

impl NetlinkSocket {
    /// A connection from the namespace of the calling thread.
    pub(super) fn open() -> io::Result<NetlinkSocket> {
        Ok(NetlinkSocket { socket: open(SockFlag::empty(), 0)?, sequence: 0 })
    }

    /// Sends a request, and waits for the whole reply.
    ///
    /// # Errors
    /// The kernel's error.
    pub(super) fn request<const N: usize>(
        &mut self,
        kind: u16,
        flags: c_int,
        message: &NetlinkMessage<N>,
    ) -> io::Result<Vec<NetlinkMessage<N>>> {
        self.sequence += 1;
        let socket = self.socket.as_raw_fd();
        socket::send(socket, &message.encode(kind, flags, self.sequence), MsgFlags::empty())?;
        let mut buffer = vec![0; LONGEST];
        let mut replies = Vec::new();
        loop {
            match socket::recv(socket, &mut buffer, MsgFlags::MSG_TRUNC) {
                Ok(length) => {
                    let datagram = buffer.get(..length).ok_or_else(malformed)?;
                    if read(datagram, self.sequence, &mut replies)? {
                        return Ok(replies);
                    }
                }
                Err(Errno::EINTR) => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Reads a datagram of the reply to request `sequence`; `true` if it ends the reply.
fn read<const N: usize>(mut bytes: &[u8], sequence: u32, replies: &mut Vec<NetlinkMessage<N>>) -> io::Result<bool> {
    while !bytes.is_empty() {
        let (length, kind, to) = (word(bytes, 0)?, half(bytes, 4)?, word(bytes, 8)?);
        let message = take(&mut bytes, length as usize, HEADER)?;
        match kind {
            _ if to != sequence => {}
            // Both begin with 0 or a negative error number.
            ERROR | DONE => match word(message, 0)?.cast_signed() {
                0 => return Ok(true),
                error => return Err(io::Error::from_raw_os_error(error.wrapping_neg())),
            },
            _ => replies.push(NetlinkMessage::parse(message)?),
        }
    }
    Ok(false)
}

/// Takes an item of `length` bytes, header included, and its padding from the front, and returns
/// the item's contents.
fn take<'a>(bytes: &mut &'a [u8], length: usize, header: usize) -> io::Result<&'a [u8]> {
    let behind = bytes.get(header..length).ok_or_else(malformed)?;
    *bytes = bytes.get(length.next_multiple_of(ALIGN)..).unwrap_or_default();
    Ok(behind)
}

fn word(bytes: &[u8], at: usize) -> io::Result<u32> {
    let word = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or_else(malformed)?;
    Ok(u32::from_ne_bytes(*word))
}

fn half(bytes: &[u8], at: usize) -> io::Result<u16> {
    let half = bytes.get(at..).and_then(|bytes| bytes.first_chunk()).ok_or_else(malformed)?;
    Ok(u16::from_ne_bytes(*half))
}

fn malformed() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, "a malformed message of rtnetlink")
}

#[cfg(test)]
mod tests;
