//! A link by hand, and polled at different times: what happens on it depends on what is offered
//! alone.

use ackclock_aqm::{
    Blue, BlueConfig, Cobalt, CobaltConfig, Codel, CodelConfig, DropReason, DualPi2, DualPi2Config, Fifo, FifoConfig,
    FqCodel, FqCodelConfig, FqPie, FqPieConfig, Limit, LinkLayer, Pie, PieConfig, Queued, Red, RedAdaptive, RedConfig,
    RedFloyd, Sfb, SfbConfig,
};
use ackclock_packet::Class;
use ackclock_units::Ecn;
use proptest::prelude::*;
use std::num::NonZeroU32;

use super::*;
use crate::Impairments;
use crate::{GilbertElliott, HoldBack, Loss, Markov, Reorder};

mod change;
mod classful;
mod device;
mod drop_tail;
mod idle;
mod impairments;
mod passing;
mod shaper;
mod slots;
mod varying;

const MBIT: u64 = 1_000_000;

fn us(micros: u64) -> Time {
    Time::from_micros(micros)
}

fn packet(slot: u32, wire_len: u32) -> Packet {
    Packet {
        flow_hash: u64::from(slot % 3),
        slot,
        wire_len,
        route: 0,
        hop: 0,
        ecn: Ecn::NotEct,
        class: Class::default(),
    }
}

fn random(name: &str) -> Random {
    Random::for_component(1, 0, name)
}

fn pfifo(limit: u64) -> Box<dyn QueueDisc<Framed>> {
    Box::new(Fifo::new(FifoConfig { limit: Limit::Packets(limit) }))
}

/// 10 Mbit/s, 1 ms, nothing else: 1250 bytes take 1 ms.
fn config() -> LinkConfig {
    LinkConfig {
        rate: Rate::from_bps(10 * MBIT),
        delay: Span::from_millis(1),
        burst: None,
        overhead: Overhead::default(),
        impairments: Impairments::default(),
    }
}

fn link(config: LinkConfig) -> Link {
    Link::new(config, pfifo(100), random("link"))
}

/// Arrivals until the end: times in microseconds and slots.
fn drain(link: &mut Link, events: &mut Vec<LinkEvent>) -> Vec<(u64, u32)> {
    let mut arrivals = Vec::new();
    while let Some((at, packet)) = link.deliver(Time::from_secs(1_000_000), events) {
        arrivals.push((at.as_nanos() / 1000, packet.slot));
    }
    arrivals
}

/// Offers packets of 1250 bytes at time 0 and drains.
fn burst(link: &mut Link, n: u32) -> (Vec<(u64, u32)>, Vec<LinkEvent>) {
    let mut events = Vec::new();
    for slot in 1..=n {
        link.offer(Time::ZERO, packet(slot, 1250), &mut events);
    }
    let arrivals = drain(link, &mut events);
    (arrivals, events)
}

fn slots(arrivals: &[(u64, u32)]) -> Vec<u32> {
    arrivals.iter().map(|&(_, slot)| slot).collect()
}

#[test]
fn a_packet_takes_its_transmission_and_the_delay() {
    assert_eq!(burst(&mut link(config()), 3).0, [(2000, 1), (3000, 2), (4000, 3)]);
}

#[test]
fn events_tell_waiting_and_transmission_in_order_of_time() {
    let (_, events) = burst(&mut link(config()), 2);
    let ms = Span::from_millis;
    let event = |at, backlog, kind| LinkEvent { at: us(at), backlog, kind };
    assert_eq!(
        events,
        [
            event(0, 1, LinkEventKind::Offered),
            event(0, 0, LinkEventKind::Sent { sojourn: ms(0), busy: ms(1) }),
            event(0, 1, LinkEventKind::Offered),
            event(1000, 0, LinkEventKind::Sent { sojourn: ms(1), busy: ms(1) }),
        ]
    );
}

#[test]
fn a_packet_that_leaves_makes_room_for_one_that_comes_at_the_same_time() {
    let mut link = Link::new(config(), pfifo(1), random("link"));
    let mut events = Vec::new();
    link.offer(us(0), packet(1, 1250), &mut events);
    link.offer(us(0), packet(2, 1250), &mut events);
    link.offer(us(999), packet(3, 1250), &mut events);
    link.offer(us(1000), packet(4, 1250), &mut events);
    let dropped: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            LinkEventKind::Dropped { packet, reason, .. } => Some((event.at, packet.slot, reason)),
            _ => None,
        })
        .collect();
    assert_eq!(dropped, [(us(999), 3, DropReason::Limit)]);
    assert_eq!(slots(&drain(&mut link, &mut events)), [1, 2, 4]);
}

