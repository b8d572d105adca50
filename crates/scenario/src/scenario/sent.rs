//! Scenarios that go to other machines, with what they depend on.

use std::path::Path;

use ackclock_sim::spec::Clock;

use super::{Override, Scenario};
use crate::course::MAX_TRACE;
use crate::inputs::{Files, Inputs};
use crate::own::Own;
use crate::report::ScenarioError;

impl Scenario {
    /// The files that it names, by their names, as they are now; those that cannot be read are
    /// missing. The capture of a replay is not among them.
    pub fn files(&self) -> Files {
        self.inputs.collect(&self.root, MAX_TRACE)
    }

    /// Returns `true` if any run is fed with a capture, whose path is relative to the working
    /// directory.
    pub fn is_replay(&self) -> bool {
        self.points.known().any(|plan| matches!(plan.timing.clock, Some(Clock::Replay(_))))
    }

    /// Reads a text from another machine, with the files that [`Scenario::files`] gave there; in
    /// errors they are in `folder`.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong, as it would be there.
    ///
    /// # Panics
    /// There is an [`Own::problem`].
    pub fn parse_sent(
        folder: &Path,
        name: &str,
        text: &[u8],
        overrides: &[Override],
        own: &Own,
        files: Files,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with_inputs(Inputs::sent(folder, files), name, text, overrides, own)
    }
}
