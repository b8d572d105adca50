//! Random delay: its distribution and its correlation.
//!
//! # Source
//! Linux `net/sched/sch_netem.c`, `get_crandom` and `tabledist`; iproute2 `netem/normal.c`,
//! `pareto.c` and `paretonormal.c` for the tables, of which `tc` ships the output.
//!
//! # Departures
//! - The number drawn selects an entry of a table by its size, not by its remainder. netem's
//!   remainder keeps the low bits alone, which are as good as uncorrelated for any correlation and
//!   any jitter much below 4 s.
//! - Uniform jitter is from 0 to the jitter, netem's from minus to plus the jitter.

use std::sync::OnceLock;

use ackclock_units::{Random, Span, Time, maths};

/// The distribution of random delay.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum JitterDistribution {
    /// Added to the delay: from 0 to the jitter.
    #[default]
    Uniform,
    /// Around the delay, of this standard deviation, up to four of them on each side.
    Normal,
    /// Around the delay: `4/3 (P - 3/2)` times the jitter, with P of a Pareto distribution with
    /// scale 1 and shape 3, up to four times the jitter.
    Pareto,
    /// Around the delay: a quarter of the normal quantile and three of the Pareto quantile.
    ParetoNormal,
}

impl JitterDistribution {
    /// All of them.
    pub const ALL: [JitterDistribution; 4] = [
        JitterDistribution::Uniform,
        JitterDistribution::Normal,
        JitterDistribution::Pareto,
        JitterDistribution::ParetoNormal,
    ];

    /// The name in scenarios and in `tc`.
    pub const fn name(self) -> &'static str {
        match self {
            JitterDistribution::Uniform => "uniform",
            JitterDistribution::Normal => "normal",
            JitterDistribution::Pareto => "pareto",
            JitterDistribution::ParetoNormal => "paretonormal",
        }
    }

    /// The least that a packet takes which on average takes `delay`.
    pub(super) fn least(self, delay: Span, jitter: Span) -> Span {
        least(self.table(), delay, jitter)
    }

    /// Its quantiles, in units of 1/8192 of the jitter.
    pub(crate) fn table(self) -> Option<&'static [i16]> {
        static TABLES: [OnceLock<[i16; ENTRIES]>; 3] = [const { OnceLock::new() }; 3];
        match self {
            JitterDistribution::Uniform => None,
            JitterDistribution::Normal => Some(TABLES[0].get_or_init(|| normal().map(limited))),
            JitterDistribution::Pareto => {
                // From the largest to the smallest probability of being exceeded, never 0.
                let entry = |n: usize| limited(pareto(1.0 - n as f64 / ENTRIES as f64));
                Some(TABLES[1].get_or_init(|| std::array::from_fn(entry)))
            }
            JitterDistribution::ParetoNormal => Some(TABLES[2].get_or_init(|| {
                let normal = normal();
                // Whole numbers, as in the source.
                let entry = |n: usize| {
                    let pareto = i32::from(limited(pareto(1.0 - n as f64 / ENTRIES as f64)));
                    limited(f64::from((normal[n].round_ties_even() as i32 + 3 * pareto) / 4))
                };
                std::array::from_fn(entry)
            })),
        }
    }
}

/// The least that a packet takes which without jitter takes `delay`, by a table.
pub(super) fn least(table: Option<&[i16]>, delay: Span, jitter: Span) -> Span {
    let Some(&lowest) = table.and_then(|table| table.iter().min()).filter(|lowest| **lowest < 0) else { return delay };
    let offset = (u128::from(jitter.as_nanos()) * u128::from(lowest.unsigned_abs())).div_ceil(SCALE as u128);
    delay - Span::from_nanos(u64::try_from(offset).unwrap_or(u64::MAX))
}

const ENTRIES: usize = 4096;
const SCALE: f64 = 8192.0;

fn limited(value: f64) -> i16 {
    // Beyond its range a number becomes the nearest that there is.
    value.round_ties_even() as i16
}

