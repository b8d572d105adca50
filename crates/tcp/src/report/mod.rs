//! An endpoint's reports about itself.

pub(crate) mod control_block;
pub(crate) mod counters;
pub(crate) mod sent_as;
pub(crate) mod tcp_info;
