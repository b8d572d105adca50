//! All integration tests of the crate, in one binary.

mod arrows;
mod modules;
mod sizes;
