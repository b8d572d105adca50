//! Units of segmentation offload: what is sent of them, and what SACKs and retransmissions make of
//! them.

use super::peer::full;
use super::*;
use crate::stack::profile::Profile;
use crate::{OffloadRule, Pacing, PacingWhen};

/// Segments of 1000 bytes, `segments` at first.
fn host(profile: Profile, segments: u32) -> Config {
    let rule = profile.offload.expect("modelled");
    let mut config = Config {
        mss: 1000,
        timestamps: false,
        window_scaling: false,
        initial_window: InitialWindow::Segments(segments),
        ..profile.endpoint
    };
    config.hand_down_units(rule);
    config
}

/// Ends of the units that leave now, as pairs of left and right edge.
fn units(script: &mut Script) -> Vec<(u64, u64)> {
    let (mut units, mut segment) = (Vec::<(u64, u64)>::new(), Segment::default());
    while script.endpoint.transmit(script.now, &mut segment).is_some() {
        let from = segment.payload.offset + 1;
        let end = from + u64::from(segment.payload.len);
        match units.last_mut().filter(|_| script.endpoint.sender().continues_unit()) {
            Some(unit) => unit.1 = end,
            None => units.push((from, end)),
        }
    }
    units
}

#[test]
fn new_data_goes_out_in_pairs() {
    for profile in [Profile::linux_4_0(), Profile::linux_6_1(), Profile::linux_6_18()] {
        let mut script = Script::open(host(profile, 10));
        assert_eq!(script.endpoint.write(100_000), 100_000);
        // 100 ms: the rate allows one segment a millisecond, and two is the least.
        assert_eq!(units(&mut script), [(1, 2001), (2001, 4001), (4001, 6001), (6001, 8001), (8001, 10_001)]);
    }
}

#[test]
fn an_odd_segment_waits_for_two_ticks() {
    let mut script = Script::open(host(Profile::linux_4_0(), 11));
    script.write(60_000);
    assert_eq!(script.data(), full(1, 10), "the eleventh waits");
    assert!(script.endpoint.sender.window_use.is_stopped());
    script.wait(4);
    script.pump();
    assert_eq!(script.data(), []);
    // Jiffies of 4 ms from 100 ms on: two more.
    script.wait(4);
    script.pump();
    assert_eq!(script.data(), full(10_001, 1));
    // Slow start makes room for two.
    script.ack(1001);
    assert_eq!(script.data(), full(11_001, 2));
}

#[test]
fn disorder_lets_an_odd_segment_go() {
    // Each that is SACKed makes room for one. The first comes long after the last transmission, the
    // second soon after another one.
    for (profile, second) in [(Profile::linux_4_0(), 1), (Profile::linux_6_1(), 0)] {
        let mut script = Script::open(host(profile, 10));
        script.write(60_000);
        assert_eq!(script.data(), full(1, 10));
        script.wait(100);
        script.sack(1, &[(1001, 2001)]);
        assert_eq!(script.data(), full(10_001, 1));
        script.sack(1, &[(1001, 3001)]);
        assert_eq!(script.data(), full(11_001, second));
    }
}

#[test]
fn no_unit_has_more_than_half_the_window() {
    let mut config = host(Profile::linux_4_0(), 10);
    config.transfer.least_burst = 8;
    let mut script = Script::open(config);
    assert_eq!(script.endpoint.write(100_000), 100_000);
    assert_eq!(units(&mut script), [(1, 5001), (5001, 10_001)]);
}

#[test]
fn units_end_with_buffers_before_6_18() {
    // A peer whose window is 20,000 bytes has buffers of 10,000 (tcp_bound_to_half_wnd).
    for (profile, second) in [(Profile::linux_6_1(), (8001, 10_001)), (Profile::linux_6_18(), (8001, 12_001))] {
        let mut config = host(profile, 20);
        config.transfer.least_burst = 4;
        let mut script = Script::new(config);
        script.window = 20_000;
        let mut script = script.connected();
        assert_eq!(script.endpoint.write(100_000), 100_000);
        let units = units(&mut script);
        assert_eq!((units[1], units[2]), ((4001, 8001), second));
    }
}

