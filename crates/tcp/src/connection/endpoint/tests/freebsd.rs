//! Sockets by the rules of FreeBSD 14: windows, delayed ACKs, SACK and DSACK blocks.

use super::*;
use crate::stack::profile::Profile;

fn socket() -> Config {
    Config { timestamps: false, window_scaling: false, ..Profile::freebsd_14().socket() }
}

fn windows(script: &mut Script) -> Vec<u16> {
    script.segments().iter().map(|(_, segment, _)| segment.window).collect()
}

#[test]
fn the_window_is_the_buffer_in_whole_segments() {
    // 65,536 rounded up to 45 * 1460 = 65,700, of which a window without scale holds 65,535.
    let mut script = Script::accept(socket());
    script.peer_data(1, 1000);
    script.peer_data(1001, 100);
    assert_eq!(windows(&mut script), [(65_700 - 1100) as u16]);
    // An update once two segments and a quarter of the buffer, or half of it, can be added.
    script.read(1100);
    assert_eq!(script.sent().len(), 0);
    for i in 0..23 {
        script.peer_data(1101 + 1460 * i, 1460);
    }
    script.wait(40);
    script.sent();
    script.read(23 * 1460);
    // More than half: 65,700 in place of 65,700 - 33,580.
    assert_eq!(windows(&mut script), [65_535]);
}

#[test]
fn the_scale_expresses_the_largest_buffer() {
    // 65,535 << 5 < 2,097,152 <= 65,535 << 6.
    let mut script = Script::new(Profile::freebsd_14().socket());
    script.endpoint.connect();
    script.pump();
    assert_eq!(script.segments()[0].1.window_scale, Some(6));
}

#[test]
fn every_second_segment_is_acknowledged_whatever_its_size() {
    // DELAY_ACK: while the timer runs the next one is acknowledged.
    let mut script = Script::accept(socket());
    script.peer_data(1, 1);
    assert_eq!(script.sent().len(), 0);
    script.peer_data(2, 1);
    assert_eq!(script.sent(), [". 1:1 ack 3"]);
    script.peer_data(3, 1);
    script.wait(39);
    assert_eq!(script.sent().len(), 0);
    script.wait(1);
    assert_eq!(script.sent(), [". 1:1 ack 4"]);
}

/// Blocks at 1001, 2001 and 3001, each of 500 bytes, the last one newest.
fn three_blocks() -> Script {
    let mut script = Script::accept(socket());
    for left in [1001, 2001, 3001] {
        script.peer_data(left, 500);
    }
    assert_eq!(script.sent()[2..], [". 1:1 ack 1 sack 3001:3501 sack 2001:2501 sack 1001:1501"]);
    script
}

#[test]
fn a_segment_that_fills_a_gap_and_touches_the_next_block() {
    // tcp_update_dsack_list: the lowest overlap, the block that all of it makes, the rest.
    let mut script = three_blocks();
    script.peer_data(1001, 1000);
    assert_eq!(script.sent(), [". 1:1 ack 1 sack 1001:1501 sack 1001:2501 sack 3001:3501"]);
    // tcp_clean_dsack_blocks takes reports below the ACK off the list, and leaves one above it.
    script.peer_data(5001, 500);
    assert_eq!(script.sent(), [". 1:1 ack 1 sack 5001:5501 sack 1001:1501 sack 1001:2501 sack 3001:3501"]);
}

#[test]
fn a_segment_within_a_block_is_reported_before_it() {
    let mut script = three_blocks();
    script.peer_data(2101, 100);
    assert_eq!(script.sent(), [". 1:1 ack 1 sack 2101:2201 sack 2001:2501 sack 3001:3501 sack 1001:1501"]);
    script.peer_data(2001, 500);
    assert_eq!(script.sent(), [". 1:1 ack 1 sack 2001:2501 sack 2001:2501 sack 3001:3501 sack 1001:1501"]);
}

#[test]
fn the_part_below_the_ack_is_the_report_whatever_else_is_repeated() {
    // tcp_do_segment drops it first and reports it; the overlap with 1001:1501 goes unreported.
    let mut script = three_blocks();
    script.peer_data(1, 500);
    assert_eq!(script.sent(), [". 1:1 ack 501 sack 3001:3501 sack 2001:2501 sack 1001:1501"]);
    script.peer_data(301, 1000);
    assert_eq!(script.sent(), [". 1:1 ack 1501 sack 301:501 sack 3001:3501 sack 2001:2501"]);
    // Without such a part the overlap is told.
    script.peer_data(1501, 700);
    assert_eq!(script.sent(), [". 1:1 ack 2501 sack 2001:2201 sack 3001:3501"]);
}

#[test]
fn one_report_for_a_segment_that_covers_several_blocks() {
    let mut script = three_blocks();
    script.peer_data(501, 3500);
    assert_eq!(script.sent(), [". 1:1 ack 1 sack 1001:1501 sack 501:4001"]);
}

#[test]
fn a_peer_that_asks_for_ecn_gets_it() {
    // net.inet.tcp.ecn.enable = 2.
    let mut script = Script::new(socket());
    script.endpoint.listen();
    let syn = script.syn(Flags::SYN | Flags::ECE | Flags::CWR);
    script.input(syn);
    assert!(script.segments()[0].1.flags.contains(Flags::ECE));
    script.endpoint.connect();
    let mut script = Script::new(socket());
    script.endpoint.connect();
    script.pump();
    assert!(!script.segments()[0].1.flags.contains(Flags::ECE));
}
