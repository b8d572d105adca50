//! The measurements of a scenario in its runs, and their combined results.

use std::cell::OnceCell;

use ackclock_trace::Summary;
use serde::Serialize;
use serde_json::Value as Json;

use super::Scenario;
use crate::claim::Claim;
use crate::evaluation::{Evaluation, Miss};
use crate::expect::{Expect, Measures};
use crate::measurement::{Gathered, Measurement};
use crate::plan::Plan;
use crate::until::Until;

/// The most points that are wrong of which each has a note.
const MAX_WRONG: usize = 10;

impl Scenario {
    /// The points that were read in advance, at least one.
    pub(crate) fn plans(&self) -> impl Iterator<Item = &Plan> {
        self.points.known()
    }

    /// Number of wrong points among those that were read in advance. Their runs fail.
    pub fn wrong(&self) -> usize {
        self.points.wrong().len()
    }

    /// A note on each of them, or on some and their number.
    pub(super) fn notes_on_wrong(&self) -> Vec<String> {
        let wrong = self.points.wrong().len();
        let note = |point: usize| {
            let error = self.points.plan(point, &self.sweep).err()?;
            Some(format!("the point {} is wrong: {}", self.sweep.name(point, |_| true), error.on_a_line()))
        };
        let mut notes: Vec<String> = self.points.wrong().take(MAX_WRONG).filter_map(note).collect();
        let further = wrong.saturating_sub(MAX_WRONG);
        if further > 0 {
            notes.push(format!("{further} further points are wrong"));
        }
        if wrong > 0 {
            notes.push(
                "the runs of points that are wrong fail, the others are done; `sweep.where` leaves points out"
                    .to_owned(),
            );
        }
        notes
    }

    /// Returns `true` if points are repeated until a confidence interval is narrow enough.
    pub fn is_adaptive(&self) -> bool {
        self.until.is_some()
    }

    /// Returns `true` if a point needs no further runs, given the measures of each of its runs, in
    /// order. A sweep that is not adaptive needs all.
    pub fn is_settled(&self, runs: &[Measures]) -> bool {
        let enough = |until: &Until| {
            // A failed measurement is no value.
            let values: Vec<f64> = runs.iter().filter_map(|run| *run.get(self.expects.len())?).collect();
            runs.len() as u64 >= self.sweep.at_least && until.is_met(&values)
        };
        runs.len() >= self.repeat() || self.until.as_ref().is_some_and(enough)
    }

    /// The condition that ends the repetitions of a point, in words, and the points that never met
    /// it, from the measures of all runs in their order.
    pub fn unsettled(&self, measures: &[Option<Measures>]) -> Option<(String, Vec<usize>)> {
        let until = self.until.as_ref()?;
        let values = |runs: &[Option<Measures>]| -> Option<Vec<f64>> {
            // One that was left out is missing where the condition was met.
            let runs =
                runs.iter().map(Option::as_ref).collect::<Option<Vec<_>>>().filter(|_| runs.len() == self.repeat());
            Some(runs?.iter().filter_map(|run| *run.get(self.expects.len())?).collect())
        };
        let not_met = |runs: &[Option<Measures>]| values(runs).is_some_and(|values| !until.is_met(&values));
        let points = measures.chunks(self.repeat()).enumerate().filter(|(_, runs)| not_met(runs));
        Some((until.text(), points.map(|(point, _)| point).collect()))
    }

    /// The measurements of each run: those of the expectations, and the one that settles a point.
    fn measurements(&self) -> impl Iterator<Item = &Measurement> {
        let until = self.until.iter().map(|until| &until.measurement);
        self.expects.iter().map(|expect| &expect.measurement).chain(until)
    }

    /// The measures of one run from its summary as JSON: the expectations', and the one that
    /// settles its point.
    pub fn measure(&self, summary: &Json) -> Measures {
        self.measurements().map(|measurement| measurement.measure(summary)).collect()
    }

    /// The measures from the summary itself, whose flows become JSON one by one, if they are
    /// needed.
    pub fn measure_summary<P>(&self, summary: &Summary<P>) -> Measures {
        let mut gathered: Vec<Gathered> = self.measurements().map(Measurement::nothing_gathered).collect();
        if gathered.is_empty() {
            return Vec::new();
        }
        for flow in &summary.flows {
            let json = OnceCell::new();
            for (measurement, gathered) in self.measurements().zip(&mut gathered) {
                measurement.gather(gathered, &flow.id, || json.get_or_init(|| to_json(flow)));
            }
        }
        let rest = to_json(&summary.without_flows());
        self.measurements().zip(gathered).map(|(measured, gathered)| measured.measure_with(&rest, gathered)).collect()
    }

    /// Number of expectations.
    pub fn expectations(&self) -> usize {
        self.expects.len()
    }

    /// The published results that expectations stand for, with the numbers of these.
    pub fn claims(&self) -> impl Iterator<Item = (usize, &Claim)> {
        let expects = self.expects.iter().enumerate();
        expects.filter_map(|(number, expect)| Some((number, expect.claim.as_deref()?)))
    }

    /// Number of comparisons that [`Scenario::evaluations`] makes, at most if the sweep is
    /// adaptive: one for each run, or for each point by a statistic of its runs.
    pub fn checks(&self) -> usize {
        self.expects.iter().map(|expect| expect.checks(&self.sweep)).sum()
    }

    /// The outcome of every expectation at every point that it is about, from the measures of all
    /// runs in their order; `None` for runs that a settled point did not need.
    pub fn evaluations(&self, measures: &[Option<Measures>]) -> Vec<Evaluation> {
        let judged = |(number, expect): (usize, &Expect)| expect.judge(number, &self.sweep, measures);
        self.expects.iter().enumerate().flat_map(judged).collect()
    }

    /// The misses among the evaluations, in the order of the points and runs.
    pub fn misses(&self, evaluations: &[Evaluation]) -> Vec<Miss> {
        let mut misses: Vec<Miss> = evaluations.iter().flat_map(Evaluation::misses).collect();
        misses.sort_by_key(|miss| (miss.point, miss.run));
        misses
    }
}

/// Numbers, names and tables of them are all that a summary has.
fn to_json(part: &impl Serialize) -> Json {
    serde_json::to_value(part).unwrap_or_default()
}
