//! Points of a sweep with several repetitions on each side: whether they differ by more than their
//! repetitions do.
//!
//! Runs with the same seed draw the same random numbers, so that their samples are no independent
//! ones: common random numbers, which make differences clearer (A. M. Law, "Simulation Modeling and
//! Analysis", 5th edition, 2015, sections 10.2 and 11.2). They are compared in pairs.

use std::collections::BTreeMap;

use ackclock_trace::statistics::{
    Interval, benjamini_hochberg, holm, mann_whitney, mean, paired_t, signed_rank, t_interval, welch,
};
use serde_json::{Map, Value, json};

use super::pair::Both;
use super::shown;
use super::side::{ResultSide, Run};
use crate::args::compare::{Correction, Family};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// The repetitions of a point of both sides.
#[derive(Debug)]
pub(super) struct Point<'a> {
    pub(super) a: Vec<&'a Run>,
    pub(super) b: Vec<&'a Run>,
    /// Pairs of runs with the same seed, if one side has no others.
    pairs: Option<Vec<[&'a Run; 2]>>,
    pub(super) test: Test,
    /// The probabilities of what the table shows, adjusted for their number.
    pub(super) adjusted: BTreeMap<String, f64>,
}

/// The comparison of means.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Test {
    PairedT,
    SignedRank,
    Welch,
    MannWhitney,
}

/// A number of all repetitions that have it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct RepetitionSpread {
    pub(super) count: usize,
    pub(super) mean: Option<f64>,
    pub(super) interval: Option<Interval>,
}

/// A number of both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    pub(super) a: RepetitionSpread,
    pub(super) b: RepetitionSpread,
    /// B less A, where runs are paired.
    difference: Option<RepetitionSpread>,
    /// The probability of a difference like that where there is none.
    pub(super) p: Option<f64>,
}

/// The points that both sides have, in the order of the first. None if no point has several
/// repetitions on both sides.
pub(super) fn all<'a>(a: &'a ResultSide, b: &'a ResultSide, family: Option<Family>) -> Vec<Point<'a>> {
    let mut of_b: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    b.runs.iter().for_each(|run| of_b.entry(run.point()).or_default().push(run));
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut points: Vec<[Vec<&Run>; 2]> = Vec::new();
    for run in &a.runs {
        let key = run.point();
        let Some(others) = of_b.get(&key) else { continue };
        let place = *places.entry(key).or_insert_with(|| {
            points.push([Vec::new(), others.clone()]);
            points.len() - 1
        });
        points[place][0].push(run);
    }
    let repeated = points.iter().any(|[a, b]| a.len() > 1 && b.len() > 1);
    if !repeated {
        return Vec::new();
    }
    points.into_iter().map(|[a, b]| Point::new(a, b, family)).collect()
}

