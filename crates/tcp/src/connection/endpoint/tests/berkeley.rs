//! Tahoe and Reno, traced by hand from RFC 2001, RFC 2581 section 3.2 and ns-2's `tcp.cc` and
//! `tcp-reno.cc`. Segments of 1000 bytes, an initial window of ten, no limited transmit.

use super::peer::full;
use super::*;
use crate::{BerkeleyRules, CaState, LossDetector};

fn tahoe(bugfix: bool) -> LossDetector {
    LossDetector::Tahoe(BerkeleyRules { bugfix })
}

fn reno(bugfix: bool) -> LossDetector {
    LossDetector::Reno(BerkeleyRules { bugfix })
}

/// Ten segments are in flight and more waits.
fn bulk(loss_detector: LossDetector) -> Script {
    bulk_with(Config { loss_detector, limited_transmit: false, ..config() })
}

fn bulk_with(config: Config) -> Script {
    let initial_window = InitialWindow::Segments(10);
    let mut script = Script::open(Config { initial_window, prr: Prr::Off, ..config });
    script.write(60_000);
    assert_eq!(script.data(), full(1, 10));
    script.wait(100);
    script
}

/// `count` duplicate ACKs of `ack`: what they make the endpoint send.
fn duplicates(script: &mut Script, ack: u64, count: usize) -> Vec<(u64, u64)> {
    (0..count).for_each(|_| {
        script.ack(ack);
    });
    script.data()
}

fn windows(script: &Script) -> (u64, u64) {
    let window = script.endpoint.sender().congestion_control().window();
    (script.endpoint.sender().cwnd(), window.ssthresh)
}

#[test]
fn tahoe_begins_slow_start_at_the_third_duplicate() {
    let mut script = bulk(tahoe(false));
    assert_eq!(duplicates(&mut script, 1, 2), []);
    // RFC 2001: one half of the window, and a window of one segment.
    assert_eq!(duplicates(&mut script, 1, 1), full(1, 1));
    assert_eq!((windows(&script), script.endpoint.sender().loss().state()), ((1000, 5000), CaState::Loss));
    // Duplicates do not inflate the window.
    assert_eq!(duplicates(&mut script, 1, 6), []);
    // The receiver had all the others: slow start goes on with new data, two segments.
    script.ack(10_001);
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (full(10_001, 2), CaState::Open));
    let stats = script.endpoint.sender().stats();
    assert_eq!((stats.fast_recoveries, stats.timeouts, stats.retransmitted_packets), (1, 0, 1));
}

#[test]
fn tahoe_sends_everything_again_in_order() {
    let mut script = bulk(tahoe(true));
    assert_eq!(duplicates(&mut script, 1, 3), full(1, 1));
    // 3001 is lost too. Two segments fit, the second of which the receiver has.
    script.ack(3001);
    assert_eq!(script.data(), full(3001, 2));
    // All but 6001 has arrived: a window of three.
    script.ack(6001);
    assert_eq!(script.data(), full(6001, 3));
    // The window is four, and all has arrived.
    script.ack(10_001);
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (full(10_001, 4), CaState::Open));
}

#[test]
fn what_tahoe_repeats_causes_another_fast_retransmit_without_the_bugfix() {
    for (bugfix, sent, recoveries) in [(false, full(3001, 1), 2), (true, vec![], 1)] {
        let mut script = bulk(tahoe(bugfix));
        duplicates(&mut script, 1, 3);
        script.ack(3001);
        script.data();
        // Floyd 1994, "TCP and Successive Fast Retransmits": duplicates of data sent before.
        assert_eq!(duplicates(&mut script, 3001, 3), sent, "{bugfix}");
        assert_eq!(script.endpoint.sender().stats().fast_recoveries, recoveries);
    }
}

