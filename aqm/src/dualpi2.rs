//! DualPI2: a queue for scalable traffic (L4S) beside one for classic traffic, coupled so that flows of both share a link
//! about evenly while the first hardly waits.
//!
//! It measures how long the older of the two heads has waited. Every `tupdate` a PI controller moves a base probability p
//! with the delay's distance from `target` and its change. Classic packets are dropped or marked with p squared, L4S packets
//! marked with `coupling_factor` times p, and always once they waited longer than `step_thresh`. A weighted round robin
//! serves L4S first and keeps a share for the classic queue.
//!
//! # Source
//! RFC 9332, appendix A (the law and what happens on overload); Linux `sch_dualpi2` since 6.17, whose parameters and defaults
//! these are.
//!
//! # Departures
//! From RFC 9332, as Linux does it:
//! - L4S packets see a step in place of a ramp, and the random marks besides, in place of the larger of both.
//! - Nothing is dropped or marked at random while less than two packets wait behind.
//!
//! From Linux:
//! - The probability is a floating-point number, and `alpha` and `beta` are not rounded to 1/256 Hz.
//! - The memory of a packet is taken as its bytes and 576 more, in place of what Linux allocated (`truesize`).
//! - A packet that the random law and the step both mark counts once.
//! - `tc` filters that choose the queue and `split_gso` are left out: what arrives is a packet.
//!
//! There is no timer. The updates that were due are made up for, each with the delay of its time, before a packet is looked
//! at; one that is due at the time of a packet comes first. So [`QueueDisc::probe`] shows the state as of the last call.

use std::any::Any;
use std::collections::VecDeque;

use ackclock_units::parameter::{Configurable, Domain, Setting, Value, Visitor};
use ackclock_units::{Ecn, Random, Size, Span, Time};

use crate::books::{Books, memory_of};
use crate::change::{parameters, valid};
use crate::disciplines::{MAX, MTU, POSITIVE};
use crate::{Backlog, ChangeError, Counters, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

/// Where the step of the L4S queue is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum StepThreshold {
    /// Packets that waited longer than this are marked.
    Time(Span),
    /// Packets that leave more than this many behind in the L4S queue are marked.
    Packets(u64),
}

/// Parameters of a DualPI2 queue.
#[derive(Clone, Debug, PartialEq)]
pub struct DualPi2Config {
    /// The most packets that wait in both queues together; further ones are refused. Default: 10,000.
    pub limit: u64,
    /// The most memory that waiting packets take, in bytes. Default: 30,280,000, twice `limit` Ethernet frames.
    pub memlimit: u64,
    /// The queueing delay of the classic queue to settle at. Default: 15 ms.
    pub target: Span,
    /// Time between two updates of the probability. Default: 16 ms.
    pub tupdate: Span,
    /// Weight of the delay's distance from `target`, in Hz. Default: 41/256, about 0.16.
    pub alpha: f64,
    /// Weight of the delay's change since the last update, in Hz. Default: 819/256, about 3.2.
    pub beta: f64,
    /// How many times the base probability L4S packets are marked with, 1 or more (RFC 9332 section 2.1, `k`). Default: 2.
    pub coupling_factor: u32,
    /// The step above which L4S packets are marked. Default: 1 ms.
    pub step_thresh: StepThreshold,
    /// The step applies to packets that found at least this many in the L4S queue. Default: 0.
    pub min_qlen_step: u64,
    /// When L4S packets would have to be marked with more than certainty, drop packets of both queues alike
    /// (`drop_on_overload`), or rather let the queue grow up to its limit (`overflow`). Default: drop.
    pub drop_on_overload: bool,
    /// Decide on arrival (`drop_enqueue`), or on departure (`drop_dequeue`). Default: on departure.
    pub drop_enqueue: bool,
    /// The share of the link that is kept for the classic queue, in percent, 0 to 100. Default: 10.
    pub classic_protection: u32,
    /// ECT(0) packets go to the L4S queue too (`any_ect`), not only ECT(1) and CE (`l4s_ect`, RFC 9331 section 5.1).
    /// Default: off.
    pub any_ect: bool,
    /// Bytes of the largest packet. Default: 1514, an Ethernet frame.
    pub mtu: u32,
}

