//! Tables whose columns are found while rows are added.

use std::collections::BTreeMap;

use ackclock_trace::metrics::figures::MAIN;
use serde_json::{Map, Value, json};

/// The values of flows, links or runs: a row for each of them and each run.
#[derive(Debug)]
pub(crate) struct SubjectTable {
    /// `senders`, `flows`, `subflows`, `links`, `kinds`, `groups`, `workloads`, `hosts`, `live` or `run`.
    pub(crate) name: &'static str,
    /// The run of each row, by its place in the report.
    pub(crate) runs: Vec<usize>,
    /// Names: `id`, and other names that distinguish rows, such as `cc`.
    pub(crate) names: BTreeMap<&'static str, NameColumn>,
    /// Numbers by their keys, in the order in which they were found.
    pub(crate) metrics: Vec<(String, Vec<Option<f64>>)>,
    places: BTreeMap<String, usize>,
}

/// A column of names.
#[derive(Debug, Default)]
pub(crate) struct NameColumn {
    pub(crate) known: Vec<String>,
    pub(crate) rows: Vec<usize>,
}

impl NameColumn {
    fn push(&mut self, name: &str) {
        let known = self.known.iter().position(|known| known == name).unwrap_or_else(|| {
            self.known.push(name.to_owned());
            self.known.len() - 1
        });
        self.rows.push(known);
    }
}

impl SubjectTable {
    pub(crate) fn new(name: &'static str) -> SubjectTable {
        let (runs, names, metrics, places) = Default::default();
        SubjectTable { name, runs, names, metrics, places }
    }

    /// Adds a row: an object of the summary of a run, and the names that distinguish it.
    pub(crate) fn add(&mut self, run: usize, object: &Value, names: &[(&'static str, &str)]) {
        let row = self.runs.len();
        self.runs.push(run);
        for &(key, name) in names {
            self.names.entry(key).or_default().push(name);
        }
        self.collect("", object, row);
        for (_, values) in &mut self.metrics {
            values.resize(row + 1, None);
        }
    }

    fn collect(&mut self, name: &str, value: &Value, row: usize) {
        match value {
            Value::Object(keys) => {
                for (key, value) in keys {
                    let name = if name.is_empty() { key.clone() } else { format!("{name}.{key}") };
                    self.collect(&name, value, row);
                }
            }
            Value::Number(number) => {
                let Some(number) = number.as_f64() else { return };
                let place = match self.places.get(name) {
                    Some(&place) => place,
                    None => {
                        self.places.insert(name.to_owned(), self.metrics.len());
                        self.metrics.push((name.to_owned(), Vec::new()));
                        self.metrics.len() - 1
                    }
                };
                let values = &mut self.metrics[place].1;
                values.resize(row, None);
                values.push(Some(number));
            }
            _ => {}
        }
    }

    /// Forgets the metrics that have the same value in all rows, and names that do not differ.
    pub(crate) fn forget_constants(&mut self) {
        if self.runs.len() > 1 {
            self.metrics.retain(|(name, values)| is_main(name) || values.iter().any(|value| *value != values[0]));
        }
        self.places.clear();
    }

    pub(crate) fn json(&self) -> Value {
        let names = self.names.iter();
        let metrics = self.metrics.iter();
        json!({
            "runs": self.runs,
            "names": names.map(|(key, names)| (key.to_string(), json!({ "known": names.known, "rows": names.rows })))
                .collect::<Map<_, _>>(),
            "metrics": metrics.map(|(name, values)| (name.clone(), numbers(values.iter().copied())))
                .collect::<Map<_, _>>(),
        })
    }
}

/// Returns true if the metric is a main one, which a page shows first.
pub(crate) fn is_main(name: &str) -> bool {
    MAIN.contains(&name)
}

/// Numbers to six digits: a picture shows fewer.
pub(crate) fn numbers(values: impl Iterator<Item = Option<f64>>) -> Value {
    Value::Array(values.map(|value| value.map_or(Value::Null, |value| json!(rounded(value)))).collect())
}

fn rounded(value: f64) -> f64 {
    if value == value.trunc() && value.abs() < 1e15 {
        return value;
    }
    format!("{value:.5e}").parse().unwrap_or(value)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_long_as_there_are_rows() {
        let mut subject = SubjectTable::new("flows");
        subject.add(0, &json!({ "a": 1, "x": { "p50": 0.123_456_789 } }), &[("id", "f.0")]);
        subject.add(0, &json!({ "b": 2, "a": 1 }), &[("id", "f.1")]);
        subject.add(1, &json!({ "a": 1, "id": "text", "none": null }), &[("id", "f.0")]);
        let json = subject.json();
        assert_eq!(json["runs"], json!([0, 0, 1]));
        assert_eq!(json["names"]["id"], json!({ "known": ["f.0", "f.1"], "rows": [0, 1, 0] }));
        let metrics = json!({ "a": [1.0, 1.0, 1.0], "x.p50": [0.123_457, null, null], "b": [null, 2.0, null] });
        assert_eq!(json["metrics"], metrics);
        subject.forget_constants();
        assert_eq!(subject.metrics.iter().map(|metric| metric.0.as_str()).collect::<Vec<_>>(), ["x.p50", "b"]);
    }
}
