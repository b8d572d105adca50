//! RED, Random Early Detection: marks or drops arrivals at random, the more often the longer the queue is on average.
//!
//! It measures the backlog in bytes at each arrival and averages it exponentially; time without a queue lets the average
//! decay as if small packets had passed, if the link tells of it (a token bucket does not). Below `min` nothing happens. From
//! `min` to `max` the probability rises to `probability`, and marks are spaced out evenly instead of at random. From `max` on
//! every packet is marked or dropped. With `adaptive` the probability at `max` moves so that the average settles half way.
//!
//! Two laws share the queue: Linux's (`red/linux.rs`), and with `floyd` the one of the authors (`red/floyd.rs`).
//!
//! # Source
//! Floyd, Jacobson 1993, "Random Early Detection Gateways for Congestion Avoidance"; Floyd, Gummadi, Shenker 2001, "Adaptive
//! RED". Linux `sch_red` and `include/net/red.h`; parameters, what is derived from them and statistics as `tc-red(8)`.
//!
//! # Departures
//! From Linux:
//! - The probability is a floating-point number; Linux truncates what it divides (below 0.1 % with ordinary parameters).
//! - The updates of `adaptive` are due at exact multiples of the interval from the start of the run, and not at the next tick
//!   of the kernel's clock. There is no timer: those that were due are made up for, each with the average of its time,
//!   before a packet is looked at. So [`QueueDisc::probe`] shows the state as of the last call.
//! - A packet to be marked that does not fit within `limit` is dropped and counts as that; Linux counts a mark as well.
//! - `qevent` filters are left out.
//!
//! Those of the authors' law are in its file.

mod floyd;
mod linux;

use ackclock_units::{Random, Rate, Span, Time, maths};

use self::floyd::Floyd;
use self::linux::{Damping, Linux};
use crate::{Backlog, Counters, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

/// Parameters of a RED queue. What is `None` is derived as `tc` does.
#[derive(Clone, Debug, PartialEq)]
pub struct RedConfig {
    /// The most bytes that wait; further packets are refused. Default: 400,000, the example of tc-red(8) (tc requires it).
    pub limit: u64,
    /// The average queue in bytes from which on packets are marked. Default: a third of `max`.
    pub min: Option<u64>,
    /// The average queue in bytes from which on every packet is marked. Default: three times `min`, or a quarter of `limit`
    /// if that is not given either.
    pub max: Option<u64>,
    /// Bytes of an average packet. Default: 1000, the example of tc-red(8) (tc requires it).
    pub avpkt: u32,
    /// Packets that an empty queue takes at once before the average reaches `min`: the weight of the average follows from it.
    /// Default: (2 `min` + `max`) / (3 `avpkt`).
    pub burst: Option<u32>,
    /// Probability to mark when the average has reached `max`. Default: 0.02.
    pub probability: f64,
    /// Rate of the link: how many packets would have passed while there was no queue. Default: 10 Mbit/s.
    pub bandwidth: Rate,
    /// Mark packets that can carry a mark instead of dropping them. Default: off.
    pub ecn: bool,
    /// With `ecn`: drop every packet from `max` on, those that could carry a mark as well. Default: off.
    pub harddrop: bool,
    /// With `ecn`: take packets in that cannot carry a mark instead of dropping them. Default: off.
    pub nodrop: bool,
    /// Move the probability at `max` (Adaptive RED). Default: off.
    pub adaptive: Option<RedAdaptive>,
    /// Follow the authors' law in place of Linux's. Default: off.
    pub floyd: Option<RedFloyd>,
}

/// Adaptive RED (Floyd, Gummadi, Shenker 2001, figure 1; the defaults are those of the paper and of Linux's `adaptive`).
#[derive(Clone, Debug, PartialEq)]
pub struct RedAdaptive {
    /// Added to the probability if the average is above the target range, but no more than a quarter of it. Default: 0.01.
    pub alpha: f64,
    /// Multiplies the probability if the average is below the target range. Default: 0.9.
    pub beta: f64,
    /// Time between two updates. Default: 500 ms.
    pub interval: Span,
    /// Above this the probability is not raised. Default: 0.5.
    pub top: f64,
    /// Below this the probability is not lowered. Default: 0.01.
    pub bottom: RedBottom,
}

/// The lowest probability of Adaptive RED.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedBottom {
    /// This number.
    Fixed(f64),
    /// 0.01, but no more than one mark in a window of packets of 1000 bytes that fills the link over 100 ms, that is 80,000 over
    /// its bits per second (ns-2's `bottom_` of 0).
    Automatic,
}

