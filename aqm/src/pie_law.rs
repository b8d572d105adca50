//! PIE's control law, independent of storage: `pie` and `fq_pie` share it.
//!
//! It measures the queueing delay: as the sojourn time of the last packet that left, or
//! (`dq_rate_estimator`) as the backlog over the departure rate, by the arithmetic of Linux or of
//! the RFC. Every `tupdate` a controller adjusts the drop probability by the delay's distance from
//! `target` and by its change since the last update, in steps that are the smaller, the lower the
//! probability is.
//!
//! # Source
//! RFC 8033; where it leaves a choice, Linux `sch_pie` since 5.5 (`net/sched/sch_pie.c`,
//! `include/net/pie.h`): `pie_drop_early` is [`PieState::drop_early`], `pie_process_dequeue` is
//! [`PieState::departed`], `pie_calculate_probability` is [`PieState::update`].
//!
//! # Departures
//! From RFC 8033, as Linux does it:
//! - The burst allowance shrinks with the time between departures, not by `tupdate` per update.
//! - Early drops pause below half the target by the current delay estimate, not by the one of the
//!   last update.
//! - A delay above 250 ms adds 2 % per update; the decay without a queue is 1/64 per update, not 2
//!   %.
//! - The law is always on (section 5.3 has it start above a third of the tail-drop threshold, as an
//!   option).
//!
//! From Linux:
//! - The probability is a floating-point number that stays within 1. Linux has multiples of 2^-56,
//!   with gains that are truncated to five and more digits, and since 5.5 lets it pass 1.
//! - Delays from timestamps are in nanoseconds; Linux has ticks of 64 ns.
//! - The first update is due one `tupdate` after the start, not 500 ms; an update is due at an
//!   exact time, not at the next tick of the kernel's clock (at HZ=250, 30 ms become 32 ms).
//! - A mark, like a drop, always sets the accumulated probability back to zero; Linux forgets it
//!   when the accumulated probability alone has forced the mark.
//!
//! There is no timer. Updates that were due are applied, each with the state at its time, before a
//! packet is considered; one that is due at the time of a packet comes first.

use ackclock_units::parameter::{Domain, Named};
use ackclock_units::{Random, Span, Time, named};

/// Time for which a burst passes without drops after the queue was empty: 150 ms (RFC 8033 section
/// 4.4, `MAX_BURST`).
pub(crate) const MAX_BURST: Span = Span::from_millis(150);
/// Bytes of a measurement of the departure rate (RFC 8033 section 5.2, `DQ_THRESHOLD`).
const DQ_THRESHOLD: u64 = 1 << 14;
/// Binary logarithm of the nanoseconds in a tick of Linux's packet scheduler (`PSCHED_SHIFT`).
const TICK_LOG: u32 = 6;
/// Linux keeps bytes per tick times 2 to this (`PIE_SCALE`).
const RATE_LOG: u32 = 8;
/// Above this delay the probability rises by another [`MAX_STEP`].
const HIGH_DELAY: Span = Span::from_millis(250);
/// Largest rise of a probability of 10 % and more in one update (RFC 8033 section 5.5).
const MAX_STEP: f64 = 0.02;

/// The measurement of the departure rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DqRateEstimator {
    /// As Linux does: an average of rates with weight 1/8, in whole 256ths of a byte per tick of 64
    /// ns, that is in multiples of 61 kB/s. Its truncated eighths let the average stay where the
    /// first measurement put it (22 for the 20.48 of 10 Mbit/s, so that the delay reads 7 % low),
    /// and below 0.5 Mbit/s there is no estimate at all. The packet that starts a measurement
    /// counts in it.
    Linux,
    /// As RFC 8033 section 5.2 does: an average of the times that 16 KiB take, with weight 1/4. A
    /// measurement starts with the packet before its first.
    Rfc8033,
}

named! { DqRateEstimator: Linux = "linux", Rfc8033 = "rfc8033" }

impl DqRateEstimator {
    /// `true` is as Linux, which has no other way.
    pub(crate) const DOMAIN: Domain = Domain::FlagOrName { what: "an estimator", names: DqRateEstimator::NAMES };
}

/// The parameters of the law, as in `PieConfig`.
#[derive(Clone, Debug)]
pub(crate) struct PieLaw {
    pub(crate) target: Span,
    pub(crate) tupdate: Span,
    pub(crate) alpha: u32,
    pub(crate) beta: u32,
    /// Up to this probability packets that can carry a mark are marked; none are if it is absent.
    pub(crate) mark_up_to: Option<f64>,
    pub(crate) bytemode: bool,
    pub(crate) dq_rate_estimator: Option<DqRateEstimator>,
    pub(crate) derandomize: bool,
    pub(crate) mtu: u32,
}

/// The law's decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// Take it in.
    Admit,
    /// Mark it, or drop it if it cannot carry a mark.
    Mark,
    /// Drop it.
    Drop,
}

