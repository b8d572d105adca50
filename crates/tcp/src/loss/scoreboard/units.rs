//! Segments that were handed down together, in one socket buffer, and where these are cut.

use super::{Scoreboard, Sent};

impl Scoreboard {
    /// The segment that was sent last is of the same unit as the one before it.
    #[inline(always)]
    pub(crate) fn join_last(&mut self) {
        if self.entries.len() > 1 {
            self.entries.change_last(|last| last.set(Sent::JOINED, true));
        }
    }

    /// Socket buffers in flight: segments that neither were sent with the one before them nor were
    /// added to it since.
    pub(crate) fn buffers(&self) -> u64 {
        let front = self.entries.front().is_some_and(|front| front.joined() || front.merged());
        let counts = self.entries.counts();
        self.segments() + u64::from(front) - u64::from(counts.joined_segments) - u64::from(counts.merged_segments)
    }

    /// The segment at `index` begins a unit.
    fn part(&mut self, index: usize) {
        self.entries.change(index, |sent| sent.set(Sent::JOINED, false));
    }

    /// The segment at `index` is SACKed, and what it was sent with is not, at least not before
    /// (`tcp_match_skb_to_sack`).
    pub(super) fn split_unit_around(&mut self, index: usize) {
        self.part(index);
        self.part(index + 1);
    }

    /// Takes the unit that is sent again from the lost segment at `seq` on, `most` segments at
    /// most, and returns one past its last segment. The rest is a unit of its own from now on.
    pub(crate) fn take_unit(&mut self, seq: u64, most: u64) -> u64 {
        let first = (self.position_of(seq) - self.entries.base()) as usize;
        let mut index = first + 1;
        while index < first + most as usize
            && self.entries.get(index).is_some_and(|next| next.joined() && next.lost && !next.resent)
        {
            index += 1;
        }
        self.part(first);
        self.part(index);
        self.entries.get(index - 1).map_or(seq, |last| last.end())
    }

    /// The whole first unit is lost, without looking at anything else (Linux's
    /// `tcp_mark_head_lost` of a socket buffer with SACK).
    pub(crate) fn lose_front_unit(&mut self) {
        self.lose_front();
        let mut index = 1;
        while self.entries.get(index).is_some_and(|next| next.joined() && !next.sacked) {
            self.lose(index);
            index += 1;
        }
    }
}
