//! The measurements of a run: a metric, reduced to one number, relative to another one, in a
//! window.

use std::collections::BTreeSet;

use ackclock_units::Span;
use serde_json::Value;

use crate::document::Node;
use crate::fields::Fields;
use crate::keys::Domain;
use crate::metric::{Metric, Part, Shape, UnknownMetric};
use crate::quantity::{Kind, OneOf, Problem, Text, Time};
use crate::report::{Diagnostic, Report, listed};

/// The most flows times windows of a run: what is measured at the start of a window is kept until
/// its end.
const MAX_MARKS: u64 = 4096;

/// The reduction of the values of several flows or links to one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Reduce {
    Min,
    Max,
    Sum,
    Mean,
    /// Largest less smallest.
    Range,
}

impl Reduce {
    fn of(self, values: &[f64]) -> f64 {
        match self {
            Reduce::Min => values.iter().copied().fold(f64::INFINITY, f64::min),
            Reduce::Max => values.iter().copied().fold(f64::NEG_INFINITY, f64::max),
            Reduce::Sum => values.iter().sum(),
            Reduce::Mean => values.iter().sum::<f64>() / values.len() as f64,
            Reduce::Range => Reduce::Max.of(values) - Reduce::Min.of(values),
        }
    }
}

/// A metric with the reduction to one number, where it selects several.
#[derive(Clone, Debug)]
struct Quantity {
    text: String,
    metric: Metric,
    reduce: Option<(Reduce, &'static str)>,
}

impl Quantity {
    /// Its value in a summary, or in the part of one that is of a window; `None` without samples.
    fn of(&self, summary: &Value) -> Option<f64> {
        self.reduced(self.metric.values(summary))
    }

    /// The one value that these come to.
    fn reduced(&self, values: Vec<Option<f64>>) -> Option<f64> {
        let values: Vec<f64> = values.into_iter().collect::<Option<_>>()?;
        match (self.reduce, values.as_slice()) {
            (_, []) => None,
            (Some((reduce, _)), values) => Some(reduce.of(values)),
            (None, values) => Some(values[0]),
        }
    }

    fn name(&self) -> String {
        match self.reduce {
            Some((_, reduce)) => format!("{reduce} of {}", self.text),
            None => self.text.clone(),
        }
    }
}

/// A part of the run: from a time on until another one, or to the end.
pub(crate) type Window = (Span, Option<Span>);

/// A measurement of every run.
#[derive(Clone, Debug)]
pub(crate) struct Measurement {
    quantity: Quantity,
    /// The quantity of the same run that it is divided by.
    ratio_to: Option<Quantity>,
    /// The number of the window in which both are measured; `None` for the whole run.
    window: Option<(usize, Window)>,
    /// Points at which it cannot be measured by their clock.
    absent: BTreeSet<usize>,
}

/// The flows' values of a quantity and of its divisor, one value each; `None` for a quantity that
/// is not about the flows of a whole run.
pub(crate) type Gathered = [Option<Vec<Option<f64>>>; 2];

impl Measurement {
    /// The value in one run.
    pub(crate) fn measure(&self, summary: &Value) -> Option<f64> {
        self.measure_with(summary, [None, None])
    }

    /// The value with quantities gathered from flows one by one, where they were.
    pub(crate) fn measure_with(&self, summary: &Value, gathered: Gathered) -> Option<f64> {
        let part = match self.window {
            None => summary,
            Some((number, _)) => summary.get("windows")?.get(number)?,
        };
        let [own, other] = gathered;
        let of = |quantity: &Quantity, gathered: Option<Vec<Option<f64>>>| match gathered {
            Some(values) => quantity.reduced(values),
            None => quantity.of(part),
        };
        let value = of(&self.quantity, own)?;
        match &self.ratio_to {
            None => Some(value),
            Some(quantity) => Some(value / of(quantity, other)?),
        }
    }

    /// The initial state of gathering from the flows of a run one by one: empty, for the metrics
    /// that are about them.
    pub(crate) fn nothing_gathered(&self) -> Gathered {
        self.quantities().map(|quantity| quantity.filter(|quantity| quantity.metric.is_of_flows()).map(|_| Vec::new()))
    }

