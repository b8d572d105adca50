//! Changes that come while a link is in use.

use ackclock_aqm::{Counters, QueueSpec, Tally};

use super::varying::{any_schedule, bits, change, scheduled};
use super::*;
use crate::Impairments;
use crate::recording::Action;
use crate::{Change, Course, JitterDistribution, Up};

/// Offers packets and makes changes in order of time; a change precedes what is offered at its
/// time. Each is put into the schedule when everything before its time has been done.
fn changed(link: &mut Link, arrivals: &[(Time, Packet)], changes: &[Change]) -> Outcome {
    let (mut delivered, mut events) = (Vec::new(), Vec::new());
    let mut changes = changes.iter().peekable();
    let mut take = |link: &mut Link, now: Time, events: &mut Vec<LinkEvent>| {
        while let Some(arrival) = link.deliver(now, events) {
            delivered.push(arrival);
        }
    };
    let mut make = |link: &mut Link, until: Time, events: &mut Vec<LinkEvent>| {
        while let Some(change) = changes.next_if(|change| change.at <= until) {
            let before = Time::from_nanos(change.at.as_nanos() - 1);
            take(link, before, events);
            link.catch_up(before, events);
            assert_eq!(link.change(change.clone()), change.at);
        }
    };
    for &(at, packet) in arrivals {
        make(link, at, &mut events);
        link.offer(at, packet, &mut events);
    }
    make(link, Time::NEVER, &mut events);
    take(link, Time::from_secs(1_000_000), &mut events);
    (delivered, without_busy(events))
}

/// A link that changes does not know beforehand how long a transmission takes.
fn without_busy(mut events: Vec<LinkEvent>) -> Vec<LinkEvent> {
    for event in &mut events {
        if let LinkEventKind::Sent { busy, .. } = &mut event.kind {
            *busy = Span::ZERO;
        }
    }
    events
}

#[test]
fn a_constant_link_goes_on_where_it_is() {
    // 1250 bytes are 10000 bits: half of the first packet at 10 Mbit/s, the rest at 5, as if it had
    // been scheduled. The delay of 1 ms becomes 3 from 2.5 ms on.
    let (mut link, mut events) = (link(config()), Vec::new());
    (1..=3).for_each(|slot| link.offer(us(0), packet(slot, 1250), &mut events));
    link.catch_up(Time::from_nanos(499_999), &mut events);
    assert_eq!(link.usage(), None);
    let slower = Change { rate: Some(Rate::from_bps(5 * MBIT)), ..change(us(500)) };
    assert_eq!(link.change(slower), us(500));
    link.catch_up(Time::from_nanos(2_499_999), &mut events);
    link.change(Change { delay: Some(Span::from_millis(3)), ..change(us(2500)) });
    assert_eq!(drain(&mut link, &mut events), [(2500, 1), (6500, 2), (8500, 3)]);
    link.catch_up(us(10_000), &mut events);
    // 0.5 ms at 10 Mbit/s and 9.5 at 5.
    assert_eq!(
        link.usage(),
        Some(Usage { possible: bits(52_500), sent: bits(30_000), limited: Span::from_millis(10) })
    );
}

#[test]
fn a_shorter_delay_makes_the_link_due_earlier() {
    let (mut link, mut events) = (link(LinkConfig { delay: Span::from_millis(100), ..config() }), Vec::new());
    link.offer(us(0), packet(1, 1250), &mut events);
    link.change(Change { delay: Some(Span::from_millis(1)), ..change(us(10)) });
    assert_eq!(link.next_due(), us(1010));
    assert_eq!(drain(&mut link, &mut events), [(2000, 1)]);
}

#[test]
fn a_change_at_the_time_of_another_comes_a_nanosecond_later() {
    let rate = |mbit: u64| Some(Rate::from_bps(mbit * MBIT));
    let mut link = scheduled(config(), vec![Change { rate: rate(5), ..change(us(500)) }]);
    let later = link.change(Change { rate: rate(20), ..change(us(500)) });
    assert_eq!(later, Time::from_nanos(500_001));
    // And one more behind that.
    let last = link.change(Change { rate: rate(10), ..change(us(500)) });
    assert_eq!(last, Time::from_nanos(500_002));
    // At 10 Mbit/s throughout, but for a nanosecond each at 5 and at 20.
    assert_eq!(burst(&mut link, 1).0, [(1999, 1)]);
}

