//! DRR and ETS: bands by the differentiated services codepoint, each a drop-tail queue, that share
//! the link by deficit round robin; with ETS the first bands are served strictly before.
//!
//! A band in turn sends while its deficit covers the packet at its head; if not, its quantum is
//! added and the turn passes. A band that gets its first packet has its quantum, and is last.
//!
//! # Source
//! Shreedhar, Varghese 1995, "Efficient Fair Queueing Using Deficit Round Robin" (SIGCOMM); Linux
//! `sch_drr`, `sch_ets` (enhanced transmission selection, IEEE 802.1Qaz); tc-drr(8), tc-ets(8).
//!
//! # Departures
//! - Filters and priorities set by a socket do not exist; bands are those of the maps of `prio`,
//!   and hold a `pfifo`, no other discipline. tc's `bands` and `priomap` are replaced by the maps.
//! - `sch_drr` drops what no filter knows; here every codepoint has a band.
//! - tc's list `quanta` is the keys `quantum1` to `quantum4`.
//! - The `pfifo` of a band has the `txqueuelen` of its device; here [`EtsConfig::limit`].

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Time, configuration};

use crate::books::Books;
use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX};
use crate::prio::{BANDS, PrioMap};
use crate::slab::{Slab, SlabQueue};
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, QueueDisc, Queued, Variable};

const MANUAL: &str = "tc-drr(8), tc-ets(8)";
const SIZES: Domain = Domain::Bytes(1, 1 << 20);
const NAMES: [&str; BANDS] = ["quantum1", "quantum2", "quantum3", "quantum4"];

configuration! { self:
/// Parameters of deficit round robin among bands.
#[derive(Clone, Debug, PartialEq)]
pub struct EtsConfig {
    /// The most packets that wait in a band. Default: 1000.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), "tc-prio(8): a pfifo in each band");
    /// The bands. Default: Linux's.
    pub map: PrioMap = PrioMap::Linux => (Domain::named::<PrioMap>("map"), "tc-prio(8), tc-cake(8)");
    /// The number of bands that are served strictly, in their order, before the others share the
    /// link; `None` for DRR, which has none. Default: none; 0 for ETS.
    pub strict: Option<u32> = None => (with |v| if let Some(strict) = &mut self.strict {
        v.parameter("strict", Domain::Whole(0, BANDS as u64, "bands"), "tc-ets(8)", strict);
    });
    /// Bytes that a turn adds to a band's deficit. Default: 1514, an Ethernet frame.
    pub quantum: u32 = 1514 => (SIZES, MANUAL);
    /// The quantum of each band that has one of its own. Default: none has.
    pub quanta: [Option<u32>; BANDS] = [None; BANDS] => (with |v| {
        for (name, quantum) in NAMES.into_iter().zip(&mut self.quanta) {
            v.derived(name, SIZES, MANUAL, "`quantum`", quantum);
        }
    });
} problem
}

impl EtsConfig {
    /// `ets` out of the box.
    pub fn ets() -> EtsConfig {
        EtsConfig { strict: Some(0), ..EtsConfig::default() }
    }

    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        let bands = self.map.bands();
        if self.quantum == 0 || self.quanta.contains(&Some(0)) {
            Some("a quantum must not be zero")
        } else if self.first_shared() > bands {
            Some("strict must be at most the number of bands")
        } else if self.quanta[bands..].iter().any(Option::is_some) {
            Some("a quantum is of a band that the map does not have")
        } else if self.quanta[..self.first_shared()].iter().any(Option::is_some) {
            Some("a strict band has no quantum")
        } else {
            None
        }
    }

    /// The first band that shares the link.
    fn first_shared(&self) -> usize {
        self.strict.unwrap_or(0) as usize
    }

    fn quantum(&self, band: usize) -> i64 {
        self.quanta[band].unwrap_or(self.quantum).into()
    }
}

impl Discipline for EtsConfig {}

/// Deficit round robin among bands, some of which may be strict.
#[derive(Debug)]
pub struct Ets<P> {
    config: EtsConfig,
    slab: Slab<P>,
    bands: [EtsBand; BANDS],
    /// Bands that wait for their turn.
    active: Active,
    books: Books,
}

#[derive(Clone, Copy, Debug)]
struct EtsBand {
    queue: SlabQueue,
    packets: u64,
    deficit: i64,
}

/// Bands in the order of their turns.
#[derive(Clone, Copy, Debug, Default)]
struct Active {
    bands: [usize; BANDS],
    length: usize,
}

impl Active {
    fn first(&self) -> Option<usize> {
        self.bands[..self.length].first().copied()
    }

    fn push(&mut self, band: usize) {
        self.bands[self.length] = band;
        self.length += 1;
    }

    fn remove(&mut self, band: usize) {
        if let Some(place) = self.bands[..self.length].iter().position(|&of| of == band) {
            self.bands.copy_within(place + 1..self.length, place);
            self.length -= 1;
        }
    }
}

