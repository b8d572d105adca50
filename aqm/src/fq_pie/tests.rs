use super::*;
use crate::pie_law::MAX_BURST;
use crate::stub::{Ask, Stub, stub};
use crate::{Pie, PieConfig};
use ackclock_units::Ecn;
use proptest::prelude::*;

fn random() -> Random {
    Random::for_component(1, 0, "fq_pie")
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12, "{got} is not {expected}");
}

fn offer(queue: &mut FqPie<Stub>, now: Time, flow: u64, bytes: u32, drops: &mut Drops<Stub>) {
    queue.enqueue(now, Stub { flow, ..stub(0, bytes) }, drops);
}

/// The deficits of the flows of hashes 1 and 2.
fn deficits(queue: &mut FqPie<Stub>) -> [(i64, bool); 2] {
    [1, 2].map(|hash| {
        let index = queue.drr.classify(hash) as usize;
        queue.drr.inspect().nth(index).map(|(_, _, deficit, listed)| (deficit, listed)).expect("a flow of that index")
    })
}

/// ns-3, `fq-pie-queue-disc-test-suite.cc`, "Test DRR": a quantum of 90 and packets of 120 bytes.
/// After each step the deficits of both flows, and whether they are active. (ns-3 and RFC 8290
/// agree on when a quantum is added.)
#[test]
fn deficits_are_those_of_the_test_suite_of_ns3() {
    let config = FqPieConfig { quantum: 90, ..FqPieConfig::default() };
    let mut queue = FqPie::new(config, random());
    let mut drops = Drops::new();
    offer(&mut queue, Time::ZERO, 1, 120, &mut drops);
    assert_eq!(deficits(&mut queue), [(90, true), (0, false)]);
    queue.ask(Time::ZERO, &mut drops);
    assert_eq!(deficits(&mut queue), [(-30, true), (0, false)]);
    for flow in [1, 1, 2, 2] {
        offer(&mut queue, Time::ZERO, flow, 120, &mut drops);
    }
    assert_eq!(deficits(&mut queue), [(-30, true), (90, true)]);
    for expected in [
        [(60, true), (-30, true)],
        [(-60, true), (60, true)],
        [(30, true), (-60, true)],
        [(-90, true), (30, true)],
        // Nothing waits: the first flow gets a quantum twice before it is found empty.
        [(90, false), (30, false)],
    ] {
        queue.ask(Time::ZERO, &mut drops);
        assert_eq!(deficits(&mut queue), expected);
    }
}

#[test]
fn a_flow_pays_for_its_own_delay_only() {
    let mut queue = FqPie::new(FqPieConfig::default(), random());
    let mut drops = Drops::new();
    let mut dropped = [0; 3];
    // Flow 1 sends three packets a millisecond and flow 2 one every 20 ms; one leaves each
    // millisecond.
    for ms in 0..5000 {
        let now = Time::from_millis(ms);
        for _ in 0..3 {
            offer(&mut queue, now, 1, 1514, &mut drops);
        }
        if ms % 20 == 0 {
            offer(&mut queue, now, 2, 200, &mut drops);
        }
        queue.ask(now, &mut drops);
        for drop in drops.drain(..) {
            dropped[drop.packet.flow as usize] += 1;
        }
    }
    assert!(dropped[1] > 1000, "{dropped:?}");
    assert_eq!(dropped[2], 0);
}

#[test]
fn both_limits_refuse_arrivals() {
    let reasons = |config: FqPieConfig| {
        let mut queue = FqPie::new(config, random());
        let mut drops = Drops::new();
        for flow in 0..4 {
            offer(&mut queue, Time::ZERO, flow, 1000, &mut drops);
        }
        assert_eq!(queue.counters().dropped_on_enqueue.packets, drops.len() as u64);
        drops.iter().map(|drop| (drop.packet.flow, drop.reason)).collect::<Vec<_>>()
    };
    let limit = reasons(FqPieConfig { limit: 2, ..FqPieConfig::default() });
    assert_eq!(limit, [(2, DropReason::Limit), (3, DropReason::Limit)]);
    // A packet of 1000 bytes takes 1576: two fit 3152 bytes of memory.
    let memory = reasons(FqPieConfig { memory_limit: 3152, ..FqPieConfig::default() });
    assert_eq!(memory, [(2, DropReason::Memory), (3, DropReason::Memory)]);
}

