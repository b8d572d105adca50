//! One end of one connection: the states of RFC 9293, and the order of steps in each.

pub(crate) mod acceptability;
pub(crate) mod ack;
mod ahead;
pub(crate) mod answers;
pub(crate) mod calls;
pub(crate) mod close;
pub(crate) mod data;
pub(crate) mod deadlines;
pub(crate) mod defer;
pub(crate) mod endpoint;
pub(crate) mod error;
pub(crate) mod fast_open;
pub(crate) mod handshake;
pub(crate) mod icmp;
pub(crate) mod input;
pub(crate) mod keepalive;
pub(crate) mod liveness;
pub(crate) mod negotiated;
pub(crate) mod opened;
pub(crate) mod prediction;
mod rare_timers;
pub(crate) mod reset;
pub(crate) mod socket;
pub(crate) mod sockopt;
pub(crate) mod syn;
pub(crate) mod time_wait;
pub(crate) mod timers;
