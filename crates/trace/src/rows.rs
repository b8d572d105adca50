//! Rows of a CSV file (RFC 4180, lines end with a line feed), written in pieces, without an
//! allocation per row.

use std::fmt;
use std::io::{self, Write};
use std::ops::ControlFlow;

use ackclock_units::{Span, Time};

/// Rows are written in pieces of about this many bytes.
pub(crate) const PIECE: usize = 64 << 10;

/// No row is longer, unless its names are.
pub(crate) const ROW: usize = 512;

/// Rows that have not been written yet.
#[derive(Debug)]
pub(crate) struct CsvRows<W> {
    out: W,
    piece: String,
    error: Option<io::Error>,
}

impl<W: Write> CsvRows<W> {
    pub(crate) fn new(out: W, columns: &str) -> CsvRows<W> {
        let mut piece = String::with_capacity(PIECE + ROW);
        piece.push_str(columns);
        piece.push('\n');
        CsvRows { out, piece, error: None }
    }

    /// Adds a row, which `write` ends; breaks off once the writer has failed.
    pub(crate) fn add(&mut self, write: impl FnOnce(&mut String) -> fmt::Result) -> ControlFlow<()> {
        // A string takes whatever is written to it.
        let _ = write(&mut self.piece);
        if self.piece.len() >= PIECE {
            self.hand_on();
        }
        if self.error.is_some() { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    }

    pub(crate) fn finish(mut self) -> io::Result<W> {
        self.hand_on();
        match self.error {
            Some(error) => Err(error),
            None => Ok(self.out),
        }
    }

    fn hand_on(&mut self) {
        if self.error.is_none() {
            self.error = self.out.write_all(self.piece.as_bytes()).err();
        }
        self.piece.clear();
    }
}

/// A time in s, exact.
pub(crate) fn seconds(out: &mut String, at: Time) {
    whole(out, at.as_nanos() / 1_000_000_000);
    decimals(out, at.as_nanos() % 1_000_000_000, 9);
}

/// A fraction: the shortest text that reads back as the same number.
pub(crate) fn number(out: &mut String, number: Option<f64>) -> fmt::Result {
    number.map_or(Ok(()), |number| fmt::Write::write_fmt(out, format_args!("{number:?}")))
}

/// A time in ms, exact.
pub(crate) fn millis(out: &mut String, span: Option<Span>) {
    if let Some(span) = span {
        whole(out, span.as_nanos() / 1_000_000);
        decimals(out, span.as_nanos() % 1_000_000, 6);
    }
}

/// A whole number. The formatting machinery takes several times as long, and a row has many.
pub(crate) fn whole(out: &mut String, mut number: u64) {
    let mut digits = [b'0'; 20];
    let mut at = digits.len();
    loop {
        at -= 1;
        digits[at] = b'0' + (number % 10) as u8;
        number /= 10;
        if number == 0 {
            break;
        }
    }
    out.extend(digits[at..].iter().map(|&digit| char::from(digit)));
}

/// A point and `places` digits.
pub(crate) fn decimals(out: &mut String, mut number: u64, places: usize) {
    let mut digits = [b'0'; 9];
    for digit in digits[..places].iter_mut().rev() {
        *digit = b'0' + (number % 10) as u8;
        number /= 10;
    }
    out.push('.');
    out.extend(digits[..places].iter().map(|&digit| char::from(digit)));
}

/// A name, in quotes if it has to be. The ids of a scenario never have to.
pub(crate) fn text(out: &mut String, name: &str) {
    if !name.contains([',', '"', '\n', '\r']) {
        return out.push_str(name);
    }
    out.push('"');
    for c in name.chars() {
        if c == '"' {
            out.push('"');
        }
        out.push(c);
    }
    out.push('"');
}
