//! SFQ, stochastic fairness queueing: packets are hashed to as many queues as there are flows,
//! which are served in turn; where there is no room, the longest queue gives way.
//!
//! A packet's flow hash, with a salt that is drawn anew every `perturb`, selects one of `divisor`
//! buckets, and a bucket with packets has one of `flows` slots. Slots send up to `quantum` bytes
//! per turn, new ones last. A slot holds up to `depth` packets. Beyond `limit` packets the slot
//! with the most loses one, at its tail, or at its head with `headdrop`. With `flow_red` each slot
//! averages its bytes and marks or drops as RED does.
//!
//! # Source
//! McKenney 1990, "Stochastic Fairness Queueing" (INFOCOM); Linux `sch_sfq` (the allotment in
//! bytes, as since 6.13), `include/net/red.h`; parameters and what is derived from them as
//! `tc-sfq(8)` and iproute2 `tc/q_sfq.c`.
//!
//! # Departures
//! - The salt of the hash is drawn for each run, and from it that of each multiple of `perturb`.
//!   There is no timer: waiting packets are distributed anew when the next one arrives, once for
//!   all changes that were due (Linux's timer may be late as well, `TIMER_DEFERRABLE`).
//! - `tc` filters, which choose buckets, are left out.
//! - A head that carries a mark is not marked again, and a packet that is to be discarded for
//!   `depth` is not marked; Linux counts these marks as well.
//! - Linux sets parameters only when it makes the discipline (`sfq_change` serves `sfq_init`
//!   alone); here those that need no other tables can be changed.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Ecn, Random, Span, Time, configuration};

use crate::books::Books;
use crate::change::{fixed, parameters};
use crate::discipline::{Discipline, HASH_SEED, MAX, OWN_SALT, PROBABILITY};
use crate::drr::{self, mix};
use crate::red::RedReaction;
use crate::red::config::{NO_WEIGHT, ewma};
use crate::red::linux::{Spacing, Thresholds};
use crate::slab::{Slab, SlabQueue};
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

/// `SFQ_MAX_DEPTH`, and the default of `limit`.
const MAX_DEPTH: u32 = 127;
/// `SFQ_MAX_FLOWS`.
const MAX_FLOWS: u32 = 0x1_0000 - MAX_DEPTH - 1;
/// The most buckets.
const MAX_DIVISOR: u64 = 65_536;
/// No slot.
const NIL: u32 = u32::MAX;

const MANUAL: &str = "tc-sfq(8)";

configuration! {
/// Parameters of an SFQ queue.
#[derive(Clone, Debug, PartialEq)]
pub struct SfqConfig {
    /// The most packets that wait, at most `flows` times `depth`. Default: 127.
    pub limit: u64 = MAX_DEPTH.into() => (Domain::Packets(2, u64::from(MAX_DEPTH) * u64::from(MAX_FLOWS)), MANUAL);
    /// The most flows that wait at once, at most `divisor`. Default: 128.
    pub flows: u32 = 128 => (Domain::Whole(1, MAX_FLOWS.into(), "queues"), MANUAL);
    /// The most packets of a flow that wait. Default: 127, which is also the most.
    pub depth: u32 = MAX_DEPTH => (Domain::Packets(1, MAX_DEPTH.into()), MANUAL);
    /// The buckets of the hash, a power of two. Default: 1024.
    pub divisor: u32 = 1024 => (Domain::PowerOfTwo(MAX_DIVISOR), MANUAL);
    /// Bytes that a flow may send in a turn. Default: 1514, an Ethernet frame.
    pub quantum: u32 = 1514 => (Domain::Bytes(1, 1 << 20), MANUAL);
    /// Time between two changes of the hash; zero changes nothing. Default: zero.
    pub perturb: Span = Span::ZERO => (Domain::Time { positive: false }, MANUAL);
    /// Drop the oldest packet of a flow in place of the newest. Default: off.
    pub headdrop: bool = false => (Domain::Flag, MANUAL);
    /// RED on each flow. Default: off.
    pub flow_red: Option<SfqRed> = None => (feature MANUAL);
    /// The salt of the hash of flows; `None` draws it from each run's seed. Default: `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
} problem
}

const SIZES: Domain = Domain::Bytes(1, MAX);
const BURST: Domain = Domain::Whole(1, MAX, "packets");

