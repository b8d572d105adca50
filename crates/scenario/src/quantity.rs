//! The values of keys: each kind with its units, its range and its notation.

use ackclock_aqm::Limit;
use ackclock_units::{QuantityError, Rate, Size, Span, parse_rate, parse_size, parse_span};

use crate::document::{Node, Value};
use crate::keys::Domain;
use crate::report::{did_you_mean, listed, nearest};

/// Why a value is not what its key holds. The value itself and its place are added by the caller.
#[derive(Clone, Debug, Default)]
pub(crate) struct Problem {
    pub(crate) title: String,
    pub(crate) expected: String,
    pub(crate) help: Option<String>,
}

impl Problem {
    pub(crate) fn new(title: impl Into<String>, expected: impl Into<String>) -> Problem {
        Problem { title: title.into(), expected: expected.into(), help: None }
    }

    pub(crate) fn of_type(expected: impl Into<String>) -> Problem {
        Problem::new("not the right type", expected)
    }
}

/// A kind of value.
pub(crate) trait Kind {
    /// The type in memory.
    type Held;
    /// Reads it.
    fn read(&self, node: &Node) -> Result<Self::Held, Problem>;
    /// Writes it, so that it is read back as the same.
    fn show(&self, held: &Self::Held) -> Value;
    /// The possible values, for the table of keys.
    fn domain(&self) -> Domain;
}

/// A length of time.
pub(crate) enum Time {
    /// Zero included.
    Any,
    /// More than zero.
    Positive,
}

impl Kind for Time {
    type Held = Span;

    fn read(&self, node: &Node) -> Result<Span, Problem> {
        let expected = "a time with its unit, such as \"20ms\" (ns, us, ms, s, min, h)";
        let span = parse_span(quantity(node, expected)?).map_err(|error| unit_problem(&error, node, expected))?;
        match self {
            Time::Positive if span == Span::ZERO => Err(Problem::new("must not be zero", expected)),
            _ => Ok(span),
        }
    }

    fn show(&self, held: &Span) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Time { positive: matches!(self, Time::Positive) }
    }
}

/// A rate, or "unlimited".
pub(crate) struct RateOrUnlimited;

impl Kind for RateOrUnlimited {
    type Held = Option<Rate>;

    fn read(&self, node: &Node) -> Result<Option<Rate>, Problem> {
        let expected = "a rate with its unit, such as \"10mbit\" (bit, kbit, mbit, gbit, tbit), or \"unlimited\"";
        match quantity(node, expected)? {
            "unlimited" => Ok(None),
            text => match parse_rate(text) {
                Ok(rate) => Ok(Some(rate)),
                Err(error) => {
                    let mut problem = unit_problem(&error, node, expected);
                    if matches!(error, QuantityError::NotANumber { .. }) {
                        problem.help = did_you_mean(text, ["unlimited"]);
                    }
                    Err(problem)
                }
            },
        }
    }

    fn show(&self, held: &Option<Rate>) -> Value {
        held.map_or("unlimited".into(), Value::from)
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Rate, Domain::Name(vec!["unlimited"])])
    }
}

/// A rate.
pub(crate) struct PlainRate;

impl Kind for PlainRate {
    type Held = Rate;

    fn read(&self, node: &Node) -> Result<Rate, Problem> {
        let expected = "a rate with its unit, such as \"10mbit\" (bit, kbit, mbit, gbit, tbit)";
        parse_rate(quantity(node, expected)?).map_err(|error| unit_problem(&error, node, expected))
    }

    fn show(&self, held: &Rate) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Rate
    }
}

/// A number of bytes in a range.
pub(crate) struct Bytes(pub(crate) u64, pub(crate) u64);

impl Kind for Bytes {
    type Held = u64;

