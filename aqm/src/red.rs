//! RED, Random Early Detection: marks or drops arrivals at random, the more often the longer the
//! queue is on average.
//!
//! It measures the backlog in bytes at each arrival and averages it exponentially; during idle time
//! the average decays as if small packets had passed, if the link reports it (a token bucket does
//! not). Below `min` nothing happens. From `min` to `max` the probability rises to `probability`,
//! and marks are spaced out evenly instead of at random. From `max` on every packet is marked or
//! dropped. With `adaptive` the probability at `max` moves so that the average settles half way.
//!
//! Two algorithms share the queue: Linux's (`red/linux.rs`), and with `floyd` the one of the
//! authors (`red/floyd.rs`).
//!
//! # Source
//! Floyd, Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance"; Floyd,
//! Gummadi, Shenker 2001, "Adaptive RED". Linux `sch_red` and `include/net/red.h`; parameters, what
//! is derived from them and statistics as `tc-red(8)`.
//!
//! # Departures
//! From Linux:
//! - The probability is a floating-point number; Linux truncates what it divides (below 0.1 % with
//!   ordinary parameters).
//! - The updates of `adaptive` are due at exact multiples of the interval from the start of the
//!   run, and not at the next tick of the kernel's clock. There is no timer: those that were due
//!   are applied, each with the average at its time, before a packet is considered. So
//!   [`QueueDisc::probe`] shows the state as of the last call.
//! - A packet selected for marking that does not fit within `limit` is dropped and counted as
//!   dropped; Linux counts a mark as well.
//! - `qevent` filters are left out.
//!
//! Those of the authors' law are in its file.

pub(crate) mod config;
mod floyd;
pub(crate) mod linux;
mod reaction;

use std::any::Any;

use ackclock_units::{Random, Time};

use self::config::Average;
pub use self::config::{RedAdaptive, RedBottom, RedConfig, RedFloyd, RedWeight};
use self::floyd::Floyd;
use self::linux::{Linux, Thresholds};
pub(crate) use self::reaction::RedReaction;
use crate::change::parameters;
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

/// The statistics of a RED queue, as `tc -s` prints them and the kernel has them beyond that.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct RedStats {
    /// Packets marked: `prob_mark` and `forced_mark`.
    pub marked: u64,
    /// Packets dropped by the law: `prob_drop` and `forced_drop`.
    pub early: u64,
    /// Packets dropped at `limit`.
    pub pdrop: u64,
    /// Packets that another discipline had dropped here; there is no such call, so 0.
    pub other: u64,
    /// Packets that the law objected to: marked, dropped, or let pass for `nodrop`.
    pub overlimits: u64,
    /// Marked with a probability, the average being below `max` (twice `max` if `gentle`).
    pub prob_mark: u64,
    /// Dropped with a probability.
    pub prob_drop: u64,
    /// Marked for certain.
    pub forced_mark: u64,
    /// Dropped for certain.
    pub forced_drop: u64,
    /// The probability at `max`, which `adaptive` moves.
    pub max_p: f64,
}

/// A RED queue.
#[derive(Debug)]
pub struct Red<P> {
    limit: u64,
    ecn: bool,
    harddrop: bool,
    nodrop: bool,
    law: RedLaw,
    adaptation: Option<RedAdaptation>,
    stats: RedStats,
    random: Random,
    store: Store<P>,
}

#[derive(Clone, Debug)]
enum RedLaw {
    Linux(Linux),
    Floyd(Floyd),
}

/// The adaptation of the probability at `max`: times and steps.
#[derive(Clone, Debug)]
struct RedAdaptation {
    config: RedAdaptive,
    bottom: f64,
    /// The target range of the average, in bytes.
    low: f64,
    high: f64,
    next: Time,
}

