//! Linux's tuning of the receive buffer: dynamic right-sizing.
//!
//! The receiver measures its round trip, and how much the application copies in one. The buffer is
//! to hold twice that and more while the rate grows, and the window follows it. A window is of
//! memory: what waits behind a gap takes its overhead along.
//!
//! # Source
//! `tcp_rcv_space_adjust`, `tcp_rcv_rtt_update`, `tcp_rcv_rtt_measure`, `tcp_rcv_rtt_measure_ts`,
//! `tcp_grow_window`, `__tcp_grow_window`, `tcp_fixup_rcvbuf`, `tcp_init_buffer_space`,
//! `tcp_clamp_window`, `tcp_measure_rcv_mss`, `tcp_rcvbuf_grow`, `tcp_data_queue_ofo`
//! (`net/ipv4/tcp_input.c`), `tcp_win_from_space` (`tcp.h`) of Linux 2.6.32, 3.9, 4.0, 6.1 and
//! 6.18. W.
//! Feng, M. Fisk et al., "Dynamic Right-Sizing in TCP", LACSI 2001.
//!
//! # Departures
//! - Every packet takes the memory of one that a network card's driver has allocated for its MTU.
//!   Packets next to each other do not share it (`tcp_try_coalesce`), and the memory of those held
//!   is that of full segments.
//! - A packet is not thrown away for want of memory (`tcp_prune_queue`); memory that all sockets
//!   share (`tcp_mem`) is never short.
//! - What the application copied is looked at when the next data arrives, as of when it was copied,
//!   which is when the last data arrived if it is all read.
//! - The reserve of `tcp_app_win` = 31 is 0.

use ackclock_units::{Span, Time};

use super::Receiver;
use crate::stack::tuning::{HEADERS, OVERHEAD, received_size, room_for, true_size};
use crate::{BufferGrowth, BufferTuning, TuningRules, WindowRule};

/// The least payload that lets the window grow by data in order (`tcp_event_data_recv`).
const LEAST_GROWING: u32 = 128;
/// Half: `tcp_adv_win_scale` = 1, and `TCP_DEFAULT_SCALING_RATIO`, of 256.
const HALF: u64 = 128;
/// `tcp_adv_win_scale` = 2.
const THREE_QUARTERS: u64 = 192;
/// Segments that share a buffer: `MAX_SKB_FRAGS` is 17, and a segment in 22 lies in two
/// pages of 32 KiB (`sk_page_frag_refill`).
const COALESCED: u64 = 16;
/// `TCP_MSS_DEFAULT`: no segment is larger at first.
const FIRST_SEGMENT: u32 = 536;

/// The state of a buffer that is tuned.
#[derive(Debug)]
pub(super) struct Tuned {
    rules: BufferTuning,
    /// SO_RCVBUF was set: the buffer stays as it is.
    locked: bool,
    /// When the last data arrived.
    now: Time,
    /// Eight times the round trip, in nanoseconds; 0 before the first sample.
    rtt: u64,
    /// The window that is waited for to arrive, and since when.
    window: Option<(u64, Time)>,
    last_echo: Option<u32>,
    /// Where the stream was read to when the last data arrived.
    read: u64,
    /// The position to which the stream was read at the beginning of the interval, and the time of
    /// that.
    copied: (u64, Time),
    /// Bytes copied in the best interval (`rcvq_space.space`).
    space: u64,
    /// The share of memory that is for data, of 256.
    ratio: u64,
    largest: u32,
}

impl Tuned {
    pub(super) fn new(rules: BufferTuning) -> Tuned {
        Tuned {
            rules,
            locked: false,
            now: Time::ZERO,
            rtt: 0,
            window: None,
            last_echo: None,
            read: 1,
            copied: (1, Time::NEVER),
            space: 0,
            ratio: if rules.law.three_quarters { THREE_QUARTERS } else { HALF },
            largest: FIRST_SEGMENT,
        }
    }

    pub(super) fn lock(&mut self) {
        self.locked = true;
    }

    /// The first window is no larger than this.
    pub(super) fn first_window(&self, segment: u64) -> u64 {
        match self.rules.law.first_segments {
            0 => u64::MAX,
            segments => segments * segment,
        }
    }

