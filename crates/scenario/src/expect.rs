//! `[[expect]]`: bounds on metrics, which make a scenario a check.

use std::collections::BTreeMap;

use serde_json::Value;

use crate::document::{Node, Table};
use crate::fields::{Context, Fields};
use crate::metric::{Metric, Shape, Unknown};
use crate::quantity::{Number, OneOf, Problem, Text};
use crate::report::{Diagnostic, did_you_mean, listed};
use crate::sweep::{self, Sweep};

/// How the values of several flows or links become one.
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

/// One expectation.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    text: String,
    metric: Metric,
    reduce: Option<(Reduce, &'static str)>,
    at_most: Option<f64>,
    at_least: Option<f64>,
    /// Axes with the values for which this is expected.
    when: Vec<(usize, Vec<Node>)>,
    /// Axes with the value to compare with; empty for none.
    baseline: Vec<(usize, Node)>,
}

/// An expectation that a run did not meet.
#[derive(Clone, Debug, PartialEq)]
pub struct Miss {
    /// The number of the run, from 0, in the order of the sweep.
    pub run: usize,
    /// The metric, with its reduction and baseline.
    pub metric: String,
    /// What was measured; `None` without samples.
    pub found: Option<f64>,
    /// The bounds.
    pub expected: String,
}

/// The values of every expectation in one run.
pub type Measures = Vec<Option<f64>>;

impl Expect {
    /// What this comes to in one run.
    pub(crate) fn measure(&self, summary: &Value) -> Option<f64> {
        let values: Vec<f64> = self.metric.values(summary).into_iter().collect::<Option<_>>()?;
        match (self.reduce, values.as_slice()) {
            (_, []) => None,
            (Some((reduce, _)), values) => Some(reduce.of(values)),
            (None, values) => Some(values[0]),
        }
    }

    /// Whether this says anything about a point.
    pub(crate) fn applies(&self, sweep: &Sweep, point: usize) -> bool {
        let indices = sweep.indices(point);
        let meets = |(axis, values): &(usize, Vec<Node>)| {
            values.iter().any(|value| value.same(&sweep.axes[*axis].values[indices[*axis]]))
        };
        self.when.iter().all(meets) && (self.baseline.is_empty() || self.baseline(sweep, point).is_some())
    }

    /// The point to compare with; `None` if this point is it, or a `--set` took it out of the sweep.
    fn baseline(&self, sweep: &Sweep, point: usize) -> Option<usize> {
        let mut indices = sweep.indices(point);
        for (axis, value) in &self.baseline {
            indices[*axis] = sweep.axes[*axis].values.iter().position(|other| other.same(value))?;
        }
        Some(sweep.point(&indices)).filter(|&baseline| baseline != point)
    }

    /// Compares the measures of every run (of expectation `number`) with the bounds.
    pub(crate) fn judge(&self, number: usize, sweep: &Sweep, measures: &[Measures], misses: &mut Vec<Miss>) {
        let repeat = sweep.repeat as usize;
        let value = |run: usize| measures.get(run).and_then(|measures| *measures.get(number)?);
        for run in 0..measures.len() {
            let point = run / repeat;
            if !self.applies(sweep, point) {
                continue;
            }
            let found = match self.baseline(sweep, point) {
                None => value(run),
                Some(baseline) => {
                    value(run).zip(value(baseline * repeat + run % repeat)).map(|(value, base)| value / base)
                }
            };
            // A ratio of two zeros is not a number, and meets no bound.
            let met = found.is_some_and(|found| {
                self.at_most.is_none_or(|bound| found <= bound) && self.at_least.is_none_or(|bound| found >= bound)
            });
            if !met {
                misses.push(Miss { run, metric: self.name(sweep), found, expected: self.bounds() });
            }
        }
    }

    fn name(&self, sweep: &Sweep) -> String {
        let mut name = match self.reduce {
            Some((_, reduce)) => format!("{reduce} of {}", self.text),
            None => self.text.clone(),
        };
        if !self.baseline.is_empty() {
            let axes: Vec<String> = self
                .baseline
                .iter()
                .map(|(axis, value)| format!("{} = {}", sweep.axes[*axis].name, crate::write::inline(value)))
                .collect();
            name = format!("{name} relative to {}", axes.join(", "));
        }
        name
    }

    fn bounds(&self) -> String {
        match (self.at_least, self.at_most) {
            (Some(least), Some(most)) if least == most => format!("exactly {most}"),
            (Some(least), Some(most)) => format!("from {least} to {most}"),
            (Some(least), None) => format!("at least {least}"),
            (None, most) => format!("at most {}", most.unwrap_or(f64::INFINITY)),
        }
    }
}

const REDUCE: OneOf = OneOf { what: "reduction", names: &["min", "max", "sum", "mean", "range"] };