#[test]
fn marks_replace_drops_up_to_ecn_prob() {
    let offer = |probability, ecn_prob| {
        let config = FqPieConfig { ecn: true, ecn_prob, ..FqPieConfig::default() };
        let mut queue = FqPie::new(config, random());
        let mut drops = Drops::new();
        for id in 0..2 {
            queue.enqueue(Time::ZERO, stub(id, 1514), &mut drops);
        }
        let index = queue.drr.classify(0);
        let state = PieState { delay: Span::from_millis(20), burst_allowance: Span::ZERO, ..PieState::new() };
        queue.drr.flow(index).0.state = PieState { probability, accumulated: 8.5, ..state };
        queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect0, ..stub(2, 1514) }, &mut drops);
        (queue.counters().marked.packets, drops.len())
    };
    assert_eq!(offer(0.1, 10), (1, 0));
    assert_eq!(offer(0.1001, 10), (0, 1));
    assert_eq!(offer(0.5, 50), (1, 0));
    assert_eq!(offer(0.01, 0), (0, 1));
}

/// sch_fq_pie.c, `fq_pie_qdisc_enqueue`: a packet refused for want of room starts its flow's
/// accumulated probability anew, and no other's. A packet of 1000 bytes takes 1576 of memory.
#[test]
fn an_overflow_forgets_the_accumulated_probability_of_its_flow() {
    for (config, reason) in [
        (FqPieConfig { limit: 2, ..FqPieConfig::default() }, DropReason::Limit),
        (FqPieConfig { memory_limit: 2 * 1576, ..FqPieConfig::default() }, DropReason::Memory),
    ] {
        let mut queue = FqPie::new(config, random());
        let mut drops = Drops::new();
        let [one, two] = [1, 2].map(|hash| queue.drr.classify(hash));
        queue.drr.flow(one).0.state.accumulated = 5.0;
        queue.drr.flow(two).0.state.accumulated = 6.0;
        offer(&mut queue, Time::ZERO, 1, 1000, &mut drops);
        offer(&mut queue, Time::ZERO, 2, 1000, &mut drops);
        assert!(drops.is_empty());
        let mut accumulated = || [one, two].map(|index| queue.drr.flow(index).0.state.accumulated);
        assert_eq!(accumulated(), [5.0, 6.0]);
        offer(&mut queue, Time::ZERO, 1, 1000, &mut drops);
        assert_eq!((drops.len(), drops[0].reason), (1, reason));
        let mut accumulated = || [one, two].map(|index| queue.drr.flow(index).0.state.accumulated);
        assert_eq!(accumulated(), [0.0, 6.0]);
    }
}

/// Two flows of which nothing leaves between 20 and 80 ms. Flow 1 has had a delay of 20 ms: updates
/// at 15 ms (delay 0, old 0), 30 ms (0.125 * 0.005 + 1.25 * 0.02 = 0.025625, capped at 0.02), 45,
/// 60 and 75 ms (0.000625 each). Flow 2 rests without a queue: from 0.5 five times 0.125 * 0.015 =
/// 0.001875 and then 1/64 less.
#[test]
fn each_flow_makes_up_for_its_own_updates() {
    let mut queue = FqPie::new(FqPieConfig::default(), random());
    let mut drops = Drops::new();
    let [one, two] = [1, 2].map(|hash| queue.drr.classify(hash));
    for _ in 0..3 {
        offer(&mut queue, Time::ZERO, 1, 1514, &mut drops);
    }
    queue.drr.flow(one).0.state.probability = 0.4;
    queue.drr.flow(two).0.state.probability = 0.5;
    queue.ask(Time::from_millis(20), &mut drops);
    // With a backlog: 0.4 - 0.001875 at 15 ms.
    assert_close(queue.drr.flow(one).0.state.probability, 0.398_125);
    offer(&mut queue, Time::from_millis(80), 1, 1514, &mut drops);
    assert_close(queue.drr.flow(one).0.state.probability, 0.398_125 + 0.02 + 3.0 * 0.000_625);
    offer(&mut queue, Time::from_millis(80), 2, 1514, &mut drops);
    let idle = (0..5).fold(0.5, |p, _| (p - 0.001_875) * 63.0 / 64.0);
    assert_close(queue.drr.flow(two).0.state.probability, idle);
    assert_eq!([one, two].map(|index| queue.drr.flow(index).0.next_update), [Time::from_millis(90); 2]);
}

