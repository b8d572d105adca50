//! Distributions of sizes and times: a value alone is always drawn, a table says how others are.

use std::io;

use ackclock_traffic::{Distribution, DistributionError, Table, WebPattern, seconds};
use ackclock_units::{Size, parse_size};

use crate::document::Node;
use crate::fields::Fields;
use crate::keys::{Domain, Label};
use crate::quantity::{Bytes, Kind, Number, OneOf, Problem, Text, Time};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 64 << 20;

/// The largest size, bytes.
const MOST: u64 = Distribution::MOST_BYTES;

/// Numbers without unit are from this ...
const LEAST_FACTOR: f64 = 1e-3;
/// ... to this.
const MOST_FACTOR: f64 = 1e3;
/// Numbers of something.
const COUNTS: Number = Number(0.0, WebPattern::MOST_OBJECTS as f64);

/// The kind of quantity that is drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Unit {
    /// Bytes, at least 1.
    Bytes,
    /// A length of time; it is held in nanoseconds.
    Time,
    /// A length of time, zero included.
    TimeOrNone,
    /// A number without unit, more than zero.
    Factor,
    /// A count, which may be zero.
    Count,
}

impl Unit {
    fn names(self) -> OneOf<'static> {
        const SIZES: &[&str] =
            &["uniform", "exponential", "pareto", "lognormal", "empirical", "web-search", "data-mining"];
        let names = if self == Unit::Bytes { SIZES } else { &SIZES[..5] };
        OneOf { what: "distribution", names }
    }

    /// The expected contents of a key with such a distribution, with an example.
    fn expected(self) -> &'static str {
        match self {
            Unit::Bytes => {
                "a size, such as \"1000B\", or a table such as { distribution = \"exponential\", mean = \"50kB\" }"
            }
            Unit::Count => "a number, such as 10, or a table such as { distribution = \"exponential\", mean = 10 }",
            Unit::Factor => {
                "a number, such as 1.0, or a table such as { distribution = \"lognormal\", mean = 1.0, sigma = 0.3 }"
            }
            Unit::Time | Unit::TimeOrNone => {
                "a time, such as \"1s\", or a table such as { distribution = \"exponential\", mean = \"1s\" }"
            }
        }
    }
}

/// One value of a unit.
impl Kind for Unit {
    type Held = f64;

    fn read(&self, node: &Node) -> Result<f64, Problem> {
        match self {
            Unit::Bytes => Bytes(1, MOST).read(node).map(|bytes| bytes as f64),
            Unit::Time => Time::Positive.read(node).map(|span| span.as_nanos() as f64),
            Unit::TimeOrNone => Time::Any.read(node).map(|span| span.as_nanos() as f64),
            Unit::Factor => Number(LEAST_FACTOR, MOST_FACTOR).read(node),
            Unit::Count => COUNTS.read(node),
        }
    }

    fn show(&self, held: &f64) -> crate::document::Value {
        match self {
            Unit::Bytes => Bytes(1, MOST).show(&(*held as u64)),
            Unit::Factor => Number(LEAST_FACTOR, MOST_FACTOR).show(held),
            Unit::Count => COUNTS.show(held),
            Unit::Time | Unit::TimeOrNone => Time::Any.show(&ackclock_units::Span::from_nanos(*held as u64)),
        }
    }

    fn domain(&self) -> Domain {
        match self {
            Unit::Bytes => Bytes(1, MOST).domain(),
            Unit::Time => Time::Positive.domain(),
            Unit::TimeOrNone => Time::Any.domain(),
            Unit::Factor => Number(LEAST_FACTOR, MOST_FACTOR).domain(),
            Unit::Count => COUNTS.domain(),
        }
    }
}

const WHICH: &str = "kind of distribution, which decides its other keys";
const MEAN: (&str, &str) = ("mean", "mean");
const MIN: (&str, &str) = ("min", "least value");
const MAX: (&str, &str) = ("max", "largest value");

/// Reads a distribution that has to be there. `None` was reported.
pub(crate) fn read(fields: &mut Fields<'_>, label: impl Into<Label>, unit: Unit) -> Option<Distribution> {
    let label = label.into();
    let key = label.name;
    fields.declare(label, || Domain::Either(vec![unit.domain(), Domain::Table]));
    let Some(entry) = fields.get(key) else {
        fields.missing(key, unit.expected());
        return None;
    };
    let node = &entry.node;
    if node.table().is_none() {
        let value = match unit.read(node) {
            Ok(value) => value,
            Err(problem) => {
                fields.reject(key, node, problem);
                return None;
            }
        };
        return Distribution::constant(value).ok();
    }
    let mut table = fields.table(key, unit.expected())?;
    let found = table
        .required(("distribution", WHICH), unit.names(), "the name of a distribution")
        .map(|name| of(&mut table, name, unit));
    table.finish();
    match found?? {
        Ok(distribution) => Some(distribution),
        Err(error) => {
            fields.reject(key, node, Problem::new(format!("no distribution: {error}"), ""));
            None
        }
    }
}

/// Reads a distribution, which is this value if it is left out. `None` was reported.
pub(crate) fn read_or(
    fields: &mut Fields<'_>,
    key: impl Into<Label>,
    unit: Unit,
    default: f64,
) -> Option<Distribution> {
    let key = key.into();
    if fields.get(key).is_some() {
        return read(fields, key, unit);
    }
    fields.declare(key, || Domain::Either(vec![unit.domain(), Domain::Table]));
    fields.fill(key.name, unit.show(&default));
    Distribution::constant(default).ok()
}

