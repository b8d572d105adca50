//! SFB, Stochastic Fair BLUE: a BLUE for each of many bins that flows share, so that unresponsive
//! flows are detected and limited to a small rate.
//!
//! A flow belongs to one bin of 16 on each of 8 levels. On arrival each of the eight bins moves its
//! own probability: up if `target` packets or more wait in it, down if none does. The lowest of the
//! eight applies to the packet: sharing a bin with a greedy flow does not harm a responsive one as
//! long as it has another bin to itself. A flow whose eight bins are all at the highest probability
//! is unresponsive; all such flows together may send at `penalty_rate`.
//!
//! Which bins belong to a flow changes every `rehash`, so that two flows do not share all of them
//! for long. The set of bins that takes over learns from the unresponsive flows during `db` before.
//!
//! # Source
//! Feng, Kandlur, Saha, Shin 2001, "Stochastic Fair Blue: A Queue Management Algorithm for
//! Enforcing Fairness"; in all details Linux `sch_sfb`; parameters, defaults and statistics of
//! `tc-sfb(8)`. Probabilities are multiples of 1/65,536 there and here. Like there, bins have no
//! freeze time, a set keeps its old probabilities when it gets a new hash, and a hash is changed by
//! the first packet after `rehash`, not by a timer.
//!
//! # Departures
//! - `penalty_rate` is a token bucket that earns as time passes and holds `penalty_burst`, which is
//!   what tc-sfb(8) promises. Linux fills it only when it is empty and starts its clock anew with
//!   each packet refused, so that flows faster than `penalty_rate` send nothing after their burst.
//! - Bins are chosen by the packet's flow hash, mixed with a random number of each set. `tc`
//!   filters are left out.

use std::any::Any;
use std::collections::VecDeque;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, HASH_SEED, MAX, OWN_SALT, PROBABILITY};
use crate::drr::mix;
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

/// Levels of bins (Linux `SFB_LEVELS`).
const LEVELS: usize = 8;
/// Bins of a level (Linux `SFB_NUMBUCKETS`).
const BINS: usize = 16;
/// The highest probability (Linux `SFB_MAX_PROB`).
const MAX_PROBABILITY: u32 = 0xffff;
/// The cost of a packet for the penalty box, which earns `penalty_rate` in each nanosecond.
const TOKEN: u64 = 1_000_000_000;

const LINUX: &str = "tc-sfb(8)";

configuration! {
/// Parameters of an SFB queue. Those that are `None` are derived as `tc` does.
#[derive(Clone, Debug, PartialEq)]
pub struct SfbConfig {
    /// Time after which flows get other bins; zero: never. Default: 600 s.
    pub rehash: Span = Span::from_secs(600) => (Domain::Time { positive: false }, LINUX);
    /// The time before that from which the other set of bins learns; zero: it does not. Default: 60
    /// s.
    pub db: Span = Span::from_secs(60) => (Domain::Time { positive: false }, LINUX);
    /// The most packets that wait; further ones are refused. Default: 1000, the `txqueuelen` of a
    /// Linux Ethernet device.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), LINUX);
    /// A packet is refused if this many wait in each of its bins. Default: 5/4 of `target` if that
    /// is given, else 25.
    pub max: Option<u32> = None => (Domain::Packets(1, 65_535), LINUX, derived "5/4 of `target`, else 25");
    /// A bin's probability rises with each arrival while this many packets wait in it. Default: 4/5
    /// of `max`: 20.
    pub target: Option<u32> = None => (Domain::Packets(1, 65_535), LINUX, derived "4/5 of `max`");
    /// A rise of a bin's probability. Default: 0.0005.
    pub increment: f64 = 0.0005 => (PROBABILITY, LINUX);
    /// A fall of a bin's probability. Default: 0.00005.
    pub decrement: f64 = 0.00005 => (PROBABILITY, LINUX);
    /// Packets per second that flows which do not respond may send together. Default: 10.
    pub penalty_rate: u32 = 10 => (Domain::Whole(0, 1 << 20, "packets/s"), LINUX);
    /// The most of them at once. Default: 20.
    pub penalty_burst: u32 = 20 => (Domain::Whole(0, 1 << 20, "packets"), LINUX);
    /// The seed of the numbers that choose a flow's bins; `None` is the run's seed. Default:
    /// `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
} problem
}

