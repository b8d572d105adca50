//! The command line of `ackclock report`.

use std::path::PathBuf;

/// Draws the figures of results: a page, or files.
///
/// The page is one HTML file that needs nothing else, neither a network nor a server. Of a sweep it
/// has box plots, lines, CDFs, throughput against delay and heat maps of any metric by any axes, a
/// table with confidence intervals, and expectations with their bounds; of runs with records
/// (`[record] series`, `queue`, `tcp`) time series, every decision of a queue, and sequence
/// numbers. Several directories are compared: which one it is, is another axis.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if a directory cannot be read, or a file cannot be written.",
    after_long_help = "Exit status:\n  \
        0  the page, or the files, are there\n  \
        2  a directory is no output of ackclock, or a file cannot be read or written\n\n\
        Examples:\n  \
        ackclock report out\n  \
        ackclock report --run 7 --run 8 out -o two-runs.html\n  \
        ackclock report pie fq_codel --svg figures"
)]
pub(crate) struct ReportArgs {
    /// Directories that --out has written
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,

    /// Where the page goes; an earlier file is replaced
    #[arg(short, long, value_name = "FILE", default_value = "report.html")]
    pub(crate) output: PathBuf,

    /// Write the figures that the page shows first to this folder, as SVG, instead of the page
    #[arg(long, value_name = "FOLDER", conflicts_with = "output")]
    pub(crate) svg: Option<PathBuf>,

    /// Show the records of this run of a sweep, counted from 0; may be given several times
    /// [default: the first repetition of each point, as far as there is room]
    #[arg(long = "run", value_name = "N")]
    pub(crate) runs: Vec<u64>,
}
