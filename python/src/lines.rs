//! The lines of runs, and the tables in them.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ackclock_run::batch::Line;
use ackclock_run::parameters;
use arrow_array::RecordBatch;
use pyo3::exceptions::{PyIndexError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::{Map, Value};

use crate::columns::Columns;
use crate::packed;
use crate::table::Table;

/// The lists of objects in a summary, each a table of its own.
const PARTS: [&str; 9] =
    ["flows", "links", "groups", "kinds", "windows", "workloads", "commands", "expectations", "datagrams"];

/// The columns that identify the run of a row.
const KEYS: [&str; 2] = ["index", "run"];

/// Lines of JSON, one for each run, with what the runs have recorded.
#[pyclass(frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct Lines(pub(crate) Arc<Vec<Line>>);

/// What the columns of parameters are, from lines that were seen.
#[pyclass(name = "Parameters", frozen, module = "ackclock._core")]
#[derive(Debug, Default)]
pub(crate) struct PyParameters(Mutex<parameters::Parameters>);

impl PyParameters {
    fn all(&self) -> MutexGuard<'_, parameters::Parameters> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[pymethods]
impl PyParameters {
    #[new]
    fn new() -> PyParameters {
        PyParameters::default()
    }

    /// Takes in lines of the sweep.
    fn see(&self, py: Python<'_>, lines: &Lines) -> PyResult<()> {
        let seen = py.detach(|| {
            let mut all = self.all();
            lines.0.iter().try_for_each(|line| all.see_line(&line.json).map_err(|error| wrong(line, &error)))
        });
        seen.map_err(PyValueError::new_err)
    }
}

impl Lines {
    fn line(&self, number: usize) -> PyResult<&Line> {
        let lines = self.0.len();
        self.0.get(number).ok_or_else(|| PyIndexError::new_err(format!("run {number} of {lines}")))
    }
}

#[pymethods]
impl Lines {
    /// Reads lines of JSON, such as `summary.jsonl`; empty ones are left out.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<Lines> {
        py.detach(|| {
            let lines = text.lines().enumerate().filter(|(_, line)| !line.trim().is_empty());
            lines.map(|(number, line)| stored(number, line)).collect::<Result<Vec<_>, _>>()
        })
        .map(|lines| Lines(Arc::new(lines)))
        .map_err(PyValueError::new_err)
    }

    /// Reads one summary, on however many lines; its line has the bytes of `--json`.
    #[staticmethod]
    fn from_document(py: Python<'_>, text: &str) -> PyResult<Lines> {
        py.detach(|| {
            let value: Value = serde_json::from_str(text).map_err(|error| error.to_string())?;
            stored(0, &value.to_string())
        })
        .map(|line| Lines(Arc::new(vec![line])))
        .map_err(PyValueError::new_err)
    }

    /// Lines one behind the other, with `last` as the JSON of the last one.
    #[staticmethod]
    #[pyo3(signature = (parts, last = None))]
    fn join(parts: Vec<PyRef<'_, Lines>>, last: Option<String>) -> Lines {
        let mut lines: Vec<Line> = parts.iter().flat_map(|part| part.0.iter().cloned()).collect();
        if let (Some(line), Some(json)) = (lines.last_mut(), last) {
            line.json = json;
        }
        Lines(Arc::new(lines))
    }

    /// The lines and all that goes with them as bytes, for another process of the same version.
    fn pack<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        let bytes = py.detach(|| packed::pack(&self.0));
        PyBytes::new(py, &bytes)
    }

    /// The inverse of `pack`.
    #[staticmethod]
    fn unpack(py: Python<'_>, bytes: &[u8]) -> PyResult<Lines> {
        let lines = py.detach(|| packed::unpack(bytes));
        let lines = lines.ok_or_else(|| PyValueError::new_err("these bytes are not lines that were packed"))?;
        Ok(Lines(Arc::new(lines)))
    }

    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, (Bound<'py, PyBytes>,))> {
        Ok((py.get_type::<Lines>().getattr("unpack")?, (self.pack(py),)))
    }

    /// The numbers of the runs.
    fn runs(&self) -> Vec<usize> {
        self.0.iter().map(|line| line.run).collect()
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The line of a run, counted from 0.
    fn json(&self, number: usize) -> PyResult<&str> {
        self.line(number).map(|line| line.json.as_str())
    }

    /// All lines, each with its end.
    fn text(&self) -> String {
        self.0.iter().flat_map(|line| [line.json.as_str(), "\n"]).collect()
    }

    /// Names and contents of what a run has recorded.
    fn records<'py>(&self, py: Python<'py>, number: usize) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(py);
        for (name, contents) in &self.line(number)?.records {
            dict.set_item(name, PyBytes::new(py, contents))?;
        }
        Ok(dict)
    }

    /// The number of failed runs.
    #[getter]
    fn failed(&self) -> usize {
        self.0.iter().filter(|line| line.failed).count()
    }

    /// A part of all summaries as a table. `runs` has a row for each run; the other parts have one
    /// for each of their objects, with the run's number and parameters in front if `of_runs`.
    fn table(&self, py: Python<'_>, part: &str, of_runs: bool) -> PyResult<Table> {
        if part != "runs" && !PARTS.contains(&part) {
            let known = PARTS.join(", ");
            return Err(PyValueError::new_err(format!("there is no table `{part}`; expected runs, {known}")));
        }
        let table = py.detach(|| {
            let mut parameters = parameters::Parameters::default();
            for line in self.0.iter().filter(|_| of_runs || part == "runs") {
                parameters.see_line(&line.json).map_err(|error| wrong(line, &error))?;
            }
            table(&self.0, part, of_runs, &parameters, false)
        });
        table.map(Table).map_err(PyValueError::new_err)
    }

    /// A part of all summaries as a table, with the columns of all parameters. Columns without
    /// values have no type: other lines of the sweep may have some.
    fn part(&self, py: Python<'_>, part: &str, parameters: &PyParameters) -> PyResult<Table> {
        let table = py.detach(|| table(&self.0, part, true, &parameters.all(), true));
        table.map(Table).map_err(PyValueError::new_err)
    }
}

