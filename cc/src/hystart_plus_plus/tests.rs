use super::*;
use crate::fixture::{MSS, cwnd, flight, ssthresh};
use crate::{Ack, CongestionControl, HystartPlusPlusConfig, NewReno, NewRenoConfig, Signal, SlowStartRules};

/// A connection in its initial slow start, with a full window and an ACK for each segment.
struct Path {
    reno: NewReno,
    una: u64,
    nxt: u64,
    /// The next number to be sent when the round began.
    end: u64,
    paced: bool,
}

impl Path {
    /// A window of 10 segments, sent, and of which nothing is acknowledged. SND.NXT was 0 when the
    /// connection was established: the first ACK ends that round, the ACK of 10 segments the next
    /// one.
    fn new(config: HystartPlusPlusConfig) -> Path {
        let rules = SlowStartRules::HystartPlusPlus(config);
        let mut reno = NewReno::new(NewRenoConfig { slow_start: rules, ..NewRenoConfig::default() });
        reno.on_established(&Flight { snd_nxt: 0, ..flight(0, 0) });
        Path { reno, una: 0, nxt: 10 * MSS, end: 10 * MSS, paced: false }
    }

    /// An ACK that newly acknowledges `segments` and measured `rtt`. The segments that it makes
    /// room for are sent afterwards.
    fn ack(&mut self, segments: u64, rtt: Option<Span>, cwnd_limited: bool) {
        self.una += segments * MSS;
        let f = Flight { snd_una: self.una, snd_nxt: self.nxt, cwnd_limited, paced: self.paced, ..flight(100, 0) };
        let acked = segments * MSS;
        let _ = self.reno.on_ack(&f, &Ack { acked, delivered: acked, rtt, ..Ack::default() });
        if self.una >= self.end {
            self.end = self.nxt;
        }
        self.nxt = self.nxt.max(self.una + self.reno.window().cwnd);
    }

    /// ACKs of a segment each; `rtt` in milliseconds.
    fn acks(&mut self, count: u64, rtt: f64) {
        for _ in 0..count {
            self.ack(1, Some(Span::from_micros((rtt * 1000.0) as u64)), true);
        }
    }

    /// The ACKs that are left of the round. Returns how many.
    fn round(&mut self, rtt: f64) -> u64 {
        let count = (self.end - self.una).div_ceil(MSS);
        self.acks(count, rtt);
        count
    }

    fn segments(&self) -> f64 {
        self.reno.window().cwnd as f64 / MSS as f64
    }

    fn conservative(&self) -> bool {
        format!("{:?}", self.reno).contains("css: Some")
    }
}

/// Two rounds of `rtt` milliseconds in slow start.
fn after_two_rounds(config: HystartPlusPlusConfig, rtt: f64) -> Path {
    let mut path = Path::new(config);
    // 10 ACKs; the last of them found 10 + 2 * 9 segments sent.
    assert_eq!(path.round(rtt), 10);
    assert_eq!(path.round(rtt), 18);
    assert_eq!(path.segments(), 38.0);
    path
}

#[test]
fn the_least_increase_that_counts() {
    // RttThresh = max(4 ms, min(lastRoundMinRTT / 8, 16 ms)); at or above it, CSS.
    for (last, threshold) in [(16.0, 4.0), (32.0, 4.0), (100.0, 12.5), (128.0, 16.0), (400.0, 16.0)] {
        for (increase, found) in [(threshold - 0.001, false), (threshold, true)] {
            let mut path = after_two_rounds(HystartPlusPlusConfig::default(), last);
            path.acks(8, last + increase);
            assert_eq!(path.conservative(), found, "{last} ms and {increase} ms");
        }
    }
}

#[test]
fn eight_samples_judge_a_round() {
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    path.acks(7, 130.0);
    path.ack(1, None, true);
    assert!(!path.conservative());
    path.acks(1, 130.0);
    assert!(path.conservative());
    // The least of the round counts: one that is short among many.
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    path.acks(1, 100.0);
    path.round(130.0);
    assert!(!path.conservative());
    // The next round is held against this one, of 100 ms.
    path.acks(8, 130.0);
    assert!(path.conservative());
}

#[test]
fn conservative_slow_start_grows_by_a_quarter_and_lasts_five_rounds() {
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    // The eighth ACK finds it, before it grows the window: 7 segments, then a quarter for each
    // of 29. This partial round is the first of five.
    assert_eq!(path.round(130.0), 36);
    assert_eq!(path.segments(), 38.0 + 7.0 + 29.0 / 4.0);
    for _ in 2..5 {
        let before = path.segments();
        let acks = path.round(130.0);
        assert_eq!(path.segments(), before + acks as f64 / 4.0);
        assert_eq!(path.reno.window().ssthresh, Window::INFINITE);
    }
    let before = path.segments();
    let acks = path.round(130.0);
    // The last ACK of the fifth sets the threshold to the window and grows it no more by slow
    // start.
    let over = path.reno.window();
    assert_eq!(over.ssthresh as f64 / MSS as f64, before + (acks - 1) as f64 / 4.0);
    assert_eq!(over.cwnd, over.ssthresh);
    assert!(!path.conservative());
    // Congestion avoidance: a segment for a window acknowledged.
    path.acks(cwnd(&path.reno) + 1, 130.0);
    assert_eq!(path.reno.window().cwnd, over.cwnd + MSS);
}

