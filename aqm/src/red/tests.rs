use super::linux::{Damping, Spacing};
use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::{Ecn, Rate, Span, maths};
use proptest::prelude::*;

mod floyd;
mod ns3;

fn random(seed: u64) -> Random {
    Random::for_component(seed, 0, "red")
}

fn red(config: RedConfig) -> Red<Stub> {
    Red::new(config, random(1))
}

/// Linux's law with these parameters.
fn linux(config: &RedConfig) -> Linux {
    match RedLaw::new(config, config.average().unwrap()) {
        RedLaw::Linux(law) => law,
        RedLaw::Floyd(_) => unreachable!("no `floyd`"),
    }
}

/// The law of RED's authors with these parameters and options.
fn floyd_law(config: &RedConfig, floyd: &RedFloyd) -> Floyd {
    let config = RedConfig { floyd: Some(floyd.clone()), ..config.clone() };
    match RedLaw::new(&config, config.average().unwrap()) {
        RedLaw::Floyd(law) => law,
        RedLaw::Linux(_) => unreachable!("with `floyd`"),
    }
}

fn capable(id: u32, bytes: u32) -> Stub {
    Stub { ecn: Ecn::Ect0, ..stub(id, bytes) }
}

fn with(min: u64, max: u64, avpkt: u32, burst: u32) -> RedConfig {
    RedConfig { min: Some(min), max: Some(max), avpkt, burst: Some(burst), ..RedConfig::default() }
}

#[track_caller]
fn assert_close(got: f64, expected: f64) {
    assert!((got - expected).abs() <= 1e-9, "{got} is not {expected}");
}

/// iproute2 `tc/q_red.c`; the third line is Linux selftests' `tc-testing/tc-tests/qdiscs/red.json`
/// 8b6e.
#[test]
fn thresholds_are_derived_as_tc_does() {
    let thresholds = |min, max| RedConfig { min, max, ..RedConfig::default() }.thresholds();
    assert_eq!(thresholds(None, None), (33_333, 100_000));
    assert_eq!(thresholds(Some(30_000), None), (30_000, 90_000));
    assert_eq!(thresholds(Some(102_400), Some(307_200)), (102_400, 307_200));
    assert_eq!(thresholds(None, Some(90_000)), (30_000, 90_000));
}

/// The smallest log with burst + 1 - min/avpkt <= (1 - (1 - 2^-log)^burst) 2^log.
#[test]
fn the_weight_follows_from_the_burst() {
    for (config, log) in [
        // (2 * 33,333 + 100,000) / 3000 = 55; 56 - 33.3 = 22.7; log 4: 16 (1 - 0.0287) = 15.5, log
        // 5: 32 (1 - 0.1744) = 26.4.
        (RedConfig::default(), 5),
        // 51 - 8.192 = 42.8; log 7: 128 (1 - 0.6756) = 41.5, log 8: 256 (1 - 0.8222) = 45.5.
        (with(8_192, 25_600, 1000, 50), 8),
        // 501 - 8.192 = 492.81; log 14: 16,384 (1 - 0.969942) = 492.48, log 15: 32,768 (1 -
        // 0.984857) = 496.2.
        (with(8_192, 25_600, 1000, 500), 15),
        // 39 - 30,000/1400 = 17.6; log 4: 16 (1 - 0.0861) = 14.6, log 5: 32 (1 - 0.2993) = 22.4.
        (with(30_000, 30_001, 1400, 38), 5),
        // 3 - 2 = 1; log 1: 2 (1 - 0.25) = 1.5.
        (with(2_000, 6_000, 1000, 2), 1),
    ] {
        assert_eq!(config.ewma(), Some(log), "{config:?}");
    }
    // 9 - 10 < 1: `tc` says that the burst is too small.
    assert_eq!(with(10_000, 30_000, 1000, 8).ewma(), None);
}

