//! Synthetic traces.
//!
//! - *Markov*: the rate is that of a state; a state lasts for an exponentially distributed time,
//!   and each of the others is equally likely to follow. It starts in its stationary distribution,
//!   so that at any time state i has probability `d_i / sum(d)`, with the mean holding times d.
//! - *LTE*: delivery opportunities are a Poisson process whose rate is a Brownian motion between 0
//!   and a maximum. The motion is reflected at the maximum. When it reaches 0, an outage of
//!   exponentially distributed length begins, after which it leaves 0 again. It starts at half of
//!   the maximum.
//! - *Satellite*: a satellite serves for 15 s, at a rate and a delay of its own, both uniformly
//!   distributed; after a handover nothing is sent for a while.
//!
//! # Source
//! LTE: the model of Sprout (Winstein, Sivaraman, Balakrishnan, NSDI 2013, section 3.1), with the
//! constants of its implementation (`src/sprout/process.cc`, `receiver.hh`): steps of 20 ms, at
//! most 1000 packets per second, a standard deviation of 200 packets per second after a second, and
//! outages that end with a rate of 1 per second.
//! Satellite: Mohan et al., "A Multifaceted Look at Starlink Performance", WWW 2024: links are
//! reassigned every 15 s, at which rates and delays change.
//!
//! # Departures
//! - Sprout uses the model to infer the rate from the packets that arrive, by a distribution over
//!   256 rates of which it drops whatever leaves the range. A trace is one path of the motion,
//!   which is therefore reflected.
//! - The first step after an outage is upwards. Without this, half of the outages would be followed
//!   by another one at once, and would be twice as long as stated.

use std::fmt::Write;

use ackclock_units::{Random, Rate, Span, maths};

use super::OPPORTUNITY;

/// A model of a link's rate.
#[derive(Clone, Debug, PartialEq)]
pub enum Model {
    /// A Markov chain in continuous time.
    Markov {
        /// The rate of each state, with the mean time for which it is held, which is above zero. At
        /// least one.
        states: Vec<(Rate, Span)>,
    },
    /// Sprout's model of a cellular link.
    Lte {
        /// The highest rate.
        max: Rate,
        /// The standard deviation of the rate after a second, in bit/s.
        sigma: u64,
        /// The mean length of an outage; without a length, the motion is reflected at 0.
        outage: Span,
    },
    /// Satellites that take turns.
    Satellite {
        /// The lowest and the highest rate.
        rates: [Rate; 2],
        /// The shortest and the longest delay.
        delays: [Span; 2],
        /// The pause after a handover.
        gap: Span,
    },
}

/// The notation of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Notation {
    /// Mahimahi's: a line for each opportunity of 1504 bytes, with its time in milliseconds. The
    /// last one is at the end, for the trace to be as long as requested.
    Mahimahi,
    /// A line for each rate, with the time from which on it applies.
    Rates,
    /// The same with the delay, if the model has one.
    Path,
    /// A `schedule` of a scenario, which also has delays.
    Schedule,
}

/// The interval of rate changes of an LTE link: Sprout's step.
const TICK: Span = Span::from_millis(20);

/// The time for which a satellite serves.
const TURN: Span = Span::from_secs(15);

/// The bits of an opportunity.
const BITS: u64 = OPPORTUNITY as u64 * 8;

/// A rate in bit/s, and perhaps another delay, from a time on.
#[derive(Clone, Copy, Debug, PartialEq)]
struct RateStep {
    at: Span,
    bps: u64,
    delay: Option<Span>,
}

impl Model {
    /// Draws a trace of this length as text.
    pub fn draw(&self, length: Span, notation: Notation, random: &mut Random) -> String {
        let steps = match self {
            Model::Markov { states } => markov(states, length, random),
            &Model::Lte { max, sigma, outage } => lte(max, sigma, outage, length, random),
            &Model::Satellite { rates, delays, gap } => satellite(rates, delays, gap, length, random),
        };
        match notation {
            Notation::Mahimahi => {
                let poisson = matches!(self, Model::Lte { .. });
                let times = if poisson { scattered(&steps, length, random) } else { earned(&steps, length) };
                lines(times, length)
            }
            Notation::Rates => rates(&steps, length, false),
            Notation::Path => rates(&steps, length, true),
            Notation::Schedule => schedule(&steps),
        }
    }
}

