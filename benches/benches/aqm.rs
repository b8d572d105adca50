//! One packet in, one packet out of a standing queue, for every discipline of [`disciplines`]:
//!
//! - `aqm/light/...`: queues of 10, 100 and 1000 packets of 1 and 1000 flows, of 1514 and 64 bytes,
//!   on a link that is fast enough for no law to object to the delay;
//! - `aqm/congested`: 100 packets of 8 flows wait 121 ms, so that every law is at work, marking,
//!   and dropping where it does;
//! - `aqm/overloaded`: two packets arrive for each that leaves, so that every other one is dropped,
//!   in the end at the limit.
//!
//! Costs are to be read as ratios to `pfifo` of the same run.

use std::hint::black_box;
use std::io::{self, Write};
use std::sync::Arc;
use std::time::{Duration, Instant};

use ackclock_aqm::{
    Class, DqRateEstimator, Drops, FifoConfig, Filter, HfscClass, HfscConfig, HtbClass, HtbConfig, Limit, PieConfig,
    QfqClass, QfqConfig, QueueDisc, QueueSpec, RedConfig, ServiceCurve,
};
use ackclock_testkit::StubPacket;
use ackclock_units::parameter::{Domain, Value, each};
use ackclock_units::{Ecn, Random, Rate, Size, Span, Time};
use criterion::{Criterion, criterion_group, criterion_main};

type Discipline = Box<dyn QueueDisc<StubPacket>>;

/// Disciplines that act on the backlog, or limit it otherwise, and let no queue of a given length
/// stand.
const BY_BACKLOG: [&str; 11] =
    ["red", "red-adaptive", "wred", "choke", "rem", "afd", "blue", "sfb", "sfq", "fq", "tbf"];

/// The disciplines of every bench below: those of the table, and configurations with other costs.
/// ECN is on where possible, and limits leave room for the standing queue; the defaults do where
/// they are to be met.
fn disciplines(load: QueueLoad) -> Vec<(&'static str, Discipline)> {
    let stands = load.standing < u64::MAX;
    let packets = |default: u64| if stands { default.max(2 * load.standing) } else { default };
    let bytes = |default: u64| if stands { default.max(2 * load.standing * u64::from(load.bytes)) } else { default };
    let adaptive = RedConfig { ecn: true, ..RedConfig::adaptive_2001() };
    let departures = PieConfig { dq_rate_estimator: Some(DqRateEstimator::Linux), ..PieConfig::default() };
    let further = [
        ("pie-dre", QueueSpec::Pie(departures)),
        ("red-adaptive", QueueSpec::Red(adaptive)),
        ("htb-tree", QueueSpec::Htb(htb())),
        ("hfsc-tree", QueueSpec::Hfsc(hfsc())),
        ("qfq-classes", QueueSpec::Qfq(qfq())),
    ];
    let all = QueueSpec::all().into_iter().map(|spec| (spec.name(), spec)).chain(further);
    all.map(|(name, mut spec)| {
        each(&mut spec, &mut |of, value| match (of.name, of.domain, value) {
            ("ecn", ..) => Some(Value::Flag(true)),
            ("limit", Domain::Packets(..), Value::Whole(limit)) => Some(Value::Whole(packets(limit))),
            ("limit", Domain::Bytes(..), Value::Whole(limit)) => Some(Value::Whole(bytes(limit))),
            ("limit", _, Value::Size(Size::Packets(limit))) => Some(Value::Size(Size::Packets(packets(limit)))),
            ("limit", _, Value::Size(Size::Bytes(limit))) => Some(Value::Size(Size::Bytes(bytes(limit)))),
            _ => None,
        });
        (name, spec.build(Random::for_component(1, 0, "bench")))
    })
    .collect()
}

/// Two classes, one for short packets and one for the rest, below a third.
fn tree<S: Clone>(top: S, leaf: S) -> Vec<Class<S>> {
    let class = |name: &str, parent: Option<&str>, lengths: Option<(u32, u32)>, settings: &S| Class {
        name: name.into(),
        parent: parent.map(Arc::from),
        filter: Filter { length: lengths, ..Filter::default() },
        queue: match parent {
            Some(_) => QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(4000) }),
            None => QueueSpec::by_name("pfifo").expect("a row"),
        },
        settings: settings.clone(),
    };
    vec![
        class("top", None, None, &top),
        class("short", Some("top"), Some((0, 100)), &leaf),
        class("rest", Some("top"), None, &leaf),
    ]
}

/// The leaves borrow from the third class at a rate beyond that of any load.
fn htb() -> HtbConfig {
    let [slow, fast] = [1, 100_000].map(|mbit| Rate::from_bps(1_000_000 * mbit).expect("above zero"));
    let leaf = HtbClass { ceil: Some(fast), ..HtbClass::new(slow) };
    HtbConfig { classes: tree(HtbClass::new(fast), leaf), default: Some("rest".into()), ..HtbConfig::default() }
}

/// The leaves share what the third class has.
fn hfsc() -> HfscConfig {
    let share = HfscClass { ls: Some(ServiceCurve::linear(1_000_000)), ..HfscClass::default() };
    HfscConfig { classes: tree(share.clone(), share), default: Some("rest".into()), ..HfscConfig::default() }
}

