use super::*;
use crate::NewRenoConfig;
use crate::cubic::law::Curve;
use crate::fixture::{MSS, ack, acks, cwnd, flight, sent, ssthresh};
use crate::{HystartConfig, SlowStartRules};

fn linux(rules: CubicRules) -> CubicConfig {
    let abc = rules == CubicRules::Linux61;
    let reno = NewRenoConfig { abc, abc_l_var: 0, limit_burst: false, past_ssthresh: !abc, ..NewRenoConfig::default() };
    let tick = Span::from_millis(4);
    CubicConfig { beta: 717.0 / 1024.0, c: 410.0 / 1024.0, rules, tick, reno, ..CubicConfig::default() }
}

fn established_with(config: CubicConfig, segments: u64) -> Cubic {
    let mut cubic = Cubic::new(config);
    cubic.on_established(&Flight { initial_window: segments * MSS, ..flight(0, segments) });
    cubic
}

/// CUBIC after a loss at `segments`, recovered from.
fn after_loss(config: CubicConfig, segments: u64) -> Cubic {
    let mut cubic = established_with(config, segments);
    cubic.on_signal(&flight(0, segments), Signal::Loss);
    cubic.on_signal(&flight(0, segments), Signal::RecoveryEnd);
    cubic
}

fn curve(state: &State) -> Curve {
    match state.epoch.as_ref().unwrap().growth {
        Growth::Rfc9438(curve, _) => curve,
        Growth::Linux(_) => panic!("a curve of Linux"),
    }
}

fn exact(cubic: &Cubic) -> f64 {
    cubic.state.window.cwnd as f64 / MSS as f64
}

#[track_caller]
fn close(found: f64, expected: f64) {
    assert!((found - expected).abs() < 1e-3, "{found}, expected {expected}");
}

#[test]
fn the_curve_at_several_points() {
    // W_max 100, cwnd_epoch 70: K = cbrt(30 / 0.4) = cbrt(75).
    let curve = Curve::new(0.4, 100.0, 70.0);
    close(curve.k, 4.217_163);
    for (t, w) in [(0.0, 70.0), (0.1, 72.083_930), (1.0, 86.680_764), (3.0, 99.278_716), (6.0, 102.266_703)] {
        close(curve.at(t), w);
    }
    close(curve.at(curve.k), 100.0);
    close(curve.at(2.0 * curve.k), 130.0);
    // From W_max or above: K = 0, the curve starts here.
    for w_max in [0.0, 69.0, 70.0] {
        assert_eq!(Curve::new(0.4, w_max, 70.0), Curve { c: 0.4, k: 0.0, w_max: 70.0 });
    }
}

#[test]
fn k_and_the_curve_for_other_parameters() {
    // RFC 9438 equation 2 with cwnd_epoch = beta * W_max: K = cbrt(W_max * (1 - beta) / C), such as
    // cbrt(10 * 0.3 / 0.4) = cbrt(7.5). Equation 1: W(t) = C * (t - K)^3 + W_max, such as 0.4 *
    // (5 - 1.957434)^3 + 10 = 21.266268.
    for (w_max, c, beta, k, points) in [
        (10.0, 0.4, 0.7, 1.957_434, [(0.0, 7.0), (0.5, 8.761_698), (2.0, 10.000_031), (5.0, 21.266_268)]),
        (1000.0, 0.4, 0.7, 9.085_603, [(0.0, 700.0), (2.0, 857.704_741), (5.0, 972.720_998), (10.0, 1_000.305_819)]),
        (100.0, 0.04, 0.7, 9.085_603, [(0.0, 70.0), (2.0, 85.770_474), (5.0, 97.272_100), (10.0, 100.030_582)]),
        (100.0, 4.0, 0.7, 1.957_434, [(0.0, 70.0), (0.5, 87.616_982), (2.0, 100.000_308), (5.0, 212.662_684)]),
        (100.0, 0.4, 0.5, 5.0, [(0.0, 50.0), (0.5, 63.55), (2.0, 89.2), (10.0, 150.0)]),
    ] {
        let curve = Curve::new(c, w_max, beta * w_max);
        close(curve.k, k);
        for (t, w) in points {
            close(curve.at(t), w);
        }
    }
}

