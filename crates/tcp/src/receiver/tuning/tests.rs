//! The law of each release by hand, and what holds whatever arrives.

use proptest::prelude::*;

use super::*;
use crate::receiver::Receiver;
use crate::receiver::reassembly::BufferMemory;
use crate::{DelayedAck, TransferRules, WindowRule};

/// An MSS of 1460, of which timestamps take 12.
const SEGMENT: u64 = 1448;
const MOST: u64 = 6 << 20;

fn tuned(release: TuningRules, default: u64) -> Receiver {
    let rules = BufferTuning { law: release, default, most: MOST };
    let window = WindowRule::Linux { most: MOST };
    let transfer = TransferRules { window, receive_tuning: Some(rules), ..TransferRules::default() };
    let mut receiver = Receiver::new(default, DelayedAck::default()).with_rules(&transfer);
    receiver.synchronize(0);
    let (shift, offered) = (receiver.own_shift(), receiver.syn_window(SEGMENT as u32));
    receiver.begin(shift, 1460, SEGMENT as u32, offered);
    receiver
}

/// The window and the buffer after `copied` bytes in a round trip, `before` in the best one so far.
fn wanted(receiver: &mut Receiver, before: u64, copied: u64) -> Option<(u64, u64)> {
    let tuned = receiver.tuned.as_mut().expect("tuned");
    tuned.space = before;
    tuned.wanted(copied, SEGMENT, 0)
}

#[test]
fn the_window_begins_as_in_each_release() {
    // A window of the buffer's half: 43,690 and 65,536 bytes. 3.9 offers 10 segments, 4.0 20, later
    // ones what fits into the field, in whole segments. 4.0 enlarges the buffer at once, to 2 * 20
    // * 4 packets of 1448 + 320 + 576 bytes; all keep a segment in reserve. 2.6.32 offers 4, of
    // three quarters, 65,535 bytes.
    let cases = [
        (TuningRules::LINUX_2_6_32, 87_380, 5_792, 87_380, 65_535 - 1448),
        (TuningRules::LINUX_3_9, 87_380, 14_480, 87_380, 43_690 - 1448),
        (TuningRules::LINUX_4_0, 87_380, 28_960, 375_040, 187_520 - 1448),
        (TuningRules::LINUX_6_1, 131_072, 65_160, 131_072, 65_536 - 1448),
        (TuningRules::LINUX_6_18, 131_072, 65_160, 131_072, 65_536 - 1448),
    ];
    for (release, default, offered, buffer, clamp) in cases {
        let receiver = tuned(release, default);
        assert_eq!((receiver.last_window, receiver.buffer, receiver.clamp), (offered, buffer, clamp), "{release:?}");
        // For 6 MiB: 2^22 <= 6 MiB < 2^23.
        assert_eq!(receiver.shift(), 7);
    }
}

#[test]
fn the_buffer_follows_the_rate_as_in_each_release() {
    // A segment counts 1448 + 320 + 576 = 2344 bytes, and 128 at a time more until half of it holds
    // the segment: 2984.
    // 2.6.32 counts 1448 + 320 + 16 + 232 = 2016 bytes, of which three quarters, 1512, are enough.
    let mut receiver = tuned(TuningRules::LINUX_2_6_32, 87_380);
    assert_eq!(wanted(&mut receiver, 29_200, 100_000), Some((200_000, 138 * 2016)));
    // 3.9: 2 * 100,000; 138 segments.
    let mut receiver = tuned(TuningRules::LINUX_3_9, 87_380);
    assert_eq!(wanted(&mut receiver, 29_200, 100_000), Some((200_000, 138 * 2984)));
    // 4.0: 2 * 100,000 + 16 * 1448 = 223,168; doubled for 50 % more; 308 segments.
    let mut receiver = tuned(TuningRules::LINUX_4_0, 87_380);
    assert_eq!(wanted(&mut receiver, 50_000, 100_000), Some((446_336, 308 * 2984)));
    // 25 % more: half as much again; 231 segments. Less: as it is; 154.
    assert_eq!(wanted(&mut receiver, 80_000, 100_000), Some((334_752, 231 * 2984)));
    assert_eq!(wanted(&mut receiver, 90_000, 100_000), Some((223_168, 154 * 2984)));
    // 6.1: 81,088 for 28,960 bytes, and twice the growth of 100 %: 243,264; 168 segments.
    let mut receiver = tuned(TuningRules::LINUX_6_1, 131_072);
    assert_eq!(wanted(&mut receiver, 14_480, 28_960), Some((243_264, 168 * 2984)));
    // 6.18: no cushion: 173,760 by a ratio of 1448 * 256 / 2304 = 160.
    let mut receiver = tuned(TuningRules::LINUX_6_18, 131_072);
    receiver.tune(Time::ZERO, SEGMENT as u32, None, SEGMENT as u32);
    assert_eq!(receiver.clamp, 131_072 * 160 / 256);
    assert_eq!(wanted(&mut receiver, 14_480, 28_960), Some((173_760, 173_760 * 256 / 160)));
    // No more than tcp_rmem allows.
    assert_eq!(wanted(&mut receiver, 14_480, 10 << 20).map(|(_, buffer)| buffer), Some(MOST));
}

