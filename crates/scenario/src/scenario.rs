//! A checked scenario: how it is loaded, and what it gives.

mod changes;
mod estimates;
mod parameters;
mod results;
mod sent;

use std::cell::RefCell;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use ackclock_sim::spec::RunSpec;
use ackclock_sim::{DirectionId, SeriesConfig};
use ackclock_units::Span;

use crate::document::{Node, Table, Value};
use crate::effect::Trial;
use crate::expect::Expect;
use crate::fields::{Context, Fields};
use crate::inputs::Inputs;
use crate::keys::Key;
use crate::measurement::{self, Window};
use crate::overrides::Argument;
use crate::own::Own;
use crate::plan::Plan;
use crate::points::{Gained, Points};
use crate::record::{Capture, Qlog};
use crate::report::{Diagnostic, Place, Report, ScenarioError, Sources};
use crate::show::Defaults;
use crate::sweep::{MAX_READ, Sweep};
use crate::until::Until;
use crate::{document, effect, expect, notes, sweep, until, write};

/// The largest file that is read, in bytes.
const MAX_FILE: u64 = 16 << 20;

/// A checked scenario.
#[derive(Clone, Debug)]
pub struct Scenario {
    title: String,
    root: Node,
    sweep: Sweep,
    points: Points,
    expects: Vec<Expect>,
    /// The condition under which a point has been repeated often enough.
    until: Option<Until>,
    /// The windows that the expectations need beside whole runs.
    windows: Vec<Window>,
    defaults: Defaults,
    inputs: Inputs,
    own: Own,
}

