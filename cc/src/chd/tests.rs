use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

/// In congestion avoidance with `segments` of window, nothing measured.
fn avoiding(config: ChdConfig, segments: u64) -> Chd {
    let mut chd = Chd::new(config, Random::for_component(1, 0, "chd"));
    chd.on_established(&flight(0, 10));
    chd.state.window = Window { cwnd: segments * MSS, ssthresh: 2 * MSS };
    chd.state.shadow = 0;
    chd
}

/// Never backs off, and always at the threshold (but for 48 of 2^31).
const NEVER: u32 = 0;
const ALWAYS: u32 = 100;

fn config(pmax: u32) -> ChdConfig {
    ChdConfig { pmax, ..ChdConfig::default() }
}

/// A sender with one segment in each round trip, so that each ACK completes a measurement.
struct ChdRounds {
    chd: Chd,
    millis: u64,
    una: u64,
}

impl ChdRounds {
    /// A first round trip of 41 ticks, and a largest delay of 100.
    fn new(chd: Chd) -> ChdRounds {
        let mut rounds = ChdRounds { chd, millis: 0, una: 0 };
        let _ = rounds.round(41);
        rounds.chd.ertt.max = 141;
        rounds
    }

    fn arrive(&mut self, rtt: u64, duplicate: bool) {
        let seq = self.una;
        self.chd.on_sent(&flight(self.millis, 10), &Sent { seq, bytes: MSS as u32 });
        self.millis += rtt - 1;
        let arrival = if duplicate {
            Arrival { ack: seq, sacked_to: Some(seq + MSS), duplicate, ..Arrival::default() }
        } else {
            Arrival { ack: seq + MSS, acked: MSS, delivered: MSS, ..Arrival::default() }
        };
        self.chd.on_arrival(&flight(self.millis, 10), &arrival);
    }

    fn round(&mut self, rtt: u64) -> Verdict {
        self.arrive(rtt, false);
        self.una += MSS;
        self.chd.on_ack(&flight(self.millis, cwnd(&self.chd)), &ack(1, rtt))
    }
}

#[test]
fn growth_is_newrenos_and_the_shadow_window_follows() {
    let mut chd = Chd::new(config(NEVER), Random::for_component(1, 0, "chd"));
    chd.on_established(&flight(0, 10));
    assert_eq!((cwnd(&chd), chd.state.shadow), (10, 10 * MSS));
    // Slow start by bytes, at most two segments for an ACK.
    let _ = chd.on_ack(&flight(0, 10), &ack(3, 100));
    assert_eq!((cwnd(&chd), chd.state.shadow), (12, 12 * MSS));
    // Congestion avoidance: a segment per window.
    let mut chd = avoiding(config(NEVER), 4);
    chd.state.shadow = 9 * MSS;
    for expected in [4, 4, 4, 5] {
        let _ = chd.on_ack(&flight(0, 4), &ack(1, 100));
        assert_eq!(cwnd(&chd), expected);
    }
    assert_eq!(chd.state.shadow, 10 * MSS);
    // The window does not grow while the sender is limited by something else.
    let f = Flight { cwnd_limited: false, ..flight(0, 4) };
    let _ = chd.on_ack(&f, &ack(100, 100));
    assert_eq!(cwnd(&chd), 5);
}

#[test]
fn without_byte_counting_a_measurement_adds_a_segment() {
    let reno = NewRenoConfig { abc: false, ..NewRenoConfig::default() };
    let mut rounds = ChdRounds::new(avoiding(ChdConfig { reno, ..config(NEVER) }, 20));
    assert_eq!(cwnd(&rounds.chd), 21);
    assert_eq!(rounds.round(41), Verdict::Continue);
    assert_eq!(cwnd(&rounds.chd), 22);
    let _ = rounds.chd.on_ack(&flight(rounds.millis, 22), &ack(9, 41));
    assert_eq!(cwnd(&rounds.chd), 22, "no measurement");
}

