//! The command line of `ackclock report`.

use std::path::PathBuf;

use ackclock_report::Asked;

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
        ackclock report pie fq_codel --svg figures\n  \
        ackclock report out --svg figures --figure box --metric rtt_ms.p50 --x delay --colour cc"
)]
pub(crate) struct ReportArgs {
    /// Directories that --out has written
    #[arg(value_name = "DIR", required = true)]
    pub(crate) dirs: Vec<PathBuf>,

    /// The figure to begin with, or with --svg the only one
    ///
    /// It and the flags below are the menus of the page: a name that the results do not have is
    /// refused with those that they have. What is not given is chosen as the page does.
    #[arg(long, value_name = "KIND", value_parser = ["box", "lines", "cdf", "scatter", "heat"])]
    pub(crate) figure: Option<String>,

    /// What is measured: flows, links, groups and so on [default: the first that has the metric]
    #[arg(long, value_name = "WHAT", requires = "figure")]
    pub(crate) of: Option<String>,

    /// The metric, such as `rtt_ms.p50`; `rtt_ms.*` is its distribution within runs
    #[arg(long, value_name = "METRIC", requires = "figure")]
    pub(crate) metric: Option<String>,

    /// The metric across, of `scatter`
    #[arg(long, value_name = "METRIC", requires = "figure")]
    pub(crate) across: Option<String>,

    /// The axis across: the name of one, or its last keys, such as `delay`
    #[arg(long, value_name = "AXIS", requires = "figure")]
    pub(crate) x: Option<String>,

    /// The axis upwards, of `heat`
    #[arg(long, value_name = "AXIS", requires = "figure")]
    pub(crate) y: Option<String>,

    /// The axis that colours tell apart, or `none`
    #[arg(long, alias = "color", value_name = "AXIS", requires = "figure")]
    pub(crate) colour: Option<String>,

    /// The axis with a facet for each value, side by side, or `none`
    #[arg(long, value_name = "AXIS", requires = "figure")]
    pub(crate) columns: Option<String>,

    /// The axis with a row of facets for each value, or `none`
    #[arg(long, value_name = "AXIS", requires = "figure")]
    pub(crate) rows: Option<String>,

    /// Draw one value of an axis; may be given several times
    #[arg(long, value_name = "AXIS=VALUE", requires = "figure", value_parser = only)]
    pub(crate) only: Vec<(String, String)>,

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

impl ReportArgs {
    /// The figure that the flags describe.
    pub(crate) fn asked(&self) -> Option<Asked> {
        let places = [
            ("x", &self.x),
            ("y", &self.y),
            ("colour", &self.colour),
            ("columns", &self.columns),
            ("rows", &self.rows),
        ];
        Some(Asked {
            figure: self.figure.clone()?,
            of: self.of.clone(),
            metric: self.metric.clone(),
            across: self.across.clone(),
            places: places.into_iter().filter_map(|(place, name)| Some((place, name.clone()?))).collect(),
            only: self.only.clone(),
        })
    }
}

fn only(text: &str) -> Result<(String, String), &'static str> {
    let (axis, value) = text.split_once('=').ok_or("expected AXIS=VALUE, such as delay=20ms")?;
    Ok((axis.to_owned(), value.to_owned()))
}
