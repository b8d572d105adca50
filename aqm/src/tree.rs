//! Classes in a tree, with another discipline in each leaf: the part of HTB, HFSC and QFQ that is no
//! scheduler.
//!
//! A packet belongs to the first leaf, in the order of the classes, whose filter it passes; to the
//! default class if there is none.

use std::any::Any;
use std::fmt::Debug;
use std::sync::Arc;

use ackclock_units::parameter::Configurable;
use ackclock_units::{Random, Rate, Time};

use crate::books::Books;
use crate::change::fixed;
use crate::ring::Ring;
use crate::{
    Backlog, ChangeError, ClassState, Counters, Dequeue, DropReason, Dropped, Drops, Entry, Headers, QueueDisc, Queued,
    Variable,
};

/// The most classes.
pub(crate) const MAX_CLASSES: usize = 1000;

/// A discipline for the leaf of a tree. The tree knows no discipline itself, since the table of
/// disciplines contains trees.
pub trait LeafSpec: Configurable + Clone + Debug + PartialEq + 'static {
    /// The discipline of a class that names none.
    fn plain() -> Self;
    /// Returns `true` if it ever marks a packet.
    fn marks(&self) -> bool;
    /// Returns `true` if it is a tree of classes itself, or a series.
    fn is_tree(&self) -> bool;
    /// Returns `true` if it is a series.
    fn is_series(&self) -> bool;
    /// Returns `true` if it may hold packets back while a link could send them.
    fn holds_back(&self) -> bool;
    /// The name of the discipline.
    fn name(&self) -> &'static str;
    /// The configuration, for [`QueueDisc::change`].
    fn config(&self) -> &dyn Any;
    /// An empty queue.
    fn build<P: Queued + Send + 'static>(&self, random: Random) -> Box<dyn QueueDisc<P>>;
}

/// A class with a queue of kind `Q`, and the settings of its scheduler.
#[derive(Clone, Debug, PartialEq)]
pub struct Class<S, Q> {
    /// Its name.
    pub name: Arc<str>,
    /// The class above it; `None` at the top.
    pub parent: Option<Arc<str>>,
    /// The packets of a leaf.
    pub filter: Filter,
    /// The discipline of a leaf.
    pub queue: Q,
    /// The settings of its scheduler.
    pub settings: S,
}

/// The packets that belong to a class: those that meet every condition. Without a condition there
/// are none.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Filter {
    /// The codepoints, a bit each; 0: any.
    pub dscp: u64,
    /// The names of flows; none: any flow.
    pub flows: Vec<Arc<str>>,
    /// The hashes of these flows, sorted ([`Queued::flow_hash`]): whoever builds the queue sets
    /// them ([`crate::QueueSpec::resolve`]).
    pub hashes: Vec<u64>,
    /// The least and the greatest length in bytes.
    pub length: Option<(u32, u32)>,
    /// Pure ACKs, or all others.
    pub acks: Option<bool>,
}

impl Filter {
    fn is_empty(&self) -> bool {
        self.dscp == 0 && self.flows.is_empty() && self.length.is_none() && self.acks.is_none()
    }

    fn passes(&self, packet: &impl Queued) -> bool {
        (self.dscp == 0 || self.dscp >> (packet.dscp() & 63) & 1 == 1)
            && (self.flows.is_empty() || self.hashes.binary_search(&packet.flow_hash()).is_ok())
            && self.length.is_none_or(|(least, most)| (least..=most).contains(&packet.wire_len()))
            && self.acks.is_none_or(|acks| acks == packet.is_pure_ack())
    }

    /// Sets the hashes of the flows, of which `of` knows the names.
    pub(crate) fn resolve(&mut self, of: &dyn Fn(&str) -> Vec<u64>) {
        self.hashes = self.flows.iter().flat_map(|name| of(name)).collect();
        self.hashes.sort_unstable();
        self.hashes.dedup();
    }
}

