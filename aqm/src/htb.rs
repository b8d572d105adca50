//! HTB, the hierarchical token bucket: classes in a tree, each with a rate of its own and a ceiling
//! up to which it borrows from the classes above it.
//!
//! A class has tokens for its rate (`burst`) and for its ceiling (`cburst`). While it has both, it
//! may send; without tokens for its rate it may borrow from its parent; without tokens for the
//! ceiling it waits. A leaf sends at the lowest level of an ancestor that may send, itself
//! included. At the same level the lowest `prio` comes first, and leaves of one priority take
//! turns by deficit round robin, a `quantum` each. A packet takes tokens for the ceiling from the
//! leaf and all classes above it, and tokens for the rate from the class that lends and those
//! above. Packets without a class go first, unshaped.
//!
//! # Source
//! Linux 6.1 `net/sched/sch_htb.c`; names and defaults of tc-htb(8) and iproute2's `tc/q_htb.c`;
//! M. Devera, "Hierarchical token bucket theory" (2002).
//!
//! # Departures
//! - Filters are conditions of the leaves, in the order of the classes, which is also that of their
//!   numbers in the round robin. Filters of inner classes do not exist.
//! - Times of tokens are exact nanoseconds; Linux multiplies by a rounded reciprocal of the rate, and
//!   tc gives the buckets in ticks of 64 ns.
//! - All events that are due happen before a packet leaves; Linux stops after two jiffies.
//! - The statistic `giants` is left out: since rates have no tables, Linux does not count it.
//! - `htb_hysteresis` is off, as is its default; hardware offload and rate estimators do not exist.
//! - A leaf that holds its packets back (`tbf`, `fq`) is asked again at its own time; Linux asks when
//!   the leaf's own timer fires. With no event due the tree is asked after 5 s; Linux asks after 1 s.
//! - A ceiling below the rate and a `prio` above 7 are refused; Linux accepts the first and takes 7.
//! - `default` is a leaf, or the parameters are refused; Linux sends the packets without a class.
//! - At run time the settings of classes change, not their tree, their queues and their flows.
//! - `peek` shows the packet that is likely to be next: which depends on the time.

use std::any::Any;
use std::sync::Arc;

use ackclock_units::parameter::Domain;
use ackclock_units::{Random, Rate, Span, Time, configuration};

use crate::change::{parameters, valid};
use crate::discipline::{Discipline, MAX};
use crate::tree::{self, Class, ClassNumbers, LeafSpec, Leaves};
use crate::{Books, ChangeError, ClassState, Dequeue, Drops, Entry, Headers, Overhead, QueueDisc, Queued, Variable};

const MANUAL: &str = "tc-htb(8)";
/// `TC_HTB_MAXDEPTH`.
const LEVELS: usize = 8;
/// `TC_HTB_NUMPRIO`.
const PRIORITIES: usize = 8;
/// The longest time for which tokens count (`mbuffer`), ns.
const LONGEST: i64 = 60_000_000_000;

/// Settings of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct HtbClass {
    /// The rate that it has without borrowing.
    pub rate: Rate,
    /// The rate that it has at most. Default: `rate`.
    pub ceil: Option<Rate>,
    /// Bytes that it sends at once beyond its rate. Default: those of a nanosecond, and 1600.
    pub burst: Option<u64>,
    /// Bytes that it sends at once beyond its ceiling. Default: those of a nanosecond, and 1600.
    pub cburst: Option<u64>,
    /// Bytes of a leaf's turn. Default: a second's of `rate`, divided by `r2q`, 1000
    /// to 200,000.
    pub quantum: Option<u32>,
    /// The priority of a leaf, 0 first. Default: 0.
    pub prio: u8,
    /// The lengths that take tokens (`psched_l2t_ns`); buckets and turns count bytes of the queue.
    /// Default: those in the queue.
    pub overhead: Overhead,
}

impl HtbClass {
    /// A class of this rate.
    pub fn new(rate: Rate) -> HtbClass {
        HtbClass { rate, ceil: None, burst: None, cburst: None, quantum: None, prio: 0, overhead: Overhead::default() }
    }
}