#[test]
fn the_rate_is_exact_over_a_busy_period() {
    // Three packets of one byte at 3 Mbit/s: 8 us, though each takes 2.67 us.
    let rate = Rate::from_bps(3 * MBIT);
    let mut link = link(LinkConfig { rate, delay: Span::ZERO, ..config() });
    let mut events = Vec::new();
    for slot in 1..=3 {
        link.offer(Time::ZERO, packet(slot, 1), &mut events);
    }
    assert_eq!(drain(&mut link, &mut events), [(2, 1), (5, 2), (8, 3)]);
    // A new busy period carries no fraction over: 2666 ns again.
    link.offer(us(100), packet(4, 1), &mut events);
    assert_eq!(link.next_due(), Time::from_nanos(102_666));
}

#[test]
fn a_token_bucket_lets_a_burst_pass_and_then_keeps_the_rate() {
    // HTB at 10 Mbit/s with `burst 1600`: packets of 1514 bytes, 1211.2 us each. Of the full bucket
    // the first leaves 86 bytes, so that the second goes as well, to 1428 below nothing: 1142.4 us.
    // From then on one goes every 1211.2 us.
    let mut link = link(LinkConfig { burst: Some(1600), delay: Span::ZERO, ..config() });
    let mut events = Vec::new();
    for slot in 1..=5 {
        link.offer(us(10_000), packet(slot, 1514), &mut events);
    }
    assert_eq!(link.next_due(), us(10_000));
    assert_eq!(drain(&mut link, &mut events), [(10_000, 1), (10_000, 2), (11_142, 3), (12_353, 4), (13_564, 5)]);
    // The bucket has tokens from 14,776 us on, 344 bytes at 15,051: one packet passes, and the next
    // after 1170 bytes or 936 us.
    link.offer(us(15_051), packet(6, 1514), &mut events);
    link.offer(us(15_051), packet(7, 1514), &mut events);
    assert_eq!(drain(&mut link, &mut events), [(15_051, 6), (15_987, 7)]);
    let busy = |event: &LinkEvent| match event.kind {
        LinkEventKind::Sent { busy, .. } => busy,
        _ => Span::ZERO,
    };
    assert_eq!(events.iter().map(busy).fold(Span::ZERO, |sum, busy| sum + busy), Span::from_nanos(7 * 1_211_200));
}

#[test]
fn an_unlimited_link_only_delays() {
    let mut link = link(LinkConfig { rate: None, ..config() });
    let (arrivals, _) = burst(&mut link, 3);
    assert_eq!(arrivals, [(1000, 1), (1000, 2), (1000, 3)]);
    assert_eq!(link.queue().backlog().packets, 0);
}

#[test]
fn overhead_counts_in_the_queue_and_in_transmission_alone() {
    // 1000 + 250 bytes take 1 ms.
    let mut link = link(LinkConfig { overhead: Overhead::bytes(250), ..config() });
    let mut events = Vec::new();
    link.offer(Time::ZERO, packet(1, 1000), &mut events);
    link.offer(Time::ZERO, packet(2, 1000), &mut events);
    assert_eq!(link.queue().backlog().bytes, 1250);
    let (at, first) = link.deliver(us(2000), &mut events).unwrap();
    assert_eq!((at, first.wire_len), (us(2000), 1000));
}