impl RedBottom {
    /// The number, on a link of `bandwidth`.
    fn at(self, bandwidth: Rate) -> f64 {
        match self {
            RedBottom::Fixed(bottom) => bottom,
            RedBottom::Automatic => (80_000.0 / bandwidth.as_bps() as f64).min(0.01),
        }
    }
}

/// The law as its authors wrote it, in papers and in ns-2.
#[derive(Clone, Debug, PartialEq)]
pub struct RedFloyd {
    /// From `max` to twice `max` the probability rises from `probability` to 1, and only there every packet is dropped (Floyd
    /// 2000, "Recommendation on using the gentle variant of RED"). Default: on, as in ns-2.
    pub gentle: bool,
    /// At least 1/p packets pass between two marks, at most 2/p; else at most 1/p. Default: on, as in ns-2.
    pub wait: bool,
    /// Scale the probability with the size of the packet over `avpkt`, and space marks by bytes (Floyd, Jacobson 1993 section
    /// 5). Default: on, as in ns-2 (RFC 7141 advises against it).
    pub bytemode: bool,
    /// With `ecn`: mark packets that can carry a mark only while the probability is below this, and drop them as the others from
    /// there on; no average is then too high for chance. `None` marks at any average that is not. Default: 0.1, as in ns-2.
    pub mark_p: Option<f64>,
    /// Weight of a packet in the average. Default: from `burst`.
    pub weight: RedWeight,
    /// Derive `min` and `max`, where they are not given, from the queueing delay to settle at: `min` is half of it, at least
    /// five packets, and `max` three times that (Floyd, Gummadi, Shenker 2001 section 5.2). Default: off.
    pub target_delay: Option<Span>,
}

/// Weight of a packet in the authors' average.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum RedWeight {
    /// From `burst`, a power of two, as `tc` does.
    Burst,
    /// This number (Floyd, Jacobson 1993 section 6: 0.002).
    Fixed(f64),
    /// 1 - exp(-1/C) with C the packets that the link carries in a second (Floyd, Gummadi, Shenker 2001 section 5.1).
    Automatic,
}

impl Default for RedConfig {
    fn default() -> RedConfig {
        RedConfig {
            limit: 400_000,
            min: None,
            max: None,
            avpkt: 1000,
            burst: None,
            probability: 0.02,
            bandwidth: const { Rate::from_bps(10_000_000).unwrap() },
            ecn: false,
            harddrop: false,
            nodrop: false,
            adaptive: None,
            floyd: None,
        }
    }
}

impl Default for RedAdaptive {
    fn default() -> RedAdaptive {
        RedAdaptive {
            alpha: 0.01,
            beta: 0.9,
            interval: Span::from_millis(500),
            top: 0.5,
            bottom: RedBottom::Fixed(0.01),
        }
    }
}

impl Default for RedFloyd {
    fn default() -> RedFloyd {
        RedFloyd {
            gentle: true,
            wait: true,
            bytemode: true,
            mark_p: Some(0.1),
            weight: RedWeight::Burst,
            target_delay: None,
        }
    }
}

impl RedConfig {
    /// Adaptive RED with everything automatic (Floyd, Gummadi, Shenker 2001): set `bandwidth` and no more. The queueing delay
    /// settles at 5 ms and the probability starts at 0.1, as in ns-2.
    pub fn adaptive_2001() -> RedConfig {
        let floyd =
            RedFloyd { weight: RedWeight::Automatic, target_delay: Some(Span::from_millis(5)), ..RedFloyd::default() };
        RedConfig {
            probability: 0.1,
            adaptive: Some(RedAdaptive { bottom: RedBottom::Automatic, ..RedAdaptive::default() }),
            floyd: Some(floyd),
            ..RedConfig::default()
        }
    }

