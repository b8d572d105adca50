//! CHOKe: RED that compares each arrival with a packet drawn from the queue, and discards both if
//! they are of the same flow.
//!
//! The queue is measured and averaged in packets as RED does. While the average is above `min`,
//! each arrival draws a waiting packet at random; a flow that fills the queue is drawn most, so
//! that it loses two packets at a time without any state for it. An arrival that matches nothing is
//! subject to RED's probability, and above `max` always marked or dropped.
//!
//! # Source
//! Pan, Prabhakar, Psounis 2000, "CHOKe, A Stateless Active Queue Management Scheme for
//! Approximating Fair Bandwidth Allocation"; Linux `sch_choke`, `include/net/red.h`; parameters and
//! what is derived from them as `tc-choke(8)` and iproute2 `tc/q_choke.c`.
//!
//! # Departures
//! - Two packets are of one flow if their flow hashes are the same; Linux compares addresses, ports
//!   and protocol.
//! - Discarded packets leave holes in Linux's ring of packets, which a draw may hit; so here.
//!   Linux's ring is of the power of two above `limit`, and holes can fill it; this one grows.
//! - `tc` filters, which choose flows, are left out.
//! - A packet selected for marking that does not fit within `limit` is dropped and counted as
//!   dropped; Linux counts a mark as well.
//! - Those of Linux's law in `red`.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Time, configuration};

use crate::books::Books;
use crate::change::parameters;
use crate::discipline::{Discipline, PROBABILITY};
use crate::red::config::{NO_WEIGHT, TOO_SLOW, ewma};
use crate::red::linux::{Damping, Linux, Spacing, Thresholds};
use crate::ring::Ring;
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Variable};

/// The largest `limit` (`CHOKE_MAX_QUEUE`).
const MAX_QUEUE: u64 = (128 << 10) - 1;
/// The draws that may hit a hole before the head is taken.
const DRAWS: u32 = 3;

const MANUAL: &str = "tc-choke(8)";

const PACKETS: Domain = Domain::Packets(1, MAX_QUEUE);
const BURST: Domain = Domain::Whole(1, MAX_QUEUE, "packets");

configuration! {
/// Parameters of a CHOKe queue. `None` is derived as `tc` does.
#[derive(Clone, Debug, PartialEq)]
pub struct ChokeConfig {
    /// The most packets that wait; further ones are refused. Default: 1000, as in Linux's selftests
    /// (tc requires it).
    pub limit: u64 = 1000 => (PACKETS, MANUAL);
    /// The average queue in packets above which arrivals are compared. Default: a third of `max`.
    pub min: Option<u64> = None => (PACKETS, MANUAL, derived "a third of `max`");
    /// The average queue in packets above which every packet is marked. Default: a quarter of
    /// `limit`.
    pub max: Option<u64> = None => (PACKETS, MANUAL, derived "a quarter of `limit`");
    /// Bytes of an average packet. Default: 1000.
    pub avpkt: u32 = 1000 => (Domain::Bytes(1, 1 << 20), MANUAL);
    /// Packets that an empty queue takes at once before the average reaches `min`: the weight of
    /// the average follows from it. Default: (2 `min` + `max`) / 3.
    pub burst: Option<u32> = None => (BURST, MANUAL, derived "(2 `min` + `max`) / 3");
    /// Probability to mark when the average has reached `max`. Default: 0.02.
    pub probability: f64 = 0.02 => (PROBABILITY, MANUAL);
    /// Rate of the link: how many packets would have passed while there was no queue. Default: 10
    /// Mbit/s (tc requires it).
    pub bandwidth: Rate = const { Rate::from_bps(10_000_000).unwrap() } => (Domain::Rate, MANUAL);
    /// Mark packets that can carry a mark instead of dropping them, except those that match.
    /// Default: off.
    pub ecn: bool = false => (Domain::Flag, MANUAL);
    /// With `ecn`: drop every packet above `max`, those that could carry a mark as well. Default:
    /// off.
    pub harddrop: bool = false => (Domain::Flag, "Linux `sch_choke.c`");
} problem
}

impl Discipline for ChokeConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

