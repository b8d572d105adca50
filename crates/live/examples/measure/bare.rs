//! A loop that only copies packets between two devices: the reference for a link without limits.

use std::io::{self, ErrorKind};
use std::os::fd::{AsRawFd, BorrowedFd};
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use tun_tap::Iface;

/// Packets that are read from one device before they are written to the other one. Faster than one
/// by one, and longer batches gain nothing.
const BATCH: usize = 32;

/// Copies until `stop`; how many packets that were.
pub(crate) fn copy(devices: &[Iface; 2], stop: &AtomicBool) -> io::Result<u64> {
    let mut buffers = vec![[0; 2048]; BATCH];
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
            }
            packets += count as u64;
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
