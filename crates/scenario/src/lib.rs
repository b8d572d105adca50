//! Scenario files: TOML, checked, to runs; errors that point at their place.
//!
//! [`Scenario::load`] reads a file, applies overrides, and reads every point of its sweep, so that
//! whatever is wrong is found before anything runs. A scenario then gives the [`RunSpec`] of each
//! run, judges the summaries, and writes itself back with every default filled in
//! ([`Scenario::resolved`]).
//!
//! # The format
//!
//! `schema = 1`, `title`, `[run]` (`duration`, `seed`), `[links.NAME]`, `[[flows]]`, `[record]`,
//! `[sweep]`, `[[expect]]`. Every quantity has its unit. A key that takes a *kind* (`queue`, `cc`,
//! `loss`, `loss_detector`, `split`) takes a name, or a table with `kind` and settings. Such a
//! table may hold tables by the name of a kind, whose settings apply when that kind is selected and
//! then go before those beside `kind`: with
//!
//! ```toml
//! queue = { kind = "pie", limit = "180p", pie = { target = "20ms" }, fq_codel = { quantum = "1514B" } }
//! ```
//!
//! a sweep over `links.NAME.queue.kind` gives each discipline the limit and its own settings.
//!
//! `schedule` of a flow is a list of tables with `at` and `cc`: other controllers of the sender,
//! each from a time of the run on.
//!
//! A flow's `host` names a profile, and each knob is also a key of the flow. `receiver` is the
//! other end: left out it is as the sender, knobs included; a table without `host` changes some of
//! them; with a `host` (or a name alone) it is a host of its own, to which the flow's knobs do not
//! apply.
//!
//! # Hosts
//!
//! `[hosts.NAME]` with `tun` are hosts behind devices, without it they are in this process;
//! `[[paths]]` is what is between two of them, `[[commands]]` what runs on them. A flow may name
//! hosts (`from`, `to`, `port`) in place of a path. `[run]` has the clock: live if a host has a
//! device, unless it says otherwise. On the virtual clock a flow between hosts is an ordinary one
//! over the path between them, with `host` (`linux-6.1` unless it is said) in place of each kernel,
//! and what else hosts do is left out ([`Scenario::notes`]). On the live clock `host`, `cc` and the
//! knobs are those of our end, if there is one; a flow with both ends in this process, or over a
//! path, is an ordinary one there too. `run.replay`, the path of a capture from the working
//! directory, feeds what came from hosts in virtual time.

mod cc;
mod clock;
mod command;
mod document;
mod ends;
mod expect;
mod fields;
mod flow;
mod host;
mod hosts;
mod hystart;
mod keys;
mod link;
mod metric;
mod notes;
mod overrides;
mod parameters;
mod paths;
mod quantity;
mod queue;
mod record;
mod report;
mod schedule;
mod show;
mod sweep;
mod verdict;
mod write;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ackclock_sim::DirectionId;
use ackclock_sim::spec::{CommandSpec, LinkSpec, LiveSpec, Measure, OwnController, RunSpec};
use ackclock_units::{Span, Time as Instant};
use serde_json::{Map, Value as Json};

pub use expect::Measures;
pub use flow::MAX_FLOWS;
pub use keys::{Domain, Key};
pub use report::ScenarioError;
pub use sweep::MAX_RUNS;
pub use verdict::{Miss, Spread, Verdict};

use clock::Timing;
use document::{Node, Value};
use expect::{Expect, Subject, Window};
use fields::{Context, Fields};
use flow::{Group, Setting};
use metric::Shape;
use paths::Network;
use quantity::{Problem, Text, Time, Whole};
use record::Record;
use report::{Diagnostic, Place, Report, Sources};
use show::Defaults;
use sweep::Sweep;

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: String,
    root: Node,
    sweep: Sweep,
    /// One for each point of the sweep.
    plans: Vec<Plan>,
    expects: Vec<Expect>,
    /// What the expectations look at beside whole runs.
    windows: Vec<Window>,
    defaults: Defaults,
}