    /// Gathers what there is to gather from one flow, of which `json` gives the summary.
    pub(crate) fn gather<'j>(&self, gathered: &mut Gathered, id: &str, mut json: impl FnMut() -> &'j Value) {
        for (quantity, values) in self.quantities().into_iter().zip(gathered) {
            if let (Some(quantity), Some(values)) = (quantity, values)
                && quantity.metric.selects(id)
            {
                values.push(quantity.metric.value(json()));
            }
        }
    }

    fn quantities(&self) -> [Option<&Quantity>; 2] {
        [Some(&self.quantity), self.ratio_to.as_ref()]
    }

    /// The points at which it cannot be measured by their clock.
    pub(crate) fn absent(&self) -> &BTreeSet<usize> {
        &self.absent
    }

    pub(crate) fn name(&self) -> String {
        let mut name = self.quantity.name();
        if let Some(other) = &self.ratio_to {
            name = format!("{name} relative to {}", other.name());
        }
        match self.window {
            Some((_, (from, Some(to)))) => format!("{name} from {from} to {to}"),
            Some((_, (from, None))) => format!("{name} from {from} on"),
            None => name,
        }
    }

    /// Returns `true` if the measurement is possible at every point that it is about; errors are
    /// reported.
    pub(crate) fn suits(
        &self,
        fields: &mut Fields<'_>,
        subjects: &[(usize, Subject)],
        nodes: &Nodes<'_>,
        applies: impl Fn(usize) -> bool,
    ) -> bool {
        let mut checked: BTreeSet<&Subject> = BTreeSet::new();
        for &(point, ref subject) in subjects {
            if !applies(point) || !checked.insert(subject) {
                continue;
            }
            for (key, quantity, node) in [
                ("metric", Some(&self.quantity), Some(nodes.metric)),
                ("ratio_to", self.ratio_to.as_ref(), nodes.ratio_to),
            ] {
                let Some((quantity, node)) = quantity.zip(node) else { continue };
                match quantity.metric.matches(&quantity.text, &subject.shape) {
                    Err(error) => {
                        unknown(fields, key, node, error);
                        return false;
                    }
                    Ok(matches) if matches > 1 && quantity.reduce.is_none() => {
                        let at = if key == "metric" { "" } else { ".ratio_to" };
                        let title = format!("{}{at}: the key `reduce` is missing", fields.shown());
                        let error = Diagnostic::new(title, &node.place, format!("matches {matches} values"));
                        let names = listed(REDUCE.names.iter().copied());
                        let example = if at.is_empty() {
                            String::new()
                        } else {
                            format!(", such as ratio_to = {{ metric = \"{}\", reduce = \"sum\" }}", quantity.text)
                        };
                        fields.push(error.note(format!("expected `reduce` as one of {names}{example}")));
                        return false;
                    }
                    Ok(_) => {}
                }
            }
            let Some((_, (from, to))) = self.window else { continue };
            for (key, time) in [("from", Some(from)), ("to", to)] {
                let Some((time, entry)) = time.zip(fields.get(key)) else { continue };
                if time > subject.duration || (key == "from" && time == subject.duration) {
                    let expected = format!("a time within `run.duration`, which is {}", subject.duration);
                    fields.reject(key, &entry.node, Problem::new("after the end of the run", expected));
                    return false;
                }
            }
        }
        true
    }
}

const REDUCE: OneOf = OneOf { what: "reduction", names: &["min", "max", "sum", "mean", "range"] };

/// The measurable parts of a point, and its duration.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) shape: Shape,
    pub(crate) duration: Span,
    /// The summary has a section `live` that expectations may be about.
    pub(crate) live: bool,
}

/// Where the metrics of a measurement stand in the file.
pub(crate) struct Nodes<'a> {
    metric: &'a Node,
    ratio_to: Option<&'a Node>,
}