configuration! {
/// Parameters of HTB.
#[derive(Clone, Debug, PartialEq)]
pub struct HtbConfig<Q: LeafSpec> {
    /// The divisor of a class's rate that gives its quantum. Default: 10.
    pub r2q: u64 = 10 => (Domain::Whole(1, MAX, ""), MANUAL);
    /// The most packets without a class that wait. Default: 1000, the `txqueuelen` of a device.
    pub direct_qlen: u64 = 1000 => (Domain::Packets(1, MAX), MANUAL);
    /// The leaf of packets that no filter knows. Default: none, they have no class.
    pub default: Option<Arc<str>> = None;
    /// The classes. Default: none.
    pub classes: Vec<Class<HtbClass, Q>> = Vec::new();
} problem
}

impl<Q: LeafSpec> Discipline for HtbConfig<Q> {
    fn marks(&self) -> bool {
        self.classes.iter().any(|class| class.queue.marks())
    }
}

impl<Q: LeafSpec> HtbConfig<Q> {
    /// The problem with these parameters, if there is one.
    pub fn problem(&self) -> Option<&'static str> {
        if let Some(problem) = tree::problem(&self.classes, self.default.as_ref()) {
            return Some(problem);
        }
        let settings = || self.classes.iter().map(|class| &class.settings);
        if self.r2q == 0 || self.direct_qlen == 0 {
            Some("r2q and direct_qlen must not be zero")
        } else if settings().any(|class| usize::from(class.prio) >= PRIORITIES) {
            Some("prio is from 0 to 7")
        } else if settings().any(|class| class.quantum == Some(0) || class.burst == Some(0) || class.cburst == Some(0))
        {
            Some("quantum, burst and cburst must not be zero")
        } else if settings().any(|class| class.ceil.is_some_and(|ceil| ceil < class.rate)) {
            Some("ceil must be at least rate")
        } else if levels(&tree::parents(&self.classes).unwrap_or_default()).is_none() {
            Some("there are at most seven classes above a leaf")
        } else {
            None
        }
    }
}

/// The level of each class: 0 for a leaf, 7 at the top, one less below another. `None` if the tree
/// is too deep.
fn levels(parents: &[Option<usize>]) -> Option<Vec<usize>> {
    let depth = |class: usize| std::iter::successors(parents[class], |&above| parents[above]).count();
    let level = |class| if tree::is_leaf(parents, class) { Some(0) } else { (LEVELS - 1).checked_sub(depth(class)) };
    let levels = (0..parents.len()).map(level).collect::<Option<Vec<usize>>>()?;
    let is_right = |(class, level): (usize, &usize)| *level > 0 || tree::is_leaf(parents, class);
    levels.iter().enumerate().all(is_right).then_some(levels)
}

/// The transmission time of `bytes` in nanoseconds (`psched_l2t_ns`).
#[inline]
fn time_of(rate: Rate, bytes: u64) -> i64 {
    // Below 2.3 GB a division of 64 bits suffices.
    let nanos = match bytes.checked_mul(8_000_000_000) {
        Some(product) => u128::from(product / rate.as_bps()),
        None => u128::from(bytes) * 8_000_000_000 / u128::from(rate.as_bps()),
    };
    nanos.min(i64::MAX as u128 / 4) as i64
}

/// The tokens of a class (`htb_cmode`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ClassMode {
    CantSend,
    MayBorrow,
    CanSend,
}

/// Classes that take turns (`htb_prio`).
#[derive(Clone, Debug)]
struct FeedList {
    classes: ClassNumbers,
    /// The class whose turn it is; `None` past the last one.
    turn: Option<usize>,
    /// The class that had the turn and left.
    last: Option<usize>,
}

impl FeedList {
    fn new(classes: usize) -> FeedList {
        FeedList { classes: ClassNumbers::below(classes), turn: None, last: None }
    }

    /// The turn passes to the next class.
    fn pass(&mut self) {
        self.turn = self.turn.and_then(|turn| self.classes.from(turn + 1));
    }
}

#[derive(Debug)]
struct Node {
    parent: Option<usize>,
    level: usize,
    prio: usize,
    quantum: i64,
    rate: Rate,
    ceil: Rate,
    overhead: Overhead,
    /// Sizes of the buckets, and their tokens, in nanoseconds of transmission.
    buffer: i64,
    cbuffer: i64,
    tokens: i64,
    ctokens: i64,
    /// The time of the tokens (`t_c`).
    counted: Time,
    mode: ClassMode,
    /// The priorities at which it has packets, a bit each (`prio_activity`).
    activity: u8,
    /// Its entry among the events of its level.
    event: Option<(Time, u64)>,
    deficit: [i64; LEVELS],
    /// By priority, for a class above others.
    feeds: Vec<FeedList>,
    lends: u64,
    borrows: u64,
    overlimits: u64,
}

