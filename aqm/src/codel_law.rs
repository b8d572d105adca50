//! CoDel's control law, independent of storage: `codel` and `fq_codel` share it.
//!
//! It measures the sojourn time of the packet at the head. Once that stayed at or above `target`
//! for an `interval`, the head is dropped (or marked), and another one `interval / sqrt(count)`
//! later, closer and closer, until a head is below.
//!
//! # Source
//! RFC 8289 section 5, in names and order; ECN marking, `ce_threshold` and the arithmetic of
//! [`ControlLaw::Linux`] as in Linux `include/net/codel_impl.h` (`codel_dequeue`,
//! `codel_should_drop`, `codel_Newton_step`, `codel_control_law`).
//!
//! # Departures
//! From RFC 8289:
//! - Marking is not in the pseudocode: a head that can carry a mark is marked, leaves, and counts
//!   as a drop. At most one packet is marked per dequeue, since a marked one is sent.
//! - The size that the backlog has to exceed before anything is dropped is a parameter (`mtu`), as
//!   in Linux, instead of the largest packet seen so far: it does not depend on history.
//! - A queue that never was in its dropping state was not there recently. The pseudocode treats the
//!   start of its clock as the time of such a state.
//!
//! From Linux:
//! - The clock does not wrap. Linux's has 32 bits: after 2199 s without a drop it takes the last
//!   one for recent, until it has wrapped.
//! - Newer kernels than 6.1 stop dropping after 256 packets in one call
//!   (`CODEL_MAX_DROPS_PER_DEQUEUE`); here nothing does.

use ackclock_units::parameter::Domain;
use ackclock_units::{Span, Time, named};

use crate::{Entry, Queued};

/// The arithmetic of the law.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ControlLaw {
    /// As Linux does: time in units of 1.024 us, the end of an interval strictly passed before a
    /// packet is dropped, and `1 / sqrt(count)` in 16 bits, brought nearer by one Newton step for
    /// each change of `count`.
    ///
    /// The step starts from the value for the previous count. As the count rises from 1, that is
    /// close (0.50 instead of 0.71 at count 2, within 3 % from count 3 on). Where the count jumps,
    /// it is not: the dropping state entered again at a lower count starts with a gap that is too
    /// short (from count 40 at 2 to 9: 0.33 to 0.66 of the exact one), and a batch of 64 drops at a
    /// limit is followed by gaps 2 to 9 times too long, as far as the count was below 33, since the
    /// step then is outside of the range in which it converges and wraps.
    Linux,
    /// As RFC 8289 does: exact times and square roots.
    Rfc8289,
}

named! { ControlLaw: Linux = "linux", Rfc8289 = "rfc8289" }

impl ControlLaw {
    pub(crate) const DOMAIN: Domain = Domain::named::<ControlLaw>("control law");
}

/// Binary logarithm of the nanoseconds in a unit of Linux's time (`CODEL_SHIFT`).
const LINUX_UNIT_LOG: u32 = 10;
/// No time.
const NEVER: u64 = u64::MAX;

/// The parameters of the law, with times in its units.
#[derive(Clone, Debug)]
pub(crate) struct CodelLaw {
    control_law: ControlLaw,
    /// Binary logarithm of the nanoseconds in a unit of time.
    unit_log: u32,
    target: u64,
    interval: u64,
    ce_threshold: Option<u64>,
    /// Selector and mask of the TOS byte of the packets that `ce_threshold` is for.
    ce_selector: (u8, u8),
    ecn: bool,
    mtu: u32,
}

/// The state of the law for one queue (RFC 8289 section 5.2), with times in units of the law.
#[derive(Clone, Debug)]
pub(crate) struct CodelState {
    /// The time at which the sojourn time will have exceeded `target` for an `interval`; [`NEVER`]
    /// while it does not exceed it.
    first_above: u64,
    /// The time of the next drop, while dropping.
    drop_next: u64,
    /// Sojourn time of the last head looked at.
    sojourn: Span,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was entered last; 0 until it was.
    last_count: u32,
    /// Linux: `1 / sqrt(count)` in 2^-16.
    reciprocal_root: u16,
    dropping: bool,
}

