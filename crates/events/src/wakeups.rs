//! An indexed binary heap of wakeups.

use ackclock_units::Time;

/// The number of a component's wakeup; lower numbers go first at equal times.
pub type Slot = u32;

/// One wakeup per slot, in order of (time, slot).
///
/// A binary heap of 16-byte keys with the position of each slot kept separately, so that re-arming
/// moves the one entry instead of leaving a stale one behind. Unarmed slots are not in the heap.
#[derive(Debug, Default)]
pub struct Wakeups {
    heap: Vec<(Time, Slot)>,
    /// Where each slot stands in `heap`; [`ABSENT`] if it is not armed.
    position: Vec<u32>,
}

const ABSENT: u32 = u32::MAX;

impl Wakeups {
    /// No slots.
    pub fn new() -> Wakeups {
        Wakeups::default()
    }

    /// Adds a slot, not armed.
    pub fn add_slot(&mut self) -> Slot {
        let slot = u32::try_from(self.position.len()).expect("fewer than 2^32 components");
        self.position.push(ABSENT);
        // Room for every slot, so that arming never allocates.
        self.heap.reserve(self.position.len() - self.heap.len());
        slot
    }

    /// Arms `slot` at `due` in place of what it was armed at; [`Time::NEVER`] disarms it.
    pub fn arm(&mut self, slot: Slot, due: Time) {
        let at = self.position[slot as usize];
        if at == ABSENT {
            if due != Time::NEVER {
                self.heap.push((due, slot));
                self.sift_up(self.heap.len() - 1);
            }
        } else if due == Time::NEVER {
            self.remove(at as usize);
        } else {
            let at = at as usize;
            let before = self.heap[at].0;
            self.heap[at].0 = due;
            if due < before {
                self.sift_up(at);
            } else {
                self.sift_down(at);
            }
        }
    }

    /// When `slot` is armed; [`Time::NEVER`] if it is not.
    pub fn armed_at(&self, slot: Slot) -> Time {
        match self.position[slot as usize] {
            ABSENT => Time::NEVER,
            at => self.heap[at as usize].0,
        }
    }

    /// The next wakeup, left in place.
    pub fn peek(&self) -> Option<(Time, Slot)> {
        self.heap.first().copied()
    }

    /// Takes the next wakeup out and disarms its slot.
    pub fn pop(&mut self) -> Option<(Time, Slot)> {
        let first = self.peek()?;
        self.remove(0);
        Some(first)
    }

    fn remove(&mut self, at: usize) {
        let (_, slot) = self.heap.swap_remove(at);
        self.position[slot as usize] = ABSENT;
        if at < self.heap.len() {
            self.sift_down(at);
            self.sift_up(at);
        }
    }

    fn sift_up(&mut self, mut at: usize) {
        let entry = self.heap[at];
        while at > 0 {
            let parent = (at - 1) / 2;
            if self.heap[parent] <= entry {
                break;
            }
            self.place(at, self.heap[parent]);
            at = parent;
        }
        self.place(at, entry);
    }

    fn sift_down(&mut self, mut at: usize) {
        let entry = self.heap[at];
        loop {
            let mut child = 2 * at + 1;
            if child >= self.heap.len() {
                break;
            }
            if child + 1 < self.heap.len() && self.heap[child + 1] < self.heap[child] {
                child += 1;
            }
            if entry <= self.heap[child] {
                break;
            }
            self.place(at, self.heap[child]);
            at = child;
        }
        self.place(at, entry);
    }

    fn place(&mut self, at: usize, entry: (Time, Slot)) {
        self.heap[at] = entry;
        self.position[entry.1 as usize] = at as u32;
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeSet;

    #[test]
    fn equal_times_go_by_slot() {
        let mut wakeups = Wakeups::new();
        let slots: Vec<Slot> = (0..4).map(|_| wakeups.add_slot()).collect();
        for &slot in slots.iter().rev() {
            wakeups.arm(slot, Time::from_millis(5));
        }
        let popped: Vec<Slot> = std::iter::from_fn(|| wakeups.pop()).map(|(_, slot)| slot).collect();
        assert_eq!(popped, slots);
    }

    proptest! {
        /// Against an ordered set, under any sequence of arming, disarming and popping.
        #[test]
        fn behaves_as_an_ordered_set(ops in prop::collection::vec((0u32..20, prop::option::of(0u64..50)), 0..300)) {
            let mut wakeups = Wakeups::new();
            for _ in 0..20 {
                wakeups.add_slot();
            }
            let mut model = BTreeSet::new();
            for (slot, due) in ops {
                if slot == 0 {
                    prop_assert_eq!(wakeups.pop(), model.pop_first());
                    continue;
                }
                let due = due.map_or(Time::NEVER, Time::from_nanos);
                let before = wakeups.armed_at(slot);
                prop_assert_eq!(before != Time::NEVER, model.remove(&(before, slot)));
                wakeups.arm(slot, due);
                if due != Time::NEVER {
                    model.insert((due, slot));
                }
                prop_assert_eq!(wakeups.peek(), model.first().copied());
            }
        }
    }
}
