use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

/// A flight of `cwnd` segments with round trips of `rtt` milliseconds.
fn at(millis: u64, cwnd: u64, rtt: u64) -> Flight {
    let span = Some(Span::from_millis(rtt));
    Flight { srtt: span, latest_rtt: span, ..flight(millis, cwnd) }
}

/// In congestion avoidance with a window of `segments`.
fn prague(config: PragueConfig, segments: u64) -> Prague {
    let mut cc = Prague::new(config);
    cc.on_established(&Flight { initial_window: segments * MSS, snd_nxt: 1, ..flight(0, segments) });
    cc.on_ecn(EcnFeedback::Accurate);
    cc.state.window.ssthresh = segments * MSS;
    cc
}

fn marked(segments: u64, marked: u64) -> Ack {
    Ack { ce: marked * MSS, ..ack(segments, 100) }
}

/// The exact window, in segments.
fn exact(cc: &Prague) -> f64 {
    cc.state.exact / MSS as f64
}

fn near(got: f64, expected: f64) {
    assert!((got - expected).abs() < 1e-3, "{got}, not {expected}");
}

#[test]
fn the_window_grows_by_a_segment_per_round_trip() {
    let mut cc = prague(PragueConfig::default(), 10);
    for _ in 0..10 {
        let _ = cc.on_ack(&at(100, 10, 100), &ack(1, 100));
    }
    // 10 ACKs, each 1/w: w -> sqrt(100 + 2 * 10) = 10.954 at the most.
    let grown = exact(&cc);
    assert!((10.94..10.97).contains(&grown), "{grown}");
    assert_eq!(cwnd(&cc), 11, "rounded up");
}

#[test]
fn short_round_trips_grow_with_their_square() {
    // 5 ms of a target of 25: (1/5)^2 segments per round trip, once four rounds have passed after
    // slow start.
    let mut cc = prague(PragueConfig::default(), 100);
    for round in 1..=8 {
        let f = Flight { snd_una: round * 10, snd_nxt: round * 10 + 5, ..at(50 * round, 100, 5) };
        let before = exact(&cc);
        let _ = cc.on_ack(&f, &ack(100, 5));
        near(exact(&cc) - before, if round <= 4 { 100.0 / before } else { 100.0 / before / 25.0 });
    }
    assert!(cc.is_independent());
}

#[test]
fn alpha_is_averaged_once_per_round_trip_and_no_more_often_than_the_target() {
    let mut cc = prague(PragueConfig::default(), 100);
    (cc.rounds, cc.saw_mark) = (4, true);
    let mut alphas = vec![];
    for (millis, una, marks) in [(30, 10, 100), (40, 20, 100), (55, 30, 0), (80, 40, 0)] {
        let f = Flight { snd_una: una, snd_nxt: una + 5, ..at(millis, 100, 10) };
        let _ = cc.on_ack(&f, &marked(100, marks));
        alphas.push(cc.alpha);
    }
    // 1/16 of one; 10 ms later it is too early; then half of 200 were marked: 1/16 + (1/2 -
    // 1/16)/16; then none of 100.
    let second = 0.0625 + (0.5 - 0.0625) / 16.0;
    for (got, expected) in alphas.iter().zip([0.0625, 0.0625, second, second * 15.0 / 16.0]) {
        near(*got, expected);
    }
}

#[test]
fn marks_take_half_of_alpha_off_once_per_target() {
    let mut cc = prague(PragueConfig::default(), 100);
    (cc.rounds, cc.saw_mark, cc.alpha) = (4, true, 0.5);
    cc.on_signal(&at(100, 100, 10), Signal::Ecn);
    near(exact(&cc), 75.0);
    cc.on_signal(&at(110, 100, 10), Signal::Ecn);
    near(exact(&cc), 75.0);
    cc.on_signal(&at(125, 100, 10), Signal::Ecn);
    near(exact(&cc), 56.25);
    // The window follows by a segment for each ACK, and the threshold with it.
    let _ = cc.on_ack(&at(126, 100, 10), &marked(1, 1));
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (99, 99));
}

#[test]
fn it_grows_in_the_round_trip_in_which_it_is_marked() {
    // Half of 100 segments marked: growth for the other 50.
    let mut cc = prague(PragueConfig::default(), 100);
    cc.saw_mark = true;
    let _ = cc.on_ack(&at(100, 100, 100), &marked(100, 50));
    near(exact(&cc), 100.0 + 50.0 / 100.0);
}

#[test]
fn the_first_mark_halves_the_window() {
    let mut cc = Prague::new(PragueConfig::default());
    cc.on_established(&Flight { initial_window: 64 * MSS, ..flight(0, 64) });
    cc.on_ecn(EcnFeedback::Accurate);
    cc.on_signal(&at(100, 64, 100), Signal::Ecn);
    let _ = cc.on_ack(&at(100, 64, 100), &marked(2, 2));
    near(exact(&cc), 32.0);
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (63, 63), "slow start is over");
    let mut cc = prague(PragueConfig { alpha_on_init: true, ..PragueConfig::default() }, 64);
    cc.on_signal(&at(100, 64, 100), Signal::Ecn);
    let _ = cc.on_ack(&at(100, 64, 100), &marked(2, 2));
    near(exact(&cc), 32.0);
}

