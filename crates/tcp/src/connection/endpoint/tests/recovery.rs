//! Loss detection by duplicate ACKs and SACK, and recovery.

use super::peer::full;
use super::*;
use crate::{CaState, CaStateTime};

/// An initial window of ten segments, and the window falls to the threshold at once: RFC 6582 and
/// RFC 6675 to the letter.
fn plain(sack: bool) -> Config {
    Config { initial_window: InitialWindow::Segments(10), sack, prr: Prr::Off, ..config() }
}

/// Ten segments are in flight and more waits.
fn bulk(config: Config) -> Script {
    let mut script = Script::open(config);
    script.write(60_000);
    assert_eq!(script.data(), full(1, 10));
    script
}

/// Ten segments are in flight and that is all.
fn ten(config: Config) -> Script {
    let mut script = Script::open(config);
    script.write(10_000);
    assert_eq!(script.data(), full(1, 10));
    script
}

/// The segments that each of `n` duplicate ACKs without SACK makes the endpoint send.
fn duplicates(script: &mut Script, ack: u64, n: usize) -> Vec<Vec<(u64, u64)>> {
    let mut duplicate = || {
        script.ack(ack);
        script.data()
    };
    (0..n).map(|_| duplicate()).collect()
}

#[test]
fn limited_transmit_then_fast_retransmit_then_fast_recovery() {
    let mut script = bulk(plain(false));
    // RFC 3042: a new segment for each of the first two; RFC 5681 section 3.2: the third
    // retransmits.
    assert_eq!(duplicates(&mut script, 1, 3), [full(10_001, 1), full(11_001, 1), full(1, 1)]);
    assert_eq!(script.endpoint.sender().cwnd(), 5000);
    // 12 segments are outstanding, the window is inflated to 5 + n by the n-th: the 8th makes room
    // for a 13th.
    let quiet: Vec<Vec<_>> = vec![vec![]; 4];
    assert_eq!(duplicates(&mut script, 1, 4), quiet);
    assert_eq!(duplicates(&mut script, 1, 1), [full(12_001, 1)]);
    // The full ACK ends it; RFC 6582 section 3.2 step 3: min(5, max(1, 1) + 1) segments, and what
    // the ACK itself adds.
    script.ack(12_001);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert_eq!(script.endpoint.sender().stats().fast_recoveries, 1);
}

#[test]
fn the_time_in_each_state_is_between_the_changes() {
    const MS: fn(u64) -> Span = Span::from_millis;
    let mut script = bulk(plain(false));
    script.wait(30);
    assert_eq!(script.endpoint.sender().loss().state_time(script.now), CaStateTime::default());
    // Disorder for 40 ms, then recovery for 60, which a full ACK ends.
    script.ack(1);
    script.wait(40);
    duplicates(&mut script, 1, 2);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Recovery);
    script.wait(60);
    let so_far = CaStateTime { disorder: MS(40), recovery: MS(60), ..CaStateTime::default() };
    assert_eq!(script.endpoint.sender().loss().state_time(script.now), so_far);
    script.ack(12_001);
    script.data();
    script.wait(10);
    assert_eq!(script.endpoint.sender().loss().state_time(script.now), so_far);
    // A timeout comes one RTO after the last ACK; 10 ms of it are over.
    script.wait(RTO - 10 + 25);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Loss);
    assert_eq!(script.endpoint.sender().loss().state_time(script.now), CaStateTime { loss: MS(25), ..so_far });
}

#[test]
fn without_limited_transmit_two_duplicates_send_nothing() {
    for sack in [false, true] {
        let mut script = bulk(Config { limited_transmit: false, ..plain(sack) });
        for right in [2001, 3001] {
            if sack {
                script.sack(1, &[(1001, right)])
            } else {
                script.ack(1)
            };
            assert_eq!(script.data(), []);
        }
        if sack {
            script.sack(1, &[(1001, 4001)])
        } else {
            script.ack(1)
        };
        assert_eq!(script.data(), full(1, 1));
    }
}

