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

use crate::stack::tuning::{HEADERS, received_size, room_for, true_size};
use crate::{BufferGrowth, BufferTuning, TuningRules};

/// Half: `tcp_adv_win_scale` = 1, and `TCP_DEFAULT_SCALING_RATIO`, of 256.
const HALF: u64 = 128;
/// `tcp_adv_win_scale` = 2.
const THREE_QUARTERS: u64 = 192;
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

    /// The rules of the release.
    #[inline]
    pub(super) fn law(&self) -> &TuningRules {
        &self.rules.law
    }

    /// The largest buffer; `None` if it stays as it is.
    #[inline]
    pub(super) fn limit(&self) -> Option<u64> {
        (!self.locked).then_some(self.rules.most)
    }

    /// The first window is no larger than this.
    pub(super) fn first_window(&self, segment: u64) -> u64 {
        match self.rules.law.first_segments {
            0 => u64::MAX,
            segments => segments * segment,
        }
    }

    /// `tcp_win_from_space`.
    #[inline]
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
    #[inline]
    pub(super) fn growth(&self, payload: u64, memory: u64, grown: u64, [announced, measured]: [u64; 2]) -> u64 {
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

    /// The handshake is over, and a window of `offered` bytes announced (`tcp_init_buffer_space`);
    /// returns the buffer in place of one of `buffer` bytes.
    pub(super) fn begin(&mut self, segment: u64, offered: u64, buffer: u64) -> u64 {
        self.space = if self.rules.law.ten_segments_at_first { offered.min(10 * segment) } else { offered };
        self.fixed_up(buffer, segment)
    }

    /// The largest segments show what part of memory data takes (`tcp_measure_rcv_mss`); returns the
    /// window of a buffer of `buffer` bytes if that part is another one now.
    #[inline]
    pub(super) fn measure_ratio(&mut self, payload: u32, mss: u32, buffer: u64) -> Option<u64> {
        if payload <= self.largest {
            return None;
        }
        self.largest = payload;
        if !self.rules.law.measures_ratio {
            return None;
        }
        let memory = received_size(Some(&self.rules.law), mss.into());
        let ratio = ((u64::from(payload) << 8) / memory).clamp(1, 255);
        if ratio == self.ratio {
            return None;
        }
        self.ratio = ratio;
        let window = self.window_of(buffer);
        self.space = self.space.min(window);
        Some(window)
    }

    /// Data arrives, and the application has read up to `read`; returns when it copied what it has
    /// read since the data before.
    #[inline]
    pub(super) fn note_reading(&mut self, now: Time, read: u64, drained: bool) -> Option<Time> {
        let copied_at = if drained { self.now } else { now };
        self.now = now;
        // By the round trip that was known when it was copied.
        if self.copied.1 == Time::NEVER {
            self.copied = (read, now);
            return None;
        }
        (read > std::mem::replace(&mut self.read, read)).then_some(copied_at)
    }

    /// `tcp_rcv_space_adjust`: the application has read up to `read`, at `at`, with `unread` bytes
    /// left; returns the window and the buffer that this asks for.
    #[inline]
    pub(super) fn adjust_space(
        &mut self,
        (read, at): (u64, Time),
        unread: u64,
        segment: u64,
        beyond: u64,
    ) -> Option<(u64, u64)> {
        let (from, since) = self.copied;
        if self.rtt == 0 || at < since || self.between(since, at).as_nanos() < self.rtt / 8 {
            return None;
        }
        let mut copied = read - from;
        if self.rules.law.unread_apart {
            copied = copied.saturating_sub(unread);
        }
        self.copied = (read, at);
        let enough = if self.rules.law.remembers_twice { 2 * copied } else { copied };
        if enough <= self.space {
            return None;
        }
        let wanted = self.wanted(copied, segment, beyond);
        self.space = enough;
        wanted
    }

    /// The window and the buffer that data beyond a gap asks for, up to `beyond` bytes from it.
    #[inline]
    pub(super) fn wanted_beyond_gap(&self, segment: u64, beyond: u64) -> Option<(u64, u64)> {
        if self.rules.law.grows_beyond_gaps { self.wanted(self.space, segment, beyond) } else { None }
    }

    /// `tcp_rcv_rtt_measure_ts`: the age of a timestamp that data echoes.
    #[inline]
    pub(super) fn measure_echo(&mut self, now: Time, value: u32, age: u32, drained: bool) {
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
    #[inline]
    pub(super) fn measure_window(&mut self, now: Time, next: u64, window: u64, drained: bool) {
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
