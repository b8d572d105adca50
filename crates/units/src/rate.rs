//! Transmission rates, and the transmitter's arithmetic.

use std::fmt;

use crate::Time;

/// A transmission rate in bit/s, never zero.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rate(u64);

impl Rate {
    /// The highest rate that the arithmetic carries exactly: 1 Pbit/s.
    pub const MAX: Rate = Rate(1_000_000_000_000_000);

    /// A rate of `bits` bit/s; `None` for zero and above [`Rate::MAX`].
    pub const fn from_bps(bits: u64) -> Option<Rate> {
        if bits == 0 || bits > Rate::MAX.0 { None } else { Some(Rate(bits)) }
    }

    /// Bit/s.
    pub const fn as_bps(self) -> u64 {
        self.0
    }
}

/// Writes the shortest exact form that [`crate::parse_rate`] reads back: `10mbit`, `9600bit`.
impl fmt::Display for Rate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            n if n % 1_000_000_000 == 0 => write!(f, "{}gbit", n / 1_000_000_000),
            n if n % 1_000_000 == 0 => write!(f, "{}mbit", n / 1_000_000),
            n if n % 1_000 == 0 => write!(f, "{}kbit", n / 1_000),
            n => write!(f, "{n}bit"),
        }
    }
}

/// Turns bytes into transmission times at a rate, carrying the fraction of a nanosecond from one
/// packet to the next: over a busy period the rate is exact, however the period is cut into
/// packets.
#[derive(Clone, Debug)]
pub struct Serializer {
    rate: Rate,
    /// Transmission time carried over from the last transmission beyond whole nanoseconds, in units
    /// of 1/rate nanoseconds; below `rate`.
    remainder: u64,
    /// End of the last transmission, without the remainder.
    end: Time,
    /// Transmission time of the last size alone: most packets are as long as the one before.
    last: Division,
}

/// Transmission time of `bytes`, in whole nanoseconds and a remainder in units of 1/rate
/// nanoseconds.
#[derive(Clone, Copy, Debug)]
struct Division {
    bytes: u32,
    nanos: u64,
    remainder: u64,
}

impl Serializer {
    /// A transmitter of rate `rate`, idle.
    pub fn new(rate: Rate) -> Serializer {
        let last = Division { bytes: 0, nanos: 0, remainder: 0 };
        Serializer { rate, remainder: 0, end: Time::ZERO, last }
    }

    /// The rate.
    pub fn rate(&self) -> Rate {
        self.rate
    }

    /// The end of the last transmission, rounded down to whole nanoseconds, and the remainder in
    /// units of 1/rate nanoseconds.
    pub fn end(&self) -> (Time, u64) {
        (self.end, self.remainder)
    }

    /// The time at which the last bit of `bytes` is sent when the first is sent at `start`, rounded
    /// down to whole nanoseconds. The remainder is carried to the next call if that starts where
    /// this one ends, so that time advances even if every packet takes less than a nanosecond; a
    /// later start begins a new busy period. `bytes` is at most 2^30.
    #[inline]
    pub fn transmit(&mut self, start: Time, bytes: u32) -> Time {
        debug_assert!(bytes <= 1 << 30);
        if bytes != self.last.bytes {
            // bits * 10^9 < 2^33 * 2^30: no overflow in 64 bits.
            let scaled = u64::from(bytes) * 8 * 1_000_000_000;
            self.last = Division { bytes, nanos: scaled / self.rate.0, remainder: scaled % self.rate.0 };
        }
        let carried = if start == self.end { self.remainder } else { 0 };
        let remainder = carried + self.last.remainder;
        let full = remainder >= self.rate.0;
        self.remainder = if full { remainder - self.rate.0 } else { remainder };
        self.end = start + crate::Span::from_nanos(self.last.nanos + u64::from(full));
        self.end
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_full_packet_at_ten_megabit() {
        let mut line = Serializer::new(Rate::from_bps(10_000_000).unwrap());
        assert_eq!(line.transmit(Time::ZERO, 1514), Time::from_nanos(1_211_200));
    }

    #[test]
    fn three_packets_at_three_bit_per_second_lose_no_nanosecond() {
        // 8 bits at 3 bit/s take 2.666... s; three of them exactly 8 s.
        let mut line = Serializer::new(Rate::from_bps(3).unwrap());
        let mut end = Time::ZERO;
        for _ in 0..3 {
            end = line.transmit(end, 1);
        }
        assert_eq!(end, Time::from_secs(8));
    }

    #[test]
    fn packets_of_less_than_a_nanosecond_take_their_time_together() {
        // 61 bytes take 0.92 ns at 529 Gbit/s: a packet that comes when the last one seems to have
        // left waits for its rest.
        let mut line = Serializer::new(Rate::from_bps(529_000_000_000).unwrap());
        let ends: Vec<u64> = (0..4)
            .scan(Time::from_nanos(7), |now, _| {
                *now = line.transmit(*now, 61);
                Some(now.as_nanos())
            })
            .collect();
        assert_eq!(ends, [7, 8, 9, 10]);
        // The rest, 0.69 ns, is over at 11 ns.
        assert_eq!(line.transmit(Time::from_nanos(11), 61), Time::from_nanos(11));
    }

    proptest! {
        #[test]
        fn the_rate_is_exact_over_a_busy_period(bps in 1..=Rate::MAX.as_bps(), sizes in prop::collection::vec(prop_oneof![Just(1500), 1u32..100_000], 1..50)) {
            let mut line = Serializer::new(Rate::from_bps(bps).unwrap());
            let end = sizes.iter().fold(Time::ZERO, |end, &bytes| line.transmit(end, bytes));
            let bits: u128 = sizes.iter().map(|&bytes| u128::from(bytes) * 8).sum();
            prop_assert_eq!(u128::from(end.as_nanos()), bits * 1_000_000_000 / u128::from(bps));
        }
    }
}
