//! The law against values worked out by hand from the draft; `runs.rs` has whole connections over a
//! model of a path.

mod arbitrary;
mod edges;
mod path;
mod runs;

use super::*;
use crate::RateSample;
use crate::fixture::{MSS, flight};

fn bbr() -> Bbr {
    let mut cc = Bbr::new(BbrConfig::default(), Random::for_component(1, 0, "cc"));
    cc.on_established(&flight(0, 0));
    cc
}

/// A sample of `delivered` segments over 100 ms, ending when `total` segments are delivered.
fn rate(total: u64, delivered: u64) -> RateSample {
    RateSample {
        total_delivered: total * MSS,
        prior_delivered: (total - delivered) * MSS,
        delivered: delivered * MSS,
        interval: Some(Span::from_millis(100)),
        app_limited: false,
        in_flight_when_sent: delivered * MSS,
        lost: 0,
    }
}

fn ack_of(cc: &mut Bbr, millis: u64, in_flight: u64, newly: u64, rate: RateSample) {
    let ack = Ack {
        acked: newly * MSS,
        delivered: newly * MSS,
        rtt: Some(Span::from_millis(100)),
        rate: Some(rate),
        ..Ack::default()
    };
    let _ = cc.on_ack(&flight(millis, in_flight), &ack);
}

/// A segment at `seq` segments, sent last with `in_flight` segments in flight and nothing delivered
/// or lost before, the `nth` to be lost.
fn lost(seq: u64, nth: u64, in_flight: u64) -> Lost {
    Lost {
        seq: seq * MSS,
        bytes: MSS as u32,
        total_delivered: 0,
        total_lost: nth * MSS,
        prior_delivered: 0,
        prior_lost: 0,
        in_flight_when_sent: in_flight * MSS,
        app_limited: false,
        selective_acks: true,
    }
}

/// In `state`, with 100 segments of a bandwidth-delay product: 1000 segments a second at 100 ms.
fn steady(state: State) -> Bbr {
    let mut cc = bbr();
    cc.full_bw.reached = true;
    ack_of(&mut cc, 1000, 100, 100, rate(100, 100));
    cc.start_probe_bw_down(Time::from_millis(1000));
    cc.state = state;
    cc.window.cwnd = 200 * MSS;
    cc
}

#[test]
fn the_first_rate_is_the_initial_window_per_round_trip_times_the_startup_gain() {
    let cc = bbr();
    // InitPacingRate: 2.77 * 10 * 1448 bytes / 100 ms = 401 096 bytes/s, times 8.
    assert_eq!(cc.pacing_rate(&flight(0, 0)), Rate::from_bps(3_208_768));
    assert_eq!(cc.window(), Window { cwnd: 10 * MSS, ssthresh: Window::INFINITE });

    // Without a round trip: per millisecond; with the first that is known, as above.
    let mut cc = Bbr::new(BbrConfig::default(), Random::for_component(1, 0, "cc"));
    cc.on_established(&Flight { srtt: None, ..flight(0, 0) });
    assert_eq!(cc.pacing_rate(&flight(0, 0)), Rate::from_bps(320_876_800));
    let ack = Ack { acked: MSS, delivered: MSS, ..Ack::default() };
    let _ = cc.on_ack(&flight(100, 9), &ack);
    assert_eq!(cc.pacing_rate(&flight(0, 0)), Rate::from_bps(3_208_768));
}

