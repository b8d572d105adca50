//! The throughput and the goodput of a flow.

use ackclock_trace::{Histogram, MeanQuantiles};
use ackclock_units::{Span, Time};

/// Throughput is measured in windows of this many steps, one window for each step.
const WINDOW_STEPS: usize = 4;
const STEP: Span = Span::from_millis(500);

/// Bytes per time in sliding windows, in constant memory.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Throughput {
    /// Start of the step that is being filled.
    step_start: Time,
    /// Bytes in it.
    bytes: u64,
    /// Bytes of the last steps, the one being filled at `current` when it is complete.
    steps: [u64; WINDOW_STEPS],
    current: usize,
    /// Steps completed.
    completed: u64,
    /// Bytes of all completed steps.
    past: u64,
    windows: Histogram,
}

impl Throughput {
    pub(super) fn new(start: Time) -> Throughput {
        Throughput {
            step_start: start,
            bytes: 0,
            steps: [0; WINDOW_STEPS],
            current: 0,
            completed: 0,
            past: 0,
            windows: Histogram::new(),
        }
    }

    /// Adds arrived bytes.
    #[inline]
    pub(super) fn add(&mut self, now: Time, bytes: u32) {
        if self.is_over(now) {
            self.pass(now);
        }
        self.count(bytes);
    }

    /// Adds arrived bytes to the current step.
    #[inline]
    pub(super) fn count(&mut self, bytes: u32) {
        self.bytes += u64::from(bytes);
    }

    /// Returns true if the current step has ended by `now`.
    #[inline]
    pub(super) fn is_over(&self, now: Time) -> bool {
        now.since(self.step_start) >= STEP
    }

    /// Sets the total of arrived bytes; all since the last step belong to the current one.
    pub(super) fn reach(&mut self, total: u64) {
        self.bytes = total.saturating_sub(self.past);
    }

    /// Completes every step that ends by `now`.
    #[inline(never)]
    pub(super) fn pass(&mut self, now: Time) {
        while now.since(self.step_start) >= STEP {
            self.past += self.bytes;
            self.steps[self.current] = std::mem::take(&mut self.bytes);
            self.completed += 1;
            if self.completed >= WINDOW_STEPS as u64 {
                self.windows.add(self.steps.iter().sum());
            }
            self.step_start += STEP;
            self.current = (self.current + 1) % WINDOW_STEPS;
            self.steps[self.current] = 0;
            let silent = now.since(self.step_start).as_nanos() / STEP.as_nanos();
            if silent > 2 * WINDOW_STEPS as u64 && self.steps.iter().all(|&bytes| bytes == 0) {
                // A long silence: all its windows are empty.
                self.windows.add_repeated(0, silent);
                self.completed += silent;
                self.step_start += STEP * silent;
            }
        }
    }

    /// All bytes that have arrived.
    pub(super) fn total(&self) -> u64 {
        self.past + self.bytes
    }

    pub(super) fn summary(&mut self, end: Time) -> MeanQuantiles {
        self.pass(end);
        let scale = 8.0 / (STEP * WINDOW_STEPS as u64).as_secs_f64();
        self.windows.mean_quantiles(scale)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_slide_by_a_step() {
        let mut throughput = Throughput::new(Time::from_secs(1));
        // 1000 bytes in each of the first six steps, then nothing: windows of 4000 at steps 4, 5,
        // 6, then 3000, 2000.
        for step in 0..6 {
            throughput.add(Time::from_millis(1000 + 500 * step), 1000);
        }
        let MeanQuantiles { mean, quantiles } = throughput.summary(Time::from_secs(5));
        assert_eq!(throughput.windows.samples(), 5);
        let near = |found: Option<f64>, exact: f64| (found.unwrap() - exact).abs() <= exact / 1000.0;
        assert!(near(quantiles.p95, 16_000.0) && near(quantiles.p5, 8_000.0), "{quantiles:?}");
        assert_eq!(mean, Some(13_600.0));
    }

    #[test]
    fn a_counter_that_is_read_once_a_step_gives_the_same() {
        let (mut added, mut read) = (Throughput::new(Time::ZERO), Throughput::new(Time::ZERO));
        let mut total = 0;
        // Steps with many arrivals, with one, and a silence of several.
        for (millis, bytes) in [(0, 1000), (300, 500), (499, 70), (500, 9), (1700, 400), (60_000, 3), (60_500, 1)] {
            let now = Time::from_millis(millis);
            if read.is_over(now) {
                read.reach(total);
                read.pass(now);
            }
            added.add(now, bytes);
            total += u64::from(bytes);
        }
        read.reach(total);
        let end = Time::from_secs(70);
        assert_eq!(added.summary(end), read.summary(end));
        assert_eq!(added.total(), total);
        assert_eq!(added.windows.samples(), read.windows.samples());
    }

    #[test]
    fn a_long_silence_counts_as_empty_windows() {
        let mut throughput = Throughput::new(Time::ZERO);
        throughput.add(Time::ZERO, 1000);
        throughput.summary(Time::from_secs(100_000));
        assert_eq!(throughput.windows.samples(), 200_000 - 3);
    }
}
