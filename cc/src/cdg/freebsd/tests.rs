use super::*;
use crate::fixture::{MSS, ack, cwnd, flight, ssthresh};

fn random() -> Random {
    Random::for_component(1, 0, "cdg")
}

fn cdg(config: CdgConfig) -> Cdg {
    let mut cdg = Cdg::new(config, random());
    cdg.on_established(&flight(0, 10));
    cdg
}

/// In congestion avoidance with `segments` of window, nothing measured.
fn avoiding(config: CdgConfig, segments: u64) -> Cdg {
    let mut cdg = cdg(config);
    cdg.state.window = Window { cwnd: segments * MSS, ssthresh: 2 * MSS };
    cdg.state.shadow = segments * MSS;
    cdg
}

/// A sender with one segment in each round trip, so that each ACK completes a measurement.
struct CdgRounds {
    cdg: Cdg,
    millis: u64,
    una: u64,
}

impl CdgRounds {
    fn new(cdg: Cdg) -> CdgRounds {
        CdgRounds { cdg, millis: 0, una: 0 }
    }

    /// A round trip of `rtt` ticks; the verdict on its ACK.
    fn round(&mut self, rtt: u64) -> Verdict {
        self.arrive(rtt, false);
        self.una += MSS;
        self.cdg.on_ack(&flight(self.millis, cwnd(&self.cdg)), &ack(1, rtt))
    }

    /// Takes a round trip that only a duplicate ACK with SACK shows, and returns the step that it
    /// calls for.
    fn duplicate(&mut self, rtt: u64) -> Step {
        self.arrive(rtt, true);
        self.cdg.step
    }

    fn arrive(&mut self, rtt: u64, duplicate: bool) {
        let seq = self.una;
        self.cdg.on_sent(&flight(self.millis, 10), &Sent { seq, bytes: MSS as u32 });
        self.millis += rtt - 1;
        let arrival = if duplicate {
            Arrival { ack: seq, sacked_to: Some(seq + MSS), duplicate, ..Arrival::default() }
        } else {
            Arrival { ack: seq + MSS, acked: MSS, delivered: MSS, ..Arrival::default() }
        };
        self.cdg.on_arrival(&flight(self.millis, 10), &arrival);
    }
}

/// Never backs off by chance.
const CALM: CdgConfig = CdgConfig {
    alpha_inc: 0,
    beta_delay: 70,
    beta_loss: 50,
    exp_backoff_scale: 1_000_000,
    smoothing_factor: 8,
    loss_compete_consec_cong: 5,
    loss_compete_hold_backoff: 5,
    rtt_unit: Span::from_millis(1),
    timeout_flight: false,
    remember_idle: false,
    slow_start: SlowStartRules::Standard,
};
/// Backs off for any gradient above five ticks.
const NERVOUS: CdgConfig = CdgConfig { exp_backoff_scale: 1, smoothing_factor: 0, ..CALM };

#[test]
fn the_table_is_that_of_the_reference() {
    // probexp[0], [1], [2], [15], [16], [43], [100], [128], [384], [639], [640] of cc_cdg.c.
    let known = [
        (0, 10),
        (1, 255),
        (2, 508),
        (15, 3624),
        (16, 3850),
        (43, 9350),
        (48, 10247),
        (128, 20713),
        (384, 31137),
        (639, 32545),
        (640, 32547),
    ];
    for (x, p) in known {
        assert_eq!(tabulated(x), p, "probexp[{x}]");
    }
}

