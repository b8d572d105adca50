//! The receiving half: what has arrived, what to report of it, and when.

use std::collections::VecDeque;

use ackclock_packet::SackBlocks;
use ackclock_units::{Span, Time};

use crate::seq::lower;
use crate::{AckRule, DelayedAck, ReportRule, TransferRules, WindowRule};

mod acks;
mod compression;
mod reports;
mod sack_list;
mod window;

pub(crate) use acks::Context;

use acks::Acks;
use compression::Compression;
use reports::Reports;
use sack_list::SackList;

/// The least payload that lets Linux's window grow (`tcp_event_data_recv`).
const LEAST_GROWING: u32 = 128;

/// The data that a segment brought, sorted into new and known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Arrived {
    /// In order: `rcv_nxt` moved.
    InOrder,
    /// Beyond a gap.
    OutOfOrder,
    /// Nothing new.
    Duplicate,
}

/// Reassembly, SACK generation and the acknowledgment policy (RFC 9293 section 3.10.7.4, RFC 2018, RFC 2883, RFC 5681
/// section 4.2).
#[derive(Debug)]
pub(crate) struct Receiver {
    /// The peer's initial sequence number.
    pub(crate) irs: u32,
    /// Next unit expected.
    pub(crate) next: u64,
    /// Units that the application has read (of those below `next`).
    pub(crate) read: u64,
    /// Ranges beyond a gap, in order, disjoint and not touching.
    ranges: VecDeque<(u64, u64)>,
    /// Left edges of the ranges most recently added to, newest first: the order of SACK blocks (RFC 2018 section 4).
    recent: [u64; 4],
    recent_len: usize,
    /// The duplicate to report first in the next ACK (RFC 2883).
    duplicate: Option<(u64, u64)>,
    buffer: u64,
    /// What of it is for data in order.
    space: u64,
    /// Right edge of the window that was announced: it never moves left.
    announced: u64,
    /// `next` at the last ACK that was sent (Last.ACK.sent of RFC 7323).
    pub(crate) last_ack_sent: u64,
    /// Largest payload that arrived: the peer's segment size.
    peer_segment: u32,
    policy: DelayedAck,
    quick_left: u32,
    /// The window as Linux would have grown it; see [`DelayedAck::growth_from`].
    grown: u64,
    pub(crate) ack_now: bool,
    /// When the delayed acknowledgment is due.
    pub(crate) ack_at: Time,
    /// Data segments that brought nothing new.
    pub(crate) duplicate_segments: u64,
    rules: Rules,
    /// What the endpoint knows of the segment in hand.
    pub(crate) context: Context,
    acks: Acks,
    reports: Reports,
    sack_list: SackList,
    compression: Compression,
    /// The unit of the peer's FIN, once it has come in.
    fin: u64,
    /// Window scale in force.
    shift: u8,
    /// The MSS agreed on, no options subtracted.
    mss: u32,
    /// Linux `window_clamp`, 0 before the handshake is over.
    clamp: u64,
    /// The window that was offered first.
    first_window: u64,
    /// The window that was offered last.
    last_window: u64,
}

/// The choices of [`crate::TransferRules`] that are the receiver's.
#[derive(Clone, Copy, Debug, Default)]
struct Rules {
    window: WindowRule,
    acks: AckRule,
    reports: ReportRule,
}

impl Receiver {
    pub(crate) fn new(buffer: u64, policy: DelayedAck) -> Receiver {
        Receiver {
            irs: 0,
            next: 0,
            read: 0,
            ranges: VecDeque::new(),
            recent: [0; 4],
            recent_len: 0,
            duplicate: None,
            buffer,
            space: buffer,
            announced: 0,
            last_ack_sent: 0,
            peer_segment: 1,
            policy,
            quick_left: policy.quick,
            grown: if policy.growth_from > 0 { policy.growth_from } else { buffer },
            ack_now: false,
            ack_at: Time::NEVER,
            duplicate_segments: 0,
            rules: Rules::default(),
            context: Context::default(),
            acks: Acks::new(policy.quick),
            reports: Reports::default(),
            sack_list: SackList::default(),
            compression: Compression::default(),
            fin: u64::MAX,
            shift: 0,
            mss: 1460,
            clamp: 0,
            first_window: buffer,
            last_window: 0,
        }
    }

