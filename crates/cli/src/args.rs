//! The command line.

use std::ffi::OsStr;
use std::num::NonZeroU16;
use std::path::{Path, PathBuf};

use ackclock_run::selection::{Only, Shard};
use ackclock_run::session::Wanted;
use ackclock_scenario::nearest;
use ackclock_watch::Address;
use ackclock_watch::control::Speed;
use clap::{CommandFactory, Parser, Subcommand};

use self::check::CheckArgs;
use self::compare::CompareArgs;
use self::completions::{CompletionsArgs, ManArgs, SchemaArgs};
use self::ctl::CtlArgs;
use self::export::ExportArgs;
use self::import::ImportArgs;
use self::list::ListArgs;
use self::merge::MergeArgs;
use self::report::ReportArgs;
use self::reproduce::ReproduceArgs;
use self::shell::ShellArgs;
use self::trace::TraceArgs;
use self::verify::VerifyArgs;

pub(crate) mod check;
pub(crate) mod compare;
pub(crate) mod completions;
pub(crate) mod ctl;
pub(crate) mod export;
pub(crate) mod import;
pub(crate) mod list;
pub(crate) mod merge;
#[cfg(test)]
mod page;
pub(crate) mod report;
pub(crate) mod reproduce;
pub(crate) mod shell;
pub(crate) mod trace;
pub(crate) mod verify;

/// A TCP and AQM laboratory: runs a scenario file on a virtual clock, or live, and prints what
/// happened.
#[derive(Debug, Parser)]
#[command(
    version,
    args_conflicts_with_subcommands = true,
    subcommand_negates_reqs = true,
    disable_help_subcommand = true,
    after_help = "Exit status: 0; 1 when an [[expect]] was missed, a live run is not valid or one of its commands failed; \
        2 for bad input; 3 when a run failed; 130 after Ctrl-C.",
    after_long_help = "Exit status:\n  \
        0    everything ran and every [[expect]] was met\n  \
        1    an [[expect]] was missed, a live run was too late to be valid, or one of its commands failed or did not start; \
        each is reported on standard error\n  \
        2    bad input: the scenario, an override, a capture, --out or another flag; or a requirement of a live run is \
        missing\n  \
        3    a run failed: on the virtual clock too many flows, or a defect of ackclock; the other runs of a sweep are \
        done all the same; a live run whose device vanished, or whose disk is full, keeps its results so far, marked \
        partial\n  \
        130  Ctrl-C (SIGINT) or SIGTERM: a live run keeps its results so far, a sweep the runs that had finished; \
        both are marked partial\n\n\
        Examples:\n  \
        ackclock scenarios/teacup/two-newreno.toml\n  \
        ackclock FILE --set links.bottleneck.delay=40ms --set flows.reno.cc=cubic\n  \
        ackclock FILE --json | jq .fairness_jain\n  \
        ackclock scenarios/live/iperf3-pie.toml --out out --record out.pcapng\n  \
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
    /// Checks scenarios and runs nothing
    Check(CheckArgs),
    /// Runs packetdrill scripts against the TCP endpoint, in virtual time
    Packetdrill(DrillArgs),
    /// Prints or writes a commented starter scenario
    New(NewArgs),
    /// Lists queue disciplines, controllers, hosts, metrics and keys, with parameters and ranges
    List(ListArgs),
    /// Changes a running scenario
    Ctl(CtlArgs),
    /// Compares two results, or two captures
    Compare(CompareArgs),
    /// Merges the parts of a sweep
    Merge(MergeArgs),
    /// Exports results, or the links of a scenario, for other tools
    Export(ExportArgs),
    /// Makes a scenario of another program's configuration
    Import(ImportArgs),
    /// Writes, or checks, the bytes that ackclock's endpoints send and expect
    Pattern(PatternArgs),
    /// Draws figures of results, as a page or files
    Report(ReportArgs),
    /// Compares published results with those of their scenarios
    Reproduce(ReproduceArgs),
    /// Runs a shell or a program behind a link
    Shell(ShellArgs),
    /// Generates a synthetic trace of a link's rate
    Trace(TraceArgs),
    /// Repeats the runs of output directories and compares every file
    Verify(VerifyArgs),
    /// Prints a JSON Schema of scenario files, for editors
    Schema(SchemaArgs),
    /// Prints completions for a shell
    Completions(CompletionsArgs),
    /// Prints the manual page, or writes one for each command
    Man(ManArgs),
}

