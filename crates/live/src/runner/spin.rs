//! Spinning before a deadline instead of sleeping.
//!
//! A sleeping thread wakes late, by a time that depends on the machine and its load. With
//! [`Spin::Auto`] the loop measures this and stops sleeping as long before a deadline as nine of
//! ten wakeups are late. The time to spin is limited to a share of a processor, credited as time
//! passes: where something is due every few hundred microseconds, the loop hardly sleeps longer
//! than it wakes late, and would otherwise never sleep.

use ackclock_sim::spec::Spin;
use ackclock_units::{Span, Time};

/// The largest share of a processor that is spent spinning, as its reciprocal.
const SHARE: u64 = 16;

/// The most credit, in nanoseconds.
const MOST_CREDIT: u64 = 5_000_000;

/// The largest estimate, in nanoseconds: later wakeups are exceptions.
const MOST: u64 = 200_000;

/// The decrease of the estimate by an earlier wakeup, in nanoseconds; a later wakeup increases it
/// by nine times as much. The two balance at the 90th percentile.
const LESS: u64 = 250;

/// The margin before each deadline.
#[derive(Debug)]
pub(super) struct Margin {
    fixed: Option<Span>,
    /// Estimate of the 90th percentile of late wakeups, in nanoseconds.
    late: u64,
    /// The remaining time to spin, in nanoseconds, and the remainder of its division.
    credit: u64,
    rest: u64,
    /// The time up to which credit has been given.
    at: Time,
    /// Sum of the margins, and number, of sleeps that ended at a deadline.
    sum: u64,
    sleeps: u64,
}

impl Margin {
    pub(super) fn new(spin: Spin) -> Margin {
        let fixed = match spin {
            Spin::Fixed(span) => Some(span),
            Spin::Auto => None,
        };
        Margin { fixed, late: 50_000, credit: MOST_CREDIT, rest: 0, at: Time::ZERO, sum: 0, sleeps: 0 }
    }

    /// The time before a deadline at which to stop sleeping.
    pub(super) fn now(&self) -> Span {
        // The margin decreases with the credit, so that it does not oscillate.
        self.fixed.unwrap_or(Span::from_nanos(self.late * self.credit / MOST_CREDIT))
    }

    /// The mean margin of all sleeps.
    pub(super) fn mean(&self) -> Span {
        self.fixed.unwrap_or(Span::from_nanos(self.sum / self.sleeps.max(1)))
    }

    /// Records that the loop spun for `time` before `now`, with nothing to do.
    pub(super) fn spun(&mut self, now: Time, time: Span) {
        self.give(now);
        self.credit = self.credit.saturating_sub(time.as_nanos());
    }

    /// Records that the loop woke at `now`, `late` after its deadline, from a sleep that nothing
    /// else ended.
    pub(super) fn overslept(&mut self, now: Time, late: Span) {
        self.sum += self.now().as_nanos();
        self.sleeps += 1;
        self.give(now);
        self.late =
            if late.as_nanos() > self.late { (self.late + 9 * LESS).min(MOST) } else { self.late.saturating_sub(LESS) };
    }

    fn give(&mut self, now: Time) {
        let nanos = now.since(self.at).as_nanos().saturating_add(self.rest);
        self.at = now;
        self.rest = nanos % SHARE;
        self.credit = self.credit.saturating_add(nanos / SHARE).min(MOST_CREDIT);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sleeps `count` times for a deadline after `until` microseconds, waking `late` microseconds
    /// late; returns the time spun.
    fn sleep(margin: &mut Margin, count: u64, until: u64, late: impl Fn(u64) -> u64) -> Span {
        let mut now = margin.at;
        let mut spun = Span::ZERO;
        for number in 0..count {
            let due = now + Span::from_micros(until);
            let to = due - margin.now();
            let late = Span::from_micros(late(number));
            margin.overslept(to.max(now) + late, late);
            now = to.max(now) + late;
            if now < due {
                spun += due.since(now);
                margin.spun(due, due.since(now));
                now = due;
            }
        }
        spun
    }

    #[test]
    fn it_is_as_long_as_nine_of_ten_wakeups_are_late() {
        let mut margin = Margin::new(Spin::Auto);
        // 60 us late but for one in eight, in a second or so: 7 of 8 are less than 9 of 10.
        sleep(&mut margin, 200, 5000, |number| if number % 8 == 0 { 100 } else { 60 });
        assert!((60..=105).contains(&(margin.now().as_nanos() / 1000)), "{margin:?}");
        // A machine that wakes at once needs none.
        sleep(&mut margin, 1000, 5000, |_| 0);
        assert_eq!(margin.now(), Span::ZERO);
        // One that takes very long needs more than there is.
        sleep(&mut margin, 1000, 5000, |_| 900);
        assert_eq!(margin.now(), Span::from_nanos(MOST));
        assert!(margin.mean() > Span::ZERO && margin.mean() < margin.now());
    }

    #[test]
    fn no_more_than_its_share_is_spun_away() {
        for until in [20, 60, 120, 300, 1000] {
            let mut margin = Margin::new(Spin::Auto);
            // Half of the wakeups are much later, so that the other half spins for long.
            sleep(&mut margin, 100, until, |number| number % 2 * 150);
            let began = margin.at;
            let spun = sleep(&mut margin, 100_000, until, |number| number % 2 * 150);
            let most = margin.at.since(began).as_nanos() / SHARE + MOST_CREDIT;
            assert!(spun.as_nanos() <= most, "{until}: {spun:?}");
        }
    }

    #[test]
    fn what_is_fixed_stays() {
        let mut margin = Margin::new(Spin::Fixed(Span::from_micros(70)));
        sleep(&mut margin, 1000, 100, |_| 50);
        assert_eq!((margin.now(), margin.mean()), (Span::from_micros(70), Span::from_micros(70)));
    }
}