/// Reads `[[expect]]`. `shapes` are those of the points.
pub(crate) fn read_all<'a>(root: &mut Fields<'a>, cx: &'a Context<'a>, sweep: &Sweep, shapes: &[Shape]) -> Vec<Expect> {
    let Some(entry) = root.get("expect") else { return Vec::new() };
    let expected = "sections `[[expect]]` with a `metric` and a bound";
    let Some(items) = entry.node.array() else {
        root.reject("expect", &entry.node, Problem::new("not a list of expectations", expected));
        return Vec::new();
    };
    let mut expects = Vec::new();
    for (index, item) in items.iter().enumerate() {
        match item.table() {
            Some(table) => expects.extend(read(cx, index, item, table, sweep, shapes)),
            None => root.reject("expect", item, Problem::new("not an expectation", expected)),
        }
    }
    expects
}

fn read<'a>(
    cx: &'a Context<'a>,
    index: usize,
    item: &'a Node,
    table: &'a Table,
    sweep: &Sweep,
    shapes: &[Shape],
) -> Option<Expect> {
    let mut fields = Fields::new(cx, table, format!("expect.{index}"), &item.place);
    let text =
        fields.required("metric", Text, "the path of a number in the summary, such as \"flows.reno.0.rtt_ms.p50\"");
    let reduce = fields.maybe("reduce", REDUCE).map(|name| match name {
        "min" => (Reduce::Min, name),
        "max" => (Reduce::Max, name),
        "sum" => (Reduce::Sum, name),
        "range" => (Reduce::Range, name),
        _ => (Reduce::Mean, name),
    });
    let at_most = fields.maybe("at_most", Number(f64::MIN, f64::MAX));
    let at_least = fields.maybe("at_least", Number(f64::MIN, f64::MAX));
    if fields.get("at_most").is_none() && fields.get("at_least").is_none() {
        fields.missing("at_most", "`at_most`, `at_least` or both");
    }
    if let (Some(most), Some(least), Some(entry)) = (at_most, at_least, table.get("at_least"))
        && least > most
    {
        fields.reject("at_least", &entry.node, Problem::new(format!("more than `at_most`, which is {most}"), ""));
    }
    let when = axes(&mut fields, "when", sweep, true);
    let baseline = axes(&mut fields, "baseline", sweep, false);
    let baseline = baseline.into_iter().filter_map(|(axis, mut values)| Some((axis, values.pop()?))).collect();
    fields.finish();
    let (text, node) = (text?, &table.get("metric")?.node);
    let unknown = |unknown: Unknown| {
        let help = unknown.suggestion.map(|name| format!("did you mean `{name}`?"));
        let title = format!("expect.{index}.metric: unknown metric");
        let error = Diagnostic::new(title, &node.place, format!("found {}", node.found()));
        cx.report.push(error.note(format!("expected {}", unknown.expected)).help(help));
    };
    let first = shapes.first()?;
    let metric = Metric::parse(&text, first).map_err(unknown).ok()?;
    let expect = Expect { text, metric, reduce, at_most, at_least, when, baseline };
    let mut checked: BTreeMap<&Shape, ()> = BTreeMap::new();
    for (point, shape) in shapes.iter().enumerate() {
        if !expect.applies(sweep, point) || checked.insert(shape, ()).is_some() {
            continue;
        }
        match expect.metric.matches(&expect.text, shape) {
            Err(error) => {
                unknown(error);
                return None;
            }
            Ok(matches) if matches > 1 && reduce.is_none() => {
                let title = format!("expect.{index}: the key `reduce` is missing");
                let error = Diagnostic::new(title, &node.place, format!("matches {matches} values"));
                cx.report
                    .push(error.note(format!("expected `reduce` as one of {}", listed(REDUCE.names.iter().copied()))));
                return None;
            }
            Ok(_) => {}
        }
    }
    Some(expect)
}

/// Reads a table of axes with a value each, or several if `several`.
fn axes(fields: &mut Fields<'_>, key: &'static str, sweep: &Sweep, several: bool) -> Vec<(usize, Vec<Node>)> {
    let names = || sweep.axes.iter().map(|axis| axis.name.as_str());
    let Some(entry) = fields.get(key) else { return Vec::new() };
    let Some(table) = entry.node.table() else {
        fields.reject(key, &entry.node, Problem::new("not a table", "axes of the sweep with a value each"));
        return Vec::new();
    };
    let mut read = Vec::new();
    for entry in &table.0 {
        let Some(number) = sweep.axes.iter().position(|axis| axis.name == entry.key) else {
            let title = format!("{}.{key}: `{}` is not an axis of the sweep", fields.shown(), entry.key);
            let error = Diagnostic::new(title, &entry.key_place, "no axis");
            let help = did_you_mean(&entry.key, names());
            fields.push(error.note(format!("expected one of {}", listed(names()))).help(help));
            continue;
        };
        let axis = &sweep.axes[number];
        let known = |node: &Node| axis.values.iter().chain(&axis.before).any(|value| value.same(node));
        let values = match entry.node.array() {
            // The values of the axis may be arrays themselves.
            Some(items) if several && !known(&entry.node) => items.to_vec(),
            _ => vec![entry.node.clone()],
        };
        for value in values.iter().filter(|value| !known(value)) {
            let problem = Problem::new("not a value of the axis", format!("one of {}", sweep::listed(&axis.before)));
            fields.reject(&format!("{key}.\"{}\"", entry.key), value, problem);
        }
        read.push((number, values));
    }
    read
}
