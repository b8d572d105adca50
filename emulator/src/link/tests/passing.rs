//! A link without a rate: a discipline that only counts packets there gives the same events as when
//! it is asked for each of them.

use ackclock_aqm::{Overhead, QueueSpec};

use super::*;
use crate::Impairments;

proptest! {
    #[test]
    fn packets_pass_as_if_the_queue_had_been_asked(
        steps in prop::collection::vec((0..50_000_u64, 40..65_000_u32, any::<bool>()), 1..60),
        overhead in (0..50).prop_map(Overhead::bytes),
        duplicate in prop::sample::select(vec![0.0, 0.3]),
    ) {
        for name in ["pfifo", "bfifo", "codel", "fq_codel", "pie"] {
            let impairments = Impairments { duplicate, ..Impairments::default() };
            let config = LinkConfig { rate: None, overhead, impairments, ..config() };
            let [mut short, mut long] = std::array::from_fn(|_| {
                let queue = QueueSpec::by_name(name).expect("a discipline").build(random("queue"));
                Link::new(config.clone(), queue, random("link"))
            });
            prop_assert!(std::mem::replace(&mut long.passes, false) && short.passes);
            let mut outcomes = [&mut short, &mut long].map(|link| {
                let (mut events, mut arrivals, mut now) = (Vec::new(), Vec::new(), Time::ZERO);
                for (slot, &(wait, bytes, capable)) in (1..).zip(&steps) {
                    now += Span::from_micros(wait);
                    while let Some(arrival) = link.deliver(now, &mut events) {
                        arrivals.push(arrival);
                    }
                    let ecn = if capable { Ecn::Ect0 } else { Ecn::NotEct };
                    link.offer(now, Packet { ecn, ..packet(slot, bytes) }, &mut events);
                }
                let due = link.next_due();
                arrivals.extend(std::iter::from_fn(|| link.deliver(Time::from_secs(99), &mut events)));
                (events, arrivals, due, link.counters(), link.queue().probe())
            });
            let [short, long] = &mut outcomes;
            prop_assert_eq!(short, long, "{}", name);
        }
    }
}

#[test]
fn a_discipline_that_may_refuse_a_packet_is_asked() {
    let config = LinkConfig { rate: None, ..config() };
    let none = Limit::Packets(0);
    for limit in [none, Limit::Bytes(1500)] {
        let mut link = Link::new(config.clone(), Box::new(Fifo::new(FifoConfig { limit })), random("link"));
        let mut events = Vec::new();
        link.offer(us(0), packet(1, 1501), &mut events);
        assert!(matches!(events[0].kind, LinkEventKind::Dropped { reason: DropReason::Limit, .. }), "{events:?}");
    }
    let mut link = Link::new(config, pfifo(1), random("link"));
    let mut events = Vec::new();
    link.change_queue(us(0), &FifoConfig { limit: none }, &mut events).expect("a limit in packets");
    link.offer(us(1), packet(1, 1500), &mut events);
    assert!(matches!(events[0].kind, LinkEventKind::Dropped { .. }), "{events:?}");
}
