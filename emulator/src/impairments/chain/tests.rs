use super::super::{Impairments, Loss, WireFates};
use super::*;

/// The number of estimates, and the number of packets of each.
const STREAMS: u64 = 200;
const PACKETS: usize = 20_000;

/// Losses of a link with this model.
fn losses(loss: &Loss, seed: u64) -> Vec<bool> {
    let impairments = Impairments { loss: loss.clone(), ..Impairments::default() };
    let mut fate = WireFates::new(impairments, Random::for_component(seed, 0, "link"));
    (0..PACKETS).map(|_| fate.copies() == 0).collect()
}

/// The lengths of runs of losses.
fn bursts(lost: &[bool]) -> Vec<f64> {
    lost.split(|&lost| !lost).filter(|burst| !burst.is_empty()).map(|burst| burst.len() as f64).collect()
}

/// The estimates of all streams lie around `mean` as their variance says: nine of ten to all of the
/// intervals of 95 % contain it (the standard deviation of that share is 1.5 %), and so does the
/// interval of four standard errors around the mean of all.
fn are_around(what: &str, mean: f64, estimates: &[(f64, f64)]) {
    let covered = estimates.iter().filter(|(estimate, deviation)| (estimate - mean).abs() < 1.96 * deviation).count();
    let share = covered as f64 / estimates.len() as f64;
    assert!((0.89..=1.0).contains(&share), "{what}: {share} of the intervals contain {mean}");
    let n = estimates.len() as f64;
    let all = estimates.iter().map(|(estimate, _)| estimate).sum::<f64>() / n;
    let error = estimates.iter().map(|(_, deviation)| deviation * deviation).sum::<f64>().sqrt() / n;
    assert!((all - mean).abs() < 4.0 * error, "{what}: {all} is not {mean}, standard error {error}");
}

/// The same where the variance has no closed form: it is that of the estimates.
fn are_around_by_batches(what: &str, mean: f64, estimates: &[f64]) {
    let n = estimates.len() as f64;
    let all = estimates.iter().sum::<f64>() / n;
    let variance = estimates.iter().map(|estimate| (estimate - all) * (estimate - all)).sum::<f64>() / (n - 1.0);
    assert!((all - mean).abs() < 4.0 * (variance / n).sqrt(), "{what}: {all} is not {mean}");
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len() as f64
}

fn rate(lost: &[bool]) -> f64 {
    lost.iter().filter(|&&lost| lost).count() as f64 / lost.len() as f64
}

/// The rate of losses and its standard deviation over `PACKETS` of them: the losses are Bernoulli
/// trials whose probability is a chain of two states, with autocorrelation `(1 - p - r)^lag`.
fn rate_of_gilbert_elliott(model: &GilbertElliott) -> (f64, f64) {
    let GilbertElliott { p, r, bad, good } = *model;
    let (in_bad, in_good) = (p / (p + r), r / (p + r));
    let rate = in_bad * bad + in_good * good;
    let memory = 1.0 - p - r;
    let covariance = (bad - good) * (bad - good) * in_bad * in_good * memory / (1.0 - memory);
    (rate, ((rate * (1.0 - rate) + 2.0 * covariance) / PACKETS as f64).sqrt())
}

#[test]
fn the_loss_rate_of_gilbert_elliott_is_that_of_the_closed_form() {
    let models = [
        // Gilbert's simplified chain, Gilbert's, Elliott's, and one without memory.
        GilbertElliott { p: 0.01, r: 0.3, bad: 1.0, good: 0.0 },
        GilbertElliott { p: 0.02, r: 0.1, bad: 0.5, good: 0.0 },
        GilbertElliott { p: 0.05, r: 0.2, bad: 0.6, good: 0.01 },
        GilbertElliott { p: 0.1, r: 0.9, bad: 1.0, good: 0.0 },
    ];
    for model in models {
        let (expected, deviation) = rate_of_gilbert_elliott(&model);
        let loss = Loss::GilbertElliott(model);
        let estimates: Vec<_> = (0..STREAMS).map(|seed| (rate(&losses(&loss, seed)), deviation)).collect();
        are_around(&format!("{model:?}"), expected, &estimates);
    }
}

#[test]
fn bursts_of_the_simple_gilbert_model_are_geometric() {
    for r in [0.1, 0.3, 0.7, 1.0] {
        let loss = Loss::GilbertElliott(GilbertElliott { p: 0.02, r, bad: 1.0, good: 0.0 });
        let estimate = |seed| {
            let bursts = bursts(&losses(&loss, seed));
            (mean(&bursts), ((1.0 - r) / (r * r) / bursts.len() as f64).sqrt())
        };
        let estimates: Vec<_> = (0..STREAMS).map(estimate).collect();
        if r == 1.0 {
            assert!(estimates.iter().all(|&(length, _)| length == 1.0));
        } else {
            are_around(&format!("r = {r}"), 1.0 / r, &estimates);
        }
    }
}

