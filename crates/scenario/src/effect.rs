//! Settings without effect: an axis or an argument after which every run is what it was before.
//!
//! A key may be read and still change nothing: another key overrides it, or the kind that is
//! selected does not have it. Where a file lists the settings of kinds beside each other, that is
//! how the format works; whoever sets or varies such a key expects other runs.

use crate::document::{Node, Value};
use crate::fields::{Context, Filled};
use crate::inputs::Inputs;
use crate::overrides::{self, Argument, Path};
use crate::own::Own;
use crate::plan::Plan;
use crate::points::Points;
use crate::report::{Diagnostic, Report};
use crate::sweep::{Axis, Sweep};
use crate::traces::Traces;

/// The most points that are read again for one setting.
const MAX_TRIED: usize = 1000;

/// The sections of which runs are made.
const OF_RUNS: [&str; 9] = ["run", "hosts", "links", "topology", "paths", "flows", "workloads", "commands", "record"];

/// The setting of a trial.
pub(crate) struct Trial<'t> {
    /// The document with all arguments, of which points are made.
    pub(crate) root: &'t Node,
    pub(crate) sweep: &'t Sweep,
    pub(crate) points: &'t Points,
    pub(crate) inputs: &'t Inputs,
    pub(crate) own: &'t Own,
}

impl Trial<'_> {
    /// Reports every axis whose values give the same runs.
    pub(crate) fn axes(&self, report: &Report) {
        for (number, axis) in self.sweep.axes.iter().enumerate() {
            let varied = (1..axis.values.len()).any(|row| !axis.values.at(row).same(&axis.values.at(row - 1)));
            let matters = match pairs(self.sweep, self.points, axis) {
                Some(mut pairs) => pairs.any(|(_, is_same)| !is_same),
                None => self.axis_matters(number, axis),
            };
            if varied && !matters {
                let title = format!("the axis `{}` changes nothing", axis.name);
                let error = Diagnostic::new(title, &axis.place, "every run is the same for all of its values");
                report.push(error.note(EXPECTED));
            }
        }
    }

    /// Returns `true` if any point is another run with another value of this axis, and the values
    /// of all others.
    fn axis_matters(&self, number: usize, axis: &Axis) -> bool {
        let rows = axis.values.len();
        self.points.numbered().take(MAX_TRIED).any(|(point, plan)| {
            let here = self.sweep.indices(point)[number];
            let differs = |row: &usize| !axis.values.at(*row).same(&axis.values.at(here));
            let Some(row) = (1..rows).map(|step| (here + step) % rows).find(differs) else { return false };
            let value = axis.values.at(row).into_owned();
            self.changes(self.root, point, plan, &axis.paths, Some(&value)).unwrap_or(true)
        })
    }

    /// Reports every argument without which every run would be the same, unless it says what would
    /// hold anyway. `original` is the document without arguments.
    pub(crate) fn arguments(&self, original: &Node, arguments: &[Argument], report: &Report) {
        for (number, argument) in arguments.iter().enumerate() {
            let (before, [_, after @ ..]) = arguments.split_at(number) else { continue };
            let replaced = |path: &Path| {
                let later = after.iter().flat_map(|argument| &argument.paths);
                later.into_iter().any(|other| other.starts_with(path) || path.starts_with(other))
            };
            let Some(path) = argument.paths.first() else { continue };
            let is_empty = argument.node.table().is_some_and(|table| table.0.is_empty());
            if is_empty || !OF_RUNS.contains(&path[0].as_str()) || argument.paths.iter().any(replaced) {
                continue;
            }
            let mut without = original.clone();
            for other in before.iter().chain(after) {
                other.apply(&mut without, &Report::default());
            }
            if !self.argument_matters(argument, &without) {
                let title = format!("`{}` changes nothing", argument.text);
                let error = Diagnostic::new(title, &argument.key_place, "every run is the same without it");
                report.push(error.note(EXPECTED));
            }
        }
    }

    fn argument_matters(&self, argument: &Argument, without: &Node) -> bool {
        let known = || self.points.numbered().take(MAX_TRIED);
        // An argument leaves one value of an axis: the others are tried in its place.
        if let Some(axis) = self.sweep.axes.iter().find(|axis| axis.paths == argument.paths) {
            let drawn = if axis.before.is_empty() { others_like(&argument.node) } else { Vec::new() };
            let others: Vec<&Node> = axis
                .before
                .iter()
                .map(|choice| &choice.node)
                .chain(&drawn)
                .filter(|other| !other.same(&argument.node))
                .collect();
            return others.is_empty()
                || known().any(|(point, plan)| {
                    let differs =
                        |other: &&Node| self.changes(self.root, point, plan, &axis.paths, Some(other)).unwrap_or(true);
                    others.iter().any(differs)
                });
        }
        if known().any(|(point, plan)| self.changes(without, point, plan, &[], None).unwrap_or(true)) {
            return true;
        }
        let is_said = |path: &Path| is_said(without, path, &argument.node);
        if argument.paths.iter().any(is_said) || self.is_default(argument, without) {
            return true;
        }
        // The value is the existing one in other words: then other values make a difference.
        others_like(&argument.node).into_iter().any(|node| {
            let mut root = self.root.clone();
            argument.paths.iter().for_each(|path| {
                overrides::set(&mut root, path, &argument.key_place, node.clone(), &Report::default());
            });
            known().any(|(point, plan)| self.changes(&root, point, plan, &[], None).unwrap_or(false))
        })
    }

    /// Returns `true` if a run of a point changes with this document, with a value at paths. `None`
    /// if it cannot be read.
    fn changes(&self, root: &Node, point: usize, plan: &Plan, paths: &[Path], value: Option<&Node>) -> Option<bool> {
        Some(self.read(root, point, paths, value)?.0 != *plan)
    }

    fn read(&self, root: &Node, point: usize, paths: &[Path], value: Option<&Node>) -> Option<(Plan, Vec<Filled>)> {
        let (report, traces) = (Report::default(), Traces::default());
        let mut varied = root.clone();
        self.sweep.set(point, &mut varied, &report);
        for (path, value) in paths.iter().flat_map(|path| value.map(|value| (path, value))) {
            overrides::set(&mut varied, path, &value.place, value.clone(), &report);
        }
        let cx = Context {
            inputs: self.inputs,
            document: varied.table(),
            traces: Some(&traces),
            ..Context::new(&report, self.own)
        };
        let plan = Plan::read(&varied, &cx)?;
        (report.len() == 0).then(|| (plan, cx.filled.take()))
    }

    /// Returns `true` if an argument gives the default of its key.
    fn is_default(&self, argument: &Argument, without: &Node) -> bool {
        let Some((point, _)) = self.points.numbered().next() else { return false };
        let Some((_, filled)) = self.read(without, point, &[], None) else { return false };
        argument.paths.iter().any(|path| holds(&filled, path, &argument.node))
    }
}

