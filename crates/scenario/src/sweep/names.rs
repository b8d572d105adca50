//! The names of the values of an axis: labels of the file, or what tells a value from the others.
//!
//! A number, a text and a flag are their own names. The name of a table is its `kind`, followed by
//! the keys in which tables of the same kind differ.

use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Node, Table, Value};
use crate::report::{Diagnostic, Report};
use crate::write::inline;

/// The key of a table that is no part of the value.
const LABEL: &str = "label";

/// The key of a labelled value that is no table.
const VALUE: &str = "value";

const EXPECTED: &str = "expected a table with a label, such as { label = \"drop-tail\", kind = \"pfifo\" }, or a labelled \
                        value: { label = \"slow\", value = \"1mbit\" }";

/// A value of an axis.
#[derive(Clone, Debug)]
pub(crate) struct Choice {
    /// The value, without its label.
    pub(crate) node: Node,
    /// The label as in the file.
    label: Option<Node>,
    /// `None`: as the value is written.
    name: Option<Box<str>>,
}

impl Choice {
    /// A value that has no name of its own yet.
    pub(super) fn new(node: Node) -> Choice {
        Choice { node, label: None, name: None }
    }

    /// Reads the values of an axis, of which errors speak by its path. `None` if a label is wrong,
    /// which is reported.
    pub(super) fn read_all<'n>(
        path: &str,
        nodes: impl IntoIterator<Item = &'n Node>,
        report: &Report,
    ) -> Option<Vec<Choice>> {
        let choices = nodes.into_iter().map(|node| {
            let read = Choice::read(node);
            read.map_err(|(found, node)| {
                let error = Diagnostic::new(format!("{path}: {found}"), &node.place, format!("found {}", node.found()));
                report.push(error.note(EXPECTED));
            })
        });
        let mut choices: Vec<Choice> = choices.collect::<Vec<_>>().into_iter().collect::<Result<_, _>>().ok()?;
        name(path, &mut choices, report).then_some(choices)
    }

    fn read(node: &Node) -> Result<Choice, (&'static str, &Node)> {
        let Some((table, label)) = node.table().and_then(|table| Some((table, &table.get(LABEL)?.node))) else {
            return Ok(Choice::new(node.clone()));
        };
        if !label.str().is_some_and(|text| !text.trim().is_empty() && !text.contains(char::is_control)) {
            return Err(("a label is a text on one line", label));
        }
        let rest: Vec<_> = table.0.iter().filter(|entry| entry.key != LABEL).cloned().collect();
        let node = match &rest[..] {
            [] => return Err(("a label without a value", node)),
            [only] if only.key == VALUE => only.node.clone(),
            _ => Node::new(Table(rest), node.place.clone()),
        };
        Ok(Choice { node, label: Some(label.clone()), name: label.str().map(Box::from) })
    }

    pub(crate) fn label(&self) -> Option<&str> {
        self.label.as_ref()?.str()
    }

    pub(crate) fn name(&self) -> Option<&str> {
        self.name.as_deref()
    }

    /// The value as in the file.
    pub(super) fn written(&self) -> Node {
        let Some(label) = &self.label else { return self.node.clone() };
        let mut table = Table::default();
        table.set(LABEL, label.place.clone(), label.clone());
        table.set(VALUE, self.node.place.clone(), self.node.clone());
        Node::new(table, self.node.place.clone())
    }
}

/// The value that an argument has set, with the name that it has among those of the file.
pub(super) fn pinned(node: Node, before: &[Choice]) -> Choice {
    match before.iter().find(|choice| choice.node.same(&node)) {
        Some(choice) => Choice { node, ..choice.clone() },
        None => {
            let mut all: Vec<Choice> = before.iter().cloned().chain([Choice::new(node)]).collect();
            all.iter_mut().filter(|choice| choice.label.is_none()).for_each(|choice| choice.name = None);
            give_names(&mut all);
            all.remove(before.len())
        }
    }
}

/// Names all values, unless each is its own name. False if labels are ambiguous, which is reported.
fn name(path: &str, choices: &mut [Choice], report: &Report) -> bool {
    let (mut by_label, mut by_value) = (BTreeMap::new(), BTreeMap::new());
    let mut fits = true;
    for choice in choices.iter() {
        let Some(label) = &choice.label else { continue };
        let both = |title: String, first: &Node, why: &str| {
            for place in [&first.place, &label.place] {
                report.push(Diagnostic::new(format!("{path}: {title}"), place, "here").note(why));
            }
            false
        };
        let (text, value) = (inline(label), inline(&choice.node));
        let (first, of) = by_label.entry(text.clone()).or_insert((label, value.clone()));
        if *of != value {
            fits = both(format!("two values have the label {text}"), first, "expected a label for each value");
        }
        let first = by_value.entry(value.clone()).or_insert(label);
        if inline(first) != text {
            fits = both(format!("{value} has two labels"), first, "expected one label for each value");
        }
    }
    let labels: BTreeMap<String, Node> = by_value.into_iter().map(|(value, label)| (value, label.clone())).collect();
    if fits && !labels.is_empty() {
        // A label that is given once holds for every equal value.
        for choice in choices.iter_mut().filter(|choice| choice.label.is_none()) {
            choice.label = labels.get(&inline(&choice.node)).cloned();
            choice.name = choice.label().map(Box::from);
        }
    }
    give_names(choices);
    fits
}