/// The table in Linux `include/net/red.h` for min/avpkt = 32: which burst needs which log, to
/// within three packets.
#[test]
fn the_weight_agrees_with_the_table_of_the_kernel() {
    // `tc` refuses bursts below min, which any weight lets through.
    let ewma = |burst| with(32_000, 96_000, 1000, burst).ewma().unwrap_or(1);
    for (log, burst) in [(1, 33), (2, 35), (3, 39), (4, 46), (5, 57), (6, 75), (7, 101), (8, 135), (9, 190)] {
        assert!(ewma(burst - 3) <= log && ewma(burst + 3) > log, "{log}: {}", ewma(burst));
    }
}

/// Weight 1/2; packets of 1000 bytes find 0, 1000, 2000 ... bytes. In halves of bytes: 0, 1000,
/// 1000 - 500 + 2000 = 2500, 2500 - 1250 + 3000 = 4250, 4250 - 2125 + 4000 = 6125, 6125 - 3062 +
/// 5000 = 8063.
#[test]
fn the_average_moves_with_each_arrival() {
    let mut queue = red(RedConfig { probability: 0.0, ..with(2_000, 6_000, 1000, 2) });
    let mut drops = Drops::new();
    for (id, average) in [0.0, 500.0, 1250.0, 2125.0, 3062.5, 4031.5].into_iter().enumerate() {
        queue.enqueue(Time::ZERO, stub(id as u32, 1000), &mut drops);
        assert_eq!(queue.probe().average, Some(average));
    }
    assert_eq!(drops, []);
}

#[test]
fn the_probability_rises_from_min_to_max() {
    let mut law = linux(&RedConfig { probability: 0.1, ..with(2_000, 6_000, 1000, 2) });
    for (average, probability) in
        [(0, 0.0), (1_999, 0.0), (2_000, 0.0), (3_000, 0.025), (5_999, 0.099_975), (6_000, 1.0)]
    {
        law.scaled_average = average << 1;
        assert_close(law.probability(), probability);
    }
}

/// 800 us for a packet are 12,500 ticks of 64 ns: -ln(31/32) / 12,500 = 2.53989e-6 per tick; 31 of
/// them take 12,205,200, in fewer than 512 cells of 2^15. A cell is 0.083227: the 13th is the first
/// above 1, the 25th above 2; the 254th is 21.1.
#[test]
fn time_without_a_queue_shifts_the_average_down() {
    let damping = Damping::new(5, 1000, RedConfig::default().bandwidth).unwrap();
    assert_eq!(damping.cell_log, 15);
    let shifts = [0, 12, 13, 24, 25, 254, 255].map(|cell| damping.shifts[cell]);
    assert_eq!(shifts, [0, 0, 1, 1, 2, 21, 31]);

    let average = |micros| {
        let mut law = linux(&RedConfig::default());
        law.scaled_average = 1 << 32;
        law.idle_since = Some(Time::from_secs(1));
        let now = Time::from_secs(1) + Span::from_micros(micros);
        let expected = law.average_at(now);
        law.arrival(now, 1514, &mut random(1));
        assert_eq!((law.scaled_average >> 5) as f64, expected);
        assert_eq!(law.idle_since, None);
        law.scaled_average
    };
    // Within the first cell in a straight line down to half, which stays until the table says more.
    assert_eq!(average(0), 1 << 32);
    assert_eq!(average(8_192), 3 << 30);
    assert_eq!(average(16_384), 1 << 31);
    assert_eq!(average(32_767), 1 << 31);
    assert_eq!(average(12 << 15), 1 << 31);
    assert_eq!(average(13 << 15), 1 << 31);
    assert_eq!(average(25 << 15), 1 << 30);
    assert_eq!(average(3_600_000_000), 2);
}

/// sch_red.c, `red_dequeue`: the first empty dequeue starts the time without a queue, later ones do
/// not start it anew. After 20 s (of 3.3 that the longest shift takes) nothing is left; after the
/// 10 ms since the last of them there would be half. The authors' law: 20 s are 25,000 packets of
/// weight 1/32.
#[test]
fn time_without_a_queue_starts_once() {
    for floyd in [None, Some(RedFloyd::default())] {
        let mut queue = red(RedConfig { floyd, ..RedConfig::default() });
        match &mut queue.law {
            RedLaw::Linux(law) => law.scaled_average = 30_000 << law.thresholds.wlog,
            RedLaw::Floyd(law) => law.average = 30_000.0,
        }
        let mut drops = Drops::new();
        for millis in [1_000, 11_000, 20_990] {
            assert_eq!(queue.ask(Time::from_millis(millis), &mut drops), None);
        }
        assert_eq!(*queue.law.idle_since(), Some(Time::from_secs(1)));
        queue.enqueue(Time::from_secs(21), stub(0, 1000), &mut drops);
        assert!(queue.probe().average.unwrap() < 1e-3, "{:?}", queue.probe());
        // With a packet in the queue there is none.
        assert_eq!(*queue.law.idle_since(), None);
        queue.ask(Time::from_secs(22), &mut drops);
        assert_eq!(*queue.law.idle_since(), None);
    }
}