/// sqm-scripts#74: 1478 + 10 bytes are 31 cells of 53, 1643 bytes, in the books and in
/// transmission; the packet arrives, and is reported, as it was. 100 + 10 bytes are three cells.
#[test]
fn cells_count_in_the_queue_and_in_transmission_alone() {
    let overhead = Overhead { layer: LinkLayer::Atm, ..Overhead::bytes(10) };
    // A byte takes a microsecond.
    let config = LinkConfig { rate: Rate::from_bps(8 * MBIT), overhead, ..config() };
    let new = || Link::new(config.clone(), pfifo(2), random("link"));
    let mut recorded = new();
    recorded.record();
    // The second descriptor of the device takes one more out of the queue.
    let limit = DeviceLimit::Packets(NonZeroU32::new(2).unwrap());
    let device = DeviceConfig { limit, completion: Span::ZERO };
    for (mut link, most) in [(new(), 3), (recorded, 3), (new().with_device(device), 4)] {
        let mut events = Vec::new();
        for slot in 1..=most {
            link.offer(Time::ZERO, packet(slot, if slot == 2 { 100 } else { 1478 }), &mut events);
        }
        let backlog = 1643 + if most == 3 { 159 } else { 1643 };
        assert_eq!(link.queue().backlog().bytes, backlog);
        link.offer(Time::ZERO, packet(9, 60), &mut events);
        let dropped = events.iter().find_map(|event| match event.kind {
            LinkEventKind::Dropped { packet, .. } => Some((packet.slot, packet.wire_len)),
            _ => None,
        });
        assert_eq!(dropped, Some((9, 60)));
        let mut arrivals = Vec::new();
        while let Some((at, packet)) = link.deliver(Time::from_secs(1), &mut events) {
            arrivals.push((at.as_nanos() / 1000 - 1000, packet.wire_len));
        }
        let ends = [(1643, 1478), (1643 + 159, 100), (2 * 1643 + 159, 1478), (3 * 1643 + 159, 1478)];
        assert_eq!(arrivals, ends[..most as usize]);
    }
}

#[test]
fn every_event_shows_a_packet_without_the_overhead() {
    let impairments = Impairments { loss: Loss::List(vec![1]), duplicate: 1.0, ..Impairments::default() };
    let mut link =
        Link::new(LinkConfig { overhead: Overhead::bytes(250), impairments, ..config() }, pfifo(1), random("link"));
    let (_, events) = burst(&mut link, 3);
    let lengths: Vec<_> = events
        .iter()
        .filter_map(|event| match event.kind {
            LinkEventKind::Dropped { packet, .. } => Some(("dropped", packet.slot, packet.wire_len)),
            LinkEventKind::Lost { packet, .. } => Some(("lost", packet.slot, packet.wire_len)),
            LinkEventKind::Duplicated { packet } => Some(("duplicated", packet.slot, packet.wire_len)),
            _ => None,
        })
        .collect();
    assert_eq!(lengths, [("dropped", 3, 1250), ("lost", 1, 1250), ("duplicated", 2, 1250)]);
}

/// A link that keeps the order reports no jitter for a jitter of nothing, and none without
/// impairments.
#[test]
fn what_a_link_says_of_itself() {
    let impairments = Impairments { loss: Loss::Iid(0.25), ..Impairments::default() };
    let mut lossy = link(LinkConfig { rate: None, impairments, ..config() });
    let (_, events) = burst(&mut lossy, 100);
    let probabilities = |events: &[LinkEvent]| -> Vec<Option<f64>> {
        let lost = events.iter().filter_map(|event| match event.kind {
            LinkEventKind::Lost { probability, .. } => Some(probability),
            _ => None,
        });
        lost.collect()
    };
    assert!(!probabilities(&events).is_empty());
    assert!(probabilities(&events).iter().all(|p| *p == Some(0.25)), "that of the draw");
    let impairments = Impairments { loss: Loss::List(vec![2]), ..Impairments::default() };
    let (_, events) = burst(&mut link(LinkConfig { impairments, ..config() }), 3);
    assert_eq!(probabilities(&events), [None], "a listed packet is not drawn");
    assert_eq!((lossy.rate(), link(config()).rate()), (None, Rate::from_bps(10 * MBIT)));
}

/// Catching up does everything that was due: the second packet has left the queue, and nothing has
/// arrived.
#[test]
fn catching_up_sends_what_was_due() {
    let mut link = link(LinkConfig { delay: Span::from_secs(1), ..config() });
    let mut events = Vec::new();
    for slot in 0..3 {
        link.offer(Time::ZERO, packet(slot, 1250), &mut events);
    }
    assert_eq!(link.queue().backlog().packets, 2);
    link.catch_up(us(999), &mut events);
    assert_eq!(link.queue().backlog().packets, 2);
    link.catch_up(us(1000), &mut events);
    assert_eq!(link.queue().backlog().packets, 1);
    assert_eq!(link.deliver(us(1000), &mut events), None);
}