    /// `tcp_win_from_space`.
    pub(super) fn window_of(&self, space: u64) -> u64 {
        // Rounded up: space - (space >> tcp_adv_win_scale).
        match self.ratio {
            HALF => space - space / 2,
            THREE_QUARTERS if self.rules.law.three_quarters => space - space / 4,
            ratio => (space * ratio) >> 8,
        }
    }

    /// The buffer of an open connection with a first one of `buffer` bytes (`tcp_fixup_rcvbuf`).
    fn fixed_up(&self, buffer: u64, segment: u64) -> u64 {
        let TuningRules { first_segments, eightfold_first_buffer, .. } = self.rules.law;
        let wanted = match eightfold_first_buffer {
            true => 8 * true_size(segment + HEADERS) * first_segments,
            false => first_segments * self.memory_of_segment(segment),
        };
        if buffer < wanted && !self.locked { wanted.min(self.rules.most).max(buffer) } else { buffer }
    }

    /// Memory with which a window has room for a segment (`rcvmem`).
    fn memory_of_segment(&self, segment: u64) -> u64 {
        let mut memory = room_for(&self.rules.law, segment);
        while self.window_of(memory) < segment {
            memory += 128;
        }
        memory
    }

    /// A sample of the round trip (`tcp_rcv_rtt_update`), by the time that a window took to arrive
    /// if `by_window`; `drained` if everything is read.
    fn sample(&mut self, sample: Span, by_window: bool, drained: bool) {
        let sample = sample.as_nanos();
        let scaled = 8 * sample;
        let before = self.rtt;
        let least = by_window || self.rules.law.shorter_at_once;
        let stays = by_window || self.rules.law.longer_if_drained && !drained;
        self.rtt = match before {
            0 => scaled,
            _ if least && scaled < before => scaled,
            _ if stays => before,
            _ => before - before / 8 + sample,
        };
    }

    /// Time between two moments as the host counts it.
    fn between(&self, from: Time, to: Time) -> Span {
        if !self.rules.law.jiffies {
            return to.since(from);
        }
        let tick = self.rules.law.tick().as_nanos();
        let ticks = to.as_nanos() / tick - from.as_nanos() / tick;
        Span::from_nanos(ticks * tick)
    }

    /// By how much a segment of `payload` bytes widens the window (`tcp_grow_window`), which is
    /// `grown` now; 0 if its memory is out of proportion.
    fn growth(&self, payload: u64, memory: u64, grown: u64, [announced, measured]: [u64; 2]) -> u64 {
        let mut memory = self.window_of(memory);
        if memory <= payload {
            return (2 * announced).max(2 * payload);
        }
        memory /= 2;
        let mut window = self.window_of(self.rules.most) / 2;
        while grown <= window {
            if memory <= payload {
                return (2 * measured).max(2 * payload);
            }
            (memory, window) = (memory / 2, window / 2);
        }
        0
    }

    /// The window and the buffer that `copied` bytes in a round trip ask for, for segments of
    /// `segment` bytes, with `beyond` bytes up to the end of what waits behind a gap; `None` if the
    /// buffer stays.
    fn wanted(&self, copied: u64, segment: u64, beyond: u64) -> Option<(u64, u64)> {
        if self.locked {
            return None;
        }
        let before = self.space.max(1);
        // Twice the growth.
        let grown = |window: u64| 2 * (u128::from(window) * u128::from(copied - self.space) / u128::from(before));
        let grown = |window: u64| u64::try_from(grown(window)).unwrap_or(u64::MAX);
        let (window, buffer) = match self.rules.law.growth {
            BufferGrowth::Twice => {
                let window = 2 * copied;
                (window, (window / segment).max(1) * self.memory_of_segment(segment))
            }
            BufferGrowth::Steps => {
                let mut window = 2 * copied + 16 * segment;
                if copied >= before + before / 2 {
                    window *= 2;
                } else if copied >= before + before / 4 {
                    window += window / 2;
                }
                (window, window / segment * self.memory_of_segment(segment))
            }
            BufferGrowth::Proportion => {
                let window = 2 * copied + 16 * segment;
                let window = window.saturating_add(grown(window));
                (window, (window / segment).saturating_mul(self.memory_of_segment(segment)))
            }
            BufferGrowth::ProportionAndGaps => {
                let window = 2 * copied;
                let window = window.saturating_add(grown(window)).saturating_add(beyond);
                (window, u64::try_from((u128::from(window) << 8) / u128::from(self.ratio)).unwrap_or(u64::MAX))
            }
        };
        Some((window, buffer.min(self.rules.most)))
    }
}

