//! Traces of a link: opportunities to deliver a packet, or rates over time, and delays and losses.
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
//! *Delays* and *losses*, the probability of independent ones, are steps as well, of the same lines
//! as the rates or of files of their own. All start together, and each repeats after its own last
//! time.
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
#[derive(Clone, Debug, PartialEq)]
pub struct Trace {
    kind: Kind,
    /// Times in ascending order, the first 0, or none if the delay is the link's.
    delays: Vec<(Span, Span)>,
    /// As the delays.
    losses: Vec<(Span, f64)>,
    /// The trace starts again after its last time, which is above zero.
    repeats: bool,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Kind {
    /// Sorted times, at least one, and bytes per opportunity.
    Opportunities { times: Vec<Span>, bytes: u32 },
    /// Times in ascending order, the first 0, with rates in bit/s. Without any the rate is the link's.
    Rates(Vec<(Span, u64)>),
}

/// The time in the round that has begun at `now`.
fn within(now: Time, length: Span, repeats: bool) -> Span {
    let now = now.since(Time::ZERO);
    match now.as_nanos().checked_rem(length.as_nanos()) {
        Some(rest) if repeats => Span::from_nanos(rest),
        _ => now,
    }
}

/// The step of a time, and the next time after it at which there is another.
fn step<T: Copy>(steps: &[(Span, T)], now: Time, repeats: bool) -> Option<(T, Time)> {
    let within = within(now, steps.last()?.0, repeats);
    let next = steps.partition_point(|&(at, _)| at <= within);
    let at = steps.get(next).map_or(Time::NEVER, |&(at, _)| now + Span::from_nanos(at.as_nanos() - within.as_nanos()));
    Some((steps.get(next.saturating_sub(1))?.1, at))
}

/// The values of steps with the time that each lasts in a round; the last one if no time passes.
fn durations<T: Copy>(steps: &[(Span, T)]) -> impl Iterator<Item = (T, u64)> {
    let lasting = steps.windows(2).map(|pair| (pair[0].1, pair[1].0.as_nanos() - pair[0].0.as_nanos()));
    lasting.chain(steps.last().filter(|_| steps.len() == 1).map(|&(_, value)| (value, 1)))
}

impl Trace {
    /// The bytes of an opportunity; `None` for a trace of rates.
    pub fn opportunity(&self) -> Option<u32> {
        match self.kind {
            Kind::Opportunities { bytes, .. } => Some(bytes),
            Kind::Rates(_) => None,
        }
    }

    /// Returns `true` if it has the link's rate.
    pub fn has_rate(&self) -> bool {
        !matches!(&self.kind, Kind::Rates(steps) if steps.is_empty())
    }

    /// Returns `true` if it has the link's delay.
    pub fn has_delay(&self) -> bool {
        !self.delays.is_empty()
    }

    /// Returns `true` if it has the link's losses.
    pub fn has_loss(&self) -> bool {
        !self.losses.is_empty()
    }

    /// The trace without its rate, its delay or its losses; `None` if nothing is left.
    pub fn without(&self, [rate, delay, loss]: [bool; 3]) -> Option<Trace> {
        let kind = if rate { Kind::Rates(Vec::new()) } else { self.kind.clone() };
        let delays = if delay { Vec::new() } else { self.delays.clone() };
        let losses = if loss { Vec::new() } else { self.losses.clone() };
        let left = Trace { kind, delays, losses, repeats: self.repeats };
        (left.has_rate() || left.has_delay() || left.has_loss()).then_some(left)
    }

    /// The mean delay from its start to its last time, rounded down.
    pub fn mean_delay(&self) -> Option<Span> {
        let work = |(delay, nanos): (Span, u64)| u128::from(delay.as_nanos()) * u128::from(nanos);
        let sum: u128 = durations(&self.delays).map(work).sum();
        let nanos: u128 = durations(&self.delays).map(|(_, nanos)| u128::from(nanos)).sum();
        sum.checked_div(nanos).map(|mean| Span::from_nanos(mean as u64))
    }

    /// The shortest delay.
    pub fn least_delay(&self) -> Option<Span> {
        self.delays.iter().map(|&(_, delay)| delay).min()
    }

    /// The delay and the probability of loss at `now`, and the next time at which one is another.
    pub(crate) fn wire_at(&self, now: Time) -> (Option<Span>, Option<f64>, Time) {
        let delay = step(&self.delays, now, self.repeats);
        let loss = step(&self.losses, now, self.repeats);
        let next = [delay.map(|(_, at)| at), loss.map(|(_, at)| at)].into_iter().flatten().min();
        (delay.map(|(delay, _)| delay), loss.map(|(loss, _)| loss), next.unwrap_or(Time::NEVER))
    }

    /// The last time of its rates.
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
            Kind::Rates(steps) => return step(steps, now, self.repeats).map_or(Time::NEVER, |(_, at)| at),
        };
        next.map_or(Time::NEVER, |next| now + Span::from_nanos(next.as_nanos() - within.as_nanos()))
    }

    /// The rate at `now`, bit/s; `None` for opportunities.
    pub(crate) fn rate_at(&self, now: Time) -> Option<u64> {
        let Kind::Rates(steps) = &self.kind else { return None };
        step(steps, now, self.repeats).map(|(rate, _)| rate)
    }
}

#[cfg(test)]
mod tests;