/// Reads the keys of a measurement, which adds the window that it needs.
pub(crate) fn read<'a>(
    fields: &mut Fields<'a>,
    subjects: &[(usize, Subject)],
    windows: &mut Vec<Window>,
) -> Option<(Measurement, Nodes<'a>)> {
    let window = window(fields);
    let of = if window.is_some() { Part::Window } else { Part::Run };
    let first = &subjects.first()?.1.shape;
    let quantity = quantity(fields, of, first);
    fields.declare(("ratio_to", "metric in the denominator"), || Domain::Either(vec![Text.domain(), Domain::Table]));
    let ratio_to = match fields.get("ratio_to").map(|entry| &entry.node) {
        None => None,
        Some(node) if node.table().is_none() => {
            let text = fields.maybe("ratio_to", Text)?;
            let metric = Metric::parse(&text, of, first);
            let metric = metric.map_err(|error| unknown(fields, "ratio_to", node, error)).ok()?;
            Some((Quantity { text, metric, reduce: None }, node))
        }
        Some(_) => {
            let mut other = fields.table("ratio_to", "")?;
            let other_quantity = self::quantity(&mut other, of, first);
            other.finish();
            Some(other_quantity?)
        }
    };
    let (quantity, metric) = quantity?;
    let window = window.map(|window| {
        let number = windows.iter().position(|known| *known == window).unwrap_or_else(|| {
            windows.push(window);
            windows.len() - 1
        });
        (number, window)
    });
    let (ratio_to, ratio_node) = ratio_to.unzip();
    let live = [Some(&quantity), ratio_to.as_ref()].into_iter().flatten().any(|quantity| quantity.metric.is_live());
    let absent = subjects.iter().filter(|(_, subject)| live && !subject.live).map(|&(point, _)| point);
    let measurement = Measurement { quantity, ratio_to, window, absent: absent.collect() };
    Some((measurement, Nodes { metric, ratio_to: ratio_node }))
}

/// Reads `from` and `to`.
fn window(fields: &mut Fields<'_>) -> Option<Window> {
    let (from, to) = (
        fields.maybe(("from", "start of the measured interval"), Time::Any),
        fields.maybe(("to", "end of the measured interval"), Time::Positive),
    );
    if from.is_none() && to.is_none() {
        return None;
    }
    let from = from.unwrap_or(Span::ZERO);
    if let (Some(to), Some(entry)) = (to, fields.get("to"))
        && to <= from
    {
        fields.reject("to", &entry.node, Problem::new(format!("not after `from`, which is {from}"), "a later time"));
    }
    Some((from, to))
}

/// Reads `metric` and `reduce`, and gives them with the place of the metric.
fn quantity<'a>(fields: &mut Fields<'a>, of: Part, shape: &Shape) -> Option<(Quantity, &'a Node)> {
    let text = fields.required(
        ("metric", "path of a number in the results"),
        Text,
        "the path of a number in the summary, such as \"flows.reno.0.rtt_ms.p50\"",
    );
    let reduce = fields.maybe(("reduce", "reduction of several numbers to one"), REDUCE).map(|name| match name {
        "min" => (Reduce::Min, name),
        "max" => (Reduce::Max, name),
        "sum" => (Reduce::Sum, name),
        "range" => (Reduce::Range, name),
        _ => (Reduce::Mean, name),
    });
    let (text, node) = (text?, &fields.get("metric")?.node);
    let metric = Metric::parse(&text, of, shape).map_err(|error| unknown(fields, "metric", node, error)).ok()?;
    Some((Quantity { text, metric, reduce }, node))
}

fn unknown(fields: &Fields<'_>, key: &str, node: &Node, unknown: UnknownMetric) {
    let help = unknown.suggestion.map(|name| format!("did you mean `{name}`?"));
    let title = format!("{}.{key}: unknown metric", fields.shown());
    let error = Diagnostic::new(title, &node.place, format!("found {}", node.found()));
    fields.push(error.note(format!("expected {}", unknown.expected)).help(help));
}

/// Checks the memory that the windows of all measurements take.
pub(crate) fn check_windows(root: &Node, subjects: &[(usize, Subject)], windows: &[Window], report: &Report) {
    let flows = |subject: &Subject| subject.shape.flows.iter().map(|(_, count)| count).sum::<u64>();
    let flows = subjects.iter().map(|(_, subject)| flows(subject)).max().unwrap_or(0);
    let marks = flows.saturating_mul(windows.len() as u64);
    if marks > MAX_MARKS {
        let entry = |key: &str| root.table().and_then(|table| table.get(key));
        let place = entry("expect").or_else(|| entry("sweep")).map_or(&root.place, |entry| &entry.node.place);
        let title = format!("{marks} flows in windows are too many");
        let error = Diagnostic::new(title, place, "`from` and `to` found here and in what follows");
        report.push(error.note(format!("at most {MAX_MARKS} flows times windows: each takes memory")));
    }
}