#[test]
fn reno_inflates_the_window_until_new_data_is_acknowledged() {
    let mut script = bulk(reno(false));
    assert_eq!(duplicates(&mut script, 1, 3), full(1, 1));
    // RFC 2581 section 3.2: ssthresh and three segments, then one more for each duplicate.
    assert_eq!((windows(&script), script.endpoint.sender().loss().state()), ((8000, 5000), CaState::Recovery));
    // Ten are outstanding: the window of eleven has room for one.
    assert_eq!(duplicates(&mut script, 1, 2), []);
    assert_eq!(duplicates(&mut script, 1, 1), full(10_001, 1));
    assert_eq!(duplicates(&mut script, 1, 3), full(11_001, 3));
    script.ack(10_001);
    // The threshold, and what congestion avoidance adds for that ACK: a segment for each window of
    // the ten that it acknowledges (RFC 3465 section 2.1).
    assert_eq!(windows(&script), (7000, 5000));
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Open);
    assert_eq!(script.data().first(), Some(&(14_001, 15_001)));
}

#[test]
fn a_partial_ack_ends_reno_and_a_second_loss_waits_for_the_timer() {
    let mut script = bulk(reno(true));
    assert_eq!(duplicates(&mut script, 1, 3), full(1, 1));
    script.ack(3001);
    // RFC 2582 section 1: Reno leaves fast recovery, and the window is 5 while 7 are outstanding.
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (vec![], CaState::Open));
    // Seven arrive above it, but with the bug fix they prove nothing.
    assert_eq!(duplicates(&mut script, 3001, 6), []);
    script.wait(RTO);
    assert_eq!((script.data(), script.endpoint.sender().stats().timeouts), (full(3001, 1), 1));
    // min(cwnd, flight) / 2 is 2 segments of 5 or 6.
    let (cwnd, ssthresh) = windows(&script);
    assert!(cwnd == 1000 && (2000..=3000).contains(&ssthresh), "{ssthresh}");
}

#[test]
fn without_the_bugfix_reno_repairs_a_second_loss_by_three_duplicates_more() {
    let mut script = bulk(reno(false));
    duplicates(&mut script, 1, 3);
    script.ack(3001);
    assert_eq!(duplicates(&mut script, 3001, 2), []);
    assert_eq!(duplicates(&mut script, 3001, 1), full(3001, 1));
    // The window is halved once more, to two segments at least.
    let (cwnd, ssthresh) = windows(&script);
    assert!((2000..=3000).contains(&ssthresh) && cwnd == ssthresh + 3000, "{cwnd} {ssthresh}");
    assert_eq!(script.endpoint.sender().stats().fast_recoveries, 2);
}

#[test]
fn a_timeout_goes_back_to_what_is_not_acknowledged() {
    for detector in [tahoe(true), reno(true)] {
        let mut script = bulk(detector);
        script.wait(RTO);
        assert_eq!(script.data(), full(1, 1));
        assert_eq!(windows(&script), (1000, 5000));
        script.ack(1001);
        assert_eq!(script.data(), full(1001, 2));
        // Duplicates of what was sent before the timeout.
        assert_eq!(duplicates(&mut script, 1001, 4), []);
        script.ack(10_001);
        assert_eq!((script.data(), script.endpoint.sender().loss().state()), (full(10_001, 3), CaState::Open));
        // Data sent from then on counts again.
        assert_eq!(duplicates(&mut script, 10_001, 3), []);
        script.ack(11_001);
        script.data();
        // Reno's window is two segments and three then, and has room for one after these four.
        let sent = duplicates(&mut script, 11_001, 3);
        let inflated = detector == reno(true);
        assert_eq!(sent, if inflated { [full(11_001, 1), full(15_001, 1)].concat() } else { full(11_001, 1) });
    }
}

#[test]
fn limited_transmit_does_not_count_for_the_threshold() {
    for detector in [tahoe(false), reno(false)] {
        let mut script = bulk_with(Config { loss_detector: detector, ..config() });
        // RFC 3042: a segment for each of the first two.
        assert_eq!(duplicates(&mut script, 1, 2), full(10_001, 2));
        assert_eq!(duplicates(&mut script, 1, 1), full(1, 1));
        assert_eq!(windows(&script).1, 5000);
    }
}

