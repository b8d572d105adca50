//! Whether a device is still there and up.
//!
//! A device that is down refuses what is written to it and has nothing to read, so that a run in
//! which nothing is on its way to it would not notice. The kernel reports each change of a device
//! to netlink sockets in its namespace; these reports are kept until somebody looks.

use std::io;

use nix::errno::Errno;
use rtnetlink::MulticastGroup;
use rtnetlink::packet_core::{NLM_F_REQUEST, NetlinkMessage};
use rtnetlink::packet_route::RouteNetlinkMessage;
use rtnetlink::packet_route::link::LinkMessage;
use rtnetlink::sys::protocols::NETLINK_ROUTE;
use rtnetlink::sys::{Socket, SocketAddr};

/// Types of messages (netlink(7), rtnetlink(7)).
const NLMSG_ERROR: u16 = 2;
const RTM_NEWLINK: u16 = 16;
const RTM_DELLINK: u16 = 17;

/// A flag of a device (netdevice(7)).
const IFF_UP: u32 = 1;

/// Bytes of a message that are read: `nlmsghdr`, and `ifinfomsg` or the beginning of `nlmsgerr`.
/// The attributes after them are cut off.
const HEADERS: usize = 32;

/// Watches one device.
#[derive(Debug)]
pub(super) struct Watch {
    socket: Socket,
    /// The number of the device.
    index: u32,
}

impl Watch {
    /// Watches a device in the namespace of the calling thread, from now on.
    pub(super) fn new(index: u32) -> io::Result<Watch> {
        let mut socket = Socket::new(NETLINK_ROUTE)?;
        socket.set_non_blocking(true)?;
        socket.bind(&SocketAddr::new(0, 1 << (MulticastGroup::Link as u32 - 1)))?;
        Ok(Watch { socket, index })
    }

    /// Looks through what has been reported since the last call.
    ///
    /// # Errors
    /// `ENODEV` if the device is gone; `ENETDOWN` if it is down, or has been meanwhile: the kernel
    /// has removed its routes then.
    pub(super) fn check(&self) -> io::Result<()> {
        let mut lost = false;
        loop {
            let mut message = [0; HEADERS];
            let Err(error) = self.socket.recv(&mut &mut message[..], 0) else {
                judge(&message, self.index)?;
                continue;
            };
            match error.raw_os_error().map(Errno::from_raw) {
                Some(Errno::EINTR) => {}
                Some(Errno::ENOBUFS) => lost = true,
                // Only now is there room for the answer, which is a report as well.
                Some(Errno::EAGAIN) if lost => {
                    lost = false;
                    self.ask()?;
                }
                Some(Errno::EAGAIN) => return Ok(()),
                _ => return Err(error),
            }
        }
    }

    /// Asks for a report.
    fn ask(&self) -> io::Result<()> {
        let mut link = LinkMessage::default();
        link.header.index = self.index;
        let mut request = NetlinkMessage::from(RouteNetlinkMessage::GetLink(link));
        request.header.flags = NLM_F_REQUEST;
        request.finalize();
        let mut bytes = vec![0; request.buffer_len()];
        request.serialize(&mut bytes);
        self.socket.send(&bytes, 0).map(|_| ())
    }
}

/// What a message says about device `index`.
fn judge(message: &[u8; HEADERS], index: u32) -> Result<(), Errno> {
    let word = |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    let (about, flags) = (word(20), word(24));
    match u16::from_ne_bytes([message[4], message[5]]) {
        RTM_NEWLINK if about == index && flags & IFF_UP == 0 => Err(Errno::ENETDOWN),
        RTM_DELLINK if about == index => Err(Errno::ENODEV),
        // There is no such device any more.
        NLMSG_ERROR if word(16) != 0 => Err(Errno::from_raw((word(16) as i32).wrapping_neg())),
        _ => Ok(()),
    }
}