/// Reads the table; `None` was reported.
fn of(table: &mut Fields<'_>, name: &str, unit: Unit) -> Option<Result<Distribution, DistributionError>> {
    // A single value says what the unit is.
    let value = "a value with its unit";
    Some(match name {
        "uniform" => {
            let least = if unit == Unit::Time { Unit::TimeOrNone } else { unit };
            let min = table.required(MIN, least, value);
            Distribution::uniform(min?, table.required(MAX, unit, value)?)
        }
        "exponential" => Distribution::exponential(table.required(MEAN, unit.positive(), value)?),
        "pareto" => {
            let shape = table.required(
                ("shape", "exponent of the tail"),
                Number(0.1, 1000.0),
                "the tail's exponent, such as 1.2",
            );
            let max = table.maybe(MAX, unit.positive());
            match either(table, MEAN, MIN, unit)? {
                ("mean", mean) => Distribution::pareto_with_mean(mean, shape?, max),
                (_, min) => Distribution::pareto(min, shape?, max),
            }
        }
        "lognormal" => {
            let sigma = Number(0.0, Distribution::MOST_SIGMA);
            let sigma = table.required(
                ("sigma", "standard deviation of the logarithm"),
                sigma,
                "the standard deviation of the logarithm, such as 1.5",
            );
            match either(table, MEAN, ("median", "median"), unit)? {
                ("mean", mean) => Distribution::log_normal_with_mean(mean, sigma?),
                (_, median) => Distribution::log_normal(median, sigma?),
            }
        }
        "empirical" => Ok(Distribution::empirical(from_file(table, unit)?)),
        "web-search" => Ok(Distribution::web_search()),
        _ => Ok(Distribution::data_mining()),
    })
}

impl Unit {
    /// This unit without zero.
    fn positive(self) -> Unit {
        if self == Unit::TimeOrNone { Unit::Time } else { self }
    }
}

/// One of two keys, with its name.
fn either(
    table: &mut Fields<'_>,
    one: (&'static str, &'static str),
    other: (&'static str, &'static str),
    unit: Unit,
) -> Option<(&'static str, f64)> {
    let values = [one, other].map(|key| (key.0, table.maybe(key, unit.positive())));
    let (one, other) = (one.0, other.0);
    match values {
        [(_, Some(_)), (_, Some(_))] => {
            let node = &table.get(other)?.node;
            table.reject(other, node, Problem::new(format!("not together with `{one}`"), "one of the two"));
            None
        }
        [(key, Some(value)), _] | [_, (key, Some(value))] => Some((key, value)),
        // One that could not be read was reported.
        _ if table.get(one).is_some() || table.get(other).is_some() => None,
        _ => {
            table.missing(one, &format!("`{one}` or `{other}`"));
            None
        }
    }
}

/// Reads the table of a distribution function from a file.
fn from_file(table: &mut Fields<'_>, unit: Unit) -> Option<Table> {
    let (text, node) = file(table, "points of the distribution function")?;
    let bytes = |text: &str| match parse_size(&if text.ends_with(char::is_alphabetic) {
        text.into()
    } else {
        format!("{text}B")
    }) {
        Ok(Size::Bytes(bytes)) => Some(bytes as f64),
        // Such as 1e+06, or with a fraction.
        _ => text.parse().ok(),
    };
    let read = match unit {
        Unit::Bytes => Table::parse(&text, "a number of bytes", bytes),
        Unit::Count => Table::parse(&text, "a number", |text| text.parse().ok()),
        Unit::Factor => Table::parse(&text, "a number from 0.001 to 1000", |text| {
            text.parse().ok().filter(|factor| (LEAST_FACTOR..=MOST_FACTOR).contains(factor))
        }),
        Unit::Time | Unit::TimeOrNone => Table::parse(&text, "a time (seconds, or with a unit)", |text| {
            seconds(text).map(|span| span.as_nanos() as f64)
        }),
    };
    read.map_err(|error| table.reject("file", node, Problem::new(format!("cannot be used: {error}"), ""))).ok()
}

/// The text of the file that `file` names, relative to the scenario. `None` was reported.
pub(crate) fn file<'a>(table: &mut Fields<'a>, meaning: &'static str) -> Option<(String, &'a Node)> {
    let name = table.required(("file", meaning), Text, "the path of a file, relative to that of the scenario")?;
    let node = &table.get("file")?.node;
    let path = table.inputs().path(&name);
    let text = match table.inputs().read(&name, MAX_FILE) {
        Ok(bytes) if bytes.len() as u64 > MAX_FILE => {
            Err(io::Error::other(format!("it is larger than {MAX_FILE} bytes")))
        }
        Ok(bytes) => String::from_utf8(bytes).map_err(|_| io::Error::other("it is not UTF-8 text")),
        Err(error) => Err(error),
    };
    let refuse = |error| {
        let title = format!("cannot read {}: {error}", path.display());
        table.reject("file", node, Problem::new(title, "the path of a text file, relative to that of the scenario"));
    };
    Some((text.map_err(refuse).ok()?, node))
}
