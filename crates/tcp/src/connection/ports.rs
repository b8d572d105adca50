//! The ports of a connection.

use ackclock_packet::{Flags, Segment};

/// The two port numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Ours.
    pub local: u16,
    /// The peer's.
    pub remote: u16,
}

impl Ports {
    /// A segment between them with these flags; everything else is zero.
    pub(crate) fn segment(self, flags: Flags) -> Segment {
        Segment { source_port: self.local, destination_port: self.remote, flags, ..Segment::default() }
    }
}
