//! Quantities that change linearly, and the work of a transmitter whose rate does.
//!
//! Work is counted in billionths of a bit: a rate of 1 bit/s does one of them in a nanosecond, so
//! that at any rate the work done in whole nanoseconds is a whole number.

use ackclock_units::{Span, Time};

/// The work of a byte.
pub(in crate::link) const OF_A_BYTE: u128 = 8 * 1_000_000_000;

/// The longest ramp, about 146 years: squares of its nanoseconds fit into 128 bits.
const LONGEST: Span = Span::from_nanos(1 << 62);

/// A value over time: linear from `start` to `end`, constant before and after.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::link) struct Ramp {
    from: u64,
    to: u64,
    start: Time,
    end: Time,
}

impl Ramp {
    pub(in crate::link) fn new(from: u64, to: u64, start: Time, end: Time) -> Ramp {
        Ramp { from, to, start, end: end.min(start + LONGEST) }
    }

    /// The value always.
    pub(in crate::link) fn constant(value: u64) -> Ramp {
        Ramp { from: value, to: value, start: Time::ZERO, end: Time::ZERO }
    }

    /// The value at a time, rounded towards that at the start.
    pub(in crate::link) fn at(&self, now: Time) -> u64 {
        if now >= self.end {
            return self.to;
        }
        let (passed, length) = (self.nanos(now), self.nanos(self.end));
        let change = (u128::from(self.to.abs_diff(self.from)) * passed / length.max(1)) as u64;
        if self.to >= self.from { self.from + change } else { self.from - change }
    }

    fn nanos(&self, now: Time) -> u128 {
        u128::from(now.since(self.start).as_nanos())
    }

    /// The integral from the start until `now`, rounded down; `now` is within the ramp.
    fn integral(&self, now: Time) -> u128 {
        let (x, length) = (self.nanos(now), self.nanos(self.end).max(1));
        let (base, change) = (u128::from(self.from) * x, u128::from(self.to.abs_diff(self.from)));
        // change x^2 / 2 length = (whole + rest / length) x / 2, without x^2 * change.
        let (whole, rest) = (change * x / length, change * x % length);
        let (half, odd) = (whole * x / 2, whole * x % 2);
        let (over, under) = (odd * length + rest * x, 2 * length);
        if self.to >= self.from { base + half + over / under } else { base - half - over.div_ceil(under) }
    }
}

/// The rate of a transmitter until it is set again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::link) enum RatePace {
    /// Whatever is sent is sent at once.
    Unlimited,
    /// A rate in bit/s; 0 sends nothing.
    Constant(u64),
    /// A ramp from one rate to another.
    Ramp(Ramp),
}

impl RatePace {
    /// The rate at a time, bit/s; `None` if unlimited.
    pub(in crate::link) fn at(&self, now: Time) -> Option<u64> {
        match self {
            RatePace::Unlimited => None,
            RatePace::Constant(rate) => Some(*rate),
            RatePace::Ramp(ramp) => Some(ramp.at(now)),
        }
    }

    /// The end of a ramp, from which the rate is constant.
    pub(in crate::link) fn ends_at(&self) -> Time {
        match self {
            RatePace::Ramp(ramp) => ramp.end,
            RatePace::Unlimited | RatePace::Constant(_) => Time::NEVER,
        }
    }

    /// The most work that is done from one time to another, 0 at an unlimited rate and if the
    /// second is not after the first.
    pub(in crate::link) fn work(&self, from: Time, to: Time) -> u128 {
        match self {
            RatePace::Unlimited => 0,
            RatePace::Constant(rate) => u128::from(*rate) * u128::from(to.since(from).as_nanos()),
            RatePace::Ramp(ramp) => ramp.integral(to.max(from)) - ramp.integral(from),
        }
    }

