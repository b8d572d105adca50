use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::Ecn;

fn sfb(config: SfbConfig) -> Sfb<Stub> {
    Sfb::new(config, Random::for_component(1, 0, "sfb"))
}

fn packet(id: u32, flow: u64) -> Stub {
    Stub { flow, ..stub(id, 1000) }
}

/// The eight bins of a flow in the set in use.
fn bins(queue: &Sfb<Stub>, slot: usize, flow: u64) -> Vec<Bin> {
    let set = &queue.law.sets[slot];
    let hash = hash_in(flow, set.perturbation);
    (0..LEVELS).map(|level| set.bins[level][index(hash, level)]).collect()
}

/// Sets the probability of a flow's bins, in 1/65,536.
fn set_probability(queue: &mut Sfb<Stub>, flow: u64, p_mark: u32) {
    let set = &mut queue.law.sets[queue.law.slot];
    let hash = hash_in(flow, set.perturbation);
    for (level, bins) in set.bins.iter_mut().enumerate() {
        bins[index(hash, level)].p_mark = p_mark;
    }
}

/// iproute2 `tc/q_sfb.c`: increment (65535 + 1000) / 2000 = 33, decrement (65535 + 10000) / 20000 =
/// 3; max (5 target + 1) / 4, target (4 max + 3) / 5. Linux selftests
/// `tc-testing/tc-tests/qdiscs/sfb.json`: rehash 600s db 60s.
#[test]
fn defaults_and_derived_values_are_those_of_tc() {
    let config = SfbConfig::default();
    assert_eq!((config.rehash, config.db), (Span::from_secs(600), Span::from_secs(60)));
    assert_eq!((from_fraction(config.increment), from_fraction(config.decrement)), (33, 3));
    for (max, target, sizes) in [
        (None, None, (25, 20)),
        (Some(100), None, (100, 80)),
        (None, Some(100), (125, 100)),
        (Some(7), None, (7, 6)),
        // 19 / 5, where four fifths are 3.2; and 75 / 5 for 14.4, 79 / 5 for 15.2.
        (Some(4), None, (4, 3)),
        (Some(18), None, (18, 15)),
        (Some(19), None, (19, 15)),
        (None, Some(7), (9, 7)),
        (Some(30), Some(10), (30, 10)),
    ] {
        assert_eq!(SfbConfig { max, target, ..SfbConfig::default() }.bin_sizes(), sizes);
    }
}

/// With target 2: the first arrival finds empty bins, the second one packet, the third two, and
/// then each raises.
#[test]
fn bins_rise_from_target_and_fall_when_empty() {
    let mut queue = sfb(SfbConfig { target: Some(2), max: Some(5), ..SfbConfig::default() });
    let mut drops = Drops::new();
    for (id, p_mark) in [0, 0, 33, 66, 99].into_iter().enumerate() {
        queue.enqueue(Time::ZERO, packet(id as u32, 7), &mut drops);
        assert!(bins(&queue, 0, 7).iter().all(|bin| *bin == Bin { qlen: id as u32 + 1, p_mark }));
    }
    // Five wait in each bin: the sixth is refused, but it has raised the probability.
    queue.enqueue(Time::ZERO, packet(5, 7), &mut drops);
    assert_eq!(drops.last().map(|drop| drop.reason), Some(DropReason::Bucket));
    let stats = queue.stats();
    assert_eq!((stats.bucketdrop, stats.overlimits, stats.maxqlen), (1, 1, 5));
    assert_eq!(stats.maxprob, 132.0 / 65_535.0);
    // A flow of one bin a level: 8 of 128 bins.
    assert!((stats.avgprob - stats.maxprob / 16.0).abs() < 1e-12);
    assert_eq!(queue.probe().probability, Some(132.0 / 65_535.0));
    while queue.ask(Time::ZERO, &mut drops).is_some() {}
    queue.enqueue(Time::ZERO, packet(6, 7), &mut drops);
    assert!(bins(&queue, 0, 7).iter().all(|bin| *bin == Bin { qlen: 1, p_mark: 129 }));
}

