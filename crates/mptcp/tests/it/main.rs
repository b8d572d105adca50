//! All integration tests of the crate, in one binary.

mod connection;
mod delivery;
mod network;
mod wire;