/// The place of the class above each; the problem with a tree that is none.
pub(crate) fn parents<S, Q>(classes: &[Class<S, Q>]) -> Result<Vec<Option<usize>>, &'static str> {
    if classes.len() > MAX_CLASSES {
        return Err("there are at most 1000 classes");
    }
    let place = |name: &Arc<str>| classes.iter().position(|class| class.name == *name);
    let mut parents = Vec::with_capacity(classes.len());
    for (number, class) in classes.iter().enumerate() {
        if place(&class.name) != Some(number) {
            return Err("two classes have the same name");
        }
        let parent = class.parent.as_ref().map(place);
        if parent == Some(None) {
            return Err("a `parent` is no class");
        }
        parents.push(parent.flatten());
    }
    for number in 0..classes.len() {
        let mut above = Some(number);
        for _ in 0..=classes.len() {
            above = above.and_then(|class| parents[class]);
        }
        if above.is_some() {
            return Err("a class is above itself");
        }
    }
    Ok(parents)
}

/// The place of each class that is no other's parent.
pub(crate) fn is_leaf(parents: &[Option<usize>], class: usize) -> bool {
    !parents.contains(&Some(class))
}

/// The names of classes, and the queues of the leaves.
pub(crate) fn names<S, Q>(classes: &[Class<S, Q>]) -> impl Iterator<Item = (&str, Option<&Q>)> {
    classes.iter().map(|class| {
        let is_leaf = classes.iter().all(|other| other.parent.as_ref() != Some(&class.name));
        (&*class.name, is_leaf.then_some(&class.queue))
    })
}

/// The problem with a tree and its default class, if there is one.
pub(crate) fn problem<S, Q: LeafSpec>(classes: &[Class<S, Q>], default: Option<&Arc<str>>) -> Option<&'static str> {
    let parents = match parents(classes) {
        Ok(parents) => parents,
        Err(problem) => return Some(problem),
    };
    for (number, class) in classes.iter().enumerate() {
        if !is_leaf(&parents, number) && (!class.filter.is_empty() || class.queue != Q::plain()) {
            return Some("a class above others has neither a filter nor a queue");
        }
        if class.queue.is_tree() {
            return Some("the queue of a class is no tree of classes");
        }
        if let Some(problem) = class.queue.problem() {
            return Some(problem);
        }
    }
    let known = default.map(|default| classes.iter().position(|class| class.name == *default));
    match known {
        Some(None) => Some("`default` is no class"),
        Some(Some(class)) if !is_leaf(&parents, class) => Some("`default` is a class above others"),
        _ => None,
    }
}

/// The classes in the place of others while packets wait: they have the same tree and queues, and
/// name the same flows, whose hashes they get.
pub(crate) fn take_over<S, Q: LeafSpec>(classes: &mut [Class<S, Q>], of: &[Class<S, Q>]) -> Result<(), ChangeError> {
    let same = |(one, other): (&Class<S, Q>, &Class<S, Q>)| {
        (&one.name, &one.parent, &one.queue, &one.filter.flows)
            == (&other.name, &other.parent, &other.queue, &other.filter.flows)
    };
    fixed("the tree of classes", classes.len() != of.len() || !classes.iter().zip(of).all(same))?;
    for (class, old) in classes.iter_mut().zip(of) {
        class.filter.hashes.clone_from(&old.filter.hashes);
    }
    Ok(())
}

/// The leaves with their disciplines, and the books of all.
#[derive(Debug)]
pub(crate) struct Leaves<P> {
    /// The class above each.
    parents: Box<[Option<usize>]>,
    /// By class; none for a class above others.
    queues: Box<[Option<Box<dyn QueueDisc<P>>>]>,
    filters: Vec<(Filter, usize)>,
    default: Option<usize>,
    /// The class that a packet came to or left last.
    touched: usize,
    looks: bool,
    /// Packets without a class, and their number so far.
    direct: Ring<Entry<P>>,
    direct_packets: u64,
    pub(crate) books: Books,
}

