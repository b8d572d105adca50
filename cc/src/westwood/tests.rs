use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

fn established_with(segments: u64) -> Westwood {
    let mut westwood = Westwood::new(WestwoodConfig::default());
    westwood.on_established(&Flight { initial_window: segments * MSS, ..flight(0, segments) });
    westwood
}

/// An ACK at `millis` of everything below the segment `next`, with an RTT of `rtt` milliseconds.
fn arrives(westwood: &mut Westwood, millis: u64, next: u64, rtt: Option<u64>) {
    let arrival = Arrival { ack: next * MSS, rtt: rtt.map(Span::from_millis), ..Arrival::default() };
    westwood.on_arrival(&flight(millis, 10), &arrival);
}

#[test]
fn the_rate_is_what_arrived_in_a_round_trip() {
    let mut westwood = established_with(10);
    // The first ACK tells nothing but where counting begins, and is taken for a duplicate: one
    // segment, taken off later.
    arrives(&mut westwood, 60, 1, Some(100));
    assert_eq!((westwood.estimate.bk, westwood.estimate.told), (MSS, MSS));
    arrives(&mut westwood, 90, 3, Some(100));
    assert_eq!((westwood.estimate.bk, westwood.estimate.told), (2 * MSS, 0));
    // The ACK with which the sample is over counts in the next one: 2 segments in 120 ms.
    arrives(&mut westwood, 120, 5, Some(100));
    let first = 2 * MSS * 1000 / 120;
    assert_eq!((westwood.estimate.bw_once, westwood.estimate.bw_est, westwood.estimate.bk), (first, first, 2 * MSS));
    // A round trip is over only after it: not at 220 ms. Then 12 segments in 101 ms, filtered 7 to
    // 1, and that again.
    arrives(&mut westwood, 220, 15, Some(100));
    assert_eq!(westwood.estimate.bw_est, first);
    arrives(&mut westwood, 221, 16, Some(100));
    let once = (7 * first + 12 * MSS * 1000 / 101) / 8;
    assert_eq!(westwood.estimate.bw_once, once);
    assert_eq!(westwood.estimate.bw_est, (7 * first + once) / 8);
    assert_eq!((westwood.estimate.bk, westwood.estimate.since), (MSS, Time::from_millis(221)));
}

#[test]
fn a_sample_takes_50_ms_at_least_and_an_rtt() {
    let mut westwood = established_with(10);
    arrives(&mut westwood, 10, 1, Some(10));
    arrives(&mut westwood, 50, 2, Some(10));
    assert_eq!((westwood.estimate.bw_est, westwood.estimate.bk), (0, 2 * MSS));
    arrives(&mut westwood, 51, 3, Some(10));
    assert_eq!(westwood.estimate.bw_est, 2 * MSS * 1000 / 51);
    // Until an RTT is measured it is taken for 20 s.
    let mut westwood = established_with(10);
    arrives(&mut westwood, 20_000, 1, None);
    assert_eq!(westwood.estimate.bw_est, 0);
    arrives(&mut westwood, 20_001, 3, None);
    assert_eq!(westwood.estimate.bw_est, MSS * 1000 / 20_001);
}

#[test]
fn duplicate_acks_count_once() {
    let mut estimate = Estimate::new(Time::ZERO);
    estimate.snd_una = Some(10 * MSS);
    // Five segments arrive beyond a hole, the sixth ACK tells of the hole and of them: six segments
    // in all.
    let counted: Vec<u64> = (0..5).map(|_| estimate.count(10 * MSS, MSS, false)).collect();
    assert_eq!((counted, estimate.told), (vec![MSS; 5], 5 * MSS));
    assert_eq!((estimate.count(16 * MSS, MSS, false), estimate.told), (MSS, 0));
    // Two of two, and half of one.
    assert_eq!(estimate.count(18 * MSS, MSS, false), 2 * MSS);
    assert_eq!(estimate.count(18 * MSS + MSS / 2, MSS, false), MSS / 2);
    // A plain ACK has nothing taken off.
    estimate.told = 2 * MSS;
    assert_eq!((estimate.count(21 * MSS + MSS / 2, MSS, true), estimate.told), (3 * MSS, 2 * MSS));
    estimate.snd_una = Some(18 * MSS + MSS / 2);
    // A partial ACK of three while six were told: one segment, three stay. A partial ACK of one is
    // counted whole.
    estimate.told = 6 * MSS;
    assert_eq!((estimate.count(21 * MSS + MSS / 2, MSS, false), estimate.told), (MSS, 3 * MSS));
    assert_eq!((estimate.count(22 * MSS, MSS, false), estimate.told), (MSS / 2, 3 * MSS));
}

#[test]
fn the_shortest_rtt_is_of_the_ack_before_and_begins_anew_after_a_timeout() {
    let mut westwood = established_with(10);
    arrives(&mut westwood, 100, 1, Some(90));
    assert_eq!(westwood.estimate.rtt_min, INIT_RTT);
    arrives(&mut westwood, 101, 2, Some(100));
    assert_eq!(westwood.estimate.rtt_min, Span::from_millis(90));
    arrives(&mut westwood, 102, 3, None);
    arrives(&mut westwood, 103, 4, Some(0));
    assert_eq!((westwood.estimate.rtt, westwood.estimate.rtt_min), (Span::from_millis(100), Span::from_millis(90)));
    westwood.on_signal(&flight(200, 10), Signal::Timeout { repeated: false, kept: 0 });
    arrives(&mut westwood, 300, 5, Some(300));
    assert_eq!(westwood.estimate.rtt_min, Span::from_millis(100));
}