/// An override from the command line.
#[derive(Clone, Debug)]
pub struct Override {
    /// The name in errors: `--set`.
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
        Scenario::load_with(path, overrides, Own::NONE)
    }

    /// Reads a file that may name algorithms from outside.
    ///
    /// # Errors
    /// The file cannot be read, or anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// There is an [`Own::problem`].
    pub fn load_with(path: &Path, overrides: &[Override], own: &Own) -> Result<Scenario, LoadError> {
        let bytes = Scenario::read_text(path)?;
        let folder = path.parent().unwrap_or(Path::new(""));
        Ok(Scenario::parse_in(folder, &path.display().to_string(), &bytes, overrides, own)?)
    }

    /// The bytes of a file, unless it is too large for a scenario.
    ///
    /// # Errors
    /// The file cannot be read, or is too large.
    pub fn read_text(path: &Path) -> Result<Vec<u8>, LoadError> {
        let file = File::open(path).map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
        contents(path, file)
    }

    /// Reads a stream that is no file, such as standard input; `name` is what errors call it, and
    /// files that it names are relative to the current directory.
    ///
    /// # Errors
    /// The stream cannot be read, or anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// There is an [`Own::problem`].
    pub fn load_from(name: &str, stream: impl Read, overrides: &[Override], own: &Own) -> Result<Scenario, LoadError> {
        let bytes = contents(Path::new(name), stream)?;
        Ok(Scenario::parse_in(Path::new(""), name, &bytes, overrides, own)?)
    }

    /// Reads a text; `name` is what errors call it, and files that it names are in the same
    /// directory or relative to that.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong.
    pub fn parse(name: &str, text: &[u8], overrides: &[Override]) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with(name, text, overrides, Own::NONE)
    }

    /// Reads a text that may name algorithms from outside.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// There is an [`Own::problem`].
    pub fn parse_with(name: &str, text: &[u8], overrides: &[Override], own: &Own) -> Result<Scenario, ScenarioError> {
        let folder = Path::new(name).parent().unwrap_or(Path::new(""));
        Scenario::parse_in(folder, name, text, overrides, own)
    }

    /// Reads a text whose files are in `folder` or relative to that.
    ///
    /// # Errors
    /// Anything in it or in the overrides is wrong.
    ///
    /// # Panics
    /// There is an [`Own::problem`].
    pub fn parse_in(
        folder: &Path,
        name: &str,
        text: &[u8],
        overrides: &[Override],
        own: &Own,
    ) -> Result<Scenario, ScenarioError> {
        Scenario::parse_with_inputs(Inputs::on_disk(folder), name, text, overrides, own)
    }

    fn parse_with_inputs(
        inputs: Inputs,
        name: &str,
        text: &[u8],
        overrides: &[Override],
        own: &Own,
    ) -> Result<Scenario, ScenarioError> {
        own.check();
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
                return report.finish(sources, None);
            }
        };
        // A byte order mark is no part of the text.
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        let source = sources.add(name, text);
        let scenario = document::parse_document(text, source, &report)
            .and_then(|root| Scenario::read(root, overrides, own, inputs, &mut sources, &report));
        report.finish(sources, scenario)
    }

    /// The keys that a text of one run has or may have, in the order of reading: those that the
    /// parser asks it for. Errors of the text are not reported.
    pub fn keys(text: &str) -> Vec<Key> {
        Scenario::keys_with(text, Own::NONE)
    }

    /// The keys of a text that may name algorithms and stacks from outside.
    pub(crate) fn keys_with(text: &str, own: &Own) -> Vec<Key> {
        let report = Report::default();
        let mut sources = Sources::default();
        let source = sources.add("keys", text);
        let Some(root) = document::parse_document(text, source, &report) else { return Vec::new() };
        let cx = Context { keys: Some(RefCell::default()), document: root.table(), ..Context::new(&report, own) };
        Plan::read(&root, &cx);
        cx.keys.map(|keys| keys.into_inner().finish()).unwrap_or_default()
    }

    fn read(
        mut root: Node,
        overrides: &[Override],
        own: &Own,
        inputs: Inputs,
        sources: &mut Sources,
        report: &Report,
    ) -> Option<Scenario> {
        let (file, mut arguments) = (root.clone(), Vec::new());
        for Override { flag, text } in overrides {
            let Some(argument) = Argument::read(&root, flag, text, sources, report) else { continue };
            argument.apply(&mut root, report);
            arguments.push(argument);
        }
        let original = root.clone();
        let cx = Context::new(report, own);
        let mut fields = Fields::new(&cx, original.table()?, "", &original.place);
        let sweep = sweep::read(&original, &mut fields, &cx, &arguments);
        let (points, Gained { defaults, subjects }) = Points::read(&sweep, &original, &inputs, &cx, sources)?;
        let (mut expects, mut windows, mut until) = (Vec::new(), Vec::new(), None);
        if report.len() == 0 {
            expects = expect::read_all(&mut fields, &cx, &sweep, &subjects, &mut windows);
            until = until::read(original.table()?, &cx, &subjects, &mut windows);
            measurement::check_windows(&original, &subjects, &windows, report);
            let trial = Trial { root: &original, sweep: &sweep, points: &points, inputs: &inputs, own };
            trial.axes(report);
            trial.arguments(&file, &arguments, report);
        }
        let title = original.table()?.get("title").and_then(|entry| entry.node.str()).unwrap_or("").to_owned();
        check_records(&points, original.table()?, report);
        if !points.is_all_read() && points.known().any(|plan| plan.timing.clock.is_some()) {
            let place = original.table()?.get("sweep").map_or(&original.place, |entry| &entry.key_place);
            let title = format!("the sweep has {} points on the live clock, or of replays", sweep.points());
            report.push(Diagnostic::new(title, place, "too many").note(format!("at most {MAX_READ}")));
        }
        if report.len() > 0 {
            return None;
        }
        pin(&mut root, &sweep, &expects);
        let own = own.clone();
        Some(Scenario { title, root, sweep, points, expects, until, windows, defaults, inputs, own })
    }

    /// The title.
    pub fn title(&self) -> &str {
        &self.title
    }

    /// The algorithms from outside that it may name.
    pub fn own(&self) -> &Own {
        &self.own
    }

    /// Returns `true` if the file has a `[sweep]`, even of one run.
    pub fn is_sweep(&self) -> bool {
        self.sweep.declared
    }

    /// The paths of the sweep's axes.
    pub fn axes(&self) -> impl Iterator<Item = &str> {
        self.sweep.axes.iter().map(|axis| axis.name.as_str())
    }

    /// Number of repetitions of each point of the sweep, at most if [`Scenario::is_adaptive`].
    pub fn repeat(&self) -> usize {
        self.sweep.repeat as usize
    }

    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.sweep.points() * self.repeat()
    }

    /// Least number of repetitions of each point: as many as at most, unless
    /// [`Scenario::is_adaptive`].
    pub fn repeat_at_least(&self) -> usize {
        self.sweep.at_least as usize
    }

    /// The flows that a run has from the start and its workloads, at the point that has most of
    /// them.
    pub fn flows(&self) -> (usize, usize) {
        let flows = |plan: &Plan| plan.groups.iter().map(|group| group.count() as usize).sum();
        let most = |of: &dyn Fn(&Plan) -> usize| self.points.known().map(of).max().unwrap_or(0);
        (most(&flows), most(&|plan| plan.workloads.len()))
    }

    /// The links of a run, at the point that has most of them.
    pub fn links(&self) -> usize {
        self.points.known().map(|plan| plan.links.len()).max().unwrap_or(0)
    }

    /// The seed that all runs begin from, unless the sweep varies it.
    pub fn seed(&self) -> u64 {
        self.points.first().seed
    }

    /// A run: the repetitions of a point follow each other; the last axis moves fastest from point
    /// to point.
    ///
    /// # Panics
    /// There are no more than [`Scenario::runs`], or it is one that [`Scenario::read_spec`]
    /// refuses.
    pub fn spec(&self, run: usize) -> RunSpec {
        self.read_spec(run).unwrap_or_else(|error| panic!("run {run}: {}", error.render(false)))
    }

    /// The specification of a run, of whatever point.
    ///
    /// # Errors
    /// Its point is wrong: one of [`Scenario::wrong`], or of those that were not read in advance.
    ///
    /// # Panics
    /// There are no more than [`Scenario::runs`].
    pub fn read_spec(&self, run: usize) -> Result<RunSpec, ScenarioError> {
        assert!(run < self.runs(), "there is no run {run}");
        let plan = self.points.plan(run / self.repeat(), &self.sweep)?;
        let run = (run % self.repeat()) as u64;
        let (links, flows) = plan.links_and_flows(plan.seed, run);
        Ok(RunSpec {
            title: self.title.clone(),
            duration: plan.duration,
            seed: plan.seed,
            run,
            ties: plan.timing.ties,
            links,
            flows,
            sums: plan.sums(run),
            windows: self.windows.iter().map(|&window| plan.window(window)).collect(),
            reordering: plan.recorded.reordering.clone(),
            live: plan.live().map(Box::new),
        })
    }

    /// Returns `true` if any run takes as long as it says, by the machine's clock. Such runs are
    /// done one after another.
    pub fn is_live(&self) -> bool {
        self.points.is_live()
    }

    /// Notes, in sentences, on settings of the file that the clock leaves out, and on axes without
    /// effect.
    pub fn notes(&self) -> Vec<String> {
        let mut notes = notes::of(self.points.known(), &self.expects);
        notes.extend(effect::notes(&self.sweep, &self.points));
        notes.extend(self.sweep.notes.iter().cloned());
        notes.extend(self.notes_on_wrong());
        notes
    }

    /// The link directions whose queues are to be recorded.
    pub fn recorded_queues(&self) -> &[DirectionId] {
        // A sweep varies neither the links' names nor this.
        &self.points.first().recorded.queues
    }

    /// Returns `true` if anything is to be recorded.
    pub fn records_anything(&self) -> bool {
        !self.recorded_queues().is_empty()
            || self.records_tcp()
            || self.records_qlog()
            || self.records_siftr()
            || self.records_ertt()
            || self.records_flows()
            || self.reordering_every().is_some()
            || self.series().is_some()
            || self.records_packets()
    }

    /// Returns `true` if ACKs, retransmissions and losses of all flows are to be recorded.
    pub fn records_tcp(&self) -> bool {
        self.points.first().recorded.tcp
    }

    /// Returns `true` if the loss recovery of senders is to be recorded in any run.
    pub fn records_qlog(&self) -> bool {
        self.points.known().any(|plan| !plan.recorded.qlogs.is_empty())
    }

    /// The logs of loss recovery of a run.
    ///
    /// # Errors
    /// As [`Scenario::read_spec`].
    pub fn qlogs(&self, run: usize) -> Result<Vec<Qlog>, ScenarioError> {
        Ok(self.points.plan(run / self.repeat(), &self.sweep)?.recorded.qlogs.clone())
    }

    /// Returns `true` if every segment that a host sends or receives is to be recorded.
    pub fn records_siftr(&self) -> bool {
        self.points.first().recorded.siftr
    }

    /// Returns `true` if the measurements of enhanced round-trip times are to be recorded.
    pub fn records_ertt(&self) -> bool {
        self.points.first().recorded.ertt
    }

    /// Returns `true` if every flow of a workload is to be recorded.
    pub fn records_flows(&self) -> bool {
        self.points.first().recorded.flows
    }

    /// The intervals of the time series that a run records, if it does.
    pub fn series(&self) -> Option<SeriesConfig> {
        self.points.first().recorded.series
    }

    /// The intervals in which reordering is recorded, if it is measured.
    pub fn reordering_every(&self) -> Option<Span> {
        self.points.first().recorded.reordering.as_ref().map(|reordering| reordering.every)
    }

    /// Returns `true` if the displacement of each packet is to be recorded.
    pub fn records_displacement(&self) -> bool {
        self.points.first().recorded.displacement
    }

    /// Returns `true` if packets are to be captured in any run.
    pub fn records_packets(&self) -> bool {
        self.points.known().any(|plan| !plan.recorded.captures.is_empty())
    }

    /// The captures of a run, and how many bytes of a packet they have at most.
    ///
    /// # Errors
    /// As [`Scenario::read_spec`].
    pub fn captures(&self, run: usize) -> Result<(Vec<Capture>, u32), ScenarioError> {
        let plan = self.points.plan(run / self.repeat(), &self.sweep)?;
        Ok((plan.recorded.captures.clone(), plan.recorded.snaplen))
    }

    /// The file with overrides applied, as TOML, with absolute paths of the files that it names:
    /// the same scenario wherever it is put.
    pub fn written(&self) -> String {
        let mut root = self.root.clone();
        self.inputs.make_absolute(&mut root);
        write::document(root.table().unwrap_or(&Default::default()))
    }

    /// The file with overrides applied and defaults filled in, as TOML: a scenario that gives the
    /// same runs.
    pub fn resolved(&self) -> String {
        self.defaults.show(&self.root, &self.sweep)
    }
}

