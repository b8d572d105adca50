//! The contents of the SACK option: blocks by RFC 2018 and RFC 2883, or by the lists that Linux and
//! FreeBSD keep.

use ackclock_packet::SackBlocks;

use super::reassembly::{Range, Reassembly};
use crate::ReportRule;
use crate::seq::lower;

mod freebsd;
mod linux;

/// The rule, and the lists of the stacks that keep one apart from the data: from the first segment
/// on that is not the next one.
#[derive(Debug, Default)]
pub(super) struct Sack {
    rule: ReportRule,
    exact: bool,
    freebsd: Option<Box<freebsd::FreebsdSackList>>,
    linux: Option<Box<linux::LinuxSackList>>,
}

impl Sack {
    /// `exact` as [`crate::TransferRules::exact_duplicates`].
    pub(super) fn new(rule: ReportRule, exact: bool) -> Sack {
        Sack { rule, exact, freebsd: None, linux: None }
    }

    /// A segment `[left, right)` arrives while `next` is expected.
    #[inline(always)]
    pub(super) fn before(&mut self, (left, right): Range, next: u64) {
        // Nothing is known of the next data if nothing is held.
        if self.rule == ReportRule::Linux && (left != next || right <= next || self.has_linux_list()) {
            let exact = self.exact;
            let list = self.linux.get_or_insert_with(|| Box::new(linux::LinuxSackList::new(exact)));
            list.take((left, right), next);
        }
    }

    /// Notes that a segment has been taken in, and `after` is expected now. `payload` bytes of it
    /// are data: a FIN is not reported.
    #[inline(always)]
    pub(super) fn after(&mut self, (left, right): Range, payload: u32, next: u64, after: u64) {
        if self.rule != ReportRule::FreeBsd {
            return;
        }
        let is_next = left == next && right == after && right - left == u64::from(payload);
        if self.freebsd.is_some() || !is_next || payload == 0 {
            self.freebsd.get_or_insert_default().take_segment((left, right), payload, next, after);
        }
    }

    /// Notes data that was next, while there is no gap.
    #[inline(always)]
    pub(super) fn after_next(&mut self, range: Range, payload: u32) {
        if let Some(list) = self.freebsd.as_mut().filter(|list| !list.as_slice().is_empty()) {
            list.take_segment(range, payload, range.0, range.1);
        }
    }

    /// An ACK for `next` has left: duplicates are reported once.
    #[inline]
    pub(super) fn reported(&mut self, next: u64) {
        if self.freebsd.is_some() || self.linux.is_some() {
            self.lists_reported(next);
        }
    }

    #[inline(never)]
    fn lists_reported(&mut self, next: u64) {
        if let Some(list) = &mut self.freebsd {
            list.sent(next);
        }
        if let Some(list) = &mut self.linux {
            list.sent();
        }
    }

    /// The peer's FIN has been taken in: Linux reports nothing any more (`tcp_fin`).
    pub(super) fn finish(&mut self) {
        self.linux = None;
    }

    /// Returns `true` if a duplicate waits to be reported.
    #[inline]
    pub(super) fn has_duplicate(&self, reassembly: &Reassembly, next: u64) -> bool {
        match self.rule {
            ReportRule::Rfc2883 => reassembly.duplicate().is_some(),
            ReportRule::Linux => self.linux_duplicate().is_some(),
            ReportRule::FreeBsd => self.freebsd.as_ref().is_some_and(|list| list.has_duplicate(next)),
        }
    }

    /// Returns true if Linux's list holds anything.
    #[inline]
    fn has_linux_list(&self) -> bool {
        self.linux.as_ref().is_some_and(|list| !list.is_empty())
    }

    fn linux_duplicate(&self) -> Option<Range> {
        self.linux.as_ref()?.duplicate()
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
                let duplicate = reassembly.duplicate().filter(|_| dsack && room > 0);
                if let Some(duplicate) = duplicate {
                    push(duplicate);
                }
                // The option carries as many distinct blocks as there is room for (RFC 2018 section 4).
                reassembly.report(room - usize::from(duplicate.is_some()), push);
            }
            ReportRule::Linux => {
                let duplicate = self.linux_duplicate().filter(|_| dsack);
                let list = self.linux.iter().flat_map(|list| list.blocks()).copied();
                duplicate.into_iter().chain(list).take(room).for_each(&mut push);
            }
            ReportRule::FreeBsd => {
                let list = self.freebsd.iter().flat_map(|list| list.as_slice()).copied();
                list.filter(|&(_, right)| dsack || right > next).take(room).for_each(&mut push);
            }
        }
        blocks
    }
}
