//! A loop that only copies packets between two devices: the reference for a link without limits.

use std::fs::File;
use std::io::{self, ErrorKind, Read, Write};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tun_tap::Iface;

/// Packets that are read from one device before they are written to the other one. Faster than one
/// by one, and longer batches gain nothing.
const BATCH: usize = 32;

/// A device of either kind.
pub(crate) trait PacketDevice: AsRawFd {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize>;
    fn send(&self, bytes: &[u8]) -> io::Result<usize>;
    /// The number of packets of a wire in `bytes`.
    fn packets(bytes: &[u8]) -> u64;
}

impl PacketDevice for Iface {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        Iface::recv(self, buffer)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        Iface::send(self, bytes)
    }

    fn packets(_: &[u8]) -> u64 {
        1
    }
}

/// With a header before each packet or segment, which is handed through as it is.
impl PacketDevice for File {
    fn recv(&self, buffer: &mut [u8]) -> io::Result<usize> {
        (&*self).read(buffer)
    }

    fn send(&self, bytes: &[u8]) -> io::Result<usize> {
        (&*self).write(bytes)
    }

    fn packets(bytes: &[u8]) -> u64 {
        // `struct virtio_net_hdr`: the type, the bytes of headers, and those of each packet behind.
        let word = |at: usize| u64::from(u16::from_ne_bytes([bytes[at], bytes[at + 1]]));
        if bytes[1] == 0 { 1 } else { (bytes.len() as u64 - 10 - word(2)).div_ceil(word(4).max(1)) }
    }
}

/// Copies until `stop`; how many packets that were. Nothing is longer than `longest`.
pub(crate) fn copy<P: PacketDevice>(devices: &[P; 2], longest: usize, stop: &AtomicBool) -> io::Result<u64> {
    let mut buffers = vec![vec![0; longest]; BATCH];
    let mut lengths = [0; BATCH];
    let mut packets = 0;
    while !stop.load(Ordering::Relaxed) {
        let mut idle = true;
        for (from, to) in [(0, 1), (1, 0)] {
            let mut count = 0;
            while count < BATCH {
                match devices[from].recv(&mut buffers[count]) {
                    Ok(length) => lengths[count] = length,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                }
                count += 1;
            }
            for (buffer, &length) in buffers.iter().zip(&lengths[..count]) {
                devices[to].send(&buffer[..length])?;
                packets += P::packets(&buffer[..length]);
            }
            idle &= count < BATCH;
        }
        if idle {
            #[expect(
                unsafe_code,
                reason = "tun-tap has no other way to its descriptor, which is open for as long as this"
            )]
            let mut waits = [0, 1].map(|n: usize| {
                let descriptor = unsafe { BorrowedFd::borrow_raw(devices[n].as_raw_fd()) };
                PollFd::new(descriptor, PollFlags::POLLIN)
            });
            poll(&mut waits, PollTimeout::from(50_u8))?;
        }
    }
    Ok(packets)
}
