//! The clock of a host's timers.
//!
//! # Source
//! Linux `kernel/time/timer.c` of 6.1 (`calc_wheel_index`) and, until 4.7, `kernel/timer.c`
//! (`__run_timers`); FreeBSD `sys/kern/kern_timeout.c` until 9 (`callout_tick`).
//!
//! # Departures
//! - The ticks of all hosts fall on the same times, counted from time 0.
//! - A wheel turns for the retransmission timer of its connection alone; a kernel has one for each
//!   processor.
//! - From 3.15 on a timeout is rounded up (`usecs_to_jiffies`); with the hosts before the wheel it
//!   is cut. Waits of 256 ticks and more are late by up to 0.4 % from 2.6.35 to 4.7
//!   (`apply_slack`).
//! - Round trips are measured exactly, and added to exact bounds: a timeout is cut to whole ticks
//!   when its timer is set, where those systems do so with each of its parts.

use ackclock_units::{Span, Time};

/// When timers expire.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Ticks {
    /// From one tick to the next, in nanoseconds. An endpoint holds this twice.
    length: u32,
    /// `true` rounds as Linux since 4.8; otherwise a wait is cut to whole ticks, one at least, the
    /// first of which is over with the next tick.
    wheel: bool,
}

impl Ticks {
    /// The longest tick.
    pub const LONGEST: Span = Span::from_secs(1);

    /// Linux's rounding since 4.8.
    pub const WHEEL: Ticks = Ticks { length: 0, wheel: true };

    /// The same with the ticks of a kernel whose `HZ` is 250.
    pub const WHEEL_250: Ticks = Ticks { length: 4_000_000, wheel: true };

    /// These ticks with `length` from one to the next: 4 ms if `HZ` is 250. 0, the default: a timer
    /// expires exactly when it should. `None` if that is longer than [`Ticks::LONGEST`].
    pub fn of_length(self, length: Span) -> Option<Ticks> {
        let length = u32::try_from(length.as_nanos()).ok().filter(|_| length <= Ticks::LONGEST)?;
        Some(Ticks { length, ..self })
    }

    /// Time from one tick to the next.
    pub fn length(self) -> Span {
        Span::from_nanos(self.length.into())
    }

    /// A timeout as the host keeps it: in whole ticks, rounded up, where Linux does so
    /// (`icsk_rto`, `usecs_to_jiffies`).
    #[inline]
    pub(crate) fn whole(self, timeout: Span) -> Span {
        match u64::from(self.length) {
            tick if self.wheel && tick > 0 => Span::from_nanos(timeout.as_nanos().div_ceil(tick).saturating_mul(tick)),
            _ => timeout,
        }
    }

    /// When a timer that is started at `now` expires.
    #[inline]
    pub(crate) fn expiry(self, now: Time, wait: Span) -> Time {
        if self.are_exact() { now + wait } else { self.at(self.tick_of(self.passed(now), wait, false)) }
    }

    /// Returns `true` if timers expire exactly when they should.
    #[inline]
    pub(crate) fn are_exact(self) -> bool {
        self.length == 0
    }

    /// Ticks that have passed at `at`; 0 if there are none.
    #[inline]
    pub(crate) fn passed(self, at: Time) -> u64 {
        if self.are_exact() { 0 } else { at.as_nanos() / u64::from(self.length) }
    }

    /// When so many ticks have passed.
    #[inline]
    pub(crate) fn at(self, tick: u64) -> Time {
        Time::ZERO + Span::from_nanos(tick.saturating_mul(self.length.into()))
    }

    /// The tick with which a timer expires that is started once `passed` are over; `ran` if the
    /// wheel has run in this one.
    #[inline]
    pub(crate) fn tick_of(self, passed: u64, wait: Span, ran: bool) -> u64 {
        let (wait, tick) = (wait.as_nanos(), u64::from(self.length));
        if self.wheel {
            slot(passed, wait.div_ceil(tick).max(1), ran)
        } else {
            passed.saturating_add((wait / tick).max(1))
        }
    }

    /// The least that Linux waits for a timer which is no retransmission's (`TCP_TIMEOUT_MIN`); 0
    /// if no tick is set.
    pub(crate) fn two(self) -> Span {
        self.length() * 2
    }
}

