//! The processing of SACK blocks.

use super::{Progress, Scoreboard, Sent};

impl Scoreboard {
    /// Marks what lies in the blocks of one ACK as SACKed. Blocks lie within what is outstanding.
    pub(crate) fn sack(&mut self, blocks: &[(u64, u64)], progress: &mut Progress) {
        let mut ascending = [(0, 0); 4];
        let ascending = &mut ascending[..blocks.len()];
        ascending.copy_from_slice(blocks);
        // The newest block comes first in the option; taken in that order, an older one that the
        // sender had not seen yet would look reordered.
        if blocks.len() > 1 {
            ascending.sort_unstable();
        }
        for &mut (left, right) in ascending {
            let mut from = left;
            // Segments that the last ACK's blocks covered are marked: an ACK in recovery usually
            // extends one of them.
            for &(seen_left, seen_right) in &self.seen {
                if seen_left <= from && from < seen_right {
                    from = seen_right;
                }
            }
            if from < right {
                if self.whole_reports {
                    self.sack_whole((left, right), from, progress);
                } else {
                    self.sack_range(from, right, progress);
                }
            }
        }
        self.seen = [(0, 0); 4];
        self.seen[..blocks.len()].copy_from_slice(blocks);
    }

    /// [`Scoreboard::position_of`]: a block mostly extends the one with the highest segment SACKed.
    #[inline]
    fn position_to_sack(&self, from: u64) -> u64 {
        match self.reported() {
            Some((highest, end)) if highest == from => end,
            _ => self.position_of(from),
        }
    }

    fn sack_range(&mut self, left: u64, right: u64, progress: &mut Progress) {
        let mut position = self.position_to_sack(left);
        if self.at(position).is_some_and(|sent| sent.seq < left && left < sent.end() && !sent.sacked) {
            self.split(position, left);
            position += 1;
        }
        while let Some(sent) = self.at(position).copied() {
            self.step();
            if sent.seq >= right {
                break;
            }
            if sent.sacked {
                position += self.run_of_sacked((position - self.entries.base()) as usize) as u64;
                continue;
            }
            if sent.end() > right {
                self.split(position, right);
            }
            self.mark_sacked(position, progress);
            position += 1;
        }
    }

    /// Marks what lies in `left..right` altogether, from the segment with `from` on.
    fn sack_whole(&mut self, (left, right): (u64, u64), from: u64, progress: &mut Progress) {
        let mut position = self.position_to_sack(from);
        while let Some(sent) = self.at(position).copied().filter(|sent| sent.end() <= right) {
            self.step();
            if sent.sacked {
                position += self.run_of_sacked((position - self.entries.base()) as usize) as u64;
                continue;
            }
            if left <= sent.seq {
                self.mark_sacked(position, progress);
            }
            position += 1;
        }
    }

    fn mark_sacked(&mut self, position: u64, progress: &mut Progress) {
        let index = (position - self.entries.base()) as usize;
        let is_hole = self.sacked_segments() > 0;
        let behind = if is_hole { self.distance_below_highest(position) } else { 0 };
        let sent = &self.entries[index];
        progress.deliver(sent, false);
        progress.sacked_segments += 1;
        // A retransmission that no loss was the reason of does not become a plain SACKed segment at
        // once.
        let plain = sent.lost || !sent.resent;
        if let Some(rates) = &mut self.rates {
            rates.delivered(progress.now, index, sent);
        }
        if !sent.ever_resent() {
            progress.reordering = progress.reordering.max(behind);
            progress.first_sacked_at.get_or_insert(sent.sent_at);
            progress.last_sacked_at = Some(sent.sent_at);
            if is_hole && sent.seq < self.highest_sacked {
                progress.low_sacked = progress.low_sacked.min(sent.seq);
            }
        }
        if !is_hole || sent.end() > self.highest_sacked {
            (self.highest_sacked, self.highest_end) = (sent.end(), position + 1);
        }
        self.entries.change(index, |sent| {
            (sent.sacked, sent.lost, sent.resent, sent.aux) = (true, false, false, 0);
        });
        if self.entries.counts().joined_segments > 0 {
            self.split_unit_around(index);
        }
        if plain {
            self.merge_sacked(index);
        }
    }

    /// The segment at `index` is SACKed: it joins the one before it if that is SACKed too, and then
    /// the one behind joins (`tcp_shift_skb_data`).
    fn merge_sacked(&mut self, index: usize) {
        let alike = |board: &Scoreboard, first: usize, second: usize| {
            let (Some(first), Some(second)) = (board.entries.get(first), board.entries.get(second)) else {
                return false;
            };
            first.sacked && second.sacked && first.len == second.len && !second.merged()
        };
        if index > 0 && alike(self, index - 1, index) {
            self.entries.change(index, |sent| sent.set(Sent::MERGED, true));
            if alike(self, index, index + 1) {
                self.entries.change(index + 1, |sent| sent.set(Sent::MERGED, true));
            }
        }
    }

    /// The receiver got what lies in `left..right` twice (RFC 2883). Returns how many segments of
    /// it were retransmitted and end above `marker`; those that were SACKed before are reordered.
    pub(crate) fn duplicated(&mut self, left: u64, right: u64, marker: u64, progress: &mut Progress) -> u64 {
        let first = (self.position_of(left) - self.entries.base()) as usize;
        let mut count = 0;
        for sent in self.entries.range(first..).take_while(|sent| sent.end() <= right) {
            if sent.seq < left || !sent.ever_resent() {
                continue;
            }
            count += u64::from(sent.end() > marker);
            if sent.sacked {
                progress.low_sacked = progress.low_sacked.min(sent.seq);
            }
        }
        count
    }
}
