//! The simulator: hosts, links and flows in virtual time.
//!
//! A [`spec::RunSpec`] describes a run. [`run`] executes it and returns its summary;
//! [`run_recorded`] also writes records. [`World`] is the run itself, for callers that advance or
//! inspect it step by step. A run reads no clock and draws only from its own random streams: the
//! same specification gives the same summary on every machine.
//!
//! # Components
//!
//! ```text
//!            RunSpec ---> World ---> Summary, records
//!
//!  flow 0:   sender                                            receiver
//!            host 0 --> direction 0 --> ... --> direction 2k -->  host 1
//!            host 0 <-- direction 1 <-- ... <-- direction 2k+1 <-- host 1
//!                           |
//!                    queue, transmitter, impairments, delay line
//!
//!  wakeups:  one per direction, one per host
//! ```
//!
//! Each link has two directions, each flow two hosts. A component has one wakeup: for a direction
//! the next arrival at its far end, for a host its next timer or application event. The loop takes
//! the earliest wakeup, advances that component to its time, passes its packets on, and rearms
//! it. Nothing else runs, and time passes only between wakeups.
//!
//! # The life of a packet
//!
//! 1. A host sends a segment or a datagram. Its contents enter a slot of the pool; the packet
//!    itself is a handle with slot, length, ECN bits, flow hash, route and hop.
//! 2. The packet is offered to the next direction of its route. The direction first dequeues all
//!    that was due until now, then enqueues or drops the packet.
//! 3. It leaves the queue exactly when the transmission before it ends, and may be lost,
//!    duplicated, corrupted or delayed further.
//! 4. At its arrival it is offered to the next direction (2), or its host reads the contents.
//! 5. The slot is freed with its last copy.
//!
//! # Invariants
//!
//! - Time never goes back. At equal times directions come before hosts, and each kind in the order
//!   that [`spec::Ties`] selects.
//! - Every packet is delivered, dropped or lost once, unless the run ends before.
//! - Payload that reaches an application is checked against [`ackclock_packet::pattern`].
//! - Recording, watching and measuring change no result.
//!
//! # Example
//!
//! A NewReno flow over a link of 10 Mbit/s with an RTT of 20 ms:
//!
//! ```
//! use std::ops::ControlFlow;
//!
//! use ackclock_aqm::{FifoConfig, Limit};
//! use ackclock_cc::NewRenoConfig;
//! use ackclock_emulator::Impairments;
//! use ackclock_sim::spec::*;
//! use ackclock_tcp::profile::Profile;
//! use ackclock_units::{Rate, Span, Time};
//!
//! let direction = DirectionSpec {
//!     rate: Rate::from_bps(10_000_000),
//!     burst: None,
//!     device: None,
//!     delay: Span::from_millis(10),
//!     overhead: Overhead::default(),
//!     queue: QueueSpec::Pfifo(FifoConfig { limit: Limit::Packets(100) }),
//!     impairments: Impairments::default(),
//!     course: Default::default(),
//! };
//! let link = LinkSpec {
//!     name: "bottleneck".into(),
//!     forward: direction.clone(),
//!     reverse: direction,
//!     medium: None,
//!     is_interface: false,
//! };
//! let profile = Profile::linux_6_1();
//! let host = HostSpec::Endpoint(EndpointSpec {
//!     profile: profile.name.to_owned(),
//!     config: profile.endpoint,
//!     cc: CcSpec::NewReno(NewRenoConfig::default()),
//! });
//! let group = FlowGroup {
//!     path: vec![0],
//!     split: None,
//!     mptcp: None,
//!     reverse: false,
//!     sender: host.clone(),
//!     receiver: host,
//!     bytes: None,
//!     application: Application::Bulk,
//!     write_size: FlowSpec::WRITE_SIZE,
//!     dscp: 0,
//!     abort: None,
//!     schedule: Vec::new(),
//!     metrics: None,
//!     hosts: None,
//! };
//! let flow = FlowSpec {
//!     id: "reno.0".into(),
//!     group: group.into(),
//!     start: Time::ZERO,
//!     stop: None,
//!     ends: None,
//!     via: None,
//! };
//! let spec = RunSpec {
//!     title: String::new(),
//!     duration: Span::from_secs(10),
//!     seed: 1,
//!     run: 0,
//!     ties: Ties::Random,
//!     links: vec![link],
//!     flows: vec![flow],
//!     sums: Vec::new(),
//!     windows: Vec::new(),
//!     reordering: None,
//!     live: None,
//! };
//!
//! let summary = ackclock_sim::run(&spec, &mut |_| ControlFlow::Continue(()))?;
//! assert!(summary.flows[0].goodput_bps > 8e6);
//! assert!(summary.flows[0].rtt_ms.quantiles.p50.is_some_and(|rtt| rtt >= 20.0));
//! # Ok::<(), ackclock_sim::RunError>(())
//! ```

