//! Linux's division of the stream into segments, and the capacity of its send buffer.
//!
//! # Source
//! Linux 6.1: `tcp_sendmsg_locked`, `tcp_push`, `tcp_send_mss` (`net/ipv4/tcp.c`),
//! `tcp_write_xmit`, `tcp_nagle_test`, `tcp_minshall_check`, `tcp_mss_split_point`,
//! `tcp_snd_wnd_test`, `tcp_tso_autosize`, `tcp_cwnd_test` and `__tcp_transmit_skb`
//! (`tcp_output.c`), `tcp_sndbuf_expand`, `tcp_shift_skb_data` and `tcp_bound_to_half_wnd`
//! (`tcp_input.c`, `tcp.h`), `sk_stream_is_writeable` (`sock.h`).
//!
//! # Departures
//! - A burst that could become larger with the next ACK is put off (`tcp_tso_should_defer`) by a
//!   host with segmentation offload alone (`offload.rs`), and small segments that wait in the queue
//!   of the device hold nothing back (`tcp_autocorking`).
//! - The overhead of what is queued is that of buffers filled to the goal, whatever their number;
//!   with offload, of as many as there are.
//! - A tuned buffer grows with the window alone, and unless what is in the network fills that.
//!   `tcp_sndbuf_expand` counts at least `reordering` + 1 segments, and up to 4.x
//!   `tcp_should_expand_sndbuf` compares all that is unacknowledged (`packets_out`), SACKed or not,
//!   with the window. Both belong to a sender whose buffers have several segments, and apply with
//!   segmentation offload. With one each, a connection over two paths in turn, the shorter one
//!   first, stays where it began: HyStart ends slow start at some twenty segments, the first buffer
//!   is full of those and what is SACKed, and may not grow; having nothing to send then begins a
//!   recovery in each round trip.
//! - Where an application writes less than a segment at a time, and the send buffer counts no socket
//!   buffers, some writes are one: PSH of one that ends with a segment, and is followed by another
//!   before that leaves, is missing.
//! - By [`SpaceRule::Segments`], SACKed segments share one overhead however long they are together;
//!   Linux stops at half a megabyte, or at 17 fragments.

use std::collections::VecDeque;

use ackclock_units::Time;

use crate::send::Sender;
use crate::stack::tuning::{OVERHEAD, payload_of_bare_buffers, sent_size};
use crate::{SendRule, SpaceRule, State, TuningRules, WriteFlags};

/// `sk_gso_max_size`, what a buffer and a unit hold: `GSO_MAX_SIZE` less `MAX_TCP_HEADER` and one
/// (`sk_setup_caps`).
pub(super) const MAX_SIZE: u64 = 65_536 - 320 - 1;
/// The smallest that is set (Linux `SOCK_MIN_SNDBUF`).
const MIN_SEND_BUFFER: u64 = 4608;
/// The last number of `net.ipv4.tcp_wmem`.
const MAX_SEND_BUFFER: u64 = 4 << 20;
/// `TCP_INIT_CWND`.
const FIRST_WINDOW: u64 = 10;

/// An end of a part of the stream that is not sent yet.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// One past its last unit.
    at: u64,
    end: End,
}

/// The kind of end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum End {
    /// A write: PSH.
    Write,
    /// A buffer: no segment reaches over it.
    Buffer,
    /// A record (MSG_EOR), and its buffer: nothing is added to it.
    Record,
}

/// The unsent part of the stream.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    /// Capacity of the send buffer, bytes: it may grow, or be set.
    pub(crate) buffer: u64,
    /// In order.
    marks: VecDeque<Mark>,
    /// The first of them that no segment reaches over, `u64::MAX` if there is none.
    next_end: u64,
    /// Where the buffer begins that was filled last.
    tail: u64,
    /// Where PSH was set last (`pushed_seq`).
    pushed: u64,
    /// The next place for PSH of what an application writes that decides it then, `u64::MAX` if
    /// none is known ([`crate::TransferRules::push_when_written`]).
    pub(crate) next_push: u64,
    /// One past what is sent with PSH at the end at one go, and whether it is more than a segment.
    burst_end: u64,
    burst_pushes: bool,
    /// One past the last segment that was smaller than the MSS (`snd_sml`).
    pub(crate) small: u64,
    /// A write found too little room, and since then there was never enough to tell the application
    /// (`SOCK_NOSPACE`).
    short: bool,
    /// An ACK has come since the buffer was last reviewed.
    pub(crate) acked: bool,
    /// SO_SNDBUF was set: the buffer does not grow.
    pub(crate) locked: bool,
}

