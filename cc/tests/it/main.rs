//! All integration tests of the crate, in one binary.

mod conformance;
mod response;
mod rounds;
mod slow_start;
