//! One packet in, one packet out of a standing queue, for every discipline of [`disciplines`]:
//!
//! - `aqm/light/...`: queues of 10, 100 and 1000 packets of 1 and 1000 flows, of 1514 and 64 bytes, on a link that is fast
//!   enough for no law to object to the delay;
//! - `aqm/congested`: 100 packets of 8 flows wait 121 ms, so that every law is at work, marking, and dropping where it does;
//! - `aqm/overloaded`: two packets arrive for each that leaves, so that every other one is dropped, in the end at the limit.
//!
//! Costs are to be read as ratios to `pfifo` of the same run.

use std::hint::black_box;
use std::time::Duration;

use ackclock_aqm::{
    Blue, BlueConfig, Cobalt, CobaltConfig, Codel, CodelConfig, DqRateEstimator, Drops, DualPi2, DualPi2Config, Fifo,
    FifoConfig, FqCodel, FqCodelConfig, FqPie, FqPieConfig, Limit, Pie, PieConfig, QueueDisc, Red, RedConfig, Sfb,
    SfbConfig,
};
use ackclock_testkit::StubPacket;
use ackclock_units::{Ecn, Random, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

type Discipline = Box<dyn QueueDisc<StubPacket>>;

/// All disciplines: the one table that every bench below goes through. ECN on where it can be.
fn disciplines() -> Vec<(&'static str, Discipline)> {
    let random = || Random::for_component(1, 0, "bench");
    let codel = CodelConfig { ecn: true, ..CodelConfig::default() };
    let pie = PieConfig { ecn: true, ..PieConfig::default() };
    let red = RedConfig { ecn: true, ..RedConfig::default() };
    let adaptive = RedConfig { ecn: true, ..RedConfig::adaptive_2001() };
    let blue = BlueConfig { ecn: true, ..BlueConfig::default() };
    let fq_pie = FqPieConfig { ecn: true, ..FqPieConfig::default() };
    vec![
        ("pfifo", Box::new(Fifo::new(FifoConfig::default()))),
        ("bfifo", Box::new(Fifo::new(FifoConfig { limit: Limit::Bytes(1 << 21) }))),
        ("codel", Box::new(Codel::new(codel))),
        ("cobalt", Box::new(Cobalt::new(CobaltConfig::default(), random()))),
        ("pie", Box::new(Pie::new(pie.clone(), random()))),
        ("pie-dre", Box::new(Pie::new(PieConfig { dq_rate_estimator: Some(DqRateEstimator::Linux), ..pie }, random()))),
        ("red", Box::new(Red::new(red, random()))),
        ("red-adaptive", Box::new(Red::new(adaptive, random()))),
        ("blue", Box::new(Blue::new(blue, random()))),
        ("sfb", Box::new(Sfb::new(SfbConfig::default(), random()))),
        ("fq_codel", Box::new(FqCodel::new(FqCodelConfig::default(), random()))),
        ("fq_pie", Box::new(FqPie::new(fq_pie, random()))),
        ("dualpi2", Box::new(DualPi2::new(DualPi2Config::default(), random()))),
    ]
}

/// What arrives.
#[derive(Clone, Copy)]
struct Load {
    flows: u32,
    bytes: u32,
    /// The queue is kept at this length.
    standing: u64,
    /// Time between two departures; up to two packets arrive in it.
    gap: Span,
}

impl Load {
    /// Every other flow is of L4S, which `dualpi2` alone tells apart.
    fn packet(self, id: u32) -> StubPacket {
        let flow = u64::from(id % self.flows);
        let ecn = if flow % 2 == 0 { Ecn::Ect0 } else { Ecn::Ect1 };
        StubPacket { flow: flow.wrapping_mul(0x9e37_79b9_7f4a_7c15), id, wire_len: self.bytes, ecn }
    }
}

/// Time that `bytes` take at `mbit` Mbit/s.
fn gap(bytes: u32, mbit: u64) -> Span {
    Span::from_nanos(u64::from(bytes) * 8_000 / mbit)
}

fn bench(c: &mut Criterion, group: &str, load: Load) {
    let mut group = c.benchmark_group(group);
    group.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(400));
    for (name, mut queue) in disciplines() {
        let mut drops = Drops::with_capacity(1024);
        let (mut now, mut id) = (Time::ZERO, 0);
        group.bench_function(name, |b| {
            b.iter(|| {
                now += load.gap;
                for _ in 0..2 {
                    if queue.backlog().packets < load.standing {
                        queue.enqueue(now, load.packet(id), &mut drops);
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

fn aqm(c: &mut Criterion) {
    for bytes in [1514, 64] {
        for flows in [1, 1000] {
            for standing in [10, 100, 1000] {
                // 1000 packets of 1514 bytes wait 0.12 ms.
                let load = Load { flows, bytes, standing, gap: gap(bytes, 100_000) };
                bench(c, &format!("aqm/light/{standing}p/{flows}f/{bytes}B"), load);
            }
        }
    }
    bench(c, "aqm/congested", Load { flows: 8, bytes: 1514, standing: 100, gap: gap(1514, 10) });
    bench(c, "aqm/overloaded", Load { flows: 8, bytes: 1514, standing: u64::MAX, gap: gap(1514, 10_000) });
}

criterion_group!(benches, aqm);
criterion_main!(benches);
