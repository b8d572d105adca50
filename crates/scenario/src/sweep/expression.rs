//! Expressions over the parameters of a sweep: which points there are, what follows from others.
//!
//! Quantities have units, as products and quotients do: a rate times a time is a size. Sums and
//! comparisons are of one unit.

use std::cmp::Ordering;

use ackclock_units::{Size, parse_rate, parse_size, parse_span};

/// Deepest nesting of parentheses: expressions are read by recursion.
const MAX_DEPTH: usize = 50;

/// The longest text, in bytes: operators that follow each other are read in turn, and evaluated by
/// recursion.
pub(super) const MAX_LENGTH: usize = 2000;

pub(super) const EXPECTED: &str = "paths of parameters (or their ends: `red.min`; in backquotes if they have other characters \
                                   than letters, digits and `_`), quantities, texts in quotes, + - * / < <= > >= == != and or \
                                   not, parentheses, min(a, b), max(a, b), round(a), floor(a), ceil(a)";

/// Exponents of seconds, bytes and packets.
type Unit = [i8; 3];

pub(super) const NONE: Unit = [0, 0, 0];
pub(super) const SECONDS: Unit = [1, 0, 0];
pub(super) const BYTES: Unit = [0, 1, 0];
pub(super) const PACKETS: Unit = [0, 0, 1];
pub(super) const BYTES_PER_SECOND: Unit = [-1, 1, 0];

/// The value of an expression.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum FoundValue {
    Number(f64, Unit),
    Text(String),
    Truth(bool),
}

impl FoundValue {
    /// A text: a quantity if it is one.
    pub(super) fn of(text: &str) -> FoundValue {
        let span = || Some((parse_span(text).ok()?.as_secs_f64(), SECONDS));
        let rate = || Some((parse_rate(text).ok()?.as_bps() as f64 / 8.0, BYTES_PER_SECOND));
        let size = || match parse_size(text).ok()? {
            Size::Bytes(bytes) => Some((bytes as f64, BYTES)),
            Size::Packets(packets) => Some((packets as f64, PACKETS)),
        };
        let quantity = span().or_else(rate).or_else(size);
        quantity.map_or_else(|| FoundValue::Text(text.to_owned()), |(number, unit)| FoundValue::Number(number, unit))
    }

    fn shown(&self) -> &'static str {
        match self {
            FoundValue::Text(_) => "a text",
            FoundValue::Truth(_) => "true or false",
            FoundValue::Number(_, NONE) => "a number without a unit",
            FoundValue::Number(_, SECONDS) => "a time",
            FoundValue::Number(_, BYTES) => "a size in bytes",
            FoundValue::Number(_, PACKETS) => "a number of packets",
            FoundValue::Number(_, BYTES_PER_SECOND) => "a rate",
            FoundValue::Number(..) => "a number of another unit",
        }
    }
}

/// An expression that has been read.
#[derive(Clone, Debug)]
pub(super) enum Expression {
    Constant(FoundValue),
    /// A parameter by its number.
    Parameter(usize),
    Not(Box<Expression>),
    Minus(Box<Expression>),
    Rounded(fn(f64) -> f64, Box<Expression>),
    Two(Operator, Box<[Expression; 2]>),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Operator {
    Or,
    And,
    Less,
    LessOrEqual,
    More,
    MoreOrEqual,
    Equal,
    Unequal,
    Plus,
    Minus,
    Times,
    Per,
    Min,
    Max,
}

/// Operators by how closely they bind; longer signs come first.
const OPERATORS: [&[(&str, Operator)]; 5] = [
    &[("or", Operator::Or)],
    &[("and", Operator::And)],
    &[
        ("<=", Operator::LessOrEqual),
        (">=", Operator::MoreOrEqual),
        ("==", Operator::Equal),
        ("!=", Operator::Unequal),
        ("<", Operator::Less),
        (">", Operator::More),
    ],
    &[("+", Operator::Plus), ("-", Operator::Minus)],
    &[("*", Operator::Times), ("/", Operator::Per)],
];

impl Expression {
    /// Reads a text in which parameters have these names.
    pub(super) fn read(text: &str, names: &[&str]) -> Result<Expression, String> {
        let mut reader = Reader { rest: text.trim_start(), names, depth: 0 };
        let read = reader.level(0)?;
        if reader.rest.is_empty() { Ok(read) } else { Err(format!("`{}` is left over", reader.rest)) }
    }

