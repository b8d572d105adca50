//! Parameters that change while packets wait.

use std::any::{Any, TypeId};

use ackclock_aqm::{
    Afd, AfdConfig, Avq, AvqConfig, Blue, BlueConfig, Cake, CakeConfig, ChangeError, Choke, ChokeConfig, Cobalt,
    CobaltConfig, CurvyRed, CurvyRedConfig, Diffserv, DualPi2, DualPi2Config, Ets, EtsConfig, FlowMode, Fq, FqConfig,
    FqPie, FqPieConfig, Framing, Hfsc, HfscConfig, Htb, HtbConfig, Pi2, Pi2Config, Prio, PrioConfig, Qfq, QfqConfig,
    Red, RedConfig, Rem, RemConfig, Series, SeriesConfig, Sfb, SfbConfig, Sfq, SfqConfig, SfqRed, Tbf, TbfConfig, Wred,
    WredConfig,
};

use super::*;

/// The effect of a change on waiting packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Waiting {
    /// It discards those beyond the new limit.
    Trimmed,
    /// All stay.
    Kept,
    /// It discards all and starts anew.
    Discarded,
}

/// A discipline with two sets of parameters.
struct Change {
    name: &'static str,
    make: fn() -> Box<dyn QueueDisc<StubPacket>>,
    /// As it was made.
    first: Box<dyn Any>,
    /// With another limit, and others besides.
    second: Box<dyn Any>,
    limit: Limit,
    waiting: Waiting,
}

fn random() -> Random {
    Random::for_component(1, 0, "change")
}

