use super::*;
use crate::{Format, Trace};

const MAHIMAHI: Format = Format::Mahimahi { bytes: OPPORTUNITY };

fn random(name: &str) -> Random {
    Random::for_component(1, 0, name)
}

fn mbit(mbit: u64) -> Rate {
    Rate::from_bps(mbit * 1_000_000).unwrap()
}

fn ms(millis: u64) -> Span {
    Span::from_millis(millis)
}

fn secs(secs: u64) -> Span {
    Span::from_secs(secs)
}

fn lte_of(sigma: u64, outage: Span) -> Model {
    Model::Lte { max: Rate::from_bps(12_032_000).unwrap(), sigma, outage }
}

/// Each rate with the nanoseconds for which it applies.
fn held(steps: &[RateStep], length: Span) -> Vec<(u64, u64)> {
    intervals(steps, length).map(|(step, end)| (step.bps, (end.min(length) - step.at).as_nanos())).collect()
}

#[test]
fn a_markov_chain_is_in_each_state_in_proportion_to_its_holding_time() {
    // Each state follows each other one equally often, so that of a round of 50 + 100 + 250 ms the
    // states have 1/8, 1/4 and 5/8: 2/8 + 10/4 + 30 * 5/8 = 21.5 Mbit/s.
    let states = vec![(mbit(2), ms(50)), (mbit(10), ms(100)), (mbit(30), ms(250))];
    let length = secs(20_000);
    let steps = markov(&states, length, &mut random("markov"));
    // 150 000 visits of 133 ms on average. The time of 50 000 visits to a state has a relative
    // standard deviation of 1 / sqrt(50 000) = 0.45 %, as has their number, at most.
    for ((rate, mean), share) in states.iter().zip([0.125, 0.25, 0.625]) {
        let visits: Vec<u64> =
            held(&steps, length).into_iter().filter(|&(bps, _)| bps == rate.as_bps()).map(|(_, held)| held).collect();
        let time = visits.iter().sum::<u64>() as f64;
        let mean = mean.as_nanos() as f64;
        assert!((time / visits.len() as f64 / mean - 1.0).abs() < 0.0225, "{rate}: {time}");
        assert!((time / length.as_nanos() as f64 / share - 1.0).abs() < 0.03, "{rate}: {time}");
        // Exponential: a share of 1/e is longer than the mean, +- 5 sqrt(0.37 * 0.63 / 50 000).
        let longer = visits.iter().filter(|&&held| held as f64 > mean).count() as f64 / visits.len() as f64;
        assert!((longer - 0.367_879).abs() < 0.011, "{rate}: {longer}");
    }
    let model = Model::Markov { states };
    for (notation, format) in [(Notation::Rates, Format::Rates), (Notation::Mahimahi, MAHIMAHI)] {
        let trace = Trace::parse(&model.draw(secs(1000), notation, &mut random("markov")), format, true).unwrap();
        assert_eq!(trace.length(), secs(1000));
        // 7500 visits: 2500 to the state of 30 Mbit/s, which moves the mean the most, by 2 %.
        assert!((trace.mean_bps() as f64 / 21.5e6 - 1.0).abs() < 0.05, "{}", trace.mean_bps());
    }
}

#[test]
fn the_first_state_is_drawn_by_its_share_of_the_time() {
    let states = [(mbit(1), ms(100)), (mbit(2), ms(300))];
    let mut random = random("first");
    let first = |_| markov(&states, ms(1), &mut random)[0].bps;
    let second = (0..10_000).map(first).filter(|&bps| bps == 2_000_000).count();
    // 3/4 of them, +- 5 sqrt(10 000 * 3/16).
    assert!(second.abs_diff(7500) < 217, "{second}");
    // A single state is held for good.
    assert_eq!(markov(&[(mbit(3), ms(1))], secs(1), &mut random).iter().map(|step| step.bps).min(), Some(3_000_000));
}

#[test]
fn without_outages_the_rate_is_uniform_below_its_maximum() {
    // A motion that is reflected at both ends stays uniform once it is. It forgets where it was at
    // a rate of (pi sigma / max)^2 / 2 = 123 per second, so that values 20 ms apart are correlated
    // by exp(-2.47) = 0.085. The mean of 50 000 has a standard error of 0.2887 / sqrt(50 000) *
    // sqrt(1.085 / 0.915) = 0.0014, their variance one of sqrt(0.8 * 1.05 / 50 000) = 0.41 %.
    let mut wandering = Wandering::new(mbit(10), 50_000_000, Span::ZERO);
    let mut random = random("uniform");
    let rates: Vec<f64> = std::iter::repeat_with(|| {
        wandering.step(&mut random);
        wandering.rate / 1e7
    })
    .take(50_000)
    .collect();
    assert!(rates.iter().all(|rate| (0.0..=1.0).contains(rate)));
    let n = rates.len() as f64;
    let mean = rates.iter().sum::<f64>() / n;
    assert!((mean - 0.5).abs() < 0.007, "{mean}");
    let variance = rates.iter().map(|rate| (rate - 0.5) * (rate - 0.5)).sum::<f64>() / n;
    assert!((variance * 12.0 - 1.0).abs() < 0.0205, "{variance}");
}

