//! Metrics: paths into the summary of a run, with flows, links and commands addressed by id.
//!
//! The names are taken from the summary itself: every number in it is a metric, and there is no
//! second list.

use ackclock_trace::{PacketReordering, SubflowSummary};
use serde_json::Value;

use crate::report::{listed, nearest};

mod subject;
mod unknown;

use subject::{MetricSubject, PLACES, SUBFLOWS, fields, glob, numbers};
pub(crate) use subject::{Part, Shape, UnknownMetric};
use unknown::unknown;

/// A path such as `flows.reno.*.rtt_ms.p50`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    part: Part,
    of: MetricSubject,
    /// An id in which `*` stands for any text.
    selector: String,
    field: String,
}

impl Metric {
    /// Reads a path; what it selects is checked against a run's [`Shape`] by [`Metric::matches`].
    pub(crate) fn parse(text: &str, part: Part, shape: &Shape) -> Result<Metric, UnknownMetric> {
        if part.top().contains(&text) {
            return Ok(Metric { part, of: MetricSubject::Run, selector: String::new(), field: text.to_owned() });
        }
        if part == Part::Run
            && let Some(field) = text.strip_prefix("live.")
            && fields(part, MetricSubject::Live).iter().any(|known| known == field)
        {
            return Ok(Metric { part, of: MetricSubject::Live, selector: String::new(), field: field.to_owned() });
        }
        for &of in MetricSubject::listed(part) {
            let Some(rest) = text.strip_prefix(of.prefix()).and_then(|rest| rest.strip_prefix('.')) else { continue };
            // A program's output has names of its own.
            if of == MetricSubject::Commands
                && let Some((selector, field)) = rest.split_once('.')
                && field.strip_prefix("json.").is_some_and(|path| path.split('.').all(|key| !key.is_empty()))
            {
                return Ok(Metric { part, of, selector: selector.to_owned(), field: field.to_owned() });
            }
            // So has what a stack reports.
            if of == MetricSubject::Hosts
                && let Some((selector, field)) = rest.split_once('.')
                && field.strip_prefix("results.").is_some_and(|name| !name.is_empty())
            {
                return Ok(Metric { part, of, selector: selector.to_owned(), field: field.to_owned() });
            }
            if of == MetricSubject::Flows
                && part == Part::Run
                && let Some((selector, field)) = rest.split_once(&format!(".{PLACES}"))
                && place_of(field).is_some()
            {
                let (selector, field) = (selector.to_owned(), format!("{PLACES}{field}"));
                return Ok(Metric { part, of, selector, field });
            }
            if of == MetricSubject::Flows
                && part == Part::Run
                && let Some((selector, field)) = rest.split_once(&format!(".{SUBFLOWS}"))
                && subflow_of(field).is_some()
            {
                let (selector, field) = (selector.to_owned(), format!("{SUBFLOWS}{field}"));
                return Ok(Metric { part, of, selector, field });
            }
            // Ids have dots too, so the field is found from the end: the longest, where one ends as
            // another one does.
            let found = fields(part, of).into_iter().filter_map(|field| {
                let selector = rest.strip_suffix(field.as_str())?.strip_suffix('.')?;
                Some(Metric { part, of, selector: selector.to_owned(), field })
            });
            if let Some(metric) = found.max_by_key(|metric| metric.field.len()) {
                return Ok(metric);
            }
        }
        Err(unknown(text, part, shape))
    }

    /// Returns `true` if the metric exists on the live clock alone.
    pub(crate) fn is_live(&self) -> bool {
        matches!(self.of, MetricSubject::Live | MetricSubject::Hosts | MetricSubject::Commands)
    }

    /// Number of flows, links or commands of a run that the metric selects; none is an error.
    pub(crate) fn matches(&self, text: &str, shape: &Shape) -> Result<usize, UnknownMetric> {
        let count = match self.of {
            MetricSubject::Run => return Ok(1),
            MetricSubject::Live => usize::from(!shape.hosts.is_empty()),
            of => shape.ids(of).filter(|id| glob(&self.selector, id)).count(),
        };
        if count == 0 {
            return Err(unknown(text, self.part, shape));
        }
        if let Some((place, _)) = self.field.strip_prefix(PLACES).and_then(place_of)
            && !shape.places.iter().any(|known| known == place)
        {
            let (expected, places) =
                ("a place in `record.reordering`", listed(shape.places.iter().map(String::as_str)));
            let expected = if places.is_empty() {
                format!("{expected}, which is not set")
            } else {
                format!("{expected}: {places}")
            };
            let near = nearest(place, shape.places.iter().map(String::as_str));
            return Err(UnknownMetric { expected, suggestion: near.map(|near| text.replacen(place, near, 1)) });
        }
        if let Some((number, field)) = self.field.strip_prefix(SUBFLOWS).and_then(subflow_of)
            && number >= shape.subflows
        {
            let expected = match shape.subflows {
                0 => "a flow over Multipath TCP".to_owned(),
                count => format!("`{SUBFLOWS}N.{field}` with a number of a subflow from 0 to {}", count - 1),
            };
            return Err(UnknownMetric { expected, suggestion: None });
        }
        let Some(wanted) = self.measured_as() else { return Ok(count) };
        let commands = shape.commands.iter().filter(|(id, _)| glob(&self.selector, id));
        match commands.filter(|(_, measured)| *measured == Some(wanted)).count() {
            0 => Err(UnknownMetric { expected: format!("a command with `measure = \"{wanted}\"`"), suggestion: None }),
            count => Ok(count),
        }
    }

