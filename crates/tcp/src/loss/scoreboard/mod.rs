//! The segments sent and not yet acknowledged: one entry per segment, with its state.
//!
//! Entries are in sequence order. Cumulative ACKs remove entries from the front; a SACK block finds
//! its first entry by binary search. Marks only move forward, so that each segment is examined a
//! bounded number of times, however large the window: everything below `Judged::end` has been
//! judged by the loss rule, with the SACKed segments above it counted; everything below
//! `resend_from` has been resent or need not be, unless `lost_again` lists it. Entries and the
//! counts over them are in `entries.rs`, retransmissions in `again.rs`, in the order of sending.
//! Positions are counted from the start of the connection, so that removing entries from the front
//! shifts none of them.

mod again;
#[cfg(test)]
mod check;
mod declarations;
mod entries;
mod losses;
mod progress;
mod rates;
mod resending;
mod sacks;
mod sampling;
mod sent;
mod units;

use std::cmp::Reverse;
use std::collections::{BinaryHeap, VecDeque};

use ackclock_units::{prefetch, prefetch_part};
use declarations::Declarations;
use entries::Entries;
use rates::Rates;
use sent::Again;

pub use declarations::LossDeclaration;
pub(in crate::loss) use progress::raise_key;
pub(crate) use progress::{Progress, Whole};
pub(crate) use sent::Sent;
pub use sent::Stamp;

/// Segments that are fetched into the cache before an ACK arrives.
const FETCHED: usize = 4;

/// Segments in flight and the counts over them.
#[derive(Debug, Default)]
pub struct Scoreboard {
    entries: Entries,
    /// The number of times that a segment or its retransmission was declared lost, and their units.
    losses: u64,
    losses_units: u64,
    /// One past the highest SACKed unit, and one past the position of its segment; meaningful while
    /// anything is SACKed.
    highest_sacked: u64,
    highest_end: u64,
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
    whole_reports: bool,
    /// The segments declared lost, for a driver that observes them.
    declarations: Declarations,
    /// Delivery rates, for a controller that asks for them.
    rates: Option<Box<Rates>>,
    /// Entries examined.
    #[cfg(test)]
    steps: u32,
}

impl Scoreboard {
    /// An empty one; with `whole_reports` a segment counts as reported when SACK blocks cover all
    /// of it, not in parts.
    pub(crate) fn new(whole_reports: bool) -> Scoreboard {
        Scoreboard { whole_reports, ..Scoreboard::default() }
    }

    /// An entry is examined: tests count these.
    #[inline(always)]
    fn step(&mut self) {
        #[cfg(test)]
        {
            self.steps += 1;
        }
    }

    /// Starts to fetch the first segments and the last one into the cache.
    #[inline]
    pub(crate) fn prefetch_behind(&self) {
        if let Some(first) = self.entries.front() {
            prefetch_part(first, 0..FETCHED * size_of::<Sent>());
        }
        self.entries.back().map(prefetch);
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.entries.is_empty()
    }

    #[inline]
    pub(crate) fn segments(&self) -> u64 {
        self.entries.len() as u64
    }

    #[inline]
    pub(crate) fn front(&self) -> Option<&Sent> {
        self.entries.front()
    }

    /// Units in flight or lost, not acknowledged.
    #[inline]
    pub(crate) fn outstanding(&self) -> u64 {
        self.entries.counts().outstanding
    }

    /// Units SACKed.
    pub(crate) fn sacked(&self) -> u64 {
        self.entries.counts().sacked
    }

    #[inline]
    pub(crate) fn sacked_segments(&self) -> u64 {
        self.entries.counts().sacked_segments
    }

    /// Segments that share the socket buffer of the one before them.
    pub(crate) fn merged_segments(&self) -> u64 {
        u64::from(self.entries.counts().merged_segments)
    }

    /// Units declared lost and not SACKed since.
    #[inline]
    pub(crate) fn lost(&self) -> u64 {
        self.entries.counts().lost
    }

    /// Units of which a retransmission is in flight.
    pub(crate) fn resent(&self) -> u64 {
        self.entries.counts().resent
    }

    #[inline]
    pub(crate) fn lost_segments(&self) -> u64 {
        self.entries.counts().lost_segments
    }

    /// Segments of which a retransmission is in flight.
    #[inline]
    pub(crate) fn resent_segments(&self) -> u64 {
        self.entries.counts().resent_segments
    }

    /// The number of times that a segment or its retransmission was declared lost until now.
    #[inline]
    pub(crate) fn losses(&self) -> u64 {
        self.losses
    }

    /// Units declared lost until now, counted as often as they were.
    #[inline]
    pub(crate) fn units_declared_lost(&self) -> u64 {
        self.losses_units
    }

    /// One past the highest unit SACKed, if anything is.
    pub(crate) fn highest_sacked(&self) -> Option<u64> {
        (self.sacked_segments() > 0).then_some(self.highest_sacked)
    }

    /// One past the highest unit SACKed, and one past the position of its segment, if anything is.
    #[inline]
    pub(crate) fn reported(&self) -> Option<(u64, u64)> {
        (self.sacked_segments() > 0).then_some((self.highest_sacked, self.highest_end))
    }

    /// Segments from the one that holds `low` to the one that ends at `high`.
    pub(crate) fn segments_between(&self, low: u64, high: u64) -> u64 {
        self.position_of(high).saturating_sub(self.position_of(low))
    }

    /// Segments from the first to the highest SACKed one; 0 if nothing is SACKed. Linux's
    /// `fackets_out`.
    pub(crate) fn segments_to_highest(&self) -> u64 {
        match self.sacked_segments() {
            0 => 0,
            _ => self.highest_end - self.entries.base(),
        }
    }