#[test]
fn a_change_ends_a_ramp_and_an_end_that_has_passed_is_none() {
    // From 10 to 30 Mbit/s within 2 ms, cut after 1 ms: 15 Mbit/s on average until then, 15000
    // bits, and 10 Mbit/s from there on.
    let ramp = Change { rate: Some(Rate::from_bps(30 * MBIT)), until: Some(us(2000)), ..change(us(0)) };
    let mut link = scheduled(config(), vec![ramp]);
    link.change(Change { rate: Some(Rate::from_bps(10 * MBIT)), until: Some(us(1000)), ..change(us(1000)) });
    assert_eq!(slots(&burst(&mut link, 3).0), [1, 2, 3]);
    let (mut link, mut events) = (scheduled(config(), Vec::new()), Vec::new());
    link.change(Change { delay: Some(Span::ZERO), until: Some(us(0)), ..change(us(0)) });
    link.offer(us(0), packet(1, 1250), &mut events);
    assert_eq!(drain(&mut link, &mut events), [(1000, 1)]);
}

fn queue(name: &str) -> Option<QueueSpec> {
    Some(QueueSpec::by_name(name).unwrap())
}

/// Slots of packets that were discarded, with times and reasons.
fn dropped(events: &[LinkEvent]) -> Vec<(Time, u32, u32, DropReason)> {
    let of = |event: &LinkEvent| match event.kind {
        LinkEventKind::Dropped { packet, reason, .. } => Some((event.at, event.backlog, packet.slot, reason)),
        _ => None,
    };
    events.iter().filter_map(of).collect()
}

#[test]
fn another_discipline_begins_empty() {
    // A packet takes 1 ms: at 0.5 ms the first is in transmission, and two wait.
    let mut link = scheduled(config(), vec![Change { queue: queue("codel"), ..change(us(500)) }]);
    link.record();
    let mut events = Vec::new();
    (1..=3).for_each(|slot| link.offer(us(0), packet(slot, 1250), &mut events));
    link.offer(us(600), packet(4, 1250), &mut events);
    assert_eq!(drain(&mut link, &mut events), [(2000, 1), (3000, 4)]);
    let purged = |slot| (us(500), 0, slot, DropReason::Purge);
    assert_eq!(dropped(&events), [purged(2), purged(3)]);
    let tally = |packets| Tally { packets, bytes: 1250 * packets };
    let mut reasons = [0; DropReason::COUNT];
    reasons[DropReason::Purge as usize] = 2;
    let expected = Counters {
        offered: tally(4),
        enqueued: tally(4),
        dequeued: tally(2),
        dropped_on_dequeue: tally(2),
        dropped: reasons,
        ..Counters::default()
    };
    assert_eq!(link.counters(), expected);
    // The counters of the new discipline only.
    assert_eq!(link.queue().counters().offered, tally(1));
    let out = link.decisions().filter(|decision| decision.action == Action::Drop(DropReason::Purge));
    let out: Vec<_> = out.map(|decision| (decision.packet.slot, decision.sojourn, decision.backlog.packets)).collect();
    assert_eq!(out, [(2, Some(Span::from_micros(500)), 1), (3, Some(Span::from_micros(500)), 0)]);
}

#[test]
fn the_same_discipline_keeps_what_waits() {
    // Three wait at 0.5 ms; a FIFO that is full refuses, and discards nothing.
    let Some(QueueSpec::Pfifo(mut fifo)) = queue("pfifo") else { panic!() };
    fifo.limit = Limit::Packets(2);
    let mut link = scheduled(config(), vec![Change { queue: Some(QueueSpec::Pfifo(fifo)), ..change(us(500)) }]);
    let mut events = Vec::new();
    (1..=4).for_each(|slot| link.offer(us(0), packet(slot, 1250), &mut events));
    link.offer(us(600), packet(5, 1250), &mut events);
    assert_eq!(slots(&drain(&mut link, &mut events)), [1, 2, 3, 4]);
    assert_eq!(dropped(&events), [(us(600), 3, 5, DropReason::Limit)]);
}

#[test]
fn every_discipline_takes_the_place_of_every_other() {
    for old in QueueSpec::all() {
        for new in QueueSpec::all().into_iter().filter(|new| new.name() != old.name()) {
            let names = format!("{} after {}", new.name(), old.name());
            let course =
                Course { schedule: vec![Change { queue: Some(new), ..change(us(20_500)) }], ..Course::default() };
            let mut link = Link::with_course(config(), old.build(random("queue")), random("link"), course);
            link.record();
            let mut events = Vec::new();
            for slot in 1..=100 {
                link.offer(us(400 * u64::from(slot)), packet(slot, 1250), &mut events);
            }
            let arrived = drain(&mut link, &mut events).len();
            let discarded = dropped(&events);
            let purged = discarded.iter().filter(|drop| drop.3 == DropReason::Purge).count();
            assert!(purged > 0 && arrived + discarded.len() == 100, "{names}: {purged} {arrived}");
            assert_eq!(link.looks(), link.queue().looks(), "{names}");
            let counters = link.counters();
            assert!(counters.balance(link.queue().backlog()), "{names}");
            assert_eq!((counters.offered.packets, counters.dequeued.packets), (100, arrived as u64), "{names}");
            assert_eq!(counters.dropped.iter().sum::<u64>(), discarded.len() as u64, "{names}");
        }
    }
}

