use super::*;
use crate::fixture::{MSS, acks, cwnd, flight, ssthresh};
use crate::reactions::freebsd;

fn established_with(config: NewRenoConfig, segments: u64) -> NewReno {
    let mut reno = NewReno::new(config);
    reno.on_established(&Flight { initial_window: segments * MSS, ..flight(0, segments) });
    reno
}

fn in_avoidance(config: NewRenoConfig, segments: u64) -> NewReno {
    let mut reno = established_with(config, 2 * segments);
    reno.on_signal(&flight(0, 2 * segments), Signal::Loss);
    reno.on_signal(&flight(0, segments), Signal::RecoveryEnd);
    reno
}

fn counting_acks() -> NewRenoConfig {
    NewRenoConfig { abc: false, past_ssthresh: true, limit_burst: false, ..NewRenoConfig::default() }
}

#[test]
fn a_round_trip_of_slow_start_with_delayed_acks() {
    // 10 segments acknowledged by 5 ACKs of 2: min(2, L) segments each (RFC 3465 section 2.2), or
    // one each.
    for (config, segments) in [
        (NewRenoConfig { abc_l_var: 1, ..NewRenoConfig::default() }, 15),
        (NewRenoConfig { abc_l_var: 2, ..NewRenoConfig::default() }, 20),
        (NewRenoConfig { abc_l_var: 0, ..NewRenoConfig::default() }, 20),
        (counting_acks(), 15),
    ] {
        let mut reno = established_with(config, 10);
        acks(&mut reno, 100, 10, 2);
        assert_eq!(cwnd(&reno), segments, "{config:?}");
    }
}

#[test]
fn a_stretch_ack_counts_for_l_segments() {
    for (l, segments) in [(1, 11), (2, 12), (0, 18)] {
        let mut reno = established_with(NewRenoConfig { abc_l_var: l, ..NewRenoConfig::default() }, 10);
        acks(&mut reno, 100, 8, 8);
        assert_eq!(cwnd(&reno), segments);
    }
}

#[test]
fn after_a_timeout_l_is_one() {
    let mut reno = established_with(NewRenoConfig::default(), 20);
    reno.on_signal(&flight(0, 20), Signal::Timeout { repeated: false, kept: 0 });
    let f = Flight { after_timeout: true, ..flight(300, 1) };
    let _ = reno.on_ack(&f, &Ack { acked: 5 * MSS, delivered: 5 * MSS, ..Ack::default() });
    assert_eq!(cwnd(&reno), 2);
}

#[test]
fn congestion_avoidance_adds_a_segment_per_round_trip() {
    for each in [1, 2, 5] {
        let mut reno = in_avoidance(NewRenoConfig::default(), 10);
        assert_eq!(reno.window(), Window { cwnd: 10 * MSS, ssthresh: 10 * MSS });
        acks(&mut reno, 100, 10, each);
        assert_eq!(cwnd(&reno), 11);
        acks(&mut reno, 200, 10, each);
        assert_eq!(cwnd(&reno), 11, "11 segments make the next one");
        acks(&mut reno, 200, each, each);
        assert_eq!(cwnd(&reno), 12);
    }
}

#[test]
fn an_ack_that_rate_halving_has_left_counts_where_acks_are_counted() {
    for (config, left, needed) in
        [(counting_acks(), 0, 12), (counting_acks(), 1, 11), (NewRenoConfig::default(), 1, 11)]
    {
        let mut reno = in_avoidance(config, 10);
        // Beyond the threshold, where slow start acts no more.
        reno.set_window(Window { cwnd: 11 * MSS, ssthresh: 10 * MSS });
        reno.on_signal(&flight(0, 11), Signal::CountedAcks(left));
        acks(&mut reno, 100, needed - 1, 1);
        assert_eq!(cwnd(&reno), 11, "{config:?}, {left}");
        acks(&mut reno, 100, 1, 1);
        assert_eq!(cwnd(&reno), 12, "{config:?}, {left}");
    }
}

#[test]
fn counting_acks_is_slower_by_the_delay_of_acks() {
    // At the threshold slow start acts once more, then one segment for 11 + 1 ACKs of two segments.
    let mut reno = in_avoidance(counting_acks(), 10);
    acks(&mut reno, 100, 2, 2);
    assert_eq!(cwnd(&reno), 11);
    acks(&mut reno, 100, 22, 2);
    assert_eq!(cwnd(&reno), 11);
    acks(&mut reno, 100, 2, 2);
    assert_eq!(cwnd(&reno), 12);
}