    /// The value, where parameters have these values.
    pub(super) fn value(&self, of: &dyn Fn(usize) -> FoundValue) -> Result<FoundValue, String> {
        match self {
            Expression::Constant(found) => Ok(found.clone()),
            Expression::Parameter(number) => Ok(of(*number)),
            Expression::Not(inner) => Ok(FoundValue::Truth(!inner.truth(of)?)),
            Expression::Minus(inner) => inner.number(of).map(|(number, unit)| FoundValue::Number(-number, unit)),
            Expression::Rounded(round, inner) => {
                inner.number(of).map(|(number, unit)| FoundValue::Number(round(number), unit))
            }
            Expression::Two(Operator::Or, both) => Ok(FoundValue::Truth(both[0].truth(of)? || both[1].truth(of)?)),
            Expression::Two(Operator::And, both) => Ok(FoundValue::Truth(both[0].truth(of)? && both[1].truth(of)?)),
            Expression::Two(operator, both) => operator.apply(both[0].value(of)?, both[1].value(of)?),
        }
    }

    /// The truth of the expression, where parameters have these values.
    pub(super) fn truth(&self, of: &dyn Fn(usize) -> FoundValue) -> Result<bool, String> {
        match self.value(of)? {
            FoundValue::Truth(truth) => Ok(truth),
            other => Err(format!("{}, where something is true or false", other.shown())),
        }
    }

    /// The number and its unit.
    pub(super) fn number(&self, of: &dyn Fn(usize) -> FoundValue) -> Result<(f64, Unit), String> {
        match self.value(of)? {
            FoundValue::Number(number, unit) => Ok((number, unit)),
            other => Err(format!("{}, where a number is expected", other.shown())),
        }
    }
}

impl Operator {
    fn apply(self, left: FoundValue, right: FoundValue) -> Result<FoundValue, String> {
        let unlike = || Err(format!("{} and {} are compared or added", left.shown(), right.shown()));
        match (&left, &right) {
            (FoundValue::Number(a, of_a), FoundValue::Number(b, of_b))
                if matches!(self, Operator::Times | Operator::Per) =>
            {
                let (number, sign) = if self == Operator::Times { (a * b, 1) } else { (a / b, -1) };
                let unit = std::array::from_fn(|place| of_a[place].saturating_add(of_b[place].saturating_mul(sign)));
                Ok(FoundValue::Number(number, unit))
            }
            (FoundValue::Number(a, unit), FoundValue::Number(b, other)) if unit == other => Ok(match self {
                Operator::Plus => FoundValue::Number(a + b, *unit),
                Operator::Minus => FoundValue::Number(a - b, *unit),
                Operator::Min => FoundValue::Number(a.min(*b), *unit),
                Operator::Max => FoundValue::Number(a.max(*b), *unit),
                _ => FoundValue::Truth(self.holds(a.partial_cmp(b))),
            }),
            (FoundValue::Text(a), FoundValue::Text(b)) if self.is_equality() => {
                Ok(FoundValue::Truth(self.holds(Some(a.cmp(b)))))
            }
            (FoundValue::Truth(a), FoundValue::Truth(b)) if self.is_equality() => {
                Ok(FoundValue::Truth(self.holds(Some(a.cmp(b)))))
            }
            _ => unlike(),
        }
    }

    fn is_equality(self) -> bool {
        matches!(self, Operator::Equal | Operator::Unequal)
    }

    fn holds(self, order: Option<Ordering>) -> bool {
        match self {
            Operator::Less => order == Some(Ordering::Less),
            Operator::More => order == Some(Ordering::Greater),
            Operator::LessOrEqual => matches!(order, Some(Ordering::Less | Ordering::Equal)),
            Operator::MoreOrEqual => matches!(order, Some(Ordering::Greater | Ordering::Equal)),
            Operator::Unequal => order != Some(Ordering::Equal),
            _ => order == Some(Ordering::Equal),
        }
    }
}

struct Reader<'t> {
    rest: &'t str,
    names: &'t [&'t str],
    depth: usize,
}

impl<'t> Reader<'t> {
    /// Takes a sign or a word, if it is next.
    fn take(&mut self, sign: &str) -> bool {
        let Some(rest) = self.rest.strip_prefix(sign) else { return false };
        let is_word = |c: char| c.is_ascii_alphanumeric() || c == '_' || c == '.';
        if sign.ends_with(is_word) && rest.starts_with(is_word) {
            return false;
        }
        self.rest = rest.trim_start();
        true
    }