#[test]
fn limited_transmit_sends_two_segments_at_most() {
    // RFC 3042 section 2, here where duplicates prove nothing: they are of the episode that has
    // ended (RFC 6582 section 3.2 step 2).
    let mut script = ten(plain(false));
    duplicates(&mut script, 1, 3);
    script.ack(10_001);
    script.write(30_000);
    let before = script.data().len();
    let sent = duplicates(&mut script, 10_001, 6).concat();
    assert_eq!(sent.len(), 2, "{before} before, then {sent:?}");
    assert!(sent.iter().all(|&(left, _)| left > 10_001), "no retransmission");
}

#[test]
fn fast_retransmit_with_sack() {
    // RFC 6675 section 5: the third duplicate ACK, which is the third SACKed segment.
    let mut script = bulk(plain(true));
    for (right, sent) in [(2001, full(10_001, 1)), (3001, full(11_001, 1)), (4001, full(1, 1))] {
        script.sack(1, &[(1001, right)]);
        assert_eq!(script.data(), sent);
    }
    assert_eq!((script.endpoint.sender().cwnd(), script.endpoint.sender().loss().state()), (5000, CaState::Recovery));
}

#[test]
fn an_ack_without_news_is_no_duplicate_with_sack() {
    // RFC 6675 section 2.
    let mut script = bulk(plain(true));
    for _ in 0..5 {
        script.sack(1, &[(1001, 2001)]);
    }
    assert_eq!(script.data(), full(10_001, 1));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Disorder);
}

#[test]
fn a_window_update_or_data_is_no_duplicate_without_sack() {
    // RFC 5681 section 2, (b) and (e).
    let mut script = ten(plain(false));
    for window in [30_000, 31_000, 32_000] {
        script.ack_window(1, window);
    }
    for i in 0..3 {
        let data = script.segment(Flags::ACK, 1 + 100 * i, 100, 1);
        script.input(data);
    }
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (vec![], CaState::Open));
}

#[test]
fn a_partial_ack_retransmits_the_next_hole_at_once() {
    // RFC 6582 section 3.2 step 3, whatever shapes the window.
    for prr in [Prr::Off, Prr::Rfc6937, Prr::Rfc9937] {
        let mut script = ten(Config { prr, ..plain(false) });
        assert_eq!(duplicates(&mut script, 1, 3)[2], full(1, 1));
        for hole in [3001, 5001] {
            script.ack(hole);
            assert_eq!(script.data(), full(hole, 1), "{prr:?}");
        }
        script.ack(10_001);
        assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
        assert_eq!((script.data(), script.endpoint.sender().stats().fast_recoveries), (vec![], 1));
    }
}

#[test]
fn duplicates_of_the_last_episode_do_not_start_another() {
    // RFC 6582 section 3.2 step 2: the ACK has to cover more than `recover`.
    let mut script = ten(plain(false));
    duplicates(&mut script, 1, 3);
    script.ack(10_001);
    script.write(1000);
    script.data();
    assert_eq!(duplicates(&mut script, 10_001, 5).concat(), []);
    assert_eq!(script.endpoint.sender().stats().fast_recoveries, 1);
    // One more byte acknowledged, and duplicates count.
    script.write(4000);
    script.data();
    script.ack(11_001);
    assert_eq!(duplicates(&mut script, 11_001, 3)[2], full(11_001, 1));
}

#[test]
fn sacked_bytes_alone_prove_a_loss() {
    // RFC 6675 section 4, IsLost: one ACK that SACKs three segments.
    let mut script = ten(plain(true));
    script.sack(1, &[(1001, 4001)]);
    assert_eq!(script.data(), full(1, 1));
}