mod build;
mod capture;
mod datagrams;
mod direction;
mod effort;
mod error;
mod flow;
mod host;
mod index;
mod log;
mod memory;
mod record;
mod reordering;
mod series;
pub mod spec;
mod stock;
mod truth;
mod watch;
mod window;
mod world;

use std::ops::ControlFlow;

use ackclock_trace::Summary;
use ackclock_units::Time;

pub use build::{RECEIVER_PORT, SENDER_PORT};
pub use effort::most_packets;
pub use error::RunError;
pub use index::{DirectionId, FlowId, HostId};
pub use memory::{Memory, Population};
pub use record::{
    CapturePoint, CaptureRecorder, QlogPoint, QlogRecorder, QueueRecorder, Recorders, ReorderingRecorder, SeriesConfig,
    SeriesRecorder,
};
pub use stock::{EXPECTED_STOCK_RANGES, IntegrityError, STOCK_RANGES};
pub use truth::LOST_ON_LINK;
pub use world::{Helm, Inbound, Lookout, Outbound, World};

/// Runs `spec` to its end. `progress` is called regularly with the simulated time, and may stop the
/// run.
///
/// # Errors
/// Corrupted data, a failure of an algorithm from outside, too many flows at a time, or
/// [`RunError::Interrupted`] if `progress` stopped the run.
pub fn run(spec: &spec::RunSpec, progress: &mut dyn FnMut(Time) -> ControlFlow<()>) -> Result<Summary<()>, RunError> {
    run_recorded(spec, Recorders::default(), progress)
}

/// Runs `spec` as [`run`] does, with the same result, and passes records to `recorders`.
///
/// # Errors
/// As [`run`]; a recorder may stop the run too.
pub fn run_recorded(
    spec: &spec::RunSpec,
    recorders: Recorders<'_>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<Summary<()>, RunError> {
    let mut world = World::new(spec);
    world.run(recorders, progress)?;
    Ok(world.into_summary())
}

/// Runs `spec` as [`run_recorded`] does. If more flows arrive than may exist at a time, the result
/// is the summary until then with [`RunError::TooMany`].
///
/// # Errors
/// As [`run_recorded`], but for [`RunError::TooMany`].
pub fn run_kept(
    spec: &spec::RunSpec,
    recorders: Recorders<'_>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<(Summary<()>, Option<RunError>), RunError> {
    let mut world = World::new(spec);
    let ended = world.run(recorders, progress);
    kept(world, ended)
}

/// Runs `spec` as [`run_kept`] does, with the same result if the helm changes nothing. If the helm
/// stops the run, the result is the summary until then with [`RunError::Interrupted`].
///
/// # Errors
/// As [`run_kept`]; an interruption only by a recorder.
pub fn run_steered(
    spec: &spec::RunSpec,
    recorders: Recorders<'_>,
    helm: &mut dyn Helm,
) -> Result<(Summary<()>, Option<RunError>), RunError> {
    let mut world = World::new(spec);
    match world.run_by(recorders, helm) {
        Ok(true) => Ok((world.into_summary(), None)),
        Ok(false) => Ok((world.into_summary(), Some(RunError::Interrupted))),
        ended => kept(world, ended.map(|_| ())),
    }
}

fn kept(world: World, ended: Result<(), RunError>) -> Result<(Summary<()>, Option<RunError>), RunError> {
    match ended {
        Ok(()) => Ok((world.into_summary(), None)),
        Err(error @ RunError::TooMany { .. }) => Ok((world.into_summary(), Some(error))),
        Err(error) => Err(error),
    }
}

#[cfg(test)]
mod tests;
