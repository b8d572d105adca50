//! A transmit ring below the queue: what is in it neither waits nor can be dropped, and an idle
//! link is announced as `qdisc_restart` finds it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::idle::Told;
use super::*;
use crate::Impairments;

fn at_most(n: u32) -> DeviceConfig {
    DeviceConfig { limit: DeviceLimit::Packets(NonZeroU32::new(n).unwrap()), completion: Span::ZERO }
}

fn with_ring(n: u32, queue: Box<dyn QueueDisc<Framed>>, config: LinkConfig) -> Link {
    Link::new(config, queue, random("link")).with_device(at_most(n))
}

#[test]
fn what_the_driver_has_taken_does_not_wait() {
    // Three descriptors and a queue of one packet: of five at once the fifth finds no room.
    let (arrivals, events) = burst(&mut with_ring(3, pfifo(1), config()), 5);
    // On the wire nothing changes: 1 ms each, and 1 ms of delay.
    assert_eq!(arrivals, [(2000, 1), (3000, 2), (4000, 3), (5000, 4)]);
    let ms = Span::from_millis;
    let sent: Vec<_> = (events.iter())
        .filter_map(|event| match event.kind {
            LinkEventKind::Sent { sojourn, busy } => Some((event.at, event.backlog, sojourn, busy)),
            _ => None,
        })
        .collect();
    let taken = |at, sojourn| (us(at), 0, ms(sojourn), ms(1));
    assert_eq!(sent, [taken(0, 0), taken(0, 0), taken(0, 0), taken(1000, 1)]);
    let dropped = |event: &&LinkEvent| matches!(event.kind, LinkEventKind::Dropped { .. });
    assert_eq!(events.iter().filter(dropped).count(), 1);
}

#[test]
fn the_queue_is_told_when_the_driver_finds_it_empty() {
    let idle = Arc::new(AtomicU64::new(0));
    let queue = Told { queue: Fifo::new(FifoConfig { limit: Limit::Packets(100) }), idle: Arc::clone(&idle) };
    let mut link = with_ring(3, Box::new(queue), config());
    let mut events = Vec::new();
    let mut told_after = |link: &mut Link, at, slot| {
        link.offer(us(at), packet(slot, 1250), &mut events);
        idle.load(Ordering::Relaxed)
    };
    // The first two leave room; the third fills the ring, which stops the queue; the fourth waits.
    assert_eq!([1, 2, 3, 4].map(|slot| told_after(&mut link, 0, slot)), [1, 2, 2, 2]);
    let mut events = Vec::new();
    // At 1 ms the fourth takes the place of the first, at 2 ms nothing that of the second; then
    // the driver has not stopped the queue, and asks no more.
    for (at, told) in [(1000, 2), (2000, 3), (3000, 3), (4000, 3), (9000, 3)] {
        link.catch_up(us(at), &mut events);
        assert_eq!(idle.load(Ordering::Relaxed), told, "{at}");
    }
}

#[test]
fn a_ring_of_one_is_a_transmitter() {
    for loss in [Loss::None, Loss::Iid(0.3)] {
        let impairments = Impairments { loss, ..Impairments::default() };
        let config = LinkConfig { impairments, ..config() };
        let mut links = [Link::new(config.clone(), pfifo(4), random("link")), with_ring(1, pfifo(4), config)];
        let results = links.each_mut().map(|link| {
            let (mut events, mut arrivals, mut random) = (Vec::new(), Vec::new(), random("gaps"));
            let mut now = Time::ZERO;
            for slot in 0..500 {
                now += Span::from_micros(random.below(1400));
                while let Some(arrival) = link.deliver(now, &mut events) {
                    arrivals.push(arrival);
                }
                link.offer(now, packet(slot, 1250), &mut events);
            }
            while let Some(arrival) = link.deliver(Time::from_secs(1000), &mut events) {
                arrivals.push(arrival);
            }
            (arrivals, events)
        });
        assert!(results[0].0.len() > 200, "{}", results[0].0.len());
        assert_eq!(results[0], results[1]);
    }
}

#[test]
fn a_longer_ring_changes_no_arrival_where_nothing_is_dropped() {
    let impairments = Impairments { loss: Loss::Iid(0.1), ..Impairments::default() };
    let config = LinkConfig { impairments, ..config() };
    let arrivals = [1, 5, 64].map(|n| burst(&mut with_ring(n, pfifo(100), config.clone()), 100).0);
    assert!(arrivals[0].len() < 100);
    assert_eq!(arrivals[0], arrivals[1]);
    assert_eq!(arrivals[0], arrivals[2]);
}

/// Packets that leave the queue, by their times in microseconds.
fn taken(events: &[LinkEvent]) -> Vec<u64> {
    let sent = events.iter().filter(|event| matches!(event.kind, LinkEventKind::Sent { .. }));
    sent.map(|event| event.at.as_nanos() / 1000).collect()
}

#[test]
fn a_ring_of_bytes_takes_packets_until_it_is_full() {
    // Of 1250 bytes each: two leave room for one more of 3000 bytes, three do not.
    let limit = DeviceLimit::Bytes(NonZeroU32::new(3000).unwrap());
    let device = DeviceConfig { limit, completion: Span::ZERO };
    let mut link = Link::new(config(), pfifo(100), random("link")).with_device(device);
    assert_eq!(taken(&burst(&mut link, 6).1), [0, 0, 0, 1000, 2000, 3000]);
}

#[test]
fn a_packet_occupies_the_ring_until_its_interrupt() {
    // Three descriptors, 1 ms a packet, interrupts 2.5 ms after the first end: at 3.5 ms all three
    // are reported, and the device has been idle for half a millisecond.
    let device = DeviceConfig { completion: Span::from_micros(2500), ..at_most(3) };
    let mut link = Link::new(config(), pfifo(100), random("link")).with_device(device);
    let (arrivals, events) = burst(&mut link, 7);
    assert_eq!(taken(&events), [0, 0, 0, 3500, 3500, 3500, 7000]);
    let expected = [(2000, 1), (3000, 2), (4000, 3), (5500, 4), (6500, 5), (7500, 6), (9000, 7)];
    assert_eq!(arrivals, expected);
}

/// Byte queue limits keep a device busy with fewer bytes than a ring of a usual size holds. Ten
/// packets are sent between interrupts, so that 2 * 10 * 1250 bytes bound what is needed (`dql.rs`).
#[test]
fn byte_queue_limits_keep_the_device_busy() {
    let device = DeviceConfig { limit: DeviceLimit::Bql(BqlConfig::default()), completion: Span::from_millis(9) };
    let mut link = Link::new(config(), pfifo(10_000), random("link")).with_device(device);
    let mut events = Vec::new();
    for slot in 0..9000 {
        link.offer(Time::ZERO, packet(slot, 1250), &mut events);
    }
    let mut arrivals = Vec::new();
    while let Some((at, _)) = link.deliver(Time::from_secs(8), &mut events) {
        arrivals.push(at);
    }
    let late: Vec<_> = arrivals.iter().filter(|&&at| at > Time::from_millis(200)).collect();
    assert!(late.len() > 7000, "{}", late.len());
    assert!(late.windows(2).all(|pair| pair[1].since(*pair[0]) == Span::from_millis(1)));
    let Transmitter::Device(device) = &link.transmitter else { panic!("{:?}", link.transmitter) };
    assert!((10 * 1250..=2 * 10 * 1250).contains(&device.bql_limit().unwrap()), "{:?}", device.bql_limit());
}
