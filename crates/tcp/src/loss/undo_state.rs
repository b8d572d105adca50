//! What the retransmissions of an episode have come to.

use ackclock_units::Time;

/// What the retransmissions of an episode have led to.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Undo {
    /// SND.UNA when the episode began (`undo_marker`); 0 when nothing can be undone.
    pub(super) marker: u64,
    /// Retransmissions not yet reported as duplicates (`undo_retrans`); `None` before the first.
    pub(super) pending: Option<u64>,
    /// When the first was made (`retrans_stamp`).
    pub(super) first_resent_at: Option<Time>,
    /// The reduction was for a loss alone (`prior_ssthresh`): undoing restores the window.
    pub(super) restores_window: bool,
    /// Linux 2.6.32: more duplicates were reported than `pending` counts, by so many (`undo_retrans`
    /// below zero).
    surplus: Option<u64>,
    /// Linux 2.6.32: the threshold to be put back (`prior_ssthresh`).
    pub(super) prior_ssthresh: u64,
    /// Segments of the connection that were reported twice.
    pub(super) reported_twice: u64,
}

impl Undo {
    /// The episode may still turn out needless.
    pub(super) fn is_possible(&self) -> bool {
        self.marker > 0
    }

    /// SND.UNA when the episode began; 0 when nothing can be undone.
    pub(super) fn marker(&self) -> u64 {
        self.marker
    }

    /// Whether undoing restores the window.
    pub(super) fn set_restores_window(&mut self, restores: bool) {
        self.restores_window = restores;
    }

    /// Congestion is proven: nothing can be undone.
    pub(super) fn rule_out(&mut self) {
        (self.marker, self.restores_window) = (0, false);
    }

    /// Nothing that was sent again is in flight.
    pub(super) fn forget_retransmissions(&mut self) {
        self.first_resent_at = None;
    }

    /// A segment was sent again (`tcp_retransmit_skb`).
    pub(super) fn resent(&mut self, now: Time) {
        self.first_resent_at.get_or_insert(now);
        if let Some(surplus @ 1..) = &mut self.surplus {
            *surplus -= 1;
            return;
        }
        self.pending = Some(self.pending.unwrap_or(0) + 1);
    }

    /// `segments` more were reported twice. Whether the `resent` retransmissions of the connection
    /// explain them all.
    pub(super) fn explains(&mut self, segments: u64, resent: u64) -> bool {
        self.reported_twice += segments;
        self.reported_twice <= resent
    }

    /// `segments` were reported as duplicates.
    pub(super) fn duplicated(&mut self, segments: u64) {
        if self.marker > 0 {
            if let Some(surplus) = &mut self.surplus {
                *surplus += segments.saturating_sub(self.pending.unwrap_or(0));
            }
            self.pending = self.pending.map(|pending| pending.saturating_sub(segments));
        }
    }

    /// Whether every retransmission was reported as a duplicate.
    pub(crate) fn all_duplicated(&self) -> bool {
        self.marker > 0 && self.none_pending()
    }

    /// Whether nothing that was sent again may still turn out needed; in Linux 2.6.32, where the
    /// count can go below zero, if it is exactly zero.
    pub(super) fn none_pending(&self) -> bool {
        self.pending == Some(0) && self.surplus.unwrap_or(0) == 0
    }

    /// Linux 2.6.32: an episode begins with SND.UNA at `marker`, when `resent` segments are in
    /// flight again.
    pub(super) fn begin_signed(&mut self, marker: u64, resent: u64) {
        (self.marker, self.pending, self.surplus) = (marker, Some(resent), Some(0));
    }
}