#[test]
fn jitter_begins_and_ends_at_its_times() {
    // Packets end at every millisecond, and take 10 ms; from 100 to 200 ms up to 5 ms more.
    let at = |jitter, ms: u64| Change { jitter: Some(Span::from_millis(jitter)), ..change(us(1000 * ms)) };
    let ten = LinkConfig { delay: Span::from_millis(10), ..config() };
    let (arrivals, _) = burst(&mut scheduled(ten.clone(), vec![at(5, 100), at(0, 200)]), 300);
    let extra = |(arrival, slot): &(u64, u32)| arrival - (1000 * u64::from(*slot) + 10_000);
    // Packets that end at the time of a change belong to the time before.
    let (before, rest) = arrivals.split_at(100);
    let (during, after) = rest.split_at(100);
    assert!(before.iter().all(|arrival| extra(arrival) == 0));
    assert!(during.iter().all(|arrival| extra(arrival) <= 5000) && during.iter().any(|arrival| extra(arrival) > 2500));
    // They wait for those before them, and no longer.
    assert!(after[5..].iter().all(|arrival| extra(arrival) == 0));
    assert!(arrivals.is_sorted());
    // Around the delay: some take less, and the link is due by then.
    let impairments = Impairments {
        jitter_distribution: JitterDistribution::Normal,
        reorder: Reorder::ByJitter,
        ..Default::default()
    };
    let mut link = Link::new(LinkConfig { impairments, ..ten }, pfifo(1000), random("link"));
    let mut events = Vec::new();
    link.change(at(2, 0));
    (1..=300).for_each(|slot| link.offer(us(0), packet(slot, 1250), &mut events));
    let (mut arrivals, mut earlier) = (0, 0);
    while link.next_due() < Time::NEVER {
        let due = link.next_due();
        while let Some((at, packet)) = link.deliver(due, &mut events) {
            assert_eq!(at, due, "it arrived before the link was due");
            arrivals += 1;
            earlier += u32::from(at < us(1000 * u64::from(packet.slot) + 10_000));
        }
    }
    assert!(arrivals == 300 && (100..200).contains(&earlier), "{arrivals} {earlier}");
}

#[test]
#[should_panic(expected = "does not change")]
fn a_token_bucket_does_not_change() {
    link(LinkConfig { burst: Some(3000), ..config() }).change(Change { up: Some(Up::Holds), ..change(us(1)) });
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    /// However late a change is known: constant until then, the link goes on as one that has had it
    /// in its schedule from the start.
    #[test]
    fn a_change_that_comes_later_is_that_of_the_schedule(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        schedule in any_schedule(),
        known in 0usize..4,
    ) {
        let config = LinkConfig { burst: None, ..config };
        let build = |schedule: &[Change]| {
            let course = Course { schedule: schedule.to_vec(), ..Course::default() };
            Link::with_course(config.clone(), build_queue(&queue), random("link"), course)
        };
        let (mut all, none) = (build(&schedule), changed(&mut build(&schedule), &arrivals, &[]));
        // Some of them are in the file.
        let known = known.min(schedule.len());
        let mut some = build(&schedule[..known]);
        prop_assert_eq!(&changed(&mut some, &arrivals, &schedule[known..]), &none);
        // The bits that it has sent, within one bit for each time that it was idle.
        let end = Time::from_secs(2_000_000);
        let mut events = Vec::new();
        changed(&mut all, &arrivals, &[]);
        [&mut all, &mut some].into_iter().for_each(|link| link.catch_up(end, &mut events));
        let [expected, found] = [all, some].map(|link| link.usage().unwrap());
        prop_assert_eq!(expected.possible, found.possible);
        prop_assert!(expected.sent.abs_diff(found.sent) <= bits(arrivals.len() as u64), "{:?} {:?}", expected, found);
    }

    /// The usage of a constant link equals that of one that changes by nothing.
    #[test]
    fn the_usage_of_a_constant_link_is_known(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        end in 1u64..1_000_000,
    ) {
        let config = LinkConfig { burst: None, ..config };
        let nothing = Course { schedule: vec![change(us(2_000_000_000))], ..Course::default() };
        let mut changing = Link::with_course(config.clone(), build_queue(&queue), random("link"), nothing);
        let mut constant = Link::new(config, build_queue(&queue), random("link"));
        let (end, mut events) = (us(end), Vec::new());
        for link in [&mut changing, &mut constant] {
            for &(at, packet) in arrivals.iter().filter(|(at, _)| *at <= end) {
                link.offer(at, packet, &mut events);
            }
            link.catch_up(end, &mut events);
        }
        let (expected, found) = (changing.usage().unwrap(), constant.usage_by(end));
        prop_assert_eq!(expected.possible, found.possible);
        prop_assert!(expected.sent.abs_diff(found.sent) <= bits(arrivals.len() as u64), "{:?} {:?}", expected, found);
    }
}
