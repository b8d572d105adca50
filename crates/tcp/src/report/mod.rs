//! What an endpoint reports about itself.

pub(crate) mod tcp_info;
pub(crate) mod variables;