/// What the runs of one point have in common.
#[derive(Clone, Debug)]
struct Plan {
    duration: Span,
    seed: u64,
    links: Vec<LinkSpec>,
    groups: Vec<Group>,
    recorded: Record,
    timing: Timing,
    network: Network,
    commands: Vec<CommandSpec>,
}

/// An override from the command line.
#[derive(Clone, Debug)]
pub struct Override {
    /// What errors call it: `--set`.
    pub flag: String,
    /// `links.bottleneck.delay=40ms`.
    pub text: String,
}

/// Why there is no scenario.
#[derive(Debug, thiserror::Error)]
pub enum LoadError {
    /// The file cannot be read.
    #[error("cannot read {}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
    /// The file cannot be a scenario.
    #[error("{} is larger than {MAX_FILE} bytes", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The text is not a scenario.
    #[error(transparent)]
    Scenario(#[from] ScenarioError),
}

impl Scenario {
    /// Reads a file.
    ///
    /// # Errors
    /// The file cannot be read, or anything in it or in the overrides is wrong.
    pub fn load(path: &Path, overrides: &[Override]) -> Result<Scenario, LoadError> {
        Scenario::load_with(path, overrides, &[])
    }

    /// Reads a file that may name congestion controllers from outside.
    ///
    /// # Errors
    /// The file cannot be read, or anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// A controller has no name, or one that is taken.
    pub fn load_with(
        path: &Path,
        overrides: &[Override],
        controllers: &'static [OwnController],
    ) -> Result<Scenario, LoadError> {
        let read = |source| LoadError::Read { path: path.to_owned(), source };
        let mut bytes = Vec::new();
        File::open(path).map_err(read)?.take(MAX_FILE + 1).read_to_end(&mut bytes).map_err(read)?;
        if bytes.len() as u64 > MAX_FILE {
            return Err(LoadError::TooLarge { path: path.to_owned() });
        }
        Ok(Scenario::parse_with(&path.display().to_string(), &bytes, overrides, controllers)?)
    }

    /// Reads a text; `name` is what errors call it.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong.
    pub fn parse(name: &str, text: &[u8], overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(name, text, overrides, &[])
    }

    /// Reads a text that may name congestion controllers from outside.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// A controller has no name, or one that is taken.
    pub fn parse_with(
        name: &str,
        text: &[u8],
        overrides: &[Override],
        controllers: &'static [OwnController],
    ) -> Result<Scenario, ScenarioError> {
        for (number, own) in controllers.iter().enumerate() {
            let taken = !cc::is_free(own.name) || controllers[..number].contains(own);
            assert!(!taken, "`{}` is no name for a congestion controller of one's own, or it is taken", own.name);
        }
        let report = Report::default();
        let mut sources = Sources::default();
        let text = match str::from_utf8(text) {
            Ok(text) => text,
            Err(error) => {
                let at = error.valid_up_to();
                let source = sources.add(name, String::from_utf8_lossy(text));
                let place = Place::new(source, at..at + char::REPLACEMENT_CHARACTER.len_utf8());
                let label = format!("found the byte 0x{:02x}", text[at]);
                report.push(Diagnostic::new("the file is not UTF-8", &place, label).note("expected UTF-8 text"));
                return Err(report.finish(sources).err().unwrap_or_else(|| unreachable!("an error was reported")));
            }
        };
        // A byte order mark is no part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = sources.add(name, text);
        let scenario = document::parse_document(text, source, &report)
            .and_then(|root| Scenario::read(root, overrides, controllers, &mut sources, &report));
        report.finish(sources)?;
        Ok(scenario.unwrap_or_else(|| unreachable!("a scenario without an error")))
    }

    /// The keys that a text of one run has or may have, in the order of reading: those that the
    /// parser asks it for. What is wrong with the text is not reported.
    pub fn keys(text: &str) -> Vec<Key> {
        let report = Report::default();
        let mut sources = Sources::default();
        let source = sources.add("keys", text);
        let Some(root) = document::parse_document(text, source, &report) else { return Vec::new() };
        let cx = Context { keys: Some(RefCell::default()), ..Context::new(&report, &[]) };
        Plan::read(&root, &cx);
        cx.keys.map(|keys| keys.into_inner().finish()).unwrap_or_default()
    }

