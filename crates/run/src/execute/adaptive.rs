//! Points that are repeated until enough is known of them.
//!
//! The runs that a point needs depend on the runs before, and on nothing else, so that results are
//! the same with any number of threads. A thread that finds no run that is needed for sure begins
//! one that may be; if it is not, its result is dropped.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use ackclock_scenario::{Measures, Scenario};
use ackclock_sim::RunError;

use super::done::{Done, Failure};
use super::order::Jobs;
use crate::progress::{Progress, STEPS};
use crate::selection::Walk;

/// The runs of an adaptive sweep, from where it stands.
pub(super) struct AdaptiveSweep<'a> {
    scenario: &'a Scenario,
    progress: &'a dyn Progress,
    /// The place of job 0 in its point.
    offset: usize,
    /// Points from that of job 0 on.
    points: usize,
    /// The most points that have been begun and are not settled.
    most_open: usize,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// In order.
    open: VecDeque<OpenPoint>,
    /// Number of points begun.
    begun: usize,
    /// Number of runs of settled points, where that is fewer than the most.
    settled: BTreeMap<usize, usize>,
    /// `true` if no more runs are to be begun.
    closed: bool,
}

/// A point of which more runs may be needed.
struct OpenPoint {
    point: usize,
    /// Number of runs begun.
    begun: usize,
    /// Measures of the first of them.
    runs: Vec<Measures>,
    /// Measures of others, whose predecessors have not ended.
    others: BTreeMap<usize, Measures>,
}

impl OpenPoint {
    fn at(point: usize, runs: Vec<Measures>) -> OpenPoint {
        OpenPoint { point, begun: runs.len(), runs, others: BTreeMap::new() }
    }
}

impl<'a> AdaptiveSweep<'a> {
    /// The rest of a walk, for so many threads.
    pub(super) fn from(walk: &Walk<'a>, threads: usize, progress: &'a dyn Progress) -> AdaptiveSweep<'a> {
        let scenario = walk.scenario();
        let offset = walk.of_point().len();
        let points = (walk.left() + offset) / scenario.repeat();
        let mut state = State::default();
        if offset > 0 {
            state.open.push_back(OpenPoint::at(0, walk.of_point().to_vec()));
            state.begun = 1;
        }
        AdaptiveSweep { scenario, progress, offset, points, most_open: 2 * threads, state: Mutex::new(state) }
    }

    /// The state is whole between any two steps.
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn job(&self, point: usize, run: usize) -> usize {
        point * self.scenario.repeat() + run - self.offset
    }

    /// The point of a job, and which of its runs it is.
    fn place(&self, job: usize) -> (usize, usize) {
        let place = job + self.offset;
        (place / self.scenario.repeat(), place % self.scenario.repeat())
    }
}

impl Jobs<Result<Done, Failure>> for AdaptiveSweep<'_> {
    fn next(&self) -> Option<usize> {
        let (least, most) = (self.scenario.repeat_at_least(), self.scenario.repeat());
        let mut state = self.state();
        if state.closed {
            return None;
        }
        let is_needed = |open: &OpenPoint| open.begun < least || open.begun == open.runs.len();
        let mut number = state.open.iter().position(is_needed);
        if number.is_none() && state.begun < self.points && state.open.len() < self.most_open {
            let point = state.begun;
            state.begun += 1;
            state.open.push_back(OpenPoint::at(point, Vec::new()));
            number = Some(state.open.len() - 1);
        }
        let maybe = || {
            let ahead = |open: &OpenPoint| open.begun - open.runs.len();
            let open = state.open.iter().enumerate().filter(|(_, open)| open.begun < most);
            open.min_by_key(|(_, open)| ahead(open)).map(|(number, _)| number)
        };
        let number = number.or_else(maybe)?;
        let open = &mut state.open[number];
        open.begun += 1;
        Some(self.job(open.point, open.begun - 1))
    }

    fn end(&self, job: usize, result: &Result<Done, Failure>) {
        let (point, run) = self.place(job);
        let mut state = self.state();
        let Some(measures) = measures(self.scenario, result) else {
            state.closed = true;
            return;
        };
        let Some(number) = state.open.iter().position(|open| open.point == point) else { return };
        let open = &mut state.open[number];
        open.others.insert(run, measures);
        while let Some(measures) = open.others.remove(&open.runs.len()) {
            open.runs.push(measures);
            if self.scenario.is_settled(&open.runs) {
                let left_out = self.scenario.repeat() - open.runs.len();
                if left_out > 0 {
                    let runs = open.runs.len();
                    state.settled.insert(point, runs);
                    self.progress.leave_out(left_out as u64 * STEPS);
                }
                state.open.remove(number);
                return;
            }
        }
    }

    fn is_left_out(&self, job: usize) -> bool {
        let (point, run) = self.place(job);
        let mut state = self.state();
        // Jobs are asked about in order.
        while state.settled.first_key_value().is_some_and(|(settled, _)| *settled < point) {
            state.settled.pop_first();
        }
        state.settled.get(&point).is_some_and(|&runs| run >= runs)
    }
}

/// The measures of a run, none at all if it failed; `None` if it ends the sweep.
fn measures(scenario: &Scenario, result: &Result<Done, Failure>) -> Option<Measures> {
    match result {
        Ok(done) if done.broken_off.is_none() => Some(scenario.measure_summary(&done.summary)),
        Ok(done) => done.has_failed().then(Measures::new),
        Err(Failure::Run(error)) => (*error != RunError::Interrupted).then(Measures::new),
        Err(Failure::Point(_)) => Some(Measures::new()),
        Err(Failure::Live(_) | Failure::Output(_)) => None,
    }
}