    /// `min` and `max` in bytes, as given or derived.
    pub fn thresholds(&self) -> (u64, u64) {
        if let Some(delay) = self.floyd.as_ref().and_then(|floyd| floyd.target_delay) {
            let half = delay.as_secs_f64() * self.bandwidth.as_bps() as f64 / 16.0;
            let min = self.min.unwrap_or((half as u64).max(5 * u64::from(self.avpkt)));
            return (min, self.max.unwrap_or(min.saturating_mul(3)));
        }
        let max = self.max.unwrap_or(self.min.map_or(self.limit / 4, |min| min.saturating_mul(3)));
        (self.min.unwrap_or(max / 3), max)
    }

    /// The binary logarithm of the average's weight, negated (tc's `ewma`): the smallest that lets `burst` packets into an
    /// empty queue before the average reaches `min`. `None` if no weight does.
    pub fn ewma(&self) -> Option<u32> {
        let (min, max) = self.thresholds();
        let avpkt = u64::from(self.avpkt);
        let derived = (u128::from(min) * 2 + u128::from(max)).checked_div(u128::from(avpkt) * 3)?;
        let burst = self.burst.map_or(derived as f64, f64::from);
        // include/net/red.h: L + 1 - min/S <= (1 - (1 - W)^L) / W
        let room = burst + 1.0 - min as f64 / avpkt as f64;
        if room < 1.0 {
            return None;
        }
        (1..32).find(|&log| {
            let weight = weight_of(log);
            room <= (1.0 - maths::pow(1.0 - weight, burst)) / weight
        })
    }

    /// What is wrong with these parameters, if anything is.
    pub fn problem(&self) -> Option<&'static str> {
        let unit = 0.0..=1.0;
        let (min, max) = self.thresholds();
        let weight = self.floyd.as_ref().map_or(RedWeight::Burst, |floyd| floyd.weight);
        if self.avpkt == 0 {
            Some("avpkt must not be zero")
        } else if self.limit > u64::from(u32::MAX) || max > u64::from(u32::MAX) {
            Some("limit and max must be below 4 GiB")
        } else if min >= max {
            Some("min must be below max")
        } else if !unit.contains(&self.probability) {
            Some("probability must be within 0 to 1")
        } else if self.nodrop && !self.ecn {
            Some("nodrop needs ecn")
        } else if weight == RedWeight::Burst && self.ewma().is_none() {
            Some("no weight of the average lets this burst through: try a larger burst or avpkt")
        } else if !self.floyd.as_ref().and_then(|floyd| floyd.mark_p).is_none_or(|p| unit.contains(&p)) {
            Some("mark_p must be within 0 to 1")
        } else if matches!(weight, RedWeight::Fixed(weight) if !(weight > 0.0 && weight <= 1.0)) {
            Some("weight must be above 0 and at most 1")
        } else if self.floyd.is_none() && Damping::new(self.ewma().unwrap_or(1), self.avpkt, self.bandwidth).is_none() {
            Some("bandwidth is too low for packets of avpkt bytes")
        } else {
            let adaptive = self.adaptive.as_ref()?;
            if adaptive.interval == Span::ZERO {
                Some("interval must not be zero")
            } else if ![adaptive.alpha, adaptive.beta, adaptive.top, adaptive.bottom.at(self.bandwidth)]
                .iter()
                .all(|p| unit.contains(p))
            {
                Some("alpha, beta, top and bottom must be within 0 to 1")
            } else {
                None
            }
        }
    }
}

/// 2^-log.
fn weight_of(log: u32) -> f64 {
    1.0 / (1u64 << log) as f64
}

/// What `tc -s` prints of a RED queue, and what the kernel knows beyond that.
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
    law: Law,
    adaptation: Option<Adaptation>,
    stats: RedStats,
    random: Random,
    store: Store<P>,
}

/// What the law says of an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Verdict {
    Pass,
    /// Mark or drop, by chance.
    Early,
    /// Mark or drop, the average being too high.
    Forced,
}

