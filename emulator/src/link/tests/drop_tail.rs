//! A drop-tail queue whose packets wait on the ring of the wire: the same happens as when the queue
//! is asked for each of them.

use ackclock_aqm::Overhead;

use super::*;
use crate::Change;

/// What is done to a link between two packets.
#[derive(Clone, Copy, Debug)]
enum Act {
    Nothing,
    CatchUp,
    OtherLimit(u64),
    OtherRate(u64),
}

fn act() -> impl Strategy<Value = Act> {
    prop_oneof![
        20 => Just(Act::Nothing),
        3 => Just(Act::CatchUp),
        1 => (1..20_u64).prop_map(Act::OtherLimit),
        1 => (1..50_u64).prop_map(Act::OtherRate),
    ]
}

proptest! {
    #[test]
    fn packets_wait_on_the_wire_as_in_the_queue(
        steps in prop::collection::vec((0..3_000_u64, 40..9_000_u32, act()), 1..80),
        overhead in (0..50).prop_map(Overhead::bytes),
        (mbit, delay) in (1..100_u64, 0..5_000_u64),
        limit in prop_oneof![(0..20_u64).prop_map(Limit::Packets), (0..60_000_u64).prop_map(Limit::Bytes)],
    ) {
        let config = LinkConfig {
            rate: Rate::from_bps(mbit * 1_000_000),
            delay: Span::from_micros(delay),
            overhead,
            ..config()
        };
        let [mut short, mut long] = std::array::from_fn(|_| {
            Link::new(config.clone(), Box::new(Fifo::new(FifoConfig { limit })), random("link"))
        });
        prop_assert!(long.drop_tail.take().is_some() && short.drop_tail.is_some());
        let [short, long] = [&mut short, &mut long].map(|link| {
            let (mut events, mut arrivals, mut seen, mut now) = (Vec::new(), Vec::new(), Vec::new(), Time::ZERO);
            for (slot, &(wait, bytes, act)) in (1..).zip(&steps) {
                now += Span::from_micros(wait);
                while let Some(arrival) = link.deliver(now, &mut events) {
                    arrivals.push(arrival);
                }
                link.offer(now, packet(slot, bytes), &mut events);
                match act {
                    Act::Nothing => {}
                    Act::CatchUp => link.catch_up(now, &mut events),
                    Act::OtherLimit(packets) => {
                        let config = FifoConfig { limit: Limit::Packets(packets) };
                        let _ = link.change_queue(now, &config, &mut events);
                    }
                    Act::OtherRate(mbit) => {
                        link.catch_up(now, &mut events);
                        let at = now + Span::from_nanos(1);
                        link.change(Change { at, rate: Some(Rate::from_bps(mbit * 1_000_000)), ..Change::default() });
                    }
                }
                seen.push((link.next_due(), *link.queue().counters(), link.queue().backlog()));
            }
            seen.push((link.next_due(), link.counters(), link.queue().backlog()));
            arrivals.extend(std::iter::from_fn(|| link.deliver(Time::from_secs(99), &mut events)));
            arrivals.extend(std::iter::from_fn(|| link.deliver(Time::NEVER, &mut events)));
            (events, arrivals, seen)
        });
        prop_assert_eq!(short, long);
    }
}

#[test]
fn a_transmission_that_does_not_end_keeps_its_packet() {
    // A byte takes 8 s at 1 bit/s; the end of the run of times comes before that of the second.
    let begins = Time::NEVER - Span::from_secs(400);
    let config = LinkConfig { rate: Rate::from_bps(1), delay: Span::ZERO, ..config() };
    let mut link = Link::new(config, pfifo(10), random("link"));
    let mut events = Vec::new();
    for slot in 1..=3 {
        link.offer(begins, packet(slot, 40), &mut events);
    }
    assert_eq!(
        link.deliver(Time::NEVER, &mut events).map(|(at, packet)| (at, packet.slot)),
        Some((begins + Span::from_secs(320), 1))
    );
    assert_eq!(link.deliver(Time::NEVER, &mut events), None);
    assert_eq!((link.next_due(), link.queue().backlog().packets), (Time::NEVER, 1));
}
