//! COBALT, a combination of CoDel and BLUE: the algorithm of CAKE's queues, here for a single
//! queue.
//!
//! It measures the sojourn time of the packet at the head. While that is above `target`, CoDel
//! marks or drops a head each `interval / sqrt(count)`; below, the count decreases at the same pace
//! instead of being reset. BLUE handles unresponsive flows: its drop probability rises with every
//! overflow and falls when the queue is found empty, at most one step per `target`. Overflow drops
//! the head.
//!
//! # Source
//! Linux `sch_cake` (`cobalt_*`, `cake_drop`, `cake_set_rate`); names and defaults of `tc-cake(8)`,
//! where `interval` is called `rtt`; J. Palmei et al., Design and Evaluation of COBALT Queue
//! Discipline, LANMAN 2019. `ce_threshold` and `blue_threshold` are options of ns-3's port.
//!
//! # Departures
//! - The reciprocal root starts at 1. Linux starts a queue with 0, so that its very first signal
//!   comes with the second packet above `target`, not an `interval` later, against its own comment;
//!   the next ones are the same.
//! - BLUE falls when the link is idle. In CAKE it falls whenever an empty flow has its turn, which
//!   happens while other flows have packets; a single queue is told once, when the link becomes
//!   idle, if that is a transmitter and not a token bucket.
//! - The target does not grow with the number of bulk flows (CAKE's `ingress`). The memory of a
//!   packet is assumed to be its bytes plus 576, instead of what Linux allocated (`truesize`).
//! - `limit` is a separate limit; in CAKE it only scales `memlimit`.
//! - The control law has its own (`cobalt_law`).

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration};

use crate::books::memory_of;
use crate::change::parameters;
use crate::cobalt_law::{CobaltLaw, CobaltState, SMALL_QUEUE};
use crate::discipline::{Discipline, MAX, MAYBE_TIME, POSITIVE};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable};

configuration! {
/// Parameters of a COBALT queue.
#[derive(Clone, Debug, PartialEq)]
pub struct CobaltConfig {
    /// The most packets that wait. Default: 10,240.
    pub limit: u64 = 10_240 => (Domain::Packets(1, MAX), "Linux `sch_cake`");
    /// The most memory that waiting packets take, in bytes. Default: 15,503,360, `limit` Ethernet
    /// frames.
    pub memlimit: u64 = 10_240 * 1514 => (Domain::Bytes(1, MAX), "tc-cake(8)");
    /// The sojourn time that may persist. Default: 5 ms.
    pub target: Span = Span::from_millis(5) => (POSITIVE, "Linux `sch_cake`");
    /// The time for which the sojourn time may exceed `target` before the first signal. Default:
    /// 100 ms.
    pub interval: Span = Span::from_millis(100) => (POSITIVE, "tc-cake(8) `rtt`");
    /// Transmission time of the largest packet: nothing is signalled up to a sojourn time of four
    /// of them. Default: none, as for a link of unlimited rate; [`CobaltConfig::for_rate`] sets it.
    pub mtu_time: Span = Span::ZERO => (Domain::Time { positive: false }, "Linux `cake_set_rate`");
    /// Step up of BLUE's probability, in 2^-32. Default: 2^24, that is 1/256.
    pub p_inc: u32 = 1 << 24 => (Domain::Whole(0, MAX, "2^-32"), "Linux `sch_cake`");
    /// Step down of BLUE's probability, in 2^-32. Default: 2^20, that is 1/4096.
    pub p_dec: u32 = 1 << 20 => (Domain::Whole(0, MAX, "2^-32"), "Linux `sch_cake`");
    /// Have CoDel mark packets that can carry a mark instead of dropping them; BLUE always drops.
    /// Default: on, as CAKE is.
    pub ecn: bool = true => (Domain::Flag, "Linux `sch_cake`");
    /// Mark every packet that can carry a mark and waited longer than this. Default: off (not in
    /// CAKE).
    pub ce_threshold: Option<Span> = None => (MAYBE_TIME, "ns-3 `CobaltQueueDisc`");
    /// Raise BLUE's probability for heads that waited longer than this, too. Default: off (not in
    /// CAKE).
    pub blue_threshold: Option<Span> = None => (MAYBE_TIME, "ns-3 `CobaltQueueDisc`");
}
}

