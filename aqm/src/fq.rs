//! FQ: a queue for each flow, served in turn within three bands by priority, with an optional rate
//! that no flow exceeds.
//!
//! A packet's flow hash selects its flow. A flow sends up to its credit and then waits for its next
//! turn, which adds `quantum`; new flows have `initial_quantum` and are served before old ones.
//! Bands share the link by weight. A packet that finds nothing else waiting goes to a fast path,
//! which is served first. With `maxrate` a flow that has used its credit is held back until its
//! rate allows the next packet.
//!
//! # Source
//! Linux `sch_fq` as of 6.18; parameters and defaults as `tc-fq(8)`. Bands by `ip_tos2prio` and
//! `sch_default_prio2band`, as `prio` with its map `linux`.
//!
//! # Departures
//! - Packets carry no time of departure and no socket: senders pace by themselves. So every packet
//!   is one that a router forwards, flows are those of `orphan_mask`, and `horizon`,
//!   `horizon_drop`, `offload_horizon`, `timer_slack` and `nopacing` have nothing to act on.
//! - Flows are in an array, and one that was without packets for 3 s is a new one when it comes
//!   back; Linux forgets it when another flow of the same tree comes after this time.
//! - A flow stays in the band of the packet with which it started until it has been without
//!   packets; Linux moves it at its next turn, and lists a flow that starts in its last band.
//! - `priomap` and `weights` are the defaults.

use std::any::Any;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration};

use crate::books::Books;
use crate::change::{fixed, parameters, valid};
use crate::discipline::{Discipline, HASH_SEED, MAX, MAYBE_TIME, OWN_SALT};
use crate::drr::{self, mix};
use crate::prio::PrioMap;
use crate::slab::{Slab, SlabQueue};
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, QueueDisc, Queued, Variable};

/// `FQ_BANDS`.
const BANDS: usize = 3;
/// Bytes that each band may send in its turn.
const WEIGHTS: [i64; BANDS] = [9 << 16, 3 << 16, 1 << 16];
/// The most packets in the fast path while flows are held back.
const FAST_PATH: u64 = 8;
/// A flow without packets for this long is forgotten (`FQ_GC_AGE`).
const GC_AGE: Span = Span::from_secs(3);
/// The longest time by which one packet holds its flow back.
const LONGEST_GAP: Span = Span::from_secs(1);
/// The default of `low_rate_threshold`.
const LOW_RATE: Rate = Rate::from_bps(550_000).unwrap();
/// The largest `orphan_mask`.
const MAX_MASK: u32 = 0xffff;
/// No flow.
const NIL: u32 = u32::MAX;

const MANUAL: &str = "tc-fq(8)";

configuration! {
/// Parameters of an FQ queue.
#[derive(Clone, Debug, PartialEq)]
pub struct FqConfig {
    /// The most packets that wait in a band, besides the fast path. Default: 10,000.
    pub limit: u64 = 10_000 => (Domain::Packets(1, MAX), MANUAL);
    /// The most packets of a flow that wait. Default: 100.
    pub flow_limit: u64 = 100 => (Domain::Packets(1, MAX), MANUAL);
    /// Bytes that each turn adds to a flow's credit. Default: 3028, two Ethernet frames.
    pub quantum: u32 = 2 * 1514 => (Domain::Bytes(1, 1 << 20), MANUAL);
    /// The credit of a new flow in bytes. Default: 15,140, ten Ethernet frames.
    pub initial_quantum: u32 = 10 * 1514 => (Domain::Bytes(1, i32::MAX as u64), MANUAL);
    /// The rate that no flow exceeds. Default: none.
    pub maxrate: Option<Rate> = None => (Domain::OrOff(&Domain::Rate), MANUAL);
    /// With a `maxrate` up to this each packet waits for its time; above it a flow's credit may
    /// pass at once. Default: 550 kbit/s.
    pub low_rate_threshold: Option<Rate> = None => (Domain::Rate, MANUAL, derived "550 kbit/s, with `maxrate`");
    /// A flow that was without packets for longer has at least one quantum of credit. Default: 40
    /// ms.
    pub refill_delay: Span = Span::from_millis(40) => (Domain::Time { positive: false }, MANUAL);
    /// The bits of the hash that tell flows apart. Default: 1023.
    pub orphan_mask: u32 = 1023 => (Domain::Whole(1, MAX_MASK.into(), ""), MANUAL);
    /// Mark packets that can carry a mark and leave later than this after they might have. Default:
    /// off.
    pub ce_threshold: Option<Span> = None => (MAYBE_TIME, MANUAL);
    /// The salt of the hash of flows; `None` draws it from each run's seed. Default: `None`.
    pub hash_seed: Option<u64> = None => (HASH_SEED, OWN_SALT);
} problem
}

