//! A scenario from its file to the exit status: its runs, what is reported of them, and what is
//! kept.

mod input;
pub(crate) mod judged;
pub(crate) mod ledger;
pub(crate) mod result;
mod watched;

use std::ops::ControlFlow;

use ackclock_live::LiveError;
use ackclock_scenario::{Measures, Miss, Own, Scenario};
use ackclock_sim::RunError;
use ackclock_trace::{ChangeSummary, Summary};
use anyhow::Context;
#[cfg(unix)]
use nix::sys::resource::{Resource, getrlimit, setrlimit};
use serde_json::Value;

use crate::args::Args;
use crate::batch;
use crate::control::{self, Controls, Plan};
use crate::execute::{self, Aside, BrokenOff, Done, Failure};
use crate::output::Output;
use crate::partial::Sealed;
use crate::progress::Progress;
use crate::report::{self, Columns, Report};
use crate::selection::Selection;
use crate::watch::{self, Watching};
use input::{check_capture, check_live, load};
use ledger::Ledger;
use result::{Ended, RunResult, Stored};

use crate::{BAD_INPUT, INTERRUPTED, MISSED, RUN_FAILED, duration, live, memory, print, print_line, say};

/// Carries out what the command line asks of a scenario. Returns the exit status.
pub(crate) fn run(args: &Args, own: &Own) -> anyhow::Result<u8> {
    let scenario = load(args, own)?;
    if args.show_config {
        let _ = print(&scenario.resolved())?;
        return Ok(0);
    }
    check_capture(args, &scenario)?;
    control::check_options(args, &scenario)?;
    check_live(&scenario)?;
    let changes = args.changes.as_deref().map(control::read_changes).transpose()?;
    let plan = Plan::read(&scenario, changes.as_deref().unwrap_or_default())?;
    for note in scenario.notes() {
        say(&format!("note: {note}"));
    }
    let threads = threads(args, &scenario)?;
    // Programs of a live run have the limit that they would have anyway.
    if !scenario.is_live() {
        raise_file_limit();
    }
    let watching = watch::check(args, &scenario)?;
    let mut session = Session::open(args, &scenario)?;
    session.say_notes();
    if let Some(note) = duration::note(&session.ledger.walk, threads) {
        say(&note);
    }
    session.plan = plan;
    let finished = session.execute_watched(threads, watching)?;
    match session.settle(finished)? {
        Some(status) => Ok(status),
        None => session.finish(),
    }
}

/// Does the runs of a scenario into `--out` and reports nothing but failures. Returns the exit
/// status if they came to no end.
pub(crate) fn again(args: &Args, scenario: &Scenario, plan: Plan) -> anyhow::Result<Option<u8>> {
    let threads = threads(args, scenario)?;
    let mut session = Session::open(args, scenario)?;
    session.plan = plan;
    let finished = session.execute(threads, None, None);
    if let Some(status) = session.settle(finished)? {
        return Ok(Some(status));
    }
    match &session.ended_early {
        Some((_, BrokenOff::Interrupted)) => Ok(Some(INTERRUPTED)),
        Some((_, BrokenOff::Failed(_))) => Ok(Some(RUN_FAILED)),
        None => session.complete().map(|()| None),
    }
}

/// Completes a directory with the runs of others: for each run, `next` gives its line and its
/// records. Returns the exit status.
pub(crate) fn merged(
    args: &Args,
    scenario: &Scenario,
    mut next: impl FnMut(usize) -> anyhow::Result<(String, Vec<Sealed>)>,
) -> anyhow::Result<u8> {
    let mut session = Session::open(args, scenario)?;
    while let Some(run) = session.ledger.walk.next() {
        let (line, records) = next(run)?;
        session.take_line(&line)?;
        let line = batch::with_expectations(line, &session.judge());
        if let Some(output) = &mut session.output {
            output.add_line(&line, records).context("cannot write the summary")?;
        }
    }
    session.finish()
}

/// Lets this process have as many open files as it may: captures are one each.
fn raise_file_limit() {
    #[cfg(unix)]
    if let Ok((_, most)) = getrlimit(Resource::RLIMIT_NOFILE) {
        let _ = setrlimit(Resource::RLIMIT_NOFILE, most, most);
    }
}

/// How many runs go on at the same time.
fn threads(args: &Args, scenario: &Scenario) -> anyhow::Result<usize> {
    let selection = Selection::of(scenario, args.only.as_ref(), args.shard)?;
    let asked = args.threads.map(|threads| threads.get().into());
    memory::threads(scenario, &selection, asked)
}

/// How the runs of a scenario have ended: which did not, and why.
type Ran = Result<(), (usize, Failure)>;