impl Discipline for CobaltConfig {
    fn marks(&self) -> bool {
        self.ecn
    }

    fn target(&self) -> Option<Span> {
        Some(self.target)
    }
}

impl CobaltConfig {
    /// The defaults for a link of `rate`, as CAKE's `bandwidth` sets them: the target is at least
    /// one and a half packets of 1514 bytes, the interval grows with it, and the memory is four
    /// times `rate` times 100 ms, at least 4 MiB.
    pub fn for_rate(rate: Rate) -> CobaltConfig {
        let unlimited = CobaltConfig::default();
        let mtu_time = Span::from_nanos(1514 * 8 * 1_000_000_000 / rate.as_bps());
        let target = unlimited.target.max(mtu_time * 3 / 2);
        let interval = (unlimited.interval + (target - unlimited.target)).max(target * 2);
        // Four times what `rate` carries in the nominal interval.
        let memory = u128::from(rate.as_bps()) / 8 * u128::from(unlimited.interval.as_nanos()) * 4 / 1_000_000_000;
        let memlimit = u64::try_from(memory).unwrap_or(u64::MAX).clamp(4 << 20, unlimited.memlimit);
        CobaltConfig { memlimit, target, interval, mtu_time, ..unlimited }
    }

    fn law(&self) -> CobaltLaw {
        let &CobaltConfig { target, interval, mtu_time, p_inc, p_dec, ecn, ce_threshold, blue_threshold, .. } = self;
        CobaltLaw { target, interval, mtu_time, p_inc, p_dec, ecn, ce_threshold, blue_threshold }
    }
}

/// A COBALT queue.
#[derive(Debug)]
pub struct Cobalt<P> {
    config: CobaltConfig,
    law: CobaltLaw,
    state: CobaltState,
    memory: u64,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Cobalt<P> {
    /// An empty queue that draws from `random`.
    pub fn new(config: CobaltConfig, random: Random) -> Cobalt<P> {
        Cobalt { law: config.law(), config, state: CobaltState::new(), memory: 0, random, store: Store::new() }
    }

    fn take(&mut self) -> Option<Entry<P>> {
        let entry = self.store.take()?;
        self.memory -= memory_of(&entry.packet);
        Some(entry)
    }
}

impl<P: Queued + Send> QueueDisc<P> for Cobalt<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        self.memory += memory_of(&packet);
        self.store.admit(now, packet);
        loop {
            let reason = if self.memory > self.config.memlimit {
                DropReason::Memory
            } else if self.store.backlog().packets > self.config.limit {
                DropReason::Limit
            } else {
                return;
            };
            let Some(entry) = self.take() else { return };
            self.state.overflowed(&self.law, now);
            self.store.discard(entry, reason, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        loop {
            let Some(mut entry) = self.take() else { return Dequeue::Empty };
            let capable = entry.packet.ecn().is_capable();
            let head = (entry.enqueued_at, capable);
            let verdict = self.state.head(&self.law, now, head, SMALL_QUEUE, &mut self.random);
            // The last packet may be marked but is not dropped: the link would fall idle.
            if let Some(reason) = verdict.drop
                && self.store.backlog().packets > 0
            {
                self.store.discard(entry, reason, drops);
                continue;
            }
            if verdict.mark {
                self.store.mark(&mut entry.packet);
            }
            return Dequeue::Packet(self.store.release(entry));
        }
    }

    fn idle(&mut self, now: Time) {
        self.state.found_empty(&self.law, now);
    }

    /// Other parameters at run time. The state stays. Nothing is discarded: the next arrival sees
    /// to limits that are exceeded then (Linux `cake_change`, `cake_enqueue`).
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<CobaltConfig>(config)?.clone();
        self.law = config.law();
        self.config = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.store.front()
    }

    fn books(&self) -> &Books {
        self.store.books()
    }

    /// BLUE's probability, CoDel's sojourn time and state.
    fn probe(&self) -> Probe {
        Probe {
            probability: Some(self.state.probability()),
            delay: Some(self.state.sojourn),
            dropping: Some(self.state.dropping),
            ..Probe::default()
        }
    }

    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("count", Variable::Count(self.state.count.into()));
    }
}

#[cfg(test)]
mod tests;
