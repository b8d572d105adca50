//! The command line of `ackclock reproduce`.

use std::num::NonZeroU16;
use std::path::PathBuf;

/// Runs the scenarios that stand for published results, and shows both side by side.
///
/// A row is a figure, table or check of a document (`source` of an [[expect]]), with what it
/// reports, what ackclock finds, and what a real kernel measured where that is known. It is `ok` if
/// all of its expectations are met at all of their points, `part` if some are, and `miss` if none
/// is. Misses are results: they do not change the exit status. docs/expectations.md describes the
/// keys.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 when --check finds another table; 2 for bad input; 3 when a run failed; 130 after Ctrl-C.",
    after_long_help = "Exit status:\n  \
        0    everything ran; what was missed is in the tables\n  \
        1    --check: a README has another table\n  \
        2    bad input: a name, a scenario, --out, or a README without the markers of the table\n  \
        3    a run failed; the others are done all the same\n  \
        130  Ctrl-C (SIGINT) or SIGTERM: the tables have the scenarios that had finished\n\n\
        Examples:\n  \
        ackclock reproduce\n  \
        ackclock reproduce teacup --out out\n  \
        ackclock reproduce cdg/loss 'teacup:Figure 2a'"
)]
pub(crate) struct ReproduceArgs {
    /// A folder (`teacup`), a file (`teacup/two-newreno`), or a source in one of these
    /// (`teacup:Figure 2a`, or a part of the label) [default: all]
    #[arg(value_name = "NAME")]
    pub(crate) names: Vec<String>,

    /// The directory with the folders of scenarios
    #[arg(long, value_name = "DIR", default_value = "scenarios")]
    pub(crate) scenarios: PathBuf,

    /// Write the results of each scenario to DIR/FOLDER/FILE, a page with its figures beside that,
    /// and the tables to DIR/index.html
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Run only what --out does not hold yet, of the same version and the same scenarios
    #[arg(long, requires = "out")]
    pub(crate) resume: bool,

    /// Write the tables into the READMEs of the folders
    ///
    /// A table stands between the lines `<!-- reproduce -->` and `<!-- /reproduce -->`. Each NAME
    /// has to be a folder.
    #[arg(long, conflicts_with = "check")]
    pub(crate) readme: bool,

    /// Compare the tables with those in the READMEs of the folders
    #[arg(long)]
    pub(crate) check: bool,

    /// Print a JSON object for each row, one per line, instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Number of runs in parallel [default: the number of cores]
    ///
    /// The results do not depend on it.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print no tables and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}