configuration! {
/// RED on each flow of an SFQ queue. What is `None` is derived as `tc` does.
#[derive(Clone, Debug, PartialEq)]
pub struct SfqRed {
    /// Bytes of a flow from which `min` and `max` follow. Default: 100,000, the example of
    /// tc-sfq(8) (tc requires it).
    pub redflowlimit: u64 = 100_000 => (SIZES, MANUAL);
    /// A flow's average queue in bytes from which on packets are marked. Default: a third of `max`.
    pub min: Option<u64> = None => (SIZES, MANUAL, derived "a third of `max`");
    /// A flow's average queue in bytes from which on every packet is marked. Default: a quarter of
    /// `redflowlimit`.
    pub max: Option<u64> = None => (SIZES, MANUAL, derived "a quarter of `redflowlimit`");
    /// Bytes of an average packet. Default: 1000.
    pub avpkt: u32 = 1000 => (Domain::Bytes(1, 1 << 20), MANUAL);
    /// Packets that an empty queue takes at once before the average reaches `min`. Default: (2
    /// `min` + `max`) / (3 `avpkt`).
    pub burst: Option<u32> = None => (BURST, MANUAL, derived "(2 `min` + `max`) / (3 `avpkt`)");
    /// Probability to mark when the average has reached `max`. Default: 0.02.
    pub probability: f64 = 0.02 => (PROBABILITY, MANUAL);
    /// Mark packets that can carry a mark instead of dropping them; with `headdrop` the flow's
    /// oldest. Default: off.
    pub ecn: bool = false => (Domain::Flag, MANUAL);
    /// With `ecn`: drop from `max` on. Default: off.
    pub harddrop: bool = false => (Domain::Flag, MANUAL);
}
}

impl Discipline for SfqConfig {
    fn marks(&self) -> bool {
        self.flow_red.as_ref().is_some_and(|red| red.ecn)
    }
}

impl SfqConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if !(1..=MAX_FLOWS).contains(&self.flows) {
            Some("flows must be within 1 to 65408")
        } else if !(1..=MAX_DEPTH).contains(&self.depth) {
            Some("depth must be within 1 to 127 packets")
        } else if !self.divisor.is_power_of_two() || u64::from(self.divisor) > MAX_DIVISOR {
            Some("divisor must be a power of two of at most 65536")
        } else if self.flows > self.divisor {
            Some("flows must be at most divisor")
        } else if self.limit < 2 {
            Some("limit must be at least 2 packets")
        } else if self.limit > u64::from(self.flows) * u64::from(self.depth) {
            Some("limit must be at most flows times depth")
        } else if self.quantum == 0 {
            Some("quantum must not be zero")
        } else {
            self.flow_red.as_ref().and_then(|red| red.thresholds().err())
        }
    }
}

impl SfqRed {
    /// The law of a flow, or the problem with these parameters.
    fn thresholds(&self) -> Result<Thresholds, &'static str> {
        let max = self.max.unwrap_or(self.redflowlimit / 4);
        let min = self.min.unwrap_or(max / 3);
        if self.avpkt == 0 {
            return Err("avpkt must not be zero");
        } else if max > self.redflowlimit {
            return Err("max must be at most redflowlimit");
        } else if min >= max {
            return Err("min must be below max");
        } else if max > MAX {
            return Err("max must be below 4 GiB");
        } else if !(0.0..=1.0).contains(&self.probability) {
            return Err("probability must be within 0 to 1");
        } else if self.harddrop && !self.ecn {
            return Err("harddrop needs ecn");
        }
        let avpkt = u64::from(self.avpkt);
        let burst = self.burst.map_or((2 * min + max) / (3 * avpkt), u64::from);
        let wlog = ewma(min as f64 / avpkt as f64, burst as f64).ok_or(NO_WEIGHT)?;
        Ok(Thresholds::new([min, max], self.probability, wlog))
    }
}

/// An SFQ queue.
#[derive(Debug)]
pub struct Sfq<P> {
    config: SfqConfig,
    thresholds: Option<Thresholds>,
    /// The salt that follows from the run's seed, and the number of the present change of it.
    salt: u64,
    perturbation: u64,
    /// The next change.
    next: Option<Time>,
    /// The slot of each bucket.
    buckets: Box<[u32]>,
    slots: Box<[SfqSlot]>,
    /// Slots by the number of their packets, the last to have got there first.
    by_depth: Box<[u32]>,
    /// The number of packets of the longest slot.
    longest: u32,
    /// The slot whose turn is last; the one after it is next.
    tail: u32,
    /// The slot of the last arrival.
    touched: u32,
    random: Random,
    slab: Slab<P>,
    books: Books,
}