impl Discipline for SfbConfig {
    fn marks(&self) -> bool {
        true
    }
}

impl SfbConfig {
    /// `max` and `target`, as given or derived.
    pub fn bin_sizes(&self) -> (u32, u32) {
        let max = self.max.unwrap_or_else(|| match self.target {
            Some(target) => ((u64::from(target) * 5 + 1) / 4).min(u64::from(u32::MAX)) as u32,
            None => 25,
        });
        (max, self.target.unwrap_or(((u64::from(max) * 4 + 3) / 5) as u32))
    }

    /// The stream of the hashes, if it is not that of the queue.
    fn hashes(&self) -> Option<Random> {
        self.hash_seed.map(|seed| Random::for_component(seed, 0, "hash"))
    }

    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let steps = [self.increment, self.decrement];
        (!steps.iter().all(|p| (0.0..=1.0).contains(p))).then_some("increment and decrement must be within 0 to 1")
    }
}

/// The statistics of an SFB queue, as `tc -s` prints them.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SfbStats {
    /// Packets dropped at random.
    pub earlydrop: u64,
    /// Packets of flows that do not respond, dropped beyond their rate.
    pub penaltydrop: u64,
    /// Packets refused because all of their bins were full.
    pub bucketdrop: u64,
    /// Packets refused at `limit`.
    pub queuedrop: u64,
    /// Packets that the discipline inside dropped; it is a queue with the same limit, so 0.
    pub childdrop: u64,
    /// Packets marked.
    pub marked: u64,
    /// `penaltydrop`, `bucketdrop` and `queuedrop` together.
    pub overlimits: u64,
    /// Packets in the fullest bin.
    pub maxqlen: u32,
    /// The highest probability of a bin.
    pub maxprob: f64,
    /// The average probability of the bins.
    pub avgprob: f64,
}

/// An SFB queue.
#[derive(Debug)]
pub struct Sfb<P> {
    config: SfbConfig,
    law: SfbLaw,
    penalty: Penalty,
    random: Random,
    /// The stream of perturbations, if it is not `random`.
    hashes: Option<Random>,
    store: Store<P>,
    /// The bins in which each of the waiting packets is counted, in their order.
    places: VecDeque<PacketBins>,
}

/// The variables of the law.
#[derive(Debug)]
struct SfbLaw {
    max: u32,
    target: u32,
    /// The step of the probability, in 1/65,536.
    increment: u32,
    decrement: u32,
    sets: [Set; 2],
    /// The set in use.
    slot: usize,
    rehashed_at: Time,
    /// The probability of the last arrival.
    probability: u32,
}

/// Bins, and what chooses among them.
#[derive(Clone, Debug)]
struct Set {
    perturbation: u64,
    bins: [[Bin; BINS]; LEVELS],
}

#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Bin {
    /// Packets that wait.
    qlen: u32,
    /// The probability in 1/65,536.
    p_mark: u32,
}

/// The bins of a packet in each set, four bits a level; 0: it is not counted there.
#[derive(Clone, Copy, Debug, Default)]
struct PacketBins([u32; 2]);

/// The token bucket of the flows that do not respond.
#[derive(Debug)]
struct Penalty {
    /// At most [`TOKEN`] times the burst.
    credit: u64,
    earned_at: Time,
}

