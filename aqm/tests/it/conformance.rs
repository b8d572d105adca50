//! Properties of every queue discipline, whatever its law. Every discipline of the table must have
//! them with its defaults; [`cases`] has configurations that change its course, with the properties
//! that their laws promise.

mod allocations;
mod cake;
mod change;
mod flows;
mod pie_cobalt;
mod red_blue;
mod trees;

use std::collections::BTreeMap;
use std::sync::Arc;

use ackclock_aqm::{
    Codel, CodelConfig, ControlLaw, Counters, Dequeue, Described, DqRateEstimator, DropReason, Drops, Fifo, FifoConfig,
    FqCodel, FqCodelConfig, HeadDrop, HeadDropConfig, Limit, OwnQueue, OwnQueueConfig, Pie, PieConfig, Prio,
    PrioConfig, QueueDisc, QueueSpec, Tally, Variable,
};
use ackclock_testkit::{Ask, QueueAction, QueueStep, StubPacket, queue_steps};
use ackclock_units::{Ecn, Random, Span, Time};
use proptest::prelude::*;

/// A discipline under test and what its law promises.
struct Case {
    name: &'static str,
    make: fn(Random) -> Box<dyn QueueDisc<StubPacket>>,
    /// The most that may wait after any call.
    limit: Limit,
    /// The number of packets of 1000 bytes, all of different flows and at one time, that are
    /// accepted; `None` if the law objects earlier.
    holds: Option<u64>,
    /// Packets leave in order of arrival across flows.
    one_queue: bool,
    /// It may mark.
    marks: bool,
    /// The reasons for which it drops under [`overload`].
    drops: &'static [DropReason],
}

impl Case {
    /// The queue of a packet: packets of one queue keep their order.
    fn queue_of(&self, packet: &StubPacket) -> u64 {
        if self.one_queue {
            0
        } else if self.name.starts_with("dualpi2") || self.name.starts_with("curvy_red") {
            // Its two queues are chosen by the codepoint.
            u64::from(packet.ecn.bits())
        } else {
            packet.flow
        }
    }

    /// It may hold packets back, and not know which one will be first once time has passed.
    fn shapes(&self) -> bool {
        self.name.contains("shaped") || self.name.starts_with("tbf") || self.name == "fq, maxrate"
    }

    /// The packet that it shows leaves first. CAKE's turns depend on the time and on chance; a shaper
    /// does not know which one will be first, and QFQ chooses an aggregate when it is asked for a
    /// packet.
    fn shows_the_next(&self) -> bool {
        !(self.name.starts_with("tbf") || self.name == "fq, maxrate" || self.name == "qfq, classes")
            && (!self.name.starts_with("cake") || self.one_queue)
            && (!self.name.contains("shaped") || self.one_queue)
    }

    /// A packet that was marked on arrival may be discarded while it waits.
    fn discards_marked(&self) -> bool {
        self.name.starts_with("choke") || self.name.starts_with("sfq")
    }
}