#[test]
fn the_rate_moves_by_sigma_in_a_second() {
    // Far from both ends: 50 steps of 20 ms have the standard deviation sigma, +- 5 / sqrt(2 * 10
    // 000) of it.
    let mut random = random("sigma");
    let squares: f64 = (0..10_000)
        .map(|_| {
            let mut wandering = Wandering::new(mbit(1000), 2_000_000, secs(1));
            for _ in 0..50 {
                wandering.step(&mut random);
            }
            (wandering.rate - 5e8) * (wandering.rate - 5e8)
        })
        .sum();
    let deviation = (squares / 10_000.0).sqrt();
    assert!((deviation / 2e6 - 1.0).abs() < 0.036, "{deviation}");
}

#[test]
fn outages_and_the_times_between_them_are_as_long_as_stated() {
    let mut wandering = Wandering::new(mbit(1000), 700_000_000, secs(1));
    let mut random = random("outages");
    let (mut outages, mut ticks, mut out) = (0_u64, 0_u64, 0_u64);
    let mut was_out = false;
    while outages < 100_000 {
        wandering.step(&mut random);
        let is_out = wandering.rate == 0.0;
        outages += u64::from(is_out && !was_out);
        (ticks, out, was_out) = (ticks + 1, out + u64::from(is_out), is_out);
    }
    // Geometric, with an end of probability 1 - exp(-0.02) = 0.0198 in each step: 50.5 steps, +- 5
    // / sqrt(100 000) of it.
    let length = out as f64 / outages as f64;
    assert!((length / 50.502 - 1.0).abs() < 0.016, "{length}");
    // In between: with s = 700 sqrt(0.02) = 98.99 for a step, the motion starts at |N(0, s)| and
    // ends on average 0.5826 s below 0 (Siegmund 1979), or, unfolded at 1000, as far above 2000.
    // From x to there it takes (x + 0.5826 s) (2000 + 0.5826 s - x) / s^2 steps. With E x = 0.7979
    // s and E x^2 = s^2 that is (0.7979 + 0.5826) * 2000 / s - 1 + 0.5826^2 = 27.23 steps. Their
    // standard deviation is below 3 times as much.
    let between = (ticks - out) as f64 / outages as f64;
    assert!((between / 27.23 - 1.0).abs() < 0.047, "{between}");
}

#[test]
fn opportunities_are_a_poisson_process() {
    // At rest: half of 1000 per second, 300 000 in 600 s, +- 5 sqrt(300 000).
    let text = lte_of(0, secs(1)).draw(secs(600), Notation::Mahimahi, &mut random("poisson"));
    let times: Vec<u64> = text.lines().map(|line| line.parse().unwrap()).collect();
    assert!(times.len().abs_diff(300_000) < 2740, "{}", times.len());
    assert_eq!(times.last(), Some(&600_000));
    // The variance of the numbers in 6000 intervals of 100 ms is their mean, 50, +- 5 sqrt(2 /
    // 6000).
    let mut counts = vec![0_f64; 6000];
    for at in times {
        counts[(at as usize / 100).min(5999)] += 1.0;
    }
    let variance = counts.iter().map(|count| (count - 50.0) * (count - 50.0)).sum::<f64>() / 6000.0;
    assert!((variance / 50.0 - 1.0).abs() < 0.092, "{variance}");
}

#[test]
fn both_notations_of_an_lte_link_have_the_same_rate() {
    let model = lte_of(2_406_400, secs(1));
    let trace = |notation, format| {
        let text = model.draw(secs(300), notation, &mut random("both"));
        Trace::parse(&text, format, true).unwrap()
    };
    let (opportunities, rates) = (trace(Notation::Mahimahi, MAHIMAHI), trace(Notation::Rates, Format::Rates));
    assert_eq!((opportunities.length(), rates.length(), rates.lines()), (secs(300), secs(300), 15_001));
    // The opportunities are drawn at the rates: n of them, +- 5 sqrt(n).
    let expected = rates.mean_bps() as f64 * 300.0 / 12_032.0;
    let number = opportunities.lines() as f64;
    assert!((number - expected).abs() < 5.0 * expected.sqrt(), "{number} {expected}");
}

