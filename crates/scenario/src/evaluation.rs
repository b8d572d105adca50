//! The outcome of an expectation at a point of the sweep: judged run by run, or by a statistic of
//! the runs, with the spread.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use crate::claim::Claim;

/// The runs of a point that have to meet the bounds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum OfRuns {
    /// Each by itself.
    Each,
    /// A quantile of their values, in percent, with its name.
    Quantile(u32, &'static str),
    /// The mean of their values.
    Mean,
}

impl OfRuns {
    pub(crate) const NAMES: [&str; 7] = ["each", "median", "mean", "p5", "p25", "p75", "p95"];

    pub(crate) fn named(name: &'static str) -> OfRuns {
        match name {
            "median" => OfRuns::Quantile(50, name),
            "p5" => OfRuns::Quantile(5, name),
            "p25" => OfRuns::Quantile(25, name),
            "p75" => OfRuns::Quantile(75, name),
            "p95" => OfRuns::Quantile(95, name),
            "mean" => OfRuns::Mean,
            _ => OfRuns::Each,
        }
    }

    fn name(self) -> &'static str {
        match self {
            OfRuns::Each => "each",
            OfRuns::Quantile(_, name) => name,
            OfRuns::Mean => "mean",
        }
    }
}

/// The bounds of a value.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Bounds {
    pub(crate) at_least: Option<f64>,
    pub(crate) at_most: Option<f64>,
}

impl Bounds {
    /// A value that is not there meets no bound.
    fn meets(self, found: Option<f64>) -> bool {
        found.filter(|found| found.is_finite()).is_some_and(|found| {
            self.at_most.is_none_or(|bound| found <= bound) && self.at_least.is_none_or(|bound| found >= bound)
        })
    }

    fn text(self) -> String {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) if least == most => format!("exactly {most}"),
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
        }
    }
}

/// Why there is no value: something has none in one of the runs.
const NO_SAMPLES: &str = "has no samples";
/// Why there is no value: a ratio to 0 is none, whichever way it would go.
const RELATIVE_TO_ZERO: &str = "has no value, since what it is relative to is 0";

/// Why there is no value: there is no result.
const FAILED: &str = "has no value, since the run failed";

/// An expectation at one point of the sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct Evaluation {
    /// The number of the expectation in the file, from 0.
    pub number: usize,
    /// The published result that it stands for.
    pub claim: Option<Arc<Claim>>,
    /// The number of the point, from 0.
    pub point: usize,
    /// The number of its first run.
    first: usize,
    /// The metric, with its reduction, its window and what it is relative to.
    pub metric: String,
    /// The bounds.
    pub expected: String,
    /// The lower one, inclusive.
    pub at_least: Option<f64>,
    /// The upper one, inclusive.
    pub at_most: Option<f64>,
    /// The runs that have to meet them: `each`, or the name of a statistic of their values.
    pub runs: &'static str,
    /// The value of every run in their order; `None` without samples, and for a ratio to 0.
    pub values: Vec<Option<f64>>,
    /// Spread over the runs that have a value.
    pub spread: Option<RunSpread>,
    /// The statistic, if one is judged and all runs have a value; to a quantile a ratio of more
    /// than 0 to 0 is larger than any other.
    pub found: Option<f64>,
    /// Number of runs that meet the bounds by themselves.
    pub runs_met: usize,
    /// `true` if the expectation is met.
    pub met: bool,
    /// The runs that miss the bounds, if each has to meet them.
    missed: Vec<usize>,
    /// The runs in which it is relative to 0.
    to_zero: Vec<usize>,
    /// The runs that failed, or whose run to compare with did.
    failed: Vec<usize>,
}

impl Evaluation {
    /// Judges a point, which has the number of its first run. The value that a run is relative to
    /// is 0 where its own is not finite.
    pub(crate) fn new(
        (point, first): (usize, usize),
        metric: String,
        bounds: Bounds,
        runs: OfRuns,
        values: Vec<Option<f64>>,
        failed: Vec<usize>,
    ) -> Evaluation {
        let is_ratio_to_zero = |value: Option<f64>| value.is_some_and(|value| !value.is_finite());
        let to_zero = (0..values.len()).filter(|&run| is_ratio_to_zero(values[run])).collect();
        let ordered: Option<Vec<f64>> = values.iter().map(|value| value.filter(|value| !value.is_nan())).collect();
        let ordered = ordered.and_then(RunSpread::of);
        let found = match (runs, ordered) {
            (OfRuns::Quantile(percent, _), Some(spread)) => Some(spread.quantile(percent)),
            (OfRuns::Mean, Some(spread)) => Some(spread.mean),
            _ => None,
        };
        let found = found.filter(|found| found.is_finite());
        let values: Vec<Option<f64>> =
            values.into_iter().map(|value| value.filter(|value| value.is_finite())).collect();
        let spread = RunSpread::of(values.iter().copied().flatten().collect());
        let missed: Vec<usize> =
            values.iter().enumerate().filter(|(_, value)| !bounds.meets(**value)).map(|(run, _)| run).collect();
        let met = match runs {
            OfRuns::Each => missed.is_empty(),
            _ => bounds.meets(found),
        };
        let runs_met = values.len() - missed.len();
        Evaluation {
            number: 0,
            claim: None,
            point,
            first,
            metric,
            expected: bounds.text(),
            at_least: bounds.at_least,
            at_most: bounds.at_most,
            runs: runs.name(),
            values,
            spread,
            found,
            runs_met,
            met,
            missed: if runs == OfRuns::Each { missed } else { Vec::new() },
            to_zero,
            failed,
        }
    }

