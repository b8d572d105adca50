//! Undoing, F-RTO, tail loss probes and RACK's timer, as Linux has them.

use ackclock_cc::{CongestionControl, Dctcp, DctcpConfig, Prague, PragueConfig};

use super::peer::full;
use super::*;
use crate::stack::profile::Profile;
use crate::{AdaptiveRules, CaState, LossDetector, NcrVariant, Pacing, PacingWhen};

/// Linux with RACK: segments of 1000 bytes, ten to begin with. A first segment has measured a round
/// trip of 100 ms, and the handshake one as well.
fn linux() -> Config {
    Config {
        mss: 1000,
        initial_window: InitialWindow::Segments(10),
        min_rto: MinRto::OfVariance(Span::from_millis(200)),
        loss_detector: LossDetector::Rack,
        undo: true,
        frto: true,
        tlp: true,
        ..config()
    }
}

/// Ten segments are in flight and no more data waits.
fn ten(config: Config) -> Script {
    let mut script = Script::open(config);
    script.write(10_000);
    assert_eq!(script.data(), full(1, 10));
    script
}

/// With timestamps, in segments that still carry 1000 bytes.
fn stamped(config: Config) -> Config {
    Config { mss: 1012, timestamps: true, ..config }
}

#[test]
fn a_dsack_for_every_retransmission_takes_the_reduction_back() {
    let mut script = ten(linux());
    script.wait(100);
    script.sack(1, &[(1001, 4001)]);
    assert_eq!(script.data(), full(1, 1));
    // tcp_cwnd_reduction: 10 - 3 - 1 are in flight, and ceil(5 * 3 / 10) may go out.
    assert_eq!(
        (script.endpoint.sender().loss().state(), script.endpoint.sender().cwnd()),
        (CaState::Recovery, 6000 + 2000)
    );
    // The original arrives, then the copy, which the receiver reports.
    script.sack(4001, &[]);
    script.sack(4001, &[(1, 1001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert!(script.endpoint.sender().cwnd() >= 10_000);
    let window = script.endpoint.sender().congestion_control().window();
    assert_eq!(window.ssthresh, u64::MAX);
    assert_eq!((script.endpoint.sender().stats().undos, script.data()), (1, vec![]));
}

#[test]
fn a_dsack_for_some_of_the_retransmissions_takes_nothing_back() {
    let mut script = ten(linux());
    script.wait(100);
    // Two are lost: 0 and 1.
    script.sack(1, &[(2001, 6001)]);
    script.sack(1, &[(2001, 10_001)]);
    assert_eq!(script.data(), full(1, 2));
    script.sack(10_001, &[(1, 1001)]);
    assert_eq!(script.endpoint.sender().stats().undos, 0);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
    // The other one is reported after the end (tcp_try_undo_dsack in Open).
    script.sack(10_001, &[(1001, 2001)]);
    assert_eq!(script.endpoint.sender().stats().undos, 1);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, u64::MAX);
}

#[test]
fn duplicates_that_no_retransmission_explains_are_the_networks() {
    // tcp_dsack_seen: dsack_dups > total_retrans.
    let mut script = ten(linux());
    script.wait(100);
    script.sack(2001, &[(1, 1001)]);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos), (CaState::Open, 0));
    assert_eq!(script.endpoint.sender().stats().dsacks, 1);
}

#[test]
fn an_echo_from_before_the_retransmission_takes_the_reduction_back() {
    // Eifel (RFC 3522): the ACK of the whole window echoes the first transmission.
    let mut script = ten(stamped(linux()));
    let original = script.last_timestamp();
    script.wait(100);
    script.sack_echoing(1, &[(1001, 4001)], original);
    assert_eq!(script.data(), full(1, 1));
    script.wait(1);
    script.sack_echoing(10_001, &[], original);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos), (CaState::Open, 1));
    assert!(script.endpoint.sender().cwnd() >= 10_000);
}

#[test]
fn an_echo_of_the_retransmission_confirms_the_loss() {
    let mut script = ten(stamped(linux()));
    script.wait(100);
    script.sack(1, &[(1001, 4001)]);
    let again = script.last_timestamp();
    script.wait(100);
    script.sack_echoing(10_001, &[], again);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos), (CaState::Open, 0));
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
}

#[test]
fn a_partial_ack_of_a_delayed_original_takes_the_reduction_back_at_once() {
    // tcp_try_undo_partial: nothing else is in flight again, and no loss is left.
    let mut script = ten(stamped(linux()));
    let original = script.last_timestamp();
    script.wait(100);
    script.sack_echoing(1, &[(1001, 4001)], original);
    script.data();
    script.wait(1);
    script.sack_echoing(4001, &[(5001, 6001)], original);
    assert_eq!(
        (script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos),
        (CaState::Disorder, 1)
    );
    assert_eq!(script.endpoint.sender().loss_counts().lost_out, 0);
    assert!(script.endpoint.sender().loss_counts().reord_seen > 0);
}

