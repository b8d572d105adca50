//! Invariants that do not follow from the types, recomputed from the entries: for tests.

use std::cmp::Reverse;

use super::Scoreboard;

impl Scoreboard {
    /// Compares the counts with the entries, and what is to be resent with the marks.
    pub(crate) fn check(&self) {
        self.entries.check();
        assert!(self.sacked_segments() == 0 || self.highest_end == self.position_of(self.highest_sacked));
        for (i, _) in self.entries.iter().enumerate().filter(|(_, sent)| sent.lost && !sent.resent) {
            let position = self.entries.base() + i as u64;
            let listed = || self.lost_again.iter().any(|&Reverse(seq)| self.position_of(seq) == position);
            let within = self.resend_from <= position && position < self.resend_to;
            assert!(within || listed(), "nobody resends it");
        }
        assert!(self.entries.iter().all(|sent| !(sent.sacked && (sent.lost || sent.resent))));
        assert!(self.entries.iter().zip(self.entries.iter().skip(1)).all(|(a, b)| a.end() == b.seq));
    }
}