/// Returns `true` if a document has this value at a path, where the name of a kind is short for a
/// table.
fn is_said(root: &Node, path: &[String], node: &Node) -> bool {
    let kind = |table: &Node| Some(table.table()?.get("kind")?.node.same(node));
    match (overrides::at(root, path), path.split_last()) {
        (Some(there), _) => there.same(node) || kind(there) == Some(true),
        (None, Some((last, named))) if last == "kind" => overrides::at(root, named).is_some_and(|name| name.same(node)),
        _ => false,
    }
}

/// Returns `true` if these defaults are the value at a path.
fn holds(filled: &[Filled], path: &[String], node: &Node) -> bool {
    if let Value::Table(table) = &node.value {
        return table
            .0
            .iter()
            .all(|entry| holds(filled, &[path, std::slice::from_ref(&entry.key)].concat(), &entry.node));
    }
    let says = |path: &[String]| {
        let Some((key, table)) = path.split_last() else { return false };
        let table = table.join(".");
        let mut keys = filled.iter().filter(|filled| *filled.table == table).flat_map(|filled| &filled.keys);
        keys.any(|filled| filled.key == key && filled.value == node.value)
    };
    says(path) || says(&[path, &["kind".to_owned()]].concat())
}

/// The points that were read, but those of the first value of this axis, and whether each is the
/// same run as that of the value before; `None` if the axis moves with others.
fn pairs<'p>(sweep: &'p Sweep, points: &'p Points, axis: &'p Axis) -> Option<impl Iterator<Item = (usize, bool)> + 'p> {
    let alone = sweep.axes.iter().filter(|other| other.group == axis.group).count() == 1;
    let pair = |(point, plan)| Some((point, points.known_at(sweep.previous(point, axis.group)?)? == plan));
    alone.then(|| points.numbered().filter_map(pair))
}

/// A note on each axis that changes nothing at some of the points.
pub(crate) fn notes(sweep: &Sweep, points: &Points) -> Vec<String> {
    let note = |axis: &Axis| {
        let pairs: Vec<(usize, bool)> = pairs(sweep, points, axis)?.collect();
        let same = || pairs.iter().filter(|(_, is_same)| *is_same).map(|(point, _)| *point);
        let at = sweep.name(same().next()?, |other| other.group != axis.group);
        let (name, count) = (&axis.name, same().count());
        Some(format!("`{name}` changes nothing at {count} of {} points, such as {at}", pairs.len()))
    };
    sweep.axes.iter().filter_map(note).collect()
}

const EXPECTED: &str = "expected a key that the runs depend on: another key may override this one, or the kind that is \
                        selected may not have it; `--show-config` prints what holds";

/// Other values of the same type, for what is a number, a quantity or a flag.
fn others_like(node: &Node) -> Vec<Node> {
    let at = |value: Value| Node { value, place: node.place.clone() };
    match &node.value {
        Value::Boolean(is_on) => vec![at(Value::Boolean(!is_on))],
        Value::Integer(number) => [number * 2, number / 2, number + 1].map(Value::Integer).map(at).to_vec(),
        Value::Float(number) => [number * 2.0, number / 2.0].map(Value::Float).map(at).to_vec(),
        Value::String(text) => {
            let unit = text.trim_start_matches(|c: char| c.is_ascii_digit() || c == '.');
            let Ok(number) = text[..text.len() - unit.len()].parse::<f64>() else { return Vec::new() };
            [number * 2.0, number / 2.0, number + 1.0]
                .map(|number| at(format!("{number}{unit}").as_str().into()))
                .to_vec()
        }
        _ => Vec::new(),
    }
}