#[test]
fn one_ack_moves_the_window_towards_the_curve_a_round_trip_ahead() {
    let mut cubic = after_loss(CubicConfig { reno_friendly: false, ..CubicConfig::default() }, 100);
    close(exact(&cubic), 70.0);
    // (W_cubic(0 + 0.1) - 70) / 70 for one segment.
    let _ = cubic.on_ack(&flight(1000, 70), &ack(1, 100));
    close(exact(&cubic), 70.0 + 2.083_930 / 70.0);
    // Another second on, for the rest of the window: W_cubic(1.1) = 100 - 0.4 * 3.117163^3 =
    // 87.884464.
    let _ = cubic.on_ack(&flight(2000, 70), &ack(70, 100));
    let before = 70.0 + 2.083_930 / 70.0;
    close(exact(&cubic), before + (87.884_464 - before) / before * 70.0);
}

#[test]
fn the_window_is_back_at_the_maximum_after_k() {
    let mut cubic = after_loss(CubicConfig { reno_friendly: false, ..CubicConfig::default() }, 100);
    // 42 round trips of 100 ms, K = 4.217 s: within a segment of 100, and flat there.
    for round in 0..=42 {
        let segments = cwnd(&cubic);
        acks(&mut cubic, 100 * round, segments, 1);
    }
    assert!((99.0..100.1).contains(&exact(&cubic)), "{}", exact(&cubic));
}

#[test]
fn growth_per_round_trip_is_at_most_half_a_window() {
    let mut cubic = after_loss(CubicConfig::default(), 100);
    let _ = cubic.on_ack(&flight(0, 70), &ack(1, 100));
    let before = exact(&cubic);
    let _ = cubic.on_ack(&flight(60_000, 70), &ack(1, 100));
    close(exact(&cubic), before + 0.5);
}

#[test]
fn the_reno_friendly_region_has_renos_mean() {
    // alpha = 3 * 0.3 / 1.7 = 0.529412 per round trip until W_est is the old window of 20, then 1.
    let mut cubic = after_loss(CubicConfig::default(), 20);
    close(exact(&cubic), 14.0);
    let one_window = |cubic: &mut Cubic, round: u64| {
        let f = Flight { srtt: Some(Span::from_millis(10)), ..flight(10 * round, 14) };
        let acked = cubic.state.window.cwnd;
        let _ = cubic.on_ack(&f, &Ack { acked, delivered: acked, rtt: Some(Span::from_millis(10)), ..Ack::default() });
    };
    for round in 0..12 {
        one_window(&mut cubic, round);
        assert!((exact(&cubic) - (14.0 + 0.529_412 * (round + 1) as f64)).abs() < 0.01, "{}", exact(&cubic));
    }
    let before = exact(&cubic);
    assert!(before >= 20.0);
    for round in 12..15 {
        one_window(&mut cubic, round);
    }
    assert!((exact(&cubic) - before - 3.0).abs() < 0.01, "{}", exact(&cubic));
}

#[test]
fn the_decrease_and_fast_convergence() {
    // beta 0.7: 100 -> 70, W_max 100; again at 70 < 100: W_max = 70 * 1.7 / 2 = 59.5, window 49.
    for (fast_convergence, w_max) in [(true, 59.5), (false, 70.0)] {
        let mut cubic = after_loss(CubicConfig { fast_convergence, ..CubicConfig::default() }, 100);
        close(cubic.state.w_max, 100.0);
        cubic.on_signal(&flight(10, 70), Signal::Loss);
        close(cubic.state.w_max, w_max);
        close(cubic.state.cwnd_prior, 70.0);
        close(exact(&cubic), 49.0);
    }
    for signal in [Signal::Loss, Signal::Ecn] {
        let mut cubic = established_with(CubicConfig::default(), 2);
        cubic.on_signal(&flight(0, 2), signal);
        assert_eq!((cwnd(&cubic), ssthresh(&cubic)), (2, 2));
    }
}

#[test]
fn the_decrease_in_whole_segments() {
    for rules in [CubicRules::Linux39, CubicRules::Linux61] {
        // 100 * 717 / 1024 = 70.02; 70 * 717 / 1024 = 49.01; 70 * (1024 + 717) / 2048 = 59.51.
        let mut cubic = after_loss(linux(rules), 100);
        assert_eq!(cubic.window(), Window { cwnd: 70 * MSS, ssthresh: 70 * MSS });
        cubic.on_signal(&flight(10, 70), Signal::Loss);
        assert_eq!(cubic.state.w_max, 59.0);
        assert_eq!(cubic.window(), Window { cwnd: 49 * MSS, ssthresh: 49 * MSS });
    }
}

