//! Congestion controllers from outside.

use ackclock_units::Random;

use crate::CongestionControl;

/// A controller that is not of ackclock's own, under a name of its own in scenarios.
#[derive(Debug)]
pub struct OwnController {
    /// Its name: not that of another one.
    pub name: &'static str,
    /// The numbers that a scenario may set, as keys beside `kind`.
    pub parameters: &'static [Parameter],
    /// Makes one for a connection, from the values of its parameters in their order, and a stream
    /// for what it decides by chance.
    pub build: fn(values: &[f64], random: Random) -> Box<dyn CongestionControl>,
}

impl PartialEq for OwnController {
    /// Names are unique.
    fn eq(&self, other: &OwnController) -> bool {
        self.name == other.name
    }
}

/// A parameter of an [`OwnController`].
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Parameter {
    /// Its key in a scenario.
    pub name: &'static str,
    /// What it is unless a scenario says otherwise.
    pub default: f64,
    /// The least that it may be.
    pub min: f64,
    /// The most that it may be.
    pub max: f64,
}