    /// The evaluation of this expectation.
    pub(crate) fn of(self, number: usize, claim: Option<Arc<Claim>>) -> Evaluation {
        Evaluation { number, claim, ..self }
    }

    /// Why there is no value in a run, by its number at the point, or for a statistic.
    pub fn reason(&self, run: Option<usize>) -> Option<&'static str> {
        let among = |runs: &[usize]| run.map_or(!runs.is_empty(), |run| runs.contains(&run));
        let lacks = run.map_or(self.values.contains(&None), |run| self.values.get(run).is_some_and(Option::is_none));
        lacks.then_some(match (among(&self.failed), among(&self.to_zero)) {
            (true, _) => FAILED,
            (false, true) => RELATIVE_TO_ZERO,
            (false, false) => NO_SAMPLES,
        })
    }

    /// Number of comparisons: one for each run, or one of a statistic of them.
    pub fn checks(&self) -> usize {
        if self.runs == "each" { self.values.len() } else { 1 }
    }

    /// The misses: a run each, or the point as a whole.
    pub(crate) fn misses(&self) -> Vec<Miss> {
        let (point, first, runs) = (self.point, self.first, self.values.len());
        let miss = |run: Option<usize>, metric: &str, found| Miss {
            point,
            run: run.map(|run| first + run),
            metric: metric.to_owned(),
            found,
            reason: self.reason(run),
            expected: self.expected.clone(),
        };
        if self.runs == "each" {
            let of = |&run: &usize| miss(Some(run), &self.metric, self.values[run]);
            return self.missed.iter().map(of).collect();
        }
        if self.met {
            return Vec::new();
        }
        vec![miss(None, &format!("{} over {runs} runs of {}", self.runs, self.metric), self.found)]
    }

    /// The evaluation as JSON; `params` are the axes with their values at the point, and `labels`
    /// the names of these.
    pub fn json(&self, params: Map<String, Value>, labels: BTreeMap<String, String>) -> Value {
        let mut json = json!({
            "metric": self.metric,
            "params": params,
            "expected": self.expected,
            "runs": self.runs,
            "met": self.met,
            "found": self.found,
            "reason": self.reason(None),
            "runs_met": self.runs_met,
            "checks": self.checks(),
            "misses": self.misses().len(),
            "values": self.values,
            "spread": self.spread.as_ref().map(RunSpread::json),
        });
        if let (false, Some(json)) = (labels.is_empty(), json.as_object_mut()) {
            json.insert("labels".to_owned(), json!(labels));
        }
        if let (Some(claim), Some(json)) = (&self.claim, json.as_object_mut()) {
            claim.add_to(json);
        }
        json
    }
}

/// An expectation that was not met.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// The number of the point, from 0.
    pub point: usize,
    /// The number of the run, from 0, in the order of the sweep; `None` for a statistic of the runs
    /// of the point.
    pub run: Option<usize>,
    /// The metric, with its reduction and what it is relative to.
    pub metric: String,
    /// The measured value.
    pub found: Option<f64>,
    /// Why there is no value, if there is none.
    pub reason: Option<&'static str>,
    /// The bounds.
    pub expected: String,
}

/// The spread of the values of a point's runs. Quantiles are interpolated between neighbours
/// (Hyndman and Fan's definition 7).
#[derive(Clone, Debug, PartialEq)]
pub struct RunSpread {
    /// The values in ascending order; never empty.
    sorted: Vec<f64>,
    /// Mean.
    pub mean: f64,
}

impl RunSpread {
    fn of(mut values: Vec<f64>) -> Option<RunSpread> {
        if values.is_empty() {
            return None;
        }
        values.sort_by(f64::total_cmp);
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        Some(RunSpread { sorted: values, mean })
    }

    /// A quantile, in percent.
    pub fn quantile(&self, percent: u32) -> f64 {
        let place = (self.sorted.len() - 1) as f64 * f64::from(percent.min(100)) / 100.0;
        let below = place.floor();
        let (low, high) = (self.sorted[below as usize], self.sorted[place.ceil() as usize]);
        // Equal ones are not to differ by rounding.
        if low == high { low } else { low + (high - low) * (place - below) }
    }

