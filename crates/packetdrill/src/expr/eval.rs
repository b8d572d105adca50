//! Running statements.

use std::cmp::Ordering;
use std::collections::BTreeMap;

use ackclock_units::maths;

use super::constants;
use super::error::CodeError;
use super::syntax::{Binary, Comparison, Node, NodeKind, Statement, StatementKind, Unary};
use super::value::Value;
use super::value::{MAX_LENGTH, Number, Outcome, range_len};

mod percent;

/// Deepest nesting of tuples.
const MAX_NESTING: usize = 8;

/// A program at work.
pub(super) struct Run<'a> {
    pub(super) env: &'a mut BTreeMap<String, Value>,
    pub(super) lookup: &'a dyn Fn(&str) -> Option<Value>,
    pub(super) printed: Vec<String>,
    pub(super) text: &'a str,
}

impl Run<'_> {
    pub(super) fn block(&mut self, body: &[Statement]) -> Result<(), Box<CodeError>> {
        body.iter().try_for_each(|statement| self.statement(statement))
    }

    fn statement(&mut self, statement: &Statement) -> Result<(), Box<CodeError>> {
        let line = statement.line;
        let failed = |message: String| {
            Box::new(CodeError { line, message, condition: None, values: Vec::new(), printed: Vec::new() })
        };
        match &statement.kind {
            StatementKind::Pass => Ok(()),
            StatementKind::Compute(node) => self.eval(node).map(drop).map_err(failed),
            StatementKind::Print(parts) => {
                let parts: Outcome<Vec<String>> = parts.iter().map(|node| Ok(self.eval(node)?.to_string())).collect();
                self.printed.push(parts.map_err(failed)?.join(" "));
                Ok(())
            }
            StatementKind::Assign { name, operator, value } => {
                let value = match operator {
                    Some(operator) => {
                        let left = self.name(name).map_err(failed)?;
                        self.eval(value).and_then(|right| binary(*operator, &left, &right))
                    }
                    None => self.eval(value),
                };
                self.env.insert(name.clone(), value.map_err(failed)?);
                Ok(())
            }
            StatementKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.eval(condition).map_err(failed)?.truth() {
                        return self.block(body);
                    }
                }
                self.block(otherwise)
            }
            StatementKind::Assert { condition, message } => {
                if self.eval(condition).map_err(failed)?.truth() {
                    return Ok(());
                }
                let message = match message {
                    Some(node) => self.eval(node).map_or_else(|error| error, |value| value.to_string()),
                    None => String::new(),
                };
                let mut values = Vec::new();
                self.values(condition, &mut values);
                let written = self.text.get(condition.place.clone()).unwrap_or_default();
                let written = written.split_whitespace().collect::<Vec<_>>().join(" ");
                Err(Box::new(CodeError { line, message, condition: Some(written), values, printed: Vec::new() }))
            }
        }
    }

    /// The names in an expression with their values, each once.
    fn values(&self, node: &Node, found: &mut Vec<(String, Value)>) {
        match &node.kind {
            NodeKind::Literal(_) => {}
            NodeKind::Name(name) => {
                if found.iter().all(|(other, _)| other != name)
                    && let Ok(value) = self.name(name)
                {
                    found.push((name.clone(), value));
                }
            }
            NodeKind::Unary(_, a) => self.values(a, found),
            NodeKind::Binary(_, a, b) => {
                self.values(a, found);
                self.values(b, found);
            }
            NodeKind::Compare(a, rest) => {
                self.values(a, found);
                rest.iter().for_each(|(_, b)| self.values(b, found));
            }
            NodeKind::And(all) | NodeKind::Or(all) | NodeKind::Call(_, all) | NodeKind::Tuple(all) => {
                all.iter().for_each(|node| self.values(node, found));
            }
            NodeKind::Choice(all) => all.iter().for_each(|node| self.values(node, found)),
        }
    }

    fn name(&self, name: &str) -> Outcome<Value> {
        let known = self.env.get(name).cloned().or_else(|| (self.lookup)(name)).or_else(|| constants::find(name));
        known.ok_or_else(|| format!("`{name}` is not defined"))
    }

    fn all(&self, nodes: &[Node]) -> Outcome<Vec<Value>> {
        nodes.iter().map(|node| self.eval(node)).collect()
    }

    fn eval(&self, node: &Node) -> Outcome<Value> {
        match &node.kind {
            NodeKind::Literal(value) => Ok(value.clone()),
            NodeKind::Name(name) => self.name(name),
            NodeKind::Unary(operator, a) => unary(*operator, &self.eval(a)?),
            NodeKind::Binary(operator, a, b) => binary(*operator, &self.eval(a)?, &self.eval(b)?),
            NodeKind::Compare(first, rest) => {
                let mut left = self.eval(first)?;
                for (comparison, node) in rest {
                    let right = self.eval(node)?;
                    if !compare(*comparison, &left, &right)? {
                        return Ok(Value::Bool(false));
                    }
                    left = right;
                }
                Ok(Value::Bool(true))
            }
            // The first that decides is the value.
            NodeKind::And(parts) => self.first(parts, false),
            NodeKind::Or(parts) => self.first(parts, true),
            NodeKind::Choice(all) => {
                let [condition, yes, no] = all.as_ref();
                self.eval(if self.eval(condition)?.truth() { yes } else { no })
            }
            NodeKind::Tuple(parts) => {
                let tuple = Value::Tuple(self.all(parts)?);
                let (size, nesting) = measure(&tuple);
                if size > MAX_LENGTH || nesting > MAX_NESTING {
                    return Err("a tuple that is too large".to_owned());
                }
                Ok(tuple)
            }
            NodeKind::Call(name, args) => call(name, &self.all(args)?),
        }
    }

    fn first(&self, parts: &[Node], wanted: bool) -> Outcome<Value> {
        let mut value = Value::None;
        for part in parts {
            value = self.eval(part)?;
            if value.truth() == wanted {
                break;
            }
        }
        Ok(value)
    }
}

