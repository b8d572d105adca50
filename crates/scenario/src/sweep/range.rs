//! Ranges from which values are drawn.

use super::names::{self, Choice};
use crate::document::Table;
use crate::document::{Node, Value};
use crate::quantity::{Kind, SizeOf};
use ackclock_units::Random;
use ackclock_units::{Rate, Size, Span, maths, parse_rate, parse_size, parse_span};

use crate::report::Place;

/// Significant digits of what is drawn.
const DIGITS: usize = 4;

/// The quantity of the values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Span,
    Rate,
    Bytes,
    Packets,
    Whole,
    Real,
    /// A whole number if it is one.
    Plain,
}

/// Where values are drawn from.
#[derive(Clone, Debug)]
pub(super) enum Range {
    Between {
        unit: Unit,
        min: f64,
        max: f64,
        log: bool,
    },
    Among(Vec<Choice>),
    /// A range that follows from others, in the unit of the first value: parts are the values.
    Derived(Option<Unit>),
}

/// The values drawn for an axis.
#[derive(Clone, Debug)]
pub(crate) struct Drawn {
    pub(super) range: Range,
    /// Parts of the range, from 0 to below 1.
    pub(super) parts: Vec<f64>,
    pub(super) place: Place,
    /// `true` if an argument has set the only value.
    pub(super) pinned: bool,
}

impl Drawn {
    /// A derived axis, or a value in its place.
    pub(super) fn derived(pin: Option<Node>, place: Place) -> Drawn {
        let pinned = pin.is_some();
        let range = pin.map_or(Range::Derived(None), |pin| Range::Among(vec![names::pinned(pin, &[])]));
        Drawn { range, parts: Vec::new(), place, pinned }
    }

    pub(super) fn at(&self, index: usize) -> Node {
        self.value(self.parts[index])
    }

    /// The value in this part of the range.
    pub(super) fn value(&self, part: f64) -> Node {
        match &self.range {
            Range::Among(values) => values[among(values, part)].node.clone(),
            Range::Derived(unit) => Node::new(shown(unit.unwrap_or(Unit::Plain), part), self.place.clone()),
            &Range::Between { unit, min, max, log } => {
                let value = match log {
                    true => maths::exp(maths::ln(min) + part * (maths::ln(max) - maths::ln(min))),
                    false => min + part * (max - min),
                };
                Node::new(shown(unit, rounded(value).clamp(min, max)), self.place.clone())
            }
        }
    }

    /// The values, if they are no range.
    pub(super) fn listed(&self) -> Option<&[Choice]> {
        match &self.range {
            Range::Among(values) => Some(values),
            Range::Between { .. } | Range::Derived(_) => None,
        }
    }

    pub(super) fn name(&self, index: usize) -> Option<&str> {
        self.listed()?[self.choice(index)].name()
    }

    pub(super) fn choice(&self, index: usize) -> usize {
        self.listed().map_or(index, |values| among(values, self.parts[index]))
    }

    pub(super) fn len(&self) -> usize {
        self.parts.len()
    }

    /// The range as it is written where an argument has left one value.
    pub(super) fn pinned(&self) -> Option<Value> {
        let values = self.listed()?;
        let mut table = Table::default();
        let values = Value::Array(values.iter().map(Choice::written).collect());
        table.set("values", self.place.clone(), Node { value: values, place: self.place.clone() });
        self.pinned.then_some(Value::Table(table))
    }
}

/// The number of the value in whose part of the range this is.
pub(super) fn among(values: &[Choice], part: f64) -> usize {
    ((part * values.len() as f64) as usize).min(values.len() - 1)
}

/// To four significant digits. By a text, which is exact to the last digit on every platform.
pub(super) fn rounded(value: f64) -> f64 {
    format!("{value:.digits$e}", digits = DIGITS - 1).parse().unwrap_or(value)
}

pub(super) fn shown(unit: Unit, value: f64) -> Value {
    // The value is not negative: a parsed one never is.
    let whole = value.round() as u64;
    match unit {
        Unit::Span => Span::from_nanos(whole).into(),
        Unit::Rate => Rate::from_bps(whole).map_or_else(|| Value::Float(value), Value::from),
        Unit::Bytes => SizeOf(0, u64::MAX).show(&ackclock_aqm::Limit::Bytes(whole)),
        Unit::Packets => SizeOf(0, u64::MAX).show(&ackclock_aqm::Limit::Packets(whole)),
        Unit::Whole => Value::Integer(value.round() as i128),
        Unit::Plain if value.fract() == 0.0 && value.abs() < 9e15 => Value::Integer(value as i128),
        Unit::Real | Unit::Plain => Value::Float(value),
    }
}

/// An end of a range.
pub(super) fn end(node: &Node) -> Option<(Unit, f64)> {
    match &node.value {
        Value::Integer(number) => Some((Unit::Whole, *number as f64)),
        Value::Float(number) => Some((Unit::Real, *number)).filter(|_| number.is_finite()),
        Value::String(text) => {
            let span = parse_span(text).ok().map(|span| (Unit::Span, span.as_nanos() as f64));
            let rate = || parse_rate(text).ok().map(|rate| (Unit::Rate, rate.as_bps() as f64));
            let size = || match parse_size(text).ok()? {
                Size::Bytes(bytes) => Some((Unit::Bytes, bytes as f64)),
                Size::Packets(packets) => Some((Unit::Packets, packets as f64)),
            };
            span.or_else(rate).or_else(size)
        }
        _ => None,
    }
}

/// A Latin hypercube is drawn in strata, in an order of its own for each axis.
pub(super) fn parts(latin: bool, points: usize, random: &mut Random) -> Vec<f64> {
    if !latin {
        return (0..points).map(|_| random.unit()).collect();
    }
    let mut strata: Vec<f64> = (0..points).map(|stratum| stratum as f64).collect();
    for last in (1..points).rev() {
        strata.swap(last, random.below(last as u64 + 1) as usize);
    }
    strata.iter_mut().for_each(|stratum| *stratum = (*stratum + random.unit()) / points as f64);
    strata
}