#[test]
fn a_back_off_halves_rounded_up() {
    // 21 - max(10, 1) = 11; 3 - 1 = 2; 2 - 1 is not less than two; of one and a half segments one
    // counts.
    let f = flight(0, 10);
    for (window, expected) in [(21 * MSS, 11), (20 * MSS, 10), (3 * MSS, 2), (2 * MSS, 2), (3 * MSS / 2, 2), (0, 2)] {
        assert_eq!(decreased(window, &f), expected * MSS);
    }
    let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 21));
    // 61 - 41 = 20 ticks: the threshold.
    assert_eq!(rounds.round(61), Verdict::Reduced);
    assert_eq!((cwnd(&rounds.chd), ssthresh(&rounds.chd)), (11, 11));
    assert_eq!(rounds.chd.state.recovery, Recovery::Congestion);
    // None again before that is over, however long the delay.
    assert_eq!(rounds.round(61), Verdict::Continue);
    rounds.chd.on_signal(&flight(rounds.millis, 3), Signal::RecoveryEnd);
    assert_eq!(cwnd(&rounds.chd), 11, "the end of congestion recovery changes nothing");
    assert_eq!(rounds.round(61), Verdict::Reduced);
    assert_eq!(cwnd(&rounds.chd), 6);
}

#[test]
fn measurements_back_off_as_often_as_the_law_says() {
    let mut chd = avoiding(config(50), 20);
    (chd.ertt.min, chd.ertt.max) = (41, 141);
    let n = 1_000_000;
    // 10 of 15 ticks of the way up to 50 per cent: 1/3; standard error sqrt(1/3 * 2/3 / 10^6) =
    // 0.00047, four of them.
    let times = (0..n).filter(|_| chd.judge(15)).count();
    assert!((times as f64 / f64::from(n) - 1.0 / 3.0).abs() < 0.0019, "{times}");
}

#[test]
fn the_longest_sample_of_the_round_trip_counts_or_the_newest() {
    for (use_max, verdict) in [(true, Verdict::Reduced), (false, Verdict::Continue)] {
        let mut rounds = ChdRounds::new(avoiding(ChdConfig { use_max, ..config(ALWAYS) }, 20));
        rounds.chd.longest = 61;
        assert_eq!(rounds.round(41), verdict);
        assert_eq!(rounds.chd.longest, 0);
    }
}

#[test]
fn up_to_the_minimum_nothing_happens_and_nobody_competes() {
    let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 20));
    rounds.chd.competing = true;
    assert_eq!(rounds.round(46), Verdict::Continue);
    assert!(!rounds.chd.competing);
}

#[test]
fn a_back_off_beyond_the_threshold_means_competition() {
    // 21 of 20 ticks: 79/80 of certainty; the seed makes it so.
    let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 20));
    assert_eq!(rounds.round(62), Verdict::Reduced);
    assert!(rounds.chd.competing);
    assert_eq!(rounds.chd.state.shadow, 20 * MSS, "the window before");
    // The flow does not compete without `loss_fair`; the shadow window is kept for the delay that
    // rose.
    let mut rounds = ChdRounds::new(avoiding(ChdConfig { loss_fair: false, ..config(ALWAYS) }, 20));
    assert_eq!(rounds.round(62), Verdict::Reduced);
    assert!(!rounds.chd.competing);
    assert_eq!(rounds.chd.state.shadow, 20 * MSS);
    rounds.chd.on_signal(&flight(rounds.millis, 3), Signal::RecoveryEnd);
    // Less delay than before: given up.
    assert_eq!(rounds.round(61), Verdict::Reduced);
    assert_eq!((rounds.chd.state.shadow, rounds.chd.delay_before), (0, 20));
    // No back-off beyond the threshold leaves the judgement as it was; at it or below it is no.
    let mut chd = avoiding(config(NEVER), 20);
    (chd.ertt.min, chd.ertt.max) = (41, 141);
    chd.competing = true;
    assert!(!chd.judge(21) && chd.competing);
    assert!(!chd.judge(20) && !chd.competing);
    chd.competing = true;
    assert!(!chd.judge(7) && !chd.competing);
}

#[test]
fn a_loss_with_little_delay_costs_nothing() {
    let mut chd = avoiding(config(NEVER), 20);
    (chd.ertt.rtt, chd.ertt.min, chd.longest) = (41, 41, 61);
    chd.state.shadow = 30 * MSS;
    chd.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!((cwnd(&chd), ssthresh(&chd), chd.state.shadow), (20, 20, 15 * MSS));
    chd.on_signal(&flight(0, 20), Signal::RecoveryEnd);
    assert_eq!((cwnd(&chd), chd.state.recovery), (20, Recovery::None));
}