    fn read(&self, node: &Node) -> Result<u64, Problem> {
        let expected = "a size in bytes, such as \"64KiB\" (B, kB, MB, GB, TB, KiB, MiB, GiB, TiB)";
        match parse_size(quantity(node, expected)?).map_err(|error| unit_problem(&error, node, expected))? {
            Size::Bytes(bytes) => in_range(bytes, self.0, self.1, show_bytes),
            Size::Packets(_) => Err(Problem::new("this is counted in bytes, not in packets", expected)),
        }
    }

    fn show(&self, held: &u64) -> Value {
        Value::String(show_bytes(*held))
    }

    fn domain(&self) -> Domain {
        Domain::Bytes(self.0, self.1)
    }
}

/// A number of packets (or segments) in a range.
pub(crate) struct Packets(pub(crate) u64, pub(crate) u64);

impl Kind for Packets {
    type Held = u64;

    fn read(&self, node: &Node) -> Result<u64, Problem> {
        let expected = "a number of packets, such as \"180p\"";
        match parse_size(quantity(node, expected)?).map_err(|error| unit_problem(&error, node, expected))? {
            Size::Packets(packets) => in_range(packets, self.0, self.1, |packets| format!("{packets}p")),
            Size::Bytes(_) => Err(Problem::new("this is counted in packets, not in bytes", expected)),
        }
    }

    fn show(&self, held: &u64) -> Value {
        Value::String(format!("{held}p"))
    }

    fn domain(&self) -> Domain {
        Domain::Packets(self.0, self.1)
    }
}

/// A number of packets or of bytes in a range.
pub(crate) struct SizeOf(pub(crate) u64, pub(crate) u64);

impl Kind for SizeOf {
    type Held = Limit;

    fn read(&self, node: &Node) -> Result<Limit, Problem> {
        let expected = "a number of packets or bytes, such as \"180p\" or \"50kB\"";
        match parse_size(quantity(node, expected)?).map_err(|error| unit_problem(&error, node, expected))? {
            Size::Packets(_) => Packets(self.0, self.1).read(node).map(Limit::Packets),
            Size::Bytes(_) => Bytes(self.0, self.1).read(node).map(Limit::Bytes),
        }
    }

    fn show(&self, held: &Limit) -> Value {
        match held {
            Limit::Packets(packets) => Packets(self.0, self.1).show(packets),
            Limit::Bytes(bytes) => Bytes(self.0, self.1).show(bytes),
        }
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Packets(self.0, self.1), Domain::Bytes(self.0, self.1)])
    }
}

/// A plain whole number in a range.
pub(crate) struct Whole(pub(crate) u64, pub(crate) u64);

impl Kind for Whole {
    type Held = u64;

    fn read(&self, node: &Node) -> Result<u64, Problem> {
        let Value::Integer(number) = node.value else {
            return Err(Problem::of_type(format!("a whole number from {} to {}", self.0, self.1)));
        };
        if number < 0 && self.0 == 0 {
            return Err(Problem::new("must not be negative", format!("a whole number from {} to {}", self.0, self.1)));
        }
        in_range(u64::try_from(number).unwrap_or(if number < 0 { 0 } else { u64::MAX }), self.0, self.1, |n| {
            n.to_string()
        })
    }

    fn show(&self, held: &u64) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Whole(self.0, self.1)
    }
}

/// A power of two up to this.
pub(crate) struct PowerOfTwo(pub(crate) u64);

impl Kind for PowerOfTwo {
    type Held = u64;

    fn read(&self, node: &Node) -> Result<u64, Problem> {
        let number = Whole(1, self.0).read(node)?;
        if !number.is_power_of_two() {
            return Err(Problem::new("not a power of two", format!("1, 2, 4 and so on up to {}", self.0)));
        }
        Ok(number)
    }

    fn show(&self, held: &u64) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::PowerOfTwo(self.0)
    }
}

/// A number in a closed range.
pub(crate) struct Number(pub(crate) f64, pub(crate) f64);

impl Kind for Number {
    type Held = f64;