fn changes() -> Vec<Change> {
    macro_rules! change {
        ($name:literal, $waiting:ident, $limit:expr, $first:expr, $second:expr, |$config:pat_param| $make:expr) => {
            Change {
                name: $name,
                make: || {
                    let $config = $first;
                    Box::new($make)
                },
                first: Box::new($first),
                second: Box::new($second),
                limit: $limit,
                waiting: Waiting::$waiting,
            }
        };
    }
    let ms = Span::from_millis;
    let red = RedConfig { limit: 60_000, ..RedConfig::default() };
    vec![
        change!(
            "prio",
            Kept,
            Limit::Packets(7),
            PrioConfig::default(),
            PrioConfig { limit: 7, ..PrioConfig::default() },
            |config| Prio::new(config)
        ),
        change!(
            "pfifo",
            Kept,
            Limit::Packets(7),
            FifoConfig::default(),
            FifoConfig { limit: Limit::Packets(7) },
            |config| Fifo::new(config)
        ),
        change!(
            "pfifo_head_drop",
            Kept,
            Limit::Packets(7),
            HeadDropConfig::default(),
            HeadDropConfig { limit: 7 },
            |config| HeadDrop::new(config)
        ),
        change!(
            "codel",
            Trimmed,
            Limit::Packets(7),
            CodelConfig { target: Span::from_millis(1), ..CodelConfig::default() },
            CodelConfig { limit: 7, target: ms(2), interval: ms(20), ecn: true, ..CodelConfig::default() },
            |config| Codel::new(config)
        ),
        change!(
            "pie",
            Trimmed,
            Limit::Packets(7),
            PieConfig::default(),
            PieConfig { limit: 7, target: ms(2), tupdate: ms(4), ecn: true, ..PieConfig::default() },
            |config| Pie::new(config, random())
        ),
        change!(
            "pie, another estimator",
            Trimmed,
            Limit::Packets(60),
            PieConfig { dq_rate_estimator: Some(DqRateEstimator::Linux), ..PieConfig::default() },
            PieConfig { limit: 60, dq_rate_estimator: Some(DqRateEstimator::Rfc8033), ..PieConfig::default() },
            |config| Pie::new(config, random())
        ),
        change!(
            "fq_codel",
            Trimmed,
            Limit::Packets(7),
            FqCodelConfig { target: Span::from_millis(1), ..FqCodelConfig::default() },
            FqCodelConfig { limit: 7, quantum: 300, interval: ms(10), drop_batch: 3, ..FqCodelConfig::default() },
            |config| FqCodel::new(config, random())
        ),
        change!(
            "fq_codel, memory",
            Trimmed,
            // Each packet takes 577 bytes or more.
            Limit::Packets(10),
            FqCodelConfig::default(),
            FqCodelConfig { memory_limit: 10 * 577, ecn: false, ..FqCodelConfig::default() },
            |config| FqCodel::new(config, random())
        ),
        change!(
            "fq_pie",
            Trimmed,
            Limit::Packets(7),
            FqPieConfig::default(),
            FqPieConfig { limit: 7, quantum: 300, tupdate: ms(3), target: ms(1), ..FqPieConfig::default() },
            |config| FqPie::new(config, random())
        ),
        change!(
            "red",
            Discarded,
            Limit::Bytes(0),
            RedConfig { limit: 60_000, ..RedConfig::default() },
            RedConfig { ecn: true, probability: 0.1, ..red.clone() },
            |config| Red::new(config, random())
        ),
        change!(
            "wred",
            Trimmed,
            Limit::Bytes(7000),
            WredConfig::default(),
            WredConfig { limit: 7000, ewma: 3, probability: 0.5, ecn: true, ..WredConfig::default() },
            |config| Wred::new(config, random())
        ),
        change!(
            "choke",
            Kept,
            // The ring has 1024 places either way.
            Limit::Packets(600),
            ChokeConfig { min: Some(400), max: Some(500), ..ChokeConfig::default() },
            ChokeConfig { limit: 600, probability: 0.1, ecn: true, ..ChokeConfig::default() },
            |config| Choke::new(config, random())
        ),
        change!(
            "avq",
            Trimmed,
            Limit::Bytes(7000),
            AvqConfig { limit: 60_000, ..AvqConfig::default() },
            AvqConfig { limit: 7000, gamma: 0.9, ecn: true, ..AvqConfig::default() },
            |config| Avq::new(config)
        ),
        change!(
            "blue",
            Trimmed,
            // One passes the limit of 7.
            Limit::Packets(8),
            BlueConfig { limit: Limit::Packets(40), ..BlueConfig::default() },
            BlueConfig { limit: Limit::Packets(7), inc: 0.02, max: 0.3, ecn: true, ..BlueConfig::default() },
            |config| Blue::new(config, random())
        ),
        change!(
            "sfb",
            Discarded,
            Limit::Packets(0),
            SfbConfig::default(),
            SfbConfig { limit: 50, target: Some(3), hash_seed: Some(5), ..SfbConfig::default() },
            |config| Sfb::new(config, random())
        ),
        change!(
            "rem",
            Trimmed,
            Limit::Packets(7),
            RemConfig::default(),
            RemConfig { limit: 7, gamma: 0.01, ecn: true, ..RemConfig::default() },
            |config| Rem::new(config, random())
        ),
        change!(
            "afd",
            Trimmed,
            Limit::Packets(7),
            AfdConfig::default(),
            AfdConfig { limit: 7, target: Some(3), sample: 2, alpha: 1.0, ..AfdConfig::default() },
            |config| Afd::new(config, random())
        ),
        change!(
            "pi2",
            Trimmed,
            Limit::Packets(7),
            Pi2Config::default(),
            Pi2Config { limit: 7, tupdate: ms(2), target: ms(5), bytemode: true, ..Pi2Config::default() },
            |config| Pi2::new(config, random())
        ),
        change!(
            "fq",
            Trimmed,
            // Besides the eight of the fast path.
            Limit::Packets(15),
            FqConfig::default(),
            FqConfig { limit: 7, flow_limit: 3, quantum: 300, ..FqConfig::default() },
            |config| Fq::new(config, random())
        ),
        change!(
            "drr",
            Kept,
            Limit::Packets(7),
            EtsConfig::default(),
            EtsConfig { limit: 7, quantum: 300, ..EtsConfig::default() },
            |config| Ets::new(config)
        ),
        change!(
            "ets",
            Kept,
            Limit::Packets(7),
            EtsConfig::ets(),
            EtsConfig { limit: 7, strict: Some(2), ..EtsConfig::ets() },
            |config| Ets::new(config)
        ),
        change!(
            "tbf",
            Kept,
            Limit::Bytes(7000),
            TbfConfig { limit: Some(60_000), ..TbfConfig::default() },
            TbfConfig { limit: Some(7000), burst: 70_000, ..TbfConfig::default() },
            |config| Tbf::new(config)
        ),
        change!(
            "htb",
            Kept,
            Limit::Packets(67),
            HtbConfig { direct_qlen: 1000, default: None, ..trees::htb() },
            HtbConfig { direct_qlen: 7, ..trees::htb() },
            |config| Htb::new(config, random())
        ),
        change!(
            "hfsc",
            Kept,
            Limit::Packets(67),
            HfscConfig { direct_qlen: 1000, default: None, ..trees::hfsc() },
            HfscConfig { direct_qlen: 7, ..trees::hfsc() },
            |config| Hfsc::new(config, random())
        ),
        change!(
            "qfq",
            Kept,
            Limit::Packets(67),
            QfqConfig { direct_qlen: 1000, default: None, ..trees::qfq() },
            QfqConfig { direct_qlen: 7, ..trees::qfq() },
            |config| Qfq::new(config, random())
        ),
        change!(
            "series",
            Kept,
            Limit::Packets(7),
            SeriesConfig::default(),
            SeriesConfig { stages: vec![trees::stage("queue", trees::pfifo(7))] },
            |config| Series::new(config, random())
        ),
        change!(
            "sfq",
            Trimmed,
            Limit::Packets(7),
            SfqConfig::default(),
            SfqConfig {
                limit: 7,
                quantum: 300,
                perturb: ms(20),
                headdrop: true,
                flow_red: Some(SfqRed::default()),
                ..SfqConfig::default()
            },
            |config| Sfq::new(config, random())
        ),
        change!(
            "cobalt",
            Kept,
            Limit::Packets(7),
            CobaltConfig::default(),
            CobaltConfig { limit: 7, target: ms(1), p_inc: 1 << 28, ..CobaltConfig::default() },
            |config| Cobalt::new(config, random())
        ),
        change!(
            "cake",
            Kept,
            // Each packet takes 577 bytes or more.
            Limit::Packets(10),
            CakeConfig::default(),
            CakeConfig {
                flowmode: FlowMode::Flows,
                diffserv: Diffserv::Diffserv8,
                framing: Some(Framing::Ethernet),
                memlimit: Some(10 * 577),
                ..CakeConfig::default()
            },
            |config| Cake::new(config, random())
        ),
        change!(
            "dualpi2",
            Trimmed,
            Limit::Packets(7),
            DualPi2Config::default(),
            DualPi2Config { limit: 7, tupdate: ms(2), classic_protection: 50, ..DualPi2Config::default() },
            |config| DualPi2::new(config, random())
        ),
        change!(
            "curvy_red",
            Trimmed,
            Limit::Bytes(1514),
            CurvyRedConfig::default(),
            CurvyRedConfig { limit: 1514, tshift: None, min_th: ms(1), integer: true, ..CurvyRedConfig::default() },
            |config| CurvyRed::new(config, random())
        ),
    ]
}

