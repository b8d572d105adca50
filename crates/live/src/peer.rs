//! The user at the other end of a Unix socket.

use std::io;
use std::os::fd::AsFd;

use nix::unistd::Uid;

/// Whether the other end belongs to the same user, or to root.
pub(crate) fn is_same_user(socket: &impl AsFd) -> io::Result<bool> {
    Ok(user(socket)?.is_none_or(|peer| peer == Uid::effective() || peer.is_root()))
}

/// The user at the other end, where the kernel reports it.
#[cfg(any(target_os = "linux", target_os = "android"))]
fn user(socket: &impl AsFd) -> io::Result<Option<Uid>> {
    let credentials = nix::sys::socket::getsockopt(socket, nix::sys::socket::sockopt::PeerCredentials)?;
    Ok(Some(Uid::from_raw(credentials.uid())))
}

#[cfg(any(
    target_vendor = "apple",
    target_os = "dragonfly",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
))]
fn user(socket: &impl AsFd) -> io::Result<Option<Uid>> {
    Ok(Some(nix::unistd::getpeereid(socket)?.0))
}

#[cfg(not(any(
    target_os = "linux",
    target_os = "android",
    target_vendor = "apple",
    target_os = "dragonfly",
    target_os = "freebsd",
    target_os = "netbsd",
    target_os = "openbsd"
)))]
fn user(_: &impl AsFd) -> io::Result<Option<Uid>> {
    Ok(None)
}