impl ChokeConfig {
    /// `min` and `max` in packets, as given or derived.
    pub fn thresholds(&self) -> (u64, u64) {
        let max = self.max.unwrap_or(self.limit / 4);
        (self.min.unwrap_or(max / 3), max)
    }

    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        self.law().err()
    }

    /// The law, or the problem with these parameters.
    fn law(&self) -> Result<Linux, &'static str> {
        let (min, max) = self.thresholds();
        if self.limit > MAX_QUEUE {
            return Err("limit must be at most 131071 packets");
        } else if self.avpkt == 0 {
            return Err("avpkt must not be zero");
        } else if max > self.limit {
            return Err("max must be at most limit");
        } else if min >= max {
            return Err("min must be below max");
        } else if !(0.0..=1.0).contains(&self.probability) {
            return Err("probability must be within 0 to 1");
        } else if self.harddrop && !self.ecn {
            return Err("harddrop needs ecn");
        }
        let burst = self.burst.map_or((2 * min + max) / 3, u64::from);
        let wlog = ewma(min as f64, burst as f64).ok_or(NO_WEIGHT)?;
        let damping = Damping::new(wlog, self.avpkt, self.bandwidth).ok_or(TOO_SLOW)?;
        Ok(Linux::new(Thresholds::new([min, max], self.probability, wlog), damping))
    }

    /// The places of Linux's ring.
    fn places(&self) -> u64 {
        (self.limit + 1).next_power_of_two()
    }
}

/// A CHOKe queue.
#[derive(Debug)]
pub struct Choke<P> {
    config: ChokeConfig,
    law: Linux,
    /// Waiting packets in their order, with holes (`None`), of which none is first.
    waiting: Ring<Option<Entry<P>>>,
    random: Random,
    books: Books,
}