/// The lowest of the eight probabilities counts, so that one bin of its own saves a flow.
#[test]
fn a_flow_with_a_bin_of_its_own_is_spared() {
    let mut queue = sfb(SfbConfig::default());
    let mut drops = Drops::new();
    set_probability(&mut queue, 7, 0xffff);
    let shared = bins(&queue, 0, 8).iter().filter(|bin| bin.p_mark > 0).count();
    assert!(shared < LEVELS);
    for id in 0..10 {
        queue.enqueue(Time::ZERO, packet(id, 8), &mut drops);
    }
    assert_eq!((queue.backlog().packets, queue.probe().probability), (10, Some(0.0)));
}

/// Linux: above one half, twice the excess is dropped. At 49,151 of 65,536 that is 2 (49,151 -
/// 32,767) = 32,768: one half dropped, one quarter marked, one quarter untouched. 20,000 packets,
/// standard deviation of the first 71, of the second 61.
#[test]
fn above_one_half_marks_become_drops() {
    let config = SfbConfig { increment: 0.0, decrement: 0.0, ..SfbConfig::default() };
    for (p_mark, dropped, marked) in [(49_151, 10_000, 5_000), (32_767, 0, 10_000), (16_384, 0, 5_000)] {
        let mut queue = sfb(config.clone());
        let mut drops = Drops::new();
        set_probability(&mut queue, 7, p_mark);
        for id in 0..20_000 {
            queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect0, ..packet(id, 7) }, &mut drops);
            queue.ask(Time::ZERO, &mut drops);
        }
        let stats = queue.stats();
        assert!(stats.earlydrop.abs_diff(dropped) < 350, "{stats:?}");
        assert!(stats.marked.abs_diff(marked) < 350, "{stats:?}");
    }
}

/// 1000 packets per second of a flow that does not respond, for 10 s: 20 at once, and 10 per
/// second. Two seconds of silence fill the box again.
#[test]
fn the_penalty_box_lets_its_rate_pass() {
    let mut queue = sfb(SfbConfig { decrement: 0.0, ..SfbConfig::default() });
    let mut drops = Drops::new();
    set_probability(&mut queue, 7, 0xffff);
    let mut offer = |from: u64, to: u64| {
        let before = queue.counters().enqueued.packets;
        for millis in from..to {
            let now = Time::from_millis(millis);
            queue.enqueue(now, packet(millis as u32, 7), &mut drops);
            queue.ask(now, &mut drops);
        }
        queue.counters().enqueued.packets - before
    };
    assert_eq!(offer(0, 1), 1);
    // The last of 9.999 s after the first: 99 more.
    assert_eq!(offer(1, 10_000), 19 + 99);
    assert_eq!(offer(12_000, 12_050), 20);
    let stats = queue.stats();
    assert_eq!(stats.penaltydrop, 10_050 - 139);
    assert_eq!((stats.penaltydrop, stats.earlydrop), (drops.len() as u64, 0));
}

#[test]
fn without_a_rate_or_a_burst_nothing_passes_the_penalty_box() {
    for (penalty_rate, penalty_burst) in [(0, 20), (10, 0)] {
        let mut queue = sfb(SfbConfig { penalty_rate, penalty_burst, decrement: 0.0, ..SfbConfig::default() });
        let mut drops = Drops::new();
        set_probability(&mut queue, 7, 0xffff);
        queue.enqueue(Time::from_secs(5), packet(0, 7), &mut drops);
        assert_eq!(drops.last().map(|drop| drop.reason), Some(DropReason::Penalty));
    }
}