impl Receiver {
    /// The part of `space` bytes of memory that is for data.
    #[inline(never)]
    pub(super) fn window_of(&self, space: u64) -> u64 {
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
        let memory = |(left, right)| self.shared_memory(right - left);
        let beyond: u64 = if self.has_gap() { self.reassembly.ranges().map(memory).sum() } else { 0 };
        self.space.saturating_sub((self.shared_memory(self.unread_at_ack()) + beyond) / 2)
    }

    /// The memory of `bytes` bytes of segments next to each other in a buffer of fixed size, where
    /// as many as a buffer has fragments may share one overhead; no more than was counted on.
    fn shared_memory(&self, bytes: u64) -> u64 {
        if bytes == 0 || !self.coalesces {
            return 2 * bytes;
        }
        let most = COALESCED * u64::from(self.peer_segment);
        let buffers = if bytes <= most { 1 } else { bytes.div_ceil(most) };
        (bytes + OVERHEAD * buffers).min(2 * bytes)
    }

    /// The memory of what is held (`sk_rmem_alloc`).
    #[inline(never)]
    fn memory_held(&self) -> u64 {
        let segments = self.held().div_ceil(u64::from(self.peer_segment));
        segments * received_size(self.tuned.as_ref().map(|tuned| &tuned.rules.law), u64::from(self.mss))
    }

    /// The handshake is over, and a window of `offered` bytes announced (`tcp_init_buffer_space`).
    pub(super) fn begin_tuning(&mut self, segment: u64, offered: u64) {
        let Some(tuned) = &mut self.tuned else { return };
        tuned.space = if tuned.rules.law.ten_segments_at_first { offered.min(10 * segment) } else { offered };
        let buffer = tuned.fixed_up(self.buffer, segment);
        self.take_buffer(buffer);
    }

    /// Data is about to be taken in, up to `right`: `payload` bytes, with an echoed timestamp and
    /// its age in milliseconds, if there is one, where segments have `segment` bytes.
    #[inline(never)]
    pub(crate) fn tune(&mut self, now: Time, payload: u32, echo: Option<(u32, u32)>, segment: u32) {
        let (read, drained, measured) = (self.read, self.is_drained(), self.segment_estimate());
        self.context.segment = segment;
        self.measure_ratio(payload);
        let Some(tuned) = &mut self.tuned else { return };
        let copied_at = if drained { tuned.now } else { now };
        tuned.now = now;
        // By the round trip that was known when it was copied.
        if tuned.copied.1 == Time::NEVER {
            tuned.copied = (read, now);
        } else if read > std::mem::replace(&mut tuned.read, read) {
            self.adjust_space(read, copied_at, u64::from(segment));
        }
        if let Some((value, age)) = echo.filter(|_| payload >= measured)
            && let Some(tuned) = &mut self.tuned
        {
            tuned.measure_echo(now, value, age, drained);
        }
    }

    /// `tcp_rcv_space_adjust`: the application has read up to `read`, at `at`.
    fn adjust_space(&mut self, read: u64, at: Time, segment: u64) {
        let beyond = self.reassembly.end().saturating_sub(self.next);
        let unread = self.next - read;
        let Some(tuned) = &mut self.tuned else { return };
        let (from, since) = tuned.copied;
        if tuned.rtt == 0 || at < since || tuned.between(since, at).as_nanos() < tuned.rtt / 8 {
            return;
        }
        let mut copied = read - from;
        if tuned.rules.law.unread_apart {
            copied = copied.saturating_sub(unread);
        }
        tuned.copied = (read, at);
        let enough = if tuned.rules.law.remembers_twice { 2 * copied } else { copied };
        if enough <= tuned.space {
            return;
        }
        let wanted = tuned.wanted(copied, segment, beyond);
        tuned.space = enough;
        if let Some((window, buffer)) = wanted {
            self.enlarge(window, buffer);
        }
    }

