//! Flow queues, served by deficit round robin: the part that `fq_codel` and `fq_pie` share. The
//! algorithm per flow is a parameter; its state is kept with the flow's queue.
//!
//! A packet's flow hash selects its flow, with a salt that is drawn for each run as a kernel draws
//! its own when it boots: so which flows share a queue differs between repetitions. A flow sends up
//! to `quantum` bytes per turn; new flows are served before old ones (the list of new flows before
//! the list of old ones).
//!
//! # Source
//! RFC 8290 sections 4.1 and 4.2.
//!
//! # Departures
//! - The flow hash is mixed with the salt before it is scaled to the number of flows, so that any
//!   hash spreads.

use ackclock_units::{Random, Time};

use crate::books::{Books, PACKET_OVERHEAD};
use crate::slab::{Slab, SlabQueue};
use crate::{Backlog, DropReason, Drops, Entry, Queued, Variable};

/// The most flows.
const MAX_FLOWS: u32 = 65_536;
/// Flows that have a bound in common.
const BLOCK: usize = 128;
/// No flow.
const NIL: u32 = u32::MAX;

/// All flows, each with the state `S` of its law.
#[derive(Debug)]
pub(crate) struct Drr<P, S> {
    flows: Box<[DrrFlow<S>]>,
    /// Bytes that wait in each flow, apart from the rest: the search for the largest reads nothing
    /// else.
    flow_bytes: Box<[u64]>,
    /// An upper bound of the bytes of these flows, for each [`BLOCK`] of them.
    bounds: Box<[u64]>,
    new_flows: Rota,
    old_flows: Rota,
    quantum: i64,
    salt: u64,
    /// The flow that a packet came to or left last, or that lost packets at a limit.
    touched: u32,
    slab: Slab<P>,
    books: Books,
}

#[derive(Clone, Debug)]
pub(crate) struct DrrFlow<S> {
    queue: SlabQueue,
    /// The next flow of the same rota.
    next: u32,
    /// It is in a rota.
    listed: bool,
    /// Bytes that the flow may still send in this turn.
    deficit: i64,
    state: S,
}

/// Flows in the order of their turns, chained by [`DrrFlow::next`].
#[derive(Debug)]
struct Rota {
    first: u32,
    last: u32,
}

impl Rota {
    const EMPTY: Rota = Rota { first: NIL, last: NIL };

    fn first(&self) -> Option<u32> {
        (self.first != NIL).then_some(self.first)
    }

    fn indices<S>(&self, flows: &[DrrFlow<S>]) -> impl Iterator<Item = u32> + Clone {
        let mut next = self.first;
        std::iter::from_fn(move || {
            let index = next;
            next = flows.get(index as usize)?.next;
            Some(index)
        })
    }

    fn push<S>(&mut self, flows: &mut [DrrFlow<S>], index: u32) {
        flows[index as usize].next = NIL;
        flows[index as usize].listed = true;
        if self.first == NIL {
            self.first = index;
        } else {
            flows[self.last as usize].next = index;
        }
        self.last = index;
    }

    /// The first flow becomes the last one.
    #[inline(always)]
    fn rotate<S>(&mut self, flows: &mut [DrrFlow<S>]) {
        if self.first != self.last {
            flows[self.last as usize].next = self.first;
            self.last = self.first;
            self.first = std::mem::replace(&mut flows[self.last as usize].next, NIL);
        }
    }

    #[inline(always)]
    fn remove_first<S>(&mut self, flows: &mut [DrrFlow<S>]) {
        let flow = &mut flows[self.first as usize];
        flow.listed = false;
        self.first = flow.next;
    }
}

/// One flow's queue, and the books that it shares with the others.
#[derive(Debug)]
pub(crate) struct FlowQueue<'a, P> {
    slab: &'a mut Slab<P>,
    queue: &'a mut SlabQueue,
    flow_bytes: &'a mut u64,
    books: &'a mut Books,
}

