//! The expectations of ns-3's `src/traffic-control/test/red-queue-disc-test-suite.cc` and
//! `adaptive-red-queue-disc-test-suite.cc` (byte mode): 300 packets of 500 bytes for a queue of
//! that many, a link of 1.5 Mbit/s. "Unforced" drops are those by chance. Feng's Adaptive RED and
//! nonlinear RED (tests 12, 13) are not here; nor are the weights that ns-3 derives from the link's
//! delay. Where ns-3 compares single runs, sums over 20 seeds are compared.

use super::*;

const PACKET: u32 = 500;

/// ns-3's defaults: gentle, wait; `LInterm` is 1 / probability.
fn config(min: u64, max: u64, weight: f64, linterm: f64) -> RedConfig {
    RedConfig {
        limit: 300 * u64::from(PACKET),
        min: Some(min * u64::from(PACKET)),
        max: Some(max * u64::from(PACKET)),
        avpkt: PACKET,
        probability: 1.0 / linterm,
        bandwidth: Rate::from_bps(1_500_000).unwrap(),
        // The UseHardDrop of ns-3.
        harddrop: true,
        // ns-3 has no `mark_p_`.
        floyd: Some(RedFloyd { weight: RedWeight::Fixed(weight), mark_p: None, ..RedFloyd::default() }),
        ..RedConfig::default()
    }
}

fn floyd(config: RedConfig, change: impl FnOnce(&mut RedFloyd)) -> RedConfig {
    let mut floyd = config.floyd.clone().unwrap();
    change(&mut floyd);
    RedConfig { floyd: Some(floyd), ..config }
}

fn with_bandwidth(config: RedConfig, bps: u64) -> RedConfig {
    RedConfig { bandwidth: Rate::from_bps(bps).unwrap(), ..config }
}

/// `Enqueue` and `EnqueueWithDelay`: 300 packets, each `gap` after the one before. Nothing leaves.
fn enqueue(config: &RedConfig, seed: u64, gap: Span, packet: fn(u32, u32) -> Stub) -> RedStats {
    let mut queue = Red::new(config.clone(), random(seed));
    let mut drops = Drops::new();
    let mut now = Time::ZERO;
    for id in 0..300 {
        now += gap;
        queue.enqueue(now, packet(id, PACKET), &mut drops);
    }
    queue.stats()
}

fn all_drops(config: &RedConfig) -> u64 {
    (0..20).map(|seed| enqueue(config, seed, Span::ZERO, stub)).map(|stats| stats.early + stats.pdrop).sum()
}

fn unforced(config: &RedConfig, gap: Span) -> u64 {
    (0..20).map(|seed| enqueue(config, seed, gap, stub).prob_drop).sum()
}

#[test]
fn red_suite_1_a_short_queue_passes_in_order() {
    let mut queue = red(RedConfig { limit: 8 * u64::from(PACKET), ..config(2, 5, 0.002, 50.0) });
    let mut drops = Drops::new();
    for id in 0..8 {
        assert_eq!(queue.backlog().packets, u64::from(id));
        queue.enqueue(Time::ZERO, stub(id, PACKET), &mut drops);
    }
    for id in 0..8 {
        assert_eq!(queue.ask(Time::ZERO, &mut drops).map(|entry| entry.packet.id), Some(id));
    }
    assert_eq!((queue.ask(Time::ZERO, &mut drops), drops.len()), (None, 0));
}

#[test]
fn red_suite_2_to_7_what_gives_more_drops() {
    assert_eq!(all_drops(&config(70, 150, 0.002, 50.0)), 0);
    let third = config(70, 150, 0.02, 50.0);
    let drops = all_drops(&third);
    assert_ne!(drops, 0);
    for (name, more) in [
        ("4: lower maxTh", config(70, 100, 0.02, 50.0)),
        ("5: higher probability", config(70, 150, 0.02, 5.0)),
        ("6: not gentle", floyd(third.clone(), |floyd| floyd.gentle = false)),
        ("7: no wait", floyd(third.clone(), |floyd| floyd.wait = false)),
    ] {
        assert!(all_drops(&more) > drops, "{name}");
    }
}

#[test]
fn red_suite_8_to_10_marks_need_both_sides() {
    let eighth = config(30, 90, 0.002, 2.0);
    for (ecn, packet) in [(true, stub as fn(u32, u32) -> Stub), (false, capable)] {
        let stats = enqueue(&RedConfig { ecn, ..eighth.clone() }, 1, Span::ZERO, packet);
        assert!(stats.prob_drop > 0 && stats.prob_mark == 0, "{stats:?}");
    }
    let stats = enqueue(&RedConfig { ecn: true, ..eighth }, 1, Span::ZERO, capable);
    assert!(stats.prob_drop == 0 && stats.prob_mark > 0, "{stats:?}");
}

#[test]
fn adaptive_suite_1_to_6_the_automatic_weight() {
    let automatic = floyd(config(70, 150, 0.002, 50.0), |floyd| floyd.weight = RedWeight::Automatic);
    assert_eq!(unforced(&automatic, Span::ZERO), 0);
    assert_ne!(unforced(&with_bandwidth(automatic, 15_000), Span::ZERO), 0);
    // QW = -2: 1 - exp(-10/C) for 375 and 3.75 packets per second.
    let fifth = unforced(&config(70, 150, 1.0 - maths::exp(-10.0 / 375.0), 50.0), Span::ZERO);
    let sixth = unforced(&config(70, 150, 1.0 - maths::exp(-10.0 / 3.75), 50.0), Span::ZERO);
    assert!(fifth != 0 && sixth != fifth, "{fifth} {sixth}");
}

#[test]
fn adaptive_suite_7_and_8_the_automatic_thresholds() {
    let automatic = floyd(config(0, 0, 0.002, 50.0), |floyd| floyd.target_delay = Some(Span::from_millis(5)));
    let automatic = RedConfig { min: None, max: None, ..automatic };
    assert_eq!(automatic.thresholds(), (2_500, 7_500));
    assert_ne!(unforced(&automatic, Span::ZERO), 0);
    assert_eq!(unforced(&with_bandwidth(automatic, 150_000_000), Span::ZERO), 0);
}

#[test]
fn adaptive_suite_9_and_10_adaptive_red_drops_less() {
    let gap = Span::from_millis(10);
    let ninth = unforced(&config(5, 15, 0.002, 2.0), gap);
    let automatic = floyd(RedConfig::adaptive_2001(), |floyd| floyd.mark_p = None);
    let adaptive = RedConfig {
        limit: 300 * u64::from(PACKET),
        avpkt: PACKET,
        probability: 0.5,
        bandwidth: Rate::from_bps(1_500_000).unwrap(),
        harddrop: true,
        ..automatic
    };
    let tenth = unforced(&adaptive, gap);
    assert!(ninth != 0 && tenth < ninth, "{ninth} {tenth}");
}
