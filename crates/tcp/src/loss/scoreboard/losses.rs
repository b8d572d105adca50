//! The loss marks that rules set on the scoreboard, and their withdrawal.

use std::cmp::Reverse;

use ackclock_units::{Span, Time};

use super::entries::JudgedEntry;
use super::{Scoreboard, Sent};

impl Scoreboard {
    /// Judges by RFC 6675 `IsLost`: a segment is lost once `threshold` segments above it, or more
    /// than `threshold - 1` segments' worth of bytes, are SACKed. Returns whether a segment was
    /// newly found lost.
    pub(crate) fn mark_lost(&mut self, threshold: u32, mss: u32) -> bool {
        let bytes_needed = u64::from(threshold - 1) * u64::from(mss);
        let losses = self.losses;
        // IsLost counts discontiguous sequences, not segments.
        loop {
            let &JudgedEntry { end, sacked_above, runs_above, .. } = self.entries.judged();
            if sacked_above <= bytes_needed && runs_above < threshold {
                break;
            }
            self.step();
            let index = (end - self.entries.base()) as usize;
            let sent = &self.entries[index];
            if sent.sacked {
                let runs = runs_above - u32::from(!self.entries.is_sacked(index + 1));
                let bytes = sacked_above - u64::from(sent.len);
                if bytes <= bytes_needed && runs < threshold {
                    break;
                }
            }
            self.lose(index);
            self.entries.judge_one();
        }
        self.losses > losses
    }

    pub(super) fn lose(&mut self, index: usize) -> bool {
        let sent = &self.entries[index];
        if sent.sacked || sent.lost {
            return false;
        }
        self.entries.change(index, |sent| sent.lost = true);
        self.losses += 1;
        self.note(index);
        self.awaits_resending(index);
        true
    }

    /// A segment, or its retransmission, is declared lost: for those that observe it.
    pub(super) fn note(&mut self, index: usize) {
        let by_timeout = self.declarations.by_timeout();
        self.entries.change(index, |sent| sent.set(Sent::BY_TIMEOUT, by_timeout));
        let sent = &self.entries[index];
        self.losses_units += u64::from(sent.len);
        self.declarations.note(sent.seq, sent.len, sent.stamp());
        if let Some(rates) = &mut self.rates {
            rates.lose(index, sent);
        }
    }

    /// The segment is lost: itself, or if it was declared lost before, its retransmission.
    pub(super) fn lose_again(&mut self, index: usize) {
        let sent = &self.entries[index];
        if sent.lost && sent.resent {
            self.entries.change(index, |sent| sent.resent = false);
            self.losses += 1;
            self.note(index);
            self.awaits_resending(index);
        } else {
            self.lose(index);
        }
    }

    pub(super) fn awaits_resending(&mut self, index: usize) {
        let position = self.entries.base() + index as u64;
        if position < self.resend_from {
            self.lost_again.push(Reverse(self.entries[index].seq));
        } else {
            self.resend_to = self.resend_to.max(position + 1);
        }
    }

    /// The first segment is lost, without looking at anything else (Linux's
    /// `tcp_newreno_mark_lost`).
    pub(crate) fn lose_front(&mut self) {
        if self.entries.front().is_some_and(|first| !first.lost && !first.sacked) {
            self.lose(0);
        }
    }

    /// Linux's `tcp_mark_head_lost` with FACK: whatever of the first `count` segments is not SACKed
    /// is lost.
    pub(crate) fn lose_first(&mut self, count: u64) {
        let base = self.entries.base();
        let end = base + count.min(self.segments());
        for position in self.entries.judged().end..end {
            self.lose((position - base) as usize);
        }
        self.pass(end);
    }

    /// Segments that begin below `seq`.
    pub(crate) fn segments_below(&self, seq: u64) -> u64 {
        if seq == u64::MAX {
            self.segments()
        } else {
            (self.position_of(seq) - self.entries.base()).min(self.segments())
        }
    }

    /// Linux's `tcp_mark_head_lost` without FACK: what is not SACKed and has at most `most` SACKed
    /// segments below it is lost, that is what has the other SACKed segments above it; nothing from
    /// `limit` on.
    pub(crate) fn lose_below_sacked(&mut self, most: u64, limit: u64) {
        let end = self.entries.base() + self.segments_below(limit);
        while let &JudgedEntry { end: position, sacked_below, .. } = self.entries.judged()
            && position < end
        {
            self.step();
            let index = (position - self.entries.base()) as usize;
            if u64::from(sacked_below) + u64::from(self.entries[index].sacked) > most {
                break;
            }
            self.lose(index);
            self.entries.judge_one();
        }
    }

    /// SACKed segments above the one that begins at `seq`.
    pub(crate) fn sacked_above(&self, seq: u64) -> u64 {
        let Some((_, end)) = self.reported() else { return 0 };
        let first = self.position_of(seq).min(end);
        let base = self.entries.base();
        let range = (first - base) as usize..(end - base) as usize;
        self.entries.range(range).filter(|sent| sent.sacked && sent.seq > seq).count() as u64
    }

    /// Moves the mark of what is judged up to `position`.
    fn pass(&mut self, position: u64) {
        while self.entries.judged().end < position {
            self.step();
            self.entries.judge_one();
        }
    }

    /// Number of consecutive SACKed segments from `index` on, as far as known until now.
    /// Remembered, so that the next search jumps farther.
    pub(super) fn run_of_sacked(&mut self, index: usize) -> usize {
        let mut run = self.entries[index].aux.max(1);
        while let Some(next) = self.entries.get(index + run as usize).filter(|next| next.sacked) {
            run += next.aux.max(1);
            self.step();
        }
        self.entries.change(index, |sent| sent.aux = run);
        run as usize
    }

