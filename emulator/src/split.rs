//! The choice between several paths, packet by packet, flow by flow, or over time.
//!
//! # Source
//! - `Vector`: the send vector of Yedugundla's and Kaspar's packet schedulers as the thesis on
//!   reordering over aggregated paths (Oslo 2015) gives it: section 5.2, algorithm 1.
//! - `Weighted`: weighted round robin in its smooth form, which spreads the turns of a path evenly
//!   (the `smooth weighted round-robin` of nginx, 2012): each path gains its weight, the one with
//!   the most is taken, the first of several, and pays the sum of all.
//! - `Random`: each packet by itself with the weights as odds, as `wrandom` of Linux's former
//!   multipath routing.
//! - `FlowHash`: equal-cost multipath by hash threshold (RFC 2992) with regions as large as the
//!   weights, as Linux's next-hop groups have them.
//! - `Flip`: a route that changes every period, as in studies of route flaps.
//!
//! # Departures
//! `FlowHash` takes the flow hash of the simulation (one for each direction of a flow) in place of
//! one over addresses and ports.

use ackclock_units::{Random, Span, Time};

/// Positions of a send vector.
const LEN: u32 = u64::BITS;

/// The most paths of a split.
pub const MAX_PATHS: usize = 16;

/// The assignment of packets to several paths.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum SplitRule {
    /// Two paths: cycles through a vector of 64 bits, the lowest first, in which a 1 is the second
    /// path.
    Vector(u64),
    /// Each path in turn, as often as its weight says.
    Weighted(Vec<u32>),
    /// At random, with these odds.
    Random(Vec<u32>),
    /// All packets of a flow over one path, chosen by the flow's hash with these weights.
    FlowHash(Vec<u32>),
    /// All packets over one path, and after each period over the next one.
    Flip {
        /// Time for which a path is taken; above 0.
        period: Span,
        /// The number of paths.
        paths: usize,
    },
}

impl SplitRule {
    /// A rule that gives each path one packet in turn.
    pub fn round_robin(paths: usize) -> SplitRule {
        SplitRule::Weighted(vec![1; paths])
    }

    /// The number of paths.
    pub fn paths(&self) -> usize {
        match self {
            SplitRule::Vector(_) => 2,
            SplitRule::Weighted(weights) | SplitRule::Random(weights) | SplitRule::FlowHash(weights) => weights.len(),
            SplitRule::Flip { paths, .. } => *paths,
        }
    }
}

/// A split as far as it has come.
#[derive(Clone, Debug)]
pub struct Split {
    rule: SplitRule,
    /// The position in a send vector.
    position: u32,
    /// The gain of each path of a weighted round robin.
    gains: [i64; MAX_PATHS],
    /// The sum of the weights.
    total: u64,
    random: Random,
}

impl Split {
    /// Begins with the first packet.
    ///
    /// # Panics
    /// There are fewer than two paths or more than [`MAX_PATHS`], all weights are 0, or a period
    /// is.
    pub fn new(rule: SplitRule, random: Random) -> Split {
        assert!((2..=MAX_PATHS).contains(&rule.paths()), "{} paths", rule.paths());
        let total = match &rule {
            SplitRule::Vector(_) => 1,
            SplitRule::Weighted(weights) | SplitRule::Random(weights) | SplitRule::FlowHash(weights) => {
                weights.iter().map(|&weight| u64::from(weight)).sum()
            }
            SplitRule::Flip { period, .. } => period.as_nanos(),
        };
        assert!(total > 0, "no path is ever taken");
        Split { rule, position: 0, gains: [0; MAX_PATHS], total, random }
    }

    /// The path of the next packet, from 0, which enters at `now`.
    pub fn next(&mut self, now: Time, flow_hash: u64) -> usize {
        match &self.rule {
            SplitRule::Vector(vector) => {
                let second = vector >> self.position & 1;
                self.position = (self.position + 1) % LEN;
                second as usize
            }
            SplitRule::Weighted(weights) => {
                let mut most = 0;
                for (path, &weight) in weights.iter().enumerate() {
                    self.gains[path] += i64::from(weight);
                    if self.gains[path] > self.gains[most] {
                        most = path;
                    }
                }
                self.gains[most] -= self.total as i64;
                most
            }
            SplitRule::Random(weights) => region(weights, self.random.below(self.total)),
            SplitRule::FlowHash(weights) => {
                region(weights, ((u128::from(flow_hash) * u128::from(self.total)) >> u64::BITS) as u64)
            }
            SplitRule::Flip { paths, .. } => (now.as_nanos() / self.total % *paths as u64) as usize,
        }
    }
}

/// The path in whose share of all weights a number below their sum is.
fn region(weights: &[u32], number: u64) -> usize {
    let mut end = 0;
    let ends_behind = |&weight: &u32| {
        end += u64::from(weight);
        number < end
    };
    weights.iter().position(ends_behind).unwrap_or(weights.len() - 1)
}

