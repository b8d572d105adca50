//! A queue in a ring that grows to the most that ever waited.

/// Entries in their order.
#[derive(Debug)]
pub(crate) struct Ring<T> {
    /// A power of two of them, or none; free ones are `None`.
    slots: Box<[Option<T>]>,
    first: usize,
    length: usize,
}

impl<T> Ring<T> {
    /// An empty ring.
    pub(crate) fn new() -> Ring<T> {
        Ring { slots: Box::default(), first: 0, length: 0 }
    }

    /// Appends an entry.
    #[inline(always)]
    pub(crate) fn push(&mut self, entry: T) {
        if self.length == self.slots.len() {
            return self.push_into_more(entry);
        }
        let place = self.place(self.length);
        self.slots[place] = Some(entry);
        self.length += 1;
    }

    /// Takes the first entry.
    #[inline(always)]
    pub(crate) fn pop(&mut self) -> Option<T> {
        let entry = self.slots.get_mut(self.first)?.take()?;
        self.first = self.place(1);
        self.length -= 1;
        Some(entry)
    }

    /// The first entry.
    pub(crate) fn front(&self) -> Option<&T> {
        self.slots.get(self.first)?.as_ref()
    }

    /// The last entry.
    pub(crate) fn back(&self) -> Option<&T> {
        self.slots.get(self.place(self.length.checked_sub(1)?))?.as_ref()
    }

    /// The number of entries.
    pub(crate) fn len(&self) -> usize {
        self.length
    }

    /// The n-th entry behind the first.
    pub(crate) fn get_mut(&mut self, n: usize) -> Option<&mut T> {
        if n >= self.length {
            return None;
        }
        let place = self.place(n);
        self.slots[place].as_mut()
    }

    /// The place of the n-th entry behind the first.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        self.first.wrapping_add(n) & self.slots.len().wrapping_sub(1)
    }

    #[cold]
    #[inline(never)]
    fn push_into_more(&mut self, entry: T) {
        let mut slots = Vec::with_capacity((2 * self.slots.len()).max(4));
        slots.extend(std::iter::from_fn(|| self.pop().map(Some)));
        self.length = slots.len();
        slots.resize_with((2 * self.slots.len()).max(4), || None);
        (self.slots, self.first) = (slots.into_boxed_slice(), 0);
        self.push(entry);
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
            let (mut ring, mut model) = (Ring::new(), VecDeque::new());
            for (n, push) in steps.into_iter().enumerate() {
                if push {
                    ring.push(n);
                    model.push_back(n);
                } else {
                    prop_assert_eq!(ring.pop(), model.pop_front());
                }
                prop_assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                prop_assert_eq!(ring.len(), model.len());
                prop_assert_eq!(ring.get_mut(n / 2), model.get_mut(n / 2));
            }
        }
    }
}
