//! TCP-NCR: a segment may be late by a whole round trip before it is declared lost.
//!
//! When the first segment arrives out of order, the threshold becomes a fraction of what is
//! outstanding: as many reports as arrive in a round trip. Meanwhile new data goes out, a segment
//! for every two reports (careful) or for each (aggressive). Once the threshold is reached,
//! recovery goes on with the threshold of 3, and the window is reduced from what was outstanding
//! when the wait began. If the missing segment arrives before, the window closes to one segment
//! more than what is outstanding, and slow start restores it.
//!
//! # Source
//! RFC 4653 section 3. Its authors' module for Linux, `tcp_ncr.c` (Slot, Wolff, Schulte).
//!
//! # Departures
//! - The slow start threshold is raised to what was outstanding before, never lowered to it, as in
//!   the authors' module: reordering would end the first slow start.
//! - The RFC asks for Nagle's algorithm to be off; that is left to the host.
//! - Without SACK, which the RFC requires, the threshold is 3.

use super::view::{DUP_THRESH, Marked, StartRecovery, View, mark_newreno};
use crate::loss::scoreboard::Scoreboard;
use crate::{CaState, NcrVariant};

#[derive(Clone, Copy, Debug)]
pub(crate) struct Ncr {
    variant: NcrVariant,
    /// FlightSizePrev while it waits, in segments.
    before: Option<u64>,
}

impl Ncr {
    pub(super) fn new(variant: NcrVariant) -> Ncr {
        Ncr { variant, before: None }
    }

    /// DupThresh = max(LT_F * FlightSize, 3) (RFC 4653 section 3.1, and section 3.3 for what is
    /// sent since).
    pub(super) fn threshold(self, outstanding: u64) -> u64 {
        let share = match self.variant {
            NcrVariant::Careful => outstanding * 2 / 3,
            NcrVariant::Aggressive => outstanding / 2,
        };
        share.max(u64::from(DUP_THRESH))
    }

    pub(super) fn starts_recovery(self, view: &View) -> StartRecovery {
        let threshold = if view.sack { self.threshold(view.outstanding) } else { u64::from(DUP_THRESH) };
        if view.sacked >= threshold { StartRecovery::Now } else { StartRecovery::No }
    }

    /// An ACK that proves nothing; `outstanding` is FlightSize. If it ends a wait, FlightSizePrev
    /// of it.
    pub(super) fn waits(&mut self, view: &View) -> Option<u64> {
        if !view.sack {
            return None;
        }
        let ended = self.before.filter(|_| view.advanced);
        if view.sacked == 0 {
            self.before = None;
        } else {
            // Section 3.1 step I.1; not where reports beyond the segment that came have the wait
            // begin anew (section 3.2).
            self.before.get_or_insert(view.outstanding);
        }
        ended
    }

    /// The wait is over because of a loss or a timeout.
    pub(super) fn ended(&mut self) {
        self.before = None;
    }

    /// FlightSizePrev, which section 3.4 has the reduction begin from.
    pub(super) fn before(self) -> Option<u64> {
        self.before
    }

    pub(super) fn mark(&mut self, board: &mut Scoreboard, view: &View) -> Marked {
        if view.begins {
            self.before = None;
        }
        if !view.sack {
            if view.begins {
                board.lose_front();
            } else {
                mark_newreno(board, view, DUP_THRESH);
            }
        } else if view.begins || view.state == CaState::Recovery {
            if let Some(most) = view.sacked.checked_sub(u64::from(DUP_THRESH)) {
                board.lose_below_sacked(most, u64::MAX);
            } else if view.begins {
                board.lose_front();
            }
        }
        Marked::default()
    }

    /// Number of segments beyond the window that `sacked` reports allow (section 3.3 steps E.3 and
    /// E.5).
    pub(super) fn limited_transmit(self, sacked: u64) -> Option<u64> {
        match self.variant {
            // (pipe + Skipped) <= FlightSizePrev - SMSS: the first, the third and so on.
            NcrVariant::Careful => Some(sacked.div_ceil(2)),
            NcrVariant::Aggressive => None,
        }
    }
}
