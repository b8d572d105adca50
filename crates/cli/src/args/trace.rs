//! The arguments of `ackclock trace`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

/// Generates a synthetic trace of a link's rate.
///
/// A scenario reads it by `trace = { file = "FILE", format = "mahimahi" }` (or `"rates"`, `"path"`). The same
/// options and seed give the same trace on every machine.
#[derive(Debug, Args)]
#[command(
    after_help = "Exit status: 0; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  the trace was written\n  \
        2  bad input: a flag, or a file that cannot be written\n\n\
        Examples:\n  \
        ackclock trace lte --seed 7 --duration 60s -o lte.trace\n  \
        ackclock trace markov --rates 2mbit,20mbit --hold 1s,200ms --format rates\n  \
        ackclock trace satellite --duration 5min --format path -o sky.csv"
)]
pub(crate) struct TraceArgs {
    #[command(subcommand)]
    pub(crate) model: ModelArgs,
}

#[derive(Debug, Subcommand)]
#[command(disable_help_subcommand = true)]
pub(crate) enum ModelArgs {
    /// Rates that are held for exponentially distributed times
    Markov(MarkovArgs),
    /// A cellular link: Poisson opportunities, a rate in Brownian motion, outages (Sprout's model)
    Lte(LteArgs),
    /// A satellite link: another rate and delay every 15 s, and a gap at each handover
    Satellite(SatelliteArgs),
}

/// What every model has.
#[derive(Debug, Args)]
pub(crate) struct CommonArgs {
    /// The seed
    #[arg(long, value_name = "N", default_value_t = 1)]
    pub(crate) seed: u64,

    /// The length of the trace, up to 1 h
    #[arg(long, value_name = "TIME", default_value = "60s")]
    pub(crate) duration: String,

    /// `mahimahi`: a line for each opportunity to send 1504 bytes, with its time in ms; `rates`: a
    /// line for each rate; `path`: the same with the delays; `schedule`: the key of that name of a scenario's link, with delays
    #[arg(long, value_enum, default_value_t = TraceFormat::Mahimahi)]
    pub(crate) format: TraceFormat,

    /// Write to this file instead of standard output
    #[arg(short, long, value_name = "FILE")]
    pub(crate) output: Option<PathBuf>,
}

#[derive(Clone, Copy, Debug, ValueEnum)]
pub(crate) enum TraceFormat {
    Mahimahi,
    Rates,
    Path,
    Schedule,
}

#[derive(Debug, Args)]
pub(crate) struct MarkovArgs {
    /// The rates of the states
    #[arg(long, value_name = "RATE,...", value_delimiter = ',', default_value = "2mbit,6mbit,12mbit")]
    pub(crate) rates: Vec<String>,

    /// The mean time for which a rate is held: one for all states, or one for each
    #[arg(long, value_name = "TIME,...", value_delimiter = ',', default_value = "1s")]
    pub(crate) hold: Vec<String>,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct LteArgs {
    /// The highest rate [default: 1000 packets of 1504 bytes per second]
    #[arg(long, value_name = "RATE", default_value = "12032kbit", hide_default_value = true)]
    pub(crate) max: String,

    /// The standard deviation of the rate after 1 s [default: 200 packets per second]
    #[arg(long, value_name = "RATE", default_value = "2406400bit", hide_default_value = true)]
    pub(crate) sigma: String,

    /// The mean length of an outage; 0s for none
    #[arg(long, value_name = "TIME", default_value = "1s")]
    pub(crate) outage: String,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}

#[derive(Debug, Args)]
pub(crate) struct SatelliteArgs {
    /// The lowest and the highest rate
    #[arg(long, value_name = "RATE,RATE", value_delimiter = ',', default_value = "50mbit,150mbit")]
    pub(crate) rates: Vec<String>,

    /// The shortest and the longest one-way delay; appears in a path or a schedule
    #[arg(long, value_name = "TIME,TIME", value_delimiter = ',', default_value = "20ms,40ms")]
    pub(crate) delays: Vec<String>,

    /// How long nothing is sent after a handover, less than 15s
    #[arg(long, value_name = "TIME", default_value = "100ms")]
    pub(crate) gap: String,

    #[command(flatten)]
    pub(crate) common: CommonArgs,
}
