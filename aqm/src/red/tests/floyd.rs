//! The law of the authors in ns-2.

use super::*;

/// Floyd, Jacobson 1993 section 7: p / (1 - count p) gives 1 to 1/p, here 1 to 99, as the mark
/// itself is not counted. With `wait`: nothing before 1/p, p / (2 - count p) from there on: 100
/// to 199.
#[test]
fn the_authors_space_marks_likewise() {
    for (wait, bytemode, range) in [(false, false, 1..=99), (true, false, 100..=199), (true, true, 100..=199)] {
        let floyd = RedFloyd { wait, bytemode, weight: RedWeight::Fixed(0.5), ..RedFloyd::default() };
        let config = RedConfig { floyd: Some(floyd.clone()), probability: 0.02, ..with(2_000, 6_000, 1000, 2) };
        let mut law = floyd_law(&config, &floyd);
        law.average = 4_000.0;
        let counts = gaps(|random| law.arrival(Time::ZERO, 4_000, 1000, random), 100_000);
        assert_uniform(&counts, range);
    }
}

#[test]
fn gentle_rises_to_one_at_twice_max() {
    let law = |average, gentle| {
        let floyd = RedFloyd { gentle, mark_p: None, ..RedFloyd::default() };
        let mut law = floyd_law(&RedConfig { probability: 0.1, ..with(2_000, 6_000, 1000, 2) }, &floyd);
        law.average = average;
        law
    };
    for (average, gentle, steep) in [
        (1_999.0, 0.0, 0.0),
        (4_000.0, 0.05, 0.05),
        (6_000.0, 0.1, 1.0),
        (9_000.0, 0.55, 1.0),
        (12_000.0, 1.0, 1.0),
        (20_000.0, 1.0, 1.0),
    ] {
        for (option, expected) in [(true, gentle), (false, steep)] {
            assert_close(law(average, option).probability(), expected);
        }
    }
    let verdict = |average, gentle| law(average, gentle).arrival(Time::ZERO, average as u64, 1000, &mut random(1));
    assert_eq!((verdict(6_000.0, true), verdict(6_000.0, false)), (RedReaction::Pass, RedReaction::Forced));
    assert_eq!((verdict(11_999.0, true), verdict(12_000.0, true)), (RedReaction::Pass, RedReaction::Forced));
}

/// 10 Mbit/s carry 1250 packets of 1000 bytes in a second: 5 ms without a queue let 6 pass, and
/// then there is the one that arrives.
#[test]
fn the_authors_count_the_packets_that_could_have_passed() {
    let floyd = RedFloyd { weight: RedWeight::Fixed(0.5), ..RedFloyd::default() };
    let mut law = floyd_law(&with(2_000, 6_000, 1000, 2), &floyd);
    for (backlog, average) in [(0, 0.0), (1_000, 500.0), (2_000, 1_250.0), (3_000, 2_125.0)] {
        law.arrival(Time::ZERO, backlog, 1000, &mut random(1));
        assert_close(law.average, average);
    }
    law.idle_since = Some(Time::from_millis(10));
    assert_close(law.average_at(Time::from_millis(15)), 2_125.0 / 64.0);
    law.arrival(Time::from_millis(15), 0, 1000, &mut random(1));
    assert_close(law.average, 2_125.0 / 128.0);
}

/// Floyd, Gummadi, Shenker 2001, figure 1: the target range of 10,000 to 20,000 is 14,000 to
/// 16,000.
#[test]
fn adaptive_red_moves_the_probability_towards_the_target() {
    let config = RedConfig { min: Some(10_000), max: Some(20_000), ..RedConfig::default() };
    let adaptation = RedAdaptation::new(RedAdaptive::default(), &config, Time::ZERO);
    for (max_p, average, expected) in [
        // Above: 0.01 more, but at most a quarter.
        (0.02, 16_001.0, 0.025),
        (0.04, 16_001.0, 0.05),
        (0.1, 16_001.0, 0.11),
        (0.5, 30_000.0, 0.51),
        (0.51, 30_000.0, 0.51),
        // Below: a tenth less.
        (0.1, 13_999.0, 0.09),
        (0.01, 0.0, 0.009),
        (0.009, 0.0, 0.009),
        // Within.
        (0.1, 14_000.0, 0.1),
        (0.1, 16_000.0, 0.1),
    ] {
        assert_close(adaptation.step(max_p, average), expected);
    }
}