#[test]
fn back_offs_are_as_frequent_as_the_exponential_says() {
    let mut cdg = cdg(CdgConfig::default());
    let n = 1_000_000;
    // G = 3. The index is (128 g + 1) / 3: 43, 128 and 384, whose entries are 9350, 20713 and 31137
    // of 32768; the comparison of 32 bits with 131071 times that gives 0.28532, 0.63209 and
    // 0.95022. The exact 1 - exp(-g/3) are 0.28347, 0.63212 and 0.95021: the first differs because
    // 128 / 3 was rounded up. The standard error sqrt(p (1 - p) / n) is 0.00045, 0.00048 and
    // 0.00022; four of them.
    for (g, table, exact, error) in
        [(1, 0.28532, 0.28347, 0.0018), (3, 0.63209, 0.63212, 0.0019), (9, 0.95022, 0.95021, 0.0009)]
    {
        let times = (0..n).filter(|_| cdg.backs_off(g << FRACTION)).count();
        let share = times as f64 / f64::from(n);
        assert!((share - table).abs() < error, "g = {g}: {share}");
        assert!((share - exact).abs() < error + 0.002, "g = {g}: {share}");
    }
    // Five G and more: the table ends with 0.99326, and beyond it is certain.
    assert!((0..10_000).all(|_| cdg.backs_off((15 << FRACTION) + 1)));
    let times = (0..n).filter(|_| cdg.backs_off(15 << FRACTION)).count();
    // sqrt(0.99326 * 0.00674 / 10^6) = 0.00008
    assert!((times as f64 / f64::from(n) - 0.99325).abs() < 0.0004);
    // The smallest gradient: 10 / 32768 = 0.000305, standard error 0.0000175.
    let times = (0..n).filter(|_| cdg.backs_off(1)).count();
    assert!((times as f64 / f64::from(n) - 0.000305).abs() < 0.00007);
}

#[test]
fn a_finer_tick_with_a_larger_scale_is_the_same_law() {
    let tenth = CdgConfig { exp_backoff_scale: 30, rtt_unit: Span::from_micros(100), ..CdgConfig::default() };
    let mut cdg = cdg(tenth);
    let n = 1_000_000;
    // 10 ticks of 0.1 ms: index (1280 + 15) / 30 = 43 as for 1 tick of 1 ms.
    let times = (0..n).filter(|_| cdg.backs_off(10 << FRACTION)).count();
    assert!((times as f64 / f64::from(n) - 0.28532).abs() < 0.0018);
}

#[test]
fn slow_start_adds_a_segment_per_ack_and_ends_beyond_the_threshold() {
    let mut cdg = cdg(CdgConfig::default());
    cdg.state.window.ssthresh = 12 * MSS;
    assert_eq!((cwnd(&cdg), cdg.state.shadow), (10, 10 * MSS));
    for expected in [11, 12, 13, 13] {
        // However much an ACK covers.
        assert_eq!(cdg.on_ack(&flight(100, 10), &ack(2, 100)), Verdict::Continue);
        assert_eq!((cwnd(&cdg), cdg.state.shadow), (expected, expected * MSS));
    }
    let f = Flight { cwnd_limited: false, ..flight(100, 10) };
    cdg.state.window.ssthresh = 100 * MSS;
    let _ = cdg.on_ack(&f, &ack(1, 100));
    assert_eq!(cwnd(&cdg), 13);
}

#[test]
fn congestion_avoidance_adds_a_segment_per_measurement() {
    let mut rounds = CdgRounds::new(avoiding(CALM, 20));
    for expected in 21..30 {
        assert_eq!(rounds.round(41), Verdict::Continue);
        assert_eq!((cwnd(&rounds.cdg), rounds.cdg.state.shadow), (expected, expected * MSS));
        // An ACK without a measurement adds nothing.
        let _ = rounds.cdg.on_ack(&flight(rounds.millis, 20), &ack(1, 41));
        assert_eq!(cwnd(&rounds.cdg), expected);
    }
}

#[test]
fn alpha_inc_makes_growth_grow() {
    let mut rounds = CdgRounds::new(avoiding(CdgConfig { alpha_inc: 2, ..CALM }, 20));
    // 0 for one round trip, then 1 for two, 2 for two, 3 for two.
    for expected in [20, 21, 22, 24, 26, 29, 32] {
        let _ = rounds.round(41);
        assert_eq!(cwnd(&rounds.cdg), expected);
    }
    // The shadow window grows by one segment whatever alpha_inc is.
    assert_eq!(rounds.cdg.state.shadow, 27 * MSS);
    let window = rounds.cdg.window().cwnd;
    rounds.cdg.back_off(&flight(0, 32));
    assert_eq!((rounds.cdg.state.growth, rounds.cdg.state.round_trips), (0, 0));
    assert_eq!(rounds.cdg.window().cwnd, window * 70 / 100);
}

