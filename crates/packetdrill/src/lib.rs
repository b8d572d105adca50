//! packetdrill scripts against our own endpoint, on a virtual clock.
//!
//! A script is calls of an application, packets that arrive and packets that are expected to leave, each with its time.

pub mod ast;