/// Values (bytes of strings count) in a value, and how deep it is nested.
fn measure(value: &Value) -> (usize, usize) {
    match value {
        Value::Tuple(values) => {
            values.iter().map(measure).fold((1, 1), |sum, one| (sum.0 + one.0, sum.1.max(one.1 + 1)))
        }
        Value::Text(text) => (1 + text.len(), 0),
        _ => (1, 0),
    }
}

fn overflow() -> String {
    "an integer does not fit 128 bits".to_owned()
}

fn unary(operator: Unary, value: &Value) -> Outcome<Value> {
    let wrong = || format!("a sign or `~` does not apply to {}", value.kind());
    Ok(match (operator, value.number()) {
        (Unary::Not, _) => Value::Bool(!value.truth()),
        (Unary::Minus, Some(Number::Int(int))) => Value::Int(int.checked_neg().ok_or_else(overflow)?),
        (Unary::Minus, Some(Number::Float(float))) => Value::Float(-float),
        (Unary::Plus, Some(Number::Int(int))) => Value::Int(int),
        (Unary::Plus, Some(Number::Float(float))) => Value::Float(float),
        (Unary::Invert, Some(Number::Int(int))) => Value::Int(!int),
        _ => return Err(wrong()),
    })
}

fn compare(comparison: Comparison, a: &Value, b: &Value) -> Outcome<bool> {
    let order = || match a.order(b) {
        // Nothing is less than, equal to or greater than NaN.
        None if a.number().is_some() && b.number().is_some() => Ok(None),
        None => Err(format!("{} and {} have no order", a.kind(), b.kind())),
        order => Ok(order),
    };
    Ok(match comparison {
        Comparison::Equal => a == b,
        Comparison::NotEqual => a != b,
        Comparison::Is => same(a, b),
        Comparison::IsNot => !same(a, b),
        Comparison::Less => order()? == Some(Ordering::Less),
        Comparison::Greater => order()? == Some(Ordering::Greater),
        Comparison::LessEqual => order()?.is_some_and(Ordering::is_le),
        Comparison::GreaterEqual => order()?.is_some_and(Ordering::is_ge),
        Comparison::In => contains(b, a)?,
        Comparison::NotIn => !contains(b, a)?,
    })
}

fn same(a: &Value, b: &Value) -> bool {
    std::mem::discriminant(a) == std::mem::discriminant(b) && a == b
}

fn contains(all: &Value, one: &Value) -> Outcome<bool> {
    match (all, one) {
        (Value::Tuple(values), _) => Ok(values.contains(one)),
        (Value::Text(text), Value::Text(part)) => Ok(text.contains(part.as_str())),
        (&Value::Range(first, end, step), _) => Ok(one.int().is_some_and(|int| {
            let within = if step > 0 { (first..end).contains(&int) } else { int <= first && int > end };
            within && int.checked_sub(first).is_some_and(|offset| offset % step == 0)
        })),
        _ => Err(format!("`in` does not go with {}", all.kind())),
    }
}

