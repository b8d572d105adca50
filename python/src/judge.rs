//! The expectations of a sweep whose runs were done elsewhere, or before.

use std::sync::{Arc, Mutex, PoisonError};

use ackclock_run::batch;
use ackclock_scenario::Measures;
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::PyBytes;
use serde_json::Value;

use crate::lines::Lines;
use crate::packed;
use crate::scenario::PyScenario;

/// The measurements of a sweep's runs, until all are complete.
#[pyclass(name = "Judge", frozen, module = "ackclock._core")]
#[derive(Debug)]
pub(crate) struct PyJudge {
    scenario: Arc<ackclock_scenario::Scenario>,
    measures: Mutex<Vec<Option<Measures>>>,
}

#[pymethods]
impl PyJudge {
    #[new]
    fn new(scenario: &PyScenario) -> PyJudge {
        PyJudge { scenario: scenario.0.clone(), measures: Mutex::default() }
    }

    /// The scenario's measurements in runs, as bytes for `Judge.add`.
    #[staticmethod]
    fn measure<'py>(py: Python<'py>, scenario: &PyScenario, lines: &Lines) -> PyResult<Bound<'py, PyBytes>> {
        let measured = py.detach(|| {
            let mut bytes = Vec::new();
            for line in lines.0.iter() {
                let (run, measures) = batch::measures(&scenario.0, &line.json)?;
                bytes.extend((run as u64).to_le_bytes());
                bytes.extend((measures.len() as u64).to_le_bytes());
                for measure in measures {
                    bytes.push(measure.is_some().into());
                    bytes.extend(measure.unwrap_or_default().to_le_bytes());
                }
            }
            Ok(bytes)
        });
        measured.map(|bytes| PyBytes::new(py, &bytes)).map_err(|why: String| PyValueError::new_err(why))
    }

    /// Takes in what runs have measured, in any order.
    fn add(&self, bytes: &[u8]) -> PyResult<()> {
        let added = self.take(bytes);
        added.ok_or_else(|| PyValueError::new_err("these bytes are not what runs of the scenario have measured"))
    }

    /// A line with the expectations: the last one, if all runs have been added.
    fn conclude(&self, py: Python<'_>, line: String) -> String {
        py.detach(|| {
            let measures = self.measures.lock().unwrap_or_else(PoisonError::into_inner);
            batch::with_expectations(line, &batch::expectations(&self.scenario, &measures))
        })
    }
}

impl PyJudge {
    /// Takes in what a run has measured, from its line. Tells whether it failed.
    pub(crate) fn see(&self, line: &str) -> anyhow::Result<bool> {
        let summary: Value = serde_json::from_str(line)?;
        let (run, measures) = batch::measures(&self.scenario, line).map_err(anyhow::Error::msg)?;
        self.keep(run, measures);
        Ok(summary["failed"] == true)
    }

    fn keep(&self, run: usize, measures: Measures) {
        let mut all = self.measures.lock().unwrap_or_else(PoisonError::into_inner);
        if all.len() <= run {
            all.resize(run + 1, None);
        }
        all[run] = Some(measures);
    }

    fn take(&self, mut bytes: &[u8]) -> Option<()> {
        while !bytes.is_empty() {
            let run = packed::number(&mut bytes).filter(|&run| run < self.scenario.runs())?;
            let count = packed::number(&mut bytes)?;
            let mut measures = Measures::new();
            for _ in 0..count {
                let is_there = *bytes.split_off_first()? == 1;
                let (first, rest) = bytes.split_first_chunk()?;
                bytes = rest;
                measures.push(is_there.then(|| f64::from_le_bytes(*first)));
            }
            self.keep(run, measures);
        }
        Some(())
    }
}
