//! A TUN device.

use std::io;
use std::os::fd::{AsRawFd, RawFd};

use tun_tap::{Iface, Mode};

use super::netlink::{self, Plan};
use super::watch::Watch;

/// A TUN device, which does not block and goes with this. Packets are IP packets, without anything
/// before them.
#[derive(Debug)]
pub(crate) struct Device {
    iface: Iface,
    /// The number that the kernel knows it by.
    index: u32,
    watch: Watch,
}

impl Device {
    /// Makes a device in the namespace of the calling thread, as planned and up.
    pub(super) fn create(name: &str, plan: &Plan) -> io::Result<Device> {
        let iface = Iface::without_packet_info(name, Mode::Tun)?;
        iface.set_non_blocking()?;
        let index = netlink::configure(name, plan)?;
        Ok(Device { iface, index, watch: Watch::new(index)? })
    }

    /// The number that the kernel knows it by.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Reads a packet; `WouldBlock` if there is none. What does not fit into the buffer is lost: a
    /// packet that fills one longer than the device's MTU was cut off.
    ///
    /// # Errors
    /// `EBADFD` if the device is gone.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        self.iface.recv(buffer)
    }

    /// Writes a packet.
    ///
    /// # Errors
    /// `EINVAL` for what is no IP packet, `EIO` if the device is down, `EBADFD` if it is gone.
    pub(crate) fn write(&self, packet: &[u8]) -> io::Result<()> {
        self.iface.send(packet).map(|_| ())
    }

    /// Whether it has been there and up since the last call.
    ///
    /// # Errors
    /// `ENETDOWN` if it has been down, `ENODEV` if it is gone.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.watch.check()
    }
}

impl AsRawFd for Device {
    fn as_raw_fd(&self) -> RawFd {
        self.iface.as_raw_fd()
    }
}
