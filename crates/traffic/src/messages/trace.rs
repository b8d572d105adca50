//! Messages at recorded times.

use ackclock_units::{QuantityError, Size, Span, Time, parse_size, parse_span};

use crate::columns;

/// Something an application writes at once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Message {
    /// Time of writing.
    pub at: Time,
    /// Size in bytes, never 0.
    pub bytes: u64,
}

/// Messages with their times after the start of the application.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    /// Times that do not go back, and bytes.
    entries: Vec<(Span, u64)>,
    /// Period of repetition; `None` without repetition.
    period: Option<Span>,
}

/// The fault in a trace file. Lines are counted from 1.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MessageTraceError {
    /// No message.
    #[error("has no messages; expected lines of a time and a size, such as `0.02 1000` or `20ms 1kB`")]
    Empty,
    /// The line does not have two columns.
    #[error("line {line}: expected a time and a size, such as `0.02 1000` or `20ms 1kB`")]
    Columns {
        /// Line number, from 1.
        line: usize,
    },
    /// A time that cannot be read.
    #[error("line {line}: `{found}` is not a time: expected seconds, or a number with a unit such as `20ms`")]
    Time {
        /// Line number, from 1.
        line: usize,
        /// The text found.
        found: String,
    },
    /// A size that cannot be read, or is 0.
    #[error(
        "line {line}: `{found}` is not a size: expected a number of bytes from 1, or one with a unit such as `1kB`"
    )]
    Size {
        /// Line number, from 1.
        line: usize,
        /// The text found.
        found: String,
    },
    /// A time before the one above it.
    #[error("line {line}: the time is before that of the line above")]
    GoesBack {
        /// Line number, from 1.
        line: usize,
    },
    /// A repetition begins before the last message, or at once.
    #[error("the trace lasts {lasts}; it can be repeated after a longer time only")]
    Period {
        /// The time of the last message.
        lasts: Span,
    },
}

/// A time as it stands in files: in seconds without a unit, or with one; the nearest nanosecond.
pub fn seconds(text: &str) -> Option<Span> {
    let plain = text.ends_with(|c: char| c.is_ascii_digit());
    match if plain { parse_span(&format!("{text}s")) } else { parse_span(text) } {
        Err(QuantityError::TooFine { .. }) => Some(Span::ZERO),
        read => read.ok(),
    }
}

/// Bytes without a unit, or a size with one.
fn size(text: &str) -> Option<u64> {
    let plain = text.ends_with(|c: char| c.is_ascii_digit());
    match if plain { parse_size(&format!("{text}B")) } else { parse_size(text) } {
        Ok(Size::Bytes(bytes)) => Some(bytes).filter(|bytes| (1..=1 << 56).contains(bytes)),
        _ => None,
    }
}

impl Trace {
    /// Reads a file: a time and a size on each line, separated by spaces or a comma. Without a unit
    /// the time is in seconds and the size in bytes. What follows a `#` is a comment.
    ///
    /// # Errors
    /// The first line that is wrong.
    pub fn parse(text: &str) -> Result<Trace, MessageTraceError> {
        let mut entries: Vec<(Span, u64)> = Vec::new();
        for (line, columns) in columns::of(text) {
            let &[at, bytes] = &columns[..] else { return Err(MessageTraceError::Columns { line }) };
            let found = at.to_owned();
            let at = seconds(at).ok_or(MessageTraceError::Time { line, found })?;
            let found = bytes.to_owned();
            let bytes = size(bytes).ok_or(MessageTraceError::Size { line, found })?;
            if entries.last().is_some_and(|&(before, _)| at < before) {
                return Err(MessageTraceError::GoesBack { line });
            }
            entries.push((at, bytes));
        }
        if entries.is_empty() { Err(MessageTraceError::Empty) } else { Ok(Trace { entries, period: None }) }
    }

    /// Begins anew each time that so much time has passed.
    ///
    /// # Errors
    /// Less than the trace lasts, or no time at all.
    pub fn repeated(mut self, period: Span) -> Result<Trace, MessageTraceError> {
        let lasts = self.lasts();
        if period <= lasts {
            return Err(MessageTraceError::Period { lasts });
        }
        self.period = Some(period);
        Ok(self)
    }

    /// The time of the last message.
    pub fn lasts(&self) -> Span {
        self.entries.last().map_or(Span::ZERO, |&(at, _)| at)
    }

    /// Bytes of all its messages together, once.
    pub fn bytes(&self) -> u64 {
        self.entries.iter().fold(0, |sum, &(_, bytes)| sum.saturating_add(bytes))
    }

    /// Bytes of its largest message.
    pub fn largest(&self) -> u64 {
        self.entries.iter().map(|&(_, bytes)| bytes).max().unwrap_or(0)
    }

    /// Returns true if the trace is repeated ([`Trace::repeated`]).
    pub fn is_repeated(&self) -> bool {
        self.period.is_some()
    }

    /// Bit/s in the long run, if it is repeated.
    pub fn mean_rate(&self) -> Option<f64> {
        Some(self.bytes() as f64 * 8.0 / self.period?.as_secs_f64())
    }

    /// The message at `entry` of repetition `round`, both of which advance.
    pub(super) fn next(&self, start: Time, round: &mut u64, entry: &mut usize) -> Message {
        if *entry == self.entries.len() && self.period.is_some() {
            (*round, *entry) = (*round + 1, 0);
        }
        let Some(&(at, bytes)) = self.entries.get(*entry) else { return Message { at: Time::NEVER, bytes: 0 } };
        *entry += 1;
        Message { at: start + self.period.unwrap_or(Span::ZERO) * *round + at, bytes }
    }
}
