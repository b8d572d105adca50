//! The machine's clock.

use std::io;

use ackclock_units::Time;
use nix::time::{ClockId, clock_gettime};

/// Its name in summaries.
pub(super) const NAME: &str = "CLOCK_MONOTONIC";

/// The time of a run by the machine's monotonic clock, which nobody sets.
#[derive(Debug)]
pub(super) struct RunClock {
    /// Clock reading at time 0, in nanoseconds.
    origin: u64,
    /// The last reading.
    last: Time,
}

impl RunClock {
    /// A clock with time 0 now.
    pub(super) fn start() -> io::Result<RunClock> {
        Ok(RunClock { origin: read()?, last: Time::ZERO })
    }

    /// The current time; never decreases.
    pub(super) fn now(&mut self) -> Time {
        // Reading cannot fail after it has succeeded once.
        if let Ok(nanos) = read() {
            self.last = self.last.max(Time::from_nanos(nanos.saturating_sub(self.origin)));
        }
        self.last
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of live runs")]
fn read() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    // Neither number is negative.
    Ok((now.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_zero_and_does_not_go_back() {
        let mut clock = RunClock::start().unwrap();
        let mut last = clock.now();
        assert!(last < Time::from_secs(10), "{last:?}");
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
