//! `[[expect]]`: bounds on metrics, which make a scenario a check.

use std::sync::Arc;

use crate::claim::{self, Claim};
use crate::document::Node;
use crate::evaluation::{Bounds, Evaluation, OfRuns};
use crate::fields::{Context, Fields};
use crate::measurement::{self, Measurement, Subject, Window};
use crate::quantity::{Number, OneOf, Problem};
use crate::report::{Diagnostic, did_you_mean, listed};
use crate::sweep::{self, Choice, Sweep};

#[derive(Clone, Debug)]
pub(crate) struct Expect {
    pub(crate) measurement: Measurement,
    runs: OfRuns,
    at_most: Option<f64>,
    at_least: Option<f64>,
    /// Axes with the values for which this is expected.
    when: Vec<(usize, Vec<Node>)>,
    /// Axes with the value to compare with; empty for none.
    baseline: Vec<(usize, Node)>,
    /// The published result that it stands for.
    pub(crate) claim: Option<Arc<Claim>>,
}

/// The measurements of one run, for every expectation and for `sweep.repeat.until`; none at all for
/// a run that failed.
pub type Measures = Vec<Option<f64>>;

impl Expect {
    /// Returns `true` if the expectation applies to a point.
    pub(crate) fn applies(&self, sweep: &Sweep, point: usize) -> bool {
        let indices = sweep.indices(point);
        let meets = |(axis, values): &(usize, Vec<Node>)| {
            values.iter().any(|value| value.same(&sweep.axes[*axis].values.at(indices[*axis])))
        };
        let measured = |point: &usize| !self.measurement.absent().contains(point);
        self.when.iter().all(meets)
            && measured(&point)
            && (self.baseline.is_empty() || self.baseline(sweep, point).filter(measured).is_some())
    }

    /// Returns `true` if there are points whose clock cannot measure it.
    pub(crate) fn is_left_out(&self) -> bool {
        !self.measurement.absent().is_empty()
    }

    /// Returns `true` if the expectation applies to any point of the sweep as it stands in the
    /// file; errors are reported.
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
        let other = |(axis, base): &(usize, Node)| match chosen(*axis) {
            Some(chosen) => chosen.iter().any(|value| !value.same(base)),
            None => sweep.axes[*axis].before.iter().any(|choice| !choice.node.same(base)),
        };
        if !self.baseline.is_empty() && !self.baseline.iter().any(other) {
            let title = "compared with itself alone, so that this would check nothing";
            return reject(fields, "baseline", title, "an axis with another value, which `when` does not leave out");
        }
        true
    }

    /// Number of comparisons.
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
    pub(crate) fn judge(&self, number: usize, sweep: &Sweep, measures: &[Option<Measures>]) -> Vec<Evaluation> {
        let repeat = sweep.repeat as usize;
        let done = |run: usize| measures.get(run).and_then(Option::as_ref);
        let value = |run: usize| *done(run)?.get(number)?;
        let points = (0..sweep.points()).filter(|&point| self.applies(sweep, point));
        let judged = points.map(|point| {
            let base = self.baseline(sweep, point);
            let of = |point: usize, run: usize| point * repeat + run;
            // The runs that both points have, if points were settled after different numbers.
            let has =
                |run: &usize| done(of(point, *run)).is_some() && base.is_none_or(|base| done(of(base, *run)).is_some());
            let runs: Vec<usize> = (0..repeat).take_while(has).collect();
            let values = runs.iter().map(|&run| match base {
                None => value(of(point, run)),
                Some(base) => value(of(point, run)).zip(value(of(base, run))).map(|(value, base)| value / base),
            });
            // Only a run that failed has fewer measures than there are expectations.
            let has_failed = |run: usize| done(run).is_some_and(|measures| measures.len() <= number);
            let failed =
                runs.iter().filter(|run| [point, base.unwrap_or(point)].iter().any(|at| has_failed(of(*at, **run))));
            let (metric, bounds) = (self.name(sweep), Bounds { at_least: self.at_least, at_most: self.at_most });
            let first = of(point, 0);
            let failed = failed.copied().collect();
            let evaluation = Evaluation::new((point, first), metric, bounds, self.runs, values.collect(), failed);
            evaluation.of(number, self.claim.clone())
        });
        judged.collect()
    }

    fn name(&self, sweep: &Sweep) -> String {
        let mut name = self.measurement.name();
        if !self.baseline.is_empty() {
            let axes: Vec<String> = self
                .baseline
                .iter()
                .map(|(axis, value)| {
                    let choice = sweep.axes[*axis].before.iter().find(|choice| choice.node.same(value));
                    let label = choice.and_then(Choice::label).map(str::to_owned);
                    format!("{} = {}", sweep.axes[*axis].name, label.unwrap_or_else(|| crate::write::inline(value)))
                })
                .collect();
            name = format!("{name} relative to {}", axes.join(", "));
        }
        name
    }
}

