//! The window that is offered.
//!
//! # Source
//! Linux 6.1: `tcp_select_initial_window`, `__tcp_select_window`, `tcp_select_window`
//! (`net/ipv4/tcp_output.c`), `tcp_init_buffer_space` (`tcp_input.c`), `tcp_cleanup_rbuf`
//! (`tcp.c`). FreeBSD 14: `tcp_output` and `tcp_mss` (`sys/netinet/tcp_output.c`, `tcp_input.c`).
//!
//! # Departures
//! Linux accounts for the memory of packets: here each byte in order takes two of the buffer, which
//! is what `tcp_adv_win_scale` = 1 assumes, and what lies beyond a gap the memory of segments as they
//! come from another namespace of the machine (veth), unless the buffer is tuned (`tuning`).
//! FreeBSD's automatic tuning of the buffer is not modelled: it stays as large as it was set.

use ackclock_packet::{Flags, Segment};
use ackclock_units::Time;

use super::Receiver;
use super::reassembly::BufferMemory;
use crate::stack::tuning::received_size;
use crate::{StateRules, WindowRule};

/// The largest window field.
const MAX_FIELD: u64 = u16::MAX as u64;
/// The largest window scale (RFC 7323 section 2.3).
const MAX_SHIFT: u8 = 14;
/// The smallest buffer (Linux `SOCK_MIN_RCVBUF`).
const MIN_BUFFER: u64 = 2304;
/// The least payload that lets Linux's window grow (`tcp_event_data_recv`).
pub(super) const LEAST_GROWING: u32 = 128;
/// `TCP_INIT_CWND`.
const LINUX_FIRST_COPY: u64 = 10;

impl Receiver {
    /// The buffer, bytes.
    pub fn buffer(&self) -> u64 {
        self.buffer
    }

    /// SO_RCVBUF: Linux doubles it for its overhead.
    pub(crate) fn set_buffer(&mut self, bytes: u64) {
        let bytes = match self.window_rule {
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => bytes.max(1),
            WindowRule::Linux { .. } => (2 * bytes).max(MIN_BUFFER),
        };
        if let Some(tuned) = &mut self.tuned {
            tuned.lock();
        }
        if self.next == 0 {
            self.window_rule = self.window_rule.with_fixed_buffer();
        }
        self.take_buffer(bytes);
        if self.clamp > 0 {
            // tcp_set_rcvlowat and SO_RCVBUF leave the clamp of an open connection as it is.
            self.grown = self.grown.min(bytes);
        }
    }

    /// The largest window that may be offered now.
    pub(crate) fn threshold(&self) -> u64 {
        self.grown.min(self.buffer)
    }

    /// The window that was offered first.
    pub(crate) fn first_window(&self) -> u64 {
        self.first_window.into()
    }

    /// The window scale that makes the whole buffer expressible (RFC 7323 section 2.3).
    #[inline]
    pub(crate) fn own_shift(&self) -> u8 {
        match self.window_rule {
            WindowRule::Rfc => (0..MAX_SHIFT).find(|shift| self.buffer >> shift <= MAX_FIELD).unwrap_or(MAX_SHIFT),
            WindowRule::Linux { most } => {
                let space = self.data_space().max(most).max(1);
                space.ilog2().saturating_sub(15).min(u32::from(MAX_SHIFT)) as u8
            }
            WindowRule::FreeBsd { most } => {
                (0..MAX_SHIFT).find(|shift| MAX_FIELD << shift >= most).unwrap_or(MAX_SHIFT)
            }
        }
    }

    /// The window scale that is in force.
    #[inline]
    pub fn shift(&self) -> u8 {
        self.shift
    }

    /// An acknowledgment leaves with the current window: its field.
    #[inline]
    pub(crate) fn announce_window(&mut self) -> u16 {
        self.announce(self.window(), self.shift)
    }

    /// An acknowledgment leaves with this window: its field.
    #[inline]
    pub(crate) fn announce(&mut self, window: u64, shift: u8) -> u16 {
        let field = (window >> shift).min(MAX_FIELD);
        self.acknowledged(field << shift);
        field as u16
    }

