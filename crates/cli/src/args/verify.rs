//! The command line of `ackclock verify`.

use std::num::NonZeroU16;
use std::path::PathBuf;

/// Repeats the runs of output directories and compares every file.
///
/// The resolved scenario is taken from the manifest. Prints a line for each directory that is
/// reproduced; a file that differs is reported on standard error with its first difference. The
/// files of the repetition take as much space as those of DIR, in the directory for temporary files
/// (TMPDIR).
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 when a file differs; 2 when a directory cannot be verified; 130 after Ctrl-C.",
    after_long_help = "Exit status:\n  \
        0    the runs gave the same bytes\n  \
        1    a file differs, is missing, or was not written again\n  \
        2    there is no manifest, it is of a live run or of one that was broken off, or it cannot be run here\n  \
        3    a run failed\n  \
        130  Ctrl-C (SIGINT) or SIGTERM\n\n\
        Examples:\n  \
        ackclock verify out\n  \
        ackclock verify --threads 1 out/*/"
)]
pub(crate) struct VerifyArgs {
    /// Directories that --out has written
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,

    /// The directory to which files that the scenario names, such as traces, are relative [default:
    /// the current directory]
    ///
    /// That of the scenario file. A manifest does not have it.
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,

    /// Number of runs of a sweep in parallel [default: the number of cores]
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print only errors, notes and differences
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
