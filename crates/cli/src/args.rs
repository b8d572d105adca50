//! What a person may say on the command line.

use std::num::NonZeroU16;
use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// A TCP and AQM laboratory: runs a scenario file on a virtual clock, or live, and prints what
/// happened.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Exit status: 0; 1 when an [[expect]] was missed, a live run is not valid or one of its commands failed; \
        2 for bad input; 3 when a run failed by itself; 130 after Ctrl-C.",
    after_long_help = "Exit status:\n  \
        0    everything ran and every [[expect]] was met\n  \
        1    an [[expect]] was missed, a live run was too late to be valid, or one of its commands failed or did not start; \
        all of it is listed on standard error\n  \
        2    bad input: the scenario, an override, a capture, --out or another flag; or what a live run takes is missing\n  \
        3    a run failed by itself: on the virtual clock a defect of ackclock; a live run whose device is gone, or whose disk \
        is full, has results until then, marked partial\n  \
        130  Ctrl-C (SIGINT) or SIGTERM: a live run keeps its results until then, a sweep the runs that had finished; \
        both are marked partial\n\n\
        Examples:\n  \
        ackclock --scenario scenarios/teacup/two-newreno.toml\n  \
        ackclock --scenario FILE --set links.bottleneck.delay=40ms --set flows.reno.cc=cubic\n  \
        ackclock --scenario FILE --json | jq .fairness_jain\n  \
        ackclock --scenario scenarios/live/iperf3-pie.toml --out out --record out.pcapng\n  \
        ackclock packetdrill crates/tcp/tests/scripts"
)]
pub(crate) struct Cli {
    #[command(subcommand)]
    pub(crate) command: Option<Command>,

    /// Without a command, a scenario.
    #[command(flatten)]
    pub(crate) scenario: Option<Args>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Runs packetdrill scripts against the TCP endpoint, in virtual time
    Packetdrill(DrillArgs),
    /// Puts the numbers of two results beside each other
    Compare(CompareArgs),
    /// Writes, or checks, the bytes that ackclock's endpoints send and expect
    Pattern(PatternArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file
    #[arg(long, value_name = "FILE")]
    pub(crate) scenario: PathBuf,

    /// Set a key of the scenario; may be given several times
    ///
    /// KEY is a dotted path; a flow is addressed by its id or its index: `flows.reno.cc`,
    /// `flows.0.cc`. VALUE is TOML, or else a string, so that `delay=40ms` needs no quotes. Setting
    /// the path of a sweep's axis leaves this one value of it.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// The root seed, in place of the file's `run.seed`
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// By which clock, in place of the file's `run.clock`: `live` is the machine's, and needs hosts
    /// with devices (`tun`)
    ///
    /// On the virtual clock kernels are stood in for by ackclock's endpoints, and commands do not
    /// run. `replay` feeds a recorded live run (`--set run.replay=FILE`, which alone is enough).
    #[arg(long, value_name = "CLOCK", value_parser = ["virtual", "live", "replay"])]
    pub(crate) clock: Option<String>,

    /// Write all packets of a live run to this file, as pcapng with nanoseconds
    ///
    /// It has what passes the devices, both ways; `--set run.replay=FILE` feeds what came from
    /// hosts through the same scenario again, in virtual time. The file is not there until it is
    /// complete.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Print summaries as JSON, one object on a line for each run, instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the results to this directory
    ///
    /// `summary.json` (for a sweep `summary.jsonl`, one line for each run), what the scenario's
    /// `[record]` asks for (`queue.csv`, `tcp.csv`, `siftr.log`, `ertt.csv`; for a sweep
    /// `runs/0000/queue.csv` and so on), what the commands of a live run print
    /// (`commands/ID.stdout`, `commands/ID.stderr`) and, last, `manifest.json` with the resolved
    /// scenario and the hash of every file. The directory is made if need be; it must be empty or
    /// hold an earlier output of ackclock, which stays until the new one is complete and then is
    /// replaced.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Print the scenario with overrides applied and defaults filled in, and run nothing
    #[arg(long)]
    pub(crate) show_config: bool,

    /// How many runs of a sweep go on at the same time [default: the number of cores]
    ///
    /// The results do not depend on it. Live runs are done one after another.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print no tables and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Runs packetdrill scripts against the TCP endpoint, in virtual time.
///
/// Prints a line for each script, in the order given, and a report below each that does not pass.
/// docs/packetdrill.md describes the language.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 when a script failed or needs something unsupported; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  every script passed\n  \
        1  a script failed, or needs something that is not supported\n  \
        2  bad input: a file that cannot be read, a script that is none, a flag, a key, --junit\n\n\
        Examples:\n  \
        ackclock packetdrill crates/tcp/tests/scripts\n  \
        ackclock packetdrill --profile freebsd-14 --set cc=reno -v FILE\n  \
        ackclock packetdrill --junit results.xml --tap DIR"
)]
pub(crate) struct DrillArgs {
    /// Scripts; of a directory, every *.pkt below it
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) scripts: Vec<PathBuf>,

    /// The stack that scripts run against, also those that name another [default: linux-6.1]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Set a knob of the stack; may be given several times
    ///
    /// It wins over what a script says. docs/packetdrill.md lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Give a word of the scripts a meaning, as packetdrill's -D does; may be given several times
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,

    /// How far from its time something may happen, in microseconds
    #[arg(long = "tolerance_usecs", visible_alias = "tolerance-usecs", value_name = "N")]
    pub(crate) tolerance_usecs: Option<u64>,

    /// Compare packets without their PSH bits
    #[arg(long, visible_alias = "ignore_psh")]
    pub(crate) ignore_psh: bool,

    /// Write the results to this file as JUnit XML
    #[arg(long, value_name = "FILE")]
    pub(crate) junit: Option<PathBuf>,

    /// Print the results in the Test Anything Protocol, version 14
    #[arg(long)]
    pub(crate) tap: bool,

    /// How many scripts run at the same time [default: the number of cores]
    ///
    /// The results do not depend on it.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print the whole trace of every script
    #[arg(short, long, conflicts_with = "quiet")]
    pub(crate) verbose: bool,

    /// Print nothing about scripts that pass
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Puts the numbers of two results beside each other.
///
/// Flows, links and programs are matched by their ids, runs of a sweep by their parameters and
/// number. The table shows what a person looks at, and by how many percent of A the number of B
/// differs; --json has every number of the summaries, by the name that an [[expect]] has for it.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 2 if a result cannot be read, or the two have nothing in common.",
    after_long_help = "Exit status:\n  \
        0  there was something to compare, however much it differs\n  \
        2  a result cannot be read, or the two have no run in common\n\n\
        Examples:\n  \
        ackclock compare out/live out/virtual\n  \
        ackclock compare sweep:0 sweep:7\n  \
        ackclock compare --json a.json b.json | jq '.runs[0].metrics[\"flows.f.0.goodput_bps\"]'"
)]
pub(crate) struct CompareArgs {
    /// A directory of --out, or a summary as --json or --out write it; PATH:N is its run N, from 0
    #[arg(value_name = "A")]
    pub(crate) a: String,

