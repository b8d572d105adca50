//! The choice between two paths, packet by packet.
//!
//! # Source
//! The send vector of Yedugundla's and Kaspar's packet schedulers as the thesis on reordering over
//! aggregated paths (Oslo 2015) gives it: section 5.2, algorithm 1.

/// Positions of a send vector.
const LEN: u32 = u64::BITS;

/// Sends each packet over the primary (0) or the secondary path (1), cycling through a vector of 64
/// bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Split {
    vector: u64,
    position: u32,
}

impl Split {
    /// Begins at the first position of `vector`, its lowest bit; a 1 is the secondary path.
    pub fn new(vector: u64) -> Split {
        Split { vector, position: 0 }
    }

    /// Whether the next packet takes the secondary path.
    pub fn takes_secondary(&mut self) -> bool {
        let secondary = self.vector >> self.position & 1 == 1;
        self.position = (self.position + 1) % LEN;
        secondary
    }
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
    use super::*;

    #[test]
    fn equal_weights_alternate_and_begin_with_the_primary_path() {
        // r = 1/2: bits 2, 4, ..., 64 counted from 1.
        assert_eq!(send_vector(1, 1), Some(0xaaaa_aaaa_aaaa_aaaa));
        let mut split = Split::new(0xaaaa_aaaa_aaaa_aaaa);
        let taken: Vec<bool> = (0..130).map(|_| split.takes_secondary()).collect();
        assert!(taken.iter().enumerate().all(|(n, &secondary)| secondary == (n % 2 == 1)));
    }

    #[test]
    fn the_share_is_a_multiple_of_a_64th() {
        // r = 1/4: 16 bits at 4, 8, ..., 64.
        assert_eq!(send_vector(3, 1), Some(0x8888_8888_8888_8888));
        // r = 1/3: round(64/3) = 21 bits, the first three at round(64/21) = 3, round(128/21) = 6,
        // round(192/21) = 9.
        let third = send_vector(2, 1).unwrap();
        assert_eq!((third.count_ones(), third & 0x1ff), (21, 0b1_0010_0100));
        assert_eq!((send_vector(1, 0), send_vector(0, 7), send_vector(0, 0)), (Some(0), Some(u64::MAX), None));
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
