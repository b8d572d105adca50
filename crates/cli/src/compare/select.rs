//! The choice of the points of a sweep for a side: those with chosen values on its axes.

use anyhow::{anyhow, bail};
use serde_json::Value;

use crate::args::compare::Choice;

/// The most values or axes that an error lists.
const MOST: usize = 20;

/// The chosen runs of a side, as they come in.
#[derive(Debug)]
pub(super) struct PointSelection<'a> {
    flag: &'static str,
    choices: &'a [Choice],
    /// The axes of the choices, once there was a run.
    axes: Option<Vec<String>>,
    /// Their values so far.
    values: Vec<Vec<Value>>,
}

impl<'a> PointSelection<'a> {
    pub(super) fn new(flag: &'static str, choices: &'a [Choice]) -> PointSelection<'a> {
        PointSelection { flag, choices, axes: None, values: vec![Vec::new(); choices.len()] }
    }

    /// Returns `true` if a run is among those that are chosen.
    pub(super) fn takes(&mut self, summary: &Value, given: &str) -> anyhow::Result<bool> {
        if self.axes.is_none() {
            let axes: Vec<&String> =
                summary["params"].as_object().into_iter().flat_map(|params| params.keys()).collect();
            let found = self.choices.iter().map(|choice| axis(choice, &axes, given));
            let found: Vec<String> =
                found.collect::<anyhow::Result<_>>().map_err(|error| anyhow!("{}: {error}", self.flag))?;
            if let Some(twice) = found.iter().enumerate().find(|(at, axis)| found[..*at].contains(axis)) {
                bail!("{}: `{}` is given twice; a side has one value on it", self.flag, twice.1);
            }
            self.axes = Some(found);
        }
        let mut takes = true;
        for ((choice, axis), values) in self.choices.iter().zip(self.axes.iter().flatten()).zip(&mut self.values) {
            let (value, label) = (&summary["params"][axis.as_str()], &summary["labels"][axis.as_str()]);
            // A name stands for its value.
            let named = [value, label].into_iter().filter(|value| !value.is_null());
            for value in named.clone() {
                if values.len() <= MOST && !values.contains(value) {
                    values.push(value.clone());
                }
            }
            takes &= named.into_iter().any(|value| is(value, &choice.value));
        }
        Ok(takes)
    }

    /// Returns `true` if there was any run.
    pub(super) fn has_seen(&self) -> bool {
        self.values.iter().any(|values| !values.is_empty())
    }

    /// Why no run was among those that are chosen.
    pub(super) fn nothing(&self, given: &str) -> anyhow::Error {
        let choices = || self.choices.iter().zip(self.axes.iter().flatten()).zip(&self.values);
        let unknown = choices().find(|((choice, _), values)| !values.iter().any(|value| is(value, &choice.value)));
        match unknown {
            Some(((choice, axis), values)) => anyhow!(
                "{}: `{axis}` of {given} has no value `{}`; it has {}",
                self.flag,
                choice.value,
                listed(values.iter().map(plain))
            ),
            None => anyhow!("{}: {given} has no point with all of these values", self.flag),
        }
    }

    /// The name of what was selected, and the axes.
    pub(super) fn end(self, given: &str) -> (String, Vec<String>) {
        let axes = self.axes.unwrap_or_default();
        let parts = axes.iter().zip(self.choices).map(|(axis, choice)| format!("{axis} = {}", choice.value));
        let parts: Vec<String> = parts.collect();
        let name = if parts.is_empty() { given.to_owned() } else { format!("{given} ({})", parts.join(", ")) };
        (name, axes)
    }
}

/// The axis that a choice names, by its path or the last keys of it; `.kind` need not be said.
fn axis(choice: &Choice, axes: &[&String], given: &str) -> anyhow::Result<String> {
    let name = choice.axis.as_str();
    let ends = |axis: &str| axis.strip_suffix(name).is_some_and(|before| before.is_empty() || before.ends_with('.'));
    let fits = |axis: &&&String| ends(axis) || axis.strip_suffix(".kind").is_some_and(ends);
    let exact = axes.iter().find(|axis| **axis == name);
    let fitting: Vec<&&String> = exact.map_or_else(|| axes.iter().filter(fits).collect(), |axis| vec![axis]);
    match fitting[..] {
        [axis] => Ok(axis.to_string()),
        [] if axes.is_empty() => bail!("{given} is no sweep, and has no axis `{name}`"),
        [] => bail!("{given} has no axis `{name}`; it has {}", listed(axes.iter().map(|axis| axis.to_string()))),
        _ => bail!("`{name}` fits several axes: {}", listed(fitting.iter().map(|axis| axis.to_string()))),
    }
}

/// Returns `true` if a value is the one that was written: as text, as a number, as JSON, or as the
/// kind of a table without other keys.
fn is(value: &Value, written: &str) -> bool {
    let number = || value.as_f64().is_some_and(|value| written.parse().is_ok_and(|written: f64| written == value));
    let kind = || value.as_object().filter(|table| table.len() == 1)?.get("kind").map(plain);
    let json = || serde_json::from_str::<Value>(written).is_ok_and(|written| written == *value);
    plain(value) == written || number() || kind().is_some_and(|kind| kind == written) || json()
}

pub(super) fn listed(names: impl ExactSizeIterator<Item = String>) -> String {
    let more = if names.len() > MOST { " and others" } else { "" };
    names.take(MOST).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", ") + more
}

/// A value as it is written.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}