#[test]
fn lost_segments_go_again_as_pipe_allows() {
    // Five lost, three SACKed: pipe is 2, the window 5.
    let mut script = ten(plain(true));
    for right in [6001, 7001, 8001] {
        script.sack(1, &[(5001, right)]);
    }
    assert_eq!(script.data(), full(1, 3));
    script.sack(1, &[(5001, 9001)]);
    assert_eq!(script.data(), full(3001, 1));
    // The first retransmission arrives, then the second.
    script.sack(1001, &[(5001, 9001)]);
    assert_eq!(script.data(), full(4001, 1));
}

#[test]
fn a_loss_detected_twice_reduces_once() {
    let mut script = bulk(plain(true));
    script.sack(1, &[(1001, 4001)]);
    script.sack(1, &[(1001, 4001), (5001, 9001)]);
    assert_eq!((script.endpoint.sender().cwnd(), script.endpoint.sender().stats().fast_recoveries), (5000, 1));
    assert!(script.data().contains(&(4001, 5001)), "the second hole is lost too");
}

#[test]
fn a_hole_that_is_not_lost_goes_again_if_nothing_else_can() {
    // RFC 6675 NextSeg rule 3: no new data; two segments SACKed above the hole at 4001 do not prove
    // it lost.
    let mut script = ten(plain(true));
    script.sack(1, &[(1001, 4001)]);
    script.sack(1, &[(1001, 4001), (6001, 8001)]);
    assert_eq!(script.data(), full(1, 1));
    // Four segments of six are in the network, the window is five.
    script.sack(4001, &[(6001, 8001)]);
    assert_eq!(script.data(), full(4001, 1));
}

#[test]
fn the_tail_is_rescued_after_a_partial_ack() {
    // RFC 6675 NextSeg rule 4: the first and the last segment are lost. Not before HighACK has
    // passed RescueRxt, which the first retransmission has set.
    let mut script = ten(plain(true));
    script.sack(1, &[(1001, 9001)]);
    assert_eq!(script.data(), full(1, 1));
    script.ack(9001);
    assert_eq!(script.data(), full(9001, 1));
    // Once per episode.
    script.ack(9001);
    assert_eq!(script.data(), []);
    script.ack(10_001);
    assert_eq!(script.endpoint.sender().stats().timeouts, 0);
}

#[test]
fn an_ack_below_recovery_point_keeps_the_episode() {
    // RFC 6675 section 5: until everything sent before the episode is acknowledged.
    let mut script = bulk(plain(true));
    script.sack(1, &[(1001, 4001)]);
    for (ack, state) in [(9001, CaState::Recovery), (10_001, CaState::Open)] {
        script.ack(ack);
        assert_eq!(script.endpoint.sender().loss().state(), state);
    }
}

#[test]
fn the_timer_starts_again_with_the_first_retransmission() {
    // RFC 6675 section 6 recommends it. The SACK is a sample of 900 ms: SRTT 200, RTTVAR 37.5 +
    // 200, timeout 1150 ms.
    let mut script = ten(plain(true));
    script.wait(900);
    script.sack(1, &[(1001, 4001)]);
    assert_eq!(script.data(), full(1, 1));
    script.wait(1149);
    assert_eq!((script.data(), script.endpoint.sender().stats().timeouts), (vec![], 0));
    script.wait(1);
    assert_eq!(script.endpoint.sender().stats().timeouts, 1);
}

/// The segments that the SACKs of segments 1 to 19 of 20 in flight make the endpoint send, segment
/// 0 being lost; as in the examples of RFC 6937 section 3.1: N is new data, R a retransmission.
fn twenty(prr: Prr, first_sacked: u64) -> Vec<(u64, String)> {
    let config = Config { initial_window: InitialWindow::Segments(20), prr, ..config() };
    let mut script = Script::open(config);
    script.write(60_000);
    assert_eq!(script.data(), full(1, 20));
    let mut column = |segment: u64| {
        script.sack(1, &[(1 + 1000 * first_sacked, 1001 + 1000 * segment)]);
        let sent = script.data();
        (segment, sent.iter().map(|&(left, _)| if left > 20_000 { 'N' } else { 'R' }).collect())
    };
    (first_sacked..20).map(&mut column).filter(|(_, sent): &(_, String)| !sent.is_empty()).collect()
}

