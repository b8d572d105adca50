//! What was sent and is not yet acknowledged: one entry per segment, with what became of it.
//!
//! Entries stand in sequence order. Cumulative ACKs take entries off the front; a SACK block finds its first entry by
//! binary search. Marks only move forward, so that each segment is looked at a bounded number of times, however large the
//! window: everything below `lost_below` has been judged by the loss rule, with the SACKed segments above it counted;
//! everything below `resend_from` is resent or needs no resending, unless `lost_again` lists it. What was sent again stands in
//! the order of sending in `again.rs`. Positions are counted from the start of the connection, so that taking entries off the
//! front moves none of them.

mod again;
mod losses;
mod progress;
mod rates;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_units::Time;

use crate::Stamp;
use crate::report::variables::Declarations;
use again::Again;

pub(crate) use progress::Progress;
pub(crate) use rates::Rates;

/// One segment in flight.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Sent {
    /// First unit of sequence space.
    pub(crate) seq: u64,
    /// When it was last sent.
    pub(crate) sent_at: Time,
    /// Units of sequence space: payload, and one for a FIN.
    pub(crate) len: u32,
    /// While SACKed: how many SACKed segments are known to begin with this one, 0 for 1. After a retransmission: how far
    /// SND.NXT was from `seq` then.
    aux: u32,
    /// Order of [`Stamp`] of when it was last sent.
    order: u32,
    /// [`Sent::FIN`] and others.
    marks: u8,
    /// The receiver reported it.
    pub(crate) sacked: bool,
    /// Judged lost.
    pub(crate) lost: bool,
    /// A retransmission of it is in flight.
    pub(crate) resent: bool,
}

const _: () = assert!(size_of::<Sent>() == 32, "two segments should fit a cache line");

impl Sent {
    const FIN: u8 = 1;
    const PUSH: u8 = 2;
    const BY_TIMEOUT: u8 = 4;
    const EVER_RESENT: u8 = 8;
    const MERGED: u8 = 16;

    /// The last unit is a FIN.
    pub(crate) fn fin(&self) -> bool {
        self.marks & Sent::FIN > 0
    }

    /// It was sent with PSH, where a rule says so.
    pub(crate) fn push(&self) -> bool {
        self.marks & Sent::PUSH > 0
    }

    /// Judged lost by the retransmission timer.
    pub(crate) fn by_timeout(&self) -> bool {
        self.marks & Sent::BY_TIMEOUT > 0
    }

    /// It was retransmitted at some time: no RTT sample (Karn).
    pub(crate) fn ever_resent(&self) -> bool {
        self.marks & Sent::EVER_RESENT > 0
    }

    /// Linux has added it to the socket buffer of the segment before it.
    fn merged(&self) -> bool {
        self.marks & Sent::MERGED > 0
    }

    fn set(&mut self, mark: u8, on: bool) {
        self.marks = self.marks & !mark | if on { mark } else { 0 };
    }

    /// When it was last sent, in order among all others.
    pub(crate) fn stamp(&self) -> Stamp {
        Stamp { at: self.sent_at, order: self.order }
    }

    fn sent_again(&mut self, stamp: Stamp) {
        (self.sent_at, self.order) = (stamp.at, stamp.order);
        self.marks |= Sent::EVER_RESENT;
    }

    pub(crate) fn end(&self) -> u64 {
        self.seq + u64::from(self.len)
    }

    /// Bytes that it carries.
    pub(crate) fn payload(&self) -> u32 {
        self.len - u32::from(self.fin())
    }
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
    merged_segments: u64,
    lost: u64,
    lost_segments: u64,
    resent: u64,
    resent_segments: u64,
    /// Times that a segment or its retransmission was judged lost, and their units.
    losses: u64,
    losses_units: u64,
    /// One past the highest SACKed unit, and one past the position of its segment; meaningful while `sacked_segments` > 0.
    highest_sacked: u64,
    highest_end: u64,
    /// Position below which the loss rule has judged.
    lost_below: u64,
    /// SACKed segments below that position.
    sacked_below: u64,
    /// SACKed units from that position on, and the sequences that they form there.
    sacked_above: u64,
    runs_above: u64,
    /// Positions between which segments may wait to be resent.
    resend_from: u64,
    resend_to: u64,
    /// First units of segments below these that were found lost later.
    lost_again: BinaryHeap<Reverse<u64>>,
    /// Position below which nothing is a hole that may be resent without being lost.
    holes_from: u64,
    /// Position below which every segment that was sent once is SACKed or lost.
    originals_from: u64,
    /// Retransmissions in order of sending.
    again: VecDeque<Again>,
    /// Positions of what is about to be marked.
    found: Vec<u64>,
    /// SACK blocks of the last ACK: what they cover is marked already.
    seen: [(u64, u64); 4],
    /// A segment counts as reported when SACK blocks cover all of it, not in parts.
    pub(crate) whole_reports: bool,
    /// What was judged lost, for who observes it.
    pub(crate) declarations: Declarations,
    /// Delivery rates, for a controller that asks for them.
    pub(crate) rates: Option<Box<Rates>>,
    /// Entries looked at.
    #[cfg(test)]
    steps: u64,
}