    fn read(
        mut root: Node,
        overrides: &[Override],
        controllers: &'static [OwnController],
        sources: &mut Sources,
        report: &Report,
    ) -> Option<Scenario> {
        let mut pinned = Vec::new();
        for Override { flag, text } in overrides {
            pinned.extend(overrides::apply_argument(&mut root, flag, text, sources, report));
        }
        let original = root.clone();
        let cx = Context::new(report, controllers);
        let mut fields = Fields::new(&cx, original.table()?, "", &original.place);
        let sweep = sweep::read(&original, &mut fields, &cx, &pinned);
        let sweep_defaults = cx.filled.take();
        let mut defaults = Defaults::default();
        let (mut plans, mut subjects) = (Vec::new(), Vec::new());
        for point in 0..sweep.points() {
            let mut varied = original.clone();
            for (axis, index) in sweep.axes.iter().zip(sweep.indices(point)) {
                overrides::set(&mut varied, &axis.path, &axis.place, axis.values[index].clone(), report);
            }
            let cx = Context::new(report, controllers);
            if let Some(plan) = Plan::read(&varied, &cx) {
                let live = plan.timing.is_live();
                subjects.push(Subject { shape: plan.shape(), duration: plan.duration, live });
                plans.push(plan);
            }
            let mut filled = cx.filled.take();
            filled.extend(sweep_defaults.iter().cloned());
            defaults.add(filled, cx.chosen.take());
            if report.is_full() {
                return None;
            }
        }
        let (expects, windows) =
            if report.len() == 0 { expect::read_all(&mut fields, &cx, &sweep, &subjects) } else { Default::default() };
        let title = original.table()?.get("title").and_then(|entry| entry.node.str()).unwrap_or("").to_owned();
        if report.len() > 0 {
            return None;
        }
        pin(&mut root, &sweep, &expects);
        Some(Scenario { title, root, sweep, plans, expects, windows, defaults })
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// Whether the file has a `[sweep]`, even of one run.
    pub fn is_sweep(&self) -> bool {
        self.sweep.declared
    }

    /// The paths of the sweep's axes.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.sweep.axes.iter().map(|axis| axis.name.as_str())
    }

    /// How often each point of the sweep is run.
    pub fn repeat(&self) -> usize {
        self.sweep.repeat as usize
    }

    /// How many runs there are.
    pub fn runs(&self) -> usize {
        self.plans.len() * self.repeat()
    }

    /// The seed that all runs begin from, unless the sweep varies it.
    pub fn seed(&self) -> u64 {
        self.plans[0].seed
    }

    /// A run: the repetitions of a point follow each other; the last axis moves fastest from point
    /// to point.
    ///
    /// # Panics
    /// There are no more than [`Scenario::runs`].
    pub fn spec(&self, run: usize) -> RunSpec {
        let plan = &self.plans[run / self.repeat()];
        let run = (run % self.repeat()) as u64;
        RunSpec {
            title: self.title.clone(),
            duration: plan.duration,
            seed: plan.seed,
            run,
            links: plan.links.clone(),
            flows: plan.groups.iter().flat_map(|group| group.flows(plan.seed, run)).collect(),
            windows: self.windows.iter().map(|&window| plan.window(window)).collect(),
            live: plan.live().map(Box::new),
        }
    }

    /// Whether any run takes as long as it says, by the machine's clock. Such runs are done one
    /// after another.
    pub fn is_live(&self) -> bool {
        self.plans.iter().any(|plan| plan.timing.is_live())
    }

    /// What the clock leaves out of what the file says, in sentences; nothing on the live clock.
    pub fn notes(&self) -> Vec<String> {
        notes::of(&self.plans, &self.expects)
    }

    /// The link directions whose queues are to be recorded.
    pub fn recorded_queues(&self) -> &[DirectionId] {
        // A sweep varies neither the links' names nor this.
        &self.plans[0].recorded.queues
    }

