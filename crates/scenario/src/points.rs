//! The points of a sweep: all of them read in advance, or of very many some, and each of the others
//! when it is run. Points that are wrong do not refuse the others, unless a value of an axis is
//! right at none.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

use crate::document::{Node, Value};
use crate::fields::Context;
use crate::inputs::Inputs;
use crate::measurement::Subject;
use crate::own::Own;
use crate::plan::Plan;
use crate::report::{Report, ScenarioError, Sources};
use crate::show::Defaults;
use crate::sweep::Sweep;
use crate::traces::Traces;

/// The plans of a sweep's points.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    known: BTreeMap<usize, Plan>,
    /// The points that were read in advance and are wrong.
    wrong: BTreeSet<usize>,
    is_all_read: bool,
    /// Any of the known points is on the live clock.
    is_live: bool,
    /// The reader of points that are not known, if there are any.
    rest: Option<Rest>,
}

/// The sources of points that were not read in advance.
#[derive(Clone, Debug)]
struct Rest {
    root: Node,
    inputs: Inputs,
    own: Own,
    sources: Sources,
}

/// The by-products of reading points.
#[derive(Default)]
pub(crate) struct Gained {
    pub(crate) defaults: Defaults,
    /// Subjects with their points.
    pub(crate) subjects: Vec<(usize, Subject)>,
}

impl Points {
    /// Reads the points, or of very many some. `None` after too many errors.
    pub(crate) fn read(
        sweep: &Sweep,
        root: &Node,
        inputs: &Inputs,
        cx: &Context<'_>,
        sources: &Sources,
    ) -> Option<(Points, Gained)> {
        let (report, own) = (cx.report, cx.own);
        let sweep_defaults = cx.filled.take();
        let traces = Traces::default();
        let (mut known, mut gained) = (BTreeMap::new(), Gained::default());
        // A point is its own copy of the document, and what all points are made of is long.
        let mut root = root.clone();
        if let Value::Table(table) = &mut root.value {
            table.0.retain(|entry| !["sweep", "expect"].contains(&entry.key.as_str()));
        }
        let in_advance = sweep.in_advance(root.count());
        let is_all_read = in_advance.len() == sweep.points();
        let (mut wrong, mut first_wrong) = (BTreeSet::new(), None);
        let reader = Reader { sweep, root: &root, inputs, own, traces: &traces };
        for &point in &in_advance {
            let scratch = Report::default();
            let read = reader.read(point, &scratch, |plan, cx| {
                let live = plan.timing.has_hosts();
                gained.subjects.push((point, Subject { shape: plan.shape(), duration: plan.duration, live }));
                let mut filled = cx.filled.take();
                filled.extend(sweep_defaults.iter().cloned());
                gained.defaults.add(filled, cx.chosen.take());
                gained.defaults.add_converted(cx.converted.take());
            });
            match read {
                Some(plan) => _ = known.insert(point, plan),
                None => {
                    wrong.insert(point);
                    first_wrong.get_or_insert((point, scratch));
                }
            }
        }
        // Where nothing is right, each error counts.
        let mut refused = if known.is_empty() { in_advance } else { nowhere_right(sweep, &known, &wrong) };
        refused.sort_unstable();
        for point in refused.into_iter().take_while(|_| !report.is_full()) {
            let scratch = match first_wrong.take_if(|(first, _)| *first == point) {
                Some((_, errors)) => errors,
                None => {
                    let scratch = Report::default();
                    reader.read(point, &scratch, |_, _| {});
                    scratch
                }
            };
            // The only axis is where the error is.
            let is_clear = known.is_empty() || sweep.axes.len() == 1;
            let at = (!is_clear).then(|| sweep.name(point, |_| true));
            for error in scratch.into_errors() {
                report.push(match &at {
                    Some(at) => error.note(format!("at the point {at}")),
                    None => error,
                });
            }
        }
        let is_all = known.len() == sweep.points();
        let rest = || Rest { root: root.clone(), inputs: inputs.clone(), own: own.clone(), sources: sources.clone() };
        let rest = (!is_all).then(rest);
        let is_live = known.values().any(|plan: &Plan| plan.timing.is_live());
        (!known.is_empty()).then_some((Points { known, wrong, is_all_read, is_live, rest }, gained))
    }

    /// The points that were read in advance and are wrong.
    pub(crate) fn wrong(&self) -> impl ExactSizeIterator<Item = usize> {
        self.wrong.iter().copied()
    }

    /// The points that were read in advance: all, or those of which what is said of the sweep is
    /// concluded.
    pub(crate) fn known(&self) -> impl ExactSizeIterator<Item = &Plan> {
        self.known.values()
    }

    /// The known plans with the numbers of their points.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Plan)> {
        self.known.iter().map(|(point, plan)| (*point, plan))
    }

    /// One of them.
    pub(crate) fn known_at(&self, point: usize) -> Option<&Plan> {
        self.known.get(&point)
    }

    pub(crate) fn is_all_read(&self) -> bool {
        self.is_all_read
    }

    /// Returns `true` if any run takes as long as it says, by the machine's clock.
    pub(crate) fn is_live(&self) -> bool {
        self.is_live
    }

    pub(crate) fn first(&self) -> &Plan {
        self.known.values().next().unwrap_or_else(|| unreachable!("a scenario has a point"))
    }

    pub(crate) fn plan(&self, point: usize, sweep: &Sweep) -> Result<Cow<'_, Plan>, ScenarioError> {
        if let Some(plan) = self.known.get(&point) {
            return Ok(Cow::Borrowed(plan));
        }
        let Rest { root, inputs, own, sources } =
            self.rest.as_ref().unwrap_or_else(|| panic!("there is no point {point}"));
        let (report, traces) = (Report::default(), Traces::default());
        let plan = Reader { sweep, root, inputs, own, traces: &traces }.read(point, &report, |_, _| {});
        report.finish(sources.clone(), plan.map(Cow::Owned))
    }
}

/// The context in which points are read.
struct Reader<'r> {
    sweep: &'r Sweep,
    root: &'r Node,
    inputs: &'r Inputs,
    own: &'r Own,
    traces: &'r Traces,
}

impl Reader<'_> {
    /// Reads a point; `right` sees it unless something is wrong with it.
    fn read(&self, point: usize, report: &Report, right: impl FnOnce(&Plan, &Context<'_>)) -> Option<Plan> {
        let mut varied = self.root.clone();
        self.sweep.set(point, &mut varied, report);
        let (inputs, traces) = (self.inputs, Some(self.traces));
        let cx = Context { inputs, document: varied.table(), traces, ..Context::new(report, self.own) };
        let plan = Plan::read(&varied, &cx).filter(|_| report.len() == 0)?;
        right(&plan, &cx);
        Some(plan)
    }
}

/// For each value of an axis that is wrong wherever it was read, the first of these points.
fn nowhere_right(sweep: &Sweep, known: &BTreeMap<usize, Plan>, wrong: &BTreeSet<usize>) -> Vec<usize> {
    if wrong.is_empty() {
        return Vec::new();
    }
    let right: Vec<Vec<usize>> = known.keys().map(|&point| sweep.choices(point)).collect();
    let mut first: BTreeMap<(usize, usize), usize> = BTreeMap::new();
    for &point in wrong {
        for (axis, &choice) in sweep.choices(point).iter().enumerate().filter(|(axis, _)| sweep.is_chosen(*axis)) {
            first.entry((axis, choice)).or_insert(point);
        }
    }
    for choices in right {
        choices.into_iter().enumerate().for_each(|choice| _ = first.remove(&choice));
    }
    first.into_values().collect()
}