/// The queue that the law acts on, with its books.
pub(crate) trait CodelSource<P> {
    /// Takes the head out of the queue.
    fn take(&mut self) -> Option<Entry<P>>;
    /// Bytes that still wait, in all queues that share the transmitter.
    fn backlog_bytes(&self) -> u64;
    /// Discards a packet taken out.
    fn discard(&mut self, entry: Entry<P>);
    /// Marks a packet taken out; `false` if it cannot carry a mark.
    fn mark(&mut self, packet: &mut P) -> bool;
}

impl CodelLaw {
    pub(crate) fn new(
        control_law: ControlLaw,
        [target, interval]: [Span; 2],
        ce_threshold: Option<Span>,
        ecn: bool,
        mtu: u32,
    ) -> CodelLaw {
        let unit_log = match control_law {
            ControlLaw::Linux => LINUX_UNIT_LOG,
            ControlLaw::Rfc8289 => 0,
        };
        let units = |span: Span| span.as_nanos() >> unit_log;
        let (target, interval) = (units(target), units(interval));
        let ce_threshold = ce_threshold.map(units);
        CodelLaw { control_law, unit_log, target, interval, ce_threshold, ce_selector: (0, 0), ecn, mtu }
    }

    /// `ce_threshold` is for packets whose TOS byte has `selector` in the bits of `mask` alone.
    pub(crate) fn with_ce_selector(self, selector: u8, mask: u8) -> CodelLaw {
        CodelLaw { ce_selector: (selector, mask), ..self }
    }

    /// Returns `true` if `ce_threshold` is for this packet.
    #[inline(always)]
    fn is_selected<P: Queued>(&self, packet: &P) -> bool {
        let (selector, mask) = self.ce_selector;
        mask == 0 || (packet.dscp() << 2 | packet.ecn().bits()) & mask == selector
    }

    /// The arithmetic.
    pub(crate) fn control_law(&self) -> ControlLaw {
        self.control_law
    }

    #[inline(always)]
    fn units(&self, time: Time) -> u64 {
        time.as_nanos() >> self.unit_log
    }
}

impl CodelState {
    /// The state before the first packet.
    pub(crate) fn new() -> CodelState {
        CodelState {
            first_above: NEVER,
            drop_next: 0,
            sojourn: Span::ZERO,
            count: 0,
            last_count: 0,
            reciprocal_root: 0,
            dropping: false,
        }
    }

    /// Sojourn time of the last head looked at.
    pub(crate) fn sojourn(&self) -> Span {
        self.sojourn
    }

    /// Drops since the dropping state was entered.
    pub(crate) fn count(&self) -> u32 {
        self.count
    }

    /// Returns `true` if the law is in its dropping state.
    pub(crate) fn dropping(&self) -> bool {
        self.dropping
    }

    /// Counts packets that were dropped from the queue by another law, so that this one signals
    /// harder.
    pub(crate) fn count_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// The packet to send, after the drops that are due (RFC 8289 section 5.5). `None` if the queue
    /// is empty or became so.
    #[inline(always)]
    pub(crate) fn dequeue<P: Queued>(
        &mut self,
        law: &CodelLaw,
        now: Time,
        queue: &mut impl CodelSource<P>,
    ) -> Option<Entry<P>> {
        let now = law.units(now);
        let Some(mut entry) = queue.take() else {
            self.found_empty(law);
            return None;
        };
        let mut ok_to_drop = self.is_over(law, now, entry.enqueued_at, queue);
        if self.dropping {
            while ok_to_drop && now >= self.drop_next {
                self.count_to(law, self.count.wrapping_add(1));
                if law.ecn && queue.mark(&mut entry.packet) {
                    self.drop_next = self.control_law(law, self.drop_next);
                    return Some(entry);
                }
                queue.discard(entry);
                let Some(next) = self.next_head(queue) else {
                    self.dropping = false;
                    return None;
                };
                entry = next;
                ok_to_drop = self.is_over(law, now, entry.enqueued_at, queue);
                if ok_to_drop {
                    self.drop_next = self.control_law(law, self.drop_next);
                }
            }
            self.dropping = ok_to_drop;
        } else if ok_to_drop {
            self.start_dropping(law, now);
            if law.ecn && queue.mark(&mut entry.packet) {
                return Some(entry);
            }
            queue.discard(entry);
            entry = self.next_head(queue)?;
            self.is_over(law, now, entry.enqueued_at, queue);
        }
        if law.ce_threshold.is_some_and(|threshold| now - law.units(entry.enqueued_at) > threshold)
            && law.is_selected(&entry.packet)
        {
            queue.mark(&mut entry.packet);
        }
        Some(entry)
    }

