//! Fast recovery of FreeBSD 9, traced by hand from `tcp_do_segment`, `tcp_sack_partialack`,
//! `tcp_output` and `tcp_timer_rexmt`. Segments of 1000 bytes, an initial window of ten.

use super::peer::full;
use super::*;
use crate::{CaState, CwndValidation, IcmpError, LossDetector, PathRules};

fn freebsd(sack: bool) -> Config {
    Config {
        initial_window: InitialWindow::Segments(10),
        sack,
        prr: Prr::Off,
        loss_detector: LossDetector::FreeBsd9,
        ..config()
    }
}

/// Ten segments are in flight and more waits.
fn bulk(sack: bool) -> Script {
    let mut script = Script::open(freebsd(sack));
    script.write(60_000);
    assert_eq!(script.data(), full(1, 10));
    script.wait(100);
    script
}

/// Each duplicate ACK of `ack` reports a segment more of `from..to`: what it makes the endpoint
/// send, and the window.
fn reports(script: &mut Script, ack: u64, from: u64, to: u64) -> Vec<(Vec<(u64, u64)>, u64)> {
    let mut report = |n| {
        script.sack(ack, &[(from, from + n * 1000)]);
        (script.data(), script.endpoint.sender().cwnd())
    };
    (1..=(to - from) / 1000).map(&mut report).collect()
}

#[test]
fn the_window_grows_by_a_segment_for_each_duplicate_while_awnd_is_below_the_threshold() {
    let mut script = bulk(true);
    // snd_limited: one new segment for each of the first two; the window stays. The third sets
    // ssthresh to 10 / 2 and the window to one segment, which is the retransmission.
    assert_eq!(
        reports(&mut script, 1, 1001, 4001),
        [(full(10_001, 1), 10_000), (full(11_001, 1), 10_000), (full(1, 1), 1000),]
    );
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
    // awnd = snd_nxt - snd_fack + sack_bytes_rexmit: 12 - 5 + 1 = 8, 7, 6, 5 are not below 5. Then
    // 4: two segments, of which the retransmission has one. The segments sent keep awnd at 4.
    let quiet = |n: usize| vec![(vec![], 1000); n];
    script.sack(1, &[(1001, 5001)]);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), quiet(1)[0]);
    for right in [6001, 7001, 8001] {
        script.sack(1, &[(1001, right)]);
        assert_eq!((script.data(), script.endpoint.sender().cwnd()), quiet(1)[0], "{right}");
    }
    for (right, new, cwnd) in
        [(9001, 12_001, 2000), (10_001, 13_001, 3000), (11_001, 14_001, 4000), (12_001, 15_001, 5000)]
    {
        script.sack(1, &[(1001, right)]);
        assert_eq!((script.data(), script.endpoint.sender().cwnd()), (full(new, 1), cwnd));
    }
    // At the threshold it stops: cwin = 5 - (16 - 12) - 1.
    script.sack(1, &[(1001, 13_001)]);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), (vec![], 5000));
    // cc_post_recovery: three are outstanding, fewer than the threshold: 3 + 1 segments. NewReno
    // does not grow by that ACK.
    script.ack(13_001);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Open, 4000));
}

#[test]
fn duplicate_acks_are_counted_whatever_they_report() {
    let mut script = bulk(true);
    // One report of seven segments proves a loss to RFC 6675, and is one duplicate ACK here.
    script.sack(1, &[(3001, 10_001)]);
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (full(10_001, 1), CaState::Disorder));
    // One that reports nothing counts as well.
    script.ack(1);
    assert_eq!(script.data(), full(11_001, 1));
    // One with another window does not, and the count begins again.
    script.ack_window(1, 60_000);
    for new in [12_001, 13_001] {
        script.ack(1);
        assert_eq!(script.data(), full(new, 1));
    }
    script.ack(1);
    assert_eq!((script.data(), script.endpoint.sender().stats().fast_recoveries), (full(1, 1), 1));
}

#[test]
fn without_a_report_nothing_goes_out_at_the_start() {
    // tcp_sack_output finds no hole, and one segment of window has no room for new data. The timer
    // starts anew.
    let mut script = bulk(true);
    for sent in [full(10_001, 1), full(11_001, 1), vec![], vec![]] {
        script.ack(1);
        assert_eq!(script.data(), sent);
    }
    script.wait(RTO - 1);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!((script.data(), script.endpoint.sender().stats().timeouts), (full(1, 1), 1));
}