/// The state of the law for one queue.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PieState {
    pub(crate) probability: f64,
    /// Sum of the probabilities since the last drop or mark.
    pub(crate) accumulated: f64,
    /// The current estimate.
    pub(crate) delay: Span,
    /// The estimate at the last update.
    pub(crate) old_delay: Span,
    /// The rest of [`MAX_BURST`].
    pub(crate) burst_allowance: Span,
    /// Timestamps: the last departure. Rate estimator: the start of the measurement.
    pub(crate) departed_at: Option<Time>,
    /// Bytes departed in the running measurement.
    pub(crate) measured: Option<u64>,
    /// The average of the measurements, 0 while there is none: a rate for Linux, in 2^-[`RATE_LOG`]
    /// bytes per tick; a time for the RFC, in nanoseconds per [`DQ_THRESHOLD`] bytes.
    pub(crate) average: u64,
}

impl PieState {
    /// The state before the first packet.
    pub(crate) fn new() -> PieState {
        PieState {
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            burst_allowance: MAX_BURST,
            departed_at: None,
            measured: None,
            average: 0,
        }
    }

    /// The law is about to have another estimator. Linux has one, whose average is not lost when it
    /// is not in use; ours have averages of different units, and a measurement starts anew.
    pub(crate) fn estimates_by(&mut self, law: &PieLaw, estimator: Option<DqRateEstimator>) {
        if law.dq_rate_estimator.is_some() && estimator.is_some() && law.dq_rate_estimator != estimator {
            self.average = 0;
            self.measured = None;
        }
    }

    /// Makes up for the updates that were due from `due` up to `now`, one each `tupdate`, and
    /// returns when the next one is. Since the first of them nothing came and nothing left, so each
    /// sees the backlog of now. Once an update changes nothing the rest of them will not either.
    #[must_use]
    #[cold]
    pub(crate) fn catch_up(&mut self, law: &PieLaw, due: Time, now: Time, backlog: u64) -> Time {
        let mut due = due;
        while due <= now {
            let before = self.clone();
            self.update(law, backlog);
            let mut updates = 1;
            if *self == before {
                updates += now.since(due).as_nanos() / law.tupdate.as_nanos();
            }
            due += law.tupdate * updates;
        }
        due
    }

    /// Decides about an arrival of `bytes` bytes at a queue of `backlog` bytes.
    #[inline]
    pub(crate) fn arrived(&mut self, law: &PieLaw, backlog: u64, bytes: u32, random: &mut Random) -> Admission {
        if !self.drop_early(law, backlog, bytes, random) {
            return Admission::Admit;
        }
        self.accumulated = 0.0;
        // RFC 8033 s5.1: above this probability marks have not been enough.
        if law.mark_up_to.is_some_and(|up_to| self.probability <= up_to) { Admission::Mark } else { Admission::Drop }
    }

    /// Records that an arrival was refused for lack of room.
    pub(crate) fn overflowed(&mut self) {
        self.accumulated = 0.0;
    }

    /// Returns `true` to drop or mark an arrival of `bytes` bytes (RFC 8033 section 4.1).
    #[inline(always)]
    fn drop_early(&mut self, law: &PieLaw, backlog: u64, bytes: u32, random: &mut Random) -> bool {
        // RFC 8033 s4.4
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        // RFC 8033 s4.1: the delay is low and the congestion light, or the queue so short that a
        // drop could idle the link.
        if self.delay < law.target / 2 && self.probability < 0.2 || backlog < 2 * u64::from(law.mtu) {
            return false;
        }
        let mut probability = self.probability;
        if law.bytemode && bytes < law.mtu {
            probability *= f64::from(bytes) / f64::from(law.mtu);
        }
        if !law.derandomize {
            return random.chance(probability);
        }
        // RFC 8033 s5.4
        self.accumulated = if probability == 0.0 { 0.0 } else { self.accumulated + probability };
        if self.accumulated < 0.85 {
            false
        } else if self.accumulated >= 8.5 {
            true
        } else {
            random.chance(probability)
        }
    }

    /// A packet of `bytes` bytes that came at `enqueued_at` left; `backlog` bytes wait behind it.
    #[inline]
    pub(crate) fn departed(&mut self, law: &PieLaw, now: Time, enqueued_at: Time, bytes: u32, backlog: u64) {
        let elapsed = match law.dq_rate_estimator {
            Some(DqRateEstimator::Linux) => self.measure_rate(now, bytes, backlog),
            Some(DqRateEstimator::Rfc8033) => self.measure_time(now, bytes, backlog),
            None => {
                self.delay = if backlog == 0 { Span::ZERO } else { now.since(enqueued_at) };
                self.departed_at.replace(now).map(|last| now.since(last))
            }
        };
        if let Some(elapsed) = elapsed {
            self.burst_allowance = self.burst_allowance - elapsed;
        }
    }

