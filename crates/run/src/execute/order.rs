//! Jobs on several threads, with their results in order.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::mpsc;
use std::thread;

/// The jobs, and the order in which they are begun.
pub(super) trait Jobs<T>: Sync {
    /// The next job to begin; `None` if there is none left.
    fn next(&self) -> Option<usize>;

    /// A job has ended.
    fn end(&self, _job: usize, _result: &T) {}

    /// Returns `true` if a job has turned out not to be needed.
    fn is_left_out(&self, _job: usize) -> bool {
        false
    }
}

/// Jobs 0 to `jobs`, one by one from the front, so that results wait for few others before they can
/// be given out.
pub(super) struct Each {
    next: AtomicUsize,
    jobs: usize,
}

impl Each {
    pub(super) fn of(jobs: usize) -> Each {
        Each { next: AtomicUsize::new(0), jobs }
    }
}

impl<T> Jobs<T> for Each {
    fn next(&self) -> Option<usize> {
        Some(self.next.fetch_add(1, Ordering::Relaxed)).filter(|&job| job < self.jobs)
    }
}

/// Does jobs on so many threads. `sink` gets the results in order, on this thread, as soon as those
/// before are there, but for jobs that are left out. When it breaks off, no more jobs are begun,
/// and the flag that jobs see is set.
pub(super) fn in_order<T: Send, J: Jobs<T>>(
    jobs: &J,
    threads: usize,
    work: impl Fn(usize, &AtomicBool) -> T + Sync,
    mut sink: impl FnMut(usize, T) -> ControlFlow<()>,
) {
    let stop = AtomicBool::new(false);
    // A worker that is far ahead of the sink waits for it: results take memory.
    let (sender, results) = mpsc::sync_channel(2 * threads);
    let worker = |sender: mpsc::SyncSender<(usize, T)>| {
        while !stop.load(Ordering::Relaxed)
            && let Some(job) = jobs.next()
        {
            let result = work(job, &stop);
            jobs.end(job, &result);
            if sender.send((job, result)).is_err() {
                return;
            }
        }
    };
    let pool = rayon::ThreadPoolBuilder::new().num_threads(threads).build();
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
            if job >= due {
                waiting.insert(job, result);
            }
            loop {
                if jobs.is_left_out(due) {
                    waiting.remove(&due);
                } else {
                    let Some(result) = waiting.remove(&due) else { break };
                    if sink(due, result).is_break() {
                        stop.store(true, Ordering::Relaxed);
                        return;
                    }
                }
                due += 1;
            }
        }
        // Where jobs were not begun any more, those behind them that have ended are left.
        for (job, result) in waiting.into_iter().filter(|(job, _)| !jobs.is_left_out(*job)) {
            if sink(job, result).is_break() {
                return;
            }
        }
    });
}
