//! DualPI2: a queue for scalable traffic (L4S) next to one for classic traffic, coupled so that
//! flows of both share a link about equally while L4S packets hardly wait.
//!
//! It measures how long the older of the two heads has waited. Every `tupdate` a PI controller
//! moves a base probability p with the delay's distance from `target` and its change. Classic
//! packets are dropped or marked with p squared, L4S packets marked with `coupling_factor` times p,
//! and always once they waited longer than `step_thresh`. A weighted round robin serves L4S first
//! and keeps a share for the classic queue.
//!
//! # Source
//! RFC 9332, appendix A (the law and what happens on overload); Linux `sch_dualpi2` since 6.17,
//! whose parameters and defaults these are.
//!
//! # Departures
//! From RFC 9332, as Linux does it:
//! - L4S packets see a step instead of a ramp, and random marks in addition, instead of the larger
//!   of the two.
//! - Nothing is dropped or marked at random while less than two packets wait behind.
//!
//! From Linux:
//! - The probability is a floating-point number, and `alpha` and `beta` are not rounded to 1/256
//!   Hz.
//! - The memory of a packet is assumed to be its bytes plus 576, instead of what Linux allocated
//!   (`truesize`).
//! - A packet that the random law and the step both mark counts once.
//! - `tc` filters that choose the queue and `split_gso` are left out: what arrives is a packet.
//!
//! There is no timer. Updates that were due are applied, each with the delay at its time, before a
//! packet is considered; one that is due at the time of a packet comes first. So
//! [`QueueDisc::probe`] shows the state as of the last call.

mod config;

use std::any::Any;
use std::collections::VecDeque;

use ackclock_units::{Ecn, Random, Span, Time};

pub use self::config::{DualPi2Config, StepThreshold};
use crate::books::{Books, memory_of};
use crate::change::{parameters, valid};
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

/// A DualPI2 queue.
#[derive(Debug)]
pub struct DualPi2<P> {
    config: DualPi2Config,
    state: State,
    /// The time of the next update.
    next_update: Time,
    /// The packet that arrived or left last belonged to the L4S queue.
    last_scalable: bool,
    /// Bytes times percent that the L4S queue is ahead of its share; the classic queue's turn is
    /// while it is positive.
    credit: i64,
    random: Random,
    l4s: VecDeque<ScalablePacket<P>>,
    classic: VecDeque<Entry<P>>,
    memory: u64,
    books: Books,
}

/// A packet in the L4S queue.
#[derive(Clone, Copy, Debug)]
struct ScalablePacket<P> {
    entry: Entry<P>,
    /// The step applies to it.
    step: bool,
    /// It was marked on arrival.
    marked: bool,
}

/// The state of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct State {
    /// The base probability (RFC 9332 appendix A, p').
    pub(crate) probability: f64,
    /// The delay at the last update.
    pub(crate) delay: Span,
}

/// The decision about a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum DualPi2Decision {
    Pass,
    Mark,
    Drop,
}

