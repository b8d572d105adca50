//! A TUN device.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use tun_tap::{Iface, Mode};

use super::netlink::{self, DevicePlan};
use super::tun;
use super::watch::DeviceWatch;
use crate::offload::{HEADER, Offload};

/// A non-blocking TUN device that exists as long as this. Its packets are IP packets.
#[derive(Debug)]
pub(crate) struct TunDevice {
    file: File,
    /// The kernel's interface index.
    index: u32,
    watch: DeviceWatch,
}

/// The file of a device.
#[derive(Debug)]
enum File {
    /// Packets without headers of their own.
    Packets(Iface),
    /// Packets and segments, each behind a header.
    Segments(fs::File),
}

impl File {
    /// Creates a device in the namespace of the calling thread, with offloads if requested and
    /// supported.
    fn open(name: &str, offload: bool) -> io::Result<File> {
        if offload && let Ok(device) = tun::open(name) {
            return Ok(File::Segments(device));
        }
        // Any other error repeats here and is returned.
        let iface = Iface::without_packet_info(name, Mode::Tun)?;
        iface.set_non_blocking()?;
        Ok(File::Packets(iface))
    }
}

impl TunDevice {
    /// Creates a device in the namespace of the calling thread, configures it by `plan` and sets it
    /// up; with offloads if requested and supported.
    pub(super) fn create(name: &str, plan: &DevicePlan, offload: bool) -> io::Result<TunDevice> {
        let file = File::open(name, offload)?;
        let index = netlink::configure(name, plan)?;
        Ok(TunDevice { file, index, watch: DeviceWatch::new(index)? })
    }

    /// The kernel's interface index.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Returns `true` if it has offloads: segments, and checksums that are not computed.
    pub(crate) fn offloads(&self) -> bool {
        matches!(self.file, File::Segments(_))
    }

    /// Reads a packet; `WouldBlock` if there is none. A packet longer than the buffer is truncated:
    /// if the buffer exceeds the device's MTU, a truncated packet fills it.
    ///
    /// # Errors
    /// `EBADFD` if the device is gone.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            File::Packets(iface) => iface.recv(buffer),
            File::Segments(_) => self.read_offloaded([buffer, &mut []]).map(|(len, _)| len),
        }
    }

    /// Reads a packet or segment, continued in the second buffer, and its offload.
    ///
    /// # Errors
    /// As [`TunDevice::read`].
    pub(crate) fn read_offloaded(&self, [buffer, rest]: [&mut [u8]; 2]) -> io::Result<(usize, Offload)> {
        match &self.file {
            File::Packets(iface) => iface.recv(buffer).map(|len| (len, Offload::default())),
            File::Segments(device) => {
                let mut header = [0; HEADER];
                let mut slices = [IoSliceMut::new(&mut header), IoSliceMut::new(buffer), IoSliceMut::new(rest)];
                let len = Read::read_vectored(&mut &*device, &mut slices)?;
                Ok((len.saturating_sub(HEADER), Offload::read(&header)))
            }
        }
    }

    /// Writes a packet, or a segment of several: `packet`, then `rest`. A device without offloads
    /// requires complete packets and an empty `rest`.
    ///
    /// # Errors
    /// `EINVAL` if it is no IP packet, `EIO` if the device is down, `EBADFD` if it is gone.
    pub(crate) fn write(&self, packet: &[u8], rest: &[u8], offload: Offload) -> io::Result<()> {
        match &self.file {
            File::Packets(iface) => iface.send(packet).map(drop),
            File::Segments(device) => {
                let header = offload.write();
                Write::write_vectored(&mut &*device, &[&header, packet, rest].map(IoSlice::new)).map(drop)
            }
        }
    }

    /// Checks that the device has been up since the last call.
    ///
    /// # Errors
    /// `ENETDOWN` if it has been down, `ENODEV` if it is gone.
    pub(crate) fn check(&self) -> io::Result<()> {
        self.watch.check()
    }
}

impl AsRawFd for TunDevice {
    fn as_raw_fd(&self) -> RawFd {
        match &self.file {
            File::Packets(iface) => iface.as_raw_fd(),
            File::Segments(device) => device.as_raw_fd(),
        }
    }
}
