//! A fixed program beside which times are given, so that machines can be compared: a mixture of
//! dependent loads and arithmetic. It never changes; a round that gives another result is another
//! program.

/// Places in the ring of each size: 16 KiB, 512 KiB and 16 MiB of 32-bit numbers, about what the
/// first two caches of a core have and more than they have.
const PLACES: [u32; 3] = [4 << 10, 128 << 10, 4 << 20];

/// Loads of a step from each ring: like a packet, most from near and few from afar.
const LOADS: [u32; 3] = [64, 8, 1];

/// Steps of a round.
pub const STEPS: u32 = 100_000;

/// The result of the first round.
const FIRST: u64 = 1_483_496_596_083_514_431;

/// The memory of the program, and where it is in it.
pub struct Reference {
    rings: [Vec<u32>; 3],
    at: [u32; 3],
    state: u64,
}

impl Reference {
    /// The program before its first round, which it has made once as a check and to warm up.
    ///
    /// # Panics
    /// The round gave another result than it always does.
    pub fn new() -> Reference {
        let mut reference = Reference { rings: PLACES.map(ring), at: [0; 3], state: 1 };
        assert_eq!(reference.round(), FIRST, "the reference program is not what it was");
        reference
    }

    /// [`STEPS`] steps.
    pub fn round(&mut self) -> u64 {
        for _ in 0..STEPS {
            for ((ring, at), loads) in self.rings.iter().zip(&mut self.at).zip(LOADS) {
                for _ in 0..loads {
                    *at = ring[*at as usize];
                    self.state = mixed(self.state ^ u64::from(*at));
                }
            }
        }
        self.state
    }
}

impl Default for Reference {
    fn default() -> Reference {
        Reference::new()
    }
}

/// SplitMix64's output function.
fn mixed(x: u64) -> u64 {
    let x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

/// Each place holds the number of the next one, in one random cycle through all of them (Sattolo's
/// algorithm).
fn ring(places: u32) -> Vec<u32> {
    let mut ring: Vec<u32> = (0..places).collect();
    for last in (1..places).rev() {
        let other = mixed(u64::from(last).wrapping_mul(0x9e37_79b9_7f4a_7c15)) % u64::from(last);
        ring.swap(last as usize, other as usize);
    }
    ring
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ring_is_one_cycle() {
        let ring = ring(1000);
        let mut at = 0;
        let lengths = (1..=1000).find(|_| {
            at = ring[at as usize];
            at == 0
        });
        assert_eq!(lengths, Some(1000));
    }

    #[test]
    fn the_first_round_is_what_it_always_was() {
        Reference::new();
    }
}
