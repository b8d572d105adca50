//! Links that change: rate, delay, loss, outages, queue, and traces.

use std::sync::Arc;

use ackclock_aqm::{Overhead, QueueSpec};

use super::*;
use crate::Impairments;
use crate::{Change, Course, Format, OPPORTUNITY, Trace, Up};

pub(super) fn change(at: Time) -> Change {
    Change { at, ..Change::default() }
}

fn rate(mbit: u64) -> Option<Option<Rate>> {
    Some(Rate::from_bps(mbit * MBIT))
}

pub(super) fn scheduled(config: LinkConfig, schedule: Vec<Change>) -> Link {
    Link::with_course(config, pfifo(100_000), random("link"), Course { schedule, ..Course::default() })
}

fn traced(text: &str, format: Format, repeats: bool, config: LinkConfig) -> Link {
    let trace = Some(Arc::new(Trace::parse(text, format, repeats).unwrap()));
    Link::with_course(config, pfifo(100_000), random("link"), Course { trace, ..Course::default() })
}

fn mahimahi(text: &str, config: LinkConfig) -> Link {
    traced(text, Format::Mahimahi { bytes: OPPORTUNITY }, true, config)
}

fn lost(events: &[LinkEvent]) -> Vec<u32> {
    let slot = |event: &LinkEvent| match event.kind {
        LinkEventKind::Lost { packet, .. } => Some(packet.slot),
        _ => None,
    };
    events.iter().filter_map(slot).collect()
}

#[test]
fn the_rest_of_a_packet_is_sent_at_the_new_rate() {
    // 10000 bits: half of them in 0.5 ms at 10 Mbit/s, the others in 1 ms at 5. The next packet
    // takes 2 ms.
    let mut link = scheduled(config(), vec![Change { rate: rate(5), ..change(us(500)) }]);
    assert_eq!(burst(&mut link, 2).0, [(2500, 1), (4500, 2)]);
    // Unlimited: what is left is sent at once.
    let mut link = scheduled(config(), vec![Change { rate: Some(None), ..change(us(500)) }]);
    assert_eq!(burst(&mut link, 3).0, [(1500, 1), (1500, 2), (1500, 3)]);
}

#[test]
fn the_bits_of_a_ramp_are_its_integral() {
    // From 10 to 20 Mbit/s within 1 s: 15 Mbit, 1500 packets of 10000 bits. Within the first half
    // it rises to 15: 6.25 Mbit, 625 packets. Then 20 Mbit/s.
    let ramp = Change { rate: rate(20), until: Some(us(1_000_000)), ..change(us(0)) };
    let (arrivals, _) = burst(&mut scheduled(config(), vec![ramp]), 1502);
    let at = |slot: usize| arrivals[slot - 1];
    assert_eq!([at(625), at(1500), at(1502)], [(501_000, 625), (1_001_000, 1500), (1_002_000, 1502)]);
    // And back, from 20 to 10 from 1 s on: 17.5 / 2 Mbit within half a second.
    let down = Change { rate: rate(10), until: Some(us(2_000_000)), ..change(us(1_000_000)) };
    let start = Change { rate: rate(20), ..change(us(0)) };
    let (arrivals, _) = burst(&mut scheduled(config(), vec![start, down]), 2875);
    assert_eq!(arrivals[2874], (1_501_000, 2875));
}

#[test]
fn a_shorter_delay_keeps_the_order_unless_asked() {
    // 1 ms, then none from 1.5 ms on: the packets end at 1, 2 and 3 ms. With 5 ms before, the first
    // would arrive at 6 ms.
    let schedule = || vec![Change { delay: Some(Span::ZERO), ..change(us(1500)) }];
    let five = LinkConfig { delay: Span::from_millis(5), ..config() };
    assert_eq!(burst(&mut scheduled(config(), schedule()), 3).0, [(2000, 1), (2000, 2), (3000, 3)]);
    assert_eq!(burst(&mut scheduled(five.clone(), schedule()), 3).0, [(6000, 1), (6000, 2), (6000, 3)]);
    let impairments = Impairments { reorder: Reorder::ByJitter, ..Impairments::default() };
    let mut overtaking = scheduled(LinkConfig { impairments, ..five }, schedule());
    assert_eq!(burst(&mut overtaking, 3).0, [(2000, 2), (3000, 3), (6000, 1)]);
}

