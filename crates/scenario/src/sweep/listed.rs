//! Axes whose values are listed: one by one (`axes`), together (`zip`), or as whole points
//! (`points`).

use std::collections::BTreeSet;

use super::axes::{Axis, AxisGroup, Reader, Section, Sweep, Values, reject, unquoted};
use super::names::Choice;
use super::{MAX_AXES, names};
use crate::document::{Entry, Node};
use crate::fields::Fields;
use crate::quantity::Problem;
use crate::report::Diagnostic;
use crate::write::inline;

const AXES: &str = "paths with their values: axes.\"links.bottleneck.delay\" = [\"10ms\", \"40ms\"]";
const ZIP: &str = "sections `[[sweep.zip]]` with paths and their values, arrays of the same length: \
                   \"links.a.delay\" = [\"10ms\", \"40ms\"]";
const POINTS: &str = "sections `[[sweep.points]]` with paths and one value each: \"links.a.delay\" = \"10ms\"";

impl Reader<'_> {
    /// Reads `axes`: each is a group.
    pub(super) fn axes(&self, fields: &mut Fields<'_>, sweep: &mut Sweep) {
        let Some(entry) = fields.get(("axes", "paths of keys with their values; every combination is a point")) else {
            return;
        };
        let table = match entry.node.table() {
            None => return reject(fields, "axes", &entry.node, "not a table", AXES),
            Some(table) if table.0.len() > MAX_AXES => {
                let problem =
                    Problem::new(format!("{} axes are too many", table.0.len()), format!("at most {MAX_AXES}"));
                return fields.reject("axes", &entry.node, problem);
            }
            Some(table) => table,
        };
        for axis in &table.0 {
            let Some(before) = self.values(fields, "axes", axis, AXES) else { continue };
            let mut seen = BTreeSet::new();
            for Choice { node, .. } in before.iter().filter(|choice| !seen.insert(inline(&choice.node))) {
                let title = format!("sweep.axes.\"{}\": the same value twice", axis.key);
                self.cx.report.push(Diagnostic::new(title, &node.place, format!("found {} again", node.found())));
            }
            let Some((paths, pin)) = self.resolve(&axis.key, &axis.key_place) else { continue };
            let (name, place) = (axis.key.clone(), axis.key_place.clone());
            let values = pin.map_or_else(|| before.clone(), |node| vec![names::pinned(node, &before)]);
            let values = Values::Listed(values);
            let group = sweep.groups.len();
            sweep.groups.push(AxisGroup { section: Section::Axes, len: values.len() });
            sweep.axes.push(Axis { name, paths, place, values, before, group });
        }
    }

    /// The array of an axis.
    fn values(&self, fields: &Fields<'_>, section: &str, axis: &Entry, expected: &str) -> Option<Vec<Choice>> {
        if axis.node.table().is_some() {
            unquoted(section, axis, expected, self.cx);
            return None;
        }
        match axis.node.array() {
            Some(values) if !values.is_empty() => {
                Choice::read_all(&format!("sweep.{section}.\"{}\"", axis.key), values, self.cx.report)
            }
            array => {
                let problem = if array.is_some() { "the axis is empty" } else { "not an array" };
                reject(fields, &format!("{section}.\"{}\"", axis.key), &axis.node, problem, expected);
                None
            }
        }
    }

    /// Reads `zip`: the axes of each table are a group.
    pub(super) fn zips(&self, fields: &mut Fields<'_>, sweep: &mut Sweep) {
        let Some(entry) = fields.get(("zip", "paths of keys that vary together")) else { return };
        let Some(zips) = entry.node.array() else {
            return reject(fields, "zip", &entry.node, "not a list of tables", ZIP);
        };
        for (number, zip) in zips.iter().enumerate() {
            let section = format!("zip.{number}");
            let Some(table) = zip.table().filter(|table| !table.0.is_empty()) else {
                reject(fields, &section, zip, "not a table with axes", ZIP);
                continue;
            };
            let columns: Option<Vec<(&Entry, Vec<Choice>)>> =
                (table.0.iter()).map(|axis| Some((axis, self.values(fields, &section, axis, ZIP)?))).collect();
            let Some(columns) = columns else { continue };
            let len = columns[0].1.len();
            if let Some((axis, values)) = columns.iter().find(|(_, values)| values.len() != len) {
                let problem = format!("{} values, and `{}` has {len}", values.len(), columns[0].0.key);
                reject(fields, &format!("{section}.\"{}\"", axis.key), &axis.node, &problem, "as many values");
                continue;
            }
            self.together(Section::Zip(number), columns, sweep);
        }
    }

    /// Reads `points`: together they are a group.
    pub(super) fn points(&self, fields: &mut Fields<'_>, sweep: &mut Sweep) {
        let Some(entry) = fields.get(("points", "points, listed one by one")) else { return };
        let points = entry.node.array().filter(|points| !points.is_empty());
        let Some(points) = points else { return reject(fields, "points", &entry.node, "not a list of tables", POINTS) };
        let mut columns: Vec<(&Entry, Vec<&Node>)> = Vec::new();
        for (number, point) in points.iter().enumerate() {
            let section = format!("points.{number}");
            let Some(table) = point.table().filter(|table| !table.0.is_empty()) else {
                return reject(fields, &section, point, "not a table with values", POINTS);
            };
            // A key without dots is the beginning of a path without quotes.
            if let Some(axis) = table.0.iter().find(|axis| !axis.key.contains('.')) {
                return unquoted(&section, axis, POINTS, self.cx);
            }
            if number == 0 {
                columns = table.0.iter().map(|axis| (axis, Vec::with_capacity(points.len()))).collect();
            }
            if let Some(axis) = table.0.iter().find(|axis| columns.iter().all(|(known, _)| known.key != axis.key)) {
                let problem = "the first point does not have this path";
                let path = format!("{section}.\"{}\"", axis.key);
                return reject(fields, &path, &axis.node, problem, "the same paths in all points");
            }
            for (axis, values) in &mut columns {
                let Some(value) = table.get(&axis.key) else {
                    let problem = format!("`{}` is missing", axis.key);
                    return reject(fields, &section, point, &problem, "the same paths in all points");
                };
                values.push(&value.node);
            }
        }
        let mut named = Vec::with_capacity(columns.len());
        for (axis, values) in columns {
            let path = format!("sweep.points.\"{}\"", axis.key);
            let Some(values) = Choice::read_all(&path, values, self.cx.report) else { return };
            named.push((axis, values));
        }
        self.together(Section::Points, named, sweep);
    }

    /// Adds axes that move together. Where arguments have set some of them, the rows with these
    /// values are left.
    fn together(&self, section: Section, columns: Vec<(&Entry, Vec<Choice>)>, sweep: &mut Sweep) {
        let (mut axes, mut pins) = (Vec::new(), Vec::new());
        let (mut kept, group): (Vec<usize>, usize) = ((0..columns[0].1.len()).collect(), sweep.groups.len());
        for (axis, before) in columns {
            let Some((paths, pin)) = self.resolve(&axis.key, &axis.key_place) else { return };
            if let Some(pin) = pin {
                kept.retain(|&row| before[row].node.same(&pin));
                pins.push(format!("{} = {}", axis.key, inline(&pin)));
            }
            let (name, place) = (axis.key.clone(), axis.key_place.clone());
            axes.push(Axis { name, paths, place, values: Values::Listed(Vec::new()), before, group });
        }
        if kept.is_empty() {
            let title = format!("no point of the sweep has {}", pins.join(" and "));
            let error = Diagnostic::new(title, &axes[0].place, "axes that move together with what an argument sets");
            self.cx.report.push(error.note("expected one of their values in the file"));
            return;
        }
        for axis in &mut axes {
            axis.values = Values::Listed(kept.iter().map(|&row| axis.before[row].clone()).collect());
        }
        sweep.groups.push(AxisGroup { section, len: kept.len() });
        sweep.axes.append(&mut axes);
    }
}