    /// Takes what is up to the end of a quotation that has begun.
    fn quoted(&mut self, quote: char) -> Result<&'t str, String> {
        let (inner, rest) = self.rest.split_once(quote).ok_or_else(|| format!("a {quote} is not closed"))?;
        self.rest = rest.trim_start();
        Ok(inner)
    }

    fn level(&mut self, level: usize) -> Result<Expression, String> {
        let Some(operators) = OPERATORS.get(level) else { return self.unary() };
        let mut left = self.level(level + 1)?;
        while let Some((_, operator)) = operators.iter().find(|(sign, _)| self.take(sign)) {
            let right = self.level(level + 1)?;
            left = Expression::Two(*operator, Box::new([left, right]));
        }
        Ok(left)
    }

    fn unary(&mut self) -> Result<Expression, String> {
        self.depth += 1;
        if self.depth > MAX_DEPTH {
            return Err("it is nested too deeply".to_owned());
        }
        let read = if self.take("not") {
            // `not` binds less closely than comparisons.
            self.level(2).map(|inner| Expression::Not(Box::new(inner)))
        } else if self.take("-") {
            self.unary().map(|inner| Expression::Minus(Box::new(inner)))
        } else {
            self.primary()
        };
        self.depth -= 1;
        read
    }

    fn primary(&mut self) -> Result<Expression, String> {
        if self.take("(") {
            let inner = self.level(0)?;
            return if self.take(")") { Ok(inner) } else { Err("a parenthesis is not closed".to_owned()) };
        }
        for quote in ['"', '\''] {
            if let Some(rest) = self.rest.strip_prefix(quote) {
                self.rest = rest;
                return self.quoted(quote).map(|text| Expression::Constant(FoundValue::of(text)));
            }
        }
        if let Some(rest) = self.rest.strip_prefix('`') {
            self.rest = rest;
            let path = self.quoted('`')?;
            return self.parameter(path);
        }
        let (word, rest) = word(self.rest);
        if word.is_empty() {
            let found = self.rest.chars().next().map_or_else(|| "the end".to_owned(), |c| format!("`{c}`"));
            return Err(format!("{found} where a value is expected"));
        }
        self.rest = rest.trim_start();
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number = word.parse::<f64>().ok().map(|number| FoundValue::Number(number, NONE));
            return match number.unwrap_or_else(|| FoundValue::of(word)) {
                FoundValue::Text(_) => Err(format!("`{word}` is neither a number nor a quantity")),
                number => Ok(Expression::Constant(number)),
            };
        }
        match word {
            "true" | "false" => Ok(Expression::Constant(FoundValue::Truth(word == "true"))),
            _ if self.take("(") => self.function(word),
            path => self.parameter(path),
        }
    }

    fn function(&mut self, name: &str) -> Result<Expression, String> {
        let first = self.level(0)?;
        let operator = match name {
            "min" => Some(Operator::Min),
            "max" => Some(Operator::Max),
            _ => None,
        };
        let read = match (name, operator) {
            (_, Some(operator)) => {
                let second =
                    if self.take(",") { self.level(0)? } else { return Err(format!("`{name}` has two arguments")) };
                Expression::Two(operator, Box::new([first, second]))
            }
            ("round", _) => Expression::Rounded(f64::round, Box::new(first)),
            ("floor", _) => Expression::Rounded(f64::floor, Box::new(first)),
            ("ceil", _) => Expression::Rounded(f64::ceil, Box::new(first)),
            _ => return Err(format!("there is no function `{name}`")),
        };
        if self.take(")") { Ok(read) } else { Err("a parenthesis is not closed".to_owned()) }
    }

    /// The parameter with this path, or the only one whose path ends like this.
    fn parameter(&self, path: &str) -> Result<Expression, String> {
        if let Some(number) = self.names.iter().position(|name| *name == path) {
            return Ok(Expression::Parameter(number));
        }
        let ends = |name: &str| name.strip_suffix(path).is_some_and(|rest| rest.ends_with('.'));
        let found: Vec<usize> = (0..self.names.len()).filter(|&number| ends(self.names[number])).collect();
        match &found[..] {
            [number] => Ok(Expression::Parameter(*number)),
            [] => {
                Err(format!("`{path}` is no parameter; they are {}", crate::report::listed(self.names.iter().copied())))
            }
            several => {
                let names = several.iter().map(|&number| self.names[number]);
                Err(format!("`{path}` may be {}", crate::report::listed(names)))
            }
        }
    }
}

