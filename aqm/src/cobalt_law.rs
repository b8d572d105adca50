//! COBALT's control law, independent of storage: `cobalt` and `cake` share it.
//!
//! # Source
//! Linux `net/sched/sch_cake.c`: `cobalt_*`.
//!
//! # Departures
//! - BLUE decides before CoDel marks: a packet that it drops is not counted as marked.

use ackclock_units::{Random, Span, Time};

use crate::DropReason;

/// Nothing is signalled up to a sojourn time of so many of the largest packets.
pub(crate) const SMALL_QUEUE: u64 = 4;

/// The parameters of the law.
#[derive(Clone, Debug)]
pub(crate) struct CobaltLaw {
    /// The sojourn time that may persist.
    pub(crate) target: Span,
    /// The time for which the sojourn time may exceed `target` before the first signal.
    pub(crate) interval: Span,
    /// Transmission time of the largest packet.
    pub(crate) mtu_time: Span,
    /// Step up of BLUE's probability, in 2^-32.
    pub(crate) p_inc: u32,
    /// Step down of BLUE's probability, in 2^-32.
    pub(crate) p_dec: u32,
    /// CoDel marks packets that can carry a mark.
    pub(crate) ecn: bool,
    /// Every packet that can carry a mark and waited longer than this is marked.
    pub(crate) ce_threshold: Option<Span>,
    /// Heads that waited longer than this raise BLUE's probability.
    pub(crate) blue_threshold: Option<Span>,
}

/// The state of the law for one queue.
#[derive(Clone, Debug)]
pub(crate) struct CobaltState {
    /// Signals, less those that good times have taken back; 0 at rest.
    pub(crate) count: u32,
    /// 1 / sqrt(count) in 2^-32.
    pub(crate) reciprocal_root: u32,
    /// The time of the next signal; at rest, the time at which CoDel's state may be forgotten.
    pub(crate) drop_next: Time,
    pub(crate) dropping: bool,
    /// BLUE's probability in 2^-32.
    pub(crate) p_drop: u32,
    /// The time of BLUE's last change.
    pub(crate) blue_timer: Time,
    /// Sojourn time of the last head looked at.
    pub(crate) sojourn: Span,
}

/// The law's decision about a head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct HeadDecision {
    /// Mark it.
    pub(crate) mark: bool,
    /// Drop it, unless it is the last one.
    pub(crate) drop: Option<DropReason>,
}

/// 1 / sqrt(count) in 2^-32, rounded; 0 and 1 are as close to one as it gets. One Newton step is
/// far off for small counts (from 1 to 2 it gives what belongs to 4), so these are exact.
pub(crate) const RECIPROCAL_ROOTS: [u32; 16] = [
    u32::MAX,
    u32::MAX,
    3_037_000_500,
    2_479_700_525,
    2_147_483_647,
    1_920_767_767,
    1_753_413_056,
    1_623_345_051,
    1_518_500_250,
    1_431_655_765,
    1_358_187_914,
    1_294_981_364,
    1_239_850_263,
    1_191_209_601,
    1_147_878_294,
    1_108_955_788,
];

impl CobaltState {
    /// The state of a queue at rest.
    pub(crate) const fn new() -> CobaltState {
        CobaltState {
            count: 0,
            reciprocal_root: u32::MAX,
            drop_next: Time::ZERO,
            dropping: false,
            p_drop: 0,
            blue_timer: Time::ZERO,
            sojourn: Span::ZERO,
        }
    }

    /// The state of a queue that has never signalled, as `cobalt_vars_init` leaves it: the first
    /// schedule is due at once.
    pub(crate) const fn zeroed() -> CobaltState {
        CobaltState { reciprocal_root: 0, ..CobaltState::new() }
    }

    /// BLUE's probability, 0 to 1.
    pub(crate) fn probability(&self) -> f64 {
        f64::from(self.p_drop) / 4_294_967_296.0
    }

    /// Returns `true` if nothing is left of earlier signals at `now`.
    pub(crate) fn is_at_rest(&self, now: Time) -> bool {
        self.p_drop == 0 && self.count == 0 && now >= self.drop_next
    }

