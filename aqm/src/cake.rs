//! CAKE: a shaper, tins by codepoint, and in each tin flow queues with fairness among hosts, each
//! controlled by COBALT.
//!
//! The shaper (`shaper`) keeps the time at which the last packet would have left a link of this
//! rate, on which a packet may be longer than here (`overhead`, `mpu`, `atm`). It has no bucket:
//! the next packet leaves at that time. A packet's codepoint selects its tin (`diffserv`). A tin
//! that sends less than its threshold is served before the tins of lower numbers, else it waits
//! until the time that its threshold allows; without a shaper the tins take turns. A packet's flow
//! selects its queue among eight (`tin`), and queues are served by deficit round robin with sparse
//! flows first. The turn of a flow is divided by the number of bulk flows of its host (`flowmode`).
//! Where memory runs out, the longest queue loses its head (`longest`).
//!
//! # Source
//! Linux `net/sched/sch_cake.c` since it has `cake_mq`; names and defaults of `tc-cake(8)` and
//! iproute2's `tc/q_cake.c`. T. Høiland-Jørgensen et al., Piece of CAKE, LANMAN 2018.
//!
//! # Departures
//! - Left out: `autorate-ingress` (no estimate of a link's rate), `nat` (no translation of
//!   addresses), `fwmark` and `tc` filters (packets carry no marks), `cake_mq` (one transmitter).
//! - `split-gso` has no key: packets are at most of one MTU here, live ones are split when they
//!   arrive, so that all is as with it. `no-split-gso` does not exist.
//! - tc's keywords for the overhead are the key `framing`; `ether-vlan` is `overhead` with 4 bytes
//!   more. `overhead` is added to the length that the queue sees, as after tc's `raw`: a link of
//!   ackclock counts IP packets, so that this is the length from which Linux starts, unless the
//!   link has an `overhead` of its own.
//! - A negative overhead leaves at least no bytes; Linux's length wraps.
//! - The length on the link is computed when a packet leaves, not when it comes: a new overhead
//!   holds for packets that wait.
//! - Hashes are those of [`Queued`] with a salt for each run, not Jenkins hashes of addresses; a
//!   connection is known by its flow's hash.
//! - Hosts and the headers that the filter of ACKs compares are shown by the caller
//!   ([`QueueDisc::look`]). A packet that is not shown has hosts of its own and is not filtered.
//! - The memory of a packet is assumed to be its bytes plus 576, instead of what Linux allocated
//!   (`truesize`).
//! - The turns of tins are counted only without a shaper. Linux counts what they have sent with
//!   one, too, so that a change to `unlimited` finds them in debt for all of it.
//! - A tin that a change removes loses its packets and its state. In Linux its flows find the state
//!   again when the tin is back.
//! - `peek` shows the flow that is likely to be next: that depends on the time, and a random number
//!   rounds each turn. (Linux's takes the packet out.)
//! - COBALT's control law has its own (`cobalt_law`).

use std::any::Any;

use ackclock_units::{Random, Span, Time};

use self::ack_filter::{WaitingAck, needless};
pub use self::config::{AckFilter, Atm, CakeConfig, CakeRtt, Diffserv, FlowMode, Framing};
use self::longest::{Longest, id, of_id};
use self::shaper::{ByteTime, Shaper};
use self::tin::{Hashes, Tin};
use crate::books::{Books, memory_of};
use crate::change::{fixed, parameters, valid};
use crate::cobalt_law::SMALL_QUEUE;
use crate::drr::{mix, salt};
use crate::overhead::Overhead;
use crate::slab::Slab;
use crate::{ChangeError, Dequeue, DropReason, Drops, Entry, Headers, Probe, QueueDisc, Queued, Variable};

mod ack_filter;
mod config;
mod longest;
mod shaper;
mod tin;

/// CAKE.
#[derive(Debug)]
pub struct Cake<P> {
    config: CakeConfig,
    overhead: Overhead,
    /// The most memory.
    limit: u64,
    /// The tin of each codepoint.
    index: [u8; 64],
    tins: Vec<Tin>,
    shaper: Shaper,
    /// The tin whose turn it is, without a shaper.
    current: usize,
    /// The tin and the queue that a packet came to or left last, or that lost one to the limit.
    touched: (usize, usize),
    memory: u64,
    most_memory: u64,
    /// The shortest and the longest packet, and the same on the link.
    sizes: [[u32; 2]; 2],
    salt: u64,
    random: Random,
    longest: Longest,
    slab: Slab<P>,
    /// The hosts and the ACK of the packet that comes next, if they were shown.
    next: Option<([u64; 2], Option<WaitingAck>)>,
    /// The ACKs that wait, by their slots; empty without the filter.
    acks: Vec<Option<WaitingAck>>,
    books: Books,
}

