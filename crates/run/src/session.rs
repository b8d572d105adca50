//! The runs of a scenario into a directory, and to somebody who hears of them.

use std::ops::ControlFlow;
use std::path::PathBuf;

use ackclock_live::LiveError;
use ackclock_scenario::{Measures, Scenario};
use ackclock_sim::RunError;
use ackclock_trace::{ChangeSummary, CommandSummary, Summary};
use anyhow::Context;
use serde_json::Value;

use crate::attendant::Attendant;
use crate::execute::{self, Aside, BrokenOff, Done, Failure};
use crate::ledger::Ledger;
use crate::memory;
use crate::names;
use crate::output::Output;
use crate::pilot::PilotPlan;
use crate::progress::Progress;
use crate::result::{Ended, RunResult, Stored};
use crate::selection::{Only, Selection, Shard};
use crate::status::{BAD_INPUT, RUN_FAILED};

/// The request: the runs, the way they are done, and the place of their results.
#[derive(Clone, Debug, Default)]
pub struct Wanted {
    /// The output directory.
    pub out: Option<PathBuf>,
    /// Goes on with the sweep in it.
    pub resume: bool,
    /// Records nothing into it, whatever the scenario asks for.
    pub without_records: bool,
    /// Replaces results in it that are partial.
    pub overwrite: bool,
    /// Only these runs.
    pub only: Option<Only>,
    /// Only this share of the runs.
    pub shard: Option<Shard>,
    /// Number of simultaneous runs; as many as there are cores, if memory suffices.
    pub threads: Option<usize>,
    /// The capture of the only run, which is live or has hosts with stacks.
    pub record: Option<PathBuf>,
    /// The most bytes of a packet in it.
    pub snap: Option<u32>,
}

impl Wanted {
    /// Number of simultaneous runs, with a note if they may not fit into memory.
    ///
    /// # Errors
    /// They do not fit, or what is asked for does not fit the scenario.
    pub fn threads(&self, scenario: &Scenario) -> anyhow::Result<(usize, Option<String>)> {
        let selection = Selection::of(scenario, self.only.as_ref(), self.shard)?;
        // Live runs would be in each other's way.
        let (asked, cores) = if scenario.is_live() { (Some(1), 1) } else { (self.threads, execute::cores()) };
        memory::plan(scenario, &selection, asked, cores, None)
    }
}

/// Hears of the runs of a session, on its thread.
pub trait Listener {
    /// A note or an error, in a sentence for a person.
    fn say(&self, sentence: &str);

    /// A run has been done.
    ///
    /// # Errors
    /// It cannot be shown.
    fn result(&mut self, _run: usize, _result: &RunResult<'_>) -> anyhow::Result<()> {
        Ok(())
    }

    /// A run had been done before; `line` is its line.
    ///
    /// # Errors
    /// It cannot be shown.
    fn earlier(&mut self, _run: usize, _stored: &Stored, _line: &str) -> anyhow::Result<()> {
        Ok(())
    }

    /// Returns `true` if anybody still listens.
    fn listens(&self) -> bool {
        true
    }
}

/// The end of a scenario's runs: the one that failed, and the reason.
pub type Ran = Result<(), (usize, Failure)>;

/// The runs of a scenario as far as they have come.
pub struct Session<'a, L> {
    /// The request.
    pub wanted: &'a Wanted,
    /// The scenario.
    pub scenario: &'a Scenario,
    /// The measurements of the runs.
    pub ledger: Ledger<'a>,
    /// The output directory, until it is complete.
    pub output: Option<Output>,
    /// The listener of the runs.
    pub listener: L,
    /// The runs of the sweep that failed.
    pub failed: usize,
    /// Reasons why live runs are unreliable.
    pub troubles: Vec<String>,
    /// The run that came to no end, and why.
    pub ended_early: Option<(usize, BrokenOff)>,
    /// Why the results of a run could not be written.
    written: anyhow::Result<()>,
    /// The planned changes of the only run.
    pub plan: PilotPlan,
    /// The changes made.
    changes: Vec<ChangeSummary>,
}