    /// Measures the departure rate while the backlog lasts, as Linux; the time that a measurement
    /// took once it is complete.
    fn measure_rate(&mut self, now: Time, bytes: u32, backlog: u64) -> Option<Span> {
        if self.measured.is_none() && backlog >= DQ_THRESHOLD {
            self.departed_at = Some(now);
            self.measured = Some(0);
        }
        let (Some(measured), Some(start)) = (&mut self.measured, self.departed_at) else { return None };
        *measured += u64::from(bytes);
        // Both are 32 bits wide there.
        let ticks = (tick(now) - tick(start)) as u32;
        if *measured < DQ_THRESHOLD || ticks == 0 {
            return None;
        }
        let rate = u64::from((*measured << RATE_LOG) as u32 / ticks);
        self.average = if self.average == 0 { rate } else { self.average - (self.average >> 3) + (rate >> 3) };
        // Without the backlog the link may fall idle, and the next measurement would count that
        // time.
        self.measured = (backlog >= DQ_THRESHOLD).then_some(0);
        self.departed_at = Some(now);
        Some(Span::from_nanos(u64::from(ticks) << TICK_LOG))
    }

    /// Measures how long [`DQ_THRESHOLD`] bytes take while the backlog lasts (RFC 8033 section
    /// 5.2); the time that a measurement took once it is complete.
    fn measure_time(&mut self, now: Time, bytes: u32, backlog: u64) -> Option<Span> {
        let mut complete = None;
        if let (Some(measured), Some(start)) = (&mut self.measured, self.departed_at) {
            *measured += u64::from(bytes);
            if *measured >= DQ_THRESHOLD {
                let elapsed = now.since(start);
                // Weight DQ_THRESHOLD / 2^16; in this order it cannot overflow.
                let (average, time) = (self.average, elapsed.as_nanos());
                self.average = if average == 0 { time } else { average - average / 4 + time / 4 };
                self.measured = None;
                complete = Some(elapsed);
            }
        }
        if self.measured.is_none() && backlog >= DQ_THRESHOLD {
            self.measured = Some(0);
            self.departed_at = Some(now);
        }
        complete
    }

    /// The delay of `backlog` bytes at the departure rate; zero while that is unknown.
    fn delay_at_rate(&self, estimator: DqRateEstimator, backlog: u64) -> Span {
        if self.average == 0 {
            return Span::ZERO;
        }
        match estimator {
            // A product of 32 bits there too: beyond 16 MiB it wraps.
            DqRateEstimator::Linux => {
                Span::from_nanos((u64::from((backlog << RATE_LOG) as u32) / self.average) << TICK_LOG)
            }
            DqRateEstimator::Rfc8033 => {
                let nanos = u128::from(backlog) * u128::from(self.average) / u128::from(DQ_THRESHOLD);
                Span::from_nanos(u64::try_from(nanos).unwrap_or(u64::MAX))
            }
        }
    }

    /// Moves the probability (RFC 8033 section 4.2); `backlog` bytes wait.
    pub(crate) fn update(&mut self, law: &PieLaw, backlog: u64) {
        if let Some(estimator) = law.dq_rate_estimator {
            self.delay = self.delay_at_rate(estimator, backlog);
        }
        let (delay, old_delay) = (self.delay, self.old_delay);
        let alpha = f64::from(law.alpha) / 16.0;
        let beta = f64::from(law.beta) / 16.0;
        let mut step = alpha * (delay.as_secs_f64() - law.target.as_secs_f64())
            + beta * (delay.as_secs_f64() - old_delay.as_secs_f64());
        step *= auto_tuning(self.probability);
        // RFC 8033 s5.5
        if self.probability >= 0.1 && step > MAX_STEP {
            step = MAX_STEP;
        }
        if delay > HIGH_DELAY {
            step += MAX_STEP;
        }
        self.probability = (self.probability + step).clamp(0.0, 1.0);
        // A delay of zero with a backlog is one that was not measured.
        if delay == Span::ZERO && old_delay == Span::ZERO && backlog == 0 {
            self.probability -= self.probability / 64.0;
        }
        self.old_delay = delay;

        // RFC 8033 s4.4: no congestion, so the next burst gets its allowance.
        let low = law.target / 2;
        let estimated = law.dq_rate_estimator.is_none() || self.average > 0;
        if delay < low && old_delay < low && self.probability == 0.0 && estimated {
            *self = PieState { delay, old_delay: delay, ..PieState::new() };
        }
    }
}

/// The tick of Linux's packet scheduler at `time`.
fn tick(time: Time) -> u64 {
    time.as_nanos() >> TICK_LOG
}

/// The factor that keeps steps small against the probability (RFC 8033 section 4.2).
fn auto_tuning(probability: f64) -> f64 {
    const STEPS: [(f64, f64); 6] = [
        (0.1, 1.0),
        (0.01, 1.0 / 2.0),
        (0.001, 1.0 / 8.0),
        (0.000_1, 1.0 / 32.0),
        (0.000_01, 1.0 / 128.0),
        (0.000_001, 1.0 / 512.0),
    ];
    STEPS.iter().find(|(from, _)| probability >= *from).map_or(1.0 / 2048.0, |&(_, factor)| factor)
}

#[cfg(test)]
mod tests;