/// The update of 15 ms comes before a packet of that time; 0.4 - 0.001875 with a backlog.
#[test]
fn an_update_due_with_a_packet_comes_first() {
    let mut queue = FqPie::new(FqPieConfig::default(), random());
    let mut drops = Drops::new();
    let one = queue.drr.classify(1);
    offer(&mut queue, Time::ZERO, 1, 1514, &mut drops);
    offer(&mut queue, Time::ZERO, 1, 1514, &mut drops);
    queue.drr.flow(one).0.state.probability = 0.4;
    offer(&mut queue, Time::from_nanos(14_999_999), 1, 1514, &mut drops);
    assert_eq!(queue.probe().probability, Some(0.4));
    offer(&mut queue, Time::from_millis(15), 1, 1514, &mut drops);
    assert_close(queue.probe().probability.unwrap(), 0.398_125);
    assert_eq!(queue.drr.flow(one).0.next_update, Time::from_millis(30));
    // The sojourn time of the last that left with others behind it.
    queue.ask(Time::from_millis(17), &mut drops);
    assert_eq!(queue.probe().delay, Some(Span::from_millis(17)));
}

/// Whatever the number of flows, an arrival touches its own only.
#[test]
fn a_flow_at_rest_is_left_alone() {
    let mut queue = FqPie::new(FqPieConfig { flows: 65_536, ..FqPieConfig::default() }, random());
    let mut drops = Drops::new();
    offer(&mut queue, Time::from_secs(3600), 1, 1514, &mut drops);
    let touched = queue.drr.inspect().filter(|(pie, ..)| pie.next_update != Time::from_millis(15)).count();
    assert_eq!(touched, 1);
    queue.ask(Time::from_secs(3600), &mut drops);
    let index = queue.drr.classify(1);
    let pie = queue.drr.flow(index).0;
    assert_eq!(pie.next_update, Time::from_secs(3600) + Span::from_millis(15));
    assert_eq!((pie.state.probability, pie.state.burst_allowance), (0.0, MAX_BURST));
}

#[test]
#[should_panic(expected = "quantum must not be zero")]
fn a_quantum_of_zero_is_refused() {
    let _: FqPie<Stub> = FqPie::new(FqPieConfig { quantum: 0, ..FqPieConfig::default() }, random());
}

/// Steps: the time since the last one, and an offer (flow, bytes, codepoint) or a dequeue.
type Step = (u64, Option<(u64, u32, Ecn)>);

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let gap = prop_oneof![
        10 => 0u64..3_000_000,
        3 => 0u64..40_000_000,
        // On the updates themselves, and rests of up to a minute.
        2 => (0u64..4).prop_map(|n| n * 1_000_000),
        1 => 0u64..60_000_000_000,
    ];
    let ecn = prop_oneof![Just(Ecn::NotEct), Just(Ecn::Ect0)];
    let step = prop_oneof![
        5 => (0u64..4, 1u32..3000, ecn).prop_map(Some),
        4 => Just(None),
    ];
    prop::collection::vec((gap, step), 0..400)
}

