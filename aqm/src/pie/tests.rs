use super::*;
use crate::stub::{Stub, stub};
use ackclock_units::Ecn;
use proptest::prelude::*;

fn linux_3x() -> PieConfig {
    PieConfig { target: Span::from_millis(20), tupdate: Span::from_millis(30), ..PieConfig::default() }
}

fn law(probability: f64, delay_ms: u64, old_delay_ms: u64) -> Law {
    Law {
        probability,
        delay: Span::from_millis(delay_ms),
        old_delay: Span::from_millis(old_delay_ms),
        burst_allowance: Span::ZERO,
        ..Law::new()
    }
}

fn random() -> Random {
    Random::for_component(1, 0, "pie")
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12, "{got} is not {expected}");
}

/// With a target of 20 ms: step = 0.125 (delay - 20 ms) + 1.25 (delay - old), times the factor of the old probability.
#[test]
fn the_probability_moves_by_the_control_law() {
    for (before, delay, old, after) in [
        // 0.125 * 0.01 + 1.25 * 0.03 = 0.03875, over 2048 from nothing.
        (0.0, 30, 0, 0.03875 / 2048.0),
        // A constant delay above the target: 0.125 * 0.01 = 0.00125, by each factor.
        (0.000_000_9, 30, 30, 0.000_000_9 + 0.00125 / 2048.0),
        (0.000_001, 30, 30, 0.000_001 + 0.00125 / 512.0),
        (0.000_01, 30, 30, 0.000_01 + 0.00125 / 128.0),
        (0.000_1, 30, 30, 0.000_1 + 0.00125 / 32.0),
        (0.001, 30, 30, 0.001 + 0.00125 / 8.0),
        (0.01, 30, 30, 0.01 + 0.00125 / 2.0),
        (0.1, 30, 30, 0.1 + 0.00125),
        // Above the target but falling: 0.00125 - 1.25 * 0.02 = -0.02375.
        (0.5, 30, 50, 0.5 - 0.02375),
        // 0.125 * 0.1 + 1.25 * 0.12 = 0.1625: at most 2 % from a probability of 10 % on, uncapped (but halved) below.
        (0.1, 120, 0, 0.12),
        (0.05, 120, 0, 0.05 + 0.08125),
        // Above 250 ms another 2 %: 0.125 * 0.28 = 0.035, capped, and halved.
        (0.5, 300, 300, 0.54),
        (0.05, 300, 300, 0.05 + 0.0175 + 0.02),
        // Both ends.
        (0.99, 300, 300, 1.0),
        (0.001, 0, 300, 0.0),
    ] {
        let mut law = law(before, delay, old);
        law.update(&linux_3x(), 30_000);
        assert_close(law.probability, after);
        assert_eq!(law.old_delay, Span::from_millis(delay));
    }
}

/// 0.5 - 0.125 * 0.02 = 0.4975, less 1/64 of it if there is no queue.
#[test]
fn without_a_queue_the_probability_decays() {
    let mut idle = law(0.5, 0, 0);
    idle.update(&linux_3x(), 0);
    assert_close(idle.probability, 0.4975 * 63.0 / 64.0);
    let mut busy = law(0.5, 0, 0);
    busy.update(&linux_3x(), 1514);
    assert_close(busy.probability, 0.4975);
}

#[test]
fn the_burst_allowance_comes_back_when_congestion_is_gone() {
    let mut still_low = law(0.000_000_001, 9, 9);
    still_low.update(&linux_3x(), 1514);
    assert_eq!((still_low.probability, still_low.burst_allowance), (0.0, MAX_BURST));
    let mut was_high = law(0.000_000_001, 9, 10);
    was_high.update(&linux_3x(), 1514);
    assert_eq!((was_high.probability, was_high.burst_allowance), (0.0, Span::ZERO));
}

#[test]
fn early_drops_have_their_conditions() {
    let config = PieConfig { derandomize: false, ..linux_3x() };
    let certain = |law: Law, config: &PieConfig, backlog| law.clone().drop_early(config, backlog, 1514, &mut random());
    assert!(certain(law(1.0, 20, 20), &config, 3028));
    let in_burst = Law { burst_allowance: Span::from_nanos(1), ..law(1.0, 20, 20) };
    assert!(!certain(in_burst, &config, 3028));
    assert!(!certain(law(1.0, 20, 20), &config, 3027), "less than two packets");
    // Below half the target, only a probability of 20 % and more drops; `certain` through the accumulated probability.
    let forced = |law: Law| certain(Law { accumulated: 8.5, ..law }, &linux_3x(), 3028);
    assert!(!forced(law(0.19, 9, 20)));
    assert!(forced(law(0.2, 9, 20)));
    assert!(forced(law(0.19, 10, 20)));
}

