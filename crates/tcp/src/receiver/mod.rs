//! The receiving half: what has arrived, what is reported of it and when, and which window is
//! offered.
//!
//! [`Receiver`] owns the RCV variables of RFC 9293 and decides alone when an ACK is due. The
//! endpoint hands it data that is acceptable, tells it what happens on the sending side, and asks
//! what to put into an ACK.

use ackclock_packet::Segment;
use ackclock_packet::{Payload, SackBlocks};
use ackclock_units::Time;

use crate::seq::{lift, lower};
use crate::{AckRule, DelayedAck, Ticks, TransferRules, WindowRule};

mod acks;
mod reassembly;
mod sack;
mod tuning;
mod window;

pub(crate) use acks::linux::Context;

use acks::compression::Compression;
use acks::linux::LinuxAcks;
use reassembly::Reassembly;
use sack::Sack;
use tuning::Tuned;

/// The place of the peer's FIN before one has come.
const NO_FIN: u64 = u64::MAX;

/// The place of the first wrong byte as long as all were right.
const NO_ERROR: u64 = u64::MAX;

/// The data that a segment brought, sorted into new and known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// Data in order: `rcv_nxt` moved.
    InOrder,
    /// Data beyond a gap.
    OutOfOrder,
    /// Nothing new.
    Duplicate,
}

/// Reassembly, SACK generation and the acknowledgment policy (RFC 9293 section 3.10.7.4, RFC 2018,
/// RFC 2883, RFC 5681 section 4.2). Sequence numbers are distances from the peer's initial one.
#[derive(Debug)]
#[repr(C)]
pub struct Receiver {
    // Every segment.
    /// Next unit expected.
    next: u64,
    /// Units that the application has read (of those below `next`).
    read: u64,
    /// Right edge of the window that was announced: it never moves left.
    announced: u64,
    /// `next` at the last ACK that was sent (Last.ACK.sent of RFC 7323).
    last_ack_sent: u64,
    /// When the delayed acknowledgment is due.
    ack_at: Time,
    /// The peer's FIN, [`NO_FIN`] before one has come.
    fin: u64,
    /// The part of it for data in order.
    space: u64,
    buffer: u64,
    /// The peer's initial sequence number.
    irs: u32,
    /// Largest payload that arrived: the peer's segment size.
    peer_segment: u32,
    /// Segments that are acknowledged at once, by `policy`.
    quick_left: u32,
    /// The MSS agreed on, no options subtracted.
    mss: u32,
    /// An ACK is due.
    ack_now: bool,
    /// The endpoint says what a segment has beside its data.
    described: bool,
    /// By `policy`: a segment with PSH or a small one has come since the last ACK.
    pushed: bool,
    /// Window scale in force.
    shift: u8,
    /// Segments next to each other share memory.
    coalesces: bool,
    ack_rule: AckRule,
    /// Segments that were not read when the ACK that is due was decided on, before the reader's
    /// turn.
    unread_segments: u16,
    ticks: Ticks,
    /// The window as Linux would have grown it; see [`DelayedAck::growth_from`].
    grown: u64,
    /// The window that was offered last.
    last_window: u64,
    window_rule: WindowRule,
    /// Data beyond a gap.
    reassembly: Reassembly,
    sack: Sack,

    // Every segment by the rules of Linux.
    /// Linux `window_clamp`, 0 before the handshake is over.
    clamp: u64,
    linux_acks: LinuxAcks,
    /// The endpoint's knowledge of the segment in hand.
    context: Context,
    compression: Compression,

    // Counts that are seldom asked for.
    /// Data segments that brought nothing new.
    duplicate_segments: u32,
    /// The window that was offered first.
    first_window: u32,
    /// The first stream offset whose bytes were not those of the stream, or [`NO_ERROR`].
    integrity_error: u64,
    /// The state of a buffer that is tuned.
    tuned: Option<Box<Tuned>>,
}

impl Receiver {
    pub(crate) fn new(buffer: u64, policy: DelayedAck) -> Receiver {
        Receiver {
            irs: 0,
            next: 0,
            read: 0,
            fin: NO_FIN,
            reassembly: Reassembly::default(),
            sack: Sack::default(),
            duplicate_segments: 0,
            integrity_error: NO_ERROR,
            ack_now: false,
            ack_at: Time::NEVER,
            last_ack_sent: 0,
            peer_segment: 1,
            ack_rule: AckRule::default(),
            quick_left: policy.quick,
            linux_acks: LinuxAcks::new(policy),
            compression: Compression::default(),
            context: Context::default(),
            window_rule: WindowRule::default(),
            buffer,
            space: buffer,
            announced: 0,
            grown: if policy.growth_from > 0 { policy.growth_from } else { buffer },
            described: policy.hurry.looks_closer(),
            ticks: Ticks::default(),
            pushed: false,
            shift: 0,
            coalesces: false,
            unread_segments: 0,
            mss: 1460,
            clamp: 0,
            first_window: u32::try_from(buffer).unwrap_or(u32::MAX),
            last_window: 0,
            tuned: None,
        }
    }

