//! Records as tables: rows with named columns.

use std::fs::File;
use std::path::Path;

use ackclock_trace::open_regular;
use anyhow::{Context, bail};
use csv::{Reader, StringRecord};

/// A CSV file of a run.
#[derive(Debug)]
pub(super) struct Sheet {
    name: String,
    reader: Reader<File>,
    columns: StringRecord,
    row: StringRecord,
}

impl Sheet {
    pub(super) fn open(path: &Path) -> anyhow::Result<Sheet> {
        let name = path.display().to_string();
        let cannot = || format!("cannot read {name}");
        let mut reader = Reader::from_reader(open_regular(path).with_context(cannot)?);
        let columns = reader.headers().with_context(cannot)?.clone();
        Ok(Sheet { name, reader, columns, row: StringRecord::new() })
    }

    /// The places of columns.
    pub(super) fn columns<const N: usize>(&self, names: [&str; N]) -> anyhow::Result<[usize; N]> {
        let mut places = [0; N];
        for (place, name) in places.iter_mut().zip(names) {
            let found = self.columns.iter().position(|column| column == name);
            *place = found.with_context(|| format!("{}: it has no column `{name}`", self.name))?;
        }
        Ok(places)
    }

    /// The names of all columns.
    pub(super) fn names(&self) -> impl Iterator<Item = &str> {
        self.columns.iter()
    }

    /// The cells of the row.
    pub(super) fn cells(&self) -> impl Iterator<Item = &str> {
        self.row.iter()
    }

    /// Goes to the next row; whether there is one.
    pub(super) fn next(&mut self) -> anyhow::Result<bool> {
        self.reader.read_record(&mut self.row).with_context(|| format!("cannot read {}", self.name))
    }

    /// The row's text in a column.
    pub(super) fn text(&self, column: usize) -> &str {
        self.row.get(column).unwrap_or_default()
    }

    /// The number in a column; `None` if it is empty.
    pub(super) fn number(&self, column: usize) -> anyhow::Result<Option<f64>> {
        let text = self.text(column);
        match text.parse::<f64>() {
            Ok(number) if number.is_finite() => Ok(Some(number)),
            Err(_) if text.is_empty() => Ok(None),
            _ => Err(self.wrong(column, "a number")),
        }
    }

    /// A decimal fraction as a whole number of units of the `digits`-th place, exactly; `None` if
    /// the column is empty.
    pub(super) fn fixed(&self, column: usize, digits: usize) -> anyhow::Result<Option<u64>> {
        let text = self.text(column);
        if text.is_empty() {
            return Ok(None);
        }
        let (whole, fraction) = text.split_once('.').unwrap_or((text, ""));
        let is_number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
        let fixed = match is_number(whole) && is_number(fraction) && fraction.len() <= digits {
            true => format!("{whole}{fraction:0<digits$}").parse().ok(),
            false => None,
        };
        fixed.map(Some).ok_or_else(|| self.wrong(column, &format!("a number with at most {digits} decimals")))
    }

    /// The number in a column that must have one.
    pub(super) fn required(&self, column: usize, digits: usize) -> anyhow::Result<u64> {
        self.fixed(column, digits)?.ok_or_else(|| self.wrong(column, "a number"))
    }

    /// An error about the row.
    pub(super) fn wrong(&self, column: usize, expected: &str) -> anyhow::Error {
        let line = self.row.position().map_or(0, csv::Position::line);
        let (name, found) = (self.columns.get(column).unwrap_or_default(), self.text(column));
        anyhow::anyhow!("{}, line {line}: `{name}` is `{found}`; expected {expected}", self.name)
    }
}

/// The error of a record that a run lacks.
pub(super) fn missing<T>(key: &str, dir: &Path) -> anyhow::Result<T> {
    bail!("{}: the run lacks a record; expected one with `[record] {key}`", dir.display())
}
