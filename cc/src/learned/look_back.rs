//! Moving statistics over the last intervals.

use std::collections::VecDeque;

use super::feature::Statistic;

/// The mean, the least and the most of the last so many values.
#[derive(Clone, Debug)]
pub(super) struct LookBack {
    values: VecDeque<f64>,
    most_values: usize,
    pushed: u64,
    sum: f64,
    /// Candidates for the least and the most, with their numbers, the best first.
    least: VecDeque<(u64, f64)>,
    most: VecDeque<(u64, f64)>,
}

impl LookBack {
    pub(super) fn new(values: usize) -> LookBack {
        LookBack {
            values: VecDeque::new(),
            most_values: values.max(1),
            pushed: 0,
            sum: 0.0,
            least: VecDeque::new(),
            most: VecDeque::new(),
        }
    }

    pub(super) fn push(&mut self, value: f64) {
        if self.values.len() == self.most_values {
            let gone = self.pushed - self.most_values as u64;
            self.sum -= self.values.pop_front().unwrap_or(0.0);
            for best in [&mut self.least, &mut self.most] {
                if best.front().is_some_and(|&(number, _)| number == gone) {
                    best.pop_front();
                }
            }
        }
        self.values.push_back(value);
        self.sum += value;
        if self.pushed.is_multiple_of(1 << 10) {
            // Rounding errors of the sum do not accumulate.
            self.sum = self.values.iter().sum();
        }
        while self.least.back().is_some_and(|&(_, other)| other >= value) {
            self.least.pop_back();
        }
        self.least.push_back((self.pushed, value));
        while self.most.back().is_some_and(|&(_, other)| other <= value) {
            self.most.pop_back();
        }
        self.most.push_back((self.pushed, value));
        self.pushed += 1;
    }

    pub(super) fn get(&self, statistic: Statistic) -> f64 {
        match statistic {
            Statistic::Mean => self.sum / self.values.len().max(1) as f64,
            Statistic::Min => self.least.front().map_or(0.0, |&(_, value)| value),
            Statistic::Max => self.most.front().map_or(0.0, |&(_, value)| value),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn statistics_are_those_of_the_last_values() {
        let mut look_back = LookBack::new(7);
        let values: Vec<f64> = (0..5000u32).map(|n| f64::from(n.wrapping_mul(2_654_435_761) >> 20)).collect();
        for (number, &value) in values.iter().enumerate() {
            look_back.push(value);
            let last = &values[(number + 1).saturating_sub(7)..=number];
            let mean = last.iter().sum::<f64>() / last.len() as f64;
            assert!((look_back.get(Statistic::Mean) - mean).abs() < 1e-9);
            assert_eq!(look_back.get(Statistic::Min), last.iter().copied().fold(f64::INFINITY, f64::min));
            assert_eq!(look_back.get(Statistic::Max), last.iter().copied().fold(0.0, f64::max));
        }
    }
}
