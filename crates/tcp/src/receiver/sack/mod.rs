//! What the SACK option reports: blocks by RFC 2018 and RFC 2883, or by the lists that Linux and
//! FreeBSD keep.

use ackclock_packet::SackBlocks;

use super::reassembly::{Range, Reassembly};
use crate::ReportRule;
use crate::seq::lower;

mod freebsd;
mod linux;

/// The rule, and the lists of the stacks that keep one apart from the data.
#[derive(Debug, Default)]
pub(super) struct Sack {
    rule: ReportRule,
    freebsd: freebsd::SackList,
    linux: linux::SackList,
}

impl Sack {
    /// `exact` as [`crate::TransferRules::exact_duplicates`].
    pub(super) fn new(rule: ReportRule, exact: bool) -> Sack {
        Sack { rule, linux: linux::SackList::new(exact), freebsd: freebsd::SackList::default() }
    }

    /// A segment `[left, right)` arrives while `next` is expected.
    #[inline(always)]
    pub(super) fn before(&mut self, (left, right): Range, next: u64) {
        if self.rule == ReportRule::Linux {
            self.linux.take((left, right), next);
        }
    }

    /// It has been taken in, and `after` is expected now. `payload` bytes of it are data: a FIN is
    /// not reported.
    #[inline(always)]
    pub(super) fn after(&mut self, (left, right): Range, payload: u32, next: u64, after: u64) {
        if self.rule == ReportRule::FreeBsd {
            self.freebsd.take_segment((left, right), payload, next, after);
        }
    }

    /// The same of data that was next, while there is no gap.
    #[inline(always)]
    pub(super) fn after_next(&mut self, range: Range, payload: u32) {
        if self.rule == ReportRule::FreeBsd && !self.freebsd.as_slice().is_empty() {
            self.freebsd.take_segment(range, payload, range.0, range.1);
        }
    }

    /// An ACK for `next` has left: duplicates are reported once.
    #[inline]
    pub(super) fn reported(&mut self, next: u64) {
        self.freebsd.sent(next);
        self.linux.sent();
    }

    /// The peer's FIN has been taken in.
    pub(super) fn finish(&mut self) {
        self.linux.finish();
    }

    /// Whether a duplicate waits to be reported.
    #[inline]
    pub(super) fn has_duplicate(&self, reassembly: &Reassembly, next: u64) -> bool {
        match self.rule {
            ReportRule::Rfc2883 => reassembly.duplicate().is_some(),
            ReportRule::Linux => self.linux.duplicate().is_some(),
            ReportRule::FreeBsd => self.freebsd.has_duplicate(next),
        }
    }

    /// At most `room` blocks: a duplicate first if `dsack`, then the ranges, newest first. `irs` is
    /// the peer's initial sequence number.
    pub(super) fn blocks(
        &self,
        reassembly: &Reassembly,
        (irs, next): (u32, u64),
        room: usize,
        dsack: bool,
    ) -> SackBlocks {
        let mut blocks = SackBlocks::default();
        let mut push = |(left, right)| {
            blocks.push(lower(left, irs), lower(right, irs));
        };
        match self.rule {
            ReportRule::Rfc2883 => {
                let duplicate = reassembly.duplicate().filter(|_| dsack);
                // As many distinct blocks as there is room for (RFC 2018 section 4).
                let ranges = reassembly.recent().chain(reassembly.older());
                duplicate.into_iter().chain(ranges).take(room).for_each(&mut push);
            }
            ReportRule::Linux => {
                let duplicate = self.linux.duplicate().filter(|_| dsack);
                duplicate.into_iter().chain(self.linux.blocks().iter().copied()).take(room).for_each(&mut push);
            }
            ReportRule::FreeBsd => {
                let list = self.freebsd.as_slice().iter().copied();
                list.filter(|&(_, right)| dsack || right > next).take(room).for_each(&mut push);
            }
        }
        blocks
    }
}
