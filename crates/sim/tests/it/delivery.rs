//! Whatever the network does to packets and however the two ends are set up, every byte of a
//! transfer arrives once, in order and unchanged, everything is acknowledged, and the connection
//! closes.

use std::ops::ControlFlow;

use ackclock_aqm::{CodelConfig, FifoConfig, Limit};
use ackclock_cc::{
    BbrConfig, CdgConfig, ChdConfig, CubicConfig, DctcpConfig, HdConfig, HtcpConfig, LinuxCdgConfig, LinuxVegasConfig,
    NewRenoConfig, PragueConfig, VegasConfig, WestwoodConfig, WvegasConfig,
};
use ackclock_emulator::{HoldBack, Impairments, Loss, Reorder};
use ackclock_sim::spec::{
    Application, CcChange, CcSpec, DirectionSpec, EndpointSpec, FlowGroup, FlowSpec, HostSpec, LinkSpec, Overhead,
    QueueSpec, RunSpec, SmoltcpCc, SmoltcpSpec,
};
use ackclock_tcp::{
    AccEcnOption, AccEcnRule, AccEcnRules, AdaptiveRules, BerkeleyRules, Config, CwndValidation, DelayedAck,
    DetectorRules, EcnFeedback, InitialWindow, LossDetector, NcrVariant, Pacing, PacingWhen, Prr, QuickAcks, RrRules,
    StateRules, Ticks, TransferRules,
};
use ackclock_trace::Summary;
use ackclock_units::{Rate, Span, Time};
use proptest::prelude::*;

fn run(spec: &RunSpec) -> Summary<()> {
    ackclock_sim::run(spec, &mut |_| ControlFlow::Continue(())).expect("the data is intact")
}

fn transfer(bytes: u64, sender: HostSpec, receiver: HostSpec, ways: [DirectionSpec; 2]) -> RunSpec {
    let [forward, reverse] = ways;
    RunSpec {
        title: String::new(),
        sums: Vec::new(),
        windows: Vec::new(),
        reordering: None,
        live: None,
        duration: Span::from_secs(100_000_000),
        seed: 1,
        run: 0,
        ties: ackclock_sim::spec::Ties::Fixed,
        links: vec![LinkSpec { name: "link".into(), forward, reverse, medium: None, is_interface: false }],
        flows: vec![FlowSpec {
            id: "flow.0".into(),
            group: FlowGroup {
                metrics: None,
                hosts: None,
                path: vec![0],
                split: None,
                mptcp: None,
                reverse: false,
                sender,
                receiver,
                bytes: Some(bytes),
                application: Application::Bulk,
                write_size: FlowSpec::WRITE_SIZE,
                dscp: 0,
                abort: None,
                schedule: Vec::new(),
            }
            .into(),
            start: Time::ZERO,
            stop: None,
            ends: None,
            via: None,
        }],
    }
}

fn assert_delivered(spec: &RunSpec) -> Result<(), TestCaseError> {
    let summary = run(spec);
    let flow = &summary.flows[0];
    let bytes = spec.flows[0].bytes.unwrap();
    prop_assert_eq!(flow.progress.delivered_bytes, bytes, "delivered");
    prop_assert_eq!(flow.progress.acked_bytes, bytes, "acknowledged");
    prop_assert!(flow.completed_s.is_some(), "closed");
    Ok(())
}

fn any_impairments() -> impl Strategy<Value = Impairments> {
    let loss = prop_oneof![
        2 => Just(Loss::None),
        2 => (0.0..0.2).prop_map(Loss::Iid),
        2 => prop::collection::btree_set(1u64..200, 0..60).prop_map(|numbers| Loss::List(numbers.into_iter().collect())),
    ];
    let hold = (0.0..0.3, 0u32..20, 0u64..60_000).prop_map(|(probability, extent, timeout)| {
        Reorder::HoldBack(HoldBack { probability, extent, timeout: Span::from_micros(timeout) })
    });
    let reorder = prop_oneof![Just(Reorder::Never), Just(Reorder::ByJitter), hold];
    let rate = || prop_oneof![Just(0.0), 0.0..0.3];
    (loss, rate(), rate(), prop_oneof![Just(0u64), 0u64..60_000], reorder).prop_map(
        |(loss, duplicate, corrupt, jitter, reorder)| Impairments {
            loss,
            duplicate,
            corrupt,
            jitter: Span::from_micros(jitter),
            reorder,
            ..Impairments::default()
        },
    )
}

