//! The ends of runs.

use ackclock_live::LiveError;
use ackclock_scenario::ScenarioError;
use ackclock_sim::RunError;
use ackclock_trace::Summary;

use crate::partial::Sealed;

/// A run that has come to its end, or has something to show for the time that it took.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) summary: Summary<()>,
    /// The additional files that it has written, as far as requested.
    pub(crate) records: Vec<Sealed>,
    /// Why it has not come to its end.
    pub(crate) broken_off: Option<BrokenOff>,
}

impl Done {
    /// Returns `true` if the run failed by itself, as a run of a sweep may.
    pub(crate) fn has_failed(&self) -> bool {
        matches!(&self.broken_off, Some(BrokenOff::Failed(error)) if error.is::<RunError>())
    }
}

/// The reason why a run with hosts outside ends before its time.
#[derive(Debug)]
pub enum BrokenOff {
    /// A person.
    Interrupted,
    /// Something that it needs is gone.
    Failed(anyhow::Error),
}

/// Why a run gave nothing.
#[derive(Debug)]
pub enum Failure {
    /// The run failed by itself.
    Run(RunError),
    /// Its point of the sweep is wrong.
    Point(Box<ScenarioError>),
    /// The run has hosts outside, and could not begin.
    Live(LiveError),
    /// The records could not be written.
    Output(anyhow::Error),
}
