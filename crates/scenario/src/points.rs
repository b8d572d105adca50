//! The points of a sweep: all of them read in advance, or of very many some, and each of the others
//! when it is run.

use std::borrow::Cow;
use std::collections::BTreeMap;

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

/// What the points of a sweep say.
#[derive(Clone, Debug)]
pub(crate) struct Points {
    known: BTreeMap<usize, Plan>,
    /// How the others are read, if there are any.
    rest: Option<Rest>,
}

/// What the points that were not read in advance are read from.
#[derive(Clone, Debug)]
struct Rest {
    root: Node,
    inputs: Inputs,
    own: Own,
    sources: Sources,
}

/// What is gained from reading points.
#[derive(Default)]
pub(crate) struct Gained {
    pub(crate) defaults: Defaults,
    /// By their points.
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
        let is_all = in_advance.len() == sweep.points();
        for point in in_advance {
            let mut varied = root.clone();
            sweep.set(point, &mut varied, report);
            let cx = Context { inputs, document: varied.table(), traces: Some(&traces), ..Context::new(report, own) };
            if let Some(plan) = Plan::read(&varied, &cx) {
                let live = plan.timing.is_live();
                gained.subjects.push((point, Subject { shape: plan.shape(), duration: plan.duration, live }));
                known.insert(point, plan);
            }
            let mut filled = cx.filled.take();
            filled.extend(sweep_defaults.iter().cloned());
            gained.defaults.add(filled, cx.chosen.take());
            gained.defaults.add_converted(cx.converted.take());
            if report.is_full() {
                return None;
            }
        }
        let rest = || Rest { root: root.clone(), inputs: inputs.clone(), own: own.clone(), sources: sources.clone() };
        Some((Points { known, rest: (!is_all).then(rest) }, gained))
    }

    /// The points that were read in advance: all, or those of which what is said of the sweep is
    /// concluded.
    pub(crate) fn known(&self) -> impl ExactSizeIterator<Item = &Plan> {
        self.known.values()
    }

    /// The same with their numbers.
    pub(crate) fn numbered(&self) -> impl Iterator<Item = (usize, &Plan)> {
        self.known.iter().map(|(point, plan)| (*point, plan))
    }

    /// One of them.
    pub(crate) fn known_at(&self, point: usize) -> Option<&Plan> {
        self.known.get(&point)
    }

    pub(crate) fn is_all_known(&self) -> bool {
        self.rest.is_none()
    }

    pub(crate) fn first(&self) -> &Plan {
        self.known.values().next().unwrap_or_else(|| unreachable!("a scenario has a point"))
    }

    /// What a point says.
    pub(crate) fn plan(&self, point: usize, sweep: &Sweep) -> Result<Cow<'_, Plan>, ScenarioError> {
        if let Some(plan) = self.known.get(&point) {
            return Ok(Cow::Borrowed(plan));
        }
        let Rest { root, inputs, own, sources } =
            self.rest.as_ref().unwrap_or_else(|| panic!("there is no point {point}"));
        let (report, traces) = (Report::default(), Traces::default());
        let mut varied = root.clone();
        sweep.set(point, &mut varied, &report);
        let cx = Context { inputs, document: varied.table(), traces: Some(&traces), ..Context::new(&report, own) };
        match Plan::read(&varied, &cx) {
            Some(plan) if report.len() == 0 => Ok(Cow::Owned(plan)),
            _ => {
                drop(cx);
                report.finish(sources.clone(), None)
            }
        }
    }
}
