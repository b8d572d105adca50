//! Columns of tables of runs: metrics by the paths that expectations use, and those of each flow.

use std::collections::BTreeSet;

use serde_json::Value;

use crate::metric::{Metric, Part, UnknownMetric};
use crate::scenario::Scenario;

/// The most columns that a path with `*` becomes.
const MOST: usize = 64;

/// The sections of flows and groups, where a path has no id.
const EACH: [&str; 2] = ["flows", "groups"];

/// A column.
#[derive(Clone, Debug)]
pub struct Column {
    /// The subject of the metric: the id of a flow or link direction, or empty.
    pub id: String,
    /// The metric of that: `rtt_ms.p50`.
    pub field: String,
    /// The metric; of each flow, one for each list of the summary that has it.
    of: Vec<Metric>,
    /// `true` if each flow has its own value.
    pub of_each_flow: bool,
}

/// A name that is no column.
#[derive(Clone, Debug, thiserror::Error)]
#[error("--columns: there is no metric `{name}`{}; expected {expected}", did_you_mean(.suggestion.as_deref()))]
pub struct UnknownColumn {
    /// The name.
    pub name: String,
    expected: String,
    suggestion: Option<String>,
}

fn did_you_mean(suggestion: Option<&str>) -> String {
    suggestion.map_or_else(String::new, |name| format!("; did you mean `{name}`?"))
}

impl Column {
    /// The list of the summary that the metric is of, or nothing.
    pub fn list(&self) -> &'static str {
        self.of.first().map_or("", Metric::prefix)
    }

    /// The value of a run.
    pub fn of_run(&self, summary: &Value) -> Option<f64> {
        self.of.first().and_then(|metric| metric.values(summary).into_iter().next()?)
    }

    /// The values of the flows and groups of flows of a run, in their order.
    pub fn of_flows(&self, summary: &Value) -> Vec<Option<f64>> {
        let items = |list: &'static str| summary[list].as_array().into_iter().flatten().map(move |item| (list, item));
        let value = |(list, item): (&str, &Value)| {
            self.of.iter().find(|metric| metric.prefix() == list).and_then(|metric| metric.value(item))
        };
        EACH.into_iter().flat_map(items).map(value).collect()
    }
}

impl Scenario {
    /// The columns of a name: a metric as an `[[expect]]` has it, one for each id that it selects,
    /// or a metric of flows without their ids, such as `rtt_ms.p50`.
    ///
    /// # Errors
    /// The runs have no such metric.
    pub fn columns(&self, name: &str) -> Result<Vec<Column>, UnknownColumn> {
        if let Some(metric) = self.metric_of(name) {
            return self.each_of(name, &metric);
        }
        let of_each = |prefix: &str| {
            let path = format!("{prefix}.*.{name}");
            let shape = self.plans().next()?.shape();
            Metric::parse(&path, Part::Run, &shape).ok().filter(|metric| metric.field() == name)
        };
        let of: Vec<Metric> = EACH.into_iter().filter_map(of_each).collect();
        if !of.is_empty() {
            return Ok(vec![Column { id: String::new(), field: name.to_owned(), of, of_each_flow: true }]);
        }
        Err(self.unknown(name))
    }

    /// The metric of a path that selects something at a point.
    fn metric_of(&self, path: &str) -> Option<Metric> {
        self.plans().find_map(|plan| {
            let shape = plan.shape();
            Metric::parse(path, Part::Run, &shape).ok().filter(|metric| metric.matches(path, &shape).is_ok())
        })
    }

    /// A column for each flow, link direction and so on that a metric selects at any point.
    fn each_of(&self, name: &str, metric: &Metric) -> Result<Vec<Column>, UnknownColumn> {
        let mut seen = BTreeSet::new();
        let ids = self.plans().flat_map(|plan| metric.selected(&plan.shape()));
        let ids: Vec<String> = ids.filter(|id| seen.insert(id.clone())).take(MOST + 1).collect();
        if ids.len() > MOST {
            let expected = format!("a path that selects at most {MOST} of them");
            return Err(UnknownColumn { name: name.to_owned(), expected, suggestion: None });
        }
        let column = |id: &String| {
            let (id, field) = (id.clone(), metric.field().to_owned());
            Column { of: vec![metric.of_one(&id)], id, field, of_each_flow: false }
        };
        Ok(if ids.is_empty() { vec![column(&String::new())] } else { ids.iter().map(column).collect() })
    }

    fn unknown(&self, name: &str) -> UnknownColumn {
        // A path with an id is explained as that of an expectation is, anything else as a flow's.
        let has_prefix = ["flows.", "groups.", "links.", "workloads.", "live.", "commands."]
            .iter()
            .any(|prefix| name.starts_with(prefix));
        let path = if has_prefix { name.to_owned() } else { format!("flows.*.{name}") };
        let shape = self.plans().next().map(|plan| plan.shape());
        let why = |shape| match Metric::parse(&path, Part::Run, &shape) {
            Ok(metric) => metric.matches(&path, &shape).err(),
            Err(error) => Some(error),
        };
        let explained = shape.and_then(why);
        let UnknownMetric { expected, suggestion } =
            explained.unwrap_or(UnknownMetric { expected: "a metric".to_owned(), suggestion: None });
        let suggestion = suggestion.map(|near| near.strip_prefix("flows.*.").map(str::to_owned).unwrap_or(near));
        // Metrics of links and workloads that flows lack.
        let elsewhere = ["links", "workloads"].iter().map(|list| format!("{list}.*.{name}"));
        let suggestion = { elsewhere }.find(|path| self.metric_of(path).is_some()).or(suggestion);
        let more = if has_prefix {
            ""
        } else {
            " of each flow, or a path such as `links.ID.utilization` (`ackclock list metrics`)"
        };
        UnknownColumn { name: name.to_owned(), expected: expected + more, suggestion }
    }
}
