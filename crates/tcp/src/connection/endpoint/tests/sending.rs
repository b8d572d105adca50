//! Sending without loss: slow start, Nagle, silly windows, idle time, large windows.

use super::peer::full;
use super::*;
use crate::profile::Profile;

#[test]
fn slow_start_sends_two_segments_for_each_acknowledged() {
    // RFC 5681 section 3.1, with appropriate byte counting (RFC 3465, L = 2).
    let mut script = Script::open(Config { initial_window: InitialWindow::Segments(2), ..config() });
    script.write(100_000);
    assert_eq!(script.data(), full(1, 2));
    script.ack(1001);
    assert_eq!(script.data(), full(2001, 2));
    script.ack(2001);
    assert_eq!(script.data(), full(4001, 2));
    // An ACK of two segments grows the window by two.
    script.ack(4001);
    assert_eq!(script.data(), full(6001, 4));
}

#[test]
fn a_window_that_is_not_used_does_not_grow() {
    // RFC 2861, Linux's tcp_is_cwnd_limited; RFC 5681 does not say.
    let mut script = Script::open(Config { initial_window: InitialWindow::Segments(10), ..config() });
    for i in 0..5 {
        script.write(1000);
        script.ack(1001 + 1000 * i);
    }
    assert_eq!(script.endpoint.sender().cwnd(), 10_000);
}

#[test]
fn a_window_that_one_write_fills_grows() {
    let mut script = Script::open(Config { initial_window: InitialWindow::Segments(10), ..config() });
    script.write(10_000);
    script.ack(10_001);
    // L = 2 segments for one ACK.
    assert_eq!(script.endpoint.sender().cwnd(), 12_000);
}

#[test]
fn data_after_a_full_window_is_sent_as_acks_come() {
    let mut script = Script::open(config());
    script.write(4000);
    assert_eq!(script.data(), full(1, 4));
    script.write(1000);
    assert_eq!(script.data(), []);
    script.ack(1001);
    assert_eq!(script.data(), full(4001, 1));
}

#[test]
fn nagle_holds_small_segments_while_data_is_outstanding() {
    // RFC 9293 section 3.7.4.
    let mut script = Script::open(Config { nagle: true, ..config() });
    script.write(300);
    assert_eq!(script.data(), [(1, 301)], "nothing is outstanding");
    script.write(1200);
    assert_eq!(script.data(), [(301, 1301)], "a full one goes");
    script.ack(301);
    assert_eq!(script.data(), []);
    script.ack(1301);
    assert_eq!(script.data(), [(1301, 1501)]);
}

#[test]
fn one_small_segment_may_be_in_flight_by_minshall() {
    // draft-minshall-nagle-01, tcp_minshall_check.
    let transfer = TransferRules { minshall: true, ..TransferRules::default() };
    let mut script = Script::open(Config { nagle: true, transfer, ..config() });
    script.write(1300);
    assert_eq!(script.data(), [(1, 1001), (1001, 1301)], "the full one in flight does not matter");
    script.write(300);
    assert_eq!(script.data(), [], "the small one does");
    script.ack(1301);
    assert_eq!(script.data(), [(1301, 1601)]);
}

#[test]
fn a_full_buffer_wakes_its_writer_when_a_third_is_free() {
    // sk_stream_is_writeable: what is free is no less than half of what is used.
    let transfer = TransferRules { send_space: SpaceRule::Segments, ..TransferRules::default() };
    let mut script = Script::open(Config { send_buffer: 9000, transfer, ..config() });
    assert!(script.endpoint.sender_mut().is_writable());
    assert_eq!(script.endpoint.write(20_000), 9000);
    script.data();
    for (ack, writable) in [(1001, false), (2001, false), (3001, true)] {
        assert!(!script.endpoint.sender_mut().is_writable(), "before {ack}");
        script.ack(ack);
        assert_eq!(script.endpoint.sender_mut().is_writable(), writable, "{ack}");
    }
    // By bytes there is always someone to write.
    let mut script = Script::open(Config { send_buffer: 9000, ..config() });
    assert_eq!(script.endpoint.write(20_000), 9000);
    assert!(script.endpoint.sender_mut().is_writable());
}

