//! Runs on all cores; results in the order of the runs, whatever finishes first.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use ackclock_scenario::Scenario;
use ackclock_sim::{QueueRecorder, Recorders, RunError};
use ackclock_trace::{ErttCsv, ErttSink, QueueCsv, SiftrLog, SiftrSink, Summary, TcpCsv, TcpSink};
use ackclock_units::Time;
use anyhow::Context;

use crate::output::{ERTT, Places, QUEUE, SIFTR, TCP};
use crate::partial::{Partial, Sealed};
use crate::progress::Progress;

/// A run that has come to its end.
#[derive(Debug)]
pub(crate) struct Done {
    pub(crate) summary: Summary<()>,
    /// Its `queue.csv`, `tcp.csv`, `siftr.log` and `ertt.csv`, as far as they were asked for.
    pub(crate) records: Vec<Sealed>,
}

/// Why a run gave nothing.
#[derive(Debug)]
pub(crate) enum Failure {
    /// It failed by itself.
    Run(RunError),
    /// What it recorded could not be written.
    Output(anyhow::Error),
}

/// How many runs this machine takes at the same time.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Does all runs of a scenario; each records into a file of its own, if there are places for it. `sink` gets the runs in
/// order, on this thread, and may break off. The first run that fails, in order, ends everything.
pub(crate) fn all(
    scenario: &Scenario,
    threads: usize,
    places: Option<&Places>,
    progress: &Progress,
    mut sink: impl FnMut(usize, Done) -> ControlFlow<()>,
) -> Result<(), (usize, Failure)> {
    let mut failed = None;
    in_order(
        scenario.runs(),
        threads,
        |run, stop| one(scenario, run, places, progress, stop),
        |run, result| match result {
            Ok(done) => sink(run, done),
            Err(error) => {
                failed = Some((run, error));
                ControlFlow::Break(())
            }
        },
    );
    failed.map_or(Ok(()), Err)
}

/// Does jobs 0 to `jobs` on so many threads. `sink` gets the results in order, on this thread, as soon as those before are
/// there; when it breaks off, no more jobs are begun, and the flag that jobs see is set.
pub(crate) fn in_order<T: Send>(
    jobs: usize,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    mut sink: impl FnMut(usize, T) -> ControlFlow<()>,
) {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let worker = |sender: mpsc::Sender<(usize, T)>| {
        // Jobs are taken one by one from the front, so that results wait for few others before they can be given out.
        loop {
            let job = next.fetch_add(1, Ordering::Relaxed);
            if job >= jobs || stop.load(Ordering::Relaxed) {
                return;
            }
            if sender.send((job, work(job, &stop))).is_err() {
                return;
            }
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(jobs)).build();
    thread::scope(|scope| {
        let worker = &worker;
        scope.spawn(move || match pool {
            Ok(pool) => {
                pool.broadcast(|_| worker(sender.clone()));
            }
            // No more threads to be had: this one is left.
            Err(_) => worker(sender),
        });
        let mut waiting = BTreeMap::new();
        let mut due = 0;
        for (job, result) in results {
            waiting.insert(job, result);
            while let Some(result) = waiting.remove(&due) {
                if sink(due, result).is_break() {
                    stop.store(true, Ordering::Relaxed);
                    return;
                }
                due += 1;
            }
        }
    });
}

fn one(
    scenario: &Scenario,
    run: usize,
    places: Option<&Places>,
    progress: &Progress,
    stop: &AtomicBool,
) -> Result<Done, Failure> {
    let spec = scenario.spec(run);
    let mut meter = progress.meter(spec.duration);
    let mut reach = |now| {
        meter.reach(now);
        if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
    };
    let done = match places {
        None => {
            let summary = ackclock_sim::run(&spec, &mut reach).map_err(Failure::Run)?;
            Done { summary, records: Vec::new() }
        }
        Some(places) => {
            let directions = scenario.recorded_queues();
            let file = |wanted: bool, name| wanted.then(|| places.create(run, name)).transpose();
            let queue = file(!directions.is_empty(), QUEUE).map_err(Failure::Output)?;
            let tcp = file(scenario.records_tcp(), TCP).map_err(Failure::Output)?;
            let siftr = file(scenario.records_siftr(), SIFTR).map_err(Failure::Output)?;
            let ertt = file(scenario.records_ertt(), ERTT).map_err(Failure::Output)?;
            let paths = [&queue, &tcp, &siftr, &ertt].map(|file| file.as_ref().map(|file| file.path().to_owned()));
            let (mut queue, mut tcp) = (queue.map(QueueCsv::new), tcp.map(TcpCsv::new));
            let (mut siftr, mut ertt) = (siftr.map(SiftrLog::new), ertt.map(ErttCsv::new));
            let recorders = Recorders {
                queues: queue.as_mut().map(|sink| QueueRecorder { directions, sink }),
                tcp: tcp.as_mut().map(|sink| sink as &mut dyn TcpSink),
                siftr: siftr.as_mut().map(|sink| sink as &mut dyn SiftrSink),
                ertt: ertt.as_mut().map(|sink| sink as &mut dyn ErttSink),
            };
            let result = ackclock_sim::run_recorded(&spec, recorders, &mut reach);
            // What could not be written has broken the run off, and comes first.
            let end = Time::ZERO + spec.duration;
            let written = [
                queue.map(QueueCsv::finish),
                tcp.map(TcpCsv::finish),
                siftr.map(|log| log.finish(end)),
                ertt.map(ErttCsv::finish),
            ];
            let mut records = Vec::new();
            for (written, path) in written.into_iter().zip(paths) {
                let seal = |file: Partial| if result.is_ok() { file.seal().map(Some) } else { Ok(None) };
                let sealed = written.transpose().and_then(|file| file.map_or(Ok(None), seal));
                let context = || format!("cannot write {}", path.unwrap_or_default().display());
                records.extend(sealed.with_context(context).map_err(Failure::Output)?);
            }
            Done { summary: result.map_err(Failure::Run)?, records }
        }
    };
    meter.finish();
    Ok(done)
}