/// Packets that a queue marks arrive marked; the rest does not.
#[test]
fn marks_arrive() {
    let queue = Codel::new(CodelConfig { ce_threshold: Some(Span::ZERO), ..CodelConfig::default() });
    let mut link = Link::new(config(), Box::new(queue), random("link"));
    let mut events = Vec::new();
    for (slot, ecn) in [(0, Ecn::Ect0), (1, Ecn::Ect0), (2, Ecn::NotEct)] {
        link.offer(Time::ZERO, Packet { ecn, ..packet(slot, 1250) }, &mut events);
    }
    let arrived: Vec<_> = std::iter::from_fn(|| link.deliver(us(9000), &mut events)).map(|(_, p)| p.ecn).collect();
    // The first has not waited.
    assert_eq!(arrived, [Ecn::Ect0, Ecn::Ce, Ecn::NotEct]);
}

/// A shaper's rate is exact over a busy period too. At 3 Mbit/s a byte takes 2666 2/3 ns, and a
/// bucket of one holds 2666. The first empties it, the second goes as well and takes it below, from
/// where the first ended; the seventh goes when six have paid, 16,000 ns less the bucket.
#[test]
fn a_token_bucket_carries_fractions() {
    let rate = Rate::from_bps(3 * MBIT);
    let mut link = link(LinkConfig { rate, burst: Some(1), delay: Span::ZERO, ..config() });
    let mut events = Vec::new();
    for slot in 0..7 {
        link.offer(us(1000), packet(slot, 1), &mut events);
    }
    let arrivals: Vec<_> = std::iter::from_fn(|| link.deliver(us(2000), &mut events)).collect();
    let last = arrivals.last().unwrap().0;
    assert_eq!((arrivals.len(), last), (7, us(1000) + Span::from_nanos(16_000 - 2_666)));
}

#[derive(Clone, Debug)]
enum AnyQueue {
    Pfifo(u64),
    Codel,
    Pie(bool),
    FqCodel,
    /// With the authors' law, and adaptive.
    Red(bool, bool),
    Blue,
    Cobalt,
    /// Decides on arrival.
    DualPi2(bool),
    FqPie,
    Sfb,
    /// Packets of another one, so many microseconds apart.
    Paced(Box<AnyQueue>, u64),
}

impl AnyQueue {
    /// Returns `true` if packets leave it in order of arrival.
    fn keeps_order(&self) -> bool {
        match self {
            AnyQueue::FqCodel | AnyQueue::FqPie | AnyQueue::DualPi2(_) => false,
            AnyQueue::Paced(queue, _) => queue.keeps_order(),
            _ => true,
        }
    }
}

fn build_queue(queue: &AnyQueue) -> Box<dyn QueueDisc<Framed>> {
    match queue {
        AnyQueue::Pfifo(limit) => pfifo(*limit),
        AnyQueue::Codel => Box::new(Codel::new(CodelConfig { ecn: true, ..CodelConfig::default() })),
        AnyQueue::Pie(ecn) => {
            let config = PieConfig { limit: 30, ecn: *ecn, ..PieConfig::default() };
            Box::new(Pie::new(config, random("pie")))
        }
        AnyQueue::FqCodel => {
            Box::new(FqCodel::new(FqCodelConfig { ecn: true, ..FqCodelConfig::default() }, random("queue")))
        }
        AnyQueue::Red(floyd, adaptive) => {
            let config = RedConfig {
                limit: 40_000,
                min: Some(3_000),
                max: Some(9_000),
                probability: 0.2,
                ecn: true,
                adaptive: adaptive.then(|| RedAdaptive { interval: Span::from_millis(3), ..RedAdaptive::default() }),
                floyd: floyd.then(RedFloyd::default),
                ..RedConfig::default()
            };
            Box::new(Red::new(config, random("red")))
        }
        AnyQueue::Blue => {
            let config = BlueConfig {
                limit: Limit::Packets(12),
                freeze: Span::from_millis(1),
                inc: 0.05,
                dec: 0.02,
                ecn: true,
                ..BlueConfig::default()
            };
            Box::new(Blue::new(config, random("blue")))
        }
        AnyQueue::Cobalt => {
            let config = CobaltConfig {
                limit: 20,
                target: Span::from_millis(1),
                interval: Span::from_millis(10),
                p_inc: 1 << 28,
                p_dec: 1 << 26,
                ..CobaltConfig::default()
            };
            Box::new(Cobalt::new(config, random("cobalt")))
        }
        AnyQueue::DualPi2(drop_enqueue) => {
            let config = DualPi2Config {
                limit: 30,
                target: Span::from_millis(1),
                tupdate: Span::from_millis(2),
                drop_enqueue: *drop_enqueue,
                ..DualPi2Config::default()
            };
            Box::new(DualPi2::new(config, random("dualpi2")))
        }
        AnyQueue::FqPie => {
            let config = FqPieConfig {
                limit: 30,
                target: Span::from_millis(1),
                tupdate: Span::from_millis(2),
                ecn: true,
                ..FqPieConfig::default()
            };
            Box::new(FqPie::new(config, random("queue")))
        }
        AnyQueue::Sfb => {
            let config = SfbConfig {
                rehash: Span::from_millis(50),
                db: Span::from_millis(20),
                limit: 20,
                target: Some(3),
                increment: 0.2,
                decrement: 0.1,
                ..SfbConfig::default()
            };
            Box::new(Sfb::new(config, random("sfb")))
        }
        AnyQueue::Paced(queue, gap) => Box::new(shaper::Paced::new(build_queue(queue), Span::from_micros(*gap))),
    }
}