#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The scenario, a TOML file; `-` is standard input
    ///
    /// From standard input, files that the scenario names are relative to the current directory.
    #[arg(value_name = "FILE", required_unless_present = "scenario")]
    pub(crate) file: Option<PathBuf>,

    /// The same as FILE
    #[arg(long, value_name = "FILE", conflicts_with = "file")]
    pub(crate) scenario: Option<PathBuf>,

    /// Set a key of the scenario; may be given several times
    ///
    /// KEY is a dotted path; a flow is addressed by its id or its index: `flows.reno.cc`,
    /// `flows.0.cc`, and `flows.*.cc` is that of every flow. VALUE is TOML, or else a string, so
    /// that `delay=40ms` needs no quotes. Setting the path of a sweep's axis reduces the axis to
    /// this value.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// The root seed; overrides the file's `run.seed`
    #[arg(long, value_name = "N")]
    pub(crate) seed: Option<u64>,

    /// The clock; overrides the file's `run.clock`. `live` is the machine's, and requires hosts
    /// with devices (`tun`)
    ///
    /// On the virtual clock ackclock's endpoints replace kernels, and commands do not run. `replay`
    /// feeds a recorded live run (`--set run.replay=FILE`, which is sufficient by itself).
    #[arg(long, value_name = "CLOCK", value_parser = ["virtual", "live", "replay"])]
    pub(crate) clock: Option<String>,

    /// Write all packets of a live run, or of hosts with a `stack`, to this file, as pcapng with
    /// nanoseconds
    ///
    /// It contains all packets that pass the devices, in both directions, or that stacks send and
    /// receive; `--set run.replay=FILE` feeds those that came from hosts with devices through the
    /// same scenario again, in virtual time. The file does not appear until it is complete.
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Write the first BYTES of each packet to the capture, at least 128
    ///
    /// All headers are among these. A replay needs whole packets where ackclock reads them: those
    /// that kernels send to hosts in this process, or that a router cuts into pieces or refuses.
    #[arg(long, value_name = "BYTES", requires = "record", value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub(crate) snap: Option<u32>,

    /// Print summaries as JSON, one object per line and run, instead of tables
    #[arg(long)]
    pub(crate) json: bool,

    /// Write the results to this directory
    ///
    /// `summary.json` (for a sweep `summary.jsonl`, one line per run), the files that the
    /// scenario's `[record]` asks for (`queue.csv`, `tcp.csv`, `siftr.log`, `ertt.csv`,
    /// `flows.csv` and others; for a sweep `runs/0000/queue.csv` and so on), the output of the
    /// commands of a live run (`commands/ID.stdout`, `commands/ID.stderr`) and, last,
    /// `manifest.json` with the resolved scenario and the hash of every file. The directory is
    /// created if necessary; it must be empty or hold an earlier output of ackclock, which is
    /// replaced once the new one is complete.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: Option<PathBuf>,

    /// Resume the sweep in --out
    ///
    /// Finished runs are kept and the others are done, however the sweep was interrupted; the files
    /// are those of an uninterrupted sweep. The scenario must be the same. An empty or missing
    /// directory starts at the first run.
    #[arg(long, requires = "out", conflicts_with = "overwrite")]
    pub(crate) resume: bool,

    /// Replace incomplete results in --out
    ///
    /// Incomplete results are those of a part of a sweep or an interrupted run. Complete results are
    /// replaced without it.
    #[arg(long, requires = "out")]
    pub(crate) overwrite: bool,

    /// Do only these runs of a sweep: numbers (`7`, `3-9`), or a point and its repetitions
    /// (`4:0-2`), separated by commas
    ///
    /// Runs, points and repetitions count from 0. Runs have the numbers, seeds and results that
    /// they have in the whole sweep; expectations are not evaluated.
    #[arg(long, value_name = "RUNS", conflicts_with = "shard")]
    pub(crate) only: Option<Only>,

    /// Do only share I of N of a sweep, from 0/N to N-1/N
    ///
    /// For arrays of jobs on a cluster: share I has the runs I, I + N, I + 2N and so on. `ackclock
    /// merge` makes one result of all shares, and evaluates the expectations.
    #[arg(long, value_name = "I/N")]
    pub(crate) shard: Option<Shard>,

    /// Accept changes to the run on this Unix socket (`ackclock ctl`)
    ///
    /// Links change as by a `schedule`; each change is in the summary, the manifest or the capture,
    /// so that `ackclock verify`, --changes or a replay makes it at the same time. Only this user
    /// may connect. It requires a single run.
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,

    /// Simulated seconds per second [default: as fast as possible]
    #[arg(long, value_name = "FACTOR")]
    pub(crate) speed: Option<Speed>,

    /// Repeat the changes recorded by an earlier run on the virtual clock
    ///
    /// FILE is its output directory, its summary, or lines of JSON with `at_ns` and `set`.
    #[arg(long, value_name = "FILE")]
    pub(crate) changes: Option<PathBuf>,

    /// Show links and flows on the terminal during the run, with keys that change it
    ///
    /// A run on the virtual clock goes at --speed 1 then, unless that is given. It requires a
    /// terminal, and a single run. `?` shows the keys; docs/watch.md describes it.
    #[arg(long)]
    pub(crate) watch: bool,

    /// Serve metrics of the run for Prometheus at this address, such as 127.0.0.1:9100
    ///
    /// It is one of the loopback interface; with port 0 a free port is taken. Metrics are at
    /// /metrics as long as the run goes on. It requires a single run.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<Address>,

    /// Print the scenario with overrides applied and defaults filled in, and run nothing
    #[arg(long)]
    pub(crate) show_config: bool,

    /// Number of runs of a sweep in parallel [default: the number of cores]
    ///
    /// The results do not depend on it. Live runs are sequential.
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroU16>,

    /// Print a table of these columns instead of the usual ones, separated by commas
    ///
    /// A column is a metric as an `[[expect]]` has it (`links.bottleneck.forward.utilization`, one
    /// column for each id if there is a `*` in it), a metric of each flow without its id
    /// (`rtt_ms.p50`), or a heading of the usual table (`goodput`, `RTT p50`). `ackclock list
    /// metrics` has all. Without a column of each flow there is one line for each point.
    #[arg(long, value_name = "NAMES", value_delimiter = ',', conflicts_with_all = ["json", "quiet", "show_config"])]
    pub(crate) columns: Vec<String>,

    /// List every point of a sweep, flow and link in the tables
    ///
    /// Of more than 200 points, or flows or links of a single run, tables list the first and the
    /// last 100. --out and --json have all.
    #[arg(long, conflicts_with_all = ["json", "quiet", "show_config"])]
    pub(crate) all_rows: bool,

    /// Print a table of all expectations with their values
    #[arg(long)]
    pub(crate) expectations: bool,

    /// Print no tables and no progress
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

