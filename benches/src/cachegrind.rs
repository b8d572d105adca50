//! The shipped program under valgrind's cachegrind: instructions and estimated cache misses of a
//! run, which do not depend on how busy the machine is.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};

use serde_json::Value;

use crate::process;

/// Caches as they are simulated: 32 KiB for instructions and for data, and 1 MiB behind them, as
/// many a core has them to itself. Without these, cachegrind takes those of the machine.
const CACHES: [&str; 4] = ["--cache-sim=yes", "--I1=32768,8,64", "--D1=32768,8,64", "--LL=1048576,16,64"];

/// What cachegrind counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Counts {
    /// Instructions, in a third of the time.
    Instructions,
    /// Cache misses as well.
    Misses,
}

/// The cost of a run, or of each of its data packets.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Cost {
    /// Instructions.
    pub instructions: f64,
    /// Fetches of instructions that the first-level cache does not have.
    pub i1: f64,
    /// Accesses to data that the first-level cache does not have.
    pub d1: f64,
    /// Accesses, of both kinds, that no cache has.
    pub ll: f64,
}

impl Cost {
    fn per_packet(self, less: Cost, packets: f64) -> Cost {
        let per = |of: fn(&Cost) -> f64| (of(&self) - of(&less)) / packets;
        Cost { instructions: per(|c| c.instructions), i1: per(|c| c.i1), d1: per(|c| c.d1), ll: per(|c| c.ll) }
    }
}

/// A scenario that is run twice; what the shorter run costs is not counted, so that neither is the
/// set-up.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name in tables.
    pub name: String,
    /// The scenario with the shorter duration, and with the longer one.
    pub scenarios: [String; 2],
}

/// Returns `true` if valgrind is installed.
pub fn is_there() -> bool {
    Command::new("valgrind").arg("--version").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// The profile of the program that packages ship.
pub const SHIPPED: &str = "dist";

/// The program to measure: `ACKCLOCK_BIN`, or the build in a profile, which is made if need be.
///
/// # Errors
/// It cannot be built.
pub fn program(profile: &str) -> io::Result<PathBuf> {
    if let Some(path) = std::env::var_os("ACKCLOCK_BIN") {
        return fs::canonicalize(path);
    }
    let cargo = std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into());
    let arguments = ["build", "--package", "ackclock", "--bin", "ackclock", "--message-format", "json", "--profile"];
    let output = Command::new(cargo).args(arguments).arg(profile).stderr(Stdio::inherit()).output()?;
    let built = String::from_utf8_lossy(&output.stdout)
        .lines()
        .filter_map(|line| serde_json::from_str::<Value>(line).ok())
        .find_map(|message| message["executable"].as_str().map(PathBuf::from));
    built.filter(|_| output.status.success()).ok_or_else(|| io::Error::other("ackclock was not built"))
}

/// Its compiler: counts of different ones are not comparable to a few percent.
///
/// # Errors
/// There is none.
pub fn compiler() -> io::Result<String> {
    let rustc = std::env::var_os("RUSTC").unwrap_or_else(|| "rustc".into());
    let output = Command::new(rustc).arg("--version").output()?;
    let version = String::from_utf8_lossy(&output.stdout);
    Ok(version.split_whitespace().take(2).collect::<Vec<_>>().join(" "))
}

/// One run: its cost and its data packets. The environment is empty, because it lies on the stack
/// and moves what follows there.
fn run(program: &Path, scenario: &str, counts: Counts) -> io::Result<(Cost, f64)> {
    let mut command = Command::new("valgrind");
    command.args(["--tool=cachegrind", "--cachegrind-out-file=/dev/null"]);
    match counts {
        Counts::Instructions => command.arg("--cache-sim=no"),
        Counts::Misses => command.args(CACHES),
    };
    command.arg(program);
    command.env_clear().env("PATH", "/usr/local/bin:/usr/bin:/bin");
    let run = process::run(&mut command, scenario)?;
    let cost = counted(&run.said).ok_or_else(|| io::Error::other(run.said))?;
    Ok((cost, run.packets))
}

/// The counts in cachegrind's report; without its caches there are instructions alone.
fn counted(said: &str) -> Option<Cost> {
    let count = |name| {
        let (_, rest) = said.split_once(name)?;
        rest.split_whitespace().next()?.replace(',', "").parse().ok()
    };
    let misses = |name| count(name).unwrap_or_default();
    Some(Cost {
        instructions: count("I   refs:")?,
        i1: misses("I1  misses:"),
        d1: misses("D1  misses:"),
        ll: misses("LL misses:"),
    })
}

/// Measures the cost of a data packet in each case, with as many runs at once as there are cores;
/// calls `done` with the name of each. The last cases are begun first, so that long ones are best
/// put last.
///
/// # Errors
/// A run fails.
pub fn measure(program: &Path, cases: &[Case], counts: Counts, done: impl Fn(&str) + Sync) -> io::Result<Vec<Cost>> {
    // From the last to the first, the longer run of each before the shorter one.
    let next = AtomicUsize::new(2 * cases.len());
    let work = || {
        let mut results = Vec::new();
        while let Ok(left) = next.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(1)) {
            let job = left - 1;
            let case = &cases[job / 2];
            let result = run(program, &case.scenarios[job % 2], counts);
            done(&case.name);
            results.push((job, result));
        }
        results
    };
    let threads = std::thread::available_parallelism().map_or(1, usize::from);
    let mut results = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
        threads.into_iter().flat_map(|thread| thread.join().expect("no panic")).collect::<Vec<_>>()
    });
    results.sort_by_key(|&(job, _)| job);
    let runs = results.into_iter().map(|(_, result)| result).collect::<io::Result<Vec<_>>>()?;
    Ok(runs.chunks_exact(2).map(|pair| pair[1].0.per_packet(pair[0].0, pair[1].1 - pair[0].1)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_are_read_from_the_report() {
        assert_eq!(counted("==1== Command: ackclock\n"), None);
        let alone = Cost { instructions: 9_000_000.0, ..Cost::default() };
        assert_eq!(counted("==1== \n==1== I   refs:      9,000,000\n"), Some(alone));
        let report = "==1== I   refs:      9,000\n==1== I1  misses:      300\n==1== LLi misses:        7\n\
                      ==1== D   refs:      3,000  (2,000 rd   + 1,000 wr)\n\
                      ==1== D1  misses:        6  (    4 rd   +     2 wr)\n\
                      ==1== LL misses:        24  (   15 rd   +     9 wr)\n";
        assert_eq!(counted(report), Some(Cost { instructions: 9000.0, i1: 300.0, d1: 6.0, ll: 24.0 }));
    }

    #[test]
    fn the_shorter_run_is_not_counted() {
        let short = Cost { instructions: 1000.0, i1: 10.0, d1: 20.0, ll: 30.0 };
        let long = Cost { instructions: 5000.0, i1: 14.0, d1: 28.0, ll: 30.0 };
        assert_eq!(long.per_packet(short, 4.0), Cost { instructions: 1000.0, i1: 1.0, d1: 2.0, ll: 0.0 });
    }
}