impl Queue {
    /// Empty, with room for `buffer` bytes.
    pub(crate) fn new(buffer: u64) -> Queue {
        Queue { buffer, pushed: 1, next_end: u64::MAX, next_push: u64::MAX, ..Queue::default() }
    }

    /// SO_SNDBUF by a host's rule.
    pub(crate) fn set_buffer(&mut self, bytes: u64, rule: SpaceRule) {
        self.locked = true;
        self.buffer = match rule {
            SpaceRule::Bytes | SpaceRule::Segments | SpaceRule::Tuned => bytes,
            SpaceRule::Linux => (2 * bytes).max(MIN_SEND_BUFFER),
        };
    }

    /// Returns `true` if a write has found too little room.
    #[inline]
    pub(crate) fn is_short(&self) -> bool {
        self.short
    }

    fn mark(&mut self, at: u64, end: End) {
        if !self.marks.back().is_some_and(|mark| mark.at == at && mark.end == end) {
            self.marks.push_back(Mark { at, end });
            if end != End::Write {
                self.next_end = self.next_end.min(at);
            }
        }
    }

    /// Data is added behind `at`, in the same buffer: no PSH there. Returns `true` if there was one.
    fn unmark(&mut self, at: u64) -> bool {
        let had = self.marks.back().is_some_and(|mark| mark.at == at && mark.end == End::Write);
        if had {
            self.marks.pop_back();
        }
        had
    }

    /// A record ends at `at`: no segment reaches over it.
    pub(crate) fn end_record(&mut self, at: u64) {
        self.mark(at, End::Record);
    }

    /// Number of `available` bytes from `seq` on that a segment may have at most: no more than the
    /// record that they begin with.
    pub(crate) fn of_record(&self, seq: u64, available: u64) -> u64 {
        available.min(self.buffer_end(seq) - seq)
    }

    fn ends_record(&self, at: u64) -> bool {
        self.marks.back().is_some_and(|mark| mark.at == at && mark.end == End::Record)
    }

    /// The end of the buffer that begins at or reaches over `seq`, if it is not the last one.
    fn buffer_end(&self, seq: u64) -> u64 {
        if seq < self.next_end { self.next_end } else { self.end_after(seq) }
    }

    fn end_after(&self, seq: u64) -> u64 {
        self.marks.iter().find(|mark| mark.end != End::Write && mark.at > seq).map_or(u64::MAX, |mark| mark.at)
    }

    /// A unit ends at `end`, of `bytes` bytes if it begins now. Returns `true` if it ends
    /// with PSH (`tcp_transmit_skb`), which units of several segments do where `has_push`.
    pub(super) fn note_unit(&mut self, end: u64, bytes: Option<u64>, mss: u64, has_push: bool) -> bool {
        if let Some(bytes) = bytes {
            (self.burst_end, self.burst_pushes) = (end, bytes > mss && has_push);
        }
        self.burst_pushes
    }

    /// Everything below `seq` is sent; whether PSH is set on what ends there.
    pub(crate) fn sent(&mut self, seq: u64) -> bool {
        let mut push = false;
        while self.marks.front().is_some_and(|mark| mark.at <= seq) {
            push |= self.marks.pop_front().is_some_and(|mark| mark.at == seq && mark.end == End::Write);
        }
        if self.next_end <= seq {
            self.next_end = self.end_after(seq);
        }
        self.find_next_push();
        push
    }