proptest! {
    /// Flows that make up for their updates are, to the bit, those that a timer updates all
    /// together.
    #[test]
    fn late_updates_are_the_same_updates(
        (target, tupdate, quantum) in (1u64..40, 1u64..40, 1u32..3000),
        [ecn, bytemode, dq_rate_estimator] in any::<[bool; 3]>(),
        steps in steps(),
    ) {
        let config = FqPieConfig {
            limit: 200,
            flows: 5,
            target: Span::from_millis(target),
            tupdate: Span::from_millis(tupdate),
            quantum,
            ecn,
            bytemode,
            dq_rate_estimator: dq_rate_estimator.then_some(DqRateEstimator::Linux),
            ..FqPieConfig::default()
        };
        let mut lazy = FqPie::new(config.clone(), random());
        // Its updates are made from outside; its own never come due.
        let mut ticked = FqPie::new(config.clone(), random());
        for (pie, ..) in ticked.drr.inspect() {
            pie.next_update = Time::NEVER;
        }
        let law = ticked.law.clone();
        let mut tick = Time::ZERO + config.tupdate;
        let (mut lazy_drops, mut ticked_drops) = (Drops::new(), Drops::new());
        let mut now = Time::ZERO;
        for (id, (gap, step)) in steps.into_iter().enumerate() {
            now += Span::from_nanos(gap);
            while tick <= now {
                for (pie, bytes, ..) in ticked.drr.inspect() {
                    pie.state.update(&law, bytes);
                }
                tick += config.tupdate;
            }
            if let Some((flow, bytes, ecn)) = step {
                let packet = Stub { flow, ecn, ..stub(id as u32, bytes) };
                lazy.enqueue(now, packet, &mut lazy_drops);
                ticked.enqueue(now, packet, &mut ticked_drops);
            } else {
                prop_assert_eq!(lazy.ask(now, &mut lazy_drops), ticked.ask(now, &mut ticked_drops));
            }
            for ((lazy, bytes, ..), (ticked, ..)) in lazy.drr.inspect().zip(ticked.drr.inspect()) {
                let mut caught_up = lazy.clone();
                caught_up.catch_up(&law, now, bytes);
                prop_assert_eq!(&caught_up.state, &ticked.state);
                prop_assert_eq!(caught_up.next_update, tick);
            }
            prop_assert_eq!(lazy.counters(), ticked.counters());
            prop_assert_eq!(&lazy.random, &ticked.random);
        }
        prop_assert_eq!(lazy_drops, ticked_drops);
    }

    /// With one flow, fq_pie is PIE.
    #[test]
    fn one_flow_is_pie(steps in steps()) {
        let mut flows = FqPie::new(FqPieConfig { flows: 1, limit: 100, ecn: true, ..FqPieConfig::default() }, random());
        let mut single = Pie::new(PieConfig { limit: 100, ecn: true, ..PieConfig::default() }, random());
        let (mut flows_drops, mut single_drops) = (Drops::new(), Drops::new());
        let mut now = Time::ZERO;
        for (id, (gap, step)) in steps.into_iter().enumerate() {
            now += Span::from_nanos(gap);
            if let Some((flow, bytes, ecn)) = step {
                let packet = Stub { flow, ecn, ..stub(id as u32, bytes) };
                flows.enqueue(now, packet, &mut flows_drops);
                single.enqueue(now, packet, &mut single_drops);
            } else {
                prop_assert_eq!(flows.ask(now, &mut flows_drops), single.ask(now, &mut single_drops));
            }
        }
        prop_assert_eq!(flows.counters(), single.counters());
        prop_assert_eq!(flows_drops, single_drops);
    }
}

/// The probability that a packet meets is that of its own flow, whichever sent last.
#[test]
fn the_probe_is_of_the_flow_at_hand() {
    let mut queue: FqPie<Stub> = FqPie::new(FqPieConfig::default(), random());
    let mut drops = Drops::new();
    let [one, two] = [1, 2].map(|hash| queue.drr.classify(hash));
    queue.drr.flow(one).0.state.probability = 0.25;
    queue.drr.flow(two).0.state.probability = 0.5;
    for (flow, probability) in [(1, 0.25), (2, 0.5), (1, 0.25)] {
        queue.enqueue(Time::ZERO, Stub { flow, ..stub(0, 1514) }, &mut drops);
        assert_eq!(queue.probe().probability, Some(probability));
    }
    let sent = std::iter::from_fn(|| {
        let entry = queue.ask(Time::ZERO, &mut drops)?;
        Some((entry.packet.flow, queue.probe().probability))
    });
    assert_eq!(sent.collect::<Vec<_>>(), [(1, Some(0.25)), (2, Some(0.5)), (1, Some(0.25))]);
    // One that is refused, too.
    queue.limit = 0;
    queue.enqueue(Time::ZERO, Stub { flow: 2, ..stub(1, 1514) }, &mut drops);
    assert_eq!((drops.len(), queue.probe().probability), (1, Some(0.5)));
}
