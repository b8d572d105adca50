//! Tables in plain text, which fit a page or a terminal that is wider.

use std::io::{self, IsTerminal};

use ackclock_trace::statistics::median;
use ackclock_units::maths;
use crossterm::terminal;

/// The columns of a page.
pub(crate) const PAGE: usize = 100;

/// The space between two columns.
const GAP: &str = "  ";

/// The content of a cell.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum Cell {
    Text(String),
    /// A number with so many digits after the point, and the standard deviation of its samples.
    Number {
        value: f64,
        deviation: Option<f64>,
        digits: usize,
    },
}

impl From<String> for Cell {
    fn from(text: String) -> Cell {
        Cell::Text(text)
    }
}

impl Cell {
    /// The text, with so many digits fewer than there could be.
    fn text(&self, needless: usize) -> String {
        match *self {
            Cell::Text(ref text) => text.clone(),
            Cell::Number { value, deviation, digits } => {
                let digits = digits.saturating_sub(needless);
                let deviation = deviation.map_or_else(String::new, |deviation| format!("±{deviation:.digits$}"));
                format!("{value:.digits$}{deviation}")
            }
        }
    }
}

/// Rows under a header. The first columns are text and stand left, the others are numbers and stand
/// right.
#[derive(Debug)]
pub(crate) struct Table {
    header: Vec<String>,
    rows: Vec<Vec<Cell>>,
    text_columns: usize,
}

impl Table {
    pub(crate) fn new(text_columns: usize, header: impl IntoIterator<Item = impl Into<String>>) -> Table {
        Table { header: header.into_iter().map(Into::into).collect(), rows: Vec::new(), text_columns }
    }

    /// Adds a row. One of a single cell stands across all columns.
    pub(crate) fn row(&mut self, cells: impl IntoIterator<Item = impl Into<Cell>>) {
        self.rows.push(cells.into_iter().map(Into::into).collect());
    }

    /// Returns `true` if there is anything under the header.
    pub(crate) fn has_rows(&self) -> bool {
        !self.rows.is_empty()
    }

    /// Takes out a column that is the same in all rows, and returns what it says.
    pub(crate) fn take_same(&mut self, column: usize) -> Option<String> {
        let first = self.rows.first()?.get(column)?.clone();
        if self.rows.iter().any(|row| row.get(column) != Some(&first)) {
            return None;
        }
        self.header.remove(column);
        self.rows.iter_mut().for_each(|row| _ = row.remove(column));
        Some(first.text(0))
    }

    /// The table, as wide as standard output allows.
    pub(crate) fn render(&self) -> String {
        let terminal = io::stdout().is_terminal().then(|| terminal::size().ok()).flatten();
        self.within(terminal.map_or(0, |(columns, _)| columns.into()).max(PAGE))
    }

    /// The table with a gap between columns and a rule under the header. If it is too wide,
    /// headings take two lines; if it still is, columns of numbers go on in a table below.
    fn within(&self, width: usize) -> String {
        let columns = self.header.len();
        let needless: Vec<usize> = (0..columns).map(|column| self.needless(column)).collect();
        let texts = |row: &Vec<Cell>| row.iter().zip(&needless).map(|(cell, &needless)| cell.text(needless)).collect();
        let rows: Vec<Vec<String>> = self.rows.iter().map(texts).collect();
        let widths_with = |header: &[Vec<String>]| -> Vec<usize> {
            let lines = || header.iter().chain(&rows).filter(|line| line.len() == columns);
            let width = |column: usize| lines().map(|line| line[column].chars().count()).max().unwrap_or(0);
            (0..columns).map(width).collect()
        };
        let mut header = vec![self.header.clone()];
        let mut widths = widths_with(&header);
        if total(&widths) > width && self.text_columns < columns {
            let lines = self.header.iter().zip(widths_with(&[])).map(|(heading, width)| broken(heading, width));
            let (first, second) = lines.unzip();
            header = vec![first, second];
            widths = widths_with(&header);
        }
        let mut out = String::new();
        let (texts, numbers) = widths.split_at(self.text_columns);
        let mut from = 0;
        loop {
            let fits = |to: &usize| total(&[texts, &numbers[from..*to]].concat()) <= width;
            let to = (from + 1..=numbers.len()).rev().find(fits).unwrap_or((from + 1).min(numbers.len()));
            let shown = |column: usize| column < texts.len() || (from..to).contains(&(column - texts.len()));
            let rule = "-".repeat(total(&[texts, &numbers[from..to]].concat()));
            let header =
                header.iter().map(|line| self.line(line, &widths, shown)).filter(|line| !line.trim().is_empty());
            let rows = rows.iter().map(|row| self.line(row, &widths, shown));
            for line in header.chain([rule]).chain(rows) {
                out.push_str(line.trim_end());
                out.push('\n');
            }
            if to == numbers.len() {
                return out;
            }
            out.push('\n');
            from = to;
        }
    }

    /// The columns of a row that are shown, in their widths.
    fn line(&self, cells: &[String], widths: &[usize], shown: impl Fn(usize) -> bool) -> String {
        match cells {
            [across] if widths.len() > 1 => across.clone(),
            _ => {
                let cells = cells.iter().zip(widths).enumerate().filter(|(column, _)| shown(*column));
                let cells = cells.map(|(column, (cell, &width))| {
                    if column < self.text_columns { format!("{cell:<width$}") } else { format!("{cell:>width$}") }
                });
                cells.collect::<Vec<_>>().join("  ")
            }
        }
    }

