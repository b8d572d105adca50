//! The segments in flight, with the counts over them: everything that changes a segment is here, so
//! that no count disagrees with the segments.

use std::ops::Deref;

use ackclock_units::Ring;

use super::Sent;

/// Segments that one ACK may acknowledge and be as expected: each is looked at twice.
pub(super) const MOST_WHOLE: usize = 8;

/// The segments in flight, in sequence order. They are read as a [`Ring`], and changed by the
/// methods here.
#[derive(Debug, Default)]
pub(super) struct Entries {
    sent: Ring<Sent>,
    /// Position of the first one.
    base: u64,
    counts: Counts,
    judged: JudgedEntry,
}

/// Units and segments, by what is known of them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Counts {
    pub(super) outstanding: u64,
    pub(super) sacked: u64,
    pub(super) sacked_segments: u64,
    pub(super) lost: u64,
    pub(super) lost_segments: u64,
    pub(super) resent: u64,
    pub(super) resent_segments: u64,
    pub(super) merged_segments: u32,
    pub(super) joined_segments: u32,
}

/// The extent that the loss rule has judged.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct JudgedEntry {
    /// Position below which it has.
    pub(super) end: u64,
    /// SACKed segments below that position.
    pub(super) sacked_below: u32,
    /// SACKed units from that position on, and the sequences that they form there.
    pub(super) sacked_above: u64,
    pub(super) runs_above: u32,
}

impl Counts {
    /// A segment takes the place of another, or of none.
    #[inline(always)]
    fn replace(&mut self, before: &Sent, after: &Sent) {
        let (old, new) = (u64::from(before.len), u64::from(after.len));
        self.outstanding = self.outstanding - old + new;
        tally(&mut self.sacked, &mut self.sacked_segments, (before.sacked, old), (after.sacked, new));
        tally(&mut self.lost, &mut self.lost_segments, (before.lost, old), (after.lost, new));
        tally(&mut self.resent, &mut self.resent_segments, (before.resent, old), (after.resent, new));
        self.merged_segments = self.merged_segments - u32::from(before.merged()) + u32::from(after.merged());
        self.joined_segments = self.joined_segments - u32::from(before.joined()) + u32::from(after.joined());
    }

    #[inline(always)]
    fn add(&mut self, sent: &Sent) {
        self.replace(&Sent::NONE, sent);
    }

    #[inline(always)]
    fn remove(&mut self, sent: &Sent) {
        self.replace(sent, &Sent::NONE);
    }
}

/// The counts of one mark, which was and is set or not: nothing is computed where that and the
/// length stay.
#[inline(always)]
fn tally(units: &mut u64, segments: &mut u64, (was, old): (bool, u64), (is, new): (bool, u64)) {
    if was && (!is || old != new) {
        *units -= old;
        *segments -= 1;
    }
    if is && (!was || old != new) {
        *units += new;
        *segments += 1;
    }
}

impl Deref for Entries {
    type Target = Ring<Sent>;

    #[inline(always)]
    fn deref(&self) -> &Ring<Sent> {
        &self.sent
    }
}

impl Entries {
    /// Position of the first segment.
    #[inline(always)]
    pub(super) fn base(&self) -> u64 {
        self.base
    }

    #[inline(always)]
    pub(super) fn counts(&self) -> &Counts {
        &self.counts
    }

    #[inline(always)]
    pub(super) fn judged(&self) -> &JudgedEntry {
        &self.judged
    }

    /// Returns `true` if the segment at `index` exists and is SACKed.
    pub(super) fn is_sacked(&self, index: usize) -> bool {
        self.sent.get(index).is_some_and(|sent| sent.sacked)
    }

    /// A segment is sent for the first time, behind the others.
    #[inline(always)]
    pub(super) fn push(&mut self, sent: Sent) {
        self.sent.push(sent);
        self.counts.add(&sent);
    }

    /// Changes the segment at `index`, if there is one.
    #[inline(always)]
    pub(super) fn change<R>(&mut self, index: usize, change: impl FnOnce(&mut Sent) -> R) -> Option<R> {
        let sent = self.sent.get_mut(index)?;
        let before = *sent;
        let result = change(sent);
        let after = *sent;
        self.counts.replace(&before, &after);
        if (before.sacked || after.sacked) && (before.sacked, before.len) != (after.sacked, after.len) {
            self.review(index, &before, &after);
        }
        Some(result)
    }

    /// Changes the segment that was sent last, if there is one.
    #[inline(always)]
    pub(super) fn change_last<R>(&mut self, change: impl FnOnce(&mut Sent) -> R) -> Option<R> {
        self.change(self.sent.len().wrapping_sub(1), change)
    }