const RUNS: OneOf = OneOf { what: "way to judge the runs of a point", names: &OfRuns::NAMES };

/// Reads `[[expect]]`. `subjects` are those of the points. Adds the windows that they need.
pub(crate) fn read_all<'a>(
    root: &mut Fields<'a>,
    cx: &'a Context<'a>,
    sweep: &Sweep,
    subjects: &[(usize, Subject)],
    windows: &mut Vec<Window>,
) -> Vec<Expect> {
    let mut expects = Vec::new();
    let Some(entry) = root.get(("expect", "bounds on results")) else { return expects };
    let expected = "sections `[[expect]]` with a `metric` and a bound";
    let Some(items) = entry.node.array() else {
        root.reject("expect", &entry.node, Problem::new("not a list of expectations", expected));
        return expects;
    };
    for (index, item) in items.iter().enumerate() {
        match item.table() {
            Some(table) => {
                let fields = Fields::new(cx, table, format!("expect.{index}"), &item.place);
                expects.extend(read(fields, sweep, subjects, windows));
            }
            None => root.reject("expect", item, Problem::new("not an expectation", expected)),
        }
    }
    expects
}

fn read(
    mut fields: Fields<'_>,
    sweep: &Sweep,
    subjects: &[(usize, Subject)],
    windows: &mut Vec<Window>,
) -> Option<Expect> {
    let measurement = measurement::read(&mut fields, subjects, windows);
    let runs =
        fields.maybe(("runs", "runs of a point that must meet the bounds"), RUNS).map_or(OfRuns::Each, OfRuns::named);
    let at_most = fields.maybe(("at_most", "upper bound, inclusive"), Number(f64::MIN, f64::MAX));
    let at_least = fields.maybe(("at_least", "lower bound, inclusive"), Number(f64::MIN, f64::MAX));
    if fields.get("at_most").is_none() && fields.get("at_least").is_none() {
        fields.missing("at_most", "`at_most`, `at_least` or both");
    }
    if let (Some(most), Some(least), Some(entry)) = (at_most, at_least, fields.get("at_least"))
        && least > most
    {
        fields.reject("at_least", &entry.node, Problem::new(format!("more than `at_most`, which is {most}"), ""));
    }
    let when = axes(&mut fields, ("when", "points that the bounds apply to, by axis values"), sweep, true);
    let baseline = axes(&mut fields, ("baseline", "point in the denominator"), sweep, false);
    let baseline = baseline.into_iter().filter_map(|(axis, mut values)| Some((axis, values.pop()?))).collect();
    let claim = claim::read(&mut fields).map(Arc::new);
    let (measurement, nodes) = measurement?;
    let expect = Expect { measurement, runs, at_most, at_least, when, baseline, claim };
    let result = expect.checks_something(&mut fields, sweep)
        && expect.measurement.suits(&mut fields, subjects, &nodes, |point| expect.applies(sweep, point));
    fields.finish();
    result.then_some(expect)
}

/// Reads a table of axes with a value each, or several if `several`.
fn axes(
    fields: &mut Fields<'_>,
    label: (&'static str, &'static str),
    sweep: &Sweep,
    several: bool,
) -> Vec<(usize, Vec<Node>)> {
    let key = label.0;
    let names = || sweep.axes.iter().map(|axis| axis.name.as_str());
    let Some(entry) = fields.get(label) else { return Vec::new() };
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
            let expected = match sweep.axes.as_slice() {
                [] => "expected a sweep, which has axes; there is none".to_owned(),
                _ => format!("expected one of {}", listed(names())),
            };
            fields.push(error.note(expected).help(help));
            continue;
        };
        let axis = &sweep.axes[number];
        let known = |node: &Node| axis.before.iter().any(|choice| choice.node.same(node)) || axis.values.has(node);
        let labelled = |node: &Node| {
            let choice = axis.before.iter().find(|choice| choice.label().is_some() && choice.label() == node.str());
            choice.filter(|_| !known(node)).map_or_else(|| node.clone(), |choice| choice.node.clone())
        };
        let values: Vec<Node> = match entry.node.array() {
            // The values of the axis may be arrays themselves.
            Some(items) if several && !known(&entry.node) => items.iter().map(labelled).collect(),
            _ => vec![labelled(&entry.node)],
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