impl<P: Queued> DualPi2<P> {
    /// Empty queues that draw from `random`.
    ///
    /// # Panics
    /// If `tupdate` or `coupling_factor` is zero, `classic_protection` above 100, or `alpha` or
    /// `beta` negative or infinite.
    pub fn new(config: DualPi2Config, random: Random) -> DualPi2<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        DualPi2 {
            state: State::START,
            next_update: Time::ZERO + config.tupdate,
            last_scalable: false,
            credit: first_credit(&config),
            config,
            random,
            l4s: VecDeque::new(),
            classic: VecDeque::new(),
            memory: 0,
            books: Books::default(),
        }
    }

    /// Returns `true` if a packet of this codepoint belongs to the L4S queue (RFC 9331 section 5.1:
    /// CE may come from either, and is classified as L4S).
    fn is_scalable(&self, ecn: Ecn) -> bool {
        matches!(ecn, Ecn::Ect1 | Ecn::Ce) || self.config.any_ect && ecn == Ecn::Ect0
    }

    /// Makes up for the updates that were due up to `now`. Since the first of them nothing came and
    /// nothing left.
    fn catch_up(&mut self, now: Time) {
        if self.next_update > now {
            return;
        }
        let l4s = self.l4s.front().map(|scalable| scalable.entry.enqueued_at);
        let classic = self.classic.front().map(|entry| entry.enqueued_at);
        let oldest = [l4s, classic].into_iter().flatten().min();
        self.next_update = self.state.catch_up(&self.config, self.next_update, now, oldest);
    }

    /// The decision about a packet of the L4S queue (`scalable`) or the classic one, with `backlog`
    /// other bytes in both queues (RFC 9332 appendix A.2).
    fn verdict(&mut self, scalable: bool, ecn: Ecn, backlog: u64) -> DualPi2Decision {
        if backlog == 0 || backlog < 2 * u64::from(self.config.mtu) {
            return DualPi2Decision::Pass;
        }
        let base = self.state.probability;
        let coupled = base * f64::from(self.config.coupling_factor);
        let overload = coupled > 1.0;
        if !scalable {
            // The square, by two draws.
            return match self.random.chance(base) && self.random.chance(base) {
                true if overload || !ecn.is_capable() => DualPi2Decision::Drop,
                true => DualPi2Decision::Mark,
                false => DualPi2Decision::Pass,
            };
        }
        if overload {
            let drop = self.config.drop_on_overload && self.random.chance(base) && self.random.chance(base);
            return if drop { DualPi2Decision::Drop } else { DualPi2Decision::Mark };
        }
        if self.random.chance(coupled) { DualPi2Decision::Mark } else { DualPi2Decision::Pass }
    }

    /// The probability to mark packets of the L4S queue.
    fn coupled(&self) -> f64 {
        (self.state.probability * f64::from(self.config.coupling_factor)).min(1.0)
    }

    /// The queue to serve next: `true` for the L4S queue, `None` if both are empty. With both
    /// waiting, the sign of the credit decides.
    fn turn(&self) -> Option<bool> {
        match (self.l4s.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (false, true) => Some(true),
            (true, false) => Some(false),
            (false, false) => Some(self.credit <= 0),
        }
    }

    /// Takes the next packet out, with what the law of its queue still has to know; whether it is
    /// of the L4S queue, and what it costs the credit.
    fn take(&mut self) -> Option<(ScalablePacket<P>, bool, i64)> {
        let scalable = self.turn()?;
        let contended = !self.l4s.is_empty() && !self.classic.is_empty();
        let taken = if scalable {
            self.l4s.pop_front()?
        } else {
            ScalablePacket { entry: self.classic.pop_front()?, step: false, marked: false }
        };
        let bytes = taken.entry.packet.wire_len();
        self.memory -= memory_of(&taken.entry.packet);
        self.books.take(bytes);
        let classic_weight = i64::from(self.config.classic_protection);
        let weight = if scalable { classic_weight } else { classic_weight - 100 };
        Some((taken, scalable, if contended { weight * i64::from(bytes) } else { 0 }))
    }

    /// Returns `true` if the step marks a packet that was just taken out of the L4S queue.
    fn above_step(&self, now: Time, scalable: &ScalablePacket<P>) -> bool {
        scalable.step
            && match self.config.step_thresh {
                StepThreshold::Time(threshold) => now.since(scalable.entry.enqueued_at) > threshold,
                StepThreshold::Packets(threshold) => self.l4s.len() as u64 > threshold,
            }
    }
}

