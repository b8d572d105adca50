//! The progress of runs.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::{Duration, Instant};

use ackclock_units::{Span, Time};

/// Steps of each run.
pub const STEPS: u64 = 1000;

/// Interval of a live run's steps.
const TICK: Duration = Duration::from_millis(100);

/// The receiver of steps, on any thread.
pub trait Progress: Sync {
    /// Reports that `steps` more have been made.
    fn step(&self, steps: u64);
    /// Reports that `steps` will not be made.
    fn leave_out(&self, steps: u64);
    /// No more will be made.
    fn end(&self) {}
}

/// Counts steps, for somebody who asks how far it has come.
#[derive(Debug, Default)]
pub struct Counter {
    done: AtomicU64,
    all: AtomicU64,
}

impl Counter {
    /// There are so many runs.
    pub fn expect(&self, runs: usize) {
        self.all.store(runs as u64 * STEPS, Ordering::Relaxed);
    }

    /// Number of runs done, parts included, and number of all.
    pub fn reached(&self) -> (f64, f64) {
        let runs = |steps: &AtomicU64| steps.load(Ordering::Relaxed) as f64 / STEPS as f64;
        (runs(&self.done), runs(&self.all))
    }
}

impl Progress for Counter {
    fn step(&self, steps: u64) {
        self.done.fetch_add(steps, Ordering::Relaxed);
    }

    fn leave_out(&self, steps: u64) {
        let _ = self.all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |all| Some(all.saturating_sub(steps)));
    }
}

/// The progress of one run.
pub(crate) struct Meter<'a> {
    progress: &'a dyn Progress,
    duration: Span,
    steps: u64,
}

impl<'a> Meter<'a> {
    pub(crate) fn new(progress: &'a dyn Progress, duration: Span) -> Meter<'a> {
        Meter { progress, duration, steps: 0 }
    }

    pub(crate) fn reach(&mut self, now: Time) {
        let done = u128::from(now.as_nanos()) * u128::from(STEPS) / u128::from(self.duration.as_nanos().max(1));
        self.to(u64::try_from(done).unwrap_or(STEPS));
    }

    pub(crate) fn finish(mut self) {
        self.to(STEPS);
    }

    fn to(&mut self, steps: u64) {
        let steps = steps.clamp(self.steps, STEPS);
        if steps > self.steps {
            self.progress.step(steps - self.steps);
            self.steps = steps;
        }
    }
}

/// Does a run that takes as long as it says, while steps are made along.
pub(crate) fn in_real_time<T>(progress: &dyn Progress, duration: Span, run: impl FnOnce() -> T) -> T {
    let (begun, mut meter) = (clock(), Meter::new(progress, duration));
    let (ended, end) = mpsc::channel::<()>();
    thread::scope(|scope| {
        scope.spawn(move || {
            while let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(TICK) {
                meter.reach(Time::from_nanos(u64::try_from(begun.elapsed().as_nanos()).unwrap_or(u64::MAX)));
            }
            meter.finish();
        });
        let result = run();
        drop(ended);
        result
    })
}

#[expect(clippy::disallowed_methods, reason = "the progress of a run that goes by the machine's clock")]
fn clock() -> Instant {
    Instant::now()
}
