//! Watching whether a device exists and is up.
//!
//! A device that is down refuses writes and has nothing to read, so that a run without packets on
//! their way to it would not notice. The kernel reports each change of a device to netlink sockets
//! in its namespace; these reports are kept until they are read.

use std::io;
use std::os::fd::{AsRawFd, OwnedFd};

use nix::errno::Errno;
use nix::libc::{RTM_DELLINK, RTM_GETLINK, RTM_NEWLINK, RTMGRP_LINK};
use nix::sys::socket::{MsgFlags, SockFlag, recv, send};

use super::rtnetlink::{self, IFF_UP, link};

/// Bytes of a message that are read: `nlmsghdr`, and `ifinfomsg` or the beginning of `nlmsgerr`.
/// The attributes are truncated.
const HEADERS: usize = 32;

/// Watches one device.
#[derive(Debug)]
pub(super) struct DeviceWatch {
    socket: OwnedFd,
    /// The interface index of the device.
    index: u32,
}

impl DeviceWatch {
    /// Watches a device in the namespace of the calling thread, from now on.
    pub(super) fn new(index: u32) -> io::Result<DeviceWatch> {
        let socket = rtnetlink::open(SockFlag::SOCK_NONBLOCK, RTMGRP_LINK as u32)?;
        Ok(DeviceWatch { socket, index })
    }

    /// Checks the reports since the last call.
    ///
    /// # Errors
    /// `ENODEV` if the device is gone; `ENETDOWN` if it is or has been down, as the kernel then
    /// removes its routes.
    pub(super) fn check(&self) -> io::Result<()> {
        let mut lost = false;
        loop {
            let mut message = [0; HEADERS];
            match recv(self.socket.as_raw_fd(), &mut message, MsgFlags::empty()) {
                Ok(_) => judge(&message, self.index)?,
                Err(Errno::EINTR) => {}
                Err(Errno::ENOBUFS) => lost = true,
                // Only an empty queue has room for the reply, which arrives like a report.
                Err(Errno::EAGAIN) if lost => {
                    lost = false;
                    let request = link(self.index, 0).encode(RTM_GETLINK, 0, 0);
                    send(self.socket.as_raw_fd(), &request, MsgFlags::empty())?;
                }
                Err(Errno::EAGAIN) => return Ok(()),
                Err(error) => return Err(error.into()),
            }
        }
    }
}

/// Checks a message about device `index`.
fn judge(message: &[u8; HEADERS], index: u32) -> Result<(), Errno> {
    let word = |at: usize| u32::from_ne_bytes([message[at], message[at + 1], message[at + 2], message[at + 3]]);
    let (about, flags) = (word(20), word(24));
    match u16::from_ne_bytes([message[4], message[5]]) {
        RTM_NEWLINK if about == index && flags & IFF_UP == 0 => Err(Errno::ENETDOWN),
        RTM_DELLINK if about == index => Err(Errno::ENODEV),
        // The device no longer exists.
        rtnetlink::ERROR if word(16) != 0 => Err(Errno::from_raw((word(16) as i32).wrapping_neg())),
        _ => Ok(()),
    }
}