fn cases() -> Vec<Case> {
    let mut cases = vec![
        Case {
            name: "pfifo",
            make: |_| Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(20) })),
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "pfifo_head_drop",
            make: |_| Box::new(HeadDrop::new(HeadDropConfig { limit: 20 })),
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "bfifo",
            make: |_| Box::new(Fifo::new(FifoConfig { limit: Limit::Bytes(100_000) })),
            limit: Limit::Bytes(100_000),
            holds: Some(100),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "prio",
            make: |_| Box::new(Prio::new(PrioConfig { limit: 20, ..PrioConfig::default() })),
            limit: Limit::Packets(20),
            holds: Some(20),
            // The packets have no codepoint, and all one band.
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "codel",
            make: |_| Box::new(Codel::new(CodelConfig { limit: 60, ..CodelConfig::default() })),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Delay],
        },
        Case {
            name: "codel ecn, eager",
            make: |_| {
                Box::new(Codel::new(CodelConfig {
                    target: Span::from_micros(100),
                    interval: Span::from_millis(2),
                    ecn: true,
                    ce_threshold: Some(Span::from_millis(1)),
                    mtu: 0,
                    ..CodelConfig::default()
                }))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Delay],
        },
        Case {
            name: "codel, no interval",
            make: |_| {
                Box::new(Codel::new(CodelConfig { target: Span::ZERO, interval: Span::ZERO, ..CodelConfig::default() }))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Delay],
        },
        Case {
            name: "pie",
            make: |random| Box::new(Pie::new(PieConfig { limit: 60, ..PieConfig::default() }, random)),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "pie ecn, small steps",
            make: |random| {
                let config = PieConfig {
                    target: Span::from_micros(100),
                    tupdate: Span::from_millis(1),
                    alpha: 1,
                    beta: 1,
                    ecn: true,
                    bytemode: true,
                    derandomize: false,
                    mtu: 40,
                    ..PieConfig::default()
                };
                Box::new(Pie::new(config, random))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "codel ecn, exact",
            make: |_| {
                let config = CodelConfig { ecn: true, control_law: ControlLaw::Rfc8289, ..CodelConfig::default() };
                Box::new(Codel::new(config))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Delay],
        },
        Case {
            name: "pie, departure rate by the RFC",
            make: |random| {
                let estimator = Some(DqRateEstimator::Rfc8033);
                let config = PieConfig { limit: 60, dq_rate_estimator: estimator, ..PieConfig::default() };
                Box::new(Pie::new(config, random))
            },
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "pie ecn, departure rate",
            make: |random| {
                let config =
                    PieConfig { ecn: true, dq_rate_estimator: Some(DqRateEstimator::Linux), ..PieConfig::default() };
                Box::new(Pie::new(config, random))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "fq_codel",
            make: |random| Box::new(FqCodel::new(FqCodelConfig { limit: 60, ..FqCodelConfig::default() }, random)),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Delay],
        },
        Case {
            name: "fq_codel, memory",
            make: |random| {
                let config = FqCodelConfig {
                    flows: 3,
                    quantum: 300,
                    memory_limit: 100_000,
                    drop_batch: 1,
                    ecn: false,
                    ..FqCodelConfig::default()
                };
                Box::new(FqCodel::new(config, random))
            },
            // Each takes 577 bytes of memory and more; beyond the limit at least one goes for one
            // that comes.
            limit: Limit::Packets(100_000 / 577),
            // 63 * 1576 = 99,288.
            holds: Some(63),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Memory, DropReason::Delay],
        },
        Case {
            name: "fq_codel, one flow, ce_threshold",
            make: |random| {
                let config = FqCodelConfig {
                    flows: 1,
                    ecn: false,
                    target: Span::from_micros(100),
                    interval: Span::from_millis(2),
                    ce_threshold: Some(Span::from_millis(1)),
                    ..FqCodelConfig::default()
                };
                Box::new(FqCodel::new(config, random))
            },
            limit: Limit::Packets(10_240),
            holds: Some(10_240),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Delay],
        },
    ];
    cases.extend(flows::cases());
    cases.extend(red_blue::cases());
    cases.extend(pie_cobalt::cases());
    cases.extend(cake::cases());
    cases.extend(trees::cases());
    cases
}

/// Every discipline of the table out of the box, each with a case that promises nothing of its law.
/// A discipline with queues that are not chosen by flow says so in [`Case::queue_of`].
fn table() -> Vec<(QueueSpec, Case)> {
    let case = |spec: QueueSpec| {
        let case = Case {
            name: spec.name(),
            make: |_| unreachable!("made from the table"),
            limit: Limit::Packets(u64::MAX),
            holds: None,
            one_queue: false,
            marks: true,
            drops: &[],
        };
        (spec, case)
    };
    QueueSpec::all().into_iter().map(case).collect()
}

/// Every decision of a run, to compare runs by.
type Log = Vec<(Time, StubPacket, Option<DropReason>)>;

/// Runs `steps` through a discipline and holds it against a model that knows each packet by its
/// number.
fn run(case: &Case, seed: u64, steps: &[QueueStep]) -> (Log, Counters) {
    run_on((case.make)(Random::for_component(seed, 0, case.name)), case, steps)
}

