//! Split virtqueues in the guest's memory.
//!
//! The memory is a file that the guest maps; it is read and written as a file. Nothing that the guest
//! does to the file can make an access fault, and every address is checked against the regions that
//! it has announced.
//!
//! # Source
//!
//! OASIS Virtual I/O Device (VIRTIO) 1.1, section 2.6: descriptor table (2.6.5), available ring
//! (2.6.6), used ring (2.6.8), suppression of notifications (2.6.7).
//!
//! # Departures
//!
//! - Indirect descriptors and event indices are not offered, hence an indirect descriptor is a fault.

use std::fs::File;
use std::os::unix::fs::FileExt;

/// Most descriptors of a queue (section 2.6).
const MAX_SIZE: u32 = 32_768;

/// Flags of a descriptor (section 2.6.5).
const NEXT: u16 = 1;
const WRITE: u16 = 2;
const INDIRECT: u16 = 4;

/// Flag of the available ring: the driver wants no call (section 2.6.7).
const NO_INTERRUPT: u16 = 1;

/// A guest has broken the rules of a queue, or named memory that it does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct RingFault(pub(crate) String);

/// A part of the guest's memory.
#[derive(Debug)]
pub(crate) struct Region {
    /// Address in the guest.
    pub(crate) guest: u64,
    /// Address that messages use.
    pub(crate) user: u64,
    /// Bytes.
    pub(crate) size: u64,
    /// Offset in the file.
    pub(crate) offset: u64,
    pub(crate) file: File,
}

/// The guest's memory.
#[derive(Debug, Default)]
pub(crate) struct GuestMemory(pub(crate) Vec<Region>);

impl GuestMemory {
    /// File and offset of `len` bytes from `address` on.
    fn at(&self, address: u64, len: usize) -> Result<(&File, u64), RingFault> {
        let inside = |region: &&Region| {
            let from = address.checked_sub(region.guest);
            from.is_some_and(|from| from <= region.size && region.size - from >= len as u64)
        };
        let outside = || RingFault(format!("{len} bytes at {address:#x} are outside of its memory"));
        let region = self.0.iter().find(inside).ok_or_else(outside)?;
        let offset = region.offset.checked_add(address - region.guest).ok_or_else(outside)?;
        Ok((&region.file, offset))
    }

    pub(crate) fn read(&self, address: u64, to: &mut [u8]) -> Result<(), RingFault> {
        let (file, offset) = self.at(address, to.len())?;
        file.read_exact_at(to, offset).map_err(|error| RingFault(format!("its memory at {address:#x}: {error}")))
    }

    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Result<(), RingFault> {
        let (file, offset) = self.at(address, from.len())?;
        file.write_all_at(from, offset).map_err(|error| RingFault(format!("its memory at {address:#x}: {error}")))
    }

    fn read_u16(&self, address: u64) -> Result<u16, RingFault> {
        let mut bytes = [0; 2];
        self.read(address, &mut bytes)?;
        Ok(u16::from_le_bytes(bytes))
    }

    /// The address in the guest of an address in messages.
    pub(crate) fn guest_address(&self, user: u64) -> Result<u64, RingFault> {
        let inside = |region: &&Region| user.checked_sub(region.user).is_some_and(|from| from < region.size);
        let region =
            self.0.iter().find(inside).ok_or_else(|| RingFault(format!("{user:#x} is outside of its memory")))?;
        region.guest.checked_add(user - region.user).ok_or_else(|| RingFault(format!("a region ends beyond {user:#x}")))
    }
}

/// A buffer of a chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Buffer {
    pub(crate) address: u64,
    pub(crate) len: u32,
    /// The device writes it; otherwise it reads it.
    pub(crate) is_writable: bool,
}

/// A queue.
#[derive(Debug, Default)]
pub(crate) struct VirtRing {
    size: u16,
    descriptors: u64,
    available: u64,
    used: u64,
    /// Count of chains taken, modulo 2^16.
    taken: u16,
    /// Count of chains returned, modulo 2^16.
    returned: u16,
    pub(crate) is_enabled: bool,
    /// The chain last taken.
    pub(crate) chain: Vec<Buffer>,
}

impl VirtRing {
    /// The queue has `size` descriptors.
    pub(crate) fn set_size(&mut self, size: u32) -> Result<(), RingFault> {
        let fits = size.is_power_of_two() && size <= MAX_SIZE;
        let size = u16::try_from(size).ok().filter(|_| fits);
        self.size = size.ok_or_else(|| RingFault("a queue's size is no power of two up to 32768".to_owned()))?;
        Ok(())
    }