impl Default for DualPi2Config {
    fn default() -> DualPi2Config {
        DualPi2Config {
            limit: 10_000,
            memlimit: 2 * 10_000 * 1514,
            target: Span::from_millis(15),
            tupdate: Span::from_millis(16),
            alpha: 41.0 / 256.0,
            beta: 819.0 / 256.0,
            coupling_factor: 2,
            step_thresh: StepThreshold::Time(Span::from_millis(1)),
            min_qlen_step: 0,
            drop_on_overload: true,
            drop_enqueue: false,
            classic_protection: 10,
            any_ect: false,
            mtu: 1514,
        }
    }
}

impl Configurable for DualPi2Config {
    fn parameters(&mut self, v: &mut impl Visitor) {
        let linux = "Linux `sch_dualpi2`";
        v.parameter("limit", Domain::Packets(1, MAX), linux, &mut self.limit);
        v.parameter("memlimit", Domain::Bytes(1, MAX), linux, &mut self.memlimit);
        v.parameter("target", POSITIVE, "RFC 9332 appendix A.1; Linux `sch_dualpi2`", &mut self.target);
        v.parameter("tupdate", POSITIVE, "RFC 9332 appendix A.1; Linux `sch_dualpi2`", &mut self.tupdate);
        v.parameter("alpha", Domain::Number(0.0, 256.0, "Hz"), linux, &mut self.alpha);
        v.parameter("beta", Domain::Number(0.0, 256.0, "Hz"), linux, &mut self.beta);
        let coupling = Domain::Whole(1, 255, "");
        v.parameter("coupling_factor", coupling, "RFC 9332 s2.1; Linux `sch_dualpi2`", &mut self.coupling_factor);
        v.parameter("step_thresh", Domain::TimeOrPackets(0, MAX), linux, &mut self.step_thresh);
        v.parameter("min_qlen_step", Domain::Packets(0, MAX), linux, &mut self.min_qlen_step);
        v.parameter("drop_on_overload", Domain::Flag, linux, &mut self.drop_on_overload);
        v.parameter("drop_enqueue", Domain::Flag, linux, &mut self.drop_enqueue);
        v.parameter("classic_protection", Domain::Whole(0, 100, "percent"), linux, &mut self.classic_protection);
        v.parameter("any_ect", Domain::Flag, "RFC 9331 s5.1; Linux `sch_dualpi2`", &mut self.any_ect);
        v.parameter("mtu", MTU, "an Ethernet frame", &mut self.mtu);
    }
}

impl Setting for StepThreshold {
    fn value(&self) -> Value {
        match self {
            StepThreshold::Time(span) => Value::Time(*span),
            StepThreshold::Packets(packets) => Value::Size(Size::Packets(*packets)),
        }
    }

    fn from_value(value: Value) -> Option<StepThreshold> {
        match value {
            Value::Time(span) => Some(StepThreshold::Time(span)),
            Value::Size(Size::Packets(packets)) => Some(StepThreshold::Packets(packets)),
            _ => None,
        }
    }
}

impl DualPi2Config {
    /// The defaults for round trips of `typical_rtt`, stable up to `max_rtt`, as tc's options of these names and RFC 9332
    /// appendix A.1 derive them: the target is the typical one, updates come as often or three times per `max_rtt`, alpha is
    /// 0.1 `tupdate` / `max_rtt`^2 and beta 0.3 / `max_rtt`.
    ///
    /// # Panics
    /// If `typical_rtt` is zero or above `max_rtt`.
    pub fn for_rtt(typical_rtt: Span, max_rtt: Span) -> DualPi2Config {
        assert!(Span::ZERO < typical_rtt && typical_rtt <= max_rtt, "0 < typical_rtt <= max_rtt");
        let tupdate = typical_rtt.min(max_rtt / 3).max(Span::from_nanos(1));
        let max = max_rtt.as_secs_f64();
        let alpha = 0.1 * tupdate.as_secs_f64() / (max * max);
        DualPi2Config { target: typical_rtt, tupdate, alpha, beta: 0.3 / max, ..DualPi2Config::default() }
    }

    fn problem(&self) -> Option<&'static str> {
        let usable = |gain: f64| gain.is_finite() && gain >= 0.0;
        if self.tupdate == Span::ZERO {
            Some("tupdate must not be zero")
        } else if self.coupling_factor == 0 {
            Some("coupling_factor must not be zero")
        } else if self.classic_protection > 100 {
            Some("classic_protection is a percentage")
        } else if !(usable(self.alpha) && usable(self.beta)) {
            Some("alpha and beta must be finite and not negative")
        } else {
            None
        }
    }
}

