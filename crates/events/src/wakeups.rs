//! Wakeups in a tournament tree.

use ackclock_units::{Time, splitmix64};

/// The number of a component's wakeup.
pub type Slot = u32;

/// One wakeup per slot, in order of time.
///
/// Of those at equal times the lower slots go first ([`Wakeups::with_slots`]), or an order is drawn
/// anew for each time ([`Wakeups::with_ties`]): that of the slots' numbers after an exclusive or
/// with random bits, so that either of two goes first as often, whatever others there are.
///
/// A tournament tree, whose leaves are the slots in their order. A node has the earliest time of
/// either half below it. Re-arming changes the leaf, and the nodes above it as long as it is, or
/// was, their earliest.
#[derive(Debug)]
pub struct Wakeups {
    /// The earliest of all.
    first: Time,
    /// The earliest times of the two halves below each node: node n has the children 2n and 2n + 1;
    /// the root is node 1.
    nodes: Vec<[Time; 2]>,
    slots: u32,
    /// Seed of the order of equal times; 0 orders them by slot.
    ties: u64,
}

impl Wakeups {
    /// No slots.
    pub fn new() -> Wakeups {
        Wakeups::with_slots(0)
    }

    /// `slots` slots, none of them armed.
    pub fn with_slots(slots: usize) -> Wakeups {
        let slots = u32::try_from(slots).expect("fewer than 2^32 components");
        let leaves = (slots as usize).next_power_of_two().max(2);
        Wakeups { first: Time::NEVER, nodes: vec![[Time::NEVER; 2]; leaves], slots, ties: 0 }
    }

    /// The order of equal times is drawn from `key`, or is that of the slots if that is 0.
    pub fn with_ties(self, key: u64) -> Wakeups {
        Wakeups { ties: key, ..self }
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

    /// The time for which `slot` is armed; [`Time::NEVER`] if it is not.
    #[inline]
    pub fn armed_at(&self, slot: Slot) -> Time {
        let at = self.nodes.len() + slot as usize;
        self.nodes[at / 2][at % 2]
    }

    /// The time of the next wakeup; [`Time::NEVER`] if no slot is armed.
    #[inline]
    pub fn next_at(&self) -> Time {
        self.first
    }

    /// The slot of the next wakeup, which is at [`Wakeups::next_at`].
    #[inline]
    pub fn next_slot(&self) -> Slot {
        let mut at = 1;
        while let Some([left, right]) = self.nodes.get(at) {
            at = 2 * at + if left == right { self.half_of_tie(at) } else { usize::from(right < left) };
        }
        (at - self.nodes.len()) as Slot
    }

    /// The half below a node that goes first if both have the earliest time; their slot numbers
    /// differ by one bit.
    #[cold]
    fn half_of_tie(&self, at: usize) -> usize {
        let bit = self.nodes.len().ilog2() - at.ilog2() - 1;
        (self.tie_bits() >> bit) as usize & 1
    }

    /// The mask of the order of equal times: an exclusive or with it gives the numbers by which
    /// slots due next are compared.
    fn tie_bits(&self) -> u64 {
        if self.ties == 0 { 0 } else { splitmix64(self.ties ^ self.first.as_nanos()) }
    }

    /// The slot of the next wakeup; of equal times in the order of these numbers in place of the
    /// slots'.
    pub fn next_slot_by(&self, number: impl Fn(Slot) -> u64) -> Slot {
        let (due, ties) = (self.next_at(), self.tie_bits());
        let mut first: Option<(u64, Slot)> = None;
        let mut open = vec![1];
        while let Some(at) = open.pop() {
            match self.nodes.get(at) {
                Some(halves) => open.extend((0..2).filter(|&half| halves[half] == due).map(|half| 2 * at + half)),
                None => {
                    let slot = (at - self.nodes.len()) as Slot;
                    let found = (number(slot) ^ ties, slot);
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

    /// Each of two goes first about as often, and in the same order however many others there are.
    #[test]
    fn equal_times_go_in_an_order_that_is_drawn() {
        let order = |slots: usize, due| {
            let mut wakeups = Wakeups::with_slots(slots).with_ties(7);
            (0..5).for_each(|slot| wakeups.arm(slot, Time::from_nanos(due)));
            let by_number = wakeups.next_slot_by(u64::from);
            let popped: Vec<Slot> = std::iter::from_fn(|| wakeups.pop()).map(|(_, slot)| slot).collect();
            assert_eq!(popped[0], by_number);
            popped
        };
        let orders: Vec<_> = (0..1000).map(|due| order(5, due)).collect();
        for (a, b) in [(0, 1), (1, 2), (0, 4), (3, 4)] {
            let place = |order: &[Slot], slot| order.iter().position(|&other| other == slot);
            let first = orders.iter().filter(|order| place(order, a) < place(order, b)).count();
            assert!((420..580).contains(&first), "{a} before {b}: {first} of 1000");
        }
        assert!((0..1000).all(|due| order(700, due) == orders[due as usize]));
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
                    prop_assert_eq!(Some(wakeups.next_slot_by(|slot| u64::from(!slot))), last);
                }
            }
        }
    }
}
