//! What was sent and is not yet acknowledged: one entry per segment, with what became of it.
//!
//! Entries stand in sequence order. Cumulative ACKs take entries off the front; a SACK block finds its first entry by
//! binary search. Two marks only move forward, so that each segment is looked at a bounded number of times: everything
//! below `lost_below` has been judged by the loss rule, everything below `resend_from` is resent or needs no resending.
//! Positions are counted from the start of the connection, so that taking entries off the front moves none of them.

use std::collections::VecDeque;

use ackclock_units::Time;

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// First unit of sequence space.
    pub(crate) seq: u64,
    /// When it was last sent.
    pub(crate) sent_at: Time,
    /// Units of sequence space: payload, and one for a FIN.
    pub(crate) len: u32,
    /// The last unit is a FIN.
    pub(crate) fin: bool,
    /// The receiver reported it.
    pub(crate) sacked: bool,
    /// Judged lost.
    pub(crate) lost: bool,
    /// A retransmission of it is in flight.
    pub(crate) resent: bool,
    /// It was sent with PSH, where a rule says so.
    pub(crate) push: bool,
    /// It was retransmitted at some time: no RTT sample (Karn).
    pub(crate) ever_resent: bool,
}

impl Sent {
    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }
}

/// What an ACK or a SACK block newly told.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Progress {
    /// Units acknowledged cumulatively.
    pub(crate) acked: u64,
    /// Segments acknowledged cumulatively.
    pub(crate) acked_segments: u64,
    /// Units that left the network now: acknowledged or SACKed, and not known to be so before.
    pub(crate) delivered: u64,
    /// Segments of these.
    pub(crate) delivered_segments: u32,
    /// Latest sending time among segments newly delivered that were sent once.
    pub(crate) newest_sent_at: Option<Time>,
    /// Earliest sending time among segments newly acknowledged that were sent once and not SACKed before.
    pub(crate) oldest_acked_at: Option<Time>,
    /// Earliest sending time among segments newly SACKed that were sent once.
    pub(crate) oldest_sacked_at: Option<Time>,
    /// The cumulative ACK covers a segment that was retransmitted, and may have waited for it.
    pub(crate) covers_resent: bool,
    /// The farthest that a segment sent once was delivered after a later one, in segments; 0 without reordering.
    pub(crate) reordering: u64,
}

#[inline]
fn earlier(oldest: &mut Option<Time>, at: Time) {
    *oldest = Some(oldest.map_or(at, |oldest| oldest.min(at)));
}

/// Numbers of segments.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Counts {
    pub(crate) segments: u32,
    pub(crate) sacked: u32,
    pub(crate) lost: u32,
    pub(crate) resent: u32,
}

/// Segments in flight and the counts over them.
#[derive(Debug, Default)]
pub(crate) struct Scoreboard {
    entries: VecDeque<Sent>,
    /// Position of the first entry.
    base: u64,
    /// Units in all entries.
    outstanding: u64,
    sacked: u64,
    sacked_segments: u64,
    lost: u64,
    resent: u64,
    /// One past the highest SACKed unit; meaningful while `sacked_segments` > 0.
    highest_sacked: u64,
    /// Position below which the loss rule has judged.
    lost_below: u64,
    /// Position below which nothing waits to be resent.
    resend_from: u64,
    /// SACK blocks of the last ACK: what they cover is marked already.
    seen: [(u64, u64); 4],
}

impl Scoreboard {
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    pub(crate) fn segments(&self) -> u64 {
        self.entries.len() as u64
    }

    pub(crate) fn front(&self) -> Option<&Sent> {
        self.entries.front()
    }

    /// Units in flight or lost, not acknowledged.
    pub(crate) fn outstanding(&self) -> u64 {
        self.outstanding
    }

    /// Units SACKed.
    pub(crate) fn sacked(&self) -> u64 {
        self.sacked
    }

    pub(crate) fn sacked_segments(&self) -> u64 {
        self.sacked_segments
    }

    /// Units judged lost and not SACKed since.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// How many segments stand where; every entry is looked at.
    pub(crate) fn counts(&self) -> Counts {
        let mut counts = Counts { segments: self.entries.len() as u32, ..Counts::default() };
        for sent in &self.entries {
            counts.sacked += u32::from(sent.sacked);
            counts.lost += u32::from(sent.lost);
            counts.resent += u32::from(sent.resent);
        }
        counts
    }

