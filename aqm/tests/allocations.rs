//! Once a queue has been as long as it gets, no packet costs an allocation.

use ackclock_aqm::{Blue, BlueConfig, Drops, Limit, QueueDisc, Red, RedConfig, Sfb, SfbConfig};
use ackclock_testkit::{CountingAllocator, StubPacket, allocations};
use ackclock_units::{Ecn, Random, Span, Time};

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

/// Eight flows, half of them able to carry marks, offer twice what the link sends.
fn overload(queue: &mut dyn QueueDisc<StubPacket>, drops: &mut Drops<StubPacket>, ids: std::ops::Range<u32>) {
    for id in ids {
        let now = Time::ZERO + Span::from_micros(600) * u64::from(id);
        let ecn = if id % 2 == 0 { Ecn::Ect0 } else { Ecn::NotEct };
        queue.enqueue(now, StubPacket { flow: u64::from(id % 8), id, wire_len: 1514, ecn }, drops);
        if id % 2 == 0 {
            queue.dequeue(now, drops);
        }
        drops.clear();
    }
}

#[test]
fn a_warm_queue_allocates_nothing() {
    let random = || Random::for_component(1, 0, "allocations");
    let red = |config| Box::new(Red::new(RedConfig { limit: 60_000, ecn: true, ..config }, random()));
    let queues: [(&str, Box<dyn QueueDisc<StubPacket>>); 4] = [
        ("red", red(RedConfig { min: Some(30_000), max: Some(90_000), ..RedConfig::default() })),
        ("red 2001", red(RedConfig::adaptive_2001())),
        (
            "blue",
            Box::new(Blue::new(
                BlueConfig { limit: Limit::Bytes(60_000), ecn: true, ..BlueConfig::default() },
                random(),
            )),
        ),
        (
            "sfb",
            Box::new(Sfb::new(SfbConfig { limit: 60, rehash: Span::from_secs(1), ..SfbConfig::default() }, random())),
        ),
    ];
    for (name, mut queue) in queues {
        // As long as it can get: one burst without an answer.
        let mut drops = Drops::with_capacity(64);
        for id in 0..64 {
            queue.enqueue(
                Time::ZERO,
                StubPacket { flow: u64::from(id), id, wire_len: 1514, ecn: Ecn::Ect0 },
                &mut drops,
            );
        }
        overload(&mut *queue, &mut drops, 0..5_000);
        let used = allocations(|| overload(&mut *queue, &mut drops, 5_000..50_000));
        assert_eq!(used.count, 0, "{name}: {used:?}");
    }
}
