use super::*;
use crate::stub::{Ask, Stub, stub};

fn random() -> Random {
    Random::for_component(1, 0, "sfq")
}

/// A queue with a bucket for each flow.
fn sfq(config: SfqConfig) -> Sfq<Stub> {
    Sfq::new(SfqConfig { divisor: 65_536, ..config }, random())
}

fn of_flow(flow: u64, id: u32, bytes: u32) -> Stub {
    Stub { flow, ..stub(id, bytes) }
}

/// Offers packets of 1000 bytes of these flows, numbered in order; what is dropped.
fn offer(queue: &mut Sfq<Stub>, first: u32, flows: impl IntoIterator<Item = u64>) -> Vec<u32> {
    let mut drops = Drops::new();
    for (n, flow) in flows.into_iter().enumerate() {
        queue.enqueue(Time::ZERO, of_flow(flow, first + n as u32, 1000), &mut drops);
    }
    drops.into_iter().map(|drop| drop.packet.id).collect()
}

fn sent(queue: &mut Sfq<Stub>) -> Vec<u32> {
    let mut drops = Drops::new();
    let sent = std::iter::from_fn(|| {
        let peeked = queue.peek().map(|entry| entry.packet.id);
        let sent = queue.ask(Time::ZERO, &mut drops).map(|entry| entry.packet.id);
        assert_eq!(peeked, sent);
        sent
    });
    sent.collect()
}

/// Shreedhar, Varghese 1995: flows of any packet size share the link by bytes. Three flows of 500,
/// 1000 and 1500 bytes with as many bytes waiting get as many through, within a quantum and a
/// packet.
#[test]
fn flows_share_by_bytes() {
    let mut queue = sfq(SfqConfig { limit: 300, ..SfqConfig::default() });
    let mut drops = Drops::new();
    for (flow, bytes) in [(1, 500), (2, 1000), (3, 1500)] {
        (0..60_000 / bytes).for_each(|id| queue.enqueue(Time::ZERO, of_flow(flow, id, bytes), &mut drops));
    }
    let mut bytes = [0; 4];
    while bytes.iter().sum::<u32>() < 90_000 {
        let entry = queue.ask(Time::ZERO, &mut drops).unwrap();
        bytes[entry.packet.flow as usize] += entry.packet.bytes;
    }
    for flow in 1..4 {
        assert!(bytes[flow].abs_diff(30_000) <= 1514 + 1500, "{bytes:?}");
    }
    assert_eq!(drops, []);
}

/// sch_sfq.c: a turn goes on while the allotment is above zero: with a quantum of 1514, two packets
/// of 1000 bytes leave 514 and -486; then a flow's turn passes, with 1028 for the next. A new
/// flow's turn is last.
#[test]
fn a_turn_lasts_until_the_allotment_is_used() {
    let mut queue = sfq(SfqConfig::default());
    offer(&mut queue, 0, [1, 1, 1, 1, 1, 2, 2, 2]);
    let mut drops = Drops::new();
    let mut next = || queue.ask(Time::ZERO, &mut drops).unwrap().packet.id;
    assert_eq!([next(), next(), next(), next()], [0, 1, 5, 6]);
    // 1028 - 1000 = 28 for one more.
    assert_eq!([next(), next()], [2, 3]);
    offer(&mut queue, 8, [3]);
    // Flow 2 has one left, and then it is the turn of flow 1.
    assert_eq!(sent(&mut queue), [7, 8, 4]);
}

/// sch_sfq.c, `sfq_drop`: beyond the limit the longest slot loses its last packet, with `headdrop`
/// its first; of slots alike, the one that has grown last.
#[test]
fn the_longest_flow_gives_way() {
    for (headdrop, dropped) in [(false, [2, 5]), (true, [0, 3])] {
        let mut queue = sfq(SfqConfig { limit: 6, headdrop, ..SfqConfig::default() });
        // Flow 2 was the last to have three packets.
        assert_eq!(offer(&mut queue, 0, [1, 1, 1, 2, 2, 2]), []);
        let drops = offer(&mut queue, 6, [3, 4]);
        assert_eq!(drops, [dropped[1], dropped[0]]);
        assert!(queue.counters().balance(queue.backlog()));
    }
}

/// sch_sfq.c, `sfq_drop`: where all slots have one packet, the one whose turn is next goes.
#[test]
fn of_single_packets_the_next_goes() {
    let mut queue = sfq(SfqConfig { limit: 3, ..SfqConfig::default() });
    assert_eq!(offer(&mut queue, 0, [1, 2, 3, 4]), [0]);
    assert_eq!(sent(&mut queue), [1, 2, 3]);
}

/// sch_sfq.c, `sfq_enqueue`: a flow at `depth` loses the arrival, with `headdrop` its oldest
/// packet; where all slots are in use, an arrival of another flow finds none.
#[test]
fn depth_and_flows_are_limits() {
    let config = SfqConfig { limit: 4, flows: 2, depth: 2, ..SfqConfig::default() };
    let mut queue = sfq(config.clone());
    assert_eq!(offer(&mut queue, 0, [1, 1, 1, 2, 3]), [2, 4]);
    assert_eq!(sent(&mut queue), [0, 1, 3]);
    let mut queue = sfq(SfqConfig { headdrop: true, ..config });
    assert_eq!(offer(&mut queue, 0, [1, 1, 1, 2, 3]), [0, 4]);
    assert_eq!(sent(&mut queue), [1, 2, 3]);
    assert_eq!(queue.counters().dropped_on_dequeue.packets, 1);
}

