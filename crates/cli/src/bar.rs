//! The progress bar: on stderr, if that is a terminal.

use ackclock_run::progress::{Progress, STEPS};
use indicatif::{ProgressBar, ProgressDrawTarget, ProgressStyle};

/// Progress over all runs. A clone is the same bar.
#[derive(Clone, Debug)]
pub(crate) struct Bar(ProgressBar);

impl Bar {
    pub(crate) fn new(runs: usize, quiet: bool) -> Bar {
        let target = if quiet { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() };
        let bar = ProgressBar::with_draw_target(Some(runs as u64 * STEPS), target);
        let runs = if runs == 1 { "1 run".to_owned() } else { format!("{runs} runs") };
        if let Ok(style) = ProgressStyle::with_template("{elapsed} [{wide_bar}] {percent}% of {msg}, {eta} left") {
            bar.set_style(style.progress_chars("=> "));
        }
        bar.set_message(runs);
        Bar(bar)
    }

    /// Does something while the bar is out of the way.
    pub(crate) fn suspended<T>(&self, work: impl FnOnce() -> T) -> T {
        self.0.suspend(work)
    }
}

impl Progress for Bar {
    fn step(&self, steps: u64) {
        self.0.inc(steps);
    }

    fn leave_out(&self, steps: u64) {
        self.0.dec_length(steps);
    }

    fn end(&self) {
        self.0.finish_and_clear();
    }
}
