//! Errors of a run.

use ackclock_units::Span;
use ackclock_units::outside::Failure;

use crate::stock::IntegrityError;

/// The reason why a run gave no result.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RunError {
    /// Data arrived that was not what was sent: a bug in an endpoint.
    #[error("flow {flow}: data arrived that is not what was sent, at byte {offset} of the stream")]
    Integrity {
        /// The flow.
        flow: String,
        /// Offset of the first wrong byte.
        offset: u64,
    },
    /// A stock socket handled wrong data.
    #[error("flow {flow}: {error}")]
    Stock {
        /// The flow.
        flow: String,
        /// The fault.
        error: IntegrityError,
    },
    /// A controller or a queue discipline from outside cannot go on.
    #[error("{of}, {failure}")]
    Own {
        /// The flow or the link direction.
        of: String,
        /// Time and cause.
        failure: Failure,
    },
    /// Flows come faster than they end.
    #[error("{alive} flows are alive after {:.3} s: those of `{group}` come faster than they end", .at.as_secs_f64())]
    TooMany {
        /// The group to which the last one belongs.
        group: String,
        /// Flows that exist at the same time.
        alive: usize,
        /// Time of the arrival that exceeded the limit.
        at: Span,
    },
    /// The progress hook or a recorder stopped the run.
    #[error("interrupted")]
    Interrupted,
}