impl<'a, L: Listener> Session<'a, L> {
    /// Prepares the output before anything runs, and takes in the runs that had finished before.
    ///
    /// # Errors
    /// There is somebody else's directory, or what was asked for does not fit the scenario.
    pub fn open(wanted: &'a Wanted, scenario: &'a Scenario, listener: L) -> anyhow::Result<Session<'a, L>> {
        let selection = Selection::of(scenario, wanted.only.as_ref(), wanted.shard)?;
        let output = match &wanted.out {
            Some(dir) => Some(
                Output::prepare(dir, scenario, &selection, wanted.resume, wanted.overwrite)
                    .context("cannot use --out")?,
            ),
            None => None,
        };
        if let Some(kept) = output.as_ref().and_then(Output::kept) {
            listener.say(&format!("note: {kept}"));
        }
        let mut session = Session {
            wanted,
            scenario,
            ledger: Ledger::new(scenario, selection),
            output,
            listener,
            failed: 0,
            troubles: Vec::new(),
            ended_early: None,
            written: Ok(()),
            plan: PilotPlan::default(),
            changes: Vec::new(),
        };
        session.take_earlier()?;
        Ok(session)
    }

    /// Takes in the results of the runs that had finished before.
    fn take_earlier(&mut self) -> anyhow::Result<()> {
        if self.output.as_ref().map_or(0, Output::earlier) == 0 {
            return Ok(());
        }
        let Some(output) = self.output.take() else { return Ok(()) };
        let runs = at_most(self.scenario, self.ledger.walk.left());
        self.listener.say(&format!("note: {} of {runs} runs had finished before", output.earlier()));
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
        self.listener.earlier(run, &stored, line)
    }

    /// Completes the output with runs of others: for each, `next` gives its line and its records.
    ///
    /// # Errors
    /// Those of `next`; or a line is none, or cannot be written.
    pub(crate) fn take_others(
        &mut self,
        mut next: impl FnMut(usize) -> anyhow::Result<(String, Vec<crate::partial::Sealed>)>,
    ) -> anyhow::Result<()> {
        while let Some(run) = self.ledger.walk.next() {
            let (line, records) = next(run)?;
            self.take_line(&line)?;
            let line = crate::result::with_expectations(line, &self.judge());
            if let Some(output) = &mut self.output {
                output.add_line(&line, records).context("cannot write the summary")?;
            }
        }
        Ok(())
    }

    fn troubles_of<P>(&mut self, run: usize, summary: &Summary<P>) {
        let name = names::of_run(self.scenario, run);
        self.troubles.extend(troubles(summary).map(|trouble| format!("{trouble} ({name})")));
    }

    /// Takes in that a run of the sweep failed.
    fn fail(&mut self, run: usize, error: &str) {
        self.listener.say(&format!("error: {} failed: {error}", names::of_run(self.scenario, run)));
        self.failed += 1;
        self.ledger.keep(run, Measures::new());
    }

    /// Does all runs, so many at the same time, and takes in their results in order.
    ///
    /// # Errors
    /// The first run in order that gave nothing and ended all, and why.
    pub fn execute(&mut self, threads: usize, attendant: Option<&dyn Attendant>, progress: &dyn Progress) -> Ran {
        let (wanted, scenario) = (self.wanted, self.scenario);
        let plan = std::mem::take(&mut self.plan);
        let records = !wanted.without_records && (scenario.records_anything() || scenario.is_live());
        let places = self.output.as_ref().filter(|_| records).map(Output::places);
        let aside = Aside {
            places: places.as_ref(),
            capture: wanted.record.as_deref(),
            snap: wanted.snap,
            stop: None,
            attendant,
            plan: Some(&plan).filter(|plan| !plan.is_empty()),
            surroundings: None,
        };
        if !scenario.is_live() {
            // Without it a signal ends the program as ever.
            let _ = ackclock_live::listen();
        }
        if self.ledger.walk.left() == 0 {
            self.judge();
            return Ok(());
        }
        let walk = self.ledger.walk.clone();
        let finished = execute::all(&walk, threads, &aside, progress, |run, done| self.take(run, done));
        progress.end();
        finished
    }

    /// Takes in the results of a run. Breaks off when nobody reads on and nothing is kept, or what
    /// is there is not complete.
    fn take(&mut self, run: usize, done: Result<Done, String>) -> ControlFlow<()> {
        let ended = match done {
            Ok(done) => Ended::of(done, self.scenario.is_sweep()),
            Err(error) => Ended::failed(self.scenario, run, error),
        };
        self.written = self.add(run, ended);
        let unheard = !self.listener.listens() && self.output.is_none();
        if self.written.is_err() || self.ended_early.is_some() || unheard {
            ControlFlow::Break(())
        } else {
            ControlFlow::Continue(())
        }
    }

    fn add(&mut self, run: usize, ended: Ended) -> anyhow::Result<()> {
        let Ended { summary, records, error, broken_off } = ended;
        let summary = self.ledger.entitled(run, summary);
        self.changes.clone_from(&summary.changes);
        self.troubles_of(run, &summary);
        match &error {
            Some(error) => self.fail(run, error),
            None => self.ledger.keep(run, self.scenario.measure_summary(&summary)),
        }
        self.ended_early = broken_off.map(|why| (run, why));
        let expectations = self.judge();
        let result = RunResult { summary: &summary, failed: error.is_some(), error: error.as_deref(), expectations };
        self.listener.result(run, &result)?;
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
    ///
    /// # Errors
    /// A live run could not begin, or something could not be written.
    pub fn settle(&mut self, finished: Ran) -> anyhow::Result<Option<u8>> {
        let finished = match finished {
            // A run in virtual time beside live ones, or one that was to be the next.
            Err((run, Failure::Run(RunError::Interrupted) | Failure::Live(LiveError::Interrupted))) => {
                self.ended_early = Some((run, BrokenOff::Interrupted));
                Ok(())
            }
            // The measurements of live runs before it are kept.
            Err((run, Failure::Live(error))) if run > 0 => {
                self.ended_early = Some((run, BrokenOff::Failed(error.into())));
                Ok(())
            }
            finished => finished,
        };
        let say = |run, what: String| self.listener.say(&format!("error: {}{what}", names::of_run(self.scenario, run)));
        if let Some((run, BrokenOff::Failed(error))) = &self.ended_early {
            say(*run, format!(" was broken off: {error:#}"));
        }
        match finished {
            Ok(()) => Ok(None),
            Err((_, Failure::Output(error))) => {
                self.say_kept();
                Err(error)
            }
            Err((run, Failure::Point(error))) => {
                say(run, format!(": {error}"));
                Ok(Some(BAD_INPUT))
            }
            Err((run, Failure::Run(error))) => {
                say(run, format!(" failed: {error}"));
                Ok(Some(RUN_FAILED))
            }
            Err((_, Failure::Live(error))) => Err(error.into()),
        }
    }

    /// Drops the output if there is nothing to keep, so that an earlier one stays as it is.
    pub fn drop_nothing(&mut self) {
        if self.ended_early.is_some() && self.ledger.walk.done() == 0 {
            self.output = None;
        }
    }

    /// Reports that runs are kept whose results were written before something could not be.
    fn say_kept(&self) {
        let done = self.ledger.walk.done();
        if let Some(dir) = self.wanted.out.as_ref().filter(|_| self.scenario.is_sweep() && done > 0) {
            let dir = dir.display();
            self.listener.say(&format!(
                "note: the results of the first {done} runs are kept in {dir}; --resume goes on with the others"
            ));
        }
    }

    /// Why the results of a run could not be written, once.
    ///
    /// # Errors
    /// Something could not.
    pub fn written(&mut self) -> anyhow::Result<()> {
        std::mem::replace(&mut self.written, Ok(()))
    }

    /// Completes the output.
    ///
    /// # Errors
    /// It cannot be written, or the results of a run could not.
    pub fn complete(&mut self) -> anyhow::Result<()> {
        if self.written.is_err() {
            self.say_kept();
        }
        self.written()?;
        match self.output.take() {
            Some(output) => {
                let finished = output.finish(self.scenario, self.ended_early.is_some(), self.failed, &self.changes);
                finished.context("cannot complete --out")
            }
            None => Ok(()),
        }
    }
}

/// A number of runs, which may be fewer in the end if a sweep is adaptive.
pub fn at_most(scenario: &Scenario, runs: usize) -> String {
    if scenario.is_adaptive() { format!("at most {runs}") } else { runs.to_string() }
}

/// The reasons why a run is not to be relied on: why it is not valid, and which programs failed.
fn troubles<P>(summary: &Summary<P>) -> impl Iterator<Item = String> {
    let invalid = summary.live.iter().flat_map(|live| &live.invalid).map(|why| format!("not valid: {why}"));
    let failed = summary.commands.iter().filter_map(|command| {
        let how = failure(command)?;
        Some(format!("command {} failed: {how}", command.id))
    });
    invalid.chain(failed)
}

/// The failure of a program by itself. One that was asked to end may end as it likes.
fn failure(command: &CommandSummary) -> Option<String> {
    if let Some(error) = &command.error {
        return Some(error.clone());
    }
    match (command.exit, command.signal) {
        _ if command.stopped => None,
        (Some(0), _) => None,
        (Some(status), _) => Some(format!("exit status {status}")),
        (None, Some(signal)) => Some(format!("signal {signal}")),
        // The command's turn had not come when the run ended.
        (None, None) => None,
    }
}
