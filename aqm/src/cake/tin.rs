//! A tin: its queues, the assignment of flows to them, and their turns.
//!
//! # Source
//! Linux `net/sched/sch_cake.c`: `cake_hash`, `cake_get_flow_quantum`, `cake_set_rate`, and the
//! parts of `cake_enqueue` and `cake_dequeue` that move queues between the lists.

use ackclock_units::{Random, Span, Time};

use super::config::FlowMode;
use super::shaper::ByteTime;
use crate::cobalt_law::{CobaltLaw, CobaltState};
use crate::slab::SlabQueue;

/// The most tins.
pub(super) const MAX_TINS: usize = 8;

/// Queues of a tin.
pub(super) const QUEUES: usize = 1024;
/// Queues among which a flow may have its own.
const WAYS: usize = 8;

/// The part in the turns that a queue has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TurnList {
    /// It is in no list.
    None,
    /// New, served first.
    Sparse,
    /// Counted as sparse, in the list of bulk flows: it was empty when its first turn was over.
    SparseWait,
    /// Served in turn.
    Bulk,
    /// Empty, with a state that is not at rest.
    Decaying,
}

/// A queue with its law.
#[derive(Clone, Debug)]
pub(super) struct Flow {
    pub(super) queue: SlabQueue,
    /// Bytes that it may still send in this turn.
    pub(super) deficit: i32,
    /// The places of its hosts.
    hosts: [u16; 2],
    set: TurnList,
    pub(super) cobalt: CobaltState,
}

/// A place for a sending and for a receiving host.
#[derive(Clone, Copy, Debug, Default)]
struct HostPair {
    tags: [u32; 2],
    bulk_flows: [u16; 2],
}

/// The lists, chained through the queues; each has an entry behind those of the queues.
#[derive(Debug)]
struct Lists(Box<[Link]>);

#[derive(Clone, Copy, Debug)]
struct Link {
    before: u16,
    next: u16,
}

const NEW: usize = QUEUES;
const OLD: usize = QUEUES + 1;
const DECAYING: usize = QUEUES + 2;

impl Lists {
    fn new() -> Lists {
        Lists((0..=DECAYING as u16).map(|at| Link { before: at, next: at }).collect())
    }

    fn first(&self, list: usize) -> Option<usize> {
        let first = usize::from(self.0[list].next);
        (first != list).then_some(first)
    }

    fn indices(&self, list: usize) -> impl Iterator<Item = usize> {
        std::iter::successors(self.first(list), move |&at| {
            let next = usize::from(self.0[at].next);
            (next != list).then_some(next)
        })
    }

    /// Takes a queue out of its list, if it is in one.
    fn remove(&mut self, at: usize) {
        let Link { before, next } = self.0[at];
        self.0[usize::from(before)].next = next;
        self.0[usize::from(next)].before = before;
        self.0[at] = Link { before: at as u16, next: at as u16 };
    }

    /// Puts a queue at the end of a list.
    fn move_to(&mut self, at: usize, list: usize) {
        self.remove(at);
        let last = self.0[list].before;
        self.0[at] = Link { before: last, next: list as u16 };
        self.0[usize::from(last)].next = at as u16;
        self.0[list].before = at as u16;
    }
}

/// Hashes of a packet's flow and of its hosts.
#[derive(Clone, Copy, Debug)]
pub(super) struct Hashes {
    pub(super) flow: u32,
    pub(super) hosts: [u32; 2],
}

/// The statistics of a tin in `tc -s`, besides its parameters.
#[derive(Debug, Default)]
pub(super) struct TinStats {
    pub(super) packets: u64,
    pub(super) bytes: u64,
    pub(super) drops: u64,
    pub(super) marks: u64,
    pub(super) ack_drops: u64,
    /// Flows whose queue was not their first choice.
    pub(super) indirect: u64,
    pub(super) misses: u64,
    pub(super) collisions: u64,
    pub(super) longest: u32,
    /// The moving averages of the sojourn time, in nanoseconds: of its peaks, of all, and of the
    /// best.
    pub(super) delays: [u64; 3],
}