#[test]
fn a_loss_halves_and_stops_growth_until_it_is_repaired() {
    let mut cc = prague(PragueConfig::default(), 100);
    cc.on_signal(&at(0, 100, 100), Signal::Loss);
    for _ in 0..60 {
        let _ = cc.on_ack(&at(10, 100, 100), &ack(1, 100));
    }
    near(exact(&cc), 50.0);
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (50, 50));
    cc.on_signal(&at(100, 50, 100), Signal::RecoveryEnd);
    let _ = cc.on_ack(&at(110, 50, 100), &ack(1, 100));
    near(exact(&cc), 50.02);
    cc.on_signal(&at(120, 50, 100), Signal::Loss);
    cc.on_signal(&at(130, 50, 100), Signal::Spurious);
    near(exact(&cc), 51.0);
    assert_eq!(cwnd(&cc), 51);
}

#[test]
fn after_a_timeout_the_window_comes_back_to_half() {
    let mut cc = prague(PragueConfig::default(), 20);
    cc.on_signal(&at(0, 20, 100), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (1, 10));
    let f = Flight { after_timeout: true, ..at(300, 1, 100) };
    for _ in 0..20 {
        let _ = cc.on_ack(&f, &ack(1, 100));
    }
    assert_eq!(cwnd(&cc), 10);
}

#[test]
fn without_accurate_ecn_a_mark_is_a_loss() {
    let mut cc = prague(PragueConfig::default(), 20);
    cc.on_ecn(EcnFeedback::Classic);
    cc.on_signal(&at(0, 20, 100), Signal::Ecn);
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (10, 10));
}

#[test]
fn without_accurate_ecn_it_is_reno_without_pacing_and_in_the_endpoint_s_hands() {
    // `prague_init`: icsk_ca_ops = &prague_reno.
    for feedback in [EcnFeedback::None, EcnFeedback::Classic] {
        let mut cc = prague(PragueConfig::default(), 20);
        cc.on_ecn(feedback);
        let f = at(0, 20, 5);
        assert_eq!((cc.needs(), cc.pacing_rate(&f)), (Needs::default(), None), "{feedback:?}");
        // A segment for each window acknowledged, however short the round trip.
        for _ in 0..20 {
            let _ = cc.on_ack(&at(100, 20, 5), &ack(1, 5));
        }
        assert_eq!(cwnd(&cc), 21);
        cc.on_signal(&at(100, 21, 5), Signal::Loss);
        assert_eq!((cwnd(&cc), ssthresh(&cc)), (10, 10));
        cc.on_signal(&at(200, 10, 5), Signal::RecoveryEnd);
        cc.on_signal(&at(9000, 0, 5), Signal::IdleRestart);
        assert_eq!(cwnd(&cc), 10);
    }
    // On another connection it starts anew.
    let mut cc = prague(PragueConfig::default(), 20);
    cc.on_ecn(EcnFeedback::None);
    cc.on_established(&at(0, 20, 5));
    cc.on_ecn(EcnFeedback::Accurate);
    assert!(cc.needs().whole_control && cc.pacing_rate(&at(0, 20, 5)).is_some());
}

#[test]
fn the_increase_follows_the_round_trip_with_every_step_of_the_window() {
    // 10 ms of a target of 20: a quarter. The round trip becomes 20 ms in the middle of a round: 1
    // from the next step on.
    let config = PragueConfig { rtt_target: Span::from_millis(20), rtt_transition: 0, ..PragueConfig::default() };
    let mut cc = prague(config, 10);
    (cc.increase, cc.round_end) = (0.25, u64::MAX);
    cc.state.exact = 9.99 * MSS as f64;
    let f = Flight { snd_una: 1, ..at(100, 10, 20) };
    let _ = cc.on_ack(&f, &ack(1, 20));
    // 9.99 + 0.25 / 9.99 = 10.015: the window makes a step.
    near(exact(&cc), 9.99 + 0.25 / 9.99);
    assert_eq!((cwnd(&cc), cc.increase), (11, 1.0));
    let before = exact(&cc);
    let _ = cc.on_ack(&f, &ack(1, 20));
    near(exact(&cc) - before, 1.0 / before);
}

#[test]
fn the_step_is_taken_whether_the_window_is_full_or_not() {
    let mut cc = prague(PragueConfig::default(), 10);
    cc.state.exact = 12.0 * MSS as f64;
    let unused = Flight { cwnd_limited: false, ..at(100, 3, 100) };
    let windows: Vec<u64> = (0..4)
        .map(|_| {
            let _ = cc.on_ack(&unused, &ack(1, 100));
            cwnd(&cc)
        })
        .collect();
    assert_eq!(windows, [11, 12, 12, 12]);
    near(exact(&cc), 12.0);
}