impl<P: Queued + Send> QueueDisc<P> for DualPi2<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        let ecn = packet.ecn();
        let scalable = self.is_scalable(ecn);
        self.last_scalable = scalable;
        let backlog = self.books.backlog();
        if backlog.packets >= self.config.limit {
            self.books.refuse(packet, DropReason::Limit, drops);
            return;
        }
        if self.memory + memory_of(&packet) > self.config.memlimit {
            self.books.refuse(packet, DropReason::Memory, drops);
            return;
        }
        let mut marked = false;
        if self.config.drop_enqueue {
            match self.verdict(scalable, ecn, backlog.bytes) {
                DualPi2Decision::Pass => {}
                DualPi2Decision::Mark => marked = self.books.mark(&mut packet),
                DualPi2Decision::Drop => {
                    self.books.refuse(packet, DropReason::Early, drops);
                    return;
                }
            }
        }
        self.memory += memory_of(&packet);
        self.books.admit(packet.wire_len());
        let entry = Entry { packet, enqueued_at: now };
        if scalable {
            let step = self.l4s.len() as u64 >= self.config.min_qlen_step;
            self.l4s.push_back(ScalablePacket { entry, step, marked });
        } else {
            self.classic.push_back(entry);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        self.catch_up(now);
        while let Some((mut taken, scalable, cost)) = self.take() {
            self.last_scalable = scalable;
            let mut mark = scalable && self.above_step(now, &taken);
            if !self.config.drop_enqueue {
                match self.verdict(scalable, taken.entry.packet.ecn(), self.books.backlog().bytes) {
                    DualPi2Decision::Pass => {}
                    DualPi2Decision::Mark => mark = true,
                    // Something waits behind: the link does not fall idle.
                    DualPi2Decision::Drop => {
                        self.books.discard(taken.entry.packet, DropReason::Early, drops);
                        continue;
                    }
                }
            }
            if mark && !taken.marked {
                self.books.mark(&mut taken.entry.packet);
            }
            self.credit += cost;
            self.books.release(taken.entry.packet.wire_len());
            return Dequeue::Packet(taken.entry);
        }
        Dequeue::Empty
    }

    fn idle(&mut self, _now: Time) {
        self.credit = first_credit(&self.config);
    }

    /// Other parameters at run time. The probability stays, packets stay in the queue in which they
    /// are, and the next update is due when it was; another `classic_protection` or `mtu` starts
    /// the credit anew. Heads beyond the new limits are discarded, those of the classic queue
    /// first, without asking the law (Linux `dualpi2_change`).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<DualPi2Config>(config)?.clone();
        valid(config.problem())?;
        self.catch_up(now);
        if first_credit(&config) != first_credit(&self.config) {
            self.credit = first_credit(&config);
        }
        self.config = config;
        loop {
            let reason = if self.books.backlog().packets > self.config.limit {
                DropReason::Limit
            } else if self.memory > self.config.memlimit {
                DropReason::Memory
            } else {
                return Ok(());
            };
            let next = self.classic.pop_front().or_else(|| Some(self.l4s.pop_front()?.entry));
            let Some(Entry { packet, .. }) = next else { return Ok(()) };
            self.memory -= memory_of(&packet);
            self.books.take(packet.wire_len());
            self.books.discard(packet, reason, drops);
        }
    }

    fn peek(&self) -> Option<&Entry<P>> {
        match self.turn()? {
            true => self.l4s.front().map(|scalable| &scalable.entry),
            false => self.classic.front(),
        }
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// The probability to drop or mark packets of the queue of the last packet that came or left:
    /// the square of the base probability for the classic queue, `coupling_factor` times it for the
    /// L4S queue, up to 1. And the delay that it was last moved for.
    fn probe(&self) -> Probe {
        let base = self.state.probability;
        let probability = if self.last_scalable { self.coupled() } else { base * base };
        Probe { probability: Some(probability), delay: Some(self.state.delay), ..Probe::default() }
    }

    /// The variables of both queues; `l4s` tells whether the probe is about the L4S queue.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        let (base, l4s) = (self.state.probability, self.coupled());
        see("base_probability", Variable::Probability(base));
        see("classic_probability", Variable::Probability(base * base));
        see("l4s_probability", Variable::Probability(l4s));
        see("classic_packets", Variable::Count(self.classic.len() as u64));
        see("l4s_packets", Variable::Count(self.l4s.len() as u64));
        see("l4s", Variable::Flag(self.last_scalable));
    }
}

/// The credit with which a busy period starts: the larger share goes first.
fn first_credit(config: &DualPi2Config) -> i64 {
    i64::from(config.mtu) * (2 * i64::from(config.classic_protection) - 100)
}

impl State {
    /// The state before the first packet.
    pub(crate) const START: State = State { probability: 0.0, delay: Span::ZERO };

    /// Makes up for the updates that were due from `due` up to `now`, and returns when the next one
    /// is. All the while the older of both heads was one that came at `oldest`.
    #[must_use]
    pub(crate) fn catch_up(&mut self, config: &DualPi2Config, due: Time, now: Time, oldest: Option<Time>) -> Time {
        let delay = |at: Time| oldest.map_or(Span::ZERO, |oldest| at.since(oldest));
        let mut due = due;
        while due <= now {
            let before = *self;
            let step = self.update(config, delay(due));
            let left = now.since(due).as_nanos() / config.tupdate.as_nanos();
            due += config.tupdate;
            // Without a head an update that changes nothing is the last that could. With one the
            // delay grows by `tupdate` each time, so that from the second update on the steps do
            // not get smaller: at its highest the probability stays there.
            let steady = self.delay == before.delay + config.tupdate;
            let at_rest = if oldest.is_none() {
                *self == before
            } else {
                steady && step >= 0.0 && self.probability == highest(config)
            };
            if at_rest && left > 0 {
                due += config.tupdate * (left - 1);
                self.delay = delay(due);
                due += config.tupdate;
            }
        }
        due
    }

    /// Moves the probability for a delay of `delay` (RFC 9332 appendix A.1, `dualpi2_update`); by
    /// how much, were there no bounds.
    fn update(&mut self, config: &DualPi2Config, delay: Span) -> f64 {
        let difference = |a: Span, b: Span| (i128::from(a.as_nanos()) - i128::from(b.as_nanos())) as f64 / 1e9;
        let step = config.alpha * difference(delay, config.target) + config.beta * difference(delay, self.delay);
        self.probability = (self.probability + step).clamp(0.0, highest(config));
        self.delay = delay;
        step
    }
}

/// The highest base probability. Without drops on overload it is where L4S packets are certain to
/// be marked, so that the coupling holds when the queue overflows.
fn highest(config: &DualPi2Config) -> f64 {
    if config.drop_on_overload { 1.0 } else { 1.0 / f64::from(config.coupling_factor) }
}

#[cfg(test)]
mod tests;
