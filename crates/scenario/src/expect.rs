//! `[[expect]]`: bounds on metrics, which make a scenario a check.

use std::collections::BTreeSet;

use ackclock_units::Span;
use serde_json::Value;

use crate::document::Node;
use crate::evaluation::{Bounds, Evaluation, OfRuns};
use crate::fields::{Context, Fields};
use crate::metric::{Metric, Part, Shape, Unknown};
use crate::quantity::{Number, OneOf, Problem, Text, Time};
use crate::report::{Diagnostic, did_you_mean, listed};
use crate::sweep::{self, Sweep};

/// The most flows times windows of a run: what is measured at the start of a window is kept until
/// its end.
const MAX_MARKS: u64 = 4096;

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

/// One expectation.
#[derive(Clone, Debug)]
pub(crate) struct Expect {
    quantity: Quantity,
    /// What of the same run it is divided by.
    ratio_to: Option<Quantity>,
    /// The number of the window in which both are measured; `None` for the whole run.
    window: Option<(usize, Window)>,
    runs: OfRuns,
    at_most: Option<f64>,
    at_least: Option<f64>,
    /// Axes with the values for which this is expected.
    when: Vec<(usize, Vec<Node>)>,
    /// Axes with the value to compare with; empty for none.
    baseline: Vec<(usize, Node)>,
    /// Points at which it cannot be measured by their clock.
    absent: BTreeSet<usize>,
}

/// What flows have of a quantity and of what it is divided by, one value each; `None` for what is
/// not about the flows of a whole run.
pub(crate) type Gathered = [Option<Vec<Option<f64>>>; 2];

/// The values of every expectation in one run; none at all for a run that failed.
pub type Measures = Vec<Option<f64>>;

impl Expect {
    /// What this comes to in one run.
    pub(crate) fn measure(&self, summary: &Value) -> Option<f64> {
        self.measure_with(summary, [None, None])
    }

    /// The same with what was gathered from flows one by one, where that was.
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

    /// What is gathered from the flows of a run one by one: nothing yet, for the metrics that are
    /// about them.
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

    /// Whether this says anything about a point.
    pub(crate) fn applies(&self, sweep: &Sweep, point: usize) -> bool {
        let indices = sweep.indices(point);
        let meets = |(axis, values): &(usize, Vec<Node>)| {
            values.iter().any(|value| value.same(&sweep.axes[*axis].values.at(indices[*axis])))
        };
        let measured = |point: &usize| !self.absent.contains(point);
        self.when.iter().all(meets)
            && measured(&point)
            && (self.baseline.is_empty() || self.baseline(sweep, point).filter(measured).is_some())
    }

    /// Whether there are points at which it cannot be measured by their clock.
    pub(crate) fn is_left_out(&self) -> bool {
        !self.absent.is_empty()
    }

