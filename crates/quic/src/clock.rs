//! Times of the run as the implementations take them.

use std::sync::LazyLock;
use std::time::{Duration, Instant};

use ackclock_units::{Span, Time};

/// Implementations take instants, of which a run has differences alone: these begin anywhere.
#[expect(clippy::disallowed_methods, reason = "instants begin anywhere; a run sees differences alone")]
static EPOCH: LazyLock<Instant> = LazyLock::new(Instant::now);

/// The instant of a time.
pub(crate) fn instant(at: Time) -> Instant {
    *EPOCH + Duration::from_nanos(at.as_nanos())
}

/// The time of an instant.
pub(crate) fn time(at: Instant) -> Time {
    Time::ZERO + span(at.saturating_duration_since(instant(Time::ZERO)))
}

/// The span of a duration.
pub(crate) fn span(duration: Duration) -> Span {
    Span::from_nanos(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX))
}