fn run_on(mut queue: Box<dyn QueueDisc<StubPacket>>, case: &Case, steps: &[QueueStep]) -> (Log, Counters) {
    let mut model = Model::new(case);
    let mut drops = Drops::new();
    let mut now = Time::from_millis(5);
    for (id, step) in steps.iter().enumerate() {
        now += step.gap;
        match step.action {
            QueueAction::Offer { flow, wire_len, ecn } => {
                let packet = StubPacket { flow, id: id as u32, wire_len, ecn };
                model.offered(packet);
                queue.enqueue(now, packet, &mut drops);
            }
            QueueAction::Send => {
                let waited = queue.backlog().packets > 0;
                let peeked = queue.peek().map(|entry| entry.packet.id);
                let dequeued = queue.dequeue(now, &mut drops);
                if let Dequeue::NotBefore(next) = dequeued {
                    assert!(case.shapes() && waited && next > now, "{}: held until {next:?}", case.name);
                } else {
                    assert_eq!(dequeued != Dequeue::Empty, waited, "{}: work conservation", case.name);
                }
                if dequeued == Dequeue::Empty {
                    queue.idle(now);
                }
                let entry = dequeued.packet();
                let first = drops.first().map(|drop| drop.packet.id).or(entry.map(|entry| entry.packet.id));
                assert_eq!(peeked.is_some(), waited, "{}: something is looked at first", case.name);
                if case.shows_the_next() {
                    assert_eq!(peeked, first, "{}: what is looked at first leaves first, sent or discarded", case.name);
                }
                if let Some(entry) = entry {
                    assert_eq!(
                        Some(&entry.enqueued_at),
                        model.arrivals.get(&entry.packet.id),
                        "{}: arrival",
                        case.name
                    );
                    model.left(now, entry.packet, None);
                }
            }
        }
        for drop in drops.drain(..) {
            model.left(now, drop.packet, Some(drop.reason));
        }
        if let QueueAction::Offer { .. } = step.action {
            model.arrivals.insert(id as u32, now);
        }
        model.check(&*queue);
    }
    (model.log, *queue.counters())
}

struct Model<'a> {
    case: &'a Case,
    waiting: BTreeMap<u32, StubPacket>,
    arrivals: BTreeMap<u32, Time>,
    bytes: u64,
    offered: Tally,
    sent: Tally,
    dropped: Tally,
    by_reason: [u64; DropReason::COUNT],
    /// Packets that became CE in the queue, and those that had been CE already.
    marked: u64,
    came_marked: u64,
    /// The number of the last packet sent, by [`Case::queue_of`].
    last_sent: BTreeMap<u64, u32>,
    log: Log,
}

impl Model<'_> {
    fn new(case: &Case) -> Model<'_> {
        Model {
            case,
            waiting: BTreeMap::new(),
            arrivals: BTreeMap::new(),
            bytes: 0,
            offered: Tally::default(),
            sent: Tally::default(),
            dropped: Tally::default(),
            by_reason: [0; DropReason::COUNT],
            marked: 0,
            came_marked: 0,
            last_sent: BTreeMap::new(),
            log: Log::new(),
        }
    }

    fn offered(&mut self, packet: StubPacket) {
        self.offered.add(packet.wire_len);
        self.bytes += u64::from(packet.wire_len);
        self.came_marked += u64::from(packet.ecn == Ecn::Ce);
        self.waiting.insert(packet.id, packet);
    }

    fn left(&mut self, now: Time, packet: StubPacket, reason: Option<DropReason>) {
        let name = self.case.name;
        let original = self.waiting.remove(&packet.id).expect("a packet leaves once");
        self.bytes -= u64::from(packet.wire_len);
        if packet.ecn != original.ecn {
            assert!(
                self.case.marks && packet.ecn == Ecn::Ce && original.ecn.is_capable(),
                "{name}: {original:?} marked"
            );
            self.marked += 1;
        }
        assert_eq!(packet, StubPacket { ecn: packet.ecn, ..original }, "{name}: only the codepoint may change");
        match reason {
            Some(reason) => {
                let kept = packet.ecn == original.ecn || self.case.discards_marked();
                assert!(kept, "{name}: marked and dropped");
                self.dropped.add(packet.wire_len);
                self.by_reason[reason as usize] += 1;
            }
            None => {
                self.sent.add(packet.wire_len);
                let last = self.last_sent.insert(self.case.queue_of(&original), packet.id);
                assert!(last < Some(packet.id), "{name}: reordered");
            }
        }
        self.log.push((now, packet, reason));
    }

    fn check(&self, queue: &dyn QueueDisc<StubPacket>) {
        let name = self.case.name;
        let counters = queue.counters();
        let backlog = queue.backlog();
        let add = |a: Tally, b: Tally| Tally { packets: a.packets + b.packets, bytes: a.bytes + b.bytes };
        assert_eq!(counters.offered, add(counters.enqueued, counters.dropped_on_enqueue), "{name}");
        assert_eq!(counters.enqueued, add(add(counters.dequeued, counters.dropped_on_dequeue), backlog), "{name}");
        assert_eq!(counters.offered, self.offered, "{name}");
        assert_eq!(counters.dequeued, self.sent, "{name}");
        assert_eq!(add(counters.dropped_on_enqueue, counters.dropped_on_dequeue), self.dropped, "{name}");
        assert_eq!(counters.dropped, self.by_reason, "{name}");
        assert_eq!(backlog, Tally { packets: self.waiting.len() as u64, bytes: self.bytes }, "{name}");
        // A packet marked on arrival is counted at once but seen only when it leaves; one that came
        // with CE may be counted.
        let most = self.marked + self.came_marked + self.waiting.len() as u64;
        assert!((self.marked..=most).contains(&counters.marked.packets), "{name}: {} marks", counters.marked.packets);
        let within = match self.case.limit {
            Limit::Packets(limit) => backlog.packets <= limit,
            Limit::Bytes(limit) => backlog.bytes <= limit,
        };
        assert!(within, "{name}: {backlog:?} waits");
        check_variables(name, queue);
    }
}

