//! The rules of the detectors, with numbers from the kernel's code and RFC 8985.

use super::*;
use crate::CaState;
use crate::loss::detector::view::ReorderingExtent;
use crate::{AdaptiveRules, NcrVariant, RrRules, Stamp};

const MSS: u32 = 1000;
const MS: fn(u64) -> Span = Span::from_millis;

fn at(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn view(now: u64) -> View {
    View {
        now: at(now),
        state: CaState::Disorder,
        sack: true,
        mss: MSS,
        outstanding: 20,
        sacked: 0,
        reach: 0,
        srtt: Some(MS(100)),
        advanced: false,
        duplicate: true,
        newly_sacked: true,
        begins: false,
        limit: u64::MAX,
        first_hole: false,
        can_send: true,
        ece: false,
        to_timeout: MS(300),
        rto: MS(300),
        cwnd: 20,
    }
}

/// `n` segments sent a millisecond apart from time 0 on, those in `sacked` SACKed at `now`.
fn board(n: u64, sacked: std::ops::Range<u64>, now: u64) -> (Scoreboard, Progress) {
    let mut board = Scoreboard::default();
    for i in 0..n {
        board.push(Stamp::first(at(i)), 1 + i * u64::from(MSS), MSS, false);
    }
    let mut progress = Progress { min_rtt: MS(40), ..Progress::new(at(now)) };
    let edge = |i: u64| 1 + i * u64::from(MSS);
    board.sack(&[(edge(sacked.start), edge(sacked.end))], &mut progress);
    (board, progress)
}

fn rack() -> Rack {
    let mut rack = Rack::new();
    rack.measured(at(0), MS(40));
    rack
}

#[test]
fn rack_waits_a_quarter_of_the_shortest_round_trip() {
    // tcp_rack_reo_wnd: fewer duplicates than the threshold; min_rtt 40 ms, so 10 ms beyond the
    // round trip of 50 ms.
    let mut rack = rack();
    let (mut board, progress) = board(10, 1..2, 51);
    rack.delivered(&progress);
    let marked = rack.mark(&mut board, &View { sacked: 1, ..view(51) });
    // Segment 0 is 51 ms old: 9 ms to go, and the slack of 2 ms.
    assert_eq!((board.lost_segments(), marked.again), (0, Some(MS(11))));
    let marked = rack.judge(&mut board, &View { sacked: 1, ..view(60) });
    assert_eq!((board.lost_segments(), marked.again), (1, None));
}

#[test]
fn rack_does_not_wait_with_enough_duplicates_or_in_recovery() {
    for (sacked, state) in [(3, CaState::Disorder), (1, CaState::Recovery), (1, CaState::Loss)] {
        let mut rack = rack();
        let (mut board, progress) = board(10, 1..2, 51);
        rack.delivered(&progress);
        rack.mark(&mut board, &View { sacked, state, ..view(51) });
        assert_eq!(board.lost_segments(), 1, "{sacked} {state:?}");
    }
}

#[test]
fn rack_waits_always_once_reordering_was_seen() {
    let mut rack = rack();
    rack.reordering.note(1, 2 * u64::from(MSS) + 1, MSS);
    let (mut board, progress) = board(10, 1..5, 54);
    rack.delivered(&progress);
    // Segment 4 took 50 ms; segment 0 is 54 ms old, of 60.
    let marked = rack.mark(&mut board, &View { sacked: 4, ..view(54) });
    assert_eq!((board.lost_segments(), marked.again), (0, Some(MS(8))));
}

#[test]
fn rack_looks_again_only_when_something_was_delivered() {
    let mut rack = rack();
    let (mut board, progress) = board(10, 1..4, 53);
    rack.delivered(&progress);
    // Segment 0 may wait for 10 ms more.
    rack.mark(&mut board, &View { sacked: 1, ..view(53) });
    rack.mark(&mut board, &View { sacked: 3, ..view(54) });
    assert_eq!(board.lost_segments(), 0);
    // An undo has everything judged anew (tcp_undo_cwnd_reduction).
    rack.undone(false);
    rack.mark(&mut board, &View { sacked: 3, ..view(54) });
    assert_eq!(board.lost_segments(), 1);
}

#[test]
fn rack_does_not_find_a_loss_twice_that_was_undone() {
    let mut rack = rack();
    let (mut board, progress) = board(10, 1..4, 53);
    rack.delivered(&progress);
    rack.mark(&mut board, &View { sacked: 3, ..view(53) });
    assert_eq!(board.lost_segments(), 1);
    // It has left tsorted_sent_queue (tcp_rack_detect_loss).
    board.unmark_lost();
    rack.undone(false);
    rack.mark(&mut board, &View { sacked: 3, ..view(60) });
    assert_eq!(board.lost_segments(), 0);
}

#[test]
fn dsacks_widen_the_window_once_per_round_trip() {
    // tcp_rack_update_reo_wnd. The window is seen from outside as the wait for segment 0, sent at
    // 0.
    let wait = |rack: &mut Rack| {
        let (mut board, progress) = board(3, 1..2, 41);
        rack.delivered(&progress);
        rack.mark(&mut board, &View { sacked: 1, srtt: Some(MS(35)), ..view(41) }).again
    };
    let told = |rack: &mut Rack, now: u64, sent: u64| {
        let mut progress = Progress::new(at(now));
        progress.delivery.newest = Some((Stamp::first(at(sent)), 1));
        rack.duplicated();
        rack.delivered(&progress);
    };
    let mut rack = rack();
    told(&mut rack, 10, 5);
    assert_eq!(wait(&mut rack), Some(MS(11)), "no reordering was seen: round trip 40 + 10 - 41 + 2");
    rack.reordering.note(1, 2, MSS);
    told(&mut rack, 20, 15);
    assert_eq!(wait(&mut rack), Some(MS(21)), "two quarters");
    told(&mut rack, 30, 19);
    assert_eq!(wait(&mut rack), Some(MS(21)), "what was delivered was sent before the window grew");
    told(&mut rack, 40, 35);
    assert_eq!(wait(&mut rack), Some(MS(31)), "three quarters");
    told(&mut rack, 50, 45);
    assert_eq!(wait(&mut rack), Some(MS(36)), "four quarters are more than the smoothed round trip");
    // Sixteen recoveries later the window is a quarter again.
    (0..15).for_each(|_| rack.finished());
    assert_eq!(wait(&mut rack), Some(MS(36)));
    rack.finished();
    assert_eq!(wait(&mut rack), Some(MS(11)));
}

#[test]
fn an_answer_that_comes_too_soon_is_not_of_the_retransmission() {
    // RFC 8985 section 6.2 step 2; tcp_rack_advance.
    for (now, lost) in [(130, 0), (160, 1)] {
        let mut rack = rack();
        let mut board = Scoreboard::default();
        for i in 0..3u64 {
            board.push(Stamp::first(at(i)), 1 + i * 1000, MSS, false);
        }
        board.lose_front();
        board.resend(Stamp::first(at(100)), 1, 3001);
        let mut progress = Progress { min_rtt: MS(40), ..Progress::new(at(now)) };
        board.acknowledge(1001, &mut progress);
        rack.delivered(&progress);
        rack.mark(&mut board, &View { state: CaState::Recovery, ..view(now) });
        // Segments 1 and 2 were sent before the retransmission, a round trip ago if it was that one
        // that was answered.
        assert_eq!(board.lost_segments(), 2 * lost, "at {now} ms");
    }
}

#[test]
fn an_old_echo_is_not_of_the_retransmission() {
    // tcp_skb_spurious_retrans.
    let mut board = Scoreboard::default();
    board.push(Stamp::first(at(0)), 1, MSS, false);
    board.lose_front();
    board.resend(Stamp::first(at(100)), 1, 1001);
    let mut progress = Progress { echo: Some(0), ..Progress::new(at(200)) };
    board.acknowledge(1001, &mut progress);
    assert_eq!((progress.delivery.certain, progress.delivery.newest), (None, Some((Stamp::first(at(100)), 1001))));
}

#[test]
fn the_shortest_round_trip_is_that_of_five_minutes() {
    // tcp_min_rtt_wlen, lib/win_minmax.c.
    let mut rack = Rack::new();
    for (second, millis, expected) in
        [(0, 40, 40), (100, 50, 40), (200, 60, 40), (299, 55, 40), (301, 70, 50), (450, 70, 55)]
    {
        rack.measured(Time::from_secs(second), MS(millis));
        assert_eq!(rack.min_rtt(), Some(MS(expected)), "after {second} s");
    }
}

#[test]
fn a_displacement_in_bytes_is_rounded_up_to_segments() {
    // tcp_check_sack_reordering: (metric + mss - 1) / mss, if metric > reordering * mss; at most
    // 300.
    let mut reordering = ReorderingExtent::new(300);
    for (distance, threshold) in [(3000, 3), (3001, 4), (9500, 10), (8000, 10), (1_000_000, 300)] {
        reordering.note(1, 1 + distance, MSS);
        assert_eq!(reordering.threshold, threshold, "{distance} bytes");
    }
    assert_eq!(reordering.seen, 5);
    reordering.note(5, 5, MSS);
    assert_eq!(reordering.seen, 5, "nothing was overtaken");
}

#[test]
fn a_timeout_after_many_duplicates_takes_the_threshold_back() {
    // tcp_enter_loss.
    for (state, sacked, threshold) in
        [(CaState::Disorder, 3, 3), (CaState::Disorder, 2, 50), (CaState::Recovery, 9, 50), (CaState::Open, 0, 50)]
    {
        let mut reordering = ReorderingExtent::new(300);
        reordering.set(50);
        reordering.timed_out(&View { state, sacked, ..view(0) });
        assert_eq!(reordering.threshold, threshold, "{state:?} {sacked}");
    }
}

#[test]
fn before_3_12_much_reordering_changes_nothing() {
    // tcp_enter_loss sets the threshold to three, and tcp_may_raise_cwnd asks for an ACK.
    for (high_reordering, kept) in [(true, 50), (false, 3)] {
        let mut adaptive = Adaptive::new(AdaptiveRules { high_reordering, ..AdaptiveRules::default() });
        assert!(!adaptive.grows_on_sack());
        adaptive.reordered(50);
        assert_eq!(adaptive.grows_on_sack(), high_reordering);
        adaptive.timed_out(&View { state: CaState::Disorder, sacked: 2, ..view(0) });
        assert_eq!(adaptive.reordering.threshold, kept);
        adaptive.timed_out(&View { state: CaState::Disorder, sacked: 3, ..view(0) });
        assert_eq!(adaptive.reordering.threshold, 3);
    }
}

#[test]
fn fack_counts_holes_until_reordering_is_seen() {
    // tcp_dupack_heuristics: fackets_out, then sacked_out + 1, against reordering.
    let mut adaptive = Adaptive::new(AdaptiveRules::default());
    let far = View { sacked: 1, reach: 4, ..view(0) };
    assert_eq!(adaptive.starts_recovery(&View { reach: 3, ..far }), StartRecovery::No);
    assert_eq!(adaptive.starts_recovery(&far), StartRecovery::Now);
    adaptive.reordered(5);
    assert_eq!(adaptive.starts_recovery(&View { sacked: 4, reach: 19, ..view(0) }), StartRecovery::No);
    assert_eq!(adaptive.starts_recovery(&View { sacked: 5, reach: 19, ..view(0) }), StartRecovery::Now);
    // Without SACK the duplicates are all there is.
    let mut plain = Adaptive::new(AdaptiveRules::default());
    assert_eq!(plain.starts_recovery(&View { sack: false, sacked: 2, reach: 3, ..view(0) }), StartRecovery::No);
    assert_eq!(plain.starts_recovery(&View { sack: false, sacked: 3, reach: 4, ..view(0) }), StartRecovery::Now);
    plain.reordered(2);
    assert_eq!(plain.reordering.threshold, 3, "less than the threshold teaches nothing");
}

#[test]
fn fack_loses_everything_but_the_threshold() {
    // tcp_update_scoreboard: fackets_out - reordering segments from the first, at least one.
    let mut adaptive = Adaptive::new(AdaptiveRules::default());
    let (mut board, _) = board(20, 6..8, 60);
    adaptive.mark(&mut board, &View { sacked: 2, reach: 8, ..view(60) });
    assert_eq!(board.lost_segments(), 5);
}

#[test]
fn without_fack_what_has_the_threshold_of_segments_above_it_is_lost() {
    let rules = AdaptiveRules { fack: false, ..AdaptiveRules::default() };
    let mut adaptive = Adaptive::new(rules);
    let (mut board, mut progress) = board(20, 4..5, 60);
    board.sack(&[(7001, 10_001)], &mut progress);
    // Four are SACKed; three of them, 7 to 9, are above 5 and 6, and above 0 to 3 all four.
    adaptive.mark(&mut board, &View { sacked: 4, reach: 10, ..view(60) });
    assert_eq!(board.lost_segments(), 6);
}

#[test]
fn in_2_6_32_the_first_hole_is_lost_with_any_sign() {
    // tcp_update_scoreboard without FACK: sacked_out - reordering, but 0 at least, and 1 when
    // recovery begins; tcp_mark_head_lost goes on while no more are SACKed, up to high_seq.
    let rules = AdaptiveRules { fack: false, early_retransmit: false, ..AdaptiveRules::default() };
    for (begins, limit, lost) in [(false, u64::MAX, 4), (true, u64::MAX, 6), (true, 5001, 4), (true, 6001, 5)] {
        let mut adaptive = Adaptive::new(rules);
        let (mut board, mut progress) = board(20, 4..5, 60);
        board.sack(&[(7001, 8001)], &mut progress);
        let view = View { sacked: 2, reach: 8, begins, limit, first_hole: true, ..view(60) };
        adaptive.mark(&mut board, &view);
        assert_eq!(board.lost_segments(), lost, "{begins} {limit}");
    }
}

#[test]
fn a_timeout_that_was_needed_forgets_reordering() {
    let mut detector = Detector::new(LossDetector::Linux(AdaptiveRules::default()));
    detector.more_duplicates(12);
    assert_eq!(detector.threshold(), 12);
    detector.forget_reordering();
    assert_eq!(detector.threshold(), 3);
}

#[test]
fn a_retransmission_is_lost_when_data_sent_after_it_is_sacked() {
    // tcp_mark_lost_retrans.
    let mut adaptive = Adaptive::new(AdaptiveRules::default());
    let (mut board, mut progress) = board(10, 4..5, 60);
    let recovery = View { state: CaState::Recovery, reach: 5, sacked: 1, ..view(60) };
    adaptive.mark(&mut board, &recovery);
    assert_eq!(board.lost_segments(), 2);
    board.resend(Stamp::first(at(60)), 1, 10_001);
    board.sack(&[(9001, 10_001)], &mut progress);
    let marked = adaptive.mark(&mut board, &View { sacked: 2, reach: 10, ..recovery });
    assert!(!marked.retransmission, "SND.NXT of then is not passed");
    board.push(Stamp::first(at(61)), 10_001, MSS, false);
    board.sack(&[(10_001, 11_001)], &mut progress);
    let marked = adaptive.mark(&mut board, &View { sacked: 3, reach: 11, ..recovery });
    assert!(marked.retransmission);
    assert_eq!(board.next_lost().map(|sent| sent.seq), Some(1));
}

#[test]
fn early_retransmit_waits_a_quarter_of_a_round_trip() {
    // tcp_pause_early_retransmit: max(RTT / 4, 2 ms), unless the timer expires before or there is
    // an ECN echo.
    let adaptive = Adaptive::new(AdaptiveRules::default());
    let few = View { outstanding: 3, sacked: 1, reach: 2, can_send: false, ..view(0) };
    assert_eq!(adaptive.starts_recovery(&few), StartRecovery::After(MS(25)));
    assert_eq!(adaptive.starts_recovery(&View { srtt: Some(MS(4)), ..few }), StartRecovery::After(MS(2)));
    assert_eq!(adaptive.starts_recovery(&View { to_timeout: MS(25), ..few }), StartRecovery::Now);
    assert_eq!(adaptive.starts_recovery(&View { ece: true, ..few }), StartRecovery::Now);
    for other in [View { can_send: true, ..few }, View { outstanding: 4, ..few }, View { sacked: 0, reach: 0, ..few }] {
        assert_eq!(adaptive.starts_recovery(&other), StartRecovery::No);
    }
    let off = Adaptive::new(AdaptiveRules { early_retransmit: false, ..AdaptiveRules::default() });
    assert_eq!(off.starts_recovery(&few), StartRecovery::No);
}

#[test]
fn a_sender_that_can_send_nothing_does_not_wait_for_more_duplicates() {
    // tcp_time_to_recover, trick 4: max(packets_out / 2, 3) duplicates of at most `reordering`
    // segments.
    let mut adaptive = Adaptive::new(AdaptiveRules::default());
    adaptive.reordered(20);
    let stuck = View { outstanding: 10, can_send: false, ..view(0) };
    assert_eq!(adaptive.starts_recovery(&View { sacked: 4, ..stuck }), StartRecovery::No);
    assert_eq!(adaptive.starts_recovery(&View { sacked: 5, ..stuck }), StartRecovery::Now);
    assert_eq!(adaptive.starts_recovery(&View { sacked: 5, can_send: true, ..stuck }), StartRecovery::No);
}

#[test]
fn ncr_waits_for_a_share_of_what_is_outstanding() {
    // RFC 4653 section 3.1: LT_F is 2/3 or 1/2.
    for (variant, outstanding, threshold) in [
        (NcrVariant::Careful, 20, 13),
        (NcrVariant::Aggressive, 20, 10),
        (NcrVariant::Careful, 4, 3),
        (NcrVariant::Aggressive, 30, 15),
    ] {
        let ncr = Ncr::new(variant);
        let view = View { outstanding, ..view(0) };
        assert_eq!(
            ncr.starts_recovery(&View { sacked: threshold - 1, ..view }),
            StartRecovery::No,
            "{variant:?} {outstanding}"
        );
        assert_eq!(
            ncr.starts_recovery(&View { sacked: threshold, ..view }),
            StartRecovery::Now,
            "{variant:?} {outstanding}"
        );
    }
}

#[test]
fn ncr_remembers_what_was_outstanding_when_the_wait_began() {
    // RFC 4653 section 3.1 step I.1 and section 3.2: FlightSizePrev; kept while other segments are
    // missing.
    let mut ncr = Ncr::new(NcrVariant::Careful);
    assert_eq!(ncr.waits(&View { outstanding: 20, sacked: 1, ..view(0) }), None);
    assert_eq!(ncr.waits(&View { outstanding: 22, sacked: 4, ..view(0) }), None);
    let late = View { advanced: true, ..view(0) };
    assert_eq!(ncr.waits(&View { outstanding: 19, sacked: 2, ..late }), Some(20));
    assert_eq!(ncr.waits(&View { outstanding: 15, sacked: 0, ..late }), Some(20));
    assert_eq!(ncr.waits(&View { outstanding: 15, sacked: 0, ..late }), None, "the wait is over");
}

#[test]
fn ncr_sends_a_segment_for_every_second_report_or_for_each() {
    // RFC 4653 section 3.3 steps E.3 to E.5.
    assert_eq!(Ncr::new(NcrVariant::Careful).limited_transmit(7), Some(4));
    assert_eq!(Ncr::new(NcrVariant::Aggressive).limited_transmit(7), None);
}

/// RR-TCP with a history of ten lengths, of 1 to 10.
fn rr() -> RrTcp {
    let mut rr = RrTcp::new(RrRules { history: 10, initial_ratio: 0.9, step: 0.01 });
    (1..=10).for_each(|length| rr.reordered(length));
    rr
}

#[test]
fn rr_tcp_takes_a_percentile_of_the_lengths() {
    // "90 % of reordering involves 8 or less packets, then 9": here nine of ten are of 9 or less.
    assert_eq!(rr().threshold(), 10);
    let mut short = RrTcp::new(RrRules::default());
    assert_eq!(short.threshold(), 3);
    short.reordered(1);
    assert_eq!(short.threshold(), 3, "never below the usual one");
    short.reordered(0);
    assert_eq!(short.events(), 1, "nothing came before");
}

#[test]
fn rr_tcp_forgets_old_lengths() {
    let mut rr = rr();
    (0..9).for_each(|_| rr.reordered(4));
    // 10 and nine times 4: nine of ten are of 4 or less.
    assert_eq!(rr.threshold(), 5);
    rr.reordered(100_000);
    (0..9).for_each(|_| rr.reordered(2000));
    assert_eq!(rr.threshold(), 1024, "the longest that is counted is 1023");
}

#[test]
fn rr_tcp_learns_from_duplicates_of_what_it_resent() {
    let mut rr = rr();
    rr.resent_acknowledged(1, 3001, 40);
    rr.duplicated(5001, 6001);
    assert_eq!(rr.events(), 10, "nothing of ours");
    rr.duplicated(1001, 2001);
    // 2 to 10 and 40, with a ratio of 0.91: all ten.
    assert_eq!((rr.events(), rr.threshold()), (11, 41));
    rr.duplicated(2001, 3001);
    assert_eq!(rr.events(), 11, "one false fast retransmit is one length");
}

#[test]
fn rr_tcp_lowers_the_percentile_after_a_timeout() {
    let mut rr = rr();
    // W = 20, RTO / R = 3: C_TO = 60 + 20 log2(10) - 10 = 116.4; C_FFR = 10; 0.9 - 0.1164 = 0.78,
    // eight of ten.
    rr.timed_out(&View { sacked: 5, ..view(0) });
    assert_eq!(rr.threshold(), 9);
    rr.timed_out(&View { sacked: 2, ..view(0) });
    rr.timed_out(&View { sacked: 5, state: CaState::Recovery, ..view(0) });
    assert_eq!(rr.threshold(), 9, "not the fault of the threshold");
}

#[test]
fn rr_tcp_lowers_the_percentile_when_it_has_to_idle() {
    let mut rr = RrTcp::new(RrRules { history: 10, initial_ratio: 1.0, step: 0.1 });
    (0..10).for_each(|i| rr.reordered(21 + i));
    assert_eq!(rr.threshold(), 31);
    let stuck = View { outstanding: 40, sacked: 20, can_send: false, ..view(0) };
    assert_eq!(rr.starts_recovery(&stuck), StartRecovery::No);
    // Half a round trip: C_LT = 20 / 2; C_FFR = 10; 1 - 0.1 = 0.9.
    assert_eq!(rr.starts_recovery(&View { now: at(50), advanced: true, sacked: 0, ..stuck }), StartRecovery::No);
    assert_eq!(rr.threshold(), 30);
}

#[test]
fn rr_tcp_does_not_wait_for_more_than_can_come() {
    let mut rr = RrTcp::new(RrRules::default());
    rr.reordered(100);
    assert_eq!(rr.threshold(), 101);
    let last = View { outstanding: 10, sacked: 9, ..view(0) };
    assert_eq!(rr.starts_recovery(&last), StartRecovery::No);
    assert_eq!(rr.starts_recovery(&View { can_send: false, ..last }), StartRecovery::Now);
    // Up to one congestion window of new data goes out beyond it.
    assert_eq!((rr.limited_transmit(7, 20), rr.limited_transmit(30, 20)), (7, 20));
}