#[test]
fn a_reduction_ends_at_the_product_of_rate_and_shortest_rtt() {
    let mut westwood = established_with(100);
    // 1448 kB/s times 40 ms are 40 segments.
    (westwood.estimate.bw_est, westwood.estimate.rtt_min) = (1000 * MSS, Span::from_millis(40));
    for signal in [Signal::Loss, Signal::Ecn] {
        westwood.reno.set_window(Window { cwnd: 100 * MSS, ssthresh: Window::INFINITE });
        westwood.on_signal(&flight(0, 100), signal);
        // On the way it is NewReno.
        assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (50, 50));
        westwood.on_signal(&flight(100, 50), Signal::RecoveryEnd);
        assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (40, 40));
    }
    // The product may be more than a half, and is whole segments, two at least.
    westwood.estimate.rtt_min = Span::from_nanos(70_900_000);
    westwood.on_signal(&flight(200, 40), Signal::Loss);
    westwood.on_signal(&flight(300, 20), Signal::RecoveryEnd);
    assert_eq!(westwood.window(), Window { cwnd: 70 * MSS, ssthresh: 70 * MSS });
    westwood.estimate.bw_est = 0;
    westwood.on_signal(&flight(400, 20), Signal::RecoveryEnd);
    assert_eq!(cwnd(&westwood), 2);
}

#[test]
fn a_timeout_leaves_the_product_as_the_threshold() {
    let mut westwood = established_with(100);
    (westwood.estimate.bw_est, westwood.estimate.rtt_min) = (1000 * MSS, Span::from_millis(70));
    westwood.on_signal(&flight(0, 100), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (1, 70));
    westwood.estimate.rtt_min = Span::from_millis(10);
    westwood.on_signal(&flight(100, 1), Signal::Timeout { repeated: true, kept: 0 });
    assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (1, 70));
    westwood.on_signal(&flight(200, 1), Signal::Spurious);
    assert_eq!(cwnd(&westwood), 100);
}

#[test]
fn the_rest_is_newrenos() {
    let mut westwood = established_with(10);
    let _ = westwood.on_ack(&flight(100, 10), &ack(2, 100));
    assert_eq!(cwnd(&westwood), 12);
    westwood.take_over(Window { cwnd: 40 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (40, 20));
    westwood.on_signal(&flight(9000, 40), Signal::IdleRestart);
    assert_eq!((cwnd(&westwood), ssthresh(&westwood)), (10, 30));
}

/// tcp_westwood.c, `westwood_filter`: the first sample is taken as it is; later ones are filtered,
/// also where the first filter has come down to zero.
#[test]
fn only_the_first_sample_is_taken_as_it_is() {
    let mut estimate = Estimate::new(Time::ZERO);
    (estimate.rtt, estimate.bk, estimate.bw_est) = (Span::from_millis(100), 20_000, 800);
    estimate.next_sample(Time::from_millis(200), &WestwoodConfig { rtt_min: Span::ZERO, ..WestwoodConfig::default() });
    // 20,000 bytes in 0.2 s: 100,000 / 8, and (7 * 800 + 12,500) / 8.
    assert_eq!((estimate.bw_once, estimate.bw_est), (12_500, 2_262));
}

/// The estimate from 20 segments in 52 ms, 13 jiffies of 4 ms, is 20 * 1448 / 13 = 2227 bytes per
/// jiffy; an RTT of 41 ms is eleven of them, and 2227 * 11 / 1448 = 16 segments. Exact, 20 * 0.041
/// / 0.053 = 15.
#[test]
fn the_clock_of_linux_counts_bytes_per_jiffy() {
    for (tick, segments) in [(4, 16), (0, 15)] {
        let config = WestwoodConfig { tick: Span::from_millis(tick), ..WestwoodConfig::default() };
        let mut westwood = Westwood::new(config);
        westwood.on_established(&Flight { initial_window: 10 * MSS, ..flight(0, 10) });
        arrives(&mut westwood, 10, 1, Some(41));
        arrives(&mut westwood, 50, 21, Some(41));
        arrives(&mut westwood, 53, 22, Some(41));
        westwood.on_signal(&flight(54, 10), Signal::RecoveryEnd);
        assert_eq!(cwnd(&westwood), segments, "{tick} ms");
    }
}

#[test]
fn late_events_take_the_rtt_first_and_no_duplicate_of_a_predicted_header() {
    let tick = Span::from_millis(4);
    let mut early = Westwood::new(WestwoodConfig { tick, ..WestwoodConfig::default() });
    let mut late = Westwood::new(WestwoodConfig { tick, late_events: true, ..WestwoodConfig::default() });
    for westwood in [&mut early, &mut late] {
        westwood.on_established(&Flight { initial_window: 10 * MSS, ..flight(0, 10) });
        // More than 50 ms and a round trip after the connection began: a sample is over with the
        // first ACK, and empty, where its RTT is known; else with the second, of a segment.
        arrives(westwood, 100, 1, Some(50));
        arrives(westwood, 104, 2, Some(50));
    }
    assert_eq!((early.estimate.since, early.estimate.bw_est), (Time::from_millis(104), MSS / 26));
    assert_eq!((late.estimate.since, late.estimate.bw_est), (Time::from_millis(100), 0));
    // A duplicate without SACK, with nothing new in its header.
    for (westwood, counted) in [(&mut early, MSS), (&mut late, 0)] {
        let before = westwood.estimate.bk;
        let duplicate = Arrival { ack: 2 * MSS, plain: true, ..Arrival::default() };
        westwood.on_arrival(&flight(108, 10), &duplicate);
        assert_eq!(westwood.estimate.bk - before, counted);
    }
}
