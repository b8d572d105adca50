//! AVQ, the Adaptive Virtual Queue: marks or drops what a slightly slower link would have had no
//! room for.
//!
//! A virtual queue gets the same arrivals as the real one and drains at a virtual capacity. A
//! packet that would overflow it is marked, or dropped. The capacity moves with each arrival: it
//! grows with time at `alpha` times the rate that the link is to have, and shrinks with each packet
//! by `alpha` times its size, so that it settles where arrivals come at `gamma` times the link's
//! rate. There is no average, no probability and no random number.
//!
//! # Source
//! Kunniyur, Srikant 2001, "Analysis and Design of an Adaptive Virtual Queue (AVQ) Algorithm for
//! Active Queue Management" (SIGCOMM), section 2 and figure 1: the implementation as a token
//! bucket. The defaults of `gamma` and `alpha` are those of its simulations (section 4).
//!
//! # Departures
//! - Where a packet finds no room in the real queue it is refused, which the paper does not say;
//!   the virtual queue does not take it in either.
//! - The capacity begins at that of the link.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Rate, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, PROBABILITY};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

const PAPER: &str = "Kunniyur, Srikant 2001, figure 1";

const SIZES: Domain = Domain::Bytes(1, MAX);

configuration! {
/// Parameters of an AVQ queue.
#[derive(Clone, Debug, PartialEq)]
pub struct AvqConfig {
    /// The most bytes that wait; further packets are refused. Default: 100,000, the 100 packets of
    /// 1000 bytes of the paper's simulations.
    pub limit: u64 = 100_000 => (SIZES, "Kunniyur, Srikant 2001 s4");
    /// B, the size of the virtual queue in bytes. Default: `limit`.
    pub buffer: Option<u64> = None => (SIZES, PAPER, derived "`limit`");
    /// C, the rate of the link. Default: 10 Mbit/s, that of the paper's simulations.
    pub bandwidth: Rate = const { Rate::from_bps(10_000_000).unwrap() } => (Domain::Rate, PAPER);
    /// The utilization to settle at. Default: 0.98.
    pub gamma: f64 = 0.98 => (PROBABILITY, PAPER);
    /// The adaptation rate of the virtual capacity. Default: 0.15.
    pub alpha: f64 = 0.15 => (Domain::Number(0.0, 1000.0, ""), PAPER);
    /// Mark packets that can carry a mark instead of dropping them. Default: off.
    pub ecn: bool = false => (Domain::Flag, PAPER);
} problem
}

impl Discipline for AvqConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

impl AvqConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if !(0.0..=1.0).contains(&self.gamma) {
            Some("gamma must be within 0 to 1")
        } else if !(0.0..=1000.0).contains(&self.alpha) {
            Some("alpha must be within 0 to 1000")
        } else {
            None
        }
    }
}

/// An AVQ queue.
#[derive(Debug)]
pub struct Avq<P> {
    config: AvqConfig,
    law: AvqLaw,
    store: Store<P>,
}

/// The virtual queue. Sizes are in bytes, rates in bytes per second.
#[derive(Clone, Debug)]
struct AvqLaw {
    /// VQ.
    queue: f64,
    /// C~.
    capacity: f64,
    /// s, when the last packet came.
    last: Time,
    link: f64,
    buffer: f64,
}

impl AvqLaw {
    fn new(config: &AvqConfig) -> AvqLaw {
        let link = config.bandwidth.as_bps() as f64 / 8.0;
        let buffer = config.buffer.unwrap_or(config.limit) as f64;
        AvqLaw { queue: 0.0, capacity: link, last: Time::ZERO, link, buffer }
    }

    /// A packet of `bytes` bytes arrives: whether the virtual queue has no room for it (figure 1).
    fn overflows(&mut self, config: &AvqConfig, now: Time, bytes: u32) -> bool {
        let (passed, bytes) = (now.since(self.last).as_secs_f64(), f64::from(bytes));
        self.last = now;
        self.queue = (self.queue - self.capacity * passed).max(0.0);
        let overflows = self.queue + bytes > self.buffer;
        if !overflows {
            self.queue += bytes;
        }
        let grown = (self.capacity + config.alpha * config.gamma * self.link * passed).min(self.link);
        self.capacity = (grown - config.alpha * bytes).max(0.0);
        overflows
    }
}

