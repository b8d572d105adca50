//! One packet in, one packet out of a standing queue, per discipline: `light` with a delay that no law objects to, `congested`
//! with every law at work, marking and (PIE) dropping; and fq_codel past its limit.

use std::hint::black_box;

use ackclock_aqm::{
    Codel, CodelConfig, Drops, Fifo, FifoConfig, FqCodel, FqCodelConfig, Limit, Pie, PieConfig, QueueDisc,
};
use ackclock_testkit::StubPacket;
use ackclock_units::{Ecn, Random, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

const FLOWS: u32 = 8;

fn disciplines() -> Vec<(&'static str, Box<dyn QueueDisc<StubPacket>>)> {
    let random = || Random::for_component(1, 0, "bench");
    vec![
        ("pfifo", Box::new(Fifo::new(FifoConfig::default()))),
        ("bfifo", Box::new(Fifo::new(FifoConfig { limit: Limit::Bytes(1 << 20) }))),
        ("codel", Box::new(Codel::new(CodelConfig { ecn: true, ..CodelConfig::default() }))),
        ("pie", Box::new(Pie::new(PieConfig { ecn: true, ..PieConfig::default() }, random()))),
        (
            "pie-dre",
            Box::new(Pie::new(PieConfig { ecn: true, dq_rate_estimator: true, ..PieConfig::default() }, random())),
        ),
        ("fq_codel", Box::new(FqCodel::new(FqCodelConfig::default()))),
    ]
}

fn packet(id: u32) -> StubPacket {
    StubPacket { flow: u64::from(id % FLOWS), id, wire_len: 1514, ecn: Ecn::Ect0 }
}

/// A queue of up to `standing` packets on a link that sends one each `gap`; up to two arrive in that time.
fn standing(c: &mut Criterion, group: &str, standing: u64, gap: Span) {
    let mut group = c.benchmark_group(group);
    for (name, mut queue) in disciplines() {
        let mut drops = Drops::with_capacity(1024);
        let (mut now, mut id) = (Time::ZERO, 0);
        group.bench_function(name, |b| {
            b.iter(|| {
                now += gap;
                for _ in 0..2 {
                    if queue.backlog().packets < standing {
                        queue.enqueue(now, packet(id), &mut drops);
                        id = id.wrapping_add(1);
                    }
                }
                black_box(queue.dequeue(now, &mut drops));
                drops.clear();
            });
        });
    }
    group.finish();
}

/// Two packets in and one out, so that every other one is dropped from the fattest flow.
fn past_the_limit(c: &mut Criterion) {
    let mut queue = FqCodel::new(FqCodelConfig { limit: 1000, ..FqCodelConfig::default() });
    let mut drops = Drops::with_capacity(1024);
    let (mut now, mut id) = (Time::ZERO, 0);
    c.bench_function("aqm/past the limit/fq_codel", |b| {
        b.iter(|| {
            now += Span::from_nanos(1_211);
            for _ in 0..2 {
                queue.enqueue(now, packet(id), &mut drops);
                id = id.wrapping_add(1);
            }
            black_box(queue.dequeue(now, &mut drops));
            drops.clear();
        });
    });
}

fn aqm(c: &mut Criterion) {
    // 100 packets at 10 Gbit/s wait 0.12 ms, at 10 Mbit/s 121 ms.
    standing(c, "aqm/light", 100, Span::from_nanos(1_211));
    standing(c, "aqm/congested", 100, Span::from_nanos(1_211_200));
    past_the_limit(c);
}

criterion_group!(benches, aqm);
criterion_main!(benches);
