//! Edges of the law: what is equal, what comes twice, what is not there.

use super::*;

fn segments(cc: &Bbr) -> u64 {
    cc.window.cwnd / MSS
}

#[test]
fn what_takes_over_starts_from_the_window_it_is_given() {
    let mut cc = bbr();
    cc.take_over(Window { cwnd: 40 * MSS, ssthresh: 20 * MSS });
    assert_eq!((segments(&cc), cc.initial_cwnd), (40, 40 * MSS));
    // Four times the rate of ten segments.
    assert_eq!(cc.pacing_rate(&flight(0, 0)), Rate::from_bps(4 * 3_208_768));
}

/// A round trip of zero is none: the rate is that of a nominal millisecond until one is measured,
/// and that happens once.
#[test]
fn a_round_trip_of_zero_is_none() {
    let mut cc = Bbr::new(BbrConfig::default(), Random::for_component(1, 0, "cc"));
    cc.on_established(&Flight { srtt: Some(Span::ZERO), ..flight(0, 0) });
    let rate = |cc: &Bbr| cc.pacing_rate(&flight(0, 0));
    assert_eq!(rate(&cc), Rate::from_bps(320_876_800));
    cc.see_srtt(Some(Span::ZERO));
    assert_eq!(rate(&cc), Rate::from_bps(320_876_800));
    cc.see_srtt(Some(Span::from_millis(100)));
    assert_eq!(rate(&cc), Rate::from_bps(3_208_768));
    cc.see_srtt(Some(Span::from_millis(10)));
    assert_eq!(rate(&cc), Rate::from_bps(3_208_768));
}

/// `SetCwnd`: before the bandwidth is found the window grows while it is below what the model
/// allows, or while less than the initial window has been delivered.
#[test]
fn the_window_grows_up_to_what_the_model_allows() {
    for (below, delivered, grown) in [(1, 10, 1), (0, 10, 0), (0, 9, 1)] {
        let mut cc = bbr();
        cc.model.bw = 100.0 * MSS as f64 / 0.1;
        cc.delivered = delivered * MSS;
        let before = cc.max_inflight() - below;
        cc.window.cwnd = before;
        let ack = Ack { acked: MSS, delivered: MSS, ..Ack::default() };
        let rs = cc.sample(&flight(1000, 100), &ack);
        cc.set_cwnd(&rs);
        assert_eq!(cc.window.cwnd, before + grown * MSS, "{below} {delivered}");
    }
}

/// `AdvanceLatestDeliverySignals`: with a round trip the latest rate begins anew; within one it is
/// the largest.
#[test]
fn the_latest_signals_are_of_a_round_trip() {
    let mut cc = bbr();
    ack_of(&mut cc, 1000, 100, 100, rate(100, 100));
    assert_eq!(cc.signals.bw_latest, 1_448_000.0);
    ack_of(&mut cc, 1100, 100, 50, rate(150, 50));
    assert_eq!((cc.signals.bw_latest, cc.signals.inflight_latest), (724_000.0, 50 * MSS));
}

/// `AdaptLowerBoundsFromCongestion`: 0.7 of the bound, or what was delivered if that is more.
#[test]
fn lower_bounds_come_down_by_beta() {
    for (bw_latest, inflight_latest, bw, inflight) in [(0.0, 0, 700.0, 70), (800.0, 80 * MSS, 800.0, 80)] {
        let mut cc = bbr();
        (cc.model.bw_shortterm, cc.model.inflight_shortterm) = (1000.0, 100 * MSS);
        (cc.signals.bw_latest, cc.signals.inflight_latest) = (bw_latest, inflight_latest);
        cc.adapt_lower_bounds();
        assert_eq!((cc.model.bw_shortterm, cc.model.inflight_shortterm / MSS), (bw, inflight));
    }
}