/// Gives the names, where labels are known to be right.
fn give_names(choices: &mut [Choice]) {
    let is_plain =
        |choice: &Choice| choice.label.is_none() && !matches!(choice.node.value, Value::Table(_) | Value::Array(_));
    if choices.iter().all(is_plain) {
        return;
    }
    let distinct: BTreeMap<String, &Choice> = choices.iter().map(|choice| (inline(&choice.node), choice)).collect();
    let tables: Vec<&Table> = distinct.values().filter_map(|choice| choice.node.table()).collect();
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    // The shortest that tells them apart, or all that they are made of, or as they are written.
    let forms: [&dyn Fn(&Node) -> String; 3] = [&|node| short(node, &tables), &shown, &inline];
    for form in forms {
        let mut taken: BTreeSet<&str> = distinct.values().filter_map(|choice| choice.label()).collect();
        let mut twice: BTreeSet<String> = BTreeSet::new();
        twice.extend(names.values().filter(|name| !taken.insert(name)).cloned());
        let open = |key: &&String| names.get(*key).is_none_or(|name| twice.contains(name));
        let open: Vec<String> = distinct.keys().filter(open).cloned().collect();
        for key in open {
            let choice = distinct[&key];
            names.insert(key, choice.label().map_or_else(|| form(&choice.node), str::to_owned));
        }
    }
    let names: Vec<Option<String>> = choices.iter().map(|choice| names.get(&inline(&choice.node)).cloned()).collect();
    for (choice, name) in choices.iter_mut().zip(names) {
        choice.name = name.map(String::into_boxed_str);
    }
}

fn kind(table: &Table) -> Option<&str> {
    table.get("kind")?.node.str()
}

/// A value by what tells it from these tables, if it is one of them.
fn short(node: &Node, tables: &[&Table]) -> String {
    let Some(table) = node.table() else { return shown(node) };
    let leaves: Vec<_> = tables.iter().filter(|other| kind(other) == kind(table)).map(|other| leaves(other)).collect();
    let differs = |key: &str, value: &Node| {
        leaves.iter().any(|other| other.iter().all(|(known, found)| known != key || !found.same(value)))
    };
    let own: Vec<(String, &Node)> =
        self::leaves(table).into_iter().filter(|(key, value)| differs(key, value)).collect();
    let parts = match &own[..] {
        // A quantity, or a name, says what it is.
        [(_, value)] if value.str().is_some() && kind(table).is_some() => vec![shown(value)],
        own => {
            let last = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
            let alone = |key: &str| own.iter().filter(|(other, _)| last(other) == last(key)).count() == 1;
            let name = |key: &str| if alone(key) { last(key) } else { key.to_owned() };
            own.iter().map(|(key, value)| format!("{} {}", name(key), shown(value))).collect()
        }
    };
    let name = kind(table).map(str::to_owned).into_iter().chain(parts).collect::<Vec<_>>().join(" ");
    if name.is_empty() { shown(node) } else { name }
}

/// The values in a table, but for its kind, with their paths.
fn leaves(table: &Table) -> Vec<(String, &Node)> {
    let mut found = Vec::new();
    for entry in table.0.iter().filter(|entry| entry.key != "kind") {
        match &entry.node.value {
            Value::Table(inner) => {
                let all =
                    inner.0.iter().filter(|within| within.key == "kind").map(|kind| (entry.key.clone(), &kind.node));
                found.extend(all);
                found.extend(leaves(inner).into_iter().map(|(key, node)| (format!("{}.{key}", entry.key), node)));
            }
            _ => found.push((entry.key.clone(), &entry.node)),
        }
    }
    found
}

/// A value for people: of a table its kind and all keys, of a list its entries.
fn shown(node: &Node) -> String {
    match &node.value {
        Value::String(text) => text.clone(),
        Value::Array(entries) => {
            let are_lists = entries.iter().any(|entry| entry.array().is_some());
            entries.iter().map(shown).collect::<Vec<_>>().join(if are_lists { " + " } else { " " })
        }
        Value::Table(table) => {
            let keys = leaves(table).into_iter().map(|(key, value)| format!("{key} {}", shown(value)));
            kind(table).map(str::to_owned).into_iter().chain(keys).collect::<Vec<_>>().join(" ")
        }
        _ => inline(node),
    }
}