/// rehash 10 s, db 4 s: the other set learns from what comes after 6 s, and takes over with the
/// first packet after 10 s.
#[test]
fn the_other_set_learns_before_it_takes_over() {
    let config = SfbConfig {
        rehash: Span::from_secs(10),
        db: Span::from_secs(4),
        max: Some(100),
        target: Some(1),
        increment: 1.0,
        penalty_burst: 1000,
        ..SfbConfig::default()
    };
    let mut queue = sfb(config);
    let mut drops = Drops::new();
    let perturbations = queue.law.sets.clone().map(|set| set.perturbation);
    assert_ne!(perturbations[0], perturbations[1]);
    // One packet stays, so that each further one raises the probability to 1: the flow does not
    // respond.
    queue.enqueue(Time::ZERO, packet(0, 7), &mut drops);
    queue.enqueue(Time::from_secs(6), packet(1, 7), &mut drops);
    assert_eq!(bins(&queue, 0, 7)[0], Bin { qlen: 2, p_mark: 0xffff });
    assert_eq!(bins(&queue, 1, 7)[0], Bin::default());
    // A flow that responds teaches the other set nothing.
    queue.enqueue(Time::from_secs(7), packet(2, 8), &mut drops);
    assert!(queue.law.sets[1].bins.iter().flatten().all(|bin| *bin == Bin::default()));
    queue.enqueue(Time::from_secs(7), packet(3, 7), &mut drops);
    queue.enqueue(Time::from_secs(10), packet(4, 7), &mut drops);
    assert_eq!(queue.law.slot, 0);
    assert!(bins(&queue, 1, 7).iter().all(|bin| *bin == Bin { qlen: 2, p_mark: 0xffff }));

    queue.enqueue(Time::from_secs(11), packet(5, 7), &mut drops);
    assert_eq!((queue.law.slot, queue.probe().probability), (1, Some(1.0)));
    assert!(bins(&queue, 1, 7).iter().all(|bin| *bin == Bin { qlen: 3, p_mark: 0xffff }));
    assert_eq!(queue.law.sets[1].perturbation, perturbations[1]);
    assert_ne!(queue.law.sets[0].perturbation, perturbations[0]);
    // The next change counts from this one.
    queue.enqueue(Time::from_secs(21), packet(6, 8), &mut drops);
    assert_eq!(queue.law.slot, 1);

    // Each packet leaves the bins that it was counted in, whatever hash they have by now.
    while queue.ask(Time::from_secs(21), &mut drops).is_some() {}
    assert!(queue.law.sets.iter().flat_map(|set| set.bins.iter().flatten()).all(|bin| bin.qlen == 0));
    assert_eq!(drops, []);
}

#[test]
fn a_hash_of_zero_would_count_nowhere() {
    assert!((0..100_000u64).all(|flow| hash_in(flow, 42) != 0));
    // The finalizer takes 0 to 0.
    assert_eq!(hash_in(42, 42), 1);
}

/// The levels at which flows 1 and 2 share a bin.
fn shared_bins(queue: &Sfb<Stub>, slot: usize) -> Vec<usize> {
    let hashes = [1, 2].map(|flow| hash_in(flow, queue.law.sets[slot].perturbation));
    (0..LEVELS).filter(|&level| index(hashes[0], level) == index(hashes[1], level)).collect()
}

#[test]
fn bins_differ_from_run_to_run_unless_they_are_pinned() {
    let queue = |run, hash_seed| {
        let random = Random::for_component(1, run, "sfb");
        let mut queue = Sfb::<Stub>::new(SfbConfig { hash_seed, ..SfbConfig::default() }, random);
        // Another set after another 600 s.
        let mut drops = Drops::new();
        queue.enqueue(Time::from_secs(601), packet(0, 1), &mut drops);
        queue.law.sets.clone().map(|set| set.perturbation)
    };
    assert_ne!(queue(0, None), queue(1, None));
    assert_eq!(queue(0, Some(7)), queue(1, Some(7)));
    assert_ne!(queue(0, Some(7)), queue(0, Some(8)));
    // Two flows share one bin in two, 8 / 16, and these are others from run to run.
    let shared = |run| shared_bins(&Sfb::new(SfbConfig::default(), Random::for_component(1, run, "sfb")), 0);
    let all: Vec<_> = (0..200).map(shared).collect();
    let sum: usize = all.iter().map(Vec::len).sum();
    // Standard deviation sqrt(1600 * 15 / 256) = 9.7; five of them.
    assert!(sum.abs_diff(100) < 49, "{sum}");
    assert!(all.iter().any(|levels| levels != &all[0]));
}