impl Discipline for FqConfig {
    fn marks(&self) -> bool {
        self.ce_threshold.is_some()
    }
}

impl FqConfig {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if self.quantum == 0 {
            Some("quantum must not be zero")
        } else if self.orphan_mask > MAX_MASK {
            Some("orphan_mask must be at most 65535")
        } else if self.low_rate_threshold.is_some() && self.maxrate.is_none() {
            Some("low_rate_threshold needs maxrate")
        } else {
            None
        }
    }
}

/// An FQ queue.
#[derive(Debug)]
pub struct Fq<P> {
    config: FqConfig,
    salt: u64,
    flows: Box<[FqFlow]>,
    bands: [FqBand; BANDS],
    /// The band whose turn it is.
    turn: usize,
    /// Packets that found nothing else to send.
    fast: SlabQueue,
    fast_packets: u64,
    /// Flows with packets in the lists.
    eligible: u64,
    /// Flows that are held back: until when, in the order in which they were.
    held: BinaryHeap<Reverse<(Time, u64, u32)>>,
    held_ever: u64,
    /// The flow that a packet came to or left last.
    touched: u32,
    slab: Slab<P>,
    books: Books,
}

#[derive(Clone, Debug)]
struct FqFlow {
    queue: SlabQueue,
    packets: u64,
    credit: i64,
    place: Place,
    band: usize,
    next: u32,
    /// The rate allows the next packet from this time on.
    time_next: Time,
}

/// The place of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Place {
    /// It had no packet yet.
    Unknown,
    /// It ran out of packets, and was out of turns at this time.
    Detached(Time),
    /// It waits for its turn, perhaps without packets.
    Listed,
    /// It waits for its rate.
    Held,
}

#[derive(Clone, Copy, Debug)]
struct FqBand {
    credit: i64,
    /// Packets that wait, but for the fast path.
    packets: u64,
    /// New flows, and old ones.
    lists: [FqList; 2],
}

#[derive(Clone, Copy, Debug)]
struct FqList {
    first: u32,
    last: u32,
}

const NEW: usize = 0;
const OLD: usize = 1;