/// The result of a flow's turn.
enum Served<P> {
    Packet(Entry<P>),
    /// The flow was empty.
    Empty,
    /// A packet was dropped and counts, so that the turn may be over.
    Dropped,
}

impl<P: Queued> Cake<P> {
    /// Empty tins; the salt and the random numbers are drawn from `random`.
    ///
    /// # Panics
    /// If parameters are out of range.
    pub fn new(config: CakeConfig, random: Random) -> Cake<P> {
        assert_eq!(config.problem(), None);
        let mut cake = Cake {
            overhead: config.overhead(),
            limit: 0,
            index: [0; 64],
            tins: Vec::new(),
            shaper: Shaper::new(ByteTime::new(0)),
            current: 0,
            touched: (0, 0),
            memory: 0,
            most_memory: 0,
            sizes: NO_SIZES,
            salt: salt(config.hash_seed, &random),
            random,
            longest: Longest::new(),
            slab: Slab::new(),
            next: None,
            acks: Vec::new(),
            books: Books::default(),
            config,
        };
        cake.configure();
        cake
    }

    /// Sets what follows from the parameters (`cake_reconfigure`).
    fn configure(&mut self) {
        let config = &self.config;
        let shares = config.diffserv.shares(config.rate());
        self.tins.resize_with(shares.len(), Tin::new);
        for (tin, share) in self.tins.iter_mut().zip(shares) {
            tin.configure(share, config.mtu, config.delays());
        }
        self.index = config.diffserv.index();
        self.shaper.pace = self.tins[0].pace;
        self.limit = config.memory();
        self.current = self.current.min(self.tins.len() - 1);
        self.touched.0 = self.touched.0.min(self.tins.len() - 1);
    }

    fn hashes(&self, packet: &P, hosts: Option<[u64; 2]>) -> Hashes {
        let mode = self.config.flowmode;
        let [source, destination] = if mode.hosts() == [false; 2] {
            [0; 2]
        } else {
            // The two sides differ, or a host would undo its own part of the pair.
            let [source, destination] = hosts.unwrap_or_else(|| packet.host_hashes());
            [mix(source ^ self.salt) as u32, mix(destination ^ !self.salt) as u32]
        };
        let flow = if mode.flows() {
            mix(packet.flow_hash() ^ self.salt) as u32
        } else {
            let [by_source, by_destination] = mode.hosts();
            (source * u32::from(by_source)) ^ (destination * u32::from(by_destination))
        };
        Hashes { flow, hosts: [source, destination] }
    }

    /// Keeps the header of an ACK at the end of a queue, and drops one that it makes needless.
    fn filter_acks(
        &mut self,
        (tin, flow): (usize, usize),
        (slot, connection, ack): (usize, u64, Option<WaitingAck>),
        now: Time,
        drops: &mut Drops<P>,
    ) {
        if self.acks.len() <= slot {
            self.acks.resize(slot + 1, None);
        }
        self.acks[slot] = ack;
        let Some(last) = &ack else { return };
        let queue = &self.tins[tin].flows[flow].queue;
        let waiting = || self.slab.entries(queue).take_while(|&(waiting, _)| waiting != slot);
        let aggressive = self.config.ack_filter == Some(AckFilter::Aggressive);
        let acks = waiting().map(|(slot, entry)| {
            let same_flow = entry.packet.flow_hash() == connection;
            self.acks.get(slot).and_then(Option::as_ref).filter(|_| same_flow)
        });
        let Some(place) = needless(acks, last, aggressive) else { return };
        let before = place.checked_sub(1).and_then(|before| waiting().nth(before)).map(|(slot, _)| slot);
        let Some(entry) = self.slab.remove(&mut self.tins[tin].flows[flow].queue, before) else { return };
        let bytes = entry.packet.wire_len();
        self.longest.replace(id(tin, flow), bytes);
        self.tins[tin].backlog -= u64::from(bytes);
        self.tins[tin].stats.ack_drops += 1;
        self.memory -= memory_of(&entry.packet);
        self.books.take(bytes);
        if self.config.ingress {
            self.charge(tin, &entry, now, true);
        }
        self.books.discard(entry.packet, DropReason::Ack, drops);
    }

