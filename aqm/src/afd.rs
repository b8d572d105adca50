//! AFD, approximate fair dropping: a drop-tail queue that drops an arrival with a probability that
//! leaves every flow the same rate.
//!
//! A sample of the last arrivals, the shadow buffer, tells how many of them are of the arrival's
//! flow, m_i. Flows may have m_fair of them: an arrival is dropped with probability 1 - m_fair /
//! m_i if that is above zero. At a fixed interval m_fair moves with the queue's distance from its
//! target and the change of it: with a longer queue all flows get less.
//!
//! # Source
//! Pan, Breslau, Prabhakar, Shenker 2003, "Approximate Fairness through Differential Dropping"
//! (ACM CCR 33(2)): the law, its weights and its 160 updates a second. Lin Xue's `sch_afq` (2012):
//! the flow table, the order in which samples are replaced, the target of a fifth of the limit.
//!
//! # Departures
//! - Flows share the places of the table by their hash, as in `sch_afq`; the paper counts each for
//!   itself.
//! - m_fair stays between zero and the shadow buffer, so that a long time without traffic or in
//!   overload is soon forgotten.
//! - There is no timer. Updates that were due are applied, each with the queue at its time, before
//!   a packet is considered.

use std::any::Any;
use std::collections::VecDeque;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, POSITIVE};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

const PAPER: &str = "Pan et al. 2003";
const PACKETS: Domain = Domain::Packets(1, MAX);
const COUNT: Domain = Domain::Whole(1, 1 << 20, "");
const WEIGHT: Domain = Domain::Number(0.0, 1000.0, "");

configuration! {
/// Parameters of an AFD queue.
#[derive(Clone, Debug, PartialEq)]
pub struct AfdConfig {
    /// The most packets that wait; further ones are refused. Default: 1000.
    pub limit: u64 = 1000 => (PACKETS, "own");
    /// The packets that the queue is to hold. Default: a fifth of `limit`.
    pub target: Option<u64> = None => (PACKETS, "`sch_afq`", derived "a fifth of `limit`");
    /// The samples in the shadow buffer. Default: 500.
    pub shadow: u32 = 500 => (COUNT, "own");
    /// One in so many arrivals, at random, is a sample. Default: 5.
    pub sample: u32 = 5 => (COUNT, "own");
    /// The places of the table of flows. Default: 1024.
    pub flows: u32 = 1024 => (COUNT, "own");
    /// Time between two updates of the fair share. Default: 6.25 ms, 160 a second.
    pub tupdate: Span = Span::from_micros(6250) => (POSITIVE, PAPER);
    /// Weight of the queue's distance from `target` at the last update, in samples a packet.
    /// Default: 1.7.
    pub alpha: f64 = 1.7 => (WEIGHT, PAPER);
    /// Weight of its distance now. Default: 1.8.
    pub beta: f64 = 1.8 => (WEIGHT, PAPER);
} problem
}

impl Discipline for AfdConfig {}

impl AfdConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let is_weight = |number: f64| number.is_finite() && number >= 0.0;
        if self.shadow == 0 || self.sample == 0 || self.flows == 0 || self.tupdate == Span::ZERO {
            Some("shadow, sample, flows and tupdate must not be zero")
        } else if !is_weight(self.alpha) || !is_weight(self.beta) {
            Some("alpha and beta must be finite and not negative")
        } else {
            None
        }
    }

    fn target(&self) -> f64 {
        self.target.unwrap_or(self.limit / 5) as f64
    }
}

