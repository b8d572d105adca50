//! Scripts by hand, and any fates in any order against the definition, byte by byte.

use ackclock_aqm::DropReason;
use ackclock_trace::LossDeclarations;
use proptest::prelude::*;

use super::*;
use crate::DirectionId;

const MS: fn(u64) -> Time = Time::from_millis;

/// The queue of a link dropped it.
fn early(link: usize) -> Culprit {
    Culprit::new(Some(DirectionId::forward(link)), Reason::Queue(DropReason::Early), Some(0.5))
}

fn declaration(offset: u64, sent_at: Time, by_timeout: bool) -> LossDeclaration {
    LossDeclaration { offset, len: 100, stamp: Stamp::first(sent_at), by_timeout }
}

fn counts(truth: &Truth) -> (u64, u64, u64) {
    (truth.counts().needed, truth.counts().spurious_reordering, truth.counts().spurious_delay)
}

/// Sends segments of 100 bytes, from number `first` on, a millisecond apart.
fn send(truth: &mut Truth, first: u64, segments: u64) {
    for n in first..first + segments {
        assert_eq!(truth.sent(Stamp::first(MS(n)), (100 * (n - 1), 100 * n), SentAs::New, true), n);
    }
}

fn arrive(truth: &mut Truth, at: u64, number: u64) {
    truth.arrived(MS(at), number, |_, _| true, None);
}

#[test]
fn a_loss_is_known_with_the_first_ack_of_a_later_packet() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 4);
    truth.lost(MS(5), 1, early(0), None);
    // What the receiver sent before the second packet came says nothing.
    let before = truth.receiver_sent();
    arrive(&mut truth, 10, 2);
    let first = truth.receiver_sent();
    arrive(&mut truth, 11, 3);
    let second = truth.receiver_sent();
    let rtt = Some(Span::from_millis(20));
    truth.sender_received(MS(19), before, 0, rtt, None);
    // The first ACK is overtaken: the second shows the loss at 20 ms.
    truth.sender_received(MS(20), second, 0, rtt, None);
    truth.sender_received(MS(21), first, 0, rtt, None);
    truth.declared(MS(27), declaration(0, MS(1), false), None);
    let again = truth.sent(Stamp::first(MS(30)), (0, 100), SentAs::FastRetransmit, true);
    arrive(&mut truth, 40, 4);
    arrive(&mut truth, 41, again);
    let repair = truth.receiver_sent();
    truth.sender_received(MS(50), repair, 400, rtt, None);
    assert_eq!(counts(&truth), (1, 0, 0));
    assert_eq!(truth.counts().declarations(), LossDeclarations { right: 1, blind: 0, wrong: 0 });
    assert_eq!(truth.counts().late_ms().min, Some(7.0));
    // From 20 to 50 ms, in RTTs of 20 ms.
    assert_eq!(truth.counts().repair_rtts().min, Some(1.5));
    let by_queue = truth.counts().retransmissions(|_| "a.forward").by_queue;
    assert_eq!(by_queue["a.forward"]["early"], 1);
}

#[test]
fn what_is_lost_and_declared_in_another_order_is_still_told_apart() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 3);
    // All at one instant, and not in order of the stream; the queue at the end of the path loses
    // its packet first.
    for (number, from) in [(4, 400), (5, 300), (6, 500)] {
        assert_eq!(truth.sent(Stamp::first(MS(4)), (from, from + 100), SentAs::New, true), number);
    }
    truth.lost(MS(5), 5, early(1), None);
    truth.lost(MS(6), 2, early(0), None);
    truth.lost(MS(6), 4, early(0), None);
    for number in [1, 3] {
        arrive(&mut truth, 10 + number, number);
    }
    for (offset, sent_at) in [(300, 4), (100, 2), (450, 4), (500, 4), (0, 1)] {
        truth.declared(MS(20), declaration(offset, MS(sent_at), false), None);
    }
    arrive(&mut truth, 30, 6);
    truth.finish(MS(40), None);
    // Packets 5, 2 and 4 were lost, 6 and 1 were not.
    let LossDeclarations { right, blind: _, wrong } = truth.counts().declarations();
    assert_eq!((right, wrong), (3, 2));
}

