//! The live clock: packets of real kernels and applications, read from TUN devices, through the
//! links and queues of a run, in real time; and the replay of recorded packets, in virtual time.
//!
//! [`Engine`] is the run itself, without devices and without a clock: packets as bytes in, packets
//! as bytes out, time as an argument. `runner` drives it by the machine's clock, `replay` by a
//! capture. `testbed` creates namespaces, devices and addresses, and removes them.

mod capture;
#[cfg(target_os = "linux")]
mod commands;
mod engine;
mod in_process;
mod prefix;
mod replay;
mod router;
#[cfg(target_os = "linux")]
mod runner;
#[cfg(target_os = "linux")]
mod testbed;

use std::fmt;
use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_sim::{Recorders, RunError};
use ackclock_trace::{LiveHost, Summary};
use ackclock_units::{Span, Time};

pub use engine::{Engine, Outgoing};

/// Where a run puts what is not in its summary.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory for the output of commands, `ID.stdout` and `ID.stderr`; without, only what is
    /// measured of it is kept.
    pub commands: Option<PathBuf>,
    /// The capture (pcapng) of what passes the devices.
    pub capture: Option<PathBuf>,
    /// Whoever watches how punctual a run in real time is.
    pub watch: Option<Arc<dyn LiveWatch>>,
}

/// How long the loop of a run in real time may stand still at a time. What comes meanwhile is dated
/// when it is read, so that lateness does not show it.
pub const LONGEST_STALL: Span = Span::from_millis(100);

/// Watches a run in real time.
pub trait LiveWatch: fmt::Debug + Send + Sync {
    /// About every 100 ms, on the thread of the run: packets wait until it returns. Each host behind
    /// a device comes with the packets that its device did not take, which `sent_packets` counts as
    /// well.
    fn look(&self, moment: &Moment, hosts: &mut dyn Iterator<Item = (&LiveHost, u64)>);
}

/// How punctual a run in real time is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Moment {
    /// When.
    pub now: Time,
    /// How much later than due packets were handed to their device.
    pub lateness: Late,
    /// How long packets may have waited in their device before they were read.
    pub unread: Late,
    /// For how long something that was due had not been done yet, in the whole run.
    pub behind: Span,
    /// The longest time for which the loop did not look although it was to, likewise.
    pub longest_stall: Span,
}

/// Times by which something came too late since the last [`Moment`], within 3 %; `None` without
/// samples.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Late {
    /// The median.
    pub p50: Option<Span>,
    /// The 99th percentile.
    pub p99: Option<Span>,
    /// The largest.
    pub max: Option<Span>,
    /// The 99th percentile of the whole run, by which it is valid.
    pub run_p99: Option<Span>,
    /// How many there are.
    pub samples: u64,
}

/// A run that has ended.
#[derive(Debug)]
pub struct Outcome {
    /// Its summary, up to where it came.
    pub summary: Summary<()>,
    /// Why it ended before its time; the summary is then marked partial.
    pub broken_off: Option<LiveError>,
}

/// Why a run did not begin, or ended before its time.
#[derive(Debug, thiserror::Error)]
pub enum LiveError {
    /// A requirement of a live run is missing.
    #[error("{0}")]
    Missing(String),
    /// A namespace, a device or an address could not be made.
    #[error("host {host}: {what}")]
    SetUp {
        /// The host.
        host: String,
        /// What was tried.
        what: String,
        /// Why it failed.
        source: io::Error,
    },
    /// A device is gone, or does not work any more.
    #[error("host {host}: the device {tun} is gone or down")]
    Device {
        /// The host.
        host: String,
        /// The device.
        tun: String,
        /// What it said.
        source: io::Error,
    },
    /// A file could not be read or written.
    #[error("{}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// A capture is none.
    #[error("{}: {problem}", path.display())]
    Capture {
        /// The file.
        path: PathBuf,
        /// What is wrong, and where.
        problem: String,
    },
    /// A signal asked for it.
    #[error("interrupted")]
    Interrupted,
    /// The run failed by itself.
    #[error(transparent)]
    Run(#[from] RunError),
}

/// Whether a signal that ends live runs (SIGINT, SIGTERM, SIGHUP) has come since the last one. From
/// the first one on, or from [`listen`], these signals no longer end the program by themselves:
/// anything it does apart from live runs has to ask.
pub fn interrupted() -> bool {
    #[cfg(target_os = "linux")]
    return runner::interrupted();
    #[cfg(not(target_os = "linux"))]
    false
}

/// Does what a signal that ends live runs (SIGINT) does when it comes from outside.
pub fn interrupt() {
    #[cfg(target_os = "linux")]
    runner::interrupt();
}

/// Has this process, which has one thread and not the rights for live runs, continue in a network
/// of its own, where it may do everything, and from which nothing leads out.
///
/// # Errors
/// The kernel or the settings of the machine do not allow it.
pub fn enter_own_network() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return testbed::enter_private();
    #[cfg(not(target_os = "linux"))]
    Err(io::ErrorKind::Unsupported.into())
}

/// Whether this process may make devices and namespaces.
pub fn is_privileged() -> bool {
    #[cfg(target_os = "linux")]
    return testbed::is_privileged();
    #[cfg(not(target_os = "linux"))]
    false
}

/// The addresses that the machine has in the network namespace of this process.
///
/// # Errors
/// The kernel does not tell.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    #[cfg(target_os = "linux")]
    return testbed::addresses();
    #[cfg(not(target_os = "linux"))]
    Ok(Vec::new())
}

/// Listens to signals before any live run, so that [`interrupted`] tells of them, and they do not
/// end the program.
///
/// # Errors
/// There is nothing to listen with; signals then end the program.
pub fn listen() -> io::Result<()> {
    #[cfg(target_os = "linux")]
    return runner::listen();
    #[cfg(not(target_os = "linux"))]
    Ok(())
}

/// Runs `spec`, which has hosts outside, by its clock.
///
/// # Errors
/// Before anything has started: something that it needs is missing, or could not be made. What ends
/// a run later is in its outcome.
///
/// # Panics
/// If `spec` has no hosts outside.
pub fn run(spec: &RunSpec, recorders: Recorders<'_>, options: &Options) -> Result<Outcome, LiveError> {
    let live = spec.live.as_deref().expect("a run with hosts outside");
    match &live.clock {
        #[cfg(target_os = "linux")]
        Clock::Real => runner::run(spec, recorders, options),
        #[cfg(not(target_os = "linux"))]
        Clock::Real => {
            let _ = options;
            Err(LiveError::Missing("a live run is not possible: TUN devices and network namespaces are Linux's".into()))
        }
        Clock::Replay(capture) => replay::run(spec, recorders, capture),
    }
}
