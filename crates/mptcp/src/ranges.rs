//! Sets of bytes of a stream, as sorted ranges.

use std::ops::Range;

/// A set of bytes of a stream.
#[derive(Debug, Default)]
pub(crate) struct Ranges {
    /// Sorted, with a gap between any two.
    all: Vec<Range<u64>>,
    /// The number of bytes in the set.
    total: u64,
}

impl Ranges {
    /// Adds a range.
    pub(crate) fn insert(&mut self, range: Range<u64>) {
        if range.is_empty() {
            return;
        }
        let first = self.all.partition_point(|known| known.end < range.start);
        let behind = self.all.partition_point(|known| known.start <= range.end);
        let start = self.all.get(first).filter(|_| first < behind).map_or(range.start, |known| known.start);
        let end = behind.checked_sub(1).filter(|&last| last >= first).map_or(range.end, |last| self.all[last].end);
        let whole = start.min(range.start)..end.max(range.end);
        self.total += whole.end - whole.start;
        let merged: u64 = self.all.splice(first..behind, std::iter::once(whole)).map(|range| len(&range)).sum();
        self.total -= merged;
    }

    /// Removes everything up to the end of the range that contains or follows `next` without a gap;
    /// returns that end, or `next`.
    pub(crate) fn advance(&mut self, next: u64) -> u64 {
        let reached = self.all.partition_point(|known| known.start <= next);
        let end = self.all[..reached].last().map_or(next, |known| known.end.max(next));
        let gone: u64 = self.all.drain(..reached).map(|range| len(&range)).sum();
        self.total -= gone;
        end
    }

    /// Returns `true` if the set contains all of a range.
    pub(crate) fn contain(&self, range: Range<u64>) -> bool {
        let at = self.all.partition_point(|known| known.end < range.end);
        self.all.get(at).is_some_and(|known| known.start <= range.start && range.end <= known.end)
    }

    /// The number of bytes in the set.
    pub(crate) fn len(&self) -> u64 {
        self.total
    }

    /// The first range.
    pub(crate) fn first(&self) -> Option<Range<u64>> {
        self.all.first().cloned()
    }

    /// Removes everything below `edge`.
    pub(crate) fn forget_below(&mut self, edge: u64) {
        if self.all.first().is_none_or(|first| first.start >= edge) {
            return;
        }
        self.all.retain_mut(|range| {
            range.start = range.start.max(edge);
            !range.is_empty()
        });
        self.total = self.all.iter().map(len).sum();
    }

    /// Removes everything.
    pub(crate) fn clear(&mut self) {
        self.all.clear();
        self.total = 0;
    }
}

fn len(range: &Range<u64>) -> u64 {
    range.end - range.start
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use proptest::prelude::*;

    use super::*;

    proptest! {
        #[test]
        fn they_are_a_set_of_numbers(ranges in proptest::collection::vec((0..60u64, 0..12u64), 0..20), edge in 0..70u64) {
            let (mut known, mut set) = (Ranges::default(), BTreeSet::new());
            for (start, len) in ranges {
                known.insert(start..start + len);
                set.extend(start..start + len);
                prop_assert_eq!(known.len(), set.len() as u64);
                prop_assert!(known.all.windows(2).all(|pair| pair[0].end < pair[1].start));
                for start in 0..72 {
                    let whole = set.contains(&start) && set.contains(&(start + 1));
                    prop_assert_eq!(known.contain(start..start + 2), whole);
                }
            }
            let mut above = Ranges { all: known.all.clone(), total: known.total };
            above.forget_below(edge);
            prop_assert_eq!(above.len(), set.range(edge..).count() as u64);
            let end = (edge..).find(|number| !set.contains(number)).unwrap_or(edge);
            prop_assert_eq!(known.advance(edge), end);
            prop_assert_eq!(known.len(), set.range(end..).count() as u64);
        }
    }
}