    /// The window as it stands in a segment without SYN, with or without scaling.
    pub(crate) fn window_field(&self, scaling: bool) -> u16 {
        let shift = if scaling { self.own_shift() } else { 0 };
        (self.window() >> shift).min(MAX_FIELD) as u16
    }

    /// The window of a SYN, which is not scaled; `segment` is the MSS that is announced, options
    /// that data carries subtracted where they are agreed on.
    pub(crate) fn syn_window(&self, segment: u32) -> u64 {
        match self.window_rule {
            WindowRule::Rfc => self.window().min(MAX_FIELD),
            WindowRule::Linux { .. } => {
                let (space, segment) = (self.data_space(), u64::from(segment));
                let whole = if space > segment { space / segment * segment } else { space };
                let first = self.tuned.as_ref().map_or(u64::MAX, |tuned| tuned.first_window(segment));
                let from = self.linux_acks.policy.growth_from;
                let first = if from > 0 { first.min(from) } else { first };
                whole.min(first).min(MAX_FIELD)
            }
            WindowRule::FreeBsd { .. } => self.room().min(MAX_FIELD),
        }
    }

    /// The handshake is over: `shift` is the scale in force, `mss` the MSS without and `segment`
    /// with the options that data carries subtracted, and `offered` the window of our SYN.
    pub(crate) fn begin(&mut self, shift: u8, mss: u32, segment: u32, offered: u64) {
        self.shift = shift;
        self.mss = mss;
        self.first_window = u32::try_from(offered).unwrap_or(u32::MAX);
        self.last_window = offered;
        if self.window_rule != WindowRule::Rfc {
            self.announced = self.next + offered;
        }
        match self.window_rule {
            WindowRule::Rfc => {}
            WindowRule::Linux { .. } => {
                if let Some(tuned) = &mut self.tuned {
                    let buffer = tuned.begin(segment.into(), offered, self.buffer);
                    self.take_buffer(buffer);
                }
                let (space, segment) = (self.data_space(), u64::from(segment));
                self.clamp = space.min(MAX_FIELD << shift);
                // One segment stays in reserve.
                if self.clamp > 2 * segment && self.clamp + segment > space {
                    self.clamp = (2 * segment).max(space - segment);
                }
                let grows = self.tuned.is_some() || self.linux_acks.policy.growth_from > 0;
                self.grown = if grows { offered.min(self.clamp) } else { self.clamp };
                let first = offered.min(self.grown).min(LINUX_FIRST_COPY * segment);
                self.first_window = u32::try_from(first).unwrap_or(u32::MAX);
            }
            WindowRule::FreeBsd { .. } => {
                if self.buffer > u64::from(mss) {
                    self.take_buffer(self.buffer.next_multiple_of(u64::from(mss)));
                }
            }
        }
        self.linux_acks.begin(segment, offered);
    }

    /// Bytes of window from `next` on to announce now; it never moves its right edge left.
    #[inline]
    pub(crate) fn window(&self) -> u64 {
        let offered = self.offered();
        match self.window_rule {
            // The right edge moves only by a segment or half the buffer at least, so that the
            // sender is not led to send small segments (RFC 9293 section 3.8.6.2.2).
            WindowRule::Rfc => {
                let room = self.room();
                if room >= offered + self.window_step() { room } else { offered }
            }
            WindowRule::Linux { .. } => self.next_linux_window(offered),
            WindowRule::FreeBsd { .. } => {
                let room = self.room();
                let room = if room < self.buffer / 4 && room < u64::from(self.mss) { 0 } else { room };
                self.aligned(room.max(offered)).min(self.expressible())
            }
        }
    }

    /// The window to announce where `offered` is left of the one that the peer knows of.
    #[inline(never)]
    fn next_linux_window(&self, offered: u64) -> u64 {
        self.linux_window().max(self.aligned(offered)).min(self.expressible())
    }