#[test]
fn many_small_writes_at_once_are_as_one_by_one() {
    for rule in [SpaceRule::Bytes, SpaceRule::Segments] {
        for (buffer, before, size) in [
            (9000, 0, 1),
            (9000, 0, 7),
            (9000, 5999, 1),
            (9001, 2000, 999),
            (9000, 0, 6000),
            (9000, 0, 8999),
            (9, 0, 2),
            (1, 0, 1),
        ] {
            let transfer = TransferRules { send_space: rule, ..TransferRules::default() };
            let config = Config { send_buffer: buffer, transfer, ..config() };
            let written = |at_once: fn(&Endpoint, u64) -> u64| {
                let mut script = Script::open(config.clone());
                script.endpoint.write(before);
                let mut calls = 0;
                while script.endpoint.sender_mut().is_writable() {
                    let most = at_once(&script.endpoint, size);
                    calls += 1;
                    if script.endpoint.write(most) < most {
                        break;
                    }
                }
                (script.endpoint.sender().send_space(), calls)
            };
            let (one_by_one, _) = written(|_, size| size);
            let (space, calls) = written(|endpoint, bytes| endpoint.sender().writes_at_once(bytes));
            assert_eq!(space, one_by_one, "{rule:?} {buffer} {before} {size}");
            assert!(calls <= 5, "{calls} calls: {rule:?} {buffer} {before} {size}");
        }
    }
}

#[test]
fn segments_that_share_a_socket_buffer_leave_room_in_the_send_buffer() {
    let transfer = TransferRules { send_space: SpaceRule::Segments, ..TransferRules::default() };
    let config = Config { send_buffer: 9000, initial_window: InitialWindow::Segments(9), transfer, ..config() };
    let mut script = Script::open(config);
    script.write(9000);
    assert_eq!(script.data().len(), 9);
    // Six of the nine, in one piece: five overheads of 1280 bytes beside 1000 each are free.
    script.sack(1, &[(2001, 8001)]);
    assert_eq!(script.endpoint.sender().send_space(), 5 * 1000 * 1280 / 2280);
    assert!(!script.endpoint.sender_mut().is_writable(), "2807 free of 9000, 6193 in use");
    script.sack(1, &[(2001, 9001)]);
    assert!(script.endpoint.sender_mut().is_writable());
}

#[test]
fn without_nagle_small_segments_go_at_once() {
    let mut script = Script::open(config());
    script.write(300);
    script.write(300);
    assert_eq!(script.data(), [(1, 301), (301, 601)]);
}

#[test]
fn a_fin_lets_a_small_segment_go() {
    let mut script = Script::open(Config { nagle: true, ..config() });
    script.write(300);
    script.write(300);
    script.close();
    assert_eq!(script.data(), [(1, 301), (301, 602)]);
}

#[test]
fn nagle_also_holds_what_a_small_window_cuts() {
    // RFC 9293 section 3.8.6.2.1 rule 3: a part of the largest window goes only if nothing is
    // outstanding.
    let mut script = Script::open_with(Config { nagle: true, ..config() }, |script| script.window = 1200);
    script.write(300);
    script.write(5000);
    assert_eq!(script.data(), [(1, 301)], "900 bytes of 1200 may be sent");
    script.ack(301);
    assert_eq!(script.data(), [(301, 1301)]);
}

#[test]
fn a_silly_window_is_left_alone_until_the_timer() {
    // RFC 9293 section 3.8.6.2.1: less than a segment and than half of the largest window, and not
    // all that waits.
    let mut script = Script::open_with(config(), |script| script.window = 4000);
    script.write(20_000);
    script.ack_window(4001, 1500);
    assert_eq!(script.data(), full(1, 5));
    script.ack_window(5001, 500);
    assert_eq!(script.data(), []);
    script.wait(RTO - 1);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!(script.data(), [(5001, 5501)]);
}

#[test]
fn half_of_the_largest_window_is_worth_a_segment() {
    // RFC 9293 section 3.8.6.2.1 rule 3, Fs = 1/2.
    let mut script = Script::open_with(config(), |script| script.window = 1200);
    script.write(5000);
    assert_eq!(script.data(), [(1, 1001)]);
    script.ack_window(1001, 599);
    assert_eq!(script.data(), []);
    script.ack_window(1001, 600);
    assert_eq!(script.data(), [(1001, 1601)]);
}

#[test]
fn the_last_bytes_go_through_a_small_window() {
    // RFC 9293 section 3.8.6.2.1 rule 2: everything that waits can be sent.
    let mut script = Script::open_with(config(), |script| script.window = 4000);
    script.write(4100);
    script.ack_window(4001, 100);
    assert_eq!(script.data(), [full(1, 4), vec![(4001, 4101)]].concat());
}

#[test]
fn an_idle_connection_starts_again_from_the_initial_window() {
    // RFC 5681 section 4.1: an interval exceeding the retransmission timeout.
    for (idle, on, segments) in [(RTO, true, 6), (RTO + 1, true, 4), (RTO + 1, false, 6)] {
        let mut script = Script::open(Config { slow_start_after_idle: on, ..config() });
        script.write(4000);
        script.ack(4001);
        script.segments();
        script.wait(idle);
        script.write(20_000);
        assert_eq!(script.data().len(), segments, "idle for {idle} ms");
    }
}

