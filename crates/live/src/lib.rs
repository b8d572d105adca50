//! Runs with external hosts: packets of real kernels and applications, read from TUN devices, pass
//! through the links and queues of a run in real time; recorded packets do so in virtual time.
//!
//! ```text
//!   kernel A       TUN device A                                      TUN device B       kernel B
//!      |                |                                                 ^                |
//!      +--- packets ----+                                                 +--- packets ----+
//!                       | read: bytes, time of arrival                    | write: bytes
//!  - - - - - - - - - - -|- - - - - - - - - - - - - - - - - - - - - - - - -|- - - - runner / replay
//!                       v  Engine::arrive                 Engine::advance |
//!      +---------------------------------- Engine ------------------------------------------+
//!      |  entry: host, flow --> router --> World: queues, links --> Outbound --> Outgoing   |
//!      |                          |         ^   |                                   ^       |
//!      |                          |         |   +--> endpoints of ackclock (hosts   |       |
//!      |                          |         +------- without a device)              |       |
//!      |                          +--- ICMP message to the source ------------------+       |
//!      +------------------------------------------------------------------------------------+
//! ```
//!
//! [`Engine`] is the run itself, without devices and without a clock: packets as bytes in, packets
//! as bytes out, time as an argument. `runner` drives it by the machine's clock ([`run`] with
//! [`Clock::Real`]), `replay` by a capture ([`Clock::Replay`]), `stacks` by network stacks in this
//! process ([`Clock::Virtual`]), which the other two call as well. `router` decrements hop limits,
//! fragments, and writes ICMP messages. `offload` divides segments into packets. `capture` reads
//! and writes pcapng files. `testbed` creates namespaces, devices and addresses, and removes them;
//! `commands` starts programs in them.
//!
//! # Invariants
//! - *The time of arrival is the time of the read.* It is also the time in a capture. Everything
//!   due until then is done before the packet enters.
//! - *A replay decides as the live run did.* The course of a run depends on scenario, seed, the
//!   arrivals with their times, and the changes made during the run. A capture contains all of
//!   these, and the packets to hosts, with which a replay of the same scenario compares its own.
//! - *Lateness changes no decision.* The engine does everything at its due time, however late it is
//!   called. Only the packets that it hands over are late, and the summary says by how much.
//! - *Payload is not copied* between two kernels: packets stay in the buffers they were read into.
//! - *Nothing remains.* Everything that a run creates on the machine is registered before, and
//!   removed after the run or, if the run was killed, by the next one.
//!
//! # Example
//! An echo request from `left`, a host behind a device, and the reply of `right`, a host in this
//! process. No device is needed: the example is the device.
//!
//! ```
//! use ackclock_live::Engine;
//! use ackclock_scenario::Scenario;
//! use ackclock_units::Time;
//! use etherparse::PacketBuilder;
//!
//! let scenario = br#"
//!     schema = 1
//!     title  = "ping"
//!     [run]
//!     duration = "1s"
//!     [links.wire]
//!     rate  = "1mbit"
//!     delay = "10ms"
//!     queue = "pfifo"
//!     [hosts.left]
//!     tun     = "left0"
//!     address = "10.0.0.1/24"
//!     [hosts.right]
//!     address = "10.0.0.2/24"
//!     [[paths]]
//!     between = ["left", "right"]
//!     path    = ["wire"]
//! "#;
//! let spec = Scenario::parse("ping.toml", scenario, &[])?.spec(0);
//! let mut engine = Engine::new(&spec);
//!
//! let request = PacketBuilder::ipv4([10, 0, 0, 1], [10, 0, 0, 2], 64).icmpv4_echo_request(1, 1);
//! let mut bytes = Vec::new();
//! request.write(&mut bytes, &[0; 97])?;
//! engine.buffer()[..bytes.len()].copy_from_slice(&bytes);
//! engine.arrive(Time::ZERO, 0, bytes.len());
//!
//! // Twice 125 bytes at 1 Mbit/s, and twice 10 ms.
//! let reply = engine.advance(Time::from_secs(1)).expect("a reply");
//! assert_eq!((reply.node, reply.at, reply.bytes.len()), (0, Time::from_millis(22), 125));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! # Features
//! `devices` (default) contains devices, namespaces and the event loop, all of them Linux's.
//! Without it, everything but runs by the machine's clock remains; `no_devices` refuses those.