impl<P: Queued> Ets<P> {
    /// Empty bands.
    ///
    /// # Panics
    /// If the parameters have a [`EtsConfig::problem`].
    pub fn new(config: EtsConfig) -> Ets<P> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let band = EtsBand { queue: SlabQueue::EMPTY, packets: 0, deficit: 0 };
        Ets { config, slab: Slab::new(), bands: [band; BANDS], active: Active::default(), books: Books::default() }
    }

    fn activate(&mut self, band: usize) {
        self.bands[band].deficit = self.config.quantum(band);
        self.active.push(band);
    }

    /// Takes the head of a band; without packets the band has no turn.
    fn take(&mut self, band: usize) -> Option<Entry<P>> {
        let of = &mut self.bands[band];
        let entry = self.slab.pop(&mut of.queue)?;
        of.packets -= 1;
        if of.packets == 0 {
            self.active.remove(band);
        }
        self.books.take(entry.packet.wire_len());
        Some(entry)
    }

    /// The band that is served next: a strict one with packets, else the one whose deficit covers
    /// its head after the fewest turns. `visit` sees each band whose turn passes.
    fn next(&self, mut visit: impl FnMut(usize)) -> Option<usize> {
        let strict = (0..self.config.first_shared()).find(|&band| self.bands[band].packets > 0);
        if strict.is_some() {
            return strict;
        }
        let (mut active, mut deficits) = (self.active, self.bands.map(|band| band.deficit));
        loop {
            let band = active.first()?;
            let bytes = self.slab.front(&self.bands[band].queue)?.packet.wire_len();
            if i64::from(bytes) <= deficits[band] {
                return Some(band);
            }
            deficits[band] += self.config.quantum(band);
            visit(band);
            active.remove(band);
            active.push(band);
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Ets<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let band = self.config.map.band(packet.dscp());
        if self.bands[band].packets >= self.config.limit {
            return self.books.refuse(packet, DropReason::Limit, drops);
        }
        self.books.admit(packet.wire_len());
        self.bands[band].packets += 1;
        self.slab.push(&mut self.bands[band].queue, Entry { packet, enqueued_at: now });
        if self.bands[band].packets == 1 && band >= self.config.first_shared() {
            self.activate(band);
        }
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let mut passed = [0; BANDS];
        let mut turns = 0;
        let Some(band) = self.next(|band| {
            passed[band] += 1;
            turns += 1;
        }) else {
            return Dequeue::Empty;
        };
        for (band, passed) in passed.into_iter().enumerate() {
            self.bands[band].deficit += passed * self.config.quantum(band);
        }
        let length = self.active.length.max(1);
        self.active.bands[..self.active.length].rotate_left(turns % length);
        let Some(entry) = self.take(band) else { return Dequeue::Empty };
        let bytes = entry.packet.wire_len();
        self.bands[band].deficit -= i64::from(bytes);
        self.books.release(bytes);
        Dequeue::Packet(entry)
    }

    /// Other parameters at run time (`ets_qdisc_change`). What waits stays in its band, also beyond
    /// a new limit; a band that is no longer there is emptied. A band that shares the link and was
    /// strict gets the last turn, with its quantum.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<EtsConfig>(config)?.clone();
        if config.strict.is_some() != self.config.strict.is_some() {
            return Err(ChangeError::OtherDiscipline);
        }
        valid(config.problem())?;
        let shared = self.config.first_shared();
        self.config = config;
        for band in self.config.map.bands()..BANDS {
            while let Some(entry) = self.take(band) {
                self.books.discard(entry.packet, DropReason::Limit, drops);
            }
        }
        for band in 0..BANDS {
            if band < self.config.first_shared() {
                self.active.remove(band);
            } else if band < shared && self.bands[band].packets > 0 {
                self.activate(band);
            }
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.slab.front(&self.bands[self.next(|_| {})?].queue)
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// The packets of each band.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        let names = ["band1_packets", "band2_packets", "band3_packets", "band4_packets"];
        for (name, band) in names.into_iter().zip(&self.bands) {
            see(name, Variable::Count(band.packets));
        }
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Ecn;

    use super::*;

    /// A packet with a codepoint and a size.
    #[derive(Debug)]
    struct Coded(u8, u32);

    impl Queued for Coded {
        fn wire_len(&self) -> u32 {
            self.1
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

    const EF: u8 = 46;
    const CS1: u8 = 8;

    fn offer(queue: &mut Ets<Coded>, packets: &[(u8, u32)]) -> usize {
        let mut drops = Drops::new();
        packets.iter().for_each(|&(dscp, bytes)| queue.enqueue(Time::ZERO, Coded(dscp, bytes), &mut drops));
        drops.len()
    }

    fn serve(queue: &mut Ets<Coded>) -> Option<(u8, u32)> {
        let peeked = queue.peek().map(|entry| (entry.packet.0, entry.packet.1));
        let served = queue.dequeue(Time::ZERO, &mut Drops::new()).packet();
        let served = served.map(|entry| (entry.packet.0, entry.packet.1));
        assert_eq!(peeked, served);
        served
    }

    fn served(queue: &mut Ets<Coded>) -> Vec<u8> {
        std::iter::from_fn(|| serve(queue)).map(|(dscp, _)| dscp).collect()
    }

    fn drr() -> EtsConfig {
        EtsConfig { map: PrioMap::Diffserv3, ..EtsConfig::default() }
    }

    /// Shreedhar, Varghese 1995, figures 2 and 3: quantum 500, queues of 20, 750, 200; 500, 500;
    /// 200, 600, 100; 50, 700, 180. The first turn of the first queue sends 200, and leaves a
    /// deficit of 300: 750 has to wait for the next round, where it is covered by 800.
    #[test]
    fn deficits_carry_over_as_in_the_paper() {
        let mut queue = Ets::new(EtsConfig { quantum: 500, map: PrioMap::Diffserv4, ..EtsConfig::default() });
        // CS4, AF21, best effort, CS1: the bands in their order.
        let flows: [(u8, &[u32]); 4] =
            [(32, &[200, 750, 20]), (18, &[500, 500]), (0, &[100, 600, 200]), (CS1, &[180, 700, 50])];
        for (dscp, sizes) in flows {
            sizes.iter().for_each(|&bytes| assert_eq!(offer(&mut queue, &[(dscp, bytes)]), 0));
        }
        assert_eq!(serve(&mut queue), Some((32, 200)));
        assert_eq!(serve(&mut queue), Some((18, 500)));
        assert_eq!(queue.bands[0].deficit, 300 + 500);
        // 100 leaves 400, less than 600; 180 leaves 320. Then 750 of 800, and 20 of 50.
        let rest: Vec<u32> = std::iter::from_fn(|| serve(&mut queue)).map(|(_, bytes)| bytes).collect();
        assert_eq!(rest, [100, 180, 750, 20, 500, 600, 200, 700, 50]);
    }

    /// Quanta of 3000 and 1000: of 40,000 bytes 30,000 and 10,000, within a quantum and a packet.
    #[test]
    fn bands_share_by_their_quanta() {
        let quanta = [Some(3000), Some(1000), None, None];
        let mut queue = Ets::new(EtsConfig { quanta, ..drr() });
        (0..60).for_each(|_| assert_eq!(offer(&mut queue, &[(EF, 700), (0, 1100)]), 0));
        let mut bytes = [0u32; 2];
        while bytes[0] + bytes[1] < 40_000 {
            let (dscp, length) = serve(&mut queue).unwrap();
            bytes[usize::from(dscp == 0)] += length;
        }
        assert!(bytes[0].abs_diff(30_000) <= 3000 + 700 && bytes[1].abs_diff(10_000) <= 1000 + 1100, "{bytes:?}");
    }

    /// sch_ets.c: strict bands come first, in their order; the others share.
    #[test]
    fn strict_bands_are_served_first() {
        let mut queue = Ets::new(EtsConfig { strict: Some(1), quantum: 1000, ..drr() });
        offer(&mut queue, &[(CS1, 1000), (0, 1000), (CS1, 1000), (0, 1000), (EF, 1000)]);
        assert_eq!(serve(&mut queue), Some((EF, 1000)));
        offer(&mut queue, &[(EF, 1000)]);
        assert_eq!(served(&mut queue), [EF, CS1, 0, CS1, 0]);
    }

    #[test]
    fn each_band_has_the_limit() {
        let mut queue = Ets::new(EtsConfig { limit: 2, ..drr() });
        assert_eq!(offer(&mut queue, &[(0, 100), (0, 100), (0, 100), (EF, 100), (EF, 100), (EF, 100)]), 2);
        assert_eq!(queue.backlog().packets, 4);
    }

    /// sch_ets.c, `ets_qdisc_change`: a band that becomes strict leaves the turns, one that was
    /// gets the last, and one that is gone is emptied.
    #[test]
    fn bands_change_their_kind() {
        let ets = |strict, map| EtsConfig { strict: Some(strict), map, ..EtsConfig::ets() };
        let mut queue = Ets::new(ets(2, PrioMap::Diffserv4));
        let mut drops = Drops::new();
        // AF41 is the second of four bands, best effort the third, CS1 the fourth.
        offer(&mut queue, &[(CS1, 100), (34, 100), (0, 100)]);
        assert_eq!(queue.change(Time::ZERO, &ets(1, PrioMap::Diffserv3), &mut drops), Ok(()));
        assert_eq!(drops.iter().map(|drop| drop.packet.0).collect::<Vec<_>>(), [CS1]);
        assert_eq!(served(&mut queue), [0, 34]);
        let problems = [
            ets(4, PrioMap::Diffserv3),
            EtsConfig { quanta: [None, None, None, Some(1)], ..drr() },
            EtsConfig { quanta: [Some(1), None, None, None], ..ets(1, PrioMap::Linux) },
            EtsConfig { quantum: 0, ..drr() },
        ];
        assert!(problems.iter().all(|config| config.problem().is_some()));
        assert_eq!(queue.change(Time::ZERO, &drr(), &mut drops), Err(ChangeError::OtherDiscipline));
    }
}
