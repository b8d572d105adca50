//! The parameters that the two ends agreed on in the handshake: the segment size, SACK, window
//! scaling and timestamps, with the state that timestamps keep for the connection (RFC 7323).

use ackclock_packet::{Flags, Segment, Timestamps};
use ackclock_units::{Span, Time};

use crate::Config;

/// A TS.Recent older than this is not compared any more (RFC 7323 section 5.5).
const PAWS_IDLE: Span = Span::from_secs(24 * 24 * 3600);
/// Bytes of a timestamps option with its padding.
const TIMESTAMPS_LEN: u32 = 12;
/// Timestamps that are ahead of TS.Recent by fewer ticks are newer, with any slack below this.
pub(crate) const MOST_AHEAD: u32 = 1 << 30;
/// A larger shift is used as this (RFC 7323 section 2.3).
const LARGEST_SHIFT: u8 = 14;

/// The options in force.
#[derive(Debug)]
pub(crate) struct Negotiated {
    mss: u32,
    sack: bool,
    timestamps: bool,
    scaling: bool,
    peer_shift: u8,
    /// TS.Recent and when it was set.
    recent: u32,
    recent_at: Time,
    /// Added to the millisecond clock of TSval.
    clock_offset: u32,
}

impl Negotiated {
    /// Nothing is agreed on yet; segments have up to `mss` bytes, and the timestamp clock starts at
    /// `clock_offset`.
    pub(crate) fn new(mss: u32, clock_offset: u32) -> Negotiated {
        Negotiated {
            mss,
            sack: false,
            timestamps: false,
            scaling: false,
            peer_shift: 0,
            recent: 0,
            recent_at: Time::ZERO,
            clock_offset,
        }
    }

    /// The peer's SYN has arrived: what both ends support is in force.
    pub(crate) fn agree(&mut self, now: Time, config: &Config, syn: &Segment) {
        self.sack = config.knows_sack() && syn.sack_permitted;
        self.scaling = config.window_scaling && syn.window_scale.is_some();
        self.peer_shift = if self.scaling { syn.window_scale.unwrap_or(0).min(LARGEST_SHIFT) } else { 0 };
        self.timestamps = config.timestamps && syn.timestamps.is_some();
        if let Some(timestamps) = syn.timestamps {
            (self.recent, self.recent_at) = (timestamps.value, now);
        }
    }

    /// Payload bytes of a full segment.
    #[inline]
    pub(crate) fn mss(&self) -> u32 {
        self.mss
    }

    /// Full segments have `mss` bytes from now on; returns what they had before.
    pub(crate) fn set_mss(&mut self, mss: u32) -> u32 {
        std::mem::replace(&mut self.mss, mss)
    }

    /// SACK (RFC 2018).
    #[inline]
    pub(crate) fn sack(&self) -> bool {
        self.sack
    }

    /// Timestamps (RFC 7323 section 3).
    #[inline]
    pub(crate) fn timestamps(&self) -> bool {
        self.timestamps
    }

    /// Window scaling (RFC 7323 section 2).
    pub(crate) fn scaling(&self) -> bool {
        self.scaling
    }

    /// The peer's window scale; 0 without scaling.
    #[inline]
    pub(crate) fn peer_shift(&self) -> u8 {
        self.peer_shift
    }

    /// Bytes of the options that were agreed on and that every data segment carries.
    #[inline]
    pub(crate) fn options_len(&self) -> u32 {
        if self.timestamps { TIMESTAMPS_LEN } else { 0 }
    }

    /// TSval: milliseconds, from a start of its own.
    #[inline]
    pub(crate) fn clock(&self, now: Time) -> u32 {
        ((now.as_nanos() / 1_000_000) as u32).wrapping_add(self.clock_offset)
    }

    /// The option of a segment that is sent at `now`.
    #[inline]
    pub(crate) fn stamp(&self, now: Time) -> Timestamps {
        Timestamps { value: self.clock(now), echo: self.recent }
    }

    /// Age in milliseconds, modulo 2^32, of the timestamp that `segment` echoes.
    #[inline]
    pub(crate) fn echo_age(&self, now: Time, segment: &Segment) -> Option<u32> {
        let stamps = segment.timestamps.filter(|stamps| self.timestamps && stamps.echo != 0)?;
        Some(self.clock(now).wrapping_sub(stamps.echo))
    }

    /// Karn's rule leaves no sample; the echo shows which transmission was answered, in
    /// milliseconds.
    pub(crate) fn echoed_rtt(&self, now: Time, segment: &Segment) -> Option<Span> {
        let ticks = self.echo_age(now, segment)?;
        (ticks < 1 << 31).then(|| Span::from_millis(u64::from(ticks.max(1))))
    }

    /// Returns `true` if the timestamp that a SYN/ACK echoes is none that was sent since the first
    /// SYN, which had the timestamp `first`.
    pub(crate) fn echoes_another(&self, now: Time, segment: &Segment, first: u32) -> bool {
        let echo = segment.timestamps.map_or(0, |stamps| stamps.echo);
        echo != 0 && echo.wrapping_sub(first) > self.clock(now).wrapping_sub(first)
    }

    /// RFC 7323 section 5: whether the timestamp is older than TS.Recent by no more than `slack`
    /// ticks.
    #[inline]
    pub(crate) fn passes_paws(&self, now: Time, segment: &Segment, slack: u32) -> bool {
        !self.timestamps
            || segment.flags.contains(Flags::RST)
            || segment.timestamps.is_none_or(|timestamps| self.is_current(now, timestamps.value, slack))
    }

    /// Returns `true` if a TSval is older than TS.Recent by no more than `slack` ticks, or
    /// TS.Recent is too old itself to tell (RFC 7323 section 5.5).
    fn is_current(&self, now: Time, value: u32, slack: u32) -> bool {
        (value.wrapping_add(slack).wrapping_sub(self.recent) as i32) >= 0 || now.since(self.recent_at) > PAWS_IDLE
    }

    /// The timestamp of `segment`, which advances the left edge, is echoed from now on (RFC 7323
    /// section 4.3), unless it is older.
    #[inline]
    pub(crate) fn update_recent(&mut self, now: Time, segment: &Segment) {
        if let Some(timestamps) = segment.timestamps.filter(|_| self.timestamps)
            && self.is_current(now, timestamps.value, 0)
        {
            (self.recent, self.recent_at) = (timestamps.value, now);
        }
    }

    /// Returns `true` if `timestamps` are present exactly when agreed on, and TSval is ahead of
    /// TS.Recent by less than [`MOST_AHEAD`].
    #[inline]
    pub(crate) fn expects(&self, timestamps: Option<Timestamps>) -> bool {
        match timestamps {
            Some(timestamps) => self.timestamps && timestamps.value.wrapping_sub(self.recent) < MOST_AHEAD,
            None => !self.timestamps,
        }
    }

    /// By how many ticks the timestamp of `segment` is ahead of TS.Recent; negative if it is
    /// behind.
    pub(crate) fn ahead_of_recent(&self, segment: &Segment) -> Option<i32> {
        let timestamps = segment.timestamps.filter(|_| self.timestamps)?;
        Some(timestamps.value.wrapping_sub(self.recent) as i32)
    }

    /// TSval at time 0.
    #[cfg(test)]
    pub(crate) fn clock_offset(&self) -> u32 {
        self.clock_offset
    }

    /// TS.Recent.
    #[cfg(test)]
    pub(crate) fn recent(&self) -> u32 {
        self.recent
    }
}