impl<P: Queued> Fq<P> {
    /// Empty queues that draw their salt from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`FqConfig::problem`].
    pub fn new(config: FqConfig, random: Random) -> Fq<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let flow = FqFlow {
            queue: SlabQueue::EMPTY,
            packets: 0,
            credit: 0,
            place: Place::Unknown,
            band: 0,
            next: NIL,
            time_next: Time::ZERO,
        };
        let band = FqBand { credit: 0, packets: 0, lists: [FqList { first: NIL, last: NIL }; 2] };
        Fq {
            salt: drr::salt(config.hash_seed, &random),
            flows: vec![flow; config.orphan_mask as usize + 1].into_boxed_slice(),
            bands: [band; BANDS],
            turn: 0,
            fast: SlabQueue::EMPTY,
            fast_packets: 0,
            eligible: 0,
            held: BinaryHeap::new(),
            held_ever: 0,
            touched: 0,
            slab: Slab::new(),
            books: Books::default(),
            config,
        }
    }

    /// A packet that nothing is to precede (`fq_fastpath_check`).
    fn is_fast(&self, now: Time) -> bool {
        let due = |&Reverse((time, ..)): &Reverse<(Time, u64, u32)>| time <= now;
        self.config.maxrate.is_none()
            && (self.books.backlog().packets == 0
                || self.eligible == 0 && self.fast_packets < FAST_PATH && !self.held.peek().is_some_and(due))
    }

    fn push(&mut self, flow: u32, list: usize) {
        let band = self.flows[flow as usize].band;
        let list = &mut self.bands[band].lists[list];
        let before = std::mem::replace(&mut list.last, flow);
        if list.first == NIL {
            list.first = flow;
        } else {
            self.flows[before as usize].next = flow;
        }
        self.flows[flow as usize].next = NIL;
        self.flows[flow as usize].place = Place::Listed;
    }

    fn remove_first(&mut self, band: usize, list: usize) {
        let list = &mut self.bands[band].lists[list];
        list.first = self.flows[list.first as usize].next;
    }

    /// The list that is served next in a band that may send (`fq_pband_head_select`).
    fn list_of(&self, band: usize) -> Option<usize> {
        let FqBand { credit, lists, .. } = &self.bands[band];
        (*credit > 0).then(|| lists.iter().position(|list| list.first != NIL)).flatten()
    }

    /// Takes the next packet out; `None` if none may leave now (`fq_dequeue`).
    fn take(&mut self, now: Time) -> Option<Entry<P>> {
        if let Some(entry) = self.slab.pop(&mut self.fast) {
            self.fast_packets -= 1;
            self.books.take(entry.packet.wire_len());
            return Some(entry);
        }
        while let Some(&Reverse((time, _, flow))) = self.held.peek()
            && time <= now
        {
            self.held.pop();
            self.push(flow, OLD);
            self.eligible += 1;
        }
        if self.eligible == 0 {
            return None;
        }
        loop {
            let band = self.turn;
            let Some(list) = self.list_of(band) else {
                self.turn = (band + 1) % BANDS;
                let next = &mut self.bands[self.turn];
                next.credit = (next.credit + WEIGHTS[self.turn]).min(WEIGHTS[self.turn]);
                continue;
            };
            let index = self.bands[band].lists[list].first;
            let flow = &mut self.flows[index as usize];
            if flow.credit <= 0 {
                flow.credit += i64::from(self.config.quantum);
                self.remove_first(band, list);
                self.push(index, OLD);
                continue;
            }
            let Some(head) = self.slab.front(&flow.queue) else {
                self.remove_first(band, list);
                if list == NEW {
                    // One turn among the old flows, or it could starve them.
                    self.push(index, OLD);
                } else {
                    self.flows[index as usize].place = Place::Detached(now);
                }
                if self.eligible == 0 {
                    return None;
                }
                continue;
            };
            let due = head.enqueued_at.max(flow.time_next);
            if due > now {
                (flow.time_next, flow.place) = (due, Place::Held);
                self.remove_first(band, list);
                self.held.push(Reverse((due, self.held_ever, index)));
                self.held_ever += 1;
                self.eligible -= 1;
                if self.eligible == 0 {
                    return None;
                }
                continue;
            }
            let mut entry = self.slab.pop(&mut flow.queue)?;
            let bytes = entry.packet.wire_len();
            flow.packets -= 1;
            self.eligible -= u64::from(flow.packets == 0);
            flow.credit -= i64::from(bytes);
            self.bands[band].credit -= i64::from(bytes);
            self.bands[PrioMap::Linux.band(entry.packet.dscp())].packets -= 1;
            if let Some(rate) = self.config.maxrate {
                flow.sent(now, bytes, rate, &self.config);
            }
            self.touched = index;
            self.books.take(bytes);
            if self.config.ce_threshold.is_some_and(|threshold| now.since(due) > threshold) {
                self.books.mark(&mut entry.packet);
            }
            return Some(entry);
        }
    }

    /// The head of the flow of a band that needs the fewest turns until it may send.
    fn next_of(&self, band: usize) -> Option<&Entry<P>> {
        let lists = self.bands[band].lists.map(|list| {
            let mut next = list.first;
            std::iter::from_fn(move || {
                let flow = self.flows.get(next as usize)?;
                next = flow.next;
                Some(flow)
            })
            .filter_map(|flow| Some((flow.credit, self.slab.front(&flow.queue)?)))
        });
        let [new, old] = lists;
        if let Some((_, head)) = new.clone().find(|&(credit, _)| credit > 0) {
            return Some(head);
        }
        let quantum = i64::from(self.config.quantum);
        // A new flow without credit gets its next quantum at once, and its turn behind the old
        // ones.
        let turns = old.chain(new.map(|(credit, head)| (credit + quantum, head)));
        let turns = turns.map(|(credit, head)| (if credit > 0 { 0 } else { -credit / quantum + 1 }, head));
        turns.min_by_key(|&(turns, _)| turns).map(|(_, head)| head)
    }
}

impl FqFlow {
    /// A packet has left at `now`: the time of the next one at this rate.
    fn sent(&mut self, now: Time, bytes: u32, rate: Rate, config: &FqConfig) {
        let bytes = if rate <= config.low_rate_threshold.unwrap_or(LOW_RATE) {
            self.credit = 0;
            bytes
        } else if self.credit > 0 {
            return;
        } else {
            bytes.max(config.quantum)
        };
        let gap = u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps());
        let mut gap = Span::from_nanos(gap as u64).min(LONGEST_GAP);
        if self.time_next > Time::ZERO {
            // What the last packet was late by, up to half.
            gap = gap - (gap / 2).min(now.since(self.time_next));
        }
        self.time_next = now + gap;
    }
}