    /// Whether ACKs, retransmissions and losses of all flows are to be recorded.
    pub fn records_tcp(&self) -> bool {
        self.plans[0].recorded.tcp
    }

    /// Whether every segment that a host sends or receives is to be recorded.
    pub fn records_siftr(&self) -> bool {
        self.plans[0].recorded.siftr
    }

    /// Whether the measurements of enhanced round-trip times are to be recorded.
    pub fn records_ertt(&self) -> bool {
        self.plans[0].recorded.ertt
    }

    /// The axes with their values in a run.
    pub fn params(&self, run: usize) -> Map<String, Json> {
        let indices = self.sweep.indices(run / self.repeat());
        self.sweep
            .axes
            .iter()
            .zip(indices)
            .map(|(axis, index)| (axis.name.clone(), json(&axis.values[index])))
            .collect()
    }

    /// What the expectations come to in one run, from its summary as JSON.
    pub fn measure(&self, summary: &Json) -> Measures {
        self.expects.iter().map(|expect| expect.measure(summary)).collect()
    }

    /// How many comparisons [`Scenario::verdicts`] makes: one for each run, or for each point by a
    /// statistic of its runs.
    pub fn checks(&self) -> usize {
        self.expects.iter().map(|expect| expect.checks(&self.sweep)).sum()
    }

    /// What became of every expectation at every point that it is about, from the measures of all
    /// runs in their order.
    pub fn verdicts(&self, measures: &[Measures]) -> Vec<Verdict> {
        let judged = |(number, expect): (usize, &Expect)| expect.judge(number, &self.sweep, measures);
        self.expects.iter().enumerate().flat_map(judged).collect()
    }

    /// What of that was not met, in the order of the points and runs.
    pub fn misses(&self, verdicts: &[Verdict]) -> Vec<Miss> {
        let mut misses: Vec<Miss> = verdicts.iter().flat_map(Verdict::misses).collect();
        misses.sort_by_key(|miss| (miss.point, miss.run));
        misses
    }

    /// The file with overrides applied and defaults filled in, as TOML: a scenario that gives the
    /// same runs.
    pub fn resolved(&self) -> String {
        self.defaults.show(&self.root)
    }
}

impl Plan {
    fn read(root: &Node, cx: &Context<'_>) -> Option<Plan> {
        let mut fields = Fields::new(cx, root.table()?, "", &root.place);
        match fields.get("schema").map(|entry| &entry.node) {
            None => fields.missing("schema", "`schema = 1`, the version of the format"),
            Some(node) if node.same(&Node::new(1u64, node.place.clone())) => {}
            Some(node) => fields.reject("schema", node, Problem::new("unknown version of the format", "`schema = 1`")),
        }
        fields.or("title", String::new(), Text);
        let (mut duration, mut seed, mut timing) = (None, 1, Timing::default());
        let nodes = hosts::read_all(&mut fields, cx);
        match fields.table("run", "a section `[run]` with `duration`") {
            Some(mut run) => {
                duration = run.required("duration", Time::Positive, "the simulated time, such as \"90s\"");
                seed = run.or("seed", seed, Whole(0, i64::MAX as u64));
                timing = clock::read(&mut run, nodes.as_deref());
                run.finish();
            }
            None if fields.get("run").is_none() => fields.missing("run", "a section `[run]` with `duration`"),
            None => {}
        }
        let mut links = Vec::new();
        let mut complete = true;
        match fields.get("links").map(|entry| &entry.node) {
            None => fields.missing("links", "at least one section `[links.NAME]` with `rate`"),
            Some(node @ Node { value: Value::Table(table), .. }) if table.0.len() > link::MAX_LINKS => {
                let expected = format!("at most {} links", link::MAX_LINKS);
                fields.reject("links", node, Problem::new(format!("{} links are too many", table.0.len()), expected));
                complete = false;
            }
            Some(Node { value: Value::Table(table), .. }) => {
                for entry in &table.0 {
                    match link::read(cx, entry) {
                        Some(link) => links.push(link),
                        None => complete = false,
                    }
                }
            }
            Some(node) => fields.reject("links", node, Problem::new("not a table", "sections `[links.NAME]`")),
        }
        let names = paths::names(&links);
        // Without all links, a path over a missing one would be called unknown; without all hosts,
        // a host.
        let (groups, recorded, network, commands) = match nodes.filter(|_| complete) {
            Some(nodes) => {
                let pipes = paths::read_all(&mut fields, &names, &nodes);
                let duration = duration.unwrap_or(Span::ZERO);
                let commands = command::read_all(&mut fields, &nodes, duration);
                let network = Network { nodes, pipes };
                let outside = timing.is_outside();
                let setting = Setting { links: &links, names: &names, network: &network, outside, duration };
                (flow::read_all(&mut fields, cx, setting), record::read(&mut fields, &links), network, commands)
            }
            None => {
                for key in ["flows", "record", "paths", "commands"] {
                    fields.get(key);
                }
                Default::default()
            }
        };
        for key in ["sweep", "expect"] {
            fields.get(key);
        }
        fields.finish();
        drop(names);
        Some(Plan { duration: duration?, seed, links, groups, recorded, timing, network, commands })
    }