fn any_queue() -> impl Strategy<Value = AnyQueue> {
    let paced = (work_conserving(), 0u64..3000).prop_map(|(queue, gap)| AnyQueue::Paced(Box::new(queue), gap));
    prop_oneof![3 => work_conserving(), 1 => paced]
}

fn work_conserving() -> impl Strategy<Value = AnyQueue> {
    prop_oneof![
        (1u64..20).prop_map(AnyQueue::Pfifo),
        Just(AnyQueue::Codel),
        any::<bool>().prop_map(AnyQueue::Pie),
        Just(AnyQueue::FqCodel),
        any::<(bool, bool)>().prop_map(|(floyd, adaptive)| AnyQueue::Red(floyd, adaptive)),
        Just(AnyQueue::Blue),
        Just(AnyQueue::Cobalt),
        any::<bool>().prop_map(AnyQueue::DualPi2),
        Just(AnyQueue::FqPie),
        Just(AnyQueue::Sfb),
    ]
}

fn any_reorder() -> impl Strategy<Value = Reorder> {
    let hold = (0.0..0.5, 0u32..20, 0u64..20_000).prop_map(|(probability, extent, timeout)| {
        Reorder::HoldBack(HoldBack { probability, extent, timeout: Span::from_micros(timeout) })
    });
    prop_oneof![Just(Reorder::Never), Just(Reorder::ByJitter), hold]
}

fn any_config() -> impl Strategy<Value = LinkConfig> {
    let loss =
        prop_oneof![
            Just(Loss::None),
            (0.0..0.5).prop_map(Loss::Iid),
            (0.0..0.5, 0.1..1.0, 0.5..1.0, 0.0..0.1)
                .prop_map(|(p, r, bad, good)| Loss::GilbertElliott(GilbertElliott { p, r, bad, good })),
            (0.0..0.5, 0.1..0.5, 0.0..0.5, 0.1..1.0, 0.0..0.1)
                .prop_map(|(p13, p31, p32, p23, p14)| Loss::Markov(Markov { p13, p31, p32, p23, p14 })),
            prop::collection::btree_set(1u64..100, 0..30).prop_map(|numbers| Loss::List(numbers.into_iter().collect())),
        ];
    let jitter = prop_oneof![Just(0u64), 0u64..20_000];
    let impairments = prop_oneof![
        Just(Impairments::default()),
        (loss, prop_oneof![Just(0.0), 0.0..0.5], prop_oneof![Just(0.0), 0.0..0.5], jitter, any_reorder()).prop_map(
            |(loss, duplicate, corrupt, jitter, reorder)| {
                Impairments {
                    loss,
                    duplicate,
                    corrupt,
                    jitter: Span::from_micros(jitter),
                    reorder,
                    ..Impairments::default()
                }
            }
        ),
    ];
    let rate = prop_oneof![1 => Just(None), 8 => (100_000u64..100 * MBIT).prop_map(Rate::from_bps)];
    let delay = prop_oneof![Just(0u64), 0u64..50_000];
    let burst = proptest::option::weighted(0.3, prop_oneof![Just(1u32), 1u32..5000]);
    (rate, burst, delay, 0..50i32, impairments).prop_map(|(rate, burst, delay, overhead, impairments)| LinkConfig {
        rate,
        burst,
        delay: Span::from_micros(delay),
        overhead: Overhead::bytes(overhead),
        impairments,
    })
}