    /// `pipe` of RFC 6675 section 4: what is believed to be in the network.
    #[inline]
    pub(crate) fn pipe(&self) -> u64 {
        let counts = self.entries.counts();
        counts.outstanding - counts.sacked - counts.lost + counts.resent
    }

    /// A segment is sent for the first time.
    #[inline]
    pub(crate) fn push(&mut self, stamp: Stamp, seq: u64, len: u32, fin: bool) {
        self.entries.push(Sent {
            seq,
            sent_at: stamp.at,
            len,
            order: stamp.order,
            marks: if fin { Sent::FIN } else { 0 },
            ..Sent::NONE
        });
        if self.rates.is_some() {
            self.rate_sent(stamp.at);
        }
    }

    /// The segment that was sent last has PSH set.
    #[inline(always)]
    pub(crate) fn set_push(&mut self, push: bool) {
        self.entries.change_last(|last| last.set(Sent::PUSH, push));
    }

    /// The segment that was sent last, and was not SACKed, is to be sent again with `len` units,
    /// more than before.
    pub(crate) fn grow_last(&mut self, len: u32) {
        self.entries.change_last(|last| last.len = len);
    }

    /// Everything below `ack` arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, ack: u64, progress: &mut Progress) {
        while let Some(&first) = self.entries.front() {
            if first.seq >= ack {
                break;
            }
            if first.end() > ack {
                self.acknowledge_part(ack, progress);
                break;
            }
            self.acknowledge_first(first, progress);
        }
        self.pass_front();
        if !self.again.is_empty() {
            self.forget_again(ack);
        }
    }

    /// Returns `true` if nothing in flight is reported, lost or sent again.
    #[inline]
    pub(crate) fn is_orderly(&self) -> bool {
        let counts = self.entries.counts();
        counts.sacked_segments + counts.lost_segments + counts.resent_segments == 0 && self.again.is_empty()
    }

    /// Everything below `ack` arrived, if that is a few whole segments that were sent once, and
    /// nothing in flight is reported, lost or sent again. Otherwise `None`, and nothing is done.
    #[inline(always)]
    pub(crate) fn acknowledge_whole(&mut self, ack: u64) -> Option<Whole> {
        if !self.is_orderly() {
            return None;
        }
        let (first, last, segments) = self.entries.pop_plain(ack)?;
        self.pass_front();
        Some(Whole { segments, units: ack - first.seq, first_at: first.sent_at, last: last.stamp(), end: ack })
    }

    /// Skips acknowledged data, which is not to be resent.
    #[inline(always)]
    fn pass_front(&mut self) {
        let base = self.entries.base();
        self.resend_from = self.resend_from.max(base);
        self.resend_to = self.resend_to.max(base);
    }

    /// The first segment, which `taken` is a copy of, arrived.
    #[inline(always)]
    fn acknowledge_first(&mut self, taken: Sent, progress: &mut Progress) {
        let position = self.entries.base();
        self.entries.pop(&taken);
        progress.acked_segments += 1;
        if !taken.sacked && !taken.ever_resent() {
            if taken.seq < progress.low_acked.0 {
                progress.low_acked = (taken.seq, position);
            }
            // Delivered after a later one: something above it was SACKed before.
            if let Some((_, end)) = progress.reported.filter(|&(highest, _)| taken.seq < highest) {
                progress.reordering = progress.reordering.max((end - 1).saturating_sub(position));
            }
        }
        if self.rates.is_some() {
            self.rate_acknowledged(&taken, true, progress);
        }
        Scoreboard::book_removal(&taken, progress);
    }

    /// Part of the first segment arrived: the rest stays, as a shorter segment.
    #[cold]
    fn acknowledge_part(&mut self, ack: u64, progress: &mut Progress) {
        let taken = self.entries.change(0, |first| {
            let part = (ack - first.seq) as u32;
            let taken = Sent { len: part, marks: first.marks & !Sent::FIN, ..*first };
            (first.seq, first.len) = (ack, first.len - part);
            taken
        });
        let Some(taken) = taken else { return };
        if self.rates.is_some() {
            self.rate_acknowledged(&taken, false, progress);
        }
        Scoreboard::book_removal(&taken, progress);
    }

    #[inline(always)]
    fn book_removal(taken: &Sent, progress: &mut Progress) {
        progress.acked += u64::from(taken.len);
        progress.acked_resent |= taken.ever_resent();
        if !taken.sacked {
            progress.deliver(taken, true);
            if taken.ever_resent() {
                progress.covers_resent = true;
            } else {
                progress.first_acked_at.get_or_insert(taken.sent_at);
                progress.last_acked_at = Some(taken.sent_at);
            }
        }
    }

    /// Records from now on what is declared lost.
    pub fn observe_losses(&mut self) {
        self.declarations.observed = true;
    }

    /// Returns `true` if anything was declared lost since the last call.
    #[inline]
    pub fn has_loss_declarations(&self) -> bool {
        !self.declarations.waiting.is_empty()
    }

    /// The segments declared lost since the last call; none unless declarations are observed.
    #[inline]
    pub fn loss_declarations(&mut self) -> impl Iterator<Item = LossDeclaration> {
        self.declarations.waiting.drain(..)
    }

    /// Distance in segments of the highest SACKed segment from `position`.
    fn distance_below_highest(&self, position: u64) -> u64 {
        (self.highest_end - 1).saturating_sub(position)
    }

    /// Position of the first entry that ends after `seq`.
    fn position_of(&self, seq: u64) -> u64 {
        self.entries.base() + self.entries.partition_point(|sent| sent.end() <= seq) as u64
    }

    fn at(&self, position: u64) -> Option<&Sent> {
        self.entries.get(position.checked_sub(self.entries.base())? as usize)
    }
}

#[cfg(test)]
mod tests;