/// ns-2 `red.cc`, `initialize_params`: 80,000 / 10 Mbit/s = 0.008 and a tenth of it at 100 Mbit/s,
/// but 0.01 below 8 Mbit/s. The first step below 0.008 is the last: 0.1 * 0.9^24 = 0.00798.
#[test]
fn the_lowest_probability_may_follow_from_the_bandwidth() {
    for (mbit, bottom) in [(1, 0.01), (8, 0.01), (10, 0.008), (100, 0.000_8)] {
        assert_close(RedBottom::Automatic.at(Rate::from_bps(mbit * 1_000_000).unwrap()), bottom);
        assert_close(RedBottom::Fixed(0.02).at(Rate::from_bps(mbit * 1_000_000).unwrap()), 0.02);
    }
    let mut queue = red(RedConfig::adaptive_2001());
    queue.ask(Time::from_secs(1000), &mut Drops::new());
    assert_close(queue.stats().max_p, 0.1 * maths::pow(0.9, 24.0));
}

/// The authors' law at an average that stays, in front of packets that can carry a mark; each is
/// the first after a mark that is due.
fn at_average(mark_p: Option<f64>, average: f64, capable_too: bool) -> RedStats {
    let floyd =
        RedFloyd { mark_p, wait: false, bytemode: false, weight: RedWeight::Fixed(1e-12), ..RedFloyd::default() };
    let config =
        RedConfig { ecn: true, probability: 0.2, floyd: Some(floyd), limit: 1 << 30, ..with(2_000, 6_000, 1000, 2) };
    let mut queue = red(config);
    let mut drops = Drops::new();
    queue.enqueue(Time::ZERO, stub(0, 1000), &mut drops);
    for id in 1..200 {
        let RedLaw::Floyd(law) = &mut queue.law else { unreachable!() };
        (law.average, law.above) = (average, true);
        let packet = if capable_too { capable(id, 1000) } else { stub(id, 1000) };
        queue.enqueue(Time::ZERO, packet, &mut drops);
    }
    queue.stats()
}

/// ns-2 `red.cc`, `drop_early`: with 0.2 at `max`, the probability is 0.1 half way from 2000
/// to 6000. Below it is marked what can be, from there on dropped. Beyond 12,000, twice `max`, all
/// is dropped, by a chance of 1; without `mark_p` for certain, and then what can be marked is
/// marked at any average.
#[test]
fn the_authors_mark_only_while_the_probability_is_low() {
    for (mark_p, average, marks, drops) in [
        (Some(0.1), 3_999.0, true, false),
        (Some(0.1), 4_001.0, false, true),
        (Some(0.1), 20_000.0, false, true),
        (Some(0.5), 5_999.0, true, false),
        (None, 4_000.0, true, false),
        (None, 20_000.0, true, false),
    ] {
        let stats = at_average(mark_p, average, true);
        let got = (stats.marked > 0, stats.early > 0);
        assert_eq!(got, (marks, drops), "{mark_p:?} at {average}: {stats:?}");
        let certain = mark_p.is_none() && average > 12_000.0;
        assert_eq!(stats.forced_mark > 0, certain, "{mark_p:?} at {average}");
        if average > 12_000.0 {
            assert_eq!(stats.marked + stats.early, 199);
        }
        let incapable = at_average(mark_p, average, false);
        assert!(incapable.marked == 0 && incapable.early > 0);
    }
}

/// At `min` the average has crossed it, by either law (red.h: `qavg < qth_min` is below; ns-2:
/// `v_ave >= th_min`); at `mark_p` packets are dropped (`v_prob < mark_p` marks); where the packets
/// since the last mark add up to what was drawn, the next is marked.
#[test]
fn edges_belong_to_what_is_above_them() {
    let config = RedConfig { probability: 0.2, ..with(2_000, 6_000, 1000, 2) };
    let mut law = linux(&config);
    law.scaled_average = 2_000 << 1;
    law.arrival(Time::ZERO, 2_000, &mut random(1));
    assert_eq!(law.spacing.count, Some(0));
    (law.scaled_average, law.spacing) = (4_000 << 1, Spacing { count: Some(2), gap: 6_000 });
    assert_eq!(law.arrival(Time::ZERO, 4_000, &mut random(1)), RedReaction::Early);

    let floyd = RedFloyd { weight: RedWeight::Fixed(0.5), ..RedFloyd::default() };
    let mut law = floyd_law(&config, &floyd);
    law.average = 2_000.0;
    law.arrival(Time::ZERO, 2_000, 1000, &mut random(1));
    assert!(law.above);
    law.average = 4_000.0;
    assert_eq!((law.probability(), law.may_mark()), (0.1, false));
    law.average = 3_999.0;
    assert!(law.may_mark());
    // Three packets at 1/2: 0.5 / (2 - 1.5) is certain, for one of half the size too.
    law.count_bytes = 3_000;
    assert_eq!(law.spaced(0.5, 500), 1.0);
}