#[test]
fn without_scaling_the_window_ends_at_65535() {
    let mut script = Script::open(Config { initial_window: InitialWindow::Segments(100), ..config() });
    script.write(100_000);
    assert_eq!(script.data().len(), 65);
}

#[test]
fn with_scaling_more_than_65535_bytes_are_in_flight() {
    // RFC 7323 section 2.2.
    let config = Config { initial_window: InitialWindow::Segments(200), window_scaling: true, ..config() };
    let mut script = Script::open_with(config, |script| script.shift = 7);
    script.ack_window(1, 2000);
    script.write(300_000);
    assert_eq!(script.data(), full(1, 200));
}

#[test]
fn a_transfer_of_more_than_four_gigabytes_of_sequence_space() {
    // Segments of 65,000 bytes, acknowledged one by one: 70,000 of them are 4.55 * 10^9 bytes.
    let config = Config { mss: 65_000, window_scaling: true, ..config() };
    let mut script = Script::open_with(config, |script| script.shift = 7);
    script.ack(1);
    script.endpoint.write(130_000);
    script.pump();
    for i in 0..70_000 {
        assert_eq!(
            script.data(),
            if i == 0 {
                vec![(1, 65_001), (65_001, 130_001)]
            } else {
                let left = 65_001 + 65_000 * i;
                vec![(left, left + 65_000)]
            }
        );
        script.ack(65_001 + 65_000 * i);
        script.write(65_000);
    }
    assert_eq!(script.endpoint.sender().sequence().acked_bytes(), 65_000 * 70_000);
}

#[test]
fn a_stream_of_more_than_four_gigabytes_is_received() {
    let config = Config { mss: 65_000, window_scaling: true, ..config() };
    let mut script = Script::open(config);
    for i in 0..70_000 {
        script.peer_data(1 + 65_000 * i, 65_000);
        script.read(65_000);
    }
    assert_eq!(
        (script.endpoint.receiver().delivered(), script.endpoint.receiver().integrity_error()),
        (65_000 * 70_000, None)
    );
}

#[test]
fn the_send_buffer_bounds_what_is_written_and_not_acknowledged() {
    let mut script = Script::open(Config { send_buffer: 3000, ..config() });
    assert_eq!(script.endpoint.write(5000), 3000);
    script.pump();
    assert_eq!((script.endpoint.write(1), script.endpoint.sender().send_space()), (0, 0));
    script.ack(1001);
    assert_eq!(script.endpoint.write(5000), 1000);
}

#[test]
fn an_ack_rides_on_data_but_a_report_goes_by_itself() {
    // RFC 5681 section 2: an ACK with data is no duplicate ACK; and full segments have no room for
    // SACK blocks.
    let mut script = Script::open(config());
    script.write(60_000);
    script.segments();
    script.peer_data(1, 1000);
    assert_eq!(script.sent()[0], ". 4001:5001 ack 1001");
    script.peer_data(2001, 1000);
    assert_eq!(script.sent()[..2], [". 10001:10001 ack 1001 sack 2001:3001", ". 10001:11001 ack 1001"]);
}

#[test]
fn a_tuned_send_buffer_holds_two_windows_of_memory() {
    // tcp_sndbuf_expand: a segment of 1000 bytes counts (1000 + 320 + 320) rounded up to 2048, and
    // 256; one takes 1000 + 1280 of memory. Ten segments at least.
    let mut config = Config { initial_window: InitialWindow::Segments(10), ..config() };
    let tuning = Profile::linux_4_0().tuning.expect("tuned");
    config.tune_send_buffer(tuning.send);
    let mut script = Script::open(config);
    let room = |segments: u64| 2 * segments * (2048 + 256) * 1000 / 2280;
    assert_eq!(script.endpoint.sender().send_space(), room(10));
    // A writer that found it full has it grow with the window when there is room in that.
    assert_eq!(script.endpoint.write(1 << 20), room(10));
    script.pump();
    assert_eq!(script.data().len(), 10);
    // The window of 11 is full again: no growth.
    script.ack(1001);
    assert_eq!(script.endpoint.sender().send_space(), 1000);
    // All is sent, and a window of 13 (two more for an ACK, RFC 3465) is not full.
    script.ack(10_001);
    assert_eq!(script.endpoint.sender().send_space(), room(13) - (room(10) - 10_000));
}
