//! The exit statuses of a program that does runs, apart from 0.

/// An expectation was missed, or a live run is not valid.
pub const MISSED: u8 = 1;
/// The request cannot be carried out.
pub const BAD_INPUT: u8 = 2;
/// A run failed.
pub const RUN_FAILED: u8 = 3;
/// Runs were interrupted; as shells have it for SIGINT.
pub const INTERRUPTED: u8 = 130;