#[test]
fn a_ramp_of_the_delay_is_that_of_the_last_bit() {
    // From 1 ms at 0 to 5 ms at 4 ms: packets end at 1 to 5 ms.
    let ramp = Change { delay: Some(Span::from_millis(5)), until: Some(us(4000)), ..change(us(0)) };
    let (arrivals, _) = burst(&mut scheduled(config(), vec![ramp]), 5);
    assert_eq!(arrivals, [(3000, 1), (5000, 2), (7000, 3), (9000, 4), (10_000, 5)]);
}

#[test]
fn what_ends_at_the_time_of_a_change_comes_before_it() {
    // The first packet ends at 1 ms: by the delay and the loss before.
    let schedule =
        vec![Change { delay: Some(Span::from_millis(9)), loss: Some(1.0), rate: rate(5), ..change(us(1000)) }];
    let (arrivals, events) = burst(&mut scheduled(config(), schedule), 3);
    assert_eq!((arrivals, lost(&events)), (vec![(2000, 1)], vec![2, 3]));
    assert_eq!(events.last().unwrap().at, us(5000));
}

#[test]
fn a_link_that_is_down_holds_packets() {
    // Half of the first packet is sent before the outage of 10 ms, the other half after it.
    let schedule = || {
        vec![Change { up: Some(Up::Holds), ..change(us(500)) }, Change { up: Some(Up::Passes), ..change(us(10_500)) }]
    };
    let mut link = scheduled(config(), schedule());
    assert_eq!(burst(&mut link, 2).0, [(12_000, 1), (13_000, 2)]);
    // Arrivals in the meantime wait as well.
    let (mut link, mut events) = (scheduled(config(), schedule()), Vec::new());
    link.offer(us(600), packet(1, 1250), &mut events);
    link.offer(us(700), packet(2, 1250), &mut events);
    assert_eq!(link.queue().backlog().packets, 2);
    assert_eq!(drain(&mut link, &mut events), [(12_500, 1), (13_500, 2)]);
    let waits: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            LinkEventKind::Sent { sojourn, .. } => Some(sojourn.as_micros()),
            _ => None,
        })
        .collect();
    assert_eq!(waits, [9900, 10_800]);
}

#[test]
fn a_link_that_is_down_may_lose_packets() {
    // It is down from 1.5 to 3.5 ms; packets end at 1 to 5 ms. What has been sent arrives.
    let schedule =
        vec![Change { up: Some(Up::Loses), ..change(us(1500)) }, Change { up: Some(Up::Passes), ..change(us(3500)) }];
    let (arrivals, events) = burst(&mut scheduled(config(), schedule), 5);
    assert_eq!((arrivals, lost(&events)), (vec![(2000, 1), (5000, 4), (6000, 5)], vec![2, 3]));
}

#[test]
fn parameters_of_the_queue_change_at_their_time_on_an_idle_link_too() {
    let limited = |packets| QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(packets) });
    let schedule = vec![
        Change { queue: Some(limited(1)), ..change(us(1000)) },
        Change { queue: Some(limited(2)), ..change(us(50_000)) },
    ];
    let (mut link, mut events) = (scheduled(config(), schedule), Vec::new());
    // The transmitter takes one; of three, one fits, and later two.
    for at in [20_000, 60_000] {
        (0..4).for_each(|slot| link.offer(us(at), packet(slot, 1250), &mut events));
    }
    let dropped = |event: &&LinkEvent| matches!(event.kind, LinkEventKind::Dropped { .. });
    let times: Vec<_> = events.iter().filter(dropped).map(|event| event.at).collect();
    assert_eq!(times, [us(20_000), us(20_000), us(60_000)]);
}