/// A DualPI2 queue.
#[derive(Debug)]
pub struct DualPi2<P> {
    config: DualPi2Config,
    state: State,
    /// When the next update is due.
    next_update: Time,
    /// Whether the packet that came or left last was one of the L4S queue.
    last_scalable: bool,
    /// Bytes times percent that the L4S queue is ahead of its share; the classic queue's turn is while it is positive.
    credit: i64,
    random: Random,
    l4s: VecDeque<Scalable<P>>,
    classic: VecDeque<Entry<P>>,
    memory: u64,
    books: Books,
}

/// A packet in the L4S queue.
#[derive(Clone, Copy, Debug)]
struct Scalable<P> {
    entry: Entry<P>,
    /// Whether the step applies to it.
    step: bool,
    /// Whether it was marked on arrival.
    marked: bool,
}

/// The state of the controller.
#[derive(Clone, Copy, Debug, PartialEq)]
struct State {
    /// The base probability (RFC 9332 appendix A, p').
    probability: f64,
    /// The delay at the last update.
    delay: Span,
}

/// What becomes of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    Mark,
    Drop,
}

impl<P: Queued> DualPi2<P> {
    /// Empty queues that draw from `random`.
    ///
    /// # Panics
    /// If `tupdate` or `coupling_factor` is zero, `classic_protection` above 100, or `alpha` or `beta` negative or infinite.
    pub fn new(config: DualPi2Config, random: Random) -> DualPi2<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        DualPi2 {
            state: State { probability: 0.0, delay: Span::ZERO },
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

    /// Other parameters at run time. The probability stays, packets stay in the queue in which they
    /// are, and the next update is due when it was; another `classic_protection` or `mtu` starts
    /// the credit anew. Heads beyond the new limits are discarded, those of the classic queue
    /// first, without asking the law (Linux `dualpi2_change`).
    ///
    /// # Errors
    /// Parameters that [`DualPi2::new`] does not take.
    pub fn reconfigure(&mut self, now: Time, config: DualPi2Config, drops: &mut Drops<P>) -> Result<(), ChangeError> {
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

    /// Whether a packet of this codepoint belongs to the L4S queue (RFC 9331 section 5.1: CE may come from either, and is taken
    /// for L4S).
    fn is_scalable(&self, ecn: Ecn) -> bool {
        matches!(ecn, Ecn::Ect1 | Ecn::Ce) || self.config.any_ect && ecn == Ecn::Ect0
    }

    /// Makes up for the updates that were due up to `now`. Since the first of them nothing came and nothing left.
    fn catch_up(&mut self, now: Time) {
        if self.next_update > now {
            return;
        }
        let l4s = self.l4s.front().map(|scalable| scalable.entry.enqueued_at);
        let classic = self.classic.front().map(|entry| entry.enqueued_at);
        let oldest = [l4s, classic].into_iter().flatten().min();
        self.next_update = self.state.catch_up(&self.config, self.next_update, now, oldest);
    }

    /// What becomes of a packet of the L4S queue (`scalable`) or the classic one, with `backlog` bytes in both queues
    /// besides it (RFC 9332 appendix A.2).
    fn verdict(&mut self, scalable: bool, ecn: Ecn, backlog: u64) -> Verdict {
        if backlog == 0 || backlog < 2 * u64::from(self.config.mtu) {
            return Verdict::Pass;
        }
        let base = self.state.probability;
        let coupled = base * f64::from(self.config.coupling_factor);
        let overload = coupled > 1.0;
        if !scalable {
            // The square, by two draws.
            return match self.random.chance(base) && self.random.chance(base) {
                true if overload || !ecn.is_capable() => Verdict::Drop,
                true => Verdict::Mark,
                false => Verdict::Pass,
            };
        }
        if overload {
            let drop = self.config.drop_on_overload && self.random.chance(base) && self.random.chance(base);
            return if drop { Verdict::Drop } else { Verdict::Mark };
        }
        if self.random.chance(coupled) { Verdict::Mark } else { Verdict::Pass }
    }

    /// The probability to mark packets of the L4S queue.
    fn coupled(&self) -> f64 {
        (self.state.probability * f64::from(self.config.coupling_factor)).min(1.0)
    }

    /// Whether the L4S queue is served next; `None` if nothing waits. With both queues waiting, the sign of the credit
    /// decides.
    fn turn(&self) -> Option<bool> {
        match (self.l4s.is_empty(), self.classic.is_empty()) {
            (true, true) => None,
            (false, true) => Some(true),
            (true, false) => Some(false),
            (false, false) => Some(self.credit <= 0),
        }
    }

    /// Takes the next packet out, with what the law of its queue still has to know; whether it is of the L4S queue, and what
    /// it costs the credit.
    fn take(&mut self) -> Option<(Scalable<P>, bool, i64)> {
        let scalable = self.turn()?;
        let contended = !self.l4s.is_empty() && !self.classic.is_empty();
        let taken = if scalable {
            self.l4s.pop_front()?
        } else {
            Scalable { entry: self.classic.pop_front()?, step: false, marked: false }
        };
        let bytes = taken.entry.packet.wire_len();
        self.memory -= memory_of(&taken.entry.packet);
        self.books.take(bytes);
        let classic_weight = i64::from(self.config.classic_protection);
        let weight = if scalable { classic_weight } else { classic_weight - 100 };
        Some((taken, scalable, if contended { weight * i64::from(bytes) } else { 0 }))
    }

    /// Whether the step marks a packet that was just taken out of the L4S queue.
    fn above_step(&self, now: Time, scalable: &Scalable<P>) -> bool {
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
                Verdict::Pass => {}
                Verdict::Mark => marked = self.books.mark(&mut packet),
                Verdict::Drop => {
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
            self.l4s.push_back(Scalable { entry, step, marked });
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
                    Verdict::Pass => {}
                    Verdict::Mark => mark = true,
                    // Something waits behind: the link does not fall idle.
                    Verdict::Drop => {
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

    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        self.reconfigure(now, parameters::<DualPi2Config>(config)?.clone(), drops)
    }

    fn peek(&self) -> Option<&Entry<P>> {
        match self.turn()? {
            true => self.l4s.front().map(|scalable| &scalable.entry),
            false => self.classic.front(),
        }
    }

    fn backlog(&self) -> Backlog {
        self.books.backlog()
    }

    fn counters(&self) -> &Counters {
        self.books.counters()
    }

    /// The probability to drop or mark packets of the queue of the last packet that came or left: the square of the base
    /// probability for the classic queue, `coupling_factor` times it for the L4S queue, up to 1. And the delay that it was last
    /// moved for.
    fn probe(&self) -> Probe {
        let base = self.state.probability;
        let probability = if self.last_scalable { self.coupled() } else { base * base };
        Probe { probability: Some(probability), delay: Some(self.state.delay), ..Probe::default() }
    }

    /// Those of both queues; `l4s` is whether the probe is about the L4S queue.
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
    /// Makes up for the updates that were due from `due` up to `now`, and returns when the next one is. All the while the
    /// older of both heads was one that came at `oldest`.
    #[must_use]
    fn catch_up(&mut self, config: &DualPi2Config, due: Time, now: Time, oldest: Option<Time>) -> Time {
        let delay = |at: Time| oldest.map_or(Span::ZERO, |oldest| at.since(oldest));
        let mut due = due;
        while due <= now {
            let before = *self;
            let step = self.update(config, delay(due));
            let left = now.since(due).as_nanos() / config.tupdate.as_nanos();
            due += config.tupdate;
            // Without a head an update that changes nothing is the last that could. With one the delay grows by `tupdate`
            // each time, so that from the second update on the steps do not get smaller: at its highest the probability
            // stays there.
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

    /// Moves the probability for a delay of `delay` (RFC 9332 appendix A.1, `dualpi2_update`); by how much, were there no
    /// bounds.
    fn update(&mut self, config: &DualPi2Config, delay: Span) -> f64 {
        let difference = |a: Span, b: Span| (i128::from(a.as_nanos()) - i128::from(b.as_nanos())) as f64 / 1e9;
        let step = config.alpha * difference(delay, config.target) + config.beta * difference(delay, self.delay);
        self.probability = (self.probability + step).clamp(0.0, highest(config));
        self.delay = delay;
        step
    }
}

/// The highest base probability. Without drops on overload it is where L4S packets are certain to be marked, so that the
/// coupling holds when the queue overflows.
fn highest(config: &DualPi2Config) -> f64 {
    if config.drop_on_overload { 1.0 } else { 1.0 / f64::from(config.coupling_factor) }
}

#[cfg(test)]
mod tests;
