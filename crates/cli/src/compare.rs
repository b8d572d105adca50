//! `ackclock compare`: the numbers of two results beside each other.
//!
//! Runs are matched by the sweep's parameters and their number; flows, groups of flows, workloads
//! with their size classes, links, hosts and programs by id. Every number of the summary is
//! compared, under the name by which an `[[expect]]` refers to it; the table shows the main ones.
//! Points with several repetitions on both sides are compared by their means and spreads. Captures
//! are compared packet by packet ([`captures`]).

mod captures;
mod parameters;
mod points;
mod select;
mod side;
mod sums;
mod table;

use std::collections::BTreeMap;

use anyhow::bail;
use serde_json::{Map, Value, json};

use crate::args::compare::{CompareArgs, Correction};
use crate::console::print;
use parameters::Difference;
use points::Point;
use side::{ResultSide, Run, WITH_ID};

/// Compares; the status to end with.
pub(crate) fn run(args: &CompareArgs) -> anyhow::Result<u8> {
    if let Some(b) = &args.b {
        match [&args.a, b].map(|path| captures::is_capture(path)) {
            [true, true] => {
                if args.is_about_results() {
                    bail!("{} and {b} are captures: --a, --b, --test, --correct and --all-rows do not apply", args.a);
                }
                let _ = print(&captures::compare(&args.a, b, args.within, args.json)?)?;
                return Ok(0);
            }
            [true, false] => bail!("{} is a capture and {b} is none: compare two captures or two results", args.a),
            [false, true] => bail!("{b} is a capture and {} is none: compare two captures or two results", args.a),
            [false, false] => {}
        }
    }
    if args.within.is_some() {
        bail!("--within applies to captures");
    }
    let mut a = ResultSide::read(&args.a, "--a", &args.of_a)?;
    let mut b = ResultSide::read(args.b.as_ref().unwrap_or(&args.a), "--b", &args.of_b)?;
    let axes = select::align(&mut a, &mut b)?;
    let comparison = ResultComparison::new(&a, &b, axes, args);
    if comparison.pairs.is_empty() {
        bail!(
            "{} and {} have no run in common: they are sweeps over different parameters; --a and --b select points",
            a.name,
            b.name
        );
    }
    if comparison.points.is_empty() && (args.test.is_some() || args.correct.is_some()) {
        bail!("--test and --correct require a point that both sides have with several repetitions");
    }
    let text = if args.json { format!("{}\n", comparison.json()) } else { table::text(&comparison, args.all_rows) };
    let _ = print(&text)?;
    Ok(0)
}

/// Two results, run by run.
#[derive(Debug)]
struct ResultComparison<'a> {
    a: &'a ResultSide,
    b: &'a ResultSide,
    /// Keys of their scenarios that differ.
    parameters: Vec<Difference>,
    pairs: Vec<Pair<'a>>,
    /// Points with repetitions, if there are any.
    points: Vec<Point<'a>>,
    /// The correction for the number of tests.
    correction: Correction,
    /// Runs without a counterpart, by readable names.
    alone: [Vec<String>; 2],
}

/// A run and its counterpart.
#[derive(Debug)]
struct Pair<'a> {
    a: &'a Run,
    b: &'a Run,
}

/// A number of both; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Both {
    a: Option<f64>,
    b: Option<f64>,
}

impl<'a> ResultComparison<'a> {
    fn new(a: &'a ResultSide, b: &'a ResultSide, axes: Vec<Difference>, args: &CompareArgs) -> ResultComparison<'a> {
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

    fn json(&self) -> Value {
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

impl Pair<'_> {
    /// The ids of a list that both have, and those that only one has.
    fn ids(&self, list: &str) -> (Vec<String>, [Vec<String>; 2]) {
        let of = |run: &Run| run.ids(list).map(str::to_owned).collect::<Vec<_>>();
        let (of_a, of_b) = (of(self.a), of(self.b));
        let only = |ids: &[String], others: &[String]| ids.iter().filter(|id| !others.contains(id)).cloned().collect();
        let alone = [only(&of_a, &of_b), only(&of_b, &of_a)];
        (of_a.into_iter().filter(|id| of_b.contains(id)).collect(), alone)
    }

    fn both(&self, name: &str) -> Both {
        Both { a: self.a.number(name), b: self.b.number(name) }
    }

    fn json(&self) -> Value {
        let side = |run: &Run| {
            let mut head = Map::new();
            for key in ["title", "clock", "seed", "run", "index", "run_seed", "params", "labels", "partial"] {
                head.extend(run.summary.get(key).map(|value| (key.to_owned(), value.clone())));
            }
            Value::Object(head)
        };
        let mut only = [Map::new(), Map::new()];
        for list in WITH_ID {
            let (_, alone) = self.ids(list);
            for (only, ids) in only.iter_mut().zip(alone) {
                if !ids.is_empty() {
                    only.insert(list.to_owned(), ids.into());
                }
            }
        }
        let mut metrics = Map::new();
        let names = self.a.numbers.keys().chain(self.b.numbers.keys());
        for name in names {
            if !metrics.contains_key(name) {
                let both = self.both(name);
                let entry = json!({ "a": both.a, "b": both.b, "difference_percent": both.percent() });
                metrics.insert(name.clone(), entry);
            }
        }
        let [only_in_a, only_in_b] = only;
        json!({
            "a": side(self.a),
            "b": side(self.b),
            "metrics": metrics,
            "only_in_a": only_in_a,
            "only_in_b": only_in_b,
        })
    }
}

impl Both {
    /// By how much the second differs from the first, in percent of it.
    fn percent(self) -> Option<f64> {
        let (a, b) = (self.a?, self.b?);
        let percent = if a == b { 0.0 } else { (b - a) / a.abs() * 100.0 };
        percent.is_finite().then_some(percent)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn differences_are_in_percent_of_the_first() {
        let percent = |a, b| Both { a: Some(a), b: Some(b) }.percent();
        assert_eq!(percent(4.0, 5.0), Some(25.0));
        assert_eq!(percent(-4.0, -5.0), Some(-25.0));
        assert_eq!(percent(0.0, 0.0), Some(0.0));
        assert_eq!(percent(0.0, 1.0), None);
        assert_eq!(percent(1e-300, 1e300), None);
        assert_eq!(Both { a: None, b: Some(1.0) }.percent(), None);
    }
}
