//! Wakeups with 10, 100 and 1000 slots armed: the next one popped and armed again, and an armed one
//! moved.

use std::hint::black_box;

use ackclock_events::{Slot, Wakeups};
use ackclock_units::{Random, Span, Time};
use criterion::{BenchmarkId, Criterion, criterion_group, criterion_main};

/// Delays up to 10 ms, drawn beforehand: the generator is not what is measured.
fn delays() -> Vec<Span> {
    let mut random = Random::for_component(1, 0, "bench");
    (0..4096).map(|_| Span::from_nanos(1 + random.below(10_000_000))).collect()
}

fn armed(slots: u32, delays: &[Span]) -> Wakeups {
    let mut wakeups = Wakeups::new();
    for delay in delays.iter().take(slots as usize) {
        let slot = wakeups.add_slot();
        wakeups.arm(slot, Time::ZERO + *delay);
    }
    wakeups
}

fn wakeups(c: &mut Criterion) {
    let delays = delays();
    for slots in [10, 100, 1000] {
        let mut wakeups = armed(slots, &delays);
        let mut delay = delays.iter().copied().cycle();
        let mut next = || delay.next().unwrap_or_default();
        c.bench_with_input(BenchmarkId::new("wakeups/pop and arm", slots), &slots, |b, _| {
            b.iter(|| {
                let (now, slot) = wakeups.pop().expect("every slot is armed");
                wakeups.arm(black_box(slot), now + next());
            });
        });
        let mut wakeups = armed(slots, &delays);
        let mut slot: Slot = 0;
        c.bench_with_input(BenchmarkId::new("wakeups/move", slots), &slots, |b, _| {
            b.iter(|| {
                // Far from its neighbours in time, so that entries move through the heap.
                slot = (slot + 7) % slots;
                wakeups.arm(black_box(slot), Time::ZERO + next());
            });
        });
    }
}

criterion_group!(benches, wakeups);
criterion_main!(benches);
