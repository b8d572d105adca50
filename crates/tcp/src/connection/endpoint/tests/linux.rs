//! Sockets by the rules of Linux 6.1: windows, quick and delayed ACKs, PSH, small segments, the
//! send buffer.

use ackclock_cc::Needs;

use super::peer::full;
use super::witness::Witness;
use super::*;
use crate::stack::profile::Profile;
use crate::{TcpInfo, TransferRules, WriteFlags};

/// Segments of 1000 bytes, no timestamps, no window scale.
fn socket() -> Config {
    Config { mss: 1000, timestamps: false, window_scaling: false, ..Profile::linux_6_1().socket() }
}

/// Ends of the segments with data since the last look, and whether each has PSH.
fn pushes(script: &mut Script) -> Vec<(u64, bool)> {
    let segments = script.segments();
    let data = segments.iter().filter(|(_, segment, _)| segment.payload.len > 0);
    data.map(|(_, segment, _)| {
        let end = segment.payload.offset + u64::from(segment.payload.len) + 1;
        (end, segment.flags.contains(Flags::PSH))
    })
    .collect()
}

/// Window fields since the last look.
fn windows(script: &mut Script) -> Vec<u16> {
    script.segments().iter().map(|(_, segment, _)| segment.window).collect()
}

#[test]
fn the_first_window_is_half_the_buffer_in_whole_segments() {
    // tcp_select_initial_window: 131,072 / 2 = 65,536 = 44 * 1460 + 1296; with timestamps 45 *
    // 1448 + 376.
    for (timestamps, window) in [(false, 44 * 1460), (true, 45 * 1448)] {
        let mut script = Script::new(Config { timestamps, ..Profile::linux_6_1().socket() });
        script.endpoint.listen();
        let syn = script.syn(Flags::SYN);
        script.input(syn);
        let segments = script.segments();
        assert_eq!(segments[0].1.window, window);
        // ilog2(6,291,456) - 15 = 22 - 15.
        assert_eq!(segments[0].1.window_scale, Some(7));
    }
}

#[test]
fn a_window_is_offered_up_to_the_next_multiple_of_the_scale() {
    let mut script = Script::new(Config { timestamps: false, ..Profile::linux_6_1().socket() });
    script.endpoint.connect();
    script.pump();
    let answer = script.syn(Flags::SYN | Flags::ACK);
    script.input(answer);
    // tcp_select_window: what is offered already is kept, aligned: 64,240 -> 64,256 = 502 * 128.
    assert_eq!(windows(&mut script), [64_240, 502]);
    script.peer_data(1, 1000);
    // Then one segment is in reserve: 65,536 - 1460 = 64,076 -> 64,128 = 501 * 128.
    assert_eq!(windows(&mut script), [501]);
}

#[test]
fn a_full_buffer_closes_the_window_and_reading_opens_it() {
    // SO_RCVBUF of 4000 is doubled; half of 8000 is for data: 4 segments of 1000.
    let mut script = Script::accept({
        let mut config = socket();
        config.receive_buffer = 8000;
        config
    });
    script.peer_data(1, 1000);
    script.peer_data(1001, 1000);
    script.peer_data(2001, 1000);
    script.peer_data(3001, 1000);
    // __tcp_ack_snd_check leaves an ACK that closes the window to the reader or to the timer.
    assert_eq!(windows(&mut script), [3000, 2000]);
    script.wait(40);
    assert_eq!(windows(&mut script), [0]);
    // tcp_cleanup_rbuf: the window is told once it is at least twice what is left: 3 segments free,
    // 3000 with the reserve.
    script.read(4000);
    assert_eq!(windows(&mut script), [3000]);
}

#[test]
fn the_first_sixteen_segments_are_acknowledged_at_once() {
    // tcp_incr_quickack: min(64,000 / (2 * 1000), 16).
    let mut script = Script::accept(socket());
    for i in 0..16 {
        script.peer_data(1 + 1000 * i, 1000);
        script.endpoint.read(u64::MAX);
        assert_eq!(script.sent().len(), 1, "{i}");
    }
    script.peer_data(16_001, 1000);
    assert_eq!(script.sent().len(), 0);
    // More than one segment's worth.
    script.peer_data(17_001, 1);
    assert_eq!(script.sent().len(), 1);
}

