use super::*;

fn linux_3x() -> PieLaw {
    PieLaw {
        target: Span::from_millis(20),
        tupdate: Span::from_millis(30),
        alpha: 2,
        beta: 20,
        mark_up_to: None,
        bytemode: false,
        dq_rate_estimator: None,
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

/// With a target of 20 ms: step = 0.125 (delay - 20 ms) + 1.25 (delay - old), times the factor of
/// the old probability.
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
        // 0.125 * 0.1 + 1.25 * 0.12 = 0.1625: at most 2 % from a probability of 10 % on, uncapped
        // (but halved) below.
        (0.1, 120, 0, 0.12),
        (0.05, 120, 0, 0.05 + 0.08125),
        // Above 250 ms another 2 %: 0.125 * 0.28 = 0.035, capped, and halved.
        (0.5, 300, 300, 0.54),
        (0.05, 300, 300, 0.05 + 0.0175 + 0.02),
        // 250 ms themselves do not: 0.125 * 0.23 and 0.125 * 0.231, halved.
        (0.05, 250, 250, 0.05 + 0.014375),
        (0.05, 251, 251, 0.05 + 0.0144375 + 0.02),
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

/// Delays that stay at 30 ms: 0.125 * 0.01 = 0.00125 for each update, half of it below a
/// probability of 10 %. Six are due from 30 to 180 ms: 0.0985 + 3 * 0.000625 = 0.100375, + 3 *
/// 0.00125 = 0.104125.
#[test]
fn each_update_that_was_due_has_the_state_of_its_time() {
    let mut late = law(0.0985, 30, 30);
    let next = late.catch_up(&linux_3x(), Time::from_millis(30), Time::from_millis(180), 30_000);
    assert_close(late.probability, 0.104_125);
    assert_eq!(next, Time::from_millis(210));
    // The change of the delay counts once, 1.25 * 0.01 = 0.0125 in the first of four updates: 0.5 +
    // 0.0125 + 4 * 0.00125.
    let mut late = law(0.5, 30, 20);
    let next = late.catch_up(&linux_3x(), Time::from_millis(30), Time::from_millis(149), 30_000);
    assert_close(late.probability, 0.517_5);
    assert_eq!(next, Time::from_millis(150));
    // Without a queue, 0.125 * 0.02 = 0.0025 less and then 1/64 less, three times.
    let mut idle = law(0.5, 0, 0);
    let next = idle.catch_up(&linux_3x(), Time::from_millis(30), Time::from_millis(90), 0);
    assert_close(idle.probability, ((0.4975 * 63.0 / 64.0 - 0.0025) * 63.0 / 64.0 - 0.0025) * 63.0 / 64.0);
    assert_eq!(next, Time::from_millis(120));
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
    // There was a delay at the update before: 0.125 * 0.02 and 1.25 * 0.01 less, and no more.
    let mut emptied = law(0.5, 0, 10);
    emptied.update(&linux_3x(), 0);
    assert_close(emptied.probability, 0.485);
}

#[test]
fn the_burst_allowance_comes_back_when_congestion_is_gone() {
    let mut still_low = law(0.000_000_001, 9, 9);
    still_low.update(&linux_3x(), 1514);
    assert_eq!((still_low.probability, still_low.burst_allowance), (0.0, MAX_BURST));
    // The delays are kept (`pie_vars_init` leaves them).
    assert_eq!((still_low.delay, still_low.old_delay), (Span::from_millis(9), Span::from_millis(9)));
    // Half of the target is not below it.
    let mut half = law(0.0, 10, 9);
    half.update(&PieLaw { beta: 0, ..linux_3x() }, 1514);
    assert_eq!((half.probability, half.burst_allowance), (0.0, Span::ZERO));
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
    // Below half the target, only a probability of 20 % and more drops; `certain` through the
    // accumulated probability.
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

/// RFC 8033 section 5.4: nothing is dropped below a sum of 0.85; -0.15 and 1 are that.
#[test]
fn a_sum_of_the_lower_bound_may_drop() {
    for (accumulated, dropped) in [(-0.150_000_1, false), (-0.15, true)] {
        let mut state = PieState { accumulated, ..law(1.0, 20, 20) };
        assert_eq!(state.drop_early(&linux_3x(), 30_000, 1514, &mut random()), dropped);
    }
}

/// Four packets of 4096 bytes are 16 KiB: the fourth completes a measurement that began before the
/// first (or with it, in Linux), and a backlog of as much begins one.
#[test]
fn sixteen_kibibytes_are_enough() {
    for (estimator, first) in [(DqRateEstimator::Linux, 0), (DqRateEstimator::Rfc8033, 1)] {
        let config = measured_by(estimator);
        let mut state = PieState::new();
        let mut depart = |millis, backlog| {
            state.departed(&config, Time::from_millis(millis), Time::ZERO, 4096, backlog);
            (state.measured, state.average > 0)
        };
        assert_eq!(depart(0, 16_383), (None, false));
        // The RFC's first packet only starts the clock.
        let counted = |packets: u64| Some(4096 * (packets - first));
        assert_eq!(depart(1, 16_384), (counted(1), false));
        for packets in 2..4 + first {
            assert_eq!(depart(packets, 16_384), (counted(packets), false));
        }
        assert_eq!(depart(4 + first, 16_384), (Some(0), true));
    }
}

fn measured_by(estimator: DqRateEstimator) -> PieLaw {
    PieLaw { dq_rate_estimator: Some(estimator), ..linux_3x() }
}

/// Packets of 1500 bytes leave at the times `at` gives, in microseconds, each with `backlog` bytes
/// behind it.
fn depart(
    state: &mut PieState,
    law: &PieLaw,
    packets: std::ops::Range<u64>,
    at: impl Fn(u64) -> u64,
    backlog: u64,
) -> PieState {
    for n in packets {
        state.departed(law, Time::from_micros(at(n)), Time::ZERO, 1500, backlog);
    }
    state.clone()
}

/// 1500 bytes every 1.2 ms, which is 20.48 in 256ths of a byte per tick of 64 ns. The packet that
/// starts a measurement is counted in it, so the first one has 11 packets in 10 gaps: 16,500 * 256
/// / 187,500 = 22.5, truncated. The second has 11 in 206,250 ticks, 20; but an eighth of either is
/// 2, so that the average stays at 22 for good.
#[test]
fn linux_truncates_the_departure_rate() {
    let config = measured_by(DqRateEstimator::Linux);
    let mut law = PieState::new();
    let every = |n| 1200 * n;
    let before = depart(&mut law, &config, 0..10, every, 30_000);
    assert_eq!((before.average, before.burst_allowance), (0, MAX_BURST));
    let first = depart(&mut law, &config, 10..11, every, 30_000);
    assert_eq!((first.average, first.burst_allowance), (22, Span::from_millis(138)));
    let second = depart(&mut law, &config, 11..22, every, 30_000);
    assert_eq!((second.average, second.burst_allowance), (22, Span::from_micros(124_800)));
    assert_eq!(depart(&mut law, &config, 22..220, every, 30_000).average, 22);
    // 27,500 bytes take 22 ms, but 27,500 * 256 / 22 = 320,000 ticks are 20.48 ms.
    let mut updated = second.clone();
    updated.update(&config, 27_500);
    assert_eq!(updated.delay, Span::from_micros(20_480));
    // Below 16 KiB a measurement is finished, and none is started.
    let last = depart(&mut law, &config, 220..231, every, 16_383);
    assert_eq!(last.measured, None);
    assert_eq!(depart(&mut law, &config, 231..260, |n| 2400 * n, 16_383), last);
}

/// From 22, a rate of 40 (1500 bytes in 614.4 us) is 22 - 2 + 5 = 25, then 25 - 3 + 5 = 27 and so
/// on up to 40.
#[test]
fn linux_averages_whole_eighths() {
    let config = measured_by(DqRateEstimator::Linux);
    let mut law = PieState { average: 22, measured: Some(0), departed_at: Some(Time::ZERO), ..PieState::new() };
    let nanos = |n: u64| Time::from_nanos(614_400 * n);
    let mut averages = Vec::new();
    for n in 1..=110 {
        law.departed(&config, nanos(n), Time::ZERO, 1500, 30_000);
        if n % 11 == 0 {
            averages.push(law.average);
        }
    }
    // 256 * 16,500 / (11 * 9600) = 40.
    assert_eq!(averages, [25, 27, 29, 31, 33, 34, 35, 36, 37, 38]);
}

/// 0.488 Mbit/s are one 256th of a byte per tick: a slower link has no estimate, and its
/// probability does not move up.
#[test]
fn linux_has_no_estimate_for_slow_links() {
    let config = measured_by(DqRateEstimator::Linux);
    let mut law = PieState::new();
    // 0.4 Mbit/s, and 10 % more by 11 packets in 10 gaps: 16,500 * 256 / 4,687,500 = 0.9.
    depart(&mut law, &config, 0..11, |n| 30_000 * n, 30_000);
    law.update(&config, 60_000);
    assert_eq!((law.average, law.delay), (0, Span::ZERO));
    // The burst allowance goes on shrinking.
    assert_eq!(law.burst_allowance, Span::ZERO);
}

/// 32 bits hold 16 MiB times 256: one packet more, and the backlog seems to be that packet.
#[test]
fn linux_loses_backlogs_beyond_16_mebibytes() {
    let config = measured_by(DqRateEstimator::Linux);
    let mut law = PieState { average: 256, ..PieState::new() };
    law.update(&config, (1 << 24) - 1);
    assert_eq!(law.delay, Span::from_nanos(((1 << 24) - 1) * 64));
    law.update(&config, (1 << 24) + 1500);
    assert_eq!(law.delay, Span::from_nanos(1500 * 64));
}

/// RFC 8033 section 5.2: the first packet only starts the measurement, so that 11 packets take 11
/// gaps: 13.2 ms, at which 27,500 bytes are 27,500 * 13.2 / 16,384 = 22.16 ms. At half the rate,
/// 3/4 * 13.2 + 1/4 * 26.4 = 16.5 ms.
#[test]
fn the_rfc_averages_the_time_of_sixteen_kibibytes() {
    let config = measured_by(DqRateEstimator::Rfc8033);
    let mut law = PieState::new();
    let every = |n| 1200 * n;
    assert_eq!(depart(&mut law, &config, 0..11, every, 30_000).average, 0);
    let first = depart(&mut law, &config, 11..12, every, 30_000);
    assert_eq!((first.average, first.burst_allowance), (13_200_000, Span::from_micros(136_800)));
    let mut updated = first.clone();
    updated.update(&config, 27_500);
    assert_eq!(updated.delay, Span::from_nanos(27_500 * 13_200_000 / 16_384));
    let slower = depart(&mut law, &config, 12..23, |n| 13_200 + 2400 * (n - 11), 30_000);
    assert_eq!(slower.average, 16_500_000);
    // Below 16 KiB a measurement is finished, and none is started.
    let last = depart(&mut law, &config, 23..34, |n| 39_600 + 1200 * (n - 22), 16_383);
    assert_eq!((last.average, last.measured), (15_675_000, None));
    assert_eq!(depart(&mut law, &config, 34..60, |n| 2400 * n, 16_383), last);
}