impl Node {
    /// The time that passed since the tokens were counted.
    fn passed(&self, now: Time) -> i64 {
        i64::try_from(now.since(self.counted).as_nanos()).unwrap_or(LONGEST).min(LONGEST)
    }

    /// The mode after another time, and when it changes (`htb_class_mode`).
    fn mode_after(&self, passed: i64) -> (ClassMode, i64) {
        let ctokens = self.ctokens + passed;
        let tokens = self.tokens + passed;
        if ctokens < 0 {
            (ClassMode::CantSend, -ctokens)
        } else if tokens >= 0 {
            (ClassMode::CanSend, 0)
        } else {
            (ClassMode::MayBorrow, -tokens)
        }
    }
}

/// Tokens after a time and a packet (`htb_accnt_tokens`).
fn spend(tokens: i64, passed: i64, size: i64, cost: i64) -> i64 {
    let left = (tokens + passed).min(size) - cost;
    if left <= -LONGEST { 1 - LONGEST } else { left }
}

/// The classes that wait for tokens at one level, the next one last.
#[derive(Debug, Default)]
struct Events {
    waiting: Vec<(Time, u64, usize)>,
}

/// HTB.
#[derive(Debug)]
pub struct Htb<P, Q> {
    config: HtbConfig<Q>,
    nodes: Vec<Node>,
    /// The classes that may send, by level and priority, and a bit for each priority with any.
    rows: Vec<[FeedList; PRIORITIES]>,
    row_masks: [u8; LEVELS],
    events: [Events; LEVELS],
    /// Events so far, which gives those of one time an order.
    number: u64,
    overlimits: u64,
    leaves: Leaves<P>,
}

impl<P: Queued + Send + 'static, Q: LeafSpec> Htb<P, Q> {
    /// Empty classes with full buckets; leaves draw from streams of `random`.
    ///
    /// # Panics
    /// If the parameters have a [`HtbConfig::problem`].
    pub fn new(config: HtbConfig<Q>, random: Random) -> Htb<P, Q> {
        if let Some(problem) = config.problem() {
            panic!("{problem}");
        }
        let parents = tree::parents(&config.classes).unwrap_or_default();
        let levels = levels(&parents).unwrap_or_default();
        let count = config.classes.len();
        let node = |(class, level): (usize, usize)| Node {
            parent: parents[class],
            level,
            prio: 0,
            quantum: 0,
            rate: config.classes[class].settings.rate,
            ceil: config.classes[class].settings.rate,
            overhead: Overhead::default(),
            buffer: 0,
            cbuffer: 0,
            tokens: 0,
            ctokens: 0,
            counted: Time::ZERO,
            mode: ClassMode::CanSend,
            activity: 0,
            event: None,
            deficit: [0; LEVELS],
            feeds: if level > 0 { vec![FeedList::new(count); PRIORITIES] } else { Vec::new() },
            lends: 0,
            borrows: 0,
            overlimits: 0,
        };
        let nodes = levels.into_iter().enumerate().map(node).collect();
        let row = || std::array::from_fn(|_| FeedList::new(count));
        let mut htb = Htb {
            leaves: Leaves::new(&config.classes, config.default.as_ref(), &random),
            nodes,
            rows: (0..LEVELS).map(|_| row()).collect(),
            row_masks: [0; LEVELS],
            events: std::array::from_fn(|_| Events { waiting: Vec::with_capacity(count) }),
            number: 0,
            overlimits: 0,
            config,
        };
        htb.configure();
        for node in &mut htb.nodes {
            (node.tokens, node.ctokens) = (node.buffer, node.cbuffer);
        }
        htb
    }
}

