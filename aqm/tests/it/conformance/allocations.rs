//! No discipline allocates per packet: once its memory has grown to what a load needs, it stays.

use ackclock_testkit::{CountingAllocator, allocations};
use ackclock_units::Size;
use ackclock_units::parameter::{Domain, Value, each};

use super::*;

#[global_allocator]
static ALLOCATOR: CountingAllocator = CountingAllocator;

#[test]
fn a_warm_queue_allocates_nothing() {
    let steps = overload();
    let of_cases = cases().into_iter().map(|case| (case.name, (case.make)(Random::for_component(1, 0, case.name))));
    let of_table = table().into_iter().map(|(mut spec, case)| {
        // One pass then shows the needs of a load.
        each(&mut spec, &mut |of, _| match (of.name, of.domain) {
            ("limit", Domain::Packets(..)) => Some(Value::Whole(60)),
            ("limit", Domain::Bytes(..)) => Some(Value::Whole(90_000)),
            ("limit", _) => Some(Value::Size(Size::Bytes(90_000))),
            _ => None,
        });
        (case.name, spec.build(Random::for_component(1, 0, case.name)))
    });
    for (name, mut queue) in of_cases.chain(of_table) {
        let mut drops = Drops::with_capacity(1024);
        let mut now = Time::ZERO;
        let mut pass = || {
            for (id, step) in steps.iter().enumerate() {
                now += step.gap;
                match step.action {
                    QueueAction::Offer { flow, wire_len, ecn } => {
                        queue.enqueue(now, StubPacket { flow, id: id as u32, wire_len, ecn }, &mut drops);
                    }
                    QueueAction::Send => drop(queue.ask(now, &mut drops)),
                }
                drops.clear();
            }
            // Packets that wait at the end would make the second pass a larger load than the first.
            while queue.backlog().packets > 0 {
                if let Dequeue::NotBefore(next) = queue.dequeue(now, &mut drops) {
                    now = next;
                }
                drops.clear();
            }
            queue.idle(now);
        };
        pass();
        assert_eq!(allocations(pass).count, 0, "{name}");
    }
}
