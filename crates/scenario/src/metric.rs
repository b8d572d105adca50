//! Metrics: paths into the summary of a run, with flows and links addressed by id.
//!
//! The names are taken from the summary itself: every number in it is a metric, and there is no second list.

use ackclock_aqm::DropReason;
use ackclock_sim::LOST_ON_LINK;
use ackclock_trace::{FlowSummary, FlowWindow, LinkSummary, LinkWindow};
use serde_json::Value;

use crate::report::{listed, nearest};

/// What of a run is measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// All of it.
    Run,
    /// A window.
    Window,
}

impl Part {
    /// The numbers beside the flows and links.
    fn top(self) -> &'static [&'static str] {
        match self {
            Part::Run => &["duration_s", "events", "packets", "fairness_jain"],
            Part::Window => &["packets", "fairness_jain"],
        }
    }
}

/// What a metric is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Of {
    Run,
    Flows,
    Links,
}

/// A path such as `flows.reno.*.rtt_ms.p50`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Metric {
    part: Part,
    of: Of,
    /// An id in which `*` stands for any text.
    selector: String,
    field: String,
}

/// What a run has to be measured.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Shape {
    /// Ids of the groups of flows, with how many they are.
    pub(crate) flows: Vec<(String, u64)>,
    /// Names of the links.
    pub(crate) links: Vec<String>,
}

impl Shape {
    fn ids(&self, of: Of) -> Box<dyn Iterator<Item = String> + '_> {
        match of {
            Of::Run => Box::new(std::iter::empty()),
            Of::Flows => Box::new(
                self.flows.iter().flat_map(|(id, count)| (0..*count).map(move |number| format!("{id}.{number}"))),
            ),
            Of::Links => {
                Box::new(self.links.iter().flat_map(|name| ["forward", "reverse"].map(|way| format!("{name}.{way}"))))
            }
        }
    }
}

/// Why a metric cannot be measured.
#[derive(Clone, Debug)]
pub(crate) struct Unknown {
    pub(crate) expected: String,
    pub(crate) suggestion: Option<String>,
}

impl Metric {
    /// Reads a path; what it selects is checked against a run's [`Shape`] by [`Metric::matches`].
    pub(crate) fn parse(text: &str, part: Part, shape: &Shape) -> Result<Metric, Unknown> {
        if part.top().contains(&text) {
            return Ok(Metric { part, of: Of::Run, selector: String::new(), field: text.to_owned() });
        }
        for (prefix, of) in [("flows.", Of::Flows), ("links.", Of::Links)] {
            let Some(rest) = text.strip_prefix(prefix) else { continue };
            // Ids have dots too, so the field is found from the end.
            let found = fields(part, of).into_iter().find_map(|field| {
                let selector = rest.strip_suffix(field.as_str())?.strip_suffix('.')?;
                Some(Metric { part, of, selector: selector.to_owned(), field })
            });
            if let Some(metric) = found {
                return Ok(metric);
            }
        }
        Err(unknown(text, part, shape))
    }

    /// How many flows or links of a run the metric selects; none is an error.
    pub(crate) fn matches(&self, text: &str, shape: &Shape) -> Result<usize, Unknown> {
        if self.of == Of::Run {
            return Ok(1);
        }
        match shape.ids(self.of).filter(|id| glob(&self.selector, id)).count() {
            0 => Err(unknown(text, self.part, shape)),
            matches => Ok(matches),
        }
    }

    /// The values in a summary; `None` for what has no samples.
    pub(crate) fn values(&self, summary: &Value) -> Vec<Option<f64>> {
        let list = match self.of {
            Of::Run => return vec![summary.get(&self.field).and_then(Value::as_f64)],
            Of::Flows => "flows",
            Of::Links => "links",
        };
        let items = summary.get(list).and_then(Value::as_array).map_or(&[][..], Vec::as_slice);
        let selected = items.iter().filter(|item| item["id"].as_str().is_some_and(|id| glob(&self.selector, id)));
        selected.map(|item| self.value(item)).collect()
    }

    fn value(&self, item: &Value) -> Option<f64> {
        match self.field.strip_prefix("dropped.") {
            // A reason that did not occur is left out of the summary.
            Some(reason) => Some(item["dropped"].get(reason).and_then(Value::as_f64).unwrap_or(0.0)),
            None => self.field.split('.').try_fold(item, |value, key| value.get(key))?.as_f64(),
        }
    }
}

/// The numbers of a flow or a link direction, as dotted paths.
fn fields(part: Part, of: Of) -> Vec<String> {
    let template = match (of, part) {
        (Of::Run, _) => return Vec::new(),
        (Of::Flows, Part::Run) => serde_json::to_value(FlowSummary::default()),
        (Of::Flows, Part::Window) => serde_json::to_value(FlowWindow::default()),
        (Of::Links, Part::Run) => serde_json::to_value(LinkSummary::default()),
        (Of::Links, Part::Window) => serde_json::to_value(LinkWindow::default()),
    };
    let mut fields = Vec::new();
    numbers(&template.unwrap_or_default(), "", &mut fields);
    if of == Of::Links {
        fields.extend(DropReason::ALL.map(|reason| format!("dropped.{}", reason.name())));
        fields.push(format!("dropped.{LOST_ON_LINK}"));
    }
    fields
}

fn numbers(value: &Value, path: &str, fields: &mut Vec<String>) {
    match value {
        // What has no samples yet is null.
        Value::Number(_) | Value::Null => fields.push(path.to_owned()),
        Value::Object(object) => {
            for (key, value) in object {
                let path = if path.is_empty() { key.clone() } else { format!("{path}.{key}") };
                numbers(value, &path, fields);
            }
        }
        _ => {}
    }
}