#[test]
fn a_partial_ack_makes_room_for_one_segment_or_two() {
    let mut script = bulk(true);
    // 0, 3 and 6 are missing; all reports at once, then two more duplicates.
    for ranges in [&[(1001, 3001)][..], &[(4001, 6001), (1001, 3001)], &[(7001, 10_001), (4001, 6001), (1001, 3001)]] {
        script.sack(1, ranges);
    }
    assert_eq!(script.data(), [full(10_001, 2), full(1, 1)].concat());
    // Three segments are acknowledged, none is sent again any more, and none is new: 0 + 0 + 2.
    // tcp_sack_output: both holes.
    script.sack(3001, &[(7001, 10_001), (4001, 6001)]);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), ([full(3001, 1), full(6001, 1)].concat(), 2000));
    // The second is acknowledged, the third is on its way, again three segments: 1 + 0 + 2. One has
    // room, and new data takes it: 3 - 0 - 1 is two.
    script.sack(6001, &[(7001, 10_001)]);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), (full(12_001, 2), 3000));
}

#[test]
fn a_retransmission_is_not_repeated_but_by_timeout() {
    let mut script = bulk(true);
    reports(&mut script, 1, 1001, 10_001);
    script.data();
    let ends: Vec<u64> = (11..40).map(|n| n * 1000 + 1).collect();
    for end in ends {
        if end <= script.endpoint.sender().sequence().nxt() {
            script.sack(1, &[(1001, end)]);
        }
    }
    assert!(script.data().iter().all(|&(from, _)| from > 10_000));
    assert_eq!(script.endpoint.sender().stats().retransmitted_packets, 1);
    script.wait(RTO);
    assert_eq!(script.data(), full(1, 1));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Loss);
}

