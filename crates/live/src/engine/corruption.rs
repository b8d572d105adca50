//! Bit errors in the bytes of packets.

use ackclock_units::Random;

/// Changes one bit of a packet, drawn among all that a checksum covers, except IP's version,
/// without which a device would refuse the packet. The traffic class, flow label and hop limit of
/// an IPv6 header also stay: no checksum covers them, and the receiver would not notice.
pub(super) fn flip_bit(packet: &mut [u8], random: &mut Random) {
    let bits = packet.len() as u64 * 8;
    let bit = if packet.first().is_some_and(|first| first >> 4 == 6) {
        // Neither bytes 0 to 3 nor byte 7.
        let drawn = 32 + random.below(bits.saturating_sub(40).max(1));
        if drawn < 56 { drawn } else { drawn + 8 }
    } else {
        4 + random.below(bits.saturating_sub(4).max(1))
    };
    if let Some(byte) = packet.get_mut((bit / 8) as usize) {
        // Bit 0 is the first on the wire.
        *byte ^= 0x80 >> (bit % 8);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How often each bit is drawn in 100,000 packets of `len` bytes.
    fn drawn(version: u8, len: usize) -> Vec<u32> {
        let mut random = Random::for_component(1, 0, "corruption");
        let (mut counts, mut whole) = (vec![0; 8 * len], vec![0; len]);
        whole[0] = version << 4 | 5;
        for _ in 0..100_000 {
            let mut packet = whole.clone();
            flip_bit(&mut packet, &mut random);
            let wrong = (0..8 * len).filter(|&bit| (packet[bit / 8] ^ whole[bit / 8]) & 0x80 >> (bit % 8) != 0);
            let wrong: Vec<usize> = wrong.collect();
            assert_eq!(wrong.len(), 1);
            counts[wrong[0]] += 1;
        }
        counts
    }

    #[test]
    fn one_bit_changes_and_each_that_is_covered_may() {
        for (version, len, kept) in [(4, 60, [0..4, 0..0]), (6, 60, [0..32, 56..64])] {
            let counts = drawn(version, len);
            let covered = counts.len() - kept.iter().map(|bits| bits.len()).sum::<usize>();
            let mean = 100_000.0 / covered as f64;
            for (bit, &count) in counts.iter().enumerate() {
                if kept.iter().any(|bits| bits.contains(&bit)) {
                    assert_eq!(count, 0, "bit {bit} of IPv{version}");
                } else {
                    // Five standard deviations of a Poisson number.
                    assert!((f64::from(count) - mean).abs() < 5.0 * mean.sqrt(), "bit {bit}: {count}, not {mean}");
                }
            }
        }
    }
}