impl Args {
    /// Which runs are done, and where their results go.
    pub(crate) fn wanted(&self) -> Wanted {
        Wanted {
            out: self.out.clone(),
            resume: self.resume,
            without_records: false,
            overwrite: self.overwrite,
            only: self.only.clone(),
            shard: self.shard,
            threads: self.threads.map(|threads| threads.get().into()),
            record: self.record.clone(),
            snap: self.snap,
        }
    }

    /// The scenario, however it was given.
    pub(crate) fn path(&self) -> &Path {
        self.file.as_deref().or(self.scenario.as_deref()).unwrap_or(Path::new(""))
    }
}

/// A first word that is neither a command nor a path, with the command that it may stand for.
pub(crate) fn no_command(word: &OsStr) -> Option<String> {
    let word = word.to_str().filter(|word| !word.starts_with('-') && !word.contains(['.', '/']))?;
    let commands = Cli::command();
    let near = nearest(word, commands.get_subcommands().map(clap::Command::get_name)).filter(|near| *near != word)?;
    (!Path::new(word).exists()).then(|| format!("no command `{word}`; did you mean `{near}`?"))
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
        2  bad input: a file that cannot be read, an invalid script, a flag, a key, --junit\n\n\
        Examples:\n  \
        ackclock packetdrill crates/tcp/tests/scripts\n  \
        ackclock packetdrill --profile freebsd-14 --set cc=reno -v FILE\n  \
        ackclock packetdrill --junit results.xml --tap DIR"
)]
pub(crate) struct DrillArgs {
    /// Scripts; for a directory, every *.pkt below it
    #[arg(value_name = "FILE|DIR", required = true)]
    pub(crate) scripts: Vec<PathBuf>,

