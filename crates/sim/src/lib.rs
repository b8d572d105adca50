//! The virtual world: hosts, traffic and the loop.

pub mod spec;
