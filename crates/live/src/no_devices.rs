//! Replacements in a build without devices: no runs by the machine's clock, and signals without an
//! event loop.

use std::io;
use std::net::IpAddr;

use ackclock_sim::Recorders;
use ackclock_sim::spec::RunSpec;

#[cfg(unix)]
pub(crate) use crate::signals::{interrupt, interrupted, listen};
use crate::{LiveError, Options, Outcome};

const MISSING: &str = "this build has no live mode, which requires Linux and the feature `live`";

fn missing() -> LiveError {
    LiveError::Missing(MISSING.to_owned())
}

pub(crate) fn check_available() -> Result<(), LiveError> {
    Err(missing())
}

pub(crate) fn run(_: &RunSpec, _: Recorders<'_>, _: &Options) -> Result<Outcome, LiveError> {
    Err(missing())
}

pub(crate) fn enter_private() -> io::Result<()> {
    Err(io::Error::new(io::ErrorKind::Unsupported, MISSING))
}

pub(crate) fn is_privileged() -> bool {
    false
}

pub(crate) fn addresses() -> io::Result<Vec<IpAddr>> {
    Ok(Vec::new())
}

#[cfg(not(unix))]
pub(crate) fn listen() -> io::Result<()> {
    Ok(())
}

#[cfg(not(unix))]
pub(crate) fn interrupted() -> bool {
    false
}

#[cfg(not(unix))]
pub(crate) fn interrupt() {}
