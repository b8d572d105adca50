//! What every controller promises, whatever happens to it in whatever order. A new algorithm joins by a line in `all`.

use ackclock_cc::{
    Ack, CongestionControl, Cubic, CubicConfig, CubicRules, Flight, HystartConfig, HystartRules, NewReno,
    NewRenoConfig, Sent, Signal, Verdict, Window,
};
use ackclock_units::{Span, Time};
use proptest::prelude::*;

/// One of each: every algorithm, and every configuration that changes its course.
fn all() -> Vec<Box<dyn CongestionControl>> {
    let hystart = |rules| Some(HystartConfig { rules, ..HystartConfig::default() });
    let old_linux = NewRenoConfig {
        abc: false,
        past_ssthresh: true,
        limit_burst: false,
        remember_idle: true,
        beta_ecn: Some(0.8),
        ..Default::default()
    };
    let new_linux = NewRenoConfig { abc_l_var: 0, limit_burst: false, remember_idle: true, ..Default::default() };
    let linux = CubicConfig { beta: 717.0 / 1024.0, c: 410.0 / 1024.0, ..CubicConfig::default() };
    vec![
        Box::new(NewReno::new(NewRenoConfig::default())),
        Box::new(NewReno::new(NewRenoConfig { past_ssthresh: true, halve_flight: true, ..Default::default() })),
        Box::new(NewReno::new(old_linux)),
        Box::new(NewReno::new(new_linux)),
        Box::new(Cubic::new(CubicConfig::default())),
        Box::new(Cubic::new(CubicConfig { hystart: hystart(HystartRules::Linux61), ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig { reno_friendly: false, fast_convergence: false, ..CubicConfig::default() })),
        // A curve that is nowhere a number, and one that is as steep as can be written.
        Box::new(Cubic::new(CubicConfig { c: 0.0, ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig { c: f64::MAX, beta: 1.0, ..CubicConfig::default() })),
        Box::new(Cubic::new(CubicConfig {
            rules: CubicRules::Linux39,
            hystart: hystart(HystartRules::Linux39),
            reno: old_linux,
            ..linux
        })),
        Box::new(Cubic::new(CubicConfig {
            rules: CubicRules::Linux61,
            hystart: hystart(HystartRules::Linux61),
            reno: new_linux,
            ..linux
        })),
    ]
}

#[derive(Clone, Copy, Debug)]
enum Op {
    Ack { acked: u64, rtt: Option<Span>, ece: bool },
    Signal(Signal),
    RecoveryEnd,
    IdleRestart,
    RttSample,
    Round(u64),
    Sent(u32),
}

/// What an operation sees besides the time.
#[derive(Clone, Copy, Debug)]
struct View {
    in_flight: u64,
    cwnd_limited: bool,
    snd_una: u64,
    ahead: u64,
    srtt: Option<Span>,
    after_timeout: bool,
}

fn bytes() -> impl Strategy<Value = u64> {
    prop_oneof![8 => 1..200_000u64, 1 => Just(1u64), 1 => Just(u64::MAX), 1 => any::<u64>()]
}

fn span() -> impl Strategy<Value = Span> {
    let nanos = prop_oneof![8 => 1_000_000..300_000_000u64, 1 => Just(0u64), 1 => Just(u64::MAX), 1 => any::<u64>()];
    nanos.prop_map(Span::from_nanos)
}

fn op() -> impl Strategy<Value = Op> {
    prop_oneof![
        20 => (bytes(), proptest::option::of(span()), any::<bool>()).prop_map(|(acked, rtt, ece)| Op::Ack { acked, rtt, ece }),
        2 => Just(Op::Signal(Signal::Loss)),
        1 => Just(Op::Signal(Signal::Ecn)),
        1 => (any::<bool>(), prop_oneof![3 => Just(0), 1 => bytes()])
            .prop_map(|(repeated, kept)| Op::Signal(Signal::Timeout { repeated, kept })),
        1 => Just(Op::Signal(Signal::Spurious)),
        1 => (bytes(), bytes()).prop_map(|(cwnd, ssthresh)| Op::Signal(Signal::Resume { cwnd, ssthresh })),
        2 => Just(Op::RecoveryEnd),
        1 => Just(Op::IdleRestart),
        1 => Just(Op::RttSample),
        1 => any::<u64>().prop_map(Op::Round),
        2 => any::<u32>().prop_map(Op::Sent),
    ]
}

fn view() -> impl Strategy<Value = View> {
    (bytes(), prop::bool::weighted(0.8), bytes(), bytes(), proptest::option::of(span()), prop::bool::weighted(0.1))
        .prop_map(|(in_flight, cwnd_limited, snd_una, ahead, srtt, after_timeout)| View {
            in_flight,
            cwnd_limited,
            snd_una,
            ahead,
            srtt,
            after_timeout,
        })
}

/// Steps of time: mostly small, sometimes none, sometimes to the end of time.
fn step() -> impl Strategy<Value = Span> {
    let nanos = prop_oneof![8 => 0..50_000_000u64, 2 => Just(0u64), 1 => any::<u64>()];
    nanos.prop_map(Span::from_nanos)
}

fn mss() -> impl Strategy<Value = u32> {
    prop_oneof![4 => Just(1448u32), 1 => Just(1u32), 1 => Just(u32::MAX), 1 => 1..10_000u32]
}

fn initial_segments() -> impl Strategy<Value = u64> {
    prop_oneof![4 => 2..40u64, 1 => Just(1u64 << 33)]
}

/// Every hook in turn, with what holds after each; returns the windows.
fn run(
    cc: &mut dyn CongestionControl,
    mss: u32,
    initial: u64,
    start: Time,
    ops: &[(Span, View, Op)],
) -> Result<Vec<Window>, TestCaseError> {
    let segment = u64::from(mss);
    let mut now = start;
    let flight = |now: Time, view: &View| Flight {
        now,
        mss,
        in_flight: view.in_flight,
        cwnd_limited: view.cwnd_limited,
        snd_una: view.snd_una,
        snd_nxt: view.snd_una.saturating_add(view.ahead),
        srtt: view.srtt,
        latest_rtt: view.srtt,
        min_rtt: view.srtt,
        after_timeout: view.after_timeout,
        initial_window: initial.saturating_mul(segment),
    };
    let quiet = View { in_flight: 0, cwnd_limited: false, snd_una: 0, ahead: 0, srtt: None, after_timeout: false };
    cc.on_established(&flight(now, &quiet));
    let mut windows = vec![cc.window()];
    // The window that a spurious signal has to restore, and whether a timeout has brought the window below two segments.
    let mut restores: Option<Window> = None;
    let mut below_two = false;
    for (step, view, op) in ops {
        now += *step;
        let f = flight(now, view);
        let before = cc.window();
        let mut reduced = false;
        match *op {
            Op::Ack { acked, rtt, ece } => {
                reduced =
                    cc.on_ack(&f, &Ack { acked, delivered: acked, rtt, ece, ..Ack::default() }) == Verdict::Reduced;
            }
            Op::Signal(signal) => cc.on_signal(&f, signal),
            Op::RecoveryEnd => cc.on_recovery_end(&f),
            Op::IdleRestart => cc.on_idle_restart(&f),
            Op::RttSample => cc.on_rtt_sample(&f),
            Op::Round(round) => cc.on_round(&f, round),
            Op::Sent(bytes) => cc.on_sent(&f, &Sent { seq: f.snd_nxt, bytes, again: false }),
        }
        let after = cc.window();
        windows.push(after);

        match *op {
            Op::Ack { .. } => {
                prop_assert!(f.cwnd_limited || after.cwnd <= before.cwnd, "an unused window grew");
                prop_assert!(reduced || after.cwnd >= before.cwnd, "the window fell without a word");
            }
            Op::Signal(signal @ (Signal::Loss | Signal::Ecn)) => {
                prop_assert!(after.cwnd <= before.cwnd, "congestion raised the window");
                restores = (signal == Signal::Loss).then_some(before);
            }
            Op::Signal(Signal::Timeout { repeated, kept }) => {
                prop_assert_eq!(after.cwnd, kept.saturating_add(segment).min(Window::MAX));
                prop_assert!(!repeated || after.ssthresh == before.ssthresh, "a repeated timeout moved the threshold");
                below_two = true;
                if !repeated || restores.is_none() {
                    restores = Some(before);
                }
            }
            Op::Signal(Signal::Spurious) => {
                prop_assert!(after.cwnd >= before.cwnd, "an undo took something away");
                if let Some(was) = restores.take() {
                    prop_assert!(after.cwnd >= was.cwnd, "not all was restored");
                    prop_assert!(after.ssthresh >= was.ssthresh || before.cwnd >= was.cwnd, "not all was restored");
                }
            }
            Op::Signal(Signal::Resume { cwnd, ssthresh }) => {
                prop_assert_eq!(after.cwnd, before.cwnd.min(cwnd.max(2 * segment)));
                prop_assert_eq!(after.ssthresh, before.ssthresh.max(ssthresh));
            }
            Op::RecoveryEnd => {
                prop_assert!(after.cwnd <= before.cwnd.max(after.ssthresh), "recovery ended above its threshold");
            }
            Op::IdleRestart => prop_assert!(after.cwnd <= before.cwnd, "idle time raised the window"),
            Op::RttSample | Op::Round(_) | Op::Sent(_) => {
                prop_assert!(after.cwnd <= before.cwnd, "an observation grew the window");
            }
        }
        below_two &= after.cwnd < 2 * segment;
        prop_assert!(after.cwnd >= if below_two { segment } else { 2 * segment }, "{after:?}");
        prop_assert!(after.ssthresh >= 2 * segment, "{after:?}");
        prop_assert!(after.cwnd <= Window::MAX);
        if let Some(rate) = cc.pacing_rate(&f) {
            prop_assert!(rate.as_bps() > 0);
        }
    }
    Ok(windows)
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn every_controller_keeps_its_promises(
        mss in mss(),
        initial in initial_segments(),
        start in prop_oneof![4 => Just(Time::ZERO), 1 => any::<u64>().prop_map(Time::from_nanos)],
        ops in prop::collection::vec((step(), view(), op()), 1..200),
    ) {
        for (mut first, mut second) in all().into_iter().zip(all()) {
            let name = format!("{first:?}");
            let windows = run(&mut *first, mss, initial, start, &ops).map_err(|e| TestCaseError::fail(format!("{e}: {name}")))?;
            prop_assert_eq!(windows, run(&mut *second, mss, initial, start, &ops)?, "the same operations, other windows");
        }
    }

    #[test]
    fn no_order_of_hooks_panics_even_without_a_connection(
        mss in any::<u32>(),
        ops in prop::collection::vec((any::<u64>(), view(), op()), 1..50),
    ) {
        for mut cc in all() {
            for (now, view, op) in &ops {
                let f = Flight {
                    now: Time::from_nanos(*now),
                    mss,
                    in_flight: view.in_flight,
                    cwnd_limited: view.cwnd_limited,
                    snd_una: view.snd_una,
                    snd_nxt: view.ahead,
                    srtt: view.srtt,
                    latest_rtt: None,
                    min_rtt: view.srtt,
                    after_timeout: view.after_timeout,
                    initial_window: view.ahead,
                };
                match *op {
                    Op::Ack { acked, rtt, ece } => { let _ = cc.on_ack(&f, &Ack { acked, delivered: acked, rtt, ece, ..Ack::default() }); }
                    Op::Signal(signal) => cc.on_signal(&f, signal),
                    Op::RecoveryEnd => cc.on_recovery_end(&f),
                    Op::IdleRestart => cc.on_idle_restart(&f),
                    Op::RttSample => cc.on_established(&f),
                    Op::Round(round) => cc.on_round(&f, round),
                    Op::Sent(bytes) => cc.on_sent(&f, &Sent { seq: f.snd_nxt, bytes, again: false }),
                }
                let _ = (cc.window(), cc.pacing_rate(&f), cc.name());
            }
        }
    }
}
