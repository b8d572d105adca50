//! REM, random exponential marking: a price that grows while more comes than the link carries, or
//! more waits than a target, and a probability that is exponential in it.
//!
//! Every `pupdtime` the price grows by `gamma` times the excess: the packets that came, less those
//! that the link could have sent, and `alpha` times the queue's distance from `pbo`; it does not
//! fall below zero. The probability is 1 - `phi`^-price, so that along a path it depends on the sum
//! of the prices alone. The price settles where rates match and the queue is at its target, however
//! many flows there are.
//!
//! # Source
//! Athuraliya, Li, Low, Yin 2001, "REM: Active Queue Management" (IEEE Network 15(3)); ns-2
//! `queue/rem.cc`, `tcl/lib/ns-default.tcl`, whose names and defaults these are.
//!
//! # Departures
//! - `limit` packets wait; ns-2's queue refuses the one that would make them as many.
//! - `alpha` is 0.1 in ns-2, without a name.
//! - `bandwidth` is a parameter; ns-2 asks its link.
//! - There is no timer. Updates that were due are applied before the next packet comes or leaves,
//!   those after the first in one step once no arrival is left in the average.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration, maths};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, POSITIVE};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

const NS2: &str = "Athuraliya et al. 2001; ns-2 `rem.cc`";

configuration! {
/// Parameters of a REM queue.
#[derive(Clone, Debug, PartialEq)]
pub struct RemConfig {
    /// The most packets that wait; further ones are refused. Default: 50, ns-2's.
    pub limit: u64 = 50 => (Domain::Packets(1, MAX), "ns-2 `limit_`");
    /// The queue to settle at, in packets. Default: 20.
    pub pbo: f64 = 20.0 => (Domain::Number(0.0, 1e9, "packets"), NS2);
    /// Rate of the link. Default: 10 Mbit/s.
    pub bandwidth: Rate = const { Rate::from_bps(10_000_000).unwrap() } => (Domain::Rate, NS2);
    /// Bytes of an average packet. Default: 1000.
    pub mean_pktsize: u32 = 1000 => (Domain::Bytes(1, 1 << 20), NS2);
    /// Time between two updates. Default: 2 ms.
    pub pupdtime: Span = Span::from_millis(2) => (POSITIVE, NS2);
    /// The step of the price. Default: 0.001.
    pub gamma: f64 = 0.001 => (Domain::Number(0.0, 1000.0, ""), NS2);
    /// Weight of the queue's distance from its target. Default: 0.1.
    pub alpha: f64 = 0.1 => (Domain::Number(0.0, 1000.0, ""), "Athuraliya et al. 2001");
    /// The base of the probability. Default: 1.001.
    pub phi: f64 = 1.001 => (Domain::Number(1.0, 1000.0, ""), NS2);
    /// Weight of an interval in the average of arrivals. Default: 1.
    pub inw: f64 = 1.0 => (Domain::Number(0.0, 1.0, ""), NS2);
    /// Count bytes over `mean_pktsize` in place of packets, and scale probabilities with the
    /// packet's size. Default: off.
    pub qib: bool = false => (Domain::Flag, NS2);
    /// Mark packets that can carry a mark when they leave, and drop none at random (ns-2's
    /// `markpkts_`). Default: off.
    pub ecn: bool = false => (Domain::Flag, NS2);
} problem
}

impl Discipline for RemConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

impl RemConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let not_negative = |number: f64| number.is_finite() && number >= 0.0;
        if self.pupdtime == Span::ZERO {
            Some("pupdtime must not be zero")
        } else if self.mean_pktsize == 0 {
            Some("mean_pktsize must not be zero")
        } else if ![self.pbo, self.gamma, self.alpha].into_iter().all(not_negative) {
            Some("pbo, gamma and alpha must be finite and not negative")
        } else if !(self.phi.is_finite() && self.phi >= 1.0) {
            Some("phi must be at least 1")
        } else if !(0.0..=1.0).contains(&self.inw) {
            Some("inw must be within 0 to 1")
        } else {
            None
        }
    }

    /// Packets that the link sends between two updates.
    fn sent(&self) -> f64 {
        self.pupdtime.as_secs_f64() * self.bandwidth.as_bps() as f64 / (8.0 * f64::from(self.mean_pktsize))
    }

    /// A packet in the unit of the counts.
    fn count(&self, bytes: u32) -> f64 {
        if self.qib { f64::from(bytes) / f64::from(self.mean_pktsize) } else { 1.0 }
    }
}

