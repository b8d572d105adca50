//! fq_pie, COBALT and DualPI2: their cases, and what their laws promise beyond what all disciplines
//! keep.

use super::*;
use ackclock_aqm::{
    Cobalt, CobaltConfig, CurvyRed, CurvyRedConfig, DualPi2, DualPi2Config, FqPie, FqPieConfig, Pi2, Pi2Config, Probe,
    StepThreshold,
};

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "pi2",
            make: |random| Box::new(Pi2::new(Pi2Config { limit: 60, ecn: false, ..Pi2Config::default() }, random)),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Early, DropReason::Limit],
        },
        Case {
            name: "pi2 ecn, small steps",
            make: |random| {
                let config = Pi2Config {
                    limit: 60,
                    alpha: 0.01,
                    beta: 0.1,
                    any_ect: true,
                    bytemode: true,
                    ..Pi2Config::default()
                };
                Box::new(Pi2::new(config, random))
            },
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early, DropReason::Limit],
        },
        Case {
            name: "fq_pie",
            make: |random| Box::new(FqPie::new(FqPieConfig { limit: 30, ..FqPieConfig::default() }, random)),
            limit: Limit::Packets(30),
            holds: Some(30),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "fq_pie ecn, memory",
            make: |random| {
                let config = FqPieConfig {
                    flows: 3,
                    quantum: 300,
                    memory_limit: 50_000,
                    ecn: true,
                    ecn_prob: 30,
                    bytemode: true,
                    ..FqPieConfig::default()
                };
                Box::new(FqPie::new(config, random))
            },
            limit: Limit::Bytes(50_000),
            // 31 * 1576 = 48,856.
            holds: Some(31),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Memory, DropReason::Early],
        },
        Case {
            name: "fq_pie ecn, one flow, departure rate",
            make: |random| Box::new(FqPie::new(one_flow(), random)),
            limit: Limit::Packets(10_240),
            holds: Some(10_240),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "cobalt",
            make: |random| Box::new(Cobalt::new(CobaltConfig { limit: 60, ..CobaltConfig::default() }, random)),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Delay, DropReason::Early],
        },
        Case {
            name: "cobalt, no ecn, memory, eager BLUE",
            make: |random| Box::new(Cobalt::new(eager_cobalt(), random)),
            limit: Limit::Bytes(100_000),
            holds: Some(63),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Memory, DropReason::Delay, DropReason::Early],
        },
        Case {
            name: "cobalt, no interval",
            make: |random| {
                let config = CobaltConfig { target: Span::ZERO, interval: Span::ZERO, ..CobaltConfig::default() };
                Box::new(Cobalt::new(config, random))
            },
            limit: Limit::Packets(10_240),
            // 15,503,360 / 1576 = 9837.2
            holds: Some(9837),
            one_queue: true,
            marks: true,
            drops: &[DropReason::Delay],
        },
        Case {
            name: "dualpi2",
            make: |random| Box::new(DualPi2::new(DualPi2Config::default(), random)),
            limit: Limit::Packets(10_000),
            holds: Some(10_000),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Early],
        },
        Case {
            name: "dualpi2 any_ect, on arrival, overflow",
            make: |random| {
                let config = DualPi2Config {
                    limit: 40,
                    coupling_factor: 3,
                    step_thresh: StepThreshold::Packets(5),
                    min_qlen_step: 2,
                    drop_on_overload: false,
                    drop_enqueue: true,
                    any_ect: true,
                    ..DualPi2Config::default()
                };
                Box::new(DualPi2::new(config, random))
            },
            limit: Limit::Packets(40),
            holds: Some(40),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "dualpi2, memory, slow",
            make: |random| {
                let config = DualPi2Config {
                    memlimit: 50_000,
                    alpha: 0.001,
                    beta: 0.01,
                    classic_protection: 100,
                    ..DualPi2Config::default()
                };
                Box::new(DualPi2::new(config, random))
            },
            limit: Limit::Bytes(50_000),
            holds: Some(31),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Memory, DropReason::Early],
        },
        Case {
            name: "curvy_red",
            make: |random| {
                let config = CurvyRedConfig { limit: 60_000, min_th: Span::ZERO, ..CurvyRedConfig::default() };
                Box::new(CurvyRed::new(config, random))
            },
            limit: Limit::Bytes(60_000),
            // 58,000 and a packet of 1514 fit.
            holds: Some(59),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "curvy_red in turns, a ramp, integers",
            make: |random| {
                let config = CurvyRedConfig {
                    limit: 1_000_000,
                    tshift: None,
                    classic_weight: 0.25,
                    g_c: 1,
                    s_c: -3.0,
                    min_th: Span::from_millis(1),
                    u: 2,
                    range: Span::from_millis(2),
                    fall_at_once: true,
                    overload: false,
                    integer: true,
                    ..CurvyRedConfig::default()
                };
                Box::new(CurvyRed::new(config, random))
            },
            limit: Limit::Bytes(1_000_000),
            holds: Some(999),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Early],
        },
    ]
}

