//! Times of release by hand. Segments of 1000 bytes; the handshake has measured 100 ms and ended at
//! 100 ms; nothing else is in flight then.

use ackclock_cc::{Needs, Window};

use super::peer::full;
use super::witness::Witness;
use super::*;
use crate::{CaState, LossDetector, Pacing, PacingWhen, TcpInfo};

/// A window of 40 segments, and 1000 bytes in 10 ms.
fn paced(config: Config) -> (Witness, Script) {
    let witness = Witness::ruling(40_000);
    witness.set_rate(100_000);
    let script = witness.open(config);
    (witness, script)
}

/// When segments with data were sent since the last look, in milliseconds.
fn times(script: &mut Script) -> Vec<u64> {
    script.timed_data().iter().map(|&(at, ..)| at).collect()
}

#[test]
fn segments_leave_at_the_rate_from_the_eleventh_on() {
    let (_, mut script) = paced(config());
    script.write(14_000);
    // The tenth is the first that counts.
    assert_eq!(times(&mut script), [100; 10]);
    assert_eq!(script.endpoint.next_deadline(), Time::from_millis(110));
    script.wait(50);
    assert_eq!(times(&mut script), [110, 120, 130, 140]);
    script.wait(50);
    script.ack(14_001);
    // Idle from 150 ms on: of that at most half of a segment's time is given back, once.
    script.wait(300);
    script.write(3000);
    script.wait(50);
    assert_eq!(times(&mut script), [500, 505, 515]);
}

#[test]
fn small_segments_take_their_share() {
    let (_, mut script) = paced(config());
    script.write(10_500);
    script.wait(10);
    // At 110 ms; then 500 bytes' worth of waiting.
    script.write(1000);
    script.wait(20);
    assert_eq!(script.timed_data()[10..], [(110, 10_001, 10_501), (115, 10_501, 11_501)]);
}

#[test]
fn a_timer_that_comes_late_loses_nothing_up_to_half_a_segment() {
    let (_, mut script) = paced(config());
    script.write(14_000);
    assert_eq!(times(&mut script), [100; 10]);
    // 2 ms late at 112 ms: the next goes 10 - 2 ms later, as if it had been on time; at 128 ms 8 ms
    // late, of which 5 count.
    for (at, next) in [(112, 120), (128, 133)] {
        script.now = Time::from_millis(at);
        script.endpoint.on_deadline(script.now);
        script.pump();
        assert_eq!(times(&mut script), [at]);
        assert_eq!(script.endpoint.next_deadline(), Time::from_millis(next));
    }
}

#[test]
fn times_are_exact_to_the_nanosecond() {
    let witness = Witness::ruling(40_000);
    witness.set_rate(300_000);
    let mut script = witness.open(config());
    script.write(13_000);
    // 1000 / 300,000 s = 3,333,333.3 ns.
    for passed in [3_333_333, 6_666_666] {
        assert_eq!(script.endpoint.next_deadline(), Time::from_millis(100) + Span::from_nanos(passed));
        script.now = script.endpoint.next_deadline();
        script.pump();
    }
}

#[test]
fn acks_do_not_wait_and_retransmissions_do() {
    let linux = Config { loss_detector: LossDetector::Rack, undo: true, frto: true, ..config() };
    for config in [config(), linux] {
        let (_, mut script) = paced(config);
        script.write(13_000);
        script.wait(100);
        assert_eq!(times(&mut script).len(), 13);
        // The next may go at 140 ms, and it is 200 ms: half of the first segment's time is given
        // back.
        script.sack(1, &[(3001, 13_001)]);
        assert_eq!(script.data(), full(1, 1));
        for seq in [1, 101] {
            script.input(script.segment(Flags::ACK, seq, 100, 1));
        }
        assert_eq!(script.sent(), [". 13001:13001 ack 201"]);
        script.wait(20);
        assert_eq!(script.timed_data(), [(205, 1001, 2001), (215, 2001, 3001)]);
    }
}

#[test]
fn the_first_retransmission_after_a_timeout_does_not_wait() {
    let witness = Witness::ruling(40_000);
    // 2 s for a segment: the eleventh may go at 2100 ms.
    witness.set_rate(500);
    let mut script = witness.open(config());
    script.write(11_000);
    script.wait(1000);
    // The first segment started the timer at 100 ms, when nothing had to wait.
    assert_eq!(script.timed_data()[10..], [(1100, 1, 1001)]);
    assert_eq!(script.endpoint.sender().loss().state(), CaState::Loss);
}

