//! The idle signal of a queue: a transmitter asks until the queue is empty (`qdisc_restart`), a
//! token bucket only while something waits (`htb_dequeue`, `htb_dequeue_tree`), so that a law
//! behind a bucket never gets it.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_aqm::{
    Blue, BlueConfig, Books, Cobalt, CobaltConfig, DualPi2, DualPi2Config, Entry, Probe, Red, RedConfig,
};

use super::*;

/// A drop-tail queue that counts its idle signals, and is not asked for a packet that it does not
/// have.
#[derive(Debug)]
pub(super) struct Told {
    pub(super) queue: Fifo<Framed>,
    pub(super) idle: Arc<AtomicU64>,
}

impl QueueDisc<Framed> for Told {
    fn enqueue(&mut self, now: Time, packet: Framed, drops: &mut Drops<Framed>) {
        self.queue.enqueue(now, packet, drops);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<Framed>) -> Dequeue<Framed> {
        let dequeued = self.queue.dequeue(now, drops);
        assert!(matches!(dequeued, Dequeue::Packet(_)), "asked while nothing waits");
        dequeued
    }

    fn idle(&mut self, _now: Time) {
        assert_eq!(self.queue.backlog().packets, 0);
        self.idle.fetch_add(1, Ordering::Relaxed);
    }

    fn peek(&self) -> Option<&Entry<Framed>> {
        self.queue.peek()
    }

    fn books(&self) -> &Books {
        QueueDisc::<Framed>::books(&self.queue)
    }

    fn probe(&self) -> Probe {
        QueueDisc::<Framed>::probe(&self.queue)
    }
}

/// A link of 10 Mbit/s without delay: a transmitter, or a bucket that one packet empties.
fn behind(bucket: bool, queue: impl QueueDisc<Framed> + 'static) -> Link {
    let config = LinkConfig { burst: bucket.then_some(1), delay: Span::ZERO, ..config() };
    Link::new(config, Box::new(queue), random("link"))
}

fn offer(link: &mut Link, at: Time, slots: std::ops::Range<u32>, ecn: Ecn) {
    let mut events = Vec::new();
    for slot in slots {
        link.offer(at, Packet { flow_hash: 0, ecn, ..packet(slot, 1250) }, &mut events);
    }
}

/// The packets that arrived until `at`.
fn arrived(link: &mut Link, at: Time) -> Vec<Packet> {
    let mut events = Vec::new();
    std::iter::from_fn(|| link.deliver(at, &mut events).map(|(_, packet)| packet)).collect()
}

fn secs(secs: u64) -> Time {
    Time::from_secs(secs)
}

/// Three bursts of five packets with long pauses; a packet refused while another is sent is no idle
/// signal either.
#[test]
fn a_bucket_does_not_say_that_it_is_idle() {
    for (bucket, expected) in [(false, 3), (true, 0)] {
        let idle = Arc::new(AtomicU64::new(0));
        let queue = Fifo::new(FifoConfig { limit: Limit::Packets(3) });
        let mut link = behind(bucket, Told { queue, idle: Arc::clone(&idle) });
        for burst in 1..=3 {
            offer(&mut link, secs(burst), 0..5, Ecn::NotEct);
            assert_eq!(arrived(&mut link, secs(burst) + Span::from_millis(500)).len(), 4);
        }
        assert_eq!(idle.load(Ordering::Relaxed), expected, "bucket: {bucket}");
    }
}

/// An unlimited link is idle after every packet, and one that refuses a packet while it is idle
/// says so once more.
#[test]
fn an_unlimited_link_is_idle_after_every_packet() {
    for (limit, expected) in [(1, 4), (0, 4)] {
        let idle = Arc::new(AtomicU64::new(0));
        let queue = Fifo::new(FifoConfig { limit: Limit::Packets(limit) });
        let told = Told { queue, idle: Arc::clone(&idle) };
        let mut link = Link::new(LinkConfig { rate: None, ..config() }, Box::new(told), random("link"));
        offer(&mut link, secs(1), 0..4, Ecn::NotEct);
        assert_eq!(arrived(&mut link, secs(2)).len() as u64, 4 * limit);
        assert_eq!(idle.load(Ordering::Relaxed), expected, "limit: {limit}");
    }
}

/// 100 packets at once leave an average; after a minute without any, a transmitter's is gone, and a
/// bucket's has moved by one weight of the nothing that the next packet finds.
#[test]
fn red_does_not_forget_behind_a_bucket() {
    for bucket in [false, true] {
        let mut link = behind(bucket, Red::new(RedConfig { probability: 0.0, ..RedConfig::default() }, random("red")));
        offer(&mut link, secs(1), 0..100, Ecn::NotEct);
        assert_eq!(arrived(&mut link, secs(2)).len(), 100);
        let before = link.queue().probe().average.unwrap();
        assert!(before > 30_000.0);
        offer(&mut link, secs(62), 0..1, Ecn::NotEct);
        let after = link.queue().probe().average.unwrap();
        let expected = if bucket { before * 31.0 / 32.0 } else { 0.0 };
        assert!((after - expected).abs() < 1.0, "{after} for {expected}");
    }
}