/// The leaves of the trees, of different weights.
fn qfq() -> QfqConfig {
    let mut classes = tree(QfqClass::default(), QfqClass::default()).split_off(1);
    classes.iter_mut().for_each(|class| class.parent = None);
    classes[0].settings.weight = 10;
    QfqConfig { classes, default: Some("rest".into()), ..QfqConfig::default() }
}

/// The arrivals.
#[derive(Clone, Copy)]
struct QueueLoad {
    flows: u32,
    bytes: u32,
    /// The queue is kept at this length.
    standing: u64,
    /// Time between two departures; up to two packets arrive in it.
    gap: Span,
}

impl QueueLoad {
    /// Every other flow is of L4S, which `dualpi2` and `curvy_red` alone tell apart.
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

/// A discipline under a load.
struct QueueBench {
    queue: Discipline,
    drops: Drops<StubPacket>,
    load: QueueLoad,
    now: Time,
    id: u32,
}

impl QueueBench {
    fn step(&mut self) {
        self.now += self.load.gap;
        for _ in 0..2 {
            if self.queue.backlog().packets < self.load.standing {
                self.queue.enqueue(self.now, self.load.packet(self.id), &mut self.drops);
                self.id = self.id.wrapping_add(1);
            }
        }
        black_box(self.queue.dequeue(self.now, &mut self.drops));
        self.drops.clear();
    }

    /// Returns `true` if the queue has its standing length, except for the packet that has just
    /// left.
    fn stands(&self) -> bool {
        self.queue.backlog().packets + 1 >= self.load.standing
    }
}

fn bench(c: &mut Criterion, group: &str, load: QueueLoad) {
    // A law that objects to the delay keeps the queue shorter; no law does to a light load.
    let is_light = group.starts_with("aqm/light");
    let mut benches = c.benchmark_group(group);
    benches.sample_size(20).warm_up_time(Duration::from_millis(200)).measurement_time(Duration::from_millis(400));
    for (name, queue) in disciplines(load) {
        let mut bench = QueueBench { queue, drops: Drops::with_capacity(1024), load, now: Time::ZERO, id: 0 };
        // One more comes than leaves in each step.
        (0..2 * load.standing.min(1000)).for_each(|_| bench.step());
        let stood = bench.stands();
        benches.bench_function(name, |b| b.iter(|| bench.step()));
        if is_light && !BY_BACKLOG.contains(&name) {
            assert!(stood && bench.stands(), "{group}: {name} has no standing queue of {}", load.standing);
        }
    }
    benches.finish();
}

/// All loads by their names.
fn loads() -> Vec<(String, QueueLoad)> {
    let mut loads = Vec::new();
    for bytes in [1514, 64] {
        for flows in [1, 1000] {
            for standing in [10, 100, 1000] {
                // 1000 packets of 1514 bytes wait 0.12 ms.
                let load = QueueLoad { flows, bytes, standing, gap: gap(bytes, 100_000) };
                loads.push((format!("light/{standing}p/{flows}f/{bytes}B"), load));
            }
        }
    }
    loads.push(("congested".to_owned(), QueueLoad { flows: 8, bytes: 1514, standing: 100, gap: gap(1514, 10) }));
    loads.push((
        "overloaded".to_owned(),
        QueueLoad { flows: 8, bytes: 1514, standing: u64::MAX, gap: gap(1514, 10_000) },
    ));
    loads
}

/// The table of the README: of each discipline the quickest of many rounds, which take turns, so
/// that what else the machine does is in none of them.
#[expect(clippy::disallowed_methods, reason = "this is about the machine's time")]
fn table() {
    const ROUNDS: u32 = 300;
    const STEPS: u32 = 5000;
    for (name, load) in loads() {
        let bench = |queue| QueueBench { queue, drops: Drops::with_capacity(1024), load, now: Time::ZERO, id: 0 };
        let mut benches: Vec<(QueueBench, Duration)> =
            disciplines(load).into_iter().map(|(_, queue)| (bench(queue), Duration::MAX)).collect();
        for _ in 0..ROUNDS {
            for (bench, least) in &mut benches {
                let begun = Instant::now();
                (0..STEPS).for_each(|_| bench.step());
                *least = begun.elapsed().min(*least);
            }
        }
        let nanos: Vec<f64> = benches.iter().map(|(_, least)| least.as_secs_f64() * 1e9 / f64::from(STEPS)).collect();
        let ratios: Vec<String> = nanos[1..].iter().map(|of| format!("{:.2}", of / nanos[0])).collect();
        let _ = writeln!(io::stdout(), "| {name} | {:.1} | {} |", nanos[0], ratios.join(" | "));
    }
}

fn aqm(c: &mut Criterion) {
    if std::env::var_os("AQM_TABLE").is_some() {
        return table();
    }
    for (name, load) in loads() {
        bench(c, &format!("aqm/{name}"), load);
    }
}

criterion_group!(benches, aqm);
criterion_main!(benches);