    /// Returns `true` if a record ends among the next `bytes` bytes from `nxt` on, or with them.
    pub(crate) fn ends_record_within(&self, nxt: u64, bytes: u64) -> bool {
        let end = nxt + bytes;
        self.marks.iter().take_while(|mark| mark.at <= end).any(|mark| mark.end == End::Record)
    }

    /// A probe of the path's MTU was sent, and nothing of what follows: whether it has PSH set.
    pub(crate) fn note_mtu_probe(&mut self, end: u64) -> bool {
        (self.burst_end, self.burst_pushes) = (end, false);
        self.sent(end)
    }

    fn find_next_push(&mut self) {
        self.next_push = self.marks.front().map_or(u64::MAX, |mark| mark.at);
    }

    /// A write ends at `at`, with PSH.
    fn push_mark(&mut self, at: u64) {
        self.mark(at, End::Write);
        self.pushed = at;
    }
}

/// The next segment with new data.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Cut {
    pub(crate) payload: u32,
    pub(crate) fin: bool,
}

/// Why no segment can be cut now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum NoSegment {
    /// The segment does not fit into the peer's window.
    Window,
    /// The segment is small, and waits for more or for an ACK.
    Small,
}

impl Sender {
    /// The next segment by Linux's rules, of `available` unsent bytes and a window of `window`.
    pub(crate) fn cut(&self, available: u64, window: u64) -> Result<Cut, NoSegment> {
        let nxt = self.sequence.nxt();
        let whole = available.min(self.queue.buffer_end(nxt) - nxt);
        // A burst that begins with a full segment may end with a small one that fills the peer's
        // window.
        let burst = self.queue.burst_end.checked_sub(nxt).filter(|&rest| rest > 0);
        let payload = whole.min(u64::from(self.full_payload())).min(burst.unwrap_or(u64::MAX));
        let fin = self.sequence.is_closed() && payload == available;
        if payload + u64::from(fin) > window {
            return Err(NoSegment::Window);
        }
        // Data followed by more in another buffer is not held back.
        let exempt = self.persist.has_expired() || self.loss.recovery.probe().is_unbounded();
        if payload == available && !fin && !exempt && self.waits(payload) {
            return Err(NoSegment::Small);
        }
        Ok(Cut { payload: payload as u32, fin })
    }

    /// Returns `true` if the last `payload` bytes written wait for more, or for an ACK: Nagle's
    /// rule as Minshall changed it (one small segment may be in flight), TCP_CORK and MSG_MORE.
    pub(super) fn waits(&self, payload: u64) -> bool {
        if payload >= u64::from(self.full_payload()) || self.writing.pushes() {
            return false;
        }
        let small_in_flight = self.sequence.una() < self.queue.small;
        self.writing.expects_more() || self.config.nagle && !self.loss.board.is_empty() && small_in_flight
    }

    /// The segment that [`Sender::cut`] gave is sent: whether it has PSH set now, and each time that
    /// it is sent again.
    pub(crate) fn note_cut(&mut self, cut: Cut, available: u64, window: u64) -> (bool, bool) {
        let (seq, mss) = (self.sequence.nxt(), u64::from(self.full_payload()));
        let end = seq + u64::from(cut.payload);
        if seq >= self.queue.burst_end {
            let whole = available.min(self.queue.buffer_end(seq) - seq);
            let (burst, rest) = self.burst_of(0, whole.min(window));
            let burst = if rest > 0 && self.waits(rest) { burst - rest } else { burst };
            self.queue.burst_end = end.max(seq + burst);
            self.queue.burst_pushes = burst > mss;
        }
        if u64::from(cut.payload) < mss {
            self.queue.small = end;
        }
        // __tcp_transmit_skb: whatever takes segmentation offload ends with PSH, which its copy alone
        // has.
        let ends_burst = self.queue.burst_pushes && end == self.queue.burst_end;
        // tcp_write_wakeup: what the probe timer sends, too.
        let stays = self.queue.sent(end) || self.persist.has_expired();
        (stays || ends_burst, stays)
    }

