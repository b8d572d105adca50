use ackclock_units::Ecn;

use super::*;
use crate::stub::{Stub, stub};

fn fq(config: FqConfig) -> Fq<Stub> {
    // A flow for each hash.
    Fq::new(FqConfig { orphan_mask: 0xffff, hash_seed: Some(1), ..config }, Random::for_component(1, 0, "fq"))
}

fn of_flow(flow: u64, id: u32, bytes: u32) -> Stub {
    Stub { flow, ..stub(id, bytes) }
}

/// Offers packets of 1000 bytes of these flows, numbered in order; what is dropped.
fn offer(queue: &mut Fq<Stub>, at: Time, first: u32, flows: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let mut drops = Drops::new();
    for (n, flow) in flows.into_iter().enumerate() {
        queue.enqueue(at, of_flow(flow, first + n as u32, 1000), &mut drops);
    }
    drops.into_iter().map(|drop| drop.packet.id).collect()
}

/// The next packet's number, or the time before which there is none.
fn next(queue: &mut Fq<Stub>, at: Time) -> Result<u32, Option<Time>> {
    let peeked = queue.peek().map(|entry| entry.packet.id);
    match queue.dequeue(at, &mut Drops::new()) {
        Dequeue::Packet(entry) => {
            assert_eq!(peeked, Some(entry.packet.id));
            Ok(entry.packet.id)
        }
        Dequeue::NotBefore(time) => Err(Some(time)),
        Dequeue::Empty => Err(None),
    }
}

fn all(queue: &mut Fq<Stub>, at: Time) -> Vec<u32> {
    std::iter::from_fn(|| next(queue, at).ok()).collect()
}

/// sch_fq.c, `fq_fastpath_check`: the first eight packets, of any flow, find no flow that could
/// send; they leave in order of arrival, before all others, and count for no limit.
#[test]
fn the_fast_path_takes_eight_packets() {
    let mut queue = fq(FqConfig { limit: 3, flow_limit: 2, ..FqConfig::default() });
    // Then two of flow 1, for which a third is too many, and one of flow 2, which fills the band.
    let dropped = offer(&mut queue, Time::ZERO, 0, [1, 2, 1, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2]);
    assert_eq!(dropped, [10, 12]);
    assert_eq!(all(&mut queue, Time::ZERO), [0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 11]);
    // Both flows are still in the lists, without packets: the path is open again.
    assert_eq!((queue.eligible, queue.is_fast(Time::ZERO)), (0, true));
    assert!(queue.counters().balance(queue.backlog()));
}

/// sch_fq.c, `fq_dequeue`: a new flow sends while it has credit. With an initial quantum of 2500,
/// three packets of 1000 bytes leave -500; its turn comes behind the old flows' and adds a quantum
/// of 1500: one more, and with 0 left it waits again.
#[test]
fn a_turn_lasts_while_there_is_credit() {
    let mut queue = fq(FqConfig { quantum: 1500, initial_quantum: 2500, ..FqConfig::default() });
    offer(&mut queue, Time::ZERO, 0, [9; 8]);
    offer(&mut queue, Time::ZERO, 10, [1; 6]);
    offer(&mut queue, Time::ZERO, 20, [2; 6]);
    assert_eq!(
        all(&mut queue, Time::ZERO)[8..],
        [
            10, 11, 12, 20, 21, 22, // new: 2500
            13, 23, // -500 + 1500 = 1000
            14, 15, // 0 + 1500, 500
            24, 25,
        ]
    );
}

/// sch_fq.c, `fq_enqueue`: a flow that has been without packets and out of the lists for
/// `refill_delay` gets a quantum, after 3 s it is a new one.
#[test]
fn credit_is_refilled_after_a_pause() {
    let credit_after = |pause: Span| {
        let mut queue = fq(FqConfig { quantum: 1500, initial_quantum: 2500, ..FqConfig::default() });
        offer(&mut queue, Time::ZERO, 0, [9; 8]);
        // Flow 1 spends its credit: 2500 - 3 * 1000. Other flows let it leave the lists.
        offer(&mut queue, Time::ZERO, 10, [1, 1, 1, 2, 2, 2, 2, 2, 2, 2]);
        all(&mut queue, Time::ZERO);
        let index = mix(1 ^ queue.salt) as u32 & 0xffff;
        assert_eq!(queue.flows[index as usize].place, Place::Detached(Time::ZERO));
        let credit = queue.flows[index as usize].credit;
        offer(&mut queue, Time::ZERO + pause, 30, [9; 9]);
        offer(&mut queue, Time::ZERO + pause, 40, [1]);
        (credit, queue.flows[index as usize].credit)
    };
    let ms = Span::from_millis;
    // -500 and a quantum, when its turn found it empty.
    assert_eq!(credit_after(ms(40)), (1000, 1000));
    assert_eq!(credit_after(ms(41)), (1000, 1500));
    assert_eq!(credit_after(ms(3000)), (1000, 1500));
    assert_eq!(credit_after(ms(3001)), (1000, 2500));
}

