//! One ACK, as the engines of loss recovery see it.

use ackclock_units::Time;

use crate::loss::scoreboard::Progress;

/// The contents of a DSACK (RFC 2883).
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct DuplicateReport {
    /// Segments that arrived twice, of those that our retransmissions explain.
    pub(crate) segments: u64,
    /// The duplicates are the tail loss probe.
    pub(crate) probe: bool,
}

/// One acceptable ACK, passed from step to step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AckContext {
    pub(crate) now: Time,
    /// SND.UNA and SND.WND before it.
    pub(crate) una_before: u64,
    pub(crate) window_before: u64,
    /// Something was in flight before it.
    pub(crate) outstanding_before: bool,
    /// [`losses`](super::scoreboard::Scoreboard::losses) and
    /// [`units_declared_lost`](super::scoreboard::Scoreboard::units_declared_lost) before it.
    pub(crate) losses_before: u64,
    pub(crate) units_lost_before: u64,
    /// The ACK acknowledges less than an earlier one.
    pub(crate) is_old: bool,
    /// The segment carries data, or a SYN or FIN.
    pub(crate) has_data: bool,
    /// The ACK has data, acknowledges something or moves the window: no duplicate ACK
    /// (`FLAG_NOT_DUP`).
    pub(crate) not_duplicate: bool,
    /// The ACK echoes a mark that calls for a reaction.
    pub(crate) ece: bool,
    pub(crate) duplicates: DuplicateReport,
    /// The ACK's new information about the segments in flight.
    pub(crate) progress: Progress,
}