    /// Applies the rules of a stack.
    pub(crate) fn with_rules(mut self, rules: &TransferRules) -> Receiver {
        self.ack_rule = rules.acks;
        if self.ack_rule == AckRule::Linux {
            // `linux_acks` counts them.
            self.quick_left = 0;
        }
        self.window_rule = rules.window;
        self.ticks = rules.ticks;
        self.coalesces = rules.coalesces;
        self.sack = Sack::new(rules.reports, rules.exact_duplicates);
        self.tuned = rules.receive_tuning.map(|rules| Box::new(Tuned::new(rules)));
        self.described =
            self.ack_rule == AckRule::Linux || self.linux_acks.policy.hurry.looks_closer() || self.tuned.is_some();
        self.take_buffer(self.buffer);
        self
    }

    /// The peer's SYN arrived.
    pub(crate) fn synchronize(&mut self, irs: u32) {
        self.irs = irs;
        self.next = 1;
        self.read = 1;
        self.announced = 1;
        self.last_ack_sent = 1;
    }

    // Sequence numbers.

    /// RCV.NXT.
    #[inline]
    pub(crate) fn next(&self) -> u64 {
        self.next
    }

    /// RCV.NXT as the acknowledgment number of an ACK.
    #[inline]
    pub(crate) fn ack_number(&self) -> u32 {
        lower(self.next, self.irs)
    }

    /// Returns `true` if a segment that begins at `left` is the next one.
    #[inline]
    pub(crate) fn is_next(&self, left: u64) -> bool {
        left == self.next
    }

    /// Where a sequence number of the peer stands, nearest to RCV.NXT; `None` before its SYN.
    #[inline]
    pub(crate) fn lift(&self, number: u32) -> Option<u64> {
        lift(number, self.irs, self.next)
    }

    /// The place in the stream of the byte with this sequence number, nearest to what is
    /// expected; `None` before the peer's SYN and for numbers before its first byte.
    pub fn stream_offset(&self, seq: u32) -> Option<u64> {
        self.lift(seq)?.checked_sub(1)
    }

    /// The right edge of what is let in.
    #[inline]
    pub(crate) fn edge(&self) -> u64 {
        self.next + self.acceptable()
    }

    /// RCV.NXT at the last ACK that was sent (Last.ACK.sent of RFC 7323).
    #[inline]
    pub(crate) fn last_ack_sent(&self) -> u64 {
        self.last_ack_sent
    }

    /// The peer's initial sequence number.
    #[cfg(test)]
    pub(crate) fn irs(&self) -> u32 {
        self.irs
    }

    // The stream.

    /// RCV.NXT, less what has not been read.
    #[cfg(test)]
    pub(crate) fn units_read(&self) -> u64 {
        self.read
    }

    /// The end of the data that is in order.
    #[inline]
    fn end_of_data(&self) -> u64 {
        self.next.min(self.fin)
    }

    /// Bytes that arrived in order.
    #[inline]
    pub fn delivered(&self) -> u64 {
        self.end_of_data().saturating_sub(1)
    }

    /// Bytes that arrived, what lies beyond gaps included.
    pub fn received(&self) -> u64 {
        self.delivered() + self.reassembly.held()
    }

    /// Bytes in order that the application has not read.
    #[inline]
    pub fn unread(&self) -> u64 {
        self.end_of_data().saturating_sub(self.read)
    }

    /// Returns `true` if everything in order has been read, a FIN included, which nobody reads.
    pub(crate) fn is_drained(&self) -> bool {
        self.read == self.next
    }

    /// Reads up to `most` bytes; a window that opens far enough is announced at once.
    #[inline(always)]
    pub(crate) fn read(&mut self, most: u64) -> u64 {
        let bytes = most.min(self.unread());
        self.read += bytes;
        if bytes > 0 && !self.ack_now {
            self.acknowledge_reading();
        }
        bytes
    }

