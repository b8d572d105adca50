//! Errors that do not end a connection.

use ackclock_units::Time;

use crate::Error;

/// The last error that did not end the connection, until it is reported or the peer is heard.
#[derive(Debug, Default)]
pub(crate) struct SoftErrors {
    /// The error, and when it came. Few connections have any.
    last: Option<Box<(Error, Time)>>,
    /// Errors of an open connection are reported at once (IP_RECVERR).
    at_once: bool,
}

impl SoftErrors {
    pub(crate) fn set_at_once(&mut self, on: bool) {
        self.at_once = on;
    }

    /// Returns `true` if errors of an open connection are reported at once.
    pub(super) fn are_reported_at_once(&self) -> bool {
        self.at_once
    }

    pub(crate) fn note(&mut self, error: Error, at: Time) {
        self.last = Some(Box::new((error, at)));
    }

    /// Returns `true` if there has been an error.
    pub(super) fn has_any(&self) -> bool {
        self.last.is_some()
    }

    /// Why a connection is given up whose peer does not answer: the last error, if it came since the
    /// peer was last heard, at `heard_at`.
    pub(crate) fn reason_to_give_up(&self, heard_at: Time) -> Error {
        self.last.as_deref().filter(|&&(_, at)| at >= heard_at).map_or(Error::TimedOut, |&(error, _)| error)
    }

    /// Takes the last error, if it came since the peer was last heard.
    pub(crate) fn take(&mut self, heard_at: Time) -> Option<Error> {
        self.last.take().filter(|last| last.1 >= heard_at).map(|last| last.0)
    }
}
