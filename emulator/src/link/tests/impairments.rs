//! Losses, duplicates, jitter, bit errors and packets that are held back.

use super::*;
use crate::Impairments;

#[test]
fn listed_packets_are_lost_by_their_number_of_transmission() {
    for (list, survivors) in [
        (vec![1, 3], vec![2, 4, 5]),
        // Numbers of no packet, and repeated ones, lose nothing.
        (vec![0, 2, 2, 5], vec![1, 3, 4]),
        (vec![], vec![1, 2, 3, 4, 5]),
    ] {
        let impairments = Impairments { loss: Loss::List(list.clone()), ..Impairments::default() };
        let (arrivals, events) = burst(&mut link(LinkConfig { impairments, ..config() }), 5);
        assert_eq!(slots(&arrivals), survivors, "{list:?}");
        let lost = events.iter().filter(|event| matches!(event.kind, LinkEventKind::Lost { .. })).count();
        assert_eq!(lost, 5 - survivors.len());
    }
}

#[test]
fn a_lost_packet_takes_its_transmission_time() {
    let impairments = Impairments { loss: Loss::List(vec![1]), ..Impairments::default() };
    assert_eq!(burst(&mut link(LinkConfig { impairments, ..config() }), 2).0, [(3000, 2)]);
}

#[test]
fn a_duplicate_arrives_with_its_original() {
    let impairments = Impairments { duplicate: 1.0, ..Impairments::default() };
    let (arrivals, events) = burst(&mut link(LinkConfig { impairments, ..config() }), 2);
    assert_eq!(arrivals, [(2000, 1), (2000, 1), (3000, 2), (3000, 2)]);
    let duplicated = events.iter().filter(|event| matches!(event.kind, LinkEventKind::Duplicated { .. })).count();
    assert_eq!(duplicated, 2);
}

#[test]
fn independent_losses_come_at_their_rate() {
    let impairments = Impairments { loss: Loss::Iid(0.25), ..Impairments::default() };
    let mut link = Link::new(LinkConfig { rate: None, impairments, ..config() }, pfifo(1), random("link"));
    // Standard deviation of the number of 10,000: sqrt(10,000 * 0.25 * 0.75) = 43; five of them.
    let arrived = burst(&mut link, 10_000).0.len();
    assert!(arrived.abs_diff(7500) < 217, "{arrived}");
}

/// Losses and duplicates do not depend on other impairments.
#[test]
fn every_impairment_draws_from_a_stream_of_its_own() {
    let fates = |impairments: Impairments| {
        let mut link = Link::new(LinkConfig { rate: None, impairments, ..config() }, pfifo(1), random("link"));
        let (_, events) = burst(&mut link, 1000);
        let slots = |wanted: fn(&LinkEventKind) -> Option<Packet>| -> Vec<u32> {
            events.iter().filter_map(|event| wanted(&event.kind)).map(|packet| packet.slot).collect()
        };
        let lost = slots(|kind| match kind {
            LinkEventKind::Lost { packet, .. } => Some(*packet),
            _ => None,
        });
        let doubled = slots(|kind| match kind {
            LinkEventKind::Duplicated { packet } => Some(*packet),
            _ => None,
        });
        (lost, doubled)
    };
    let loss = Loss::Iid(0.2);
    let (lost, _) = fates(Impairments { loss: loss.clone(), ..Impairments::default() });
    assert!((100..300).contains(&lost.len()));
    let hold_back = Reorder::HoldBack(HoldBack { probability: 0.3, ..HoldBack::default() });
    let mut doubles = Vec::new();
    for (duplicate, jitter, reorder) in [
        (0.0, Span::from_millis(5), Reorder::Never),
        (0.0, Span::from_millis(5), Reorder::ByJitter),
        (0.0, Span::ZERO, hold_back),
        (0.3, Span::ZERO, Reorder::Never),
        (0.3, Span::from_millis(5), Reorder::ByJitter),
        (0.3, Span::from_millis(5), hold_back),
    ] {
        let (also_lost, doubled) =
            fates(Impairments { loss: loss.clone(), duplicate, jitter, reorder, ..Impairments::default() });
        assert_eq!(also_lost, lost, "{duplicate} {jitter} {reorder:?}");
        doubles.push(doubled);
    }
    assert!(doubles[0].is_empty() && doubles[3].len() > 150);
    assert!(doubles[4] == doubles[3] && doubles[5] == doubles[3]);
}

#[test]
fn jitter_may_change_the_order_only_if_told() {
    for reorder in [Reorder::Never, Reorder::ByJitter] {
        let impairments = Impairments { jitter: Span::from_millis(50), reorder, ..Impairments::default() };
        let (arrivals, _) = burst(&mut link(LinkConfig { impairments, ..config() }), 100);
        assert_eq!(slots(&arrivals) == (1..=100).collect::<Vec<_>>(), reorder == Reorder::Never);
        for &(at, slot) in &arrivals {
            let plain = 1000 * u64::from(slot) + 1000;
            assert!(at >= plain && at <= plain + 50_000 || reorder == Reorder::Never, "{slot} at {at}");
        }
    }
}