impl<P: Queued + Send + 'static> Leaves<P> {
    pub(crate) fn new<S, Q: LeafSpec>(
        classes: &[Class<S, Q>],
        default: Option<&Arc<str>>,
        random: &Random,
    ) -> Leaves<P> {
        let parents = parents(classes).unwrap_or_default();
        let seed = random.clone().bits();
        let queue = |(number, class): (usize, &Class<S, Q>)| {
            let random = Random::for_component(seed, number as u64, "class");
            is_leaf(&parents, number).then(|| class.queue.build(random))
        };
        let queues: Box<[Option<Box<dyn QueueDisc<P>>>]> = classes.iter().enumerate().map(queue).collect();
        let looks = queues.iter().flatten().any(|queue| queue.looks());
        let mut leaves = Leaves {
            parents: parents.into(),
            queues,
            filters: Vec::new(),
            default: None,
            touched: 0,
            looks,
            direct: Ring::new(),
            direct_packets: 0,
            books: Books::default(),
        };
        leaves.set_filters(classes, default);
        leaves
    }
}

impl<P: Queued> Leaves<P> {
    /// Packets are classified so from now on.
    pub(crate) fn set_filters<S, Q>(&mut self, classes: &[Class<S, Q>], default: Option<&Arc<str>>) {
        let filters = classes.iter().enumerate().filter(|(_, class)| !class.filter.is_empty());
        self.filters = filters.map(|(number, class)| (class.filter.clone(), number)).collect();
        self.default = default.and_then(|default| classes.iter().position(|class| class.name == *default));
    }

    /// The class of a packet; `None` if no filter knows it and there is no default.
    #[inline]
    pub(crate) fn classify(&self, packet: &P) -> Option<usize> {
        let found = self.filters.iter().find(|(filter, _)| filter.passes(packet));
        found.map(|&(_, class)| class).or(self.default)
    }

    /// The packets that wait in a class.
    #[inline]
    pub(crate) fn len(&self, class: usize) -> u64 {
        self.queues[class].as_ref().map_or(0, |queue| queue.backlog().packets)
    }

    /// A packet without a class comes, of which at most so many wait.
    pub(crate) fn enqueue_direct(&mut self, now: Time, packet: P, most: u64, drops: &mut Drops<P>) {
        if self.direct.len() as u64 >= most {
            return self.books.refuse(packet, DropReason::Limit, drops);
        }
        self.direct_packets += 1;
        self.books.admit(packet.wire_len());
        self.direct.push(Entry { packet, enqueued_at: now });
    }

    /// The next packet without a class.
    #[inline]
    pub(crate) fn dequeue_direct(&mut self) -> Option<Entry<P>> {
        let entry = self.direct.pop()?;
        self.books.take(entry.packet.wire_len());
        self.books.release(entry.packet.wire_len());
        Some(entry)
    }

    pub(crate) fn peek_direct(&self) -> Option<&Entry<P>> {
        self.direct.front()
    }

    #[cfg(test)]
    pub(crate) fn direct_packets(&self) -> u64 {
        self.direct_packets
    }

    /// The packet that a class is likely to send next.
    pub(crate) fn peek(&self, class: usize) -> Option<&Entry<P>> {
        self.queues[class].as_ref()?.peek()
    }

    /// The head of the first leaf with packets.
    pub(crate) fn peek_any(&self) -> Option<&Entry<P>> {
        self.queues.iter().flatten().find_map(|queue| queue.peek())
    }

    /// A packet comes to a leaf.
    #[inline]
    pub(crate) fn enqueue(&mut self, class: usize, now: Time, packet: P, drops: &mut Drops<P>) {
        let Some(queue) = &mut self.queues[class] else { return };
        self.touched = class;
        let (before, length, dropped) = (*queue.counters(), packet.wire_len(), drops.len());
        queue.enqueue(now, packet, drops);
        let after = queue.counters();
        if drops.len() == dropped && after.marked.packets == before.marked.packets {
            self.books.admit(length);
        } else {
            self.books.follow(&before, after);
        }
    }

    /// The next packet of a leaf.
    #[inline]
    pub(crate) fn dequeue(&mut self, class: usize, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        let Some(queue) = &mut self.queues[class] else { return Dequeue::Empty };
        let (before, dropped) = (*queue.counters(), drops.len());
        let dequeued = queue.dequeue(now, drops);
        let after = queue.counters();
        if drops.len() != dropped || after.marked.packets != before.marked.packets {
            self.books.follow(&before, after);
        } else if let Dequeue::Packet(entry) = &dequeued {
            self.books.take(entry.packet.wire_len());
            self.books.release(entry.packet.wire_len());
        }
        if matches!(dequeued, Dequeue::Packet(_)) {
            self.touched = class;
        }
        dequeued
    }

