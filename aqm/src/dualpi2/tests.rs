use super::*;
use crate::stub::{Ask, Stub, stub};
use proptest::prelude::*;

fn random() -> Random {
    Random::for_component(1, 0, "dualpi2")
}

/// Queues of which both heads came at 0; L4S packets are numbered from 0, classic ones from
/// 1,000,000.
fn standing(config: DualPi2Config, l4s: u32, classic: u32, ecn: Ecn) -> DualPi2<Stub> {
    let mut queue = DualPi2::new(config, random());
    let mut drops = Drops::new();
    for id in 0..l4s {
        queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect1, ..stub(id, 1514) }, &mut drops);
    }
    for id in 0..classic {
        queue.enqueue(Time::ZERO, Stub { ecn, ..stub(1_000_000 + id, 1514) }, &mut drops);
    }
    assert!(drops.is_empty());
    queue
}

/// No limits, no step, no updates.
fn frozen() -> DualPi2Config {
    DualPi2Config {
        limit: u64::MAX,
        memlimit: u64::MAX,
        tupdate: Span::MAX,
        step_thresh: StepThreshold::Time(Span::MAX),
        ..DualPi2Config::default()
    }
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-12, "{got} is not {expected}");
}

/// RFC 9332 appendix A.1: p' moves by alpha (delay - target) + beta (delay - old), with the target
/// at 15 ms.
#[test]
fn the_probability_moves_by_the_control_law() {
    let config = DualPi2Config { alpha: 0.16, beta: 3.2, ..DualPi2Config::default() };
    for (before, delay, old, after) in [
        // 0.16 * 0.005 + 3.2 * 0.02
        (0.0, 20, 0, 0.0648),
        (0.1, 15, 15, 0.1),
        // 0.16 * 0.085
        (0.1, 100, 100, 0.1136),
        // -0.16 * 0.005 - 3.2 * 0.01
        (0.1, 10, 20, 0.0672),
        (0.0, 10, 10, 0.0),
        // 0.16 * 0.485 + 3.2 * 0.3 = 1.0376
        (0.1, 500, 200, 1.0),
        (0.5, 0, 500, 0.0),
    ] {
        let mut state = State { probability: before, delay: Span::from_millis(old) };
        state.update(&config, Span::from_millis(delay));
        assert_close(state.probability, after);
        assert_eq!(state.delay, Span::from_millis(delay));
    }
    // Without drops on overload L4S marks stay a probability.
    let mut state = State { probability: 0.4, delay: Span::ZERO };
    state.update(&DualPi2Config { drop_on_overload: false, ..config }, Span::from_millis(500));
    assert_close(state.probability, 0.5);
}

/// Linux tc-testing, `dualpi2.json`: what tc prints, in steps of 1/256 Hz and rounded down twice.
#[test]
fn round_trip_times_give_the_parameters_that_tc_prints() {
    let auto = |typical, max| DualPi2Config::for_rtt(Span::from_millis(typical), Span::from_millis(max));
    for (config, millis, alpha, beta) in
        [(auto(20, 200), 20, 0.042_969, 1.496_094), (auto(50, 300), 50, 0.050_781, 0.996_094)]
    {
        assert_eq!((config.target, config.tupdate), (Span::from_millis(millis), Span::from_millis(millis)));
        assert!((0.0..2.0 / 256.0).contains(&(config.alpha - alpha)), "alpha {}", config.alpha);
        assert!((0.0..2.0 / 256.0).contains(&(config.beta - beta)), "beta {}", config.beta);
    }
    // A third of the longest round trip, if that is less than the typical one.
    assert_eq!(auto(50, 90).tupdate, Span::from_millis(30));
    // `limit 10000p`, and memory for twice as many frames.
    assert_eq!(DualPi2Config::default().memlimit, 30_280_000);
}