/// An AFD queue.
#[derive(Debug)]
pub struct Afd<P> {
    config: AfdConfig,
    /// The places of the samples' flows, the oldest first, and how many samples each place has.
    samples: VecDeque<u32>,
    counts: Vec<u32>,
    /// The samples that a flow may have.
    fair: f64,
    /// The packets that waited at the last update.
    before: f64,
    next_update: Time,
    /// The probability of the last arrival.
    probability: f64,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Afd<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have an [`AfdConfig::problem`].
    pub fn new(config: AfdConfig, random: Random) -> Afd<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        Afd {
            samples: VecDeque::with_capacity(config.shadow as usize),
            counts: vec![0; config.flows as usize],
            fair: config.shadow.into(),
            before: 0.0,
            next_update: Time::ZERO + config.tupdate,
            probability: 0.0,
            config,
            random,
            store: Store::new(),
        }
    }

    /// Makes the updates that were due up to `now`. Nothing came or left since the first of them,
    /// so that all but that one are the same.
    fn catch_up(&mut self, now: Time) {
        if self.next_update > now {
            return;
        }
        let AfdConfig { alpha, beta, tupdate, shadow, .. } = self.config;
        let excess = self.store.backlog().packets as f64 - self.config.target();
        let more = now.since(self.next_update).as_nanos() / tupdate.as_nanos();
        let bound = |fair: f64| fair.clamp(0.0, shadow.into());
        self.fair = bound(self.fair + alpha * (self.before - self.config.target()) - beta * excess);
        self.fair = bound(self.fair + more as f64 * (alpha - beta) * excess);
        self.before = self.store.backlog().packets as f64;
        self.next_update += tupdate * (more + 1);
    }

    /// Samples an arrival, and says how many samples there are of its flow.
    fn sample(&mut self, flow_hash: u64) -> u32 {
        let place = flow_hash % self.counts.len() as u64;
        if self.random.below(self.config.sample.into()) == 0 {
            if self.samples.len() == self.config.shadow as usize
                && let Some(oldest) = self.samples.pop_front()
            {
                self.counts[oldest as usize] -= 1;
            }
            self.samples.push_back(place as u32);
            self.counts[place as usize] += 1;
        }
        self.counts[place as usize]
    }
}