impl<P: Queued + Send> QueueDisc<P> for Fq<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let band = PrioMap::Linux.band(packet.dscp());
        if self.bands[band].packets >= self.config.limit {
            return self.books.refuse(packet, DropReason::Limit, drops);
        }
        let bytes = packet.wire_len();
        if self.is_fast(now) {
            self.fast_packets += 1;
            self.books.admit(bytes);
            self.slab.push(&mut self.fast, Entry { packet, enqueued_at: now });
            return;
        }
        let index = mix(packet.flow_hash() ^ self.salt) as u32 & self.config.orphan_mask;
        let flow = &mut self.flows[index as usize];
        if flow.packets >= self.config.flow_limit {
            return self.books.refuse(packet, DropReason::Limit, drops);
        }
        self.touched = index;
        let starts = match flow.place {
            Place::Unknown => true,
            Place::Detached(since) if now.since(since) > GC_AGE => true,
            Place::Detached(since) => {
                if now.since(since) > self.config.refill_delay {
                    flow.credit = flow.credit.max(self.config.quantum.into());
                }
                false
            }
            Place::Listed | Place::Held => false,
        };
        if starts {
            (flow.credit, flow.time_next) = (self.config.initial_quantum.into(), Time::ZERO);
        }
        let is_held = flow.place == Place::Held;
        let is_listed = flow.place == Place::Listed;
        self.eligible += u64::from(flow.packets == 0 && !is_held);
        flow.packets += 1;
        self.slab.push(&mut flow.queue, Entry { packet, enqueued_at: now });
        if !is_held && !is_listed {
            flow.band = band;
            self.push(index, NEW);
        }
        self.bands[band].packets += 1;
        self.books.admit(bytes);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        if self.books.backlog().packets == 0 {
            return Dequeue::Empty;
        }
        if let Some(entry) = self.take(now) {
            self.books.release(entry.packet.wire_len());
            return Dequeue::Packet(entry);
        }
        self.held.peek().map_or(Dequeue::Empty, |&Reverse((time, ..))| Dequeue::NotBefore(time))
    }

    fn passes(&self) -> bool {
        self.config.maxrate.is_none() && self.config.limit > 0
    }

    fn pass(&mut self, bytes: u32) {
        self.books.pass(bytes);
    }

    /// Other parameters at run time. Flows keep packets, credit and times. While more packets wait
    /// than the new limit, what would leave next is discarded; packets that are held back stay
    /// (`fq_change`).
    fn change(&mut self, now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<FqConfig>(config)?.clone();
        fixed("orphan_mask", config.orphan_mask != self.config.orphan_mask)?;
        fixed("hash_seed", config.hash_seed != self.config.hash_seed)?;
        valid(config.problem())?;
        self.config = config;
        while self.books.backlog().packets > self.config.limit
            && let Some(entry) = self.take(now)
        {
            self.books.discard(entry.packet, DropReason::Limit, drops);
        }
        Ok(())
    }

    /// Flows that are held back count only if no other has packets.
    fn peek(&self) -> Option<&Entry<P>> {
        if let Some(entry) = self.slab.front(&self.fast) {
            return Some(entry);
        }
        if self.eligible == 0 {
            let &Reverse((_, _, flow)) = self.held.peek()?;
            return self.slab.front(&self.flows[flow as usize].queue);
        }
        let (mut turn, mut credits) = (self.turn, self.bands.map(|band| band.credit));
        loop {
            if credits[turn] > 0
                && let Some(head) = self.next_of(turn)
            {
                return Some(head);
            }
            turn = (turn + 1) % BANDS;
            credits[turn] = (credits[turn] + WEIGHTS[turn]).min(WEIGHTS[turn]);
        }
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// Packets of each band and of the fast path, flows that send and that are held back, and the
    /// flow that a packet came to or left last.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        let flow = &self.flows[self.touched as usize];
        see("flow", Variable::Count(self.touched.into()));
        see("flow_packets", Variable::Count(flow.packets));
        see("credit", Variable::Bytes(flow.credit as f64));
        for (name, band) in ["band0_packets", "band1_packets", "band2_packets"].into_iter().zip(&self.bands) {
            see(name, Variable::Count(band.packets));
        }
        see("fast_path", Variable::Count(self.fast_packets));
        see("eligible_flows", Variable::Count(self.eligible));
        see("throttled_flows", Variable::Count(self.held.len() as u64));
    }
}

#[cfg(test)]
mod tests;
