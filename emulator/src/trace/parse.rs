//! The formats of traces.
//!
//! `mahimahi`: a line for each opportunity, its time in milliseconds, in order.
//!
//! `rates`: a line for each rate, with the time from which on it applies, separated by a comma,
//! semicolon or blanks. Each number has its unit, as in `1.5s, 12mbit`, or a header names those of
//! numbers without one: `time_ms,rate_kbit`. Times ascend from 0. Empty lines and what follows `#`
//! are skipped.

use std::fmt;

use ackclock_units::{QuantityError, Span, parse_rate, parse_span};

use super::{Kind, Trace};

/// A format of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// A line for each opportunity, with so many bytes.
    Mahimahi {
        /// Bytes of an opportunity, at least 1.
        bytes: u32,
    },
    /// A line for each rate.
    Rates,
}

/// The problem of a trace.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceError {
    /// The line, from 1; `None` if it is none of them.
    pub line: Option<usize>,
    /// The problem.
    pub problem: String,
    /// The expected text.
    pub expected: String,
}

impl fmt::Display for TraceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(line) = self.line {
            write!(f, "line {line}: ")?;
        }
        write!(f, "{}; expected {}", self.problem, self.expected)
    }
}

impl std::error::Error for TraceError {}

/// A line in the format of mahimahi.
const A_TIME: &str = "a time in milliseconds, such as `12`";

/// A line in the format of rates.
const A_RATE: &str = "a time and a rate, such as `1.5s, 12mbit`, or a header such as `time_ms,rate_kbit` and numbers";

/// Time units of a header.
const TIMES: [&str; 4] = ["ns", "us", "ms", "s"];

/// Rate units of a header.
const RATES: [&str; 5] = ["bit", "kbit", "mbit", "gbit", "tbit"];

/// Lines quoted in errors are cut to so many characters.
const QUOTED: usize = 40;

impl Trace {
    /// Reads a text. If it `repeats`, the trace starts again after its last time.
    ///
    /// # Errors
    /// There is nothing in it, a line is not of the format, times go back, or what is repeated has
    /// no length.
    pub fn parse(text: &str, format: Format, repeats: bool) -> Result<Trace, TraceError> {
        let (kind, last) = match format {
            Format::Mahimahi { bytes } => opportunities(text, bytes.max(1))?,
            Format::Rates => rates(text)?,
        };
        let trace = Trace { kind, repeats };
        if repeats && trace.length() == Span::ZERO {
            let expected = "a last time above 0, after which the trace starts again, or `loop = false`";
            return Err(error(last, "the trace has no length", expected));
        }
        Ok(trace)
    }
}

fn error(line: usize, problem: impl Into<String>, expected: &str) -> TraceError {
    let line = (line > 0).then_some(line);
    TraceError { line, problem: problem.into(), expected: expected.to_owned() }
}

fn quoted(text: &str) -> String {
    let short: String = text.chars().take(QUOTED).collect();
    if short.len() < text.len() { format!("`{short}...`") } else { format!("`{short}`") }
}

/// The opportunities with the number of the last line.
fn opportunities(text: &str, bytes: u32) -> Result<(Kind, usize), TraceError> {
    let mut times: Vec<Span> = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.trim();
        let at = match parse_span(&format!("{line}ms")) {
            Ok(at) => at,
            Err(QuantityError::TooFine { .. }) => Span::ZERO,
            Err(QuantityError::TooLarge { .. }) => {
                return Err(error(number, format!("{} is too large", quoted(line)), A_TIME));
            }
            Err(_) if line.is_empty() => return Err(error(number, "an empty line", A_TIME)),
            Err(_) => return Err(error(number, format!("{} is not a number", quoted(line)), A_TIME)),
        };
        if times.last().is_some_and(|&last| at < last) {
            return Err(error(number, format!("{line} ms is before the time of the line above"), "times in order"));
        }
        times.push(at);
    }
    if times.is_empty() {
        return Err(error(0, "the trace is empty", "a line for each opportunity, with its time in milliseconds"));
    }
    let last = times.len();
    Ok((Kind::Opportunities { times, bytes }, last))
}

/// The rates with the number of the last line.
fn rates(text: &str) -> Result<(Kind, usize), TraceError> {
    let mut steps: Vec<(Span, u64)> = Vec::new();
    let (mut units, mut last) = (None, 0);
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split('#').next().unwrap_or_default().trim();
        if line.is_empty() {
            continue;
        }
        let Some((time, rate)) = columns(line) else {
            return Err(error(number, format!("{} has not two columns", quoted(line)), A_RATE));
        };
        if steps.is_empty()
            && units.is_none()
            && let Some(named) = header(time, rate)
        {
            units = Some(named);
            continue;
        }
        let (time_unit, rate_unit) = units.unwrap_or(("", ""));
        let at = match parse_span(&with_unit(time, time_unit)) {
            Ok(at) => at,
            Err(QuantityError::TooFine { .. }) => Span::ZERO,
            Err(problem) => return Err(error(number, format!("{}: {problem}", quoted(time)), A_RATE)),
        };
        let rate = match parse_rate(&with_unit(rate, rate_unit)) {
            Ok(rate) => rate.as_bps(),
            Err(QuantityError::Zero | QuantityError::TooFine { .. }) => 0,
            Err(problem) => return Err(error(number, format!("{}: {problem}", quoted(rate)), A_RATE)),
        };
        match steps.last() {
            None if at > Span::ZERO => {
                return Err(error(number, format!("the first rate is that from {at} on"), "a first line at time 0"));
            }
            Some(&(before, _)) if at <= before => {
                let problem = format!("{at} is not after the time of the line above, which is {before}");
                return Err(error(number, problem, "times in ascending order"));
            }
            _ => {}
        }
        steps.push((at, rate));
        last = number;
    }
    if steps.is_empty() {
        return Err(error(0, "the trace is empty", A_RATE));
    }
    Ok((Kind::Rates(steps), last))
}

/// The two columns of a line.
fn columns(line: &str) -> Option<(&str, &str)> {
    let (time, rate) = match line.split_once([',', ';']) {
        Some((time, rate)) => (time.trim(), rate.trim()),
        None => {
            let (time, rate) = line.split_once(char::is_whitespace)?;
            (time, rate.trim())
        }
    };
    let further = rate.contains([',', ';']) || rate.split_whitespace().count() > 2;
    (!time.is_empty() && !rate.is_empty() && !further).then_some((time, rate))
}

/// The units that a header names.
fn header(time: &str, rate: &str) -> Option<(&'static str, &'static str)> {
    let unit = |text: &str, name: &str, units: &[&'static str]| {
        let found = text.strip_prefix(name)?;
        units.iter().find(|unit| **unit == found).copied()
    };
    Some((unit(time, "time_", &TIMES)?, unit(rate, "rate_", &RATES)?))
}

/// A number with the unit of its column, unless it has its own.
fn with_unit(text: &str, unit: &str) -> String {
    if text.ends_with(|c: char| c.is_ascii_digit()) { format!("{text}{unit}") } else { text.to_owned() }
}