/// Exponentially distributed, with a mean in seconds.
fn exponential(mean: f64, random: &mut Random) -> Span {
    Span::from_secs_f64(-maths::ln(1.0 - random.unit()) * mean)
}

/// Normally distributed, by the polar method (Marsaglia, Bray 1964).
fn normal(random: &mut Random) -> f64 {
    loop {
        let (x, y) = (2.0 * random.unit() - 1.0, 2.0 * random.unit() - 1.0);
        let s = x * x + y * y;
        if s > 0.0 && s < 1.0 {
            return x * (-2.0 * maths::ln(s) / s).sqrt();
        }
    }
}

fn markov(states: &[(Rate, Span)], length: Span, random: &mut Random) -> Vec<RateStep> {
    let sum = states.iter().fold(Span::ZERO, |sum, &(_, mean)| sum + mean);
    let mut left = random.below(sum.as_nanos());
    let mut state = 0;
    while state + 1 < states.len() && left >= states[state].1.as_nanos() {
        left -= states[state].1.as_nanos();
        state += 1;
    }
    let (mut steps, mut at) = (Vec::new(), Span::ZERO);
    while at < length {
        let (rate, mean) = states[state];
        steps.push(RateStep { at, bps: rate.as_bps(), delay: None });
        at += exponential(mean.as_secs_f64(), random).max(Span::from_nanos(1));
        if states.len() > 1 {
            let other = random.below(states.len() as u64 - 1) as usize;
            state = other + usize::from(other >= state);
        }
    }
    steps
}

/// The rate of an LTE link, step by step.
#[derive(Debug)]
struct Wandering {
    max: f64,
    /// The standard deviation of a step.
    deviation: f64,
    /// The probability that an outage ends with a step; `None` if there are none.
    ends: Option<f64>,
    rate: f64,
}

impl Wandering {
    fn new(max: Rate, sigma: u64, outage: Span) -> Wandering {
        let (max, tick) = (max.as_bps() as f64, TICK.as_secs_f64());
        let ends = (outage > Span::ZERO).then(|| 1.0 - maths::exp(-tick / outage.as_secs_f64()));
        Wandering { max, deviation: sigma as f64 * tick.sqrt(), ends, rate: max / 2.0 }
    }

    fn step(&mut self, random: &mut Random) {
        let step = normal(random) * self.deviation;
        let next = match self.ends {
            Some(ends) if self.rate == 0.0 && !random.chance(ends) => 0.0,
            Some(_) if self.rate == 0.0 => step.abs(),
            Some(_) => (self.rate + step).max(0.0),
            None => (self.rate + step).abs() % (2.0 * self.max),
        };
        self.rate = if next > self.max { (2.0 * self.max - next).max(0.0) } else { next };
    }
}

fn lte(max: Rate, sigma: u64, outage: Span, length: Span, random: &mut Random) -> Vec<RateStep> {
    let mut wandering = Wandering::new(max, sigma, outage);
    let (mut steps, mut at) = (Vec::new(), Span::ZERO);
    while at < length {
        steps.push(RateStep { at, bps: wandering.rate as u64, delay: None });
        wandering.step(random);
        at += TICK;
    }
    steps
}

fn satellite(rates: [Rate; 2], delays: [Span; 2], gap: Span, length: Span, random: &mut Random) -> Vec<RateStep> {
    let mut uniform = |[low, high]: [u64; 2]| low + random.below(high.saturating_sub(low).saturating_add(1));
    let (mut steps, mut at) = (Vec::new(), Span::ZERO);
    while at < length {
        let bps = uniform(rates.map(Rate::as_bps));
        // Whole microseconds: nobody measures a satellite more finely.
        let delay = Some(Span::from_micros(uniform(delays.map(Span::as_micros))));
        let begins = if at > Span::ZERO { at + gap } else { at };
        if begins > at {
            steps.push(RateStep { at, bps: 0, delay });
        }
        if begins < length && gap < TURN {
            steps.push(RateStep { at: begins, bps, delay });
        }
        at += TURN;
    }
    steps
}