#[test]
fn bytemode_scales_with_the_size_of_the_packet() {
    let config = PieConfig { bytemode: true, derandomize: false, ..linux_3x() };
    let rate = |bytes| {
        let mut random = random();
        let mut law = law(0.5, 20, 20);
        (0..20_000).filter(|_| law.drop_early(&config, 30_000, bytes, &mut random)).count() as f64 / 20_000.0
    };
    // Standard error at most 0.0035; four of them.
    for (bytes, expected) in [(1514, 0.5), (757, 0.25), (151, 0.05), (9000, 0.5)] {
        assert!((rate(bytes) - expected).abs() < 0.014, "{bytes} bytes: {}", rate(bytes));
    }
}

/// At 10 %, eight packets bring the sum to 0.8: drops are at least nine packets apart, and less than 8.5 / 0.1 = 85.
#[test]
fn derandomization_spaces_drops_out() {
    let mut queue = Pie::new(PieConfig { limit: u64::MAX, ..linux_3x() }, random());
    queue.law = law(0.1, 20, 20);
    let mut drops = Drops::new();
    let mut dropped = Vec::new();
    for id in 0..10_000 {
        queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
        dropped.extend(drops.drain(..).map(|drop| drop.packet.id));
    }
    let gaps: Vec<u32> = dropped.windows(2).map(|pair| pair[1] - pair[0]).collect();
    assert_eq!(gaps.iter().min(), Some(&9));
    assert!(gaps.iter().max() <= Some(&85));
    // The mean gap: eight packets, then a geometric distribution with mean ten.
    let mean = f64::from(gaps.iter().sum::<u32>()) / gaps.len() as f64;
    assert!((17.0..19.0).contains(&mean), "{mean}");
    // At 8.5 no chance is taken.
    let mut random = random();
    let mut due = Law { accumulated: 8.46, ..law(0.05, 20, 20) };
    assert!(due.drop_early(&linux_3x(), 30_000, 1514, &mut random));
    assert_eq!(random, self::random());
}

#[test]
fn the_delay_is_the_sojourn_time_of_the_last_departure() {
    let mut queue = Pie::new(linux_3x(), random());
    let mut drops = Drops::new();
    for id in 0..3 {
        queue.enqueue(Time::from_millis(1), stub(id, 1500), &mut drops);
    }
    let mut after = |ms| {
        queue.dequeue(Time::from_millis(ms), &mut drops);
        (queue.law.delay, queue.law.burst_allowance)
    };
    // The first departure only starts the clock of the burst allowance.
    assert_eq!(after(3), (Span::from_millis(2), Span::from_millis(150)));
    assert_eq!(after(8), (Span::from_millis(7), Span::from_millis(145)));
    // Nothing waits behind the last one.
    assert_eq!(after(10), (Span::ZERO, Span::from_millis(143)));
}

/// 1500 bytes every 1.2 ms. The packet that starts a measurement is counted in it, so the first one has 11 packets in 10
/// gaps: 16,500 bytes in 12 ms, 0.001375 bytes/ns. The second has 11 in 13.2 ms, 0.00125: 1/8 of the way there.
#[test]
fn the_departure_rate_is_measured_over_sixteen_kibibytes() {
    let config = PieConfig { dq_rate_estimator: true, ..linux_3x() };
    let mut law = Law::new();
    let mut depart = |departures: std::ops::Range<u64>, backlog| {
        for n in departures {
            let entry = Entry { packet: stub(0, 1500), enqueued_at: Time::ZERO };
            law.departed(&config, Time::from_micros(1200 * n), &entry, backlog);
        }
        law.clone()
    };
    let before = depart(0..10, 30_000);
    assert_eq!((before.departure_rate, before.burst_allowance), (0.0, MAX_BURST));
    let first = depart(10..11, 30_000);
    assert_close(first.departure_rate, 0.001_375);
    assert_eq!(first.burst_allowance, Span::from_millis(138));
    let second = depart(11..22, 30_000);
    assert_close(second.departure_rate, 0.001_375 - 0.000_125 / 8.0);
    assert_eq!(second.burst_allowance, Span::from_micros(124_800));
    // 27,500 bytes at that rate take 20.23 ms.
    let mut updated = second.clone();
    updated.update(&config, 27_500);
    assert_eq!(updated.delay, Span::from_nanos((27_500.0 / 0.001_359_375) as u64));
    // Below 16 KiB a measurement is finished, and none is started.
    let third = depart(22..33, 16_383);
    assert_eq!(third.measured, None);
    assert_eq!(depart(33..60, 16_383).departure_rate, third.departure_rate);
}

