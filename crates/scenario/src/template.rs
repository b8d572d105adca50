//! A scenario with gaps: one run, of which some values are given each time.

use std::sync::Arc;

use ackclock_sim::spec::{Agent, RunSpec};

use crate::document::{Node, Value, parse_document, parse_value};
use crate::fields::Context;
use crate::inputs::Inputs;
use crate::overrides::{self, Argument, Path};
use crate::own::Own;
use crate::plan::Plan;
use crate::report::{Diagnostic, Place, Report, ScenarioError, Sources};
use crate::scenario::Override;
use crate::traces::Traces;

/// The names for learners that a scenario may use in an environment.
#[derive(Clone, Debug)]
pub struct Learning {
    /// The learners by the names of `cc = { kind = "external", agent = NAME }`; the first one also
    /// without a name.
    pub agents: Vec<(String, Arc<Agent>)>,
    /// Algorithms from outside.
    pub own: Own,
}

/// A scenario of one run, with paths whose values are given for each: read once, and a run of it
/// costs no parsing of text but of the values. In it, `cc = "external"` is a learner.
#[derive(Clone, Debug)]
pub struct Template {
    title: String,
    root: Node,
    inputs: Inputs,
    sources: Sources,
    gaps: Vec<(Vec<Path>, Place)>,
    learning: Learning,
    /// The run without gaps; without any, all runs are as this one.
    plan: Plan,
}

impl Template {
    /// Reads a text, whose files are in `folder` or relative to that; `name` is what errors call
    /// it. `paths` are of the values to be given, as `--set` has them.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong, a path names nothing, it has a `[sweep]`, or
    /// runs by the machine's clock.
    ///
    /// # Panics
    /// Algorithms from outside cannot be named: [`Own::problem`].
    pub fn new(
        (folder, name, text): (&std::path::Path, &str, &str),
        overrides: &[Override],
        learning: Learning,
        paths: &[String],
    ) -> Result<Template, ScenarioError> {
        learning.own.check();
        let (report, mut sources) = (Report::default(), Sources::default());
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = sources.add(name, text);
        let inputs = Inputs::on_disk(folder);
        let read = parse_document(text, source, &report)
            .and_then(|root| Template::read(root, inputs, overrides, learning, paths, &mut sources, &report));
        let read = read.map(|template| Template { sources: sources.clone(), ..template });
        report.finish(sources, read)
    }

    fn read(
        mut root: Node,
        inputs: Inputs,
        overrides: &[Override],
        learning: Learning,
        paths: &[String],
        sources: &mut Sources,
        report: &Report,
    ) -> Option<Template> {
        for Override { flag, text } in overrides {
            let argument = Argument::read(&root, flag, text, sources, report)?;
            argument.apply(&mut root, report);
        }
        let gap = |path: &String| {
            let source = sources.add("randomise", path.as_str());
            let place = Place::new(source, 0..path.len());
            Some((overrides::resolve(&root, &overrides::split(path), &place, false, report)?, place))
        };
        let gaps: Option<Vec<_>> = paths.iter().map(gap).collect();
        let Value::Table(table) = &mut root.value else { return None };
        if let Some(entry) = table.get("sweep") {
            let found = "has many runs";
            let error = Diagnostic::new("an environment has one run at a time", &entry.key_place, found);
            report.push(error.note("expected a scenario without `[sweep]`: give distributions to the environment"));
        }
        // Expectations are about runs that were not steered.
        table.0.retain(|entry| entry.key != "expect");
        let title = table.get("title").and_then(|entry| entry.node.str()).unwrap_or("").to_owned();
        let run = table.get("run").map_or_else(|| root.place.clone(), |entry| entry.key_place.clone());
        let plan = read_plan(&root, &inputs, &learning, report)?;
        if plan.timing.clock.is_some() {
            let error = Diagnostic::new("an environment runs on the virtual clock", &run, "runs by another clock");
            report.push(error.note("expected `run.clock = \"virtual\"`"));
        }
        Some(Template { title, root, inputs, sources: Sources::default(), gaps: gaps?, learning, plan })
    }

    /// A run with this seed, and with a value for each path, as `--set` has it.
    ///
    /// # Errors
    /// A value does not fit its key.
    pub fn spec(&self, seed: u64, values: &[String]) -> Result<RunSpec, ScenarioError> {
        if self.gaps.is_empty() {
            return Ok(self.run(&self.plan, seed));
        }
        let report = Report::default();
        let mut sources = self.sources.clone();
        let mut varied = self.root.clone();
        for ((paths, place), value) in self.gaps.iter().zip(values) {
            let source = sources.add("randomise", value.as_str());
            let scratch = Report::default();
            let node = parse_value(value, source, 0, &scratch)
                .unwrap_or_else(|| Node::new(value.as_str(), Place::new(source, 0..value.len())));
            for path in paths {
                overrides::set(&mut varied, path, place, node.clone(), &report);
            }
        }
        let plan = read_plan(&varied, &self.inputs, &self.learning, &report);
        let run = plan.map(|plan| self.run(&plan, seed));
        report.finish(sources, run)
    }

    fn run(&self, plan: &Plan, seed: u64) -> RunSpec {
        let (links, flows) = plan.links_and_flows(seed, 0);
        RunSpec {
            title: self.title.clone(),
            duration: plan.duration,
            seed,
            run: 0,
            ties: plan.timing.ties,
            links,
            flows,
            sums: plan.sums_of(seed, 0),
            windows: Vec::new(),
            reordering: None,
            live: None,
        }
    }
}

fn read_plan(root: &Node, inputs: &Inputs, learning: &Learning, report: &Report) -> Option<Plan> {
    let traces = Traces::default();
    let cx = Context {
        inputs,
        document: root.table(),
        traces: Some(&traces),
        agents: &learning.agents,
        ..Context::new(report, &learning.own)
    };
    Plan::read(root, &cx)
}
