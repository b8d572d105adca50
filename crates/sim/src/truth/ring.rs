//! A queue in a ring.

use std::ops::{Index, IndexMut};

/// Values in their order, in a ring that grows to the most that ever waited. Unlike a `VecDeque` it
/// holds plain values alone, so that adding and taking one are a few instructions.
#[derive(Debug)]
pub(super) struct PlainRing<T> {
    /// A power of two of them, or none; free ones hold anything.
    slots: Box<[T]>,
    first: usize,
    length: usize,
}

impl<T: Copy> PlainRing<T> {
    /// An empty ring.
    pub(super) fn new() -> PlainRing<T> {
        PlainRing { slots: Box::default(), first: 0, length: 0 }
    }

    /// Appends a value.
    #[inline(always)]
    pub(super) fn push(&mut self, value: T) {
        if self.length == self.slots.len() {
            self.grow(value);
        }
        let place = self.place(self.length);
        self.slots[place] = value;
        self.length += 1;
    }

    /// Takes the first value.
    #[inline(always)]
    pub(super) fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.first = self.place(1);
        self.length -= 1;
        Some(value)
    }

    /// Forgets all values.
    pub(super) fn clear(&mut self) {
        self.length = 0;
    }

    /// The number of values.
    #[inline(always)]
    pub(super) fn len(&self) -> usize {
        self.length
    }

    /// The first value.
    #[inline(always)]
    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last value.
    #[inline(always)]
    pub(super) fn back(&self) -> Option<&T> {
        self.get(self.length.wrapping_sub(1))
    }

    /// The n-th value behind the first.
    #[inline(always)]
    pub(super) fn get(&self, n: usize) -> Option<&T> {
        (n < self.length).then(|| &self.slots[self.place(n)])
    }

    /// The values in their order.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.length).map(|n| &self[n])
    }

    /// The place of the n-th value behind the first.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        self.first.wrapping_add(n) & self.slots.len().wrapping_sub(1)
    }

    /// Twice the places; free ones hold `anything`.
    #[cold]
    #[inline(never)]
    fn grow(&mut self, anything: T) {
        let mut slots = Vec::with_capacity((2 * self.slots.len()).max(4));
        slots.extend(self.iter().copied());
        slots.resize((2 * self.slots.len()).max(4), anything);
        (self.slots, self.first) = (slots.into_boxed_slice(), 0);
    }
}

impl<T: Copy> Index<usize> for PlainRing<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, n: usize) -> &T {
        assert!(n < self.length);
        &self.slots[self.place(n)]
    }
}

impl<T: Copy> IndexMut<usize> for PlainRing<T> {
    #[inline(always)]
    fn index_mut(&mut self, n: usize) -> &mut T {
        assert!(n < self.length);
        let place = self.place(n);
        &mut self.slots[place]
    }
}

#[cfg(test)]
mod tests {
    use std::collections::VecDeque;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn a_ring_is_a_queue(steps in prop::collection::vec(any::<bool>(), 0..300)) {
            let (mut ring, mut model) = (PlainRing::new(), VecDeque::new());
            for (n, step) in steps.into_iter().enumerate() {
                if step {
                    ring.push(n);
                    model.push_back(n);
                } else {
                    prop_assert_eq!(ring.pop(), model.pop_front());
                }
                if let Some(last) = model.len().checked_sub(1) {
                    (model[last], ring[last]) = (model[last] + 1, ring[last] + 1);
                }
                prop_assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                prop_assert_eq!(ring.len(), model.len());
                prop_assert!(ring.iter().eq(&model));
                prop_assert_eq!(ring.get(model.len()), None);
            }
            ring.clear();
            prop_assert_eq!(ring.pop(), None);
        }
    }
}
