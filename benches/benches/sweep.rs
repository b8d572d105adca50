//! Runs per second of a sweep of short runs, and its speed-up with one thread for each core.
//!
//! Sweeps with one thread and with several take turns, and the best of each are compared.
//! `ACKCLOCK_BIN` names another build. Nothing is asserted, and `cargo test` runs nothing.

use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, ExitCode, Stdio};
use std::time::Instant;

use ackclock_benches::cachegrind;
use ackclock_benches::topology::{Bulk, NEWRENO, Queue};
use nix::sys::resource::UsageWho;
use timing::processor_time;

#[allow(dead_code, reason = "packets uses all of it")]
mod timing;

/// Sweeps of each kind.
const ROUNDS: usize = 7;

/// Seconds of a sweep: on the wall, and of processors.
#[expect(clippy::disallowed_methods, reason = "this is about the machine's time")]
fn sweep(program: &Path, scenario: &str, threads: usize) -> io::Result<(f64, f64)> {
    let before = processor_time(UsageWho::RUSAGE_CHILDREN)?;
    let begun = Instant::now();
    let mut child = Command::new(program)
        .args(["--scenario", "/dev/stdin", "--quiet", "--json", "--threads", &threads.to_string()])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .spawn()?;
    child.stdin.take().expect("it is piped").write_all(scenario.as_bytes())?;
    let status = child.wait()?;
    if !status.success() {
        return Err(io::Error::other(format!("{}: {status}", program.display())));
    }
    Ok((begun.elapsed().as_secs_f64(), processor_time(UsageWho::RUSAGE_CHILDREN)? - before))
}

fn measure() -> io::Result<()> {
    let program = cachegrind::program(cachegrind::SHIPPED)?;
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let bulk = Bulk::shared(2, NEWRENO, 10, Queue::Named("pie"));
    for (duration, runs) in [("1s", 2000), ("60s", 100)] {
        let scenario = format!("{}\n[sweep]\nrepeat = {runs}\n", bulk.scenario(duration));
        let mut best = [(f64::INFINITY, f64::INFINITY); 2];
        for _ in 0..ROUNDS {
            for (best, threads) in best.iter_mut().zip([1, cores]) {
                let (wall, processor) = sweep(&program, &scenario, threads)?;
                *best = (wall.min(best.0), processor.min(best.1));
            }
        }
        let [one, all] = best;
        let (speed_up, extra) = (one.0 / all.0, (all.1 / one.1 - 1.0) * 100.0);
        let (single, several) = (f64::from(runs) / one.0, f64::from(runs) / all.0);
        let _ = writeln!(
            io::stdout(),
            "{runs} runs of {duration}, 2 flows, PIE: {single:.0} runs/s on 1 thread, {several:.0} on {cores}: speed-up \
             {speed_up:.2}, processor time {extra:+.1} %"
        );
    }
    Ok(())
}

fn main() -> ExitCode {
    if !std::env::args().any(|argument| argument == "--bench") {
        return ExitCode::SUCCESS;
    }
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            let _ = writeln!(io::stdout(), "{error}");
            ExitCode::FAILURE
        }
    }
}