#[derive(Clone, Debug)]
enum Law {
    Linux(Linux),
    Floyd(Floyd),
}

/// When and how the probability at `max` moves.
#[derive(Clone, Debug)]
struct Adaptation {
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
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let law = match &config.floyd {
            Some(floyd) => Law::Floyd(Floyd::new(&config, floyd)),
            None => Law::Linux(Linux::new(&config)),
        };
        let adaptation = config.adaptive.clone().map(|adaptive| Adaptation::new(adaptive, &config));
        let RedConfig { limit, ecn, harddrop, nodrop, .. } = config;
        Red { limit, ecn, harddrop, nodrop, law, adaptation, stats: RedStats::default(), random, store: Store::new() }
    }

    /// The statistics.
    pub fn stats(&self) -> RedStats {
        RedStats {
            marked: self.stats.prob_mark + self.stats.forced_mark,
            early: self.stats.prob_drop + self.stats.forced_drop,
            pdrop: self.store.counters().dropped[DropReason::Limit as usize],
            max_p: self.law.max_p(),
            ..self.stats
        }
    }

    /// Makes up for the updates that were due up to `now`. Nothing came or left since the last of them.
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
            Law::Linux(law) => law.arrival(now, backlog, &mut self.random),
            Law::Floyd(law) => law.arrival(now, backlog, packet.wire_len(), &mut self.random),
        };
        // As Linux's bfifo, which keeps the packets there.
        let fits = backlog + u64::from(packet.wire_len()) <= self.limit;
        if verdict != Verdict::Pass {
            let forced = verdict == Verdict::Forced;
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

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn counters(&self) -> &Counters {
        self.store.counters()
    }

    /// The average at the last arrival, and the probability that goes with it before marks are spaced out.
    fn probe(&self) -> Probe {
        let (average, probability) = match &self.law {
            Law::Linux(law) => (law.average(), law.probability()),
            Law::Floyd(law) => (law.average, law.probability()),
        };
        Probe { probability: Some(probability), average: Some(average), ..Probe::default() }
    }
}

impl Law {
    /// The average at `time`, before a packet of that time.
    fn average_at(&self, time: Time) -> f64 {
        match self {
            Law::Linux(law) => law.average_at(time),
            Law::Floyd(law) => law.average_at(time),
        }
    }

    /// Whether packets that can carry a mark are marked, at the average of now.
    fn may_mark(&self) -> bool {
        match self {
            Law::Linux(_) => true,
            Law::Floyd(law) => law.may_mark(),
        }
    }

    /// A packet that was not dropped by the law did not fit.
    fn overflowed(&mut self) {
        match self {
            Law::Linux(_) => {}
            Law::Floyd(law) => law.overflowed(),
        }
    }

    fn max_p(&self) -> f64 {
        match self {
            Law::Linux(law) => law.max_p,
            Law::Floyd(law) => law.max_p,
        }
    }

    fn set_max_p(&mut self, max_p: f64) {
        match self {
            Law::Linux(law) => law.max_p = max_p,
            Law::Floyd(law) => law.max_p = max_p,
        }
    }

    fn idle_since(&mut self) -> &mut Option<Time> {
        match self {
            Law::Linux(law) => &mut law.idle_since,
            Law::Floyd(law) => &mut law.idle_since,
        }
    }
}

impl Adaptation {
    fn new(adaptive: RedAdaptive, config: &RedConfig) -> Adaptation {
        let (min, max) = config.thresholds();
        let (min, range) = (min as f64, (max - min) as f64);
        let next = Time::ZERO + adaptive.interval;
        let bottom = adaptive.bottom.at(config.bandwidth);
        Adaptation { config: adaptive, bottom, low: min + 0.4 * range, high: min + 0.6 * range, next }
    }

    fn catch_up(&mut self, law: &mut Law, now: Time) {
        while self.next <= now {
            let average = law.average_at(self.next);
            let before = law.max_p();
            let after = self.step(before, average);
            law.set_max_p(after);
            let mut updates = 1;
            // The average stands still, or falls while there is no queue: the rest of the updates will not change it either.
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