impl<P: Queued> FlowQueue<'_, P> {
    /// Takes the head out of the queue.
    #[inline]
    pub(crate) fn take(&mut self) -> Option<Entry<P>> {
        let entry = self.slab.pop(self.queue)?;
        let bytes = entry.packet.wire_len();
        *self.flow_bytes -= u64::from(bytes);
        self.books.take(bytes);
        Some(entry)
    }

    /// Bytes that still wait in this flow.
    #[inline]
    pub(crate) fn flow_bytes(&self) -> u64 {
        *self.flow_bytes
    }

    /// Bytes that still wait in all flows together.
    #[inline]
    pub(crate) fn backlog_bytes(&self) -> u64 {
        self.books.backlog().bytes
    }

    /// Discards a packet taken out.
    pub(crate) fn discard(&mut self, entry: Entry<P>, reason: DropReason, drops: &mut Drops<P>) {
        self.books.discard(entry.packet, reason, drops);
    }

    /// Marks a packet taken out; `false` if it cannot carry a mark.
    pub(crate) fn mark(&mut self, packet: &mut P) -> bool {
        self.books.mark(packet)
    }
}

/// The largest number, the first of them, with its place.
fn first_largest(numbers: &[u64]) -> (usize, u64) {
    let mut largest = (0, numbers[0]);
    for (place, &number) in numbers.iter().enumerate() {
        if number > largest.1 {
            largest = (place, number);
        }
    }
    largest
}

impl<P: Queued, S: Clone> Drr<P, S> {
    /// `flows` empty flows, each with its law in `state`; `salt` selects among the ways to spread
    /// hashes over them.
    ///
    /// # Panics
    /// If `flows` is not within 1 to 65,536, or `quantum` is zero.
    pub(crate) fn new(flows: u32, quantum: u32, salt: u64, state: S) -> Drr<P, S> {
        assert!((1..=MAX_FLOWS).contains(&flows), "flows must be within 1 to {MAX_FLOWS}");
        assert!(quantum > 0, "quantum must not be zero");
        let flow = DrrFlow { queue: SlabQueue::EMPTY, next: NIL, listed: false, deficit: 0, state };
        Drr {
            flows: vec![flow; flows as usize].into_boxed_slice(),
            flow_bytes: vec![0; flows as usize].into_boxed_slice(),
            bounds: vec![0; (flows as usize).div_ceil(BLOCK)].into_boxed_slice(),
            new_flows: Rota::EMPTY,
            old_flows: Rota::EMPTY,
            quantum: i64::from(quantum),
            salt,
            touched: 0,
            slab: Slab::new(),
            books: Books::default(),
        }
    }
}

impl<P: Queued, S> Drr<P, S> {
    /// The flow of a hash.
    #[inline]
    pub(crate) fn classify(&self, hash: u64) -> u32 {
        ((u128::from(mix(hash ^ self.salt)) * self.flows.len() as u128) >> 64) as u32
    }

    /// Counts a packet of `bytes` bytes that passes without waiting.
    pub(crate) fn pass(&mut self, bytes: u32) {
        self.books.pass(bytes);
    }

    /// Takes a packet in at the tail of a flow, which starts if it was not in a rota.
    #[inline]
    pub(crate) fn admit(&mut self, index: u32, now: Time, packet: P) {
        self.touched = index;
        let flow = &mut self.flows[index as usize];
        self.books.admit(packet.wire_len());
        let bytes = &mut self.flow_bytes[index as usize];
        *bytes += u64::from(packet.wire_len());
        let bound = &mut self.bounds[index as usize / BLOCK];
        *bound = (*bound).max(*bytes);
        self.slab.push(&mut flow.queue, Entry { packet, enqueued_at: now });
        if !flow.listed {
            flow.deficit = self.quantum;
            self.new_flows.push(&mut self.flows, index);
        }
    }

    /// Turns a packet away.
    pub(crate) fn refuse(&mut self, packet: P, reason: DropReason, drops: &mut Drops<P>) {
        self.books.refuse(packet, reason, drops);
    }

    /// Marks a packet that arrives; `false` if it cannot carry a mark.
    pub(crate) fn mark(&mut self, packet: &mut P) -> bool {
        self.books.mark(packet)
    }