#[test]
fn the_rest_of_an_ack_beyond_the_threshold_counts_in_avoidance() {
    let config = NewRenoConfig { abc_l_var: 0, ..NewRenoConfig::default() };
    let mut reno = established_with(config, 10);
    reno.state.window.ssthresh = 12 * MSS;
    acks(&mut reno, 100, 5, 5);
    assert_eq!(reno.window().cwnd, 12 * MSS);
    assert_eq!(reno.state.credit, 3 * MSS);

    let mut reno = established_with(NewRenoConfig { past_ssthresh: true, ..config }, 10);
    reno.state.window.ssthresh = 12 * MSS;
    acks(&mut reno, 100, 5, 5);
    assert_eq!(reno.window().cwnd, 15 * MSS);
}

#[test]
fn the_threshold_is_half_the_window_in_whole_segments() {
    for (before, after) in [(21, 10), (20, 10), (5, 2), (3, 2), (2, 2)] {
        for signal in [Signal::Loss, Signal::Ecn] {
            let mut reno = established_with(NewRenoConfig::default(), before);
            reno.on_signal(&flight(0, before), signal);
            assert_eq!(reno.window(), Window { cwnd: after * MSS, ssthresh: after * MSS });
        }
    }
}

#[test]
fn the_threshold_is_half_of_the_flight_if_asked() {
    let mut reno = established_with(NewRenoConfig { halve_flight: true, ..NewRenoConfig::default() }, 20);
    reno.on_signal(&flight(0, 8), Signal::Loss);
    assert_eq!(ssthresh(&reno), 4);
}

#[test]
fn the_window_after_recovery_allows_no_burst() {
    // RFC 6582 section 3.2 step 3: min(ssthresh, max(FlightSize, SMSS) + SMSS).
    for (in_flight, with_limit) in [(0, 2), (3, 4), (9, 10), (30, 10)] {
        for (limit_burst, segments) in [(true, with_limit), (false, 10)] {
            let mut reno = established_with(NewRenoConfig { limit_burst, ..NewRenoConfig::default() }, 20);
            reno.on_signal(&flight(0, 20), Signal::Loss);
            reno.on_signal(&flight(100, in_flight), Signal::RecoveryEnd);
            assert_eq!(cwnd(&reno), segments);
        }
    }
}

#[test]
fn a_timeout_leaves_one_segment_and_its_repetition_the_threshold() {
    let mut reno = established_with(NewRenoConfig::default(), 20);
    reno.on_signal(&flight(0, 20), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&reno), ssthresh(&reno)), (1, 10));
    reno.on_signal(&flight(900, 20), Signal::Timeout { repeated: true, kept: 0 });
    assert_eq!((cwnd(&reno), ssthresh(&reno)), (1, 10));
    reno.on_signal(&flight(1000, 20), Signal::Spurious);
    assert_eq!(reno.window(), Window { cwnd: 20 * MSS, ssthresh: Window::INFINITE });
}

