//! Processor time and memory of runs.

use std::io;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

use ackclock_benches::process::{self, Run};
use nix::sys::resource::{UsageWho, getrusage};

/// User and system time in seconds.
pub(crate) fn processor_time(who: UsageWho) -> io::Result<f64> {
    let usage = getrusage(who)?;
    let of = |time: nix::sys::time::TimeVal| {
        Duration::new(time.tv_sec().cast_unsigned(), u32::try_from(time.tv_usec()).unwrap_or(0) * 1000)
    };
    Ok((of(usage.user_time()) + of(usage.system_time())).as_secs_f64())
}

/// A run and its processor time in seconds.
pub(crate) fn timed(program: &Path, scenario: &str) -> io::Result<(Run, f64)> {
    let before = processor_time(UsageWho::RUSAGE_CHILDREN)?;
    let run = process::run(&mut Command::new(program), scenario)?;
    Ok((run, processor_time(UsageWho::RUSAGE_CHILDREN)? - before))
}

/// Processor time in seconds of a data packet in the longer run that are not in the shorter one.
pub(crate) fn per_packet(program: &Path, [short, long]: &[String; 2]) -> io::Result<f64> {
    let (less, less_time) = timed(program, short)?;
    let (run, time) = timed(program, long)?;
    Ok((time - less_time) / (run.packets - less.packets))
}