#[test]
fn the_mean_of_eight_changes_divides_as_it_goes() {
    let mut trend = Trend { mean: Extremes { min: 0, max: 0 }, window: VecDeque::new() };
    // Changes of 1 tick are 128, an eighth of which is 16; of -1/128 tick they are lost in the
    // division.
    for n in 1..=8 {
        trend.add(Extremes { min: 128, max: -1 }, 8);
        assert_eq!(trend.mean, Extremes { min: 16 * n, max: 0 });
    }
    // The window is full: the oldest leaves. (-256 - 128) / 8 = -48; (-128 + 1) / 8 = -15, towards
    // zero.
    trend.add(Extremes { min: -256, max: -128 }, 8);
    assert_eq!(trend.mean, Extremes { min: 80, max: -15 });
    assert_eq!(trend.window.len(), 8);
    trend.add(Extremes { min: 5, max: 7 }, 0);
    assert_eq!(trend.mean, Extremes { min: 5, max: 7 }, "no smoothing");
}

#[test]
fn the_queue_is_inferred_from_the_signs() {
    let inferred = |min, max| Queue::inferred(Extremes { min, max });
    assert_eq!(inferred(1, 0), Some(Queue::Full));
    assert_eq!(inferred(1, -1), Some(Queue::Full), "before empty, which also fits");
    assert_eq!(inferred(0, -1), Some(Queue::Empty));
    assert_eq!(inferred(1, 1), Some(Queue::Rising));
    assert_eq!(inferred(-1, -1), Some(Queue::Falling));
    for (min, max) in [(0, 0), (0, 1), (-1, 0), (-1, 1)] {
        assert_eq!(inferred(min, max), None, "{min} {max}");
    }
}

#[test]
fn extremes_are_kept_per_measurement_and_compared_with_the_last() {
    let mut rounds = CdgRounds::new(avoiding(CdgConfig { smoothing_factor: 0, ..CALM }, 20));
    let _ = rounds.round(41);
    assert_eq!((rounds.cdg.previous, rounds.cdg.queue), (Some(Extremes { min: 41, max: 41 }), Queue::Unknown));
    let _ = rounds.round(44);
    // 3 ticks up, but the sample of before counts in this interval as well: it is what the first
    // ACK of it finds.
    assert_eq!(rounds.cdg.trend.mean, Extremes { min: 3 << FRACTION, max: 3 << FRACTION });
    assert_eq!(rounds.cdg.queue, Queue::Rising);
    let _ = rounds.round(42);
    assert_eq!(rounds.cdg.trend.mean, Extremes { min: -2 << FRACTION, max: -2 << FRACTION });
    assert_eq!(rounds.cdg.queue, Queue::Falling);
    let _ = rounds.round(42);
    assert_eq!(rounds.cdg.queue, Queue::Falling, "no change says nothing");
}

#[test]
fn a_steep_gradient_takes_the_window_to_seventy_per_cent() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 20));
    let _ = rounds.round(41);
    assert_eq!(cwnd(&rounds.cdg), 21);
    // 6 ticks > 5 G: certain. 21 * 1448 * 70 / 100 = 21285 bytes.
    assert_eq!(rounds.round(47), Verdict::Reduced);
    assert_eq!(rounds.cdg.window(), Window { cwnd: 21_285, ssthresh: 21_285 });
    assert_eq!(rounds.cdg.state.recovery, Recovery::Congestion);
    // The shadow window stands where the window stood.
    assert_eq!(rounds.cdg.state.shadow, 21 * MSS);
    // The next measurement has nothing to compare with; at the threshold an ACK adds a segment, and
    // then a measurement does.
    assert_eq!(rounds.round(60), Verdict::Continue);
    assert_eq!(rounds.cdg.window().cwnd, 21_285 + MSS);
    // Steep again while the reduction is on: held, without growth.
    assert_eq!(rounds.round(80), Verdict::Continue);
    assert_eq!(rounds.cdg.window().cwnd, 21_285 + MSS);
    assert_eq!(rounds.cdg.consecutive, 2);
    rounds.cdg.on_signal(&flight(rounds.millis, 0), Signal::RecoveryEnd);
    assert_eq!(rounds.cdg.window().cwnd, 21_285 + MSS, "the end of congestion recovery changes nothing");
    assert_eq!(rounds.round(100), Verdict::Reduced);
}

