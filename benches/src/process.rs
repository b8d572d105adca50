//! Runs of the program in a process of its own.

use std::io::{self, Write};
use std::process::{Command, Stdio};

use serde::Deserialize;

/// The fields of a summary that are read.
#[derive(Deserialize)]
struct SummaryHead {
    packets: f64,
    events: f64,
}

/// A run's own report.
#[derive(Clone, Debug)]
pub struct Run {
    /// Data packets that were sent.
    pub packets: f64,
    /// Wakeups that were handled.
    pub events: f64,
    /// The output on standard error.
    pub said: String,
}

/// Runs a scenario: `program` is the program, or what is to run it, without its arguments.
///
/// # Errors
/// The program cannot be run, or fails.
pub fn run(program: &mut Command, scenario: &str) -> io::Result<Run> {
    let mut child = program
        .args(["--scenario", "/dev/stdin", "--quiet", "--json", "--threads", "1"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()?;
    child.stdin.take().expect("it is piped").write_all(scenario.as_bytes())?;
    let output = child.wait_with_output()?;
    let said = String::from_utf8_lossy(&output.stderr).into_owned();
    let head = output.stdout.split(|&b| b == b'\n').next().and_then(|line| serde_json::from_slice(line).ok());
    match head {
        Some(SummaryHead { packets, events }) if output.status.success() => Ok(Run { packets, events, said }),
        _ => Err(io::Error::other(format!("{program:?}: {}\n{said}", output.status))),
    }
}