#[test]
fn an_answer_makes_the_connection_interactive() {
    // tcp_event_data_sent; then the ACK waits for the answer, 40 ms at least.
    let mut script = Script::accept(socket());
    script.peer_data(1, 100);
    assert_eq!(script.sent(), [". 1:1 ack 101"]);
    script.write(100);
    assert_eq!(script.sent(), [". 1:101 ack 101"]);
    script.peer_data(101, 100);
    assert_eq!(script.sent().len(), 0);
    script.wait(40);
    assert_eq!(script.sent(), [". 101:101 ack 201"]);
    // tcp_delack_timer_handler: the delay was in vain, and the mode ends.
    script.wait(100);
    script.peer_data(201, 100);
    assert_eq!(script.sent().len(), 1);
}

#[test]
fn a_duplicate_brings_quick_acks_back() {
    let mut script = Script::accept(socket());
    script.peer_data(1, 100);
    script.endpoint.set_option(SocketOption::QuickAck(false));
    script.peer_data(101, 100);
    script.wait(100);
    script.sent();
    script.endpoint.set_option(SocketOption::QuickAck(false));
    script.peer_data(1, 100);
    assert_eq!(script.sent(), [". 1:1 ack 201 sack 1:101"]);
    script.peer_data(201, 100);
    assert_eq!(script.sent(), [". 1:1 ack 301"]);
}

#[test]
fn bursts_end_with_psh() {
    // tcp_tso_autosize at 100 ms: 10,000 * 200 % / 0.1 s >> 10 = 195 bytes, hence
    // tcp_min_tso_segs = 2.
    let mut script = Script::open(socket());
    script.write(9500);
    let every_second: Vec<_> = (1..=9).map(|i| (1000 * i + 1, i % 2 == 0)).collect();
    assert_eq!(pushes(&mut script), [&every_second[..], &[(9501, true)]].concat());
    // At most half the window at one go: 5 segments with a larger minimum.
    let mut config = socket();
    config.transfer.least_burst = 10;
    let mut script = Script::open(config);
    script.write(10_000);
    assert_eq!(pushes(&mut script), (1..=10).map(|i| (1000 * i + 1, i % 5 == 0)).collect::<Vec<_>>());
}

#[test]
fn one_small_segment_may_be_in_flight() {
    // tcp_minshall_check.
    let mut script = Script::open(socket());
    script.write(1000);
    script.write(300);
    assert_eq!(script.data(), [(1, 1001), (1001, 1301)], "a full segment in flight holds nothing back");
    script.write(300);
    assert_eq!(script.data(), []);
    script.ack(1001);
    assert_eq!(script.data(), []);
    script.ack(1301);
    assert_eq!(script.data(), [(1301, 1601)]);
    script.write(100);
    script.endpoint.set_option(SocketOption::NoDelay(true));
    script.pump();
    assert_eq!(script.data(), [(1601, 1701)]);
}

#[test]
fn a_cork_holds_a_small_segment_until_the_probe_timer() {
    let mut script = Script::open(socket());
    script.endpoint.set_option(SocketOption::Cork(true));
    script.write(1040);
    script.write(40);
    assert_eq!(script.data(), full(1, 1));
    script.endpoint.set_option(SocketOption::Cork(false));
    script.pump();
    assert_eq!(pushes(&mut script), [(1081, true)]);
    script.wait(100);
    script.ack(1081);
    script.endpoint.set_option(SocketOption::Cork(true));
    script.write(40);
    // SRTT of 100 ms and 200 ms.
    script.wait(299);
    assert_eq!(script.data(), []);
    script.wait(1);
    assert_eq!(script.data(), [(1081, 1121)]);
}

#[test]
fn more_to_come_waits_and_a_record_is_kept_to_itself() {
    let mut script = Script::open(socket());
    let more = WriteFlags { more: true, ..WriteFlags::default() };
    assert_eq!(script.endpoint.write_with(100, more), 100);
    script.pump();
    assert_eq!(script.data(), []);
    script.write(200);
    assert_eq!(pushes(&mut script), [(301, true)]);
    script.ack(301);
    let record = WriteFlags { eor: true, ..WriteFlags::default() };
    script.endpoint.set_option(SocketOption::NoDelay(true));
    script.endpoint.write_with(1400, record);
    script.write(1000);
    assert_eq!(pushes(&mut script), [(1301, false), (1701, true), (2701, true)]);
}

#[test]
fn segments_are_at_most_half_of_a_small_window_and_fit_into_it() {
    // tcp_bound_to_half_wnd: 1200 / 2; tcp_snd_wnd_test: nothing that would not fit whole.
    let mut script = Script::open_with(socket(), |script| script.window = 1200);
    script.write(2000);
    assert_eq!(script.data(), [(1, 601), (601, 1201)]);
    script.ack_window(601, 900);
    assert_eq!(script.data(), []);
    script.ack_window(1201, 900);
    assert_eq!(script.data(), [(1201, 1801), (1801, 2001)]);
}

