//! The formats of traces.
//!
//! `mahimahi`: a line for each opportunity, its time in milliseconds, in order.
//!
//! `rates`: a line for each rate, with the time from which on it applies, separated by a comma,
//! semicolon or blanks. Each number has its unit, as in `1.5s, 12mbit`, or a header names those of
//! numbers without one: `time_ms,rate_kbit`. Times ascend from 0. Empty lines and what follows `#`
//! are skipped.
//!
//! `path`: such lines with a rate, a delay and a loss; a header may name fewer of them, in any
//! order. A delay or a loss may have a file of its own instead, with lines as those of rates.

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
    /// A line for each rate, delay and loss.
    Path,
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
        let (kind, lines) = match format {
            Format::Mahimahi { bytes } => {
                let (kind, last_line) = opportunities(text, bytes.max(1))?;
                (kind, Lines { last_line, ..Lines::default() })
            }
            Format::Rates => Lines::of_rates(RATE_LINES.read(text)?),
            Format::Path => Lines::of_rates(PATH_LINES.read(text)?),
        };
        let Lines { delays, losses, last_line, .. } = lines;
        let trace = Trace { kind, delays, losses, repeats };
        let ends = [trace.length(), end(&trace.delays), end(&trace.losses)];
        has_length(repeats, ends.into_iter().max(), last_line)?;
        Ok(trace)
    }

    /// A trace that changes nothing: a base for [`Trace::with_delays`] and [`Trace::with_losses`].
    pub fn constant(repeats: bool) -> Trace {
        Trace { kind: Kind::Rates(Vec::new()), delays: Vec::new(), losses: Vec::new(), repeats }
    }

    /// The same trace with the delays of another text.
    ///
    /// # Errors
    /// As with [`Trace::parse`].
    pub fn with_delays(self, text: &str) -> Result<Trace, TraceError> {
        let Lines { delays, last_line, .. } = DELAY_LINES.read(text)?;
        has_length(self.repeats, Some(end(&delays)), last_line)?;
        Ok(Trace { delays, ..self })
    }

    /// The same trace with the losses of another text.
    ///
    /// # Errors
    /// As with [`Trace::parse`].
    pub fn with_losses(self, text: &str) -> Result<Trace, TraceError> {
        let Lines { losses, last_line, .. } = LOSS_LINES.read(text)?;
        has_length(self.repeats, Some(end(&losses)), last_line)?;
        Ok(Trace { losses, ..self })
    }
}

impl Lines {
    fn of_rates(mut self) -> (Kind, Lines) {
        (Kind::Rates(std::mem::take(&mut self.rates)), self)
    }
}

fn end<T>(steps: &[(Span, T)]) -> Span {
    steps.last().map_or(Span::ZERO, |(at, _)| *at)
}

/// Checks that a trace that is repeated has a length.
fn has_length(repeats: bool, length: Option<Span>, line: usize) -> Result<(), TraceError> {
    if repeats && length == Some(Span::ZERO) {
        let expected = "a last time above 0, after which the trace starts again, or `loop = false`";
        return Err(error(line, "the trace has no length", expected));
    }
    Ok(())
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

/// What a column has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Column {
    Time,
    Rate,
    Delay,
    Loss,
}

/// A format of lines with a time.
#[derive(Debug)]
struct Layout {
    /// The columns of lines without a header.
    columns: &'static [Column],
    /// In words.
    count: &'static str,
    /// The value of a line.
    value: &'static str,
    expected: &'static str,
}

const RATE_LINES: Layout =
    Layout { columns: &[Column::Time, Column::Rate], count: "two", value: "rate", expected: A_RATE };
const DELAY_LINES: Layout = Layout {
    columns: &[Column::Time, Column::Delay],
    count: "two",
    value: "delay",
    expected: "a time and a delay, such as `1.5s, 20ms`, or a header such as `time_ms,delay_ms` and numbers",
};
const LOSS_LINES: Layout = Layout {
    columns: &[Column::Time, Column::Loss],
    count: "two",
    value: "loss",
    expected: "a time and a loss from 0 to 1, such as `1.5s, 0.01`, or a header such as `time_ms,loss` and numbers",
};
const PATH_LINES: Layout = Layout {
    columns: &[Column::Time, Column::Rate, Column::Delay, Column::Loss],
    count: "four",
    value: "line",
    expected: "a time, a rate, a delay and a loss from 0 to 1, such as `1.5s, 12mbit, 20ms, 0.01`, or a header such as \
               `time_ms,rate_kbit,delay_ms,loss` and numbers",
};

/// What lines have: steps of each.
#[derive(Debug, Default)]
struct Lines {
    rates: Vec<(Span, u64)>,
    delays: Vec<(Span, Span)>,
    losses: Vec<(Span, f64)>,
    last_line: usize,
}

