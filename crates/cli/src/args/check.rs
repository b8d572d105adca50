//! The command line of `ackclock check`.

use std::path::PathBuf;

use ackclock_run::selection::{Only, Shard};

/// Checks scenarios and runs nothing.
///
/// Every point of a sweep is checked, as before a run. Errors and notes are printed on standard
/// error; a scenario without them prints nothing.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if a scenario cannot be read or is invalid.",
    after_long_help = "Exit status:\n  \
        0  every scenario is valid\n  \
        2  a scenario cannot be read or is invalid, or a flag is wrong\n\n\
        Examples:\n  \
        ackclock check scenarios/*/*.toml\n  \
        ackclock check -v FILE\n  \
        ackclock check - < FILE"
)]
pub(crate) struct CheckArgs {
    /// Scenarios; `-` is standard input
    ///
    /// Errors call standard input `<stdin>`. Files that a scenario names are relative to it, and
    /// from standard input to the current directory.
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// Set a key of every scenario, as for a run; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Estimate the needs of these runs of each sweep alone, as for a run
    #[arg(long, value_name = "RUNS", conflicts_with = "shard", requires = "verbose")]
    pub(crate) only: Option<Only>,

    /// The same for share I of N
    #[arg(long, value_name = "I/N", requires = "verbose")]
    pub(crate) shard: Option<Shard>,

    /// Print a line for each valid scenario: its size and what its runs need
    ///
    /// The numbers of points and runs; the flows and links of a run; the packets that all runs
    /// send at most, if anything limits them; the memory of the largest run,
    /// if its queues and windows fill; the time that all runs take together, roughly; and the
    /// bytes of their results with `--out`. Numbers that differ between the points of a sweep are
    /// those of the largest.
    #[arg(short, long)]
    pub(crate) verbose: bool,
}