    /// What is outside of a run, if anything is.
    fn live(&self) -> Option<LiveSpec> {
        Some(LiveSpec {
            clock: self.timing.clock.clone()?,
            nodes: self.network.nodes.clone(),
            pipes: self.network.pipes.clone(),
            commands: self.commands.clone(),
            spin: self.timing.spin,
            lateness_limit: self.timing.lateness_limit,
            drain: self.timing.drain,
        })
    }

    /// A window within the run; at a point where the expectation does not apply it may be empty.
    fn window(&self, (from, to): Window) -> (Instant, Instant) {
        let at = |span: Span| Instant::ZERO + span.min(self.duration);
        (at(from), at(to.unwrap_or(self.duration)))
    }

    fn shape(&self) -> Shape {
        Shape {
            flows: self.groups.iter().map(|group| (group.id.clone(), group.count())).collect(),
            links: self.links.iter().map(|link| link.name.clone()).collect(),
            hosts: self.network.nodes.iter().filter(|node| node.tun.is_some()).map(|node| node.name.clone()).collect(),
            commands: self
                .commands
                .iter()
                .map(|command| {
                    let measure = command.measure.map(|measure| match measure {
                        Measure::Json => "json",
                        Measure::Ping => "ping",
                    });
                    (command.id.clone(), measure)
                })
                .collect(),
        }
    }
}

/// Writes the values that arguments left of the axes into the document, and drops the expectations
/// on others.
fn pin(root: &mut Node, sweep: &Sweep, expects: &[Expect]) {
    let Value::Table(root) = &mut root.value else { return };
    if let Some(Value::Table(section)) = root.get_mut("sweep").map(|entry| &mut entry.node.value)
        && let Some(Value::Table(axes)) = section.get_mut("axes").map(|entry| &mut entry.node.value)
    {
        for axis in &sweep.axes {
            if let Some(Value::Array(values)) = axes.get_mut(&axis.name).map(|entry| &mut entry.node.value) {
                *values = axis.values.clone();
            }
        }
    }
    if let Some(Value::Array(items)) = root.get_mut("expect").map(|entry| &mut entry.node.value) {
        let mut kept = expects.iter().map(|expect| (0..sweep.points()).any(|point| expect.applies(sweep, point)));
        items.retain(|_| kept.next().unwrap_or(true));
        if items.is_empty() {
            root.0.retain(|entry| entry.key != "expect");
        }
    }
}

fn json(node: &Node) -> Json {
    match &node.value {
        Value::String(text) | Value::Datetime(text) => Json::from(text.as_str()),
        Value::Integer(number) => i64::try_from(*number).map_or_else(|_| Json::from(*number as f64), Json::from),
        Value::Float(number) => Json::from(*number),
        Value::Boolean(value) => Json::from(*value),
        Value::Array(items) => items.iter().map(json).collect(),
        Value::Table(table) => {
            Json::Object(table.0.iter().map(|entry| (entry.key.clone(), json(&entry.node))).collect())
        }
    }
}