    /// `pipe` of RFC 6675 section 4: what is believed to be in the network.
    pub(crate) fn pipe(&self) -> u64 {
        self.outstanding - self.sacked - self.lost + self.resent
    }

    /// A segment is sent for the first time.
    pub(crate) fn push(&mut self, now: Time, seq: u64, len: u32, fin: bool) {
        self.entries.push_back(Sent {
            seq,
            sent_at: now,
            len,
            fin,
            sacked: false,
            lost: false,
            resent: false,
            push: false,
            ever_resent: false,
        });
        self.outstanding += u64::from(len);
    }

    /// The segment that was sent last has PSH set.
    pub(crate) fn set_push(&mut self, push: bool) {
        if let Some(last) = self.entries.back_mut() {
            last.push = push;
        }
    }

    /// The segment that was sent last, and was not SACKed, is to be sent again with `len` units, more than before.
    pub(crate) fn grow_last(&mut self, len: u32) {
        if let Some(last) = self.entries.back_mut() {
            let more = u64::from(len - last.len);
            last.len = len;
            self.outstanding += more;
            self.lost += if last.lost { more } else { 0 };
            self.resent += if last.resent { more } else { 0 };
        }
    }

    /// Everything below `ack` arrived.
    pub(crate) fn acknowledge(&mut self, ack: u64, progress: &mut Progress) {
        while let Some(first) = self.entries.front_mut() {
            if first.seq >= ack {
                break;
            }
            if first.end() > ack {
                // Part of a segment: the rest stays, as a shorter segment.
                let part = (ack - first.seq) as u32;
                let rest = Sent { seq: ack, len: first.len - part, ..*first };
                *first = Sent { len: part, fin: false, ..*first };
                let taken = *first;
                *first = rest;
                self.book_removal(&taken, progress, 0);
                break;
            }
            let taken = *first;
            let position = self.base;
            self.entries.pop_front();
            self.base += 1;
            progress.acked_segments += 1;
            // Delivered after a later one: something above it was SACKed before.
            let behind = if !taken.sacked && !taken.ever_resent && self.sacked_segments > 0 {
                self.distance_below_highest(position)
            } else {
                0
            };
            if taken.sacked {
                self.sacked_segments -= 1;
            } else {
                progress.delivered_segments += 1;
            }
            self.book_removal(&taken, progress, behind);
        }
        self.lost_below = self.lost_below.max(self.base);
        self.resend_from = self.resend_from.max(self.base);
    }

    fn book_removal(&mut self, taken: &Sent, progress: &mut Progress, behind: u64) {
        let len = u64::from(taken.len);
        self.outstanding -= len;
        progress.acked += len;
        if taken.sacked {
            self.sacked -= len;
        } else {
            progress.delivered += len;
            if taken.lost {
                self.lost -= len;
            }
            if taken.resent {
                self.resent -= len;
            }
            if taken.ever_resent {
                progress.covers_resent = true;
            } else {
                progress.newest_sent_at = progress.newest_sent_at.max(Some(taken.sent_at));
                earlier(&mut progress.oldest_acked_at, taken.sent_at);
            }
            progress.reordering = progress.reordering.max(behind);
        }
    }

    /// How many segments the highest SACKed one is above `position`.
    fn distance_below_highest(&self, position: u64) -> u64 {
        let highest = self.position_of(self.highest_sacked);
        (highest.saturating_sub(1)).saturating_sub(position)
    }

    /// Position of the first entry that ends after `seq`.
    fn position_of(&self, seq: u64) -> u64 {
        self.base + self.entries.partition_point(|sent| sent.end() <= seq) as u64
    }

    fn at(&self, position: u64) -> Option<&Sent> {
        self.entries.get(position.checked_sub(self.base)? as usize)
    }