/// The quantile that is exceeded with this probability.
fn pareto(exceeded: f64) -> f64 {
    (1.0 / maths::cbrt(exceeded) - 1.5) * (4.0 / 3.0) * SCALE
}

/// Quantiles of the normal distribution, those at `(n + 1/8) / ENTRIES`: the source walks up the
/// distribution function and keeps the last point that rounds to `4 n` of `4 ENTRIES`.
fn normal() -> [f64; ENTRIES] {
    // Steps of the walk, which begins where nothing rounds to anything yet.
    const STEP: f64 = 1.0 / 16_384.0;
    const STEPS: i32 = 5 * 16_384;
    let density = |x: f64| maths::exp(-0.5 * x * x) * 0.398_942_280_401_432_7;
    // From the middle down, by Simpson's rule.
    let mut below = vec![0.5];
    for n in 0..STEPS {
        let x = -f64::from(n) * STEP;
        let area = (density(x) + 4.0 * density(x - 0.5 * STEP) + density(x - STEP)) * STEP / 6.0;
        below.push(below[n as usize] - area);
    }
    let probability = |n: i32| {
        let tail = below[n.unsigned_abs() as usize];
        if n < 0 { tail } else { 1.0 - tail }
    };
    let mut at = -STEPS;
    std::array::from_fn(|n| {
        let wanted = (n as f64 + 0.125) / ENTRIES as f64;
        while at < STEPS && probability(at) < wanted {
            at += 1;
        }
        // Between the two points around it.
        let (low, high) = (probability(at - 1), probability(at));
        (f64::from(at) - (high - wanted) / (high - low)) * STEP * SCALE
    })
}

/// Numbers of 32 bits of which each depends on the one before it: the mean of a new one and the
/// last one, weighted by the correlation. So they are distributed less widely than the new ones,
/// with `(1 - c) / (1 + c)` of the variance.
#[derive(Debug)]
pub(crate) struct Correlated {
    random: Random,
    /// The correlation, of 2^32.
    weight: u64,
    last: Option<u32>,
}

impl Correlated {
    pub(crate) fn new(random: Random, correlation: f64) -> Correlated {
        let rho = (correlation.clamp(0.0, 1.0) * f64::from(u32::MAX)) as u64;
        Correlated { random, weight: if rho == 0 { 0 } else { rho + 1 }, last: None }
    }

    /// The next number of the stream itself.
    pub(super) fn random(&mut self) -> &mut Random {
        &mut self.random
    }

    pub(super) fn is_plain(&self) -> bool {
        self.weight == 0
    }

    fn next(&mut self) -> u32 {
        let mut draw = || (self.random.bits() >> 32) as u32;
        if self.weight == 0 {
            return draw();
        }
        let last = self.last.unwrap_or_else(&mut draw);
        let mixed = (u64::from(draw()) * ((1 << 32) - self.weight) + u64::from(last) * self.weight) >> 32;
        self.last = Some(mixed as u32);
        mixed as u32
    }

    /// The arrival time of a packet that was sent at `sent` and would arrive at `arrival`.
    pub(crate) fn delay(&mut self, sent: Time, arrival: Time, jitter: Span, table: Option<&[i16]>) -> Time {
        let draw = self.next();
        let Some(table) = table else {
            let extra = (u128::from(draw) * (u128::from(jitter.as_nanos()) + 1)) >> 32;
            return arrival + Span::from_nanos(u64::try_from(extra).unwrap_or(u64::MAX));
        };
        let value = i128::from(table[((u64::from(draw) * table.len() as u64) >> 32) as usize]);
        let offset = (i128::from(jitter.as_nanos()) * value).div_euclid(SCALE as i128);
        let span = Span::from_nanos(u64::try_from(offset.unsigned_abs()).unwrap_or(u64::MAX));
        // No packet arrives before it was sent.
        if offset >= 0 { arrival + span } else { sent + arrival.since(sent + span) }
    }
}

#[cfg(test)]
mod tests;
