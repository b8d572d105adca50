//! The resolved scenario: what was left out is filled in, so that a file says all that its runs depend on.

use std::collections::BTreeMap;

use crate::document::{Node, Value};
use crate::fields::Filled;
use crate::overrides;
use crate::report::{Place, Report};
use crate::write;

/// The defaults that the points of a sweep used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    /// In the order of reading.
    order: Vec<(String, &'static str)>,
    used: BTreeMap<(String, &'static str), Used>,
    /// The tables with a kind, with how many points have them.
    chosen: BTreeMap<String, usize>,
    points: usize,
}

#[derive(Clone, Debug)]
struct Used {
    points: usize,
    /// `None` once two points differ.
    value: Option<Value>,
    /// The same for the points of each kind.
    by_kind: BTreeMap<&'static str, Option<Value>>,
}

impl Defaults {
    /// Adds what one point used.
    pub(crate) fn add(&mut self, filled: Vec<Filled>, chosen: Vec<String>) {
        self.points += 1;
        for table in chosen {
            *self.chosen.entry(table).or_default() += 1;
        }
        for Filled { table, key, value, kind } in filled {
            let at = (table, key);
            let used = self.used.entry(at.clone()).or_insert_with(|| {
                self.order.push(at);
                Used { points: 0, value: Some(value.clone()), by_kind: BTreeMap::new() }
            });
            used.points += 1;
            keep_equal(&mut used.value, &value);
            if let Some(kind) = kind {
                keep_equal(used.by_kind.entry(kind).or_insert_with(|| Some(value.clone())), &value);
            }
        }
    }

    /// Fills the document in and writes it. A default is written where every point uses it, else under the kind that uses
    /// it; what differs from point to point for another reason has to stay out, and is named in a comment.
    pub(crate) fn show(&self, root: &Node) -> String {
        let mut root = root.clone();
        let mut open = Vec::new();
        let nowhere = Place::new(0, 0..0);
        let mut put = |table: &str, key: &str, value: &Value| {
            let path: Vec<String> =
                table.split('.').filter(|part| !part.is_empty()).chain([key]).map(str::to_owned).collect();
            overrides::set(&mut root, &path, &nowhere, Node::new(value.clone(), nowhere.clone()), &Report::default());
        };
        for at in &self.order {
            let (table, key) = at;
            let used = &self.used[at];
            match &used.value {
                Some(value) if used.points == self.points => put(table, key, value),
                _ if self.chosen.get(table) == Some(&self.points)
                    && !used.by_kind.is_empty()
                    && used.by_kind.values().all(Option::is_some) =>
                {
                    for (kind, value) in &used.by_kind {
                        put(&format!("{table}.{kind}"), key, value.as_ref().unwrap_or(&Value::Boolean(false)));
                    }
                }
                _ => open.push(format!("{table}.{key}")),
            }
        }
        let mut text = String::new();
        if !open.is_empty() {
            text.push_str("# These are at their defaults, which differ between the points of the sweep:\n");
            for path in open {
                text.push_str(&format!("#   {path}\n"));
            }
            text.push('\n');
        }
        text + &write::document(root.table().unwrap_or(&Default::default()))
    }
}

fn keep_equal(kept: &mut Option<Value>, value: &Value) {
    if kept.as_ref() != Some(value) {
        *kept = None;
    }
}
