//! The command line of `ackclock compare`.

use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;

use ackclock_units::{Span, parse_span};
use clap::ValueEnum;

/// Shows the numbers of two results side by side.
///
/// Flows, links and programs are matched by their ids, runs of a sweep by their parameters and
/// number. The table shows the main numbers, and the difference of B from A in percent of A; --json
/// has every number of the summaries, under the name by which an [[expect]] refers to it. Where
/// points have several repetitions, it tests whether the means differ.
///
/// Two captures (pcapng or pcap: of --record, [record] pcap, tcpdump) are compared packet by packet:
/// the table shows the first packet of each TCP connection that differs, and in what.
///
/// A scenario (FILE.toml) is run twice, with the settings of --a and those of --b, and both results
/// are compared, numbers and packets of its flows.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if a result cannot be read, or the two have nothing in common.",
    after_long_help = "Exit status:\n  \
        0  there was something to compare, however much it differs\n  \
        2  a result cannot be read, or the two have no run in common\n\n\
        Examples:\n  \
        ackclock compare out/live out/virtual\n  \
        ackclock compare sweep --a queue=pfifo --b queue=pie\n  \
        ackclock compare sweep:0 sweep:7\n  \
        ackclock compare kernel.pcapng model.pcapng --within 500us\n  \
        ackclock compare FILE.toml --a flows.0.host=kernel --b flows.0.host=linux-6.1\n  \
        ackclock compare --json a.json b.json | jq '.runs[0].metrics[\"flows.f.0.goodput_bps\"]'"
)]
pub(crate) struct CompareArgs {
    /// An output directory, or a summary as --json or --out writes it; PATH:N is its run N, from 0.
    /// Or a capture, or a scenario
    #[arg(value_name = "A")]
    pub(crate) a: String,

    /// The result to compare it with [default: A, whose points --a and --b select]
    #[arg(value_name = "B", required_unless_present_all = ["of_a", "of_b"])]
    pub(crate) b: Option<String>,

    /// Take the points of A with this value on an axis of the sweep; may be given several times
    ///
    /// AXIS is a path, or as many of its last keys as fit one axis: `queue=pie` or `delay=10ms`.
    /// Points are matched by their other axes. Of a scenario, any key with its value, as in --set
    #[arg(long = "a", value_name = "AXIS=VALUE")]
    pub(crate) of_a: Vec<Choice>,

    /// The same of B
    #[arg(long = "b", value_name = "AXIS=VALUE")]
    pub(crate) of_b: Vec<Choice>,

    /// Override a value of the scenario on both sides; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Keep the results of a scenario in this directory, as `a` and `b`
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// The test of means of repetitions [default: t where both sides have the same seeds, else
    /// ranks]
    #[arg(long, value_enum, value_name = "TEST")]
    pub(crate) test: Option<Family>,

    /// The correction for the number of tests [default: holm]
    #[arg(long, value_enum, value_name = "METHOD")]
    pub(crate) correct: Option<Correction>,

    /// Times of packets may differ by this much [default: 1ms]
    #[arg(long, value_name = "TIME", value_parser = parse_span)]
    pub(crate) within: Option<Span>,

    /// Show every point, run and key in the table
    ///
    /// Of many, it shows the first and the last three, and the first 40 keys that differ.
    #[arg(long, conflicts_with = "json")]
    pub(crate) all_rows: bool,

    /// Print every number as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

impl CompareArgs {
    /// Returns `true` if there is an option that applies to results alone.
    pub(crate) fn is_about_results(&self) -> bool {
        !self.of_a.is_empty() || !self.of_b.is_empty() || self.test.is_some() || self.correct.is_some() || self.all_rows
    }
}

/// A value on an axis.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Choice {
    pub(crate) axis: String,
    pub(crate) value: String,
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}={}", self.axis, self.value)
    }
}

impl FromStr for Choice {
    type Err = String;

    fn from_str(text: &str) -> Result<Choice, String> {
        match text.split_once('=').map(|(axis, value)| (axis.trim(), value.trim())) {
            Some((axis, value)) if !axis.is_empty() && !value.is_empty() => {
                Ok(Choice { axis: axis.to_owned(), value: value.to_owned() })
            }
            _ => Err("expected an axis of the sweep and one of its values: `queue=pie`".to_owned()),
        }
    }
}

/// What a test looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Family {
    /// Student's paired t test where both sides have the same seeds, else Welch's
    T,
    /// Wilcoxon's signed ranks where both sides have the same seeds, else Mann and Whitney's
    Ranks,
}

/// What is done about there being many tests.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub(crate) enum Correction {
    /// Holm's: any false finding among all tests is as unlikely as p says
    #[default]
    Holm,
    /// Benjamini and Hochberg's: p is the share of false ones among the findings
    Bh,
    /// None
    None,
}
