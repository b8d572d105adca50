//! All integration tests of the crate, in one binary.

mod allocations;
mod delivery;
mod outside;
mod queueing;
mod truth;