    fn read(&self, node: &Node) -> Result<f64, Problem> {
        let expected =
            if self.0 == f64::MIN { "a number".to_owned() } else { format!("a number from {} to {}", self.0, self.1) };
        let number = match node.value {
            Value::Integer(number) => number as f64,
            Value::Float(number) => number,
            _ => return Err(Problem::of_type(expected)),
        };
        if !(self.0..=self.1).contains(&number) {
            return Err(Problem::new("out of range", expected));
        }
        Ok(number)
    }

    fn show(&self, held: &f64) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Number(self.0, self.1)
    }
}

/// `true` or `false`.
pub(crate) struct Flag;

impl Kind for Flag {
    type Held = bool;

    fn read(&self, node: &Node) -> Result<bool, Problem> {
        match node.value {
            Value::Boolean(value) => Ok(value),
            _ => Err(Problem::of_type("`true` or `false`, without quotes")),
        }
    }

    fn show(&self, held: &bool) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Flag
    }
}

/// A value, or `false` for none.
pub(crate) struct OrOff<K>(pub(crate) K);

impl<K: Kind> Kind for OrOff<K> {
    type Held = Option<K::Held>;

    fn read(&self, node: &Node) -> Result<Option<K::Held>, Problem> {
        if let Value::Boolean(false) = node.value {
            return Ok(None);
        }
        let read = self.0.read(node).map(Some);
        read.map_err(|problem| Problem { expected: format!("{}, or `false`", problem.expected), ..problem })
    }

    fn show(&self, held: &Option<K::Held>) -> Value {
        held.as_ref().map_or(false.into(), |held| self.0.show(held))
    }

    fn domain(&self) -> Domain {
        Domain::Either(vec![Domain::Off, self.0.domain()])
    }
}

/// Any text.
pub(crate) struct Text;

impl Kind for Text {
    type Held = String;

    fn read(&self, node: &Node) -> Result<String, Problem> {
        node.str().map(str::to_owned).ok_or_else(|| Problem::of_type("a string"))
    }

    fn show(&self, held: &String) -> Value {
        Value::String(held.clone())
    }

    fn domain(&self) -> Domain {
        Domain::Text("any text")
    }
}

/// One of these names; `what` they are names of.
pub(crate) struct OneOf<'n> {
    pub(crate) what: &'static str,
    pub(crate) names: &'n [&'static str],
}

impl OneOf<'_> {
    /// The domain of a key that takes one of these as a kind.
    pub(crate) fn kinds(&self) -> Domain {
        Domain::Kind(self.names.to_vec())
    }

    /// Why a value is none of these.
    pub(crate) fn problem(&self, node: &Node) -> Problem {
        let expected = format!("one of {}", listed(self.names.iter().copied()));
        let Some(text) = node.str() else { return Problem::of_type(expected) };
        Problem {
            title: format!("unknown {} `{text}`", self.what),
            expected,
            help: did_you_mean(text, self.names.iter().copied()),
        }
    }
}

impl Kind for OneOf<'_> {
    type Held = &'static str;

    fn read(&self, node: &Node) -> Result<&'static str, Problem> {
        let found = self.names.iter().find(|&&name| node.str() == Some(name));
        found.copied().ok_or_else(|| self.problem(node))
    }

    fn show(&self, held: &&'static str) -> Value {
        (*held).into()
    }

    fn domain(&self) -> Domain {
        Domain::Name(self.names.to_vec())
    }
}

/// Returns `true` if a text can name a link or a flow: it becomes a part of dotted paths, where a
/// number is an index.
pub(crate) fn is_name(text: &str) -> bool {
    text.len() <= 64
        && text.starts_with(|c: char| c.is_ascii_alphabetic())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"_-".contains(&byte))
}

/// The text of a quantity. A number alone is the commonest mistake and gets an answer of its own.
fn quantity<'a>(node: &'a Node, expected: &str) -> Result<&'a str, Problem> {
    match &node.value {
        Value::String(text) => Ok(text),
        Value::Integer(_) | Value::Float(_) => Err(Problem::new("the unit is missing", expected)),
        _ => Err(Problem::of_type(expected)),
    }
}

