//! QFQ+, quick fair queueing: classes with weights share the link, each within a few packets of its
//! part at any time, at a cost that does not grow with their number.
//!
//! Classes with the same weight and the same longest packet are served together, up to eight in an
//! aggregate, which takes turns among them by deficit round robin. An aggregate has a virtual start
//! and finish time, and serves a budget of one longest packet for each class. The ratio of budget
//! and weight, rounded up to a power of two, is its group. A group keeps its aggregates in slots by
//! their start, and its own start and finish are rounded to slots, so that bitmaps of groups tell
//! which of them may be served: those that are eligible (their start has come) and ready (no group
//! above with an earlier finish waits). Of those the lowest group has the earliest finish.
//!
//! # Source
//! F. Checconi, L. Rizzo, P. Valente, "QFQ: Efficient Packet Scheduling With Tight Guarantees"
//! (IEEE/ACM ToN 2013); Linux 6.1 `net/sched/sch_qfq.c` (aggregates: P. Valente, "Providing
//! Near-Optimal Fair-Queueing Guarantees at Round-Robin Amortized Cost", ICCCN 2013); iproute2's
//! `tc/q_qfq.c`.
//!
//! # Departures
//! - Filters are conditions of the classes, in their order; classes have no others below them.
//! - Packets without a class go first, as those of HTB, so that the classes need not name every
//!   packet; Linux drops them. `default` stands for a filter that matches all.
//! - The length of the next packet is that of the class's `peek`, and the class pays for the packet
//!   that leaves. Linux takes the packet out, with which a law that decides on departure has decided.
//! - A class that holds its packets back (`tbf`, `fq`) is asked again at its own time, and nothing
//!   else is sent until then; Linux warns of such classes.
//! - With the last packet the aggregate in service is forgotten. Linux forgets it when it is asked in
//!   vain, which a driver does at once while its ring has room.
//! - At run time weights and `maxpkt` change, not the classes, their queues and their flows.
//! - `peek` shows the packet that is likely to be next.

use std::any::Any;
use std::sync::Arc;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX};
use crate::tree::{self, Class, LeafSpec, Leaves};
use crate::{Books, ChangeError, ClassState, Dequeue, DropReason, Drops, Entry, Headers, QueueDisc, Queued, Variable};

const SOURCE: &str = "`sch_qfq.c`";
/// The numbers of groups are below this (`QFQ_MAX_INDEX`).
const GROUPS: usize = 25;
/// Slots of a group (`QFQ_MAX_SLOTS`).
const SLOTS: usize = 32;
/// A byte of virtual time for a weight of 1 (`ONE_FP`).
const ONE: u32 = 1 << 30;
/// The slots of the first group are so long: `min_slot_shift`, for aggregates of eight classes.
const SLOT_SHIFT: u32 = 30 + 16 + 3 - 24;
/// The most classes of an aggregate (`QFQ_MAX_AGG_CLASSES`; with a `txqueuelen` of 7 or more).
const AGGREGATE: usize = 8;
/// The greatest weight, and the greatest sum (`QFQ_MAX_WEIGHT`, `QFQ_MAX_WSUM`).
const WEIGHT: u32 = 1 << 10;
const WEIGHTS: u32 = 64 * WEIGHT;
/// Bounds of the longest packet (`QFQ_MIN_LMAX`, `QFQ_MAX_LMAX`).
const LENGTHS: std::ops::RangeInclusive<u32> = 512..=1 << 16;

/// Settings of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QfqClass {
    /// Its weight, 1 to 1024. Default: 1.
    pub weight: u32,
    /// Its longest packet in bytes, 512 to 65,536; a longer one raises it. Default: 1514, an
    /// Ethernet frame.
    pub maxpkt: u32,
}

impl Default for QfqClass {
    fn default() -> QfqClass {
        QfqClass { weight: 1, maxpkt: 1514 }
    }
}

configuration! {
/// Parameters of QFQ.
#[derive(Clone, Debug, PartialEq)]
pub struct QfqConfig<Q: LeafSpec> {
    /// The most packets without a class that wait. Default: 1000, the `txqueuelen` of a device.
    pub direct_qlen: u64 = 1000 => (Domain::Packets(1, MAX), SOURCE);
    /// The class of packets that no filter knows. Default: none, they have no class.
    pub default: Option<Arc<str>> = None;
    /// The classes. Default: none.
    pub classes: Vec<Class<QfqClass, Q>> = Vec::new();
} problem
}