    /// The stack that scripts run against, overriding the one they name [default: linux-6.1]
    #[arg(long, value_name = "NAME")]
    pub(crate) profile: Option<String>,

    /// Set an option of the stack; may be given several times
    ///
    /// It overrides what a script sets. docs/packetdrill.md lists the keys.
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Define a word of the scripts, like packetdrill's -D; may be given several times
    #[arg(short = 'D', long, value_name = "NAME=VALUE")]
    pub(crate) define: Vec<String>,

    /// How far from its time an event may happen, in microseconds
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

    /// Number of scripts that run in parallel [default: the number of cores]
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

/// Prints or writes a commented starter scenario.
///
/// It is a valid one with comments, which runs in a fraction of a second.
#[derive(Debug, clap::Args)]
#[command(after_help = "Exit status: 0; 2 if FILE exists or cannot be written.")]
pub(crate) struct NewArgs {
    /// Write it to this file, which must not exist, instead of standard output
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// Writes, or checks, the bytes that ackclock's endpoints send and expect.
///
/// Byte i of every stream is a function of i. In a live run, a program on a kernel host sends them
/// to one of ackclock's endpoints that checks what it receives (`data = "pattern"`), or checks what
/// it receives from one.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: 0; 1 if wrong bytes were received, or not all were sent; 2 for bad input.",
    after_long_help = "Exit status:\n  \
        0  all bytes were sent, or received as expected\n  \
        1  wrong bytes were received, or more or fewer of them; or the reader left before it had all\n  \
        2  bad input: a flag, an address, a stream that cannot be read or written\n\n\
        Examples:\n  \
        ackclock pattern --bytes 100MB | nc -N 10.0.0.9 5001\n  \
        nc -l 5001 | ackclock pattern --bytes 100MB --check\n  \
        ackclock pattern --bytes 100MB --connect 10.0.0.9:5001"
)]
pub(crate) struct PatternArgs {
    /// Number of bytes, such as 100MB or 64KiB; optional with --check, which then accepts any
    /// number
    #[arg(long, value_name = "SIZE", required_unless_present = "check")]
    pub(crate) bytes: Option<String>,

    /// Read to the end and compare, instead of sending
    ///
    /// Prints the number of bytes received; errors, and the offset of the first wrong byte, are
    /// reported on standard error.
    #[arg(long)]
    pub(crate) check: bool,

    /// Use a TCP connection to this address and port, instead of standard input and output
    ///
    /// A sender exits when the other end has closed its direction as well.
    #[arg(long, value_name = "ADDRESS:PORT", conflicts_with = "listen")]
    pub(crate) connect: Option<String>,

    /// Wait for one TCP connection at this address and port, and use that
    #[arg(long, value_name = "ADDRESS:PORT")]
    pub(crate) listen: Option<String>,

    /// Use Multipath TCP for the connection, if the other end does (Linux); subflows are those of
    /// the kernel's path manager (`ip mptcp`)
    #[arg(long)]
    pub(crate) mptcp: bool,
}
