//! Domains of parameters that several algorithms have.

use ackclock_units::parameter::Domain;

/// Counts without a bound of their own.
pub(crate) const MILLION: u64 = 1_000_000;
/// A share in percent that is not nothing.
pub(crate) const PERCENT: Domain = Domain::Whole(1, 100, "percent");
/// A time above zero.
pub(crate) const POSITIVE: Domain = Domain::Time { positive: true };
/// Any time.
pub(crate) const TIME: Domain = Domain::Time { positive: false };

/// Lowers a parameter to the most that its range has, which follows from another one; returns that.
pub(crate) fn lowered(at: &mut u32, most: u32) -> u64 {
    *at = (*at).min(most);
    most.into()
}