    /// The window that Linux would choose if none was offered yet.
    #[inline]
    pub(super) fn linux_window(&self) -> u64 {
        let unread = self.unread_at_ack();
        let free = self.space.saturating_sub(unread);
        let full = self.space.min(self.clamp);
        let is_plain = self.tuned.is_none()
            && self.reassembly.is_empty()
            && self.shift > 0
            && unread <= u64::from(self.peer_segment);
        if is_plain && full > 0 && free >= full / 2 {
            return self.aligned(free.min(self.grown));
        }
        self.any_linux_window()
    }

    /// The same of a buffer that is tuned, is more than half full or holds data beyond a gap, or of
    /// a window without a scale.
    #[inline(never)]
    fn any_linux_window(&self) -> u64 {
        let all = self.data_space();
        let full = all.min(self.clamp);
        let segment = if self.tuned.is_some() { self.segment_estimate() } else { self.linux_acks.segment() };
        let segment = u64::from(segment).min(full);
        if segment == 0 {
            return 0;
        }
        let mut free = self.free_space();
        if free < full / 2 {
            free = free >> self.shift << self.shift;
            // Going on would end in a full buffer, and data thrown away.
            if free < all >> 4 || free < segment {
                return 0;
            }
        }
        free = free.min(self.grown);
        if self.shift > 0 {
            return self.aligned(free);
        }
        let window = self.last_window;
        if window + segment <= free || window > free {
            free / segment * segment
        } else if segment == full && free > window + full / 2 {
            free
        } else {
            window
        }
    }

    /// A segment of `payload` bytes lets the largest window that may be offered grow (Linux
    /// `tcp_grow_window`, for a segment that takes no more than twice its payload of memory);
    /// whether it does.
    pub(super) fn grow_window(&mut self, payload: u32) -> bool {
        if self.grown >= self.clamp {
            return false;
        }
        let most = self.clamp.min(self.free_space());
        let room = most.saturating_sub(self.grown);
        self.grown += room.min(2 * u64::from(self.context.segment.max(payload)));
        room > 0
    }

    /// Quick ACKs end then (`__tcp_select_window`).
    #[inline]
    pub(super) fn is_half_full(&self) -> bool {
        let all = self.data_space();
        self.free_space() < all.min(self.clamp) / 2
    }

    #[inline]
    fn aligned(&self, window: u64) -> u64 {
        let rest = (1 << self.shift) - 1;
        (window + rest) & !rest
    }

    /// The part of the buffer that is for data: half (Linux `tcp_full_space` with
    /// `tcp_adv_win_scale` = 1).
    #[inline]
    pub(super) fn data_space(&self) -> u64 {
        if self.tuned.is_some() { self.window_of(self.buffer) } else { self.space }
    }

    /// The buffer is this large from now on.
    pub(super) fn take_buffer(&mut self, bytes: u64) {
        self.buffer = bytes;
        self.space = match self.window_rule {
            WindowRule::Linux { .. } => self.window_of(bytes),
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => bytes,
        };
    }

    /// Bytes held, in order and not read or beyond a gap.
    #[inline]
    pub(super) fn held(&self) -> u64 {
        self.next - self.read + self.reassembly.held()
    }

    /// Bytes that the buffer has room for beyond `next`.
    #[inline]
    pub(super) fn room(&self) -> u64 {
        let room = self.space.saturating_sub(self.next - self.read);
        if self.window_rule == WindowRule::Rfc { room.min(self.expressible()) } else { room }
    }

    /// The largest window that the field can express with the scale in force (RFC 7323 section
    /// 2.3).
    #[inline]
    fn expressible(&self) -> u64 {
        MAX_FIELD << self.shift
    }

    /// Half of the largest window, where RFC 9293 section 3.8.6.2.2 has half of the buffer: the
    /// buffer may be larger than any window that can be expressed.
    #[inline]
    fn half(&self) -> u64 {
        self.buffer.min(self.expressible()).div_ceil(2)
    }

    /// Units beyond `next` that are let in: what was announced to the peer and, except in Linux, no
    /// less than the buffer has room for.
    #[inline]
    pub(crate) fn acceptable(&self) -> u64 {
        match self.window_rule {
            WindowRule::Linux { .. } => self.offered(),
            WindowRule::Rfc | WindowRule::FreeBsd { .. } => self.room().max(self.offered()),
        }
    }

