//! Hostile hosts: whatever they send, the run goes on to its end.
//!
//! What they send is made of random bytes. `ACKCLOCK_FUZZ_SECONDS` says how long the ignored test
//! goes on, `ACKCLOCK_FUZZ_SEED` where it begins. `fuzz` has the same as a target of cargo-fuzz,
//! which finds its bytes better.

use std::time::{Duration, Instant};
use std::{env, panic};

use ackclock_sim::spec::RunSpec;
use ackclock_units::Random;

mod drive;

/// Up to some hundred packets.
fn bytes(random: &mut Random) -> Vec<u8> {
    let len = random.below(8192) as usize;
    (0..len).map(|_| random.bits() as u8).collect()
}

fn drive(specs: &[RunSpec], seed: u64, number: u64) {
    let bytes = bytes(&mut Random::for_component(seed, number, "hostile"));
    if panic::catch_unwind(|| drive::drive(specs, &bytes)).is_err() {
        panic!("ACKCLOCK_FUZZ_SEED={seed}, run {number}");
    }
}

fn variable(name: &str) -> Option<u64> {
    env::var(name).ok()?.parse().ok()
}

#[test]
fn nothing_that_hosts_send_ends_a_run() {
    let specs = drive::specs();
    (0..200).for_each(|number| drive(&specs, 1, number));
}

#[test]
#[ignore = "goes on for as long as it is told"]
#[expect(clippy::disallowed_methods, clippy::print_stdout, reason = "a limit in real time; how much was tried")]
fn nothing_that_hosts_send_ends_a_run_for_long() {
    let (start, specs) = (Instant::now(), drive::specs());
    let limit = Duration::from_secs(variable("ACKCLOCK_FUZZ_SECONDS").unwrap_or(60));
    let seed = variable("ACKCLOCK_FUZZ_SEED").unwrap_or(2);
    let runs = (0..).take_while(|_| start.elapsed() < limit).inspect(|&number| drive(&specs, seed, number)).count();
    println!("{runs} runs");
}
