//! The laws of units, worked out from the kernels' functions.

use super::*;

const MS: u64 = 1_000_000;

/// Ten segments of 1000 bytes are the congestion window, of which there is room for one; a buffer
/// of 40 kB is not the last one. Nothing says that it is sent.
fn waiting() -> Sight {
    Sight {
        state: CaState::Open,
        mss: 1000,
        most: 2,
        send_win: 50_000,
        cong_win: 1000,
        windows: [60_000, 10_000],
        len: 40_000,
        is_tail: false,
        fin: false,
        ends: false,
        deferred: None,
        jiffy: 100,
        idle: Span::ZERO,
        age: Some(Span::from_millis(99)),
        srtt: Span::from_millis(100),
    }
}

const ALL: [OffloadRule; 3] = [OffloadRule::LINUX_4_0, OffloadRule::LINUX_6_1, OffloadRule::LINUX_6_18];

#[test]
fn a_unit_that_could_become_larger_waits() {
    for rule in ALL {
        assert_eq!(rule.choose(&waiting()), Choice::ForCwnd);
    }
}

#[test]
fn a_full_unit_a_whole_buffer_or_a_third_of_the_window_is_sent() {
    for rule in ALL {
        assert_eq!(rule.choose(&Sight { cong_win: 2000, ..waiting() }), Choice::Send);
        // A unit that fits altogether is sent, if nothing can be added to it.
        assert_eq!(rule.choose(&Sight { len: 1000, ..waiting() }), Choice::Send);
        assert_ne!(rule.choose(&Sight { len: 1000, is_tail: true, ..waiting() }), Choice::Send);
        // tcp_tso_win_divisor: a third of the smaller window, 3333 and 3000.
        let large = Sight { most: 20, cong_win: 4000, ..waiting() };
        assert_eq!(rule.choose(&large), Choice::Send);
        assert_ne!(rule.choose(&Sight { cong_win: 3000, ..large }), Choice::Send);
        assert_eq!(rule.choose(&Sight { cong_win: 3000, windows: [9000, 10_000], ..large }), Choice::Send);
    }
}

#[test]
fn trouble_lets_units_go() {
    // 4.0: any state but Open; later ones: those of a repair.
    let states = [CaState::Open, CaState::Disorder, CaState::Cwr, CaState::Recovery, CaState::Loss];
    for (rule, first) in [(OffloadRule::LINUX_4_0, 1), (OffloadRule::LINUX_6_1, 3), (OffloadRule::LINUX_6_18, 3)] {
        for (number, &state) in states.iter().enumerate() {
            let sent = rule.choose(&Sight { state, ..waiting() }) == Choice::Send;
            assert_eq!(sent, number >= first, "{rule:?} in {state:?}");
        }
    }
}

#[test]
fn a_fin_does_not_wait() {
    // 4.0 looks first; later ones wait for a window that does not hold all.
    let last = Sight { fin: true, is_tail: true, len: 5000, ..waiting() };
    assert_eq!(OffloadRule::LINUX_4_0.choose(&last), Choice::Send);
    assert_eq!(OffloadRule::LINUX_6_1.choose(&last), Choice::ForCwnd);
    // A window of 2000 bytes has room for 500 bytes more than a segment, and a unit could have ten.
    let small = Sight { fin: true, is_tail: true, most: 10, cong_win: 2000, len: 1500, ..waiting() };
    for rule in ALL {
        assert_eq!(rule.choose(&small), Choice::Send);
        let open = Sight { fin: false, ..small };
        assert_eq!(rule.choose(&open), Choice::ForMore);
        let sends = rule != OffloadRule::LINUX_4_0;
        assert_eq!(rule.choose(&Sight { ends: true, ..open }) == Choice::Send, sends, "the end of a record");
    }
}

#[test]
fn a_unit_waits_for_less_than_two_ticks() {
    let since = |deferred| OffloadRule::LINUX_4_0.choose(&Sight { deferred: Some(deferred), ..waiting() });
    assert_eq!((since(100), since(99), since(98)), (Choice::ForCwnd, Choice::ForCwnd, Choice::Send));
    // The rule looks at nothing else in time.
    let idle = Sight { idle: Span::from_millis(50), age: None, ..waiting() };
    assert_eq!(OffloadRule::LINUX_4_0.choose(&idle), Choice::ForCwnd);
}

