//! RED, BLUE and SFB: their cases, and what their laws promise beyond what all disciplines keep.

use super::*;
use ackclock_aqm::{
    Afd, AfdConfig, Avq, AvqConfig, Blue, BlueConfig, BlueThreshold, BlueUpdates, Choke, ChokeConfig, Red, RedAdaptive,
    RedConfig, RedFloyd, Rem, RemConfig, Sfb, SfbConfig, Wred, WredConfig,
};

/// More than the largest packet of [`queue_steps`].
const LARGEST: u64 = 70_000;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "red",
            make: |random| Box::new(Red::new(RedConfig::default(), random)),
            limit: Limit::Bytes(400_000),
            holds: None,
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early],
        },
        Case {
            name: "red ecn, slow average",
            make: |random| {
                let config = RedConfig {
                    limit: 51_200,
                    min: Some(8_192),
                    max: Some(25_600),
                    burst: Some(500),
                    probability: 0.6,
                    ecn: true,
                    ..RedConfig::default()
                };
                Box::new(Red::new(config, random))
            },
            limit: Limit::Bytes(51_200),
            holds: Some(51),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "red ecn, nodrop, harddrop, adaptive",
            make: |random| {
                let config = RedConfig {
                    ecn: true,
                    nodrop: true,
                    harddrop: true,
                    adaptive: Some(RedAdaptive::default()),
                    ..RedConfig::default()
                };
                Box::new(Red::new(config, random))
            },
            limit: Limit::Bytes(400_000),
            holds: None,
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "red, adaptive 2001",
            make: |random| Box::new(Red::new(RedConfig::adaptive_2001(), random)),
            limit: Limit::Bytes(400_000),
            holds: None,
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early],
        },
        Case {
            name: "red ecn, floyd, neither gentle nor wait nor bytemode",
            make: |random| {
                let floyd = RedFloyd { gentle: false, wait: false, bytemode: false, ..RedFloyd::default() };
                let config = RedConfig { limit: 150_000, ecn: true, floyd: Some(floyd), ..RedConfig::default() };
                Box::new(Red::new(config, random))
            },
            limit: Limit::Bytes(150_000),
            holds: None,
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "wred",
            make: |random| Box::new(Wred::new(WredConfig::default(), random)),
            limit: Limit::Bytes(400_000),
            holds: None,
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early],
        },
        Case {
            name: "wred ecn, average",
            make: |random| {
                let config = WredConfig { limit: 50_000, ewma: 9, ecn: true, ..WredConfig::default() };
                Box::new(Wred::new(config, random))
            },
            limit: Limit::Bytes(50_000),
            holds: Some(50),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early, DropReason::Limit],
        },
        Case {
            name: "wred ecn, on departure",
            make: |random| {
                let config = WredConfig { limit: 60_000, ecn: true, departure: true, ..WredConfig::default() };
                Box::new(Wred::new(config, random))
            },
            limit: Limit::Bytes(60_000),
            holds: Some(60),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "choke",
            make: |random| {
                let config = ChokeConfig { limit: 60, min: Some(10), max: Some(40), ..ChokeConfig::default() };
                Box::new(Choke::new(config, random))
            },
            limit: Limit::Packets(60),
            holds: None,
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early, DropReason::Match],
        },
        Case {
            name: "choke ecn, quick average",
            make: |random| {
                let config = ChokeConfig {
                    min: Some(5),
                    max: Some(8),
                    burst: Some(5),
                    probability: 0.9,
                    ecn: true,
                    ..ChokeConfig::default()
                };
                Box::new(Choke::new(config, random))
            },
            limit: Limit::Packets(1000),
            holds: Some(1000),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early, DropReason::Match],
        },
        Case {
            name: "choke, slow average",
            make: |random| {
                let config = ChokeConfig {
                    limit: 20,
                    min: Some(5),
                    max: Some(15),
                    burst: Some(100),
                    probability: 0.0,
                    ..ChokeConfig::default()
                };
                Box::new(Choke::new(config, random))
            },
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Match],
        },
        Case {
            name: "rem",
            make: |random| Box::new(Rem::new(RemConfig::default(), random)),
            limit: Limit::Packets(50),
            holds: Some(50),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "rem ecn, bytes",
            make: |random| {
                let config = RemConfig { ecn: true, qib: true, inw: 0.5, ..RemConfig::default() };
                Box::new(Rem::new(config, random))
            },
            limit: Limit::Packets(50),
            holds: Some(50),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "afd",
            make: |random| {
                let tupdate = Span::from_millis(1);
                let config = AfdConfig { limit: 20, shadow: 50, sample: 1, tupdate, ..AfdConfig::default() };
                Box::new(Afd::new(config, random))
            },
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early],
        },
        Case {
            name: "afd, fair share never updated",
            make: |random| {
                let config = AfdConfig { limit: 20, tupdate: Span::from_secs(100_000), ..AfdConfig::default() };
                Box::new(Afd::new(config, random))
            },
            limit: Limit::Packets(20),
            holds: Some(20),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "avq",
            make: |_| Box::new(Avq::new(AvqConfig { buffer: Some(50_000), ..AvqConfig::default() })),
            limit: Limit::Bytes(100_000),
            holds: None,
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early],
        },
        Case {
            name: "avq ecn",
            make: |_| {
                let config = AvqConfig { buffer: Some(50_000), ecn: true, ..AvqConfig::default() };
                Box::new(Avq::new(config))
            },
            limit: Limit::Bytes(100_000),
            holds: Some(100),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "blue",
            make: |random| Box::new(Blue::new(BlueConfig::default(), random)),
            limit: Limit::Bytes(51_200 + LARGEST),
            // One that finds 51,000 is let in.
            holds: Some(52),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "blue ecn, separate update times",
            make: |random| {
                let config = BlueConfig {
                    ecn: true,
                    freeze: Span::from_millis(1),
                    inc: 0.05,
                    dec: 0.02,
                    // A third of the packets cannot be marked: not enough of them are dropped to
                    // stay below the limit.
                    max: 0.3,
                    updates: BlueUpdates::Separate,
                    ..BlueConfig::default()
                };
                Box::new(Blue::new(config, random))
            },
            limit: Limit::Bytes(51_200 + LARGEST),
            holds: Some(52),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "blue, packets, no threshold, no freeze",
            make: |random| {
                let config = BlueConfig {
                    limit: Limit::Packets(20),
                    freeze: Span::ZERO,
                    threshold: BlueThreshold::Off,
                    ..BlueConfig::default()
                };
                Box::new(Blue::new(config, random))
            },
            limit: Limit::Packets(21),
            holds: Some(21),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "sfb",
            make: |random| Box::new(Sfb::new(SfbConfig { limit: 70, ..SfbConfig::default() }, random)),
            limit: Limit::Packets(70),
            holds: Some(70),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early, DropReason::Bucket],
        },
        Case {
            name: "sfb, two steps to the penalty box",
            make: |random| {
                let config = SfbConfig {
                    rehash: Span::from_millis(500),
                    db: Span::from_millis(200),
                    target: Some(3),
                    increment: 0.5,
                    ..SfbConfig::default()
                };
                Box::new(Sfb::new(config, random))
            },
            limit: Limit::Packets(1000),
            holds: None,
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early, DropReason::Bucket, DropReason::Penalty],
        },
    ]
}