    /// The time, rounded down to nanoseconds, at which work that starts at `from` is done;
    /// [`Time::NEVER`] if it is not done before the ramp ends.
    pub(in crate::link) fn finish(&self, from: Time, work: u128) -> Time {
        match self {
            RatePace::Unlimited => from,
            RatePace::Constant(0) => Time::NEVER,
            RatePace::Constant(rate) => {
                from + Span::from_nanos(u64::try_from(work / u128::from(*rate)).unwrap_or(u64::MAX))
            }
            RatePace::Ramp(ramp) => {
                // The last time at which no more than this is done.
                let (mut low, mut high) = (from, ramp.end);
                if self.work(from, high) <= work {
                    return Time::NEVER;
                }
                while low + Span::from_nanos(1) < high {
                    let middle = low + high.since(low) / 2;
                    if self.work(from, middle) <= work { low = middle } else { high = middle }
                }
                low
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn ms(millis: u64) -> Time {
        Time::from_millis(millis)
    }

    #[test]
    fn a_ramp_does_the_work_of_its_mean_rate() {
        // From 10 to 30 Mbit/s in a second: 20 Mbit in all, 7.5 in the first half (10 rising to
        // 20), and the same backwards.
        let ramp = RatePace::Ramp(Ramp::new(10_000_000, 30_000_000, ms(1000), ms(2000)));
        let mbit = 1_000_000 * OF_A_BYTE / 8;
        assert_eq!(ramp.work(ms(1000), ms(2000)), 20 * mbit);
        assert_eq!(ramp.work(ms(1000), ms(1500)), 15 * mbit / 2);
        assert_eq!(ramp.work(ms(1500), ms(1400)), 0);
        let down = RatePace::Ramp(Ramp::new(30_000_000, 10_000_000, ms(1000), ms(2000)));
        assert_eq!(down.work(ms(1500), ms(2000)), 15 * mbit / 2);
        // It ends when that is done; more is not done within the ramp.
        assert_eq!(ramp.finish(ms(1000), 15 * mbit / 2), ms(1500));
        assert_eq!(ramp.finish(ms(1500), 25 * mbit / 2), Time::NEVER);
        assert_eq!((ramp.at(ms(1250)), ramp.at(ms(2000))), (Some(15_000_000), Some(30_000_000)));
    }

    #[test]
    fn the_largest_ramp_does_not_overflow() {
        let most = ackclock_units::Rate::MAX.as_bps();
        let ramp = RatePace::Ramp(Ramp::new(most, 1, Time::ZERO, Time::NEVER));
        let end = Time::from_nanos(1 << 62);
        assert_eq!(ramp.work(Time::ZERO, end), (u128::from(most) + 1) << 61);
        let ramp = RatePace::Ramp(Ramp::new(1, most, Time::ZERO, Time::NEVER));
        assert_eq!(ramp.work(Time::ZERO, end), (u128::from(most) + 1) << 61);
    }

    proptest! {
        #[test]
        fn work_is_finished_when_it_is_done(
            from in 1u64..1_000_000_000_000,
            to in 1u64..1_000_000_000_000,
            length in 1u64..10_000_000_000,
            start in 0.0..1.0f64,
            bytes in 1u32..100_000,
        ) {
            let pace = RatePace::Ramp(Ramp::new(from, to, ms(5), ms(5) + Span::from_nanos(length)));
            let start = ms(5) + Span::from_nanos((length as f64 * start) as u64);
            let work = u128::from(bytes) * OF_A_BYTE;
            let end = pace.finish(start, work);
            if end == Time::NEVER {
                prop_assert!(pace.work(start, pace.ends_at()) <= work);
            } else {
                prop_assert!(pace.work(start, end) <= work);
                prop_assert!(pace.work(start, end + Span::from_nanos(1)) > work);
            }
            // Parts of a ramp add up.
            let middle = start + pace.ends_at().since(start) / 3;
            let parts = pace.work(ms(5), middle) + pace.work(middle, pace.ends_at());
            let sum = (u128::from(from) + u128::from(to)) * u128::from(length) / 2;
            prop_assert_eq!(parts, sum);
        }
    }
}