impl<P: Queued, Q: LeafSpec> Htb<P, Q> {
    fn configure(&mut self) {
        for (node, Class { settings, .. }) in self.nodes.iter_mut().zip(&self.config.classes) {
            let ceil = settings.ceil.unwrap_or(settings.rate);
            // `htb_parse_class_opt`: a byte in 1e9 of the rate, and an MTU of 1600.
            let bytes = |given: Option<u64>, rate: Rate| given.unwrap_or(rate.as_bps() / 8_000_000_000 + 1600);
            (node.rate, node.ceil, node.overhead) = (settings.rate, ceil, settings.overhead);
            // Without the overhead (`tc_calc_xmittime`).
            node.buffer = time_of(settings.rate, bytes(settings.burst, settings.rate));
            node.cbuffer = time_of(ceil, bytes(settings.cburst, ceil));
            let quantum = (settings.rate.as_bps() / 8 / self.config.r2q).clamp(1000, 200_000);
            node.quantum = settings.quantum.map_or(quantum as i64, i64::from);
            node.prio = settings.prio.into();
        }
    }

    /// The classes of which a class is one while it has this mode (`htb_activate_prios`).
    fn activate_prios(&mut self, mut class: usize) {
        let mut mask = self.nodes[class].activity;
        while self.nodes[class].mode == ClassMode::MayBorrow
            && mask != 0
            && let Some(parent) = self.nodes[class].parent
        {
            for prio in bits(mask) {
                let feed = &mut self.nodes[parent].feeds[prio];
                if !feed.classes.is_empty() {
                    // The parent is where it has to be for this priority.
                    mask &= !(1 << prio);
                }
                feed.classes.insert(class);
            }
            self.nodes[parent].activity |= mask;
            class = parent;
        }
        if self.nodes[class].mode == ClassMode::CanSend && mask != 0 {
            let level = self.nodes[class].level;
            self.row_masks[level] |= mask;
            bits(mask).for_each(|prio| self.rows[level][prio].classes.insert(class));
        }
    }

    /// The same undone (`htb_deactivate_prios`).
    fn deactivate_prios(&mut self, mut class: usize) {
        let mut mask = self.nodes[class].activity;
        while self.nodes[class].mode == ClassMode::MayBorrow
            && mask != 0
            && let Some(parent) = self.nodes[class].parent
        {
            let mut emptied = 0;
            for prio in bits(mask) {
                let feed = &mut self.nodes[parent].feeds[prio];
                if feed.turn == Some(class) {
                    (feed.last, feed.turn) = (Some(class), None);
                }
                feed.classes.remove(class);
                emptied |= u8::from(feed.classes.is_empty()) << prio;
            }
            mask = emptied;
            self.nodes[parent].activity &= !mask;
            class = parent;
        }
        if self.nodes[class].mode == ClassMode::CanSend && mask != 0 {
            let level = self.nodes[class].level;
            for prio in bits(mask) {
                let row = &mut self.rows[level][prio];
                if row.turn == Some(class) {
                    row.pass();
                }
                row.classes.remove(class);
                self.row_masks[level] &= !(u8::from(row.classes.is_empty()) << prio);
            }
        }
    }

    /// A leaf has packets.
    fn activate(&mut self, class: usize) {
        let node = &mut self.nodes[class];
        if node.activity == 0 {
            node.activity = 1 << node.prio;
            self.activate_prios(class);
        }
    }

    /// A leaf has none.
    fn deactivate(&mut self, class: usize) {
        if self.nodes[class].activity != 0 {
            self.deactivate_prios(class);
            self.nodes[class].activity = 0;
        }
    }

    /// Changes the mode of a class to that after another time, and returns when the next change is
    /// due (`htb_change_class_mode`).
    fn change_mode(&mut self, class: usize, passed: i64) -> i64 {
        let node = &mut self.nodes[class];
        let (mode, wait) = node.mode_after(passed);
        if mode == node.mode {
            return wait;
        }
        if mode == ClassMode::CantSend {
            node.overlimits += 1;
            self.overlimits += 1;
        }
        if node.activity == 0 {
            node.mode = mode;
            return wait;
        }
        if node.mode != ClassMode::CantSend {
            self.deactivate_prios(class);
        }
        self.nodes[class].mode = mode;
        if mode != ClassMode::CantSend {
            self.activate_prios(class);
        }
        wait
    }