    /// Reads everything as soon as it is the reader's turn, which comes after all that arrives at
    /// `now`: so does an ACK for which reading is the reason. Linux wakes the reader when a segment
    /// arrives, but it runs once the device's packets are all taken in.
    #[inline(always)]
    pub(crate) fn read_arrived(&mut self, now: Time) {
        let bytes = self.unread();
        self.read += bytes;
        if bytes > 0 && !self.ack_now {
            self.await_reader(now);
        }
    }

    #[inline(never)]
    fn await_reader(&mut self, now: Time) {
        self.acknowledge_reading();
        if std::mem::take(&mut self.ack_now) {
            self.ack_at = now;
        }
    }

    /// Returns `true` if reading is a reason for an ACK.
    fn is_acknowledged_by_reader(&self) -> bool {
        self.opens_window() && !self.is_finished() || self.described && self.owes_reader()
    }

    /// Something was read, and no ACK is due.
    #[inline]
    fn acknowledge_reading(&mut self) {
        self.ack_now = self.is_acknowledged_by_reader();
    }

    /// A segment with FIN arrived; the first one says where the stream ends.
    pub(crate) fn note_fin(&mut self, fin: u64) {
        if !self.has_fin() {
            self.fin = fin;
        }
    }

    /// Returns `true` if a FIN has come, perhaps beyond a gap.
    pub(crate) fn has_fin(&self) -> bool {
        self.fin != NO_FIN
    }

    /// Returns `true` if the peer's FIN and everything before it has arrived.
    #[inline]
    pub fn is_finished(&self) -> bool {
        self.next > self.fin
    }

    /// One past the last unit of the peer, as far as it is known.
    #[inline]
    pub(crate) fn end(&self) -> u64 {
        self.fin.saturating_add(1)
    }

    /// Returns `true` if every byte of `offset..end` of the stream has arrived, in order
    /// or beyond a gap; a FIN is the byte after the last one.
    #[inline]
    pub fn holds(&self, offset: u64, end: u64) -> bool {
        end < self.next || self.reassembly.holds((offset + 1).max(self.next), end + 1)
    }

