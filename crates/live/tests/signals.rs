//! Signals that end runs, in a process of the test's own, with an event loop and without.

#![cfg(unix)]

use std::thread;
use std::time::Duration;

#[test]
fn a_signal_is_seen_and_ends_nothing() {
    ackclock_live::listen().expect("signals");
    assert!(!ackclock_live::interrupted());
    ackclock_live::interrupt();
    let seen = (0..1000).any(|_| {
        thread::sleep(Duration::from_millis(1));
        ackclock_live::interrupted()
    });
    assert!(seen);
}