fn binary(operator: Binary, a: &Value, b: &Value) -> Outcome<Value> {
    match (operator, a, b) {
        (Binary::Modulo, Value::Text(format), _) => return percent::format(format, b).map(Value::Text),
        (Binary::Add, Value::Text(a), Value::Text(b)) => return text(a.len() + b.len(), || format!("{a}{b}")),
        (Binary::Multiply, Value::Text(text_), count) | (Binary::Multiply, count, Value::Text(text_))
            if count.int().is_some() =>
        {
            let count = usize::try_from(count.int().unwrap_or(0).max(0)).unwrap_or(usize::MAX);
            return text(text_.len().saturating_mul(count), || {
                if text_.is_empty() { String::new() } else { text_.repeat(count) }
            });
        }
        _ => {}
    }
    if let (Value::Bool(a), Value::Bool(b)) = (a, b) {
        match operator {
            Binary::Or => return Ok(Value::Bool(a | b)),
            Binary::Xor => return Ok(Value::Bool(a ^ b)),
            Binary::And => return Ok(Value::Bool(a & b)),
            _ => {}
        }
    }
    match (a.number(), b.number()) {
        (Some(Number::Int(a)), Some(Number::Int(b))) => integers(operator, a, b),
        (Some(a), Some(b)) => floats(operator, a.float(), b.float()).map(Value::Float),
        _ => Err(format!("{} and {} do not go together here", a.kind(), b.kind())),
    }
}

fn text(length: usize, make: impl FnOnce() -> String) -> Outcome<Value> {
    if length > MAX_LENGTH {
        return Err("a string that is too long".to_owned());
    }
    Ok(Value::Text(make()))
}

fn integers(operator: Binary, a: i128, b: i128) -> Outcome<Value> {
    let zero = || if b == 0 { Err("division by zero".to_owned()) } else { Ok(()) };
    let int = match operator {
        Binary::Or => Some(a | b),
        Binary::Xor => Some(a ^ b),
        Binary::And => Some(a & b),
        Binary::Add => a.checked_add(b),
        Binary::Subtract => a.checked_sub(b),
        Binary::Multiply => a.checked_mul(b),
        Binary::Divide => {
            zero()?;
            return Ok(Value::Float(a as f64 / b as f64));
        }
        Binary::Floor => {
            zero()?;
            // Rounds down, where Rust rounds towards zero.
            a.checked_div(b).map(|quotient| quotient - i128::from(a % b != 0 && (a < 0) != (b < 0)))
        }
        Binary::Modulo => {
            zero()?;
            // Has the sign of the divisor.
            a.checked_rem(b).or(Some(0)).map(|rest| if rest != 0 && (rest < 0) != (b < 0) { rest + b } else { rest })
        }
        Binary::Left | Binary::Right if b < 0 => return Err("a negative number of bits to shift by".to_owned()),
        Binary::Left if a == 0 => Some(0),
        Binary::Left => u32::try_from(b)
            .ok()
            .and_then(|b| 1_i128.checked_shl(b))
            .filter(|&factor| factor > 0)
            .and_then(|factor| a.checked_mul(factor)),
        Binary::Right => Some(a >> b.min(127)),
        Binary::Power if b < 0 => return floats(operator, a as f64, b as f64).map(Value::Float),
        Binary::Power => match a {
            0 | 1 => Some(if b == 0 { 1 } else { a }),
            -1 => Some(if b % 2 == 0 { 1 } else { -1 }),
            _ => u32::try_from(b).ok().and_then(|b| a.checked_pow(b)),
        },
    };
    int.map(Value::Int).ok_or_else(overflow)
}