#[test]
fn prr_with_a_single_loss() {
    // RFC 6937 section 3.1: cwnd = FlightSize = 20, ssthresh = 10. The third ACK retransmits; then
    // sndcnt is ceil(prr_delivered / 2) - prr_out, which is 1 for every second ACK, down to a pipe
    // of 10 with ACK 19. The RFC's figure leaves the retransmission out of pipe, which then is
    // below ssthresh from ACK 17 on, so that it ends with N at 18 and 19 instead of 17.
    let upto_15 = "1:N 2:N 3:R 5:N 7:N 9:N 11:N 13:N 15:N";
    for (prr, end) in [(Prr::Rfc6937, "18:N 19:N"), (Prr::Ssrb, "17:N"), (Prr::Rfc9937, "17:N")] {
        let sent: Vec<_> = twenty(prr, 1).into_iter().map(|(ack, sent)| format!("{ack}:{sent}")).collect();
        assert_eq!(sent.join(" "), format!("{upto_15} {end}"), "{prr:?}");
    }
}

#[test]
fn prr_with_a_burst_of_fifteen_losses() {
    // RFC 6937 section 3.1: the conservative bound sends what was delivered, the slow start bound
    // one segment more. RFC 9937 is conservative here, because no ACK advances SND.UNA.
    let bounded_by_slow_start = "15:N 16:N 17:RR 18:RR 19:RR";
    let stacks = [(Prr::Rfc6937, bounded_by_slow_start), (Prr::Ssrb, bounded_by_slow_start)];
    for (prr, expected) in stacks.into_iter().chain([(Prr::Rfc9937, "15:N 16:N 17:R 18:R 19:R")]) {
        let sent: Vec<_> = twenty(prr, 15).into_iter().map(|(ack, sent)| format!("{ack}:{sent}")).collect();
        assert_eq!(sent.join(" "), expected);
    }
}

#[test]
fn prr_brings_what_is_in_flight_to_the_threshold() {
    // RFC 9937 section 1: at the end of recovery the flight is as close as possible to ssthresh.
    let config = Config { initial_window: InitialWindow::Segments(20), prr: Prr::Rfc9937, ..config() };
    let mut script = Script::open(config);
    script.write(60_000);
    for right in 2..=20 {
        script.sack(1, &[(1001, 1 + 1000 * right)]);
    }
    assert_eq!(script.endpoint.sender().pipe(), 10_000);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 10_000);
}

#[test]
fn old_duplicates_and_old_acks_change_nothing() {
    let mut script = bulk(plain(true));
    script.ack(4001);
    script.data();
    for ack in [1001, 2001, 3001, 1] {
        script.ack(ack);
    }
    assert_eq!((script.data(), script.endpoint.sender().sequence().una()), (vec![], 4001));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
}

#[test]
fn a_report_of_a_duplicate_is_no_sack() {
    // RFC 2883 section 4: below the cumulative ACK, or within the second block.
    let mut script = bulk(plain(true));
    script.sack(2001, &[(1001, 2001)]);
    script.sack(2001, &[(4001, 5001), (4001, 6001)]);
    assert_eq!((script.endpoint.sender().stats().dsacks, script.endpoint.sender.loss.board.sacked()), (2, 2000));
}

#[test]
fn blocks_that_make_no_sense_are_ignored() {
    let mut script = bulk(plain(true));
    // Beyond what was sent, backwards, empty, before the first byte.
    script.sack(1, &[(9001, 90_001), (3001, 2001), (2001, 2001)]);
    script.sack(1, &[(0, 5001)]);
    assert_eq!(script.endpoint.sender.loss.board.sacked(), 0);
    assert_eq!(script.data(), []);
}