#[test]
fn bursts_of_gilbert_elliott_end_as_often_as_the_chain_says() {
    let model = GilbertElliott { p: 0.05, r: 0.2, bad: 0.6, good: 0.05 };
    let GilbertElliott { p, r, bad, good } = model;
    // A burst ends where a loss is followed by none: of mean length P(lost) / P(lost, then not).
    let (in_bad, in_good) = (p / (p + r), r / (p + r));
    let both = in_bad * bad * ((1.0 - r) * bad + r * good) + in_good * good * ((1.0 - p) * good + p * bad);
    let (rate, _) = rate_of_gilbert_elliott(&model);
    let loss = Loss::GilbertElliott(model);
    let estimates: Vec<_> = (0..STREAMS).map(|seed| mean(&bursts(&losses(&loss, seed)))).collect();
    are_around_by_batches("general", rate / (rate - both), &estimates);
}

/// The shares of the four states.
fn stationary(model: &Markov) -> [f64; 4] {
    let Markov { p13, p31, p32, p23, p14 } = *model;
    let all = p23 * p31 + p13 * p32 + p13 * p23 + p14 * p23 * p31;
    [p23 * p31 / all, p13 * p32 / all, p13 * p23 / all, p14 * p23 * p31 / all]
}

#[test]
fn losses_of_the_four_states_are_those_of_the_stationary_distribution() {
    let models = [
        Markov { p13: 0.01, p31: 0.3, p32: 0.2, p23: 0.4, p14: 0.005 },
        Markov { p13: 0.05, p31: 0.1, p32: 0.6, p23: 0.9, p14: 0.0 },
        Markov { p13: 0.002, p31: 0.5, p32: 0.0, p23: 1.0, p14: 0.05 },
    ];
    for model in models {
        let [gap, delivered, burst, alone] = stationary(&model);
        // A burst of losses begins on the way from 1 to 3, from 2 to 3 and from 1 to 4.
        let begins = gap * (model.p13 + model.p14) + delivered * model.p23;
        let loss = Loss::Markov(model);
        let runs: Vec<_> = (0..STREAMS).map(|seed| losses(&loss, seed)).collect();
        let rates: Vec<_> = runs.iter().map(|lost| rate(lost)).collect();
        are_around_by_batches(&format!("rate of {model:?}"), burst + alone, &rates);
        let lengths: Vec<_> = runs.iter().map(|lost| mean(&bursts(lost))).collect();
        are_around_by_batches(&format!("bursts of {model:?}"), (burst + alone) / begins, &lengths);
    }
}

#[test]
fn bursts_of_the_four_states_without_the_second_are_independent() {
    // Each is a lone loss with probability p14 / (p13 + p14), otherwise geometric.
    let (p13, p31, p14) = (0.01, 0.25, 0.02);
    let loss = Loss::Markov(Markov { p13, p31, p32: 0.0, p23: 1.0, p14 });
    let lone = p14 / (p13 + p14);
    let expected = lone + (1.0 - lone) / p31;
    let variance = lone + (1.0 - lone) * (2.0 - p31) / (p31 * p31) - expected * expected;
    let estimate = |seed| {
        let bursts = bursts(&losses(&loss, seed));
        (mean(&bursts), (variance / bursts.len() as f64).sqrt())
    };
    let estimates: Vec<_> = (0..STREAMS).map(estimate).collect();
    are_around("two kinds of bursts", expected, &estimates);
}

#[test]
fn a_chain_starts_in_the_good_state_and_tells_the_probability_of_each_loss() {
    // Always from good to bad and back: every other packet is lost, the second first.
    let loss = Loss::GilbertElliott(GilbertElliott { p: 1.0, r: 1.0, bad: 1.0, good: 0.0 });
    let lost = losses(&loss, 1);
    assert!((0..).zip(&lost).all(|(n, &lost)| lost == (n % 2 == 1)));
    // 1, 3, 2, 3, 2, ...: the first packet is lost at once, because its fate is that of the state
    // it leads to.
    let loss = Loss::Markov(Markov { p13: 1.0, p31: 0.0, p32: 1.0, p23: 1.0, p14: 0.0 });
    assert!((0..).zip(&losses(&loss, 1)).all(|(n, &lost)| lost == (n % 2 == 0)));
    // 1, 4, 1, 4, ...
    let loss = Loss::Markov(Markov { p13: 0.0, p31: 1.0, p32: 0.0, p23: 1.0, p14: 1.0 });
    assert!((0..).zip(&losses(&loss, 1)).all(|(n, &lost)| lost == (n % 2 == 0)));

    let impairments = Impairments {
        loss: Loss::GilbertElliott(GilbertElliott { p: 1.0, r: 1.0, bad: 0.7, good: 0.2 }),
        ..Impairments::default()
    };
    let mut fate = WireFates::new(impairments, Random::for_component(1, 0, "link"));
    for n in 0..10 {
        fate.copies();
        assert_eq!(fate.loss_probability(), Some(if n % 2 == 0 { 0.2 } else { 0.7 }));
    }
}