/// The variables have names of their own, those of the probe are among them, and probabilities are
/// probabilities.
fn check_variables(name: &str, queue: &dyn QueueDisc<StubPacket>) {
    let mut seen = BTreeMap::new();
    queue.variables(&mut |variable, value| {
        if let Variable::Probability(p) = value {
            assert!((0.0..=1.0).contains(&p), "{name}: {variable} {p}");
        }
        assert_eq!(seen.insert(variable, value), None, "{name}: {variable}");
    });
    queue.probe().variables(&mut |variable, value| assert_eq!(seen.get(variable), Some(&value), "{name}: {variable}"));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    #[test]
    fn every_discipline_keeps_the_contract(steps in queue_steps(600)) {
        for case in cases() {
            run(&case, 1, &steps);
        }
        for (spec, case) in table() {
            run_on(spec.build(Random::for_component(1, 0, case.name)), &case, &steps);
        }
    }
}

/// The same discipline as one from outside, which sees descriptions of packets.
fn from_outside(spec: &QueueSpec) -> QueueSpec {
    let inner = spec.clone();
    let own = OwnQueue::new("mine", move |_, random| inner.build::<Described>(random));
    QueueSpec::Own(OwnQueueConfig::new(Arc::new(own)))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// From outside each discipline decides as it does inside, with the same books once all have
    /// left: a mark counts from outside when its packet leaves.
    #[test]
    fn every_discipline_is_the_same_from_outside(mut steps in queue_steps(400)) {
        let send = QueueStep { gap: Span::ZERO, action: QueueAction::Send };
        steps.extend(vec![send; steps.len()]);
        for (spec, case) in table() {
            let run = |spec: &QueueSpec| run_on(spec.build(Random::for_component(1, 0, case.name)), &case, &steps);
            assert_eq!(run(&from_outside(&spec)), run(&spec), "{}", case.name);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(32))]

    /// Only `idle` reports an idle link: asking an empty discipline changes nothing.
    #[test]
    fn asking_an_empty_discipline_changes_nothing(steps in queue_steps(300)) {
        for case in cases() {
            let decisions = |in_vain: bool| {
                let mut queue = (case.make)(Random::for_component(1, 0, case.name));
                let mut drops = Drops::new();
                let (mut now, mut log) = (Time::from_millis(5), Vec::new());
                for (id, step) in steps.iter().enumerate() {
                    now += step.gap;
                    match step.action {
                        QueueAction::Offer { flow, wire_len, ecn } => {
                            queue.enqueue(now, StubPacket { flow, id: id as u32, wire_len, ecn }, &mut drops);
                        }
                        QueueAction::Send if queue.backlog().packets > 0 || in_vain => {
                            log.push((queue.dequeue(now, &mut drops).packet(), queue.probe()));
                        }
                        QueueAction::Send => log.push((None, queue.probe())),
                    }
                }
                // Timers are made up for when there is a packet to decide about.
                log.retain(|(entry, _)| entry.is_some());
                (log, drops, *queue.counters())
            };
            prop_assert_eq!(decisions(true), decisions(false), "{}", case.name);
        }
    }
}