impl TinStats {
    /// Counts the sojourn time of a packet that leaves.
    #[inline]
    pub(super) fn left(&mut self, sojourn: Span) {
        let sojourn = sojourn.as_nanos();
        let [peak, average, base] = self.delays;
        let shift = |near: bool| if near { 2 } else { 8 };
        let mean = |mean: u64, shift: u32| mean - (mean >> shift) + (sojourn >> shift);
        self.delays = [mean(peak, shift(sojourn > peak)), mean(average, 8), mean(base, shift(sojourn < base))];
    }
}

/// A tin.
#[derive(Debug)]
pub(super) struct Tin {
    pub(super) flows: Box<[Flow]>,
    tags: Box<[u32]>,
    hosts: Box<[HostPair]>,
    lists: Lists,
    pub(super) law: CobaltLaw,
    /// Bytes per second below which it is served before the tins of lower numbers; 0 without a
    /// shaper.
    pub(super) threshold: u64,
    pub(super) pace: ByteTime,
    /// The time until which what it sent takes at its threshold.
    pub(super) next: Time,
    /// Bytes of a flow's turn, for a host with one flow.
    pub(super) flow_quantum: u32,
    /// Bytes of the tin's turn, and those that are left of it.
    pub(super) quantum: u32,
    pub(super) deficit: i64,
    pub(super) backlog: u64,
    pub(super) sparse_flows: u32,
    pub(super) bulk_flows: u32,
    pub(super) decaying_flows: u32,
    pub(super) unresponsive_flows: u32,
    pub(super) stats: TinStats,
}

impl Tin {
    /// Empty queues, without parameters until [`Tin::configure`].
    pub(super) fn new() -> Tin {
        let flow = Flow {
            queue: SlabQueue::EMPTY,
            deficit: 0,
            hosts: [0; 2],
            set: TurnList::None,
            cobalt: CobaltState::zeroed(),
        };
        Tin {
            flows: vec![flow; QUEUES].into(),
            tags: vec![0; QUEUES].into(),
            hosts: vec![HostPair::default(); QUEUES].into(),
            lists: Lists::new(),
            law: CobaltLaw {
                target: Span::ZERO,
                interval: Span::ZERO,
                mtu_time: Span::ZERO,
                // 1/256 up and 1/4096 down.
                p_inc: 1 << 24,
                p_dec: 1 << 20,
                ecn: true,
                ce_threshold: None,
                blue_threshold: None,
            },
            threshold: 0,
            pace: ByteTime::new(0),
            next: Time::ZERO,
            flow_quantum: 0,
            quantum: 0,
            deficit: 0,
            backlog: 0,
            sparse_flows: 0,
            bulk_flows: 0,
            decaying_flows: 0,
            unresponsive_flows: 0,
            stats: TinStats::default(),
        }
    }

    /// Sets the share, and the law for it (`cake_set_rate`).
    pub(super) fn configure(&mut self, (rate, quantum): (u64, u32), mtu: u32, [target, interval]: [Span; 2]) {
        self.threshold = rate;
        self.pace = ByteTime::new(rate);
        self.quantum = quantum.max(1);
        self.flow_quantum = if rate == 0 { 1514 } else { (rate >> 12).clamp(300, 1514) as u32 };
        let mtu_time = self.pace.time(mtu);
        self.law.mtu_time = mtu_time;
        self.law.target = (mtu_time * 3 / 2).max(target);
        self.law.interval = (interval + self.law.target - target).max(self.law.target * 2);
    }

    /// Flows with packets, or with a turn that is not over.
    #[inline]
    pub(super) fn has_flows(&self) -> bool {
        self.sparse_flows + self.bulk_flows > 0
    }

