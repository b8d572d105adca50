//! The receiver by the worked examples of RFC 2018 and RFC 2883, its acknowledgment and window
//! policy by hand, and the whole against a model that keeps each unit separately.

use std::collections::BTreeSet;

use proptest::prelude::*;

use super::reassembly::BufferMemory;
use super::*;
use crate::QuickAcks;

const BUFFER: u64 = 64 << 10;

fn ms(millis: u64) -> Time {
    Time::from_millis(millis)
}

fn receiver(buffer: u64, policy: DelayedAck) -> Receiver {
    let mut receiver = Receiver::new(buffer, policy);
    receiver.synchronize(0);
    let window = receiver.window();
    receiver.acknowledged(window);
    receiver
}

fn default_receiver() -> Receiver {
    receiver(BUFFER, DelayedAck::default())
}

fn receive(receiver: &mut Receiver, left: u64, right: u64) -> Arrived {
    receiver.receive(Time::ZERO, left, right, (right - left) as u32)
}

/// Sends the ACK that is due; its number and SACK blocks.
fn ack(receiver: &mut Receiver) -> (u64, Vec<(u32, u32)>) {
    let blocks = receiver.sack_blocks(3, true).as_slice().to_vec();
    let window = receiver.window();
    receiver.acknowledged(window);
    (receiver.next, blocks)
}

/// A line of an example: the segment that arrives, and the ACK and blocks that answer it at once.
/// Blocks are empty where the ACK may be delayed.
type Line<'a> = ((u64, u64), u64, &'a [(u32, u32)]);

fn example(lines: &[Line]) {
    let mut receiver = default_receiver();
    for &((left, right), next, blocks) in lines {
        receive(&mut receiver, left, right);
        assert!(receiver.ack_now || blocks.is_empty(), "{left}:{right} is not answered at once");
        assert_eq!(ack(&mut receiver), (next, blocks.to_vec()), "after {left}:{right}");
    }
}

#[test]
fn rfc_2018_section_7_case_2_the_first_of_eight_is_lost() {
    let mut receiver = default_receiver();
    for i in 1u64..8 {
        receive(&mut receiver, 1 + 500 * i, 501 + 500 * i);
        assert!(receiver.ack_now);
        assert_eq!(ack(&mut receiver), (1, vec![(501, 501 + 500 * i as u32)]));
    }
}

#[test]
fn rfc_2018_section_7_case_3_every_second_is_lost() {
    example(&[
        ((1, 501), 501, &[]),
        ((1001, 1501), 501, &[(1001, 1501)]),
        ((2001, 2501), 501, &[(2001, 2501), (1001, 1501)]),
        ((3001, 3501), 501, &[(3001, 3501), (2001, 2501), (1001, 1501)]),
        // The fourth is received late, then the second.
        ((1501, 2001), 501, &[(1001, 2501), (3001, 3501)]),
        ((501, 1001), 2501, &[(3001, 3501)]),
    ]);
}

#[test]
fn rfc_2883_section_4_1_1_a_duplicate_segment() {
    example(&[((1, 4001), 4001, &[]), ((3001, 3501), 4001, &[(3001, 3501)])]);
}

#[test]
fn rfc_2883_section_4_1_2_an_out_of_order_and_a_duplicate_segment() {
    example(&[
        ((1, 4001), 4001, &[]),
        ((4501, 5001), 4001, &[(4501, 5001)]),
        ((3001, 3501), 4001, &[(3001, 3501), (4501, 5001)]),
    ]);
}

#[test]
fn rfc_2883_section_4_1_3_a_duplicate_of_an_out_of_order_segment() {
    example(&[
        ((1, 4001), 4001, &[]),
        ((4501, 5001), 4001, &[(4501, 5001)]),
        ((5001, 5501), 4001, &[(4501, 5501)]),
        ((5001, 5501), 4001, &[(5001, 5501), (4501, 5501)]),
    ]);
}