    /// The remainder of the window that the peer knows of.
    #[inline]
    pub(crate) fn offered(&self) -> u64 {
        self.announced.saturating_sub(self.next)
    }

    #[inline]
    fn window_step(&self) -> u64 {
        u64::from(self.peer_segment).min(self.half())
    }

    /// Returns `true` if the room that was just read is announced at once.
    #[inline]
    pub(super) fn opens_window(&self) -> bool {
        let offered = self.offered();
        match self.window_rule {
            // A window that was more than half closed and opens by a step; otherwise the next ACK
            // tells.
            WindowRule::Rfc => offered < self.half() && self.room() >= offered + self.window_step(),
            WindowRule::Linux { .. } => {
                2 * offered <= self.clamp && {
                    let window = self.linux_window();
                    window > 0 && window >= 2 * offered
                }
            }
            WindowRule::FreeBsd { .. } => {
                if self.delays_ack() {
                    return false;
                }
                let window = self.room().min(self.expressible());
                let more = window.saturating_sub(offered);
                if offered >> self.shift >= (more + offered) >> self.shift {
                    return false;
                }
                let segments = u64::from(self.mss);
                let much = more >= self.buffer / 4
                    || window <= self.buffer / 8
                    || self.buffer <= 8 * segments
                    || more >= self.expressible();
                more >= 2 * segments && much || 2 * more >= self.buffer
            }
        }
    }

    /// RFC 9293 section 3.10.7.4, first check. Data that overlaps the window is let in and cut.
    #[inline]
    pub(crate) fn accepts(&self, segment: &Segment, left: u64, right: u64, rules: &StateRules) -> bool {
        let next = self.next();
        // A sender may still send up to the right edge that was announced last.
        let window = self.acceptable();
        if let WindowRule::Linux { .. } = self.window_rule {
            // tcp_sequence: what ends where the last ACK stood has its ACK and timestamp read.
            let fits = right >= self.last_ack_sent() && left <= next + window;
            return fits && (right <= next + window || !(rules.refuses_overlong && self.is_overlong(segment, right)));
        }
        if right == left {
            // The right edge itself is where the ACKs of a peer that has filled the window stand.
            // Were they unacceptable, two such ends would answer each other's ACKs for ever.
            return left >= next && left <= next + window;
        }
        window > 0 && right > next && left < next + window
    }

    /// Returns `true` if a segment that ends at `right`, beyond the window, is too long. A FIN
    /// takes no room.
    #[cold]
    fn is_overlong(&self, segment: &Segment, right: u64) -> bool {
        let data = right - u64::from(segment.flags.contains(Flags::FIN));
        data > self.edge() && !self.is_drained()
    }

    // A buffer that is tuned.

    /// The part of `space` bytes of memory that is for data.
    #[inline(never)]
    fn window_of(&self, space: u64) -> u64 {
        match &self.tuned {
            Some(tuned) => tuned.window_of(space),
            None => WindowRule::Linux { most: 0 }.space(space),
        }
    }

    /// Room for data beyond what is held (`tcp_space`).
    #[inline]
    pub(super) fn free_space(&self) -> u64 {
        if self.tuned.is_some() {
            return self.window_of(self.buffer.saturating_sub(self.memory_held()));
        }
        let buffers = self.buffer_memory();
        let beyond = if self.has_gap() { self.reassembly.memory(buffers) } else { 0 };
        self.space.saturating_sub((buffers.of(self.unread_at_ack()) + beyond) / 2)
    }

    /// The memory of segments in a buffer of fixed size; in one that is tuned, bytes count.
    #[inline]
    pub(super) fn buffer_memory(&self) -> BufferMemory {
        BufferMemory::new(self.coalesces && self.tuned.is_none(), self.peer_segment)
    }

    /// The memory of what is held (`sk_rmem_alloc`).
    #[inline(never)]
    fn memory_held(&self) -> u64 {
        let segments = self.held().div_ceil(u64::from(self.peer_segment));
        segments * received_size(self.tuned.as_ref().map(|tuned| tuned.law()), u64::from(self.mss))
    }