    /// Whether it says anything about any point of the sweep as it stands in the file; what is
    /// wrong is reported.
    fn checks_something(&self, fields: &mut Fields<'_>, sweep: &Sweep) -> bool {
        let reject = |fields: &mut Fields<'_>, key: &str, title: &str, expected: &str| {
            if let Some(entry) = fields.get(if key == "when" { "when" } else { "baseline" }) {
                fields.reject(key, &entry.node, Problem::new(title, expected));
            }
            false
        };
        let chosen = |axis: usize| self.when.iter().find(|(number, _)| *number == axis).map(|(_, values)| &values[..]);
        if self.when.iter().any(|(_, values)| values.is_empty()) {
            return reject(
                fields,
                "when",
                "no value, so that this would check nothing",
                "at least one value of the axis",
            );
        }
        // A point that is not the baseline itself has another value on one of its axes.
        let other = |(axis, base): &(usize, Node)| {
            chosen(*axis).unwrap_or(&sweep.axes[*axis].before).iter().any(|value| !value.same(base))
        };
        if !self.baseline.is_empty() && !self.baseline.iter().any(other) {
            let title = "compared with itself alone, so that this would check nothing";
            return reject(fields, "baseline", title, "an axis with another value, which `when` does not leave out");
        }
        true
    }

    /// How many comparisons it makes.
    pub(crate) fn checks(&self, sweep: &Sweep) -> usize {
        let points = (0..sweep.points()).filter(|&point| self.applies(sweep, point)).count();
        if self.runs == OfRuns::Each { points * sweep.repeat as usize } else { points }
    }

    /// The point to compare with; `None` if this point is it, or a `--set` took it out of the
    /// sweep.
    fn baseline(&self, sweep: &Sweep, point: usize) -> Option<usize> {
        if self.baseline.is_empty() {
            return None;
        }
        sweep.moved(point, &self.baseline).filter(|&baseline| baseline != point)
    }

    /// Compares the measures (of expectation `number`) at every point with the bounds.
    pub(crate) fn judge(&self, number: usize, sweep: &Sweep, measures: &[Measures]) -> Vec<Evaluation> {
        let repeat = sweep.repeat as usize;
        let value = |run: usize| measures.get(run).and_then(|measures| *measures.get(number)?);
        let points = (0..sweep.points()).filter(|&point| self.applies(sweep, point));
        let judged = points.map(|point| {
            let values = (point * repeat..(point + 1) * repeat).map(|run| match self.baseline(sweep, point) {
                None => value(run),
                Some(baseline) => {
                    value(run).zip(value(baseline * repeat + run % repeat)).map(|(value, base)| value / base)
                }
            });
            // Only a run that failed has fewer measures than there are expectations.
            let has_failed = |run: usize| measures.get(run).is_some_and(|measures| measures.len() <= number);
            let base = self.baseline(sweep, point).unwrap_or(point);
            let failed = (0..repeat).filter(|run| [point, base].iter().any(|of| has_failed(of * repeat + run)));
            let (metric, bounds) = (self.name(sweep), Bounds { at_least: self.at_least, at_most: self.at_most });
            Evaluation::new(point, metric, bounds, self.runs, values.collect(), failed.collect())
        });
        judged.collect()
    }

    fn name(&self, sweep: &Sweep) -> String {
        let mut name = self.quantity.name();
        if let Some(other) = &self.ratio_to {
            name = format!("{name} relative to {}", other.name());
        }
        match self.window {
            Some((_, (from, Some(to)))) => name = format!("{name} from {from} to {to}"),
            Some((_, (from, None))) => name = format!("{name} from {from} on"),
            None => {}
        }
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
}

const REDUCE: OneOf = OneOf { what: "reduction", names: &["min", "max", "sum", "mean", "range"] };
const RUNS: OneOf = OneOf { what: "way to judge the runs of a point", names: &OfRuns::NAMES };

/// What a point has to be measured, and how long it runs.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct Subject {
    pub(crate) shape: Shape,
    pub(crate) duration: Span,
    /// Whether time is the machine's.
    pub(crate) live: bool,
}

/// Reads `[[expect]]`. `subjects` are those of the points. Gives the windows that they need, too.
pub(crate) fn read_all<'a>(
    root: &mut Fields<'a>,
    cx: &'a Context<'a>,
    sweep: &Sweep,
    subjects: &[(usize, Subject)],
) -> (Vec<Expect>, Vec<Window>) {
    let (mut expects, mut windows) = (Vec::new(), Vec::new());
    let Some(entry) = root.get("expect") else { return (expects, windows) };
    let expected = "sections `[[expect]]` with a `metric` and a bound";
    let Some(items) = entry.node.array() else {
        root.reject("expect", &entry.node, Problem::new("not a list of expectations", expected));
        return (expects, windows);
    };
    for (index, item) in items.iter().enumerate() {
        match item.table() {
            Some(table) => {
                let fields = Fields::new(cx, table, format!("expect.{index}"), &item.place);
                expects.extend(read(fields, sweep, subjects, &mut windows));
            }
            None => root.reject("expect", item, Problem::new("not an expectation", expected)),
        }
    }
    let flows =
        subjects.iter().map(|(_, subject)| subject.shape.flows.iter().map(|(_, count)| count).sum::<u64>()).max();
    let marks = flows.unwrap_or(0).saturating_mul(windows.len() as u64);
    if marks > MAX_MARKS {
        let title = format!("{marks} flows in windows are too many");
        let error = Diagnostic::new(title, &entry.node.place, "`from` and `to` found here and in what follows");
        root.push(error.note(format!("at most {MAX_MARKS} flows times windows: each takes memory")));
    }
    (expects, windows)
}