#[derive(Clone, Debug)]
struct SfqSlot {
    queue: SlabQueue,
    packets: u32,
    bytes: u64,
    bucket: u32,
    /// The slot whose turn follows.
    next: u32,
    /// Bytes that the slot may still send in this turn.
    allot: i64,
    /// Neighbours of as many packets.
    above: u32,
    below: u32,
    /// The average times 2^Wlog.
    scaled_average: u64,
    spacing: Spacing,
}

impl<P: Queued> Sfq<P> {
    /// Empty queues that draw from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`SfqConfig::problem`].
    pub fn new(config: SfqConfig, random: Random) -> Sfq<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let slot = SfqSlot {
            queue: SlabQueue::EMPTY,
            packets: 0,
            bytes: 0,
            bucket: 0,
            next: NIL,
            allot: 0,
            above: NIL,
            below: NIL,
            scaled_average: 0,
            spacing: Spacing::NONE,
        };
        let mut sfq = Sfq {
            thresholds: config.flow_red.as_ref().and_then(|red| red.thresholds().ok()),
            salt: drr::salt(config.hash_seed, &random),
            perturbation: 0,
            next: first_change(&config, Time::ZERO),
            buckets: vec![NIL; config.divisor as usize].into_boxed_slice(),
            slots: vec![slot; config.flows as usize].into_boxed_slice(),
            by_depth: vec![NIL; MAX_DEPTH as usize + 1].into_boxed_slice(),
            longest: 0,
            tail: NIL,
            touched: 0,
            random,
            slab: Slab::new(),
            books: Books::default(),
            config,
        };
        (0..sfq.slots.len() as u32).for_each(|slot| sfq.link(slot));
        sfq
    }

    fn bucket(&self, packet: &P) -> u32 {
        let salt = self.salt ^ mix(self.perturbation);
        mix(packet.flow_hash() ^ salt) as u32 & (self.config.divisor - 1)
    }

    /// Puts a slot first among those with as many packets.
    fn link(&mut self, slot: u32) {
        let packets = self.slots[slot as usize].packets as usize;
        let first = std::mem::replace(&mut self.by_depth[packets], slot);
        (self.slots[slot as usize].above, self.slots[slot as usize].below) = (NIL, first);
        if first != NIL {
            self.slots[first as usize].above = slot;
        }
    }

    fn unlink(&mut self, slot: u32) {
        let SfqSlot { above, below, packets, .. } = self.slots[slot as usize];
        if above == NIL {
            self.by_depth[packets as usize] = below;
        } else {
            self.slots[above as usize].below = below;
        }
        if below != NIL {
            self.slots[below as usize].above = above;
        }
    }

    /// A slot has a packet more (`sfq_inc`).
    fn count_up(&mut self, slot: u32) {
        self.unlink(slot);
        let packets = &mut self.slots[slot as usize].packets;
        *packets += 1;
        self.longest = self.longest.max(*packets);
        self.link(slot);
    }

    /// A slot has a packet less (`sfq_dec`).
    fn count_down(&mut self, slot: u32) {
        self.unlink(slot);
        let packets = &mut self.slots[slot as usize].packets;
        if self.longest == *packets && self.by_depth[*packets as usize] == NIL {
            self.longest -= 1;
        }
        *packets -= 1;
        self.link(slot);
    }

    /// The slot of a bucket, a free one if it has none; `None` if all are in use. With it: whether
    /// it is new.
    fn slot_of(&mut self, bucket: u32) -> Option<(u32, bool)> {
        let slot = self.buckets[bucket as usize];
        if slot != NIL {
            return Some((slot, false));
        }
        let free = self.by_depth[0];
        let of = self.slots.get_mut(free as usize)?;
        (of.bucket, of.scaled_average, of.spacing) = (bucket, 0, Spacing::NONE);
        self.buckets[bucket as usize] = free;
        Some((free, true))
    }

    /// Appends an entry to a slot; a new one gets the last turn.
    fn append(&mut self, slot: u32, entry: Entry<P>) {
        let of = &mut self.slots[slot as usize];
        of.bytes += u64::from(entry.packet.wire_len());
        self.slab.push(&mut of.queue, entry);
        self.count_up(slot);
        if self.slots[slot as usize].packets == 1 {
            let next =
                if self.tail == NIL { slot } else { std::mem::replace(&mut self.slots[self.tail as usize].next, slot) };
            let of = &mut self.slots[slot as usize];
            (of.next, of.allot) = (next, self.config.quantum.into());
            self.tail = slot;
        }
    }

    /// Takes a packet out of a slot, at the head or at the tail; the slot's turn is left as it is.
    fn remove(&mut self, slot: u32, head: bool) -> Option<Entry<P>> {
        let queue = &mut self.slots[slot as usize].queue;
        let entry = if head { self.slab.pop(queue) } else { self.slab.pop_back(queue) }?;
        self.slots[slot as usize].bytes -= u64::from(entry.packet.wire_len());
        self.count_down(slot);
        Some(entry)
    }

    /// Takes the slot whose turn is next out of the turns.
    fn end_turns(&mut self) {
        let first = self.slots[self.tail as usize].next;
        let SfqSlot { next, bucket, .. } = self.slots[first as usize];
        self.buckets[bucket as usize] = NIL;
        if next == first {
            self.tail = NIL;
        } else {
            self.slots[self.tail as usize].next = next;
        }
    }

    fn discard(&mut self, entry: Entry<P>, drops: &mut Drops<P>) {
        self.books.take(entry.packet.wire_len());
        self.books.discard(entry.packet, DropReason::Limit, drops);
    }

    /// The longest slot loses a packet; of slots of one packet the one whose turn is next
    /// (`sfq_drop`).
    fn drop_one(&mut self, drops: &mut Drops<P>) {
        let slot = match self.longest {
            0 => return,
            1 => {
                let first = self.slots[self.tail as usize].next;
                self.end_turns();
                first
            }
            packets => self.by_depth[packets as usize],
        };
        if let Some(entry) = self.remove(slot, self.config.headdrop) {
            self.discard(entry, drops);
        }
    }

    /// Changes the hash if that was due by `now`.
    fn catch_up(&mut self, now: Time, drops: &mut Drops<P>) {
        if let Some(next) = self.next
            && next <= now
        {
            let period = self.config.perturb;
            let changes = now.since(next).as_nanos() / period.as_nanos() + 1;
            self.perturbation += changes;
            self.next = Some(next + period * changes);
            self.rehash(drops);
        }
    }

    /// Distributes all packets anew, slot by slot (`sfq_rehash`).
    fn rehash(&mut self, drops: &mut Drops<P>) {
        let mut waiting = SlabQueue::EMPTY;
        for slot in 0..self.slots.len() as u32 {
            if self.slots[slot as usize].packets == 0 {
                continue;
            }
            self.buckets[self.slots[slot as usize].bucket as usize] = NIL;
            while let Some(entry) = self.remove(slot, true) {
                self.slab.push(&mut waiting, entry);
            }
        }
        self.tail = NIL;
        while let Some(entry) = self.slab.pop(&mut waiting) {
            match self.slot_of(self.bucket(&entry.packet)) {
                Some((slot, _)) if self.slots[slot as usize].packets < self.config.depth => {
                    if let Some(thresholds) = self.thresholds {
                        let of = &mut self.slots[slot as usize];
                        of.scaled_average = thresholds.average(of.scaled_average, of.bytes);
                    }
                    self.append(slot, entry);
                }
                _ => self.discard(entry, drops),
            }
        }
    }

    /// RED's decision about an arrival at a slot with packets: `false` if the packet is to be
    /// dropped.
    fn passes_red(&mut self, slot: u32, packet: &mut P, full: bool) -> bool {
        let (Some(thresholds), Some(red)) = (&self.thresholds, &self.config.flow_red) else { return true };
        let of = &mut self.slots[slot as usize];
        of.scaled_average = thresholds.average(of.scaled_average, of.bytes);
        let may_mark = match thresholds.decide(&mut of.spacing, of.scaled_average, &mut self.random) {
            RedReaction::Pass => return true,
            RedReaction::Early => red.ecn,
            RedReaction::Forced => red.ecn && !red.harddrop,
        };
        if !may_mark {
            return false;
        }
        if self.config.headdrop
            && let Some(head) = self.slab.front_mut(&of.queue)
            && head.packet.ecn().is_capable()
        {
            if head.packet.ecn() != Ecn::Ce && !full {
                self.books.mark(&mut head.packet);
            }
            return true;
        }
        if full {
            return packet.ecn().is_capable();
        }
        self.books.mark(packet)
    }
}