    /// Marks what lies in the blocks of one ACK as SACKed. Blocks lie within what is outstanding.
    pub(crate) fn sack(&mut self, blocks: &[(u64, u64)], progress: &mut Progress) {
        let mut ascending = [(0, 0); 4];
        let ascending = &mut ascending[..blocks.len()];
        ascending.copy_from_slice(blocks);
        // The newest block comes first in the option; taken in that order, an older one that the sender had not seen yet
        // would look reordered.
        ascending.sort_unstable();
        for &mut (left, right) in ascending {
            let mut from = left;
            // What the last ACK's blocks covered is marked: an ACK in recovery usually extends one of them.
            for &(seen_left, seen_right) in &self.seen {
                if seen_left <= from && from < seen_right {
                    from = seen_right;
                }
            }
            if from < right {
                self.sack_range(from, right, progress);
            }
        }
        self.seen = [(0, 0); 4];
        for (slot, &block) in self.seen.iter_mut().zip(blocks) {
            *slot = block;
        }
    }

    fn sack_range(&mut self, left: u64, right: u64, progress: &mut Progress) {
        let mut position = self.position_of(left);
        if self.at(position).is_some_and(|sent| sent.seq < left && left < sent.end() && !sent.sacked) {
            self.split(position, left);
            position += 1;
        }
        while let Some(sent) = self.at(position).copied() {
            if sent.seq >= right {
                break;
            }
            if !sent.sacked {
                if sent.end() > right {
                    self.split(position, right);
                }
                self.mark_sacked(position, progress);
            }
            position += 1;
        }
    }

    fn mark_sacked(&mut self, position: u64, progress: &mut Progress) {
        let behind = match self.sacked_segments {
            0 => 0,
            _ => self.distance_below_highest(position),
        };
        let sent = &mut self.entries[(position - self.base) as usize];
        let len = u64::from(sent.len);
        sent.sacked = true;
        if sent.lost {
            self.lost -= len;
            sent.lost = false;
        }
        if sent.resent {
            self.resent -= len;
            sent.resent = false;
        }
        if !sent.ever_resent {
            progress.newest_sent_at = progress.newest_sent_at.max(Some(sent.sent_at));
            earlier(&mut progress.oldest_sacked_at, sent.sent_at);
            progress.reordering = progress.reordering.max(behind);
        }
        self.highest_sacked = if self.sacked_segments == 0 { sent.end() } else { self.highest_sacked.max(sent.end()) };
        self.sacked += len;
        self.sacked_segments += 1;
        progress.delivered += len;
        progress.delivered_segments += 1;
    }

    /// Cuts an entry in two at `seq`: a SACK edge inside a segment (the receiver trimmed it to its window).
    fn split(&mut self, position: u64, seq: u64) {
        let index = (position - self.base) as usize;
        let whole = self.entries[index];
        let head = (seq - whole.seq) as u32;
        self.entries[index] = Sent { len: head, fin: false, push: false, ..whole };
        self.entries.insert(index + 1, Sent { seq, len: whole.len - head, ..whole });
        for mark in [&mut self.lost_below, &mut self.resend_from] {
            if *mark > position {
                *mark += 1;
            }
        }
    }

    /// Judges by RFC 6675 `IsLost`: a segment is lost once `threshold` segments above it, or more than `threshold - 1`
    /// segments' worth of bytes, are SACKed. Returns whether a segment was newly found lost.
    pub(crate) fn mark_lost(&mut self, threshold: u32, mss: u32) -> bool {
        if self.sacked_segments == 0 {
            return false;
        }
        let bytes_needed = u64::from(threshold - 1) * u64::from(mss);
        let (mut sequences, mut bytes) = (0, 0u64);
        let mut position = self.position_of(self.highest_sacked - 1) + 1;
        let mut above_is_sacked = false;
        // Down from the highest SACKed segment to where the rule holds: everything below it that is not SACKed is lost.
        while position > self.lost_below {
            if bytes > bytes_needed || sequences >= threshold {
                return self.mark_lost_below(position);
            }
            position -= 1;
            let sent = &self.entries[(position - self.base) as usize];
            if sent.sacked {
                bytes += u64::from(sent.len);
                // IsLost counts discontiguous sequences, not segments.
                sequences += u32::from(!above_is_sacked);
            }
            above_is_sacked = sent.sacked;
        }
        false
    }

    /// Everything below `position` that is neither SACKed nor judged before is lost.
    fn mark_lost_below(&mut self, position: u64) -> bool {
        let mut found = false;
        for index in self.lost_below.max(self.base)..position {
            found |= self.lose((index - self.base) as usize);
        }
        self.lost_below = position;
        found
    }