#[test]
fn packets_share_an_opportunity_and_use_several() {
    // Opportunities at 2, 4, 6 ... ms of 1504 bytes. Three packets of 500 share the first with 4
    // bytes of the fourth; 3000 bytes fill it, use the two after it and 12 bytes of a third.
    let config = LinkConfig { delay: Span::ZERO, ..config() };
    let mut link = mahimahi("2\n", config.clone());
    let mut events = Vec::new();
    for (slot, bytes) in [(1, 500), (2, 500), (3, 500), (4, 500), (5, 3000), (6, 100)] {
        link.offer(us(100), packet(slot, bytes), &mut events);
    }
    assert_eq!(drain(&mut link, &mut events), [(2000, 1), (2000, 2), (2000, 3), (4000, 4), (8000, 5), (8000, 6)]);
    // One that comes at the time of an opportunity is too late for it.
    link.offer(us(1_000_000_000_000), packet(7, 1500), &mut events);
    let due = std::iter::from_fn(|| {
        let due = link.next_due();
        link.deliver(due, &mut events).map(|(at, _)| at)
    });
    assert_eq!(due.take(1).collect::<Vec<_>>(), [us(1_000_000_002_000)]);
    // As in mahimahi, whose packets have 4 bytes more: one for each.
    let mut link = mahimahi("1\n1\n2\n", LinkConfig { overhead: Overhead::bytes(4), ..config });
    for slot in 1..=5 {
        link.offer(us(0), packet(slot, 1500), &mut events);
    }
    assert_eq!(drain(&mut link, &mut events), [(1000, 1), (1000, 2), (2000, 3), (3000, 4), (3000, 5)]);
}

#[test]
fn delivered_bytes_equal_the_opportunities() {
    // Seven in 10 ms, 100 rounds. Packets of any size wait all the time; those that are through are
    // short of the opportunities by a part of one packet.
    let mut link = mahimahi("0\n1\n4\n4\n5\n9\n10\n", LinkConfig { delay: Span::ZERO, ..config() });
    let mut events = Vec::new();
    let sizes: Vec<u32> = (0..2000).map(|slot| 40 + slot * 7919 % 1461).collect();
    for (slot, &bytes) in (0..).zip(&sizes) {
        link.offer(us(0), packet(slot, bytes), &mut events);
    }
    let end = us(1_000_000);
    let delivered: u64 =
        std::iter::from_fn(|| link.deliver(end, &mut events)).map(|(_, one)| u64::from(one.wire_len)).sum();
    link.catch_up(end, &mut events);
    // Opportunities at 0 pass before the first packet arrives.
    let usage = link.usage().unwrap();
    let opportunities = 7 * 100 + 1;
    assert_eq!(usage.possible, bits(opportunities * 1504 * 8));
    let sent = (opportunities - 1) * 1504;
    assert_eq!(usage.sent, bits(sent * 8));
    let next = u64::from(sizes[slots_sent(&events)]);
    assert!(delivered <= sent && sent < delivered + next, "{delivered} {next}");
}

/// So many bits, as [`Usage`] counts them.
pub(super) fn bits(bits: u64) -> u128 {
    u128::from(bits) * 1_000_000_000
}

/// The number of packets sent whole; the last one is in transmission.
fn slots_sent(events: &[LinkEvent]) -> usize {
    events.iter().filter(|event| matches!(event.kind, LinkEventKind::Sent { .. })).count() - 1
}

#[test]
fn rates_of_a_trace_follow_each_other() {
    // 10 Mbit/s for 1 ms, nothing for 2 ms, 5 Mbit/s for 3 ms, and again.
    let text = "0ms 10mbit\n1ms 0bit\n3ms 5mbit\n6ms 0bit\n";
    let mut link = traced(text, Format::Rates, true, LinkConfig { delay: Span::ZERO, ..config() });
    let (arrivals, mut events) = burst(&mut link, 5);
    // The third is cut by the end of the first round, the fourth by the pause of the second.
    assert_eq!(arrivals, [(1000, 1), (5000, 2), (6500, 3), (10_000, 4), (12_000, 5)]);
    link.catch_up(us(12_000), &mut events);
    assert_eq!(link.usage().unwrap().possible, bits(50_000));
}

#[test]
fn usage_leaves_out_outages() {
    let schedule = vec![
        Change { up: Some(Up::Holds), ..change(us(2000)) },
        Change { up: Some(Up::Passes), rate: rate(20), ..change(us(6000)) },
    ];
    let (mut link, mut events) = (scheduled(config(), schedule), Vec::new());
    link.offer(us(0), packet(1, 1250), &mut events);
    link.catch_up(us(8000), &mut events);
    // 2 ms at 10 Mbit/s and 2 ms at 20.
    let usage = link.usage().unwrap();
    assert_eq!((usage.possible, usage.sent), (bits(60_000), bits(10_000)));
    assert_eq!(self::link(config()).usage(), None);
}

