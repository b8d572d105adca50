//! Other parameters for a discipline that is in use, as `tc qdisc change` sets them.

use std::any::Any;
use std::error::Error;
use std::fmt;

/// Why a discipline keeps its parameters.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChangeError {
    /// The parameters are those of another discipline.
    OtherDiscipline,
    /// This one is set when the discipline is made.
    Fixed(&'static str),
    /// A discipline from outside that has no hook for it.
    OwnIsFixed,
    /// The parameters do not fit together, or one is out of range.
    Invalid(&'static str),
}

impl fmt::Display for ChangeError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ChangeError::OtherDiscipline => f.write_str("these are parameters of another discipline"),
            ChangeError::Fixed(name) => write!(f, "{name} cannot be changed"),
            ChangeError::OwnIsFixed => f.write_str("this discipline has no hook for other parameters"),
            ChangeError::Invalid(problem) => f.write_str(problem),
        }
    }
}

impl Error for ChangeError {}

/// The parameters as those of one discipline.
pub(crate) fn parameters<C: Any>(config: &dyn Any) -> Result<&C, ChangeError> {
    config.downcast_ref().ok_or(ChangeError::OtherDiscipline)
}

/// An error if `changed`.
pub(crate) fn fixed(name: &'static str, changed: bool) -> Result<(), ChangeError> {
    if changed { Err(ChangeError::Fixed(name)) } else { Ok(()) }
}

/// An error if there is a problem.
pub(crate) fn valid(problem: Option<&'static str>) -> Result<(), ChangeError> {
    problem.map_or(Ok(()), |problem| Err(ChangeError::Invalid(problem)))
}