    /// Raises BLUE's probability: a packet was dropped because there was no room.
    pub(crate) fn overflowed(&mut self, law: &CobaltLaw, now: Time) {
        self.raise(law, now);
        self.dropping = true;
        self.drop_next = now;
        self.count = self.count.max(1);
    }

    /// The queue is asked for a packet and is empty.
    pub(crate) fn found_empty(&mut self, law: &CobaltLaw, now: Time) {
        if self.p_drop > 0 && now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_sub(law.p_dec);
            self.blue_timer = now;
        }
        self.dropping = false;
        if self.count > 0 && now >= self.drop_next {
            self.step(law, self.count - 1);
        }
    }

    /// Looks at a head taken out of the queue. Nothing is signalled up to a sojourn time of `mtus`
    /// of the largest packets.
    pub(crate) fn head(
        &mut self,
        law: &CobaltLaw,
        now: Time,
        head: (Time, bool),
        mtus: u64,
        random: &mut Random,
    ) -> HeadDecision {
        let (enqueued_at, capable) = head;
        let sojourn = now.since(enqueued_at);
        self.sojourn = sojourn;
        let over_target = sojourn > law.target && sojourn > law.mtu_time * mtus;
        // Both are of the schedule as it was before this packet.
        let mut next_due = self.count > 0 && now >= self.drop_next;
        let mut late = now > self.drop_next;

        if over_target {
            if !self.dropping {
                self.drop_next = self.after(law, now);
            }
            self.count = self.count.max(1);
        }
        self.dropping = over_target;

        let (mut mark, mut drop) = (false, None);
        if next_due && self.dropping {
            mark = law.ecn && capable;
            drop = (!mark).then_some(DropReason::Delay);
            self.step(law, self.count.saturating_add(1));
            late = now > self.drop_next;
        } else {
            while next_due {
                self.step(law, self.count - 1);
                late = now > self.drop_next;
                next_due = self.count > 0 && now >= self.drop_next;
            }
        }

        if law.blue_threshold.is_some_and(|threshold| sojourn > threshold) {
            self.raise(law, now);
        }
        if drop.is_none() && self.p_drop > 0 && ((random.bits() >> 32) as u32) < self.p_drop {
            drop = Some(DropReason::Early);
        }

        // At rest the schedule tells how long CoDel is remembered; otherwise it does not run
        // behind.
        if self.count == 0 {
            self.drop_next = now + law.interval;
        } else if late && drop.is_none() {
            self.drop_next = now;
        }
        mark |= capable && law.ce_threshold.is_some_and(|threshold| sojourn > threshold);
        HeadDecision { mark, drop }
    }

    /// Raises BLUE's probability by a step, at most once per `target`.
    fn raise(&mut self, law: &CobaltLaw, now: Time) {
        if now.since(self.blue_timer) > law.target {
            self.p_drop = self.p_drop.saturating_add(law.p_inc);
            self.blue_timer = now;
        }
    }

    /// Moves the count, and the schedule by the interval that belongs to it.
    fn step(&mut self, law: &CobaltLaw, count: u32) {
        self.count = count;
        self.reciprocal_root = match RECIPROCAL_ROOTS.get(count as usize) {
            Some(&root) => root,
            None => newton(self.reciprocal_root, count),
        };
        self.drop_next = self.after(law, self.drop_next);
    }

    /// `interval / sqrt(count)` after `time`.
    fn after(&self, law: &CobaltLaw, time: Time) -> Time {
        let scaled = u128::from(law.interval.as_nanos()) * u128::from(self.reciprocal_root);
        time + Span::from_nanos((scaled >> 32) as u64)
    }
}

/// One Newton step from `root` towards 1 / sqrt(count), in 2^-32:
/// `root / 2 * (3 - count * root^2)`.
pub(crate) fn newton(root: u32, count: u32) -> u32 {
    let square = (u64::from(root) * u64::from(root)) >> 32;
    // The counts come in steps of one, so that the difference is about 2; two bits go so that the
    // product fits.
    let factor = (3u64 << 32).saturating_sub(u64::from(count) * square) >> 2;
    ((factor * u64::from(root)) >> 31) as u32
}