/// A REM queue.
#[derive(Debug)]
pub struct Rem<P> {
    config: RemConfig,
    /// What came since the last update, and the average of it.
    came: f64,
    average: f64,
    price: f64,
    probability: f64,
    next_update: Time,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Rem<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`RemConfig::problem`].
    pub fn new(config: RemConfig, random: Random) -> Rem<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        Rem {
            came: 0.0,
            average: 0.0,
            price: 0.0,
            probability: 0.0,
            next_update: Time::ZERO + config.pupdtime,
            config,
            random,
            store: Store::new(),
        }
    }

    /// Makes the updates that were due up to `now` (`run_updaterule`). Nothing came or left since
    /// the first of them.
    fn catch_up(&mut self, now: Time) {
        if self.next_update > now {
            return;
        }
        let RemConfig { pupdtime, gamma, alpha, pbo, inw, .. } = self.config;
        let backlog = self.store.backlog();
        let waits = if self.config.qib {
            backlog.bytes as f64 / f64::from(self.config.mean_pktsize)
        } else {
            backlog.packets as f64
        };
        let rest = alpha * (waits - pbo) - self.config.sent();
        while self.next_update <= now {
            self.average = self.average * (1.0 - inw) + inw * std::mem::take(&mut self.came);
            let step = gamma * (self.average + rest);
            // Without arrivals all further steps are the same, and at a price of zero those below
            // zero change nothing.
            let at_rest = self.price + step <= 0.0 && step <= 0.0 && inw > 0.0;
            let steps = if self.average == 0.0 || at_rest {
                now.since(self.next_update).as_nanos() / pupdtime.as_nanos() + 1
            } else {
                1
            };
            self.price = (self.price + steps as f64 * step).max(0.0);
            if steps > 1 && inw > 0.0 {
                self.average *= maths::pow(1.0 - inw, (steps - 1) as f64);
            }
            self.next_update += pupdtime * steps;
        }
        self.probability = 1.0 - maths::pow(self.config.phi, -self.price);
    }

    /// Whether a packet of `bytes` bytes is marked or dropped.
    fn objects(&mut self, bytes: u32) -> bool {
        let probability = self.probability * self.config.count(bytes);
        self.random.chance(probability)
    }
}

