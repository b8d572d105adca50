//! The live clock: packets of real kernels and applications, read from TUN devices, through the
//! links and queues of a run, in real time; and the replay of recorded packets, in virtual time.
//!
//! [`Engine`] is the run itself, without devices and without a clock: packets as bytes in, packets
//! as bytes out, time as an argument. `runner` drives it by the machine's clock, `replay` by a
//! capture. `testbed` creates namespaces, devices and addresses, and removes them.
//!
//! Devices are Linux's, and the feature `devices` (on by default) can be left out. Everything but
//! runs by the machine's clock remains: `no_devices` is what answers for those.

// What only the runner uses is part of every build, and is checked in those that have it.
#![cfg_attr(not(all(feature = "devices", target_os = "linux")), allow(dead_code, unused_imports))]

mod capture;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod commands;
mod control;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod devices;
#[cfg(not(all(feature = "devices", target_os = "linux")))]
#[path = "no_devices.rs"]
mod devices;
mod engine;
mod in_process;
mod offload;
#[cfg(unix)]
mod peer;
mod prefix;
mod replay;
mod router;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod runner;
#[cfg(all(unix, not(all(feature = "devices", target_os = "linux"))))]
mod signals;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod testbed;
mod watch;

use std::io;
use std::net::IpAddr;
use std::path::PathBuf;
use std::sync::Arc;

use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_sim::{Recorders, RunError};
use ackclock_trace::Summary;

pub use control::{ChangeReader, Control, Made, Order};
pub use engine::{Engine, Outgoing};
pub use offload::Offload;
pub use watch::{LONGEST_STALL, Late, LiveWatch, Moment};

/// Where a run puts what is not in its summary.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// The directory for the output of commands, `ID.stdout` and `ID.stderr`; without, only what is
    /// measured of it is kept.
    pub commands: Option<PathBuf>,
    /// The capture (pcapng) of what passes the devices.
    pub capture: Option<PathBuf>,
    /// The most bytes of a packet that it has; all without.
    pub snap: Option<u32>,
    /// Whoever watches how punctual a run in real time is.
    pub watch: Option<Arc<dyn LiveWatch>>,
    /// Where changes come from while the run goes on.
    pub control: Option<Control>,
    /// What reads the changes that a capture has; without, it must have none.
    pub changes: Option<ChangeReader>,
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

/// Whether this build can run by the machine's clock: with the feature `devices`, on Linux. What
/// such a run needs of the machine is seen when it begins.
///
/// # Errors
/// [`LiveError::Missing`] if it cannot.
pub fn check_available() -> Result<(), LiveError> {
    devices::check_available()
}

/// Whether a signal that ends live runs (SIGINT, SIGTERM, SIGHUP) has come since the last one. From
/// the first one on, or from [`listen`], these signals no longer end the program by themselves:
/// anything it does apart from live runs has to ask.
pub fn interrupted() -> bool {
    devices::interrupted()
}

/// Has this process, which has one thread and not the rights for live runs, continue in a network
/// of its own, where it may do everything, and from which nothing leads out.
///
/// # Errors
/// The kernel or the settings of the machine do not allow it, or this build has no live runs.
pub fn enter_own_network() -> io::Result<()> {
    devices::enter_private()
}

/// Whether the program at the other end of a Unix socket is of the user of this one, or of root.
/// Where the kernel does not say whose it is, the permissions of the socket have to do.
///
/// # Errors
/// The other end is gone.
#[cfg(unix)]
pub fn is_same_user(socket: &impl std::os::fd::AsFd) -> io::Result<bool> {
    peer::is_same_user(socket)
}

/// Whether this process may make devices and namespaces.
pub fn is_privileged() -> bool {
    devices::is_privileged()
}

/// The addresses that the machine has in the network namespace of this process.
///
/// # Errors
/// The kernel does not tell.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    devices::addresses()
}

/// Listens to signals before any live run, so that [`interrupted`] tells of them, and they do not
/// end the program.
///
/// # Errors
/// There is nothing to listen with; signals then end the program.
pub fn listen() -> io::Result<()> {
    devices::listen()
}

/// Has a signal come that ends the live run, as by a person; also a run in virtual time, if it asks
/// ([`interrupted`]).
pub fn interrupt() {
    devices::interrupt();
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
        Clock::Real => devices::run(spec, recorders, options),
        Clock::Replay(capture) => replay::run(spec, recorders, capture, options.changes.as_ref()),
    }
}