/// ns-2 `red.cc`, `modify_p`: the size scales a probability below 1 only. 1.5 of 500 bytes in
/// packets of 1000 would be 0.75.
#[test]
fn what_is_certain_is_so_for_small_packets() {
    let floyd = RedFloyd { wait: true, bytemode: true, ..RedFloyd::default() };
    let mut law = floyd_law(&with(2_000, 6_000, 1000, 2), &floyd);
    law.count_bytes = 1_500;
    // 1.5 packets at 0.9 are 1.35: 0.9 / 0.65 = 1.38.
    assert_close(law.spaced(0.9, 500), 1.0);
    // At 0.7 they are 1.05: 0.7 / 0.95 = 0.737, half of it for half a packet.
    assert_close(law.spaced(0.7, 500), 0.7 / 0.95 / 2.0);
}

/// ns-2 `red.cc`, `enque`: a forced drop, whether by the average or for want of room, starts the
/// count anew. sch_red.c does not touch it (`pdrop`).
#[test]
fn an_overflow_starts_the_authors_count_anew() {
    let overflowing = |floyd: Option<RedFloyd>| {
        let mut queue = red(RedConfig { limit: 5_000, floyd, ..with(2_000, 60_000, 1000, 20) });
        let mut drops = Drops::new();
        (0..5).for_each(|id| queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops));
        match &mut queue.law {
            RedLaw::Floyd(law) => (law.average, law.above) = (2_100.0, true),
            RedLaw::Linux(law) => {
                law.scaled_average = 2_100 << law.thresholds.wlog;
                law.spacing = Spacing { count: Some(7), gap: u64::MAX };
            }
        }
        queue.enqueue(Time::ZERO, stub(5, 1000), &mut drops);
        assert_eq!(queue.stats().pdrop, 1);
        match queue.law {
            RedLaw::Floyd(law) => (law.count, law.count_bytes),
            RedLaw::Linux(law) => (law.spacing.count.unwrap(), 0),
        }
    };
    assert_eq!(overflowing(Some(RedFloyd::default())), (0, 0));
    assert_eq!(overflowing(None), (8, 0));
}

/// From 0.02 without a queue: 0.9^7 * 0.02 = 0.00957 is the first below 0.01.
#[test]
fn updates_are_due_every_interval() {
    let mut queue = red(RedConfig { adaptive: Some(RedAdaptive::default()), ..RedConfig::default() });
    let mut drops = Drops::new();
    let mut max_p = |millis| {
        queue.ask(Time::from_millis(millis), &mut drops);
        queue.stats().max_p
    };
    assert_close(max_p(499), 0.02);
    assert_close(max_p(500), 0.018);
    assert_close(max_p(1_999), 0.02 * 0.729);
    assert_close(max_p(3_000), 0.02 * 0.531_441);
    assert_close(max_p(3_500), 0.02 * 0.478_296_9);
    assert_close(max_p(1_000_000_000), 0.02 * 0.478_296_9);
}

/// An average of 20,000 in a queue that nothing comes to or leaves, above the 16,000 of the target
/// range: a quarter more for each update up to 0.04, then 0.01. Six are due from 0.5 to 3 s: 0.02,
/// 0.025, 0.03125, 0.0390625, 0.048828125, + 0.01, + 0.01. Above `top` it stays: 0.5 is reached and
/// passed once.
#[test]
fn updates_with_a_queue_raise_the_probability_each_by_its_own_step() {
    for floyd in [None, Some(RedFloyd { weight: RedWeight::Fixed(1e-12), ..RedFloyd::default() })] {
        let mut queue = red(RedConfig {
            min: Some(10_000),
            max: Some(20_000),
            adaptive: Some(RedAdaptive::default()),
            floyd,
            ..RedConfig::default()
        });
        match &mut queue.law {
            RedLaw::Linux(law) => law.scaled_average = 20_000 << law.thresholds.wlog,
            RedLaw::Floyd(law) => law.average = 20_000.0,
        }
        queue.catch_up(Time::from_millis(3_100));
        // The fifth step is a quarter of 0.0390625, 0.009765625; from 0.048828125 on it is 0.01.
        assert_close(queue.stats().max_p, 0.048_828_125 + 0.02);
        queue.catch_up(Time::from_secs(10_000));
        // 0.068828125 + 44 * 0.01 is the first above 0.5.
        assert_close(queue.stats().max_p, 0.508_828_125);
        assert_eq!(queue.adaptation.unwrap().next, Time::from_millis(10_000_500));
    }
}