/// Adjusts the probabilities of what the table shows for their number.
pub(super) fn adjust(points: &mut [Point<'_>], correction: Correction) {
    let adjust = match correction {
        Correction::Holm => holm,
        Correction::Bh => benjamini_hochberg,
        Correction::None => return,
    };
    let shown = |(place, point): (usize, &Point<'_>)| {
        let names = shown::names(point.a[0]).into_iter();
        names.filter_map(|name| Some((place, point.compare(&name).p?, name))).collect::<Vec<_>>()
    };
    let tests: Vec<_> = points.iter().enumerate().flat_map(shown).collect();
    let adjusted = adjust(&tests.iter().map(|(_, p, _)| *p).collect::<Vec<_>>());
    for ((place, _, name), p) in tests.into_iter().zip(adjusted) {
        points[place].adjusted.insert(name, p);
    }
}

/// For how many tests probabilities were adjusted.
pub(super) fn tests(points: &[Point<'_>]) -> usize {
    points.iter().map(|point| point.adjusted.len()).sum()
}

/// The name of a correction, and that of its column; `None` without one.
pub(super) fn name(correction: Correction) -> Option<[&'static str; 2]> {
    match correction {
        Correction::Holm => Some(["Holm", "Holm"]),
        Correction::Bh => Some(["Benjamini-Hochberg", "BH"]),
        Correction::None => None,
    }
}

impl Test {
    pub(super) fn name(self) -> &'static str {
        match self {
            Test::PairedT => "paired t",
            Test::SignedRank => "signed-rank",
            Test::Welch => "Welch",
            Test::MannWhitney => "Mann-Whitney",
        }
    }
}

impl RepetitionSpread {
    fn of(values: &[f64]) -> RepetitionSpread {
        RepetitionSpread { count: values.len(), mean: mean(values), interval: t_interval(values, CONFIDENCE) }
    }

    /// Half of the interval.
    pub(super) fn half(&self) -> Option<f64> {
        self.interval.map(|interval| (interval.high - interval.low) / 2.0)
    }

    fn json(&self) -> Value {
        let interval = self.interval.map(|interval| [interval.low, interval.high]);
        json!({ "n": self.count, "mean": self.mean, "mean_ci95": interval })
    }
}

impl Compared {
    /// The means.
    pub(super) fn both(&self) -> Both {
        Both { a: self.a.mean, b: self.b.mean }
    }
}

impl<'a> Point<'a> {
    fn new(a: Vec<&'a Run>, b: Vec<&'a Run>, family: Option<Family>) -> Point<'a> {
        let seed = |run: &'a Run| run.summary["run_seed"].as_str();
        let of_b: BTreeMap<&str, &Run> = b.iter().filter_map(|run| Some((seed(run)?, *run))).collect();
        let pairs: Vec<[&Run; 2]> = a.iter().filter_map(|run| Some([*run, of_b.get(seed(run)?)?])).collect();
        let pairs = (pairs.len() == a.len().min(b.len())).then_some(pairs);
        // Less than six signed ranks never differ at 5 %, and means are what the table shows.
        let family = family.unwrap_or(if pairs.is_some() { Family::T } else { Family::Ranks });
        let test = match (family, &pairs) {
            (Family::T, Some(_)) => Test::PairedT,
            (Family::Ranks, Some(_)) => Test::SignedRank,
            (Family::T, None) => Test::Welch,
            (Family::Ranks, None) => Test::MannWhitney,
        };
        Point { a, b, pairs, test, adjusted: BTreeMap::new() }
    }

    /// Number of runs compared in pairs, if they are.
    pub(super) fn paired(&self) -> Option<usize> {
        self.pairs.as_ref().map(Vec::len)
    }

    pub(super) fn compare(&self, name: &str) -> Compared {
        let [a, b] = [&self.a, &self.b].map(|runs| runs.iter().filter_map(|run| run.number(name)).collect::<Vec<_>>());
        let less = |[a, b]: &[&Run; 2]| Some(b.number(name)? - a.number(name)?);
        let differences: Option<Vec<f64>> = self.pairs.as_ref().map(|pairs| pairs.iter().filter_map(less).collect());
        // A number that is always the same is nothing to test.
        let varies = a.iter().chain(&b).any(|value| Some(value) != a.first());
        let repeated = differences.as_ref().map_or(a.len().min(b.len()), Vec::len) > 1;
        let p = (varies && repeated).then(|| match (self.test, &differences) {
            (Test::PairedT, Some(differences)) => paired_t(differences),
            (Test::SignedRank, Some(differences)) => signed_rank(differences),
            (Test::Welch, _) => welch(&a, &b),
            _ => mann_whitney(&a, &b),
        });
        let difference = differences.map(|differences| RepetitionSpread::of(&differences));
        Compared { a: RepetitionSpread::of(&a), b: RepetitionSpread::of(&b), difference, p: p.flatten() }
    }

    /// Returns `true` if all repetitions of a side have the same numbers, so that nothing in them
    /// is random.
    pub(super) fn are_same(runs: &[&Run]) -> bool {
        runs.len() > 1 && runs.windows(2).all(|pair| pair[0].numbers == pair[1].numbers)
    }

    pub(super) fn json(&self) -> Value {
        let mut metrics = Map::new();
        for name in self.a.iter().chain(&self.b).flat_map(|run| run.numbers.keys()) {
            if !metrics.contains_key(name) {
                let compared = self.compare(name);
                let percent = compared.both().percent();
                let entry = json!({
                    "a": compared.a.json(),
                    "b": compared.b.json(),
                    "difference_percent": percent,
                    "difference": compared.difference.map(|difference| difference.json()),
                    "p": compared.p,
                    "p_adjusted": self.adjusted.get(name),
                });
                metrics.insert(name.clone(), entry);
            }
        }
        let mut json =
            json!({ "params": self.a[0].params, "test": self.test.name(), "pairs": self.paired(), "metrics": metrics });
        if let Value::Object(labels) = &self.a[0].summary["labels"] {
            let of_point = labels.iter().filter(|(axis, _)| self.a[0].params.contains_key(*axis));
            json["labels"] = of_point.map(|(axis, name)| (axis.clone(), name.clone())).collect::<Map<_, _>>().into();
        }
        json
    }
}