    /// The reading of a command's output that the metric needs.
    fn measured_as(&self) -> Option<&'static str> {
        match self.field.split('.').next() {
            _ if self.of != MetricSubject::Commands => None,
            Some("json") => Some("json"),
            Some("rtt_ms") => Some("ping"),
            _ => None,
        }
    }

    /// The values in a summary; `None` for what has no samples.
    pub(crate) fn values(&self, summary: &Value) -> Vec<Option<f64>> {
        let list = match self.of {
            MetricSubject::Run => return vec![self.value(summary)],
            MetricSubject::Live => return vec![self.value(&summary["live"])],
            MetricSubject::Flows => &summary["flows"],
            MetricSubject::Groups => &summary["groups"],
            MetricSubject::Workloads => &summary["workloads"],
            MetricSubject::Links => &summary["links"],
            MetricSubject::Hosts => &summary["live"]["hosts"],
            MetricSubject::Commands => &summary["commands"],
        };
        let items = list.as_array().map_or(&[][..], Vec::as_slice);
        // One that is not read so is passed over, one that could not be is not.
        let key = self.measured_as().map(|kind| if kind == "json" { "json" } else { "rtt_ms" });
        let measured = |item: &&Value| {
            key.is_none_or(|key| self.selector == item["id"] || item.get(key).is_some() || !item["error"].is_null())
        };
        let selected = items.iter().filter(|item| item["id"].as_str().is_some_and(|id| glob(&self.selector, id)));
        selected.filter(measured).map(|item| self.value(item)).collect()
    }

    /// The number of what it selects: `rtt_ms.p50`.
    pub(crate) fn field(&self) -> &str {
        &self.field
    }

    /// The list of the summary that it is about.
    pub(crate) fn prefix(&self) -> &'static str {
        self.of.prefix()
    }

    /// The ids of a run that it selects; none of what has no id.
    pub(crate) fn selected(&self, shape: &Shape) -> Vec<String> {
        shape.ids(self.of).filter(|id| glob(&self.selector, id)).collect()
    }

    /// This metric of one id.
    pub(crate) fn of_one(&self, id: &str) -> Metric {
        Metric { selector: id.to_owned(), ..self.clone() }
    }

    /// Returns `true` if the metric is about flows, over the whole run.
    pub(crate) fn is_of_flows(&self) -> bool {
        self.of == MetricSubject::Flows && self.part == Part::Run
    }

    /// Returns `true` if the metric is about the subject with this id.
    pub(crate) fn selects(&self, id: &str) -> bool {
        glob(&self.selector, id)
    }

    /// The value of one item that it is about.
    pub(crate) fn value(&self, item: &Value) -> Option<f64> {
        if self.of == MetricSubject::Links
            && let Some(reason) = self.field.strip_prefix("dropped.")
        {
            // A reason that did not occur is left out of the summary.
            return Some(item["dropped"].get(reason).and_then(Value::as_f64).unwrap_or(0.0));
        }
        if let Some((place, field)) = self.field.strip_prefix(PLACES).and_then(place_of) {
            return field.split('.').try_fold(&item["reordering"][place], step)?.as_f64();
        }
        self.field.split('.').try_fold(item, step)?.as_f64()
    }
}

/// The number of a subflow in what follows [`SUBFLOWS`], and the metric.
fn subflow_of(field: &str) -> Option<(usize, &str)> {
    let (number, field) = field.split_once('.')?;
    let mut fields = Vec::new();
    numbers(&serde_json::to_value(SubflowSummary::default()).ok()?, "", &mut fields);
    fields.iter().any(|known| known == field).then_some((number.parse().ok()?, field))
}

/// The place in what follows [`PLACES`], and the metric. Places have dots as well.
fn place_of(field: &str) -> Option<(&str, &str)> {
    let mut fields = Vec::new();
    numbers(&serde_json::to_value(PacketReordering::default()).ok()?, "", &mut fields);
    let found = fields.iter().filter(|known| {
        field.strip_suffix(known.as_str()).is_some_and(|place| place.len() > 1 && place.ends_with('.'))
    });
    let (place, field) = field.split_at(field.len() - found.map(String::len).max()?);
    Some((place.trim_end_matches('.'), field))
}

/// A value in another one, by its key or, in an array, by its number.
fn step<'v>(value: &'v Value, key: &str) -> Option<&'v Value> {
    match value {
        Value::Array(items) => items.get(key.parse::<usize>().ok()?),
        value => value.get(key),
    }
}

/// Every metric of a whole run, by what it is measured on.
pub(crate) fn all() -> Vec<(&'static str, Vec<String>)> {
    let of = |of: MetricSubject| {
        let id = if of == MetricSubject::Live { "" } else { ".ID" };
        (of.prefix(), fields(Part::Run, of).iter().map(|field| format!("{}{id}.{field}", of.prefix())).collect())
    };
    let run = ("run", Part::Run.top().iter().map(|&name| name.to_owned()).collect());
    let listed = MetricSubject::listed(Part::Run).iter().copied().chain([MetricSubject::Live]).map(of);
    std::iter::once(run).chain(listed).collect()
}

#[cfg(test)]
mod tests;