impl<P: Queued> Red<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`RedConfig::problem`].
    pub fn new(config: RedConfig, random: Random) -> Red<P> {
        let average = config.average().unwrap_or_else(|problem| panic!("{problem}"));
        let law = RedLaw::new(&config, average);
        let adaptation = config.adaptive.clone().map(|adaptive| RedAdaptation::new(adaptive, &config, Time::ZERO));
        let RedConfig { limit, ecn, harddrop, nodrop, .. } = config;
        Red { limit, ecn, harddrop, nodrop, law, adaptation, stats: RedStats::default(), random, store: Store::new() }
    }

    /// The statistics.
    pub fn stats(&self) -> RedStats {
        RedStats {
            marked: self.stats.prob_mark + self.stats.forced_mark,
            early: self.stats.prob_drop + self.stats.forced_drop,
            pdrop: self.store.books().counters().dropped[DropReason::Limit as usize],
            max_p: self.law.max_p(),
            ..self.stats
        }
    }

    /// Makes up for the updates that were due up to `now`. Nothing came or left since the last of
    /// them.
    fn catch_up(&mut self, now: Time) {
        if let Some(adaptation) = &mut self.adaptation
            && adaptation.next <= now
        {
            adaptation.catch_up(&mut self.law, now);
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Red<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        let backlog = self.store.backlog().bytes;
        let verdict = match &mut self.law {
            RedLaw::Linux(law) => law.arrival(now, backlog, &mut self.random),
            RedLaw::Floyd(law) => law.arrival(now, backlog, packet.wire_len(), &mut self.random),
        };
        // As Linux's bfifo, which keeps the packets there.
        let fits = backlog + u64::from(packet.wire_len()) <= self.limit;
        if verdict != RedReaction::Pass {
            let forced = verdict == RedReaction::Forced;
            self.stats.overlimits += 1;
            let may_mark = self.ecn && !(forced && self.harddrop) && self.law.may_mark();
            if !(may_mark && (self.nodrop || packet.ecn().is_capable())) {
                *(if forced { &mut self.stats.forced_drop } else { &mut self.stats.prob_drop }) += 1;
                self.store.refuse(packet, DropReason::Early, drops);
                return;
            }
            if fits && self.store.mark(&mut packet) {
                *(if forced { &mut self.stats.forced_mark } else { &mut self.stats.prob_mark }) += 1;
            }
        }
        if fits {
            self.store.admit(now, packet);
        } else {
            self.law.overflowed();
            self.store.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.catch_up(now);
        self.store.send()
    }

    fn idle(&mut self, now: Time) {
        // The updates that were due come first: they are of the time with a queue.
        self.catch_up(now);
        self.law.idle_since().get_or_insert(now);
    }

    /// Other parameters at run time. As in Linux (`red_change`, `red_set_vars`) the queue is a new
    /// one: all packets that wait are discarded, the average starts again at zero, and so does
    /// the time without a queue; updates of `adaptive` are due an interval from now. The statistics
    /// stay.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<RedConfig>(config)?.clone();
        let law = RedLaw::new(&config, config.average().map_err(ChangeError::Invalid)?);
        self.store.trim(drops, |_| true);
        self.law = law;
        *self.law.idle_since() = Some(now);
        self.adaptation = config.adaptive.clone().map(|adaptive| RedAdaptation::new(adaptive, &config, now));
        RedConfig { limit: self.limit, ecn: self.ecn, harddrop: self.harddrop, nodrop: self.nodrop, .. } = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The average at the last arrival, and the probability that goes with it before marks are
    /// spaced out.
    fn probe(&self) -> Probe {
        let (average, probability) = match &self.law {
            RedLaw::Linux(law) => (law.average(), law.probability()),
            RedLaw::Floyd(law) => (law.average, law.probability()),
        };
        Probe { probability: Some(probability), average: Some(average), ..Probe::default() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("max_p", Variable::Probability(self.law.max_p()));
    }
}

impl RedLaw {
    fn new(config: &RedConfig, average: Average<'_>) -> RedLaw {
        match average {
            Average::Linux(wlog, damping) => {
                let (min, max) = config.thresholds();
                RedLaw::Linux(Linux::new(Thresholds::new([min, max], config.probability, wlog), damping))
            }
            Average::Floyd(floyd, weight) => RedLaw::Floyd(Floyd::new(config, floyd, weight)),
        }
    }

    /// The average at `time`, before a packet of that time.
    fn average_at(&self, time: Time) -> f64 {
        match self {
            RedLaw::Linux(law) => law.average_at(time),
            RedLaw::Floyd(law) => law.average_at(time),
        }
    }

    /// Returns `true` if packets that can carry a mark are marked at the present average.
    fn may_mark(&self) -> bool {
        match self {
            RedLaw::Linux(_) => true,
            RedLaw::Floyd(law) => law.may_mark(),
        }
    }

    /// A packet that was not dropped by the law did not fit.
    fn overflowed(&mut self) {
        match self {
            RedLaw::Linux(_) => {}
            RedLaw::Floyd(law) => law.overflowed(),
        }
    }

    fn max_p(&self) -> f64 {
        match self {
            RedLaw::Linux(law) => law.thresholds.max_p,
            RedLaw::Floyd(law) => law.max_p,
        }
    }

    fn set_max_p(&mut self, max_p: f64) {
        match self {
            RedLaw::Linux(law) => law.thresholds.max_p = max_p,
            RedLaw::Floyd(law) => law.max_p = max_p,
        }
    }

    fn idle_since(&mut self) -> &mut Option<Time> {
        match self {
            RedLaw::Linux(law) => &mut law.idle_since,
            RedLaw::Floyd(law) => &mut law.idle_since,
        }
    }
}

impl RedAdaptation {
    fn new(adaptive: RedAdaptive, config: &RedConfig, now: Time) -> RedAdaptation {
        let (min, max) = config.thresholds();
        let (min, range) = (min as f64, (max - min) as f64);
        let next = now + adaptive.interval;
        let bottom = adaptive.bottom.at(config.bandwidth);
        RedAdaptation { config: adaptive, bottom, low: min + 0.4 * range, high: min + 0.6 * range, next }
    }

    fn catch_up(&mut self, law: &mut RedLaw, now: Time) {
        while self.next <= now {
            let average = law.average_at(self.next);
            let before = law.max_p();
            let after = self.step(before, average);
            law.set_max_p(after);
            let mut updates = 1;
            // The average stands still, or falls while there is no queue: the rest of the updates
            // will not change it either.
            if after == before && (average < self.low || law.idle_since().is_none()) {
                updates += now.since(self.next).as_nanos() / self.config.interval.as_nanos();
            }
            self.next += self.config.interval * updates;
        }
    }

    /// The probability after an update (Floyd, Gummadi, Shenker 2001, figure 1).
    fn step(&self, max_p: f64, average: f64) -> f64 {
        if average > self.high && max_p <= self.config.top {
            (max_p + self.config.alpha.min(max_p / 4.0)).min(1.0)
        } else if average < self.low && max_p >= self.bottom {
            max_p * self.config.beta
        } else {
            max_p
        }
    }
}

#[cfg(test)]
mod tests;
