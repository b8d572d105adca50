//! The data to be sent again, and its division into segments.

use std::cmp::Reverse;

use super::sent::Again;
use super::{Scoreboard, Sent, Stamp};

impl Scoreboard {
    /// Returns `true` if a segment may wait to be resent.
    #[inline]
    pub(crate) fn may_resend(&self) -> bool {
        self.resend_from != self.resend_to || !self.lost_again.is_empty()
    }

    /// First unit of the first segment that waits to be resent, once [`Scoreboard::next_lost`] has
    /// looked for it.
    pub(crate) fn resend_point(&self) -> Option<u64> {
        let again = self.lost_again.peek().map(|&Reverse(seq)| seq);
        again.or_else(|| self.waiting().map(|sent| sent.seq))
    }

    /// The segment that is next to be resent, but for those found lost later.
    fn waiting(&self) -> Option<&Sent> {
        self.at(self.resend_from).filter(|_| self.resend_from < self.resend_to)
    }

    /// First unit of what a timeout has left to be resent.
    pub(crate) fn left_by_timeout(&self) -> Option<u64> {
        self.waiting().filter(|sent| sent.lost && !sent.resent && sent.by_timeout()).map(|sent| sent.seq)
    }

    /// RFC 6675 `NextSeg` rule 1: the first lost segment that is not in flight again.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<Sent> {
        if self.may_resend() { self.find_lost() } else { None }
    }

    #[inline(never)]
    fn find_lost(&mut self) -> Option<Sent> {
        while let Some(&Reverse(seq)) = self.lost_again.peek() {
            self.step();
            let sent = self.at(self.position_of(seq)).filter(|sent| sent.lost && !sent.resent);
            if sent.is_some() {
                return sent.copied();
            }
            self.lost_again.pop();
        }
        while self.resend_from < self.resend_to {
            self.step();
            let sent = self.entries[(self.resend_from - self.entries.base()) as usize];
            if sent.lost && !sent.resent {
                return Some(sent);
            }
            self.resend_from += 1;
        }
        None
    }

    /// RFC 6675 `NextSeg` rule 3: the first segment below the highest SACKed one that is neither
    /// SACKed nor resent.
    pub(crate) fn next_unsacked_hole(&mut self) -> Option<Sent> {
        if self.sacked_segments() == 0 {
            return None;
        }
        // Judged segments are SACKed or lost.
        self.holes_from = self.holes_from.max(self.entries.judged().end);
        while let Some(&sent) = self.at(self.holes_from).filter(|sent| sent.seq < self.highest_sacked) {
            self.step();
            if !sent.sacked && !sent.resent && !sent.lost {
                return Some(sent);
            }
            self.holes_from += 1;
        }
        None
    }

    /// The last segment, for the rescue retransmission (RFC 6675 `NextSeg` rule 4).
    pub(crate) fn last_unsacked(&self) -> Option<Sent> {
        self.entries.back().filter(|sent| !sent.sacked && !sent.resent).copied()
    }

    /// The segment at `seq` is sent again, while `nxt` is the next unit to be sent for the first
    /// time.
    pub(crate) fn resend(&mut self, stamp: Stamp, seq: u64, nxt: u64) {
        let index = (self.position_of(seq) - self.entries.base()) as usize;
        let end = self.entries.change(index, |sent| {
            debug_assert!(sent.seq == seq);
            sent.sent_again(stamp);
            // A probe is repeated until it is acknowledged, even if a strange peer reports it by
            // SACK alone.
            if !sent.sacked {
                sent.aux = u32::try_from(nxt - seq).unwrap_or(u32::MAX);
                sent.resent = true;
            }
            sent.end()
        });
        let Some(end) = end else { return };
        self.again.push_back(Again { seq, end, stamp, nxt });
        let pipe = self.pipe();
        if let Some(rates) = &mut self.rates {
            rates.resent(index, pipe);
        }
    }

    /// The last segment, unless the receiver has it.
    pub(crate) fn last_unreported(&self) -> Option<Sent> {
        self.entries.back().filter(|last| !last.sacked).copied()
    }

    /// The segment at `seq` goes out once more as a probe, in addition to the original: nothing is
    /// declared lost.
    pub(crate) fn resend_as_probe(&mut self, stamp: Stamp, seq: u64) {
        let pipe = self.pipe();
        let index = (self.position_of(seq) - self.entries.base()) as usize;
        self.entries.change(index, |sent| sent.sent_again(stamp));
        let Some(sent) = self.entries.get(index) else { return };
        self.again.push_back(Again { seq, end: sent.end(), stamp, nxt: sent.end() });
        let in_flight = pipe + u64::from(sent.len);
        if let Some(rates) = &mut self.rates {
            rates.resent(index, in_flight);
        }
    }

    /// Cuts the segment at `seq` after `payload` bytes, since more do not fit into one
    /// (`tcp_fragment`); gives the first part.
    #[cold]
    pub(crate) fn cut(&mut self, sent: Sent, payload: u32) -> Sent {
        let position = self.position_of(sent.seq);
        self.split(position, sent.seq + u64::from(payload));
        self.at(position).copied().unwrap_or(sent)
    }

    /// Cuts an entry in two at `seq`: a SACK edge inside a segment (the receiver trimmed it to its
    /// window).
    pub(super) fn split(&mut self, position: u64, seq: u64) {
        let index = (position - self.entries.base()) as usize;
        self.entries.split(index, seq);
        if let Some(rates) = &mut self.rates {
            rates.split(index);
        }
        for mark in [
            &mut self.resend_from,
            &mut self.resend_to,
            &mut self.highest_end,
            &mut self.holes_from,
            &mut self.originals_from,
        ] {
            if *mark > position {
                *mark += 1;
            }
        }
        if self.entries[index].lost && !self.entries[index].resent {
            self.awaits_resending(index + 1);
        }
    }

    /// Cuts the first segment into ones of `most` units: it was sent before the size of segments
    /// was agreed on.
    pub(crate) fn split_front(&mut self, most: u32) {
        let Some(front) = self.entries.front().copied() else { return };
        let pieces = u64::from(front.len.div_ceil(most.max(1)));
        for piece in 1..pieces {
            self.split(self.entries.base() + piece - 1, front.seq + piece * u64::from(most));
        }
    }
}
