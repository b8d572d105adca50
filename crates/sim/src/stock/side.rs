//! The two ends of a connection.

use ackclock_packet::codec::Addresses;

/// An end of a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ConnectionEnd {
    /// The end that sends data and connects.
    Sender,
    /// The end that listens.
    Receiver,
}

impl ConnectionEnd {
    /// Addresses of what this side sends.
    pub(super) fn addresses(self) -> Addresses {
        let forward = Addresses { source: [10, 0, 0, 1], destination: [10, 0, 0, 2] };
        match self {
            ConnectionEnd::Sender => forward,
            ConnectionEnd::Receiver => forward.reversed(),
        }
    }
}
