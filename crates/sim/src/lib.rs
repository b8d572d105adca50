//! The virtual world: hosts, traffic and the loop.
//!
//! [`spec::RunSpec`] says what a run consists of; [`run`] runs it and gives its summary,
//! [`run_recorded`] with records of what happened on the way; [`World`] is the run itself for
//! callers that want to look inside. No clock is read and nothing is drawn but from the run's own
//! streams: the same specification gives the same summary on every machine.

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
    CapturePoint, CaptureRecorder, QueueRecorder, Recorders, ReorderingRecorder, SeriesConfig, SeriesRecorder,
};
pub use stock::{EXPECTED_STOCK_RANGES, IntegrityError, STOCK_RANGES};
pub use truth::LOST_ON_LINK;
pub use world::{Helm, Inbound, Lookout, Outbound, World};

/// Runs `spec` to its end. `progress` is told the simulated time now and then, and may break the
/// run off.
///
/// # Errors
/// Corrupted data, or an interruption.
pub fn run(spec: &spec::RunSpec, progress: &mut dyn FnMut(Time) -> ControlFlow<()>) -> Result<Summary<()>, RunError> {
    run_recorded(spec, Recorders::default(), progress)
}

/// Runs `spec` as [`run`] does, with the same result, and gives records on the way.
///
/// # Errors
/// Corrupted data, or an interruption, by a recorder too.
pub fn run_recorded(
    spec: &spec::RunSpec,
    recorders: Recorders<'_>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<Summary<()>, RunError> {
    let mut world = World::new(spec);
    world.run(recorders, progress)?;
    Ok(world.into_summary())
}

/// Runs `spec` as [`run_recorded`] does. A run in which more flows come than may exist at a time
/// gives its summary until then, and [`RunError::TooMany`].
///
/// # Errors
/// Corrupted data, or an interruption, by a recorder too.
pub fn run_kept(
    spec: &spec::RunSpec,
    recorders: Recorders<'_>,
    progress: &mut dyn FnMut(Time) -> ControlFlow<()>,
) -> Result<(Summary<()>, Option<RunError>), RunError> {
    let mut world = World::new(spec);
    let ended = world.run(recorders, progress);
    kept(world, ended)
}

/// Runs `spec` as [`run_kept`] does, with the same result if the helm changes nothing. A run that
/// the helm breaks off gives its summary until then, and [`RunError::Interrupted`].
///
/// # Errors
/// Corrupted data, or an interruption by a recorder.
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
