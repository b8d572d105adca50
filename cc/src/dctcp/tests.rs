use super::*;
use crate::fixture::{MSS, acks, cwnd, flight, ssthresh};

/// In congestion avoidance with a window of `segments`.
fn dctcp(config: DctcpConfig, segments: u64) -> Dctcp {
    let mut cc = Dctcp::new(config);
    cc.on_established(&Flight { initial_window: segments * MSS, ..flight(0, segments) });
    cc.on_ecn(EcnFeedback::Dctcp);
    cc.state.window.ssthresh = segments * MSS;
    cc
}

/// A window of data of `segments`, `marked` of them, each with its ACK.
fn round(cc: &mut Dctcp, una: &mut u64, segments: u64, marked: u64) {
    for i in 0..segments {
        *una += MSS;
        let ce = if i < marked { MSS } else { 0 };
        let f = Flight { snd_una: *una, snd_nxt: *una + segments * MSS, ..flight(0, segments) };
        cc.on_arrival(&f, &Arrival { ack: *una, acked: MSS, delivered: MSS, ce, ..Arrival::default() });
    }
}

#[test]
fn alpha_follows_the_share_of_marks_once_per_window() {
    // RFC 8257 section 3.3 step 6 with g = 1/16, in 1/1024 and Linux's rounding. The first
    // observation ends with the first ACK above SND.UNA at the start.
    let mut cc = dctcp(DctcpConfig::default(), 10);
    let mut una = 0;
    assert_eq!(cc.alpha, 1024);
    round(&mut cc, &mut una, 1, 0);
    assert_eq!(cc.alpha, 960, "1024 - 64");
    // From here a window is over with the first ACK above what was next to be sent then: after two
    // segments, and then after every twelve.
    let mut alpha = vec![];
    for _ in 0..5 {
        round(&mut cc, &mut una, 11, 11);
        alpha.push(cc.alpha);
    }
    // 960 - 60 + 64 = 964, and so on by 4: 964 >> 4 = 968 >> 4 = 972 >> 4 = 60.
    assert_eq!(alpha, [964, 968, 972, 976, 979], "976 - 61 + 64 = 979");
}

#[test]
fn without_marks_alpha_decays_to_nothing() {
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 20, ..DctcpConfig::default() }, 1);
    let mut windows = vec![];
    for _ in 0..7 {
        cc.delivered = 100;
        cc.update_alpha();
        windows.push(cc.alpha);
    }
    // 20 >> 4 = 1 is taken off until 15, of which a sixteenth is nothing: all of it goes
    // (`min_not_zero`).
    assert_eq!(windows, [19, 18, 17, 16, 15, 0, 0]);
}

#[test]
fn the_average_converges_to_a_constant_share() {
    // A quarter marked: 1024/4/16 = 16 is added, and alpha >> 4 taken off, which balance at 256 <=
    // alpha < 272.
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 0, ..DctcpConfig::default() }, 1);
    for _ in 0..200 {
        (cc.delivered, cc.marked) = (4000, 1000);
        cc.update_alpha();
    }
    assert!((256..272).contains(&cc.alpha), "{}", cc.alpha);
}

#[test]
fn marks_take_half_of_alpha_off_the_window() {
    // 100 segments: alpha 1 halves, alpha 1/4 takes an eighth, alpha 0 nothing.
    for (alpha, segments) in [(1024, 50 * MSS), (256, 100 * MSS - 100 * MSS / 8), (0, 100 * MSS)] {
        let mut cc = dctcp(DctcpConfig { alpha_on_init: alpha, ..DctcpConfig::default() }, 100);
        cc.on_signal(&flight(0, 100), Signal::Ecn);
        assert_eq!(cc.window(), Window { cwnd: segments, ssthresh: segments });
    }
    let mut cc = dctcp(DctcpConfig::default(), 3);
    cc.on_signal(&flight(0, 3), Signal::Ecn);
    assert_eq!(cwnd(&cc), 2);
}

#[test]
fn the_first_mark_may_end_slow_start_with_half_a_window() {
    let config = DctcpConfig { slowstart: true, alpha_on_init: 0, ..DctcpConfig::default() };
    let mut cc = dctcp(config, 100);
    cc.on_signal(&flight(0, 100), Signal::Ecn);
    assert_eq!((cwnd(&cc), cc.alpha), (50, 1024));
    // The next ones go by alpha again.
    cc.alpha = 512;
    cc.on_signal(&flight(0, 50), Signal::RecoveryEnd);
    cc.on_signal(&flight(0, 50), Signal::Ecn);
    assert_eq!(cc.window().cwnd, 50 * MSS * 3 / 4);
}

#[test]
fn a_loss_and_a_timeout_are_renos() {
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 0, ..DctcpConfig::default() }, 20);
    cc.on_signal(&flight(0, 20), Signal::Loss);
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (10, 10));
    cc.on_signal(&flight(0, 10), Signal::Spurious);
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (20, 20));
    cc.on_signal(&flight(0, 20), Signal::Timeout { repeated: false, kept: 0 });
    assert_eq!((cwnd(&cc), ssthresh(&cc)), (1, 10));
}