impl<Q: LeafSpec> Discipline for QfqConfig<Q> {
    fn marks(&self) -> bool {
        self.classes.iter().any(|class| class.queue.marks())
    }
}

impl<Q: LeafSpec> QfqConfig<Q> {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if let Some(problem) = tree::problem(&self.classes, self.default.as_ref()) {
            return Some(problem);
        }
        let settings = || self.classes.iter().map(|class| &class.settings);
        if self.direct_qlen == 0 {
            Some("direct_qlen must not be zero")
        } else if self.classes.iter().any(|class| class.parent.is_some()) {
            Some("a class of qfq has no other above it")
        } else if settings().any(|class| !(1..=WEIGHT).contains(&class.weight)) {
            Some("weight is from 1 to 1024")
        } else if settings().any(|class| !LENGTHS.contains(&class.maxpkt)) {
            Some("maxpkt is from 512 to 65536 bytes")
        } else if settings().map(|class| class.weight).sum::<u32>() > WEIGHTS {
            Some("the weights of all classes are at most 65536 together")
        } else {
            None
        }
    }
}

/// States of a group: the numbers of its bitmap. Eligible and ready, ineligible and ready, eligible
/// and blocked, ineligible and blocked.
const ER: usize = 0;
const IR: usize = 1;
const EB: usize = 2;
const IB: usize = 3;

/// Classes that may have the same weight and the same longest packet (`qfq_aggregate`).
#[derive(Clone, Debug)]
struct Aggregate {
    /// The next one in its slot.
    next: Option<usize>,
    /// Virtual start and finish.
    start: u64,
    finish: u64,
    /// That of its first class, for as long as it has any.
    group: usize,
    weight: u32,
    lmax: u32,
    /// `ONE` over the weights of its classes together.
    inverse: u32,
    budget_max: u32,
    initial_budget: u32,
    budget: u32,
    classes: usize,
    /// Classes with packets, in the order of their turns.
    active: [usize; AGGREGATE],
    actives: usize,
}

impl Aggregate {
    fn active(&self) -> &[usize] {
        &self.active[..self.actives]
    }

    fn push(&mut self, class: usize) {
        self.active[self.actives] = class;
        self.actives += 1;
    }

    fn remove(&mut self, class: usize) {
        if let Some(place) = self.active().iter().position(|&of| of == class) {
            self.active.copy_within(place + 1..self.actives, place);
            self.actives -= 1;
        }
    }

    /// The first class becomes the last one.
    fn rotate(&mut self) {
        self.active[..self.actives].rotate_left(1);
    }

    fn recharge(&mut self) {
        (self.initial_budget, self.budget) = (self.budget_max, self.budget_max);
    }

    /// The finish after what was served (`charge_actual_service`).
    fn charge(&mut self) {
        let served = self.budget_max.min(self.initial_budget - self.budget);
        self.finish = self.start.wrapping_add(u64::from(served) * u64::from(self.inverse));
    }
}

/// Aggregates whose ratio of budget and weight is within a power of two (`qfq_group`).
#[derive(Clone, Debug)]
struct Group {
    /// Start and finish, rounded to slots.
    start: u64,
    finish: u64,
    /// The slot of `start`.
    front: usize,
    /// The slots with aggregates from there on, a bit each.
    full: u64,
    slots: [Option<usize>; SLOTS],
}

impl Group {
    fn head(&self) -> Option<usize> {
        self.slots[self.front]
    }

    /// The first aggregate of the first slot with any, which becomes the front
    /// (`qfq_slot_scan`).
    fn scan(&mut self) -> Option<usize> {
        if self.full == 0 {
            return None;
        }
        let slots = self.full.trailing_zeros();
        self.front = (self.front + slots as usize) % SLOTS;
        self.full >>= slots;
        self.head()
    }
}

/// A class (`qfq_class`).
#[derive(Clone, Debug)]
struct Member {
    aggregate: usize,
    is_active: bool,
    deficit: i32,
}

impl Member {
    /// The class has to pass its turn before a packet of this length. The kernel compares without
    /// a sign: below zero, where `maxpkt` has become less than what waits, it has enough.
    fn has_too_little(&self, length: u32) -> bool {
        (self.deficit as u32) < length
    }
}

