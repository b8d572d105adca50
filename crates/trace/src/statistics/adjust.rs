//! Probabilities of many tests, adjusted for their number: one is at most a level where its test
//! would be rejected at that level.

/// By the step-down procedure of Holm: the probability of any false rejection among all tests is at
/// most the level, however the tests depend on each other.
pub fn holm(probabilities: &[f64]) -> Vec<f64> {
    let ranked = ascending(probabilities);
    let mut adjusted = vec![0.0; ranked.len()];
    let mut greatest = 0.0f64;
    for (rank, &test) in ranked.iter().enumerate() {
        greatest = greatest.max(probabilities[test] * (ranked.len() - rank) as f64);
        adjusted[test] = greatest.min(1.0);
    }
    adjusted
}

/// By the step-up procedure of Benjamini and Hochberg: the expected share of false rejections among
/// all rejections is at most the level, for tests that are independent or depend on each other
/// positively.
pub fn benjamini_hochberg(probabilities: &[f64]) -> Vec<f64> {
    let ranked = ascending(probabilities);
    let mut adjusted = vec![0.0; ranked.len()];
    let mut least = 1.0f64;
    for (rank, &test) in ranked.iter().enumerate().rev() {
        least = least.min(probabilities[test] * ranked.len() as f64 / (rank + 1) as f64);
        adjusted[test] = least;
    }
    adjusted
}

/// The numbers of the tests, the smallest probability first.
fn ascending(probabilities: &[f64]) -> Vec<usize> {
    let mut ranked: Vec<usize> = (0..probabilities.len()).collect();
    ranked.sort_by(|&a, &b| probabilities[a].total_cmp(&probabilities[b]));
    ranked
}
