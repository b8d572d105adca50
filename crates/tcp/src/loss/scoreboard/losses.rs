//! What is lost: the marks that loss rules set on the scoreboard, and how they are withdrawn.

use std::cmp::Reverse;

use ackclock_units::{Span, Time};

use super::{Scoreboard, Sent};

impl Scoreboard {
    /// Judges by RFC 6675 `IsLost`: a segment is lost once `threshold` segments above it, or more
    /// than `threshold - 1` segments' worth of bytes, are SACKed. Returns whether a segment was
    /// newly found lost.
    pub(crate) fn mark_lost(&mut self, threshold: u32, mss: u32) -> bool {
        let bytes_needed = u64::from(threshold - 1) * u64::from(mss);
        let losses = self.losses;
        // IsLost counts discontiguous sequences, not segments.
        while self.sacked_above > bytes_needed || self.runs_above >= threshold {
            self.step();
            let index = (self.lost_below - self.base) as usize;
            let sent = &self.entries[index];
            if sent.sacked {
                let runs = self.runs_above - u32::from(!self.is_sacked(index + 1));
                let bytes = self.sacked_above - u64::from(sent.len);
                if bytes <= bytes_needed && runs < threshold {
                    break;
                }
            }
            self.lose(index);
            self.pass_one();
        }
        self.losses > losses
    }

    /// The segment at `lost_below` is judged.
    fn pass_one(&mut self) {
        let index = (self.lost_below - self.base) as usize;
        let sent = &self.entries[index];
        if sent.sacked {
            self.sacked_below += 1;
            self.sacked_above -= u64::from(sent.len);
            self.runs_above -= u32::from(!self.is_sacked(index + 1));
        }
        self.lost_below += 1;
    }

    pub(super) fn lose(&mut self, index: usize) -> bool {
        let sent = &mut self.entries[index];
        if sent.sacked || sent.lost {
            return false;
        }
        sent.lost = true;
        self.lost += u64::from(sent.len);
        self.lost_segments += 1;
        self.losses += 1;
        self.note(index);
        self.awaits_resending(index);
        true
    }

    /// A segment, or its retransmission, is declared lost: for those that observe it.
    pub(super) fn note(&mut self, index: usize) {
        let sent = &mut self.entries[index];
        sent.set(Sent::BY_TIMEOUT, self.declarations.by_timeout());
        self.losses_units += u64::from(sent.len);
        self.declarations.note(sent.seq, sent.len, sent.stamp());
        if let Some(rates) = &mut self.rates {
            rates.lose(index, sent);
        }
    }

    /// The segment is lost: itself, or if it was declared lost before, its retransmission.
    pub(super) fn lose_again(&mut self, index: usize) {
        let sent = &mut self.entries[index];
        if sent.lost && sent.resent {
            sent.resent = false;
            self.resent -= u64::from(sent.len);
            self.resent_segments -= 1;
            self.losses += 1;
            self.note(index);
            self.awaits_resending(index);
        } else {
            self.lose(index);
        }
    }

    pub(super) fn awaits_resending(&mut self, index: usize) {
        let position = self.base + index as u64;
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
        let end = (self.base + count).min(self.base + self.segments());
        for position in self.lost_below.max(self.base)..end {
            self.lose((position - self.base) as usize);
        }
        self.pass(end);
    }

    /// Segments that begin below `seq`.
    pub(crate) fn segments_below(&self, seq: u64) -> u64 {
        if seq == u64::MAX { self.segments() } else { (self.position_of(seq) - self.base).min(self.segments()) }
    }

    /// Linux's `tcp_mark_head_lost` without FACK: what is not SACKed and has at most `most` SACKed
    /// segments below it is lost, that is what has the other SACKed segments above it; nothing from
    /// `limit` on.
    pub(crate) fn lose_below_sacked(&mut self, most: u64, limit: u64) {
        let end = self.base + self.segments_below(limit);
        while self.lost_below < end {
            self.step();
            let index = (self.lost_below - self.base) as usize;
            if u64::from(self.sacked_below) + u64::from(self.entries[index].sacked) > most {
                break;
            }
            self.lose(index);
            self.pass_one();
        }
    }

    /// SACKed segments above the one that begins at `seq`.
    pub(crate) fn sacked_above(&self, seq: u64) -> u64 {
        let Some((_, end)) = self.reported() else { return 0 };
        let first = self.position_of(seq).min(end);
        let range = (first - self.base) as usize..(end - self.base) as usize;
        self.entries.range(range).filter(|sent| sent.sacked && sent.seq > seq).count() as u64
    }

    /// Moves the mark of what is judged up to `position`.
    fn pass(&mut self, position: u64) {
        while self.lost_below < position {
            self.step();
            self.pass_one();
        }
    }

    /// How many SACKed segments follow each other from `index` on, at least those known until now.
    /// Remembered, so that the next search jumps farther.
    pub(super) fn run_of_sacked(&mut self, index: usize) -> usize {
        let mut run = self.entries[index].aux.max(1);
        while let Some(next) = self.entries.get(index + run as usize).filter(|next| next.sacked) {
            run += next.aux.max(1);
            self.step();
        }
        self.entries[index].aux = run;
        run as usize
    }