/// Rejects records of links whose places differ between the points of a sweep: records name links
/// by their places.
fn check_records(points: &Points, root: &Table, report: &Report) {
    let first = points.first();
    let key = |plan: &Plan| plan.recorded.queues != first.recorded.queues;
    if let (true, Some(entry)) = (points.known().any(key), root.get("record")) {
        let title = "record.queue: a sweep over the topology moves these links among the others";
        let error = Diagnostic::new(title, &entry.key_place, "other numbers of links at other points");
        report.push(error.note("expected links that come first in every topology, or none"));
    }
}

/// All of a stream, unless that is too much; errors call it `path`.
fn contents(path: &Path, stream: impl Read) -> Result<Vec<u8>, LoadError> {
    let mut bytes = Vec::new();
    let read = stream.take(MAX_FILE + 1).read_to_end(&mut bytes);
    read.map_err(|source| LoadError::Read { path: path.to_owned(), source })?;
    if bytes.len() as u64 > MAX_FILE {
        return Err(LoadError::TooLarge { path: path.to_owned() });
    }
    Ok(bytes)
}

/// Writes the values that arguments left of the axes into the document, and drops the expectations
/// on others.
fn pin(root: &mut Node, sweep: &Sweep, expects: &[Expect]) {
    let Value::Table(root) = &mut root.value else { return };
    if let Some(section) = root.get_mut("sweep") {
        sweep.pin(&mut section.node);
    }
    if let Some(Value::Array(items)) = root.get_mut("expect").map(|entry| &mut entry.node.value) {
        let mut kept = expects.iter().map(|expect| (0..sweep.points()).any(|point| expect.applies(sweep, point)));
        items.retain(|_| kept.next().unwrap_or(true));
        if items.is_empty() {
            root.0.retain(|entry| entry.key != "expect");
        }
    }
}
