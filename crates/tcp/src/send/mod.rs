//! What leaves, and when.

pub(crate) mod limited;
pub(crate) mod observer;
pub(crate) mod output;
pub(crate) mod pacing;
pub(crate) mod pmtu;
pub(crate) mod rtt;
pub(crate) mod segmentation;
pub(crate) mod validation;
