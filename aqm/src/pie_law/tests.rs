use super::*;

fn linux_3x() -> PieLaw {
    PieLaw {
        target: Span::from_millis(20),
        tupdate: Span::from_millis(30),
        alpha: 2,
        beta: 20,
        mark_up_to: None,
        bytemode: false,
        dq_rate_estimator: false,
        derandomize: true,
        mtu: 1514,
    }
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
    let config = PieLaw { derandomize: false, ..linux_3x() };
    let certain = |state: PieState, law: &PieLaw, backlog| state.clone().drop_early(law, backlog, 1514, &mut random());
    assert!(certain(law(1.0, 20, 20), &config, 3028));
    let in_burst = PieState { burst_allowance: Span::from_nanos(1), ..law(1.0, 20, 20) };
    assert!(!certain(in_burst, &config, 3028));
    assert!(!certain(law(1.0, 20, 20), &config, 3027), "less than two packets");
    // Below half the target, only a probability of 20 % and more drops; `certain` through the accumulated probability.
    let forced = |state: PieState| certain(PieState { accumulated: 8.5, ..state }, &linux_3x(), 3028);
    assert!(!forced(law(0.19, 9, 20)));
    assert!(forced(law(0.2, 9, 20)));
    assert!(forced(law(0.19, 10, 20)));
}

#[test]
fn bytemode_scales_with_the_size_of_the_packet() {
    let config = PieLaw { bytemode: true, derandomize: false, ..linux_3x() };
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

/// 1500 bytes every 1.2 ms. The packet that starts a measurement is counted in it, so the first one has 11 packets in 10
/// gaps: 16,500 bytes in 12 ms, 0.001375 bytes/ns. The second has 11 in 13.2 ms, 0.00125: 1/8 of the way there.
#[test]
fn the_departure_rate_is_measured_over_sixteen_kibibytes() {
    let config = PieLaw { dq_rate_estimator: true, ..linux_3x() };
    let mut law = PieState::new();
    let mut depart = |departures: std::ops::Range<u64>, backlog| {
        for n in departures {
            law.departed(&config, Time::from_micros(1200 * n), Time::ZERO, 1500, backlog);
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