    /// A class waits for its next change (`htb_add_to_wait_tree`).
    fn await_change(&mut self, class: usize, now: Time, wait: i64) {
        self.number += 1;
        let at = now + Span::from_nanos(wait.max(1).unsigned_abs());
        let node = &mut self.nodes[class];
        node.event = Some((at, self.number));
        let waiting = &mut self.events[node.level].waiting;
        let place = waiting.partition_point(|&(time, number, _)| (time, number) > (at, self.number));
        waiting.insert(place, (at, self.number, class));
    }

    fn forget_change(&mut self, class: usize) {
        let node = &mut self.nodes[class];
        let Some(event) = node.event.take() else { return };
        let waiting = &mut self.events[node.level].waiting;
        let place = waiting.partition_point(|&(time, number, _)| (time, number) > event);
        waiting.remove(place);
    }

    /// Applies the changes of a level that are due, and returns the time of the next
    /// (`htb_do_events`).
    fn do_events(&mut self, level: usize, now: Time) -> Option<Time> {
        loop {
            let &(at, _, class) = self.events[level].waiting.last()?;
            if at > now {
                return Some(at);
            }
            self.events[level].waiting.pop();
            self.nodes[class].event = None;
            let passed = self.nodes[class].passed(now);
            let wait = self.change_mode(class, passed);
            if self.nodes[class].mode != ClassMode::CanSend {
                self.await_change(class, now, wait);
            }
        }
    }

    fn feed(&mut self, above: Option<usize>, level: usize, prio: usize) -> &mut FeedList {
        match above {
            Some(class) => &mut self.nodes[class].feeds[prio],
            None => &mut self.rows[level][prio],
        }
    }

    /// The leaf whose turn it is (`htb_lookup_leaf`).
    fn lookup(&mut self, level: usize, prio: usize) -> Option<usize> {
        if self.rows[level][prio].classes.is_empty() {
            return None;
        }
        // The class above each of the feeds on the way down; the row has none.
        let mut path = [None; LEVELS];
        let mut depth = 0;
        loop {
            let feed = self.feed(path[depth], level, prio);
            if let (None, Some(last)) = (feed.turn, feed.last) {
                feed.turn = feed.classes.from(last);
            }
            feed.last = None;
            let turn = feed.turn;
            if turn.is_none() {
                // All had their turn: the first has the next one, and this class's turn passes.
                feed.turn = feed.classes.from(0);
            }
            match turn {
                None if depth > 0 => {
                    depth -= 1;
                    self.feed(path[depth], level, prio).pass();
                }
                None => {}
                Some(class) if self.nodes[class].level == 0 => return Some(class),
                Some(class) => {
                    depth += 1;
                    path[depth] = Some(class);
                }
            }
        }
    }

    /// The turn of a leaf that was served at a level is over.
    fn pass_turn(&mut self, class: usize, level: usize, prio: usize) {
        let above = if level > 0 { self.nodes[class].parent } else { None };
        self.feed(above, 0, prio).pass();
    }

    /// A packet of a leaf at this level and priority (`htb_dequeue_tree`). `held` is the earliest
    /// time that a leaf gives for one.
    fn dequeue_tree(
        &mut self,
        now: Time,
        (level, prio): (usize, usize),
        held: &mut Time,
        drops: &mut Drops<P>,
    ) -> Option<Entry<P>> {
        let mut start = self.lookup(level, prio)?;
        let mut class = start;
        let entry = loop {
            if self.leaves.len(class) == 0 {
                self.deactivate(class);
                let next = self.lookup(level, prio)?;
                if class == start {
                    start = next;
                }
                class = next;
                continue;
            }
            match self.leaves.dequeue(class, now, drops) {
                Dequeue::Packet(entry) => break entry,
                Dequeue::NotBefore(at) => *held = at.min(*held),
                Dequeue::Empty => {}
            }
            self.pass_turn(class, level, prio);
            class = self.lookup(level, prio)?;
            if class == start {
                return None;
            }
        };
        let bytes = entry.packet.wire_len();
        let node = &mut self.nodes[class];
        node.deficit[level] -= i64::from(bytes);
        if node.deficit[level] < 0 {
            node.deficit[level] += node.quantum;
            self.pass_turn(class, level, prio);
        }
        if self.leaves.len(class) == 0 {
            self.deactivate(class);
        }
        self.charge(class, level, bytes, now);
        Some(entry)
    }

