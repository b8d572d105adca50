//! `sweep.repeat.until`: points are repeated until a mean is known well enough.
//!
//! # Source
//! Law, Kelton and Koenig, "Relative Width Sequential Confidence Intervals for the Mean",
//! Communications in Statistics B 10, 1981: replications until half of the interval by Student's t
//! is at most a share of the mean found. As every sequential rule, it stops early more often where
//! the spread is underestimated, so that the interval has the mean less often than it says:
//! `docs/sweeps.md` has by how much.

use ackclock_trace::statistics;

use crate::document::Table;
use crate::fields::{Context, Fields};
use crate::measurement::{self, Measurement, Subject, Window};
use crate::quantity::{Number, Problem};

/// The confidence of the interval.
const CONFIDENCE: f64 = 0.95;

/// When a point has been repeated often enough.
#[derive(Clone, Debug)]
pub(crate) struct Until {
    pub(crate) measurement: Measurement,
    /// The most that the ends of the interval are from the mean, relative to it.
    ci95: f64,
}

impl Until {
    /// The condition in words.
    pub(crate) fn text(&self) -> String {
        format!("the mean of {} within {} %", self.measurement.name(), self.ci95 * 100.0)
    }

    /// Returns `true` if the mean of these values is known well enough. Values that are all the
    /// same are.
    pub(crate) fn is_met(&self, values: &[f64]) -> bool {
        let mean = statistics::mean(values).filter(|mean| mean.is_finite());
        let (Some(mean), Some(interval)) = (mean, statistics::t_interval(values, CONFIDENCE)) else { return false };
        (interval.high - interval.low) / 2.0 <= self.ci95 * mean.abs()
    }
}

/// Reads the condition, if the document has one, and adds the window that it needs.
pub(crate) fn read<'a>(
    document: &'a Table,
    cx: &'a Context<'a>,
    subjects: &[(usize, Subject)],
    windows: &mut Vec<Window>,
) -> Option<Until> {
    let node = &document.get("sweep")?.node.table()?.get("repeat")?.node.table()?.get("until")?.node;
    let mut fields = Fields::new(cx, node.table()?, "sweep.repeat.until", &node.place);
    let measurement = measurement::read(&mut fields, subjects, windows);
    let expected = "half of the 95 % confidence interval relative to the mean, such as 0.05";
    let ci95 = fields.required(
        ("ci95", "half of the 95 % confidence interval of the mean, relative to it"),
        Number(1e-6, 1.0),
        expected,
    );
    let suits = measurement.as_ref().is_some_and(|(measurement, nodes)| {
        if let Some(entry) = fields.get("metric").filter(|_| !measurement.absent().is_empty()) {
            let problem = Problem::new("measured in live runs only", "a metric that all runs have");
            fields.reject("metric", &entry.node, problem);
        }
        measurement.suits(&mut fields, subjects, nodes, |_| true)
    });
    fields.finish();
    Some(Until { measurement: measurement.filter(|_| suits)?.0, ci95: ci95? })
}

#[cfg(test)]
mod tests {
    use crate::scenario::Scenario;

    fn scenario(repeat: &str) -> Result<Scenario, String> {
        let text = format!(
            "schema = 1\n[run]\nduration = \"1s\"\n[links.a]\nrate = \"1mbit\"\n[[flows]]\nid = \"f\"\ncount = 2\n\
             path = [\"a\"]\n[sweep]\nrepeat = {repeat}\naxes.\"links.a.delay\" = [\"1ms\", \"2ms\"]\n"
        );
        Scenario::parse("test.toml", text.as_bytes(), &[]).map_err(|error| error.render(false))
    }

    const GOODPUT: &str = "{ metric = \"flows.*.goodput_bps\", reduce = \"sum\", ci95 = 0.1 }";

    #[test]
    fn a_point_is_settled_when_its_mean_is_known_well_enough() {
        let scenario =
            scenario(&format!("{{ min = 3, max = 6, until = {GOODPUT} }}")).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!((scenario.runs(), scenario.repeat(), scenario.is_adaptive()), (12, 6, true));
        let settled = |values: &[Option<f64>]| {
            let runs: Vec<Vec<Option<f64>>> = values.iter().map(|value| vec![*value]).collect();
            scenario.is_settled(&runs)
        };
        assert!(!settled(&[Some(24.0), Some(25.0)]), "fewer than the fewest");
        // Student's t for two degrees of freedom is 4.303: 4.303 * 1 / sqrt(3) is 2.484.
        assert!(settled(&[Some(24.0), Some(25.0), Some(26.0)]), "2.484 is within 0.1 * 25");
        assert!(!settled(&[Some(23.0), Some(24.0), Some(25.0)]), "2.484 is not within 0.1 * 24");
        assert!(settled(&[Some(0.0), Some(0.0), Some(0.0)]), "nothing varies");
        assert!(!settled(&[Some(1.0), Some(9.0), Some(1.0), Some(9.0), Some(1.0)]));
        assert!(settled(&[Some(1.0), Some(9.0), Some(1.0), Some(9.0), Some(1.0), Some(9.0)]), "the most");
        // A value that is missing is none; a run that failed has been done.
        assert!(!settled(&[Some(7.0), None, None]));
        assert!(settled(&[Some(7.0), None, Some(7.0)]));
        assert!(scenario.is_settled(&[vec![Some(7.0)], Vec::new(), vec![Some(7.0)]]));
    }

    #[test]
    fn mistakes_are_reported_at_their_places() {
        let error = |repeat: &str| scenario(repeat).map(|_| ()).expect_err(repeat);
        let has = |error: String, part: &str| assert!(error.contains(part), "{part}: {error}");
        has(error("{ min = 3, max = 6 }"), "`until` is missing");
        has(error(&format!("{{ until = {GOODPUT} }}")), "`max` is missing");
        has(error(&format!("{{ min = 1, max = 6, until = {GOODPUT} }}")), "sweep.repeat.min");
        has(error(&format!("{{ min = 7, max = 6, until = {GOODPUT} }}")), "less than `min`");
        has(error(&format!("{{ max = 6, until = {GOODPUT}, most = 7 }}")), "most");
        let until = |until: &str| error(&format!("{{ max = 9, until = {until} }}"));
        has(until("3"), "sweep.repeat.until");
        has(until("{ metric = \"flows.f.0.goodput_bps\" }"), "`ci95` is missing");
        has(until("{ metric = \"flows.f.0.goodput_bps\", ci95 = 0 }"), "ci95");
        has(until("{ metric = \"flows.g.0.goodput_bps\", ci95 = 0.1 }"), "unknown metric");
        has(until("{ metric = \"flows.*.goodput_bps\", ci95 = 0.1 }"), "`reduce` is missing");
        has(until("{ metric = \"fairness_jain\", ci95 = 0.1, at_most = 3 }"), "at_most");
    }
}