/// The steps with their ends.
fn intervals(steps: &[RateStep], length: Span) -> impl Iterator<Item = (RateStep, Span)> {
    let ends = steps.iter().skip(1).map(|step| step.at).chain([length]);
    steps.iter().copied().zip(ends)
}

/// The times of a Poisson process.
fn scattered(steps: &[RateStep], length: Span, random: &mut Random) -> Vec<Span> {
    let mut times = Vec::new();
    for (step, end) in intervals(steps, length).filter(|(step, _)| step.bps > 0) {
        let mean = BITS as f64 / step.bps as f64;
        // The rest of an exponential time is distributed as a new one.
        let mut at = step.at + exponential(mean, random);
        while at < end {
            times.push(at);
            at += exponential(mean, random);
        }
    }
    times
}

/// The times at which a link of these rates has sent another opportunity's bytes.
fn earned(steps: &[RateStep], length: Span) -> Vec<Span> {
    let opportunity = u128::from(BITS) * 1_000_000_000;
    let (mut times, mut left) = (Vec::new(), opportunity);
    for (step, end) in intervals(steps, length).filter(|(step, _)| step.bps > 0) {
        let mut work = u128::from((end - step.at).as_nanos()) * u128::from(step.bps);
        let mut at = u128::from(step.at.as_nanos());
        while left <= work {
            at += left.div_ceil(u128::from(step.bps));
            times.push(Span::from_nanos(u64::try_from(at).unwrap_or(u64::MAX)));
            (work, left) = (work - left, opportunity);
        }
        left -= work;
    }
    times
}

// Writing to a string does not fail.

fn lines(mut times: Vec<Span>, length: Span) -> String {
    let mut text = String::new();
    times.pop();
    for at in times {
        let _ = writeln!(text, "{}", at.as_millis());
    }
    let _ = writeln!(text, "{}", length.as_millis());
    text
}

fn rates(steps: &[RateStep], length: Span, delays: bool) -> String {
    let delay = |step: &RateStep| step.delay.filter(|_| delays);
    let header = if steps.iter().any(|step| delay(step).is_some()) { ",delay_us" } else { "" };
    let mut text = format!("time_us,rate_bit{header}\n");
    let micros = |at: Span| at.as_nanos().div_ceil(1000);
    let mut line = |at: Span, step: &RateStep| {
        let _ = write!(text, "{},{}", micros(at), step.bps);
        if let Some(delay) = delay(step) {
            let _ = write!(text, ",{}", delay.as_micros());
        }
        text.push('\n');
    };
    for (step, end) in intervals(steps, length) {
        // One that is over within its microsecond does not appear.
        if micros(step.at) < micros(end) {
            line(step.at, &step);
        }
    }
    if let Some(last) = steps.last() {
        line(length, last);
    }
    text
}

fn schedule(steps: &[RateStep]) -> String {
    let mut text = "schedule = [\n".to_owned();
    let (mut rate, mut delay, mut up) = (None, None, true);
    for step in steps {
        let mut change = String::new();
        if (step.bps > 0) != up {
            up = !up;
            let _ = write!(change, ", up = {up}");
        }
        if let Some(new) = Rate::from_bps(step.bps).filter(|&new| rate != Some(new)) {
            let _ = write!(change, ", rate = \"{new}\"");
            rate = Some(new);
        }
        if let Some(new) = step.delay.filter(|&new| delay != Some(new)) {
            let _ = write!(change, ", delay = \"{new}\"");
            delay = Some(new);
        }
        if !change.is_empty() {
            let _ = writeln!(text, "    {{ at = \"{}\"{change} }},", step.at);
        }
    }
    text.push_str("]\n");
    text
}

#[cfg(test)]
mod tests;