#[test]
fn a_round_below_the_baseline_resumes_slow_start() {
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    path.round(130.0);
    assert!(path.conservative());
    // The baseline itself is not below, and seven samples say nothing.
    path.acks(7, 130.0);
    path.acks(1, 130.0);
    assert!(path.conservative());
    path.acks(1, 129.9);
    assert!(!path.conservative());
    let before = path.segments();
    path.acks(10, 129.9);
    assert_eq!(path.segments(), before + 10.0);
    // HyStart++ goes on: 129.9 + 16 ms, an eighth of 129.9 being more than 16 ms.
    path.round(129.9);
    path.acks(8, 145.9);
    assert!(path.conservative());
}

#[test]
fn an_ack_counts_for_l_segments() {
    // min(N, L * SMSS): 8 segments without pacing, all with; a quarter of that in CSS.
    for (l, paced, grown) in [(8, false, 8.0), (8, true, 20.0), (0, false, 20.0), (1, false, 1.0)] {
        let mut path = after_two_rounds(HystartPlusPlusConfig { l, ..HystartPlusPlusConfig::default() }, 100.0);
        path.paced = paced;
        let before = path.segments();
        path.ack(20, None, true);
        assert_eq!(path.segments() - before, grown, "{l}");
        path.round(100.0);
        path.acks(8, 130.0);
        assert!(path.conservative());
        let before = path.segments();
        path.ack(20, None, true);
        assert_eq!(path.segments() - before, grown / 4.0, "{l}");
    }
}

#[test]
fn later_slow_starts_are_standard_ones() {
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    path.reno.on_signal(&flight(500, 38), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&path.reno), ssthresh(&path.reno)), (1, 19));
    for rtt in [100.0, 300.0] {
        path.acks(9, rtt);
        assert!(!path.conservative());
    }
    assert_eq!(path.segments(), 19.0);
    // A false congestion leads back to the initial slow start, in which nothing is known of earlier
    // rounds.
    path.reno.on_signal(&flight(900, 19), Signal::Spurious);
    assert_eq!(path.reno.window(), Window { cwnd: 38 * MSS, ssthresh: Window::INFINITE });
    path.end = path.nxt;
    path.round(100.0);
    assert!(!path.conservative());
    path.round(130.0);
    assert!(path.conservative());
}

#[test]
fn an_unused_window_is_observed_and_does_not_grow() {
    let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
    for _ in 0..8 {
        path.ack(1, Some(Span::from_millis(150)), false);
    }
    assert!(path.conservative());
    assert_eq!(path.segments(), 38.0);
}

#[test]
fn congestion_ends_conservative_slow_start() {
    for signal in [Signal::Loss, Signal::Ecn] {
        let mut path = after_two_rounds(HystartPlusPlusConfig::default(), 100.0);
        path.round(130.0);
        assert!(path.conservative());
        path.reno.on_signal(&flight(500, 52), signal);
        // RFC 9406 section 4.2: congestion avoidance, from the window that the controller sets:
        // half of 52.25 segments.
        assert_eq!((cwnd(&path.reno), ssthresh(&path.reno)), (26, 26));
        path.acks(26, 130.0);
        assert_eq!(path.segments(), 27.0);
        // Slow start after a timeout is standard, long round trips or not.
        path.reno.on_signal(&flight(900, 27), Signal::Timeout { repeated: false, kept: 0 });
        path.acks(12, 200.0);
        assert_eq!(path.segments(), 13.0);
    }
}

#[test]
fn a_threshold_that_is_found_is_two_segments_at_least() {
    // RFC 5681 equation 4. After a timeout the window is one segment; the threshold was taken back
    // to infinity.
    let once = HystartPlusPlusConfig { css_rounds: 0, n_rtt_sample: 0, ..HystartPlusPlusConfig::default() };
    let mut path = Path::new(once);
    path.reno.on_signal(&flight(100, 10), Signal::Timeout { repeated: false, kept: 0 });
    path.reno.on_signal(&flight(100, 1), Signal::Resume { cwnd: MSS, ssthresh: Window::INFINITE });
    // A round, and one that is longer.
    path.ack(10, Some(Span::from_millis(100)), false);
    path.ack(1, Some(Span::from_millis(200)), false);
    assert_eq!(path.reno.window(), Window { cwnd: MSS, ssthresh: 2 * MSS });
}

/// RFC 9406 section 4.2: after a restart the round ends with what was outstanding then, not with
/// the next ACK.
#[test]
fn a_restart_begins_a_round_of_what_is_outstanding() {
    let mut observer = super::HystartPlusPlus::new(HystartPlusPlusConfig::default());
    observer.restart(&Flight { snd_nxt: 10 * MSS, ..flight(0, 10) });
    let window = Window { cwnd: 10 * MSS, ssthresh: Window::INFINITE };
    let rtt = Some(Span::from_millis(100));
    for (una, over) in [(1, false), (9, false), (10, true)] {
        observer.observe(&window, &Flight { snd_una: una * MSS, snd_nxt: 20 * MSS, ..flight(100, 10) }, rtt);
        assert_eq!(observer.last_round, rtt.filter(|_| over), "{una}");
    }
}
