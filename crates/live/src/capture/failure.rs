//! Errors of reading a capture.

use std::io;

use super::link::KNOWN;

/// The reason why there is no next packet. [`Reader`](super::Reader) adds the position in the file.
#[derive(Debug)]
pub(super) enum Failure {
    Io(io::Error),
    Problem(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        Failure::Io(error)
    }
}

impl From<String> for Failure {
    fn from(problem: String) -> Failure {
        Failure::Problem(problem)
    }
}

impl From<&str> for Failure {
    fn from(problem: &str) -> Failure {
        Failure::Problem(problem.to_owned())
    }
}

pub(super) fn cut() -> Failure {
    "the file ends in the middle of a block or packet: it was cut".into()
}

pub(super) fn malformed(what: &str) -> String {
    format!("a malformed {what}")
}

pub(super) fn unknown_link(linktype: i32) -> String {
    format!("link type {linktype}; {KNOWN} are known")
}
