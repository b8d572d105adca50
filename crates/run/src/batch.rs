//! The runs of a scenario for programs that have no command line: what `--json` prints, line by
//! line, and what `--out` writes beside, in memory.
//!
//! Nothing is printed, no signal is listened to, and no file is written. Runs that need the
//! machine's clock are refused: they make devices and namespaces, which is the business of a
//! process of their own.

use std::error::Error;
use std::num::NonZeroUsize;
use std::ops::{ControlFlow, Range};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use ackclock_live::LiveError;
use ackclock_scenario::{Measures, Scenario, ScenarioError};
use ackclock_sim::{Recorders, RunError};
use ackclock_trace::Summary;
use ackclock_units::{Span, Time};
use serde_json::Value;

use crate::execute::sheets::Sheets;
use crate::execute::{self, Aside, Done, Failure};
use crate::ledger::{Ledger, as_json};
use crate::memory;
use crate::names;
use crate::output::{Output, Places};
use crate::partial::Sealed;
use crate::progress::Counter;
use crate::result::{Ended, RunResult};
use crate::selection::{Only, Selection, Shard, Walk};

pub use crate::execute::Surroundings;
pub use crate::result::with_expectations;

/// The note about a part.
const PARTIAL: &str = "a part of the runs does not evaluate expectations";

/// The selection of runs, and the way they are done.
#[derive(Clone, Debug, Default)]
pub struct Options {
    /// Only these runs, as `--only` has them.
    pub only: Option<String>,
    /// Only this share of the runs, as `--shard` has it.
    pub shard: Option<String>,
    /// Only the runs at these places, in their order: a piece of the runs that somebody has planned
    /// ([`places`], [`plan`]) and evaluates as a whole ([`expectations`]).
    pub places: Option<Range<usize>>,
    /// Number of simultaneous runs; as many as there are cores, if memory suffices.
    pub threads: Option<usize>,
    /// `true` if the records of the scenario are kept.
    pub records: bool,
    /// The surroundings of each run; none unless set.
    pub surroundings: Option<Arc<dyn Surroundings>>,
}

/// The result of a run.
#[derive(Clone, Debug)]
pub struct Line {
    /// The number of the run in the scenario.
    pub run: usize,
    /// The line of `--json`, without its end.
    pub json: String,
    /// `true` if the run failed; the line says why.
    pub failed: bool,
    /// Names and contents of the files that it has recorded.
    pub records: Vec<(String, Vec<u8>)>,
}

/// The progress of runs, and the means to end them, for another thread.
#[derive(Debug)]
pub struct BatchControl {
    stop: AtomicBool,
    progress: Counter,
}

impl BatchControl {
    /// Nothing has begun.
    #[expect(clippy::new_without_default, reason = "a default would say nothing")]
    pub fn new() -> BatchControl {
        BatchControl { stop: AtomicBool::new(false), progress: Counter::default() }
    }

    /// Ends the runs that go on, soon; no more are begun.
    pub fn stop(&self) {
        self.stop.store(true, Ordering::Relaxed);
    }

    /// Number of runs done, parts of them included, and number of all.
    pub fn reached(&self) -> (f64, f64) {
        self.progress.reached()
    }
}

/// Why runs came to no end.
#[derive(Debug, thiserror::Error)]
pub enum BatchError {
    /// The request does not fit the scenario, or the machine.
    #[error("{0:#}")]
    Refused(anyhow::Error),
    /// A point of the sweep is wrong, of those that were not read in advance.
    #[error("{name}: {error}")]
    Point {
        /// The run.
        name: String,
        /// The error.
        error: Box<ScenarioError>,
    },
    /// A run failed.
    #[error("{name} failed: {why}")]
    Failed {
        /// The run.
        name: String,
        /// Why.
        why: String,
        /// The cause that a controller or a queue from outside has given.
        cause: Option<Arc<dyn Error + Send + Sync>>,
    },
    /// Somebody has stopped them.
    #[error("interrupted")]
    Interrupted,
}

