use super::*;
use crate::stub::{Ask, Stub, stub};
use proptest::prelude::*;

const MS: u64 = 1_000_000;

fn queue(config: CurvyRedConfig) -> CurvyRed<Stub> {
    CurvyRed::new(config, Random::for_component(1, 0, "curvy_red"))
}

/// A queue with an average of so many milliseconds that no packet moves.
fn standing(config: CurvyRedConfig, average: u64) -> CurvyRed<Stub> {
    let mut queue = queue(config);
    queue.law.average = (average * MS) as f64;
    queue.law.gamma = 0.0;
    queue
}

fn law(config: &CurvyRedConfig, average_ns: u64) -> Law {
    Law::new(config, average_ns as f64)
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9 * expected.abs().max(1.0), "{got} is not {expected}");
}

/// Line 9a with gamma = 1/32: 320 ms / 32 = 10 ms, then 10 + 310 / 32, then with nothing waiting
/// 19.6875 * 31 / 32. Note 4 takes the smaller one.
#[test]
fn the_average_is_weighted() {
    let config = CurvyRedConfig::default();
    let mut law = law(&config, 0);
    for (delay, expected) in [(320, 10.0), (320, 19.6875), (0, 19.072_265_625)] {
        law.average(&config, Span::from_millis(delay));
        assert_close(law.average, expected * 1e6);
    }
    let config = CurvyRedConfig { fall_at_once: true, ..config };
    for (delay, expected) in [(3, 3.0), (35, 4.0)] {
        law.average(&config, Span::from_millis(delay));
        assert_close(law.average, expected * 1e6);
    }
}

/// Line 9 of figure 11: -1 >> 5 is -1, 31 >> 5 is 0.
#[test]
fn integers_are_shifted() {
    let config = CurvyRedConfig { integer: true, min_th: Span::ZERO, ..CurvyRedConfig::default() };
    for (before, delay, after) in [(0, 31, 0), (0, 32, 1), (100, 99, 99), (100, 36, 98), (100, 35, 97), (0, 320, 10)] {
        let mut law = law(&config, before);
        law.average(&config, Span::from_nanos(delay));
        assert_eq!(law.average, f64::from(after), "{before}, {delay}");
    }
}

proptest! {
    /// Lines 5 and 10 of figure 11: the average, shifted by S_C - 2 or S_L - 2 to the right, is
    /// compared with 32 random bits.
    #[test]
    fn integers_are_probabilities_of_32_bits(average in 0_u64..1 << 36, s_c in -16_i32..=8, k_prime in 0_u32..=8) {
        let config = CurvyRedConfig {
            integer: true, min_th: Span::ZERO, s_c: s_c.into(), k_prime, ..CurvyRedConfig::default()
        };
        let shifted = |by: i32| {
            let average = u128::from(average) << 64;
            (if by < 0 { average << -by } else { average >> by }) as f64 / (1_u128 << 96) as f64
        };
        let law = law(&config, average);
        assert_close(law.root(), shifted(s_c - 2));
        assert_close(law.coupled(), shifted(s_c - k_prime as i32 - 2));
    }
}

/// Lines 5a and 10a, from figure 9: range_C is 0.5 s, range_L 0.25 s. 100 ms beyond minTh are a root
/// of 0.2, squared 0.04, and 0.4 for L4S; with U = 2 the powers are 4 and 2.
#[test]
fn probabilities_follow_the_average() {
    for (average, s_c, k_prime, u, classic, l4s) in [
        (600, -1, 1, 1, 0.04, 0.4),
        (500, -1, 1, 1, 0.0, 0.0),
        (400, -1, 1, 1, 0.0, 0.0),
        (750, -1, 1, 1, 0.25, 1.0),
        (1000, -1, 1, 1, 1.0, 1.0),
        (600, -1, 1, 2, 0.0016, 0.16),
        (600, 0, 1, 1, 0.01, 0.2),
        (600, -1, 0, 1, 0.04, 0.2),
        (525, -2, 2, 1, 0.01, 0.4),
    ] {
        let config = CurvyRedConfig { s_c: s_c.into(), k_prime, u, ..CurvyRedConfig::default() };
        let (got_classic, got_l4s) = standing(config, average).probabilities();
        assert_close(got_classic, classic);
        assert_close(got_l4s, l4s);
    }
}