    /// Takes the tokens for a packet of a leaf, which the class of this level lends
    /// (`htb_charge_class`).
    fn charge(&mut self, leaf: usize, level: usize, bytes: u32, now: Time) {
        let mut next = Some(leaf);
        while let Some(class) = next {
            let node = &mut self.nodes[class];
            let passed = node.passed(now);
            let length = u64::from(node.overhead.of(bytes));
            if node.level >= level {
                node.lends += u64::from(node.level == level);
                node.tokens = spend(node.tokens, passed, node.buffer, time_of(node.rate, length));
            } else {
                node.borrows += 1;
                node.tokens += passed;
            }
            node.ctokens = spend(node.ctokens, passed, node.cbuffer, time_of(node.ceil, length));
            node.counted = now;
            next = node.parent;
            let before = node.mode;
            let wait = self.change_mode(class, 0);
            let mode = self.nodes[class].mode;
            if before != mode {
                if before != ClassMode::CanSend {
                    self.forget_change(class);
                }
                if mode != ClassMode::CanSend {
                    self.await_change(class, now, wait);
                }
            }
        }
    }
}

/// The numbers of the bits that are set.
fn bits(mut mask: u8) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let bit = mask.trailing_zeros();
        mask &= mask.wrapping_sub(1);
        (bit < 8).then_some(bit as usize)
    })
}

impl<P: Queued + Send, Q: LeafSpec + Send> QueueDisc<P> for Htb<P, Q> {
    fn enqueue(&mut self, now: Time, packet: P, drops: &mut Drops<P>) {
        if let Some(class) = self.leaves.classify(&packet) {
            self.leaves.enqueue(class, now, packet, drops);
            if self.leaves.len(class) > 0 {
                self.activate(class);
            }
        } else {
            self.leaves.enqueue_direct(now, packet, self.config.direct_qlen, drops);
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
        if self.leaves.books.backlog().packets == 0 {
            return Dequeue::Empty;
        }
        let mut next = now + Span::from_secs(5);
        for level in 0..LEVELS {
            if let Some(event) = self.do_events(level, now) {
                next = next.min(event);
            }
            for prio in bits(self.row_masks[level]) {
                if let Some(entry) = self.dequeue_tree(now, (level, prio), &mut next, drops) {
                    return Dequeue::Packet(entry);
                }
            }
        }
        if self.leaves.books.backlog().packets == 0 { Dequeue::Empty } else { Dequeue::NotBefore(next) }
    }

    /// Other parameters at run time (`htb_change_class`): tokens and turns stay, and so do packets
    /// beyond a new limit. A leaf has its new priority when it was empty.
    fn change(&mut self, _now: Time, config: &dyn Any, _drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let mut config = parameters::<HtbConfig<Q>>(config)?.clone();
        tree::take_over(&mut config.classes, &self.config.classes)?;
        valid(config.problem())?;
        self.config = config;
        self.configure();
        self.leaves.set_filters(&self.config.classes, self.config.default.as_ref());
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let first = self.rows.iter().flatten().find_map(|row| row.turn.or_else(|| row.classes.from(0)));
        let leaf = first.and_then(|mut class| {
            while self.nodes[class].level > 0 {
                let feed = self.nodes[class].feeds.iter().find(|feed| !feed.classes.is_empty())?;
                class = feed.turn.or_else(|| feed.classes.from(0))?;
            }
            self.leaves.peek(class)
        });
        self.leaves.peek_direct().or(leaf).or_else(|| self.leaves.peek_any())
    }

    fn books(&self) -> &Books {
        &self.leaves.books
    }

    /// Those of the discipline and of the class concerned last, as `tc -s` names them.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        see("overlimits", Variable::Count(self.overlimits));
        if let Some(node) = self.nodes.get(self.leaves.touched()) {
            see("lended", Variable::Count(node.lends));
            see("borrowed", Variable::Count(node.borrows));
            see("tokens", Variable::Bytes(node.tokens as f64 * node.rate.as_bps() as f64 / 8e9));
            see("ctokens", Variable::Bytes(node.ctokens as f64 * node.ceil.as_bps() as f64 / 8e9));
        }
        self.leaves.variables(see);
    }

    fn classes(&self, see: &mut dyn FnMut(ClassState<'_>)) {
        self.leaves.classes(&self.config.classes, |class| Some(class.rate), see);
    }

    fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        self.leaves.purge(now, drops);
    }
}

#[cfg(test)]
mod tests;