#[test]
fn rate_and_window_follow_from_the_model_and_the_state_s_gains() {
    // 100 segments in 100 ms: bw = 1 448 000 bytes/s, bdp = 144 800 bytes.
    for (state, pacing, cwnd) in [
        (State::ProbeBwDown, 0.9, 2.0),
        (State::ProbeBwCruise, 1.0, 2.0),
        (State::ProbeBwRefill, 1.0, 2.0),
        (State::ProbeBwUp, 1.25, 2.25),
        (State::ProbeRtt, 1.0, 0.5),
        (State::Drain, 0.5, 2.0),
    ] {
        let mut cc = steady(state);
        cc.set_pacing_rate();
        let bits = pacing * 1_448_000.0 * 8.0 * 0.99;
        let rate = cc.pacing_rate(&flight(0, 0)).unwrap().as_bps();
        assert!(rate.abs_diff(bits as u64) <= 1, "{state:?}: {rate}, not {bits}");
        // extra_acked: the 100 segments of the first ACK, which came after an interval in which
        // nothing was expected. In ProbeBW_UP two segments more.
        let extra = 100 * MSS + if state == State::ProbeBwUp { 2 * MSS } else { 0 };
        let extra = extra.min(cc.aggregation.extra_acked() + extra - 100 * MSS);
        let max_inflight = (cwnd * 144_800.0) as u64 + extra;
        assert!(cc.max_inflight().abs_diff(max_inflight) <= 1, "{state:?}: {} {max_inflight}", cc.max_inflight());
    }
}

#[test]
fn the_window_holds_three_quanta_and_four_segments_at_least() {
    let mut cc = steady(State::ProbeBwCruise);
    // 0.99 * 1 448 000 bytes/s * 1 ms = 1433 bytes: a quantum is two segments.
    cc.set_pacing_rate();
    assert_eq!(cc.pacing.send_quantum(MSS), 2 * MSS);
    assert_eq!(cc.inflight(1.0, 1.0), 6 * MSS);
    assert_eq!(cc.probe_rtt_cwnd(), 50 * MSS);
    cc.model.bw = 1.0;
    assert_eq!(cc.probe_rtt_cwnd(), 4 * MSS);
}

#[test]
fn three_rounds_without_a_quarter_more_are_a_plateau() {
    let mut cc = bbr();
    // Rounds of 100, 124 and 150 segments: 124 is less than 125, 150 is more than that.
    let mut total = 0;
    for (round, (segments, count)) in
        [(100, 0), (124, 1), (150, 0), (150, 1), (160, 2), (187, 3)].into_iter().enumerate()
    {
        total += segments;
        ack_of(&mut cc, 100 * round as u64, 10, 1, rate(total, segments));
        let reached = count == 3;
        assert_eq!((cc.full_bw.now, cc.full_bw.reached), (reached, reached), "after {segments} segments");
    }
    // Ten segments in flight are less than any estimate of the path: there is nothing to drain, in
    // Drain or in DOWN.
    assert_eq!(cc.state, State::ProbeBwCruise);
    assert_eq!(cc.window.ssthresh, 2 * MSS);
}

#[test]
fn rounds_limited_by_the_application_are_no_plateau() {
    let mut cc = bbr();
    for round in 1..20 {
        ack_of(&mut cc, 100 * round, 10, 1, RateSample { app_limited: true, ..rate(10 * round, 10) });
    }
    assert_eq!((cc.state, cc.full_bw.now), (State::Startup, false));
    // These samples count for the bandwidth only if they are larger than the maximum so far.
    assert_eq!(cc.model.max_bw(), 100.0 * MSS as f64);
    ack_of(&mut cc, 2000, 10, 1, RateSample { app_limited: true, ..rate(205, 15) });
    assert_eq!(cc.model.max_bw(), 150.0 * MSS as f64);
    ack_of(&mut cc, 2100, 10, 1, RateSample { app_limited: true, ..rate(210, 5) });
    assert_eq!(cc.model.max_bw(), 150.0 * MSS as f64);
}

