//! A queue in a ring.

use std::ops::{Bound, Index, IndexMut, RangeBounds};

/// Values in their order, in a ring that grows to the most that ever waited. Unlike a `VecDeque` it
/// holds plain values alone, so that adding one and taking some are a few instructions.
#[derive(Clone, Debug)]
pub struct Ring<T> {
    /// A power of two of them, or none; free ones hold anything.
    slots: Box<[T]>,
    first: usize,
    length: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { slots: Box::default(), first: 0, length: 0 }
    }
}

impl<T: Copy> Ring<T> {
    /// An empty ring.
    pub fn new() -> Ring<T> {
        Ring::default()
    }

    /// Appends a value.
    #[inline(always)]
    pub fn push(&mut self, value: T) {
        if self.length == self.slots.len() {
            return self.push_into_more(value);
        }
        let place = self.place(self.length);
        self.slots[place] = value;
        self.length += 1;
    }

    /// Takes the first value.
    #[inline(always)]
    pub fn pop(&mut self) -> Option<T> {
        let value = *self.front()?;
        self.drop_first(1);
        Some(value)
    }

    /// Takes the last value.
    pub fn pop_last(&mut self) -> Option<T> {
        let value = *self.back()?;
        self.length -= 1;
        Some(value)
    }

    /// Drops the first `count` values, of which there are as many.
    #[inline(always)]
    pub fn drop_first(&mut self, count: usize) {
        debug_assert!(count <= self.length);
        self.first = self.place(count);
        self.length -= count;
    }

    /// Puts a value before the n-th behind the first, or last.
    pub fn insert(&mut self, n: usize, value: T) {
        self.push(value);
        (n + 1..self.length).rev().for_each(|place| self[place] = self[place - 1]);
        self[n] = value;
    }

    /// Forgets all values.
    pub fn clear(&mut self) {
        self.length = 0;
    }

    /// The number of values.
    #[inline(always)]
    pub fn len(&self) -> usize {
        self.length
    }

    /// Returns `true` if there is no value.
    #[inline(always)]
    pub fn is_empty(&self) -> bool {
        self.length == 0
    }

    /// The first value.
    #[inline(always)]
    pub fn front(&self) -> Option<&T> {
        self.get(0)
    }

    /// The last value.
    #[inline(always)]
    pub fn back(&self) -> Option<&T> {
        self.get(self.length.wrapping_sub(1))
    }

    /// The n-th value behind the first.
    #[inline(always)]
    pub fn get(&self, n: usize) -> Option<&T> {
        (n < self.length).then(|| &self.slots[self.place(n)])
    }

    /// The n-th value behind the first, to be changed.
    #[inline(always)]
    pub fn get_mut(&mut self, n: usize) -> Option<&mut T> {
        let place = self.place(n);
        (n < self.length).then(|| &mut self.slots[place])
    }

    /// The values in their order.
    pub fn iter(&self) -> impl Iterator<Item = &T> {
        self.range(..)
    }

    /// The values in these places.
    pub fn range(&self, places: impl RangeBounds<usize>) -> impl Iterator<Item = &T> {
        let from = match places.start_bound() {
            Bound::Included(&from) => from,
            Bound::Excluded(&before) => before + 1,
            Bound::Unbounded => 0,
        };
        let to = match places.end_bound() {
            Bound::Included(&last) => last + 1,
            Bound::Excluded(&to) => to,
            Bound::Unbounded => self.length,
        };
        assert!(from <= to && to <= self.length, "no range of {} values", self.length);
        let (one, other) = self.halves();
        let split = one.len();
        one[from.min(split)..to.min(split)].iter().chain(&other[from.max(split) - split..to.max(split) - split])
    }

    /// The number of values at the front for which `is_before` holds, which does not for those
    /// behind them.
    pub fn partition_point(&self, mut is_before: impl FnMut(&T) -> bool) -> usize {
        let (one, other) = self.halves();
        match other.first() {
            Some(first) if is_before(first) => one.len() + other.partition_point(is_before),
            _ => one.partition_point(is_before),
        }
    }

    /// The values in their order, up to the end of the ring and from its beginning on.
    fn halves(&self) -> (&[T], &[T]) {
        let end = self.first + self.length;
        let most = self.slots.len();
        if end <= most {
            (&self.slots[self.first..end], &[])
        } else {
            (&self.slots[self.first..], &self.slots[..end - most])
        }
    }

    /// The place of the n-th value behind the first.
    #[inline(always)]
    fn place(&self, n: usize) -> usize {
        self.first.wrapping_add(n) & self.slots.len().wrapping_sub(1)
    }

    /// Appends a value to twice the places; free ones hold anything.
    #[cold]
    #[inline(never)]
    fn push_into_more(&mut self, value: T) {
        let mut slots = Vec::with_capacity((2 * self.slots.len()).max(4));
        slots.extend(self.iter().copied());
        slots.resize((2 * self.slots.len()).max(4), value);
        (self.slots, self.first) = (slots.into_boxed_slice(), 0);
        self.push(value);
    }
}

impl<T: Copy> Index<usize> for Ring<T> {
    type Output = T;

    #[inline(always)]
    fn index(&self, n: usize) -> &T {
        assert!(n < self.length);
        &self.slots[self.place(n)]
    }
}

impl<T: Copy> IndexMut<usize> for Ring<T> {
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
        fn a_ring_is_a_queue(steps in prop::collection::vec((0..6, 0..20usize), 0..300)) {
            let (mut ring, mut model) = (Ring::new(), VecDeque::new());
            for (n, (step, place)) in steps.into_iter().enumerate() {
                match step {
                    0 | 1 => {
                        ring.push(n);
                        model.push_back(n);
                    }
                    2 => prop_assert_eq!(ring.pop(), model.pop_front()),
                    3 => prop_assert_eq!(ring.pop_last(), model.pop_back()),
                    4 => {
                        let place = place.min(model.len());
                        ring.insert(place, n);
                        model.insert(place, n);
                    }
                    _ => {
                        let count = place.min(model.len()) / 2;
                        ring.drop_first(count);
                        model.drain(..count);
                    }
                }
                if let Some(last) = model.len().checked_sub(1) {
                    (model[last], ring[last]) = (model[last] + 1, ring[last] + 1);
                }
                prop_assert_eq!((ring.front(), ring.back()), (model.front(), model.back()));
                prop_assert_eq!((ring.len(), ring.is_empty()), (model.len(), model.is_empty()));
                prop_assert!(ring.iter().eq(&model));
                let (from, to) = (place.min(model.len()), (2 * place).min(model.len()));
                prop_assert!(ring.range(from..to).eq(model.range(from..to)));
                prop_assert!(ring.range(from..).eq(model.range(from..)));
                prop_assert_eq!(ring.get_mut(place), model.get_mut(place));
                prop_assert_eq!(ring.get(model.len()), None);
            }
            ring.clear();
            prop_assert_eq!(ring.pop(), None);
        }

        #[test]
        fn values_are_found_by_their_order(dropped in 0..20usize, count in 0..40usize, below in 0..50usize) {
            let mut ring = Ring::new();
            (0..dropped).for_each(|_| ring.push(0));
            ring.drop_first(dropped);
            (0..count).for_each(|n| ring.push(n));
            prop_assert_eq!(ring.partition_point(|&n| n < below), below.min(count));
        }
    }
}
