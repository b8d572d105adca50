//! TUN devices with a header before each packet or segment (`IFF_VNET_HDR`), which `tun-tap` does
//! not support.
//!
//! # Source
//! `Documentation/networking/tuntap.rst` and `linux/if_tun.h` of Linux.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::os::unix::fs::OpenOptionsExt;

use nix::errno::Errno;
use nix::libc::{self, c_char, c_short, c_uint, c_ulong};

/// Creates a non-blocking device in the namespace of the calling thread, which exists as long as
/// its file. The kernel leaves checksums and TCP segmentation to its reader, and UDP segmentation
/// where it can (since Linux 6.2).
///
/// # Errors
/// The kernel's error, also if it has no offloads.
pub(crate) fn open(name: &str) -> io::Result<File> {
    const TCP: c_uint = libc::TUN_F_CSUM | libc::TUN_F_TSO4 | libc::TUN_F_TSO6;
    const UDP: c_uint = libc::TUN_F_USO4 | libc::TUN_F_USO6;
    let file = OpenOptions::new().read(true).write(true).custom_flags(libc::O_NONBLOCK).open("/dev/net/tun")?;
    let flags = (libc::IFF_TUN | libc::IFF_NO_PI | libc::IFF_VNET_HDR) as c_short;
    let ifr_ifru = libc::__c_anonymous_ifr_ifru { ifru_flags: flags };
    let mut request = libc::ifreq { ifr_name: [0; libc::IFNAMSIZ], ifr_ifru };
    // The last byte stays 0.
    for (to, from) in request.ifr_name[..libc::IFNAMSIZ - 1].iter_mut().zip(name.bytes()) {
        *to = from as c_char;
    }
    #[expect(unsafe_code, reason = "nothing safe makes such a device")]
    // SAFETY: the kernel copies a whole `ifreq` from there, and its answer to there.
    Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) })?;
    let leave = |what: c_uint| {
        #[expect(unsafe_code, reason = "nothing safe sets this")]
        // SAFETY: its argument is a number.
        Errno::result(unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETOFFLOAD, c_ulong::from(what)) })
    };
    leave(TCP | UDP).or_else(|_| leave(TCP))?;
    Ok(file)
}
