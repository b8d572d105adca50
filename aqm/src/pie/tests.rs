use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::Ecn;
use proptest::prelude::*;

fn linux_3x() -> PieConfig {
    PieConfig { target: Span::from_millis(20), tupdate: Span::from_millis(30), ..PieConfig::default() }
}

fn law(probability: f64, delay_ms: u64, old_delay_ms: u64) -> PieState {
    PieState {
        probability,
        delay: Span::from_millis(delay_ms),
        old_delay: Span::from_millis(old_delay_ms),
        burst_allowance: Span::ZERO,
        ..PieState::new()
    }
}

fn random() -> Random {
    Random::for_component(1, 0, "pie")
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12, "{got} is not {expected}");
}

/// At 10 %, eight packets bring the sum to 0.8: drops are at least nine packets apart, and less
/// than 8.5 / 0.1 = 85.
#[test]
fn derandomization_spaces_drops_out() {
    let mut queue = Pie::new(PieConfig { limit: u64::MAX, ..linux_3x() }, random());
    queue.state = law(0.1, 20, 20);
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
    let mut due = PieState { accumulated: 8.46, ..law(0.05, 20, 20) };
    assert!(due.arrived(&linux_3x().law(), 30_000, 1514, &mut random) == Admission::Drop);
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
        queue.ask(Time::from_millis(ms), &mut drops);
        (queue.state.delay, queue.state.burst_allowance)
    };
    // The first departure only starts the clock of the burst allowance.
    assert_eq!(after(3), (Span::from_millis(2), Span::from_millis(150)));
    assert_eq!(after(8), (Span::from_millis(7), Span::from_millis(145)));
    // Nothing waits behind the last one.
    assert_eq!(after(10), (Span::ZERO, Span::from_millis(143)));
}

#[test]
fn marks_replace_drops_up_to_ten_percent() {
    let offer = |probability, ecn| {
        let mut queue = Pie::new(PieConfig { ecn: true, ..linux_3x() }, random());
        let mut drops = Drops::new();
        for id in 0..2 {
            queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
        }
        queue.state = PieState { accumulated: 8.5, ..law(probability, 20, 20) };
        queue.enqueue(Time::ZERO, Stub { ecn, ..stub(2, 1514) }, &mut drops);
        assert_eq!(queue.state.accumulated, 0.0);
        (queue.counters().marked.packets, drops.first().map(|drop| drop.reason))
    };
    assert_eq!(offer(0.1, Ecn::Ect0), (1, None));
    assert_eq!(offer(0.1, Ecn::NotEct), (0, Some(DropReason::Early)));
    assert_eq!(offer(0.1001, Ecn::Ect0), (0, Some(DropReason::Early)));
}

/// sch_pie.c, `pie_qdisc_enqueue`: what finds `limit` packets is refused, and the accumulated
/// probability starts anew.
#[test]
fn the_limit_is_reached_and_not_passed() {
    let mut queue = Pie::new(PieConfig { limit: 3, ..linux_3x() }, random());
    let mut drops = Drops::new();
    queue.state.accumulated = 5.0;
    for id in 0..3 {
        queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
    }
    assert_eq!((queue.backlog().packets, drops.len(), queue.state.accumulated), (3, 0, 5.0));
    queue.enqueue(Time::ZERO, stub(3, 1514), &mut drops);
    assert_eq!((queue.backlog().packets, drops[0].packet.id, drops[0].reason), (3, 3, DropReason::Limit));
    assert_eq!(queue.state.accumulated, 0.0);
}

/// Two packets wait from 0 on; the first leaves at 20 ms, so that the delay is 20 ms, the target,
/// for the updates that are due at 30, 60 and 90 ms. The change from 0 counts at 30 ms alone, and
/// not before: 0.4 + 1.25 * 0.02, capped at 0.02.
#[test]
fn an_arrival_makes_up_for_the_updates_before_it() {
    let mut queue: Pie<Stub> = Pie::new(linux_3x(), random());
    let mut drops = Drops::new();
    for id in 0..3 {
        queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
    }
    queue.state.probability = 0.4;
    queue.ask(Time::from_millis(20), &mut drops);
    assert_eq!((queue.probe().probability, queue.probe().delay), (Some(0.4), Some(Span::from_millis(20))));
    queue.enqueue(Time::from_millis(95), stub(3, 1514), &mut drops);
    assert_close(queue.probe().probability.unwrap(), 0.42);
    assert_eq!(queue.next_update, Time::from_millis(120));
}