/// QFQ+.
#[derive(Debug)]
pub struct Qfq<P, Q> {
    config: QfqConfig<Q>,
    members: Vec<Member>,
    /// One for each class and another one: a class enters the next before it leaves the last.
    aggregates: Vec<Aggregate>,
    /// Those without classes.
    unused: Vec<usize>,
    /// Those with room for more, the one that got room last at the end.
    roomy: Vec<usize>,
    groups: Vec<Group>,
    bitmaps: [u64; 4],
    /// The aggregate in service.
    serving: Option<usize>,
    /// Virtual time, and that of the last choice of an aggregate.
    now: u64,
    then: u64,
    weights: u32,
    /// `ONE` over the weights of all classes.
    inverse: u32,
    leaves: Leaves<P>,
}

/// Returns `true` if one time is after another, also where they wrap (`qfq_gt`).
#[inline]
fn after(one: u64, other: u64) -> bool {
    (one.wrapping_sub(other) as i64) > 0
}

/// A time rounded down to the slots of a group.
#[inline]
fn round(time: u64, shift: u32) -> u64 {
    time & !((1 << shift) - 1)
}

/// The slots of a group are so long.
#[inline]
fn shift(group: usize) -> u32 {
    SLOT_SHIFT + group as u32
}

/// The groups of a bitmap from this one on.
#[inline]
fn from(bitmap: u64, group: usize) -> u64 {
    bitmap & (u64::MAX << group)
}

/// The first group of a bitmap.
#[inline]
fn first(bitmap: u64) -> Option<usize> {
    (bitmap != 0).then(|| bitmap.trailing_zeros() as usize)
}

/// The group of a budget and an inverse weight (`qfq_calc_index`).
fn group_of(inverse: u32, budget: u32) -> usize {
    let size = u64::from(budget) * u64::from(inverse);
    let above = u64::BITS - (size >> SLOT_SHIFT).leading_zeros();
    let exact = above > 0 && size == 1 << (above + SLOT_SHIFT - 1);
    (above - u32::from(exact)) as usize
}

impl<P: Queued + Send + 'static, Q: LeafSpec> Qfq<P, Q> {
    /// Empty classes; their queues draw from streams of `random`.
    ///
    /// # Panics
    /// If the parameters have a [`QfqConfig::problem`].
    pub fn new(config: QfqConfig<Q>, random: Random) -> Qfq<P, Q> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let count = config.classes.len();
        let aggregate = Aggregate {
            next: None,
            start: 0,
            finish: 0,
            group: 0,
            weight: 0,
            lmax: 0,
            inverse: 0,
            budget_max: 0,
            initial_budget: 0,
            budget: 0,
            classes: 0,
            active: [0; AGGREGATE],
            actives: 0,
        };
        let group = Group { start: 0, finish: 0, front: 0, full: 0, slots: [None; SLOTS] };
        let mut qfq = Qfq {
            leaves: Leaves::new(&config.classes, config.default.as_ref(), &random),
            members: vec![Member { aggregate: 0, is_active: false, deficit: 0 }; count],
            aggregates: vec![aggregate; count + 1],
            unused: (0..=count).rev().collect(),
            roomy: Vec::with_capacity(count + 1),
            groups: vec![group; GROUPS],
            bitmaps: [0; 4],
            serving: None,
            now: 0,
            then: 0,
            weights: 0,
            inverse: 0,
            config,
        };
        for class in 0..count {
            let QfqClass { weight, maxpkt } = qfq.config.classes[class].settings;
            qfq.members[class].deficit = maxpkt as i32;
            let aggregate = qfq.aggregate_of(maxpkt, weight);
            qfq.add(class, aggregate);
        }
        qfq
    }
}

impl<P: Queued, Q: LeafSpec> Qfq<P, Q> {
    /// An aggregate with room for a class (`qfq_find_agg`, `qfq_init_agg`).
    fn aggregate_of(&mut self, lmax: u32, weight: u32) -> usize {
        let aggregates = &self.aggregates;
        let is_right = |&&number: &&usize| (aggregates[number].lmax, aggregates[number].weight) == (lmax, weight);
        if let Some(&number) = self.roomy.iter().rev().find(is_right) {
            return number;
        }
        let number = self.unused.pop().expect("an aggregate more than classes");
        let of = &mut self.aggregates[number];
        (of.lmax, of.weight, of.classes, of.actives) = (lmax, weight, 0, 0);
        (of.start, of.finish, of.budget, of.initial_budget, of.next) = (0, 0, 0, 0, None);
        self.roomy.push(number);
        number
    }

