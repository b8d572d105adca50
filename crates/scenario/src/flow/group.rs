//! An entry of `[[flows]]`, and the flows that it stands for.

use ackclock_sim::spec::Pairs;
use std::sync::Arc;

use ackclock_sim::Population;
use ackclock_sim::spec::{EndsSpec, FlowGroup, FlowSpec, MAX_ALIVE, Poisson, Start, Starts, SumSpec};
use ackclock_units::{Random, Span, Time as Instant};

use super::carried::Carriage;
use super::interrupts::FlowInterrupts;
use crate::ends::Ends;
use crate::topology::Among;

/// The most connections of one run.
pub const MAX_FLOWS: u64 = 100_000;

/// An entry of `[[flows]]`: connections that are alike.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Group {
    pub(crate) id: String,
    /// The common properties of its connections.
    pub(crate) alike: Arc<FlowGroup>,
    /// Packets that its hosts receive wait for these.
    pub(crate) interrupts: FlowInterrupts,
    /// Number of connections at the same time.
    pub(crate) parallel: u64,
    pub(super) stagger: Span,
    /// The hosts of its ends, if it names them.
    pub(crate) ends: Option<Ends>,
    /// The hosts of a network that it is between, each pair with as many connections.
    pub(crate) among: Option<Among>,
    /// The hosts and the path that it adds, if its ends are stacks.
    pub(crate) carriage: Option<Arc<Carriage>>,
    /// `true` if packets come from these hosts: the ends that are kernels are outside.
    pub(super) outside: bool,
    pub(crate) start: Span,
    /// Every start is later by a time of its own, drawn from 0 to this.
    pub(super) start_jitter: Span,
    pub(crate) stop: Option<Span>,
    pub(crate) arrivals: GroupArrivals,
    /// Each connection lasts this long, and another one follows.
    pub(super) restart_every: Option<Span>,
    /// When the last one may start: the end of the run, `stop` or `abort`.
    pub(crate) end: Span,
}

/// The arrivals and results of a group, from its keys.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct GroupArrivals {
    /// Flows in a second, if they arrive at random.
    pub(crate) rate: Option<f64>,
    /// The results list the group, and not its flows.
    pub(crate) sums: bool,
}

impl Group {
    /// Number of connections in all.
    pub(crate) fn count(&self) -> u64 {
        match self.restart_every {
            None => self.parallel,
            Some(every) => (0..self.parallel)
                .map(|number| (self.end - self.first_start(number)).as_nanos().div_ceil(every.as_nanos()).max(1))
                .sum(),
        }
    }

    /// Returns `true` if more of its connections may exist in a run than at a time.
    pub(super) fn comes_and_goes(&self) -> bool {
        self.arrivals.sums && self.arrivals.rate.is_some()
    }

    /// The pairs of hosts of a network in repetition `run`, which its connections have in turn.
    fn pairs(&self, seed: u64, run: u64) -> Option<Pairs> {
        Some(self.among.as_ref()?.pairs(seed, run, &format!("flows.{}", self.id)))
    }

    fn first_start(&self, number: u64) -> Span {
        self.start + self.stagger * number
    }

    /// When each starts and stops, in order of their numbers: all of a round before those that
    /// follow them.
    fn times(&self) -> impl Iterator<Item = (Span, Option<Span>)> + '_ {
        let every = self.restart_every.unwrap_or(Span::MAX);
        (0..)
            .map(move |round: u64| {
                (0..self.parallel)
                    .map(move |number| self.first_start(number) + every * round)
                    .filter(move |&start| round == 0 || start < self.end)
            })
            .take_while(|starts| starts.clone().next().is_some())
            .flatten()
            .map(|start| {
                let lasts = self.restart_every.map(|every| start + every);
                (start, [lasts, self.stop].into_iter().flatten().min())
            })
    }

    /// When each starts and stops in repetition `run`, in order of their numbers. A flow that would
    /// not arrive in time never starts.
    pub(crate) fn starts(&self, seed: u64, run: u64) -> impl Iterator<Item = (Instant, Option<Instant>)> + '_ {
        let mut poisson = self.poisson(seed, run);
        self.times().enumerate().map(move |(number, (start, stop))| {
            let start = match &mut poisson {
                Some(arrivals) => {
                    Some(arrivals.draw()).filter(|&at| at < Instant::ZERO + self.end).unwrap_or(Instant::NEVER)
                }
                None => {
                    let stream = format!("flows.{}.{number}.start", self.id);
                    let jitter = Random::for_component(seed, run, &stream).below(self.start_jitter.as_nanos());
                    Instant::ZERO + start + Span::from_nanos(jitter)
                }
            };
            (start, stop.map(|stop| Instant::ZERO + stop))
        })
    }

    /// The connections of repetition `run` that the results list, each with its number.
    pub(crate) fn flows(&self, seed: u64, run: u64) -> impl Iterator<Item = FlowSpec> + '_ {
        let listed = Some(self).filter(|group| !group.arrivals.sums);
        let starts = listed.into_iter().flat_map(move |group| group.starts(seed, run));
        let pairs = self.pairs(seed, run);
        starts.enumerate().map(move |(number, (start, stop))| FlowSpec {
            id: format!("{}.{number}", self.id).into(),
            group: Arc::clone(&self.alike),
            start,
            stop,
            ends: self.ends.as_ref().filter(|_| self.outside).map(|ends| EndsSpec {
                source_port: ends
                    .spec
                    .source_port
                    .map(|first| u64::from(first).saturating_add(number as u64).try_into().unwrap_or(u16::MAX)),
                ..ends.spec
            }),
            via: pairs.as_ref().map(|pairs| pairs.via(number as u64)),
        })
    }
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
