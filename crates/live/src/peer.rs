//! Who is at the other end of a Unix socket.

use std::io;
use std::os::fd::AsFd;

use nix::sys::socket::getsockopt;
use nix::sys::socket::sockopt::PeerCredentials;
use nix::unistd::Uid;

/// Whether the other end is of the same user, or of root.
pub(crate) fn is_same_user(socket: &impl AsFd) -> io::Result<bool> {
    let peer = Uid::from_raw(getsockopt(socket, PeerCredentials)?.uid());
    Ok(peer == Uid::effective() || peer.is_root())
}
