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

/// The processor time of two runs of different length, in seconds.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pair {
    short: f64,
    long: f64,
    /// Data packets of the longer run that the shorter one does not have.
    packets: f64,
}

impl Pair {
    /// Runs both.
    pub(crate) fn run(program: &Path, [short, long]: &[String; 2]) -> io::Result<Pair> {
        let (less, short) = timed(program, short)?;
        let (run, long) = timed(program, long)?;
        Ok(Pair { short, long, packets: run.packets - less.packets })
    }

    /// Time of a data packet, in nanoseconds.
    pub(crate) fn packet(&self) -> f64 {
        (self.long - self.short) / self.packets * 1e9
    }

    /// The least of each length. The least difference would be that of a disturbed shorter run.
    pub(crate) fn least(pairs: &[Pair]) -> Option<Pair> {
        let least = |a: &Pair, b: &Pair| Pair { short: a.short.min(b.short), long: a.long.min(b.long), ..*a };
        pairs.iter().copied().reduce(|a, b| least(&a, &b))
    }
}
