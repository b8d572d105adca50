//! Address prefixes.

use std::net::IpAddr;

/// Returns `true` if two addresses are of one family and agree in the first `length` bits.
pub(crate) fn contains((prefix, length): (IpAddr, u8), address: IpAddr) -> bool {
    let (differing, bits) = match (prefix, address) {
        (IpAddr::V4(a), IpAddr::V4(b)) => (u128::from(u32::from(a) ^ u32::from(b)), 32),
        (IpAddr::V6(a), IpAddr::V6(b)) => (u128::from(a) ^ u128::from(b), 128),
        _ => return false,
    };
    differing.checked_shr(bits - u32::from(length).min(bits)).unwrap_or(0) == 0
}
