//! Changes that come while a link is in use, in addition to those of its [`crate::Course`].
//!
//! A link that was constant becomes one that changes with the first of them: it goes on where it
//! is, the packet in transmission included, and from there on decides as if it had been one from
//! the start.

use ackclock_units::{Serializer, Time};

use super::varying::{Usage, Varying};
use super::{Link, Transmitter, TransmitterState};
use crate::Change;

impl Link {
    /// Puts a change into the schedule. If the schedule has one at that time already, it is made a
    /// nanosecond later. Returns its time. What was due before that time has been done
    /// ([`Link::catch_up`]), and nothing else. A change ends the ramp of what it changes.
    ///
    /// # Panics
    /// If the link has a token bucket or slots, or the change is one of the rate, and that follows
    /// a trace.
    pub fn change(&mut self, change: Change) -> Time {
        let may_be_due_earlier = change.delay.is_some() || change.jitter.is_some();
        let mut varying = match self.transmitter.take() {
            Transmitter::Varying(varying) => varying,
            constant => self.begin_to_change(&constant, just_before(change.at)),
        };
        let at = varying.insert(change);
        if may_be_due_earlier {
            self.delay = self.delay.min(varying.least_delay());
            self.least_delay = self.least_delay.min(self.wire.least_delay(self.delay, varying.most_jitter()));
        }
        self.until = self.until.min(varying.call_until(self.state));
        self.transmitter = Transmitter::Varying(varying);
        at
    }

    /// The [`Link::usage`] until `now`, to which the link has caught up; of a link without changes,
    /// as if it had changed by nothing.
    pub fn usage_by(&self, now: Time) -> Usage {
        match &self.transmitter {
            Transmitter::Varying(varying) => varying.usage(),
            Transmitter::Constant => self.taken_over(now).usage(),
            _ => Usage::default(),
        }
    }

    fn begin_to_change(&mut self, earlier: &Transmitter, now: Time) -> Box<Varying> {
        assert!(
            earlier.is_constant(),
            "a token bucket does not change, and neither does a link with slots or a device"
        );
        let varying = self.taken_over(now);
        self.ask_queue();
        self.wire.begin_to_change(self.sends(), &self.random);
        self.passes = false;
        Box::new(varying)
    }

    /// The transmitter of a link that changes, where this constant one is at `now`.
    fn taken_over(&self, now: Time) -> Varying {
        let end = self.serializer.as_ref().map_or((Time::NEVER, 0), Serializer::end);
        let bytes = self.queue().counters().dequeued.bytes;
        Varying::taking_over((self.rate(), self.delay), now, bytes, end, self.sends())
    }

    /// Returns `true` if a packet is in transmission. A transmission without end does not count.
    fn sends(&self) -> bool {
        self.state == TransmitterState::Sends && self.until < Time::NEVER
    }
}

fn just_before(at: Time) -> Time {
    Time::from_nanos(at.as_nanos().saturating_sub(1))
}