impl<P: Queued> Sfb<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have an [`SfbConfig::problem`].
    pub fn new(config: SfbConfig, mut random: Random) -> Sfb<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let mut hashes = config.hashes();
        let law = SfbLaw::new(&config, Time::ZERO, hashes.as_mut().unwrap_or(&mut random));
        let penalty = Penalty::new(&config, Time::ZERO);
        Sfb { config, law, penalty, random, hashes, store: Store::new(), places: VecDeque::new() }
    }

    /// The statistics. Those of the bins are of the set in use.
    pub fn stats(&self) -> SfbStats {
        let counters = self.store.books().counters();
        let dropped = |reason: DropReason| counters.dropped[reason as usize];
        let bins = || self.law.sets[self.law.slot].bins.iter().flatten();
        let [penaltydrop, bucketdrop, queuedrop] =
            [DropReason::Penalty, DropReason::Bucket, DropReason::Limit].map(dropped);
        SfbStats {
            earlydrop: dropped(DropReason::Early),
            penaltydrop,
            bucketdrop,
            queuedrop,
            childdrop: 0,
            marked: counters.marked.packets,
            overlimits: penaltydrop + bucketdrop + queuedrop,
            maxqlen: bins().map(|bin| bin.qlen).max().unwrap_or(0),
            maxprob: as_fraction(bins().map(|bin| bin.p_mark).max().unwrap_or(0)),
            avgprob: as_fraction(bins().map(|bin| bin.p_mark).sum()) / (LEVELS * BINS) as f64,
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Sfb<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        if self.store.backlog().packets >= self.config.limit {
            self.store.refuse(packet, DropReason::Limit, drops);
            return;
        }
        let warming = self.law.rehash(&self.config, now, self.hashes.as_mut().unwrap_or(&mut self.random));
        let (mut place, shortest) = self.law.arrival(packet.flow_hash());
        if shortest >= self.law.max {
            self.store.refuse(packet, DropReason::Bucket, drops);
            return;
        }
        if self.law.probability >= MAX_PROBABILITY {
            if warming {
                self.law.warm(packet.flow_hash(), &mut place);
            }
            if !self.penalty.pass(&self.config, now) {
                self.store.refuse(packet, DropReason::Penalty, drops);
                return;
            }
        } else {
            let probability = self.law.probability;
            // 16 bits: a probability of 65,535 is that of the penalty box.
            let drawn = (self.random.bits() >> 48) as u32;
            // Above one half marks have not been enough, and more and more of them become drops.
            let drop = drawn < probability.saturating_sub(MAX_PROBABILITY / 2) * 2;
            if drawn < probability && (drop || !self.store.mark(&mut packet)) {
                self.store.refuse(packet, DropReason::Early, drops);
                return;
            }
        }
        self.law.count(place, |qlen| qlen + 1);
        self.places.push_back(place);
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let Some(entry) = self.store.take() else { return Dequeue::Empty };
        if let Some(place) = self.places.pop_front() {
            self.law.count(place, |qlen| qlen - 1);
        }
        Dequeue::Packet(self.store.release(entry))
    }

    /// Other parameters at run time. As in Linux (`sfb_change`) all packets that wait are discarded
    /// and all bins start again, with other hashes: those of `hash_seed` from the start if it is
    /// another one.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<SfbConfig>(config)?.clone();
        valid(config.problem())?;
        self.store.trim(drops, |_| true);
        self.places.clear();
        if config.hash_seed != self.config.hash_seed {
            self.hashes = config.hashes();
        }
        self.law = SfbLaw::new(&config, now, self.hashes.as_mut().unwrap_or(&mut self.random));
        self.penalty = Penalty::new(&config, now);
        self.config = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The probability of the last arrival's flow.
    fn probe(&self) -> Probe {
        Probe { probability: Some(as_fraction(self.law.probability)), ..Probe::default() }
    }

    /// The variables of the law; those of the bins are of the set in use.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        let SfbStats { maxqlen, maxprob, avgprob, .. } = self.stats();
        see("set", Variable::Count(self.law.slot as u64));
        see("maxqlen", Variable::Count(maxqlen.into()));
        see("maxprob", Variable::Probability(maxprob));
        see("avgprob", Variable::Probability(avgprob));
    }
}

impl SfbLaw {
    fn new(config: &SfbConfig, now: Time, random: &mut Random) -> SfbLaw {
        let (max, target) = config.bin_sizes();
        let set = |perturbation| Set { perturbation, bins: [[Bin::default(); BINS]; LEVELS] };
        SfbLaw {
            max,
            target,
            increment: from_fraction(config.increment),
            decrement: from_fraction(config.decrement),
            sets: [set(random.bits()), set(random.bits())],
            slot: 0,
            rehashed_at: now,
            probability: 0,
        }
    }