#[test]
fn a_timeout_may_go_by_what_was_in_flight() {
    // 20 segments of window, 13 in flight: a loss halves the window, FreeBSD 14's timeout takes 13
    // / 2 = 6 whole segments.
    for (timeout_flight, at_timeout) in [(false, 10), (true, 6)] {
        let config = NewRenoConfig { timeout_flight, ..freebsd() };
        let mut reno = in_avoidance(config, 20);
        reno.on_signal(&flight(100, 13), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!((cwnd(&reno), ssthresh(&reno)), (1, at_timeout));
        let mut reno = in_avoidance(config, 20);
        reno.on_signal(&flight(100, 13), Signal::Loss);
        assert_eq!(ssthresh(&reno), 10);
        let mut reno = in_avoidance(config, 20);
        reno.on_signal(&flight(100, 3), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!(ssthresh(&reno), if timeout_flight { 2 } else { 10 }, "two segments at least");
    }
}

#[test]
fn a_needless_loss_is_taken_back_once() {
    let mut reno = in_avoidance(NewRenoConfig::default(), 10);
    acks(&mut reno, 100, 4, 2);
    reno.on_signal(&flight(200, 10), Signal::Loss);
    assert_eq!((cwnd(&reno), ssthresh(&reno)), (5, 5));
    reno.on_signal(&flight(250, 10), Signal::Spurious);
    assert_eq!((cwnd(&reno), ssthresh(&reno), reno.state.credit), (10, 10, 4 * MSS));
    // The recovery that was under way changes nothing more.
    reno.on_signal(&flight(300, 3), Signal::RecoveryEnd);
    assert_eq!(cwnd(&reno), 10);
    reno.on_signal(&flight(350, 10), Signal::Ecn);
    reno.on_signal(&flight(350, 10), Signal::Spurious);
    assert_eq!(cwnd(&reno), 5, "an ECN echo is never needless");
}

#[test]
fn idle_time_takes_the_window_to_the_restart_window() {
    for (remember_idle, threshold) in [(false, 10), (true, 15)] {
        let config = NewRenoConfig { remember_idle, ..NewRenoConfig::default() };
        let mut reno = in_avoidance(config, 10);
        for _ in 0..10 {
            let segments = cwnd(&reno);
            acks(&mut reno, 100, segments, 1);
        }
        assert_eq!((cwnd(&reno), ssthresh(&reno)), (20, 10));
        reno.on_signal(&flight(5000, 0), Signal::IdleRestart);
        assert_eq!((cwnd(&reno), ssthresh(&reno)), (10, threshold));
    }
    // Linux halves the window for each RTO, and hands that over as the restart window.
    let mut reno = in_avoidance(NewRenoConfig::default(), 20);
    reno.on_signal(&Flight { initial_window: 15 * MSS, ..flight(5000, 0) }, Signal::IdleRestart);
    assert_eq!(cwnd(&reno), 15);
    // RW = min(IW, cwnd).
    let mut reno = in_avoidance(NewRenoConfig::default(), 4);
    reno.on_signal(&flight(5000, 0), Signal::IdleRestart);
    assert_eq!(cwnd(&reno), 4);
}

#[test]
fn an_unused_window_does_not_grow() {
    for mut reno in [established_with(NewRenoConfig::default(), 10), in_avoidance(NewRenoConfig::default(), 10)] {
        for _ in 0..100 {
            let f = Flight { cwnd_limited: false, ..flight(100, 3) };
            let _ = reno.on_ack(&f, &Ack { acked: MSS, delivered: MSS, ..Ack::default() });
        }
        assert_eq!(cwnd(&reno), 10);
    }
}

#[test]
fn the_ack_that_ends_a_recovery_counts_for_what_it_newly_delivers() {
    // The ACK covers 20 segments, of which 19 had been SACKed: counting all would add two segments
    // to a window of 10.
    let mut reno = in_avoidance(NewRenoConfig::default(), 10);
    let end = Ack { acked: 20 * MSS, delivered: MSS, ..Ack::default() };
    let _ = reno.on_ack(&flight(200, 10), &end);
    assert_eq!(cwnd(&reno), 10);
    acks(&mut reno, 300, 9, 1);
    assert_eq!(cwnd(&reno), 11);
}

#[test]
fn abe_reduces_less_for_ecn_than_for_loss() {
    // RFC 8511 section 3: beta_ecn 0.8 of 20 segments; a loss still halves.
    for (signal, segments) in [(Signal::Ecn, 16), (Signal::Loss, 10)] {
        let mut reno = NewReno::new(NewRenoConfig { beta_ecn: Some(0.8), ..NewRenoConfig::default() });
        reno.on_established(&Flight { initial_window: 20 * MSS, ..flight(0, 0) });
        reno.on_signal(&flight(0, 20), signal);
        assert_eq!(reno.window().ssthresh, segments * MSS, "{signal:?}");
    }
}

/// RFC 5681 equation 4: a threshold of two segments at least, here where a loss is found while the
/// window comes down already.
#[test]
fn a_loss_within_congestion_recovery_leaves_two_segments() {
    let arrival = Arrival { in_recovery: true, ..Arrival::default() };
    for (recovery, after_timeout, turns) in [
        (Recovery::Congestion, false, true),
        (Recovery::Congestion, true, false),
        (Recovery::Fast, false, false),
        (Recovery::None, false, false),
    ] {
        for (segments, ssthresh) in [(1, 2), (2, 2), (9, 9)] {
            let mut window = Window { cwnd: segments * MSS, ssthresh: 50 * MSS };
            let f = Flight { after_timeout, ..flight(0, 10) };
            assert_eq!(recovery.turns_fast(&mut window, &f, &arrival), turns);
            assert_eq!(window.ssthresh, if turns { ssthresh } else { 50 } * MSS);
        }
    }
}
