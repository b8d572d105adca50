//! BLUE: marks or drops arrivals with one probability, which rises when the queue overflows and
//! falls when the link is idle.
//!
//! It measures no average: a packet lost at the limit, or a backlog above the threshold, indicates
//! that the probability is too low; an idle link indicates that it is too high. After each change
//! it is frozen for a time.
//!
//! # Source
//! Feng, Kandlur, Saha, Shin 1999, "BLUE: A New Class of Active Queue Management Algorithms"
//! (CSE-TR-387-99); Bartók 2001, "Implementation and Evaluation of the BLUE Active Queue Management
//! Algorithm", sections 2.5.2 and 3: the parameters, their defaults and the statistics are those of
//! its `tc qdisc ... blue`.
//!
//! # Departures
//! - Probabilities are floating-point numbers; the thesis has fixed-point ones.
//! - Where the thesis leaves a choice: a packet is compared with the backlog that it finds; the
//!   probability moves before the packet's fate is drawn; the first change waits for one `freeze`
//!   after the start of the run.

use std::any::Any;

use ackclock_units::parameter::{Domain, Setting, Value};
use ackclock_units::{Random, Span, Time, configuration, maths, named};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, PROBABILITY};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Limit, Probe, QueueDisc, Queued, Store};

const THESIS: &str = "Bartók 2001, table 1";

configuration! { self:
/// Parameters of a BLUE queue.
#[derive(Clone, Debug, PartialEq)]
pub struct BlueConfig {
    /// A packet is refused only if more than this waits already, so that the backlog exceeds it by
    /// one packet at most (section 3.3). Default: 51,200 bytes, the `50kB` of the thesis as tc
    /// reads it (tc requires it).
    pub limit: Limit = Limit::Bytes(51_200) => (Domain::Size(1, MAX), "Bartók 2001 s3.3");
    /// The changes that a change freezes. Default: rise and fall.
    pub updates: BlueUpdates = BlueUpdates::Shared => (BlueUpdates::DOMAIN, "Bartók 2001 s3.2");
    /// No change sooner than this after the last one. Default: 10 ms (table 1).
    pub freeze: Span = Span::from_millis(10) => (Domain::Time { positive: false }, THESIS);
    /// The probability at the start; with `inc` and `dec` of 0 it stays there. Default: 0 (table
    /// 1).
    pub init: f64 = 0.0 => (PROBABILITY, THESIS);
    /// A rise of the probability. Default: 0.0025 (table 1).
    pub inc: f64 = 0.0025 => (PROBABILITY, THESIS);
    /// A fall of the probability. Default: 0.00125 (table 1).
    pub dec: f64 = 0.00125 => (PROBABILITY, THESIS);
    /// The highest probability. Default: 1 (table 1).
    pub max: f64 = 1.0 => (PROBABILITY, THESIS);
    /// Mark packets that can carry a mark instead of dropping them. Default: off (table 1).
    pub ecn: bool = false => (Domain::Flag, THESIS);
    /// The backlog L above which the probability rises before packets are lost. Default: half of
    /// `limit`.
    pub threshold: BlueThreshold = BlueThreshold::HalfLimit =>
        (Domain::PartOfLimit { packets: matches!(self.limit, Limit::Packets(_)), most: MAX }, "Bartók 2001 s3.2");
    /// Packets that cannot carry a mark are dropped with a probability of their own, this times
    /// P_m to the power of `drop_power`, but no more than P_m: the mapping that section 5.3.1
    /// leaves to future work. Default: 1, with a power of 1 P_m itself.
    pub drop_scale: f64 = 1.0 => (PROBABILITY, "own; Bartók 2001 s5.3.1");
    /// See `drop_scale`. Default: 1.
    pub drop_power: f64 = 1.0 => (Domain::Number(0.0, 4.0, ""), "own; Bartók 2001 s5.3.1");
    /// While the link is idle the probability falls by `dec` every `freeze`, as if the link had
    /// asked for packets all the time; section 6 leaves that to future work. Default: off, one fall
    /// each time that the link falls idle.
    pub decay: bool = false => (Domain::Flag, "own; Bartók 2001 s6");
} problem
}

