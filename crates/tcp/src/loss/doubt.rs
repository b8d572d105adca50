//! The doubt about an episode: whether its retransmissions were needed.

use ackclock_units::Time;

/// The outcome of an episode's retransmissions.
#[derive(Clone, Copy, Debug)]
pub(super) struct Undo {
    /// SND.UNA when the episode began (`undo_marker`); 0 when nothing can be undone.
    pub(super) marker: u64,
    /// Retransmissions not yet reported as duplicates (`undo_retrans`); [`Undo::NONE`] before the
    /// first. Below zero with [`crate::LossRules::signed_undo_count`] alone.
    pending: i64,
    /// When the first was made (`retrans_stamp`); [`Time::NEVER`] if none was.
    first_resent_at: Time,
    /// The threshold to be put back (`prior_ssthresh`).
    pub(super) prior_ssthresh: u64,
    /// While a timeout is tested (RFC 4138) and after, the end of what was sent before it; 0 once
    /// more is acknowledged (`frto_highmark`).
    pub(super) test_high: u64,
    /// Segments of the connection that were reported twice.
    pub(super) reported_twice: u64,
    /// The number of the ACK that the test waits for, first or second; 0 without a test
    /// (`frto_counter`).
    pub(super) test_step: u8,
    /// The reduction was for a loss alone (`prior_ssthresh`): undoing restores the window.
    pub(super) restores_window: bool,
}

impl Default for Undo {
    fn default() -> Undo {
        Undo {
            marker: 0,
            pending: Undo::NONE,
            first_resent_at: Time::NEVER,
            prior_ssthresh: 0,
            test_high: 0,
            reported_twice: 0,
            test_step: 0,
            restores_window: false,
        }
    }
}

impl Undo {
    /// Nothing was sent again.
    const NONE: i64 = i64::MIN;

    /// The episode may still turn out needless.
    pub(super) fn is_possible(&self) -> bool {
        self.marker > 0
    }

    /// SND.UNA when the episode began; 0 when nothing can be undone.
    pub(super) fn marker(&self) -> u64 {
        self.marker
    }

    /// Permits or forbids undoing to restore the window.
    pub(super) fn set_restores_window(&mut self, restores: bool) {
        self.restores_window = restores;
    }

    /// Congestion is proven: nothing can be undone.
    pub(super) fn rule_out(&mut self) {
        (self.marker, self.restores_window) = (0, false);
    }

    /// Nothing that was sent again is in flight.
    pub(super) fn forget_retransmissions(&mut self) {
        self.first_resent_at = Time::NEVER;
    }

    /// A segment was sent again (`tcp_retransmit_skb`).
    pub(super) fn resent(&mut self, now: Time) {
        self.first_resent_at = self.first_resent_at.min(now);
        self.pending = if self.pending == Undo::NONE { 1 } else { self.pending + 1 };
    }

    /// `segments` more were reported twice. Returns `true` if the `resent` retransmissions of the
    /// connection explain them all.
    pub(super) fn explains(&mut self, segments: u64, resent: u64) -> bool {
        self.reported_twice += segments;
        self.reported_twice <= resent
    }

    /// `segments` were reported as duplicates; `signed` if more of them than were sent again count.
    pub(super) fn duplicated(&mut self, segments: u64, signed: bool) {
        if self.marker > 0 && self.pending != Undo::NONE {
            let pending = self.pending - i64::try_from(segments).unwrap_or(i64::MAX >> 1);
            self.pending = if signed { pending } else { pending.max(0) };
        }
    }

    /// Returns `true` if every retransmission was reported as a duplicate.
    pub(super) fn all_duplicated(&self) -> bool {
        self.marker > 0 && self.none_pending()
    }

    /// Returns `true` if nothing that was sent again may still turn out needed: a count below zero
    /// does not say so.
    pub(super) fn none_pending(&self) -> bool {
        self.pending == 0
    }

    /// An episode begins with SND.UNA at `marker`, when `resent` segments are in flight again; none
    /// of them is a count as well if `signed`.
    pub(super) fn begin(&mut self, marker: u64, resent: u64, signed: bool) {
        let resent = i64::try_from(resent).unwrap_or(0);
        (self.marker, self.pending) = (marker, if resent > 0 || signed { resent } else { Undo::NONE });
    }

    /// When the first retransmission was made, if one was.
    pub(super) fn first_resent_at(&self) -> Option<Time> {
        (self.first_resent_at != Time::NEVER).then_some(self.first_resent_at)
    }
}
