//! The command line of `ackclock merge`.

use std::path::PathBuf;

/// Merges the parts of a sweep.
///
/// The parts are what --shard or --only have written with --out; together they must have every run
/// once. The result is the same, byte by byte, as that of the whole sweep in one process, and so
/// are the tables.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 when an [[expect]] was missed; 2 when the parts do not fit together; 3 when a run failed.",
    after_long_help = "Exit status:\n  \
        0  every [[expect]] was met\n  \
        1  an [[expect]] was missed\n  \
        2  a part is missing, or incomplete, or of another sweep; a run is in two parts; a file was changed\n  \
        3  a run of a part failed\n\n\
        Examples:\n  \
        ackclock FILE --shard $SLURM_ARRAY_TASK_ID/16 --out part-$SLURM_ARRAY_TASK_ID\n  \
        ackclock merge part-* --out whole"
)]
pub(crate) struct MergeArgs {
    /// Directories that --out has written
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,

    /// Write the result to this directory
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,

    /// Replace what --out holds even if it is partial
    #[arg(long)]
    pub(crate) overwrite: bool,

    /// The directory to which files that the scenario names, such as traces, are relative [default:
    /// the current directory]
    #[arg(long, value_name = "DIR")]
    pub(crate) files: Option<PathBuf>,

    /// Print a table of these columns instead of the usual ones, separated by commas
    ///
    /// They are those of `ackclock FILE --columns`.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with = "quiet")]
    pub(crate) columns: Vec<String>,

    /// List every point in the tables, also of more than 200
    #[arg(long, conflicts_with = "quiet")]
    pub(crate) all_rows: bool,

    /// Print no tables
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
