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
//! - BLUE decides before CoDel marks: a packet that it drops is not counted as marked.
//! - BLUE falls when the link is idle. In CAKE it falls whenever an empty flow has its turn, which
//!   happens while other flows have packets; a single queue is told once, when the link becomes
//!   idle, if that is a transmitter and not a token bucket.
//! - The target does not grow with the number of bulk flows (CAKE's `ingress`). The memory of a
//!   packet is assumed to be its bytes plus 576, instead of what Linux allocated (`truesize`).
//! - `limit` is a separate limit; in CAKE it only scales `memlimit`.

use std::any::Any;

use ackclock_units::parameter::{Configurable, Domain, Visitor};
use ackclock_units::{Random, Rate, Span, Time};

use crate::books::memory_of;
use crate::change::parameters;
use crate::disciplines::{Discipline, MAX, MAYBE_TIME, POSITIVE};
use crate::{
    Backlog, ChangeError, Counters, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store, Variable,
};

/// Parameters of a COBALT queue.
#[derive(Clone, Debug, PartialEq)]
pub struct CobaltConfig {
    /// The most packets that wait. Default: 10,240.
    pub limit: u64,
    /// The most memory that waiting packets take, in bytes. Default: 15,503,360, `limit` Ethernet
    /// frames.
    pub memlimit: u64,
    /// The sojourn time that may persist. Default: 5 ms.
    pub target: Span,
    /// The time for which the sojourn time may exceed `target` before the first signal. Default:
    /// 100 ms.
    pub interval: Span,
    /// Transmission time of the largest packet: nothing is signalled up to a sojourn time of four
    /// of them. Default: none, as for a link of unlimited rate; [`CobaltConfig::for_rate`] sets it.
    pub mtu_time: Span,
    /// Step up of BLUE's probability, in 2^-32. Default: 2^24, that is 1/256.
    pub p_inc: u32,
    /// Step down of BLUE's probability, in 2^-32. Default: 2^20, that is 1/4096.
    pub p_dec: u32,
    /// Have CoDel mark packets that can carry a mark instead of dropping them; BLUE always drops.
    /// Default: on, as CAKE is.
    pub ecn: bool,
    /// Mark every packet that can carry a mark and waited longer than this. Default: off (not in
    /// CAKE).
    pub ce_threshold: Option<Span>,
    /// Raise BLUE's probability for heads that waited longer than this, too. Default: off (not in
    /// CAKE).
    pub blue_threshold: Option<Span>,
}

impl Default for CobaltConfig {
    fn default() -> CobaltConfig {
        CobaltConfig {
            limit: 10_240,
            memlimit: 10_240 * 1514,
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            mtu_time: Span::ZERO,
            p_inc: 1 << 24,
            p_dec: 1 << 20,
            ecn: true,
            ce_threshold: None,
            blue_threshold: None,
        }
    }
}

impl Configurable for CobaltConfig {
    fn parameters(&mut self, v: &mut impl Visitor) {
        v.parameter("limit", Domain::Packets(1, MAX), "Linux `sch_cake`", &mut self.limit);
        v.parameter("memlimit", Domain::Bytes(1, MAX), "tc-cake(8)", &mut self.memlimit);
        v.parameter("target", POSITIVE, "Linux `sch_cake`", &mut self.target);
        v.parameter("interval", POSITIVE, "tc-cake(8) `rtt`", &mut self.interval);
        v.parameter("mtu_time", Domain::Time { positive: false }, "Linux `cake_set_rate`", &mut self.mtu_time);
        v.parameter("p_inc", Domain::Whole(0, MAX, "2^-32"), "Linux `sch_cake`", &mut self.p_inc);
        v.parameter("p_dec", Domain::Whole(0, MAX, "2^-32"), "Linux `sch_cake`", &mut self.p_dec);
        v.parameter("ecn", Domain::Flag, "Linux `sch_cake`", &mut self.ecn);
        v.parameter("ce_threshold", MAYBE_TIME, "ns-3 `CobaltQueueDisc`", &mut self.ce_threshold);
        v.parameter("blue_threshold", MAYBE_TIME, "ns-3 `CobaltQueueDisc`", &mut self.blue_threshold);
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
}

/// A COBALT queue.
#[derive(Debug)]
pub struct Cobalt<P> {
    config: CobaltConfig,
    state: State,
    memory: u64,
    random: Random,
    store: Store<P>,
}

/// The state of the law.
#[derive(Clone, Debug)]
struct State {
    /// Signals, less those that good times have taken back; 0 at rest.
    count: u32,
    /// 1 / sqrt(count) in 2^-32.
    reciprocal_root: u32,
    /// The time of the next signal; at rest, the time at which CoDel's state may be forgotten.
    drop_next: Time,
    dropping: bool,
    /// BLUE's probability in 2^-32.
    p_drop: u32,
    /// The time of BLUE's last change.
    blue_timer: Time,
    /// Sojourn time of the last head looked at.
    sojourn: Span,
}

/// The law's decision about a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct HeadDecision {
    /// Mark it.
    mark: bool,
    /// Drop it, unless it is the last one.
    drop: Option<DropReason>,
}

/// 1 / sqrt(count) in 2^-32, rounded; 0 and 1 are as close to one as it gets. One Newton step is
/// far off for small counts (from 1 to 2 it gives what belongs to 4), so these are exact.
const RECIPROCAL_ROOTS: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

