//! Probes of responsiveness: when they are sent, and what a client asks for with them.
//!
//! # Source
//! - draft-ietf-ippm-responsiveness-09, "Measuring Responsiveness": foreign probes on connections
//!   of their own, self probes on connections that carry load.
//!   "Client-Side Influence": 5 ms of data wait at a sender (TCP_REPLENISH_TIME).
//! - RFC 8446 section 2: a full handshake of TLS 1.3 takes a round trip before the first request.
//!
//! # Departures
//! - Probes come at an interval that is given, not at one that follows from the capacity (`MPS`,
//!   `PTC`). Each connection with load has self probes of its own; the draft draws one of them for
//!   each probe.
//! - The end of a handshake of TLS (the client's `Finished`) takes no bytes.

use ackclock_units::{Span, Time};

use crate::request::Exchange;

/// Probes on new connections.
#[derive(Clone, Debug, PartialEq)]
pub struct ProbePattern {
    /// Interval between probes, independent of their responses.
    pub interval: Span,
    /// Bytes of the TLS handshake in each direction; `None` without TLS.
    pub tls: Option<Exchange>,
    /// The request behind it and its response.
    pub http: Exchange,
}

impl ProbePattern {
    /// A probe that has found no answer for so long may keep others from being sent.
    const PATIENCE: Span = Span::from_secs(10);

    /// The most unanswered probes; further ones are skipped.
    pub fn most_open(&self) -> usize {
        let most = ProbePattern::PATIENCE.as_nanos().div_ceil(self.interval.as_nanos().max(1));
        usize::try_from(most.clamp(1, 1000)).unwrap_or(1)
    }
}

/// The direction of a connection's load.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Transfer {
    /// Server to client.
    #[default]
    Download,
    /// Client to server.
    Upload,
    /// None: probes alone, for the responsiveness of an idle path.
    Idle,
}

/// A connection with load, and probes between it.
#[derive(Clone, Debug, PartialEq)]
pub struct LoadPattern {
    /// Direction of the load.
    pub transfer: Transfer,
    /// Interval between probes, independent of their responses; zero is without probes.
    pub interval: Span,
    /// Beyond what leaves at once the sender writes load for so long ahead; `None` fills its
    /// socket's buffer.
    pub replenish: Option<Span>,
    /// Time from the start of the connection to the start of the probes.
    pub warmup: Span,
    /// The request and response of a probe.
    pub http: Exchange,
}

/// A clock that ticks at an interval.
#[derive(Clone, Copy, Debug)]
pub struct ProbeTicks {
    next_at: Time,
    interval: Span,
    made: u64,
}

impl ProbeTicks {
    /// The first one is due at `first`. There are none if the interval is zero.
    pub fn new(first: Time, interval: Span) -> ProbeTicks {
        let next_at = if interval > Span::ZERO { first } else { Time::NEVER };
        ProbeTicks { next_at, interval, made: 0 }
    }

    /// Time of the next tick.
    pub fn next_at(&self) -> Time {
        self.next_at
    }

    /// The number of ticks taken.
    pub fn made(&self) -> u64 {
        self.made
    }

    /// Takes the one that is due.
    pub fn take(&mut self, now: Time) -> bool {
        let is_due = self.next_at <= now && self.next_at != Time::NEVER;
        if is_due {
            self.next_at += self.interval;
            self.made += 1;
        }
        is_due
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ticks_keep_their_times_however_late_they_are_taken() {
        let mut ticks = ProbeTicks::new(Time::from_millis(50), Span::from_millis(100));
        assert!(!ticks.take(Time::from_millis(49)));
        assert!(ticks.take(Time::from_millis(120)));
        assert_eq!((ticks.next_at(), ticks.made()), (Time::from_millis(150), 1));
        assert!(!ProbeTicks::new(Time::ZERO, Span::ZERO).take(Time::from_secs(9)));
    }

    #[test]
    fn so_many_probes_are_open_as_are_sent_in_ten_seconds() {
        let http = Exchange { request: 1, response: 1 };
        let most = |millis| ProbePattern { interval: Span::from_millis(millis), tls: None, http }.most_open();
        assert_eq!([most(100), most(300), most(20_000), most(1)], [100, 34, 1, 1000]);
    }
}