/// The runs of a scenario as far as they have come.
struct Session<'a> {
    args: &'a Args,
    scenario: &'a Scenario,
    ledger: Ledger<'a>,
    output: Option<Output>,
    report: Report<'a>,
    /// Whether somebody else reports the results.
    silent: bool,
    /// The runs of the sweep that failed.
    failed: usize,
    /// What makes live runs unreliable.
    troubles: Vec<String>,
    /// The run that came to no end, and why.
    ended_early: Option<(usize, BrokenOff)>,
    /// Whether somebody still reads standard output.
    listening: bool,
    /// Why the results of a run could not be written.
    written: anyhow::Result<()>,
    /// What is to be changed in the only run, and what was.
    plan: Plan,
    changes: Vec<ChangeSummary>,
}

impl<'a> Session<'a> {
    /// Prepares the output before anything runs.
    fn open(args: &'a Args, scenario: &'a Scenario) -> anyhow::Result<Session<'a>> {
        let selection = Selection::of(scenario, args.only.as_ref(), args.shard)?;
        let output = match &args.out {
            Some(dir) => Some(
                Output::prepare(dir, scenario, &selection, args.resume, args.overwrite).context("cannot use --out")?,
            ),
            None => None,
        };
        if let Some(kept) = output.as_ref().and_then(Output::kept) {
            say(&format!("note: {kept}"));
        }
        let mut session = Session {
            args,
            scenario,
            ledger: Ledger::new(scenario, selection),
            output,
            report: Report::new(scenario, Columns::read(&args.columns, scenario)?),
            silent: false,
            failed: 0,
            troubles: Vec::new(),
            ended_early: None,
            listening: true,
            written: Ok(()),
            plan: Plan::default(),
            changes: Vec::new(),
        };
        session.take_earlier()?;
        Ok(session)
    }

    /// Says what the results will lack.
    fn say_notes(&self) {
        if self.scenario.records_anything() && self.output.is_none() {
            say("note: the files that `[record]` asks for are only written with --out DIR");
        }
        if !self.ledger.is_whole && self.scenario.expectations() > 0 {
            let merge = if self.args.shard.is_some() { "; `ackclock merge` does" } else { "" };
            say(&format!("note: a part of the runs does not evaluate expectations{merge}"));
        }
    }

    /// Takes in the results of the runs that had finished before.
    fn take_earlier(&mut self) -> anyhow::Result<()> {
        if self.output.as_ref().map_or(0, Output::earlier) == 0 {
            return Ok(());
        }
        let Some(output) = self.output.take() else { return Ok(()) };
        let runs = at_most(self.scenario, self.ledger.walk.left());
        say(&format!("note: {} of {runs} runs had finished before", output.earlier()));
        let taken = output.each_earlier(|line| self.take_line(line));
        self.output = Some(output);
        taken
    }

    /// Takes in a run that has finished, from its line.
    fn take_line(&mut self, line: &str) -> anyhow::Result<()> {
        let stored = Stored::read(line)?;
        let run = self.ledger.walk.next().context("more lines than runs")?;
        self.troubles_of(run, &stored.summary);
        match stored.error() {
            Some(error) => self.fail(run, error),
            None => self.ledger.keep(run, self.scenario.measure(&stored.json)),
        }
        if self.shows_tables() && stored.error().is_none() {
            self.report.add(run, &stored.summary);
        }
        if self.args.json && self.listening {
            self.listening = print(&format!("{line}\n"))?.is_continue();
        }
        Ok(())
    }

    fn shows_tables(&self) -> bool {
        !self.args.json && !self.args.quiet && !self.silent
    }

    fn troubles_of<P>(&mut self, run: usize, summary: &Summary<P>) {
        let name = report::name_of(self.scenario, run);
        self.troubles.extend(live::troubles(summary).map(|trouble| format!("{trouble} ({name})")));
    }

    /// Takes in that a run of the sweep failed.
    fn fail(&mut self, run: usize, error: &str) {
        say(&format!("error: {} failed: {error}", report::name_of(self.scenario, run)));
        self.failed += 1;
        self.ledger.keep(run, Measures::new());
        if self.shows_tables() {
            self.report.fail(run);
        }
    }

    /// Does all runs, so many at the same time, and takes in their results in order.
    fn execute(&mut self, threads: usize, controls: Option<&Controls>, watching: Option<&Watching>) -> Ran {
        let (args, scenario) = (self.args, self.scenario);
        let plan = std::mem::take(&mut self.plan);
        let places =
            self.output.as_ref().filter(|_| scenario.records_anything() || scenario.is_live()).map(Output::places);
        let aside = Aside {
            places: places.as_ref(),
            capture: args.record.as_deref(),
            snap: args.snap,
            stop: None,
            watching,
            controls,
            plan: Some(&plan).filter(|plan| !plan.is_empty()),
            surroundings: None,
        };
        if !scenario.is_live() {
            // Without it a signal ends the program as ever.
            let _ = ackclock_live::listen();
        }
        // Before there is a bar, which would be on the same line.
        if scenario.is_live() && !args.quiet {
            say(&live::heading(scenario));
        }
        let progress = Progress::new(self.ledger.walk.left(), args.quiet || args.watch);
        if self.ledger.walk.left() == 0 {
            self.judge();
            return Ok(());
        }
        let walk = self.ledger.walk.clone();
        let sink = |run, done| self.take(run, done, &progress);
        let finished = execute::all(&walk, threads, &aside, &progress, sink);
        progress.clear();
        finished
    }

    /// Takes in the results of a run. Breaks off when nobody reads on and nothing is kept, or what
    /// is there is not complete.
    fn take(&mut self, run: usize, done: Result<Done, String>, progress: &Progress) -> ControlFlow<()> {
        let ended = match done {
            Ok(done) => Ended::of(done, self.scenario.is_sweep()),
            Err(error) => Ended::failed(self.scenario, run, error),
        };
        self.written = self.add(run, ended, progress);
        let unheard = !self.listening && self.output.is_none();
        if self.written.is_err() || self.ended_early.is_some() || unheard {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn add(&mut self, run: usize, ended: Ended, progress: &Progress) -> anyhow::Result<()> {
        let Ended { summary, records, error, broken_off } = ended;
        let summary = self.ledger.entitled(run, summary);
        self.changes.clone_from(&summary.changes);
        self.troubles_of(run, &summary);
        match &error {
            Some(error) => progress.suspended(|| self.fail(run, error)),
            None => self.ledger.keep(run, self.scenario.measure_summary(&summary)),
        }
        self.ended_early = broken_off.map(|why| (run, why));
        let expectations = self.judge();
        let result = RunResult { summary: &summary, failed: error.is_some(), error: error.as_deref(), expectations };
        if self.args.json && self.listening {
            self.listening = progress.suspended(|| print_line(&result))?.is_continue();
        } else if self.shows_tables() && error.is_none() {
            self.report.add(run, &summary);
        }
        match &mut self.output {
            Some(output) => output.add(&result, records).context("cannot write the summary"),
            None => Ok(()),
        }
    }

    /// The expectations, after the last run.
    fn judge(&mut self) -> Vec<Value> {
        self.ledger.judge(self.ended_early.is_some())
    }

    /// Sorts out how the runs ended. A status means that there are no results to report.
    fn settle(&mut self, finished: Result<(), (usize, Failure)>) -> anyhow::Result<Option<u8>> {
        let finished = match finished {
            // A run in virtual time beside live ones, or one that was to be the next.
            Err((run, Failure::Run(RunError::Interrupted) | Failure::Live(LiveError::Interrupted))) => {
                self.ended_early = Some((run, BrokenOff::Interrupted));
                Ok(())
            }
            // What live runs before it have measured is kept.
            Err((run, Failure::Live(error))) if run > 0 => {
                self.ended_early = Some((run, BrokenOff::Failed(error.into())));
                Ok(())
            }
            finished => finished,
        };
        if let Some((run, BrokenOff::Failed(error))) = &self.ended_early {
            say(&format!("error: {} was broken off: {error:#}", report::name_of(self.scenario, *run)));
        }
        match finished {
            Ok(()) => Ok(None),
            Err((_, Failure::Output(error))) => {
                self.say_kept();
                Err(error)
            }
            Err((run, Failure::Point(error))) => {
                say(&format!("error: {}: {error}", report::name_of(self.scenario, run)));
                Ok(Some(BAD_INPUT))
            }
            Err((run, Failure::Run(error))) => {
                say(&format!("error: {} failed: {error}", report::name_of(self.scenario, run)));
                Ok(Some(RUN_FAILED))
            }
            Err((_, Failure::Live(error))) => Err(error.into()),
        }
    }

    /// Completes the output and reports the results. Returns the exit status.
    fn finish(mut self) -> anyhow::Result<u8> {
        let live = self.scenario.is_live();
        if self.ended_early.is_some() && self.ledger.walk.done() == 0 && !live {
            // There is nothing to keep, and an earlier output stays as it is.
            self.output = None;
        }
        if self.output.is_none() {
            std::mem::replace(&mut self.written, Ok(()))?;
            if !self.listening {
                return Ok(0);
            }
        }
        // A live run cannot be repeated: its results are reported, whatever became of its files.
        let completed = self.complete();
        if completed.is_ok() || live {
            self.show()?;
        }
        for trouble in &self.troubles {
            say(trouble);
        }
        if self.ledger.is_whole {
            report::unsettled(self.scenario, &self.ledger.measures).iter().for_each(|note| say(note));
        }
        match completed {
            Ok(()) => {}
            // Its input was not bad: it has run.
            Err(error) if live => {
                say(&format!("error: {error:#}"));
                return Ok(RUN_FAILED);
            }
            Err(error) => return Err(error),
        }
        Ok(match &self.ended_early {
            Some((run, why)) => self.partial(*run, why),
            None => self.status(),
        })
    }

    /// That runs are kept whose results were written before something could not be.
    fn say_kept(&self) {
        let done = self.ledger.walk.done();
        if let Some(dir) = self.args.out.as_ref().filter(|_| self.scenario.is_sweep() && done > 0) {
            let dir = dir.display();
            say(&format!(
                "note: the results of the first {done} runs are kept in {dir}; --resume goes on with the others"
            ));
        }
    }

    fn complete(&mut self) -> anyhow::Result<()> {
        if self.written.is_err() {
            self.say_kept();
        }
        std::mem::replace(&mut self.written, Ok(()))?;
        match self.output.take() {
            Some(output) => {
                let finished = output.finish(self.scenario, self.ended_early.is_some(), self.failed, &self.changes);
                finished.context("cannot complete --out")
            }
            None => Ok(()),
        }
    }

    /// Prints the report, if it is wanted and there is anything in it.
    fn show(&mut self) -> anyhow::Result<()> {
        if self.shows_tables() && self.ledger.walk.done() > 0 {
            let whole = self.ended_early.is_none() && self.ledger.is_whole;
            let mut text = self.report.text();
            if whole {
                let well = self.failed == 0 && self.troubles.is_empty();
                text += &report::ending(self.args, self.scenario, &self.ledger.evaluations, well);
            }
            let _ = print(&text)?;
        }
        Ok(())
    }

    /// The exit status after a run that came to no end, with notes about what is left.
    fn partial(&self, run: usize, why: &BrokenOff) -> u8 {
        let scenario = self.scenario;
        let run = report::name_of(scenario, run);
        say(&format!("note: {run} was not completed; the results are partial, and expectations are not evaluated"));
        if !scenario.is_live() && scenario.runs() > 1 {
            let where_to = match &self.args.out {
                Some(dir) if self.ledger.walk.done() > 0 => {
                    format!(", and are kept in {}; --resume goes on with the others", dir.display())
                }
                _ => String::new(),
            };
            let done = self.ledger.walk.done();
            let of = at_most(scenario, done + self.ledger.walk.left());
            say(&format!("note: {done} of {of} runs had finished{where_to}"));
        }
        match why {
            BrokenOff::Interrupted => INTERRUPTED,
            BrokenOff::Failed(error) if is_damaged_capture(error) => BAD_INPUT,
            BrokenOff::Failed(_) => RUN_FAILED,
        }
    }

    /// The exit status after all runs, with the expectations that were missed.
    fn status(&self) -> u8 {
        let misses = self.scenario.misses(&self.ledger.evaluations);
        for miss in &misses {
            say(&self.missed(miss));
        }
        match (self.failed, misses.is_empty() && self.troubles.is_empty()) {
            (0, true) => 0,
            (0, false) => MISSED,
            (failed, _) => {
                say(&format!("error: {failed} of {} runs failed", self.ledger.walk.done()));
                RUN_FAILED
            }
        }
    }

    fn missed(&self, miss: &Miss) -> String {
        let found = match miss.found {
            Some(found) => format!("is {}", report::number(found)),
            None => miss.reason.unwrap_or("has no value").to_owned(),
        };
        let (metric, expected) = (&miss.metric, &miss.expected);
        let place = match miss.run {
            Some(run) => report::name_of(self.scenario, run),
            None => report::name_of_point(self.scenario, miss.point),
        };
        format!("expect missed: {metric} {found}, expected {expected} ({place})")
    }
}

/// A number of runs, which may be fewer in the end if a sweep is adaptive.
fn at_most(scenario: &Scenario, runs: usize) -> String {
    if scenario.is_adaptive() { format!("at most {runs}") } else { runs.to_string() }
}

/// Whether the capture that a run is fed with has ended it: what came before is kept, and the input
/// was bad all the same.
fn is_damaged_capture(error: &anyhow::Error) -> bool {
    matches!(error.downcast_ref(), Some(LiveError::Capture { .. }))
}
