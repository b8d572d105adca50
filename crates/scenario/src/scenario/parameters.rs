//! The values that vary from run to run, and their names.

use std::collections::BTreeMap;

use serde_json::{Map, Value as Json};

use super::Scenario;
use crate::document::{Node, Value};
use crate::sweep::Axis;

impl Scenario {
    /// The axes with their values in a run.
    pub fn params(&self, run: usize) -> Map<String, Json> {
        self.rows(run).map(|(axis, row)| (axis.name.clone(), json(&axis.values.at(row)))).collect()
    }

    /// The axes with the names of their values in a run: labels of the file, or what tells a value
    /// from the others.
    pub fn names(&self, run: usize) -> Vec<(&str, String)> {
        let name = |axis: &Axis, row: usize| match (axis.values.name(row), json(&axis.values.at(row))) {
            (Some(name), _) => name.to_owned(),
            (None, Json::String(text)) => text,
            (None, value) => value.to_string(),
        };
        self.rows(run).map(|(axis, row)| (axis.name.as_str(), name(axis, row))).collect()
    }

    /// The names of values on axes whose values are not their own names.
    pub fn labels(&self, run: usize) -> BTreeMap<String, String> {
        self.rows(run).filter_map(|(axis, row)| Some((axis.name.clone(), axis.values.name(row)?.to_owned()))).collect()
    }

    /// The values that axes have at any point, with their axes, and whether they are called
    /// otherwise. An axis that is drawn from a range gives one value.
    pub fn values(&self) -> impl Iterator<Item = (&str, Json, bool)> {
        self.sweep.axes.iter().flat_map(|axis| {
            axis.values.choices().map(|(node, name)| (axis.name.as_str(), json(&node), name.is_some()))
        })
    }

    /// The row of each axis in a run.
    fn rows(&self, run: usize) -> impl Iterator<Item = (&Axis, usize)> {
        self.sweep.axes.iter().zip(self.sweep.indices(run / self.repeat()))
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::String(text) | Value::Datetime(text) => Json::from(text.as_str()),
        Value::Integer(number) => i64::try_from(*number).map_or_else(|_| Json::from(*number as f64), Json::from),
        Value::Float(number) => Json::from(*number),
        Value::Boolean(value) => Json::from(*value),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Table(table) => {
            Json::Object(table.0.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect())
        }
    }
}
