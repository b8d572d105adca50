//! The command line of `ackclock shell`.

use std::ffi::OsString;
use std::path::PathBuf;

use ackclock_watch::Address;

/// Runs a shell or a program in a network namespace of its own, behind a link.
///
/// All its packets pass the link, whose other end is this machine: it has the address in
/// $ACKCLOCK_PEER. With --internet, the machine's network is behind that; with --peer, a second
/// namespace is there instead. Shells nest: each adds a link. On exit, a line for each direction
/// says what happened.
///
/// An ordinary user gets a user namespace, where the kernel allows it, from which nothing leads
/// out.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Exit status: that of COMMAND; 2 for bad input, or if a requirement is missing; 3 when the run failed.",
    after_long_help = "Exit status: that of COMMAND, 128 + N if signal N ended it; 2 for bad input, or if a requirement is \
        missing; 3 when the run failed.\n\n\
        Examples:\n  \
        ackclock shell --delay 20ms --rate 10mbit --queue fq_codel\n  \
        ackclock shell --rate 10mbit --up 1mbit --internet -- curl -O https://example.org/file\n  \
        ackclock shell --delay 50ms --loss 1% --peer 'iperf3 -s' -- sh -c 'iperf3 -c $ACKCLOCK_PEER'\n  \
        ackclock shell --trace up.trace down.trace --save lte.toml -- ./client"
)]
pub(crate) struct ShellArgs {
    /// Delay each way, such as 20ms
    #[arg(long, value_name = "TIME")]
    pub(crate) delay: Option<String>,

    /// Rate each way, such as 10mbit; without it, unlimited
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub(crate) rate: Option<String>,

    /// Rate from the shell towards the other end, if it differs
    #[arg(long, value_name = "RATE", conflicts_with = "trace")]
    pub(crate) up: Option<String>,

    /// Queue discipline each way, with parameters after commas: fq_codel, or pie,target=5ms
    ///
    /// `ackclock list queues` has all of them.
    #[arg(long, value_name = "KIND[,KEY=VALUE...]")]
    pub(crate) queue: Option<String>,

    /// Packets lost at random each way, such as 1% or 0.01
    #[arg(long, value_name = "SHARE")]
    pub(crate) loss: Option<String>,

    /// Rate over time, as mahimahi's traces have it; the second file is for the way down
    #[arg(long, value_name = "FILE", num_args = 1..=2)]
    pub(crate) trace: Vec<PathBuf>,

    /// Set any other key of the scenario, such as links.link.jitter=1ms; may be given several times
    #[arg(long, value_name = "KEY=VALUE")]
    pub(crate) set: Vec<String>,

    /// Let what the machine's network leads to be reached, by NAT
    ///
    /// Requires root, and the program nft. The machine forwards IPv4 as long as the shell runs.
    #[arg(long, conflicts_with = "peer")]
    pub(crate) internet: bool,

    /// Have a second namespace at the other end, with this command in it, for /bin/sh
    ///
    /// It starts half a second before the shell, and ends with it.
    #[arg(long, value_name = "COMMAND")]
    pub(crate) peer: Option<String>,

    /// Write the scenario to this file, which must not exist, and run it
    #[arg(long, value_name = "FILE")]
    pub(crate) save: Option<PathBuf>,

    /// Write all packets to this file, as pcapng, for a replay of the scenario
    #[arg(long, value_name = "FILE")]
    pub(crate) record: Option<PathBuf>,

    /// Write the first BYTES of each packet to it, at least 128
    #[arg(long, value_name = "BYTES", requires = "record", value_parser = clap::value_parser!(u32).range(128..=65_535))]
    pub(crate) snap: Option<u32>,

    /// Serve metrics of the link for Prometheus at this address, such as 127.0.0.1:9100
    ///
    /// It is one of the loopback interface of the machine, not of the shell's namespace; with port
    /// 0 a free port is taken.
    #[arg(long, value_name = "ADDR")]
    pub(crate) metrics: Option<Address>,

    /// Listen on this Unix socket for changes of the link while the shell runs (`ackclock ctl`)
    #[arg(long, value_name = "SOCKET")]
    pub(crate) control: Option<PathBuf>,

    /// Print nothing on exit
    #[arg(short, long)]
    pub(crate) quiet: bool,

    /// The program and its arguments [default: $SHELL]
    #[arg(value_name = "COMMAND", last = true)]
    pub(crate) command: Vec<OsString>,
}