    /// An aggregate gets another number of classes (`qfq_update_agg`).
    fn resize(&mut self, number: usize, classes: usize) {
        if classes == AGGREGATE {
            self.roomy.retain(|&of| of != number);
        }
        let of = &mut self.aggregates[number];
        if of.classes > classes && classes == AGGREGATE - 1 {
            self.roomy.push(number);
        }
        of.budget_max = classes as u32 * of.lmax;
        of.inverse = ONE / (of.weight * classes as u32);
        if of.classes == 0 {
            of.group = group_of(of.inverse, of.budget_max);
        }
        self.weights = self.weights + of.weight * classes as u32 - of.weight * of.classes as u32;
        self.inverse = ONE / self.weights;
        of.classes = classes;
    }

    /// Adds a class to an aggregate (`qfq_add_to_agg`).
    fn add(&mut self, class: usize, number: usize) {
        self.members[class].aggregate = number;
        self.resize(number, self.aggregates[number].classes + 1);
        if self.leaves.len(class) > 0 {
            self.members[class].is_active = true;
            self.aggregates[number].push(class);
            if self.aggregates[number].actives == 1 && self.serving != Some(number) {
                self.activate(number);
            }
        }
    }

    /// A class leaves its aggregate (`qfq_deact_rm_from_agg`).
    fn leave(&mut self, class: usize) {
        if self.members[class].is_active {
            self.deactivate_class(class);
        }
        let number = self.members[class].aggregate;
        let classes = self.aggregates[number].classes;
        if classes > 1 {
            return self.resize(number, classes - 1);
        }
        // `qfq_destroy_agg`.
        self.roomy.retain(|&of| of != number);
        self.weights -= self.aggregates[number].weight;
        self.inverse = ONE.checked_div(self.weights).unwrap_or(self.inverse);
        if self.serving == Some(number) {
            self.serving = self.choose();
        }
        self.unused.push(number);
    }

    /// A class gets another weight or longest packet (`qfq_change_agg`).
    fn change_class(&mut self, class: usize, QfqClass { weight, maxpkt }: QfqClass) {
        let of = &self.aggregates[self.members[class].aggregate];
        if (of.weight, of.lmax) == (weight, maxpkt) {
            return;
        }
        let number = self.aggregate_of(maxpkt, weight);
        self.leave(class);
        self.add(class, number);
    }

    /// A class has no packets (`qfq_deactivate_class`).
    fn deactivate_class(&mut self, class: usize) {
        let Member { aggregate, is_active, .. } = &mut self.members[class];
        *is_active = false;
        let number = *aggregate;
        self.aggregates[number].remove(class);
        if self.aggregates[number].actives == 0 {
            self.deactivate(number);
        }
    }

    /// The state of a group (`qfq_calc_state`).
    fn state(&self, group: usize) -> usize {
        let of = &self.groups[group];
        let ineligible = usize::from(after(of.start, self.now));
        let next = first(from(self.bitmaps[ER], group));
        let blocked = next.is_some_and(|next| after(of.finish, self.groups[next].finish));
        ineligible | if blocked { EB } else { ER }
    }

    /// A group starts at another slot, or anew.
    fn place(&mut self, group: usize, start: u64) {
        self.groups[group].start = start;
        self.groups[group].finish = start.wrapping_add(2 << shift(group));
        let state = self.state(group);
        self.bitmaps[state] |= 1 << group;
    }

    fn clear(&mut self, group: usize, states: &[usize]) {
        states.iter().for_each(|&state| self.bitmaps[state] &= !(1 << group));
    }

    /// Groups pass from one state to another (`qfq_move_groups`).
    fn pass(&mut self, mask: u64, [source, to]: [usize; 2]) {
        self.bitmaps[to] |= self.bitmaps[source] & mask;
        self.bitmaps[source] &= !mask;
    }