    /// Bytes that are handed down at one go, of the `len` of one buffer that fit into the peer's
    /// window, `ahead` bytes from now; and how many of them end it as a small segment.
    fn burst_of(&self, ahead: u64, len: u64) -> (u64, u64) {
        let mss = u64::from(self.full_payload());
        let burst = (self.burst_segments(ahead) * mss).min(len);
        // Where a buffer holds one segment, nothing is left to be split off.
        if self.buffer_goal() <= mss { (len.min(mss), 0) } else { (burst, burst % mss) }
    }

    /// Segments that are handed down at one go: no more than half the window, about a millisecond's
    /// worth at the pacing rate, and two at least.
    fn burst_segments(&self, ahead: u64) -> u64 {
        let (mss, cwnd) = (u64::from(self.negotiated.mss()), self.cwnd());
        let room = cwnd.saturating_sub(self.window_used() + ahead) / mss;
        let quota = room.min((cwnd / mss / 2).max(1)).max(1);
        let Some(rate) = self.rate_of_window() else { return quota };
        // sk_pacing_shift 10; tcp_tso_rtt_log 9, in microseconds of the least RTT.
        let by_rate = rate >> 10;
        let near = self.rtt.min().map_or(32, |min| min.as_micros() >> 9);
        let by_rtt = if near < 32 { MAX_SIZE >> near } else { 0 };
        let bytes = by_rate.saturating_add(by_rtt).min(MAX_SIZE);
        quota.min((bytes / mss).max(u64::from(self.config.transfer.least_burst)))
    }

    /// The application has written `bytes` more, in one call: PSH where that ends, and at the end of
    /// each socket buffer with which more than half of the peer's largest window is written without
    /// it (`tcp_push`, `forced_push`).
    pub(crate) fn note_write(&mut self, bytes: u64) {
        let end = self.sequence.written() + 1;
        // Until the peer's window is known, only the ends of writes are.
        if self.sequence.max_window() > 0 {
            self.mark_write(end - bytes, end);
        } else {
            self.queue.push_mark(end);
        }
        self.queue.find_next_push();
    }

    fn mark_write(&mut self, from: u64, end: u64) {
        let (nxt, half) = (self.sequence.nxt().max(1), self.sequence.max_window() / 2);
        let offload = self.config.transfer.offload.is_on();
        let goal = if offload { self.buffer_goal() } else { self.full_payload().into() }.max(1);
        // More data in the last buffer of a write takes its PSH away.
        if from > nxt && !(from - nxt).is_multiple_of(goal) {
            self.queue.unmark(from);
        }
        loop {
            let beyond = (self.queue.pushed + half).max(from).max(nxt) + 1 - nxt;
            let at = nxt + beyond.div_ceil(goal) * goal;
            if at >= end {
                break;
            }
            self.queue.push_mark(at);
        }
        self.queue.push_mark(end);
    }

    /// The peer's window is known: PSH in the writes that came before.
    pub(crate) fn mark_early_writes(&mut self) {
        let mut from = 1;
        (self.queue.pushed, self.queue.next_end) = (from, u64::MAX);
        for Mark { at, .. } in std::mem::take(&mut self.queue.marks) {
            self.mark_write(from, at);
            from = at;
        }
        self.queue.find_next_push();
    }

    /// Segments of a peer with a small window are at most half of it, so that two fit.
    pub(crate) fn bound_segment(&mut self) {
        if self.config.transfer.sending == SendRule::Linux {
            // The window of the SYN does not count for a connection that the peer opened.
            self.sequence.forget_max_window();
            self.negotiated.set_mss(self.sequence.bound_to_half_window(self.negotiated.mss()));
        }
        if !self.config.transfer.counts_unacknowledged() {
            self.expand_send_buffer();
        } else if let Some(tuning) = self.config.transfer.send_tuning.filter(|_| !self.queue.locked) {
            self.queue.buffer = payload_of_bare_buffers(tuning.default, self.negotiated.mss().into());
        }
    }

    /// The payload to which a buffer is filled: whole segments.
    pub(super) fn buffer_goal(&self) -> u64 {
        let mss = u64::from(self.full_payload());
        let most = if self.config.transfer.single_segments { mss } else { self.sequence.half_window(MAX_SIZE) };
        (most / mss).max(1) * mss
    }

