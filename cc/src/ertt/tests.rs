use super::*;
use crate::fixture::{MSS, flight};

const MS: Span = Span::from_millis(1);

/// A sender of full segments, segment `n` at byte `n * MSS`.
struct ErttSender {
    ertt: Ertt,
    una: u64,
    timestamps: bool,
}

impl ErttSender {
    fn new(timestamps: bool) -> ErttSender {
        ErttSender { ertt: Ertt::new(MS), una: 0, timestamps }
    }

    fn send(&mut self, millis: u64, segments: impl IntoIterator<Item = u64>) {
        for n in segments {
            self.ertt.on_sent(&flight(millis, 10), &Sent { seq: n * MSS, bytes: MSS as u32 });
        }
    }

    /// An ACK of everything before segment `to`, with the timestamp of what was sent at `echo`.
    fn ack(&mut self, millis: u64, to: u64, echo: u64) -> bool {
        self.arrive(millis, to, echo, None)
    }

    fn arrive(&mut self, millis: u64, to: u64, echo: u64, sacked_to: Option<u64>) -> bool {
        let arrival = Arrival {
            ack: to * MSS,
            acked: to * MSS - self.una,
            sacked_to: sacked_to.map(|n| n * MSS),
            echoed: self.timestamps.then(|| Span::from_millis(millis - echo)),
            ..Arrival::default()
        };
        self.una = to * MSS;
        self.ertt.on_arrival(&flight(millis, 10), &arrival, 7 * MSS);
        self.ertt.take_measurement()
    }

    fn left(&self) -> Vec<u64> {
        self.ertt.segments.iter().map(|segment| segment.seq / MSS).collect()
    }
}

#[test]
fn a_sample_is_one_tick_more_than_the_difference_of_two_readings() {
    let mut wire = ErttSender::new(true);
    wire.send(10, 0..2);
    assert!(wire.ack(50, 1, 10));
    // 50 - 10 + 1
    assert_eq!((wire.ertt.rtt, wire.ertt.min, wire.ertt.max), (41, 41, 41));
    assert!(!wire.ack(53, 2, 10), "the second was not marked");
    assert_eq!((wire.ertt.rtt, wire.ertt.min, wire.ertt.max), (44, 41, 44));
    let shown = wire.ertt.enhanced_rtt();
    assert_eq!((shown.rtt, shown.min, shown.marked), (MS * 44, MS * 41, MS * 41));
    assert_eq!((shown.measurements, shown.delayed_acks), (1, false));
}

#[test]
fn the_tick_can_be_finer() {
    let mut ertt = Ertt::new(Span::from_micros(100));
    ertt.on_sent(&flight(10, 10), &Sent { seq: 0, bytes: MSS as u32 });
    let arrival = Arrival { ack: MSS, acked: MSS, ..Arrival::default() };
    let f = Flight { now: Time::from_micros(50_250), ..flight(0, 10) };
    ertt.on_arrival(&f, &arrival, 0);
    // 502 - 100 + 1 tenths of a millisecond.
    assert_eq!(ertt.rtt, 403);
    assert_eq!(ertt.enhanced_rtt().rtt, Span::from_micros(40_300));
}

#[test]
fn one_segment_per_round_trip_is_marked_and_what_is_sent_until_its_ack_is_counted() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..3);
    wire.send(20, 3..5);
    assert!(wire.ack(40, 1, 0));
    assert_eq!((wire.ertt.marked, wire.ertt.bytes_in_marked), (41, 5 * MSS as i64));
    assert_eq!(wire.ertt.marked_cwnd, 7 * MSS);
    // The next to be sent is marked: segment 5, not those under way.
    wire.send(40, 5..7);
    assert!(!wire.ack(41, 2, 0) && !wire.ack(42, 3, 0) && !wire.ack(60, 4, 20) && !wire.ack(61, 5, 20));
    assert!(wire.ack(83, 6, 40));
    assert_eq!((wire.ertt.marked, wire.ertt.bytes_in_marked), (44, 2 * MSS as i64));
}

#[test]
fn an_ack_of_several_segments_samples_the_last_of_them() {
    let mut wire = ErttSender::new(true);
    wire.send(0, [0]);
    wire.send(5, [1]);
    // The ACK echoes the first, as receivers that delay do.
    assert!(wire.ack(47, 2, 0));
    assert_eq!(wire.ertt.delayed_acks, 1);
    assert_eq!(wire.ertt.rtt, 43);
    // The mark went to the second, and the correction back to the first: its time, and all the
    // bytes.
    assert_eq!((wire.ertt.marked, wire.ertt.bytes_in_marked), (48, 2 * MSS as i64));
}