    /// A group had this finish: those that it blocked are ready, but for others that block them
    /// (`qfq_unblock_groups`).
    fn unblock(&mut self, group: usize, finish: u64) {
        if let Some(next) = first(from(self.bitmaps[ER], group + 1))
            && !after(self.groups[next].finish, finish)
        {
            return;
        }
        self.ready((1 << group) - 1);
    }

    fn ready(&mut self, mask: u64) {
        self.pass(mask, [EB, ER]);
        self.pass(mask, [IB, IR]);
    }

    /// Groups whose start has come are eligible (`qfq_update_eligible`, `qfq_make_eligible`).
    fn update_eligible(&mut self) {
        let Some(next) = first(self.bitmaps[IR] | self.bitmaps[IB]) else { return };
        if self.bitmaps[ER] == 0 && after(self.groups[next].start, self.now) {
            self.now = self.groups[next].start;
        }
        let flipped = (self.now >> SLOT_SHIFT) ^ (self.then >> SLOT_SHIFT);
        if flipped != 0 {
            // The kernel looks at the lower half alone; a carry flips bits of both.
            let last = u32::BITS - (flipped as u32).leading_zeros();
            let mask = if last > 31 { u64::MAX } else { (1 << last) - 1 };
            self.pass(mask, [IR, ER]);
            self.pass(mask, [IB, EB]);
        }
    }

    /// The start of an aggregate that was idle (`qfq_update_start`).
    fn start_of(&self, number: usize) -> u64 {
        let Aggregate { finish, group, .. } = self.aggregates[number];
        let rounded = round(finish, shift(group));
        let limit = round(self.now, shift(group)).wrapping_add(1 << shift(group));
        if after(finish, self.now) && !after(rounded, limit) {
            return finish;
        }
        // The finish is of long ago. A start of now may violate the order of groups that wait.
        match first(from(self.bitmaps[ER], group)) {
            Some(next) if after(rounded, self.groups[next].finish) => {
                let finish = self.groups[next].finish;
                if after(limit, finish) { finish } else { limit }
            }
            _ => self.now,
        }
    }

    /// An aggregate starts at this time and has a whole budget before it
    /// (`qfq_update_agg_ts`).
    fn begin(&mut self, number: usize, start: u64) {
        let of = &mut self.aggregates[number];
        of.start = start;
        of.finish = start.wrapping_add(u64::from(of.budget_max) * u64::from(of.inverse));
    }

    /// An aggregate that was idle has packets (`qfq_activate_agg`).
    fn activate(&mut self, number: usize) {
        self.aggregates[number].recharge();
        self.begin(number, self.start_of(number));
        if self.serving.is_none() {
            self.serving = Some(number);
            self.now = self.aggregates[number].start;
            self.then = self.now;
        } else if self.serving != Some(number) {
            self.schedule(number);
        }
    }

    /// Puts an aggregate into its group by its start (`qfq_schedule_agg`).
    fn schedule(&mut self, number: usize) {
        let Aggregate { start, group, .. } = self.aggregates[number];
        let rounded = round(start, shift(group));
        let of = &mut self.groups[group];
        if of.full == 0 || after(of.start, start) {
            if of.full != 0 {
                // `qfq_slot_rotate`: the group starts earlier, and was surely not eligible.
                let slots = of.start.wrapping_sub(rounded) >> shift(group);
                of.full = of.full.wrapping_shl(slots as u32);
                of.front = of.front.wrapping_sub(slots as usize) % SLOTS;
                self.clear(group, &[IR, IB]);
            } else if self.bitmaps[ER] == 0 && after(rounded, self.now) && self.serving.is_none() {
                self.now = rounded;
            }
            self.place(group, rounded);
        }
        self.insert(number, rounded);
    }

    /// Puts an aggregate into its slot, or the last that there is (`qfq_slot_insert`).
    fn insert(&mut self, number: usize, rounded: u64) {
        const LAST: u64 = SLOTS as u64 - 2;
        let of = &mut self.aggregates[number];
        let group = &mut self.groups[of.group];
        let mut slot = rounded.wrapping_sub(group.start) >> shift(of.group);
        if slot > LAST {
            let less = rounded.wrapping_sub(group.start).wrapping_sub(LAST << shift(of.group));
            (of.start, of.finish) = (of.start.wrapping_sub(less), of.finish.wrapping_sub(less));
            slot = LAST;
        }
        let place = (group.front + slot as usize) % SLOTS;
        of.next = group.slots[place].replace(number);
        group.full |= 1 << slot;
    }