    /// Lets the other set take over when it is time to; whether it is to learn.
    fn rehash(&mut self, config: &SfbConfig, now: Time, random: &mut Random) -> bool {
        if config.rehash == Span::ZERO {
            return false;
        }
        let due = self.rehashed_at + config.rehash;
        if now > due {
            self.sets[self.slot].perturbation = random.bits();
            self.slot ^= 1;
            self.rehashed_at = now;
            return false;
        }
        config.db > Span::ZERO && now > due - config.db
    }

    /// Moves the bins of an arrival and takes the lowest of their probabilities; its place, and the
    /// packets in the shortest of its bins.
    fn arrival(&mut self, flow_hash: u64) -> (PacketBins, u32) {
        let mut place = PacketBins::default();
        let (probability, shortest) = self.adjust(self.slot, flow_hash, &mut place);
        self.probability = probability;
        (place, shortest)
    }

    /// Moves the bins of the other set, where the packet will be counted too.
    fn warm(&mut self, flow_hash: u64, place: &mut PacketBins) {
        self.adjust(self.slot ^ 1, flow_hash, place);
    }

    fn adjust(&mut self, slot: usize, flow_hash: u64, place: &mut PacketBins) -> (u32, u32) {
        let set = &mut self.sets[slot];
        let hash = hash_in(flow_hash, set.perturbation);
        place.0[slot] = hash;
        let (mut probability, mut shortest) = (u32::MAX, u32::MAX);
        for (level, bins) in set.bins.iter_mut().enumerate() {
            let bin = &mut bins[index(hash, level)];
            if bin.qlen == 0 {
                bin.p_mark = bin.p_mark.saturating_sub(self.decrement);
            } else if bin.qlen >= self.target {
                bin.p_mark = (bin.p_mark + self.increment).min(MAX_PROBABILITY);
            }
            probability = probability.min(bin.p_mark);
            shortest = shortest.min(bin.qlen);
        }
        (probability, shortest)
    }

    /// Counts a packet in or out.
    fn count(&mut self, place: PacketBins, change: impl Fn(u32) -> u32) {
        for (set, hash) in self.sets.iter_mut().zip(place.0) {
            if hash != 0 {
                for (level, bins) in set.bins.iter_mut().enumerate() {
                    let bin = &mut bins[index(hash, level)];
                    bin.qlen = change(bin.qlen);
                }
            }
        }
    }
}

/// The bin of a hash on a level.
fn index(hash: u32, level: usize) -> usize {
    (hash >> (4 * level)) as usize % BINS
}

/// A flow's hash in a set, never 0.
fn hash_in(flow_hash: u64, perturbation: u64) -> u32 {
    ((mix(flow_hash ^ perturbation) >> 32) as u32).max(1)
}

impl Penalty {
    /// Full, unless there is no rate at all.
    fn new(config: &SfbConfig, now: Time) -> Penalty {
        let burst = if config.penalty_rate == 0 { 0 } else { config.penalty_burst };
        Penalty { credit: u64::from(burst) * TOKEN, earned_at: now }
    }

    /// Returns `true` if a packet of an unresponsive flow may pass.
    fn pass(&mut self, config: &SfbConfig, now: Time) -> bool {
        let earned = now.since(self.earned_at).as_nanos().saturating_mul(u64::from(config.penalty_rate));
        self.credit = self.credit.saturating_add(earned).min(u64::from(config.penalty_burst) * TOKEN);
        self.earned_at = now;
        if self.credit < TOKEN {
            return false;
        }
        self.credit -= TOKEN;
        true
    }
}

/// A probability in 1/65,536, as `tc` rounds it.
fn from_fraction(probability: f64) -> u32 {
    (probability * f64::from(MAX_PROBABILITY) + 0.5) as u32
}

/// A probability in [0, 1], as `tc` prints it.
fn as_fraction(probability: u32) -> f64 {
    f64::from(probability) / f64::from(MAX_PROBABILITY)
}

#[cfg(test)]
mod tests;