/// iproute2 `tc/q_sfq.c`: 100,000 give 25,000 and 8333; burst (2 * 8333 + 25,000) / 3000 = 13. 13 +
/// 1
/// - 8.333 = 5.67 is below (1 - (1 - 2^-3)^13) 2^3 = 6.59, above (1 - (1 - 2^-2)^13) 2^2 = 3.90.
#[test]
fn the_law_of_a_flow_is_derived_as_tc_does() {
    let law = SfqRed::default().thresholds().unwrap();
    assert_eq!((law.min >> law.wlog, law.max >> law.wlog, law.wlog), (8333, 25_000, 3));
    let problems = [
        SfqRed { max: Some(100_001), ..SfqRed::default() },
        SfqRed { min: Some(25_000), ..SfqRed::default() },
        SfqRed { harddrop: true, ..SfqRed::default() },
        SfqRed { burst: Some(1), ..SfqRed::default() },
    ];
    assert!(problems.iter().all(|red| red.thresholds().is_err()));
    let problems = [
        SfqConfig { limit: 1, ..SfqConfig::default() },
        SfqConfig { limit: 128 * 127 + 1, ..SfqConfig::default() },
        SfqConfig { flows: 2048, ..SfqConfig::default() },
        SfqConfig { divisor: 1000, ..SfqConfig::default() },
        SfqConfig { depth: 128, ..SfqConfig::default() },
    ];
    assert!(problems.iter().all(|config| config.problem().is_some()));
}

/// sch_sfq.c, the actions of RED at a flow whose average is above `max`: the arrival is dropped or
/// marked; with `headdrop` the head gives way or is marked in its place.
#[test]
fn red_drops_or_marks_arrival_or_head() {
    // (ecn, harddrop, headdrop, head capable, arrival capable), then which is dropped or marked.
    for (ecn, harddrop, headdrop, head, arrival, dropped, marked) in [
        (false, false, false, true, true, Some(99), None),
        (false, false, true, true, true, Some(0), None),
        (true, false, false, true, true, None, Some(99)),
        (true, false, false, true, false, Some(99), None),
        (true, false, true, true, true, None, Some(0)),
        (true, false, true, false, true, None, Some(99)),
        (true, false, true, false, false, Some(0), None),
        (true, true, false, true, true, Some(99), None),
        (true, true, true, true, true, Some(0), None),
    ] {
        let red = SfqRed { min: Some(1000), max: Some(2000), burst: Some(1), ecn, harddrop, ..SfqRed::default() };
        let mut queue = sfq(SfqConfig { headdrop, flow_red: Some(red), ..SfqConfig::default() });
        let mut drops = Drops::new();
        let capable = |capable| if capable { Ecn::Ect0 } else { Ecn::NotEct };
        queue.enqueue(Time::ZERO, Stub { ecn: capable(head), ..of_flow(1, 0, 1000) }, &mut drops);
        queue.slots[queue.touched as usize].scaled_average = 1 << 20;
        queue.enqueue(Time::ZERO, Stub { ecn: capable(arrival), ..of_flow(1, 99, 1000) }, &mut drops);
        assert_eq!(
            drops.iter().map(|drop| (drop.packet.id, drop.reason)).next(),
            dropped.map(|id| (id, DropReason::Early))
        );
        let mut found = None;
        while let Some(entry) = queue.ask(Time::ZERO, &mut drops) {
            if entry.packet.ecn == Ecn::Ce {
                assert_eq!(found.replace(entry.packet.id), None);
            }
        }
        assert_eq!(found, marked, "{ecn} {harddrop} {headdrop} {head} {arrival}");
        assert_eq!(queue.counters().marked.packets, u64::from(marked.is_some()));
    }
}

/// Two flows that share a bucket of two do not after some changes of the hash, and the packets of
/// each stay in order: with probability 1/2 each of 20 changes leaves them together.
#[test]
fn another_salt_separates_flows() {
    let config = SfqConfig { divisor: 2, flows: 2, perturb: Span::from_secs(10), ..SfqConfig::default() };
    let mut queue: Sfq<Stub> = Sfq::new(config, random());
    let mut together = 0;
    let mut drops = Drops::new();
    for id in 0..6 {
        queue.enqueue(Time::ZERO, of_flow(u64::from(id % 2), id, 1000), &mut drops);
    }
    for change in 1..=20 {
        let now = Time::from_secs(10 * change);
        queue.catch_up(now, &mut drops);
        assert_eq!((queue.perturbation, queue.next), (change, Some(now + Span::from_secs(10))));
        together += u64::from(queue.slots.iter().filter(|slot| slot.packets > 0).count() == 1);
    }
    assert!((1..20).contains(&together), "{together}");
    let order: Vec<u32> = std::iter::from_fn(|| queue.dequeue(Time::from_secs(200), &mut drops).packet())
        .map(|entry| entry.packet.id)
        .collect();
    for flow in 0..2 {
        assert!(order.iter().filter(|&&id| id % 2 == flow).is_sorted());
    }
    assert_eq!(order.len(), 6);
    // An hour is 360 changes, also at once.
    queue.catch_up(Time::from_secs(3605), &mut drops);
    assert_eq!((queue.perturbation, queue.next), (360, Some(Time::from_secs(3610))));
}