#[test]
fn an_update_due_with_a_packet_comes_first() {
    let mut queue: Pie<Stub> = Pie::new(linux_3x(), random());
    queue.state = law(0.5, 0, 0);
    queue.ask(Time::from_nanos(29_999_999), &mut Drops::new());
    assert_eq!(queue.state.probability, 0.5);
    queue.ask(Time::from_millis(30), &mut Drops::new());
    assert_close(queue.state.probability, 0.4975 * 63.0 / 64.0);
    assert_eq!(queue.next_update, Time::from_millis(60));
}

#[test]
fn a_long_rest_is_made_up_for_at_once() {
    let mut queue: Pie<Stub> = Pie::new(PieConfig { tupdate: Span::from_nanos(1), ..linux_3x() }, random());
    queue.state = law(1.0, 500, 500);
    queue.state.delay = Span::ZERO;
    let now = Time::from_secs(1_000_000_000);
    queue.ask(now, &mut Drops::new());
    assert_eq!(queue.state, PieState::new());
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
    let estimator = prop_oneof![Just(None), Just(Some(DqRateEstimator::Linux)), Just(Some(DqRateEstimator::Rfc8033)),];
    (1u64..40, 1u64..40, 0u32..33, 0u32..33, any::<[bool; 3]>(), estimator).prop_map(
        |(target, tupdate, alpha, beta, [ecn, bytemode, derandomize], dq_rate_estimator)| PieConfig {
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
                ticked.state.update(&config.law(), ticked.store.backlog().bytes);
                tick += config.tupdate;
            }
            match step {
                Step::Offer { bytes, ecn } => {
                    let packet = Stub { ecn, ..stub(id as u32, bytes) };
                    lazy.enqueue(now, packet, &mut lazy_drops);
                    ticked.enqueue(now, packet, &mut ticked_drops);
                }
                Step::Send => {
                    prop_assert_eq!(lazy.ask(now, &mut lazy_drops), ticked.ask(now, &mut ticked_drops));
                }
            }
            prop_assert_eq!(&lazy.state, &ticked.state);
            prop_assert_eq!(lazy.next_update, tick);
            prop_assert_eq!(lazy.counters(), ticked.counters());
            prop_assert_eq!(&lazy.random, &ticked.random);
        }
        prop_assert_eq!(lazy_drops, ticked_drops);
    }
}

#[test]
fn the_router_of_teacup() {
    let config = PieConfig::teacup();
    assert_eq!((config.target, config.tupdate), (Span::from_millis(20), Span::from_millis(30)));
    assert_eq!((config.alpha, config.beta), (2, 20));
    assert_eq!(config.dq_rate_estimator, Some(DqRateEstimator::Linux));
    assert!(!config.derandomize && !config.ecn && !config.bytemode);
}

/// The scenarios of ns-3, `pie-queue-disc-test-suite.cc`: room for 300 packets of 1000 bytes, an
/// arrival each 10 ms and a slower departure, with ns-3's settings. It compares numbers of drops;
/// over 4 s these are hardly more than what arrives above what departs, so that here 20 seeds are
/// added up.
mod ns3 {
    use super::*;

    fn config() -> PieConfig {
        PieConfig {
            limit: 300,
            target: Span::from_millis(20),
            tupdate: Span::from_millis(30),
            derandomize: false,
            // No early drops with two packets or less.
            mtu: 1001,
            ..PieConfig::default()
        }
    }

    fn defaults() -> PieConfig {
        PieConfig { target: Span::from_millis(15), tupdate: Span::from_millis(15), ..config() }
    }

