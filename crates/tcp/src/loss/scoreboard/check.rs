//! Every count, recomputed from the entries: for tests.

use std::cmp::Reverse;

use super::{Scoreboard, Sent};

impl Scoreboard {
    /// Recomputes every count from the entries.
    pub(crate) fn check(&self) {
        let sum = |keep: fn(&Sent) -> bool| -> u64 {
            self.entries.iter().filter(|sent| keep(sent)).map(|sent| u64::from(sent.len)).sum()
        };
        assert_eq!(self.outstanding, sum(|_| true));
        assert!(self.sacked_segments == 0 || self.highest_end == self.position_of(self.highest_sacked));
        assert_eq!(self.sacked, sum(|sent| sent.sacked));
        assert_eq!(self.sacked_segments, self.entries.iter().filter(|sent| sent.sacked).count() as u64);
        assert_eq!(self.lost, sum(|sent| sent.lost));
        assert_eq!(self.resent, sum(|sent| sent.resent));
        let count = |keep: fn(&Sent) -> bool| self.entries.iter().filter(|sent| keep(sent)).count() as u64;
        assert_eq!(self.lost_segments, count(|sent| sent.lost));
        assert_eq!(self.resent_segments, count(|sent| sent.resent));
        assert_eq!(u64::from(self.merged_segments), count(|sent| sent.merged()));
        assert_eq!(u64::from(self.joined_segments), count(|sent| sent.joined()));
        for (i, _) in self.entries.iter().enumerate().filter(|(_, sent)| sent.lost && !sent.resent) {
            let position = self.base + i as u64;
            let listed = || self.lost_again.iter().any(|&Reverse(seq)| self.position_of(seq) == position);
            let within = self.resend_from <= position && position < self.resend_to;
            assert!(within || listed(), "nobody resends it");
        }
        let (below, above) =
            (0..self.entries.len()).partition::<Vec<_>, _>(|&i| self.base + (i as u64) < self.lost_below);
        let sacked = |indices: &[usize]| indices.iter().filter(|&&i| self.entries[i].sacked).count() as u64;
        assert_eq!(u64::from(self.sacked_below), sacked(&below));
        let units = above.iter().filter(|&&i| self.entries[i].sacked).map(|&i| u64::from(self.entries[i].len));
        assert_eq!(self.sacked_above, units.sum());
        let ends: Vec<_> = above.iter().copied().filter(|&i| self.is_sacked(i) && !self.is_sacked(i + 1)).collect();
        assert_eq!(self.runs_above as usize, ends.len());
        assert!(self.entries.iter().all(|sent| !(sent.sacked && (sent.lost || sent.resent))));
        assert!(self.entries.iter().zip(self.entries.iter().skip(1)).all(|(a, b)| a.end() == b.seq));
    }
}
