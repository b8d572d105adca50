use ackclock_aqm::{Codel, CodelConfig, Fifo, FifoConfig, FqCodel, FqCodelConfig, Limit, Overhead, Pie, PieConfig};
use ackclock_packet::Class;
use ackclock_units::{Ecn, Random, Rate};

use super::*;
use crate::{Impairments, Link, LinkConfig, LinkEvent, LinkEventKind};

/// 10 Mbit/s and no delay: 1250 bytes take 1 ms. 14 bytes of framing.
fn link(queue: Box<dyn QueueDisc<Framed>>) -> Link {
    let config = LinkConfig {
        rate: Rate::from_bps(10_000_000),
        delay: Span::ZERO,
        burst: None,
        overhead: Overhead::bytes(14),
        impairments: Impairments::default(),
    };
    Link::new(config, queue, random())
}

fn random() -> Random {
    Random::for_component(1, 0, "recording")
}

fn pfifo(limit: u64) -> Box<dyn QueueDisc<Framed>> {
    Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(limit) }))
}

fn packet(slot: u32, ecn: Ecn) -> Packet {
    Packet { flow_hash: u64::from(slot % 3), slot, wire_len: 1236, route: slot, hop: 0, ecn, class: Class::default() }
}

/// The main fields of decisions: time in us, number, slot, action, sojourn in us, waiting packets.
fn short(decisions: impl Iterator<Item = Decision>) -> Vec<(u64, u64, u32, Action, Option<u64>, u64)> {
    let us = |nanos: u64| nanos / 1000;
    decisions
        .map(|Decision { at, packet, number, action, sojourn, backlog, bytes, .. }| {
            assert_eq!((packet.wire_len, bytes, packet.route), (1236, 1250, packet.slot));
            assert_eq!(backlog.bytes, 1250 * backlog.packets);
            (us(at.as_nanos()), number, packet.slot, action, sojourn.map(|span| us(span.as_nanos())), backlog.packets)
        })
        .collect()
}

#[test]
fn decisions_in_their_order_each_at_its_time() {
    use Action::{Dequeue, Drop, Enqueue};
    let mut link = link(pfifo(1));
    link.record();
    let mut events = Vec::new();
    // The first goes on at once, the second waits, the third finds the queue full. The fourth is a
    // second handle to the contents of the second.
    for slot in [10, 11, 12] {
        link.offer(Time::ZERO, packet(slot, Ecn::NotEct), &mut events);
    }
    link.offer(Time::from_millis(1), packet(11, Ecn::NotEct), &mut events);
    assert_eq!(
        short(link.decisions()),
        [
            (0, 1, 10, Enqueue, None, 1),
            (0, 1, 10, Dequeue, Some(0), 0),
            (0, 2, 11, Enqueue, None, 1),
            (0, 3, 12, Drop(DropReason::Limit), None, 1),
            (1000, 2, 11, Dequeue, Some(1000), 0),
            (1000, 4, 11, Enqueue, None, 1),
        ]
    );
    assert_eq!(link.decisions().count(), 0);
    // However late the link is called.
    while link.deliver(Time::from_secs(9), &mut events).is_some() {}
    assert_eq!(short(link.decisions()), [(2000, 4, 11, Dequeue, Some(1000), 0)]);
}

#[test]
fn the_law_is_asked_at_the_moment_of_the_decision() {
    // Two packets a millisecond at a rate of one; looked at once, at the end.
    let run = |every: u64| {
        let mut link = link(Box::new(Pie::new(PieConfig::default(), random())));
        link.record();
        let (mut events, mut decisions) = (Vec::new(), Vec::new());
        for n in 0..2000 {
            link.offer(Time::from_micros(500 * n), packet(n as u32, Ecn::NotEct), &mut events);
            if n % every == 0 {
                decisions.extend(link.decisions());
            }
        }
        link.catch_up(Time::from_secs(10), &mut events);
        decisions.extend(link.decisions());
        decisions
    };
    let (often, once) = (run(1), run(1999));
    assert_eq!(often, once);
    let probabilities: Vec<f64> = once.iter().filter_map(|decision| decision.probe.probability).collect();
    assert_eq!(probabilities.len(), once.len());
    // It begins at zero and is moved every 15 ms of some two seconds.
    let values = probabilities.chunk_by(|a, b| a == b).count();
    assert!(probabilities[0] == 0.0 && (50..=200).contains(&values), "{values}");
}

#[test]
fn decisions_add_up_to_the_counters_and_change_nothing() {
    type Make = fn() -> Box<dyn QueueDisc<Framed>>;
    let queues: [(&str, Make); 4] = [
        ("pfifo", || pfifo(30)),
        ("codel", || Box::new(Codel::new(CodelConfig { ecn: true, ..CodelConfig::default() }))),
        ("pie", || Box::new(Pie::new(PieConfig { ecn: true, ..PieConfig::default() }, random()))),
        ("fq_codel", || {
            let config = FqCodelConfig { limit: 50, drop_batch: 8, ..FqCodelConfig::default() };
            Box::new(FqCodel::new(config, Random::for_component(1, 0, "queue")))
        }),
    ];
    for (name, queue) in queues {
        let run = |record: bool| {
            let mut link = link(queue());
            if record {
                link.record();
            }
            let mut events = Vec::new();
            // Bursts of three, faster than the link for a second, then slower; every second packet
            // can be marked.
            for n in 0..3000u64 {
                let at = if n < 2100 { 2100 * (n / 3) } else { 1_470_000 + 4000 * (n / 3 - 700) };
                let ecn = if n % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
                link.offer(Time::from_micros(at), packet(n as u32, ecn), &mut events);
            }
            let decisions: Vec<Decision> = link.decisions().collect();
            (link, events, decisions)
        };
        let (link, events, decisions) = run(true);
        let (plain, plain_events, none) = run(false);
        assert_eq!((&events, link.queue().counters()), (&plain_events, plain.queue().counters()), "{name}");
        assert!(none.is_empty());

        let count = |wanted: fn(&Decision) -> bool| decisions.iter().filter(|decision| wanted(decision)).count() as u64;
        let counters = link.queue().counters();
        assert_eq!(count(|d| d.action == Action::Enqueue), counters.enqueued.packets, "{name}");
        assert_eq!(count(|d| d.action == Action::Dequeue), counters.dequeued.packets, "{name}");
        assert_eq!(count(|d| d.action == Action::Mark), counters.marked.packets, "{name}");
        let refused = count(|d| matches!(d.action, Action::Drop(_)) && d.sojourn.is_none());
        let thrown_out = count(|d| matches!(d.action, Action::Drop(_)) && d.sojourn.is_some());
        assert_eq!(refused, counters.dropped_on_enqueue.packets, "{name}");
        assert_eq!(thrown_out, counters.dropped_on_dequeue.packets, "{name}");
        assert!(refused + thrown_out > 0, "{name} dropped nothing");
        assert_eq!(counters.marked.packets > 0, name != "pfifo", "{name}");
        same_drops(&events, &decisions);
    }
}

/// The packets that the events call dropped, with slots and reasons.
fn same_drops(events: &[LinkEvent], decisions: &[Decision]) {
    let events = events.iter().filter_map(|event| match event.kind {
        LinkEventKind::Dropped { packet, reason, .. } => Some((event.at, packet, reason)),
        _ => None,
    });
    let decisions = decisions.iter().filter_map(|decision| match decision.action {
        Action::Drop(reason) => Some((decision.at, decision.packet, reason)),
        _ => None,
    });
    assert!(events.eq(decisions));
}