#[test]
fn round_trips_are_averaged_by_timestamps_and_bounded_by_windows() {
    let mut receiver = tuned(TuningRules::LINUX_4_0, 87_380);
    let tuned = receiver.tuned.as_mut().expect("tuned");
    // Jiffies of 4 ms: 103 - 50 ms is from jiffy 12 to jiffy 25.
    tuned.measure_echo(Time::from_millis(103), 1, 53, true);
    assert_eq!(tuned.rtt, 8 * 52_000_000);
    // 7/8 of 52 ms and 1/8 of 12 ms.
    tuned.measure_echo(Time::from_millis(112), 1, 12, true);
    assert_eq!(tuned.rtt, 7 * 52_000_000 + 12_000_000);
    // A window in 20 ms is a shorter one; in 80 ms it says nothing.
    tuned.measure_window(Time::from_millis(200), 1000, 100, true);
    tuned.measure_window(Time::from_millis(220), 1100, 100, true);
    assert_eq!(tuned.rtt, 8 * 20_000_000);
    tuned.measure_window(Time::from_millis(300), 1200, 100, true);
    assert_eq!(tuned.rtt, 8 * 20_000_000);
}

/// The trace is that of a 6.1.192 kernel behind two paths of 10 and 55 ms that take turns.
#[test]
fn a_shorter_round_trip_counts_at_once_from_6_1_on() {
    let mut receiver = tuned(TuningRules::LINUX_6_1, 131_072);
    let tuned = receiver.tuned.as_mut().expect("tuned");
    for (echo, age, expected) in [(1, 10, 10_000_000), (2, 55, 15_625_000), (3, 10, 10_000_000)] {
        tuned.measure_echo(Time::from_millis(100), echo, age, true);
        assert_eq!(tuned.rtt / 8, expected);
    }
}

#[test]
fn what_was_copied_is_looked_at_after_reading_alone() {
    let mut receiver = tuned(TuningRules::LINUX_6_1, 131_072);
    receiver.tuned.as_mut().expect("tuned").rtt = 8_000_000;
    let mut tune = |at, read| {
        receiver.next += SEGMENT;
        receiver.read += read;
        receiver.tune(Time::from_millis(at), SEGMENT as u32, None, SEGMENT as u32);
        receiver.tuned.as_ref().expect("tuned").copied.1
    };
    assert_eq!(tune(10, 0), Time::from_millis(10));
    assert_eq!(tune(20, 0), Time::from_millis(10));
    assert_eq!(tune(30, SEGMENT), Time::from_millis(30));
}

#[test]
fn what_waits_behind_a_gap_takes_memory() {
    let mut receiver = tuned(TuningRules::LINUX_6_1, 131_072);
    assert_eq!(receiver.free_space(), 65_536);
    receiver.peer_segment = SEGMENT as u32;
    receiver.reassembly.insert(10_000, 10_000 + 10 * SEGMENT, BufferMemory::default());
    // Ten packets of 2304 bytes; half of the rest is for data.
    assert_eq!(receiver.free_space(), (131_072 - 23_040) / 2);
}

#[test]
fn what_fills_a_gap_widens_the_window_and_what_lies_beyond_does_not() {
    // tcp_event_data_recv of 2.6.32: two segments for each in order; a packet takes 1460 + 118 +
    // 232 = 1810 bytes, of which three quarters are less than its payload.
    let mut receiver = tuned(TuningRules::LINUX_2_6_32, 87_380);
    receiver.context.segment = SEGMENT as u32;
    assert!(!receiver.grow_beyond(SEGMENT as u32));
    assert_eq!(receiver.grown, 4 * SEGMENT);
    receiver.tune_filled_gap(Time::from_millis(10), SEGMENT as u32);
    assert_eq!(receiver.grown, 6 * SEGMENT);
}

#[test]
fn a_buffer_that_is_set_stays() {
    let mut receiver = tuned(TuningRules::LINUX_4_0, 87_380);
    receiver.set_buffer(100_000);
    assert_eq!(wanted(&mut receiver, 14_480, 1 << 20), None);
}

fn release() -> impl Strategy<Value = TuningRules> {
    prop_oneof![
        Just(TuningRules::LINUX_2_6_32),
        Just(TuningRules::LINUX_3_9),
        Just(TuningRules::LINUX_4_0),
        Just(TuningRules::LINUX_6_1),
        Just(TuningRules::LINUX_6_18),
    ]
}

proptest! {
    #[test]
    fn the_window_is_never_taken_back_nor_stalls(
        release in release(),
        // The next segment to arrive, the delay, the age of its echo, and the amount read.
        steps in prop::collection::vec((0u64..40, 0u64..30, 1u32..200, any::<bool>(), 1u32..=1448), 1..400),
    ) {
        let mut receiver = tuned(release, 131_072);
        let (mut now, mut edge) = (Time::from_secs(10), receiver.next + receiver.last_window);
        for (ahead, wait, age, reads, payload) in steps {
            now += Span::from_millis(wait);
            let left = receiver.next + ahead * SEGMENT;
            let right = left + u64::from(payload);
            if right > receiver.edge() {
                continue;
            }
            receiver.tune(now, payload, Some((now.as_nanos() as u32, age)), SEGMENT as u32);
            receiver.receive(now, left, right, payload);
            if reads {
                receiver.read(u64::MAX);
            }
            let window = receiver.window();
            receiver.acknowledged(window);
            prop_assert!(receiver.next + window >= edge, "{release:?}: {window}");
            prop_assert!(receiver.buffer <= MOST);
            prop_assert!(window <= MOST);
            edge = edge.max(receiver.next + window);
        }
        // All gaps filled and everything read: room for two segments and more.
        let end = receiver.reassembly.end().max(receiver.next + 1);
        receiver.tune(now, 1, None, SEGMENT as u32);
        let next = receiver.next;
        receiver.receive(now, next, end, SEGMENT as u32);
        receiver.read(u64::MAX);
        prop_assert!(receiver.window() >= 2 * SEGMENT);
    }
}
