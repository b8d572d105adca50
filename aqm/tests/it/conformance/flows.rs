//! Queues for flows and classes, and shapers: their cases.

use super::*;
use ackclock_aqm::{Ets, EtsConfig, Fq, FqConfig, Sfq, SfqConfig, SfqRed, Tbf, TbfConfig};
use ackclock_units::Rate;

pub(super) fn cases() -> Vec<Case> {
    vec![
        Case {
            name: "sfq",
            make: |random| Box::new(Sfq::new(SfqConfig { limit: 60, ..SfqConfig::default() }, random)),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "sfq ecn, headdrop, perturbed",
            make: |random| {
                let config = SfqConfig {
                    limit: 200,
                    flows: 256,
                    divisor: 256,
                    depth: 20,
                    quantum: 300,
                    perturb: Span::from_millis(7),
                    headdrop: true,
                    flow_red: Some(SfqRed { redflowlimit: 40_000, ecn: true, ..SfqRed::default() }),
                    ..SfqConfig::default()
                };
                Box::new(Sfq::new(config, random))
            },
            limit: Limit::Packets(200),
            // More flows in one bucket than its slot takes would be dropped; 200 spread.
            holds: Some(200),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit, DropReason::Early],
        },
        Case {
            name: "fq",
            make: |random| Box::new(Fq::new(FqConfig { limit: 60, ..FqConfig::default() }, random)),
            limit: Limit::Packets(68),
            // Eight in the fast path, which has no limit.
            holds: Some(68),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "fq, two flows, ce_threshold",
            make: |random| {
                let config = FqConfig {
                    limit: 60,
                    quantum: 300,
                    initial_quantum: 1,
                    orphan_mask: 1,
                    ce_threshold: Some(Span::from_millis(1)),
                    ..FqConfig::default()
                };
                Box::new(Fq::new(config, random))
            },
            limit: Limit::Packets(68),
            holds: Some(68),
            one_queue: false,
            marks: true,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "fq, maxrate",
            make: |random| {
                // A fifth of what each flow of the overload would send.
                let config = FqConfig { limit: 200, maxrate: Rate::from_bps(800_000), ..FqConfig::default() };
                Box::new(Fq::new(config, random))
            },
            limit: Limit::Packets(200),
            holds: Some(200),
            one_queue: false,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "drr",
            make: |_| Box::new(Ets::new(EtsConfig { limit: 60, quantum: 300, ..EtsConfig::default() })),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "ets",
            make: |_| Box::new(Ets::new(EtsConfig { limit: 60, strict: Some(2), ..EtsConfig::ets() })),
            limit: Limit::Packets(60),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
        Case {
            name: "tbf",
            make: |_| {
                let config = TbfConfig {
                    rate: Rate::from_bps(8_000_000).expect("above zero"),
                    burst: 70_000,
                    peakrate: Rate::from_bps(9_000_000),
                    mtu: Some(70_000),
                    limit: Some(60_000),
                    ..TbfConfig::default()
                };
                Box::new(Tbf::new(config))
            },
            limit: Limit::Bytes(60_000),
            holds: Some(60),
            one_queue: true,
            marks: false,
            drops: &[DropReason::Limit],
        },
    ]
}
