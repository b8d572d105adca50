//! x
/// x
pub struct Histogram;
