//! Bands by the differentiated services codepoint, each a drop-tail queue, the first of which that
//! holds a packet is served: strict priority.
//!
//! # Source
//! Linux `net/sched/sch_prio.c`: bands, their order, a `pfifo` in each; `include/net/route.h`
//! (`rt_tos2priority`) and `net/ipv4/route.c` (`ip_tos2prio`) for the priority that a forwarded
//! packet has by its TOS byte, tc's default `priomap` (iproute2 `tc/q_prio.c`, tc-prio(8)) for
//! the band of a priority. The classes of [`PrioMap::Diffserv3`] and [`PrioMap::Diffserv4`] are
//! those of CAKE's tins of these names (`net/sched/sch_cake.c` since it has DSCP 1 as LE, RFC
//! 8622).
//!
//! # Departures
//! - The two low bits of the TOS byte are ECN's. Linux's mask lets one of them through, but both
//!   entries of each pair in its table are the same since its index 1 is no filler: here only the
//!   codepoint counts.
//! - Filters and priorities set by a socket do not exist, and bands hold a `pfifo`, no other
//!   discipline. tc's `bands` and `priomap` are replaced by the maps.
//! - The `pfifo` of a band has the `txqueuelen` of its device; here [`PrioConfig::limit`].
//! - CAKE shares the link among its tins by weights with limits; here the classes alone are CAKE's.

use std::any::Any;

use ackclock_units::parameter::Domain;
use ackclock_units::{Time, configuration, named};

use crate::change::parameters;
use crate::discipline::{Discipline, MAX};
use crate::slab::{Slab, SlabQueue};
use crate::{Books, ChangeError, Dequeue, DropReason, Drops, Entry, QueueDisc, Queued};

/// The most bands of a map.
pub(crate) const BANDS: usize = 4;

/// The assignment of packets to bands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PrioMap {
    /// Linux's three bands: by the low three bits of the codepoint, where the TOS byte of RFC 1349
    /// had its bits. Of these, minimized delay (4 and 5) is served first, maximized throughput (2
    /// and 3) last, all else in between: AF42 before EF, which is with best effort, and that before
    /// AF11.
    Linux,
    /// Voice (CS6, CS7, EF, VA and the codepoint 4), then best effort, then what yields (CS1, LE).
    Diffserv3,
    /// Voice (CS4 to CS7, EF, VA), then video (AF2x to AF4x, CS2, CS3 and the codepoint 4), best
    /// effort, and what yields (CS1, LE).
    Diffserv4,
}

named! { PrioMap: Linux = "linux", Diffserv3 = "diffserv3", Diffserv4 = "diffserv4" }

impl PrioMap {
    /// The number of bands.
    pub const fn bands(self) -> usize {
        match self {
            PrioMap::Linux | PrioMap::Diffserv3 => 3,
            PrioMap::Diffserv4 => 4,
        }
    }

    /// The band of a codepoint, the first to be served is 0.
    pub const fn band(self, dscp: u8) -> usize {
        match (self, dscp) {
            (PrioMap::Linux, _) => match dscp & 7 {
                4 | 5 => 0,
                2 | 3 => 2,
                _ => 1,
            },
            (PrioMap::Diffserv3, 4 | 44 | 46 | 48 | 56) => 0,
            (PrioMap::Diffserv3, 1 | 8) => 2,
            (PrioMap::Diffserv3, _) => 1,
            (PrioMap::Diffserv4, 32 | 40 | 44 | 46 | 48 | 56) => 0,
            (PrioMap::Diffserv4, 4 | 16 | 18 | 20 | 22 | 24 | 26 | 28 | 30 | 34 | 36 | 38) => 1,
            (PrioMap::Diffserv4, 1 | 8) => 3,
            (PrioMap::Diffserv4, _) => 2,
        }
    }
}

configuration! {
/// Parameters of strict priority.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrioConfig {
    /// The most packets that wait in a band. Default: 1000.
    pub limit: u64 = 1000 => (Domain::Packets(1, MAX), "tc-prio(8): a pfifo in each band");
    /// The bands. Default: Linux's.
    pub map: PrioMap = PrioMap::Linux => (Domain::named::<PrioMap>("map"), "tc-prio(8), tc-cake(8)");
}
}

impl Discipline for PrioConfig {}

/// Strict priority.
#[derive(Debug)]
pub struct Prio<P> {
    config: PrioConfig,
    slab: Slab<P>,
    bands: [Band; BANDS],
    books: Books,
}

#[derive(Clone, Copy, Debug)]
struct Band {
    queue: SlabQueue,
    packets: u64,
}

impl<P: Queued> Prio<P> {
    /// Empty bands.
    pub fn new(config: PrioConfig) -> Prio<P> {
        let band = Band { queue: SlabQueue::EMPTY, packets: 0 };
        Prio { config, slab: Slab::new(), bands: [band; BANDS], books: Books::default() }
    }

    /// Takes the head of a band.
    fn take(&mut self, band: usize) -> Option<Entry<P>> {
        let band = &mut self.bands[band];
        let entry = self.slab.pop(&mut band.queue)?;
        band.packets -= 1;
        self.books.take(entry.packet.wire_len());
        Some(entry)
    }
}