/// sch_fq.c: with 8 Mbit/s, a byte takes 1 us. Above `low_rate_threshold` the credit of 2000 passes
/// at once, then a quantum's time, 3000 us, for what follows; up to it each packet takes its own
/// time, 1000 us.
#[test]
fn no_flow_exceeds_its_rate() {
    let rate = |bps| Rate::from_bps(bps).unwrap();
    let config = FqConfig {
        quantum: 3000,
        initial_quantum: 2000,
        maxrate: Some(rate(8_000_000)),
        low_rate_threshold: Some(rate(7_999_999)),
        ..FqConfig::default()
    };
    let us = Time::from_micros;
    let mut queue = fq(config.clone());
    offer(&mut queue, us(0), 0, [1; 6]);
    assert_eq!([next(&mut queue, us(0)), next(&mut queue, us(0))], [Ok(0), Ok(1)]);
    assert_eq!(next(&mut queue, us(0)), Err(Some(us(3000))));
    // Another flow is not held back by it.
    offer(&mut queue, us(0), 9, [2]);
    assert_eq!(next(&mut queue, us(1)), Ok(9));
    assert_eq!(next(&mut queue, us(1)), Err(Some(us(3000))));
    assert_eq!([3000, 3000, 3000].map(|at| next(&mut queue, us(at))), [Ok(2), Ok(3), Ok(4)]);
    assert_eq!(next(&mut queue, us(3000)), Err(Some(us(6000))));
    assert_eq!(next(&mut queue, us(6400)), Ok(5));

    let mut queue = fq(FqConfig { low_rate_threshold: Some(rate(8_000_000)), ..config });
    offer(&mut queue, us(0), 0, [1; 4]);
    assert_eq!(next(&mut queue, us(0)), Ok(0));
    assert_eq!(next(&mut queue, us(0)), Err(Some(us(1000))));
    assert_eq!(next(&mut queue, us(1300)), Ok(1));
    assert_eq!(next(&mut queue, us(1300)), Err(Some(us(2000))));
    // 1900 us late: half a gap at most.
    assert_eq!(next(&mut queue, us(3900)), Ok(2));
    assert_eq!(next(&mut queue, us(3900)), Err(Some(us(4400))));
}

/// sch_fq.c: a packet of a flow that leaves more than `ce_threshold` after it might have is marked;
/// the fast path marks nothing.
#[test]
fn what_leaves_late_is_marked() {
    let mut queue = fq(FqConfig { ce_threshold: Some(Span::from_millis(5)), ..FqConfig::default() });
    let mut drops = Drops::new();
    for id in 0..11 {
        let at = Time::from_millis(if id < 8 { 0 } else { 3 });
        queue.enqueue(at, Stub { ecn: Ecn::Ect0, ..of_flow(1, id, 1000) }, &mut drops);
    }
    let mut marked = Vec::new();
    for n in 0..11 {
        // Of those of the flow the first leaves after 5 ms, the others after 6 and 7.
        let at = Time::from_millis(n.max(8));
        if let Dequeue::Packet(entry) = queue.dequeue(at, &mut drops)
            && entry.packet.ecn == Ecn::Ce
        {
            marked.push(entry.packet.id);
        }
    }
    assert_eq!(marked, [9, 10]);
}

/// sch_fq.c: bands share the link 9 to 3 to 1; a band's turn ends when its credit does. 13 * 65,536
/// bytes are a round.
#[test]
fn bands_share_by_weight() {
    #[derive(Debug)]
    struct Coded(u8);
    impl Queued for Coded {
        fn wire_len(&self) -> u32 {
            1024
        }
        fn ecn(&self) -> Ecn {
            Ecn::NotEct
        }
        fn set_ce(&mut self) {}
        fn flow_hash(&self) -> u64 {
            self.0.into()
        }
        fn dscp(&self) -> u8 {
            self.0
        }
    }
    let config = FqConfig { limit: 5000, flow_limit: 5000, ..FqConfig::default() };
    let mut queue: Fq<Coded> = Fq::new(config, Random::for_component(1, 0, "fq"));
    let mut drops = Drops::new();
    // TOS 0x10, 0 and 0x08 (tc-prio(8)): bands 0, 1 and 2.
    (0..9000).for_each(|n| queue.enqueue(Time::ZERO, Coded([4, 0, 2][n % 3]), &mut drops));
    (0..8).for_each(|_| assert!(queue.dequeue(Time::ZERO, &mut drops).packet().is_some()));
    let mut sent = [0; 5];
    for _ in 0..3 * 13 * 64 {
        let peeked = queue.peek().map(|entry| entry.packet.0);
        let Dequeue::Packet(entry) = queue.dequeue(Time::ZERO, &mut drops) else { panic!("packets wait") };
        assert_eq!(peeked, Some(entry.packet.0));
        sent[usize::from(entry.packet.0)] += 1;
    }
    assert_eq!([sent[4], sent[0], sent[2]], [3 * 9 * 64, 3 * 3 * 64, 3 * 64]);
    assert_eq!(drops.len(), 0);
}