/// At p' = 0.2 classic packets are dropped or marked with 0.04, L4S packets marked with 0.4 (RFC
/// 9332 section 2.1).
#[test]
fn classic_is_squared_and_l4s_coupled() {
    let shares = |l4s, ecn, probability, drop_enqueue| {
        const PACKETS: u32 = 50_000;
        let (scalable, classic) = if l4s { (PACKETS, 0) } else { (0, PACKETS) };
        let config = DualPi2Config { drop_enqueue, ..frozen() };
        let mut queue = DualPi2::new(config, random());
        queue.state.probability = probability;
        let mut drops = Drops::new();
        for id in 0..scalable + classic {
            let ecn = if l4s { Ecn::Ect1 } else { ecn };
            queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id, 1514) }, &mut drops);
        }
        while queue.ask(Time::ZERO, &mut drops).is_some() {}
        let share = |packets: u64| packets as f64 / f64::from(PACKETS);
        (share(drops.len() as u64), share(queue.counters().marked.packets))
    };
    // Five standard errors of 50,000 draws are at most 0.011.
    let near = |(drops, marks): (f64, f64), expected: (f64, f64)| {
        assert!((drops - expected.0).abs() < 0.011 && (marks - expected.1).abs() < 0.011, "{drops}, {marks}");
    };
    for drop_enqueue in [false, true] {
        near(shares(false, Ecn::NotEct, 0.2, drop_enqueue), (0.04, 0.0));
        near(shares(false, Ecn::Ect0, 0.2, drop_enqueue), (0.0, 0.04));
        near(shares(true, Ecn::Ect1, 0.2, drop_enqueue), (0.0, 0.4));
        // Overload: p' = 0.6 would mark 1.2 of L4S. Both drop 0.36, whatever they carry; the rest
        // of L4S is marked.
        near(shares(false, Ecn::Ect0, 0.6, drop_enqueue), (0.36, 0.0));
        near(shares(true, Ecn::Ect1, 0.6, drop_enqueue), (0.36, 0.64));
    }
}

#[test]
fn overflow_marks_all_of_l4s_and_drops_none() {
    let config = DualPi2Config { drop_on_overload: false, ..frozen() };
    let mut queue = standing(config, 1000, 0, Ecn::NotEct);
    // A probability that an earlier setting may have left.
    queue.state.probability = 0.51;
    let mut drops = Drops::new();
    while queue.ask(Time::ZERO, &mut drops).is_some() {}
    // But for the last two, behind which less than two packets wait.
    assert_eq!((drops.len(), queue.counters().marked.packets), (0, 998));
}

/// The credit starts at 1514 * (10 - 90). An L4S packet costs 10 each byte, a classic one gives 90
/// back: nine to one.
#[test]
fn the_classic_queue_has_its_share() {
    let order = |classic_protection, packets| {
        let mut queue = standing(DualPi2Config { classic_protection, ..frozen() }, 60, 60, Ecn::NotEct);
        let mut drops = Drops::new();
        (0..packets)
            .filter_map(|_| queue.ask(Time::ZERO, &mut drops))
            .map(|entry| if entry.packet.id < 1_000_000 { 'L' } else { 'C' })
            .collect::<String>()
    };
    assert_eq!(order(10, 30), "LLLLLLLLLCLLLLLLLLLCLLLLLLLLLC");
    assert_eq!(order(0, 60), "L".repeat(60));
    assert_eq!(order(50, 6), "LCLCLC");
    assert_eq!(order(100, 60), "C".repeat(60));
    // Alone, either has all of the link.
    assert_eq!(order(0, 120), "L".repeat(60) + &"C".repeat(60));
}

#[test]
fn an_empty_queue_forgets_the_credit() {
    let mut queue = standing(frozen(), 5, 5, Ecn::NotEct);
    let mut drops = Drops::new();
    assert_eq!(queue.credit, -80 * 1514);
    queue.ask(Time::ZERO, &mut drops);
    assert_eq!(queue.credit, -70 * 1514);
    while queue.ask(Time::ZERO, &mut drops).is_some() {}
    assert_eq!(queue.credit, -80 * 1514);
}