/// Changes of every kind within 300 ms; the queue's only where it is known.
pub(super) fn any_schedule() -> impl Strategy<Value = Vec<Change>> {
    let rate = prop_oneof![1 => Just(None), 8 => (100_000u64..100 * MBIT).prop_map(Rate::from_bps)];
    let up = prop_oneof![Just(Up::Passes), Just(Up::Holds), Just(Up::Loses)];
    let one = (
        1u64..60_000,
        proptest::option::weighted(0.3, 1u64..100),
        proptest::option::of(rate),
        proptest::option::of((0u64..50_000).prop_map(Span::from_micros)),
        proptest::option::weighted(0.2, 0.0..1.0),
        proptest::option::weighted(0.3, up),
        proptest::option::weighted(0.3, (0u64..20_000).prop_map(Span::from_micros)),
        proptest::option::weighted(0.2, prop::sample::select(QueueSpec::all())),
    );
    prop::collection::vec(one, 1..10).prop_map(|changes| {
        let mut at = Time::ZERO;
        let starts: Vec<Time> = changes
            .iter()
            .map(|&(gap, ..)| {
                at += Span::from_micros(gap);
                at
            })
            .collect();
        let mut schedule = Vec::new();
        for (n, (_, ramp, rate, delay, loss, up, jitter, queue)) in changes.into_iter().enumerate() {
            let at = starts[n];
            // A part of the time until the next change.
            let until = ramp
                .map(|part| at + starts.get(n + 1).map_or(Span::from_millis(9), |next| next.since(at)) * part / 100);
            let until = until.filter(|&until| until > at);
            schedule.push(Change { at, until, rate, delay, jitter, loss, up, queue });
        }
        // It is up in the end.
        schedule.push(Change { up: Some(Up::Passes), ..change(at + Span::from_millis(10)) });
        schedule
    })
}

