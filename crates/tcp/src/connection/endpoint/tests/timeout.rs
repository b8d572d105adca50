//! The retransmission timer.

use super::peer::full;
use super::*;
use crate::CaState;

#[test]
fn timeouts_double_and_end_the_connection() {
    // RFC 6298 rules 5.4 to 5.6.
    let mut script = Script::open(Config { max_retries: 3, ..config() });
    script.write(1000);
    script.wait(15_000);
    let at = |after: u64| (100 + after, 1, 1001);
    assert_eq!(script.timed_data(), [at(0), at(1000), at(3000), at(7000)]);
    assert_eq!((script.endpoint.state(), script.endpoint.error()), (State::Closed, Some(Error::TimedOut)));
}

#[test]
fn the_timeout_has_a_maximum() {
    // RFC 6298 rule 2.5.
    let mut script = Script::open(Config { max_rto: Span::from_secs(3), ..config() });
    script.write(1000);
    script.wait(10_000);
    let times: Vec<_> = script.timed_data().into_iter().map(|(at, ..)| at - 100).collect();
    assert_eq!(times, [0, 1000, 3000, 6000, 9000]);
}

#[test]
fn an_ack_of_new_data_restarts_the_timer() {
    // RFC 6298 rule 5.3: SRTT is 7/8 * 100 + 1/8 * 500 = 150, RTTVAR 3/4 * 50 + 1/4 * 400 = 137.5:
    // still the minimum.
    let mut script = Script::open(config());
    script.write(2000);
    script.wait(500);
    script.ack(1001);
    script.data();
    script.wait(999);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!(script.timed_data(), [(1600, 1001, 2001)]);
}

#[test]
fn the_timer_stops_when_all_is_acknowledged() {
    // RFC 6298 rule 5.2.
    let mut script = Script::open(config());
    script.write(1000);
    script.ack(1001);
    assert_eq!(script.endpoint.next_deadline(), Time::NEVER);
}

#[test]
fn new_data_does_not_restart_the_timer() {
    // RFC 6298 rule 5.1.
    let mut script = Script::open(config());
    script.write(1000);
    script.wait(600);
    script.write(1000);
    script.wait(400);
    assert_eq!(script.timed_data().last(), Some(&(1100, 1, 1001)));
}

#[test]
fn a_timeout_sends_one_segment_and_slow_start_goes_on_from_the_hole() {
    // RFC 5681 section 3.1: the loss window is one segment.
    let mut script = Script::open(config());
    script.write(4000);
    script.data();
    script.wait(RTO);
    assert_eq!(script.data(), full(1, 1));
    assert_eq!((script.endpoint.sender().cwnd(), script.endpoint.sender().loss().state()), (1000, CaState::Loss));
    script.ack(1001);
    assert_eq!(script.data(), full(1001, 2));
    script.ack(4001);
    assert_eq!((script.data(), script.endpoint.sender().loss().state()), (vec![], CaState::Open));
}

#[test]
fn a_timeout_does_not_resend_what_was_sacked() {
    let mut script = Script::open(config());
    script.write(4000);
    script.sack(1, &[(2001, 3001)]);
    script.data();
    script.wait(RTO);
    assert_eq!(script.data(), full(1, 1));
    script.sack(1001, &[(2001, 3001)]);
    assert_eq!(script.data(), [(1001, 2001), (3001, 4001)]);
}

#[test]
fn a_receiver_that_forgets_what_it_reported_gets_it_again() {
    // RFC 2018 section 8.
    let mut script = Script::open(config());
    script.write(4000);
    script.sack(1, &[(1001, 2001)]);
    script.ack(1001);
    script.data();
    script.wait(RTO);
    assert_eq!(script.data(), full(1001, 1));
}

#[test]
fn a_second_timeout_keeps_the_threshold() {
    // RFC 5681 section 3.1: half of ten segments, not half of one.
    let mut script = Script::open(Config { initial_window: InitialWindow::Segments(10), ..config() });
    script.write(10_000);
    for _ in 0..2 {
        script.wait(2 * RTO);
    }
    assert_eq!(script.endpoint.sender().stats().timeouts, 2);
    assert_eq!(script.endpoint.sender().congestion_control().window().ssthresh, 5000);
}

#[test]
fn no_fast_retransmit_before_a_timeouts_data_is_acknowledged() {
    // RFC 6582 section 4: go-back retransmissions of what had arrived cause duplicate ACKs. Outside
    // of fast recovery they do not inflate the window either (RFC 5681 section 3.2).
    for sack in [false, true] {
        let mut script = Script::open(Config { sack, ..config() });
        script.write(4000);
        script.wait(RTO);
        script.ack(1001);
        script.data();
        for _ in 0..4 {
            script.ack(1001);
        }
        assert_eq!((script.data(), script.endpoint.sender().stats().fast_recoveries), (vec![], 0));
    }
}

#[test]
fn the_back_off_stays_until_there_is_a_sample() {
    // Karn's algorithm; RFC 6298, the note at the end of section 5.
    let mut script = Script::open(config());
    script.write(1000);
    script.wait(RTO);
    script.ack(1001);
    script.data();
    script.write(1000);
    script.wait(2 * RTO);
    let times: Vec<_> = script.timed_data().into_iter().map(|(at, ..)| at).collect();
    assert_eq!(times, [1100, 3100], "twice the timeout");
    script.ack(2001);
    script.write(1000);
    script.ack(3001);
    // A sample of zero: SRTT is 87.5, and the back-off is over.
    assert_eq!(script.endpoint.sender().rto(), Span::from_secs(1));
}

#[test]
fn an_ack_that_waited_for_a_retransmission_gives_no_sample() {
    // RFC 6298 section 3: segment 1 was lost, 2 and 3 waited for it at the receiver.
    let mut script = Script::open(Config { sack: false, ..config() });
    script.write(3000);
    script.wait(RTO);
    script.wait(100);
    assert_eq!(script.ack(3001).rtt, None);
    assert_eq!(script.endpoint.sender().rtt().srtt(), Some(Span::from_millis(100)));
}

#[test]
fn with_timestamps_a_retransmission_gives_a_sample() {
    // RFC 7323 section 4.1: 100 + 700 / 8 = 187.5 ms after the answer to the retransmission, 800 ms
    // later.
    let mut script = Script::open(Config { timestamps: true, ..config() });
    script.write(500);
    script.wait(RTO);
    script.wait(800);
    script.ack(501);
    assert_eq!(script.endpoint.sender().rtt().srtt(), Some(Span::from_micros(187_500)));
}

#[test]
fn a_sack_gives_a_sample() {
    let mut script = Script::open(config());
    script.write(4000);
    script.wait(200);
    assert_eq!(script.sack(1, &[(1001, 2001)]).rtt, Some(Span::from_millis(200)));
}

#[test]
fn the_slop_is_added_to_the_timeout() {
    let config =
        Config { min_rto: MinRto::OfTotal(Span::from_millis(30)), rto_slop: Span::from_millis(200), ..config() };
    // SRTT 100 + 4 * RTTVAR 50 + 200.
    assert_eq!(Script::open(config).endpoint.sender().rto(), Span::from_millis(500));
}
