//! The axes of a sweep.

use std::borrow::Cow;
use std::sync::Arc;

use super::names::Choice;
use super::range::Drawn;
use crate::document::Node;
use crate::fields::{Context, Fields};
use crate::overrides::{self, Argument, Path};
use crate::quantity::Problem;
use crate::report::{Diagnostic, Place};

/// The values of an axis.
#[derive(Clone, Debug)]
pub(crate) enum Values {
    Listed(Vec<Choice>),
    Drawn(Drawn),
}

impl Values {
    pub(crate) fn at(&self, index: usize) -> Cow<'_, Node> {
        match self {
            Values::Listed(values) => Cow::Borrowed(&values[index].node),
            Values::Drawn(drawn) => Cow::Owned(drawn.at(index)),
        }
    }

    /// The values, with what they are called; one of a range.
    pub(crate) fn choices(&self) -> Box<dyn Iterator<Item = (Cow<'_, Node>, Option<&str>)> + '_> {
        let listed = match self {
            Values::Listed(values) => values,
            Values::Drawn(drawn) => match drawn.listed() {
                Some(values) => values,
                None => return Box::new(std::iter::once((self.at(0), None))),
            },
        };
        Box::new(listed.iter().map(|choice| (Cow::Borrowed(&choice.node), choice.name())))
    }

    /// The name of a value; `None`: as it is written.
    pub(crate) fn name(&self, index: usize) -> Option<&str> {
        match self {
            Values::Listed(values) => values[index].name(),
            Values::Drawn(drawn) => drawn.name(index),
        }
    }

    /// Index of the value among those that are listed.
    pub(super) fn choice(&self, row: usize) -> usize {
        match self {
            Values::Listed(_) => row,
            Values::Drawn(drawn) => drawn.choice(row),
        }
    }

    pub(crate) fn len(&self) -> usize {
        match self {
            Values::Listed(values) => values.len(),
            Values::Drawn(drawn) => drawn.len(),
        }
    }

    pub(crate) fn has(&self, node: &Node) -> bool {
        (0..self.len()).any(|index| self.at(index).same(node))
    }
}

#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// The path as written.
    pub(crate) name: String,
    /// The keys that it sets: several where `*` stands for ids.
    pub(crate) paths: Vec<Path>,
    pub(crate) place: Place,
    pub(crate) values: Values,
    /// All values in the file, where `--set` has left fewer; none of what is drawn.
    pub(crate) before: Vec<Choice>,
    /// The number of the group with which it moves.
    pub(crate) group: usize,
}

/// Where in `[sweep]` the axes of a group are written.
#[derive(Clone, Copy, Debug)]
pub(super) enum Section {
    Axes,
    Zip(usize),
    Points,
    Ranges,
}

/// Axes that move together.
#[derive(Clone, Debug)]
pub(crate) struct AxisGroup {
    pub(super) section: Section,
    pub(super) len: usize,
}

/// A sweep, or a single run: no axes and one repetition.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) axes: Vec<Axis>,
    pub(super) groups: Vec<AxisGroup>,
    /// The combinations that are points, in ascending order; all unless set.
    pub(super) kept: Option<Arc<[usize]>>,
    /// Notes, in sentences, on combinations that were left out.
    pub(crate) notes: Vec<String>,
    /// Runs of each point, at most.
    pub(crate) repeat: u64,
    /// The fewest runs of each point, where `until` ends them.
    pub(crate) at_least: u64,
    /// `true` if the file asks for a sweep at all.
    pub(crate) declared: bool,
}

/// The context in which the sections of a sweep are read.
pub(super) struct Reader<'r> {
    pub(super) root: &'r Node,
    pub(super) cx: &'r Context<'r>,
    pub(super) pinned: &'r [Argument],
}

impl Reader<'_> {
    /// The keys that an axis sets, and the value that an argument has set them to. `None` if they
    /// do not exist, which is reported.
    pub(super) fn resolve(&self, name: &str, place: &Place) -> Option<(Vec<Path>, Option<Node>)> {
        let paths = overrides::resolve(self.root, &overrides::split(name), place, false, self.cx.report)?;
        let pin = |path: &Path| {
            self.pinned.iter().rev().find(|argument| argument.paths.contains(path)).map(|argument| &argument.node)
        };
        let pins: Vec<&Node> = paths.iter().filter_map(pin).collect();
        let Some(&first) = pins.first() else { return Some((paths, None)) };
        if pins.len() < paths.len() || pins.iter().any(|other| !other.same(first)) {
            let title = format!("the axis `{name}` varies keys that arguments set, and others");
            let error = Diagnostic::new(title, place, "neither all of them are set to one value, nor none");
            self.cx.report.push(error.note("set all keys of the axis to one value, or list the axis by ids"));
            return None;
        }
        let first = first.clone();
        Some((paths, Some(first)))
    }
}

/// Rejects a value that stands where that of a path should, because the path has no quotes.
pub(super) fn unquoted(section: &str, entry: &crate::document::Entry, expected: &str, cx: &Context<'_>) {
    let title = format!("sweep.{section}.{}: not an array", entry.key);
    let error = Diagnostic::new(title, &entry.key_place, "a path without quotes becomes a table");
    cx.report.push(error.note(format!("expected {expected}")));
}

/// Rejects what is there of a key.
pub(super) fn reject(fields: &Fields<'_>, key: &str, node: &Node, problem: &str, expected: &str) {
    fields.reject(key, node, Problem::new(problem, expected));
}