fn any_direction() -> impl Strategy<Value = DirectionSpec> {
    let queue = prop_oneof![
        (1u64..50).prop_map(|limit| QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(limit) })),
        Just(QueueSpec::Codel(CodelConfig { ecn: true, ..CodelConfig::default() })),
    ];
    (prop::option::of(100_000u64..1_000_000_000), 0u64..100, queue, any_impairments()).prop_map(
        |(rate, delay, queue, impairments)| DirectionSpec {
            course: Default::default(),
            rate: rate.and_then(Rate::from_bps),
            delay: Span::from_millis(delay),
            burst: None,
            device: None,
            overhead: Overhead::default(),
            queue,
            impairments,
        },
    )
}

fn any_buffer() -> impl Strategy<Value = u64> {
    prop_oneof![1u64..3000, 3000u64..100_000, Just(1 << 22)]
}

fn any_detector() -> impl Strategy<Value = LossDetector> {
    let linux =
        (3u32..300, any::<[bool; 3]>()).prop_map(|(max_reordering, [fack, early_retransmit, high_reordering])| {
            LossDetector::Linux(AdaptiveRules {
                max_reordering,
                fack,
                early_retransmit,
                high_reordering,
                order: match fack || early_retransmit {
                    true => DetectorRules::LINUX_4_0,
                    false => AdaptiveRules::rack_off().order,
                },
            })
        });
    let ncr = prop_oneof![Just(NcrVariant::Careful), Just(NcrVariant::Aggressive)].prop_map(LossDetector::Ncr);
    let rr_tcp = Just(LossDetector::RrTcp(RrRules::default()));
    let berkeley =
        |bugfix| [LossDetector::Tahoe(BerkeleyRules { bugfix }), LossDetector::Reno(BerkeleyRules { bugfix })];
    let berkeley = any::<(bool, bool)>().prop_map(move |(bugfix, reno)| berkeley(bugfix)[usize::from(reno)]);
    let plain = move || {
        prop_oneof![
            Just(LossDetector::Rfc6675),
            Just(LossDetector::FreeBsd9),
            berkeley.clone(),
            Just(LossDetector::Rack),
        ]
    };
    prop_oneof![3 => plain(), 1 => linux, 1 => ncr, 1 => rr_tcp]
}

fn any_config() -> impl Strategy<Value = Config> {
    let options = any::<[bool; 8]>();
    let delayed_ack = (1u32..4, 0u64..200, 0u32..20, 0u8..20, 0u64..10_000).prop_map(
        |(segments, timeout, quick, hurry, growth_from)| DelayedAck {
            segments,
            timeout: Span::from_millis(timeout),
            quick,
            hurry: QuickAcks {
                gap: hurry,
                mark: hurry,
                not_ect: hurry,
                idle: hurry,
                after_ect: false,
                cwr: hurry % 2 == 1,
                push: hurry % 3 == 1,
            },
            growth_from,
        },
    );
    let window = prop_oneof![Just(InitialWindow::Rfc3390), (1u32..20).prop_map(InitialWindow::Segments)];
    let prr =
        prop_oneof![Just(Prr::Off), Just(Prr::Rfc6937), Just(Prr::Ssrb), Just(Prr::Rfc9937), Just(Prr::RateHalving)];
    let transfer = prop_oneof![
        2 => Just(TransferRules::default()),
        1 => Just(TransferRules::linux(6 << 20)),
        1 => Just(TransferRules::freebsd(2 << 20)),
    ];
    let acc_ecn = (any::<bool>(), prop::sample::select(&AccEcnOption::ALL[..])).prop_map(|(linux, option)| {
        let rule = if linux { AccEcnRule::Linux } else { AccEcnRule::Rfc9768 };
        AccEcnRules { rule, option, ..AccEcnRules::default() }
    });
    let ticks = (any::<bool>(), 0u64..30).prop_map(|(wheel, millis)| {
        let ticks = if wheel { Ticks::WHEEL } else { Ticks::default() };
        ticks.of_length(Span::from_millis(millis)).unwrap()
    });
    let transfer =
        (transfer, acc_ecn, ticks).prop_map(|(transfer, acc_ecn, ticks)| TransferRules { acc_ecn, ticks, ..transfer });
    let loss = (any_detector(), any::<[bool; 3]>(), transfer);
    ((options, loss), delayed_ack, window, prr, any_buffer(), any_buffer(), 50u16..9000).prop_map(
        |((options, loss), delayed_ack, initial_window, prr, send_buffer, receive_buffer, mss)| {
            let (loss_detector, [undo, frto, tlp], transfer) = loss;
            let [sack, dsack, timestamps, window_scaling, ecn, limited_transmit, nagle, slow_start_after_idle] =
                options;
            let ecn = match (ecn, undo) {
                (false, false) => EcnFeedback::None,
                (true, false) => EcnFeedback::Classic,
                (false, true) => EcnFeedback::Dctcp,
                (true, true) => EcnFeedback::Accurate,
            };
            Config {
                mss,
                initial_window,
                sack,
                dsack,
                timestamps,
                window_scaling,
                ecn,
                send_buffer,
                receive_buffer,
                delayed_ack,
                limited_transmit,
                prr,
                loss_detector,
                undo,
                frto,
                tlp,
                nagle,
                slow_start_after_idle,
                transfer,
                // Half of all packets may be lost one way and a third the other way. Of one
                // round trip for each byte, thousands of them, some fail as often in a row as
                // hosts try.
                max_retries: 200,
                states: StateRules { syn_retries: 200, synack_retries: 200, ..StateRules::default() },
                ..Config::default()
            }
        },
    )
}