/// The shares of 50,000 packets that are dropped and marked.
fn shares(config: CurvyRedConfig, average: u64, ecn: Ecn) -> (f64, f64) {
    const PACKETS: u32 = 50_000;
    let mut queue = standing(CurvyRedConfig { limit: 1 << 30, ..config }, average);
    let mut drops = Drops::new();
    for id in 0..PACKETS {
        queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id, 1514) }, &mut drops);
    }
    while queue.ask(Time::ZERO, &mut drops).is_some() {}
    assert!(drops.iter().all(|drop| drop.reason == DropReason::Early));
    let share = |packets: u64| packets as f64 / f64::from(PACKETS);
    (share(drops.len() as u64), share(queue.counters().marked.packets))
}

/// Five standard errors of 50,000 draws are at most 0.0112.
#[track_caller]
fn near(got: (f64, f64), expected: (f64, f64)) {
    assert!((got.0 - expected.0).abs() < 0.0112 && (got.1 - expected.1).abs() < 0.0112, "{got:?}, not {expected:?}");
}

/// Section 2.1: p_C is the square of p_CL / k. From p_CL = 1 on (here at an average of 800 ms, a root
/// of 0.6) both queues drop with p_C, whatever packets carry, and the rest of L4S is marked (appendix
/// A.2); without `overload` figure 10 goes on.
#[test]
fn classic_is_squared_and_l4s_coupled() {
    let plain = CurvyRedConfig::default();
    near(shares(plain.clone(), 600, Ecn::NotEct), (0.04, 0.0));
    near(shares(plain.clone(), 600, Ecn::Ect0), (0.0, 0.04));
    near(shares(plain.clone(), 600, Ecn::Ect1), (0.0, 0.4));
    near(shares(plain.clone(), 800, Ecn::Ect0), (0.36, 0.0));
    near(shares(plain.clone(), 800, Ecn::Ect1), (0.36, 0.64));
    let figure_10 = CurvyRedConfig { overload: false, ..plain.clone() };
    near(shares(figure_10.clone(), 800, Ecn::Ect0), (0.0, 0.36));
    near(shares(figure_10, 800, Ecn::Ect1), (0.0, 1.0));
    let curvier = CurvyRedConfig { u: 2, ..plain };
    near(shares(curvier.clone(), 700, Ecn::NotEct), (0.0256, 0.0));
    near(shares(curvier, 700, Ecn::Ect1), (0.0, 0.64));
}

/// Line 9a takes the delay of the packet behind the one that leaves, zero behind the last.
#[test]
fn the_delay_is_that_of_the_next_head() {
    let mut queue = queue(CurvyRedConfig { g_c: 0, ..CurvyRedConfig::default() });
    let mut drops = Drops::new();
    for (id, millis) in [0, 30, 70].into_iter().enumerate() {
        queue.enqueue(Time::from_millis(millis), stub(id as u32, 100), &mut drops);
    }
    for expected in [70, 30, 0] {
        assert!(queue.ask(Time::from_millis(100), &mut drops).is_some());
        assert_eq!(queue.probe().delay, Some(Span::from_millis(expected)));
    }
}

/// Line 2a of figure 8: an L4S packet that waited longer than the classic head moves the average (by
/// 1/32 of 320 ms), another does not.
#[test]
fn a_longer_l4s_queue_drives_the_average() {
    for (overload, classic_since, expected) in [(true, 1, 10), (true, 0, 0), (false, 1, 0)] {
        let mut queue = queue(CurvyRedConfig { overload, ..CurvyRedConfig::default() });
        let mut drops = Drops::new();
        queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect1, ..stub(0, 100) }, &mut drops);
        queue.enqueue(Time::from_millis(classic_since), stub(1, 100), &mut drops);
        let sent = queue.ask(Time::from_millis(320), &mut drops).unwrap();
        assert_eq!((sent.packet.id, queue.probe().delay), (0, Some(Span::from_millis(expected))));
    }
}

/// Line 5b: more than T. Note 3, with a range of 2 ms: half way at 2 ms, all from 3 ms on (figure 5).
#[test]
fn the_l4s_queue_has_a_step_or_a_ramp() {
    let share = |range: u64, micros: u64| {
        let config = CurvyRedConfig { range: Span::from_millis(range), limit: 1 << 30, ..CurvyRedConfig::default() };
        let mut queue = queue(config);
        let mut drops = Drops::new();
        for id in 0..10_000 {
            queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect1, ..stub(id, 1514) }, &mut drops);
        }
        while queue.ask(Time::from_micros(micros), &mut drops).is_some() {}
        queue.counters().marked.packets
    };
    for (range, micros, expected) in [(0, 1000, 0), (0, 1001, 10_000), (2, 1000, 0), (2, 2999, 9995), (2, 3000, 10_000)]
    {
        assert!(share(range, micros).abs_diff(expected) <= 12, "{range}, {micros}");
    }
    // Five standard deviations of 50.
    assert!(share(2, 2000).abs_diff(5000) <= 250);
}

