//! The causes of losses.

use ackclock_aqm::DropReason;
use ackclock_events::Slot;
use ackclock_trace::LossVerdict;

use crate::index::DirectionId;

/// Name in place of a link where the receiver refused or discarded data.
pub(crate) const RECEIVER: &str = "receiver";

/// The reason under which a summary counts packets lost on the wire rather than dropped by the
/// queue.
pub const LOST_ON_LINK: &str = "link";

/// The reason of a packet's loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reason {
    /// A queue discarded it.
    Queue(DropReason),
    /// The packet was lost on the wire.
    Link,
    /// The packet exceeds the path's MTU.
    TooBig,
    /// The receiver refused it: it does not fit into its window, or is too old by its timestamp
    /// (PAWS).
    Refused,
    /// A checksum was wrong at the receiver.
    Checksum,
}

impl Reason {
    /// The name in records and summaries.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Reason::Queue(reason) => reason.name(),
            Reason::Link => LOST_ON_LINK,
            Reason::TooBig => "too_big",
            Reason::Refused => "refused",
            Reason::Checksum => "checksum",
        }
    }
}

/// Place and reason of a packet's loss.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    /// The slot of the link direction, the last one of all for the receiver.
    pub(super) place: Slot,
    pub(super) reason: Reason,
}

impl Cause {
    pub(super) const RECEIVER: Slot = Slot::MAX;

    /// The link direction; `None` is the receiver.
    pub(super) fn direction(self) -> Option<DirectionId> {
        (self.place != Cause::RECEIVER).then(|| DirectionId::of_slot(self.place))
    }
}

/// The cause of a loss with its drop probability. There is one for each loss in flight, so it is
/// small.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Culprit {
    pub(super) cause: Cause,
    /// Drop probability; NaN without one.
    pub(super) probability: f64,
}

const _: () = assert!(size_of::<Culprit>() == 16);

impl Culprit {
    pub(super) const RECEIVER: Culprit =
        Culprit { cause: Cause { place: Cause::RECEIVER, reason: Reason::Refused }, probability: f64::NAN };

    pub(crate) fn new(direction: Option<DirectionId>, reason: Reason, probability: Option<f64>) -> Culprit {
        let place = direction.map_or(Cause::RECEIVER, DirectionId::slot);
        Culprit { cause: Cause { place, reason }, probability: probability.unwrap_or(f64::NAN) }
    }

    pub(super) fn verdict(self) -> LossVerdict<'static> {
        let probability = (!self.probability.is_nan()).then_some(self.probability);
        // The link's name is filled in where the record is written.
        LossVerdict::Lost { link: "", reason: self.cause.reason.name(), probability }
    }
}