#[test]
fn codepoints_choose_the_queue() {
    for (ecn, any_ect, scalable) in [
        (Ecn::NotEct, false, false),
        (Ecn::Ect0, false, false),
        (Ecn::Ect1, false, true),
        (Ecn::Ce, false, true),
        (Ecn::NotEct, true, false),
        (Ecn::Ect0, true, true),
        (Ecn::Ect1, true, true),
    ] {
        let mut queue = DualPi2::new(DualPi2Config { any_ect, ..frozen() }, random());
        queue.enqueue(Time::ZERO, Stub { ecn, ..stub(0, 100) }, &mut Drops::new());
        assert_eq!((queue.l4s.len(), queue.classic.len()), if scalable { (1, 0) } else { (0, 1) }, "{ecn:?}");
    }
}

#[test]
fn the_step_marks_l4s_alone() {
    let marks = |config: DualPi2Config, micros| {
        let mut queue = standing(config, 5, 5, Ecn::Ect0);
        let mut drops = Drops::new();
        while queue.ask(Time::from_micros(micros), &mut drops).is_some() {}
        queue.counters().marked.packets
    };
    let tc = || DualPi2Config { tupdate: Span::MAX, ..DualPi2Config::default() };
    assert_eq!(marks(tc(), 1000), 0);
    assert_eq!(marks(tc(), 1001), 5);
    // The step marks packets that leave more than two behind: the first two.
    assert_eq!(marks(DualPi2Config { step_thresh: StepThreshold::Packets(2), ..tc() }, 0), 2);
    // The step marks packets that found three or more: the last two.
    assert_eq!(marks(DualPi2Config { min_qlen_step: 3, ..tc() }, 2000), 2);
}

#[test]
fn a_packet_marked_twice_counts_once() {
    for drop_enqueue in [false, true] {
        let mut queue =
            DualPi2::new(DualPi2Config { tupdate: Span::MAX, drop_enqueue, ..DualPi2Config::default() }, random());
        queue.state.probability = 0.5;
        let mut drops = Drops::new();
        for id in 0..10 {
            queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect1, ..stub(id, 1514) }, &mut drops);
        }
        while queue.ask(Time::from_millis(2), &mut drops).is_some() {}
        assert_eq!(queue.counters().marked.packets, 10);
    }
}

#[test]
fn the_last_packet_is_never_dropped() {
    let mut queue = standing(DualPi2Config { mtu: 0, ..frozen() }, 0, 5, Ecn::NotEct);
    queue.state.probability = 1.0;
    let mut drops = Drops::new();
    assert_eq!(queue.ask(Time::ZERO, &mut drops).map(|entry| entry.packet.id), Some(1_000_004));
    assert_eq!(drops.len(), 4);
}

#[test]
fn both_limits_refuse_arrivals() {
    let reasons = |config| {
        let mut queue = DualPi2::new(config, random());
        let mut drops = Drops::new();
        for (id, ecn) in [Ecn::Ect1, Ecn::NotEct, Ecn::Ect1, Ecn::NotEct].into_iter().enumerate() {
            queue.enqueue(Time::ZERO, Stub { ecn, ..stub(id as u32, 1000) }, &mut drops);
        }
        drops.iter().map(|drop| (drop.packet.id, drop.reason)).collect::<Vec<_>>()
    };
    let limit = reasons(DualPi2Config { limit: 2, ..DualPi2Config::default() });
    assert_eq!(limit, [(2, DropReason::Limit), (3, DropReason::Limit)]);
    // A packet of 1000 bytes takes 1576.
    let memory = reasons(DualPi2Config { memlimit: 3152, ..DualPi2Config::default() });
    assert_eq!(memory, [(2, DropReason::Memory), (3, DropReason::Memory)]);
}

/// A head that waits from 0 on: updates see 16, 32, 48 ms. 41/256 * 0.001 + 819/256 * 0.016, +
/// 41/256 * 0.017 + ..., and so on.
#[test]
fn updates_see_the_older_head_at_their_own_time() {
    let mut queue = standing(DualPi2Config::default(), 0, 3, Ecn::NotEct);
    let mut drops = Drops::new();
    queue.enqueue(Time::from_millis(48), Stub { ecn: Ecn::Ect1, ..stub(9, 100) }, &mut drops);
    let (alpha, beta) = (41.0 / 256.0, 819.0 / 256.0);
    assert_close(queue.state.probability, alpha * (0.001 + 0.017 + 0.033) + beta * 0.048);
    assert_eq!((queue.state.delay, queue.next_update), (Span::from_millis(48), Time::from_millis(64)));
}