    #[derive(Default)]
    struct Outcome {
        early: u64,
        marked: u64,
        /// The largest rise of a probability that was above 10 %.
        largest_rise: f64,
        /// The largest probability.
        largest: f64,
    }

    /// 400 arrivals and as many departures, one each `departure` ms. An arrival comes before a
    /// departure of its time.
    fn run(config: PieConfig, departure: u64, ecn: Ecn, accumulated: Option<f64>) -> Outcome {
        let mut outcome = Outcome::default();
        for seed in 0..20 {
            let mut queue = Pie::new(config.clone(), Random::for_component(seed, 0, "pie"));
            // Marks up to 30 %, and bursts pass for 100 ms.
            queue.law.mark_up_to = queue.law.mark_up_to.map(|_| 0.3);
            queue.state.burst_allowance = Span::from_millis(100);
            let mut drops = Drops::new();
            let mut last = 0.0;
            for ms in 1..=400 * departure {
                let now = Time::from_millis(ms);
                if ms % 10 == 0 && ms <= 4000 {
                    if let Some(accumulated) = accumulated {
                        queue.state.accumulated = accumulated;
                    }
                    queue.enqueue(now, Stub { ecn, ..stub(0, 1000) }, &mut drops);
                    let probability = queue.state.probability;
                    if last > 0.1 {
                        outcome.largest_rise = outcome.largest_rise.max(probability - last);
                    }
                    (outcome.largest, last) = (outcome.largest.max(probability), probability);
                }
                if ms % departure == 0 {
                    queue.ask(now, &mut drops);
                }
            }
            let counters = queue.counters();
            assert_eq!(counters.dropped[DropReason::Limit as usize], 0, "forced drops");
            outcome.early += counters.dropped[DropReason::Early as usize];
            outcome.marked += counters.marked.packets;
        }
        outcome
    }

    fn drops(config: PieConfig, departure: u64) -> u64 {
        run(config, departure, Ecn::NotEct, None).early
    }

    /// Tests 2 to 6.
    #[test]
    fn drops_follow_the_parameters() {
        let reference = drops(config(), 12);
        assert!(reference > 0);
        assert!(drops(PieConfig { target: Span::from_millis(80), ..config() }, 12) < reference, "a higher target");
        let slower = drops(config(), 15);
        assert!(slower > reference, "slower departures");
        assert!(drops(PieConfig { tupdate: Span::from_millis(90), ..config() }, 15) < slower, "rarer updates");
        for estimator in [DqRateEstimator::Linux, DqRateEstimator::Rfc8033] {
            let config = PieConfig { dq_rate_estimator: Some(estimator), ..defaults() };
            assert!(drops(config, 14) > 0, "with the departure rate by {estimator:?}");
        }
    }

    /// Test 8: from 10 % on the probability rises by 2 % at most.
    #[test]
    fn rises_are_capped() {
        let outcome = run(defaults(), 14, Ecn::NotEct, None);
        assert!(outcome.early > 0 && outcome.largest > 0.1);
        assert!(outcome.largest_rise < 0.020_000_000_000_000_1, "{}", outcome.largest_rise);
    }

    /// Tests 9 to 11.
    #[test]
    fn marks_need_both_sides() {
        for (ecn, packets) in [(true, Ecn::NotEct), (false, Ecn::Ect0)] {
            let outcome = run(PieConfig { ecn, ..defaults() }, 14, packets, None);
            assert_eq!(outcome.marked, 0);
            assert!(outcome.early > 0);
        }
        let both = run(PieConfig { ecn: true, ..defaults() }, 14, Ecn::Ect0, None);
        assert!(both.marked > 0 && both.early > 0 && both.largest > 0.3);
    }

    /// Tests 12 and 13: with drops spaced out there are some; with the accumulated probability held
    /// below 0.85 there are none.
    #[test]
    fn spaced_drops_need_an_accumulated_probability() {
        let spaced = PieConfig { derandomize: true, ..defaults() };
        assert!(run(spaced.clone(), 14, Ecn::NotEct, None).early > 0);
        assert_eq!(run(spaced, 14, Ecn::NotEct, Some(-0.16)).early, 0);
    }
}
