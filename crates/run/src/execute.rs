//! Runs on all cores; results in the order of the runs, whatever finishes first.

mod adaptive;
mod captures;
mod done;
mod order;
mod qlogs;
pub(crate) mod sheets;

use std::fmt::Debug;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use ackclock_live::{LiveError, Options, Outcome};
use ackclock_scenario::Scenario;
use ackclock_sim::RunError;
use ackclock_sim::spec::{Clock, LiveSpec, RunSpec};
use ackclock_trace::WatchSink;
use ackclock_units::{Span, Time};
use anyhow::Context;

use crate::attendant::{self, Attendant};
use crate::changes;
use crate::output::{COMMANDS, Places};
use crate::partial::PartialFolder;
use crate::pilot::{Pilot, PilotPlan};
use crate::progress::{self, Meter, Progress};
use crate::selection::Walk;

use adaptive::AdaptiveSweep;
pub(crate) use done::Done;
pub use done::{BrokenOff, Failure};
use order::Each;
use sheets::Sheets;

/// The surroundings of runs on the threads that do them, for programs whose controllers or queues
/// need something there.
pub trait Surroundings: Debug + Send + Sync {
    /// Calls `run`, which does a whole run, on its thread.
    fn around(&self, run: &mut dyn FnMut());
    /// Called now and then by a run.
    fn breathe(&self) {}
}

/// Where runs put what is not in their summaries.
#[derive(Clone, Copy, Default)]
pub(crate) struct Aside<'a> {
    /// Places in the output, if there is one.
    pub(crate) places: Option<&'a Places>,
    /// The capture of the only run, which has hosts outside.
    pub(crate) capture: Option<&'a Path>,
    /// The most bytes of a packet that it has.
    pub(crate) snap: Option<u32>,
    /// Set by somebody else to end everything, as a signal does.
    pub(crate) stop: Option<&'a AtomicBool>,
    /// The companion of the only run.
    pub(crate) attendant: Option<&'a dyn Attendant>,
    /// The planned changes of the run.
    pub(crate) plan: Option<&'a PilotPlan>,
    /// The surroundings of each run.
    pub(crate) surroundings: Option<&'a dyn Surroundings>,
}

impl Aside<'_> {
    fn is_stopped(&self) -> bool {
        self.stop.is_some_and(|stop| stop.load(Ordering::Relaxed))
    }
}

/// Number of simultaneous runs that this machine takes.
pub fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does the runs of a walk; each records into files of its own, if there are places for them.
/// `sink` gets the runs in order, on this thread, and may break off. In a sweep it also gets those
/// that fail by themselves; any other failure, the first in order, ends everything. A signal ends
/// those that go on, and what has finished is still given out.
pub(crate) fn all(
    walk: &Walk<'_>,
    threads: usize,
    aside: &Aside<'_>,
    progress: &dyn Progress,
    mut sink: impl FnMut(usize, Result<Done, String>) -> ControlFlow<()>,
) -> Result<(), (usize, Failure)> {
    let scenario = walk.scenario();
    let mut failed = None;
    let run = |job: usize| walk.ahead(job).unwrap_or_else(|| unreachable!("there are as many jobs as runs"));
    let work = |job, stop: &AtomicBool| surrounded(aside, &mut || one(scenario, run(job), aside, progress, stop));
    let sorted = |job, result| match result {
        Ok(done) => sink(run(job), Ok(done)),
        Err(Failure::Run(error)) if scenario.is_sweep() && error != RunError::Interrupted => {
            sink(run(job), Err(error.to_string()))
        }
        Err(Failure::Point(error)) if scenario.is_sweep() => {
            sink(run(job), Err(format!("its point is wrong: {}", error.on_a_line())))
        }
        Err(error) => {
            let interrupted = matches!(error, Failure::Run(RunError::Interrupted));
            failed.get_or_insert((run(job), error));
            if interrupted { ControlFlow::Continue(()) } else { ControlFlow::Break(()) }
        }
    };
    if walk.is_adaptive() {
        order::in_order(&AdaptiveSweep::from(walk, threads, progress), threads, work, sorted);
    } else {
        in_order(walk.left(), threads, work, sorted);
    }
    failed.map_or(Ok(()), Err)
}

/// Does jobs 0 to `jobs` on so many threads. `sink` gets the results in order, on this thread, as
/// soon as those before are there; when it breaks off, no more jobs are begun, and the flag that
/// jobs see is set.
pub fn in_order<T: Send>(
    jobs: usize,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    sink: impl FnMut(usize, T) -> ControlFlow<()>,
) {
    order::in_order(&Each::of(jobs), threads.min(jobs), work, sink);
}

/// Does a run in its surroundings.
fn surrounded<T>(aside: &Aside<'_>, run: &mut dyn FnMut() -> T) -> T {
    let Some(surroundings) = aside.surroundings else { return run() };
    let mut result = None;
    surroundings.around(&mut || result = Some(run()));
    result.unwrap_or_else(run)
}