#[test]
fn holes_above_what_was_sent_at_the_start_wait_for_another_episode() {
    let mut script = bulk(true);
    let all = reports(&mut script, 1, 1001, 12_001);
    let sent: usize = all.iter().map(|(sent, _)| sent.len()).sum();
    // Limited transmit and the window: up to 16,001. The recovery point is 12,001.
    assert_eq!((sent, script.endpoint.sender().sequence().nxt()), (3 + 4, 16_001));
    script.sack(1, &[(1001, 12_001), (13_001, 14_001)]);
    script.sack(1, &[(1001, 12_001), (13_001, 16_001)]);
    assert!(script.data().iter().all(|&(from, _)| from >= 16_001), "12,001 is a hole above it");
    script.sack(12_001, &[(13_001, 16_001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Disorder);
    assert_eq!(script.endpoint.sender().stats().retransmitted_packets, 1);
}

#[test]
fn a_timeout_forgets_reports_and_sends_again_in_order() {
    let mut script = bulk(true);
    script.sack(1, &[(1001, 2001), (4001, 5001)]);
    assert_eq!(script.data(), full(10_001, 1));
    script.wait(RTO);
    assert_eq!(script.data(), full(1, 1));
    // CC_RTO: max(2, 10 / 2).
    let window = script.endpoint.sender().congestion_control().window();
    assert_eq!((window.cwnd, window.ssthresh), (1000, 5000));
    // Only what is reported from now on is skipped (tcp_sack_adjust), and an ACK adds one segment
    // (abc_l_var after a timeout): two.
    script.wait(100);
    script.sack(1001, &[(4001, 5001)]);
    assert_eq!(script.data(), full(1001, 2));
    script.sack(3001, &[(4001, 5001)]);
    // 3001, then past the report 5001; the skipped segment takes room (off = snd_nxt - snd_una).
    assert_eq!(script.data(), [full(3001, 1), full(5001, 1)].concat());
}

#[test]
fn a_second_timeout_sets_the_threshold_again() {
    let mut script = bulk(true);
    script.wait(RTO);
    script.wait(2 * RTO);
    assert_eq!(script.data(), [full(1, 1), full(1, 1)].concat());
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 2000);
}

#[test]
fn an_ack_within_half_a_round_trip_takes_a_timeout_back() {
    // The round trip is 100 ms: t_badrxtwin is 50 ms from the timeout on.
    for (wait, undone) in [(49, true), (50, false)] {
        let mut script = bulk(true);
        script.wait(RTO - 100);
        assert_eq!(script.data(), full(1, 1));
        script.wait(wait);
        script.ack(2001);
        assert_eq!(script.endpoint.sender().stats().undos, u64::from(undone), "{wait}");
        let window = script.endpoint.sender().congestion_control().window();
        assert_eq!(window.ssthresh, if undone { u64::MAX } else { 5000 });
        let next = script.data()[0];
        assert_eq!(next, if undone { (10_001, 11_001) } else { (2001, 3001) });
    }
}

#[test]
fn without_sack_the_window_is_inflated() {
    let mut script = bulk(false);
    // 0 and 2 are missing. ssthresh + (t_dupacks - snd_limited) segments: 5 + 3 - 2.
    for sent in [full(10_001, 1), full(11_001, 1), full(1, 1)] {
        script.ack(1);
        assert_eq!(script.data(), sent);
    }
    assert_eq!(script.endpoint.sender().cwnd(), 6000);
    // Twelve are outstanding: the seventh more makes room for a thirteenth.
    for n in 1..=6 {
        script.ack(1);
        assert_eq!((script.data(), script.endpoint.sender().cwnd()), (vec![], 6000 + n * 1000));
    }
    script.ack(1);
    assert_eq!(script.data(), full(12_001, 1));
    // tcp_newreno_partial_ack: the next segment, and 13 - 2 + 1.
    script.ack(2001);
    assert_eq!((script.data()[0], script.endpoint.sender().cwnd()), ((2001, 3001), 12_000));
    // The end: outstanding is nothing but what was sent since.
    script.ack(13_001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
}

#[test]
fn three_duplicates_after_a_timeout_begin_fast_recovery() {
    // With SACK tcp_do_segment asks only whether fast recovery is on.
    let mut script = bulk(true);
    script.wait(RTO);
    assert_eq!(script.data(), full(1, 1));
    script.wait(100);
    script.ack(1001);
    assert_eq!(script.data(), full(1001, 2));
    for right in [3001, 4001, 5001] {
        script.sack(1001, &[(2001, right)]);
    }
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
    let sent = script.data();
    assert!(sent.contains(&(1001, 2001)), "{sent:?}");
}

#[test]
fn a_window_grows_as_long_as_the_peers_is_no_smaller() {
    // CCF_CWND_LIMITED is snd_cwnd <= snd_wnd, however little is in flight.
    let config = Config { cwnd_validation: CwndValidation::Peer, ..freebsd(true) };
    let mut script = Script::open(config);
    let mut windows = vec![];
    for n in 1..=4 {
        script.write(1000);
        script.ack_window(1 + n * 1000, 12_000);
        windows.push(script.endpoint.sender().cwnd());
    }
    assert_eq!(windows, [11_000, 12_000, 13_000, 13_000]);
}

#[test]
fn a_controller_may_grow_in_recovery() {
    // CDG with a threshold that is the whole window: tcp_sack_partialack, and its own segment.
    let any = super::arbitrary::Any::named("cdg");
    let mut script = Script::controlled(freebsd(true), any.build()).connected();
    script.write(60_000);
    assert_eq!(script.data(), full(1, 10));
    script.wait(100);
    for ranges in [&[(1001, 3001)][..], &[(4001, 6001), (1001, 3001)], &[(4001, 10_001), (1001, 3001)]] {
        script.sack(1, ranges);
    }
    script.data();
    let before = script.endpoint.sender.loss.board.resent();
    assert_eq!(before, 1000);
    script.sack(3001, &[(4001, 10_001)]);
    // 0 + 0 + 2 segments, and one.
    assert_eq!((script.data().len(), script.endpoint.sender().cwnd()), (3, 3000));
}

#[test]
fn small_segments_are_sent_again_too_after_packet_too_big_by_the_rule_of_another_stack() {
    // tcp_mtudisc: snd_nxt = snd_una.
    let mut script = Script::open(Config { path: PathRules::linux(), ..freebsd(false) });
    script.write(9500);
    assert_eq!(script.data().last(), Some(&(9001, 9501)));
    let sequence = script.endpoint.sender.sequence.lower(script.endpoint.sender.sequence.una());
    let error = IcmpError { v6: false, kind: 3, code: 4, mtu: 700, sequence, length: 0 };
    script.endpoint.icmp(script.now, &error);
    let board = &script.endpoint.sender.loss.board;
    assert_eq!((board.segments(), board.lost_segments()), (10, 10));
    script.pump();
    assert!(script.endpoint.sender().pipe() <= script.endpoint.sender().cwnd());
}

/// Twelve segments are sent, of which the first is missing, and sent again.
fn recovering() -> Script {
    let mut script = bulk(true);
    reports(&mut script, 1, 1001, 4001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
    script
}

#[test]
fn a_timeout_halves_the_window_as_it_stands() {
    // CC_RTO: max(2, min(snd_wnd, snd_cwnd) / 2) segments. With SACK one segment at the start of fast
    // recovery; without, 5 + 3 - 2 and 6; the peer's window.
    let ssthresh = |mut script: Script| {
        script.wait(RTO);
        assert_eq!(script.endpoint.sender().loss().state(), CaState::Loss);
        let window = script.endpoint.sender().congestion_control().window();
        assert_eq!(window.cwnd, 1000);
        window.ssthresh
    };
    assert_eq!(ssthresh(recovering()), 2000);
    let mut inflated = bulk(false);
    for _ in 0..9 {
        inflated.ack(1);
    }
    assert_eq!(inflated.endpoint.sender().cwnd(), 12_000);
    assert_eq!(ssthresh(inflated), 6000);
    let mut narrow = bulk(true);
    narrow.ack_window(1, 6000);
    assert_eq!(ssthresh(narrow), 3000);
}

#[test]
fn a_timeout_in_fast_recovery_is_taken_back_into_it() {
    let mut script = recovering();
    script.wait(RTO);
    assert_eq!(script.data().last(), Some(&(1, 1001)));
    script.wait(49);
    // CC_RTO_ERR: fast recovery up to 12,001 with a window of one segment; the reports are forgotten.
    script.ack(4001);
    let sender = script.endpoint.sender();
    assert_eq!((sender.stats().undos, sender.loss().state(), sender.cwnd()), (1, CaState::Recovery, 1000));
    assert_eq!(sender.congestion_control().window().ssthresh, 5000);
    assert_eq!(script.data(), []);
    // What is reported from now on leaves holes: 1000 - 0 has room for one. It does not start the
    // timer anew, which runs for twice the timeout since the ACK.
    script.wait(300);
    script.sack(4001, &[(5001, 6001)]);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), (full(4001, 1), 1000));
    let mut late = script;
    late.wait(2 * RTO - 300 - 1);
    assert_eq!(late.data(), []);
    late.wait(1);
    assert_eq!(late.data(), full(4001, 1));
}

#[test]
fn holes_count_that_come_with_another_window() {
    let mut script = recovering();
    script.wait(RTO + 49);
    script.ack(4001);
    script.data();
    let mut report = script.segment(Flags::ACK, script.seq, 0, 4001);
    report.window = 65_000;
    report.sack = SackBlocks::default();
    report.sack.push(script.endpoint.sender.sequence.lower(5001), script.endpoint.sender.sequence.lower(6001));
    script.input(report);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), (full(4001, 1), 1000));
}

