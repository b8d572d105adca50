//! The resolved scenario, with every omitted key filled in, so that a file states everything on
//! which its runs depend.

use std::collections::BTreeMap;
use std::sync::Arc;

use crate::document::{Node, Value};
use crate::fields::{Converted, Filled, FilledKey};
use crate::overrides;
use crate::report::{Place, Report};
use crate::sweep::Sweep;
use crate::write;

/// The defaults that the points of a sweep used.
#[derive(Clone, Debug, Default)]
pub(crate) struct Defaults {
    tables: Vec<Filling>,
    /// The numbers of the tables by their paths.
    numbers: BTreeMap<Arc<str>, u32>,
    /// Tables and keys by their numbers, in the order of reading.
    order: Vec<At>,
    /// The tables with a kind, with how many points have them.
    chosen: BTreeMap<Arc<str>, usize>,
    points: usize,
    /// Sizes in other units, with what they came to at the points.
    converted: Vec<(String, String, Vec<String>)>,
}

/// The number of a table, and that of a key in it.
type At = (u32, u32);

/// The values used in a table.
#[derive(Clone, Debug)]
struct Filling {
    path: Arc<str>,
    keys: Vec<(&'static str, Used)>,
}

#[derive(Clone, Debug)]
struct Used {
    points: usize,
    /// `None` once two points differ.
    value: Option<Value>,
    /// The values at the points of each kind.
    by_kind: Vec<(&'static str, Option<Value>)>,
}

/// The array whose items are filled in one by one, when they are written: there may be very many.
const FLOWS: &str = "flows";

impl Defaults {
    /// Adds what one point used.
    pub(crate) fn add(&mut self, filled: Vec<Filled>, chosen: Vec<Arc<str>>) {
        self.points += 1;
        for table in chosen {
            *self.chosen.entry(table).or_default() += 1;
        }
        for Filled { table, keys } in filled {
            let number = *self.numbers.entry(table).or_insert_with_key(|path| {
                self.tables.push(Filling { path: Arc::clone(path), keys: Vec::with_capacity(keys.len()) });
                (self.tables.len() - 1) as u32
            });
            let known = &mut self.tables[number as usize].keys;
            for FilledKey { key, value, kind } in keys {
                let Some((_, used)) = known.iter_mut().find(|(other, _)| *other == key) else {
                    self.order.push((number, known.len() as u32));
                    let by_kind = kind.map(|kind| vec![(kind, Some(value.clone()))]).unwrap_or_default();
                    known.push((key, Used { points: 1, value: Some(value), by_kind }));
                    continue;
                };
                used.points += 1;
                keep_equal(&mut used.value, &value);
                match kind.map(|kind| (kind, used.by_kind.iter_mut().find(|(other, _)| *other == kind))) {
                    None => {}
                    Some((_, Some((_, kept)))) => keep_equal(kept, &value),
                    Some((kind, None)) => used.by_kind.push((kind, Some(value))),
                }
            }
        }
    }

    /// Adds what sizes in other units came to at one point.
    pub(crate) fn add_converted(&mut self, converted: Vec<Converted>) {
        for Converted { path, from, to } in converted {
            match self.converted.iter_mut().find(|(known, as_written, _)| *known == path && *as_written == from) {
                Some((_, _, values)) if values.contains(&to) => {}
                Some((_, _, values)) => values.push(to),
                None => self.converted.push((path, from, vec![to])),
            }
        }
    }

