//! Tests that cannot run here.

use std::io::{self, Write};

/// Says that a test shows nothing here, and why, in the form that `.ci/run` counts.
pub fn skipped(test: &str, why: &str) {
    // `eprintln` would be captured. One write: tests run side by side.
    let _ = io::stderr().write_all(format!("skipped {test}: {why}\n").as_bytes());
}