#[test]
fn nothing_is_taken_back_where_it_is_off() {
    let mut script = ten(Config { undo: false, ..linux() });
    script.wait(100);
    script.sack(1, &[(1001, 4001)]);
    script.sack(10_001, &[(1, 1001)]);
    assert_eq!(script.endpoint.sender().stats().undos, 0);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
}

#[test]
fn a_probe_repeats_the_last_segment_after_two_round_trips() {
    // tcp_schedule_loss_probe: 2 * SRTT + 2 ms; SRTT is 100 ms from the handshake.
    let mut script = ten(linux());
    script.wait(250);
    assert_eq!(script.timed_data(), [(100 + 202, 9001, 10_001)]);
    assert_eq!(script.endpoint.sender().stats().loss_probes, 1);
    // One probe only; the timer starts anew with it: SRTT + max(4 * 50, 200) = 300 ms.
    script.wait(251);
    assert_eq!(script.timed_data(), []);
    script.wait(2);
    assert_eq!(script.timed_data(), [(602, 1, 1001)]);
    assert_eq!(script.endpoint.sender().stats().timeouts, 1);
}

#[test]
fn a_probe_of_one_segment_waits_for_a_delayed_ack_but_not_longer_than_the_timeout() {
    // 2 * SRTT + 200 ms is 400 ms, the timeout 300 ms.
    let mut script = Script::open(linux());
    script.write(1000);
    script.data();
    script.wait(400);
    assert_eq!(script.timed_data(), [(400, 1, 1001)]);
    assert_eq!((script.endpoint.sender().stats().loss_probes, script.endpoint.sender().stats().timeouts), (1, 0));
}

#[test]
fn a_probe_is_new_data_where_there_is_some() {
    // RFC 8985 section 7.3: the congestion window does not hold it back.
    let mut script = Script::open(linux());
    script.write(20_000);
    assert_eq!(script.data(), full(1, 10));
    script.wait(202);
    assert_eq!(script.data(), full(10_001, 1));
    assert_eq!(script.endpoint.sender().stats().retransmitted_packets, 0);
}

#[test]
fn the_loss_of_a_tail_that_a_probe_repaired_reduces_the_window_once() {
    // RFC 8985 section 7.4.2; tcp_process_tlp_ack. The reduction ends at once.
    let mut script = ten(linux());
    script.wait(100);
    script.ack(9001);
    script.wait(400);
    assert_eq!(script.data(), full(9001, 1));
    script.write(1000);
    script.ack(11_001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 6000, "half of 12: an ACK adds two");
}

#[test]
fn a_probe_that_repaired_a_loss_costs_those_whom_marks_reduce_little_as_much_as_marks() {
    // tcp_process_tlp_ack goes through CWR: dctcp_ssthresh and prague_enter_cwr, by an alpha of 0
    // here. Prague is left alone.
    let dctcp = DctcpConfig { alpha_on_init: 0, ..Profile::linux_6_1().dctcp() };
    let marked_little: [(EcnFeedback, Box<dyn CongestionControl>); 2] = [
        (EcnFeedback::Dctcp, Box::new(Dctcp::new(dctcp))),
        (EcnFeedback::Accurate, Box::new(Prague::new(PragueConfig::default()))),
    ];
    for (ecn, cc) in marked_little {
        let pacing = Pacing { when: PacingWhen::Off, ..Pacing::default() };
        let mut script = Script::controlled(Config { ecn, pacing, ..linux() }, cc);
        script.endpoint.connect();
        script.pump();
        script.wait(100);
        let answer = if ecn == EcnFeedback::Accurate { Flags::from_ace(0b011) } else { Flags::ECE };
        script.input(script.syn(Flags::SYN | Flags::ACK | answer));
        assert!(script.endpoint.sender.ecn.is_usable(), "{ecn:?}");
        script.write(10_000);
        script.segments();
        script.wait(100);
        script.ack(9001);
        script.wait(400);
        assert_eq!((script.data(), script.endpoint.sender().stats().loss_probes), (full(9001, 1), 1), "{ecn:?}");
        let before = script.endpoint.sender().congestion_control().window().cwnd;
        script.write(1000);
        script.ack(11_001);
        assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
        assert!(script.endpoint.sender().congestion_control().window().cwnd >= before, "{ecn:?}");
        assert!(!script.endpoint.sender.loss.recovery.probe().is_in_flight(), "the reduction was made");
    }
}

