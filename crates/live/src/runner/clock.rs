//! The machine's clock.

use std::io;

use ackclock_units::Time;
use nix::time::{ClockId, clock_gettime};

/// What it is called in a summary.
pub(super) const NAME: &str = "CLOCK_MONOTONIC";

/// Time of a run by the machine's monotonic clock, which nobody sets.
#[derive(Debug)]
pub(super) struct Clock {
    /// What the clock showed at time 0, ns.
    origin: u64,
    /// What was read last.
    last: Time,
}

impl Clock {
    /// Time 0 is now.
    pub(super) fn start() -> io::Result<Clock> {
        Ok(Clock { origin: read()?, last: Time::ZERO })
    }

    /// Now; never before what it once was.
    pub(super) fn now(&mut self) -> Time {
        // It has been read before: the kernel knows it.
        if let Ok(nanos) = read() {
            self.last = self.last.max(Time::from_nanos(nanos.saturating_sub(self.origin)));
        }
        self.last
    }
}

#[expect(clippy::disallowed_methods, reason = "the clock of live runs")]
fn read() -> io::Result<u64> {
    let now = clock_gettime(ClockId::CLOCK_MONOTONIC)?;
    // Neither is negative.
    Ok((now.tv_sec() as u64).saturating_mul(1_000_000_000).saturating_add(now.tv_nsec() as u64))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_starts_at_zero_and_does_not_go_back() {
        let mut clock = Clock::start().unwrap();
        let mut last = clock.now();
        assert!(last < Time::from_secs(10), "{last:?}");
        for _ in 0..10_000 {
            let now = clock.now();
            assert!(now >= last);
            last = now;
        }
    }
}
