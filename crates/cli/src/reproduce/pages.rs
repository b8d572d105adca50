//! The pages of `--out`: the tables, and the figures of each scenario.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use ackclock_report::gallery::{Entry, Finding, Gallery, State, Table};
use ackclock_report::{Options, Report};
use anyhow::Context;

use super::gallery::Place;
use super::rows::{Folder, Line, Row, Verdict};
use crate::console::say;
use crate::figures::write;

/// Where the results of a scenario go.
pub(crate) fn folder(out: &Path, place: &Place) -> PathBuf {
    out.join(&place.folder).join(&place.file)
}

/// Draws the figures of a scenario, beside its results. Returns the page, from the one with the
/// tables.
pub(crate) fn figures(out: &Path, place: &Place) -> anyhow::Result<String> {
    let folder = folder(out, place);
    let report = Report::read(&[folder], &Options::default())?;
    for note in report.notes() {
        say(&format!("note: {}: {note}", place.name()));
    }
    let page = page(&place.folder, &place.file);
    write(&out.join(&page), report.page().as_bytes())?;
    Ok(page)
}

fn page(folder: &str, file: &str) -> String {
    format!("{folder}/{file}.html")
}

/// Writes the tables, with links to these pages.
pub(crate) fn index(out: &Path, folders: &[Folder], pages: &BTreeSet<String>, totals: &str) -> anyhow::Result<PathBuf> {
    let tables = folders.iter().map(|folder| Table {
        name: folder.name.clone(),
        totals: folder.totals(),
        rows: folder.rows.iter().map(|row| entry(folder, row, pages)).collect(),
    });
    let gallery = Gallery {
        title: "Published results, reproduced".to_owned(),
        about: format!("{totals}. ackclock {}.", env!("CARGO_PKG_VERSION")),
        tables: tables.collect(),
    };
    let path = out.join("index.html");
    write(&path, gallery.page().as_bytes()).context("cannot use --out")?;
    Ok(path)
}

fn entry(folder: &Folder, row: &Row, pages: &BTreeSet<String>) -> Entry {
    Entry {
        state: state(row.verdict()),
        source: row.source.clone(),
        published: row.published.clone(),
        kernel: row.kernel.clone(),
        notes: row.notes.clone(),
        findings: row.lines.iter().map(|line| finding(folder, line, pages)).collect(),
    }
}

fn finding(folder: &Folder, line: &Line, pages: &BTreeSet<String>) -> Finding {
    let page = page(&folder.name, &line.file);
    Finding {
        state: state(line.verdict()),
        metric: line.metric.clone(),
        value: line.value.clone(),
        spread: line.spread.clone(),
        expected: line.expected.clone(),
        place: line.place(),
        // One that failed has none.
        page: pages.contains(&page).then_some(page),
    }
}

fn state(verdict: Verdict) -> State {
    match verdict {
        Verdict::Ok => State::Ok,
        Verdict::Part => State::Part,
        Verdict::Miss => State::Miss,
    }
}