    /// Marks segments of more than `payload` bytes lost, sent again or not: they do not pass
    /// (`tcp_simple_retransmit`).
    #[cold]
    pub(crate) fn lose_larger(&mut self, payload: u32) {
        for index in 0..self.entries.len() {
            let sent = self.entries[index];
            if !sent.sacked && sent.payload() > payload {
                self.lose_again(index);
            }
        }
    }

    /// The first segment is lost: three duplicate ACKs without SACK, or a partial ACK (RFC 6582).
    pub(crate) fn mark_front_lost(&mut self) {
        if let Some(&first) = self.entries.front() {
            if first.resent {
                // A resent segment is lost too.
                self.entries.change(0, |first| first.resent = false);
                if first.lost {
                    self.note(0);
                }
            }
            self.lose(0);
            self.pass(self.entries.base() + 1);
            self.awaits_resending(0);
        }
    }

    /// The retransmission timer expired, and the first segment is lost or its retransmission, while
    /// of the others nothing is known (F-RTO of RFC 4138).
    pub(crate) fn lose_front_by_timeout(&mut self) {
        self.declarations.set_by_timeout(true);
        self.mark_front_lost();
        self.entries.change(0, |front| front.set(Sent::BY_TIMEOUT, true));
        self.declarations.set_by_timeout(false);
    }

    /// The retransmission timer expired: all that is not SACKed is lost, retransmissions too. A
    /// SACKed segment at the front means that the receiver dropped data it had reported, and its
    /// reports are forgotten (RFC 2018 section 8).
    pub(crate) fn mark_all_lost(&mut self) {
        self.declare_all_lost(true);
    }

    /// Marks everything lost for duplicate ACKs (Tahoe).
    pub(crate) fn lose_all(&mut self) {
        self.declare_all_lost(false);
    }

    fn declare_all_lost(&mut self, by_timeout: bool) {
        self.forget_reneged();
        self.declarations.set_by_timeout(by_timeout);
        for index in 0..self.entries.len() {
            let sent = self.entries[index];
            self.entries.change(index, |sent| sent.resent = false);
            if !self.lose(index) && sent.lost && sent.resent {
                self.note(index);
            }
            // Segments lost before are the timer's from now on.
            self.entries.change(index, |sent| sent.set(Sent::BY_TIMEOUT, by_timeout));
        }
        self.declarations.set_by_timeout(false);
        let base = self.entries.base();
        self.pass(base + self.segments());
        (self.resend_from, self.resend_to) = (base, base + self.segments());
        self.lost_again.clear();
    }

    /// RFC 8985 section 6.3: at a timeout the first segment is lost, and of the others those that
    /// were sent at least `wait` ago; all of them if the receiver has reneged.
    pub(crate) fn mark_old_lost(&mut self, now: Time, wait: Span) {
        let reneged = self.forget_reneged();
        self.declarations.set_by_timeout(true);
        for index in 0..self.entries.len() {
            let sent = &self.entries[index];
            if !sent.sacked && (index == 0 || reneged || now.since(sent.sent_at) >= wait) {
                self.entries.change(index, |sent| sent.set(Sent::BY_TIMEOUT, true));
                self.lose_again(index);
            }
        }
        if self.entries.front().is_some_and(|first| first.resent) {
            // The segment was resent without having been declared lost; now that copy is lost too.
            self.lose_again(0);
        }
        self.declarations.set_by_timeout(false);
    }

    fn forget_reneged(&mut self) -> bool {
        let reneged = self.entries.front().is_some_and(|first| first.sacked);
        if reneged {
            self.forget_reports();
        }
        reneged
    }

    /// Nothing is SACKed (`tcp_free_sackholes`).
    pub(crate) fn forget_reports(&mut self) {
        if self.sacked_segments() > 0 {
            self.entries.change_all(|sent| sent.sacked = false);
            (self.holes_from, self.originals_from) = (self.entries.base(), self.entries.base());
            self.seen = [(0, 0); 4];
            if let Some(rates) = &mut self.rates {
                rates.reneged();
            }
        }
    }

    /// FreeBSD 9: whatever is not SACKed below the highest report is a hole, and lost, as far as it
    /// lies below `point`.
    pub(crate) fn lose_holes(&mut self, point: u64) {
        let below = self.position_of(point) - self.entries.base();
        self.lose_first(self.segments_to_highest().min(below));
    }

    /// Treats segments declared lost and sent again as in flight, as if sent once; segments that
    /// wait to be sent again stay lost.
    pub(crate) fn settle(&mut self) {
        if self.resent_segments() == 0 {
            return;
        }
        self.entries.change_all(|sent| {
            if std::mem::take(&mut sent.resent) {
                sent.lost = false;
            }
        });
        self.judge_anew();
    }

    fn judge_anew(&mut self) {
        self.entries.judge_anew();
        (self.holes_from, self.originals_from) = (self.entries.base(), self.entries.base());
    }

    /// The losses were none: nothing is lost any more, and everything is judged anew.
    pub(crate) fn unmark_lost(&mut self) {
        self.entries.change_all(|sent| sent.lost = false);
        self.judge_anew();
        (self.resend_from, self.resend_to) = (self.entries.base(), self.entries.base());
        self.lost_again.clear();
        self.order_again();
    }
}
