//! The sending half: each module has a part of the state with its behaviour, and what [`Sender`] does
//! with that part and others. The engines of `loss` are its methods as well.

pub(crate) mod acknowledged;
pub(crate) mod burst;
pub(crate) mod counters;
pub(crate) mod limited;
pub(crate) mod observer;
pub(crate) mod offload;
pub(crate) mod pacing;
pub(crate) mod persist;
pub(crate) mod pmtu;
mod remembered;
pub(crate) mod retransmission_timer;
pub(crate) mod rtt;
pub(crate) mod segmentation;
pub(crate) mod sender;
pub(crate) mod sequence;
mod timing;
pub(crate) mod transmit;
pub(crate) mod validation;
pub(crate) mod writing;

pub use self::sender::Sender;
