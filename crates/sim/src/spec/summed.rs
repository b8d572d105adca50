//! Groups of flows of which only sums are kept, so that they may be more than fit into memory.

use std::sync::Arc;

use ackclock_units::{Random, Span, Time, maths};

use super::flow::FlowGroup;
use super::topology::Pairs;
use super::workload::WorkloadSpec;

/// The most flows that may exist at the same time.
pub const MAX_ALIVE: usize = 100_000;

/// A group of flows that the results list together.
#[derive(Clone, Debug, PartialEq)]
pub struct SumSpec {
    /// Name of the group, from which its flows are named with their numbers.
    pub id: String,
    /// Settings that the flows have in common; for a workload those of the first path.
    pub group: Arc<FlowGroup>,
    /// Starts of the flows.
    pub starts: Starts,
    /// The hosts of a network that the flows are between, each pair in turn, or by the path that an
    /// arrival draws; `None` if they take the paths of their groups.
    pub pairs: Option<Pairs>,
    /// Flows of the run that are listed and come before them in the order of all flows.
    pub before: usize,
}

/// The starts and stops of a group's flows.
#[derive(Clone, Debug, PartialEq)]
pub enum Starts {
    /// Given times, in order.
    Listed(Vec<Start>),
    /// A Poisson process.
    Poisson {
        /// The process, drawn during the run.
        arrivals: Poisson,
        /// The most flows.
        count: u64,
        /// None starts at this time or later.
        until: Time,
        /// Time at which all flows stop.
        stop: Option<Time>,
    },
    /// A workload: random starts, sizes and paths.
    Workload {
        /// The workload.
        spec: Box<WorkloadSpec>,
        /// The first one may start then.
        start: Time,
    },
}

/// The start and stop of one flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Start {
    /// Time of the start.
    pub at: Time,
    /// Time of the stop.
    pub stop: Option<Time>,
    /// Number of the flow in its group.
    pub number: u64,
}

impl SumSpec {
    /// The most flows of the group.
    pub fn count(&self) -> u64 {
        match &self.starts {
            Starts::Listed(starts) => starts.len() as u64,
            Starts::Poisson { count, .. } => *count,
            // Numbers enough that no other group has the same ones.
            Starts::Workload { spec, .. } => spec.arrivals.pattern().flows().unwrap_or(1 << 40).min(1 << 40),
        }
    }
}

/// A Poisson process: the times between arrivals are exponentially distributed, and independent.
#[derive(Clone, Debug, PartialEq)]
pub struct Poisson {
    random: Random,
    /// The mean of the times between them, ns.
    gap: f64,
    last: Time,
}

impl Poisson {
    /// `per_second` arrivals on average, from `start` on; drawn from `random`.
    pub fn new(random: Random, per_second: f64, start: Time) -> Poisson {
        Poisson { random, gap: 1e9 / per_second, last: start }
    }

    /// Draws the time of the next arrival.
    pub fn draw(&mut self) -> Time {
        // The logarithm of (0, 1], by which the inverse of the distribution function is taken.
        let gap = -maths::ln(1.0 - self.random.unit()) * self.gap;
        self.last += Span::from_nanos(gap.round() as u64);
        self.last
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_exponential() {
        let mut arrivals = Poisson::new(Random::for_component(1, 0, "arrivals"), 1000.0, Time::from_secs(2));
        let times: Vec<Time> = (0..100_000).map(|_| arrivals.draw()).collect();
        let gaps: Vec<f64> = times
            .iter()
            .scan(Time::from_secs(2), |last, &at| Some(at.since(std::mem::replace(last, at)).as_secs_f64()))
            .collect();
        let mean = gaps.iter().sum::<f64>() / gaps.len() as f64;
        let square = gaps.iter().map(|gap| gap * gap).sum::<f64>() / gaps.len() as f64;
        // The mean is 1 ms, within 3 of its standard errors of 1/316; the mean square is 2 of its
        // squares, with a standard error of sqrt(20)/316; e^-2 of the gaps are longer than 2 ms.
        assert!((mean * 1000.0 - 1.0).abs() < 3.0 / 316.0, "{mean}");
        assert!((square * 1e6 - 2.0).abs() < 3.0 * 4.5 / 316.0, "{square}");
        let long = gaps.iter().filter(|&&gap| gap > 0.002).count() as f64 / gaps.len() as f64;
        assert!((long - 0.1353).abs() < 0.004, "{long}");
    }
}
