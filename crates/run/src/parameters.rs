//! The parameters of a sweep as columns of tables.
//!
//! Quantities of one kind are numbers: rates in bit/s, times in seconds, sizes in bytes or packets,
//! and the column behind has the unit. Numbers and flags are what they are. All other values are
//! shown by their names; beside numbers, labels have a column of their own.

use ackclock_scenario::Scenario;
use ackclock_units::quantity;
use serde::Deserialize;
use serde_json::{Value, json};

/// The columns of parameters.
#[derive(Clone, Debug, Default)]
pub struct Parameters(Vec<ParameterColumn>);

#[derive(Clone, Debug)]
struct ParameterColumn {
    name: String,
    kind: Kind,
    is_labelled: bool,
}

/// The part of a summary that is read here.
#[derive(Deserialize)]
struct Head {
    params: Value,
    #[serde(default)]
    labels: Value,
}

/// The common kind of all values of a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Quantity(&'static str),
    Number,
    /// Anything, or of different kinds.
    Other,
}

impl Kind {
    fn of(value: &Value) -> Kind {
        match value {
            Value::String(text) => quantity(text).map_or(Kind::Other, |(_, unit)| Kind::Quantity(unit)),
            Value::Number(_) | Value::Bool(_) => Kind::Number,
            _ => Kind::Other,
        }
    }
}

/// A number, as an integer if it is one.
fn whole(number: f64) -> Value {
    // Up to 2^53 all integers are numbers.
    if number.fract() == 0.0 && number < 9e15 { Value::from(number as u64) } else { Value::from(number) }
}

impl Parameters {
    /// The parameters of all runs of a sweep.
    pub fn of(scenario: &Scenario) -> Parameters {
        let mut found = Parameters::default();
        for (name, value, is_labelled) in scenario.values() {
            found.add(name, &value, is_labelled);
        }
        found
    }

    /// Takes in what a run has, from its summary.
    pub fn see(&mut self, summary: &Value) {
        for (name, value) in summary["params"].as_object().into_iter().flatten() {
            self.add(name, value, summary["labels"][name].is_string());
        }
    }

    /// Takes the parameters of a line of JSON.
    ///
    /// # Errors
    /// It is no summary.
    pub fn see_line(&mut self, line: &str) -> serde_json::Result<()> {
        let Head { params, labels } = serde_json::from_str(line)?;
        self.see(&json!({ "params": params, "labels": labels }));
        Ok(())
    }

    fn add(&mut self, name: &str, value: &Value, is_labelled: bool) {
        let kind = Kind::of(value);
        match self.0.iter_mut().find(|known| known.name == name) {
            Some(known) => {
                known.is_labelled |= is_labelled;
                known.kind = if known.kind == kind { kind } else { Kind::Other };
            }
            None => self.0.push(ParameterColumn { name: name.to_owned(), kind, is_labelled }),
        }
    }

    /// The names of the columns.
    pub fn columns(&self) -> Vec<String> {
        let mut names = Vec::new();
        for ParameterColumn { name, kind, is_labelled } in &self.0 {
            names.push(name.clone());
            if let Kind::Quantity(_) = kind {
                names.push(format!("{name} unit"));
            }
            if *is_labelled && *kind != Kind::Other {
                names.push(format!("{name} label"));
            }
        }
        names
    }

    /// The values of a run in these columns, from the parameters and the labels of its summary.
    pub fn cells(&self, params: &Value, labels: &Value) -> Vec<Value> {
        let mut cells = Vec::new();
        for ParameterColumn { name, kind, is_labelled } in &self.0 {
            let (value, label) = (&params[name], &labels[name]);
            match (kind, value.as_str().and_then(quantity)) {
                (Kind::Quantity(unit), Some((number, _))) => cells.extend([whole(number), (*unit).into()]),
                (Kind::Quantity(_), None) => cells.extend([Value::Null, Value::Null]),
                (Kind::Other, _) if label.is_string() => cells.push(label.clone()),
                _ => cells.push(value.clone()),
            }
            if *is_labelled && *kind != Kind::Other {
                cells.push(label.clone());
            }
        }
        cells
    }
}