#[test]
fn the_send_buffer_is_filled_in_buffers_of_half_the_window() {
    // A window of 32,000 makes buffers of 16,000. The first goes out as far as the initial window
    // lets it, 10,000, and is filled again: 26,000 in two buffers. Then 42,000 in three, which with
    // 3 * 1280 is less than 50,000, and 58,000.
    let mut script = Script::open_with(Config { send_buffer: 50_000, ..socket() }, |script| script.window = 32_000);
    assert_eq!(script.endpoint.write(100_000), 58_000);
    assert_eq!(script.endpoint.sender().send_space(), 0);
    // SO_SNDBUF is doubled.
    script.endpoint.set_option(SocketOption::SendBuffer(21_000));
    assert_eq!(script.endpoint.sender.queue.buffer, 42_000);
    // 2 * 10 segments of 2048 + 256 bytes (tcp_sndbuf_expand).
    let script = Script::open(Config { send_buffer: 16_384, ..socket() });
    assert_eq!(script.endpoint.sender.queue.buffer, 46_080);
}

#[test]
fn a_send_buffer_that_was_too_small_grows_with_an_ack() {
    let mut script = Script::open_with(Config { send_buffer: 16_384, ..socket() }, |script| script.window = 64_000);
    // Buffers of 32,000, of which the first is filled again when 10,000 have left; with 43,280 of
    // 46,080 used another one is begun. Sent data is no reason to grow.
    assert_eq!(script.endpoint.write(200_000), 74_000);
    script.pump();
    assert_eq!(script.endpoint.sender.queue.buffer, 46_080);
    script.wait(100);
    script.ack(10_001);
    // The window is 20 segments and full of the next 20: it does not grow
    // (tcp_should_expand_sndbuf).
    assert_eq!(script.endpoint.sender.queue.buffer, 46_080);
}

#[test]
fn the_time_that_a_small_send_buffer_costs() {
    // 9216 bytes, in which one buffer of half the window, 32,000, is begun at a time.
    let mut script = Script::open_with(socket(), |script| script.window = 64_000);
    script.endpoint.set_option(SocketOption::SendBuffer(4608));
    // Until the congestion window holds more than that.
    while script.endpoint.sender().cwnd() <= 40_000 {
        while script.endpoint.write(100_000) > 0 {
            script.pump();
        }
        script.wait(100);
        let sent = script.endpoint.sender().sequence().nxt();
        script.ack(sent);
    }
    while script.endpoint.write(100_000) > 0 {
        script.pump();
    }
    let before = TcpInfo::of(&script.endpoint, script.now).sndbuf_limited;
    script.wait(100);
    let sent = script.endpoint.sender().sequence().nxt();
    script.ack(sent);
    // There is room again.
    script.wait(50);
    let info = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((info.sndbuf_limited - before, info.rwnd_limited), (100_000, 0));
}

#[test]
fn a_bound_on_what_is_unsent_stops_writing() {
    let mut script = Script::open_with(socket(), |script| script.window = 32_000);
    script.endpoint.set_option(SocketOption::NotSentLowat(Some(2000)));
    // 10,000 leave, and the buffer that they leave behind is filled.
    assert_eq!(script.endpoint.write(100_000), 26_000);
}

#[test]
fn what_tcp_info_tells() {
    let mut script = Script::open(Config { timestamps: true, window_scaling: true, mss: 1460, ..socket() });
    let info = TcpInfo::of(&script.endpoint, script.now);
    let expected = TcpInfo {
        state: 1,
        options: crate::TCPI_OPT_TIMESTAMPS | crate::TCPI_OPT_SACK | crate::TCPI_OPT_WSCALE,
        rcv_wscale: 7,
        // 100 ms + max(2 * 100 ms, 200 ms).
        rto: 300_000,
        rtt: 100_000,
        rttvar: 50_000,
        min_rtt: 100_000,
        snd_mss: 1448,
        advmss: 1448,
        rcv_mss: 536,
        pmtu: 1500,
        snd_cwnd: 10,
        snd_ssthresh: crate::INFINITE_SSTHRESH,
        reordering: 3,
        segs_out: 2,
        segs_in: 1,
        delivered: 1,
        bytes_acked: 1,
        snd_wnd: 65_535,
        pacing_rate: u64::MAX,
        ..TcpInfo::default()
    };
    let rest = TcpInfo {
        last_data_sent: info.last_data_sent,
        last_data_recv: info.last_data_recv,
        rcv_ssthresh: info.rcv_ssthresh,
        rcv_space: info.rcv_space,
        ..expected
    };
    assert_eq!(info, rest);
    // The clamp of 65,536 less a segment; ten segments.
    assert_eq!((info.rcv_ssthresh, info.rcv_space), (65_536 - 1448, 14_480));

    script.write(5 * 1448);
    script.wait(100);
    script.sack(1449, &[(2897, 4345)]);
    let info = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((info.unacked, info.sacked, info.lost, info.retrans), (4, 1, 0, 0));
    assert_eq!((info.ca_state, info.delivered, info.bytes_acked), (1, 3, 1449));
    assert_eq!((info.data_segs_out, info.bytes_sent, info.notsent_bytes), (5, 7240, 0));
    assert_eq!((info.busy_time, info.last_data_sent, info.last_ack_recv), (100_000, 100, 0));
}