    /// Fills the document in and writes it. A default is written where every point uses it, else
    /// under the kind that uses it; what differs from point to point for another reason has to stay
    /// out, and is named in a comment.
    pub(crate) fn show(&self, root: &Node, sweep: &Sweep) -> String {
        let mut root = root.clone();
        without_overridden(&mut root, &mut Vec::new(), sweep);
        let mut text = String::new();
        let mut items: BTreeMap<usize, Vec<At>> = BTreeMap::new();
        for &at in &self.order {
            let path = &self.tables[at.0 as usize].path;
            let item =
                path.strip_prefix(FLOWS).and_then(|rest| rest.strip_prefix('.')?.split('.').next()?.parse().ok());
            match (self.values(at).is_empty(), item) {
                (true, _) => {
                    if text.is_empty() {
                        text.push_str("# These are at their defaults, which differ between the points of the sweep:\n");
                    }
                    text.push_str(&format!("#   {path}.{}\n", self.tables[at.0 as usize].keys[at.1 as usize].0));
                }
                (false, Some(item)) => items.entry(item).or_default().push(at),
                (false, None) => self.put(&mut root, 0, &[at]),
            }
        }
        for (path, from, values) in &self.converted {
            text.push_str(&format!("# {path} = {from} comes to {}\n", values.join(", ")));
        }
        if !text.is_empty() {
            text.push('\n');
        }
        let fill = |key: &str, index: usize, item: &Node| {
            let at = items.get(&index).filter(|_| key == FLOWS)?;
            let mut filled = item.clone();
            self.put(&mut filled, 2, at);
            Some(filled)
        };
        text + &write::document_with(root.table().unwrap_or(&Default::default()), fill)
    }

    /// The values written for a key, with the kind under which they are, if not for all; none if
    /// the key has to stay out.
    fn values(&self, (table, key): At) -> Vec<(Option<&'static str>, &Value)> {
        let Filling { path, keys } = &self.tables[table as usize];
        let used = &keys[key as usize].1;
        match &used.value {
            Some(value) if used.points == self.points => vec![(None, value)],
            _ if self.chosen.get(path) == Some(&self.points) => {
                let by_kind = used.by_kind.iter().map(|(kind, value)| Some((Some(*kind), value.as_ref()?)));
                let mut values: Vec<(Option<&str>, &Value)> = by_kind.collect::<Option<_>>().unwrap_or_default();
                values.sort_unstable_by_key(|(kind, _)| *kind);
                values
            }
            _ => Vec::new(),
        }
    }

    /// Fills keys in, in a node that so many parts of their paths lead to.
    fn put(&self, node: &mut Node, parts: usize, keys: &[At]) {
        let nowhere = Place::new(0, 0..0);
        // Most follow others of their table.
        for of_table in keys.chunk_by(|a, b| a.0 == b.0) {
            let Filling { path, keys } = &self.tables[of_table[0].0 as usize];
            let mut path: Vec<String> =
                path.split('.').filter(|part| !part.is_empty()).skip(parts).map(str::to_owned).collect();
            let depth = path.len();
            for &at in of_table {
                for (kind, value) in self.values(at) {
                    path.extend(kind.into_iter().chain([keys[at.1 as usize].0]).map(str::to_owned));
                    let value = Node::new(value.clone(), nowhere.clone());
                    overrides::set(node, &path, &nowhere, value, &Report::default());
                    path.truncate(depth);
                }
            }
        }
    }
}

/// Drops what settings of the selected kind override, beside that kind: what is shown holds.
fn without_overridden(node: &mut Node, path: &mut overrides::Path, sweep: &Sweep) {
    let inner: Vec<(String, &mut Node)> = match &mut node.value {
        Value::Table(table) => {
            let kind = table.get("kind").and_then(|entry| entry.node.str());
            let own = kind.and_then(|kind| table.get(kind)?.node.table());
            if let Some(own) = own
                && !sweep.varies(path, "kind")
            {
                let overridden: Vec<String> = own.keys().map(str::to_owned).collect();
                table.0.retain(|entry| !overridden.contains(&entry.key));
            }
            table.0.iter_mut().map(|entry| (entry.key.clone(), &mut entry.node)).collect()
        }
        Value::Array(items) => items.iter_mut().enumerate().map(|(index, item)| (index.to_string(), item)).collect(),
        _ => return,
    };
    for (part, node) in inner {
        path.push(part);
        without_overridden(node, path, sweep);
        path.pop();
    }
}

fn keep_equal(kept: &mut Option<Value>, value: &Value) {
    if kept.as_ref() != Some(value) {
        *kept = None;
    }
}
