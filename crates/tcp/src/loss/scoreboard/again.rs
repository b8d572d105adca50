//! Retransmissions in order of sending, so that those that were overtaken are found without a look
//! at all segments: RACK's rule, which Linux runs over its list in order of time
//! (`tsorted_sent_queue`), and that of FACK.

use ackclock_units::{Span, Time};

use super::sent::Again;
use super::{Scoreboard, Sent};
use crate::Stamp;

/// Returns `true` if a segment was sent once, and is not lost.
fn is_open_original(sent: &Sent) -> bool {
    !sent.ever_resent() && !sent.lost && !sent.unlisted()
}

impl Scoreboard {
    /// Everything below `ack` is acknowledged.
    #[cold]
    pub(super) fn forget_again(&mut self, ack: u64) {
        while self.again.front().is_some_and(|again| again.end <= ack) {
            self.again.pop_front();
        }
    }

    /// Lists anew what was sent again: an undo has made it subject to judgement.
    #[cold]
    pub(super) fn order_again(&mut self) {
        self.again.clear();
        for sent in self.entries.iter().filter(|sent| sent.ever_resent() && !sent.sacked && !sent.unlisted()) {
            let nxt = sent.seq + u64::from(sent.aux);
            self.again.push_back(Again { seq: sent.seq, end: sent.end(), stamp: sent.stamp(), nxt });
        }
        self.again.make_contiguous().sort_by_key(|again| again.stamp);
    }

    /// Linux's `tcp_mark_lost_retrans`: a retransmission is lost once data is SACKed that was sent
    /// after it, which begins at SND.NXT of that time.
    pub(crate) fn lose_overtaken_retransmissions(&mut self) {
        let Some(highest) = self.highest_sacked() else { return };
        let mut found = std::mem::take(&mut self.found);
        while let Some(&again) = self.again.front().filter(|again| again.nxt < highest) {
            self.again.pop_front();
            let mut position = self.position_of(again.seq);
            while let Some(&sent) = self.at(position).filter(|sent| sent.seq < again.end) {
                self.step();
                if sent.resent && sent.seq + u64::from(sent.aux) == again.nxt {
                    found.push(position);
                }
                position += 1;
            }
        }
        found.sort_unstable();
        found.dedup();
        for &position in &found {
            let index = (position - self.entries.base()) as usize;
            // A segment resent without having been declared lost is lost now.
            if !self.lose(index) {
                self.losses += 1;
                self.note(index);
            }
            self.entries.change(index, |sent| sent.resent = false);
            self.awaits_resending(index);
        }
        found.clear();
        self.found = found;
    }

    /// RFC 8985 section 6.2 step 5: what was sent before `newest` (time and end of a delivered
    /// segment), and at least `wait` ago, is lost. Returns how long the youngest of those that are
    /// left has to wait. A segment that is declared lost leaves Linux's list until it is sent again:
    /// an undo does not bring it back.
    pub(crate) fn lose_sent_before(&mut self, newest: (Stamp, u64), now: Time, wait: Span) -> Option<Span> {
        let mut found = std::mem::take(&mut self.found);
        let mut longest = self.find_originals(newest, now, wait, &mut found);
        if !self.again.is_empty() {
            let originals = found.len();
            longest = longest.max(self.find_again(newest, now, wait, &mut found));
            if found.len() > originals {
                found.sort_unstable();
                found.dedup();
            }
        }
        for &position in &found {
            let index = (position - self.entries.base()) as usize;
            self.lose_again(index);
            self.entries.change(index, |sent| sent.set(Sent::UNLISTED, true));
        }
        found.clear();
        self.found = found;
        longest
    }

    /// Finds lost segments among those that were sent once, which are in order of time: once one has
    /// to wait, the youngest of them waits longest.
    fn find_originals(&mut self, newest: (Stamp, u64), now: Time, wait: Span, found: &mut Vec<u64>) -> Option<Span> {
        let mut position = self.originals_from.max(self.entries.base());
        let mut longest = None;
        while let Some(&sent) = self.at(position) {
            self.step();
            let mut steps = 1;
            if sent.sacked {
                steps = self.run_of_sacked((position - self.entries.base()) as usize) as u64;
            } else if is_open_original(&sent) {
                if (sent.stamp(), sent.end()) >= newest {
                    // All further segments were sent later still, or again.
                    break;
                }
                let age = now.since(sent.sent_at);
                if age < wait {
                    longest = Some(wait - now.since(self.youngest_original(newest, position)));
                    break;
                }
                found.push(position);
            }
            position += steps;
        }
        self.originals_from = position;
        longest
    }

    /// When the last of the segments was sent that were sent once and before `newest`, of which
    /// there is one at `first`.
    fn youngest_original(&mut self, newest: (Stamp, u64), first: u64) -> Time {
        // If `newest` was sent once as well, no segment beyond it was sent before it.
        let mut position = self.position_of(newest.1).max(first + 1);
        while let Some(&sent) = self.at(position) {
            if is_open_original(&sent) && (sent.stamp(), sent.end()) >= newest {
                break;
            }
            self.step();
            let index = (position - self.entries.base()) as usize;
            position += if sent.sacked { self.run_of_sacked(index) as u64 } else { 1 };
        }
        loop {
            position -= 1;
            self.step();
            let is_before = |sent: &&Sent| !sent.sacked && (sent.stamp(), sent.end()) < newest;
            if let Some(sent) = self.at(position).filter(is_before).filter(|sent| is_open_original(sent)) {
                return sent.sent_at;
            }
        }
    }

    /// Finds lost segments among those that were sent again.
    fn find_again(&mut self, newest: (Stamp, u64), now: Time, wait: Span, found: &mut Vec<u64>) -> Option<Span> {
        let mut longest = None;
        let mut index = 0;
        while let Some(&again) = self.again.get(index).filter(|again| again.stamp <= newest.0) {
            let mut position = self.position_of(again.seq);
            let mut open = false;
            while let Some(&sent) = self.at(position).filter(|sent| sent.seq < again.end) {
                self.step();
                if !sent.sacked && (!sent.lost || sent.resent) && !sent.unlisted() && sent.stamp() == again.stamp {
                    open = true;
                    if (sent.stamp(), sent.end()) < newest {
                        let age = now.since(sent.sent_at);
                        if age >= wait {
                            found.push(position);
                        } else {
                            longest = longest.max(Some(wait - age));
                        }
                    }
                }
                position += 1;
            }
            if open || index > 0 {
                index += 1;
            } else {
                // Acknowledged, SACKed, or to be sent once more.
                self.again.pop_front();
            }
        }
        longest
    }
}