#[test]
fn the_loss_of_the_last_packet_is_declared_blind() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 1);
    truth.lost(MS(5), 1, early(0), None);
    truth.declared(MS(300), declaration(0, MS(1), true), None);
    let again = truth.sent(Stamp::first(MS(300)), (0, 100), SentAs::Timeout, true);
    arrive(&mut truth, 310, again);
    let ack = truth.receiver_sent();
    truth.sender_received(MS(320), ack, 100, Some(Span::from_millis(20)), None);
    assert_eq!(counts(&truth), (1, 0, 0));
    assert_eq!(truth.counts().declarations(), LossDeclarations { right: 1, blind: 1, wrong: 0 });
    assert_eq!((truth.counts().late_ms().samples, truth.counts().repair_rtts().samples), (0, 0));
}

#[test]
fn an_original_that_arrives_after_its_retransmission_was_sent_makes_it_spurious() {
    for (sent_as, expected) in [(SentAs::FastRetransmit, (0, 1, 0)), (SentAs::Timeout, (0, 0, 1))] {
        let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
        send(&mut truth, 1, 3);
        arrive(&mut truth, 10, 2);
        arrive(&mut truth, 11, 3);
        truth.declared(MS(20), declaration(0, MS(1), sent_as == SentAs::Timeout), None);
        let again = truth.sent(Stamp::first(MS(20)), (0, 100), sent_as, true);
        // Even if the retransmission comes first, and the more if it is lost.
        if sent_as == SentAs::Timeout {
            arrive(&mut truth, 30, again);
        } else {
            truth.lost(MS(30), again, early(0), None);
        }
        arrive(&mut truth, 40, 1);
        assert_eq!(counts(&truth), expected);
        assert_eq!(truth.counts().declarations(), LossDeclarations { right: 0, blind: 0, wrong: 1 });
    }
}

#[test]
fn a_lost_retransmission_is_to_blame_for_the_next() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 1);
    truth.lost(MS(5), 1, early(0), None);
    let second = truth.sent(Stamp::first(MS(10)), (0, 100), SentAs::FastRetransmit, true);
    truth.lost(MS(15), second, early(1), None);
    let third = truth.sent(Stamp::first(MS(20)), (0, 100), SentAs::Timeout, true);
    arrive(&mut truth, 30, third);
    let fourth = truth.sent(Stamp::first(MS(40)), (0, 100), SentAs::Timeout, true);
    arrive(&mut truth, 50, fourth);
    assert_eq!(counts(&truth), (2, 0, 1));
    let by_queue = truth
        .counts()
        .retransmissions(|direction| if direction == DirectionId::forward(0) { "a.forward" } else { "b.forward" })
        .by_queue;
    assert_eq!((by_queue["a.forward"]["early"], by_queue["b.forward"]["early"]), (1, 1));
}

#[test]
fn what_the_receiver_refuses_has_to_be_sent_again() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 1);
    truth.arrived(MS(10), 1, |_, _| false, None);
    let again = truth.sent(Stamp::first(MS(20)), (0, 100), SentAs::Timeout, true);
    arrive(&mut truth, 30, again);
    assert_eq!(counts(&truth), (1, 0, 0));
    assert_eq!(truth.counts().retransmissions(|_| "a.forward").by_queue[RECEIVER]["refused"], 1);
}

#[test]
fn displacement_leaves_lost_packets_out() {
    let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
    send(&mut truth, 1, 6);
    // Sent 1 to 6, of which 2 is lost; arrival 3 1 4 6 5, places without 2: 1 3 4 5 6.
    truth.lost(MS(9), 2, early(0), None);
    for (at, number) in [(10, 3), (11, 1), (12, 4), (13, 6), (14, 5)] {
        arrive(&mut truth, at, number);
    }
    // 3 one early, 1 one late, 4 on time, 6 one early, 5 one late.
    let displacement = truth.displacement();
    assert_eq!((displacement.early, displacement.on_time, displacement.late), (0.4, 0.2, 0.4));
    assert_eq!((displacement.distribution.min, displacement.distribution.max), (Some(-1.0), Some(1.0)));
}

/// A transmission of the model: its range, whether it arrives, and when its fate is known in the
/// order of fates.
#[derive(Clone, Debug)]
struct Any {
    from: u64,
    to: u64,
    fate: Option<bool>,
    order: u32,
    timeout: bool,
}

