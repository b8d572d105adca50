//! Axes whose values are drawn: `sample` and `ranges`.
//!
//! Independent draws, or a Latin hypercube: each range is cut into as many equal parts as there are
//! points, and each part is drawn from once, in an order of its own for each axis. Every axis has a
//! random stream of its own, derived from `run.seed` of the file and the name of the axis, so that
//! an axis more or less leaves the others as they are.
//!
//! # Source
//!
//! McKay, Beckman, Conover: A comparison of three methods for selecting values of input variables
//! in the analysis of output from a computer code, Technometrics 21 (1979), section 2.
//!
//! # Departures
//!
//! Values are rounded to four significant digits, so that they can be read and written again. With
//! a condition, draws that do not meet it are replaced by those of further hypercubes, in their
//! order: the ranges are no longer covered evenly.

use super::range::{Drawn, Range, Unit, end};
use ackclock_units::Random;

use super::axes::{Axis, AxisGroup, Reader, Section, Sweep, reject, unquoted};
use super::draw::{AxisColumn, DrawSource};
use super::names;
use super::names::Choice;
use crate::document::{Entry, Node, Value};
use crate::fields::Fields;
use crate::keys::Domain;
use crate::quantity::{Kind, OneOf, Problem, Text, Whole};
use crate::report::Diagnostic;

const RANGES: &str = "paths with their ranges: \"links.bottleneck.rate\" = { min = \"1mbit\", max = \"100mbit\", \
                      scale = \"log\" }, or { values = [\"pie\", \"codel\"] }";
const SCALE: OneOf<'_> = OneOf { what: "scale", names: &["linear", "log"] };

/// The most points that are drawn; each takes 8 bytes for an axis.
const MOST: u64 = u32::MAX as u64;

impl Reader<'_> {
    /// Reads `sample` and `ranges`: together they are a group.
    pub(super) fn sample<'n>(&self, fields: &mut Fields<'n>, sweep: &mut Sweep) {
        let ranges = fields.get(("ranges", "ranges of sampled parameters"));
        let Some(mut sample) = fields.table(
            ("sample", "number of sampled points, and the method"),
            "a section `[sweep.sample]` with `lhs` or `random`",
        ) else {
            if let Some(ranges) = ranges.filter(|_| fields.get("sample").is_none()) {
                reject(fields, "ranges", &ranges.node, "nothing is drawn from them", "`sample = { lhs = 100 }` beside");
            }
            return;
        };
        let (lhs, random) = (
            sample.maybe(("lhs", "points of a Latin hypercube"), Whole(1, MOST)),
            sample.maybe(("random", "points drawn independently"), Whole(1, MOST)),
        );
        if sample.get("lhs").is_some() == sample.get("random").is_some() {
            sample.missing("lhs", "either `lhs` or `random`, the number of points");
        }
        let [condition, derived] = [
            (("where", "condition on sampled points"), Text.domain()),
            (("derive", "paths of keys with expressions over the parameters of the sample"), Domain::Table),
        ]
        .map(|(key, domain)| {
            sample.declare(key, || domain);
            sample.get(key).map(|entry| &entry.node)
        });
        sample.finish();
        let Some(ranges) = ranges else { return fields.missing("ranges", RANGES) };
        let Some(table) = ranges.node.table().filter(|table| !table.0.is_empty()) else {
            return reject(fields, "ranges", &ranges.node, "not a table with ranges", RANGES);
        };
        let Some(points) = lhs.or(random) else { return };
        let (seed, mut columns) = (self.seed(), Vec::new());
        for axis in &table.0 {
            if !axis.key.contains('.') {
                unquoted("ranges", axis, RANGES, self.cx);
                continue;
            }
            let Some((range, before)) = self.range(axis) else { continue };
            let Some((paths, pin)) = self.resolve(&axis.key, &axis.key_place) else { continue };
            let pinned = pin.is_some();
            let range = pin.map_or(range, |pin| Range::Among(vec![names::pinned(pin, &before)]));
            let source = DrawSource::Random(Random::for_component(seed, 0, &format!("sweep.ranges.{}", axis.key)));
            let drawn = Drawn { range, parts: Vec::new(), place: axis.node.place.clone(), pinned };
            columns.push(AxisColumn { entry: axis, paths, before, drawn, source });
        }
        // An axis that refers to a wrong range is not wrong itself.
        if columns.len() < table.0.len() {
            return;
        }
        let points = points as usize;
        if let Some((mut axes, note)) = self.points_of(lhs.is_some(), points, columns, (condition, derived), sweep) {
            sweep.axes.append(&mut axes);
            sweep.notes.extend(note);
            sweep.groups.push(AxisGroup { section: Section::Ranges, len: points });
        }
    }

    /// The axes of a sample with a condition, and with what is derived, if there is any.
    fn points_of<'n>(
        &self,
        latin: bool,
        points: usize,
        mut columns: Vec<AxisColumn<'n>>,
        (condition, derived): (Option<&'n Node>, Option<&'n Node>),
        sweep: &Sweep,
    ) -> Option<(Vec<Axis>, Option<String>)> {
        if let Some(derived) = derived {
            self.derived(derived, &mut columns)?;
        }
        let names: Vec<&str> = columns.iter().map(|column| column.entry.key.as_str()).collect();
        let condition = match condition {
            Some(node) => Some(self.expression("sweep.sample.where".to_owned(), node, &names)?),
            None => None,
        };
        self.draw((latin, points, sweep.groups.len()), columns, condition.as_ref())
    }

    /// The seed of the file; a sweep over it has drawn nothing from its values.
    fn seed(&self) -> u64 {
        let run = self.root.table().and_then(|root| root.get("run")?.node.table());
        let seed = run.and_then(|run| match run.get("seed")?.node.value {
            Value::Integer(seed) => u64::try_from(seed).ok(),
            _ => None,
        });
        seed.unwrap_or(1)
    }

    /// Reads a range, and the values that it lists.
    fn range(&self, axis: &Entry) -> Option<(Range, Vec<Choice>)> {
        let path = format!("sweep.ranges.\"{}\"", axis.key);
        let Some(table) = axis.node.table() else {
            let error = Diagnostic::new(format!("{path}: not a range"), &axis.node.place, "found here");
            self.cx.report.push(error.note(format!("expected {RANGES}")));
            return None;
        };
        let mut fields = Fields::new(self.cx, table, path, &axis.node.place);
        let read = match fields.get("values") {
            Some(values) => match values.node.array().filter(|values| !values.is_empty()) {
                Some(values) => {
                    Choice::read_all(&format!("sweep.ranges.\"{}\".values", axis.key), values, self.cx.report)
                        .map(|values| (Range::Among(values.clone()), values))
                }
                None => {
                    reject(&fields, "values", &values.node, "not an array with values", RANGES);
                    None
                }
            },
            None => between(&mut fields).map(|range| (range, Vec::new())),
        };
        fields.finish();
        read
    }
}