#[test]
fn a_timeout_starts_a_convex_stage() {
    let mut cubic = after_loss(CubicConfig::default(), 100);
    cubic.on_signal(&flight(100, 70), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!(cubic.window().cwnd, MSS);
    close(cubic.state.window.ssthresh as f64 / MSS as f64, 49.0);
    cubic.on_signal(&flight(900, 70), Signal::Timeout { repeated: true, kept: 0 });
    close(cubic.state.window.ssthresh as f64 / MSS as f64, 49.0);
    // Slow start leads to the threshold; there K = 0 and W_max = cwnd (RFC 9438 section 4.8).
    let mut millis = 1000;
    while cubic.state.epoch.is_none() {
        millis += 1;
        acks(&mut cubic, millis, 1, 1);
    }
    let curve = curve(&cubic.state);
    assert_eq!(curve.k, 0.0);
    assert!((48.9..49.1).contains(&curve.w_max), "{}", curve.w_max);
    close(cubic.state.cwnd_prior, 70.0);
}

#[test]
fn leaving_slow_start_without_loss_leaves_no_maximum() {
    let hystart = SlowStartRules::Hystart(HystartConfig { ack_train: false, ..HystartConfig::default() });
    let reno = NewRenoConfig { slow_start: hystart, ..NewRenoConfig::default() };
    let mut cubic = established_with(CubicConfig { reno, ..CubicConfig::default() }, 20);
    let _ = cubic.on_ack(&flight(50, 20), &ack(1, 50));
    for _ in 0..9 {
        // The second round.
        let f = Flight { snd_una: 20 * MSS + 1, snd_nxt: 60 * MSS, ..flight(100, 20) };
        let _ = cubic.on_ack(&f, &ack(1, 100));
    }
    // The ACK after eight samples sets the threshold before it grows the window: 20 + 1 + 8, and
    // then avoidance.
    assert_eq!(ssthresh(&cubic), 29);
    assert!((29.0..29.1).contains(&exact(&cubic)), "{}", exact(&cubic));
    close(cubic.state.cwnd_prior, 29.0);
    assert_eq!(curve(&cubic.state).k, 0.0);
}

#[test]
fn a_needless_loss_restores_the_curve() {
    let mut cubic = after_loss(CubicConfig::default(), 100);
    acks(&mut cubic, 0, 10, 1);
    let before = cubic.state.clone();
    cubic.on_signal(&flight(500, 70), Signal::Loss);
    cubic.on_signal(&flight(600, 70), Signal::Spurious);
    assert_eq!(cubic.window(), before.window);
    assert_eq!(cubic.state.w_max, before.w_max);
    let (now, then) = (cubic.state.epoch.as_ref().unwrap(), before.epoch.as_ref().unwrap());
    assert_eq!((now.start, curve(&cubic.state)), (then.start, curve(&before)));
    // The recovery that was under way changes nothing more.
    cubic.on_signal(&flight(700, 2), Signal::RecoveryEnd);
    assert_eq!(cubic.window(), before.window);
}

#[test]
fn linux_restores_the_window_and_starts_a_new_epoch_from_it() {
    let mut cubic = after_loss(linux(CubicRules::Linux61), 100);
    acks(&mut cubic, 0, 10, 1);
    cubic.on_signal(&flight(500, 70), Signal::Loss);
    cubic.on_signal(&flight(600, 70), Signal::Spurious);
    assert_eq!(cubic.window(), Window { cwnd: 70 * MSS, ssthresh: 70 * MSS });
    assert!(cubic.state.epoch.is_none());
    assert_eq!(cubic.state.w_max, 59.0);
}

#[test]
fn a_window_that_overtook_the_old_one_keeps_its_curve() {
    let mut cubic = after_loss(CubicConfig::default(), 10);
    for round in 1..100 {
        let segments = cwnd(&cubic);
        acks(&mut cubic, 100 * round, segments, 1);
    }
    let before = cubic.window();
    assert!(before.cwnd > 10 * MSS);
    cubic.on_signal(&flight(10_000, 10), Signal::Spurious);
    assert_eq!(cubic.window(), before);
}

#[test]
fn linux_6_1_counts_segments() {
    // Epoch of 70, delay_min 100 ms: K = cbrt(30 / 0.40039) = 4.2158, W(0.1) = 100 - 27.915 ->
    // 100 - 27 = 73, cnt = 70 / (73 - 70) = 23 segments for one.
    for each in [1, 2] {
        let mut cubic = after_loss(linux(CubicRules::Linux61), 100);
        cubic.path.shortest = Some(Span::from_millis(100));
        acks(&mut cubic, 0, 22, each);
        assert_eq!(cwnd(&cubic), 70);
        acks(&mut cubic, 0, 2, each);
        assert_eq!(cwnd(&cubic), 71);
    }
}

#[test]
fn linux_3_9_counts_acks_and_corrects_for_delayed_ones() {
    let mut cubic = after_loss(linux(CubicRules::Linux39), 100);
    cubic.path.shortest = Some(Span::from_millis(100));
    // At the threshold slow start acts once: 71 segments. In 1024ths of a second K = 4271 by
    // Linux's root of 29 * 2^40 / 410 (4268.6 by arithmetic), and 25 jiffies are 102: W = 100 -
    // (410 * 4169^3 >> 40) = 73, cnt = 71 / 2 = 35; two segments per ACK: 35 * 16 / 32 = 17 ACKs,
    // and one more because the comparison comes first.
    acks(&mut cubic, 0, 2, 2);
    assert_eq!(cwnd(&cubic), 71);
    acks(&mut cubic, 0, 34, 2);
    assert_eq!(cwnd(&cubic), 71);
    acks(&mut cubic, 0, 2, 2);
    assert_eq!(cwnd(&cubic), 72);
    assert_eq!(cubic.path.segments_per_ack, 32);
    // ACKs of one segment: 32 - 32/16 + 1 = 31, and 31 - 31/16 + 1 = 31: whole numbers bring Linux
    // no further down.
    acks(&mut cubic, 0, 100, 1);
    assert_eq!(cubic.path.segments_per_ack, 31);
    // ACKs of four: up to 64, where 64/16 = 4 holds the balance.
    acks(&mut cubic, 0, 400, 4);
    assert_eq!(cubic.path.segments_per_ack, 64);
}

#[test]
fn linux_before_any_loss_grows_by_a_twentieth_per_round_trip() {
    let mut cubic = established_with(linux(CubicRules::Linux61), 100);
    cubic.state.window.ssthresh = 100 * MSS;
    acks(&mut cubic, 0, 100, 1);
    assert_eq!(cwnd(&cubic), 105);
}

#[test]
fn linux_2_6_32_has_no_hurry_before_any_loss_and_undoes_to_the_maximum_of_the_curve() {
    // At the threshold slow start acts once: 101. The curve is flat there: 100 * 101 ACKs for one.
    let mut cubic = established_with(linux(CubicRules::Linux26), 100);
    cubic.state.window.ssthresh = 100 * MSS;
    acks(&mut cubic, 0, 100, 1);
    assert_eq!(cwnd(&cubic), 101);
    // bictcp_undo_cwnd: last_max_cwnd, which is 100 * 1741 / 2048 = 85 for a window below 120.
    let mut cubic = established_with(linux(CubicRules::Linux26), 100);
    cubic.state.w_max = 120.0;
    cubic.on_signal(&flight(0, 100), Signal::Loss);
    assert_eq!(cwnd(&cubic), 70);
    cubic.on_signal(&flight(1, 100), Signal::Spurious);
    assert_eq!(cwnd(&cubic), 85);
}

#[test]
fn linux_follows_reno_on_short_paths() {
    // The curve is flat at 14 segments: 100 * 14. beta_scale 15: 14 * 15 / 8 = 26 segments
    // acknowledged for one of Reno's growth. The 27th makes Reno's window 15, so that cnt = 14 / 1
    // from the next computation, 31.25 ms later.
    let mut cubic = established_with(linux(CubicRules::Linux61), 14);
    cubic.state.window.ssthresh = 14 * MSS;
    cubic.state.w_max = 14.0;
    cubic.path.shortest = Some(Span::from_millis(1));
    acks(&mut cubic, 0, 1, 1);
    let growth = |cubic: &Cubic| match &cubic.state.epoch.as_ref().unwrap().growth {
        Growth::Linux(growth) => format!("{growth:?}"),
        Growth::Rfc9438(..) => unreachable!(),
    };
    assert!(growth(&cubic).contains("cnt: 1400, w_est: 14, acks: 1"), "{}", growth(&cubic));
    acks(&mut cubic, 31, 26, 1);
    assert!(growth(&cubic).contains("cnt: 1400, w_est: 14, acks: 27"), "{}", growth(&cubic));
    let _ = cubic.on_ack(&flight(32, 14), &ack(1, 1));
    // 28 acknowledged, 26 spent; the credit of 27 is above the new price of 14, hence one segment
    // at once.
    assert!(growth(&cubic).contains("cnt: 14, w_est: 15, acks: 2"), "{}", growth(&cubic));
    assert_eq!(cwnd(&cubic), 15);
}

#[test]
fn linux_on_a_steep_curve() {
    // A minute on, the curve is out of sight. 6.1: one segment for two acknowledged, and one for
    // the credit from before. 3.9: cnt = 1, but every other ACK only counts.
    for (rules, grown) in [(CubicRules::Linux61, 11), (CubicRules::Linux39, 10)] {
        let mut cubic = after_loss(linux(rules), 20);
        cubic.path.segments_per_ack = 16;
        acks(&mut cubic, 0, 2, 1);
        let before = cwnd(&cubic);
        acks(&mut cubic, 60_000, 20, 1);
        assert_eq!(cwnd(&cubic) - before, grown, "{rules:?}");
    }
}

#[test]
fn time_without_growth_is_not_on_the_curve() {
    for (rules, limited, shift) in [
        (CubicRules::Rfc9438, false, 400),
        (CubicRules::Linux61, false, 0),
        (CubicRules::Linux39, false, 0),
        (CubicRules::Rfc9438, true, 0),
    ] {
        let mut cubic = after_loss(linux(rules), 100);
        acks(&mut cubic, 100, 2, 1);
        let f = Flight { cwnd_limited: limited, ..flight(500, 10) };
        let _ = cubic.on_ack(&f, &ack(1, 100));
        assert_eq!(cubic.state.epoch.as_ref().unwrap().start, Time::from_millis(100 + shift), "{rules:?}");
    }
}

#[test]
fn idle_time_is_not_on_the_curve() {
    for (rules, shift) in [(CubicRules::Rfc9438, 800), (CubicRules::Linux61, 800), (CubicRules::Linux39, 0)] {
        let mut cubic = after_loss(linux(rules), 100);
        acks(&mut cubic, 100, 2, 1);
        let all = Flight { snd_una: 70 * MSS, snd_nxt: 70 * MSS, ..flight(200, 0) };
        let _ = cubic.on_ack(&all, &ack(1, 100));
        cubic.on_sent(&flight(1000, 1), &sent());
        cubic.on_sent(&flight(1001, 2), &sent());
        let _ = cubic.on_ack(&Flight { cwnd_limited: false, ..flight(1000, 1) }, &ack(1, 100));
        assert_eq!(cubic.state.epoch.as_ref().unwrap().start, Time::from_millis(100 + shift), "{rules:?}");
    }
}

#[test]
fn the_first_second_of_an_epoch_tells_nothing_of_the_shortest_round_trip() {
    let mut cubic = after_loss(CubicConfig::default(), 100);
    let _ = cubic.on_ack(&flight(0, 70), &ack(1, 100));
    let _ = cubic.on_ack(&flight(999, 70), &ack(1, 40));
    assert_eq!(cubic.path.shortest, Some(Span::from_millis(100)));
    let _ = cubic.on_ack(&flight(1000, 70), &ack(1, 50));
    assert_eq!(cubic.path.shortest, Some(Span::from_millis(50)));
}

#[test]
fn samples_that_come_before_the_reaction_count_once() {
    // cubictcp_acked: HyStart finds the delay longer than 50 ms and an eighth with the ninth sample
    // of a round, and slow start ends at the window in force, which recovery has brought down.
    let config = linux(CubicRules::Linux61);
    let slow_start = SlowStartRules::Hystart(HystartConfig { ack_train: false, ..HystartConfig::default() });
    let reno = NewRenoConfig { slow_start, ..config.reno };
    let mut cubic = established_with(CubicConfig { reno, ..config }, 20);
    cubic.on_sample(&flight(0, 20), Span::from_millis(50), 20 * MSS);
    let round = Flight { snd_una: 21 * MSS, snd_nxt: 60 * MSS, ..flight(100, 20) };
    for _ in 0..8 {
        cubic.on_sample(&round, Span::from_millis(60), 18 * MSS);
        assert_eq!(cubic.window().ssthresh, Window::INFINITE);
    }
    cubic.on_sample(&round, Span::from_millis(60), 18 * MSS);
    assert_eq!((cwnd(&cubic), ssthresh(&cubic)), (20, 18));
    let _ = cubic.on_ack(&round, &Ack { sampled: true, ..ack(1, 40) });
    assert_eq!(cubic.path.shortest, Some(Span::from_millis(50)));
}

#[test]
fn a_timeout_goes_by_what_was_in_flight_on_freebsd_14() {
    // cubic_cong_signal, CC_RTO: beta of min(snd_wnd, pipe), 13 segments of a window of 20: 0.7 *
    // 13 = 9.1. Else 0.7 * 20.
    for (timeout_flight, threshold) in [(false, 14), (true, 9)] {
        let reno = NewRenoConfig { timeout_flight, ..crate::reactions::freebsd() };
        let mut cubic = Cubic::new(CubicConfig { reno, ..CubicConfig::default() });
        cubic.on_established(&Flight { initial_window: 20 * MSS, ..flight(0, 20) });
        cubic.on_signal(&flight(100, 13), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!((cwnd(&cubic), ssthresh(&cubic)), (1, threshold));
    }
}

#[test]
fn an_idle_time_is_remembered_in_the_curve_on_freebsd_14() {
    // cubic_after_idle: W_max = max(W_max, cwnd), and newreno_cc_after_idle: ssthresh =
    // max(ssthresh, 3/4 cwnd).
    for (remember_idle, w_max, threshold) in [(false, 20.0, 14), (true, 30.0, 22)] {
        let reno = NewRenoConfig { remember_idle, ..crate::reactions::freebsd() };
        let mut cubic = Cubic::new(CubicConfig { reno, ..CubicConfig::default() });
        cubic.on_established(&Flight { initial_window: 20 * MSS, ..flight(0, 20) });
        cubic.on_signal(&flight(100, 20), Signal::Loss);
        cubic.on_signal(&flight(200, 14), Signal::RecoveryEnd);
        cubic.state.window.cwnd = 30 * MSS;
        cubic.on_signal(&flight(9000, 0), Signal::IdleRestart);
        assert_eq!((cubic.state.w_max, cwnd(&cubic), ssthresh(&cubic)), (w_max, 10, threshold));
    }
}

/// RFC 9438 section 4.7: fast convergence is for a window below the W_max of before; one that has
/// reached it has lost nothing.
#[test]
fn a_window_that_reached_w_max_does_not_release_more() {
    // 1.7 / 2 of 90.
    for (segments, w_max) in [(90, 76.5), (100, 100.0), (110, 110.0)] {
        let mut cubic = established_with(CubicConfig::default(), segments);
        cubic.state.w_max = 100.0;
        cubic.on_signal(&flight(0, segments), Signal::Loss);
        close(cubic.state.w_max, w_max);
    }
}

/// RFC 8511: marks reduce by a factor of their own, losses by CUBIC's.
#[test]
fn marks_may_have_a_factor_of_their_own() {
    let reno = NewRenoConfig { beta_ecn: Some(0.85), ..NewRenoConfig::default() };
    for (signal, segments) in [(Signal::Ecn, 85), (Signal::Loss, 70)] {
        let mut cubic = established_with(CubicConfig { reno, ..CubicConfig::default() }, 100);
        cubic.on_signal(&flight(0, 100), signal);
        assert_eq!(cwnd(&cubic), segments);
    }
}

/// RFC 9438 section 4.9.2: what was before returns if the window is smaller than it was then.
#[test]
fn a_window_that_has_grown_back_is_not_undone() {
    for (segments, ssthresh) in [(99, Window::INFINITE), (100, 70 * MSS)] {
        let mut cubic = after_loss(CubicConfig::default(), 100);
        cubic.state.window.cwnd = segments * MSS;
        cubic.on_signal(&flight(0, segments), Signal::Spurious);
        assert_eq!(cubic.window(), Window { cwnd: 100 * MSS, ssthresh });
    }
}

/// RFC 5681 section 3.2 step 6 by way of RFC 6582: at the end of recovery no burst, that is a
/// segment beside what is in flight.
#[test]
fn recovery_ends_without_a_burst() {
    let mut cubic = established_with(CubicConfig::default(), 100);
    cubic.on_signal(&flight(0, 100), Signal::Loss);
    cubic.on_signal(&flight(0, 20), Signal::RecoveryEnd);
    assert_eq!((cwnd(&cubic), ssthresh(&cubic)), (21, 70));
}