#[test]
fn a_unit_takes_from_one_more_buffer_and_ends_with_a_record() {
    // tcp_grow_skb: buffers of 10,000 bytes, the second of which ends with a record after 4000.
    let mut config = host(Profile::linux_6_18(), 60);
    config.transfer.least_burst = 30;
    config.transfer.send_space = SpaceRule::Linux;
    let mut script = Script::new(config);
    script.window = 20_000;
    let mut script = script.connected();
    let record = crate::WriteFlags { eor: true, ..Default::default() };
    assert_eq!(script.endpoint.write_with(14_000, record), 14_000);
    assert_eq!(script.endpoint.write(50_000), 50_000);
    assert_eq!(units(&mut script)[0], (1, 14_001));
}

#[test]
fn a_segment_and_its_fin_wait_for_a_window_with_room_for_both() {
    // tcp_snd_wnd_test, where the segment is as long as the MSS.
    let mut script = Script::new(host(Profile::linux_6_1(), 10));
    script.window = 2000;
    let mut script = script.connected();
    script.write(1000);
    script.ack_window(1001, 1000);
    assert_eq!(script.data(), [(1, 1001)]);
    assert_eq!(script.endpoint.write(1000), 1000);
    script.close();
    assert_eq!(script.data(), []);
    script.ack_window(1001, 1001);
    assert_eq!(script.data(), [(1001, 2002)]);
}

#[test]
fn a_unit_has_the_rate_of_the_last_ack() {
    for profile in [Profile::linux_4_0(), Profile::linux_6_1(), Profile::linux_6_18()] {
        let config = Config { window_scaling: true, send_buffer: 1 << 24, ..host(profile, 1000) };
        let mut script = Script::open_with(config, |script| script.shift = 8);
        script.ack(1);
        // Fourteen buffers of 65 segments.
        script.write(910_000);
        script.wait(100);
        (1..=910).for_each(|n| {
            script.ack(n * 1000 + 1);
        });
        // Twice the window in 100 ms, for a millisecond: 35,156 bytes with 1800 segments.
        let cwnd = script.endpoint.sender().cwnd();
        let first = ((cwnd * 20) >> 10) / 1000;
        assert!(cwnd > 1_700_000);
        script.wait(60_000);
        script.endpoint.write(1_000_000);
        // The window has begun anew with 1000 segments, or does so after the first unit (4.0).
        assert_eq!(units(&mut script)[0], (910_001, 910_001 + first * 1000));
        assert_eq!(script.endpoint.sender().cwnd(), 1_000_000);
    }
}

#[test]
fn the_first_unit_after_an_idle_time_has_the_old_window_in_4_0() {
    // tcp_event_data_sent: half of 32 segments; later kernels begin anew first, with half of 16.
    for (profile, first) in [(Profile::linux_4_0(), 16), (Profile::linux_6_1(), 8), (Profile::linux_6_18(), 8)] {
        let mut config = host(profile, 16);
        config.transfer.least_burst = 16;
        let mut script = Script::open(config);
        script.write(16_000);
        assert_eq!(script.data(), full(1, 16));
        script.wait(100);
        (1..=16).for_each(|n| {
            script.ack(n * 1000 + 1);
        });
        assert_eq!(script.endpoint.sender().cwnd(), 32_000);
        script.wait(60_000);
        script.endpoint.write(60_000);
        assert_eq!(units(&mut script)[0], (16_001, 16_001 + first * 1000));
    }
}

#[test]
fn a_small_tail_goes_with_the_unit_unless_a_small_segment_is_in_flight() {
    let mut script = Script::open(host(Profile::linux_4_0(), 10));
    assert_eq!(script.endpoint.write(1500), 1500);
    assert_eq!(units(&mut script), [(1, 1501)]);
    assert_eq!(script.endpoint.write(1500), 1500);
    assert_eq!(units(&mut script), [(1501, 2501)], "Minshall: another one is in flight");
    script.ack(1501);
    assert_eq!(script.data(), [(2501, 3001)]);
}

/// Everything between `from` and `to` is SACKed, and all below `ack` acknowledged.
fn report(script: &mut Script, ack: u64, (from, to): (u64, u64)) {
    let segment = script.segment(Flags::ACK, 1, 0, ack);
    let wire = |seq: u64| segment.ack.wrapping_add((seq - ack) as u32);
    let mut sack = SackBlocks::default();
    assert!(sack.push(wire(from), wire(to)));
    script.endpoint.input(script.now, &Segment { sack, ..segment }, Ecn::NotEct);
}

