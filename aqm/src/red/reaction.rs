//! The decision of RED's laws about an arrival.

/// The law's decision about an arrival.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RedReaction {
    Pass,
    /// Mark or drop, at random.
    Early,
    /// Mark or drop, the average being too high.
    Forced,
}
