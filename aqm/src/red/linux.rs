//! Linux's law: integers and shifts, and one random number for each mark.
//!
//! The average is kept times 2^Wlog. Time without a queue is looked up in a table of shifts that
//! `tc` computes. A mark follows the one before it when the packets since then, each counted with
//! the average's distance from `min`, reach a number drawn between 0 and (`max` - `min`) / max_P.

use ackclock_units::{Random, Rate, Span, Time, maths};

use super::{RedConfig, RedReaction, weight_of};

#[derive(Clone, Debug)]
pub(super) struct Linux {
    pub(super) wlog: u32,
    /// `min` and `max` times 2^Wlog.
    min: u64,
    max: u64,
    /// `max` - `min`, in bytes.
    delta: f64,
    pub(super) max_p: f64,
    damping: Damping,
    /// The average times 2^Wlog.
    pub(super) scaled_average: u64,
    /// Packets since the last mark (`qcount`); `None` while the average is not between `min` and
    /// `max`.
    pub(super) count: Option<u64>,
    /// The sum at which the next packet is marked or dropped (`qR`).
    pub(super) gap: u64,
    pub(super) idle_since: Option<Time>,
}

impl Linux {
    /// The law for the average that [`RedConfig::average`] gives.
    pub(super) fn new(config: &RedConfig, wlog: u32, damping: Damping) -> Linux {
        let (min, max) = config.thresholds();
        Linux {
            wlog,
            // Both are below 2^32 and Wlog is below 32.
            min: min << wlog,
            max: max << wlog,
            delta: (max - min) as f64,
            max_p: config.probability,
            damping,
            scaled_average: 0,
            count: None,
            gap: 0,
            idle_since: None,
        }
    }

    /// A packet arrives and finds `backlog` bytes.
    pub(super) fn arrival(&mut self, now: Time, backlog: u64, random: &mut Random) -> RedReaction {
        self.scaled_average = match self.idle_since.take() {
            Some(since) => self.damping.apply(self.scaled_average, now.since(since)),
            None => self.scaled_average - (self.scaled_average >> self.wlog) + backlog,
        };
        if self.scaled_average < self.min {
            self.count = None;
            return RedReaction::Pass;
        }
        if self.scaled_average >= self.max {
            self.count = None;
            return RedReaction::Forced;
        }
        let Some(count) = &mut self.count else {
            // The first packet between the thresholds only starts the count.
            self.count = Some(0);
            self.gap = self.draw(random);
            return RedReaction::Pass;
        };
        *count += 1;
        let above = (self.scaled_average - self.min) >> self.wlog;
        if above.saturating_mul(*count) < self.gap {
            return RedReaction::Pass;
        }
        self.count = Some(0);
        self.gap = self.draw(random);
        RedReaction::Early
    }

    /// Uniform between 0 and (`max` - `min`) / max_P.
    fn draw(&self, random: &mut Random) -> u64 {
        // Without a probability there is no end to it; a cast takes infinity to the largest number.
        if self.max_p > 0.0 { (random.unit() * (self.delta / self.max_p)) as u64 } else { u64::MAX }
    }

    /// The average in bytes.
    pub(super) fn average(&self) -> f64 {
        self.scaled_average as f64 * weight_of(self.wlog)
    }

    /// The average in whole bytes that `time` leaves of it.
    pub(super) fn average_at(&self, time: Time) -> f64 {
        let scaled = match self.idle_since {
            Some(since) => self.damping.apply(self.scaled_average, time.since(since)),
            None => self.scaled_average,
        };
        (scaled >> self.wlog) as f64
    }

    /// The probability of the average.
    pub(super) fn probability(&self) -> f64 {
        if self.scaled_average < self.min {
            0.0
        } else if self.scaled_average >= self.max {
            1.0
        } else {
            self.max_p * (self.scaled_average - self.min) as f64 / (self.max - self.min) as f64
        }
    }
}

/// The effect on the average of a time without a queue.
#[derive(Clone, Debug)]
pub(super) struct Damping {
    /// Binary logarithm of the time that a cell of the table stands for.
    pub(super) cell_log: u32,
    /// Bits by which the average is shifted down. Stored separately, as only a packet that ends an
    /// idle time reads it.
    pub(super) shifts: Box<[u8; 256]>,
}

/// Ticks of the kernel's packet scheduler in a microsecond, as /proc/net/psched tells `tc`: one is
/// 64 ns.
const TICKS_PER_MICRO: f64 = 1000.0 / 64.0;

impl Damping {
    /// The table as `tc` computes it (`tc_red_eval_idle_damping`); `None` if the link is too slow
    /// for it.
    ///
    /// It is laid out in ticks of 64 ns, but the kernel reads it in microseconds
    /// (`ktime_us_delta`). So, as on Linux, the average takes 15.6 times as long to decay as
    /// `bandwidth` says.
    pub(super) fn new(wlog: u32, avpkt: u32, bandwidth: Rate) -> Option<Damping> {
        let bytes_per_second = bandwidth.as_bps() as f64 / 8.0;
        let transmission = (1e6 * f64::from(avpkt) / bytes_per_second * TICKS_PER_MICRO).ceil();
        let per_tick = -maths::ln(1.0 - weight_of(wlog)) / transmission;
        let longest = 31.0 / per_tick;
        let cell_log = (0..32).find(|&log| longest / ((1u64 << log) as f64) < 512.0)?;
        let mut shifts = Box::new([0; 256]);
        for (cell, shift) in shifts.iter_mut().enumerate() {
            *shift = (((cell as u64) << cell_log) as f64 * per_tick).min(31.0) as u8;
        }
        shifts[255] = 31;
        Some(Damping { cell_log, shifts })
    }

    /// The average after `idle` (`red_calc_qavg_from_idle_time`).
    fn apply(&self, average: u64, idle: Span) -> u64 {
        let micros = idle.as_micros().min(255 << self.cell_log);
        let shift = self.shifts[(micros >> self.cell_log) as usize];
        if shift > 0 {
            return average >> shift;
        }
        // A straight line for the first part, down to half of it.
        let less = (u128::from(average) * u128::from(micros)) >> self.cell_log;
        average - less.min(u128::from(average - (average >> 1))) as u64
    }
}