/// Packets and when they are offered, in bursts and after pauses.
fn any_arrivals() -> impl Strategy<Value = Vec<(Time, Packet)>> {
    let gap = prop_oneof![2 => Just(0u64), 4 => 0u64..3_000, 1 => 0u64..300_000];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0), Just(Ecn::Ect1)];
    prop::collection::vec((gap, prop_oneof![Just(1250u32), 40u32..1500], ecn), 1..200).prop_map(|arrivals| {
        let mut now = Time::ZERO;
        let arrival = |(slot, (gap, wire_len, ecn))| {
            now += Span::from_micros(gap);
            (now, Packet { ecn, ..packet(slot, wire_len) })
        };
        (0..).zip(arrivals).map(arrival).collect()
    })
}

type Outcome = (Vec<(Time, Packet)>, Vec<LinkEvent>);

/// Polled at every due time, and at `others`.
fn polled_exactly(link: &mut Link, arrivals: &[(Time, Packet)], others: &[Time]) -> Outcome {
    let (mut delivered, mut events) = (Vec::new(), Vec::new());
    let mut poll_until = |link: &mut Link, end: Time, events: &mut Vec<LinkEvent>| {
        loop {
            let due = link.next_due();
            if due > end || due == Time::NEVER {
                return;
            }
            while let Some((at, packet)) = link.deliver(due, events) {
                assert_eq!(at, due, "due too late, or delivered too early");
                delivered.push((at, packet));
            }
        }
    };
    let mut others = others.iter().peekable();
    for &(at, packet) in arrivals {
        while let Some(&other) = others.next_if(|&&other| other <= at) {
            poll_until(link, other, &mut events);
            link.catch_up(other, &mut events);
        }
        poll_until(link, at, &mut events);
        link.offer(at, packet, &mut events);
    }
    poll_until(link, Time::NEVER, &mut events);
    (delivered, events)
}

/// Polled when packets are offered and long after.
fn polled_late(link: &mut Link, arrivals: &[(Time, Packet)]) -> Outcome {
    let (mut delivered, mut events) = (Vec::new(), Vec::new());
    for &(at, packet) in arrivals {
        link.offer(at, packet, &mut events);
    }
    while let Some(arrival) = link.deliver(Time::from_secs(1_000_000), &mut events) {
        delivered.push(arrival);
    }
    (delivered, events)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    #[test]
    fn late_polls_change_nothing(
        config in any_config(),
        queue in any_queue(),
        arrivals in any_arrivals(),
        others in prop::collection::btree_set(0u64..1_000_000, 0..50),
    ) {
        let others: Vec<_> = others.into_iter().map(us).collect();
        let build = || Link::new(config.clone(), build_queue(&queue), random("link"));
        let exact = polled_exactly(&mut build(), &arrivals, &[]);
        prop_assert_eq!(&exact, &polled_exactly(&mut build(), &arrivals, &others));
        prop_assert_eq!(&exact, &polled_late(&mut build(), &arrivals));
        let (delivered, events) = exact;
        prop_assert!(events.is_sorted_by_key(|event| event.at));
        prop_assert!(delivered.is_sorted_by_key(|&(at, _)| at));
        // Every packet is accounted for once.
        let count = |keep: fn(&LinkEventKind) -> bool| events.iter().filter(|event| keep(&event.kind)).count();
        let gone = count(|kind| matches!(kind, LinkEventKind::Dropped { .. } | LinkEventKind::Lost { .. }));
        let doubled = count(|kind| matches!(kind, LinkEventKind::Duplicated { .. }));
        prop_assert_eq!(delivered.len() + gone, arrivals.len() + doubled);
        let wrong = delivered.iter().filter(|(_, packet)| packet.class.is_corrupted()).count();
        prop_assert_eq!(wrong, count(|kind| matches!(kind, LinkEventKind::Corrupted { .. })));
        prop_assert!(delivered.iter().all(|(_, packet)| packet.wire_len == arrivals[packet.slot as usize].1.wire_len));
        let keeps_order = match config.impairments.reorder {
            Reorder::Never => true,
            Reorder::ByJitter => config.impairments.jitter == Span::ZERO,
            Reorder::HoldBack(hold) => hold.extent == 0,
        };
        if keeps_order && queue.keeps_order() {
            prop_assert!(delivered.is_sorted_by_key(|(_, packet)| packet.slot));
        }
    }
}
