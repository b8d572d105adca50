//! For each promise a controller that breaks it: the model has to notice.

use std::sync::atomic::{AtomicU64, Ordering};

use ackclock_cc::{
    Ack, Arrival, CongestionControl, Flight, Needs, NewReno, NewRenoConfig, Sent, Signal, Verdict, Window,
};
use ackclock_units::Rate;
use proptest::test_runner::{Config, RngAlgorithm, TestError, TestRng, TestRunner};

use crate::conformance::model::{EVERY, Promise, chaos, keeps_twice, plan, survives};

/// The fault of a controller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fault {
    TwoSegmentsAfterTimeout,
    OneSegmentAfterLoss,
    NoBound,
    GrowsUnused,
    GrowsInRecovery,
    GrowsWithRounds,
    FallsSilently,
    MarksRaise,
    HalvesAgain,
    LowersThresholdAtTheEnd,
    BacksOffTwice,
    NoUndo,
    NoUndoOfThreshold,
    UndoHalves,
    EveryTimeoutHalves,
    NoResume,
    BurstAfterRecovery,
    IdleRaises,
    NeedsChange,
    PacesInRecoveryOnly,
    HalvesOnTakeOver,
    ForgetsThresholdOnTakeOver,
    GrowsByChance,
    Overflows,
}

/// NewReno with a fault.
#[derive(Debug)]
struct Broken {
    reno: NewReno,
    fault: Fault,
    mss: u64,
    /// Hooks so far.
    hooks: u64,
    reducing: bool,
    backed_off: bool,
}

impl Broken {
    fn boxed(fault: Fault) -> Box<dyn CongestionControl> {
        let reno = NewReno::new(NewRenoConfig::default());
        Box::new(Broken { reno, fault, mss: 1, hooks: 0, reducing: false, backed_off: false })
    }

    fn change(&mut self, change: impl FnOnce(&mut Window, u64)) {
        let mut window = self.reno.window();
        change(&mut window, self.mss);
        self.reno.take_over(window);
    }

    fn raise(&mut self) {
        self.change(|window, mss| window.cwnd = window.cwnd.saturating_add(mss).min(Window::MAX));
    }

    fn halve(&mut self) {
        self.change(|window, mss| window.cwnd = window.cwnd.min((window.cwnd / 2).max(2 * mss)));
    }

    fn has(&mut self, fault: Fault) -> bool {
        self.hooks += 1;
        self.fault == fault
    }
}

impl CongestionControl for Broken {
    fn name(&self) -> &'static str {
        "broken"
    }

    fn window(&self) -> Window {
        self.reno.window()
    }

    fn needs(&self) -> Needs {
        Needs { arrivals: self.fault == Fault::NeedsChange && !self.hooks.is_multiple_of(2), ..Needs::default() }
    }

    fn pacing_rate(&self, _f: &Flight) -> Option<Rate> {
        Rate::from_bps(1).filter(|_| self.fault == Fault::PacesInRecoveryOnly && self.reducing)
    }

    fn on_established(&mut self, f: &Flight) {
        self.mss = f.segment();
        self.reno.on_established(f);
    }

    fn take_over(&mut self, window: Window) {
        self.reno.take_over(window);
        match self.fault {
            Fault::HalvesOnTakeOver => self.halve(),
            Fault::ForgetsThresholdOnTakeOver => self.change(|window, _| window.ssthresh = Window::INFINITE),
            _ => {}
        }
    }

    fn on_ack(&mut self, f: &Flight, ack: &Ack) -> Verdict {
        if self.has(Fault::GrowsUnused) && !f.cwnd_limited {
            self.raise();
        }
        let verdict = self.reno.on_ack(f, ack);
        match self.fault {
            Fault::NoBound => {
                self.change(|window, _| window.cwnd = window.cwnd.saturating_mul(u64::from(f.cwnd_limited) + 1));
            }
            Fault::FallsSilently if self.hooks.is_multiple_of(8) => self.halve(),
            Fault::BacksOffTwice if self.backed_off || self.hooks.is_multiple_of(8) => {
                self.backed_off = true;
                self.halve();
                return Verdict::Reduced;
            }
            Fault::GrowsByChance if f.cwnd_limited => {
                static CHANCE: AtomicU64 = AtomicU64::new(0);
                if CHANCE.fetch_add(1, Ordering::Relaxed).is_multiple_of(7) {
                    self.raise();
                }
            }
            Fault::Overflows => {
                let _ = f.snd_una.checked_add(ack.acked).expect("no stream is that long");
            }
            _ => {}
        }
        verdict
    }

    fn on_signal(&mut self, f: &Flight, signal: Signal) {
        self.hooks += 1;
        let before = self.window();
        let signal = match (self.fault, signal) {
            (Fault::NoUndo, Signal::Spurious) | (Fault::NoResume, Signal::Resume { .. }) => return,
            (Fault::EveryTimeoutHalves, Signal::Timeout { kept, .. }) => Signal::Timeout { repeated: false, kept },
            _ => signal,
        };
        self.reno.on_signal(f, signal);
        let was_reducing = self.reducing;
        if !matches!(signal, Signal::CountedAcks(_) | Signal::IdleRestart) {
            self.reducing = matches!(signal, Signal::Loss | Signal::Ecn);
            self.backed_off = false;
        }
        match (self.fault, signal) {
            (Fault::LowersThresholdAtTheEnd, Signal::RecoveryEnd) if was_reducing => {
                self.change(|window, mss| window.ssthresh = (window.ssthresh / 2).max(2 * mss));
            }
            (Fault::BurstAfterRecovery, Signal::RecoveryEnd) => self.change(|window, mss| {
                let beyond = window.cwnd.max(window.ssthresh).saturating_add(mss);
                window.cwnd = beyond.min(Window::MAX);
            }),
            (Fault::IdleRaises, Signal::IdleRestart) => {
                self.raise();
                self.raise();
            }
            (Fault::TwoSegmentsAfterTimeout, Signal::Timeout { .. }) => self.raise(),
            (Fault::OneSegmentAfterLoss, Signal::Loss) => self.change(|window, mss| window.cwnd = mss),
            (Fault::MarksRaise, Signal::Ecn) => {
                self.change(|window, mss| window.cwnd = before.cwnd.saturating_add(mss).min(Window::MAX));
            }
            (Fault::NoUndoOfThreshold, Signal::Spurious) => {
                self.change(|window, mss| window.ssthresh = before.ssthresh.min(2 * mss));
            }
            (Fault::UndoHalves, Signal::Spurious) if self.window() == before => self.halve(),
            _ => {}
        }
    }

    fn on_arrival(&mut self, _f: &Flight, arrival: &Arrival) {
        match self.fault {
            _ if arrival.round.is_none() => {}
            Fault::GrowsWithRounds if !self.reducing => self.raise(),
            Fault::HalvesAgain if self.reducing => self.halve(),
            _ => {}
        }
        self.hooks += 1;
    }

    fn on_sent(&mut self, _f: &Flight, _sent: &Sent) {
        if self.has(Fault::GrowsInRecovery) && self.reducing {
            self.raise();
        }
    }
}

