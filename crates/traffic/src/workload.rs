//! Flows that arrive one after another: when, of which size, and over which of several paths.
//!
//! Times, sizes and paths are drawn from a stream each, so that changing one distribution leaves
//! the draws of the others as they were.
//!
//! # Source
//! - Poisson arrivals at a load: Alizadeh et al., "Data Center TCP (DCTCP)", SIGCOMM 2010, and
//!   "pFabric: Minimal Near-Optimal Datacenter Transport", SIGCOMM 2013.
//! - Incast: DCTCP, section 4.2.1: a client requests data from n servers, which answer at once.
//!
//! # Departures
//! - The request of an incast takes no time: its flows start together.

use ackclock_units::{Random, Span, Time};

use crate::Distribution;

/// The arrival process of flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Arrivals {
    /// Single flows with independent gaps of this distribution, ns.
    Gaps(Distribution),
    /// Several at once, for which a request stands.
    Incast {
        /// The number of flows that answer a request, at least 1.
        senders: u64,
        /// Time between requests, ns; the first one comes at the start.
        every: Distribution,
    },
}

/// The choice among several paths for each flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PathChoice {
    /// Any, with equal probabilities.
    Random,
    /// The paths in turn.
    RoundRobin,
}

/// The arrivals, sizes and paths of flows.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadPattern {
    /// The arrival process.
    pub arrivals: Arrivals,
    /// Drawn times are multiplied by this.
    pub stretch: f64,
    /// Sizes of the flows, bytes.
    pub size: Distribution,
    /// The number of paths, at least 1.
    pub paths: usize,
    /// The choice among them.
    pub choice: PathChoice,
    /// The most flows, or requests of an incast.
    pub count: Option<u64>,
}

impl WorkloadPattern {
    /// The long-term mean number of flows that arrive per second.
    pub fn per_second(&self) -> f64 {
        let (flows, gap) = match &self.arrivals {
            Arrivals::Gaps(gap) => (1, gap),
            Arrivals::Incast { senders, every } => (*senders, every),
        };
        flows as f64 * 1e9 / (gap.mean() * self.stretch)
    }

    /// The most flows, if known.
    pub fn flows(&self) -> Option<u64> {
        let of_each = match self.arrivals {
            Arrivals::Gaps(_) => 1,
            Arrivals::Incast { senders, .. } => senders,
        };
        self.count.map(|count| count.saturating_mul(of_each))
    }
}

/// A flow that arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Time of arrival.
    pub at: Time,
    /// Number of the flow, from 0.
    pub number: u64,
    /// The number of the request that it answers, from 0; without incast its own.
    pub request: u64,
    /// Size of the flow in bytes, at least 1.
    pub bytes: u64,
    /// Index of the flow's path, from 0.
    pub path: usize,
}

/// The streams from which a workload is drawn.
#[derive(Clone, Debug, PartialEq)]
pub struct WorkloadStreams {
    /// Times between arrivals.
    pub gaps: Random,
    /// Sizes.
    pub sizes: Random,
    /// Paths.
    pub paths: Random,
}

/// Flows in the order in which they arrive.
#[derive(Clone, Debug, PartialEq)]
pub struct Workload {
    pattern: WorkloadPattern,
    streams: WorkloadStreams,
    /// Time of the last flow or request; the start before the first one.
    last: Time,
    /// None comes at this time or later.
    until: Time,
    flows: u64,
    requests: u64,
    /// Flows of the last request that have not arrived.
    pending: u64,
}

impl Workload {
    /// Flows from `start` until before `until`.
    pub fn new(pattern: WorkloadPattern, streams: WorkloadStreams, start: Time, until: Time) -> Workload {
        Workload { pattern, streams, last: start, until, flows: 0, requests: 0, pending: 0 }
    }

    /// The workload's parameters.
    pub fn pattern(&self) -> &WorkloadPattern {
        &self.pattern
    }

    /// None comes at this time or later.
    pub fn until(&self) -> Time {
        self.until
    }

    /// Returns true if the last flow has arrived.
    pub fn is_over(&self) -> bool {
        self.pending == 0 && self.pattern.count == Some(self.requests)
    }

    /// The next one; `None` if there are no more.
    pub fn draw(&mut self) -> Option<Arrival> {
        if self.pending == 0 {
            self.pending = self.next_request()?;
            self.requests += 1;
        }
        self.pending -= 1;
        let number = self.flows;
        self.flows += 1;
        let paths = self.pattern.paths.max(1) as u64;
        let path = match self.pattern.choice {
            _ if paths == 1 => 0,
            PathChoice::Random => self.streams.paths.below(paths),
            PathChoice::RoundRobin => number % paths,
        };
        let bytes = self.pattern.size.draw_bytes(&mut self.streams.sizes);
        Some(Arrival { at: self.last, number, request: self.requests - 1, bytes, path: path as usize })
    }

    /// Moves on to the next time of arrival. Returns how many flows come then.
    fn next_request(&mut self) -> Option<u64> {
        if self.pattern.count == Some(self.requests) {
            return None;
        }
        let (flows, gap, waits) = match &self.pattern.arrivals {
            Arrivals::Gaps(gap) => (1, gap, true),
            Arrivals::Incast { senders, every } => (*senders, every, self.requests > 0),
        };
        if waits {
            let gap = gap.draw(&mut self.streams.gaps) * self.pattern.stretch;
            self.last += Span::from_nanos(gap.round() as u64);
        }
        (self.last < self.until).then_some(flows)
    }
}

#[cfg(test)]
mod tests;