    fn lose(&mut self, index: usize) -> bool {
        let sent = &mut self.entries[index];
        if sent.sacked || sent.lost {
            return false;
        }
        sent.lost = true;
        self.lost += u64::from(sent.len);
        true
    }

    /// The first segment is lost: three duplicate ACKs without SACK, or a partial ACK (RFC 6582).
    pub(crate) fn mark_front_lost(&mut self) {
        if let Some(first) = self.entries.front_mut() {
            if first.resent {
                // What was resent is lost too.
                first.resent = false;
                self.resent -= u64::from(first.len);
            }
            self.lose(0);
            self.lost_below = self.lost_below.max(self.base + 1);
            self.resend_from = self.base;
        }
    }

    /// The retransmission timer expired: all that is not SACKed is lost, retransmissions too. A SACKed segment at the front
    /// means that the receiver dropped data it had reported, and its reports are forgotten (RFC 2018 section 8).
    pub(crate) fn mark_all_lost(&mut self) {
        let reneged = self.entries.front().is_some_and(|first| first.sacked);
        for index in 0..self.entries.len() {
            let sent = &mut self.entries[index];
            if reneged && sent.sacked {
                sent.sacked = false;
            }
            sent.resent = false;
            self.lose(index);
        }
        if reneged {
            (self.sacked, self.sacked_segments) = (0, 0);
            self.seen = [(0, 0); 4];
        }
        self.resent = 0;
        self.lost_below = self.base + self.entries.len() as u64;
        self.resend_from = self.base;
    }

    /// RFC 6675 `NextSeg` rule 1: the first lost segment that is not in flight again.
    pub(crate) fn next_lost(&mut self) -> Option<Sent> {
        while self.resend_from < self.lost_below {
            let sent = self.entries[(self.resend_from - self.base) as usize];
            if sent.lost && !sent.resent {
                return Some(sent);
            }
            self.resend_from += 1;
        }
        None
    }

    /// RFC 6675 `NextSeg` rule 3: the first segment below the highest SACKed one that is neither SACKed nor resent.
    pub(crate) fn next_unsacked_hole(&self) -> Option<Sent> {
        if self.sacked_segments == 0 {
            return None;
        }
        // Below `lost_below` everything is SACKed or lost.
        self.entries
            .range((self.lost_below.max(self.base) - self.base) as usize..)
            .take_while(|sent| sent.seq < self.highest_sacked)
            .find(|sent| !sent.sacked && !sent.resent && !sent.lost)
            .copied()
    }

    /// The last segment, for the rescue retransmission (RFC 6675 `NextSeg` rule 4).
    pub(crate) fn last_unsacked(&self) -> Option<Sent> {
        self.entries.back().filter(|sent| !sent.sacked && !sent.resent).copied()
    }

    /// The segment at `seq` is sent again.
    pub(crate) fn resend(&mut self, now: Time, seq: u64) {
        let index = (self.position_of(seq) - self.base) as usize;
        let sent = &mut self.entries[index];
        debug_assert!(sent.seq == seq);
        sent.sent_at = now;
        sent.ever_resent = true;
        // A probe is repeated until it is acknowledged, even if a strange peer reports it by SACK alone.
        if !sent.resent && !sent.sacked {
            sent.resent = true;
            self.resent += u64::from(sent.len);
        }
    }

    /// Recomputes every count from the entries: for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let sum = |keep: fn(&Sent) -> bool| -> u64 {
            self.entries.iter().filter(|sent| keep(sent)).map(|sent| u64::from(sent.len)).sum()
        };
        assert_eq!(self.outstanding, sum(|_| true));
        assert_eq!(self.sacked, sum(|sent| sent.sacked));
        assert_eq!(self.sacked_segments, self.entries.iter().filter(|sent| sent.sacked).count() as u64);
        assert_eq!(self.lost, sum(|sent| sent.lost));
        assert_eq!(self.resent, sum(|sent| sent.resent));
        assert!(self.entries.iter().all(|sent| !(sent.sacked && (sent.lost || sent.resent))));
        assert!(self.entries.iter().zip(self.entries.iter().skip(1)).all(|(a, b)| a.end() == b.seq));
    }
}

#[cfg(test)]
mod tests;
