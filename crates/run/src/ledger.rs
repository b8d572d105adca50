//! The measurements of the runs so far, and the verdict of the expectations.

use ackclock_scenario::{Evaluation, Measures, Scenario};
use ackclock_trace::Summary;
use serde_json::{Map, Value};

use crate::selection::{Selection, Walk};

/// The runs of a scenario that have been done, and what was measured in them.
pub struct Ledger<'a> {
    pub(crate) scenario: &'a Scenario,
    /// The runs that are done and left.
    pub walk: Walk<'a>,
    /// `true` if the ledger is about all runs, and not a part of them.
    pub is_whole: bool,
    /// The measurements of each run, of all.
    pub measures: Vec<Option<Measures>>,
    /// The verdict of the expectations, after the last run.
    pub evaluations: Vec<Evaluation>,
}

impl<'a> Ledger<'a> {
    pub(crate) fn new(scenario: &'a Scenario, selection: Selection) -> Ledger<'a> {
        let is_whole = selection.is_all();
        let walk = Walk::new(scenario, selection);
        Ledger { scenario, walk, is_whole, measures: Vec::new(), evaluations: Vec::new() }
    }

    /// The summary of a run as it is written.
    pub(crate) fn entitled(&self, run: usize, summary: Summary<()>) -> Summary<Map<String, Value>> {
        let mut summary = summary.with_params(self.scenario.params(run));
        summary.labels = self.scenario.labels(run);
        summary.index = run as u64;
        summary
    }

    /// Keeps what was measured in a run.
    pub(crate) fn keep(&mut self, run: usize, measures: Measures) {
        self.walk.step(run, &measures);
        if self.is_whole {
            // The runs between were not needed, or not completed.
            self.measures.resize(run, None);
            self.measures.push(Some(measures));
        }
    }

    /// The expectations, after the last run: they are about all runs.
    pub(crate) fn judge(&mut self, ended_early: bool) -> Vec<Value> {
        let scenario = self.scenario;
        if self.walk.next().is_some() || ended_early || !self.is_whole {
            return Vec::new();
        }
        self.evaluations = scenario.evaluations(&self.measures);
        as_json(scenario, &self.evaluations)
    }
}

/// Evaluations as they are written.
pub fn as_json(scenario: &Scenario, evaluations: &[Evaluation]) -> Vec<Value> {
    let as_json = |evaluation: &Evaluation| {
        let run = evaluation.point * scenario.repeat();
        evaluation.json(scenario.params(run), scenario.labels(run))
    };
    evaluations.iter().map(as_json).collect()
}