/// include/net/red.h, `red_action`: `RED_HARD_MARK` sets `qcount` to -1, as an average below `min`
/// does. So the next packet between the thresholds only starts the count, however many passed
/// before.
#[test]
fn a_forced_mark_forgets_the_count() {
    for (average, verdict) in [(7_000, RedReaction::Forced), (1_000, RedReaction::Pass)] {
        let mut law = linux(&RedConfig { probability: 1.0, ..with(2_000, 6_000, 1000, 2) });
        // Weight 1/2: arrivals that find the average leave it where it is.
        law.scaled_average = 4_000 << 1;
        law.spacing = Spacing { count: Some(1_000), gap: 1_000_000 };
        law.scaled_average = average << 1;
        assert_eq!(law.arrival(Time::ZERO, average, &mut random(1)), verdict);
        assert_eq!(law.spacing.count, None);
        law.scaled_average = 4_000 << 1;
        assert_eq!(law.arrival(Time::ZERO, 4_000, &mut random(1)), RedReaction::Pass);
        assert_eq!(law.spacing.count, Some(0));
        // The gap is drawn anew, below (max - min) / max_P = 4000: 2000 above `min` reach it within
        // two packets.
        let next = [0; 2].map(|_| law.arrival(Time::ZERO, 4_000, &mut random(2)));
        assert!(next.contains(&RedReaction::Early), "{next:?}");
    }
}

/// ns-2 `red.cc`, `enque`: the packet with which the average crosses `min` is the first of the
/// count. At a probability of 1/2, with `wait`: none before count 2, half of those, all at count 3.
/// So the crossing one is followed by a mark after one packet or two, a mark (count 0) after two or
/// three.
#[test]
fn the_packet_that_crosses_min_counts() {
    let floyd = RedFloyd { wait: true, mark_p: None, weight: RedWeight::Fixed(0.5), ..RedFloyd::default() };
    let config = RedConfig { floyd: Some(floyd.clone()), probability: 1.0, ..with(2_000, 6_000, 1000, 2) };
    for bytemode in [false, true] {
        let mut seen = [[0; 2]; 2];
        for seed in 0..200 {
            let mut law = floyd_law(&config, &RedFloyd { bytemode, ..floyd.clone() });
            law.average = 4_000.0;
            let mut random = random(seed);
            assert_eq!(law.arrival(Time::ZERO, 4_000, 1000, &mut random), RedReaction::Pass);
            for (gaps, shortest) in seen.iter_mut().zip([1, 2]) {
                let gap = 1
                    + (0..10)
                        .take_while(|_| law.arrival(Time::ZERO, 4_000, 1000, &mut random) == RedReaction::Pass)
                        .count();
                gaps[gap - shortest] += 1;
            }
        }
        // Each with a chance of one half: 100 of 200, five standard deviations are 35.
        assert!(seen.iter().flatten().all(|count| (65..=135).contains(count)), "{seen:?}");
    }
}

/// At an average that stays, the packets from one mark to the next: how often each number of them
/// occurs.
fn gaps(mut arrival: impl FnMut(&mut Random) -> RedReaction, marks: u32) -> Vec<u32> {
    let mut random = random(3);
    let mut counts = vec![0; 1000];
    let (mut gap, mut seen) = (0, 0);
    while seen <= marks {
        gap += 1;
        match arrival(&mut random) {
            RedReaction::Pass => {}
            RedReaction::Early => {
                // The first does not follow a mark.
                if seen > 0 {
                    counts[gap] += 1;
                }
                (seen, gap) = (seen + 1, 0);
            }
            RedReaction::Forced => panic!("the average is below max"),
        }
    }
    counts
}