#[test]
fn constant_rates_give_evenly_spaced_opportunities() {
    // 12.032 Mbit/s are one per millisecond, and 6.016 one every other.
    let step = |at, bps| RateStep { at: ms(at), bps, delay: None };
    let steps = [step(0, 12_032_000), step(3, 0), step(5, 6_016_000), step(8, 12_032_000)];
    // Half an opportunity that was left over at 8 ms is complete half a millisecond later.
    let times: Vec<u64> = earned(&steps, ms(10)).into_iter().map(Span::as_micros).collect();
    assert_eq!(times, [1000, 2000, 3000, 7000, 8500, 9500]);
    assert_eq!(lines(earned(&steps, ms(10)), ms(10)), "1\n2\n3\n7\n8\n10\n");
}

#[test]
fn satellites_take_turns_every_15_seconds() {
    let model = Model::Satellite { rates: [mbit(50), mbit(150)], delays: [ms(20), ms(40)], gap: ms(100) };
    let text = model.draw(secs(50), Notation::Rates, &mut random("satellite"));
    let lines: Vec<(u64, u64)> = (text.lines().skip(1))
        .map(|line| line.split_once(',').map(|(at, rate)| (at.parse().unwrap(), rate.parse().unwrap())).unwrap())
        .collect();
    let times: Vec<u64> = lines.iter().map(|&(at, _)| at / 1000).collect();
    assert_eq!(times, [0, 15_000, 15_100, 30_000, 30_100, 45_000, 45_100, 50_000]);
    assert!([1, 3, 5].iter().all(|&line| lines[line].1 == 0), "{lines:?}");
    // The mean of a long one: 100 Mbit/s in 14.9 of 15 s, +- 5 * 28.9 / sqrt(4000).
    let text = model.draw(secs(60_000), Notation::Rates, &mut random("satellite"));
    let trace = Trace::parse(&text, Format::Rates, true).unwrap();
    assert!((trace.mean_bps() as f64 - 1e8 * 14.9 / 15.0).abs() < 2.3e6, "{}", trace.mean_bps());
    let Model::Satellite { rates, delays, gap } = model else { unreachable!() };
    let steps = satellite(rates, delays, gap, secs(60_000), &mut random("satellite"));
    assert!(steps.iter().all(|step| step.bps == 0 || (50_000_000..=150_000_000).contains(&step.bps)));
    let delays: Vec<u64> = steps.iter().filter_map(|step| Some(step.delay?.as_micros())).collect();
    assert!(delays.iter().all(|delay| (20_000..=40_000).contains(delay)));
    // Uniform: the mean is 30 ms, +- 5 * 20 ms / sqrt(12 * 4000).
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!(mean.abs_diff(30_000) < 457, "{mean}");
}

/// A path has the delays of the schedule; a model without delays has none.
#[test]
fn a_path_has_the_delays_too() {
    let model = Model::Satellite { rates: [mbit(50), mbit(150)], delays: [ms(20), ms(40)], gap: ms(100) };
    let text = model.draw(secs(20), Notation::Path, &mut random("satellite"));
    let steps = satellite([mbit(50), mbit(150)], [ms(20), ms(40)], ms(100), secs(20), &mut random("satellite"));
    let [first, gap, second] = steps[..] else { panic!("{steps:?}") };
    assert_eq!((gap.bps, gap.delay, second.delay), (0, second.delay, second.delay));
    let micros = |step: RateStep| step.delay.unwrap().as_micros();
    let (one, two) = (micros(first), micros(second));
    assert_ne!(one, two);
    assert_eq!(
        text,
        format!(
            "time_us,rate_bit,delay_us\n0,{},{one}\n15000000,0,{two}\n15100000,{},{two}\n20000000,{},{two}\n",
            first.bps, second.bps, second.bps
        )
    );
    let trace = Trace::parse(&text, Format::Path, true).unwrap();
    assert!(trace.has_rate() && trace.has_delay() && !trace.has_loss());
    let markov = Model::Markov { states: vec![(mbit(2), secs(1))] };
    let draw = |notation| markov.draw(secs(3), notation, &mut random("markov"));
    assert_eq!(draw(Notation::Path), draw(Notation::Rates));
}

#[test]
fn a_schedule_says_what_is_new() {
    let step = |at, bps, delay| RateStep { at: ms(at), bps, delay: Some(ms(delay)) };
    let steps = [step(0, 5_000_000, 20), step(1000, 0, 30), step(1500, 5_000_000, 30), step(1600, 0, 30)];
    let expected = "schedule = [\n    { at = \"0s\", rate = \"5mbit\", delay = \"20ms\" },\n    \
                    { at = \"1s\", up = false, delay = \"30ms\" },\n    { at = \"1500ms\", up = true },\n    \
                    { at = \"1600ms\", up = false },\n]\n";
    assert_eq!(schedule(&steps), expected);
}

#[test]
fn a_seed_gives_the_same_trace_again() {
    let model = lte_of(2_406_400, secs(1));
    let draw = |name| model.draw(secs(5), Notation::Mahimahi, &mut random(name));
    assert_eq!(draw("a"), draw("a"));
    assert_ne!(draw("a"), draw("b"));
}