#[test]
fn a_fin_without_data_is_no_data_segment() {
    // `__tcp_transmit_skb` counts `data_segs_out` where there is more than a header.
    let mut script = Script::open(socket());
    script.write(500);
    script.ack(501);
    let before = TcpInfo::of(&script.endpoint, script.now);
    script.close();
    let after = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((after.segs_out, after.data_segs_out), (before.segs_out + 1, 1));
    assert_eq!(before.data_segs_out, 1);
    // It is sent again: `total_retrans` counts it, as each segment of `tcp_retransmit_skb`.
    script.wait(10_000);
    let (info, stats) = (TcpInfo::of(&script.endpoint, script.now), script.endpoint.sender().stats());
    assert!(info.total_retrans > 0 && stats.retransmitted_packets == u64::from(info.total_retrans), "{stats:?}");
    assert_eq!((info.data_segs_out, stats.data_packets(), stats.retransmitted_data()), (1, 1, 0));
}

#[test]
fn the_time_that_a_closed_window_costs() {
    let mut script = Script::open(socket());
    script.write(500);
    script.wait(100);
    script.ack_window(501, 0);
    script.write(1000);
    script.wait(250);
    let info = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((info.busy_time, info.rwnd_limited), (350_000, 250_000));
    script.ack_window(501, 10_000);
    assert_eq!(script.data().last(), Some(&(501, 1501)));
    script.wait(100);
    script.ack(1501);
    let info = TcpInfo::of(&script.endpoint, script.now);
    assert_eq!((info.busy_time, info.rwnd_limited), (450_000, 250_000));
}

#[test]
fn the_timeout_goes_by_the_first_segment_of_an_ack_and_the_controller_by_the_last() {
    // tcp_ack_update_rtt: seq_rtt_us of first_ackt for the estimator, ca_rtt_us of last_ackt for
    // the rest; of sockets and of the profile's endpoints. The handshake has measured 100 ms.
    let config = Config { mss: 1000, timestamps: false, window_scaling: false, ..Profile::linux_6_1().endpoint };
    for config in [config, socket()] {
        let mut script = Script::open(config);
        assert_eq!(script.endpoint.sender.rtt.srtt(), Some(Span::from_millis(100)));
        script.write(1000);
        script.wait(20);
        script.write(1000);
        script.wait(80);
        script.ack(2001);
        let endpoint = &script.endpoint;
        assert_eq!(endpoint.sender.latest_sample, Some(Span::from_millis(80)));
        assert_eq!(
            (endpoint.sender.rtt.srtt(), endpoint.sender.rtt.min()),
            (Some(Span::from_millis(100)), endpoint.sender.latest_sample)
        );
    }
}

#[test]
fn psh_is_decided_as_the_application_writes() {
    // forced_push, with a window of 8000: within the first write more than 4000 are written without
    // PSH at 5001, and its end fills a segment and keeps PSH. The second write ends in a segment to
    // which the third adds.
    let rules = Profile::linux_6_1().endpoint.transfer;
    let config = Config { transfer: rules, initial_window: InitialWindow::Segments(20), ..config() };
    let mut script = Script::open_with(config.clone(), |script| script.window = 8000);
    script.endpoint.write(10_000);
    script.endpoint.write(2500);
    script.write(700);
    let mut ends = Vec::new();
    for acked in [8001, 13_001, 13_201] {
        ends.extend(pushes(&mut script).into_iter().filter_map(|(end, push)| push.then_some(end)));
        script.ack(acked);
    }
    assert_eq!(ends, [5001, 10_001, 13_201]);
    // Before the peer's window is known, the ends of writes are kept: 1 + 4000 is passed in the
    // second write alone, pushed_seq being where the first ended.
    let mut script = Script::new(config);
    script.window = 8000;
    script.endpoint.connect();
    script.pump();
    script.endpoint.write(2000);
    script.endpoint.write(6000);
    script.wait(100);
    let syn = script.syn(Flags::SYN | Flags::ACK);
    script.input(syn);
    let ends: Vec<u64> = pushes(&mut script).into_iter().filter_map(|(end, push)| push.then_some(end)).collect();
    assert_eq!(ends, [2001, 7001, 8001]);
}