fn any_endpoint() -> impl Strategy<Value = HostSpec> {
    let pacing = prop_oneof![2 => Just(PacingWhen::Auto), 1 => Just(PacingWhen::On)];
    let validation = prop_oneof![
        2 => Just(CwndValidation::Growth),
        1 => Just(CwndValidation::Rfc2861),
        1 => Just(CwndValidation::Rfc7661)
    ];
    (any_config(), any_cc(), pacing, validation).prop_map(|(config, cc, when, cwnd_validation)| {
        let config = Config { pacing: Pacing { when, ..config.pacing }, cwnd_validation, ..config };
        HostSpec::Endpoint(EndpointSpec { profile: "any".into(), config, cc })
    })
}

fn any_cc() -> impl Strategy<Value = CcSpec> {
    prop_oneof![
        Just(CcSpec::NewReno(NewRenoConfig::default())),
        Just(CcSpec::Cubic(CubicConfig::default())),
        Just(CcSpec::Cdg(CdgConfig::default())),
        Just(CcSpec::LinuxCdg(LinuxCdgConfig::default())),
        Just(CcSpec::Hd(HdConfig::default())),
        Just(CcSpec::Chd(ChdConfig::default())),
        Just(CcSpec::Vegas(VegasConfig::default())),
        Just(CcSpec::LinuxVegas(LinuxVegasConfig::default())),
        Just(CcSpec::Htcp(HtcpConfig::default())),
        Just(CcSpec::Westwood(WestwoodConfig::default())),
        Just(CcSpec::Dctcp(DctcpConfig::default())),
        Just(CcSpec::Prague(PragueConfig::default())),
        Just(CcSpec::Bbr(BbrConfig::default())),
        Just(CcSpec::Lia(NewRenoConfig::default())),
        Just(CcSpec::Olia(NewRenoConfig::default())),
        Just(CcSpec::Balia(NewRenoConfig::default())),
        Just(CcSpec::Wvegas(WvegasConfig::default())),
    ]
}

/// Controllers that take over, some milliseconds after each other.
fn any_schedule() -> impl Strategy<Value = Vec<CcChange>> {
    prop::collection::vec((1u64..500, any_cc()), 0..6).prop_map(|changes| {
        let mut at = Time::ZERO;
        let mut change = |(after, cc)| {
            at += Span::from_millis(after);
            CcChange { at, cc }
        };
        changes.into_iter().map(&mut change).collect()
    })
}