#[test]
fn a_loss_after_marks_halves_the_window_of_before() {
    // Alpha 1/4: 100 segments become 87.5, and a loss then makes 50 of them (cc_dctcp.c,
    // snd_cwnd_prev).
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 256, ..DctcpConfig::default() }, 100);
    cc.on_signal(&flight(0, 100), Signal::Ecn);
    cc.on_signal(&flight(0, 87), Signal::Loss);
    assert_eq!(cwnd(&cc), 50);
    cc.on_signal(&flight(0, 50), Signal::RecoveryEnd);
    cc.on_signal(&flight(0, 50), Signal::Loss);
    assert_eq!(cwnd(&cc), 25);
}

#[test]
fn without_ecn_it_is_reno() {
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 0, ..DctcpConfig::default() }, 20);
    cc.on_ecn(EcnFeedback::None);
    cc.on_signal(&flight(0, 20), Signal::Ecn);
    assert_eq!(cwnd(&cc), 10);
    cc.on_signal(&flight(0, 10), Signal::RecoveryEnd);
    acks(&mut cc, 100, 10, 2);
    assert_eq!(cwnd(&cc), 11);
}

fn ruled(rules: DctcpRules) -> DctcpConfig {
    DctcpConfig { rules, ..DctcpConfig::default() }
}

#[test]
fn linux_ends_an_observation_with_its_last_byte_and_counts_that_ack_for_the_next() {
    // Windows of ten segments, in each of which the last is marked. RFC 8257 and FreeBSD (>): ten
    // ACKs do not end the window, the eleventh does. Linux (>=): the tenth does, without what it
    // delivers.
    let state = |rules, acks: u64| {
        let mut cc = dctcp(DctcpConfig { alpha_on_init: 0, ..ruled(rules) }, 10);
        cc.window_end = 10 * MSS;
        for i in 1..=acks {
            let ce = if i % 10 == 0 { MSS } else { 0 };
            let f = Flight { snd_una: i * MSS, snd_nxt: (i + 10) * MSS, ..flight(0, 10) };
            cc.on_arrival(&f, &Arrival { ack: i * MSS, acked: MSS, delivered: MSS, ce, ..Arrival::default() });
        }
        (cc.window_end / MSS, cc.delivered / MSS, cc.marked / MSS, cc.alpha)
    };
    for rules in [DctcpRules::Rfc8257, DctcpRules::FreeBsd] {
        assert_eq!(state(rules, 10), (10, 10, 1, 0));
        // 1024 / 16 / 11 = 5.
        assert_eq!(state(rules, 11), (21, 0, 0, 5));
    }
    assert_eq!(state(DctcpRules::Linux, 9), (10, 9, 0, 0));
    assert_eq!(state(DctcpRules::Linux, 10), (20, 1, 1, 0));
    // 1024 / 16 / 10 = 6.
    assert_eq!(state(DctcpRules::Linux, 20), (30, 1, 1, 6));
}

#[test]
fn linux_takes_off_whole_segments_and_halves_what_marks_have_left() {
    // Alpha 1/4 of 100 segments: 100 - (25600 >> 11 = 12) = 88, and a loss then 44
    // (`dctcp_react_to_loss`).
    let mut cc = dctcp(DctcpConfig { alpha_on_init: 256, ..ruled(DctcpRules::Linux) }, 100);
    cc.on_signal(&flight(0, 100), Signal::Ecn);
    assert_eq!(cc.window().cwnd, 88 * MSS);
    cc.on_signal(&flight(0, 88), Signal::Loss);
    assert_eq!(cwnd(&cc), 44);
}

#[test]
fn an_idle_time_begins_alpha_anew_on_freebsd() {
    for (rules, alpha) in [(DctcpRules::Rfc8257, 100), (DctcpRules::Linux, 100), (DctcpRules::FreeBsd, 1024)] {
        let mut cc = dctcp(ruled(rules), 10);
        (cc.alpha, cc.delivered, cc.marked) = (100, 5 * MSS, MSS);
        cc.on_signal(&flight(9000, 0), Signal::IdleRestart);
        assert_eq!(cc.alpha, alpha, "{rules:?}");
        assert_eq!(cc.marked == 0, rules == DctcpRules::FreeBsd);
    }
}

/// RFC 8257 section 3.3 step 3: an ACK up to WindowEnd does not end the observation.
#[test]
fn the_observation_ends_beyond_the_window() {
    let mut cc = dctcp(DctcpConfig::default(), 10);
    cc.window_end = 5 * MSS;
    for (segments, alpha) in [(5, 1024), (6, 960)] {
        let arrival = Arrival { ack: segments * MSS, acked: MSS, delivered: MSS, ..Arrival::default() };
        cc.on_arrival(&Flight { snd_una: segments * MSS, snd_nxt: 20 * MSS, ..flight(0, 10) }, &arrival);
        assert_eq!(cc.alpha, alpha);
    }
}
