//! All integration tests of the crate, in one binary.

mod conformance;
mod fairness;
mod sparse_flow;
mod variables;