/// The changes that a change of the probability freezes (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlueUpdates {
    /// One update time: a change freezes the probability.
    Shared,
    /// Separate update times: a rise freezes further rises, a fall further falls.
    Separate,
}

/// The backlog above which the probability rises (section 3.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlueThreshold {
    /// Half of the limit.
    HalfLimit,
    /// This many packets or bytes, whichever the limit counts.
    At(u64),
    /// Only lost packets raise the probability.
    Off,
}

impl Discipline for BlueConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

named! { BlueUpdates: Shared = "shared", Separate = "separate" }

impl BlueUpdates {
    const DOMAIN: Domain = Domain::named::<BlueUpdates>("way to update");
}

impl Setting for BlueThreshold {
    fn value(&self) -> Value {
        match self {
            BlueThreshold::HalfLimit => Value::Name("half"),
            BlueThreshold::At(at) => Value::Whole(*at),
            BlueThreshold::Off => Value::Off,
        }
    }

    fn from_value(value: Value) -> Option<BlueThreshold> {
        match value {
            Value::Name("half") => Some(BlueThreshold::HalfLimit),
            Value::Whole(at) => Some(BlueThreshold::At(at)),
            Value::Off => Some(BlueThreshold::Off),
            _ => None,
        }
    }
}

impl BlueConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let probabilities = [self.init, self.inc, self.dec, self.max, self.drop_scale];
        if !(0.0..=4.0).contains(&self.drop_power) {
            Some("drop_power must be within 0 to 4")
        } else if !probabilities.iter().all(|p| (0.0..=1.0).contains(p)) {
            Some("init, inc, dec, max and drop_scale must be within 0 to 1")
        } else if self.init > self.max {
            Some("init must not exceed max")
        } else {
            None
        }
    }

    /// Returns `true` if the law uses extensions of what the thesis implements.
    fn is_extended(&self) -> bool {
        self.decay || self.drop_scale < 1.0 || self.drop_power > 1.0
    }

    /// L; beyond every backlog if only losses count.
    fn most_unmarked(&self) -> u64 {
        let (Limit::Packets(limit) | Limit::Bytes(limit)) = self.limit;
        match self.threshold {
            BlueThreshold::HalfLimit => limit / 2,
            BlueThreshold::At(threshold) => threshold,
            BlueThreshold::Off => u64::MAX,
        }
    }
}

/// The statistics of a BLUE queue, as `tc -s` prints them (section 3.5).
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct BlueStats {
    /// The probability of now.
    pub pmark: f64,
    /// Packets marked.
    pub marked: u64,
    /// Packets dropped at random.
    pub early: u64,
    /// Packets lost at the limit.
    pub limit: u64,
    /// Packets that another discipline had dropped here; there is no such call, so 0.
    pub other: u64,
}

/// A BLUE queue.
#[derive(Debug)]
pub struct Blue<P> {
    config: BlueConfig,
    /// L; beyond every backlog if only losses count.
    threshold: u64,
    extended: bool,
    law: BlueLaw,
    random: Random,
    store: Store<P>,
}

/// The variables of the law.
#[derive(Clone, Debug, PartialEq)]
struct BlueLaw {
    /// P_m.
    pmark: f64,
    last_rise: Time,
    last_fall: Time,
    /// The link is idle, since nothing has arrived after it asked for a packet in vain.
    idle: bool,
    /// The integral of the probability until `since`, in seconds; it has not moved from then on.
    area: f64,
    since: Time,
}