    /// Takes an aggregate out of its slot (`qfq_slot_remove`).
    fn remove(&mut self, number: usize) {
        let Aggregate { start, group, next, .. } = self.aggregates[number];
        let of = &mut self.groups[group];
        let slot = round(start, shift(group)).wrapping_sub(of.start) >> shift(group);
        let place = of.front.wrapping_add(slot as usize) % SLOTS;
        let mut last = None;
        let mut here = of.slots[place];
        while let Some(other) = here.filter(|&other| other != number) {
            (last, here) = (Some(other), self.aggregates[other].next);
        }
        match last {
            Some(last) => self.aggregates[last].next = next,
            None => of.slots[place] = next,
        }
        if of.slots[place].is_none() {
            of.full &= !1u64.wrapping_shl(slot as u32);
        }
    }

    /// An aggregate has no packets any more (`qfq_deactivate_agg`).
    fn deactivate(&mut self, number: usize) {
        if self.serving == Some(number) {
            self.aggregates[number].charge();
            self.serving = self.choose();
            return;
        }
        self.aggregates[number].finish = self.aggregates[number].start;
        self.remove(number);
        let group = self.aggregates[number].group;
        if self.groups[group].full == 0 {
            self.clear(group, &[IR, EB, IB]);
            let below = (1u64 << group) - 1;
            // The last group that was ready blocked those between it and the one before it.
            if from(self.bitmaps[ER], group) == 1 << group {
                let before = self.bitmaps[ER] & below;
                let mask = before.checked_ilog2().map_or(u64::MAX, |last| u64::MAX << last);
                self.ready(mask);
            }
            self.clear(group, &[ER]);
        } else if self.groups[group].head().is_none()
            && let Some(front) = self.groups[group].scan()
        {
            let rounded = round(self.aggregates[front].start, shift(group));
            if self.groups[group].start != rounded {
                self.clear(group, &[ER, IR, EB, IB]);
                self.place(group, rounded);
            }
        }
    }

    /// Takes the next aggregate to serve out of its group (`qfq_choose_next_agg`).
    fn choose(&mut self) -> Option<usize> {
        self.update_eligible();
        self.then = self.now;
        let group = first(self.bitmaps[ER])?;
        let finish = self.groups[group].finish;
        let of = &mut self.groups[group];
        let number = of.head()?;
        of.slots[of.front] = self.aggregates[number].next;
        if of.head().is_none() {
            of.full &= !1;
        }
        match of.scan() {
            None => self.clear(group, &[ER]),
            Some(front) => {
                let rounded = round(self.aggregates[front].start, shift(group));
                if self.groups[group].start == rounded {
                    return Some(number);
                }
                self.clear(group, &[ER]);
                self.place(group, rounded);
            }
        }
        self.unblock(group, finish);
        Some(number)
    }

    /// The class that an aggregate serves next, and the length of its next packet.
    fn next_of(&self, number: usize) -> Option<(usize, u32)> {
        let &class = self.aggregates[number].active().first()?;
        Some((class, self.leaves.peek(class).map_or(0, |entry| entry.packet.wire_len())))
    }

    /// The class of the next packet: another aggregate is in service if this one has no packets, or
    /// no budget for the next one.
    fn next(&mut self) -> Option<usize> {
        let number = self.serving?;
        if let Some((class, length)) = self.next_of(number)
            && length <= self.aggregates[number].budget
        {
            return Some(class);
        }
        let of = &mut self.aggregates[number];
        of.charge();
        of.recharge();
        if of.actives > 0 {
            let finish = of.finish;
            self.begin(number, finish);
            self.schedule(number);
        }
        self.serving = self.choose();
        self.next_of(self.serving?).map(|(class, _)| class)
    }