impl<P: Queued + Send> QueueDisc<P> for Afd<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        let matches = self.sample(packet.flow_hash());
        self.probability = (1.0 - self.fair / f64::from(matches.max(1))).max(0.0);
        if matches == 0 {
            self.probability = 0.0;
        }
        if self.store.backlog().packets >= self.config.limit {
            self.store.refuse(packet, DropReason::Limit, drops);
        } else if self.random.chance(self.probability) {
            self.store.refuse(packet, DropReason::Early, drops);
        } else {
            self.store.admit(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        // An empty queue is caught up with in one step, by whatever comes next.
        if self.store.front().is_some() {
            self.catch_up(now);
        }
        self.store.send()
    }

    /// Other parameters at run time. The fair share and the samples stay, the next update is due
    /// when it was, and heads beyond the new limit are discarded.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<AfdConfig>(config)?.clone();
        valid(config.problem())?;
        if config.shadow != self.config.shadow {
            return Err(ChangeError::Fixed("shadow"));
        }
        if config.flows != self.config.flows {
            return Err(ChangeError::Fixed("flows"));
        }
        self.catch_up(now);
        let limit = config.limit;
        self.config = config;
        self.store.trim(drops, |store| store.backlog().packets > limit);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The probability of the last arrival.
    fn probe(&self) -> Probe {
        Probe { probability: Some(self.probability), ..Probe::default() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("fair_share", Variable::Count(self.fair.round() as u64));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Stub, stub};

    fn queue(config: AfdConfig) -> Afd<Stub> {
        Afd::new(config, Random::for_component(1, 0, "afd"))
    }

    fn of(flow: u64, id: u32) -> Stub {
        Stub { flow, ..stub(id, 1000) }
    }

    /// m_fair(t) = m_fair(t - 1) + 1.7 (q(t - 1) - q_target) - 1.8 (q(t) - q_target), with 500 at
    /// the start and a target of 200. With 210 packets: 500 + 1.7 (0 - 200) - 1.8 * 10 = 142, then
    /// 142 + 17 - 18 = 141 and 140; an hour later nothing is left. Without packets it grows, by
    /// 17 + 1.8 * 200 = 377, then by 20 each.
    #[test]
    fn the_fair_share_follows_the_queue() {
        let mut queue = queue(AfdConfig::default());
        let mut drops = Drops::new();
        (0..210).for_each(|id| queue.enqueue(Time::ZERO, of(u64::from(id), id), &mut drops));
        let fair = |queue: &mut Afd<Stub>, micros| {
            queue.catch_up(Time::from_micros(micros));
            (queue.fair * 1e6).round() / 1e6
        };
        let found = [6249, 6250, 12_500, 18_749, 18_750].map(|micros| fair(&mut queue, micros));
        assert_eq!(found, [500.0, 142.0, 141.0, 141.0, 140.0]);
        assert_eq!(fair(&mut queue, 3_600_000_000), 0.0);
        while queue.dequeue(Time::from_secs(3600), &mut drops).packet().is_some() {}
        let found = [3_600_006_250, 3_600_012_500, 3_600_018_750].map(|micros| fair(&mut queue, micros));
        assert_eq!(found, [377.0, 397.0, 417.0]);
    }

    /// Every arrival is a sample: of 400 of one flow and 100 of another, in turns of five, the
    /// buffer of 500 has 400 and 100. With a fair share of 100 the first loses 1 - 100/400 = 75 %
    /// of 4000 (standard deviation 27), and the other, at its share, none.
    #[test]
    fn a_flow_loses_what_it_has_beyond_its_share() {
        let mut queue =
            queue(AfdConfig { sample: 1, limit: 100_000, tupdate: Span::from_secs(1000), ..AfdConfig::default() });
        let mut drops = Drops::new();
        let flow = |id: u32| u64::from(id.is_multiple_of(5));
        (0..500).for_each(|id| queue.enqueue(Time::ZERO, of(flow(id), id), &mut drops));
        assert!(drops.is_empty());
        queue.fair = 100.0;
        (0..5000).for_each(|id| queue.enqueue(Time::ZERO, of(flow(id), id), &mut drops));
        let lost = drops.iter().filter(|dropped| dropped.packet.flow == 0).count();
        assert!(lost.abs_diff(3000) <= 5 * 27, "{lost}");
        assert_eq!(drops.len(), lost);
        assert!(drops.iter().all(|dropped| dropped.reason == DropReason::Early));
    }

    #[test]
    fn one_in_so_many_is_a_sample() {
        let mut queue = queue(AfdConfig { limit: 100_000, shadow: 100_000, ..AfdConfig::default() });
        let mut drops = Drops::new();
        (0..10_000).for_each(|id| queue.enqueue(Time::ZERO, of(1, id), &mut drops));
        // 2000 with a standard deviation of 40.
        assert!(queue.samples.len().abs_diff(2000) <= 200, "{}", queue.samples.len());
        assert_eq!(queue.counts[1] as usize, queue.samples.len());
    }

    #[test]
    fn parameters_that_make_no_sense_are_refused() {
        let wrong = [
            AfdConfig { shadow: 0, ..AfdConfig::default() },
            AfdConfig { sample: 0, ..AfdConfig::default() },
            AfdConfig { flows: 0, ..AfdConfig::default() },
            AfdConfig { tupdate: Span::ZERO, ..AfdConfig::default() },
            AfdConfig { alpha: f64::NAN, ..AfdConfig::default() },
            AfdConfig { beta: -1.0, ..AfdConfig::default() },
        ];
        assert!(wrong.iter().all(|config| config.problem().is_some()));
        let mut queue = queue(AfdConfig::default());
        for (config, name) in [
            (AfdConfig { shadow: 9, ..AfdConfig::default() }, "shadow"),
            (AfdConfig { flows: 9, ..AfdConfig::default() }, "flows"),
        ] {
            assert_eq!(queue.change(Time::ZERO, &config, &mut Drops::new()), Err(ChangeError::Fixed(name)));
        }
    }
}