fn any_course() -> impl Strategy<Value = Course> {
    let opportunities = prop::collection::vec(0u64..5, 1..40).prop_map(|gaps| {
        let times = gaps.into_iter().scan(1, |at, gap| {
            *at += gap;
            Some(format!("{at}\n"))
        });
        Trace::parse(&times.collect::<String>(), Format::Mahimahi { bytes: 700 }, true).unwrap()
    });
    let rates = prop::collection::vec((1u64..9000, 0u64..20_000), 1..40).prop_map(|steps| {
        let mut text = "time_us rate_kbit\n0 1000\n".to_owned();
        let mut at = 0;
        for (gap, rate) in steps {
            at += gap;
            text.push_str(&format!("{at} {rate}\n"));
        }
        Trace::parse(&text, Format::Rates, true).unwrap()
    });
    let trace = prop_oneof![opportunities, rates].prop_map(Arc::new);
    (any_schedule(), proptest::option::of(trace)).prop_map(|(mut schedule, trace)| {
        if trace.is_some() {
            schedule.iter_mut().for_each(|change| change.rate = None);
        }
        Course { schedule, trace, ..Course::default() }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// Between any two times no more is sent than was possible, however short the time is, whatever
    /// changes in it, and wherever transmissions begin and end.
    #[test]
    fn no_more_is_sent_than_is_possible(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        course in any_course(),
        edges in prop::collection::btree_set(0u64..1_000_000_000, 1..200),
    ) {
        let config = LinkConfig { burst: None, ..config };
        let mut link = Link::with_course(config, build_queue(&queue), random("link"), course);
        let (mut then, mut events, mut arrivals) = (Usage::default(), Vec::new(), arrivals.iter().peekable());
        for edge in edges.into_iter().map(Time::from_nanos) {
            while let Some(&(at, packet)) = arrivals.next_if(|(at, _)| *at < edge) {
                link.offer(at, packet, &mut events);
            }
            link.catch_up(edge, &mut events);
            let now = link.usage().unwrap();
            prop_assert!(now.sent - then.sent <= now.possible - then.possible, "{then:?} {now:?} at {edge:?}");
            then = now;
        }
    }

    /// Changes that change nothing: the transmitter of a link that changes is that of one that does
    /// not, to the nanosecond and in every event but for what is not known beforehand.
    #[test]
    fn nothing_changes_nothing(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        times in prop::collection::btree_set(0u64..1_000_000, 1..20),
    ) {
        let config = LinkConfig { burst: None, ..config };
        let schedule = times.into_iter().map(|at| change(us(at))).collect();
        let course = Course { schedule, ..Course::default() };
        let mut constant = Link::new(config.clone(), build_queue(&queue), random("link"));
        let mut changing = Link::with_course(config, build_queue(&queue), random("link"), course);
        let (expected, mut events) = polled_late(&mut constant, &arrivals);
        for event in &mut events {
            if let LinkEventKind::Sent { busy, .. } = &mut event.kind {
                *busy = Span::ZERO;
            }
        }
        prop_assert_eq!(polled_late(&mut changing, &arrivals), (expected, events));
    }

    #[test]
    fn late_polls_of_a_link_that_changes_change_nothing(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        course in any_course(),
        others in prop::collection::btree_set(0u64..1_000_000, 0..50),
    ) {
        let config = LinkConfig { burst: None, ..config };
        let others: Vec<_> = others.into_iter().map(us).collect();
        let build = || Link::with_course(config.clone(), build_queue(&queue), random("link"), course.clone());
        let exact = polled_exactly(&mut build(), &arrivals, &[]);
        prop_assert_eq!(&exact, &polled_exactly(&mut build(), &arrivals, &others));
        prop_assert_eq!(&exact, &polled_late(&mut build(), &arrivals));
        let (delivered, events) = exact;
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        prop_assert!(delivered.is_sorted_by_key(|&(at, _)| at));
        let count = |keep: fn(&LinkEventKind) -> bool| events.iter().filter(|event| keep(&event.kind)).count();
        let gone = count(|kind| matches!(kind, LinkEventKind::Dropped { .. } | LinkEventKind::Lost { .. }));
        let doubled = count(|kind| matches!(kind, LinkEventKind::Duplicated { .. }));
        prop_assert_eq!(delivered.len() + gone, arrivals.len() + doubled);
        let several = ["fq_codel", "fq_pie", "dualpi2", "curvy_red", "prio", "cake", "drr", "ets", "sfq", "fq"];
        let mut queues = course.schedule.iter().filter_map(|change| change.queue.as_ref());
        let keep_order = queue.keeps_order() && queues.all(|queue| !several.contains(&queue.name()));
        if config.impairments.reorder == Reorder::Never && keep_order {
            prop_assert!(delivered.is_sorted_by_key(|(_, packet)| packet.slot));
        }
    }
}

/// 10,000 bits a packet. The third has half of its bits at 10 Mbit/s and half at 5, until 3.5 ms,
/// and a delay of 5 ms; the fourth ends at 5 ms and the fifth at 6, where all are lost; the sixth in
/// the second round, from 6.5 ms on, at 7 ms with a delay of 1, behind the third.
#[test]
fn a_trace_sets_rate_delay_and_loss() {
    let text = "0s 10mbit 1ms 0\n2500us 5mbit 5ms 0\n4500us 10mbit 5ms 1\n6500us 1mbit 9ms 1";
    let mut link = traced(text, Format::Path, true, config());
    let (arrivals, events) = burst(&mut link, 6);
    assert_eq!(arrivals, [(2000, 1), (3000, 2), (8500, 3), (8500, 6)]);
    assert_eq!(lost(&events), [4, 5]);
}

/// At 10 Mbit/s packets end each millisecond: by the delays 1, 3, 3 (what ends at the time of a
/// change comes before it) and 1 ms, which keeps the order.
#[test]
fn a_trace_of_delays_leaves_the_rate() {
    let trace = Trace::constant(true).with_delays("0s 1ms\n1500us 3ms\n3ms 1ms").unwrap();
    let course = Course { trace: Some(Arc::new(trace)), ..Course::default() };
    let mut link = Link::with_course(config(), pfifo(100_000), random("link"), course);
    assert_eq!(burst(&mut link, 4).0, [(2000, 1), (5000, 2), (6000, 3), (6000, 4)]);
}