#[test]
fn every_discipline_has_a_case() {
    let names: Vec<&str> = cases().iter().map(|case| case.name).collect();
    for name in QueueSpec::NAMES {
        assert!(names.contains(name), "`cases` lacks {name}");
    }
}

/// As many as the parameters say get in at once, and not one more; what makes room for it may be
/// one inside.
#[test]
fn the_limit_is_reached_exactly() {
    let now = Time::from_millis(5);
    for case in cases() {
        let mut queue = (case.make)(Random::for_component(1, 0, case.name));
        let mut drops = Drops::new();
        let mut offer = |id: u32| {
            let packet = StubPacket { flow: u64::from(id), id, wire_len: 1000, ecn: Ecn::Ect0 };
            queue.enqueue(now, packet, &mut drops);
            (queue.backlog().packets, drops.first().map(|drop| drop.reason))
        };
        let full = [Some(DropReason::Limit), Some(DropReason::Memory)];
        if let Some(holds) = case.holds {
            for id in 0..holds as u32 {
                assert_eq!(offer(id), (u64::from(id) + 1, None), "{}", case.name);
            }
            let (waiting, reason) = offer(u32::MAX);
            assert!(waiting <= holds && full.contains(&reason), "{}: {waiting} wait, {reason:?}", case.name);
        } else {
            let reason = (0..1000).find_map(|id| offer(id).1);
            assert!(reason.is_some() && !full.contains(&reason), "{}: {reason:?}", case.name);
        }
    }
}

/// Three flows that send 1.2 times what the link carries (10 Mbit/s) for 54 s, two of them able to
/// carry marks.
fn overload() -> Vec<QueueStep> {
    let mut steps = Vec::new();
    for n in 0..99_000u64 {
        let action = if n % 11 < 6 {
            let ecn = if n % 3 == 0 { Ecn::NotEct } else { Ecn::Ect0 };
            QueueAction::Offer { flow: n % 3, wire_len: 1514, ecn }
        } else {
            QueueAction::Send
        };
        let gap = Span::from_nanos(if n % 11 < 6 { 0 } else { 1_211_200 });
        steps.push(QueueStep { gap, action });
    }
    steps
}

/// The model is held against every branch that a case is there for.
#[test]
fn overload_reaches_every_law() {
    let steps = overload();
    for case in cases() {
        let (_, counters) = run(&case, 1, &steps);
        for reason in DropReason::ALL {
            let drops = counters.dropped[reason as usize];
            assert_eq!(drops > 0, case.drops.contains(&reason), "{}: {drops} {}", case.name, reason.name());
        }
        assert_eq!(counters.marked.packets > 0, case.marks, "{}: {} marks", case.name, counters.marked.packets);
    }
}

#[test]
fn same_arrivals_and_seed_same_decisions() {
    let steps = overload();
    for case in cases() {
        assert_eq!(run(&case, 1, &steps), run(&case, 1, &steps), "{}", case.name);
    }
    for (spec, case) in table() {
        let run = || run_on(spec.build(Random::for_component(1, 0, case.name)), &case, &steps);
        assert_eq!(run(), run(), "{}", case.name);
    }
}

#[test]
fn another_seed_gives_other_random_drops() {
    let steps = overload();
    // AVQ drops early without chance.
    let random = |case: &Case| case.drops.contains(&DropReason::Early) && !case.name.starts_with("avq");
    for case in cases().into_iter().filter(random) {
        assert_ne!(run(&case, 1, &steps).0, run(&case, 2, &steps).0, "{}", case.name);
    }
}
