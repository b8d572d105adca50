//! Two results beside each other, run by run and point by point.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use super::pair::Pair;
use super::parameters::{self, Difference};
use super::points::{self, Point};
use super::side::{ResultSide, Run};
use crate::args::compare::{CompareArgs, Correction};

/// Two results, run by run.
#[derive(Debug)]
pub(super) struct ResultComparison<'a> {
    pub(super) a: &'a ResultSide,
    pub(super) b: &'a ResultSide,
    /// Keys of their scenarios that differ.
    pub(super) parameters: Vec<Difference>,
    pub(super) pairs: Vec<Pair<'a>>,
    /// Points with repetitions, if there are any.
    pub(super) points: Vec<Point<'a>>,
    /// The correction for the number of tests.
    pub(super) correction: Correction,
    /// Runs without a counterpart, by readable names.
    pub(super) alone: [Vec<String>; 2],
}

impl<'a> ResultComparison<'a> {
    pub(super) fn new(
        a: &'a ResultSide,
        b: &'a ResultSide,
        axes: Vec<Difference>,
        args: &CompareArgs,
    ) -> ResultComparison<'a> {
        let parameters = parameters::differences(a, b, axes);
        let correction = args.correct.unwrap_or_default();
        if let ([left], [right]) = (&a.runs[..], &b.runs[..]) {
            // The compared runs may well be two points of a sweep.
            let pairs = vec![Pair { a: left, b: right }];
            let alone = [Vec::new(), Vec::new()];
            return ResultComparison { a, b, parameters, pairs, points: Vec::new(), correction, alone };
        }
        let index = |side: &'a ResultSide| side.runs.iter().map(|run| (run.key(), run)).collect::<BTreeMap<_, _>>();
        let (of_a, of_b) = (index(a), index(b));
        let pairs = a.runs.iter().filter_map(|run| Some(Pair { a: run, b: of_b.get(&run.key())? })).collect();
        let alone = [(a, &of_b), (b, &of_a)].map(|(side, others)| {
            side.runs.iter().filter(|run| !others.contains_key(&run.key())).map(Run::name).collect()
        });
        let mut points = points::all(a, b, args.test);
        points::adjust(&mut points, correction);
        ResultComparison { a, b, parameters, pairs, points, correction, alone }
    }

    pub(super) fn json(&self) -> Value {
        let pairs: Vec<Value> = self.pairs.iter().map(Pair::json).collect();
        let points: Vec<Value> = self.points.iter().map(Point::json).collect();
        let parameters: Vec<Value> = self.parameters.iter().map(Difference::json).collect();
        json!({
            "schema": 1,
            "a": self.a.name,
            "b": self.b.name,
            "parameters": parameters,
            "runs": pairs,
            "correction": points::name(self.correction).map(|[name, _]| name),
            "tests": points::tests(&self.points),
            "points": points,
            "runs_only_in_a": self.alone[0],
            "runs_only_in_b": self.alone[1],
            "runs_failed_in_a": self.a.failed,
            "runs_failed_in_b": self.b.failed,
        })
    }
}