/// Does runs of a scenario; `sink` gets their lines in order, on this thread, and may break off.
/// Returns notes: what a person ought to know, in sentences.
///
/// # Errors
/// They cannot begin, or came to no end. Runs of a sweep that fail do not end it.
pub fn lines(
    scenario: &Scenario,
    options: &Options,
    control: &BatchControl,
    mut sink: impl FnMut(Line) -> ControlFlow<()>,
) -> Result<Vec<String>, BatchError> {
    if scenario.is_live() {
        let why = "a live run is for the command line, whose process makes devices and namespaces for it; here, set \
                   `run.clock` to \"virtual\", or `run.replay` to the file of a recorded run";
        return Err(BatchError::Refused(anyhow::anyhow!(why)));
    }
    let selection = selection(scenario, options).map_err(BatchError::Refused)?;
    // Where there are pieces, each would look at the memory of all points.
    let is_piece = options.places.is_some();
    let (threads, note) = match options.threads {
        Some(threads) if is_piece => (threads, None),
        threads => memory::plan(scenario, &selection, threads, execute::cores(), None).map_err(BatchError::Refused)?,
    };
    let mut notes: Vec<String> = note.into_iter().collect();
    if !selection.is_all() && !is_piece && scenario.expectations() > 0 {
        notes.push(PARTIAL.to_owned());
    }
    let mut ledger = Ledger::new(scenario, selection);
    control.progress.expect(ledger.walk.left());
    let places = options.records.then(Places::in_memory);
    let surroundings = options.surroundings.as_deref();
    let aside = Aside { places: places.as_ref(), stop: Some(&control.stop), surroundings, ..Aside::default() };
    let mut broken_off = None;
    let walk = ledger.walk.clone();
    let finished = execute::all(&walk, threads.max(1), &aside, &control.progress, |run, done| {
        match line(&mut ledger, run, done, true) {
            Ok(line) => sink(line),
            Err(error) => {
                broken_off = Some(error);
                ControlFlow::Break(())
            }
        }
    });
    match (broken_off, finished) {
        (Some(error), _) => Err(error),
        (None, Err((run, failure))) => Err(failed(scenario, run, failure)),
        (None, Ok(())) => Ok(notes),
    }
}

fn selection(scenario: &Scenario, options: &Options) -> anyhow::Result<Selection> {
    let only = options.only.as_deref().map(str::parse::<Only>).transpose();
    let only = only.map_err(|error| anyhow::anyhow!("only: {error}"))?;
    let shard = options.shard.as_deref().map(str::parse::<Shard>).transpose();
    let shard = shard.map_err(|error| anyhow::anyhow!("shard: {error}"))?;
    if only.is_some() && shard.is_some() {
        anyhow::bail!("either `only` or `shard`, not both");
    }
    let selection = Selection::of(scenario, only.as_ref(), shard)?;
    match options.places.clone() {
        Some(places) => selection.slice(scenario, places),
        None => Ok(selection),
    }
}

/// Number of places for [`Options::places`], and number of those that stay together: pieces begin
/// and end at multiples of that.
///
/// # Errors
/// What is asked for does not fit the scenario.
pub fn places(scenario: &Scenario, options: &Options) -> Result<(usize, NonZeroUsize), BatchError> {
    let selection = selection(scenario, options).map_err(BatchError::Refused)?;
    Ok((selection.count(), NonZeroUsize::new(selection.block(scenario)).unwrap_or(NonZeroUsize::MIN)))
}

/// The numbers of the runs that are done, at most if the sweep is adaptive.
///
/// # Errors
/// What is asked for does not fit the scenario.
pub fn runs(scenario: &Scenario, options: &Options) -> Result<Vec<usize>, BatchError> {
    let selection = selection(scenario, options).map_err(BatchError::Refused)?;
    Ok((0..selection.count()).filter_map(|place| selection.run(place)).collect())
}

/// Prepares the output directory of a sweep, or of a single run, as `--out` does; with `resume` it
/// goes on with what is there. Gives also the first place that is to be done; `each` gets the lines
/// of the runs before it.
///
/// # Errors
/// There is something else, or another program writes there ([`crate::output::InUse`]).
pub fn open(
    dir: &Path,
    scenario: &Scenario,
    options: &Options,
    resume: bool,
    overwrite: bool,
    mut each: impl FnMut(&str) -> anyhow::Result<()>,
) -> anyhow::Result<(Output, usize)> {
    let selection = selection(scenario, options)?;
    let output = Output::prepare(dir, scenario, &selection, resume, overwrite)?;
    let places = selection.count();
    let mut walk = Walk::new(scenario, selection);
    output.each_earlier(|line| {
        let (run, measures) = measures(scenario, line).map_err(anyhow::Error::msg)?;
        walk.step(run, &measures);
        each(line)
    })?;
    Ok((output, places - walk.left()))
}

/// Plans the number of simultaneous runs: `threads`, or as many as there are cores or as fit into
/// the memory of the machine, of which `limit` bytes may be used. Returns it with a note if they
/// may not fit.
///
/// # Errors
/// They do not fit.
pub fn plan(
    scenario: &Scenario,
    threads: Option<usize>,
    limit: Option<u64>,
) -> Result<(usize, Option<String>), BatchError> {
    let everything = Selection::of(scenario, None, None).map_err(BatchError::Refused)?;
    memory::plan(scenario, &everything, threads, execute::cores(), limit).map_err(BatchError::Refused)
}

