//! The part of the sequence space that goes into a segment.

use crate::send::Sender;

/// The part of the sequence space of the next segment.
pub(crate) struct Piece {
    pub(crate) seq: u64,
    pub(crate) payload: u32,
    pub(crate) fin: bool,
    /// A retransmission, or a probe of a closed window: not ECN-capable.
    pub(crate) plain: bool,
    /// PSH, where a rule says so.
    pub(crate) push: bool,
}

impl Sender {
    /// Returns `true` if a write ends in a segment, or half of the peer's largest window has gone
    /// since the last PSH ([`crate::TransferRules::push_writes`], `pushed_seq`).
    #[cold]
    pub(crate) fn pushes(&self, piece: &Piece) -> bool {
        let (size, len) = (u64::from(self.config.transfer.write_size), u64::from(piece.payload));
        let (start, end) = (piece.seq - 1, piece.seq - 1 + len);
        if len == 0 || start / size < end / size {
            return len > 0;
        }
        // The segments of a write are taken to be of one length.
        let half = self.sequence.max_window() / 2;
        let beyond = end.saturating_sub(start / size * size + half);
        beyond > 0 && (beyond - 1) / len % (half / len + 1) == 0
    }

    /// The MSS that was announced, options that data carries subtracted (Linux `advmss`).
    pub(crate) fn announced_segment(&self) -> u32 {
        u32::from(self.config.mss).saturating_sub(self.options_len()).max(1)
    }
}