    /// Grows a send buffer that was not set so that two windows fit.
    #[inline(never)]
    fn expand_send_buffer(&mut self) {
        let (law, most) = match (self.config.transfer.send_space, self.config.transfer.send_tuning) {
            (SpaceRule::Bytes | SpaceRule::Segments, _) => return,
            (SpaceRule::Linux | SpaceRule::Tuned, Some(tuning)) => (tuning.law, tuning.most),
            (SpaceRule::Linux | SpaceRule::Tuned, None) => (TuningRules::LINUX_6_1, MAX_SEND_BUFFER),
        };
        if self.queue.locked {
            return;
        }
        let mss = u64::from(self.negotiated.mss());
        let window = self.cwnd() / mss;
        let mut segments = if self.config.transfer.counts_unacknowledged() { window } else { window.max(FIRST_WINDOW) };
        if self.config.transfer.offload.is_on() || self.config.transfer.counts_unacknowledged() {
            segments = segments.max(u64::from(self.loss.detector.threshold()) + 1);
        }
        let wanted = (2 * segments * sent_size(&law, mss)).min(most);
        let tuned = self.config.transfer.send_space == SpaceRule::Tuned;
        // A segment to a socket buffer; the unit is the payload that fits.
        let wanted = match tuned {
            true if !law.counts_shared_info => payload_of_bare_buffers(wanted, mss),
            true => wanted * mss / (mss + OVERHEAD),
            false => wanted,
        };
        self.queue.buffer = self.queue.buffer.max(wanted);
    }

    /// Nothing more is to be sent now. If an ACK has come, a buffer that was too small grows unless
    /// the congestion window is full (`tcp_check_space`, `tcp_new_space`). When everything is sent,
    /// and `sent` just now, it is the buffer that holds the sender back (`tcp_cwnd_validate`).
    #[inline]
    pub(crate) fn review_send_buffer(&mut self, now: Time, state: State, sent: bool) {
        if !self.queue.short {
            return;
        }
        let has_room = self.window_used() + u64::from(self.negotiated.mss()) <= self.cwnd();
        let open = matches!(state, State::Established | State::CloseWait);
        if sent && has_room && open && self.sequence.unsent() == 0 {
            self.counters.buffer_limited.set(now, true);
        }
        if std::mem::take(&mut self.queue.acked) {
            let counts = || self.config.transfer.offload.is_on() || self.config.transfer.counts_unacknowledged();
            if has_room && !(counts() && self.fills_window()) {
                self.expand_send_buffer();
            }
            if self.has_room_to_tell() {
                self.queue.short = false;
                self.counters.buffer_limited.set(now, false);
            }
        }
    }

    /// Memory of what is unsent or unacknowledged, in the unit of the send buffer.
    #[inline]
    pub(crate) fn queued(&self) -> u64 {
        let bytes = self.sequence.written() - self.sequence.acked_bytes();
        match self.config.transfer.send_space {
            SpaceRule::Bytes => bytes,
            // Without segmentation offload nothing is joined (tcp_shift_skb_data).
            SpaceRule::Tuned if self.config.transfer.counts_unacknowledged() => bytes,
            SpaceRule::Segments | SpaceRule::Tuned => {
                let mss = u64::from(self.negotiated.mss());
                bytes - (self.loss.board.merged_segments() * mss * OVERHEAD / (mss + OVERHEAD)).min(bytes)
            }
            SpaceRule::Linux if self.config.transfer.offload.is_on() => self.queued_in_units(),
            SpaceRule::Linux => bytes + bytes.div_ceil(self.buffer_goal()) * OVERHEAD,
        }
    }