    /// Takes the head of a queue (`cake_dequeue_one`).
    #[inline]
    fn take(&mut self, tin: usize, flow: usize) -> Option<Entry<P>> {
        let entry = self.slab.pop(&mut self.tins[tin].flows[flow].queue)?;
        let bytes = entry.packet.wire_len();
        self.longest.remove(id(tin, flow), bytes);
        self.tins[tin].backlog -= u64::from(bytes);
        self.memory -= memory_of(&entry.packet);
        self.books.take(bytes);
        Some(entry)
    }

    /// Drops the head of the queue at the top of the heap; `false` if that was empty, so that the
    /// heap is made anew (`cake_drop`).
    fn drop_longest(&mut self, now: Time, drops: &mut Drops<P>) -> bool {
        let (tin, flow) = of_id(self.longest.top());
        let Some(entry) = (tin < self.tins.len()).then(|| self.take(tin, flow)).flatten() else {
            self.longest.lapse();
            return false;
        };
        self.touched = (tin, flow);
        self.tins[tin].overflowed(flow, now);
        if self.config.ingress {
            self.charge(tin, &entry, now, true);
        }
        self.books.discard(entry.packet, DropReason::Memory, drops);
        true
    }

    /// Charges a packet to the shaper and to its tin, and returns its length on the link.
    #[inline]
    fn charge(&mut self, tin: usize, entry: &Entry<P>, now: Time, dropped: bool) -> u32 {
        let bytes = self.overhead.of(entry.packet.wire_len());
        if !self.shaper.pace.is_unlimited() {
            self.tins[tin].advance(bytes, now);
            self.shaper.advance(bytes, dropped);
        }
        bytes
    }

    /// The tin to serve: with a shaper the last one that is below its threshold, or the first whose
    /// threshold allows a packet; without one by turns. Something waits.
    #[inline]
    fn choose_tin(&mut self, now: Time) -> usize {
        if self.tins.len() == 1 {
            return 0;
        }
        if self.shaper.pace.is_unlimited() {
            loop {
                let tin = &mut self.tins[self.current];
                if tin.deficit >= 0 && tin.has_flows() {
                    return self.current;
                }
                if tin.deficit <= 0 {
                    tin.deficit += i64::from(tin.quantum);
                }
                self.current = (self.current + 1) % self.tins.len();
            }
        }
        let mut best = (i64::MAX, 0);
        for (number, tin) in self.tins.iter().enumerate().filter(|(_, tin)| tin.has_flows()) {
            let wait = tin.next.as_nanos().wrapping_sub(now.as_nanos()) as i64;
            if wait <= best.0.max(0) {
                best = (wait, number);
            }
        }
        best.1
    }

    /// A flow's turn: the packet that its law sends.
    #[inline]
    fn serve(&mut self, tin: usize, flow: usize, now: Time, drops: &mut Drops<P>) -> Served<P> {
        let ingress = self.config.ingress;
        loop {
            let Some(mut entry) = self.take(tin, flow) else {
                self.tins[tin].found_empty(flow, self.config.flowmode, now);
                return Served::Empty;
            };
            let Tin { flows, law, bulk_flows, .. } = &mut self.tins[tin];
            let flow_of = &mut flows[flow];
            // A link that others fill has to bear a larger queue the more of them there are.
            let mtus = if ingress { SMALL_QUEUE.max(2 * u64::from(*bulk_flows)) } else { SMALL_QUEUE };
            let head = (entry.enqueued_at, entry.packet.ecn().is_capable());
            let verdict = flow_of.cobalt.head(law, now, head, mtus, &mut self.random);
            // The last packet may be marked but is not dropped.
            let Some(reason) = verdict.drop.filter(|_| !flow_of.queue.is_empty()) else {
                if verdict.mark && self.books.mark(&mut entry.packet) {
                    self.tins[tin].stats.marks += 1;
                }
                return Served::Packet(entry);
            };
            self.tins[tin].stats.drops += 1;
            if ingress {
                self.spend(tin, flow, &entry, now, true);
            }
            self.books.discard(entry.packet, reason, drops);
            if ingress {
                return Served::Dropped;
            }
        }
    }