    /// Number of a column's digits that say less than the second digit of the typical deviation.
    fn needless(&self, column: usize) -> usize {
        let units = |row: &Vec<Cell>| match *row.get(column)? {
            // In units of the last digit.
            Cell::Number { deviation: Some(deviation), digits, .. } if deviation > 0.0 => {
                Some(deviation * maths::pow(10.0, digits as f64))
            }
            _ => None,
        };
        let typical = median(&self.rows.iter().filter_map(units).collect::<Vec<_>>()).unwrap_or(0.0);
        (0..).take_while(|&needless| typical >= maths::pow(10.0, f64::from(needless) + 2.0)).count()
    }
}

/// The width of columns of these widths.
fn total(widths: &[usize]) -> usize {
    widths.iter().sum::<usize>() + GAP.len() * widths.len().saturating_sub(1)
}

/// A heading on two lines, the first of which is empty if that makes the column no narrower: its
/// cells have this width.
fn broken(heading: &str, cells: usize) -> (String, String) {
    let width = |text: &str| text.chars().count();
    let places = heading.match_indices([' ', '.']).map(|(at, _)| heading.split_at(at + 1));
    let narrowest = places
        .filter(|(_, second)| !second.is_empty() && width(heading) > cells)
        .min_by_key(|(first, second)| width(first.trim_end()).max(width(second)).max(cells));
    let (first, second) = narrowest.unwrap_or(("", heading));
    (first.trim_end().to_owned(), second.to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(text: &str) -> Cell {
        text.to_owned().into()
    }

    /// Two columns of text, three of numbers.
    fn measured() -> Table {
        let mut table = Table::new(2, ["queue.kind", "flow", "goodput Mbit/s", "RTT p5 ms", "timeouts"]);
        for (queue, goodput, deviation) in [("pfifo", 4.5614, 0.2479), ("pie", 4.7801, 0.0), ("red", 4.7, 0.131)] {
            let number = |value, deviation, digits| Cell::Number { value, deviation: Some(deviation), digits };
            let numbers = [number(goodput, deviation, 3), number(117.52, 1.24, 1), number(14.0, 3.0, 0)];
            table.row([text(queue), text("reno.0")].into_iter().chain(numbers));
        }
        table
    }

    #[test]
    fn text_stands_left_and_numbers_right() {
        let mut table = Table::new(1, ["flow", "Mbit/s"]);
        table.row(["reno.0".to_owned(), "4.7".to_owned()]);
        table.row(["µ".to_owned(), "12.25".to_owned()]);
        assert_eq!(table.render(), "flow    Mbit/s\n--------------\nreno.0     4.7\nµ        12.25\n");
    }

    #[test]
    fn what_repetitions_do_not_tell_has_no_digits() {
        // The typical deviation of the goodput is 0.131: hundredths are its second digit.
        let expected = "\
queue.kind  flow    goodput Mbit/s  RTT p5 ms  timeouts
-------------------------------------------------------
pfifo       reno.0       4.56±0.25  117.5±1.2      14±3
pie         reno.0       4.78±0.00  117.5±1.2      14±3
red         reno.0       4.70±0.13  117.5±1.2      14±3
";
        assert_eq!(measured().within(55), expected);
    }

    #[test]
    fn wide_tables_have_headings_on_two_lines_and_then_are_several() {
        let mut table = measured();
        table.row([text("links.bottleneck")]);
        let rows = |numbers: [&str; 3]| numbers.join("\n") + "\nlinks.bottleneck\n";
        let expected = "\
queue.            goodput
kind    flow       Mbit/s  RTT p5 ms  timeouts
----------------------------------------------
"
        .to_owned()
            + &rows([
                "pfifo   reno.0  4.56±0.25  117.5±1.2      14±3",
                "pie     reno.0  4.78±0.00  117.5±1.2      14±3",
                "red     reno.0  4.70±0.13  117.5±1.2      14±3",
            ]);
        assert_eq!(table.within(54), expected);
        assert_eq!(table.within(46), expected);
        let expected = "\
queue.            goodput
kind    flow       Mbit/s  RTT p5 ms
------------------------------------
"
        .to_owned()
            + &rows([
                "pfifo   reno.0  4.56±0.25  117.5±1.2",
                "pie     reno.0  4.78±0.00  117.5±1.2",
                "red     reno.0  4.70±0.13  117.5±1.2",
            ])
            + "\n\
queue.
kind    flow    timeouts
------------------------
" + &rows(["pfifo   reno.0      14±3", "pie     reno.0      14±3", "red     reno.0      14±3"]);
        assert_eq!(table.within(45), expected);
        // Nothing is narrower than a column.
        assert_eq!(table.within(0).matches("----").count(), table.within(30).matches("----").count());
    }

    #[test]
    fn a_column_that_is_the_same_everywhere_can_be_taken_out() {
        let mut table = measured();
        assert_eq!(table.take_same(0), None);
        assert_eq!(table.take_same(4).as_deref(), Some("14±3"));
        assert!(table.within(100).starts_with("queue.kind  flow    goodput Mbit/s  RTT p5 ms\n"), "{table:?}");
    }
}