    /// By the rules of a stack.
    pub(crate) fn with_rules(mut self, rules: &TransferRules) -> Receiver {
        self.rules = Rules { window: rules.window, acks: rules.acks, reports: rules.reports };
        self.sack_list.exact = rules.exact_duplicates;
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

    /// An ACK with a window of `window` bytes leaves.
    #[inline]
    pub(crate) fn acknowledged(&mut self, window: u64) {
        self.announced = self.announced.max(self.next + window);
        self.last_window = window;
        self.last_ack_sent = self.next;
        self.duplicate = None;
        self.reports.sent(self.next);
        self.sack_list.sent();
        self.compression.sent();
        if self.rules.acks == AckRule::Linux {
            self.acks.acknowledged();
        }
        if matches!(self.rules.window, WindowRule::Linux { .. }) && self.is_half_full() {
            self.acks.quick = 0;
        }
        self.ack_now = false;
        self.ack_at = Time::NEVER;
    }

    /// How many segments of the peer's size wait behind a gap.
    pub(crate) fn segments_out_of_order(&self) -> u64 {
        let segment = u64::from(self.peer_segment.max(1));
        self.ranges.iter().map(|(left, right)| (right - left).div_ceil(segment)).sum()
    }

    /// The buffer, bytes.
    pub(crate) fn buffer(&self) -> u64 {
        self.buffer
    }

    pub(crate) fn set_buffer(&mut self, bytes: u64) {
        if self.next == 0 {
            self.rules.window = self.rules.window.with_fixed_buffer();
        }
        self.take_buffer(bytes);
        if self.clamp > 0 {
            // tcp_set_rcvlowat and SO_RCVBUF leave the clamp of an open connection as it is.
            self.grown = self.grown.min(bytes);
        }
    }

    /// TCP_QUICKACK.
    pub(crate) fn set_quick_ack(&mut self, on: bool) {
        self.acks.interactive = !on;
        self.ack_now |= on && self.rules.acks == AckRule::Linux && self.acks.owed;
    }

    /// Takes in `len` bytes that came with a SYN, which the answer acknowledges: they are no reason for an ACK, nor do they widen
    /// the window (`tcp_fastopen_add_skb`).
    pub(crate) fn take_with_syn(&mut self, len: u64) {
        self.next += len;
    }

    /// The ACK of the handshake waits for the data of a writer that sleeps (`tcp_rcv_synsent_state_process`).
    pub(crate) fn wait_for_writer(&mut self, now: Time) {
        self.ack_now = false;
        self.ack_at = now + acks::MOST;
        self.acks.await_writer(now, self.last_window);
    }

    /// The connection answers data with data (Linux's ping-pong mode).
    pub(crate) fn is_interactive(&self) -> bool {
        self.acks.interactive
    }

    /// The peer has sent everything, and waits for our end.
    pub(crate) fn expect_answer(&mut self) {
        self.acks.expect_answer();
    }

    /// How long an acknowledgment is delayed now.
    pub(crate) fn ack_timeout(&self) -> Span {
        if self.rules.acks == AckRule::Linux { self.acks.timeout } else { self.policy.timeout }
    }

    /// What the peer's segments hold, as estimated.
    pub(crate) fn segment_estimate(&self) -> u32 {
        if self.rules.acks == AckRule::Linux { self.acks.segment } else { self.peer_segment }
    }

    /// The largest window that may be offered now.
    pub(crate) fn threshold(&self) -> u64 {
        self.grown.min(self.buffer)
    }

    /// The window that was offered first.
    pub(crate) fn first_window(&self) -> u64 {
        self.first_window
    }

    /// The delayed acknowledgment is due.
    pub(crate) fn ack_timed_out(&mut self) {
        self.ack_at = Time::NEVER;
        self.ack_now = true;
        if self.rules.acks == AckRule::Linux && !self.compression.holds() {
            self.acks.timed_out(self.context.rto);
        }
    }

    /// A segment with data leaves.
    #[inline]
    pub(crate) fn data_sent(&mut self, now: Time) {
        if self.rules.acks == AckRule::Linux {
            self.acks.data_sent(now);
        }
    }

    /// A segment came that repeats what is known, or lies outside of the window. The peer has sent something again: it shall see
    /// at once what of the next segments arrives (Linux `tcp_enter_quickack_mode`).
    fn unacceptable(&mut self) {
        self.ack_now = true;
        if self.rules.acks == AckRule::Linux {
            self.acks.hurry(self.acks.most, self.last_window);
        } else {
            let fill = (self.last_window / (2 * u64::from(self.peer_segment.max(1)))).max(2);
            let quick = u64::from(self.policy.quick).min(fill) as u32;
            self.quick_left = self.quick_left.max(quick);
        }
    }

    /// Whether the host has Linux's quick-ACK mode.
    fn has_quick_mode(&self) -> bool {
        self.rules.acks == AckRule::Linux || self.policy.quick > 0
    }

    /// Whether every unit of `left..right` has arrived.
    pub(crate) fn holds(&self, left: u64, right: u64) -> bool {
        if right <= self.next {
            return true;
        }
        let left = left.max(self.next);
        let at = self.ranges.partition_point(|&(_, range_right)| range_right < right);
        self.ranges.get(at).is_some_and(|&(range_left, _)| range_left <= left)
    }

    /// Data came that begins beyond the window, perhaps a probe of a window that is closed (Linux `tcp_data_queue`).
    pub(crate) fn beyond_window(&mut self) {
        self.unacceptable();
        self.acks.owed = true;
    }

    /// Whether data waits to be acknowledged, by a timer or at the next opportunity.
    pub(crate) fn owes_ack(&self) -> bool {
        self.ack_now || self.ack_at != Time::NEVER
    }

    /// The peer's FIN has come in.
    pub(crate) fn finished(&mut self) {
        self.sack_list.finish();
    }

    /// Whether data is held beyond a gap.
    #[inline]
    pub(crate) fn has_gap(&self) -> bool {
        !self.ranges.is_empty()
    }

    /// A mark arrived after none for a while. A host with quick ACKs acknowledges two segments at once: the sender's window
    /// may be so small that it waits for them (Linux `__tcp_ecn_check_ce`).
    pub(crate) fn congestion_began(&mut self) {
        if self.rules.acks == AckRule::Linux {
            self.acks.hurry(2, self.last_window);
        } else if self.policy.quick > 0 {
            self.quick_left = self.quick_left.max(2);
        }
    }

    /// The sender says that its window came down, perhaps so far that it waits for this ACK (Linux `tcp_ecn_accept_cwr`).
    pub(crate) fn window_was_reduced(&mut self) {
        self.ack_now |= self.has_quick_mode();
    }

    /// Reads up to `most` bytes of those before `end_of_data`; a window that opens far enough is announced at once.
    #[inline]
    pub(crate) fn read(&mut self, most: u64, end_of_data: u64) -> u64 {
        let bytes = most.min(end_of_data.saturating_sub(self.read));
        self.read += bytes;
        if bytes > 0 {
            self.ack_now |= self.opens_window() || self.rules.acks == AckRule::Linux && self.owes_reader();
        }
        bytes
    }

    /// Linux `tcp_cleanup_rbuf`: whether reading is a reason to send the ACK that is owed.
    fn owes_reader(&self) -> bool {
        let acks = &self.acks;
        acks.owed
            && (self.next - self.last_ack_sent > u64::from(acks.segment)
                || self.read == self.next && (acks.pushed > 1 || acks.pushed > 0 && !acks.interactive))
    }

    /// Takes in units `[left, right)`, cut to the window; the last one may be a FIN.
    #[inline(always)]
    pub(crate) fn receive(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        let next = self.next;
        if self.rules.reports == ReportRule::Linux {
            self.sack_list.take((left, right), next);
        }
        let arrived = self.assemble(now, left, right, payload);
        if self.rules.reports == ReportRule::FreeBsd {
            // A FIN is not among what is reported, nor is it acknowledged yet when that is worked out.
            let data = right.min(left + u64::from(payload));
            if right > data {
                self.fin = data;
            }
            self.reports.take((left, data), next.min(self.fin), self.next.min(self.fin));
        }
        arrived
    }

    #[inline(always)]
    fn assemble(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        self.peer_segment = self.peer_segment.max(payload);
        if left == self.next && right > left && self.ranges.is_empty() {
            // The common case.
            self.next = right;
            self.schedule_ack(now, payload);
            return Arrived::InOrder;
        }
        self.assemble_others(now, left, right, payload)
    }

    #[inline(never)]
    fn assemble_others(&mut self, now: Time, left: u64, right: u64, payload: u32) -> Arrived {
        let in_order = left <= self.next && right > self.next && self.ranges.is_empty();
        if right <= self.next {
            self.duplicate = Some((left, right));
            // Otherwise tcp_send_dupack answers, an ACK that quick-ACK mode does not count.
            let counts = right >= self.last_ack_sent;
            self.acks.owed |= counts;
            let arrived = self.nothing_new();
            self.quick_left = self.quick_left.saturating_sub(u32::from(counts));
            return arrived;
        }
        if left < self.next {
            // The front is known; RFC 2883 reports it.
            self.duplicate = Some((left, self.next));
        }
        let left = left.max(self.next);
        if left == self.next {
            self.advance(right);
            self.count_progress();
            if self.rules.acks == AckRule::Linux {
                self.ack_now |= !in_order;
                self.schedule_ack(now, payload);
                return Arrived::InOrder;
            }
            if in_order {
                self.schedule_ack(now, payload);
            }
            // It fills all or part of a gap (RFC 5681 section 4.2), or repeats something: that is reported of the latest
            // segment only (RFC 2883 section 4).
            self.ack_now = true;
            return Arrived::InOrder;
        }
        self.acknowledge_gap(now, payload);
        self.insert(left, right)
    }

    fn nothing_new(&mut self) -> Arrived {
        self.duplicate_segments += 1;
        self.unacceptable();
        Arrived::Duplicate
    }

    /// `next` moves to `right` and over every range that it touches.
    fn advance(&mut self, right: u64) {
        let mut right = right;
        while let Some(&(range_left, range_right)) = self.ranges.front() {
            if range_left > right {
                break;
            }
            if range_left < right {
                let known = (range_left, right.min(range_right));
                self.duplicate.get_or_insert(known);
            }
            right = right.max(range_right);
            self.ranges.pop_front();
            self.forget(range_left);
        }
        self.next = right;
    }

    /// Adds a range beyond a gap.
    fn insert(&mut self, left: u64, right: u64) -> Arrived {
        // First range that ends at or after `left`: the first that can touch.
        let first = self.ranges.partition_point(|&(_, range_right)| range_right < left);
        let (mut merged_left, mut merged_right) = (left, right);
        let mut last = first;
        while let Some(&(range_left, range_right)) = self.ranges.get(last) {
            if range_left > merged_right {
                break;
            }
            if range_left <= left && right <= range_right {
                self.duplicate = Some((left, right));
                self.touch(range_left);
                if self.has_quick_mode() {
                    // What is known beyond a gap is no reason for quick ACKs.
                    self.duplicate_segments += 1;
                    return Arrived::Duplicate;
                }
                return self.nothing_new();
            }
            if range_left < right && left < range_right {
                self.duplicate.get_or_insert((left.max(range_left), right.min(range_right)));
            }
            merged_left = merged_left.min(range_left);
            merged_right = merged_right.max(range_right);
            self.forget(range_left);
            last += 1;
        }
        if last == first {
            self.ranges.insert(first, (left, right));
        } else {
            self.ranges[first] = (merged_left, merged_right);
            self.ranges.drain(first + 1..last);
        }
        self.touch(merged_left);
        Arrived::OutOfOrder
    }

    /// Puts the range with this left edge first among the recent ones.
    fn touch(&mut self, left: u64) {
        self.forget(left);
        self.recent.copy_within(0..3, 1);
        self.recent[0] = left;
        self.recent_len = (self.recent_len + 1).min(4);
    }

    fn forget(&mut self, left: u64) {
        if let Some(at) = self.recent[..self.recent_len].iter().position(|&edge| edge == left) {
            self.recent.copy_within(at + 1..self.recent_len, at);
            self.recent_len -= 1;
        }
    }

    /// In-order data: acknowledge now or soon.
    #[inline(always)]
    fn schedule_ack(&mut self, now: Time, payload: u32) {
        match self.rules.acks {
            AckRule::Delayed => self.schedule_by_policy(now),
            AckRule::Linux | AckRule::FreeBsd => self.schedule_by_rule(now, payload),
        }
    }

    fn schedule_by_rule(&mut self, now: Time, payload: u32) {
        match self.rules.acks {
            AckRule::Delayed => {}
            AckRule::Linux => {
                if payload > 0 {
                    self.acks.arrived(now, payload, &self.context, self.last_window);
                }
                if payload >= LEAST_GROWING {
                    self.grow_window(payload);
                }
                self.acks.owed = true;
                if self.context.last {
                    self.acks.expect_answer();
                }
                let much = self.next - self.last_ack_sent > u64::from(self.acks.segment);
                // Otherwise the reader's ACK opens the window with it.
                if much && self.is_half_full() {
                    self.acks.quick = 0;
                }
                if much && self.linux_window() >= self.last_window || self.acks.is_quick() {
                    self.ack_now = true;
                } else if !self.ack_now {
                    // One whose time has almost come is not waited for.
                    let due = self.acks.due(now, self.ack_at, &self.context);
                    (self.ack_now, self.ack_at) = (due <= now, due);
                }
            }
            // DELAY_ACK: no timer runs yet, and no more than a segment arrived.
            AckRule::FreeBsd => {
                if self.ack_at == Time::NEVER && payload <= self.mss && self.last_window > 0 {
                    self.ack_at = now + self.policy.timeout;
                } else {
                    self.ack_now = true;
                }
            }
        }
    }

    fn schedule_by_policy(&mut self, now: Time) {
        if self.grown < self.buffer {
            self.grown += 2 * u64::from(self.peer_segment);
            self.ack_now = true;
        }
        if self.quick_left > 0 {
            self.quick_left -= 1;
            self.ack_now = true;
        } else if self.policy.segments <= 1
            || self.next - self.last_ack_sent >= u64::from(self.policy.segments) * u64::from(self.peer_segment)
        {
            self.ack_now = true;
        } else if self.ack_at == Time::NEVER {
            self.ack_at = now + self.policy.timeout;
        }
    }

    /// The SACK option for the next ACK: at most `room` blocks, a duplicate first if `dsack`, then the ranges newest
    /// first.
    pub(crate) fn sack_blocks(&self, room: usize, dsack: bool) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let wire = |seq| lower(seq, self.irs);
        if self.rules.reports == ReportRule::FreeBsd {
            for &(left, right) in
                self.reports.as_slice().iter().filter(|&&(_, right)| dsack || right > self.next).take(room)
            {
                blocks.push(wire(left), wire(right));
            }
            return blocks;
        }
        if self.rules.reports == ReportRule::Linux {
            let duplicate = self.sack_list.duplicate().filter(|_| dsack);
            for (left, right) in duplicate.into_iter().chain(self.sack_list.blocks().iter().copied()).take(room) {
                blocks.push(wire(left), wire(right));
            }
            return blocks;
        }
        if let Some((left, right)) = self.duplicate.filter(|_| dsack) {
            blocks.push(wire(left), wire(right));
        }
        for &left in &self.recent[..self.recent_len] {
            if blocks.as_slice().len() >= room {
                break;
            }
            let at = self.ranges.partition_point(|&(range_left, _)| range_left < left);
            if let Some(&(range_left, range_right)) = self.ranges.get(at) {
                blocks.push(wire(range_left), wire(range_right));
            }
        }
        if self.ranges.len() > self.recent_len {
            // As many distinct blocks as there is room for (RFC 2018 section 4).
            for &(left, right) in self.ranges.iter().rev() {
                if blocks.as_slice().len() >= room {
                    break;
                }
                if !self.recent[..self.recent_len].contains(&left) {
                    blocks.push(wire(left), wire(right));
                }
            }
        }
        blocks
    }

    /// Whether a duplicate waits to be reported.
    #[inline]
    pub(crate) fn has_duplicate(&self) -> bool {
        match self.rules.reports {
            ReportRule::Rfc2883 => self.duplicate.is_some(),
            ReportRule::Linux => self.sack_list.duplicate().is_some(),
            ReportRule::FreeBsd => self.reports.has_duplicate(self.next),
        }
    }
}

#[cfg(test)]
mod tests;
