//! A slab of packet contents.

use ackclock_units::prefetch;

/// Slots that hold packet contents; freed slots are used again, so that no memory is allocated once
/// the pool has reached the size of a run.
///
/// # Panics
/// Every access panics on a slot that is not occupied: a handle outlived its packet, which is a bug
/// in the caller.
#[derive(Debug)]
pub struct Pool<T> {
    slots: Vec<PoolSlot<T>>,
    free: Vec<u32>,
}

/// It begins with a cache line.
#[derive(Debug)]
#[repr(align(64))]
struct PoolSlot<T> {
    contents: T,
    /// The number of packets that refer to the slot; 0 when it is free.
    references: u32,
}

impl<T> PoolSlot<T> {
    #[inline]
    fn occupied(&self, slot: u32) -> &PoolSlot<T> {
        if self.references == 0 {
            vacant(slot);
        }
        self
    }
}

#[cold]
#[inline(never)]
fn vacant(slot: u32) -> ! {
    panic!("slot {slot} is not occupied")
}

impl<T> Pool<T> {
    /// An empty pool.
    pub fn new() -> Pool<T> {
        Pool { slots: Vec::new(), free: Vec::new() }
    }

    /// Stores `contents` and returns its slot.
    pub fn insert(&mut self, contents: T) -> u32 {
        let entry = PoolSlot { contents, references: 1 };
        if let Some(slot) = self.free.pop() {
            self.slots[slot as usize] = entry;
            return slot;
        }
        let slot = u32::try_from(self.slots.len()).expect("fewer than 2^32 packets are on their way");
        self.slots.push(entry);
        // Room for every slot on the free list, so that `release` never allocates.
        self.free.reserve(self.slots.len());
        slot
    }

    /// A slot that holds anything: what was in it before, or nothing yet.
    #[inline]
    pub fn claim(&mut self) -> u32
    where
        T: Default,
    {
        self.claim_mut().0
    }

    /// The same with its contents, to be changed.
    #[inline]
    pub fn claim_mut(&mut self) -> (u32, &mut T)
    where
        T: Default,
    {
        let slot = match self.free.pop() {
            Some(slot) => slot,
            None => self.insert(T::default()),
        };
        let entry = &mut self.slots[slot as usize];
        entry.references = 1;
        (slot, &mut entry.contents)
    }

    /// Starts to fetch the contents of `slot` into the cache.
    #[inline]
    pub fn prefetch(&self, slot: u32) {
        if let Some(entry) = self.slots.get(slot as usize) {
            prefetch(entry);
        }
    }

    /// The contents of `slot`, to be changed.
    #[inline]
    pub fn get_mut(&mut self, slot: u32) -> &mut T {
        let entry = &mut self.slots[slot as usize];
        entry.occupied(slot);
        &mut entry.contents
    }

    /// The contents of `slot`.
    #[inline]
    pub fn get(&self, slot: u32) -> &T {
        &self.slots[slot as usize].occupied(slot).contents
    }

    /// Uses the contents of `slot` and removes a reference to it, as [`Pool::release`].
    #[inline(always)]
    pub fn take_in<R>(&mut self, slot: u32, take: impl FnOnce(&T) -> R) -> R {
        let entry = &mut self.slots[slot as usize];
        entry.occupied(slot);
        let result = take(&entry.contents);
        entry.references -= 1;
        if entry.references == 0 {
            self.free.push(slot);
        }
        result
    }

    /// The number of packets that refer to `slot`.
    #[inline]
    pub fn references(&self, slot: u32) -> u32 {
        self.slots[slot as usize].references
    }

    /// Adds a reference to `slot`.
    pub fn retain(&mut self, slot: u32) {
        let entry = &mut self.slots[slot as usize];
        entry.occupied(slot);
        entry.references += 1;
    }

    /// Removes a reference to `slot`; the last one frees it.
    #[inline]
    pub fn release(&mut self, slot: u32) {
        self.take_in(slot, |_| ());
    }

    /// The number of occupied slots.
    pub fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Returns true if no slot is occupied.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }
}

impl<T> Default for Pool<T> {
    fn default() -> Pool<T> {
        Pool::new()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_freed_slot_is_used_again() {
        let mut pool = Pool::new();
        let (first, second) = (pool.insert("a"), pool.insert("b"));
        pool.release(first);
        assert_eq!(pool.insert("c"), first);
        assert_eq!((*pool.get(first), *pool.get(second), pool.len()), ("c", "b", 2));
        pool.release(second);
        assert_eq!((pool.claim(), *pool.get(second)), (second, "b"));
        *pool.get_mut(second) = "d";
        let third = pool.claim();
        assert_eq!((*pool.get(second), *pool.get(third), pool.len()), ("d", "", 3));
    }

    #[test]
    #[should_panic(expected = "not occupied")]
    fn a_slot_is_released_once_for_each_reference() {
        let mut pool = Pool::new();
        let slot = pool.insert(());
        pool.retain(slot);
        pool.release(slot);
        pool.release(slot);
        pool.release(slot);
    }
}