    pub(crate) fn set_addresses(&mut self, descriptors: u64, available: u64, used: u64) {
        (self.descriptors, self.available, self.used) = (descriptors, available, used);
    }

    /// The next chain that is taken is that at `base` of the available ring.
    pub(crate) fn set_base(&mut self, base: u16) {
        (self.taken, self.returned) = (base, base);
    }

    /// Gives back the chains taken since [`VirtRing::base`] was `base`.
    pub(crate) fn restore(&mut self, base: u16) {
        self.taken = base;
    }

    /// The position that a later [`VirtRing::set_base`] continues from.
    pub(crate) fn base(&self) -> u16 {
        self.taken
    }

    /// Takes the next chain that the driver has made available into `self.chain`, and returns its
    /// head; `None` if there is none.
    pub(crate) fn take(&mut self, memory: &GuestMemory) -> Result<Option<u16>, RingFault> {
        if !self.is_enabled || self.size == 0 {
            return Ok(None);
        }
        let ahead = memory.read_u16(offset(self.available, 2)?)?.wrapping_sub(self.taken);
        if ahead == 0 {
            return Ok(None);
        }
        if ahead > self.size {
            return Err(RingFault(format!("{ahead} chains are available, of {} descriptors", self.size)));
        }
        let slot = u64::from(self.taken % self.size);
        let head = memory.read_u16(offset(self.available, 4 + 2 * slot)?)?;
        self.chain.clear();
        let mut next = head;
        loop {
            if next >= self.size {
                return Err(RingFault(format!("descriptor {next}, of {}", self.size)));
            }
            if self.chain.len() >= self.size.into() {
                return Err(RingFault("a chain of descriptors has no end".to_owned()));
            }
            let mut bytes = [0; 16];
            memory.read(offset(self.descriptors, 16 * u64::from(next))?, &mut bytes)?;
            let [a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p] = bytes;
            let flags = u16::from_le_bytes([m, n]);
            if flags & INDIRECT != 0 {
                return Err(RingFault("an indirect descriptor, which was not offered".to_owned()));
            }
            self.chain.push(Buffer {
                address: u64::from_le_bytes([a, b, c, d, e, f, g, h]),
                len: u32::from_le_bytes([i, j, k, l]),
                is_writable: flags & WRITE != 0,
            });
            if flags & NEXT == 0 {
                break;
            }
            next = u16::from_le_bytes([o, p]);
        }
        self.taken = self.taken.wrapping_add(1);
        Ok(Some(head))
    }

    /// Returns the chain at `head`, of which `len` bytes were written.
    pub(crate) fn put(&mut self, memory: &GuestMemory, head: u16, len: u32) -> Result<(), RingFault> {
        let slot = u64::from(self.returned % self.size.max(1));
        let mut element = [0; 8];
        element[..4].copy_from_slice(&u32::from(head).to_le_bytes());
        element[4..].copy_from_slice(&len.to_le_bytes());
        memory.write(offset(self.used, 4 + 8 * slot)?, &element)?;
        self.returned = self.returned.wrapping_add(1);
        memory.write(offset(self.used, 2)?, &self.returned.to_le_bytes())
    }

    /// Whether the driver wants to be called.
    pub(crate) fn wants_call(&self, memory: &GuestMemory) -> Result<bool, RingFault> {
        Ok(memory.read_u16(self.available)? & NO_INTERRUPT == 0)
    }
}

fn offset(address: u64, by: u64) -> Result<u64, RingFault> {
    address.checked_add(by).ok_or_else(|| RingFault(format!("a queue at {address:#x} wraps")))
}

#[cfg(test)]
pub(crate) mod tests {
    use rustix::fs::{MemfdFlags, memfd_create};

    use super::*;

    /// Addresses of a queue of 4 in memory that begins at `BASE`.
    pub(crate) const BASE: u64 = 0x1000;
    pub(crate) const AVAILABLE: u64 = BASE + 0x100;
    pub(crate) const USED: u64 = BASE + 0x200;
    pub(crate) const BYTES: u64 = 0x4000;

    /// Memory of 16 kB, at an offset of 4 kB in its file.
    pub(crate) fn memory() -> GuestMemory {
        let file = File::from(memfd_create("guest", MemfdFlags::CLOEXEC).expect("a file in memory"));
        file.set_len(0x1000 + BYTES).expect("its length");
        GuestMemory(vec![Region { guest: BASE, user: 0x7000_0000, size: BYTES, offset: 0x1000, file }])
    }