/// Updates while the average decays see it at their own times. 625 packets pass in each half
/// second: with a weight of 1/4096 they leave (4095/4096)^625 = 0.85847 of it, that is of 40,000
/// bytes 34,339, 29,479, 25,306, 21,725, 18,650, 16,010 and 13,744. The first six are above the
/// target range of 14,000 to 16,000, the seventh is below. With 1/32 nothing is left at the first.
#[test]
fn updates_see_the_average_of_their_own_time() {
    let run = |weight: f64, until: u64| {
        let floyd = RedFloyd { weight: RedWeight::Fixed(weight), ..RedFloyd::default() };
        let mut queue = red(RedConfig {
            min: Some(10_000),
            max: Some(20_000),
            adaptive: Some(RedAdaptive::default()),
            probability: 0.1,
            floyd: Some(floyd),
            ..RedConfig::default()
        });
        let RedLaw::Floyd(law) = &mut queue.law else { unreachable!() };
        (law.average, law.idle_since) = (40_000.0, Some(Time::ZERO));
        queue.catch_up(Time::from_millis(until));
        queue.stats().max_p
    };
    assert_close(run(1.0 / 32.0, 1_000), 0.1 * 0.81);
    // Within the range first, 14,937 of 17,400, and below it, 12,823, at the update after.
    let mut resting = red(RedConfig {
        min: Some(10_000),
        max: Some(20_000),
        adaptive: Some(RedAdaptive::default()),
        probability: 0.1,
        floyd: Some(RedFloyd { weight: RedWeight::Fixed(1.0 / 4096.0), ..RedFloyd::default() }),
        ..RedConfig::default()
    });
    let RedLaw::Floyd(law) = &mut resting.law else { unreachable!() };
    (law.average, law.idle_since) = (17_400.0, Some(Time::ZERO));
    resting.catch_up(Time::from_secs(1));
    assert_close(resting.stats().max_p, 0.09);
    // Six rises by 0.01, then a fall by a tenth at 3.5 s.
    assert_close(run(1.0 / 4096.0, 3_499), 0.16);
    assert_close(run(1.0 / 4096.0, 3_500), 0.144);
}

/// Floyd, Gummadi, Shenker 2001 section 5: 5 ms at 10 Mbit/s are 6250 bytes, half of it less than
/// five packets; at 100 Mbit/s half of it is 31,250. C is 1250 packets per second.
#[test]
fn adaptive_red_sets_itself() {
    let config = RedConfig::adaptive_2001();
    assert_eq!(config.thresholds(), (5_000, 15_000));
    let fast = RedConfig { bandwidth: Rate::from_bps(100_000_000).unwrap(), ..config.clone() };
    assert_eq!(fast.thresholds(), (31_250, 93_750));
    // 1 - exp(-1/1250) = 1/1250 - 1/1250^2/2 + 1/1250^3/6: an average of that times the backlog
    // that the second packet finds.
    let mut queue = red(config);
    let mut drops = Drops::new();
    for id in 0..2 {
        queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops);
    }
    assert_close(queue.probe().average.unwrap(), 1000.0 * (0.0008 - 0.000_000_32 + 0.000_000_000_085_333));
}

proptest! {
    /// A queue that makes up for updates when it is asked, against one that makes each at its time.
    #[test]
    fn late_updates_are_the_same_updates(
        steps in prop::collection::vec((0u64..3_000_000, 0u32..4), 1..200),
        floyd: bool,
        interval in 1u64..100_000,
    ) {
        let config = RedConfig {
            adaptive: Some(RedAdaptive { interval: Span::from_micros(interval), ..RedAdaptive::default() }),
            floyd: floyd.then(RedFloyd::default),
            ..with(5_000, 15_000, 1000, 10)
        };
        let (mut lazy, mut ticked) = (red(config.clone()), red(config));
        let (mut lazy_drops, mut ticked_drops) = (Drops::new(), Drops::new());
        let mut now = Time::ZERO;
        for (id, (gap, action)) in steps.into_iter().enumerate() {
            let next = now + Span::from_micros(gap >> (4 * action));
            while let Some(due) = ticked.adaptation.as_ref().map(|adaptation| adaptation.next).filter(|due| *due <= next) {
                ticked.catch_up(due);
            }
            now = next;
            if action == 0 {
                prop_assert_eq!(lazy.ask(now, &mut lazy_drops), ticked.ask(now, &mut ticked_drops));
            } else {
                lazy.enqueue(now, stub(id as u32, 1514), &mut lazy_drops);
                ticked.enqueue(now, stub(id as u32, 1514), &mut ticked_drops);
            }
            prop_assert_eq!(lazy.stats(), ticked.stats());
            prop_assert_eq!(lazy.probe(), ticked.probe());
        }
        prop_assert_eq!(lazy_drops, ticked_drops);
    }
}