#[test]
fn rfc_2883_section_4_2_1_a_single_duplicate_subsegment() {
    example(&[
        ((1, 1001), 1001, &[]),
        ((2001, 2501), 1001, &[(2001, 2501)]),
        ((1001, 1501), 1501, &[(2001, 2501)]),
        ((1001, 2001), 2501, &[(1001, 1501)]),
    ]);
}

#[test]
fn rfc_2883_section_4_2_2_two_duplicate_subsegments_below_the_ack() {
    example(&[
        ((1, 1001), 1001, &[]),
        ((3001, 3501), 1001, &[(3001, 3501)]),
        ((1001, 1501), 1501, &[(3001, 3501)]),
        ((2001, 2501), 1501, &[(2001, 2501), (3001, 3501)]),
        ((1001, 2501), 2501, &[(1001, 1501), (3001, 3501)]),
    ]);
}

#[test]
fn rfc_2883_section_4_2_3_two_duplicate_subsegments_above_the_ack() {
    example(&[
        ((1, 1001), 1001, &[]),
        ((3501, 4001), 1001, &[(3501, 4001)]),
        ((1501, 2001), 1001, &[(1501, 2001), (3501, 4001)]),
        ((2501, 3001), 1001, &[(2501, 3001), (1501, 2001), (3501, 4001)]),
        ((1501, 3001), 1001, &[(1501, 2001), (1501, 3001), (3501, 4001)]),
    ]);
}

#[test]
fn rfc_2883_section_5_1_replication_by_the_network() {
    example(&[((1, 1001), 1001, &[]), ((1001, 1501), 1501, &[]), ((1001, 1501), 1501, &[(1001, 1501)])]);
}

#[test]
fn rfc_2883_section_5_2_a_false_retransmit_due_to_reordering() {
    example(&[
        ((1, 1001), 1001, &[]),
        ((1501, 2001), 1001, &[(1501, 2001)]),
        ((2001, 2501), 1001, &[(1501, 2501)]),
        ((2501, 3001), 1001, &[(1501, 3001)]),
        ((1001, 1501), 3001, &[]),
        ((1001, 1501), 3001, &[(1001, 1501)]),
    ]);
}

#[test]
fn a_partly_known_segment_in_order_is_reported_at_once() {
    // RFC 2883 section 4: a duplicate is reported of the most recent segment only, so that its ACK
    // cannot wait.
    example(&[((1, 1001), 1001, &[]), ((501, 1501), 1501, &[(501, 1001)])]);
}

#[test]
fn without_dsack_a_duplicate_is_answered_without_a_report() {
    let mut receiver = default_receiver();
    receive(&mut receiver, 1, 1001);
    ack(&mut receiver);
    assert_eq!(receive(&mut receiver, 1, 1001), Arrived::Duplicate);
    assert!(receiver.ack_now && receiver.sack_blocks(3, false).is_empty());
}

#[test]
fn room_left_by_merged_blocks_goes_to_older_ones() {
    // RFC 2018 section 4: as many distinct blocks as possible. Six ranges, then the four newest
    // become one.
    let mut receiver = default_receiver();
    for left in [10, 20, 30, 40, 50, 60] {
        receive(&mut receiver, left, left + 5);
        ack(&mut receiver);
    }
    receive(&mut receiver, 35, 60);
    receive(&mut receiver, 30, 60);
    assert_eq!(ack(&mut receiver).1[1..], [(30, 65), (20, 25)], "after the duplicate");
    assert_eq!(receiver.sack_blocks(4, true).as_slice(), [(30, 65), (20, 25), (10, 15)]);
}

