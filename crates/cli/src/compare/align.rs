//! The axes on which the sides of a comparison were selected.

use std::collections::{BTreeMap, BTreeSet};

use anyhow::bail;
use serde_json::Value;

use super::parameters::Difference;
use super::select::listed;
use super::side::ResultSide;

/// Takes the axes on which sides were selected out of what runs are matched by, with those that
/// moved along: each side has one value on them. Returns what the sides have there.
pub(super) fn align(a: &mut ResultSide, b: &mut ResultSide) -> anyhow::Result<Vec<Difference>> {
    if a.axes.is_empty() && b.axes.is_empty() {
        return Ok(Vec::new());
    }
    let values = [values(a), values(b)];
    // Its only value, if there are not several.
    let only = |side: usize, axis: &str| match values[side].get(axis).map_or(&[][..], Vec::as_slice) {
        [] => Some(None),
        [value] => Some(Some(value.to_string())),
        _ => None,
    };
    let named: BTreeSet<String> = a.axes.iter().chain(&b.axes).cloned().collect();
    let axes: BTreeSet<&String> = values.iter().flat_map(BTreeMap::keys).collect();
    let moved = |axis: &&&String| {
        let both = only(0, axis).zip(only(1, axis));
        named.contains(axis.as_str()) || both.is_some_and(|(a, b)| a != b)
    };
    let out: Vec<Difference> = axes
        .iter()
        .filter(moved)
        .map(|axis| Difference { key: axis.to_string(), a: only(0, axis).flatten(), b: only(1, axis).flatten() })
        .collect();
    for side in [a, b] {
        for run in &mut side.runs {
            out.iter().for_each(|axis| _ = run.params.remove(&axis.key));
        }
        let open: Vec<String> = named.iter().filter(|axis| !side.axes.contains(axis)).cloned().collect();
        let mut keys = BTreeSet::new();
        if !open.is_empty() && side.runs.iter().any(|run| !keys.insert(run.key())) {
            bail!(
                "{} has several points for each of the other side's: name a value of {} with {}",
                side.name,
                listed(open.into_iter()),
                side.flag
            );
        }
    }
    Ok(out.into_iter().filter(|axis| axis.a != axis.b).collect())
}

/// The values of a side on each axis, up to two.
fn values(side: &ResultSide) -> BTreeMap<String, Vec<Value>> {
    let mut all: BTreeMap<String, Vec<Value>> = BTreeMap::new();
    for (axis, value) in side.runs.iter().flat_map(|run| &run.params) {
        let values = all.entry(axis.clone()).or_default();
        if values.len() < 2 && !values.contains(value) {
            values.push(value.clone());
        }
    }
    all
}