/// A runner that does the same each time, and does not look for the shortest failure.
fn runner() -> TestRunner {
    let config = Config { cases: 2000, failure_persistence: None, max_shrink_iters: 0, ..Config::default() };
    TestRunner::new_with_rng(config, TestRng::deterministic_rng(RngAlgorithm::ChaCha))
}

/// The model's verdict on a controller with this fault.
fn caught(fault: Fault) -> Option<String> {
    let others = || vec![Broken::boxed(fault)];
    match runner().run(&plan(), |plan| keeps_twice(Broken::boxed(fault), Broken::boxed(fault), &others, &[], &plan)) {
        Err(TestError::Fail(why, _)) => Some(why.message().to_owned()),
        _ => None,
    }
}

#[test]
fn each_promise_has_a_controller_that_breaks_it_and_is_caught() {
    let faults = [
        (Fault::TwoSegmentsAfterTimeout, Promise::LossWindow),
        (Fault::OneSegmentAfterLoss, Promise::TwoSegments),
        (Fault::NoBound, Promise::Bounded),
        (Fault::GrowsUnused, Promise::UnusedDoesNotGrow),
        (Fault::GrowsInRecovery, Promise::RecoveryDoesNotGrow),
        (Fault::GrowsWithRounds, Promise::ObservationsDoNotGrow),
        (Fault::FallsSilently, Promise::VerdictTells),
        (Fault::MarksRaise, Promise::SignalDoesNotRaise),
        (Fault::HalvesAgain, Promise::OneReduction),
        (Fault::LowersThresholdAtTheEnd, Promise::OneReduction),
        (Fault::BacksOffTwice, Promise::OneReduction),
        (Fault::NoUndo, Promise::UndoRestores),
        (Fault::NoUndoOfThreshold, Promise::UndoRestoresThreshold),
        (Fault::UndoHalves, Promise::UndoTakesNothing),
        (Fault::EveryTimeoutHalves, Promise::RepeatKeepsThreshold),
        (Fault::NoResume, Promise::ResumeAsTold),
        (Fault::BurstAfterRecovery, Promise::EndsAtThreshold),
        (Fault::IdleRaises, Promise::IdleDoesNotRaise),
        (Fault::NeedsChange, Promise::NeedsAreConstant),
        (Fault::PacesInRecoveryOnly, Promise::PacingIsConstant),
        (Fault::HalvesOnTakeOver, Promise::TakeOverKeepsWindow),
        (Fault::ForgetsThresholdOnTakeOver, Promise::TakeOverKeepsThreshold),
        (Fault::GrowsByChance, Promise::Deterministic),
    ];
    for (fault, promise) in faults {
        let message = caught(fault).unwrap_or_else(|| panic!("{fault:?} goes unnoticed"));
        assert!(message.starts_with(&format!("{promise:?},")), "{fault:?}: {message}");
    }
    for promise in EVERY {
        assert!(faults.iter().any(|(_, broken)| *broken == promise), "nobody breaks {promise:?}");
    }
}

#[test]
fn a_controller_that_panics_is_caught() {
    let chaos = runner().run(&chaos(), |(mss, initial_window, ops)| {
        survives(&mut *Broken::boxed(Fault::Overflows), mss, initial_window, &ops);
        Ok(())
    });
    assert!(matches!(chaos, Err(TestError::Fail(why, _)) if why.message().contains("no stream is that long")));
}
