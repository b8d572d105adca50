//! What a person may say on the command line.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::Parser;

/// A TCP and AQM laboratory: runs a scenario file on a virtual clock and prints what happened.
#[derive(Debug, Parser)]
#[command(
    version,
    after_help = "Exit status: 0; 1 when an [[expect]] was missed; 2 for bad input; 3 when a run failed by itself.",
    after_long_help = "Exit status:\n  \
        0  everything ran and every [[expect]] was met\n  \
        1  an [[expect]] was missed; all misses are listed on standard error\n  \
        2  bad input: the scenario, an override, --out or another flag\n  \
        3  a run failed by itself, which is a defect of ackclock\n\n\
        Examples:\n  \
        ackclock --scenario scenarios/teacup/two-newreno.toml\n  \
        ackclock --scenario FILE --set links.bottleneck.delay=40ms --set flows.reno.cc=cubic\n  \
        ackclock --scenario FILE --json | jq .fairness_jain"
)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,

    /// Set a key of the scenario; may be given several times
    ///
    /// KEY is a dotted path; a flow is addressed by its id or its index: `flows.reno.cc`, `flows.0.cc`. VALUE is TOML, or
    /// else a string, so that `delay=40ms` needs no quotes. Setting the path of a sweep's axis leaves this one value of it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// The root seed, in place of the file's `run.seed`
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// Print summaries as JSON, one object on a line for each run, instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the results to this directory
    ///
    /// `summary.json` (for a sweep `summary.jsonl`, one line for each run), what the scenario's `[record]` asks for
    /// (`queue.csv`; for a sweep `runs/0000/queue.csv` and so on) and, last, `manifest.json` with the resolved scenario and
    /// the hash of every file. The directory is made if need be; it must be empty or hold an earlier output of
    /// ackclock, which stays until the new one is complete and then is replaced.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the scenario with overrides applied and defaults filled in, and run nothing
    #[arg(long)]
    pub(crate) show_config: bool,

    /// How many runs of a sweep go on at the same time [default: the number of cores]
    ///
    /// The results do not depend on it.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print no tables and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
