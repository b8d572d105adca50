//! `ackclock trace`: synthetic traces of a link's rate and delay.

use std::fs;

use ackclock_emulator::{Model, Notation, OPPORTUNITY};
use ackclock_units::{QuantityError, Random, Rate, Span, parse_rate, parse_span};
use anyhow::{Context, bail};

use crate::args::trace::{CommonArgs, LteArgs, MarkovArgs, ModelArgs, SatelliteArgs, TraceArgs, TraceFormat};
use crate::console::print;

/// The longest trace.
const LONGEST: Span = Span::from_secs(3600);

/// The most lines: what is longer than this would be too large for a scenario.
const MOST_LINES: f64 = 5e6;

/// The most changes of a schedule.
const MOST_CHANGES: usize = 10_000;

/// The most states of a Markov chain.
const MOST_STATES: usize = 1000;

/// Time for which a satellite serves.
const TURN: Span = Span::from_secs(15);

/// Writes a trace; the status to end with.
pub(crate) fn run(args: &TraceArgs) -> anyhow::Result<u8> {
    let (model, common) = match &args.model {
        ModelArgs::Markov(args) => (markov(args)?, &args.common),
        ModelArgs::Lte(args) => (lte(args)?, &args.common),
        ModelArgs::Satellite(args) => (satellite(args)?, &args.common),
    };
    let length = span("--duration", &common.duration)?;
    if !(Span::from_millis(1)..=LONGEST).contains(&length) || length.as_nanos() % 1_000_000 != 0 {
        bail!("--duration {}: expected whole milliseconds, from 1ms to {LONGEST}", common.duration);
    }
    let notation = match common.format {
        TraceFormat::Mahimahi => Notation::Mahimahi,
        TraceFormat::Rates => Notation::Rates,
        TraceFormat::Path => Notation::Path,
        TraceFormat::Schedule => Notation::Schedule,
    };
    let lines = lines(&model, length, notation);
    if lines > MOST_LINES {
        bail!("the trace would have about {lines:.0} lines; expected at most {MOST_LINES}, with a shorter --duration");
    }
    let text = model.draw(length, notation, &mut Random::for_component(common.seed, 0, "trace"));
    if notation == Notation::Schedule && text.lines().count() > MOST_CHANGES + 2 {
        bail!("a schedule has at most {MOST_CHANGES} changes; expected a shorter --duration or --format rates");
    }
    write(&text, common)?;
    Ok(0)
}

fn write(text: &str, common: &CommonArgs) -> anyhow::Result<()> {
    match &common.output {
        Some(path) => fs::write(path, text).with_context(|| format!("--output: cannot write {}", path.display())),
        None => print(text).map(|_| ()),
    }
}

/// About how many lines a trace has at most.
fn lines(model: &Model, length: Span, notation: Notation) -> f64 {
    let most = match model {
        Model::Markov { states } => states.iter().map(|&(rate, _)| rate).max(),
        &Model::Lte { max, .. } => Some(max),
        Model::Satellite { rates: [_, high], .. } => Some(*high),
    };
    let steps = match model {
        Model::Markov { states } => {
            let mean = states.iter().map(|(_, mean)| mean.as_secs_f64()).sum::<f64>() / states.len() as f64;
            length.as_secs_f64() / mean
        }
        // Far below the limit.
        Model::Lte { .. } | Model::Satellite { .. } => 0.0,
    };
    let opportunities =
        most.map_or(0.0, |rate| rate.as_bps() as f64 * length.as_secs_f64() / f64::from(OPPORTUNITY * 8));
    if notation == Notation::Mahimahi { steps.max(opportunities) } else { steps }
}

fn markov(args: &MarkovArgs) -> anyhow::Result<Model> {
    let rates = rates(&args.rates)?;
    let mut hold = args.hold.iter().map(|text| positive("--hold", text)).collect::<anyhow::Result<Vec<Span>>>()?;
    if rates.len() > MOST_STATES {
        bail!("--rates: {} states; expected at most {MOST_STATES}", rates.len());
    }
    if let [one] = hold[..] {
        hold.resize(rates.len(), one);
    }
    if hold.len() != rates.len() {
        bail!("--hold: found {} times for {} rates; expected one for all, or one for each", hold.len(), rates.len());
    }
    Ok(Model::Markov { states: rates.into_iter().zip(hold).collect() })
}

fn lte(args: &LteArgs) -> anyhow::Result<Model> {
    let sigma = match parse_rate(args.sigma.trim()) {
        Ok(sigma) => sigma.as_bps(),
        Err(QuantityError::Zero) => 0,
        Err(error) => return Err(error).with_context(|| format!("--sigma {}", args.sigma)),
    };
    Ok(Model::Lte { max: rate("--max", &args.max)?, sigma, outage: span("--outage", &args.outage)? })
}

fn satellite(args: &SatelliteArgs) -> anyhow::Result<Model> {
    let [low, high] = rates(&args.rates)?[..] else {
        bail!("--rates: expected the lowest and the highest rate, such as 50mbit,150mbit");
    };
    let delays = args.delays.iter().map(|text| span("--delays", text)).collect::<anyhow::Result<Vec<Span>>>()?;
    let [short, long] = delays[..] else {
        bail!("--delays: expected the shortest and the longest delay, such as 20ms,40ms");
    };
    if low > high {
        bail!("--rates: {low} is higher than {high}; expected the lowest rate first");
    }
    if short > long {
        bail!("--delays: {short} is longer than {long}; expected the shortest delay first");
    }
    let gap = span("--gap", &args.gap)?;
    if gap >= TURN {
        bail!("--gap {}: expected less than {TURN}, after which there is another handover", args.gap);
    }
    Ok(Model::Satellite { rates: [low, high], delays: [short, long], gap })
}

fn rates(texts: &[String]) -> anyhow::Result<Vec<Rate>> {
    texts.iter().map(|text| rate("--rates", text)).collect()
}

fn rate(flag: &str, text: &str) -> anyhow::Result<Rate> {
    parse_rate(text.trim()).with_context(|| format!("{flag} {text}"))
}

fn span(flag: &str, text: &str) -> anyhow::Result<Span> {
    parse_span(text.trim()).with_context(|| format!("{flag} {text}"))
}

fn positive(flag: &str, text: &str) -> anyhow::Result<Span> {
    match span(flag, text)? {
        Span::ZERO => bail!("{flag} {text}: must not be zero"),
        span => Ok(span),
    }
}
