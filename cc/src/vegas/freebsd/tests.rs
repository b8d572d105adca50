use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

/// With `segments` of window and a threshold of `ssthresh` segments.
fn vegas(segments: u64, ssthresh: u64) -> Vegas {
    let mut vegas = Vegas::new(VegasConfig::default());
    vegas.on_established(&flight(0, 10));
    vegas.reno.set_window(Window { cwnd: segments * MSS, ssthresh: ssthresh * MSS });
    vegas
}

/// A full window is sent and acknowledged, its first segment after `rtt` ticks; the shortest round
/// trip is 41.
fn round(vegas: &mut Vegas, rtt: u64) -> Verdict {
    arrive(vegas, rtt);
    vegas.on_ack(&flight(1000, 10), &ack(1, rtt))
}

fn arrive(vegas: &mut Vegas, rtt: u64) {
    let segments = cwnd(vegas);
    vegas.ertt = Ertt::new(vegas.config.rtt_unit);
    vegas.ertt.min = 41;
    for n in 0..segments {
        vegas.on_sent(&flight(0, 10), &Sent { seq: n * MSS, bytes: MSS as u32 });
    }
    vegas.on_arrival(&flight(rtt - 1, 10), &Arrival { ack: MSS, acked: MSS, ..Arrival::default() });
}

#[test]
fn it_grows_below_alpha_and_shrinks_above_beta() {
    // 20 segments are 28960 bytes: 706 per tick at 41 ticks. At 41 the same: nothing waits, and it
    // grows.
    let mut v = vegas(20, 2);
    assert_eq!(round(&mut v, 41), Verdict::Continue);
    assert_eq!(cwnd(&v), 21);
    // 21 * 1448 / 41 = 741; / 43 = 707: 34 * 41 = 1394 bytes wait, less than a segment (0 whole
    // ones).
    assert_eq!(round(&mut v, 43), Verdict::Continue);
    assert_eq!(cwnd(&v), 22);
    // 22: 776 and 707 at 45: 69 * 41 / 1448 = 1.95, 1 whole: neither below 1 nor above 3. At 51:
    // 776 - 624 = 152, 4.3: 4.
    assert_eq!(round(&mut v, 45), Verdict::Continue);
    assert_eq!(cwnd(&v), 22);
    assert_eq!(round(&mut v, 51), Verdict::Trimmed);
    assert_eq!(v.window(), Window { cwnd: 21 * MSS, ssthresh: 2 * MSS });
    // Three whole segments are still in the band: 21: 741 - 608 = 133 at 50, 3.77.
    assert_eq!(round(&mut v, 50), Verdict::Continue);
    assert_eq!(cwnd(&v), 21);
}

#[test]
fn alpha_and_beta_are_the_edges_of_the_band() {
    let config = VegasConfig { alpha: 2, beta: 4, ..VegasConfig::default() };
    let mut v = vegas(22, 2);
    v.config = config;
    // 1 waits at 45, 4 at 51, 5 at 53: 776 - 601 = 175, 4.96 is 4; at 54: 776 - 589 = 187, 5.3.
    assert_eq!(round(&mut v, 45), Verdict::Continue);
    assert_eq!(cwnd(&v), 23);
    v.reno.set_window(Window { cwnd: 22 * MSS, ssthresh: 2 * MSS });
    assert_eq!(round(&mut v, 51), Verdict::Continue);
    assert_eq!(round(&mut v, 53), Verdict::Continue);
    assert_eq!(round(&mut v, 54), Verdict::Trimmed);
    assert_eq!(cwnd(&v), 21);
}

#[test]
fn slow_start_doubles_every_other_round_trip_and_ends_with_the_first_queue() {
    let mut v = vegas(20, 1000);
    assert!(v.growing);
    // NewReno grows until the first measurement.
    let _ = v.on_ack(&flight(0, 20), &ack(1, 41));
    assert_eq!(cwnd(&v), 21);
    assert_eq!(round(&mut v, 41), Verdict::Continue);
    assert!(!v.growing);
    assert_eq!(cwnd(&v), 21);
    let _ = v.on_ack(&flight(0, 20), &ack(2, 41));
    assert_eq!(cwnd(&v), 21);
    let _ = round(&mut v, 41);
    assert!(v.growing);
    assert_eq!(cwnd(&v), 22);
    // 22 at 51: four segments wait. The window comes down and is the threshold.
    assert_eq!(round(&mut v, 51), Verdict::Trimmed);
    assert_eq!((cwnd(&v), ssthresh(&v), v.growing), (21, 21, false));
}