/// The first change of the hash after `now`.
fn first_change(config: &SfqConfig, now: Time) -> Option<Time> {
    (config.perturb > Span::ZERO).then(|| now + config.perturb)
}

impl<P: Queued + Send> QueueDisc<P> for Sfq<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now, drops);
        let Some((slot, is_new)) = self.slot_of(self.bucket(&packet)) else {
            return self.books.refuse(packet, DropReason::Limit, drops);
        };
        self.touched = slot;
        if !is_new {
            let full = self.slots[slot as usize].packets >= self.config.depth;
            let passes = self.passes_red(slot, &mut packet, full);
            if full || !passes {
                let reason = if passes { DropReason::Limit } else { DropReason::Early };
                if !self.config.headdrop {
                    return self.books.refuse(packet, reason, drops);
                }
                // The flow's oldest packet gives way, and the flow keeps its turn.
                self.books.admit(packet.wire_len());
                let of = &mut self.slots[slot as usize];
                of.bytes += u64::from(packet.wire_len());
                self.slab.push(&mut of.queue, Entry { packet, enqueued_at: now });
                if let Some(head) = self.slab.pop(&mut of.queue) {
                    of.bytes -= u64::from(head.packet.wire_len());
                    self.books.take(head.packet.wire_len());
                    self.books.discard(head.packet, reason, drops);
                }
                return;
            }
        }
        self.books.admit(packet.wire_len());
        self.append(slot, Entry { packet, enqueued_at: now });
        if self.books.backlog().packets > self.config.limit {
            self.drop_one(drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        loop {
            let Some(tail) = self.slots.get(self.tail as usize) else { return Dequeue::Empty };
            let slot = tail.next;
            let of = &mut self.slots[slot as usize];
            if of.allot <= 0 {
                of.allot += i64::from(self.config.quantum);
                self.tail = slot;
                continue;
            }
            let Some(entry) = self.remove(slot, true) else { return Dequeue::Empty };
            let bytes = entry.packet.wire_len();
            if self.slots[slot as usize].packets == 0 {
                self.end_turns();
            } else {
                self.slots[slot as usize].allot -= i64::from(bytes);
            }
            self.books.take(bytes);
            self.books.release(bytes);
            return Dequeue::Packet(entry);
        }
    }

    /// Other parameters at run time. Flows keep their packets and turns; beyond the new limit the
    /// longest lose theirs (`sfq_change`). With `perturb` the next change of the hash is due this
    /// time from now, unless it stays what it was.
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<SfqConfig>(config)?.clone();
        fixed("flows", config.flows != self.config.flows)?;
        fixed("divisor", config.divisor != self.config.divisor)?;
        fixed("hash_seed", config.hash_seed != self.config.hash_seed)?;
        crate::change::valid(config.problem())?;
        if config.perturb != self.config.perturb {
            self.next = first_change(&config, now);
        }
        self.thresholds = config.flow_red.as_ref().and_then(|red| red.thresholds().ok());
        self.config = config;
        while self.books.backlog().packets > self.config.limit {
            self.drop_one(drops);
        }
        Ok(())
    }

    /// The head of the slot that needs the fewest turns until it may send.
    fn peek(&self) -> Option<&Entry<P>> {
        let first = self.slots.get(self.tail as usize)?.next;
        let (mut slot, mut best) = (first, (u64::MAX, first));
        loop {
            let of = &self.slots[slot as usize];
            let turns = if of.allot > 0 { 0 } else { of.allot.unsigned_abs() / u64::from(self.config.quantum) + 1 };
            if turns < best.0 {
                best = (turns, slot);
            }
            slot = of.next;
            if slot == first {
                return self.slab.front(&self.slots[best.1 as usize].queue);
            }
        }
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// With RED: average and probability of the flow that the last packet came to.
    fn probe(&self) -> Probe {
        let Some(thresholds) = &self.thresholds else { return Probe::default() };
        let scaled = self.slots[self.touched as usize].scaled_average;
        let average = (scaled >> thresholds.wlog) as f64;
        Probe { average: Some(average), probability: Some(thresholds.probability(scaled)), ..Probe::default() }
    }

    /// The flows that wait, and packets and bytes of the one that the last packet came to.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        let of = &self.slots[self.touched as usize];
        see("flow", Variable::Count(self.touched.into()));
        see("flow_packets", Variable::Count(of.packets.into()));
        see("flow_backlog", Variable::Bytes(of.bytes as f64));
        see("allot", Variable::Bytes(of.allot as f64));
        see("longest", Variable::Count(self.longest.into()));
        see("active_flows", Variable::Count(self.slots.iter().filter(|slot| slot.packets > 0).count() as u64));
    }
}

#[cfg(test)]
mod tests;
