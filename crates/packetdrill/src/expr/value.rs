//! Values.

use std::cmp::Ordering;
use std::fmt;

/// The longest string, in bytes, and the longest tuple.
pub(super) const MAX_LENGTH: usize = 1 << 16;

/// A value of Python's.
#[derive(Clone, Debug)]
pub enum Value {
    /// `None`
    None,
    /// `True` or `False`, which count as 1 and 0.
    Bool(bool),
    /// An integer.
    Int(i128),
    /// A float.
    Float(f64),
    /// A string.
    Text(String),
    /// A tuple or list.
    Tuple(Vec<Value>),
    /// `range(first, end, step)`; the step is not 0.
    Range(i128, i128, i128),
}

/// A number, with booleans taken as integers.
pub(super) enum Number {
    Int(i128),
    Float(f64),
}

impl Number {
    pub(super) fn float(&self) -> f64 {
        match *self {
            Number::Int(int) => int as f64,
            Number::Float(float) => float,
        }
    }
}

impl Value {
    pub(super) fn number(&self) -> Option<Number> {
        match *self {
            Value::Bool(bool) => Some(Number::Int(i128::from(bool))),
            Value::Int(int) => Some(Number::Int(int)),
            Value::Float(float) => Some(Number::Float(float)),
            _ => None,
        }
    }

    pub(super) fn int(&self) -> Option<i128> {
        match self.number() {
            Some(Number::Int(int)) => Some(int),
            _ => None,
        }
    }

    /// Returns `true` if the value counts as true.
    pub fn truth(&self) -> bool {
        match self {
            Value::None => false,
            Value::Bool(bool) => *bool,
            Value::Int(int) => *int != 0,
            Value::Float(float) => *float != 0.0,
            Value::Text(text) => !text.is_empty(),
            Value::Tuple(values) => !values.is_empty(),
            Value::Range(first, end, step) => range_len(*first, *end, *step) > 0,
        }
    }

    /// The name of its type, for messages.
    pub(super) fn kind(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Bool(_) => "a boolean",
            Value::Int(_) => "an integer",
            Value::Float(_) => "a float",
            Value::Text(_) => "a string",
            Value::Tuple(_) => "a tuple",
            Value::Range(..) => "a range",
        }
    }

    /// The notation of Python's `repr`: strings have quotation marks.
    pub fn repr(&self) -> String {
        match self {
            Value::Text(text) => {
                let mark = if text.contains('\'') && !text.contains('"') { '"' } else { '\'' };
                let mut out = String::from(mark);
                for char in text.chars() {
                    match char {
                        '\n' => out.push_str("\\n"),
                        '\r' => out.push_str("\\r"),
                        '\t' => out.push_str("\\t"),
                        '\\' => out.push_str("\\\\"),
                        _ if char == mark => out.extend(['\\', char]),
                        _ => out.push(char),
                    }
                }
                out.push(mark);
                out
            }
            other => other.to_string(),
        }
    }

    /// The order of `a` and `b`; `None` if they have none.
    pub(super) fn order(&self, other: &Value) -> Option<Ordering> {
        match (self.number(), other.number()) {
            (Some(Number::Int(a)), Some(Number::Int(b))) => Some(a.cmp(&b)),
            (Some(a), Some(b)) => a.float().partial_cmp(&b.float()),
            _ => match (self, other) {
                (Value::Text(a), Value::Text(b)) => Some(a.cmp(b)),
                // The first parts that differ decide.
                (Value::Tuple(a), Value::Tuple(b)) => match a.iter().zip(b).find(|(a, b)| a != b) {
                    Some((a, b)) => a.order(b),
                    None => Some(a.len().cmp(&b.len())),
                },
                _ => None,
            },
        }
    }
}

/// Python's `==`: numbers are equal whatever their type.
impl PartialEq for Value {
    fn eq(&self, other: &Value) -> bool {
        match (self, other) {
            (Value::None, Value::None) => true,
            (Value::Tuple(a), Value::Tuple(b)) => a == b,
            (Value::Range(a, b, c), Value::Range(x, y, z)) => (a, b, c) == (x, y, z),
            _ => self.order(other) == Some(Ordering::Equal),
        }
    }
}

pub(super) fn range_len(first: i128, end: i128, step: i128) -> i128 {
    let (low, high, step) = if step > 0 { (first, end, step) } else { (end, first, step.saturating_neg()) };
    let distance = high.saturating_sub(low);
    // The number of steps that start before the end.
    if distance <= 0 { 0 } else { (distance - 1) / step + 1 }
}

impl fmt::Display for Value {
    /// Writes the value as Python's `str` does.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::None => f.write_str("None"),
            Value::Bool(true) => f.write_str("True"),
            Value::Bool(false) => f.write_str("False"),
            Value::Int(int) => write!(f, "{int}"),
            Value::Float(float) => f.write_str(&float_text(*float)),
            Value::Text(text) => f.write_str(text),
            Value::Tuple(values) => {
                f.write_str("(")?;
                for (index, value) in values.iter().enumerate() {
                    write!(f, "{}{}", if index == 0 { "" } else { ", " }, value.repr())?;
                }
                f.write_str(if values.len() == 1 { ",)" } else { ")" })
            }
            Value::Range(first, end, 1) => write!(f, "range({first}, {end})"),
            Value::Range(first, end, step) => write!(f, "range({first}, {end}, {step})"),
        }
    }
}

/// The shortest digits that give the float back; with an exponent below 1e-4 and from 1e16 on.
fn float_text(float: f64) -> String {
    let size = float.abs();
    if float.is_nan() {
        "nan".to_owned()
    } else if float.is_infinite() {
        if float > 0.0 { "inf" } else { "-inf" }.to_owned()
    } else if size != 0.0 && !(1e-4..1e16).contains(&size) {
        let text = format!("{float:e}");
        let (digits, exponent) = text.split_once('e').unwrap_or((&text, "0"));
        match exponent.strip_prefix('-') {
            Some(exponent) => format!("{digits}e-{exponent:0>2}"),
            None => format!("{digits}e+{exponent:0>2}"),
        }
    } else {
        // `{:?}` keeps `.0`.
        format!("{float:?}")
    }
}

macro_rules! from_integers {
    ($($int:ty),*) => {$(
        impl From<$int> for Value {
            fn from(int: $int) -> Value {
                Value::Int(i128::from(int))
            }
        }
    )*};
}

from_integers!(u8, u16, u32, u64, i32, i64);

impl From<bool> for Value {
    fn from(bool: bool) -> Value {
        Value::Bool(bool)
    }
}

impl From<f64> for Value {
    fn from(float: f64) -> Value {
        Value::Float(float)
    }
}

impl From<&str> for Value {
    fn from(text: &str) -> Value {
        Value::Text(text.to_owned())
    }
}

pub(super) type Outcome<T> = Result<T, String>;
