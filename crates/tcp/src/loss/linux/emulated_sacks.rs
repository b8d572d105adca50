//! Without SACK: duplicate ACKs count as if each reported a segment (`sacked_out` of a connection
//! without SACK).

use crate::connection::negotiated::Negotiated;
use crate::loss::Loss;

impl Loss {
    /// `tcp_add_reno_sack`: a duplicate ACK shows that a segment has left the network. Returns how
    /// many are newly known to have.
    pub(crate) fn add_emulated_sack(&mut self, negotiated: &Negotiated, duplicate: bool) -> u64 {
        if negotiated.sack() || !duplicate {
            return 0;
        }
        let before = self.recovery.emulated_sacks;
        self.recovery.emulated_sacks += 1;
        self.check_for_reordering(0);
        self.recovery.emulated_sacks.saturating_sub(before)
    }

    /// `tcp_remove_reno_sacks`: of `acked` segments one was the hole, the others had caused
    /// duplicate ACKs. Returns how many are newly known to have arrived.
    pub(crate) fn remove_emulated_sacks(&mut self, acked: u64) -> u64 {
        let before = self.recovery.emulated_sacks;
        self.recovery.emulated_sacks = before.saturating_sub(acked - 1);
        self.check_for_reordering(acked);
        acked.saturating_sub(before).max(1)
    }

    /// `tcp_check_reno_reordering`: more duplicate ACKs than segments in flight can have caused.
    pub(crate) fn check_for_reordering(&mut self, acked: u64) {
        let outstanding = self.board.segments();
        let holes = self.board.lost_segments().max(1).min(outstanding);
        if self.recovery.emulated_sacks + holes > outstanding {
            self.recovery.emulated_sacks = outstanding - holes;
            self.detector.more_duplicates(outstanding + acked);
        }
    }
}