fn floats(operator: Binary, a: f64, b: f64) -> Outcome<f64> {
    let zero = || if b == 0.0 { Err("division by zero".to_owned()) } else { Ok(()) };
    // Has the sign of the divisor.
    let modulo = || {
        let rest = a % b;
        if rest != 0.0 && (rest < 0.0) != (b < 0.0) { rest + b } else { rest }
    };
    Ok(match operator {
        Binary::Add => a + b,
        Binary::Subtract => a - b,
        Binary::Multiply => a * b,
        Binary::Divide => {
            zero()?;
            a / b
        }
        Binary::Floor => {
            zero()?;
            ((a - modulo()) / b).round()
        }
        Binary::Modulo => {
            zero()?;
            modulo()
        }
        Binary::Power if a == 0.0 && b < 0.0 => return Err("zero to a negative power".to_owned()),
        Binary::Power if a < 0.0 && b.fract() != 0.0 => return Err("a root of a negative number".to_owned()),
        Binary::Power => {
            let power = maths::pow(a, b);
            if power.is_infinite() && a.is_finite() && b.is_finite() {
                return Err("a power that no float can hold".to_owned());
            }
            power
        }
        _ => return Err("bits of a float".to_owned()),
    })
}

/// The parser has checked the number of arguments.
fn call(name: &str, args: &[Value]) -> Outcome<Value> {
    let Some(first) = args.first() else { return Err(format!("`{name}` without arguments")) };
    let wrong = || format!("`{name}` does not go with {}", first.kind());
    match name {
        "abs" => match first.number().ok_or_else(wrong)? {
            Number::Int(int) => int.checked_abs().map(Value::Int).ok_or_else(overflow),
            Number::Float(float) => Ok(Value::Float(float.abs())),
        },
        "bool" => Ok(Value::Bool(first.truth())),
        "str" => text(0, || first.to_string()),
        "len" => match first {
            Value::Text(text) => Ok(Value::Int(text.chars().count() as i128)),
            Value::Tuple(values) => Ok(Value::Int(values.len() as i128)),
            Value::Range(first, end, step) => Ok(Value::Int(range_len(*first, *end, *step))),
            _ => Err(wrong()),
        },
        "int" => match (first, first.number()) {
            (_, Some(Number::Int(int))) => Ok(Value::Int(int)),
            (_, Some(Number::Float(float))) => whole(float.trunc()),
            (Value::Text(text), _) => {
                text.trim().parse().map(Value::Int).map_err(|_| format!("{} is no integer", first.repr()))
            }
            _ => Err(wrong()),
        },
        "float" => match (first, first.number()) {
            (_, Some(number)) => Ok(Value::Float(number.float())),
            (Value::Text(text), _) => {
                text.trim().parse().map(Value::Float).map_err(|_| format!("{} is no number", first.repr()))
            }
            _ => Err(wrong()),
        },
        "round" => match (first.number().ok_or_else(wrong)?, args.get(1)) {
            (Number::Int(int), _) => Ok(Value::Int(int)),
            (Number::Float(float), None) => whole(float.round_ties_even()),
            (Number::Float(float), Some(digits)) => {
                let digits =
                    digits.int().and_then(|digits| usize::try_from(digits).ok()).filter(|&digits| digits <= 300);
                let digits = digits.ok_or("`round` to a number of digits out of range")?;
                format!("{float:.digits$}").parse().map(Value::Float).map_err(|_| wrong())
            }
        },
        "range" => {
            let ints: Option<Vec<i128>> = args.iter().map(Value::int).collect();
            match ints.as_deref() {
                Some(&[end]) => Ok(Value::Range(0, end, 1)),
                Some(&[first, end]) => Ok(Value::Range(first, end, 1)),
                Some(&[first, end, step]) if step != 0 => Ok(Value::Range(first, end, step)),
                _ => Err("`range` requires integers, and a step that is not 0".to_owned()),
            }
        }
        "min" => extreme(args, Ordering::Less),
        "max" => extreme(args, Ordering::Greater),
        _ => Err(format!("`{name}` is not defined")),
    }
}

fn whole(float: f64) -> Outcome<Value> {
    if float.is_finite() && float.abs() < i128::MAX as f64 { Ok(Value::Int(float as i128)) } else { Err(overflow()) }
}

/// The first of the least or greatest among the arguments, or within the only one.
fn extreme(args: &[Value], wanted: Ordering) -> Outcome<Value> {
    let values = match args {
        [Value::Tuple(values)] => values.as_slice(),
        [one] => return Err(format!("{} has no parts to choose from", one.kind())),
        _ => args,
    };
    let Some((mut best, rest)) = values.split_first() else { return Err("no values to choose from".to_owned()) };
    for value in rest {
        let order = value.order(best).ok_or_else(|| format!("{} and {} have no order", value.kind(), best.kind()))?;
        if order == wanted {
            best = value;
        }
    }
    Ok(best.clone())
}