#[test]
fn neither_delay_nor_loss_goes_below_two_segments() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 2));
    rounds.cdg.state.window.ssthresh = MSS;
    let _ = rounds.round(41);
    for rtt in [60, 60, 90, 90, 120] {
        let _ = rounds.round(rtt);
        rounds.cdg.on_signal(&flight(rounds.millis, 10), Signal::RecoveryEnd);
        assert!(rounds.cdg.window().cwnd >= 2 * MSS);
    }
    rounds.cdg.queue = Queue::Full;
    rounds.cdg.state.shadow = 0;
    rounds.cdg.state.window.cwnd = 2 * MSS;
    rounds.cdg.on_signal(&flight(0, 2), Signal::Loss);
    assert_eq!((cwnd(&rounds.cdg), ssthresh(&rounds.cdg)), (2, 2));
}

#[test]
fn after_five_back_offs_in_vain_five_are_held_back() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 1000));
    let mut rtt = 41;
    let _ = rounds.round(rtt);
    let mut verdicts = Vec::new();
    for _ in 0..12 {
        rtt += 6;
        verdicts.push(rounds.round(rtt) == Verdict::Reduced);
        rounds.cdg.on_signal(&flight(rounds.millis, 10), Signal::RecoveryEnd);
        // The round trip after it measures from anew.
        assert_eq!(rounds.round(rtt), Verdict::Continue);
    }
    // Numbers 1 to 5 back off, 6 to 10 are held back, and the tenth begins the count again.
    let mut expected = [true; 12];
    expected[5..10].fill(false);
    assert_eq!(verdicts, expected);
}

#[test]
fn a_falling_gradient_ends_the_count() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 1000));
    for rtt in [41, 47, 47] {
        let _ = rounds.round(rtt);
    }
    assert_eq!(rounds.cdg.consecutive, 1);
    let _ = rounds.round(46);
    assert_eq!(rounds.cdg.consecutive, 0);
}

#[test]
fn an_empty_queue_ends_the_shadow_window_until_the_next_back_off() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 20));
    let _ = rounds.round(41);
    // The shortest stays and the longest comes down: two samples in the interval before, one of
    // them longer.
    rounds.cdg.previous = Some(Extremes { min: 41, max: 45 });
    let _ = rounds.round(41);
    assert_eq!((rounds.cdg.queue, rounds.cdg.state.shadow), (Queue::Empty, 0));
    let _ = rounds.round(41);
    assert_eq!((cwnd(&rounds.cdg), rounds.cdg.state.shadow), (23, 0), "it does not grow from nothing");
    assert_eq!(rounds.round(60), Verdict::Reduced);
    // The window after the back-off: 23 * 1448 * 70 / 100 = 23312.
    assert_eq!(rounds.cdg.state.shadow, 23_312);
}

#[test]
fn in_slow_start_the_newest_change_counts_before_the_mean() {
    let config = CdgConfig { exp_backoff_scale: 1, ..CALM };
    let mut rounds = CdgRounds::new(cdg(config));
    let _ = rounds.round(41);
    // Smoothed, 6 ticks are 0.75 and would back off with 0.53; by themselves they do for certain.
    assert_eq!(rounds.round(47), Verdict::Reduced);
    // The longest counts where the shortest does not rise: after an interval of 47 to 47.
    let mut rounds = CdgRounds::new(cdg(config));
    let _ = rounds.round(41);
    rounds.cdg.interval = Extremes { min: 40, max: 60 };
    assert_eq!(rounds.round(41), Verdict::Reduced);
    // In congestion avoidance the mean of the longest: 19 ticks are 2.375, 1 - exp(-2.375) = 0.907.
    let mut times = 0;
    for n in 0..1000 {
        let mut rounds = CdgRounds::new(Cdg::new(config, Random::for_component(n, 0, "cdg")));
        rounds.cdg.state.window = Window { cwnd: 20 * MSS, ssthresh: 2 * MSS };
        let _ = rounds.round(41);
        rounds.cdg.interval = Extremes { min: 40, max: 60 };
        times += u32::from(rounds.round(41) == Verdict::Reduced);
    }
    // Standard error sqrt(0.907 * 0.093 / 1000) = 0.0092; four of them.
    assert!((f64::from(times) / 1000.0 - 0.907).abs() < 0.037, "{times}");
}