/// `SaveCwnd`: during repair and in ProbeRTT the window is not the one to come back to, unless it
/// has grown beyond it.
#[test]
fn a_window_that_is_cut_is_not_remembered() {
    for (recovery, state, cwnd, saved) in [
        (Recovery::None, State::ProbeBwCruise, 50, 50),
        (Recovery::Fast, State::ProbeBwCruise, 50, 100),
        (Recovery::Timeout, State::ProbeBwCruise, 50, 100),
        (Recovery::None, State::ProbeRtt, 50, 100),
        (Recovery::Fast, State::ProbeBwCruise, 120, 120),
    ] {
        let mut cc = bbr();
        cc.window.cwnd = 100 * MSS;
        cc.save_cwnd();
        (cc.episode.recovery, cc.state, cc.window.cwnd) = (recovery, state, cwnd * MSS);
        cc.save_cwnd();
        cc.window.cwnd = MSS;
        cc.restore_cwnd();
        assert_eq!(segments(&cc), saved, "{recovery:?} {state:?} {cwnd}");
    }
}

/// An episode saves what it found, not what an earlier one did; within one the largest window
/// counts.
#[test]
fn an_undo_is_of_its_own_episode() {
    let mut cc = steady(State::ProbeBwCruise);
    cc.handle_loss_signal(&flight(2000, 100));
    cc.exit_fast_recovery();
    (cc.window.cwnd, cc.model.inflight_longterm) = (50 * MSS, 60 * MSS);
    cc.handle_loss_signal(&flight(3000, 50));
    // The window has grown on in recovery, and is cut.
    cc.window.cwnd = 80 * MSS;
    cc.handle_loss_signal(&flight(3100, 50));
    (cc.window.cwnd, cc.model.inflight_longterm) = (20 * MSS, 10 * MSS);
    cc.on_signal(&flight(3200, 20), Signal::Spurious);
    assert_eq!((segments(&cc), cc.model.inflight_longterm), (80, 60 * MSS));
}

/// `OnEnterRTO`: the first timeout saves, unless losses of the same moment have; one that repeats
/// saves only if nothing is there.
#[test]
fn the_first_timeout_saves() {
    for (lost_at, repeated, saved) in
        [(None, false, 50), (None, true, 50), (Some(3000), false, 50), (Some(3000), true, 50)]
    {
        let mut cc = steady(State::ProbeBwCruise);
        if let Some(millis) = lost_at {
            cc.window.cwnd = 70 * MSS;
            cc.handle_loss_signal(&flight(millis, 100));
            cc.exit_fast_recovery();
        }
        cc.window.cwnd = 50 * MSS;
        cc.model.inflight_longterm = 60 * MSS;
        cc.enter_timeout_recovery(Time::from_millis(3000), repeated);
        // The value saved at the loss is kept, 70; the window of then comes back with it.
        let expected = if lost_at.is_some() { 70 } else { saved };
        cc.window.cwnd = MSS;
        cc.on_signal(&flight(3200, 20), Signal::Spurious);
        assert_eq!(segments(&cc), expected, "{lost_at:?} {repeated}");
    }
    // The loss is of another moment: the window is that of the timeout.
    let mut cc = steady(State::ProbeBwCruise);
    cc.window.cwnd = 70 * MSS;
    cc.handle_loss_signal(&flight(2000, 100));
    cc.exit_fast_recovery();
    cc.window.cwnd = 50 * MSS;
    cc.enter_timeout_recovery(Time::from_millis(3000), false);
    cc.window.cwnd = MSS;
    cc.on_signal(&flight(3200, 20), Signal::Spurious);
    assert_eq!(segments(&cc), 50);
}

/// A timeout bounds the data in flight in the short term, where nothing bounds it and nothing is
/// probed.
#[test]
fn a_timeout_bounds_what_is_in_flight() {
    for (state, before, after) in [
        (State::ProbeBwCruise, UNBOUNDED, 200 * MSS),
        (State::ProbeBwCruise, 30 * MSS, 30 * MSS),
        (State::ProbeBwUp, UNBOUNDED, UNBOUNDED),
        (State::ProbeBwUp, 30 * MSS, 30 * MSS),
    ] {
        let mut cc = steady(state);
        cc.model.inflight_shortterm = before;
        cc.enter_timeout_recovery(Time::from_millis(3000), false);
        assert_eq!(cc.model.inflight_shortterm, after, "{state:?}");
    }
}

#[test]
fn a_timeout_leaves_a_threshold_of_two_segments() {
    let mut cc = bbr();
    cc.window.ssthresh = MSS;
    cc.on_signal(&flight(0, 10), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!(cc.window(), Window { cwnd: MSS, ssthresh: 2 * MSS });
}