impl<P: Queued> Blue<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`BlueConfig::problem`].
    pub fn new(config: BlueConfig, random: Random) -> Blue<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let law = BlueLaw {
            pmark: config.init,
            last_rise: Time::ZERO,
            last_fall: Time::ZERO,
            idle: false,
            area: 0.0,
            since: Time::ZERO,
        };
        Blue {
            threshold: config.most_unmarked(),
            extended: config.is_extended(),
            config,
            law,
            random,
            store: Store::new(),
        }
    }

    /// The probability with which this packet is marked or dropped, where the law has more than
    /// what the thesis implements.
    #[inline(never)]
    fn extended_probability(&self, packet: &P) -> f64 {
        let pmark = self.law.pmark;
        if self.config.ecn && packet.ecn().is_capable() {
            return pmark;
        }
        (self.config.drop_scale * maths::pow(pmark, self.config.drop_power)).min(pmark)
    }

    /// The statistics.
    pub fn stats(&self) -> BlueStats {
        let counters = self.store.books().counters();
        BlueStats {
            pmark: self.law.pmark,
            marked: counters.marked.packets,
            early: counters.dropped[DropReason::Early as usize],
            limit: counters.dropped[DropReason::Limit as usize],
            other: 0,
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Blue<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let (waiting, limit) = match self.config.limit {
            Limit::Packets(limit) => (self.store.backlog().packets, limit),
            Limit::Bytes(limit) => (self.store.backlog().bytes, limit),
        };
        if self.extended && self.config.decay {
            self.law.decay(&self.config, now);
        }
        if waiting > limit {
            self.law.rise(&self.config, now);
            self.store.refuse(packet, DropReason::Limit, drops);
            return;
        }
        if waiting > self.threshold {
            self.law.rise(&self.config, now);
        }
        let probability = if self.extended { self.extended_probability(&packet) } else { self.law.pmark };
        if self.random.chance(probability) && !(self.config.ecn && self.store.mark(&mut packet)) {
            self.store.refuse(packet, DropReason::Early, drops);
            return;
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.store.send()
    }

    fn idle(&mut self, now: Time) {
        self.law.fall(&self.config, now);
        self.law.idle = true;
    }

    /// Other parameters at run time. The probability stays, within the new `max`, and so do the
    /// times of its last changes; heads beyond the new limit are discarded, as other laws with one
    /// queue do it.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<BlueConfig>(config)?.clone();
        valid(config.problem())?;
        self.law.set(self.law.pmark.min(config.max), now);
        self.threshold = config.most_unmarked();
        self.extended = config.is_extended();
        let limit = config.limit;
        self.config = config;
        // A packet may pass the limit: what waits before the last one is held against it.
        self.store.trim(drops, |store| match limit {
            Limit::Packets(limit) => store.backlog().packets > limit.saturating_add(1),
            Limit::Bytes(limit) => {
                let last = store.back().map_or(0, |last| u64::from(last.packet.wire_len()));
                store.backlog().bytes - last > limit
            }
        });
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    fn probe(&self) -> Probe {
        Probe { probability: Some(self.law.pmark), ..Probe::default() }
    }

    fn probability_time(&self, now: Time) -> Option<f64> {
        Some(self.law.area_by(now))
    }
}

// Bartók 2001, figure 15
impl BlueLaw {
    fn set(&mut self, pmark: f64, now: Time) {
        self.area = self.area_by(now);
        (self.pmark, self.since) = (pmark, now);
    }

    /// A packet arrives: if the link was idle, the probability has fallen as often as it was free
    /// to until now.
    fn decay(&mut self, config: &BlueConfig, now: Time) {
        let idle = std::mem::take(&mut self.idle);
        while idle && self.pmark > 0.0 && config.dec > 0.0 && now.since(self.last_fall) > config.freeze {
            self.fall(config, self.last_fall + config.freeze + Span::from_nanos(1));
        }
    }

    /// The integral of the probability until `now`, in seconds.
    fn area_by(&self, now: Time) -> f64 {
        self.area + self.pmark * now.since(self.since).as_secs_f64()
    }

    /// Raises the probability: a packet was lost, or the backlog is above L.
    fn rise(&mut self, config: &BlueConfig, now: Time) {
        if now.since(self.last_rise) > config.freeze {
            self.set((self.pmark + config.inc).min(config.max), now);
            self.last_rise = now;
            if config.updates == BlueUpdates::Shared {
                self.last_fall = now;
            }
        }
    }

    /// The link falls idle.
    fn fall(&mut self, config: &BlueConfig, now: Time) {
        if now.since(self.last_fall) > config.freeze {
            self.set((self.pmark - config.dec).max(0.0), now);
            self.last_fall = now;
            if config.updates == BlueUpdates::Shared {
                self.last_rise = now;
            }
        }
    }
}

#[cfg(test)]
mod tests;
