//! A flow that sends little is not held up by flows that send all they can (RFC 8290 section 1):
//! one packet each 20 ms beside ten flows that always have packets waiting, on a link of 10 Mbit/s.

use ackclock_aqm::{Drops, FqCodel, FqCodelConfig, FqPie, FqPieConfig, QueueDisc, Queued};
use ackclock_testkit::{Ask, StubPacket};
use ackclock_units::{Ecn, Random, Rate, Serializer, Span, Time};

const BULK: u64 = 10;
const PACKET: u32 = 1514;

/// Sojourn times of the sparse flow's packets over a minute.
fn sparse_sojourns(mut queue: impl QueueDisc<StubPacket>) -> Vec<Span> {
    let mut line = Serializer::new(Rate::from_bps(10_000_000).unwrap());
    let mut drops = Drops::new();
    let packet = |flow, wire_len| StubPacket { flow, id: 0, wire_len, ecn: Ecn::NotEct };
    let sparse_hash = packet(BULK, 200).flow_hash();
    let (mut now, mut next_sparse) = (Time::ZERO, Time::ZERO);
    let mut sojourns = Vec::new();
    while now < Time::from_secs(60) {
        // Arrivals during the transmission of the last packet.
        while next_sparse <= now {
            queue.enqueue(next_sparse, packet(BULK, 200), &mut drops);
            next_sparse += Span::from_millis(20);
        }
        // Each bulk flow keeps ten packets in the queue, however many the law discards.
        let waiting = queue.backlog().packets;
        for flow in 0..BULK {
            (waiting / BULK..10).for_each(|_| queue.enqueue(now, packet(flow, PACKET), &mut drops));
        }
        let entry = queue.ask(now, &mut drops).expect("bulk packets wait");
        if entry.packet.flow_hash() == sparse_hash {
            sojourns.push(now.since(entry.enqueued_at));
        }
        now = line.transmit(now, entry.packet.wire_len());
        drops.clear();
    }
    sojourns
}

#[test]
fn a_sparse_flow_waits_less_than_a_turn_of_the_others() {
    let random = || Random::for_component(1, 0, "queue");
    for mut sojourns in [
        sparse_sojourns(FqCodel::new(FqCodelConfig::default(), random())),
        sparse_sojourns(FqPie::new(FqPieConfig::default(), random())),
    ] {
        sojourns.sort_unstable();
        assert!(sojourns.len() > 2900, "{} packets of 3000 passed", sojourns.len());
        let quantum = Span::from_nanos(1514 * 8 * 100);
        let median = sojourns[sojourns.len() / 2];
        assert!(median < quantum * (BULK + 1), "{median}");
        // In fact it waits for the packet in transmission alone.
        assert!(median <= quantum, "{median}");
    }
}
