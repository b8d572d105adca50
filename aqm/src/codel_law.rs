//! The law of CoDel apart from any storage: `codel` and `fq_codel` share it.
//!
//! It measures the sojourn time of the packet at the head. Once that stayed at or above `target` for an `interval`, the
//! head is dropped (or marked), and another one `interval / sqrt(count)` later, closer and closer, until a head is below.
//!
//! # Source
//! RFC 8289 section 5, in names and order; ECN marking and `ce_threshold` as in Linux `codel_impl.h`.
//!
//! # Departures
//! - Marking is not in RFC 8289's pseudocode: a head that can carry a mark is marked, leaves, and counts as a drop. At most
//!   one packet is marked per dequeue, since a marked one is sent.
//! - The size that the backlog has to exceed before anything is dropped is a parameter (`mtu`), as in Linux, in place of the
//!   largest packet seen so far: it does not depend on history.
//!
//! Linux approximates `1 / sqrt(count)` by one Newton step per change of `count` from 16 bits (0.50 in place of 0.71 at
//! count 2, within 3 % from count 3 on); here it is the exact square root of RFC 8289. Linux counts time in units of 1.024 us,
//! requires the time to be strictly past the end of the interval, and leaves `first_above_time` as it was when it finds the
//! queue empty; here these are as in the RFC.

use ackclock_units::{Span, Time};

use crate::{Entry, Queued};

/// The parameters of the law.
#[derive(Clone, Debug)]
pub(crate) struct CodelLaw {
    pub(crate) target: Span,
    pub(crate) interval: Span,
    pub(crate) ecn: bool,
    pub(crate) ce_threshold: Option<Span>,
    pub(crate) mtu: u32,
}

/// The state of the law for one queue (RFC 8289 section 5.2).
#[derive(Clone, Debug)]
pub(crate) struct CodelState {
    /// When the sojourn time will have been above `target` for an `interval`; [`Time::NEVER`] while it is below.
    first_above: Time,
    /// When to drop next, while dropping.
    drop_next: Time,
    /// Sojourn time of the last head looked at.
    sojourn: Span,
    /// Drops since the dropping state was entered.
    count: u32,
    /// `count` when the dropping state was entered last.
    last_count: u32,
    dropping: bool,
}

/// What the law acts on: a queue, and the books it is in.
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
    /// The time of the drop after one at `t` (RFC 8289 section 5.6, `control_law`).
    fn control_law(&self, t: Time, count: u32) -> Time {
        t + Span::from_nanos((self.interval.as_nanos() as f64 / f64::from(count).sqrt()) as u64)
    }
}

impl CodelState {
    /// Nothing seen yet.
    pub(crate) fn new() -> CodelState {
        CodelState {
            first_above: Time::NEVER,
            drop_next: Time::ZERO,
            sojourn: Span::ZERO,
            count: 0,
            last_count: 0,
            dropping: false,
        }
    }

    /// Sojourn time of the last head looked at.
    pub(crate) fn sojourn(&self) -> Span {
        self.sojourn
    }

    /// Whether the law is in its dropping state.
    pub(crate) fn dropping(&self) -> bool {
        self.dropping
    }

    /// Counts packets that were dropped from the queue by another law, so that this one signals harder.
    pub(crate) fn count_drops(&mut self, drops: u32) {
        self.count = self.count.wrapping_add(drops);
    }

    /// The packet to send, after the drops that are due (RFC 8289 section 5.5). `None` if the queue is empty or became so.
    pub(crate) fn dequeue<P: Queued>(
        &mut self,
        law: &CodelLaw,
        now: Time,
        queue: &mut impl CodelSource<P>,
    ) -> Option<Entry<P>> {
        let Some((mut entry, mut ok_to_drop)) = self.head(law, now, queue) else {
            self.dropping = false;
            return None;
        };
        if self.dropping {
            while ok_to_drop && now >= self.drop_next {
                self.count = self.count.wrapping_add(1);
                if law.ecn && queue.mark(&mut entry.packet) {
                    self.drop_next = law.control_law(self.drop_next, self.count);
                    return Some(entry);
                }
                queue.discard(entry);
                let Some(next) = self.head(law, now, queue) else {
                    self.dropping = false;
                    return None;
                };
                (entry, ok_to_drop) = next;
                if ok_to_drop {
                    self.drop_next = law.control_law(self.drop_next, self.count);
                }
            }
            self.dropping = ok_to_drop;
        } else if ok_to_drop {
            self.start_dropping(law, now);
            if law.ecn && queue.mark(&mut entry.packet) {
                return Some(entry);
            }
            queue.discard(entry);
            (entry, _) = self.head(law, now, queue)?;
        }
        if law.ce_threshold.is_some_and(|threshold| self.sojourn > threshold) {
            queue.mark(&mut entry.packet);
        }
        Some(entry)
    }

    /// The head of the queue, and whether the sojourn time was above `target` for an `interval` (RFC 8289 section 5.6,
    /// `dodequeue`).
    fn head<P: Queued>(
        &mut self,
        law: &CodelLaw,
        now: Time,
        queue: &mut impl CodelSource<P>,
    ) -> Option<(Entry<P>, bool)> {
        let Some(entry) = queue.take() else {
            self.first_above = Time::NEVER;
            return None;
        };
        self.sojourn = now.since(entry.enqueued_at);
        // With at most one packet left behind it, dropping the head could leave the transmitter idle.
        if self.sojourn < law.target || queue.backlog_bytes() <= u64::from(law.mtu) {
            self.first_above = Time::NEVER;
            return Some((entry, false));
        }
        if self.first_above == Time::NEVER {
            self.first_above = now + law.interval;
            return Some((entry, false));
        }
        Some((entry, now >= self.first_above))
    }

    fn start_dropping(&mut self, law: &CodelLaw, now: Time) {
        self.dropping = true;
        // The drop rate that controlled the queue last time is where to start, if that was not long ago.
        let drops = self.count.wrapping_sub(self.last_count);
        let recently = now.since(self.drop_next) < law.interval * 16;
        self.count = if drops > 1 && recently { drops } else { 1 };
        self.last_count = self.count;
        self.drop_next = law.control_law(now, self.count);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_close_up_with_the_square_root_of_their_count() {
        let law = CodelLaw {
            target: Span::from_millis(5),
            interval: Span::from_millis(100),
            ecn: false,
            ce_threshold: None,
            mtu: 1514,
        };
        for (count, nanos) in [(1, 100_000_000), (2, 70_710_678), (3, 57_735_026), (4, 50_000_000), (100, 10_000_000)] {
            assert_eq!(law.control_law(Time::ZERO, count), Time::from_nanos(nanos), "count {count}");
        }
        // The count wraps; the law must not panic there. An infinite step saturates.
        assert_eq!(law.control_law(Time::ZERO, 0), Time::NEVER);
    }
}