#[test]
fn a_probe_that_the_receiver_had_reduces_nothing() {
    // RFC 8985 section 7.4.2: the DSACK is of the probe.
    let mut script = ten(linux());
    script.wait(100);
    script.ack(9001);
    script.wait(400);
    script.sack(10_001, &[(9001, 10_001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, u64::MAX);
}

#[test]
fn without_sack_there_are_no_probes() {
    let mut script = ten(Config { sack: false, ..linux() });
    script.wait(299);
    assert_eq!((script.data(), script.endpoint.sender().stats().loss_probes), (vec![], 0));
}

#[test]
fn a_hole_is_resent_when_the_reordering_window_has_passed() {
    // RFC 8985 section 6.2 step 5: RTT 100 ms, window 25 ms; what was SACKed was sent at the same
    // time as the hole, and so there are 25 ms to wait from the ACK on, and 2 ms of slack.
    let mut script = ten(linux());
    script.wait(100);
    script.sack(1, &[(1001, 2001)]);
    assert_eq!(script.data(), []);
    script.wait(26);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!(script.timed_data(), [(227, 1, 1001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
}

#[test]
fn a_hole_that_fills_in_time_is_no_loss() {
    let mut script = ten(linux());
    script.wait(100);
    script.sack(1, &[(1001, 2001)]);
    script.wait(20);
    script.ack(2001);
    script.wait(20);
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (vec![], CaState::Open));
    let counts = script.endpoint.sender().loss_counts();
    assert_eq!((counts.reord_seen, counts.reordering), (1, 3), "one overtook another");
}

#[test]
fn a_lost_retransmission_is_resent_without_a_timeout() {
    let mut script = Script::open(linux());
    script.write(60_000);
    script.data();
    script.wait(100);
    script.sack(1, &[(1001, 4001)]);
    assert_eq!(script.data()[0], (1, 1001));
    script.sack(1, &[(1001, 10_001)]);
    script.data();
    // Segments sent with and after the retransmission are SACKed a round trip later, the
    // retransmission is not.
    script.wait(100);
    let nxt = script.endpoint.sender().sequence().nxt();
    script.sack(1, &[(1001, nxt)]);
    assert_eq!(script.data()[0], (1, 1001));
    assert_eq!(script.endpoint.sender().stats().timeouts, 0);
}

#[test]
fn a_timeout_leaves_what_was_sent_just_now() {
    // RFC 8985 section 6.3: sent less than a round trip ago. The window is what is left and one
    // segment (tcp_enter_loss).
    let mut script = Script::open(Config { tlp: false, ..linux() });
    script.write(2000);
    script.data();
    script.wait(100);
    script.ack(1001);
    script.wait(250);
    script.write(2000);
    assert_eq!(script.data(), full(2001, 2));
    script.wait(50);
    assert_eq!(script.data(), full(1001, 1));
    let counts = script.endpoint.sender().loss_counts();
    assert_eq!((counts.lost_out, counts.retrans_out, script.endpoint.sender().cwnd()), (1, 1, 3000));
}

/// Ten segments in flight, one of which was sent again by timeout, and new data.
fn timed_out(sack: bool) -> Script {
    let mut script = ten(Config { tlp: false, sack, ..linux() });
    script.wait(300);
    assert_eq!(script.data(), full(1, 1));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Loss);
    script.write(10_000);
    assert_eq!(script.data(), []);
    script
}

#[test]
fn frto_sends_new_data_and_finds_the_timeout_spurious() {
    // RFC 5682 section 2.1 steps 2b and 3b: the second ACK is for what was sent but once.
    for sack in [false, true] {
        let mut script = timed_out(sack);
        script.ack(1001);
        let sent = script.data();
        assert!(!sent.is_empty() && sent.iter().all(|&(left, _)| left > 10_000), "{sent:?}");
        script.ack(2001);
        assert_eq!(
            (script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos),
            (CaState::Open, 1),
            "sack {sack}"
        );
        assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, u64::MAX);
        assert_eq!(script.endpoint.sender().stats().retransmitted_packets, 1);
    }
}

#[test]
fn frto_resends_when_the_loss_was_real() {
    // Step 3a: a duplicate ACK, of the new data.
    for sack in [false, true] {
        let mut script = timed_out(sack);
        script.ack(1001);
        let new = script.data();
        if sack {
            script.sack(1001, &[(10_001, 11_001)]);
        } else {
            script.ack(1001);
        }
        assert_eq!(script.data()[0], (1001, 2001), "sack {sack}");
        assert_eq!(
            (script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos),
            (CaState::Loss, 0)
        );
        assert!(!new.is_empty());
    }
}

#[test]
fn without_new_data_frto_goes_on_resending() {
    // Step 2b has nothing to send: conventional recovery.
    let mut script = ten(Config { tlp: false, ..linux() });
    script.wait(300);
    script.data();
    script.ack(1001);
    assert_eq!(script.data(), full(1001, 2));
}

#[test]
fn a_spurious_timeout_is_taken_back_by_an_echo() {
    // tcp_try_undo_loss: the ACK echoes the original.
    let mut script = ten(stamped(Config { tlp: false, frto: false, ..linux() }));
    let original = script.last_timestamp();
    script.wait(300);
    assert_eq!(script.data(), full(1, 1));
    script.wait(1);
    script.sack_echoing(1001, &[], original);
    assert_eq!((script.endpoint.sender().loss().state(), script.endpoint.sender().stats().undos), (CaState::Open, 1));
    assert!(script.endpoint.sender().cwnd() >= 10_000);
    assert_eq!(script.data(), []);
}

#[test]
fn without_sack_recovery_holds_until_more_is_acknowledged() {
    // RFC 6582 section 3.2 step 2; tcp_is_non_sack_preventing_reopen.
    let mut script = ten(Config { sack: false, ..linux() });
    script.wait(100);
    for _ in 0..4 {
        script.ack(1001);
    }
    assert_eq!(script.data(), full(1001, 1));
    script.write(3000);
    script.ack(10_001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
    script.ack(11_001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000, "half of 11");
}

#[test]
fn more_duplicates_than_segments_are_reordering() {
    // tcp_check_reno_reordering: nine duplicates of nine segments, one of which is the hole.
    let rules = AdaptiveRules::default();
    let mut script = ten(Config { sack: false, loss_detector: LossDetector::Linux(rules), ..linux() });
    for _ in 0..9 {
        script.ack(1001);
    }
    assert_eq!(script.endpoint.sender().loss_counts().reordering, 3);
    script.ack(1001);
    let counts = script.endpoint.sender().loss_counts();
    assert_eq!((counts.reordering, counts.sacked_out), (9, 8));
}

#[test]
fn early_retransmit_resends_after_a_quarter_of_a_round_trip() {
    // RFC 5827 with the delay of Linux: three outstanding, one reported, nothing to send.
    let rules = AdaptiveRules::default();
    let mut script = Script::open(Config { loss_detector: LossDetector::Linux(rules), tlp: false, ..linux() });
    script.write(3000);
    script.data();
    script.wait(100);
    script.sack(1, &[(1001, 2001)]);
    script.wait(24);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!(script.data(), full(1, 1));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
}

#[test]
fn a_threshold_that_has_grown_waits_and_lets_new_data_out() {
    // Each report makes room for a segment (tcp_packets_in_flight), as long as nothing is proven.
    let rules = AdaptiveRules { fack: false, early_retransmit: false, ..AdaptiveRules::default() };
    let mut script = Script::open(Config { loss_detector: LossDetector::Linux(rules), ..linux() });
    script.write(60_000);
    script.data();
    script.wait(100);
    script.sack(1, &[(7001, 8001)]);
    script.ack(8001);
    // The first segment, 0, was overtaken by segment 7: eight apart.
    assert_eq!(script.endpoint.sender().loss_counts().reordering, 8);
    let mut highest = script.data().last().unwrap().1;
    for right in 10..17 {
        script.sack(8001, &[(9001, 1 + 1000 * right)]);
        let sent = script.data();
        assert!(!sent.is_empty() && sent[0].0 == highest, "{sent:?}");
        highest = sent.last().unwrap().1;
    }
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Disorder);
    script.sack(8001, &[(9001, 17_001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
}

#[test]
fn ncr_sends_new_data_for_a_round_trip_and_then_recovers() {
    // RFC 4653 section 3.3. One of ten outstanding segments is lost. Careful: the first, third,
    // fifth and seventh of eight reports let a segment out, and the ninth reaches 2 * 14 / 3 = 9.
    // Aggressive: seven do, and the eighth reaches 17 / 2 = 8.
    for (variant, new, reports) in [(NcrVariant::Careful, 4, 9), (NcrVariant::Aggressive, 7, 8)] {
        let detector = LossDetector::Ncr(variant);
        let mut script = Script::open(Config { loss_detector: detector, tlp: false, ..linux() });
        script.write(60_000);
        script.data();
        script.wait(100);
        let mut sent = Vec::new();
        let mut n = 0;
        while script.endpoint.sender().loss().state() <= CaState::Disorder {
            n += 1;
            script.sack(1, &[(1001, 1001 + 1000 * n)]);
            sent.extend(script.data());
        }
        let (new_data, again): (Vec<_>, Vec<_>) = sent.into_iter().partition(|&(left, _)| left > 10_000);
        assert_eq!((new_data.len(), n), (new, reports), "{variant:?}");
        assert_eq!(again[0], (1, 1001));
    }
}
