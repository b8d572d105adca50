//! A run of one side beside its counterpart.

use serde_json::{Map, Value, json};

use super::side::{Run, WITH_ID};

/// A run and its counterpart.
#[derive(Debug)]
pub(super) struct Pair<'a> {
    pub(super) a: &'a Run,
    pub(super) b: &'a Run,
}

/// A number of both; `None` where there is none.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Both {
    pub(super) a: Option<f64>,
    pub(super) b: Option<f64>,
}

impl Pair<'_> {
    /// The ids of a list that both have, and those that only one has.
    pub(super) fn ids(&self, list: &str) -> (Vec<String>, [Vec<String>; 2]) {
        let of = |run: &Run| run.ids(list).map(str::to_owned).collect::<Vec<_>>();
        let (of_a, of_b) = (of(self.a), of(self.b));
        let only = |ids: &[String], others: &[String]| ids.iter().filter(|id| !others.contains(id)).cloned().collect();
        let alone = [only(&of_a, &of_b), only(&of_b, &of_a)];
        (of_a.into_iter().filter(|id| of_b.contains(id)).collect(), alone)
    }

    pub(super) fn both(&self, name: &str) -> Both {
        Both { a: self.a.number(name), b: self.b.number(name) }
    }

    pub(super) fn json(&self) -> Value {
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
    pub(super) fn percent(self) -> Option<f64> {
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
