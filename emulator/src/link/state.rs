//! The state of a transmitter.

/// The state of a transmitter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransmitterState {
    /// Nothing waits.
    Idle,
    /// A packet is being sent; its last bit is sent at the end.
    Sends,
    /// The bucket has no tokens; on a link that changes, there is no opportunity, or an outage; the
    /// next slot has not begun.
    Refills,
    /// The queue holds its packets back: it is asked again at the end, or when a packet arrives.
    HeldBack,
}
