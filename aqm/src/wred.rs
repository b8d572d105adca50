//! WRED, weighted random early detection as switches do it: each packet is marked or dropped with a
//! probability that rises with the queue, whatever happened to the packets before it.
//!
//! RED spaces its marks evenly by counting packets; switches draw for each packet. From `min` to
//! `max` the probability rises to `probability`, above `max` every packet is marked or dropped. The
//! queue is that of the moment, or its average. Packets of medium and high drop precedence (assured
//! forwarding, AFx2 and AFx3) may have profiles of their own on the same queue.
//!
//! With `min` and `max` the same, it is the step at which switches mark for DCTCP.
//!
//! # Source
//! Li et al. 2019, "HPCC: High Precision Congestion Control" (SIGCOMM), its simulator
//! `switch-mmu.cc` (`ShouldSendCN`) and `switch-node.cc` (`SwitchNotifyDequeue`): the profile,
//! strict comparisons, marks on departure. Zhu et al. 2015, "Congestion Control for Large-Scale
//! RDMA Deployments" (DCQCN): the same profile. Cisco IOS, `random-detect`: the average, and a
//! profile for each drop precedence. RFC 2597 section 6: the codepoints. Linux `sch_gred`: one
//! queue, with thresholds and probability of each profile; names and defaults of iproute2
//! `tc/q_gred.c`.
//!
//! # Departures
//! - `sch_gred` spaces marks by a count as `red` does, and may average each profile's own packets
//!   (without its mode WRED); here the average is that of the whole queue.
//! - Cisco's average decays while there is no queue; here it moves with packets alone.
//! - A packet that no profile marks or drops is still dropped where there is no room.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX, PROBABILITY};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

const GRED: &str = "tc `q_gred.c`";
const HPCC: &str = "Li et al. 2019, `switch-mmu.cc`";

const SIZES: Domain = Domain::Bytes(1, MAX);
const EWMA: Domain = Domain::Whole(0, 31, "");

configuration! {
/// Parameters of a WRED queue.
#[derive(Clone, Debug, PartialEq)]
pub struct WredConfig {
    /// The most bytes that wait; further packets are refused. Default: 400,000, as of `red`.
    pub limit: u64 = 400_000 => (SIZES, GRED);
    /// The queue in bytes above which packets are marked. Default: a third of `max`.
    pub min: Option<u64> = None => (SIZES, GRED, derived "a third of `max`");
    /// The queue in bytes above which every packet is marked. Default: three times `min`, or a
    /// quarter of `limit` if that is not given either.
    pub max: Option<u64> = None => (SIZES, GRED, derived "three times `min`, else a quarter of `limit`");
    /// Probability to mark when the queue has reached `max`. Default: 0.02.
    pub probability: f64 = 0.02 => (PROBABILITY, GRED);
    /// The binary logarithm of the average's weight, negated; 0 is the queue of the moment.
    /// Default: 0.
    pub ewma: u32 = 0 => (EWMA, "Cisco IOS; 0 as Li et al. 2019");
    /// Mark packets that can carry a mark instead of dropping them. Default: off.
    pub ecn: bool = false => (Domain::Flag, GRED);
    /// With `ecn`: decide when a packet leaves, by the queue that it leaves behind; packets that
    /// cannot carry a mark pass. Default: off, when it arrives.
    pub departure: bool = false => (Domain::Flag, HPCC);
    /// The profile of packets of medium drop precedence (AF12, AF22, AF32, AF42). Default: that of
    /// all.
    pub medium: Option<WredProfile> = None => (feature "RFC 2597 s6; Cisco IOS");
    /// The profile of packets of high drop precedence (AF13, AF23, AF33, AF43). Default: that of
    /// all.
    pub high: Option<WredProfile> = None => (feature "RFC 2597 s6; Cisco IOS");
} problem
}

configuration! {
/// The profile of a drop precedence. What is `None` is that of the other packets.
#[derive(Clone, Debug, PartialEq)]
pub struct WredProfile {
    /// [`WredConfig::min`] of these packets.
    pub min: Option<u64> = None => (SIZES, GRED, derived "that of the other packets");
    /// [`WredConfig::max`] of these packets.
    pub max: Option<u64> = None => (SIZES, GRED, derived "that of the other packets");
    /// [`WredConfig::probability`] of these packets.
    pub probability: Option<f64> = None => (PROBABILITY, GRED, derived "that of the other packets");
}
}