#[test]
fn marks_replace_drops_up_to_ten_percent() {
    let offer = |probability, ecn| {
        let mut queue = Pie::new(PieConfig { ecn: true, ..linux_3x() }, random());
        let mut drops = Drops::new();
        for id in 0..2 {
            queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
        }
        queue.law = Law { accumulated: 8.5, ..law(probability, 20, 20) };
        queue.enqueue(Time::ZERO, Stub { ecn, ..stub(2, 1514) }, &mut drops);
        assert_eq!(queue.law.accumulated, 0.0);
        (queue.counters().marked.packets, drops.first().map(|drop| drop.reason))
    };
    assert_eq!(offer(0.1, Ecn::Ect0), (1, None));
    assert_eq!(offer(0.1, Ecn::NotEct), (0, Some(DropReason::Early)));
    assert_eq!(offer(0.1001, Ecn::Ect0), (0, Some(DropReason::Early)));
}

#[test]
fn an_update_due_with_a_packet_comes_first() {
    let mut queue: Pie<Stub> = Pie::new(linux_3x(), random());
    queue.law = law(0.5, 0, 0);
    queue.dequeue(Time::from_nanos(29_999_999), &mut Drops::new());
    assert_eq!(queue.law.probability, 0.5);
    queue.dequeue(Time::from_millis(30), &mut Drops::new());
    assert_close(queue.law.probability, 0.4975 * 63.0 / 64.0);
    assert_eq!(queue.next_update, Time::from_millis(60));
}

#[test]
fn a_long_rest_is_made_up_for_at_once() {
    let mut queue: Pie<Stub> = Pie::new(PieConfig { tupdate: Span::from_nanos(1), ..linux_3x() }, random());
    queue.law = law(1.0, 500, 500);
    queue.law.delay = Span::ZERO;
    let now = Time::from_secs(1_000_000_000);
    queue.dequeue(now, &mut Drops::new());
    assert_eq!(queue.law, Law::new());
    assert_eq!(queue.next_update, now + Span::from_nanos(1));
}

#[test]
#[should_panic(expected = "tupdate must not be zero")]
fn a_tupdate_of_zero_is_refused() {
    let _: Pie<Stub> = Pie::new(PieConfig { tupdate: Span::ZERO, ..linux_3x() }, random());
}

#[derive(Clone, Debug)]
enum Step {
    Offer { bytes: u32, ecn: Ecn },
    Send,
}

fn steps() -> impl Strategy<Value = Vec<(u64, Step)>> {
    let gap = prop_oneof![
        10 => 0u64..3_000_000,
        3 => 0u64..40_000_000,
        // On the updates themselves, and rests of up to a minute.
        2 => (0u64..4).prop_map(|n| n * 1_000_000),
        1 => 0u64..60_000_000_000,
    ];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0)];
    let step = prop_oneof![
        5 => (1u32..3000, ecn).prop_map(|(bytes, ecn)| Step::Offer { bytes, ecn }),
        4 => Just(Step::Send),
    ];
    prop::collection::vec((gap, step), 0..400)
}

fn configs() -> impl Strategy<Value = PieConfig> {
    (1u64..40, 1u64..40, 0u32..33, 0u32..33, any::<[bool; 4]>()).prop_map(
        |(target, tupdate, alpha, beta, [ecn, bytemode, dq_rate_estimator, derandomize])| PieConfig {
            target: Span::from_millis(target),
            tupdate: Span::from_millis(tupdate),
            alpha,
            beta,
            ecn,
            bytemode,
            dq_rate_estimator,
            derandomize,
            limit: 200,
            ..PieConfig::default()
        },
    )
}

proptest! {
    /// A queue that makes up for its updates decides as one whose updates happen each at its time.
    #[test]
    fn late_updates_are_the_same_updates(config in configs(), steps in steps()) {
        let mut lazy = Pie::new(config.clone(), random());
        // Its updates are made from outside; its own never come due.
        let mut ticked = Pie::new(config.clone(), random());
        ticked.next_update = Time::NEVER;
        let mut tick = Time::ZERO + config.tupdate;
        let (mut lazy_drops, mut ticked_drops) = (Drops::new(), Drops::new());
        let mut now = Time::ZERO;
        for (id, (gap, step)) in steps.into_iter().enumerate() {
            now += Span::from_nanos(gap);
            while tick <= now {
                ticked.law.update(&config, ticked.store.backlog().bytes);
                tick += config.tupdate;
            }
            match step {
                Step::Offer { bytes, ecn } => {
                    let packet = Stub { ecn, ..stub(id as u32, bytes) };
                    lazy.enqueue(now, packet, &mut lazy_drops);
                    ticked.enqueue(now, packet, &mut ticked_drops);
                }
                Step::Send => {
                    prop_assert_eq!(lazy.dequeue(now, &mut lazy_drops), ticked.dequeue(now, &mut ticked_drops));
                }
            }
            prop_assert_eq!(&lazy.law, &ticked.law);
            prop_assert_eq!(lazy.next_update, tick);
            prop_assert_eq!(lazy.counters(), ticked.counters());
            prop_assert_eq!(&lazy.random, &ticked.random);
        }
        prop_assert_eq!(lazy_drops, ticked_drops);
    }
}
