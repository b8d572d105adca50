//! Random streams that do not change between versions or platforms.

use rand_core::{Rng, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A stream of random numbers for one component of one run.
///
/// The raw stream is xoshiro256++ (Blackman, Vigna 2019), seeded through SplitMix64; the
/// conversions are written here because a library's distributions may change between its versions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Random(Xoshiro256PlusPlus);

impl Random {
    /// The stream of the component called `name` in repetition `run` of a scenario with root seed
    /// `seed`.
    ///
    /// Streams depend on the name alone, not on how many components there are: adding a link
    /// changes no other link's stream.
    pub fn for_component(seed: u64, run: u64, name: &str) -> Random {
        let key = splitmix64(Random::seed_of_run(seed, run) ^ fnv1a(name.as_bytes()));
        Random(Xoshiro256PlusPlus::seed_from_u64(key))
    }

    /// The seed from which the streams of all components in repetition `run` are derived: runs with
    /// the same one draw the same numbers.
    pub fn seed_of_run(seed: u64, run: u64) -> u64 {
        splitmix64(splitmix64(seed) ^ run)
    }

    /// The next 64 random bits.
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Uniform in [0, 1), with 53 bits of resolution.
    pub fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Returns true with probability `p`. Always draws, so that the stream advances the same way
    /// for every `p`.
    pub fn chance(&mut self, p: f64) -> bool {
        self.unit() < p
    }

    /// Uniform in [0, n) by the high half of a 64-by-64-bit product; 0 for `n` = 0. The bias is
    /// below n / 2^64.
    pub fn below(&mut self, n: u64) -> u64 {
        ((u128::from(self.bits()) * u128::from(n)) >> 64) as u64
    }
}

/// One step of SplitMix64 (Steele, Lea, Flood 2014): 64 pseudorandom bits, the same for the same
/// `x`.
pub fn splitmix64(x: u64) -> u64 {
    let mut z = x.wrapping_add(0x9e37_79b9_7f4a_7c15);
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// The 64-bit FNV-1a hash (draft-eastlake-fnv).
fn fnv1a(bytes: &[u8]) -> u64 {
    bytes.iter().fold(0xcbf2_9ce4_8422_2325, |hash, &byte| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hashes_match_their_published_vectors() {
        // SplitMix64 from seed 1234567:
        // https://rosettacode.org/wiki/Pseudo-random_numbers/Splitmix64
        assert_eq!(splitmix64(1_234_567), 6_457_827_717_110_365_317);
        // FNV-1a 64 of "foobar": draft-eastlake-fnv, test vectors.
        assert_eq!(fnv1a(b"foobar"), 0x85944171f73967e8);
    }

    #[test]
    fn streams_differ_by_seed_run_and_name_only() {
        let first = |seed, run, name| Random::for_component(seed, run, name).bits();
        let reference = first(1, 0, "link.a");
        assert_eq!(reference, first(1, 0, "link.a"));
        assert_ne!(reference, first(2, 0, "link.a"));
        assert_ne!(reference, first(1, 1, "link.a"));
        assert_ne!(reference, first(1, 0, "link.b"));
        // Runs that begin from the same seed draw the same numbers, whatever it was derived from.
        assert_eq!(Random::seed_of_run(1, 1), splitmix64(splitmix64(1) ^ 1));
    }

    #[test]
    fn unit_has_the_mean_of_a_uniform_and_stays_below_one() {
        let mut random = Random::for_component(7, 0, "unit");
        let n = 100_000;
        let mut sum = 0.0;
        for _ in 0..n {
            let x = random.unit();
            assert!((0.0..1.0).contains(&x));
            sum += x;
        }
        // Standard error of the mean: 1 / sqrt(12 n) = 0.0009; five of them.
        assert!((sum / f64::from(n) - 0.5).abs() < 0.0046);
    }

    #[test]
    fn below_stays_below() {
        let mut random = Random::for_component(7, 0, "below");
        assert_eq!(random.below(0), 0);
        assert!((0..1000).all(|_| random.below(3) < 3));
    }
}