#[test]
fn the_bandwidth_is_forgotten_after_two_cycles() {
    let mut model = Model::new();
    let mut cc = bbr();
    ack_of(&mut cc, 100, 10, 1, rate(100, 100));
    assert_eq!(cc.model.max_bw(), 1000.0 * MSS as f64);
    cc.model.advance_max_bw_filter();
    assert_eq!(cc.model.max_bw(), 1000.0 * MSS as f64);
    ack_of(&mut cc, 200, 10, 1, rate(150, 50));
    cc.model.advance_max_bw_filter();
    assert_eq!(cc.model.max_bw(), 500.0 * MSS as f64);
    // A cycle without a sample takes nothing away.
    cc.model.advance_max_bw_filter();
    assert_eq!(cc.model.max_bw(), 500.0 * MSS as f64);
    model.advance_max_bw_filter();
    assert_eq!(model.max_bw(), 0.0);
}

#[test]
fn the_loss_that_crosses_the_threshold_says_how_much_was_safe() {
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    // 2 of 100 segments are no more than 2 %.
    for (seq, nth) in [(10, 1), (20, 2)] {
        cc.on_lost(&flight(1100, 100), &lost(seq, nth, 100));
        assert_eq!((cc.state, cc.model.inflight_longterm), (State::ProbeBwUp, UNBOUNDED));
    }
    // The third is. InflightAtLoss: inflight_prev = 99, lost_prev = 2 segments; 0.02 * 99 = 1.98
    // was reached before, so that no part of the packet is safe: 99 segments, which is more than
    // 0.7 * 100.
    cc.on_lost(&flight(1100, 100), &lost(30, 3, 100));
    assert_eq!((cc.state, cc.model.inflight_longterm), (State::ProbeBwDown, 99 * MSS));
    assert!(cc.cycle.prev_probe_too_high && !cc.cycle.is_bw_probe_sample);
    // Once for a probe.
    cc.on_lost(&flight(1100, 100), &lost(40, 4, 50));
    assert_eq!(cc.model.inflight_longterm, 99 * MSS);
}

#[test]
fn a_part_of_a_lost_burst_is_safe() {
    let cc = steady(State::ProbeBwUp);
    // A burst of 10 segments after 90: (0.02 * 90 - 0) / 0.98 = 1.837 segments = 2659.6 bytes of
    // it.
    let burst = Lost { bytes: 10 * MSS as u32, ..lost(90, 10, 100) };
    assert!(cc.is_inflight_too_high(10 * MSS, 100 * MSS));
    let mut cc = cc;
    cc.cycle.is_bw_probe_sample = true;
    cc.on_lost(&flight(1100, 100), &burst);
    assert_eq!(cc.model.inflight_longterm, 90 * MSS + 2659);
}

#[test]
fn the_bound_falls_to_seven_tenths_of_the_target_at_most() {
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    // One of 20 segments; the target is the bandwidth-delay product of 100 and two segments for
    // ProbeBW_UP.
    cc.on_lost(&flight(1100, 100), &lost(5, 1, 20));
    assert_eq!(cc.model.inflight_longterm, (0.7 * 102.0 * MSS as f64) as u64);
    // A loss while the application limits the flow says nothing of the path, but ends the probe.
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    cc.on_lost(&flight(1100, 100), &Lost { app_limited: true, ..lost(5, 1, 20) });
    assert_eq!((cc.state, cc.model.inflight_longterm), (State::ProbeBwDown, UNBOUNDED));
}

#[test]
fn a_loss_that_a_probe_has_repaired_counts_as_one_segment() {
    // One of 49 and it, in flight at most in the last round trip, is no more than 2 %; one of 48
    // and it is.
    for (latest, state) in [(49, State::ProbeBwUp), (48, State::ProbeBwDown)] {
        let mut cc = steady(State::ProbeBwUp);
        cc.cycle.is_bw_probe_sample = true;
        cc.signals.inflight_latest = latest * MSS;
        cc.on_signal(&flight(1100, 1), Signal::Loss);
        cc.on_signal(&flight(1100, 1), Signal::RecoveryEnd);
        assert_eq!((cc.state, cc.episode.recovery), (state, Recovery::None));
    }
}