#[test]
fn an_ack_of_one_segment_that_may_have_waited_is_no_sample() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..4);
    wire.ack(40, 2, 0);
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt), (1, 41));
    // One at a time: the first of them still could have waited, and settles that it need not.
    assert!(!wire.ack(150, 3, 0));
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt), (0, 151), "the guess is revised before the sample");
    wire.send(200, 4..16);
    for to in [6, 8, 10] {
        wire.ack(240, to, 200);
    }
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt), (3, 41));
    wire.ack(300, 11, 200);
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt), (2, 41));
    assert_eq!(wire.left(), [11, 12, 13, 14, 15]);
}

#[test]
fn five_acks_settle_the_guess() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..20);
    for to in (2..=16).step_by(2) {
        wire.ack(40, to, 0);
    }
    assert_eq!(wire.ertt.delayed_acks, 5);
    // A short segment, and less than one: the guess stays.
    wire.ertt.on_arrival(&flight(41, 10), &Arrival { ack: 16 * MSS + 100, acked: 100, ..Arrival::default() }, 0);
    assert_eq!(wire.ertt.delayed_acks, 5);
}

#[test]
fn a_short_segment_with_another_counts_as_delayed() {
    let mut wire = ErttSender::new(false);
    for (seq, bytes) in [(0, 100), (100, 200)] {
        wire.ertt.on_sent(&flight(0, 10), &Sent { seq, bytes });
    }
    // 300 bytes are less than an MSS, but more than the segment of 200 has.
    wire.ertt.on_arrival(&flight(40, 10), &Arrival { ack: 300, acked: 300, ..Arrival::default() }, 0);
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt), (1, 41));
}

#[test]
fn the_timestamp_tells_which_transmission_was_answered() {
    let mut wire = ErttSender::new(true);
    wire.send(0, [0, 1]);
    // Segment 0 was lost and is sent again at 300.
    wire.send(300, [0]);
    assert!(wire.ack(340, 1, 300));
    // Both first transmissions are older than what was answered; the mark passes on.
    assert_eq!(wire.ertt.rtt, 41);
    // Corrected back to the last that was skipped, segment 1 of time 0: 3 segments were sent, 2
    // skipped, 1 added again.
    assert_eq!((wire.ertt.marked, wire.ertt.bytes_in_marked), (341, 2 * MSS as i64));
    assert_eq!(wire.left(), [] as [u64; 0]);
}

#[test]
fn without_timestamps_a_retransmission_is_taken_for_the_first_transmission() {
    let mut wire = ErttSender::new(false);
    wire.send(0, [0, 1]);
    wire.send(300, [0]);
    assert!(wire.ack(340, 1, 0));
    assert_eq!(wire.ertt.rtt, 341);
    // The second transmission waits at the end until an ACK beyond it has removed what is before
    // it.
    assert_eq!(wire.left(), [1, 0]);
    wire.ack(341, 2, 0);
    assert_eq!(wire.left(), [0]);
    wire.send(341, [2]);
    wire.ack(381, 3, 0);
    assert_eq!((wire.ertt.rtt, wire.left().len()), (41, 0));
}

#[test]
fn an_echo_of_before_the_segment_answers_another_unless_acks_are_delayed() {
    let mut wire = ErttSender::new(true);
    wire.send(100, [0]);
    assert!(!wire.ack(140, 1, 90));
    assert_eq!((wire.ertt.rtt, wire.left()), (0, vec![0]));
    let mut wire = ErttSender::new(true);
    wire.send(100, [0]);
    wire.ertt.delayed_acks = 2;
    assert!(wire.ack(140, 1, 90));
    // The ACK may have waited: the mark is measured, the sample is not.
    assert_eq!((wire.ertt.delayed_acks, wire.ertt.rtt, wire.ertt.marked), (1, 0, 41));
}

#[test]
fn an_echo_from_the_future_is_no_echo() {
    let mut ertt = Ertt::new(MS);
    ertt.on_sent(&flight(100, 10), &Sent { seq: 0, bytes: MSS as u32 });
    let arrival = Arrival { ack: MSS, acked: MSS, echoed: Some(Span::from_secs(4_294_967)), ..Arrival::default() };
    ertt.on_arrival(&flight(140, 10), &arrival, 0);
    assert_eq!(ertt.rtt, 41);
}

