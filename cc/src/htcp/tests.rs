use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

/// The connection begins at the time zero with `segments`, past slow start if `avoids`.
fn established_with(config: HtcpConfig, segments: u64, avoids: bool) -> Htcp {
    let mut htcp = Htcp::new(config);
    htcp.on_established(&Flight { initial_window: segments * MSS, ..flight(0, segments) });
    if avoids {
        htcp.reno.set_window(Window { cwnd: segments * MSS, ssthresh: 2 * MSS });
    }
    htcp
}

fn adaptive() -> HtcpConfig {
    HtcpConfig { adaptive_backoff: true, ..HtcpConfig::default() }
}

/// `count` samples that leave the smoothed RTT at `millis`.
fn samples(htcp: &mut Htcp, millis: u64, count: u32) {
    for _ in 0..count {
        let f = Flight { srtt: Some(Span::from_millis(millis)), ..flight(0, 10) };
        htcp.on_arrival(&f, &Arrival { rtt: f.latest_rtt, ..Arrival::default() });
    }
}

fn alpha_at(htcp: &mut Htcp, millis: u64) -> u64 {
    htcp.update_alpha(&flight(millis, 100));
    htcp.alpha
}

#[test]
fn growth_by_the_time_since_the_last_congestion() {
    let mut htcp = established_with(HtcpConfig::default(), 100, true);
    // (16 + 160 d / 1000 + (d / 1000) * (16 d / 4000)) / 16, with d in ms beyond the first second
    // and every quotient cut.
    for (millis, alpha) in [
        (0, 1),
        (1000, 1),
        (1099, 1),     // 16 + 15
        (1100, 2),     // 16 + 16
        (2000, 11),    // 16 + 160 + 1 * 4 = 180; the formula has 11.25
        (3000, 22),    // 16 + 320 + 2 * 8 = 352; 22
        (3900, 31),    // 16 + 464 + 2 * 11 = 502; 32.1
        (11_000, 126), // 16 + 1600 + 10 * 40 = 2016; 126
    ] {
        assert_eq!(alpha_at(&mut htcp, millis), alpha, "{millis}");
    }
    // From 2^31 / 160 ticks on it stays.
    let most = alpha_at(&mut htcp, 13_421_771 + 1000);
    assert_eq!(alpha_at(&mut htcp, 13_421_772 + 1000), most);
    assert_eq!(alpha_at(&mut htcp, u64::MAX / 1_000_000), most);
    // 13421 * (13421771 * 16 / 4000) = 13421 * 53687 = 720533227; 16 + 2147483 more, by 16.
    assert_eq!(most, (16 + 2_147_483 + 13_421 * 53_687) / 16);
}

#[test]
fn the_window_grows_by_alpha_segments_per_round_trip() {
    let mut htcp = established_with(HtcpConfig::default(), 100, true);
    // The first second is NewReno's.
    for _ in 0..50 {
        let _ = htcp.on_ack(&flight(500, 100), &ack(2, 100));
    }
    assert_eq!(cwnd(&htcp), 101);
    // After three, 22: with the 102nd segment, two at a time.
    for _ in 0..50 {
        let _ = htcp.on_ack(&flight(3000, 101), &ack(2, 100));
    }
    assert_eq!(cwnd(&htcp), 101);
    let _ = htcp.on_ack(&flight(3000, 101), &ack(2, 100));
    assert_eq!(cwnd(&htcp), 123);
    // The window does not grow when it is not used.
    let unused = Flight { cwnd_limited: false, ..flight(9000, 123) };
    for _ in 0..100 {
        let _ = htcp.on_ack(&unused, &ack(2, 100));
    }
    assert_eq!((cwnd(&htcp), htcp.alpha), (123, 22));
    // Slow start is slow start.
    let mut htcp = established_with(HtcpConfig::default(), 10, false);
    let _ = htcp.on_ack(&flight(9000, 10), &ack(2, 100));
    assert_eq!(cwnd(&htcp), 12);
}

#[test]
fn the_window_comes_down_by_the_ratio_of_rtts() {
    // Without adaptive backoff by half, whatever the RTTs.
    let mut htcp = established_with(HtcpConfig::default(), 100, true);
    samples(&mut htcp, 80, 8);
    samples(&mut htcp, 100, 1);
    htcp.on_signal(&flight(0, 100), Signal::Loss);
    assert_eq!((cwnd(&htcp), ssthresh(&htcp)), (50, 50));

    for (least, greatest, beta, left) in [
        // The greatest becomes (60 + 95 * (100 - 60)) / 100 = 38.6, of which 60 is 1.55: at most
        // 204 / 256.
        (60, 100, 204, 79),
        // (20 + 95 * 180) / 100 = 171.2: 20 / 171.2 is below a half.
        (20, 200, 128, 50),
        // (70 + 95 * 130) / 100 = 124.2: 70 * 256 / 124.2 = 144.3; 100 * 144 / 256 = 56.25.
        (70, 200, 144, 56),
    ] {
        let mut htcp = established_with(adaptive(), 100, true);
        samples(&mut htcp, least, 8);
        samples(&mut htcp, greatest, 1);
        htcp.on_signal(&flight(5000, 100), Signal::Loss);
        assert_eq!((htcp.beta, cwnd(&htcp), ssthresh(&htcp)), (beta, left, left), "{least} {greatest}");
        assert_eq!(htcp.congested_at, Time::from_millis(5000));
    }

    // The first congestion halves, and so do those before the RTT is known.
    let mut htcp = established_with(adaptive(), 100, false);
    samples(&mut htcp, 60, 9);
    htcp.on_signal(&flight(0, 100), Signal::Loss);
    assert_eq!(cwnd(&htcp), 50);
    let mut htcp = established_with(adaptive(), 100, true);
    samples(&mut htcp, 60, 7);
    htcp.on_signal(&flight(0, 100), Signal::Ecn);
    assert_eq!((cwnd(&htcp), htcp.min_rtt), (50, Span::ZERO));
}