#[test]
fn every_second_full_segment_is_acknowledged_at_once() {
    // RFC 5681 section 4.2.
    let mut receiver = default_receiver();
    receive(&mut receiver, 1, 1001);
    assert_eq!((receiver.ack_now, receiver.ack_at), (false, ms(40)));
    receive(&mut receiver, 1001, 2001);
    assert!(receiver.ack_now);
    ack(&mut receiver);
    assert_eq!((receiver.ack_now, receiver.ack_at), (false, Time::NEVER));
}

#[test]
fn small_segments_count_by_their_bytes() {
    let mut receiver = default_receiver();
    receive(&mut receiver, 1, 1001);
    receive(&mut receiver, 1001, 1500);
    assert!(!receiver.ack_now);
    receive(&mut receiver, 1500, 2001);
    assert!(receiver.ack_now);
}

#[test]
fn the_delay_runs_from_the_first_unacknowledged_segment() {
    // RFC 5681 section 4.2: within the timeout of the arrival of the first unacknowledged packet.
    let mut receiver = default_receiver();
    receiver.receive(ms(0), 1, 1001, 1000);
    receiver.receive(ms(30), 1001, 1002, 1);
    assert_eq!(receiver.ack_at, ms(40));
}

#[test]
fn one_segment_per_ack_means_any_segment() {
    let mut receiver = receiver(BUFFER, DelayedAck { segments: 1, ..DelayedAck::default() });
    for (left, right) in [(1, 1001), (1001, 1002)] {
        receive(&mut receiver, left, right);
        assert!(receiver.ack_now, "{left}:{right}");
        ack(&mut receiver);
    }
}

#[test]
fn the_first_segments_are_acknowledged_quickly() {
    let mut receiver = receiver(BUFFER, DelayedAck { quick: 2, ..DelayedAck::default() });
    for (left, quick) in [(1, true), (1001, true), (2001, false)] {
        receive(&mut receiver, left, left + 1000);
        assert_eq!(receiver.ack_now, quick, "{left}");
        ack(&mut receiver);
    }
}

/// Returns which of the segments at these left edges, 1000 units each, are acknowledged at once.
fn at_once<const N: usize>(receiver: &mut Receiver, lefts: [u64; N]) -> [bool; N] {
    lefts.map(|left| {
        receive(receiver, left, left + 1000);
        let now = receiver.ack_now;
        if now {
            ack(receiver);
        }
        now
    })
}

#[test]
fn quick_acks_follow_a_segment_that_repeats_what_has_arrived() {
    let mut receiver = receiver(BUFFER, DelayedAck { quick: 3, ..DelayedAck::default() });
    at_once(&mut receiver, [1, 1001, 2001, 3001, 4001]);
    assert_eq!(at_once(&mut receiver, [5001]), [false], "the first three are over");
    ack(&mut receiver);
    // Linux counts the ACK of a duplicate only if it passes tcp_sequence, which asks for an end
    // from the last ACK on.
    assert_eq!(at_once(&mut receiver, [5001, 6001, 7001, 8001]), [true, true, true, false]);
    ack(&mut receiver);
    assert_eq!(at_once(&mut receiver, [1, 9001, 10_001, 11_001, 12_001]), [true, true, true, true, false]);
    ack(&mut receiver);
    // No more than half a window of them: here two.
    receiver.acknowledged(4000);
    assert_eq!(at_once(&mut receiver, [1, 13_001]), [true, true]);
    receiver.acknowledged(4000);
    assert_eq!(receiver.quick_left, 1);
}

#[test]
fn a_gap_begins_quick_acks_where_linux_has_it_so() {
    // Up to 4.17: half a window of segments, 16 at most, the duplicate ACK included; here three.
    for (hurry, quick) in [(QuickAcks::linux_3_7(), true), (QuickAcks::linux_4_19(), false)] {
        let mut receiver = receiver(BUFFER, DelayedAck { quick: 1, hurry, ..DelayedAck::default() });
        at_once(&mut receiver, [1]);
        receiver.acknowledged(6000);
        assert_eq!(at_once(&mut receiver, [2001, 1001]), [true; 2], "the gap and what fills it");
        assert_eq!(at_once(&mut receiver, [3001]), [quick], "{hurry:?}");
    }
}