// Everything but the loop itself is part of every build and checked by builds with devices.
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
mod outcome;
#[cfg(unix)]
mod peer;
mod prefix;
mod replay;
mod router;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod runner;
#[cfg(all(unix, not(all(feature = "devices", target_os = "linux"))))]
mod signals;
mod stacks;
#[cfg(all(feature = "devices", target_os = "linux"))]
mod testbed;
mod watch;

use std::io;
use std::net::IpAddr;
use std::ops::ControlFlow;

use ackclock_sim::Recorders;
use ackclock_sim::spec::{Clock, RunSpec};
use ackclock_units::Time;

pub use capture::{CapturePacket, CapturePackets};
pub use control::{ChangeReader, Control, Made, Order};
pub use engine::{Engine, Outgoing};
pub use offload::Offload;
pub use outcome::{LiveError, Options, Outcome};
pub use watch::{LONGEST_STALL, Late, LiveWatch, Moment};

/// Checks that this build can run by the machine's clock: with the feature `devices`, on Linux. The
/// requirements on the machine are checked when a run begins.
///
/// # Errors
/// [`LiveError::Missing`] if it cannot.
pub fn check_available() -> Result<(), LiveError> {
    devices::check_available()
}

/// Returns `true` if a signal that ends live runs (SIGINT, SIGTERM, SIGHUP) has arrived since the
/// last live run. After the first live run, or [`listen`], these signals no longer end the program
/// by themselves: it has to ask.
pub fn interrupted() -> bool {
    devices::interrupted()
}

/// Moves this process, which must have a single thread, into a user and network namespace of its
/// own. Live runs need no further privileges there; nothing leads out of it.
///
/// # Errors
/// The kernel or the machine's settings do not allow it, or this build has no live runs.
pub fn enter_own_network() -> io::Result<()> {
    devices::enter_private()
}

/// Whether the program at the other end of a Unix socket belongs to the same user, or to root.
/// `true` where the kernel does not tell, since the permissions of the socket restrict it as well.
///
/// # Errors
/// The other end no longer exists.
#[cfg(unix)]
pub fn is_same_user(socket: &impl std::os::fd::AsFd) -> io::Result<bool> {
    peer::is_same_user(socket)
}

/// Returns `true` if this process may create devices and namespaces.
pub fn is_privileged() -> bool {
    devices::is_privileged()
}

/// The machine's addresses in the network namespace of this process.
///
/// # Errors
/// The kernel refuses the request.
pub fn addresses() -> io::Result<Vec<IpAddr>> {
    devices::addresses()
}

/// Listens to signals before any live run, so that [`interrupted`] reports them and they do not end
/// the program.
///
/// # Errors
/// There are no resources to listen with; signals then end the program.
pub fn listen() -> io::Result<()> {
    devices::listen()
}

/// Sends this process a signal that ends a live run, and a run in virtual time that checks
/// [`interrupted`].
pub fn interrupt() {
    devices::interrupt();
}

/// Runs `spec`, which has external hosts, by its clock.
///
/// # Errors
/// A requirement is missing, or something could not be created; nothing has run then. The error
/// that ends a run later is part of its outcome.
///
/// # Panics
/// If `spec` has no external hosts.
pub fn run(spec: &RunSpec, recorders: Recorders<'_>, options: &Options) -> Result<Outcome, LiveError> {
    let live = spec.live.as_deref().expect("a run with hosts outside");
    match &live.clock {
        Clock::Real => devices::run(spec, recorders, options),
        Clock::Replay(capture) => replay::run(spec, recorders, capture, options.changes.as_ref()),
        Clock::Virtual => run_stacks(spec, recorders, options, &mut |_| match interrupted() {
            true => ControlFlow::Break(()),
            false => ControlFlow::Continue(()),
        }),
    }
}

/// Runs `spec`, whose external hosts have stacks of their own ([`Clock::Virtual`]), with the capture
/// of `options`. `progress` is called regularly with the simulated time, and may stop the run.
///
/// # Errors
/// The capture cannot be created.
///
/// # Panics
/// If `spec` has no external hosts.
pub fn run_stacks(
    spec: &RunSpec,
    recorders: Recorders<'_>,
    options: &Options,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<Outcome, LiveError> {
    let capture =
        options.capture.as_deref().map(|path| capture::CaptureWriter::create(path, spec, options.snap)).transpose()?;
    Ok(stacks::run(spec, recorders, capture, progress))
}

/// As [`run_stacks`], without a capture.
///
/// # Panics
/// If `spec` has no external hosts.
pub fn run_virtual(
    spec: &RunSpec,
    recorders: Recorders<'_>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Outcome {
    stacks::run(spec, recorders, None, progress)
}