    /// Takes up to `bytes` bytes into buffers as `tcp_sendmsg` does: each is begun while there is
    /// memory, and filled to the goal; one that is full is sent as far as the windows allow, and
    /// what stays of it is filled again.
    pub(crate) fn fill_buffers(&mut self, bytes: u64, flags: WriteFlags) -> u64 {
        let goal = self.buffer_goal();
        let mut sent = self.sequence.nxt().max(1);
        let mut taken = 0;
        while taken < bytes {
            let end = self.sequence.written() + 1;
            let start = self.queue.tail.max(sent);
            let open = start < end && !self.queue.ends_record(end);
            let mut room = if open { goal.saturating_sub(end - start) } else { 0 };
            // PSH of a buffer that another write has begun is gone; that of this write moves along.
            let mut moves = false;
            if room > 0 {
                moves = self.queue.unmark(end) && taken > 0;
            } else {
                if self.queued() >= self.queue.buffer || !self.writing.is_below_lowat(end - sent.min(end)) {
                    (self.queue.short, self.queue.acked) = (true, false);
                    self.burst.end();
                    break;
                }
                if end > self.sequence.nxt() && !self.queue.ends_record(end) {
                    self.queue.mark(end, End::Buffer);
                }
                self.queue.tail = end;
                self.writing.pushed();
                room = goal;
            }
            let part = room.min(bytes - taken);
            self.sequence.write(part);
            taken += part;
            let end = end + part;
            if moves {
                self.queue.mark(end, End::Write);
            }
            if part == room && taken < bytes {
                let pushes = end - self.queue.pushed > self.sequence.max_window() / 2;
                if pushes {
                    self.queue.push_mark(end);
                }
                if pushes || sent >= self.queue.tail {
                    sent = self.pushed_to(sent, end, !pushes);
                }
            }
        }
        let end = self.sequence.written() + 1;
        if taken > 0 && (!flags.more || end - self.queue.pushed > self.sequence.max_window() / 2) {
            self.queue.push_mark(end);
        }
        if taken > 0 && taken == bytes && flags.eor {
            self.queue.mark(end, End::Record);
        }
        taken
    }

    /// The end of the data written from `from` to `to` that would be sent when earlier data is: one
    /// burst (`tcp_push_one`), or as many as the windows admit (`__tcp_push_pending_frames`).
    fn pushed_to(&self, from: u64, to: u64, one: bool) -> u64 {
        let mss = u64::from(self.full_payload());
        let mut at = from;
        while at < to {
            let ahead = at - self.sequence.nxt().max(1);
            let len = self.queue.buffer_end(at).min(to) - at;
            let window = self.sequence.window_end().saturating_sub(at);
            if self.window_used() + ahead + mss > self.cwnd() || len.min(mss) > window {
                break;
            }
            at += self.burst_of(ahead, len.min(window)).0;
            if one {
                break;
            }
        }
        at
    }

    /// Returns `true` if a segment of `payload` bytes is too small to be worth sending: the window
    /// cuts it, and it is less than half of the largest window that the peer offered (RFC 9293
    /// section 3.8.6.2.1).
    pub(crate) fn is_silly(&self, payload: u32, available: u64, fin: bool) -> bool {
        payload < self.full_payload()
            && u64::from(payload) < available
            && !fin
            && u64::from(payload) < self.sequence.max_window().div_ceil(2)
    }

    /// Bytes that the send buffer has room for.
    #[inline]
    pub fn send_space(&self) -> u64 {
        self.queue.buffer.saturating_sub(self.queued())
    }

    /// The same where the buffer counts bytes.
    #[inline]
    pub(crate) fn send_space_in_bytes(&self) -> u64 {
        self.queue.buffer.saturating_sub(self.sequence.unacknowledged())
    }

    /// Takes up to `bytes` bytes into a buffer that grows when it was too small.
    pub(crate) fn fill_tuned(&mut self, bytes: u64) -> u64 {
        if !self.writing.is_below_lowat(self.sequence.unsent()) {
            return 0;
        }
        let taken = bytes.min(self.send_space());
        self.sequence.write(taken);
        if taken < bytes {
            (self.queue.short, self.queue.acked) = (true, false);
            self.burst.end();
        }
        taken
    }

    /// A writer that polls has found too little room; false.
    fn wait_for_room(&mut self) -> bool {
        if !self.queue.short {
            (self.queue.short, self.queue.acked) = (true, false);
            self.burst.end();
        }
        false
    }