#[test]
fn without_sack_a_single_loss_is_too_much() {
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    cc.on_lost(&flight(1100, 100), &Lost { selective_acks: false, ..lost(5, 1, 1000) });
    assert_eq!(cc.state, State::ProbeBwDown);
}

#[test]
fn a_round_with_loss_brings_the_short_term_bounds_to_what_was_delivered() {
    let mut cc = steady(State::ProbeBwCruise);
    cc.start_round();
    cc.on_lost(&flight(1100, 100), &Lost { total_delivered: 100 * MSS, ..lost(5, 1, 1000) });
    assert_eq!(cc.model.bw_shortterm, f64::INFINITY, "not before the round ends");
    // The round ends with the first ACK of what was sent after the loss: 80 segments in 100 ms.
    ack_of(&mut cc, 1200, 80, 20, rate(180, 80));
    // max(latest, 0.7 * before): max(800, 0.7 * 1000) segments/s, max(80, 0.7 * 200) segments.
    assert_eq!(cc.model.bw_shortterm, 800.0 * MSS as f64);
    assert_eq!(cc.model.inflight_shortterm, 140 * MSS);
    cc.on_lost(&flight(1210, 80), &Lost { total_delivered: 180 * MSS, ..lost(90, 2, 1000) });
    ack_of(&mut cc, 1300, 50, 20, rate(230, 50));
    // The round has the latest of 80 segments still: max(80, 98); max(800, 560) segments/s.
    assert_eq!(cc.model.bw_shortterm, 800.0 * MSS as f64);
    assert_eq!(cc.model.inflight_shortterm, (0.7 * 140.0 * MSS as f64) as u64);
    assert_eq!(cc.model.bw, 800.0 * MSS as f64);
    // A probe forgets both.
    cc.start_probe_bw_refill();
    assert_eq!((cc.model.bw_shortterm, cc.model.inflight_shortterm), (f64::INFINITY, UNBOUNDED));
}

#[test]
fn startup_ends_by_six_ranges_and_two_per_cent_lost_in_a_round_of_recovery() {
    // (ranges, segments in each, in flight, ends): of 300 segments 6 are no more than 2 %.
    for (ranges, each, in_flight, ends) in
        [(6, 1, 299, true), (5, 2, 299, false), (6, 1, 300, false), (7, 1, 300, true)]
    {
        let mut cc = bbr();
        ack_of(&mut cc, 100, 300, 100, rate(100, 100));
        let mut nth = 0;
        for range in 0..ranges {
            for segment in 0..each {
                nth += 1;
                let lost = Lost { total_delivered: 100 * MSS, ..lost(10 * range + segment, nth, in_flight) };
                cc.on_lost(&flight(150, 300), &lost);
            }
        }
        cc.on_signal(&flight(150, 300), Signal::Loss);
        let sample = RateSample { lost: nth * MSS, in_flight_when_sent: in_flight * MSS, ..rate(250, 150) };
        ack_of(&mut cc, 200, 300, 100, RateSample { prior_delivered: 99 * MSS, ..sample });
        assert_eq!(cc.state, State::Startup, "the round is not over");
        ack_of(&mut cc, 210, 300, 1, RateSample { total_delivered: 251 * MSS, prior_delivered: 101 * MSS, ..sample });
        assert_eq!(cc.state == State::Drain, ends, "{ranges} {each} {in_flight}");
        if ends {
            // max(bdp, inflight_latest) = max(150, 150) segments.
            assert_eq!(cc.model.inflight_longterm, 150 * MSS);
        }
    }
}