/// All of `range` occur alike and nothing else does: 100,000 marks, five standard deviations.
#[track_caller]
fn assert_uniform(counts: &[u32], range: std::ops::RangeInclusive<usize>) {
    let expected = 100_000.0 / range.clone().count() as f64;
    for (gap, &count) in counts.iter().enumerate() {
        let deviation = (f64::from(count) - if range.contains(&gap) { expected } else { 0.0 }).abs();
        let tolerance = if range.contains(&gap) { 5.0 * expected.sqrt() } else { 0.0 };
        assert!(deviation <= tolerance, "{gap}: {count}");
    }
}

/// Half way from min to max at 0.02 the probability is p = 0.01. Linux: the gap is uniform in 1 to
/// 1/p = 100.
#[test]
fn marks_are_spaced_evenly() {
    let mut law = linux(&with(2_000, 6_000, 1000, 2));
    law.scaled_average = 4_000 << 1;
    assert_close(law.probability(), 0.01);
    assert_uniform(&gaps(|random| law.arrival(Time::ZERO, 4_000, random), 100_000), 1..=100);
}

/// The reaction to a packet that can carry a mark and to one that cannot: sch_red.c.
#[test]
fn ecn_harddrop_and_nodrop_decide_what_a_mark_is() {
    // (ecn, harddrop, nodrop), average above max; then (marked, dropped) of the two packets.
    for (ecn, harddrop, nodrop, forced, expected) in [
        (false, false, false, false, (0, 2)),
        (false, false, false, true, (0, 2)),
        (true, false, false, false, (1, 1)),
        (true, false, false, true, (1, 1)),
        (true, true, false, false, (1, 1)),
        (true, true, false, true, (0, 2)),
        (true, false, true, false, (1, 0)),
        (true, false, true, true, (1, 0)),
        (true, true, true, false, (1, 0)),
        (true, true, true, true, (0, 2)),
    ] {
        let mut queue = red(RedConfig { ecn, harddrop, nodrop, probability: 1.0, ..with(2_000, 6_000, 1000, 2) });
        let mut drops = Drops::new();
        for (id, packet) in [capable(0, 1000), stub(1, 1000)].into_iter().enumerate() {
            let RedLaw::Linux(law) = &mut queue.law else { unreachable!() };
            // The arrival halves it: an average of 25,000, or of 5000 with the next mark due.
            law.scaled_average = if forced { 100_000 } else { 20_000 };
            law.spacing.count = Some(1_000_000);
            queue.enqueue(Time::ZERO, packet, &mut drops);
            assert_eq!(queue.counters().offered.packets, id as u64 + 1);
        }
        let stats = queue.stats();
        assert_eq!((stats.marked, stats.early), expected, "{ecn} {harddrop} {nodrop} {forced}");
        assert_eq!((stats.overlimits, stats.pdrop), (2, 0));
        let split = (stats.prob_mark, stats.prob_drop, stats.forced_mark, stats.forced_drop);
        assert_eq!(split, if forced { (0, 0, expected.0, expected.1) } else { (expected.0, expected.1, 0, 0) });
    }
}

#[test]
fn packets_beyond_the_limit_are_refused() {
    let mut queue = red(RedConfig { limit: 10_000, ..with(20_000, 60_000, 1000, 40) });
    let mut drops = Drops::new();
    for id in 0..12 {
        queue.enqueue(Time::ZERO, stub(id, 1000), &mut drops);
    }
    assert_eq!((queue.backlog().bytes, queue.stats().pdrop, queue.stats().early), (10_000, 2, 0));
}