    /// Returns `true` if data is held beyond a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        !self.reassembly.is_empty()
    }

    /// Number of segments of the peer's size that wait behind a gap.
    pub(crate) fn segments_out_of_order(&self) -> u64 {
        let segment = u64::from(self.peer_segment.max(1));
        self.reassembly.ranges().map(|(left, right)| (right - left).div_ceil(segment)).sum()
    }

    /// Data segments that brought nothing new.
    pub fn duplicate_segments(&self) -> u64 {
        self.duplicate_segments.into()
    }

    /// Compares the payload of a segment that begins at `left` with its place in the stream.
    #[inline]
    pub(crate) fn check(&mut self, left: u64, payload: Payload) {
        if payload.len > 0 && payload.offset != left - 1 && self.integrity_error == NO_ERROR {
            self.integrity_error = left - 1;
        }
    }

    /// The first stream offset whose bytes were not those of the stream.
    pub fn integrity_error(&self) -> Option<u64> {
        Some(self.integrity_error).filter(|&place| place != NO_ERROR)
    }

    // Arrivals.

    /// Takes in units `[left, right)`, cut to the window; the last one may be a FIN.
    #[inline(always)]
    pub(crate) fn receive(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        let next = self.next;
        self.sack.before((left, right), next);
        let arrived = self.assemble(now, left, right, payload);
        self.sack.after((left, right), payload, next, self.next);
        arrived
    }

    /// Returns `true` if a segment with `payload` bytes and this sequence number is next in order
    /// and within the window that was announced, with no gap and no FIN so far.
    #[inline(always)]
    pub(crate) fn expects(&self, seq: u32, payload: u32) -> bool {
        seq == self.ack_number()
            && self.next + u64::from(payload) <= self.announced
            && self.reassembly.is_empty()
            && self.fin == NO_FIN
    }

    /// The place of a segment with `payload` bytes and this sequence number, if all of it is new or
    /// lies beyond a gap, and within the window that was announced, with no FIN so far.
    #[inline(always)]
    pub(crate) fn range_ahead(&self, seq: u32, payload: u32) -> Option<(u64, u64)> {
        let left = self.lift(seq).filter(|&left| left >= self.next && self.fin == NO_FIN)?;
        let right = left + u64::from(payload);
        (right <= self.announced).then_some((left, right))
    }

    /// Takes in the data that is next, up to `right`, while there is no gap.
    #[inline(always)]
    pub(crate) fn receive_next(&mut self, now: Time, right: u64, payload: u32) {
        let next = self.next;
        self.sack.before((next, right), next);
        self.peer_segment = self.peer_segment.max(payload);
        self.next = right;
        self.schedule_ack(now, payload);
        self.sack.after_next((next, right), payload);
    }

    #[inline(always)]
    fn assemble(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        self.peer_segment = self.peer_segment.max(payload);
        if left == self.next && right > left && self.reassembly.is_empty() {
            // The common case.
            self.next = right;
            self.schedule_ack(now, payload);
            return Arrived::InOrder;
        }
        self.assemble_others(now, left, right, payload)
    }

    #[inline(never)]
    fn assemble_others(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        let in_order = left <= self.next && right > self.next && self.reassembly.is_empty();
        if right <= self.next {
            self.reassembly.repeated((left, right));
            return self.repeated(right);
        }
        if left < self.next {
            // The front is known; RFC 2883 reports it.
            self.out_of_order();
            self.reassembly.repeated((left, self.next));
        }
        let left = left.max(self.next);
        if left > self.next {
            self.acknowledge_gap(now, payload);
            return self.insert(left, right);
        }
        self.next = self.reassembly.advance(right);
        self.count_progress();
        if self.ack_rule == AckRule::Linux {
            self.ack_now |= !in_order;
            self.schedule_ack(now, payload);
            return Arrived::InOrder;
        }
        if in_order {
            self.schedule_ack(now, payload);
        } else {
            if self.described {
                self.look_closer(now, payload);
            }
            self.acknowledged_out_of_order();
            self.tune_filled_gap(now, payload);
        }
        // The data fills all or part of a gap (RFC 5681 section 4.2), or repeats something: that is
        // reported of the latest segment only (RFC 2883 section 4).
        self.ack_now = true;
        Arrived::InOrder
    }

    /// Adds a range beyond a gap.
    fn insert(&mut self, left: u64, right: u64) -> Arrived {
        if self.reassembly.insert(left, right, self.buffer_memory()) {
            if self.tuned.is_some() {
                self.tune_beyond_gap();
            }
            return Arrived::OutOfOrder;
        }
        self.duplicate_segments += 1;
        // With quick ACKs, what is known beyond a gap is no reason for them.
        if !self.has_quick_mode() {
            self.unacceptable();
        }
        Arrived::Duplicate
    }

    /// Takes in `len` bytes that came with a SYN, which the answer acknowledges: they are no reason
    /// for an ACK, nor do they widen the window (`tcp_fastopen_add_skb`).
    pub(crate) fn take_with_syn(&mut self, len: u64) {
        self.next += len;
    }

    /// The peer's FIN has been taken in.
    pub(crate) fn finished(&mut self) {
        self.sack.finish();
    }

    // Contents of ACKs.

    /// The SACK option for the next ACK: at most `room` blocks, a duplicate first if `dsack`, then
    /// the ranges newest first.
    pub(crate) fn sack_blocks(&self, room: usize, dsack: bool) -> SackBlocks {
        self.sack.blocks(&self.reassembly, (self.irs, self.next), room, dsack)
    }

    /// The SACK option for the next ACK where SACK is agreed on; `None` if there is nothing to
    /// report.
    #[inline]
    pub(crate) fn sack_option(&self, agreed: bool, room: usize, dsack: bool) -> Option<SackBlocks> {
        (agreed && self.has_report()).then(|| self.sack_blocks(room, dsack))
    }

    /// Returns `true` if a duplicate waits to be reported.
    #[inline]
    pub(crate) fn has_duplicate(&self) -> bool {
        self.sack.has_duplicate(&self.reassembly, self.next)
    }

    /// Returns `true` if an ACK has something to report that should not ride on data.
    #[inline]
    pub(crate) fn has_report(&self) -> bool {
        self.has_gap() || self.has_duplicate()
    }

    /// Where the duplicate begins that a segment reports first.
    pub(crate) fn reported_duplicate(&self, out: &Segment) -> Option<u64> {
        let &(left, right) = out.sack.as_slice().first()?;
        let next = self.next();
        let lifted = |edge| self.lift(edge);
        let within = |left, right| {
            out.sack.as_slice().get(1).is_some_and(|&(l, r)| lifted(l) <= lifted(left) && lifted(right) <= lifted(r))
        };
        lifted(left).filter(|_| lifted(right) <= Some(next) || within(left, right))
    }
}

#[cfg(test)]
mod tests;