impl Layout {
    /// Reads the lines of a text.
    fn read(&self, text: &str) -> Result<Lines, TraceError> {
        let mut lines = Lines::default();
        let mut columns: Vec<(Column, &'static str)> = self.columns.iter().map(|&column| (column, "")).collect();
        let (mut has_header, mut before) = (false, None);
        for (number, line) in (1..).zip(text.lines()) {
            let line = line.split('#').next().unwrap_or_default().trim();
            if line.is_empty() {
                continue;
            }
            let cells = cells(line, columns.len());
            if !has_header
                && before.is_none()
                && let Some(named) = self.header(line)
            {
                (columns, has_header) = (named, true);
                continue;
            }
            let Some(cells) = cells else {
                let count = if has_header { "the columns of the header" } else { self.count };
                let columns = if has_header { "" } else { " columns" };
                return Err(error(number, format!("{} has not {count}{columns}", quoted(line)), self.expected));
            };
            let mut at = Span::ZERO;
            for (cell, &(column, unit)) in cells.iter().zip(&columns) {
                if column == Column::Time {
                    at = span(number, cell, unit, self.expected)?;
                }
            }
            match before {
                None if at > Span::ZERO => {
                    let problem = format!("the first {} is that from {at} on", self.value);
                    return Err(error(number, problem, "a first line at time 0"));
                }
                Some(before) if at <= before => {
                    let problem = format!("{at} is not after the time of the line above, which is {before}");
                    return Err(error(number, problem, "times in ascending order"));
                }
                _ => {}
            }
            for (cell, &(column, unit)) in cells.iter().zip(&columns) {
                match column {
                    Column::Time => {}
                    Column::Rate => lines.rates.push((at, rate(number, cell, unit, self.expected)?)),
                    Column::Delay => lines.delays.push((at, span(number, cell, unit, self.expected)?)),
                    Column::Loss => lines.losses.push((at, loss(number, cell, unit, self.expected)?)),
                }
            }
            (before, lines.last_line) = (Some(at), number);
        }
        if before.is_none() {
            return Err(error(0, "the trace is empty", self.expected));
        }
        Ok(lines)
    }

    /// The columns that a header names, with their units: the time and some of the others.
    fn header(&self, line: &str) -> Option<Vec<(Column, &'static str)>> {
        let words = line.split(|c: char| [',', ';'].contains(&c) || c.is_whitespace());
        let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
        let unit = |text: &str, name: &str, units: &[&'static str]| {
            let found = text.strip_prefix(name)?;
            units.iter().find(|unit| **unit == found).copied()
        };
        let named = |word: &&str| {
            let time = unit(word, "time_", &TIMES).map(|unit| (Column::Time, unit));
            let rate = || unit(word, "rate_", &RATES).map(|unit| (Column::Rate, unit));
            let delay = || unit(word, "delay_", &TIMES).map(|unit| (Column::Delay, unit));
            let loss = || unit(word, "loss", &["", "_percent"]).map(|unit| (Column::Loss, unit));
            time.or_else(rate).or_else(delay).or_else(loss)
        };
        let columns = words.iter().map(named).collect::<Option<Vec<_>>>()?;
        let known = columns.iter().all(|(column, _)| self.columns.contains(column));
        let once = (1..columns.len()).all(|n| columns[..n].iter().all(|(column, _)| *column != columns[n].0));
        let has_time = columns.iter().any(|(column, _)| *column == Column::Time);
        (known && once && has_time && columns.len() > 1).then_some(columns)
    }
}

/// The cells of a line; `None` unless there are so many.
fn cells(line: &str, count: usize) -> Option<Vec<&str>> {
    let cells: Vec<&str> = match line.find([',', ';']) {
        Some(_) => line.split([',', ';']).map(str::trim).collect(),
        // A space may stand before a unit.
        None if count == 2 => {
            let (time, value) = line.split_once(char::is_whitespace)?;
            vec![time, value.trim()]
        }
        None => line.split_whitespace().collect(),
    };
    let is_one = |cell: &&str| !cell.is_empty() && cell.split_whitespace().count() <= 2;
    (cells.len() == count && cells.iter().all(is_one)).then_some(cells)
}

fn span(line: usize, text: &str, unit: &str, expected: &str) -> Result<Span, TraceError> {
    match parse_span(&with_unit(text, unit)) {
        Ok(span) => Ok(span),
        Err(QuantityError::TooFine { .. }) => Ok(Span::ZERO),
        Err(problem) => Err(error(line, format!("{}: {problem}", quoted(text)), expected)),
    }
}

fn rate(line: usize, text: &str, unit: &str, expected: &str) -> Result<u64, TraceError> {
    match parse_rate(&with_unit(text, unit)) {
        Ok(rate) => Ok(rate.as_bps()),
        Err(QuantityError::Zero | QuantityError::TooFine { .. }) => Ok(0),
        Err(problem) => Err(error(line, format!("{}: {problem}", quoted(text)), expected)),
    }
}

/// A probability, or a percentage by its header or its sign.
fn loss(line: usize, text: &str, unit: &str, expected: &str) -> Result<f64, TraceError> {
    let (number, percent) = match text.strip_suffix('%') {
        Some(number) => (number.trim_end(), true),
        None => (text, unit == "_percent"),
    };
    let value = number.parse::<f64>().ok().map(|value| if percent { value / 100.0 } else { value });
    match value.filter(|value| (0.0..=1.0).contains(value)) {
        Some(value) => Ok(value),
        None => Err(error(line, format!("{} is no probability", quoted(text)), expected)),
    }
}

/// A number with the unit of its column, unless it has its own.
fn with_unit(text: &str, unit: &str) -> String {
    if text.ends_with(|c: char| c.is_ascii_digit()) { format!("{text}{unit}") } else { text.to_owned() }
}
