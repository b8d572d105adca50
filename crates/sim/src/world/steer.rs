//! Changes to a run in progress.
//!
//! A change is made at a time before which everything has been done, and nothing else: what it
//! decides depends on that time alone, and a run in which it is made at the same time again goes
//! the same way.

use std::ops::ControlFlow;

use ackclock_emulator::Change;
use ackclock_units::{Span, Time};

use super::{PROGRESS_INTERVAL, World};
use crate::build;
use crate::error::RunError;
use crate::index::DirectionId;
use crate::record::Recorders;

/// Wakeups after which a run is steered again: some milliseconds of the machine's time at most.
const TURN: u64 = 1 << 12;

/// A controller of a run in virtual time.
pub trait Helm {
    /// Everything before `now` has been done, and nothing else. Says before what time to go on, at
    /// least a nanosecond; it is asked again then, or earlier. It may make changes
    /// ([`World::change`]), wait, or break the run off.
    fn take(&mut self, now: Time, world: &mut World) -> ControlFlow<(), Time>;
}

impl World {
    /// Changes a link direction at `change.at`, or a nanosecond after scheduled changes at that
    /// time; returns the time of the change. All events before `change.at` have been handled, and
    /// no others.
    ///
    /// # Panics
    /// The direction does not exist, or its link does not allow the change (a token bucket, slots,
    /// a shared medium; a rate that follows a trace).
    pub fn change(&mut self, direction: DirectionId, mut change: Change) -> Time {
        if let Some(queue) = &mut change.queue {
            build::resolve(queue, self.flows.iter().map(|flow| &*flow.id));
        }
        let before = Time::from_nanos(change.at.as_nanos().saturating_sub(1));
        while before >= self.next_edge {
            self.pass_edges(before);
        }
        assert!(!self.has_medium(direction), "a link with a shared medium does not change");
        self.catch_up_direction(before, direction);
        let at = self.directions[direction].change(change);
        self.rearm_direction(direction);
        at
    }

    /// Runs to the end of the scenario as [`World::run`] does, steered; `false` if the helm has
    /// broken it off, and it has ended there.
    ///
    /// # Errors
    /// Corrupted data, or an interruption by a recorder.
    ///
    /// # Panics
    /// As [`World::run`].
    pub fn run_by(&mut self, mut recorders: Recorders<'_>, helm: &mut dyn Helm) -> Result<bool, RunError> {
        self.start(&recorders);
        let mut reached = Time::ZERO;
        while reached < self.end {
            let ControlFlow::Continue(until) = helm.take(reached, self) else {
                self.end_at(reached);
                return self.complete(&mut recorders).map(|()| false);
            };
            let until = until.max(reached + Span::from_nanos(1)).min(self.end);
            reached = self.go_on(until, &mut recorders)?;
        }
        self.complete(&mut recorders).map(|()| true)
    }

    /// Handles events before `until`, or some of them; returns the time before which all have been
    /// handled.
    fn go_on(&mut self, mut until: Time, recorders: &mut Recorders<'_>) -> Result<Time, RunError> {
        let begun = self.handled;
        while let Some(now) = self.step(until) {
            self.keep_up(now, recorders)?;
            if self.handled.is_multiple_of(PROGRESS_INTERVAL) {
                self.check_some_data()?;
            }
            if self.handled - begun >= TURN {
                // What is due at this very time is done.
                until = until.min(now + Span::from_nanos(1));
            }
        }
        // Though nothing is due, those who watch see that time passes.
        let before = Time::from_nanos(until.as_nanos().saturating_sub(1));
        while before >= self.next_edge {
            self.pass_edges(before);
            self.keep_up(before, recorders)?;
        }
        Ok(until)
    }
}