#[test]
fn a_needless_recovery_gives_back_what_it_took() {
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    cc.model.inflight_longterm = 180 * MSS;
    cc.on_lost(&flight(1100, 100), &lost(5, 30, 150));
    cc.on_signal(&flight(1100, 100), Signal::Loss);
    assert_eq!((cc.state, cc.model.inflight_longterm), (State::ProbeBwDown, 149 * MSS));
    cc.window.cwnd = 50 * MSS;
    cc.on_signal(&flight(1200, 100), Signal::Spurious);
    assert_eq!((cc.state, cc.model.inflight_longterm, cc.window.cwnd), (State::ProbeBwRefill, 180 * MSS, 200 * MSS));
    assert_eq!(cc.cycle.ack_phase, AckPhase::Refilling);

    // Startup goes on where it was.
    let mut cc = bbr();
    cc.on_signal(&flight(100, 10), Signal::Loss);
    cc.episode.undo_state(State::Startup);
    cc.full_bw.reached = true;
    cc.state = State::Drain;
    cc.on_signal(&flight(200, 10), Signal::Spurious);
    assert_eq!((cc.state, cc.full_bw.reached), (State::Startup, false));
}

#[test]
fn a_timeout_leaves_one_segment_and_the_end_of_its_repair_brings_the_window_back() {
    let mut cc = steady(State::ProbeBwCruise);
    let before = cc.window.cwnd;
    cc.on_lost(&flight(2000, 100), &lost(5, 1, 100));
    cc.on_signal(&flight(2000, 100), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cc.window.cwnd, cc.episode.recovery), (MSS, Recovery::Timeout));
    // The bound starts from the window of before.
    assert_eq!(cc.model.inflight_shortterm, before);
    // MinPipeCwnd with the next ACK, and what is acknowledged on top.
    let late = RateSample { interval: None, ..rate(101, 1) };
    let ack = Ack { acked: MSS, delivered: MSS, rate: Some(late), ..Ack::default() };
    let _ = cc.on_ack(&Flight { after_timeout: true, ..flight(2100, 0) }, &ack);
    assert_eq!(cc.window.cwnd, 4 * MSS);
    ack_of(&mut cc, 2200, 1, 1, RateSample { interval: None, ..rate(102, 1) });
    assert_eq!((cc.window.cwnd, cc.episode.recovery), (before + MSS, Recovery::None));
    // Undone later, all of it is there.
    cc.window.cwnd = 10 * MSS;
    cc.on_signal(&flight(2300, 1), Signal::Spurious);
    assert_eq!(cc.window.cwnd, before);
}

#[test]
fn inflight_longterm_grows_by_one_two_four_segments_a_round() {
    let mut cc = steady(State::ProbeBwRefill);
    cc.model.inflight_longterm = 100 * MSS;
    cc.window.cwnd = 100 * MSS;
    let (mut total, mut millis) = (200, 1100);
    // Refill ends with a round; every round of the probe acknowledges the window, ten segments to
    // an ACK.
    ack_of(&mut cc, millis, 100, 10, rate(total, 100));
    assert_eq!(cc.state, State::ProbeBwUp);
    let mut sent_after = 100;
    for growth in [1, 2, 4, 8] {
        let before = cc.model.inflight_longterm;
        let window = cc.window.cwnd / MSS;
        let next = total;
        for _ in 0..window / 10 {
            (total, millis) = (total + 10, millis + 10);
            let sample = RateSample { in_flight_when_sent: 0, interval: None, ..rate(total, total - sent_after) };
            ack_of(&mut cc, millis, window, 10, sample);
        }
        sent_after = next + 10;
        // The remainder of a round counts for the next.
        let grown = (cc.model.inflight_longterm - before) / MSS;
        assert!(grown.abs_diff(growth) <= 1, "{grown}, not {growth}");
    }
}

