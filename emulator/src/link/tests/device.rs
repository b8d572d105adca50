//! A transmit ring below the queue: what is in it neither waits nor can be dropped, and an idle
//! link is announced as `qdisc_restart` finds it.

use std::num::NonZeroU32;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::idle::Told;
use super::*;
use crate::Impairments;

fn descriptors(n: u32) -> NonZeroU32 {
    NonZeroU32::new(n).unwrap()
}

fn with_ring(n: u32, queue: Box<dyn QueueDisc<Framed>>, config: LinkConfig) -> Link {
    Link::new(config, queue, random("link")).with_device(descriptors(n))
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