#[test]
fn a_tail_loss_probe_that_would_be_new_data_waits_too() {
    let linux = Config { loss_detector: LossDetector::Rack, tlp: true, ..config() };
    let witness = Witness::ruling(40_000);
    witness.set_rate(500);
    let mut script = witness.open(linux);
    script.write(11_000);
    // The tenth segment set the probe's timer: two round trips and 2 ms, after its own 2 s.
    assert_eq!(script.endpoint.sender.timer.retransmission(), Time::from_millis(100 + 2000 + 202));
    script.wait(1999);
    assert_eq!(times(&mut script), [100; 10]);
    script.wait(1);
    assert_eq!(script.timed_data(), [(2100, 10_001, 11_001)]);
    assert_eq!(script.endpoint.sender().stats().loss_probes, 0);
}

#[test]
fn the_rate_of_the_window_and_its_bound() {
    let witness = Witness::new(20_000, Needs::default());
    let pacing = Pacing { when: PacingWhen::On, ..Pacing::default() };
    let mut script = witness.open(Config { pacing, ..config() });
    let rate = |script: &Script| TcpInfo::of(&script.endpoint, script.now).pacing_rate;
    // 200 % of 20,000 bytes in 100 ms.
    assert_eq!(rate(&script), 400_000);
    script.write(12_000);
    // 2.5 ms for a segment.
    script.wait(5);
    let start = Time::from_millis(100);
    assert_eq!(script.endpoint.sender().stats().sent_packets, 12);
    assert!(script.endpoint.sender.flight(start).paced);
    script.wait(100);
    witness.set_window(Window { cwnd: 20_000, ssthresh: 40_000 });
    // From half of the threshold on, 120 %; the rate is that of the last ACK.
    script.ack(12_001);
    assert_eq!(rate(&script), 240_000);
    script.endpoint.set_option(SocketOption::MaxPacingRate(Some(100_000)));
    assert_eq!(rate(&script), 100_000);
    script.write(3000);
    script.wait(15);
    // Late since 107.5 ms: half of 10 ms, then all of it.
    assert_eq!(times(&mut script)[12..], [205, 210, 220]);
    script.endpoint.set_option(SocketOption::MaxPacingRate(None));
    assert_eq!(rate(&script), 240_000);
}

#[test]
fn pacing_is_the_hosts_choice() {
    for (when, asks, bound, paces) in [
        (PacingWhen::Auto, false, false, false),
        (PacingWhen::Auto, true, false, true),
        (PacingWhen::Auto, false, true, true),
        (PacingWhen::On, false, false, true),
        (PacingWhen::Off, true, true, false),
    ] {
        let witness = Witness::new(40_000, Needs::default());
        if asks {
            witness.set_rate(100_000);
        }
        let pacing = Pacing { when, ..Pacing::default() };
        let mut script = witness.open(Config { pacing, ..config() });
        if bound {
            script.endpoint.set_option(SocketOption::MaxPacingRate(Some(100_000)));
        }
        script.write(20_000);
        let at_once = if paces { 10 } else { 20 };
        assert_eq!(script.data().len(), at_once, "{when:?} {asks} {bound}");
        assert_eq!(TcpInfo::of(&script.endpoint, script.now).pacing_rate == u64::MAX, !paces);
    }
}

#[test]
fn waiting_for_the_time_is_not_waiting_for_the_window() {
    let (witness, mut script) = paced(config());
    witness.set_cwnd(12_000);
    script.write(40_000);
    script.wait(10);
    // Eleven of twelve are in flight, and the twelfth may go at 120 ms.
    assert!(!script.endpoint.sender.window_use.is_full() && script.endpoint.sender.pacer.holds());
    script.wait(10);
    assert!(script.endpoint.sender.window_use.is_full());
    // An ACK frees a segment, which is not sent before 130 ms: what was seen last holds.
    script.ack(1001);
    assert!(script.endpoint.sender.window_use.is_full() && script.endpoint.sender.pacer.holds());
}

#[test]
fn data_that_follows_in_time_leaves_no_bubble() {
    let (_, mut script) = paced(config());
    let limited = |script: &Script| script.endpoint.sender.flight(script.now).app_limited;
    script.write(30_000);
    script.wait(100);
    script.ack(2001);
    assert!(!limited(&script));
    // The last is sent at 300 ms, and more is there in time for 310 ms; what comes at 325 ms is
    // late for 320 ms.
    script.wait(105);
    script.write(1000);
    assert!(!limited(&script) && script.endpoint.sender().sequence().unsent() == 1000);
    script.wait(20);
    script.write(1000);
    assert!(limited(&script));
}

#[test]
fn a_fin_waits_its_turn_and_takes_no_time() {
    let (_, mut script) = paced(config());
    script.write(10_000);
    script.close();
    assert_eq!(script.data(), full(1, 10));
    script.wait(10);
    assert_eq!(script.timed_data(), [(110, 10_001, 10_002)]);
    assert_eq!(script.endpoint.sender.pacer.delay(script.now), Span::ZERO);
}