#[test]
fn what_ends_a_write_is_acknowledged_when_all_is_read_by_2_4() {
    // The first segment, which tells the size of others, and then one of `payload` units.
    let cases = [
        (QuickAcks::linux_2_4(), true, 1000, true),
        (QuickAcks::linux_2_4(), false, 999, true),
        (QuickAcks::linux_2_4(), false, 1000, false),
        (QuickAcks::linux_3_7(), true, 1000, false),
        (QuickAcks::linux_3_7(), false, 999, false),
    ];
    for (hurry, pushed, payload, at_once) in cases {
        let mut receiver = receiver(BUFFER, DelayedAck { quick: 1, hurry, ..DelayedAck::default() });
        receive(&mut receiver, 1, 1001);
        receiver.read(u64::MAX);
        ack(&mut receiver);
        receiver.describe(Context { pushed, ..Context::default() });
        receive(&mut receiver, 1001, 1001 + payload);
        assert!(!receiver.ack_now && receiver.delays_ack());
        receiver.read(payload - 1);
        assert!(!receiver.ack_now, "something is left to read");
        receiver.read(1);
        assert_eq!(receiver.ack_now, at_once, "{hurry:?}, {pushed}, {payload}");
        // The ACK answers it, whatever it was sent for.
        ack(&mut receiver);
        receiver.describe(Context::default());
        receive(&mut receiver, 1001 + payload, 2001 + payload);
        receiver.read(u64::MAX);
        assert!(!receiver.ack_now);
    }
}

#[test]
fn data_after_an_idle_time_begins_quick_acks() {
    // Longer than the receiver's own timeout, which is a second: 16 segments.
    let none = QuickAcks { idle: 0, ..QuickAcks::linux_2_4() };
    for (hurry, wait, expected) in
        [(QuickAcks::linux_2_4(), 1001, 16), (QuickAcks::linux_2_4(), 1000, 0), (none, 1001, 0)]
    {
        let mut receiver = receiver(BUFFER, DelayedAck { quick: 1, hurry, ..DelayedAck::default() });
        receive(&mut receiver, 1, 1001);
        ack(&mut receiver);
        let mut at = |n: u64| {
            receiver.receive(ms(wait), n * 1000 + 1, n * 1000 + 1001, 1000);
            let now = receiver.ack_now;
            ack(&mut receiver);
            now
        };
        assert_eq!((1..).take_while(|&n| at(n)).count(), expected, "{hurry:?} after {wait} ms");
    }
}

#[test]
fn marks_and_retransmissions_begin_quick_acks_where_linux_has_it_so() {
    // The number of segments acknowledged at once after a mark, after CWR, and after data that is
    // not ECT, before and after some that was.
    let all = [
        (QuickAcks::linux_2_4(), [0, 0, 16, 16]),
        (QuickAcks::linux_3_7(), [16, 0, 0, 16]),
        (QuickAcks::linux_4_19(), [2, 1, 0, 2]),
        (QuickAcks::default(), [0; 4]),
    ];
    for (hurry, expected) in all {
        let signs: [fn(&mut Receiver); 4] = [
            Receiver::congestion_began,
            Receiver::window_was_reduced,
            |receiver| receiver.not_capable_arrived(false),
            |receiver| receiver.not_capable_arrived(true),
        ];
        let found = signs.map(|sign| {
            let mut receiver = receiver(BUFFER, DelayedAck { quick: 1, hurry, ..DelayedAck::default() });
            at_once(&mut receiver, [1]);
            sign(&mut receiver);
            (1..).take_while(|n| at_once(&mut receiver, [n * 1000 + 1]) == [true]).count()
        });
        assert_eq!(found, expected, "{hurry:?}");
        // Without the mode none of it counts.
        let mut receiver = receiver(BUFFER, DelayedAck { hurry, ..DelayedAck::default() });
        receiver.peer_segment = 1000;
        signs.iter().for_each(|sign| sign(&mut receiver));
        assert_eq!(at_once(&mut receiver, [1]), [false], "{hurry:?}");
    }
}