impl Discipline for WredConfig {
    fn marks(&self) -> bool {
        self.ecn
    }
}

/// The profiles, by drop precedence.
type Profiles = [DropProfile; 3];

#[derive(Clone, Copy, Debug)]
struct DropProfile {
    min: f64,
    max: f64,
    probability: f64,
}

impl DropProfile {
    /// The probability at this queue (`ShouldSendCN`).
    fn at(&self, queue: f64) -> f64 {
        if queue > self.max {
            1.0
        } else if queue > self.min {
            self.probability * (queue - self.min) / (self.max - self.min)
        } else {
            0.0
        }
    }
}

/// The drop precedence of a codepoint, 0 to 2: assured forwarding has class and precedence in bits
/// 3 to 5 and 1 to 2 (RFC 2597 section 6); everything else is of low precedence.
fn precedence(dscp: u8) -> usize {
    let (class, precedence) = (dscp >> 3, dscp >> 1 & 3);
    if (1..=4).contains(&class) && dscp & 1 == 0 { usize::from(precedence.saturating_sub(1)) } else { 0 }
}

impl WredConfig {
    /// `min` and `max` of packets of low drop precedence, in bytes, as given or derived.
    pub fn thresholds(&self) -> (u64, u64) {
        let max = self.max.unwrap_or(self.min.map_or(self.limit / 4, |min| min.saturating_mul(3)));
        (self.min.unwrap_or(max / 3), max)
    }

    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let profiles = self.profiles();
        if profiles.iter().any(|profile| profile.min > profile.max) {
            Some("min must be at most max")
        } else if profiles.iter().any(|profile| !(0.0..=1.0).contains(&profile.probability)) {
            Some("probability must be within 0 to 1")
        } else if self.ewma > 31 {
            Some("ewma must be at most 31")
        } else if self.departure && !self.ecn {
            Some("departure needs ecn")
        } else {
            None
        }
    }

    fn profiles(&self) -> Profiles {
        let (min, max) = self.thresholds();
        let of = |own: Option<&WredProfile>| {
            let own = own.cloned().unwrap_or_default();
            DropProfile {
                min: own.min.unwrap_or(min) as f64,
                max: own.max.unwrap_or(max) as f64,
                probability: own.probability.unwrap_or(self.probability),
            }
        };
        [of(None), of(self.medium.as_ref()), of(self.high.as_ref())]
    }
}

/// A WRED queue.
#[derive(Debug)]
pub struct Wred<P> {
    config: WredConfig,
    profiles: Profiles,
    weight: f64,
    /// The average queue, in bytes.
    average: f64,
    /// The probability of the last packet.
    probability: f64,
    random: Random,
    store: Store<P>,
}

impl<P: Queued> Wred<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If the parameters have a [`WredConfig::problem`].
    pub fn new(config: WredConfig, random: Random) -> Wred<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        Wred {
            profiles: config.profiles(),
            weight: weight(&config),
            config,
            average: 0.0,
            probability: 0.0,
            random,
            store: Store::new(),
        }
    }

    /// Whether a packet of this codepoint is to be marked or dropped. The queue is as it is now.
    fn objects(&mut self, dscp: u8) -> bool {
        self.average += (self.store.backlog().bytes as f64 - self.average) * self.weight;
        self.probability = self.profiles[precedence(dscp)].at(self.average);
        self.probability > 0.0 && self.random.chance(self.probability)
    }
}

/// 2^-`ewma`.
fn weight(config: &WredConfig) -> f64 {
    1.0 / (1u64 << config.ewma) as f64
}