#[test]
fn losses_halve_without_a_bound_below_the_window() {
    // 3 segments are worth 1.5 and 0.75 after two losses; the window stays at two. One segment then
    // adds 1 / 0.75.
    let mut cc = prague(PragueConfig::default(), 3);
    for worth in [1.5, 0.75] {
        cc.on_signal(&at(100, 3, 100), Signal::Loss);
        near(exact(&cc), worth);
        cc.on_signal(&at(200, 2, 100), Signal::RecoveryEnd);
    }
    let _ = cc.on_ack(&at(210, 2, 100), &ack(1, 100));
    near(exact(&cc), 0.75 + 1.0 / 0.75);
    assert_eq!(cwnd(&cc), 3, "rounded up from 2.08");
}

#[test]
fn it_paces_by_the_window_and_twice_in_slow_start() {
    // 100 segments of 1448 bytes per 100 ms: 11.584 Mbit/s.
    let cc = prague(PragueConfig::default(), 100);
    assert_eq!(cc.pacing_rate(&at(0, 100, 100)).unwrap().as_bps(), 11_584_000);
    let mut cc = Prague::new(PragueConfig::default());
    cc.on_established(&Flight { initial_window: 100 * MSS, ..flight(0, 100) });
    assert_eq!(cc.pacing_rate(&at(0, 100, 100)).unwrap().as_bps(), 23_168_000);
}

/// Slow start ends within an ACK of three segments: one to the threshold, two more add 2/11 in
/// congestion avoidance.
#[test]
fn an_ack_may_end_slow_start() {
    let mut cc = prague(PragueConfig::default(), 10);
    cc.state.window.ssthresh = 11 * MSS;
    let _ = cc.on_ack(&at(100, 10, 100), &ack(3, 100));
    near(exact(&cc), 11.0 + 2.0 / 11.0);
    assert_eq!(cwnd(&cc), 12, "rounded up");
    // All of it before the threshold: slow start's alone.
    let mut cc = prague(PragueConfig::default(), 10);
    cc.state.window.ssthresh = 13 * MSS;
    let _ = cc.on_ack(&at(100, 10, 100), &ack(3, 100));
    near(exact(&cc), 13.0);
}

/// tcp_prague.c, `prague_is_rtt_indep`: not in slow start, and not in the first rounds after it.
/// Only then are reductions a target apart.
#[test]
fn round_trips_are_scaled_after_slow_start_alone() {
    for (rounds, slow_start, independent) in [(3, false, false), (4, false, true), (4, true, false), (0, true, false)] {
        let mut cc = prague(PragueConfig::default(), 100);
        cc.rounds = rounds;
        if slow_start {
            cc.state.window.ssthresh = Window::INFINITE;
        }
        assert_eq!(cc.is_independent(), independent, "{rounds} {slow_start}");
        cc.alpha = 1.0;
        cc.on_signal(&at(1000, 100, 5), Signal::Ecn);
        cc.on_signal(&at(1005, 100, 5), Signal::Ecn);
        near(exact(&cc), if independent { 50.0 } else { 25.0 });
    }
}

/// The increase is computed anew when the window takes a step, not between.
#[test]
fn the_increase_changes_with_the_window() {
    let mut cc = prague(PragueConfig::default(), 100);
    (cc.rounds, cc.increase) = (4, 0.5);
    let idle = Flight { cwnd_limited: false, snd_una: 0, ..at(100, 100, 5) };
    let _ = cc.follow(&idle);
    near(cc.increase, 0.5);
    cc.state.exact += 0.5 * MSS as f64;
    let _ = cc.follow(&idle);
    near(cc.increase, 1.0 / 25.0);
}

/// `prague_update_pacing_rate`: twice the rate below half of the threshold, and no more at half of
/// it.
#[test]
fn slow_start_paces_at_twice_the_rate_up_to_half_of_the_threshold() {
    // 10 segments in 100 ms are 1,158,400 bit/s.
    for (ssthresh, bits) in [(20 * MSS, 1_158_400), (20 * MSS + 2, 2_316_800)] {
        let mut cc = prague(PragueConfig::default(), 10);
        cc.state.window.ssthresh = ssthresh;
        assert_eq!(cc.pacing_rate(&at(0, 10, 100)), Rate::from_bps(bits));
    }
}

/// A timeout takes away the window that was there then, not the one that a loss had found before,
/// nor the one that a second timeout finds.
#[test]
fn a_timeout_saves_what_it_found() {
    let mut cc = prague(PragueConfig::default(), 100);
    cc.on_signal(&at(1000, 100, 100), Signal::Loss);
    cc.on_signal(&at(1100, 100, 100), Signal::RecoveryEnd);
    near(exact(&cc), 50.0);
    cc.state.window.cwnd = 50 * MSS;
    cc.on_signal(&at(2000, 50, 100), Signal::Timeout { repeated: false, kept: 0 });
    cc.on_signal(&at(2300, 1, 100), Signal::Timeout { repeated: true, kept: 0 });
    near(exact(&cc), 25.0);
    cc.on_signal(&at(2400, 1, 100), Signal::Spurious);
    assert_eq!((cwnd(&cc), cc.state.in_loss), (50, false));
    near(exact(&cc), 50.0);
}
