//! PIE, Proportional Integral controller Enhanced: drops arrivals at random, with a probability that a controller moves
//! every `tupdate` so that the queueing delay settles at `target`.
//!
//! It measures the queueing delay: as the sojourn time of the last packet that left, or (`dq_rate_estimator`) as the backlog
//! over the departure rate. The probability moves with the delay's distance from `target` and with its change since the last
//! update, in steps that are smaller the lower the probability is.
//!
//! # Source
//! RFC 8033; where it leaves a choice, Linux `sch_pie` since 5.5, whose parameters and defaults these are.
//!
//! # Departures
//! From RFC 8033, as Linux does it:
//! - The departure rate is averaged, with weight 1/8; the RFC averages the time that 16 KiB take, with weight 1/4.
//! - The burst allowance shrinks with the time between departures, not by `tupdate` per update.
//! - Early drops pause below half the target by the current delay estimate, not by the one of the last update.
//! - A delay above 250 ms adds 2 % per update; the decay without a queue is 1/64 per update, not 2 %.
//!
//! From Linux:
//! - Probability and departure rate are floating-point numbers. Linux truncates the rate to multiples of 61 kB/s, which puts
//!   its delay estimate 7 % low on a 10 Mbit/s link and disables it below 0.5 Mbit/s; since 5.5 it lets the probability pass 1.
//! - The first update is due one `tupdate` after the start, not 500 ms; an update is due at an exact time, not at the next
//!   tick of the kernel's clock (at HZ=250, 30 ms become 32 ms).
//! - A mark, like a drop, always sets the accumulated probability back to zero; Linux forgets it when the accumulated
//!   probability alone has forced the mark.
//!
//! There is no timer. The updates that were due are made up for, each with the state of its time, before a packet is looked
//! at; one that is due at the time of a packet comes first. So [`QueueDisc::probe`] shows the state as of the last call.

use ackclock_units::{Random, Span, Time};

use crate::{Backlog, Counters, DropReason, Drops, Entry, Probe, QueueDisc, Queued, Store};

/// Time for which a burst passes without drops after the queue was empty: 150 ms (RFC 8033 section 4.4, `MAX_BURST`).
const MAX_BURST: Span = Span::from_millis(150);
/// Bytes of a measurement of the departure rate (RFC 8033 section 5.2, `DQ_THRESHOLD`).
const DQ_THRESHOLD: u64 = 1 << 14;
/// Above this delay the probability rises by another [`MAX_STEP`].
const HIGH_DELAY: Span = Span::from_millis(250);
/// Largest rise of a probability of 10 % and more in one update (RFC 8033 section 5.5).
const MAX_STEP: f64 = 0.02;
/// Up to this probability packets that can carry a mark are marked (RFC 8033 section 5.1, `MARK_ECNTH`).
const MARK_UP_TO: f64 = 0.1;

/// Parameters of a PIE queue.
#[derive(Clone, Debug, PartialEq)]
pub struct PieConfig {
    /// The most packets that wait; further ones are refused. Default: 1000.
    pub limit: u64,
    /// The queueing delay to settle at. Default: 15 ms (RFC 8033 section 4.2, `QDELAY_REF`).
    pub target: Span,
    /// Time between two updates of the probability. Default: 15 ms (RFC 8033 section 4.2, `T_UPDATE`).
    pub tupdate: Span,
    /// Weight of the delay's distance from `target`, in 1/16 Hz as in tc. Default: 2, that is 0.125 Hz (RFC 8033 section
    /// 4.2).
    pub alpha: u32,
    /// Weight of the delay's change since the last update, in 1/16 Hz as in tc. Default: 20, that is 1.25 Hz (RFC 8033
    /// section 4.2).
    pub beta: u32,
    /// Mark packets that can carry a mark instead of dropping them, up to a probability of 10 % (RFC 8033 section 5.1).
    /// Default: off.
    pub ecn: bool,
    /// Scale the probability with the size of the packet over `mtu`. Default: off.
    pub bytemode: bool,
    /// Estimate the delay as backlog over departure rate (RFC 8033 section 5.2; Linux before 5.5) in place of the last
    /// packet's sojourn time. Default: off.
    pub dq_rate_estimator: bool,
    /// Space drops out: none before the probabilities since the last one sum up to 0.85, one for sure at 8.5 (RFC 8033
    /// section 5.4; Linux since 5.1). Default: on.
    pub derandomize: bool,
    /// Bytes of the largest packet: no early drops below a backlog of two of them (RFC 8033 section 4.1). Default: 1514, an
    /// Ethernet frame.
    pub mtu: u32,
}

