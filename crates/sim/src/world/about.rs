//! The run's own fields in the summary.

use ackclock_units::Span;

use crate::spec::{Clock, RunSpec};

/// The run's own fields in the summary.
#[derive(Debug)]
pub(super) struct About {
    pub(super) title: String,
    pub(super) seed: u64,
    pub(super) run: u64,
    pub(super) clock: &'static str,
    pub(super) duration: Span,
}

impl About {
    pub(super) fn new(spec: &RunSpec) -> About {
        let clock = match spec.live.as_deref().map(|live| &live.clock) {
            None | Some(Clock::Virtual) => "virtual",
            Some(Clock::Real) => "live",
            Some(Clock::Replay(_)) => "replay",
        };
        About { title: spec.title.clone(), seed: spec.seed, run: spec.run, clock, duration: spec.duration }
    }
}
