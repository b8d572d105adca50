//! `[sweep]`: axes, the grid of their values, repetitions.

use std::collections::BTreeSet;

use crate::document::Node;
use crate::fields::{Context, Fields};
use crate::overrides::{self, Path};
use crate::quantity::{Problem, Whole};
use crate::report::{Diagnostic, Place};
use crate::write::inline;

/// The most runs of a sweep.
pub const MAX_RUNS: u64 = 100_000;

/// The most points of a grid: each is read and kept.
const MAX_POINTS: u64 = 10_000;

/// The most axes: each is compared with every other one.
const MAX_AXES: usize = 1000;

/// The most values of the file times points, for the same reason.
const MAX_VALUES: u64 = 20_000_000;

/// One axis.
#[derive(Clone, Debug)]
pub(crate) struct Axis {
    /// The path as written.
    pub(crate) name: String,
    pub(crate) path: Path,
    pub(crate) place: Place,
    pub(crate) values: Vec<Node>,
    /// All values in the file, where `--set` has left one.
    pub(crate) before: Vec<Node>,
}

/// A sweep, or a single run: no axes and one repetition.
#[derive(Clone, Debug)]
pub(crate) struct Sweep {
    pub(crate) axes: Vec<Axis>,
    pub(crate) repeat: u64,
    /// Whether the file asks for a sweep at all.
    pub(crate) declared: bool,
}

impl Sweep {
    /// How many points the grid has.
    pub(crate) fn points(&self) -> usize {
        self.axes.iter().map(|axis| axis.values.len()).product()
    }

    /// Which value each axis has at a point; the last axis moves fastest.
    pub(crate) fn indices(&self, mut point: usize) -> Vec<usize> {
        let mut indices = vec![0; self.axes.len()];
        for (axis, index) in self.axes.iter().zip(&mut indices).rev() {
            *index = point % axis.values.len();
            point /= axis.values.len();
        }
        indices
    }

    /// The point of these indices.
    pub(crate) fn point(&self, indices: &[usize]) -> usize {
        self.axes.iter().zip(indices).fold(0, |point, (axis, index)| point * axis.values.len() + index)
    }
}

/// Reads `[sweep]`. An axis whose path an argument set has that value alone.
pub(crate) fn read<'a>(root_node: &Node, root: &mut Fields<'a>, cx: &'a Context<'a>, pinned: &[(Path, Node)]) -> Sweep {
    let declared = root.get("sweep").is_some();
    let mut sweep = Sweep { axes: Vec::new(), repeat: 1, declared };
    let Some(mut fields) = root.table("sweep", "a section `[sweep]` with `axes` and `repeat`") else { return sweep };
    sweep.repeat = fields.or("repeat", 1, Whole(1, MAX_RUNS));
    let expected = "paths with their values: axes.\"links.bottleneck.delay\" = [\"10ms\", \"40ms\"]";
    if let Some(entry) = fields.get("axes") {
        match entry.node.table() {
            None => fields.reject("axes", &entry.node, Problem::new("not a table", expected)),
            Some(table) if table.0.len() > MAX_AXES => {
                let problem =
                    Problem::new(format!("{} axes are too many", table.0.len()), format!("at most {MAX_AXES}"));
                fields.reject("axes", &entry.node, problem);
            }
            Some(table) => {
                for axis in &table.0 {
                    let path = overrides::split(&axis.key);
                    if axis.node.table().is_some() {
                        let title = format!("sweep.axes.{}: not an array", axis.key);
                        let error = Diagnostic::new(title, &axis.key_place, "a path without quotes becomes a table");
                        cx.report.push(error.note(format!("expected {expected}")));
                        continue;
                    }
                    let values = match axis.node.array() {
                        Some(values) if !values.is_empty() => values,
                        array => {
                            let problem = if array.is_some() { "the axis is empty" } else { "not an array" };
                            fields.reject(
                                &format!("axes.\"{}\"", axis.key),
                                &axis.node,
                                Problem::new(problem, expected),
                            );
                            continue;
                        }
                    };
                    let mut seen = BTreeSet::new();
                    for value in values.iter().filter(|value| !seen.insert(inline(value))) {
                        let title = format!("sweep.axes.\"{}\": the same value twice", axis.key);
                        cx.report.push(Diagnostic::new(title, &value.place, format!("found {} again", value.found())));
                    }
                    let Some(path) = overrides::resolve(root_node, &path, &axis.key_place, false, cx.report) else {
                        continue;
                    };
                    let pin = pinned.iter().rev().find(|(pinned, _)| *pinned == path).map(|(_, node)| node.clone());
                    let (name, place) = (axis.key.clone(), axis.key_place.clone());
                    let before = values.to_vec();
                    let values = pin.map_or_else(|| before.clone(), |node| vec![node]);
                    sweep.axes.push(Axis { name, path, place, values, before });
                }
            }
        }
    }
    fields.finish();
    overlaps(&sweep, cx);
    size(&mut sweep, root_node, cx);
    sweep
}

/// Two axes of one key, or of a table and a key in it, would depend on their order.
fn overlaps(sweep: &Sweep, cx: &Context<'_>) {
    for (index, axis) in sweep.axes.iter().enumerate() {
        for other in &sweep.axes[..index] {
            if axis.path.starts_with(&other.path) || other.path.starts_with(&axis.path) {
                let title = format!("the axes `{}` and `{}` overlap", other.name, axis.name);
                cx.report.push(Diagnostic::new(title, &axis.place, "varies the same key as the other axis"));
            }
        }
    }
}

fn size(sweep: &mut Sweep, root: &Node, cx: &Context<'_>) {
    let points = sweep.axes.iter().fold(1u64, |points, axis| points.saturating_mul(axis.values.len() as u64));
    let runs = points.saturating_mul(sweep.repeat);
    let values = root.count();
    let (title, most) = if points > MAX_POINTS || runs > MAX_RUNS {
        let most = format!("at most {MAX_POINTS} points and {MAX_RUNS} runs");
        (format!("the sweep has {points} points and {runs} runs"), most)
    } else if points > 1 && values.saturating_mul(points) > MAX_VALUES {
        let most = format!("at most {MAX_VALUES} values in all points together");
        (format!("the sweep has {points} points, each with the {values} values of the file"), most)
    } else {
        return;
    };
    let place = root.table().and_then(|table| table.get("sweep")).map_or(&root.place, |entry| &entry.key_place);
    cx.report.push(Diagnostic::new(title, place, "too many").note(most));
    sweep.axes.clear();
}

/// The values of an axis as a readable list.
pub(crate) fn listed(values: &[Node]) -> String {
    let shown: Vec<String> = values.iter().take(10).map(inline).collect();
    shown.join(", ")
}
