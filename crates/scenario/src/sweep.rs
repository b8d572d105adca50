//! `[sweep]`: what varies from point to point, and repetitions.
//!
//! The points are all combinations of groups: each axis of `axes` is one, each table of `zip`
//! (whose axes move together), `points` as a whole, and what `sample` draws from `ranges` as a
//! whole. `where` leaves some out.

mod axes;
mod condition;
mod draw;
mod expression;
mod listed;
mod names;
mod range;
mod sample;

use std::collections::BTreeSet;

use crate::document::{Node, Value};
use crate::fields::{Context, Fields};
use crate::overrides::{self, Argument, Path};
use crate::quantity::{Kind, Problem, Text, Whole};
use crate::report::Diagnostic;
use crate::sweep::axes::Section;
use crate::write::inline;
use axes::Reader;
pub(crate) use axes::{Axis, Sweep, Values};
pub(crate) use names::Choice;

/// The most runs of a sweep: what they leave in memory is checked against what there is, this
/// bound keeps numbers of runs from overflowing.
pub const MAX_RUNS: u64 = 1 << 40;

/// The most runs of a point that `until` may end earlier: each is judged with all before it.
const MAX_REPEAT: u64 = 10_000;

/// The fewest runs of such a point, unless the file says otherwise.
const FEWEST: u64 = 5;

/// The most points that are read in advance, and kept; of more than these, a part is.
pub const MAX_READ: usize = 10_000;

/// The most axes: each is compared with every other one.
const MAX_AXES: usize = 1000;

/// The most values of the file times points that are read in advance.
const MAX_VALUES: u64 = 20_000_000;

impl Sweep {
    /// Number of points.
    pub(crate) fn points(&self) -> usize {
        let all = || self.groups.iter().map(|group| group.len).product();
        self.kept.as_ref().map_or_else(all, |kept| kept.len())
    }

    /// The point that a combination is, unless it is left out.
    fn point(&self, combination: usize) -> Option<usize> {
        self.kept.as_ref().map_or(Some(combination), |kept| kept.binary_search(&combination).ok())
    }

    fn combination(&self, point: usize) -> usize {
        self.kept.as_ref().map_or(point, |kept| kept[point])
    }

    /// Index of each axis's value at a point; the last group moves fastest.
    pub(crate) fn indices(&self, point: usize) -> Vec<usize> {
        let rows = self.rows(self.combination(point));
        self.axes.iter().map(|axis| rows[axis.group]).collect()
    }

    /// Index of each axis's value at a point, among those that the file lists: draws of one value
    /// are one.
    pub(crate) fn choices(&self, point: usize) -> Vec<usize> {
        self.axes.iter().zip(self.indices(point)).map(|(axis, row)| axis.values.choice(row)).collect()
    }

    /// Returns `true` if values of an axis are listed, and meet all of the others: an error at
    /// every point with one of them is due to the value.
    pub(crate) fn is_chosen(&self, axis: usize) -> bool {
        let Axis { group, values, .. } = &self.axes[axis];
        match self.groups[*group].section {
            Section::Axes => true,
            Section::Ranges => matches!(values, Values::Drawn(drawn) if drawn.listed().is_some()),
            Section::Zip(_) | Section::Points => false,
        }
    }

    /// A point by the values of these axes.
    pub(crate) fn name(&self, point: usize, of: impl Fn(&Axis) -> bool) -> String {
        let named = |values: &Values, row| values.name(row).map_or_else(|| inline(&values.at(row)), str::to_owned);
        let axes = self.axes.iter().zip(self.indices(point)).filter(|(axis, _)| of(axis));
        axes.map(|(axis, row)| format!("{} = {}", axis.name, named(&axis.values, row))).collect::<Vec<_>>().join(", ")
    }

    /// The point with the value before on this group, and like this one on all others.
    pub(crate) fn previous(&self, point: usize, group: usize) -> Option<usize> {
        let stride: usize = self.groups[group + 1..].iter().map(|group| group.len).product();
        let here = self.combination(point);
        let before = (!(here / stride).is_multiple_of(self.groups[group].len)).then(|| here - stride)?;
        self.point(before)
    }

    fn rows(&self, mut combination: usize) -> Vec<usize> {
        let mut rows = vec![0; self.groups.len()];
        for (group, row) in self.groups.iter().zip(&mut rows).rev() {
            *row = combination % group.len;
            combination /= group.len;
        }
        rows
    }