    /// What carries more than `payload` bytes is lost, sent again or not: it does not pass
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
        if let Some(first) = self.entries.front_mut() {
            if first.resent {
                // What was resent is lost too.
                first.resent = false;
                self.resent -= u64::from(first.len);
                self.resent_segments -= 1;
                if first.lost {
                    self.note(0);
                }
            }
            self.lose(0);
            self.pass(self.base + 1);
            self.awaits_resending(0);
        }
    }

    /// The retransmission timer expired, and the first segment is lost or its retransmission, while
    /// of the others nothing is known (F-RTO of RFC 4138).
    pub(crate) fn lose_front_by_timeout(&mut self) {
        self.declarations.set_by_timeout(true);
        self.mark_front_lost();
        if let Some(front) = self.entries.front_mut() {
            front.set(Sent::BY_TIMEOUT, true);
        }
        self.declarations.set_by_timeout(false);
    }

    /// The retransmission timer expired: all that is not SACKed is lost, retransmissions too. A
    /// SACKed segment at the front means that the receiver dropped data it had reported, and its
    /// reports are forgotten (RFC 2018 section 8).
    pub(crate) fn mark_all_lost(&mut self) {
        self.declare_all_lost(true);
    }

    /// The same for duplicate ACKs (Tahoe).
    pub(crate) fn lose_all(&mut self) {
        self.declare_all_lost(false);
    }

    fn declare_all_lost(&mut self, by_timeout: bool) {
        self.forget_reneged();
        self.declarations.set_by_timeout(by_timeout);
        for index in 0..self.entries.len() {
            let sent = &mut self.entries[index];
            let again = sent.lost && std::mem::take(&mut sent.resent);
            sent.resent = false;
            if !self.lose(index) && again {
                self.note(index);
            }
            // What was lost before is the timer's from now on.
            self.entries[index].set(Sent::BY_TIMEOUT, by_timeout);
        }
        self.declarations.set_by_timeout(false);
        (self.resent, self.resent_segments) = (0, 0);
        self.pass(self.base + self.segments());
        (self.resend_from, self.resend_to) = (self.base, self.base + self.segments());
        self.lost_again.clear();
    }

    /// RFC 8985 section 6.3: at a timeout the first segment is lost, and of the others those that
    /// were sent at least `wait` ago; all of them if the receiver has reneged.
    pub(crate) fn mark_old_lost(&mut self, now: Time, wait: Span) {
        let reneged = self.forget_reneged();
        self.declarations.set_by_timeout(true);
        for index in 0..self.entries.len() {
            let sent = &mut self.entries[index];
            if !sent.sacked && (index == 0 || reneged || now.since(sent.sent_at) >= wait) {
                sent.set(Sent::BY_TIMEOUT, true);
                self.lose_again(index);
            }
        }
        if self.entries.front().is_some_and(|first| first.resent) {
            // It was resent without having been declared lost; now that copy is lost too.
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
        if self.sacked_segments > 0 {
            self.entries.iter_mut().for_each(|sent| sent.sacked = false);
            (self.sacked, self.sacked_segments) = (0, 0);
            (self.sacked_below, self.sacked_above, self.runs_above) = (0, 0, 0);
            (self.holes_from, self.originals_from) = (self.base, self.base);
            self.seen = [(0, 0); 4];
            if let Some(rates) = &mut self.rates {
                rates.reneged();
            }
        }
    }

    /// FreeBSD 9: whatever is not SACKed below the highest report is a hole, and lost, as far as it
    /// lies below `point`.
    pub(crate) fn lose_holes(&mut self, point: u64) {
        let below = self.position_of(point) - self.base;
        self.lose_first(self.segments_to_highest().min(below));
    }

    /// What was declared lost and sent again is in flight as if it had been sent once; what waits
    /// to be sent again stays lost.
    pub(crate) fn settle(&mut self) {
        if self.resent_segments == 0 {
            return;
        }
        for sent in self.entries.iter_mut().filter(|sent| sent.resent) {
            if sent.lost {
                self.lost -= u64::from(sent.len);
                self.lost_segments -= 1;
            }
            (sent.lost, sent.resent) = (false, false);
        }
        (self.resent, self.resent_segments) = (0, 0);
        (self.lost_below, self.sacked_below, self.sacked_above) = (self.base, 0, self.sacked);
        self.runs_above = self.runs();
        (self.holes_from, self.originals_from) = (self.base, self.base);
    }

    /// The sequences that SACKed segments form.
    fn runs(&self) -> u32 {
        (0..self.entries.len()).filter(|&i| self.is_sacked(i) && !self.is_sacked(i + 1)).count() as u32
    }

    /// The losses were none: nothing is lost any more, and everything is judged anew.
    pub(crate) fn unmark_lost(&mut self) {
        self.entries.iter_mut().for_each(|sent| sent.lost = false);
        (self.lost, self.lost_segments) = (0, 0);
        (self.lost_below, self.sacked_below, self.sacked_above) = (self.base, 0, self.sacked);
        self.runs_above = self.runs();
        (self.resend_from, self.resend_to) = (self.base, self.base);
        self.lost_again.clear();
        (self.holes_from, self.originals_from) = (self.base, self.base);
        self.order_again();
    }
}
