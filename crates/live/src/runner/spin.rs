//! How long before its time something is waited for without sleeping.
//!
//! A thread that sleeps wakes late, by how much depends on the machine and on what else it does.
//! With [`Spin::Auto`] the loop measures it, and stops sleeping just as long before the time as
//! nine of ten wakeups were late. That is paid for out of a share of a processor that grows with
//! time: where something is due every few hundred microseconds the loop hardly sleeps longer than
//! it wakes late, and would otherwise never sleep.

use ackclock_sim::spec::Spin;
use ackclock_units::{Span, Time};

/// The share of a processor that is spun away at most, 1 in so many.
const SHARE: u64 = 16;

/// What may be saved of it, ns.
const MOST_CREDIT: u64 = 5_000_000;

/// Later wakeups than this are no matter of habit, ns.
const MOST: u64 = 200_000;

/// What one wakeup changes of the estimate, ns: so much less if it was earlier than that, and nine
/// times as much more if it was later. At the 90th percentile both come to the same.
const LESS: u64 = 250;

/// The margin before each deadline.
#[derive(Debug)]
pub(super) struct Margin {
    fixed: Option<Span>,
    /// How late nine of ten wakeups are, ns.
    late: u64,
    /// What may be spun away, ns, and what remains to be divided.
    credit: u64,
    rest: u64,
    /// Until when credit has been given.
    at: Time,
    /// Of all sleeps that were for a deadline.
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

    /// How long before a deadline to stop sleeping.
    pub(super) fn now(&self) -> Span {
        // With little credit less than is needed, so that it does not swing.
        self.fixed.unwrap_or(Span::from_nanos(self.late * self.credit / MOST_CREDIT))
    }

    /// The same of all sleeps, on average.
    pub(super) fn mean(&self) -> Span {
        self.fixed.unwrap_or(Span::from_nanos(self.sum / self.sleeps.max(1)))
    }

    /// So long before `now` was spent without sleeping, and nothing was done.
    pub(super) fn spun(&mut self, now: Time, time: Span) {
        self.give(now);
        self.credit = self.credit.saturating_sub(time.as_nanos());
    }

    /// At `now`, so long after it was to, the loop woke from a sleep that nothing else ended.
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

    /// Sleeps, each of so many us until a deadline, that end this late; what was spun away.
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
