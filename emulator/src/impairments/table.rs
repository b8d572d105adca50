//! Tables of random delay from files, in the format of iproute2's `.dist`.
//!
//! # Source
//! iproute2 `tc/q_netem.c`, `get_distribution`; Linux `net/sched/sch_netem.c`, `get_dist_table`.
//!
//! # Departures
//! - `tc` ignores the rest of a line from the first word that is no number, and keeps the low 16
//!   bits of a number that is too large. Both are errors here.
//! - Numbers are decimal. `tc` reads those with a leading 0 as octal and with 0x as hexadecimal;
//!   the former are errors here, unless they are 0.

use std::sync::Arc;

use crate::TraceError;

/// Quantiles of random delay at equal steps of probability, in units of 1/8192 of the jitter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JitterTable(Arc<[i16]>);

/// The most entries, as `tc` has it.
const MOST: usize = 16 * 1024;

/// Words quoted in errors are cut to so many characters.
const QUOTED: usize = 40;

impl JitterTable {
    /// Reads a text: whole numbers from -32768 to 32767, separated by blanks and line ends. Empty
    /// lines and those that start with `#` are skipped.
    ///
    /// # Errors
    /// A word is not such a number, or there are none, or too many.
    pub fn parse(text: &str) -> Result<JitterTable, TraceError> {
        let mut entries = Vec::new();
        for (number, line) in (1..).zip(text.lines()).filter(|(_, line)| !line.starts_with('#')) {
            for word in line.split_whitespace() {
                let error = |problem: String, expected: &str| TraceError {
                    line: Some(number),
                    problem,
                    expected: expected.to_owned(),
                };
                let octal = word.trim_start_matches('-').starts_with('0') && word != "0";
                let Some(entry) = word.parse().ok().filter(|_| !octal) else {
                    let short: String = word.chars().take(QUOTED).collect();
                    let expected = "a whole number from -32768 to 32767, in units of 1/8192 of the jitter";
                    return Err(error(format!("`{short}` is no entry"), expected));
                };
                if entries.len() == MOST {
                    return Err(error("too many entries".to_owned(), "at most 16384"));
                }
                entries.push(entry);
            }
        }
        if entries.is_empty() {
            let expected = "whole numbers, separated by blanks".to_owned();
            return Err(TraceError { line: None, problem: "the table is empty".to_owned(), expected });
        }
        Ok(JitterTable(entries.into()))
    }

    /// Its entries.
    pub(crate) fn entries(&self) -> &[i16] {
        &self.0
    }
}
