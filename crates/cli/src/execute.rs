//! Runs on all cores; results in the order of the runs, whatever finishes first.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

use ackclock_sim::RunError;
use ackclock_sim::spec::RunSpec;
use ackclock_trace::Summary;

use crate::progress::Progress;

/// How many runs this machine takes at the same time.
pub(crate) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// Runs `0..runs`. `sink` gets every summary in order, on this thread, and may break off. The first run that fails, in
/// order, ends everything.
pub(crate) fn all(
    runs: usize,
    threads: usize,
    spec: impl Fn(usize) -> RunSpec + Sync,
    progress: &Progress,
    mut sink: impl FnMut(usize, Summary<()>) -> ControlFlow<()>,
) -> Result<(), (usize, RunError)> {
    let (next, stop) = (AtomicUsize::new(0), AtomicBool::new(false));
    let (sender, results) = mpsc::channel();
    let worker = |sender: mpsc::Sender<(usize, Result<Summary<()>, RunError>)>| {
        // Runs are taken one by one from the front, so that results wait for few others before they can be given out.
        loop {
            let run = next.fetch_add(1, Ordering::Relaxed);
            if run >= runs || stop.load(Ordering::Relaxed) {
                return;
            }
            let spec = spec(run);
            let mut meter = progress.meter(spec.duration);
            let result = ackclock_sim::run(&spec, &mut |now| {
                meter.reach(now);
                if stop.load(Ordering::Relaxed) { ControlFlow::Break(()) } else { ControlFlow::Continue(()) }
            });
            meter.finish();
            if sender.send((run, result)).is_err() {
                return;
            }
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads.min(runs)).build();
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
        for (run, result) in results {
            waiting.insert(run, result);
            while let Some(result) = waiting.remove(&due) {
                let flow = match result {
                    Ok(summary) => sink(due, summary),
                    Err(error) => {
                        stop.store(true, Ordering::Relaxed);
                        return Err((due, error));
                    }
                };
                if flow.is_break() {
                    stop.store(true, Ordering::Relaxed);
                    return Ok(());
                }
                due += 1;
            }
        }
        Ok(())
    })
}
