//! Groups of flows that arrive at random, and those of which only sums are kept.

use ackclock_sim::Population;
use ackclock_sim::spec::{MAX_ALIVE, Poisson, Start, Starts, SumSpec};
use ackclock_units::{Random, Span, Time as Instant};

use super::{Group, MAX_FLOWS};
use crate::document::Table;
use crate::fields::Fields;
use crate::quantity::{Number, OneOf, Problem};

/// The most flows of which only sums are kept in one run.
pub(crate) const MAX_ARRIVALS: u64 = 100_000_000;

const RESULTS: OneOf = OneOf { what: "kind of results", names: &["each", "sum"] };

/// Flows in a second.
const RATES: Number = Number(1e-3, 1e9);

/// The arrivals and results of a group, from its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GroupArrivals {
    /// Flows in a second, if they arrive at random.
    pub(crate) rate: Option<f64>,
    /// The results list the group, and not its flows.
    pub(crate) sums: bool,
}

/// The most flows that a group may have; they are many if they come and go.
pub(crate) fn most(table: &Table) -> u64 {
    let sums = table.get("results").and_then(|entry| entry.node.str()) == Some("sum");
    if sums && table.get("arrival_rate").is_some() { MAX_ARRIVALS } else { MAX_FLOWS }
}

/// Reads `arrival_rate` and `results`; `outside` is whether packets come from outside, `others` are
/// the keys that have connections start at other times, with 0 where they do not.
pub(crate) fn read(
    fields: &mut Fields<'_>,
    table: &Table,
    outside: bool,
    others: [(&'static str, Span); 3],
) -> GroupArrivals {
    let rate = fields.maybe(("arrival_rate", "Poisson arrivals, flows per second"), RATES);
    let sums = fields.maybe(("results", "report each flow, or their sum"), RESULTS) == Some("sum");
    if rate.is_some() {
        for (key, _) in others.into_iter().filter(|&(_, value)| value > Span::ZERO) {
            if let Some(entry) = table.get(key) {
                let problem = Problem::new("not together with `arrival_rate`", "one of the two");
                fields.reject(key, &entry.node, problem);
            }
        }
    }
    if let (true, true, Some(entry)) = (sums, outside, table.get("results")) {
        let problem = Problem::new("not where packets come from outside", "`each`, or the virtual clock");
        fields.reject("results", &entry.node, problem);
    }
    GroupArrivals { rate, sums }
}

impl Group {
    /// The population of flows for which memory is taken.
    pub(crate) fn population(&self) -> Population<'_> {
        let arrivals = self.arrivals.rate.filter(|_| self.arrivals.sums);
        let (mean_bytes, most_alive) = (self.alike.bytes, MAX_ALIVE as u64);
        Population { group: &self.alike, count: self.count(), arrivals, mean_bytes, most_alive }
    }

    /// The Poisson process of its arrivals in repetition `run`.
    pub(crate) fn poisson(&self, seed: u64, run: u64) -> Option<Poisson> {
        let random = || Random::for_component(seed, run, &format!("flows.{}.arrivals", self.id));
        Some(Poisson::new(random(), self.arrivals.rate?, Instant::ZERO + self.start))
    }

    /// The group in repetition `run` behind `before` listed flows, if the results are to list it
    /// and not its flows.
    pub(crate) fn summed(&self, seed: u64, run: u64, before: usize) -> Option<SumSpec> {
        if !self.arrivals.sums {
            return None;
        }
        let at = |span: Span| Instant::ZERO + span;
        let starts = match self.poisson(seed, run) {
            Some(arrivals) => {
                Starts::Poisson { arrivals, count: self.parallel, until: at(self.end), stop: self.stop.map(at) }
            }
            None => {
                let start = |(number, (at, stop))| Start { at, stop, number };
                let mut starts: Vec<Start> = (0..).zip(self.starts(seed, run)).map(start).collect();
                starts.sort_by_key(|start| start.at);
                Starts::Listed(starts)
            }
        };
        let pairs = self.pairs(seed, run);
        Some(SumSpec { id: self.id.clone(), group: self.alike.clone(), starts, pairs, before })
    }
}
