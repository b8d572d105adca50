//! Linux's law: integers and shifts, and one random number for each mark.
//!
//! The average is kept times 2^Wlog. Time without a queue is looked up in a table of shifts that
//! `tc` computes. A mark follows the one before it when the packets since then, each counted with
//! the average's distance from `min`, reach a number drawn between 0 and (`max` - `min`) / max_P.

use ackclock_units::{Random, Rate, Span, Time, maths};

use super::reaction::RedReaction;

/// The thresholds of an average that is kept times 2^Wlog (`red_parms`). The unit of the queue is
/// the caller's: bytes, or packets.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Thresholds {
    pub(crate) wlog: u32,
    /// `min` and `max` times 2^Wlog.
    pub(crate) min: u64,
    pub(crate) max: u64,
    /// `max` - `min`.
    delta: f64,
    pub(crate) max_p: f64,
}

/// The distance of a mark from the one before it (`red_vars`).
#[derive(Clone, Copy, Debug)]
pub(crate) struct Spacing {
    /// Packets since the last mark (`qcount`); `None` while the average is not between `min` and
    /// `max`.
    pub(crate) count: Option<u64>,
    /// The sum at which the next packet is marked or dropped (`qR`).
    pub(crate) gap: u64,
}

impl Thresholds {
    /// # Panics
    /// If `min` and `max` are not below 2^32 and Wlog is not below 32.
    pub(crate) fn new([min, max]: [u64; 2], max_p: f64, wlog: u32) -> Thresholds {
        assert!(max.max(min) < 1 << 32 && wlog < 32, "thresholds beyond 32 bits");
        Thresholds { wlog, min: min << wlog, max: max << wlog, delta: (max - min) as f64, max_p }
    }

    /// The average after a packet that finds `backlog`.
    #[inline]
    pub(crate) fn average(&self, scaled: u64, backlog: u64) -> u64 {
        scaled - (scaled >> self.wlog) + backlog
    }

    /// The decision about a packet at this average (`red_action`).
    pub(crate) fn decide(&self, spacing: &mut Spacing, scaled: u64, random: &mut Random) -> RedReaction {
        if scaled < self.min {
            spacing.count = None;
            return RedReaction::Pass;
        }
        if scaled >= self.max {
            spacing.count = None;
            return RedReaction::Forced;
        }
        if self.is_next(spacing, scaled, random) { RedReaction::Early } else { RedReaction::Pass }
    }

    /// Whether the packet is the next to be marked, at an average between the thresholds.
    pub(crate) fn is_next(&self, spacing: &mut Spacing, scaled: u64, random: &mut Random) -> bool {
        let Some(count) = &mut spacing.count else {
            // The first packet between the thresholds only starts the count.
            *spacing = Spacing { count: Some(0), gap: self.draw(random) };
            return false;
        };
        *count += 1;
        let above = (scaled - self.min) >> self.wlog;
        if above.saturating_mul(*count) < spacing.gap {
            return false;
        }
        *spacing = Spacing { count: Some(0), gap: self.draw(random) };
        true
    }

    /// Uniform between 0 and (`max` - `min`) / max_P.
    fn draw(&self, random: &mut Random) -> u64 {
        // Without a probability there is no end to it; a cast takes infinity to the largest number.
        if self.max_p > 0.0 { (random.unit() * (self.delta / self.max_p)) as u64 } else { u64::MAX }
    }

    /// The probability of an average.
    pub(crate) fn probability(&self, scaled: u64) -> f64 {
        if scaled < self.min {
            0.0
        } else if scaled >= self.max {
            1.0
        } else {
            self.max_p * (scaled - self.min) as f64 / (self.max - self.min) as f64
        }
    }
}

impl Spacing {
    pub(crate) const NONE: Spacing = Spacing { count: None, gap: 0 };
}

#[derive(Clone, Debug)]
pub(crate) struct Linux {
    pub(crate) thresholds: Thresholds,
    damping: Damping,
    /// The average times 2^Wlog.
    pub(crate) scaled_average: u64,
    pub(crate) spacing: Spacing,
    pub(crate) idle_since: Option<Time>,
}

impl Linux {
    pub(crate) fn new(thresholds: Thresholds, damping: Damping) -> Linux {
        Linux { thresholds, damping, scaled_average: 0, spacing: Spacing::NONE, idle_since: None }
    }

    /// A packet arrives and finds `backlog`: the average with it.
    pub(crate) fn observe(&mut self, now: Time, backlog: u64) {
        self.scaled_average = match self.idle_since.take() {
            Some(since) => self.damping.apply(self.scaled_average, now.since(since)),
            None => self.thresholds.average(self.scaled_average, backlog),
        };
    }

    /// A packet arrives and finds `backlog`: the decision about it.
    pub(super) fn arrival(&mut self, now: Time, backlog: u64, random: &mut Random) -> RedReaction {
        self.observe(now, backlog);
        self.thresholds.decide(&mut self.spacing, self.scaled_average, random)
    }

    /// The average in the unit of the queue.
    pub(crate) fn average(&self) -> f64 {
        self.scaled_average as f64 * weight_of(self.thresholds.wlog)
    }

    /// The whole average that `time` leaves of it.
    pub(super) fn average_at(&self, time: Time) -> f64 {
        let scaled = match self.idle_since {
            Some(since) => self.damping.apply(self.scaled_average, time.since(since)),
            None => self.scaled_average,
        };
        (scaled >> self.thresholds.wlog) as f64
    }

    /// The probability of the average.
    pub(crate) fn probability(&self) -> f64 {
        self.thresholds.probability(self.scaled_average)
    }
}

/// The effect on the average of a time without a queue.
#[derive(Clone, Debug)]
pub(crate) struct Damping {
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
    pub(crate) fn new(wlog: u32, avpkt: u32, bandwidth: Rate) -> Option<Damping> {
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

/// 2^-log.
pub(super) fn weight_of(log: u32) -> f64 {
    1.0 / (1u64 << log) as f64
}
