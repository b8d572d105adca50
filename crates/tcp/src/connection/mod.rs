//! One end of one connection: the states of RFC 9293, and the order of steps in each.

pub(crate) mod answers;
pub(crate) mod calls;
pub(crate) mod control_block;
pub(crate) mod endpoint;
pub(crate) mod error;
pub(crate) mod fast_open;
pub(crate) mod handshake;
pub(crate) mod icmp;
pub(crate) mod input;
pub(crate) mod liveness;
pub(crate) mod negotiated;
mod output;
pub(crate) mod ports;
pub(crate) mod remembered;
pub(crate) mod socket;
pub(crate) mod state;
pub(crate) mod syn;
pub(crate) mod tcp_info;
pub(crate) mod timers;