#[test]
fn compression_waits_for_quick_acks_and_counts_the_first_three_acks() {
    let mut receiver = receiver(BUFFER, DelayedAck { quick: 2, ..DelayedAck::default() });
    receiver.compress(Some(crate::SackCompression::default()));
    receiver.context.srtt = Some(ackclock_units::Span::from_millis(100));
    // Two quick ACKs, then three duplicates at once; each is a range of its own, so that the fifth
    // and later ones wait.
    assert_eq!(at_once(&mut receiver, [2001, 4001, 6001, 8001, 10_001]), [true; 5]);
    assert_eq!(at_once(&mut receiver, [12_001]), [false]);
    ack(&mut receiver);
    // Data that fills a part of the gap is acknowledged at once, and is the first of three.
    assert_eq!(at_once(&mut receiver, [1, 14_001, 16_001, 18_001]), [true, true, true, false]);
    ack(&mut receiver);
    // A duplicate and the one after it are quick; the first three with this acknowledgment have
    // been.
    assert_eq!(at_once(&mut receiver, [1, 20_001, 22_001]), [true, true, false]);
}

#[test]
fn every_segment_is_acknowledged_while_the_window_grows() {
    // From 60,000 by 2000 per segment: 62, 64, 66 thousand, past the buffer of 65,536.
    let mut receiver = receiver(BUFFER, DelayedAck { growth_from: 60_000, ..DelayedAck::default() });
    for (left, grows) in [(1, true), (1001, true), (2001, true), (3001, false)] {
        receive(&mut receiver, left, left + 1000);
        assert_eq!(receiver.ack_now, grows, "{left}");
        ack(&mut receiver);
    }
}

#[test]
fn a_segment_that_fills_a_gap_is_acknowledged_at_once() {
    // RFC 5681 section 4.2, in part or whole.
    let mut receiver = default_receiver();
    receive(&mut receiver, 2001, 3001);
    ack(&mut receiver);
    for (left, next) in [(1, 1001), (1001, 3001)] {
        assert_eq!(receive(&mut receiver, left, left + 1000), Arrived::InOrder);
        assert!(receiver.ack_now);
        assert_eq!(ack(&mut receiver).0, next);
    }
}

#[test]
fn the_window_shrinks_with_what_is_unread_and_its_edge_stays() {
    let mut receiver = receiver(10_000, DelayedAck::default());
    for left in [1, 1001, 2001] {
        receive(&mut receiver, left, left + 1000);
        assert_eq!(receiver.window(), 10_001 - receiver.next);
        ack(&mut receiver);
    }
}

#[test]
fn a_window_opens_by_a_segment_at_least() {
    // RFC 9293 section 3.8.6.2.2, with segments of 1000 bytes.
    let mut receiver = receiver(10_000, DelayedAck::default());
    receive(&mut receiver, 1, 1001);
    ack(&mut receiver);
    receiver.read(999);
    assert_eq!(receiver.window(), 9000);
    receiver.read(1);
    assert_eq!(receiver.window(), 10_000);
}

#[test]
fn a_window_opens_by_half_of_a_small_buffer_at_least() {
    // RFC 9293 section 3.8.6.2.2: the smaller of a segment and half of the buffer.
    let mut receiver = receiver(1000, DelayedAck::default());
    receive(&mut receiver, 1, 1001);
    ack(&mut receiver);
    receiver.read(499);
    assert_eq!((receiver.window(), receiver.ack_now), (0, false));
    receiver.read(1);
    assert_eq!((receiver.window(), receiver.ack_now), (500, true));
}