    pub(crate) fn looks(&self) -> bool {
        self.looks
    }

    /// The class of the packet is not known yet: each leaf that looks forgets what the last packet
    /// was when it is shown the next.
    pub(crate) fn look(&mut self, headers: Headers<'_>) {
        self.queues.iter_mut().flatten().filter(|queue| queue.looks()).for_each(|queue| queue.look(headers));
    }

    pub(crate) fn purge(&mut self, now: Time, drops: &mut Drops<P>) {
        while let Some(entry) = self.direct.pop() {
            drops.push(Dropped { packet: entry.packet, reason: DropReason::Purge });
        }
        self.queues.iter_mut().flatten().for_each(|queue| queue.purge(now, drops));
    }

    pub(crate) fn touched(&self) -> usize {
        self.touched
    }

    /// The number of the class that was concerned last, and the variables of its queue.
    pub(crate) fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        see("direct_packets_stat", Variable::Count(self.direct_packets));
        if let Some(Some(queue)) = self.queues.get(self.touched) {
            see("class", Variable::Count(self.touched as u64));
            see("class_packets", Variable::Count(queue.backlog().packets));
            queue.variables(&mut |name, value| {
                // A shaper in a class has tokens as well.
                if name != "tokens" {
                    see(name, value);
                }
            });
        }
    }

    /// Calls `see` for each of the classes, of which `rate` gives the rate.
    pub(crate) fn classes<S, Q>(
        &self,
        classes: &[Class<S, Q>],
        rate: impl Fn(&S) -> Option<Rate>,
        see: &mut dyn FnMut(ClassState<'_>),
    ) {
        let mut sums = vec![(Counters::default(), Backlog::default()); classes.len()];
        for (leaf, queue) in self.queues.iter().enumerate() {
            let Some(queue) = queue else { continue };
            for class in std::iter::successors(Some(leaf), |&class| self.parents[class]) {
                let (counters, backlog) = &mut sums[class];
                counters.absorb(queue.counters());
                backlog.absorb(queue.backlog());
            }
        }
        for ((class, queue), (counters, backlog)) in classes.iter().zip(&self.queues).zip(&sums) {
            let probability = queue.as_ref().and_then(|queue| queue.probe().probability);
            let rate = rate(&class.settings);
            see(ClassState { name: &class.name, rate, counters, backlog: *backlog, probability });
        }
    }
}

/// Numbers of classes in their order.
#[derive(Clone, Debug, Default)]
pub(crate) struct ClassNumbers(Box<[u64]>);

impl ClassNumbers {
    /// Room for the numbers below `most`.
    pub(crate) fn below(most: usize) -> ClassNumbers {
        ClassNumbers(vec![0; most.div_ceil(64)].into())
    }

    pub(crate) fn insert(&mut self, number: usize) {
        self.0[number / 64] |= 1 << (number % 64);
    }

    pub(crate) fn remove(&mut self, number: usize) {
        self.0[number / 64] &= !(1 << (number % 64));
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.iter().all(|&word| word == 0)
    }

    /// The first number from this one on.
    pub(crate) fn from(&self, number: usize) -> Option<usize> {
        let mut word = number / 64;
        let mut bits = self.0.get(word)? & (u64::MAX << (number % 64));
        while bits == 0 {
            word += 1;
            bits = *self.0.get(word)?;
        }
        Some(64 * word + bits.trailing_zeros() as usize)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_found_in_their_order() {
        let mut numbers = ClassNumbers::below(130);
        [129, 3, 64].into_iter().for_each(|number| numbers.insert(number));
        assert_eq!(
            [0, 3, 4, 64, 65, 129, 130, 700].map(|from| numbers.from(from)),
            [Some(3), Some(3), Some(64), Some(64), Some(129), Some(129), None, None]
        );
        [129, 3, 64].into_iter().for_each(|number| numbers.remove(number));
        assert!(numbers.is_empty() && numbers.from(0).is_none());
    }
}