#[test]
fn a_loss_with_much_delay_halves_from_the_shadow_window_if_flows_compete() {
    for (competing, cwnd_then, ssthresh_then) in [(false, 10, 10), (true, 20, 26)] {
        let mut chd = avoiding(config(NEVER), 20);
        (chd.ertt.rtt, chd.ertt.min, chd.longest) = (62, 41, 50);
        (chd.competing, chd.state.shadow) = (competing, 51 * MSS);
        chd.on_signal(&flight(0, 20), Signal::Loss);
        // 51 - 25 = 26; 51 / 2 = 25 for the shadow window itself.
        assert_eq!((cwnd(&chd), ssthresh(&chd), chd.state.shadow), (cwnd_then, ssthresh_then, 25 * MSS));
    }
    // The shadow window does not fall below two segments, nor rise from nothing.
    let mut chd = avoiding(config(NEVER), 20);
    chd.state.shadow = 2 * MSS;
    chd.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!(chd.state.shadow, 2 * MSS);
    let mut chd = avoiding(config(NEVER), 20);
    chd.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!(chd.state.shadow, 0);
}

#[test]
fn a_loss_during_congestion_recovery_costs_nothing_more() {
    let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 40));
    assert_eq!(rounds.round(62), Verdict::Reduced);
    assert_eq!((cwnd(&rounds.chd), rounds.chd.state.shadow), (20, 40 * MSS));
    let mut said = rounds.chd.clone();
    said.on_signal(&flight(rounds.millis, 20), Signal::Loss);
    let mut unsaid = rounds.chd;
    unsaid.on_arrival(&flight(rounds.millis, 20), &Arrival { in_recovery: true, ..Arrival::default() });
    for chd in [said, unsaid] {
        assert_eq!((cwnd(&chd), ssthresh(&chd), chd.state.shadow), (20, 20, 20 * MSS));
        assert_eq!(chd.state.recovery, Recovery::Fast);
    }
}

#[test]
fn a_back_off_on_a_duplicate_ack_waits_for_the_next() {
    let steep = || {
        let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 20));
        rounds.arrive(61, true);
        assert_eq!((cwnd(&rounds.chd), rounds.chd.step), (20, Step::BackOff(20)));
        rounds.chd
    };
    let again = Arrival { duplicate: true, ..Arrival::default() };
    let mut chd = steep();
    chd.on_arrival(&flight(200, 20), &again);
    assert_eq!(chd.on_ack(&flight(200, 20), &ack(1, 100)), Verdict::Reduced);
    assert_eq!(chd.on_ack(&flight(200, 20), &ack(1, 100)), Verdict::Continue, "once");
    // Before the loss that a later duplicate proves, which costs nothing more.
    let mut chd = steep();
    chd.on_arrival(&flight(200, 20), &again);
    chd.on_signal(&flight(200, 20), Signal::Loss);
    assert_eq!((cwnd(&chd), chd.delay_before), (10, 20));
    // The ACK does not count if it proves the loss itself.
    let mut chd = steep();
    chd.on_signal(&flight(200, 20), Signal::Loss);
    assert_eq!((cwnd(&chd), chd.delay_before), (20, 0));
    assert_eq!(chd.on_ack(&flight(200, 20), &ack(1, 100)), Verdict::Continue);
}

#[test]
fn ecn_timeouts_and_idle_time_are_newrenos() {
    let mut chd = avoiding(config(NEVER), 21);
    chd.state.shadow = 30 * MSS;
    chd.on_signal(&flight(0, 21), Signal::Ecn);
    assert_eq!((cwnd(&chd), ssthresh(&chd), chd.state.recovery), (10, 10, Recovery::Congestion));
    chd.on_signal(&flight(0, 3), Signal::RecoveryEnd);
    assert_eq!(cwnd(&chd), 10);
    chd.on_signal(&flight(0, 10), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&chd), ssthresh(&chd), chd.state.shadow), (1, 5, 30 * MSS));
    chd.on_signal(&flight(0, 10), Signal::Spurious);
    assert_eq!((cwnd(&chd), ssthresh(&chd)), (10, 10));
    chd.state.window.cwnd = 30 * MSS;
    chd.on_signal(&flight(0, 0), Signal::IdleRestart);
    assert_eq!(cwnd(&chd), 10);
    chd.take_over(Window { cwnd: 33 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&chd), chd.state.shadow), (33, 33 * MSS));
    chd.impose(Window { cwnd: 40 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&chd), chd.state.shadow), (40, 33 * MSS));
}