/// The line of a run that failed for a reason that this process does not see.
///
/// # Errors
/// There is no such run.
pub fn failure(scenario: &Scenario, run: usize, why: String) -> Result<Line, BatchError> {
    if run >= scenario.runs() {
        return Err(BatchError::Refused(anyhow::anyhow!("run {run} of {}", scenario.runs())));
    }
    let everything = Selection::of(scenario, None, None).map_err(BatchError::Refused)?;
    line(&mut Ledger::new(scenario, everything), run, Err(why), false)
}

/// The run of a line, and the scenario's measurements in it.
///
/// # Errors
/// It is no line of a run.
pub fn measures(scenario: &Scenario, line: &str) -> Result<(usize, Measures), String> {
    let summary: Value = serde_json::from_str(line).map_err(|error| error.to_string())?;
    let run = summary["index"].as_u64().and_then(|run| usize::try_from(run).ok()).filter(|&run| run < scenario.runs());
    let run = run.ok_or_else(|| "it has no number of a run of this scenario".to_owned())?;
    Ok((run, if summary["failed"] == true { Measures::new() } else { scenario.measure(&summary) }))
}

/// The expectations as the last line has them, from the measures of all runs in their order;
/// `None` for those that a settled point did not need.
pub fn expectations(scenario: &Scenario, measures: &[Option<Measures>]) -> Vec<Value> {
    as_json(scenario, &scenario.evaluations(measures))
}

/// Enters a run, and writes its line; behind the last one are the expectations, if they are judged.
fn line(ledger: &mut Ledger<'_>, run: usize, done: Result<Done, String>, judged: bool) -> Result<Line, BatchError> {
    let scenario = ledger.scenario;
    let ended = match done {
        Ok(done) => Ended::of(done, scenario.is_sweep()),
        Err(error) => Ended::failed(scenario, run, error),
    };
    let Ended { summary, records, error, broken_off } = ended;
    if let Some(why) = broken_off {
        return Err(match why {
            execute::BrokenOff::Interrupted => BatchError::Interrupted,
            execute::BrokenOff::Failed(error) => {
                BatchError::Failed { name: names::of_run(scenario, run), why: format!("{error:#}"), cause: None }
            }
        });
    }
    let summary = ledger.entitled(run, summary);
    let measures = if error.is_some() { Default::default() } else { scenario.measure_summary(&summary) };
    ledger.keep(run, measures);
    let expectations = if judged { ledger.judge(false) } else { Vec::new() };
    let failed = error.is_some();
    let result = RunResult { summary: &summary, failed, error: error.as_deref(), expectations };
    let json = serde_json::to_string(&result).map_err(|error| BatchError::Refused(error.into()))?;
    let records = records.into_iter().filter_map(Sealed::into_contents).collect();
    Ok(Line { run, json, failed, records })
}

/// The line of a run that somebody else has done.
///
/// # Errors
/// It cannot be written.
pub fn line_of(summary: Summary<()>) -> serde_json::Result<Line> {
    let summary = summary.with_params(serde_json::Map::new());
    let result = RunResult { summary: &summary, failed: false, error: None, expectations: Vec::new() };
    Ok(Line { run: 0, json: serde_json::to_string(&result)?, failed: false, records: Vec::new() })
}