impl Default for PieConfig {
    fn default() -> PieConfig {
        PieConfig {
            limit: 1000,
            target: Span::from_millis(15),
            tupdate: Span::from_millis(15),
            alpha: 2,
            beta: 20,
            ecn: false,
            bytemode: false,
            dq_rate_estimator: false,
            derandomize: true,
            mtu: 1514,
        }
    }
}

/// A PIE queue.
#[derive(Debug)]
pub struct Pie<P> {
    config: PieConfig,
    law: Law,
    /// When the next update is due.
    next_update: Time,
    random: Random,
    store: Store<P>,
}

/// The variables of the law.
#[derive(Clone, Debug, PartialEq)]
struct Law {
    probability: f64,
    /// Sum of the probabilities since the last drop or mark.
    accumulated: f64,
    /// The current estimate.
    delay: Span,
    /// The estimate at the last update.
    old_delay: Span,
    /// What is left of [`MAX_BURST`].
    burst_allowance: Span,
    /// Timestamps: the last departure. Rate estimator: the start of the measurement.
    departed_at: Option<Time>,
    /// Bytes departed in the running measurement.
    measured: Option<u64>,
    /// Bytes per nanosecond, averaged; 0 while unknown.
    departure_rate: f64,
}

impl<P: Queued> Pie<P> {
    /// An empty queue that draws from `random`.
    ///
    /// # Panics
    /// If `tupdate` is zero.
    pub fn new(config: PieConfig, random: Random) -> Pie<P> {
        assert!(config.tupdate > Span::ZERO, "tupdate must not be zero");
        let next_update = Time::ZERO + config.tupdate;
        Pie { config, law: Law::new(), next_update, random, store: Store::new() }
    }

    /// Makes up for the updates that were due up to `now`. Since the last of them nothing came and nothing left, so each sees
    /// the backlog of now. Once an update changes nothing the rest of them will not either.
    fn catch_up(&mut self, now: Time) {
        while self.next_update <= now {
            let before = self.law.clone();
            self.law.update(&self.config, self.store.backlog().bytes);
            let mut updates = 1;
            if self.law == before {
                updates += now.since(self.next_update).as_nanos() / self.config.tupdate.as_nanos();
            }
            self.next_update += self.config.tupdate * updates;
        }
    }
}

impl<P: Queued + Send> QueueDisc<P> for Pie<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        self.catch_up(now);
        if self.store.backlog().packets >= self.config.limit {
            self.law.accumulated = 0.0;
            self.store.refuse(packet, DropReason::Limit, drops);
            return;
        }
        let backlog = self.store.backlog().bytes;
        if self.law.drop_early(&self.config, backlog, packet.wire_len(), &mut self.random) {
            self.law.accumulated = 0.0;
            // RFC 8033 s5.1: above this probability marks have not been enough.
            let may_mark = self.config.ecn && self.law.probability <= MARK_UP_TO;
            if !(may_mark && self.store.mark(&mut packet)) {
                self.store.refuse(packet, DropReason::Early, drops);
                return;
            }
        }
        self.store.admit(now, packet);
    }

    fn dequeue(&mut self, now: Time, _drops: &mut Drops<P>) -> Option<Entry<P>> {
        self.catch_up(now);
        let entry = self.store.take()?;
        self.law.departed(&self.config, now, &entry, self.store.backlog().bytes);
        Some(self.store.release(entry))
    }

    fn backlog(&self) -> Backlog {
        self.store.backlog()
    }

    fn counters(&self) -> &Counters {
        self.store.counters()
    }

    fn probe(&self) -> Probe {
        Probe { probability: Some(self.law.probability), delay: Some(self.law.delay), ..Probe::default() }
    }
}