/// An update due with a packet comes before it, a nanosecond earlier there is none. 41/256 *
/// 0.001 + 819/256 * 0.016.
#[test]
fn an_update_due_with_a_packet_comes_first() {
    let mut queue = standing(DualPi2Config::default(), 0, 3, Ecn::NotEct);
    let mut drops = Drops::new();
    queue.enqueue(Time::from_nanos(15_999_999), stub(7, 100), &mut drops);
    assert_eq!((queue.state.probability, queue.probe().delay), (0.0, Some(Span::ZERO)));
    queue.enqueue(Time::from_millis(16), stub(8, 100), &mut drops);
    assert_close(queue.state.probability, (41.0 * 0.001 + 819.0 * 0.016) / 256.0);
    assert_eq!((queue.probe().delay, queue.next_update), (Some(Span::from_millis(16)), Time::from_millis(32)));
}

/// A step up that comes from the change since the last arrival alone does not last: with a target
/// of 15 ms, 5 ms after none are -0.010 + 3 * 0.005 = 0.005, 6 ms after 5 -0.009 + 3 * 0.001 =
/// -0.006.
#[test]
fn the_highest_probability_is_left_again() {
    let config = DualPi2Config { alpha: 1.0, beta: 3.0, tupdate: Span::from_millis(1), ..DualPi2Config::default() };
    let mut state = State { probability: 1.0, delay: Span::ZERO };
    let next = state.catch_up(&config, Time::from_millis(5), Time::from_millis(6), Some(Time::ZERO));
    assert_close(state.probability, 0.994);
    assert_eq!(next, Time::from_millis(7));
}

/// RFC 9332 appendix A.2: nothing is dropped or marked with less than two packets of the largest
/// size behind.
#[test]
fn two_packets_wait_behind_what_is_dropped() {
    for (behind, dropped) in [(3027, 0), (3028, 1)] {
        let mut queue = DualPi2::new(frozen(), random());
        queue.state.probability = 1.0;
        let mut drops = Drops::new();
        queue.enqueue(Time::ZERO, stub(0, 1514), &mut drops);
        queue.enqueue(Time::ZERO, stub(1, behind), &mut drops);
        queue.ask(Time::ZERO, &mut drops);
        assert_eq!(drops.len(), dropped, "{behind} bytes");
    }
}

/// A queue that has the link to itself neither earns nor spends: its turns take nothing from the
/// other's share later.
#[test]
fn only_packets_that_another_queue_waits_behind_cost_credit() {
    for (l4s, classic) in [(5, 0), (0, 5)] {
        let mut queue = standing(frozen(), l4s, classic, Ecn::NotEct);
        for _ in 0..4 {
            queue.ask(Time::ZERO, &mut Drops::new());
            assert_eq!(queue.credit, -80 * 1514);
        }
    }
}

#[test]
fn a_long_rest_is_made_up_for_at_once() {
    let config = DualPi2Config { tupdate: Span::from_micros(1), ..DualPi2Config::default() };
    let now = Time::from_secs(1_000_000_000);
    let mut waiting = standing(config.clone(), 1, 1, Ecn::NotEct);
    waiting.catch_up(now);
    assert_eq!(waiting.state, State { probability: 1.0, delay: now.since(Time::ZERO) });
    assert_eq!(waiting.next_update, now + config.tupdate);
    let mut empty: DualPi2<Stub> = DualPi2::new(config.clone(), random());
    empty.state = State { probability: 1.0, delay: Span::from_secs(1) };
    empty.catch_up(now);
    assert_eq!((empty.state.probability, empty.next_update), (0.0, now + config.tupdate));
}

#[test]
#[should_panic(expected = "classic_protection is a percentage")]
fn a_share_above_all_is_refused() {
    let _: DualPi2<Stub> = DualPi2::new(DualPi2Config { classic_protection: 101, ..frozen() }, random());
}