#[test]
fn a_loss_with_a_full_queue_halves_and_the_shadow_window_gives_back() {
    // Unknown counts as full. 20 * 50 / 100 = 10.
    let mut cdg = avoiding(CALM, 20);
    cdg.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.shadow), (10, 10, 10 * MSS));
    cdg.on_signal(&flight(0, 20), Signal::RecoveryEnd);
    assert_eq!(cwnd(&cdg), 10);

    // Half of a shadow window of 50 is more than the window of 20: the threshold is 25, reached
    // after recovery.
    let mut cdg = avoiding(CALM, 20);
    cdg.queue = Queue::Full;
    cdg.state.shadow = 50 * MSS;
    cdg.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.shadow), (20, 25, 25 * MSS));
    // 19 in flight and one more, then slow start up to it and one beyond.
    cdg.on_signal(&flight(0, 19), Signal::RecoveryEnd);
    assert_eq!(cwnd(&cdg), 20);
    for expected in [21, 22, 23, 24, 25, 26, 26] {
        let _ = cdg.on_ack(&flight(0, 20), &ack(1, 100));
        assert_eq!(cwnd(&cdg), expected);
    }
}

#[test]
fn a_loss_with_a_queue_that_is_not_full_costs_nothing() {
    for queue in [Queue::Empty, Queue::Rising, Queue::Falling] {
        let mut cdg = avoiding(CALM, 20);
        cdg.queue = queue;
        cdg.on_signal(&flight(0, 20), Signal::Loss);
        assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.shadow), (20, 20, 20 * MSS));
        cdg.on_signal(&flight(0, 20), Signal::RecoveryEnd);
        assert_eq!(cwnd(&cdg), 20);
    }
}

#[test]
fn where_the_host_tells_of_it_recovery_adds_a_segment_per_ack() {
    // cdg_ack_received asks for no recovery, and the window in force is not above the threshold.
    let mut cdg = avoiding(CdgConfig::default(), 20);
    cdg.queue = Queue::Falling;
    cdg.on_signal(&flight(0, 20), Signal::Loss);
    let ack = Ack { in_recovery: true, ..ack(1, 10) };
    assert_eq!(cdg.on_ack(&flight(10, 20), &ack), Verdict::Inflated(MSS));
    assert_eq!((cdg.state.shadow, cwnd(&cdg)), (21 * MSS, 20));
    // The gradient calls for less: nothing grows.
    cdg.step = Step::Hold;
    assert_eq!(cdg.on_ack(&flight(20, 20), &ack), Verdict::Continue);
    // The last ACK is that of a window at the threshold, which is the controller's again.
    cdg.on_signal(&flight(30, 20), Signal::RecoveryEnd);
    assert_eq!(cdg.on_ack(&flight(30, 20), &ack), Verdict::Continue);
    assert_eq!((cdg.state.shadow, cwnd(&cdg)), (22 * MSS, 21));
}