#[test]
fn a_unit_waits_if_the_last_one_is_recent_and_the_next_ack_is_near() {
    for rule in [OffloadRule::LINUX_6_1, OffloadRule::LINUX_6_18] {
        let after = |nanos| rule.choose(&Sight { idle: Span::from_nanos(nanos), ..waiting() });
        assert_eq!((after(MS), after(MS + 1)), (Choice::ForCwnd, Choice::Send));
        assert_eq!(rule.choose(&Sight { age: None, ..waiting() }), Choice::Send, "no ACK will come");
    }
    // The unit waits for an ACK that is due within a millisecond.
    let aged = |age| OffloadRule::LINUX_6_1.choose(&Sight { age: Some(Span::from_micros(age)), ..waiting() });
    assert_eq!(aged(98_999), Choice::Send);
    assert_eq!(aged(99_000), Choice::ForCwnd);
    // The unit waits for an ACK that is due within half a round trip, where that is less.
    let near = |age| Sight { srtt: Span::from_micros(1000), age: Some(Span::from_micros(age)), ..waiting() };
    assert_eq!(OffloadRule::LINUX_6_1.choose(&near(499)), Choice::Send);
    assert_eq!(OffloadRule::LINUX_6_1.choose(&near(500)), Choice::ForCwnd);
}

#[test]
fn what_it_waits_for_is_the_smaller_window() {
    let peer = Sight { send_win: 1000, cong_win: 5000, windows: [60_000, 20_000], ..waiting() };
    assert_eq!(OffloadRule::LINUX_4_0.choose(&peer), Choice::ForMore);
    assert_eq!(OffloadRule::LINUX_6_1.choose(&peer), Choice::ForPeer);
    // 4.0 asks for less than the buffer, later ones for no more.
    let all = Sight { is_tail: true, len: 1000, ..waiting() };
    assert_eq!(OffloadRule::LINUX_4_0.choose(&all), Choice::ForMore);
    assert_eq!(OffloadRule::LINUX_6_1.choose(&all), Choice::ForCwnd);
}

#[test]
fn a_unit_has_a_milliseconds_worth() {
    let most = |rule: OffloadRule, rate, min_rtt| rule.most_segments(rate, min_rtt, 1448, 2);
    let far = Some(Span::from_millis(100));
    for rule in ALL {
        // 2.5 MB/s >> 10 = 2441 bytes, one segment: two at least.
        assert_eq!(most(rule, 2_500_000, far), 2);
        // 12.5 MB/s: 12,207 bytes, eight segments.
        assert_eq!(most(rule, 12_500_000, far), 8);
    }
    // No more than 65,536 - 320 - 1 bytes: 45.9 segments of 1420 bytes, 121.7 of 536.
    assert_eq!(ALL.map(|rule| rule.most_segments(u64::MAX, far, 1420, 2)), [45; 3]);
    assert_eq!(ALL.map(|rule| rule.most_segments(u64::MAX, far, 536, 2)), [121; 3]);
    // tcp_tso_rtt_log: 65,215 bytes halved for each 512 us of the least RTT.
    assert_eq!(most(OffloadRule::LINUX_4_0, 2_500_000, Some(Span::from_micros(100))), 2);
    assert_eq!(most(OffloadRule::LINUX_6_1, 2_500_000, Some(Span::from_micros(100))), 45);
    // 1536 us: an eighth, 8151 + 1944 bytes, 6.97 segments, and 8151 + 2441 bytes, 7.3.
    assert_eq!(most(OffloadRule::LINUX_6_1, 1_991_000, Some(Span::from_micros(1536))), 6);
    assert_eq!(most(OffloadRule::LINUX_6_1, 2_500_000, Some(Span::from_micros(1536))), 7);
    assert_eq!(OffloadRule::default().most_segments(u64::MAX, far, 1448, 2), 1);
}