    /// The queue of a packet, which is the flow's from now on (`cake_hash`).
    #[inline]
    pub(super) fn classify(&mut self, mode: FlowMode, hashes: Hashes) -> usize {
        if mode == FlowMode::Flowblind {
            return 0;
        }
        let direct = hashes.flow as usize % QUEUES;
        if self.tags[direct] == hashes.flow && self.flows[direct].set != TurnList::None {
            return direct;
        }
        self.classify_otherwise(mode, hashes, direct)
    }

    fn classify_otherwise(&mut self, mode: FlowMode, hashes: Hashes, direct: usize) -> usize {
        let own = ways(direct).find(|&way| self.tags[way] == hashes.flow);
        let (way, begins) = if let Some(way) = own {
            self.stats.indirect += u64::from(way != direct);
            (way, self.flows[way].set == TurnList::None)
        } else if let Some(way) = ways(direct).find(|&way| self.flows[way].set == TurnList::None) {
            self.stats.misses += 1;
            (way, true)
        } else {
            self.stats.collisions += 1;
            if self.flows[direct].set == TurnList::Bulk {
                self.count_bulk(direct, mode, false);
            }
            (direct, true)
        };
        self.tags[way] = hashes.flow;
        if begins {
            for side in [0, 1] {
                if mode.shared()[side] {
                    self.flows[way].hosts[side] = self.host(side, hashes.hosts[side]) as u16;
                }
            }
            if self.flows[way].set == TurnList::Bulk {
                self.count_bulk(way, mode, true);
            }
        }
        way
    }

    /// The place of a host: its own, else one without bulk flows, else its first choice.
    fn host(&mut self, side: usize, tag: u32) -> usize {
        let direct = tag as usize % QUEUES;
        let own = ways(direct).find(|&way| self.hosts[way].tags[side] == tag);
        own.unwrap_or_else(|| {
            let way = ways(direct).find(|&way| self.hosts[way].bulk_flows[side] == 0).unwrap_or(direct);
            self.hosts[way].tags[side] = tag;
            way
        })
    }

    /// A flow begins or ceases to be one of the bulk flows of its hosts.
    fn count_bulk(&mut self, flow: usize, mode: FlowMode, begins: bool) {
        for side in [0, 1] {
            let flows = &mut self.hosts[usize::from(self.flows[flow].hosts[side])].bulk_flows[side];
            if !mode.shared()[side] {
                continue;
            }
            // The flow mode may have changed meanwhile, so that not every end had its beginning.
            *flows = if begins { (*flows + 1).min(QUEUES as u16) } else { flows.saturating_sub(1) };
        }
    }

    /// The turn of a flow: the tin's, divided by the bulk flows of the host that has more of them
    /// (`cake_get_flow_quantum`). A random number makes up for the fraction of a byte.
    fn turn(&self, flow: usize, mode: FlowMode, random: &mut Random) -> i32 {
        let mut load = 1;
        for side in [0, 1] {
            if mode.shared()[side] {
                load = load.max(self.hosts[usize::from(self.flows[flow].hosts[side])].bulk_flows[side]);
            }
        }
        let part = self.flow_quantum * (65_535 / u32::from(load));
        ((part + (random.bits() >> 48) as u32) >> 16) as i32
    }

    /// A packet has come to a flow, which takes part in the turns.
    #[inline]
    pub(super) fn grew(&mut self, flow: usize, mode: FlowMode, random: &mut Random) {
        match self.flows[flow].set {
            TurnList::None | TurnList::Decaying => {
                self.decaying_flows -= u32::from(self.flows[flow].set == TurnList::Decaying);
                self.sparse_flows += 1;
                self.lists.move_to(flow, NEW);
                let turn = self.turn(flow, mode, random);
                let flow = &mut self.flows[flow];
                (flow.set, flow.deficit) = (TurnList::Sparse, turn);
            }
            TurnList::SparseWait => {
                self.become_bulk(flow, mode);
            }
            TurnList::Sparse | TurnList::Bulk => {}
        }
    }

