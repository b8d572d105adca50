//! Errors of reading a capture.

use std::io;

use super::link::KNOWN;

/// The reason why there is no next packet. [`CaptureReader`](super::CaptureReader) adds the
/// position in the file.
#[derive(Debug)]
pub(super) enum ReadFailure {
    Io(io::Error),
    Problem(String),
}

impl From<io::Error> for ReadFailure {
    fn from(error: io::Error) -> ReadFailure {
        ReadFailure::Io(error)
    }
}

impl From<String> for ReadFailure {
    fn from(problem: String) -> ReadFailure {
        ReadFailure::Problem(problem)
    }
}

impl From<&str> for ReadFailure {
    fn from(problem: &str) -> ReadFailure {
        ReadFailure::Problem(problem.to_owned())
    }
}

pub(super) fn cut() -> ReadFailure {
    "the file ends in the middle of a block or packet: it was cut".into()
}

pub(super) fn malformed(what: &str) -> String {
    format!("a malformed {what}")
}

pub(super) fn unknown_link(linktype: i32) -> String {
    format!("link type {linktype}; {KNOWN} are known")
}