/// The line of a run that somebody else does, with what a scenario asks to be recorded: `run` gets
/// the recorders.
///
/// # Errors
/// Those of `run`; inside, a record could not be begun or completed.
pub fn recorded<E>(
    scenario: &Scenario,
    run: impl FnOnce(&mut Recorders<'_>) -> Result<Summary<()>, E>,
) -> Result<Result<Line, BatchError>, E> {
    let places = Places::in_memory();
    let mut sheets = match Sheets::open(scenario, 0, Some(&places)) {
        Ok(sheets) => sheets,
        Err(error) => return Ok(Err(BatchError::Refused(error))),
    };
    let summary = run(&mut sheets.recorders(None))?;
    let (records, written) = sheets.finish(Time::ZERO + Span::from_secs_f64(summary.duration_s));
    let records = records.into_iter().filter_map(Sealed::into_contents).collect();
    let line = written.and_then(|()| Ok(Line { records, ..line_of(summary)? }));
    Ok(line.map_err(BatchError::Refused))
}

fn failed(scenario: &Scenario, run: usize, failure: Failure) -> BatchError {
    let name = names::of_run(scenario, run);
    match failure {
        Failure::Run(RunError::Interrupted) | Failure::Live(LiveError::Interrupted) => BatchError::Interrupted,
        Failure::Run(error) => BatchError::Failed { name, why: error.to_string(), cause: cause(&error) },
        Failure::Point(error) => BatchError::Point { name, error },
        Failure::Live(error) => BatchError::Refused(error.into()),
        Failure::Output(error) => BatchError::Failed { name, why: format!("{error:#}"), cause: None },
    }
}

fn cause(error: &RunError) -> Option<Arc<dyn Error + Send + Sync>> {
    match error {
        RunError::Own { failure, .. } => failure.source.clone(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SWEEP: &str = "schema = 1\n[run]\nduration = \"2s\"\n[links.a]\nrate = \"1mbit\"\ndelay = \"5ms\"\n\
                         [[flows]]\nid = \"f\"\npath = [\"a\"]\n[record]\nseries = \"500ms\"\n\
                         [sweep]\nrepeat = 2\naxes.\"links.a.rate\" = [\"1mbit\", \"2mbit\"]\n\
                         [[expect]]\nmetric = \"flows.f.0.goodput_bps\"\nat_least = 1\n";

    fn sweep() -> Scenario {
        Scenario::parse("test.toml", SWEEP.as_bytes(), &[]).unwrap_or_else(|error| panic!("{error}"))
    }

    fn all(options: &Options) -> Result<Vec<Line>, BatchError> {
        let mut all = Vec::new();
        let sink = |line| {
            all.push(line);
            ControlFlow::Continue(())
        };
        lines(&sweep(), options, &BatchControl::new(), sink).map(|_| all)
    }

    #[test]
    fn lines_come_in_order_with_records_and_expectations() {
        let control = BatchControl::new();
        let mut found = Vec::new();
        let options = Options { threads: Some(3), records: true, ..Options::default() };
        let sink = |line: Line| {
            found.push(line);
            ControlFlow::Continue(())
        };
        assert_eq!(lines(&sweep(), &options, &control, sink).expect("they run"), Vec::<String>::new());
        assert_eq!(found.iter().map(|line| line.run).collect::<Vec<_>>(), [0, 1, 2, 3]);
        assert_eq!(control.reached(), (4.0, 4.0));
        // The last line has one expectation for each point.
        let judged = |line: &Line| line.json.contains("\"expectations\":[");
        assert_eq!(found.iter().map(judged).collect::<Vec<_>>(), [false, false, false, true]);
        for line in &found {
            let [(name, series)] = &line.records[..] else { panic!("one record: {:?}", line.records.len()) };
            let rows = series.split(|&byte| byte == b'\n').filter(|row| !row.is_empty()).count();
            // A header, and 4 intervals of a flow and two link directions.
            assert_eq!((name.as_str(), rows), ("series.csv", 1 + 4 * 3));
        }
    }

    #[test]
    fn parts_are_those_of_the_whole() {
        let whole = all(&Options::default()).expect("they run");
        let part = all(&Options { only: Some("1-2".to_owned()), ..Options::default() }).expect("they run");
        let json = |lines: &[Line]| lines.iter().map(|line| line.json.clone()).collect::<Vec<_>>();
        assert_eq!(json(&part), json(&whole[1..3]));
        let both = Options { only: Some("1".to_owned()), shard: Some("0/2".to_owned()), ..Options::default() };
        for (wrong, why) in [
            (Options { only: Some("x".to_owned()), ..Options::default() }, "only: expected numbers of runs"),
            (Options { shard: Some("2/2".to_owned()), ..Options::default() }, "shard: shards count from 0"),
            (both, "either `only` or `shard`"),
        ] {
            let error = all(&wrong).expect_err(why).to_string();
            assert!(error.starts_with(why), "{error}");
        }
    }

    #[test]
    fn pieces_make_the_whole() {
        let scenario = sweep();
        let whole = all(&Options::default()).expect("they run");
        assert_eq!(places(&scenario, &Options::default()).expect("a sweep"), (4, NonZeroUsize::MIN));
        let piece = |places| Options { places: Some(places), threads: Some(1), ..Options::default() };
        let mut pieces = all(&piece(3..4)).expect("they run");
        pieces.splice(0..0, all(&piece(0..3)).expect("they run"));
        let mut measured = vec![None; 4];
        for line in &pieces {
            let (run, found) = measures(&scenario, &line.json).expect("a line");
            measured[run] = Some(found);
        }
        let last = pieces.pop().expect("four of them").json;
        pieces.push(Line { json: with_expectations(last, &expectations(&scenario, &measured)), ..line_without() });
        let json = |lines: &[Line]| lines.iter().map(|line| line.json.clone()).collect::<Vec<_>>();
        assert_eq!(json(&pieces), json(&whole));
        assert!(all(&piece(3..5)).is_err_and(|error| error.to_string().contains("no runs at places 3..5 of 4")));
        assert!(measures(&scenario, "{\"index\":4}").is_err());
    }

    fn line_without() -> Line {
        Line { run: 3, json: String::new(), failed: false, records: Vec::new() }
    }

    #[test]
    fn what_is_stopped_is_interrupted() {
        let control = BatchControl::new();
        control.stop();
        let stopped = lines(&sweep(), &Options::default(), &control, |_| ControlFlow::Continue(()));
        assert!(matches!(stopped, Err(BatchError::Interrupted)), "{stopped:?}");
    }
}
