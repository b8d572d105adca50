//! Packets by the places where they are held: numbered in order of arrival, found again in constant
//! time, with memory for the most that were ever there together.

use crate::Entry;

/// Packets that wait somewhere else under their numbers.
#[derive(Debug)]
pub(crate) struct Held<P> {
    slots: Vec<Option<(u64, Entry<P>)>>,
    free: Vec<u32>,
    next: u64,
}

impl<P> Held<P> {
    pub(crate) fn new() -> Held<P> {
        Held { slots: Vec::new(), free: Vec::new(), next: 0 }
    }

    /// The number of packets.
    #[inline]
    pub(crate) fn len(&self) -> u64 {
        (self.slots.len() - self.free.len()) as u64
    }

    /// The number of places.
    pub(crate) fn slots(&self) -> usize {
        self.slots.len()
    }

    /// The number and the place of the packet that comes next.
    #[inline]
    pub(crate) fn next(&self) -> (u64, u32) {
        (self.next, self.free.last().map_or(self.slots.len() as u32, |&slot| slot))
    }

    /// The next packet comes.
    #[inline]
    pub(crate) fn put(&mut self, entry: Entry<P>) {
        let held = Some((self.next, entry));
        self.next += 1;
        match self.free.pop() {
            Some(slot) => self.slots[slot as usize] = held,
            None => self.slots.push(held),
        }
    }

    /// The packet with this number, which leaves.
    #[inline]
    pub(crate) fn take(&mut self, slot: u32, number: u64) -> Option<Entry<P>> {
        let (_, entry) = self.slots.get_mut(slot as usize)?.take_if(|(held, _)| *held == number)?;
        self.free.push(slot);
        Some(entry)
    }

    /// The packet with this number.
    pub(crate) fn get(&self, slot: u32, number: u64) -> Option<&Entry<P>> {
        let (held, entry) = self.slots.get(slot as usize)?.as_ref()?;
        (*held == number).then_some(entry)
    }

    /// The packets' places and numbers.
    pub(crate) fn all(&self) -> impl Iterator<Item = (usize, u64)> {
        self.slots.iter().enumerate().filter_map(|(slot, held)| Some((slot, held.as_ref()?.0)))
    }

    fn oldest_slot(&self) -> Option<(u32, u64)> {
        self.all().min_by_key(|&(_, number)| number).map(|(slot, number)| (slot as u32, number))
    }

    /// The packet that has been here longest, with its number. This looks at all.
    pub(crate) fn oldest(&self) -> Option<(u64, &Entry<P>)> {
        let (slot, number) = self.oldest_slot()?;
        Some((number, self.get(slot, number)?))
    }

    /// Takes all packets out, in order of arrival.
    pub(crate) fn take_all(&mut self) -> Vec<Entry<P>> {
        self.free.clear();
        let mut all: Vec<(u64, Entry<P>)> = self.slots.drain(..).flatten().collect();
        all.sort_unstable_by_key(|&(number, _)| number);
        all.into_iter().map(|(_, entry)| entry).collect()
    }

    /// Takes the packet out that has been here longest.
    pub(crate) fn take_oldest(&mut self) -> Option<Entry<P>> {
        let (slot, number) = self.oldest_slot()?;
        self.take(slot, number)
    }
}