/// Linux selftests `net/forwarding/sch_red.sh`: min 30000 max 30001 probability 1 avpkt 1400 burst
/// 38 at 10 Mbit/s. A backlog of two thirds of min sees no mark, one of three halves at least 95 %
/// marks; what cannot carry a mark does not get in there, unless with nodrop; without ecn nothing
/// is marked and the backlog cannot be built.
#[test]
fn linux_selftest_marks_everything_above_the_threshold() {
    const BACKLOG: u64 = 30_000;
    let run = |ecn, nodrop, target: u64, packet: fn(u32, u32) -> Stub| {
        let mut queue =
            red(RedConfig { limit: 1 << 20, probability: 1.0, ecn, nodrop, ..with(BACKLOG, BACKLOG + 1, 1400, 38) });
        let mut drops = Drops::new();
        let mut marked = 0;
        // One second to build the backlog, five to count marks: one packet leaves each 1.12 ms.
        for n in 0..5360u32 {
            let now = Time::from_micros(1120 * u64::from(n));
            while queue.backlog().bytes < target {
                let offered = queue.counters().offered.packets;
                queue.enqueue(now, packet(n, 1400), &mut drops);
                // Ten attempts for each packet that has left.
                if offered > 10 * u64::from(n + 1) + target / 1400 {
                    break;
                }
            }
            if n == 893 {
                marked = queue.stats().marked;
            }
            queue.ask(now, &mut drops);
        }
        let percent = 100 * (queue.stats().marked - marked) / (5360 - 893);
        (percent, queue.backlog().bytes >= target - 2800)
    };
    for ecn_nodrop in [false, true] {
        assert_eq!(run(true, ecn_nodrop, 2 * BACKLOG / 3, stub), (0, true));
        let (percent, built) = run(true, ecn_nodrop, 3 * BACKLOG / 2, capable);
        assert!(percent >= 95 && built, "{percent} {built}");
        assert_eq!(run(true, ecn_nodrop, 2 * BACKLOG, stub), (0, ecn_nodrop));
    }
    assert_eq!(run(false, false, 2 * BACKLOG / 3, capable), (0, true));
    assert_eq!(run(false, false, 3 * BACKLOG / 2, capable), (0, false));
}

#[test]
fn parameters_that_make_no_sense_are_named() {
    let problem = |config: RedConfig| config.problem().unwrap_or("none");
    let adaptive = |adaptive| RedConfig { adaptive: Some(adaptive), ..RedConfig::default() };
    assert_eq!(problem(RedConfig::default()), "none");
    assert_eq!(problem(RedConfig::adaptive_2001()), "none");
    assert!(problem(with(30_000, 30_000, 1000, 55)).contains("min"));
    assert!(problem(with(10_000, 30_000, 1000, 8)).contains("burst"));
    assert!(problem(RedConfig { avpkt: 0, ..RedConfig::default() }).contains("avpkt"));
    assert!(problem(RedConfig { limit: 3, ..RedConfig::default() }).contains("min"));
    assert!(problem(RedConfig { limit: 1 << 32, ..RedConfig::default() }).contains("limit"));
    let most = |max| RedConfig { max: Some(max), min: Some(1_000), burst: Some(2), ..RedConfig::default() };
    let too_much = |config| problem(config).contains("below 4 GiB");
    assert!(!too_much(most((1 << 32) - 1)) && !too_much(RedConfig { limit: (1 << 32) - 1, ..most(6_000) }));
    assert!(too_much(most(1 << 32)) && too_much(RedConfig { limit: 1 << 32, ..most(6_000) }));
    assert!(problem(RedConfig { probability: f64::NAN, ..RedConfig::default() }).contains("probability"));
    assert!(problem(RedConfig { nodrop: true, ..RedConfig::default() }).contains("ecn"));
    assert!(problem(RedConfig { bandwidth: Rate::from_bps(1).unwrap(), ..RedConfig::default() }).contains("bandwidth"));
    assert!(problem(adaptive(RedAdaptive { interval: Span::ZERO, ..RedAdaptive::default() })).contains("interval"));
    assert!(problem(adaptive(RedAdaptive { beta: 1.5, ..RedAdaptive::default() })).contains("beta"));
    let mark_p = RedFloyd { mark_p: Some(1.5), ..RedFloyd::default() };
    assert!(problem(RedConfig { floyd: Some(mark_p), ..RedConfig::default() }).contains("mark_p"));
    let weight = RedFloyd { weight: RedWeight::Fixed(0.0), ..RedFloyd::default() };
    assert!(problem(RedConfig { floyd: Some(weight), ..RedConfig::default() }).contains("weight"));
}