#[test]
fn a_probe_after_one_that_went_too_high_stops_at_the_bound_and_then_repeats() {
    let mut cc = steady(State::ProbeBwUp);
    cc.model.inflight_longterm = 120 * MSS;
    cc.cycle.prev_probe_too_high = true;
    cc.full_bw.reset(1.0);
    ack_of(&mut cc, 1100, 119, 1, RateSample { prior_delivered: 0, ..rate(110, 10) });
    assert_eq!(cc.state, State::ProbeBwUp);
    ack_of(&mut cc, 1110, 120, 1, RateSample { prior_delivered: 0, ..rate(120, 10) });
    assert_eq!((cc.state, cc.cycle.ack_phase), (State::ProbeBwDown, AckPhase::ProbeStopping));
    // A round later no loss has come of it.
    ack_of(&mut cc, 1210, 130, 1, rate(130, 10));
    assert_eq!(cc.state, State::ProbeBwRefill);
}

#[test]
fn a_probe_is_due_after_as_many_rounds_as_reno_has_segments() {
    // 20 segments of target: 20 rounds; of 100: 63.
    for (segments, bound) in [(20, 20), (100, 63)] {
        for (rounds, state) in [(bound - 1, State::ProbeBwCruise), (bound, State::ProbeBwRefill)] {
            let mut cc = steady(State::ProbeBwCruise);
            cc.window.cwnd = segments * MSS;
            cc.start_probe_bw_down(Time::from_millis(1000));
            cc.start_probe_bw_cruise();
            cc.cycle.rounds_since_probe_up = rounds;
            let rs = cc.sample(&flight(1001, 50), &Ack::default());
            cc.update_probe_bw_cycle_phase(&rs);
            assert_eq!(cc.state, state, "{segments} segments, {rounds} rounds");
        }
    }
}

#[test]
fn the_wait_between_probes_is_two_to_three_seconds() {
    let mut cc = steady(State::ProbeBwCruise);
    let due_after = |cc: &mut Bbr, millis: u64| {
        let mut cc = cc.clone();
        cc.start_probe_bw_cruise();
        cc.cycle.rounds_since_probe_up = 0;
        let f = flight(1000 + millis, 50);
        let rs = cc.sample(&f, &Ack::default());
        cc.update_probe_bw_cycle_phase(&rs);
        cc.state == State::ProbeBwRefill
    };
    let mut halfway = 0;
    for _ in 0..1000 {
        cc.start_probe_bw_down(Time::from_millis(1000));
        assert!(!due_after(&mut cc, 2000) && due_after(&mut cc, 3001));
        halfway += u32::from(due_after(&mut cc, 2500));
    }
    // Uniform: 500 expected, five standard deviations of sqrt(1000 / 4) = 15.8.
    assert!((421..580).contains(&halfway), "{halfway}");
}

#[test]
fn an_idle_flow_restarts_at_the_bandwidth_and_without_probe_rtt() {
    let mut cc = steady(State::ProbeBwUp);
    cc.set_pacing_rate();
    let idle = Flight { app_limited: true, ..flight(7000, 0) };
    cc.on_sent(&idle, &crate::fixture::sent());
    // 0.99 * 1 448 000 bytes/s, times 8.
    assert_eq!(cc.pacing_rate(&idle).unwrap().as_bps(), 11_468_160);
    // The shortest round trip is 5 s old, but the queue has had its time to drain.
    ack_of(&mut cc, 7100, 1, 1, RateSample { app_limited: true, ..rate(101, 1) });
    assert_ne!(cc.state, State::ProbeRtt);
    // Where something else kept the flow from sending, it is not idle.
    let mut cc = steady(State::ProbeBwUp);
    cc.on_sent(&flight(7000, 0), &crate::fixture::sent());
    ack_of(&mut cc, 7100, 1, 1, rate(101, 1));
    assert_eq!(cc.state, State::ProbeRtt);
}