    /// A packet of a class has left (`agg_dequeue`, and the end of `qfq_dequeue`).
    fn served(&mut self, class: usize, length: u32) {
        let waits = self.leaves.peek(class).map(|entry| entry.packet.wire_len());
        let is_empty = self.leaves.len(class) == 0;
        let member = &mut self.members[class];
        let of = &mut self.aggregates[member.aggregate];
        member.deficit = member.deficit.wrapping_sub_unsigned(length);
        if is_empty {
            member.is_active = false;
            of.remove(class);
        } else if waits.is_some_and(|next| member.has_too_little(next)) {
            member.deficit = member.deficit.wrapping_add_unsigned(of.lmax);
            of.rotate();
        }
        // Where `maxpkt` has become less than what waits.
        of.budget = of.budget.saturating_sub(length);
        self.now = self.now.wrapping_add(u64::from(length) * u64::from(self.inverse));
        if self.leaves.books.backlog().packets == 0 {
            of.charge();
            of.recharge();
            self.serving = None;
        }
    }
}

impl<P: Queued + Send, Q: LeafSpec + Send> QueueDisc<P> for Qfq<P, Q> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        let Some(class) = self.leaves.classify(&packet) else {
            return self.leaves.enqueue_direct(now, packet, self.config.direct_qlen, drops);
        };
        let length = packet.wire_len();
        let Aggregate { weight, lmax, .. } = self.aggregates[self.members[class].aggregate];
        if length > lmax {
            if length > *LENGTHS.end() {
                return self.leaves.books.refuse(packet, DropReason::Limit, drops);
            }
            self.change_class(class, QfqClass { weight, maxpkt: length });
        }
        self.leaves.enqueue(class, now, packet, drops);
        let number = self.members[class].aggregate;
        if self.leaves.len(class) == 0 {
            if self.members[class].is_active {
                self.deactivate_class(class);
            }
        } else if self.members[class].is_active {
            // It has come before the others of its class, and the class does not have enough for it.
            let head = self.leaves.peek(class).filter(|head| head.enqueued_at == now);
            let is_head = head.is_some_and(|head| head.packet.wire_len() == length);
            let of = &mut self.aggregates[number];
            if is_head && of.active().first() == Some(&class) && self.members[class].has_too_little(length) {
                of.rotate();
            }
        } else {
            let of = &mut self.aggregates[number];
            self.members[class].deficit = of.lmax as i32;
            self.members[class].is_active = true;
            of.push(class);
            if of.actives == 1 && self.serving != Some(number) {
                self.activate(number);
            }
        }
    }

    fn looks(&self) -> bool {
        self.leaves.looks()
    }

    fn look(&mut self, headers: Headers<'_>) {
        self.leaves.look(headers);
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        if let Some(entry) = self.leaves.dequeue_direct() {
            return Dequeue::Packet(entry);
        }
        while self.leaves.books.backlog().packets > 0 {
            let Some(class) = self.next() else { break };
            match self.leaves.dequeue(class, now, drops) {
                Dequeue::Packet(entry) => {
                    self.served(class, entry.packet.wire_len());
                    return Dequeue::Packet(entry);
                }
                Dequeue::Empty if self.leaves.len(class) == 0 => self.deactivate_class(class),
                other => return other,
            }
        }
        Dequeue::Empty
    }

    /// Other parameters at run time (`qfq_change_class`): a class with another weight or longest
    /// packet moves to another aggregate, and what waits stays.
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let mut config = parameters::<QfqConfig<Q>>(config)?.clone();
        tree::take_over(&mut config.classes, &self.config.classes)?;
        valid(config.problem())?;
        for class in 0..config.classes.len() {
            let settings = config.classes[class].settings;
            if settings != self.config.classes[class].settings {
                self.change_class(class, settings);
            }
        }
        self.config = config;
        self.leaves.set_filters(&self.config.classes, self.config.default.as_ref());
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let of_serving = || self.leaves.peek(self.next_of(self.serving?)?.0);
        self.leaves.peek_direct().or_else(of_serving).or_else(|| self.leaves.peek_any())
    }

    fn books(&self) -> &Books {
        &self.leaves.books
    }

    /// Those of the class concerned last.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        if let Some(Member { aggregate, deficit, .. }) = self.members.get(self.leaves.touched()) {
            see("deficit", Variable::Bytes((*deficit).into()));
            see("budget", Variable::Bytes(self.aggregates[*aggregate].budget.into()));
        }
        self.leaves.variables(see);
    }

    fn classes(&self, see: &mut dyn FnMut(ClassState<'_>)) {
        self.leaves.classes(&self.config.classes, |_| None, see);
    }

    fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        self.leaves.purge(now, drops);
    }
}

#[cfg(test)]
mod tests;
