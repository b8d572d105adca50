//! The counts of a histogram by bucket: the first few one by one, more in cells that are taken as
//! they occur.

/// Buckets per power of two: the midpoint of a bucket is within 1/1024 of its values; values below
/// 512 are exact.
pub(super) const SUB_BITS: u32 = 9;

pub(super) const SUBS: usize = 1 << SUB_BITS;

/// Buckets of a cell.
const CELL: usize = 32;
/// Cells of a power of two.
const BLOCK: usize = SUBS / CELL;
/// Bits of a count in a cell.
const COUNT_BITS: u32 = u16::BITS;
/// Buckets that are kept one by one: they take half the memory of the cells of a power of two.
const FEW: usize = CELL * BLOCK / 2;
/// The place of a cell that has not occurred.
const NONE: u16 = u16::MAX;

/// Counts of buckets: 16 bits of each in cells of a cache line, and beside them the rest of the few
/// that are larger.
#[derive(Clone, Debug, Default)]
pub(super) struct Cells {
    /// The first buckets, as they came, until there are too many.
    few: Vec<u16>,
    /// The first cell that has a place: the first of a power of two.
    first: usize,
    /// Index in `counts` of each cell, from the first power of two that occurred to the last.
    places: Vec<u16>,
    counts: Vec<[u16; CELL]>,
    /// Buckets with more than a cell counts, in ascending order, each with the multiple of 2^16.
    carries: Vec<(u16, u64)>,
    /// True if there is room for all cells of each power of two that occurred.
    whole_blocks: bool,
}

impl Cells {
    /// Adds one to each bucket.
    pub(super) fn add_each(&mut self, buckets: &[u16]) {
        if self.counts.is_empty() && self.few.len() + buckets.len() <= FEW {
            // At once: nothing is allocated in the long run.
            self.few.reserve_exact(FEW - self.few.len());
            return self.few.extend_from_slice(buckets);
        }
        let few = std::mem::take(&mut self.few);
        self.count_each(&few);
        self.count_each(buckets);
    }

    fn count_each(&mut self, buckets: &[u16]) {
        for &bucket in buckets {
            let count = self.count(bucket);
            *count = count.wrapping_add(1);
            if *count == 0 {
                self.carry(bucket, 1);
            }
        }
    }

    /// Adds to a bucket.
    pub(super) fn add(&mut self, bucket: u16, weight: u64) {
        let count = self.count(bucket);
        let (low, overflows) = count.overflowing_add(weight as u16);
        *count = low;
        let high = (weight >> COUNT_BITS) + u64::from(overflows);
        if high > 0 {
            self.carry(bucket, high);
        }
    }

    /// Switches to taking memory once per power of two, when its first cell occurs.
    pub(super) fn take_whole_blocks(&mut self) {
        if !self.whole_blocks {
            self.whole_blocks = true;
            self.reserve();
        }
    }

    fn reserve(&mut self) {
        if self.whole_blocks {
            let occurred = |block: &&[u16]| block.iter().any(|&place| place != NONE);
            let cells = self.places.chunks_exact(BLOCK).filter(occurred).count() * BLOCK;
            self.counts.reserve_exact(cells.saturating_sub(self.counts.len()));
        } else if self.counts.capacity() == 0 {
            self.counts.reserve_exact(BLOCK);
        }
    }

    /// Buckets with anything in them or in `more`, in ascending order, with their counts.
    pub(super) fn list(&self, more: &[u16]) -> Vec<(u16, u64)> {
        let mut loose = [&self.few, more].concat();
        loose.sort_unstable();
        let mut list = Vec::with_capacity(loose.len());
        list.extend(loose.chunk_by(u16::eq).map(|alike| (alike[0], alike.len() as u64)));
        if self.counts.is_empty() {
            return list;
        }
        for (cell, &place) in (self.first..).zip(&self.places).filter(|&(_, &place)| place != NONE) {
            for (offset, &count) in self.counts[usize::from(place)].iter().enumerate() {
                if count > 0 {
                    list.push(((cell * CELL + offset) as u16, count.into()));
                }
            }
        }
        list.extend(self.carries.iter().map(|&(bucket, multiple)| (bucket, multiple << COUNT_BITS)));
        // Three runs in ascending order.
        list.sort_by_key(|&(bucket, _)| bucket);
        list.dedup_by(|next, kept| {
            let same = next.0 == kept.0;
            kept.1 += if same { next.1 } else { 0 };
            same
        });
        list
    }

    /// The count of a bucket in its cell, which is taken if it is new.
    #[inline(always)]
    fn count(&mut self, bucket: u16) -> &mut u16 {
        let cell = usize::from(bucket) / CELL;
        // None is beyond the last.
        let known = usize::from(*self.places.get(cell.wrapping_sub(self.first)).unwrap_or(&NONE));
        let place = if known < self.counts.len() { known } else { self.take(cell).into() };
        &mut self.counts[place][usize::from(bucket) % CELL]
    }

    #[cold]
    #[inline(never)]
    fn take(&mut self, cell: usize) -> u16 {
        let block = cell - cell % BLOCK;
        if self.places.is_empty() {
            self.first = block;
        }
        if block < self.first {
            let more = self.first - block;
            self.places.splice(0..0, std::iter::repeat_n(NONE, more));
            self.first = block;
        }
        let end = block + BLOCK - self.first;
        if end > self.places.len() {
            self.places.reserve_exact(end - self.places.len());
            self.places.resize(end, NONE);
        }
        let place = self.counts.len() as u16;
        self.places[cell - self.first] = place;
        self.reserve();
        self.counts.push([0; CELL]);
        place
    }

    #[cold]
    fn carry(&mut self, bucket: u16, multiple: u64) {
        match self.carries.binary_search_by_key(&bucket, |&(larger, _)| larger) {
            Ok(place) => self.carries[place].1 += multiple,
            Err(place) => self.carries.insert(place, (bucket, multiple)),
        }
    }

    /// Bytes on the heap.
    #[cfg(test)]
    pub(super) fn bytes(&self) -> usize {
        size_of::<u16>() * (self.few.capacity() + self.places.capacity())
            + size_of::<[u16; CELL]>() * self.counts.capacity()
            + size_of::<(u16, u64)>() * self.carries.capacity()
    }
}
