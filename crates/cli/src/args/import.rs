//! The command line of `ackclock import`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

/// Makes a scenario of another program's configuration.
///
/// docs/export.md says what becomes of what.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  the scenario was written; what could not be carried over is listed\n  \
        2  bad input: a flag, a file that cannot be read or written, a line that the format does not have\n\n\
        Examples:\n  \
        ackclock import tc router.sh -o router.toml\n  \
        tc -j qdisc show > q.json; tc -j class show > c.json; ackclock import tc q.json c.json --delay 20ms\n  \
        ackclock import tc /etc/config/sqm -o sqm.toml\n  \
        ackclock import tc network.json ShapedDevices.csv --rate 1gbit -o isp.toml"
)]
pub(crate) struct ImportArgs {
    #[command(subcommand)]
    pub(crate) format: ImportFormat,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum ImportFormat {
    /// Linux traffic control: scripts of `tc` commands, `tc -j`, SQM's and LibreQoS' configuration
    Tc(ImportTcArgs),
}

/// Makes a scenario of Linux traffic control.
///
/// Files are scripts (or batches) of `tc` commands, the output of `tc -j qdisc show`, `class show`
/// and `filter show`, OpenWrt's /etc/config/sqm, and LibreQoS' network.json and ShapedDevices.csv;
/// the format is found by the contents. Nothing is executed: of scripts, words, variables and
/// continued lines are read, and every other command is listed. The scenario has a flow for each
/// queue. What could not be carried over is listed on standard error and in the file, with its line
/// and the reason.
#[derive(Debug, Args)]
pub(crate) struct ImportTcArgs {
    /// The files; `-` is standard input
    #[arg(value_name = "FILE", required = true)]
    pub(crate) files: Vec<PathBuf>,

    /// The rate of devices that nothing shapes, of which percentages are shares
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<String>,

    /// The one-way delay of links without netem
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,

    /// Set a variable of scripts; may be given several times
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}