fn one_flow() -> FqPieConfig {
    FqPieConfig { flows: 1, ecn: true, dq_rate_estimator: Some(DqRateEstimator::Linux), ..FqPieConfig::default() }
}

fn eager_cobalt() -> CobaltConfig {
    CobaltConfig {
        memlimit: 100_000,
        target: Span::from_millis(1),
        p_inc: 1 << 28,
        p_dec: 1 << 26,
        ecn: false,
        blue_threshold: Some(Span::from_millis(50)),
        ..CobaltConfig::default()
    }
}

/// Runs `steps` and shows the probe after each.
fn watch(queue: &mut dyn QueueDisc<StubPacket>, steps: &[QueueStep], mut see: impl FnMut(Time, Probe)) {
    let mut drops = Drops::new();
    let mut now = Time::from_millis(5);
    for (id, step) in steps.iter().enumerate() {
        now += step.gap;
        match step.action {
            QueueAction::Offer { flow, wire_len, ecn } => {
                queue.enqueue(now, StubPacket { flow, id: id as u32, wire_len, ecn }, &mut drops);
            }
            QueueAction::Send => drop(queue.ask(now, &mut drops)),
        }
        see(now, queue.probe());
    }
}

/// Between two updates the probability stands still: in each `tupdate` it is seen to change once at
/// most.
fn changes_once_per_update(queue: &mut dyn QueueDisc<StubPacket>, tupdate: Span, steps: &[QueueStep]) {
    let (mut last, mut period, mut changes) = (0.0, 0, 0);
    watch(queue, steps, |now, probe| {
        let current = now.as_nanos() / tupdate.as_nanos();
        if current != period {
            (period, changes) = (current, 0);
        }
        let probability = probe.probability.expect("a law with a probability");
        if probability != last {
            (last, changes) = (probability, changes + 1);
        }
        assert!(changes <= 1, "{changes} changes in update {period}");
    });
}

/// BLUE moves by one step at a time, and steps are more than `target` apart.
fn blue_moves_slowly(config: CobaltConfig, steps: &[QueueStep]) {
    let unit = |step: u32| f64::from(step) / 4_294_967_296.0;
    let mut queue = Cobalt::new(config.clone(), Random::for_component(1, 0, "cobalt"));
    let (mut last, mut moved) = (0.0, Time::ZERO);
    watch(&mut queue, steps, |now, probe| {
        let probability = probe.probability.expect("BLUE's probability");
        if probability != last {
            assert!(now.since(moved) > config.target, "{:?} after the last step", now.since(moved));
            assert!(probability - last <= unit(config.p_inc) && last - probability <= unit(config.p_dec));
            (last, moved) = (probability, now);
        }
    });
}

fn with_codepoint(step: &QueueStep, ecn: Ecn) -> QueueStep {
    let action = match step.action {
        QueueAction::Offer { flow, wire_len, .. } => QueueAction::Offer { flow, wire_len, ecn },
        QueueAction::Send => QueueAction::Send,
    };
    QueueStep { action, ..*step }
}

fn check_laws(steps: &[QueueStep]) {
    let random = || Random::for_component(1, 0, "law");
    let pie = PieConfig { limit: 60, ecn: true, ..PieConfig::default() };
    changes_once_per_update(&mut Pie::new(pie.clone(), random()), pie.tupdate, steps);
    let teacup = PieConfig::teacup();
    changes_once_per_update(&mut Pie::new(teacup.clone(), random()), teacup.tupdate, steps);
    let fq_pie = one_flow();
    changes_once_per_update(&mut FqPie::new(fq_pie.clone(), random()), fq_pie.tupdate, steps);
    let dualpi2 = DualPi2Config::default();
    // Its probability is that of the last packet's queue, so that one queue is looked at.
    for ecn in [Ecn::NotEct, Ecn::Ect1] {
        let steps: Vec<QueueStep> = steps.iter().map(|step| with_codepoint(step, ecn)).collect();
        changes_once_per_update(&mut DualPi2::new(dualpi2.clone(), random()), dualpi2.tupdate, &steps);
    }
    blue_moves_slowly(eager_cobalt(), steps);
    blue_moves_slowly(CobaltConfig { limit: 5, ..CobaltConfig::default() }, steps);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn probabilities_move_as_their_laws_allow(steps in queue_steps(600)) {
        check_laws(&steps);
    }
}

#[test]
fn probabilities_move_as_their_laws_allow_under_overload() {
    check_laws(&overload());
}
