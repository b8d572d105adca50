//! Closed windows, on either side.

use super::peer::full;
use super::*;

/// Two segments are acknowledged, 3000 bytes wait, the window is closed.
fn closed_window() -> Script {
    let mut script = Script::open_with(config(), |script| script.window = 2000);
    script.write(5000);
    script.ack_window(2001, 0);
    assert_eq!(script.data(), full(1, 2));
    script
}

#[test]
fn a_closed_window_is_probed_with_back_off() {
    // RFC 9293 section 3.8.6.1: after one timeout, then at intervals that grow exponentially, up to
    // the maximum.
    let mut script = closed_window();
    let mut times = Vec::new();
    for _ in 0..190 {
        script.wait(1000);
        for (at, left, right) in script.timed_data() {
            assert_eq!((left, right), (2001, 2002));
            times.push(at - 100);
            script.ack(2001);
        }
    }
    assert_eq!(times, [1000, 3000, 7000, 15_000, 31_000, 63_000, 123_000, 183_000]);
    // No reaction to congestion, and no end of the connection.
    assert_eq!((script.endpoint.sender().cwnd(), script.endpoint.sender().stats().timeouts), (4000, 0));
    assert_eq!(script.endpoint.sender().loss().state(), crate::CaState::Open);
}

#[test]
fn a_probe_that_is_not_answered_is_repeated() {
    let mut script = closed_window();
    script.wait(7000);
    assert_eq!(script.timed_data(), [(1100, 2001, 2002), (3100, 2001, 2002), (7100, 2001, 2002)]);
}

#[test]
fn a_window_that_opens_after_a_probe_was_refused() {
    let mut script = closed_window();
    script.wait(1000);
    script.data();
    script.ack_window(2001, 5000);
    // RFC 9293 section 3.8.6.2.1: full segments, the byte of the probe in the first of them.
    assert_eq!(script.data(), full(2001, 3));
    assert_eq!(script.endpoint.sender().stats().timeouts, 0);
    script.ack(5001);
    script.wait(100_000);
    assert_eq!(script.data(), []);
}

#[test]
fn a_probe_that_was_taken_after_all_ends_within_the_segment_that_repeats_it() {
    let mut script = closed_window();
    script.wait(1000);
    script.data();
    script.ack_window(2001, 5000);
    assert_eq!(script.data(), full(2001, 3));
    // The ACK of the probe alone was late.
    script.ack_window(2002, 5000);
    assert_eq!(script.data(), []);
    assert_eq!((script.endpoint.sender().sequence().una(), script.endpoint.sender().sequence().nxt()), (2002, 5001));
    script.ack(5001);
    script.wait(100_000);
    assert_eq!(script.data(), []);
}

#[test]
fn a_window_that_opens_by_little_after_a_probe_was_refused() {
    let mut script = closed_window();
    script.wait(1000);
    script.data();
    // 600 bytes are less than a segment, and than half of the largest window of 2000: the byte of
    // the probe alone goes.
    script.ack_window(2001, 600);
    assert_eq!(script.data(), [(2001, 2002)]);
}

#[test]
fn a_window_that_opens_as_a_probe_is_taken() {
    let mut script = closed_window();
    script.wait(1000);
    script.data();
    script.ack_window(2002, 5000);
    assert_eq!(script.data(), [(2002, 3002), (3002, 4002), (4002, 5001)]);
}

#[test]
fn a_probe_taken_into_a_window_that_stays_closed_is_followed_by_the_next() {
    let mut script = closed_window();
    script.wait(1000);
    script.ack(2002);
    script.data();
    script.wait(2000);
    assert_eq!(script.data(), [(2002, 2003)]);
}

#[test]
fn a_window_that_opens_before_the_probe_needs_none() {
    let mut script = closed_window();
    script.wait(500);
    script.ack_window(2001, 3000);
    assert_eq!(script.data(), full(2001, 3));
    script.ack(5001);
    script.wait(100_000);
    assert_eq!(script.data(), []);
}