#[test]
fn sack_blocks_are_answers_too() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..2);
    wire.send(3, 2..4);
    wire.ertt.delayed_acks = 3;
    // Segment 0 is missing: 1 is reported, then 3.
    assert!(wire.arrive(40, 0, 0, Some(2)), "the mark of the lost segment passes on");
    assert_eq!((wire.ertt.rtt, wire.ertt.delayed_acks), (41, 3), "SACK is at once, and says nothing of delayed ACKs");
    assert_eq!(wire.left(), [2, 3]);
    assert!(!wire.arrive(45, 0, 3, Some(4)));
    assert_eq!((wire.ertt.rtt, wire.left().len()), (43, 0));
    // A repetition of the report finds nothing.
    assert!(!wire.arrive(46, 0, 3, Some(4)));
    // Segment 0 again; its ACK covers what had been reported, and is a sample although it
    // acknowledges four at once.
    wire.send(50, [0]);
    assert!(wire.ack(90, 4, 50));
    assert_eq!((wire.ertt.marked, wire.ertt.delayed_acks), (41, 3));
    // The marked segment is wholly below the acknowledged data, so it is no sample itself.
    assert_eq!(wire.ertt.rtt, 43);
}

#[test]
fn holes_count_as_sack_until_they_are_filled_or_forgotten() {
    let mut wire = ErttSender::new(true);
    wire.ertt.delayed_acks = 3;
    wire.send(0, 0..4);
    wire.arrive(40, 0, 0, Some(4));
    wire.send(50, [0, 1]);
    wire.ack(90, 1, 50);
    assert_eq!((wire.ertt.rtt, wire.ertt.delayed_acks), (41, 3), "the hole at 1 is open");
    let mut wire = ErttSender::new(true);
    wire.ertt.delayed_acks = 3;
    wire.send(0, 0..4);
    wire.arrive(40, 0, 0, Some(4));
    wire.ertt.on_timeout();
    wire.send(500, [0, 1]);
    wire.ack(545, 1, 500);
    assert_eq!((wire.ertt.rtt, wire.ertt.delayed_acks), (41, 2), "no sample: it may have waited");
}

#[test]
fn what_acknowledges_nothing_is_passed_over() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..2);
    assert!(!wire.ack(40, 0, 0));
    assert_eq!((wire.ertt.rtt, wire.left().len()), (0, 2));
    // Nor is an empty segment remembered.
    wire.ertt.on_sent(&flight(0, 10), &Sent { seq: 9, bytes: 0 });
    assert_eq!(wire.left().len(), 2);
}

#[test]
fn no_more_is_remembered_than_the_bound() {
    let mut wire = ErttSender::new(true);
    wire.send(0, 0..SEGMENTS as u64 + 5);
    assert_eq!(wire.left().len(), SEGMENTS);
    let capacity = wire.ertt.segments.capacity();
    wire.ack(40, SEGMENTS as u64, 0);
    assert_eq!((wire.left().len(), wire.ertt.segments.capacity()), (0, capacity), "the memory is kept for what comes");
}

/// Nothing is SACKed before the first block, not even at the start of the stream: the ACK of two
/// segments shows that ACKs are delayed.
#[test]
fn the_first_ack_of_a_connection_is_no_sack() {
    let mut wire = ErttSender::new(true);
    wire.send(10, 0..2);
    wire.ack(50, 2, 10);
    assert!(wire.ertt.enhanced_rtt().delayed_acks);
}

/// An ACK that acknowledges and SACKs nothing (a window update) measures nothing, whatever it
/// echoes.
#[test]
fn an_ack_of_nothing_measures_nothing() {
    let mut wire = ErttSender::new(true);
    wire.send(10, 0..3);
    assert!(!wire.ack(50, 0, 40));
    assert_eq!((wire.left(), wire.ertt.rtt), (vec![0, 1, 2], 0));
}

/// h_ertt.c, `ertt_packet_measurement_hook`: more than a segment is a sign of delayed ACKs, exactly
/// one (full, or as large as this one) is a sign against them, less says nothing.
#[test]
fn delayed_acks_are_guessed_from_what_an_ack_covers() {
    let f = flight(0, 10);
    for (acked, bytes, multiple, after) in [
        (2 * MSS, MSS, true, 4),
        (MSS + 1, 2 * MSS, true, 4),
        (501, 500, true, 4),
        (MSS, MSS, false, 2),
        (500, 500, false, 2),
        (MSS, 2 * MSS, false, 2),
        (400, 500, false, 3),
    ] {
        let mut ertt = Ertt::new(MS);
        ertt.delayed_acks = 3;
        assert_eq!(ertt.guess_delayed_acks(&f, acked, bytes as u32), multiple, "{acked} of {bytes}");
        assert_eq!(ertt.delayed_acks, after, "{acked} of {bytes}");
    }
}

#[test]
fn a_sample_is_bounded() {
    let ertt = Ertt::new(Span::from_nanos(1));
    let ticks = |nanos| ertt.ticks_since(Time::ZERO, Time::from_nanos(nanos));
    assert_eq!(ticks((1 << 40) - 2), (1 << 40) - 1);
    assert_eq!(ticks((1 << 40) - 1), 1 << 40);
    assert_eq!(ticks(u64::MAX), 1 << 40);
}
