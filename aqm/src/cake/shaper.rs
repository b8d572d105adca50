//! The times at which packets may leave at a rate.
//!
//! # Source
//! Linux `net/sched/sch_cake.c`: `cake_set_rate`, `cake_advance_shaper`, and the parts of
//! `cake_enqueue` and `cake_dequeue` that ask for the time.

use ackclock_units::{Span, Time};

/// The least rate in bytes per second: a packet goes on in reasonable time.
const LEAST_RATE: u64 = 64;

/// The time of a byte at a rate, as a number of 34 bits and a shift.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ByteTime {
    nanos: u64,
    shift: u32,
}

impl ByteTime {
    /// The pace of a rate in bytes per second; 0 is unlimited.
    pub(super) fn new(rate: u64) -> ByteTime {
        if rate == 0 {
            return ByteTime { nanos: 0, shift: 0 };
        }
        let nanos = (1_000_000_000 << 34) / rate.max(LEAST_RATE);
        let beyond = 64 - (nanos >> 34).leading_zeros();
        ByteTime { nanos: nanos >> beyond, shift: 34 - beyond }
    }

    pub(super) fn is_unlimited(self) -> bool {
        self.nanos == 0
    }

    /// The time of so many bytes.
    #[inline]
    pub(super) fn time(self, bytes: u32) -> Span {
        Span::from_nanos(u64::from(bytes).saturating_mul(self.nanos) >> self.shift)
    }
}

/// The shaper of all tins.
#[derive(Debug)]
pub(super) struct Shaper {
    pub(super) pace: ByteTime,
    /// The end of the last packet at the rate.
    next: Time,
    /// The same at two thirds of the rate, for packets that were sent alone: those that
    /// were dropped and counted cannot hold the others back beyond it.
    failsafe: Time,
}

impl Shaper {
    pub(super) fn new(pace: ByteTime) -> Shaper {
        Shaper { pace, next: Time::ZERO, failsafe: Time::ZERO }
    }

    /// A packet arrives where none waits.
    pub(super) fn wake(&mut self, now: Time) {
        if self.next < now {
            (self.next, self.failsafe) = (now, now);
        }
    }

    /// The time before which no packet leaves; `None` if one may.
    #[inline]
    pub(super) fn held(&self, now: Time) -> Option<Time> {
        let next = self.next.min(self.failsafe);
        (next > now).then_some(next)
    }

    /// A packet of so many bytes was sent, or was dropped and counts.
    #[inline]
    pub(super) fn advance(&mut self, bytes: u32, dropped: bool) {
        let time = self.pace.time(bytes);
        self.next += time;
        if !dropped {
            self.failsafe += time + time / 2;
        }
    }
}