    fn json(&self) -> Value {
        json!({
            "min": self.quantile(0),
            "p25": self.quantile(25),
            "p50": self.quantile(50),
            "p75": self.quantile(75),
            "max": self.quantile(100),
            "mean": self.mean,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_lie_between_neighbours() {
        let spread = RunSpread::of(vec![4.0, 1.0, 3.0, 2.0]).unwrap();
        // Places 0, 0.75, 1.5, 2.25 and 3 of [1, 2, 3, 4].
        assert_eq!([0, 25, 50, 75, 100].map(|percent| spread.quantile(percent)), [1.0, 1.75, 2.5, 3.25, 4.0]);
        assert_eq!(spread.mean, 2.5);
        assert_eq!(RunSpread::of(vec![7.0]).unwrap().quantile(75), 7.0);
        assert_eq!(RunSpread::of(Vec::new()), None);
    }

    #[test]
    fn the_runs_are_judged_each_or_together() {
        let bounds = Bounds { at_least: None, at_most: Some(3.0) };
        let values = || vec![Some(1.0), Some(2.0), Some(9.0)];
        let of = |runs, values| Evaluation::new((2, 6), "m".to_owned(), bounds, runs, values, Vec::new());
        let each = of(OfRuns::Each, values());
        assert_eq!((each.met, each.runs_met, each.found), (false, 2, None));
        // The third run of the third point of three runs each.
        assert_eq!(each.misses().iter().map(|miss| (miss.run, miss.found)).collect::<Vec<_>>(), [(Some(8), Some(9.0))]);
        let median = of(OfRuns::named("median"), values());
        assert_eq!((median.met, median.found, median.misses()), (true, Some(2.0), Vec::new()));
        let mean = of(OfRuns::named("mean"), values());
        assert_eq!((mean.met, mean.found, mean.misses()[0].run), (false, Some(4.0), None));
        assert_eq!(mean.misses()[0].metric, "mean over 3 runs of m");
        // A run without samples is not left out silently.
        let gap = of(OfRuns::named("median"), vec![Some(1.0), None, Some(2.0)]);
        assert_eq!((gap.met, gap.found, gap.runs_met), (false, None, 2));
        assert_eq!(gap.spread.as_ref().map(|spread| spread.quantile(100)), Some(2.0));
        assert_eq!(gap.misses()[0].reason, Some(NO_SAMPLES));
    }

    #[test]
    fn a_ratio_to_zero_meets_no_bound() {
        let bounds = Bounds { at_least: Some(3.0), at_most: None };
        let of = |runs, values| Evaluation::new((0, 0), "m".to_owned(), bounds, runs, values, Vec::new());
        // 5/0, 0/0, 5/1, and one without samples.
        let values = || vec![Some(f64::INFINITY), Some(f64::NAN), Some(5.0), None];
        let each = of(OfRuns::Each, values());
        assert_eq!((each.met, each.runs_met, each.values.clone()), (false, 1, vec![None, None, Some(5.0), None]));
        let reasons: Vec<_> = each.misses().iter().map(|miss| (miss.run, miss.reason)).collect();
        let to_zero = Some(RELATIVE_TO_ZERO);
        assert_eq!(reasons, [(Some(0), to_zero), (Some(1), to_zero), (Some(3), Some(NO_SAMPLES))]);
        // No statistic hides it.
        let high = of(OfRuns::named("p95"), values());
        assert_eq!((high.met, high.found, high.misses()[0].reason), (false, None, to_zero));
        assert_eq!(high.json(Map::new(), BTreeMap::new())["reason"], RELATIVE_TO_ZERO);
        // The size of 5/0 does not matter to a quantile of others, and does to the statistics that
        // it takes part in.
        let values = || vec![Some(f64::INFINITY), Some(4.0), Some(5.0)];
        for (runs, found) in [("median", Some(5.0)), ("p25", Some(4.5)), ("p75", None), ("mean", None)] {
            let one = of(OfRuns::named(runs), values());
            assert_eq!((one.met, one.found, one.reason(None)), (found.is_some(), found, to_zero), "{runs}");
        }
        let pair = of(OfRuns::named("median"), vec![Some(f64::INFINITY), Some(5.0)]);
        assert_eq!((pair.met, pair.found), (false, None));
    }

    #[test]
    fn a_run_that_failed_meets_no_bound() {
        let bounds = Bounds { at_least: Some(0.0), at_most: None };
        let values = || vec![Some(1.0), None, Some(2.0)];
        let of = |runs| Evaluation::new((0, 0), "m".to_owned(), bounds, runs, values(), vec![1]);
        let each = of(OfRuns::Each);
        assert_eq!((each.met, each.runs_met), (false, 2));
        assert_eq!(
            each.misses().iter().map(|miss| (miss.run, miss.reason)).collect::<Vec<_>>(),
            [(Some(1), Some(FAILED))]
        );
        let median = of(OfRuns::named("median"));
        assert_eq!((median.met, median.found, median.misses()[0].reason), (false, None, Some(FAILED)));
    }
}