#[test]
fn a_loss_during_congestion_recovery_costs_nothing_more() {
    let mut cdg = avoiding(CALM, 20);
    cdg.queue = Queue::Full;
    cdg.back_off(&flight(0, 20));
    assert_eq!(cwnd(&cdg), 14);
    cdg.on_signal(&flight(0, 14), Signal::Loss);
    assert_eq!((cwnd(&cdg), cdg.state.recovery), (14, Recovery::Fast));
    // The back-off also stands where the endpoint sends no signal, because one reduction per window
    // is its rule.
    let mut cdg = avoiding(CALM, 20);
    cdg.back_off(&flight(0, 20));
    let _ = cdg.on_ack(&flight(0, 14), &ack(1, 100));
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (15, 14));
    cdg.on_arrival(&flight(0, 14), &Arrival { in_recovery: true, ..Arrival::default() });
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.recovery), (15, 15, Recovery::Fast));
    cdg.on_signal(&flight(0, 3), Signal::RecoveryEnd);
    assert_eq!(cwnd(&cdg), 4, "what is in flight and one more");
}

#[test]
fn a_back_off_on_a_duplicate_ack_waits_for_the_next() {
    let steep = || {
        let mut rounds = CdgRounds::new(avoiding(NERVOUS, 20));
        rounds.cdg.queue = Queue::Full;
        let _ = rounds.round(41);
        assert_eq!(rounds.duplicate(60), Step::BackOff);
        assert_eq!(cwnd(&rounds.cdg), 21);
        rounds
    };
    // A duplicate follows, then data is acknowledged.
    let mut rounds = steep();
    rounds.cdg.on_arrival(&flight(rounds.millis, 20), &Arrival { duplicate: true, ..Arrival::default() });
    assert_eq!(rounds.cdg.on_ack(&flight(rounds.millis, 20), &ack(1, 100)), Verdict::Reduced);
    assert_eq!(cwnd(&rounds.cdg), 14);
    assert_eq!(rounds.cdg.on_ack(&flight(rounds.millis, 20), &ack(1, 100)), Verdict::Continue, "once");
    // A duplicate follows that proves a loss: the back-off was first, and the loss costs nothing
    // more.
    let mut rounds = steep();
    rounds.cdg.on_arrival(&flight(rounds.millis, 20), &Arrival { duplicate: true, ..Arrival::default() });
    rounds.cdg.queue = Queue::Full;
    rounds.cdg.on_signal(&flight(rounds.millis, 20), Signal::Loss);
    assert_eq!(rounds.cdg.window().cwnd, 21_285);
    // The duplicate proves the loss itself, which comes first: half, and no back-off.
    let mut rounds = steep();
    rounds.cdg.queue = Queue::Full;
    rounds.cdg.on_signal(&flight(rounds.millis, 20), Signal::Loss);
    assert_eq!(rounds.cdg.window().cwnd, 21 * MSS / 2);
    rounds.cdg.on_signal(&flight(rounds.millis, 20), Signal::RecoveryEnd);
    assert_eq!(rounds.cdg.on_ack(&flight(rounds.millis, 10), &ack(1, 100)), Verdict::Continue);
}

#[test]
fn ecn_and_timeouts_are_newrenos() {
    let mut cdg = avoiding(CALM, 21);
    cdg.queue = Queue::Rising;
    cdg.on_signal(&flight(0, 21), Signal::Ecn);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.recovery), (10, 10, Recovery::Congestion));
    cdg.on_signal(&flight(0, 3), Signal::RecoveryEnd);
    assert_eq!(cwnd(&cdg), 10);
    cdg.on_signal(&flight(0, 10), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&cdg), ssthresh(&cdg), cdg.state.recovery), (1, 5, Recovery::None));
    assert_eq!(cdg.state.shadow, 21 * MSS);
    cdg.on_signal(&flight(0, 10), Signal::Timeout { repeated: true, kept: 0 });
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (1, 5));
    cdg.on_signal(&flight(0, 10), Signal::Spurious);
    assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (10, 10));
}

#[test]
fn a_back_off_after_a_timeout_begins_no_recovery() {
    let mut rounds = CdgRounds::new(avoiding(NERVOUS, 20));
    let _ = rounds.round(41);
    rounds.arrive(60, false);
    let f = Flight { after_timeout: true, ..flight(rounds.millis, 20) };
    assert_eq!(rounds.cdg.on_ack(&f, &ack(1, 100)), Verdict::Reduced);
    assert_eq!((cwnd(&rounds.cdg), rounds.cdg.state.recovery), (14, Recovery::None));
}