impl<P: Queued + Send> QueueDisc<P> for Prio<P> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let band = &mut self.bands[self.config.map.band(packet.dscp())];
        if band.packets >= self.config.limit {
            self.books.refuse(packet, DropReason::Limit, drops);
            return;
        }
        band.packets += 1;
        self.books.admit(packet.wire_len());
        self.slab.push(&mut band.queue, Entry { packet, enqueued_at: now });
    }

    fn dequeue(&mut self, _now: Time, _drops: &mut Drops<P>) -> Dequeue<P> {
        let Some(entry) = (0..BANDS).find_map(|band| self.take(band)) else { return Dequeue::Empty };
        self.books.release(entry.packet.wire_len());
        Dequeue::Packet(entry)
    }

    /// Other parameters. What waits stays in its band, also beyond a new limit; a band that is no
    /// longer there is emptied (`prio_tune`).
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = *parameters::<PrioConfig>(config)?;
        self.config = config;
        for band in config.map.bands()..BANDS {
            while let Some(entry) = self.take(band) {
                self.books.discard(entry.packet, DropReason::Limit, drops);
            }
        }
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        self.bands.iter().find_map(|band| self.slab.front(&band.queue))
    }

    fn books(&self) -> &Books {
        &self.books
    }
}

#[cfg(test)]
mod tests {
    use ackclock_units::Ecn;

    use super::*;
    use crate::Backlog;

    /// A packet whose codepoint is its number.
    #[derive(Debug)]
    struct Coded(u8);

    impl Queued for Coded {
        fn wire_len(&self) -> u32 {
            100
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

    fn offer(queue: &mut Prio<Coded>, codepoints: &[u8]) -> Vec<u8> {
        let mut drops = Drops::new();
        codepoints.iter().for_each(|&dscp| queue.enqueue(Time::ZERO, Coded(dscp), &mut drops));
        assert!(drops.iter().all(|drop| drop.reason == DropReason::Limit));
        drops.into_iter().map(|drop| drop.packet.0).collect()
    }

    fn served(queue: &mut Prio<Coded>) -> Vec<u8> {
        let mut drops = Drops::new();
        std::iter::from_fn(|| match queue.dequeue(Time::ZERO, &mut drops) {
            Dequeue::Packet(entry) => Some(entry.packet.0),
            _ => None,
        })
        .collect()
    }

    /// tc-prio(8): TOS 0x10 (minimize delay) is priority 6 and band 0, 0x8 (maximize throughput) is
    /// 2 and band 2, 0x18 (both) is 4 and band 1; TOS 0 and all that RFC 1349 does not know is 0
    /// and band 1. The TOS byte of a codepoint is four times it.
    #[test]
    fn linux_bands_are_those_of_the_tos_byte() {
        let band = |tos: u8| PrioMap::Linux.band(tos >> 2);
        assert_eq!([0x00, 0x10, 0x08, 0x18, 0x14, 0x0c, 0x04].map(band), [1, 0, 2, 1, 0, 2, 1]);
        // EF's byte is 0xb8: its bits are those of 0x18.
        assert_eq!(PrioMap::Linux.band(EF), 1);
    }

    /// The tins of CAKE for all codepoints that have a name.
    #[test]
    fn classes_are_those_of_cake() {
        let bands = |map: PrioMap| {
            let named = [0, 1, 4, 8, 10, 16, 18, 22, 24, 26, 32, 34, 38, 40, 44, 46, 48, 56];
            named.map(|dscp| map.band(dscp))
        };
        assert_eq!(bands(PrioMap::Diffserv3), [1, 2, 0, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 0, 0, 0, 0]);
        assert_eq!(bands(PrioMap::Diffserv4), [2, 3, 1, 3, 2, 1, 1, 1, 1, 1, 0, 1, 1, 0, 0, 0, 0, 0]);
    }

    #[test]
    fn the_first_band_is_served_first_and_each_in_order() {
        let mut queue = Prio::new(PrioConfig { map: PrioMap::Diffserv3, ..PrioConfig::default() });
        assert_eq!(offer(&mut queue, &[CS1, 0, EF, 10, 44, 1]), []);
        assert_eq!(queue.peek().map(|entry| entry.packet.0), Some(EF));
        assert_eq!(served(&mut queue), [EF, 44, 0, 10, CS1, 1]);
        assert_eq!((queue.peek().is_none(), queue.backlog()), (true, Backlog::default()));
    }

    #[test]
    fn each_band_has_the_limit() {
        let mut queue = Prio::new(PrioConfig { limit: 2, map: PrioMap::Diffserv3 });
        assert_eq!(offer(&mut queue, &[0, 0, 0, EF, EF, EF, CS1]), [0, EF]);
        assert_eq!(queue.backlog().packets, 5);
    }

    /// 4 bands become 3: the last one is emptied, and a lower limit keeps what waits.
    #[test]
    fn what_waits_stays_in_its_band() {
        let mut queue = Prio::new(PrioConfig { map: PrioMap::Diffserv4, ..PrioConfig::default() });
        offer(&mut queue, &[CS1, 0, 0, 24, EF]);
        let mut drops = Drops::new();
        let config = PrioConfig { limit: 1, map: PrioMap::Diffserv3 };
        queue.change(Time::ZERO, &config, &mut drops).expect("it is of this discipline");
        assert_eq!(drops.iter().map(|drop| drop.packet.0).collect::<Vec<_>>(), [CS1]);
        // Best effort is now the second band, where CS3 waits, and yields to nothing but it.
        assert_eq!(offer(&mut queue, &[0]), [0]);
        assert_eq!(served(&mut queue), [EF, 24, 0, 0]);
        assert!(queue.counters().balance(queue.backlog()));
    }
}