#[test]
fn recovery_that_was_taken_back_into_may_be_over() {
    // EXIT_RECOVERY without cc_post_recovery: the window is what it was.
    let mut script = recovering();
    script.wait(RTO + 49);
    script.ack(12_001);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Open, 1000));
    assert_eq!(script.data().last(), Some(&(12_001, 13_001)));
    // snd_recover_prev: three duplicates of what was sent since.
    script.ack(13_001);
    assert_eq!(script.endpoint.sender().cwnd(), 2000);
}

#[test]
fn one_segment_goes_after_recovery_with_nothing_outstanding() {
    // newreno_post_recovery: snd_max - th_ack + maxseg.
    let mut script = recovering();
    script.data();
    script.ack(12_001);
    assert_eq!((script.data(), script.endpoint.sender().cwnd()), (full(12_001, 1), 1000));
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
}

#[test]
fn duplicates_after_a_timeout_let_more_be_sent_again() {
    let mut script = bulk(false);
    script.wait(RTO + 100);
    script.ack(1001);
    assert_eq!(script.data(), [full(1, 1), full(1001, 2)].concat());
    // snd_cwnd is snd_nxt - snd_una and t_dupacks segments: snd_limited counts new data. The third is
    // below snd_recover and counts anew.
    for again in [full(3001, 1), full(4001, 2), vec![], full(6001, 1)] {
        script.ack(1001);
        assert_eq!(script.data(), again);
    }
}

#[test]
fn a_duplicate_ack_is_no_sample() {
    let mut script = bulk(true);
    script.wait(300);
    script.sack(1, &[(1001, 2001)]);
    assert_eq!(script.endpoint.sender().rtt().latest(), Some(Span::from_millis(100)));
}

#[test]
fn the_ack_that_ends_the_reduction_for_a_mark_does_not_grow_the_window() {
    // cc_ack_received comes before EXIT_RECOVERY.
    let mut script = Script::open(Config { ecn: EcnFeedback::Classic, ..freebsd(true) });
    script.write(60_000);
    script.wait(100);
    let echo = script.segment(Flags::ACK | Flags::ECE, script.seq, 0, 1001);
    script.input(echo);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Cwr, 5000));
    script.ack(script.endpoint.sender().sequence().nxt());
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()), (CaState::Open, 5000));
}