/// The wait is counted from the tick before, the tick after that is the first that is not too
/// early, and the wheel takes only every eighth from 63 ticks on, every 64th from 504 ticks on, and
/// so on. Its own clock is a tick ahead once it `ran` in this one (`__run_timers`,
/// `forward_timer_base`): that many ticks are one less then.
#[inline]
fn slot(passed: u64, ticks: u64, ran: bool) -> u64 {
    // Nearly all timers are in the first level.
    if ticks - u64::from(ran) < 63 {
        return passed.saturating_add(ticks + 1);
    }
    let mut shift = 3;
    while shift < 24 && ticks - u64::from(ran) >= 63 << shift {
        shift += 3;
    }
    (passed.saturating_add(ticks) >> shift).saturating_add(1).saturating_mul(1 << shift)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ms(millis: u64) -> Time {
        Time::ZERO + Span::from_millis(millis)
    }

    #[test]
    fn the_wheel_of_linux_by_hand() {
        let ticks = Ticks { length: 4_000_000, wheel: true };
        let at = |now, wait| ticks.expiry(ms(now), Span::from_millis(wait));
        // 27 ms are 7 ticks, from tick 25: tick 32, and one more.
        assert_eq!(at(101, 27), ms(33 * 4));
        // 248 ms are 62 ticks: still the first level. 252 ms are 63: tick 63 is in the slot that
        // ends with tick 64.
        assert_eq!((at(0, 248), at(0, 252)), (ms(63 * 4), ms(64 * 4)));
        // 342 ms are 86 ticks, from tick 105: 191, whose slot ends with 192; at 192 it would
        // be 200.
        assert_eq!((at(421, 342), at(424, 342)), (ms(192 * 4), ms(200 * 4)));
        // 2016 ms are 504 ticks: slots of 64.
        assert_eq!((at(0, 2012), at(0, 2016)), (ms(504 * 4), ms(512 * 4)));
        // From tick 568 on, 504 are 503 if the wheel ran in it: slots of eight, 1072 ends with 1080.
        let after = |ran| ticks.at(ticks.tick_of(568, Span::from_millis(2016), ran));
        assert_eq!((after(false), after(true)), (ms(1088 * 4), ms(1080 * 4)));
    }

    #[test]
    fn a_timeout_is_kept_in_whole_ticks() {
        let wheel = Ticks { length: 4_000_000, wheel: true };
        // 253 ms are 64 ticks, which are doubled; 256 stay.
        let of = |ticks: Ticks, wait| ticks.whole(Span::from_millis(wait));
        assert_eq!((of(wheel, 253), of(wheel, 256)), (Span::from_millis(256), Span::from_millis(256)));
        for exact in [Ticks::WHEEL, Ticks { wheel: false, ..wheel }] {
            assert_eq!(of(exact, 253), Span::from_millis(253));
        }
    }

    #[test]
    fn before_the_wheel_a_timer_expires_with_its_last_tick() {
        let ticks = Ticks { length: 4_000_000, wheel: false };
        let at = |now, wait| ticks.expiry(ms(now), Span::from_millis(wait));
        // 10 ticks of HZ = 250: 40 ms from a tick on, and up to 4 ms less after one.
        assert_eq!((at(100, 40), at(101, 40), at(103, 40)), (ms(140), ms(140), ms(140)));
        // 43 ms are 10 ticks as well; less than one is one.
        assert_eq!((at(100, 43), at(101, 1)), (ms(140), ms(104)));
        let exact = Ticks::default();
        assert_eq!(exact.expiry(ms(101), Span::from_micros(40_500)), Time::ZERO + Span::from_micros(141_500));
    }

    #[test]
    fn no_wait_is_too_long() {
        for wheel in [false, true] {
            for (now, wait) in [(u64::MAX, u64::MAX), (u64::MAX, 0), (0, u64::MAX), (1 << 63, 1 << 63)] {
                let now = Time::ZERO + Span::from_nanos(now);
                let ticks = Ticks { length: 1, wheel };
                assert!(ticks.expiry(now, Span::from_nanos(wait)) >= now);
            }
        }
    }

    #[test]
    fn a_tick_is_a_second_at_most() {
        let ticks = Ticks::WHEEL;
        assert_eq!(ticks.of_length(Ticks::LONGEST).map(Ticks::length), Some(Ticks::LONGEST));
        assert_eq!(ticks.of_length(Ticks::LONGEST + Span::from_nanos(1)), None);
        assert_eq!(ticks.of_length(Span::from_secs(1 << 33)), None);
    }
}
