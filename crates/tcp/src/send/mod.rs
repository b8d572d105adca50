//! The sending half: [`Sender`] owns the state, and each module has a part of its behaviour. The
//! engines of `loss` are its methods as well.

pub(crate) mod acknowledged;
pub(crate) mod burst;
pub(crate) mod counters;
pub(crate) mod early;
pub(crate) mod limited;
pub(crate) mod loss_probe;
pub(crate) mod new_data;
pub(crate) mod observer;
pub(crate) mod offload;
pub(crate) mod output;
pub(crate) mod pacing;
pub(crate) mod persist;
pub(crate) mod pmtu;
pub(crate) mod retransmission;
pub(crate) mod retransmission_timer;
pub(crate) mod rtt;
pub(crate) mod segment;
pub(crate) mod segmentation;
pub(crate) mod sender;
pub(crate) mod sent_as;
pub(crate) mod sequence;
pub(crate) mod units;
pub(crate) mod validation;
pub(crate) mod window_probe;
pub(crate) mod window_use;
pub(crate) mod writing;

pub use self::sender::Sender;
