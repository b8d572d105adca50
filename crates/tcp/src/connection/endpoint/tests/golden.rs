//! A trace of Linux 4.0: what its counters are after each ACK while segments arrive out of order
//! and one of them is resent needlessly.
//!
//! Tables 4.2 and 4.3 of a thesis on reordering in Linux TCP (Oslo, 2015), with the profile of that
//! kernel.

use ackclock_cc::Cubic;

use super::*;
use crate::stack::profile::Profile;

/// Cumulative ACK, SACK ranges, `sacked_out`, `fackets_out`, `retrans_out`, `reordering`; in
/// segments, the first one outstanding being 1.
type Row = (u64, &'static [(u64, u64)], [u64; 4]);

const TRACE: [Row; 14] = [
    (1, &[(3, 4)], [1, 3, 0, 3]),
    (1, &[(3, 5)], [2, 4, 1, 3]),
    (1, &[(7, 8), (3, 5)], [3, 7, 2, 3]),
    (1, &[(7, 9), (3, 5)], [4, 8, 2, 3]),
    (1, &[(7, 9), (3, 5)], [4, 8, 2, 3]),
    (2, &[(7, 9), (3, 5)], [4, 7, 1, 8]),
    (5, &[(7, 9)], [2, 4, 0, 8]),
    (6, &[(7, 9)], [2, 3, 0, 8]),
    (9, &[], [0, 0, 0, 8]),
    (9, &[(11, 12)], [1, 3, 0, 8]),
    (9, &[(11, 13)], [2, 4, 0, 8]),
    (9, &[(2, 3), (11, 13)], [2, 4, 0, 8]),
    (10, &[(11, 13)], [2, 3, 0, 8]),
    (13, &[], [0, 0, 0, 8]),
];

#[test]
fn fourteen_acks_of_linux_4_0() {
    let profile = Profile::linux_4_0();
    // 1012 bytes of which timestamps take 12; the sender's window alone limits it.
    let config = Config { mss: 1012, window_scaling: false, ..profile.endpoint };
    let mut script = Script::controlled(config, Box::new(Cubic::new(profile.cubic))).connected();
    script.write(100_000);
    script.wait(20);
    // Slow start: two acknowledged, four sent, twelve outstanding.
    script.ack(2001);
    assert_eq!(script.endpoint.sender().loss_counts().packets_out, 12);
    let original = script.last_timestamp();
    let unit = |segment: u64| 2001 + (segment - 1) * 1000;
    for (i, &(ack, ranges, expected)) in TRACE.iter().enumerate() {
        script.wait(2);
        let ranges: Vec<_> = ranges.iter().map(|&(left, right)| (unit(left), unit(right))).collect();
        // The originals arrive, and the receiver echoes their timestamps.
        script.sack_echoing(unit(ack), &ranges, original);
        let counts = script.endpoint.sender().loss_counts();
        let found = [counts.sacked_out, counts.fackets_out, counts.retrans_out, u64::from(counts.reordering)];
        assert_eq!(found, expected, "row {}", i + 1);
    }
    assert_eq!(script.endpoint.sender().stats().undos, 1);
    assert_eq!(script.endpoint.sender().stats().timeouts, 0);
}
