//! The points of a sweep by conditions, and parameters that follow from others: [`Expression`]s
//! over the values of axes.

use super::axes::{Axis, Reader, Sweep, Values};
use super::expression::{self, BYTES, BYTES_PER_SECOND, EXPECTED, Expression, FoundValue, NONE, PACKETS, SECONDS};
use super::range::Unit;
use crate::document::{Node, Value};
use crate::report::Diagnostic;
use crate::write::inline;

/// The most points of which some are left out: each is looked at, and takes 8 bytes.
const MAX_POINTS: usize = 100_000_000;

/// An expression of the file.
pub(super) struct Written<'n> {
    /// The name in errors.
    key: String,
    node: &'n Node,
    pub(super) expression: Expression,
}

impl Values {
    /// A value as expressions have it.
    pub(super) fn found(&self, row: usize) -> FoundValue {
        found(&self.at(row), self.name(row))
    }
}

/// A value with this name, as expressions have it.
pub(super) fn found(node: &Node, name: Option<&str>) -> FoundValue {
    match &node.value {
        Value::String(text) => FoundValue::of(text),
        Value::Integer(number) => FoundValue::Number(*number as f64, NONE),
        Value::Float(number) => FoundValue::Number(*number, NONE),
        Value::Boolean(truth) => FoundValue::Truth(*truth),
        _ => FoundValue::Text(name.map_or_else(|| inline(node), str::to_owned)),
    }
}

impl Reader<'_> {
    /// Reads an expression over parameters of these names; what is wrong is reported.
    pub(super) fn expression<'n>(&self, key: String, node: &'n Node, names: &[&str]) -> Option<Written<'n>> {
        let read = match node.str() {
            Some(text) if text.len() <= expression::MAX_LENGTH => Expression::read(text, names),
            Some(_) => Err("too long".to_owned()),
            None => Err("not a text with an expression".to_owned()),
        };
        match read {
            Ok(expression) => Some(Written { key, node, expression }),
            Err(problem) => {
                let error = Diagnostic::new(format!("{key}: {problem}"), &node.place, "found here");
                self.cx.report.push(error.note(format!("expected {EXPECTED}")));
                None
            }
        }
    }

    /// Returns the result; an error is reported.
    pub(super) fn known<T>(&self, of: &Written<'_>, found: Result<T, String>) -> Option<T> {
        found.map_err(|problem| self.fail(of, &problem)).ok()
    }

    pub(super) fn fail(&self, of: &Written<'_>, problem: &str) {
        self.cx.report.push(Diagnostic::new(format!("{}: {problem}", of.key), &of.node.place, "found here"));
    }

    /// Leaves out the points that do not meet a condition.
    pub(super) fn leave_out(&self, node: &Node, sweep: &mut Sweep) {
        let names: Vec<&str> = sweep.axes.iter().map(|axis| axis.name.as_str()).collect();
        let Some(condition) = self.expression("sweep.where".to_owned(), node, &names) else { return };
        let points = sweep.groups.iter().fold(1usize, |points, group| points.saturating_mul(group.len));
        if points > MAX_POINTS {
            return self.fail(&condition, &format!("of at most {MAX_POINTS} points some may be left out"));
        }
        let found = |axis: &Axis| (0..axis.values.len()).map(|row| axis.values.found(row)).collect();
        let values: Vec<Vec<FoundValue>> = sweep.axes.iter().map(found).collect();
        let mut kept = Vec::new();
        for point in 0..points {
            let rows = sweep.rows(point);
            let of = |axis: usize| values[axis][rows[sweep.axes[axis].group]].clone();
            match self.known(&condition, condition.expression.truth(&of)) {
                Some(true) => kept.push(point),
                Some(false) => {}
                None => return,
            }
        }
        if kept.is_empty() {
            return self.fail(&condition, &format!("none of {points} points meets it"));
        }
        sweep.notes.push(match points - kept.len() {
            0 => "`sweep.where` leaves out no point".to_owned(),
            out => format!("`sweep.where` leaves out {out} of {points} points"),
        });
        sweep.kept = Some(kept.into());
    }
}

/// The unit in which a number is written, and how many of them it is.
pub(super) fn written((number, unit): (f64, [i8; 3])) -> Result<(Unit, f64), String> {
    let (unit, number) = match unit {
        NONE => (Unit::Plain, number),
        SECONDS => (Unit::Span, number * 1e9),
        BYTES => (Unit::Bytes, number),
        PACKETS => (Unit::Packets, number),
        BYTES_PER_SECOND => (Unit::Rate, number * 8.0),
        _ => return Err("it comes to no time, rate, size or plain number".to_owned()),
    };
    match number.is_finite() && (number >= 0.0 || unit == Unit::Plain) {
        true => Ok((unit, number)),
        false => Err(format!("it comes to {number}")),
    }
}