    /// Updates the state after the SACK marks have changed at `index`.
    #[inline]
    fn review(&mut self, index: usize, before: &Sent, after: &Sent) {
        let position = self.base + index as u64;
        let JudgedEntry { end, sacked_below, sacked_above, runs_above } = &mut self.judged;
        if position < *end {
            *sacked_below = *sacked_below + u32::from(after.sacked) - u32::from(before.sacked);
            return;
        }
        *sacked_above += if after.sacked { u64::from(after.len) } else { 0 };
        *sacked_above -= if before.sacked { u64::from(before.len) } else { 0 };
        if before.sacked != after.sacked {
            let joins = position > *end && self.sent[index - 1].sacked;
            let joined = self.sent.get(index + 1).is_some_and(|next| next.sacked);
            // One sequence more, or one longer, or two that have become one; and the reverse.
            let others = u32::from(joins) + u32::from(joined);
            *runs_above = if after.sacked { *runs_above + 1 - others } else { *runs_above + others - 1 };
        }
    }

    /// Changes all segments.
    pub(super) fn change_all(&mut self, mut change: impl FnMut(&mut Sent)) {
        (0..self.sent.len()).for_each(|index| change(&mut self.sent[index]));
        self.counts = Counts::default();
        self.sent.iter().for_each(|sent| self.counts.add(sent));
        self.judge_up_to(self.judged.end);
    }

    /// Nothing is judged.
    pub(super) fn judge_anew(&mut self) {
        self.judge_up_to(self.base);
    }

    fn judge_up_to(&mut self, end: u64) {
        self.judged = self.judge(end);
    }

    /// The counts with everything judged below `end`.
    fn judge(&self, end: u64) -> JudgedEntry {
        let below = (end - self.base) as usize;
        let sacked = |range| self.sent.range(range).filter(|sent: &&Sent| sent.sacked);
        JudgedEntry {
            end,
            sacked_below: sacked(0..below).count() as u32,
            sacked_above: sacked(below..self.sent.len()).map(|sent| u64::from(sent.len)).sum(),
            runs_above: (below..self.sent.len()).filter(|&i| self.is_sacked(i) && !self.is_sacked(i + 1)).count()
                as u32,
        }
    }

    /// The first segment that was not judged is.
    pub(super) fn judge_one(&mut self) {
        let index = (self.judged.end - self.base) as usize;
        let sent = &self.sent[index];
        if sent.sacked {
            self.judged.sacked_below += 1;
            self.judged.sacked_above -= u64::from(sent.len);
            self.judged.runs_above -= u32::from(!self.is_sacked(index + 1));
        }
        self.judged.end += 1;
    }

    /// Removes the first segment, which `taken` is a copy of.
    #[inline(always)]
    pub(super) fn pop(&mut self, taken: &Sent) {
        self.sent.drop_first(1);
        self.counts.remove(taken);
        if taken.sacked {
            self.review_first(taken);
        }
        self.base += 1;
        self.judged.end = self.judged.end.max(self.base);
    }

    /// The first segment, which is SACKed, was removed.
    #[inline(never)]
    fn review_first(&mut self, taken: &Sent) {
        if self.base < self.judged.end {
            self.judged.sacked_below -= 1;
        } else {
            self.judged.sacked_above -= u64::from(taken.len);
            self.judged.runs_above -= u32::from(!self.is_sacked(0));
        }
    }

    /// Removes what ends at `ack`, if that is a few whole segments of which nothing is known.
    /// Returns the first and the last, and how many they are.
    #[inline(always)]
    pub(super) fn pop_plain(&mut self, ack: u64) -> Option<(Sent, Sent, u32)> {
        let first = *self.sent.front()?;
        let mut last = first;
        let mut count = 1;
        while last.end() < ack && count < MOST_WHOLE && last.is_plain() {
            last = *self.sent.get(count)?;
            count += 1;
        }
        if last.end() != ack || !last.is_plain() {
            return None;
        }
        self.sent.drop_first(count);
        self.counts.outstanding -= ack - first.seq;
        self.base += count as u64;
        self.judged.end = self.judged.end.max(self.base);
        Some((first, last, count as u32))
    }

    /// Cuts the segment at `index` in two at `seq`.
    pub(super) fn split(&mut self, index: usize, seq: u64) {
        let Some(&whole) = self.sent.get(index) else { return };
        let head = (seq - whole.seq) as u32;
        let mut tail = Sent { seq, len: whole.len - head, aux: whole.aux.saturating_sub(head), ..whole };
        tail.set(Sent::MERGED | Sent::JOINED, false);
        self.change(index, |sent| {
            sent.len = head;
            sent.set(Sent::FIN | Sent::PUSH, false);
        });
        self.sent.insert(index + 1, tail);
        self.counts.add(&tail);
        let is_judged = self.base + (index as u64) < self.judged.end;
        self.judged.end += u64::from(is_judged);
        if tail.sacked {
            self.judge_up_to(self.judged.end);
        }
    }

    /// Recomputes every count.
    #[cfg(test)]
    pub(super) fn check(&self) {
        let mut counts = Counts::default();
        self.sent.iter().for_each(|sent| counts.add(sent));
        assert_eq!(self.counts, counts);
        assert_eq!(self.judged, self.judge(self.judged.end));
    }
}
