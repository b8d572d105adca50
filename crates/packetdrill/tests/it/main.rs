//! All integration tests of the crate, in one binary.

mod docs;
mod hostile;
mod mptcp;
mod mutants;