    /// Data is about to be taken in, up to `right`: `payload` bytes, with an echoed timestamp and
    /// its age in milliseconds, if there is one, where segments have `segment` bytes.
    #[inline(never)]
    pub(crate) fn tune(&mut self, now: Time, payload: u32, echo: Option<(u32, u32)>, segment: u32) {
        let (read, drained, measured) = (self.read, self.is_drained(), self.segment_estimate());
        self.context.segment = segment;
        let Some(tuned) = &mut self.tuned else { return };
        if let Some(window) = tuned.measure_ratio(payload, self.mss, self.buffer) {
            self.clamp = window;
        }
        if let Some(at) = tuned.note_reading(now, read, drained) {
            let beyond = self.reassembly.end().saturating_sub(self.next);
            if let Some(wanted) = tuned.adjust_space((read, at), self.next - read, segment.into(), beyond) {
                self.enlarge(wanted);
            }
        }
        if let Some((value, age)) = echo.filter(|_| payload >= measured)
            && let Some(tuned) = &mut self.tuned
        {
            tuned.measure_echo(now, value, age, drained);
        }
    }

    /// The buffer is to be `buffer` bytes, if that is more, for a window of `window` bytes.
    fn enlarge(&mut self, (window, buffer): (u64, u64)) {
        if buffer <= self.buffer {
            return;
        }
        self.take_buffer(buffer);
        self.clamp = match &self.tuned {
            Some(tuned) if !tuned.law().bound_by_free => window,
            _ => self.data_space(),
        };
    }

    /// Data arrived in order (`tcp_event_data_recv`); whether the window grew.
    pub(super) fn tune_in_order(&mut self, now: Time, payload: u32) -> bool {
        let (next, window, drained) = (self.next, self.last_window, self.is_drained());
        if let Some(tuned) = &mut self.tuned {
            tuned.measure_window(now, next, window, drained);
        }
        payload >= LEAST_GROWING && self.grow_tuned(payload)
    }

    /// Data filled a gap, all or in part: it counts as in order where what lies beyond one does not
    /// widen the window.
    pub(super) fn tune_filled_gap(&mut self, now: Time, payload: u32) {
        if self.tuned.as_ref().is_some_and(|tuned| tuned.law().in_order_alone) {
            self.tune_in_order(now, payload);
        }
    }

    /// Data beyond a gap is about to be taken in (`tcp_data_queue_ofo`); whether the window grew.
    pub(super) fn grow_beyond(&mut self, payload: u32) -> bool {
        let in_order_alone = self.tuned.as_ref().is_some_and(|tuned| tuned.law().in_order_alone);
        !in_order_alone && self.grow_tuned(payload)
    }

    /// Tunes the buffer after data beyond a gap was taken in.
    pub(super) fn tune_beyond_gap(&mut self) {
        let segment = u64::from(self.context.segment);
        let Some(tuned) = &self.tuned else { return };
        let limit = tuned.limit();
        let beyond = self.reassembly.end().saturating_sub(self.next);
        if let Some(wanted) = tuned.wanted_beyond_gap(segment, beyond) {
            self.enlarge(wanted);
        }
        let memory = self.memory_held();
        if memory >= self.buffer {
            // tcp_clamp_window
            if let Some(most) = limit.filter(|&most| self.buffer < most) {
                self.take_buffer(memory.min(most));
            }
            if memory > self.buffer {
                self.grown = self.clamp.min(2 * segment).max(1);
            }
        }
    }

    /// `tcp_grow_window`; whether it grew.
    fn grow_tuned(&mut self, payload: u32) -> bool {
        let Some(tuned) = &self.tuned else { return false };
        let free = self.free_space();
        let most = match tuned.law().bound_by_free {
            true => self.clamp.min(free),
            false if self.grown >= free => return false,
            false => self.clamp,
        };
        let sizes = [self.context.segment, self.segment_estimate()].map(u64::from);
        let memory = received_size(Some(tuned.law()), u64::from(self.mss));
        let room = most.saturating_sub(self.grown);
        if room == 0 {
            return false;
        }
        let growth = tuned.growth(payload.into(), memory, self.grown, sizes);
        self.grown += room.min(growth);
        growth > 0
    }
}