    /// The point that has these values on these axes and is like `point` otherwise; axes that move
    /// together with one of these follow it, if no other value leaves them as they are. `None` if
    /// there is none, or more than one.
    pub(crate) fn moved(&self, point: usize, to: &[(usize, Node)]) -> Option<usize> {
        let mut rows = self.rows(self.combination(point));
        for (number, group) in self.groups.iter().enumerate() {
            let of_group = |axis: &usize| self.axes[*axis].group == number;
            let wanted: Vec<&(usize, Node)> = to.iter().filter(|(axis, _)| of_group(axis)).collect();
            if wanted.is_empty() {
                continue;
            }
            let at = |axis: usize, row: usize| self.axes[axis].values.at(row);
            let meets = |row: &usize| wanted.iter().all(|(axis, value)| at(*axis, *row).same(value));
            let rest =
                (0..self.axes.len()).filter(of_group).filter(|axis| wanted.iter().all(|(other, _)| other != axis));
            let rest: Vec<usize> = rest.collect();
            let like = |row: &usize| rest.iter().all(|&axis| at(axis, *row).same(&at(axis, rows[number])));
            let mut met = (0..group.len).filter(meets);
            let row = match (0..group.len).find(|row| meets(row) && like(row)) {
                Some(row) => row,
                None => met.next().filter(|_| met.next().is_none())?,
            };
            rows[number] = row;
        }
        self.point(self.groups.iter().zip(rows).fold(0, |point, (group, row)| point * group.len + row))
    }

    /// The points that are read in advance, where the document has so many values: all, or of too
    /// many those that differ from the first by one value of one group, as far as there is room,
    /// and as many evenly spaced ones.
    pub(crate) fn in_advance(&self, values: u64) -> Vec<usize> {
        let (points, room) = (self.points(), (MAX_VALUES / values.max(1)).max(2) as usize);
        if points <= MAX_READ.min(room) {
            return (0..points).collect();
        }
        let half = MAX_READ.min(room) / 2;
        let mut some: BTreeSet<usize> =
            (0..half).map(|number| (number as u128 * points as u128 / half as u128) as usize).collect();
        let mut stride = self.groups.iter().map(|group| group.len).product::<usize>();
        for group in &self.groups {
            stride /= group.len;
            let rows = (0..group.len).filter_map(|row| self.point(row * stride));
            some.extend(rows.take(half / self.groups.len()));
        }
        some.into_iter().collect()
    }

    /// Returns `true` if an axis is of this key in the table at this path, or of a table that holds
    /// it.
    pub(crate) fn varies(&self, table: &[String], key: &str) -> bool {
        let holds = |path: &Path| table.starts_with(path) || path.strip_prefix(table).is_some_and(|rest| rest == [key]);
        self.axes.iter().any(|axis| axis.paths.iter().any(holds))
    }

    /// Sets what varies to its values at a point.
    pub(crate) fn set(&self, point: usize, root: &mut Node, report: &crate::report::Report) {
        for (axis, index) in self.axes.iter().zip(self.indices(point)) {
            let value = axis.values.at(index);
            for path in &axis.paths {
                overrides::set(root, path, &axis.place, value.clone().into_owned(), report);
            }
        }
    }

    /// Writes the values that arguments have left into the document.
    pub(crate) fn pin(&self, section: &mut Node) {
        for axis in &self.axes {
            let Value::Table(section) = &mut section.value else { return };
            let group = &self.groups[axis.group];
            let key = match group.section {
                Section::Axes => "axes",
                Section::Ranges => "ranges",
                Section::Zip(_) => "zip",
                Section::Points => "points",
            };
            let values = || match &axis.values {
                Values::Listed(values) => values.iter().map(Choice::written).collect(),
                Values::Drawn(_) => Vec::new(),
            };
            match (group.section, section.get_mut(key).map(|entry| &mut entry.node.value)) {
                (Section::Axes, Some(Value::Table(axes))) => set_in(axes, &axis.name, Value::Array(values())),
                (Section::Ranges, Some(Value::Table(ranges))) => {
                    let Values::Drawn(drawn) = &axis.values else { continue };
                    match (drawn.pinned(), ranges.get_mut(&axis.name)) {
                        (Some(range), Some(entry)) => entry.node.value = range,
                        (Some(_), None) => set_derived(section, &axis.name, drawn.listed().unwrap_or_default()),
                        (None, _) => {}
                    }
                }
                (Section::Zip(number), Some(Value::Array(zips))) => {
                    if let Some(Value::Table(zip)) = zips.get_mut(number).map(|zip| &mut zip.value) {
                        set_in(zip, &axis.name, Value::Array(values()));
                    }
                }
                (Section::Points, Some(Value::Array(points))) => {
                    points.truncate(group.len);
                    for (point, value) in points.iter_mut().zip(values()) {
                        if let Value::Table(point) = &mut point.value {
                            set_in(point, &axis.name, value.value);
                        }
                    }
                }
                _ => {}
            }
        }
    }
}

/// Writes the value that an argument has left of a derived parameter.
fn set_derived(section: &mut crate::document::Table, path: &str, values: &[Choice]) {
    let sample = section.get_mut("sample").map(|entry| &mut entry.node.value);
    let Some(Value::Table(sample)) = sample else { return };
    if let Some(Value::Table(derive)) = sample.get_mut("derive").map(|entry| &mut entry.node.value) {
        set_in(derive, path, Value::Array(values.iter().map(Choice::written).collect()));
    }
}

