//! The tables on a terminal.

use std::fmt::Write;

use super::rows::{Folder, Line, Row, Verdict};

/// The columns of a line.
const WIDTH: usize = 100;
/// The most columns of a source, and those of what was published and of what a kernel measured.
const SOURCE: usize = 22;
const PUBLISHED: usize = 40;
const KERNEL: usize = 26;
/// Before the expectations of a row, and before what they come to.
const INDENT: usize = 4;
const VERDICT: usize = 6;

/// The table of a folder, with its notes and totals.
pub(crate) fn table(folder: &Folder) -> String {
    let widest = folder.rows.iter().map(|row| row.source.chars().count()).max().unwrap_or(0);
    let source = widest.clamp("source".len(), SOURCE);
    let has_kernel = folder.rows.iter().any(|row| !row.kernel.is_empty());
    let widths = [source, PUBLISHED, if has_kernel { KERNEL } else { 0 }];
    let mut out = format!("{}\n", folder.name);
    let header = ["source", "published", if has_kernel { "real kernel" } else { "" }].map(|cell| vec![cell.to_owned()]);
    cells(&mut out, &header, &widths, "result");
    let rule = widths.iter().filter(|&&width| width > 0).map(|width| width + 2).sum::<usize>() + "result".len();
    let _ = writeln!(out, "{}", "-".repeat(rule));
    for row in &folder.rows {
        let text = [vec![row.source.clone()], row.published.clone(), row.kernel.clone()];
        let text = [0, 1, 2].map(|cell: usize| wrapped(&text[cell], widths[cell]));
        cells(&mut out, &text, &widths, row.verdict().name());
        row.lines.iter().for_each(|line| expectation(&mut out, line));
        if let Some(verdict) = row.other_by_median() {
            let _ = writeln!(out, "{:INDENT$}{} by the medians of runs", "", verdict.name());
        }
    }
    let _ = writeln!(out, "\n{}", folder.totals());
    for (row, note) in notes(folder) {
        let text = format!("{} ({}): {note}", row.source, row.verdict().name());
        for (number, line) in wrap(&text, WIDTH - 2).into_iter().enumerate() {
            let _ = writeln!(out, "{}{line}", if number == 0 { "- " } else { "  " });
        }
    }
    out
}

/// The notes of rows that are not met.
pub(crate) fn notes(folder: &Folder) -> impl Iterator<Item = (&Row, &String)> {
    let rows = folder.rows.iter().filter(|row| row.verdict() != Verdict::Ok);
    rows.flat_map(|row| row.notes.iter().map(move |note| (row, note)))
}

/// Writes wrapped cells side by side, the result behind the first line.
fn cells(out: &mut String, cells: &[Vec<String>; 3], widths: &[usize; 3], result: &str) {
    let lines = cells.iter().map(Vec::len).max().unwrap_or(0).max(1);
    for number in 0..lines {
        let mut line = String::new();
        for (cell, &width) in cells.iter().zip(widths).filter(|(_, width)| **width > 0) {
            let _ = write!(line, "{:<width$}  ", cell.get(number).map_or("", String::as_str));
        }
        if number == 0 {
            line.push_str(result);
        }
        let _ = writeln!(out, "{}", line.trim_end());
    }
}

/// Writes what became of an expectation.
fn expectation(out: &mut String, line: &Line) {
    let text = format!("{}; {}", line.text(), line.place());
    for (number, part) in wrap(&text, WIDTH - INDENT - VERDICT).into_iter().enumerate() {
        let verdict = if number == 0 { line.verdict().name() } else { "" };
        let _ = writeln!(out, "{:INDENT$}{verdict:<VERDICT$}{part}", "");
    }
}

fn wrapped(texts: &[String], width: usize) -> Vec<String> {
    texts.iter().flat_map(|text| wrap(text, width)).collect()
}

/// Lines of at most so many columns, unless a word is longer.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines = vec![String::new()];
    for word in text.split(' ') {
        let Some(line) = lines.last_mut() else { continue };
        if !line.is_empty() && line.chars().count() + 1 + word.chars().count() > width {
            lines.push(word.to_owned());
        } else {
            if !line.is_empty() {
                line.push(' ');
            }
            line.push_str(word);
        }
    }
    lines
}