fn any_smoltcp() -> impl Strategy<Value = HostSpec> {
    let cc = prop_oneof![Just(SmoltcpCc::None), Just(SmoltcpCc::Reno), Just(SmoltcpCc::Cubic)];
    (cc, 576u16..9000, any_buffer(), any_buffer(), prop::option::of(0u64..50), any::<bool>(), any::<bool>()).prop_map(
        |(cc, mtu, send_buffer, receive_buffer, ack_delay, nagle, timestamps)| {
            HostSpec::Smoltcp(SmoltcpSpec {
                cc,
                mtu,
                send_buffer,
                receive_buffer,
                ack_delay: ack_delay.map(Span::from_millis),
                nagle,
                timestamps,
            })
        },
    )
}

/// Both directions lose a little, always the same packets.
fn lossy_ways() -> [DirectionSpec; 2] {
    let way = |lost: &[u64]| DirectionSpec {
        course: Default::default(),
        rate: Rate::from_bps(10_000_000),
        delay: Span::from_millis(10),
        burst: None,
        device: None,
        overhead: Overhead::default(),
        queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(40) }),
        impairments: Impairments { loss: Loss::List(lost.to_vec()), ..Impairments::default() },
    };
    [way(&[4, 9, 10, 11, 30, 31, 60]), way(&[5, 20, 21, 40])]
}

/// Each of SACK, timestamps and window scaling on or off, by the three lowest bits.
fn with_options(bits: u8, loss_detector: LossDetector) -> HostSpec {
    let config = Config {
        sack: bits & 1 != 0,
        timestamps: bits & 2 != 0,
        window_scaling: bits & 4 != 0,
        loss_detector,
        undo: true,
        ..Config::default()
    };
    let cc = CcSpec::NewReno(NewRenoConfig::default());
    HostSpec::Endpoint(EndpointSpec { profile: "any".into(), config, cc })
}

#[test]
fn every_combination_of_options_at_either_side() {
    for detector in [LossDetector::Rfc6675, LossDetector::Linux(AdaptiveRules::default()), LossDetector::Rack] {
        for bits in 0..64u8 {
            let (sender, receiver) = (with_options(bits & 7, detector), with_options(bits >> 3, detector));
            let spec = transfer(200_000, sender, receiver, lossy_ways());
            assert_delivered(&spec).unwrap_or_else(|error| panic!("{detector:?}, {bits:06b}: {error}"));
        }
        for bits in 0..16u8 {
            // A stock smoltcp socket has SACK and window scaling always, timestamps by choice.
            let stock = || {
                HostSpec::Smoltcp(SmoltcpSpec {
                    cc: SmoltcpCc::Reno,
                    mtu: 1500,
                    send_buffer: 100_000,
                    receive_buffer: 100_000,
                    ack_delay: None,
                    nagle: true,
                    timestamps: bits & 8 != 0,
                })
            };
            let ours = || with_options(bits & 7, detector);
            for (sender, receiver) in [(ours(), stock()), (stock(), ours())] {
                let spec = transfer(200_000, sender, receiver, lossy_ways());
                assert_delivered(&spec).unwrap_or_else(|error| panic!("{detector:?}, smoltcp, {bits:04b}: {error}"));
            }
        }
    }
}

/// Transfers are kept short where windows are tiny: each window costs a round trip or a probe.
fn any_bytes() -> impl Strategy<Value = u64> {
    prop_oneof![0u64..10, 0u64..20_000, 0u64..300_000]
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(512))]

    #[test]
    fn ours_to_ours(bytes in any_bytes(), sender in any_endpoint(), receiver in any_endpoint(), ways in [any_direction(), any_direction()], schedule in any_schedule()) {
        let mut spec = transfer(bytes, sender, receiver, ways);
        spec.flows[0].schedule = schedule;
        assert_delivered(&spec)?;
    }

    #[test]
    fn ours_to_smoltcp(bytes in any_bytes(), sender in any_endpoint(), receiver in any_smoltcp(), ways in [any_direction(), any_direction()]) {
        assert_delivered(&transfer(bytes, sender, receiver, ways))?;
    }

    #[test]
    fn smoltcp_to_ours(bytes in any_bytes(), sender in any_smoltcp(), receiver in any_endpoint(), ways in [any_direction(), any_direction()]) {
        assert_delivered(&transfer(bytes, sender, receiver, ways))?;
    }
}