#[test]
fn limited_transmit_goes_two_segments_beyond_the_window_at_most() {
    let mut script = bulk_with(Config { loss_detector: reno(false), ..config() });
    duplicates(&mut script, 1, 9);
    // Two by limited transmit, and what the window of 5 + 9 has room for: 14 are outstanding.
    script.ack(3001);
    // 5 segments, and what this ACK adds; 12 are outstanding.
    assert_eq!(script.data(), []);
    // RFC 3042: outstanding data stays within the window and two segments.
    assert_eq!(duplicates(&mut script, 3001, 2), []);
    assert_eq!(duplicates(&mut script, 3001, 1), full(3001, 1));
}

/// Ten segments are in flight, and the ACK of the first echoes a mark: the window is five.
fn marked(loss_detector: LossDetector) -> Script {
    let config = Config { loss_detector, limited_transmit: false, ecn: EcnFeedback::Classic, ..config() };
    let mut script = bulk_with(config);
    let echo = script.segment(Flags::ACK | Flags::ECE, script.seq, 0, 1001);
    script.input(echo);
    assert_eq!(
        (script.data(), script.endpoint.sender().loss().state(), windows(&script)),
        (vec![], CaState::Cwr, (5000, 5000))
    );
    script
}

#[test]
fn a_loss_in_a_marked_window_leaves_the_threshold() {
    // ns-2, dupack_action after CWND_ACTION_ECN: sent again, with and without the bug fix.
    for bugfix in [false, true] {
        let mut script = marked(reno(bugfix));
        assert_eq!(duplicates(&mut script, 1001, 3), full(1001, 1), "{bugfix}");
        assert_eq!(windows(&script), (8000, 5000));
        // slowdown(CLOSE_CWND_ONE).
        let mut script = marked(tahoe(bugfix));
        assert_eq!(duplicates(&mut script, 1001, 3), full(1001, 1), "{bugfix}");
        assert_eq!(windows(&script), (1000, 5000));
    }
    // timeout(): "if we are in recovery from a recent ECN, don't cut down ssthresh_".
    let mut script = marked(reno(true));
    script.wait(RTO);
    assert_eq!((script.data(), windows(&script)), (full(1001, 1), (1000, 5000)));
}

#[test]
fn a_mark_is_no_fast_retransmit_for_the_bugfix() {
    let mut script = marked(reno(true));
    script.ack(10_001);
    let sent = script.data();
    assert_eq!(sent.first(), Some(&(10_001, 11_001)));
    assert_eq!(duplicates(&mut script, 10_001, 3), full(10_001, 1));
}

#[test]
fn another_window_is_no_duplicate() {
    let mut script = bulk(reno(false));
    duplicates(&mut script, 1, 2);
    script.ack_window(1, 60_000);
    assert_eq!(duplicates(&mut script, 1, 2), []);
    assert_eq!(duplicates(&mut script, 1, 1), full(1, 1));
}

#[test]
fn sack_is_not_agreed_on() {
    for loss_detector in [tahoe(false), reno(false)] {
        let mut script = Script::new(Config { loss_detector, sack: true, ..config() });
        script.endpoint.connect();
        script.pump();
        assert!(!script.segments()[0].1.sack_permitted);
        let mut script = Script::accept(Config { loss_detector, sack: true, ..config() });
        // The peer's SYN offers it; a gap is reported by a bare duplicate ACK.
        script.peer_segment(Flags::NONE, 1001, 1000);
        assert!(script.segments().iter().all(|(_, segment, _)| segment.sack.is_empty()));
    }
}

#[test]
fn old_acks_are_no_duplicates_without_sack() {
    // RFC 5681 section 2; th_ack != snd_una in tcp_do_segment.
    let detectors = [LossDetector::Rfc6675, LossDetector::FreeBsd9, reno(false)];
    for loss_detector in detectors {
        let mut script = bulk_with(Config { loss_detector, sack: false, ..config() });
        script.ack(4001);
        let sent = script.data().len() as u64;
        for late in [1001, 2001, 3001] {
            script.ack(late);
        }
        assert_eq!(
            (script.data(), script.endpoint.sender().loss().state()),
            (vec![], CaState::Open),
            "{loss_detector:?}"
        );
        assert!(sent > 0);
        assert_eq!(duplicates(&mut script, 4001, 3).last(), Some(&(4001, 5001)), "{loss_detector:?}");
    }
}