    /// The queue has its turn and is empty.
    pub(crate) fn found_empty(&mut self, law: &CodelLaw) {
        self.dropping = false;
        if law.control_law == ControlLaw::Rfc8289 {
            self.first_above = NEVER;
        }
    }

    /// The head behind one that was dropped.
    fn next_head<P: Queued>(&mut self, queue: &mut impl CodelSource<P>) -> Option<Entry<P>> {
        let next = queue.take();
        if next.is_none() {
            self.first_above = NEVER;
        }
        next
    }

    /// Returns `true` if the sojourn time has exceeded `target` for an `interval` (RFC 8289 section
    /// 5.6, `dodequeue`), for a head that arrived at `enqueued_at`.
    #[inline]
    fn is_over<P: Queued>(&mut self, law: &CodelLaw, now: u64, enqueued_at: Time, queue: &impl CodelSource<P>) -> bool {
        let sojourn = now - law.units(enqueued_at);
        self.sojourn = Span::from_nanos(sojourn << law.unit_log);
        // With at most one packet left behind it, dropping the head could leave the transmitter
        // idle.
        if sojourn < law.target || queue.backlog_bytes() <= u64::from(law.mtu) {
            self.first_above = NEVER;
            return false;
        }
        if self.first_above == NEVER {
            self.first_above = now.saturating_add(law.interval);
            return false;
        }
        match law.control_law {
            ControlLaw::Linux => now > self.first_above,
            ControlLaw::Rfc8289 => now >= self.first_above,
        }
    }

    fn start_dropping(&mut self, law: &CodelLaw, now: u64) {
        self.dropping = true;
        // The drop rate that controlled the queue last time is where to start, if that was not long
        // ago.
        let drops = self.count.wrapping_sub(self.last_count);
        let recently = self.last_count > 0 && now.saturating_sub(self.drop_next) < law.interval.saturating_mul(16);
        if drops > 1 && recently {
            self.count_to(law, drops);
        } else {
            self.count = 1;
            self.reciprocal_root = u16::MAX;
        }
        self.last_count = self.count;
        self.drop_next = self.control_law(law, now);
    }

    fn count_to(&mut self, law: &CodelLaw, count: u32) {
        self.count = count;
        if law.control_law == ControlLaw::Linux {
            self.reciprocal_root = newton(self.reciprocal_root, count);
        }
    }

    /// The time of the drop after one at `t` (RFC 8289 section 5.6, `control_law`).
    fn control_law(&self, law: &CodelLaw, t: u64) -> u64 {
        let gap = match law.control_law {
            ControlLaw::Linux => ((u128::from(law.interval) * u128::from(self.reciprocal_root)) >> 16) as u64,
            ControlLaw::Rfc8289 => (law.interval as f64 / f64::from(self.count).sqrt()) as u64,
        };
        t.saturating_add(gap)
    }
}

/// One Newton step from `root` towards 1 / sqrt(count), in 2^-16:
/// `root / 2 * (3 - count * root^2)`. Products wrap, as Linux's do where the count has jumped.
fn newton(root: u16, count: u32) -> u16 {
    let root = u64::from(root) << 16;
    let square = (root * root) >> 32;
    let factor = (3u64 << 32).wrapping_sub(u64::from(count) * square) >> 2;
    ((factor.wrapping_mul(root) >> 31) >> 16) as u16
}

#[cfg(test)]
mod tests;
