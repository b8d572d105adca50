//! Points of a sweep with several repetitions on each side: whether they differ by more than their
//! repetitions do.

use std::collections::BTreeMap;

use ackclock_trace::statistics::{Interval, mann_whitney, mean, t_interval};
use serde_json::{Map, Value, json};

use super::{Both, Run, Side};

/// The confidence of intervals.
const CONFIDENCE: f64 = 0.95;

/// The repetitions of a point of both sides.
#[derive(Debug)]
pub(super) struct Point<'a> {
    pub(super) a: Vec<&'a Run>,
    pub(super) b: Vec<&'a Run>,
}

/// A number of all repetitions that have it.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Spread {
    pub(super) count: usize,
    pub(super) mean: Option<f64>,
    pub(super) interval: Option<Interval>,
}

/// A number of both sides.
#[derive(Clone, Copy, Debug)]
pub(super) struct Compared {
    pub(super) a: Spread,
    pub(super) b: Spread,
    /// The probability of a difference like that where there is none.
    pub(super) p: Option<f64>,
}

/// The points that both sides have, in the order of the first. None if no point has several
/// repetitions on both sides.
pub(super) fn all<'a>(a: &'a Side, b: &'a Side) -> Vec<Point<'a>> {
    let key = |run: &Run| run.summary["params"].to_string();
    let mut of_b: BTreeMap<String, Vec<&Run>> = BTreeMap::new();
    b.runs.iter().for_each(|run| of_b.entry(key(run)).or_default().push(run));
    let mut places: BTreeMap<String, usize> = BTreeMap::new();
    let mut points: Vec<Point<'a>> = Vec::new();
    for run in &a.runs {
        let key = key(run);
        let Some(others) = of_b.get(&key) else { continue };
        let place = *places.entry(key).or_insert_with(|| {
            points.push(Point { a: Vec::new(), b: others.clone() });
            points.len() - 1
        });
        points[place].a.push(run);
    }
    let repeated = points.iter().any(|point| point.a.len() > 1 && point.b.len() > 1);
    if repeated { points } else { Vec::new() }
}

impl Spread {
    fn of(values: &[f64]) -> Spread {
        Spread { count: values.len(), mean: mean(values), interval: t_interval(values, CONFIDENCE) }
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

impl Point<'_> {
    pub(super) fn compare(&self, name: &str) -> Compared {
        let [a, b] = [&self.a, &self.b].map(|runs| runs.iter().filter_map(|run| run.number(name)).collect::<Vec<_>>());
        let p = (a.len() > 1 && b.len() > 1).then(|| mann_whitney(&a, &b)).flatten();
        Compared { a: Spread::of(&a), b: Spread::of(&b), p }
    }

    /// Whether all repetitions of a side have the same numbers, so that nothing in them is random.
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
                    "p": compared.p,
                });
                metrics.insert(name.clone(), entry);
            }
        }
        json!({ "params": self.a[0].summary["params"], "metrics": metrics })
    }
}