#[test]
fn writes_before_the_handshake_are_told_apart() {
    // The first window is at most 65,535, half of which is 32,767 = 32 * 1000 + 767: as many small
    // writes are one; larger ones are not.
    let rules = Profile::linux_6_1().endpoint.transfer;
    let script = Script::new(Config { transfer: rules, send_buffer: 600_000, ..config() });
    let sender = script.endpoint.sender();
    assert_eq!(
        [1000, 32_767, 32_768, 131_072].map(|bytes| sender.writes_at_once(bytes)),
        [32_000, 32_767, 32_768, 131_072]
    );
}

#[test]
fn samples_are_told_before_the_state_reacts() {
    // tcp_clean_rtx_queue calls pkts_acked before tcp_fastretrans_alert, in every state. An ordinary
    // ACK has no state to react.
    let config = Config { mss: 1000, timestamps: false, ..Profile::linux_6_1().endpoint };
    let witness = Witness::new(10_000, Needs::default());
    let mut script = witness.open(config);
    script.write(10_000);
    script.wait(100);
    script.ack(1001);
    let log = witness.take();
    assert_eq!((log.order.as_str(), log.acks[0].sampled, log.samples.len()), ("A", false, 0));
    for (reported, order) in [(3001, ""), (5001, "S"), (6001, "")] {
        script.sack(1001, &[(2001, reported)]);
        let log = witness.take();
        assert_eq!((log.order.as_str(), log.samples), (order, vec![0]), "{reported}");
    }
}

#[test]
fn a_forced_push_stays_with_what_is_sent_again() {
    // tcp_mark_push is of the socket buffer.
    let rules = Profile::linux_6_1().endpoint.transfer;
    let config = Config { transfer: rules, initial_window: InitialWindow::Segments(20), ..config() };
    let mut script = Script::open_with(config, |script| script.window = 8000);
    script.write(8000);
    assert!(pushes(&mut script).contains(&(5001, true)));
    script.ack(4001);
    script.wait(2 * RTO);
    assert_eq!(pushes(&mut script).first(), Some(&(5001, true)));
}

#[test]
fn psh_is_where_a_write_ends_by_2_4() {
    // tcp_sendmsg of 2.4.0: a write of 2500 bytes ends within the third segment and with the fifth.
    let rules = Profile::linux_2_4().endpoint.transfer;
    let transfer = TransferRules { write_size: 2500, ..rules };
    let config = || Config { initial_window: InitialWindow::Segments(20), nagle: false, ..config() };
    let mut script = Script::open(Config { transfer, ..config() });
    script.write(9000);
    let ends = |ends: [u64; 4]| (1..=9).map(|n| n * 1000 + 1).map(|end| (end, ends.contains(&end))).collect::<Vec<_>>();
    assert_eq!(pushes(&mut script), ends([3001, 5001, 8001, 9001]));
    let mut script = Script::open(Config { transfer: rules, ..config() });
    script.write(9000);
    assert_eq!(pushes(&mut script), ends([9001; 4]), "the size of writes is not known");
}

#[test]
fn psh_is_where_half_of_the_window_has_gone_without_it_by_2_4() {
    // pushed_seq + (max_window >> 1): a window of four segments, and writes of five, of which the
    // third and the last have PSH.
    let rules = Profile::linux_2_4().endpoint.transfer;
    let transfer = TransferRules { write_size: 5000, ..rules };
    let config = Config { transfer, initial_window: InitialWindow::Segments(20), ..config() };
    let mut script = Script::open_with(config.clone(), |script| script.window = 4000);
    script.write(9500);
    assert_eq!(pushes(&mut script), [(1001, false), (2001, false), (3001, true), (4001, false)]);
    script.ack(4001);
    assert_eq!(pushes(&mut script), [(5001, true), (6001, false), (7001, false), (8001, true)]);
    // In a write of nine the third, the sixth and the last; then all that was written.
    let transfer = TransferRules { write_size: 9000, ..rules };
    let mut script = Script::open_with(Config { transfer, ..config }, |script| script.window = 4000);
    script.write(9500);
    let mut ends = Vec::new();
    for acked in [4001, 8001, 9001] {
        ends.extend(pushes(&mut script).into_iter().filter_map(|(end, push)| push.then_some(end)));
        script.ack(acked);
    }
    assert_eq!(ends, [3001, 6001, 9001, 9501]);
}
