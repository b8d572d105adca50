//! Our times, addresses and numbers as smoltcp's.

use ackclock_units::Time;
use smoltcp::time::Instant;
use smoltcp::wire::{IpAddress, Ipv4Address};

/// smoltcp's time, rounded down.
pub(super) fn micros(now: Time) -> Instant {
    Instant::from_micros((now.as_nanos() / 1000) as i64)
}

/// TSval: milliseconds.
pub(super) fn timestamp(now: Time) -> u32 {
    (now.as_nanos() / 1_000_000) as u32
}

pub(super) fn ip(address: [u8; 4]) -> IpAddress {
    IpAddress::Ipv4(Ipv4Address::from_octets(address))
}

/// The stream offset with the low 32 bits `low` that is nearest to `near`.
pub(super) fn lift(low: u32, near: u64) -> u64 {
    near.saturating_add_signed(i64::from(low.wrapping_sub(near as u32).cast_signed()))
}
