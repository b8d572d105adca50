//! The parts of a run by the machine's clock.

pub(crate) use crate::runner::{interrupt, interrupted, listen, run};
pub(crate) use crate::testbed::{addresses, enter_private, is_privileged};

use crate::LiveError;

pub(crate) fn check_available() -> Result<(), LiveError> {
    Ok(())
}