impl<P: Queued + Send> QueueDisc<P> for Wred<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let fits = self.store.backlog().bytes + u64::from(packet.wire_len()) <= self.config.limit;
        if !self.config.departure && self.objects(packet.dscp()) {
            if !(self.config.ecn && packet.ecn().is_capable()) {
                return self.store.refuse(packet, DropReason::Early, drops);
            }
            if fits {
                self.store.mark(&mut packet);
            }
        }
        if fits {
            self.store.admit(now, packet);
        } else {
            self.store.refuse(packet, DropReason::Limit, drops);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let mut dequeued = self.store.send();
        if self.config.departure
            && let Dequeue::Packet(entry) = &mut dequeued
            && self.objects(entry.packet.dscp())
        {
            self.store.mark(&mut entry.packet);
        }
        dequeued
    }

    /// Other parameters at run time. The average stays; heads beyond the new limit are discarded.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<WredConfig>(config)?.clone();
        valid(config.problem())?;
        self.profiles = config.profiles();
        self.weight = weight(&config);
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

    /// The average, and the probability of the packet decided on last.
    fn probe(&self) -> Probe {
        Probe { probability: Some(self.probability), average: Some(self.average), ..Probe::default() }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Ecn;

    use super::*;
    use crate::stub::{Ask, Stub, stub};

    fn random() -> Random {
        Random::for_component(1, 0, "wred")
    }

    fn capable(id: u32) -> Stub {
        Stub { ecn: Ecn::Ect0, ..stub(id, 1000) }
    }

    /// `ShouldSendCN`: nothing at kmin and below, pmax (q - kmin) / (kmax - kmin) up to kmax, and
    /// certainty above it. At 1250 kB between 500 and 2000 kB with 0.05: 0.025.
    #[test]
    fn the_profile_is_that_of_switches() {
        let profile = DropProfile { min: 500e3, max: 2000e3, probability: 0.05 };
        assert_eq!(
            [0.0, 500e3, 1250e3, 2000e3, 2000.001e3].map(|queue| profile.at(queue)),
            [0.0, 0.0, 0.025, 0.05, 1.0]
        );
        // A step.
        let step = DropProfile { min: 30e3, max: 30e3, probability: 1.0 };
        assert_eq!([30e3, 30.001e3].map(|queue| step.at(queue)), [0.0, 1.0]);
    }

    /// RFC 2597 section 6: AF11, AF12, AF13 are 10, 12, 14; AF41, AF42, AF43 are 34, 36, 38. EF is
    /// 46, CS1 8, LE 1.
    #[test]
    fn assured_forwarding_has_three_precedences() {
        assert_eq!([10, 12, 14, 34, 36, 38].map(precedence), [0, 1, 2, 0, 1, 2]);
        assert_eq!([0, 1, 8, 16, 40, 46, 48, 56, 13, 44].map(precedence), [0; 10]);
    }

    /// Marks are independent: with a probability of 0.02 the gap is geometric. Of 200,000 packets
    /// 4000 are marked (standard deviation sqrt(200,000 * 0.02 * 0.98) = 63), and 4000 * 0.02 = 80
    /// of the marks follow the one before at once, with a deviation of 9; the count of RED, which
    /// spaces marks by 1 to 1/p packets at random, has as many of these but none beyond 50, where
    /// here 0.98^50 = 36.4 % are: 1457, deviation 30.
    #[test]
    fn marks_are_independent_of_each_other() {
        let config = WredConfig { min: Some(1), max: Some(1000), ecn: true, ..WredConfig::default() };
        let mut queue = Wred::new(config, random());
        let mut drops = Drops::new();
        // One packet of 1000 bytes waits: the probability is that at max.
        queue.enqueue(Time::ZERO, capable(0), &mut drops);
        let (mut gap, mut gaps) = (0, Vec::new());
        for id in 0..200_000 {
            queue.enqueue(Time::ZERO, capable(id), &mut drops);
            gap += 1;
            if queue.store.back().is_some_and(|entry| entry.packet.ecn == Ecn::Ce) {
                gaps.push(std::mem::take(&mut gap));
            }
            queue.ask(Time::ZERO, &mut drops);
        }
        assert_eq!(queue.probe().probability, Some(0.02));
        let within = |count: usize, expected: i64, deviation: i64| {
            assert!((count as i64 - expected).abs() <= 5 * deviation, "{count} is not {expected}");
        };
        within(gaps.len(), 4000, 63);
        within(gaps.iter().filter(|&&gap| gap == 1).count(), 80, 9);
        within(gaps.iter().filter(|&&gap| gap > 50).count(), 1457, 30);
    }

    /// A profile's own packets alone are subject to it, on the same queue.
    #[test]
    fn a_precedence_has_its_own_profile() {
        #[derive(Debug)]
        struct Coded(u8);
        impl Queued for Coded {
            fn wire_len(&self) -> u32 {
                1000
            }
            fn ecn(&self) -> Ecn {
                Ecn::NotEct
            }
            fn set_ce(&mut self) {}
            fn flow_hash(&self) -> u64 {
                0
            }
            fn dscp(&self) -> u8 {
                self.0
            }
        }
        let high = WredProfile { min: Some(1000), max: Some(1000), ..WredProfile::default() };
        let medium = WredProfile { max: Some(33_333), ..WredProfile::default() };
        let mut queue = Wred::new(
            WredConfig { high: Some(high), medium: Some(medium), probability: 0.0, ..WredConfig::default() },
            random(),
        );
        let mut drops = Drops::new();
        for dscp in [10, 14, 10, 14, 12, 38] {
            queue.enqueue(Time::ZERO, Coded(dscp), &mut drops);
        }
        // Two are in the queue before the second AF13.
        assert_eq!(drops.iter().map(|drop| drop.packet.0).collect::<Vec<_>>(), [14, 38]);
        // Above min = max = 33,333 bytes every AF12 goes, and no AF11.
        (0..40).for_each(|_| queue.enqueue(Time::ZERO, Coded(10), &mut drops));
        queue.enqueue(Time::ZERO, Coded(12), &mut drops);
        assert_eq!(drops.iter().map(|drop| drop.packet.0).collect::<Vec<_>>(), [14, 38, 12]);
    }

    /// `SwitchNotifyDequeue`: the packet has left the queue that decides about its mark. A step at
    /// 1000 bytes: of three packets the first leaves 2000 behind.
    #[test]
    fn a_departure_is_judged_by_what_it_leaves_behind() {
        let step = WredConfig { min: Some(1000), max: Some(1000), ecn: true, departure: true, ..WredConfig::default() };
        let mut queue = Wred::new(step, random());
        let mut drops = Drops::new();
        (0..4).for_each(|id| queue.enqueue(Time::ZERO, capable(id), &mut drops));
        let left: Vec<Ecn> = std::iter::from_fn(|| queue.ask(Time::ZERO, &mut drops).map(|e| e.packet.ecn)).collect();
        assert_eq!(left, [Ecn::Ce, Ecn::Ce, Ecn::Ect0, Ecn::Ect0]);
        assert_eq!(queue.counters().marked.packets, 2);
    }

    /// Cisco: average = old (1 - 2^-n) + queue 2^-n. n = 2, with 0, 1000, 2000, 3000 in the queue:
    /// 0; 250; 187.5 + 500 = 687.5; 515.625 + 750 = 1265.625.
    #[test]
    fn the_average_follows_the_queue() {
        let mut queue = Wred::new(WredConfig { ewma: 2, ..WredConfig::default() }, random());
        let mut drops = Drops::new();
        for (id, average) in [0.0, 250.0, 687.5, 1265.625].into_iter().enumerate() {
            queue.enqueue(Time::ZERO, stub(id as u32, 1000), &mut drops);
            assert_eq!(queue.probe().average, Some(average));
        }
    }

    /// tc's derivation, as of `red`: a quarter of 400,000 and a third of it, three times `min`.
    #[test]
    fn thresholds_are_derived_as_tc_does() {
        assert_eq!(WredConfig::default().thresholds(), (33_333, 100_000));
        assert_eq!(WredConfig { min: Some(10_000), ..WredConfig::default() }.thresholds(), (10_000, 30_000));
        let high = Some(WredProfile { min: Some(100_001), ..WredProfile::default() });
        for config in [
            WredConfig { min: Some(2), max: Some(1), ..WredConfig::default() },
            WredConfig { high, ..WredConfig::default() },
            WredConfig { departure: true, ..WredConfig::default() },
        ] {
            assert!(config.problem().is_some(), "{config:?}");
        }
    }
}
