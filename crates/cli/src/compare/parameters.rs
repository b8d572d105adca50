//! The keys in which the scenarios of two output directories differ.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::Path;

use serde_json::{Value, json};

use super::side::ResultSide;

/// A key with its values as TOML; `None` where it is not.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Difference {
    pub(super) key: String,
    pub(super) a: Option<String>,
    pub(super) b: Option<String>,
}

impl Difference {
    pub(super) fn json(&self) -> Value {
        json!({ "key": self.key, "a": self.a, "b": self.b })
    }
}

/// The keys that differ, in alphabetical order: the axes on which the sides were selected, and if
/// both are output directories, whose manifests have the scenarios, what these have besides.
pub(super) fn differences(a: &ResultSide, b: &ResultSide, axes: Vec<Difference>) -> Vec<Difference> {
    let (a, b) = keys(&a.given).zip(keys(&b.given)).unwrap_or_default();
    let names: BTreeSet<&String> = a.keys().chain(b.keys()).collect();
    let difference = |key: &String| Difference { key: key.clone(), a: a.get(key).cloned(), b: b.get(key).cloned() };
    let differ = names.into_iter().filter(|key| a.get(*key) != b.get(*key)).map(difference);
    let mut all: Vec<Difference> = differ.filter(|other| axes.iter().all(|axis| axis.key != other.key)).collect();
    all.extend(axes);
    all.sort_by(|one, other| one.key.cmp(&other.key));
    all
}

/// The keys of a scenario with their values; `None` without a manifest.
fn keys(given: &str) -> Option<BTreeMap<String, String>> {
    let folder = match given.rsplit_once(':') {
        Some((path, _)) if !Path::new(given).exists() => Path::new(path),
        _ => Path::new(given),
    };
    let folder = if folder.is_dir() { folder } else { folder.parent()? };
    let manifest: Value = serde_json::from_slice(&fs::read(folder.join("manifest.json")).ok()?).ok()?;
    ackclock_scenario::values(manifest["scenario"].as_str()?)
}