#[test]
fn probe_rtt_lasts_200_ms_and_a_round_trip_and_counts_as_limited_by_the_application() {
    let mut cc = steady(State::ProbeBwCruise);
    // Nothing shorter for 5 s. The window is half of the bandwidth-delay product.
    ack_of(&mut cc, 6001, 100, 1, rate(101, 1));
    assert_eq!((cc.state, cc.window.cwnd), (State::ProbeRtt, 50 * MSS));
    assert!(cc.probe_rtt.marks(101 * MSS) && cc.probe_rtt.marks(201 * MSS) && !cc.probe_rtt.marks(202 * MSS));
    assert!(!cc.probe_rtt.marks(100 * MSS), "sent before");
    // In flight comes down to that: from here it counts.
    ack_of(&mut cc, 6050, 50, 1, RateSample { prior_delivered: 0, ..rate(102, 1) });
    ack_of(&mut cc, 6150, 50, 1, rate(103, 1));
    ack_of(&mut cc, 6250, 50, 1, rate(104, 1));
    assert_eq!(cc.state, State::ProbeRtt);
    ack_of(&mut cc, 6251, 50, 1, rate(105, 1));
    // The window is that of before, and the segment that the ACK acknowledges.
    assert_eq!((cc.state, cc.window.cwnd), (State::ProbeBwCruise, 201 * MSS));
    // Its samples were below what is known and did not count.
    assert_eq!(cc.model.max_bw(), 1000.0 * MSS as f64);
    // The next one is 5 s later.
    ack_of(&mut cc, 11251, 100, 1, rate(106, 1));
    assert_ne!(cc.state, State::ProbeRtt);
    ack_of(&mut cc, 11252, 100, 1, rate(107, 1));
    assert_eq!(cc.state, State::ProbeRtt);
}

#[test]
fn probe_rtt_keeps_a_larger_window_that_was_saved_before() {
    // CheckProbeRTT calls SaveCwnd with the state ProbeRTT: prior_cwnd is the larger of the one
    // saved at the last episode and the window of now. The model bounds it at the end: 2 * 100
    // segments and what was aggregated.
    let mut cc = steady(State::ProbeBwCruise);
    cc.window.cwnd = 150 * MSS;
    cc.enter_fast_recovery(Time::from_millis(5000));
    cc.exit_fast_recovery();
    cc.window.cwnd = 120 * MSS;
    ack_of(&mut cc, 6001, 100, 1, rate(101, 1));
    assert_eq!((cc.state, cc.window.cwnd), (State::ProbeRtt, 50 * MSS));
    cc.restore_cwnd();
    assert_eq!(cc.window.cwnd, 150 * MSS);
}

#[test]
fn the_shortest_round_trip_is_of_the_last_ten_seconds() {
    let mut cc = steady(State::ProbeBwCruise);
    let measure = |cc: &mut Bbr, millis, rtt| {
        let ack = Ack { rtt: Some(Span::from_millis(rtt)), ..Ack::default() };
        let rs = cc.sample(&flight(millis, 100), &ack);
        cc.update_min_rtt(&rs);
        cc.min_rtt.get()
    };
    assert_eq!(measure(&mut cc, 2000, 80), Some(Span::from_millis(80)));
    assert_eq!(measure(&mut cc, 7001, 120), Some(Span::from_millis(80)), "due for ProbeRTT, not forgotten");
    assert_eq!(measure(&mut cc, 12_000, 90), Some(Span::from_millis(80)));
    assert_eq!(measure(&mut cc, 12_001, 95), Some(Span::from_millis(90)));
}

#[test]
fn an_echo_ends_a_probe_and_startup() {
    let mut cc = steady(State::ProbeBwUp);
    cc.cycle.is_bw_probe_sample = true;
    cc.on_signal(&flight(1100, 110), Signal::Ecn);
    assert_eq!((cc.state, cc.model.inflight_longterm), (State::ProbeBwDown, 110 * MSS));
    let mut cc = bbr();
    ack_of(&mut cc, 100, 300, 100, rate(100, 100));
    cc.on_signal(&flight(150, 300), Signal::Ecn);
    ack_of(&mut cc, 160, 300, 1, rate(101, 1));
    assert_eq!((cc.state, cc.model.inflight_longterm), (State::Drain, 100 * MSS));
}
