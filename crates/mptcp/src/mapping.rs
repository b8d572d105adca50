//! Mappings from bytes of a subflow to bytes of the connection.

use std::collections::VecDeque;
use std::ops::Range;

/// A mapping of `len` bytes of a subflow from `at` on to the connection's from `data` on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct DataMap {
    pub(crate) at: u64,
    pub(crate) data: u64,
    pub(crate) len: u64,
}

impl DataMap {
    pub(crate) fn end(&self) -> u64 {
        self.at + self.len
    }

    pub(crate) fn data_end(&self) -> u64 {
        self.data + self.len
    }
}

/// The mappings of one direction of a subflow, sorted and without overlaps.
#[derive(Debug, Default)]
pub(crate) struct Mappings {
    all: VecDeque<DataMap>,
}

/// The error of a mapping that contradicts an earlier one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Contradiction;

impl Mappings {
    /// Returns `true` if bytes of the connection from `data` on, written at `at`, continue the last
    /// mapping.
    pub(crate) fn continues(&self, at: u64, data: u64) -> bool {
        self.all.back().is_some_and(|last| last.end() == at && last.data_end() == data)
    }

    /// Adds the mapping of the bytes that are written next.
    pub(crate) fn append(&mut self, map: DataMap) {
        match self.all.back_mut() {
            Some(last) if last.end() == map.at && last.data_end() == map.data => last.len += map.len,
            _ => self.all.push_back(map),
        }
    }

    /// Adds the unknown parts of a mapping that has arrived.
    pub(crate) fn insert(&mut self, mut map: DataMap) -> Result<(), Contradiction> {
        while map.len > 0 {
            let index = self.all.partition_point(|known| known.end() <= map.at);
            let Some(known) = self.all.get(index).filter(|known| known.at < map.end()) else {
                self.all.insert(index, map);
                return Ok(());
            };
            // Overlapping mappings must agree.
            if known.data.wrapping_sub(known.at) != map.data.wrapping_sub(map.at) {
                return Err(Contradiction);
            }
            let known = *known;
            if map.at < known.at {
                self.all.insert(index, DataMap { len: known.at - map.at, ..map });
            }
            let skip = known.end().min(map.end()) - map.at;
            map = DataMap { at: map.at + skip, data: map.data + skip, len: map.len - skip };
        }
        Ok(())
    }

    /// The mapping of the byte at `at`.
    pub(crate) fn of(&self, at: u64) -> Option<DataMap> {
        let index = self.all.partition_point(|map| map.end() <= at);
        self.all.get(index).filter(|map| map.at <= at).copied()
    }

    /// The range of the connection's bytes from that of the byte at `range.start` on, up to the end
    /// of `range` or of the mapping.
    pub(crate) fn data(&self, range: Range<u64>) -> Option<Range<u64>> {
        let map = self.of(range.start)?;
        let data = map.data + (range.start - map.at);
        Some(data..data + (map.end().min(range.end) - range.start))
    }

    /// All mappings, in order.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &DataMap> {
        self.all.iter()
    }

    /// Removes mappings from the first on while they are done.
    pub(crate) fn forget_while(&mut self, is_done: impl Fn(&DataMap) -> bool) {
        while self.all.front().is_some_and(&is_done) {
            self.all.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mappings(maps: &[(u64, u64, u64)]) -> Mappings {
        let mut all = Mappings::default();
        maps.iter().for_each(|&(at, data, len)| assert_eq!(all.insert(DataMap { at, data, len }), Ok(())));
        all
    }

    #[test]
    fn what_continues_is_one_mapping() {
        let mut all = Mappings::default();
        all.append(DataMap { at: 0, data: 100, len: 10 });
        assert!(all.continues(10, 110) && !all.continues(10, 111));
        all.append(DataMap { at: 10, data: 110, len: 5 });
        all.append(DataMap { at: 15, data: 200, len: 5 });
        assert_eq!(all.iter().count(), 2);
        assert_eq!(all.data(12..20), Some(112..115));
        assert_eq!(all.data(15..20), Some(200..205));
        assert_eq!(all.data(20..21), None);
        all.forget_while(|map| map.end() <= 15);
        assert_eq!(all.of(14), None);
    }

    #[test]
    fn mappings_arrive_in_any_order_and_again() {
        let mut all = mappings(&[(20, 120, 10), (0, 100, 10), (5, 105, 20), (0, 100, 30)]);
        assert_eq!((0..30).map(|at| all.data(at..at + 1).map(|data| data.start)).collect::<Vec<_>>(), {
            (100..130).map(Some).collect::<Vec<_>>()
        });
        assert_eq!(all.insert(DataMap { at: 29, data: 130, len: 4 }), Err(Contradiction));
        assert_eq!(all.insert(DataMap { at: 30, data: 400, len: 4 }), Ok(()));
        assert_eq!(all.data(29..34), Some(129..130));
    }
}