    /// Charges a packet to all that its flow shares.
    #[inline]
    fn spend(&mut self, tin: usize, flow: usize, entry: &Entry<P>, now: Time, dropped: bool) {
        let bytes = self.charge(tin, entry, now, dropped);
        let takes_turns = self.shaper.pace.is_unlimited() && self.tins.len() > 1;
        let tin = &mut self.tins[tin];
        tin.flows[flow].deficit -= bytes as i32;
        if takes_turns {
            tin.deficit -= i64::from(bytes);
        }
    }
}

/// The sizes before the first packet.
const NO_SIZES: [[u32; 2]; 2] = [[u32::MAX, 0]; 2];

impl<P: Queued + Send> QueueDisc<P> for Cake<P> {
    fn enqueue(&mut self, now: Time, mut packet: P, drops: &mut Drops<P>) {
        let mode = self.config.flowmode;
        let number = usize::from(self.index[usize::from(packet.dscp() & 63)]);
        if self.config.wash {
            packet.wash();
        }
        let (hosts, ack) = self.next.take().unzip();
        let hashes = self.hashes(&packet, hosts);
        let tin = &mut self.tins[number];
        let flow = tin.classify(mode, hashes);
        self.touched = (number, flow);
        if tin.backlog == 0 {
            tin.next = tin.next.max(now);
            if self.books.backlog().packets == 0 {
                self.shaper.wake(now);
            }
        }
        let (bytes, connection) = (packet.wire_len(), packet.flow_hash());
        for (sizes, bytes) in self.sizes.iter_mut().zip([bytes, self.overhead.of(bytes)]) {
            *sizes = [sizes[0].min(bytes), sizes[1].max(bytes)];
        }
        tin.stats.longest = tin.stats.longest.max(bytes);
        tin.stats.packets += 1;
        tin.stats.bytes += u64::from(bytes);
        tin.backlog += u64::from(bytes);
        self.memory += memory_of(&packet);
        self.books.admit(bytes);
        let slot = self.slab.push(&mut tin.flows[flow].queue, Entry { packet, enqueued_at: now });
        self.longest.add(id(number, flow), bytes);
        tin.grew(flow, mode, &mut self.random);
        if self.config.ack_filter.is_some() {
            self.filter_acks((number, flow), (slot, connection, ack.flatten()), now, drops);
        }
        self.most_memory = self.most_memory.max(self.memory);
        // A heap that was kept may have an empty queue at its top, a new one has not.
        while self.memory > self.limit && (self.drop_longest(now, drops) || self.drop_longest(now, drops)) {}
    }

    fn looks(&self) -> bool {
        self.config.ack_filter.is_some() || self.config.flowmode.hosts() != [false; 2]
    }

    fn look(&mut self, headers: Headers<'_>) {
        let filtered = headers.ack.filter(|_| self.config.ack_filter.is_some());
        self.next = Some((headers.hosts, filtered.map(|ack| WaitingAck::new(&ack))));
    }

    fn dequeue(&mut self, now: Time, drops: &mut Drops<P>) -> Dequeue<P> {
        let mut decay = true;
        while self.books.backlog().packets > 0 {
            if let Some(next) = self.shaper.held(now) {
                return Dequeue::NotBefore(next);
            }
            let number = self.choose_tin(now);
            loop {
                let tin = &mut self.tins[number];
                let Some(flow) = tin.next(decay) else { break };
                decay = false;
                if tin.flows[flow].deficit <= 0 {
                    tin.next_turn(flow, self.config.flowmode, &mut self.random);
                    continue;
                }
                match self.serve(number, flow, now, drops) {
                    Served::Packet(entry) => {
                        self.touched = (number, flow);
                        self.tins[number].stats.left(now.since(entry.enqueued_at));
                        self.spend(number, flow, &entry, now, false);
                        self.longest.age();
                        self.books.release(entry.packet.wire_len());
                        return Dequeue::Packet(entry);
                    }
                    Served::Empty => break,
                    Served::Dropped => {}
                }
            }
        }
        Dequeue::Empty
    }