fn stored(number: usize, line: &str) -> Result<Line, String> {
    let wrong = |why: String| format!("line {}: {why}", number + 1);
    let value: Value = serde_json::from_str(line).map_err(|error| wrong(error.to_string()))?;
    let Some(summary) = value.as_object().filter(|summary| summary.contains_key("schema")) else {
        return Err(wrong("not a summary: expected an object with `schema`".to_owned()));
    };
    let run = summary.get("index").and_then(Value::as_u64).and_then(|run| usize::try_from(run).ok());
    let failed = summary.get("failed") == Some(&Value::Bool(true));
    Ok(Line { run: run.unwrap_or(number), json: line.to_owned(), failed, records: Vec::new() })
}

fn wrong(line: &Line, error: &serde_json::Error) -> String {
    format!("run {}: {error}", line.run)
}

fn table(
    lines: &[Line],
    part: &str,
    of_runs: bool,
    parameters: &parameters::Parameters,
    untyped: bool,
) -> Result<RecordBatch, String> {
    let mut columns = Columns::default();
    let names: Vec<String> = KEYS.iter().map(|&key| key.to_owned()).chain(parameters.columns()).collect();
    for line in lines {
        let summary: Map<String, Value> = serde_json::from_str(&line.json).map_err(|error| wrong(line, &error))?;
        let of = |key: &str| summary.get(key).unwrap_or(&Value::Null);
        let mut keys: Vec<Value> = KEYS.iter().map(|key| of(key).clone()).collect();
        keys.extend(parameters.cells(of("params"), of("labels")));
        let keys: Vec<(&str, Value)> = names.iter().map(String::as_str).zip(keys).collect();
        rows(part, &summary, if of_runs || part == "runs" { &keys } else { &[] }, &mut columns);
    }
    columns.finish(untyped).map_err(|error| error.to_string())
}

/// Adds the rows that a run has in a part, behind what says which run it is.
fn rows(part: &str, summary: &Map<String, Value>, keys: &[(&str, Value)], columns: &mut Columns) {
    if part == "runs" {
        keys.iter().for_each(|(key, value)| columns.set(key, value));
        let is_own = |key: &str| !["params", "labels"].contains(&key) && !PARTS.contains(&key);
        let own = summary.iter().filter(|(key, _)| is_own(key));
        columns.set_all(&own.map(|(key, value)| (key.clone(), value.clone())).collect());
        return columns.end_row();
    }
    // Flows of datagrams are flows, whose own measures are in an object.
    let (list, only) = if part == "datagrams" { ("flows", Some("datagrams")) } else { (part, None) };
    let rows = summary.get(list).and_then(Value::as_array).into_iter().flatten().filter_map(Value::as_object);
    for row in rows.filter(|row| only.is_none_or(|key| row.contains_key(key))) {
        keys.iter().for_each(|(key, value)| columns.set(key, value));
        match only.and_then(|key| row.get(key)).and_then(Value::as_object) {
            Some(own) => {
                columns.set("id", row.get("id").unwrap_or(&Value::Null));
                columns.set_all(own);
            }
            None => columns.set_all(row),
        }
        columns.end_row();
    }
}