#[test]
fn a_lost_segment_after_a_probe_was_repeated_is_retransmitted_by_timeout() {
    let mut script = closed_window();
    script.wait(1000);
    script.ack_window(2001, 5000);
    script.data();
    script.wait(RTO);
    assert_eq!(script.data(), full(2001, 1));
    assert_eq!(script.endpoint.sender().stats().timeouts, 1);
}

#[test]
fn a_fin_behind_a_closed_window_is_a_probe() {
    let mut script = Script::open_with(config(), |script| script.window = 2000);
    script.write(2000);
    script.ack_window(2001, 0);
    script.close();
    assert_eq!(script.data(), full(1, 2));
    script.wait(1000);
    assert_eq!(script.data(), [(2001, 2002)]);
    script.ack(2002);
    assert_eq!(script.endpoint.state(), State::FinWait2);
}

#[test]
fn an_older_segment_does_not_set_the_window() {
    // RFC 9293 section 3.10.7.4: SND.WL1 and SND.WL2.
    let mut script = Script::open(config());
    script.seq = 1;
    script.peer_data(1, 100);
    script.ack_window(1, 5000);
    let old = Segment { window: 9000, ..script.segment(Flags::ACK, 1, 0, 1) };
    script.input(old);
    assert_eq!(script.endpoint.sender().sequence().window(), 5000);
}

#[test]
fn a_retransmission_with_a_new_ack_sets_the_window() {
    // Otherwise the right edge would move from 3001 to 4001, where the peer has never been ready
    // for data.
    let mut script = Script::open_with(config(), |script| script.window = 3000);
    script.peer_data(1001, 1000);
    script.write(10_000);
    script.segments();
    script.window = 2000;
    let again = script.segment(Flags::ACK, 1, 1000, 1001);
    script.input(again);
    assert_eq!((script.endpoint.sender().sequence().window(), script.data()), (2000, vec![]));
}

#[test]
fn a_window_that_shrinks_stops_new_data_but_not_retransmissions() {
    // RFC 9293 section 3.8.6: a sender must be robust against a window that shrinks.
    let mut script = Script::open(config());
    script.write(10_000);
    script.ack_window(1, 1000);
    assert_eq!(script.data(), full(1, 4));
    script.wait(RTO);
    assert_eq!(script.data(), [(1, 1001)]);
}

#[test]
fn a_full_receiver_refuses_a_probe_and_tells_when_it_has_read() {
    let mut script = Script::open(Config { receive_buffer: 2000, ..config() });
    script.peer_data(1, 1000);
    script.peer_data(1001, 1000);
    let sent = script.segments();
    assert_eq!(sent.last().unwrap().1.window, 0);
    // RFC 9293 section 3.10.7.4: not acceptable, answered with an ACK.
    script.peer_data(2001, 1);
    let sent = script.segments();
    assert_eq!((sent.len(), sent[0].1.window), (1, 0));
    assert_eq!(script.endpoint.receiver().delivered(), 2000);
    script.read(2000);
    let sent = script.segments();
    assert_eq!((sent.len(), sent[0].1.window), (1, 2000));
}

#[test]
fn data_beyond_the_window_is_cut() {
    let mut script = Script::open(Config { receive_buffer: 1500, ..config() });
    script.peer_data(1, 1000);
    script.peer_data(1001, 1000);
    assert_eq!(script.endpoint.receiver().delivered(), 1500);
}

#[test]
fn acks_at_the_right_edge_are_acceptable() {
    // Both sides have filled the other's window, the first segment of each is lost: their ACKs
    // stand at the right edge. An endpoint that found them unacceptable would answer each with an
    // ACK, and be answered, for ever.
    let mut script = Script::open(Config { receive_buffer: 2000, ..config() });
    script.peer_data(1001, 1000);
    script.write(1000);
    script.segments();
    script.seq = 2001;
    let arrival = script.ack(1001);
    assert_eq!((arrival.acked, script.sent()), (1000, vec![]));
}
