//! Wakeups in a tournament tree.

use ackclock_units::Time;

/// The number of a component's wakeup; lower numbers go first at equal times.
pub type Slot = u32;

/// One wakeup per slot, in order of (time, slot).
///
/// A tournament tree, whose leaves are the slots in their order. A node has the earliest time of
/// either half below it; of equal ones the left one goes first, which is that of the lower slots.
/// Re-arming changes the leaf, and the nodes above it as long as it is, or was, their earliest.
#[derive(Debug)]
pub struct Wakeups {
    /// The earliest of all.
    first: Time,
    /// Those below node n are 2n and 2n + 1; the root is node 1.
    nodes: Vec<[Time; 2]>,
    slots: u32,
}

impl Wakeups {
    /// No slots.
    pub fn new() -> Wakeups {
        Wakeups::with_slots(0)
    }

    /// So many slots, none of them armed.
    pub fn with_slots(slots: usize) -> Wakeups {
        let slots = u32::try_from(slots).expect("fewer than 2^32 components");
        let leaves = (slots as usize).next_power_of_two().max(2);
        Wakeups { first: Time::NEVER, nodes: vec![[Time::NEVER; 2]; leaves], slots }
    }

    /// Adds a slot, not armed.
    pub fn add_slot(&mut self) -> Slot {
        let slot = self.slots;
        if slot as usize == self.nodes.len() {
            let mut larger = Wakeups::with_slots(2 * self.nodes.len());
            (0..slot).for_each(|slot| larger.arm(slot, self.armed_at(slot)));
            self.nodes = larger.nodes;
        }
        self.slots = slot.checked_add(1).expect("fewer than 2^32 components");
        slot
    }

    /// Arms `slot` at `due` in place of what it was armed at; [`Time::NEVER`] disarms it.
    #[inline]
    pub fn arm(&mut self, slot: Slot, due: Time) {
        debug_assert!(slot < self.slots, "there is no slot {slot}");
        let (mut at, mut due) = (self.nodes.len() + slot as usize, due);
        while at > 1 {
            let node = &mut self.nodes[at / 2];
            if node[at % 2] == due {
                return;
            }
            node[at % 2] = due;
            due = node[0].min(node[1]);
            at /= 2;
        }
        self.first = due;
    }

    /// Arms `slot` at `due` unless it is armed at an earlier time.
    #[inline]
    pub fn arm_by(&mut self, slot: Slot, due: Time) {
        if due < self.armed_at(slot) {
            self.arm(slot, due);
        }
    }

    /// When `slot` is armed; [`Time::NEVER`] if it is not.
    #[inline]
    pub fn armed_at(&self, slot: Slot) -> Time {
        let at = self.nodes.len() + slot as usize;
        self.nodes[at / 2][at % 2]
    }

    /// When the next wakeup is; [`Time::NEVER`] if no slot is armed.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.first
    }

    /// The slot of the next wakeup, which is at [`Wakeups::next_at`].
    #[inline]
    pub fn next_slot(&self) -> Slot {
        let mut at = 1;
        while let Some([left, right]) = self.nodes.get(at) {
            at = 2 * at + usize::from(right < left);
        }
        (at - self.nodes.len()) as Slot
    }

    /// The slot of the next wakeup; of equal times that with the lowest rank.
    pub fn next_slot_by<R: Ord>(&self, rank: impl Fn(Slot) -> R) -> Slot {
        let due = self.next_at();
        let mut first: Option<(R, Slot)> = None;
        let mut open = vec![1];
        while let Some(at) = open.pop() {
            match self.nodes.get(at) {
                Some(halves) => open.extend((0..2).filter(|&half| halves[half] == due).map(|half| 2 * at + half)),
                None => {
                    let slot = (at - self.nodes.len()) as Slot;
                    let found = (rank(slot), slot);
                    first = first.filter(|first| *first < found).or(Some(found));
                }
            }
        }
        first.map_or(0, |(_, slot)| slot)
    }

    /// The next wakeup, left in place.
    pub fn peek(&self) -> Option<(Time, Slot)> {
        let due = self.next_at();
        (due < Time::NEVER).then(|| (due, self.next_slot()))
    }

    /// Takes the next wakeup out and disarms its slot.
    pub fn pop(&mut self) -> Option<(Time, Slot)> {
        let (due, slot) = self.peek()?;
        self.arm(slot, Time::NEVER);
        Some((due, slot))
    }
}

impl Default for Wakeups {
    fn default() -> Wakeups {
        Wakeups::new()
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
        fn behaves_as_an_ordered_set(
            ops in prop::collection::vec((0u32..40, prop::option::of(0u64..50), any::<bool>()), 0..600),
        ) {
            let mut wakeups = Wakeups::new();
            for _ in 0..40 {
                wakeups.add_slot();
            }
            let mut model = BTreeSet::new();
            for (slot, due, by) in ops {
                if slot == 0 {
                    prop_assert_eq!(wakeups.pop(), model.pop_first());
                    continue;
                }
                let due = due.map_or(Time::NEVER, Time::from_nanos);
                let before = wakeups.armed_at(slot);
                prop_assert_eq!(before != Time::NEVER, model.remove(&(before, slot)));
                let due = if by { due.min(before) } else { due };
                if by {
                    wakeups.arm_by(slot, due);
                } else {
                    wakeups.arm(slot, due);
                }
                prop_assert_eq!(wakeups.armed_at(slot), due);
                if due != Time::NEVER {
                    model.insert((due, slot));
                }
                prop_assert_eq!(wakeups.peek(), model.first().copied());
                // The other way round among equal times.
                if let Some(&(due, _)) = model.first() {
                    let last = model.iter().take_while(|&&(at, _)| at == due).last().map(|&(_, slot)| slot);
                    prop_assert_eq!(Some(wakeups.next_slot_by(std::cmp::Reverse)), last);
                }
            }
        }
    }
}