    /// The buffer is to be `buffer` bytes, if that is more, for a window of `window` bytes.
    fn enlarge(&mut self, window: u64, buffer: u64) {
        if buffer <= self.buffer {
            return;
        }
        self.take_buffer(buffer);
        self.clamp = match &self.tuned {
            Some(tuned) if !tuned.rules.law.bound_by_free => window,
            _ => self.data_space(),
        };
    }

    /// The largest segments show what part of memory data takes (`tcp_measure_rcv_mss`).
    fn measure_ratio(&mut self, payload: u32) {
        let Some(tuned) = &mut self.tuned else { return };
        if payload <= tuned.largest {
            return;
        }
        tuned.largest = payload;
        if !tuned.rules.law.measures_ratio {
            return;
        }
        let memory = received_size(Some(&tuned.rules.law), u64::from(self.mss));
        let ratio = ((u64::from(payload) << 8) / memory).clamp(1, 255);
        if ratio != tuned.ratio {
            tuned.ratio = ratio;
            let window = tuned.window_of(self.buffer);
            tuned.space = tuned.space.min(window);
            self.clamp = window;
        }
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
        let Some(tuned) = &self.tuned else { return };
        if tuned.rules.law.in_order_alone {
            self.tune_in_order(now, payload);
        }
    }

    /// Data beyond a gap is about to be taken in (`tcp_data_queue_ofo`); whether the window grew.
    pub(super) fn grow_beyond(&mut self, payload: u32) -> bool {
        let in_order_alone = self.tuned.as_ref().is_some_and(|tuned| tuned.rules.law.in_order_alone);
        !in_order_alone && self.grow_tuned(payload)
    }

    /// Tunes the buffer after data beyond a gap was taken in.
    pub(super) fn tune_beyond_gap(&mut self) {
        let segment = u64::from(self.context.segment);
        let beyond = self.reassembly.end().saturating_sub(self.next);
        let Some(tuned) = &self.tuned else { return };
        let (most, locked) = (tuned.rules.most, tuned.locked);
        if tuned.rules.law.grows_beyond_gaps
            && let Some(tuned) = &self.tuned
            && let Some((window, buffer)) = tuned.wanted(tuned.space, segment, beyond)
        {
            self.enlarge(window, buffer);
        }
        let memory = self.memory_held();
        if memory >= self.buffer {
            // tcp_clamp_window
            if !locked && self.buffer < most {
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
        let most = match tuned.rules.law.bound_by_free {
            true => self.clamp.min(free),
            false if self.grown >= free => return false,
            false => self.clamp,
        };
        let sizes = [self.context.segment, self.segment_estimate()].map(u64::from);
        let memory = received_size(self.tuned.as_ref().map(|tuned| &tuned.rules.law), u64::from(self.mss));
        let room = most.saturating_sub(self.grown);
        if room == 0 {
            return false;
        }
        let growth = tuned.growth(payload.into(), memory, self.grown, sizes);
        self.grown += room.min(growth);
        growth > 0
    }
}

impl Tuned {
    /// `tcp_rcv_rtt_measure_ts`: the age of a timestamp that data echoes.
    fn measure_echo(&mut self, now: Time, value: u32, age: u32, drained: bool) {
        if self.rules.law.shorter_at_once && self.last_echo.replace(value) == Some(value) {
            return;
        }
        let (tick_ms, now_ms) = (self.rules.law.tick_ms(), now.as_nanos() / 1_000_000);
        let Some(then) = now_ms.checked_sub(u64::from(age)) else { return };
        let ticks = now_ms / tick_ms - then / tick_ms;
        if ticks == 0 && self.rules.law.longer_if_drained {
            return;
        }
        self.sample(self.rules.law.tick() * ticks.max(1), false, drained);
    }

    /// `tcp_rcv_rtt_measure`: the time that a window of data takes.
    fn measure_window(&mut self, now: Time, next: u64, window: u64, drained: bool) {
        if let Some((edge, since)) = self.window {
            if next < edge {
                return;
            }
            let least = if self.rules.law.jiffies { self.rules.law.tick() } else { Span::from_micros(1) };
            let sample = self.between(since, now).max(least);
            self.sample(sample, true, drained);
        }
        self.window = Some((next + window, now));
    }
}

#[cfg(test)]
mod tests;