/// A number with its unit, or a path.
fn word(text: &str) -> (&str, &str) {
    let is_number = text.starts_with(|c: char| c.is_ascii_digit());
    let mut before = ' ';
    let end = text.find(|c: char| {
        let is_sign = is_number && matches!(c, '+' | '-') && matches!(before, 'e' | 'E');
        before = c;
        !(c.is_ascii_alphanumeric() || c == '_' || c == '.' || is_sign)
    });
    text.split_at(end.unwrap_or(text.len()))
}

#[cfg(test)]
mod tests {
    use super::*;

    const NAMES: [&str; 4] = ["links.a.rate", "links.a.delay", "links.a.queue.red.min", "links.b-c.queue.red.max"];

    fn value(text: &str) -> Result<FoundValue, String> {
        let values = ["8mbit", "10ms", "20p", "60p"];
        Expression::read(text, &NAMES)?.value(&|number| FoundValue::of(values[number]))
    }

    #[test]
    fn operators_bind_as_usual() {
        let number = |text: &str| value(text).map_err(|error| format!("{text}: {error}"));
        assert_eq!(number("1 + 2 * 3 - 4 / 2"), Ok(FoundValue::Number(5.0, NONE)));
        assert_eq!(number("-(1 - 3) * 1e-1"), Ok(FoundValue::Number(0.2, NONE)));
        assert_eq!(number("8 / 4 / 2"), Ok(FoundValue::Number(1.0, NONE)));
        assert_eq!(
            number("max(2, min(3, 4)) + round(1.5) + floor(1.5) + ceil(1.5)"),
            Ok(FoundValue::Number(8.0, NONE))
        );
        for (text, truth) in [
            ("not 1 > 2 and 2 >= 2", true),
            ("1 < 2 or 1 / 0 < 0", true),
            ("\"pie\" != 'pie' or false", false),
            ("not (true and 1 == 1)", false),
        ] {
            assert_eq!(value(text), Ok(FoundValue::Truth(truth)), "{text}");
        }
    }

    #[test]
    fn quantities_have_units() {
        // 8 Mbit/s are 1000 bytes each ms.
        assert_eq!(value("rate * delay"), Ok(FoundValue::Number(10_000.0, BYTES)));
        assert_eq!(value("10kB / rate"), Ok(FoundValue::Number(0.01, SECONDS)));
        assert_eq!(value("3 * red.min == red.max"), Ok(FoundValue::Truth(true)));
        assert_eq!(value("red.min < `links.b-c.queue.red.max`"), Ok(FoundValue::Truth(true)));
        assert_eq!(value("rate >= 8mbit and links.a.delay < 20ms"), Ok(FoundValue::Truth(true)));
        for (text, why) in [
            ("rate < delay", "a rate and a time are compared"),
            ("red.min + 1", "a number of packets and a number without a unit"),
            ("rate and true", "a rate, where something is true or false"),
            ("queue.red.min - \"pie\"", "a text"),
        ] {
            assert!(value(text).is_err_and(|error| error.contains(why)), "{text}: {:?}", value(text));
        }
    }

    #[test]
    fn what_is_no_expression_is_said() {
        for (text, why) in [
            ("", "the end where a value is expected"),
            ("1 +", "the end where"),
            ("(1", "a parenthesis is not closed"),
            ("1 2", "`2` is left over"),
            ("dealy > 1ms", "`dealy` is no parameter; they are `links.a.rate`"),
            ("min(1)", "has two arguments"),
            ("sqrt(2)", "no function `sqrt`"),
            ("3x", "neither a number nor a quantity"),
            ("\"a", "is not closed"),
            ("1 < 2 < 3", "are compared"),
            ("é", "`é` where a value"),
        ] {
            assert!(value(text).is_err_and(|error| error.contains(why)), "{text}: {:?}", value(text));
        }
        assert!(value(&"(".repeat(10_000)).is_err_and(|error| error.contains("too deeply")));
        assert!(
            Expression::read("min", &["a.min", "b.min"]).is_err_and(|error| error.contains("may be `a.min`, `b.min`"))
        );
    }
}
