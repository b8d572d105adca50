//! What a person may say on the command line.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A TCP and AQM laboratory: runs a scenario file on a virtual clock and prints what happened.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Exit status: 0; 1 when an [[expect]] was missed; 2 for bad input; 3 when a run failed by itself.",
    after_long_help = "Exit status:\n  \
        0  everything ran and every [[expect]] was met\n  \
        1  an [[expect]] was missed; all misses are listed on standard error\n  \
        2  bad input: the scenario, an override, --out or another flag\n  \
        3  a run failed by itself, which is a defect of ackclock\n\n\
        Examples:\n  \
        ackclock --scenario scenarios/teacup/two-newreno.toml\n  \
        ackclock --scenario FILE --set links.bottleneck.delay=40ms --set flows.reno.cc=cubic\n  \
        ackclock --scenario FILE --json | jq .fairness_jain\n  \
        ackclock packetdrill crates/tcp/tests/scripts"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Without a command, a scenario.
    #[command(flatten)]
    pub(crate) scenario: Option<Args>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs packetdrill scripts against the TCP endpoint, in virtual time
    Packetdrill(DrillArgs),
}

#[derive(Debug, clap::Args)]
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
    /// (`queue.csv`, `tcp.csv`, `siftr.log`, `ertt.csv`; for a sweep `runs/0000/queue.csv` and so on) and, last, `manifest.json` with the resolved scenario and
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

/// Runs packetdrill scripts against the TCP endpoint, in virtual time.
///
/// Prints a line for each script, in the order given, and a report below each that does not pass. docs/packetdrill.md
/// describes the language.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 when a script failed or needs something unsupported; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  every script passed\n  \
        1  a script failed, or needs something that is not supported\n  \
        2  bad input: a file that cannot be read, a script that is none, a flag, a key, --junit\n\n\
        Examples:\n  \
        ackclock packetdrill crates/tcp/tests/scripts\n  \
        ackclock packetdrill --profile freebsd-14 --set cc=reno -v FILE\n  \
        ackclock packetdrill --junit results.xml --tap DIR"
)]
pub(crate) struct DrillArgs {
    /// Scripts; of a directory, every *.pkt below it
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) scripts: Vec<PathBuf>,

    /// The stack that scripts run against, also those that name another [default: linux-6.1]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Set a knob of the stack; may be given several times
    ///
    /// It wins over what a script says. docs/packetdrill.md lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Give a word of the scripts a meaning, as packetdrill's -D does; may be given several times
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,

    /// How far from its time something may happen, in microseconds
    #[arg(long = "tolerance_usecs", visible_alias = "tolerance-usecs", value_name = "N")]
    pub(crate) tolerance_usecs: Option<u64>,

    /// Compare packets without their PSH bits
    #[arg(long, visible_alias = "ignore_psh")]
    pub(crate) ignore_psh: bool,

    /// Write the results to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Print the results in the Test Anything Protocol, version 14
    #[arg(long)]
    pub(crate) tap: bool,

    /// How many scripts run at the same time [default: the number of cores]
    ///
    /// The results do not depend on it.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print the whole trace of every script
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Print nothing about scripts that pass
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