/// New data and retransmissions of any earlier ranges, in any pieces; fates open, lost or arrived.
fn any_transmissions() -> impl Strategy<Value = Vec<Any>> {
    let one = (
        any::<bool>(),
        0u64..1000,
        1u64..12,
        prop_oneof![1 => Just(None), 4 => any::<bool>().prop_map(Some)],
        any::<u32>(),
        any::<bool>(),
    );
    prop::collection::vec(one, 1..60).prop_map(|all| {
        let mut end = 0;
        all.into_iter()
            .map(|(again, at, len, fate, order, timeout)| {
                let from = if again && end > 0 { at % end } else { end };
                let to = if again && end > 0 { (from + len).min(end) } else { from + len };
                end = end.max(to);
                Any { from, to, fate, order, timeout }
            })
            .collect()
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn a_retransmission_is_needed_if_all_earlier_ones_of_some_byte_were_lost(all in any_transmissions()) {
        let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
        let (mut end, mut expected) = (0, (0, 0, 0));
        for (n, one) in all.iter().enumerate() {
            let sent_as = if one.timeout { SentAs::Timeout } else { SentAs::FastRetransmit };
            // What is one byte long is a FIN, whose retransmission does not count.
            let is_data = one.to > one.from + 1;
            truth.sent(Stamp::first(MS(n as u64)), (one.from, one.to), sent_as, is_data);
            if one.from < end && is_data {
                let lost_before = |byte: u64| {
                    all[..n].iter().filter(|earlier| (earlier.from..earlier.to).contains(&byte)).all(|earlier| earlier.fate == Some(false))
                };
                match ((one.from..one.to).any(lost_before), one.timeout) {
                    (true, _) => expected.0 += 1,
                    (false, false) => expected.1 += 1,
                    (false, true) => expected.2 += 1,
                }
            }
            end = end.max(one.to);
        }
        let mut fates: Vec<usize> = (0..all.len()).collect();
        fates.sort_by_key(|&n| all[n].order);
        for n in fates {
            let (at, number) = (MS(1000 + u64::from(all[n].order)), n as u64 + 1);
            match all[n].fate {
                Some(true) => truth.arrived(at, number, |_, _| true, None),
                Some(false) => truth.lost(at, number, early(0), None),
                None => {}
            }
        }
        truth.finish(MS(u64::from(u32::MAX) + 2000), None);
        prop_assert_eq!(counts(&truth), expected);
        let arrived = all.iter().filter(|one| one.fate == Some(true)).count() as u64;
        prop_assert_eq!(truth.displacement().distribution.samples, arrived);
    }
}

#[test]
fn the_work_for_a_loss_does_not_grow_with_their_number() {
    // Every second packet is lost, and each is repaired and acknowledged in turn.
    for n in [100, 10_000] {
        let mut truth = Truth::new(SenderId::of(FlowId::new(0)));
        send(&mut truth, 1, 2 * n);
        for odd in (1..2 * n).step_by(2) {
            truth.lost(MS(odd), odd, early(0), None);
            arrive(&mut truth, odd, odd + 1);
            let serial = truth.receiver_sent();
            truth.sender_received(MS(odd + 1), serial, 0, Some(Span::from_millis(1)), None);
        }
        for odd in (1..2 * n).step_by(2) {
            let now = 2 * n + odd;
            truth.declared(MS(now), declaration(100 * (odd - 1), MS(odd), false), None);
            let again = truth.sent(Stamp::first(MS(now)), (100 * (odd - 1), 100 * odd), SentAs::FastRetransmit, true);
            arrive(&mut truth, now, again);
            let serial = truth.receiver_sent();
            truth.sender_received(MS(now + 1), serial, 100 * (odd + 1), Some(Span::from_millis(1)), None);
        }
        assert!(!truth.has_losses() && truth.trouble().losses.is_empty());
        assert_eq!(counts(&truth), (n, 0, 0));
        assert_eq!(truth.counts().declarations(), LossDeclarations { right: n, blind: 0, wrong: 0 });
        assert_eq!(truth.counts().repair_rtts().samples, n);
        assert!(truth.trouble().losses.looks <= 8 * n, "{} for {n} losses", truth.trouble().losses.looks);
    }
}
