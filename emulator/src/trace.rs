//! Traces of a link's rate: opportunities to deliver a packet, or rates over time.
//!
//! *Opportunities* are mahimahi's: at each of its times, the link delivers up to 1504 bytes of what
//! waits then. Several packets may share an opportunity, and a packet uses as many as it needs: it
//! leaves with its last byte. What nobody uses at its time is lost.
//!
//! *Rates* are steps: from each time on, the rate is the one beside it; 0 sends nothing.
//!
//! Both are as long as their last time. Repeated, they start again then: the last opportunity of a
//! round coincides with those at time 0 of the next, and the last rate is never used. Otherwise
//! there are no more opportunities, and the last rate remains.
//!
//! # Source
//! Mahimahi (Netravali et al., USENIX ATC 2015), `link_queue.cc`, and its traces: a line for each
//! opportunity with its time in milliseconds (mahimahi writes whole ones).
//!
//! # Departures
//! Mahimahi counts 4 bytes of a TUN device's header in every packet, which is why a full packet
//! of 1500 bytes fills an opportunity of 1504; here framing is the link's (`overhead`, 4 bytes for
//! the same). It refuses a larger packet, which here takes several opportunities, and a trace whose
//! last time is 0, which here may be one that is not repeated; it ends with an error where such a
//! trace does, and its clock has whole milliseconds, for arrivals as well.

use ackclock_units::{Span, Time};

pub use self::generate::{Model, Notation};
pub use self::parse::{Format, TraceError};

mod generate;
mod parse;

/// The bytes of an opportunity in mahimahi.
pub const OPPORTUNITY: u32 = 1504;

/// A trace of a link's rate.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    kind: Kind,
    /// The trace starts again after its last time, which is above zero.
    repeats: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Sorted times, at least one, and bytes per opportunity.
    Opportunities { times: Vec<Span>, bytes: u32 },
    /// Times in ascending order, the first 0, with rates in bit/s.
    Rates(Vec<(Span, u64)>),
}

impl Trace {
    /// The bytes of an opportunity; `None` for a trace of rates.
    pub fn opportunity(&self) -> Option<u32> {
        match self.kind {
            Kind::Opportunities { bytes, .. } => Some(bytes),
            Kind::Rates(_) => None,
        }
    }

    /// The last time.
    pub fn length(&self) -> Span {
        let last = match &self.kind {
            Kind::Opportunities { times, .. } => times.last().copied(),
            Kind::Rates(steps) => steps.last().map(|&(at, _)| at),
        };
        last.unwrap_or_default()
    }

    /// The number of its lines.
    pub fn lines(&self) -> usize {
        match &self.kind {
            Kind::Opportunities { times, .. } => times.len(),
            Kind::Rates(steps) => steps.len(),
        }
    }

    /// The mean rate from its start to its last time, rounded down; the last rate if that is 0.
    pub fn mean_bps(&self) -> u64 {
        let nanos = u128::from(self.length().as_nanos());
        let mean = match &self.kind {
            Kind::Opportunities { times, bytes } => {
                (times.len() as u128 * u128::from(*bytes) * 8_000_000_000).checked_div(nanos)
            }
            Kind::Rates(steps) => {
                let work = |pair: &[(Span, u64)]| {
                    u128::from(pair[1].0.as_nanos() - pair[0].0.as_nanos()) * u128::from(pair[0].1)
                };
                let sum: u128 = steps.windows(2).map(work).sum();
                sum.checked_div(nanos).or(steps.last().map(|&(_, rate)| rate.into()))
            }
        };
        mean.and_then(|mean| u64::try_from(mean).ok()).unwrap_or(u64::MAX)
    }

    /// The rounds that are over at `now`, and the time in the one that has begun.
    fn round(&self, now: Time) -> (u64, Span) {
        let now = now.since(Time::ZERO);
        let length = self.length().as_nanos();
        if !self.repeats || length == 0 {
            return (0, now);
        }
        (now.as_nanos() / length, Span::from_nanos(now.as_nanos() % length))
    }

    /// The number of opportunities until `now`, including those at `now`.
    pub(crate) fn opportunities_by(&self, now: Time) -> u64 {
        let Kind::Opportunities { times, .. } = &self.kind else { return 0 };
        let (rounds, within) = self.round(now);
        rounds.saturating_mul(times.len() as u64) + times.partition_point(|&at| at <= within) as u64
    }

    /// The number of opportunities at `now`.
    pub(crate) fn opportunities_at(&self, now: Time) -> u64 {
        let before = Time::from_nanos(now.as_nanos().wrapping_sub(1));
        self.opportunities_by(now) - if now == Time::ZERO { 0 } else { self.opportunities_by(before) }
    }

    /// The next time after `now` at which there is an opportunity, or the rate is another.
    pub(crate) fn next_after(&self, now: Time) -> Time {
        let (_, within) = self.round(now);
        let next = match &self.kind {
            Kind::Opportunities { times, .. } => times.get(times.partition_point(|&at| at <= within)).copied(),
            Kind::Rates(steps) => steps.get(steps.partition_point(|&(at, _)| at <= within)).map(|&(at, _)| at),
        };
        next.map_or(Time::NEVER, |next| now + Span::from_nanos(next.as_nanos() - within.as_nanos()))
    }

    /// The rate at `now`, bit/s; `None` for opportunities.
    pub(crate) fn rate_at(&self, now: Time) -> Option<u64> {
        let Kind::Rates(steps) = &self.kind else { return None };
        let (_, within) = self.round(now);
        steps.get(steps.partition_point(|&(at, _)| at <= within).saturating_sub(1)).map(|&(_, rate)| rate)
    }
}

#[cfg(test)]
mod tests;
