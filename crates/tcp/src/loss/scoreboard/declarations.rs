//! The declarations of losses, for a driver that compares them with the truth.

use super::Stamp;

/// A segment, or its retransmission, was declared lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LossDeclaration {
    /// Offset of its first byte in the stream.
    pub offset: u64,
    /// Bytes of the stream, and one for a FIN.
    pub len: u32,
    /// [`crate::Sender::stamp`] of the transmission that is declared lost.
    pub stamp: Stamp,
    /// By the retransmission timer, not by the loss detector.
    pub by_timeout: bool,
}

/// The declarations that nobody has fetched yet; none unless they are observed.
#[derive(Debug, Default)]
pub(super) struct Declarations {
    pub(super) observed: bool,
    pub(super) waiting: Vec<LossDeclaration>,
    /// Losses declared now are declared by the retransmission timer.
    by_timeout: bool,
}

impl Declarations {
    #[inline]
    pub(super) fn note(&mut self, seq: u64, len: u32, stamp: Stamp) {
        if self.observed {
            let by_timeout = self.by_timeout;
            self.waiting.push(LossDeclaration { offset: seq - 1, len, stamp, by_timeout });
        }
    }

    /// Returns `true` if the retransmission timer declares losses now.
    pub(super) fn by_timeout(&self) -> bool {
        self.by_timeout
    }

    /// The retransmission timer declares losses from now on, or no longer.
    pub(super) fn set_by_timeout(&mut self, by_timeout: bool) {
        self.by_timeout = by_timeout;
    }
}