    /// What it is compared with
    #[arg(value_name = "B")]
    pub(crate) b: String,

    /// Print every number as JSON
    #[arg(long)]
    pub(crate) json: bool,
}

/// Writes, or checks, the bytes that ackclock's endpoints send and expect.
///
/// Byte i of every stream is a function of i. A program on a host outside of a live run sends them
/// to an endpoint of ackclock that checks what it gets (`data = "pattern"`), or checks what it gets
/// from one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 if other bytes came, or not all went; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  all bytes were sent, or came as they should\n  \
        1  other bytes came, or more or fewer of them; the reader left before it had all\n  \
        2  bad input: a flag, an address, a stream that cannot be read or written\n\n\
        Examples:\n  \
        ackclock pattern --bytes 100MB | nc -N 10.0.0.9 5001\n  \
        nc -l 5001 | ackclock pattern --bytes 100MB --check\n  \
        ackclock pattern --bytes 100MB --connect 10.0.0.9:5001"
)]
pub(crate) struct PatternArgs {
    /// How many bytes, such as 100MB or 64KiB; with --check it may be left out, and any number will
    /// do
    #[arg(long, value_name = "SIZE", required_unless_present = "check")]
    pub(crate) bytes: Option<String>,

    /// Read to the end and compare, in place of sending
    ///
    /// Prints how many bytes came; what is wrong, and the offset of the first wrong byte, is said
    /// on standard error.
    #[arg(long)]
    pub(crate) check: bool,

    /// Use a TCP connection to this address and port, in place of standard input and output
    ///
    /// A sender ends when the other end has closed its direction too.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "listen")]
    pub(crate) connect: Option<String>,

    /// Wait for one TCP connection at this address and port, and use it likewise
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,
}
