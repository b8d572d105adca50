//! A TUN device.

use std::fs;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::os::fd::{AsRawFd, RawFd};

use tun_tap::{Iface, Mode};

use super::netlink::{self, Plan};
use super::tun;
use super::watch::Watch;
use crate::offload::{HEADER, Offload};

/// A TUN device, which does not block and goes with this. Packets are IP packets.
#[derive(Debug)]
pub(crate) struct Device {
    file: File,
    /// The number that the kernel knows it by.
    index: u32,
    watch: Watch,
}

/// The file of a device.
#[derive(Debug)]
enum File {
    /// Packets, with nothing before them.
    Packets(Iface),
    /// Packets and segments, with a header before each.
    Segments(fs::File),
}

impl File {
    /// Makes a device in the namespace of the calling thread; with offloads, if it is to have them
    /// and the kernel can.
    fn open(name: &str, offload: bool) -> io::Result<File> {
        if offload && let Ok(device) = tun::open(name) {
            return Ok(File::Segments(device));
        }
        // If it was something else that failed, it fails again, and says so.
        let iface = Iface::without_packet_info(name, Mode::Tun)?;
        iface.set_non_blocking()?;
        Ok(File::Packets(iface))
    }
}

impl Device {
    /// Makes a device in the namespace of the calling thread, as planned and up; with offloads if
    /// it is to have them and the kernel can.
    pub(super) fn create(name: &str, plan: &Plan, offload: bool) -> io::Result<Device> {
        let file = File::open(name, offload)?;
        let index = netlink::configure(name, plan)?;
        Ok(Device { file, index, watch: Watch::new(index)? })
    }

    /// The number that the kernel knows it by.
    pub(super) fn index(&self) -> u32 {
        self.index
    }

    /// Whether it has segments, and checksums that are not computed.
    pub(crate) fn offloads(&self) -> bool {
        matches!(self.file, File::Segments(_))
    }

    /// Reads a packet; `WouldBlock` if there is none. What does not fit into the buffer is lost: a
    /// packet that fills one longer than the device's MTU was cut off.
    ///
    /// # Errors
    /// `EBADFD` if the device is gone.
    pub(crate) fn read(&self, buffer: &mut [u8]) -> io::Result<usize> {
        match &self.file {
            File::Packets(iface) => iface.recv(buffer),
            File::Segments(_) => self.read_offloaded([buffer, &mut []]).map(|(len, _)| len),
        }
    }

    /// Reads a packet or a segment, and what is left to do on it; what does not fit into the first
    /// buffer goes into the second.
    ///
    /// # Errors
    /// As [`Device::read`].
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

    /// Writes a packet, or a segment of several; what is in `rest` comes behind `packet`. A device
    /// without offloads takes packets in one piece, on which nothing is left to do.
    ///
    /// # Errors
    /// `EINVAL` for what is no IP packet, `EIO` if the device is down, `EBADFD` if it is gone.
    pub(crate) fn write(&self, packet: &[u8], rest: &[u8], offload: Offload) -> io::Result<()> {
        match &self.file {
            File::Packets(iface) => iface.send(packet).map(drop),
            File::Segments(device) => {
                let header = offload.write();
                Write::write_vectored(&mut &*device, &[&header, packet, rest].map(IoSlice::new)).map(drop)
            }
        }
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
        match &self.file {
            File::Packets(iface) => iface.as_raw_fd(),
            File::Segments(device) => device.as_raw_fd(),
        }
    }
}