fn read(
    mut fields: Fields<'_>,
    sweep: &Sweep,
    subjects: &[(usize, Subject)],
    windows: &mut Vec<Window>,
) -> Option<Expect> {
    let window = window(&mut fields);
    let of = if window.is_some() { Part::Window } else { Part::Run };
    let first = &subjects.first()?.1.shape;
    let quantity = quantity(&mut fields, of, first);
    let ratio_to = match fields.get("ratio_to").map(|entry| &entry.node) {
        None => None,
        Some(node) if node.table().is_none() => {
            let text = fields.maybe("ratio_to", Text)?;
            let metric = Metric::parse(&text, of, first);
            let metric = metric.map_err(|error| unknown(&fields, "ratio_to", node, error)).ok()?;
            Some((Quantity { text, metric, reduce: None }, node))
        }
        Some(_) => {
            let mut other = fields.table("ratio_to", "")?;
            let other_quantity = self::quantity(&mut other, of, first);
            other.finish();
            Some(other_quantity?)
        }
    };
    let runs = fields.maybe("runs", RUNS).map_or(OfRuns::Each, OfRuns::named);
    let at_most = fields.maybe("at_most", Number(f64::MIN, f64::MAX));
    let at_least = fields.maybe("at_least", Number(f64::MIN, f64::MAX));
    if fields.get("at_most").is_none() && fields.get("at_least").is_none() {
        fields.missing("at_most", "`at_most`, `at_least` or both");
    }
    if let (Some(most), Some(least), Some(entry)) = (at_most, at_least, fields.get("at_least"))
        && least > most
    {
        fields.reject("at_least", &entry.node, Problem::new(format!("more than `at_most`, which is {most}"), ""));
    }
    let when = axes(&mut fields, "when", sweep, true);
    let baseline = axes(&mut fields, "baseline", sweep, false);
    let baseline = baseline.into_iter().filter_map(|(axis, mut values)| Some((axis, values.pop()?))).collect();
    let (quantity, node) = quantity?;
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
    let absent = absent.collect();
    let expect = Expect { quantity, ratio_to, window, runs, at_most, at_least, when, baseline, absent };
    let result =
        expect.checks_something(&mut fields, sweep) && expect.suits(&mut fields, sweep, subjects, node, ratio_node);
    fields.finish();
    result.then_some(expect)
}

/// Reads `from` and `to`.
fn window(fields: &mut Fields<'_>) -> Option<Window> {
    let (from, to) = (fields.maybe("from", Time::Any), fields.maybe("to", Time::Positive));
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
    let text =
        fields.required("metric", Text, "the path of a number in the summary, such as \"flows.reno.0.rtt_ms.p50\"");
    let reduce = fields.maybe("reduce", REDUCE).map(|name| match name {
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

fn unknown(fields: &Fields<'_>, key: &str, node: &Node, unknown: Unknown) {
    let help = unknown.suggestion.map(|name| format!("did you mean `{name}`?"));
    let title = format!("{}.{key}: unknown metric", fields.shown());
    let error = Diagnostic::new(title, &node.place, format!("found {}", node.found()));
    fields.push(error.note(format!("expected {}", unknown.expected)).help(help));
}

impl Expect {
    /// Whether it can be measured at every point that it is about; what is wrong is reported.
    fn suits(
        &self,
        fields: &mut Fields<'_>,
        sweep: &Sweep,
        subjects: &[(usize, Subject)],
        node: &Node,
        ratio_node: Option<&Node>,
    ) -> bool {
        let mut checked: BTreeSet<&Subject> = BTreeSet::new();
        for &(point, ref subject) in subjects {
            if !self.applies(sweep, point) || !checked.insert(subject) {
                continue;
            }
            for (key, quantity, node) in
                [("metric", Some(&self.quantity), Some(node)), ("ratio_to", self.ratio_to.as_ref(), ratio_node)]
            {
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
        let known = |node: &Node| axis.before.iter().any(|value| value.same(node)) || axis.values.has(node);
        let values = match entry.node.array() {
            // The values of the axis may be arrays themselves.
            Some(items) if several && !known(&entry.node) => items.to_vec(),
            _ => vec![entry.node.clone()],
        };
        if axis.before.is_empty() {
            let expected = "an axis with listed values";
            fields.reject(
                &format!("{key}.\"{}\"", entry.key),
                &entry.node,
                Problem::new("drawn from a range", expected),
            );
            continue;
        }
        for value in values.iter().filter(|value| !known(value)) {
            let problem = Problem::new("not a value of the axis", format!("one of {}", sweep::listed(&axis.before)));
            fields.reject(&format!("{key}.\"{}\"", entry.key), value, problem);
        }
        read.push((number, values));
    }
    read
}
