//! The progress bar: on stderr, if that is a terminal.

use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use ackclock_units::{Span, Time};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Steps of the bar for each run.
const STEPS: u64 = 1000;

/// How often the bar of a live run moves.
const TICK: Duration = Duration::from_millis(100);

/// Progress over all runs.
#[derive(Debug)]
pub(crate) struct Progress {
    bar: ProgressBar,
}

impl Progress {
    pub(crate) fn new(runs: usize, quiet: bool) -> Progress {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64 * STEPS), target);
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} [{wide_bar}] {percent}% of {msg}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(runs);
        Progress { bar }
    }

    /// Nothing is shown; somebody asks how far it has come.
    pub(crate) fn hidden() -> Progress {
        Progress { bar: ProgressBar::with_draw_target(Some(0), ProgressDrawTarget::hidden()) }
    }

    /// There are so many runs.
    pub(crate) fn expect(&self, runs: usize) {
        self.bar.set_length(runs as u64 * STEPS);
    }

    /// How many runs have been done, parts included, and how many there are.
    pub(crate) fn reached(&self) -> (f64, f64) {
        let runs = |steps: u64| steps as f64 / STEPS as f64;
        (runs(self.bar.position()), runs(self.bar.length().unwrap_or(0)))
    }

    /// So many runs will not be done.
    pub(crate) fn leave_out(&self, runs: usize) {
        self.bar.dec_length(runs as u64 * STEPS);
    }

    /// The part of one run.
    pub(crate) fn meter(&self, duration: Span) -> Meter<'_> {
        Meter { bar: &self.bar, duration, steps: 0 }
    }

    /// Does a run that takes as long as it says, while the bar moves along.
    pub(crate) fn in_real_time<T>(&self, duration: Span, run: impl FnOnce() -> T) -> T {
        let (begun, mut meter) = (self.bar.elapsed(), self.meter(duration));
        let (ended, end) = mpsc::channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                while let Err(mpsc::RecvTimeoutError::Timeout) = end.recv_timeout(TICK) {
                    let gone = self.bar.elapsed().saturating_sub(begun).as_nanos();
                    meter.reach(Time::from_nanos(u64::try_from(gone).unwrap_or(u64::MAX)));
                }
                meter.finish();
            });
            let result = run();
            drop(ended);
            result
        })
    }

    /// Does something while the bar is out of the way.
    pub(crate) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        self.bar.suspend(work)
    }

    pub(crate) fn clear(&self) {
        self.bar.finish_and_clear();
    }
}

/// How far one run has come.
#[derive(Debug)]
pub(crate) struct Meter<'a> {
    bar: &'a ProgressBar,
    duration: Span,
    steps: u64,
}

impl Meter<'_> {
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
            self.bar.inc(steps - self.steps);
            self.steps = steps;
        }
    }
}