proptest! {
    /// A queue that makes up for its updates decides as one whose updates happen each at its time.
    #[test]
    fn late_updates_are_the_same_updates(
        (target, tupdate, alpha, beta, coupling_factor) in (1u64..40, 1u64..40, 0.0..2.0, 0.0..20.0, 1u32..4),
        [drop_on_overload, drop_enqueue, any_ect] in any::<[bool; 3]>(),
        steps in prop::collection::vec(
            (
                prop_oneof![10 => 0u64..3_000_000, 3 => 0u64..40_000_000, 1 => 0u64..60_000_000_000],
                prop::option::weighted(0.55, (40u32..3000, 0u8..4)),
            ),
            0..400,
        ),
    ) {
        let config = DualPi2Config {
            limit: 100,
            target: Span::from_millis(target),
            tupdate: Span::from_millis(tupdate),
            alpha,
            beta,
            coupling_factor,
            drop_on_overload,
            drop_enqueue,
            any_ect,
            ..DualPi2Config::default()
        };
        let mut lazy = DualPi2::new(config.clone(), random());
        // Its updates are made from outside; its own never come due.
        let mut ticked = DualPi2::new(config.clone(), random());
        ticked.next_update = Time::NEVER;
        let mut tick = Time::ZERO + config.tupdate;
        let (mut lazy_drops, mut ticked_drops) = (Drops::new(), Drops::new());
        let mut now = Time::ZERO;
        for (id, (gap, offer)) in steps.into_iter().enumerate() {
            now += Span::from_nanos(gap);
            while tick <= now {
                let heads = [ticked.l4s.front().map(|l4s| l4s.entry), ticked.classic.front().copied()];
                let delays = heads.into_iter().flatten().map(|entry| tick.since(entry.enqueued_at));
                let delay = delays.max().unwrap_or(Span::ZERO);
                ticked.state.update(&config, delay);
                tick += config.tupdate;
            }
            if let Some((bytes, ecn)) = offer {
                let packet = Stub { ecn: Ecn::from_bits(ecn), ..stub(id as u32, bytes) };
                lazy.enqueue(now, packet, &mut lazy_drops);
                ticked.enqueue(now, packet, &mut ticked_drops);
            } else {
                prop_assert_eq!(lazy.ask(now, &mut lazy_drops), ticked.ask(now, &mut ticked_drops));
            }
            prop_assert_eq!(&lazy.state, &ticked.state);
            prop_assert_eq!(lazy.next_update, tick);
            prop_assert_eq!(lazy.counters(), ticked.counters());
            prop_assert_eq!(&lazy.random, &ticked.random);
        }
        prop_assert_eq!(lazy_drops, ticked_drops);
    }
}

/// The probability with which a packet is dropped or marked (RFC 9332 section 2.1): p' squared in
/// the classic queue, twice p' in the L4S queue, up to certainty.
#[test]
fn the_probe_shows_what_the_packets_meet() {
    for (base, classic, l4s) in [(0.0, 0.0, 0.0), (0.2, 0.04, 0.4), (0.5, 0.25, 1.0), (0.75, 0.5625, 1.0)] {
        let mut queue = standing(frozen(), 0, 0, Ecn::NotEct);
        queue.state.probability = base;
        let mut drops = Drops::new();
        let mut probes = Vec::new();
        for ecn in [Ecn::NotEct, Ecn::Ect1, Ecn::Ect0, Ecn::Ce] {
            queue.enqueue(Time::ZERO, Stub { ecn, ..stub(0, 100) }, &mut drops);
            probes.push(queue.probe().probability.unwrap());
        }
        for (got, expected) in probes.into_iter().zip([classic, l4s, classic, l4s]) {
            assert_close(got, expected);
        }
        // The L4S queue goes first.
        let mut sent = Vec::new();
        while let Some(entry) = queue.ask(Time::ZERO, &mut drops) {
            let expected = if matches!(entry.packet.ecn, Ecn::Ect1 | Ecn::Ce) { l4s } else { classic };
            assert_close(queue.probe().probability.unwrap(), expected);
            sent.push(entry.packet.ecn);
        }
        assert_eq!(sent.len(), 4);
    }
}