#[test]
fn a_back_off_after_a_timeout_begins_no_recovery() {
    let mut rounds = ChdRounds::new(avoiding(config(ALWAYS), 20));
    rounds.arrive(61, false);
    let f = Flight { after_timeout: true, ..flight(rounds.millis, 20) };
    assert_eq!(rounds.chd.on_ack(&f, &ack(1, 100)), Verdict::Reduced);
    assert_eq!((cwnd(&rounds.chd), rounds.chd.state.recovery), (10, Recovery::None));
}

#[test]
fn a_timeout_goes_by_what_was_in_flight_on_freebsd_14() {
    for (timeout_flight, threshold) in [(false, 10), (true, 6)] {
        let reno = NewRenoConfig { timeout_flight, ..crate::reactions::freebsd() };
        let mut chd = Chd::new(ChdConfig { reno, ..ChdConfig::default() }, Random::for_component(1, 0, "chd"));
        chd.on_established(&Flight { initial_window: 20 * MSS, ..flight(0, 20) });
        chd.on_signal(&flight(100, 13), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!((cwnd(&chd), ssthresh(&chd)), (1, threshold));
    }
}

/// chd_ack_received with `use_abc` off: slow start up to the threshold, or a segment for a
/// measurement beyond it, not both.
#[test]
fn an_ack_that_reaches_the_threshold_is_slow_starts_alone() {
    let reno = NewRenoConfig { abc: false, ..NewRenoConfig::default() };
    let mut chd = avoiding(ChdConfig { reno, ..config(NEVER) }, 9);
    chd.state.window.ssthresh = 10 * MSS;
    chd.step = Step::Grow(true);
    let _ = chd.on_ack(&flight(0, 9), &ack(1, 41));
    assert_eq!((cwnd(&chd), chd.state.shadow), (10, 0), "and a shadow window that is not there does not grow");
    chd.step = Step::Grow(true);
    let _ = chd.on_ack(&flight(0, 10), &ack(1, 41));
    assert_eq!(cwnd(&chd), 11);
}

/// `chd_window_decrease`: the shadow window begins with more delay than at the last back-off, and
/// not with as much.
#[test]
fn a_shadow_window_begins_with_more_delay_than_before() {
    for (delay, shadow) in [(20, 0), (21, 30 * MSS)] {
        let mut chd = avoiding(config(NEVER), 30);
        chd.delay_before = 20;
        chd.back_off(&flight(0, 30), delay);
        assert_eq!((chd.state.shadow, chd.delay_before), (shadow, delay));
    }
}

/// A loss that follows a mark and is taken back leaves no congestion recovery behind, in which
/// nothing would be measured.
#[test]
fn an_undo_leaves_no_recovery() {
    let mut chd = avoiding(config(NEVER), 30);
    chd.on_signal(&flight(0, 30), Signal::Ecn);
    assert_eq!(chd.state.recovery, Recovery::Congestion);
    chd.on_signal(&flight(0, 30), Signal::Loss);
    chd.on_signal(&flight(0, 30), Signal::Spurious);
    assert_eq!(chd.state.recovery, Recovery::None);
}

/// Only an ACK that acknowledges or is a duplicate is judged; what others measured waits for the
/// next.
#[test]
fn an_ack_that_tells_nothing_new_is_not_judged() {
    let mut chd = avoiding(ChdConfig { use_max: false, ..config(ALWAYS) }, 21);
    (chd.ertt.min, chd.ertt.max) = (41, 141);
    chd.on_sent(&flight(0, 10), &Sent { seq: 0, bytes: MSS as u32 });
    // SACKed once more than it need be: 60 + 1 ticks, the threshold above 41.
    chd.on_arrival(&flight(60, 10), &Arrival { ack: 0, sacked_to: Some(MSS), ..Arrival::default() });
    assert_eq!((chd.ertt.rtt, chd.step), (61, Step::Grow(false)));
    chd.on_arrival(&flight(60, 10), &Arrival { ack: 0, sacked_to: Some(MSS), duplicate: true, ..Arrival::default() });
    assert_eq!(chd.step, Step::BackOff(20));
}
