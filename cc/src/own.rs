//! Congestion controllers from outside.

use std::fmt;
use std::ops::RangeInclusive;
use std::panic::{RefUnwindSafe, UnwindSafe};
use std::sync::Arc;

use ackclock_units::Random;
use ackclock_units::outside::{OwnParameter, interned};

use crate::CongestionControl;

/// Makes a controller for a connection.
type Build = dyn Fn(&[f64], Random) -> Box<dyn CongestionControl> + Send + Sync;

/// A controller that is not of ackclock's own, under a name of its own in scenarios.
///
/// ```
/// use ackclock_cc::{NewReno, NewRenoConfig, OwnController};
///
/// let mine = OwnController::new("mine", |_values, _random| Box::new(NewReno::new(NewRenoConfig::default())))
///     .parameter("beta", 0.8, 0.1..=0.99);
/// assert_eq!(mine.name(), "mine");
/// ```
#[derive(Clone)]
pub struct OwnController {
    name: &'static str,
    parameters: Vec<OwnParameter>,
    build: Arc<Build>,
}

// A specification outlives a run that panics; what `build` has made for it does not.
impl UnwindSafe for OwnController {}
impl RefUnwindSafe for OwnController {}

impl OwnController {
    /// A controller called `name`, which is not the name of another one. `build` makes one for a
    /// connection, from the values of its parameters in their order, and a stream for what it
    /// decides by chance.
    pub fn new(
        name: &str,
        build: impl Fn(&[f64], Random) -> Box<dyn CongestionControl> + Send + Sync + 'static,
    ) -> OwnController {
        OwnController { name: interned(name), parameters: Vec::new(), build: Arc::new(build) }
    }

    /// One more number that a scenario may set, as a key beside `kind`: its default, and the values
    /// that it may have.
    #[must_use]
    pub fn parameter(mut self, name: &str, default: f64, range: RangeInclusive<f64>) -> OwnController {
        self.parameters.push(OwnParameter::new(name, default, range));
        self
    }

    /// Its name.
    pub fn name(&self) -> &'static str {
        self.name
    }

    /// Its parameters.
    pub fn parameters(&self) -> &[OwnParameter] {
        &self.parameters
    }

    /// The values of its parameters out of the box.
    pub fn defaults(&self) -> Vec<f64> {
        self.parameters.iter().map(|of| of.default).collect()
    }

    pub(crate) fn build(&self, values: &[f64], random: Random) -> Box<dyn CongestionControl> {
        (self.build)(values, random)
    }
}

impl PartialEq for OwnController {
    /// Names are unique.
    fn eq(&self, other: &OwnController) -> bool {
        self.name == other.name
    }
}

impl fmt::Debug for OwnController {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OwnController").field("name", &self.name).field("parameters", &self.parameters).finish()
    }
}