#[test]
fn a_nearly_closed_window_that_opens_is_announced_at_once() {
    let mut receiver = receiver(10_000, DelayedAck::default());
    for left in (1..9001).step_by(1000) {
        receive(&mut receiver, left, left + 1000);
        ack(&mut receiver);
    }
    receiver.read(999);
    assert!(!receiver.ack_now);
    receiver.read(1);
    assert_eq!((receiver.ack_now, receiver.window()), (true, 2000));
}

#[test]
fn a_buffer_of_one_byte_opens_again() {
    let mut receiver = receiver(1, DelayedAck::default());
    receive(&mut receiver, 1, 2);
    assert_eq!(ack(&mut receiver).0, 2);
    assert_eq!(receiver.window(), 0);
    receiver.read(1);
    assert_eq!((receiver.ack_now, receiver.window()), (true, 1));
}

#[test]
fn a_window_with_room_to_spare_opens_with_the_next_ack() {
    let mut receiver = receiver(10_000, DelayedAck::default());
    receive(&mut receiver, 1, 1001);
    ack(&mut receiver);
    receiver.read(1000);
    assert!(!receiver.ack_now);
}

/// Every unit that arrived, kept separately.
#[derive(Debug, Default)]
struct Model {
    arrived: BTreeSet<u64>,
}

impl Model {
    fn next(&self) -> u64 {
        (1..).find(|unit| !self.arrived.contains(unit)).unwrap()
    }

    /// Maximal ranges beyond the gap.
    fn ranges(&self) -> Vec<(u64, u64)> {
        let next = self.next();
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        for &unit in self.arrived.range(next..) {
            match ranges.last_mut() {
                Some((_, right)) if *right == unit => *right += 1,
                _ => ranges.push((unit, unit + 1)),
            }
        }
        ranges
    }

    /// The first contiguous part of the range that is known already.
    fn duplicate(&self, left: u64, right: u64) -> Option<(u64, u64)> {
        let first = (left..right).find(|unit| self.arrived.contains(unit))?;
        let end = (first..right).find(|unit| !self.arrived.contains(unit)).unwrap_or(right);
        Some((first, end))
    }
}

#[derive(Clone, Debug)]
enum Event {
    /// A range that begins this far from `next`, back or ahead.
    Arrive(i64, u64),
    Read(u64),
}