#[test]
fn the_least_and_the_greatest_rtt() {
    let mut htcp = established_with(adaptive(), 100, true);
    samples(&mut htcp, 500, 7);
    assert_eq!((htcp.min_rtt, htcp.max_rtt), (Span::ZERO, Span::ZERO));
    for (sample, least, greatest) in [(100, 100, 100), (120, 100, 120), (90, 90, 120), (110, 90, 120)] {
        samples(&mut htcp, sample, 1);
        assert_eq!((htcp.min_rtt, htcp.max_rtt), (Span::from_millis(least), Span::from_millis(greatest)));
    }
    // Without a smoothed RTT there is nothing to note.
    let f = Flight { srtt: None, ..flight(0, 10) };
    htcp.on_arrival(&f, &Arrival { rtt: f.latest_rtt, ..Arrival::default() });
    // Nor is there without a sample.
    htcp.on_arrival(&Flight { srtt: Some(Span::from_millis(10)), ..f }, &Arrival::default());
    assert_eq!(htcp.min_rtt, Span::from_millis(90));
}

#[test]
fn growth_makes_up_for_a_smaller_decrease() {
    // 2 * (256 - 204) * 22 / 256 = 8.9.
    let mut htcp = established_with(adaptive(), 100, true);
    htcp.beta = 204;
    assert_eq!(alpha_at(&mut htcp, 3000), 8);
    // 2 * 52 * 2 / 256 = 0.8: at least one.
    assert_eq!(alpha_at(&mut htcp, 1100), 1);
    // The result for a half is alpha itself.
    htcp.beta = 128;
    assert_eq!(alpha_at(&mut htcp, 3000), 22);
}

#[test]
fn growth_by_the_rtt() {
    let mut htcp = established_with(HtcpConfig { rtt_scaling: true, ..HtcpConfig::default() }, 100, true);
    // alpha is 22 after 3 s. RTT / 100 ms in 256ths, from 26 to 512.
    for (rtt, alpha) in [(Some(100), 22), (Some(50), 11), (Some(150), 33), (Some(1000), 44), (Some(1), 2), (None, 2)] {
        htcp.update_alpha(&Flight { srtt: rtt.map(Span::from_millis), ..flight(3000, 100) });
        assert_eq!(htcp.alpha, alpha, "{rtt:?}");
    }
    // 26 * 2 / 256: at least one.
    htcp.update_alpha(&Flight { srtt: Some(Span::from_millis(1)), ..flight(1100, 100) });
    assert_eq!(htcp.alpha, 1);
}

#[test]
fn a_timeout_is_newrenos_and_counts_when_it_repeats() {
    let mut htcp = established_with(HtcpConfig::default(), 100, true);
    htcp.on_signal(&flight(5000, 100), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&htcp), ssthresh(&htcp), htcp.congested_at), (1, 50, Time::ZERO));
    htcp.on_signal(&flight(6000, 1), Signal::Timeout { repeated: true, kept: 0 });
    assert_eq!((cwnd(&htcp), ssthresh(&htcp), htcp.congested_at), (1, 50, Time::from_millis(6000)));
    htcp.on_signal(&flight(6100, 1), Signal::Spurious);
    assert_eq!(cwnd(&htcp), 100);
}

#[test]
fn recovery_ends_at_the_threshold_or_without_a_burst() {
    let mut htcp = established_with(HtcpConfig::default(), 100, true);
    htcp.on_signal(&flight(0, 100), Signal::Loss);
    htcp.on_signal(&flight(100, 50), Signal::RecoveryEnd);
    assert_eq!(cwnd(&htcp), 50);
    htcp.on_signal(&flight(200, 50), Signal::Loss);
    htcp.on_signal(&Flight { in_flight: 3 * MSS, ..flight(300, 25) }, Signal::RecoveryEnd);
    assert_eq!((cwnd(&htcp), ssthresh(&htcp)), (4, 25));
    htcp.on_signal(&Flight { initial_window: 3 * MSS, ..flight(9000, 4) }, Signal::IdleRestart);
    assert_eq!(cwnd(&htcp), 3);
    htcp.take_over(Window { cwnd: 33 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&htcp), ssthresh(&htcp)), (33, 20));
}

/// The time since the last congestion counts from the start of the connection, not of the run.
#[test]
fn a_connection_that_starts_late_does_not_start_fast() {
    let mut htcp = Htcp::new(HtcpConfig::default());
    htcp.on_established(&flight(60_000, 10));
    assert_eq!(alpha_at(&mut htcp, 61_000), 1);
    assert_eq!(alpha_at(&mut htcp, 62_000), 11);
}

/// Where slow start goes on at the threshold itself, the ACK there is slow start's: no further
/// growth by alpha.
#[test]
fn the_ack_at_the_threshold_may_be_slow_starts() {
    for (past_ssthresh, expected) in [(true, 101), (false, 100)] {
        let reno = NewRenoConfig { past_ssthresh, ..NewRenoConfig::default() };
        let mut htcp = established_with(HtcpConfig { reno, ..HtcpConfig::default() }, 100, true);
        htcp.reno.set_window(Window { cwnd: 100 * MSS, ssthresh: 100 * MSS });
        // 2 s: an alpha of 11.
        let _ = htcp.on_ack(&flight(2000, 100), &ack(1, 100));
        assert_eq!(cwnd(&htcp), expected);
    }
}