/// Calls `check` after each step.
fn watch(
    queue: &mut dyn QueueDisc<StubPacket>,
    steps: &[QueueStep],
    mut check: impl FnMut(Time, &dyn QueueDisc<StubPacket>),
) {
    let mut drops = Drops::new();
    let mut now = Time::ZERO;
    for (id, step) in steps.iter().enumerate() {
        now += step.gap;
        match step.action {
            QueueAction::Offer { flow, wire_len, ecn } => {
                queue.enqueue(now, StubPacket { flow, id: id as u32, wire_len, ecn }, &mut drops);
            }
            QueueAction::Send => drop(queue.ask(now, &mut drops)),
        }
        check(now, queue);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(128))]

    /// One step per freeze, of the size that the parameters say: with one update time of either
    /// kind, else one of each.
    #[test]
    fn blue_moves_one_step_per_freeze(steps in queue_steps(600), separate: bool, freeze in 0u64..50_000_000, limit in 0u64..100_000) {
        let config = BlueConfig {
            limit: Limit::Bytes(limit),
            freeze: Span::from_nanos(freeze),
            init: 0.25,
            inc: 0.125,
            dec: 0.0625,
            max: 0.75,
            updates: if separate { BlueUpdates::Separate } else { BlueUpdates::Shared },
            ..BlueConfig::default()
        };
        let mut queue = Blue::new(config, Random::for_component(1, 0, "blue"));
        let mut before = 0.25;
        let mut last = [Time::ZERO; 2];
        watch(&mut queue, &steps, |now, queue| {
            let probability = queue.probe().probability.unwrap();
            if probability != before {
                let rise = probability > before;
                let step = if rise { (before + 0.125f64).min(0.75) } else { (before - 0.0625).max(0.0) };
                assert_eq!(probability, step);
                let since = if separate { last[usize::from(rise)] } else { last[0].max(last[1]) };
                assert!(now.since(since) > Span::from_nanos(freeze), "{now:?} {since:?}");
                last[usize::from(rise)] = now;
                before = probability;
            }
            // One packet beyond the limit at most.
            assert!(queue.backlog().bytes <= limit + LARGEST);
        });
    }

    /// The average stays within what the backlog was, and the probability goes with it.
    #[test]
    fn red_averages_the_backlog(steps in queue_steps(600), floyd: bool, adaptive: bool) {
        let config = RedConfig {
            limit: 100_000,
            adaptive: adaptive.then(RedAdaptive::default),
            floyd: floyd.then(RedFloyd::default),
            ..RedConfig::default()
        };
        let (min, max) = config.thresholds();
        let mut queue = Red::new(config, Random::for_component(1, 0, "red"));
        let mut most = 0;
        watch(&mut queue, &steps, |_, queue| {
            most = most.max(queue.backlog().bytes);
            let probe = queue.probe();
            let (average, probability) = (probe.average.unwrap(), probe.probability.unwrap());
            assert!((0.0..=most as f64).contains(&average), "{average}");
            assert!(average >= min as f64 || probability == 0.0);
            // `top` plus a step; with the probability at max of the authors' law rising to 1
            // beyond.
            assert!(average >= max as f64 || probability <= 0.51);
        });
    }
}