fn set_in(table: &mut crate::document::Table, key: &str, value: Value) {
    if let Some(entry) = table.get_mut(key) {
        entry.node.value = value;
    }
}

/// Reads `[sweep]`. An axis whose path an argument set has that value alone.
pub(crate) fn read<'a>(root_node: &Node, root: &mut Fields<'a>, cx: &'a Context<'a>, pinned: &[Argument]) -> Sweep {
    let declared = root.get("sweep").is_some();
    let mut sweep =
        Sweep { axes: Vec::new(), groups: Vec::new(), kept: None, notes: Vec::new(), repeat: 1, at_least: 1, declared };
    let Some(mut fields) =
        root.table(("sweep", "parameters that vary between runs"), "a section `[sweep]` with `axes` and `repeat`")
    else {
        return sweep;
    };
    (sweep.at_least, sweep.repeat) = repeat(&mut fields);
    let reader = Reader { root: root_node, cx, pinned };
    reader.axes(&mut fields, &mut sweep);
    reader.zips(&mut fields, &mut sweep);
    reader.points(&mut fields, &mut sweep);
    reader.sample(&mut fields, &mut sweep);
    fields.declare(("where", "condition on points"), || Text.domain());
    if let Some(entry) = fields.get("where")
        && cx.report.len() == 0
    {
        reader.leave_out(&entry.node, &mut sweep);
    }
    fields.finish();
    if sweep.axes.len() > MAX_AXES {
        let place = &sweep.axes[MAX_AXES].place;
        let error = Diagnostic::new(format!("{} axes are too many", sweep.axes.len()), place, "one too many");
        cx.report.push(error.note(format!("at most {MAX_AXES}")));
        (sweep.axes, sweep.groups, sweep.kept) = Default::default();
    }
    overlaps(&sweep, cx);
    size(&mut sweep, root_node, cx);
    sweep
}

const REPEAT: (&str, &str) = ("repeat", "runs of each point");

/// Reads how often points are repeated: so often, or at least and at most so often. The condition
/// that ends repetitions is read where metrics are known.
fn repeat(fields: &mut Fields<'_>) -> (u64, u64) {
    if fields.peek("repeat").is_none_or(|node| node.table().is_none()) {
        let repeat = fields.or(REPEAT, 1, Whole(1, MAX_RUNS));
        return (repeat, repeat);
    }
    let Some(mut table) = fields.table(REPEAT, "") else { return (1, 1) };
    let min = table.or(("min", "least number of runs per point"), FEWEST, Whole(2, MAX_REPEAT));
    let max =
        table.required(("max", "largest number of runs per point"), Whole(2, MAX_REPEAT), "the most runs of a point");
    if table.get("until").is_none() {
        table.missing("until", "`until = { metric = \"...\", ci95 = 0.05 }`");
    } else {
        table.table(("until", "stopping rule of the repetitions of a point"), "a table with `metric` and `ci95`");
    }
    if let (Some(max), Some(entry)) = (max.filter(|&max| max < min), table.get("max")) {
        let problem = Problem::new(format!("{max}, which is less than `min`, {min}"), "at least as many");
        table.reject("max", &entry.node, problem);
    }
    table.finish();
    (min, max.unwrap_or(min))
}

/// Two axes of one key, or of a table and a key in it, would depend on their order.
fn overlaps(sweep: &Sweep, cx: &Context<'_>) {
    for (index, axis) in sweep.axes.iter().enumerate() {
        for other in &sweep.axes[..index] {
            let overlap = |a: &Path, b: &Path| a.starts_with(b) || b.starts_with(a);
            if axis.paths.iter().any(|path| other.paths.iter().any(|other| overlap(path, other))) {
                let title = format!("the axes `{}` and `{}` overlap", other.name, axis.name);
                cx.report.push(Diagnostic::new(title, &axis.place, "varies the same key as the other axis"));
            }
        }
    }
}

fn size(sweep: &mut Sweep, root: &Node, cx: &Context<'_>) {
    let all = || sweep.groups.iter().fold(1u64, |points, group| points.saturating_mul(group.len as u64));
    let points = sweep.kept.as_ref().map_or_else(all, |kept| kept.len() as u64);
    let runs = points.saturating_mul(sweep.repeat);
    if runs <= MAX_RUNS {
        return;
    }
    let shown = |number: u64| if number == u64::MAX { "too many".to_owned() } else { number.to_string() };
    let title = format!("the sweep has {} points and {} runs", shown(points), shown(runs));
    let place = root.table().and_then(|table| table.get("sweep")).map_or(&root.place, |entry| &entry.key_place);
    cx.report.push(Diagnostic::new(title, place, "too many").note(format!("at most {MAX_RUNS} runs")));
    (sweep.axes, sweep.groups, sweep.kept) = Default::default();
}

/// The values of an axis as a readable list.
pub(crate) fn listed(values: &[Choice]) -> String {
    let shown: Vec<String> = values.iter().take(10).map(|choice| inline(&choice.node)).collect();
    shown.join(", ")
}
