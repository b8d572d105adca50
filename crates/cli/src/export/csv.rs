//! Results as one table, for R, pandas and spreadsheets: a row for each run and flow, link, group
//! or whatever else a summary lists, or for each interval of the series.
//!
//! The run's number, its repetition and the sweep's [`Parameters`] come first. Objects within
//! objects have dots in their names; lists are JSON.

use std::collections::BTreeSet;
use std::io::Write;
use std::path::Path;

use ackclock_run::output::SERIES;
use ackclock_run::parameters::Parameters;
use anyhow::{Context, bail};
use serde_json::{Map, Value};

use super::run::{Run, each_summary};

/// The lists of a summary, apart from the run itself and the series.
const LISTS: [&str; 8] = ["flows", "links", "groups", "kinds", "windows", "workloads", "commands", "expectations"];

/// Writes a table of all runs of a directory, or of one.
pub(super) fn write(dir: &Path, table: &str, only: Option<u64>, out: &mut dyn Write) -> anyhow::Result<()> {
    if table != "runs" && table != "series" && !LISTS.contains(&table) {
        bail!("--table {table}: expected runs, series, {}", LISTS.join(", "));
    }
    // The columns of all rows have to be known before the first is written, and so has the kind of
    // each parameter: the summaries are read twice.
    let mut columns = CsvColumns::default();
    let mut runs = 0u64;
    each_summary(dir, |summary| {
        if only.is_none_or(|only| summary["index"] == only) {
            runs += 1;
            columns.see(table, &summary);
        }
        Ok(())
    })?;
    if let Some(only) = only.filter(|_| runs == 0) {
        bail!("--run {only}: there is no result of it");
    }
    let mut writer = ::csv::Writer::from_writer(out);
    if table == "series" {
        return series(dir, only, &columns, &mut writer);
    }
    if columns.values.is_empty() {
        bail!("no run has `{table}`");
    }
    writer.write_record(columns.header(&columns.values.clone()))?;
    each_summary(dir, |summary| {
        if only.is_none_or(|only| summary["index"] == only) {
            let keys = columns.keys(&summary);
            for row in rows(table, &summary) {
                let cells = columns.values.iter().map(|name| cell(row.get(name)));
                writer.write_record(keys.iter().cloned().chain(cells))?;
            }
        }
        Ok(())
    })?;
    writer.flush()?;
    Ok(())
}

/// The series of each run behind those before, with the values of its point.
fn series<W: Write>(
    dir: &Path,
    only: Option<u64>,
    columns: &CsvColumns,
    out: &mut ::csv::Writer<W>,
) -> anyhow::Result<()> {
    let mut known: Option<Vec<String>> = None;
    each_summary(dir, |summary| {
        if only.is_some_and(|only| summary["index"] != only) || summary["failed"] == true {
            return Ok(());
        }
        let keys = columns.keys(&summary);
        let run = Run::of(dir, summary)?;
        let Some(mut sheet) = run.sheet(SERIES)? else { return super::sheet::missing("series = \"100ms\"", dir) };
        let names: Vec<String> = sheet.names().map(str::to_owned).collect();
        match &known {
            None => {
                out.write_record(columns.header(&names))?;
                known = Some(names);
            }
            Some(known) if *known == names => {}
            Some(_) => bail!("the series of run {} has other columns", run.summary["index"]),
        }
        while sheet.next()? {
            out.write_record(keys.iter().map(String::as_str).chain(sheet.cells()))?;
        }
        Ok(())
    })?;
    out.flush().context("cannot write the table")
}

/// The names of columns.
#[derive(Debug, Default)]
struct CsvColumns {
    parameters: Parameters,
    /// The columns of the rows, in the order in which they came.
    values: Vec<String>,
    seen: BTreeSet<String>,
}

impl CsvColumns {
    /// Takes in what a run has.
    fn see(&mut self, table: &str, summary: &Value) {
        self.parameters.see(summary);
        for row in rows(table, summary) {
            for (name, _) in row {
                if self.seen.insert(name.clone()) {
                    self.values.push(name);
                }
            }
        }
    }

    fn header<'c>(&'c self, values: &'c [String]) -> Vec<String> {
        let mut header = vec!["index".to_owned(), "run".to_owned()];
        header.extend(self.parameters.columns());
        // A column with the name of one of the run's own is the run's number in the rows, too.
        header.extend(values.iter().cloned());
        header
    }

    /// The cells of a run that each of its rows begins with.
    fn keys(&self, summary: &Value) -> Vec<String> {
        let mut keys = vec![cell(Some(&summary["index"])), cell(Some(&summary["run"]))];
        let cells = self.parameters.cells(&summary["params"], &summary["labels"]);
        keys.extend(cells.iter().map(|value| cell(Some(value))));
        keys
    }
}

/// The rows of a table that a run has.
fn rows(table: &str, summary: &Value) -> Vec<Map<String, Value>> {
    if table == "runs" {
        let mut row = Map::new();
        let own = |key: &str| !["params", "labels", "index", "run"].contains(&key) && !LISTS.contains(&key);
        for (key, value) in summary.as_object().into_iter().flatten().filter(|(key, _)| own(key)) {
            flatten(key, value, &mut row);
        }
        return vec![row];
    }
    let listed = summary[table].as_array().into_iter().flatten();
    listed
        .filter_map(Value::as_object)
        .map(|entry| {
            let mut row = Map::new();
            entry.iter().for_each(|(key, value)| flatten(key, value, &mut row));
            row
        })
        .collect()
}

fn flatten(name: &str, value: &Value, row: &mut Map<String, Value>) {
    match value {
        Value::Object(entries) => {
            entries.iter().for_each(|(key, value)| flatten(&format!("{name}.{key}"), value, row));
        }
        _ => _ = row.insert(name.to_owned(), value.clone()),
    }
}

fn cell(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(value) => value.to_string(),
    }
}
