//! The places where reordering is measured.

use ackclock_units::Span;

use crate::index::DirectionId;

/// The places where reordering is measured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReorderingSpec {
    /// The places, no two the same.
    pub taps: Vec<ReorderTap>,
    /// The length of the intervals of a record.
    pub every: Span,
}

/// A place at which reordering is measured, for each flow whose packets pass it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReorderTap {
    /// The receivers of all flows.
    Receiver,
    /// The same, of flows of TCP by the order of their sequence numbers: retransmissions are left
    /// out, and what they repeat is lost.
    Sequence,
    /// The same, with each segment where it arrives for the first time, sent again or not.
    FirstArrival,
    /// The far end of a link direction.
    Direction(DirectionId),
}