/// Lines 28 to 33: the classic head leaves first if it has waited more than tshift longer.
#[test]
fn the_time_shift_decides_between_the_heads() {
    for (l4s_at, first) in [(0, 1), (50, 1), (51, 0)] {
        let mut queue = queue(CurvyRedConfig::default());
        let mut drops = Drops::new();
        queue.enqueue(Time::ZERO, stub(0, 100), &mut drops);
        queue.enqueue(Time::from_millis(l4s_at), Stub { ecn: Ecn::Ce, ..stub(1, 100) }, &mut drops);
        assert_eq!(queue.peek().map(|entry| entry.packet.id), Some(first));
        assert_eq!(queue.ask(Time::from_millis(60), &mut drops).map(|entry| entry.packet.id), Some(first));
        assert_eq!(queue.ask(Time::from_millis(60), &mut drops).map(|entry| entry.packet.id), Some(1 - first));
    }
}

/// Note 2: a weight of 1/16 is one classic packet for 15 of L4S; of the whole, all.
#[test]
fn the_round_robin_has_weights() {
    for (classic_weight, expected) in [(SIXTEENTH, 10), (0.5, 80), (0.0, 0), (1.0, 159)] {
        let config = CurvyRedConfig { tshift: None, classic_weight, ..CurvyRedConfig::default() };
        let mut queue = queue(config);
        let mut drops = Drops::new();
        for id in 0..400 {
            let ecn = if id % 2 == 0 { Ecn::Ect1 } else { Ecn::NotEct };
            queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id, 1000) }, &mut drops);
        }
        let sent = (0..160).filter_map(|_| queue.ask(Time::ZERO, &mut drops));
        assert_eq!(sent.filter(|entry| entry.packet.id % 2 == 1).count(), expected, "{classic_weight}");
    }
}

/// Figure 3, line 2: a packet is refused where an MTU would not fit.
#[test]
fn the_limit_leaves_room_for_a_packet() {
    let mut queue = queue(CurvyRedConfig { limit: 5000, mtu: 1500, ..CurvyRedConfig::default() });
    let mut drops = Drops::new();
    for id in 0..10 {
        queue.enqueue(Time::ZERO, stub(id, 700), &mut drops);
    }
    // 3500 + 1500 fits, 4200 + 1500 does not.
    assert_eq!((queue.backlog().packets, drops.len(), drops[0].reason), (6, 4, DropReason::Limit));
}

#[test]
fn what_does_not_fit_together_is_refused() {
    let default = CurvyRedConfig::default;
    for (config, about) in [
        (CurvyRedConfig { limit: 1000, ..default() }, "limit"),
        (CurvyRedConfig { s_c: 0.5, ..default() }, "s_c"),
        (CurvyRedConfig { s_c: f64::NAN, ..default() }, "s_c"),
        (CurvyRedConfig { classic_weight: 0.5, ..default() }, "tshift = false"),
        (CurvyRedConfig { classic_weight: -1.0, tshift: None, ..default() }, "classic_weight"),
        (CurvyRedConfig { u: 0, ..default() }, "u "),
        (CurvyRedConfig { g_c: 17, ..default() }, "g_c"),
        (CurvyRedConfig { k_prime: 9, ..default() }, "k_prime"),
    ] {
        assert!(config.problem().is_some_and(|problem| problem.contains(about)), "{about}: {:?}", config.problem());
    }
}

/// The average goes on with other parameters, whole in integers.
#[test]
fn a_change_keeps_the_average() {
    let mut queue = standing(CurvyRedConfig::default(), 600);
    queue.law.average += 0.5;
    let config = CurvyRedConfig { s_c: 0.0, integer: true, ..CurvyRedConfig::default() };
    queue.change(Time::ZERO, &config, &mut Drops::new()).unwrap();
    assert_eq!(queue.law.average, 600e6);
    // 100 ms of 2^30 ns.
    assert_close(queue.law.root(), 0.1e9 / 1_073_741_824.0);
}