fn any_event() -> impl Strategy<Value = Event> {
    prop_oneof![
        2 => (-20i64..1, 1u64..12).prop_map(|(from, len)| Event::Arrive(from, len)),
        6 => (0i64..60, 1u64..12).prop_map(|(from, len)| Event::Arrive(from, len)),
        1 => (0u64..40).prop_map(Event::Read),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn the_receiver_is_the_model(
        events in prop::collection::vec(any_event(), 1..80),
        room in 1usize..5,
        dsack: bool,
        buffer in 1u64..100,
    ) {
        let mut receiver = receiver(buffer, DelayedAck::default());
        let mut model = Model::default();
        let mut edge = receiver.next + receiver.window();
        for event in events {
            match event {
                Event::Read(most) => {
                    receiver.read(most);
                }
                Event::Arrive(from, len) => {
                    let left = receiver.next.saturating_add_signed(from).max(1);
                    let right = (left + len).min(receiver.next + receiver.acceptable());
                    if right <= left {
                        continue;
                    }
                    let (next, known) = (receiver.next, model.duplicate(left, right));
                    let news = (left..right).filter(|&unit| model.arrived.insert(unit)).count();
                    let arrived = receive(&mut receiver, left, right);
                    let expected = match (news, model.next() > next) {
                        (0, _) => Arrived::Duplicate,
                        (_, true) => Arrived::InOrder,
                        (_, false) => Arrived::OutOfOrder,
                    };
                    prop_assert_eq!(arrived, expected);
                    prop_assert_eq!(receiver.next, model.next());
                    let ranges = model.ranges();
                    prop_assert_eq!(receiver.reassembly.ranges().collect::<Vec<_>>(), ranges.clone());
                    prop_assert_eq!(receiver.reassembly.held(), ranges.iter().map(|(left, right)| right - left).sum::<u64>());
                    prop_assert!(receiver.ack_now || (arrived == Arrived::InOrder && ranges.is_empty() && known.is_none()));
                    check_blocks(&receiver, room, dsack, known, &ranges, left)?;
                }
            }
            let window = receiver.window();
            // More is let in than was announced when the buffer has room for it.
            edge = edge.max(receiver.next);
            prop_assert!(receiver.next + window >= edge, "the right edge moved left");
            prop_assert!(window == edge - receiver.next || receiver.next + window <= receiver.read + buffer);
            if receiver.ack_now {
                edge = receiver.next + window;
                receiver.acknowledged(window);
            }
        }
    }
}

fn check_blocks(
    receiver: &Receiver,
    room: usize,
    dsack: bool,
    known: Option<(u64, u64)>,
    ranges: &[(u64, u64)],
    left: u64,
) -> Result<(), TestCaseError> {
    let blocks = receiver.sack_blocks(room, dsack);
    let mut blocks: Vec<_> = blocks.as_slice().iter().map(|&(l, r)| (u64::from(l), u64::from(r))).collect();
    prop_assert!(blocks.len() <= room);
    let reported = known.filter(|_| dsack);
    prop_assert_eq!(
        blocks.len(),
        room.min(ranges.len() + usize::from(reported.is_some())),
        "as many as there is room for"
    );
    if let Some(duplicate) = reported {
        prop_assert_eq!(blocks.remove(0), duplicate);
    }
    prop_assert!(blocks.iter().all(|block| ranges.contains(block)));
    prop_assert_eq!(blocks.iter().collect::<BTreeSet<_>>().len(), blocks.len(), "distinct");
    // RFC 2018 section 4: the first block is the one with the segment that triggered the ACK,
    // unless it advanced the ACK.
    if left >= receiver.next && !blocks.is_empty() {
        prop_assert!(blocks[0].0 <= left && left < blocks[0].1);
    }
    Ok(())
}

/// A receiver by Linux's rules with SO_RCVBUF of 614,400, which holds twice that memory, and its
/// window of 614,400 less a segment in reserve.
fn linux_receiver() -> Receiver {
    let rules = crate::stack::profile::Profile::linux_6_1().endpoint.transfer;
    let policy = DelayedAck { quick: 16, hurry: QuickAcks::linux_4_19(), ..DelayedAck::default() };
    let mut receiver = Receiver::new(1_228_800, policy).with_rules(&rules);
    receiver.synchronize(0);
    receiver.begin(4, 1460, 1448, 65_535);
    receiver
}

#[test]
fn segments_beyond_a_gap_share_the_memory_of_one() {
    // A capture of Linux 6.1.192: each pair beyond a gap takes 1280 + 2 * 1448 = 4176 bytes of
    // memory, or 2088 of the window, and 68 in a row, in buffers of 16, 5 * 1280 + 68 * 1448 =
    // 104,864, or 52,432: with three pairs 614,400 - 3 * 2088 - 52,432 = 555,704, in units of 16
    // bytes 555,712. (The kernel had 554,352, with a segment that was not read yet.)
    let mut receiver = linux_receiver();
    let segments = |from: u64, to: u64| (1 + 1448 * from, 1 + 1448 * to);
    for (from, to) in [(1, 3), (4, 6), (7, 9), (10, 78)] {
        for segment in from..to {
            let (left, right) = segments(segment, segment + 1);
            receive(&mut receiver, left, right);
        }
    }
    assert_eq!(receiver.linux_window().min(555_712), receiver.linux_window());
    receiver.grown = receiver.clamp;
    assert_eq!(receiver.linux_window(), 555_712);
}

#[test]
fn what_fills_a_gap_is_not_read_when_it_is_acknowledged() {
    // The ACK leaves before the reader's turn: 249 segments in 16 buffers take 16 * 1280 + 249 * 1448
    // = 381,032 of memory, 190,516 of the window: 614,400 - 190,516 = 423,884, in units of 16 bytes
    // 423,888. (The kernel had 423,248: the segment that filled the gap had a buffer of its own.)
    let mut receiver = linux_receiver();
    (receiver.grown, receiver.announced) = (receiver.clamp, 600_000);
    for segment in 1..249 {
        receive(&mut receiver, 1 + 1448 * segment, 1449 + 1448 * segment);
    }
    ack(&mut receiver);
    receive(&mut receiver, 1, 1449);
    receiver.read(u64::MAX);
    assert!(receiver.ack_now);
    assert_eq!(receiver.linux_window(), 423_888);
    ack(&mut receiver);
    assert_eq!(receiver.linux_window(), 612_960, "614,400 - 1448, in units of 16 bytes");
}

#[test]
fn the_reader_comes_after_all_that_arrives_at_the_time() {
    // A capture of Linux 6.1.192: a segment with PSH and one behind it, which leave a token bucket
    // together, share an ACK. tcp_cleanup_rbuf acknowledges PSH at once, but in the reader's turn,
    // after NET_RX_SOFTIRQ.
    fn arrives(receiver: &mut Receiver, millis: u64, pushed: bool) {
        let next = receiver.next;
        receiver.describe(Context { pushed, ..Context::default() });
        receiver.receive(ms(millis), next, next + 1448, 1448);
        receiver.read_arrived(ms(millis));
    }
    for follows in [true, false] {
        let mut receiver = linux_receiver();
        (receiver.grown, receiver.announced) = (receiver.clamp, 600_000);
        // The first one begins quick ACKs.
        arrives(&mut receiver, 0, false);
        receiver.linux_acks.end_quick();
        ack(&mut receiver);
        arrives(&mut receiver, 10, true);
        assert_eq!((receiver.ack_now, receiver.ack_at), (false, ms(10)));
        let delay = receiver.ack_timeout();
        if follows {
            arrives(&mut receiver, 10, false);
        } else {
            receiver.ack_timed_out();
        }
        assert!(receiver.ack_now && receiver.ack_timeout() == delay);
        ack(&mut receiver);
        // A delayed ACK is not the reader's: what comes next waits longer.
        arrives(&mut receiver, 20, false);
        assert!(!receiver.ack_now && receiver.ack_at > ms(20));
        let delay = receiver.ack_timeout();
        receiver.ack_timed_out();
        assert_eq!(receiver.ack_timeout(), delay * 2);
    }
}

proptest! {
    /// The memory of ranges is that of each, however they came about and whatever it was counted by.
    #[test]
    fn memory_is_counted_as_ranges_change(
        arrivals in proptest::collection::vec((1u64..200, 1u64..40, 1000u32..1460), 1..60),
        next in 1u64..200,
    ) {
        let mut reassembly = Reassembly::default();
        for (left, segments, segment) in arrivals {
            let buffers = BufferMemory::new(segment % 2 == 0, segment - segment % 100);
            reassembly.insert(left * 1448, (left + segments) * 1448, buffers);
            for buffers in [buffers, BufferMemory::default(), BufferMemory::new(true, 1460)] {
                let each = reassembly.ranges().map(|(left, right)| buffers.of(right - left)).sum::<u64>();
                prop_assert_eq!(reassembly.memory(buffers), each);
            }
        }
        reassembly.advance(next * 1448);
        let buffers = BufferMemory::new(true, 1460);
        let each = reassembly.ranges().map(|(left, right)| buffers.of(right - left)).sum::<u64>();
        prop_assert_eq!(reassembly.memory(buffers), each);
    }
}