fn between(fields: &mut Fields<'_>) -> Option<Range> {
    let scale = fields.maybe("scale", SCALE);
    let ends = ["min", "max"].map(|key| fields.get(key).map(|entry| (key, &entry.node)));
    let [Some(min), Some(max)] = ends else {
        let missing = if ends[0].is_none() { "min" } else { "max" };
        fields.missing(missing, RANGES);
        return None;
    };
    let read = |(key, node): (&str, &Node)| {
        let found = end(node);
        if found.is_none() {
            let expected = "a number, or a quantity with its unit: a time, a rate, a size";
            fields.reject(key, node, Problem::new("not a number with a unit", expected));
        }
        found
    };
    let (from, to) = (read(min)?, read(max)?);
    let unit = match (from.0, to.0) {
        (Unit::Whole, Unit::Real) | (Unit::Real, Unit::Whole) => Unit::Real,
        (a, b) if a == b => a,
        _ => {
            fields.reject("max", max.1, Problem::new("not the unit of `min`", "two quantities of the same kind"));
            return None;
        }
    };
    let log = scale == Some("log");
    if from.1 >= to.1 {
        fields.reject("max", max.1, Problem::new("not more than `min`", "a range that is not empty"));
        return None;
    }
    if log && from.1 <= 0.0 {
        fields.reject("min", min.1, Problem::new("must be positive on a logarithmic scale", "more than 0"));
        return None;
    }
    Some(Range::Between { unit, min: from.1, max: to.1, log })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Place;
    use crate::sweep::range::parts;
    use crate::sweep::range::rounded;
    use crate::sweep::range::shown;

    #[test]
    fn a_latin_hypercube_has_one_value_in_each_part() {
        let points = 1000;
        let drawn = parts(true, points, &mut Random::for_component(7, 0, "a"));
        let mut strata: Vec<usize> = drawn.iter().map(|part| (part * points as f64) as usize).collect();
        assert!(!strata.is_sorted());
        strata.sort_unstable();
        assert_eq!(strata, (0..points).collect::<Vec<_>>());
        // The mean of stratified draws has a standard deviation of 1 / (sqrt(12) n^1.5) = 9.1e-6.
        let mean = drawn.iter().sum::<f64>() / points as f64;
        assert!((mean - 0.5).abs() < 5.0 * 9.1e-6, "{mean}");
        // Two axes are independent: the correlation of two permutations has 1 / sqrt(n - 1) =
        // 0.032.
        let other = parts(true, points, &mut Random::for_component(7, 0, "b"));
        let covariance: f64 = drawn.iter().zip(&other).map(|(a, b)| (a - 0.5) * (b - 0.5)).sum::<f64>();
        assert!((covariance * 12.0 / points as f64).abs() < 4.0 * 0.032, "{covariance}");
    }

    #[test]
    fn values_have_four_digits_and_stay_in_their_range() {
        for (value, expected) in [(0.0, 0.0), (1234.56, 1235.0), (0.000_123_456, 0.000_123_5), (99_999.0, 100_000.0)] {
            assert_eq!(rounded(value), expected);
        }
        assert_eq!(shown(Unit::Span, rounded(12_345_678.0)), Value::from("12350us"));
        assert_eq!(shown(Unit::Rate, rounded(98_765_432.0)), Value::from("98770kbit"));
        let range = Range::Between { unit: Unit::Whole, min: 12_345.0, max: 12_346.0, log: false };
        let drawn = Drawn { range, parts: vec![0.0, 0.999], place: Place::new(0, 0..0), pinned: false };
        assert_eq!([0, 1].map(|index| drawn.at(index).value), [Value::Integer(12_345), Value::Integer(12_346)]);
        // In the middle of a logarithmic scale is the geometric mean.
        let range = Range::Between { unit: Unit::Rate, min: 1e6, max: 1e8, log: true };
        let drawn = Drawn { range, parts: vec![0.0, 0.5], place: Place::new(0, 0..0), pinned: false };
        assert_eq!([0, 1].map(|index| drawn.at(index).value), ["1mbit", "10mbit"].map(Value::from));
    }
}