/// A run in virtual time has come to `now`: tells its progress, and whether it goes on.
fn reach(meter: &mut Meter<'_>, aside: &Aside<'_>, stop: &AtomicBool, now: Time) -> ControlFlow<()> {
    meter.reach(now);
    if let Some(surroundings) = aside.surroundings {
        surroundings.breathe();
    }
    let over = stop.load(Ordering::Relaxed) || aside.is_stopped() || ackclock_live::interrupted();
    if over { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
}

fn one(
    scenario: &Scenario,
    run: usize,
    aside: &Aside<'_>,
    progress: &dyn Progress,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    if aside.is_stopped() || (!scenario.is_live() && ackclock_live::interrupted()) {
        return Err(Failure::Run(RunError::Interrupted));
    }
    let spec = scenario.read_spec(run).map_err(|error| Failure::Point(Box::new(error)))?;
    let mut sheets = Sheets::open(scenario, run, aside.places).map_err(Failure::Output)?;
    if let Some(live) = &spec.live {
        return outside(scenario, &spec, live, run, sheets, aside, (progress, stop));
    }
    let mut meter = Meter::new(progress, spec.duration);
    let mut reach = |now| reach(&mut meter, aside, stop, now);
    let mut feed = aside.attendant.and_then(Attendant::feed);
    let recorders = sheets.recorders(feed.as_mut().map(|feed| &mut **feed as &mut dyn WatchSink));
    let control = aside.attendant.and_then(Attendant::control);
    let mut changes = Vec::new();
    let result = attendant::during(aside.attendant, || {
        if control.is_none() && aside.plan.is_none() {
            return ackclock_sim::run_kept(&spec, recorders, &mut reach);
        }
        let plan = aside.plan.cloned().unwrap_or_default();
        let pace = aside.attendant.and_then(Attendant::pace);
        let mut pilot = Pilot::new(control, pace, &plan, spec.duration, &mut reach);
        let result = ackclock_sim::run_steered(&spec, recorders, &mut pilot);
        changes = pilot.finish();
        result
    });
    // A failed write has broken the run off, and comes first.
    let stopped = result.as_ref().ok().filter(|(_, error)| error.is_some());
    let lasted = stopped.map_or(spec.duration, |(summary, _)| Span::from_secs_f64(summary.duration_s));
    let (records, written) = sheets.finish(Time::ZERO + lasted);
    written.map_err(Failure::Output)?;
    let (mut summary, error) = result.map_err(Failure::Run)?;
    meter.finish();
    summary.partial |= error.is_some();
    summary.changes = changes;
    Ok(Done { summary, records, broken_off: error.map(why) })
}

/// The reason why a run that has a summary has ended.
fn why(error: RunError) -> BrokenOff {
    match error {
        RunError::Interrupted => BrokenOff::Interrupted,
        error => BrokenOff::Failed(error.into()),
    }
}

/// A run with hosts outside. Its measurements and records are kept, also if it is broken off.
fn outside(
    scenario: &Scenario,
    spec: &RunSpec,
    live: &LiveSpec,
    run: usize,
    mut sheets: Sheets<'_>,
    aside: &Aside<'_>,
    (progress, stop): (&dyn Progress, &AtomicBool),
) -> Result<Done, Failure> {
    let folder = aside.places.filter(|_| live.clock == Clock::Real && !live.commands.is_empty());
    let folder = folder.map(|places| places.folder(run, COMMANDS)).transpose().map_err(Failure::Output)?;
    let options = Options {
        commands: folder.as_ref().map(|folder| folder.path().to_owned()),
        capture: aside.capture.map(Path::to_owned),
        snap: aside.snap,
        watch: aside.attendant.and_then(Attendant::watch),
        control: aside.attendant.and_then(Attendant::control),
        changes: matches!(live.clock, Clock::Replay(_)).then(|| changes::reader(scenario, run)),
    };
    let mut feed = aside.attendant.and_then(Attendant::feed);
    let recorders = sheets.recorders(feed.as_mut().map(|feed| &mut **feed as &mut dyn WatchSink));
    let mut meter = Meter::new(progress, spec.duration);
    let outcome = attendant::during(aside.attendant, || match live.clock {
        Clock::Real => {
            progress::in_real_time(progress, spec.duration, || ackclock_live::run(spec, recorders, &options))
        }
        Clock::Replay(_) => ackclock_live::run(spec, recorders, &options),
        Clock::Virtual => {
            ackclock_live::run_stacks(spec, recorders, &options, &mut |now| reach(&mut meter, aside, stop, now))
        }
    });
    let Outcome { mut summary, broken_off } = outcome.map_err(Failure::Live)?;
    let came_to = Span::from_secs_f64(summary.duration_s);
    let (mut records, written) = sheets.finish(Time::ZERO + came_to);
    let printed = folder.map_or(Ok(Vec::new()), PartialFolder::seal).context("cannot store the output of commands");
    let (printed, kept) = printed.map_or_else(|error| (Vec::new(), Err(error)), |printed| (printed, Ok(())));
    records.extend(printed);
    let broken_off = match (written.and(kept), broken_off) {
        // A file that could not be written has broken the run off, and says more about it.
        (Err(error), _) => Some(BrokenOff::Failed(error)),
        (Ok(()), Some(LiveError::Interrupted)) => Some(BrokenOff::Interrupted),
        (Ok(()), Some(error)) => Some(BrokenOff::Failed(error.into())),
        (Ok(()), None) => None,
    };
    summary.partial |= broken_off.is_some();
    Ok(Done { summary, records, broken_off })
}