/// The error of the units crate, with the unit that was probably meant.
fn unit_problem(error: &QuantityError, node: &Node, expected: &str) -> Problem {
    let text = node.str().unwrap_or("");
    let (title, help) = match error {
        QuantityError::NotANumber { .. } => ("not a number with a unit".to_owned(), None),
        QuantityError::MissingUnit { .. } => ("the unit is missing".to_owned(), None),
        QuantityError::UnknownUnit { found, expected } => {
            let units = expected.split(", ").map(|unit| unit.split(' ').next().unwrap_or(unit));
            let help = nearest(found, units).map(|unit| {
                let number = text.trim().strip_suffix(found.as_str()).unwrap_or("").trim_end();
                format!("did you mean \"{number}{unit}\"?")
            });
            (format!("unknown unit `{found}`"), help)
        }
        other => (other.to_string(), None),
    };
    Problem { title, expected: expected.to_owned(), help }
}

fn in_range(value: u64, min: u64, max: u64, show: impl Fn(u64) -> String) -> Result<u64, Problem> {
    if value == 0 && min > 0 {
        return Err(Problem::new("must not be zero", format!("from {} to {}", show(min), show(max))));
    }
    if value < min || value > max {
        let side = if value < min { "too small" } else { "too large" };
        return Err(Problem::new(side, format!("from {} to {}", show(min), show(max))));
    }
    Ok(value)
}

/// A number of bytes in the largest unit that divides it.
fn show_bytes(bytes: u64) -> String {
    const UNITS: [(u64, &str); 6] =
        [(1_000_000_000, "GB"), (1 << 30, "GiB"), (1_000_000, "MB"), (1 << 20, "MiB"), (1_000, "kB"), (1 << 10, "KiB")];
    match UNITS.iter().find(|(factor, _)| bytes > 0 && bytes.is_multiple_of(*factor)) {
        Some((factor, unit)) => format!("{}{unit}", bytes / factor),
        None => format!("{bytes}B"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::Place;

    fn node(value: impl Into<Value>) -> Node {
        Node::new(value, Place::new(0, 0..0))
    }

    #[test]
    fn sizes_are_written_as_they_are_read() {
        let kind = Bytes(0, u64::MAX);
        for bytes in [0, 1, 999, 1000, 1024, 1460, 600_000, 614_400, 4 << 20, 3_000_000, u64::MAX] {
            let shown = Node::new(kind.show(&bytes), Place::new(0, 0..0));
            assert_eq!(kind.read(&shown).unwrap(), bytes, "{shown:?}");
        }
        assert_eq!(show_bytes(600_000), "600kB");
        assert_eq!(show_bytes(4 << 20), "4MiB");
    }

    #[test]
    fn a_unit_that_is_nearly_right_is_corrected() {
        let problem = RateOrUnlimited.read(&node("10Mbit")).unwrap_err();
        assert_eq!(problem.title, "unknown unit `Mbit`");
        assert_eq!(problem.help.as_deref(), Some("did you mean \"10mbit\"?"));
        let problem = Packets(1, 10).read(&node("4kB")).unwrap_err();
        assert_eq!(problem.title, "this is counted in packets, not in bytes");
    }

    #[test]
    fn ranges_say_their_bounds() {
        assert_eq!(Whole(1, 9).read(&node(0u64)).unwrap_err().title, "must not be zero");
        assert_eq!(
            Whole(1, 9).read(&Node::new(Value::Integer(-4), Place::new(0, 0..0))).unwrap_err().expected,
            "from 1 to 9"
        );
        assert_eq!(Number(0.0, 1.0).read(&node(1.5)).unwrap_err().title, "out of range");
        assert!(Number(0.0, 1.0).read(&node(f64::NAN)).is_err());
    }
}