/// BLUE's probability rises by a packet lost at the limit, and falls when the link falls idle,
/// unless that is a bucket.
#[test]
fn blue_does_not_fall_behind_a_bucket() {
    for (bucket, expected) in [(false, 0.0025 - 0.00125), (true, 0.0025)] {
        let config = BlueConfig {
            limit: Limit::Packets(2),
            threshold: ackclock_aqm::BlueThreshold::Off,
            ..BlueConfig::default()
        };
        let mut link = behind(bucket, Blue::new(config, random("blue")));
        offer(&mut link, secs(1), 0..5, Ecn::NotEct);
        assert_eq!(link.queue().probe().probability, Some(0.0025));
        // Less than a `freeze` had passed when the link became idle; for the next one it is over.
        arrived(&mut link, secs(2));
        offer(&mut link, secs(3), 5..6, Ecn::NotEct);
        arrived(&mut link, secs(4));
        assert_eq!(link.queue().probe().probability, Some(expected), "bucket: {bucket}");
    }
}

/// The same for COBALT's BLUE.
#[test]
fn cobalt_does_not_fall_behind_a_bucket() {
    let unit = |step: u32| f64::from(step) / 4_294_967_296.0;
    let CobaltConfig { p_inc, p_dec, .. } = CobaltConfig::default();
    for (bucket, expected) in [(false, unit(p_inc - p_dec)), (true, unit(p_inc))] {
        let mut link =
            behind(bucket, Cobalt::new(CobaltConfig { limit: 2, ..CobaltConfig::default() }, random("cobalt")));
        offer(&mut link, secs(1), 0..4, Ecn::NotEct);
        assert_eq!(link.queue().probe().probability, Some(unit(p_inc)));
        // 3 ms on the way, which is less than `target`; the next one finds that it is over.
        arrived(&mut link, secs(2));
        offer(&mut link, secs(3), 4..5, Ecn::NotEct);
        arrived(&mut link, secs(4));
        assert_eq!(link.queue().probe().probability, Some(expected), "bucket: {bucket}");
    }
}

/// DualPI2 starts each busy period with credit for 80 packets' percents of L4S: ten of them pass
/// before a classic one (of 1514 bytes, -121,120 by 12,500 each). Behind a bucket what is left of
/// the last busy period stays.
#[test]
fn dualpi2_keeps_its_credit_behind_a_bucket() {
    let frozen = || DualPi2Config { tupdate: Span::from_secs(1000), ..DualPi2Config::default() };
    let order = |bucket: bool| {
        let mut link = behind(bucket, DualPi2::new(frozen(), random("dualpi2")));
        let first_classic = Cell::new(0);
        let mut period = |at: Time, l4s: u32| {
            // The packet in front is on its way when the others come.
            offer(&mut link, at, 0..1, Ecn::Ect1);
            offer(&mut link, at, 1000..1001, Ecn::NotEct);
            offer(&mut link, at, 1..l4s + 1, Ecn::Ect1);
            let slots: Vec<u32> =
                arrived(&mut link, at + Span::from_millis(500)).iter().map(|packet| packet.slot).collect();
            first_classic.set(slots.iter().position(|&slot| slot == 1000).unwrap());
            slots.len()
        };
        assert_eq!(period(secs(1), 6), 8);
        assert_eq!(first_classic.get(), 7, "six of the ten have used their credit");
        period(secs(2), 20);
        first_classic.get()
    };
    assert_eq!((order(false), order(true)), (11, 5));
}

/// A flow of which nothing waits leaves fq_codel's lists when its turn finds it so. Behind a bucket
/// nothing takes a turn then: the flow starts its next busy period with what was left of its
/// quantum, 114 bytes of 1514, and not as a new one.
#[test]
fn a_flow_stays_listed_behind_a_bucket() {
    for (bucket, expected) in [(false, [0, 1, 2, 3]), (true, [0, 1, 3, 2])] {
        let config = FqCodelConfig { hash_seed: Some(1), ..FqCodelConfig::default() };
        let mut link = behind(bucket, FqCodel::new(config, random("queue")));
        let mut events = Vec::new();
        let mut offer = |link: &mut Link, at, slot, flow_hash| {
            link.offer(at, Packet { flow_hash, ..packet(slot, 1400) }, &mut events);
        };
        offer(&mut link, secs(1), 0, 7);
        let mut slots: Vec<u32> = arrived(&mut link, secs(2)).iter().map(|packet| packet.slot).collect();
        offer(&mut link, secs(3), 1, 7);
        offer(&mut link, secs(3), 2, 7);
        offer(&mut link, secs(3), 3, 8);
        slots.extend(arrived(&mut link, secs(4)).iter().map(|packet| packet.slot));
        assert_eq!(slots, expected, "bucket: {bucket}");
    }
}