    /// The next packet in the order of turns (RFC 8290 section 4.2). `take` has the law of a flow
    /// take a packet from its queue; with `None` the flow has nothing to send.
    #[inline]
    pub(crate) fn serve(
        &mut self,
        take: impl FnMut(&mut S, &mut FlowQueue<'_, P>) -> Option<Entry<P>>,
    ) -> Option<Entry<P>> {
        // Flows that have become empty keep their place until their next turn, or until the link is
        // idle.
        if self.books.backlog().packets == 0 {
            return None;
        }
        let entry = self.take_turns(take)?;
        self.books.release(entry.packet.wire_len());
        Some(entry)
    }

    /// Takes out what is served next, for [`Drr::discard`].
    pub(crate) fn pull(
        &mut self,
        take: impl FnMut(&mut S, &mut FlowQueue<'_, P>) -> Option<Entry<P>>,
    ) -> Option<Entry<P>> {
        self.take_turns(take)
    }

    /// Discards what was pulled out.
    pub(crate) fn discard(&mut self, entry: Entry<P>, reason: DropReason, drops: &mut Drops<P>) {
        self.books.discard(entry.packet, reason, drops);
    }

    /// The number of flows.
    pub(crate) fn flows(&self) -> u32 {
        self.flows.len() as u32
    }

    /// Other turns from now on.
    ///
    /// # Panics
    /// If `quantum` is zero.
    pub(crate) fn set_quantum(&mut self, quantum: u32) {
        assert!(quantum > 0, "quantum must not be zero");
        self.quantum = i64::from(quantum);
    }

    /// The link is idle: all flows have their turn and nothing to send, so that none stays in a
    /// rota. `found_empty` tells the law of each.
    pub(crate) fn idle(&mut self, mut found_empty: impl FnMut(&mut S)) {
        self.take_turns(|law, _| {
            found_empty(law);
            None
        });
    }

    #[inline(always)]
    fn take_turns(
        &mut self,
        mut take: impl FnMut(&mut S, &mut FlowQueue<'_, P>) -> Option<Entry<P>>,
    ) -> Option<Entry<P>> {
        loop {
            let (index, is_new) = match self.new_flows.first() {
                Some(index) => (index, true),
                None => (self.old_flows.first()?, false),
            };
            let flow = &mut self.flows[index as usize];
            if flow.deficit <= 0 {
                flow.deficit += self.quantum;
                if is_new {
                    self.new_flows.remove_first(&mut self.flows);
                    self.old_flows.push(&mut self.flows, index);
                } else {
                    self.old_flows.rotate(&mut self.flows);
                }
                continue;
            }
            let mut queue = FlowQueue {
                slab: &mut self.slab,
                queue: &mut flow.queue,
                flow_bytes: &mut self.flow_bytes[index as usize],
                books: &mut self.books,
            };
            if let Some(entry) = take(&mut flow.state, &mut queue) {
                flow.deficit -= i64::from(entry.packet.wire_len());
                self.touched = index;
                return Some(entry);
            }
            let rota = if is_new { &mut self.new_flows } else { &mut self.old_flows };
            rota.remove_first(&mut self.flows);
            // A new flow that ran empty passes the old ones once, or it could starve them by
            // sending one packet at a time.
            if is_new && self.old_flows.first().is_some() {
                self.old_flows.push(&mut self.flows, index);
            }
        }
    }

    /// The head of the flow that is served next: that of the fewest turns until its deficit is
    /// above zero, and of several the one whose turn is first.
    pub(crate) fn peek(&self) -> Option<&Entry<P>> {
        // A new flow without a deficit left gets its next quantum at once, and its turn behind the
        // old flows.
        let [new, old] = [&self.new_flows, &self.old_flows].map(|rota| {
            let flows = rota.indices(&self.flows).map(|index| &self.flows[index as usize]);
            flows.filter_map(|flow| Some((flow.deficit, self.slab.front(&flow.queue)?)))
        });
        if let Some((_, head)) = new.clone().find(|&(deficit, _)| deficit > 0) {
            return Some(head);
        }
        let mut next: Option<(i64, &Entry<P>)> = None;
        for (deficit, head) in old.chain(new.map(|(deficit, head)| (deficit + self.quantum, head))) {
            let turns = if deficit > 0 { 0 } else { -deficit / self.quantum + 1 };
            if next.is_none_or(|(fewest, _)| turns < fewest) {
                next = Some((turns, head));
            }
        }
        next.map(|(_, head)| head)
    }

    /// The flow with the most bytes, the first of them.
    pub(crate) fn fattest(&mut self) -> u32 {
        loop {
            let (block, bound) = first_largest(&self.bounds);
            let begin = block * BLOCK;
            let end = self.flow_bytes.len().min(begin + BLOCK);
            let (index, bytes) = first_largest(&self.flow_bytes[begin..end]);
            if bytes == bound {
                return (begin + index) as u32;
            }
            self.bounds[block] = bytes;
        }
    }

    /// A flow's law and queue.
    pub(crate) fn flow(&mut self, index: u32) -> (&mut S, FlowQueue<'_, P>) {
        self.touched = index;
        let flow = &mut self.flows[index as usize];
        let queue = FlowQueue {
            slab: &mut self.slab,
            queue: &mut flow.queue,
            flow_bytes: &mut self.flow_bytes[index as usize],
            books: &mut self.books,
        };
        (&mut flow.state, queue)
    }

    /// The law of the flow that a packet came to or left last, or that lost packets at a limit.
    pub(crate) fn touched(&self) -> &S {
        &self.flows[self.touched as usize].state
    }

    /// Every flow's law with the bytes that wait in the flow.
    pub(crate) fn for_each(&mut self, mut see: impl FnMut(&mut S, u64)) {
        for (flow, &bytes) in self.flows.iter_mut().zip(&*self.flow_bytes) {
            see(&mut flow.state, bytes);
        }
    }

    /// The number of the flow of [`Drr::touched`] and the bytes that wait in it, and how many flows
    /// are new and old.
    pub(crate) fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        let count = |rota: &Rota| Variable::Count(rota.indices(&self.flows).count() as u64);
        see("flow", Variable::Count(self.touched.into()));
        see("flow_backlog", Variable::Bytes(self.flow_bytes[self.touched as usize] as f64));
        see("new_flows", count(&self.new_flows));
        see("old_flows", count(&self.old_flows));
        see("memory", Variable::Bytes(self.memory() as f64));
    }

    /// Memory of all packets that wait.
    #[inline]
    pub(crate) fn memory(&self) -> u64 {
        let waiting = self.backlog();
        waiting.bytes + PACKET_OVERHEAD * waiting.packets
    }

    /// Waiting packets and bytes.
    #[inline]
    pub(crate) fn backlog(&self) -> Backlog {
        self.books.backlog()
    }

    /// The books.
    #[inline]
    pub(crate) fn books(&self) -> &Books {
        &self.books
    }
}

/// The salt of a run's flow hashes: as given, or drawn. `random` is left as it is.
pub(crate) fn salt(hash_seed: Option<u64>, random: &Random) -> u64 {
    hash_seed.unwrap_or_else(|| Random::for_component(random.clone().bits(), 0, "hash").bits())
}

/// The finalizer of SplitMix64: every bit of the result depends on all bits.
pub(crate) fn mix(mut z: u64) -> u64 {
    z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ (z >> 31)
}

/// Views for tests.
#[cfg(test)]
impl<P: Queued, S> Drr<P, S> {
    /// Each flow's law, bytes, deficit and whether it is in a rota.
    pub(crate) fn inspect(&mut self) -> impl Iterator<Item = (&mut S, u64, i64, bool)> {
        let bytes = self.flow_bytes.iter();
        self.flows.iter_mut().zip(bytes).map(|(flow, &bytes)| (&mut flow.state, bytes, flow.deficit, flow.listed))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stub::{Stub, stub};

    /// The first outputs of SplitMix64 from a seed of 1,234,567 (Steele, Lea, Flood 2014; the
    /// vector is that of Rosetta Code, "Pseudo-random numbers/Splitmix64"): the state moves by the
    /// golden ratio, the finalizer is what is used here.
    #[test]
    fn the_mix_is_that_of_splitmix() {
        let mut state = 1_234_567u64;
        let expected = [6_457_827_717_110_365_317, 3_203_168_211_198_807_973, 9_817_491_932_198_370_423];
        for expected in expected {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            assert_eq!(mix(state), expected);
        }
    }

    /// sch_fq_codel.c, `fq_codel_drop`: of flows with as many bytes it is the first that loses
    /// packets.
    #[test]
    fn of_flows_alike_the_first_is_the_fattest() {
        let mut drr: Drr<Stub, ()> = Drr::new(4, 1514, 0, ());
        for index in [3, 1, 2] {
            drr.admit(index, Time::ZERO, stub(index, 500));
        }
        assert_eq!(drr.fattest(), 1);
        drr.admit(2, Time::ZERO, stub(4, 1));
        assert_eq!(drr.fattest(), 2);
    }
}
