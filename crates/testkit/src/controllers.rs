//! The promises of congestion controllers, for those from outside.

use ackclock_cc::CongestionControl;
use proptest::test_runner::{Config, TestRunner};

// It stands where it is needed first; its helpers are for the tests there.
#[allow(dead_code)]
#[path = "../../../cc/tests/it/conformance/model.rs"]
mod model;

/// Holds a controller, made anew for each course of events, against the model that every controller
/// of ackclock is held against.
///
/// # Panics
/// It breaks a promise; the message has the shortest course of events that was found for it.
pub fn keeps_every_promise(make: impl Fn() -> Box<dyn CongestionControl>) {
    let mut runner = TestRunner::new(Config { failure_persistence: None, ..Config::with_cases(384) });
    let others = || vec![make()];
    let kept = runner.run(&model::plan(), |plan| model::keeps_twice(make(), make(), &others, &[], &plan));
    kept.unwrap_or_else(|error| panic!("{error}"));
    let survived = runner.run(&model::chaos(), |(mss, initial_window, ops)| {
        model::survives(&mut *make(), mss, initial_window, &ops);
        Ok(())
    });
    survived.unwrap_or_else(|error| panic!("{error}"));
}