impl<P: Queued> Choke<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`ChokeConfig::problem`].
    pub fn new(config: ChokeConfig, random: Random) -> Choke<P> {
        let law = config.law().unwrap_or_else(|problem| panic!("{problem}"));
        Choke { config, law, waiting: Ring::new(), random, books: Books::default() }
    }

    /// The place of a packet drawn at random; holes are drawn again, in the end for the head.
    fn draw(&mut self) -> usize {
        for _ in 0..DRAWS {
            let place = self.random.below(self.waiting.len() as u64) as usize;
            if matches!(self.waiting.get_mut(place), Some(Some(_))) {
                return place;
            }
        }
        0
    }

    /// Discards a waiting packet of the arrival's flow, if the draw hits one
    /// (`choke_match_random`).
    fn matches(&mut self, arrival: &P, drops: &mut Drops<P>) -> bool {
        if self.books.backlog().packets == 0 {
            return false;
        }
        let place = self.draw();
        let is_match = |held: &mut Entry<P>| held.packet.flow_hash() == arrival.flow_hash();
        let Some(drawn) = self.waiting.get_mut(place).and_then(|held| held.take_if(is_match)) else { return false };
        self.books.take(drawn.packet.wire_len());
        self.books.discard(drawn.packet, DropReason::Match, drops);
        self.skip_holes();
        true
    }

    /// A packet is first again.
    fn skip_holes(&mut self) {
        while matches!(self.waiting.front(), Some(None)) {
            self.waiting.pop();
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Choke<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let length = self.books.backlog().packets;
        self.law.observe(now, length);
        let Thresholds { min, max, .. } = self.law.thresholds;
        let average = self.law.scaled_average;
        // Unlike RED, an average at a threshold is still below it.
        if average <= min {
            self.law.spacing = Spacing::NONE;
        } else {
            if self.matches(&packet, drops) {
                return self.books.refuse(packet, DropReason::Match, drops);
            }
            let forced = average > max;
            let objects = if forced {
                self.law.spacing = Spacing::NONE;
                true
            } else {
                self.law.thresholds.is_next(&mut self.law.spacing, average, &mut self.random)
            };
            if objects {
                if !self.config.ecn || (forced && self.config.harddrop) || !packet.ecn().is_capable() {
                    return self.books.refuse(packet, DropReason::Early, drops);
                }
                if length < self.config.limit {
                    self.books.mark(&mut packet);
                }
            }
        }
        if length < self.config.limit {
            self.books.admit(packet.wire_len());
            self.waiting.push(Some(Entry { packet, enqueued_at: now }));
        } else {
            self.books.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let Some(Some(entry)) = self.waiting.pop() else { return Dequeue::Empty };
        self.skip_holes();
        let bytes = entry.packet.wire_len();
        self.books.take(bytes);
        self.books.release(bytes);
        Dequeue::Packet(entry)
    }

    fn idle(&mut self, now: Time) {
        self.law.idle_since.get_or_insert(now);
    }

    /// Other parameters at run time (`choke_change`): the average starts again at zero. Packets
    /// stay, also beyond a new limit, unless Linux's ring has another size; those that this has no
    /// place for are discarded, the last to have come.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<ChokeConfig>(config)?.clone();
        let law = config.law().map_err(ChangeError::Invalid)?;
        let places = config.places();
        if places != self.config.places() {
            // One place of the ring stays empty.
            let mut left = places - 1;
            for _ in 0..self.waiting.len() {
                let Some(Some(entry)) = self.waiting.pop() else { continue };
                if left > 0 {
                    left -= 1;
                    self.waiting.push(Some(entry));
                } else {
                    self.books.take(entry.packet.wire_len());
                    self.books.discard(entry.packet, DropReason::Limit, drops);
                }
            }
        }
        self.law = law;
        self.config = config;
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.waiting.front()?.as_ref()
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// The probability that goes with the average at the last arrival, before marks are spaced out.
    fn probe(&self) -> Probe {
        Probe { probability: Some(self.law.probability()), ..Probe::default() }
    }

    /// The average in packets, in whole ones.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        QueueDisc::<P>::probe(self).variables(see);
        see("average_packets", Variable::Count(self.law.average() as u64));
        see("matched", Variable::Count(self.books.counters().dropped[DropReason::Match as usize] / 2));
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Ecn;

    use super::*;
    use crate::stub::{Ask, Stub, stub};

    fn of_flow(flow: u64, id: u32) -> Stub {
        Stub { flow, ..stub(id, 1000) }
    }

    /// A queue whose average is `average` packets at the next arrival that finds this many, with a
    /// weight of 1/2.
    fn queue(config: ChokeConfig, average: u64) -> Choke<Stub> {
        let mut queue = Choke::new(config, Random::for_component(1, 0, "choke"));
        queue.law.scaled_average = average << queue.law.thresholds.wlog;
        queue
    }

    fn quick() -> ChokeConfig {
        ChokeConfig { min: Some(5), max: Some(20), burst: Some(5), ..ChokeConfig::default() }
    }

    /// Fills a queue with `flows` in this order, whatever the law says of them.
    fn fill(queue: &mut Choke<Stub>, flows: impl IntoIterator<Item = u64>) {
        for (id, flow) in flows.into_iter().enumerate() {
            queue.books.admit(1000);
            queue.waiting.push(Some(Entry { packet: of_flow(flow, id as u32), enqueued_at: Time::ZERO }));
        }
    }

    /// Linux selftests `tc-testing/tc-tests/qdiscs/choke.json`: 8937, 48c0; and iproute2
    /// `tc/q_choke.c`: burst (2 * 83 + 250) / 3 = 138; 138 + 1 - 83 = 56 is below (1 - (1 -
    /// 2^-6)^138) 2^6 = 56.7, above (1 - (1 - 2^-5)^138) 2^5 = 31.6.
    #[test]
    fn thresholds_are_derived_as_tc_does() {
        assert_eq!(ChokeConfig::default().thresholds(), (83, 250));
        assert_eq!(ChokeConfig { min: Some(100), ..ChokeConfig::default() }.thresholds(), (100, 250));
        assert_eq!(queue(ChokeConfig::default(), 0).law.thresholds.wlog, 6);
        // 5 + 1 - 5 = 1 is below (1 - 2^-5) 2.
        assert_eq!(queue(quick(), 0).law.thresholds.wlog, 1);
        let problems = [
            ChokeConfig { max: Some(1001), ..ChokeConfig::default() },
            ChokeConfig { min: Some(250), ..ChokeConfig::default() },
            ChokeConfig { harddrop: true, ..ChokeConfig::default() },
            ChokeConfig { burst: Some(1), ..ChokeConfig::default() },
        ];
        assert!(problems.iter().all(|config| config.problem().is_some()));
    }

    /// sch_choke.c, `choke_enqueue`: an average at `min` compares nothing; above it, a packet of
    /// the same flow is discarded with the arrival, and one of another flow is let in.
    #[test]
    fn above_min_packets_of_one_flow_go_together() {
        // The average halves and the queue is added in units of a half: (10 - 5 + 5) / 2 = 5.
        for (average, arrival, left) in [(5, 7, 6), (7, 7, 4), (7, 8, 6)] {
            let mut queue = queue(quick(), average);
            fill(&mut queue, [7; 5]);
            let mut drops = Drops::new();
            queue.enqueue(Time::ZERO, of_flow(arrival, 9), &mut drops);
            assert_eq!(queue.backlog().packets, left, "{average} {arrival}");
            assert!(drops.iter().all(|drop| drop.reason == DropReason::Match));
            assert_eq!(drops.len() as u64, if left == 4 { 2 } else { 0 });
            assert!(queue.counters().balance(queue.backlog()));
        }
    }

    /// The draw is uniform: of 9 packets of which 3 are of the arrival's flow it hits one with
    /// probability 1/3. 3000 trials: 1000, with a standard deviation of sqrt(3000 * 1/3 * 2/3) =
    /// 26.
    #[test]
    fn a_flow_is_drawn_by_its_share_of_the_queue() {
        let mut matched = 0;
        for seed in 0..3000 {
            let mut queue = queue(ChokeConfig { probability: 0.0, ..quick() }, 10);
            queue.random = Random::for_component(seed, 0, "choke");
            fill(&mut queue, [1, 2, 3, 1, 2, 3, 1, 2, 3]);
            let mut drops = Drops::new();
            queue.enqueue(Time::ZERO, of_flow(1, 9), &mut drops);
            matched += drops.len() / 2;
        }
        assert!((1000 - 5 * 26..=1000 + 5 * 26).contains(&matched), "{matched}");
    }

    /// What the draw takes out leaves a hole, and the rest leaves in order.
    #[test]
    fn the_rest_leaves_in_order() {
        let mut queue = queue(quick(), 10);
        fill(&mut queue, [1, 2, 1, 2, 1, 2]);
        let mut drops = Drops::new();
        while drops.len() < 2 {
            queue.matches(&of_flow(1, 9), &mut drops);
        }
        let left: Vec<u32> = std::iter::from_fn(|| queue.ask(Time::ZERO, &mut drops).map(|e| e.packet.id)).collect();
        assert_eq!(left.len(), 4, "{left:?}");
        assert!(left.is_sorted() && [1, 3, 5].iter().all(|id| left.contains(id)), "{left:?}");
        assert_eq!((queue.peek(), queue.waiting.len()), (None, 0));
    }

    /// sch_choke.c: an average at `max` is still below it; above it every packet that matches none
    /// is dropped, or marked if it can be and not `harddrop`.
    #[test]
    fn above_max_every_packet_is_marked_or_dropped() {
        // (2 * 20 - 20 + 20) / 2 = 20, and 21 with 22.
        for (ecn, harddrop, average, capable, marked, dropped) in [
            (false, false, 20, false, 0, 0),
            (false, false, 22, false, 0, 1),
            (true, false, 22, false, 0, 1),
            (true, false, 22, true, 1, 0),
            (true, true, 22, true, 0, 1),
        ] {
            let mut queue = queue(ChokeConfig { ecn, harddrop, probability: 0.0, ..quick() }, average);
            fill(&mut queue, 100..120);
            let mut drops = Drops::new();
            let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
            queue.enqueue(Time::ZERO, Stub { ecn, ..of_flow(1, 99) }, &mut drops);
            assert_eq!((queue.counters().marked.packets, drops.len()), (marked, dropped), "{average}");
            assert!(drops.iter().all(|drop| drop.reason == DropReason::Early));
        }
    }

    /// sch_choke.c, `choke_change`: rings of 1024 (limit 1000 or 600) and of 8 places (limit 7),
    /// one of which stays empty; the average is zero again.
    #[test]
    fn packets_go_that_another_ring_has_no_place_for() {
        let mut queue = queue(ChokeConfig::default(), 90);
        fill(&mut queue, 0..40);
        let mut drops = Drops::new();
        let same = ChokeConfig { limit: 600, ..ChokeConfig::default() };
        assert_eq!(queue.change(Time::ZERO, &same, &mut drops), Ok(()));
        assert_eq!((queue.backlog().packets, queue.law.scaled_average), (40, 0));
        let small = ChokeConfig { limit: 7, ..quick() };
        assert_eq!(queue.change(Time::ZERO, &small, &mut drops).unwrap_err().to_string(), "max must be at most limit");
        let small = ChokeConfig { max: Some(7), ..small };
        assert_eq!(queue.change(Time::ZERO, &small, &mut drops), Ok(()));
        assert!(drops.iter().map(|drop| drop.packet.id).eq(7..40));
        assert_eq!(queue.peek().map(|entry| entry.packet.id), Some(0));
        assert!(queue.counters().balance(queue.backlog()));
    }
}