#[test]
fn steps_beyond_one_are_named() {
    assert_eq!(SfbConfig::default().problem(), None);
    for config in [
        SfbConfig { increment: 1.1, ..SfbConfig::default() },
        SfbConfig { decrement: -0.1, ..SfbConfig::default() },
        SfbConfig { increment: f64::NAN, ..SfbConfig::default() },
    ] {
        assert!(config.problem().is_some_and(|problem| problem.contains("within 0 to 1")));
    }
}

/// Sixteen bins on each of eight levels: four bits of the hash for each.
#[test]
fn each_level_has_bits_of_its_own() {
    assert_eq!([0, 1, 2, 3, 4, 5, 6, 7].map(|level| index(0x7654_3210, level)), [0, 1, 2, 3, 4, 5, 6, 7]);
}

/// The sets take turns, and it is the other one that learns.
#[test]
fn the_sets_take_turns() {
    let config = SfbConfig {
        rehash: Span::from_secs(10),
        db: Span::from_secs(5),
        decrement: 0.0,
        penalty_rate: 1000,
        ..SfbConfig::default()
    };
    let mut queue = sfb(config);
    let mut drops = Drops::new();
    for (secs, slot) in [(1, 0), (11, 1), (22, 0), (33, 1)] {
        queue.enqueue(Time::from_secs(secs), packet(0, 7), &mut drops);
        assert_eq!(queue.law.slot, slot, "{secs} s");
        queue.ask(Time::from_secs(secs), &mut drops);
    }
    // Set 1 is in use since 33 s: from 38 s on set 0 counts flows of the penalty box.
    set_probability(&mut queue, 7, 0xffff);
    for (secs, counted) in [(38, 0), (39, 1)] {
        queue.enqueue(Time::from_secs(secs), packet(0, 7), &mut drops);
        assert!(bins(&queue, 0, 7).iter().all(|bin| bin.qlen == counted), "{secs} s");
    }
}

/// A credit of a packet lets a packet pass; and what was dropped for good adds up.
#[test]
fn a_credit_of_one_packet_is_enough() {
    let config = SfbConfig { penalty_burst: 1, decrement: 0.0, max: Some(2), limit: 2, ..SfbConfig::default() };
    let mut queue = sfb(config);
    let mut drops = Drops::new();
    set_probability(&mut queue, 7, 0xffff);
    queue.enqueue(Time::ZERO, packet(0, 7), &mut drops);
    assert_eq!((queue.backlog().packets, drops.len()), (1, 0));
    queue.enqueue(Time::ZERO, packet(1, 7), &mut drops);
    assert_eq!(drops.pop().map(|drop| drop.reason), Some(DropReason::Penalty));
    // Another packet passes after 100 ms, and then all bins are full, and so is the queue.
    queue.config.limit = 3;
    for (id, millis, reason) in [(2, 100, None), (3, 200, Some(DropReason::Bucket))] {
        queue.enqueue(Time::from_millis(millis), packet(id, 7), &mut drops);
        assert_eq!(drops.pop().map(|drop| drop.reason), reason);
    }
    queue.config.limit = 2;
    for id in 4..6 {
        queue.enqueue(Time::from_millis(300), packet(id, 8), &mut drops);
    }
    let stats = queue.stats();
    assert_eq!((stats.penaltydrop, stats.bucketdrop, stats.queuedrop, stats.overlimits), (1, 1, 2, 4));
}

/// A probability of zero is none: not one of a million packets is marked.
#[test]
fn without_a_probability_nothing_is_marked() {
    let mut queue = sfb(SfbConfig::default());
    let mut drops = Drops::new();
    for id in 0..1_000_000 {
        queue.enqueue(Time::ZERO, Stub { ecn: Ecn::Ect0, ..packet(id, 7) }, &mut drops);
        queue.ask(Time::ZERO, &mut drops);
    }
    assert_eq!((queue.stats().marked, drops.len()), (0, 0));
}
