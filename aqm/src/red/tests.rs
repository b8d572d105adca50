use super::linux::Damping;
use super::*;
use crate::stub::{Ask, Stub, stub};
use ackclock_units::{Ecn, Rate, Span, maths};
use proptest::prelude::*;

mod ns3;

fn random(seed: u64) -> Random {
    Random::for_component(seed, 0, "red")
}

fn red(config: RedConfig) -> Red<Stub> {
    Red::new(config, random(1))
}

/// Linux's law with these parameters.
fn linux(config: &RedConfig) -> Linux {
    match Law::new(config, config.average().unwrap()) {
        Law::Linux(law) => law,
        Law::Floyd(_) => unreachable!("no `floyd`"),
    }
}

/// The law of RED's authors with these parameters and options.
fn floyd_law(config: &RedConfig, floyd: &RedFloyd) -> Floyd {
    let config = RedConfig { floyd: Some(floyd.clone()), ..config.clone() };
    match Law::new(&config, config.average().unwrap()) {
        Law::Floyd(law) => law,
        Law::Linux(_) => unreachable!("with `floyd`"),
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
            Law::Linux(law) => law.scaled_average = 30_000 << law.wlog,
            Law::Floyd(law) => law.average = 30_000.0,
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
    for (average, verdict) in [(7_000, Reaction::Forced), (1_000, Reaction::Pass)] {
        let mut law = linux(&RedConfig { probability: 1.0, ..with(2_000, 6_000, 1000, 2) });
        // Weight 1/2: arrivals that find the average leave it where it is.
        law.scaled_average = 4_000 << 1;
        (law.count, law.gap) = (Some(1_000), 1_000_000);
        law.scaled_average = average << 1;
        assert_eq!(law.arrival(Time::ZERO, average, &mut random(1)), verdict);
        assert_eq!(law.count, None);
        law.scaled_average = 4_000 << 1;
        assert_eq!(law.arrival(Time::ZERO, 4_000, &mut random(1)), Reaction::Pass);
        assert_eq!(law.count, Some(0));
        // The gap is drawn anew, below (max - min) / max_P = 4000: 2000 above `min` reach it within
        // two packets.
        let next = [0; 2].map(|_| law.arrival(Time::ZERO, 4_000, &mut random(2)));
        assert!(next.contains(&Reaction::Early), "{next:?}");
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
            assert_eq!(law.arrival(Time::ZERO, 4_000, 1000, &mut random), Reaction::Pass);
            for (gaps, shortest) in seen.iter_mut().zip([1, 2]) {
                let gap = 1
                    + (0..10)
                        .take_while(|_| law.arrival(Time::ZERO, 4_000, 1000, &mut random) == Reaction::Pass)
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
fn gaps(mut arrival: impl FnMut(&mut Random) -> Reaction, marks: u32) -> Vec<u32> {
    let mut random = random(3);
    let mut counts = vec![0; 1000];
    let (mut gap, mut seen) = (0, 0);
    while seen <= marks {
        gap += 1;
        match arrival(&mut random) {
            Reaction::Pass => {}
            Reaction::Early => {
                // The first does not follow a mark.
                if seen > 0 {
                    counts[gap] += 1;
                }
                (seen, gap) = (seen + 1, 0);
            }
            Reaction::Forced => panic!("the average is below max"),
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
    assert_eq!((verdict(6_000.0, true), verdict(6_000.0, false)), (Reaction::Pass, Reaction::Forced));
    assert_eq!((verdict(11_999.0, true), verdict(12_000.0, true)), (Reaction::Pass, Reaction::Forced));
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

/// What becomes of a packet that can carry a mark and of one that cannot: sch_red.c.
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
            let Law::Linux(law) = &mut queue.law else { unreachable!() };
            // The arrival halves it: an average of 25,000, or of 5000 with the next mark due.
            law.scaled_average = if forced { 100_000 } else { 20_000 };
            law.count = Some(1_000_000);
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

/// Floyd, Gummadi, Shenker 2001, figure 1: the target range of 10,000 to 20,000 is 14,000 to
/// 16,000.
#[test]
fn adaptive_red_moves_the_probability_towards_the_target() {
    let config = RedConfig { min: Some(10_000), max: Some(20_000), ..RedConfig::default() };
    let adaptation = Adaptation::new(RedAdaptive::default(), &config, Time::ZERO);
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
        let Law::Floyd(law) = &mut queue.law else { unreachable!() };
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
    assert_eq!(law.count, Some(0));
    (law.scaled_average, law.count, law.gap) = (4_000 << 1, Some(2), 6_000);
    assert_eq!(law.arrival(Time::ZERO, 4_000, &mut random(1)), Reaction::Early);

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
            Law::Floyd(law) => (law.average, law.above) = (2_100.0, true),
            Law::Linux(law) => (law.scaled_average, law.count, law.gap) = (2_100 << law.wlog, Some(7), u64::MAX),
        }
        queue.enqueue(Time::ZERO, stub(5, 1000), &mut drops);
        assert_eq!(queue.stats().pdrop, 1);
        match queue.law {
            Law::Floyd(law) => (law.count, law.count_bytes),
            Law::Linux(law) => (law.count.unwrap(), 0),
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
            Law::Linux(law) => law.scaled_average = 20_000 << law.wlog,
            Law::Floyd(law) => law.average = 20_000.0,
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
        let Law::Floyd(law) = &mut queue.law else { unreachable!() };
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
    let Law::Floyd(law) = &mut resting.law else { unreachable!() };
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