    pub(crate) fn ring() -> VirtRing {
        let mut ring = VirtRing { is_enabled: true, ..VirtRing::default() };
        ring.set_size(4).expect("a power of two");
        ring.set_addresses(BASE, AVAILABLE, USED);
        ring
    }

    pub(crate) fn describe(memory: &GuestMemory, number: u64, address: u64, len: u32, flags: u16, next: u16) {
        let mut bytes = Vec::from(address.to_le_bytes());
        bytes.extend(len.to_le_bytes());
        bytes.extend(flags.to_le_bytes());
        bytes.extend(next.to_le_bytes());
        memory.write(BASE + 16 * number, &bytes).expect("inside");
    }

    /// The driver makes the chain at `head` available, as number `count` from 1.
    pub(crate) fn offer(memory: &GuestMemory, count: u16, head: u16) {
        memory.write(AVAILABLE + 4 + 2 * u64::from((count - 1) % 4), &head.to_le_bytes()).expect("inside");
        memory.write(AVAILABLE + 2, &count.to_le_bytes()).expect("inside");
    }

    #[test]
    fn chains_are_taken_in_order_and_returned() {
        let (memory, mut ring) = (memory(), ring());
        assert_eq!(ring.take(&memory), Ok(None));
        describe(&memory, 2, 0x2000, 12, NEXT, 1);
        describe(&memory, 1, 0x3000, 1500, WRITE, 77);
        for count in 1..=9 {
            offer(&memory, count, 2);
            assert_eq!(ring.take(&memory), Ok(Some(2)));
            let buffers = [
                Buffer { address: 0x2000, len: 12, is_writable: false },
                Buffer { address: 0x3000, len: 1500, is_writable: true },
            ];
            assert_eq!(ring.chain, buffers);
            assert_eq!(ring.take(&memory), Ok(None));
            ring.put(&memory, 2, 700).expect("inside");
            let mut used = [0; 8];
            memory.read(USED + 4 + 8 * u64::from((count - 1) % 4), &mut used).expect("inside");
            assert_eq!(used, [2, 0, 0, 0, 188, 2, 0, 0], "700 is 0x2bc");
            assert_eq!(memory.read_u16(USED + 2), Ok(count));
        }
        assert_eq!(ring.base(), 9);
    }

    #[test]
    fn a_driver_suppresses_calls() {
        let (memory, ring) = (memory(), ring());
        assert_eq!(ring.wants_call(&memory), Ok(true));
        memory.write(AVAILABLE, &1_u16.to_le_bytes()).expect("inside");
        assert_eq!(ring.wants_call(&memory), Ok(false));
    }

    #[test]
    fn nothing_the_guest_writes_is_trusted() {
        let memory = memory();
        // More chains than descriptors.
        offer(&memory, 5, 0);
        assert!(ring().take(&memory).is_err());
        // A head and a successor outside of the table.
        offer(&memory, 1, 4);
        assert!(ring().take(&memory).is_err());
        offer(&memory, 1, 0);
        describe(&memory, 0, 0x2000, 1, NEXT, 4);
        assert!(ring().take(&memory).is_err());
        // A circle, and an indirect table.
        describe(&memory, 0, 0x2000, 1, NEXT, 0);
        assert!(ring().take(&memory).is_err());
        describe(&memory, 0, 0x2000, 1, INDIRECT, 0);
        assert!(ring().take(&memory).is_err());
        // Queues outside of the memory, and beyond the end of all addresses.
        for address in [0, BASE - 4, BASE + BYTES - 1, u64::MAX - 1, u64::MAX] {
            let mut ring = ring();
            ring.set_addresses(address, address, address);
            assert!(ring.take(&memory).is_err() && ring.put(&memory, 0, 0).is_err(), "{address:#x}");
        }
        for size in [0, 3, 65_536, u32::MAX] {
            assert!(ring().set_size(size).is_err(), "{size}");
        }
        // A file that is shorter than the guest said.
        memory.0[0].file.set_len(0x1100).expect("its length");
        assert!(ring().take(&memory).is_err());
        // A region whose end cannot be counted.
        let file = memory.0[0].file.try_clone().expect("a second handle");
        let huge = GuestMemory(vec![Region { guest: 8, user: 8, size: u64::MAX, offset: u64::MAX - 4, file }]);
        assert!(huge.read(100, &mut [0; 8]).is_err() && huge.read(9, &mut [0; 8]).is_err());
        assert!(huge.guest_address(7).is_err());
    }
}
