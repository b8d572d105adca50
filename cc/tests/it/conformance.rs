//! The promises of every controller, whatever happens to it in whatever order. An algorithm joins
//! by its row in the table, a configuration that changes its course by a line in `all`.
//!
//! `model.rs` has the promises, `broken.rs` a controller for each of them that breaks it, and is
//! caught.

use ackclock_cc::{
    Balia, CcSpec, Cdg, CdgConfig, Chd, ChdConfig, CongestionControl, Cubic, CubicConfig, CubicRules, Dctcp,
    DctcpConfig, DctcpRules, Hd, HdConfig, Htcp, HtcpConfig, HystartConfig, HystartPlusPlusConfig, HystartRules, Lia,
    LinuxCdg, LinuxCdgConfig, LinuxVegas, LinuxVegasConfig, NewReno, NewRenoConfig, Olia, Prague, PragueConfig,
    Scalable, ScalableConfig, SlowStartRules, Stack, Vegas, VegasConfig, Westwood, WestwoodConfig, Wvegas,
    WvegasConfig,
};
use ackclock_units::{Random, Span};
use proptest::prelude::*;

mod broken;
mod hooks;
mod model;

use model::{Exception, Promise, chaos, keeps_twice, plan, survives};

/// Every algorithm of the table, and every configuration that changes its course.
fn all() -> Vec<Box<dyn CongestionControl>> {
    let hystart = |rules| SlowStartRules::Hystart(HystartConfig { rules, ..HystartConfig::default() });
    let plus_plus = SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig::default());
    // Parameters that no scenario may have.
    let never_enough = SlowStartRules::HystartPlusPlus(HystartPlusPlusConfig {
        min_rtt_thresh: Span::ZERO,
        max_rtt_thresh: Span::ZERO,
        min_rtt_divisor: 0,
        n_rtt_sample: 0,
        css_growth_divisor: 0,
        css_rounds: 0,
        l: u32::MAX,
    });
    let old_linux = NewRenoConfig {
        abc: false,
        past_ssthresh: true,
        limit_burst: false,
        remember_idle: true,
        beta_ecn: Some(0.8),
        ..Default::default()
    };
    let new_linux = NewRenoConfig::linux();
    let freebsd_14 =
        NewRenoConfig { past_ssthresh: true, timeout_flight: true, remember_idle: true, ..Default::default() };
    let random = || Random::for_component(1, 0, "conformance");
    let linux = CubicConfig { beta: 717.0 / 1024.0, c: 410.0 / 1024.0, ..CubicConfig::default() };
    let further: Vec<Box<dyn CongestionControl>> = vec![
        Box::new(NewReno::new(NewRenoConfig { past_ssthresh: true, halve_flight: true, ..Default::default() })),
        Box::new(NewReno::new(old_linux)),
        Box::new(NewReno::new(new_linux)),
        Box::new(NewReno::new(freebsd_14)),
        Box::new(NewReno::new(NewRenoConfig { slow_start: plus_plus, ..Default::default() })),
        Box::new(NewReno::new(NewRenoConfig { slow_start: never_enough, past_ssthresh: true, ..Default::default() })),
        Box::new(NewReno::new(NewRenoConfig { slow_start: hystart(HystartRules::Linux61), ..Default::default() })),
        Box::new(Cubic::new(CubicConfig {
            reno: NewRenoConfig { slow_start: plus_plus, ..NewRenoConfig::default() },
            ..CubicConfig::default()
        })),
        Box::new(Cubic::new(CubicConfig {
            reno: NewRenoConfig { slow_start: hystart(HystartRules::Linux61), ..NewRenoConfig::default() },
            ..CubicConfig::default()
        })),
        Box::new(Cubic::new(CubicConfig { reno: freebsd_14, ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig { reno_friendly: false, fast_convergence: false, ..CubicConfig::default() })),
        // A curve that is nowhere a number, and one that is as steep as can be written.
        Box::new(Cubic::new(CubicConfig { c: 0.0, ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig { c: f64::MAX, beta: 1.0, ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig {
            rules: CubicRules::Linux39,
            reno: NewRenoConfig { slow_start: hystart(HystartRules::Linux39), ..old_linux },
            ..linux
        })),
        Box::new(Cubic::new(CubicConfig {
            rules: CubicRules::Linux61,
            reno: NewRenoConfig { slow_start: hystart(HystartRules::Linux61), ..new_linux },
            ..linux
        })),
        Box::new(Dctcp::new(DctcpConfig {
            slowstart: true,
            alpha_on_init: 0,
            shift_g: u32::MAX,
            rules: DctcpRules::Linux,
            reno: new_linux,
        })),
        Box::new(Dctcp::new(DctcpConfig { rules: DctcpRules::FreeBsd, reno: freebsd_14, ..DctcpConfig::default() })),
        Box::new(Prague::new(PragueConfig { rtt_target: Span::ZERO, rtt_transition: 0, alpha_on_init: true })),
        Box::new(Cdg::new(
            CdgConfig { alpha_inc: 3, smoothing_factor: 0, exp_backoff_scale: 1, ..CdgConfig::default() },
            random(),
        )),
        // Parameters that no scenario may have, and the finest of clocks.
        Box::new(Cdg::new(
            CdgConfig {
                alpha_inc: u32::MAX,
                beta_delay: u32::MAX,
                beta_loss: 0,
                exp_backoff_scale: u32::MAX,
                smoothing_factor: 1,
                loss_compete_consec_cong: u32::MAX,
                loss_compete_hold_backoff: u32::MAX,
                rtt_unit: Span::ZERO,
                timeout_flight: true,
                remember_idle: true,
                slow_start: plus_plus,
            },
            random(),
        )),
        Box::new(Hd::new(
            HdConfig { queue_threshold: 7, queue_min: u32::MAX, pmax: u32::MAX, ..HdConfig::default() },
            random(),
        )),
        Box::new(Hd::new(HdConfig { queue_min: 0, pmax: 100, reno: old_linux, ..HdConfig::default() }, random())),
        Box::new(Chd::new(ChdConfig { reno: freebsd_14, ..ChdConfig::default() }, random())),
        Box::new(Chd::new(
            ChdConfig { queue_threshold: 0, pmax: u32::MAX, use_max: false, ..ChdConfig::default() },
            random(),
        )),
        Box::new(Chd::new(
            ChdConfig { queue_min: 0, pmax: 100, loss_fair: false, reno: old_linux, ..ChdConfig::default() },
            random(),
        )),
        Box::new(Vegas::new(VegasConfig { alpha: u32::MAX, rtt_unit: Span::ZERO, ..VegasConfig::default() })),
        Box::new(Vegas::new(VegasConfig { alpha: 0, beta: 0, reno: old_linux, ..VegasConfig::default() })),
        Box::new(LinuxVegas::new(LinuxVegasConfig { alpha: u32::MAX, beta: u32::MAX, ..Default::default() })),
        Box::new(LinuxVegas::new(LinuxVegasConfig { alpha: 0, beta: 0, gamma: 0, reno: old_linux })),
        Box::new(LinuxCdg::new(LinuxCdgConfig::default(), random())),
        Box::new(LinuxCdg::new(
            LinuxCdgConfig { window: 1, use_tolerance: true, use_shadow: false, use_ineff: 0, ..Default::default() },
            random(),
        )),
        Box::new(Htcp::new(HtcpConfig { adaptive_backoff: true, rtt_scaling: true, reno: old_linux })),
        Box::new(Westwood::new(WestwoodConfig { rtt_min: Span::ZERO, ..WestwoodConfig::default() })),
        Box::new(Scalable::new(ScalableConfig { ai_cnt: 1, md_scale: 0, reno: freebsd_14 })),
        Box::new(Scalable::new(ScalableConfig { ai_cnt: 50, md_scale: u32::MAX, reno: old_linux })),
        Box::new(Lia::new(old_linux)),
        Box::new(Olia::new(old_linux)),
        Box::new(Balia::new(old_linux)),
        Box::new(Balia::new(freebsd_14)),
        Box::new(Wvegas::new(WvegasConfig { initial_alpha: 0, total_alpha: 0, gamma: 0, reno: old_linux })),
        Box::new(Wvegas::new(WvegasConfig {
            initial_alpha: u32::MAX,
            total_alpha: u32::MAX,
            gamma: u32::MAX,
            reno: freebsd_14,
        })),
    ];
    let host = Stack::default();
    let table = CcSpec::NAMES.iter().flat_map(|name| CcSpec::variants(name, &host)).map(|spec| spec.build(random()));
    table.chain(further).collect()
}

/// The promises that an algorithm does not make, with reasons. All others promise everything.
const EXCEPTIONS: [Exception; 13] = [
    // draft-ietf-ccwg-bbr, "Congestion Window": it follows the model of the path.
    (
        "bbr",
        Promise::UnusedDoesNotGrow,
        "the model sets it with every ACK; samples that the application limits do not raise it",
    ),
    ("bbr", Promise::VerdictTells, "the window comes down to what the model says, and for ProbeRTT"),
    ("bbr", Promise::RecoveryDoesNotGrow, "the model rules in recovery, too"),
    ("bbr", Promise::OneReduction, "bounds learnt from loss come down with every round trip that has losses"),
    ("bbr", Promise::EndsAtThreshold, "the window of before returns, within the model"),
    ("bbr", Promise::UndoRestores, "in ProbeRTT the window stays small; what was returns at its end"),
    // There is no slow start threshold: it says no more than whether Startup is over.
    ("bbr", Promise::UndoRestoresThreshold, "Startup may be over for another reason"),
    ("bbr", Promise::TakeOverKeepsThreshold, "it begins with Startup"),
    // draft-briscoe-iccrg-prague-congestion-control section 2.4.
    ("prague", Promise::RecoveryDoesNotGrow, "what is not marked goes on growing the window while marks reduce it"),
    // tcp_prague.c, `prague_update_cwnd`: the step at `adjust` is taken whether the window is full
    // or not.
    ("prague", Promise::UnusedDoesNotGrow, "the window follows by a segment for each ACK what has grown before"),
    ("prague", Promise::OneReduction, "the window follows one reduction by a segment for each ACK"),
    (
        "linux vegas",
        Promise::UnusedDoesNotGrow,
        "tcp_vegas_cong_avoid calls tcp_slow_start, and adds its segment, without tcp_is_cwnd_limited",
    ),
    ("westwood", Promise::OneReduction, "the end of recovery sets window and threshold to the estimate of that time"),
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(384))]

    #[test]
    fn every_controller_keeps_its_promises(plan in plan()) {
        for (first, second) in all().into_iter().zip(all()) {
            keeps_twice(first, second, &all, &EXCEPTIONS, &plan)?;
        }
    }

    #[test]
    fn no_order_of_hooks_panics_even_without_a_connection((mss, initial_window, ops) in chaos()) {
        for mut cc in all() {
            survives(&mut *cc, mss, initial_window, &ops);
        }
    }
}