#[test]
fn every_discipline_that_changes_is_tried() {
    let tried: Vec<TypeId> = changes().iter().map(|change| (*change.first).type_id()).collect();
    for spec in QueueSpec::all() {
        let changed = spec.build::<StubPacket>(random()).change(Time::ZERO, spec.config(), &mut Drops::new());
        assert!(changed.is_err() || tried.contains(&spec.config().type_id()), "`changes` lacks {}", spec.name());
    }
}

/// Runs `steps`, calls `between` before each, and keeps what became of each packet, by its number.
fn follow(
    change: &Change,
    steps: &[QueueStep],
    mut between: impl FnMut(usize, Time, &mut dyn QueueDisc<StubPacket>, &mut Drops<StubPacket>),
) -> Vec<Option<DropReason>> {
    let mut queue = (change.make)();
    let (mut drops, mut now) = (Drops::new(), Time::from_millis(5));
    let (mut waiting, mut log) = (BTreeMap::new(), Vec::new());
    for (id, step) in steps.iter().enumerate() {
        now += step.gap;
        between(id, now, &mut *queue, &mut drops);
        let mut sent = None;
        match step.action {
            QueueAction::Offer { flow, wire_len, ecn } => {
                waiting.insert(id as u32, wire_len);
                queue.enqueue(now, StubPacket { flow, id: id as u32, wire_len, ecn }, &mut drops);
            }
            QueueAction::Send => sent = queue.ask(now, &mut drops),
        }
        let left = drops.drain(..).map(|drop| (drop.packet, Some(drop.reason)));
        for (packet, reason) in left.chain(sent.map(|entry| (entry.packet, None))) {
            assert!(waiting.remove(&packet.id).is_some(), "{}: a packet leaves once", change.name);
            log.push(reason);
        }
        let bytes = waiting.values().map(|&bytes| u64::from(bytes)).sum();
        assert_eq!(queue.backlog(), Tally { packets: waiting.len() as u64, bytes }, "{}", change.name);
        assert!(queue.counters().balance(queue.backlog()), "{}", change.name);
        assert_eq!(queue.peek().is_some(), !waiting.is_empty(), "{}", change.name);
    }
    log
}