impl Scoreboard {
    /// An entry is looked at: what tests count.
    #[inline(always)]
    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    /// Samples delivery rates from now on, or no longer.
    pub(crate) fn sample_rates(&mut self, on: bool) {
        if on != self.rates.is_some() {
            self.rates = on.then(|| Box::new(Rates::new(self.entries.len())));
        }
    }

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

    /// Segments that share the socket buffer of the one before them.
    pub(crate) fn merged_segments(&self) -> u64 {
        self.merged_segments
    }

    /// Units judged lost and not SACKed since.
    pub(crate) fn lost(&self) -> u64 {
        self.lost
    }

    /// Units of which a retransmission is in flight.
    pub(crate) fn resent(&self) -> u64 {
        self.resent
    }

    pub(crate) fn lost_segments(&self) -> u64 {
        self.lost_segments
    }

    /// Segments of which a retransmission is in flight.
    pub(crate) fn resent_segments(&self) -> u64 {
        self.resent_segments
    }

    /// How often a segment or its retransmission was judged lost until now.
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Units judged lost until now, as often as they were.
    pub(crate) fn units_judged_lost(&self) -> u64 {
        self.losses_units
    }

    /// One past the highest unit SACKed, if anything is.
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        (self.sacked_segments > 0).then_some(self.highest_sacked)
    }

    /// One past the highest unit SACKed, and one past the position of its segment, if anything is.
    pub(crate) fn reported(&self) -> Option<(u64, u64)> {
        (self.sacked_segments > 0).then_some((self.highest_sacked, self.highest_end))
    }

    /// Segments from the one that holds `low` to the one that ends at `high`.
    pub(crate) fn segments_between(&self, low: u64, high: u64) -> u64 {
        self.position_of(high).saturating_sub(self.position_of(low))
    }

    /// Segments from the first to the highest SACKed one; 0 if nothing is SACKed. Linux's `fackets_out`.
    pub(crate) fn segments_to_highest(&self) -> u64 {
        match self.sacked_segments {
            0 => 0,
            _ => self.highest_end - self.base,
        }
    }

    /// `pipe` of RFC 6675 section 4: what is believed to be in the network.
    pub(crate) fn pipe(&self) -> u64 {
        self.outstanding - self.sacked - self.lost + self.resent
    }

    /// A segment is sent for the first time.
    pub(crate) fn push(&mut self, stamp: Stamp, seq: u64, len: u32, fin: bool) {
        self.entries.push_back(Sent {
            seq,
            sent_at: stamp.at,
            len,
            aux: 0,
            order: stamp.order,
            marks: if fin { Sent::FIN } else { 0 },
            sacked: false,
            lost: false,
            resent: false,
        });
        self.outstanding += u64::from(len);
        if self.rates.is_some() {
            self.rate_sent(stamp.at);
        }
    }

    #[inline(never)]
    fn rate_sent(&mut self, now: Time) {
        let pipe = self.pipe();
        if let Some(rates) = &mut self.rates {
            rates.sent(now, pipe);
        }
    }

    /// The segment that was sent last has PSH set.
    pub(crate) fn set_push(&mut self, push: bool) {
        if let Some(last) = self.entries.back_mut() {
            last.set(Sent::PUSH, push);
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
                *first = Sent { len: part, marks: first.marks & !Sent::FIN, ..*first };
                let taken = *first;
                *first = rest;
                if let Some(rates) = &mut self.rates {
                    rates.acknowledged(progress.now, &taken, false);
                }
                if taken.sacked && self.base >= self.lost_below {
                    self.sacked_above -= u64::from(part);
                }
                self.book_removal(&taken, progress);
                break;
            }
            let taken = *first;
            let position = self.base;
            self.entries.pop_front();
            self.base += 1;
            progress.acked_segments += 1;
            if !taken.sacked && !taken.ever_resent() {
                progress.low_acked = progress.low_acked.min((taken.seq, position));
                // Delivered after a later one: something above it was SACKed before.
                if let Some((_, end)) = progress.reported.filter(|&(highest, _)| taken.seq < highest) {
                    progress.reordering = progress.reordering.max((end - 1).saturating_sub(position));
                }
            }
            self.merged_segments -= u64::from(taken.merged());
            if taken.sacked {
                self.sacked_segments -= 1;
                if position < self.lost_below {
                    self.sacked_below -= 1;
                } else {
                    self.sacked_above -= u64::from(taken.len);
                    self.runs_above -= u64::from(!self.is_sacked(0));
                }
            } else {
                self.lost_segments -= u64::from(taken.lost);
                self.resent_segments -= u64::from(taken.resent);
            }
            if let Some(rates) = &mut self.rates {
                rates.acknowledged(progress.now, &taken, true);
            }
            self.book_removal(&taken, progress);
        }
        self.lost_below = self.lost_below.max(self.base);
        self.resend_from = self.resend_from.max(self.base);
        self.resend_to = self.resend_to.max(self.base);
        if !self.again.is_empty() {
            self.forget_again(ack);
        }
    }

    /// Whether there is an entry at `index` that is SACKed.
    fn is_sacked(&self, index: usize) -> bool {
        self.entries.get(index).is_some_and(|sent| sent.sacked)
    }

    #[inline(always)]
    fn book_removal(&mut self, taken: &Sent, progress: &mut Progress) {
        let len = u64::from(taken.len);
        self.outstanding -= len;
        progress.acked += len;
        progress.acked_resent |= taken.ever_resent();
        if taken.sacked {
            self.sacked -= len;
        } else {
            progress.deliver(taken, true);
            if taken.lost {
                self.lost -= len;
            }
            if taken.resent {
                self.resent -= len;
            }
            if taken.ever_resent() {
                progress.covers_resent = true;
            } else {
                progress.first_acked_at.get_or_insert(taken.sent_at);
                progress.last_acked_at = Some(taken.sent_at);
            }
        }
    }

    /// How many segments the highest SACKed one is above `position`.
    fn distance_below_highest(&self, position: u64) -> u64 {
        (self.highest_end - 1).saturating_sub(position)
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
                if self.whole_reports {
                    self.sack_whole((left, right), from, progress);
                } else {
                    self.sack_range(from, right, progress);
                }
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
            self.step();
            if sent.seq >= right {
                break;
            }
            if sent.sacked {
                position += self.run_of_sacked((position - self.base) as usize) as u64;
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
        let mut position = self.position_of(from);
        while let Some(sent) = self.at(position).copied().filter(|sent| sent.end() <= right) {
            self.step();
            if sent.sacked {
                position += self.run_of_sacked((position - self.base) as usize) as u64;
                continue;
            }
            if left <= sent.seq {
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
        let is_hole = self.sacked_segments > 0;
        let sent = &mut self.entries[(position - self.base) as usize];
        let len = u64::from(sent.len);
        progress.deliver(sent, false);
        progress.sacked_segments += 1;
        // A retransmission that no loss was the reason of does not become a plain SACKed segment at once.
        let plain = sent.lost || !sent.resent;
        sent.sacked = true;
        sent.aux = 0;
        if let Some(rates) = &mut self.rates {
            rates.delivered(progress.now, (position - self.base) as usize, sent);
        }
        if sent.lost {
            self.lost -= len;
            self.lost_segments -= 1;
            sent.lost = false;
        }
        if sent.resent {
            self.resent -= len;
            self.resent_segments -= 1;
            sent.resent = false;
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
        self.sacked += len;
        self.sacked_segments += 1;
        let index = (position - self.base) as usize;
        if position < self.lost_below {
            self.sacked_below += 1;
        } else {
            self.sacked_above += len;
            let joins_before = position > self.lost_below && self.is_sacked(index - 1);
            // One sequence more, or one longer, or two that have become one.
            self.runs_above = self.runs_above + 1 - u64::from(joins_before) - u64::from(self.is_sacked(index + 1));
        }
        if plain {
            self.merge_sacked(index);
        }
    }

    /// The segment at `index` is SACKed: it joins the one before it if that is SACKed too, and then the one behind joins
    /// (`tcp_shift_skb_data`).
    fn merge_sacked(&mut self, index: usize) {
        let alike = |board: &Scoreboard, first: usize, second: usize| {
            let (Some(first), Some(second)) = (board.entries.get(first), board.entries.get(second)) else {
                return false;
            };
            first.sacked && second.sacked && first.len == second.len && !second.merged()
        };
        if index > 0 && alike(self, index - 1, index) {
            self.entries[index].set(Sent::MERGED, true);
            self.merged_segments += 1;
            if alike(self, index, index + 1) {
                self.entries[index + 1].set(Sent::MERGED, true);
                self.merged_segments += 1;
            }
        }
    }

    /// The receiver got what lies in `left..right` twice (RFC 2883). Returns how many segments of it were retransmitted and
    /// end above `marker`; those that were SACKed before are reordered.
    pub(crate) fn duplicated(&mut self, left: u64, right: u64, marker: u64, progress: &mut Progress) -> u64 {
        let first = (self.position_of(left) - self.base) as usize;
        let mut count = 0;
        for sent in self.entries.range_mut(first..).take_while(|sent| sent.end() <= right) {
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

    /// Cuts an entry in two at `seq`: a SACK edge inside a segment (the receiver trimmed it to its window).
    fn split(&mut self, position: u64, seq: u64) {
        let index = (position - self.base) as usize;
        let whole = self.entries[index];
        let head = (seq - whole.seq) as u32;
        self.entries[index] = Sent { len: head, marks: whole.marks & !(Sent::FIN | Sent::PUSH), ..whole };
        let tail = Sent { seq, len: whole.len - head, aux: whole.aux.saturating_sub(head), ..whole };
        self.entries.insert(index + 1, tail);
        self.entries[index + 1].set(Sent::MERGED, false);
        if let Some(rates) = &mut self.rates {
            rates.split(index);
        }
        self.lost_segments += u64::from(whole.lost);
        self.resent_segments += u64::from(whole.resent);
        for mark in [
            &mut self.lost_below,
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
        if whole.lost && !whole.resent {
            self.awaits_resending(index + 1);
        }
    }

    /// Cuts the first segment into ones of `most` units: it was sent before the size of segments was agreed on.
    pub(crate) fn split_front(&mut self, most: u32) {
        let Some(front) = self.entries.front().copied() else { return };
        let pieces = u64::from(front.len.div_ceil(most.max(1)));
        for piece in 1..pieces {
            self.split(self.base + piece - 1, front.seq + piece * u64::from(most));
        }
    }

    /// RFC 6675 `NextSeg` rule 1: the first lost segment that is not in flight again.
    #[inline]
    pub(crate) fn next_lost(&mut self) -> Option<Sent> {
        if self.resend_from == self.resend_to && self.lost_again.is_empty() { None } else { self.find_lost() }
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
            let sent = self.entries[(self.resend_from - self.base) as usize];
            if sent.lost && !sent.resent {
                return Some(sent);
            }
            self.resend_from += 1;
        }
        None
    }

    /// RFC 6675 `NextSeg` rule 3: the first segment below the highest SACKed one that is neither SACKed nor resent.
    pub(crate) fn next_unsacked_hole(&mut self) -> Option<Sent> {
        if self.sacked_segments == 0 {
            return None;
        }
        // Below `lost_below` everything is SACKed or lost.
        self.holes_from = self.holes_from.max(self.lost_below);
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

    /// The segment at `seq` is sent again, while `nxt` is the next unit to be sent for the first time.
    pub(crate) fn resend(&mut self, stamp: Stamp, seq: u64, nxt: u64) {
        let index = (self.position_of(seq) - self.base) as usize;
        let sent = &mut self.entries[index];
        debug_assert!(sent.seq == seq);
        sent.sent_again(stamp);
        if !sent.sacked {
            sent.aux = u32::try_from(nxt - seq).unwrap_or(u32::MAX);
        }
        // A probe is repeated until it is acknowledged, even if a strange peer reports it by SACK alone.
        if !sent.resent && !sent.sacked {
            sent.resent = true;
            self.resent += u64::from(sent.len);
            self.resent_segments += 1;
        }
        self.again.push_back(Again { seq, end: sent.end(), stamp, nxt });
        let pipe = self.pipe();
        if let Some(rates) = &mut self.rates {
            rates.resent(index, pipe);
        }
    }

    /// The last segment, unless the receiver has it.
    pub(crate) fn last_unreported(&self) -> Option<Sent> {
        self.entries.back().filter(|last| !last.sacked).copied()
    }

    /// The segment at `seq` goes out once more as a probe, beside the original: nothing is taken for lost.
    pub(crate) fn resend_as_probe(&mut self, stamp: Stamp, seq: u64) {
        let pipe = self.pipe();
        let index = (self.position_of(seq) - self.base) as usize;
        let Some(sent) = self.entries.get_mut(index) else { return };
        sent.sent_again(stamp);
        self.again.push_back(Again { seq, end: sent.end(), stamp, nxt: sent.end() });
        let in_flight = pipe + u64::from(sent.len);
        if let Some(rates) = &mut self.rates {
            rates.resent(index, in_flight);
        }
    }

    /// Cuts the segment at `seq` after `payload` bytes, since more do not fit into one (`tcp_fragment`); gives the first part.
    #[cold]
    pub(crate) fn cut(&mut self, sent: Sent, payload: u32) -> Sent {
        let position = self.position_of(sent.seq);
        self.split(position, sent.seq + u64::from(payload));
        self.at(position).copied().unwrap_or(sent)
    }

    /// Recomputes every count from the entries: for tests.
    #[cfg(test)]
    pub(crate) fn check(&self) {
        let sum = |keep: fn(&Sent) -> bool| -> u64 {
            self.entries.iter().filter(|sent| keep(sent)).map(|sent| u64::from(sent.len)).sum()
        };
        assert_eq!(self.outstanding, sum(|_| true));
        assert!(self.sacked_segments == 0 || self.highest_end == self.position_of(self.highest_sacked));
        assert_eq!(self.sacked, sum(|sent| sent.sacked));
        assert_eq!(self.sacked_segments, self.entries.iter().filter(|sent| sent.sacked).count() as u64);
        assert_eq!(self.lost, sum(|sent| sent.lost));
        assert_eq!(self.resent, sum(|sent| sent.resent));
        let count = |keep: fn(&Sent) -> bool| self.entries.iter().filter(|sent| keep(sent)).count() as u64;
        assert_eq!(self.lost_segments, count(|sent| sent.lost));
        assert_eq!(self.resent_segments, count(|sent| sent.resent));
        assert_eq!(self.merged_segments, count(|sent| sent.merged()));
        for (i, _) in self.entries.iter().enumerate().filter(|(_, sent)| sent.lost && !sent.resent) {
            let position = self.base + i as u64;
            let listed = || self.lost_again.iter().any(|&Reverse(seq)| self.position_of(seq) == position);
            let within = self.resend_from <= position && position < self.resend_to;
            assert!(within || listed(), "nobody resends it");
        }
        let (below, above) =
            (0..self.entries.len()).partition::<Vec<_>, _>(|&i| self.base + (i as u64) < self.lost_below);
        let sacked = |indices: &[usize]| indices.iter().filter(|&&i| self.entries[i].sacked).count() as u64;
        assert_eq!(self.sacked_below, sacked(&below));
        let units = above.iter().filter(|&&i| self.entries[i].sacked).map(|&i| u64::from(self.entries[i].len));
        assert_eq!(self.sacked_above, units.sum());
        let ends: Vec<_> = above.iter().copied().filter(|&i| self.is_sacked(i) && !self.is_sacked(i + 1)).collect();
        assert_eq!(self.runs_above, ends.len() as u64);
        assert!(self.entries.iter().all(|sent| !(sent.sacked && (sent.lost || sent.resent))));
        assert!(self.entries.iter().zip(self.entries.iter().skip(1)).all(|(a, b)| a.end() == b.seq));
    }
}

#[cfg(test)]
mod tests;