/// The units that go out by what was reported, perhaps once nothing more can be reordered (RACK).
fn resent(script: &mut Script) -> Vec<(u64, u64)> {
    let found = units(script);
    if !found.is_empty() {
        return found;
    }
    script.now = script.endpoint.next_deadline();
    script.endpoint.on_deadline(script.now);
    units(script)
}

#[test]
fn units_are_cut_where_sacks_and_acks_end() {
    for profile in [Profile::linux_4_0(), Profile::linux_6_1()] {
        let mut config = host(profile, 20);
        config.transfer.least_burst = 5;
        let mut script = Script::open(config);
        script.endpoint.write(20_000);
        assert_eq!(units(&mut script)[..2], [(1, 5001), (5001, 10_001)]);
        script.wait(100);
        // The last segment of the first unit is missing, and the first one of the second.
        report(&mut script, 4001, (6001, 15_001));
        assert_eq!(resent(&mut script)[..2], [(4001, 5001), (5001, 6001)]);
    }
}

#[test]
fn what_is_lost_of_a_unit_is_sent_again_as_one_from_6_1_on() {
    for (profile, first) in [(Profile::linux_4_0(), (1, 1001)), (Profile::linux_6_1(), (1, 3001))] {
        let mut config = host(profile, 20);
        config.transfer.least_burst = 5;
        let mut script = Script::open(config);
        script.endpoint.write(20_000);
        assert_eq!(units(&mut script).len(), 4);
        script.wait(100);
        // The first three are missing.
        report(&mut script, 1, (3001, 20_001));
        let found = resent(&mut script);
        assert_eq!(found.first(), Some(&first), "{found:?}");
    }
}

#[test]
fn pacing_counts_a_unit() {
    let pacing = Pacing { when: PacingWhen::On, ..Pacing::default() };
    let mut script = Script::open(Config { pacing, ..host(Profile::linux_6_1(), 20) });
    script.write(60_000);
    // Eight segments are not paced, nor is the pair that makes them ten, but it takes its time: two
    // at 20,000 bytes * 200 % / 100 ms, 400 bytes a millisecond, take 5 ms.
    script.wait(20);
    let times: Vec<_> = script.timed_data().iter().map(|&(at, from, _)| (at, from)).collect();
    let at_once = times.iter().filter(|(at, _)| *at == 100).count();
    let later: Vec<_> = times[at_once..].iter().map(|&(at, _)| at).collect();
    assert_eq!((at_once, later), (10, vec![105, 105, 110, 110, 115, 115, 120, 120]), "{times:?}");
}

#[test]
fn a_late_unit_gets_half_of_its_time_back_at_most() {
    // tcp_update_skb_after_send: len_ns - min(len_ns / 2, credit), of the unit.
    for (late, next) in [(1, 4_000), (2, 3_000), (4, 2_500)] {
        let pacing = Pacing { when: PacingWhen::On, ..Pacing::default() };
        let mut script = Script::open(Config { pacing, ..host(Profile::linux_6_1(), 20) });
        script.endpoint.write(60_000);
        assert_eq!(units(&mut script).len(), 5);
        script.now += Span::from_millis(5 + late);
        script.endpoint.on_deadline(script.now);
        assert_eq!(units(&mut script), [(10_001, 12_001)]);
        assert_eq!(script.endpoint.next_deadline().since(script.now), Span::from_micros(next));
    }
}

#[test]
fn the_memory_of_units_counts() {
    // 87,040 bytes: 2 * 10 * (4096 + 256), tcp_init_buffer_space.
    let tuning = Profile::linux_4_0().tuning.expect("modelled").send;
    let mut config = Profile::linux_4_0().endpoint;
    config.tune_send_buffer(tuning);
    config.hand_down_units(OffloadRule::LINUX_4_0);
    assert_eq!(config.transfer.send_space, SpaceRule::Linux);
    let mut script = Script::open(config);
    assert_eq!(script.endpoint.sender.queue.buffer, 87_040);
    // Buffers are begun while there is room, of half the peer's window: 22 * 1448 bytes of 32,767.
    let taken = script.endpoint.write(1 << 20);
    script.pump();
    let segments = script.data().len() as u64;
    assert_eq!(segments, 10);
    let waiting = (taken - segments * 1448).div_ceil(22 * 1448);
    assert_eq!(script.endpoint.sender.queued(), taken + (segments / 2 + waiting) * 1280);
}