    /// `sk_stream_is_writeable`: what is free is no less than half of what is used.
    pub(crate) fn has_room_to_tell(&self) -> bool {
        let space = self.send_space();
        let queued = self.queue.buffer.saturating_sub(space);
        // tcp_stream_memory_free with `wake`.
        space > 0
            && space >= queued / 2
            && self.writing.is_below_lowat(2 * self.sequence.unsent())
            && self.has_room_beside_tail(space, queued)
    }

    /// The last buffer takes its overhead even if it is not full, where that counts by the segment.
    fn has_room_beside_tail(&self, space: u64, queued: u64) -> bool {
        let mss = u64::from(self.negotiated.mss());
        let tail = self.sequence.unsent() % mss;
        if tail == 0 || !matches!(self.config.transfer.send_space, SpaceRule::Segments | SpaceRule::Tuned) {
            return true;
        }
        let more = OVERHEAD * (mss - tail) / (mss + OVERHEAD);
        space >= more + (queued + more) / 2
    }

    /// Number of bytes of small writes after which a third of the send buffer is still free.
    fn room_for_small_writes(&self) -> u64 {
        let mss = u64::from(self.negotiated.mss());
        let free = (self.queue.buffer / 3 * 2).saturating_sub(self.queued());
        let tail = self.sequence.unsent() % mss;
        let whole = (free + tail) / mss * mss;
        let left = (free + tail - whole) * (mss + OVERHEAD);
        (whole + left.saturating_sub(OVERHEAD * mss) / mss).saturating_sub(tail)
    }

    /// Returns `true` if the send buffer does not grow, since the congestion window is full: up to
    /// 4.x of all that is unacknowledged (`tcp_should_expand_sndbuf`).
    fn fills_window(&self) -> bool {
        let mss = u64::from(self.negotiated.mss());
        match self.config.transfer.offload.fills_by_unacknowledged || self.config.transfer.counts_unacknowledged() {
            true => self.loss.board.segments() >= self.cwnd() / mss,
            false => self.window_used() + mss > self.cwnd(),
        }
    }

    /// Memory of what is unsent or unacknowledged, in units in flight and buffers not sent.
    fn queued_in_units(&self) -> u64 {
        let bytes = self.sequence.written() - self.sequence.acked_bytes();
        let waiting = self.sequence.unsent().div_ceil(self.buffer_goal());
        bytes + (self.loss.board.buffers() + waiting) * OVERHEAD
    }

    /// Returns `true` if a writer that polls may write, or is woken ([`SpaceRule`]). If not, it
    /// wants room: a buffer that is tuned may grow (`tcp_poll` sets `SOCK_NOSPACE`).
    #[inline]
    pub fn is_writable(&mut self) -> bool {
        match self.config.transfer.send_space {
            SpaceRule::Bytes => true,
            SpaceRule::Segments => self.has_room_to_tell(),
            SpaceRule::Tuned | SpaceRule::Linux => self.has_room_to_tell() || self.wait_for_room(),
        }
    }

    /// Number of bytes that an application that writes `bytes` at a time, for as long as it can,
    /// may write at once with the same effect.
    #[inline]
    pub fn writes_at_once(&self, bytes: u64) -> u64 {
        match self.config.transfer.send_space {
            // The writer continues until the buffer is full.
            SpaceRule::Bytes => u64::MAX,
            // The writer continues while a third is free.
            SpaceRule::Segments | SpaceRule::Tuned if self.writing.notsent_lowat().is_none() => {
                let room = self.room_for_small_writes();
                // Half of the peer's window is no more than a write that sets PSH at its end alone. The
                // first window, in a SYN, is not scaled.
                let half = match self.sequence.max_window() {
                    0 => u64::from(u16::MAX) / 2,
                    window => window / 2,
                };
                let room = if self.config.transfer.marks_writes() { room.min(half) } else { room };
                (room - room % bytes).max(bytes)
            }
            SpaceRule::Segments | SpaceRule::Linux | SpaceRule::Tuned => bytes,
        }
    }
}