impl<P: Queued> Cobalt<P> {
    /// An empty queue that draws from `random`.
    pub fn new(config: CobaltConfig, random: Random) -> Cobalt<P> {
        Cobalt { config, state: State::new(), memory: 0, random, store: Store::new() }
    }

    /// Other parameters at run time. The state stays. Nothing is discarded: the next arrival sees
    /// to limits that are exceeded then (Linux `cake_change`, `cake_enqueue`).
    ///
    /// # Errors
    /// None.
    pub fn reconfigure(&mut self, _now: Time, config: CobaltConfig, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        self.config = config;
        Ok(())
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
            self.state.overflowed(&self.config, now);
            self.store.discard(entry, reason, drops);
        }
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        loop {
            let Some(mut entry) = self.take() else { return Dequeue::Empty };
            let capable = entry.packet.ecn().is_capable();
            let verdict = self.state.head(&self.config, now, entry.enqueued_at, capable, &mut self.random);
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
        self.state.found_empty(&self.config, now);
    }

    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        self.reconfigure(now, parameters::<CobaltConfig>(config)?.clone(), drops)
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

    /// BLUE's probability, CoDel's sojourn time and state.
    fn probe(&self) -> Probe {
        Probe {
            probability: Some(f64::from(self.state.p_drop) / 4_294_967_296.0),
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

impl State {
    fn new() -> State {
        State {
            count: 0,
            reciprocal_root: u32::MAX,
            drop_next: Time::ZERO,
            dropping: false,
            p_drop: 0,
            blue_timer: Time::ZERO,
            sojourn: Span::ZERO,
        }
    }

    /// Raises BLUE's probability: a packet was dropped because there was no room.
    fn overflowed(&mut self, config: &CobaltConfig, now: Time) {
        self.raise(config, now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The link is free and nothing waits.
    fn found_empty(&mut self, config: &CobaltConfig, now: Time) {
        if self.p_drop > 0 && now.since(self.blue_timer) > config.target {
            self.p_drop = self.p_drop.saturating_sub(config.p_dec);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step(config, self.count - 1);
        }
    }

    /// Looks at a head taken out of the queue.
    fn head(
        &mut self,
        config: &CobaltConfig,
        now: Time,
        enqueued_at: Time,
        capable: bool,
        random: &mut Random,
    ) -> HeadDecision {
        let sojourn = now.since(enqueued_at);
        self.sojourn = sojourn;
        let over_target = sojourn > config.target && sojourn > config.mtu_time * 4;
        // Both are of the schedule as it was before this packet.
        let mut next_due = self.count > 0 && now >= self.drop_next;
        let mut late = now > self.drop_next;

        if over_target {
            if !self.dropping {
                self.drop_next = self.after(config, now);
            }
            self.count = self.count.max(1);
        }
        self.dropping = over_target;

        let (mut mark, mut drop) = (false, None);
        if next_due && self.dropping {
            mark = config.ecn && capable;
            drop = (!mark).then_some(DropReason::Delay);
            self.step(config, self.count.saturating_add(1));
            late = now > self.drop_next;
        } else {
            while next_due {
                self.step(config, self.count - 1);
                late = now > self.drop_next;
                next_due = self.count > 0 && now >= self.drop_next;
            }
        }

        if config.blue_threshold.is_some_and(|threshold| sojourn > threshold) {
            self.raise(config, now);
        }
        if drop.is_none() && self.p_drop > 0 && ((random.bits() >> 32) as u32) < self.p_drop {
            drop = Some(DropReason::Early);
        }

        // At rest the schedule tells how long CoDel is remembered; otherwise it does not run
        // behind.
        if self.count == 0 {
            self.drop_next = now + config.interval;
        } else if late && drop.is_none() {
            self.drop_next = now;
        }
        mark |= capable && config.ce_threshold.is_some_and(|threshold| sojourn > threshold);
        HeadDecision { mark, drop }
    }

    /// Raises BLUE's probability by a step, at most once per `target`.
    fn raise(&mut self, config: &CobaltConfig, now: Time) {
        if now.since(self.blue_timer) > config.target {
            self.p_drop = self.p_drop.saturating_add(config.p_inc);
            self.blue_timer = now;
        }
    }

    /// Moves the count, and the schedule by the interval that belongs to it.
    fn step(&mut self, config: &CobaltConfig, count: u32) {
        self.count = count;
        self.reciprocal_root = match RECIPROCAL_ROOTS.get(count as usize) {
            Some(&root) => root,
            None => newton(self.reciprocal_root, count),
        };
        self.drop_next = self.after(config, self.drop_next);
    }

    /// `interval / sqrt(count)` after `time`.
    fn after(&self, config: &CobaltConfig, time: Time) -> Time {
        let scaled = u128::from(config.interval.as_nanos()) * u128::from(self.reciprocal_root);
        time + Span::from_nanos((scaled >> 32) as u64)
    }
}

/// One Newton step from `root` towards 1 / sqrt(count), in 2^-32:
/// `root / 2 * (3 - count * root^2)`.
fn newton(root: u32, count: u32) -> u32 {
    let square = (u64::from(root) * u64::from(root)) >> 32;
    // The counts come in steps of one, so that the difference is about 2; two bits go so that the
    // product fits.
    let factor = (3u64 << 32).saturating_sub(u64::from(count) * square) >> 2;
    ((factor * u64::from(root)) >> 31) as u32
}

#[cfg(test)]
mod tests;