#[test]
fn an_undo_restores_the_shadow_window_too() {
    let mut cdg = avoiding(CALM, 20);
    cdg.state.shadow = 30 * MSS;
    cdg.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!((cwnd(&cdg), cdg.state.shadow), (15, 15 * MSS));
    cdg.on_signal(&flight(0, 20), Signal::Spurious);
    assert_eq!((cwnd(&cdg), cdg.state.shadow, cdg.state.recovery), (20, 30 * MSS, Recovery::None));
}

#[test]
fn idle_time_and_taking_over() {
    let mut cdg = avoiding(CALM, 20);
    cdg.on_signal(&flight(0, 0), Signal::IdleRestart);
    assert_eq!(cwnd(&cdg), 10);
    cdg.take_over(Window { cwnd: 33 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&cdg), cdg.state.shadow), (33, 33 * MSS));
    cdg.impose(Window { cwnd: 40 * MSS, ssthresh: 20 * MSS });
    assert_eq!((cwnd(&cdg), cdg.state.shadow), (40, 33 * MSS));
    assert_eq!(cdg.inspect().enhanced_rtt.map(|rtt| rtt.measurements), Some(0));
}

#[test]
fn it_tells_what_it_infers_from_the_gradients() {
    // Two changes in the average. Round trips of 40, 42, 41 and 39 ms change by 2, -1 and -2 ms:
    // averages of 2/2 = 1, 1 - 1/2 = 0.5 and 0.5 + (-2 - 2)/2 = -1.5 ms, whatever a tick is.
    let config = CdgConfig { smoothing_factor: 2, rtt_unit: Span::from_micros(500), ..CALM };
    let mut rounds = CdgRounds::new(avoiding(config, 20));
    let mut after = |millis: u64, fall: i64| {
        // In ticks, the longest RTT of the round trip before was this much above the newest.
        if fall > 0 {
            let previous = rounds.cdg.previous.unwrap();
            rounds.cdg.previous = Some(Extremes { max: previous.min + fall, ..previous });
        }
        rounds.arrive(millis, false);
        rounds.una += MSS;
        let DelayState { gradient_min_ms, gradient_max_ms, queue, shadow } = rounds.cdg.inspect().delay.unwrap();
        (gradient_min_ms, gradient_max_ms, queue.name(), shadow / MSS)
    };
    assert_eq!(after(40, 0), (0.0, 0.0, "unknown", 20));
    assert_eq!(after(42, 0), (1.0, 1.0, "rising", 20));
    assert_eq!(after(41, 0), (0.5, 0.5, "rising", 20));
    assert_eq!(after(39, 0), (-1.5, -1.5, "falling", 20));
    // Twice the shortest stays and the longest falls by 2 ms: -1.5 + (0 + 1)/2 = -1 and
    // -1.5 + (-2 + 1)/2 = -2, then -1 + (0 + 2)/2 = 0 and -2 + (-2 + 2)/2 = -2. The queue is empty,
    // and the shadow window is abandoned.
    assert_eq!(after(39, 4), (-1.0, -2.0, "falling", 20));
    assert_eq!(after(39, 4), (0.0, -2.0, "empty", 0));
}

#[test]
fn releases_differ_in_what_a_timeout_and_an_idle_time_leave() {
    // cc.c of 14: min(snd_wnd, pipe) / 2 of 13 segments in flight; 3/4 of a window of 40. Both
    // before: half of the window of 40, and the threshold stays.
    for (release_14, at_timeout, after_idle) in [(false, 20, 2), (true, 6, 30)] {
        let config = CdgConfig { timeout_flight: release_14, remember_idle: release_14, ..CALM };
        let mut cdg = avoiding(config, 40);
        cdg.on_signal(&flight(100, 13), Signal::Timeout { repeated: false, kept: 0 });
        assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (1, at_timeout));
        let mut cdg = avoiding(config, 40);
        cdg.on_signal(&flight(9000, 0), Signal::IdleRestart);
        assert_eq!((cwnd(&cdg), ssthresh(&cdg)), (10, after_idle));
    }
}
