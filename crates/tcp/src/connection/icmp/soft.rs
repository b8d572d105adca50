//! Errors that do not end a connection.

use ackclock_units::Time;

use crate::Error;

/// The last one, until it is reported or the peer is heard.
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
    pub(crate) fn are_reported_at_once(&self) -> bool {
        self.at_once
    }

    pub(crate) fn note(&mut self, error: Error, at: Time) {
        self.last = Some(Box::new((error, at)));
    }

    /// Returns `true` if there has been an error.
    pub(crate) fn has_any(&self) -> bool {
        self.last.is_some()
    }

    /// The last one, and when it came.
    pub(crate) fn last(&self) -> Option<(Error, Time)> {
        self.last.as_deref().copied()
    }

    /// Takes the last error and its time.
    pub(crate) fn take(&mut self) -> Option<(Error, Time)> {
        self.last.take().map(|last| *last)
    }
}
