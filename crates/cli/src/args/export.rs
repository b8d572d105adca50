//! The command line of `ackclock export`.

use std::path::PathBuf;

use clap::ValueEnum;

/// Writes results in the format of another program.
///
/// `csv` is a table of all runs of a directory, a row for each run and flow, link or other thing
/// that `--table` names, or for each interval of the series; the parameters of a sweep are columns,
/// as numbers in the unit that the next column has. All other formats are of the records of one
/// run, in a directory that --out has written. `mahimahi` is the log of mm-link for one link
/// direction, which mm-throughput-graph and mm-delay-graph plot; it needs `[record] queue`.
/// `flent` is a data file of Flent, which `flent -i FILE.flent.gz` plots; it needs `[record]
/// series`. `spp` is what CAIA's spp prints of a flow, round-trip times of packet pairs; it needs
/// `[record] pcap` with the flow. `estats` has the variables of a flow after each ACK under their
/// names in RFC 4898, those of Web10G; it needs `[record] tcp`. `tc` is no result: a script that
/// sets the links of a scenario file up in Linux, each direction on a device of its own.
/// docs/export.md says what becomes of what.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if the results cannot be read or lack the record, or FILE cannot be written.",
    after_long_help = "Exit status:\n  \
        0  the file was written\n  \
        2  bad input: a flag, a directory that cannot be read or has no such record, a file that cannot be written\n\n\
        Examples:\n  \
        ackclock export out --format mahimahi --link bottleneck.forward | mm-delay-graph > delay.svg\n  \
        ackclock export out --format flent -o out.flent.gz\n  \
        ackclock export out --format spp --flow reno.0 > reno.0.rtts\n  \
        ackclock export sweep --run 7 --format flent -o 7.flent.gz\n  \
        ackclock export sweep --format csv --table links -o links.csv\n  \
        ackclock export scenarios/shapers/borrowing.toml --format tc -o borrowing.sh"
)]
pub(crate) struct ExportArgs {
    /// A directory that --out has written; for `tc` a scenario file
    #[arg(value_name = "DIR")]
    pub(crate) dir: PathBuf,

    /// The format
    #[arg(long, value_enum)]
    pub(crate) format: ExportFormat,

    /// What the rows of the table are of (csv): flows, links, groups, kinds, windows, workloads,
    /// commands, expectations, runs, or series, which needs `[record] series`
    #[arg(long, value_name = "TABLE", default_value = "flows")]
    pub(crate) table: String,

    /// The run of a sweep, from 0; csv has all runs without it, tc the first
    #[arg(long, value_name = "N")]
    pub(crate) run: Option<u64>,

    /// The link direction whose log is written (mahimahi), such as bottleneck.forward
    #[arg(long, value_name = "LINK.DIRECTION", required_if_eq("format", "mahimahi"))]
    pub(crate) link: Option<String>,

    /// The flow that is written (spp, estats), such as reno.0
    #[arg(long, value_name = "FLOW", required_if_eq_any([("format", "spp"), ("format", "estats")]))]
    pub(crate) flow: Option<String>,

    /// Write a line for each drop, too (mahimahi)
    ///
    /// As mm-link does. mm-throughput-graph does not know these lines and refuses them.
    #[arg(long)]
    pub(crate) drops: bool,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum ExportFormat {
    /// The log of mahimahi's mm-link
    Mahimahi,
    /// A data file of Flent, compressed
    Flent,
    /// Round-trip times of synthetic packet pairs, as CAIA's spp prints them
    Spp,
    /// A flow's variables under their names in RFC 4898 (Web10G, EStats), as CSV
    Estats,
    /// All results as one table, for R and spreadsheets
    Csv,
    /// The links of a scenario, as a script of `tc` commands
    Tc,
}
