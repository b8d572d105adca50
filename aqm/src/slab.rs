//! Many FIFO queues over one array: a packet waits in a slot, and each slot knows the next one of
//! its queue. Slots are used again, so that memory follows the most that ever waited in all queues
//! together, not in each.

use crate::Entry;

/// No slot.
const NIL: u32 = u32::MAX;

/// The slots that the queues share.
#[derive(Debug)]
pub(crate) struct Slab<P> {
    slots: Vec<SlabSlot<P>>,
    /// The first free slot; free slots are chained as queues are.
    free: u32,
}

#[derive(Debug)]
struct SlabSlot<P> {
    entry: Option<Entry<P>>,
    next: u32,
}

/// One FIFO queue in a [`Slab`].
#[derive(Clone, Copy, Debug)]
pub(crate) struct SlabQueue {
    head: u32,
    tail: u32,
}

impl SlabQueue {
    /// An empty queue.
    pub(crate) const EMPTY: SlabQueue = SlabQueue { head: NIL, tail: NIL };

    /// Returns `true` if no packet waits in it.
    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.head == NIL
    }
}

impl<P> Slab<P> {
    /// No slots yet.
    pub(crate) fn new() -> Slab<P> {
        Slab { slots: Vec::new(), free: NIL }
    }

    /// Appends to `queue`, and returns the slot.
    ///
    /// # Panics
    /// With 2^32 - 1 packets in the slab: their slots alone would take more than 100 GB.
    #[inline]
    pub(crate) fn push(&mut self, queue: &mut SlabQueue, entry: Entry<P>) -> usize {
        let slot = SlabSlot { entry: Some(entry), next: NIL };
        let index = if self.free == NIL {
            assert!(self.slots.len() < NIL as usize, "more packets than a slab can number");
            self.slots.push(slot);
            (self.slots.len() - 1) as u32
        } else {
            let index = self.free;
            self.free = self.slots[index as usize].next;
            self.slots[index as usize] = slot;
            index
        };
        if queue.head == NIL {
            queue.head = index;
        } else {
            self.slots[queue.tail as usize].next = index;
        }
        queue.tail = index;
        index as usize
    }

    /// The head of `queue`.
    pub(crate) fn front(&self, queue: &SlabQueue) -> Option<&Entry<P>> {
        self.slots.get(queue.head as usize)?.entry.as_ref()
    }

    /// The packets of `queue` with their slots, in order.
    pub(crate) fn entries(&self, queue: &SlabQueue) -> impl Iterator<Item = (usize, &Entry<P>)> {
        let mut next = queue.head;
        std::iter::from_fn(move || {
            let (index, slot) = (next as usize, self.slots.get(next as usize)?);
            next = slot.next;
            Some((index, slot.entry.as_ref()?))
        })
    }

    /// Takes the packet behind that in the slot `before` out of `queue`, or its head. It is not the
    /// last one.
    pub(crate) fn remove(&mut self, queue: &mut SlabQueue, before: Option<usize>) -> Option<Entry<P>> {
        let Some(before) = before else { return self.pop(queue) };
        let mut rest = SlabQueue { head: self.slots[before].next, tail: queue.tail };
        let entry = self.pop(&mut rest);
        self.slots[before].next = rest.head;
        entry
    }

    /// The head of `queue`.
    pub(crate) fn front_mut(&mut self, queue: &SlabQueue) -> Option<&mut Entry<P>> {
        self.slots.get_mut(queue.head as usize)?.entry.as_mut()
    }

    /// Takes the last entry of `queue`. This looks at all of them.
    pub(crate) fn pop_back(&mut self, queue: &mut SlabQueue) -> Option<Entry<P>> {
        if queue.head == NIL || queue.head == queue.tail {
            return self.pop(queue);
        }
        let (last, mut before) = (queue.tail, queue.head);
        while self.slots[before as usize].next != last {
            before = self.slots[before as usize].next;
        }
        self.slots[before as usize].next = NIL;
        queue.tail = before;
        let slot = &mut self.slots[last as usize];
        slot.next = std::mem::replace(&mut self.free, last);
        slot.entry.take()
    }

    /// Takes the head of `queue`.
    #[inline]
    pub(crate) fn pop(&mut self, queue: &mut SlabQueue) -> Option<Entry<P>> {
        let index = queue.head;
        // `NIL` is beyond the last slot, so an empty queue ends here too.
        let slot = self.slots.get_mut(index as usize)?;
        let entry = slot.entry.take();
        queue.head = slot.next;
        slot.next = self.free;
        self.free = index;
        entry
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ackclock_units::Time;
    use proptest::prelude::*;
    use std::collections::VecDeque;

    proptest! {
        #[test]
        fn queues_in_a_slab_are_queues(steps in prop::collection::vec((0usize..4, 0..4), 0..200)) {
            let mut slab = Slab::new();
            let mut queues = [SlabQueue::EMPTY; 4];
            let mut models: [VecDeque<usize>; 4] = Default::default();
            let mut most = 0;
            // Each seventh packet is taken out again, from behind the head if that is not the last.
            for (serial, (queue, step)) in steps.into_iter().enumerate() {
                if step < 2 {
                    slab.push(&mut queues[queue], Entry { packet: serial, enqueued_at: Time::ZERO });
                    models[queue].push_back(serial);
                    most = most.max(models.iter().map(VecDeque::len).sum());
                    if serial % 7 == 0 && models[queue].len() > 2 {
                        let before = slab.entries(&queues[queue]).next().map(|(slot, _)| slot);
                        let removed = slab.remove(&mut queues[queue], before).map(|entry| entry.packet);
                        prop_assert_eq!(removed, models[queue].remove(1));
                    }
                } else if step == 2 {
                    let popped = slab.pop(&mut queues[queue]).map(|entry| entry.packet);
                    prop_assert_eq!(popped, models[queue].pop_front());
                } else {
                    let popped = slab.pop_back(&mut queues[queue]).map(|entry| entry.packet);
                    prop_assert_eq!(popped, models[queue].pop_back());
                }
                let entries: Vec<_> = slab.entries(&queues[queue]).map(|(_, entry)| entry.packet).collect();
                prop_assert_eq!(&entries, &models[queue].iter().copied().collect::<Vec<_>>());
                let heads = queues.map(|queue| slab.front(&queue).map(|entry| entry.packet));
                prop_assert!(heads.iter().eq(models.iter().map(|model| model.front().copied()).collect::<Vec<_>>().iter()));
                most = most.max(models.iter().map(VecDeque::len).sum());
                prop_assert_eq!(slab.slots.len(), most);
            }
        }
    }
}