#[test]
fn it_shrinks_to_two_segments_and_raises_nothing() {
    let mut v = vegas(2, 2);
    v.step = Step::Shrink;
    assert_eq!(v.on_ack(&flight(0, 2), &ack(1, 100)), Verdict::Continue);
    assert_eq!(cwnd(&v), 2);
    let mut v = vegas(1, 2);
    v.step = Step::Shrink;
    v.growing = false;
    assert_eq!(v.on_ack(&flight(0, 2), &ack(1, 100)), Verdict::Continue);
    assert_eq!((cwnd(&v), ssthresh(&v)), (1, 2));
}

#[test]
fn it_does_not_grow_what_is_not_used() {
    let mut v = vegas(20, 2);
    arrive(&mut v, 41);
    assert_eq!(v.step, Step::Grow);
    let f = Flight { cwnd_limited: false, ..flight(100, 3) };
    assert_eq!(v.on_ack(&f, &ack(1, 41)), Verdict::Continue);
    assert_eq!(cwnd(&v), 20);
    // Nor later on the strength of that measurement.
    assert_eq!(v.on_ack(&flight(100, 20), &ack(1, 41)), Verdict::Continue);
    assert_eq!(cwnd(&v), 20);
}

#[test]
fn a_measurement_without_bytes_in_flight_says_nothing() {
    let mut v = vegas(20, 2);
    v.on_arrival(&flight(0, 10), &Arrival { duplicate: true, ..Arrival::default() });
    assert_eq!(v.step, Step::Stay);
    // Marked, but nothing was ever sampled: the shortest round trip is unknown.
    v.on_sent(&flight(0, 10), &Sent { seq: 0, bytes: MSS as u32 });
    v.on_arrival(&flight(40, 10), &Arrival { ack: 2 * MSS, acked: 2 * MSS, ..Arrival::default() });
    assert_eq!((v.ertt.min, v.ertt.marked, v.step), (0, 41, Step::Stay));
}

#[test]
fn loss_and_ecn_are_newrenos_and_end_slow_start() {
    for signal in [Signal::Loss, Signal::Ecn] {
        let mut v = vegas(20, 1000);
        v.on_signal(&flight(0, 20), signal);
        assert_eq!((cwnd(&v), ssthresh(&v), v.growing), (10, 10, false));
        // Too much in the queue is no news while the window is coming down, too little is.
        arrive(&mut v, 200);
        assert_eq!(v.step, Step::Stay);
        v.on_signal(&flight(0, 20), Signal::RecoveryEnd);
        arrive(&mut v, 200);
        assert_eq!(v.step, Step::Shrink);
    }
    // From one segment slow start leads back up.
    let mut v = vegas(1, 5);
    v.on_signal(&flight(0, 1), Signal::Loss);
    assert_eq!((cwnd(&v), ssthresh(&v), v.growing), (1, 2, true));
}

#[test]
fn a_timeout_leaves_the_toggle_and_an_undo_restores_it() {
    let mut v = vegas(20, 1000);
    v.on_signal(&flight(0, 20), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&v), ssthresh(&v), v.growing), (1, 10, true));
    v.on_signal(&flight(0, 20), Signal::Spurious);
    assert_eq!((cwnd(&v), v.growing), (20, true));
    v.on_signal(&flight(0, 20), Signal::Loss);
    assert!(!v.growing);
    v.on_signal(&flight(0, 20), Signal::Spurious);
    assert_eq!((cwnd(&v), v.growing, v.recovering), (20, true, false));
}

#[test]
fn what_fast_recovery_measures_is_not_acted_on() {
    let mut v = vegas(20, 2);
    arrive(&mut v, 41);
    assert_eq!(v.step, Step::Grow);
    v.on_arrival(&flight(100, 20), &Arrival { in_recovery: true, ..Arrival::default() });
    assert_eq!(v.step, Step::Stay);
}

/// cc_vegas.c, `vegas_cong_signal`: slow start goes on only if the window is below the threshold
/// that the congestion leaves.
#[test]
fn a_window_at_the_least_threshold_does_not_grow() {
    for (segments, growing) in [(1, true), (2, false), (3, false)] {
        for signal in [Signal::Loss, Signal::Ecn] {
            let mut v = vegas(segments, 50);
            v.on_signal(&flight(0, 10), signal);
            assert_eq!(v.growing, growing, "{segments} {signal:?}");
        }
    }
}

/// An ACK that acknowledges nothing and is no duplicate is not judged, even if it completes a
/// measurement.
#[test]
fn an_ack_that_tells_nothing_new_is_not_judged() {
    for (duplicate, step) in [(false, Step::Stay), (true, Step::Shrink)] {
        let mut v = vegas(20, 2);
        v.ertt.min = 41;
        for n in 0..20 {
            v.on_sent(&flight(0, 10), &Sent { seq: n * MSS, bytes: MSS as u32 });
        }
        v.on_arrival(&flight(60, 10), &Arrival { sacked_to: Some(MSS), duplicate, ..Arrival::default() });
        assert_eq!((v.ertt.rtt, v.step), (61, step));
    }
}