/// The send vector for these weights of the primary and the secondary path: the share of the
/// secondary one is r = w1/(w0 + w1), rounded to a multiple of 1/64, and its bits are set at
/// round(i/r), i = 1, 2, ..., counted from 1. `None` if both weights are 0.
pub fn send_vector(primary: u32, secondary: u32) -> Option<u64> {
    let (n, w1, sum) = (u64::from(LEN), u64::from(secondary), u64::from(primary) + u64::from(secondary));
    if sum == 0 {
        return None;
    }
    // r * n, halves up.
    let ones = (2 * w1 * n + sum) / (2 * sum);
    // i/r = i * n / (r * n), halves up. Steps are 1 at least, so that no two bits fall on each
    // other.
    Some((1..=ones).map(|i| (2 * i * n + ones) / (2 * ones)).fold(0, |vector, at| vector | 1 << (at - 1)))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn split(rule: SplitRule) -> Split {
        Split::new(rule, Random::for_component(1, 0, "split"))
    }

    fn taken(rule: SplitRule, packets: usize) -> Vec<usize> {
        let mut split = split(rule);
        (0..packets).map(|_| split.next(Time::ZERO, 0)).collect()
    }

    #[test]
    fn equal_weights_alternate() {
        assert_eq!(send_vector(1, 1), Some(0xaaaa_aaaa_aaaa_aaaa));
        let alternating: Vec<usize> = (0..130).map(|n| n % 2).collect();
        assert_eq!(taken(SplitRule::Vector(0xaaaa_aaaa_aaaa_aaaa), 130), alternating);
        assert_eq!(taken(SplitRule::round_robin(2), 130), alternating);
        assert_eq!(taken(SplitRule::round_robin(5), 12), [0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 0, 1]);
    }

    #[test]
    fn unequal_weights_are_spread() {
        // r = 1/4: positions 4, 8, ..., counted from 1.
        assert_eq!(send_vector(3, 1), Some(0x8888_8888_8888_8888));
        // r = 21/64 in place of 1/3: positions round(i * 64 / 21).
        let third = send_vector(2, 1).unwrap();
        assert_eq!((third.count_ones(), third & 0x1ff), (21, 0b1_0010_0100));
        assert_eq!((send_vector(1, 0), send_vector(0, 7), send_vector(0, 0)), (Some(0), Some(u64::MAX), None));
        // The example of nginx's commit: weights 5, 1, 1.
        assert_eq!(taken(SplitRule::Weighted(vec![5, 1, 1]), 14), [0, 0, 1, 0, 2, 0, 0, 0, 0, 1, 0, 2, 0, 0]);
        // A path without weight is never taken.
        assert_eq!(taken(SplitRule::Weighted(vec![0, 1]), 4), [1; 4]);
    }

    #[test]
    fn routes_change_with_time_alone() {
        let mut split = split(SplitRule::Flip { period: Span::from_millis(10), paths: 3 });
        let at = [0, 9, 10, 19, 20, 29, 30, 65].map(|ms| split.next(Time::from_millis(ms), ms));
        assert_eq!(at, [0, 0, 1, 1, 2, 2, 0, 0]);
    }

    #[test]
    fn a_flow_keeps_its_path_and_flows_have_shares() {
        let mut split = split(SplitRule::FlowHash(vec![1, 0, 3]));
        // Hash thresholds: the first quarter of all hashes, then nothing, then the rest.
        let quarter = u64::MAX / 4;
        let of = [0, quarter - 1, quarter + 1, u64::MAX].map(|hash| split.next(Time::ZERO, hash));
        assert_eq!(of, [0, 0, 2, 2]);
    }

    proptest! {
        /// After a whole turn each path was taken as often as its weight says, and never far from
        /// it in between; at random, about as often.
        #[test]
        fn paths_have_their_shares(weights in prop::collection::vec(0u32..20, 2..=MAX_PATHS), turns in 1usize..4) {
            let total: u32 = weights.iter().sum();
            prop_assume!(total > 0);
            let order = taken(SplitRule::Weighted(weights.clone()), total as usize * turns);
            for (path, &weight) in weights.iter().enumerate() {
                let mut count = 0.0;
                for (number, &taken) in order.iter().enumerate() {
                    count += f64::from(u8::from(taken == path));
                    let share = f64::from(weight) / f64::from(total) * (number + 1) as f64;
                    prop_assert!((count - share).abs() < weights.len() as f64, "path {path} after {number}");
                }
                prop_assert_eq!(count, f64::from(weight) * turns as f64);
            }
            let drawn = taken(SplitRule::Random(weights.clone()), 4000);
            for (path, &weight) in weights.iter().enumerate() {
                let share = f64::from(weight) / f64::from(total);
                let found = drawn.iter().filter(|&&taken| taken == path).count() as f64 / 4000.0;
                // Six standard deviations.
                prop_assert!((found - share).abs() <= 6.0 * (share * (1.0 - share) / 4000.0).sqrt(), "{path}: {found}");
            }
        }

    }

    #[test]
    fn the_error_of_a_share_is_at_most_half_a_position() {
        for primary in 0..60 {
            for secondary in 1..60 {
                let vector = send_vector(primary, secondary).unwrap();
                let share = f64::from(secondary) / f64::from(primary + secondary);
                assert!((f64::from(vector.count_ones()) / 64.0 - share).abs() <= 1.0 / 128.0, "{primary}:{secondary}");
            }
        }
    }
}