/// Uniform from nothing to all of it: of 10,000 packets a tenth falls into each tenth, with a
/// standard deviation of 30.
#[test]
fn jitter_is_uniform_up_to_what_it_says() {
    let impairments =
        Impairments { jitter: Span::from_millis(50), reorder: Reorder::ByJitter, ..Impairments::default() };
    let (arrivals, _) = burst(&mut link(LinkConfig { rate: None, impairments, ..config() }), 10_000);
    let mut tenths = [0u32; 10];
    for (at, _) in &arrivals {
        tenths[((at - 1000) / 5_000) as usize] += 1;
    }
    assert_eq!(arrivals.len(), 10_000);
    assert!(tenths.iter().all(|count| count.abs_diff(1000) < 150), "{tenths:?}");
    // With order kept each waits for the latest before it: in the end all that.
    let impairments = Impairments { jitter: Span::from_millis(50), ..Impairments::default() };
    let (arrivals, _) = burst(&mut link(LinkConfig { rate: None, impairments, ..config() }), 10_000);
    assert!(arrivals.is_sorted() && (50_900..=51_000).contains(&arrivals.last().unwrap().0), "{:?}", arrivals.last());
}

/// Packets that arrive at the same time do so in the order of their transmission, also where jitter
/// may change the order: here by a nanosecond.
#[test]
fn equal_arrivals_keep_their_order() {
    let impairments = Impairments { jitter: Span::from_nanos(1), reorder: Reorder::ByJitter, ..Impairments::default() };
    let mut link = link(LinkConfig { rate: None, impairments, ..config() });
    let mut events = Vec::new();
    for slot in 0..1000 {
        link.offer(Time::ZERO, packet(slot, 1250), &mut events);
    }
    let arrivals: Vec<_> = std::iter::from_fn(|| link.deliver(us(2000), &mut events)).collect();
    assert_eq!(arrivals.len(), 1000);
    assert!(arrivals.is_sorted_by_key(|(at, packet)| (*at, packet.slot)));
    let late = arrivals.iter().filter(|(at, _)| *at > us(1000)).count();
    assert!((400..600).contains(&late), "{late} a nanosecond late");
}

#[test]
fn bit_errors_come_at_their_rate_to_each_copy_and_change_nothing_else() {
    let link = |corrupt| {
        let impairments =
            Impairments { corrupt, duplicate: 0.5, jitter: Span::from_millis(3), ..Impairments::default() };
        Link::new(LinkConfig { impairments, ..config() }, pfifo(10_000), random("link"))
    };
    let run = |corrupt| {
        let (mut link, mut events, mut delivered) = (link(corrupt), Vec::new(), Vec::new());
        (0..10_000).for_each(|slot| link.offer(Time::ZERO, packet(slot, 1250), &mut events));
        while let Some(arrival) = link.deliver(Time::from_secs(1000), &mut events) {
            delivered.push(arrival);
        }
        delivered
    };
    let (whole, wrong) = (run(0.0), run(0.1));
    let errors = wrong.iter().filter(|(_, packet)| packet.class.is_corrupted()).count() as f64;
    // Four standard deviations of a binomial number.
    let n = wrong.len() as f64;
    assert!((errors - 0.1 * n).abs() < 4.0 * (n * 0.1 * 0.9).sqrt(), "{errors} of {n}");
    let healed = wrong.into_iter().map(|(at, packet)| (at, Packet { class: Class::default(), ..packet }));
    assert_eq!(whole, healed.collect::<Vec<_>>());
    assert!(run(1.0).iter().all(|(_, packet)| packet.class.is_corrupted()));
}

fn held_back(probability: f64, extent: u32, timeout: Span) -> Link {
    let reorder = Reorder::HoldBack(HoldBack { probability, extent, timeout });
    let impairments = Impairments { reorder, ..Impairments::default() };
    Link::new(LinkConfig { impairments, ..config() }, pfifo(1000), random("link"))
}

#[test]
fn a_packet_is_held_back_until_as_many_as_its_extent_have_passed() {
    let (arrivals, _) = burst(&mut held_back(0.1, 8, Span::from_secs(10)), 1000);
    let order = slots(&arrivals);
    let plain: Vec<_> = (0..1000).filter(|&at| order[..at].iter().all(|&before| before < order[at])).collect();
    // A packet in ten; the standard deviation is sqrt(1000 * 0.1 * 0.9) = 9.5.
    let held = 1000 - plain.len();
    assert!(held.abs_diff(100) < 40, "{held}");
    for (at, &slot) in order.iter().enumerate().filter(|(at, _)| !plain.contains(at)) {
        let passed = plain.iter().filter(|&&plain| plain < at && order[plain] > slot).count();
        // The last ones wait for the timeout instead.
        assert!(passed == 8 || slot > 980, "{slot} was passed by {passed}");
    }
    // It arrives at the time of the one that was the last to pass it.
    let in_time = |at: usize| arrivals[at].0 == 1000 * u64::from(order[at]) + 1000;
    assert!(plain.iter().all(|&at| in_time(at)));
}

#[test]
fn a_packet_is_held_back_no_longer_than_its_timeout() {
    // Everything is held back, so that nothing passes: each arrives 5 ms late and none changes its
    // place.
    let (arrivals, _) = burst(&mut held_back(1.0, 3, Span::from_millis(5)), 10);
    assert_eq!(arrivals, (1..=10).map(|slot| (1000 * u64::from(slot) + 6000, slot)).collect::<Vec<_>>());
    // Nothing is held back by an extent of 0.
    let (arrivals, _) = burst(&mut held_back(1.0, 0, Span::from_millis(5)), 10);
    assert_eq!(arrivals, (1..=10).map(|slot| (1000 * u64::from(slot) + 1000, slot)).collect::<Vec<_>>());
}
