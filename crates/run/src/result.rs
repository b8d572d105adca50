//! The results of one run: what is written of them, and what is read again when a sweep is resumed.

use ackclock_scenario::Scenario;
use ackclock_trace::Summary;
use ackclock_units::Random;
use anyhow::Context;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::execute::{BrokenOff, Done};
use crate::partial::Sealed;

/// A run in the output. It is written as it is serialized: flows are many.
#[derive(Serialize)]
pub struct RunResult<'a> {
    #[serde(flatten)]
    /// The measurements.
    pub summary: &'a Summary<Map<String, Value>>,
    /// `true` if the run failed.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub failed: bool,
    /// Why.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<&'a str>,
    /// With the last run.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub expectations: Vec<Value>,
}

/// A run of a virtual sweep that is over, in one way or another.
pub(crate) struct Ended {
    pub(crate) summary: Summary<()>,
    pub(crate) records: Vec<Sealed>,
    /// Why it failed; the others go on.
    pub(crate) error: Option<String>,
    /// Why nothing goes on.
    pub(crate) broken_off: Option<BrokenOff>,
}

impl Ended {
    pub(crate) fn of(done: Done, is_sweep: bool) -> Ended {
        let has_failed = is_sweep && done.has_failed();
        let Done { summary, records, broken_off } = done;
        let (error, broken_off) = match broken_off {
            Some(BrokenOff::Failed(error)) if has_failed => (Some(format!("{error:#}")), None),
            broken_off => (None, broken_off),
        };
        Ended { summary, records, error, broken_off }
    }

    /// Without results, but for what says which run it is.
    pub(crate) fn failed(scenario: &Scenario, run: usize, error: String) -> Ended {
        let summary = nothing(scenario, run);
        Ended { summary, records: Vec::new(), error: Some(error), broken_off: None }
    }
}

fn nothing(scenario: &Scenario, run: usize) -> Summary<()> {
    // A point that is wrong may have none of its own.
    let seed = scenario.read_spec(run).map_or(scenario.seed(), |spec| spec.seed);
    let repetition = (run % scenario.repeat()) as u64;
    Summary {
        schema: 1,
        title: scenario.title().to_owned(),
        seed,
        run: repetition,
        index: repetition,
        run_seed: format!("{:016x}", Random::seed_of_run(seed, repetition)),
        clock: "virtual",
        partial: true,
        ..Summary::default()
    }
}

/// A run that had finished before.
pub struct Stored {
    /// Its line.
    pub json: Value,
    /// The line as a summary.
    pub summary: Summary<Map<String, Value>>,
}

impl Stored {
    pub(crate) fn read(line: &str) -> anyhow::Result<Stored> {
        let json: Value = serde_json::from_str(line).context("a line of summary.jsonl is not JSON")?;
        let summary = Summary::deserialize(&json).context("a line of summary.jsonl is not a summary")?;
        Ok(Stored { json, summary })
    }

    /// Why it failed, if it did.
    pub fn error(&self) -> Option<&str> {
        let failed = self.json["failed"] == true;
        failed.then(|| self.json["error"].as_str().unwrap_or("unknown reason"))
    }
}

/// A line with expectations: behind everything else, as `RunResult` has it.
pub fn with_expectations(mut line: String, expectations: &[Value]) -> String {
    if !expectations.is_empty() && line.ends_with('}') {
        line.pop();
        line = format!("{line},\"expectations\":{}}}", Value::from(expectations));
    }
    line
}

#[cfg(test)]
mod tests {
    use ackclock_sim::RunError;

    use super::*;

    #[test]
    fn a_failed_run_is_a_summary_without_results() {
        let text = "schema = 1\n[run]\nduration = \"1s\"\nseed = 3\n[links.a]\nrate = \"1mbit\"\n\
                    [[flows]]\nid = \"f\"\npath = [\"a\"]\n[sweep]\nrepeat = 2\n";
        let scenario = Scenario::parse("test.toml", text.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"));
        let error = RunError::Integrity { flow: "f.0".to_owned(), offset: 7 };
        let ended = Ended::failed(&scenario, 1, error.to_string());
        let summary = ended.summary.with_params(scenario.params(1));
        let error = ended.error.as_deref();
        let result = RunResult { summary: &summary, failed: true, error, expectations: Vec::new() };
        let line = serde_json::to_string(&result).expect("JSON");
        let stored = Stored::read(&line).expect("it is a summary");
        assert_eq!((&stored.summary, stored.error()), (&summary, error));
        assert_eq!((summary.run, summary.seed, summary.run_seed.len(), summary.duration_s), (1, 3, 16, 0.0));
        // The keys are those that `compare` requires of a summary.
        assert!(stored.json["schema"] == 1 && stored.json["flows"].is_array() && stored.json["links"].is_array());
        assert!(error.is_some_and(|error| error.contains("at byte 7 of the stream")));
    }
}