fn within(backlog: Tally, limit: Limit) -> bool {
    match limit {
        Limit::Packets(limit) => backlog.packets <= limit,
        Limit::Bytes(limit) => backlog.bytes <= limit,
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// There and back several times. Each law goes on, and the limit holds from the change on, or
    /// from when the queue was last within it.
    #[test]
    fn a_change_keeps_the_books_and_the_limit(steps in queue_steps(400), period in 5usize..80) {
        for change in changes() {
            let mut second = false;
            let mut kept = false;
            follow(&change, &steps, |step, now, queue, drops| {
                let name = change.name;
                if step % period == period - 1 {
                    second = !second;
                    let before = queue.backlog();
                    let config = if second { &change.second } else { &change.first };
                    assert_eq!(queue.change(now, &**config, drops), Ok(()), "{name}");
                    match change.waiting {
                        Waiting::Trimmed => kept = false,
                        Waiting::Kept => {
                            assert_eq!((queue.backlog(), drops.len()), (before, 0), "{name}");
                            kept = second;
                        }
                        Waiting::Discarded => {
                            assert_eq!(queue.backlog(), Tally::default(), "{name}");
                            assert_eq!(drops.len() as u64, before.packets, "{name}");
                        }
                    }
                }
                kept &= !within(queue.backlog(), change.limit);
                if second && !kept && change.waiting != Waiting::Discarded {
                    assert!(within(queue.backlog(), change.limit), "{name}: {:?}", queue.backlog());
                }
            });
        }
    }

    /// Parameters that are the same are no change, unless the discipline starts anew.
    #[test]
    fn the_same_parameters_change_nothing(steps in queue_steps(400), period in 1usize..20) {
        for change in changes().into_iter().filter(|change| change.waiting != Waiting::Discarded) {
            let without = follow(&change, &steps, |_, _, _, _| {});
            let with = follow(&change, &steps, |step, now, queue, drops| {
                if step % period == 0 {
                    assert_eq!(queue.change(now, &*change.first, drops), Ok(()), "{}", change.name);
                }
            });
            prop_assert_eq!(without, with, "{}", change.name);
        }
    }
}

/// 100 packets of 10 flows wait. Which ones go, and for which reason.
#[test]
fn what_waits_beyond_the_new_limit_goes() {
    for change in changes() {
        let mut queue = (change.make)();
        let mut drops = Drops::new();
        let mut id = 0;
        while queue.backlog().packets < 40 {
            let ecn = if id % 2 == 0 { Ecn::NotEct } else { Ecn::Ect1 };
            queue.enqueue(
                Time::from_millis(1),
                StubPacket { flow: id % 10, id: id as u32, wire_len: 100, ecn },
                &mut drops,
            );
            id += 1;
        }
        drops.clear();
        queue.change(Time::from_millis(1), &*change.second, &mut drops).expect("parameters of its own");
        let left = queue.backlog().packets;
        assert_eq!(left + drops.len() as u64, 40, "{}", change.name);
        let reasons = [DropReason::Limit, DropReason::Memory];
        assert!(drops.iter().all(|drop| reasons.contains(&drop.reason)), "{}: {drops:?}", change.name);
        match change.name {
            // Heads: the oldest.
            "codel" | "pie" | "pi2" | "rem" | "afd" | "blue" => {
                // BLUE takes in the packet that passes the limit.
                assert_eq!(left, 7 + u64::from(change.name == "blue"), "{}", change.name);
                assert!(drops.iter().is_sorted_by_key(|drop| drop.packet.id));
                assert!(
                    queue.peek().is_some_and(|head| head.packet.id > drops.last().map_or(0, |drop| drop.packet.id))
                );
            }
            // By turns, of which the first is still one of 1514 bytes: four packets of each flow.
            "fq_codel" | "fq_pie" => {
                assert_eq!(left, 7);
                assert!(drops.iter().map(|drop| drop.packet.flow).eq((0..33).map(|n| n / 4)), "{drops:?}");
            }
            // 10 * 577 bytes hold eight packets of 676.
            "fq_codel, memory" => {
                assert_eq!(left, 8);
                assert!(drops.iter().all(|drop| drop.reason == DropReason::Memory));
            }
            // 20 wait in each queue: the classic one goes first.
            "dualpi2" => {
                assert_eq!(left, 7);
                assert!(drops[..20].iter().all(|drop| drop.packet.ecn == Ecn::NotEct), "{drops:?}");
            }
            // 15 packets of 100 bytes.
            "curvy_red" => {
                assert_eq!(left, 15);
                assert!(drops[..20].iter().all(|drop| drop.packet.ecn == Ecn::NotEct), "{drops:?}");
            }
            // The fast path first, in order of arrival.
            "fq" => {
                assert_eq!(left, 7);
                assert!(drops[..8].iter().map(|drop| drop.packet.id).eq(0..8), "{drops:?}");
            }
            // In turn, the longest first, until each of seven flows has one.
            "sfq" => assert_eq!(left, 7),
            "red" | "sfb" => assert_eq!(left, 0),
            _ => assert_eq!(left, 40, "{}", change.name),
        }
    }
}

/// Nothing changes with an error.
#[test]
fn what_a_discipline_does_not_take_it_refuses() {
    let now = Time::from_secs(1);
    let refused = |queue: &mut dyn QueueDisc<StubPacket>, config: &dyn Any| {
        let mut drops = Drops::new();
        queue.enqueue(now, StubPacket { flow: 1, id: 1, wire_len: 1000, ecn: Ecn::NotEct }, &mut drops);
        let before = format!("{queue:?}");
        let error = queue.change(now, config, &mut drops).expect_err("not taken");
        assert_eq!((format!("{queue:?}"), drops.len()), (before, 0));
        error
    };
    let all = changes();
    for (n, change) in all.iter().enumerate() {
        for other in &all {
            if (*other.first).type_id() != (*change.first).type_id() {
                assert_eq!(
                    refused(&mut *(all[n].make)(), &*other.first),
                    ChangeError::OtherDiscipline,
                    "{}",
                    change.name
                );
            }
        }
    }
    let bytes = FifoConfig { limit: Limit::Bytes(1) };
    assert_eq!(refused(&mut Fifo::new(FifoConfig::default()), &bytes), ChangeError::OtherDiscipline);
    let rfc = CodelConfig { control_law: ControlLaw::Rfc8289, ..CodelConfig::default() };
    assert_eq!(refused(&mut Codel::new(CodelConfig::default()), &rfc), ChangeError::Fixed("control_law"));
    let mut fq_codel = FqCodel::new(FqCodelConfig::default(), random());
    let [flows, seed] = [
        FqCodelConfig { flows: 7, ..FqCodelConfig::default() },
        FqCodelConfig { hash_seed: Some(1), ..FqCodelConfig::default() },
    ];
    assert_eq!(refused(&mut fq_codel, &flows), ChangeError::Fixed("flows"));
    assert_eq!(refused(&mut fq_codel, &seed), ChangeError::Fixed("hash_seed"));
    let mut fq_pie = FqPie::new(FqPieConfig::default(), random());
    assert_eq!(refused(&mut fq_pie, &FqPieConfig { flows: 7, ..FqPieConfig::default() }), ChangeError::Fixed("flows"));
    let zeros = [
        FqPieConfig { quantum: 0, ..FqPieConfig::default() },
        FqPieConfig { tupdate: Span::ZERO, ..FqPieConfig::default() },
    ];
    for zero in zeros {
        assert!(matches!(refused(&mut fq_pie, &zero), ChangeError::Invalid(_)));
    }
    let mut fq = Fq::new(FqConfig::default(), random());
    let other = FqConfig { orphan_mask: 7, ..FqConfig::default() };
    assert_eq!(refused(&mut fq, &other), ChangeError::Fixed("orphan_mask"));
    assert_eq!(refused(&mut Ets::new(EtsConfig::default()), &EtsConfig::ets()), ChangeError::OtherDiscipline);
    let mut sfq = Sfq::new(SfqConfig::default(), random());
    for (name, fixed) in [
        ("flows", SfqConfig { flows: 7, limit: 7, ..SfqConfig::default() }),
        ("divisor", SfqConfig { divisor: 2048, ..SfqConfig::default() }),
        ("hash_seed", SfqConfig { hash_seed: Some(1), ..SfqConfig::default() }),
    ] {
        assert_eq!(refused(&mut sfq, &fixed), ChangeError::Fixed(name));
    }
    let red = RedConfig { min: Some(2), max: Some(1), ..RedConfig::default() };
    let invalid = [
        refused(
            &mut Pie::new(PieConfig::default(), random()),
            &PieConfig { tupdate: Span::ZERO, ..PieConfig::default() },
        ),
        refused(&mut Red::new(RedConfig::default(), random()), &red),
        refused(&mut Rem::new(RemConfig::default(), random()), &RemConfig { phi: 0.5, ..RemConfig::default() }),
        refused(
            &mut Pi2::new(Pi2Config::default(), random()),
            &Pi2Config { coupling_factor: 0, ..Pi2Config::default() },
        ),
        refused(
            &mut FqCodel::new(FqCodelConfig::default(), random()),
            &FqCodelConfig { ce_threshold_mask: 3, ..FqCodelConfig::default() },
        ),
        refused(&mut Fq::new(FqConfig::default(), random()), &FqConfig { quantum: 0, ..FqConfig::default() }),
        refused(&mut Ets::new(EtsConfig::default()), &EtsConfig { quantum: 0, ..EtsConfig::default() }),
        refused(&mut Tbf::new(TbfConfig::default()), &TbfConfig { mtu: Some(1), ..TbfConfig::default() }),
        refused(
            &mut Wred::new(WredConfig::default(), random()),
            &WredConfig { min: Some(2), max: Some(1), ..WredConfig::default() },
        ),
        refused(
            &mut Choke::new(ChokeConfig::default(), random()),
            &ChokeConfig { max: Some(1), ..ChokeConfig::default() },
        ),
        refused(&mut Avq::new(AvqConfig::default()), &AvqConfig { gamma: 2.0, ..AvqConfig::default() }),
        refused(&mut Blue::new(BlueConfig::default(), random()), &BlueConfig { inc: 2.0, ..BlueConfig::default() }),
        refused(&mut Sfb::new(SfbConfig::default(), random()), &SfbConfig { increment: 2.0, ..SfbConfig::default() }),
        refused(
            &mut DualPi2::new(DualPi2Config::default(), random()),
            &DualPi2Config { coupling_factor: 0, ..DualPi2Config::default() },
        ),
    ];
    assert!(invalid.iter().all(|error| matches!(error, ChangeError::Invalid(_))), "{invalid:?}");
    let errors = [ChangeError::OtherDiscipline, ChangeError::Fixed("flows"), ChangeError::Invalid("no")];
    assert_eq!(
        errors.map(|error| error.to_string()),
        ["these are parameters of another discipline", "flows cannot be changed", "no"]
    );
}