    /// Other parameters at run time. Flows keep their packets, places and states, the shaper its
    /// time. Tins that are no more are emptied (`cake_clear_tin`). A lower `memlimit` holds from
    /// the next arrival on.
    fn change(&mut self, _now: Time, config: &dyn Any, drops: &mut Drops<P>) -> Result<(), ChangeError> {
        let config = parameters::<CakeConfig>(config)?.clone();
        fixed("hash_seed", config.hash_seed != self.config.hash_seed)?;
        valid(config.problem())?;
        if config.overhead() != self.overhead {
            self.overhead = config.overhead();
            self.sizes = NO_SIZES;
        }
        self.config = config;
        if self.config.ack_filter.is_none() {
            self.acks.clear();
        }
        for tin in self.config.diffserv.shares(0).len()..self.tins.len() {
            for flow in 0..tin::QUEUES {
                while let Some(entry) = self.take(tin, flow) {
                    self.books.discard(entry.packet, DropReason::Purge, drops);
                }
            }
        }
        self.configure();
        Ok(())
    }

    fn peek(&self) -> Option<&Entry<P>> {
        let waiting = self.tins.iter().filter(|tin| tin.backlog > 0);
        // With thresholds the earliest, and of several the last.
        let tin = if self.shaper.pace.is_unlimited() {
            let ahead = self.tins[self.current..].iter().find(|tin| tin.backlog > 0 && tin.deficit >= 0);
            ahead.or_else(|| waiting.max_by_key(|tin| tin.deficit))
        } else {
            waiting.rev().min_by_key(|tin| tin.next)
        }?;
        self.slab.front(&tin.flows[tin.likely_next()?].queue)
    }

    fn books(&self) -> &Books {
        &self.books
    }

    /// BLUE's probability, CoDel's sojourn time and state, of the queue that a packet came to or
    /// left last, or that lost one to the limit.
    fn probe(&self) -> Probe {
        let (tin, flow) = self.touched;
        let cobalt = &self.tins[tin].flows[flow].cobalt;
        Probe {
            probability: Some(cobalt.probability()),
            delay: Some(cobalt.sojourn),
            dropping: Some(cobalt.dropping),
            ..Probe::default()
        }
    }

    /// The variables of the probed queue, of its tin (its place in tc's order, then the names of
    /// `tc -s`), and of all tins.
    fn variables(&self, see: &mut dyn FnMut(&'static str, Variable)) {
        use Variable::{Bytes, Count};
        QueueDisc::<P>::probe(self).variables(see);
        let (number, flow) = self.touched;
        let tin = &self.tins[number];
        let bytes = |bytes: u64| Bytes(bytes as f64);
        see("count", Count(tin.flows[flow].cobalt.count.into()));
        see("flow", Count(flow as u64));
        see("flow_backlog", bytes(self.longest.backlog(id(number, flow))));
        see("tin", Count(self.config.diffserv.place(number) as u64));
        see("threshold_rate", bytes(tin.threshold));
        see("target", Variable::Time(tin.law.target));
        see("interval", Variable::Time(tin.law.interval));
        for (name, nanos) in ["peak_delay", "avg_delay", "base_delay"].into_iter().zip(tin.stats.delays) {
            see(name, Variable::Time(Span::from_nanos(nanos)));
        }
        see("tin_backlog", bytes(tin.backlog));
        see("sent_packets", Count(tin.stats.packets));
        see("sent_bytes", bytes(tin.stats.bytes));
        see("way_indirect_hits", Count(tin.stats.indirect));
        see("way_misses", Count(tin.stats.misses));
        see("way_collisions", Count(tin.stats.collisions));
        see("drops", Count(tin.stats.drops));
        see("ecn_mark", Count(tin.stats.marks));
        see("ack_drops", Count(tin.stats.ack_drops));
        see("sparse_flows", Count((tin.sparse_flows + tin.decaying_flows).into()));
        see("bulk_flows", Count(tin.bulk_flows.into()));
        see("unresponsive_flows", Count(tin.unresponsive_flows.into()));
        see("max_pkt_len", bytes(tin.stats.longest.into()));
        see("flow_quantum", bytes(tin.flow_quantum.into()));
        see("memory", bytes(self.memory));
        see("memory_used", bytes(self.most_memory));
        see("memory_limit", bytes(self.limit));
        let names = ["min_network_size", "max_network_size", "min_adj_size", "max_adj_size"];
        for (name, size) in names.into_iter().zip(self.sizes.into_iter().flatten()) {
            see(name, bytes(size.into()));
        }
    }
}

#[cfg(test)]
mod tests;