impl<P: Queued> Avq<P> {
    /// An empty queue.
    ///
    /// # Panics
    /// If the parameters have a [`AvqConfig::problem`].
    pub fn new(config: AvqConfig) -> Avq<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        Avq { law: AvqLaw::new(&config), config, store: Store::new() }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Avq<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let bytes = packet.wire_len();
        if self.store.backlog().bytes + u64::from(bytes) > self.config.limit {
            self.store.refuse(packet, DropReason::Limit, drops);
            return;
        }
        if self.law.overflows(&self.config, now, bytes) && !(self.config.ecn && self.store.mark(&mut packet)) {
            self.store.refuse(packet, DropReason::Early, drops);
            return;
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        self.store.send()
    }

    /// Other parameters at run time. The virtual queue stays, within the new size, and so does its
    /// capacity, within the new rate; heads beyond the new limit are discarded.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<AvqConfig>(config)?.clone();
        valid(config.problem())?;
        let new = AvqLaw::new(&config);
        let AvqLaw { queue, capacity, last, .. } = self.law;
        self.law = AvqLaw { queue: queue.min(new.buffer), capacity: capacity.min(new.link), last, ..new };
        let limit = config.limit;
        self.config = config;
        self.store.trim(drops, |store| store.backlog().bytes > limit);
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// The average is the virtual queue, in bytes.
    fn probe(&self) -> Probe {
        Probe { average: Some(self.law.queue), ..Probe::default() }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("capacity", Variable::Bytes(self.law.capacity));
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::stub;

    /// 8 Mbit/s: a byte in a microsecond.
    fn config() -> AvqConfig {
        AvqConfig {
            limit: 1_000_000,
            buffer: Some(3000),
            bandwidth: Rate::from_bps(8_000_000).unwrap(),
            gamma: 0.9,
            alpha: 0.5,
            ecn: false,
        }
    }

    fn us(micros: u64) -> Time {
        Time::from_micros(micros)
    }

    #[test]
    fn the_capacity_and_the_virtual_queue_follow_the_paper() {
        let (config, mut law) = (config(), AvqLaw::new(&config()));
        // Nothing has passed: the queue is 1000, the capacity 10^6 - 0.5 * 1000.
        assert!(!law.overflows(&config, us(0), 1000));
        assert_eq!((law.queue, law.capacity), (1000.0, 999_500.0));
        // After 1 ms 999.5 have drained: 0.5 + 1000; and 0.5 * 0.9 * 10^6 * 1 ms = 450 are added,
        // of which the link's rate is the bound: 999,950 - 500.
        assert!(!law.overflows(&config, us(1000), 1000));
        assert!((law.queue - 1000.5).abs() < 1e-9, "{}", law.queue);
        assert!((law.capacity - 999_450.0).abs() < 1e-6, "{}", law.capacity);
        // 2000 more overflow the 3000 bytes, and are not taken in; the capacity shrinks all the
        // same.
        assert!(law.overflows(&config, us(1000), 2000));
        assert!((law.queue - 1000.5).abs() < 1e-9, "{}", law.queue);
        assert!((law.capacity - 998_450.0).abs() < 1e-6, "{}", law.capacity);
    }

    #[test]
    fn it_marks_until_arrivals_come_at_the_utilization_to_settle_at() {
        // Packets of 1000 bytes every 1.05 ms are 95 % of the link, above the 90 %: the capacity
        // shrinks until packets are refused. Every 1.2 ms, below: none is.
        for (gap, refused) in [(1050, true), (1200, false)] {
            let mut queue = Avq::new(config());
            let mut drops = Drops::new();
            for n in 0..200_000 {
                queue.enqueue(us(gap * n), stub(n as u32, 1000), &mut drops);
                let _ = queue.dequeue(us(gap * n), &mut drops);
            }
            assert_eq!(!drops.is_empty(), refused, "{gap}: {}", drops.len());
        }
    }
}