/// Says which part of the path is wrong, and what it may have been.
fn unknown(text: &str, part: Part, shape: &Shape) -> Unknown {
    let top = || part.top().iter().copied();
    let (prefix, of) = match text.split('.').next() {
        Some("flows") => ("flows", Of::Flows),
        Some("links") => ("links", Of::Links),
        first => {
            let suggestion = nearest(first.unwrap_or(""), top().chain(["flows", "links"]));
            let expected = format!("{}, `flows.ID.NAME` or `links.ID.NAME`", listed(top()));
            let suggestion = suggestion.map(|name| text.replacen(first.unwrap_or(""), name, 1));
            return Unknown { expected, suggestion };
        }
    };
    let ids: Vec<String> = shape.ids(of).take(1000).collect();
    let fields = fields(part, of);
    // Whatever can be told apart as an id is kept; the rest is compared with every name.
    let rest = &text[prefix.len()..].strip_prefix('.').unwrap_or("");
    let cuts = rest.match_indices('.').map(|(at, _)| at);
    let selected = cuts.filter(|&at| ids.iter().any(|id| glob(&rest[..at], id))).max();
    match selected {
        Some(at) => {
            let (selector, field) = (&rest[..at], &rest[at + 1..]);
            let near = nearest(field, fields.iter().map(String::as_str))
                .or_else(|| fields.iter().map(String::as_str).find(|known| known.starts_with(&format!("{field}."))));
            let suggestion = near.map(|near| format!("{prefix}.{selector}.{near}"));
            Unknown { expected: format!("one of {}", listed(fields.iter().map(String::as_str))), suggestion }
        }
        None => {
            let known = fields.iter().filter(|field| rest.ends_with(field.as_str())).max_by_key(|field| field.len());
            let selector = known.map_or(*rest, |field| rest[..rest.len() - field.len()].trim_end_matches('.'));
            let near = nearest(selector, ids.iter().map(String::as_str))
                .or_else(|| ids.iter().map(String::as_str).find(|id| id.starts_with(&format!("{selector}."))));
            let suggestion = near.zip(known).map(|(id, field)| format!("{prefix}.{id}.{field}"));
            let some = listed(ids.iter().take(10).map(String::as_str));
            Unknown { expected: format!("`{prefix}.ID.NAME` with an id of {some}, or `*` in it"), suggestion }
        }
    }
}

/// Whether a text matches a pattern in which `*` stands for any text.
fn glob(pattern: &str, text: &str) -> bool {
    let mut parts = pattern.split('*');
    let Some(mut rest) = parts.next().and_then(|first| text.strip_prefix(first)) else { return false };
    let mut parts: Vec<&str> = parts.collect();
    let Some(last) = parts.pop() else { return rest.is_empty() };
    for part in parts {
        match rest.find(part) {
            Some(at) => rest = &rest[at + part.len()..],
            None => return false,
        }
    }
    rest.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn shape() -> Shape {
        Shape { flows: vec![("reno".to_owned(), 2), ("cubic".to_owned(), 1)], links: vec!["bottleneck".to_owned()] }
    }

    #[test]
    fn a_star_stands_for_any_text() {
        assert!(glob("reno.*", "reno.12"));
        assert!(glob("*", ""));
        assert!(glob("r*o.*0", "reno.10"));
        assert!(!glob("reno.*", "cubic.0"));
        assert!(!glob("reno", "reno.0"));
    }

    #[test]
    fn flows_and_links_are_found_by_id() {
        let summary = json!({
            "fairness_jain": 0.5,
            "flows": [{ "id": "reno.0", "rtt_ms": { "p50": 1.5 } }, { "id": "reno.1", "rtt_ms": { "p50": null } }],
            "links": [{ "id": "bottleneck.forward", "dropped": { "limit": 3 } }],
        });
        for (text, values) in [
            ("fairness_jain", vec![Some(0.5)]),
            ("flows.reno.0.rtt_ms.p50", vec![Some(1.5)]),
            ("flows.*.rtt_ms.p50", vec![Some(1.5), None]),
            ("links.bottleneck.forward.dropped.limit", vec![Some(3.0)]),
            ("links.bottleneck.forward.dropped.early", vec![Some(0.0)]),
        ] {
            assert_eq!(Metric::parse(text, Part::Run, &shape()).unwrap().values(&summary), values, "{text}");
        }
    }

    #[test]
    fn an_unknown_metric_suggests_a_known_one() {
        for (text, suggestion) in [
            ("flows.reno.0.rtt_ms.p51", "flows.reno.0.rtt_ms.p5"),
            ("flows.reno.0.goodput_bsp", "flows.reno.0.goodput_bps"),
            ("flows.reno.0.rtt_ms", "flows.reno.0.rtt_ms.min"),
            ("fairnes_jain", "fairness_jain"),
            ("links.bottleneck.forward.sojourn.p50", "links.bottleneck.forward.sojourn_ms.p50"),
        ] {
            assert_eq!(
                Metric::parse(text, Part::Run, &shape()).unwrap_err().suggestion.as_deref(),
                Some(suggestion),
                "{text}"
            );
        }
        for (text, suggestion) in [
            ("flows.reon.0.goodput_bps", "flows.reno.0.goodput_bps"),
            ("flows.reno.goodput_bps", "flows.reno.0.goodput_bps"),
        ] {
            let metric = Metric::parse(text, Part::Run, &shape()).unwrap();
            assert_eq!(metric.matches(text, &shape()).unwrap_err().suggestion.as_deref(), Some(suggestion), "{text}");
        }
    }
}