impl Law {
    fn new() -> Law {
        Law {
            probability: 0.0,
            accumulated: 0.0,
            delay: Span::ZERO,
            old_delay: Span::ZERO,
            burst_allowance: MAX_BURST,
            departed_at: None,
            measured: None,
            departure_rate: 0.0,
        }
    }

    /// Whether to drop or mark an arrival of `bytes` bytes (RFC 8033 section 4.1).
    fn drop_early(&mut self, config: &PieConfig, backlog: u64, bytes: u32, random: &mut Random) -> bool {
        // RFC 8033 s4.4
        if self.burst_allowance > Span::ZERO {
            return false;
        }
        // RFC 8033 s4.1: the delay is low and the congestion light, or the queue so short that a drop could idle the link.
        if self.delay < config.target / 2 && self.probability < 0.2 || backlog < 2 * u64::from(config.mtu) {
            return false;
        }
        let mut probability = self.probability;
        if config.bytemode && bytes < config.mtu {
            probability *= f64::from(bytes) / f64::from(config.mtu);
        }
        if !config.derandomize {
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

    /// A packet left; `backlog` bytes wait behind it.
    fn departed<P: Queued>(&mut self, config: &PieConfig, now: Time, entry: &Entry<P>, backlog: u64) {
        let elapsed = if config.dq_rate_estimator {
            self.measure_rate(now, entry.packet.wire_len(), backlog)
        } else {
            self.delay = if backlog == 0 { Span::ZERO } else { now.since(entry.enqueued_at) };
            self.departed_at.replace(now).map(|last| now.since(last))
        };
        if let Some(elapsed) = elapsed {
            self.burst_allowance = self.burst_allowance - elapsed;
        }
    }

    /// Measures the departure rate while the backlog lasts (RFC 8033 section 5.2); the time that a measurement took once it
    /// is complete.
    fn measure_rate(&mut self, now: Time, bytes: u32, backlog: u64) -> Option<Span> {
        if self.measured.is_none() && backlog >= DQ_THRESHOLD {
            self.departed_at = Some(now);
            self.measured = Some(0);
        }
        let (Some(measured), Some(start)) = (&mut self.measured, self.departed_at) else { return None };
        *measured += u64::from(bytes);
        let elapsed = now.since(start);
        if *measured < DQ_THRESHOLD || elapsed == Span::ZERO {
            return None;
        }
        let rate = *measured as f64 / elapsed.as_nanos() as f64;
        self.departure_rate =
            if self.departure_rate == 0.0 { rate } else { self.departure_rate + (rate - self.departure_rate) / 8.0 };
        // Without the backlog the link may fall idle, and the next measurement would count that time.
        self.measured = (backlog >= DQ_THRESHOLD).then_some(0);
        self.departed_at = Some(now);
        Some(elapsed)
    }

    /// Moves the probability (RFC 8033 section 4.2); `backlog` bytes wait.
    fn update(&mut self, config: &PieConfig, backlog: u64) {
        if config.dq_rate_estimator {
            self.delay = if self.departure_rate > 0.0 {
                Span::from_nanos((backlog as f64 / self.departure_rate) as u64)
            } else {
                Span::ZERO
            };
        }
        let (delay, old_delay) = (self.delay, self.old_delay);
        let alpha = f64::from(config.alpha) / 16.0;
        let beta = f64::from(config.beta) / 16.0;
        let mut step = alpha * (delay.as_secs_f64() - config.target.as_secs_f64())
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
        let low = config.target / 2;
        let estimated = !config.dq_rate_estimator || self.departure_rate > 0.0;
        if delay < low && old_delay < low && self.probability == 0.0 && estimated {
            *self = Law { delay, old_delay: delay, ..Law::new() };
        }
    }
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