    fn become_bulk(&mut self, flow: usize, mode: FlowMode) {
        self.flows[flow].set = TurnList::Bulk;
        self.sparse_flows -= 1;
        self.bulk_flows += 1;
        self.count_bulk(flow, mode, true);
    }

    /// The flow whose turn it is; the first decaying one where `decay`, before the others.
    #[inline]
    pub(super) fn next(&self, decay: bool) -> Option<usize> {
        let decaying = if decay { self.lists.first(DECAYING) } else { None };
        decaying
            .or_else(|| self.lists.first(NEW))
            .or_else(|| self.lists.first(OLD))
            .or_else(|| self.lists.first(DECAYING))
    }

    /// The turn of a flow is over: it gets another one behind all others.
    pub(super) fn next_turn(&mut self, flow: usize, mode: FlowMode, random: &mut Random) {
        if self.flows[flow].set == TurnList::Sparse {
            if self.flows[flow].queue.is_empty() {
                // Counted on as sparse, while its deficit waits among the bulk flows.
                self.flows[flow].set = TurnList::SparseWait;
            } else {
                self.become_bulk(flow, mode);
            }
        }
        self.flows[flow].deficit += self.turn(flow, mode, random);
        self.lists.move_to(flow, OLD);
    }

    /// A flow had its turn and is empty.
    pub(super) fn found_empty(&mut self, flow: usize, mode: FlowMode, now: Time) {
        let Flow { cobalt, set, .. } = &mut self.flows[flow];
        let was_up = cobalt.p_drop > 0;
        cobalt.found_empty(&self.law, now);
        self.unresponsive_flows -= u32::from(was_up && cobalt.p_drop == 0);
        let rests = cobalt.is_at_rest(now);
        let was = std::mem::replace(set, if rests { TurnList::None } else { TurnList::Decaying });
        match was {
            TurnList::Sparse | TurnList::SparseWait => self.sparse_flows -= 1,
            TurnList::Bulk => {
                self.bulk_flows -= 1;
                self.count_bulk(flow, mode, false);
            }
            TurnList::Decaying => self.decaying_flows -= 1,
            TurnList::None => {}
        }
        if rests {
            self.lists.remove(flow);
        } else {
            self.decaying_flows += 1;
            self.lists.move_to(flow, DECAYING);
        }
    }

    /// A flow lost a packet because the memory was full.
    pub(super) fn overflowed(&mut self, flow: usize, now: Time) {
        let cobalt = &mut self.flows[flow].cobalt;
        let was_down = cobalt.p_drop == 0;
        cobalt.overflowed(&self.law, now);
        self.unresponsive_flows += u32::from(was_down && cobalt.p_drop > 0);
        self.stats.drops += 1;
    }

    /// A packet of so many bytes on the link was sent, or was dropped and counts
    /// (`cake_advance_shaper`).
    #[inline]
    pub(super) fn advance(&mut self, bytes: u32, now: Time) {
        let time = self.pace.time(bytes);
        if self.next < now {
            self.next += time;
        } else if self.next < now + time {
            self.next = now + time;
        }
    }

    /// The flow that sends next if its law allows it: that with something left of its turn, else
    /// the one that misses least.
    pub(super) fn likely_next(&self) -> Option<usize> {
        let waiting = [NEW, OLD].into_iter().flat_map(|list| self.lists.indices(list));
        let waiting = waiting.filter(|&flow| !self.flows[flow].queue.is_empty());
        // The first of several.
        waiting.min_by_key(|&flow| -self.flows[flow].deficit.min(1))
    }
}

/// The queues among which a flow may have its own, its first choice first.
fn ways(direct: usize) -> impl Iterator<Item = usize> {
    let set = direct - direct % WAYS;
    (0..WAYS).map(move |way| set + (direct + way) % WAYS)
}