impl<P: Queued + Send> QueueDisc<P> for Rem<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        let bytes = packet.wire_len();
        self.came += self.config.count(bytes);
        if self.store.backlog().packets >= self.config.limit {
            self.store.refuse(packet, DropReason::Limit, drops);
        } else if !self.config.ecn && self.objects(bytes) {
            self.store.refuse(packet, DropReason::Early, drops);
        } else {
            self.store.admit(now, packet);
        }
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        if self.store.front().is_none() {
            return Dequeue::Empty;
        }
        self.catch_up(now);
        let mut dequeued = self.store.send();
        if self.config.ecn
            && let Dequeue::Packet(entry) = &mut dequeued
            && self.objects(entry.packet.wire_len())
        {
            self.store.mark(&mut entry.packet);
        }
        dequeued
    }

    /// Other parameters at run time. The price stays, the next update is due when it was, and heads
    /// beyond the new limit are discarded.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<RemConfig>(config)?.clone();
        valid(config.problem())?;
        if config != self.config {
            self.catch_up(now);
        }
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

    fn probe(&self) -> Probe {
        Probe { probability: Some(self.probability), ..Probe::default() }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Ecn;

    use super::*;
    use crate::stub::{Stub, stub};

    fn rem(config: RemConfig) -> Rem<Stub> {
        Rem::new(config, Random::for_component(1, 0, "rem"))
    }

    fn close(found: f64, expected: f64) {
        assert!((found - expected).abs() < 1e-12, "{found} is not {expected}");
    }

    /// `run_updaterule`: 10 Mbit/s are 2.5 packets of 1000 bytes in 2 ms. 30 packets come before
    /// the first update: 0.001 (30 + 0.1 (30 - 20) - 2.5) = 0.0285. Then nothing comes: 0.001 (0 +
    /// 1 - 2.5) = -0.0015 each, so that 19 updates later it is zero; and 1 - 1.001^-0.0285.
    #[test]
    fn the_price_follows_the_excess() {
        let mut queue = rem(RemConfig::default());
        let mut drops = Drops::new();
        (0..30).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
        for (micros, price) in [(1999, 0.0), (2000, 0.0285), (4000, 0.027), (14_000, 0.0195), (40_000, 0.0)] {
            queue.catch_up(Time::from_micros(micros));
            close(queue.price, price);
        }
        let mut at_once = rem(RemConfig::default());
        (0..30).for_each(|id| at_once.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
        at_once.catch_up(Time::from_micros(14_000));
        close(at_once.price, 0.0195);
        close(at_once.probability, 1.0 - maths::pow(1.001, -0.0195));
        assert_eq!(at_once.next_update, Time::from_millis(16));
    }

    /// With `inw` 1/4 the 30 packets count 7.5, 5.625, ...; in bytes packets of 500 count a half.
    #[test]
    fn arrivals_are_averaged_and_counted_in_bytes() {
        let config = RemConfig { inw: 0.25, gamma: 1.0, alpha: 0.0, ..RemConfig::default() };
        let mut queue = rem(config.clone());
        let mut drops = Drops::new();
        (0..30).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 500), &mut drops));
        queue.catch_up(Time::from_millis(4));
        close(queue.price, 7.5 - 2.5 + 5.625 - 2.5);
        let mut bytes = rem(RemConfig { qib: true, ..config });
        (0..30).for_each(|id| bytes.enqueue(Time::ZERO, stub(id, 500), &mut drops));
        bytes.catch_up(Time::from_millis(4));
        close(bytes.price, 3.75 - 2.5 + 2.8125 - 2.5);
    }

    /// At a price of ln 2 / ln 1.001 the probability is 1/2: of 10,000 packets 5000 are dropped on
    /// arrival (standard deviation 50); with `ecn` as many of those that can be are marked when
    /// they leave, and none is dropped.
    #[test]
    fn packets_are_dropped_on_arrival_or_marked_on_departure() {
        for (ecn, capable) in [(false, true), (true, true), (true, false)] {
            let mut queue = rem(RemConfig { ecn, limit: 20_000, ..RemConfig::default() });
            let mut drops = Drops::new();
            queue.price = maths::ln(2.0) / maths::ln(1.001);
            queue.probability = 1.0 - maths::pow(1.001, -queue.price);
            let codepoint = if capable { Ecn::Ect0 } else { Ecn::NotEct };
            for id in 0..10_000 {
                queue.enqueue(Time::ZERO, Stub { ecn: codepoint, ..stub(id, 1000) }, &mut drops);
                let _ = queue.dequeue(Time::ZERO, &mut drops);
            }
            let (marked, dropped) = (queue.counters().marked.packets, drops.len() as u64);
            let expected =
                |found: u64, half: bool| found.abs_diff(if half { 5000 } else { 0 }) <= 250 * u64::from(half);
            assert!(expected(dropped, !ecn) && expected(marked, ecn && capable), "{ecn} {capable}: {dropped} {marked}");
        }
        let problems = [
            RemConfig { pupdtime: Span::ZERO, ..RemConfig::default() },
            RemConfig { phi: 0.9, ..RemConfig::default() },
            RemConfig { inw: 2.0, ..RemConfig::default() },
            RemConfig { gamma: f64::INFINITY, ..RemConfig::default() },
        ];
        assert!(problems.iter().all(|config| config.problem().is_some()));
    }
}
